/*
 * cache.c: caches of logs and of lists.
 *
 * A log's cache is a row for each piece that was written; cutting and writing is one
 * transaction. Caches may be lost or wrong at any time and are never synced. They are
 * removed with their log.
 */
#include "store/sqlite/sqlite.h"

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
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_CACHE_END, SQL(sql_int(k->session)), &st);
    k->end = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
    return sqlite_end(st, rc);
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
    sqlite3_stmt *st;
    int rc = sqlite_bind(c, QUERY_CACHE_FROM,
                         SQL(sql_int(k->session), sql_int((int64_t)k->offset)), &st);
    k->got = 0;
    while (rc == SQLITE_OK && k->got < k->size && (rc = sqlite3_step(st)) == SQLITE_ROW) {
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
        rc = SQLITE_OK;
    }
    return sqlite_end(st, rc);
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

static int cache_put(sqlite_conn *c, void *arg)
{
    caching *k = arg;
    int rc = cache_end(c, k);
    if (rc == SQLITE_OK && k->end < k->offset)
        return SQLITE_UNDO;
    if (rc == SQLITE_OK && k->end > k->offset) {
        const sqlite_value *cut = SQL(sql_int(k->session), sql_int((int64_t)k->offset));
        rc = sqlite_exec(c, QUERY_CACHE_SHORTEN, cut);
        if (rc == SQLITE_OK)
            rc = sqlite_exec(c, QUERY_CACHE_CUT, cut);
    }
    if (rc != SQLITE_OK || k->size == 0)
        return rc;
    rc = sqlite_exec(c, QUERY_CACHE_PUT,
                     SQL(sql_int(k->session), sql_int((int64_t)k->offset),
                         sql_bytes(k->data, k->size)));
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

typedef struct list_caching {
    const char *folder; /* NULL: all */
    const void *data;
    size_t size;
    char *out;
} list_caching;

static int list_cache_get(sqlite_conn *c, void *arg)
{
    list_caching *s = arg;
    return sqlite_get_bytes(c, QUERY_LIST_CACHE_GET, s->folder, &s->out, &s->size);
}

sessile_status sqlite_list_cache_get(void *self, const char *folder, char **out,
                                     size_t *size, sessile_error *err)
{
    sqlite_store *ss = self;
    list_caching s = {.folder = folder};
    *out = NULL;
    *size = 0;
    sessile_status status = store_name_check(folder, err);
    if (!status)
        status = sqlite_run_read(ss, sqlite_patience_of(ss), list_cache_get, &s, err);
    if (!status && !s.out)
        status = fail(err, SESSILE_NOTFOUND, "nothing is remembered of %s", folder);
    if (!status) {
        *out = s.out;
        *size = s.size;
    }
    return status;
}

static int list_cache_put(sqlite_conn *c, void *arg)
{
    const list_caching *s = arg;
    return sqlite_exec(c, QUERY_LIST_CACHE_PUT,
                       SQL(sql_text(s->folder), sql_bytes(s->data, s->size)));
}

sessile_status sqlite_list_cache_put(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err)
{
    sqlite_store *ss = self;
    list_caching s = {.folder = folder, .data = data, .size = size};
    sessile_status status = store_name_check(folder, err);
    return !status ? sqlite_run_write(ss, sqlite_patience_of(ss), 0, list_cache_put, &s,
                                      NULL, err)
                   : status;
}

static int list_cache_drop(sqlite_conn *c, void *arg)
{
    const list_caching *s = arg;
    return s->folder ? sqlite_exec(c, QUERY_LIST_CACHE_DROP, SQL(sql_text(s->folder)))
                     : sqlite_exec(c, QUERY_LIST_CACHE_DROP_ALL, NULL);
}

sessile_status sqlite_list_cache_drop(void *self, const char *folder, sessile_error *err)
{
    sqlite_store *ss = self;
    list_caching s = {.folder = folder};
    sessile_status status = folder ? store_name_check(folder, err) : SESSILE_OK;
    if (!status)
        status = sqlite_run_write(ss, sqlite_patience_of(ss), 0, list_cache_drop, &s,
                                  NULL, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* nothing was ever kept */
    }
    return status;
}
