/*
 * audit.h: the log of who did what, whose past nobody can rewrite.
 *
 * Events go to the first lane (lane.h) whose lock is free, and are sealed (seal.h). An
 * event holds no content and no credential: what it says of a user is a pseudonym, which
 * the user's own secret turns back into a name.
 *
 * An audit_log is thread-safe: a call holds its mutex. It belongs to the process that
 * opened it (FORKED).
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include "audit/seal.h"
#include "session/store_handle.h"

typedef enum audit_class {
    AUDIT_READ,  /* counted; written with the next other event, or at 64 different ones */
    AUDIT_WRITE, /* written before the call returns, synced with the next seal */
    AUDIT_SYNCED /* synced before the call returns: before and after what cannot be
                    undone. Who wrote the one after calls audit_seal() */
} audit_class;

typedef enum audit_outcome {
    AUDIT_SUCCESS,
    AUDIT_FAILURE,
    AUDIT_INTENT, /* it is about to be done */
    AUDIT_UNKNOWN
} audit_outcome;

/* The outcome of that name; -1: there is none. */
int audit_outcome_of(sessile_slice name);

/* One event. Every text may be empty, and is left out then. */
typedef struct audit_event {
    struct {
        sessile_slice user, actor, agent, role, method, key;
    } who;
    struct {
        sessile_slice name, permission; /* name: the operation's */
        sessile_slice session;
        sessile_slice owner; /* whose it is, if not the user's: kept as a hash */
        sessile_id entry;    /* SESSILE_NO_ID: none */
    } operation;
    struct {
        audit_outcome is;
        sessile_status status;
        sessile_slice rule; /* that refused it */
    } outcome;
    struct {
        sessile_slice request, source; /* the host's words */
    } from;
    sessile_slice details; /* JSON of an object, built by the engine */
    uint64_t same; /* of AUDIT_READ: a number that equal events have, which are counted
                      without being built; 0: none */
} audit_event;
void audit_event_init(audit_event *e);

/* Names one event: "lane-part/entry", as "00-000/0000002a". */
#define AUDIT_ID 32

typedef struct audit_log audit_log;
typedef struct audit_options {
    uint64_t part_bytes; /* of a log, before the next one is begun; 0: 64 MiB */
} audit_options;
/*
 * Opens the audit of a store; it is made by its first event. options may be NULL.
 * UNSUPPORTED: the store keeps no blobs, or is opened over records.
 */
sessile_status audit_open(audit_log **out, store_core *st, const audit_options *options,
                          sessile_error *err);
/*
 * Writes an event, or counts it. id (may be NULL): what names it; "" if it was counted.
 * Nothing may be done whose AUDIT_INTENT fails, and after any error the caller reports
 * it: the event is not in the audit. More than 60 equal failures within a minute are
 * counted, and written as one when it is over.
 * IO, FULL; BUSY: no lane within the store's timeout; FORKED.
 */
sessile_status audit_write(audit_log *a, audit_class class, const audit_event *e,
                           char id[AUDIT_ID], sessile_error *err);
/* Writes what was counted, and syncs what was written. */
sessile_status audit_flush(audit_log *a, sessile_error *err);
/* The same, and seals the lanes that this handle has written to. */
sessile_status audit_seal(audit_log *a, sessile_error *err);
/* Flushes and frees; an error of the flush is returned. NULL is ignored. */
sessile_status audit_close(audit_log *a, sessile_error *err);
/* The public key that vouches for the audit, in hex: to be kept elsewhere. Makes the
 * audit when there is none. */
sessile_status audit_root(audit_log *a, char out[SEAL_HEX], sessile_error *err);

/* What stands for the owner of a session who is not the caller: the same for ever, and no
 * name. */
void audit_owner_of(const audit_log *a, sessile_slice user, char out[PSEUDONYM_SIZE]);

/* The store that keeps it. */
store_core *audit_store(const audit_log *a);

/* The bytes after which a log is followed by the next: all who write must agree. */
uint64_t audit_part_bytes(const audit_log *a);

/* The seeds of all lanes under the newest master key, before others are dropped. */
sessile_status audit_reseal(store_core *st, sessile_error *err);

/* ---- texts (audit_event.c) */

/* Appends a text as a JSON string: cut at a size, and what is not UTF-8 is replaced. */
void audit_put_text(buf *out, sessile_slice text);
/* Appends the data of an event up to its count, which audit_event_end() appends: equal
 * events have equal beginnings. user, owner: what stands for them, or "". */
void audit_event_begin(buf *out, const audit_event *e, const char *user,
                       const char *owner);
void audit_event_end(buf *out, uint64_t count);

#endif
