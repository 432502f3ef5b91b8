/*
 * screen.c: from the name of a screen to a screen of a list.
 *
 * The file is run once to read its table. Owns what that table may contain. Must never
 * run a file that somebody else can have written: who can change a screen can switch it
 * off.
 */
#include "policy/screen.h"

#include <string.h>
#include <lauxlib.h>

#include "codec/json.h"
#include "codec/message.h"
#include "policy/describe.h"
#include "policy/load.h"
#include "policy/lua_json.h"
#include "policy/options.h"

#define MEMORY_MAX ((uint64_t)32 << 20)
#define JSON_DEPTH 128

/* A file that is being read. */
typedef struct reading {
    const loader *l;
    const inspected *at;
    screen *out;
    options_offer *offer;
    int64_t version;
    sessile_status status;
    sessile_error *err;
} reading;

/* ------------------------------------------------------------------ its table */

static int get(lua_State *L, const char *field)
{
    lua_pushstring(L, field);
    return lua_rawget(L, 2);
}

static void check_fields(lua_State *L)
{
    static const char *const fields[] = {"name",     "version", "about",  "on",
                                         "patterns", "options", "action", "on_error",
                                         "always",   "rules",   "screen"};
    size_t count = sizeof fields / sizeof *fields, i;

    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        for (i = 0; i < count && strcmp(key, fields[i]) != 0; i++)
            ;
        if (i == count)
            luaL_error(
                L,
                "a screen has name, version, about, on, patterns, options, action, "
                "on_error, always, rules and screen, not '%s'",
                key);
    }
}

/* Copies a name: of the screen, of a rule. */
static void take_name(lua_State *L, const char *what, char out[PATTERN_NAME_MAX + 1])
{
    size_t size;
    const char *name =
        lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &size) : NULL;
    if (!name || !pattern_name_valid(name, size))
        luaL_error(L, "%s is 1 to %d letters, digits, _ and -", what, PATTERN_NAME_MAX);
    memcpy(out, name, size + 1);
    lua_pop(L, 1);
}

static void read_name(lua_State *L, const reading *r)
{
    if (get(L, "name") == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushstring(L, r->at->c->stem);
    }
    take_name(L, "the name of a screen", r->out->name);
}

/* One of `on`: "memory", "message:tool". */
static void read_kind(lua_State *L, screen *out)
{
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    const char *colon = strchr(text, ':');
    char name[24];
    size_t size = colon ? (size_t)(colon - text) : strlen(text);
    sessile_screen_kind kind;
    unsigned role;

    memcpy(name, text, size < sizeof name ? size : 0);
    name[size < sizeof name ? size : 0] = 0;
    kind = screen_kind_of(name);
    if (!kind || (colon && kind != SESSILE_SCREEN_MESSAGE))
        luaL_error(L,
                   "on is a list of message (or message:ROLE), custom, title, metadata, "
                   "settings, state, memory and answer, not of '%s'",
                   text);
    out->kinds |= (unsigned)kind;
    if (kind != SESSILE_SCREEN_MESSAGE)
        return;
    if (!colon) {
        out->roles = ~0u;
        return;
    }
    for (role = 1; role < 32 && role_name((sessile_role)role); role++) {
        if (strcmp(role_name((sessile_role)role), colon + 1) == 0) {
            out->roles |= 1u << role;
            return;
        }
    }
    luaL_error(L, "on: there is no role '%s'", colon + 1);
}

static void read_kinds(lua_State *L, screen *out)
{
    lua_Integer i;
    int type = get(L, "on");

    if (type == LUA_TNIL) {
        out->kinds = SESSILE_SCREEN_MEMORY | SESSILE_SCREEN_STATE;
    } else if (type != LUA_TTABLE || !lua_rawlen(L, -1)) {
        luaL_error(L, "on is a list of kinds, as {\"memory\", \"state\"}");
    } else {
        for (i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
            read_kind(L, out);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void read_patterns(lua_State *L, reading *r)
{
    const allocator *a = &r->l->p->alloc;
    int type = get(L, "patterns"), list = lua_gettop(L);
    sessile_error why;
    lua_Integer i;

    if (type == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (type != LUA_TTABLE)
        luaL_error(L, "patterns is a table {name = expression, …}");
    if (pattern_set_new(&r->out->patterns, a, &why))
        luaL_error(L, "%s", why.message);
    lua_json_keys(L, list);
    for (i = 1; lua_rawgeti(L, list + 1, i) != LUA_TNIL; i++) {
        sessile_slice expression = {NULL, 0};
        const char *name = lua_tostring(L, -1);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, list) == LUA_TSTRING)
            expression.data = lua_tolstring(L, -1, &expression.size);
        else
            luaL_error(L, "patterns.%s is a string, got %s", name, luaL_typename(L, -1));
        if (pattern_set_add(r->out->patterns, name, expression, &why))
            luaL_error(L, "%s", why.message);
        lua_pop(L, 2);
    }
    lua_settop(L, list - 1);
    pattern_set_ready(r->out->patterns);
}

static sessile_screen_verdict read_verdict(lua_State *L, const char *field, int least,
                                           const char *choice)
{
    int verdict = SESSILE_SCREEN_REFUSE;
    if (get(L, field) != LUA_TNIL) {
        verdict =
            lua_type(L, -1) == LUA_TSTRING ? screen_verdict_of(lua_tostring(L, -1)) : -1;
        if (verdict < least ||
            (verdict == SESSILE_SCREEN_REDACT && strcmp(field, "on_error") == 0))
            luaL_error(L, "%s is %s", field, choice);
    }
    lua_pop(L, 1);
    return (sessile_screen_verdict)verdict;
}

static void read_rules(lua_State *L, screen *out)
{
    lua_Integer i;
    int type = get(L, "rules");

    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "rules is a list of names");
    for (i = 1; type == LUA_TTABLE && lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (out->rule_count >= SCREEN_RULES)
            luaL_error(L, "a screen has at most %d rules", SCREEN_RULES);
        take_name(L, "a rule", out->rules[out->rule_count++]);
    }
    lua_pop(L, type == LUA_TTABLE ? 2 : 1);
}

/* Reads the table of the file; leaves the effective options as JSON. */
static int read_table(lua_State *L)
{
    reading *r = lua_touserdata(L, 1);
    const source *c = r->at->c;
    screen *out = r->out;
    int has_function, is_integer;

    pattern_set_free(out->patterns); /* of a run that wanted a file to be loaded first */
    memset(out, 0, sizeof *out);
    describe_run(L, c->text.data + c->skip, c->text.size - c->skip, c->file, r->l->p,
                 r->at->node);
    check_fields(L);
    read_name(L, r);
    if (get(L, "version") != LUA_TNIL) {
        r->version = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer)
            return luaL_error(L, "version is an integer, got %s", luaL_typename(L, -1));
    }
    lua_pop(L, 1);
    read_kinds(L, out);
    read_patterns(L, r);
    read_rules(L, out);
    out->action = read_verdict(L, "action", SESSILE_SCREEN_FLAG,
                               "\"flag\", \"redact\" or \"refuse\"");
    out->on_error =
        read_verdict(L, "on_error", SESSILE_SCREEN_FLAG, "\"refuse\" or \"flag\"");
    get(L, "always");
    out->always = lua_toboolean(L, -1);
    has_function = get(L, "screen") == LUA_TFUNCTION;
    if (!has_function && !lua_isnil(L, -1))
        return luaL_error(L, "screen is a function, got %s", luaL_typename(L, -1));
    if (!has_function && (!out->patterns || out->always))
        return luaL_error(L, out->always ? "always is for a screen with a function"
                                         : "a screen has patterns or a function");
    if (!has_function)
        out->function.run = NULL;
    else
        out->function.run = screen_script_run;
    if (has_function && !out->patterns)
        out->always = 1;
    lua_settop(L, 2);
    get(L, "options");
    r->status = options_resolve(L, 3, r->offer, r->err);
    if (!r->status)
        r->status = options_check_used(L, r->offer, r->err);
    return r->status ? 0 : 1;
}

/* ------------------------------------------------------------------ loading */

static void script_release(void *ref)
{
    struct screen_script *script = ref;
    allocator a = script->alloc;
    policy_release(script->chain);
    mem_free(&a, script, sizeof *script);
}

/* Gives the screen its function. The chain is then the script's. */
static sessile_status make_function(screen *s, sessile_policy *chain, int verbose,
                                    sessile_error *err)
{
    struct screen_script *script = mem_zalloc(&chain->alloc, sizeof *script);
    sessile_status status = script ? chain_warm(chain, err) : fail_nomem(err);

    if (status) {
        if (script)
            mem_free(&chain->alloc, script, sizeof *script);
        return status;
    }
    *script = (struct screen_script){chain, verbose, chain->alloc};
    s->function.ref = script;
    s->function.release = script_release;
    return SESSILE_OK;
}

static sessile_status read_file(loader *l, source *c, const sessile_screen_step *step,
                                screen *out, sessile_error *err)
{
    lua_State *L = l->vm->L;
    options_offer offer = {.json = "{}", .size = 2, .who = step->name, .kind = "screen"};
    inspected at = {c, l->nodes++, NULL, 0, NULL};
    reading r = {l, &at, out, &offer, 0, SESSILE_OK, err};
    sessile_status status = SESSILE_OK;
    buf options, facts;

    buf_init(&options, &l->p->alloc);
    buf_init(&facts, &l->p->alloc);
    at.facts = &facts;
    if (step->options) {
        status =
            json_check(&options, step->options, strlen(step->options), JSON_DEPTH, err);
        if (!status && json_of(options.data, options.size).type != JSON_OBJECT)
            status = fail(err, SESSILE_INVALID, "the options are no JSON object");
        if (status)
            fail_prefix(err, "screen %s", step->name);
        offer.json = options.data;
        offer.size = options.size;
    }
    if (!status)
        status = load_inspect(l, &at, read_table, &r, 1, err);
    if (!status)
        status = r.status;
    if (!status)
        status =
            chain_add_source(l->p, c, out->name, r.version, lua_tostring(L, -1), err);
    buf_deinit(&facts);
    buf_deinit(&options);
    return status;
}

/* A screen from its file, not in a list yet. */
static sessile_status make_screen(screen *out, const sessile_screen_step *step, loader *l,
                                  int verbose, sessile_error *err)
{
    source c;
    sessile_status status;

    source_init(&c, &l->p->alloc);
    c.kind = "screen";
    status = source_read(&c, &l->place, step->name, "", err);
    if (!status && c.foreign)
        status = fail(err, SESSILE_DENIED,
                      "the screen %s %s: read it, then copy it or chmod go-w it",
                      c.path.data, c.foreign);
    if (!status)
        status = read_file(l, &c, step, out, err);
    if (!status && out->function.run)
        status = make_function(out, l->p, verbose, err);
    source_deinit(&c);
    if (!status && step->on) {
        out->kinds = step->on;
        out->roles = 0;
    }
    return status;
}

sessile_status screen_load(sessile_screens *list, const sessile_screen_step *step,
                           const char *folders, int verbose, const os_table *os,
                           sessile_error *err)
{
    static const policy_limits limits = {
        .gas = SCREEN_GAS, .ms = SCREEN_MS, .memory = MEMORY_MAX, .result = 65536};
    const allocator *a = screens_allocator(list);
    loader l = {.place = {os, a, folders ? folders : ""}};
    screen *made = mem_zalloc(a, sizeof *made);
    sessile_status status = made ? chain_new(&l.p, &limits, os, a, err) : fail_nomem(err);

    if (!status)
        status = vm_new(&l.vm, &limits, os, a, err);
    if (!status)
        status = make_screen(made, step, &l, verbose, err);
    vm_free(l.vm);
    if (!status)
        status = screens_add(list, made, err);
    if (status && made) {
        pattern_set_free(made->patterns);
        if (made->function.release) { /* the chain is its */
            made->function.release(made->function.ref);
            l.p = NULL;
        }
    } else if (made && made->function.ref) {
        l.p = NULL;
    }
    policy_release(l.p);
    mem_free(a, made, sizeof *made);
    return status;
}
