/*
 * encoding_image.h: an encoding as one block of memory, which may be a mapped file.
 *
 * Built from a vocabulary, or checked when it comes from outside. Numbers are in the
 * order of bytes of the machine that wrote them, and the header says which; each table
 * begins at a multiple of 8. How long each is follows from the counts in the header, and
 * where it begins from what stands before, so that there is no offset that could point
 * elsewhere.
 *
 *     header                  struct image_header
 *     short pieces  u64[]     tokens of 1 to 7 bytes: hash table of their keys
 *     pairs         u64[]     what merges: hash table, left 21 bits | right 21 | rank 21
 *     long pieces   u64[]     tokens of 8 bytes and more: hash table, hash 40 | token 24
 *     short tokens  u32[]     which token the short piece in the same slot is
 *     merged        u32[]     the token that a merge of each rank makes
 *     offsets       u32[]     where each token's bytes begin, and the end of the last
 *     ids           u32[]     the id of each token, ascending
 *     bytes         u32[256]  the token of each byte
 *     added         u32[4][]  id, flags, offset and size of each added token
 *     text          u8[]      the bytes of tokens, of added ones, and the pattern
 *
 * A token is named by its place in the order of ids: not all encodings number without
 * gaps.
 */
#ifndef TOKENS_ENCODING_IMAGE_H
#define TOKENS_ENCODING_IMAGE_H

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "tokens/encoding_vocabulary.h"

#define IMAGE_MAGIC   "sessbpe\n"
#define IMAGE_ORDER   UINT32_C(0x01020304)
#define IMAGE_VERSION 1
#define IMAGE_NONE    UINT64_MAX /* an empty slot of any table */
#define IMAGE_NO_RANK UINT32_C(0x1fffff)
#define IMAGE_SHORT   7 /* bytes */
/* The longest way through a table to an empty slot. */
#define IMAGE_WALK_MAX 1024
/* The part of a hash that is stored in a slot of long pieces. */
#define IMAGE_HASH_MASK ((UINT64_C(1) << 40) - 1)

typedef struct image_header {
    char magic[8];
    uint32_t order, version;
    uint64_t size;     /* of the whole */
    uint64_t checksum; /* of all that follows this field */
    char name[64];     /* with a NUL */
    uint32_t pattern;  /* PRETOKEN_…, or PRETOKEN_KINDS: an expression in text */
    uint32_t flags;    /* VOCABULARY_… */
    uint32_t tokens, ranks, added;
    uint32_t short_bits, long_bits, pair_bits; /* tables have 1 << bits slots */
    uint32_t token_text; /* bytes of all tokens; in `text` the added ones follow */
    uint32_t added_text; /* and with the pattern */
    uint32_t pattern_text;
    uint32_t spare[5]; /* zero */
} image_header;

/* The parts of an image. */
typedef struct image {
    const image_header *header;
    const uint64_t *short_keys, *pairs, *long_pieces;
    const uint32_t *short_tokens, *merged, *offsets, *ids, *bytes;
    const uint32_t (*added)[4];
    const unsigned char *text, *added_text;
    const char *pattern;
    /* Shifts that turn hashes into slots, from the upper bits. */
    unsigned short_shift, long_shift, pair_shift;
    int identity; /* token n has the id n */
} image;

/* Builds the image of a vocabulary into out, which is empty. INVALID, LIMIT, NOMEM. */
sessile_status image_build(buf *out, const vocabulary *v, sessile_error *err);
/* Checks size bytes, aligned to 8, and fills *out, which points into them. INVALID:
 * they are not an image, and why. */
sessile_status image_open(image *out, const void *data, size_t size, sessile_error *err);

/* ---- for encoding_build.c: the size of the whole, the position of each table of this
 * header, and the checksum. */
uint64_t image_size(const image_header *h);
void image_lay_out(image *out, const image_header *h);
uint64_t image_checksum(const image_header *h);
uint64_t image_hash(const unsigned char *text, size_t size); /* of 8 bytes and more */

/* ---- lookups */

static inline uint64_t image_mix(uint64_t key)
{
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

/* The rank of the merge of two tokens, or IMAGE_NO_RANK. */
static inline uint32_t image_pair(const image *i, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 21 | right, slot;
    uint64_t mask = (UINT64_C(1) << i->header->pair_bits) - 1;
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> i->pair_shift;

    while ((slot = i->pairs[at]) != IMAGE_NONE) {
        if (slot >> 21 == key)
            return (uint32_t)slot & IMAGE_NO_RANK;
        at = (at + 1) & mask;
    }
    return IMAGE_NO_RANK;
}

/* A piece of 1 to 7 bytes as one number: its bytes in the machine's order, and its
 * size in the remaining byte. `room` bytes can be read at text; 8 are faster. */
static inline uint64_t image_key(const unsigned char *text, size_t size, size_t room)
{
    uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (room >= 8) {
        memcpy(&word, text, 8);
        word &= (UINT64_C(1) << 8 * size) - 1;
    } else {
        memcpy(&word, text, size);
    }
    return word | (uint64_t)size << 56;
#else
    (void)room;
    memcpy(&word, text, size);
    return word | size;
#endif
}

/* The token that a whole piece is, or -1. */
int64_t image_long_piece(const image *i, const unsigned char *text, size_t size);
/* The token of an id, or -1. */
int64_t image_token_of(const image *i, uint32_t id);

static inline int64_t image_short_piece(const image *i, uint64_t key)
{
    uint64_t mask = (UINT64_C(1) << i->header->short_bits) - 1, slot;
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> i->short_shift;

    while ((slot = i->short_keys[at]) != IMAGE_NONE) {
        if (slot == key)
            return i->short_tokens[at];
        at = (at + 1) & mask;
    }
    return -1;
}

/* The same for a piece of any size. */
static inline int64_t image_piece(const image *i, const unsigned char *text, size_t size,
                                  size_t room)
{
    return size > IMAGE_SHORT ? image_long_piece(i, text, size)
                              : image_short_piece(i, image_key(text, size, room));
}

#endif
