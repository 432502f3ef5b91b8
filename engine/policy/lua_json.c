/*
 * lua_json.c: Lua values to JSON text.
 *
 * Owns the one rule by which tables become JSON (arrays, objects, sorted keys, numbers),
 * for policies and for Lua hosts. Scratch memory belongs to Lua, so an error raised for
 * memory leaks nothing. Must never run a metamethod, or depend on the sandbox.
 */
#include "policy/lua_json.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <lauxlib.h>

/* The key of the registry for the charge. */
static const char meter_key;

/* A position of the writer: the table (against cycles) and the key in it (for errors). */
typedef struct frame {
    const void *table;
    const char *key; /* NULL: an element of an array */
    lua_Integer i;
} frame;

typedef struct writer {
    lua_State *L;
    char *data; /* in the userdata at stack index box */
    size_t size, capacity, max;
    int box, message, depth;
    const char *problem; /* why writing failed; the path is in frames */
    int too_much;        /* it was a bound */
    lua_json_charge charge;
    frame frames[LUA_JSON_DEPTH + 1];
} writer;

/* Makes room for more bytes; or returns 0 and records the problem. */
static int reserve(writer *w, size_t more)
{
    size_t wanted;
    char *grown;
    if (more > w->max || w->size > w->max - more) {
        w->problem = "the JSON text would be too long";
        w->too_much = 1;
        return 0;
    }
    if (w->capacity - w->size >= more)
        return 1;
    wanted = w->capacity * 2;
    if (wanted < w->size + more)
        wanted = w->size + more;
    luaL_checkstack(w->L, 1, NULL);
    grown = lua_newuserdatauv(w->L, wanted, 0);
    memcpy(grown, w->data, w->size);
    lua_replace(w->L, w->box);
    w->data = grown;
    w->capacity = wanted;
    return 1;
}

static int put_bytes(writer *w, const char *text, size_t size)
{
    if (!reserve(w, size))
        return 0;
    memcpy(w->data + w->size, text, size);
    w->size += size;
    return 1;
}

static int put_string(writer *w, const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const char *end = text + size, *from = text;

    if (!put_bytes(w, "\"", 1))
        return 0;
    for (; text < end; text++) {
        unsigned char c = (unsigned char)*text;
        char escape[6] = {'\\', 0, '0', '0', 0, 0};
        size_t length = 2;
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        switch (c) {
        case '"':
        case '\\':
            escape[1] = (char)c;
            break;
        case '\n':
            escape[1] = 'n';
            break;
        case '\r':
            escape[1] = 'r';
            break;
        case '\t':
            escape[1] = 't';
            break;
        case '\b':
            escape[1] = 'b';
            break;
        case '\f':
            escape[1] = 'f';
            break;
        default:
            escape[1] = 'u';
            escape[4] = digits[c >> 4];
            escape[5] = digits[c & 15];
            length = 6;
        }
        if (!put_bytes(w, from, (size_t)(text - from)) || !put_bytes(w, escape, length))
            return 0;
        from = text + 1;
    }
    return put_bytes(w, from, (size_t)(end - from)) && put_bytes(w, "\"", 1);
}

/*
 * The shortest of %.15g, %.16g and %.17g that reads back the same: a decimal of up to 15
 * digits is always found again by %.15g. Subnormals have fewer digits to begin with. The
 * host's decimal point, whatever its bytes are, becomes a '.'.
 */
static int put_number(writer *w, lua_Number n)
{
    char text[64], out[64];
    int digits = fabs(n) < DBL_MIN ? 1 : 15;
    size_t i, size = 0;

    if (!isfinite(n)) {
        w->problem = isnan(n) ? "NaN cannot be JSON" : "an infinity cannot be JSON";
        return 0;
    }
    if (n == 0 && signbit(n))
        return put_bytes(w, "-0.0", 4); /* "-0" would be read as the integer 0 */
    for (;; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, n);
        if (digits >= 17 || strtod(text, NULL) == n)
            break;
    }
    for (i = 0; text[i]; i++)
        if ((text[i] >= '0' && text[i] <= '9') || strchr("+-e", text[i]))
            out[size++] = text[i];
        else if (size == 0 || out[size - 1] != '.')
            out[size++] = '.';
    return put_bytes(w, out, size);
}

/* Keys of an object in byte order. The table holds the strings. */
typedef struct name {
    const char *text;
    size_t size;
} name;

static int compare_names(const void *a, const void *b)
{
    const name *x = a, *y = b;
    size_t common = x->size < y->size ? x->size : y->size;
    int order = common ? memcmp(x->text, y->text, common) : 0;
    if (order)
        return order;
    return x->size < y->size ? -1 : x->size > y->size;
}

