/*
 * test_keys_killed.c: whatever changes keys, ended at every step.
 *
 * Owns the proof that rotate, reseal, forget, erase and init may be interrupted anywhere:
 * the first N changing calls of the system are made, all others fail, for every N; then
 * the store is opened with a system that works. It has to open with the old secret or the
 * new one, hold every entry, and the same command, run again, has to finish. The same
 * with each single call failing once. And of two commands, the one in the middle of the
 * other, at every step of it.
 */
#include "base/os.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/keyed.h"
#include "support/memories.h"
#include "support/sessions.h"
#include "sessile_access.h"
#include "sessile_guard.h"
#include "sessile_privacy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *folder, root[600], pristine[600], key_file[600];
static int completed_before;         /* erasures that were, before they were made again */
static char *everything, *of_others; /* what was said; without KEYED_USER's */
static faulty f;
static os_table lazy; /* the real system, but for syncs: no power is cut here */

static int no_sync(void *ud, int fd)
{
    (void)ud;
    (void)fd;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    lazy = os_posix;
    lazy.sync_all = lazy.sync_data = no_sync;
    os_current = &lazy;
    folder = folder_make();
    snprintf(root, sizeof root, "%s/store", folder);
    snprintf(pristine, sizeof pristine, "%s/pristine", folder);
    snprintf(key_file, sizeof key_file, "%s/new.key", folder);
    sessile_store *st = keyed_open(root, KEYED_OLD);
    keyed_fill(st);
    everything = keyed_read_all(st, NULL);
    of_others = keyed_read_all(st, KEYED_USER);
    sessile_store_close(st);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    os_current = &os_posix;
    folder_remove(folder);
    free(everything);
    free(of_others);
    return 0;
}

/* ------------------------------------------------------------------ what is done */

typedef struct job {
    const char *name;
    sessile_status (*run)(sessile_error *err);
    /* After the ending, with a system that works: everything is there. */
    void (*check)(void);
    /* After it was run again. */
    void (*finished)(void);
    /* Makes the store that it begins with; NULL: the one of set_up(). */
    void (*prepare)(void);
} job;

static sessile_store *open_by_file(void)
{
    sessile_store_options options;
    sessile_store *st;
    sessile_error err;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_FILE;
    options.key = key_file;
    return !sessile_open(&st, root, &options, &err) ? st : NULL;
}

/* The store, with whichever of the two secrets opens it. */
static sessile_store *open_either(void)
{
    sessile_store *st;
    sessile_error err;
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, &err);
    if (status == SESSILE_SEALED)
        return open_by_file();
    must(status, &err);
    return st;
}

static void all_is_there(void)
{
    sessile_store *st = open_either();
    assert_non_null(st);
    char *now = keyed_read_all(st, NULL);
    assert_string_equal(now, everything);
    free(now);
    sessile_store_close(st);
}

static sessile_status rotate(sessile_error *err)
{
    sessile_store *st;
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, err);
    if (!status)
        status = sessile_keys_rotate(st, NULL, NULL, err);
    sessile_store_close(st);
    return status;
}

static void has_two_epochs_or_more(void)
{
    sessile_error err;
    sessile_keys *keys;
    sessile_store *st = keyed_open(root, KEYED_OLD);
    must(sessile_keys_status(st, &keys, &err), &err);
    assert_true(keys->epoch_count >= 2);
    sessile_free(keys);
    sessile_store_close(st);
    all_is_there();
}

static sessile_status change_secret(sessile_error *err)
{
    sessile_rotate_options options = {1, SESSILE_KEY_FILE, key_file, 1};
    sessile_store *st;
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, err);
    if (status == SESSILE_SEALED && access(key_file, F_OK) == 0) {
        st = open_by_file(); /* it was changed */
        status = st ? SESSILE_OK : SESSILE_SEALED;
    }
    if (!status)
        status = sessile_keys_rotate(st, &options, NULL, err);
    sessile_store_close(st);
    return status;
}

static void opens_by_the_file_alone(void)
{
    sessile_store *st;
    sessile_error err;
    assert_int_equal(keyed_try(&st, root, KEYED_OLD, NULL, &err), SESSILE_SEALED);
    all_is_there();
}

