/*
 * records.c: sessions over records that the host keeps: lists of strings in and out.
 *
 * Who asks the host for them, and what it means that it says no, is
 * lua/sessile/adapter.lua: a host's function may yield, and nothing can be yielded across
 * C.
 */
#include <string.h>
#include <time.h>
#include "binding.h"

/* open_records(options as for open) -> store; nil, message, code */
int binding_open_records(lua_State *L)
{
    sessile_store_options options;
    struct binding_store *store;
    sessile_error err;
    lua_settop(L, 1);
    binding_store_options(L, 1, &options);
    binding_counter(L, 1, &options);
    store = binding_new(L, sizeof *store, 2, BINDING_STORE);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 1);
    if (sessile_open_records(&store->handle, &options, &err)) {
        store->closed = 1;
        return binding_fail(L, &err);
    }
    return 1;
}

/* store:open_over({id, …}, {record, …}) -> session; nil, message, code. No records: a new
 * session. */
int binding_store_open_over(lua_State *L, struct binding_store *store)
{
    sessile_session_options options;
    sessile_slice *records;
    sessile_error err;
    size_t count;
    records = binding_records(L, 3, &count);
    struct binding_session *made = binding_session_new(L, 2, &options);
    if (!made)
        return 3;
    return binding_session_made(L, made, store,
                                sessile_records_open(&made->handle, store->handle,
                                                     &options, records, count, &err),
                                &err);
}

sessile_slice *binding_records(lua_State *L, int index, size_t *count)
{
    sessile_slice *list;
    size_t i, n;
    luaL_checktype(L, index, LUA_TTABLE);
    n = (size_t)lua_rawlen(L, index);
    luaL_argcheck(L, n < SIZE_MAX / sizeof *list, index, "too many records");
    list = lua_newuserdatauv(L, n ? n * sizeof *list : 1, 0);
    for (i = 0; i < n; i++) {
        /* a string that the table holds stays where it is */
        if (lua_rawgeti(L, index, (lua_Integer)(i + 1)) != LUA_TSTRING)
            binding_misuse(L, "record %d is no string", (int)(i + 1));
        list[i].data = lua_tolstring(L, -1, &list[i].size);
        lua_pop(L, 1);
    }
    *count = n;
    return list;
}

/* session:records(from) -> the records after the first `from`, as a list */
int binding_session_records(lua_State *L, struct binding_session *session)
{
    lua_Integer from = luaL_optinteger(L, 2, 0);
    sessile_slice *rows = NULL;
    size_t i;
    luaL_argcheck(L, from >= 0, 2, "a count expected");
    struct binding_result got = binding_result(L);
    got.status = sessile_records_read(session->handle, (uint64_t)from, &rows, &got.count,
                                      &got.err);
    int failed = binding_result_failed(L, &got, rows);
    if (failed)
        return failed;
    lua_createtable(L, got.count < INT32_MAX ? (int)got.count : 0, 0);
    for (i = 0; i < got.count; i++) {
        binding_push_slice(L, rows[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    return binding_result_done(&got);
}

/* now() -> milliseconds since 1970 */
int binding_now(lua_State *L)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    lua_pushinteger(L, (lua_Integer)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    return 1;
}
