/*
 * append.c: appends if the log still ends where the writer saw its end.
 *
 * One statement moves the log's row from the known end to the new one and inserts the
 * records, or finds another end and does nothing. Two writers meet at the row, and the
 * later one sees the result of the first. An append that may still happen is never
 * reported as failed (change.c).
 */
#include "store/postgres/postgres.h"

#include <string.h>

#include "store/records.h"

typedef struct appending {
    pg_log *log;
    const sessile_log_end *end;
    const void *data;
    size_t size;
} appending;

/* The log has grown past E, and what stands at E are our records. */
static sessile_status appended(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    appending *a = arg;
    return pg_same_bytes(call, a->log, a->end->count, a->end->bytes, a->data, a->size,
                         yes, err);
}

/* Nothing was changed: what was found instead of *end? */
static sessile_status elsewhere(pg_call *call, pg_log *log, const sessile_log_end *end,
                                sessile_error *err)
{
    pg_seen seen;
    sessile_status status = pg_look(call, log, &seen, err);
    if (status)
        return status;
    pthread_mutex_lock(&log->mutex);
    log->replaced = seen.leads_to != 0 && seen.leads_to != log->id;
    pthread_mutex_unlock(&log->mutex);
    if (!seen.there || !seen.named) {
        return fail(err, SESSILE_NOTFOUND, "%s was removed or replaced: open it again",
                    log->name);
    }
    if (seen.size < end->bytes) {
        return fail(err, SESSILE_TRUNCATED, "%s is shorter than what is known of it",
                    log->name);
    }
    return fail(err, SESSILE_CONFLICT, "%s has grown: read on, then try again",
                log->name);
}

/* The last record of what was just put, so that pg_sync can tell that it is there. */
static void remember(pg_log *log, uint64_t end, const char *data, size_t size)
{
    size_t at = 0, n = record_size(data, size);
    while (at + n < size) {
        at += n;
        n = record_size(data + at, size - at);
    }
    log->put_end = end;
    hash256(log->put_hash, data + at, n, NULL, 0);
}

sessile_status pg_append(sessile_backend_log *handle, sessile_log_end *end,
                         const void *data, size_t size, uint64_t count,
                         const unsigned char new_tag[16], int *poisoned,
                         sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_store *ps = log->ps;
    appending a = {log, end, data, size};
    pg_records records;
    pg_results r;
    int took;
    *poisoned = 0;
    pthread_mutex_lock(&log->mutex);
    int bad = log->poisoned;
    pthread_mutex_unlock(&log->mutex);
    if (bad) {
        *poisoned = 1;
        return store_undecided(log->name, err);
    }
    if (pg_records_fill(&records, data, size, end->bytes, &ps->alloc) != 0)
        return fail_nomem(err);
    pg_call call = pg_log_call(log);
    pg_step steps[2] = {pg_step_of(PG_UNSYNCED), pg_step_of(PG_APPEND)}, *s = &steps[1];
    pg_arg_int(s, log->id);
    pg_arg_int(s, end->count);
    pg_arg_int(s, end->bytes);
    pg_arg_bytes(s, end->tag, sizeof end->tag);
    pg_arg_int(s, count);
    pg_arg_int(s, size);
    pg_arg_bytes(s, new_tag, 16);
    pg_arg_bytes(s, records.at.data, records.at.size);
    pg_arg_bytes(s, records.lines.data, records.lines.size);
    int skipped = !ps->unsynced;
    sessile_status status = pg_change(&call, steps + skipped, 2 - skipped, log->name,
                                      appended, &a, &r, &took, err);
    pg_records_free(&records);
    uint64_t era = 0; /* where the answer was lost it is none */
    if (!status && took == PG_AS_ANSWERED) {
        int done = pg_rows(ps, r.of[1 - skipped]) > 0;
        era = r.era;
        pg_results_free(ps, &r);
        if (!done) {
            call.primary = 1; /* as the one was that answered */
            return elsewhere(&call, log, end, err);
        }
    }
    keep_stretch written = {data, size, end->bytes, end->count};
    if (!ps->keep.shared)
        keep_forget(&ps->keep, log->kept); /* who writes has read what they wanted */
    else if (!status)
        keep_put(&ps->keep, log->kept, &written, era);
    pthread_mutex_lock(&log->mutex);
    pg_cache_forget(log);
    if (!status) {
        end->count += count;
        end->bytes += size;
        memcpy(end->tag, new_tag, sizeof end->tag);
        if (log->bytes <= end->bytes) {
            log->count = end->count;
            log->bytes = log->size = end->bytes;
            pg_log_tag(log, end->tag);
        }
        if (log->settled < end->bytes)
            log->settled =
                end->bytes; /* its commit was waited for, and those before it */
        if (ps->unsynced)
            remember(log, end->count, data, size);
    } else if (took == PG_UNKNOWN) {
        log->poisoned = *poisoned = 1;
    }
    pthread_mutex_unlock(&log->mutex);
    return status;
}

