/*
 * seal.h: the seals of a lane of the audit, and the chain that they make.
 *
 * A seal is an entry. It closes an epoch: it signs the Merkle root of the entries since
 * the seal before it, the hash of that seal, and the public key of the next epoch. So the
 * first public key vouches for all, as long as each seal is the next one.
 */
#ifndef AUDIT_SEAL_H
#define AUDIT_SEAL_H

#include "base/error.h"
#include "audit/merkle.h"
#include "vault/sign.h"

#define SEAL_HEX 65 /* a hash or a public key in hex, with its NUL */

/* What is known of a lane after some of its entries. */
typedef struct seal_chain {
    uint32_t lane;
    uint64_t epoch;                    /* of the next seal */
    unsigned char key[SIGN_PUBLIC];    /* that signs it */
    unsigned char before[MERKLE_HASH]; /* the hash of the last seal; zeros: none yet */
    sessile_id first;                  /* the first entry since, in this log */
    merkle tree;                       /* of the entries since */
    int64_t sealed_ms;                 /* when the last seal says it was made; 0: none */
    buf scratch;
} seal_chain;
void seal_chain_init(seal_chain *c, uint32_t lane, const allocator *a);
void seal_chain_deinit(seal_chain *c);
/* One more entry that is no seal. NOMEM. */
sessile_status seal_chain_add(seal_chain *c, const char *text, size_t size,
                              sessile_error *err);

/* What a seal says. */
typedef struct seal {
    sessile_id id; /* of the entry */
    int64_t time_ms;
    uint32_t lane;
    uint64_t epoch;
    sessile_id first; /* of the entries that it closes, which end before it */
    uint64_t count;
    unsigned char root[MERKLE_HASH], before[MERKLE_HASH], next[SIGN_PUBLIC];
    unsigned char signature[SIGN_BYTES];
} seal;
/*
 * Reads the text of a seal. There is one spelling of each seal only. DAMAGED: it is none;
 * NOMEM.
 */
sessile_status seal_read(seal *out, const char *text, size_t size, const allocator *a,
                         sessile_error *err);
/* Appends the seal that closes the chain's epoch, which is not empty, signed by the seed
 * of the epoch; next: the public key of the next. */
void seal_put(buf *out, const seal_chain *c, sessile_id id, int64_t now_ms,
              const unsigned char seed[SIGN_SEED], const unsigned char next[SIGN_PUBLIC]);
/* 1: the signature is one by that key. */
int seal_is_signed(const seal *s, const unsigned char key[SIGN_PUBLIC],
                   const allocator *a);
/*
 * The chain goes on with a seal. verify 1: all of what it says is compared with the
 * chain, and its signature. DAMAGED: it is not the next seal; the message says why.
 */
sessile_status seal_chain_follow(seal_chain *c, const char *text, size_t size, int verify,
                                 sessile_error *err);

/* 1: the text of an entry of the audit is of this type, as the engine writes it: spelled
 * otherwise it is none. */
int seal_is_type(const char *text, size_t size, const char *type);

#endif
