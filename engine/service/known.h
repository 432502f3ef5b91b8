/*
 * known.h: credentials that were accepted here, and whose they are.
 *
 * A hint, which the loop reads without waiting: with it a call can wait for its session,
 * or be passed on to another node, before a worker has judged its credential again.
 * Whoever runs the call judges it, whatever is known. A credential is forgotten when it
 * is refused, or when another one takes its place.
 */
#ifndef SERVICE_KNOWN_H
#define SERVICE_KNOWN_H

#include "service/server.h"

typedef struct known_caller {
    uint64_t user;  /* node_user() of the user */
    uint64_t share; /* as pool_submit() counts: 0 for whoever may use all sessions */
} known_caller;

/* Who calls, by the view of a call; without a guard nobody. A user is counted as one,
 * whoever may use the sessions of all users as nobody (who.c). */
void who_is(const call *c, known_caller *out);

/* NOMEM. */
sessile_status known_open(known **out, const allocator *a, sessile_error *err);
/* NULL is ignored. */
void known_close(known *k);

/* The credential of a call was accepted, and is this caller's; or it was refused. Any
 * thread. k may be NULL. */
void known_learn(known *k, const rpc_call *rpc, const known_caller *who);
void known_forget(known *k, const rpc_call *rpc);
/* 1: it was accepted here, and *out says whose it is. */
int known_find(known *k, const rpc_call *rpc, known_caller *out);

#endif
