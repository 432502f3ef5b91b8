/*
 * encoding.c: an encoding opened, and texts counted, encoded and decoded with it.
 *
 * Owns the way from a name to an image, and from a text through its pieces to tokens.
 * Must never change an encoding once it is open: threads share it without a lock. What a
 * call needs of memory it takes and gives back itself.
 */
#include "tokens/encoding.h"

#include <errno.h>
#include <string.h>

#include "base/os.h"
#include "base/text.h"
#include "tokens/cutter.h"
#include "tokens/encoding_image.h"
#include "tokens/encoding_merge.h"
#include "tokens/encoding_vocabulary.h"
#include "tokens/pretoken.h"

#ifndef SESSILE_SHARE
#define SESSILE_SHARE "/usr/local/share/sessile"
#endif
/* The largest file that is read: twice the largest vocabulary in use, and more. */
#define FILE_MAX (UINT64_C(1) << 28)
/* The largest text: places in it are 32-bit numbers. */
#define TEXT_MAX (UINT64_C(1) << 31)

struct sessile_encoding {
    image image;
    const allocator *alloc;
    allocator own;
    const os_table *os;
    pretoken_scanner *scan; /* or, where it is NULL, the steps of a pattern */
    cutter *cutter;
    int finds; /* some added tokens are found in texts */
    /* One of these holds the image. */
    const void *mapped;
    size_t mapped_size;
    buf memory;
};

/* ------------------------------------------------------------------ files */

/* Opens a regular file to read; its size. `what` is for errors. */
static sessile_status open_file(const os_table *os, const char *path, int *fd,
                                uint64_t *size, sessile_error *err)
{
    os_stat_info info;
    sessile_status status = SESSILE_OK;

    *fd = os->open_at(os->ud, -1, path, OS_READ | OS_FOLLOW);
    if (*fd < 0)
        return fail_errno(err, errno, "opening the encoding %s", path);
    if (os->stat_fd(os->ud, *fd, &info))
        status = fail_errno(err, errno, "looking at the encoding %s", path);
    else if (!info.is_regular)
        status = fail(err, SESSILE_INVALID, "the encoding %s is no regular file", path);
    else if (info.size > FILE_MAX)
        status = fail(err, SESSILE_LIMIT, "the encoding %s is larger than %u MiB", path,
                      (unsigned)(FILE_MAX >> 20));
    *size = status ? 0 : info.size;
    if (status) {
        os->close(os->ud, *fd);
        *fd = -1;
    }
    return status;
}

/* Appends the file's bytes to out. */
static sessile_status read_file(const os_table *os, int fd, uint64_t size, buf *out,
                                const char *path, sessile_error *err)
{
    int64_t got;

    if (buf_reserve(out, (size_t)size))
        return fail_nomem(err);
    got = os_read_full(os, fd, out->data, (size_t)size, 0);
    if (got < 0)
        return fail_errno(err, errno, "reading the encoding %s", path);
    out->size = (size_t)got;
    return SESSILE_OK;
}

/* An image: mapped where the system can, else read. */
static sessile_status open_image(encoding *e, const char *path, sessile_error *err)
{
    uint64_t size;
    int fd;
    sessile_status status = open_file(e->os, path, &fd, &size, err);

    if (status)
        return status;
    if (e->os->map && size > 0) {
        e->mapped = e->os->map(e->os->ud, fd, (size_t)size);
        e->mapped_size = (size_t)size;
    }
    if (!e->mapped)
        status = read_file(e->os, fd, size, &e->memory, path, err);
    e->os->close(e->os->ud, fd);
    if (status)
        return status;
    status = image_open(&e->image, e->mapped ? e->mapped : e->memory.data,
                        e->mapped ? e->mapped_size : e->memory.size, err);
    return status ? fail_prefix(err, "the encoding %s", path) : SESSILE_OK;
}

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/* ------------------------------------------------------------------ opening */