sessile_status pg_fence(sessile_backend_log *handle, sessile_log_end *out, int *has_tag,
                        sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_call call = pg_log_call(log);
    pg_seen seen;
    sessile_status status = pg_look(&call, log, &seen, err);
    *out = (sessile_log_end){.count = seen.count, .bytes = seen.bytes};
    memcpy(out->tag, seen.tag, sizeof out->tag);
    *has_tag = seen.keeps_tag;
    return !status && (!seen.there || !seen.named)
               ? fail(err, SESSILE_NOTFOUND, "%s was removed or replaced: open it again",
                      log->name)
               : status;
}

/* 1: the last record that was put is the one in r. */
static int is_there(const pg_store *ps, const PGresult *r, const unsigned char hash[32])
{
    unsigned char found[32];
    size_t size;
    if (pg_rows(ps, r) != 1)
        return 0;
    const char *line = pg_bytes(ps, r, 0, 1, &size);
    hash256(found, line, size, NULL, 0);
    return memcmp(found, hash, sizeof found) == 0;
}

/* 1: the log still holds what the handle has seen of it, or is removed and has nothing to
 * lose. Under the mutex. */
static int still_holds(const pg_log *log, const PGresult *row)
{
    const pg_store *ps = log->ps;
    if (pg_rows(ps, row) != 1)
        return 1;
    uint64_t bytes = (uint64_t)pg_int(ps, row, 0, 1);
    const unsigned char *tag = pg_tag(ps, row, 0, 2);
    return bytes > log->bytes ||
           (bytes == log->bytes &&
            (!tag || !log->has_tag || memcmp(tag, log->tag, sizeof log->tag) == 0));
}

/*
 * What is acknowledged is safe where appends are waited for: pool.c sees to that. What is
 * merely seen may not be, when commits wait for standbys; and what was appended without
 * waiting is not. For both this is a commit that is waited for: the server writes its
 * changes down, and sends them to its standbys, in the order in which they were made, so
 * what was there before is safe with it. But a server that failed meanwhile has forgotten
 * what was not synced, and a standby that took its place what was not sent: so the end of
 * the log and our last record are looked at, in the same transaction.
 */
sessile_status pg_sync(sessile_backend_log *handle, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_store *ps = log->ps;
    unsigned char hash[32];
    pg_results r;
    pthread_mutex_lock(&log->mutex);
    int bad = log->poisoned, needed = ps->unsynced || log->settled < log->bytes;
    uint64_t end = log->put_end, seen = log->bytes;
    memcpy(hash, log->put_hash, sizeof hash);
    pthread_mutex_unlock(&log->mutex);
    if (bad)
        return store_undecided(log->name, err);
    if (!needed)
        return SESSILE_OK;
    pg_call call = pg_log_call(log);
    pg_step s[2] = {pg_step_of(PG_SYNC), pg_step_of(PG_LINES)};
    pg_arg_int(&s[0], log->id);
    pg_arg_int(&s[1], log->id);
    pg_arg_int(&s[1], end > 0 ? end - 1 : 0);
    pg_arg_int(&s[1], 1);
    pg_arg_int(&s[1], INT64_MAX);
    sessile_status status = pg_settle(&call, s, end > 0 ? 2 : 1, log->name, &r, err);
    if (status)
        return status;
    pthread_mutex_lock(&log->mutex);
    int removed = pg_rows(ps, r.of[0]) == 0;
    int same =
        still_holds(log, r.of[0]) && (end == 0 || removed || is_there(ps, r.of[1], hash));
    if (same && log->settled < seen)
        log->settled = seen;
    pthread_mutex_unlock(&log->mutex);
    pg_results_free(ps, &r);
    if (!same) {
        return fail(err, SESSILE_IO,
                    "the server failed and lost what had been appended to %s and was not "
                    "synced: " STORE_LOOK_AGAIN,
                    log->name);
    }
    return SESSILE_OK;
}
