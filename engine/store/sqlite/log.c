/*
 * log.c: logs as rows: one of `sessions`, and one of `entries` for each record.
 *
 * "Append if the log still ends at E" is one transaction whose first statement compares
 * the log's row. The row's id identifies a log and is never used again, so a removed or
 * replaced log is recognised. This file does not know what a record contains.
 */
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <string.h>

#include "store/records.h"

sqlite_patience sqlite_log_patience(sqlite_log *log)
{
    pthread_mutex_lock(&log->mutex);
    sqlite_patience wait = {log->timeout_ms, log->stop, log->name};
    pthread_mutex_unlock(&log->mutex);
    return wait;
}

int sqlite_put_records(sqlite_conn *c, int64_t session, int64_t first, uint64_t at,
                       const char *data, size_t size, uint64_t count)
{
    int rc = SQLITE_OK;
    for (size_t done = 0; done < size && rc == SQLITE_OK; first++) {
        size_t record = count == 1 ? size : record_size(data + done, size - done);
        rc = sqlite_exec(c, QUERY_ENTRY_PUT,
                         SQL(sql_int(session), sql_int(first),
                             sql_int((int64_t)(at + done)),
                             sql_bytes(data + done, record)));
        done += record;
    }
    return rc;
}

/* ------------------------------------------------------------------ create, open */

typedef struct creating {
    const char *folder, *name, *data;
    size_t size;
    int64_t now;
    int exists;
} creating;

static int create_body(sqlite_conn *c, void *arg)
{
    creating *n = arg;
    uint64_t count = record_count(n->data, n->size);
    int rc =
        sqlite_exec(c, QUERY_LOG_NEW,
                    SQL(sql_text(n->folder), sql_text(n->name), sql_int((int64_t)count),
                        sql_int((int64_t)n->size), sql_int(n->now)));
    if (rc != SQLITE_OK)
        return rc;
    n->exists = sqlite3_changes(c->db) == 0;
    return n->exists ? SQLITE_UNDO
                     : sqlite_put_records(c, sqlite3_last_insert_rowid(c->db), 0, 0,
                                          n->data, n->size, count);
}

sessile_status sqlite_create(void *self, const char *folder, const char *name,
                             const void *data, size_t size, sessile_error *err)
{
    sqlite_store *ss = self;
    creating n = {folder, name, data, size, sqlite_now(ss), 0};
    sessile_status status = store_names_check(folder, name, err);
    if (!status) {
        status =
            sqlite_run_write(ss, sqlite_patience_of(ss), SQLITE_MAKES | SQLITE_DURABLE,
                             create_body, &n, NULL, err);
    }
    if (!status && n.exists)
        status = fail(err, SESSILE_EXISTS, "%s/%s is already there", folder, name);
    return status;
}

typedef struct finding {
    const char *folder, *name;
    int found;
    int64_t id, bytes, updated;
} finding;

static int find_body(sqlite_conn *c, void *arg)
{
    finding *f = arg;
    sqlite3_stmt *st;
    uint64_t row;
    int rc = store_is_misnamed(f->name, &row)
                 ? sqlite_row(c, QUERY_LOG_STAT_ROW, SQL(sql_int((int64_t)row)), &st)
                 : sqlite_row(c, QUERY_LOG_STAT,
                              SQL(sql_text(f->folder), sql_text(f->name)), &st);
    f->found = rc == SQLITE_ROW;
    if (f->found) {
        f->id = sqlite3_column_int64(st, 0);
        f->bytes = sqlite3_column_int64(st, 1);
        f->updated = sqlite3_column_int64(st, 2);
    }
    f->bytes = f->bytes < 0 ? 0 : f->bytes; /* size() tells what there is */
    return sqlite_end(st, rc);
}

static sessile_status find(sqlite_store *ss, finding *f, sessile_error *err)
{
    uint64_t row;
    sessile_status status = store_is_misnamed(f->name, &row)
                                ? SESSILE_OK
                                : store_names_check(f->folder, f->name, err);
    if (!status)
        status = sqlite_run_read(ss, sqlite_patience_of(ss), find_body, f, err);
    if (status == SESSILE_NOTFOUND || (!status && !f->found)) {
        status = fail(err, SESSILE_NOTFOUND, "there is no %s/%s in %s", f->folder,
                      f->name, ss->path);
    }
    return status;
}

