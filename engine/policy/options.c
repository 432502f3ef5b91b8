/*
 * options.c: options of policies: declarations, types, defaults, checks.
 *
 * Compares what a policy's file declares with what its user wrote. A wrong declaration
 * is the policy's error and raises. A wrong value is the user's error and INVALID.
 * Must never accept an option that no policy declares.
 */
#include "policy/options.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/lua_json.h"

#define OPTIONS_MAX 64    /* keys of one offer */
#define TEXT_MAX    65536 /* bytes of effective options */
#define LIKE_MAX    40    /* longest name that is compared for similarity */

/* Registry key of the set of all names declared so far, for suggestions. */
static const char known_key;

/* ------------------------------------------------------------------ likeness */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Restricted Damerau-Levenshtein distance, over three rows of the usual table. */
unsigned options_distance(const char *a, const char *b)
{
    unsigned rows[3][LIKE_MAX + 1];
    size_t n = strlen(a), m = strlen(b), i, j;

    if (n > LIKE_MAX || m > LIKE_MAX)
        return UINT_MAX;
    for (j = 0; j <= m; j++)
        rows[0][j] = (unsigned)j;
    for (i = 1; i <= n; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3],
                 *second = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (j = 1; j <= m; j++) {
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(row[j], least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* The known name most similar to `name`, or NULL: none is similar. Borrowed from the
 * set. */
static const char *nearest(lua_State *L, int set, const char *name)
{
    unsigned best = (unsigned)strlen(name) / 3 + 2, distance;
    const char *found = NULL;

    set = lua_absindex(L, set);
    lua_json_keys(L, set);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        const char *known = lua_tostring(L, -1);
        distance = options_distance(name, known);
        if (distance < best) {
            best = distance;
            found = known;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return found;
}

/* ------------------------------------------------------------------ one value */

static int is_list(lua_State *L, int index)
{
    size_t keys = 0;
    if (!lua_istable(L, index))
        return 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        keys++;
    }
    return keys == lua_rawlen(L, index);
}

/* 1 when the value has the type; a whole float becomes the integer it is. */
static int has_type(lua_State *L, int value, const char *type)
{
    if (strcmp(type, "integer") == 0) {
        int is_integer;
        lua_Integer n = lua_tointegerx(L, value, &is_integer);
        if (lua_type(L, value) != LUA_TNUMBER || !is_integer)
            return 0;
        lua_pushinteger(L, n);
        lua_replace(L, value);
        return 1;
    }
    if (strcmp(type, "list") == 0) {
        if (!is_list(L, value))
            return 0;
        lua_json_mark_array(L, value);
        return 1;
    }
    return strcmp(luaL_typename(L, value), type) == 0;
}

/* Checks a bound: 1, or 0 with the reason in problem. Field `bound` of the declaration
 * limits numbers. */
static int within(lua_State *L, int declaration, int value, const char *bound,
                  char problem[200])
{
    int ok = 1;
    lua_pushstring(L, bound);
    if (lua_rawget(L, declaration) == LUA_TNUMBER && lua_type(L, value) == LUA_TNUMBER) {
        ok = bound[1] == 'i' ? lua_compare(L, -1, value, LUA_OPLE)
                             : lua_compare(L, value, -1, LUA_OPLE);
        if (!ok) {
            lua_pushvalue(L, -1); /* tolstring must not change what is compared */
            snprintf(problem, 200, "must be %s %s",
                     bound[1] == 'i' ? "at least" : "at most", lua_tostring(L, -1));
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    return ok;
}

static int among(lua_State *L, int declaration, int value, char problem[200])
{
    size_t size = (size_t)snprintf(problem, 200, "must be one of");
    lua_Integer i;
    lua_pushliteral(L, "values");
    if (lua_rawget(L, declaration) != LUA_TTABLE) {
        lua_pop(L, 1);
        return 1;
    }
    for (i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (lua_rawequal(L, -1, value)) {
            lua_pop(L, 2);
            return 1;
        }
        if (size < 160 && (lua_isnumber(L, -1) || lua_isstring(L, -1))) {
            int n = snprintf(problem + size, 200 - size, "%s %.30s", i > 1 ? "," : "",
                             lua_tostring(L, -1));
            size += n > 0 ? (size_t)n : 0;
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return 0;
}

static int accepts(lua_State *L, int declaration, int value, char problem[200])
{
    const char *type;
    int ok;
    lua_pushliteral(L, "type");
    lua_rawget(L, declaration);
    type = lua_tostring(L, -1);
    ok = has_type(L, value, type);
    if (!ok)
        snprintf(problem, 200, "must be %s %s, not %s",
                 strchr("aeio", type[0]) ? "an" : "a", type, luaL_typename(L, value));
    lua_pop(L, 1);
    return ok && within(L, declaration, value, "min", problem) &&
           within(L, declaration, value, "max", problem) &&
           among(L, declaration, value, problem);
}

/* ------------------------------------------------------------------ declarations */

/* Checks the declaration of the option `name` at the top; raises when it is wrong. */
static void check_declaration(lua_State *L, const char *name)
{
    static const char *const fields[] = {"type", "default", "min",
                                         "max",  "values",  "about"};
    static const char *const types[] = {"integer", "number", "string",
                                        "boolean", "list",   "table"};
    int declaration = lua_gettop(L);
    size_t i;

    if (!lua_istable(L, declaration))
        luaL_error(L, "options.%s is a table {type = …, default = …}, got %s", name,
                   luaL_typename(L, declaration));
    lua_pushnil(L);
    while (lua_next(L, declaration)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        for (i = 0; i < 6 && strcmp(key, fields[i]) != 0; i++)
            ;
        if (i == 6)
            luaL_error(L,
                       "options.%s has type, default, min, max, values and about, not "
                       "'%s'",
                       name, key);
        lua_pop(L, 1);
    }
    lua_pushliteral(L, "type");
    if (lua_rawget(L, declaration) != LUA_TSTRING)
        luaL_error(L, "options.%s has no type", name);
    for (i = 0; i < 6 && strcmp(lua_tostring(L, -1), types[i]) != 0; i++)
        ;
    if (i == 6)
        luaL_error(L,
                   "options.%s: type is integer, number, string, boolean, list or table, "
                   "not '%s'",
                   name, lua_tostring(L, -1));
    lua_pop(L, 1);
}

/* Fills the table of effective options at `effective` with the defaults. */
static void take_defaults(lua_State *L, int declarations, int effective)
{
    char problem[200];
    lua_Integer i;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &known_key);
    lua_json_keys(L, declarations);
    for (i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        int name = lua_gettop(L);
        lua_pushvalue(L, name);
        lua_rawget(L, declarations);
        check_declaration(L, lua_tostring(L, name));
        lua_pushvalue(L, name);
        lua_pushboolean(L, 1);
        lua_rawset(L, name - 2);
        lua_pushliteral(L, "default");
        if (lua_rawget(L, name + 1) != LUA_TNIL) {
            if (!accepts(L, name + 1, lua_gettop(L), problem))
                luaL_error(L, "options.%s: its default %s", lua_tostring(L, name),
                           problem);
            lua_pushvalue(L, name);
            lua_insert(L, -2);
            lua_rawset(L, effective);
        }
        lua_settop(L, name - 1);
    }
    lua_pop(L, 3);
}

/* ------------------------------------------------------------------ offers */

static const char *kind_of(const options_offer *offer)
{
    return offer->kind ? offer->kind : "policy";
}

/* Applies the declared options of one offer. */
static sessile_status take_offer(lua_State *L, int declarations, int effective,
                                 options_offer *offer, sessile_error *err)
{
    char problem[200];
    int given;
    lua_Integer i;

    lua_json_push(L, offer->json, offer->size);
    given = lua_gettop(L);
    lua_json_keys(L, given);
    for (i = 1; lua_rawgeti(L, given + 1, i) != LUA_TNIL; i++) {
        int name = lua_gettop(L);
        if (i > OPTIONS_MAX)
            return fail(err, SESSILE_INVALID, "%s %s: more than %d options",
                        kind_of(offer), offer->who, OPTIONS_MAX);
        lua_pushvalue(L, name);
        if (declarations && lua_rawget(L, declarations) == LUA_TTABLE) {
            offer->used |= UINT64_C(1) << (i - 1);
            lua_pushvalue(L, name);
            lua_rawget(L, given);
            if (lua_type(L, -1) !=
                LUA_TLIGHTUSERDATA) { /* null: as if it was not given */
                if (!accepts(L, name + 1, lua_gettop(L), problem))
                    return fail(err, SESSILE_INVALID, "%s %s: option %s %s",
                                kind_of(offer), offer->who, lua_tostring(L, name),
                                problem);
                lua_pushvalue(L, name);
                lua_insert(L, -2);
                lua_rawset(L, effective);
            }
        }
        lua_settop(L, name - 1);
    }
    return SESSILE_OK;
}

sessile_status options_resolve(lua_State *L, int declarations, options_offer *offers,
                               sessile_error *err)
{
    int top = lua_gettop(L), effective = top + 1;
    options_offer *offer;

    luaL_checkstack(L, 20, NULL);
    if (lua_isnil(L, declarations)) {
        declarations = 0;
    } else {
        declarations = lua_absindex(L, declarations);
        if (!lua_istable(L, declarations))
            luaL_error(L, "options is a table of declarations, got %s",
                       luaL_typename(L, declarations));
    }
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &known_key) == LUA_TNIL) {
        lua_newtable(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &known_key);
    }
    lua_pop(L, 1);
    lua_newtable(L);
    if (declarations)
        take_defaults(L, declarations, effective);
    for (offer = offers; offer; offer = offer->outer) {
        sessile_status status = take_offer(L, declarations, effective, offer, err);
        if (status) {
            lua_settop(L, top);
            return status;
        }
        lua_settop(L, effective);
    }
    if (!lua_json_text(L, effective, 0, TEXT_MAX))
        luaL_error(L, "options: %s", lua_tostring(L, -1));
    lua_replace(L, effective);
    return SESSILE_OK;
}

sessile_status options_check_used(lua_State *L, const options_offer *offer,
                                  sessile_error *err)
{
    int top = lua_gettop(L);
    sessile_status status = SESSILE_OK;
    lua_Integer i;

    luaL_checkstack(L, 20, NULL);
    lua_json_push(L, offer->json, offer->size);
    lua_json_keys(L, -1);
    for (i = 1; lua_rawgeti(L, top + 2, i) != LUA_TNIL; i++) {
        const char *name = lua_tostring(L, -1), *like;
        if (i <= OPTIONS_MAX && (offer->used >> (i - 1) & 1)) {
            lua_pop(L, 1);
            continue;
        }
        lua_rawgetp(L, LUA_REGISTRYINDEX, &known_key);
        like = nearest(L, -1, name);
        if (like)
            status = fail(err, SESSILE_INVALID,
                          "%s %s has no option '%.60s': did you mean '%s'?",
                          kind_of(offer), offer->who, name, like);
        else
            status = fail(err, SESSILE_INVALID, "%s %s has no option '%.60s'",
                          kind_of(offer), offer->who, name);
        break;
    }
    lua_settop(L, top);
    return status;
}
