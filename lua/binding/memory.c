/*
 * memory.c: long-term memories: opened by a store, with methods that read. Those that
 * write are in memory_write.c, and runs in memory_run.c.
 */
#include "binding.h"

#include <string.h>

#include "sessile_memory.h"

static const char *const states[] = {"live",     "pending", "replaced", "deleted",
                                     "rejected", "expired", "erased",   NULL};
const char *const binding_memory_kinds[] = {"fact", "episode", "reflection", "procedure",
                                            NULL};
const char *const binding_memory_sources[] = {"user", "agent", "tool", "system", NULL};

/* ------------------------------------------------------------------ rows */

#define ROW(...) BINDING_FIELD(sessile_memory_row, __VA_ARGS__)
static const struct binding_field hit_fields[] =
    BINDING_FIELDS(ROW("score", NUMBER, score), ROW("cover", NUMBER, cover),
                   ROW("cos", NUMBER, cosine), ROW("explain", JSON, explain));

static void more_of_row(lua_State *L, const void *row)
{
    if (((const sessile_memory_row *)row)->score > 0)
        binding_set_fields(L, hit_fields, row);
}

const struct binding_row binding_memory_row = BINDING_ROW(
    sessile_memory_row, more_of_row, ROW("id", ID, id),
    BINDING_ENUM(sessile_memory_row, "state", state, states),
    BINDING_ENUM(sessile_memory_row, "kind", kind, binding_memory_kinds),
    BINDING_ENUM(sessile_memory_row, "source", source, binding_memory_sources),
    ROW("key", SLICE, key), ROW("value", STRING, value), ROW("also", SLICE, also),
    ROW("author", SLICE, author), ROW("from", JSON, from),
    ROW("replaces", JSON, replaces), ROW("metadata", JSON, metadata),
    ROW("time", INTEGER, time_ms), ROW("expires", TIME, expires_ms),
    ROW("holds_from", TIME, holds_from_ms), ROW("holds_until", TIME, holds_until_ms),
    ROW("importance", NUMBER, importance), ROW("pinned", BOOLEAN, pinned),
    ROW("approved", BOOLEAN, approved), ROW("confirmed", INTEGER, confirmed),
    ROW("ended_by", ID, ended_by));

/* ------------------------------------------------------------------ options */

void binding_field_number(lua_State *L, int table, const char *name, double *out)
{
    if (binding_raw_field(L, table, name) != LUA_TNIL)
        *out = luaL_checknumber(L, -1);
    lua_pop(L, 1);
}

void binding_floats(lua_State *L, int index, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        if (!lua_isnumber(L, -1))
            binding_misuse(L,
                           "a vector is a list of numbers, and number %I of one is a %s",
                           (LUAI_UACINT)i + 1, luaL_typename(L, -1));
        out[i] = (float)lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
}

/* The bits of the names in the list at a field. */
static unsigned get_bits(lua_State *L, int table, const char *name,
                         const char *const *names)
{
    unsigned bits = 0;
    if (binding_raw_field(L, table, name) == LUA_TTABLE)
        for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
            bits |= 1u << luaL_checkoption(L, -1, NULL, names);
            lua_pop(L, 1);
        }
    else
        lua_pushnil(L);
    lua_pop(L, 2);
    return bits;
}

#define FILTER(...) BINDING_FIELD(sessile_memory_filter, __VA_ARGS__)
static const struct binding_field filter_fields[] = BINDING_FIELDS(
    FILTER("since", INTEGER, since_ms), FILTER("until", INTEGER, until_ms),
    FILTER("holds_at", INTEGER, holds_at_ms), FILTER("prefix", SLICE, key_prefix),
    FILTER("session", SLICE, session), FILTER("session_agent", SLICE, session_agent),
    FILTER("metadata_name", SLICE, metadata_name));

/* Leaves values that anchor it on the stack: 0; or pushes the three values of a failure:
 * 3. */
static int get_filter(lua_State *L, int table, sessile_memory_filter *out)
{
    binding_get_fields(L, table, filter_fields, out);
    out->states = get_bits(L, table, "states", states);
    out->kinds = get_bits(L, table, "kinds", binding_memory_kinds);
    out->sources = get_bits(L, table, "sources", binding_memory_sources);
    if (binding_raw_field(L, table, "metadata_value") == LUA_TNIL)
        return 0;
    return binding_json(L, lua_gettop(L), 0, "the value of metadata",
                        &out->metadata_json);
}

/* ------------------------------------------------------------------ reading */

/* memory:read(key) -> row; nil, message, code */
static int memory_read(lua_State *L, struct binding_child *memory)
{
    sessile_slice key = binding_check_bytes(L, 2);
    struct binding_result got = binding_result(L);
    sessile_memory_row *row = NULL;
    got.status = sessile_memory_read(memory->handle, key, &row, &got.err);
    return binding_result_row(L, &got, &binding_memory_row, row);
}

