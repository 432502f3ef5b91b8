/*
 * screen.c: a list of screens. It belongs to no store.
 */
#include "binding.h"

#include <string.h>

#include "sessile_guard.h"

/* The names of an enum, for fields that are one of them. */
static const char *const verdicts[] = {"pass", "flag", "redact", "refuse", NULL};
static const char *const sources[] = {"host", "user", "agent", "tool", "system", NULL};

/* The kind of that name in the field `name`; raises when it is none. */
static sessile_screen_kind kind_field(lua_State *L, int table, const char *name)
{
    const char *text = binding_field_string(L, table, name);
    unsigned kind;
    for (kind = 1; text && kind <= SESSILE_SCREEN_KINDS; kind <<= 1)
        if (strcmp(sessile_screen_kind_name((sessile_screen_kind)kind), text) == 0)
            return (sessile_screen_kind)kind;
    luaL_error(L, "%s: there is no kind of items '%s'", name, text ? text : "nil");
    return (sessile_screen_kind)0;
}

#define FINDING(...) BINDING_FIELD(sessile_screen_finding, __VA_ARGS__)
static const struct binding_row finding_row =
    BINDING_ROW(sessile_screen_finding, NULL,
                BINDING_ENUM(sessile_screen_finding, "verdict", verdict, verdicts),
                FINDING("screen", TEXT, screen), FINDING("rule", TEXT, rule),
                FINDING("removed", INTEGER, removed), FINDING("message", TEXT, message),
                FINDING("pointer", TEXT, pointer));

/* The item in the table at 2. */
static void read_item(lua_State *L, sessile_screen_item *item)
{
    luaL_checktype(L, 2, LUA_TTABLE);
    memset(item, 0, sizeof *item);
    item->kind = kind_field(L, 2, "kind");
    item->source = (sessile_screen_source)binding_one_of(L, 2, "source", sources);
    item->role = binding_field_role(L, 2, "role");
    item->author = binding_field_bytes(L, 2, "author");
    item->key = binding_field_bytes(L, 2, "key");
    item->text = binding_field_bytes(L, 2, "text");
    item->is_json = binding_field_boolean(L, 2, "json");
}

/* What was said of an item, which is freed. */
static int give_outcome(lua_State *L, struct binding_result *got,
                        sessile_screen_outcome *outcome)
{
    int failed = binding_result_failed(L, got, outcome);
    if (failed)
        return failed;
    lua_createtable(L, 0, 3);
    binding_set_text(L, "verdict", sessile_screen_verdict_name(outcome->verdict));
    if (outcome->verdict == SESSILE_SCREEN_REDACT) {
        binding_push_slice(L, outcome->text);
        lua_setfield(L, -2, "text");
    }
    binding_push_rows(L, &finding_row, outcome->findings, outcome->count);
    lua_setfield(L, -2, "findings");
    return binding_result_done(got);
}

/* screens:run{kind=, text=, source=, role=, author=, key=, json=} -> {verdict=, text=,
 * findings=}; nil, message, code */
static int screens_run(lua_State *L, struct binding_child *screens)
{
    sessile_screen_outcome *outcome = NULL;
    sessile_screen_item item;

    read_item(L, &item);
    struct binding_result got = binding_result(L);
    got.status = sessile_screen(&outcome, screens->handle, &item, &got.err);
    return give_outcome(L, &got, outcome);
}

/* store:screen{…}: the same with the rules of a store. */
int binding_store_screen(lua_State *L, struct binding_store *store)
{
    sessile_screen_outcome *outcome = NULL;
    sessile_screen_item item;

    read_item(L, &item);
    struct binding_result got = binding_result(L);
    got.status = sessile_store_screen(&outcome, store->handle, &item, &got.err);
    return give_outcome(L, &got, outcome);
}

/* SESSILE_SCREEN_… bits of the kinds in a list. */
static unsigned kinds_of(lua_State *L, int table, const char *name)
{
    unsigned kinds = 0;
    int top = lua_gettop(L);
    if (binding_raw_field(L, table, name) == LUA_TTABLE) {
        int list = lua_gettop(L);
        lua_newtable(L);
        for (lua_Integer i = 1; lua_rawgeti(L, list, i) != LUA_TNIL; i++) {
            lua_setfield(L, list + 1, "kind");
            kinds |= (unsigned)kind_field(L, list + 1, "kind");
        }
    }
    lua_settop(L, top);
    return kinds;
}

