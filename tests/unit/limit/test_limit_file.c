/*
 * test_limit_file.c: windows in `.limits`: processes that are killed, threads, a fork;
 * damage, a full disk, a folder that may not be written, a lock that is not given back.
 *
 * Own stores: it is about the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limit/places.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/limits.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

typedef struct scene {
    char folder[256], url[300], path[280]; /* of .limits */
    store_core *store;
    limiter *limiter;
    uint64_t who;
} scene;

/* rate NULL: without store and limiter, so that a test can set os_current. */
static void scene_open(scene *s, const char *rate)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%s/limits.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->url, sizeof s->url, "file:%s", s->folder);
    snprintf(s->path, sizeof s->path, "%s/.limits", s->folder);
    s->store = limit_store(s->url);
    s->limiter = rate ? limit_opened(s->store, rate, NULL, 0) : NULL;
    s->who = rate ? limit_somebody(s->limiter, "ann") : 0;
}

/* As another process would see the same store. */
static void scene_again(scene *s, const char *rate)
{
    limiter_close(s->limiter);
    s->limiter = limit_opened(s->store, rate, NULL, 0);
    s->who = limit_somebody(s->limiter, "ann");
}

static void scene_close(scene *s)
{
    char command[300];
    limiter_close(s->limiter);
    store_handle_close(s->store);
    snprintf(command, sizeof command, "rm -rf '%s'", s->folder);
    assert_int_equal(system(command), 0);
}

static int let_through(limiter *l, uint64_t who, int tries)
{
    int n = 0;
    for (int i = 0; i < tries; i++)
        n += limit_let(l, who, NULL);
    return n;
}

static void lost_says(limiter *l, const char *part)
{
    sessile_error why;
    assert_int_equal(limiter_lost(l, &why), 1);
    assert_says(&why, part);
    assert_int_equal(limiter_lost(l, &why), 0);
}

static void is_not_lost(limiter *l)
{
    sessile_error why;
    assert_int_equal(limiter_lost(l, &why), 0);
}

/* ------------------------------------------------------------------ together */

static void handles_share_one_window(void **state)
{
    scene s;
    struct stat st;
    (void)state;
    scene_open(&s, "10/hour");
    limiter *other = limit_opened(s.store, "10/hour", NULL, 0);
    assert_int_equal(let_through(s.limiter, s.who, 6), 6);
    assert_int_equal(let_through(other, s.who, 10), 4);
    assert_int_equal(let_through(s.limiter, s.who, 10), 0);
    limiter_close(other);
    scene_again(&s, "10/hour");
    assert_int_equal(let_through(s.limiter, s.who, 10), 0);
    is_not_lost(s.limiter);
    assert_int_equal(stat(s.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(st.st_size <= 65536 * 128);
    scene_close(&s);
}

/* What the file refuses is taken back in the handle: there is room when there is. */
static void what_another_handle_refuses_is_not_counted_here(void **state)
{
    scene s;
    limit_clock clock;
    (void)state;
    limit_clock_init(&clock);
    os_current = &clock.table;
    scene_open(&s, "4/minute");
    limiter *other = limit_opened(s.store, "4/minute", NULL, 0);
    assert_int_equal(let_through(other, s.who, 4), 4);
    clock.us += UINT64_C(30000000);
    assert_int_equal(let_through(s.limiter, s.who, 100), 0);
    clock.us += UINT64_C(32000000);
    assert_int_equal(let_through(s.limiter, s.who, 100), 4);
    limiter_close(other);
    scene_close(&s);
    os_current = &os_posix;
}

static void processes_that_are_killed_are_N_in_total(void **state)
{
    scene s;
    limit_calls calls = {0};
    (void)state;
    scene_open(&s, "20/second");
    limit_processes(s.url, "20/second", NULL, 10, 41, 4000, &calls, NULL, NULL);
    print_message("# figure: calls let through by 10 killed processes = %zu\n",
                  calls.count);
    limit_calls_judge(&calls, limit_rate_of("20/second"));
    limit_calls_free(&calls);
    scene_close(&s);
}

static void *try_often(void *arg)
{
    scene *s = arg;
    return (void *)(intptr_t)let_through(s->limiter, s->who, 2000);
}

static void threads_are_N_in_total(void **state)
{
    pthread_t threads[4];
    scene s;
    intptr_t total = 0;
    (void)state;
    scene_open(&s, "500/hour");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, try_often, &s), 0);
    for (int i = 0; i < 4; i++) {
        void *n;
        pthread_join(threads[i], &n);
        total += (intptr_t)n;
    }
    assert_int_equal(total, 500);
    is_not_lost(s.limiter);
    scene_close(&s);
}

static void a_child_counts_with_its_parent(void **state)
{
    scene s;
    int status;
    (void)state;
    scene_open(&s, "10/hour");
    assert_int_equal(let_through(s.limiter, s.who, 3), 3);
    pid_t pid = fork();
    if (pid == 0)
        _exit(let_through(s.limiter, s.who, 5));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_int_equal(let_through(s.limiter, s.who, 100), 2);
    scene_close(&s);
}

/* Only a call that may be the first of a store makes its folder. */
static void a_folder_that_is_not_there_is_made_for_calls_that_make_a_store(void **state)
{
    scene s;
    struct stat st;
    char folder[280], path[300];
    sessile_error err = {0};
    limit_place *place;
    limit_ask ask = {.key = 7, .rate = {2, 60000}};
    const hash_key key = {{1}};
    (void)state;
    scene_open(&s, NULL);
    snprintf(folder, sizeof folder, "%.200s/a/b", s.folder);
    snprintf(path, sizeof path, "%s/.limits", folder);
    must(limit_file_open(&place, path, &key, &os_posix, &allocator_default, &err), &err);
    assert_int_equal(place->take(place, &ask, &err), LIMIT_NOT_YET);
    assert_int_not_equal(stat(folder, &st), 0);
    ask.makes = 1;
    assert_int_equal(place->take(place, &ask, &err), LIMIT_COUNTED);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(path, &st), 0);
    ask.makes = 0;
    assert_int_equal(place->take(place, &ask, &err), LIMIT_COUNTED);
    assert_int_equal(place->take(place, &ask, &err), LIMIT_FULL);
    place->free(place);
    scene_close(&s);
}

/* ------------------------------------------------------------------ damage */

static void write_over(const char *path, const void *data, size_t size, off_t at)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, data, size, at), (ssize_t)size);
    close(fd);
}

/* Each bit of the record: the window is as it was, or fresh; never an error. */
static void damaged_records_are_fresh_windows(void **state)
{
    scene s;
    char record[128], empty[128] = {0};
    off_t at = -1;
    (void)state;
    scene_open(&s, "3/hour");
    assert_int_equal(let_through(s.limiter, s.who, 9), 3);
    int fd = open(s.path, O_RDONLY);
    for (off_t i = 0; at < 0 && pread(fd, record, sizeof record, i) == sizeof record;
         i += (off_t)sizeof record)
        if (memcmp(record, empty, sizeof record) != 0)
            at = i;
    close(fd);
    assert_true(at >= 0);
    for (size_t bit = 0; bit < 8 * sizeof record; bit++) {
        char changed[128];
        memcpy(changed, record, sizeof record);
        changed[bit / 8] = (char)(changed[bit / 8] ^ 1 << bit % 8);
        write_over(s.path, changed, sizeof changed, at);
        scene_again(&s, "3/hour");
        assert_int_equal(let_through(s.limiter, s.who, 9), 3);
        is_not_lost(s.limiter);
        /* an undamaged window of the same file is respected */
        write_over(s.path, record, sizeof record, at);
        scene_again(&s, "3/hour");
        assert_int_equal(let_through(s.limiter, s.who, 1), 0);
    }
    scene_close(&s);
}

static void garbage_and_short_files_are_fresh_windows(void **state)
{
    scene s;
    static unsigned char garbage[65536 * 128];
    (void)state;
    scene_open(&s, "3/hour");
    for (int round = 0; round < 20; round++) {
        size_t size = round < 3 ? sizeof garbage : (size_t)(rand() % (int)sizeof garbage);
        for (size_t i = 0; i < size; i++)
            garbage[i] = (unsigned char)rand();
        int fd = open(s.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, garbage, size), (ssize_t)size);
        close(fd);
        scene_again(&s, "3/hour");
        for (int i = 0; i < 50; i++) {
            char name[32];
            snprintf(name, sizeof name, "%d %d", round, i);
            assert_int_equal(let_through(s.limiter, limit_somebody(s.limiter, name), 9),
                             3);
        }
        is_not_lost(s.limiter);
        /* cut while it is open */
        assert_int_equal(truncate(s.path, 100), 0);
        assert_int_equal(let_through(s.limiter, limit_somebody(s.limiter, "cut"), 9), 3);
        is_not_lost(s.limiter);
    }
    scene_close(&s);
}

/* A file that is removed or replaced is found again within a second. */
static void a_file_that_was_removed_is_made_again(void **state)
{
    scene s;
    struct stat st;
    limit_clock clock;
    (void)state;
    limit_clock_init(&clock);
    os_current = &clock.table;
    scene_open(&s, "4/hour");
    assert_int_equal(let_through(s.limiter, s.who, 1), 1);
    assert_int_equal(unlink(s.path), 0);
    clock.us += UINT64_C(1000000);
    assert_int_equal(let_through(s.limiter, s.who, 1), 1);
    assert_int_equal(stat(s.path, &st), 0);
    limiter *other = limit_opened(s.store, "4/hour", NULL, 0);
    assert_int_equal(let_through(other, s.who, 9), 3); /* the first was lost with it */
    assert_int_equal(let_through(s.limiter, s.who, 9), 0);
    limiter_close(other);
    scene_close(&s);
    os_current = &os_posix;
}

static void what_is_no_file_of_ours_is_not_used(void **state)
{
    scene s;
    char command[700], other[300];
    static const char *const make[] = {"mkdir '%s'", "ln -s '%s.other' '%s'",
                                       "mkfifo -m 600 '%s'",
                                       "touch '%s'; chmod 644 '%s'"};
    static const char *const says[] = {"cannot open", "cannot open",
                                       "no file of this user", "no file of this user"};
    (void)state;
    scene_open(&s, NULL);
    snprintf(other, sizeof other, "%s.other", s.path);
    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        snprintf(command, sizeof command, "rm -rf '%s'", s.path);
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof command, make[i], s.path, s.path);
        assert_int_equal(system(command), 0);
        scene_again(&s, "3/hour");
        assert_int_equal(let_through(s.limiter, s.who, 9), 3); /* in the handle */
        lost_says(s.limiter, says[i]);
        assert_int_not_equal(access(other, F_OK), 0);
    }
    scene_close(&s);
}

/* ------------------------------------------------------------------ faults */

static void a_full_disk_and_a_read_only_folder_leave_the_handle_s_own_window(void **state)
{
    static const struct {
        unsigned kinds;
        int error;
        const char *says;
    } faults[] = {{FAULTY_BIT(FAULTY_WRITE), ENOSPC, "No space left"},
                  {FAULTY_BIT(FAULTY_CREATE), ENOSPC, "No space left"},
                  {FAULTY_BIT(FAULTY_CREATE), EROFS, "Read-only file system"},
                  {FAULTY_BIT(FAULTY_CREATE), EACCES, "Permission denied"}};
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        scene s;
        faulty f;
        limit_clock clock;
        limit_clock_init(&clock);
        faulty_init(&f, &clock.table);
        os_current = &f.table;
        scene_open(&s, "5/minute");
        faulty_plan(&f, faults[i].kinds, 0, UINT64_MAX, FAULTY_REFUSED, faults[i].error);
        assert_int_equal(let_through(s.limiter, s.who, 9), 5);
        assert_true(f.hits > 0);
        lost_says(s.limiter, faults[i].says);
        uint64_t hits = f.hits; /* for a second it is not tried again */
        assert_int_equal(let_through(s.limiter, limit_somebody(s.limiter, "bob"), 9), 5);
        assert_int_equal(f.hits, hits);
        /* there is room again, and the file is used again */
        faulty_none(&f);
        clock.us += UINT64_C(62000000);
        assert_int_equal(let_through(s.limiter, s.who, 2), 2);
        is_not_lost(s.limiter);
        scene_again(&s, "5/minute");
        assert_int_equal(let_through(s.limiter, s.who, 9), 3);
        scene_close(&s);
        os_current = &os_posix;
        assert_int_equal(f.descriptors, 0);
        faulty_deinit(&f);
    }
}

