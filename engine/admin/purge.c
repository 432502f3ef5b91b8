/*
 * purge.c: removes the sessions that expired or were deleted softly, and what is left of
 * forgotten users.
 *
 * Candidates come from a list. Each is opened and judged again before it is removed, and
 * is removed only if its log still ends with the line that was judged, so that a session
 * that was written to or replaced meanwhile is kept.
 */
#include "admin/purge.h"

#include <string.h>

#include "admin/list.h"
#include "admin/places.h"
#include "base/alloc.h"
#include "base/error.h"
#include "operations/life.h"
#include "session/fold.h"

static int is_due(sessile_life life, int64_t deleted_ms, int64_t retention_ms,
                  int64_t now_ms)
{
    return life == SESSILE_LIFE_EXPIRED ||
           (life == SESSILE_LIFE_DELETED && deleted_ms <= now_ms - retention_ms);
}

/* Judges the session by its log. CONFLICT: it is not due, or is being written to. */
static sessile_status judge(store_core *st, const session_names *names,
                            int64_t retention_ms, int64_t now_ms, log_ending *ending,
                            sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    session_core *s = NULL;
    life_facts facts;
    sessile_status status;

    names_place(st, names, folder, name);
    status = session_open_place(&s, st, folder, name, err);
    if (!status)
        status = session_damage_locked(s, NULL, err);
    if (!status)
        status = session_life_facts_locked(s, &facts, err);
    if (!status &&
        !is_due(life_state(&facts, now_ms), facts.deleted_ms, retention_ms, now_ms))
        status = fail(err, SESSILE_CONFLICT, "the session is not due any more");
    if (!status)
        status = log_get_ending(s->log, ending, err);
    session_drop(s);
    return status;
}

sessile_status session_purge(store_core *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err)
{
    int64_t now_ms = st->os->now_ms(st->os->ud);
    sessile_list_options all;
    sessile_listed *rows;
    size_t n, due = 0;
    sessile_status status;

    if (options->retention_ms < 0)
        return fail(err, SESSILE_INVALID, "retention_ms is negative");
    memset(&all, 0, sizeof all);
    all.agent = options->agent;
    all.user = options->user;
    all.lives = 1u << SESSILE_LIFE_EXPIRED | 1u << SESSILE_LIFE_DELETED;
    status = list_sessions(st, NULL, &all, &rows, &n, err);
    for (size_t i = 0; !status && i < n; i++) {
        session_names names = {rows[i].id, rows[i].agent, rows[i].user, 0};
        const char *due_by = rows[i].life == SESSILE_LIFE_EXPIRED
                                 ? "purged: expired"
                                 : "purged: deleted softly";
        const sessile_delete_options o = {.reason = {due_by, strlen(due_by)}};
        sessile_deleted gone = {.bytes = 0};
        sessile_error why;
        log_ending ending;
        if (rows[i].status ||
            !is_due(rows[i].life, rows[i].deleted_ms, options->retention_ms, now_ms))
            continue;
        error_clear(&why);
        if (!options->dry_run)
            status = judge(st, &names, options->retention_ms, now_ms, &ending, &why);
        if (!options->dry_run && !status)
            status = session_remove(st, &names, &ending, &o, &gone, &why);
        if (!status)
            rows[due++] = rows[i];
        /* Somebody wrote to it, holds it, or was quicker: it is not ours to take. */
        else if (status == SESSILE_CONFLICT || status == SESSILE_NOTFOUND ||
                 status == SESSILE_BUSY)
            status = SESSILE_OK;
        else if (err)
            *err = why;
    }
    if (status) {
        host_free(rows);
        return status;
    }
    *out = rows;
    *count = due;
    return SESSILE_OK;
}

/* One log: counted if its user was forgotten, and removed unless it is a dry run. */
static sessile_status purge_forgotten_log(store_core *st, const place *at, int dry_run,
                                          uint64_t *count, uint64_t *total,
                                          sessile_error *err)
{
    uint64_t bytes;
    log_about log;
    sessile_status status =
        log_read_about(&st->backend, at->folder, at->name, 0, 0, &log, err);
    int forgot;

    if (status == SESSILE_NOTFOUND || status == SESSILE_DAMAGED) {
        error_clear(err); /* removed meanwhile; or not known whose it is */
        return SESSILE_OK;
    }
    if (status)
        return status;
    forgot = log.sealed ? keyring_forgot(st->keys, &log.key, err) : 0;
    if (forgot < 0)
        return err->code;
    if (!forgot)
        return SESSILE_OK;
    bytes = log.bytes;
    if (!dry_run)
        status = log_remove_forgotten(&st->backend, st->keys, at->folder, at->name,
                                      st->config.timeout_ms, &bytes, err);
    if (status == SESSILE_CONFLICT || status == SESSILE_NOTFOUND) {
        error_clear(err); /* it is another one by now, or somebody was quicker */
        return SESSILE_OK;
    }
    if (!status) {
        *count += 1;
        *total += bytes;
    }
    return status;
}

sessile_status purge_forgotten(store_core *st, sessile_slice agent, int dry_run,
                               uint64_t *count, uint64_t *bytes, sessile_error *err)
{
    char folder[NAME_SIZE];
    places logs;
    sessile_status status;

    *count = *bytes = 0;
    if (!keyring_sealed(st->keys)) /* nobody can be forgotten there */
        return SESSILE_OK;
    status = keyring_refresh(st->keys, err);
    if (status)
        return status;
    if (agent.size)
        keyring_folder_name(st->keys, agent, folder);
    status = places_find(&logs, st, agent.size ? folder : NULL, err);
    for (size_t i = 0; !status && i < logs.count; i++)
        status = purge_forgotten_log(st, &logs.list[i], dry_run, count, bytes, err);
    places_deinit(&logs);
    return status;
}
