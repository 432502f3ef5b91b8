/*
 * meter.h: how many tokens the context at an entry takes, and how well that is known.
 *
 * Each message was counted once, when it was written, in some unit (tokens/tokens.h). A
 * provider that reports usage says what all of it took. A meter follows a path and keeps
 * three things: sums of counts by unit, of the context and since the newest report; that
 * report; and the pairs of newest reports with the counts between them, from which the
 * ratio of a unit to the model's own tokens is fitted.
 *
 * All of it follows from the path alone, from its newest METER_MESSAGES messages, so
 * that every handle, and every replay of the same entries, gives the same figures.
 */
#ifndef SESSION_METER_H
#define SESSION_METER_H

#include "sessile.h"
#include "tokens/tokens.h"

struct context;

enum {
    METER_SEGMENTS = 64,   /* a fit uses this number of the newest ones */
    METER_LEAST = 5,       /* and needs this number of useful ones */
    METER_MESSAGES = 1024, /* no report or segment further back counts */
    METER_UNIT = 1000000   /* ratios are in parts of it */
};

typedef struct token_sums {
    int64_t by[TOKEN_UNITS];
    int64_t messages;
} token_sums;
void token_sums_add(token_sums *sums, unsigned unit, int64_t tokens);

/* From one report to the next. */
typedef struct meter_segment {
    uint32_t messages; /* on the path where it begins */
    uint8_t unit;      /* of all its messages */
    int64_t counted;   /* 0: it says nothing */
    int64_t reported;
} meter_segment;

/* Model's tokens for one of a unit, in METER_UNIT; 0: not known. */
typedef struct meter_ratio {
    int64_t ratio;
    unsigned samples;
} meter_ratio;

typedef struct token_meter {
    int known;         /* 0: it has to be rebuilt */
    sessile_id upto;   /* the entry it is for */
    sessile_id report; /* the newest entry that reports usage, or 0 */
    int64_t reported;
    token_sums since; /* of the messages after it */
    int all_known;
    token_sums all; /* of the context */
    meter_segment segments[METER_SEGMENTS];
    unsigned next, count;
    sessile_id outside_of; /* a report before a compaction, and what it counted beside
                              the messages */
    int64_t outside;
    int fit_known;
    meter_ratio fit[TOKEN_UNITS];
} token_meter;

/* ---- meter_follow.c */

/* Adds entry id, the next one of the path. reported: its usage, if it reports any. */
void meter_step(token_meter *m, const sessile_session *s, sessile_id id,
                int64_t reported);
/* Entry id was folded: the handle's meter follows to it from its parent. */
void meter_follow(sessile_session *s, sessile_id id, int64_t reported);
/* The handle's meter will be rebuilt when it is needed. */
void meter_forget(sessile_session *s);
/* The sums of a context's items. */
void meter_sum(const struct context *c, token_sums *out);
/* In what the counts of a context were taken, the least of them. Static. */
const char *meter_source(const struct context *c);

/* ---- meter.c */

/* How counts are read at an entry: the ratio of each unit, 0 where none is known. */
sessile_status session_fit_locked(sessile_session *s, sessile_id at,
                                  meter_ratio out[TOKEN_UNITS], sessile_error *err);
/* What the newest report near `at` counted beside the messages (a system prompt that is
 * no entry, tools), and the next request will hold too; 0: not known. */
sessile_status session_outside_locked(sessile_session *s, sessile_id at, int64_t *out,
                                      sessile_error *err);
/* Tokens of a sum of counts, what they come from, and their margin. */
void meter_read(const token_sums *sums, const meter_ratio fit[TOKEN_UNITS], int exact,
                sessile_tokens *out);
/* A count of one unit in the model's tokens. */
int64_t meter_scale(int64_t tokens, const meter_ratio *ratio);
/* The counts of a context's items in the model's own tokens, where a ratio is known. */
void meter_scale_context(struct context *c, const meter_ratio fit[TOKEN_UNITS]);
#endif
