/*
 * tls.c: TLS by OpenSSL: contexts made of files, and links, which turn bytes into sealed
 * ones and back.
 *
 * A link has no socket. OpenSSL would read and write one in pieces, a record or less at a
 * time; a connection reads and writes all that there is at once. What is written here
 * waits in a buffer of the link.
 *
 * A context never changes. Reading the files again makes another one, which new links
 * use; a link keeps its own until it ends. So nothing is locked but the pointer to it.
 *
 * Versions before 1.2 are refused, and of 1.2 all but what HTTP/2 allows: ephemeral keys
 * and AEAD. There is no renegotiation and no compression. A key file is opened once: what
 * was found to be private is what is read.
 */
#include "rpc/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/text.h"

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

struct tls_link {
    const allocator *alloc;
    SSL *ssl;
    struct {
        const unsigned char *data; /* of tls_feed(), what is left of it */
        size_t size;
    } in;
    buf out;
    char name[256];
    const char *failure;
    rpc_fault fault;
};

/* ---------------------------------------------------------------------- files */

/* What OpenSSL has to say, which names no secret. */
static const char *reason(void)
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
        status =
            fail(err, SESSILE_INVALID, "the key, %s, does not fit: %s", path, reason());
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
                    reason());
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
                    reason());
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
        status = fail(err, SESSILE_UNSUPPORTED, "OpenSSL has no TLS 1.2: %s", reason());
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

/* OpenSSL's door to the bytes of a link: it takes what was fed, and is never made to wait
 * when it writes. */
static int take_bytes(BIO *bio, char *out, int size)
{
    tls_link *link = BIO_get_data(bio);
    size_t n = size > 0 ? (size_t)size : 0;
    if (n > link->in.size)
        n = link->in.size;
    BIO_clear_retry_flags(bio);
    if (!n) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, link->in.data, n);
    link->in.data += n;
    link->in.size -= n;
    return (int)n;
}

static int put_bytes(BIO *bio, const char *data, int size)
{
    tls_link *link = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    buf_put(&link->out, data, size > 0 ? (size_t)size : 0);
    return link->out.failed ? -1 : size;
}

static long control_bytes(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bytes_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "link");
    if (method && BIO_meth_set_read(method, take_bytes) &&
        BIO_meth_set_write(method, put_bytes) && BIO_meth_set_ctrl(method, control_bytes))
        return method;
    BIO_meth_free(method);
    return NULL;
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
    tls->bytes = bytes_method();
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

/* ---------------------------------------------------------------------- links */

static int is_number(const char *host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* The certificate must be of that name. 0, or -1. */
static int expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (!host || !*host)
        return -1;
    if (is_number(host))
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1 ? 0 : -1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
                   SSL_set_tlsext_host_name(ssl, host) == 1
               ? 0
               : -1;
}

/* 0, or -1: no memory. */
static int use_bytes(tls_link *link, const BIO_METHOD *method)
{
    BIO *bio = BIO_new(method);
    if (!bio)
        return -1;
    BIO_set_data(bio, link);
    BIO_set_init(bio, 1);
    SSL_set_bio(link->ssl, bio, bio);
    return 0;
}

tls_link *tls_link_new(rpc_tls *tls, const char *host, const allocator *a)
{
    tls_link *link = mem_zalloc(a, sizeof *link);
    if (!link)
        return NULL;
    link->alloc = a;
    link->failure = "";
    buf_init(&link->out, a);
    pthread_mutex_lock(&tls->lock);
    link->ssl = SSL_new(tls->context);
    pthread_mutex_unlock(&tls->lock);
    if (!link->ssl || use_bytes(link, tls->bytes) ||
        (!tls->server && expect(link->ssl, tls->files.name ? tls->files.name : host))) {
        tls_link_free(link);
        return NULL;
    }
    if (tls->server)
        SSL_set_accept_state(link->ssl);
    else
        SSL_set_connect_state(link->ssl);
    return link;
}

void tls_link_free(tls_link *link)
{
    if (!link)
        return;
    SSL_free(link->ssl);
    ERR_clear_error();
    buf_deinit(&link->out);
    mem_free(link->alloc, link, sizeof *link);
}

