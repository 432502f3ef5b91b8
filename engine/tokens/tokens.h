/* tokens.h: how many tokens a message has: an estimate by classes of text. */
#ifndef TOKENS_TOKENS_H
#define TOKENS_TOKENS_H

#include <stddef.h>
#include <stdint.h>
#include "codec/message.h"

/* Where a count comes from, from best to worst. */
#define TOKEN_SOURCE_USAGE    "usage"
#define TOKEN_SOURCE_EXACT    "exact"
#define TOKEN_SOURCE_HOST     "host"
#define TOKEN_SOURCE_FITTED   "fitted"
#define TOKEN_SOURCE_ESTIMATE "estimate"

/* The unit in which a message was counted. It is stored with the count, so that a sum
 * knows its parts. The numbers are part of the index's bytes; an unknown name counts
 * as TOKENS_ESTIMATE. */
typedef enum token_unit {
    TOKENS_ESTIMATE = 0,
    TOKENS_CL100K,   /* of that encoding */
    TOKENS_O200K,    /* likewise */
    TOKENS_ENCODING, /* of another encoding */
    TOKENS_HOST,     /* by the host's counter */
    TOKENS_FITTED, /* any of these times the ratio learned from usage: the model's own */
    TOKEN_UNITS
} token_unit;
/* A count and its unit. */
typedef struct token_count {
    int64_t tokens;
    token_unit unit;
} token_count;
/* "estimate", "cl100k_base", …, as entries have it. Static. */
const char *token_unit_name(token_unit unit);
token_unit token_unit_of(const char *name, size_t size);

/* Tokens of plain text, estimated from runs of letters, digits, punctuation, white space,
 * base64/hex-like runs and CJK characters. Linear, no allocation. */
int64_t tokens_of_text(const char *text, size_t size);

/* Tokens of a message as a provider receives it: content (text, and text of blocks),
 * calls (name and arguments), results, and an overhead for each message. Other fields
 * count nothing. Works on the JSON text without decoding it into memory. */
int64_t tokens_of_message(const message *m);

/* The margin of an estimate: low and high for n estimated tokens. */
void tokens_margin(int64_t estimated, int64_t *low, int64_t *high);
/* The same for n tokens of a fitted count. */
void tokens_fitted_margin(int64_t n, int64_t *low, int64_t *high);
/* The same for n tokens whose text was counted exactly: only for some models it is
 * known what a provider adds around messages, calls and results. */
void tokens_framing_margin(int64_t n, int64_t messages, int64_t *low, int64_t *high);

#endif
