/* terms.c: the terms of texts as hashes. */
#include "memory/terms.h"

#include <stdlib.h>
#include <string.h>

#include "memory/rank.h"

void terms_init(term_list *t, const allocator *a)
{
    memset(t, 0, sizeof *t);
    t->alloc = a;
}

void terms_deinit(term_list *t)
{
    const allocator *a = t->alloc;
    mem_free(a, t->at, t->capacity * sizeof *t->at);
    terms_init(t, a);
}

static int add_term(void *arg, const char *term, size_t size)
{
    term_list *t = arg;
    if (mem_grow(t->alloc, (void **)&t->at, &t->capacity, t->count + 1, sizeof *t->at))
        return -1;
    t->at[t->count++] = hash64_lasting(term, size);
    return 0;
}

int terms_add(term_list *t, words *w, const char *text, size_t size, unsigned flags)
{
    return words_each(w, text, size, flags, add_term, t);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void terms_distinct(term_list *t)
{
    size_t kept = 0;
    if (t->count)
        qsort(t->at, t->count, sizeof *t->at, by_value);
    for (size_t i = 0; i < t->count && kept < RANK_TERMS_MAX; i++)
        if (!kept || t->at[kept - 1] != t->at[i])
            t->at[kept++] = t->at[i];
    t->count = kept;
}
