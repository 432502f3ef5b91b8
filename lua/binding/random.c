/*
 * random.c: the numbers of ctx.random of a hook that the host has: the same turn gives
 * the same numbers, in every version of Lua.
 */
#include "binding.h"

#include <stdint.h>
#include <string.h>

/* random([n]): a number from 0 to 1, without 1; an integer from 1 to n. Splitmix64. */
static int next_random(lua_State *L)
{
    uint64_t *x = lua_touserdata(L, lua_upvalueindex(1));
    uint64_t z = *x += 0x9e3779b97f4a7c15;
    lua_Integer n = 0;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    if (lua_isnoneornil(L, 1)) {
        lua_pushnumber(L, (lua_Number)(z >> 11) * 0x1p-53);
        return 1;
    }
    if (lua_isinteger(L, 1))
        n = lua_tointeger(L, 1);
    if (n < 1)
        return binding_misuse(L, "random: a positive integer expected");
    lua_pushinteger(L, (lua_Integer)((z >> 1) % (uint64_t)n) + 1);
    return 1;
}

int binding_random(lua_State *L)
{
    sessile_slice seed = binding_check_bytes(L, 1);
    uint64_t x = 0xcbf29ce484222325; /* FNV-1a of the seed */
    for (size_t i = 0; i < seed.size; i++)
        x = (x ^ (unsigned char)seed.data[i]) * 0x100000001b3;
    memcpy(lua_newuserdatauv(L, sizeof x, 0), &x, sizeof x);
    lua_pushcclosure(L, next_random, 1);
    return 1;
}
