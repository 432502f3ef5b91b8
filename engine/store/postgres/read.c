/*
 * read.c: reads the bytes of a log from its rows.
 *
 * A handle keeps the bytes that it prefetched. Records never change and the id of a log
 * is never used again, so they stay true; only the end of a log moves, and the server is
 * always asked for it. Bytes that no row has are read as blanks and a newline.
 */
#include "store/postgres/postgres.h"

#include <string.h>

#include "store/records.h"

/* What a small read brings along: whoever wants more asks for it, a megabyte at once. */
#define BESIDE (UINT64_C(64) << 10)
/* What was read stays for so long, and so much of it in all handles of a store. */
#define FRESH_US  UINT64_C(2000000)
#define KEPT_MOST ((size_t)32 << 20)
/* Rows of one fetch, whatever their size is thought to be. */
enum { ROWS_LEAST = 64, ROWS_MOST = 20000 };

/* ---------------------------------------------------------------------- read ahead */

void pg_prefetch_drop(pg_store *ps, pg_prefetch *prefetch)
{
    if (prefetch->counted) {
        pthread_mutex_lock(&ps->mutex);
        ps->kept -= prefetch->capacity;
        pthread_mutex_unlock(&ps->mutex);
    }
    mem_free(&ps->alloc, prefetch->data, prefetch->capacity);
    memset(prefetch, 0, sizeof *prefetch);
}

void pg_prefetch_age(pg_store *ps, pg_prefetch *prefetch)
{
    if (prefetch->data && pg_over(ps, prefetch->read_us + FRESH_US))
        pg_prefetch_drop(ps, prefetch);
}

/* What was read to its end is often read again at once, record by record. */
void pg_prefetch_keep(pg_store *ps, pg_prefetch *prefetch)
{
    pthread_mutex_lock(&ps->mutex);
    prefetch->counted = prefetch->data && ps->kept + prefetch->capacity <= KEPT_MOST;
    ps->kept += prefetch->counted ? prefetch->capacity : 0;
    pthread_mutex_unlock(&ps->mutex);
}

sessile_status pg_prefetch_take(const pg_log *log, const PGresult *r, int at_column,
                                uint64_t first, pg_prefetch *out, sessile_error *err)
{
    pg_store *ps = log->ps;
    int rows = pg_rows(ps, r);
    size_t total = 0, size;
    memset(out, 0, sizeof *out);
    out->from = rows > 0 ? (uint64_t)pg_int(ps, r, 0, at_column) : 0;
    for (int i = 0; i < rows; i++) {
        if ((uint64_t)pg_int(ps, r, i, at_column) != out->from + total) {
            rows =
                i; /* somebody else changed the table: what is missing reads as blanks */
            break;
        }
        (void)pg_bytes(ps, r, i, at_column + 1, &size);
        total += size;
    }
    out->read_us = ps->os->clock_us(ps->os->ud);
    out->first = first;
    out->next = first + (uint64_t)rows;
    if (rows == 0)
        return SESSILE_OK;
    out->capacity = total + 1;
    out->data = mem_alloc(&ps->alloc, out->capacity);
    if (!out->data)
        return fail_nomem(err);
    for (int i = 0; i < rows; i++) {
        const char *line = pg_bytes(ps, r, i, at_column + 1, &size);
        memcpy(out->data + out->size, line, size);
        out->size += size;
    }
    return SESSILE_OK;
}

/* Fetches what begins with the record `index`, up to about `want` bytes. */
static sessile_status fetch(pg_call *call, const pg_log *log, uint64_t index,
                            uint64_t offset, uint64_t want, uint64_t rows,
                            pg_prefetch *out, sessile_error *err)
{
    pg_step s = pg_step_of(PG_LINES);
    pg_results r;
    memset(out, 0, sizeof *out);
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, index);
    pg_arg_int(&s, rows);
    pg_arg_int(&s, offset + want);
    sessile_status status = pg_ask(call, &s, 1, log->name, &r, err);
    if (!status) {
        status = pg_prefetch_take(log, r.of[0], 0, index, out, err);
        pg_results_free(call->ps, &r);
    }
    return status;
}

sessile_status pg_same_bytes(pg_call *call, const pg_log *log, uint64_t index,
                             uint64_t offset, const void *data, size_t size, int *same,
                             sessile_error *err)
{
    pg_prefetch got;
    *same = 0;
    sessile_status status =
        fetch(call, log, index, offset, size, record_count(data, size), &got, err);
    if (!status) {
        *same =
            got.size == size && got.from == offset && memcmp(got.data, data, size) == 0;
        mem_free(&call->ps->alloc, got.data, got.capacity);
    }
    return status;
}

/* ---------------------------------------------------------------------- read */

/* Takes from what is there already. 1: all of it. *index: the record to fetch from, for
 * what is missing; UINT64_MAX: it is not known. */
static int from_prefetch(pg_log *log, uint64_t offset, char *out, size_t size,
                         size_t *got, uint64_t *index)
{
    pg_prefetch *h = &log->prefetch;
    *index = offset == 0 ? 0 : UINT64_MAX;
    if (!h->data && h->next == 0)
        return 0;
    uint64_t end = h->from + h->size;
    if (h->data && offset >= h->from && offset < end) {
        size_t n = end - offset < size ? (size_t)(end - offset) : size;
        memcpy(out, h->data + (offset - h->from), n);
        *got = n;
        offset += n;
    }
    if (offset == end) {
        *index = h->next;
        if (*got > 0 && !h->counted) {
            /* read through: only where it ended is remembered */
            mem_free(&log->ps->alloc, h->data, h->capacity);
            *h = (pg_prefetch){.from = end, .first = h->next, .next = h->next};
        }
    }
    return *got == size;
}

