/*
 * tree.c: checks of an entry against the tree, and the path to it.
 *
 * Every walk first loads its path (load.c), so that no later step can fail. Must never
 * write to the fold, nor read from the log.
 */
#include "session/fold.h"

#include <inttypes.h>
#include <stdio.h>

/* The next entry from id, up or down, that is on a path; SESSILE_NO_ID: none, or it
 * cannot be told. */
static sessile_id next_path_entry(session_core *s, sessile_id id, int up)
{
    for (;;) {
        if (up ? id + 1 >= s->tree.node_count : id == 0)
            return SESSILE_NO_ID;
        id = up ? id + 1 : id - 1;
        if (session_load_locked(s, id, NULL))
            return SESSILE_NO_ID;
        if (session_is_path_entry(s, id))
            return id;
    }
}

static sessile_status not_path_entry(session_core *s, sessile_id id, sessile_error *err)
{
    char shown[NAME_SHOWN], nearest[80] = "", about[40] = "", what[60];
    int there = id < s->tree.node_count;
    sessile_id from = there ? id : (sessile_id)s->tree.node_count;
    sessile_id low = next_path_entry(s, from, 0);
    sessile_id other = there ? next_path_entry(s, from, 1)
                       : low ? next_path_entry(s, low, 0)
                             : SESSILE_NO_ID;

    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    if (low != SESSILE_NO_ID && other != SESSILE_NO_ID)
        snprintf(nearest, sizeof nearest,
                 ": the nearest that can are %08" PRIx32 " and %08" PRIx32, low, other);
    else if (low != SESSILE_NO_ID)
        snprintf(nearest, sizeof nearest, ": the nearest that can is %08" PRIx32, low);
    if (id == SESSILE_NO_ID)
        snprintf(what, sizeof what, "has no such entry");
    else
        snprintf(what, sizeof what, "has no entry %08" PRIx32, id);
    if (!there)
        return fail(err, SESSILE_NOTFOUND,
                    "session %s %s from which a conversation can continue%s", shown, what,
                    nearest);
    if (s->tree.nodes[id].parent < id)
        snprintf(about, sizeof about, " about %08" PRIx32, s->tree.nodes[id].parent);
    return fail(
        err, SESSILE_NOTFOUND,
        "entry %08" PRIx32 " of session %s is of type %s%s: a conversation cannot "
        "continue from it%s",
        id, shown, entry_type_name((entry_type)s->tree.nodes[id].type), about, nearest);
}

sessile_status session_check_at(session_core *s, sessile_id id, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (id < s->tree.node_count)
        status = session_load_locked(s, id, err);
    return status || session_is_path_entry(s, id) ? status : not_path_entry(s, id, err);
}

sessile_status session_check_base_locked(session_core *s, sessile_id base, int strict,
                                         sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_id at = s->tree.head;
    char shown[NAME_SHOWN];

    if (strict) {
        while (!status && at != base && s->tree.nodes[at].type == ENTRY_COMPACTION) {
            at = s->tree.nodes[at].parent;
            if (at != base)
                status = session_load_locked(s, at, err);
        }
        if (at == base)
            return SESSILE_OK;
    } else {
        status = session_load_path_locked(s, s->tree.head, base, err);
    }
    if (status)
        return status;
    if (!strict && session_descends_locked(s, s->tree.head, base))
        return SESSILE_OK;
    name_show((sessile_slice){s->identity.id, s->identity.id_size}, shown);
    if (base >= s->tree.node_count)
        return fail(err, SESSILE_CONFLICT,
                    "session %s: the base %08" PRIx32
                    " is no entry of it; its head is %08" PRIx32
                    ": read it again, then retry",
                    shown, base, s->tree.head);
    return fail(err, SESSILE_CONFLICT,
                "session %s: the conversation moved on from %08" PRIx32 " to %08" PRIx32
                ": read it again, then retry",
                shown, base, s->tree.head);
}

sessile_status session_path_locked(session_core *s, sessile_id at, sessile_id **out,
                                   size_t *count, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = session_check_at(s, at, err);
    size_t left;

    *out = NULL;
    *count = 0;
    if (!status)
        status = session_load_path_locked(s, at, 0, err);
    if (status)
        return status;
    left = s->tree.nodes[at].messages;
    if (!left)
        return SESSILE_OK;
    *out = mem_alloc(a, left * sizeof **out);
    if (!*out)
        return fail_nomem(err);
    *count = left;
    for (; left && at; at = s->tree.nodes[at].parent)
        if (node_is_message(&s->tree.nodes[at]))
            (*out)[--left] = at;
    if (!left)
        return SESSILE_OK;
    /* Only an index can say so, and only one that was made to lie. */
    mem_free(a, *out, *count * sizeof **out);
    *out = NULL;
    *count = 0;
    return session_fail_damaged(s, at, err,
                                "its index counts messages that are not there");
}
