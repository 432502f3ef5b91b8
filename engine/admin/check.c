/*
 * check.c: checks every log of a store, and salvages damaged ones.
 *
 * Each step checks one log, the last step the files beside the logs. Must never change a
 * byte except in a salvage. A problem with one log must never keep the others from being
 * checked.
 */
#include "admin/check_internal.h"

#include <string.h>

static int visit_place(void *arg, const char *folder, const char *name)
{
    check_core *c = arg;
    check_place *p;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0;
    if (mem_grow(&c->store->alloc, (void **)&c->places, &c->capacity, c->count + 1,
                 sizeof *c->places)) {
        c->failed = SESSILE_NOMEM;
        return 1;
    }
    p = &c->places[c->count++];
    memcpy(p->folder, folder, strlen(folder) + 1);
    memcpy(p->name, name, strlen(name) + 1);
    return 0;
}

static sessile_status find_places(check_core *c, const sessile_session_options *which,
                                  sessile_error *err)
{
    const sessile_backend *table = c->store->backend.table;
    char folder[NAME_SIZE], name[NAME_SIZE], shown[NAME_SHOWN];
    sessile_backend_log *log;
    session_names names;
    sessile_status status;

    if (!which || !which->id.size) {
        c->all = 1;
        if (which && which->agent.size)
            keyring_folder_name(c->store->keys, which->agent, folder);
        return table->list(c->store->backend.self,
                           which && which->agent.size ? folder : NULL, visit_place, c,
                           err);
    }
    status = names_from_options(&names, c->store, which, 0, err);
    if (status)
        return status;
    names_place(c->store, &names, folder, name);
    status = table->open(c->store->backend.self, folder, name, &log, err);
    if (status == SESSILE_NOTFOUND) {
        name_show(names.id, shown);
        return fail(err, SESSILE_NOTFOUND, "there is no session %s: list the sessions",
                    shown);
    }
    if (!status)
        table->close(log);
    else
        error_clear(err); /* what is wrong with it is found again */
    visit_place(c, folder, name);
    return SESSILE_OK;
}

sessile_status check_open(check_core **out, store_core *st,
                          const sessile_session_options *which, int wants_salvage,
                          sessile_error *err)
{
    check_core *c;
    sessile_status status;

    *out = NULL;
    if (st->over_records)
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is opened over records, which the host keeps: opening a "
                    "session checks its records");
    c = mem_zalloc(&st->alloc, sizeof *c);
    if (!c)
        return fail_nomem(err);
    c->store = st;
    c->salvage = wants_salvage;
    buf_init(&c->texts, &st->alloc);
    memory_fold_init(&c->memory, &st->alloc);
    status = find_places(c, which, err);
    if (c->failed)
        status = fail_nomem(err);
    if (status) {
        check_close(c);
        return status;
    }
    *out = c;
    return SESSILE_OK;
}

static void begin_step(check_core *c)
{
    session_drop(c->s);
    c->s = NULL;
    memory_fold_deinit(&c->memory);
    memset(&c->fold, 0, sizeof c->fold);
    c->refused_count = c->row_count = 0;
    c->failed = SESSILE_OK;
    buf_clear(&c->texts);
    error_clear(&c->first);
}

sessile_status check_next(check_core *c, sessile_checked *out, sessile_error *err)
{
    size_t steps = c->count + (size_t)c->all;
    sessile_status status;

    memset(out, 0, sizeof *out);
    begin_step(c);
    if (c->next >= steps)
        return SESSILE_OK;
    out->index = c->next;
    out->total = steps;
    status = c->next < c->count ? check_one_log(c, &c->places[c->next], out, err)
                                : check_beside(c, err);
    if (!status && check_reserve(c))
        status = fail_nomem(err);
    if (status)
        return status;
    c->next++;
    for (size_t i = 0; i < c->row_count; i++) {
        c->findings[i] = c->rows[i].f;
        c->findings[i].file = c->rows[i].file;
        c->findings[i].what = c->rows[i].what;
        c->findings[i].next = c->rows[i].next;
    }
    out->file = c->file;
    out->findings = c->findings;
    out->count = c->row_count;
    return SESSILE_OK;
}

void check_close(check_core *c)
{
    const allocator *a;

    if (!c)
        return;
    a = &c->store->alloc;
    session_drop(c->s);
    buf_deinit(&c->texts);
    memory_fold_deinit(&c->memory);
    mem_free(a, c->places, c->capacity * sizeof *c->places);
    mem_free(a, c->refused, c->refused_capacity * sizeof *c->refused);
    mem_free(a, c->rows, c->row_capacity * sizeof *c->rows);
    mem_free(a, c->findings, c->finding_capacity * sizeof *c->findings);
    mem_free(a, c, sizeof *c);
}
