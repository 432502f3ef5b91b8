/*
 * change.c: changes whose answer was lost: made once, or not at all.
 *
 * Owns what is done when a connection breaks, or time is up, between the sending of a
 * change and its answer. Then nobody on this side knows whether it took place, is taking
 * place, or lies in a buffer on the way to a server process that will find it later.
 * Must never say that something did not happen which may happen still.
 *
 * What settles it:
 *  1. The server is asked, over a new connection, to end the old one's process, until
 *     there is none of that number that began at that time. A process that is gone
 *     neither commits nor reads what was sent to it: from then on the data do not move by
 *     our hand. It has told all others before it is gone whether it committed. One that
 *     waits for synchronous standbys with its commit is not ended: that would show all
 *     others a change that one machine has.
 *  2. Then the data are looked at (the probe): they hold the change or not. If they do,
 *     it took place, once. If not, it never will, and the change can be sent again while
 *     there is time.
 *  3. A change can be seen that no standby has: when the server was started again, or
 *     somebody ended the wait of its commit. So what is found is acknowledged only when a
 *     commit of ours behind it (SETTLE) has been through that wait, and it is still there
 *     then: a standby may have taken the primary's place. pg_sync() does so for what a
 *     handle has read.
 * Standbys are not asked any of this: they know of no process of the primary's, and may
 * not have got what it committed.
 * Where the old process cannot be ended (a pooler or a server that does not tell), every
 * change is still conditional in itself: it names the state that it starts from, and
 * leaves another one. Of two of the same kind that meet, the later waits for the first
 * at the row, looks again, and changes nothing. So sending it again is safe, and after
 * its answer the state is one from which the straggler can do nothing either: the end of
 * a log never comes back to where it was, since logs only grow, and the number of a log
 * is never used again. Only when that answer does not come in time is the outcome
 * unknown, and the caller gets PG_UNKNOWN.
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* Of a call's time, how much is kept to learn what became of a change. */
enum { GRACE_MS = 1500, PAUSE_MS = 3, PAUSE_MOST_MS = 50 };

/* What is known of the process behind a connection that is gone. */
typedef struct old_process {
    int32_t pid;
    int64_t since;
} old_process;

/* 1: that process is gone. 0: unknown. */
static int buried(pg_call *call, old_process old)
{
    pg_store *ps = call->ps;
    for (int tries = 0; old.pid != 0; tries++) {
        pg_results r;
        pg_step s = pg_step_of(PG_BURY);
        pg_arg_int(&s, (uint64_t)old.pid);
        pg_arg_int(&s, (uint64_t)old.since);
        call->blind = 1;
        sessile_status status = pg_ask(call, &s, 1, "a broken connection", &r, NULL);
        call->blind = 0;
        if (status)
            return 0;
        int rows = pg_rows(ps, r.of[0]);
        pg_results_free(ps, &r);
        if (rows == 0)
            return 1;
        if (pg_over(ps, call->answer_us))
            return 0;
        ps->os->sleep_ms(ps->os->ud, tries < 20 ? PAUSE_MS : PAUSE_MOST_MS);
    }
    return 0;
}

static sessile_status unknown(const pg_store *ps, const char *what, int *took,
                              sessile_error *err)
{
    *took = PG_UNKNOWN;
    return fail(
        err, SESSILE_IO,
        "the connection to %s broke while %s was changed, and nobody could tell in "
        "time whether that took place: " STORE_LOOK_AGAIN,
        ps->url.where, what);
}

/* It took place: is it kept as well as what is answered? */
static sessile_status took_place(pg_call *call, const char *what, pg_probe probe,
                                 void *arg, int *took, sessile_error *err)
{
    pg_results r;
    pg_step s = pg_step_of(PG_SETTLE);
    int yes = 0;
    if (pg_settle(call, &s, 1, what, &r, NULL))
        return unknown(call->ps, what, took, err);
    pg_results_free(call->ps, &r);
    if (probe(call, arg, &yes, NULL) || !yes)
        return unknown(call->ps, what, took, err);
    *took = PG_TOOK_PLACE;
    return SESSILE_OK;
}

