/*
 * bare_file.c: a file that lines are written to and read from, and a folder that is read.
 */
#include "bench/bare.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 64 };

struct bare {
    char folder[4096];
    int synced;
    int fd[FILES]; /* 0: not open */
};

static size_t size_of_one; /* all lines of a run are of one size */

void bare_take(bare_sink *sink, const char *line, size_t size, int opened)
{
    if (sink->room - sink->used < size) {
        sink->room = 2 * sink->room + size;
        sink->at = realloc(sink->at, sink->room);
        if (!sink->at)
            broken("memory");
    }
    if (opened) {
        sink->used += floor_line_open(line, size, sink->at + sink->used);
    } else {
        memcpy(sink->at + sink->used, line, size);
        sink->used += size;
    }
}

void bare_sink_free(bare_sink *sink)
{
    free(sink->at);
    *sink = (bare_sink){NULL, 0, 0};
}

static bare *file_open(const char *where, int first, int synced)
{
    bare *b = calloc(1, sizeof *b);
    if (!b)
        broken("memory");
    snprintf(b->folder, sizeof b->folder, "%s", where);
    b->synced = synced;
    if (first && mkdir(where, 0700))
        broken(where);
    return b;
}

static void file_close(bare *b, int last)
{
    (void)last;
    for (int i = 0; i < FILES; i++)
        if (b->fd[i])
            close(b->fd[i]);
    free(b);
}

static int file_of(bare *b, int session)
{
    char path[4200];
    if (session >= FILES)
        broken("too many bare files");
    if (!b->fd[session]) {
        snprintf(path, sizeof path, "%s/%d", b->folder, session);
        b->fd[session] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (b->fd[session] <= 0)
            broken(path);
    }
    return b->fd[session];
}

static void file_write(bare *b, int session, const char *lines, size_t size, int synced)
{
    int fd = file_of(b, session);
    off_t end = lseek(fd, 0, SEEK_END);
    if (pwrite(fd, lines, size, end) != (ssize_t)size || (synced && fdatasync(fd)))
        broken("bare file");
}

static void file_make(bare *b, int session, const char *lines, size_t size, size_t count)
{
    size_of_one = size;
    file_write(b, session, lines, count * size, 0);
}

static void file_append(bare *b, int session, const char *lines, size_t size,
                        size_t count)
{
    file_write(b, session, lines, count * size, b->synced);
}

static size_t file_read(bare *b, int session, size_t from, int opened)
{
    static char piece[256 << 10]; /* one thread reads */
    bare_sink sink = {NULL, 0, 0};
    size_t size = size_of_one, per = sizeof piece / size, used;
    int fd = file_of(b, session);
    off_t end = lseek(fd, 0, SEEK_END), at = (off_t)(from * size);
    while (at < end) {
        size_t want = (size_t)(end - at) < per * size ? (size_t)(end - at) : per * size;
        if (pread(fd, piece, want, at) != (ssize_t)want)
            broken("bare file");
        for (char *line = piece; line < piece + want; line += size)
            bare_take(&sink, line, size, opened);
        at += (off_t)want;
    }
    used = sink.used;
    bare_sink_free(&sink);
    return used;
}

static void file_make_many(bare *b, size_t count)
{
    char path[4200];
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/session-%zu.jsonl", b->folder, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || close(fd))
            broken(path);
    }
}

static size_t file_list(bare *b, size_t limit)
{
    size_t count = 0;
    struct dirent *e;
    DIR *d = opendir(b->folder);
    (void)limit; /* who wants the newest reads all names */
    if (!d)
        broken(b->folder);
    while ((e = readdir(d)))
        count += e->d_name[0] == 's';
    closedir(d);
    return count;
}

const bare_kind bare_file = {.append_is = "pwrite, fdatasync",
                             .read_is = "pread",
                             .list_is = "readdir",
                             BARE_CALLS(file)};
