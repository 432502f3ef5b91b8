/*
 * cache.c: caches of logs and of lists.
 *
 * A log's cache is a row for each piece, so an addition to a long cache costs only its
 * own bytes. Caches may be lost. Missing tables are no error here, and are not created.
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* What came with the size of a cache stays for so long. */
#define FRESH_US UINT64_C(2000000)

/* ---------------------------------------------------------------------- of logs */

void pg_cache_forget(pg_log *log)
{
    pg_fetched_free(log->ps, &log->cached);
}

void pg_cache_age(pg_log *log)
{
    if (log->cached.data && pg_over(log->ps, log->cached.read_us + FRESH_US))
        pg_cache_forget(log);
}

void pg_cache_take(pg_log *log, const PGresult *r, uint64_t *bytes)
{
    pg_store *ps = log->ps;
    pg_fetched last = {.capacity = PG_CACHE_LAST + PG_CACHE_BEFORE};
    *bytes = 0;
    for (int i = 0, n = pg_rows(ps, r); i < n; i++) {
        size_t size;
        const char *data = pg_bytes(ps, r, i, 2, &size);
        uint64_t at = (uint64_t)pg_int(ps, r, i, 0);
        *bytes = at + (uint64_t)pg_int(ps, r, i, 1);
        if (!last.data)
            last.data = mem_alloc(&ps->alloc, last.capacity);
        if (at != last.from + last.size || size > last.capacity - last.size) {
            last.from = at;
            last.size = 0;
        }
        if (size > last.capacity)
            continue;    /* more than was asked for: it is fetched when it is read */
        if (last.data) { /* else it is fetched when it is read */
            memcpy(last.data + last.size, data, size);
            last.size += size;
        }
    }
    if (!last.data) {
        last.capacity = last.size = 0;
    } else if (last.size < last.capacity / 2) {
        char *less = mem_realloc(&ps->alloc, last.data, last.capacity, last.size + 1);
        if (less) {
            last.data = less;
            last.capacity = last.size + 1;
        }
    }
    last.read_us = ps->os->clock_us(ps->os->ud);
    pthread_mutex_lock(&log->mutex);
    pg_cache_forget(log);
    log->cached = last;
    pthread_mutex_unlock(&log->mutex);
}

sessile_status pg_cache_size(sessile_backend_log *handle, uint64_t *bytes,
                             sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_call call = pg_log_call(log);
    pg_step s = pg_step_of(PG_CACHE_SIZE);
    pg_results r;
    *bytes = 0;
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, PG_CACHE_LAST);
    pg_arg_int(&s, PG_CACHE_BEFORE);
    sessile_status status = pg_ask(&call, &s, 1, log->name, &r, err);
    if (status)
        return status;
    pg_cache_take(log, r.of[0], bytes);
    pg_results_free(call.ps, &r);
    return SESSILE_OK;
}

/* Takes it from what came with the size, if all of it is there. */
static int from_cached(pg_log *log, uint64_t offset, void *out, size_t size)
{
    pthread_mutex_lock(&log->mutex);
    const pg_fetched *c = &log->cached;
    pg_cache_age(log);
    int there = c->data && offset >= c->from && offset - c->from <= c->size &&
                c->size - (offset - c->from) >= size;
    if (there)
        memcpy(out, c->data + (offset - c->from), size);
    pthread_mutex_unlock(&log->mutex);
    return there;
}

