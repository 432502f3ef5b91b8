/* lua_text.h: the engine's text functions for Lua hosts: hashes, base64, and the parts of
 * a JSON text as they were written. Policies do not have them. */
#ifndef POLICY_LUA_TEXT_H
#define POLICY_LUA_TEXT_H

#include <lua.h>

/* Sets sha256, base64, base64_bytes, decode and the table span in the table on top. */
void lua_text_open(lua_State *L);

#endif