/* memory:get(id) -> row; nil, message, code */
static int memory_get(lua_State *L, struct binding_child *memory)
{
    sessile_id id = binding_check_id(L, 2);
    struct binding_result got = binding_result(L);
    sessile_memory_row *row = NULL;
    got.status = sessile_memory_get(memory->handle, id, &row, &got.err);
    return binding_result_row(L, &got, &binding_memory_row, row);
}

/* memory:entry(id) -> table; nil, message, code. Any entry of the log. */
static int memory_entry(lua_State *L, struct binding_child *memory)
{
    sessile_id id = binding_check_id(L, 2);
    struct binding_result got = binding_result(L);
    char *json = NULL;
    got.status = sessile_memory_entry(memory->handle, id, &json, &got.count, &got.err);
    return binding_result_object(L, &got, "sessile.Entry", json);
}

/* memory:history(key or nil, id) -> rows; nil, message, code */
static int memory_history(lua_State *L, struct binding_child *memory)
{
    sessile_slice key = binding_opt_bytes(L, 2);
    sessile_id id = binding_opt_id(L, 3);
    struct binding_result got = binding_result(L);
    sessile_memory_row *rows = NULL;
    got.status =
        sessile_memory_history(memory->handle, key, id, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &binding_memory_row, rows);
}

/* memory:list{filters, offset, limit} -> rows; nil, message, code */
static int memory_list(lua_State *L, struct binding_child *memory)
{
    sessile_memory_list_options o;
    sessile_memory_row *rows = NULL;

    memset(&o, 0, sizeof o);
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    o.offset = binding_field_count(L, 2, "offset", UINT32_MAX);
    o.limit = binding_field_count(L, 2, "limit", UINT32_MAX);
    if (get_filter(L, 2, &o.filter))
        return 3;
    struct binding_result got = binding_result(L);
    got.status = sessile_memory_list(memory->handle, &o, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &binding_memory_row, rows);
}

sessile_memory_outside *binding_outside(lua_State *L, int table, size_t *count)
{
    sessile_memory_outside *all;
    int list;

    *count = 0;
    if (binding_raw_field(L, table, "outside") != LUA_TTABLE)
        return NULL;
    list = lua_gettop(L);
    *count = lua_rawlen(L, list);
    all = lua_newuserdatauv(L, (*count + 1) * sizeof *all, 0);
    for (size_t i = 0; i < *count; i++) {
        int one;
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        one = lua_gettop(L);
        all[i].id = binding_field_id(L, one, "id");
        all[i].memory =
            (size_t)binding_field_count(L, one, "memory", SESSILE_RECALL_MEMORIES_MAX);
        all[i].score = 0;
        binding_field_number(L, one, "score", &all[i].score);
        lua_pop(L, 1);
    }
    return all;
}

/* memory:search(question, {filters, limit, vector, model, outside = {{id, score}, …},
 * weight, recency, importance, min, explain}) -> rows; nil, message, code */
static int memory_search(lua_State *L, struct binding_child *memory)
{
    sessile_slice question = binding_check_bytes(L, 2);
    sessile_memory_search_options o;
    sessile_memory_row *rows = NULL;
    float *vector;

    lua_settop(L, 3);
    luaL_checktype(L, 3, LUA_TTABLE);
    sessile_memory_search_init(&o);
    o.limit = (size_t)binding_field_count(L, 3, "limit", SESSILE_MEMORY_ENTRIES_MAX);
    o.model = binding_field_bytes(L, 3, "model");
    binding_field_number(L, 3, "weight", &o.weight);
    binding_field_number(L, 3, "recency", &o.recency);
    binding_field_number(L, 3, "importance", &o.importance);
    binding_field_number(L, 3, "min", &o.min_cover);
    binding_raw_field(L, 3, "explain");
    o.explain = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (binding_raw_field(L, 3, "vector") == LUA_TTABLE) {
        o.dims = lua_rawlen(L, -1);
        if (!o.dims || o.dims > SESSILE_MEMORY_DIMS_MAX)
            return binding_fail_with(
                L, SESSILE_LIMIT,
                lua_pushfstring(L, "a vector has 1 to %d dimensions [memory_dims]",
                                SESSILE_MEMORY_DIMS_MAX));
        vector = lua_newuserdatauv(L, o.dims * sizeof *vector, 0);
        binding_floats(L, lua_gettop(L) - 1, vector, o.dims);
        o.vector = vector;
    }
    o.outside = binding_outside(L, 3, &o.outside_count);
    if (get_filter(L, 3, &o.filter))
        return 3;
    struct binding_result got = binding_result(L);
    got.status =
        sessile_memory_search(memory->handle, question, &o, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &binding_memory_row, rows);
}

/* memory:watch{timeout_ms, after} -> changed, id of the newest entry of the log; nil,
 * message, code. As session:watch. */
static int memory_watch(lua_State *L, struct binding_child *memory)
{
    sessile_status status;
    sessile_error err;
    sessile_id seen;
    int timeout_ms, changed;

    luaL_checktype(L, 2, LUA_TTABLE);
    if (!binding_field_timeout(L, 2, "timeout_ms", &timeout_ms))
        timeout_ms = -1;
    seen = binding_field_id(L, 2, "after");
    seen = seen == SESSILE_NO_ID ? 0 : seen + 1;
    status = sessile_memory_watch(memory->handle, &seen, timeout_ms, &changed, &err);
    if (status)
        return binding_fail(L, &err);
    lua_pushboolean(L, changed);
    binding_push_id(L, seen - 1);
    return 2;
}

