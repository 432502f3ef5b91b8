/*
 * ask.c: runs statements that change nothing, or nothing that must be kept, again on
 * another connection when one breaks.
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* A settling that nobody waits for any more need not wait on: nothing hangs on it, and
 * the connections of a server are few. */
void pg_end_process(pg_store *ps, int32_t pid, int64_t since)
{
    pg_call call = pg_call_of(ps, 0);
    call.blind = 1;
    pg_step s = pg_step_of(PG_END);
    pg_results r;
    pg_arg_int(&s, (uint64_t)pid);
    pg_arg_int(&s, (uint64_t)since);
    if (pid != 0 && !pg_ask(&call, &s, 1, "a connection", &r, NULL))
        pg_results_free(ps, &r);
}

static sessile_status ask(pg_call *call, const pg_step *steps, int count, int settling,
                          const char *what, pg_results *out, sessile_error *err)
{
    pg_store *ps = call->ps;
    memset(out, 0, sizeof *out);
    if (settling)
        pg_keep_back(call, PG_END_MS);
    for (int tries = 0;; tries++) {
        pg_conn *c;
        pg_pause(call, tries);
        sessile_status status = pg_take(call, &c, err);
        if (status)
            return status;
        int32_t pid = c->pid;
        int64_t since = c->since;
        pg_ended ended = pg_answer(call, c, steps, count, out);
        if (ended != PG_ANSWERED) {
            pg_discard(ps, c);
            if (settling)
                pg_end_process(ps, pid, since);
            if (ended != PG_LOST)
                return pg_say_late(call, ended, what, err);
            if (tries > 0 && pg_over(ps, call->until_us)) {
                return fail(err, SESSILE_IO,
                            "the connection to %s broke while %s was asked for: try "
                            "again when it is there",
                            ps->url.where, what);
            }
            continue; /* nothing was changed: it is asked again */
        }
        pg_give(ps, c);
        if (!out->wrong)
            return SESSILE_OK;
        status = pg_say(call, out->wrong, what, err);
        pg_results_free(ps, out);
        return status;
    }
}

sessile_status pg_ask(pg_call *call, const pg_step *steps, int count, const char *what,
                      pg_results *out, sessile_error *err)
{
    return ask(call, steps, count, 0, what, out, err);
}

sessile_status pg_settle(pg_call *call, const pg_step *steps, int count, const char *what,
                         pg_results *out, sessile_error *err)
{
    call->primary = 1;
    return ask(call, steps, count, 1, what, out, err);
}

sessile_status pg_put(pg_call *call, const pg_step *steps, int count, const char *what,
                      pg_results *out, sessile_error *err)
{
    pg_step all[PG_PUT_MOST + 1] = {pg_step_of(PG_UNSYNCED)};
    for (int i = 0; i < count; i++)
        all[i + 1] = steps[i];
    sessile_status status = pg_ask(call, all, count + 1, what, out, err);
    if (!status) {
        call->ps->lib.PQclear(out->of[0]);
        memmove(out->of, out->of + 1, (size_t)count * sizeof *out->of);
        out->of[count] = NULL;
        out->count = count;
    }
    return status;
}
