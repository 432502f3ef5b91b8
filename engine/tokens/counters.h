/*
 * counters.h: the sources that count a text by themselves: encodings, the host's
 * counter, the estimate.
 *
 * A store has one of these. An encoding is opened once, when it is first needed. If it
 * does not open, or cannot count a text, the next source counts it; this is never an
 * error. Thread-safe.
 */
#ifndef TOKENS_COUNTERS_H
#define TOKENS_COUNTERS_H

#include "base/alloc.h"
#include "codec/message.h"
#include "tokens/models.h"

typedef struct counters counters;

typedef struct counters_setup {
    const char *encoding; /* a name, or a path; NULL: the model's */
    const char *
        folders; /* to look up names in, separated by ':'; NULL: where it was installed */
    int64_t (*count)(void *ud, const char *text, size_t size); /* the host's, or NULL */
    void *ud;
    const allocator *alloc; /* outlives them */
} counters_setup;

/* NULL: no memory. What setup points to is copied. */
counters *counters_new(const counters_setup *setup);
void counters_free(counters *c);

/* The best available unit for a model (size 0: unknown). */
token_unit counters_unit(counters *c, const char *model, size_t size);
/* The exact unit for a model, whether or not its encoding is installed; -1: none. */
int counters_exact(const counters *c, const char *model, size_t size);

/* Tokens of a text in a unit. If that cannot count it, in the unit that *by returns. */
int64_t counters_text(counters *c, token_unit unit, const char *text, size_t size,
                      token_unit *by);
/* The same for a message, with what a model of that kind (NULL: unknown) adds around
 * it. */
int64_t counters_message(counters *c, token_unit unit, const model_kind *kind,
                         const message *m, token_unit *by);

/* Adds to a count what is sent with the messages: tool definitions (a JSON array, or
 * empty) and a system prompt (text, or empty). INVALID: tools is not a JSON array. */
sessile_status counters_beside(counters *c, sessile_slice model, sessile_slice tools,
                               sessile_slice system, sessile_tokens *out,
                               sessile_error *err);

/* Why a requested encoding is not used, copied into out; "" when none failed. */
void counters_why(counters *c, char *out, size_t size);

#endif
