/*
 * fuzz_json.c: json_check, the walk over checked text, and the Lua reader and writer.
 *
 * Holds: what is accepted is accepted again and stays the same bytes; every value can be
 * stepped over and walked into, and ends where it says; strings decode to UTF-8 and are
 * written so that they decode to the same; the Lua reader takes all checked text, and
 * what Lua writes is checked text that Lua writes once more as the same bytes. Given
 * unchecked text the Lua reader may refuse, and reads nothing beyond it.
 */
#include "fuzz/fuzz.h"

#include <string.h>
#include <lauxlib.h>

#include "base/text.h"
#include "codec/json.h"
#include "policy/lua_json.h"

#define DEPTH 64

static const char *const words[] = {"{\"",
                                    "\":",
                                    "\"}",
                                    "[[",
                                    "]]",
                                    "null",
                                    "true",
                                    "false",
                                    "\\u0000",
                                    "\\ud800",
                                    "\\udc00",
                                    "\\ud83d\\ude00",
                                    "1e400",
                                    "-0",
                                    "0.1",
                                    "9007199254740993",
                                    "18446744073709551616",
                                    "\xf0\x9f\x98\x80",
                                    "\xed\xa0\x80",
                                    NULL};

const fuzz_about fuzz_this = {"json", 120000, 1 << 14, words};

static void walk(json value, int depth)
{
    json_iter it = json_begin(value);
    buf text, again, back_text;
    FUZZ_CHECK(depth <= DEPTH);
    if (value.type == JSON_STRING) {
        const char *plain;
        size_t size;
        buf_init(&text, &allocator_default);
        buf_init(&again, &allocator_default);
        FUZZ_CHECK(json_string(&text, value) == 0 && !text.failed);
        FUZZ_CHECK(utf8_valid(text.data, text.size));
        if (json_plain(value, &plain, &size)) {
            FUZZ_CHECK(size == text.size &&
                       (size == 0 || !memcmp(plain, text.data, size)));
        }
        json_put_string(&again, text.data ? text.data : "", text.size);
        json back = json_of(again.data, again.size);
        FUZZ_CHECK(back.type == JSON_STRING && back.size == again.size);
        buf_init(&back_text, &allocator_default);
        FUZZ_CHECK(json_string(&back_text, back) == 0 && back_text.size == text.size);
        FUZZ_CHECK(text.size == 0 || !memcmp(back_text.data, text.data, text.size));
        buf_deinit(&back_text);
        buf_deinit(&text);
        buf_deinit(&again);
        return;
    }
    if (value.type == JSON_NUMBER) {
        int64_t i;
        uint64_t u;
        if (json_int(value, &i) == 0 && i >= 0)
            FUZZ_CHECK(json_uint(value, &u) == 0 && u == (uint64_t)i);
        return;
    }
    if (value.type != JSON_ARRAY && value.type != JSON_OBJECT) {
        FUZZ_CHECK(!json_next(&it));
        return;
    }
    const char *last = value.at + 1;
    while (json_next(&it)) {
        FUZZ_CHECK(it.value.type != JSON_NONE && it.value.at > value.at);
        FUZZ_CHECK(it.value.at + it.value.size < value.at + value.size);
        if (value.type == JSON_OBJECT) {
            FUZZ_CHECK(it.key.type == JSON_STRING && it.key.at >= last);
            FUZZ_CHECK(it.key.at + it.key.size + 1 == it.value.at);
            walk(it.key, depth + 1);
        }
        last = it.value.at + it.value.size;
        walk(it.value, depth + 1);
    }
    FUZZ_CHECK(last + 1 == value.at + value.size);
}

static int push(lua_State *L)
{
    lua_json_push(L, lua_touserdata(L, 1), (size_t)lua_tointeger(L, 2));
    return 1;
}

/* The value of a text on the stack, 1; 0: refused. */
static int read_text(lua_State *L, const char *text, size_t size)
{
    lua_pushcfunction(L, push);
    lua_pushlightuserdata(L, (void *)(uintptr_t)text);
    lua_pushinteger(L, (lua_Integer)size);
    return lua_pcall(L, 2, 1, 0) == LUA_OK;
}

static void through_lua(lua_State *L, const buf *checked)
{
    buf same;
    size_t size, once_size;
    FUZZ_CHECK(read_text(L, checked->data, checked->size));
    if (!lua_json_text(L, 1, 0, 1 << 20))
        return; /* 1e400 is no number of Lua's: it says so */
    const char *once = lua_tolstring(L, 2, &once_size);
    buf_init(&same, &allocator_default);
    FUZZ_CHECK(json_check(&same, once, once_size, DEPTH, NULL) == SESSILE_OK);
    FUZZ_CHECK(same.size == once_size && memcmp(same.data, once, once_size) == 0);
    buf_deinit(&same);
    FUZZ_CHECK(read_text(L, once, once_size));
    FUZZ_CHECK(lua_json_text(L, 3, 0, 1 << 20));
    const char *twice = lua_tolstring(L, 4, &size);
    FUZZ_CHECK(size == once_size && memcmp(once, twice, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    buf out, again;
    sessile_error err;
    if (!L) {
        L = luaL_newstate();
        FUZZ_CHECK(L != NULL);
        lua_json_open(L);
    }
    lua_settop(L, 0);
    (void)read_text(L, (const char *)data, size);
    lua_settop(L, 0);

    buf_init(&out, &allocator_default);
    buf_init(&again, &allocator_default);
    buf_puts(&out, "before");
    sessile_status status = json_check(&out, (const char *)data, size, DEPTH, &err);
    FUZZ_CHECK(memcmp(out.data, "before", 6) == 0);
    if (status) {
        FUZZ_CHECK(out.size == 6);
        FUZZ_CHECK(status == SESSILE_INVALID || status == SESSILE_LIMIT);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    } else {
        memmove(out.data, out.data + 6, out.size - 6);
        out.size -= 6;
        FUZZ_CHECK(out.size > 0 && out.size <= size && utf8_valid(out.data, out.size));
        FUZZ_CHECK(json_check(&again, out.data, out.size, DEPTH, &err) == SESSILE_OK);
        FUZZ_CHECK(again.size == out.size && !memcmp(again.data, out.data, out.size));
        json root = json_of(out.data, out.size);
        FUZZ_CHECK(root.at == out.data && root.size == out.size);
        walk(root, 0);
        through_lua(L, &out);
    }
    buf_deinit(&out);
    buf_deinit(&again);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        " [ 1 , 2.50e-7 , -0 , true ] ",
        "{\"role\":\"user\",\"content\":\"h\\u00e9\\ud83d\\ude00\\n\",\"n\":[1,{\"a\":"
        "null}]}",
        "\"\\ud800 alone \\\" \\\\ \\/ \xc3\xa9\"",
        "9007199254740993",
        "{\"a\":{\"b\":[[[[[[[]]]]]]]},\"a\":1}",
        "[1e308,1e400,0.1,123456789012345678901]"};
    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}
