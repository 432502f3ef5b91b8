/*
 * test_kill.c: processes that share sessions and are stopped and killed at any moment.
 *
 * Owns promises 1, 2 and 8 as far as kill -9 goes: eight processes of four threads append
 * to shared sessions of one sealed store on a real file system. They are stopped, killed
 * and started again (support/killed.h); what is in the logs at the end is compared with
 * what they reported.
 *
 * Must never depend on how fast anything is: there are more or fewer appends, the rules
 * stay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "support/killed.h"
#include "support/logs.h"

enum { SESSIONS = KILLED_ORDERS, PARTS_MOST = 4, KILLS_A_ROUND = 160 };

/* ------------------------------------------------------------------ a process */

typedef struct worker {
    killed_thread is;
    sessile_store *store;
    sessile_session **sessions; /* threads 0 and 1 share theirs */
} worker;

/* What part `part` of `of` says; it names itself, so that nothing can be made up. */
static void message_text(const worker *w, uint32_t seq, unsigned part, unsigned of,
                         size_t padding, char *out, size_t room)
{
    int n = snprintf(out, room, "{\"role\":\"user\",\"content\":\"k.%u.%u.%u.%u.%u.%u.",
                     w->is.slot, w->is.life, w->is.thread, seq, part, of);
    memset(out + n, 'x', padding);
    memcpy(out + n + padding, "\"}", 3);
}

enum { LONGEST = 24 << 10 };

static sessile_status do_append(worker *w, sessile_session *s, uint32_t seq,
                                size_t padding, char *text, sessile_error *err)
{
    sessile_id id;
    message_text(w, seq, 1, 0, padding, text, LONGEST);
    return sessile_append(s, sessile_text(text), &id, err);
}

static sessile_status do_turn(worker *w, sessile_session *s, uint32_t seq, char *text,
                              sessile_error *err)
{
    sessile_slice messages[PARTS_MOST];
    unsigned of = 1 + (unsigned)(random_next(&w->is.seed) % PARTS_MOST);
    sessile_run *run;
    sessile_need need;
    for (unsigned i = 0; i < of; i++) {
        char *at = text + (size_t)i * 1024;
        message_text(w, seq, i + 1, of, random_next(&w->is.seed) % 600, at, 1024);
        messages[i] = sessile_text(at);
    }
    sessile_status status = sessile_turn_begin(&run, s, messages, of, NULL, err);
    if (status)
        return status;
    status = sessile_run_step(run, &need, err);
    sessile_run_free(run);
    if (status == SESSILE_BUSY || status == SESSILE_CONFLICT)
        killed_tell(&w->is, BROKEN, seq, status, "a turn that began was refused later");
    return status;
}

static void *work(void *arg)
{
    worker *w = arg;
    char *text = malloc(LONGEST);
    for (uint32_t seq = 0;; seq++) {
        sessile_error err = {0};
        uint64_t dice = random_next(&w->is.seed) % 100;
        sessile_session *s = w->sessions[random_next(&w->is.seed) % SESSIONS];
        sessile_status status;
        if (dice < 4) {
            sessile_session_options o;
            sessile_session *made;
            char id[80];
            sessile_session_options_init(&o);
            snprintf(id, sizeof id, "c-%u-%u-%u-%u", w->is.slot, w->is.life, w->is.thread,
                     seq);
            o.id = sessile_text(id);
            status = sessile_create(&made, w->store, &o, &err);
            if (!status) {
                sessile_session_close(made, NULL);
                killed_tell(&w->is, CREATED, seq, status, "");
                continue;
            }
        } else if (dice < 45) {
            status = do_turn(w, s, seq, text, &err);
        } else {
            size_t most = dice < 48 ? LONGEST - 200 : 500;
            status = do_append(w, s, seq, random_next(&w->is.seed) % most, text, &err);
            if (status == SESSILE_CONFLICT)
                killed_tell(&w->is, BROKEN, seq, status, err.message);
        }
        if (!status) {
            killed_tell(&w->is, ACKNOWLEDGED, seq, status, "");
        } else if (status == SESSILE_BUSY || status == SESSILE_CONFLICT) {
            sessile_id head;
            killed_tell(&w->is, REFUSED, seq, status, "");
            (void)sessile_head(s, &head, NULL); /* looks again */
        } else {
            killed_tell(&w->is, BROKEN, seq, status, err.message);
        }
    }
    return NULL;
}

