/* own_lua.h: whether the engine runs on the Lua that it was compiled for. */
#ifndef POLICY_OWN_LUA_H
#define POLICY_OWN_LUA_H

#include "sessile.h"

/* UNSUPPORTED: the engine would call another version of Lua, one that the process has
 * loaded under the same names. */
sessile_status own_lua_check(sessile_error *err);

#endif
