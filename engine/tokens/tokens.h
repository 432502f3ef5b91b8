/* tokens.h: how many tokens a message is. An estimate by classes of text. */
#ifndef TOKENS_TOKENS_H
#define TOKENS_TOKENS_H

#include <stdint.h>
#include "codec/message.h"

#define TOKEN_SOURCE_ESTIMATE "estimate"
#define TOKEN_SOURCE_USAGE    "usage"

/* Tokens of plain text, estimated from runs of letters, digits, punctuation, white space,
 * base64/hex-like runs and CJK characters. Linear, no allocation. */
int64_t tokens_of_text(const char *text, size_t size);

/* Tokens of a message as a provider is sent it: content (text, and text of blocks), calls
 * (name and arguments), results, and an overhead a message; other fields count nothing.
 * Works on the JSON text without decoding it into memory. */
int64_t tokens_of_message(const message *m);

/* The margin of an estimate: low and high for n estimated tokens. */
void tokens_margin(int64_t estimated, int64_t *low, int64_t *high);

#endif
