/*
 * commit.c: writes the proposal of a finished pipeline, or its refusal, as one entry.
 *
 * A proposal is a list of messages up to the entry that its policy saw. What others
 * appended since then follows the list, what they pinned stays in it, and the laws are
 * checked on the result, under the log's lock. A proposal is stale when the head no
 * longer descends from what the policy saw, when another compaction was written first, or
 * when only the later messages make it break a law. A stale proposal is dropped and
 * reported. It is not computed again in the same turn.
 */
#include "run/run.h"

#include "base/text.h"
#include "session/life.h"
#include "session/count.h"
#include "session/read.h"

typedef struct commit_write {
    run_core *run;
    int with_context;
    const char *stale; /* why it was dropped, or NULL */
    buf data;
} commit_write;

/* Checks the laws on the proposal followed by what was appended since, with the pins that
 * are in force now. */
static sessile_status judge_with_later(commit_write *w, session_core *s, sessile_id at,
                                       sessile_error *err)
{
    run_core *run = w->run;
    const context *now, *before = state_before(run->state);
    laws_input in;
    context after, there;
    pairing pairs;
    judgement judged = {LAW_NONE, {SESSILE_NO_ID, 0}, ""};
    sessile_status status;
    context_init(&after, run->alloc);
    context_init(&there, run->alloc);
    pairing_init(&pairs, run->alloc);

    if (at == s->tree.head) {
        status = session_context_locked(s, &now, err);
    } else {
        status = session_context_at_locked(s, at, &there, err);
        now = &there;
    }
    if (!status)
        status = state_laws(run->state, &in, err);
    if (!status &&
        (context_copy(&after, state_after(run->state)) || pairing_make(&pairs, now)))
        status = fail_nomem(err);
    for (size_t i = before->count; !status && i < now->count; i++)
        if (context_push(&after, &now->items[i], now->links + now->items[i].link))
            status = fail_nomem(err);
    if (!status) {
        in.before = now;
        in.before_pairs = &pairs;
        in.after = &after;
        status = laws_check(&in, &judged, run->alloc, err);
    }
    if (!status && judged.broken != LAW_NONE)
        w->stale = judged.broken == LAW_PINNED
                       ? "a message that it changes was pinned meanwhile"
                       : "it breaks a law together with messages that came meanwhile";
    pairing_deinit(&pairs);
    context_deinit(&there);
    context_deinit(&after);
    return status;
}

/* session_build: the compaction entry, unless the proposal is stale. */
static sessile_status build_compaction(void *arg, session_core *s, batch *b,
                                       sessile_error *err)
{
    commit_write *w = arg;
    run_core *run = w->run;
    sessile_id now_at = s->tree.head ? s->tree.nodes[s->tree.head].context_at : 0;
    sessile_id parent = s->tree.head;
    sessile_status status =
        session_load_path_locked(s, s->tree.head, run->saw.entry, err);
    sessile_error suspended = {0};

    if (status)
        return status;
    int descends = s->tree.head == run->saw.entry ||
                   session_descends_locked(s, s->tree.head, run->saw.entry);
    if (session_check_running_locked(s, &suspended))
        w->stale = "the session was suspended meanwhile";
    else if (run->replay.pending_run != SESSILE_NO_ID &&
             !facts_find(&s->fold.facts, FACT_PENDING_RUN, run->replay.pending_run, "",
                         0))
        w->stale = "the pending run was answered or cancelled meanwhile";
    else if (!descends && run->turn.beside)
        parent = run->saw.entry; /* after the turn itself, which nobody has followed */
    else if (!descends)
        w->stale = "the head was moved meanwhile";
    else if (now_at != run->saw.context_at ||
             (s->tree.head ? s->tree.nodes[s->tree.head].vars_at : 0) != run->saw.vars_at)
        w->stale = "the context was compacted, or a compaction undone, meanwhile";
    if (!w->stale && s->tree.node_count != run->saw.count && w->with_context)
        status = judge_with_later(w, s, parent, err);
    if (status || w->stale)
        return status;

    sessile_id self = batch_next(b);
    status = record_compaction(run, self, w->with_context, &w->data, err);
    if (status)
        return status;
    batch_put(b, parent, ENTRY_COMPACTION, SOURCE_POLICY, w->data.data, w->data.size);
    write_labels_put(&run->labels, b, 0, self);
    if (parent != s->tree.head) {
        batch_move_head(b, s->tree.head, s->tree.head);
        b->base = self;
    }
    run->result.outcome.compaction = self;
    run->result.outcome.time_ms = b->now_ms;
    return run_close_pending(run, s, b, err);
}

/* session_build: the refusal, unless it equals the last one written. */
static sessile_status build_refusal(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    commit_write *w = arg;
    run_core *run = w->run;
    buf_clear(&w->data);
    record_refusal(run, &w->data);
    if (w->data.failed)
        return fail_nomem(err);
    uint64_t last = run->fallback.runs ? s->refusals.last_fallback : s->refusals.last;
    uint64_t *repeated =
        run->fallback.runs ? &s->refusals.fallback_repeated : &s->refusals.repeated;
    if (hash64_lasting(w->data.data, w->data.size) == last) {
        run->result.outcome.repeated = ++*repeated;
        return SESSILE_OK;
    }
    run->result.outcome.refusal =
        batch_put(b, run->turn.beside ? run->turn.last : s->tree.head, ENTRY_REFUSAL,
                  SOURCE_POLICY, w->data.data, w->data.size);
    *repeated = 0;
    return run_close_pending(run, s, b, err);
}

