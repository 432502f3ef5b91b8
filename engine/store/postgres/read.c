/*
 * read.c: reads the bytes of a log from its rows.
 *
 * Records that are in memory (keep.c) are not fetched again. Bytes that no row has are
 * read as blanks and a newline.
 */
#include "store/postgres/postgres.h"

#include <string.h>

#include "store/records.h"

/* What a small read brings along: whoever wants more asks for it, a megabyte at once. */
#define BESIDE (UINT64_C(64) << 10)
/* Rows of one fetch, whatever their size is thought to be. */
enum { ROWS_LEAST = 64, ROWS_MOST = 20000 };

/* ---------------------------------------------------------------------- fetching */

void pg_fetched_free(pg_store *ps, pg_fetched *f)
{
    mem_free(&ps->alloc, f->data, f->capacity);
    memset(f, 0, sizeof *f);
}

sessile_status pg_fetched_take(pg_store *ps, const PGresult *r, int at_column,
                               uint64_t first, pg_fetched *out, sessile_error *err)
{
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

void pg_fetched_keep(pg_log *log, const pg_fetched *f, uint64_t era)
{
    keep_stretch s = {f->data, f->size, f->from, f->first};
    if (f->size > 0)
        keep_put(&log->ps->keep, log->kept, &s, era);
}

/* Fetches what begins with the record `index`, up to about `want` bytes. */
static sessile_status fetch(pg_call *call, const pg_log *log, uint64_t index,
                            uint64_t offset, uint64_t want, uint64_t rows,
                            pg_fetched *out, uint64_t *era, sessile_error *err)
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
        *era = r.era;
        status = pg_fetched_take(call->ps, r.of[0], 0, index, out, err);
        pg_results_free(call->ps, &r);
    }
    return status;
}

sessile_status pg_same_bytes(pg_call *call, const pg_log *log, uint64_t index,
                             uint64_t offset, const void *data, size_t size, int *same,
                             sessile_error *err)
{
    pg_fetched got;
    uint64_t era;
    *same = 0;
    sessile_status status =
        fetch(call, log, index, offset, size, record_count(data, size), &got, &era, err);
    if (!status) {
        *same =
            got.size == size && got.from == offset && memcmp(got.data, data, size) == 0;
        pg_fetched_free(call->ps, &got);
    }
    return status;
}

/* ---------------------------------------------------------------------- read */

/* Takes from what is there already; returns how many bytes. *index: the record to fetch
 * from, for what is missing; UINT64_MAX: it is not known. */
static size_t from_memory(pg_log *log, uint64_t offset, char *out, size_t size,
                          uint64_t *index)
{
    pthread_mutex_lock(&log->mutex);
    uint64_t at = log->read.at, next = log->read.index;
    pthread_mutex_unlock(&log->mutex);
    size_t got = keep_get(&log->ps->keep, log->kept, offset, out, size, index);
    if (offset + got == 0)
        *index = 0;
    else if (*index == UINT64_MAX && at == offset + got)
        *index = next;
    return got;
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

/* One read: what is still to be had, and where. */
typedef struct reading {
    pg_log *log;
    uint64_t at; /* offset */
    char *to;
    size_t size, got;
    uint64_t index;        /* the record to fetch from; UINT64_MAX: it is not known */
    int searched;          /* it was found by its offset, not believed */
    uint64_t count, bytes; /* of the log */
} reading;

static void advance(reading *r, size_t n)
{
    r->got += n;
    r->at += n;
}

/* No row has the byte at r->at. *over: nothing more is to be had, or that is an error. */
static sessile_status read_lacking(pg_call *call, reading *r, int *over,
                                   sessile_error *err)
{
    pg_seen seen; /* is this its end, or is it gone? */
    size_t filled = 0;
    *over = 1;
    if (r->got > 0 && r->at == r->bytes)
        return SESSILE_OK;
    sessile_status status = pg_look(call, r->log, &seen, err);
    if (status || (seen.there && r->at >= seen.size))
        return status;
    if (!seen.there) /* also when a part was there already: the rest cannot be had */
        return fail(err, SESSILE_NOTFOUND, "%s was removed", r->log->name);
    r->index = UINT64_MAX;
    if (r->searched && r->at < r->bytes) { /* rows are lost */
        status = fill(call, r->log, r->at, r->bytes, r->size - r->got, r->to + r->got,
                      &filled, &r->index, err);
        advance(r, filled);
    }
    r->bytes = seen.size; /* it may have grown since the rows were asked for */
    *over = status || r->got == r->size;
    return status;
}

/* Fetches what is missing, or a part of it. *over: as above. */
static sessile_status read_on(pg_call *call, reading *r, int *over, sessile_error *err)
{
    pg_log *log = r->log;
    pg_fetched more;
    uint64_t era, mean = r->count > 0 && r->bytes > r->count ? r->bytes / r->count : 1;
    uint64_t want = r->size - r->got > BESIDE ? r->size - r->got : BESIDE;
    want = keep_lacks(&log->ps->keep, log->kept, r->at, want);
    uint64_t rows = want / mean + 1;
    rows = rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows;
    sessile_status status = SESSILE_OK;
    if (r->index == UINT64_MAX) {
        r->searched = 1;
        status = find(call, log, r->at, &r->index, err);
    }
    if (!status)
        status = fetch(call, log, r->index, r->at, want, rows, &more, &era, err);
    if (status)
        return status;
    uint64_t end = more.from + more.size;
    if (more.size == 0 || more.from > r->at || end <= r->at) {
        int misled = more.size > 0 && !r->searched;
        pg_fetched_free(call->ps, &more);
        if (!misled)
            return read_lacking(call, r, over, err);
        /* the number that came with the call was not that of this record */
        r->index = UINT64_MAX;
        return SESSILE_OK;
    }
    int last = more.next - r->index < rows && end < r->at + want;
    size_t n = (size_t)(end - r->at);
    n = n < r->size - r->got ? n : r->size - r->got;
    memcpy(r->to + r->got, more.data + (r->at - more.from), n);
    advance(r, n);
    r->index = more.next;
    pg_fetched_keep(log, &more, era);
    pthread_mutex_lock(&log->mutex);
    log->read.at = end;
    log->read.index = more.next;
    pthread_mutex_unlock(&log->mutex);
    pg_fetched_free(call->ps, &more);
    *over = r->got == r->size || last;
    return SESSILE_OK;
}

sessile_status pg_read(sessile_backend_log *handle, uint64_t index, uint64_t offset,
                       void *out, size_t size, size_t *got, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_call call = pg_log_call(log);
    reading r = {.log = log,
                 .at = offset,
                 .to = out,
                 .size = size,
                 .index = index > 0 ? index : UINT64_MAX};
    sessile_status status = SESSILE_OK;
    *got = 0;
    if (size == 0)
        return SESSILE_OK;
    pthread_mutex_lock(&log->mutex);
    r.count = log->count;
    r.bytes = log->size;
    pthread_mutex_unlock(&log->mutex);
    for (int over = 0, first = 1; !status && !over; first = 0) {
        uint64_t behind;
        size_t n = from_memory(log, r.at, r.to + r.got, size - r.got, &behind);
        advance(&r, n);
        if (r.got == size)
            break;
        if (n > 0 || (first && behind != UINT64_MAX)) /* else it is better known */
            r.index = r.searched ? UINT64_MAX : behind;
        status = read_on(&call, &r, &over, err);
    }
    *got = !status ? r.got : 0;
    return status;
}
