/*
 * test_pieces.c: lists whose clients read slowly, or nothing at all: what they cost, that
 * others are served meanwhile, and that who reads slowly gets every row.
 */
#include "serving.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/pieces.h"
#include "support/runs.h"
#include "unit/rpc/wire.h"

#define MIB ((size_t)1 << 20)
enum { MESSAGES = 64, SIZE = 64 * 1024 }; /* 4 MiB */
enum { NODES = 60000 };                   /* of a tree of some MiB */

typedef struct world {
    sessile_store *store;
    serving s;
} world;

/* A session with 4 MiB: each message has its number, so that none can stand for another.
 */
static void fill(sessile_store *store, const char *id)
{
    char *text = malloc(SIZE + 100);
    sessile_session_options o;
    sessile_session *s;
    assert_non_null(text);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    assert_int_equal(sessile_create(&s, store, &o, NULL), SESSILE_OK);
    for (int i = 0; i < MESSAGES; i++) {
        int n = sprintf(text, "{\"role\":\"%s\",\"content\":\"%d ",
                        i % 2 ? "assistant" : "user", i);
        memset(text + n, 'x', SIZE);
        strcpy(text + n + SIZE, "\"}");
        assert_int_equal(sessile_append(s, sessile_text(text), NULL, NULL), SESSILE_OK);
    }
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    free(text);
}

static void fill_tree(sessile_store *store, const char *id)
{
    sessile_slice *messages = calloc(NODES, sizeof *messages);
    sessile_session_options o;
    sessile_session *s;
    assert_non_null(messages);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    assert_int_equal(sessile_create(&s, store, &o, NULL), SESSILE_OK);
    for (size_t i = 0; i < NODES; i++)
        messages[i] = sessile_text("{\"role\":\"user\",\"content\":\"x\"}");
    assert_int_equal(sessile_suspend(s, sessile_text(""), sessile_text(""), NULL, NULL),
                     0);
    assert_int_equal(sessile_resume_with(s, messages, NODES, NULL, NULL), 0);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    free(messages);
}

/* kept: bytes of rows that calls may keep while they wait. */
static void world_open(world *w, size_t kept)
{
    service_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.ms.drain = 1;
    w->store = run_store("ram:");
    serving_start(&w->s, w->store, &settings);
    service *s = w->s.service;
    pieces_close(s->pieces);
    assert_int_equal(pieces_open(&s->pieces, s, kept, NULL), SESSILE_OK);
}

static void world_close(world *w)
{
    serving_stop(&w->s);
    sessile_store_close(w->store);
}

