/*
 * posting_lists.h: the lists of an inverted index, inside postings*.c.
 *
 * A list holds the entries that have one term, in ascending order. For each entry it has
 * one number: the distance from the entry before it, shifted left by one bit. The lowest
 * bit says whether the term occurs more than once; if it does, the count follows as
 * another number. Numbers are LEB128: seven bits a byte, the lowest ones first.
 */
#ifndef MEMORY_POSTING_LISTS_H
#define MEMORY_POSTING_LISTS_H

#include "memory/postings.h"

/* Room for the numbers of one entry: each takes five bytes at most. */
#define POSTING_ENTRY_MAX 16

/* Writes n to out and returns how many bytes that took. */
size_t posting_put_number(unsigned char *out, uint64_t n);
/* Makes room for `more` bytes at the end of a list: 0, or -1: no memory. */
int posting_list_reserve(const allocator *a, posting_list *list, size_t more);
/* The list of a term in a field, or NULL if no entry has the term. */
posting_list *posting_list_find(const posting_field *field, uint64_t term);
/* As posting_list_find(); makes an empty list if there is none. NULL: no memory. */
posting_list *posting_list_make(postings *p, posting_field *field, uint64_t term);

/* Reads a number of a list that this process wrote or has checked, and moves past it. */
static inline uint64_t posting_get_number(const unsigned char **at)
{
    uint64_t n = **at & 0x7f;
    for (unsigned shift = 7; *(*at)++ & 0x80; shift += 7)
        n |= (uint64_t)(**at & 0x7f) << shift;
    return n;
}

/* A short list keeps its bytes in itself. */
static inline const unsigned char *posting_list_bytes(const posting_list *list)
{
    return list->capacity ? list->bytes.far : list->bytes.near;
}

/* Where the next bytes of a list are written, after posting_list_reserve(). */
static inline unsigned char *posting_list_end(posting_list *list)
{
    return (list->capacity ? list->bytes.far : list->bytes.near) + list->size;
}

/* A position in a list: entry and times are those that posting_list_next() found. */
typedef struct posting_walk {
    const unsigned char *at, *end;
    uint32_t entry, times;
    uint32_t next;
} posting_walk;

static inline posting_walk posting_list_begin(const posting_list *list)
{
    const unsigned char *at = posting_list_bytes(list);
    return (posting_walk){.at = at, .end = at + list->size};
}

/* 1, or 0 at the end of the list. */
static inline int posting_list_next(posting_walk *k)
{
    uint64_t n;
    if (k->at == k->end)
        return 0;
    n = posting_get_number(&k->at);
    k->entry = k->next + (uint32_t)(n >> 1);
    k->times = n & 1 ? (uint32_t)posting_get_number(&k->at) : 1;
    k->next = k->entry + 1;
    return 1;
}

#endif
