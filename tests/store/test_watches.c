/*
 * test_watches.c: sessions that are watched while others write to them, remove them and
 * reseal them, over every store in stores.c.
 */
#include "store/backend.h"

#include "support/keyed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/host.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sessile_status say_number(sessile_session *s, unsigned n, sessile_error *err)
{
    char text[20];

    snprintf(text, sizeof text, "%u", n);
    return try_say(s, text, NULL, err);
}

typedef struct watcher {
    sessile_session *s;
    pthread_t thread;
    int timeout_ms;
    sessile_status status;
    int changed;
    sessile_id seen;
    sessile_error err;
} watcher;

static void *watch(void *arg)
{
    watcher *w = arg;

    w->status =
        sessile_session_watch(w->s, &w->seen, w->timeout_ms, &w->changed, &w->err);
    return NULL;
}

static void start_watch(watcher *w, sessile_session *s, sessile_id seen)
{
    *w = (watcher){.s = s, .timeout_ms = -1, .seen = seen};
    assert_int_equal(pthread_create(&w->thread, NULL, watch, w), 0);
}

/* Two handles of a session, and their stores, which may be one. */
static void both_closed(sessile_session *s, sessile_store *st, sessile_session *t,
                        sessile_store *other)
{
    sessile_session_close(t, NULL);
    sessile_session_close(s, NULL);
    if (other != st)
        sessile_store_close(other);
    sessile_store_close(st);
}

static void what_others_wrote_already_is_told_at_once(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g), *other = g->kind->vanishes ? st : site_store(g);
    sessile_session *s = session_of(st, "one"), *t = session_of(other, "one");
    sessile_error err;
    sessile_id seen = 0;
    int changed = 9;

    must(sessile_session_watch(s, NULL, 0, &changed, &err), &err);
    assert_int_equal(changed, 0);
    must(say_number(t, 0, &err), &err);
    must(sessile_session_watch(s, &seen, -1, &changed, &err), &err);
    assert_int_equal(changed, 1);
    assert_int_equal(seen, 2);
    must(sessile_session_watch(s, &seen, 0, &changed, &err), &err);
    assert_int_equal(changed, 0);
    must(sessile_session_watch(s, &seen, 20, &changed, &err), &err);
    assert_int_equal(changed, 0);
    must(say_number(s, 1, &err), &err); /* what is one's own, for who counts on */
    must(sessile_session_watch(s, &seen, -1, &changed, &err), &err);
    assert_int_equal(changed, 1);
    assert_int_equal(seen, 3);
    must(say_number(s, 2, &err), &err); /* and for who does not: no news */
    must(sessile_session_watch(s, NULL, 20, &changed, &err), &err);
    assert_int_equal(changed, 0);
    seen = 100;
    refused(sessile_session_watch(s, &seen, 0, &changed, &err), SESSILE_INVALID, &err);
    both_closed(s, st, t, other);
}

static void who_watches_misses_nothing_and_others_use_the_handle(void **state)
{
    enum { SAID = 40 };
    const site *g = *state;
    sessile_store *st = site_store(g), *other = g->kind->vanishes ? st : site_store(g);
    sessile_session *s = session_of(st, "one"), *t = session_of(other, "one");
    sessile_error err;
    sessile_id seen = 1;

    for (unsigned n = 0; n < SAID; n++) {
        watcher w;
        sessile_message *rows;
        size_t count;
        start_watch(&w, s, seen);
        if (n % 4 == 0)
            usleep(3000);
        must(sessile_messages(s, NULL, &rows, &count, &err), &err); /* not held up */
        sessile_free(rows);
        must(say_number(t, n, &err), &err);
        pthread_join(w.thread, NULL);
        must(w.status, &w.err);
        assert_int_equal(w.changed, 1);
        assert_int_equal(w.seen, n + 2);
        seen = w.seen;
        must(sessile_messages(s, NULL, &rows, &count, &err), &err);
        assert_int_equal(count, n + 1);
        sessile_free(rows);
    }
    both_closed(s, st, t, other);
}

static void an_interrupt_ends_a_watch(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");
    watcher w;

    start_watch(&w, s, 1);
    do { /* one that comes before the watch has begun is not for it */
        usleep(20000);
        sessile_interrupt(s);
    } while (pthread_tryjoin_np(w.thread, NULL));
    refused(w.status, SESSILE_CANCELLED, &w.err);
    closed_all(s, st);
}

static void a_removal_ends_a_watch(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g), *other = site_store(g);
    sessile_session *s = session_of(st, "one");
    sessile_session_options one = named("one");
    sessile_delete_options hard = {0};
    sessile_error err;
    watcher w;

    start_watch(&w, s, 1);
    usleep(20000);
    must(sessile_delete(other, &one, &hard, NULL, &err), &err);
    pthread_join(w.thread, NULL);
    refused(w.status, SESSILE_NOTFOUND, &w.err);
    assert_non_null(strstr(w.err.message, "removed"));
    sessile_session_close(s, NULL);
    sessile_store_close(other);
    sessile_store_close(st);
}

static void a_watch_goes_on_when_the_log_is_resealed(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g), *other = site_store(g);
    sessile_session *s = session_of(st, "one");
    sessile_reseal_state last;
    sessile_error err;
    watcher w;

    start_watch(&w, s, 1);
    usleep(20000);
    must(sessile_keys_rotate(other, NULL, NULL, &err), &err);
    must(keyed_reseal(other, NULL, &last, &err), &err);
    assert_int_equal(last.resealed, 1);
    usleep(20000);
    sessile_session *t = session_of(other, "one");
    must(say_number(t, 0, &err), &err);
    pthread_join(w.thread, NULL);
    must(w.status, &w.err);
    assert_int_equal(w.changed, 1);
    assert_int_equal(w.seen, 2);
    sessile_session_close(t, NULL);
    sessile_session_close(s, NULL);
    sessile_store_close(other);
    sessile_store_close(st);
}
static const struct CMUnitTest cases[] = {
    CASE(what_others_wrote_already_is_told_at_once),
    CASE(who_watches_misses_nothing_and_others_use_the_handle),
    CASE(an_interrupt_ends_a_watch),
    CASE_IF(a_removal_ends_a_watch, NEEDS_REMOVE | NEEDS_RESTARTS),
    CASE_IF(a_watch_goes_on_when_the_log_is_resealed,
            NEEDS_SEALED | SESSILE_BACKEND_REPLACES | NEEDS_BLOB_REPLACE |
                NEEDS_RESTARTS),
};

int main(int argc, char **argv)
{
    return suite_run("watches", cases, sizeof cases / sizeof *cases, 0, argc, argv);
}
