/*
 * shares.h: how much one user may hold of what all users of a server hold together: runs
 * that are open, sessions that are watched.
 *
 * Where a guard tells users apart, none holds more than a quarter, so that whoever begins
 * streams without end keeps out only himself. Whoever may use the sessions of all users
 * calls for many of them, and is held to what the server has.
 */
#ifndef SERVICE_SHARES_H
#define SERVICE_SHARES_H

#include "service/server.h"

enum { SHARE_OF = 4 }; /* a user may hold 1/SHARE_OF of the total */

typedef enum share_kind { SHARE_RUNS, SHARE_WATCHES, SHARE_KINDS } share_kind;

/* NOMEM. */
sessile_status shares_open(shares **out, const allocator *a, sessile_error *err);
/* NULL is ignored. */
void shares_close(shares *s);

/*
 * Counts n more for who calls, of a kind of which all users hold `most` together. *user
 * is for shares_give(): 0: nothing was counted. LIMIT: it would be more than the share of
 * a user. NOMEM.
 */
sessile_status shares_take(call *c, share_kind kind, size_t n, size_t most,
                           uint64_t *user, sessile_error *err);
void shares_give(shares *s, share_kind kind, size_t n, uint64_t user);

#endif
