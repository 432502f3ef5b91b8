/*
 * audit.c: the audit of a store: a reader of its events, and a verification that is
 * stepped.
 */
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"
#include "sessile_audit.h"

/* ------------------------------------------------------------------ reading */

/* The event as its JSON has it, with id and time, and the user's name. */
static void push_event(lua_State *L, const sessile_audit_event *e)
{
    lua_json_push(L, e->json.data, e->json.size);
    if (!lua_istable(L, -1)) { /* of another version */
        lua_pop(L, 1);
        lua_newtable(L);
    }
    binding_set_slice(L, "id", e->id);
    binding_set_integer(L, "time", e->time_ms);
    binding_set_slice(L, "name", e->name);
    binding_set_slice(L, "json", e->json);
}

/* reader:next() -> {id, time, operation, …, json}; nil: there is none now; nil, message,
 * code */
static int reader_next(lua_State *L, struct binding_child *reader)
{
    sessile_audit_event e;
    sessile_error err;
    if (sessile_audit_next(reader->handle, &e, &err))
        return binding_fail(L, &err);
    if (e.id.size)
        push_event(L, &e);
    else
        lua_pushnil(L);
    return 1;
}

/* reader:wait(timeout_ms) -> changed; nil, message, code */
static int reader_wait(lua_State *L, struct binding_child *reader)
{
    sessile_error err;
    int changed;
    if (sessile_audit_wait(reader->handle, binding_timeout(luaL_checkinteger(L, 2)),
                           &changed, &err))
        return binding_fail(L, &err);
    lua_pushboolean(L, changed);
    return 1;
}

/* reader:cursor() -> text; nil, message, code */
static int reader_cursor(lua_State *L, struct binding_child *reader)
{
    struct binding_result got = binding_result(L);
    char *text = NULL;
    got.status = sessile_audit_cursor(reader->handle, &text, &got.err);
    got.count = text ? strlen(text) : 0;
    return binding_result_text(L, &got, text);
}

BINDING_FREE(reader_free, sessile_audit_close)

const struct binding_child_class binding_audit_class = {
    "sessile.core.Audit",
    "audit reader",
    reader_free,
    {{"next", reader_next}, {"wait", reader_wait}, {"cursor", reader_cursor}}};

#define FILTER(...) BINDING_FIELD(sessile_audit_filter, __VA_ARGS__)
static const struct binding_field filter_fields[] =
    BINDING_FIELDS(FILTER("since", INTEGER, since_ms), FILTER("until", INTEGER, until_ms),
                   FILTER("user", SLICE, user), FILTER("about", SLICE, about),
                   FILTER("operation", SLICE, operation),
                   FILTER("outcome", SLICE, outcome), FILTER("session", SLICE, session),
                   FILTER("agent", SLICE, agent), FILTER("limit", COUNT, limit),
                   FILTER("names", BOOLEAN, names), FILTER("cursor", SLICE, cursor));

/* store:audit({since, until, user, operation, outcome, session, agent, limit, names,
 * cursor}) -> reader; nil, message, code */
int binding_store_audit(lua_State *L, struct binding_store *store)
{
    sessile_audit_filter filter;
    sessile_audit_reader *handle;
    sessile_error err;
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_audit_filter_init(&filter);
    binding_get_fields(L, 2, filter_fields, &filter);
    struct binding_child *reader = binding_child_new(L, &binding_audit_class, store);
    if (sessile_audit_open(&handle, store->handle, &filter, &err))
        return binding_fail(L, &err);
    return binding_child_opened(reader, handle);
}

/* ------------------------------------------------------------------ verifying */

#define LOST(...) BINDING_FIELD(sessile_audit_lost, __VA_ARGS__)
static const struct binding_row lost_row =
    BINDING_ROW(sessile_audit_lost, NULL, LOST("is_event", BOOLEAN, is_event),
                LOST("time", INTEGER, time_ms), LOST("entry", ID, entry),
                LOST("event", CHARS, event), LOST("session", CHARS, session),
                LOST("agent", CHARS, agent), LOST("owner", CHARS, owner));

static void push_lost(lua_State *L, const void *row)
{
    const sessile_audit_report *report = row;
    binding_push_rows(L, &lost_row, report->lost, report->lost_count);
    lua_setfield(L, -2, "lost");
}

#define REPORT(...) BINDING_FIELD(sessile_audit_report, __VA_ARGS__)
static const struct binding_row report_row = BINDING_ROW(
    sessile_audit_report, push_lost, REPORT("holds", BOOLEAN, holds),
    REPORT("logs", INTEGER, logs), REPORT("logs_of", INTEGER, logs_of),
    REPORT("changes", INTEGER, changes), REPORT("outside", INTEGER, outside),
    REPORT("unread", INTEGER, unread), REPORT("without_event", INTEGER, without_event),
    REPORT("without_change", INTEGER, without_change), REPORT("bytes", INTEGER, bytes),
    REPORT("bytes_of", INTEGER, bytes_of), REPORT("lanes", INTEGER, lanes),
    REPORT("seals", INTEGER, seals), REPORT("events", INTEGER, events),
    REPORT("unsealed", INTEGER, unsealed), REPORT("other_lanes", INTEGER, other_lanes),
    REPORT("cut_lanes", INTEGER, cut_lanes), REPORT("unsealed_since", TIME, unsealed_ms),
    REPORT("sealed", TIME, sealed_ms), REPORT("where", CHARS, where),
    REPORT("why", CHARS, why));

