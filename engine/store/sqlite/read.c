/*
 * read.c: reads the bytes of a log from its rows.
 *
 * A handle remembers where its last read ended, so reading a whole log is one walk over
 * the index. Elsewhere the caller's hint is tried first, then a binary search: the
 * offsets of entries only grow. Records never change, so what is remembered stays true.
 *
 * Bytes that no row has, since one is lost or shorter than it was, are read as blanks and
 * a newline. So a lost row costs what it held, as a hole in a file does.
 */
#include "store/sqlite/sqlite.h"

#include <string.h>

/* What is left of an entry is kept for the next read when it is larger: a line of
 * megabytes is taken out of its pages once, not once a piece. */
#define LARGE ((size_t)128 << 10)

typedef struct reading {
    const sqlite_log *log;
    uint64_t offset;
    char *out;
    size_t size, got;
    int64_t hints[2]; /* entries that may begin at offset, or before it; -1: none */
    int missing;      /* the log is gone */
    uint64_t bytes;   /* that the log has */
    int64_t next_id;
    uint64_t next_at;
    char *large;
    size_t large_size;
    uint64_t large_at;
} reading;

/* Where entry *id begins, or the last one before it (ENTRY_AT), or the one behind it
 * (ENTRY_NEXT); *id is then that one's. -1: there is none. */
static int64_t begins(sqlite_conn *c, sqlite_query query, int64_t session, int64_t *id,
                      int *rc)
{
    int64_t at = -1;
    sqlite3_stmt *st;
    *rc = sqlite_row(c, query, SQL(sql_int(session), sql_int(*id)), &st);
    if (*rc == SQLITE_ROW) {
        at = sqlite3_column_int64(st, 0);
        *id = sqlite3_column_int64(st, 1);
    }
    *rc = sqlite_end(st, *rc);
    return at;
}

/* The last of `count` entries that begins at offset or before it. */
static int by_halves(sqlite_conn *c, const reading *r, int64_t count, int64_t *first)
{
    int64_t low = 0, high = count; /* entry low does, entry high does not */
    int rc = SQLITE_OK;
    *first = 0;
    while (high - low > 1 && rc == SQLITE_OK) {
        int64_t middle = low + (high - low) / 2, id = middle;
        int64_t at = begins(c, QUERY_ENTRY_AT, r->log->id, &id, &rc);
        if (at >= 0 && (uint64_t)at <= r->offset) {
            low = middle;
            *first = id;
        } else {
            high = middle;
        }
    }
    return rc;
}

/* The entry to begin with. SQLITE_UNDO: nothing is there. */
static int find_first(sqlite_conn *c, reading *r, int64_t *first)
{
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(r->log->id)), &st);
    int64_t count = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    int64_t bytes = rc == SQLITE_ROW ? sqlite3_column_int64(st, 1) : 0;
    r->missing = rc == SQLITE_DONE;
    r->bytes = (uint64_t)bytes;
    rc = sqlite_end(st, rc);
    if (rc != SQLITE_OK)
        return rc;
    if (r->missing || (uint64_t)bytes <= r->offset)
        return SQLITE_UNDO;
    for (size_t i = 0; i < 2; i++) {
        int64_t hint = r->hints[i];
        int64_t at = hint >= 0 && hint < count
                         ? begins(c, QUERY_ENTRY_AT, r->log->id, &hint, &rc)
                         : -1;
        if (rc != SQLITE_OK)
            return rc;
        if (at < 0 || (uint64_t)at > r->offset)
            continue;
        int64_t behind = hint;
        int64_t next = hint + 1 < count
                           ? begins(c, QUERY_ENTRY_NEXT, r->log->id, &behind, &rc)
                           : bytes;
        if (rc != SQLITE_OK)
            return rc;
        if ((uint64_t)next > r->offset) {
            *first = hint;
            return SQLITE_OK;
        }
    }
    return by_halves(c, r, count, first);
}

/* Keeps what was not wanted yet of a large entry. Without memory it is read again. */
static void keep_large(reading *r, uint64_t at, const char *line, size_t size, size_t cut)
{
    if (size - cut >= LARGE) {
        r->large = mem_dup(&r->log->store->alloc, line + cut, size - cut);
        r->large_size = r->large ? size - cut + 1 : 0;
        r->large_at = at + cut;
    }
}

/* Blanks up to the offset `until`, as far as they are wanted. */
static void fill(reading *r, uint64_t until)
{
    uint64_t left = until - (r->offset + r->got);
    size_t take = left < r->size - r->got ? (size_t)left : r->size - r->got;
    memset(r->out + r->got, ' ', take);
    r->got += take;
    if (take == left && take > 0)
        r->out[r->got - 1] = '\n';
}

/* There are fewer entries than the log has bytes: it was removed between the two
 * statements, or the last ones are lost. */
static int ends_early(sqlite_conn *c, reading *r)
{
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(r->log->id)), &st);
    r->missing = rc == SQLITE_DONE;
    if (rc == SQLITE_ROW)
        fill(r, r->bytes);
    return sqlite_end(st, rc);
}

