/*
 * list.c: lists logs and what lies beside them.
 *
 * Rows are read a page at a time, and visited after the connection was given back,
 * because a visit may open a log and needs a connection. Logs that are made or removed
 * meanwhile are listed or not, and none is listed twice.
 */
#include "store/sqlite/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 256, NAME_ROOM = 208 };

/* A draft that nobody has written to for so long is nobody's any more. */
#define DRAFT_LASTS_MS 3600000

typedef struct row {
    char agent[NAME_ROOM], name[NAME_ROOM];
    int64_t id, bytes, last; /* when it was updated; of what is no log: kept */
    int differs;             /* a log's row and the index name it differently */
} row;

typedef struct page {
    sqlite_query query;
    const char *folder;
    row after; /* the last that was shown */
    int64_t before;
    row rows[PAGE];
    size_t count;
    int disorder; /* of names, in the index */
} page;

static int text_of(sqlite3_stmt *st, int column, char out[NAME_ROOM])
{
    const char *text = (const char *)sqlite3_column_text(st, column);
    size_t size = text ? strlen(text) : 0;
    if (!text || size >= NAME_ROOM || size != (size_t)sqlite3_column_bytes(st, column))
        return 0;
    memcpy(out, text, size + 1);
    return 1;
}

static int is_of_logs(const page *p)
{
    return p->query == QUERY_LIST || p->query == QUERY_LIST_FOLDER;
}

static int bind_page(sqlite_conn *c, const page *p, sqlite3_stmt **st)
{
    const row *after = &p->after;
    sqlite_value first = sql_int(after->id), second = sql_text(p->folder);

    if (is_of_logs(p)) {
        first = sql_text(p->query == QUERY_LIST ? after->agent : p->folder);
        second = sql_text(after->name);
    } else if (p->query == QUERY_LIST_DRAFTS) {
        second = sql_int(p->before);
    }
    return sqlite_bind(c, p->query, SQL(first, second, sql_int(PAGE)), st);
}

/* 1 when r comes after the row that was taken before it. In a damaged index it may not,
 * and pages would never end. */
static int comes_after(const page *p, const row *before, const row *r)
{
    if (!is_of_logs(p))
        return r->id > before->id;
    int agents = p->query == QUERY_LIST_FOLDER ? 0 : strcmp(r->agent, before->agent);
    return agents > 0 || (agents == 0 && strcmp(r->name, before->name) > 0);
}

static int page_body(sqlite_conn *c, void *arg)
{
    page *p = arg;
    sqlite3_stmt *st;
    int rc = bind_page(c, p, &st);
    p->count = 0;
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW && p->count < PAGE) {
        row *r = &p->rows[p->count];
        if (!text_of(st, 0, r->agent) || !text_of(st, 1, r->name)) {
            rc = SQLITE_CORRUPT; /* longer than any that is made, or with a NUL in it */
            break;
        }
        r->id = sqlite3_column_int64(st, 2);
        /* an entry of the index that leads to no row is as bad as one out of order */
        if (!comes_after(p, p->count > 0 ? r - 1 : &p->after, r) ||
            sqlite3_column_type(st, 3) == SQLITE_NULL) {
            p->disorder = is_of_logs(p);
            rc = SQLITE_CORRUPT;
            break;
        }
        r->bytes = sqlite3_column_int64(st, 3);
        r->last = sqlite3_column_int64(st, 4);
        r->differs = is_of_logs(p) && !sqlite3_column_int(st, 5);
        p->count++;
        rc = SQLITE_OK;
    }
    return sqlite_end(st, rc);
}

/* Shows every row of a query, page after page. */
static sessile_status each(sqlite_store *ss, sqlite_query query, const char *folder,
                           int64_t before, int (*show)(void *arg, const row *r),
                           void *arg, sessile_error *err)
{
    sessile_status status = folder ? store_name_check(folder, err) : SESSILE_OK;
    page *p = !status ? mem_zalloc(&ss->alloc, sizeof *p) : NULL;
    int stopped = 0;
    if (!p)
        return status ? status : fail_nomem(err);
    p->query = query;
    p->folder = folder;
    p->before = before;
    do {
        status = sqlite_run_read(ss, sqlite_patience_of(ss), page_body, p, err);
        for (size_t i = 0; i < p->count && !status && !stopped; i++) {
            p->after = p->rows[i];
            stopped = show(arg, &p->after) != 0;
        }
    } while (!status && p->count == PAGE && !stopped);
    if (status == SESSILE_DAMAGED && p->disorder)
        fail(err, status,
             "cannot read %s: the index of its sessions is damaged: make it again with "
             "`sqlite3 %s 'REINDEX sessions'`",
             ss->path, ss->path);
    mem_free(&ss->alloc, p, sizeof *p);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* nothing was ever kept */
    }
    return status;
}

/* ------------------------------------------------------------------ logs */

