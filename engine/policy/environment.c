/*
 * environment.c: the globals of a policy: an allow-list, copied for every pipeline.
 *
 * Owns the set of Lua's functions that a script can reach. Must never share a table
 * between two pipelines. Must never include a function of Lua that reads the outside
 * world, loads code, changes how the VM runs, or does unbounded work in one call.
 */
#include "policy/environment.h"

#include <string.h>
#include <lauxlib.h>
#include <lualib.h>

/* Registry keys. */
static const char templates_key;

/* An allowed function or constant of Lua, used unchanged. */
typedef struct allowed {
    const char *library, *name;
} allowed;

/* Functions that do bounded work, allocate nothing beyond their arguments, and have no
 * state. Everything else is ours (library_*.c) or absent. */
static const allowed as_they_are[] = {
    {"_G", "assert"},        {"_G", "ipairs"},       {"_G", "type"},
    {"_G", "rawequal"},      {"_G", "rawlen"},       {"_G", "rawget"},
    {"string", "len"},       {"math", "abs"},        {"math", "acos"},
    {"math", "asin"},        {"math", "atan"},       {"math", "ceil"},
    {"math", "cos"},         {"math", "deg"},        {"math", "exp"},
    {"math", "floor"},       {"math", "fmod"},       {"math", "huge"},
    {"math", "log"},         {"math", "maxinteger"}, {"math", "mininteger"},
    {"math", "modf"},        {"math", "pi"},         {"math", "rad"},
    {"math", "sin"},         {"math", "sqrt"},       {"math", "tan"},
    {"math", "tointeger"},   {"math", "type"},       {"math", "ult"},
    {"utf8", "charpattern"},
};

static const struct stock_name {
    stock_function which;
    allowed from;
} stock_names[] = {
    {STOCK_BYTE, {"string", "byte"}},         {STOCK_CHAR, {"string", "char"}},
    {STOCK_FORMAT, {"string", "format"}},     {STOCK_LOWER, {"string", "lower"}},
    {STOCK_REVERSE, {"string", "reverse"}},   {STOCK_SUB, {"string", "sub"}},
    {STOCK_UPPER, {"string", "upper"}},       {STOCK_CONCAT, {"table", "concat"}},
    {STOCK_INSERT, {"table", "insert"}},      {STOCK_MOVE, {"table", "move"}},
    {STOCK_PACK, {"table", "pack"}},          {STOCK_REMOVE, {"table", "remove"}},
    {STOCK_UNPACK, {"table", "unpack"}},      {STOCK_UTF8CHAR, {"utf8", "char"}},
    {STOCK_CODEPOINT, {"utf8", "codepoint"}}, {STOCK_LEN, {"utf8", "len"}},
    {STOCK_CODES, {"utf8", "codes"}},         {STOCK_TONUMBER, {"_G", "tonumber"}},
    {STOCK_SELECT, {"_G", "select"}},
};

/* The tables of an environment, in the order of the templates. */
enum { BASE = 1, MATH, STRING, TABLE, UTF8, TEMPLATES = UTF8 };
static const char *const template_names[] = {NULL,     "_G",    "math",
                                             "string", "table", "utf8"};

/* Lua's libraries as name -> table, in a table that no script will see. */
static void push_originals(lua_State *L)
{
    static const struct {
        const char *name;
        lua_CFunction open;
    } libraries[] = {
        {"_G", luaopen_base},     {"math", luaopen_math}, {"string", luaopen_string},
        {"table", luaopen_table}, {"utf8", luaopen_utf8},
    };
    size_t i;
    lua_newtable(L);
    for (i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_pushcfunction(L, libraries[i].open);
        lua_call(L, 0, 1);
        lua_setfield(L, -2, libraries[i].name);
    }
}

static void push_original(lua_State *L, int originals, const allowed *what)
{
    lua_getfield(L, originals, what->library);
    lua_getfield(L, -1, what->name);
    lua_remove(L, -2);
}

void environment_open(lua_State *L, lua_CFunction stock[STOCK_COUNT])
{
    int originals, templates, t;
    size_t i;

    luaL_checkstack(L, 10, NULL);
    push_originals(L);
    originals = lua_gettop(L);
    for (i = 0; i < sizeof stock_names / sizeof *stock_names; i++) {
        push_original(L, originals, &stock_names[i].from);
        stock[stock_names[i].which] = lua_tocfunction(L, -1);
        lua_pop(L, 1);
    }
    lua_createtable(L, TEMPLATES, 0);
    templates = lua_gettop(L);
    for (t = BASE; t <= TEMPLATES; t++) {
        lua_newtable(L);
        for (i = 0; i < sizeof as_they_are / sizeof *as_they_are; i++) {
            if (strcmp(as_they_are[i].library, template_names[t]) != 0)
                continue;
            push_original(L, originals, &as_they_are[i]);
            lua_setfield(L, -2, as_they_are[i].name);
        }
        if (t == BASE) {
            library_base(L);
        } else if (t == MATH) {
            library_math(L);
        } else if (t == STRING) {
            library_string(L);
            library_match(L);
        } else if (t == TABLE) {
            library_table(L);
        } else if (t == UTF8) {
            library_utf8(L);
        }
        lua_rawseti(L, templates, t);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &templates_key);
    lua_pop(L, 1);

    /* luaopen_string has set a metatable for strings. Its arithmetic stays ("10" + 1).
     * Its __index is the string table of the environment in use; between pipelines
     * there is none. */
    lua_newtable(L);
    environment_use_strings(L, -1);
    lua_pop(L, 1);
    /* And luaopen_base has filled the globals, which chunks are compiled against. */
    lua_newtable(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

/* Pushes a shallow copy of a template. */
static void push_copy(lua_State *L, int templates, int t, int names)
{
    int from;
    lua_rawgeti(L, templates, t);
    from = lua_gettop(L);
    lua_createtable(L, 0, names);
    lua_pushnil(L);
    while (lua_next(L, from)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, from + 1);
    }
    lua_remove(L, from);
}

void environment_push(lua_State *L)
{
    static const int sizes[] = {0, 32, 32, 16, 8, 8};
    int templates, t;

    luaL_checkstack(L, 10, NULL);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &templates_key);
    templates = lua_gettop(L);
    push_copy(L, templates, BASE, sizes[BASE]);
    for (t = MATH; t <= TEMPLATES; t++) {
        push_copy(L, templates, t, sizes[t]);
        lua_setfield(L, -2, template_names[t]);
    }
    lua_remove(L, templates);
}

void environment_use_strings(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1)) {
        lua_pushvalue(L, index);
        lua_setfield(L, -2, "__index");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
