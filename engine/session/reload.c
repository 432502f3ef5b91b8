/*
 * reload.c: a handle's fold made anew, when what it was made from is not to be had.
 *
 * There are two reasons. A block of the index is bad: then the log's lines are folded
 * from the first to the last that is known, and the index is given up. Or another log
 * stands under the name, because it was sealed anew or salvaged: then that one is opened.
 * Either way a second fold is made beside the first, which is put in its place when it
 * agrees with what this handle has shown, and dropped with an error when it does not: a
 * handle must never change its mind about an entry in silence.
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
static sessile_status agree(const sessile_session *s, sessile_session *t,
                            sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    char shown[NAME_SHOWN];

    name_show((sessile_slice){s->id, s->id_size}, shown);
    if (s->created_ms != t->created_ms ||
        memcmp(s->nonce, t->nonce, sizeof s->nonce) != 0)
        return fail(err, SESSILE_NOTFOUND,
                    "session %s was removed, and another one was made under its name: "
                    "resume that one",
                    shown);
    for (size_t id = 0; id < s->node_count; id++) {
        size_t block = id / LOG_BLOCK;
        if (block < s->absent_blocks && s->absent[block] && id)
            continue;
        if (id < t->node_count)
            status = session_reach_locked(t, (sessile_id)id, err);
        if (status)
            return status;
        if (id >= t->node_count || !same_entry(&s->nodes[id], &t->nodes[id]))
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

static void trade(sessile_session *s, sessile_session *t)
{
    SWAP(nodes);
    SWAP(node_count);
    SWAP(node_capacity);
    SWAP(child_links);
    SWAP(child_link_count);
    SWAP(child_link_capacity);
    SWAP(links);
    SWAP(link_count);
    SWAP(link_capacity);
    SWAP(absent);
    SWAP(absent_blocks);
    SWAP(absent_count);
    SWAP(snapshots);
    SWAP(snapshot_first);
    SWAP(snapshot_count);
    SWAP(snapshot_capacity);
    SWAP(takes_snapshots);
    SWAP(restored);
    SWAP(parts);
    SWAP(part_count);
    SWAP(part_capacity);
    SWAP(head);
    SWAP(facts);
    SWAP(usage);
    SWAP(title);
    SWAP(title_size);
    SWAP(modified_ms);
    SWAP(model);
    SWAP(last_refusal);
    SWAP(last_fallback_refusal);
    s->blocks_taken++;
    s->current_stale = 1;
    meter_forget(s);
    atomic_store(&s->unit, -1);
    s->index_failed = 0;
}

static int same_names(sessile_session *t, const sessile_session *s)
{
    const allocator *a = &s->store->alloc;

    t->id = mem_dup(a, s->id, s->id_size);
    t->agent = mem_dup(a, s->agent, s->agent_size);
    t->user = mem_dup(a, s->user, s->user_size);
    t->id_size = s->id_size;
    t->agent_size = s->agent_size;
    t->user_size = s->user_size;
    return t->id && t->agent && t->user;
}

/* Another log under the name; or the same, from its lines. */
static sessile_status open_again(sessile_session *s, sessile_session *t, int fresh,
                                 sessile_error *err)
{
    session_names names = {
        {s->id, s->id_size}, {s->agent, s->agent_size}, {s->user, s->user_size}};
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_status status;

    names_place(s->store, &names, folder, name);
    status = session_scan(t, folder, name, fresh, err);
    if (!status)
        status = agree(s, t, err);
    if (status)
        return status;
    log_t *old = s->log;
    log_outlive(t->log, old);
    __atomic_store_n(&s->log, t->log, __ATOMIC_RELEASE); /* a sync reads it */
    log_keep(s->log, session_index_callbacks(s, 0));
    log_set_stop(s->log, session_interrupted_locked, s);
    t->log = NULL;
    trade(s, t);
    if (s->base >= s->node_count)
        s->base = s->head;
    return SESSILE_OK;
}

/* The same log, from its lines. */
static sessile_status fold_again(sessile_session *s, sessile_session *t,
                                 sessile_error *err)
{
    fold f = {.s = t};
    sessile_status status;

    t->log = s->log;
    t->current_stale = 1;
    status = log_rescan(s->log, fold_visit, &f, err);
    if (status)
        goto out;
    fold_forget_parts(t);
    status = agree(s, t, err);
    if (!status && (t->node_count != s->node_count || t->head != s->head))
        status = fail(err, SESSILE_CONFLICT,
                      "its lines are not what its index has said: resume the session");
    if (status) {
        s->broken = 1;
        (void)log_index_drop(s->log, 0, NULL);
        goto out;
    }
    trade(s, t);
    s->restored = 0;
    log_index_try(s->log);
out:
    t->log = NULL;
    return status;
}

/* A second fold beside the first. *moved: its log can be read no more, since another one
 * has taken its name meanwhile. */
static sessile_status reload_once(sessile_session *s, int *moved, sessile_error *err)
{
    sessile_status status;
    sessile_session *t = session_blank(s->store);

    *moved = 0;
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

sessile_status session_reload_locked(sessile_session *s, sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    sessile_status status;
    int moved;

    err = err ? err : &local;
    error_clear(err);
    s->index_failed = 0;
    status = reload_once(s, &moved, err);
    if (moved) {
        error_clear(err);
        status = reload_once(s, &moved, err);
    }
    return session_named(s, status, err);
}
