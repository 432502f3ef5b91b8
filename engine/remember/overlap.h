/*
 * overlap.h: whether the words of a text stand in others.
 *
 * Words are compared as the search compares them: folded, stemmed, without stop words.
 * Numbers count only in a text that has nothing else.
 */
#ifndef REMEMBER_OVERLAP_H
#define REMEMBER_OVERLAP_H

#include "base/map.h"
#include "memory/words.h"
#include "sessile.h"

typedef struct word_set {
    map words;  /* hashes of terms */
    int failed; /* no memory: words are missing */
} word_set;

void word_set_init(word_set *s, const allocator *a);
void word_set_deinit(word_set *s);
void word_set_add(word_set *s, words *w, const char *text, size_t size);
/* 1: half of the words of the text, or more, are in the set. 0 also for a text without
 * words. -1: no memory. */
int word_set_has_half(const word_set *s, words *w, sessile_slice text);

#endif
