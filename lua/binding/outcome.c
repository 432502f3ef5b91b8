/*
 * outcome.c: what a run came to, as a table: its verdict, what was written, the messages
 * that left the context, and what its fallback came to.
 */
#include "binding.h"

const char *const binding_verdicts[] = {"none",       "unchanged", "applied", "refused",
                                        "too_little", "stale",     "pending", NULL};
static const char *const dispositions[] = {"lost", "covered", "replaced", NULL};

#define REMOVAL(...) BINDING_FIELD(sessile_removal, __VA_ARGS__)
static const struct binding_row removal_row =
    BINDING_ROW(sessile_removal, NULL, REMOVAL("key", KEY, key),
                REMOVAL("tokens", INTEGER, tokens), REMOVAL("by", KEY, by),
                BINDING_ENUM(sessile_removal, "disposition", disposition, dispositions),
                REMOVAL("role", ROLE, role));

/* What the fallback came to, when it ran. */
#define FALLBACK(...) BINDING_FIELD(sessile_fallback, __VA_ARGS__)
static const struct binding_row fallback_row = BINDING_ROW(
    sessile_fallback, NULL,
    BINDING_ENUM(sessile_fallback, "verdict", verdict, binding_verdicts),
    FALLBACK("too_little", BOOLEAN, too_little), FALLBACK("policy", TEXT, policy),
    FALLBACK("hook", TEXT, hook), FALLBACK("law", INTEGER, law),
    FALLBACK("message", TEXT, message), FALLBACK("refusal", ID, refusal),
    FALLBACK("repeated", INTEGER, repeated));

static void more_of_outcome(lua_State *L, const void *row)
{
    const sessile_outcome *outcome = row;
    binding_set_text(L, "reason", sessile_reason_name(outcome->reason));
    if (outcome->fallback.verdict != SESSILE_NO_POLICY) {
        binding_push_row(L, &fallback_row, &outcome->fallback);
        lua_setfield(L, -2, "fallback");
    }
    binding_push_rows(L, &removal_row, outcome->removals, outcome->removal_count);
    lua_setfield(L, -2, "removals");
}

#define OUTCOME(...) BINDING_FIELD(sessile_outcome, __VA_ARGS__)
static const struct binding_row outcome_row = BINDING_ROW(
    sessile_outcome, more_of_outcome,
    BINDING_ENUM(sessile_outcome, "verdict", verdict, binding_verdicts),
    OUTCOME("again", BOOLEAN, again), OUTCOME("first", ID, first),
    OUTCOME("last", ID, last), OUTCOME("head", ID, head),
    OUTCOME("compaction", ID, compaction), OUTCOME("time", TIME, time_ms),
    OUTCOME("first_kept", ID, first_kept), OUTCOME("branch_summary", ID, branch_summary),
    OUTCOME("from", ID, from), OUTCOME("refusal", ID, refusal),
    OUTCOME("pending_run", ID, pending_run), OUTCOME("checkpoint", ID, checkpoint),
    OUTCOME("checkpoint_failed", TEXT, checkpoint_failed),
    OUTCOME("repeated", INTEGER, repeated), OUTCOME("log", TEXT, log),
    OUTCOME("too_little", BOOLEAN, too_little), OUTCOME("policy", TEXT, policy),
    OUTCOME("hook", TEXT, hook), OUTCOME("message", TEXT, message),
    OUTCOME("memory", JSON, memory), OUTCOME("summary", TEXT, summary),
    OUTCOME("law", INTEGER, law), OUTCOME("tokens_before", INTEGER, tokens_before),
    OUTCOME("tokens_after", INTEGER, tokens_after),
    OUTCOME("cannot_fit", INTEGER, cannot_fit), OUTCOME("engine_us", INTEGER, engine_us),
    OUTCOME("policy_us", INTEGER, policy_us));

/* run:outcome() -> what sessile_outcome holds, under the same names; ids are strings,
 * what is absent is nil */
int binding_run_outcome(lua_State *L, struct binding_run *run)
{
    sessile_outcome outcome;
    sessile_error err;
    return binding_done_row(L, sessile_run_outcome(run->handle, &outcome, &err),
                            &outcome_row, &outcome, &err);
}
