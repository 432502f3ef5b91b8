/*
 * ledger.h: what writers were told, kept by somebody who does not die with them, and the
 * comparison with what a session holds.
 *
 * Each message names itself: writer, life of that writer, number in that life. A writer
 * makes them one after the other and reports the outcome of each. Of a life that was
 * killed at most the one that had no outcome yet may be there, once.
 */
#ifndef NODES_LEDGER_H
#define NODES_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "sessile.h"

typedef enum ledger_outcome {
    LEDGER_NONE = 0,     /* the writer died, or the call has not returned */
    LEDGER_ACKNOWLEDGED, /* must be there once */
    LEDGER_REFUSED,      /* must not be there */
    LEDGER_UNKNOWN       /* the engine said that it does not know: at most once */
} ledger_outcome;

typedef struct ledger ledger;
ledger *ledger_new(size_t writers);
void ledger_free(ledger *l);

/* A writer starts again: the number of its life. */
unsigned ledger_life(ledger *l, size_t writer);
/* Call number `seq` of a life, which comes after seq - 1, had this outcome. */
void ledger_note(ledger *l, size_t writer, unsigned life, unsigned seq,
                 ledger_outcome outcome);

/* The text of a message, less than 64 bytes. */
void ledger_text(char out[64], size_t writer, unsigned life, unsigned seq);

typedef struct ledger_sum {
    unsigned long acknowledged, refused, unknown; /* as reported */
    unsigned long there;                          /* messages of the session */
    unsigned long lost;                           /* acknowledged and not there */
    unsigned long twice;                          /* there more than once */
    unsigned long revoked;                        /* refused and there all the same */
    unsigned long invented;                       /* there, and nobody sent it */
    unsigned long unsaid;   /* there without an acknowledgement: unknown, or cut short */
    unsigned long disorder; /* a writer's own message before an older one of its own */
    unsigned long off_path; /* messages that are not on the path to the head */
} ledger_sum;

/* Reads the whole session and compares. What is wrong is also printed, some of it. An
 * error of the engine's fails the test. */
ledger_sum ledger_compare(ledger *l, sessile_session *session);

/* Fails the test unless a check of the session finds nothing at all. */
void ledger_check_clean(sessile_store *store, const char *id);

/* Nothing was lost, doubled or taken back, and nothing is out of order. */
void ledger_check_sum(const ledger_sum *sum);

#endif
