/*
 * literals.h: texts of which a regular expression needs one, and a fast search for many.
 *
 * Most texts contain nothing that a set of expressions looks for. If every match of an
 * expression contains one of a few words, a text without these words need not be matched
 * at all.
 */
#ifndef SCREEN_LITERALS_H
#define SCREEN_LITERALS_H

#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

#define LITERAL_MIN   3  /* bytes: shorter ones are in every text */
#define LITERAL_MAX   24 /* a longer one is cut: its beginning is needed as well */
#define LITERALS_MOST 32 /* of one expression */

/* Lower case, without characters outside ASCII. */
typedef struct literal {
    unsigned char size;
    char text[LITERAL_MAX];
} literal;

typedef struct literals {
    size_t count; /* 0: unknown, the expression is always matched */
    literal list[LITERALS_MOST];
} literals;

/* Finds texts of which every match of the expression contains one, if upper and lower
 * case are not told apart. It reads the syntax of PCRE2 that it is sure of; for all other
 * syntax the result is empty. */
void literals_of(literals *out, const char *expression, size_t size);

/* A search for the literals of up to 64 owners. */
typedef struct literal_filter {
    uint64_t always; /* bit i: owner i is always found */
    size_t count, capacity;
    struct literal_owned *list; /* sorted by key once it is ready */
    uint32_t bits[1 << 10];     /* bit k: a literal begins with the key k */
} literal_filter;

void literal_filter_init(literal_filter *f);
void literal_filter_deinit(literal_filter *f, const allocator *a);
/* Adds the literals of an owner, 0 to 63. NOMEM. */
sessile_status literal_filter_add(literal_filter *f, unsigned owner,
                                  const literals *wanted, const allocator *a,
                                  sessile_error *err);
/* To be called once, after the last owner was added. */
void literal_filter_ready(literal_filter *f);
/* The owners that may match the text, as bits. */
uint64_t literal_filter_search(const literal_filter *f, const char *text, size_t size);

#endif
