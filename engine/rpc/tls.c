#include "rpc/tls.h"
tls_link *tls_link_new(rpc_tls *tls, int fd)
{
    (void)tls;
    (void)fd;
    return NULL;
}
void tls_link_free(tls_link *link)
{
    (void)link;
}
int tls_handshake(tls_link *link)
{
    (void)link;
    return -1;
}
long tls_read(tls_link *link, void *out, size_t size)
{
    (void)link;
    (void)out;
    (void)size;
    return -1;
}
long tls_write(tls_link *link, const void *data, size_t size)
{
    (void)link;
    (void)data;
    (void)size;
    return -1;
}
int tls_wants_write(const tls_link *link)
{
    (void)link;
    return 0;
}
void tls_bye(tls_link *link)
{
    (void)link;
}
int tls_speaks_h2(const tls_link *link)
{
    (void)link;
    return -1;
}
const char *tls_peer_name(const tls_link *link)
{
    (void)link;
    return NULL;
}
const char *tls_failure(const tls_link *link)
{
    (void)link;
    return "";
}
sessile_status rpc_tls_open(rpc_tls **out, int server, const rpc_tls_files *files,
                            const allocator *a, sessile_error *err)
{
    (void)server;
    (void)files;
    (void)a;
    *out = NULL;
    return fail(err, SESSILE_UNSUPPORTED, "TLS is not there yet");
}
sessile_status rpc_tls_reload(rpc_tls *tls, sessile_error *err)
{
    (void)tls;
    return fail(err, SESSILE_UNSUPPORTED, "TLS is not there yet");
}
int64_t rpc_tls_expires(const rpc_tls *tls)
{
    (void)tls;
    return 0;
}
void rpc_tls_drop(rpc_tls *tls)
{
    (void)tls;
}
