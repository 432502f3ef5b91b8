/*
 * explain.c: why a message is in the context, what compactions did, and one taken back.
 *
 * Shapes what the engine hands out as tables, with the names of sessile.h. Sentences are
 * made of them in Lua (sessile/why.lua).
 */
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"

static const char *disposition_name(sessile_disposition disposition)
{
    return disposition == SESSILE_COVERED    ? "covered"
           : disposition == SESSILE_REPLACED ? "replaced"
           : disposition == SESSILE_UNDONE   ? "undone"
                                             : "lost";
}

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
static const struct binding_field refusal_fields[] = {
    COMPACTION("hook", SLICE, hook),           COMPACTION("message", SLICE, message),
    COMPACTION("law_name", SLICE, law_name),   COMPACTION("entry", KEY, entry),
    COMPACTION("repeated", INTEGER, repeated), {0}};

static const struct binding_field applied_fields[] = {
    COMPACTION("instructions", SLICE, instructions),
    COMPACTION("summary", SLICE, summary),
    COMPACTION("uncompacts", ID, uncompacts),
    COMPACTION("kept", INTEGER, kept),
    COMPACTION("lost", INTEGER, lost),
    COMPACTION("covered", INTEGER, covered),
    COMPACTION("replaced", INTEGER, replaced),
    COMPACTION("undone", INTEGER, undone),
    COMPACTION("written", INTEGER, written),
    COMPACTION("restored", INTEGER, restored),
    {0}};

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

static const struct binding_row compaction_row = {
    sizeof(sessile_compaction),
    more_of_compaction,
    {COMPACTION("id", ID, id), COMPACTION("time", INTEGER, time_ms),
     COMPACTION("policy", SLICE, policy), COMPACTION("reason", SLICE, reason)}};

/* session:compactions() -> list, oldest first; nil, message, code */
int binding_session_compactions(lua_State *L, struct binding_session *session)
{
    struct binding_result got = binding_result(L);
    sessile_compaction *rows = NULL;
    got.status = sessile_compactions(session->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &compaction_row, rows);
}

/* ------------------------------------------------------------------ why */

static const char *kind_name(sessile_why_kind kind)
{
    static const char *const names[] = {
        "said",       "written", "left",       "restored", "elsewhere",
        "no_message", "orphan",  "unanswered", "moved",
    };
    size_t i = (size_t)kind;
    return i < sizeof names / sizeof *names ? names[i] : "";
}

static void more_of_step(lua_State *L, const void *row)
{
    const sessile_why_step *s = row;
    binding_set_text(L, "kind", kind_name(s->kind));
    if (s->role != SESSILE_ROLE_NONE)
        binding_set_text(L, "role", sessile_role_name(s->role));
    if (s->kind == SESSILE_WHY_LEFT)
        binding_set_text(L, "disposition", disposition_name(s->disposition));
    if (s->kind == SESSILE_WHY_WRITTEN)
        set_keys(L, "stands_for", s->stands_for, s->stands_for_count);
    if (s->compaction) {
        binding_push_row(L, &compaction_row, s->compaction);
        lua_setfield(L, -2, "compaction");
    }
}

#define STEP(...) BINDING_FIELD(sessile_why_step, __VA_ARGS__)
static const struct binding_row step_row = {
    sizeof(sessile_why_step),
    more_of_step,
    {STEP("key", KEY, key), STEP("at", ID, at), STEP("time", INTEGER, time_ms),
     STEP("type", TEXT, type), STEP("by", KEY, by)}};

/* session:why(key) -> {key, in_context, shown, steps}; nil, message, code */
int binding_session_why(lua_State *L, struct binding_session *session)
{
    sessile_explanation *why = NULL;
    sessile_slice text;
    sessile_key key;
    text.data = luaL_checklstring(L, 2, &text.size);
    if (sessile_key_parse(text, &key)) {
        return binding_fail_with(L, SESSILE_INVALID,
                                 "that is no name of a message: an entry id of 8 hex "
                                 "digits, or one like 00000016.1, is");
    }
    struct binding_result got = binding_result(L);
    got.status = sessile_why(session->handle, key, &why, &got.err);
    if (binding_result_failed(L, &got, why))
        return 3;
    luaL_checkstack(L, 12, "why");
    lua_createtable(L, 0, 4);
    binding_set_key(L, "key", why->key);
    binding_set_boolean(L, "in_context", why->in_context);
    binding_set_key(L, "shown", why->shown);
    binding_push_rows(L, &step_row, why->steps, why->step_count);
    lua_setfield(L, -2, "steps");
    return binding_result_done(&got);
}

/* ------------------------------------------------------------------ uncompact */

/* session:uncompact([id], dry_run) -> {compaction, undone, restored, removed, tokens,
 * cannot_fit}; nil, message, code */
int binding_session_uncompact(lua_State *L, struct binding_session *session)
{
    sessile_id which = lua_isnoneornil(L, 2) ? SESSILE_NO_ID : binding_check_id(L, 2);
    sessile_uncompacted *done = NULL;
    struct binding_result got = binding_result(L);
    got.status =
        sessile_uncompact(session->handle, which, lua_toboolean(L, 3), &done, &got.err);
    if (binding_result_failed(L, &got, done))
        return 3;
    luaL_checkstack(L, 8, "uncompact");
    lua_createtable(L, 0, 6);
    binding_set_id(L, "compaction", done->compaction);
    binding_set_id(L, "undone", done->undone);
    set_keys(L, "restored", done->restored, done->restored_count);
    set_keys(L, "removed", done->removed, done->removed_count);
    set_tokens(L, done->tokens_before, done->tokens_after);
    if (done->cannot_fit > 0)
        binding_set_integer(L, "cannot_fit", done->cannot_fit);
    return binding_result_done(&got);
}
