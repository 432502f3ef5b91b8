/*
 * sessile_privacy.h: what users have a right to: consent, retention, holds, erasure.
 *
 * Consent is that of a user, to being remembered by an agent: one consent for each memory
 * of a user (sessile_memory.h). sessile_consent() gives or withdraws it, whether the
 * memory is open or not.
 *
 * A hold keeps what is under it: nothing of it is removed for good, neither by a
 * deletion, nor by a purge, nor by forgetting or erasing its user. It is kept in the
 * store and binds everybody who opens it.
 *
 * Slices are borrowed for the call. Rows are one block: release it with sessile_free().
 */
#ifndef SESSILE_PRIVACY_H
#define SESSILE_PRIVACY_H

#include "sessile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ consent */

/* Zeros, and a user: the consent to the store's agent is withdrawn. */
typedef struct sessile_consent_options {
    sessile_slice agent; /* empty: the store's */
    sessile_slice user;  /* whose memory it is */
    int given;           /* 1: given; 0: withdrawn */
    int keep;            /* withdrawn: 1: what is there stays, and can be shown */
    sessile_slice text;  /* given: the words that the user was shown and agreed to */
    sessile_slice by;    /* who says so; may be empty, as the next */
    sessile_slice scope; /* to what */
} sessile_consent_options;
SESSILE_API void sessile_consent_options_init(sessile_consent_options *options);

/*
 * Gives or withdraws a consent. Giving makes the memory when it is not there. Withdrawing
 * erases every entry of the memory, unless keep is 1: *erased (may be NULL) says how
 * many. Nothing is written to a memory, or recalled from it, without a consent.
 *
 * NOTFOUND: there is no memory, so nothing to withdraw. DENIED, rule `hold:ID`: it is
 * withdrawn, and what is kept stays under that hold. INVALID: no user, or a consent that
 * is given without words: nobody could show what it is to. Other errors: as for
 * sessile_memory_erase().
 */
SESSILE_API sessile_status sessile_consent(sessile_store *store,
                                           const sessile_consent_options *options,
                                           size_t *erased, sessile_error *err);

/* The memory of a user, and the newest word about the consent to it. */
typedef struct sessile_consent_row {
    sessile_slice agent, user;
    int given;
    int64_t time_ms; /* when it was given or withdrawn; 0: never */
    sessile_slice by, text, scope;
    char text_hash[65]; /* BLAKE2b-256 of `text`, in hex; "": no text */
    uint64_t entries;   /* that are kept; erased ones left out */
} sessile_consent_row;
/* Lists them by agent; user empty: of all users. Memories that do not open are left out.
 */
SESSILE_API sessile_status sessile_consents(sessile_store *store, sessile_slice user,
                                            sessile_consent_row **out, size_t *count,
                                            sessile_error *err);

/* ------------------------------------------------------------------ holds */

/* What is held: all of a user's, all of an agent's, what an agent has of a user, or one
 * session. */
typedef struct sessile_hold_options {
    sessile_slice agent;   /* empty: every agent; of a session: the store's */
    sessile_slice user;    /* empty: every user; of a session: none */
    sessile_slice session; /* an id, or empty */
    sessile_slice reason;  /* not empty */
    sessile_slice by;      /* who wants it; may be empty */
    int64_t until_ms;      /* Unix time in milliseconds; 0: until it is released */
} sessile_hold_options;
SESSILE_API void sessile_hold_options_init(sessile_hold_options *options);

/*
 * Puts a hold, durably. *id (may be NULL) names it. What is under it can be hidden by a
 * soft deletion. Removing it is DENIED, and the rule is `hold:ID`; a purge passes it
 * over. A session need not exist.
 *
 * INVALID: it names nothing, has no reason, or would have ended. LIMIT. UNSUPPORTED: a
 * store over records. BUSY, FULL, IO: nothing was put.
 */
SESSILE_API sessile_status sessile_hold(sessile_store *store,
                                        const sessile_hold_options *options,
                                        sessile_id *id, sessile_error *err);

typedef struct sessile_hold_row {
    sessile_id id;
    sessile_slice agent, user, session, reason, by;
    int64_t time_ms, until_ms; /* until_ms 0: until it is released */
} sessile_hold_row;
/* Lists those in force, oldest first. */
SESSILE_API sessile_status sessile_holds(sessile_store *store, sessile_hold_row **out,
                                         size_t *count, sessile_error *err);
/* Ends a hold, durably. by: who decides; may be empty. NOTFOUND: none of that id is in
 * force. */
SESSILE_API sessile_status sessile_hold_release(sessile_store *store, sessile_id id,
                                                sessile_slice by, sessile_error *err);

/* ------------------------------------------------------------------ retention */

/* How long something is kept: milliseconds; 0: for ever; -1: as the wider rule says. */
typedef struct sessile_retention_rule {
    sessile_slice agent, user; /* one of them, or neither: for all */
    int64_t sessions_ms;       /* a session, after its newest entry */
    int64_t deleted_ms;        /* a session, after a soft deletion */
    int64_t memory_ms;         /* an entry of a memory, after it was written */
} sessile_retention_rule;

