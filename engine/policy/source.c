/*
 * source.c: finds, checks and reads a policy's file.
 *
 * Owns the decision whether a file can be a policy (a regular file of text), and whether
 * it is foreign. A file is foreign if neither its user nor root owns it, or if others can
 * write it; it then runs in a separate process. Must never follow a symbolic link, leave
 * a descriptor open, or return text that Lua would read as bytecode.
 */
#include "policy/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "policy/options.h"

#define NAMES_MAX 64 /* policies named in a NOTFOUND */

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

static int is_path(const char *name)
{
    return strchr(name, '/') || ends_with(name, ".lua");
}

/* ------------------------------------------------------------------ finding */

typedef struct found_names {
    char names[NAMES_MAX][64];
    size_t count;
} found_names;

static int visit_name(void *arg, const char *name)
{
    found_names *found = arg;
    size_t size = strlen(name);
    if (!ends_with(name, ".lua") || size <= 4 || size - 4 >= sizeof found->names[0])
        return 0;
    if (found->count < NAMES_MAX) {
        memcpy(found->names[found->count], name, size - 4);
        found->names[found->count++][size - 4] = 0;
    }
    return 0;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The next folder of a search path, appended to out; 0 at the end. */
static int next_folder(const char **at, buf *out)
{
    while (**at == ':')
        (*at)++;
    if (!**at)
        return 0;
    while (**at && **at != ':')
        buf_putc(out, *(*at)++);
    return 1;
}

/* NOTFOUND, with the policies that exist. */
static sessile_status not_found(const source_place *from, const char *kind,
                                const char *name, sessile_error *err)
{
    const os_table *os = from->os;
    const char *at = from->search_path, *like = NULL;
    unsigned best = (unsigned)strlen(name) / 3 + 2;
    found_names *found = mem_zalloc(from->alloc, sizeof *found);
    sessile_status status;
    buf text;
    size_t i;

    if (!found)
        return fail_nomem(err);
    buf_init(&text, from->alloc);
    while (next_folder(&at, &text)) {
        int fd =
            text.failed ? -1 : os->open_at(os->ud, -1, text.data, OS_READ | OS_DIRECTORY);
        if (fd >= 0) {
            os->list(os->ud, fd, visit_name, found);
            os->close(os->ud, fd);
        }
        buf_clear(&text);
    }
    qsort(found->names, found->count, sizeof found->names[0], compare_text);
    for (i = 0; i < found->count; i++) {
        unsigned distance = options_distance(name, found->names[i]);
        if (distance < best) {
            best = distance;
            like = found->names[i];
        }
        if (i == 0 || strcmp(found->names[i - 1], found->names[i]) != 0)
            buf_printf(&text, "%s%s", text.size ? ", " : "", found->names[i]);
    }
    if (like)
        status = fail(err, SESSILE_NOTFOUND, "there is no %s '%s': did you mean '%s'?",
                      kind, name, like);
    else if (text.size && !text.failed)
        status = fail(err, SESSILE_NOTFOUND, "there is no %s '%s'; there are: %s", kind,
                      name, text.data);
    else
        status =
            fail(err, SESSILE_NOTFOUND,
                 "there is no %s '%s', nor any other where it is looked for", kind, name);
    buf_deinit(&text);
    mem_free(from->alloc, found, sizeof *found);
    return status;
}

/* ------------------------------------------------------------------ reading */

/* Checks the open file, then reads it. */
static sessile_status read_open(const source_place *from, int fd, source *c,
                                sessile_error *err)
{
    const os_table *os = from->os;
    const char *path = c->path.data;
    os_stat_info info;
    int64_t size;

    if (os->stat_fd(os->ud, fd, &info))
        return fail_errno(err, errno, "looking at the %s %s", c->kind, path);
    if (!info.is_regular)
        return fail(err, SESSILE_DENIED, "the %s %s is no regular file", c->kind, path);
    c->device = info.device;
    c->inode = info.inode;
    c->own = info.uid == 0 || info.uid == os->uid(os->ud);
    if (!c->own)
        c->foreign = "belongs to another user";
    else if (info.mode & 022)
        c->foreign = "can be written by others";
    if (info.size > SOURCE_MAX)
        return fail(err, SESSILE_LIMIT, "the %s %s is larger than %d bytes", c->kind,
                    path, SOURCE_MAX);
    if (buf_reserve(&c->text, SOURCE_MAX + 1))
        return fail_nomem(err);
    size = os_read_full(os, fd, c->text.data, SOURCE_MAX + 1, 0);
    if (size < 0)
        return fail_errno(err, errno, "reading the %s %s", c->kind, path);
    if (size > SOURCE_MAX)
        return fail(err, SESSILE_LIMIT, "the %s %s is larger than %d bytes", c->kind,
                    path, SOURCE_MAX);
    c->text.size = (size_t)size;
    c->text.data[size] = 0;
    return SESSILE_OK;
}

/* OK, NOTFOUND (err is not filled), or why the file at c->path cannot be used. */
static sessile_status read_file(const source_place *from, source *c, sessile_error *err)
{
    const os_table *os = from->os;
    sessile_status status;
    int fd;

    if (c->path.failed)
        return fail_nomem(err);
    fd = os->open_at(os->ud, -1, c->path.data, OS_READ);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return SESSILE_NOTFOUND;
    if (fd < 0)
        return fail_errno(err, errno, "opening the %s %s", c->kind, c->path.data);
    status = read_open(from, fd, c, err);
    os->close(os->ud, fd);
    return status;
}

static int is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

/* Checks the text. It refuses the word _ENV anywhere: policies do not need it, and Lua
 * 5.4.4 generates wrong code for `local _ENV <const>`, which reads beyond a function's
 * registers. A word cannot be hidden in Lua source, so a text search is enough. */
static sessile_status check_text(source *c, sessile_error *err)
{
    const char *text = c->text.data, *end = text + c->text.size, *at;
    unsigned line = 1;

    c->skip = c->text.size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (text + c->skip < end && text[c->skip] == '#')
        while (text + c->skip < end && text[c->skip] != '\n')
            c->skip++;
    if (c->text.size && (text[0] == '\x1b' || memchr(text, 0, c->text.size)))
        return fail(err, SESSILE_POLICY, "%s is not text: a %s is source, never bytecode",
                    c->file, c->kind);
    for (at = text; at < end; at++) {
        if (*at == '\n')
            line++;
        if (*at == '_' && end - at >= 4 && memcmp(at, "_ENV", 4) == 0 &&
            (at == text || !is_word(at[-1])) && !is_word(at[4]))
            return fail(err, SESSILE_POLICY, "%s:%u: _ENV cannot be used in a %s",
                        c->file, line, c->kind);
    }
    return SESSILE_OK;
}

static void name_file(source *c)
{
    const char *slash = strrchr(c->path.data, '/');
    size_t size;
    c->file = slash ? slash + 1 : c->path.data;
    size = strlen(c->file);
    if (ends_with(c->file, ".lua"))
        size -= 4;
    if (size >= sizeof c->stem)
        size = utf8_floor(c->file, size, sizeof c->stem - 1);
    memcpy(c->stem, c->file, size);
    c->stem[size] = 0;
}

sessile_status source_read(source *c, const source_place *from, const char *name,
                           const char *folder, sessile_error *err)
{
    const char *at = from->search_path;
    sessile_status status = SESSILE_NOTFOUND;

    if (is_path(name)) {
        if (folder[0] && name[0] != '/')
            buf_printf(&c->path, "%s/", folder);
        buf_puts(&c->path, name);
        status = read_file(from, c, err);
        if (status == SESSILE_NOTFOUND)
            return fail(err, status, "there is no %s file %s", c->kind, c->path.data);
    } else {
        if (folder[0]) {
            buf_printf(&c->path, "%s/%s.lua", folder, name);
            status = read_file(from, c, err);
            if (status == SESSILE_NOTFOUND)
                buf_clear(&c->path);
        }
        while (status == SESSILE_NOTFOUND && next_folder(&at, &c->path)) {
            buf_printf(&c->path, "/%s.lua", name);
            status = read_file(from, c, err);
            if (status == SESSILE_NOTFOUND)
                buf_clear(&c->path);
        }
        if (status == SESSILE_NOTFOUND)
            return not_found(from, c->kind, name, err);
    }
    if (status)
        return status;
    name_file(c);
    return check_text(c, err);
}

sessile_status source_read_path(source *c, const source_place *from, const char *path,
                                sessile_error *err)
{
    sessile_status status;
    buf_puts(&c->path, path);
    status = read_file(from, c, err);
    if (status == SESSILE_NOTFOUND)
        return fail(err, status, "there is no %s %s", c->kind, path);
    if (status)
        return status;
    name_file(c);
    return check_text(c, err);
}

void source_init(source *c, const allocator *a)
{
    memset(c, 0, sizeof *c);
    c->kind = "policy";
    c->file = "";
    buf_init(&c->path, a);
    buf_init(&c->text, a);
}

void source_deinit(source *c)
{
    buf_deinit(&c->path);
    buf_deinit(&c->text);
}
