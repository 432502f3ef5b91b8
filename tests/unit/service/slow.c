/* slow.c: see slow.h. */
#include "slow.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "service/observe.h"
#include "service/pieces.h"
#include "support/runs.h"
#include "unit/rpc/wire.h"

void slow_open(slow *w, const char *url, size_t kept)
{
    service_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.ms.drain = 1;
    w->store = run_store(url);
    serving_start(&w->s, w->store, &settings);
    service *s = w->s.service;
    pieces_close(s->pieces);
    assert_int_equal(pieces_open(&s->pieces, s, kept, NULL), SESSILE_OK);
}

void slow_close(slow *w)
{
    serving_stop(&w->s);
    sessile_store_close(w->store);
}

size_t slow_calls(const slow *w)
{
    const service *s = w->s.service;
    size_t n = 0;
    for (int i = 0; i < s->settings.loops; i++)
        n += rpc_loop_look(s->loops[i]).calls;
    return n;
}

size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void add_ended(void *arg, const metric_series *series)
{
    if (series->id == METRIC_CALLS)
        *(size_t *)arg += (size_t)series->value;
}

size_t slow_begun(const slow *w)
{
    size_t n = slow_calls(w);
    metrics_each(observe_metrics(w->s.service->observe), add_ended, &n);
    return n;
}

size_t slow_settle(slow *w, size_t (*count)(const slow *w), size_t n)
{
    time_t until = time(NULL) + 500;
    size_t most = 0;
    int quiet = 0;
    while (quiet < 10) {
        size_t now = in_use();
        most = now > most ? now : most;
        quiet = count(w) == n && pool_jobs(w->s.service->pool) == 0 ? quiet + 1 : 0;
        if (time(NULL) > until)
            fail_msg("there are %zu calls, not %zu", count(w), n);
        rpc_loop_turn(w->s.loop, 1);
    }
    return most;
}

/* ---------------------------------------------------------------------- clients */

int slow_ask(const slow *w, const char *path, unsigned streams,
             size_t (*pack)(unsigned i, unsigned char *out))
{
    static const unsigned char no_window[6] = {0, 4, 0, 0, 0, 0};
    int fd = wire_http2(service_address(w->s.service), no_window, sizeof no_window);
    for (unsigned i = 0; i < streams; i++) {
        unsigned char bytes[5 + 128] = {0};
        const size_t size = pack(i, bytes + 5);
        bytes[4] = (unsigned char)size;
        assert_int_equal(wire_call(fd, 1 + 2 * i, END_HEADERS, path, NULL, 0), 0);
        assert_int_equal(wire_frame(fd, DATA, END_STREAM, 1 + 2 * i, bytes, size + 5), 0);
    }
    return fd;
}

void slow_begin(slow *w, stream *st, const char *method, const void *request)
{
    stream_begin(&w->s, st, method, request);
    assert_true(stream_wait(st, 1));
    rpc_request_pause(st->request, 1);
    slow_settle(w, slow_calls, 1);
}

void slow_go_on(stream *st)
{
    time_t until = time(NULL) + 500;
    while (!st->ended && time(NULL) < until) {
        rpc_request_pause(st->request, 0);
        rpc_loop_turn(st->of->loop, 10);
        if (!st->ended)
            rpc_request_pause(st->request, 1);
        rpc_loop_turn(st->of->loop, 1);
    }
    assert_true(st->ended);
}
