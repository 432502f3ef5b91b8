/*
 * simfs.c: a file system in memory that can lose its power.
 *
 * Owns two states of every file and folder: what is read now (live), and what is durable
 * (base), and the list of changes that lead from the one to the other. Must never apply a
 * change to base that nobody has synced, nor know what the files mean.
 */
#include "support/simfs_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR  512u
#define NOWHERE SIMFS_NOWHERE

const char simfs_letters[SIMFS_FATES + 1] = "-+tdzhe";

/* ---------------------------------------------------------------------- memory */

void *simfs_must(void *block)
{
    if (!block)
        abort();
    return block;
}

void *simfs_grown(void *list, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return list;
    *capacity = count * 2 + 8;
    return simfs_must(realloc(list, *capacity * size));
}

static void bytes_resize(bytes *b, size_t size)
{
    b->data = simfs_grown(b->data, &b->capacity, size + 1, 1);
    if (size > b->size)
        memset(b->data + b->size, 0, size - b->size);
    b->size = size;
}

void simfs_bytes_put(bytes *b, uint64_t offset, const char *data, size_t size)
{
    if (size == 0)
        return;
    if (offset + size > b->size)
        bytes_resize(b, (size_t)offset + size);
    memcpy(b->data + offset, data, size);
}

static bytes bytes_copy(const bytes *b)
{
    bytes copy = {NULL, 0, 0};
    simfs_bytes_put(&copy, 0, b->data, b->size);
    return copy;
}

static size_t name_find(const names *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++)
        if (strcmp(in->list[i].name, name) == 0)
            return i;
    return NOWHERE;
}

size_t simfs_name_get(const names *in, const char *name)
{
    size_t at = name_find(in, name);
    return at == NOWHERE ? NOWHERE : in->list[at].node;
}

static void name_set(names *in, const char *name, size_t node)
{
    size_t at = name_find(in, name);
    if (at != NOWHERE) {
        in->list[at].node = node;
        return;
    }
    in->list = simfs_grown(in->list, &in->capacity, in->count + 1, sizeof *in->list);
    in->list[in->count++] = (named){simfs_must(strdup(name)), node};
}

static void name_drop(names *in, const char *name)
{
    size_t at = name_find(in, name);
    if (at == NOWHERE)
        return;
    free(in->list[at].name);
    memmove(in->list + at, in->list + at + 1, (in->count - at - 1) * sizeof *in->list);
    in->count--;
}

names simfs_names_copy(const names *in)
{
    names copy = {NULL, 0, 0};
    for (size_t i = 0; i < in->count; i++)
        name_set(&copy, in->list[i].name, in->list[i].node);
    return copy;
}

void simfs_names_free(names *in)
{
    for (size_t i = 0; i < in->count; i++)
        free(in->list[i].name);
    free(in->list);
}

static void op_free(op *o)
{
    free(o->data.data);
    free(o->name);
    free(o->from);
}

size_t simfs_node_new(simfs *fs, int is_dir)
{
    fs->nodes =
        simfs_grown(fs->nodes, &fs->node_capacity, fs->node_count + 1, sizeof *fs->nodes);
    node *n = &fs->nodes[fs->node_count];
    memset(n, 0, sizeof *n);
    n->is_dir = is_dir;
    n->mtime = n->base_mtime = fs->now_ms;
    return fs->node_count++;
}

/* ---------------------------------------------------------------------- changes */

/* Seeds decide by splitmix64, as everywhere in the tests. */
static uint64_t next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The sectors first..last (of those the write touches) into b, no further than its end.
 */
static void put_sectors(bytes *b, const op *o, uint64_t sector)
{
    uint64_t from = sector * SECTOR, to = from + SECTOR;
    uint64_t end = o->offset + o->data.size;
    from = from < o->offset ? o->offset : from;
    to = to > end ? end : to;
    to = to > b->size ? b->size : to;
    if (from < to)
        memcpy(b->data + from, o->data.data + (from - o->offset), (size_t)(to - from));
}

