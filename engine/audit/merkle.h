/*
 * merkle.h: a Merkle tree in the shape of RFC 6962, over BLAKE2b-256.
 *
 * A leaf is hash(0x00 ‖ bytes), a node hash(0x01 ‖ left ‖ right). The left side of a tree
 * of n leaves is the largest power of two below n. A tree that grows keeps one hash for
 * each bit of its size.
 */
#ifndef AUDIT_MERKLE_H
#define AUDIT_MERKLE_H

#include <stdint.h>

#include "base/buf.h"

#define MERKLE_HASH 32
#define MERKLE_MOST 32 /* hashes of a proof: of trees of up to 2^32 leaves */

typedef struct merkle {
    uint64_t count;
    unsigned char hashes[MERKLE_MOST][MERKLE_HASH]; /* of complete subtrees, largest first
                                                     */
} merkle;

void merkle_init(merkle *m);
/* The hash of a leaf. scratch: where its bytes are put together. 0; -1: no memory. */
int merkle_leaf(unsigned char out[MERKLE_HASH], const void *data, size_t size,
                buf *scratch);
void merkle_add(merkle *m, const unsigned char leaf[MERKLE_HASH]);
/* Of at least one leaf. */
void merkle_root(const merkle *m, unsigned char out[MERKLE_HASH]);

/* The hashes that lead from leaf `at` of `count` leaves to the root, lowest first; their
 * number. */
size_t merkle_prove(const unsigned char (*leaves)[MERKLE_HASH], uint64_t count,
                    uint64_t at, unsigned char out[MERKLE_MOST][MERKLE_HASH]);
/* The root that a leaf and its proof lead to. 0; -1: the proof has not the right number
 * of hashes, or the leaf is not in such a tree. */
int merkle_follow(const unsigned char leaf[MERKLE_HASH], uint64_t at, uint64_t count,
                  const unsigned char (*proof)[MERKLE_HASH], size_t size,
                  unsigned char root[MERKLE_HASH]);

#endif
