/*
 * context_at.c: the context at an entry, and the policies' notes in force there.
 *
 * The problem: a context is needed at any entry, and at the head after every turn, at a
 * cost that does not grow with the log. The choice: every node knows the nearest
 * compaction with a context on its path, so a context is that compaction's list and a
 * walk from the entry to the list's `upto`. Rejected: a context kept at every node
 * (memory), or contexts relative to the one before (a fold over every compaction of the
 * log).
 *
 * Must never be called by the fold, because it reads from the log.
 */
#include "session/fold.h"
#include "base/names.h"
#include "session/compaction.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A kept session has no room for more messages than may soon be added. */
enum { SOON = 64 };

static int compare_about(const void *x, const void *y)
{
    const fact *a = x, *b = y;

    return a->about < b->about ? -1 : a->about > b->about;
}

/* Marks the items that are pinned by a label. */
static sessile_status mark_pins(const session_core *s, context *c, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    size_t count, pins = 0;
    fact *labels;

    if (facts_in_force(&s->fold.facts, FACT_LABEL, a, &labels, &count))
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (fact_is_named(&s->fold.facts, &labels[i], FACT_PINNED,
                          sizeof FACT_PINNED - 1))
            labels[pins++] = labels[i];
    for (size_t i = 0; pins && i < c->count; i++) {
        item *it = &c->items[i];
        fact wanted = {.about = it->key.entry};
        if (!it->key.n && bsearch(&wanted, labels, pins, sizeof *labels, compare_about))
            it->flags |= ITEM_PINNED;
    }
    mem_free(a, labels, count * sizeof *labels);
    return SESSILE_OK;
}

static sessile_status build(session_core *s, sessile_id at, context *out,
                            sessile_error *err)
{
    id_list ids = {.alloc = &s->store->alloc};
    sessile_id id = s->tree.nodes[at].context_at;
    sessile_id upto = 0;
    sessile_status status = SESSILE_OK;
    int found;

    context_clear(out);
    if (id)
        status = compaction_list(s, id, out, &upto, err);
    if (!status)
        status = session_load_path_locked(s, at, upto, err);
    if (status)
        goto out;
    found = path_gather(s, at, upto, &ids);
    if (found < 0)
        status = fail_nomem(err);
    else if (found > 0)
        status = session_fail_damaged(
            s, id, err, "its context goes up to %08" PRIx32 ", which is not on its path",
            upto);
    if (!status && context_reserve(out, ids.count + SOON))
        status = fail_nomem(err);
    for (size_t i = ids.count; !status && i > 0; i--)
        if (context_push_node(s, ids.at[i - 1], out))
            status = fail_nomem(err);
    out->lost += ids.lost;
    if (!status)
        status = mark_pins(s, out, err);
out:
    id_list_deinit(&ids);
    if (status)
        context_clear(out);
    else
        out->upto = at;
    return status;
}

sessile_status session_context_locked(session_core *s, const context **out,
                                      sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    *out = NULL;
    if (s->context.stale || s->context.at_head.upto != s->tree.head) {
        s->context.stale = 1;
        status = build(s, s->tree.head, &s->context.at_head, err);
        if (status)
            return status;
        s->context.stale = 0;
    }
    *out = &s->context.at_head;
    return SESSILE_OK;
}

sessile_status session_context_at_locked(session_core *s, sessile_id at, context *out,
                                         sessile_error *err)
{
    sessile_status status = session_check_at(s, at, err);

    if (status) {
        context_clear(out);
        return status;
    }
    return build(s, at, out, err);
}

sessile_status session_between_locked(session_core *s, sessile_id low, sessile_id high,
                                      context *out, sessile_error *err)
{
    id_list ids = {.alloc = &s->store->alloc};
    sessile_status status = session_load_path_locked(s, high, low, err);

    if (!status && path_gather(s, high, low, &ids) < 0)
        status = fail_nomem(err);
    for (size_t i = ids.count; !status && i > 0; i--)
        if (context_push_node(s, ids.at[i - 1], out))
            status = fail_nomem(err);
    id_list_deinit(&ids);
    return status;
}

sessile_status session_message_locked(session_core *s, sessile_key key, buf *out,
                                      sessile_error *err)
{
    char name[SESSILE_KEY_SIZE];
    sessile_status status = SESSILE_OK;
    const node *n;
    json text;
    entry e;

    key_print(key, name);
    if (key.entry < s->tree.node_count)
        status = session_load_locked(s, key.entry, err);
    if (status)
        return status;
    n = key.entry < s->tree.node_count ? &s->tree.nodes[key.entry] : NULL;
    if (!n || (key.n ? n->type != ENTRY_COMPACTION : !node_is_message(n)))
        return session_fail(s, err, SESSILE_NOTFOUND,
                            "there is no message %s: its context names those there "
                            "are",
                            name);
    status = session_read_entry(s, key.entry, &s->fold.scratch, &e, err);
    if (status)
        return status;
    text = key.n ? compaction_inserted_message(e.data, key.n) : e.data;
    if (text.type != JSON_OBJECT)
        return session_fail(s, err, SESSILE_NOTFOUND,
                            "compaction %08" PRIx32 " wrote no message %" PRIu32,
                            key.entry, key.n);
    buf_put(out, text.at, text.size);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status session_vars_locked(session_core *s, sessile_id at, buf *out,
                                   sessile_error *err)
{
    sessile_status status = session_load_locked(s, at, err);
    sessile_id id;
    json vars;
    entry e;

    if (status)
        return status;
    id = s->tree.nodes[at].vars_at;
    if (!id) {
        buf_puts(out, "{}");
        return out->failed ? fail_nomem(err) : SESSILE_OK;
    }
    status = session_read_entry(s, id, &s->fold.scratch, &e, err);
    if (status)
        return status;
    vars = json_get(e.data, "vars");
    if (vars.type != JSON_OBJECT)
        return session_fail_damaged(s, id, err, "its notes of policies are gone");
    buf_put(out, vars.at, vars.size);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}
