/*
 * test_faulty.c: the table that fails on purpose fails where it was told to, and nowhere
 * else. Tests that hang on it prove nothing if it does not strike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/faulty.h"
#include "support/logs.h"

#include <cmocka.h> /* after the engine's: its fail() is a macro */

typedef struct ground {
    char folder[256];
    faulty f;
    const os_table *os; /* the faulty one */
    int dir, fd;
} ground;

static int set_up(void **state)
{
    static ground g;
    memset(&g, 0, sizeof g);
    scratch_make(g.folder);
    faulty_init(&g.f, &os_posix);
    g.os = &g.f.table;
    g.dir = g.os->open_at(g.os->ud, -1, g.folder, OS_READ | OS_DIRECTORY);
    g.fd = g.os->open_at(g.os->ud, g.dir, "a", OS_READ | OS_WRITE | OS_CREATE_NEW);
    assert_true(g.dir >= 0 && g.fd >= 0);
    faulty_none(&g.f);
    *state = &g;
    return 0;
}

static int tear_down(void **state)
{
    ground *g = *state;
    faulty_none(&g->f);
    g->os->close(g->os->ud, g->fd);
    g->os->close(g->os->ud, g->dir);
    assert_int_equal(g->f.descriptors, 0);
    assert_int_equal(g->f.locks, 0);
    faulty_deinit(&g->f);
    scratch_remove(g->folder);
    return 0;
}

static int64_t put(ground *g, const char *text, uint64_t at)
{
    return g->os->pwrite(g->os->ud, g->fd, text, strlen(text), at);
}

static uint64_t size_of(ground *g)
{
    os_stat_info st;
    assert_int_equal(os_posix.stat_fd(NULL, g->fd, &st), 0);
    return st.size;
}

static void the_nth_call_of_a_kind_fails_once(void **state)
{
    ground *g = *state;
    faulty_fail(&g->f, FAULTY_BIT(FAULTY_WRITE), 1, ENOSPC);
    assert_int_equal(put(g, "one", 0), 3);
    assert_int_equal(g->os->sync_data(g->os->ud, g->fd), 0);
    assert_int_equal(put(g, "two", 3), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(size_of(g), 3);
    assert_int_equal(put(g, "two", 3), 3);
    assert_int_equal(g->f.hits, 1);
    assert_int_equal(g->f.struck, FAULTY_WRITE);
    assert_int_equal(g->f.counts[FAULTY_WRITE], 3);
    assert_int_equal(g->f.all, 4);
}

static void a_call_fails_for_ever_and_a_plan_can_be_lifted(void **state)
{
    ground *g = *state;
    faulty_plan(&g->f, FAULTY_SYNCS, 0, UINT64_MAX, FAULTY_REFUSED, EIO);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(g->os->sync_data(g->os->ud, g->fd), -1);
        assert_int_equal(g->os->sync_all(g->os->ud, g->dir), -1);
        assert_int_equal(errno, EIO);
    }
    assert_int_equal(g->f.hits, 6);
    faulty_none(&g->f);
    assert_int_equal(g->os->sync_data(g->os->ud, g->fd), 0);
}

