/*
 * schedule.c: decides which hook of which policy runs next, and handles its result.
 *
 * The order is fixed. merge of every policy in the chain (turns only), then summarize of
 * every policy, then truncate of every policy. After that, policy by policy:
 * should_compact, flush and compact, each on the list as edited so far. should_compact is
 * not called when a trigger fired. When the list still does not fit, and the overflow
 * trigger is set, flush and compact go through the chain once more.
 *
 * A compaction that the host asked for skips should_compact as well. It runs flush and
 * compact of the policies that have a compact hook, and summarize and truncate of the
 * others.
 *
 * The laws are checked after each hook that changed the list, so that a refusal names the
 * hook. Nothing is written here.
 */
#include "run/run.h"

#include "base/text.h"
#include "proposal/state.h"
#include "run/begin.h"

/* Phases of one policy within STAGE_COMPACT, in order. */
enum {
    PHASE_ASK,
    PHASE_FLUSH,
    PHASE_COMPACT,
    PHASE_SUMMARIZE,
    PHASE_TRUNCATE,
    PHASE_END
};

static int policy_has_hook(const run_core *run, sessile_hook hook)
{
    return (run_policy_step(run)->hooks & (unsigned)hook) != 0;
}

static int asked_by_person(const run_core *run)
{
    return run->kind != RUN_TURN;
}

/* The hook of the next phase of this policy's compaction; 0: none is left. */
static sessile_hook next_phase(run_core *run)
{
    int compacts = policy_has_hook(run, SESSILE_HOOK_COMPACT);
    for (; run->schedule.phase < PHASE_END; run->schedule.phase++) {
        switch (run->schedule.phase) {
        case PHASE_ASK:
            if (asked_by_person(run) || run->schedule.fired != SESSILE_REASON_TURN)
                continue;
            /* Without should_compact, compact runs only for a trigger or on request. */
            if (!compacts || !policy_has_hook(run, SESSILE_HOOK_SHOULD_COMPACT))
                return 0;
            run->schedule.phase++;
            return SESSILE_HOOK_SHOULD_COMPACT;
        case PHASE_FLUSH:
            if (compacts && policy_has_hook(run, SESSILE_HOOK_FLUSH)) {
                run->schedule.phase++;
                return SESSILE_HOOK_FLUSH;
            }
            break;
        case PHASE_COMPACT:
            if (compacts) {
                run->schedule.phase = PHASE_END;
                return SESSILE_HOOK_COMPACT;
            }
            break;
        case PHASE_SUMMARIZE:
        case PHASE_TRUNCATE: {
            sessile_hook hook = run->schedule.phase == PHASE_SUMMARIZE
                                    ? SESSILE_HOOK_SUMMARIZE
                                    : SESSILE_HOOK_TRUNCATE;
            if (asked_by_person(run) && policy_has_hook(run, hook)) {
                run->schedule.phase++;
                return hook;
            }
            break;
        }
        default:
            break;
        }
    }
    return 0;
}

/* Sets schedule.hook to the next hook, or the stage to STAGE_COMMIT. */
static void next_hook(run_core *run)
{
    static const sessile_hook of_stage[] = {SESSILE_HOOK_MERGE, SESSILE_HOOK_SUMMARIZE,
                                            SESSILE_HOOK_TRUNCATE};
    size_t steps = policy_step_count(run->policy);
    while (run->schedule.stage < STAGE_COMMIT) {
        for (; run->schedule.step < steps; run->schedule.step++) {
            if (run->schedule.stage == STAGE_COMPACT) {
                run->schedule.hook = next_phase(run);
                if (run->schedule.hook)
                    return;
                run->schedule.phase = PHASE_ASK;
            } else if (policy_has_hook(run, of_stage[run->schedule.stage])) {
                run->schedule.hook = of_stage[run->schedule.stage];
                return;
            }
        }
        run->schedule.step = 0;
        run->schedule.phase = PHASE_ASK;
        if (run->schedule.stage == STAGE_COMPACT && run_fired_again(run))
            continue;
        run->schedule.stage++;
        if (run->schedule.stage == STAGE_COMPACT)
            run->schedule.fired = run_fired(run);
    }
}

/* A hook that fails refuses the pipeline. The turn still succeeds: a failing policy costs
 * a compaction, never a message. */
static void hook_failed(run_core *run, const sessile_error *why)
{
    run_name_policy(run);
    state_hook_drop(run->state);
    run_refuse(run, run->schedule.result.spent ? LAW_BOUNDS : LAW_NONE,
               why->message[0] ? why->message : "the policy failed");
}

/* Law 6, second part: a compaction that saves less than a twentieth is not worth a new
 * prompt cache. It does not apply when somebody asked for it, or when the list does not
 * fit. */
static int saves_too_little(const run_core *run)
{
    sessile_reason reason = run_reason_of_hook(run);
    int64_t now = state_tokens(run->state);
    if (run->schedule.did_not_fit ||
        (reason != SESSILE_REASON_THRESHOLD && reason != SESSILE_REASON_TIMER &&
         reason != SESSILE_REASON_EVENT))
        return 0;
    return run->schedule.tokens_given - now < run->schedule.tokens_given / 20;
}