static sessile_status write_refusal(run_core *run, sessile_error *err)
{
    run->result.outcome.verdict = SESSILE_REFUSED;
    if (run->kind == RUN_PLAN)
        return SESSILE_OK;
    commit_write w = {.run = run};
    buf_init(&w.data, run->alloc);
    sessile_id count = 0;
    sessile_status status =
        session_write(run->session, build_refusal, &w,
                      &(session_writing){.wait = &run->wait, .count = &count}, err);
    if (status)
        run->result.outcome.refusal = SESSILE_NO_ID;
    else if (run->result.outcome.refusal != SESSILE_NO_ID)
        run_written(run, count);
    buf_deinit(&w.data);
    return status;
}

/* A state scales each count to the model's tokens. For messages that stay, this restores
 * the original counts, so that the sum equals the one that the session will report. */
static void unscale(context *after, const context *before)
{
    size_t at = 0;

    for (size_t i = 0; i < after->count; i++) {
        item *it = &after->items[i];
        if (it->key.entry == SESSILE_NO_ID)
            continue;
        for (size_t looked = 0; looked < before->count; looked++) {
            const item *was = &before->items[at];
            at = at + 1 < before->count ? at + 1 : 0;
            if (was->key.entry == it->key.entry && was->key.n == it->key.n) {
                it->tokens = was->tokens;
                it->unit = was->unit;
                break;
            }
        }
    }
}

/* The tokens of the new context, as sessile_count_tokens() will report them. */
static sessile_status count_after(run_core *run, const context *to_come,
                                  sessile_error *err)
{
    session_core *s = run->session;
    context before, after;
    sessile_tokens tokens = {0};
    sessile_status status = session_lock_within(s, &run->wait, err);
    if (status)
        return status;
    context_init(&before, run->alloc);
    context_init(&after, run->alloc);
    status = session_context_at_locked(s, run->saw.entry, &before, err);
    if (!status && context_copy(&after, to_come))
        status = fail_nomem(err);
    if (!status) {
        unscale(&after, &before);
        status = session_tokens_with_locked(s, run->saw.entry, &after, &tokens, err);
    }
    session_unlock(s);
    if (!status)
        run->result.outcome.tokens_after = tokens.tokens;
    context_deinit(&before);
    context_deinit(&after);
    return status;
}

/* The removals, tokens and summary of an accepted proposal, for the outcome. */
static sessile_status account_removals(run_core *run, const laws_input *in,
                                       sessile_error *err)
{
    if (laws_account(in, &run->result.removals, &run->result.removal_count,
                     &run->result.removal_capacity, run->alloc))
        return fail_nomem(err);
    run->result.outcome.first_kept = record_first_kept(run, in);
    sessile_status status = count_after(run, in->after, err);
    if (!status)
        status = record_number(run, err);
    return !status ? record_summary(run, err) : status;
}

static sessile_status write_compaction(run_core *run, int changed, sessile_error *err)
{
    commit_write w = {.run = run, .with_context = changed};
    buf_init(&w.data, run->alloc);
    sessile_id count = 0;
    sessile_status status =
        session_write(run->session, build_compaction, &w,
                      &(session_writing){.wait = &run->wait, .count = &count}, err);
    buf_deinit(&w.data);
    if (status)
        return status;
    if (w.stale) {
        run_forget(run);
        run->result.outcome.verdict = SESSILE_STALE;
        run_say(run, w.stale);
        return SESSILE_OK;
    }
    run_written(run, count);
    for (size_t i = 0; i < run->result.removal_count; i++)
        if (run->result.removals[i].by.n &&
            run->result.removals[i].by.entry == SESSILE_NO_ID)
            run->result.removals[i].by.entry = run->result.outcome.compaction;
    run->result.outcome.head = run->result.outcome.compaction;
    run->result.outcome.verdict = changed ? SESSILE_APPLIED : SESSILE_UNCHANGED;
    return SESSILE_OK;
}

/* 1 when the list after the hooks is not the list before them. */
static int is_changed(const run_core *run)
{
    const context *a = state_before(run->state), *b = state_after(run->state);
    if (a->count != b->count)
        return 1;
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].key.entry != b->items[i].key.entry ||
            a->items[i].key.n != b->items[i].key.n)
            return 1;
    return 0;
}

sessile_status run_commit(run_core *run, sessile_error *err)
{
    laws_input in;
    if (run->result.refused)
        return write_refusal(run, err);
    sessile_status status = state_laws(run->state, &in, err);
    if (status)
        return status;

    int changed = is_changed(run);
    if (changed) {
        laws_progress(&in, &run->result.judged);
        if (run->result.judged.broken != LAW_NONE) {
            run_refuse(run, run->result.judged.broken, run->result.judged.message);
            return write_refusal(run, err);
        }
        status = account_removals(run, &in, err);
        if (status)
            return status;
    }
    run->result.outcome.verdict =
        run->result.outcome.too_little ? SESSILE_TOO_LITTLE : SESSILE_UNCHANGED;
    if (run->kind == RUN_PLAN) {
        if (changed)
            run->result.outcome.verdict = SESSILE_APPLIED;
        return SESSILE_OK;
    }
    if (!changed && !run->notes.changed)
        return SESSILE_OK;
    sessile_verdict quiet = run->result.outcome.verdict;
    status = write_compaction(run, changed, err);
    if (!status && run->result.outcome.verdict == SESSILE_UNCHANGED)
        run->result.outcome.verdict = quiet;
    return status;
}