/* Pushes a userdata with the count string keys of the table at index, sorted. */
static name *sorted_names(lua_State *L, int index, size_t count)
{
    name *names = lua_newuserdatauv(L, count ? count * sizeof *names : 1, 0);
    size_t i = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && i < count) {
            names[i].text = lua_tolstring(L, -1, &names[i].size);
            i++;
        }
    }
    if (i > 1)
        qsort(names, i, sizeof *names, compare_names);
    return names;
}

void lua_json_keys(lua_State *L, int index)
{
    size_t count = 0, i;
    name *names;
    index = lua_absindex(L, index);
    luaL_checkstack(L, 6, NULL);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        count += lua_type(L, -1) == LUA_TSTRING;
    }
    lua_createtable(L, count < 1000000 ? (int)count : 0, 0);
    names = sorted_names(L, index, count);
    for (i = 0; i < count; i++) {
        lua_pushlstring(L, names[i].text, names[i].size);
        lua_rawseti(L, -3, (lua_Integer)i + 1);
    }
    lua_pop(L, 1);
}

static int write_value(writer *w, int index, int empty_is_array);

/* w->depth counts the open tables: frames[0 .. depth - 1] have a table and the key or
 * position in it. Together they are the path in an error. */
static int write_array(writer *w, int index, size_t count)
{
    frame *f = &w->frames[w->depth++];
    size_t i;
    if (!put_bytes(w, "[", 1))
        return 0;
    f->key = NULL;
    for (i = 1; i <= count; i++) {
        f->i = (lua_Integer)i;
        lua_rawgeti(w->L, index, (lua_Integer)i);
        if ((i > 1 && !put_bytes(w, ",", 1)) || !write_value(w, lua_gettop(w->L), 0))
            return 0;
        lua_pop(w->L, 1);
    }
    w->depth--;
    return put_bytes(w, "]", 1);
}

static int is_list_field(const name *n)
{
    return (n->size == 7 && memcmp(n->text, "content", 7) == 0) ||
           (n->size == 10 && memcmp(n->text, "tool_calls", 10) == 0);
}

static int write_object(writer *w, int index, size_t count)
{
    name *names = sorted_names(w->L, index, count);
    int of_message = w->message && w->depth == 0;
    frame *f = &w->frames[w->depth++];
    size_t i;
    if (!put_bytes(w, "{", 1))
        return 0;
    for (i = 0; i < count; i++) {
        f->key = names[i].text;
        if ((i > 0 && !put_bytes(w, ",", 1)) ||
            !put_string(w, names[i].text, names[i].size) || !put_bytes(w, ":", 1))
            return 0;
        lua_pushlstring(w->L, names[i].text, names[i].size);
        lua_rawget(w->L, index);
        if (!write_value(w, lua_gettop(w->L), of_message && is_list_field(&names[i])))
            return 0;
        lua_pop(w->L, 1);
    }
    w->depth--;
    lua_pop(w->L, 1);
    return put_bytes(w, "}", 1);
}

/* Classifies a table by its keys: list, object, or neither. */
static int write_plain(writer *w, int index, int kind, int empty_is_array)
{
    size_t names = 0, integers = 0;
    lua_Integer greatest = 0;

    lua_pushnil(w->L);
    while (lua_next(w->L, index)) {
        lua_pop(w->L, 1);
        if (lua_type(w->L, -1) == LUA_TSTRING) {
            names++;
        } else if (lua_isinteger(w->L, -1) && lua_tointeger(w->L, -1) >= 1) {
            integers++;
            if (lua_tointeger(w->L, -1) > greatest)
                greatest = lua_tointeger(w->L, -1);
        } else {
            w->problem = "a key that is no name and no position cannot be JSON";
            return 0;
        }
    }
    if (w->charge)
        w->charge(w->L, 16 * (names + integers));
    if (names && (integers || kind == LUA_JSON_ARRAY)) {
        w->problem = "a table that is a list and has named fields cannot be JSON";
        return 0;
    }
    if ((lua_Integer)integers != greatest) {
        w->problem = "a list with holes cannot be JSON";
        return 0;
    }
    if (kind == LUA_JSON_ARRAY || integers > 0 || (names == 0 && empty_is_array))
        return write_array(w, index, integers);
    return write_object(w, index, names);
}

static int write_verbatim(writer *w, int index)
{
    size_t size;
    const char *text;
    int ok;
    lua_pushliteral(w->L, "json");
    if (lua_rawget(w->L, index) != LUA_TSTRING) {
        w->problem = "its field json is no string";
        return 0;
    }
    text = lua_tolstring(w->L, -1, &size);
    ok = put_bytes(w, text, size);
    lua_pop(w->L, 1);
    return ok;
}

