/*
 * meter.h: the number of tokens of the context at an entry, and its margin.
 *
 * Each message was counted once, when it was written, in some unit (tokens/tokens.h). A
 * provider reports how many tokens a whole request took. A meter follows a path and keeps
 * three things: the sums of counts by unit, for the whole context and since the newest
 * report; that report; and pairs of consecutive reports with the counts between them.
 * From these pairs it fits the ratio of a unit to the model's own tokens.
 *
 * The result depends only on the newest METER_MESSAGES messages of the path. So every
 * handle, and every replay of the same entries, computes the same figures.
 */
#ifndef SESSION_METER_H
#define SESSION_METER_H

#include "sessile.h"
#include "session/cores.h"
#include "tokens/tokens.h"

struct context;

enum {
    METER_SEGMENTS = 64,   /* a fit uses the newest ones, up to this many */
    METER_LEAST = 5,       /* and needs at least this many useful ones */
    METER_MESSAGES = 1024, /* older reports and segments are ignored */
    METER_UNIT = 1000000   /* ratios are in millionths */
};

typedef struct token_sums {
    int64_t by[TOKEN_UNITS];
    int64_t messages;
} token_sums;
void token_sums_add(token_sums *sums, unsigned unit, int64_t tokens);

/* From one report to the next. */
typedef struct meter_segment {
    uint32_t messages; /* on the path, where the segment begins */
    uint8_t unit;      /* of all its messages */
    int64_t counted;   /* 0: not usable for a fit */
    int64_t reported;
} meter_segment;

/* The model's tokens for one token of a unit, times METER_UNIT; 0: not known. */
typedef struct meter_ratio {
    int64_t ratio;
    unsigned samples;
} meter_ratio;

typedef struct token_meter {
    int known;         /* 0: it must be rebuilt */
    sessile_id upto;   /* the entry at which the figures hold */
    sessile_id report; /* the newest entry that reports usage, or 0 */
    int64_t reported;
    token_sums since; /* of the messages after it */
    int all_known;
    token_sums all; /* of the context */
    meter_segment segments[METER_SEGMENTS];
    unsigned next, count;
    sessile_id outside_of; /* a report before a compaction, and the tokens that it
                              counted outside the messages */
    int64_t outside;
    int fit_known;
    meter_ratio fit[TOKEN_UNITS];
} token_meter;

/* ---- meter_follow.c */

/* Adds entry id, the next one of the path. reported: its usage, if it reports any. */
void meter_step(token_meter *m, const session_core *s, sessile_id id, int64_t reported);
/* Moves the handle's meter to entry id, which was just folded, from its parent. */
void meter_follow(session_core *s, sessile_id id, int64_t reported);
/* Discards the handle's meter; it is rebuilt when it is needed. */
void meter_forget(session_core *s);
/* The sums of a context's items. */
void meter_sum(const struct context *c, token_sums *out);
/* The name of the least exact unit among the counts of a context. Static. */
const char *meter_source(const struct context *c);

/* ---- meter.c */

/* The ratio of each unit at an entry; 0 if it is not known. */
sessile_status session_fit_locked(session_core *s, sessile_id at,
                                  meter_ratio out[TOKEN_UNITS], sessile_error *err);
/* The tokens that the newest report near `at` counted outside the messages (a system
 * prompt that is not an entry, tools): the next request contains them too. 0: not known.
 */
sessile_status session_outside_locked(session_core *s, sessile_id at, int64_t *out,
                                      sessile_error *err);
/* Converts a sum of counts into tokens, with their source and margin. */
void meter_read(const token_sums *sums, const meter_ratio fit[TOKEN_UNITS], int exact,
                sessile_tokens *out);
/* Converts a count of one unit into the model's tokens. */
int64_t meter_scale(int64_t tokens, const meter_ratio *ratio);
/* Converts the counts of a context's items into the model's tokens, if a ratio is known.
 */
void meter_scale_context(struct context *c, const meter_ratio fit[TOKEN_UNITS]);
#endif