static sessile_status reseal_to(const char *suite, sessile_error *err)
{
    sessile_store *st;
    sessile_reseal_state done;
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, err);
    if (!status)
        status = keyed_reseal(st, suite, &done, err);
    if (!status && done.failed > 0)
        status = SESSILE_IO;
    sessile_store_close(st);
    return status;
}

static sessile_status reseal(sessile_error *err)
{
    return reseal_to(NULL, err);
}

static sessile_status reseal_xchacha(sessile_error *err)
{
    return reseal_to("xchacha20-poly1305", err);
}

static void is_all_new(void)
{
    sessile_error err;
    sessile_keys *keys;
    sessile_store *st = keyed_open(root, KEYED_OLD);
    must(sessile_keys_status(st, &keys, &err), &err);
    assert_int_equal(keys->epoch_count, 1);
    assert_int_equal(keys->old_logs, 0);
    assert_int_equal(keys->users, 2);
    sessile_free(keys);
    sessile_store_close(st);
    all_is_there();
}

static sessile_status forget(sessile_error *err)
{
    sessile_store *st;
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, err);
    if (!status)
        status = sessile_forget(st, sessile_text(KEYED_USER), NULL, err);
    sessile_store_close(st);
    return status;
}

/* Those of others are there; the user's all are or none is, or cannot be told. */
static void others_are_there(void)
{
    sessile_store *st = keyed_open(root, KEYED_OLD);
    sessile_error err;
    char *text, *now = keyed_read_all(st, KEYED_USER);
    assert_string_equal(now, of_others);
    free(now);
    sessile_status a = keyed_read(st, "a", KEYED_USER, &text, &err);
    free(text);
    sessile_status b = keyed_read(st, "b", KEYED_USER, &text, &err);
    free(text);
    assert_int_equal(a, b);
    assert_true(a == SESSILE_OK || a == SESSILE_SEALED || a == SESSILE_DAMAGED);
    sessile_store_close(st);
}

static void user_is_gone(void)
{
    char *text;
    sessile_error err;
    sessile_store *st = keyed_open(root, KEYED_OLD);
    assert_int_equal(keyed_read(st, "a", KEYED_USER, &text, &err), SESSILE_SEALED);
    assert_int_equal(keyed_files_with(root, "sessile_user"), 1); /* the other user's */
    sessile_store_close(st);
    others_are_there();
}

static void with_a_session_of_the_new_epoch(void);

/* What the user was given: a grant, an access key, a lock. */
static void with_access(void)
{
    sessile_store *st = keyed_open(root, KEYED_OLD);
    sessile_access_key_options k;
    sessile_grant_options g;
    sessile_error err;
    char *key;
    sessile_grant_options_init(&g);
    sessile_access_key_options_init(&k);
    g.user = k.user = sessile_text(KEYED_USER);
    g.role = "viewer";
    must(sessile_store_guard(st, NULL, &err), &err);
    must(sessile_grant(st, &g, NULL, &err), &err);
    must(sessile_access_key(st, &k, &key, &err), &err);
    must(sessile_access_lock(st, k.user, sessile_text(NULL), sessile_text("left"), &err),
         &err);
    sessile_free(key);
    sessile_store_close(st);
}

/* The user's sessions and memory, and what the agent keeps for all of one of them. */
static void with_memories(void)
{
    with_a_session_of_the_new_epoch();
    with_access();
    sessile_store *st = keyed_open(root, KEYED_OLD);
    sessile_memory_from from = {.session = sessile_text("a"),
                                .agent = sessile_text("main"),
                                .first = 1,
                                .last = 1};
    sessile_memory_options options;
    sessile_memory_write_entry e;
    sessile_memory *m;
    sessile_error err;
    sessile_memory_options_init(&options);
    sessile_memory_write_init(&e);
    e.value = sessile_text("of all " KEYED_CANARY);
    e.from = &from;
    e.from_count = 1;
    must(sessile_memory_open(&m, st, &options, &err), &err);
    must(sessile_memory_write(m, &e, 1, NULL, &err), &err);
    sessile_memory_close(m);
    m = memory_of(st, KEYED_USER);
    remember(m, NULL, "of one " KEYED_CANARY, NULL);
    sessile_memory_close(m);
    sessile_store_close(st);
}

static sessile_receipt last; /* of the erasure that was made last */

