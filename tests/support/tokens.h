/*
 * tokens.h: a verifier of tokens in a folder of its own, whose clock stands where a test
 * puts it.
 */
#ifndef SUPPORT_TOKENS_H
#define SUPPORT_TOKENS_H

#include "support/signer.h"
#include "vault/jws.h"

/* The time of every test, in seconds: what exp, nbf and iat are written against. */
#define TOKENS_NOW    1700000000
#define TOKENS_ISSUER "https://id.example"
/* The members of a payload that is accepted, but for the braces. */
#define TOKENS_PLAIN                                                             \
    "\"iss\":\"" TOKENS_ISSUER "\",\"aud\":\"sessile\",\"sub\":\"ann\",\"exp\":" \
    "1700000600"

typedef struct tokens {
    signer *signer;
    char folder[300], path[320]; /* of the key set */
    os_table os;                 /* the real one, but for its clocks and its user */
    int64_t now_ms;
    uint64_t clock_us;
    uint32_t uid;
    int64_t opens, stats; /* of files, by the verifier */
    size_t tried;         /* by tokens_expect() */
    jws_verifier *v;
} tokens;

/* Makes signer and folder; no file, no verifier. */
void tokens_init(tokens *t);
void tokens_deinit(tokens *t);
/* Writes the key set with mode, under a temporary name that is then renamed. */
void tokens_write(tokens *t, const char *text, unsigned mode);
/* The same with these keys, mode 0600. The list ends with SIGNER_KEYS. */
void tokens_write_keys(tokens *t, const signer_key *keys);
/* Opens t->v with the usual options. */
sessile_status tokens_open(tokens *t, sessile_error *err);
/* All of these: a key set of five keys, opened. */
void tokens_start(tokens *t);

/* Why a token is refused; JWS_ACCEPTED. Asserts what holds of every refusal. */
jws_reason tokens_judge(tokens *t, const char *token, size_t size);
/* The same of a token that is signed with a key. */
jws_reason tokens_judge_signed(tokens *t, signer_key key, const char *header,
                               const char *payload);
/* Asserts the reason, and counts; `what` is shown when it is another one. */
void tokens_expect(tokens *t, const char *what, jws_reason got, jws_reason wanted);
/* {"alg":…,"kid":…} of a key. For free(). */
char *tokens_header(signer_key key);

#endif
