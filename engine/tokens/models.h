/* models.h: which encoding a model has, and what its provider adds to messages. */
#ifndef TOKENS_MODELS_H
#define TOKENS_MODELS_H

#include "codec/json.h"
#include "tokens/tokens.h"

typedef struct model_kind {
    const char *prefix;   /* of names, up to punctuation or the end */
    const char *encoding; /* NULL: none is published */
    unsigned message;     /* tokens around each message */
    unsigned name;        /* more, when it has a name */
    unsigned reply;       /* once: what the reply begins with */
    unsigned tools_once;  /* when there are tools at all */
    unsigned tool; /* around each tool, if they are rendered as OpenAI does; 0: they are
                      sent as JSON */
} model_kind;

/* By a model's name: "gpt-4o-2024-08-06", "openai/gpt-4o", "azure/gpt-4o",
 * "ft:gpt-4o-mini:acme::abc", "anthropic.claude-3-5-sonnet". NULL: not known. */
const model_kind *model_find(const char *name, size_t size);

/* Counts a text in some unit; negative: cannot. */
typedef int64_t (*text_count)(void *arg, const char *text, size_t size);

/* Tokens of tool definitions, a JSON array in OpenAI's or Anthropic's form, as a model
 * of that kind (NULL: unknown) receives them. -1: cannot be counted. */
int64_t model_tools(const model_kind *kind, json tools, text_count count, void *arg,
                    const allocator *a);

#endif