static sessile_status erase(sessile_error *err)
{
    sessile_store *st;
    sessile_receipt *receipt = NULL;
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, err);
    if (!status)
        status = sessile_user_erase(st, sessile_text(KEYED_USER), NULL, &receipt, err);
    if (receipt)
        last = *receipt;
    sessile_free(receipt);
    sessile_store_close(st);
    return status;
}

/* Wherever the first one ended, the second one says what went in all; or that the first
 * one was completed. */
static void receipt_counts_both(void)
{
    const uint64_t counts[] = {last.sessions, last.memories, last.shared_entries,
                               last.consents, last.grants,   last.access_keys,
                               last.locks};
    const uint64_t all[] = {3, 1, 1, 1, 1, 1, 1}, none[7] = {0};
    if (memcmp(counts, last.before_ms ? none : all, sizeof counts))
        fail_msg("%d sessions, %d memories, %d entries, %d consents, %d grants, %d keys, "
                 "%d locks, before %d",
                 (int)counts[0], (int)counts[1], (int)counts[2], (int)counts[3],
                 (int)counts[4], (int)counts[5], (int)counts[6], last.before_ms != 0);
    completed_before += last.before_ms != 0;
}

/* Those of others are there; each of the user's may be gone before the next one is. */
static void others_are_untouched(void)
{
    sessile_store *st = keyed_open(root, KEYED_OLD);
    char *now = keyed_read_all(st, KEYED_USER);
    assert_string_equal(now, of_others);
    free(now);
    sessile_store_close(st);
}

static void user_is_erased(void)
{
    sessile_store *st = keyed_open(root, KEYED_OLD);
    sessile_erase_options o = {.dry_run = 1};
    sessile_receipt *left;
    sessile_memory_options options;
    sessile_memory *m;
    sessile_error err;
    receipt_counts_both();
    must(sessile_user_erase(st, sessile_text(KEYED_USER), &o, &left, &err), &err);
    assert_int_equal(left->sessions + left->memories + left->shared_entries +
                         left->grants + left->access_keys + left->locks,
                     0);
    assert_true(left->before_ms > 0);
    sessile_free(left);
    sessile_memory_options_init(&options);
    must(sessile_memory_open(&m, st, &options, &err), &err);
    expect_text(found(m, "of all"), "");
    sessile_memory_close(m);
    assert_int_equal(keyed_files_with(root, "sessile_user"), 1); /* the other user's */
    assert_int_equal(keyed_files_with(root, "\"user\":\"user-"), 1);
    sessile_store_close(st);
    others_are_untouched();
}

static sessile_status init(sessile_error *err)
{
    sessile_store_options options;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_DEFAULT;
    sessile_status status = sessile_keys_init(root, &options, err);
    return status == SESSILE_EXISTS ? SESSILE_OK : status;
}

static void no_keyring_without_its_key(void)
{
    char keyring[700];
    sessile_error err;
    sessile_store_options options;
    sessile_store *st;
    snprintf(keyring, sizeof keyring, "%s/keyring", root);
    if (access(keyring, F_OK) == 0) {
        sessile_store_options_init(&options);
        must(sessile_open(&st, root, &options, &err), &err);
        sessile_store_close(st);
    }
}

static void is_initialised(void)
{
    char keyring[700];
    snprintf(keyring, sizeof keyring, "%s/keyring", root);
    assert_int_equal(access(keyring, F_OK), 0);
    no_keyring_without_its_key();
}

/* ------------------------------------------------------------------ ended at each step
 */

static const job *current;
static unsigned long killed, failed_once;

static void begin_again(void)
{
    char command[1500], config[700];
    os_current = &lazy;
    keyed_copy(pristine, root);
    snprintf(config, sizeof config, "%s/config", folder);
    setenv("XDG_CONFIG_HOME", config, 1);
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", key_file, config);
    assert_int_equal(system(command), 0);
}

static void run_again_and_look(void)
{
    sessile_error err;
    os_current = &lazy;
    current->check();
    must(current->run(&err), &err);
    current->finished();
}

