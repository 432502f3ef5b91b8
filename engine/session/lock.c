/*
 * lock.c: takes a handle for a call, and refuses handles that can no longer be used.
 *
 * Must never wait longer than the call may (wait.c).
 */
#include "session/fold.h"

#include <inttypes.h>

#include "base/text.h"

sessile_status session_check_process(const sessile_session *s, sessile_error *err)
{
    if (s->store->os->pid(s->store->os->ud) != s->identity.pid)
        return session_fail(s, err, SESSILE_FORKED,
                            "this handle was opened by process %" PRIu32
                            ": open another one here",
                            s->identity.pid);
    return SESSILE_OK;
}

int session_was_forgotten(const sessile_session *s)
{
    sessile_store *st = s->store;
    size_t count = atomic_load(&st->forgotten_count);
    int found = 0;

    if (!s->identity.user_size || count == s->forgotten_before)
        return 0;
    pthread_mutex_lock(&st->mutex);
    for (size_t i = s->forgotten_before; i < count && !found; i++)
        found = st->forgotten[i] == hash64(s->identity.user, s->identity.user_size);
    pthread_mutex_unlock(&st->mutex);
    return found;
}

/* A scan that a fold ended shows the same entries again at the next, so want of memory is
 * made up for by itself; what is not is a gap. */
sessile_status session_check_usable(const sessile_session *s, sessile_error *err)
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

sessile_status session_lock(sessile_session *s, sessile_error *err)
{
    session_wait w = session_wait_begin(s, 0, 0);

    return session_lock_within(s, &w, err);
}

sessile_status session_lock_within(sessile_session *s, session_wait *w,
                                   sessile_error *err)
{
    sessile_status status = session_check_process(s, err);

    return status ? status : session_wait_turn(s, w, err);
}

void session_unlock(sessile_session *s)
{
    pthread_mutex_unlock(&s->mutex);
}
