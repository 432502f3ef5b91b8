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
#include "guard/erasure.h"
#include "operations/life.h"
#include "session/fold.h"

/* Why a session goes; NULL: it stays. written_ms: of its newest entry, or of its newest
 * message where that is all that is known. */
static const char *due_by(const purge_rule *rule, sessile_life life, int64_t deleted_ms,
                          int64_t written_ms, int64_t now_ms)
{
    if (life == SESSILE_LIFE_EXPIRED)
        return "purged: expired";
    if (life == SESSILE_LIFE_DELETED && rule->deleted_ms >= 0 &&
        deleted_ms <= now_ms - rule->deleted_ms)
        return "purged: deleted softly";
    if (rule->sessions_ms > 0 && written_ms <= now_ms - rule->sessions_ms)
        return "purged: kept as long as the retention says";
    return NULL;
}

/* Judges the session by its log. CONFLICT: it is not due, or is being written to. */
static sessile_status judge(store_core *st, const session_names *names,
                            const purge_rule *rule, int64_t now_ms, log_ending *ending,
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
    if (!status && !due_by(rule, life_state(&facts, now_ms), facts.deleted_ms,
                           facts.written_ms, now_ms))
        status = fail(err, SESSILE_CONFLICT, "the session is not due any more");
    if (!status)
        status = log_get_ending(s->log, ending, err);
    session_drop(s);
    return status;
}

/* Removes one session that was due when it was listed. A dry run judges it as well. */
static sessile_status purge_one(store_core *st, const sessile_listed *row,
                                const purge_rule *rule, const char *why, int64_t now_ms,
                                int dry_run, sessile_error *err)
{
    session_names names = {row->id, row->agent, row->user, 0};
    const sessile_delete_options o = {.reason = {why, strlen(why)}};
    sessile_deleted gone = {.bytes = 0};
    log_ending ending;
    sessile_status status = names_check_removal(st, &names, err);

    if (!status && !(dry_run && rule->sessions_ms <= 0))
        status = judge(st, &names, rule, now_ms, &ending, err);
    if (!status && !dry_run)
        status = session_remove(st, &names, &ending, &o, &gone, err);
    return status;
}

/* 1: the session is not ours to take: somebody wrote to it, holds its lock or was
 * quicker, or a hold is in force (*held). */
static int is_left(sessile_status status, const sessile_error *why, uint64_t *held)
{
    int is_held = status == SESSILE_DENIED && strncmp(why->rule, "hold:", 5) == 0;

    *held += is_held;
    return is_held || status == SESSILE_CONFLICT || status == SESSILE_NOTFOUND ||
           status == SESSILE_BUSY;
}

sessile_status purge_sessions(store_core *st, const sessile_list_options *which,
                              purge_rule_for rule_for, const void *arg, int dry_run,
                              sessile_listed **out, size_t *count, uint64_t *held,
                              sessile_error *err)
{
    int64_t now_ms = st->os->now_ms(st->os->ud);
    sessile_listed *rows;
    size_t n, due = 0;
    sessile_status status = list_sessions(st, NULL, which, &rows, &n, err);

    if (status)
        return status;
    for (size_t i = 0; !status && i < n; i++) {
        purge_rule rule = rule_for(arg, rows[i].agent, rows[i].user);
        const char *reason = rows[i].status
                                 ? NULL
                                 : due_by(&rule, rows[i].life, rows[i].deleted_ms,
                                          rows[i].modified_ms, now_ms);
        sessile_error why;
        if (!reason)
            continue;
        error_clear(&why);
        status = purge_one(st, &rows[i], &rule, reason, now_ms, dry_run, &why);
        if (!status)
            rows[due++] = rows[i];
        else if (is_left(status, &why, held))
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

static purge_rule same_for_all(const void *arg, sessile_slice agent, sessile_slice user)
{
    const sessile_purge_options *options = arg;
    (void)agent;
    (void)user;
    return (purge_rule){.deleted_ms = options->retention_ms};
}

sessile_status session_purge(store_core *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err)
{
    sessile_list_options all;
    uint64_t held = 0;

    if (options->retention_ms < 0)
        return fail(err, SESSILE_INVALID, "retention_ms is negative");
    memset(&all, 0, sizeof all);
    all.agent = options->agent;
    all.user = options->user;
    all.lives = 1u << SESSILE_LIFE_EXPIRED | 1u << SESSILE_LIFE_DELETED;
    return purge_sessions(st, &all, same_for_all, options, options->dry_run, out, count,
                          &held, err);
}

/*
 * When the user of a log was forgotten, if nothing was written to it since, and the user
 * has come back: then there is a secret again, which does not open the log. Else 0. What
 * does not open and was written to since is damage, and stays.
 */
static int64_t forgotten_before(store_core *st, const place *at, const log_about *log,
                                const erasure_times *times)
{
    int64_t ms =
        log->sealed && log->key.user[0] ? erasure_time_of(times, log->key.user) : 0;
    sessile_status status;
    buf text;

    if (log->mtime_ms >= ms)
        return 0;
    buf_init(&text, &st->alloc);
    status =
        log_peek(&st->backend, st->keys, at->folder, at->name, session_read_depth(st),
                 st->config.timeout_ms, &text, &st->alloc, NULL);
    buf_wipe(&text);
    return status == SESSILE_SEALED ? ms : 0;
}

/* One log: counted if its user was forgotten, and removed unless it is a dry run. */
static sessile_status purge_forgotten_log(store_core *st, const place *at,
                                          const erasure_times *times, int dry_run,
                                          uint64_t *count, uint64_t *total,
                                          sessile_error *err)
{
    int64_t before_ms = 0;
    uint64_t bytes, held = 0;
    sessile_error why = {0};
    log_about log;
    sessile_status status =
        log_read_about(&st->backend, at->folder, at->name, 0, 0, &log, err);
    const store_removal what = {at->folder, at->name, log.key.user, {NULL, 0}};
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
        before_ms = forgotten_before(st, at, &log, times);
    if (!forgot && !before_ms)
        return SESSILE_OK;
    bytes = log.bytes;
    status = store_check_removal(st, &what, &why);
    if (!status && !dry_run)
        status = log_remove_forgotten(&st->backend, st->keys, at->folder, at->name,
                                      before_ms, st->config.timeout_ms, &bytes, &why);
    if (status != SESSILE_BUSY && is_left(status, &why, &held))
        return SESSILE_OK; /* held, another one by now, or somebody was quicker */
    if (status && err)
        *err = why;
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
    erasure_times times;
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
    status = erasure_times_read(&times, st, err);
    if (status) {
        erasure_times_deinit(&times);
        return status;
    }
    status = places_find(&logs, st, agent.size ? folder : NULL, err);
    for (size_t i = 0; !status && i < logs.count; i++)
        status =
            purge_forgotten_log(st, &logs.list[i], &times, dry_run, count, bytes, err);
    places_deinit(&logs);
    erasure_times_deinit(&times);
    return status;
}