static void store_options(sessile_store_options *o, int timeout_ms)
{
    sessile_store_options_init(o);
    o->key_source = SESSILE_KEY_SECRET;
    o->key = KIT_SECRET;
    o->config.has_timeout = 1;
    o->config.timeout_ms = timeout_ms;
}

static const char *session_name(unsigned i)
{
    static const char *const names[SESSIONS] = {"one", "Two \xff", "three"};
    return names[i];
}

/* Opening may meet a stopped writer: then once more. */
static sessile_session *resume(const worker *w, unsigned i)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_error err = {0};
    sessile_status status;
    sessile_session_options_init(&o);
    o.id = sessile_text(session_name(i));
    do {
        status = sessile_resume(&s, w->store, &o, &err);
    } while (status == SESSILE_BUSY);
    if (status)
        killed_tell(&w->is, BROKEN, 0, status, err.message);
    return s;
}

static void process(const char *root, unsigned slot, uint32_t life, uint64_t seed)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    sessile_session *sessions[THREADS][SESSIONS];
    sessile_store_options o;
    sessile_store *store = NULL;
    sessile_error err = {0};
    const killed_thread first = {.slot = slot, .life = life};

    store_options(&o, 300);
    sessile_status status = sessile_open(&store, root, &o, &err);
    if (status)
        killed_tell(&first, BROKEN, 0, status, err.message);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = (worker){{slot, t, life, random_next(&seed)}, store, sessions[t]};
        if (t == 1)
            workers[t].sessions = sessions[0];
        for (unsigned i = 0; t != 1 && i < SESSIONS; i++)
            sessions[t][i] = resume(&workers[t], i);
    }
    for (unsigned t = 1; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0)
            _exit(5);
    work(&workers[0]);
}

/* What is found, and how often. */
typedef struct kill_round {
    killed_round k;
    unsigned long twice, turns;
} kill_round;

/* ------------------------------------------------------------------ what is there */

/* One message of the log. Its turn's parts follow each other: `open` of them are still to
 * come, and then a turn entry. */
typedef struct expected {
    unsigned slot, thread, part, of;
    uint32_t life, seq;
} expected;

static void found(kill_round *r, unsigned session, const char *json, expected *turn)
{
    expected e;
    const char *at = strstr(json, "\"content\":\"k.");
    assert_non_null(at);
    assert_int_equal(sscanf(at + 13, "%u.%u.%u.%u.%u.%u.", &e.slot, &e.life, &e.thread,
                            &e.seq, &e.part, &e.of),
                     6);
    killed_history *h;
    killed_call *call = killed_made(&r->k, e.slot, e.life, e.thread, e.seq, &h);
    if (call->outcome == REFUSED)
        killed_broken(&r->k, json);
    assert_true(call->outcome == ACKNOWLEDGED || e.seq == h->count);
    if (turn->of != 0) { /* inside a turn only its own next part may stand */
        assert_true(e.slot == turn->slot && e.thread == turn->thread &&
                    e.life == turn->life && e.seq == turn->seq && e.of == turn->of);
        assert_int_equal(e.part, turn->part + 1);
        *turn = e;
        return;
    }
    assert_int_equal(e.part, 1);
    if (call->found++ > 0) {
        killed_broken(&r->k, json);
        r->twice++;
    }
    assert_true((int64_t)e.seq > h->last[session] - 1);
    h->last[session] = (int64_t)e.seq + 1;
    if (e.of > 0)
        *turn = e;
}

static void check_session(kill_round *r, sessile_store *store, unsigned i)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_entries *all;
    sessile_error err = {0};
    expected turn = {0};
    const char *json;
    size_t size;
    sessile_id id, next = 0;
    sessile_session_options_init(&o);
    o.id = sessile_text(session_name(i));
    sessile_status status = sessile_resume(&s, store, &o, &err);
    if (status)
        killed_broken(&r->k, err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_entries_open(&all, s, NULL, &err), SESSILE_OK);
    for (;;) {
        assert_int_equal(sessile_entries_next(all, &id, &json, &size, &err), SESSILE_OK);
        if (size == 0)
            break;
        assert_int_equal(id, next++);
        if (strstr(json, "\"type\":\"message\"")) {
            found(r, i, json, &turn);
        } else if (strstr(json, "\"type\":\"turn\"")) {
            assert_true(turn.of > 0 && turn.part == turn.of);
            turn.of = 0;
            r->turns++;
        } else {
            assert_int_equal(id, 0);
        }
    }
    assert_int_equal(turn.of, 0); /* no half of a turn at the end */
    sessile_entries_close(all);
    /* no lock is left: the store waits for none */
    assert_int_equal(
        sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"after\"}"), &id,
                       &err),
        SESSILE_OK);
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
}

