/*
 * worker.c: the engine's side of a policy that runs in a separate process: the frames
 * that it sends, and what it makes of those it receives.
 *
 * Must never send the child a text that is not in the state it works on, or use an answer
 * that was not checked. The process and its socket are worker_process.c's.
 */
#include "policy/worker.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/json.h"
#include "policy/chain.h"
#include "policy/worker_process.h"
#include "proposal/journal.h"

/* Nesting of the facts about a policy's file. */
#define FACTS_DEPTH 128
/* Requests of one pipeline to models and memories. A script is stopped earlier, by the
 * worker; this is for one that does not obey. */
#define REQUESTS_MOST 1100
/* Bytes for a journal beyond its texts. */
#define JOURNAL_MORE ((size_t)4 << 20)

/* ------------------------------------------------------------------ opening */

static void put_slice(buf *out, sessile_slice text)
{
    wire_put_text(out, text.data, text.size);
}

static void put_cstring(buf *out, const char *text)
{
    wire_put_text(out, text, strlen(text));
}

static void put_limits(buf *out, const policy_limits *limits)
{
    wire_put_u64(out, limits->gas);
    wire_put_u32(out, limits->ms);
    wire_put_u64(out, limits->memory);
    wire_put_u64(out, limits->result);
}

/* Starts the time budget of something under these limits. */
static void begin_time(worker *w, const policy_limits *limits)
{
    w->cpu_limit_us = (uint64_t)limits->ms * 1000;
    w->cpu_us = 0;
    w->result = limits->result * 4 + JOURNAL_MORE;
    if (w->result > FRAME_MOST)
        w->result = FRAME_MOST;
    w->cpu_from = w->os->process_cpu_us(w->os->ud, w->pid);
}

/* The files that a chain requires, and their names. */
static void put_required(buf *out, const sessile_policy *p)
{
    size_t i;
    wire_put_u32(out, (uint32_t)p->required_count);
    for (i = 0; i < p->required_count; i++) {
        const chain_required *r = &p->required[i];
        put_cstring(out, r->file);
        wire_put_text(out, r->source + r->skip, r->source_size - r->skip);
        wire_put_u32(out, r->node);
    }
    wire_put_u32(out, (uint32_t)p->require_count);
    for (i = 0; i < p->require_count; i++) {
        wire_put_u32(out, p->requires[i].node);
        put_cstring(out, p->requires[i].name);
        wire_put_u32(out, (uint32_t)p->requires[i].to);
    }
}

sessile_status worker_describe(worker *w, const worker_question *q, buf *facts,
                               sessile_error *err)
{
    frame kind = FRAME_END;
    wire body;
    sessile_slice message, text, wanted;

    if (w->fd < 0)
        return fail(err, SESSILE_POLICY, "the policy's process has ended");
    begin_time(w, &q->policy->limits);
    frame_begin(&w->out, FRAME_DESCRIBE);
    put_limits(&w->out, &q->policy->limits);
    put_cstring(&w->out, q->file);
    put_slice(&w->out, q->source);
    put_required(&w->out, q->policy);
    wire_put_u32(&w->out, q->node);
    sessile_status status = worker_send(w, err);
    if (!status)
        status = worker_receive(w, &kind, &body, err);
    if (status) {
        fail_prefix(err, "%s", q->file);
        return status;
    }
    status = (sessile_status)wire_u32(&body);
    message = wire_text(&body);
    text = wire_text(&body);
    wanted = wire_text(&body);
    if (kind != FRAME_FACTS || body.bad || body.at != body.end ||
        !utf8_valid(message.data, message.size) || wanted.size >= CHAIN_NAME ||
        (wanted.size && memchr(wanted.data, 0, wanted.size)))
        return worker_lost(w, "sent what is no answer", err);
    if (status == SESSILE_POLICY || status == SESSILE_NOMEM)
        return fail(err, status, "%.*s", (int)(message.size < 500 ? message.size : 500),
                    message.data);
    if (status)
        return worker_lost(w, "sent what is no answer", err);
    if (wanted.size) {
        memcpy(q->wanted, wanted.data, wanted.size);
        q->wanted[wanted.size] = 0;
        return SESSILE_OK;
    }
    status = json_check(facts, text.data, text.size, FACTS_DEPTH, err);
    return !status || status == SESSILE_NOMEM
               ? status
               : worker_lost(w, "sent what is no answer", err);
}

static sessile_status send_chain(worker *w, const sessile_policy *p, sessile_error *err)
{
    frame_begin(&w->out, FRAME_CHAIN);
    put_limits(&w->out, &p->limits);
    wire_put_u32(&w->out, (uint32_t)p->count);
    for (size_t i = 0; i < p->count; i++) {
        const chain_step *step = &p->steps[i];
        put_cstring(&w->out, step->info.name);
        put_cstring(&w->out, step->info.options);
        put_cstring(&w->out, step->file ? step->file : "");
        put_cstring(&w->out, step->info.hash);
        wire_put_i64(&w->out, step->info.version);
        wire_put_u32(&w->out, step->info.hooks);
        wire_put_u8(&w->out, step->info.is_host != 0);
        wire_put_text(&w->out, step->source ? step->source + step->skip : "",
                      step->source ? step->source_size - step->skip : 0);
        wire_put_u32(&w->out, step->node);
    }
    put_required(&w->out, p);
    return worker_send(w, err);
}