static void apply_torn(bytes *b, const op *o, simfs_fate fate, uint64_t *seed)
{
    uint64_t first = o->offset / SECTOR;
    uint64_t end = o->offset + o->data.size, past = (end + SECTOR - 1) / SECTOR;
    uint64_t cut = first + next(seed) % (past - first);
    uint64_t size = end;
    int any = fate == SIMFS_TORN;
    if (fate == SIMFS_HEAD)
        size = cut * SECTOR > o->offset ? cut * SECTOR : o->offset;
    if (fate == SIMFS_DATA || (any && next(seed) % 2 == 0))
        size = 0;
    if (size > b->size)
        bytes_resize(b, (size_t)size);
    for (uint64_t i = first; i < past && fate != SIMFS_SIZE; i++) {
        int there = any                  ? next(seed) % 2 == 0
                    : fate == SIMFS_HEAD ? i < cut
                    : fate == SIMFS_TAIL ? i > cut || cut + 1 == past
                                         : 1;
        if (there)
            put_sectors(b, o, i);
    }
}

/* One change, on the bytes or the names that it is about. */
static void apply(bytes *b, names *in, const op *o, simfs_fate fate, uint64_t *seed)
{
    if (fate == SIMFS_LOST)
        return;
    switch (o->kind) {
    case OP_WRITE:
        if (fate == SIMFS_WHOLE || o->data.size == 0)
            simfs_bytes_put(b, o->offset, o->data.data, o->data.size);
        else
            apply_torn(b, o, fate, seed);
        break;
    case OP_TRUNCATE:
        bytes_resize(b, (size_t)o->offset);
        break;
    case OP_RENAME:
        name_drop(in, o->from);
        name_set(in, o->name, o->target);
        break;
    case OP_LINK:
        name_set(in, o->name, o->target);
        break;
    case OP_UNLINK:
        name_drop(in, o->name);
        break;
    }
}

/* Makes a change live, and pending. Takes what it points to. */
void simfs_change(simfs *fs, op o)
{
    node *n = &fs->nodes[o.node];
    apply(&n->live, &n->live_names, &o, SIMFS_WHOLE, NULL);
    n->mtime = fs->now_ms;
    fs->ops = simfs_grown(fs->ops, &fs->op_capacity, fs->op_count + 1, sizeof *fs->ops);
    fs->ops[fs->op_count++] = o;
}

/* A sync of a node: its changes are durable, or doomed. */
void simfs_sync_node(simfs *fs, size_t at, int fails)
{
    node *n = &fs->nodes[at];
    size_t kept = 0;
    int behind_doomed = 0;
    for (size_t i = 0; i < fs->op_count; i++) {
        op *o = &fs->ops[i];
        if (o->node == at) {
            if (fails && !o->durable)
                o->doomed = 1;
            if (!fails && !o->doomed)
                o->durable = 1;
            behind_doomed |= o->doomed;
            if (!behind_doomed) {
                apply(&n->base, &n->base_names, o, SIMFS_WHOLE, NULL);
                op_free(o);
                continue;
            }
        }
        fs->ops[kept++] = *o;
    }
    fs->op_count = kept;
    if (!fails)
        n->base_mtime = n->mtime;
}

static const op *pending_op(const simfs *fs, size_t i)
{
    for (size_t at = 0; at < fs->op_count; at++)
        if (!fs->ops[at].durable && i-- == 0)
            return &fs->ops[at];
    abort();
}

size_t simfs_pending(const simfs *fs)
{
    size_t count = 0;
    for (size_t i = 0; i < fs->op_count; i++)
        count += !fs->ops[i].durable;
    return count;
}

int simfs_is_write(const simfs *fs, size_t i)
{
    return pending_op(fs, i)->kind == OP_WRITE;
}

/* Some name of a node, for messages. */
static const char *name_of(const simfs *fs, size_t at)
{
    for (size_t i = 0; i < fs->node_count; i++)
        for (size_t k = 0; k < fs->nodes[i].live_names.count; k++)
            if (fs->nodes[i].live_names.list[k].node == at)
                return fs->nodes[i].live_names.list[k].name;
    return at == 0 ? "/" : "(no name)";
}

void simfs_describe(const simfs *fs, size_t i, char *out, size_t size)
{
    const op *o = pending_op(fs, i);
    const char *in = name_of(fs, o->node), *doomed = o->doomed ? " (doomed)" : "";
    switch (o->kind) {
    case OP_WRITE:
        snprintf(out, size, "write %s %llu+%zu%s", in, (unsigned long long)o->offset,
                 o->data.size, doomed);
        break;
    case OP_TRUNCATE:
        snprintf(out, size, "truncate %s %llu%s", in, (unsigned long long)o->offset,
                 doomed);
        break;
    case OP_LINK:
        snprintf(out, size, "name %s in %s%s", o->name, in, doomed);
        break;
    case OP_UNLINK:
        snprintf(out, size, "unlink %s in %s%s", o->name, in, doomed);
        break;
    case OP_RENAME:
        snprintf(out, size, "rename %s to %s in %s%s", o->from, o->name, in, doomed);
        break;
    }
}

