/*
 * authorize.c: the rule of a guard: its file, read once, and its function, asked for each
 * call.
 *
 * Owns what the function is shown, and what its results mean. Must never allow a call
 * after any failure, or put what a script raised, which can be a name, into an answer.
 */
#include "policy/authorize.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>

#include "policy/chunk.h"
#include "policy/describe.h"
#include "policy/load.h"
#include "policy/lua_json.h"
#include "screen/pattern.h"

#define MEMORY_MAX ((uint64_t)32 << 20)

_Static_assert(AUTHORIZE_NAME == PATTERN_NAME_MAX, "rules have the names of patterns");

/* ------------------------------------------------------------------ the question */

static void set_text(lua_State *L, const char *field, sessile_slice text)
{
    if (!text.size)
        return;
    vm_charge_work(L, text.size);
    lua_pushlstring(L, text.data, text.size);
    lua_setfield(L, -2, field);
}

static void set_boolean(lua_State *L, const char *field, int value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, field);
}

static void set_texts(lua_State *L, const char *field, const sessile_slice *list,
                      size_t count)
{
    vm_charge(L, count);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        vm_charge_work(L, list[i].size);
        lua_pushlstring(L, list[i].size ? list[i].data : "", list[i].size);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, field);
}

/* What a view leaves out it has of the one that it was made from. */
static void push_who(lua_State *L, const principal *p)
{
    const principal *roles = p, *agents;

    while (roles->parent && !roles->role_count)
        roles = roles->parent;
    for (agents = p; agents->parent && (agents->is_granted || !agents->agent_count);)
        agents = agents->parent;
    lua_createtable(L, 0, 10);
    set_text(L, "user", p->user);
    set_text(L, "actor", p->actor);
    set_text(L, "session", p->session);
    set_text(L, "key", p->key);
    set_text(L, "method", p->method);
    set_text(L, "source", p->source);
    set_text(L, "device", p->device);
    set_texts(L, "roles", roles->roles, roles->role_count);
    set_texts(L, "agents", agents->agents, agents->agent_count);
    set_boolean(L, "all", p->all);
    lua_json_freeze(L, -1);
}

static void push_operation(lua_State *L, const authorize_question *question)
{
    const char *fields[] = {"permission", "also"};
    int n = 0;

    lua_createtable(L, 0, 4);
    set_text(L, "name", question->operation);
    for (unsigned i = 0; i < SESSILE_PERMISSION_COUNT && n < 2; i++) {
        if (!(question->need >> i & 1))
            continue;
        lua_pushstring(L, permission_name((sessile_permission)i));
        lua_setfield(L, -2, fields[n++]);
    }
    set_boolean(L, "changes", question->changes);
    lua_json_freeze(L, -1);
}

static void push_names(lua_State *L, const guard_names *names)
{
    lua_createtable(L, 0, 4);
    set_text(L, "agent", names->agent);
    set_text(L, "user", names->user);
    set_text(L, "id", names->id);
}

static void push_object(lua_State *L, const authorize_question *question)
{
    push_names(L, question->of);
    if (question->made) {
        push_names(L, question->made);
        lua_setfield(L, -2, "made");
    }
    lua_json_freeze(L, -1);
}

/* ------------------------------------------------------------------ asked */

typedef struct asking {
    sessile_policy *chain;
    const authorize_question *question;
    authorize_answer *answer;
} asking;

/* The two results at the top. */
static void read_answer(lua_State *L, authorize_answer *answer)
{
    size_t size = 0;
    const char *name =
        lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &size) : NULL;

    if (!lua_isboolean(L, -2))
        snprintf(answer->why, sizeof answer->why,
                 "its first result is true or false, got %s", luaL_typename(L, -2));
    else if (lua_toboolean(L, -2))
        answer->allows = 1;
    else if (name && pattern_name_valid(name, size))
        memcpy(answer->name, name, size + 1);
    else if (!lua_isnil(L, -1))
        snprintf(answer->why, sizeof answer->why,
                 "its second result is no name of a rule: 1 to %d letters, digits, _ "
                 "and -",
                 AUTHORIZE_NAME);
}

static int call_rule(lua_State *L)
{
    const asking *a = lua_touserdata(L, 1);

    chunk_push_function(L, a->chain, 0, "authorize");
    push_who(L, a->question->who);
    push_operation(L, a->question);
    push_object(L, a->question);
    lua_call(L, 3, 2);
    read_answer(L, a->answer);
    return 0;
}

static void ask(void *ref, const authorize_question *question, authorize_answer *answer)
{
    sessile_policy *chain = ref;
    asking a = {chain, question, answer};
    sessile_error why;
    vm *v;

    if (chain_take_vm(chain, &v, &why)) {
        snprintf(answer->why, sizeof answer->why, "%.*s", AUTHORIZE_WHY - 1, why.message);
        return;
    }
    vm_enter(v);
    if (vm_call(v, call_rule, &a, 0, chain->steps[0].file, &why) != LUA_OK) {
        memset(answer, 0, sizeof *answer); /* also of one that came too late */
        if (v->spent || v->starved)
            snprintf(answer->why, sizeof answer->why, "%.*s", AUTHORIZE_WHY - 1,
                     why.message);
        else
            snprintf(answer->why, sizeof answer->why, "%s: it raised an error",
                     v->where[0] ? v->where : "it");
    }
    vm_leave(v);
    chain_return_vm(chain, v);
}

/* ------------------------------------------------------------------ loading */

typedef struct reading {
    const loader *l;
    const inspected *at;
} reading;

/* Checks the table of the file; leaves its version. */
static int read_table(lua_State *L)
{
    static const char *const fields[] = {"name", "version", "about", "authorize"};
    const reading *r = lua_touserdata(L, 1);
    const source *c = r->at->c;
    size_t count = sizeof fields / sizeof *fields, i;

    describe_run(L, c->text.data + c->skip, c->text.size - c->skip, c->file, r->l->p,
                 r->at->node);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        for (i = 0; i < count && strcmp(key, fields[i]) != 0; i++)
            ;
        if (i == count)
            return luaL_error(L, "it has name, version, about and authorize, not '%s'",
                              key);
    }
    lua_pushliteral(L, "authorize");
    if (lua_rawget(L, 2) != LUA_TFUNCTION)
        return luaL_error(L, "authorize is a function, got %s", luaL_typename(L, -1));
    return 0;
}

static sessile_status read_rule(loader *l, source *c, const char *path,
                                sessile_error *err)
{
    inspected at = {c, l->nodes++, NULL, 0, NULL};
    reading r = {l, &at};
    sessile_status status = source_read_path(c, &l->place, path, err);
    buf facts;

    if (status)
        return status;
    if (c->foreign)
        return fail(err, SESSILE_DENIED,
                    "the rule %s %s: read it, then copy it or chmod go-w it",
                    c->path.data, c->foreign);
    buf_init(&facts, &l->p->alloc);
    at.facts = &facts;
    status = load_inspect(l, &at, read_table, &r, 0, err);
    buf_deinit(&facts);
    if (!status)
        status = chain_add_source(l->p, c, c->stem, 0, "{}", err);
    return status ? status : chain_warm(l->p, err);
}

static void release(void *ref)
{
    policy_release(ref);
}

sessile_status authorize_load(authorize_rule *out, const char *path, const os_table *os,
                              sessile_error *err)
{
    static const policy_limits limits = {
        .gas = AUTHORIZE_GAS, .ms = AUTHORIZE_MS, .memory = MEMORY_MAX, .result = 65536};
    const allocator *a = &allocator_default;
    loader l = {.place = {os, a, ""}};
    sessile_status status = chain_new(&l.p, &limits, os, a, err);
    source c;

    if (status)
        return status;
    source_init(&c, a);
    c.kind = "rule";
    status = vm_new(&l.vm, &limits, os, a, err);
    if (!status)
        status = read_rule(&l, &c, path, err);
    vm_free(l.vm);
    source_deinit(&c);
    if (status) {
        policy_release(l.p);
        return status;
    }
    *out = (authorize_rule){l.p, ask, release};
    return SESSILE_OK;
}
