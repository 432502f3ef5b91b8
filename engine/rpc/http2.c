/*
 * http2.c: HTTP/2 on one connection, both sides, by nghttp2: sessions and callbacks.
 *
 * nghttp2 turns bytes into events and back, and has no socket. A stream of it is a call
 * (serve.c) or a request (request.c), which are reached by a table of operations.
 *
 * nghttp2 asks for the data of a stream when it may send some; what is not there yet is
 * deferred, and http2_more() resumes it. Nothing that a service does reaches nghttp2
 * inside of a callback: replies come by mail.
 *
 * Which floods end a connection is said here, in flooded(), and in settings().
 */
#include "rpc/http2.h"

#include <string.h>

#include "rpc/channel.h"
#include "rpc/intake.h"

enum {
    CONTINUATIONS = 8,
    ACKS = 100,  /* answers to PING and SETTINGS that wait to be sent */
    RESETS = 100 /* beyond the streams of a connection */
};

http2 *http2_of(conn *c)
{
    return c->state;
}

/* ---------------------------------------------------------------------- floods */

/* 1: it was done more often than is allowed. */
static int over(bucket *b, double burst, double rate, uint64_t now)
{
    b->tokens -= (double)(now - b->at_us) / 1e6 * rate;
    if (b->tokens < 0)
        b->tokens = 0;
    b->at_us = now;
    b->tokens += 1;
    return b->tokens > burst;
}

static void hang_up(http2 *h2)
{
    conn_hostile(h2->conn);
    nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Frames that cost the peer little and us something. */
static int begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ud)
{
    http2 *h2 = ud;
    uint64_t now = h2->conn->loop->now_us;
    int flood = 0;
    (void)session;

    switch (hd->type) {
    case NGHTTP2_PING:
        flood = over(&h2->floods.pings, 100, 20, now);
        break;
    case NGHTTP2_SETTINGS:
        flood = over(&h2->floods.settings, 20, 2, now);
        break;
    case NGHTTP2_DATA:
        if (!hd->length && !(hd->flags & NGHTTP2_FLAG_END_STREAM))
            flood = over(&h2->floods.empty, 100, 10, now);
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_WINDOW_UPDATE:
        break;
    default:
        flood = over(&h2->floods.other, 500, 100, now);
    }
    if (flood)
        hang_up(h2);
    return 0;
}

/* A stream that ended otherwise than by its reply: who resets many makes a server begin
 * work that nobody wants. A stream that ended well makes up for one. */
static void count_reset(http2 *h2, uint32_t error)
{
    double burst = RESETS + h2->conn->limits->count.streams;
    if (error == NGHTTP2_NO_ERROR) {
        if (h2->floods.resets.tokens >= 1)
            h2->floods.resets.tokens -= 1;
    } else if (h2->conn->owner.listener &&
               over(&h2->floods.resets, burst, 20, h2->conn->loop->now_us))
        hang_up(h2);
}

/* ---------------------------------------------------------------------- what came */

static stream *find(http2 *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2->session, id);
}

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ud)
{
    http2 *h2 = ud;
    stream *s;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    s = h2->side->begun(h2, frame->hd.stream_id);
    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    h2->began = 1;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
    return 0;
}

static int header(nghttp2_session *session, const nghttp2_frame *frame,
                  const uint8_t *name, size_t name_size, const uint8_t *value,
                  size_t value_size, uint8_t flags, void *ud)
{
    http2 *h2 = ud;
    stream *s = find(h2, frame->hd.stream_id);
    (void)session;
    (void)flags;
    if (s)
        h2->side->header(s, (const char *)name, name_size, (const char *)value,
                         value_size);
    return 0;
}

static void ended(http2 *h2, stream *s)
{
    if (s->in.ended)
        return;
    s->in.ended = 1;
    intake_end(s);
    if (s->h2 == h2 && !s->in.paused && !s->in.deaf)
        h2->side->ended(s);
}

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *ud)
{
    http2 *h2 = ud;
    stream *s;
    (void)session;

    if (frame->hd.type == NGHTTP2_GOAWAY && h2->conn->owner.channel)
        channel_going(h2->conn->owner.channel, h2->conn);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    s = find(h2, frame->hd.stream_id);
    if (!s)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        h2->side->headers_done(s);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        s = find(h2, frame->hd.stream_id);
        if (s)
            ended(h2, s);
    }
    return 0;
}

