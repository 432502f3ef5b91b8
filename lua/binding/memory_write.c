/*
 * memory_write.c: the methods of a memory that write: entries, verdicts, consent,
 * vectors.
 */
#include "binding.h"

#include <string.h>

#include "sessile_memory.h"

static const char *const verdicts[] = {"deleted", "rejected", "approved",  "restored",
                                       "pinned",  "unpinned", "confirmed", NULL};

/* ------------------------------------------------------------------ entries */

sessile_id *binding_memory_ids(lua_State *L, int table, const char *name, size_t *count)
{
    sessile_id *ids;
    int list;

    *count = binding_raw_field(L, table, name) == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    list = lua_gettop(L);
    ids = lua_newuserdatauv(L, (*count + 1) * sizeof *ids, 0);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        ids[i] = binding_check_id(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    return ids;
}

/* The messages that an entry is from; leaves what holds them on the stack. */
static const sessile_memory_from *get_from(lua_State *L, int table, size_t *count)
{
    sessile_memory_from *from;
    int list;

    *count = binding_raw_field(L, table, "from") == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    list = lua_gettop(L);
    from = lua_newuserdatauv(L, (*count + 1) * sizeof *from, 0);
    for (size_t i = 0; i < *count; i++) {
        int one;
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        one = lua_gettop(L);
        from[i].session = binding_field_bytes(L, one, "session");
        from[i].agent = binding_field_bytes(L, one, "agent");
        from[i].first = binding_field_id(L, one, "first");
        from[i].last = binding_field_id(L, one, "last");
        if (from[i].last == SESSILE_NO_ID)
            from[i].last = from[i].first;
        lua_pop(L, 1);
    }
    return from;
}

#define ENTRY(...) BINDING_FIELD(sessile_memory_write_entry, __VA_ARGS__)
static const struct binding_field entry_fields[] = BINDING_FIELDS(
    ENTRY("value", SLICE, value), ENTRY("key", SLICE, key), ENTRY("also", SLICE, also),
    ENTRY("author", SLICE, author), ENTRY("ttl_ms", INTEGER, ttl_ms),
    ENTRY("holds_from", INTEGER, holds_from_ms),
    ENTRY("holds_until", INTEGER, holds_until_ms), ENTRY("pending", BOOLEAN, pending),
    ENTRY("pinned", BOOLEAN, pinned));

/* Reads the entry at a table; leaves what holds it on the stack: 0; or pushes the three
 * values of a failure: 3. */
static int get_entry(lua_State *L, int table, sessile_memory_write_entry *e)
{
    sessile_memory_write_init(e);
    binding_get_fields(L, table, entry_fields, e);
    binding_field_number(L, table, "importance", &e->importance);
    e->kind = (sessile_memory_kind)binding_one_of(L, table, "kind", binding_memory_kinds);
    e->source =
        (sessile_memory_source)binding_one_of(L, table, "source", binding_memory_sources);
    e->has_was = binding_raw_field(L, table, "was") != LUA_TNIL;
    e->was = e->has_was && lua_toboolean(L, -1) ? binding_check_id(L, lua_gettop(L))
                                                : SESSILE_NO_ID;
    if (binding_field_json(L, table, "metadata", &e->metadata))
        return 3;
    e->from = get_from(L, table, &e->from_count);
    e->replaces = binding_memory_ids(L, table, "replaces", &e->replace_count);
    return 0;
}

/* memory:write{value, key, also, kind, source, author, from, replaces, importance,
 * ttl_ms, holds_from, holds_until, metadata, pending, pinned, was} -> id; nil, message,
 * code. was: an id, or false: there is none. */
int binding_memory_write(lua_State *L, struct binding_child *memory)
{
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id id;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    if (get_entry(L, 2, &e))
        return 3;
    return binding_done_id(L, sessile_memory_write(memory->handle, &e, 1, &id, &err), &id,
                           &err);
}

sessile_memory_write_entry *binding_memory_entries(lua_State *L, int list, size_t *count)
{
    sessile_memory_write_entry *entries;
    int held;

    *count = lua_istable(L, list) ? lua_rawlen(L, list) : 0;
    entries = lua_newuserdatauv(L, (*count + 1) * sizeof *entries, 0);
    lua_newtable(L); /* holds what the entries point to */
    held = lua_gettop(L);
    for (size_t i = 0, n = 0; i < *count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        if (get_entry(L, lua_gettop(L), &entries[i]))
            return NULL;
        while (lua_gettop(L) > held)
            lua_rawseti(L, held, (lua_Integer)++n);
    }
    return entries;
}

/* memory:apply{entries = {…}, ends = {ids}, to, reason, by, only_live} -> {ids of the
 * entries}; nil, message, code. One commit. */
int binding_memory_apply(lua_State *L, struct binding_child *memory)
{
    sessile_memory_change change;
    sessile_error err;
    sessile_id *ids;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    memset(&change, 0, sizeof change);
    binding_raw_field(L, 2, "entries");
    change.entries = binding_memory_entries(L, 3, &change.count);
    if (!change.entries)
        return 3;
    ids = lua_newuserdatauv(L, (change.count + 1) * sizeof *ids, 0);
    change.ends = binding_memory_ids(L, 2, "ends", &change.end_count);
    change.to = (sessile_memory_verdict_kind)binding_one_of(L, 2, "to", verdicts);
    change.reason = binding_field_bytes(L, 2, "reason");
    change.by = binding_field_bytes(L, 2, "by");
    binding_raw_field(L, 2, "only_live");
    change.only_live = lua_toboolean(L, -1);
    if (sessile_memory_apply(memory->handle, &change, ids, &err))
        return binding_fail(L, &err);
    lua_createtable(L, (int)change.count, 0);
    for (size_t i = 0; i < change.count; i++) {
        binding_push_id(L, ids[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* memory:verdict{ids, to, reason, by} -> how many it changed; nil, message, code */
int binding_memory_verdict(lua_State *L, struct binding_child *memory)
{
    const sessile_id *ids;
    size_t count, changed;
    uint64_t result;
    sessile_error err;
    sessile_status status;
    int to;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    to = binding_one_of(L, 2, "to", verdicts);
    ids = binding_memory_ids(L, 2, "ids", &count);
    status = sessile_memory_verdict(memory->handle, ids, count,
                                    (sessile_memory_verdict_kind)to,
                                    binding_field_bytes(L, 2, "reason"),
                                    binding_field_bytes(L, 2, "by"), &changed, &err);
    result = changed;
    return binding_done_count(L, status, &result, &err);
}

/* memory:erase{ids, session, session_agent, ended_before} -> how many; nil, message, code
 */
int binding_memory_erase(lua_State *L, struct binding_child *memory)
{
    sessile_memory_erase_options o = {0};
    sessile_error err;
    uint64_t result;
    size_t erased;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    o.ids = binding_memory_ids(L, 2, "ids", &o.id_count);
    o.session = binding_field_bytes(L, 2, "session");
    o.session_agent = binding_field_bytes(L, 2, "session_agent");
    lua_getfield(L, 2, "ended_before");
    o.ended_before_ms = lua_tointeger(L, -1);
    sessile_status status = sessile_memory_erase(memory->handle, &o, &erased, &err);
    result = erased;
    return binding_done_count(L, status, &result, &err);
}

/* memory:delete_from{session, agent, by} -> how many; nil, message, code */
int binding_memory_delete_from(lua_State *L, struct binding_child *memory)
{
    sessile_error err;
    uint64_t result;
    size_t changed;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    sessile_status status =
        sessile_memory_delete_from(memory->handle, binding_field_bytes(L, 2, "agent"),
                                   binding_field_bytes(L, 2, "session"),
                                   binding_field_bytes(L, 2, "by"), &changed, &err);
    result = changed;
    return binding_done_count(L, status, &result, &err);
}

/* memory:consent(given, {by, text, scope}) -> true; nil, message, code */
int binding_memory_consent(lua_State *L, struct binding_child *memory)
{
    sessile_error err;
    lua_settop(L, 3);
    return binding_done(L,
                        sessile_memory_consent(memory->handle, lua_toboolean(L, 2),
                                               binding_field_bytes(L, 3, "by"),
                                               binding_field_bytes(L, 3, "text"),
                                               binding_field_bytes(L, 3, "scope"), &err),
                        &err);
}

/* memory:embed(model, {ids = {…}, vectors = {…}}) -> true; nil, message, code. One vector
 * for each id, a list of as many numbers as the first one has. */
int binding_memory_embed(lua_State *L, struct binding_child *memory)
{
    sessile_slice model = binding_check_bytes(L, 2);
    size_t count, dims = 0;
    const sessile_id *ids;
    sessile_error err;
    float *vectors;

    luaL_checktype(L, 3, LUA_TTABLE);
    ids = binding_memory_ids(L, 3, "ids", &count);
    lua_getfield(L, 3, "vectors");
    int list = lua_gettop(L);
    luaL_checktype(L, list, LUA_TTABLE);
    if (lua_rawlen(L, list) != count)
        return binding_fail_with(
            L, SESSILE_INVALID,
            lua_pushfstring(L, "there are %I ids and %I vectors: give one for each",
                            (LUAI_UACINT)count, (LUAI_UACINT)lua_rawlen(L, list)));
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        size_t size = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
        dims = i ? dims : size;
        if (!size || size != dims || dims > SESSILE_MEMORY_DIMS_MAX)
            return binding_fail_with(
                L, SESSILE_INVALID,
                lua_pushfstring(L,
                                "each entry needs a vector, and each vector the same "
                                "number of dimensions, at most %d [memory_dims]",
                                SESSILE_MEMORY_DIMS_MAX));
        lua_pop(L, 1);
    }
    vectors = lua_newuserdatauv(L, (count * dims + 1) * sizeof *vectors, 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        binding_floats(L, lua_gettop(L), vectors + i * dims, dims);
        lua_pop(L, 1);
    }
    return binding_done(L,
                        sessile_memory_embed(memory->handle, model, dims ? dims : 1, ids,
                                             vectors, count, &err),
                        &err);
}