static void check_created(kill_round *r, sessile_store *store)
{
    sessile_listed *rows;
    size_t count;
    unsigned long named = 0;
    sessile_error err;
    assert_int_equal(sessile_list(store, NULL, &rows, &count, &err), SESSILE_OK);
    for (size_t i = 0; i < count; i++) {
        unsigned slot, thread;
        uint32_t life, seq;
        if (rows[i].status)
            killed_broken(&r->k, rows[i].message);
        assert_int_equal(rows[i].status, SESSILE_OK);
        char id[100];
        snprintf(id, sizeof id, "%.*s", (int)rows[i].id.size, rows[i].id.data);
        if (sscanf(id, "c-%u-%u-%u-%u", &slot, &life, &thread, &seq) != 4)
            continue;
        named += killed_made(&r->k, slot, life, thread, seq, NULL)->outcome == CREATED;
    }
    assert_int_equal(named, r->k.created);
    sessile_free(rows);
}

static int tear_down(void **state)
{
    killed_stop(*state); /* the round is its first member */
    free(*state);
    return 0;
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(kill_round));
    return *state == NULL;
}

static void killed_writers_lose_and_repeat_nothing(void **state)
{
    kill_round *r = *state;
    killed_round *k = &r->k;
    unsigned long rounds = getenv("SESSILE_SOAK") ? 10000 / KILLS_A_ROUND + 1 : 1;
    unsigned long kills = 0, fuses = 0, acknowledged = 0, conflicts = 0, busy = 0,
                  turns = 0, created = 0, torn = 0;
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    for (unsigned long n = 0; n < rounds; n++) {
        sessile_store_options o;
        sessile_store *store;
        sessile_error err = {0};
        r->twice = r->turns = 0;
        killed_begin(k, random_next(&seed), process);
        store_options(&o, 0);
        assert_int_equal(sessile_open(&store, k->root, &o, &err), SESSILE_OK);
        for (unsigned i = 0; i < SESSIONS; i++) {
            sessile_session_options so;
            sessile_session *s;
            sessile_session_options_init(&so);
            so.id = sessile_text(session_name(i));
            assert_int_equal(sessile_create(&s, store, &so, &err), SESSILE_OK);
            assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
        }
        sessile_store_close(store);

        killed_run(k, KILLS_A_ROUND);

        assert_int_equal(sessile_open(&store, k->root, &o, &err), SESSILE_OK);
        for (unsigned i = 0; i < SESSIONS; i++)
            check_session(r, store, i);
        check_created(r, store);
        assert_int_equal(killed_lost(k), 0);
        assert_int_equal(r->twice, 0);
        assert_true(k->acknowledged > 0 && r->turns > 0);
        sessile_store_close(store);
        kills += k->kills, fuses += k->fuses, acknowledged += k->acknowledged;
        conflicts += k->conflicts, busy += k->busy, turns += r->turns;
        created += k->created, torn += killed_pieces(k, "agents/main");
        killed_end(k);
    }
    printf("# figure: kills = %lu\n", kills);
    printf("# figure: kills in the middle of a system call = %lu\n", fuses);
    printf("# figure: acknowledged under kills = %lu\n", acknowledged);
    printf("# figure: acknowledged and lost under kills = 0\n");
    printf("# figure: written twice under kills = 0\n");
    printf("# figure: turns under kills = %lu\n", turns);
    printf("# figure: sessions created under kills = %lu\n", created);
    printf("# figure: conflicts under kills = %lu\n", conflicts);
    printf("# figure: busy under kills = %lu\n", busy);
    printf("# figure: torn tails set aside under kills = %lu\n", torn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_writers_lose_and_repeat_nothing, set_up,
                                        tear_down),
    };
    assert_int_equal(base_init(), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
