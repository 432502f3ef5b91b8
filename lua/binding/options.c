/* options.c: the options that a store, a session and a run have in common:
 * sessile_config. */
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include "binding.h"

void binding_field_config(lua_State *L, int table, sessile_config *out)
{
    static const char *const isolations[] = {"none", "worker", NULL};
    int isolation = binding_one_of(L, table, "isolation", isolations);
    memset(out, 0, sizeof *out);
    out->window = binding_field_integer(L, table, "window", 0);
    out->reserve = binding_field_integer(L, table, "reserve", 0);
    out->keep_min = (uint32_t)binding_field_count(L, table, "keep_min", UINT32_MAX);
    out->has_timeout = binding_field_timeout(L, table, "timeout_ms", &out->timeout_ms);
    if (binding_field_string(L, table, "isolation"))
        out->isolation = isolation ? SESSILE_WORKER : SESSILE_IN_PROCESS;
}

/* The names in the list at the top, which keeps them; pushes the array. */
static void read_events(lua_State *L, sessile_triggers *out)
{
    int list = lua_gettop(L);
    const char **names;
    out->event_count = (size_t)lua_rawlen(L, list);
    names = lua_newuserdatauv(L, (out->event_count + 1) * sizeof *names, 0);
    for (size_t i = 0; i < out->event_count; i++) {
        if (lua_rawgeti(L, list, (lua_Integer)(i + 1)) != LUA_TSTRING)
            binding_misuse(L, "trigger 'events': a list of names expected");
        names[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    out->events = names;
}

/* The table called `name`, {messages, interval_ms, share (per thousand), overflow,
 * events}, as *out, and 1; 0 when there is none. */
static int read_triggers(lua_State *L, int table, const char *name, sessile_triggers *out)
{
    memset(out, 0, sizeof *out);
    if (!lua_istable(L, table) || binding_raw_field(L, table, name) != LUA_TTABLE)
        return 0;
    int at = lua_gettop(L);
    out->messages = binding_field_count(L, at, "messages", UINT64_MAX);
    out->interval_ms = binding_field_count(L, at, "interval_ms", UINT64_MAX);
    out->share = (unsigned)binding_field_count(L, at, "share", UINT_MAX);
    out->overflow = binding_field_boolean(L, at, "overflow");
    if (binding_raw_field(L, at, "events") == LUA_TTABLE)
        read_events(L, out);
    return 1;
}

void binding_field_triggers(lua_State *L, int table, sessile_config *out,
                            struct binding_triggers *storage)
{
    if (read_triggers(L, table, "triggers", &storage->compact))
        out->triggers = &storage->compact;
    if (read_triggers(L, table, "checkpoint", &storage->checkpoint))
        out->checkpoint.triggers = &storage->checkpoint;
    out->checkpoint.keep =
        (uint32_t)binding_field_count(L, table, "checkpoint_keep", UINT32_MAX);
}
