/* merkle.c: see merkle.h. */
#include "audit/merkle.h"

#include <string.h>

#include "base/text.h"

static void join(unsigned char out[MERKLE_HASH], const unsigned char left[MERKLE_HASH],
                 const unsigned char right[MERKLE_HASH])
{
    unsigned char both[1 + 2 * MERKLE_HASH];
    both[0] = 1;
    memcpy(both + 1, left, MERKLE_HASH);
    memcpy(both + 1 + MERKLE_HASH, right, MERKLE_HASH);
    hash256(out, both, sizeof both, NULL, 0);
}

void merkle_init(merkle *m)
{
    m->count = 0;
}

int merkle_leaf(unsigned char out[MERKLE_HASH], const void *data, size_t size,
                buf *scratch)
{
    buf_clear(scratch);
    buf_putc(scratch, 0);
    buf_put(scratch, data, size);
    if (scratch->failed)
        return -1;
    hash256(out, scratch->data, scratch->size, NULL, 0);
    return 0;
}

static unsigned bits_of(uint64_t n)
{
    return (unsigned)__builtin_popcountll(n);
}

void merkle_add(merkle *m, const unsigned char leaf[MERKLE_HASH])
{
    unsigned char hash[MERKLE_HASH];
    unsigned at = bits_of(m->count);

    memcpy(hash, leaf, MERKLE_HASH);
    for (uint64_t n = m->count; n & 1; n >>= 1)
        join(hash, m->hashes[--at], hash);
    memcpy(m->hashes[at], hash, MERKLE_HASH);
    m->count++;
}

void merkle_root(const merkle *m, unsigned char out[MERKLE_HASH])
{
    unsigned at = bits_of(m->count) - 1;

    memcpy(out, m->hashes[at], MERKLE_HASH);
    while (at > 0)
        join(out, m->hashes[--at], out);
}

/* The largest power of two below n (at least 2). */
static uint64_t split(uint64_t n)
{
    return UINT64_C(1) << (63 - __builtin_clzll(n - 1));
}

static void root_of(const unsigned char (*leaves)[MERKLE_HASH], uint64_t count,
                    unsigned char out[MERKLE_HASH])
{
    merkle m;

    merkle_init(&m);
    for (uint64_t i = 0; i < count; i++)
        merkle_add(&m, leaves[i]);
    merkle_root(&m, out);
}

size_t merkle_prove(const unsigned char (*leaves)[MERKLE_HASH], uint64_t count,
                    uint64_t at, unsigned char out[MERKLE_MOST][MERKLE_HASH])
{
    unsigned char from_top[MERKLE_MOST][MERKLE_HASH];
    size_t size = 0;

    while (count > 1) {
        uint64_t left = split(count);
        if (at < left) {
            root_of(leaves + left, count - left, from_top[size++]);
            count = left;
        } else {
            root_of(leaves, left, from_top[size++]);
            leaves += left;
            at -= left;
            count -= left;
        }
    }
    for (size_t i = 0; i < size; i++)
        memcpy(out[i], from_top[size - 1 - i], MERKLE_HASH);
    return size;
}

int merkle_follow(const unsigned char leaf[MERKLE_HASH], uint64_t at, uint64_t count,
                  const unsigned char (*proof)[MERKLE_HASH], size_t size,
                  unsigned char root[MERKLE_HASH])
{
    uint64_t last = count - 1;

    if (count == 0 || at > last)
        return -1;
    memcpy(root, leaf, MERKLE_HASH);
    for (size_t i = 0; i < size; i++, at >>= 1, last >>= 1) {
        if (last == 0)
            return -1;
        if (!(at & 1) && at == last) /* it has no neighbour here: it moves up as it is */
            while (!(at & 1) && last) {
                at >>= 1;
                last >>= 1;
            }
        if (at & 1)
            join(root, proof[i], root);
        else
            join(root, root, proof[i]);
    }
    return last == 0 ? 0 : -1;
}
