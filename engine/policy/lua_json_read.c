/*
 * lua_json_read.c: JSON text to Lua values.
 *
 * Reads text that the engine has checked: whole values, and single members of an object
 * without converting the rest. Scratch memory belongs to Lua, so an error raised for
 * memory leaks nothing. Must never read beyond the text, whatever it contains.
 */
#include "policy/lua_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <lauxlib.h>

/* A place in checked text. Nothing is read at end or beyond it, whatever the text is. */
typedef struct reader {
    lua_State *L;
    const char *at, *end;
    int depth;
} reader;

static int malformed(reader *r)
{
    return luaL_error(r->L, "malformed JSON");
}

static char peek(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || (*r->at >= '\t' && *r->at <= '\r')))
        r->at++;
    return r->at < r->end ? *r->at : 0;
}

static void expect(reader *r, char c)
{
    if (peek(r) != c)
        malformed(r);
    r->at++;
}

/* Steps over a string; sets its span inside the quotes and returns 1 when it has escapes.
 */
static int span_string(reader *r, const char **from, size_t *size)
{
    int escaped = 0;
    const char *at;
    expect(r, '"');
    *from = at = r->at;
    for (;;) {
        const char *quote = memchr(at, '"', (size_t)(r->end - at));
        const char *slash;
        if (!quote)
            return malformed(r);
        slash = memchr(at, '\\', (size_t)(quote - at));
        if (!slash) {
            *size = (size_t)(quote - *from);
            r->at = quote + 1;
            return escaped;
        }
        escaped = 1;
        if (r->end - slash < 2)
            malformed(r);
        at = slash + 2;
    }
}

static uint32_t hex4(const char *at)
{
    uint32_t value = 0;
    int i;
    for (i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 0;
        value = value << 4 | digit;
    }
    return value;
}

