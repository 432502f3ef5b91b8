/*
 * tls_context.h: what the two files that know OpenSSL share: a context, which is made of
 * files (tls_context.c), and of which links are made (tls.c).
 */
#ifndef RPC_TLS_CONTEXT_H
#define RPC_TLS_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include <openssl/ssl.h>

#include "rpc/tls.h"

struct rpc_tls {
    allocator alloc;
    atomic_uint references;
    int server;
    struct {
        char *cert, *key, *ca, *name; /* NULL: not given */
    } files;
    pthread_mutex_t lock; /* of what follows */
    SSL_CTX *context;
    int64_t expires;
    BIO_METHOD *bytes; /* how OpenSSL reaches a link's bytes */
};

/* What OpenSSL has to say, which names no secret. */
const char *tls_reason(void);
/* How OpenSSL reaches a link's bytes; BIO_meth_free() frees it. NULL: no memory. */
BIO_METHOD *tls_bytes_new(void);

#endif
