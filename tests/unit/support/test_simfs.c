/*
 * test_simfs.c: the simulated file system answers as a real one does, and loses in a
 * power cut what nobody synced, and nothing else.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/logs.h"
#include "support/simfs.h"

#include <cmocka.h> /* after the engine's: its fail() is a macro */

/* ---------------------------------------------------------------------- as a real one */

typedef struct script {
    const os_table *os;
    char said[8192];
    size_t size;
} script;

static void says(script *s, const char *what, int64_t result)
{
    int error = result < 0 ? errno : 0;
    s->size +=
        (size_t)snprintf(s->said + s->size, sizeof s->said - s->size, "%s: %lld %s\n",
                         what, (long long)result, error ? strerror(error) : "");
}

static int count_name(void *arg, const char *name)
{
    (void)name;
    ++*(int *)arg;
    return 0;
}

/* What a store does to a folder, and some of what it should not. */
static void play(script *s, const char *root)
{
    const os_table *os = s->os;
    void *ud = os->ud;
    char path[400], out[64] = "";
    os_stat_info st;
    int count = 0;
    int top = os->open_at(ud, -1, root, OS_READ | OS_DIRECTORY);
    says(s, "mkdir", os->mkdir_at(ud, top, "d"));
    says(s, "mkdir again", os->mkdir_at(ud, top, "d"));
    snprintf(path, sizeof path, "%s/no/such", root);
    says(s, "mkdir below nothing", os->mkdir_at(ud, -1, path));
    snprintf(path, sizeof path, "%s/d/.", root);
    int dir = os->open_at(ud, -1, path, OS_READ | OS_DIRECTORY);
    says(s, "open missing", os->open_at(ud, dir, "a", OS_READ));
    int fd = os->open_at(ud, dir, "a", OS_WRITE | OS_CREATE_NEW);
    says(s, "create again", os->open_at(ud, dir, "a", OS_WRITE | OS_CREATE_NEW));
    says(s, "write", os->pwrite(ud, fd, "hello", 5, 0));
    says(s, "write a hole", os->pwrite(ud, fd, "x", 1, 9));
    says(s, "read what is not for reading", os->pread(ud, fd, out, 5, 0));
    says(s, "close", os->close(ud, fd));
    says(s, "close again", os->close(ud, fd));
    fd = os->open_at(ud, dir, "a", OS_READ | OS_WRITE);
    says(s, "read", os->pread(ud, fd, out, 64, 0));
    says(s, "the hole is zeros", memcmp(out, "hello\0\0\0\0x", 10));
    says(s, "read past the end", os->pread(ud, fd, out, 64, 10));
    says(s, "truncate", os->truncate(ud, fd, 3));
    says(s, "grow", os->truncate(ud, fd, 6));
    says(s, "read", os->pread(ud, fd, out, 64, 0));
    says(s, "zeros again", memcmp(out, "hel\0\0\0", 6));
    int other = os->open_at(ud, dir, "a", OS_READ);
    says(s, "write what is for reading", os->pwrite(ud, other, "x", 1, 0));
    says(s, "lock", os->lock(ud, fd, OS_LOCK_EXCLUSIVE));
    says(s, "share", os->lock(ud, other, OS_LOCK_SHARED));
    says(s, "downgrade", os->lock(ud, fd, OS_LOCK_SHARED));
    says(s, "share", os->lock(ud, other, OS_LOCK_SHARED));
    says(s, "upgrade", os->lock(ud, fd, OS_LOCK_EXCLUSIVE));
    os->close(ud, other);
    says(s, "upgrade", os->lock(ud, fd, OS_LOCK_EXCLUSIVE));
    says(s, "stat", os->stat_fd(ud, fd, &st));
    says(s, "size", (int64_t)st.size);
    says(s, "mode", (int64_t)st.mode);
    uint64_t inode = st.inode;
    says(s, "link", os->link_at(ud, dir, "a", "b"));
    says(s, "link again", os->link_at(ud, dir, "a", "b"));
    says(s, "rename onto", os->rename_new(ud, dir, "a", "b"));
    says(s, "rename of one file's names", os->rename_over(ud, dir, "a", "b"));
    says(s, "both stay", os->stat_at(ud, dir, "a", &st));
    says(s, "rename", os->rename_new(ud, dir, "a", "c"));
    says(s, "rename what is gone", os->rename_over(ud, dir, "a", "c"));
    says(s, "unlink", os->unlink_at(ud, dir, "b"));
    says(s, "unlink again", os->unlink_at(ud, dir, "b"));
    says(s, "unlink a folder", os->unlink_at(ud, top, "d"));
    says(s, "stat", os->stat_at(ud, dir, "c", &st));
    says(s, "same inode", st.inode == inode);
    int new = os->open_at(ud, dir, "n", OS_WRITE | OS_CREATE_NEW);
    says(s, "rename over", os->rename_over(ud, dir, "n", "c"));
    os->stat_at(ud, dir, "c", &st);
    says(s, "other inode", st.inode != inode);
    says(s, "read the file without a name", os->pread(ud, fd, out, 3, 0));
    says(s, "open a file as a folder", os->open_at(ud, dir, "c", OS_READ | OS_DIRECTORY));
    says(s, "open below a file", os->open_at(ud, dir, "c/x", OS_READ));
    says(s, "sync", os->sync_data(ud, new));
    says(s, "sync a folder", os->sync_all(ud, dir));
    says(s, "list", os->list(ud, dir, count_name, &count));
    says(s, "names", count);
    os->close(ud, new);
    os->close(ud, fd);
    os->close(ud, dir);
    os->close(ud, top);
}