static char *put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* Decodes the escape after a backslash at *at; a lone surrogate becomes U+FFFD. */
static char *put_escape(char *out, const char **at, const char *end)
{
    static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    char c = *(*at)++;
    const char *name = c ? strchr(names, c) : NULL;
    uint32_t high, low;

    if (name) {
        *out++ = bytes[name - names];
        return out;
    }
    if (c != 'u' || end - *at < 4) {
        *out++ = c;
        return out;
    }
    high = hex4(*at);
    *at += 4;
    if (high < 0xd800 || high > 0xdfff)
        return put_utf8(out, high);
    if (high < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        low = hex4(*at + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *at += 6;
            return put_utf8(out, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    return put_utf8(out, 0xfffd);
}

static void read_string(reader *r)
{
    const char *from, *end;
    size_t size;
    luaL_Buffer buffer;
    char *start, *out;

    if (!span_string(r, &from, &size)) {
        lua_pushlstring(r->L, from, size);
        return;
    }
    end = from + size;
    start = out = luaL_buffinitsize(r->L, &buffer, size); /* decoding never grows */
    while (from < end) {
        const char *slash = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((slash ? slash : end) - from);
        memcpy(out, from, plain);
        out += plain;
        from += plain;
        if (slash) {
            from++;
            out = put_escape(out, &from, end);
        }
    }
    luaL_pushresultsize(&buffer, (size_t)(out - start));
}

/* 1 for an integer that L has no number for: it stays as it is written. Numbers of LuaJIT
 * are doubles, and there are none of more than 2^53 whose neighbours are numbers too. */
static int is_inexact(const char *text, size_t size)
{
#if LUA_VERSION_NUM >= 503
    (void)text, (void)size;
    return 0;
#else
    static const char greatest[] = "9007199254740992";
    size_t digits = sizeof greatest - 1;
    for (size_t i = 0; i < size; i++)
        if (memchr(".eE", text[i], 3))
            return 0;
    if (*text == '-')
        text++, size--;
    return size > digits || (size == digits && memcmp(text, greatest, digits) > 0);
#endif
}

/* Copies the span of a number into a buffer with a NUL, for Lua's own reader, which
 * handles another decimal point of the host. */
static void read_number(reader *r)
{
    char small[64];
    const char *from = r->at;
    size_t size;

    while (r->at < r->end &&
           (strchr("+-.eE", *r->at) || (*r->at >= '0' && *r->at <= '9')) && *r->at)
        r->at++;
    size = (size_t)(r->at - from);
    if (size == 0)
        malformed(r);
    if (is_inexact(from, size)) {
        lua_json_verbatim(r->L, from, size);
        return;
    }
    if (size < sizeof small) {
        memcpy(small, from, size);
        small[size] = 0;
        if (lua_stringtonumber(r->L, small) != size + 1)
            malformed(r);
        return;
    }
    lua_pushlstring(r->L, from, size);
    if (lua_stringtonumber(r->L, lua_tostring(r->L, -1)) == size + 1) {
        lua_remove(r->L, -2);
    } else {
        /* Lua's reader fails for more than 200 digits under another decimal point. */
        lua_pushnumber(r->L, strtod(lua_tostring(r->L, -1), NULL));
        lua_remove(r->L, -2);
    }
}

static void read_word(reader *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        malformed(r);
    r->at += size;
}

static void read_value(reader *r);

static void read_array(reader *r)
{
    lua_Integer i = 0;
    lua_newtable(r->L);
    expect(r, '[');
    if (peek(r) != ']') {
        for (;;) {
            read_value(r);
            lua_rawseti(r->L, -2, ++i);
            if (peek(r) != ',')
                break;
            r->at++;
        }
    }
    expect(r, ']');
    lua_json_mark_array(r->L, -1);
}

static void read_object(reader *r)
{
    lua_newtable(r->L);
    expect(r, '{');
    if (peek(r) != '}') {
        for (;;) {
            peek(r);
            read_string(r);
            expect(r, ':');
            read_value(r);
            lua_rawset(r->L, -3);
            if (peek(r) != ',')
                break;
            r->at++;
        }
    }
    expect(r, '}');
}

static void read_value(reader *r)
{
    if (++r->depth > LUA_JSON_DEPTH)
        luaL_error(r->L, "JSON is nested deeper than %d", LUA_JSON_DEPTH);
    luaL_checkstack(r->L, 6, "JSON is nested too deep");
    switch (peek(r)) {
    case '{':
        read_object(r);
        break;
    case '[':
        read_array(r);
        break;
    case '"':
        read_string(r);
        break;
    case 't':
        read_word(r, "true");
        lua_pushboolean(r->L, 1);
        break;
    case 'f':
        read_word(r, "false");
        lua_pushboolean(r->L, 0);
        break;
    case 'n':
        read_word(r, "null");
        lua_pushlightuserdata(r->L, NULL);
        break;
    default:
        read_number(r);
    }
    r->depth--;
}

void lua_json_push(lua_State *L, const char *text, size_t size)
{
    reader r = {L, text, text + size, 0};
    read_value(&r);
}

/* Skips a value without parsing it: only strings can contain a bracket as text. */
static void skip_value(reader *r)
{
    const char *from;
    size_t size, open = 0;
    do {
        switch (peek(r)) {
        case '"':
            span_string(r, &from, &size);
            break;
        case '{':
        case '[':
            open++;
            r->at++;
            break;
        case '}':
        case ']':
            if (open == 0)
                malformed(r);
            open--;
            r->at++;
            break;
        case 0:
            malformed(r);
            break;
        default:
            r->at++;
            while (r->at < r->end && !strchr(",:[]{}\"", *r->at))
                r->at++;
        }
    } while (open > 0);
}

void lua_json_push_member(lua_State *L, const char *text, size_t size, const char *name)
{
    reader r = {L, text, text + size, 0};
    size_t length = strlen(name);

    luaL_checkstack(L, 4, NULL);
    if (peek(&r) != '{') {
        lua_pushnil(L);
        return;
    }
    r.at++;
    while (peek(&r) == '"') {
        const char *key = r.at;
        size_t key_size;
        int same;
        if (span_string(&r, &key, &key_size)) {
            reader again = {L, key - 1, r.at, 0};
            read_string(&again);
            key = lua_tolstring(L, -1, &key_size);
            same = key_size == length && memcmp(key, name, length) == 0;
            lua_pop(L, 1);
        } else {
            same = key_size == length && memcmp(key, name, length) == 0;
        }
        expect(&r, ':');
        if (same) {
            read_value(&r);
            return;
        }
        skip_value(&r);
        if (peek(&r) != ',')
            break;
        r.at++;
    }
    lua_pushnil(L);
}
