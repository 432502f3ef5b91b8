/*
 * claims.h: what the payload of a token says, judged. For the files of this folder only.
 */
#ifndef VAULT_CLAIMS_H
#define VAULT_CLAIMS_H

#include "codec/json.h"
#include "vault/jws.h"

/* The claims of a token, in one block. */
typedef struct held_claims {
    jws_claims is; /* the first member: what is handed out */
    size_t refs;   /* under the verifier's lock */
    size_t size;   /* of the block */
    int64_t expires_ms, not_before_ms, issued_ms; /* as they are in the token */
    int has_not_before, has_issued;
} held_claims;

/* Reads and judges the payload: JWS_ACCEPTED and *out, which is the caller's (refs is 1,
 * size bytes of a), or the reason. JWS_REASON_COUNT: no memory. options has all names. */
jws_reason claims_read(held_claims **out, json payload, const jws_options *options,
                       int64_t now_ms, const allocator *a);

/* The times again, by the clock as it is now. */
jws_reason claims_judge_times(const held_claims *claims, int64_t now_ms);

#endif
