/*
 * wait.c: how long a call waits, and what ends the wait.
 *
 * A call may wait for three things: its turn in the handle, which one thread has at a
 * time; the log's lock, which other handles hold; and a sync that another thread is
 * making. The first two share the call's timeout. All three check every few milliseconds
 * whether sessile_interrupt() was called since the call began.
 *
 * Must never end a call that need not wait, nor a sync that the call makes itself: a sync
 * that has begun is completed, because otherwise nobody would know its result.
 */
#include "session/fold.h"

#include "base/text.h"

/* Threads in one handle hold each other up for as long as a read takes. So a call waits
 * at least this long for them, even if its timeout is 0. */
#define TURN_LEAST_MS 100

session_wait session_wait_begin(session_core *s, int has_timeout, int timeout_ms)
{
    return (session_wait){
        .timeout_ms = has_timeout ? timeout_ms : atomic_load(&s->waiting.timeout_ms),
        .interrupts = atomic_load(&s->waiting.interrupts),
    };
}

static uint64_t now_us(const session_core *s)
{
    return s->store->os->clock_us(s->store->os->ud);
}

int session_wait_left(const session_core *s, const session_wait *w)
{
    if (w->timeout_ms <= 0 || !w->since_us)
        return w->timeout_ms;
    uint64_t gone_ms = (now_us(s) - w->since_us) / 1000;
    return gone_ms < (uint64_t)w->timeout_ms ? w->timeout_ms - (int)gone_ms : 0;
}

static int interrupted(const session_core *s, const session_wait *w)
{
    return atomic_load(&s->waiting.interrupts) != w->interrupts;
}

void session_wait_set(session_core *s, const session_wait *w)
{
    s->waiting.call = w;
    atomic_store(&s->waiting.thread, w ? (uintptr_t)pthread_self() : 0);
}

/* A store may also ask inside a sync, which another thread makes without the mutex: then
 * the wait is that of somebody else, and may end any moment. */
int session_interrupted_locked(void *session)
{
    session_core *s = session;

    return atomic_load(&s->waiting.thread) == (uintptr_t)pthread_self() &&
           s->waiting.call && interrupted(s, s->waiting.call);
}

int session_sync_stopped(void *arg)
{
    const session_syncing *syncing = arg;

    return interrupted(syncing->s, syncing->wait);
}

/*
 * Where the append is the only fence, a writer that loses reads on and tries again at
 * once, and so do all who lost with it: one of them loses most of the time. So whoever
 * lost a few times steps back for a while, each for another while.
 */
sessile_status session_wait_retry(session_core *s, session_wait *w, int tries,
                                  sessile_error *err)
{
    enum { EAGER = 2, AT_LEAST = 16, LONGEST_MS = 16 };
    unsigned char draw;

    if (!w->since_us)
        w->since_us = now_us(s);
    if (interrupted(s, w))
        return session_fail(
            s, err, SESSILE_CANCELLED,
            "another thread ended this write while others were faster: nothing was "
            "written, do it again when you want it");
    if (tries >= AT_LEAST && session_wait_left(s, w) == 0)
        return session_fail(s, err, SESSILE_BUSY,
                            "other writers were faster %d times: wait longer, or "
                            "try again",
                            tries + 1);
    if (tries < EAGER)
        return SESSILE_OK;
    random_bytes(&draw, 1);
    int most = tries - EAGER < 4 ? 1 << (tries - EAGER) : LONGEST_MS;
    s->store->os->sleep_ms(s->store->os->ud, draw % (most + 1));
    return SESSILE_OK;
}

sessile_status session_wait_turn(session_core *s, session_wait *w, sessile_error *err)
{
    int64_t most_ms = w->timeout_ms < TURN_LEAST_MS ? TURN_LEAST_MS : w->timeout_ms;

    if (pthread_mutex_trylock(&s->mutex) == 0)
        return SESSILE_OK;
    if (!w->since_us)
        w->since_us = now_us(s);
    while (!os_mutex_slice(&s->mutex)) {
        if (interrupted(s, w))
            return session_fail(
                s, err, SESSILE_CANCELLED,
                "waiting for other threads in this handle was ended by another "
                "thread: nothing was done, do it again when you want it");
        if (w->timeout_ms >= 0 && now_us(s) - w->since_us >= (uint64_t)most_ms * 1000)
            return session_fail(
                s, err, SESSILE_BUSY,
                "another thread is using this handle, and may itself wait for a "
                "writer: wait longer, or open a handle for each thread");
    }
    return SESSILE_OK;
}
