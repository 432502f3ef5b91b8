/*
 * run.c: statements sent and answered, in time.
 *
 * Owns the protocol of one call on one connection: libpq's pipeline mode, in which all
 * steps go out at once, in binary, prepared on the way where they are not yet, and a sync
 * behind them makes one transaction of them. So everything costs one round trip. Must
 * never block in libpq: it waits for the socket itself, in slices, so that a call ends
 * when its time is up or somebody asks for it.
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* A server needs time to answer even who will not wait for anybody. */
#define LEAST_ANSWER_US UINT64_C(1000000)
/* Races that the server itself breaks up, before it is called hopeless. */
enum { RETRIES = 20 };

pg_call pg_call_of(pg_store *ps, int timeout_ms)
{
    pg_call call = {.ps = ps, .until_us = UINT64_MAX, .answer_us = UINT64_MAX};
    if (timeout_ms >= 0) {
        uint64_t now = ps->os->clock_us(ps->os->ud), us = (uint64_t)timeout_ms * 1000;
        call.until_us = now + us;
        call.answer_us = now + (us > LEAST_ANSWER_US ? us : LEAST_ANSWER_US);
    }
    return call;
}

void pg_keep_back(pg_call *call, int ms)
{
    if (call->answer_us == UINT64_MAX)
        return;
    uint64_t least = call->ps->os->clock_us(call->ps->os->ud) + LEAST_ANSWER_US;
    uint64_t kept = (uint64_t)ms * 1000;
    uint64_t until = call->answer_us > kept ? call->answer_us - kept : 0;
    until = until > least ? until : least;
    call->answer_us = until < call->answer_us ? until : call->answer_us;
    call->until_us = until < call->until_us ? until : call->until_us;
}

int pg_over(const pg_store *ps, uint64_t us)
{
    return us != UINT64_MAX && ps->os->clock_us(ps->os->ud) >= us;
}

/* ---------------------------------------------------------------------- sending */

static int send_step(const pg_store *ps, pg_conn *c, const pg_step *s)
{
    const char *value[PG_ARGS_MOST];
    int size[PG_ARGS_MOST], format[PG_ARGS_MOST];
    for (int i = 0; i < s->count; i++) {
        int number = s->size[i] < 0;
        value[i] = number ? s->room[i] : s->value[i];
        size[i] = number ? 8 : s->size[i];
        format[i] = 1;
    }
    if (s->statement == PG_ONCE) {
        return ps->lib.PQsendQueryParams(c->pg, s->once, s->count, NULL, value, size,
                                         format, 1);
    }
    const char *name = ps->texts.name[s->statement];
    if (!c->prepared[s->statement] &&
        !ps->lib.PQsendPrepare(c->pg, name, ps->texts.text[s->statement], 0, NULL))
        return 0;
    return ps->lib.PQsendQueryPrepared(c->pg, name, s->count, value, size, format, 1);
}

/* Waits until the socket is ready, or the call is over. */
static pg_ended await_socket(pg_call *call, pg_conn *c, int flags)
{
    pg_store *ps = call->ps;
    for (;;) {
        int slice = OS_SLICE_MS * 10;
        if (pg_is_old(ps, c))
            return PG_LOST;
        if (call->stop.ask) {
            slice = OS_SLICE_MS;
            if (call->stop.ask(call->stop.arg))
                return PG_STOPPED;
        }
        if (call->answer_us != UINT64_MAX) {
            uint64_t now = ps->os->clock_us(ps->os->ud);
            if (now >= call->answer_us)
                return PG_LATE;
            uint64_t left = (call->answer_us - now) / 1000 + 1;
            slice = left < (uint64_t)slice ? (int)left : slice;
        }
        if (os_fd_wait(ps->lib.PQsocket(c->pg), flags, slice))
            return PG_ANSWERED;
    }
}

/* All that is to be sent, on its way. What the server says meanwhile is taken in: it may
 * wait for that before it reads on. */
static pg_ended flush_steps(pg_call *call, pg_conn *c)
{
    const pg_lib *lib = &call->ps->lib;
    for (;;) {
        int left = lib->PQflush(c->pg);
        if (left <= 0)
            return left == 0 ? PG_ANSWERED : PG_LOST;
        pg_ended ended = await_socket(call, c, OS_READ | OS_WRITE);
        if (ended != PG_ANSWERED)
            return ended;
        if (os_fd_wait(lib->PQsocket(c->pg), OS_READ, 0) && !lib->PQconsumeInput(c->pg))
            return PG_LOST;
    }
}

/* ---------------------------------------------------------------------- answers */

/* The next result: NULL at the end of one statement's. */
static pg_ended next_result(pg_call *call, pg_conn *c, PGresult **out)
{
    const pg_lib *lib = &call->ps->lib;
    *out = NULL;
    while (lib->PQisBusy(c->pg)) {
        pg_ended ended = await_socket(call, c, OS_READ);
        if (ended != PG_ANSWERED)
            return ended;
        if (!lib->PQconsumeInput(c->pg))
            return PG_LOST;
    }
    *out = lib->PQgetResult(c->pg);
    return !*out && lib->PQstatus(c->pg) != CONNECTION_OK ? PG_LOST : PG_ANSWERED;
}

void pg_results_free(const pg_store *ps, pg_results *r)
{
    for (int i = 0; i < PG_STEPS_MOST; i++)
        if (r->of[i])
            ps->lib.PQclear(r->of[i]);
    memset(r, 0, sizeof *r);
}

