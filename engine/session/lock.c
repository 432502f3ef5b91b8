/*
 * lock.c: takes a handle for a call, and refuses handles that can no longer be used.
 *
 * Must never wait longer than the call may (wait.c).
 */
#include "session/fold.h"

#include <inttypes.h>

sessile_status session_check_process(const session_core *s, sessile_error *err)
{
    if (s->store->os->pid(s->store->os->ud) != s->identity.pid)
        return session_fail(s, err, SESSILE_FORKED,
                            "this handle was opened by process %" PRIu32
                            ": open another one here",
                            s->identity.pid);
    return SESSILE_OK;
}

int session_was_forgotten(const session_core *s)
{
    return store_handle_forgot(s->store,
                               (sessile_slice){s->identity.user, s->identity.user_size},
                               s->forgotten_before);
}

/* A scan that a fold ended shows the same entries again at the next, so want of memory is
 * made up for by itself; what is not is a gap. */
sessile_status session_check_usable(const session_core *s, sessile_error *err)
{
    if (s->fold.broken)
        return session_fail(s, err, SESSILE_IO,
                            "this handle lost its place in the "
                            "log: close it and resume the session");
    if (session_was_forgotten(s))
        return session_fail(s, err, SESSILE_SEALED,
                            "the secret of this user was forgotten: nothing more "
                            "is read or written");
    return SESSILE_OK;
}

sessile_status session_lock(session_core *s, sessile_error *err)
{
    session_wait w = session_wait_begin(s, 0, 0);

    return session_lock_within(s, &w, err);
}

sessile_status session_lock_within(session_core *s, session_wait *w, sessile_error *err)
{
    sessile_status status = session_check_process(s, err);

    return status ? status : session_wait_turn(s, w, err);
}

void session_unlock(session_core *s)
{
    pthread_mutex_unlock(&s->mutex);
}