/* A row begins after the wanted offset: the entries before it are lost, or its offset is
 * wrong, which the next row shows. *lies: the offset is wrong, so the row is skipped. */
static int hole(sqlite_conn *c, reading *r, int64_t id, uint64_t at, int *lies)
{
    int rc = SQLITE_OK;
    int64_t next = begins(c, QUERY_ENTRY_NEXT, r->log->id, &id, &rc);
    *lies = next >= 0 && (uint64_t)next <= at;
    if (rc == SQLITE_OK && !*lies)
        fill(r, at);
    return rc;
}

static int read_body(sqlite_conn *c, void *arg)
{
    reading *r = arg;
    int64_t first = 0;
    r->got = 0;
    int rc = find_first(c, r, &first);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *st;
    rc = sqlite_bind(c, QUERY_ENTRY_FROM, SQL(sql_int(r->log->id), sql_int(first)), &st);
    while (rc == SQLITE_OK && r->got < r->size && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        uint64_t at = (uint64_t)sqlite3_column_int64(st, 1);
        const char *line = sqlite3_column_blob(st, 2);
        size_t size = (size_t)sqlite3_column_bytes(st, 2);
        uint64_t wanted = r->offset + r->got;
        int lies = 0;
        if (!line && sqlite3_errcode(c->db) == SQLITE_NOMEM) {
            rc = SQLITE_NOMEM;
            break;
        }
        rc = SQLITE_OK;
        if (at >= r->bytes)
            continue; /* it came since the log's row was looked at, or lies */
        size = size < r->bytes - at ? size : (size_t)(r->bytes - at);
        if (at > wanted) {
            rc = hole(c, r, sqlite3_column_int64(st, 0), at, &lies);
            wanted = r->offset + r->got;
        }
        if (rc != SQLITE_OK || lies || wanted < at || wanted - at >= size)
            continue;
        if (r->got == r->size)
            break;
        size_t skip = (size_t)(wanted - at), take = size - skip;
        take = take < r->size - r->got ? take : r->size - r->got;
        memcpy(r->out + r->got, line + skip, take);
        r->got += take;
        if (skip + take == size) {
            r->next_id = sqlite3_column_int64(st, 0) + 1;
            r->next_at = at + size;
        } else {
            r->next_id = sqlite3_column_int64(st, 0);
            r->next_at = at;
            keep_large(r, at, line, size, skip + take);
        }
        rc = SQLITE_OK;
    }
    int done = rc == SQLITE_DONE;
    rc = sqlite_end(st, rc);
    if (done && r->got < r->size && r->offset + r->got < r->bytes)
        return ends_early(c, r);
    return rc;
}

/* From what was kept of a large entry. Under the handle's mutex. */
static size_t from_large(sqlite_log *log, uint64_t offset, char *out, size_t size)
{
    size_t there = log->large ? log->large_size - 1 : 0;
    if (there == 0 || offset < log->large_at || offset - log->large_at >= there)
        return 0;
    size_t skip = (size_t)(offset - log->large_at);
    size_t take = there - skip < size ? there - skip : size;
    memcpy(out, log->large + skip, take);
    if (skip + take == there) {
        mem_free(&log->store->alloc, log->large, log->large_size);
        log->large = NULL;
        log->large_size = 0;
        log->next_id++; /* it was the one that was begun */
        log->next_at = log->large_at + there;
    }
    return take;
}

sessile_status sqlite_read(sessile_backend_log *handle, uint64_t index, uint64_t offset,
                           void *out, size_t size, size_t *got, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    reading r = {.log = log, .hints = {-1, -1}};
    pthread_mutex_lock(&log->mutex);
    *got = from_large(log, offset, out, size);
    r.hints[0] = log->next_at <= offset + *got ? log->next_id : -1;
    r.hints[1] = index <= INT64_MAX ? (int64_t)index : -1;
    pthread_mutex_unlock(&log->mutex);
    if (*got == size)
        return SESSILE_OK;
    r.offset = offset + *got;
    r.out = (char *)out + *got;
    r.size = size - *got;
    r.next_id = -1;
    sessile_status status =
        sqlite_run_read(log->store, sqlite_log_patience(log), read_body, &r, err);
    pthread_mutex_lock(&log->mutex);
    if (!status && r.next_id >= 0) {
        log->next_id = r.next_id;
        log->next_at = r.next_at;
        mem_free(&log->store->alloc, log->large, log->large_size);
        log->large = r.large;
        log->large_size = r.large_size;
        log->large_at = r.large_at;
        r.large = NULL;
    }
    pthread_mutex_unlock(&log->mutex);
    mem_free(&log->store->alloc, r.large, r.large_size);
    if (!status && r.missing) {
        *got = 0;
        return fail(err, SESSILE_NOTFOUND,
                    "%s was removed or replaced since it was opened: open it again",
                    log->name);
    }
    *got = !status ? *got + r.got : 0;
    return status;
}
