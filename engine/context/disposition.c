/*
 * disposition.c: what a proposal does with every message of a context.
 *
 * Owns the walk that compares two lists. Must never judge: it records what it finds, and
 * the first fault of each kind, which laws.c then reports.
 */
#include "context/disposition.h"

#include <string.h>

void dispositions_init(dispositions *p, const allocator *a)
{
    memset(p, 0, sizeof *p);
    p->alloc = a;
}

/* All arrays are one block that begins at place. */
static size_t block_size(const dispositions *p)
{
    return (p->item_count + 2 * p->inserted_count) * sizeof(uint32_t) + p->item_count;
}

void dispositions_deinit(dispositions *p)
{
    mem_free(p->alloc, p->place, block_size(p));
    dispositions_init(p, p->alloc);
}

static int make_room(dispositions *p, size_t items, size_t inserted)
{
    if (items > UINT32_MAX || inserted > UINT32_MAX)
        return -1;
    p->item_count = items;
    p->inserted_count = inserted;
    p->place = mem_alloc(p->alloc, block_size(p));
    if (!p->place) {
        p->item_count = p->inserted_count = 0;
        return -1;
    }
    p->inserted_at = p->place + items;
    p->inserted_from = p->inserted_at + inserted;
    p->disposition = (uint8_t *)(p->inserted_from + inserted);
    memset(p->place, 0xff, (items + 2 * inserted) * sizeof *p->place); /* PLACE_NONE */
    memset(p->disposition, DISPOSITION_LOST, items);
    return 0;
}

static void note_untruth(dispositions *p, enum untruth untruth, sessile_key key)
{
    if (p->untruth != UNTRUE_NONE)
        return;
    p->untruth = untruth;
    p->untruth_key = key;
}

/* What stays, and where the new messages are. */
static int place_kept(dispositions *p, const laws_input *in, finder *find)
{
    sessile_key last_key = {SESSILE_NO_ID, 0};
    size_t i, at, last = 0;
    int any = 0, found;

    for (i = 0; i < in->after->count; i++) {
        sessile_key key = in->after->items[i].key;
        if (key_is_own(key)) {
            if (key.n < 1 || key.n > p->inserted_count ||
                p->inserted_at[key.n - 1] != PLACE_NONE) {
                note_untruth(p, UNTRUE_UNKNOWN, key);
                continue;
            }
            p->inserted_at[key.n - 1] = (uint32_t)i;
            p->inserted_places++;
            continue;
        }
        found = finder_find(find, key, &at);
        if (found < 0)
            return -1;
        if (!found) {
            note_untruth(p, UNTRUE_UNKNOWN, key);
            continue;
        }
        if (any && at <= last && !p->disorder) {
            p->disorder = 1;
            p->disorder_key = key;
            p->disorder_after = last_key;
        }
        p->place[at] = (uint32_t)i;
        p->disposition[at] = DISPOSITION_KEPT;
        last = at;
        last_key = key;
        any = 1;
    }
    return 0;
}

/* Keys that the put at index i of the proposal stands for. *placed: the last item that
 * got its place by this. */
static int place_keys(dispositions *p, finder *find, uint32_t i, const sessile_key *keys,
                      size_t count, uint8_t disposition, uint32_t *placed)
{
    size_t k, at;
    for (k = 0; k < count; k++) {
        int found = finder_find(find, keys[k], &at);
        if (found < 0)
            return -1;
        if (!found) {
            note_untruth(p, UNTRUE_FOREIGN, keys[k]);
        } else if (p->disposition[at] == DISPOSITION_KEPT) {
            note_untruth(p, UNTRUE_STAYS, keys[k]);
        } else if (p->place[at] != PLACE_NONE) {
            note_untruth(p, UNTRUE_TWICE, keys[k]);
        } else {
            p->place[at] = p->inserted_at[i];
            p->disposition[at] = disposition;
            *placed = (uint32_t)at;
        }
    }
    return 0;
}

int dispositions_find(dispositions *p, const laws_input *in)
{
    finder find;
    uint32_t i;
    int code = -1;

    if (make_room(p, in->before->count, in->inserted_count))
        return -1;
    finder_init(&find, in->before, p->alloc);
    if (place_kept(p, in, &find))
        goto out;
    find.next = 0;
    for (i = 0; i < in->inserted_count; i++) {
        const inserted_message *w = &in->inserted[i];
        uint32_t placed = PLACE_NONE;
        if (p->inserted_at[i] == PLACE_NONE)
            continue;
        if (place_keys(p, &find, i, w->replaces, w->replace_count, DISPOSITION_REPLACED,
                       &placed) ||
            place_keys(p, &find, i, w->covers, w->cover_count, DISPOSITION_COVERED,
                       &placed))
            goto out;
        if (w->replace_count == 1 && w->cover_count == 0)
            p->inserted_from[i] = placed;
    }
    code = 0;

out:
    finder_deinit(&find);
    return code;
}