/* ---------------------------------------------------------------------- life and ends */

static simfs *blank(void)
{
    simfs *fs = simfs_must(calloc(1, sizeof *fs));
    fs->table = simfs_calls(fs);
    pthread_mutex_init(&fs->mutex, NULL);
    fs->syncs_until_failure = UINT64_MAX;
    return fs;
}

simfs *simfs_new(void)
{
    simfs *fs = blank();
    fs->now_ms = INT64_C(1790000000000);
    simfs_node_new(fs, 1);
    return fs;
}

void simfs_free(simfs *fs)
{
    if (!fs)
        return;
    for (size_t i = 0; i < fs->node_count; i++) {
        free(fs->nodes[i].live.data);
        free(fs->nodes[i].base.data);
        simfs_names_free(&fs->nodes[i].live_names);
        simfs_names_free(&fs->nodes[i].base_names);
    }
    for (size_t i = 0; i < fs->op_count; i++)
        op_free(&fs->ops[i]);
    free(fs->nodes);
    free(fs->ops);
    free(fs->fds);
    pthread_mutex_destroy(&fs->mutex);
    free(fs);
}

const os_table *simfs_table(simfs *fs)
{
    return &fs->table;
}

static simfs *heir(const simfs *fs)
{
    simfs *to = blank();
    to->now_ms = fs->now_ms;
    to->clock_us = fs->clock_us;
    to->nodes = simfs_must(calloc(fs->node_count, sizeof *to->nodes));
    to->node_count = to->node_capacity = fs->node_count;
    for (size_t i = 0; i < fs->node_count; i++) {
        to->nodes[i].is_dir = fs->nodes[i].is_dir;
        to->nodes[i].mtime = fs->nodes[i].mtime;
        to->nodes[i].base_mtime = fs->nodes[i].base_mtime;
        to->nodes[i].base = bytes_copy(&fs->nodes[i].base);
        to->nodes[i].base_names = simfs_names_copy(&fs->nodes[i].base_names);
    }
    return to;
}

simfs *simfs_crash(const simfs *fs, const unsigned char *fates, uint64_t seed)
{
    simfs *to = heir(fs);
    size_t at = 0;
    for (size_t i = 0; i < fs->op_count; i++) {
        const op *o = &fs->ops[i];
        simfs_fate fate = o->durable ? SIMFS_WHOLE : (simfs_fate)fates[at++];
        apply(&to->nodes[o->node].base, &to->nodes[o->node].base_names, o, fate, &seed);
    }
    for (size_t i = 0; i < to->node_count; i++) {
        node *n = &to->nodes[i];
        n->live = bytes_copy(&n->base);
        n->live_names = simfs_names_copy(&n->base_names);
        if (next(&seed) % 2)
            n->mtime = n->base_mtime;
        n->base_mtime = n->mtime;
    }
    return to;
}

simfs *simfs_kill(const simfs *fs)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)&fs->mutex; /* others may go on */
    pthread_mutex_lock(mutex);
    simfs *to = heir(fs);
    for (size_t i = 0; i < fs->node_count; i++) {
        to->nodes[i].live = bytes_copy(&fs->nodes[i].live);
        to->nodes[i].live_names = simfs_names_copy(&fs->nodes[i].live_names);
    }
    to->ops = simfs_must(calloc(fs->op_count + 1, sizeof *to->ops));
    to->op_count = fs->op_count;
    to->op_capacity = fs->op_count + 1;
    for (size_t i = 0; i < fs->op_count; i++) {
        const op *o = &fs->ops[i];
        to->ops[i] = *o;
        to->ops[i].data = bytes_copy(&o->data);
        to->ops[i].name = o->name ? simfs_must(strdup(o->name)) : NULL;
        to->ops[i].from = o->from ? simfs_must(strdup(o->from)) : NULL;
    }
    pthread_mutex_unlock(mutex);
    return to;
}

