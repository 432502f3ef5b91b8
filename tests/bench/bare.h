/*
 * bare.h: the library below each backend with nothing of ours around it, doing the same
 * work: the same rows of the same sizes, sealed beforehand, in tables laid out as ours
 * are, with statements prepared once.
 *
 * A bare connection is used by one thread. What fails ends the program: a bench has
 * nobody to tell.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include "bench/measure.h"

typedef struct bare bare;

typedef struct bare_kind {
    const char *append_is, *read_is, *list_is; /* in words, for the table */

    /* A connection. where: a folder, a database's path, a URL. first: its tables are
     * made. synced 0: a commit is not waited for. */
    bare *(*open)(const char *where, int first, int synced);
    /* last: what was made is removed, where nobody else removes it. */
    void (*close)(bare *b, int last);

    /* Makes session number `session`, of count lines. */
    void (*make)(bare *b, int session, const char *lines, size_t size_of_one,
                 size_t count);
    /* Adds count lines to it, whole or not at all, counted in its row. */
    void (*append)(bare *b, int session, const char *lines, size_t size_of_one,
                   size_t count);
    /* Reads its lines from number `from` on into memory; opened: takes the base64 and the
     * AEAD off each, as who wants to see a word must. The bytes read. */
    size_t (*read)(bare *b, int session, size_t from, int opened);
    /* Makes `count` sessions without lines; and reads what their rows say, in order of
     * the newest change; limit 0: all. The number read. */
    void (*make_many)(bare *b, size_t count);
    size_t (*list)(bare *b, size_t limit);
} bare_kind;

/* The functions of a kind, named file_open, file_close and so on for the prefix `file`.
 */
#define BARE_CALLS(prefix)                                                             \
    .open = prefix##_open, .close = prefix##_close, .make = prefix##_make,             \
    .append = prefix##_append, .read = prefix##_read, .make_many = prefix##_make_many, \
    .list = prefix##_list

extern const bare_kind bare_file, bare_sqlite, bare_postgres;

/* Whether this program was built with the library. */
extern const int bare_sqlite_built, bare_postgres_built;

/* 1: commits of that server wait for a standby. */
int bare_postgres_waits(const char *url);
/* Drops the schemas whose names begin so. */
void bare_postgres_drop(const char *url, const char *prefix);

/* What a reader does with each line: it is copied, and opened when asked. */
typedef struct bare_sink {
    unsigned char *at;
    size_t room, used;
} bare_sink;
void bare_take(bare_sink *sink, const char *line, size_t size, int opened);
void bare_sink_free(bare_sink *sink);

#endif
