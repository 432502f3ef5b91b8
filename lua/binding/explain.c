/*
 * explain.c: why a message is in the context, what compactions did, and how to undo one.
 *
 * Shapes what the engine hands out as tables, with the names of sessile.h. Sentences are
 * made of them in Lua (sessile/why.lua).
 */
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"

static const char *const dispositions[] = {"lost", "covered", "replaced", "undone", NULL};

static void set_keys(lua_State *L, const char *name, const sessile_key *keys,
                     size_t count)
{
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (size_t i = 0; i < count; i++) {
        binding_push_key(L, keys[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    lua_setfield(L, -2, name);
}

/* ------------------------------------------------------------------ compactions */

#define COMPACTION(...) BINDING_FIELD(sessile_compaction, __VA_ARGS__)
static const struct binding_field refusal_fields[] = BINDING_FIELDS(
    COMPACTION("hook", SLICE, hook), COMPACTION("message", SLICE, message),
    COMPACTION("law_name", SLICE, law_name), COMPACTION("entry", KEY, entry),
    COMPACTION("repeated", INTEGER, repeated));

static const struct binding_field applied_fields[] = BINDING_FIELDS(
    COMPACTION("instructions", SLICE, instructions),
    COMPACTION("summary", SLICE, summary), COMPACTION("uncompacts", ID, uncompacts),
    COMPACTION("first_kept", ID, first_kept), COMPACTION("kept", INTEGER, kept),
    COMPACTION("lost", INTEGER, lost), COMPACTION("covered", INTEGER, covered),
    COMPACTION("replaced", INTEGER, replaced), COMPACTION("undone", INTEGER, undone),
    COMPACTION("written", INTEGER, written), COMPACTION("restored", INTEGER, restored));

static void set_tokens(lua_State *L, int64_t before, int64_t after)
{
    lua_createtable(L, 0, 2);
    binding_set_integer(L, "before", before);
    binding_set_integer(L, "after", after);
    lua_setfield(L, -2, "tokens");
}

static void more_of_compaction(lua_State *L, const void *row)
{
    const sessile_compaction *c = row;
    binding_set_text(L, "kind", c->refused ? "refusal" : "compaction");
    if (c->refused) {
        binding_set_fields(L, refusal_fields, c);
        if (c->law)
            binding_set_integer(L, "law", c->law);
        return;
    }
    binding_set_fields(L, applied_fields, c);
    if (c->policies.size > 2) {
        lua_json_push(L, c->policies.data, c->policies.size);
        lua_setfield(L, -2, "policies");
    }
    if (c->tokens_before >= 0 && c->tokens_after >= 0)
        set_tokens(L, c->tokens_before, c->tokens_after);
    uint64_t all =
        c->lost + c->covered + c->replaced + c->undone + c->written + c->restored;
    binding_set_text(L, "in_force",
                     c->in_force == 0     ? "no"
                     : c->in_force == all ? "yes"
                                          : "partly");
}

static const struct binding_row compaction_row =
    BINDING_ROW(sessile_compaction, more_of_compaction, COMPACTION("id", ID, id),
                COMPACTION("time", INTEGER, time_ms), COMPACTION("policy", SLICE, policy),
                COMPACTION("reason", SLICE, reason));

/* session:compactions() -> list, oldest first; nil, message, code */
BINDING_LIST(binding_session_compactions, sessile_compaction, &compaction_row,
             sessile_compactions)

/* ------------------------------------------------------------------ why */

static const char *const kinds[] = {
    "said",       "written", "left",       "restored", "elsewhere",
    "no_message", "orphan",  "unanswered", "moved",    NULL,
};

#define STEP(...) BINDING_FIELD(sessile_why_step, __VA_ARGS__)
static const struct binding_field left_fields[] = BINDING_FIELDS(
    BINDING_ENUM(sessile_why_step, "disposition", disposition, dispositions));

static void more_of_step(lua_State *L, const void *row)
{
    const sessile_why_step *s = row;
    if (s->kind == SESSILE_WHY_LEFT)
        binding_set_fields(L, left_fields, s);
    if (s->kind == SESSILE_WHY_WRITTEN)
        set_keys(L, "stands_for", s->stands_for, s->stands_for_count);
    if (s->compaction) {
        binding_push_row(L, &compaction_row, s->compaction);
        lua_setfield(L, -2, "compaction");
    }
}

static const struct binding_row step_row = BINDING_ROW(
    sessile_why_step, more_of_step, STEP("key", KEY, key), STEP("at", ID, at),
    STEP("time", INTEGER, time_ms), STEP("type", TEXT, type), STEP("by", KEY, by),
    STEP("role", ROLE, role), BINDING_ENUM(sessile_why_step, "kind", kind, kinds));

static void more_of_why(lua_State *L, const void *row)
{
    const sessile_explanation *why = row;
    binding_push_rows(L, &step_row, why->steps, why->step_count);
    lua_setfield(L, -2, "steps");
}

#define WHY(...) BINDING_FIELD(sessile_explanation, __VA_ARGS__)
static const struct binding_row why_row =
    BINDING_ROW(sessile_explanation, more_of_why, WHY("key", KEY, key),
                WHY("in_context", BOOLEAN, in_context), WHY("shown", KEY, shown));

/* session:why(key) -> {key, in_context, shown, steps}; nil, message, code */
int binding_session_why(lua_State *L, struct binding_session *session)
{
    sessile_explanation *why = NULL;
    sessile_key key;
    if (sessile_key_parse(binding_check_bytes(L, 2), &key)) {
        return binding_fail_with(L, SESSILE_INVALID,
                                 "a message is named by an entry id of 8 hex digits, or "
                                 "by one like 00000016.1");
    }
    struct binding_result got = binding_result(L);
    got.status = sessile_why(session->handle, key, &why, &got.err);
    luaL_checkstack(L, 12, "why");
    return binding_result_row(L, &got, &why_row, why);
}

/* ------------------------------------------------------------------ uncompact */

static void more_of_uncompacted(lua_State *L, const void *row)
{
    const sessile_uncompacted *done = row;
    set_keys(L, "restored", done->restored, done->restored_count);
    set_keys(L, "removed", done->removed, done->removed_count);
    set_tokens(L, done->tokens_before, done->tokens_after);
    if (done->cannot_fit > 0)
        binding_set_integer(L, "cannot_fit", done->cannot_fit);
}

#define UNCOMPACTED(...) BINDING_FIELD(sessile_uncompacted, __VA_ARGS__)
static const struct binding_row uncompacted_row = BINDING_ROW(
    sessile_uncompacted, more_of_uncompacted, UNCOMPACTED("compaction", ID, compaction),
    UNCOMPACTED("undone", ID, undone));

/* session:uncompact([id], dry_run) -> {compaction, undone, restored, removed, tokens,
 * cannot_fit}; nil, message, code */
int binding_session_uncompact(lua_State *L, struct binding_session *session)
{
    sessile_id which = binding_opt_id(L, 2);
    sessile_uncompacted *done = NULL;
    struct binding_result got = binding_result(L);
    got.status =
        sessile_uncompact(session->handle, which, lua_toboolean(L, 3), &done, &got.err);
    return binding_result_row(L, &got, &uncompacted_row, done);
}
