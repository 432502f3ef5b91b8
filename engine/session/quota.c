/*
 * quota.c: how many sessions an agent may have: the limit [sessions_per_agent].
 *
 * The problem: a store has no lock over all logs of an agent, and two creators that count
 * first and create afterwards can both take the last place. The choice: each counts
 * before it creates, and again afterwards. Whoever sees too many removes its own new log.
 * The creator that finishes last sees the logs of all others, so the limit holds. Two
 * that meet at the last place may both be refused. Rejected: a lock in every backend, for
 * a limit that most stores do not have.
 *
 * Logs are counted, not read: a session that is deleted softly, or that cannot be opened,
 * takes its place too. Must never remove a log to which somebody else has written.
 */
#include "session/quota.h"

#include <inttypes.h>
#include <string.h>

#include "log/log.h"

typedef struct tally {
    const char *own; /* the name of a log that does not count */
    uint64_t others;
} tally;

static int count_log(void *arg, const char *folder, const char *name)
{
    tally *t = arg;

    (void)folder;
    t->others += strcmp(name, t->own) != 0;
    return 0;
}

sessile_status quota_check(store_core *st, const session_names *names, sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE], shown[NAME_SHOWN];
    uint64_t most = st->limits.sessions_per_agent;
    tally t = {name, 0};
    sessile_status status;

    if (!most)
        return SESSILE_OK;
    names_place(st, names, folder, name);
    status = st->backend.table->list(st->backend.self, folder, count_log, &t, err);
    if (status || t.others < most)
        return status;
    name_show(names->agent, shown);
    return fail(err, SESSILE_LIMIT,
                "agent %s has %" PRIu64
                " sessions, softly deleted ones included, and the "
                "limit [sessions_per_agent] is %" PRIu64
                ": delete one permanently, or raise the limit",
                shown, t.others, most);
}

sessile_status quota_keep(store_core *st, const session_names *names, uint64_t bytes,
                          sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_error why = {0};
    const log_ending made = {.bytes = bytes};
    sessile_status status = quota_check(st, names, &why), removed;

    if (status != SESSILE_LIMIT)
        return SESSILE_OK; /* it was made: what could not be counted is no error now */
    names_place(st, names, folder, name);
    removed = log_remove(&st->backend, st->keys, folder, name, &made,
                         st->config.timeout_ms, &bytes, NULL);
    if (removed && removed != SESSILE_NOTFOUND)
        return SESSILE_OK; /* written to, or nothing can be removed: it stays */
    return fail(err, status, "%s", why.message);
}
