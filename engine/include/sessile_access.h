/*
 * sessile_access.h: who was given what: grants, access keys, locks.
 *
 * These are facts of the store, kept in its control log. Every handle and every process
 * that has a guard on the store sees them within a second; a view whose grant, key or
 * user is not good any more is DENIED from then on. Names of users in them are sealed
 * with the users' own secrets: once a user is forgotten nobody reads them.
 *
 * The functions of this header need the permission manage_access and scope all, with one
 * exception: a user may share a session of its own. Nobody gives what they do not have:
 * a role with other permissions than one's own is DENIED.
 *
 * The rule `grants` counts grants and their ends, access keys and unlocks of a view:
 * LIMIT, with the rule and retry_ms. A text in a fact has at most as many bytes as an id,
 * and a list 64 names: LIMIT without a rule.
 *
 * All functions return UNSUPPORTED for a store that has no place for a control log, and
 * INVALID for one that has no guard; DAMAGED: the control log was damaged, see
 * `sessile check`; BUSY, FULL, IO, NOMEM.
 */
#ifndef SESSILE_ACCESS_H
#define SESSILE_ACCESS_H

#include "sessile_guard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ grants */

/*
 * A role that is given to somebody, beside the roles of their credentials: everywhere
 * (session empty), with these agents, or on one session. On one session it is of no
 * matter whose it is: name agent, user and id to resume it. It is never listed, nor
 * found by a search; sessile_grants() lists what was shared. When the session is removed
 * for good, the grant gives nothing any more, also if another one is made of its names.
 */
typedef struct sessile_grant_options {
    sessile_slice user;    /* who is given it */
    sessile_slice holders; /* or: all who have this role, or are in a group of this name
                              by their token */
    const char *role;      /* what is given; required */
    const sessile_slice *agents; /* names, or beginnings that end with `*`; none: all */
    size_t agent_count;
    sessile_slice
        session;         /* the id of one session, or empty. Then agents are not given: */
    sessile_slice agent; /* its agent; empty: the store's */
    sessile_slice owner; /* its user; NULL: one's own, or nobody's for scope all */
    int64_t until_ms;    /* Unix time in milliseconds; 0: until it is ended */
} sessile_grant_options;
SESSILE_API void sessile_grant_options_init(sessile_grant_options *options);

/* Grants a role, durably. *id (may be NULL) names the grant. INVALID: the options; there
 * is no such role. NOTFOUND: there is no such session. DENIED, LIMIT: see above. */
SESSILE_API sessile_status sessile_grant(sessile_store *store,
                                         const sessile_grant_options *options,
                                         sessile_id *id, sessile_error *err);

typedef struct sessile_grant_row {
    sessile_id id;
    sessile_slice user, holders, role, session, agent, owner;
    const sessile_slice *agents;
    size_t agent_count;
    sessile_slice by;             /* who granted it; empty: the host */
    int64_t created_ms, until_ms; /* until_ms 0: no end */
} sessile_grant_row;
/* The grants in force, oldest first, in one block: sessile_free(). Without manage_access
 * those alone that are given to one, or on sessions of one's own; of these a view of some
 * agents or of one session has those on its sessions. */
SESSILE_API sessile_status sessile_grants(sessile_store *store, sessile_grant_row **rows,
                                          size_t *count, sessile_error *err);

/* Ends a grant, durably. One may end what is on a session of one's own, too. NOTFOUND: no
 * such grant is in force, or it is not one's own. LIMIT. */
SESSILE_API sessile_status sessile_grant_end(sessile_store *store, sessile_id id,
                                             sessile_error *err);

/* ------------------------------------------------------------------ access keys */

/* What the holder of a key is given. */
typedef struct sessile_access_key_options {
    sessile_slice user; /* who it is; may be empty */
    const char *const *roles;
    size_t role_count;
    const sessile_slice *agents; /* as in sessile_credential */
    size_t agent_count;
    sessile_slice device; /* not empty: the credential must name it, too */
    sessile_slice label;  /* for people */
    int64_t expires_ms;   /* Unix time in milliseconds; 0: never */
} sessile_access_key_options;
SESSILE_API void sessile_access_key_options_init(sessile_access_key_options *options);

/*
 * Makes an access key, durably. *key is its text, `sesk_ID_SECRET_CHECK`, which nobody
 * can show again: the store keeps a hash. Free it with sessile_free(), which does not
 * wipe it. INVALID: a role that is not defined, an expiry in the past. LIMIT.
 */
SESSILE_API sessile_status sessile_access_key(sessile_store *store,
                                              const sessile_access_key_options *options,
                                              char **key, sessile_error *err);

typedef struct sessile_access_key_row {
    sessile_slice id; /* as in the key */
    sessile_slice user, device, label, by;
    const sessile_slice *roles, *agents;
    size_t role_count, agent_count;
    int64_t created_ms, expires_ms;
} sessile_access_key_row;
/* The keys that were not revoked, expired ones too, oldest first, in one block:
 * sessile_free(). */
SESSILE_API sessile_status sessile_access_keys(sessile_store *store,
                                               sessile_access_key_row **rows,
                                               size_t *count, sessile_error *err);

/* Revokes a key by its id, durably, for ever. NOTFOUND: no such key, or it was. */
SESSILE_API sessile_status sessile_access_key_revoke(sessile_store *store,
                                                     sessile_slice id,
                                                     sessile_error *err);

/* ------------------------------------------------------------------ locks */

/* Locks a user or a key (one of the two, the other is empty) out, durably: every view of
 * it is DENIED, whatever its credential is. reason: for people, may be empty. Locking
 * twice is harmless. The host's own handle cannot be locked. key: an id; a whole key
 * means its id. NOTFOUND: there is no such key. */
SESSILE_API sessile_status sessile_access_lock(sessile_store *store, sessile_slice user,
                                               sessile_slice key, sessile_slice reason,
                                               sessile_error *err);
/* Ends a lock. NOTFOUND: there is none. LIMIT. */
SESSILE_API sessile_status sessile_access_unlock(sessile_store *store, sessile_slice user,
                                                 sessile_slice key, sessile_error *err);

typedef struct sessile_access_lock_row {
    sessile_slice user, key, reason, by;
    int64_t created_ms;
} sessile_access_lock_row;
/* The locks in force, in one block: sessile_free(). */
SESSILE_API sessile_status sessile_access_locks(sessile_store *store,
                                                sessile_access_lock_row **rows,
                                                size_t *count, sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif
