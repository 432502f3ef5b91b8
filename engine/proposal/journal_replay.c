/*
 * journal_replay.c: makes the calls of a journal on another state.
 *
 * Calls the functions of state.h and must never do what they would not do: the journal
 * may come from a process that a hostile script has taken over.
 */
#include "proposal/journal.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "proposal/internal.h"

static sessile_status fail_journal(sessile_error *err)
{
    return fail(err, SESSILE_INVALID, "these bytes are no journal of a state");
}

/* What a rebuild holds while it is read: keys of all items in one array. */
typedef struct rebuilt {
    sessile_state_item *items;
    size_t capacity;
    sessile_key *keys;
    size_t key_count, key_capacity;
} rebuilt;

/* Reads keys; *at: where they begin in r->keys, which may yet move. */
static int get_keys(wire *w, rebuilt *r, const allocator *a, size_t *at, size_t *count)
{
    uint32_t n = wire_count(w, 8);
    *at = r->key_count;
    *count = n;
    if (mem_grow(a, (void **)&r->keys, &r->key_capacity, r->key_count + n,
                 sizeof *r->keys))
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        sessile_key *key = &r->keys[r->key_count++];
        key->entry = wire_u32(w);
        key->n = wire_u32(w);
    }
    return 0;
}

static sessile_status replay_rebuild(sessile_state *s, wire *w, sessile_error *err)
{
    const allocator *a = s->alloc;
    uint32_t count = wire_count(w, 8);
    size_t starts_capacity = 0;
    size_t *starts = NULL; /* of the covers and the replaces of each item */
    sessile_status status = SESSILE_OK;
    rebuilt r = {NULL, 0, NULL, 0, 0};

    if (mem_grow(a, (void **)&r.items, &r.capacity, count, sizeof *r.items) ||
        mem_grow(a, (void **)&starts, &starts_capacity, 2 * (size_t)count,
                 sizeof *starts)) {
        status = fail_nomem(err);
        goto out;
    }
    for (uint32_t i = 0; i < count; i++) {
        sessile_state_item *it = &r.items[i];
        uint64_t index = wire_u64(w);
        memset(it, 0, sizeof *it);
        it->index = index == UINT64_MAX ? SIZE_MAX : (size_t)index;
        starts[2 * i] = starts[2 * i + 1] = 0;
        if (it->index != SIZE_MAX)
            continue;
        it->json = wire_text(w);
        if (get_keys(w, &r, a, &starts[2 * i], &it->cover_count) ||
            get_keys(w, &r, a, &starts[2 * i + 1], &it->replace_count)) {
            status = fail_nomem(err);
            goto out;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        sessile_state_item *it = &r.items[i];
        it->covers = it->cover_count ? r.keys + starts[2 * i] : NULL;
        it->replaces = it->replace_count ? r.keys + starts[2 * i + 1] : NULL;
    }
    status = w->bad ? fail_journal(err) : state_rebuild(s, r.items, count, err);
out:
    mem_free(a, r.items, r.capacity * sizeof *r.items);
    mem_free(a, r.keys, r.key_capacity * sizeof *r.keys);
    mem_free(a, starts, starts_capacity * sizeof *starts);
    return status;
}

static sessile_status replay_edit(sessile_state *s, journal_call what, wire *w,
                                  sessile_error *err)
{
    uint64_t i, first, last;
    int64_t n;
    sessile_slice text;
    int covers;

    switch (what) {
    case JOURNAL_DROP:
        first = wire_u64(w);
        last = wire_u64(w);
        return w->bad ? fail_journal(err) : state_drop(s, first, last, err);
    case JOURNAL_REPLACE:
        i = wire_u64(w);
        text = wire_text(w);
        return w->bad ? fail_journal(err) : state_replace(s, i, text, err);
    case JOURNAL_INSERT:
        i = wire_u64(w);
        text = wire_text(w);
        covers = wire_u8(w);
        first = wire_u64(w);
        last = wire_u64(w);
        return w->bad ? fail_journal(err)
                      : state_insert(s, i, text, covers, first, last, err);
    case JOURNAL_KEEP_LAST:
        n = wire_i64(w);
        i = wire_u8(w);
        return w->bad ? fail_journal(err) : state_keep_last(s, n, (sessile_unit)i, err);
    case JOURNAL_REBUILD:
        return replay_rebuild(s, w, err);
    case JOURNAL_VARS:
        text = wire_text(w);
        return w->bad ? fail_journal(err) : state_set_vars(s, text, err);
    default:
        return fail_journal(err);
    }
}

static sessile_status replay_hook(sessile_state *s, journal_call what, wire *w,
                                  sessile_error *err)
{
    int changed, vars_changed;
    sessile_slice vars;

    switch (what) {
    case JOURNAL_BEGIN:
        vars = wire_text(w);
        return w->bad ? fail_journal(err)
                      : state_hook_begin(s, vars.data, vars.size, err);
    case JOURNAL_END:
        return state_hook_end(s, &changed, &vars_changed, err);
    case JOURNAL_FORGET:
        state_hook_drop(s);
        return SESSILE_OK;
    case JOURNAL_MARK:
        return state_mark(s, err);
    case JOURNAL_REWIND:
        return state_rewind(s, err);
    default:
        return fail_journal(err);
    }
}

sessile_status state_journal_replay(sessile_state *s, const void *data, size_t size,
                                    int only_edits, sessile_error *err)
{
    buf *journal = s->journal; /* a replay is not recorded */
    sessile_status status = SESSILE_OK;
    wire w;

    s->journal = NULL;
    wire_init(&w, data, size);
    while (!status && w.at < w.end) {
        journal_call what = (journal_call)wire_u8(&w);
        if (what >= JOURNAL_EDITS)
            status = replay_edit(s, what, &w, err);
        else
            status = only_edits ? fail_journal(err) : replay_hook(s, what, &w, err);
    }
    s->journal = journal;
    return status;
}