typedef struct sessile_retention_options {
    /* A rule for a user goes before one for an agent, and that before the one for all.
     * What no rule says is kept for ever. */
    const sessile_retention_rule *rules;
    size_t count;
    int dry_run;      /* 1: remove nothing */
    int64_t audit_ms; /* an event of the audit, after it was written; 0: for ever */
} sessile_retention_options;
SESSILE_API void sessile_retention_options_init(sessile_retention_options *options);

/* What went, or would. */
typedef struct sessile_retained {
    uint64_t sessions, bytes; /* removed, with the expired and the softly deleted ones */
    uint64_t entries;         /* of memories, erased */
    uint64_t held;            /* sessions and memories that a hold keeps */
    uint64_t closed;          /* memories that do not open, and were left alone */
    uint64_t audit_logs;      /* of the audit, removed */
    uint64_t audit_held;      /* of the audit: old, and kept since a hold is in force */
} sessile_retained;
/*
 * Removes what is kept longer than the rules say, as sessile_purge() and
 * sessile_memory_erase() do. Nothing else removes anything by itself: call it from a
 * timer.
 *
 * The audit loses whole logs, when all of their events are old; the last log of each lane
 * stays. While any hold is in force none goes: there may be events in it about what is
 * held. It is verified first, and an event is written for each log that goes.
 *
 * INVALID: a rule for an agent and a user, or a negative time. DAMAGED: the audit does
 * not hold, and nothing of it was removed. Other errors end it where it stands: call it
 * again.
 */
SESSILE_API sessile_status
sessile_purge_retention(sessile_store *store, const sessile_retention_options *options,
                        sessile_retained *out, sessile_error *err);

/* ------------------------------------------------------------------ erasure */

typedef struct sessile_erase_options {
    int dry_run; /* 1: count, and remove nothing */
} sessile_erase_options;
SESSILE_API void sessile_erase_options_init(sessile_erase_options *options);

/* What an erasure did, and what it did not reach. */
typedef struct sessile_receipt {
    int64_t time_ms;
    char subject[17]; /* the user: a hash under a key of the store, always the same */
    int shredded;     /* 1: the user's secret was destroyed; 0: a plain store, whose files
                         were removed and no more */
    uint64_t sessions, memories, bytes; /* logs that were removed, and their size */
    uint64_t shared_entries; /* erased from what agents keep for all, since they came from
                                sessions of the user */
    uint64_t consents;       /* of the user, which went with the memories */
    uint64_t grants; /* to the user and on the user's sessions, which were ended */
    uint64_t access_keys, locks; /* of the user, which were ended */
    int64_t before_ms; /* when the user was erased before, if nothing came since: then
                          nothing was removed; else 0 */
    /* Not reached. */
    uint64_t forks;        /* sessions of others with a copy of entries, or a task, of one
                              of the user's */
    uint64_t without_user; /* sessions of no user, whoever spoke in them */
    uint64_t unreadable;   /* logs whose first line does not say whose they are */
    char event[32];        /* the event of the audit that has the hash of this receipt;
                              "": there is no audit, or it was a dry run */
    sessile_slice json;    /* all of this as a JSON object; NUL-terminated. With an event
                              it has a proof of it (sessile_audit_check_proof()) */
} sessile_receipt;

/*
 * Erases a user: destroys the secret of the user (sessile_forget()), then removes the
 * sessions and memories of the user with all that lies beside them, and what agents keep
 * for all from these sessions; then ends the grants, access keys and locks of the user.
 * Nothing is left that opens, no matter who has a copy of the logs. *out (may be NULL):
 * release it with sessile_free().
 *
 * Where the guard keeps an audit, the receipt has a proof of the event that says what was
 * done. Whoever has the receipt and the root key of the audit can check it, without the
 * store. No proof is in it if the audit could not be sealed just then: make one later,
 * with sessile_audit_prove() and the receipt's event.
 *
 * Not reached are sessions of others, also where the user is spoken of, sessions without
 * a user, copies of the store's user-… blobs (sessile_forget()), what was exported, and
 * what was sent to a model: the receipt says so.
 *
 * Each step can be repeated: after an error or a crash, call it again, and the receipt
 * counts what was removed in all. Once it is done, another call says so (before_ms).
 * NOTFOUND: nothing is known of the user. DENIED, rule `hold:ID`: a hold keeps something
 * of the user; nothing was removed. INVALID: user is empty, or the one whose view this
 * is. UNSUPPORTED: the store cannot remove logs. BUSY: somebody writes to one of the
 * sessions.
 */
SESSILE_API sessile_status sessile_user_erase(sessile_store *store, sessile_slice user,
                                              const sessile_erase_options *options,
                                              sessile_receipt **out, sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif
