/*
 * transfer.h: one log on its way into another store, in pieces.
 *
 *   transfer_begin(&c, &wish, alloc, &err);
 *   while ((st = transfer_step(c, &err)) == SESSILE_NEEDS) …    // a piece each
 *   transfer_get_info(c, &about);                                   // after OK
 *   transfer_free(c);
 *
 * As it stands (to_keys NULL): the bytes up to the last commit, so that ids, tags and
 * ciphertext are the same; no key is needed. Sealed anew: every entry as it is, under a
 * data key of the other store. A log that is there already is compared with it: what is
 * equal as far as it goes is continued, what differs is left alone.
 *
 * The source is only read: no lock but a shared one, nothing healed, no index written.
 * Interrupted anywhere, the other store has the log whole, or a beginning of it that ends
 * with a write, or none; the same call goes on from there.
 */
#ifndef LOG_TRANSFER_H
#define LOG_TRANSFER_H

#include "log/log.h"

typedef struct transfer transfer;

/* What is wanted. Strings are borrowed until transfer_free(). */
typedef struct transfer_options {
    store *from, *to;
    const keyring *from_keys;  /* NULL: sealed lines are not opened: their layout alone is
                                  judged. Only as it stands. */
    const keyring *to_keys;    /* NULL: as it stands; else sealed anew under these */
    const char *folder, *name; /* of the source */
    const char *to_folder, *to_name; /* of the other one */
    const char *user; /* sealed anew: as keyring_user_name() of to_keys has it, or "" */
    uint64_t limit;   /* so many bytes of the source are looked at, no more */
    int compare;      /* 1: nothing is written: transfer_info says whether it is there */
    int replace;      /* 1: a log there that differs is kept aside, and replaced */
    int timeout_ms;   /* for the lock of the log there */
    unsigned depth;   /* of entries, for those that are opened */
    const log_index_callbacks *callbacks; /* whose index is heard as a proof of what is
                                 missing; NULL: none. With from_keys. */
} transfer_options;

typedef enum transfer_result {
    TRANSFER_COPIED,    /* it was not there */
    TRANSFER_CONTINUED, /* its beginning was */
    TRANSFER_KEPT,      /* all of it was */
    TRANSFER_AHEAD,     /* all of it was, and more behind it */
    TRANSFER_REPLACED,  /* another one was there, and is kept aside */
    TRANSFER_DIFFERS,   /* another one is there, and was left alone */
    TRANSFER_SHORT /* compare: it is not there, or only its beginning; or what is there
                   is whole, and the source is damaged behind it */
} transfer_result;

typedef struct transfer_info {
    transfer_result result;
    uint64_t entries, bytes; /* of the source that count */
    uint64_t unfinished; /* bytes behind its last commit, which were never acknowledged */
    sessile_error damage; /* DAMAGED, TRUNCATED: all its bytes were carried as they stand;
                             OK: none was seen */
} transfer_info;

/* NOTFOUND: there is no such log. SEALED, DAMAGED: its first line says so. UNSUPPORTED.
 */
sessile_status transfer_begin(transfer **out, const transfer_options *wish,
                              const allocator *a, sessile_error *err);
/* Goes on by a piece: NEEDS while there is more. Sealed anew, damage is an error:
 * DAMAGED, TRUNCATED. CONFLICT: somebody else is writing it there. IO, FULL, BUSY, NOMEM.
 * After an error: transfer_free(). */
sessile_status transfer_step(transfer *c, sessile_error *err);
/* How many bytes of the source have been dealt with. */
uint64_t transfer_done(const transfer *c);
/* 1 when what failed was the other store. */
int transfer_failed_there(const transfer *c);
/* The user whose secret seals the source, as keyring_user_name(); "" */
const char *transfer_user(const transfer *c);
void transfer_get_info(const transfer *c, transfer_info *out);
void transfer_free(transfer *c);

#endif