/* Each system call fails once: the call is counted, or refused by the rate. */
static void every_system_call_may_fail(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, EMFILE, EACCES};
    unsigned long long struck = 0;
    (void)state;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        for (uint64_t at = 0; at < 12; at++) {
            scene s;
            faulty f;
            faulty_init(&f, &os_posix);
            os_current = &f.table;
            scene_open(&s, "4/hour");
            faulty_fail(&f, FAULTY_ALL, at, errors[e]);
            assert_int_equal(let_through(s.limiter, s.who, 9), 4);
            struck += f.hits;
            faulty_none(&f);
            scene_close(&s);
            os_current = &os_posix;
            assert_int_equal(f.descriptors, 0);
            faulty_deinit(&f);
        }
    }
    assert_true(struck > 40);
}

/* Somebody who was stopped holds the lock: callers wait for a second, and go on. */
static void a_lock_that_is_not_given_back_is_not_waited_for(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "4/hour");
    assert_int_equal(let_through(s.limiter, s.who, 1), 1);
    int fd = open(s.path, O_RDWR);
    assert_int_equal(os_posix.lock(NULL, fd, OS_LOCK_EXCLUSIVE), 0);
    assert_int_equal(let_through(s.limiter, s.who, 9), 3);
    lost_says(s.limiter, "has kept");
    close(fd);
    scene_close(&s);
}

static void deny_refuses_what_cannot_be_counted(void **state)
{
    scene s;
    faulty f;
    sessile_error err = {0};
    (void)state;
    faulty_init(&f, &os_posix);
    os_current = &f.table;
    scene_open(&s, NULL);
    s.limiter = limit_opened(s.store, "4/hour", NULL, 1);
    s.who = limit_somebody(s.limiter, "ann");
    faulty_plan(&f, FAULTY_BIT(FAULTY_WRITE), 0, UINT64_MAX, FAULTY_REFUSED, ENOSPC);
    for (int i = 0; i < 20; i++) {
        assert_refused(limit_take(s.limiter, LIMIT_SEARCHES, s.who, NULL, &err),
                       SESSILE_LIMIT, &err, "searches cannot be counted, and is refused");
        assert_int_equal(err.retry_ms, 0);
    }
    faulty_none(&f);
    scene_close(&s);
    os_current = &os_posix;
    faulty_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_share_one_window),
        cmocka_unit_test(what_another_handle_refuses_is_not_counted_here),
        cmocka_unit_test(processes_that_are_killed_are_N_in_total),
        cmocka_unit_test(threads_are_N_in_total),
        cmocka_unit_test(a_child_counts_with_its_parent),
        cmocka_unit_test(a_folder_that_is_not_there_is_made_for_calls_that_make_a_store),
        cmocka_unit_test(damaged_records_are_fresh_windows),
        cmocka_unit_test(garbage_and_short_files_are_fresh_windows),
        cmocka_unit_test(a_file_that_was_removed_is_made_again),
        cmocka_unit_test(what_is_no_file_of_ours_is_not_used),
        cmocka_unit_test(
            a_full_disk_and_a_read_only_folder_leave_the_handle_s_own_window),
        cmocka_unit_test(every_system_call_may_fail),
        cmocka_unit_test(a_lock_that_is_not_given_back_is_not_waited_for),
        cmocka_unit_test(deny_refuses_what_cannot_be_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
