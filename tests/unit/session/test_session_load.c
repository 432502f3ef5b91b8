/*
 * test_session_load.c: one session under many threads, and under want of memory.
 *
 * Threads only count what went wrong; assertions are for the thread that joins them.
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "session/fold.h"
#include "operations/messages.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ threads */

typedef struct worker {
    pthread_t thread;
    sessile_session *s;
    int times, wrong;
    sessile_id *ids;
} worker;

static void *append_many(void *arg)
{
    worker *w = arg;

    for (int i = 0; i < w->times; i++) {
        sessile_error err;
        if (try_say(w->s, "{\"role\":\"user\",\"content\":\"from a thread\"}", &w->ids[i],
                    &err))
            w->wrong++;
    }
    return NULL;
}

static void *read_many(void *arg)
{
    worker *w = arg;
    size_t before = 0;

    for (int i = 0; i < w->times; i++) {
        sessile_message *rows;
        sessile_error err;
        size_t count;
        if (session_messages(w->s->core, NULL, &rows, &count, &err)) {
            w->wrong++;
            continue;
        }
        for (size_t j = 0; j < count; j++)
            if (rows[j].json.size < 2 ||
                (j && rows[j].key.entry <= rows[j - 1].key.entry))
                w->wrong++;
        if (count < before && !w->ids) /* ids set: somebody clears */
            w->wrong++;
        before = count;
        sessile_free(rows);
    }
    return NULL;
}

static sessile_status build_clear(void *arg, session_core *s, batch *b,
                                  sessile_error *err)
{
    static const char data[] = "{\"head\":\"00000000\"}";
    entry_fields fields = {.parent = s->tree.head,
                           .type = ENTRY_HEAD,
                           .data = data,
                           .data_size = sizeof data - 1,
                           .tokens = -1};

    (void)arg;
    (void)err;
    batch_add(b, &fields);
    return SESSILE_OK;
}

static void *clear_many(void *arg)
{
    worker *w = arg;

    for (int i = 0; i < w->times; i++) {
        sessile_error err;
        if (session_write(w->s->core, build_clear, NULL, NULL, &err))
            w->wrong++;
    }
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    sessile_id x = *(const sessile_id *)a, y = *(const sessile_id *)b;

    return x < y ? -1 : x > y;
}

static void a_hundred_threads_append_to_one_session(void **state)
{
    enum { THREADS = 100, TIMES = 5 };
    place *p = *state;
    sessile_store *again;
    sessile_session *s = session_made(p->store, "threads"), *b;
    static worker w[THREADS];
    static sessile_id ids[THREADS * TIMES];
    sessile_message *rows;
    sessile_error err;
    size_t count;

    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.s = s, .times = TIMES, .ids = ids + i * TIMES};
        assert_int_equal(pthread_create(&w[i].thread, NULL, append_many, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].wrong, 0);
        for (int j = 1; j < TIMES; j++)
            assert_true(w[i].ids[j] > w[i].ids[j - 1]);
    }
    qsort(ids, THREADS * TIMES, sizeof *ids, by_id);
    for (int i = 0; i < THREADS * TIMES; i++)
        assert_int_equal(ids[i], i + 1);
    again = place_again(p);
    b = session_resumed(again, "threads");
    assert_int_equal(session_messages(b->core, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, THREADS * TIMES);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].key.entry, i + 1);
    sessile_free(rows);
    session_closed(b);
    session_closed(s);
    place_again_close(p, again);
}

static void threads_with_handles_of_their_own_lose_nothing(void **state)
{
    enum { THREADS = 8, TIMES = 20 };
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *s = session_made(p->store, "handles");
    worker w[THREADS];
    static sessile_id ids[THREADS * TIMES];

    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.s = session_resumed(i % 2 ? again : p->store, "handles"),
                        .times = TIMES,
                        .ids = ids + i * TIMES};
        assert_int_equal(pthread_create(&w[i].thread, NULL, append_many, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].wrong, 0);
        session_closed(w[i].s);
    }
    refresh(s);
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].messages, THREADS * TIMES);
    session_closed(s);
    place_again_close(p, again);
}

static void reading_goes_on_beside_writing(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "beside");
    sessile_id ids[100];
    worker w[4];

    w[0] = (worker){.s = s, .times = 50, .ids = ids};
    w[1] = (worker){.s = s, .times = 50, .ids = ids + 50};
    w[2] = w[3] = (worker){.s = s, .times = 50};
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&w[i].thread, NULL, i < 2 ? append_many : read_many, &w[i]),
            0);
    for (int i = 0; i < 4; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].wrong, 0);
    }
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].messages, 100);
    session_closed(s);
}

