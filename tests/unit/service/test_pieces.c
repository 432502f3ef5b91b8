/*
 * test_pieces.c: lists whose clients read slowly, or nothing at all: what they cost, that
 * others are served meanwhile, and that who reads slowly gets every row.
 */
#include "slow.h"

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

#include "guard/enter.h"
#include "service/server.h"
#include "session/fold.h"
#include "support/runs.h"

enum { MESSAGES = 64, SIZE = 64 * 1024 }; /* 4 MiB */
enum { NODES = 60000 };                   /* of a tree of some MiB */

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

/* ---------------------------------------------------------------------- nothing is read
 */

enum { SESSIONS = 8, STREAMS = 200 };

static size_t pack_context(unsigned i, unsigned char *out)
{
    Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
    char id[16];
    snprintf(id, sizeof id, "s%u", i % SESSIONS);
    r.session = names_of(id);
    return sessile__v1__context_request__pack(&r, out);
}

static int ask_and_read_nothing(const slow *w, unsigned streams)
{
    return slow_ask(w, "/sessile.v1.SessionService/GetContext", streams, pack_context);
}

static void fill_sessions(const slow *w)
{
    for (int i = 0; i < SESSIONS; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%d", i);
        fill(w->store, id);
    }
}

static void read_all(slow *w, const char *method, const void *request, stream *st)
{
    stream_begin(&w->s, st, method, request);
    stream_wait_end(st);
    assert_int_equal(st->code, RPC_OK);
}

/* 200 streams of 4 MiB cost what is on its way (1 MiB and a piece each), what they keep,
 * and what the workers have at hand; not 800 MiB. */
static void test_who_reads_nothing_costs_little_and_holds_up_nobody(void **state)
{
    slow w;
    (void)state;
    slow_open(&w, "ram:", 64 * MIB);
    fill_sessions(&w);
    const size_t before = in_use();
    int fd = ask_and_read_nothing(&w, STREAMS);
    const size_t most = slow_settle(&w, slow_begun, STREAMS);
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
    slow_settle(&w, slow_calls, 0);
    assert_true(in_use() < before + 32 * MIB);
    slow_close(&w);
}

static void test_a_server_can_end_while_they_wait(void **state)
{
    slow w;
    (void)state;
    slow_open(&w, "ram:", 8 * MIB);
    fill_sessions(&w);
    int fd = ask_and_read_nothing(&w, 40);
    slow_settle(&w, slow_begun, 40);
    slow_close(&w);
    close(fd);
}

/* ---------------------------------------------------------------------- slow readers */

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
        slow w;
        stream st;
        Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
        slow_open(&w, "ram:", KEPT[i]);
        fill(w.store, "s");
        r.session = names_of("s");
        slow_begin(&w, &st, "GetContext", &r);
        append_by(&w.s, "s", "not in the context that was asked for");
        Sessile__V1__SessionRequest all = SESSILE__V1__SESSION_REQUEST__INIT;
        all.session = names_of("s");
        serve_ok(&w.s, "Clear", &all);
        slow_go_on(&st);
        assert_int_equal(st.code, RPC_OK);
        has_all_messages(&st, 1);
        stream_done(&st);
        slow_close(&w);
    }
}

