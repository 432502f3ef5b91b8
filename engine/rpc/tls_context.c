/*
 * tls_context.c: the context of TLS, which is made of files: a certificate, its key, the
 * authority of the peers.
 *
 * A context never changes. Reading the files again makes another one, which new links
 * use; a link keeps its own until it ends. So nothing is locked but the pointer to it.
 *
 * Versions before 1.2 are refused, and of 1.2 all but what HTTP/2 allows: ephemeral keys
 * and AEAD. There is no renegotiation and no compression. A key file is opened once: what
 * was found to be private is what is read.
 */
#include "rpc/tls_context.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/text.h"

/* ---------------------------------------------------------------------- files */

const char *tls_reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text ? text : "it cannot be read";
}

static int no_password(char *out, int size, int writing, void *ud)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)ud;
    return -1; /* else OpenSSL would ask the terminal */
}

static sessile_status readable(const char *path, const char *what, sessile_error *err)
{
    if (access(path, R_OK))
        return fail(err, status_of_errno(errno), "the file of the %s, %s, cannot be read",
                    what, path);
    return SESSILE_OK;
}

static sessile_status use_key(SSL_CTX *context, const char *path, sessile_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    sessile_status status = SESSILE_OK;
    BIO *in;
    EVP_PKEY *key;

    if (fd < 0 || fstat(fd, &st)) {
        status = fail(err, status_of_errno(errno),
                      "the file of the key, %s, cannot be read", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    if (!S_ISREG(st.st_mode) || st.st_mode & (S_IRWXO | S_IWGRP)) {
        close(fd);
        return fail(err, SESSILE_DENIED,
                    "others may read or change the key, %s: type chmod 600", path);
    }
    in = BIO_new_fd(fd, BIO_CLOSE);
    if (!in) {
        close(fd);
        return fail_nomem(err);
    }
    key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
    BIO_free(in);
    if (!key)
        return fail(err, SESSILE_INVALID, "%s is no PEM file of a key without a password",
                    path);
    if (SSL_CTX_use_PrivateKey(context, key) != 1)
        status = fail(err, SESSILE_INVALID, "the key, %s, does not fit: %s", path,
                      tls_reason());
    EVP_PKEY_free(key);
    return status;
}

static int64_t end_of(SSL_CTX *context)
{
    const X509 *cert = SSL_CTX_get0_certificate(context);
    struct tm tm;
    memset(&tm, 0, sizeof tm);
    if (!cert || !ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm))
        return 0;
    return (int64_t)timegm(&tm);
}

static sessile_status use_authority(rpc_tls *tls, SSL_CTX *context, sessile_error *err)
{
    const char *ca = tls->files.ca;
    sessile_status status;
    STACK_OF(X509_NAME) * names;

    if (!ca) {
        if (tls->server)
            return SESSILE_OK;
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_default_verify_paths(context);
        return SESSILE_OK;
    }
    status = readable(ca, "authority", err);
    if (status)
        return status;
    if (SSL_CTX_load_verify_locations(context, ca, NULL) != 1)
        return fail(err, SESSILE_INVALID, "%s is no PEM file of certificates: %s", ca,
                    tls_reason());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (!tls->server)
        return SESSILE_OK;
    names = SSL_load_client_CA_file(ca);
    if (!names)
        return fail(err, SESSILE_INVALID, "%s has no certificate of an authority", ca);
    SSL_CTX_set_client_CA_list(context, names);
    return SESSILE_OK;
}

static sessile_status use_certificate(rpc_tls *tls, SSL_CTX *context, sessile_error *err)
{
    const char *cert = tls->files.cert, *key = tls->files.key;
    sessile_status status;

    if (!cert)
        return SESSILE_OK;
    status = readable(cert, "certificate", err);
    if (status)
        return status;
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        return fail(err, SESSILE_INVALID, "%s is no PEM file of a certificate: %s", cert,
                    tls_reason());
    status = use_key(context, key, err);
    if (!status && SSL_CTX_check_private_key(context) != 1)
        status = fail(err, SESSILE_INVALID, "the key, %s, is not of the certificate, %s",
                      key, cert);
    return status;
}

/* ---------------------------------------------------------------------- contexts */

static int choose(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                  const unsigned char *in, unsigned in_size, void *ud)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen;
    (void)ssl;
    (void)ud;
    if (SSL_select_next_proto(&chosen, out_size, ours, sizeof ours - 1, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int configure(rpc_tls *tls, SSL_CTX *context)
{
    static const unsigned char h2[] = "\x02h2";
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        return -1;
    if (!tls->server)
        return SSL_CTX_set_alpn_protos(context, h2, sizeof h2 - 1) ? -1 : 0;
    SSL_CTX_set_alpn_select_cb(context, choose, NULL);
    return SSL_CTX_set_session_id_context(context, (const unsigned char *)"rpc", 3) == 1
               ? 0
               : -1;
}

static sessile_status context_open(SSL_CTX **out, rpc_tls *tls, sessile_error *err)
{
    SSL_CTX *context =
        SSL_CTX_new(tls->server ? TLS_server_method() : TLS_client_method());
    sessile_status status;

    *out = NULL;
    ERR_clear_error();
    if (!context)
        return fail_nomem(err);
    if (configure(tls, context))
        status =
            fail(err, SESSILE_UNSUPPORTED, "OpenSSL has no TLS 1.2: %s", tls_reason());
    else
        status = use_certificate(tls, context, err);
    if (!status)
        status = use_authority(tls, context, err);
    if (status)
        SSL_CTX_free(context);
    else
        *out = context;
    ERR_clear_error();
    return status;
}

static char *copied(const allocator *a, const char *text, int *failed)
{
    char *copy = text ? mem_dup(a, text, strlen(text)) : NULL;
    *failed |= text && !copy;
    return copy;
}

static void freed(const allocator *a, char *text)
{
    if (text)
        mem_free(a, text, strlen(text) + 1);
}

static void tls_free(rpc_tls *tls)
{
    allocator a = tls->alloc;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->bytes);
    freed(&a, tls->files.cert);
    freed(&a, tls->files.key);
    freed(&a, tls->files.ca);
    freed(&a, tls->files.name);
    pthread_mutex_destroy(&tls->lock);
    mem_free(&a, tls, sizeof *tls);
}

sessile_status rpc_tls_open(rpc_tls **out, int server, const rpc_tls_files *files,
                            const allocator *a, sessile_error *err)
{
    rpc_tls *tls;
    sessile_status status;
    int failed = 0;

    *out = NULL;
    if (!a)
        a = &allocator_default;
    if (!files->cert != !files->key || (server && !files->cert))
        return fail(err, SESSILE_INVALID,
                    "TLS needs a certificate and its key: give both");
    tls = mem_zalloc(a, sizeof *tls);
    if (!tls)
        return fail_nomem(err);
    tls->alloc = *a;
    tls->server = server;
    atomic_init(&tls->references, 1);
    pthread_mutex_init(&tls->lock, NULL);
    tls->files.cert = copied(a, files->cert, &failed);
    tls->files.key = copied(a, files->key, &failed);
    tls->files.ca = copied(a, files->ca, &failed);
    tls->files.name = copied(a, files->name, &failed);
    tls->bytes = tls_bytes_new();
    failed |= !tls->bytes;
    status = failed ? fail_nomem(err) : context_open(&tls->context, tls, err);
    if (status) {
        tls_free(tls);
        return status;
    }
    tls->expires = end_of(tls->context);
    *out = tls;
    return SESSILE_OK;
}

sessile_status rpc_tls_reload(rpc_tls *tls, sessile_error *err)
{
    SSL_CTX *fresh, *old;
    sessile_status status = context_open(&fresh, tls, err);
    if (status)
        return status;
    pthread_mutex_lock(&tls->lock);
    old = tls->context;
    tls->context = fresh;
    tls->expires = end_of(fresh);
    pthread_mutex_unlock(&tls->lock);
    SSL_CTX_free(old);
    return SESSILE_OK;
}

int64_t rpc_tls_expires(const rpc_tls *tls)
{
    /* The lock alone is changed. */
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&tls->lock;
    int64_t expires;
    pthread_mutex_lock(lock);
    expires = tls->expires;
    pthread_mutex_unlock(lock);
    return expires;
}

void tls_retain(rpc_tls *tls)
{
    if (tls)
        atomic_fetch_add(&tls->references, 1);
}

void rpc_tls_drop(rpc_tls *tls)
{
    if (tls && atomic_fetch_sub(&tls->references, 1) == 1)
        tls_free(tls);
}