static void at_every_step(const job *j)
{
    sessile_error err;
    current = j;
    faulty_init(&f, &lazy);
    for (uint64_t n = 0;; n++) {
        begin_again();
        os_current = &f.table;
        faulty_stop(&f, n, 1);
        sessile_status status = j->run(&err);
        uint64_t hits = f.hits;
        faulty_none(&f);
        if (hits == 0) {
            must(status, &err);
            assert_true(n > 2);
            run_again_and_look();
            break;
        }
        killed++;
        run_again_and_look();
    }
    /* and changing calls refused once, by a device that is full */
    for (uint64_t n = 0;; n += getenv("SESSILE_SOAK") ? 1 : 3) {
        begin_again();
        os_current = &f.table;
        faulty_fail(&f, FAULTY_CHANGING, n, ENOSPC);
        (void)j->run(&err);
        uint64_t hits = f.hits;
        faulty_none(&f);
        if (hits == 0)
            break;
        failed_once++;
        run_again_and_look();
    }
    assert_int_equal(f.descriptors, 0);
    faulty_deinit(&f);
}

static void with_two_epochs(void)
{
    sessile_error err;
    must(rotate(&err), &err);
}

/* KEYED_USER has secrets of two epochs. */
static void with_a_session_of_the_new_epoch(void)
{
    sessile_error err;
    with_two_epochs();
    sessile_store *st = keyed_open(root, KEYED_OLD);
    sessile_session_options options = named("newer");
    sessile_session *s;
    options.user = sessile_text(KEYED_USER);
    must(sessile_create(&s, st, &options, &err), &err);
    sessile_session_close(s, NULL);
    sessile_store_close(st);
}

static void interrupted(void **state)
{
    const job *j = *state;
    if (j->prepare)
        j->prepare();
    keyed_copy(root, pristine);
    at_every_step(j);
}

static void init_interrupted(void **state)
{
    const job j = {"init", init, no_keyring_without_its_key, is_initialised, NULL};
    char command[700];
    (void)state;
    unsetenv("SESSILE_KEY");
    snprintf(command, sizeof command, "mkdir -m 700 '%s'", pristine);
    assert_int_equal(system(command), 0);
    at_every_step(&j);
    printf("# figure: rotations killed and recovered = %lu\n", killed);
    printf("# figure: changes of keys refused once by the device and recovered = %lu\n",
           failed_once);
}

/* ------------------------------------------------------------------ in between */

static uint64_t when; /* the number of the changing call before which it is done */
static sessile_status (*meanwhile)(sessile_error *err);
static pthread_t other;
static int came_to_it;
static atomic_int other_is_done;

static void *do_it(void *arg)
{
    sessile_error *err = arg;
    sessile_status status = meanwhile(err);
    atomic_store(&other_is_done, 1);
    return !status ? NULL : err;
}

/* In a thread of its own, with handles of its own: it may have to wait for what is held
 * just now, and then is done a little later. */
static void do_it_now(void *arg, faulty_kind kind, uint64_t number)
{
    (void)kind;
    if (number != when || came_to_it)
        return;
    came_to_it = 1;
    os_current = &lazy;
    atomic_store(&other_is_done, 0);
    assert_int_equal(pthread_create(&other, NULL, do_it, arg), 0);
    for (int i = 0; i < 100 && !atomic_load(&other_is_done); i++)
        usleep(2000);
}

/* Runs `outer`, with `inner` done by somebody else before its changing call n; 0: it has
 * no such call. */
static int with_between(sessile_status (*outer)(sessile_error *err),
                        sessile_status (*inner)(sessile_error *err), uint64_t n,
                        sessile_status *out, sessile_error *err)
{
    begin_again();
    faulty_none(&f);
    when = n;
    meanwhile = inner;
    came_to_it = 0;
    sessile_error why;
    void *failed = NULL;
    f.before = do_it_now;
    f.before_arg = &why;
    os_current = &f.table;
    *out = outer(err);
    f.before = NULL;
    if (came_to_it) {
        pthread_join(other, &failed);
        if (failed)
            must(why.code, &why);
    }
    os_current = &lazy; /* which the other thread reads until its end */
    return came_to_it;
}

static void begin_between(void)
{
    with_two_epochs();
    keyed_copy(root, pristine);
    faulty_init(&f, &lazy);
}

