/*
 * blob.c: blobs, one row each.
 *
 * A blob was synced before the call that put it returned. blob_settle syncs for a reader
 * that found the blob before that. A removed blob must not stay in the database's free
 * pages: connections run with secure_delete, and the write-ahead log is emptied
 * afterwards unless a reader prevents it.
 */
#include "store/sqlite/sqlite.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

typedef struct blobbing {
    const char *name;
    const void *was, *data;
    size_t was_size, size;
    int64_t now;
    char *out;
    int there, changed;
} blobbing;

static sessile_status missing(const sqlite_store *ss, const char *name,
                              sessile_error *err)
{
    return fail(err, SESSILE_NOTFOUND, "there is no %s in %s", name, ss->path);
}

static int get_body(sqlite_conn *c, void *arg)
{
    blobbing *b = arg;
    return sqlite_get_bytes(c, QUERY_BLOB_GET, b->name, &b->out, &b->size);
}

sessile_status sqlite_blob_get(void *self, const char *name, char **out, size_t *size,
                               sessile_error *err)
{
    sqlite_store *ss = self;
    blobbing b = {.name = name};
    *out = NULL;
    *size = 0;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = sqlite_run_read(ss, sqlite_patience_of(ss), get_body, &b, err);
    if (!status && !b.out)
        status = missing(ss, name, err);
    if (!status) {
        *out = b.out;
        *size = b.size;
    }
    return status;
}

static int put_body(sqlite_conn *c, void *arg)
{
    blobbing *b = arg;
    int rc =
        sqlite_exec(c, QUERY_BLOB_PUT,
                    SQL(sql_text(b->name), sql_bytes(b->data, b->size), sql_int(b->now)));
    b->changed = rc == SQLITE_OK && sqlite3_changes(c->db) > 0;
    return rc != SQLITE_OK || b->changed ? rc : SQLITE_UNDO;
}

sessile_status sqlite_blob_put_new(void *self, const char *name, const void *data,
                                   size_t size, sessile_error *err)
{
    sqlite_store *ss = self;
    blobbing b = {.name = name, .data = data, .size = size, .now = sqlite_now(ss)};
    sessile_status status = store_name_check(name, err);
    if (!status) {
        status = sqlite_run_write(ss, sqlite_patience_of(ss),
                                  SQLITE_MAKES | SQLITE_DURABLE, put_body, &b, NULL, err);
    }
    return !status && !b.changed ? fail(err, SESSILE_EXISTS, "%s is already there", name)
                                 : status;
}

static int replace_body(sqlite_conn *c, void *arg)
{
    blobbing *b = arg;
    sqlite3_stmt *st;
    int rc = sqlite_exec(c, QUERY_BLOB_REPLACE,
                         SQL(sql_text(b->name), sql_bytes(b->was, b->was_size),
                             sql_bytes(b->data, b->size), sql_int(b->now)));
    if (rc != SQLITE_OK)
        return rc;
    b->changed = sqlite3_changes(c->db) > 0;
    if (b->changed)
        return SQLITE_OK;
    rc = sqlite_row(c, QUERY_BLOB_GET, SQL(sql_text(b->name)), &st);
    b->there = rc == SQLITE_ROW;
    rc = sqlite_end(st, rc);
    return rc == SQLITE_OK ? SQLITE_UNDO : rc;
}

sessile_status sqlite_blob_replace(void *self, const char *name, const void *was,
                                   size_t was_size, const void *data, size_t size,
                                   sessile_error *err)
{
    sqlite_store *ss = self;
    blobbing b = {.name = name,
                  .was = was,
                  .was_size = was_size,
                  .data = data,
                  .size = size,
                  .now = sqlite_now(ss)};
    sessile_status status = store_name_check(name, err);
    if (!status) {
        status = sqlite_run_write(ss, sqlite_patience_of(ss), SQLITE_DURABLE,
                                  replace_body, &b, NULL, err);
    }
    if (!status && !b.changed) {
        return b.there ? fail(err, SESSILE_CONFLICT,
                              "somebody else has changed %s: read it again", name)
                       : missing(ss, name, err);
    }
    if (!status)
        sqlite_sync_scrub(ss);
    return status;
}

static int remove_body(sqlite_conn *c, void *arg)
{
    blobbing *b = arg;
    int rc = sqlite_exec(c, QUERY_BLOB_REMOVE, SQL(sql_text(b->name)));
    b->changed = rc == SQLITE_OK && sqlite3_changes(c->db) > 0;
    return rc;
}

sessile_status sqlite_blob_remove(void *self, const char *name, sessile_error *err)
{
    sqlite_store *ss = self;
    blobbing b = {.name = name};
    sessile_status status = store_name_check(name, err);
    if (!status) {
        status = sqlite_run_write(ss, sqlite_patience_of(ss), SQLITE_DURABLE, remove_body,
                                  &b, NULL, err);
    }
    if (!status && !b.changed)
        return missing(ss, name, err);
    if (!status)
        sqlite_sync_scrub(ss);
    return status;
}

sessile_status sqlite_blob_settle(void *self, const char *name, sessile_error *err)
{
    sqlite_store *ss = self;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = sqlite_poisoned(ss, err);
    return !status ? sqlite_sync_store(ss, err) : status;
}

/* ------------------------------------------------------------------ list */

enum { PAGE = 200, NAME_ROOM = 1024 };

typedef struct page {
    const char *after;
    buf names; /* each with its NUL */
    size_t count;
} page;

static int list_body(sqlite_conn *c, void *arg)
{
    page *p = arg;
    char before[NAME_ROOM];
    sqlite3_stmt *st;
    int rc = sqlite_bind(c, QUERY_BLOB_LIST, SQL(sql_text(p->after), sql_int(PAGE)), &st);
    strcpy(before, p->after);
    buf_clear(&p->names);
    p->count = 0;
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(st, 0);
        size_t size = name ? strlen(name) : 0;
        /* What SQL calls 200 letters is any number of bytes when they are no UTF-8. Names
         * that come again, from a damaged index or cut at a NUL, would never end. */
        if (!name || size >= NAME_ROOM || size != (size_t)sqlite3_column_bytes(st, 0) ||
            strcmp(name, before) <= 0) {
            rc = SQLITE_CORRUPT;
            break;
        }
        memcpy(before, name, size + 1);
        buf_puts(&p->names, name);
        buf_putc(&p->names, '\0');
        p->count++;
        rc = SQLITE_OK;
    }
    rc = sqlite_end(st, rc);
    return p->names.failed ? SQLITE_NOMEM : rc;
}

sessile_status sqlite_blob_list(void *self, const char *prefix,
                                int (*visit)(void *arg, const char *name), void *arg,
                                sessile_error *err)
{
    sqlite_store *ss = self;
    char after[NAME_ROOM] = "", shown[STORE_MISNAMED_SIZE];
    page p = {.after = after};
    int stopped = 0;
    buf_init(&p.names, &ss->alloc);
    sessile_status status = SESSILE_OK;
    do {
        status = sqlite_run_read(ss, sqlite_patience_of(ss), list_body, &p, err);
        const char *name = p.names.data;
        for (size_t i = 0; i < p.count && !status && !stopped; i++) {
            strcpy(after, name); /* list_body took no longer one */
            const char *as = store_blob_shown(0, name, shown);
            stopped = strncmp(as, prefix, strlen(prefix)) == 0 && visit(arg, as);
            name += strlen(name) + 1;
        }
    } while (!status && p.count == PAGE && !stopped);
    buf_deinit(&p.names);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* nothing was ever kept */
    }
    return status;
}
