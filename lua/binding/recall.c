/*
 * recall.c: entries of memories quoted in a session's context.
 */
#include "binding.h"

#include <string.h>

#include "sessile_memory.h"

sessile_memory **binding_memories(lua_State *L, int index, size_t *count)
{
    sessile_memory **memories;

    luaL_checktype(L, index, LUA_TTABLE);
    *count = lua_rawlen(L, index);
    memories = lua_newuserdatauv(L, (*count + 1) * sizeof *memories, 0);
    for (size_t i = 0; i < *count; i++) {
        struct binding_child *child;
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        child = luaL_checkudata(L, -1, binding_memory_class.name);
        memories[i] = child->handle;
        lua_pop(L, 1);
        if (!child->handle) {
            binding_closed(L, binding_memory_class.noun);
            return NULL;
        }
    }
    return memories;
}

/* The vector and the items of the table at index; leaves what holds them on the stack. */
static void get_lists(lua_State *L, int index, sessile_recall_options *out)
{
    if (binding_raw_field(L, index, "vector") == LUA_TTABLE) {
        float *vector;
        int list = lua_gettop(L);
        out->dims = lua_rawlen(L, list);
        vector = lua_newuserdatauv(L, (out->dims + 1) * sizeof *vector, 0);
        binding_floats(L, list, vector, out->dims);
        out->vector = vector;
    }
    out->outside = binding_outside(L, index, &out->outside_count);
    if (binding_raw_field(L, index, "items") == LUA_TTABLE) {
        sessile_recall_item *items;
        int list = lua_gettop(L);
        out->has_items = 1;
        out->item_count = lua_rawlen(L, list);
        items = lua_newuserdatauv(L, (out->item_count + 1) * sizeof *items, 0);
        for (size_t i = 0; i < out->item_count; i++) {
            int one;
            lua_rawgeti(L, list, (lua_Integer)i + 1);
            one = lua_gettop(L);
            items[i].memory = (size_t)binding_field_count(L, one, "memory",
                                                          SESSILE_RECALL_MEMORIES_MAX);
            items[i].id = binding_field_id(L, one, "id");
            lua_pop(L, 1);
        }
        out->items = items;
    }
}

#define OPTION(...) BINDING_FIELD(sessile_recall_options, __VA_ARGS__)
static const struct binding_field option_fields[] =
    BINDING_FIELDS(OPTION("question", SLICE, question), OPTION("model", SLICE, model),
                   OPTION("share", NUMBER, share), OPTION("min", NUMBER, min_cover),
                   OPTION("near", NUMBER, min_cosine), OPTION("recency", NUMBER, recency),
                   OPTION("importance", NUMBER, importance),
                   OPTION("weight", NUMBER, weight), OPTION("start", BOOLEAN, start));

void binding_recall_options(lua_State *L, int index, sessile_recall_options *out)
{
    luaL_checktype(L, index, LUA_TTABLE);
    sessile_recall_options_init(out);
    binding_get_fields(L, index, option_fields, out);
    out->limit = (size_t)binding_field_count(L, index, "limit", UINT32_MAX);
    if (binding_raw_field(L, index, "budget") != LUA_TNIL)
        out->budget = binding_field_count(L, index, "budget", UINT32_MAX);
    if (binding_raw_field(L, index, "trust") != LUA_TNIL)
        out->trust = (sessile_memory_source)binding_one_of(L, index, "trust",
                                                           binding_memory_sources);
    get_lists(L, index, out);
}

#define OUTCOME(...) BINDING_FIELD(sessile_recall_outcome, __VA_ARGS__)
const struct binding_row binding_recall_row =
    BINDING_ROW(sessile_recall_outcome, NULL, OUTCOME("id", ID, entry),
                OUTCOME("recalled", INTEGER, recalled), OUTCOME("found", INTEGER, found),
                OUTCOME("not_fitting", INTEGER, not_fitting),
                OUTCOME("not_allowed", INTEGER, not_allowed),
                OUTCOME("denied", INTEGER, denied), OUTCOME("tokens", INTEGER, tokens));

/* session:recall({memories}, {question, budget, share, min, near, limit, trust, recency,
 * importance, start, vector, model, outside = {{memory, id, score}, …}, weight, items =
 * {{memory (from 0), id}, …}}) -> {id, recalled, found, not_fitting, not_allowed, denied,
 * tokens}; nil, message, code */
int binding_session_recall(lua_State *L, struct binding_session *session)
{
    sessile_recall_options options;
    sessile_recall_outcome outcome;
    sessile_memory **memories;
    sessile_error err;
    sessile_status status;
    size_t count;

    lua_settop(L, 3);
    memories = binding_memories(L, 2, &count);
    if (!memories)
        return 3;
    binding_recall_options(L, 3, &options);
    status = sessile_recall(session->handle, memories, count, &options, &outcome, &err);
    return binding_done_row(L, status, &binding_recall_row, &outcome, &err);
}

static void more_of_row(lua_State *L, const void *row)
{
    binding_memory_row.more(L, row);
    binding_set_integer(L, "memory", (int64_t)((const sessile_memory_row *)row)->memory);
}

/* session:recall_find({memories}, {…}) -> rows, whose `memory` counts from 0; nil,
 * message, code */
int binding_session_recall_find(lua_State *L, struct binding_session *session)
{
    struct binding_row found = binding_memory_row;
    sessile_recall_options options;
    sessile_memory_row *rows = NULL;
    sessile_memory **memories;
    size_t count;

    lua_settop(L, 3);
    memories = binding_memories(L, 2, &count);
    if (!memories)
        return 3;
    binding_recall_options(L, 3, &options);
    found.more = more_of_row;
    struct binding_result got = binding_result(L);
    got.status = sessile_recall_find(session->handle, memories, count, &options, &rows,
                                     &got.count, &got.err);
    return binding_result_rows(L, &got, &found, rows);
}

/* session:agent_source(memory, value, key, the value before or nil) -> "agent" or "tool";
 * nil, message, code */
int binding_session_agent_source(lua_State *L, struct binding_session *session)
{
    struct binding_child *memory = luaL_checkudata(L, 2, binding_memory_class.name);
    sessile_memory_write_entry entry;
    sessile_memory_source source;
    sessile_slice before = {NULL, 0};
    sessile_error err;

    if (!memory->handle)
        return binding_closed(L, binding_memory_class.noun);
    memset(&entry, 0, sizeof entry);
    entry.was = SESSILE_NO_ID;
    entry.value.data = luaL_checklstring(L, 3, &entry.value.size);
    entry.key.data = luaL_optlstring(L, 4, "", &entry.key.size);
    before.data = luaL_optlstring(L, 5, "", &before.size);
    if (sessile_memory_agent_source(session->handle, memory->handle, &entry, before,
                                    &source, &err))
        return binding_fail(L, &err);
    lua_pushstring(L, binding_memory_sources[source]);
    return 1;
}
