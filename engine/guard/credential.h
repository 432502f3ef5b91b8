/* credential.h: who somebody is, by a credential: the host's word, an access key, a
 * token.
 */
#ifndef GUARD_CREDENTIAL_H
#define GUARD_CREDENTIAL_H

#include "guard/guard.h"

/* A credential that was accepted, for as long as it is open. */
typedef struct accepted {
    principal_about about;
    guard *guard;
    const jws_claims *claims; /* of a token */
    sessile_slice *roles;     /* of the host's word */
    size_t role_count;
    sessile_slice agent; /* of the one session */
    int is_begun;        /* access_begin() */
    limit_taken attempt; /* which was not refused */
} accepted;

/*
 * Judges a credential. After OK call credential_close(); about borrows from it.
 *
 * DENIED: always with the same sentence; the audit has the reason. Or the control log is
 * not to be trusted. INVALID: not one of user, key and token; a store without tokens; a
 * session whose agent is not among the agents.
 */
sessile_status credential_open(accepted *out, guard *g, const sessile_credential *c,
                               sessile_error *err);
void credential_close(accepted *a);

#endif
