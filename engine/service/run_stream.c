/*
 * run_stream.c: Run and RunMemory: runs whose clients answer what they need.
 *
 *   worker   the first message begins the run, which is stepped until it needs something
 *   loop     the need is sent; no worker waits for the answer
 *   worker   the answer is given, and the run stepped on; at its end the outcome is sent
 *
 * A run that waits holds the handle of its session and nothing else: other calls of the
 * session go on, and a proposal that came too late is stale. It may be that nobody
 * answers: the client goes, sends no more, or says so; the server ends; too many wait.
 * Then the run is parked, so that Answer goes on with it at any server; what cannot be
 * parked goes on with a failure as its answer.
 *
 * Calls that answer once are served here as well, when the server has a model. It is
 * asked by a worker that holds no session, so the session's other calls need not wait for
 * the answer. What it cannot be asked now, and what nobody waits for any more, is parked.
 */
#include "service/observe.h"
#include "service/runs.h"
#include "service/shares.h"

#include <stddef.h>

#include "base/os.h"

enum { WAITING_MOST = 1000 };

typedef enum run_state {
    RUN_WORKING, /* a worker has it, or will */
    RUN_WAITING, /* for its client */
    RUN_ASKING   /* for the server's model: another worker asks */
} run_state;

typedef struct waiting {
    job job;
    call *call;
    const run_kind *kind;
    begun begun;
    uint64_t share;    /* of shares_give() */
    sessile_need need; /* what it waits for; valid until it is answered */
    /* of the worker that asks */
    job ask;
    sessile_status said; /* of the model */
    buf text;
    uint64_t since_us; /* when it began to wait */
    /* under the mutex of all runs */
    struct waiting *next, *before; /* of those that wait */
    run_state state;
    buf answer;   /* the bytes of the message that came */
    int answered; /* one came; or the model did */
    int nobody;   /* will answer: it is parked */
} waiting;

struct runs {
    service *server;
    pthread_mutex_t mutex; /* all that follows */
    waiting *first;
    size_t count;
    int draining;
};

/* ---------------------------------------------------------------------- who waits */

static void leave_list(runs *r, waiting *w)
{
    *(w->before ? &w->before->next : &r->first) = w->next;
    if (w->next)
        w->next->before = w->before;
    w->next = w->before = NULL;
    r->count--;
}

/* Gives a run that waits to a worker; under the mutex. */
static void wake(runs *r, waiting *w)
{
    leave_list(r, w);
    w->state = RUN_WORKING;
    pool_put(r->server->pool, &w->job);
}

/* 1: it waits from now on. 0: nobody would answer. */
static int begin_to_wait(runs *r, waiting *w)
{
    call *c = w->call;
    pthread_mutex_lock(&r->mutex);
    int can = !r->draining && !w->nobody && r->count < WAITING_MOST &&
              !rpc_call_over(c->rpc) && !atomic_load(&c->half);
    if (can) {
        w->state = RUN_WAITING;
        w->next = r->first;
        if (r->first)
            r->first->before = w;
        r->first = w;
        r->count++;
    }
    pthread_mutex_unlock(&r->mutex);
    return can;
}

static void nobody_answers(call *c)
{
    runs *r = c->server->runs;
    waiting *w = c->own;
    pthread_mutex_lock(&r->mutex);
    w->nobody = 1;
    if (w->state == RUN_WAITING)
        wake(r, w);
    pthread_mutex_unlock(&r->mutex);
}

static void on_message(call *c, const void *data, size_t size)
{
    runs *r = c->server->runs;
    waiting *w = c->own;
    int asked;
    pthread_mutex_lock(&r->mutex);
    asked = w->state == RUN_WAITING;
    if (asked) {
        buf_clear(&w->answer);
        buf_put(&w->answer, data, size);
        w->answered = 1;
        wake(r, w);
    }
    pthread_mutex_unlock(&r->mutex);
    if (!asked) {
        sessile_error err;
        fail(&err, SESSILE_INVALID, "an answer came that was not asked for");
        call_fail(c, &err);
    }
}

static void free_waiting(call *c)
{
    waiting *w = c->own;
    shares_give(c->server->shares, SHARE_RUNS, 1, w->share);
    buf_deinit(&w->answer);
    buf_deinit(&w->text);
    mem_free(&c->server->alloc, w, sizeof *w);
}

static const call_stream run_stream = {on_message, nobody_answers, NULL, nobody_answers,
                                       free_waiting};

/* ---------------------------------------------------------------------- workers */

/* Gives the run what a message answers; *answered 0: nobody does. */
static sessile_status read_reply(waiting *w, const buf *bytes, int *answered,
                                 sessile_error *err)
{
    call *c = w->call;
    ProtobufCMessage *said;
    if (bytes->failed)
        return fail_nomem(err);
    sessile_status status =
        decode_request(c->method->input, bytes->data, bytes->size, &c->arena, &said, err);
    return status ? status : w->kind->reply(c, &w->begun, said, answered, err);
}

