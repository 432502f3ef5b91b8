/*
 * encoding.c: opens an encoding by its name, by a path, or from bytes.
 *
 * Must never keep a descriptor, or return an encoding that is only partly open.
 */
#include "tokens/encoding_internal.h"

#include <errno.h>
#include <string.h>

#include "base/os.h"
#include "base/text.h"
#include "tokens/encoding_vocabulary.h"
#include "tokens/pretoken.h"

#ifndef SESSILE_SHARE
#define SESSILE_SHARE "/usr/local/share/sessile"
#endif
/* The largest file: more than twice the largest vocabulary in use. */
#define FILE_MAX (UINT64_C(1) << 28)

/* ------------------------------------------------------------------ files */

/* Opens a regular file for reading, and returns its size. */
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

/* Opens an image: mapped if the system can, else read. */
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
    if (!status)
        status = make_ready(e, err);
    return status ? fail_prefix(err, "the encoding %s", path) : SESSILE_OK;
}

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/* ------------------------------------------------------------------ opening */

/* Sets the pattern of a `.tiktoken` file: the given one, or the one of a known
 * vocabulary. */
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
    const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;
    const char *end = strrchr(at, '.');
    size_t size = end && end > at ? (size_t)(end - at) : strlen(at);

    size = utf8_floor(at, size, sizeof v->name - 1);
    memcpy(v->name, at, size);
    v->name[size] = 0;
}

/* Reads a vocabulary's file, by its ending. */
static sessile_status read_vocabulary(encoding *e, const char *path, const void *data,
                                      size_t size, const char *pattern,
                                      sessile_error *err)
{
    vocabulary v;
    sessile_status status;

    vocabulary_init(&v, e->alloc);
    name_of_path(&v, path);
    if (ends_with(path, ".json")) {
        status = pattern ? fail(err, SESSILE_INVALID, "it has a pattern of its own")
                         : vocabulary_read_json(&v, data, size, err);
    } else {
        status = vocabulary_read_tiktoken(&v, data, size, err);
        if (!status)
            status = choose_pattern(&v, pattern, err);
    }
    if (!status)
        status = image_build(&e->memory, &v, err);
    vocabulary_deinit(&v);
    return status ? status : image_open(&e->image, e->memory.data, e->memory.size, err);
}

static sessile_status read_bytes(encoding *e, const char *path, const void *data,
                                 size_t size, const char *pattern, sessile_error *err)
{
    sessile_status status;

    if (ends_with(path, ".bpe")) {
        buf_put(&e->memory, data, size);
        status = e->memory.failed
                     ? fail_nomem(err)
                     : image_open(&e->image, e->memory.data, e->memory.size, err);
    } else {
        status = read_vocabulary(e, path, data, size, pattern, err);
    }
    if (!status)
        status = make_ready(e, err);
    if (status && status != SESSILE_NOMEM)
        fail_prefix(err, "the encoding %s", path);
    return status;
}

static sessile_status open_vocabulary(encoding *e, const char *path, const char *pattern,
                                      sessile_error *err)
{
    buf text;
    uint64_t size;
    int fd;
    sessile_status status = open_file(e->os, path, &fd, &size, err);

    if (status)
        return status;
    buf_init(&text, e->alloc);
    status = read_file(e->os, fd, size, &text, path, err);
    e->os->close(e->os->ud, fd);
    if (!status)
        status = read_bytes(e, path, text.data, text.size, pattern, err);
    buf_deinit(&text);
    return status;
}

/* A name is searched in the folders. */
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

/* An encoding with nothing in it; NULL on failure. */
static sessile_status new_encoding(encoding **out, const allocator *alloc,
                                   sessile_error *err)
{
    encoding *e;

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
    *out = e;
    return SESSILE_OK;
}

static sessile_status made(encoding **out, sessile_status status)
{
    if (status) {
        encoding_free(*out);
        *out = NULL;
    }
    return status;
}

sessile_status encoding_open_with(encoding **out, const char *name, const char *path,
                                  const char *pattern, const allocator *alloc,
                                  sessile_error *err)
{
    sessile_status status = new_encoding(out, alloc, err);

    if (status)
        return status;
    if (!strchr(name, '/'))
        return made(out, open_named(*out, name, path, err));
    if (ends_with(name, ".bpe"))
        return made(out, open_image(*out, name, err));
    return made(out, open_vocabulary(*out, name, pattern, err));
}

sessile_status encoding_open_bytes(encoding **out, const char *name, const void *data,
                                   size_t size, const char *pattern,
                                   const allocator *alloc, sessile_error *err)
{
    sessile_status status = new_encoding(out, alloc, err);
    return status ? status : made(out, read_bytes(*out, name, data, size, pattern, err));
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
