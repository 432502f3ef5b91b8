/*
 * encoding_text.c: counts, encodes and decodes texts with an open encoding.
 *
 * Owns the steps of a text: invalid UTF-8 is replaced, added tokens are found, the rest
 * is split into pieces, and a piece that is not a token is merged. Must never change the
 * encoding: threads share it without a lock. A call allocates and frees its own memory.
 */
#include "tokens/encoding_internal.h"

#include <string.h>

#include "base/text.h"
#include "tokens/encoding_merge.h"

/* The largest text: positions in it are 32-bit numbers. */
#define TEXT_MAX (UINT64_C(1) << 31)

/* A piece that was merged before in the same call. Names, and words of languages that
 * the vocabulary covers badly, are frequent in one text. */
#define REMEMBERED 512
typedef struct remembered {
    const unsigned char *text; /* in the text of the call; NULL: nothing yet */
    uint32_t size, count;
} remembered;

/* The state of one call. */
typedef struct reading {
    const encoding *e;
    int64_t count;
    buf *out; /* NULL: tokens are counted alone */
    merge_room room;
    remembered *known; /* REMEMBERED of them; NULL: none, the text does not stay */
    int known_ready;
} reading;

static inline int put_id(reading *r, uint32_t id)
{
    r->count++;
    if (r->out)
        buf_put(r->out, &id, sizeof id);
    return r->out && r->out->failed ? -1 : 0;
}

static int put_tokens(reading *r, const uint32_t *tokens, size_t count)
{
    size_t k;

    r->count += (int64_t)count;
    if (!r->out)
        return 0;
    for (k = 0; k < count; k++)
        buf_put(r->out, &r->e->image.ids[tokens[k]], sizeof(uint32_t));
    return r->out->failed ? -1 : 0;
}

/* The slot for a piece. */
static remembered *place_of(reading *r, const unsigned char *text, size_t size)
{
    uint64_t hash;

    if (!r->known_ready)
        memset(r->known, 0, REMEMBERED * sizeof *r->known);
    r->known_ready = 1;
    hash = size < 8 ? image_mix(image_key(text, size, size)) : image_hash(text, size);
    return &r->known[hash >> 32 & (REMEMBERED - 1)];
}

static int put_merged(reading *r, const unsigned char *text, size_t size)
{
    uint32_t few[MERGE_SMALL], *tokens = few;
    remembered *place = NULL;
    size_t count;

    if (size > MERGE_SMALL) {
        if (merge_large(&r->e->image, text, size, &r->room, &tokens, &count))
            return -1;
        return put_tokens(r, tokens, count);
    }
    if (r->known) {
        place = place_of(r, text, size);
        if (place->text && place->size == size && !memcmp(place->text, text, size)) {
            r->count += place->count;
            return 0;
        }
    }
    count = merge_small(&r->e->image, text, size, few);
    if (place)
        *place = (remembered){text, (uint32_t)size, (uint32_t)count};
    return put_tokens(r, few, count);
}

/* A piece; `room - size` more bytes can be read after it. */
static inline int put_near(reading *r, const unsigned char *piece, size_t size,
                           size_t room)
{
    int64_t token = image_piece(&r->e->image, piece, size, room);

    if (token < 0)
        return put_merged(r, piece, size);
    return put_id(r, r->e->image.ids[token]);
}

static int put_piece(void *arg, const unsigned char *piece, size_t size)
{
    return put_near(arg, piece, size, size);
}

/* Counts a valid text without added tokens. */
static sessile_status read_plain(reading *r, const unsigned char *text, size_t size,
                                 sessile_error *err)
{
    const unsigned char *end = text + size;
    pretoken_scanner *scan = r->e->scan;

    if (!scan)
        return cutter_run(r->e->cutter, text, size, put_piece, r, err);
    while (text < end) {
        size_t length = scan(text, end);
        if (put_near(r, text, length, (size_t)(end - text)))
            return fail_nomem(err);
        text += length;
    }
    return SESSILE_OK;
}

