/*
 * encoding_image.c: an encoding as one block of memory: checked, and looked up in.
 *
 * Must never believe a number of an image that came from outside: image_open() looks at
 * every one of them once, so that looking up need not.
 */
#include "tokens/encoding_image.h"

#include <string.h>

#include "tokens/pretoken.h"

/* Tables of 16 slots to 16 million. */
#define BITS_MIN 4
#define BITS_MAX 24
/* What is not short, but the header, up to the checksum's end. */
#define CHECKED_FROM (offsetof(image_header, checksum) + sizeof(uint64_t))

/* Each section begins at a multiple of 8. */
static uint64_t section(uint64_t *at, uint64_t bytes)
{
    uint64_t start = *at;
    *at = (start + bytes + 7) & ~UINT64_C(7);
    return start;
}

uint64_t image_lay_out(image *out, const image_header *h)
{
    uint64_t at = sizeof *h;
    const char *base = (const char *)h;

    out->header = h;
    out->short_keys = (const void *)(base + section(&at, UINT64_C(8) << h->short_bits));
    out->pairs = (const void *)(base + section(&at, UINT64_C(8) << h->pair_bits));
    out->long_pieces = (const void *)(base + section(&at, UINT64_C(8) << h->long_bits));
    out->short_tokens = (const void *)(base + section(&at, UINT64_C(4) << h->short_bits));
    out->merged = (const void *)(base + section(&at, UINT64_C(4) * h->ranks));
    out->offsets = (const void *)(base + section(&at, UINT64_C(4) * (h->tokens + 1)));
    out->ids = (const void *)(base + section(&at, UINT64_C(4) * h->tokens));
    out->bytes = (const void *)(base + section(&at, UINT64_C(4) * 256));
    out->added = (const uint32_t(*)[4])(base + section(&at, UINT64_C(16) * h->added));
    out->text = (const void *)(base + section(&at, h->token_text));
    out->added_text = (const void *)(base + section(&at, h->added_text));
    out->pattern = base + section(&at, h->pattern_text);
    out->short_shift = 64 - h->short_bits;
    out->pair_shift = 64 - h->pair_bits;
    out->long_shift = 64 - h->long_bits;
    return at;
}

/* Not against those who mean harm, who can make a sum that is right. */
uint64_t image_checksum(const image_header *h)
{
    const unsigned char *at = (const unsigned char *)h + CHECKED_FROM;
    uint64_t sum[4] = {1, 2, 3, 4}, word[4], left = (h->size - CHECKED_FROM) / 8;
    size_t k;

    for (; left >= 4; left -= 4, at += 32) {
        memcpy(word, at, 32);
        for (k = 0; k < 4; k++)
            sum[k] = image_mix(sum[k] ^ word[k]);
    }
    for (; left > 0; left--, at += 8) {
        memcpy(word, at, 8);
        sum[0] = image_mix(sum[0] ^ word[0]);
    }
    return image_mix(image_mix(image_mix(sum[0]) ^ sum[1]) ^ sum[2]) ^ sum[3];
}

/* ------------------------------------------------------------------ looking up */

/* Eight bytes at a time; what is left over is read again with the last of them. */
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

int64_t image_piece(const image *i, const unsigned char *text, size_t size)
{
    uint64_t word = 0;
    if (size > IMAGE_SHORT)
        return image_long_piece(i, text, size);
    memcpy(&word, text, size);
    return image_short_piece(i, IMAGE_KEY(word, size));
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
    return fail(err, SESSILE_INVALID, "%s: make the file anew", what);
}

/* A slot must be found empty within a bounded walk, from anywhere. */
typedef struct walk {
    uint64_t run, first, slots;
    int wrapped;
} walk;

static int walk_bad(walk *w, int empty)
{
    if (empty) {
        if (!w->wrapped)
            w->first = w->run;
        w->wrapped = 1;
        w->run = 0;
        return 0;
    }
    return ++w->run > IMAGE_WALK_MAX;
}

static int walk_end_bad(const walk *w)
{
    return !w->wrapped || w->run + w->first > IMAGE_WALK_MAX;
}

/* Every slot of the three tables names what is there, and no walk is long. */
static int tables_bad(const image *i)
{
    const image_header *h = i->header;
    walk w;
    uint64_t at;

    memset(&w, 0, sizeof w);
    for (at = 0; at >> h->short_bits == 0; at++) {
        int empty = i->short_keys[at] == IMAGE_NONE;
        if (walk_bad(&w, empty) || (!empty && i->short_tokens[at] >= h->tokens))
            return 1;
    }
    if (walk_end_bad(&w))
        return 1;
    memset(&w, 0, sizeof w);
    for (at = 0; at >> h->long_bits == 0; at++) {
        int empty = i->long_pieces[at] == IMAGE_NONE;
        if (walk_bad(&w, empty) ||
            (!empty && (i->long_pieces[at] & 0xffffff) >= h->tokens))
            return 1;
    }
    if (walk_end_bad(&w))
        return 1;
    memset(&w, 0, sizeof w);
    for (at = 0; at >> h->pair_bits == 0; at++) {
        int empty = i->pairs[at] == IMAGE_NONE;
        if (walk_bad(&w, empty) || (!empty && (i->pairs[at] & IMAGE_NO_RANK) >= h->ranks))
            return 1;
    }
    return walk_end_bad(&w);
}

static int numbers_bad(const image *i)
{
    const image_header *h = i->header;
    uint32_t k, from = 0;

    for (k = 0; k < h->ranks; k++) {
        if (i->merged[k] >= h->tokens)
            return 1;
    }
    for (k = 0; k < h->tokens; k++) {
        if (i->offsets[k] > i->offsets[k + 1] || (k > 0 && i->ids[k] <= i->ids[k - 1]))
            return 1;
    }
    if (i->offsets[0] != 0 || i->offsets[h->tokens] != h->token_text)
        return 1;
    for (k = 0; k < 256; k++) {
        if (i->bytes[k] >= h->tokens)
            return 1;
    }
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
    for (k = 0; k < sizeof h->spare / sizeof *h->spare; k++) {
        if (h->spare[k])
            return 1;
    }
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
    if (h->size != size || image_lay_out(out, h) != size)
        return bad(err, "it is cut short, or has more than belongs to it");
    if (image_checksum(h) != h->checksum)
        return bad(err, "its checksum is wrong");
    if (tables_bad(out) || numbers_bad(out))
        return bad(err, "its tables are damaged");
    out->identity = 1;
    for (k = 0; k < h->tokens && out->identity; k++)
        out->identity = out->ids[k] == k;
    return SESSILE_OK;
}
