/*
 * encoding_build.c: makes an image of a vocabulary.
 *
 * Must never make an image that image_open() would refuse, or take long for a
 * vocabulary that was made to be slow.
 *
 * If a vocabulary lists no merges, any two tokens merge whose bytes together are a
 * token. Most such pairs never meet. When merging produces a token in a text, the
 * merges inside it are exactly those that produce it when it stands alone: what
 * happens outside touches none of its bytes, and the order is the same. So each token
 * is merged once, alone, and only the last pair goes into the table. A token that is
 * not produced alone is never produced. The table then has one pair for each token
 * instead of five, and fits into a cache.
 */
#include "tokens/encoding_image.h"

#include <stdlib.h>
#include <string.h>

#include "tokens/encoding_merge.h"
#include "tokens/pretoken.h"

typedef struct builder {
    const vocabulary *v;
    const vocabulary_token **order; /* the tokens by their ids */
    vocabulary_merge *pairs;        /* by rank; tokens, not ids */
    size_t pair_count;
    unsigned char *whole; /* of each token: is it found as a piece? */
    buf *out;
    image_header header;
    image i;
} builder;

static int by_id(const void *a, const void *b)
{
    const vocabulary_token *const *x = a, *const *y = b;
    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* Slots for `count` items; at least three in eight stay empty. */
static uint32_t bits_for(size_t count)
{
    uint32_t bits = 4;
    while (((size_t)5 << bits) < 8 * count)
        bits++;
    return bits;
}

/* Walks to an empty slot of a table; NULL: further than a reader would. */
static uint64_t *empty_slot(const uint64_t *table, uint64_t at, uint32_t bits)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    unsigned walked;
    for (walked = 0; walked < IMAGE_WALK_MAX / 4; walked++) {
        if (table[at] == IMAGE_NONE)
            return (uint64_t *)table + at;
        at = (at + 1) & mask;
    }
    return NULL;
}

static sessile_status crowded(sessile_error *err)
{
    return fail(
        err, SESSILE_INVALID,
        "its tokens crowd together in one place of a hash table: no vocabulary that "
        "was trained does");
}

static const unsigned char *bytes_of(const builder *b, size_t token)
{
    return (const unsigned char *)b->v->text.data + b->order[token]->offset;
}

