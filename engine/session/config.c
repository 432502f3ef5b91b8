/*
 * config.c: checks configurations. A run inherits from its session, a session from its
 * store.
 */
#include "session/config.h"

#include <inttypes.h>
#include <string.h>

#include "base/counted.h"
#include "session/triggers.h"
#include "store/open.h"

const sessile_config config_defaults = {
    .checkpoint = {.keep = 50},
    .keep_min = 2,
    .has_timeout = 1,
    .timeout_ms = STORE_TIMEOUT_MS,
    .isolation = SESSILE_IN_PROCESS,
};

sessile_status config_check_timeout(int timeout_ms, sessile_error *err)
{
    if (timeout_ms < -1)
        return fail(err, SESSILE_INVALID,
                    "timeout_ms is %d: give milliseconds, or -1 to wait for ever",
                    timeout_ms);
    return SESSILE_OK;
}

static sessile_status check_room(const sessile_config *c, sessile_error *err)
{
    if (c->window && c->reserve >= c->window)
        return fail(err, SESSILE_INVALID,
                    "a reserve of %" PRId64
                    " tokens leaves nothing of a window of %" PRId64 ": make it smaller",
                    c->reserve, c->window);
    return SESSILE_OK;
}

sessile_status config_check(const sessile_config *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    if (c->window < 0 || c->reserve < 0)
        return fail(err, SESSILE_INVALID, "window and reserve are tokens: 0 or more");
    status = check_room(c, err);
    if (status)
        return status;
    if ((unsigned)c->isolation > SESSILE_WORKER)
        return fail(err, SESSILE_INVALID, "isolation is neither IN_PROCESS nor WORKER");
    if (c->has_timeout)
        status = config_check_timeout(c->timeout_ms, err);
    if (!status)
        status = triggers_check(c->triggers, err);
    return status ? status : triggers_check(c->checkpoint.triggers, err);
}

void config_inherit(sessile_config *c, const sessile_config *from)
{
    if (!c->policy)
        c->policy = from->policy;
    if (!c->fallback)
        c->fallback = from->fallback;
    if (!c->triggers)
        c->triggers = from->triggers;
    if (!c->checkpoint.triggers)
        c->checkpoint.triggers = from->checkpoint.triggers;
    if (!c->checkpoint.keep)
        c->checkpoint.keep = from->checkpoint.keep;
    if (!c->window)
        c->window = from->window;
    if (!c->reserve)
        c->reserve = from->reserve;
    if (!c->keep_min)
        c->keep_min = from->keep_min;
    if (!c->has_timeout) {
        c->has_timeout = from->has_timeout;
        c->timeout_ms = from->timeout_ms;
    }
    if (!c->isolation)
        c->isolation = from->isolation;
}

sessile_status config_check_merged(const sessile_config *c, const sessile_config *from,
                                   sessile_error *err)
{
    sessile_config merged = *c;
    config_inherit(&merged, from);
    return check_room(&merged, err);
}

sessile_status config_keep(sessile_config *c, const allocator *a, sessile_error *err)
{
    sessile_triggers *triggers, *checkpoint = NULL;
    sessile_status status = triggers_copy(&triggers, c->triggers, a, err);
    if (!status)
        status = triggers_copy(&checkpoint, c->checkpoint.triggers, a, err);
    if (status) {
        triggers_free(triggers, a);
        memset(c, 0, sizeof *c);
        return status;
    }
    c->triggers = triggers;
    c->checkpoint.triggers = checkpoint;
    counted_retain(c->policy);
    counted_retain(c->fallback);
    return SESSILE_OK;
}

void config_free(sessile_config *c, const allocator *a)
{
    /* its own copies: see config_keep() */
    triggers_free((sessile_triggers *)c->triggers, a);
    triggers_free((sessile_triggers *)c->checkpoint.triggers, a);
    counted_release(c->policy);
    counted_release(c->fallback);
    memset(c, 0, sizeof *c);
}