sessile_status sqlite_open(void *self, const char *folder, const char *name,
                           sessile_backend_log **out, sessile_error *err)
{
    sqlite_store *ss = self;
    finding f = {folder, name, 0, 0, 0, 0};
    *out = NULL;
    sessile_status status = find(ss, &f, err);
    if (status)
        return status;
    size_t size = strlen(folder) + strlen(name) + 2;
    sqlite_log *log = mem_zalloc(&ss->alloc, sizeof *log);
    char *both = mem_alloc(&ss->alloc, size);
    if (!log || !both) {
        mem_free(&ss->alloc, both, size);
        mem_free(&ss->alloc, log, sizeof *log);
        return fail_nomem(err);
    }
    snprintf(both, size, "%s/%s", folder, name);
    log->store = ss;
    log->id = f.id;
    log->name = both;
    log->timeout_ms = ss->timeout_ms;
    log->bytes = (uint64_t)f.bytes;
    log->updated = f.updated;
    pthread_mutex_init(&log->mutex, NULL);
    *out = (sessile_backend_log *)(void *)log;
    return SESSILE_OK;
}

void sqlite_close(sessile_backend_log *handle)
{
    if (handle) {
        sqlite_log *log = sqlite_log_of(handle);
        const allocator *a = &log->store->alloc;
        mem_free(a, log->large, log->large_size);
        mem_free(a, log->name, strlen(log->name) + 1);
        pthread_mutex_destroy(&log->mutex);
        mem_free(a, log, sizeof *log);
    }
}

/* ------------------------------------------------------------------ size */

typedef struct sizing {
    int64_t id;
    int there, named, other; /* other: another log has its name */
    int64_t bytes, updated;
    const sqlite_log *log;
} sizing;

static int size_body(sqlite_conn *c, void *arg)
{
    sizing *s = arg;
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(s->id)), &st);
    s->there = rc == SQLITE_ROW;
    if (s->there) {
        s->bytes = sqlite3_column_int64(st, 1);
        s->updated = sqlite3_column_int64(st, 3);
        s->named = sqlite3_column_type(st, 5) != SQLITE_NULL;
    }
    rc = sqlite_end(st, rc);
    if (rc != SQLITE_OK)
        return rc;
    s->other = 0;
    if (!s->named) {
        rc = sqlite_row(c, QUERY_LOG_FIND, SQL_NAME(s->log), &st);
        s->other = rc == SQLITE_ROW;
        rc = sqlite_end(st, rc);
    }
    return rc;
}

static sessile_status look_at_size(sqlite_log *log, sizing *s, sessile_error *err)
{
    *s = (sizing){.id = log->id, .log = log};
    sessile_status status =
        sqlite_run_read(log->store, sqlite_log_patience(log), size_body, s, err);
    if (!status) {
        pthread_mutex_lock(&log->mutex);
        log->replaced = s->other;
        if (s->named) {
            log->bytes = (uint64_t)s->bytes;
            log->updated = s->updated;
        }
        pthread_mutex_unlock(&log->mutex);
    }
    return status;
}

sessile_status sqlite_size(sessile_backend_log *handle, uint64_t *bytes,
                           int64_t *mtime_ms, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    sizing s;
    *bytes = 0;
    *mtime_ms = 0;
    sessile_status status = look_at_size(log, &s, err);
    if (!status) {
        pthread_mutex_lock(&log->mutex);
        *bytes = log->bytes;
        *mtime_ms = log->updated;
        pthread_mutex_unlock(&log->mutex);
    }
    return status;
}

int sqlite_replaced(sessile_backend_log *handle)
{
    sqlite_log *log = sqlite_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    int replaced = log->replaced;
    pthread_mutex_unlock(&log->mutex);
    return replaced;
}

sessile_backend_stat sqlite_stat_of(int64_t id, int64_t bytes, int64_t updated)
{
    int64_t ns = (int64_t)((uint64_t)updated * 1000000u); /* a damaged one may be any */
    return (sessile_backend_stat){.bytes = (uint64_t)bytes,
                                  .mtime_ns = ns,
                                  .inode = (uint64_t)id,
                                  .changed_ns = ns};
}

sessile_status sqlite_stat(void *self, const char *folder, const char *name,
                           sessile_backend_stat *out, sessile_error *err)
{
    finding f = {folder, name, 0, 0, 0, 0};
    sessile_status status = find(self, &f, err);
    if (!status)
        *out = sqlite_stat_of(f.id, f.bytes, f.updated);
    return status;
}

/* ------------------------------------------------------------------ the fence */

typedef struct fencing {
    int64_t id;
    int there, has_tag;
    sessile_log_end end;
} fencing;

static int fence_body(sqlite_conn *c, void *arg)
{
    fencing *f = arg;
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_FENCE, SQL(sql_int(f->id)), &st);
    f->there = rc == SQLITE_ROW;
    if (f->there) {
        f->end.count = (uint64_t)sqlite3_column_int64(st, 0);
        f->end.bytes = (uint64_t)sqlite3_column_int64(st, 1);
        f->has_tag = sqlite3_column_type(st, 2) != SQLITE_NULL;
        const void *tag = sqlite3_column_blob(st, 2);
        if (tag && sqlite3_column_bytes(st, 2) == (int)sizeof f->end.tag)
            memcpy(f->end.tag, tag, sizeof f->end.tag);
    }
    return sqlite_end(st, rc);
}

sessile_status sqlite_fence(sessile_backend_log *handle, sessile_log_end *out,
                            int *has_tag, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    fencing f = {.id = log->id};
    sessile_status status =
        sqlite_run_read(log->store, sqlite_log_patience(log), fence_body, &f, err);
    *out = f.end;
    *has_tag = f.has_tag;
    return !status && !f.there
               ? fail(err, SESSILE_NOTFOUND,
                      "%s was removed or replaced since it was opened: open it again",
                      log->name)
               : status;
}

/* ------------------------------------------------------------------ append */

typedef struct appending {
    sqlite_log *log;
    const sessile_log_end *end;
    const char *data;
    size_t size;
    uint64_t count;
    const unsigned char *new_tag;
    int64_t now;
    int other, named; /* it ends elsewhere, at: */
    uint64_t bytes;
} appending;

static int look_where(sqlite_conn *c, appending *p)
{
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(p->log->id)), &st);
    p->other = 1;
    if (rc == SQLITE_ROW) {
        p->bytes = (uint64_t)sqlite3_column_int64(st, 1);
        p->named = sqlite3_column_type(st, 5) != SQLITE_NULL;
    }
    rc = sqlite_end(st, rc);
    return rc == SQLITE_OK ? SQLITE_UNDO : rc;
}

static int append_body(sqlite_conn *c, void *arg)
{
    appending *p = arg;
    const sessile_log_end *end = p->end;
    int rc = sqlite_exec(c, QUERY_LOG_GROW,
                         SQL(sql_int(p->log->id), sql_int((int64_t)end->count),
                             sql_int((int64_t)end->bytes),
                             sql_bytes(end->tag, sizeof end->tag),
                             sql_int((int64_t)p->count), sql_int((int64_t)p->size),
                             sql_bytes(p->new_tag, sizeof end->tag), sql_int(p->now)));
    if (rc != SQLITE_OK)
        return rc;
    if (sqlite3_changes(c->db) == 0)
        return look_where(c, p);
    return sqlite_put_records(c, p->log->id, (int64_t)end->count, end->bytes, p->data,
                              p->size, p->count);
}

sessile_status sqlite_append(sessile_backend_log *handle, sessile_log_end *end,
                             const void *data, size_t size, uint64_t count,
                             const unsigned char new_tag[16], int *poisoned,
                             sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    sqlite_store *ss = log->store;
    appending p = {log, end, data, size, count, new_tag, sqlite_now(ss), 0, 0, 0};
    *poisoned = 0;
    if (count != 1 && record_count(data, size) != count) {
        return fail(err, SESSILE_INVALID, "%s was given other records than it was told",
                    log->name);
    }
    pthread_mutex_lock(&log->mutex);
    *poisoned = log->poisoned;
    pthread_mutex_unlock(&log->mutex);
    if (*poisoned) {
        return fail(err, SESSILE_IO,
                    "it is not known whether an earlier write to %s took "
                    "place: " STORE_LOOK_AGAIN,
                    log->name);
    }
    sessile_status status = sqlite_poisoned(ss, err);
    if (status) {
        *poisoned = 1;
        return status;
    }
    status =
        sqlite_run_write(ss, sqlite_log_patience(log), 0, append_body, &p, poisoned, err);
    if (*poisoned) {
        pthread_mutex_lock(&log->mutex);
        log->poisoned = 1;
        pthread_mutex_unlock(&log->mutex);
    }
    if (status)
        return status;
    if (p.other) {
        return !p.named ? fail(err, SESSILE_NOTFOUND,
                               "%s was removed or replaced since it was opened: open it "
                               "again",
                               log->name)
               : p.bytes < end->bytes
                   ? fail(err, SESSILE_TRUNCATED,
                          "%s has %llu bytes where %llu are known to have been written: "
                          "bring back a backup",
                          log->name, (unsigned long long)p.bytes,
                          (unsigned long long)end->bytes)
                   : fail(err, SESSILE_CONFLICT, "%s has grown: read on, then try again",
                          log->name);
    }
    end->count += count;
    end->bytes += size;
    memcpy(end->tag, new_tag, sizeof end->tag);
    pthread_mutex_lock(&log->mutex);
    log->bytes = end->bytes > log->bytes ? end->bytes : log->bytes;
    log->updated = p.now;
    pthread_mutex_unlock(&log->mutex);
    return SESSILE_OK;
}

sessile_status sqlite_sync(sessile_backend_log *handle, sessile_error *err)
{
    sqlite_store *ss = sqlite_log_of(handle)->store;
    sessile_status status = sqlite_poisoned(ss, err);
    return !status ? sqlite_sync_store(ss, err) : status;
}

/* ------------------------------------------------------------------ rename */

typedef struct renaming {
    const sqlite_log *log;
    const char *folder, *name;
    int done;
} renaming;

/* The index first: where the damage is in it alone, the row cannot be changed before. */
static int rename_body(sqlite_conn *c, void *arg)
{
    renaming *r = arg;
    int rc = sqlite_exec(c, QUERY_LOG_REINDEX, NULL);
    if (rc == SQLITE_OK)
        rc =
            sqlite_exec(c, QUERY_LOG_RENAME,
                        SQL(sql_int(r->log->id), sql_text(r->folder), sql_text(r->name)));
    if (rc != SQLITE_OK)
        return rc;
    r->done = sqlite3_changes(c->db) > 0;
    return r->done ? SQLITE_OK : SQLITE_UNDO;
}

sessile_status sqlite_rename(sessile_backend_log *handle, const char *folder,
                             const char *name, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    renaming r = {log, folder, name, 0};
    sessile_status status = store_names_check(folder, name, err);
    if (!status)
        status = sqlite_run_write(log->store, sqlite_log_patience(log), SQLITE_DURABLE,
                                  rename_body, &r, NULL, err);
    return status || r.done
               ? status
               : fail(err, SESSILE_EXISTS, "%s/%s is already there", folder, name);
}

/* ------------------------------------------------------------------ waiting */

void sqlite_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    sqlite_log *log = sqlite_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    log->stop = (lock_stop){ask, arg};
    pthread_mutex_unlock(&log->mutex);
}

void sqlite_set_timeout(sessile_backend_log *handle, int timeout_ms)
{
    sqlite_log *log = sqlite_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    log->timeout_ms = timeout_ms;
    pthread_mutex_unlock(&log->mutex);
}

/* Other processes tell nobody what they have written, so the row is asked for: some
 * microseconds each time, a little less often the longer nothing happens. */
sessile_status sqlite_watch(sessile_backend_log *handle, uint64_t bytes, int timeout_ms,
                            int (*ask)(void *arg), void *arg, int *changed,
                            sessile_error *err)
{
    enum { SHORTEST_MS = 1, LONGEST_MS = 20 };
    sqlite_log *log = sqlite_log_of(handle);
    const os_table *os = log->store->os;
    uint64_t start = os->clock_us(os->ud);
    int pause = SHORTEST_MS;
    *changed = 0;
    for (;;) {
        sizing s = {.id = log->id, .log = log};
        sessile_status status =
            sqlite_run_read(log->store, sqlite_log_patience(log), size_body, &s, err);
        if (status)
            return status;
        *changed = !s.named || (uint64_t)s.bytes != bytes;
        uint64_t gone_ms = (os->clock_us(os->ud) - start) / 1000;
        if (*changed || (timeout_ms >= 0 && gone_ms >= (uint64_t)timeout_ms))
            return SESSILE_OK;
        if (ask && ask(arg))
            return store_stopped(log->name, err);
        os->sleep_ms(os->ud, pause);
        pause = pause < LONGEST_MS ? pause * 2 : LONGEST_MS;
    }
}
