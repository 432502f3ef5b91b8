/*
 * encoding_merge.c: byte-pair encoding of one piece of text.
 *
 * Owns the order of merges: the pair with the lowest rank first, of equal ones the
 * leftmost, until no two neighbours merge (Sennrich, Haddow, Birch: Neural Machine
 * Translation of Rare Words with Subword Units, 2016; over bytes as in GPT-2). Must
 * never take more than size * log(size) steps, whatever the text.
 *
 * The problem: the plain algorithm searches for the lowest pair after each merge,
 * which is quadratic. A piece can be the whole text ("aaaa…", base64, a page of
 * Chinese without a space).
 *
 * The choice: short pieces, which are nearly all, are merged in an array on the stack,
 * where searching a few numbers costs less than any structure. Longer ones become a
 * list of neighbours with a heap of the pairs that can merge, ordered by rank and then
 * position. A pair that no longer exists stays in the heap and is skipped when it
 * comes up. Each merge removes one pair and adds at most two. Rejected: following the
 * tokens of a dictionary automaton from left to right (linear, as in the `bpe` crate).
 * It is correct only if every token of the vocabulary is what its own bytes merge to,
 * which is not guaranteed for a vocabulary from a file.
 */
#include "tokens/encoding_merge.h"

#include <string.h>

/* The lowest pair: the rank in the upper bits, the position in the lower ones, so that
 * one comparison orders both, without a branch. */
#define PLACE_BITS 7
#define PLACE      ((1u << PLACE_BITS) - 1)
#define NO_PAIR    (IMAGE_NO_RANK << PLACE_BITS)

static inline uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t pair_at(const image *i, const uint32_t *tokens, size_t at,
                               size_t next)
{
    return image_pair(i, tokens[at], tokens[next]) << PLACE_BITS | (uint32_t)at;
}

/* Tokens stay at the position of their first byte; a merged token is no longer part of
 * a pair. */
size_t merge_small(const image *i, const unsigned char *text, size_t size,
                   uint32_t tokens[MERGE_SMALL])
{
    uint32_t pairs[MERGE_SMALL + 4]; /* a token with the one after it */
    uint8_t next[MERGE_SMALL + 1], before[MERGE_SMALL + 1];
    size_t k, n = 0;

    for (k = 0; k < size; k++) {
        tokens[k] = i->bytes[text[k]];
        next[k] = (uint8_t)(k + 1);
        before[k] = (uint8_t)(k - 1);
    }
    for (k = 0; k + 1 < size; k++)
        pairs[k] = pair_at(i, tokens, k, k + 1);
    for (k = size - 1; k < (size + 3) / 4 * 4; k++)
        pairs[k] = UINT32_MAX;
    for (;;) {
        uint32_t a = UINT32_MAX, b = a, c = a, d = a;
        size_t at, gone;
        for (k = 0; k < size; k += 4) {
            a = lower(a, pairs[k]);
            b = lower(b, pairs[k + 1]);
            c = lower(c, pairs[k + 2]);
            d = lower(d, pairs[k + 3]);
        }
        a = lower(lower(a, b), lower(c, d));
        if (a >= NO_PAIR)
            break;
        at = a & PLACE;
        gone = next[at];
        tokens[at] = i->merged[a >> PLACE_BITS];
        next[at] = next[gone];
        before[next[at]] = (uint8_t)at;
        pairs[gone] = UINT32_MAX;
        pairs[at] = next[at] < size ? pair_at(i, tokens, at, next[at]) : UINT32_MAX;
        if (at > 0)
            pairs[before[at]] = pair_at(i, tokens, before[at], at);
    }
    for (k = 0; k < size; k = next[k])
        tokens[n++] = tokens[k];
    return n;
}

/* ------------------------------------------------------------------ large pieces */

/* A heap of numbers, the lowest first: rank in the upper bits, position in the lower.
 * Four children share one cache line; with two, a walk would touch twice the lines. */
#define CHILDREN 4

typedef struct heap {
    uint64_t *slots;
    size_t count;
} heap;

