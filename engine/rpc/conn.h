/* conn.h: one connection: a socket, TLS or not, and the protocol that is spoken on it. */
#ifndef RPC_CONN_H
#define RPC_CONN_H

#include "base/buf.h"
#include "rpc/address.h"
#include "rpc/loop.h"
#include "rpc/tls.h"

typedef struct conn conn;

/* What HTTP/2 and HTTP/1.1 are for a connection. */
typedef struct protocol {
    /* Takes bytes that came. 0; -1: the connection ends after its last words. */
    int (*receive)(conn *c, const unsigned char *data, size_t size);
    /* Puts what there is to send into c->out.data, until that is full (conn_full()). 0;
     * -1: the connection ends when it is written. */
    int (*produce)(conn *c);
    /* Ends what is overdue. Returns when it wants to look again, UINT64_MAX: never. */
    uint64_t (*look)(conn *c);
    /* Asks the peer to go: first a notice, later (last) no new call. */
    void (*drain)(conn *c, int last);
    /* A server's: bytes of replies that wait for the peer; and it ends the call that
     * holds most of them, as RESOURCE_EXHAUSTED: the bytes that were freed. */
    size_t (*held)(conn *c);
    size_t (*shed)(conn *c);
    /* The connection is gone: each call is told. */
    void (*ended)(conn *c);
    /* Frees what c->state holds. Nothing refers to the connection any more. */
    void (*release)(conn *c);
} protocol;

typedef enum conn_phase {
    CONN_CONNECTING, /* a client's socket */
    CONN_HANDSHAKE,
    CONN_SNIFFING, /* which protocol is it? */
    CONN_OPEN,
    CONN_CLOSING, /* what is left to send is sent */
    CONN_LINGER,  /* all is sent: wait for the peer's end, so that it can read it */
    CONN_DEAD
} conn_phase;

struct rpc_listener;
struct rpc_channel;

struct conn {
    source io;
    rpc_loop *loop;
    conn *next, *prev; /* of the loop */
    conn *next_dirty;  /* in the list that begins at loop->conns.dirty */
    const rpc_limits *limits;
    conn_phase phase;
    const protocol *speaks; /* NULL: not known yet */
    void *state;            /* the protocol's */
    tls_link *tls;          /* NULL: plain text */
    struct {
        struct rpc_listener *listener; /* a server's, else NULL */
        struct rpc_channel *channel;   /* a client's; NULL: it has given it up */
        char peer[ADDRESS_TEXT];
    } owner;
    struct {
        buf data;        /* with TLS what is to be sealed; else for the wire */
        size_t sent;     /* of what is for the wire */
        size_t withheld; /* bytes that came while nothing could be sent */
        unsigned dirty : 1, blocked : 1;
    } out;
    struct {
        unsigned char bytes[24]; /* what came before the protocol was known */
        size_t size;
    } sniffed;
    struct {
        uint64_t opened, heard, wrote, age, drain; /* drain: the second GOAWAY; 0: none */
    } at;
    timer timer;
    int error; /* errno of connecting */
    unsigned draining : 1, hostile : 1;
    unsigned heard : 1; /* the peer has begun to speak */
    unsigned shook : 1; /* with TLS: it has begun to shake hands */
};

/* A connection of a socket, which it owns from now on, also when it fails. NULL: no
 * memory. A server's begins to read. */
conn *conn_new(rpc_loop *loop, int fd, const rpc_limits *limits);
/* A server's connection begins. tls may be NULL. */
void conn_serve(conn *c, struct rpc_listener *l, rpc_tls *tls);
/* A client's connection begins: its socket is connecting. host: whom it expects there. */
void conn_dial(conn *c, struct rpc_channel *channel, rpc_tls *tls, const char *host);

/* There is something to send: produce() is called before the turn ends. */
void conn_dirty(conn *c);
/* No more shall be put into c->out for now. */
int conn_full(conn *c);
/* So long after us; UINT64_MAX for 0 ms, which is no limit. */
uint64_t conn_after(uint64_t us, int ms);
/* look() is called at that time, or earlier; UINT64_MAX: it need not be. */
void conn_due(conn *c, uint64_t at_us);
void conn_drain(conn *c);
/* Ends after what is left to send. */
void conn_finish(conn *c);
/* Ends now. Safe in any callback: memory is freed when the turn ends. */
void conn_end(conn *c);
/* The peer misbehaves: counted once for a connection. */
void conn_hostile(conn *c);

/* ------------------------------------------------------------ conn_write.c, for conn.c
 */

#define CONN_LINGER_US (2 * 1000000ull)
/* Writes what is for the wire: all, or until the socket takes no more (out.blocked). 0,
 * -1. */
int conn_push(conn *c);
/* Reads: bytes; 0: there are none now; -1: the end, or it broke. */
long conn_pull(conn *c, void *out);
/* What epoll shall say: that there is something to read, unless the peer reads nothing
 * and has sent enough; and that it can be written again. */
void conn_watch(conn *c);
/* The memory of what was written is another connection's. */
void conn_take_back(conn *c, buf *out);
/* What came at a port of TLS is clear text: a client of HTTP/1.1 is told, and the
 * connection ends. */
void conn_refuse_clear(conn *c, const void *data, size_t size);

/* Of all connections of a loop. */
void conns_flush(rpc_loop *loop);
void conns_reap(rpc_loop *loop);
void conns_close(rpc_loop *loop);

#endif
