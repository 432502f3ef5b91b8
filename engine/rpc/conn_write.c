/*
 * conn_write.c: the bytes of a connection that wait to be written.
 *
 * A peer that does not read must not cost memory. The protocol is asked for bytes only
 * while less than OUT_FULL are waiting; and when nothing can be written, no more than
 * WITHHELD bytes are read, since each of them may ask for an answer.
 *
 * With TLS the bytes go through a tls_link: what is read lies in the loop's memory and is
 * opened at once, and all that is to be written is sealed together, so that a connection
 * which has nothing to say holds no buffer.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rpc/conn.h"

enum {
    OUT_FULL = 65536,
    WITHHELD = 256 * 1024,
};

/* Memory to write into goes from connection to connection, as each has something to send.
 */
static void lend(conn *c, buf *out)
{
    buf *spare = c->loop->run.spare;
    int i = spare[0].data ? 0 : 1;
    if (out->data || !spare[i].data)
        return;
    *out = spare[i];
    buf_init(&spare[i], &c->loop->alloc);
}

void conn_take_back(conn *c, buf *out)
{
    buf *spare = c->loop->run.spare;
    int i = spare[0].data ? 1 : 0;
    if (spare[i].data || out->capacity > 4 * OUT_FULL) {
        buf_deinit(out);
        return;
    }
    buf_clear(out);
    spare[i] = *out;
    buf_init(out, &c->loop->alloc);
}

/* What is for the wire. */
static buf *wire(conn *c)
{
    return c->tls ? tls_out(c->tls) : &c->out.data;
}

int conn_full(conn *c)
{
    size_t waits = wire(c)->size - c->out.sent + (c->tls ? c->out.data.size : 0);
    return waits >= OUT_FULL || c->out.data.failed;
}

void conn_dirty(conn *c)
{
    if (c->out.dirty || c->phase == CONN_DEAD)
        return;
    c->out.dirty = 1;
    c->next_dirty = c->loop->conns.dirty;
    c->loop->conns.dirty = c;
}

/* What epoll shall say: that there is something to read, unless the peer reads nothing
 * and has sent enough; and that it can be written again. */
void conn_watch(conn *c)
{
    uint32_t events = 0;
    if (c->phase == CONN_DEAD)
        return;
    if (!c->out.blocked || c->out.withheld < WITHHELD)
        events |= EPOLLIN;
    if (c->out.blocked || c->phase == CONN_CONNECTING)
        events |= EPOLLOUT;
    if (loop_watch(c->loop, &c->io, events))
        conn_end(c);
}

/* Writes what is for the wire: all, or until the socket takes no more (out.blocked). 0,
 * -1. */
int conn_push(conn *c)
{
    buf *out = wire(c);
    while (c->out.sent < out->size) {
        ssize_t n = send(c->io.fd, out->data + c->out.sent, out->size - c->out.sent,
                         MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return -1;
        if (n <= 0) {
            c->out.blocked = 1;
            conn_due(c, conn_after(c->at.wrote, c->limits->ms.stuck));
            return 0;
        }
        c->at.wrote = c->loop->now_us;
        c->out.sent += (size_t)n;
    }
    if (out->data)
        conn_take_back(c, out);
    c->out.sent = 0;
    c->out.withheld = 0;
    return 0;
}

/* Asks the protocol for what there is to send. 0; -1: no memory, or TLS broke. */
static int produce(conn *c)
{
    int failed = 0;
    lend(c, &c->out.data);
    if (c->speaks->produce(c) && c->phase == CONN_OPEN)
        c->phase = CONN_CLOSING;
    if (!c->tls || c->out.data.failed)
        return c->out.data.failed ? -1 : 0;
    lend(c, tls_out(c->tls));
    if (c->out.data.size)
        failed = tls_write(c->tls, c->out.data.data, c->out.data.size);
    conn_take_back(c, &c->out.data);
    return failed;
}

/* Bytes; 0: there are none now; -1: the end, or it broke. */
long conn_pull(conn *c, void *out)
{
    ssize_t n = recv(c->io.fd, out, INPUT_SIZE, 0);
    if (n > 0)
        return (long)n;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

/* The socket takes no more: what the peer said last is why. */
static void hear_out(conn *c)
{
    unsigned char *in = c->loop->run.sealed;
    long n = c->tls ? conn_pull(c, in) : 0;
    if (n <= 0)
        return;
    tls_feed(c->tls, in, (size_t)n);
    while (tls_read(c->tls, c->loop->run.input, INPUT_SIZE) > 0)
        ;
    tls_feed(c->tls, NULL, 0);
}

/* All is sent that ever will be. */
static void linger(conn *c)
{
    if (c->tls) {
        tls_bye(c->tls);
        (void)conn_push(c);
    }
    shutdown(c->io.fd, SHUT_WR);
    c->phase = CONN_LINGER;
    c->at.wrote = c->loop->now_us;
    conn_due(c, c->at.wrote + CONN_LINGER_US);
}

static void flush(conn *c)
{
    c->out.blocked = 0;
    if (c->phase < CONN_OPEN && conn_push(c)) {
        conn_end(c);
        return;
    }
    while ((c->phase == CONN_OPEN || c->phase == CONN_CLOSING) && !c->out.blocked) {
        if (produce(c)) {
            conn_end(c);
            return;
        }
        if (wire(c)->size == c->out.sent) {
            if (c->phase == CONN_CLOSING)
                linger(c);
            break;
        }
        if (conn_push(c)) {
            hear_out(c);
            conn_end(c);
            return;
        }
    }
    if (!wire(c)->size && wire(c)->data)
        conn_take_back(c, wire(c));
    conn_watch(c);
}

void conns_flush(rpc_loop *loop)
{
    while (loop->conns.dirty) {
        conn *c = loop->conns.dirty;
        loop->conns.dirty = c->next_dirty;
        c->out.dirty = 0;
        if (c->phase != CONN_DEAD)
            flush(c);
    }
}

void conn_finish(conn *c)
{
    if (c->phase == CONN_OPEN)
        c->phase = CONN_CLOSING;
    else if (c->phase < CONN_OPEN)
        conn_end(c);
    conn_dirty(c);
}

/* ---------------------------------------------------------------------- clear text */

void conn_refuse_clear(conn *c, const void *data, size_t size)
{
    static const char why[] = "this port speaks TLS: begin the address with https://\n";
    buf *out = tls_out(c->tls);
    if (memcmp(data, "PRI ", size < 4 ? size : 4) == 0) {
        conn_end(c); /* a client of HTTP/2, which takes silence for a port of TLS */
        return;
    }
    buf_printf(out,
               "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n"
               "content-length: %zu\r\nconnection: close\r\n\r\n%s",
               sizeof why - 1, why);
    if (out->failed || conn_push(c)) {
        conn_end(c);
        return;
    }
    shutdown(c->io.fd, SHUT_WR);
    c->phase = CONN_LINGER; /* so that the client can read it */
    c->at.wrote = c->loop->now_us;
    conn_due(c, c->at.wrote + CONN_LINGER_US);
}