static int data_received(nghttp2_session *session, uint8_t flags, int32_t id,
                         const uint8_t *data, size_t size, void *ud)
{
    http2 *h2 = ud;
    stream *s = find(h2, id);
    (void)flags;
    nghttp2_session_consume_connection(session, size);
    if (s)
        intake_take(s, data, size);
    return 0;
}

static int stream_closed(nghttp2_session *session, int32_t id, uint32_t error, void *ud)
{
    http2 *h2 = ud;
    stream *s = find(h2, id);
    (void)session;
    /* Calls count as they ended here: who resets a stream when its reply is complete has
     * done no harm. */
    count_reset(h2, s && s->out.done ? NGHTTP2_NO_ERROR : error);
    if (!s)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    /* What a client that paused has not taken yet is a whole answer. */
    if (h2->conn->owner.listener || !s->in.paused || !s->in.ended || error)
        h2->side->closed(s, error);
    return 0;
}

/* A request that could not be sent has no stream that would be closed. */
static int frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error,
                          void *ud)
{
    http2 *h2 = ud;
    stream *s;
    (void)session;
    (void)error;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    for (s = h2->streams; s; s = s->next)
        if (s->id == frame->hd.stream_id) {
            h2->side->closed(s, NGHTTP2_REFUSED_STREAM);
            break;
        }
    return 0;
}

/* ---------------------------------------------------------------------- what is sent */

static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ud)
{
    http2 *h2 = ud;
    stream *s;

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    s = find(h2, frame->hd.stream_id);
    if (!s)
        return 0;
    s->out.begun = 1;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        s->out.done = 1;
        /* A server that has said all does not wait for the rest of the request. */
        if (h2->conn->owner.listener && !s->in.ended)
            nghttp2_submit_rst_stream(session, 0, s->id, NGHTTP2_NO_ERROR);
    }
    return 0;
}

static ssize_t fill(nghttp2_session *session, int32_t id, uint8_t *out, size_t size,
                    uint32_t *flags, nghttp2_data_source *source, void *ud)
{
    http2 *h2 = ud;
    stream *s = find(h2, id);
    size_t n;
    (void)session;
    (void)source;

    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    n = chunks_take(&s->out.queue, out, size, &h2->conn->loop->alloc);
    if (!s->out.queue.first && s->out.final) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (h2->side->last(s))
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    } else if (!n) {
        s->out.idle = 1;
        return NGHTTP2_ERR_DEFERRED;
    }
    s->out.since = h2->conn->loop->now_us;
    if (n)
        h2->side->sent(s, n);
    return (ssize_t)n;
}

/* When to look whether the peer has taken something. */
static void stuck_at(stream *s)
{
    conn *c = s->h2->conn;
    conn_due(c, conn_after(s->out.since, c->limits->ms.stuck));
}

void http2_more(stream *s)
{
    if (!s->h2 || !s->out.headers)
        return;
    if (s->out.idle) {
        s->out.idle = 0;
        s->out.since = s->h2->conn->loop->now_us;
        nghttp2_session_resume_data(s->h2->session, s->id);
    }
    if (s->out.queue.first)
        stuck_at(s);
    conn_dirty(s->h2->conn);
}

void http2_reset(stream *s, uint32_t error)
{
    if (!s->h2)
        return;
    nghttp2_submit_rst_stream(s->h2->session, 0, s->id, error);
    conn_dirty(s->h2->conn);
}

int http2_stuck(stream *s)
{
    return nghttp2_session_get_stream_remote_window_size(s->h2->session, s->id) <= 0 ||
           nghttp2_session_get_remote_window_size(s->h2->session) <= 0;
}

nghttp2_nv http2_nv(const char *name, const char *value)
{
    nghttp2_nv nv;
    /* nghttp2 copies what is submitted: its pointers are not const by history alone. */
    memcpy(&nv.name, &name, sizeof name);
    memcpy(&nv.value, &value, sizeof value);
    nv.namelen = strlen(name);
    nv.valuelen = strlen(value);
    nv.flags = NGHTTP2_NV_FLAG_NONE;
    return nv;
}

