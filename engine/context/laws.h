/*
 * laws.h: the laws of context, judged on what a proposal does. Plain functions over
 * lists.
 *
 * `before` is the context when the pipeline began, `after` is what the proposal makes of
 * it (messages that the proposal inserts have keys with entry SESSILE_NO_ID). What the
 * log already was is never held against a policy: a pair that was broken before may stay
 * broken.
 */
#ifndef CONTEXT_LAWS_H
#define CONTEXT_LAWS_H

#include "context/context.h"

typedef enum law {
    LAW_NONE = 0,
    LAW_PAIRS,
    LAW_OPEN_WORK,
    LAW_TRUTH,
    LAW_ORDER,
    LAW_PINNED,
    LAW_PROGRESS,
    LAW_FLOOR,
    LAW_ACCOUNT,
    LAW_BUDGET,
    LAW_BOUNDS
} law;
const char *law_name(law l); /* "pairs" */

/* A message that the proposal writes. */
typedef struct inserted_message {
    char *json; /* checked JSON text, owned by the proposal */
    size_t size;
    item columns; /* key {SESSILE_NO_ID, number from 1} */
    message_link *links;
    sessile_key *covers, *replaces; /* keys of `before`, flattened, ascending */
    size_t cover_count, replace_count;
    int invalid_role; /* it speaks as system, developer, assistant or model, or as a tool
                         without a call, and does not replace a message of the same role,
                         and that one alone */
    int new_call;     /* it has a call that the one message it replaces does not have */
    const char *of_model; /* what it has that only a model writes, where the one message
                             it replaces has nothing of the kind; or NULL */
    int has_name;         /* a hand-built message that says it is an entry … */
    sessile_key name;     /* … this one; entry SESSILE_NO_ID: it is none at all */
} inserted_message;

typedef struct judgement {
    law broken;        /* LAW_NONE: the proposal may pass */
    sessile_key key;   /* the item it is about; entry SESSILE_NO_ID: none */
    char message[256]; /* a sentence with ids */
} judgement;

typedef struct laws_input {
    const context *before, *after;
    const pairing *before_pairs;
    const inserted_message *inserted; /* index n - 1 */
    size_t inserted_count;
    int64_t window, reserve; /* window 0: unlimited */
    uint32_t floor;          /* law 7: newest messages that stay */
    uint64_t result_limit;   /* law 10: bytes of all puts' text */
} laws_input;

/* Laws 1-5, 7, 10, in that order; the first broken one. NOMEM. */
sessile_status laws_check(const laws_input *in, judgement *out, const allocator *a,
                          sessile_error *err);
/* Tokens that messages may use: window - reserve, at least 0. */
int64_t laws_room(int64_t window, int64_t reserve);
/* Law 7 in numbers: how many of the newest messages it keeps. */
size_t laws_floor(const context *before, uint32_t floor, int64_t window, int64_t reserve);
/* Law 6: taking anything out leaves fewer tokens. Also to be run at the end. */
void laws_progress(const laws_input *in, judgement *out);
/* Law 9: tokens by which after exceeds window - reserve; 0: it fits. */
int64_t laws_cannot_fit(const context *after, int64_t window, int64_t reserve);
/* Law 8: one removal for each item of before that is not in after, in order of before.
 * Appends to *out by mem_grow. 0 or -1. */
int laws_account(const laws_input *in, sessile_removal **out, size_t *count,
                 size_t *capacity, const allocator *a);

#endif
