/*
 * sessile_audit.h: the audit of a store: who did what.
 *
 * The engine writes an event for each operation that a guard is told to keep. Here events
 * are read, and it is checked whether they are what was written. All functions take the
 * store that keeps the audit, which need not be the one that is guarded. A store without
 * a guard can be read by whoever has its key; through a view each function needs the
 * permission read_audit, or, for those that verify, check_store.
 *
 *     sessile_audit_filter f;
 *     sessile_audit_event e;
 *     sessile_audit_filter_init(&f);
 *     f.operation = sessile_text("erase_user");
 *     for (st = sessile_audit_open(&reader, store, &f, &err);
 *          !st && !(st = sessile_audit_next(reader, &e, &err)) && e.id.size;)
 *         show(&e);
 *     sessile_audit_close(reader);
 */
#ifndef SESSILE_AUDIT_H
#define SESSILE_AUDIT_H

#include "sessile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ reading */

/* Which events. An empty slice selects all. Text is compared exactly. */
typedef struct sessile_audit_filter {
    int64_t since_ms, until_ms; /* written at or after, and before; 0: any time */
    sessile_slice user;  /* a user's name, or the pseudonym that events have of them */
    sessile_slice about; /* the name of a user, or what events have of an owner: events
                            of what is that user's, whoever did it */
    sessile_slice operation; /* as "append" */
    sessile_slice outcome;   /* "success", "failure", "intent" or "unknown" */
    sessile_slice session, agent;
    uint64_t limit;       /* events at most; 0: all */
    int names;            /* 1: the names of users who were not forgotten are opened */
    sessile_slice cursor; /* of sessile_audit_cursor(): goes on behind it; or empty */
} sessile_audit_filter;
SESSILE_API void sessile_audit_filter_init(sessile_audit_filter *filter);

/* One event. Slices are borrowed until the next call with the reader, and empty where the
 * event does not say. */
typedef struct sessile_audit_event {
    sessile_slice id; /* of the event, as "00-000/0000002a"; empty: there is no more */
    int64_t time_ms;
    sessile_slice operation, outcome;
    sessile_slice user; /* a pseudonym, as "u_…" */
    sessile_slice name; /* of the user, if it was asked for and can be opened */
    sessile_slice agent, session;
    sessile_slice code; /* of the error, as "DENIED" */
    uint64_t count;     /* how many equal events it stands for; 1 or more */
    sessile_slice json; /* all of it: a JSON object on one line */
} sessile_audit_event;

typedef struct sessile_audit_reader sessile_audit_reader;

/*
 * Begins to read events, oldest first. Events of several processes are in order of their
 * times; those that were written meanwhile come as they are found. Memory does not grow
 * with the number of events (with `names`, with the number of users). filter may be
 * NULL. Close the reader before the store.
 *
 * NOTFOUND: the store has no audit; DAMAGED: it had one, and that is gone; INVALID: an
 * outcome or a cursor that cannot be; DENIED; UNSUPPORTED: a store over records.
 */
SESSILE_API sessile_status sessile_audit_open(sessile_audit_reader **out,
                                              sessile_store *store,
                                              const sessile_audit_filter *filter,
                                              sessile_error *err);
/*
 * The next event. An empty id: there is none now; call again after
 * sessile_audit_wait(), or when something was written. DAMAGED, TRUNCATED, SEALED: one
 * log of the audit cannot be read on; the next call goes on with the others. What was
 * read is not verified: sessile_audit_verify_begin() does that.
 */
SESSILE_API sessile_status sessile_audit_next(sessile_audit_reader *reader,
                                              sessile_audit_event *out,
                                              sessile_error *err);
/* Waits until something was written, at most timeout_ms (0 or more): *changed 1. It may
 * be an event that the filter leaves out. */
SESSILE_API sessile_status sessile_audit_wait(sessile_audit_reader *reader,
                                              int timeout_ms, int *changed,
                                              sessile_error *err);
/*
 * Where the reader is: text of one line, to be kept and given to another reader. That one
 * returns all events behind those that this one has returned, and never fewer: take the
 * cursor after the events before it are safe, and drop repeated ids. Free *out. An old
 * cursor stays good; what was removed since is left out.
 */
SESSILE_API sessile_status sessile_audit_cursor(sessile_audit_reader *reader, char **out,
                                                sessile_error *err);
SESSILE_API void sessile_audit_close(sessile_audit_reader *reader);

/* ------------------------------------------------------------------ verifying */

#define SESSILE_AUDIT_KEY 65 /* bytes of a key or a hash in hex, with its NUL */

/* The last seal of a lane: to be kept elsewhere, and given back to be found again. */
typedef struct sessile_audit_anchor {
    uint32_t lane;
    uint64_t epoch;
    char hash[SESSILE_AUDIT_KEY]; /* 64 hex digits */
} sessile_audit_anchor;

typedef struct sessile_audit_verify_options {
    int64_t max_age_ms; /* of events that are not sealed; 0: any */
    int is_copy; /* 1: a copy, which has no seeds: an end that was cut off at a seal
                    is found with anchors alone */
    const sessile_audit_anchor *anchors;
    size_t anchor_count;
    int deep; /* 1: what the sessions say of themselves is compared with the events, too
               */
    sessile_store *guarded; /* deep: whose sessions; NULL: those of the store that keeps
                               the audit. Close it later */
} sessile_audit_verify_options;
SESSILE_API void sessile_audit_verify_options_init(sessile_audit_verify_options *options);

