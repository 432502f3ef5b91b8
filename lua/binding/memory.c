/*
 * memory.c: long-term memories: opened by a store, with methods that write and read.
 */
#include "binding.h"

#include <string.h>

#include "sessile_memory.h"

static const char *const states[] = {"live",     "pending", "replaced", "deleted",
                                     "rejected", "expired", "erased",   NULL};
static const char *const kinds[] = {"fact", "episode", "reflection", "procedure", NULL};
static const char *const sources[] = {"user", "agent", "tool", "system", NULL};
static const char *const verdicts[] = {"deleted", "rejected", "approved",  "restored",
                                       "pinned",  "unpinned", "confirmed", NULL};

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
    BINDING_ENUM(sessile_memory_row, "kind", kind, kinds),
    BINDING_ENUM(sessile_memory_row, "source", source, sources), ROW("key", SLICE, key),
    ROW("value", STRING, value), ROW("also", SLICE, also), ROW("author", SLICE, author),
    ROW("from", JSON, from), ROW("replaces", JSON, replaces),
    ROW("metadata", JSON, metadata), ROW("time", INTEGER, time_ms),
    ROW("expires", TIME, expires_ms), ROW("holds_from", TIME, holds_from_ms),
    ROW("holds_until", TIME, holds_until_ms), ROW("importance", NUMBER, importance),
    ROW("pinned", BOOLEAN, pinned), ROW("approved", BOOLEAN, approved),
    ROW("confirmed", INTEGER, confirmed), ROW("ended_by", ID, ended_by));

/* ------------------------------------------------------------------ options */

/* A number; absent: *out stays as it is. */
static void get_number(lua_State *L, int table, const char *name, double *out)
{
    if (binding_raw_field(L, table, name) != LUA_TNIL)
        *out = luaL_checknumber(L, -1);
    lua_pop(L, 1);
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
    out->kinds = get_bits(L, table, "kinds", kinds);
    out->sources = get_bits(L, table, "sources", sources);
    if (binding_raw_field(L, table, "metadata_value") == LUA_TNIL)
        return 0;
    return binding_json(L, lua_gettop(L), 0, "the value of metadata",
                        &out->metadata_json);
}

/* The ids in the list at a field (absent: none); leaves what holds them on the stack. */
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

/* ------------------------------------------------------------------ writing */

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
    get_number(L, table, "importance", &e->importance);
    e->kind = (sessile_memory_kind)binding_one_of(L, table, "kind", kinds);
    e->source = (sessile_memory_source)binding_one_of(L, table, "source", sources);
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
static int memory_write(lua_State *L, struct binding_child *memory)
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
static int memory_apply(lua_State *L, struct binding_child *memory)
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
static int memory_verdict(lua_State *L, struct binding_child *memory)
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
static int memory_erase(lua_State *L, struct binding_child *memory)
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
static int memory_delete_from(lua_State *L, struct binding_child *memory)
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
static int memory_consent(lua_State *L, struct binding_child *memory)
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

/* The numbers of the list at index, to `out`. */
static void get_floats(lua_State *L, int index, float *out, size_t count)
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

/* memory:embed(model, {ids = {…}, vectors = {…}}) -> true; nil, message, code. One vector
 * for each id, a list of as many numbers as the first one has. */
static int memory_embed(lua_State *L, struct binding_child *memory)
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
        get_floats(L, lua_gettop(L), vectors + i * dims, dims);
        lua_pop(L, 1);
    }
    return binding_done(L,
                        sessile_memory_embed(memory->handle, model, dims ? dims : 1, ids,
                                             vectors, count, &err),
                        &err);
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
        get_number(L, one, "score", &all[i].score);
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
    get_number(L, 3, "weight", &o.weight);
    get_number(L, 3, "recency", &o.recency);
    get_number(L, 3, "importance", &o.importance);
    get_number(L, 3, "min", &o.min_cover);
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
        get_floats(L, lua_gettop(L) - 1, vector, o.dims);
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
    {{"write", memory_write},         {"apply", memory_apply},
     {"entry", memory_entry},         {"verdict", memory_verdict},
     {"erase", memory_erase},         {"delete_from", memory_delete_from},
     {"consent", memory_consent},     {"embed", memory_embed},
     {"read", memory_read},           {"get", memory_get},
     {"history", memory_history},     {"list", memory_list},
     {"search", memory_search},       {"watch", memory_watch},
     {"stats", memory_stats},         {"models", memory_models},
     {"damage", memory_damage},       {"tidy", binding_memory_tidy},
     {"admit", binding_memory_admit}, {"embed_run", binding_memory_embed_run}}};

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
