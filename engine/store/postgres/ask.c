/*
 * ask.c: runs statements that change nothing, again on another connection when one
 * breaks.
 */
#include "store/postgres/postgres.h"

#include <string.h>

sessile_status pg_ask(pg_call *call, const pg_step *steps, int count, const char *what,
                      pg_results *out, sessile_error *err)
{
    pg_store *ps = call->ps;
    memset(out, 0, sizeof *out);
    for (int tries = 0;; tries++) {
        pg_conn *c;
        pg_pause(call, tries);
        sessile_status status = pg_take(call, &c, err);
        if (status)
            return status;
        pg_ended ended = pg_answer(call, c, steps, count, out);
        if (ended != PG_ANSWERED) {
            pg_discard(ps, c);
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
