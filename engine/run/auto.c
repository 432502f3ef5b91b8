/*
 * auto.c: checkpoints that the engine makes at the end of a turn.
 *
 * When a turn and its policies are done, the rules decide whether a checkpoint is due.
 * Its state comes with the turn, or the host is asked for it (SESSILE_NEED_STATE). A
 * checkpoint that cannot be written is reported in the outcome; it never fails the turn.
 */
#include "run/run.h"

#include "guard/event.h"
#include "operations/checkpoint.h"
#include "session/count.h"

/* The newest checkpoint of a branch: its entry, and messages and time up to it. */
typedef struct since {
    sessile_id stands; /* SESSILE_NO_ID: there is none on this branch */
    uint32_t messages;
    int64_t time_ms;
} since;

static sessile_status last_checkpoint_locked(session_core *s, sessile_id at, since *out,
                                             sessile_error *err)
{
    *out = (since){SESSILE_NO_ID, 0, s->header.created_ms};
    for (size_t i = s->fold.facts.count; i-- > 0;) {
        const fact *one = &s->fold.facts.at[i];
        if (one->kind != FACT_CHECKPOINT || one->off || one->entry < 1)
            continue;
        sessile_id id = one->about;
        sessile_status status = session_load_locked(s, id, err);
        if (status)
            return status;
        /* a checkpoint of another branch does not count */
        sessile_id stands = s->tree.nodes[id].parent;
        status = session_load_path_locked(s, at, stands, err);
        if (status)
            return status;
        if (stands == at || session_descends_locked(s, at, stands)) {
            *out = (since){stands, s->tree.nodes[id].messages, s->tree.nodes[id].time_ms};
            return SESSILE_OK;
        }
    }
    return SESSILE_OK;
}

/*
 * 1 when the context has reached the share since the newest checkpoint: there is no
 * checkpoint on this branch, or the context was below the share when it was made, or a
 * compaction made it smaller since. Messages appended between turns count like the turn,
 * because agents append each step. Walks back no further than that checkpoint or
 * compaction.
 */
static int share_crossed(const session_core *s, const run_core *run,
                         const sessile_triggers *t, int64_t now, const since *last)
{
    int64_t room = laws_room(run->config.window, run->config.reserve);
    int64_t share = t->share;
    int64_t most = room / 1000 * share + (room % 1000 * share + 999) / 1000;
    sessile_id id = run->turn.last, compacted = s->tree.nodes[id].context_at;

    if (!t->share || run->config.window <= 0 || now < most)
        return 0;
    if (last->stands == SESSILE_NO_ID)
        return 1;
    /* ids on one path grow from parent to child */
    sessile_id stop = compacted > last->stands ? compacted : last->stands;
    while (now >= most && id > stop) {
        now -= s->tree.nodes[id].tokens;
        id = s->tree.nodes[id].parent;
    }
    return now < most;
}

static sessile_status judge_rules(run_core *run, const sessile_triggers *t, int *due,
                                  sessile_error *err)
{
    session_core *s = run->session;
    sessile_slice event = {run->options.event, run->options.event_size};
    sessile_tokens tokens;
    since last;
    sessile_status status = session_lock_within(s, &run->wait, err);
    if (status)
        return status;
    status = session_load_path_locked(s, run->turn.last, run->turn.first, err);
    if (!status)
        status = last_checkpoint_locked(s, run->turn.last, &last, err);
    if (!status && s->tree.head == run->turn.last)
        status = session_tokens_locked(s, &tokens, err);
    else if (!status)
        tokens.tokens = run->result.outcome.tokens_before;
    if (!status) {
        const node *now = &s->tree.nodes[run->turn.last];
        *due = 1;
        if (event.size && triggers_name(t, event))
            run->checkpoint.reason = SESSILE_CHECKPOINT_EVENT;
        else if (share_crossed(s, run, t, tokens.tokens, &last))
            run->checkpoint.reason = SESSILE_CHECKPOINT_THRESHOLD;
        else if ((t->messages && now->messages - last.messages >= t->messages &&
                  now->messages >= last.messages) ||
                 (t->interval_ms && now->time_ms > last.time_ms &&
                  (uint64_t)(now->time_ms - last.time_ms) >= t->interval_ms))
            run->checkpoint.reason = SESSILE_CHECKPOINT_PERIODIC;
        else
            *due = 0;
    }
    session_unlock(s);
    return status;
}

static void write_checkpoint(run_core *run, sessile_slice state)
{
    sessile_error why = {0};
    sessile_checkpoint_options o = {.state = state,
                                    .reason = run->checkpoint.reason,
                                    .keep = run->config.checkpoint.keep};
    if (o.reason == SESSILE_CHECKPOINT_EVENT)
        o.event = (sessile_slice){run->options.event, run->options.event_size};
    sessile_status status = guard_checkpoint_begin(run->who, run->session, &why);
    if (!status)
        status = session_checkpoint_at(run->session, run->result.outcome.head, &o,
                                       &run->result.outcome.checkpoint, &why);
    guard_checkpoint_end(run->who, run->session, run->result.outcome.checkpoint, &why);
    if (status)
        run->checkpoint.why = why;
}

sessile_status run_checkpoint(run_core *run, sessile_need *need, sessile_error *err)
{
    const sessile_triggers *rules = run->config.checkpoint.triggers;
    int due = 0;

    if (run->kind != RUN_TURN || run->replay.runs || run->turn.again || !rules ||
        run->checkpoint.done)
        return SESSILE_OK;
    if (run->checkpoint.asked) {
        run->checkpoint.done = 1;
        write_checkpoint(run, !run->ask.answer.status ? run->ask.answer.text
                                                      : (sessile_slice){NULL, 0});
        return SESSILE_OK;
    }
    sessile_error why = {0};
    if (judge_rules(run, rules, &due, &why)) {
        run->checkpoint.why = why;
        due = 0;
    }
    if (!due || run->checkpoint.state.size) {
        run->checkpoint.done = 1;
        if (due)
            write_checkpoint(run, run->checkpoint.state);
        return SESSILE_OK;
    }
    /* The turn is written but not yet durable, and the answer may take any time. */
    sessile_status status = run_sync(run, err);
    if (status)
        return status;
    *need =
        (sessile_need){.kind = SESSILE_NEED_STATE, .policy = "", .now_ms = run->now_ms};
    run->checkpoint.asked = 1;
    run->ask.out = 1;
    return SESSILE_NEEDS;
}