/* The pattern of a `.tiktoken` file: one that was given, or of the vocabulary it is. */
static sessile_status choose_pattern(vocabulary *v, const char *pattern,
                                     sessile_error *err)
{
    const char *known = pattern ? pattern : vocabulary_recognise(v);

    if (!known)
        return fail(err, SESSILE_INVALID,
                    "its vocabulary is none of the published ones: give its pattern, a "
                    "regular expression or the name of an encoding that has the same");
    if (vocabulary_known(v, known) == 0)
        return SESSILE_OK;
    v->pattern = pretoken_kind(pattern, strlen(pattern));
    return v->pattern < PRETOKEN_KINDS
               ? SESSILE_OK
               : cut_put(&v->cuts, pattern, strlen(pattern), CUT_KEEP, err);
}

/* The last part of a path, without its ending, as a name. */
static void name_of_path(vocabulary *v, const char *path)
{
    const char *at = strrchr(path, '/') + 1, *end = strrchr(at, '.');
    size_t size = end && end > at ? (size_t)(end - at) : strlen(at);

    size = utf8_floor(at, size, sizeof v->name - 1);
    memcpy(v->name, at, size);
    v->name[size] = 0;
}

static sessile_status open_vocabulary(encoding *e, const char *path, const char *pattern,
                                      sessile_error *err)
{
    vocabulary v;
    buf text;
    uint64_t size;
    int fd;
    sessile_status status = open_file(e->os, path, &fd, &size, err);

    if (status)
        return status;
    buf_init(&text, e->alloc);
    vocabulary_init(&v, e->alloc);
    name_of_path(&v, path);
    status = read_file(e->os, fd, size, &text, path, err);
    e->os->close(e->os->ud, fd);
    if (!status) {
        if (ends_with(path, ".json")) {
            status = pattern ? fail(err, SESSILE_INVALID, "it has a pattern of its own")
                             : vocabulary_read_json(&v, text.data, text.size, err);
        } else {
            status = vocabulary_read_tiktoken(&v, text.data, text.size, err);
            if (!status)
                status = choose_pattern(&v, pattern, err);
        }
        if (!status)
            status = image_build(&e->memory, &v, err);
        if (!status)
            status = image_open(&e->image, e->memory.data, e->memory.size, err);
        if (status && status != SESSILE_NOMEM)
            fail_prefix(err, "the encoding %s", path);
    }
    buf_deinit(&text);
    vocabulary_deinit(&v);
    return status;
}

/* What has a name is looked for in folders. */
static sessile_status open_named(encoding *e, const char *name, const char *folders,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_NOTFOUND;
    const char *at = folders ? folders : SESSILE_SHARE "/encodings";
    buf path;

    buf_init(&path, e->alloc);
    while (status == SESSILE_NOTFOUND && *at) {
        size_t size = strcspn(at, ":");
        buf_clear(&path);
        if (size > 0) {
            buf_put(&path, at, size);
            buf_printf(&path, "/%s.bpe", name);
            status = path.failed ? fail_nomem(err) : open_image(e, path.data, err);
        }
        at += size + (at[size] == ':');
    }
    if (status == SESSILE_NOTFOUND)
        fail(err, SESSILE_NOTFOUND,
             "there is no encoding '%s': cl100k_base and o200k_base come with the "
             "library, a "
             "file of your own is named by a path with a '/'; looked for in %s",
             name, folders ? folders : SESSILE_SHARE "/encodings");
    buf_deinit(&path);
    return status;
}

/* How its texts are cut. */
static sessile_status make_ready(encoding *e, sessile_error *err)
{
    const image_header *h = e->image.header;
    uint32_t k;

    for (k = 0; k < h->added; k++)
        e->finds |= e->image.added[k][1] & ADDED_FOUND;
    if (h->pattern < PRETOKEN_KINDS) {
        e->scan = pretoken_scanners[h->pattern];
        return SESSILE_OK;
    }
    return cutter_open(&e->cutter, e->image.pattern, h->pattern_text, e->alloc, err);
}

