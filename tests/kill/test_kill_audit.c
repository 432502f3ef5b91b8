/*
 * test_kill_audit.c: processes that write to one audit and are stopped and killed.
 *
 * Eight processes of four threads write events, each process through one audit_log, and
 * now and then seal. What the lanes hold in the end is compared with what was reported:
 *   - every acknowledged event is there once, nothing refused is there;
 *   - the audit verifies with the key that it was given when it was made, goes on, and
 *     verifies again when all of it is sealed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail
#undef skip

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "session/handle.h"
#include "session/header.h"
#include "support/audits.h"
#include "support/killed.h"
#include "support/logs.h"

enum { KILLS_A_ROUND = 120 };

typedef struct worker {
    killed_thread is;
    audit_log *audit; /* of the process */
} worker;

static void open_store(sessile_store **out, const char *root, sessile_status *status,
                       sessile_error *err)
{
    sessile_store_options o;

    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = KIT_SECRET;
    o.config.has_timeout = 1;
    o.config.timeout_ms = 300;
    *status = sessile_open(out, root, &o, err);
}

static void *work(void *arg)
{
    worker *w = arg;

    for (uint32_t seq = 0;; seq++) {
        sessile_error err = {0};
        audit_event e = event_of("turn", seq % 3 ? "ann" : "bob");
        sessile_status status;
        char request[80];

        snprintf(request, sizeof request, "k.%u.%u.%u.%u.", w->is.slot, w->is.life,
                 w->is.thread, seq);
        e.from.request = sessile_text(request);
        status = audit_write(w->audit, AUDIT_WRITE, &e, NULL, &err);
        if (status && status != SESSILE_BUSY)
            killed_tell(&w->is, BROKEN, seq, status, err.message);
        killed_tell(&w->is, status ? REFUSED : ACKNOWLEDGED, seq, status, "");
        if (random_next(&w->is.seed) % 20)
            continue;
        status = audit_seal(w->audit, &err);
        if (status && status != SESSILE_BUSY)
            killed_tell(&w->is, BROKEN, seq, status, err.message);
    }
    return NULL;
}

static void process(const char *root, unsigned slot, uint32_t life, uint64_t seed)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    sessile_store *store = NULL;
    sessile_error err = {0};
    audit_log *a = NULL;
    sessile_status status;

    open_store(&store, root, &status, &err);
    if (!status)
        status = audit_open(&a, store->core, NULL, &err);
    for (unsigned t = 0; t < THREADS; t++)
        workers[t] = (worker){{slot, t, life, random_next(&seed)}, a};
    if (status)
        killed_tell(&workers[0].is, BROKEN, 0, status, err.message);
    for (unsigned t = 1; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0)
            _exit(5);
    work(&workers[0]);
}

/* ------------------------------------------------------------------ what is there */

static sessile_status look(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    killed_round *k = arg;
    unsigned slot, thread;
    uint32_t life, seq;
    killed_history *h;
    const char *at;

    (void)id, (void)err;
    at = memmem(text, size, "\"k.", 3);
    if (!at)
        return SESSILE_OK;
    assert_int_equal(sscanf(at + 3, "%u.%u.%u.%u.", &slot, &life, &thread, &seq), 4);
    killed_call *call = killed_made(k, slot, life, thread, seq, &h);
    assert_true(call->outcome == ACKNOWLEDGED || seq == h->count);
    assert_int_equal(call->found++, 0);
    return SESSILE_OK;
}

static int add_lane(void *arg, const char *folder, const char *name)
{
    (void)folder, (void)name;
    ++*(unsigned *)arg;
    return 0;
}

static unsigned check(killed_round *k, const char *root)
{
    sessile_store *store;
    sessile_status status;
    sessile_error err;
    sessile_audit_report v;
    unsigned lanes = 0;
    audit_log *a;

    open_store(&store, k->root, &status, &err);
    assert_int_equal(status, SESSILE_OK);
    store_core *st = store->core;
    st->backend.table->list(st->backend.self, AUDIT_FOLDER, add_lane, &lanes, &err);
    for (uint32_t i = 0; i < lanes; i++) {
        char name[LANE_NAME];
        log_tail tail;
        log_t *log;
        lane_part_name(i, 0, name);
        assert_int_equal(log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                                     session_read_depth(st), 1000, NULL, look, k, &tail,
                                     &st->alloc, &err),
                         SESSILE_OK);
        assert_int_equal(log_damage(log, &err), SESSILE_OK);
        log_close(log);
    }
    assert_holds(st, root);
    assert_int_equal(audit_open(&a, st, NULL, &err), SESSILE_OK);
    audit_say(a, "after");
    assert_int_equal(audit_seal(a, &err), SESSILE_OK);
    assert_int_equal(audit_close(a, &err), SESSILE_OK);
    for (uint32_t i = 0; i < lanes; i++) { /* what nobody has sealed */
        lane *l;
        assert_int_equal(lane_open(&l, st, i, LANE_BYTES, &err), SESSILE_OK);
        assert_int_equal(lane_seal(l, 1000, &err), SESSILE_OK);
        lane_close(l);
    }
    v = verdict_of(st, root);
    assert_true(v.holds);
    assert_int_equal(v.unsealed, 0);
    sessile_store_close(store);
    return lanes;
}

static void killed_writers_of_an_audit_lose_no_event(void **state)
{
    killed_round *k = *state;
    unsigned long rounds = getenv("SESSILE_SOAK") ? 40 : 1, kills = 0, acknowledged = 0;
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    unsigned lanes = 0;

    for (unsigned long n = 0; n < rounds; n++) {
        sessile_store *store;
        sessile_status status;
        sessile_error err;
        char root[SEAL_HEX];
        audit_log *a;
        memset(k, 0, sizeof *k);
        killed_begin(k, random_next(&seed), process);
        open_store(&store, k->root, &status, &err);
        assert_int_equal(status, SESSILE_OK);
        a = audit_opened(store->core);
        assert_int_equal(audit_root(a, root, &err), SESSILE_OK);
        audit_closed(a);
        sessile_store_close(store);
        killed_run(k, KILLS_A_ROUND);
        lanes = check(k, root);
        assert_int_equal(killed_lost(k), 0);
        assert_true(k->acknowledged > 0);
        kills += k->kills;
        acknowledged += k->acknowledged;
        killed_end(k);
    }
    printf("# figure: kills of writers of an audit = %lu\n", kills);
    printf("# figure: events acknowledged under kills = %lu\n", acknowledged);
    printf("# figure: events lost under kills = 0\n");
    printf("# figure: lanes of an audit under kills = %u\n", lanes);
}

static int tear_down(void **state)
{
    killed_stop(*state);
    free(*state);
    return 0;
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(killed_round));
    return *state == NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_writers_of_an_audit_lose_no_event, set_up,
                                        tear_down),
    };
    assert_int_equal(base_init(), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
