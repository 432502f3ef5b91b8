/*
 * reload.c: rebuilds a handle's fold when its source is no longer available.
 *
 * There are two reasons. A block of the index is bad: then the log is folded again from
 * its lines, and the index is dropped. Or another log has taken the name, because the old
 * one was sealed again or salvaged: then that log is opened. In both cases a second fold
 * is built beside the first. It replaces the first one if it agrees with what this handle
 * has shown; otherwise the call fails: a handle must never change an entry in silence.
 */
#include "session/fold.h"

#include <inttypes.h>
#include <string.h>

/* Columns that an entry has of itself, whatever became of those before it. */
static int same_entry(const node *a, const node *b)
{
    if (b->type == ENTRY_TOMBSTONE)
        return 1; /* lost, and said so */
    return a->parent == b->parent && a->type == b->type && a->role == b->role &&
           a->flags == b->flags && a->marks == b->marks && a->tokens == b->tokens &&
           a->link_count == b->link_count && a->time_ms == b->time_ms;
}

/* Everything that s has of each entry is in t, and is there from now on. */
static sessile_status agree(const session_core *s, session_core *t, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    char shown[NAME_SHOWN];

    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    if (s->header.created_ms != t->header.created_ms ||
        memcmp(s->header.nonce, t->header.nonce, sizeof s->header.nonce) != 0)
        return fail(err, SESSILE_NOTFOUND,
                    "session %s was removed, and another one was made under its name: "
                    "resume that one",
                    shown);
    for (size_t id = 0; id < s->tree.node_count; id++) {
        size_t block = id / LOG_BLOCK;
        if (block < s->index.absent_blocks && s->index.absent[block] && id)
            continue;
        if (id < t->tree.node_count)
            status = session_load_locked(t, (sessile_id)id, err);
        if (status)
            return status;
        if (id >= t->tree.node_count ||
            !same_entry(&s->tree.nodes[id], &t->tree.nodes[id]))
            return fail(err, SESSILE_CONFLICT,
                        "session %s: entry %08zx is not what this handle has read: its "
                        "log was replaced, resume the session",
                        shown, id);
    }
    return SESSILE_OK;
}

static void swap(void *a, void *b, size_t size)
{
    unsigned char *x = a, *y = b, z;

    for (size_t i = 0; i < size; i++) {
        z = x[i];
        x[i] = y[i];
        y[i] = z;
    }
}

#define SWAP(member) swap(&s->member, &t->member, sizeof s->member)

static void trade(session_core *s, session_core *t)
{
    SWAP(tree.nodes);
    SWAP(tree.node_count);
    SWAP(tree.node_capacity);
    SWAP(tree.children);
    SWAP(tree.child_count);
    SWAP(tree.child_capacity);
    SWAP(tree.links);
    SWAP(tree.link_count);
    SWAP(tree.link_capacity);
    SWAP(index.absent);
    SWAP(index.absent_blocks);
    SWAP(index.absent_count);
    SWAP(index.snapshots);
    SWAP(index.snapshot_first);
    SWAP(index.snapshot_count);
    SWAP(index.snapshot_capacity);
    SWAP(index.takes_snapshots);
    SWAP(index.restored);
    SWAP(fold.parts);
    SWAP(fold.part_count);
    SWAP(fold.part_capacity);
    SWAP(tree.head);
    SWAP(fold.facts);
    SWAP(fold.usage);
    SWAP(fold.title);
    SWAP(fold.title_size);
    SWAP(fold.written_ms);
    SWAP(fold.said_ms);
    SWAP(fold.begun_ms);
    SWAP(counting.model);
    SWAP(refusals.last);
    SWAP(refusals.last_fallback);
    s->index.blocks_taken++;
    s->context.stale = 1;
    meter_forget(s);
    atomic_store(&s->counting.unit, -1);
    s->index.failed = 0;
}

static int same_names(session_core *t, const session_core *s)
{
    const allocator *a = t->alloc;

    t->identity.id = mem_dup(a, s->identity.id, s->identity.id_size);
    t->identity.agent = mem_dup(a, s->identity.agent, s->identity.agent_size);
    t->identity.user = mem_dup(a, s->identity.user, s->identity.user_size);
    t->identity.id_size = s->identity.id_size;
    t->identity.agent_size = s->identity.agent_size;
    t->identity.user_size = s->identity.user_size;
    return t->identity.id && t->identity.agent && t->identity.user;
}

/* Another log under the name; or the same, from its lines. */
static sessile_status open_again(session_core *s, session_core *t, int fresh,
                                 sessile_error *err)
{
    session_names names = session_own_names(s);
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_status status;

    names_place(s->store, &names, folder, name);
    status = session_scan(t, folder, name, fresh, err);
    if (!status)
        status = session_load_locked(t, t->tree.head, err);
    if (!status)
        status = agree(s, t, err);
    if (status)
        return status;
    log_t *old = s->log;
    log_close_with(t->log, old);
    __atomic_store_n(&s->log, t->log, __ATOMIC_RELEASE); /* a sync reads it */
    log_set_index_callbacks(s->log, session_index_callbacks(s, 0));
    log_set_stop(s->log, session_interrupted_locked, s);
    t->log = NULL;
    trade(s, t);
    if (s->tree.base >= s->tree.node_count)
        s->tree.base = s->tree.head;
    return SESSILE_OK;
}

/* The same log, from its lines. */
static sessile_status fold_again(session_core *s, session_core *t, sessile_error *err)
{
    fold f = {.s = t};
    sessile_status status;

    t->log = s->log;
    t->context.stale = 1;
    status = log_rescan(s->log, fold_visit, &f, err);
    if (status)
        goto out;
    fold_forget_parts(t);
    status = agree(s, t, err);
    if (!status &&
        (t->tree.node_count != s->tree.node_count || t->tree.head != s->tree.head))
        status = fail(err, SESSILE_CONFLICT,
                      "its lines are not what its index has said: resume the session");
    if (status) {
        s->fold.broken = 1;
        (void)log_index_drop(s->log, 0, NULL);
        goto out;
    }
    trade(s, t);
    s->index.restored = 0;
    log_index_try(s->log);
out:
    t->log = NULL;
    return status;
}

/* A second fold beside the first. *moved: its log can be read no more, since another one
 * has taken its name meanwhile. */
static sessile_status reload_once(session_core *s, int *moved, sessile_error *err)
{
    sessile_status status;
    session_core *t = session_blank(s->store, s);

    *moved = 0;
    if (t)
        atomic_store(&t->waiting.timeout_ms, s->waiting.call
                                                 ? session_wait_left(s, s->waiting.call)
                                                 : atomic_load(&s->waiting.timeout_ms));
    if (!t || !same_names(t, s)) {
        status = fail_nomem(err);
    } else if (log_replaced(s->log)) {
        status = open_again(s, t, 0, err);
    } else if (log_damage(s->log, NULL)) { /* what stands in for its lost entries, too */
        status = open_again(s, t, 1, err);
    } else {
        status = fold_again(s, t, err);
        *moved = status == SESSILE_NOTFOUND && log_replaced(s->log);
    }
    session_drop(t);
    return status;
}

sessile_status session_reload_locked(session_core *s, sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status;
    int moved;

    err = err ? err : &local;
    error_clear(err);
    s->index.failed = 0;
    status = reload_once(s, &moved, err);
    if (moved) {
        error_clear(err);
        status = reload_once(s, &moved, err);
    }
    return session_name_error(s, status, err);
}
