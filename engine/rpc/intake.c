/*
 * intake.c: what comes on a stream, how much of it may come, and when it must be there.
 *
 * A server takes messages of 8 MiB, and 256 of them could come at the same time on one
 * connection. So memory is given by message. A stream may send SERVER_WINDOW bytes
 * unasked. When the head of a message tells that it is larger, its whole size is reserved
 * from what its connection has for messages (the largest message, and a MiB). While that
 * is used up, the stream waits, in order: its bytes are not given back to its window, so
 * its peer stops, and others go on. A message that got its memory has limits.ms.first to
 * arrive, so that nobody keeps memory by being slow.
 *
 * A small window makes a large message slow when the peer is far away. So a few streams
 * of a connection with a large message get a wide window, and keep it: what the peer was
 * allowed to send cannot be taken back.
 *
 * So a peer of a server can make a connection hold
 *     streams x SERVER_WINDOW + SERVER_WIDES x SERVER_WIDE + message + 1 MiB
 * and no more (some 15 MiB by the usual limits), whatever it sends. The connection's
 * window never blocks: what comes is given back to it at once.
 *
 * A client knows its server, which answers what it was asked: all its streams have a
 * window of CLIENT_WINDOW, and nothing is reserved.
 */
#include "rpc/intake.h"

enum { SPARE = 1024 * 1024 };

void intake_init(stream *s, const rpc_limits *limits, const allocator *a)
{
    frame_init(&s->in.reader, limits->bytes.message, a);
    buf_init(&s->in.held, a);
}

void intake_deinit(stream *s)
{
    frame_deinit(&s->in.reader);
    buf_deinit(&s->in.held);
}

/* ---------------------------------------------------------------------- windows */

static void give_back(stream *s)
{
    if (s->in.unconsumed && s->h2) {
        nghttp2_session_consume_stream(s->h2->session, s->id, s->in.unconsumed);
        conn_dirty(s->h2->conn);
    }
    s->in.unconsumed = 0;
}

static size_t wanted(const stream *s)
{
    if (s->in.raw)
        return s->in.ended ? 0 : s->in.expected;
    return frame_expected(&s->in.reader);
}

static int inside(const stream *s)
{
    return s->in.raw ? !s->in.ended : frame_inside(&s->in.reader);
}

static void on_time(stream *s)
{
    conn *c = s->h2->conn;
    s->in.since = c->loop->now_us;
    conn_due(c, conn_after(s->in.since, c->limits->ms.first));
}

static void open_wide(stream *s)
{
    http2 *h2 = s->h2;
    if (s->in.wide || h2->memory.wide >= SERVER_WIDES)
        return;
    if (nghttp2_session_set_local_window_size(h2->session, 0, s->id, SERVER_WIDE))
        return;
    s->in.wide = 1;
    h2->memory.wide++;
    conn_dirty(h2->conn);
}

/* 1: its message may come. */
static int reserve(stream *s)
{
    http2 *h2 = s->h2;
    size_t size = wanted(s);

    if (h2->memory.reserved &&
        size > h2->conn->limits->bytes.message + SPARE - h2->memory.reserved)
        return 0;
    h2->memory.reserved += size;
    s->in.reserved = size;
    open_wide(s);
    return 1;
}

static void stop_waiting(stream *s)
{
    stream **at, *before = NULL;
    if (!s->in.waiting)
        return;
    for (at = &s->h2->memory.first; *at != s; at = &(*at)->in.next_waiting)
        before = *at;
    *at = s->in.next_waiting;
    if (s->h2->memory.last == s)
        s->h2->memory.last = before;
    s->in.next_waiting = NULL;
    s->in.waiting = 0;
}

static void let_others_in(http2 *h2)
{
    while (h2->memory.first) {
        stream *s = h2->memory.first;
        if (!reserve(s))
            return;
        stop_waiting(s);
        on_time(s);
        if (!s->in.paused)
            give_back(s);
    }
}

static void unreserve(stream *s)
{
    if (!s->in.reserved)
        return;
    s->h2->memory.reserved -= s->in.reserved;
    s->in.reserved = 0;
}