/* own[0..n) and more, in one array; NULL: no memory. Many fields are rare. */
#define FEW 32
static nghttp2_nv *gather(const allocator *a, nghttp2_nv few[FEW], const nghttp2_nv *own,
                          size_t n, const fields *more, size_t *count)
{
    nghttp2_nv *all = few;
    const char *name = NULL, *value = NULL;

    *count = n + (more ? more->count : 0);
    if (*count > FEW)
        all = mem_alloc(a, *count * sizeof *all);
    if (!all)
        return NULL;
    if (n)
        memcpy(all, own, n * sizeof *own);
    while (more && fields_next(more, &name, &value))
        all[n++] = http2_nv(name, value);
    return all;
}

static void ungather(const allocator *a, nghttp2_nv *few, nghttp2_nv *all, size_t count)
{
    if (all != few)
        mem_free(a, all, count * sizeof *all);
}

int http2_headers(stream *s, const nghttp2_nv *own, size_t n, const fields *more,
                  int last)
{
    http2 *h2 = s->h2;
    const allocator *a = &h2->conn->loop->alloc;
    nghttp2_nv few[FEW], *all;
    nghttp2_data_provider provider;
    size_t count;
    int failed;

    all = gather(a, few, own, n, more, &count);
    if (!all)
        return -1;
    provider.source.ptr = NULL;
    provider.read_callback = fill;
    s->out.headers = 1;
    s->out.since = h2->conn->loop->now_us;
    if (h2->conn->owner.listener)
        failed = nghttp2_submit_response(h2->session, s->id, all, count,
                                         last ? NULL : &provider);
    else {
        s->id = nghttp2_submit_request(h2->session, NULL, all, count,
                                       last ? NULL : &provider, s);
        failed = s->id < 0;
    }
    ungather(a, few, all, count);
    if (failed)
        return -1;
    if (!last)
        stuck_at(s);
    conn_dirty(h2->conn);
    return 0;
}

int http2_trailers(stream *s, const nghttp2_nv *own, size_t n, const fields *more)
{
    const allocator *a = &s->h2->conn->loop->alloc;
    nghttp2_nv few[FEW], *all;
    size_t count;
    int failed;

    all = gather(a, few, own, n, more, &count);
    if (!all)
        return -1;
    failed = nghttp2_submit_trailer(s->h2->session, s->id, all, count);
    ungather(a, few, all, count);
    return failed ? -1 : 0;
}

/* ---------------------------------------------------------------------- the protocol */

void http2_add(http2 *h2, stream *s, int32_t id)
{
    s->h2 = h2;
    s->id = id;
    s->prev = NULL;
    s->next = h2->streams;
    if (s->next)
        s->next->prev = s;
    h2->streams = s;
    h2->count++;
}

void http2_remove(http2 *h2, stream *s)
{
    intake_leave(s);
    if (s->prev)
        s->prev->next = s->next;
    else
        h2->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    s->next = s->prev = NULL;
    s->h2 = NULL;
    if (!--h2->count) {
        h2->idle_since = h2->conn->loop->now_us;
        conn_due(h2->conn, conn_after(h2->idle_since, h2->conn->limits->ms.idle));
    }
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
        if (s->h2 != h2 || !s->out.headers || !s->out.queue.first)
            continue;
        one = conn_after(s->out.since, h2->conn->limits->ms.stuck);
        if (one <= now)
            http2_reset(s, NGHTTP2_CANCEL);
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

static const protocol http2_protocol = {receive, produce, look, drain, end_all, release};

static nghttp2_session_callbacks *callbacks(void)
{
    nghttp2_session_callbacks *on;
    if (nghttp2_session_callbacks_new(&on))
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(on, begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(on, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(on, header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(on, frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, data_received);
    nghttp2_session_callbacks_set_on_stream_close_callback(on, stream_closed);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(on, frame_not_sent);
    nghttp2_session_callbacks_set_on_frame_send_callback(on, frame_sent);
    return on;
}

static int session_new(http2 *h2, int server)
{
    nghttp2_session_callbacks *on = callbacks();
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
