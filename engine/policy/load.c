/*
 * load.c: from names to a loaded chain.
 *
 * Each file is run once to inspect it, chains are replaced by their elements, and
 * options go to the policies that declare them. Owns the construction of a
 * sessile_policy. Must never run a file outside of the budget, or hold memory while
 * Lua runs that an error in Lua would leak.
 */
#include "policy/load.h"

#include <string.h>
#include <lauxlib.h>
#include "base/buf.h"
#include "base/text.h"
#include "codec/json.h"
#include "policy/describe.h"
#include "policy/lua_json.h"
#include "policy/options.h"
#include "session/limits.h"

#define JSON_DEPTH 128

/* ------------------------------------------------------------------ looking inside */

/* The result of inspecting a file. On OK three values are on the VM's stack: its name;
 * either its effective options as JSON, or the elements of its chain: name, JSON,
 * name, JSON…; and the elements of its fallback, or nil. */
typedef struct inspection {
    const sessile_policy *policy;
    const inspected *at;
    options_offer *offers;
    unsigned hooks;
    int64_t version;
    int is_chain;
    sessile_status status;
    sessile_error *err;
} inspection;

static int get_field(lua_State *L, int table, const char *name)
{
    lua_pushstring(L, name);
    return lua_rawget(L, table);
}

/* The hook with a similar name, or NULL; *is_one is 1 if the name is a hook. */
static const char *like_hook(const char *name, int *is_one)
{
    const char *like = NULL;
    unsigned best = 3;
    size_t i;
    for (i = 0; i < CHAIN_HOOKS; i++) {
        unsigned distance = options_distance(name, chain_hooks[i].name);
        if (distance < best) {
            best = distance;
            like = chain_hooks[i].name;
        }
    }
    *is_one = best == 0;
    return like;
}

static void push_hook_names(lua_State *L)
{
    size_t i;
    lua_pushstring(L, chain_hooks[0].name);
    for (i = 1; i < CHAIN_HOOKS; i++) {
        lua_pushfstring(L, ", %s", chain_hooks[i].name);
        lua_concat(L, 2);
    }
}

/* With a misspelt hook a policy would silently do nothing, so this is an error. A
 * function whose name is not similar to a hook is allowed if there is a hook. Of
 * several errors, the first in the file is reported. */
static void check_hook_names(lua_State *L, int table, const inspection *in)
{
    const char *wrong = NULL, *wrong_like = NULL;
    int wrong_line = 0, is_one, any = 0;

    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (lua_type(L, -2) == LUA_TSTRING && lua_isfunction(L, -1)) {
            const char *name = lua_tostring(L, -2), *like = like_hook(name, &is_one);
            int line = describe_line(L, -1);
            any |= is_one;
            if (!is_one && (!wrong || (like && !wrong_like) ||
                            (!like == !wrong_like && line < wrong_line))) {
                wrong = name;
                wrong_like = like;
                wrong_line = line;
            }
        }
        lua_pop(L, 1);
    }
    if (wrong && wrong_like)
        luaL_error(L, "%s:%d: '%s' is no hook: did you mean '%s'?", in->at->c->file,
                   wrong_line, wrong, wrong_like);
    if (wrong && !any && !in->hooks) {
        push_hook_names(L);
        luaL_error(L, "%s:%d: '%s' is no hook: there are %s", in->at->c->file, wrong_line,
                   wrong, lua_tostring(L, -1));
    }
}

