/*
 * rows.c: structs of the engine as tables and tables as structs, by descriptors of their
 * members; and the blocks that calls of the engine allocate.
 *
 * A block belongs to a guard before anything is pushed: a Lua error frees it.
 */
#include <stdint.h>
#include "binding.h"
#include "policy/lua_json.h"

static int64_t integer_at(const struct binding_field *field, const void *member)
{
    return field->size == sizeof(int64_t)   ? *(const int64_t *)member
           : field->size == sizeof(int32_t) ? *(const int32_t *)member
                                            : *(const unsigned char *)member;
}

static void set_field(lua_State *L, const struct binding_field *field, const void *member)
{
    const char *name = field->name;
    const sessile_slice *slice = member;
    int64_t number;
    switch (field->kind) {
    case BINDING_INTEGER:
    case BINDING_COUNT:
        binding_set_integer(L, name, integer_at(field, member));
        break;
    case BINDING_TIME:
        binding_set_time(L, name, *(const int64_t *)member);
        break;
    case BINDING_INDEX:
        binding_set_integer(L, name, integer_at(field, member) + 1);
        break;
    case BINDING_BOOLEAN:
        binding_set_boolean(L, name, *(const int *)member);
        break;
    case BINDING_NUMBER:
        lua_pushnumber(L, *(const double *)member);
        lua_setfield(L, -2, name);
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
    case BINDING_CHARS:
        binding_set_text(L, name, member);
        break;
    case BINDING_SLICE:
        binding_set_slice(L, name, *slice);
        break;
    case BINDING_STRING:
        binding_push_slice(L, *slice);
        lua_setfield(L, -2, name);
        break;
    case BINDING_JSON:
        if (slice->size) {
            lua_json_push(L, slice->data, slice->size);
            lua_setfield(L, -2, name);
        }
        break;
    case BINDING_ROLE:
        number = integer_at(field, member);
        if (number != SESSILE_ROLE_NONE)
            binding_set_text(L, name, sessile_role_name((sessile_role)number));
        break;
    case BINDING_STATUS:
        number = integer_at(field, member);
        if (number)
            binding_set_status(L, name, (sessile_status)number);
        break;
    case BINDING_NAME:
        number = integer_at(field, member);
        for (int i = 0; field->names[i]; i++)
            if (i == number)
                binding_set_text(L, name, field->names[i]);
        break;
    }
}

void binding_set_fields(lua_State *L, const struct binding_field *fields, const void *row)
{
    for (; fields->name; fields++)
        set_field(L, fields, (const char *)row + fields->offset);
}

static void get_field(lua_State *L, int table, const struct binding_field *field,
                      void *member)
{
    const char *name = field->name;
    uint64_t number = 0;
    switch (field->kind) {
    case BINDING_NUMBER:
        binding_raw_field(L, table, name);
        *(double *)member = luaL_checknumber(L, -1);
        lua_pop(L, 1);
        return;
    case BINDING_BOOLEAN:
        *(int *)member = binding_field_boolean(L, table, name);
        return;
    case BINDING_ID:
        *(sessile_id *)member = binding_field_id(L, table, name);
        return;
    case BINDING_TEXT:
        *(const char **)member = binding_field_string(L, table, name);
        return;
    case BINDING_SLICE:
        *(sessile_slice *)member = binding_field_bytes(L, table, name);
        return;
    case BINDING_COUNT:
        number = binding_field_count(
            L, table, name, field->size == sizeof number ? UINT64_MAX : UINT32_MAX);
        break;
    case BINDING_ROLE:
        number = (uint64_t)binding_field_role(L, table, name);
        break;
    case BINDING_NAME:
        number = (uint64_t)binding_one_of(L, table, name, field->names);
        break;
    default:
        number = (uint64_t)binding_field_integer(L, table, name, 0);
    }
    if (field->size == sizeof number)
        *(uint64_t *)member = number;
    else
        *(uint32_t *)member = (uint32_t)number;
}

void binding_get_fields(lua_State *L, int table, const struct binding_field *fields,
                        void *out)
{
    for (; fields->name && lua_istable(L, table); fields++) {
        if (binding_raw_field(L, table, fields->name) != LUA_TNIL)
            get_field(L, table, fields, (char *)out + fields->offset);
        lua_pop(L, 1);
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
    binding_set_status(L, "code", why->code);
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
    int failed = binding_result_failed(L, result, rows);
    if (failed)
        return failed;
    binding_push_rows(L, type, rows, result->count);
    return binding_result_done(result);
}

int binding_result_row(lua_State *L, struct binding_result *result,
                       const struct binding_row *type, void *row)
{
    int failed = binding_result_failed(L, result, row);
    if (failed)
        return failed;
    if (row)
        binding_push_row(L, type, row);
    else
        lua_pushboolean(L, 0);
    return binding_result_done(result);
}

int binding_result_messages(lua_State *L, struct binding_result *result,
                            sessile_message *list)
{
    int failed = binding_result_failed(L, result, list);
    if (failed)
        return failed;
    binding_push_messages(L, list, result->count);
    return binding_result_done(result);
}

int binding_result_ids(lua_State *L, struct binding_result *result, sessile_id *ids)
{
    int failed = binding_result_failed(L, result, ids);
    if (failed)
        return failed;
    lua_createtable(L, result->count < INT32_MAX ? (int)result->count : 0, 0);
    for (size_t i = 0; i < result->count; i++) {
        binding_push_id(L, ids[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    return binding_result_done(result);
}

int binding_result_text(lua_State *L, struct binding_result *result, char *text)
{
    int failed = binding_result_failed(L, result, text);
    if (failed)
        return failed;
    lua_pushlstring(L, text ? text : "", result->count);
    return binding_result_done(result);
}

int binding_result_object(lua_State *L, struct binding_result *result, const char *class,
                          char *json)
{
    int failed = binding_result_failed(L, result, json);
    if (failed)
        return failed;
    binding_push_object(L, class, json, result->count);
    return binding_result_done(result);
}

int binding_stepped(lua_State *L, sessile_status status, const struct binding_row *type,
                    const void *state, const sessile_error *err)
{
    if (status && status != SESSILE_NEEDS)
        return binding_fail(L, err);
    lua_pushboolean(L, status == SESSILE_OK);
    binding_push_row(L, type, state);
    return 2;
}
