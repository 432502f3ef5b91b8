/*
 * server.c: which server answers, and whether what it shows can be relied on.
 *
 * Owns two rules of a database that has standbys.
 *
 * A primary that was replaced may live on, reachable and unaware. It can acknowledge
 * nothing where it waits for a synchronous standby, but it answers reads, with the past.
 * Each promotion begins a new timeline, so a connection learns the timeline of its
 * server, and the store remembers the newest. Older connections are refused or closed,
 * and nothing that comes by one of them is believed. A store that never met the new
 * primary cannot know: it reads the past, and its writes wait for a standby that has
 * gone.
 *
 * A commit that waits for a standby is hidden from all until the standby has it; a
 * primary that was started again shows it before. So on a server that was started since
 * the store saw one, the first thing is a commit of ours (SETTLE): when it is
 * acknowledged, the standby has all that was committed before. Until then nothing is
 * shown, and calls end when their time is up. Where no commit waits for standbys there is
 * nothing to wait for.
 */
#include "store/postgres/postgres.h"

#include <string.h>

int pg_is_old(pg_store *ps, const pg_conn *c)
{
    pthread_mutex_lock(&ps->mutex);
    int old = c->timeline != 0 && c->timeline < ps->server.timeline;
    pthread_mutex_unlock(&ps->mutex);
    return old;
}

sessile_status pg_meet(pg_store *ps, pg_conn *c, sessile_error *err)
{
    int host = pg_url_host(&ps->url, ps->lib.PQhost(c->pg), ps->lib.PQport(c->pg));
    int other = 0;
    pthread_mutex_lock(&ps->mutex);
    uint32_t newest = ps->server.timeline;
    if (c->timeline > newest) {
        ps->server.timeline = c->timeline;
        other = newest != 0;
    }
    if (!c->standby && c->timeline >= newest) {
        ps->server.host = host;
        if (ps->server.started == 0)
            ps->server.settled = c->started;
        other |= ps->server.started != 0 && ps->server.started != c->started;
        ps->server.started = c->started;
    }
    pthread_mutex_unlock(&ps->mutex);
    if (c->timeline != 0 && c->timeline < newest) {
        return fail(err, SESSILE_IO,
                    "%s: a server answers that was replaced (timeline %lu, and a server "
                    "of timeline %lu was seen): stop it, or make it a standby",
                    ps->url.where, (unsigned long)c->timeline, (unsigned long)newest);
    }
    if (other)
        keep_begin_era(&ps->keep);
    c->era = keep_era(&ps->keep);
    return SESSILE_OK;
}

static int needs_settling(pg_store *ps, const pg_conn *c)
{
    pthread_mutex_lock(&ps->mutex);
    int needs = c->replicated && !c->standby && ps->server.settled != c->started;
    pthread_mutex_unlock(&ps->mutex);
    return needs;
}

pg_ended pg_make_safe(pg_call *call, pg_conn *c)
{
    pg_store *ps = call->ps;
    pg_results r;
    if (call->blind || !needs_settling(ps, c))
        return PG_ANSWERED;
    pg_call mine = *call;
    pg_keep_back(&mine, PG_END_MS);
    pg_step s = pg_step_of(PG_SETTLE);
    pg_ended ended = pg_answer(&mine, c, &s, 1, &r);
    if (ended != PG_ANSWERED)
        return ended;
    /* Refused: the tables are not there, or we may only read and cannot wait. */
    pg_results_free(ps, &r);
    pthread_mutex_lock(&ps->mutex);
    ps->server.settled = c->started;
    pthread_mutex_unlock(&ps->mutex);
    return PG_ANSWERED;
}

sessile_status pg_say_unsafe(pg_call *call, pg_ended ended, sessile_error *err)
{
    if (ended == PG_STOPPED)
        return pg_say_late(call, ended, "a standby", err);
    return fail(err, SESSILE_BUSY,
                "%s was started again and waits for its standby, which may lack what is "
                "seen there: nothing is shown until the standby is back, or until "
                "synchronous_standby_names no longer names it",
                call->ps->url.where);
}
