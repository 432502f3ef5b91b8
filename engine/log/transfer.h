/*
 * transfer.h: the transfer of one log into another store, in steps.
 *
 *   transfer_begin(&t, &options, alloc, &err);
 *   while ((status = transfer_step(t, &err)) == SESSILE_NEEDS) …   // one piece each
 *   transfer_get_info(t, &info);                                   // after OK
 *   transfer_free(t);
 *
 * Verbatim (to_keys NULL): copies the bytes up to the last commit, so that ids, tags and
 * ciphertext are the same. No key is needed. Resealed: every entry is sealed again under
 * a new data key of the target store. If the target has a log of that name, it is
 * compared first: a log that is equal as far as it goes is continued, one that differs is
 * left alone.
 *
 * The source is only read: it is locked shared at most, nothing is repaired, no index is
 * written. If a transfer is interrupted, the target store has the whole log, or a
 * beginning of it that ends with a write, or none. The same call continues from there.
 */
#ifndef LOG_TRANSFER_H
#define LOG_TRANSFER_H

#include "log/log.h"

typedef struct transfer transfer;

/* Strings are borrowed until transfer_free(). */
typedef struct transfer_options {
    store *from, *to;
    const keyring *from_keys;  /* NULL: sealed lines are not opened, only their layout is
                                  checked. Verbatim only. */
    const keyring *to_keys;    /* NULL: verbatim; else resealed under these */
    const char *folder, *name; /* of the source */
    const char *to_folder, *to_name; /* of the target */
    const char *user;                /* resealed: keyring_user_name() of to_keys, or "" */
    uint64_t limit;                  /* bytes of the source that are read at most */
    int compare;    /* 1: writes nothing, says in transfer_info whether it is there */
    int replace;    /* 1: a target that differs is kept aside, and replaced */
    int timeout_ms; /* for the lock of the target */
    unsigned depth; /* of entries that are opened */
    const log_index_callbacks *callbacks; /* whose index proves what the source must have;
                                 NULL: none. Needs from_keys. */
} transfer_options;

typedef enum transfer_result {
    TRANSFER_COPIED,    /* the target did not exist */
    TRANSFER_CONTINUED, /* the target had the beginning */
    TRANSFER_KEPT,      /* the target had all of it */
    TRANSFER_AHEAD,     /* the target had all of it, and more behind it */
    TRANSFER_REPLACED,  /* the target differed, and is kept aside */
    TRANSFER_DIFFERS,   /* the target differs, and was left alone */
    TRANSFER_SHORT /* compare: the target does not exist, or has only the beginning; or it
                      is whole, and the source is damaged behind it */
} transfer_result;

typedef struct transfer_info {
    transfer_result result;
    uint64_t entries, bytes; /* of the source that count */
    uint64_t unfinished; /* bytes behind its last commit, which were never acknowledged */
    sessile_error damage; /* DAMAGED, TRUNCATED: all bytes were transferred as they are;
                             OK: none was seen */
} transfer_info;

/* NOTFOUND: the source does not exist. SEALED, DAMAGED: its first line says so.
 * UNSUPPORTED. */
sessile_status transfer_begin(transfer **out, const transfer_options *options,
                              const allocator *a, sessile_error *err);
/* Transfers one piece. NEEDS: there is more. Resealed, damage is an error: DAMAGED,
 * TRUNCATED. CONFLICT: somebody else is writing the target. IO, FULL, BUSY, NOMEM. After
 * an error: transfer_free(). */
sessile_status transfer_step(transfer *t, sessile_error *err);
/* Bytes of the source that have been transferred. */
uint64_t transfer_done(const transfer *t);
/* 1 when the error came from the target store. */
int transfer_target_failed(const transfer *t);
/* The user whose secret seals the source, as keyring_user_name(); "" */
const char *transfer_user(const transfer *t);
void transfer_get_info(const transfer *t, transfer_info *out);
void transfer_free(transfer *t);

#endif
