/*
 * overlap.h: whether the words of a text stand in others.
 *
 * Words are compared as the search compares them: folded, stemmed, without stop words.
 * Numbers count only in a text that has nothing else. A set keeps also which two words
 * follow each other: numbers too, because a copied number is copied with its neighbours.
 */
#ifndef REMEMBER_OVERLAP_H
#define REMEMBER_OVERLAP_H

#include "base/map.h"
#include "memory/words.h"
#include "sessile.h"

typedef struct word_set {
    map words;     /* hashes of terms, and of two that follow each other */
    uint64_t last; /* hash of the term before, in the text that is being added; 0: none */
    int failed;    /* no memory: words are missing */
} word_set;

void word_set_init(word_set *s, const allocator *a);
void word_set_deinit(word_set *s);
void word_set_add(word_set *s, words *w, const char *text, size_t size);
/* 1: half of the words of the text, or more, are in the set. 0 also for a text without
 * words. -1: no memory. */
int word_set_has_half(const word_set *s, words *w, sessile_slice text);
/*
 * 1: the text has words that are not in `named`, and half of these, or more, stand in
 * `from`, next to other words of the text, and not in `other`. -1: no memory. Numbers
 * count as words.
 */
int word_set_adds_half(const word_set *named, const word_set *from, const word_set *other,
                       words *w, sessile_slice text);

/*
 * 1: the text copies `from`. Of the pairs of words that follow each other in it, those
 * count that stand in `from` and in neither of the others: half of them, or three in a
 * row, or any if all of the text's pairs stand in `from`. 0: it does not, or has one
 * word. -1: no memory. is_name 1: two in a row, nothing else, because a name is
 * made of few words.
 */
int word_set_is_copied(const word_set *from, const word_set *other,
                       const word_set *another, words *w, sessile_slice text,
                       int is_name);

#endif
