/* pretoken.h: splits text into the pieces within which an encoding merges. */
#ifndef TOKENS_PRETOKEN_H
#define TOKENS_PRETOKEN_H

#include <stddef.h>
#include <stdint.h>

/* The patterns that have a scanner of their own. */
enum {
    PRETOKEN_NONE,   /* the text is one piece */
    PRETOKEN_GPT2,   /* also r50k_base, p50k_base, and ByteLevel of tokenizer.json */
    PRETOKEN_CL100K, /* also of Llama 3 */
    PRETOKEN_O200K,
    PRETOKEN_KINDS
};

/* The regular expression that a scanner implements; NULL: no such kind. */
const char *pretoken_pattern(unsigned kind);
/* The kind whose pattern this is, letter for letter; PRETOKEN_KINDS: none. */
unsigned pretoken_kind(const char *pattern, size_t size);

/* The size of the first piece of text, at least 1. The text is UTF-8, not empty, and
 * continues at least to the end of a piece. What precedes it has no influence. Over a
 * whole text the work is linear in its size. */
typedef size_t pretoken_scanner(const unsigned char *text, const unsigned char *end);
pretoken_scanner pretoken_gpt2, pretoken_cl100k, pretoken_o200k, pretoken_whole;
extern pretoken_scanner *const pretoken_scanners[PRETOKEN_KINDS];

#endif
