/*
 * load_require.c: finds and inspects the files that policies require, while a chain is
 * loaded.
 *
 * A file is run to inspect it. When it requires a name that is not loaded yet, that
 * file is found and inspected in the same way, and the first one is run again. Owns
 * the mapping from names to files. Must never run a foreign file here, follow a path
 * out of the folder of the file that contains the name, or accept a cycle.
 */
#include "policy/load.h"

#include <string.h>
#include <lauxlib.h>
#include "base/text.h"
#include "policy/chunk.h"
#include "policy/describe.h"

void load_folder(const source *c, buf *out)
{
    size_t size = (size_t)(c->file - c->path.data);
    if (size == 0)
        buf_putc(out, '.');
    else if (size == 1)
        buf_putc(out, '/');
    else
        buf_put(out, c->path.data, size - 1);
}

/* ------------------------------------------------------------------ names */

/* Appends the files from the chain's to this one: "a.lua -> b.lua". */
static void put_way(buf *out, const inspected *at)
{
    const inspected *files[CHAIN_REQUIRE_DEPTH + 2];
    size_t n = 0;
    for (; at && n < sizeof files / sizeof *files; at = at->outer)
        files[n++] = at;
    while (n-- > 0)
        buf_printf(out, "%s%s", files[n]->c->file, n ? " -> " : "");
}

/* Adds to the front of err's sentence which files led here. */
static sessile_status on_the_way(const loader *l, const inspected *at,
                                 sessile_status status, sessile_error *err)
{
    buf way;
    if (!status || status == SESSILE_NOMEM)
        return status;
    buf_init(&way, l->place.alloc);
    put_way(&way, at);
    if (!way.failed)
        fail_prefix(err, "%s", way.data);
    buf_deinit(&way);
    return status;
}

/* Checks a name, or a path below the folder of the file. */
static sessile_status check_name(const char *name, sessile_error *err)
{
    const char *part = name;
    size_t i, size = strlen(name);

    for (i = 0; i < size; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return fail(err, SESSILE_POLICY,
                        "require: a name holds no control characters");
    }
    if (!utf8_valid(name, size))
        return fail(err, SESSILE_POLICY, "require: a name is UTF-8");
    if (strncmp(name, "./", 2) == 0)
        part += 2;
    while (strchr(name, '/')) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length <= 2 && strncmp(part, "..", length) == 0))
            return fail(err, SESSILE_DENIED,
                        "require '%s': a policy requires what lies in its own folder, or "
                        "below, or where policies are inspected for",
                        name);
        if (!part[length])
            break;
        part += length + 1;
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ one required file */

static int is_same(const source *c, const source *other)
{
    return c->device == other->device && c->inode == other->inode;
}

static sessile_status check_circle(const loader *l, const inspected *from,
                                   const source *c, sessile_error *err)
{
    const inspected *at;
    sessile_status status;
    buf way;

    for (at = from; at && !is_same(at->c, c); at = at->outer)
        ;
    if (!at)
        return SESSILE_OK;
    buf_init(&way, l->place.alloc);
    put_way(&way, from);
    status =
        way.failed
            ? fail_nomem(err)
            : fail(err, SESSILE_POLICY,
                   "%s -> %s: a policy cannot require itself, nor one that requires it",
                   way.data, c->file);
    buf_deinit(&way);
    return status;
}

/* Adds a file to the chain before it is inspected; counted before it is filled. */
static sessile_status add_file(loader *l, const source *c, unsigned node,
                               sessile_error *err)
{
    sessile_policy *p = l->p;
    const allocator *a = &p->alloc;
    size_t bytes = c->text.size, i;
    chain_required *r;

    for (i = 0; i < p->required_count; i++)
        bytes += p->required[i].source_size;
    if (p->required_count >= CHAIN_REQUIRED)
        return fail(err, SESSILE_LIMIT, "a chain's policies require at most %d files",
                    CHAIN_REQUIRED);
    if (bytes > CHAIN_REQUIRED_BYTES)
        return fail(err, SESSILE_LIMIT,
                    "what a chain's policies require is larger than %d bytes",
                    CHAIN_REQUIRED_BYTES);
    r = &p->required[p->required_count++];
    r->node = node;
    r->device = c->device;
    r->inode = c->inode;
    r->skip = c->skip;
    r->file = mem_dup(a, c->file, strlen(c->file));
    r->source = mem_dup(a, c->text.data, c->text.size);
    if (r->source)
        r->source_size = c->text.size;
    return r->file && r->source ? SESSILE_OK : fail_nomem(err);
}

/* Runs a required file once: it must return a table, with any contents. */
static int see_table(lua_State *L)
{
    const loader *l = ((void **)lua_touserdata(L, 1))[0];
    const inspected *at = ((void **)lua_touserdata(L, 1))[1];
    const source *c = at->c;

    if (at->facts->size)
        return 0;
    describe_run(L, c->text.data + c->skip, c->text.size - c->skip, c->file, l->p,
                 at->node);
    return 0;
}

