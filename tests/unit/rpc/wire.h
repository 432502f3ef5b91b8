/* wire.h: a socket that says exactly what a test wants. */
#ifndef UNIT_RPC_WIRE_H
#define UNIT_RPC_WIRE_H

#include <stddef.h>

/* Connects to "127.0.0.1:PORT". */
int wire_open(const char *address);
/* Sends all, or until the peer is gone. 0, -1. */
int wire_send(int fd, const void *data, size_t size);
/* Reads until the end, or for timeout_ms without a byte, or out is full; adds a NUL.
 * *ended (may be NULL): the peer closed. The bytes. */
size_t wire_read(int fd, char *out, size_t size, int timeout_ms, int *ended);
/* Reads and drops for so long, or to the end: 1. */
int wire_drain(int fd, int timeout_ms);

#endif
