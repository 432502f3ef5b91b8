/*
 * tls.c: TLS by OpenSSL: links, which turn bytes into sealed ones and back.
 *
 * A link has no socket. OpenSSL would read and write one in pieces, a record or less at a
 * time; a connection reads and writes all that there is at once. What is written here
 * waits in a buffer of the link.
 */
#include "rpc/tls_context.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/text.h"

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

/* ---------------------------------------------------------------------- bytes */

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

BIO_METHOD *tls_bytes_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "link");
    if (method && BIO_meth_set_read(method, take_bytes) &&
        BIO_meth_set_write(method, put_bytes) && BIO_meth_set_ctrl(method, control_bytes))
        return method;
    BIO_meth_free(method);
    return NULL;
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
                        : ERR_peek_last_error() ? tls_reason()
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
