/*
 * watch_ask.c: what others have written to sessions that are watched, and what was
 * removed: the store is asked.
 *
 * It is asked once a second about all sessions with one question, by a thread that does
 * nothing else. Sessions that another server says it has written to (watch_look()) are
 * asked about at once, all of them together: however many such calls come, one question
 * is on its way, and none puts off the one about all.
 *
 * The mutex is not held while the store is asked. What the question is about is pinned,
 * so that it stays until the answer is there.
 */
#include "service/watch.h"

#include <time.h>

void watch_look(watch *w, const sessile_session_options *names)
{
    pthread_mutex_lock(&w->mutex);
    watched *one = watched_first(w, names);
    for (; one; one = watched_next(one, names))
        one->doubted = w->doubted = 1;
    if (w->doubted)
        pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}

/* ---------------------------------------------------------------------- a question */

typedef struct question {
    watched **all;
    sessile_session **sessions;
    unsigned char *changed;
    size_t count, room;
} question;

static void question_free(watch *w, question *q)
{
    const allocator *a = &w->server->alloc;
    mem_free(a, q->all, q->room * sizeof *q->all);
    mem_free(a, q->sessions, q->room * sizeof *q->sessions);
    mem_free(a, q->changed, q->room);
}

/* Notes the sessions that are open, all or those in doubt, and pins them. */
static void gather(watch *w, question *q, int all)
{
    const allocator *a = &w->server->alloc;
    q->room = w->count;
    q->count = 0;
    q->all = mem_alloc(a, q->room * sizeof *q->all);
    q->sessions = mem_alloc(a, q->room * sizeof *q->sessions);
    q->changed = mem_zalloc(a, q->room);
    if (!q->all || !q->sessions || !q->changed)
        return;
    for (size_t i = 0; i < WATCH_TABLE; i++)
        for (watched *one = w->table[i]; one; one = one->same)
            if (one->kept && one->newest && (all || one->doubted)) {
                one->doubted = 0;
                one->pins++;
                q->all[q->count] = one;
                q->sessions[q->count++] = kept_session(one->kept);
            }
}

static void ask_store(watch *w, int all)
{
    question q;
    gather(w, &q, all);
    pthread_mutex_unlock(&w->mutex);
    sessile_status status = SESSILE_OK;
    if (q.count)
        status = sessile_changed(w->server->store, q.sessions, q.count, q.changed, NULL);
    pthread_mutex_lock(&w->mutex);
    for (size_t i = 0; i < q.count; i++) {
        watched *one = q.all[i];
        one->pins--;
        if (!status && q.changed[i])
            watch_wake(w, one);
        if (!one->newest)
            watch_queue(w, one);
    }
    question_free(w, &q);
}

/* ---------------------------------------------------------------------- the thread */

static int has_passed(const struct timespec *until)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > until->tv_sec ||
           (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

/* Waits until it is time to ask about all (1), or sessions are in doubt. The clock says
 * when it is time, so that servers which tell of writes without end put nothing off. */
static int wait_to_ask(watch *w, const struct timespec *until)
{
    while (!w->ending && !w->doubted && !has_passed(until))
        (void)pthread_cond_timedwait(&w->wake, &w->mutex, until);
    return has_passed(until);
}

static void *ask_each_second(void *arg)
{
    watch *w = arg;
    const int ms = w->server->settings.look_ms;
    pthread_mutex_lock(&w->mutex);
    while (!w->ending) {
        struct timespec until;
        int all = 0;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ms / 1000;
        until.tv_nsec += ms % 1000 * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        while (!all && !w->ending) {
            all = wait_to_ask(w, &until);
            w->doubted = 0; /* also if those in doubt have gone meanwhile */
            if (!w->ending && w->count > 0)
                ask_store(w, all);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

sessile_status watch_start(watch *w, sessile_error *err)
{
    int why = pthread_create(&w->thread, NULL, ask_each_second, w);
    if (why)
        return fail_errno(err, why, "a thread cannot be started");
    w->started = 1;
    return SESSILE_OK;
}

void watch_stop(watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->ending = 1;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    if (w->started)
        pthread_join(w->thread, NULL);
    w->started = 0;
}
