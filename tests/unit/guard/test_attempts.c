/*
 * test_attempts.c: how often a source may try credentials, and what a refusal holds up.
 *
 * Own stores: WHY it watches system calls.
 */
#include "support/views.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <pthread.h>
#include <string.h>

#include "base/os.h"
#include "guard/guard.h"
#include "support/check.h"

#include <cmocka.h>

static const char *const wrong =
    "sesk_aaaaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_aaaaaaaa";

static sessile_status tried(sessile_store *store, const char *key, sessile_error *err)
{
    sessile_credential c;
    sessile_store *view;
    sessile_status status;

    sessile_credential_init(&c);
    c.key = sessile_text(key);
    c.source = sessile_text("10.0.0.9");
    status = sessile_store_as(&view, store, &c, err);
    sessile_store_close(view);
    return status;
}

static void open_limited(views *v)
{
    static const sessile_rate_limit rates[] = {{"failures", "5/hour"}};
    sessile_guard_options o;

    sessile_guard_options_init(&o);
    o.limits.on = 1;
    o.limits.rates = rates;
    o.limits.rate_count = 1;
    o.audit.on = 1;
    views_open(v, &o);
}

static char *key_of(views *v, const char *user)
{
    sessile_access_key_options o;
    char *key;

    sessile_access_key_options_init(&o);
    o.user = sessile_text(user);
    must(sessile_access_key(v->store, &o, &key, &v->err), &v->err);
    return key;
}

/* ------------------------------------------------------------------ at the same time */

enum { THREADS = 24, EACH = 4 };

typedef struct crowd {
    views v;
    pthread_barrier_t barrier;
    _Atomic int denied, limited;
} crowd;

static void *try_together(void *arg)
{
    crowd *c = arg;
    sessile_error err;

    for (int i = 0; i < EACH; i++) {
        pthread_barrier_wait(&c->barrier);
        sessile_status status = tried(c->v.store, wrong, &err);
        if (status == SESSILE_DENIED)
            atomic_fetch_add(&c->denied, 1);
        else if (status == SESSILE_LIMIT)
            atomic_fetch_add(&c->limited, 1);
    }
    return NULL;
}

/* However many try at once, no more of them are looked at than the limit allows. */
static void a_crowd_gets_no_more_tries_than_one(void **state)
{
    pthread_t threads[THREADS];
    crowd c = {.denied = 0};

    (void)state;
    open_limited(&c.v);
    pthread_barrier_init(&c.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, try_together, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.denied, 5);
    assert_int_equal(c.limited, THREADS * EACH - 5);
    pthread_barrier_destroy(&c.barrier);
    views_close(&c.v);
}

static void what_is_accepted_is_not_counted(void **state)
{
    views v;

    (void)state;
    open_limited(&v);
    char *key = key_of(&v, "ann");
    for (int i = 0; i < 20; i++)
        must(tried(v.store, key, &v.err), &v.err);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tried(v.store, wrong, &v.err), SESSILE_DENIED);
        if (i < 4)
            must(tried(v.store, key, &v.err), &v.err);
    }
    assert_int_equal(tried(v.store, key, &v.err), SESSILE_LIMIT);
    assert_string_equal(v.err.rule, "failures");
    assert_true(v.err.retry_ms > 0);
    sessile_free(key);
    views_close(&v);
}

/* ------------------------------------------------------------------ a slow disk */

static os_table slow;
static access_fold *watched; /* NULL: nothing is watched */
static int held, writes;

static int64_t watch_pwrite(void *ud, int fd, const void *data, size_t size,
                            uint64_t offset)
{
    if (watched) {
        writes++;
        if (pthread_mutex_trylock(&watched->mutex))
            held++;
        else
            pthread_mutex_unlock(&watched->mutex);
    }
    return os_posix.pwrite(ud, fd, data, size, offset);
}

/* The event of a refusal, and its count, are written while others may use their views. */
static void a_refusal_holds_up_no_view(void **state)
{
    views v;

    (void)state;
    slow = os_posix;
    slow.pwrite = watch_pwrite;
    os_current = &slow;
    open_limited(&v);
    char *key = key_of(&v, "ann");
    must(tried(v.store, key, &v.err), &v.err);
    watched = v.store->who->guard->access;
    writes = held = 0;
    assert_int_equal(tried(v.store, wrong, &v.err), SESSILE_DENIED);
    assert_true(writes > 0);
    must(tried(v.store, key, &v.err), &v.err);
    watched = NULL;
    must(sessile_access_lock(v.store, sessile_text("ann"), sessile_text(NULL),
                             sessile_text(NULL), &v.err),
         &v.err);
    watched = v.store->who->guard->access;
    assert_int_equal(tried(v.store, key, &v.err), SESSILE_DENIED);
    watched = NULL;
    assert_int_equal(held, 0);
    sessile_free(key);
    views_close(&v);
    os_current = &os_posix;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_gets_no_more_tries_than_one),
        cmocka_unit_test(what_is_accepted_is_not_counted),
        cmocka_unit_test(a_refusal_holds_up_no_view),
    };
    return cmocka_run_group_tests_name("attempts", tests, NULL, NULL);
}
