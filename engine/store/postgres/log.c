/*
 * log.c: creates and measures logs.
 *
 * No mutex of a handle is held while the server works, because other threads use the
 * handle meanwhile.
 */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

#include "store/records.h"

/* Records of a handle that shares them with no other are fetched again after so long. */
#define FRESH_US UINT64_C(2000000)

pg_log *pg_log_of(sessile_backend_log *log)
{
    return (pg_log *)(void *)log;
}

pg_call pg_log_call(pg_log *log)
{
    pthread_mutex_lock(&log->mutex);
    pg_call call = pg_call_of(log->ps, log->timeout_ms);
    call.stop = log->stop;
    pthread_mutex_unlock(&log->mutex);
    return call;
}

/* ---------------------------------------------------------------------- create */

typedef struct creating {
    const char *folder, *name;
    const void *data;
    size_t size;
} creating;

/* The name is there, and leads to just our bytes. */
static sessile_status created(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    creating *c = arg;
    pg_store *ps = call->ps;
    pg_step s = pg_step_of(PG_OPEN);
    pg_results r;
    *yes = 0;
    pg_arg_text(&s, c->folder);
    pg_arg_text(&s, c->name);
    call->absent = 0;
    sessile_status status = pg_ask(call, &s, 1, c->name, &r, err);
    if (status)
        return call->absent ? SESSILE_OK : status;
    pg_log log = {.ps = ps, .name = (char *)(uintptr_t)c->name};
    int there =
        pg_rows(ps, r.of[0]) == 1 && (uint64_t)pg_int(ps, r.of[0], 0, 2) >= c->size;
    log.id = there ? (uint64_t)pg_int(ps, r.of[0], 0, 0) : 0;
    pg_results_free(ps, &r);
    return there ? pg_same_bytes(call, &log, 0, 0, c->data, c->size, yes, err)
                 : SESSILE_OK;
}

sessile_status pg_create(void *self, const char *folder, const char *name,
                         const void *data, size_t size, sessile_error *err)
{
    pg_store *ps = self;
    creating made = {folder, name, data, size};
    pg_records records;
    pg_results r;
    int took, there = 0;
    sessile_status status = store_names_check(folder, name, err);
    if (status)
        return status;
    if (pg_records_fill(&records, data, size, 0, &ps->alloc) != 0)
        return fail_nomem(err);
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_CREATE);
    pg_arg_text(&s, folder);
    pg_arg_text(&s, name);
    pg_arg_int(&s, record_count(data, size));
    pg_arg_int(&s, size);
    pg_arg_bytes(&s, records.at.data, records.at.size);
    pg_arg_bytes(&s, records.lines.data, records.lines.size);
    status = pg_change_making(&call, &s, 1, name, created, &made, &r, &took, err);
    if (!status && took == PG_AS_ANSWERED) {
        there = pg_rows(ps, r.of[0]) == 0;
        pg_results_free(ps, &r);
    }
    pg_records_free(&records);
    return there ? fail(err, SESSILE_EXISTS, "%s is already there", name) : status;
}

/* ---------------------------------------------------------------------- a handle */

sessile_status pg_names_find(pg_store *ps, const char **folder, const char **name,
                             pg_names *room, sessile_error *err)
{
    uint64_t row;
    pg_results r;
    if (!store_is_misnamed(*name, &row))
        return store_names_check(*folder, *name, err);
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_NAMES);
    pg_arg_int(&s, row);
    sessile_status status = pg_ask(&call, &s, 1, *name, &r, err);
    if (status)
        return status;
    if (pg_rows(ps, r.of[0]) == 1) {
        snprintf(room->folder, sizeof room->folder, "%s", pg_text(ps, r.of[0], 0, 0));
        snprintf(room->name, sizeof room->name, "%s", pg_text(ps, r.of[0], 0, 1));
        *folder = room->folder;
        *name = room->name;
    } else {
        status = fail(err, SESSILE_NOTFOUND, "there is no log %s", *name);
    }
    pg_results_free(ps, &r);
    return status;
}

void pg_set_timeout(sessile_backend_log *handle, int timeout_ms)
{
    pg_log *log = pg_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    log->timeout_ms = timeout_ms;
    pthread_mutex_unlock(&log->mutex);
}

void pg_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    pg_log *log = pg_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    log->stop = (lock_stop){ask, arg};
    pthread_mutex_unlock(&log->mutex);
}

/* ---------------------------------------------------------------------- size */

sessile_status pg_look(pg_call *call, const pg_log *log, pg_seen *out, sessile_error *err)
{
    pg_store *ps = call->ps;
    pg_step s = pg_step_of(PG_LOOK);
    pg_results r;
    memset(out, 0, sizeof *out);
    pg_arg_int(&s, log->id);
    pg_arg_text(&s, log->folder);
    pg_arg_text(&s, log->name);
    sessile_status status = pg_ask(call, &s, 1, log->name, &r, err);
    if (status)
        return status;
    const PGresult *row = r.of[0];
    if (pg_rows(ps, row) == 1) {
        const unsigned char *tag = pg_tag(ps, row, 0, 3);
        out->there = !pg_null(ps, row, 0, 0);
        out->named = !pg_null(ps, row, 0, 5);
        out->count = (uint64_t)pg_int(ps, row, 0, 1);
        out->bytes = (uint64_t)pg_int(ps, row, 0, 2);
        out->updated_ns = pg_time_ns(ps, row, 0, 4);
        out->leads_to = (uint64_t)pg_int(ps, row, 0, 6);
        out->replicated = !pg_null(ps, row, 0, 7);
        out->size = (uint64_t)pg_int(ps, row, 0, 8);
        out->keeps_tag = !pg_null(ps, row, 0, 3);
        out->has_tag = tag != NULL;
        if (out->has_tag)
            memcpy(out->tag, tag, sizeof out->tag);
    }
    pg_results_free(ps, &r);
    return SESSILE_OK;
}

sessile_status pg_size(sessile_backend_log *handle, uint64_t *bytes, int64_t *mtime_ms,
                       sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_call call = pg_log_call(log);
    pg_seen seen;
    *bytes = 0;
    *mtime_ms = 0;
    sessile_status status = pg_look(&call, log, &seen, err);
    if (status)
        return status;
    if (!seen.there)
        keep_forget(&log->ps->keep, log->kept);
    else if (!log->ps->keep.shared)
        keep_forget_older(&log->ps->keep, log->kept, FRESH_US);
    pthread_mutex_lock(&log->mutex);
    if (seen.there && seen.size >= log->size) {
        log->size = seen.size;
        log->count = seen.count;
        log->bytes = seen.bytes;
        log->updated_ns = seen.updated_ns;
        pg_log_tag(log, seen.has_tag ? seen.tag : NULL);
        if (!seen.replicated)
            log->settled = log->bytes;
    }
    pg_cache_age(log);
    log->replaced = seen.leads_to != 0 && seen.leads_to != log->id;
    *bytes = log->size;
    *mtime_ms = log->updated_ns / 1000000;
    pthread_mutex_unlock(&log->mutex);
    return SESSILE_OK;
}

int pg_replaced(sessile_backend_log *handle)
{
    pg_log *log = pg_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    int replaced = log->replaced;
    pthread_mutex_unlock(&log->mutex);
    return replaced;
}
