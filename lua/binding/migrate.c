/*
 * migrate.c: whole stores copied into others: the handle of a copy that is under way.
 *
 * Owns the translation of places and of what a step says. A store that is lent counts the
 * copy among its children, so that it lives until the copy is closed.
 */
#include <limits.h>
#include <string.h>
#include "binding.h"

struct binding_migration {
    sessile_migration *handle;
    struct binding_store *from, *to; /* lent, or NULL */
};

/* A store, or {url, key_source, key, suite, timeout_ms, network}. 0; else the number of
 * results that say why not. */
static int read_place(lua_State *L, int index, sessile_place *out,
                      sessile_store_options *options, struct binding_store **lent)
{
    memset(out, 0, sizeof *out);
    if (lua_istable(L, index)) {
        binding_store_options(L, index, options);
        out->url = binding_field_string(L, index, "url");
        luaL_argcheck(L, out->url != NULL, index, "field 'url': string expected");
        out->options = options;
        return 0;
    }
    *lent = binding_store_live(L, index);
    if (!*lent)
        return 3;
    out->store = (*lent)->handle;
    return 0;
}

/* migrate(from, to, {change, into, fresh, replace, mirror, whole, parts, from_url}) -> a
 * copy to be stepped; nil, message, code. from_url: where an open `from` is. */
int binding_migrate(lua_State *L)
{
    sessile_store_options from_options, to_options;
    sessile_migrate_options options;
    struct binding_store *from_lent = NULL, *to_lent = NULL;
    struct binding_migration *migration;
    sessile_place from, to;
    sessile_error err;
    int closed;
    lua_settop(L, 3);
    luaL_checktype(L, 3, LUA_TTABLE);
    closed = read_place(L, 1, &from, &from_options, &from_lent);
    if (!closed)
        closed = read_place(L, 2, &to, &to_options, &to_lent);
    if (closed)
        return closed;
    if (from_lent)
        from.url = binding_field_string(L, 3, "from_url");
    memset(&options, 0, sizeof options);
    options.change = binding_field_boolean(L, 3, "change");
    options.into = binding_field_boolean(L, 3, "into");
    options.fresh = binding_field_boolean(L, 3, "fresh");
    options.replace = binding_field_boolean(L, 3, "replace");
    options.mirror = binding_field_boolean(L, 3, "mirror");
    options.whole = binding_field_boolean(L, 3, "whole");
    options.parts = (unsigned)binding_field_count(L, 3, "parts", UINT_MAX);
    migration = binding_new(L, sizeof *migration, 2, BINDING_MIGRATION);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 2);
    if (sessile_migrate_begin(&migration->handle, &from, &to, &options, &err))
        return binding_fail(L, &err);
    migration->from = from_lent;
    migration->to = to_lent;
    if (from_lent)
        from_lent->children++;
    if (to_lent)
        to_lent->children++;
    return 1;
}

static int migration_finalize(lua_State *L)
{
    struct binding_migration *migration = luaL_checkudata(L, 1, BINDING_MIGRATION);
    if (migration->handle) {
        sessile_migrate_free(migration->handle);
        migration->handle = NULL;
        if (migration->from)
            binding_store_release(migration->from);
        if (migration->to)
            binding_store_release(migration->to);
    }
    return 0;
}

static void more_of_state(lua_State *L, const void *row)
{
    static const char *const stages[] = {"looking", "copying", "verifying", "done"};
    const sessile_migrate_state *state = row;
    binding_set_text(L, "stage", stages[state->stage]);
    binding_set_failure(L, state->log, &state->why);
}

#define STATE(...) BINDING_FIELD(sessile_migrate_state, __VA_ARGS__)
static const struct binding_row state_row = {
    sizeof(sessile_migrate_state),
    more_of_state,
    {STATE("sessions", INTEGER, sessions),
     STATE("done", INTEGER, done),
     STATE("bytes", INTEGER, bytes),
     STATE("bytes_done", INTEGER, bytes_done),
     STATE("copied", INTEGER, copied),
     STATE("continued", INTEGER, continued),
     STATE("kept", INTEGER, kept),
     STATE("replaced", INTEGER, replaced),
     STATE("conflicts", INTEGER, conflicts),
     STATE("forgotten", INTEGER, forgotten),
     STATE("gone", INTEGER, gone),
     STATE("failed", INTEGER, failed),
     STATE("damaged", INTEGER, damaged),
     STATE("verified", INTEGER, verified),
     STATE("unfinished", INTEGER, unfinished),
     STATE("users", INTEGER, users),
     STATE("users_removed", INTEGER, users_removed),
     STATE("as_it_stands", BOOLEAN, as_it_stands),
     STATE("unopened", BOOLEAN, unopened),
     STATE("moment", BOOLEAN, moment)}};

/* step() -> done, state; nil, message, code */
static int migration_step(lua_State *L)
{
    struct binding_migration *migration = luaL_checkudata(L, 1, BINDING_MIGRATION);
    sessile_migrate_state state;
    sessile_status status;
    sessile_error err;
    if (!migration->handle)
        return binding_closed(L, "copy");
    status = sessile_migrate_step(migration->handle, &state, &err);
    if (status && status != SESSILE_NEEDS)
        return binding_fail(L, &err);
    lua_pushboolean(L, status == SESSILE_OK);
    binding_push_row(L, &state_row, &state);
    return 2;
}

static int migration_text(lua_State *L)
{
    struct binding_migration *migration = luaL_checkudata(L, 1, BINDING_MIGRATION);
    lua_pushfstring(L, "%s%s", BINDING_MIGRATION, migration->handle ? "" : " (closed)");
    return 1;
}

static const luaL_Reg migration_methods[] = {
    {"step", migration_step},
    {"close", migration_finalize},
    {NULL, NULL},
};

void binding_migrate_open(lua_State *L)
{
    binding_class(L, BINDING_MIGRATION, migration_methods, migration_finalize,
                  migration_text);
}
