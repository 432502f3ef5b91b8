/*
 * rows.c: structs of the engine as tables, by descriptors of their members; and the
 * blocks that calls of the engine allocate.
 *
 * A block belongs to a guard before anything is pushed: a Lua error frees it.
 */
#include <stdint.h>
#include "binding.h"
#include "policy/lua_json.h"

void binding_set_fields(lua_State *L, const struct binding_field *fields, const void *row)
{
    for (; fields->name; fields++) {
        const void *member = (const char *)row + fields->offset;
        const char *name = fields->name;
        switch (fields->kind) {
        case BINDING_INTEGER:
            binding_set_integer(L, name,
                                fields->size == sizeof(int64_t)
                                    ? *(const int64_t *)member
                                    : *(const int32_t *)member);
            break;
        case BINDING_TIME:
            binding_set_time(L, name, *(const int64_t *)member);
            break;
        case BINDING_BOOLEAN:
            binding_set_boolean(L, name, *(const int *)member);
            break;
        case BINDING_ID:
            binding_set_id(L, name, *(const sessile_id *)member);
            break;
        case BINDING_KEY:
            binding_set_key(L, name, *(const sessile_key *)member);
            break;
        case BINDING_TEXT:
            binding_set_text(L, name, *(const char *const *)member);
            break;
        case BINDING_SLICE:
            binding_set_slice(L, name, *(const sessile_slice *)member);
            break;
        case BINDING_STRING:
            binding_push_slice(L, *(const sessile_slice *)member);
            lua_setfield(L, -2, name);
            break;
        case BINDING_JSON: {
            const sessile_slice *json = member;
            if (json->size) {
                lua_json_push(L, json->data, json->size);
                lua_setfield(L, -2, name);
            }
            break;
        }
        }
    }
}

void binding_push_row(lua_State *L, const struct binding_row *type, const void *row)
{
    lua_createtable(L, 0, 16);
    binding_set_fields(L, type->fields, row);
    if (type->more)
        type->more(L, row);
}

void binding_push_rows(lua_State *L, const struct binding_row *type, const void *rows,
                       size_t count)
{
    luaL_checkstack(L, 8, "rows");
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (size_t i = 0; i < count; i++) {
        binding_push_row(L, type, (const char *)rows + i * type->size);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
}

void binding_set_failure(lua_State *L, const char *log, const sessile_error *why)
{
    if (!log)
        return;
    lua_createtable(L, 0, 3);
    binding_set_text(L, "log", log);
    binding_set_text(L, "message", why->message);
    lua_pushfstring(L, "E%s", sessile_status_name(why->code));
    lua_setfield(L, -2, "code");
    lua_setfield(L, -2, "failure");
}

struct binding_result binding_result(lua_State *L)
{
    struct binding_result result = {0};
    result.guard = binding_guard(L);
    return result;
}

int binding_result_failed(lua_State *L, struct binding_result *result, void *block)
{
    result->guard->block = block;
    return result->status ? binding_fail(L, &result->err) : 0;
}

int binding_result_done(struct binding_result *result)
{
    binding_guard_free(result->guard);
    return 1;
}

int binding_result_rows(lua_State *L, struct binding_result *result,
                        const struct binding_row *type, void *rows)
{
    if (binding_result_failed(L, result, rows))
        return 3;
    binding_push_rows(L, type, rows, result->count);
    return binding_result_done(result);
}