static void sink(heap *h, size_t at, uint64_t value)
{
    size_t child, k;
    while ((k = CHILDREN * at + 1) < h->count) {
        size_t end = k + CHILDREN < h->count ? k + CHILDREN : h->count;
        for (child = k++; k < end; k++)
            child = h->slots[k] < h->slots[child] ? k : child;
        if (value <= h->slots[child])
            break;
        h->slots[at] = h->slots[child];
        at = child;
    }
    h->slots[at] = value;
}

static void heap_order(heap *h)
{
    size_t at;
    for (at = (h->count + CHILDREN - 2) / CHILDREN; at-- > 0;)
        sink(h, at, h->slots[at]);
}

static uint64_t heap_take(heap *h)
{
    uint64_t lowest = h->slots[0];
    if (--h->count > 0)
        sink(h, 0, h->slots[h->count]);
    return lowest;
}

static void heap_put(heap *h, uint64_t value)
{
    size_t at = h->count++;
    while (at > 0 && value < h->slots[(at - 1) / CHILDREN]) {
        h->slots[at] = h->slots[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    h->slots[at] = value;
}

typedef struct large {
    const image *i;
    uint32_t size;
    heap heap;
    uint32_t *tokens; /* at the place of each one's first byte */
    uint32_t *ranks;  /* of the pair that begins there; IMAGE_NO_RANK: none */
    uint32_t *next;   /* the place of the token after it, or size */
    uint32_t *before; /* of the one before it */
} large;

static void set_rank(large *l, uint32_t at, int put)
{
    uint32_t next = l->next[at];
    uint32_t rank =
        next < l->size ? image_pair(l->i, l->tokens[at], l->tokens[next]) : IMAGE_NO_RANK;
    l->ranks[at] = rank;
    if (put && rank != IMAGE_NO_RANK)
        heap_put(&l->heap, (uint64_t)rank << 32 | at);
}

static void merge_at(large *l, uint32_t at)
{
    uint32_t gone = l->next[at];

    l->tokens[at] = l->i->merged[l->ranks[at]];
    l->next[at] = l->next[gone];
    if (l->next[at] < l->size)
        l->before[l->next[at]] = at;
    l->ranks[gone] = IMAGE_NO_RANK;
    set_rank(l, at, 1);
    if (at > 0)
        set_rank(l, l->before[at], 1);
}

/* Points the arrays into the room: 0 or -1. Each merge removes one pair from the heap
 * and adds at most two, so there are never more than twice as many pairs as bytes. */
static int make_room(large *l, merge_room *room)
{
    size_t need = (size_t)l->size * (2 * sizeof(uint64_t) + 4 * sizeof(uint32_t));
    if (need > room->capacity) {
        mem_free(room->alloc, room->memory, room->capacity);
        room->capacity = 0;
        room->memory = mem_alloc(room->alloc, need);
        if (!room->memory)
            return -1;
        room->capacity = need;
    }
    l->heap.slots = room->memory;
    l->tokens = (uint32_t *)(l->heap.slots + 2 * (size_t)l->size);
    l->ranks = l->tokens + l->size;
    l->next = l->ranks + l->size;
    l->before = l->next + l->size;
    return 0;
}

int merge_large(const image *i, const unsigned char *text, size_t size, merge_room *room,
                uint32_t **tokens, size_t *count)
{
    large l = {.i = i, .size = (uint32_t)size};
    uint32_t at;
    size_t n = 0;

    if (size >= UINT32_MAX / 2 || make_room(&l, room))
        return -1;
    for (at = 0; at < l.size; at++) {
        l.tokens[at] = i->bytes[text[at]];
        l.next[at] = at + 1;
        l.before[at] = at - 1;
    }
    for (at = 0; at < l.size; at++) {
        set_rank(&l, at, 0);
        if (l.ranks[at] != IMAGE_NO_RANK)
            l.heap.slots[l.heap.count++] = (uint64_t)l.ranks[at] << 32 | at;
    }
    heap_order(&l.heap);
    while (l.heap.count > 0) {
        uint64_t pair = heap_take(&l.heap);
        if (l.ranks[(uint32_t)pair] == pair >> 32)
            merge_at(&l, (uint32_t)pair);
    }
    for (at = 0; at < l.size; at = l.next[at])
        l.tokens[n++] = l.tokens[at];
    *tokens = l.tokens;
    *count = n;
    return 0;
}
