/*
 * pending_answer.c: begins a run again from a pending_run entry (pending.c), with the
 * answers that it holds and the one that has come.
 *
 * Owns reading the entry, and loading its policies when the caller names none. An entry
 * that does not say what its policy was given is DAMAGED, and can only be cancelled.
 */
#include "run/run.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "run/begin.h"
#include "operations/pending.h"
#include "operations/read.h"
#include "session/life.h"

/* ------------------------------------------------------------------ reading it */

static int read_hash(json value, unsigned char out[32])
{
    const char *text;
    size_t size;

    if (!json_plain(value, &text, &size) || size != 64)
        return -1;
    for (int i = 0; i < 64; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        out[i / 2] = (unsigned char)(i & 1 ? out[i / 2] | digit : digit << 4);
    }
    return 0;
}

static sessile_status pending_run_broken(sessile_id id, sessile_error *err)
{
    return fail(err, SESSILE_DAMAGED,
                "pending_run %08" PRIx32
                " does not say what its policy was given: cancel it",
                id);
}

/* Reads the recorded answers, and adds the new one for the request that waits. */
static sessile_status read_answers(run_core *run, const entry *e,
                                   const sessile_answer *answer, sessile_error *err)
{
    json_iter it = json_begin(json_get(e->data, "answers"));
    sessile_status status = SESSILE_OK;
    unsigned char hash[32];
    buf text;

    buf_init(&text, run->alloc);
    while (!status && json_next(&it)) {
        json said = json_get(it.value, "text"), failed = json_get(it.value, "failed");
        int ok = said.type == JSON_STRING;
        buf_clear(&text);
        if (read_hash(json_get(it.value, "request"), hash) ||
            (!ok && failed.type != JSON_STRING))
            status = pending_run_broken(e->id, err);
        else if (json_string(&text, ok ? said : failed) || text.failed)
            status = fail_nomem(err);
        else
            status = run_answers_add(
                &run->replay.known, hash, ok ? SESSILE_OK : SESSILE_POLICY,
                (sessile_slice){text.data, text.size}, run->alloc, err);
    }
    buf_deinit(&text);
    if (!status && answer) {
        if (read_hash(json_get(json_get(e->data, "asks"), "hash"), hash))
            return pending_run_broken(e->id, err);
        /* it replaces the answer that the policy was refused with */
        if (json_get(e->data, "refused").type != JSON_NONE)
            run_answers_drop(&run->replay.known, hash, run->alloc);
        status = run_answers_add(&run->replay.known, hash, answer->status, answer->text,
                                 run->alloc, err);
    }
    return status;
}

static int read_i64(json value, int64_t *out)
{
    uint64_t n;

    if (json_uint(value, &n) || n > INT64_MAX)
        return -1;
    *out = (int64_t)n;
    return 0;
}

/* Leaves *out alone where there is no value: earlier versions wrote none. */
static int read_keep_min(json value, uint32_t *out)
{
    uint64_t n;

    if (value.type == JSON_NONE)
        return 0;
    if (json_uint(value, &n) || n == 0 || n > UINT32_MAX)
        return -1;
    *out = (uint32_t)n;
    return 0;
}

/* The reason with that name, or `other`. */
static sessile_reason read_reason(json value, sessile_reason other)
{
    for (int i = 0; i <= SESSILE_REASON_MANUAL; i++)
        if (json_is(value, reason_name((sessile_reason)i)))
            return (sessile_reason)i;
    return other;
}

/* The text of a string, cut to size - 1 bytes between characters. -1: NOMEM. */
static int read_text(const run_core *run, json value, char *out, size_t size)
{
    buf text;
    int failed = 0;

    out[0] = 0;
    buf_init(&text, run->alloc);
    if (value.type == JSON_STRING)
        failed = json_string(&text, value) || text.failed;
    if (!failed && text.size) {
        size_t keep = utf8_floor(text.data, text.size, size - 1);
        memcpy(out, text.data, keep);
        out[keep] = 0;
    }
    buf_deinit(&text);
    return failed ? -1 : 0;
}

