/*
 * principal.h: who uses a handle, and what they may.
 *
 * A principal is made once for a view of a store and shared by the handles that are
 * opened through it. All of it but its end stays as it was made. The principal of a
 * narrower view has a parent, and may at most what the parent may.
 */
#ifndef GUARD_PRINCIPAL_H
#define GUARD_PRINCIPAL_H

#include <stdatomic.h>

#include "base/counted.h"
#include "guard/enter.h"
#include "guard/roles.h"
#include "session/header.h"

typedef struct guard guard;
typedef struct access_fold access_fold;

struct principal {
    counted references;
    allocator alloc;
    struct principal *parent; /* NULL: the host's, which owns the guard */
    guard *guard;
    _Atomic permissions may;  /* now, by credential and grants: access.h */
    atomic_int all;           /* 1: scope all; 0: own. Now, too */
    _Atomic permissions base; /* by its credential */
    atomic_int base_all;
    int inherits;          /* inherits: what the parent may, all of it */
    sessile_slice user;    /* empty: none */
    sessile_slice actor;   /* who acts for the user */
    sessile_slice session; /* not empty: this one alone */
    sessile_slice method;  /* how it was authenticated: "host". Static */
    sessile_slice role;    /* its roles, with commas: for the audit alone */
    sessile_slice key;     /* what names its credential, or empty */
    sessile_slice source, device;
    sessile_slice *agents; /* names, or beginnings of names that end with `*` */
    size_t agent_count;    /* 0: every agent */
    sessile_slice *roles;  /* as in its credential: also those that nobody defined */
    size_t role_count;
    int is_by_key;              /* key is that of an access key */
    int is_lenient;             /* by a key or a token, which is not the host's word */
    sessile_slice owner;        /* whose session it is */
    int is_granted;             /* what grants give on names: agents[0], owner, on */
    int is_own;                 /* … which are its parent's own */
    sessile_slice on;           /* the id of that session */
    char made[HEADER_NONCE];    /* which one; "": grants on it give nothing */
    _Atomic uint64_t counted;   /* who is counted for its user; 0: not worked out */
    uint32_t number;            /* of the principals of this guard */
    _Atomic int64_t expires_ms; /* 0: never */
    atomic_int revoked;
    _Atomic uint64_t version; /* of the control log with which it was compared */
    _Atomic int64_t until_ms; /* it is compared again then; 0: none */
    atomic_int refused;       /* as of that version */
    char *text;               /* of the slices */
    size_t text_size;
};

/* The host's: everything is allowed, or views alone. It owns the guard. One reference,
 * the caller's. NULL: no memory, and the guard is still the caller's. */
principal *principal_host(guard *g, const allocator *a);

/* Who somebody is, and what they are given: a credential that was accepted. */
typedef struct principal_about {
    sessile_slice user, actor, session, owner, on, key, source, device;
    const char *method; /* static; NULL: as the parent's */
    const sessile_slice *roles, *agents;
    size_t role_count, agent_count;
    int64_t expires_ms;
    int is_by_key;
    int is_lenient; /* a role that nobody defined gives nothing */
} principal_about;

/* What is given to a view of the parent's. One reference, the caller's; it holds one of
 * the parent. DENIED: it is of another user; INVALID: there is no such role. */
sessile_status principal_make(principal **out, principal *parent,
                              const principal_about *about, sessile_error *err);
/* What grants give p on these names, until then (0: no end); is_own: they are its own.
 * made: as of access_on(). */
struct guard_names;
sessile_status principal_make_granted(principal **out, principal *p,
                                      const struct guard_names *names, int is_own,
                                      const char *made, permissions may, int64_t until_ms,
                                      sessile_error *err);
/* The permissions of these roles, and their scope. INVALID, as of principal_make(). */
sessile_status principal_roles(const roles *known, const principal_about *about,
                               permissions *may, int *all, sessile_error *err);

/* 1 unless it, or a parent, was revoked. */
int principal_stands(const principal *p);
/* 1 unless it, or a parent, has expired. */
int principal_lives(const principal *p);

/* 1: one of the patterns is that name, or ends with `*` and is its beginning. */
int names_match(const sessile_slice *patterns, size_t count, sessile_slice name);

/* 1: the names are in its scope. agent: resolved, not empty. Nothing is looked up. NULL:
 * all names are. */
int principal_sees(const principal *p, const guard_names *names);
int principal_sees_agent(const principal *p, sessile_slice agent);
/* The same, whoever's session it is. */
int principal_reaches(const principal *p, const guard_names *names);
/* The id of the one session that it, or a parent, is narrowed to; empty: none. */
sessile_slice principal_session(const principal *p);
/* 1: neither it nor a parent is of some agents or of one session alone. */
int principal_is_whole(const principal *p);

#endif
