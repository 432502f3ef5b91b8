/*
 * http2.c: HTTP/2 on one connection, both sides: what nghttp2 tells, and what it asks
 * for.
 *
 * nghttp2 turns bytes into events and back, and has no socket. A stream of it is a call
 * (serve.c) or a request (request.c), which are reached by a table of operations.
 *
 * nghttp2 asks for the data of a stream when it may send some; what is not there yet is
 * deferred, and http2_more() resumes it. Nothing that a service does reaches nghttp2
 * inside of a callback: replies come by mail.
 *
 * Which floods end a connection is said here, in begin_frame() and count_reset().
 */
#include "rpc/http2.h"

#include <string.h>

#include "rpc/channel.h"
#include "rpc/intake.h"

/* Beyond the streams of a connection. */
enum { RESETS = 100 };

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
    (void)session;

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    s = find(h2, frame->hd.stream_id);
    if (!s)
        return 0;
    s->out.begun = 1;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        s->out.done = 1;
        s->out.since = h2->conn->loop->now_us;
        if (http2_lingers(s))
            conn_due(h2->conn, conn_after(s->out.since, HTTP2_LINGER_MS));
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

int http2_lingers(const stream *s)
{
    return s->h2->conn->owner.listener && s->out.done && !s->in.ended;
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

/* ---------------------------------------------------------------------- streams */

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

nghttp2_session_callbacks *http2_callbacks(void)
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