/* A change that has no event, or an event whose change is not there. */
typedef struct sessile_audit_lost {
    int is_event; /* 1: an event; its id is in `event`. 0: a change */
    int64_t time_ms;
    sessile_id entry; /* 0: the session was made */
    char event[32];
    char session[96], agent[96]; /* of a change; cut when long */
    char owner[40]; /* whose session, as events say it: "o_…"; "": no user's */
} sessile_audit_lost;
#define SESSILE_AUDIT_LOST 8 /* that a report names */

/* What was found so far, and at the end. */
typedef struct sessile_audit_report {
    int holds;                /* 1: all that was sealed is as it was */
    uint64_t bytes, bytes_of; /* read, and to be read */
    uint64_t lanes, seals, events;
    uint64_t unsealed;    /* events since the last seals: they may have been changed by
                             who has the keys of the store */
    uint64_t other_lanes; /* that another key vouches for: begun in a copy */
    uint64_t cut_lanes;   /* whose beginning was removed by the retention, and is not
                             proven by an anchor: what they hold was not changed since,
                             but only an anchor from outside proves that nothing else was
                             put in their place */
    int64_t unsealed_ms;  /* when the oldest of the unsealed was written; 0: none */
    int64_t sealed_ms;    /* when the newest seal was made; 0: none */
    char where[32]; /* the first event or entry that is wrong; "": a lane as a whole */
    char why[300];
    /* deep; holds says nothing of it */
    uint64_t logs, logs_of;  /* sessions that were read, and to be read */
    uint64_t changes;        /* entries of sessions that were compared */
    uint64_t outside;        /* not compared: from before the audit begins, from when the
                                guard was off, or brought by a migration */
    uint64_t unread;         /* sessions that do not open */
    uint64_t without_event;  /* changes that no event tells of */
    uint64_t without_change; /* events whose entry or session is not there, though nothing
                                says that it was removed */
    size_t lost_count;       /* the first of both */
    sessile_audit_lost lost[SESSILE_AUDIT_LOST];
} sessile_audit_report;

typedef struct sessile_audit_verification sessile_audit_verification;

/*
 * Begins to verify the audit that the key `root` (64 hex digits, as sessile_audit_root()
 * once told) vouches for. Everything is read; nothing is changed, and others may write
 * meanwhile.
 *
 * INVALID: root or an anchor is none; NOTFOUND: there is no audit; DAMAGED: there was
 * one, as the store says that stays guarded (sessile_guard_options.profile), and all of
 * it is gone; DENIED.
 */
SESSILE_API sessile_status sessile_audit_verify_begin(
    sessile_audit_verification **out, sessile_store *store, const char *root,
    const sessile_audit_verify_options *options, sessile_error *err);
/* Reads about a megabyte. NEEDS: there is more. OK: all is read; report->holds says
 * whether the audit holds. An error says nothing of the audit: IO, NOMEM, DENIED.
 *
 * Deep: then the sessions are read, and each entry is looked for in the events. Memory
 * grows with the number of sessions, and not with that of entries or events. */
SESSILE_API sessile_status
sessile_audit_verify_step(sessile_audit_verification *verification,
                          sessile_audit_report *report, sessile_error *err);
SESSILE_API void sessile_audit_verify_free(sessile_audit_verification *verification);

/* The public key that vouches for the audit of this store: no secret, to be kept
 * elsewhere from the beginning. NOTFOUND: there is no audit yet. DAMAGED: the audit that
 * the store was guarded with is gone, even if another one was begun since. */
SESSILE_API sessile_status sessile_audit_root(sessile_store *store,
                                              char out[SESSILE_AUDIT_KEY],
                                              sessile_error *err);
/* The last seal of each lane: *out is an array, to be freed. Everything is verified
 * first, as in a copy if is_copy is 1. DAMAGED: the audit does not hold. */
SESSILE_API sessile_status sessile_audit_head(sessile_store *store, const char *root,
                                              int is_copy, sessile_audit_anchor **out,
                                              size_t *count, sessile_error *err);
/* Seals what was written: what it protects is all that came before. NOTFOUND: there is no
 * audit; BUSY. */
SESSILE_API sessile_status sessile_audit_seal(sessile_store *store, sessile_error *err);
/*
 * A proof that an event is in the audit, which shows nothing of others: JSON on one line,
 * to be freed. It has the seals that lead from the root key to the event, about 600 bytes
 * each. Where there are more than 10000, or the retention has removed the first ones, it
 * begins later, and leads from another key.
 *
 * NOTFOUND: there is no such event; SUSPENDED: it is not sealed yet; INVALID.
 */
SESSILE_API sessile_status sessile_audit_prove(sessile_store *store, const char *id,
                                               char **out, size_t *size,
                                               sessile_error *err);
/*
 * Checks a proof, or the receipt of an erasure that has one, without any store. key: set
 * to the public key that vouches for it. The caller compares it with the root key that
 * was kept: if they are equal, the event is in that audit. If not, the proof is of
 * another audit, or begins later (sessile_audit_prove()), and says nothing by itself. Of
 * a receipt it is checked, too, that it says what the event says. *event (may be NULL):
 * the event, JSON, to be freed.
 *
 * DAMAGED: it proves nothing; the message says why.
 */
SESSILE_API sessile_status sessile_audit_check_proof(sessile_slice proof,
                                                     char key[SESSILE_AUDIT_KEY],
                                                     char **event, size_t *event_size,
                                                     sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif
