/*
 * check.c: the check of a store. Each step reads one log.
 */
#include "binding.h"

static const char *const severities[] = {"note", "warning", "damage", NULL};

#define FINDING(...) BINDING_FIELD(sessile_finding, __VA_ARGS__)
static const struct binding_row finding_row =
    BINDING_ROW(sessile_finding, NULL,
                BINDING_ENUM(sessile_finding, "severity", severity, severities),
                FINDING("code", STATUS, code), FINDING("file", TEXT, file),
                FINDING("entry", ID, entry), FINDING("offset", INTEGER, offset),
                FINDING("bytes", INTEGER, bytes), FINDING("what", TEXT, what),
                FINDING("next", TEXT, next));

static void more_of_checked(lua_State *L, const void *row)
{
    const sessile_checked *step = row;
    if (step->id.size) {
        binding_push_slice(L, step->agent);
        lua_setfield(L, -2, "agent");
    }
    binding_push_rows(L, &finding_row, step->findings, step->count);
    lua_setfield(L, -2, "findings");
}

#define CHECKED(...) BINDING_FIELD(sessile_checked, __VA_ARGS__)
static const struct binding_row checked_row =
    BINDING_ROW(sessile_checked, more_of_checked, CHECKED("id", SLICE, id),
                CHECKED("file", TEXT, file), CHECKED("entries", INTEGER, entries),
                CHECKED("bytes", INTEGER, bytes), CHECKED("lost", INTEGER, lost),
                CHECKED("salvaged", BOOLEAN, salvaged), CHECKED("index", INDEX, index),
                CHECKED("total", INTEGER, total));

/* check:step() -> {id, agent, file, entries, bytes, lost, salvaged, findings, index,
 * total}; nil at the end; nil, message, code */
static int check_step(lua_State *L, struct binding_child *check)
{
    sessile_checked step;
    sessile_error err;
    if (sessile_check_next(check->handle, &step, &err))
        return binding_fail(L, &err);
    if (step.file)
        binding_push_row(L, &checked_row, &step);
    else
        lua_pushnil(L);
    return 1;
}

BINDING_FREE(check_free, sessile_check_close)

const struct binding_child_class binding_check_class = {
    "sessile.core.Check", "check", check_free, {{"step", check_step}}};

#define WHICH(...) BINDING_FIELD(sessile_session_options, __VA_ARGS__)
static const struct binding_field which_fields[] = BINDING_FIELDS(
    WHICH("id", SLICE, id), WHICH("agent", SLICE, agent), WHICH("user", SLICE, user));

/* store:check{id, agent, user, salvage} -> check; nil, message, code */
int binding_store_check(lua_State *L, struct binding_store *store)
{
    sessile_session_options which;
    sessile_check *handle;
    sessile_error err;
    int salvage;
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_session_options_init(&which);
    binding_get_fields(L, 2, which_fields, &which);
    salvage = binding_field_boolean(L, 2, "salvage");
    struct binding_child *check = binding_child_new(L, &binding_check_class, store);
    if (sessile_check_open(&handle, store->handle, &which, salvage, &err))
        return binding_fail(L, &err);
    return binding_child_opened(check, handle);
}
