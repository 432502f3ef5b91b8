/* address.h: "host:port", "[::1]:0" and "unix:/path" as addresses of sockets. */
#ifndef RPC_ADDRESS_H
#define RPC_ADDRESS_H

#include <sys/socket.h>

#include "rpc/rpc.h"

#define ADDRESSES_MAX 8

typedef struct address {
    struct sockaddr_storage at;
    socklen_t size;
} address;

typedef struct addresses {
    address list[ADDRESSES_MAX];
    size_t count;
    char host[256]; /* as it was written, without brackets; "" for unix: */
} addresses;

/* A name is resolved by the system, which may wait for a server of names; numbers never
 * wait. INVALID: no such address, or its name is not known. */
sessile_status addresses_find(addresses *out, const char *text, sessile_error *err);

/* "10.0.0.7:51234", "[::1]:80", "unix:/path", or "unix" for a nameless socket. */
#define ADDRESS_TEXT 128
void address_print(const address *a, char out[ADDRESS_TEXT]);
/* 1: it is of this machine alone. */
int address_local(const address *a);

#endif
