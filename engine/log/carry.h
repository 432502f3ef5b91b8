/*
 * carry.h: one log on its way into another store, in pieces.
 *
 *   carry_begin(&c, &wish, alloc, &err);
 *   while ((st = carry_step(c, &err)) == SESSILE_NEEDS) …    // a piece each
 *   carry_tell(c, &about);                                   // after OK
 *   carry_free(c);
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
#ifndef LOG_CARRY_H
#define LOG_CARRY_H

#include "log/log.h"

typedef struct carry carry;

/* What is wanted. Strings are borrowed until carry_free(). */
typedef struct carry_wish {
    store *from, *to;
    const keyring *from_keys;  /* NULL: sealed lines are not opened: their layout alone is
                                  judged. Only as it stands. */
    const keyring *to_keys;    /* NULL: as it stands; else sealed anew under these */
    const char *folder, *name; /* of the source */
    const char *to_folder, *to_name; /* of the other one */
    const char *user; /* sealed anew: as keyring_user_name() of to_keys has it, or "" */
    uint64_t limit;   /* so many bytes of the source are looked at, no more */
    int compare;      /* 1: nothing is written: carry_about says whether it is there */
    int replace;      /* 1: a log there that differs is kept aside, and replaced */
    int timeout_ms;   /* for the lock of the log there */
    unsigned depth;   /* of entries, for those that are opened */
    const log_keeper *keeper; /* whose index is heard as a witness of what is missing;
                                 NULL: none. With from_keys. */
} carry_wish;

typedef enum carry_result {
    CARRY_COPIED,    /* it was not there */
    CARRY_CONTINUED, /* its beginning was */
    CARRY_KEPT,      /* all of it was */
    CARRY_AHEAD,     /* all of it was, and more behind it */
    CARRY_REPLACED,  /* another one was there, and is kept aside */
    CARRY_DIFFERS,   /* another one is there, and was left alone */
    CARRY_SHORT      /* compare: it is not there, or only its beginning; or what is there
                        is whole, and the source is damaged behind it */
} carry_result;

typedef struct carry_about {
    carry_result result;
    uint64_t entries, bytes; /* of the source that count */
    uint64_t unfinished; /* bytes behind its last commit, which were never acknowledged */
    sessile_error damage; /* DAMAGED, TRUNCATED: all its bytes were carried as they stand;
                             OK: none was seen */
} carry_about;

/* NOTFOUND: there is no such log. SEALED, DAMAGED: its first line says so. UNSUPPORTED.
 */
sessile_status carry_begin(carry **out, const carry_wish *wish, const allocator *a,
                           sessile_error *err);
/* Goes on by a piece: NEEDS while there is more. Sealed anew, damage is an error:
 * DAMAGED, TRUNCATED. CONFLICT: somebody else is writing it there. IO, FULL, BUSY, NOMEM.
 * After an error: carry_free(). */
sessile_status carry_step(carry *c, sessile_error *err);
/* How many bytes of the source have been dealt with. */
uint64_t carry_done(const carry *c);
/* 1 when what failed was the other store. */
int carry_failed_there(const carry *c);
/* The user whose secret seals the source, as keyring_user_name(); "" */
const char *carry_user(const carry *c);
void carry_tell(const carry *c, carry_about *out);
void carry_free(carry *c);

#endif
