/*
 * watch.c: which sessions are watched, by whom, and who is due.
 *
 * A session is looked at when it may have news: a call of this server on it has ended, a
 * follower has begun or takes more, or the store says that its log has grown
 * (watch_ask.c).
 *
 * A worker that has a track (TRACK_BUSY) is the only one that touches the second half of
 * its struct. At most half of the workers serve watchers at one time, so that other calls
 * do not wait for thousands of streams that begin.
 */
#include "service/shares.h"
#include "service/watch.h"

#include <time.h>

enum { TRACKS_A_JOB = 32 }; /* then other jobs of the session have their turn */

static void run_job(job *j);

/* ---------------------------------------------------------------------- what is due */

static void give_to_workers(watch *w)
{
    while (w->first && w->working < w->most) {
        watched *one = w->first;
        w->first = one->ready;
        if (!w->first)
            w->last = NULL;
        w->working++;
        pool_put(w->server->pool, &one->job);
    }
}

void watch_queue(watch *w, watched *one)
{
    if (one->queued)
        return;
    one->queued = 1;
    one->ready = NULL;
    *(w->last ? &w->last->ready : &w->first) = one;
    w->last = one;
    give_to_workers(w);
}

static void make_due(watch *w, track *t)
{
    watched *one = t->of;
    if (!one || t->state == TRACK_DUE)
        return;
    if (t->state == TRACK_BUSY) {
        t->again = 1;
        return;
    }
    t->state = TRACK_DUE;
    t->due = NULL;
    *(one->last_due ? &one->last_due->due : &one->first_due) = t;
    one->last_due = t;
    watch_queue(w, one);
}

static track *take_due(watched *one)
{
    track *t = one->first_due;
    if (!t)
        return NULL;
    one->first_due = t->due;
    if (!one->first_due)
        one->last_due = NULL;
    t->state = TRACK_BUSY;
    t->again = 0;
    return t;
}

/* There are `end` entries: who was not sent them is due. */
static void wake(watch *w, watched *one, sessile_id end)
{
    if (end <= one->end)
        return;
    one->end = end;
    for (track *t = one->newest; t; t = t->older)
        if (t->state == TRACK_BUSY || (t->state == TRACK_IDLE && t->next < end))
            make_due(w, t);
}

static void wake_all(watch *w, watched *one)
{
    for (track *t = one->newest; t; t = t->older)
        if (t->state != TRACK_PAUSED)
            make_due(w, t);
}

void watch_wake(watch *w, watched *one)
{
    for (track *t = one->newest; t; t = t->older) {
        if (t->state == TRACK_IDLE)
            t->doubt = 1;
        if (t->state == TRACK_IDLE || t->state == TRACK_BUSY)
            make_due(w, t);
    }
}

void watch_poke(watch *w, sessile_session *session)
{
    const sessile_session_options names = {.id = sessile_session_id(session),
                                           .agent = sessile_session_agent(session),
                                           .user = sessile_session_user(session)};
    pthread_mutex_lock(&w->mutex);
    watched *one = watched_first(w, &names);
    pthread_mutex_unlock(&w->mutex);
    if (!one)
        return;
    const sessile_id end = sessile_session_length(session);
    pthread_mutex_lock(&w->mutex);
    one = watched_first(w, &names); /* what is there by now */
    for (; one; one = watched_next(one, &names))
        wake(w, one, end);
    pthread_mutex_unlock(&w->mutex);
}

/* ---------------------------------------------------------------------- followers */

/* Nothing more is sent to it. Its tracks are closed by workers. */
static void end_follower(watch *w, follower *f, sessile_status status,
                         const sessile_error *err)
{
    if (f->ended)
        return;
    f->ended = 1;
    f->status = status;
    f->paused = NULL;
    if (err)
        f->err = *err;
    for (size_t i = 0; i < f->count; i++)
        make_due(w, &f->tracks[i]);
}

static void on_drained(call *c)
{
    watch *w = c->server->watch;
    follower *f = c->own;
    pthread_mutex_lock(&w->mutex);
    track *t = f->paused;
    f->paused = NULL;
    while (t) {
        track *next = t->paused;
        make_due(w, t);
        t = next;
    }
    pthread_mutex_unlock(&w->mutex);
}

static void on_gone(call *c)
{
    watch *w = c->server->watch;
    sessile_error err;
    fail(&err, SESSILE_CANCELLED, "the client has gone");
    pthread_mutex_lock(&w->mutex);
    end_follower(w, c->own, SESSILE_CANCELLED, &err);
    pthread_mutex_unlock(&w->mutex);
}

static void free_follower(call *c)
{
    follower *f = c->own;
    shares_give(c->server->shares, SHARE_WATCHES, f->count, f->share);
    mem_free(&c->server->alloc, f, f->size);
}

const call_stream watch_stream = {NULL, NULL, on_drained, on_gone, free_follower};

static void unlink_track(watched *one, track *t)
{
    *(t->newer ? &t->newer->older : &one->newest) = t->older;
    if (t->older)
        t->older->newer = t->newer;
    t->of = NULL;
    t->state = TRACK_IDLE;
}

static void link_track(watched *one, track *t)
{
    t->of = one;
    t->newer = NULL;
    t->older = one->newest;
    if (one->newest)
        one->newest->newer = t;
    one->newest = t;
}

/* Forgets what was made for a follower that cannot begin. */
static void take_back(watch *w, follower *f)
{
    for (size_t i = 0; i < f->count; i++) {
        watched *one = f->tracks[i].of;
        if (!one)
            continue;
        unlink_track(one, &f->tracks[i]);
        if (!one->newest)
            watch_queue(w, one); /* a worker frees it */
    }
}

