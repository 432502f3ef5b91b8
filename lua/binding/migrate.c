/*
 * migrate.c: whole stores copied into others: the handle of a copy that is under way.
 *
 * Owns the translation of places and of what a step says. A store that is lent counts the
 * copy among its children, so that it lives until the copy is closed.
 */
#include <string.h>
#include "binding.h"

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

static const char *const stages[] = {"looking", "copying", "verifying", "done", NULL};

static void more_of_state(lua_State *L, const void *row)
{
    const sessile_migrate_state *state = row;
    binding_set_failure(L, state->log, &state->why);
}

#define STATE(...) BINDING_FIELD(sessile_migrate_state, __VA_ARGS__)
static const struct binding_row state_row = BINDING_ROW(
    sessile_migrate_state, more_of_state,
    BINDING_ENUM(sessile_migrate_state, "stage", stage, stages),
    STATE("sessions", INTEGER, sessions), STATE("done", INTEGER, done),
    STATE("bytes", INTEGER, bytes), STATE("bytes_done", INTEGER, bytes_done),
    STATE("copied", INTEGER, copied), STATE("continued", INTEGER, continued),
    STATE("kept", INTEGER, kept), STATE("replaced", INTEGER, replaced),
    STATE("conflicts", INTEGER, conflicts), STATE("forgotten", INTEGER, forgotten),
    STATE("gone", INTEGER, gone), STATE("failed", INTEGER, failed),
    STATE("damaged", INTEGER, damaged), STATE("verified", INTEGER, verified),
    STATE("unfinished", INTEGER, unfinished), STATE("users", INTEGER, users),
    STATE("users_removed", INTEGER, users_removed),
    STATE("users_kept", INTEGER, users_kept),
    STATE("as_it_stands", BOOLEAN, as_it_stands), STATE("unopened", BOOLEAN, unopened),
    STATE("moment", BOOLEAN, moment));

/* step() -> done, state; nil, message, code */
static int migration_step(lua_State *L, struct binding_child *migration)
{
    sessile_migrate_state state;
    sessile_error err;
    return binding_stepped(L, sessile_migrate_step(migration->handle, &state, &err),
                           &state_row, &state, &err);
}

BINDING_FREE(migration_free, sessile_migrate_free)

const struct binding_child_class binding_migration_class = {
    "sessile.core.Migration", "copy", migration_free, {{"step", migration_step}}};

#define MIGRATE(...) BINDING_FIELD(sessile_migrate_options, __VA_ARGS__)
static const struct binding_field migrate_fields[] =
    BINDING_FIELDS(MIGRATE("change", BOOLEAN, change), MIGRATE("into", BOOLEAN, into),
                   MIGRATE("fresh", BOOLEAN, fresh), MIGRATE("replace", BOOLEAN, replace),
                   MIGRATE("mirror", BOOLEAN, mirror), MIGRATE("whole", BOOLEAN, whole),
                   MIGRATE("parts", COUNT, parts));

/* migrate(from, to, {change, into, fresh, replace, mirror, whole, parts, from_url}) -> a
 * copy to be stepped; nil, message, code. from_url: where an open `from` is. */
int binding_migrate(lua_State *L)
{
    sessile_store_options from_options, to_options;
    sessile_migrate_options options;
    struct binding_store *from_lent = NULL, *to_lent = NULL;
    struct binding_child *migration;
    sessile_migration *handle;
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
    binding_get_fields(L, 3, migrate_fields, &options);
    migration = binding_child_new(L, &binding_migration_class, from_lent);
    migration->stores[1] = to_lent;
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 2);
    if (sessile_migrate_begin(&handle, &from, &to, &options, &err))
        return binding_fail(L, &err);
    return binding_child_opened(migration, handle);
}