static size_t calls(const world *w)
{
    const service *s = w->s.service;
    size_t n = 0;
    for (int i = 0; i < s->settings.loops; i++)
        n += rpc_loop_look(s->loops[i]).calls;
    return n;
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Waits until there are so many calls, of which none has work for a worker: the most
 * memory in use meanwhile. */
static size_t settle(world *w, size_t count)
{
    time_t until = time(NULL) + 120;
    size_t most = 0;
    int quiet = 0;
    while (quiet < 10) {
        size_t now = in_use();
        most = now > most ? now : most;
        quiet = calls(w) == count && pool_jobs(w->s.service->pool) == 0 ? quiet + 1 : 0;
        if (time(NULL) > until)
            fail_msg("there are %zu calls, not %zu", calls(w), count);
        rpc_loop_turn(w->s.loop, 1);
    }
    return most;
}

/* ---------------------------------------------------------------------- nothing is read
 */

enum { SESSIONS = 8, STREAMS = 200 };

/* A client that lets the server send nothing, and asks so often for a context. */
static int ask_and_read_nothing(const world *w)
{
    static const unsigned char no_window[6] = {0, 4, 0, 0, 0, 0};
    int fd = wire_http2(service_address(w->s.service), no_window, sizeof no_window);
    for (unsigned i = 0; i < STREAMS; i++) {
        Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
        unsigned char bytes[64] = {0};
        char id[8];
        snprintf(id, sizeof id, "s%u", i % SESSIONS);
        r.session = names_of(id);
        size_t size = sessile__v1__context_request__pack(&r, bytes + 5);
        bytes[4] = (unsigned char)size;
        assert_int_equal(wire_call(fd, 1 + 2 * i, END_HEADERS,
                                   "/sessile.v1.SessionService/GetContext", NULL, 0),
                         0);
        assert_int_equal(wire_frame(fd, DATA, END_STREAM, 1 + 2 * i, bytes, size + 5), 0);
    }
    return fd;
}

static void fill_sessions(const world *w)
{
    for (int i = 0; i < SESSIONS; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%d", i);
        fill(w->store, id);
    }
}

static void read_all(world *w, const char *method, const void *request, stream *st)
{
    stream_begin(&w->s, st, method, request);
    stream_wait_end(st);
    assert_int_equal(st->code, RPC_OK);
}

/* 200 streams of 4 MiB cost what is on its way (1 MiB and a piece each), what they keep,
 * and what the workers have at hand; not 800 MiB. */
static void test_who_reads_nothing_costs_little_and_holds_up_nobody(void **state)
{
    world w;
    (void)state;
    world_open(&w, 64 * MIB);
    fill_sessions(&w);
    const size_t before = in_use();
    int fd = ask_and_read_nothing(&w);
    const size_t most = settle(&w, STREAMS);
    print_message("%d streams of 4 MiB: %zu MiB\n", STREAMS, (most - before) / MIB);
    assert_true(most - before < STREAMS * (MIB + MIB / 2) + 64 * MIB + 64 * MIB);

    Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
    stream st;
    append_by(&w.s, "s0", "others are served");
    r.session = names_of("s0");
    read_all(&w, "GetContext", &r, &st);
    const Sessile__V1__Messages *last = st.replies[st.count - 1];
    assert_non_null(strstr(last->messages[last->n_messages - 1]->json->text, "others"));
    stream_done(&st);

    close(fd); /* and what they had is given back */
    settle(&w, 0);
    assert_true(in_use() < before + 32 * MIB);
    world_close(&w);
}

static void test_a_server_can_end_while_they_wait(void **state)
{
    world w;
    (void)state;
    world_open(&w, 8 * MIB);
    fill_sessions(&w);
    int fd = ask_and_read_nothing(&w);
    settle(&w, STREAMS);
    world_close(&w);
    close(fd);
}

/* ---------------------------------------------------------------------- slow readers */

/* Begins a list and reads nothing more once its first piece came. */
static void begin_slowly(world *w, stream *st, const char *method, const void *request)
{
    stream_begin(&w->s, st, method, request);
    assert_true(stream_wait(st, 1));
    rpc_request_pause(st->request, 1);
    settle(w, 1);
}

/* Reads the rest, a little at a time. */
static void go_on_slowly(stream *st)
{
    time_t until = time(NULL) + 60;
    while (!st->ended && time(NULL) < until) {
        rpc_request_pause(st->request, 0);
        rpc_loop_turn(st->of->loop, 10);
        if (!st->ended)
            rpc_request_pause(st->request, 1);
        rpc_loop_turn(st->of->loop, 1);
    }
    assert_true(st->ended);
}

/* The pieces are the 64 messages, in their order. */
static void has_all_messages(const stream *st, int info)
{
    int n = 0;
    for (size_t i = 0; i < st->count; i++) {
        const Sessile__V1__Messages *piece = st->replies[i];
        assert_int_equal(piece->info != NULL, info && i + 1 == st->count);
        for (size_t k = 0; k < piece->n_messages; k++, n++) {
            char begin[64];
            int size =
                snprintf(begin, sizeof begin, "{\"role\":\"%s\",\"content\":\"%d x",
                         n % 2 ? "assistant" : "user", n);
            assert_memory_equal(piece->messages[k]->json->text, begin, (size_t)size);
        }
    }
    assert_int_equal(n, MESSAGES);
}

static const size_t KEPT[] = {64 * MIB, 0}; /* rows are kept; they are read again */

static void test_who_reads_slowly_gets_each_message_of_a_context(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;
        stream st;
        Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
        world_open(&w, KEPT[i]);
        fill(w.store, "s");
        r.session = names_of("s");
        begin_slowly(&w, &st, "GetContext", &r);
        append_by(&w.s, "s", "not in the context that was asked for");
        Sessile__V1__SessionRequest all = SESSILE__V1__SESSION_REQUEST__INIT;
        all.session = names_of("s");
        serve_ok(&w.s, "Clear", &all);
        go_on_slowly(&st);
        assert_int_equal(st.code, RPC_OK);
        has_all_messages(&st, 1);
        stream_done(&st);
        world_close(&w);
    }
}

