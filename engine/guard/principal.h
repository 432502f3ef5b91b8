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

typedef struct guard guard;

struct principal {
    counted references;
    allocator alloc;
    struct principal *parent; /* NULL: the host's, which owns the guard */
    guard *guard;
    permissions may;
    int all;                    /* 1: scope all; 0: own */
    sessile_slice user;         /* empty: none */
    sessile_slice actor;        /* who acts for the user */
    sessile_slice session;      /* not empty: this one alone */
    sessile_slice role;         /* its roles, with commas: for the audit alone */
    sessile_slice method;       /* how it was authenticated: "host". Static */
    sessile_slice key;          /* what names its credential, or empty */
    sessile_slice *agents;      /* names, or beginnings of names that end with `*` */
    size_t agent_count;         /* 0: every agent */
    _Atomic uint64_t counted;   /* who is counted for its user; 0: not worked out */
    uint32_t number;            /* of the principals of this guard */
    _Atomic int64_t expires_ms; /* 0: never */
    atomic_int revoked;
    char *text; /* of the slices */
    size_t text_size;
};

/* The host's: everything is allowed, or views alone. It owns the guard. One reference,
 * the caller's. NULL: no memory, and the guard is still the caller's. */
principal *principal_host(guard *g, const allocator *a);

/* What credential gives to a view of the parent's. One reference, the caller's; it holds
 * one of the parent. DENIED: it is of another user; INVALID: there is no such role. */
sessile_status principal_make(principal **out, principal *parent,
                              const sessile_credential *credential, sessile_error *err);

/* 1 unless it, or a parent, was revoked. */
int principal_stands(const principal *p);
/* 1 unless it, or a parent, has expired. */
int principal_lives(const principal *p);

/* 1: the names are in its scope. agent: resolved, not empty. Nothing is looked up. NULL:
 * all names are. */
int principal_sees(const principal *p, const guard_names *names);
int principal_sees_agent(const principal *p, sessile_slice agent);

#endif