/* Inspects a new file, and adds it. */
static sessile_status inspect_file(loader *l, const inspected *from, const source *c,
                                   size_t *index, sessile_error *err)
{
    sessile_slice text = {c->text.data, c->text.size};
    unsigned depth = 0;
    const inspected *up;
    sessile_status status;
    chain_required *r;
    buf facts;

    for (up = from; up; up = up->outer)
        depth++;
    if (depth > CHAIN_REQUIRE_DEPTH)
        return on_the_way(l, from,
                          fail(err, SESSILE_LIMIT,
                               "policies require each other deeper than %d",
                               CHAIN_REQUIRE_DEPTH),
                          err);
    buf_init(&facts, &l->p->alloc);
    inspected at = {c, l->nodes++, from, c->foreign != NULL, &facts};
    void *arg[2] = {l, &at};
    status = load_inspect(l, &at, see_table, arg, 0, err);
    buf_deinit(&facts);
    if (status)
        return status;
    *index = l->p->required_count;
    status = on_the_way(l, from, add_file(l, c, at.node, err), err);
    if (status)
        return status;
    r = &l->p->required[*index];
    r->foreign = at.foreign;
    return chain_hash(l->p, at.node, text, r->hash, err);
}

/* Adds a name by which a file requires another. */
static sessile_status add_edge(loader *l, inspected *from, const char *name, size_t to,
                               sessile_error *err)
{
    sessile_policy *p = l->p;
    chain_require *edge;

    if (p->require_count >= CHAIN_REQUIRES)
        return fail(err, SESSILE_LIMIT, "%s: a chain's policies require at most %d times",
                    from->c->file, CHAIN_REQUIRES);
    edge = &p->requires[p->require_count];
    edge->name = mem_dup(&p->alloc, name, strlen(name));
    if (!edge->name)
        return fail_nomem(err);
    edge->node = from->node;
    edge->to = to;
    p->require_count++;
    from->foreign |= p->required[to].foreign;
    return SESSILE_OK;
}

/* Finds the file of a name in another file; it may be in the chain already. */
static sessile_status find_required(loader *l, const inspected *from, const char *name,
                                    size_t *index, sessile_error *err)
{
    const sessile_policy *p = l->p;
    sessile_status status;
    buf folder;
    source c;

    source_init(&c, &p->alloc);
    buf_init(&folder, &p->alloc);
    load_folder(from->c, &folder);
    status = folder.failed ? fail_nomem(err) : check_name(name, err);
    if (!status)
        status = source_read(&c, &l->place, name, folder.data, err);
    status = on_the_way(l, from, status, err);
    if (!status)
        status = check_circle(l, from, &c, err);
    for (*index = 0; *index < p->required_count; ++*index)
        if (p->required[*index].device == c.device &&
            p->required[*index].inode == c.inode)
            break;
    if (!status && *index == p->required_count)
        status = inspect_file(l, from, &c, index, err);
    buf_deinit(&folder);
    source_deinit(&c);
    return status;
}

/* Adds the missing file that a file requires. */
static sessile_status add_wanted(loader *l, inspected *from, sessile_error *err)
{
    char name[CHAIN_NAME];
    sessile_status status;
    size_t index;

    memcpy(name, l->wanted, sizeof name); /* inspecting more files overwrites it */
    if (chunk_find_require(l->p, from->node, name)) /* it has been answered */
        return fail(err, SESSILE_POLICY, "the policy's process sent what is no answer");
    status = find_required(l, from, name, &index, err);
    if (!status)
        status = add_edge(l, from, name, index, err);
    return status;
}

/* ------------------------------------------------------------------ looking */

/* Inspects a foreign file in the worker. */
static sessile_status look_from_afar(loader *l, const inspected *at, sessile_error *err)
{
    const source *c = at->c;
    worker_question q = {c->file,
                         {c->text.data + c->skip, c->text.size - c->skip},
                         l->p,
                         at->node,
                         l->wanted};
    sessile_error why = {0};

    l->p->is_foreign = 1;
    if (!l->worker && l->program &&
        worker_start(&l->worker, l->program, l->place.os, l->place.alloc, &why) ==
            SESSILE_NOMEM)
        return fail_nomem(err);
    if (!l->worker)
        return fail(err, SESSILE_DENIED,
                    "the policy %s %s, so it would run in a process of its own%s%s: read "
                    "it, then copy it or chmod go-w it",
                    c->path.data,
                    c->foreign ? c->foreign : "requires one that is not yours alone",
                    why.message[0] ? ", and " : "", why.message);
    return worker_describe(l->worker, &q, at->facts, err);
}

sessile_status load_inspect(loader *l, inspected *at, lua_CFunction inspect, void *arg,
                            int results, sessile_error *err)
{
    int top = lua_gettop(l->vm->L);
    sessile_status status;

    for (;;) {
        status = SESSILE_OK;
        l->wanted[0] = 0;
        buf_clear(at->facts);
        if (at->foreign)
            status = look_from_afar(l, at, err);
        if (!status && !l->wanted[0]) {
            vm_enter(l->vm);
            l->vm->wanted = l->wanted;
            if (vm_call(l->vm, inspect, arg, results, at->c->file, err) != LUA_OK)
                status = l->vm->starved ? SESSILE_NOMEM : SESSILE_POLICY;
            vm_leave(l->vm);
        }
        if (!l->wanted[0] || status == SESSILE_NOMEM || l->vm->spent)
            return at->outer ? on_the_way(l, at->outer, status, err) : status;
        lua_settop(l->vm->L, top);
        status = add_wanted(l, at, err);
        if (status)
            return status;
    }
}