static void every_call_answers_as_the_real_system_does(void **state)
{
    static script real, simulated;
    char folder[256];
    (void)state;
    scratch_make(folder);
    real.os = &os_posix;
    play(&real, folder);
    scratch_remove(folder);
    simfs *fs = simfs_new();
    simulated.os = simfs_table(fs);
    simulated.os->mkdir_at(fs, -1, "/top");
    play(&simulated, "/top");
    assert_int_equal(simfs_descriptors(fs), 0);
    assert_int_equal(simfs_locks(fs), 0);
    simfs_free(fs);
    assert_string_equal(simulated.said, real.said);
}

/* ---------------------------------------------------------------------- power cuts */

static int make(simfs *fs, const char *name, const char *text)
{
    const os_table *os = simfs_table(fs);
    int fd = os->open_at(fs, -1, name, OS_READ | OS_WRITE | OS_CREATE_NEW);
    assert_true(fd >= 0);
    assert_int_equal(os->pwrite(fs, fd, text, strlen(text), 0), strlen(text));
    return fd;
}

static void sync_root(simfs *fs)
{
    const os_table *os = simfs_table(fs);
    int fd = os->open_at(fs, -1, "/", OS_READ | OS_DIRECTORY);
    assert_int_equal(os->sync_all(fs, fd), 0);
    os->close(fs, fd);
}

/* What a cut with these fates (letters) leaves of a file: free(); NULL: no such name. */
static char *left(const simfs *fs, const char *letters, uint64_t seed, const char *name)
{
    unsigned char fates[16];
    size_t size;
    assert_int_equal(strlen(letters), simfs_pending(fs));
    for (size_t i = 0; letters[i]; i++)
        fates[i] = (unsigned char)(strchr(simfs_letters, letters[i]) - simfs_letters);
    simfs *after = simfs_crash(fs, fates, seed);
    char *text = simfs_read(after, name, &size);
    assert_int_equal(simfs_pending(after), 0);
    simfs_free(after);
    return text;
}

static void expect(const simfs *fs, const char *letters, const char *name,
                   const char *text)
{
    char *found = left(fs, letters, 1, name);
    if (!text)
        assert_null(found);
    else
        assert_string_equal(found ? found : "(none)", text);
    free(found);
}

static void a_name_and_what_it_names_are_lost_apart(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    (void)state;
    int fd = make(fs, "a", "text");
    assert_int_equal(simfs_pending(fs), 2);
    expect(fs, "--", "a", NULL);
    expect(fs, "-+", "a", NULL);
    expect(fs, "+-", "a", "");
    expect(fs, "++", "a", "text");
    assert_int_equal(os->sync_all(fs, fd), 0);
    assert_int_equal(simfs_pending(fs), 1); /* a file's sync does not keep its name */
    expect(fs, "-", "a", NULL);
    sync_root(fs);
    assert_int_equal(simfs_pending(fs), 0);
    expect(fs, "", "a", "text");
    simfs_free(fs);
}

static void a_rename_is_there_or_not(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    (void)state;
    make(fs, "new", "2");
    make(fs, "old", "1");
    simfs_settle(fs);
    int root = os->open_at(fs, -1, "/", OS_READ | OS_DIRECTORY);
    assert_int_equal(os->rename_over(fs, root, "new", "old"), 0);
    expect(fs, "-", "old", "1");
    expect(fs, "-", "new", "2");
    expect(fs, "+", "old", "2");
    expect(fs, "+", "new", NULL);
    assert_int_equal(os->unlink_at(fs, root, "old"), 0);
    expect(fs, "-+", "new", "2");
    expect(fs, "-+", "old", NULL);
    simfs_free(fs);
}

static void a_write_is_torn_at_sectors(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    char text[1600];
    int holes = 0, cuts = 0, wholes = 0;
    (void)state;
    int fd = make(fs, "a", "0123456789");
    simfs_settle(fs);
    memset(text, 'x', sizeof text);
    assert_int_equal(os->pwrite(fs, fd, text, sizeof text, 10), sizeof text);
    expect(fs, "-", "a", "0123456789");
    expect(fs, "d", "a", "0123456789");
    for (uint64_t seed = 0; seed < 200; seed++) {
        static const char letters[] = "tzhe";
        char letter[2] = {letters[seed % 4], 0};
        unsigned char fate[1] = {
            (unsigned char)(strchr(simfs_letters, letter[0]) - simfs_letters)};
        size_t size;
        simfs *after = simfs_crash(fs, fate, seed);
        char *found = simfs_read(after, "a", &size);
        assert_memory_equal(found, "0123456789", 10);
        for (size_t i = 10; i < size; i++) {
            size_t start = i / 512 * 512 < 10 ? 10 : i / 512 * 512;
            assert_true(found[i] == 'x' || found[i] == 0);
            assert_int_equal(found[i], found[start]); /* a sector is whole or not there */
        }
        holes += memchr(found, 0, size) != NULL;
        cuts += size < 10 + sizeof text;
        wholes += size == 10 + sizeof text && !memchr(found, 0, size);
        free(found);
        simfs_free(after);
    }
    assert_true(holes > 50 && cuts > 30 && wholes > 0);
    simfs_free(fs);
}

