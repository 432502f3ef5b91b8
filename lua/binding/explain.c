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

static void push_compaction(lua_State *L, const sessile_compaction *c)
{
    lua_createtable(L, 0, 20);
    binding_set_text(L, "kind", c->refused ? "refusal" : "compaction");
    binding_set_id(L, "id", c->id);
    binding_set_integer(L, "time", c->time_ms);
    binding_set_slice(L, "policy", c->policy);
    binding_set_slice(L, "reason", c->reason);
    if (c->refused) {
        binding_set_slice(L, "hook", c->hook);
        binding_set_slice(L, "message", c->message);
        if (c->law)
            binding_set_integer(L, "law", c->law);
        binding_set_slice(L, "law_name", c->law_name);
        binding_set_key(L, "entry", c->entry);
        binding_set_integer(L, "repeated", c->repeated);
        return;
    }
    binding_set_slice(L, "instructions", c->instructions);
    binding_set_slice(L, "summary", c->summary);
    if (c->policies.size > 2) {
        lua_json_push(L, c->policies.data, c->policies.size);
        lua_setfield(L, -2, "policies");
    }
    if (c->tokens_before >= 0 && c->tokens_after >= 0) {
        lua_createtable(L, 0, 2);
        binding_set_integer(L, "before", c->tokens_before);
        binding_set_integer(L, "after", c->tokens_after);
        lua_setfield(L, -2, "tokens");
    }
    binding_set_id(L, "uncompacts", c->uncompacts);
    binding_set_integer(L, "kept", c->kept);
    binding_set_integer(L, "lost", c->lost);
    binding_set_integer(L, "covered", c->covered);
    binding_set_integer(L, "replaced", c->replaced);
    binding_set_integer(L, "undone", c->undone);
    binding_set_integer(L, "written", c->written);
    binding_set_integer(L, "restored", c->restored);
    uint64_t all =
        c->lost + c->covered + c->replaced + c->undone + c->written + c->restored;
    binding_set_text(L, "in_force",
                     c->in_force == 0     ? "no"
                     : c->in_force == all ? "yes"
                                          : "partly");
}

/* session:compactions() -> list, oldest first; nil, message, code */
int binding_session_compactions(lua_State *L, struct binding_session *session)
{
    struct binding_guard *guard;
    sessile_compaction *rows = NULL;
    sessile_status status;
    sessile_error err;
    size_t count = 0;
    guard = binding_guard(L);
    status = sessile_compactions(session->handle, &rows, &count, &err);
    guard->block = rows;
    if (status)
        return binding_fail(L, &err);
    luaL_checkstack(L, 8, "compactions");
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (size_t i = 0; i < count; i++) {
        push_compaction(L, &rows[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    binding_guard_free(guard);
    return 1;
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

static void push_step(lua_State *L, const sessile_why_step *s)
{
    lua_createtable(L, 0, 9);
    binding_set_text(L, "kind", kind_name(s->kind));
    binding_set_key(L, "key", s->key);
    binding_set_id(L, "at", s->at);
    binding_set_integer(L, "time", s->time_ms);
    if (s->role != SESSILE_ROLE_NONE)
        binding_set_text(L, "role", sessile_role_name(s->role));
    if (s->type[0])
        binding_set_text(L, "type", s->type);
    if (s->kind == SESSILE_WHY_LEFT)
        binding_set_text(L, "disposition", disposition_name(s->disposition));
    binding_set_key(L, "by", s->by);
    if (s->kind == SESSILE_WHY_WRITTEN)
        set_keys(L, "stands_for", s->stands_for, s->stands_for_count);
    if (s->compaction) {
        push_compaction(L, s->compaction);
        lua_setfield(L, -2, "compaction");
    }
}

/* session:why(key) -> {key, in_context, shown, steps}; nil, message, code */
int binding_session_why(lua_State *L, struct binding_session *session)
{
    struct binding_guard *guard;
    sessile_explanation *why = NULL;
    sessile_status status;
    sessile_slice text;
    sessile_error err;
    sessile_key key;
    text.data = luaL_checklstring(L, 2, &text.size);
    if (sessile_key_parse(text, &key)) {
        return binding_fail_with(L, SESSILE_INVALID,
                                 "that is no name of a message: an entry id of 8 hex "
                                 "digits, or one like 00000016.1, is");
    }
    guard = binding_guard(L);
    status = sessile_why(session->handle, key, &why, &err);
    guard->block = why;
    if (status)
        return binding_fail(L, &err);
    luaL_checkstack(L, 12, "why");
    lua_createtable(L, 0, 4);
    binding_set_key(L, "key", why->key);
    binding_set_boolean(L, "in_context", why->in_context);
    binding_set_key(L, "shown", why->shown);
    lua_createtable(L, why->step_count < INT32_MAX ? (int)why->step_count : 0, 0);
    for (size_t i = 0; i < why->step_count; i++) {
        push_step(L, &why->steps[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    lua_setfield(L, -2, "steps");
    binding_guard_free(guard);
    return 1;
}

/* ------------------------------------------------------------------ uncompact */

/* session:uncompact([id], dry_run) -> {compaction, undone, restored, removed, tokens,
 * cannot_fit}; nil, message, code */
int binding_session_uncompact(lua_State *L, struct binding_session *session)
{
    sessile_id which = lua_isnoneornil(L, 2) ? SESSILE_NO_ID : binding_check_id(L, 2);
    struct binding_guard *guard;
    sessile_uncompacted *done = NULL;
    sessile_status status;
    sessile_error err;
    guard = binding_guard(L);
    status = sessile_uncompact(session->handle, which, lua_toboolean(L, 3), &done, &err);
    guard->block = done;
    if (status)
        return binding_fail(L, &err);
    luaL_checkstack(L, 8, "uncompact");
    lua_createtable(L, 0, 6);
    binding_set_id(L, "compaction", done->compaction);
    binding_set_id(L, "undone", done->undone);
    set_keys(L, "restored", done->restored, done->restored_count);
    set_keys(L, "removed", done->removed, done->removed_count);
    lua_createtable(L, 0, 2);
    binding_set_integer(L, "before", done->tokens_before);
    binding_set_integer(L, "after", done->tokens_after);
    lua_setfield(L, -2, "tokens");
    if (done->cannot_fit > 0)
        binding_set_integer(L, "cannot_fit", done->cannot_fit);
    binding_guard_free(guard);
    return 1;
}