/* A text of a certificate as a name of ours: 0; -1: it is empty, long, or no plain text.
 */
static int take_name(tls_link *link, const ASN1_STRING *text)
{
    unsigned char *utf8 = NULL;
    int i, size = text ? ASN1_STRING_to_UTF8(&utf8, text) : -1, good;

    good = size > 0 && (size_t)size < sizeof link->name && utf8_valid(utf8, (size_t)size);
    for (i = 0; good && i < size; i++)
        good = utf8[i] >= ' ' && utf8[i] != 127;
    if (good) {
        memcpy(link->name, utf8, (size_t)size);
        link->name[size] = 0;
    }
    OPENSSL_free(utf8);
    return good ? 0 : -1;
}

static void find_name(tls_link *link)
{
    X509 *cert = SSL_get0_peer_certificate(link->ssl);
    X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;
    GENERAL_NAMES *names;
    int at, i, found = 0;

    if (!cert || SSL_get_verify_result(link->ssl) != X509_V_OK)
        return;
    at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0 &&
        !take_name(link, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))))
        return;
    names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, i);
        if (one->type == GEN_DNS)
            found = !take_name(link, one->d.dNSName);
        else if (one->type == GEN_URI)
            found = !take_name(link, one->d.uniformResourceIdentifier);
    }
    GENERAL_NAMES_free(names);
}

/* What OpenSSL has found wrong with the peer's certificate, or the peer with ours. */
static rpc_fault find_fault(const tls_link *link)
{
    switch (SSL_get_verify_result(link->ssl)) {
    case X509_V_OK:
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return RPC_FAULT_NAME;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return RPC_FAULT_TIME;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return RPC_FAULT_AUTHORITY;
    default:
        return RPC_FAULT_NONE;
    }
    switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        return RPC_FAULT_CLIENT;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return RPC_FAULT_NO_TLS;
    default:
        return RPC_FAULT_NONE;
    }
}

/* As tls_read() of what OpenSSL answered. */
static long result(tls_link *link, int n)
{
    int error;
    if (n > 0)
        return n;
    error = SSL_get_error(link->ssl, n);
    if (error == SSL_ERROR_WANT_READ)
        return 0;
    if (error == SSL_ERROR_SSL && !link->fault)
        link->fault = find_fault(link);
    return -1;
}

void tls_feed(tls_link *link, const void *data, size_t size)
{
    link->in.data = data;
    link->in.size = size;
}

int tls_handshake(tls_link *link)
{
    long verify;
    int n;

    ERR_clear_error();
    n = (int)result(link, SSL_do_handshake(link->ssl));
    if (n > 0) {
        find_name(link);
        return 1;
    }
    if (n < 0) {
        verify = SSL_get_verify_result(link->ssl);
        link->failure = verify != X509_V_OK     ? X509_verify_cert_error_string(verify)
                        : ERR_peek_last_error() ? reason()
                                                : "the peer ended the connection";
    }
    ERR_clear_error();
    return n;
}

long tls_read(tls_link *link, void *out, size_t size)
{
    ERR_clear_error();
    return result(link, SSL_read(link->ssl, out, size > INT_MAX ? INT_MAX : (int)size));
}

int tls_write(tls_link *link, const void *data, size_t size)
{
    ERR_clear_error();
    if (size > INT_MAX || SSL_write(link->ssl, data, (int)size) != (int)size)
        return -1;
    return link->out.failed ? -1 : 0;
}

buf *tls_out(tls_link *link)
{
    return &link->out;
}

void tls_bye(tls_link *link)
{
    ERR_clear_error();
    SSL_shutdown(link->ssl);
    ERR_clear_error();
}

int tls_speaks_h2(const tls_link *link)
{
    const unsigned char *name;
    unsigned size;
    SSL_get0_alpn_selected(link->ssl, &name, &size);
    if (!size)
        return -1;
    return size == 2 && !memcmp(name, "h2", 2);
}

const char *tls_peer_name(const tls_link *link)
{
    return link->name[0] ? link->name : NULL;
}

const char *tls_failure(const tls_link *link)
{
    return link->failure;
}

rpc_fault tls_fault(const tls_link *link)
{
    return link->fault;
}