/* What the model said, or why it failed; nobody answers if it was not asked. */
static sessile_status take_said(waiting *w, int *answered, sessile_error *err)
{
    const sessile_answer given = {.status = w->said,
                                  .text = {w->text.data, w->text.size}};
    if (w->said == SESSILE_BUSY || w->said == SESSILE_CANCELLED)
        return SESSILE_OK;
    if (w->text.failed)
        return fail_nomem(err);
    *answered = 1;
    return runs_reply(&w->begun, &given, err);
}

/* What it waited for: a model of the client's or the server's, or what the client has. */
static void trace_wait(const waiting *w, int answered)
{
    span wait;
    observe_part(w->call, &wait,
                 w->need.kind == SESSILE_NEED_MODEL   ? "model"
                 : w->need.kind == SESSILE_NEED_EMBED ? "embed"
                                                      : "state",
                 SPAN_CLIENT);
    span_began(&wait, w->since_us);
    if (!answered)
        span_fail(&wait, "nobody answered");
    span_end(&wait);
}

/* Gives the run what came for its need, or parks it. A message that is no answer parks it
 * as well, and ends the call. */
static sessile_status take_answer(waiting *w, int *parked, sessile_error *err)
{
    call *c = w->call;
    runs *r = c->server->runs;
    sessile_status status = SESSILE_OK;
    sessile_error ignored;
    int answered = 0;
    pthread_mutex_lock(&r->mutex);
    const int came = w->answered;
    buf bytes = w->answer;
    buf_init(&w->answer, &c->server->alloc);
    w->answered = 0;
    pthread_mutex_unlock(&r->mutex);
    if (came && w->kind->send_need)
        status = read_reply(w, &bytes, &answered, err);
    else if (came)
        status = take_said(w, &answered, err);
    trace_wait(w, answered);
    if (!answered) {
        sessile_status why = runs_park(&w->begun, &w->need, parked, &ignored);
        if (!status && why) {
            status = why;
            if (err)
                *err = ignored;
        }
    }
    buf_deinit(&bytes);
    return status;
}

/* Asks the server's model, and no worker has the session meanwhile. */
static void ask_model(job *j)
{
    waiting *w = (waiting *)((char *)j - offsetof(waiting, ask));
    runs *r = w->call->server->runs;
    buf_clear(&w->text);
    w->said = runs_ask(w->call, &w->begun, &w->need, &w->text);
    pthread_mutex_lock(&r->mutex);
    w->answered = 1;
    w->state = RUN_WORKING;
    pool_put(r->server->pool, &w->job);
    pthread_mutex_unlock(&r->mutex);
}

static void begin_to_ask(runs *r, waiting *w)
{
    pthread_mutex_lock(&r->mutex);
    w->state = RUN_ASKING;
    pool_put(r->server->pool, &w->ask);
    pthread_mutex_unlock(&r->mutex);
}

/* Goes on until the run waits (*waits 1) or is done, and says so. A job of the same lane,
 * as the one that the answer makes, begins only after this one returned. */
static sessile_status run_on(waiting *w, int *waits, sessile_error *err)
{
    call *c = w->call;
    Sessile__V1__Need *asked = NULL;
    sessile_status status = SESSILE_OK;
    int parked = 0;
    *waits = 0;
    if (w->need.kind != SESSILE_NEED_NONE) {
        asked = runs_need(c, &w->need);
        status = take_answer(w, &parked, err);
    }
    while (!status && !parked &&
           (status = runs_step(&w->begun, &w->need, err)) == SESSILE_NEEDS) {
        const int answerable = w->need.kind != SESSILE_NEED_HOOK && w->kind->send_need;
        asked = runs_need(c, &w->need);
        w->since_us = os_now_us();
        call_poke(c);
        if (w->need.kind == SESSILE_NEED_MODEL && !w->kind->send_need) {
            *waits = 1;
            begin_to_ask(c->server->runs, w);
            return SESSILE_OK;
        }
        if (answerable && asked && !c->no_memory && begin_to_wait(c->server->runs, w)) {
            *waits = 1;
            return w->kind->send_need(c, asked,
                                      err); /* it fails when the client is gone */
        }
        status = runs_park(&w->begun, &w->need, &parked, err);
    }
    return status ? status
                  : w->kind->send_outcome(c, &w->begun, parked ? asked : NULL, err);
}

static void go_on(waiting *w)
{
    call *c = w->call;
    sessile_error err;
    int waits;
    arena all = c->arena;
    error_clear(&err);
    arena_init(&c->arena, all.alloc);
    sessile_status status = run_on(w, &waits, &err);
    arena_free(&c->arena);
    c->arena = all;
    if (waits)
        return;
    runs_free(&w->begun);
    call_leave(c, status, &err);
}

