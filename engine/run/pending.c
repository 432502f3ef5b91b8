/*
 * pending.c: writes down a run that waits for a model, and ends such an entry.
 *
 * The problem: a model's answer may come hours later, in a process that did not ask. The
 * choice: nothing of Lua is kept. The entry holds what the policy was given (which turn,
 * which options, the time, the reason) and every answer so far. The process that has the
 * next answer runs the policy again from its start (pending_answer.c), and answers.c
 * replies in the model's place. That is why a policy must be deterministic. Rejected:
 * keeping the coroutine, which would tie an answer to one build of Lua and to one
 * process.
 *
 * A pending run must never block anybody: it is a fact, and one that is never answered
 * costs a compaction.
 */
#include "run/run.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "run/begin.h"
#include "operations/pending.h"

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
        if (i)
            buf_putc(out, ',');
        record_step(step, out);
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

/* What fired at the turn's end, and the policy that this run replaces: the process that
 * answers may have other settings, and judges at another time. */
static void put_why(const run_core *run, buf *out)
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

static void put_pending_run(const run_core *run, buf *out)
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
    buf_printf(out, ",\"keep_min\":%" PRIu32, run->config.keep_min);
    put_why(run, out);
    buf_putc(out, ',');
    put_answers(&run->ask.answers, out);
    buf_puts(out, ",\"asks\":{\"policy\":");
    json_put_cstring(out, run_policy_step(run)->name);
    buf_puts(out, ",\"hash\":\"");
    put_hash(out, run->ask.request);
    buf_puts(out, "\",\"request\":");
    buf_put(out, run->schedule.result.request.data, run->schedule.result.request.size);
    buf_puts(out, "}}");
}

static void put_fact(const session_core *s, batch *b, const buf *data)
{
    batch_put(b, s->tree.head, ENTRY_PENDING_RUN, SOURCE_POLICY, data->data, data->size);
}

/* Writes the pending run again, with all its answers, so that a refused policy can be
 * fixed and run again without asking the model again. */
static sessile_status keep_answers(run_core *run, session_core *s, batch *b,
                                   sessile_error *err)
{
    sessile_id pending_run = run->replay.pending_run;
    buf text, data;
    entry e;
    sessile_status status;

    buf_init(&text, run->alloc);
    buf_init(&data, run->alloc);
    status = session_pending_run_locked(s, &pending_run, &text, &e, NULL);
    if (status == SESSILE_NOTFOUND) { /* the conversation has moved on */
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

sessile_status run_close_pending(run_core *run, session_core *s, batch *b,
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
    run_core *run;
    buf data;
    sessile_id id;
} pending_write;

/* session_build: the pending run. Closes the one that this run answers. */
static sessile_status build_pending_run(void *arg, session_core *s, batch *b,
                                        sessile_error *err)
{
    pending_write *w = arg;
    sessile_status status = run_close_pending(w->run, s, b, err);

    w->id = batch_next(b);
    if (status)
        return status;
    put_fact(s, b, &w->data);
    write_labels_put(&w->run->labels, b, 0, w->id);
    return SESSILE_OK;
}

static sessile_status build_close(void *arg, session_core *s, batch *b,
                                  sessile_error *err)
{
    return run_close_pending(arg, s, b, err);
}

/* Closes the pending run if no other entry of this run did. */
sessile_status run_end_pending(run_core *run, sessile_error *err)
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
    if (count)
        run_written(run, count);
    return SESSILE_OK;
}

sessile_status run_defer(run_core *run, sessile_id *out, sessile_error *err)
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
    if (run_policy_step(run)->is_host)
        return fail(
            err, SESSILE_INVALID,
            "a hook of the host is waited for, and only a model's answer can come "
            "from elsewhere: reply first");
    if (run->kind == RUN_PLAN)
        return fail(err, SESSILE_INVALID,
                    "a plan writes nothing, so that nobody could answer it later");
    run_wait_begin(run);
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