sessile_status worker_open(worker *w, sessile_policy *p, const policy_setup *about,
                           const sessile_state *state, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (w->fd < 0)
        return fail(err, SESSILE_POLICY, "the policy's process has ended");
    begin_time(w, &p->limits);
    w->requests = 0;
    if (w->policy != p) {
        policy_retain(p); /* so that no other chain gets its address */
        policy_release(w->policy);
        w->policy = p;
        status = send_chain(w, p, err);
    }
    if (status)
        return status;
    frame_begin(&w->out, FRAME_OPEN);
    put_slice(&w->out, about->session_id);
    put_slice(&w->out, about->agent);
    put_slice(&w->out, about->title);
    put_slice(&w->out, about->metadata);
    put_slice(&w->out, about->instructions);
    wire_put_u32(&w->out, about->turn);
    wire_put_i64(&w->out, about->now_ms);
    wire_put_u8(&w->out, about->has_memory != 0);
    state_image_put(state, &w->out);
    return worker_send(w, err);
}

/* ------------------------------------------------------------------ a hook */

/* Sends the text that the script reads: of a message of this state, or none. */
static sessile_status give_text(worker *w, const worker_job *job, wire *body,
                                sessile_error *err)
{
    sessile_slice text = {"", 0};
    sessile_error why = {0};
    sessile_key key;

    key.entry = wire_u32(body);
    key.n = wire_u32(body);
    if (body->bad || body->at != body->end)
        return worker_lost(w, "sent what is no request", err);
    sessile_status found = state_text(job->state, key, &text, &why);
    frame_begin(&w->out, FRAME_TEXT);
    wire_put_u32(&w->out, (uint32_t)found);
    put_slice(&w->out, !found ? text : slice_of(why.message));
    return worker_send(w, err);
}

/* The end of a hook: its edits are repeated here. */
static sessile_status take_end(worker *w, const worker_job *job, wire *body,
                               sessile_error *err)
{
    sessile_error why = {0};
    sessile_status status = (sessile_status)wire_u32(body);
    sessile_slice message = wire_text(body), log, journal;

    job->out->spent = wire_u8(body) != 0;
    job->out->verdict = wire_u8(body) != 0;
    *job->us += wire_u64(body);
    job->out->text = wire_text(body);
    log = wire_text(body);
    journal = wire_text(body);
    if (body->bad || body->at != body->end || !utf8_valid(message.data, message.size) ||
        !utf8_valid(log.data, log.size))
        return worker_lost(w, "sent what is no answer", err);
    buf_put(job->log, log.data, log.size);
    if (job->log->failed)
        return fail_nomem(err);
    if (status == SESSILE_POLICY || status == SESSILE_NOMEM)
        return fail(err, status, "%.*s", (int)(message.size < 500 ? message.size : 500),
                    message.data);
    if (status)
        return worker_lost(w, "sent what is no answer", err);
    status = state_journal_replay(job->state, journal.data, journal.size, 1, &why);
    if (status == SESSILE_NOMEM)
        return fail_nomem(err);
    if (status)
        return worker_lost(w, "made edits that are none", err);
    return SESSILE_OK;
}

static sessile_status go_on(worker *w, const worker_job *job, sessile_error *err)
{
    for (;;) {
        frame kind;
        wire body;
        sessile_status status = worker_receive(w, &kind, &body, err);
        if (status)
            return status;
        switch (kind) {
        case FRAME_READ:
            status = give_text(w, job, &body, err);
            if (status)
                return status;
            break;
        case FRAME_ASK:
            job->out->request = wire_text(&body);
            job->out->asks_memory = wire_u8(&body) != 0;
            if (body.bad || body.at != body.end)
                return worker_lost(w, "sent what is no request", err);
            if (w->requests++ == REQUESTS_MOST)
                return worker_lost(w, "asked without end", err);
            return SESSILE_NEEDS;
        case FRAME_END:
            return take_end(w, job, &body, err);
        default:
            return worker_lost(w, "sent what is no answer", err);
        }
    }
}

/* Runs until the worker waits for the host. Time after that does not count. */
static sessile_status timed(worker *w, const worker_job *job, sessile_error *err)
{
    w->cpu_from = w->os->process_cpu_us(w->os->ud, w->pid);
    sessile_status status = worker_send(w, err);
    if (!status)
        status = go_on(w, job, err);
    job->out->spent |= w->overran;
    if (w->fd >= 0)
        w->cpu_us += w->os->process_cpu_us(w->os->ud, w->pid) - w->cpu_from;
    return status;
}

sessile_status worker_call(worker *w, const worker_job *job, sessile_error *err)
{
    memset(job->out, 0, sizeof *job->out);
    if (w->fd < 0)
        return fail(err, SESSILE_POLICY, "the policy's process has ended");
    frame_begin(&w->out, FRAME_CALL);
    wire_put_text(&w->out, job->journal->data, job->journal->size);
    wire_put_u32(&w->out, (uint32_t)job->step);
    wire_put_u32(&w->out, (uint32_t)job->hook);
    wire_put_u32(&w->out, (uint32_t)job->reason);
    put_slice(&w->out, job->arguments);
    if (job->journal->failed)
        return fail_nomem(err);
    buf_clear(job->journal);
    return timed(w, job, err);
}

sessile_status worker_answer(worker *w, const worker_job *job,
                             const sessile_answer *answer, sessile_error *err)
{
    sessile_slice text = answer->text;
    const policy_limits *limits = &w->policy->limits;

    memset(job->out, 0, sizeof *job->out);
    if (w->fd < 0)
        return fail(err, SESSILE_POLICY, "the policy's process has ended");
    /* The worker refuses an answer that is too long: one byte beyond the limit is
     * enough. */
    if (text.size > limits->result + 1)
        text.size = (size_t)limits->result + 1;
    frame_begin(&w->out, FRAME_ANSWER);
    wire_put_u32(&w->out, (uint32_t)answer->status);
    wire_put_text(&w->out, text.data, text.size);
    return timed(w, job, err);
}
