/*
 * count.h: tokens of messages, texts and contexts, for the model of a session.
 */
#ifndef SESSION_COUNT_H
#define SESSION_COUNT_H

#include "session/handle.h"

/* In what a message was counted: a token_unit. */
unsigned node_unit(const node *n);
/* The unit that is the model's own, or -1. */
int session_exact_unit(const sessile_session *s);
/* The model that a session is for; empty: nobody says. (model.c) */
sessile_slice session_model(const sessile_session *s);
/* A message counted for it. With or without the mutex. */
token_count session_count(sessile_session *s, const message *m);
token_count session_count_locked(sessile_session *s, const message *m);
/* Messages and texts that are in no session. */
typedef struct counting {
    sessile_store *store;
    sessile_slice model;
    const model_kind *kind;
    token_unit unit;
    int exact;
    token_sums sums;
    buf text;
} counting;
/* store and model are set; text is freed by the caller */
void counting_begin(counting *c);
sessile_status counting_add(counting *c, sessile_slice text, sessile_tokens *one,
                            sessile_error *err);
void counting_end(const counting *c, sessile_tokens *out);
void session_count_text(const sessile_store *st, sessile_slice text, sessile_tokens *out);
/* As sessile_count_tokens_with() says. */
sessile_status session_tokens_for_locked(sessile_session *s, sessile_id at,
                                         sessile_slice model, sessile_slice tools,
                                         sessile_slice system, sessile_tokens *out,
                                         sessile_error *err);
/* Tokens of the context at the head: the newest report and what follows it, when no
 * compaction came after that, else what was counted. (meter.c) */
sessile_status session_tokens_locked(sessile_session *s, sessile_tokens *out,
                                     sessile_error *err);
/* The same at any path entry. *beside: 1 when system prompt and tools that are in no
 * message are not in it yet. */
sessile_status session_tokens_at_locked(sessile_session *s, sessile_id at,
                                        sessile_tokens *out, int *beside,
                                        sessile_error *err);

/* The same for another context in its place, as it will be counted when a compaction at
 * `at` has made it. */
sessile_status session_tokens_with_locked(sessile_session *s, sessile_id at,
                                          const struct context *c, sessile_tokens *out,
                                          sessile_error *err);

/* As sessile.h says of the function of this name. (usage.c) */
sessile_status session_usage_groups(sessile_session *s, sessile_usage_by by,
                                    sessile_usage_group **out, size_t *count,
                                    sessile_error *err);

#endif
