/*
 * config.c: a file of settings as plain data.
 */
#include "binding.h"
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
    if (lua_config_read(path, &config, &err) != SESSILE_OK)
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
