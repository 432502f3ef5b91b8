/*
 * count.h: tokens of messages, texts and contexts, for the model of a session.
 */
#ifndef SESSION_COUNT_H
#define SESSION_COUNT_H

#include "session/handle.h"

/* The unit in which a message was counted: a token_unit. */
unsigned node_unit(const node *n);
/* The unit that counts exactly for the session's model, or -1. */
int session_exact_unit(const session_core *s);
/* The model of a session; empty: none was named. (model.c) */
sessile_slice session_model(const session_core *s);
/* The tokens of a message for that model. The caller holds the mutex only for _locked. */
token_count session_count(session_core *s, const message *m);
token_count session_count_locked(session_core *s, const message *m);
/* Counts messages and texts outside a session. */
typedef struct counting {
    store_core *store;
    sessile_slice model;
    const model_kind *kind;
    token_unit unit;
    int exact;
    token_sums sums;
    buf text;
} counting;
/* The caller sets store and model first, and frees text afterwards. */
void counting_begin(counting *c);
sessile_status counting_add(counting *c, sessile_slice text, sessile_tokens *one,
                            sessile_error *err);
void counting_end(const counting *c, sessile_tokens *out);
void session_count_text(const store_core *st, sessile_slice text, sessile_tokens *out);
/* See sessile_count_tokens_with(). */
sessile_status session_tokens_for_locked(session_core *s, sessile_id at,
                                         sessile_slice model, sessile_slice tools,
                                         sessile_slice system, sessile_tokens *out,
                                         sessile_error *err);
/* Tokens of the context at the head: the newest report plus the messages after it; if a
 * compaction came after the report, the counts of all messages. (meter.c) */
sessile_status session_tokens_locked(session_core *s, sessile_tokens *out,
                                     sessile_error *err);
/* The same at any path entry. *messages_only is 1 if the figure does not include the
 * system prompt and the tools that are sent with the messages. */
sessile_status session_tokens_at_locked(session_core *s, sessile_id at,
                                        sessile_tokens *out, int *messages_only,
                                        sessile_error *err);

/* The same for context c, as it will be counted after a compaction at `at` has written
 * it. */
sessile_status session_tokens_with_locked(session_core *s, sessile_id at,
                                          const struct context *c, sessile_tokens *out,
                                          sessile_error *err);

/* See the function of this name in sessile.h. (usage.c) */
sessile_status session_usage_groups(session_core *s, sessile_usage_by by,
                                    sessile_usage_group **out, size_t *count,
                                    sessile_error *err);

#endif