static void test_who_reads_slowly_gets_each_message_of_a_list(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;
        stream st;
        Sessile__V1__MessagesRequest r = SESSILE__V1__MESSAGES_REQUEST__INIT;
        world_open(&w, KEPT[i]);
        fill(w.store, "s");
        append_by(&w.s, "s", "behind the limit");
        r.session = names_of("s");
        r.last = MESSAGES + 1;
        r.limit = MESSAGES;
        begin_slowly(&w, &st, "GetMessages", &r);
        append_by(&w.s, "s", "not in the list that was asked for");
        go_on_slowly(&st);
        assert_int_equal(st.code, RPC_OK);
        has_all_messages(&st, 0);
        stream_done(&st);
        world_close(&w);
    }
}

static void tree_is_whole(const stream *st)
{
    size_t next = 0, heads = 0;
    assert_int_equal(st->code, RPC_OK);
    for (size_t i = 0; i < st->count; i++) {
        const Sessile__V1__Nodes *piece = st->replies[i];
        for (size_t k = 0; k < piece->n_nodes; k++) {
            assert_int_equal(piece->nodes[k]->id, next++);
            heads += (size_t)piece->nodes[k]->is_head;
        }
    }
    assert_int_equal(next, 1 + 2 + NODES); /* header, suspension, its end */
    assert_int_equal(heads, 1);
}

static void test_a_tree_that_is_read_slowly_is_of_one_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;
        stream st;
        Sessile__V1__TreeRequest r = SESSILE__V1__TREE_REQUEST__INIT;
        world_open(&w, KEPT[i]);
        fill_tree(w.store, "s");
        r.session = names_of("s");
        begin_slowly(&w, &st, "GetTree", &r);
        go_on_slowly(&st);
        tree_is_whole(&st);
        stream_done(&st);

        begin_slowly(&w, &st, "GetTree", &r);
        append_by(&w.s, "s", "another head");
        go_on_slowly(&st);
        if (KEPT[i]) {
            tree_is_whole(&st);
        } else {
            assert_int_equal(st.code, RPC_ABORTED);
            assert_string_equal(st.status, "ECONFLICT");
        }
        stream_done(&st);
        world_close(&w);
    }
}

/* ---------------------------------------------------------------------- the end */

static void test_who_gives_up_leaves_nothing_behind(void **state)
{
    world w;
    (void)state;
    world_open(&w, 64 * MIB);
    fill(w.store, "s");
    const size_t before = in_use();
    for (int i = 0; i < 20; i++) {
        Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
        stream st;
        r.session = names_of("s");
        begin_slowly(&w, &st, "GetContext", &r);
        stream_done(&st);
        settle(&w, 0);
    }
    assert_true(in_use() < before + 16 * MIB);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_reads_nothing_costs_little_and_holds_up_nobody),
        cmocka_unit_test(test_a_server_can_end_while_they_wait),
        cmocka_unit_test(test_who_reads_slowly_gets_each_message_of_a_context),
        cmocka_unit_test(test_who_reads_slowly_gets_each_message_of_a_list),
        cmocka_unit_test(test_a_tree_that_is_read_slowly_is_of_one_moment),
        cmocka_unit_test(test_who_gives_up_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