void simfs_settle(simfs *fs)
{
    for (size_t i = 0; i < fs->op_count; i++)
        fs->ops[i].doomed = 0;
    for (size_t i = 0; i < fs->node_count; i++)
        simfs_sync_node(fs, i, 0);
}

void simfs_watch(simfs *fs, simfs_watcher watcher, void *arg)
{
    pthread_mutex_lock(&fs->mutex);
    fs->watcher = watcher;
    fs->watcher_arg = arg;
    pthread_mutex_unlock(&fs->mutex);
}

void simfs_mingle(simfs *fs)
{
    fs->mingles = 1;
}

uint64_t simfs_changes(const simfs *fs)
{
    return fs->changes;
}

size_t simfs_descriptors(const simfs *fs)
{
    size_t count = 0;
    for (size_t i = 0; i < fs->fd_count; i++)
        count += fs->fds[i].used != 0;
    return count;
}

size_t simfs_locks(const simfs *fs)
{
    size_t count = 0;
    for (size_t i = 0; i < fs->fd_count; i++)
        count += fs->fds[i].used && fs->fds[i].lock != OS_LOCK_NONE;
    return count;
}

void simfs_fail_sync(simfs *fs, uint64_t nth)
{
    fs->syncs_until_failure = nth;
}

uint64_t simfs_syncs_failed(const simfs *fs)
{
    return fs->syncs_failed;
}

/* ---------------------------------------------------------------------- looking */

/* The folder of the last component, and that component (borrowed from path; "." when
 * there is none). NOWHERE and errno. */
size_t simfs_walk(const simfs *fs, size_t at, const char *path, char last[256])
{
    if (*path == '/')
        at = 0;
    strcpy(last, ".");
    for (;;) {
        while (*path == '/')
            path++;
        size_t size = strcspn(path, "/");
        if (size == 0)
            return at;
        if (size > 255) {
            errno = ENAMETOOLONG;
            return NOWHERE;
        }
        if (strcmp(last, ".") != 0) {
            at = simfs_name_get(&fs->nodes[at].live_names, last);
            if (at == NOWHERE || !fs->nodes[at].is_dir) {
                errno = at == NOWHERE ? ENOENT : ENOTDIR;
                return NOWHERE;
            }
        }
        memcpy(last, path, size);
        last[size] = '\0';
        path += size;
    }
}

static size_t node_at(const simfs *fs, const char *path)
{
    char last[256];
    size_t at = simfs_walk(fs, 0, path, last);
    if (at == NOWHERE || strcmp(last, ".") == 0)
        return at;
    return simfs_name_get(&fs->nodes[at].live_names, last);
}

char *simfs_read(const simfs *fs, const char *path, size_t *size)
{
    size_t at = node_at(fs, path);
    *size = 0;
    if (at == NOWHERE || fs->nodes[at].is_dir)
        return NULL;
    const bytes *b = &fs->nodes[at].live;
    char *copy = simfs_must(malloc(b->size + 1));
    if (b->size > 0)
        memcpy(copy, b->data, b->size);
    copy[b->size] = '\0';
    *size = b->size;
    return copy;
}

void simfs_write(simfs *fs, const char *path, const void *data, size_t size)
{
    char last[256];
    size_t at = simfs_walk(fs, 0, path, last);
    if (at == NOWHERE)
        abort();
    size_t file = simfs_name_get(&fs->nodes[at].live_names, last);
    if (file == NOWHERE) {
        file = simfs_node_new(fs, 0);
        name_set(&fs->nodes[at].live_names, last, file);
        name_set(&fs->nodes[at].base_names, last, file);
    }
    node *n = &fs->nodes[file];
    bytes_resize(&n->live, 0);
    simfs_bytes_put(&n->live, 0, data, size);
    bytes_resize(&n->base, 0);
    simfs_bytes_put(&n->base, 0, data, size);
    n->mtime = n->base_mtime = ++fs->now_ms;
}

void simfs_names(const simfs *fs, const char *path,
                 void (*visit)(void *arg, const char *name), void *arg)
{
    size_t at = node_at(fs, path);
    if (at == NOWHERE)
        return;
    names copy = simfs_names_copy(&fs->nodes[at].live_names);
    for (size_t i = 0; i < copy.count; i++)
        visit(arg, copy.list[i].name);
    simfs_names_free(&copy);
}