static int is_good(const pg_store *ps, const PGresult *r)
{
    ExecStatusType status = ps->lib.PQresultStatus(r);
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* Takes the results of all steps, and of what prepared them, up to the sync. */
static pg_ended gather_results(pg_call *call, pg_conn *c, const pg_step *steps, int count,
                               const unsigned char *preparing, pg_results *out)
{
    const pg_store *ps = call->ps;
    int step = 0, prepares = preparing[0], empty = 0;
    for (;;) {
        PGresult *r;
        pg_ended ended = next_result(call, c, &r);
        if (ended != PG_ANSWERED)
            return ended;
        if (!r) {
            if (++empty > 2)
                return PG_LOST; /* more answers are due than there are */
            continue;
        }
        empty = 0;
        ExecStatusType status = ps->lib.PQresultStatus(r);
        if (status == PGRES_PIPELINE_SYNC) {
            ps->lib.PQclear(r);
            return step < count ? PG_LOST : PG_ANSWERED;
        }
        if (step >= count || ps->lib.PQstatus(c->pg) != CONNECTION_OK) {
            /* an error behind all answers is the commit's own */
            int lost = step < count || is_good(ps, r) || out->wrong;
            if (lost || ps->lib.PQstatus(c->pg) != CONNECTION_OK) {
                ps->lib.PQclear(r);
                return PG_LOST;
            }
            ps->lib.PQclear(out->of[count - 1]);
            out->of[count - 1] = out->wrong = r;
            continue;
        }
        if (prepares) {
            prepares = 0;
            if (is_good(ps, r)) {
                c->prepared[steps[step].statement] = 1;
                ps->lib.PQclear(r);
                continue;
            }
            if (status == PGRES_FATAL_ERROR && !out->wrong)
                out->of[step] = out->wrong = r; /* the statement after it is skipped */
            else
                ps->lib.PQclear(r);
            continue;
        }
        if (out->of[step]) {
            ps->lib.PQclear(r); /* its preparation failed: that is the answer */
        } else {
            out->of[step] = r;
            if (!is_good(ps, r) && !out->wrong)
                out->wrong = r;
        }
        step++;
        prepares = step < count ? preparing[step] : 0;
    }
}

pg_ended pg_send(pg_call *call, pg_conn *c, const pg_step *steps, int count,
                 pg_results *out)
{
    const pg_store *ps = call->ps;
    unsigned char preparing[PG_STEPS_MOST] = {0};
    pg_ended ended = PG_ANSWERED;
    memset(out, 0, sizeof *out);
    out->count = count;
    out->era = c->era;
    pthread_mutex_lock(&call->ps->mutex);
    call->ps->round_trips++;
    pthread_mutex_unlock(&call->ps->mutex);
    for (int i = 0; i < count; i++) {
        pg_statement statement = steps[i].statement;
        preparing[i] = statement != PG_ONCE && !c->prepared[statement];
        for (int j = 0; j < i; j++) /* the same one twice is prepared once */
            preparing[i] &= steps[j].statement != statement;
        unsigned char was = statement != PG_ONCE ? c->prepared[statement] : 0;
        if (statement != PG_ONCE && !preparing[i])
            c->prepared[statement] = 1;
        int sent = send_step(ps, c, &steps[i]);
        if (statement != PG_ONCE)
            c->prepared[statement] = was;
        if (!sent)
            ended = PG_LOST;
    }
    if (ended == PG_ANSWERED && !ps->lib.PQpipelineSync(c->pg))
        ended = PG_LOST;
    if (ended == PG_ANSWERED)
        ended = flush_steps(call, c);
    if (ended == PG_ANSWERED)
        ended = gather_results(call, c, steps, count, preparing, out);
    if (ended == PG_ANSWERED && pg_is_old(call->ps, c))
        ended = PG_LOST; /* whatever it says is of the past */
    if (ended == PG_ANSWERED && c->unwaited)
        ended = PG_LOST; /* it took place, and cannot be relied on: change.c settles it */
    if (ended != PG_ANSWERED)
        pg_results_free(ps, out);
    return ended;
}

/* ---------------------------------------------------------------------- asking */

/* 1 when a statement that failed so may be sent again on this connection. */
static int may_repeat(pg_call *call, pg_conn *c, const pg_step *steps, int count,
                      const pg_results *r)
{
    const pg_store *ps = call->ps;
    if (pg_state_is(ps, r->wrong, "26000") || pg_state_is(ps, r->wrong, "0A000")) {
        /* somebody discarded what was prepared, or changed the tables */
        memset(c->prepared, 0, sizeof c->prepared);
        return 1;
    }
    if (pg_state_is(ps, r->wrong, "42P05")) {
        /* behind a pooler another one prepared it: under its name there is nothing else
         */
        for (int i = 0; i < count; i++)
            if (r->of[i] == r->wrong && steps[i].statement != PG_ONCE)
                c->prepared[steps[i].statement] = 1;
        return 1;
    }
    return pg_state_is(ps, r->wrong, "40001") || pg_state_is(ps, r->wrong, "40P01");
}

pg_ended pg_answer(pg_call *call, pg_conn *c, const pg_step *steps, int count,
                   pg_results *out)
{
    for (int i = 0;; i++) {
        pg_ended ended = pg_send(call, c, steps, count, out);
        if (ended != PG_ANSWERED || !out->wrong || i >= RETRIES ||
            pg_over(call->ps, call->answer_us) || !may_repeat(call, c, steps, count, out))
            return ended;
        pg_results_free(call->ps, out);
    }
}
