/*
 * proxy.h: a network that fails as it is told: TCP on 127.0.0.1, between clients and one
 * server, in a thread of its own.
 *
 * Bytes are counted over all connections, in each direction, as they are passed on. What
 * a client sees of a cut is the end of the connection; the server still gets what was
 * passed on before it. Any thread may call.
 */
#ifndef SUPPORT_PROXY_H
#define SUPPORT_PROXY_H

#include <stddef.h>
#include <stdint.h>

typedef struct proxy proxy;
typedef enum proxy_way { PROXY_TO_SERVER, PROXY_TO_CLIENT } proxy_way;

/* Between a port of its own and `port` of 127.0.0.1. Memory or ports that run out end the
 * process. */
proxy *proxy_open(int port);
/* Cuts what is left. */
void proxy_close(proxy *p);
/* `url`, in which 127.0.0.1:PORT stands, with the proxy's port: free(). */
char *proxy_url(const proxy *p, const char *url);
/* PORT of such a URL. */
int proxy_port_of(const char *url);

/* Bytes passed on so far. */
uint64_t proxy_bytes(proxy *p, proxy_way way);
/* Connections that are open. */
size_t proxy_connections(proxy *p);
/* Connections that were ever made. */
uint64_t proxy_accepted(proxy *p);

/* Cuts the connection that is the one to pass on the byte after `bytes` more of them, in
 * place of passing it on; 0: the very next. Once; later connections are not touched.
 * UINT64_MAX: never. */
void proxy_cut_after(proxy *p, proxy_way way, uint64_t bytes);
/* How many connections were cut so. */
unsigned proxy_cuts(proxy *p);
/* Cuts all connections now. */
void proxy_cut(proxy *p);

/* From now on (1) what comes that way is taken and kept; (0) it is passed on, with what
 * was kept. */
void proxy_hold(proxy *p, proxy_way way, int on);
/* The same, once `bytes` more have been passed on that way; UINT64_MAX: not any more. */
void proxy_hold_after(proxy *p, proxy_way way, uint64_t bytes);
/* Waits until that number of bytes is kept that way; 0: they did not come in timeout_ms.
 */
int proxy_wait_held(proxy *p, proxy_way way, size_t bytes, int timeout_ms);
/* Ends the clients' side of every connection that holds bytes for the server. These bytes
 * are delivered all the same, as from somebody who is long gone: when `bytes` more of
 * other connections have been passed on to the server (0: before the next of them).
 * proxy_hold() is over for other connections. */
void proxy_orphan(proxy *p, uint64_t bytes);
/* Orphans whose bytes have been delivered, and those that still wait for their moment.
 * One whose connection the server has ended is neither. */
unsigned proxy_delivered(proxy *p);
unsigned proxy_waiting(proxy *p);

/* From now on (1) nobody listens: connecting is refused; (0) as before. Connections that
 * are open stay. */
void proxy_refuse(proxy *p, int on);

#endif
