/*
 * list_match.c: which sessions a list has.
 *
 * Owns the filters of a list and the heap of its newest N. Must never open a log.
 */
#include "admin/list_internal.h"

#include <string.h>

int list_newer(const void *left, const void *right)
{
    const list_key *a = left, *b = right;
    int by_folder;

    if (a->modified_ms != b->modified_ms)
        return a->modified_ms < b->modified_ms ? 1 : -1;
    by_folder = strcmp(a->folder, b->folder);
    return by_folder ? by_folder : strcmp(a->name, b->name);
}

static void swap(list_key *a, list_key *b)
{
    list_key was = *a;
    *a = *b;
    *b = was;
}

static void sift_up(list_key *heap, size_t at)
{
    for (; at && list_newer(&heap[(at - 1) / 2], &heap[at]) < 0; at = (at - 1) / 2)
        swap(&heap[(at - 1) / 2], &heap[at]);
}

static void sift_down(list_key *heap, size_t count)
{
    for (size_t at = 0, down; (down = 2 * at + 1) < count; at = down) {
        if (down + 1 < count && list_newer(&heap[down + 1], &heap[down]) > 0)
            down++;
        if (list_newer(&heap[down], &heap[at]) <= 0)
            return;
        swap(&heap[down], &heap[at]);
    }
}

list_key listing_key(const listing *l, size_t place_, int64_t modified_ms)
{
    const list_place *p = &l->places[place_];
    return (list_key){modified_ms, listing_folder(l, p), listing_name(l, p), place_};
}

int listing_offer(listing *l, size_t place_, int64_t modified_ms)
{
    list_key k = listing_key(l, place_, modified_ms);

    if (l->key_count < l->want) {
        if (mem_grow(&l->store->alloc, (void **)&l->keys, &l->key_capacity,
                     l->key_count + 1, sizeof *l->keys))
            return -1;
        l->keys[l->key_count++] = k;
        if (l->want < l->count) /* else all of them are in it: no heap is needed */
            sift_up(l->keys, l->key_count - 1);
    } else if (list_newer(&k, &l->keys[0]) < 0) {
        l->keys[0] = k;
        sift_down(l->keys, l->key_count);
    }
    return 0;
}

static int begins(sessile_slice text, sessile_slice with)
{
    return !with.size ||
           (text.size >= with.size && !memcmp(text.data, with.data, with.size));
}

int list_same(sessile_slice a, sessile_slice b)
{
    return a.size == b.size && begins(a, b);
}

static unsigned char small(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int has_text(sessile_slice text, sessile_slice asked)
{
    for (size_t at = 0; asked.size <= text.size && at <= text.size - asked.size; at++) {
        size_t i = 0;
        while (i < asked.size && small(text.data[at + i]) == small(asked.data[i]))
            i++;
        if (i == asked.size)
            return 1;
    }
    return !asked.size;
}

/* labels: a JSON array; l->label: what is asked for, as JSON. */
static int has_label(const listing *l, sessile_slice labels)
{
    json_iter it;

    if (!l->options->label.size)
        return 1;
    if (!labels.size)
        return 0;
    it = json_begin(json_of(labels.data, labels.size));
    while (json_next(&it))
        if (list_same((sessile_slice){it.value.at, it.value.size},
                      (sessile_slice){l->label.data, l->label.size}))
            return 1;
    return 0;
}

static int asks_more(const sessile_list_options *o)
{
    return o->title.size || o->user.data || o->label.size || o->text.size ||
           o->since_ms || o->until_ms || o->lives;
}

int listing_wanted(const listing *l, const list_asked *a)
{
    const sessile_list_options *o = l->options;
    unsigned lives = o->lives ? o->lives : ~(1u << SESSILE_LIFE_DELETED);

    guard_names names = {a->agent, a->user, a->id};

    if (!begins(a->id, o->id_prefix) || (l->who && !principal_sees(l->who, &names)))
        return 0;
    if (!a->life)
        return !asks_more(o);
    return (!o->title.size || list_same(a->title, o->title)) &&
           (!o->user.data || list_same(a->user, o->user)) &&
           has_text(a->title, o->text) &&
           (!o->since_ms || a->modified_ms >= o->since_ms) &&
           (!o->until_ms || a->modified_ms < o->until_ms) && has_label(l, a->labels) &&
           (lives >> life_state(a->life, l->now_ms) & 1);
}