/* step() -> done, report; nil, message, code */
static int verification_step(lua_State *L, struct binding_child *verification)
{
    sessile_audit_report report;
    sessile_error err;
    return binding_stepped(L,
                           sessile_audit_verify_step(verification->handle, &report, &err),
                           &report_row, &report, &err);
}

BINDING_FREE(verification_free, sessile_audit_verify_free)

const struct binding_child_class binding_verification_class = {
    "sessile.core.Verification",
    "verification",
    verification_free,
    {{"step", verification_step}}};

/* The anchors of the list at a field, which anchors them on the stack. */
static void read_anchors(lua_State *L, int table, sessile_audit_verify_options *out)
{
    sessile_audit_anchor *list;
    if (binding_raw_field(L, table, "anchors") != LUA_TTABLE)
        return;
    size_t count = (size_t)lua_rawlen(L, -1);
    int anchors = lua_absindex(L, -1);
    list = lua_newuserdatauv(L, (count + 1) * sizeof *list, 0);
    memset(list, 0, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, anchors, (lua_Integer)i + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        int one = lua_absindex(L, -1);
        list[i].lane = (uint32_t)binding_field_count(L, one, "lane", UINT32_MAX);
        list[i].epoch = binding_field_count(L, one, "epoch", UINT64_MAX);
        sessile_slice hash = binding_field_bytes(L, one, "hash");
        if (hash.size < sizeof list[i].hash && hash.size)
            memcpy(list[i].hash, hash.data, hash.size);
        lua_pop(L, 1);
    }
    out->anchors = list;
    out->anchor_count = count;
}

#define VERIFY(...) BINDING_FIELD(sessile_audit_verify_options, __VA_ARGS__)
static const struct binding_field verify_fields[] =
    BINDING_FIELDS(VERIFY("max_age_ms", INTEGER, max_age_ms),
                   VERIFY("copy", BOOLEAN, is_copy), VERIFY("deep", BOOLEAN, deep));

/* store:audit_verify(root, {max_age_ms, copy, anchors = {{lane, epoch, hash}, …}, deep,
 * guarded}) -> verification; nil, message, code. It keeps `guarded` alive. */
int binding_store_audit_verify(lua_State *L, struct binding_store *store)
{
    sessile_audit_verify_options options;
    sessile_audit_verification *handle;
    sessile_error err;
    const char *root = luaL_checkstring(L, 2);
    lua_settop(L, 3);
    luaL_checktype(L, 3, LUA_TTABLE);
    sessile_audit_verify_options_init(&options);
    binding_get_fields(L, 3, verify_fields, &options);
    read_anchors(L, 3, &options);
    struct binding_store *guarded = NULL;
    if (binding_raw_field(L, 3, "guarded") != LUA_TNIL) {
        guarded = binding_store_live(L, -1);
        if (!guarded)
            return 3;
        options.guarded = guarded->handle;
    }
    struct binding_child *made =
        binding_child_new(L, &binding_verification_class, guarded ? guarded : store);
    if (sessile_audit_verify_begin(&handle, store->handle, root, &options, &err))
        return binding_fail(L, &err);
    return binding_child_opened(made, handle);
}

/* ------------------------------------------------------------------ the rest */

/* store:audit_root() -> hex; nil, message, code */
int binding_store_audit_root(lua_State *L, struct binding_store *store)
{
    char root[SESSILE_AUDIT_KEY];
    sessile_error err;
    if (sessile_audit_root(store->handle, root, &err))
        return binding_fail(L, &err);
    lua_pushstring(L, root);
    return 1;
}

#define ANCHOR(...) BINDING_FIELD(sessile_audit_anchor, __VA_ARGS__)
static const struct binding_row anchor_row =
    BINDING_ROW(sessile_audit_anchor, NULL, ANCHOR("lane", INTEGER, lane),
                ANCHOR("epoch", INTEGER, epoch), ANCHOR("hash", CHARS, hash));

/* store:audit_head(root, copy) -> {{lane, epoch, hash}, …}; nil, message, code */
int binding_store_audit_head(lua_State *L, struct binding_store *store)
{
    struct binding_result got = binding_result(L);
    sessile_audit_anchor *list = NULL;
    got.status = sessile_audit_head(store->handle, luaL_checkstring(L, 2),
                                    lua_toboolean(L, 3), &list, &got.count, &got.err);
    return binding_result_rows(L, &got, &anchor_row, list);
}

/* store:audit_seal() -> true; nil, message, code */
int binding_store_audit_seal(lua_State *L, struct binding_store *store)
{
    sessile_error err;
    return binding_done(L, sessile_audit_seal(store->handle, &err), &err);
}

/* store:audit_prove(id) -> JSON; nil, message, code */
int binding_store_audit_prove(lua_State *L, struct binding_store *store)
{
    const char *id = luaL_checkstring(L, 2);
    struct binding_result got = binding_result(L);
    char *text = NULL;
    got.status = sessile_audit_prove(store->handle, id, &text, &got.count, &got.err);
    return binding_result_text(L, &got, text);
}

/* audit_check(proof) -> the public key, the event as JSON; nil, message, code */
int binding_audit_check(lua_State *L)
{
    sessile_slice proof = binding_check_bytes(L, 1);
    struct binding_result got = binding_result(L);
    char key[SESSILE_AUDIT_KEY], *event = NULL;
    got.status = sessile_audit_check_proof(proof, key, &event, &got.count, &got.err);
    int pushed = binding_result_text(L, &got, event);
    if (got.status)
        return pushed;
    lua_pushstring(L, key);
    lua_insert(L, -2);
    return 2;
}