/* What has been taken is given back to the window, unless the stream has to wait. */
static void account(stream *s)
{
    http2 *h2 = s->h2;

    if (!inside(s))
        s->in.since = 0;
    else if (!s->in.since)
        on_time(s);
    if (h2->conn->owner.listener && !s->in.waiting && !s->in.reserved &&
        wanted(s) > SERVER_WINDOW && (h2->memory.first || !reserve(s))) {
        s->in.waiting = 1;
        if (h2->memory.last)
            h2->memory.last->in.next_waiting = s;
        else
            h2->memory.first = s;
        h2->memory.last = s;
    }
    if (!s->in.waiting && !s->in.paused)
        give_back(s);
}

/* ---------------------------------------------------------------------- bytes */

void intake_ignore(stream *s)
{
    s->in.deaf = 1;
    s->in.since = 0;
    intake_deinit(s);
    if (!s->h2)
        return;
    stop_waiting(s);
    unreserve(s);
    give_back(s);
    let_others_in(s->h2);
}

static void bad(stream *s, frame_result why)
{
    http2 *h2 = s->h2;
    intake_ignore(s);
    h2->side->bad(s, why);
}

/* Takes messages until the bytes are used up, the stream is paused, or it is over. */
static void feed(stream *s, const unsigned char *data, size_t size)
{
    http2 *h2 = s->h2;

    if (s->in.raw) {
        s->in.expected -= size < s->in.expected ? size : s->in.expected;
        h2->side->data(s, data, size);
        return;
    }
    while (size) {
        const unsigned char *message;
        size_t message_size;
        frame_result result =
            frame_read(&s->in.reader, &data, &size, &message, &message_size);
        if (result == FRAME_MORE)
            return;
        if (result != FRAME_MESSAGE) {
            bad(s, result);
            return;
        }
        s->in.since = 0;
        if (s->in.reserved) {
            unreserve(s);
            let_others_in(h2);
        }
        h2->side->data(s, message, message_size);
        if (!s->h2 || s->in.deaf)
            return;
        frame_taken(&s->in.reader);
        if (s->in.paused) {
            buf_put(&s->in.held, data, size);
            if (s->in.held.failed)
                bad(s, FRAME_NOMEM);
            return;
        }
    }
}

void intake_take(stream *s, const unsigned char *data, size_t size)
{
    if (s->in.deaf) {
        s->in.unconsumed += size;
        give_back(s);
        return;
    }
    s->in.unconsumed += size;
    if (s->in.paused) {
        buf_put(&s->in.held, data, size);
        if (s->in.held.failed)
            bad(s, FRAME_NOMEM);
        return;
    }
    feed(s, data, size);
    if (s->h2 && !s->in.deaf)
        account(s);
}

void intake_raw(stream *s, size_t expected)
{
    s->in.raw = 1;
    s->in.expected = expected;
    account(s);
}

void intake_end(stream *s)
{
    if (s->in.deaf || s->in.paused)
        return;
    if (!s->in.raw && frame_inside(&s->in.reader))
        bad(s, FRAME_MORE);
    else
        s->in.since = 0;
}

void intake_pause(stream *s, int paused)
{
    buf held;

    if (!s->h2 || s->in.deaf || s->in.paused == (unsigned)(paused != 0))
        return;
    s->in.paused = paused != 0;
    if (paused)
        return;
    s->in.since = 0; /* the peer was not slow: it had to wait */
    held = s->in.held;
    buf_init(&s->in.held, held.alloc);
    if (held.size)
        feed(s, (const unsigned char *)held.data, held.size);
    buf_deinit(&held);
    if (!s->h2 || s->in.deaf || s->in.paused)
        return;
    account(s);
    if (s->in.ended) {
        http2 *h2 = s->h2;
        intake_end(s);
        if (s->h2 == h2 && !s->in.deaf)
            h2->side->ended(s);
    }
}

void intake_leave(stream *s)
{
    http2 *h2 = s->h2;
    stop_waiting(s);
    unreserve(s);
    if (s->in.wide)
        h2->memory.wide--;
    s->in.wide = 0;
    let_others_in(h2);
}

uint64_t intake_look(stream *s, uint64_t now)
{
    uint64_t due;

    if (!s->in.since || s->in.waiting || s->in.paused || s->in.deaf ||
        !s->h2->conn->owner.listener)
        return UINT64_MAX;
    due = conn_after(s->in.since, s->h2->conn->limits->ms.first);
    if (due > now)
        return due;
    bad(s, FRAME_MORE);
    return UINT64_MAX;
}
