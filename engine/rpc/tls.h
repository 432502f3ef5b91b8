/* tls.h: TLS on one socket. The only other file that knows OpenSSL is tls.c. */
#ifndef RPC_TLS_H
#define RPC_TLS_H

#include "rpc/rpc.h"

typedef struct tls_link tls_link;

/* For whoever makes links of it later. */
void tls_retain(rpc_tls *tls);

/* TLS over a non-blocking socket, with the certificates as they are now. host: the name
 * that a client expects, where its rpc_tls has none. NULL: no memory. */
tls_link *tls_link_new(rpc_tls *tls, int fd, const char *host);
void tls_link_free(tls_link *link);
/* 1: done; 0: it waits for the socket; -1: it failed. */
int tls_handshake(tls_link *link);
/* Bytes; 0: it waits for the socket; -1: the end, or it broke. */
long tls_read(tls_link *link, void *out, size_t size);
long tls_write(tls_link *link, const void *data, size_t size);
/* 1: what was tried last waits until the socket can be written. */
int tls_wants_write(const tls_link *link);
/* Says goodbye, if that does not wait. */
void tls_bye(tls_link *link);
/* 1: both agreed on h2; 0: on http/1.1; -1: on nothing. */
int tls_speaks_h2(const tls_link *link);
/* The name in the peer's certificate, which was verified; NULL: it showed none, or one
 * without a name. As long as the link. */
const char *tls_peer_name(const tls_link *link);
/* Why the handshake failed, in a few words; "": it did not. */
const char *tls_failure(const tls_link *link);
/* What it failed of, also after the handshake: a peer may look at a client's certificate
 * when the client has finished. */
rpc_fault tls_fault(const tls_link *link);

#endif