static void a_call_is_short_torn_or_lies(void **state)
{
    ground *g = *state;
    char out[8];
    os_stat_info st;
    faulty_plan(&g->f, FAULTY_ALL, 0, 1, FAULTY_SHORT, 0);
    assert_int_equal(put(g, "abcdef", 0), 3);
    faulty_plan(&g->f, FAULTY_ALL, 0, 1, FAULTY_TORN, EIO);
    assert_int_equal(put(g, "ghij", 3), -1);
    assert_int_equal(size_of(g), 5);
    faulty_plan(&g->f, FAULTY_ALL, 0, 1, FAULTY_SHORT, 0);
    assert_int_equal(g->os->pread(g->os->ud, g->fd, out, 4, 0), 2);
    faulty_plan(&g->f, FAULTY_ALL, 0, 1, FAULTY_LIED, EIO);
    assert_int_equal(g->os->rename_new(g->os->ud, g->dir, "a", "b"), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(g->os->stat_at(g->os->ud, g->dir, "b", &st), 0);
    assert_int_equal(g->os->stat_at(g->os->ud, g->dir, "a", &st), -1);
    assert_int_equal(g->os->rename_new(g->os->ud, g->dir, "b", "a"), 0);
}

static void after_a_stop_nothing_changes_any_more(void **state)
{
    ground *g = *state;
    char out[8];
    os_stat_info st;
    faulty_stop(&g->f, 1, 0);
    assert_int_equal(put(g, "one", 0), 3);
    assert_int_equal(put(g, "two", 3), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(g->os->truncate(g->os->ud, g->fd, 0), -1);
    assert_int_equal(g->os->sync_data(g->os->ud, g->fd), -1);
    assert_int_equal(g->os->sync_all(g->os->ud, g->dir), -1);
    assert_int_equal(g->os->mkdir_at(g->os->ud, g->dir, "d"), -1);
    assert_int_equal(g->os->rename_new(g->os->ud, g->dir, "a", "b"), -1);
    assert_int_equal(g->os->rename_over(g->os->ud, g->dir, "a", "b"), -1);
    assert_int_equal(g->os->link_at(g->os->ud, g->dir, "a", "b"), -1);
    assert_int_equal(g->os->unlink_at(g->os->ud, g->dir, "a"), -1);
    assert_int_equal(g->os->open_at(g->os->ud, g->dir, "b", OS_WRITE | OS_CREATE_NEW),
                     -1);
    assert_int_equal(size_of(g), 3);
    assert_int_equal(g->os->pread(g->os->ud, g->fd, out, 3, 0), 3);
    assert_int_equal(g->os->stat_at(g->os->ud, g->dir, "a", &st), 0);
    faulty_stop(&g->f, 0, 1);
    assert_int_equal(g->os->pread(g->os->ud, g->fd, out, 3, 0), -1);
    assert_int_equal(g->os->stat_at(g->os->ud, g->dir, "a", &st), -1);
}

static void descriptors_and_locks_are_counted(void **state)
{
    ground *g = *state;
    const os_table *os = g->os;
    assert_int_equal(g->f.descriptors, 2);
    int other = os->open_at(os->ud, g->dir, "a", OS_READ | OS_WRITE);
    assert_int_equal(g->f.descriptors, 3);
    assert_int_equal(os->lock(os->ud, g->fd, OS_LOCK_EXCLUSIVE), 0);
    assert_int_equal(os->lock(os->ud, other, OS_LOCK_SHARED), -1);
    assert_int_equal(g->f.locks, 1);
    assert_int_equal(os->lock(os->ud, g->fd, OS_LOCK_NONE), 0);
    assert_int_equal(g->f.locks, 0);
    assert_int_equal(os->lock(os->ud, other, OS_LOCK_SHARED), 0);
    assert_int_equal(os->close(os->ud, other), 0);
    assert_int_equal(g->f.locks, 0);
    faulty_fail(&g->f, FAULTY_BIT(FAULTY_OPEN), 0, EMFILE);
    assert_int_equal(os->open_at(os->ud, g->dir, "a", OS_READ), -1);
    assert_int_equal(errno, EMFILE);
    assert_int_equal(g->f.descriptors, 2);
}

static void note(void *arg, faulty_kind kind, uint64_t number)
{
    char *notes = arg;
    snprintf(notes + strlen(notes), 64 - strlen(notes), "%d%s ", (int)number,
             faulty_names[kind]);
}

static void whoever_asked_is_told_before_each_change(void **state)
{
    ground *g = *state;
    char notes[64] = "", out[4];
    g->f.before = note;
    g->f.before_arg = notes;
    put(g, "x", 0);
    g->os->pread(g->os->ud, g->fd, out, 1, 0);
    g->os->sync_data(g->os->ud, g->fd);
    g->f.before = NULL;
    assert_string_equal(notes, "0write 1sync_data ");
}

static void every_kind_has_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < FAULTY_KINDS; i++)
        assert_non_null(faulty_names[i]);
    assert_string_equal(faulty_names[FAULTY_SYNC_ALL], "sync_all");
    assert_string_equal(faulty_names[FAULTY_RENAME_NEW], "rename_new");
    assert_string_equal(faulty_names[FAULTY_LIST], "list");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_nth_call_of_a_kind_fails_once),
        TEST(a_call_fails_for_ever_and_a_plan_can_be_lifted),
        TEST(a_call_is_short_torn_or_lies),
        TEST(after_a_stop_nothing_changes_any_more),
        TEST(descriptors_and_locks_are_counted),
        TEST(whoever_asked_is_told_before_each_change),
        TEST(every_kind_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
