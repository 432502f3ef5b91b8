/*
 * guard.c: a password is not sent in clear text over a network.
 *
 * libpq answers whatever a server asks, and a server that asks for the password in clear
 * text gets it. Only libpq 16 can be told not to (require_auth), and not that it may
 * through TLS. So while a connection to another machine is made without TLS, libpq talks
 * to us under its socket's number (os_detour), and what the server says reaches it one
 * message at a time, after it was looked at. Only to look into the socket before libpq
 * reads would not do: a server can ask between the look and the reading.
 *
 * A connection to this machine, one that is encrypted, and one whose URL allows it, are
 * left alone; so is every connection once the server has let us in. The answers to the
 * other questions (MD5, SCRAM) do not hold the password. Must never read more of the
 * socket than it passes on: libpq reads on where we stopped.
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* A message: a letter, its size with this number but without the letter, and in 'R' what
 * is asked. */
enum { HEAD = 5, HEAD_OF_ASKING = 9, CLEAR_TEXT = 3 };

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* libpq's answers, to the server. 1: all are sent; 0: not yet; -1: it broke. */
static int send_answers(pg_guard *g)
{
    for (;;) {
        if (g->out_at == g->out_size) {
            int n = os_socket_receive(g->detour.near, g->out, sizeof g->out, OS_TAKE);
            if (n <= 0) {
                wipe(g->out, sizeof g->out);
                return 1;
            }
            g->out_at = 0;
            g->out_size = n;
        }
        int n =
            os_socket_send(g->detour.far, g->out + g->out_at, g->out_size - g->out_at);
        if (n <= 0)
            return n;
        g->out_at += n;
    }
}

/* libpq reads before we pass more on, so its end always has room for these few. */
static int pass_on(pg_guard *g, const void *data, int size)
{
    return os_socket_send(g->detour.near, data, size) == size ? 0 : -1;
}

/* One step towards the end of a message. */
static pg_looked pass_message(pg_guard *g)
{
    unsigned char some[1024];
    int n;
    if (g->left > 0) {
        n = os_socket_receive(g->detour.far, some,
                              g->left < sizeof some ? (int)g->left : (int)sizeof some,
                              OS_TAKE);
        if (n <= 0)
            return n < 0 ? PG_LEFT_ALONE : PG_HEARD_NOTHING;
        g->left -= (uint32_t)n;
        return pass_on(g, some, n) == 0 ? PG_PASSED_ON : PG_LEFT_ALONE;
    }
    int asks, need;
    for (;;) {
        asks = g->head_size >= HEAD && g->head[0] == 'R' && number_at(g->head + 1) >= 8;
        need = asks ? HEAD_OF_ASKING : HEAD;
        if (g->head_size == need)
            break;
        n = os_socket_receive(g->detour.far, g->head + g->head_size, need - g->head_size,
                              OS_TAKE);
        if (n <= 0)
            return n < 0 ? PG_LEFT_ALONE : PG_HEARD_NOTHING;
        g->head_size += n;
    }
    if (asks && number_at(g->head + HEAD) == CLEAR_TEXT)
        return PG_ASKED_FOR_CLEAR_TEXT;
    uint32_t size = number_at(g->head + 1), had = (uint32_t)g->head_size - 1;
    g->left = size > had ? size - had : 0;
    n = g->head_size;
    g->head_size = 0;
    return pass_on(g, g->head, n) == 0 ? PG_PASSED_ON : PG_LEFT_ALONE;
}

/* The server's answer to the question for TLS, or GSSAPI: one byte, or an error. */
static pg_looked pass_offer(pg_guard *g)
{
    unsigned char offer;
    int n = os_socket_receive(g->detour.far, &offer, 1, OS_PEEK);
    if (n <= 0)
        return n < 0 ? PG_LEFT_ALONE : PG_HEARD_NOTHING;
    if (offer == 'E')
        return pass_message(g);
    if (offer != 'N') /* encryption begins, or an answer that libpq does not accept */
        return PG_LEFT_ALONE;
    n = os_socket_receive(g->detour.far, &offer, 1, OS_TAKE);
    return n == 1 && pass_on(g, &offer, 1) == 0 ? PG_PASSED_ON : PG_LEFT_ALONE;
}

void pg_guard_end(pg_guard *g, const pg_store *ps, PGconn *pg)
{
    os_detour_close(&g->detour, pg ? ps->lib.PQsocket(pg) : -1);
    wipe(g, sizeof *g);
}

/* 1 when what is sent from now on could be read by others. */
static int must_look(const pg_store *ps, PGconn *pg, ConnStatusType status)
{
    return !ps->url.clear_password &&
           (status == CONNECTION_MADE || status == CONNECTION_AWAITING_RESPONSE) &&
           !ps->lib.PQsslInUse(pg) && !ps->lib.PQgssEncInUse(pg) &&
           !os_socket_local(ps->lib.PQsocket(pg));
}

int pg_guard_socket(pg_guard *g, const pg_store *ps, PGconn *pg, int *flags)
{
    int fd = ps->lib.PQsocket(pg);
    if (!os_detour_holds(&g->detour, fd))
        return fd;
    if (send_answers(g) == 0)
        *flags = OS_WRITE;
    return *flags == OS_WRITE && g->out_at == g->out_size ? fd : g->detour.far;
}

pg_looked pg_guard_look(pg_guard *g, const pg_store *ps, PGconn *pg)
{
    int fd = ps->lib.PQsocket(pg), sent;
    ConnStatusType status = ps->lib.PQstatus(pg);
    pg_looked looked = PG_LEFT_ALONE; /* let in, or refused */
    if (g->detour.open && !os_detour_holds(&g->detour, fd))
        pg_guard_end(g, ps, NULL); /* libpq closed it, and tries another one */
    if (!g->detour.open) {
        if (must_look(ps, pg, status) && os_detour_open(&g->detour, fd) != 0)
            return PG_CANNOT_LOOK;
        return PG_LEFT_ALONE;
    }
    sent = send_answers(g);
    if (sent == 0)
        return PG_HEARD_NOTHING;
    int asked = status == CONNECTION_SSL_STARTUP || status == CONNECTION_GSS_STARTUP;
    if (sent > 0 && status == CONNECTION_MADE)
        looked = PG_PASSED_ON;
    else if (sent > 0 && asked && g->head_size == 0 && g->left == 0)
        looked = pass_offer(g);
    else if (sent > 0 && (asked || status == CONNECTION_AWAITING_RESPONSE))
        looked = pass_message(g);
    if (looked == PG_LEFT_ALONE)
        pg_guard_end(g, ps, pg);
    return looked;
}
