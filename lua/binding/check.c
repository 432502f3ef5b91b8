/*
 * check.c: a check of a store as a userdata that is asked for one step after the other.
 *
 * It counts as a child of its store, which lives on until the check is gone.
 */
#include "binding.h"

struct binding_check {
    sessile_check *handle;
    struct binding_store *store;
};

static int check_finalize(lua_State *L)
{
    struct binding_check *check = luaL_checkudata(L, 1, BINDING_CHECK);
    if (check->handle) {
        sessile_check_close(check->handle);
        check->handle = NULL;
        binding_store_release(check->store);
    }
    return 0;
}

static int check_text(lua_State *L)
{
    lua_pushliteral(L, BINDING_CHECK);
    return 1;
}

static void more_of_finding(lua_State *L, const void *row)
{
    static const char *const severities[] = {"note", "warning", "damage"};
    const sessile_finding *finding = row;
    binding_set_text(L, "severity", severities[finding->severity]);
    if (finding->code) {
        lua_pushfstring(L, "E%s", sessile_status_name(finding->code));
        lua_setfield(L, -2, "code");
    }
}

#define FINDING(...) BINDING_FIELD(sessile_finding, __VA_ARGS__)
static const struct binding_row finding_row = {
    sizeof(sessile_finding),
    more_of_finding,
    {FINDING("file", TEXT, file), FINDING("entry", ID, entry),
     FINDING("offset", INTEGER, offset), FINDING("bytes", INTEGER, bytes),
     FINDING("what", TEXT, what), FINDING("next", TEXT, next)}};

static void more_of_checked(lua_State *L, const void *row)
{
    const sessile_checked *step = row;
    if (step->id.size) {
        binding_push_slice(L, step->agent);
        lua_setfield(L, -2, "agent");
    }
    binding_set_integer(L, "index", step->index + 1);
    binding_push_rows(L, &finding_row, step->findings, step->count);
    lua_setfield(L, -2, "findings");
}

#define CHECKED(...) BINDING_FIELD(sessile_checked, __VA_ARGS__)
static const struct binding_row checked_row = {
    sizeof(sessile_checked),
    more_of_checked,
    {CHECKED("id", SLICE, id), CHECKED("file", TEXT, file),
     CHECKED("entries", INTEGER, entries), CHECKED("bytes", INTEGER, bytes),
     CHECKED("lost", INTEGER, lost), CHECKED("salvaged", BOOLEAN, salvaged),
     CHECKED("total", INTEGER, total)}};

/* check:step() -> {id, agent, file, entries, bytes, lost, salvaged, findings, index,
 * total}; nil at the end; nil, message, code */
static int check_step(lua_State *L)
{
    struct binding_check *check = luaL_checkudata(L, 1, BINDING_CHECK);
    sessile_checked step;
    sessile_error err;
    if (!check->handle)
        return binding_closed(L, "check");
    if (sessile_check_next(check->handle, &step, &err))
        return binding_fail(L, &err);
    if (!step.file) {
        lua_pushnil(L);
        return 1;
    }
    binding_push_row(L, &checked_row, &step);
    return 1;
}

/* store:check{id, agent, user, salvage} -> check; nil, message, code */
int binding_store_check(lua_State *L, struct binding_store *store)
{
    struct binding_check *check;
    sessile_session_options which;
    sessile_error err;
    int salvage;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    sessile_session_options_init(&which);
    which.id = binding_field_bytes(L, 2, "id");
    which.agent = binding_field_bytes(L, 2, "agent");
    which.user = binding_field_bytes(L, 2, "user");
    salvage = binding_field_boolean(L, 2, "salvage");
    check = binding_new(L, sizeof *check, 1, BINDING_CHECK);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    if (sessile_check_open(&check->handle, store->handle, &which, salvage, &err))
        return binding_fail(L, &err);
    check->store = store;
    store->children++;
    return 1;
}

static const luaL_Reg methods[] = {
    {"step", check_step},
    {"close", check_finalize},
    {NULL, NULL},
};

void binding_check_open(lua_State *L)
{
    binding_class(L, BINDING_CHECK, methods, check_finalize, check_text);
}