static void read_hooks(lua_State *L, int table, inspection *in)
{
    size_t i;
    for (i = 0; i < CHAIN_HOOKS; i++) {
        int type = get_field(L, table, chain_hooks[i].name);
        if (type == LUA_TFUNCTION)
            in->hooks |= (unsigned)chain_hooks[i].bit;
        else if (type != LUA_TNIL)
            luaL_error(L, "%s is a function, got %s", chain_hooks[i].name,
                       luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    check_hook_names(L, table, in);
}

#define NAME_WRONG "name is 1 to 100 bytes of UTF-8 without control characters"

/* Names of policies stand in the log and in messages. */
static int name_is_text(const char *name, size_t size)
{
    if (size == 0 || size > 100 || !utf8_valid(name, size))
        return 0;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return 0;
    return 1;
}

/* Pushes the policy's own name, or the file's. */
static void push_name(lua_State *L, int table, const inspection *in)
{
    size_t size;
    const char *name;
    int type = get_field(L, table, "name");
    if (type == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushstring(L, in->at->c->stem);
        return;
    }
    if (type != LUA_TSTRING)
        luaL_error(L, "name is a string, got %s", luaL_typename(L, -1));
    name = lua_tolstring(L, -1, &size);
    if (!name_is_text(name, size))
        luaL_error(L, NAME_WRONG);
}

/* Pushes {name, JSON or false, …} for the elements of the list at `chain`, the field
 * `what`: "name" or {"name", option = …}. */
static void push_elements(lua_State *L, int chain, const char *what)
{
    size_t n = lua_istable(L, chain) ? lua_rawlen(L, chain) : 0, i;
    if (n == 0)
        luaL_error(L, "%s is a list of policies", what);
    if (n > CHAIN_STEPS)
        luaL_error(L, "%s has more than %d elements", what, CHAIN_STEPS);
    lua_newtable(L);
    for (i = 1; i <= n; i++) {
        int element = lua_gettop(L) + 1;
        lua_rawgeti(L, chain, (lua_Integer)i);
        if (lua_istable(L, element)) {
            lua_rawgeti(L, element, 1);
            lua_pushnil(L);
            lua_rawseti(L, element, 1);
            if (!lua_json_text(L, element, 0, 65536))
                luaL_error(L, "%s[%d]: %s", what, (int)i, lua_tostring(L, -1));
        } else {
            lua_pushvalue(L, element);
            lua_pushboolean(L, 0);
        }
        if (lua_type(L, element + 1) != LUA_TSTRING)
            luaL_error(L, "%s[%d] is \"name\" or {\"name\", option = …}", what, (int)i);
        lua_rawseti(L, element - 1, 2 * (lua_Integer)i);
        lua_rawseti(L, element - 1, 2 * (lua_Integer)i - 1);
        lua_settop(L, element - 1);
    }
}

static int inspect(lua_State *L)
{
    inspection *in = lua_touserdata(L, 1);
    const source *c = in->at->c;
    const buf *facts = in->at->facts;
    int is_integer;

    if (facts->size)
        describe_push(L, facts->data, facts->size);
    else
        describe_run(L, c->text.data + c->skip, c->text.size - c->skip, c->file,
                     in->policy, in->at->node);
    read_hooks(L, 2, in);
    if (get_field(L, 2, "version") != LUA_TNIL) {
        in->version = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer)
            return luaL_error(L, "version is an integer, got %s", luaL_typename(L, -1));
    }
    lua_settop(L, 2);
    push_name(L, 2, in);
    in->is_chain = get_field(L, 2, "chain") != LUA_TNIL;
    if (in->is_chain) {
        if (in->hooks)
            return luaL_error(L, "a policy has hooks or a chain, not both");
        push_elements(L, 4, "chain");
    } else {
        lua_pop(L, 1);
        get_field(L, 2, "options");
        in->status = options_resolve(L, 4, in->offers, in->err);
        if (in->status)
            return 0;
    }
    lua_remove(L, 4);
    if (get_field(L, 2, "fallback") != LUA_TNIL) {
        push_elements(L, 5, "fallback");
        lua_remove(L, 5);
    }
    return 3;
}

/* ------------------------------------------------------------------ the chain */

static sessile_status add_step(loader *l, const inspection *in, const char *name,
                               const char *options, sessile_error *err)
{
    chain_step *step = &l->p->steps[l->p->count];
    sessile_slice source;
    sessile_status status;

    if (l->p->count >= CHAIN_STEPS)
        return fail(err, SESSILE_LIMIT, "a chain has at most %d policies", CHAIN_STEPS);
    status = chain_add_source(l->p, in->at->c, name, in->version, options, err);
    if (status)
        return status;
    step->info.hooks = in->hooks;
    step->node = in->at->node;
    source.data = step->source;
    source.size = step->source_size;
    return chain_hash(l->p, step->node, source, step->info.hash, err);
}

static sessile_status load_offered(loader *l, const char *name, const char *options,
                                   const char *folder, options_offer *outer,
                                   unsigned depth, sessile_error *err);

/* The elements of a chain in c, whose list is on the VM's stack. */
static sessile_status load_chain(loader *l, const source *c, int list,
                                 options_offer *offers, unsigned depth,
                                 sessile_error *err)
{
    lua_State *L = l->vm->L;
    int top = lua_gettop(L);
    size_t n = lua_rawlen(L, list), i;
    sessile_status status = SESSILE_OK;
    buf folder;

    if (depth >= CHAIN_DEPTH)
        return fail(err, SESSILE_LIMIT, "%s: chains are nested deeper than %d", c->file,
                    CHAIN_DEPTH);
    if (!lua_checkstack(L, 30))
        return fail_nomem(err);
    buf_init(&folder, &l->p->alloc);
    load_folder(c, &folder);
    if (folder.failed)
        status = fail_nomem(err);
    for (i = 1; i < n && !status; i += 2) {
        lua_rawgeti(L, list, (lua_Integer)i);
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        status = load_offered(l, lua_tostring(L, -2),
                              lua_isstring(L, -1) ? lua_tostring(L, -1) : NULL,
                              folder.data, offers, depth + 1, err);
        lua_settop(L, top);
    }
    buf_deinit(&folder);
    return status;
}

/* The fallback that c names, a chain of its own, whose list is on the VM's stack. */
static sessile_status load_fallback(loader *l, const source *c, int list, unsigned depth,
                                    sessile_error *err)
{
    loader own = *l;
    sessile_status status;

    own.nodes = 0;
    own.is_fallback = 1;
    status = chain_new(&own.p, &l->p->limits, l->p->os, &l->p->alloc, err);
    if (!status)
        status = load_chain(&own, c, list, NULL, depth, err);
    if (!status)
        status = chain_warm(own.p, err);
    l->worker = own.worker;
    if (!status)
        l->p->fallback = own.p;
    else
        policy_release(own.p);
    return status;
}

static sessile_status load_file(loader *l, const char *name, const char *folder,
                                options_offer *offers, unsigned depth, sessile_error *err)
{
    lua_State *L = l->vm->L;
    int top = lua_gettop(L);
    source c;
    buf facts;
    inspected at = {&c, l->nodes++, NULL, 0, &facts};
    inspection in = {l->p, &at, offers, 0, 0, 0, SESSILE_OK, err};
    sessile_status status;

    source_init(&c, &l->p->alloc);
    buf_init(&facts, &l->p->alloc);
    status = source_read(&c, &l->place, name, folder, err);
    at.foreign = c.foreign != NULL;
    if (!status)
        status = load_inspect(l, &at, inspect, &in, 3, err);
    if (!status)
        status = in.status;
    /* the outermost file that names a fallback counts, and among equals the first */
    if (!status && lua_istable(L, top + 3) && !l->is_fallback && !l->p->fallback)
        status = load_fallback(l, &c, top + 3, depth, err);
    if (!status)
        status = in.is_chain ? load_chain(l, &c, top + 2, offers, depth, err)
                             : add_step(l, &in, lua_tostring(L, top + 1),
                                        lua_tostring(L, top + 2), err);
    lua_settop(L, top);
    buf_deinit(&facts);
    source_deinit(&c);
    return status;
}

typedef struct used_check {
    const options_offer *offer;
    sessile_status status;
    sessile_error *err;
} used_check;

static int check_used(lua_State *L)
{
    used_check *check = lua_touserdata(L, 1);
    check->status = options_check_used(L, check->offer, check->err);
    return 0;
}

/* Checks the JSON text of options into out. */
static sessile_status read_options(const char *name, const char *options, buf *out,
                                   sessile_error *err)
{
    sessile_status status = json_check(out, options, strlen(options), JSON_DEPTH, err);
    if (!status && json_of(out->data, out->size).type != JSON_OBJECT)
        status = fail(err, SESSILE_INVALID, "the options are no JSON object");
    if (status)
        fail_prefix(err, "policy %s", name);
    return status;
}

/* Loads a file or chain, and checks that every option given to it is declared. */
static sessile_status load_offered(loader *l, const char *name, const char *options,
                                   const char *folder, options_offer *outer,
                                   unsigned depth, sessile_error *err)
{
    options_offer offer = {.json = "{}", .size = 2, .who = name, .outer = outer};
    used_check check = {&offer, SESSILE_OK, err};
    sessile_status status = SESSILE_OK;
    buf text;

    buf_init(&text, &l->p->alloc);
    if (options) {
        status = read_options(name, options, &text, err);
        offer.json = text.data;
        offer.size = text.size;
    }
    if (!status)
        status = load_file(l, name, folder, &offer, depth, err);
    if (!status) {
        vm_enter(l->vm);
        if (vm_call(l->vm, check_used, &check, 0, name, err) != LUA_OK)
            status = l->vm->starved ? SESSILE_NOMEM : SESSILE_POLICY;
        else
            status = check.status;
        vm_leave(l->vm);
    }
    buf_deinit(&text);
    return status;
}

/* A host's own functions: only their name and options are ours. */
static sessile_status add_host(loader *l, const sessile_policy_step *from,
                               sessile_error *err)
{
    const allocator *a = &l->p->alloc;
    sessile_status status;
    chain_step *step;
    buf text;

    if (l->p->count >= CHAIN_STEPS)
        return fail(err, SESSILE_LIMIT, "a chain has at most %d policies", CHAIN_STEPS);
    if (!name_is_text(from->name, strlen(from->name)))
        return fail(err, SESSILE_INVALID, "a policy's " NAME_WRONG);
    step = &l->p->steps[l->p->count++];
    buf_init(&text, a);
    status = read_options(from->name, from->options ? from->options : "{}", &text, err);
    if (!status) {
        step->name = mem_dup(a, from->name, strlen(from->name));
        step->options = mem_dup(a, text.data, text.size);
        if (!step->name || !step->options)
            status = fail_nomem(err);
    }
    buf_deinit(&text);
    step->info.name = step->name;
    step->info.options = step->options;
    step->info.path = "";
    step->info.hooks = from->hooks;
    step->info.is_host = 1;
    return status;
}

static sessile_status load_steps(loader *l, const sessile_policy_step *steps,
                                 size_t count, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t i;
    if (count == 0)
        return fail(err, SESSILE_INVALID, "a chain names at least one policy");
    for (i = 0; i < count && !status; i++) {
        if (!steps[i].name || !steps[i].name[0])
            return fail(err, SESSILE_INVALID, "policy %zu of the chain has no name",
                        i + 1);
        status = steps[i].hooks
                     ? add_host(l, &steps[i], err)
                     : load_offered(l, steps[i].name, steps[i].options, "", NULL, 0, err);
    }
    return status;
}

static policy_limits with_defaults(const policy_limits *limits)
{
    sessile_limits all = {0};

    if (limits) {
        all.policy_gas = limits->gas;
        all.policy_ms = limits->ms;
        all.policy_memory = limits->memory;
        all.policy_result = limits->result;
    }
    limits_fill(&all);
    return (policy_limits){all.policy_gas, all.policy_ms, all.policy_memory,
                           all.policy_result};
}

sessile_status policy_load(sessile_policy **out, const sessile_policy_step *steps,
                           size_t count, const char *search_path,
                           const policy_limits *limits, const char *worker,
                           const os_table *os, const allocator *a, sessile_error *err)
{
    policy_limits all = with_defaults(limits);
    loader l = {.place = {os, a, search_path ? search_path : ""}, .program = worker};
    sessile_error unwanted;
    sessile_status status;

    *out = NULL;
    if (!err)
        err = &unwanted;
    status = chain_new(&l.p, &all, os, a, err);
    if (!status)
        status = vm_new(&l.vm, &all, os, a, err);
    if (!status)
        status = load_steps(&l, steps, count, err);
    vm_free(l.vm);
    worker_stop(l.worker);
    if (!status)
        status = chain_warm(l.p, err);
    if (!status)
        *out = l.p;
    else
        policy_release(l.p);
    return status;
}
