/*
 * config.c: a file of settings as plain data, and whether a path in it leads elsewhere.
 */
#include "binding.h"

#include <string.h>
#include "policy/lua_config.h"
#include "policy/lua_json.h"

/* config(path) -> what the file said, as lua_config.h has it, its source, and its path
 * from the root; nil, message, code */
int binding_config(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct binding_guard *values = binding_guard(L), *text = binding_guard(L);
    struct binding_guard *real = binding_guard(L);
    lua_config config;
    sessile_error err;
    if (lua_config_read(path, &config, &err))
        return binding_fail(L, &err);
    values->block = config.values;
    text->block = config.text;
    real->block = config.path;
    lua_json_push(L, config.values, config.values_size);
    lua_pushlstring(L, config.text, config.text_size);
    lua_pushstring(L, config.path);
    binding_guard_free(values);
    binding_guard_free(text);
    binding_guard_free(real);
    return 3;
}

/* stays_below(folder, path): true when what there is of a path below that folder is
 * folders alone, and no link. */
int binding_stays_below(lua_State *L)
{
    const char *folder = luaL_checkstring(L, 1);
    size_t size;
    const char *path = luaL_checklstring(L, 2, &size);
    char *copy = lua_newuserdatauv(L, size + 1, 0);
    memcpy(copy, path, size + 1);
    lua_pushboolean(L, lua_config_stays_below(folder, copy));
    return 1;
}
