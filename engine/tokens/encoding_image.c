/*
 * encoding_image.c: an encoding as one block of memory: checked, and searched.
 *
 * Must never trust a number of an image from outside: image_open() checks every one of
 * them once, so that lookups need not.
 */
#include "tokens/encoding_image.h"

#include <string.h>

#include "tokens/pretoken.h"

/* Tables of 16 slots to 16 million. */
#define BITS_MIN 4
#define BITS_MAX 24
/* What is not short, but the header, up to the checksum's end. */
#define CHECKED_FROM (offsetof(image_header, checksum) + sizeof(uint64_t))

enum {
    SHORT_KEYS,
    PAIRS,
    LONG_PIECES,
    SHORT_TOKENS,
    MERGED,
    OFFSETS,
    IDS,
    BYTES,
    ADDED,
    TEXT,
    ADDED_TEXT,
    PATTERN,
    SECTIONS
};

/* Where each section begins, at multiples of 8; the end of the last. */
static uint64_t find_sections(const image_header *h, uint64_t starts[SECTIONS])
{
    const uint64_t sizes[SECTIONS] = {
        UINT64_C(8) << h->short_bits,
        UINT64_C(8) << h->pair_bits,
        UINT64_C(8) << h->long_bits,
        UINT64_C(4) << h->short_bits,
        UINT64_C(4) * h->ranks,
        UINT64_C(4) * (h->tokens + 1),
        UINT64_C(4) * h->tokens,
        UINT64_C(4) * 256,
        UINT64_C(16) * h->added,
        h->token_text,
        h->added_text,
        h->pattern_text,
    };
    uint64_t at = sizeof *h;
    size_t k;

    for (k = 0; k < SECTIONS; k++) {
        starts[k] = at;
        at = (at + sizes[k] + 7) & ~UINT64_C(7);
    }
    return at;
}

uint64_t image_size(const image_header *h)
{
    uint64_t starts[SECTIONS];
    return find_sections(h, starts);
}

void image_lay_out(image *out, const image_header *h)
{
    uint64_t at[SECTIONS];
    const char *base = (const char *)h;

    find_sections(h, at);
    out->header = h;
    out->short_keys = (const uint64_t *)(base + at[SHORT_KEYS]);
    out->pairs = (const uint64_t *)(base + at[PAIRS]);
    out->long_pieces = (const uint64_t *)(base + at[LONG_PIECES]);
    out->short_tokens = (const uint32_t *)(base + at[SHORT_TOKENS]);
    out->merged = (const uint32_t *)(base + at[MERGED]);
    out->offsets = (const uint32_t *)(base + at[OFFSETS]);
    out->ids = (const uint32_t *)(base + at[IDS]);
    out->bytes = (const uint32_t *)(base + at[BYTES]);
    out->added = (const uint32_t(*)[4])(base + at[ADDED]);
    out->text = (const unsigned char *)base + at[TEXT];
    out->added_text = (const unsigned char *)base + at[ADDED_TEXT];
    out->pattern = base + at[PATTERN];
    out->short_shift = 64 - h->short_bits;
    out->pair_shift = 64 - h->pair_bits;
    out->long_shift = 64 - h->long_bits;
}

static inline uint64_t mixed_in(uint64_t sum, const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return image_mix(sum ^ word);
}

/* Finds accidents, not attacks: an attacker can compute the sum. Four independent sums
 * run in parallel in the processor. */
uint64_t image_checksum(const image_header *h)
{
    const unsigned char *at = (const unsigned char *)h + CHECKED_FROM;
    uint64_t a = 1, b = 2, c = 3, d = 4, left = (h->size - CHECKED_FROM) / 8;

    for (; left >= 4; left -= 4, at += 32) {
        a = mixed_in(a, at);
        b = mixed_in(b, at + 8);
        c = mixed_in(c, at + 16);
        d = mixed_in(d, at + 24);
    }
    for (; left > 0; left--, at += 8)
        a = mixed_in(a, at);
    return image_mix(image_mix(image_mix(a) ^ b) ^ c) ^ d;
}

/* ------------------------------------------------------------------ looking up */

/* Eight bytes at a time; the last eight can overlap the ones before. */
uint64_t image_hash(const unsigned char *text, size_t size)
{
    uint64_t hash = size, word;
    size_t at;

    for (at = 0; at + 8 <= size; at += 8) {
        memcpy(&word, text + at, 8);
        hash = image_mix(hash ^ word);
    }
    if (at < size) {
        memcpy(&word, text + size - 8, 8);
        hash = image_mix(hash ^ word);
    }
    return image_mix(hash);
}

int64_t image_long_piece(const image *i, const unsigned char *text, size_t size)
{
    uint64_t hash = image_hash(text, size), slot;
    uint64_t mask = (UINT64_C(1) << i->header->long_bits) - 1;
    uint64_t at = hash >> i->long_shift;

    while ((slot = i->long_pieces[at]) != IMAGE_NONE) {
        if (slot >> 24 == (hash & IMAGE_HASH_MASK)) {
            uint32_t token = (uint32_t)slot & 0xffffff, from = i->offsets[token];
            if (i->offsets[token + 1] - from == size &&
                !memcmp(i->text + from, text, size))
                return token;
        }
        at = (at + 1) & mask;
    }
    return -1;
}

