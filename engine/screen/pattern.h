/*
 * pattern.h: a set of named regular expressions, and where they match in a text.
 *
 * Expressions are those of PCRE2. Case is ignored, `.` matches line ends too, classes
 * know Unicode, and groups capture nothing: (?-i) and (?-s) at the front of an expression
 * turn the first two off. \K sets where the reported match begins. A match is at most
 * PATTERN_REACH bytes long.
 *
 * A text is hostile. An expression that tries more ways than PATTERN_TRIES from one
 * place, or a set that needs more than its time, fails with LIMIT; what calls it then
 * refuses the text.
 */
#ifndef SCREEN_PATTERN_H
#define SCREEN_PATTERN_H

#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/os.h"

#define PATTERNS_MOST    64    /* of one set */
#define PATTERN_NAME_MAX 40    /* bytes: letters, digits, _ and - */
#define PATTERN_SIZE_MAX 8192  /* bytes of an expression */
#define PATTERN_REACH    65536 /* bytes that a match and its surroundings may have */
#define PATTERN_TRIES    10000
#define PATTERN_HITS     100000 /* matches in one text */
#define PATTERN_MS       50     /* CPU time for a text, and 1 ms more for each 16 KiB */

typedef struct pattern_set pattern_set;

/* A match: text[from .. to), not empty. */
typedef struct pattern_hit {
    size_t from, to;
    unsigned pattern; /* its number in the set, in the order in which it was added */
} pattern_hit;

/* All matches in a text: by pattern, then by place. Those of one pattern do not overlap.
 */
typedef struct pattern_hits {
    const allocator *alloc;
    pattern_hit *list;
    size_t count, capacity;
    uint64_t matched; /* bit i: pattern i matched, possibly an empty text */
} pattern_hits;
void pattern_hits_init(pattern_hits *h, const allocator *a);
void pattern_hits_deinit(pattern_hits *h);

/* An empty set. A set that is complete never changes: any number of threads may use it.
 */
sessile_status pattern_set_new(pattern_set **out, const allocator *a, sessile_error *err);
void pattern_set_free(pattern_set *set); /* NULL is ignored */
/* Adds an expression. INVALID: a wrong name, a name that is there already, or an
 * expression that is wrong, with the byte; LIMIT: too many, too large; NOMEM. */
sessile_status pattern_set_add(pattern_set *set, const char *name,
                               sessile_slice expression, sessile_error *err);
/* The same for an expression of a JSON Schema: as in ECMA 262, case matters, `.` does not
 * match line ends, classes are those of ASCII, and groups can be referred to. */
sessile_status pattern_set_add_exact(pattern_set *set, const char *name,
                                     sessile_slice expression, sessile_error *err);
/* To be called once, after the last was added. */
void pattern_set_ready(pattern_set *set);
/* 1 when a name has the form of one: 1 to PATTERN_NAME_MAX letters, digits, _ and -. */
int pattern_name_valid(const char *name, size_t size);

size_t pattern_set_count(const pattern_set *set);
const char *pattern_set_name(const pattern_set *set, size_t i);
/* The number of a pattern, or -1. */
int pattern_set_find(const pattern_set *set, const char *name);

/* Appends the matches in a text to hits, which is empty. INVALID: it is not UTF-8. LIMIT
 * names the expression that tried too much. filter 0: matches every expression, also
 * those that the text cannot contain (to measure, and to test the filter). */
sessile_status pattern_set_match(const pattern_set *set, sessile_slice text, int filter,
                                 const os_table *os, pattern_hits *hits,
                                 sessile_error *err);

#endif
