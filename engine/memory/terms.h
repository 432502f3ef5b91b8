/* terms.h: the terms of texts as hashes, as postings know them. */
#ifndef MEMORY_TERMS_H
#define MEMORY_TERMS_H

#include "memory/postings.h"
#include "memory/words.h"

typedef struct term_list {
    uint64_t *at;
    size_t count, capacity;
    const allocator *alloc;
} term_list;

void terms_init(term_list *t, const allocator *a);
void terms_deinit(term_list *t);
/* Appends the terms of a text, repeated ones too. 0, or -1: no memory. */
int terms_add(term_list *t, words *w, const char *text, size_t size, unsigned flags);
/* Sorts them, and leaves each once, at most RANK_TERMS_MAX: for questions. */
void terms_distinct(term_list *t);

#endif
