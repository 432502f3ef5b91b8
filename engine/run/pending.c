/*
 * pending.c: a run that waits for a model, written down, and answered in another
 * process.
 *
 * The problem: a model's answer may come hours later, in a process that did not ask. The
 * choice: nothing of Lua is kept. The entry holds what the policy was given (which turn,
 * which options, the time, the reason) and every answer so far. Whoever has the next
 * answer runs the policy again from its start, with answers.c in the model's place. That
 * is why a policy must be deterministic. Rejected: keeping the coroutine, which would
 * tie an answer to one build of Lua and to one process.
 *
 * Must never let a pending run block anybody: it is a fact, and a pending run that is
 * never answered costs a compaction.
 */
#include "run/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "run/begin.h"
#include "operations/pending.h"
#include "session/life.h"

/* ------------------------------------------------------------------ writing it down */

static void put_hash(buf *out, const unsigned char hash[32])
{
    for (int i = 0; i < 32; i++)
        buf_printf(out, "%02x", hash[i]);
}

static void put_chain(const sessile_policy *chain, buf *out)
{
    buf_puts(out, "\"policy\":[");
    for (size_t i = 0; i < policy_step_count(chain); i++) {
        const policy_step_info *step = policy_step_get(chain, i);
        buf_puts(out, i ? ",{\"name\":" : "{\"name\":");
        json_put_cstring(out, step->name);
        buf_puts(out, ",\"version\":");
        buf_put_i64(out, step->version);
        if (step->hash[0])
            buf_printf(out, ",\"hash\":\"%s\"", step->hash);
        buf_puts(out, ",\"options\":");
        buf_puts(out, step->options);
        if (step->path[0] && utf8_valid(step->path, strlen(step->path))) {
            buf_puts(out, ",\"path\":");
            json_put_cstring(out, step->path);
        }
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static void put_answers(const run_answers *list, buf *out)
{
    buf_puts(out, "\"answers\":[");
    for (size_t i = 0; i < list->count; i++) {
        const run_answer *one = &list->at[i];
        buf_puts(out, i ? ",{\"request\":\"" : "{\"request\":\"");
        put_hash(out, one->request);
        buf_puts(out, !one->status ? "\",\"text\":" : "\",\"failed\":");
        json_put_string(out, one->text, one->size);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

/* What fired at the turn's end, and what this run stands in for: another process may be
 * configured otherwise, or judge at another time. */
static void put_why(const sessile_run *run, buf *out)
{
    if (run->schedule.fired_first != SESSILE_REASON_TURN)
        buf_printf(out, ",\"fired\":\"%s\"", reason_name(run->schedule.fired_first));
    if (run->schedule.overflowed)
        buf_puts(out, ",\"overflowed\":true");
    if (run->options.event) {
        buf_puts(out, ",\"event\":");
        json_put_string(out, run->options.event, run->options.event_size);
    }
    if (!run->fallback.runs)
        return;
    buf_puts(out, ",\"fallback_of\":{\"policy\":");
    json_put_cstring(out, run->fallback.refusal.policy);
    buf_printf(out, ",\"law\":%d,\"message\":", run->fallback.refusal.law);
    json_put_cstring(out, run->fallback.refusal.message);
    buf_putc(out, '}');
}

static void put_pending_run(const sessile_run *run, buf *out)
{
    char id[9];

    id_print(run->saw.entry, id);
    buf_printf(out, "{\"kind\":\"%s\",\"saw\":\"%s\",",
               run->kind == RUN_TURN ? "turn" : "compact", id);
    if (run->kind == RUN_TURN) {
        id_print(run->turn.first, id);
        buf_printf(out, "\"first\":\"%s\",", id);
    }
    put_chain(run->policy, out);
    buf_printf(out, ",\"reason\":\"%s\"", reason_name(run->options.reason));
    if (run->options.instructions_size) {
        buf_puts(out, ",\"instructions\":");
        json_put_string(out, run->options.instructions, run->options.instructions_size);
    }
    buf_printf(out, ",\"now\":%" PRId64 ",\"window\":%" PRId64 ",\"reserve\":%" PRId64,
               run->now_ms, run->config.window, run->config.reserve);
    put_why(run, out);
    buf_putc(out, ',');
    put_answers(&run->ask.answers, out);
    buf_puts(out, ",\"asks\":{\"policy\":");
    json_put_cstring(out, policy_step_get(run->policy, run->schedule.step)->name);
    buf_puts(out, ",\"hash\":\"");
    put_hash(out, run->ask.request);
    buf_puts(out, "\",\"request\":");
    buf_put(out, run->schedule.result.request.data, run->schedule.result.request.size);
    buf_puts(out, "}}");
}

static void put_fact(const sessile_session *s, batch *b, const buf *data)
{
    batch_put(b, s->tree.head, ENTRY_PENDING_RUN, SOURCE_POLICY, data->data, data->size);
}

/* A policy that was refused costs no answer: the pending run is written anew with all of
 * them, for a policy that was mended. */
static sessile_status keep_answers(sessile_run *run, sessile_session *s, batch *b,
                                   sessile_error *err)
{
    sessile_id pending_run = run->replay.pending_run;
    buf text, data;
    entry e;
    sessile_status status;

    buf_init(&text, run->alloc);
    buf_init(&data, run->alloc);
    status = session_pending_run_locked(s, &pending_run, &text, &e, NULL);
    if (status ==
        SESSILE_NOTFOUND) { /* the conversation outran it: there is no other try */
        buf_deinit(&text);
        buf_deinit(&data);
        return SESSILE_OK;
    }
    if (status)
        (void)fail(err, status, "pending_run %08" PRIx32 " cannot be read",
                   run->replay.pending_run);
    if (!status) {
        json_iter it = json_begin(e.data);
        buf_putc(&data, '{');
        while (json_next(&it)) {
            const char *name;
            size_t size;
            if (json_plain(it.key, &name, &size) && size == 7 &&
                (!memcmp(name, "answers", 7) || !memcmp(name, "refused", 7)))
                continue;
            buf_put(&data, it.key.at, it.key.size);
            buf_putc(&data, ':');
            buf_put(&data, it.value.at, it.value.size);
            buf_putc(&data, ',');
        }
        put_answers(&run->ask.answers, &data);
        buf_puts(&data, ",\"refused\":");
        json_put_cstring(&data, run->result.message);
        buf_putc(&data, '}');
        status = data.failed ? fail_nomem(err) : SESSILE_OK;
    }
    if (!status)
        put_fact(s, b, &data);
    buf_deinit(&text);
    buf_deinit(&data);
    return status;
}

sessile_status run_close_pending(sessile_run *run, sessile_session *s, batch *b,
                                 sessile_error *err)
{
    buf data;

    if (run->replay.pending_run == SESSILE_NO_ID ||
        !facts_find(&s->fold.facts, FACT_PENDING_RUN, run->replay.pending_run, "", 0))
        return SESSILE_OK;
    if (run->result.refused && run->ask.answers.count) {
        sessile_status kept = keep_answers(run, s, b, err);
        if (kept)
            return kept;
    }
    buf_init(&data, run->alloc);
    buf_printf(&data, "{\"off\":true,\"pending_run\":\"%08" PRIx32 "\"}",
               run->replay.pending_run);
    if (!data.failed)
        put_fact(s, b, &data);
    sessile_status status = data.failed ? fail_nomem(err) : SESSILE_OK;
    buf_deinit(&data);
    return status;
}

typedef struct pending_write {
    sessile_run *run;
    buf data;
    sessile_id id;
} pending_write;

/* session_build: the pending run; the one that this run answers is closed with it. */
static sessile_status build_pending_run(void *arg, sessile_session *s, batch *b,
                                        sessile_error *err)
{
    pending_write *w = arg;
    sessile_status status = run_close_pending(w->run, s, b, err);

    w->id = batch_next(b);
    if (!status)
        put_fact(s, b, &w->data);
    return status;
}

static sessile_status build_close(void *arg, sessile_session *s, batch *b,
                                  sessile_error *err)
{
    return run_close_pending(arg, s, b, err);
}

/* What an answered run did not close with an entry of its own. */
sessile_status run_end_pending(sessile_run *run, sessile_error *err)
{
    sessile_id count = 0;
    sessile_status status;

    if (run->replay.pending_run == SESSILE_NO_ID)
        return SESSILE_OK;
    status = session_write(run->session, build_close, run,
                           &(session_writing){.wait = &run->wait, .count = &count}, err);
    if (status)
        return status;
    run->replay.pending_run = SESSILE_NO_ID;
    if (count) {
        run->log.written = count;
        run->log.synced = 0;
    }
    return SESSILE_OK;
}

sessile_status run_defer(sessile_run *run, sessile_id *out, sessile_error *err)
{
    pending_write w = {.run = run, .id = SESSILE_NO_ID};
    sessile_id count = 0;
    sessile_status status;

    if (!run->ask.out)
        return fail(err, SESSILE_INVALID, "nothing is asked: there is nothing to defer");
    if (run->checkpoint.asked)
        return fail(err, SESSILE_INVALID,
                    "the state of a checkpoint is waited for, and only a model's answer "
                    "can come from elsewhere: reply first");
    if (run->kind == RUN_BRANCH)
        return fail(err, SESSILE_INVALID,
                    "a branch is not deferred: its head has moved, and a summary can be "
                    "appended by whoever has one");
    if (policy_step_get(run->policy, run->schedule.step)->is_host)
        return fail(
            err, SESSILE_INVALID,
            "a hook of the host is waited for, and only a model's answer can come "
            "from elsewhere: reply first");
    if (run->kind == RUN_PLAN)
        return fail(err, SESSILE_INVALID,
                    "a plan writes nothing, so that nobody could answer it later");
    run->wait = session_wait_begin(run->session, 1, run->config.timeout_ms);
    buf_init(&w.data, run->alloc);
    put_pending_run(run, &w.data);
    status =
        w.data.failed
            ? fail_nomem(err)
            : session_write(run->session, build_pending_run, &w,
                            &(session_writing){.wait = &run->wait, .count = &count}, err);
    if (!status)
        status = session_sync_within(run->session, &run->wait, count, err);
    buf_deinit(&w.data);
    if (status)
        return status;
    run->ask.out = 0;
    run->replay.pending_run = SESSILE_NO_ID;
    run_forget(run);
    run->result.outcome.verdict = SESSILE_PENDING;
    run->result.outcome.pending_run = w.id;
    run->schedule.stage = STAGE_DONE;
    run->log.synced = 1;
    *out = w.id;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ read again */

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

static sessile_status broken(sessile_id id, sessile_error *err)
{
    return fail(err, SESSILE_DAMAGED,
                "pending_run %08" PRIx32
                " does not say what its policy was given: cancel it",
                id);
}

/* Appends what was answered, and then the answer to what it asks. */
static sessile_status take_answers(sessile_run *run, const entry *e,
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
            status = broken(e->id, err);
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
            return broken(e->id, err);
        /* in place of the one that its policy made nothing of */
        if (json_get(e->data, "refused").type != JSON_NONE)
            run_answers_drop(&run->replay.known, hash, run->alloc);
        status = run_answers_add(&run->replay.known, hash, answer->status, answer->text,
                                 run->alloc, err);
    }
    return status;
}

static int read_entry_id(json value, sessile_id below, sessile_id *out)
{
    const char *text;
    size_t size;

    return json_plain(value, &text, &size) && !id_parse(text, size, out) && *out < below
               ? 0
               : -1;
}

static int read_i64(json value, int64_t *out)
{
    uint64_t n;

    if (json_uint(value, &n) || n > INT64_MAX)
        return -1;
    *out = (int64_t)n;
    return 0;
}

/* The reason of that name, or `other`. */
static sessile_reason read_reason(json value, sessile_reason other)
{
    for (int i = 0; i <= SESSILE_REASON_MANUAL; i++)
        if (json_is(value, reason_name((sessile_reason)i)))
            return (sessile_reason)i;
    return other;
}

/* A string of at most size - 1 bytes, cut between characters. -1: NOMEM. */
static int read_text(const sessile_run *run, json value, char *out, size_t size)
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

/* put_why(), read again. */
static sessile_status take_why(sessile_run *run, const entry *e, sessile_error *err)
{
    json event = json_get(e->data, "event"), stood = json_get(e->data, "fallback_of");
    uint64_t law = 0;

    run->schedule.fired_first =
        read_reason(json_get(e->data, "fired"), SESSILE_REASON_TURN);
    run->replay.overflowed = json_get(e->data, "overflowed").type == JSON_TRUE;
    if (event.type == JSON_STRING) {
        buf text;
        buf_init(&text, run->alloc);
        if (!json_string(&text, event) && !text.failed)
            run->options.event =
                mem_dup(run->alloc, text.size ? text.data : "", text.size);
        run->options.event_size = run->options.event ? text.size : 0;
        buf_deinit(&text);
        if (!run->options.event)
            return fail_nomem(err);
    }
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

static sessile_status take_given(sessile_run *run, const entry *e, sessile_error *err)
{
    json instructions = json_get(e->data, "instructions");
    const char *name;
    size_t size;

    if (!json_plain(json_get(e->data, "kind"), &name, &size))
        return broken(e->id, err);
    run->kind = size == 4 && !memcmp(name, "turn", 4) ? RUN_TURN : RUN_COMPACT;
    if (read_entry_id(json_get(e->data, "saw"), e->id, &run->saw.entry) ||
        (run->kind == RUN_TURN &&
         read_entry_id(json_get(e->data, "first"), run->saw.entry, &run->turn.first)) ||
        read_i64(json_get(e->data, "now"), &run->now_ms) ||
        read_i64(json_get(e->data, "window"), &run->config.window) ||
        read_i64(json_get(e->data, "reserve"), &run->config.reserve) ||
        json_get(e->data, "reason").type != JSON_STRING)
        return broken(e->id, err);
    run->options.reason = read_reason(json_get(e->data, "reason"), SESSILE_REASON_TURN);
    run->schedule.why = run->options.reason;
    if (instructions.type == JSON_STRING) {
        buf text;
        buf_init(&text, run->alloc);
        if (!json_string(&text, instructions) && !text.failed)
            run->options.instructions =
                mem_dup(run->alloc, text.size ? text.data : "", text.size);
        run->options.instructions_size = run->options.instructions ? text.size : 0;
        buf_deinit(&text);
        if (!run->options.instructions)
            return fail_nomem(err);
    }
    if (run->kind == RUN_TURN) {
        run->turn.last = run->saw.entry;
        run->result.outcome.first = run->turn.first;
        run->result.outcome.last = run->turn.last;
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ its policies */

enum { CHAIN_MOST = 16 };

/* A recorded step as it is loaded: strings are owned. */
typedef struct recorded {
    buf name, path, options;
} recorded;

static sessile_status read_step(recorded *r, json step, sessile_id id, sessile_error *err)
{
    json name = json_get(step, "name"), path = json_get(step, "path");
    json options = json_get(step, "options");

    if (name.type != JSON_STRING || options.type != JSON_OBJECT)
        return broken(id, err);
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

static sessile_status load(sessile_run *run, const recorded *steps, size_t count,
                           int by_path, sessile_error *err)
{
    sessile_store *store = run->session->store;
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

/* Nobody named a policy: the one that was pending, from the files it was loaded from, or
 * by its names. */
static sessile_status load_recorded(sessile_run *run, const entry *e, sessile_error *err)
{
    recorded steps[CHAIN_MOST];
    size_t count = 0;
    sessile_status status = SESSILE_OK;
    json_iter it = json_begin(json_get(e->data, "policy"));

    while (!status && json_next(&it)) {
        if (count == CHAIN_MOST) {
            status = broken(e->id, err);
            break;
        }
        buf_init(&steps[count].name, run->alloc);
        buf_init(&steps[count].path, run->alloc);
        buf_init(&steps[count].options, run->alloc);
        status = read_step(&steps[count++], it.value, e->id, err);
    }
    if (!status && !count)
        status = broken(e->id, err);
    if (!status) {
        status = load(run, steps, count, 1, err);
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = load(run, steps, count, 0, err);
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

static sessile_status take_pending_run(sessile_run *run, sessile_id id,
                                       const sessile_answer *answer, sessile_error *err)
{
    sessile_session *s = run->session;
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
        status = take_given(run, &e, err);
    if (!status)
        status = take_why(run, &e, err);
    if (!status)
        status = take_answers(run, &e, answer, err);
    if (!status && run->fallback.runs) {
        /* What was pending is the fallback: the configured one, else as it was recorded.
         */
        policy_release(run->policy);
        run->policy = run->fallback.policy;
        run->fallback.policy = NULL;
    }
    if (!status && !run->policy)
        status = load_recorded(run, &e, err);
    if (!status)
        run->replay.pending_run = id;
    buf_deinit(&text);
    return status;
}

sessile_status run_begin_answer(sessile_run **out, sessile_session *s,
                                sessile_id pending_run, const sessile_answer *answer,
                                const sessile_run_options *options, sessile_error *err)
{
    sessile_run *run;
    sessile_status status = run_new(&run, s, RUN_COMPACT, options, err);

    if (status)
        return status;
    run->replay.runs = 1;
    status = take_pending_run(run, pending_run, answer, err);
    if (!status) {
        run->schedule.stage = run->kind == RUN_TURN ? STAGE_MERGE : STAGE_COMPACT;
        status = run_snapshot(run, err);
    }
    if (status) {
        run_free(run);
        return status;
    }
    run_begun(run);
    *out = run;
    return SESSILE_OK;
}
