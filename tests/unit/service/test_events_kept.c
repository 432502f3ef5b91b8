/*
 * test_events_kept.c: what an open stream of events keeps of its request: the names, and
 * nothing of what else the client has sent.
 *
 * Runs alone: it looks at the memory of its own process.
 */
#include "slow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

enum { STREAMS = 20 };

/* A field that nobody knows, of a megabyte. */
static ProtobufCMessageUnknownField unknown(void)
{
    ProtobufCMessageUnknownField out = {
        .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = MIB + 3};
    out.data = malloc(out.len);
    assert_non_null(out.data);
    memset(out.data, 'x', out.len);
    memcpy(out.data, "\x80\x80\x40", 3); /* 1048576 */
    return out;
}

static void begin_with_more(slow *w, stream *st, ProtobufCMessageUnknownField *more)
{
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    Sessile__V1__Entry from = SESSILE__V1__ENTRY__INIT;
    r.session = names_of("s");
    r.session->base.unknown_fields = more;
    r.session->base.n_unknown_fields = more ? 1 : 0;
    r.from = &from;
    stream_begin(&w->s, st, "StreamSessionEvents", &r);
    assert_true(stream_wait(st, 1));
}

static void a_stream_keeps_the_names_of_its_request(void **state)
{
    stream first, streams[STREAMS];
    slow w;
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    ProtobufCMessageUnknownField more = unknown();
    (void)state;
    slow_open(&w, "ram:", 64 * MIB);
    r.session = names_of("s");
    serve_ok(&w.s, "CreateSession", &r);
    begin_with_more(&w, &first, &more); /* what is allocated once */
    const size_t before = in_use();
    for (int i = 0; i < STREAMS; i++)
        begin_with_more(&w, &streams[i], &more);
    const size_t now = in_use();
    assert_in_range(now > before ? now - before : 0, 0, 6 * MIB);
    /* Nor are they sent it back. */
    const Sessile__V1__SessionEvent *event = streams[0].replies[0];
    assert_string_equal(event->session->id, "s");
    assert_int_equal(event->session->base.n_unknown_fields, 0);
    append_by(&w.s, "s", "it goes on");
    for (int i = 0; i < STREAMS; i++) {
        assert_true(stream_wait(&streams[i], 3));
        stream_done(&streams[i]);
    }
    stream_done(&first);
    free(more.data);
    slow_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_keeps_the_names_of_its_request)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