static void old_bytes_show_where_a_sector_was_not_written(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    char text[1025] = "";
    (void)state;
    memset(text, 'o', 1024);
    int fd = os->open_at(fs, -1, "a", OS_WRITE | OS_CREATE_NEW);
    os->pwrite(fs, fd, text, 1024, 0);
    simfs_settle(fs);
    memset(text, 'n', 1024);
    os->pwrite(fs, fd, text, 1024, 0);
    int mixed = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        char *found = left(fs, "t", seed, "a");
        mixed += (found[0] == 'o') != (found[512] == 'o');
        assert_int_equal(strlen(found), 1024);
        free(found);
    }
    assert_true(mixed > 3);
    assert_int_equal(os->truncate(fs, fd, 2), 0);
    expect(fs, "-+", "a", "oo");
    expect(fs, "+-", "a", text);
    simfs_free(fs);
}

static void what_a_failed_sync_was_to_write_is_never_written(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    size_t size;
    (void)state;
    int fd = make(fs, "a", "0");
    simfs_settle(fs);
    os->pwrite(fs, fd, "1", 1, 1);
    simfs_fail_sync(fs, 0);
    assert_int_equal(os->sync_data(fs, fd), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(os->sync_data(fs, fd), 0); /* the lie */
    char *seen = simfs_read(fs, "a", &size);
    assert_string_equal(seen, "01");
    free(seen);
    expect(fs, "-", "a", "0");
    expect(fs, "+", "a", "01");
    os->pwrite(fs, fd, "2", 1, 2);
    assert_int_equal(os->sync_data(fs, fd), 0);
    assert_int_equal(simfs_pending(fs), 1);
    char *found = left(fs, "-", 0, "a"); /* a hole in the middle */
    assert_memory_equal(found,
                        "0\0"
                        "2",
                        3);
    free(found);
    expect(fs, "+", "a", "012");
    os->pwrite(fs, fd, "1", 1, 1); /* written again: now it counts */
    assert_int_equal(os->sync_data(fs, fd), 0);
    expect(fs, "-", "a", "012");
    simfs_free(fs);
}

static void a_killed_process_loses_locks_and_nothing_else(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    size_t size;
    (void)state;
    int fd = make(fs, "a", "text");
    assert_int_equal(os->lock(fs, fd, OS_LOCK_EXCLUSIVE), 0);
    simfs *after = simfs_kill(fs);
    assert_int_equal(simfs_locks(after), 0);
    assert_int_equal(simfs_descriptors(after), 0);
    char *seen = simfs_read(after, "a", &size);
    assert_string_equal(seen, "text");
    free(seen);
    expect(after, "--", "a", NULL); /* and the power may still go */
    assert_int_equal(simfs_locks(fs), 1);
    simfs_free(after);
    simfs_free(fs);
}

static void count_change(void *arg, simfs *fs, uint64_t number)
{
    assert_int_equal(number + 1, simfs_changes(fs));
    ++*(int *)arg;
}

static void each_change_is_announced(void **state)
{
    simfs *fs = simfs_new();
    const os_table *os = simfs_table(fs);
    int count = 0;
    char text[64], out[4];
    (void)state;
    simfs_watch(fs, count_change, &count);
    int fd = make(fs, "a", "text"); /* two */
    os->pread(fs, fd, out, 4, 0);
    os->sync_data(fs, fd);
    os->truncate(fs, fd, 0);
    os->mkdir_at(fs, -1, "d");
    assert_int_equal(count, 5);
    simfs_watch(fs, NULL, NULL);
    simfs_describe(fs, 1, text, sizeof text);
    assert_string_equal(text, "truncate a 0");
    simfs_describe(fs, 2, text, sizeof text);
    assert_string_equal(text, "name d in /");
    assert_false(simfs_is_write(fs, 1));
    simfs_free(fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_answers_as_the_real_system_does),
        cmocka_unit_test(a_name_and_what_it_names_are_lost_apart),
        cmocka_unit_test(a_rename_is_there_or_not),
        cmocka_unit_test(a_write_is_torn_at_sectors),
        cmocka_unit_test(old_bytes_show_where_a_sector_was_not_written),
        cmocka_unit_test(what_a_failed_sync_was_to_write_is_never_written),
        cmocka_unit_test(a_killed_process_loses_locks_and_nothing_else),
        cmocka_unit_test(each_change_is_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
