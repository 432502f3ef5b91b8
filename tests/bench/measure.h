/*
 * measure.h: what the benches share: the clock, the table, stores to measure, and the
 * floors and the peer that stand beside ours.
 *
 * Each row is one operation of ours and what it is compared with, done alternately in the
 * same run on the same file system: one fdatasync drifts by a factor of two within
 * minutes, so only the ratio means something. Times are microseconds.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <sys/types.h>

#include "sessile.h"

/* ---- the run */

enum { MESSAGE = 600 }; /* bytes of a message */

/* The folder that everything is made in, and what ends it. usage: NAME [FOLDER]. */
extern char bench_folder[4000];
void bench_begin(int argc, char **argv);
/* The same without the table's head. */
void bench_make_folder(int argc, char **argv);
int bench_end(void);
/* BENCH_SHORT=1: few repetitions and no large sizes, to see that it runs. */
int bench_short(void);
size_t rounds(size_t n);

/* Makes a certificate for 127.0.0.1, its own authority, in that folder; size: the room of
 * both paths. 0: there is no openssl command. */
int bench_certificate(char *cert, char *key, size_t size);

double now_us(void);
void must(sessile_status status, const sessile_error *err);
_Noreturn void broken(const char *what);

/* ---- samples and rows */

typedef struct samples {
    double *at;
    size_t count, capacity;
} samples;
void sample(samples *s, double us);
/* One round of a row: its times; peer NULL: it took no part. */
void sample_round(samples *ours, double our_us, samples *floor, double floor_us,
                  samples *peer, double peer_us);
double median(const samples *s);
double p95(const samples *s);

typedef struct row {
    const char *name;
    const samples *ours, *floor, *peer; /* floor and peer may be NULL */
    const char *floor_is;
    double wanted;    /* the ratio to reach; 0: none */
    double target_ms; /* an absolute time that was asked for; 0: none */
} row;
/* Prints the row and empties its samples. */
void row_print(const row *r);
/* A cell of the table; blank when there is nothing to say. */
void cell_print(int width, int decimals, double value, const char *unit);
/* A line below the table. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- ours */

/* A message of MESSAGE bytes; out has room for twice as many. */
sessile_slice message_text(char *out, int i);
sessile_store *open_store(const char *name, sessile_key_source key,
                          sessile_durability durability, sessile_alloc alloc,
                          void *alloc_ud);
sessile_session *open_session(sessile_store *store, const char *id);
void close_session(sessile_session *s);
/* Appends messages until there are count. */
void fill_session(sessile_session *s, size_t count);
/* The session `id` with count messages, closed. */
void make_filled_session(sessile_store *store, const char *id, size_t count);
/* A new session with a title and count short messages, closed. */
void make_short_session(sessile_store *store, size_t count);
/* Makes a pipeline of one policy the store's. */
void use_policy(sessile_store *store, const char *name, const char *options);
/* The time of a list of the newest `limit` of all sessions; limit 0: of all. */
double timed_list(sessile_store *store, uint64_t limit, size_t all);
/* The time until count threads have ended, each with its own of the arguments. */
double timed_threads(void *(*run)(void *arg), void *args, size_t size_of_one,
                     size_t count);
/* The path of a session's log. */
void log_path(char out[4400], const char *store, const char *id);
off_t bench_file_size(const char *path);

/* ---- floors: the same bytes with bare system calls */

int floor_open(const char *name);
/* Writes at *end and, if asked, syncs: the time. */
double floor_write(int fd, off_t *end, const void *data, size_t size, int synced);

/* count sealed lines as ours are, one after the other, all of one size; for free(). */
char *floor_lines(size_t count, size_t *size_of_one);
/* What base64 and AEAD give of such a line: the bytes, and how many. out has room for a
 * line. */
size_t floor_line_open(const char *line, size_t size, unsigned char *out);

/* A file of sealed lines as ours are, and reading its last count: pread, base64, AEAD. */
void floor_log_make(const char *name, size_t lines);
double floor_log_read(const char *name, size_t count);
/* Its first count lines opened, sealed again and written to a new file: written under a
 * temporary name, synced, renamed, the folder synced. The copy is removed. */
double floor_log_copy(const char *name, size_t count, const char *copy);

/* A file of sealed pieces of one size, base64 or not, and reading one back: pread,
 * base64, AEAD. out has room for `plain` bytes. */
typedef struct floor_pieces {
    int fd, base64;
    size_t count, plain, stored; /* bytes of each, opened and in the file */
    unsigned char *sealed;
    char *read;
} floor_pieces;
void floor_pieces_make(floor_pieces *f, const char *name, size_t count, size_t plain,
                       int base64);
void floor_pieces_read(const floor_pieces *f, size_t i, unsigned char *out);
void floor_pieces_close(floor_pieces *f);

/* ---- the peer: a table in SQLite, WAL, synchronous=FULL */

typedef struct peer peer;
peer *peer_open(const char *name); /* NULL: built without SQLite */
void peer_close(peer *p);
void peer_begin(peer *p);
void peer_put(peer *p, int session, int id, sessile_slice text);
void peer_commit(peer *p);
/* Reads the newest count rows of a session; the bytes read. */
size_t peer_read(peer *p, int session, size_t count);

#endif