sessile_status watch_begin(watch *w, follower *f, const sessile_session_options *names,
                           sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    call *c = f->call;
    pthread_mutex_lock(&w->mutex);
    if (w->draining)
        status = fail(err, SESSILE_BUSY, "the server is ending: ask another one");
    for (size_t i = 0; i < f->count && !status; i++) {
        watched *one = watched_find(w, &names[i]);
        if (!one && w->count >= WATCHED_MOST)
            status = fail(err, SESSILE_LIMIT,
                          "this server watches %d sessions, which is the most: ask "
                          "another one",
                          WATCHED_MOST);
        else if (!one && !(one = watched_new(w, &names[i], f->tracks[i].lane, run_job)))
            status = fail_nomem(err);
        if (!status)
            link_track(one, &f->tracks[i]);
    }
    if (status) {
        take_back(w, f);
    } else {
        f->left = f->there = f->count;
        call_stay(c, &watch_stream, f);
        for (size_t i = 0; i < f->count; i++)
            make_due(w, &f->tracks[i]);
        if (rpc_call_over(c->rpc))
            end_follower(w, f, SESSILE_CANCELLED, NULL);
    }
    pthread_mutex_unlock(&w->mutex);
    return status;
}

/* ---------------------------------------------------------------------- workers */

/* Closes a track that ended, and its call with the last one. */
static void close_track(watch *w, track *t)
{
    follower *f = t->by;
    watched *one = t->of;
    pthread_mutex_unlock(&w->mutex);
    (void)sessile_session_close(t->session, NULL);
    pthread_mutex_lock(&w->mutex);
    t->session = NULL;
    unlink_track(one, t);
    if (--f->left > 0)
        return;
    pthread_mutex_unlock(&w->mutex);
    call_leave(f->call, f->status, &f->err);
    pthread_mutex_lock(&w->mutex);
}

/* What follows from what a worker found. */
static void settle(watch *w, track *t, track_result result, sessile_id end,
                   const sessile_error *err)
{
    watched *one = t->of;
    follower *f = t->by;
    const int again = t->again;
    if (result == TRACK_GONE) {
        /* A session of the same name may be there by now. Who asks from now on sees that
         * one. */
        watched_leave(w, one);
        wake_all(w, one);
        if (--f->there == 0)
            end_follower(w, f, f->single ? SESSILE_NOTFOUND : SESSILE_OK, err);
        close_track(w, t);
        return;
    }
    t->state = TRACK_IDLE;
    if (result == TRACK_FAILED)
        end_follower(w, f, err->code, err);
    wake(w, one, end);
    if (!f->ended && result == TRACK_FULL && call_is_full(f->call)) {
        /* on_drained() comes later: it needs the mutex. */
        t->state = TRACK_PAUSED;
        t->paused = f->paused;
        f->paused = t;
    } else if (f->ended || result != TRACK_CAUGHT_UP || again || t->next < one->end) {
        make_due(w, t);
    }
}

void watch_opened(watch *w, watched *one, kept *k)
{
    pthread_mutex_lock(&w->mutex);
    one->kept = k;
    pthread_mutex_unlock(&w->mutex);
}

static void serve_due(watch *w, watched *one)
{
    track *t;
    for (int i = 0; i < TRACKS_A_JOB && (t = take_due(one)); i++) {
        sessile_error err;
        sessile_id end = 0;
        if (t->by->ended) {
            close_track(w, t);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        error_clear(&err);
        track_result result = track_serve(w, t, &end, &err);
        pthread_mutex_lock(&w->mutex);
        settle(w, t, result, end, &err);
    }
}

static void run_job(job *j)
{
    watched *one = (watched *)j;
    watch *w = one->watch;
    kept *unused = NULL;
    pthread_mutex_lock(&w->mutex);
    serve_due(w, one);
    w->working--;
    one->queued = 0;
    const int over = !one->newest && !one->pins;
    const int gone = !one->listed;
    if (one->first_due) {
        watch_queue(w, one);
    } else if (over) {
        watched_leave(w, one);
        unused = one->kept;
    }
    give_to_workers(w);
    pthread_mutex_unlock(&w->mutex);
    if (!over)
        return;
    if (unused)
        keep_give(w->server->keep, unused, !gone);
    mem_free(&w->server->alloc, one, one->size);
}

/* ---------------------------------------------------------------------- as a whole */

sessile_status watch_open(watch **out, service *s, sessile_error *err)
{
    pthread_condattr_t monotonic;
    watch *w = mem_zalloc(&s->alloc, sizeof *w);
    *out = w;
    if (!w)
        return fail_nomem(err);
    w->server = s;
    w->most = s->settings.workers > 1 ? s->settings.workers / 2 : 1;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return SESSILE_OK;
}

void watch_drain(watch *w)
{
    sessile_error err;
    fail(&err, SESSILE_BUSY,
         "the server is ending: go on, at any server, from the entry after the last that "
         "was seen of each session");
    pthread_mutex_lock(&w->mutex);
    w->draining = 1;
    for (size_t i = 0; i < WATCH_TABLE; i++)
        for (watched *one = w->table[i]; one; one = one->same)
            for (track *t = one->newest; t; t = t->older)
                end_follower(w, t->by, SESSILE_BUSY, &err);
    pthread_mutex_unlock(&w->mutex);
}

void watch_close(watch *w)
{
    if (!w)
        return;
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->wake);
    mem_free(&w->server->alloc, w, sizeof *w);
}

size_t watch_count(watch *w)
{
    pthread_mutex_lock(&w->mutex);
    size_t count = w->count;
    pthread_mutex_unlock(&w->mutex);
    return count;
}