sessile_status pg_cache_read(sessile_backend_log *handle, uint64_t offset, void *out,
                             size_t size, size_t *got, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_store *ps = log->ps;
    pg_call call = pg_log_call(log);
    pg_step s = pg_step_of(PG_CACHE_READ);
    pg_results r;
    *got = 0;
    if (size == 0 || from_cached(log, offset, out, size)) {
        *got = size;
        return SESSILE_OK;
    }
    if (offset > INT64_MAX - size)
        return SESSILE_OK;
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, offset);
    pg_arg_int(&s, offset + size);
    sessile_status status = pg_ask(&call, &s, 1, log->name, &r, err);
    if (status)
        return status;
    for (int i = 0, n = pg_rows(ps, r.of[0]); i < n; i++) {
        size_t piece;
        const char *data = pg_bytes(ps, r.of[0], i, 1, &piece);
        if ((uint64_t)pg_int(ps, r.of[0], i, 0) != offset + *got || piece > size - *got)
            break; /* it ends here, or is none of ours */
        memcpy((char *)out + *got, data, piece);
        *got += piece;
    }
    pg_results_free(ps, &r);
    return SESSILE_OK;
}

sessile_status pg_cache_write(sessile_backend_log *handle, uint64_t offset,
                              const void *data, size_t size, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_store *ps = log->ps;
    pg_call call = pg_log_call(log);
    /* The log's row is locked first: of two that meet, the later one sees what the first
     * has put. */
    pg_step s[] = {pg_step_of(PG_CACHE_LOCK), pg_step_of(PG_CACHE_DROP),
                   pg_step_of(PG_CACHE_CUT), pg_step_of(PG_CACHE_PUT)};
    pg_results r;
    for (int i = 0; i < 4; i++) {
        pg_arg_int(&s[i], log->id);
        if (i > 0)
            pg_arg_int(&s[i], offset);
    }
    pg_arg_bytes(&s[3], data, size);
    pthread_mutex_lock(&log->mutex);
    pg_cache_forget(log);
    pthread_mutex_unlock(&log->mutex);
    sessile_status status = pg_put(&call, s, 4, log->name, &r, err);
    if (status)
        return status;
    int there = pg_rows(ps, r.of[0]) > 0, put = pg_rows(ps, r.of[3]) > 0;
    pg_results_free(ps, &r);
    if (!there)
        return fail(err, SESSILE_NOTFOUND, "%s was removed", log->name);
    return put ? SESSILE_OK
               : fail(err, SESSILE_CONFLICT,
                      "the cache of %s ends before what is put there", log->name);
}

/* ---------------------------------------------------------------------- of folders */

sessile_status pg_list_cache_get(void *self, const char *folder, char **out, size_t *size,
                                 sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_LIST_CACHE_GET);
    pg_results r;
    *out = NULL;
    *size = 0;
    sessile_status status = store_name_check(folder, err);
    if (status)
        return status;
    pg_arg_text(&s, folder);
    status = pg_ask(&call, &s, 1, folder, &r, err);
    if (status)
        return status;
    if (pg_rows(ps, r.of[0]) != 1) {
        status = fail(err, SESSILE_NOTFOUND, "nothing is kept of %s", folder);
    } else {
        const char *data = pg_bytes(ps, r.of[0], 0, 0, size);
        *out = host_dup(&ps->alloc, data, *size);
        if (!*out) {
            *size = 0;
            status = fail_nomem(err);
        }
    }
    pg_results_free(ps, &r);
    return status;
}

/* Runs a statement that answers nothing; without tables there is nothing to do. */
static sessile_status put_cache(pg_call *call, const pg_step *s, sessile_error *err)
{
    pg_results r;
    sessile_status status = pg_put(call, s, 1, "a list", &r, err);
    if (status) {
        if (call->absent) {
            error_clear(err);
            return SESSILE_OK;
        }
        return status;
    }
    pg_results_free(call->ps, &r);
    return SESSILE_OK;
}

sessile_status pg_list_cache_put(void *self, const char *folder, const void *data,
                                 size_t size, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_LIST_CACHE_PUT);
    sessile_status status = store_name_check(folder, err);
    pg_arg_text(&s, folder);
    pg_arg_bytes(&s, data, size);
    return !status ? put_cache(&call, &s, err) : status;
}

sessile_status pg_list_cache_drop(void *self, const char *folder, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_LIST_CACHE_DROP);
    pg_arg_text(&s, folder);
    return put_cache(&call, &s, err);
}