#define STATS(...) BINDING_FIELD(sessile_memory_stats, __VA_ARGS__)
static void more_of_stats(lua_State *L, const void *row)
{
    const sessile_memory_stats *stats = row;
    for (int i = 0; states[i]; i++)
        binding_set_integer(L, states[i], (int64_t)stats->states[i]);
}

static const struct binding_row stats_row = BINDING_ROW(
    sessile_memory_stats, more_of_stats, STATS("entries", INTEGER, entries),
    STATS("entries_most", INTEGER, entries_most),
    STATS("nearly_full", BOOLEAN, nearly_full), STATS("keys", INTEGER, keys),
    STATS("verdicts", INTEGER, verdicts), STATS("log_entries", INTEGER, log_entries),
    STATS("log_bytes", INTEGER, log_bytes), STATS("vectors", INTEGER, vectors),
    STATS("dims", INTEGER, dims), STATS("memory_bytes", INTEGER, memory_bytes),
    STATS("consented", BOOLEAN, consented), STATS("consent", ID, consent),
    STATS("created", INTEGER, created_ms), STATS("language", CHARS, language),
    STATS("model", CHARS, model));

/* memory:stats() -> {entries, live, pending, …, keys, …}; nil, message, code */
static int memory_stats(lua_State *L, struct binding_child *memory)
{
    sessile_memory_stats stats;
    sessile_error err;
    sessile_status status = sessile_memory_get_stats(memory->handle, &stats, &err);
    return binding_done_row(L, status, &stats_row, &stats, &err);
}

#define MODEL(...) BINDING_FIELD(sessile_memory_model, __VA_ARGS__)
static const struct binding_row model_row = BINDING_ROW(
    sessile_memory_model, NULL, MODEL("name", SLICE, name), MODEL("dims", INTEGER, dims),
    MODEL("vectors", INTEGER, vectors), MODEL("live", INTEGER, live),
    MODEL("missing", INTEGER, missing), MODEL("used", BOOLEAN, used));

/* memory:models() -> {{name, dims, vectors, live, missing, used}, …}; nil, message, code
 */
static int memory_models(lua_State *L, struct binding_child *memory)
{
    struct binding_result got = binding_result(L);
    sessile_memory_model *models = NULL;
    got.status = sessile_memory_models(memory->handle, &models, &got.count, &got.err);
    return binding_result_rows(L, &got, &model_row, models);
}

/* memory:damage() -> nil; {code, message}: it can be read, not written */
static int memory_damage(lua_State *L, struct binding_child *memory)
{
    sessile_error why;
    sessile_status status = sessile_memory_damage(memory->handle, &why);
    if (!status)
        return 0;
    lua_createtable(L, 0, 2);
    binding_set_status(L, "code", status);
    binding_set_text(L, "message", why.message);
    return 1;
}

/* ------------------------------------------------------------------ opening */

BINDING_FREE(memory_free, sessile_memory_close)

const struct binding_child_class binding_memory_class = {
    "sessile.core.Memory",
    "memory",
    memory_free,
    {{"write", binding_memory_write},
     {"apply", binding_memory_apply},
     {"entry", memory_entry},
     {"verdict", binding_memory_verdict},
     {"erase", binding_memory_erase},
     {"delete_from", binding_memory_delete_from},
     {"consent", binding_memory_consent},
     {"embed", binding_memory_embed},
     {"read", memory_read},
     {"get", memory_get},
     {"history", memory_history},
     {"list", memory_list},
     {"search", memory_search},
     {"watch", memory_watch},
     {"stats", memory_stats},
     {"models", memory_models},
     {"damage", memory_damage},
     {"tidy", binding_memory_tidy},
     {"admit", binding_memory_admit},
     {"embed_run", binding_memory_embed_run}}};

#define OPTION(...) BINDING_FIELD(sessile_memory_options, __VA_ARGS__)
static const struct binding_field option_fields[] =
    BINDING_FIELDS(OPTION("agent", SLICE, agent), OPTION("user", SLICE, user),
                   OPTION("consent", SLICE, consent), OPTION("language", SLICE, language),
                   OPTION("must_exist", BOOLEAN, must_exist));

/* store:memory{agent, user, consent, language, must_exist, timeout_ms} -> memory; nil,
 * message, code */
int binding_store_memory(lua_State *L, struct binding_store *store)
{
    sessile_memory_options options;
    sessile_memory *handle;
    sessile_error err;

    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_memory_options_init(&options);
    binding_get_fields(L, 2, option_fields, &options);
    options.has_timeout = binding_field_timeout(L, 2, "timeout_ms", &options.timeout_ms);
    struct binding_child *memory = binding_child_new(L, &binding_memory_class, store);
    if (sessile_memory_open(&handle, store->handle, &options, &err))
        return binding_fail(L, &err);
    return binding_child_opened(memory, handle);
}