/* Copies the text of a string to *out; does nothing for other values. -1: NOMEM. */
static int dup_string(const run_core *run, json value, char **out, size_t *size)
{
    buf text;

    if (value.type != JSON_STRING)
        return 0;
    buf_init(&text, run->alloc);
    if (!json_string(&text, value) && !text.failed)
        *out = mem_dup(run->alloc, text.size ? text.data : "", text.size);
    *size = *out ? text.size : 0;
    buf_deinit(&text);
    return *out ? 0 : -1;
}

/* Reads what put_why() in pending.c wrote. */
static sessile_status read_why(run_core *run, const entry *e, sessile_error *err)
{
    json event = json_get(e->data, "event"), stood = json_get(e->data, "fallback_of");
    uint64_t law = 0;

    run->schedule.fired_first =
        read_reason(json_get(e->data, "fired"), SESSILE_REASON_TURN);
    run->replay.overflowed = json_get(e->data, "overflowed").type == JSON_TRUE;
    if (dup_string(run, event, &run->options.event, &run->options.event_size))
        return fail_nomem(err);
    if (stood.type != JSON_OBJECT)
        return SESSILE_OK;
    run->fallback.runs = 1;
    run->fallback.refusal.entry = SESSILE_NO_ID;
    run->fallback.refusal.hook = "";
    if (!json_uint(json_get(stood, "law"), &law) && law <= 10)
        run->fallback.refusal.law = (int)law;
    if (read_text(run, json_get(stood, "policy"), run->fallback.refusal.policy,
                  sizeof run->fallback.refusal.policy) ||
        read_text(run, json_get(stood, "message"), run->fallback.refusal.message,
                  sizeof run->fallback.refusal.message))
        return fail_nomem(err);
    return SESSILE_OK;
}