/* The same, with a space before the text if the encoding adds one. */
static sessile_status read_spaced(reading *r, const unsigned char *text, size_t size,
                                  sessile_error *err)
{
    remembered *known = r->known;
    sessile_status status;
    buf copy;

    if (size == 0)
        return SESSILE_OK; /* between two added tokens */
    if (!(r->e->image.header->flags & VOCABULARY_SPACE) || text[0] == ' ')
        return read_plain(r, text, size, err);
    buf_init(&copy, r->e->alloc);
    buf_putc(&copy, ' ');
    buf_put(&copy, text, size);
    r->known = NULL; /* pieces of a copy must not be remembered */
    status = copy.failed
                 ? fail_nomem(err)
                 : read_plain(r, (const unsigned char *)copy.data, copy.size, err);
    r->known = known;
    buf_deinit(&copy);
    return status;
}

/* The longest added token that the text begins with; -1: none. */
static int64_t added_at(const image *i, const unsigned char *text, size_t size)
{
    int64_t best = -1;
    uint32_t k, longest = 0;

    for (k = 0; k < i->header->added; k++) {
        const uint32_t *a = i->added[k];
        if ((a[1] & ADDED_FOUND) && a[3] > longest && a[3] <= size &&
            !memcmp(i->added_text + a[2], text, a[3])) {
            best = k;
            longest = a[3];
        }
    }
    return best;
}

static sessile_status read_text(reading *r, const unsigned char *text, size_t size,
                                sessile_error *err)
{
    const image *i = &r->e->image;
    sessile_status status = SESSILE_OK;
    size_t at = 0, from = 0;

    while (r->e->finds && at < size && !status) {
        int64_t added = added_at(i, text + at, size - at);
        if (added < 0) {
            at++;
            continue;
        }
        status = read_spaced(r, text + from, at - from, err);
        if (!status && put_id(r, i->added[added][0]))
            status = fail_nomem(err);
        from = at += i->added[added][3];
    }
    if (status || size == from)
        return status;
    return read_spaced(r, text + from, size - from, err);
}

static sessile_status read_any(reading *r, const char *text, size_t size,
                               sessile_error *err)
{
    sessile_status status;
    buf copy;

    if (size > TEXT_MAX)
        return fail(err, SESSILE_LIMIT, "a text to count has at most %u MiB",
                    (unsigned)(TEXT_MAX >> 20));
    buf_init(&copy, r->e->alloc);
    r->room.alloc = r->e->alloc;
    if (!utf8_valid(text, size)) {
        utf8_put_lossy(&copy, text, size);
        text = copy.data;
        size = copy.size;
    }
    status = copy.failed ? fail_nomem(err)
                         : read_text(r, (const unsigned char *)text, size, err);
    buf_deinit(&copy);
    mem_free(r->room.alloc, r->room.memory, r->room.capacity);
    return status;
}

sessile_status encoding_count(const encoding *e, const char *text, size_t size,
                              int64_t *tokens, sessile_error *err)
{
    remembered known[REMEMBERED];
    reading r = {.e = e, .known = known};
    sessile_status status = read_any(&r, text, size, err);

    *tokens = status ? 0 : r.count;
    return status;
}

sessile_status encoding_encode(const encoding *e, const char *text, size_t size, buf *out,
                               sessile_error *err)
{
    reading r = {.e = e, .out = out};
    size_t before = out->size;
    sessile_status status = read_any(&r, text, size, err);

    if (status)
        out->size = before;
    return status;
}

/* The bytes of one id; -1: it has none. */
static int token_text(const image *i, uint32_t id, const unsigned char **text,
                      size_t *size)
{
    int64_t token = image_token_of(i, id);
    uint32_t k;

    if (token >= 0) {
        *text = i->text + i->offsets[token];
        *size = i->offsets[token + 1] - i->offsets[token];
        return 0;
    }
    for (k = 0; k < i->header->added; k++) {
        if (i->added[k][0] == id) {
            *text = i->added_text + i->added[k][2];
            *size = i->added[k][3];
            return 0;
        }
    }
    return -1;
}

sessile_status encoding_decode(const encoding *e, const uint32_t *ids, size_t count,
                               buf *out, sessile_error *err)
{
    size_t k, size, before = out->size;
    const unsigned char *text;

    for (k = 0; k < count; k++) {
        if (token_text(&e->image, ids[k], &text, &size)) {
            out->size = before;
            return fail(err, SESSILE_INVALID, "%s has no token %u", encoding_name(e),
                        ids[k]);
        }
        buf_put(out, text, size);
    }
    if (out->failed)
        out->size = before;
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}
