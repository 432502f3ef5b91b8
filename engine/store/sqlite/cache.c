/*
 * cache.c: caches of logs and of lists.
 *
 * A log's cache is a row for each piece that was written; cutting and writing is one
 * transaction. Caches may be lost or wrong at any time and are never synced. They are
 * removed with their log.
 */
#include "store/sqlite/sqlite.h"
#include "base/alloc.h"

#include <string.h>

typedef struct caching {
    int64_t session;
    uint64_t offset, end;
    char *out;
    const void *data;
    size_t size, got;
    int gone;
} caching;

/* Where the cache ends, 0 when there is none. */
static int cache_end(sqlite_conn *c, void *arg)
{
    caching *k = arg;
    sqlite3_stmt *st = sqlite_conn_query(c, QUERY_CACHE_END);
    if (!st)
        return sqlite3_errcode(c->db);
    sqlite3_bind_int64(st, 1, k->session);
    int rc = sqlite3_step(st);
    k->end = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

sessile_status sqlite_cache_size(sessile_backend_log *handle, uint64_t *bytes,
                                 sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    caching k = {.session = log->id};
    sessile_status status =
        sqlite_run_read(log->store, sqlite_log_patience(log), cache_end, &k, err);
    *bytes = k.end;
    return status;
}

static int cache_from(sqlite_conn *c, void *arg)
{
    caching *k = arg;
    sqlite3_stmt *st = sqlite_conn_query(c, QUERY_CACHE_FROM);
    int rc = SQLITE_ROW;
    if (!st)
        return sqlite3_errcode(c->db);
    k->got = 0;
    sqlite3_bind_int64(st, 1, k->session);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)k->offset);
    while (k->got < k->size && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        uint64_t at = (uint64_t)sqlite3_column_int64(st, 0);
        const char *piece = sqlite3_column_blob(st, 1);
        size_t size = (size_t)sqlite3_column_bytes(st, 1);
        uint64_t wanted = k->offset + k->got;
        if (!piece || at > wanted || wanted - at >= size) {
            rc = SQLITE_DONE; /* the end; or a hole, which is one too */
            break;
        }
        size_t skip = (size_t)(wanted - at), take = size - skip;
        take = take < k->size - k->got ? take : k->size - k->got;
        memcpy(k->out + k->got, piece + skip, take);
        k->got += take;
    }
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

sessile_status sqlite_cache_read(sessile_backend_log *handle, uint64_t offset, void *out,
                                 size_t size, size_t *got, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    caching k = {.session = log->id, .offset = offset, .out = out, .size = size};
    sessile_status status =
        sqlite_run_read(log->store, sqlite_log_patience(log), cache_from, &k, err);
    *got = !status ? k.got : 0;
    return status;
}

/* A statement with the log and an offset. */
static int cut_with(sqlite_conn *c, sqlite_query query, const caching *k)
{
    sqlite3_stmt *st = sqlite_conn_query(c, query);
    if (!st)
        return sqlite3_errcode(c->db);
    sqlite3_bind_int64(st, 1, k->session);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)k->offset);
    return sqlite_step(st);
}

static int cache_put(sqlite_conn *c, void *arg)
{
    caching *k = arg;
    int rc = cache_end(c, k);
    if (rc == SQLITE_OK && k->end < k->offset)
        return SQLITE_UNDO;
    if (rc == SQLITE_OK && k->end > k->offset) {
        rc = cut_with(c, QUERY_CACHE_SHORTEN, k);
        if (rc == SQLITE_OK)
            rc = cut_with(c, QUERY_CACHE_CUT, k);
    }
    if (rc != SQLITE_OK || k->size == 0)
        return rc;
    sqlite3_stmt *st = sqlite_conn_query(c, QUERY_CACHE_PUT);
    if (!st)
        return sqlite3_errcode(c->db);
    sqlite3_bind_int64(st, 1, k->session);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)k->offset);
    rc = sqlite3_bind_blob64(st, 3, k->data, k->size, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite_step(st);
    k->gone = rc == SQLITE_CONSTRAINT_FOREIGNKEY;
    return k->gone ? SQLITE_UNDO : rc;
}