int64_t image_token_of(const image *i, uint32_t id)
{
    size_t low = 0, high = i->header->tokens;

    if (i->identity)
        return id < high ? (int64_t)id : -1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (i->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < i->header->tokens && i->ids[low] == id ? (int64_t)low : -1;
}

/* ------------------------------------------------------------------ checking */

static sessile_status bad(sessile_error *err, const char *what)
{
    return fail(err, SESSILE_INVALID, "%s: make the file again", what);
}

/* Checks a table of 1 << bits slots. Returns 1 if a slot names an item beyond `limit`
 * (items are in `names`, or in the slot itself, under `mask`), or if an empty slot can
 * be too far away. Without branches: whether a slot is empty cannot be predicted. */
static int table_bad(const uint64_t *slots, const uint32_t *names, uint32_t bits,
                     uint64_t mask, uint64_t limit)
{
    uint64_t count = UINT64_C(1) << bits, at, run = 0, longest = 0, wrong = 0;

    for (at = 0; at < count; at++) {
        uint64_t full = slots[at] != IMAGE_NONE;
        uint64_t name = names ? names[at] : slots[at] & mask;
        run = (run + 1) & (0 - full);
        longest = run > longest ? run : longest;
        wrong |= full & (uint64_t)(name >= limit);
    }
    /* A walk continues from the end of the table to its beginning. */
    for (at = 0; at < count && slots[at] != IMAGE_NONE; at++)
        run++;
    return wrong || at == count || longest > IMAGE_WALK_MAX || run > IMAGE_WALK_MAX;
}

static int tables_bad(const image *i)
{
    const image_header *h = i->header;
    return table_bad(i->short_keys, i->short_tokens, h->short_bits, 0, h->tokens) ||
           table_bad(i->long_pieces, NULL, h->long_bits, 0xffffff, h->tokens) ||
           table_bad(i->pairs, NULL, h->pair_bits, IMAGE_NO_RANK, h->ranks);
}

static int numbers_bad(const image *i)
{
    const image_header *h = i->header;
    uint32_t k, from = 0;

    for (k = 0; k < h->ranks; k++)
        if (i->merged[k] >= h->tokens)
            return 1;
    for (k = 0; k < h->tokens; k++)
        if (i->offsets[k] > i->offsets[k + 1] || (k > 0 && i->ids[k] <= i->ids[k - 1]))
            return 1;
    if (i->offsets[0] != 0 || i->offsets[h->tokens] != h->token_text)
        return 1;
    for (k = 0; k < 256; k++)
        if (i->bytes[k] >= h->tokens)
            return 1;
    for (k = 0; k < h->added; k++) {
        const uint32_t *a = i->added[k];
        if ((a[1] & ~(uint32_t)ADDED_FLAGS) || a[2] != from || a[3] == 0 ||
            a[3] > h->added_text - from)
            return 1;
        from += a[3];
    }
    return from != h->added_text;
}

static int header_bad(const image_header *h)
{
    size_t k;
    for (k = 0; k < sizeof h->spare / sizeof *h->spare; k++)
        if (h->spare[k])
            return 1;
    return !memchr(h->name, 0, sizeof h->name) || h->pattern > PRETOKEN_KINDS ||
           (h->flags & ~(uint32_t)VOCABULARY_FLAGS) || h->tokens == 0 ||
           h->tokens > VOCABULARY_MAX || h->ranks > VOCABULARY_MAX ||
           h->added > VOCABULARY_MAX || h->short_bits < BITS_MIN ||
           h->short_bits > BITS_MAX || h->long_bits < BITS_MIN ||
           h->long_bits > BITS_MAX || h->pair_bits < BITS_MIN ||
           h->pair_bits > BITS_MAX || h->token_text > VOCABULARY_TEXT_MAX ||
           h->added_text > VOCABULARY_TEXT_MAX || h->pattern_text > VOCABULARY_TEXT_MAX;
}

sessile_status image_open(image *out, const void *data, size_t size, sessile_error *err)
{
    const image_header *h = data;
    uint32_t k;

    memset(out, 0, sizeof *out);
    if (size < sizeof *h || memcmp(h->magic, IMAGE_MAGIC, sizeof h->magic) != 0)
        return bad(err, "it is no encoding");
    if (h->order != IMAGE_ORDER)
        return bad(err, "it was made on a machine with another order of bytes");
    if (h->version != IMAGE_VERSION)
        return bad(err, "it was made by another version of this library");
    if (header_bad(h))
        return bad(err, "its header is damaged");
    if (h->size != size || image_size(h) != size)
        return bad(err, "it is cut short, or has more than belongs to it");
    image_lay_out(out, h);
    if (image_checksum(h) != h->checksum)
        return bad(err, "its checksum is wrong");
    if (tables_bad(out) || numbers_bad(out))
        return bad(err, "its tables are damaged");
    out->identity = 1;
    for (k = 0; k < h->tokens && out->identity; k++)
        out->identity = out->ids[k] == k;
    return SESSILE_OK;
}
