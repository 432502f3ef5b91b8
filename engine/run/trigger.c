/*
 * trigger.c: decides whether to compact at the end of a turn.
 *
 * The engine has no timers: all triggers are judged here, once a turn, on the list as
 * merge, summarize and truncate left it. Messages and the interval are counted since the
 * last compaction. They fire at each multiple of their setting, once, whatever the
 * result, so nothing has to be stored. Share and overflow are conditions, which stay
 * true. The session handle remembers when they fired, and the log remembers when that led
 * to a compaction. If the compaction did not help, they fire again only when the context
 * has grown by a twentieth.
 */
#include "run/run.h"

static uint64_t ms_since(int64_t then, int64_t now)
{
    return now > then ? (uint64_t)(now - then) : 0;
}

/* Drops an attempt that was made on another branch. */
static sessile_status drop_attempt_elsewhere(session_core *s, sessile_id at,
                                             trigger_attempt *a, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    if (a->turn && a->turn < at)
        status = session_load_path_locked(s, at, a->turn, err);
    if (!status &&
        (a->turn > at || (a->turn && !session_descends_locked(s, at, a->turn))))
        a->turn = 0;
    return status;
}

sessile_status run_count_locked(run_core *run, sessile_error *err)
{
    session_core *s = run->session;
    run_counts *c = &run->counts;
    sessile_id before = 0;
    if (run->kind != RUN_TURN || run->fallback.runs || !run->config.triggers)
        return SESSILE_OK;
    c->by_share = s->compacting.by_share;
    c->by_overflow = s->compacting.by_overflow;
    sessile_status status = session_load_locked(s, run->saw.entry, err);
    if (!status)
        status = session_last_compaction_locked(s, run->saw.entry, &c->last, err);
    if (!status)
        status = session_turn_before_locked(s, run->saw.entry, c->last.id, &before, err);
    if (!status)
        status = drop_attempt_elsewhere(s, run->saw.entry, &c->by_share, err);
    if (!status)
        status = drop_attempt_elsewhere(s, run->saw.entry, &c->by_overflow, err);
    if (status)
        return status;
    const node *now = &s->tree.nodes[run->saw.entry];
    c->messages = now->messages - c->last.messages;
    c->ms = ms_since(c->last.time_ms, now->time_ms);
    if (before && before != c->last.id) {
        c->messages_before = s->tree.nodes[before].messages - c->last.messages;
        c->ms_before = ms_since(c->last.time_ms, s->tree.nodes[before].time_ms);
    }
    return SESSILE_OK;
}

/* 1 when the count passed a multiple of `every` since the turn before. */
static int multiple_passed(uint64_t every, uint64_t before, uint64_t now)
{
    return every && now / every > before / every;
}

/* The tokens of system prompt and tools vary a little with every report, so rooms that
 * differ by less than 1/64 of the window count as equal. */
static int same_room(const run_core *run, int64_t room)
{
    int64_t more = room - run_room(run);
    return (more < 0 ? -more : more) <= run->config.window / 64;
}

/* 1 when a compaction at entry `at`, for the same room, left at least `most` tokens, and
 * the context has hardly grown since: another one would not help. */
static int tried_in_vain(const run_core *run, sessile_id at, int64_t room, int64_t most)
{
    const context *c = state_after(run->state);
    int64_t grown = 0;
    if (!at || (room >= 0 && !same_room(run, room)))
        return 0;
    for (size_t i = 0; i < c->count; i++) {
        const item *it = &c->items[i];
        if (it->key.n == 0 && it->key.entry > at && it->key.entry != SESSILE_NO_ID)
            grown += it->tokens;
    }
    return context_tokens(c) - grown >= most && grown < run_room(run) / 20;
}

/* The context has at least `most` tokens, and a compaction may help. */
static int is_full(const run_core *run, int64_t most, trigger_attempt tried,
                   int count_last)
{
    const last_compaction *last = &run->counts.last;
    return context_tokens(state_after(run->state)) >= most &&
           !tried_in_vain(run, tried.turn, tried.room, most) &&
           !(count_last && tried_in_vain(run, last->id, last->room, most));
}

static int by_share(const run_core *run, const sessile_triggers *t)
{
    /* Rounded up; in two parts, so that room * share cannot overflow. */
    int64_t room = run_room(run), share = t->share;
    int64_t most = room / 1000 * share + (room % 1000 * share + 999) / 1000;
    return share && run->config.window > 0 && is_full(run, most, run->counts.by_share, 1);
}

static int by_overflow(const run_core *run, const sessile_triggers *t)
{
    return t->overflow &&
           laws_cannot_fit(state_after(run->state), run->config.window,
                           run_reserve(run)) > 0 &&
           is_full(run, run_room(run) + 1, run->counts.by_overflow,
                   run->counts.last.overflow);
}

/* Without this, a condition that stays true would fire at every turn. When the handle
 * cannot be locked, the next turn tries again. */
static void remember_attempt(run_core *run, trigger_attempt *attempt)
{
    if (session_lock(run->session, NULL))
        return;
    *attempt = (trigger_attempt){run->turn.last, run_room(run)};
    session_unlock(run->session);
}

static int chain_compacts(const run_core *run)
{
    for (size_t i = 0; i < policy_step_count(run->policy); i++)
        if (policy_step_get(run->policy, i)->hooks & SESSILE_HOOK_COMPACT)
            return 1;
    return 0;
}

static sessile_reason judge_triggers(run_core *run)
{
    const sessile_triggers *t = run->config.triggers;
    const run_counts *c = &run->counts;
    if (run->kind != RUN_TURN || !t || !chain_compacts(run))
        return SESSILE_REASON_TURN;
    int event =
        triggers_name(t, (sessile_slice){run->options.event, run->options.event_size});
    int overflow = by_overflow(run, t), share = by_share(run, t);
    if (share)
        remember_attempt(run, &run->session->compacting.by_share);
    if (event)
        return SESSILE_REASON_EVENT;
    if (overflow) {
        remember_attempt(run, &run->session->compacting.by_overflow);
        return SESSILE_REASON_OVERFLOW;
    }
    if (share || multiple_passed(t->messages, c->messages_before, c->messages))
        return SESSILE_REASON_THRESHOLD;
    return multiple_passed(t->interval_ms, c->ms_before, c->ms) ? SESSILE_REASON_TIMER
                                                                : SESSILE_REASON_TURN;
}

/* A run that was pending is given the reason that it had, and a fallback that of the
 * policy that it replaces. */
sessile_reason run_fired(run_core *run)
{
    if (run->fallback.reason != SESSILE_REASON_TURN)
        run->schedule.fired_first = run->fallback.reason;
    else if (!run->replay.runs)
        run->schedule.fired_first = judge_triggers(run);
    if (run->schedule.fired_first == SESSILE_REASON_OVERFLOW)
        run->schedule.overflowed = 1;
    return run->schedule.fired_first;
}

static int still_overflows(run_core *run)
{
    const sessile_triggers *t = run->config.triggers;
    if (run->replay.overflowed)
        return laws_cannot_fit(state_after(run->state), run->config.window,
                               run_reserve(run)) > 0;
    return t && chain_compacts(run) && by_overflow(run, t);
}

int run_fired_again(run_core *run)
{
    if (run->kind != RUN_TURN || run->schedule.overflowed || !still_overflows(run))
        return 0;
    remember_attempt(run, &run->session->compacting.by_overflow);
    run->schedule.overflowed = 1;
    run->schedule.fired = SESSILE_REASON_OVERFLOW;
    return 1;
}