/* Both sessions of KEYED_USER are out of reach, whatever was done before step n. */
static void user_is_forgotten(uint64_t n)
{
    char *text;
    sessile_error err;
    sessile_store *st = keyed_open(root, KEYED_OLD);
    for (int i = 0; i < 2; i++) {
        sessile_status got = keyed_read(st, i ? "b" : "a", KEYED_USER, &text, &err);
        if (got != SESSILE_SEALED)
            fail_msg("step %d, session %d: %s", (int)n, i, sessile_status_name(got));
    }
    sessile_store_close(st);
    others_are_there();
}

/* A copy of a log that was begun before brings nothing back. */
static void user_forgotten_during_a_reseal_stays_forgotten(void **state)
{
    sessile_error err;
    sessile_status status;
    uint64_t n;
    (void)state;
    begin_between();
    for (n = 0; with_between(reseal, forget, n, &status, &err); n++) {
        user_is_forgotten(n);
        must(reseal(&err), &err);
        others_are_there();
    }
    assert_true(n > 20);
    printf("# figure: steps of resealing at which a user was forgotten = %lu\n",
           (unsigned long)n);
    faulty_deinit(&f);
}

/* The same the other way round: what is resealed meanwhile is found and forgotten. */
static void user_stays_forgotten_after_a_reseal_meanwhile(void **state)
{
    sessile_error err;
    sessile_status status;
    uint64_t n;
    (void)state;
    begin_between();
    for (n = 0; with_between(forget, reseal, n, &status, &err); n++) {
        must(status, &err);
        user_is_forgotten(n);
    }
    assert_true(n > 2);
    faulty_deinit(&f);
}

static sessile_status rotate_and_reseal(sessile_error *err)
{
    sessile_status status = rotate(err);
    return !status ? reseal(err) : status;
}

static sessile_status make_one(sessile_error *err)
{
    sessile_store *st;
    sessile_session *s;
    sessile_session_options options = named("made");
    sessile_status status = keyed_try(&st, root, KEYED_OLD, NULL, err);
    options.user = sessile_text("dan");
    if (!status)
        status = sessile_create(&s, st, &options, err);
    if (!status) {
        keyed_say(s, "safe");
        sessile_session_close(s, NULL);
    }
    sessile_store_close(st);
    return status;
}

/* No log is left under an epoch that is dropped just then. */
static void log_made_during_a_reseal_can_be_read(void **state)
{
    sessile_error err;
    sessile_status status;
    uint64_t n;
    (void)state;
    keyed_copy(root, pristine);
    faulty_init(&f, &lazy);
    for (n = 0; with_between(make_one, rotate_and_reseal, n, &status, &err); n++) {
        char *text;
        if (!status) {
            sessile_store *st = keyed_open(root, KEYED_OLD);
            must(keyed_read(st, "made", "dan", &text, &err), &err);
            assert_non_null(strstr(text, "safe"));
            free(text);
            sessile_store_close(st);
        } else {
            fail_msg("step %d: %s", (int)n, err.message);
        }
        all_is_there();
    }
    assert_true(n > 5);
    faulty_deinit(&f);
}

static job jobs[] = {
    {"rotate", rotate, all_is_there, has_two_epochs_or_more, NULL},
    {"secret", change_secret, all_is_there, opens_by_the_file_alone, NULL},
    {"reseal", reseal, all_is_there, is_all_new, with_two_epochs},
    {"suite", reseal_xchacha, all_is_there, is_all_new, NULL},
    {"forget", forget, others_are_there, user_is_gone, with_a_session_of_the_new_epoch},
    {"erase", erase, others_are_untouched, user_is_erased, with_memories},
};

#define INTERRUPTED(name, i)                           \
    {                                                  \
        name, interrupted, set_up, tear_down, &jobs[i] \
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        INTERRUPTED("rotation_interrupted", 0),
        INTERRUPTED("change_of_the_secret_interrupted", 1),
        INTERRUPTED("reseal_interrupted", 2),
        INTERRUPTED("change_of_the_suite_interrupted", 3),
        INTERRUPTED("forgetting_interrupted", 4),
        INTERRUPTED("erasure_interrupted", 5),
        TEST(init_interrupted),
        TEST(user_forgotten_during_a_reseal_stays_forgotten),
        TEST(user_stays_forgotten_after_a_reseal_meanwhile),
        TEST(log_made_during_a_reseal_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
