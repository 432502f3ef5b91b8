/*
 * jws.h: verifies the tokens of users and services: JWTs (RFC 7519) in the compact form
 * of JWS (RFC 7515).
 *
 * A verifier has one issuer, one audience and one key set. The key decides on the
 * algorithm; a token only names its key. README.md says what is refused, and why.
 */
#ifndef VAULT_JWS_H
#define VAULT_JWS_H

#include "base/os.h"
#include "base/error.h"

enum {
    JWS_MOST = 8192,                   /* bytes of a token */
    JWS_SKEW_MS = 60000,               /* how far clocks may differ */
    JWS_LIFE_MS = 24 * 60 * 60 * 1000, /* the longest life of a token */
    JWS_LOOK_US = 1000000              /* how often the key set is looked at, at most */
};

/* Why a token was refused: name, and a sentence for an operator. */
#define JWS_REASONS(X)                                                                 \
    X(ACCEPTED, "accepted", "the token is accepted")                                   \
    X(SIZE, "size", "it has more than 8192 bytes")                                     \
    X(FORM, "form", "it is not three parts with dots between them")                    \
    X(ENCODING, "encoding", "a part is not base64url in its one canonical spelling")   \
    X(HEADER, "header", "the header is no JSON object with the members that it needs") \
    X(DOUBLED, "doubled", "an object has a member twice, or too many members")         \
    X(FORBIDDEN, "forbidden", "the header has a member that is never accepted")        \
    X(TYPE, "type", "the header's typ is not that of an access token")                 \
    X(KEYSET, "keyset", "the key set cannot be used")                                  \
    X(KEY, "key", "the key set has no such key")                                       \
    X(ALGORITHM, "algorithm", "the header's alg is not that of its key")               \
    X(SIGNATURE, "signature", "the signature is wrong")                                \
    X(PAYLOAD, "payload", "the payload is no JSON object")                             \
    X(MISSING, "missing", "a claim that is required is missing")                       \
    X(CLAIM, "claim", "a claim has not the form that it must have")                    \
    X(ISSUER, "issuer", "it is of another issuer")                                     \
    X(AUDIENCE, "audience", "it is for another audience")                              \
    X(EXPIRED, "expired", "it has expired")                                            \
    X(EARLY, "early", "it is not valid yet")                                           \
    X(LIFE, "life", "it is valid for more than 24 hours, or not at all")

typedef enum jws_reason {
#define JWS_VALUE(value, name, sentence) JWS_##value,
    JWS_REASONS(JWS_VALUE)
#undef JWS_VALUE
        JWS_REASON_COUNT
} jws_reason;
const char *jws_reason_name(jws_reason reason);
const char *jws_reason_sentence(jws_reason reason);

/*
 * A claim is named by its member in the payload ("https://example.com/roles"), or, with a
 * '/' in front, by a JSON pointer ("/realm_access/roles").
 */
typedef struct jws_options {
    const char *keys;           /* a JWKS file: keyset.h; required */
    const char *issuer;         /* what iss must be; required */
    const char *audience;       /* what aud must be or contain; required */
    const char *user;           /* names of claims; NULL: "sub" */
    const char *roles, *agents; /* NULL: "roles", "agents" */
    const char *actor;          /* NULL: "/act/sub" */
} jws_options;

/* What a token says. Texts are UTF-8 without control characters, and end with a NUL that
 * their size does not count. */
typedef struct jws_claims {
    sessile_slice user;  /* never empty */
    sessile_slice actor; /* who acts for the user; empty: the user itself */
    sessile_slice issuer;
    sessile_slice token_id; /* jti; empty: none */
    const sessile_slice *roles,
        *agents; /* as they are in the token, none of them empty */
    size_t role_count, agent_count;
    int64_t expires_ms; /* since 1970: from then on it is refused (exp + skew) */
} jws_claims;

/* What an operator should know and the caller must not: for the audit. */
typedef struct jws_refusal {
    jws_reason reason;
    sessile_error keyset; /* with JWS_KEYSET: what is wrong with the file */
} jws_refusal;

typedef struct jws_verifier jws_verifier;

/*
 * Opens a verifier and reads its key set. INVALID: an option is missing; else as
 * keyset_read(). The strings of options are copied; os and a must outlive the verifier.
 */
sessile_status jws_open(jws_verifier **out, const jws_options *options,
                        const os_table *os, const allocator *a, sessile_error *err);
/* NULL is ignored. Claims that were handed out must be released first. */
void jws_close(jws_verifier *v);

/*
 * Verifies a token. On success *out is borrowed until jws_release(); it never changes.
 *
 * DENIED: it is refused, always with the same sentence; refusal->reason says why. NOMEM:
 * nothing was decided. *out is NULL then.
 *
 * When the key set's file has changed it is read again, at most once a second. If it
 * cannot be used then, all tokens are refused (JWS_KEYSET) until it can: old keys are not
 * used on, since one of them may have been removed on purpose.
 *
 * Safe in several threads at the same time.
 */
sessile_status jws_verify(jws_verifier *v, sessile_slice token, const jws_claims **out,
                          jws_refusal *refusal, sessile_error *err);
void jws_release(jws_verifier *v, const jws_claims *claims); /* NULL is ignored */

#endif
