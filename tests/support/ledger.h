/*
 * ledger.h: what a judge outside the system knows: which messages writers have sent, and
 * what they were told of each. In the end it is compared with what the logs hold.
 *
 * A message names itself: its writer, and its number among those of that writer. A writer
 * sends one after the other, into one session or several. One that dies is another writer
 * when it starts again; of its last message nobody was told anything.
 *
 * The test keeps the ledger itself (ledger_note), or each writer, in whatever process,
 * keeps a journal in a folder, which ledger_read() makes one ledger of. A journal is a
 * file of lines, so a writer in any language can keep one (ledger_journal below).
 */
#ifndef SUPPORT_LEDGER_H
#define SUPPORT_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "sessile.h"

typedef enum ledger_outcome {
    LEDGER_NONE = 0,     /* sent; the writer died, or the call has not returned */
    LEDGER_ACKNOWLEDGED, /* must be there once */
    LEDGER_REFUSED,      /* must not be there */
    LEDGER_UNKNOWN       /* the writer was told that nobody knows: at most once */
} ledger_outcome;

typedef struct ledger ledger;
ledger *ledger_new(void);
void ledger_free(ledger *l);

/* The number of a new writer: 0, 1, … */
unsigned ledger_writer(ledger *l);
/* Message `number` of a writer is about to be sent, into the session of that id. A writer
 * that never says so may have one message more in the logs than it has outcomes. */
void ledger_sent(ledger *l, unsigned writer, unsigned number, const char *session);
/* It had this outcome, and became that entry (SESSILE_NO_ID: the writer was not told
 * which). Numbers of a writer are noted in order, without gaps. */
void ledger_note(ledger *l, unsigned writer, unsigned number, ledger_outcome outcome,
                 sessile_id entry);

/* What a message's content begins with, less than 64 bytes. */
void ledger_text(char out[64], unsigned writer, unsigned number);

/* ------------------------------------------------------------------ journals */

/*
 * The journal of one writer: FOLDER/WRITER, with these lines, each written whole:
 *
 *     sent NUMBER SESSION              before the message is sent
 *     acknowledged NUMBER ENTRY        ENTRY in decimal; -: not known
 *     refused NUMBER
 *     unknown NUMBER
 */
typedef struct ledger_journal {
    int fd;
    unsigned writer, next;
} ledger_journal;

/* writer: a number that no other has in this folder. These end the process, with a
 * sentence, when the disk fails: nothing may be sent that is not written down. */
void ledger_journal_open(ledger_journal *j, const char *folder, unsigned writer);
void ledger_journal_close(ledger_journal *j);
/* The next message's number and text. It is in the journal when the call returns. */
unsigned ledger_journal_send(ledger_journal *j, const char *session, char text[64]);
void ledger_journal_note(ledger_journal *j, unsigned number, ledger_outcome outcome,
                         sessile_id entry);

/* A ledger of all journals in a folder; a line that is none fails the test. */
ledger *ledger_read(const char *folder);

/* ------------------------------------------------------------------ the judgement */

typedef struct ledger_sum {
    unsigned long acknowledged, refused, unknown; /* as noted */
    unsigned long there;                          /* messages in the logs */
    unsigned long lost;                           /* acknowledged and not there */
    unsigned long twice;                          /* there more than once */
    unsigned long revoked;                        /* refused and there all the same */
    unsigned long invented;                       /* there, and nobody sent it */
    unsigned long astray;   /* in another session, or another entry, than was said */
    unsigned long unsaid;   /* there without an acknowledgement: unknown, or cut short */
    unsigned long disorder; /* a writer's own message before an older one of its own */
    unsigned long off_path; /* messages that are not on the path to the head */
} ledger_sum;

/* Reads the whole session, or each session of a store, and compares. What is wrong is
 * also printed. An error of the engine's fails the test. */
ledger_sum ledger_compare(ledger *l, sessile_session *session);
ledger_sum ledger_compare_all(ledger *l, sessile_store *store);

/* Fails the test unless a check of the session finds nothing at all. */
void ledger_check_clean(sessile_store *store, const char *id);

/* Fails the test unless nothing was lost, doubled, taken back, invented or led astray,
 * and nothing is out of order. */
void ledger_check_sum(const ledger_sum *sum);

#endif
