/*
 * pipeline_table.c: the Lua values of a pipeline, in one table of the VM's registry.
 *
 * Owns the registry key. Must never raise when it only reads: a pipeline ends with it.
 */
#include "policy/pipeline.h"

static const char table_key;

int pipeline_push_table(lua_State *L)
{
    return lua_rawgetp(L, LUA_REGISTRYINDEX, &table_key);
}

void pipeline_set_table(lua_State *L)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, &table_key);
}

int pipeline_get_slot(lua_State *L, const policy_pipeline *pl, int slot)
{
    int type;
    pipeline_push_table(L);
    type = lua_rawgeti(L, -1, TABLE_SLOTS + (lua_Integer)pl->step * SLOTS + slot);
    lua_remove(L, -2);
    return type;
}

void pipeline_set_slot(lua_State *L, const policy_pipeline *pl, int slot)
{
    pipeline_push_table(L);
    lua_insert(L, -2);
    lua_rawseti(L, -2, TABLE_SLOTS + (lua_Integer)pl->step * SLOTS + slot);
    lua_pop(L, 1);
}
