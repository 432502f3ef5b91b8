/*
 * finder.c: finds the index of a key in a context.
 *
 * Owns a table of the keys of one list, built only when it is needed. Must never be used
 * for a list that has changed since.
 */
#include "context/finder.h"

#include <string.h>

void finder_init(finder *f, const context *c, const allocator *a)
{
    memset(f, 0, sizeof *f);
    f->c = c;
    map_init(&f->table, a);
}

void finder_deinit(finder *f)
{
    map_deinit(&f->table);
    f->has_table = 0;
}

/* Keys are made of small numbers in order; the table spreads them itself. Distinct keys
 * have distinct numbers, so that the table needs no second comparison. */
static uint64_t number_of(sessile_key key)
{
    return (uint64_t)key.n << 32 | key.entry;
}

static int make_table(finder *f)
{
    size_t i;
    if (map_reserve(&f->table, f->c->count))
        return -1;
    for (i = 0; i < f->c->count; i++)
        if (map_put(&f->table, number_of(f->c->items[i].key), (uint32_t)i))
            return -1;
    f->has_table = 1;
    return 0;
}

int finder_find(finder *f, sessile_key key, size_t *out)
{
    const context *c = f->c;
    uint32_t at;
    size_t i;

    if (f->next < c->count && key_same(c->items[f->next].key, key)) {
        *out = f->next++;
        return 1;
    }
    if (!f->has_table) {
        for (i = f->next; i < c->count; i++) {
            if (key_same(c->items[i].key, key)) {
                *out = i;
                f->next = i + 1;
                return 1;
            }
        }
        if (make_table(f))
            return -1;
    }
    if (!map_get(&f->table, number_of(key), &at) ||
        !key_same(c->items[at].key, key)) /* the table keeps 0 as 1 */
        return 0;
    *out = at;
    f->next = (size_t)at + 1;
    return 1;
}
