/*
 * test_threads.c: the power goes while threads share their syncs.
 *
 * Threads append to one session through handles of one store, and through a second store
 * handle as another process would, on a simulated disk. At some of the moments before a
 * call that changes something, a copy of the disk is put aside with what had been
 * acknowledged by then. When all is done each copy loses its power in several ways and is
 * compared with the log as it came to be: what was acknowledged is there, and what is
 * there is its beginning.
 *
 * Which writes share a sync is left to chance; what must hold is not. SESSILE_SOAK=1:
 * more of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/ground.h"

enum { THREADS = 6, APPENDS = 40, COPIES_MOST = 400, CUTS = 6, PENDING_MOST = 256 };

/* The disk at a moment, and how many entries hosts knew to be safe before it. */
typedef struct copy {
    simfs *fs;
    size_t acknowledged;
    uint64_t number;
} copy;

static struct {
    simfs *fs;
    atomic_size_t acknowledged, failed;
    pthread_mutex_t mutex; /* the copies */
    copy copies[COPIES_MOST];
    size_t count;
    unsigned every; /* a copy is made at every n-th change */
    uint64_t states;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void watch(void *arg, simfs *fs, uint64_t number)
{
    (void)arg;
    /* threads change places here, so that writes fall into the syncs of others */
    os_posix.sleep_ms(NULL, 0);
    if (number % all.every)
        return;
    size_t acknowledged = atomic_load(&all.acknowledged); /* first: a lower bound */
    simfs *now = simfs_kill(fs);
    pthread_mutex_lock(&all.mutex);
    if (all.count < COPIES_MOST)
        all.copies[all.count++] = (copy){now, acknowledged, number};
    else
        simfs_free(now);
    pthread_mutex_unlock(&all.mutex);
}

static void acknowledge(size_t count)
{
    size_t known = atomic_load(&all.acknowledged);
    while (known < count &&
           !atomic_compare_exchange_weak(&all.acknowledged, &known, count))
        ;
}

static void *append(void *arg)
{
    sessile_session *s = arg;
    sessile_error err;
    sessile_id id;
    for (int i = 0; i < APPENDS; i++) {
        char text[700];
        snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"%d %0*d\"}", i,
                 1 + i * 37 % 600, 0);
        sessile_status status = sessile_append(s, sessile_text(text), &id, &err);
        if (status == SESSILE_CONFLICT) {
            (void)sessile_head(s, &id, NULL);
            continue;
        }
        if (status) {
            print_error("append: %s: %s\n", sessile_status_name(status), err.message);
            atomic_fetch_add(&all.failed, 1);
            break;
        }
        acknowledge((size_t)id + 1);
    }
    return NULL;
}

static sessile_session *resumed(sessile_store *st)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    if (sessile_resume(&s, st, &o, &err))
        fail_msg("it does not open: %s: %s", sessile_status_name(err.code), err.message);
    /* the simulated clock runs as fast as they can wait */
    assert_int_equal(sessile_session_set_timeout(s, -1, &err), SESSILE_OK);
    return s;
}

/* The entries on a disk: free with ground_texts_free. */
static size_t read_all(simfs *fs, int sealed, char ***texts)
{
    sessile_store *st;
    sessile_error err;
    size_t count;
    if (ground_store_on(&st, simfs_table(fs), sealed, 0, &err))
        fail_msg("the store does not open: %s", err.message);
    ground_view v = {resumed(st), NULL};
    if (ground_entries(&v, texts, &count, &err))
        fail_msg("it cannot be read: %s", err.message);
    (void)ground_view_close(&v, NULL);
    sessile_store_close(st);
    return count;
}

static void cut(const copy *c, int sealed, char **truth, size_t count, uint64_t seed)
{
    unsigned char fates[PENDING_MOST];
    size_t pending = simfs_pending(c->fs), found;
    char **texts;
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + c->number;
    assert_true(pending <= PENDING_MOST);
    for (size_t i = 0; i < pending; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int kinds = simfs_is_write(c->fs, i) ? SIMFS_FATES : 2;
        fates[i] = seed == 0   ? SIMFS_LOST
                   : seed == 1 ? SIMFS_WHOLE
                               : (unsigned char)((random >> 33) % (unsigned)kinds);
    }
    simfs *after = simfs_crash(c->fs, fates, seed);
    all.states++;
    found = read_all(after, sealed, &texts);
    if (found < c->acknowledged || found > count)
        fail_msg("change %" PRIu64 ", cut %" PRIu64
                 ": %zu entries, %zu acknowledged, %zu "
                 "in the end",
                 c->number, seed, found, c->acknowledged, count);
    for (size_t i = 0; i < found; i++)
        if (strcmp(texts[i], truth[i]) != 0)
            fail_msg("change %" PRIu64 ", cut %" PRIu64 ": entry %zu is\n%s\nand was\n%s",
                     c->number, seed, i, texts[i], truth[i]);
    ground_texts_free(texts, found);
    simfs_free(after);
}

static void threads_append_and_the_power_goes(int sealed)
{
    static const scenario nothing = {.name = "threads"};
    sessile_session *sessions[THREADS];
    sessile_store *stores[2];
    pthread_t threads[THREADS];
    sessile_error err;
    char **truth;
    ground g;
    all.fs = simfs_new();
    all.count = 0;
    atomic_store(&all.acknowledged, 1);
    ground_open(&g, &nothing, sealed, simfs_table(all.fs), all.fs);
    if (ground_store(&g, 0) || ground_create(&g, 0, "s"))
        fail_msg("%s", g.err.message);
    ground_drop_handles(&g);
    for (int i = 0; i < 2; i++)
        if (ground_store_on(&stores[i], simfs_table(all.fs), sealed, 0, &err))
            fail_msg("%s", err.message);
    /* two threads on one handle, two on another of the same store, two elsewhere */
    for (int i = 0; i < THREADS; i++)
        sessions[i] = i % 2 ? sessions[i - 1] : resumed(stores[i < 4 ? 0 : 1]);
    simfs_watch(all.fs, watch, NULL);
    simfs_mingle(all.fs);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append, sessions[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    simfs_watch(all.fs, NULL, NULL);
    for (int i = 0; i < THREADS; i += 2)
        (void)sessile_session_close(sessions[i], NULL);
    for (int i = 0; i < 2; i++)
        sessile_store_close(stores[i]);
    assert_int_equal(atomic_load(&all.failed), 0);
    size_t count = read_all(all.fs, sealed, &truth);
    assert_true(count >= atomic_load(&all.acknowledged));
    assert_true(all.count > 10);
    for (size_t i = 0; i < all.count; i++) {
        for (uint64_t seed = 0; seed < CUTS; seed++)
            cut(&all.copies[i], sealed, truth, count, seed);
        simfs_free(all.copies[i].fs);
    }
    ground_texts_free(truth, count);
    ground_close(&g);
    simfs_free(all.fs);
}

static void sealed(void **state)
{
    (void)state;
    threads_append_and_the_power_goes(1);
}

static void plain(void **state)
{
    (void)state;
    threads_append_and_the_power_goes(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(sealed)};
    const char *soak = getenv("SESSILE_SOAK");
    int long_form = soak && strcmp(soak, "1") == 0, failed = 0;
    all.every = long_form ? 3 : 9;
    for (int i = 0; !failed && i < (long_form ? 10 : 1); i++)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("# figure: crash states of threads tried = %" PRIu64 "\n", all.states);
    return failed;
}