/* Both tables of pieces, of the tokens that are `whole`. */
static sessile_status put_pieces(builder *b, sessile_error *err)
{
    const image *i = &b->i;
    size_t k;

    memset((void *)i->short_keys, 0xff, (size_t)8 << b->header.short_bits);
    memset((void *)i->long_pieces, 0xff, (size_t)8 << b->header.long_bits);
    for (k = 0; k < b->v->count; k++) {
        size_t size = b->order[k]->size;
        uint64_t word = 0, *slot;
        if (!b->whole[k])
            continue;
        if (image_piece(i, bytes_of(b, k), size, size) >= 0)
            return fail(err, SESSILE_INVALID, "tokens %u and %u are the same bytes",
                        i->ids[image_piece(i, bytes_of(b, k), size, size)],
                        b->order[k]->id);
        if (size <= IMAGE_SHORT) {
            word = image_key(bytes_of(b, k), size, size);
            slot = empty_slot(i->short_keys,
                              word * UINT64_C(0x9e3779b97f4a7c15) >> i->short_shift,
                              b->header.short_bits);
            if (slot) {
                *slot = word;
                ((uint32_t *)i->short_tokens)[slot - i->short_keys] = (uint32_t)k;
            }
        } else {
            word = image_hash(bytes_of(b, k), size);
            slot = empty_slot(i->long_pieces, word >> i->long_shift, b->header.long_bits);
            if (slot)
                *slot = (word & IMAGE_HASH_MASK) << 24 | k;
        }
        if (!slot)
            return crowded(err);
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ merges */

/* The token that two neighbours merge into, without a table of pairs: the one with the
 * bytes of both. */
static uint32_t joined(const builder *b, const unsigned char *text, size_t size)
{
    int64_t token = image_piece(&b->i, text, size, size);
    return token < 0 ? UINT32_MAX : (uint32_t)token;
}

/* Merges a token's bytes, and returns the last two parts. 0: merging does not produce
 * it. */
static int last_merge(const builder *b, size_t token, vocabulary_merge *out)
{
    const unsigned char *text = bytes_of(b, token);
    /* The start of each token, and what it would be with its neighbour. */
    uint32_t starts[VOCABULARY_TOKEN_MAX + 1], pairs[VOCABULARY_TOKEN_MAX];
    size_t n = b->order[token]->size, k;

    for (k = 0; k <= n; k++)
        starts[k] = (uint32_t)k;
    for (k = 0; k + 1 < n; k++)
        pairs[k] = joined(b, text + k, 2);
    while (n > 2) {
        size_t at = 0;
        for (k = 1; k + 1 < n; k++)
            if (pairs[k] < pairs[at])
                at = k;
        if (pairs[at] == UINT32_MAX)
            return 0;
        memmove(starts + at + 1, starts + at + 2, (n - at - 1) * sizeof *starts);
        memmove(pairs + at, pairs + at + 1, (n - at - 2) * sizeof *pairs);
        n--;
        if (at + 1 < n)
            pairs[at] = joined(b, text + starts[at], starts[at + 2] - starts[at]);
        if (at > 0)
            pairs[at - 1] =
                joined(b, text + starts[at - 1], starts[at + 1] - starts[at - 1]);
    }
    if (n != 2)
        return 0;
    out->left = joined(b, text, starts[1]);
    out->right = joined(b, text + starts[1], starts[2] - starts[1]);
    out->made = (uint32_t)token;
    return 1;
}

/* The pairs that merge, by rank: the listed ones, or those that are found. */
static sessile_status find_merges(builder *b, sessile_error *err)
{
    size_t k;

    for (k = 0; k < b->v->merge_count; k++) {
        const vocabulary_merge *m = &b->v->merges[k];
        int64_t left = image_token_of(&b->i, m->left), right, made;
        right = image_token_of(&b->i, m->right);
        made = image_token_of(&b->i, m->made);
        if (left < 0 || right < 0 || made < 0)
            return fail(err, SESSILE_INVALID, "merge %zu is of what is no token", k);
        b->pairs[k] = (vocabulary_merge){(uint32_t)left, (uint32_t)right, (uint32_t)made};
    }
    b->pair_count = k;
    for (k = 0; k < b->v->count && !b->v->listed; k++) {
        if (b->order[k]->size > VOCABULARY_TOKEN_MAX)
            return fail(err, SESSILE_LIMIT, "token %u has more than %d bytes",
                        b->order[k]->id, VOCABULARY_TOKEN_MAX);
        if (last_merge(b, k, &b->pairs[b->pair_count]))
            b->pair_count++;
    }
    return SESSILE_OK;
}

static sessile_status put_pairs(builder *b, sessile_error *err)
{
    const image *i = &b->i;
    size_t k;

    memset((void *)i->pairs, 0xff, (size_t)8 << b->header.pair_bits);
    for (k = 0; k < b->pair_count; k++) {
        const vocabulary_merge *m = &b->pairs[k];
        uint64_t key = (uint64_t)m->left << 21 | m->right, *slot;
        /* The first of two equal pairs counts. */
        if (image_pair(i, m->left, m->right) == IMAGE_NO_RANK) {
            slot =
                empty_slot(i->pairs, key * UINT64_C(0x9e3779b97f4a7c15) >> i->pair_shift,
                           b->header.pair_bits);
            if (!slot)
                return crowded(err);
            *slot = key << 21 | k;
        }
        ((uint32_t *)i->merged)[k] = m->made;
    }
    return SESSILE_OK;
}

/* Keeps as whole pieces only the tokens into which their bytes merge. */
static sessile_status keep_merged(builder *b, sessile_error *err)
{
    merge_room room = {.alloc = b->v->alloc};
    uint32_t few[MERGE_SMALL], *tokens = few;
    sessile_status status = SESSILE_OK;
    size_t k, count;

    for (k = 0; k < b->v->count && !status; k++) {
        size_t size = b->order[k]->size;
        if (size <= MERGE_SMALL) {
            tokens = few;
            count = merge_small(&b->i, bytes_of(b, k), size, few);
        } else if (merge_large(&b->i, bytes_of(b, k), size, &room, &tokens, &count)) {
            status = fail_nomem(err);
            break;
        }
        b->whole[k] = count == 1 && tokens[0] == k;
    }
    mem_free(room.alloc, room.memory, room.capacity);
    return status ? status : put_pieces(b, err);
}

/* ------------------------------------------------------------------ the rest */

/* Bytes that UTF-8 never has need no token. */
static int in_utf8(unsigned byte)
{
    return byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
}

static sessile_status put_bytes(builder *b, sessile_error *err)
{
    unsigned k;
    for (k = 0; k < 256; k++) {
        unsigned char byte = (unsigned char)k;
        int64_t token = image_piece(&b->i, &byte, 1, 1);
        if (token < 0 && in_utf8(k))
            return fail(err, SESSILE_INVALID, "no token is the byte 0x%02x alone", k);
        ((uint32_t *)b->i.bytes)[k] = token < 0 ? 0 : (uint32_t)token;
    }
    return SESSILE_OK;
}

static void put_lists(builder *b)
{
    const vocabulary *v = b->v;
    uint32_t *offsets = (uint32_t *)b->i.offsets, *added = (uint32_t *)b->i.added;
    char *text = (char *)b->i.text;
    uint32_t at = 0;
    size_t k;

    for (k = 0; k < v->count; k++) {
        ((uint32_t *)b->i.ids)[k] = b->order[k]->id;
        offsets[k] = at;
        memcpy(text + at, bytes_of(b, k), b->order[k]->size);
        at += b->order[k]->size;
    }
    offsets[k] = at;
    text = (char *)b->i.added_text;
    for (k = at = 0; k < v->added_count; k++) {
        const vocabulary_token *t = &v->added[k];
        uint32_t row[4] = {t->id, t->flags, at, t->size};
        memcpy(added + 4 * k, row, sizeof row);
        memcpy(text + at, v->text.data + t->offset, t->size);
        at += t->size;
    }
    if (v->cuts.size)
        memcpy((char *)b->i.pattern, v->cuts.data, v->cuts.size);
}

/* Sets the header's counts, and allocates what follows it. */
static sessile_status reserve(builder *b, sessile_error *err)
{
    const vocabulary *v = b->v;
    image_header *h = &b->header;
    size_t k, short_count = 0;

    memcpy(h->magic, IMAGE_MAGIC, sizeof h->magic);
    h->order = IMAGE_ORDER;
    h->version = IMAGE_VERSION;
    memcpy(h->name, v->name, sizeof h->name);
    h->pattern = v->pattern;
    h->flags = v->flags;
    h->tokens = (uint32_t)v->count;
    h->ranks = (uint32_t)(v->listed ? v->merge_count : v->count);
    h->added = (uint32_t)v->added_count;
    for (k = 0; k < v->count; k++) {
        short_count += v->tokens[k].size <= IMAGE_SHORT;
        h->token_text += v->tokens[k].size;
        if (k > 0 && b->order[k]->id == b->order[k - 1]->id)
            return fail(err, SESSILE_INVALID, "two tokens have the id %u",
                        b->order[k]->id);
    }
    for (k = 0; k < v->added_count; k++)
        h->added_text += v->added[k].size;
    h->pattern_text = (uint32_t)v->cuts.size;
    h->short_bits = bits_for(short_count);
    h->long_bits = bits_for(v->count - short_count);
    h->pair_bits = bits_for(h->ranks);
    h->size = image_size(h);
    if (buf_reserve(b->out, h->size))
        return fail_nomem(err);
    memset(b->out->data, 0, h->size);
    memcpy(b->out->data, h, sizeof *h);
    b->out->size = h->size;
    image_lay_out(&b->i, (const image_header *)b->out->data);
    return SESSILE_OK;
}

static sessile_status build_image(builder *b, sessile_error *err)
{
    sessile_status status = reserve(b, err);

    if (status)
        return status;
    put_lists(b);
    status = put_pieces(b, err);
    if (!status)
        status = put_bytes(b, err);
    if (!status)
        status = find_merges(b, err);
    if (!status)
        status = put_pairs(b, err);
    if (!status && !(b->v->flags & VOCABULARY_WHOLE))
        status = keep_merged(b, err);
    if (!status)
        ((image_header *)b->out->data)->checksum = image_checksum(b->i.header);
    return status;
}

sessile_status image_build(buf *out, const vocabulary *v, sessile_error *err)
{
    builder b;
    size_t k, pairs = v->listed ? v->merge_count : v->count;
    sessile_status status;

    if (v->count == 0)
        return fail(err, SESSILE_INVALID, "there is no token in it");
    memset(&b, 0, sizeof b);
    b.v = v;
    b.out = out;
    b.order = mem_alloc(v->alloc, v->count * sizeof *b.order);
    b.pairs = mem_alloc(v->alloc, pairs * sizeof *b.pairs);
    b.whole = mem_alloc(v->alloc, v->count);
    if (b.order && b.pairs && b.whole) {
        for (k = 0; k < v->count; k++)
            b.order[k] = &v->tokens[k];
        qsort(b.order, v->count, sizeof *b.order, by_id);
        memset(b.whole, 1, v->count);
        status = build_image(&b, err);
    } else {
        status = fail_nomem(err);
    }
    mem_free(v->alloc, b.order, v->count * sizeof *b.order);
    mem_free(v->alloc, b.pairs, pairs * sizeof *b.pairs);
    mem_free(v->alloc, b.whole, v->count);
    return status;
}