void binding_write_rules(lua_State *L, int table, sessile_guard_options *out)
{
    if (binding_raw_field(L, table, "screens") != LUA_TNIL) {
        struct binding_child *screens =
            luaL_checkudata(L, -1, binding_screens_class.name);
        if (!screens->handle)
            luaL_error(L, "the list of screens is closed");
        out->screens = screens->handle;
    }
    if (binding_raw_field(L, table, "urls") == LUA_TNIL)
        return;
    int urls = lua_gettop(L);
    out->urls.refuse = kinds_of(L, urls, "refuse");
    out->urls.flag = kinds_of(L, urls, "flag");
    binding_url_options(L, urls, &out->urls.options);
}

BINDING_FREE(screens_free, sessile_screens_free)

const struct binding_child_class binding_screens_class = {
    "sessile.core.Screens", "list of screens", screens_free, {{"run", screens_run}}};

/* The screens in the list at index; what they borrow is left on the stack. */
static sessile_screen_step *get_steps(lua_State *L, int index, size_t *count)
{
    sessile_screen_step *steps;
    size_t i;

    luaL_checktype(L, index, LUA_TTABLE);
    *count = (size_t)lua_rawlen(L, index);
    luaL_checkstack(L, (int)*count + 10, NULL);
    steps = lua_newuserdatauv(L, (*count + 1) * sizeof *steps, 0);
    memset(steps, 0, (*count + 1) * sizeof *steps);
    for (i = 0; i < *count; i++) {
        sessile_slice options;
        int step, list;
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        step = lua_gettop(L);
        luaL_checktype(L, step, LUA_TTABLE);
        steps[i].name = binding_field_string(L, step, "name");
        if (binding_raw_field(L, step, "on") == LUA_TTABLE) {
            list = lua_gettop(L);
            for (lua_Integer k = 1; lua_rawgeti(L, list, k) != LUA_TNIL; k++) {
                lua_setfield(L, step, "kind");
                steps[i].on |= (unsigned)kind_field(L, step, "kind");
            }
        }
        lua_settop(L, step);
        if (binding_field_json(L, step, "options", &options))
            return NULL;
        steps[i].options = options.data;
    }
    return steps;
}

static sessile_screen_schema *get_schemas(lua_State *L, int table, size_t *count)
{
    sessile_screen_schema *schemas;
    int list;
    size_t i;

    *count = 0;
    if (binding_raw_field(L, table, "schemas") != LUA_TTABLE)
        return NULL;
    list = lua_gettop(L);
    *count = (size_t)lua_rawlen(L, list);
    schemas = lua_newuserdatauv(L, (*count + 1) * sizeof *schemas, 0);
    memset(schemas, 0, (*count + 1) * sizeof *schemas);
    for (i = 0; i < *count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        int one = lua_gettop(L);
        schemas[i].kind = kind_field(L, one, "kind");
        schemas[i].key = binding_field_string(L, one, "key");
        schemas[i].schema = binding_field_bytes(L, one, "schema");
        lua_pop(L, 1);
    }
    return schemas;
}

/* screens({{name=, options=, on=}, …}, {folders=, schemas=, schema_library=, verbose=})
 * -> screens; nil, message, code */
int binding_screens(lua_State *L)
{
    sessile_screens_options options;
    sessile_screen_step *steps;
    sessile_screens *handle;
    sessile_error err;
    size_t count;

    lua_settop(L, 2);
    sessile_screens_options_init(&options);
    options.folders = binding_field_string(L, 2, "folders");
    options.schema_library = binding_field_string(L, 2, "schema_library");
    options.verbose = binding_field_boolean(L, 2, "verbose");
    options.schemas = get_schemas(L, 2, &options.schema_count);
    steps = get_steps(L, 1, &count);
    if (!steps)
        return 3;
    struct binding_child *screens = binding_child_new(L, &binding_screens_class, NULL);
    if (sessile_screens_load(&handle, steps, count, &options, &err))
        return binding_fail(L, &err);
    return binding_child_opened(screens, handle);
}