static void test_who_reads_slowly_gets_each_message_of_a_list(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        slow w;
        stream st;
        Sessile__V1__MessagesRequest r = SESSILE__V1__MESSAGES_REQUEST__INIT;
        slow_open(&w, "ram:", KEPT[i]);
        fill(w.store, "s");
        append_by(&w.s, "s", "behind the limit");
        r.session = names_of("s");
        r.last = MESSAGES + 1;
        r.limit = MESSAGES;
        slow_begin(&w, &st, "GetMessages", &r);
        append_by(&w.s, "s", "not in the list that was asked for");
        slow_go_on(&st);
        assert_int_equal(st.code, RPC_OK);
        has_all_messages(&st, 0);
        stream_done(&st);
        slow_close(&w);
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
        slow w;
        stream st;
        Sessile__V1__TreeRequest r = SESSILE__V1__TREE_REQUEST__INIT;
        slow_open(&w, "ram:", KEPT[i]);
        fill_tree(w.store, "s");
        r.session = names_of("s");
        slow_begin(&w, &st, "GetTree", &r);
        slow_go_on(&st);
        tree_is_whole(&st);
        stream_done(&st);

        slow_begin(&w, &st, "GetTree", &r);
        append_by(&w.s, "s", "another head");
        slow_go_on(&st);
        if (KEPT[i]) {
            tree_is_whole(&st);
        } else {
            assert_int_equal(st.code, RPC_ABORTED);
            assert_string_equal(st.status, "ECONFLICT");
        }
        stream_done(&st);
        slow_close(&w);
    }
}

/* ---------------------------------------------------------------------- the end */

static void test_who_gives_up_leaves_nothing_behind(void **state)
{
    slow w;
    (void)state;
    slow_open(&w, "ram:", 64 * MIB);
    fill(w.store, "s");
    const size_t before = in_use();
    for (int i = 0; i < 20; i++) {
        Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
        stream st;
        r.session = names_of("s");
        slow_begin(&w, &st, "GetContext", &r);
        stream_done(&st);
        slow_settle(&w, slow_calls, 0);
    }
    assert_true(in_use() < before + 16 * MIB);
    slow_close(&w);
}

/* Until this holds, and long enough for a call to wait, or for its wait to be ended. */
static void turn_until(slow *w, int (*holds)(const slow *w))
{
    time_t until = time(NULL) + 60;
    while (!holds(w) && time(NULL) < until)
        rpc_loop_turn(w->s.loop, 1);
    assert_true(holds(w));
    for (int i = 0; i < 30; i++)
        rpc_loop_turn(w->s.loop, 10);
}

static int two_are_there(const slow *w)
{
    return slow_calls(w) == 2;
}

static int one_has_gone(const slow *w)
{
    return slow_calls(w) < 2;
}

static int one_is_queued(const slow *w)
{
    return pool_waiting(w->s.service->pool) == 1;
}

/* The call of another client waits for a writer, in the session that the list is of. The
 * list waits for its client, or (queued) in the queue of the session. */
static void give_up_beside_a_call(slow *w, sessile_session *writer, int queued)
{
    stream list, append;
    sessile_error err;
    Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
    Sessile__V1__AppendRequest a = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    r.session = a.session = names_of("s");
    json.text = "{\"role\":\"user\",\"content\":\"waited for\"}";
    a.message = &json;
    slow_begin(w, &list, "GetContext", &r);
    assert_int_equal(log_begin(writer->core->log, NULL, NULL, &err), SESSILE_OK);
    stream_begin(&w->s, &append, "AppendMessage", &a);
    turn_until(w, two_are_there);
    if (queued) {
        rpc_request_pause(list.request, 0);
        turn_until(w, one_is_queued);
    }
    stream_done(&list);
    turn_until(w, one_has_gone);
    const int ended = append.ended;
    log_end(writer->core->log);
    assert_false(ended);
    stream_wait_end(&append);
    assert_int_equal(append.code, RPC_OK);
    stream_done(&append);
}

static void test_who_gives_up_ends_no_wait_of_another_call(void **state)
{
    char url[200];
    slow w;
    sessile_session_options o;
    sessile_session *writer;
    (void)state;
    snprintf(url, sizeof url, "file:%s/given-up", runs_folder);
    slow_open(&w, url, 64 * MIB);
    fill(w.store, "s");
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    assert_int_equal(sessile_resume(&writer, w.store, &o, NULL), SESSILE_OK);
    for (int queued = 0; queued < 2; queued++)
        give_up_beside_a_call(&w, writer, queued);
    assert_int_equal(sessile_session_close(writer, NULL), SESSILE_OK);
    slow_close(&w);
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
        cmocka_unit_test(test_who_gives_up_ends_no_wait_of_another_call),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