sessile_status encoding_open_with(encoding **out, const char *name, const char *path,
                                  const char *pattern, const allocator *alloc,
                                  sessile_error *err)
{
    encoding *e;
    sessile_status status;

    *out = NULL;
    if (base_init())
        return fail(err, SESSILE_IO, "libsodium could not be made ready");
    e = mem_zalloc(alloc, sizeof *e);
    if (!e)
        return fail_nomem(err);
    e->own = *alloc;
    e->alloc = &e->own;
    e->os = os_current;
    buf_init(&e->memory, e->alloc);
    if (!strchr(name, '/'))
        status = open_named(e, name, path, err);
    else if (ends_with(name, ".bpe"))
        status = open_image(e, name, err);
    else
        status = open_vocabulary(e, name, pattern, err);
    if (!status)
        status = make_ready(e, err);
    if (status)
        encoding_free(e);
    else
        *out = e;
    return status;
}

sessile_status encoding_open(encoding **out, const char *name, const char *path,
                             const allocator *alloc, sessile_error *err)
{
    return encoding_open_with(out, name, path, NULL, alloc, err);
}

void encoding_free(encoding *e)
{
    allocator own;

    if (!e)
        return;
    own = e->own;
    cutter_free(e->cutter);
    if (e->mapped)
        e->os->unmap(e->os->ud, e->mapped, e->mapped_size);
    buf_deinit(&e->memory);
    mem_free(&own, e, sizeof *e);
}

const char *encoding_name(const encoding *e)
{
    return e->image.header->name;
}

const allocator *encoding_allocator(const encoding *e)
{
    return e->alloc;
}

/* ------------------------------------------------------------------ texts */

/* What one call works with. */
typedef struct reading {
    const encoding *e;
    int64_t count;
    buf *out; /* NULL: tokens are counted alone */
    merge_room room;
} reading;

static int put_id(reading *r, uint32_t id)
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

static int put_merged(reading *r, const unsigned char *text, size_t size)
{
    uint32_t few[MERGE_SMALL], *tokens = few;
    size_t count;

    if (size <= MERGE_SMALL)
        count = merge_small(&r->e->image, text, size, few);
    else if (merge_large(&r->e->image, text, size, &r->room, &tokens, &count))
        return -1;
    return put_tokens(r, tokens, count);
}

static int put_piece(void *arg, const unsigned char *piece, size_t size)
{
    reading *r = arg;
    int64_t token = image_piece(&r->e->image, piece, size);
    uint32_t one = (uint32_t)token;
    return token < 0 ? put_merged(r, piece, size) : put_tokens(r, &one, 1);
}

/* Tokens of a text that is UTF-8, without added ones. */
static sessile_status read_plain(reading *r, const unsigned char *text, size_t size,
                                 sessile_error *err)
{
    const unsigned char *end = text + size;
    pretoken_scanner *scan = r->e->scan;

    if (!scan)
        return cutter_run(r->e->cutter, text, size, put_piece, r, err);
    while (text < end) {
        size_t length = scan(text, end);
        if (put_piece(r, text, length))
            return fail_nomem(err);
        text += length;
    }
    return SESSILE_OK;
}

/* The same with a space before it, where the encoding puts one. */
static sessile_status read_spaced(reading *r, const unsigned char *text, size_t size,
                                  sessile_error *err)
{
    sessile_status status;
    buf copy;

    if (size == 0)
        return SESSILE_OK; /* between two added tokens */
    if (!(r->e->image.header->flags & VOCABULARY_SPACE) || text[0] == ' ')
        return read_plain(r, text, size, err);
    buf_init(&copy, r->e->alloc);
    buf_putc(&copy, ' ');
    buf_put(&copy, text, size);
    status = copy.failed
                 ? fail_nomem(err)
                 : read_plain(r, (const unsigned char *)copy.data, copy.size, err);
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
    reading r = {.e = e};
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