static int write_table(writer *w, int index, int empty_is_array)
{
    int top = lua_gettop(w->L), kind = lua_json_kind(w->L, index), d;

    if (w->charge)
        w->charge(w->L, 16);
    if (kind == LUA_JSON_VERBATIM)
        return write_verbatim(w, index);
    if (kind == LUA_JSON_FROZEN && lua_json_thaw(w->L, index)) {
        index = lua_gettop(w->L);
        kind = lua_json_kind(w->L, index);
    }
    if (w->depth >= LUA_JSON_DEPTH) {
        w->problem = "it is nested deeper than any message may be: flatten it";
        w->too_much = 1;
        return 0;
    }
    w->frames[w->depth].table = lua_topointer(w->L, index);
    for (d = 0; d < w->depth; d++) {
        if (w->frames[d].table == w->frames[w->depth].table) {
            w->problem = "a table that contains itself cannot be JSON";
            return 0;
        }
    }
    if (!write_plain(w, index, kind, empty_is_array))
        return 0;
    lua_settop(w->L, top);
    return 1;
}

static int write_value(writer *w, int index, int empty_is_array)
{
    char text[32];
    const char *string;
    size_t size;

    luaL_checkstack(w->L, 10, "nested too deep");
    switch (lua_type(w->L, index)) {
    case LUA_TSTRING:
        string = lua_tolstring(w->L, index, &size);
        return put_string(w, string, size);
    case LUA_TNUMBER:
        if (!lua_isinteger(w->L, index))
            return put_number(w, lua_tonumber(w->L, index));
        size = (size_t)snprintf(text, sizeof text, LUA_INTEGER_FMT,
                                (LUAI_UACINT)lua_tointeger(w->L, index));
        return put_bytes(w, text, size);
    case LUA_TBOOLEAN:
        return lua_toboolean(w->L, index) ? put_bytes(w, "true", 4)
                                          : put_bytes(w, "false", 5);
    case LUA_TTABLE:
        return write_table(w, index, empty_is_array);
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(w->L, index))
            return put_bytes(w, "null", 4);
        w->problem = "a userdata cannot be JSON";
        return 0;
    case LUA_TNIL:
        w->problem = "nil cannot be JSON";
        return 0;
    case LUA_TFUNCTION:
        w->problem = "a function cannot be JSON";
        return 0;
    default:
        w->problem = "a userdata cannot be JSON";
        return 0;
    }
}

/* Pushes "metadata.list[3]: a function cannot be JSON". */
static void push_problem(writer *w)
{
    lua_State *L = w->L;
    int d;
    luaL_checkstack(L, 6, NULL);
    lua_pushliteral(L, "");
    for (d = 0; d < w->depth && d < 12; d++) {
        const frame *f = &w->frames[d];
        if (f->key)
            lua_pushfstring(L, d > 0 ? ".%s" : "%s", f->key);
        else
            lua_pushfstring(L, "[%I]", (LUAI_UACINT)f->i);
        lua_concat(L, 2);
    }
    lua_pushfstring(L, "%s%s%s", d < w->depth ? "…" : "", w->depth ? ": " : "",
                    w->problem);
    lua_concat(L, 2);
}

int lua_json_bounded(lua_State *L, int index, int message, size_t max_size, int *too_much)
{
    writer w;
    int top = lua_gettop(L), ok;

    index = lua_absindex(L, index);
    luaL_checkstack(L, 10, NULL);
    memset(&w, 0, offsetof(writer, frames));
    w.L = L;
    w.max = max_size;
    w.message = message;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &meter_key) == LUA_TUSERDATA)
        w.charge = *(lua_json_charge *)lua_touserdata(L, -1);
    lua_pop(L, 1);
    w.capacity = 256;
    w.data = lua_newuserdatauv(L, w.capacity, 0);
    w.box = lua_gettop(L);
    ok = write_value(&w, index, 0);
    if (ok)
        lua_pushlstring(L, w.data, w.size);
    else
        push_problem(&w);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    *too_much = w.too_much;
    return ok;
}

int lua_json_text(lua_State *L, int index, int message, size_t max_size)
{
    int too_much;
    return lua_json_bounded(L, index, message, max_size, &too_much);
}

void lua_json_meter(lua_State *L, lua_json_charge charge)
{
    lua_json_charge *box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = charge;
    lua_rawsetp(L, LUA_REGISTRYINDEX, &meter_key);
}