static void clearing_goes_on_beside_writing(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "clear");
    sessile_id ids[50], mark;
    worker w[3];

    w[0] = (worker){.s = s, .times = 50, .ids = ids};
    w[1] = (worker){.s = s, .times = 20};
    w[2] = (worker){.s = s, .times = 50, .ids = &mark};
    assert_int_equal(pthread_create(&w[0].thread, NULL, append_many, &w[0]), 0);
    assert_int_equal(pthread_create(&w[1].thread, NULL, clear_many, &w[1]), 0);
    assert_int_equal(pthread_create(&w[2].thread, NULL, read_many, &w[2]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].wrong, 0);
    }
    assert_int_equal(log_count(s->core->log), 71);
    move_head(s, 0);
    assert_int_equal(s->core->tree.nodes[s->core->tree.head].messages, 0);
    session_closed(s);
}

/* ------------------------------------------------------------------ memory */

typedef struct starved {
    long left; /* allocations until they fail; -1: never */
} starved;

static void *starve(void *ud, void *ptr, size_t osize, size_t nsize)
{
    starved *s = ud;

    (void)osize;
    if (!nsize) {
        free(ptr);
        return NULL;
    }
    if (s->left == 0)
        return NULL;
    if (s->left > 0)
        s->left--;
    return realloc(ptr, nsize);
}

/* Every allocation of a write and of a context fails once: the session stays as it was,
 * and goes on when there is memory again. */
static void want_of_memory_changes_nothing(void **state)
{
    sessile_store_options options;
    starved hunger = {-1};
    sessile_session *s, *b;
    sessile_store *st;
    sessile_error err;
    sessile_id id, expected;

    (void)state;
    memset(&options, 0, sizeof options);
    options.alloc = starve;
    options.alloc_ud = &hunger;
    assert_int_equal(sessile_open(&st, "ram:", &options, &err), SESSILE_OK);
    s = session_made(st, "hungry");
    b = session_resumed(st, "hungry");
    say(s, "user", "1");
    put_entry(
        s, "compaction", SESSILE_NO_ID,
        "{\"context\":[\"00000001\",\"00000002.1\"],\"upto\":\"00000001\",\"inserted\":["
        "{\"n\":1,"
        "\"message\":{\"role\":\"user\",\"content\":\"s\"}}]}");
    for (long n = 0; n < 200; n++) {
        const context *c;
        sessile_status status;
        expected = log_count(s->core->log);
        hunger.left = n;
        status =
            try_say(s,
                    "{\"role\":\"user\",\"content\":\"x\",\"author\":\"a\",\"usage\":{"
                    "\"input\":1},"
                    "\"tool_calls\":[{\"id\":\"c\",\"name\":\"n\",\"arguments\":\"\"}]}",
                    &id, &err);
        hunger.left = -1;
        if (status) {
            assert_int_equal(status, SESSILE_NOMEM);
            assert_int_equal(log_count(s->core->log), expected);
            assert_int_equal(s->core->tree.node_count, expected);
        } else {
            assert_int_equal(id, expected);
        }
        hunger.left = n;
        b->core->context.stale = 1; /* rebuilt each time */
        status = session_refresh_locked(b->core, &err);
        if (!status)
            status = session_context_locked(b->core, &c, &err);
        hunger.left = -1;
        if (status)
            assert_int_equal(status, SESSILE_NOMEM);
        else
            assert_int_equal(c->count,
                             s->core->tree.nodes[s->core->tree.head].messages + 1);
    }
    hunger.left = -1;
    refresh(b);
    assert_int_equal(b->core->tree.node_count, s->core->tree.node_count);
    assert_memory_equal(b->core->tree.nodes, s->core->tree.nodes,
                        s->core->tree.node_count * sizeof *s->core->tree.nodes);
    assert_int_equal(b->core->tree.link_count, s->core->tree.link_count);
    assert_int_equal(s->core->tree.link_count,
                     s->core->tree.nodes[s->core->tree.head].messages - 1);
    assert_int_equal(b->core->fold.usage.input, s->core->fold.usage.input);
    assert_true(s->core->fold.usage.input > 0);
    session_closed(s);
    session_closed(b);
    sessile_store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(a_hundred_threads_append_to_one_session),
        OVER(threads_with_handles_of_their_own_lose_nothing),
        OVER(reading_goes_on_beside_writing),
        OVER(clearing_goes_on_beside_writing),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test(want_of_memory_changes_nothing),
    };
    int failed = cmocka_run_group_tests_name("want of memory", once, NULL, NULL);

    failed +=
        run_over_kinds("many threads", STORE_RAM, tests, sizeof tests / sizeof *tests);
    return failed != 0;
}
