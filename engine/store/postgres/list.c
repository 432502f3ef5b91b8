/*
 * list.c: lists logs and what lies beside them.
 *
 * A page is one statement, and its connection is given back before the page is visited,
 * because a visit may open a log and needs a connection. Logs come in the order of their
 * names, so the next page begins behind the last name, whatever changed meanwhile.
 */
#include "store/postgres/postgres.h"

#include <string.h>

enum { PAGE = 1000, NAME_ROOM = 208 };

typedef int (*visit_log)(void *arg, const char *folder, const char *name);
typedef int (*visit_stat)(void *arg, const char *folder, const char *name,
                          const sessile_backend_stat *stat);
typedef int (*visit_file)(void *arg, const char *folder, const char *file,
                          uint64_t bytes);

/* A row's number, bytes and time, from `column` on. */
static sessile_backend_stat stat_of(const pg_store *ps, const PGresult *r, int row,
                                    int column)
{
    sessile_backend_stat st = {.inode = (uint64_t)pg_int(ps, r, row, column)};
    st.bytes = (uint64_t)pg_int(ps, r, row, column + 1);
    st.mtime_ns = pg_time_ns(ps, r, row, column + 2);
    st.changed_ns = st.mtime_ns;
    return st;
}

/* Pages are as many as there are only while each begins behind the last one. */
static sessile_status out_of_order(const pg_store *ps, sessile_error *err)
{
    return fail(err, SESSILE_IO,
                "%s lists the table \"sessions\" in no order: somebody else changed it",
                ps->url.where);
}

/* Either visit is NULL. */
static sessile_status walk(pg_store *ps, const char *folder, visit_log show,
                           visit_stat show_stat, void *arg, sessile_error *err)
{
    char last_folder[NAME_ROOM] = "", last_name[NAME_ROOM] = "";
    for (int over = 0; !over;) {
        pg_call call = pg_call_of(ps, ps->timeout_ms);
        pg_step s = pg_step_of(folder ? PG_LIST_FOLDER : PG_LIST);
        pg_results r;
        pg_arg_text(&s, folder ? folder : last_folder);
        pg_arg_text(&s, last_name);
        pg_arg_int(&s, PAGE);
        sessile_status status = pg_ask(&call, &s, 1, "log", &r, err);
        if (status)
            return call.absent ? SESSILE_OK : status;
        int n = pg_rows(ps, r.of[0]);
        over = n < PAGE;
        for (int i = 0; i < n; i++) {
            const char *agent = pg_text(ps, r.of[0], i, 0);
            const char *name = pg_text(ps, r.of[0], i, 1);
            sessile_backend_stat st = stat_of(ps, r.of[0], i, 2);
            if (strlen(agent) >= NAME_ROOM || strlen(name) >= NAME_ROOM) {
                over |= i == n - 1;
                continue; /* somebody else's row */
            }
            int order = strcmp(agent, last_folder);
            if (order < 0 || (order == 0 && strcmp(name, last_name) <= 0)) {
                status = out_of_order(ps, err);
                break;
            }
            memcpy(last_folder, agent, strlen(agent) + 1);
            memcpy(last_name, name, strlen(name) + 1);
            char shown_agent[STORE_MISNAMED_SIZE], shown[STORE_MISNAMED_SIZE];
            if (store_names_check(agent, name, NULL)) {
                store_misnamed(st.inode, name, shown);
                name = shown;
            }
            if (store_name_check(agent, NULL)) {
                store_misnamed(st.inode, agent, shown_agent);
                agent = shown_agent;
            }
            if (show ? show(arg, agent, name) : show_stat(arg, agent, name, &st)) {
                over = 1;
                break;
            }
        }
        pg_results_free(ps, &r);
        if (status)
            return status;
    }
    return SESSILE_OK;
}

sessile_status pg_list(void *self, const char *folder, visit_log visit, void *arg,
                       sessile_error *err)
{
    return walk(self, folder, visit, NULL, arg, err);
}

sessile_status pg_list_stat(void *self, const char *folder, visit_stat visit, void *arg,
                            sessile_error *err)
{
    return walk(self, folder, NULL, visit, arg, err);
}

sessile_status pg_stat(void *self, const char *folder, const char *name,
                       sessile_backend_stat *out, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_STAT);
    pg_results r;
    memset(out, 0, sizeof *out);
    pg_names room;
    sessile_status status = pg_names_find(ps, &folder, &name, &room, err);
    if (status)
        return status;
    pg_arg_text(&s, folder);
    pg_arg_text(&s, name);
    status = pg_ask(&call, &s, 1, name, &r, err);
    if (status)
        return status;
    if (pg_rows(ps, r.of[0]) == 1)
        *out = stat_of(ps, r.of[0], 0, 0);
    else
        status = fail(err, SESSILE_NOTFOUND, "there is no log %s", name);
    pg_results_free(ps, &r);
    return status;
}

sessile_status pg_has_logs(void *self, int *found, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_HAS_LOGS);
    pg_results r;
    *found = 0;
    sessile_status status = pg_ask(&call, &s, 1, "log", &r, err);
    if (status)
        return call.absent ? SESSILE_OK : status;
    *found = pg_rows(ps, r.of[0]) > 0;
    pg_results_free(ps, &r);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- beside logs */

/* Removes a draft that nobody writes. */
static sessile_status sweep_one(pg_store *ps, uint64_t id, sessile_error *err)
{
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_SWEEP);
    pg_results r;
    pg_arg_int(&s, id);
    sessile_status status = pg_ask(&call, &s, 1, "left-over draft", &r, err);
    if (!status)
        pg_results_free(ps, &r);
    return status;
}

/* Rows without a name; with `sweep` those that crashes left. */
static sessile_status others(pg_store *ps, const char *folder, int sweep,
                             visit_file visit, void *arg, sessile_error *err)
{
    uint64_t last = 0;
    for (int over = 0; !over;) {
        pg_call call = pg_call_of(ps, ps->timeout_ms);
        pg_step s = pg_step_of(sweep    ? PG_LEFT_OVER
                               : folder ? PG_OTHERS_FOLDER
                                        : PG_OTHERS);
        pg_results r;
        pg_arg_int(&s, last);
        pg_arg_int(&s, PAGE);
        if (!sweep && folder)
            pg_arg_text(&s, folder);
        sessile_status status = pg_ask(&call, &s, 1, "log", &r, err);
        if (status)
            return call.absent ? SESSILE_OK : status;
        int n = pg_rows(ps, r.of[0]);
        over = n < PAGE;
        for (int i = 0; i < n && !status; i++) {
            uint64_t id = (uint64_t)pg_int(ps, r.of[0], i, 3);
            if (id <= last) {
                status = out_of_order(ps, err);
                break;
            }
            last = id;
            int yes = visit(arg, pg_text(ps, r.of[0], i, 0), pg_text(ps, r.of[0], i, 1),
                            (uint64_t)pg_int(ps, r.of[0], i, 2));
            if (sweep && yes) {
                status = sweep_one(ps, last, err);
            } else if (!sweep && yes) {
                over = 1;
                break;
            }
        }
        pg_results_free(ps, &r);
        if (status)
            return status;
    }
    return SESSILE_OK;
}

sessile_status pg_list_others(void *self, const char *folder, visit_file visit, void *arg,
                              sessile_error *err)
{
    return others(self, folder, 0, visit, arg, err);
}

sessile_status pg_sweep(void *self, visit_file visit, void *arg, sessile_error *err)
{
    return others(self, NULL, 1, visit, arg, err);
}