sessile_status sqlite_cache_write(sessile_backend_log *handle, uint64_t offset,
                                  const void *data, size_t size, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    caching k = {.session = log->id, .offset = offset, .data = data, .size = size};
    sessile_status status = sqlite_run_write(log->store, sqlite_log_patience(log), 0,
                                             cache_put, &k, NULL, err);
    if (!status && k.gone) {
        status = fail(err, SESSILE_NOTFOUND, "%s was removed or replaced", log->name);
    } else if (!status && k.end < offset) {
        status = fail(err, SESSILE_CONFLICT,
                      "the cache of %s is shorter than it was: look again", log->name);
    }
    return status;
}

/* ------------------------------------------------------------------ list_caches */

typedef struct shelving {
    const char *folder; /* NULL: all */
    const void *data;
    size_t size;
    char *out;
    int found;
} shelving;

static int list_cache_get(sqlite_conn *c, void *arg)
{
    shelving *s = arg;
    sqlite3_stmt *st = sqlite_conn_query(c, QUERY_SHELF_GET);
    if (!st)
        return sqlite3_errcode(c->db);
    sqlite3_bind_text(st, 1, s->folder, -1, SQLITE_STATIC);
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(st, 0);
        s->found = 1;
        s->size = (size_t)sqlite3_column_bytes(st, 0);
        s->out = give_dup(&allocator_default, data ? data : "", s->size);
        rc = s->out ? SQLITE_ROW : SQLITE_NOMEM;
    }
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

sessile_status sqlite_list_cache_get(void *self, const char *folder, char **out,
                                     size_t *size, sessile_error *err)
{
    sqlite_store *ss = self;
    shelving s = {.folder = folder};
    *out = NULL;
    *size = 0;
    sessile_status status = sqlite_names_check(folder, NULL, err);
    if (!status)
        status = sqlite_run_read(ss, sqlite_patience_of(ss), list_cache_get, &s, err);
    if (!status && !s.found)
        status = fail(err, SESSILE_NOTFOUND, "nothing is remembered of %s", folder);
    if (!status) {
        *out = s.out;
        *size = s.size;
    }
    return status;
}

static int list_cache_put(sqlite_conn *c, void *arg)
{
    shelving *s = arg;
    sqlite3_stmt *st = sqlite_conn_query(c, QUERY_SHELF_PUT);
    if (!st)
        return sqlite3_errcode(c->db);
    sqlite3_bind_text(st, 1, s->folder, -1, SQLITE_STATIC);
    int rc =
        sqlite3_bind_blob64(st, 2, s->size > 0 ? s->data : "", s->size, SQLITE_STATIC);
    return rc == SQLITE_OK ? sqlite_step(st) : rc;
}

sessile_status sqlite_list_cache_put(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err)
{
    sqlite_store *ss = self;
    shelving s = {.folder = folder, .data = data, .size = size};
    sessile_status status = sqlite_names_check(folder, NULL, err);
    return !status ? sqlite_run_write(ss, sqlite_patience_of(ss), 0, list_cache_put, &s,
                                      NULL, err)
                   : status;
}

static int list_cache_drop(sqlite_conn *c, void *arg)
{
    const shelving *s = arg;
    sqlite3_stmt *st =
        sqlite_conn_query(c, s->folder ? QUERY_SHELF_DROP : QUERY_SHELF_DROP_ALL);
    if (!st)
        return sqlite3_errcode(c->db);
    if (s->folder)
        sqlite3_bind_text(st, 1, s->folder, -1, SQLITE_STATIC);
    return sqlite_step(st);
}

sessile_status sqlite_list_cache_drop(void *self, const char *folder, sessile_error *err)
{
    sqlite_store *ss = self;
    shelving s = {.folder = folder};
    sessile_status status = folder ? sqlite_names_check(folder, NULL, err) : SESSILE_OK;
    if (!status)
        status = sqlite_run_write(ss, sqlite_patience_of(ss), 0, list_cache_drop, &s,
                                  NULL, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* nothing was ever kept */
    }
    return status;
}
