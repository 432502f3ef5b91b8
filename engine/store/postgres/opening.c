/*
 * opening.c: opens and closes handles of logs.
 *
 * Owns the one round trip of an opening: the log's row, its records (all of a short one,
 * the first and the newest of a long one), and the end of its cache, which is what a
 * session asks for next. Records that are in memory are not sent again.
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* Records come with the opening when they have no more bytes; else the newest. */
#define ALL_BYTES    (UINT64_C(1) << 20)
#define TAIL_BYTES   (UINT64_C(256) << 10)
#define TAIL_RECORDS UINT64_C(512)

static void free_text(const pg_store *ps, char *text)
{
    if (text)
        mem_free(&ps->alloc, text, strlen(text) + 1);
}

void pg_log_tag(pg_log *log, const unsigned char *tag)
{
    log->has_tag = tag != NULL;
    if (tag)
        memcpy(log->tag, tag, sizeof log->tag);
}

static sessile_status log_new(pg_store *ps, const char *folder, const char *name,
                              pg_log **out, sessile_error *err)
{
    pg_log *log = mem_zalloc(&ps->alloc, sizeof *log);
    *out = log;
    if (!log)
        return fail_nomem(err);
    log->ps = ps;
    log->timeout_ms = ps->timeout_ms;
    pthread_mutex_init(&log->mutex, NULL);
    log->folder = mem_dup(&ps->alloc, folder, strlen(folder));
    log->name = mem_dup(&ps->alloc, name, strlen(name));
    return log->folder && log->name ? SESSILE_OK : fail_nomem(err);
}

void pg_close(sessile_backend_log *handle)
{
    pg_log *log = pg_log_of(handle);
    if (log) {
        keep_detach(&log->ps->keep, log->kept);
        pg_fetched_free(log->ps, &log->cached);
        free_text(log->ps, log->folder);
        free_text(log->ps, log->name);
        pthread_mutex_destroy(&log->mutex);
        mem_free(&log->ps->alloc, log, sizeof *log);
    }
}

/* ---------------------------------------------------------------------- open */

/* The name's hash, by which its records are found in memory. */
static uint64_t hash_of(const char *folder, const char *name, const allocator *a)
{
    buf text;
    buf_init(&text, a);
    buf_puts(&text, folder);
    buf_puts(&text, "/");
    buf_puts(&text, name);
    uint64_t hash = text.failed ? 0 : hash64(text.data, text.size);
    buf_deinit(&text);
    return hash;
}

/* Puts the records of one statement into memory, if they are this log's. */
static sessile_status take_records(pg_log *log, const PGresult *rows, uint64_t era,
                                   sessile_error *err)
{
    pg_store *ps = log->ps;
    pg_fetched f;
    if (pg_rows(ps, rows) == 0 || (uint64_t)pg_int(ps, rows, 0, 0) != log->id)
        return SESSILE_OK;
    sessile_status status =
        pg_fetched_take(ps, rows, 2, (uint64_t)pg_int(ps, rows, 0, 1), &f, err);
    if (!status)
        pg_fetched_keep(log, &f, era);
    pg_fetched_free(ps, &f);
    return status;
}

enum { ROW, RECORDS, TAIL, CACHE, QUESTIONS };

static sessile_status take_answers(pg_log *log, uint64_t hash, const pg_results *r,
                                   sessile_error *err)
{
    pg_store *ps = log->ps;
    const PGresult *row = r->of[ROW], *cache = r->of[CACHE];
    log->id = (uint64_t)pg_int(ps, row, 0, 0);
    log->count = (uint64_t)pg_int(ps, row, 0, 1);
    log->bytes = (uint64_t)pg_int(ps, row, 0, 2);
    log->updated_ns = pg_time_ns(ps, row, 0, 4);
    pg_log_tag(log, pg_tag(ps, row, 0, 3));
    log->settled = pg_null(ps, row, 0, 5) ? log->bytes : 0;
    log->size = (uint64_t)pg_int(ps, row, 0, 6);
    log->kept = keep_attach(&ps->keep, hash, log->id);
    sessile_status status = take_records(log, r->of[RECORDS], r->era, err);
    if (!status)
        status = take_records(log, r->of[TAIL], r->era, err);
    log->cache_bytes = UINT64_MAX;
    if (pg_rows(ps, cache) == 0 || (uint64_t)pg_int(ps, cache, 0, 3) == log->id)
        pg_cache_take(log, cache, &log->cache_bytes);
    return status;
}

sessile_status pg_open(void *self, const char *folder, const char *name,
                       sessile_backend_log **out, sessile_error *err)
{
    pg_store *ps = self;
    pg_log *log = NULL;
    pg_names room;
    pg_results r;
    uint64_t id, count, bytes;
    *out = NULL;
    sessile_status status = pg_names_find(ps, &folder, &name, &room, err);
    if (!status)
        status = log_new(ps, folder, name, &log, err);
    if (status) {
        pg_close((sessile_backend_log *)(void *)log);
        return status;
    }
    uint64_t hash = hash_of(folder, name, &ps->alloc);
    keep_known(&ps->keep, hash, &id, &count, &bytes);
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s[QUESTIONS] = {[ROW] = pg_step_of(PG_OPEN),
                            [RECORDS] = pg_step_of(PG_OPEN_LINES),
                            [TAIL] = pg_step_of(PG_OPEN_TAIL),
                            [CACHE] = pg_step_of(PG_OPEN_CACHE)};
    for (int i = 0; i < QUESTIONS; i++) {
        pg_arg_text(&s[i], folder);
        pg_arg_text(&s[i], name);
    }
    for (int i = RECORDS; i <= TAIL; i++) {
        pg_arg_int(&s[i], id);
        pg_arg_int(&s[i], count);
        pg_arg_int(&s[i], bytes);
        pg_arg_int(&s[i], ALL_BYTES);
    }
    pg_arg_int(&s[TAIL], TAIL_RECORDS);
    pg_arg_int(&s[TAIL], TAIL_BYTES);
    pg_arg_int(&s[CACHE], PG_CACHE_LAST);
    pg_arg_int(&s[CACHE], PG_CACHE_BEFORE);
    status = pg_ask(&call, s, QUESTIONS, name, &r, err);
    if (!status) {
        status = pg_rows(ps, r.of[ROW]) == 1
                     ? take_answers(log, hash, &r, err)
                     : fail(err, SESSILE_NOTFOUND, "there is no log %s", name);
        pg_results_free(ps, &r);
    }
    if (status) {
        pg_close((sessile_backend_log *)(void *)log);
        return status;
    }
    *out = (sessile_backend_log *)(void *)log;
    return SESSILE_OK;
}

void pg_opened(sessile_backend_log *handle, uint64_t *bytes, uint64_t *cache_bytes)
{
    const pg_log *log = pg_log_of(handle);
    *bytes = log->size;
    *cache_bytes = log->cache_bytes;
}

void pg_reread(sessile_backend_log *handle)
{
    pg_log *log = pg_log_of(handle);
    keep *k = &log->ps->keep;
    keep_detach(k, log->kept);
    log->kept = keep_attach_alone(k, log->id); /* without memory nothing is kept */
}