typedef struct listing {
    int (*visit)(void *arg, const char *folder, const char *name);
    int (*visit_stat)(void *arg, const char *folder, const char *name,
                      const sessile_backend_stat *stat);
    int (*visit_other)(void *arg, const char *folder, const char *file, uint64_t bytes);
    void *arg;
    sqlite_store *store;
    sessile_status status;
    sessile_error *err;
} listing;

static int show_log(void *arg, const row *r)
{
    const listing *l = arg;
    const sessile_backend_stat stat = sqlite_stat_of(r->id, r->bytes, r->last);
    const char *folder = r->agent, *name = r->name;
    char shown_folder[STORE_MISNAMED_SIZE], shown[STORE_MISNAMED_SIZE];
    if (r->differs || store_name_check(folder, NULL) || store_name_check(name, NULL)) {
        store_misnamed((uint64_t)r->id, name, shown);
        name = shown;
    }
    if (store_name_check(folder, NULL)) {
        store_misnamed((uint64_t)r->id, folder, shown_folder);
        folder = shown_folder;
    }
    return l->visit ? l->visit(l->arg, folder, name)
                    : l->visit_stat(l->arg, folder, name, &stat);
}

sessile_status sqlite_list(void *self, const char *folder,
                           int (*visit)(void *arg, const char *folder, const char *name),
                           void *arg, sessile_error *err)
{
    listing l = {.visit = visit, .arg = arg};
    return each(self, folder ? QUERY_LIST_FOLDER : QUERY_LIST, folder, 0, show_log, &l,
                err);
}

sessile_status sqlite_list_stat(void *self, const char *folder,
                                int (*visit)(void *arg, const char *folder,
                                             const char *name,
                                             const sessile_backend_stat *stat),
                                void *arg, sessile_error *err)
{
    listing l = {.visit_stat = visit, .arg = arg};
    return each(self, folder ? QUERY_LIST_FOLDER : QUERY_LIST, folder, 0, show_log, &l,
                err);
}

static int has_body(sqlite_conn *c, void *arg)
{
    sqlite3_stmt *st;
    int rc = sqlite_row(c, QUERY_HAS_LOGS, NULL, &st);
    *(int *)arg = rc == SQLITE_ROW && sqlite3_column_int(st, 0) != 0;
    return sqlite_end(st, rc);
}

sessile_status sqlite_has_logs(void *self, int *found, sessile_error *err)
{
    sqlite_store *ss = self;
    *found = 0;
    sessile_status status =
        sqlite_run_read(ss, sqlite_patience_of(ss), has_body, found, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* ------------------------------------------------------------------ what is no log */

static void name_other(const row *r, char out[NAME_ROOM + 32])
{
    if (r->last == 0)
        sqlite_draft_name(r->id, out);
    else
        snprintf(out, NAME_ROOM + 32, "%s.replaced-%" PRId64, r->name, r->last);
}

static int show_other(void *arg, const row *r)
{
    const listing *l = arg;
    char file[NAME_ROOM + 32];
    if (!store_name_ok(r->agent) || !store_name_ok(r->name))
        return 0;
    name_other(r, file);
    return l->visit_other(l->arg, r->agent, file, (uint64_t)r->bytes);
}

sessile_status sqlite_list_others(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *file, uint64_t bytes),
                                  void *arg, sessile_error *err)
{
    listing l = {.visit_other = visit, .arg = arg};
    return each(self, QUERY_LIST_OTHERS, folder, 0, show_other, &l, err);
}

typedef struct sweeping {
    int64_t id, before;
} sweeping;

static int sweep_body(sqlite_conn *c, void *arg)
{
    const sweeping *s = arg;
    return sqlite_exec(c, QUERY_DRAFT_SWEEP, SQL(sql_int(s->id), sql_int(s->before)));
}

static int show_draft(void *arg, const row *r)
{
    listing *l = arg;
    sqlite_store *ss = l->store;
    if (show_other(l, r)) {
        sweeping s = {r->id, sqlite_now(ss) - DRAFT_LASTS_MS};
        l->status =
            sqlite_run_write(ss, sqlite_patience_of(ss), 0, sweep_body, &s, NULL, l->err);
    }
    return l->status != SESSILE_OK;
}

sessile_status sqlite_sweep(void *self,
                            int (*visit)(void *arg, const char *folder, const char *file,
                                         uint64_t bytes),
                            void *arg, sessile_error *err)
{
    sqlite_store *ss = self;
    listing l = {.visit_other = visit, .arg = arg, .store = ss, .err = err};
    sessile_status status = each(ss, QUERY_LIST_DRAFTS, NULL,
                                 sqlite_now(ss) - DRAFT_LASTS_MS, show_draft, &l, err);
    if (!status)
        status = l.status;
    return !status ? sqlite_path_sweep(ss, visit, arg, err) : status;
}
