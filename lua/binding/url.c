/*
 * url.c: whether a text names a URL that leads inwards, and whether an address does.
 */
#include "binding.h"

#include <arpa/inet.h>
#include <string.h>

/* The strings of the list `allow` are copied into a table, which also holds their
 * slices: it is pushed, and is all that *out needs. */
void binding_url_options(lua_State *L, int table, sessile_url_options *out)
{
    sessile_slice *slices;
    size_t size;

    sessile_url_options_init(out);
    out->only_allowed = binding_field_boolean(L, table, "only_allowed");
    out->resolve = binding_field_boolean(L, table, "resolve");
    lua_newtable(L);
    if (binding_raw_field(L, table, "allow") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    out->allow_count = (size_t)lua_rawlen(L, -1);
    slices = lua_newuserdatauv(L, (out->allow_count + 1) * sizeof *slices, 0);
    lua_setfield(L, -3, "slices");
    for (size_t i = 0; i < out->allow_count; i++) {
        if (lua_rawgeti(L, -1, (lua_Integer)i + 1) != LUA_TSTRING)
            binding_misuse(L, "allow: a list of hosts expected");
        slices[i].data = lua_tolstring(L, -1, &size);
        slices[i].size = size;
        lua_rawseti(L, -3, (lua_Integer)i + 1);
    }
    lua_pop(L, 1);
    out->allow = slices;
}

/* url_check(text, {allow =, only_allowed =, resolve =}) -> true; nil, message, code, and
 * of what is refused {rule =, url =, at =} */
int binding_url_check(lua_State *L)
{
    sessile_slice text = binding_check_bytes(L, 1);
    sessile_url_options options;
    sessile_url_found found;
    sessile_error err;

    lua_settop(L, 2);
    binding_url_options(L, 2, &options);
    if (!sessile_url_check(text, &options, &found, &err)) {
        lua_pushboolean(L, 1);
        return 1;
    }
    binding_fail(L, &err);
    if (!found.rule)
        return 3;
    lua_createtable(L, 0, 3);
    binding_set_text(L, "rule", found.rule);
    binding_set_integer(L, "at", (int64_t)found.offset + 1);
    binding_set_slice(L, "url", (sessile_slice){text.data + found.offset, found.size});
    return 4;
}

/* address_check(address, {allow =, port =}) -> true; nil, message, code */
int binding_address_check(lua_State *L)
{
    const char *text = luaL_checkstring(L, 1);
    sessile_url_options options;
    unsigned char bytes[16];
    sessile_error err;
    int family = strchr(text, ':') ? SESSILE_IPV6 : SESSILE_IPV4, port;

    lua_settop(L, 2);
    binding_url_options(L, 2, &options);
    port = (int)binding_field_count(L, 2, "port", 65535);
    if (inet_pton(family == SESSILE_IPV6 ? AF_INET6 : AF_INET, text, bytes) != 1)
        return binding_fail_with(L, SESSILE_INVALID,
                                 "an address is written as 192.0.2.1 or 2001:db8::1");
    if (sessile_address_check(family, bytes, port, &options, &err))
        return binding_fail(L, &err);
    lua_pushboolean(L, 1);
    return 1;
}