/* Time is up, or somebody asked to stop, with a change on its way. */
static sessile_status give_up(pg_call *call, pg_ended ended, old_process old,
                              const char *what, pg_probe probe, void *arg, int *took,
                              sessile_error *err)
{
    pg_call grace = pg_call_of(call->ps, GRACE_MS);
    int yes = 0;
    grace.primary = 1;
    if (!buried(&grace, old) || probe(&grace, arg, &yes, NULL))
        return unknown(call->ps, what, took, err);
    if (yes)
        return took_place(&grace, what, probe, arg, took, err);
    return pg_say_late(call, ended, what, err);
}

sessile_status pg_change(pg_call *call, const pg_step *steps, int count, const char *what,
                         pg_probe probe, void *arg, pg_results *out, int *took,
                         sessile_error *err)
{
    pg_store *ps = call->ps;
    int maybe = 0; /* an earlier try may have taken place, or may come still */
    memset(out, 0, sizeof *out);
    *took = PG_AS_ANSWERED;
    pg_keep_back(call, GRACE_MS);
    for (int tries = 0;; tries++) {
        pg_conn *c;
        int yes = 0;
        pg_pause(call, tries);
        sessile_status status = pg_take(call, &c, err);
        if (status)
            return maybe ? unknown(ps, what, took, err) : status;
        old_process old = {c->pid, c->since};
        pg_ended ended = pg_answer(call, c, steps, count, out);
        if (ended == PG_ANSWERED) {
            pg_give(ps, c);
            if (maybe && probe(call, arg, &yes, err)) {
                pg_results_free(ps, out);
                return unknown(ps, what, took, err);
            }
            if (yes) {
                pg_results_free(ps, out);
                return took_place(call, what, probe, arg, took, err);
            }
            if (!out->wrong)
                return SESSILE_OK;
            status = pg_say(call, out->wrong, what, err);
            pg_results_free(ps, out);
            return maybe ? unknown(ps, what, took, err) : status;
        }
        pg_discard(ps, c);
        if (ended != PG_LOST)
            return give_up(call, ended, old, what, probe, arg, took, err);
        maybe = 1;
        call->primary = 1;
        if (buried(call, old)) {
            if (probe(call, arg, &yes, err))
                return unknown(ps, what, took, err);
            if (yes)
                return took_place(call, what, probe, arg, took, err);
            maybe = 0;
        }
        if (pg_over(ps, call->until_us)) {
            return maybe ? unknown(ps, what, took, err)
                         : fail(err, SESSILE_IO,
                                "the connection to %s broke, and %s was not changed: try "
                                "again when it is there",
                                ps->url.where, what);
        }
    }
}

sessile_status pg_change_row(pg_call *call, const pg_step *steps, int count, int row,
                             const char *what, pg_probe probe, void *arg, int *took,
                             int *done, sessile_error *err)
{
    pg_results r;
    sessile_status status =
        pg_change(call, steps, count, what, probe, arg, &r, took, err);
    *done = !status;
    if (*done && *took == PG_AS_ANSWERED) {
        *done = pg_rows(call->ps, r.of[row]) > 0;
        pg_results_free(call->ps, &r);
    }
    return status;
}

sessile_status pg_change_making(pg_call *call, const pg_step *steps, int count,
                                const char *what, pg_probe probe, void *arg,
                                pg_results *out, int *took, sessile_error *err)
{
    call->absent = 0;
    sessile_status status =
        pg_change(call, steps, count, what, probe, arg, out, took, err);
    if (status && call->absent && *took != PG_UNKNOWN) {
        status = pg_schema_make(call, err);
        if (!status) {
            call->absent = 0;
            status = pg_change(call, steps, count, what, probe, arg, out, took, err);
        }
    }
    return status;
}
