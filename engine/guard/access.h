/*
 * access.h: the grants, access keys and locks in force: a fold over the control log.
 *
 *   access_fold.c    the fold
 *   access.c         what it says of a principal
 *   access_grants.c  grants: made, ended, listed; access_keys.c: keys and locks
 *   credential.c     who somebody is, by a credential
 *
 * The fold is made again when the control log has changed, which is looked at once a
 * second at most. A principal keeps the version of the fold that it was last compared
 * with, so a call compares two numbers.
 */
#ifndef GUARD_ACCESS_H
#define GUARD_ACCESS_H

#include <pthread.h>

#include "audit/seal.h"
#include "guard/control.h"
#include "guard/principal.h"
#include "session/header.h"
#include "sessile_access.h"
#include "vault/access_key.h"

typedef struct access_grant {
    sessile_grant_row is; /* slices of the fold's texts */
    permissions may;
    int all;                 /* the role has scope all */
    char made[HEADER_NONCE]; /* of a session: which one of its names (session/header.h) */
} access_grant;

typedef struct access_key {
    sessile_access_key_row is;
    unsigned char hash[ACCESS_KEY_HASH];
    int is_lost; /* its user was forgotten */
} access_key;

typedef struct access_text access_text;

struct access_fold {
    guard *guard; /* which owns it */
    control *control;
    pthread_mutex_t mutex; /* guards what follows */
    uint64_t version;      /* of the control log's fold; 0: none yet */
    access_grant *grants;
    access_key *keys; /* those that were not revoked */
    sessile_access_lock_row *locks;
    size_t grant_count, grant_capacity, key_count, key_capacity, lock_count,
        lock_capacity;
    access_text *texts;
    atomic_int narrow_count; /* grants on a session, or with agents */
};

/* NOMEM. */
sessile_status access_open(access_fold **out, guard *g, store_core *st,
                           sessile_error *err);
void access_close(access_fold *a); /* NULL is ignored */

/* What p may now, which is written into it. DENIED: it, its key or a grant that it stands
 * on is locked, revoked or ended; or the control log is not to be trusted. */
sessile_status access_check(principal *p, sessile_error *err);

/* The same of one that has to stand and to live, too: DENIED, with the sentence that all
 * credentials are refused with. */
sessile_status access_accept(principal *p, sessile_error *err);
sessile_status access_refuse(sessile_error *err);

/* 1: there are grants on names, which may give p more. */
int access_is_narrow(const principal *p);

/* 1: there are grants on the session of these names that p is given. */
int access_is_shared(const principal *p, const guard_names *names);

/*
 * What the grants on these names give p beside what it may everywhere: those with agents,
 * those on this session. made: what tells it from another session of these names
 * (session/header.h); NULL: there is none, or nobody shared it. sees: the names are p's
 * own. *until_ms (0: none): when the first of them ends.
 */
permissions access_on(principal *p, const guard_names *names, const char *made, int sees,
                      int64_t *until_ms);

/* Locks the mutex, and makes the fold as new as the control log. After OK the caller
 * calls access_end(). Errors of control_look(). */
sessile_status access_begin(access_fold *a, int now, sessile_error *err);
void access_end(access_fold *a);
/* Inside of these two. NULL: no such key, or it was revoked. */
const access_key *access_find_key(const access_fold *a, sessile_slice id);
int access_is_locked(const access_fold *a, sessile_slice user, sessile_slice key);

/* The audit that a guarded store itself keeps. */
typedef struct guarded_audit {
    char root[SEAL_HEX]; /* the key that vouches for it; "": none */
    int64_t since_ms;    /* it was begun before */
} guarded_audit;
/* Whether the last fact about it says that the store is guarded; also (1) if the control
 * log is DAMAGED. profile (may be NULL): the name that was given; audit (may be NULL).
 * Errors of the log. */
sessile_status access_guarded(control *c, int *on, buf *profile, guarded_audit *audit,
                              sessile_error *err);
/* Writes such a fact, if that is not what the last one says. */
sessile_status access_set_guarded(control *c, int on, const char *profile,
                                  const char *root, const allocator *a,
                                  sessile_error *err);

/* sessile_grant() and the others, through a handle of that principal. */
sessile_status access_grant_make(principal *p, const store_core *st,
                                 const sessile_grant_options *options, sessile_id *id,
                                 sessile_error *err);
sessile_status access_grant_end(principal *p, sessile_id id, sessile_error *err);
sessile_status access_grant_list(principal *p, sessile_grant_row **rows, size_t *count,
                                 sessile_error *err);
sessile_status access_key_make(principal *p, const store_core *st,
                               const sessile_access_key_options *options, char **key,
                               sessile_error *err);
sessile_status access_key_revoke(principal *p, sessile_slice id, sessile_error *err);
sessile_status access_key_list(principal *p, sessile_access_key_row **rows, size_t *count,
                               sessile_error *err);
sessile_status access_lock_set(principal *p, sessile_slice user, sessile_slice key,
                               sessile_slice reason, sessile_error *err);
sessile_status access_lock_end(principal *p, sessile_slice user, sessile_slice key,
                               sessile_error *err);
sessile_status access_lock_list(principal *p, sessile_access_lock_row **rows,
                                size_t *count, sessile_error *err);

#endif
