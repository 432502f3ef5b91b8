/*
 * draft.c: replaces or publishes a log; removes a log.
 *
 * A draft is a row of `sessions` without a name, with entries of its own. One transaction
 * names it, takes the name from the old log and drops the old log's cache; its first
 * statements compare the old log with what its handle last saw. A draft that is given up
 * is removed. If the process dies, sweep (list.c) removes the draft an hour after its
 * last write; a writer that returns after that gets an error.
 */
#include "store/sqlite/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/records.h"

#define KEPT_MOST 1000

typedef struct sqlite_draft {
    sqlite_store *store;
    int64_t id;
    char folder[256], name[256];
    uint64_t count, bytes;
    int partial; /* its last entry has no newline yet */
} sqlite_draft;

static sqlite_draft *draft_of(sessile_backend_draft *draft)
{
    return (sqlite_draft *)(void *)draft;
}

void sqlite_draft_name(int64_t id, char out[32])
{
    snprintf(out, 32, ".new-%016" PRIx64, (uint64_t)id);
}

static sessile_status swept(const sqlite_draft *d, sessile_error *err)
{
    return fail(err, SESSILE_CONFLICT,
                "the new %s/%s was removed as something that nobody writes any more: do "
                "it again",
                d->folder, d->name);
}

/* Runs a statement that is about one row of sessions. */
static int step_row(sqlite_conn *c, sqlite_query query, int64_t id)
{
    return sqlite_exec(c, query, SQL(sql_int(id)));
}

/* ------------------------------------------------------------------ written */

static int new_body(sqlite_conn *c, void *arg)
{
    sqlite_draft *d = arg;
    int rc = sqlite_exec(
        c, QUERY_DRAFT_NEW,
        SQL(sql_text(d->folder), sql_text(d->name), sql_int(sqlite_now(d->store))));
    d->id = sqlite3_last_insert_rowid(c->db);
    return rc;
}

sessile_status sqlite_draft_new(void *self, const char *folder, const char *name,
                                sessile_backend_draft **out, sessile_error *err)
{
    sqlite_store *ss = self;
    *out = NULL;
    sessile_status status = store_names_check(folder, name, err);
    if (status)
        return status;
    sqlite_draft *d = mem_zalloc(&ss->alloc, sizeof *d);
    if (!d)
        return fail_nomem(err);
    d->store = ss;
    strcpy(d->folder, folder); /* at most 200 bytes each */
    strcpy(d->name, name);
    status = sqlite_run_write(ss, sqlite_patience_of(ss), SQLITE_MAKES, new_body, d, NULL,
                              err);
    if (status) {
        mem_free(&ss->alloc, d, sizeof *d);
        return status;
    }
    *out = (sessile_backend_draft *)(void *)d;
    return SESSILE_OK;
}

typedef struct drafting {
    sqlite_draft *draft;
    const char *data;
    size_t size;
    size_t rest; /* how much of it goes to the last entry */
    uint64_t count;
    int gone;
} drafting;

static int write_body(sqlite_conn *c, void *arg)
{
    drafting *w = arg;
    const sqlite_draft *d = w->draft;
    int rc = sqlite_exec(c, QUERY_DRAFT_GROW,
                         SQL(sql_int(d->id), sql_int((int64_t)(d->count + w->count)),
                             sql_int((int64_t)(d->bytes + w->size)),
                             sql_int(sqlite_now(d->store))));
    w->gone = rc == SQLITE_OK && sqlite3_changes(c->db) == 0;
    if (rc != SQLITE_OK || w->gone)
        return w->gone ? SQLITE_UNDO : rc;
    if (w->rest > 0)
        rc = sqlite_exec(c, QUERY_ENTRY_GROW,
                         SQL(sql_int(d->id), sql_int((int64_t)d->count - 1),
                             sql_bytes(w->data, w->rest)));
    return rc == SQLITE_OK
               ? sqlite_put_records(c, d->id, (int64_t)d->count, d->bytes + w->rest,
                                    w->data + w->rest, w->size - w->rest, w->count)
               : rc;
}

sessile_status sqlite_draft_write(sessile_backend_draft *handle, const void *data,
                                  size_t size, sessile_error *err)
{
    sqlite_draft *d = draft_of(handle);
    sqlite_store *ss = d->store;
    drafting w = {.draft = d, .data = data, .size = size};
    if (size == 0)
        return SESSILE_OK;
    w.rest = d->partial ? record_size(data, size) : 0;
    w.count = record_count(w.data + w.rest, size - w.rest);
    sessile_status status =
        sqlite_run_write(ss, sqlite_patience_of(ss), 0, write_body, &w, NULL, err);
    if (!status && w.gone)
        status = swept(d, err);
    if (!status) {
        d->count += w.count;
        d->bytes += size;
        d->partial = w.data[size - 1] != '\n';
    }
    return status;
}

static int drop_body(sqlite_conn *c, void *arg)
{
    return step_row(c, QUERY_DRAFT_DROP, ((const sqlite_draft *)arg)->id);
}

void sqlite_draft_drop(sessile_backend_draft *handle)
{
    sqlite_draft *d = draft_of(handle);
    if (d) {
        sqlite_store *ss = d->store;
        sessile_error ignored;
        sqlite_run_write(ss, sqlite_patience_of(ss), 0, drop_body, d, NULL, &ignored);
        mem_free(&ss->alloc, d, sizeof *d);
    }
}

/* ------------------------------------------------------------------ named */

typedef struct naming {
    sqlite_draft *draft;
    const sqlite_log *old; /* NULL: a new log */
    uint64_t old_bytes;    /* as its handle saw them last */
    int keep;
    int64_t kept;
    int changed, taken, gone, full;
} naming;

/* Takes the old log's name away: it goes, or stays without one. */
static int make_room(sqlite_conn *c, naming *n, int64_t *created)
{
    const sqlite_draft *d = n->draft;
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(n->old->id)), &st);
    n->changed = 1;
    if (rc == SQLITE_ROW && sqlite3_column_type(st, 5) != SQLITE_NULL) {
        n->changed = (uint64_t)sqlite3_column_int64(st, 1) != n->old_bytes ||
                     strcmp((const char *)sqlite3_column_text(st, 4), d->folder) != 0 ||
                     strcmp((const char *)sqlite3_column_text(st, 5), d->name) != 0;
        *created = sqlite3_column_int64(st, 6);
    }
    rc = sqlite_end(st, rc);
    if (rc != SQLITE_OK || n->changed)
        return rc != SQLITE_OK ? rc : SQLITE_UNDO;
    if (!n->keep)
        return step_row(c, QUERY_LOG_REMOVE, n->old->id);
    rc = sqlite_row(c, QUERY_KEPT_LAST, SQL(sql_text(d->folder), sql_text(d->name)), &st);
    n->kept = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) + 1 : 0;
    sqlite3_reset(st);
    n->full = n->kept > KEPT_MOST;
    if (rc != SQLITE_ROW || n->full)
        return n->full ? SQLITE_UNDO : rc;
    rc = sqlite_exec(c, QUERY_LOG_UNNAME, SQL(sql_int(n->old->id), sql_int(n->kept)));
    return rc == SQLITE_OK
               ? sqlite_exec(c, QUERY_CACHE_CUT, SQL(sql_int(n->old->id), sql_int(0)))
               : rc;
}

static int name_body(sqlite_conn *c, void *arg)
{
    naming *n = arg;
    const sqlite_draft *d = n->draft;
    sqlite3_stmt *st;
    int64_t created = 0;
    int rc = n->old ? make_room(c, n, &created) : SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite_exec(c, QUERY_DRAFT_NAME,
                     SQL(sql_int(d->id), n->old ? sql_int(created) : sql_text(NULL),
                         sql_int(sqlite_now(d->store))));
    if (rc != SQLITE_OK || sqlite3_changes(c->db) > 0)
        return rc;
    rc = sqlite_row(c, QUERY_LOG_FIND, SQL(sql_text(d->folder), sql_text(d->name)), &st);
    n->taken = rc == SQLITE_ROW;
    n->gone = !n->taken;
    sqlite_end(st, rc);
    return SQLITE_UNDO;
}

/* Both ways to finish. Frees the draft. */
static sessile_status finish_naming(naming *n, sessile_error *err)
{
    sqlite_draft *d = n->draft;
    sqlite_store *ss = d->store;
    int unknown = 0;
    sessile_status status = sqlite_run_write(ss, sqlite_patience_of(ss), SQLITE_DURABLE,
                                             name_body, n, &unknown, err);
    if (!status && n->changed) {
        status = fail(err, SESSILE_CONFLICT,
                      "%s/%s was changed while it was being replaced: do it again",
                      d->folder, d->name);
    } else if (!status && n->full) {
        status = fail(err, SESSILE_EXISTS,
                      "%d old copies of %s/%s are kept already: remove some", KEPT_MOST,
                      d->folder, d->name);
    } else if (!status && n->taken) {
        status = fail(err, SESSILE_EXISTS, "%s/%s is already there", d->folder, d->name);
    } else if (!status && n->gone) {
        status = swept(d, err);
    }
    if (status && !unknown) {
        sqlite_draft_drop((sessile_backend_draft *)(void *)d);
        return status;
    }
    mem_free(&ss->alloc, d, sizeof *d);
    return status;
}

sessile_status sqlite_draft_replace(sessile_backend_draft *handle,
                                    sessile_backend_log *old, int keep, char *kept,
                                    size_t kept_size, sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(old);
    naming n = {.draft = draft_of(handle), .old = log, .keep = keep};
    char name[256];
    sqlite_store *ss = log->store;
    if (kept && kept_size > 0)
        kept[0] = '\0';
    snprintf(name, sizeof name, "%s", n.draft->name);
    if (keep && (!kept || kept_size < strlen(name) + 20)) {
        sqlite_draft_drop(handle);
        return fail(err, SESSILE_INVALID, "no room for the name of what is kept");
    }
    pthread_mutex_lock(&log->mutex);
    n.old_bytes = log->bytes;
    pthread_mutex_unlock(&log->mutex);
    sessile_status status = finish_naming(&n, err);
    if (!status && keep)
        snprintf(kept, kept_size, "%s.replaced-%" PRId64, name, n.kept);
    else if (!status)
        sqlite_sync_scrub(ss);
    return status;
}

sessile_status sqlite_draft_publish(sessile_backend_draft *handle, sessile_error *err)
{
    naming n = {.draft = draft_of(handle)};
    return finish_naming(&n, err);
}

/* ------------------------------------------------------------------ removed */

typedef struct removing {
    const sqlite_log *log;
    uint64_t bytes;
    int gone, changed;
} removing;

static int remove_body(sqlite_conn *c, void *arg)
{
    removing *r = arg;
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(r->log->id)), &st);
    r->gone = rc != SQLITE_ROW || sqlite3_column_type(st, 5) == SQLITE_NULL;
    r->changed = !r->gone && (uint64_t)sqlite3_column_int64(st, 1) != r->bytes;
    rc = sqlite_end(st, rc);
    if (rc != SQLITE_OK || r->gone || r->changed)
        return rc != SQLITE_OK ? rc : SQLITE_UNDO;
    rc = sqlite_exec(c, QUERY_KEPT_REMOVE, SQL_NAME(r->log));
    return rc == SQLITE_OK ? step_row(c, QUERY_LOG_REMOVE, r->log->id) : rc;
}

/* All of it is overwritten, whatever `head` says: connections run with secure_delete. */
sessile_status sqlite_remove(sessile_backend_log *handle, uint64_t head,
                             sessile_error *err)
{
    sqlite_log *log = sqlite_log_of(handle);
    removing r = {.log = log};
    (void)head;
    pthread_mutex_lock(&log->mutex);
    r.bytes = log->bytes;
    pthread_mutex_unlock(&log->mutex);
    sessile_status status = sqlite_run_write(log->store, sqlite_log_patience(log),
                                             SQLITE_DURABLE, remove_body, &r, NULL, err);
    if (!status && r.gone) {
        return fail(err, SESSILE_NOTFOUND,
                    "%s was removed or replaced since it was opened", log->name);
    }
    if (!status && r.changed) {
        return fail(err, SESSILE_CONFLICT, "%s has grown: look again before removing it",
                    log->name);
    }
    if (!status)
        sqlite_sync_scrub(log->store);
    return status;
}