static void run_job(job *j)
{
    go_on((waiting *)j);
}

sessile_status run_stream_begin(call *c, const run_kind *kind, const void *request,
                                sessile_error *err)
{
    waiting *w = mem_zalloc(&c->server->alloc, sizeof *w);
    if (!w)
        return fail_nomem(err);
    sessile_status status = SESSILE_OK;
    if (kind->send_need)
        status = shares_take(c, SHARE_RUNS, 1, WAITING_MOST, &w->share, err);
    if (!status)
        status = kind->begin(c, request, &w->begun, err);
    if (status) {
        shares_give(c->server->shares, SHARE_RUNS, 1, w->share);
        runs_free(&w->begun);
        mem_free(&c->server->alloc, w, sizeof *w);
        return status;
    }
    w->call = c;
    w->kind = kind;
    w->job.run = run_job;
    w->job.lane = c->job.lane;
    w->ask.run = ask_model;
    buf_init(&w->text, &c->server->alloc);
    buf_init(&w->answer, &c->server->alloc);
    call_stay(c, &run_stream, w);
    go_on(w);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- of a session */

static sessile_status begin(call *c, const void *request, begun *out, sessile_error *err)
{
    const Sessile__V1__RunRequest *r = request;
    switch (r->what_case) {
    case SESSILE__V1__RUN_REQUEST__WHAT_TURN:
        return begin_turn(c, r->turn, out, err);
    case SESSILE__V1__RUN_REQUEST__WHAT_COMPACT:
        return begin_compact(c, r->compact, out, err);
    case SESSILE__V1__RUN_REQUEST__WHAT_BRANCH:
        return begin_branch(c, r->branch, out, err);
    case SESSILE__V1__RUN_REQUEST__WHAT_PLAN:
        return begin_plan(c, r->plan, out, err);
    case SESSILE__V1__RUN_REQUEST__WHAT_ANSWER:
        return begin_answer(c, r->answer, out, err);
    default:
        return fail(err, SESSILE_INVALID,
                    "RunRequest: the first one begins a run: turn, compact, branch, plan "
                    "or answer");
    }
}

static sessile_status reply(call *c, const begun *b, const void *request, int *answered,
                            sessile_error *err)
{
    const Sessile__V1__RunRequest *r = request;
    (void)c;
    if (r->what_case == SESSILE__V1__RUN_REQUEST__WHAT_PARK)
        return SESSILE_OK;
    if (r->what_case != SESSILE__V1__RUN_REQUEST__WHAT_REPLY)
        return fail(err, SESSILE_INVALID,
                    "RunRequest: a run that waits is answered by reply or park");
    sessile_answer given = read_answer(r->reply);
    *answered = 1;
    return runs_reply(b, &given, err);
}

static sessile_status send_need(call *c, Sessile__V1__Need *need, sessile_error *err)
{
    Sessile__V1__RunEvent event = SESSILE__V1__RUN_EVENT__INIT;
    event.what_case = SESSILE__V1__RUN_EVENT__WHAT_NEED;
    event.need = need;
    return call_send(c, &event.base, err);
}

static sessile_status send_outcome(call *c, const begun *b, Sessile__V1__Need *parked,
                                   sessile_error *err)
{
    Sessile__V1__RunEvent event = SESSILE__V1__RUN_EVENT__INIT;
    sessile_status status = runs_outcome(c, b, parked, &event.outcome, err);
    event.what_case = SESSILE__V1__RUN_EVENT__WHAT_OUTCOME;
    if (!status)
        status = c->no_memory ? fail_nomem(err) : call_send(c, &event.base, err);
    return status;
}

static sessile_status run(call *c, const void *request, sessile_error *err)
{
    static const run_kind kind = {begin, send_outcome, send_need, reply};
    return run_stream_begin(c, &kind, request, err);
}

const method methods_run_stream[] = {
    METHOD("Run", run, run_request, METHOD_STREAMS | METHOD_DUPLEX),
    {NULL, NULL, 0, NULL},
};

/* ---------------------------------------------------------------------- as a whole */

sessile_status runs_open(runs **out, service *s, sessile_error *err)
{
    runs *r = mem_zalloc(&s->alloc, sizeof *r);
    *out = r;
    if (!r)
        return fail_nomem(err);
    r->server = s;
    pthread_mutex_init(&r->mutex, NULL);
    return SESSILE_OK;
}

void runs_drain(runs *r)
{
    pthread_mutex_lock(&r->mutex);
    r->draining = 1;
    while (r->first) {
        r->first->nobody = 1;
        wake(r, r->first);
    }
    pthread_mutex_unlock(&r->mutex);
}

void runs_close(runs *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->mutex);
    mem_free(&r->server->alloc, r, sizeof *r);
}
