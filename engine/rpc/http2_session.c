/*
 * http2_session.c: HTTP/2 as the protocol of a connection: the life of an nghttp2
 * session.
 *
 * Owns what the connection asks of it: taking bytes, giving bytes, looking at the time,
 * draining, ending. What happens on its streams is in http2.c.
 */
#include <string.h>

#include "rpc/http2.h"
#include "rpc/intake.h"

enum {
    CONTINUATIONS = 8,
    ACKS = 100, /* answers to PING and SETTINGS that wait to be sent */
};

http2 *http2_of(conn *c)
{
    return c->state;
}

static void end_all(conn *c)
{
    http2 *h2 = c->state;
    while (h2->streams) {
        stream *s = h2->streams;
        if (s->id > 0)
            nghttp2_session_set_stream_user_data(h2->session, s->id, NULL);
        h2->side->closed(s, -1);
    }
}

static int receive(conn *c, const unsigned char *data, size_t size)
{
    http2 *h2 = c->state;
    ssize_t n = nghttp2_session_mem_recv(h2->session, data, size);

    if (n == NGHTTP2_ERR_FLOODED)
        conn_hostile(c);
    if (c->hostile)
        end_all(c);
    return n < 0 || c->hostile ? -1 : 0;
}

static int produce(conn *c)
{
    http2 *h2 = c->state;
    while (!conn_full(c)) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(h2->session, &data);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        buf_put(&c->out.data, data, (size_t)n);
    }
    return nghttp2_session_want_read(h2->session) ||
                   nghttp2_session_want_write(h2->session)
               ? 0
               : -1;
}

static void drain(conn *c, int last)
{
    http2 *h2 = c->state;
    if (!last)
        nghttp2_submit_shutdown_notice(h2->session);
    else
        nghttp2_submit_goaway(h2->session, 0,
                              nghttp2_session_get_last_proc_stream_id(h2->session),
                              NGHTTP2_NO_ERROR, NULL, 0);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A PING each limits.ms.ping; a peer that was not heard for ten of them, and for two
 * seconds, is gone. */
static uint64_t ping(http2 *h2, uint64_t now)
{
    uint64_t each = (uint64_t)h2->conn->limits->ms.ping * 1000, silent = 10 * each;
    if (silent < 2000000)
        silent = 2000000;
    if (now - h2->conn->at.heard >= silent) {
        conn_end(h2->conn);
        return UINT64_MAX;
    }
    if (now - h2->pinged >= each) {
        nghttp2_submit_ping(h2->session, 0, NULL);
        h2->pinged = now;
        conn_dirty(h2->conn);
    }
    return earlier(h2->pinged + each, h2->conn->at.heard + silent);
}

static uint64_t look_at_streams(http2 *h2, uint64_t now)
{
    uint64_t due = UINT64_MAX, one;
    stream *s, *next;

    for (s = h2->streams; s; s = next) {
        next = s->next;
        due = earlier(due, intake_look(s, now));
        if (s->h2 != h2 || !s->out.headers || (!s->out.queue.first && !http2_lingers(s)))
            continue;
        one = conn_after(s->out.since,
                         http2_lingers(s) ? HTTP2_LINGER_MS : h2->conn->limits->ms.stuck);
        if (one <= now)
            http2_reset(s, http2_lingers(s) ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
        else
            due = earlier(due, one);
    }
    return due;
}

static uint64_t look(conn *c)
{
    http2 *h2 = c->state;
    const rpc_limits *limits = c->limits;
    uint64_t now = c->loop->now_us, due = UINT64_MAX, one;

    if (c->owner.listener && !h2->began && limits->ms.first) {
        one = conn_after(c->at.opened, limits->ms.first);
        if (one <= now) {
            conn_finish(c);
            return UINT64_MAX;
        }
        due = one;
    }
    if (limits->ms.idle && !h2->count && h2->began) {
        one = conn_after(h2->idle_since, limits->ms.idle);
        if (one <= now) {
            nghttp2_session_terminate_session(h2->session, NGHTTP2_NO_ERROR);
            conn_dirty(c);
            return UINT64_MAX;
        }
        due = earlier(due, one);
    }
    if (!c->owner.listener && limits->ms.ping)
        due = earlier(due, ping(h2, now));
    if (c->phase == CONN_DEAD)
        return UINT64_MAX;
    return earlier(due, look_at_streams(h2, now));
}

static void release(conn *c)
{
    http2 *h2 = c->state;
    nghttp2_session_del(h2->session);
    mem_free(&c->loop->alloc, h2, sizeof *h2);
    c->state = NULL;
}

static const protocol http2_protocol = {receive,    produce,    look,    drain,
                                        serve_held, serve_shed, end_all, release};

static int session_new(http2 *h2, int server)
{
    nghttp2_session_callbacks *on = http2_callbacks();
    nghttp2_option *option = NULL;
    int failed = -1;

    if (on && !nghttp2_option_new(&option)) {
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_outbound_ack(option, ACKS);
        nghttp2_option_set_max_continuations(option, CONTINUATIONS);
        failed = server ? nghttp2_session_server_new2(&h2->session, on, h2, option)
                        : nghttp2_session_client_new2(&h2->session, on, h2, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(on);
    return failed;
}

static int settings(http2 *h2, int server)
{
    const rpc_limits *limits = h2->conn->limits;
    nghttp2_settings_entry list[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, server ? SERVER_WINDOW : CLIENT_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)limits->bytes.headers},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->count.streams},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    if (!server) {
        list[2].settings_id = NGHTTP2_SETTINGS_ENABLE_PUSH;
        list[2].value = 0;
    }
    return nghttp2_submit_settings(h2->session, 0, list, sizeof list / sizeof *list) ||
           nghttp2_session_set_local_window_size(
               h2->session, 0, 0, server ? SERVER_CONNECTION : CLIENT_CONNECTION);
}

int http2_begin(conn *c)
{
    int server = c->owner.listener != NULL;
    http2 *h2 = mem_zalloc(&c->loop->alloc, sizeof *h2);

    if (!h2)
        return -1;
    h2->conn = c;
    h2->side = server ? &http2_server : &http2_client;
    h2->idle_since = h2->pinged = c->loop->now_us;
    h2->floods.resets.at_us = h2->floods.pings.at_us = h2->floods.settings.at_us =
        h2->floods.empty.at_us = h2->floods.other.at_us = c->loop->now_us;
    if (session_new(h2, server) || settings(h2, server)) {
        nghttp2_session_del(h2->session);
        mem_free(&c->loop->alloc, h2, sizeof *h2);
        return -1;
    }
    c->state = h2;
    c->speaks = &http2_protocol;
    return 0;
}