/* Ends the hook: applies its edits and checks the laws. */
static sessile_status hook_done(run_core *run, sessile_error *err)
{
    if (run->schedule.hook == SESSILE_HOOK_SHOULD_COMPACT) {
        /* should_compact only answers a question: its edits are dropped. */
        state_hook_drop(run->state);
        if (!run->schedule.result.verdict) {
            run->schedule.step++;
            run->schedule.phase = PHASE_ASK;
        }
        run->schedule.hook = 0;
        return SESSILE_OK;
    }
    const policy_step_info *step = run_policy_step(run);
    int changed, vars_changed;
    sessile_status status = state_hook_end(run->state, &changed, &vars_changed, err);
    if (!status && vars_changed)
        status = run_vars_set(run, step->name, state_vars_text(run->state), err);
    if (status)
        return status;
    if (changed) {
        laws_input in;
        status = state_laws(run->state, &in, err);
        if (!status)
            status = laws_check(&in, &run->result.judged, run->alloc, err);
        if (status)
            return status;
        run_name_policy(run);
        if (run->result.judged.broken != LAW_NONE) {
            run_refuse(run, run->result.judged.broken, run->result.judged.message);
            return SESSILE_OK;
        }
        run->schedule.edited |= UINT32_C(1) << (run->schedule.step & 31);
        if (run->schedule.hook == SESSILE_HOOK_COMPACT && saves_too_little(run)) {
            run->result.outcome.too_little = 1;
            run->schedule.edited = run->schedule.edited_before;
            status = state_rewind(run->state, err);
        } else if (run->schedule.hook == SESSILE_HOOK_COMPACT ||
                   run->schedule.hook == SESSILE_HOOK_FLUSH) {
            run->schedule.stands = run_reason_of_hook(run);
        }
    }
    if (run->schedule.stage != STAGE_COMPACT)
        run->schedule.step++;
    run->schedule.hook = 0;
    return status;
}

sessile_status run_make_pipeline(run_core *run, sessile_error *err)
{
    session_core *s = run->session;
    policy_setup setup = {
        .session_id = {s->identity.id, s->identity.id_size},
        .agent = {s->identity.agent, s->identity.agent_size},
        .metadata = {s->header.metadata, s->header.metadata_size},
        .turn = run->saw.entry,
        .instructions = {run->options.instructions, run->options.instructions_size},
        .now_ms = run->now_ms,
        .worker = run->worker,
        .has_memory = run->memory.has,
        .state = run->state,
        .journal = &run->journal};
    buf title;
    sessile_status status = session_lock(s, err);
    if (status)
        return status;
    buf_init(&title, run->alloc);
    buf_put(&title, s->fold.title ? s->fold.title : "", s->fold.title_size);
    session_unlock(s);
    status = title.failed ? fail_nomem(err) : SESSILE_OK;
    if (!status)
        status = run_memory_show(run, err);
    if (!status) {
        setup.title = (sessile_slice){title.data, title.size};
        status = policy_pipeline_new(&run->pipeline, run->policy, &setup, err);
    }
    buf_deinit(&title);
    return status;
}

/* Starts schedule.hook. OK: it has ended; NEEDS: it waits for a model or for the host. */
static sessile_status start_hook(run_core *run, sessile_error *err)
{
    const policy_step_info *step = run_policy_step(run);
    const run_vars *vars = run_vars_get(run, step->name);
    sessile_status status = state_hook_begin(run->state, vars ? vars->text : "{}",
                                             vars ? vars->text_size : 2, err);
    if (status)
        return status;
    if (run->schedule.hook == SESSILE_HOOK_FLUSH ||
        run->schedule.hook == SESSILE_HOOK_COMPACT)
        run->schedule.why = run_reason_of_hook(run);
    if (run->schedule.hook == SESSILE_HOOK_COMPACT) {
        run->schedule.tokens_given = state_tokens(run->state);
        run->schedule.did_not_fit =
            laws_cannot_fit(state_after(run->state), run->config.window,
                            run_reserve(run)) > 0;
        run->schedule.edited_before = run->schedule.edited;
        status = state_mark(run->state, err);
        if (status)
            return status;
    }
    if (step->is_host)
        return SESSILE_NEEDS;
    if (!run->pipeline) {
        status = run_make_pipeline(run, err);
        if (status)
            return status;
    }
    return policy_pipeline_call(run->pipeline, run->schedule.step, run->schedule.hook,
                                run->state, run_reason_of_hook(run),
                                &run->schedule.result, err);
}

/* A policy asks a model: 1 when the pending run has the answer already; it is used next.
 */
static int was_answered(run_core *run, sessile_error *why, sessile_status *status)
{
    if (run_policy_step(run)->is_host)
        return 0;
    run_request_hash(run->ask.request, run->schedule.result.request);
    const run_answer *known = run_answers_known(run);
    if (!known)
        return 0;
    sessile_answer answer = {.status = known->status, .text = {known->text, known->size}};
    run->ask.out = 1;
    *status = run_keep_reply(run, &answer, why);
    run->ask.out = 0;
    return *status == SESSILE_OK;
}

sessile_status run_schedule(run_core *run, sessile_need *need, sessile_error *err)
{
    while (run->schedule.stage < STAGE_COMMIT) {
        sessile_error why = {0};
        sessile_status status;
        if (run->ask.replied) {
            status = run_take_reply(run, &why);
        } else {
            next_hook(run);
            if (run->schedule.stage == STAGE_COMMIT)
                break;
            status = start_hook(run, &why);
        }
        if (status == SESSILE_NEEDS && run_memory_answer(run, &why, &status) && !status)
            continue;
        if (status == SESSILE_NEEDS && was_answered(run, &why, &status))
            continue;
        if (status == SESSILE_NEEDS)
            return run_ask_host(run, need, err);
        if (!status)
            status = hook_done(run, &why);
        if (status)
            hook_failed(run, &why);
    }
    return SESSILE_OK;
}