static sessile_status read_given(run_core *run, const entry *e, sessile_error *err)
{
    const char *name;
    size_t size;

    if (!json_plain(json_get(e->data, "kind"), &name, &size))
        return pending_run_broken(e->id, err);
    run->kind = size == 4 && !memcmp(name, "turn", 4) ? RUN_TURN : RUN_COMPACT;
    run->saw.entry = read_earlier_id(e, "saw");
    if (run->kind == RUN_TURN)
        run->turn.first = read_earlier_id(e, "first");
    if (run->saw.entry == SESSILE_NO_ID ||
        (run->kind == RUN_TURN && run->turn.first >= run->saw.entry) ||
        read_i64(json_get(e->data, "now"), &run->now_ms) ||
        read_i64(json_get(e->data, "window"), &run->config.window) ||
        read_i64(json_get(e->data, "reserve"), &run->config.reserve) ||
        read_keep_min(json_get(e->data, "keep_min"), &run->config.keep_min) ||
        json_get(e->data, "reason").type != JSON_STRING)
        return pending_run_broken(e->id, err);
    run->options.reason = read_reason(json_get(e->data, "reason"), SESSILE_REASON_TURN);
    run->schedule.why = run->options.reason;
    if (run->options.instructions) /* those of the call are not used */
        mem_free(run->alloc, run->options.instructions,
                 run->options.instructions_size + 1);
    run->options.instructions = NULL;
    run->options.instructions_size = 0;
    if (dup_string(run, json_get(e->data, "instructions"), &run->options.instructions,
                   &run->options.instructions_size))
        return fail_nomem(err);
    if (run->kind == RUN_TURN) {
        run->turn.last = run->saw.entry;
        run->result.outcome.first = run->turn.first;
        run->result.outcome.last = run->turn.last;
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ its policies */

enum { CHAIN_MOST = 16 };

/* A policy of the recorded chain. */
typedef struct recorded {
    buf name, path, options;
} recorded;

static sessile_status read_step(recorded *r, json step, sessile_id id, sessile_error *err)
{
    json name = json_get(step, "name"), path = json_get(step, "path");
    json options = json_get(step, "options");

    if (name.type != JSON_STRING || options.type != JSON_OBJECT)
        return pending_run_broken(id, err);
    if (json_string(&r->name, name) ||
        (path.type == JSON_STRING && json_string(&r->path, path)))
        return fail_nomem(err);
    buf_put(&r->options, options.at, options.size);
    if (r->name.failed || r->path.failed || r->options.failed)
        return fail_nomem(err);
    if (json_get(step, "hash").type != JSON_STRING)
        return fail(
            err, SESSILE_INVALID,
            "the pending chain has '%s', functions of a host: give the policy that "
            "was pending",
            r->name.size ? r->name.data : "");
    return SESSILE_OK;
}

static sessile_status load_steps(run_core *run, const recorded *steps, size_t count,
                                 int by_path, sessile_error *err)
{
    store_core *store = run->session->store;
    policy_limits limits = {.gas = store->limits.policy_gas,
                            .ms = store->limits.policy_ms,
                            .memory = store->limits.policy_memory,
                            .result = store->limits.policy_result};
    sessile_policy_step chain[CHAIN_MOST] = {{NULL, NULL, 0}};

    for (size_t i = 0; i < count; i++) {
        chain[i].name = by_path && steps[i].path.size ? steps[i].path.data
                        : steps[i].name.size          ? steps[i].name.data
                                                      : "";
        chain[i].options = steps[i].options.data;
    }
    return policy_load(&run->policy, chain, count, store->policy_path, &limits,
                       store->worker, store->os, &store->alloc, err);
}

/* Loads the chain that was pending, when the caller names no policy: from the files that
 * it was loaded from, else by name. */
static sessile_status load_recorded_chain(run_core *run, const entry *e,
                                          sessile_error *err)
{
    recorded steps[CHAIN_MOST];
    size_t count = 0;
    sessile_status status = SESSILE_OK;
    json_iter it = json_begin(json_get(e->data, "policy"));

    while (!status && json_next(&it)) {
        if (count == CHAIN_MOST) {
            status = pending_run_broken(e->id, err);
            break;
        }
        buf_init(&steps[count].name, run->alloc);
        buf_init(&steps[count].path, run->alloc);
        buf_init(&steps[count].options, run->alloc);
        status = read_step(&steps[count++], it.value, e->id, err);
    }
    if (!status && !count)
        status = pending_run_broken(e->id, err);
    if (!status) {
        status = load_steps(run, steps, count, 1, err);
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = load_steps(run, steps, count, 0, err);
        }
    }
    while (count-- > 0) {
        buf_deinit(&steps[count].name);
        buf_deinit(&steps[count].path);
        buf_deinit(&steps[count].options);
    }
    return status;
}

/* ------------------------------------------------------------------ answering */

static sessile_status read_pending_run(run_core *run, sessile_id id,
                                       const sessile_answer *answer, sessile_error *err)
{
    session_core *s = run->session;
    sessile_status status = session_lock_within(s, &run->wait, err);
    buf text;
    entry e;

    if (status)
        return status;
    buf_init(&text, run->alloc);
    status = session_refresh_locked(s, err);
    if (!status)
        status = session_check_running_locked(s, err);
    if (!status)
        status = session_pending_run_locked(s, &id, &text, &e, err);
    session_unlock(s);
    if (!status)
        status = read_given(run, &e, err);
    if (!status)
        status = read_why(run, &e, err);
    if (!status)
        status = read_answers(run, &e, answer, err);
    if (!status && run->fallback.runs) {
        /* What was pending is the fallback: the configured one, else as it was recorded.
         */
        policy_release(run->policy);
        run->policy = run->fallback.policy;
        run->fallback.policy = NULL;
    }
    if (!status && !run->policy)
        status = load_recorded_chain(run, &e, err);
    if (!status)
        run->replay.pending_run = id;
    buf_deinit(&text);
    return status;
}

sessile_status run_begin_answer(run_core **out, session_core *s, sessile_id pending_run,
                                const sessile_answer *answer,
                                const sessile_run_options *options,
                                const memory_cores *memories, sessile_error *err)
{
    sessile_answer own;
    run_core *run;
    sessile_status status = run_new(&run, s, RUN_COMPACT, options, memories, err);
    buf left;

    if (status)
        return status;
    run->replay.runs = 1;
    buf_init(&left, run->alloc);
    if (answer) {
        own = *answer;
        status = run_screen_answer(run, 0, &own.text, &left, err);
    }
    if (!status)
        status = read_pending_run(run, pending_run, answer ? &own : NULL, err);
    buf_wipe(&left);
    if (!status) {
        run->schedule.stage = run->kind == RUN_TURN ? STAGE_MERGE : STAGE_COMPACT;
        status = run_snapshot(run, err);
    }
    return run_begun(run, status, out);
}