/* Blanks for `wanted` bytes from offset on, up to those that are there, or to the end of
 * the log, at `end`. *index: the record that begins behind them; UINT64_MAX: none is
 * known. */
static sessile_status fill(pg_call *call, const pg_log *log, uint64_t offset,
                           uint64_t end, size_t wanted, char *out, size_t *filled,
                           uint64_t *index, sessile_error *err)
{
    pg_step s = pg_step_of(PG_BEHIND);
    pg_results r;
    *index = UINT64_MAX;
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, offset);
    pg_arg_int(&s, end);
    sessile_status status = pg_ask(call, &s, 1, log->name, &r, err);
    if (status)
        return status;
    if (pg_rows(call->ps, r.of[0]) > 0) {
        end = (uint64_t)pg_int(call->ps, r.of[0], 0, 0);
        *index = (uint64_t)pg_int(call->ps, r.of[0], 0, 1);
    }
    pg_results_free(call->ps, &r);
    *filled = wanted < end - offset ? wanted : (size_t)(end - offset);
    memset(out, ' ', *filled);
    if (*filled == end - offset)
        out[*filled - 1] = '\n';
    else
        *index = UINT64_MAX;
    return SESSILE_OK;
}

static sessile_status find(pg_call *call, const pg_log *log, uint64_t offset,
                           uint64_t *index, sessile_error *err)
{
    pg_step s = pg_step_of(PG_FIND);
    pg_results r;
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, offset);
    sessile_status status = pg_ask(call, &s, 1, log->name, &r, err);
    if (!status) {
        *index = pg_rows(call->ps, r.of[0]) > 0
                     ? (uint64_t)pg_int(call->ps, r.of[0], 0, 0)
                     : 0;
        pg_results_free(call->ps, &r);
    }
    return status;
}

sessile_status pg_read(sessile_backend_log *handle, uint64_t index, uint64_t offset,
                       void *out, size_t size, size_t *got, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_call call = pg_log_call(log);
    uint64_t next, at = offset;
    char *to = out;
    *got = 0;
    if (size == 0)
        return SESSILE_OK;
    pthread_mutex_lock(&log->mutex);
    int all = from_prefetch(log, offset, to, size, got, &next);
    uint64_t count = log->count, bytes = log->size;
    pthread_mutex_unlock(&log->mutex);
    at += *got;
    if (next == UINT64_MAX)
        next = index > 0 ? index : UINT64_MAX;
    uint64_t mean = count > 0 && bytes > count ? bytes / count : 1;
    for (int searched = 0; !all;) {
        pg_prefetch more;
        uint64_t want = size - *got > BESIDE ? size - *got : BESIDE;
        uint64_t rows = want / mean + 1;
        rows = rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
        sessile_status status = SESSILE_OK;
        if (next == UINT64_MAX) {
            searched = 1;
            status = find(&call, log, at, &next, err);
        }
        if (!status)
            status = fetch(&call, log, next, at, want, rows, &more, err);
        if (status) {
            *got = 0;
            return status;
        }
        if (more.size > 0 && !searched &&
            (more.from > at || more.from + more.size <= at)) {
            /* the number that came with the call was not that of this record */
            mem_free(&call.ps->alloc, more.data, more.capacity);
            next = UINT64_MAX;
            continue;
        }
        if (more.size == 0 || more.from + more.size <= at || more.from > at) {
            mem_free(&call.ps->alloc, more.data, more.capacity);
            if (*got > 0 && at == bytes)
                return SESSILE_OK;
            pg_seen seen; /* is this its end, or is it gone? */
            status = pg_look(&call, log, &seen, err);
            if (!status && seen.there && at >= seen.size)
                return SESSILE_OK;
            next = UINT64_MAX;
            if (!status && !seen.there) {
                /* also when a part was there already: the rest cannot be had */
                status = fail(err, SESSILE_NOTFOUND, "%s was removed", log->name);
            } else if (!status && searched && at < bytes) { /* rows are lost */
                size_t filled = 0;
                status = fill(&call, log, at, bytes, size - *got, to + *got, &filled,
                              &next, err);
                *got += filled;
                at += filled;
                all = *got == size;
            }
            if (status) {
                *got = 0;
                return status;
            }
            bytes = seen.size; /* it may have grown since the rows were asked for */
            continue;
        }
        int last = more.next - next < rows && more.from + more.size < at + want;
        size_t left = (size_t)(more.from + more.size - at);
        size_t n = left < size - *got ? left : size - *got;
        memcpy(to + *got, more.data + (at - more.from), n);
        *got += n;
        at += n;
        next = more.next;
        all = *got == size || last;
        pthread_mutex_lock(&log->mutex);
        pg_prefetch_drop(log->ps, &log->prefetch);
        pg_prefetch_keep(log->ps, &more);
        log->prefetch = more;
        if (n == left && !more.counted) { /* nothing of it is left to be read */
            mem_free(&log->ps->alloc, more.data, more.capacity);
            log->prefetch =
                (pg_prefetch){.from = at, .first = more.next, .next = more.next};
        }
        pthread_mutex_unlock(&log->mutex);
    }
    return SESSILE_OK;
}
