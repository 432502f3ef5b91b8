/* tls.h: TLS of one connection. OpenSSL is known by tls.c and tls_context.c alone. */
#ifndef RPC_TLS_H
#define RPC_TLS_H

#include "base/buf.h"
#include "rpc/rpc.h"

typedef struct tls_link tls_link;

/* For whoever makes links of it later. */
void tls_retain(rpc_tls *tls);

/* One end of a connection, with the certificates as they are now. It knows no socket.
 * host: the name that a client expects, where its rpc_tls has none. a lives as long as
 * the memory of tls_out(). NULL: no memory. */
tls_link *tls_link_new(rpc_tls *tls, const char *host, const allocator *a);
void tls_link_free(tls_link *link);
/* Bytes that the peer sent, for tls_handshake() and tls_read(): valid until these have
 * said 0. */
void tls_feed(tls_link *link, const void *data, size_t size);
/* 1: done; 0: it needs more bytes; -1: it failed. */
int tls_handshake(tls_link *link);
/* Bytes; 0: it needs more of the peer's; -1: the end, or it broke. */
long tls_read(tls_link *link, void *out, size_t size);
/* Takes all, for tls_out(). 0; -1: it broke, or there is no memory. */
int tls_write(tls_link *link, const void *data, size_t size);
/* What the peer is to be sent, whichever function made it. The caller empties it, and may
 * give it other memory. */
buf *tls_out(tls_link *link);
/* Says goodbye, in tls_out(). */
void tls_bye(tls_link *link);
/* 1: both agreed on h2; 0: on http/1.1; -1: on nothing. */
int tls_speaks_h2(const tls_link *link);
/* The name in the peer's certificate, which was verified; NULL: it showed none, or one
 * without a name. As long as the link. */
const char *tls_peer_name(const tls_link *link);
/* Why the handshake failed, in a few words; "": it did not. */
const char *tls_failure(const tls_link *link);
/* The kind of reason, also after the handshake: a peer may look at a client's certificate
 * when the client has finished. */
rpc_fault tls_fault(const tls_link *link);

#endif
