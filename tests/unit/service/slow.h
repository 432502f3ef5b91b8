/*
 * slow.h: a service whose clients read slowly or nothing at all, and what they cost.
 *
 *   slow w;
 *   slow_open(&w, "ram:", 64 * MIB);
 *   int fd = slow_ask(&w, "/sessile.v1.SessionService/GetContext", 200, pack);
 *   size_t most = slow_settle(&w, slow_begun, 200);
 *   slow_close(&w);
 */
#ifndef UNIT_SERVICE_SLOW_H
#define UNIT_SERVICE_SLOW_H

#include "serving.h"

#define MIB ((size_t)1 << 20)

typedef struct slow {
    sessile_store *store;
    serving s;
} slow;

/* kept: bytes of rows that calls may keep while they wait. */
void slow_open(slow *w, const char *url, size_t kept);
void slow_close(slow *w);

/* Bytes that this process has allocated. */
size_t in_use(void);
/* Calls that there are, and calls that were ever begun. */
size_t slow_calls(const slow *w);
size_t slow_begun(const slow *w);
/* Waits until count(w) is n and no call has work for a worker: the most memory in use
 * meanwhile. */
size_t slow_settle(slow *w, size_t (*count)(const slow *w), size_t n);

/* A client that lets the server send nothing, and calls a method so often. pack: writes
 * request i, of less than 128 bytes: its size. Returns the socket. */
int slow_ask(const slow *w, const char *path, unsigned streams,
             size_t (*pack)(unsigned i, unsigned char *out));

/* Begins a list and reads nothing more once its first piece came. */
void slow_begin(slow *w, stream *st, const char *method, const void *request);
/* Reads the rest, a little at a time. */
void slow_go_on(stream *st);

#endif
