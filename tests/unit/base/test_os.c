/*
 * test_os.c: the table of system calls, on the real system, and the loops over it.
 *
 * Owns the promises of base/os.h. Each test has a folder of its own, made before and gone
 * after it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"

#include <cmocka.h>

/* A folder that is made before and gone after each of these tests. */
typedef struct folder {
    char path[256];
    int fd;
} folder;

static int make_folder(void **state)
{
    static folder f;
    const char *tmp = getenv("TMPDIR");
    snprintf(f.path, sizeof f.path, "%s/sessile-base-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f.path))
        return -1;
    f.fd = os_posix.open_at(NULL, -1, f.path, OS_DIRECTORY | OS_READ);
    *state = &f;
    return f.fd < 0 ? -1 : 0;
}

static int drop_name(void *arg, const char *name)
{
    os_posix.unlink_at(NULL, ((folder *)arg)->fd, name);
    return 0;
}

static int drop_folder(void **state)
{
    folder *f = *state;
    os_posix.list(NULL, f->fd, drop_name, f);
    os_posix.close(NULL, f->fd);
    return remove(f->path);
}

static int new_file(folder *f, const char *name)
{
    int fd = os_posix.open_at(NULL, f->fd, name, OS_READ | OS_WRITE | OS_CREATE_NEW);
    assert_true(fd >= 0);
    return fd;
}

/* ------------------------------------------------------------------ what /proc tells */

static void network_file_systems_are_known_by_their_names(void **state)
{
    static const uint64_t fuse = 0x65735546;
    (void)state;
    assert_string_equal(os_network_name(0x6969, "nfs4", "server:/home"), "NFS");
    assert_string_equal(os_network_name(0xFF534D42, "", ""), "CIFS");
    assert_string_equal(os_network_name(0x01021997, "", ""), "9P");
    assert_string_equal(os_network_name(fuse, "fuse.sshfs", "me@host:/x"), "sshfs");
    assert_string_equal(os_network_name(fuse, "fuse.glusterfs", "x"), "glusterfs");
    assert_string_equal(os_network_name(fuse, "fuse.some", "//host/share"), "FUSE");
    assert_string_equal(os_network_name(fuse, "fuse.some", "https://host/"), "FUSE");
    assert_null(os_network_name(fuse, "fuseblk", "/dev/sdb1"));
    assert_null(os_network_name(fuse, "fuse.gocryptfs", "/home/me/.vault"));
    assert_null(os_network_name(fuse, "", ""));
    assert_null(os_network_name(0xEF53, "ext4", "/dev/sda1"));
    assert_null(os_network_name(0x01021994, "tmpfs", "tmpfs"));
}

static void local_folder_is_on_no_network(void **state)
{
    folder *f = *state;
    char name[16] = "x";
    assert_int_equal(os_posix.network(NULL, f->fd, name, sizeof name), 0);
    assert_string_equal(name, "");
    assert_int_equal(os_posix.network(NULL, -1, name, sizeof name), -1);
}

static void holder_of_a_lock_is_found_through_its_descriptor(void **state)
{
    folder *f = *state;
    os_holder holder;
    int a = new_file(f, "a"), b, other = new_file(f, "b");
    b = os_posix.open_at(NULL, f->fd, "a", OS_READ | OS_WRITE);
    assert_int_equal(os_posix.lock_holder(NULL, a, &holder), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_EXCLUSIVE), 0);
    assert_int_equal(os_posix.lock(NULL, other, OS_LOCK_EXCLUSIVE), 0);
    assert_int_equal(os_posix.lock_holder(NULL, a, &holder), 0);
    assert_true(holder.own);
    assert_false(holder.stopped);
    assert_int_equal(holder.pid, getpid());
    assert_string_equal(holder.program, "test_os");
    /* the descriptor that asks is not the answer */
    assert_int_equal(os_posix.lock_holder(NULL, b, &holder), -1);
    /* nor is one of the same file that holds nothing */
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_NONE), 0);
    assert_int_equal(os_posix.lock_holder(NULL, a, &holder), -1);
    os_posix.close(NULL, a);
    os_posix.close(NULL, b);
    os_posix.close(NULL, other);
}

static int has(folder *f, const char *name)
{
    os_stat_info info;
    return os_posix.stat_at(NULL, f->fd, name, &info) == 0;
}

static void files_are_private_and_made_once(void **state)
{
    folder *f = *state;
    os_stat_info info;
    int fd = new_file(f, "a");
    assert_int_equal(os_posix.stat_fd(NULL, fd, &info), 0);
    assert_int_equal(info.mode & 077, 0);
    assert_true(info.is_regular && !info.is_dir && !info.is_symlink);
    assert_int_equal(info.uid, os_posix.uid(NULL));
    assert_int_equal(os_posix.open_at(NULL, f->fd, "a", OS_WRITE | OS_CREATE_NEW), -1);
    assert_int_equal(errno, EEXIST);
    os_posix.close(NULL, fd);
}

static void links_are_not_followed(void **state)
{
    folder *f = *state;
    os_stat_info info;
    char target[300], name[300];
    snprintf(target, sizeof target, "%s/file", f->path);
    snprintf(name, sizeof name, "%s/link", f->path);
    os_posix.close(NULL, new_file(f, "file"));
    assert_int_equal(symlink(target, name), 0);
    assert_int_equal(os_posix.open_at(NULL, f->fd, "link", OS_READ), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(os_posix.stat_at(NULL, f->fd, "link", &info), 0);
    assert_true(info.is_symlink);
}

static void two_handles_of_one_process_exclude_each_other(void **state)
{
    folder *f = *state;
    int a = new_file(f, "a");
    int b = os_posix.open_at(NULL, f->fd, "a", OS_READ | OS_WRITE);
    assert_int_equal(os_posix.lock(NULL, a, OS_LOCK_EXCLUSIVE), 0);
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_EXCLUSIVE), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_SHARED), -1);
    assert_int_equal(os_posix.lock(NULL, a, OS_LOCK_SHARED), 0);
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_SHARED), 0);
    assert_int_equal(os_posix.lock(NULL, a, OS_LOCK_NONE), 0);
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_EXCLUSIVE), 0);
    os_posix.close(NULL, b); /* closing one of them does not drop the other's */
    assert_int_equal(os_posix.lock(NULL, a, OS_LOCK_EXCLUSIVE), 0);
    os_posix.close(NULL, a);
}

static void parts_of_a_file_are_locked_by_themselves(void **state)
{
    folder *f = *state;
    int a = new_file(f, "a");
    int b = os_posix.open_at(NULL, f->fd, "a", OS_READ | OS_WRITE);
    assert_int_equal(os_posix.lock_range(NULL, a, OS_LOCK_EXCLUSIVE, 100, 10), 0);
    assert_int_equal(os_posix.lock_range(NULL, b, OS_LOCK_EXCLUSIVE, 110, 10), 0);
    assert_int_equal(os_posix.lock_range(NULL, b, OS_LOCK_EXCLUSIVE, 109, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(os_posix.lock(NULL, b, OS_LOCK_EXCLUSIVE), -1);
    assert_int_equal(os_posix.lock_range(NULL, a, OS_LOCK_NONE, 100, 10), 0);
    assert_int_equal(os_posix.lock_range(NULL, b, OS_LOCK_EXCLUSIVE, 109, 1), 0);
    assert_int_equal(os_posix.lock_range(NULL, a, OS_LOCK_SHARED, UINT64_MAX, 1), -1);
    os_posix.close(NULL, a);
    os_posix.close(NULL, b);
}

static void a_start_of_the_machine_has_one_number(void **state)
{
    (void)state;
    assert_true(os_posix.boot(NULL) == os_posix.boot(NULL));
    if (access("/proc/sys/kernel/random/boot_id", R_OK) == 0)
        assert_true(os_posix.boot(NULL) != 0);
}

static void rename_new_never_replaces(void **state)
{
    folder *f = *state;
    os_posix.close(NULL, new_file(f, "a"));
    os_posix.close(NULL, new_file(f, "b"));
    assert_int_equal(os_posix.rename_new(NULL, f->fd, "a", "b"), -1);
    assert_int_equal(errno, EEXIST);
    assert_true(has(f, "a") && has(f, "b"));
    assert_int_equal(os_posix.rename_new(NULL, f->fd, "a", "c"), 0);
    assert_true(!has(f, "a") && has(f, "c"));
}

/* The folders that were synced, in order. */
typedef struct synced {
    uint64_t at[8];
    int count, error;
} synced;

static int sync_and_tell(void *ud, int fd)
{
    synced *s = ud;
    os_stat_info info;
    if (s->error) {
        errno = s->error;
        return -1;
    }
    assert_int_equal(os_posix.stat_fd(NULL, fd, &info), 0);
    assert_true(s->count < 8);
    s->at[s->count++] = info.inode;
    return os_posix.sync_all(NULL, fd);
}

static uint64_t inode_of(const char *path)
{
    os_stat_info info;
    assert_int_equal(os_posix.stat_at(NULL, -1, path, &info), 0);
    assert_true(info.is_dir);
    return info.inode;
}

static void a_path_is_made_with_its_names_durable(void **state)
{
    folder *f = *state;
    const allocator *a = &allocator_default;
    os_table os = os_posix;
    synced s = {{0}, 0, 0};
    char path[300], link[300], one[300];
    os.ud = &s;
    os.sync_all = sync_and_tell;
    snprintf(one, sizeof one, "%s/one", f->path);
    snprintf(path, sizeof path, "%s/one/two/three", f->path);
    assert_int_equal(os_make_path(&os, a, path), 0);
    assert_string_equal(path + strlen(f->path), "/one/two/three");
    assert_int_equal(s.count, 3);
    assert_true(s.at[0] == inode_of(f->path));
    assert_true(s.at[1] == inode_of(one));
    /* one that is there: its maker may not have come to the sync */
    assert_int_equal(os_make_path(&os, a, path), 0);
    assert_int_equal(s.count, 4);
    assert_true(s.at[3] == s.at[2]);
    /* through a link above it */
    snprintf(link, sizeof link, "%s/link", f->path);
    assert_int_equal(symlink("one", link), 0);
    snprintf(path, sizeof path, "%s/link/four", f->path);
    assert_int_equal(os_make_path(&os, a, path), 0);
    assert_true(s.at[4] == inode_of(one));
    rmdir(path);
    /* what could not be synced does not count as made */
    s.error = EIO;
    assert_int_equal(os_make_path(&os, a, path), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(os_make_path(&os, a, path), -1);
    s.error = 0;
    snprintf(path, sizeof path, "%s/file/five", f->path);
    os_posix.close(NULL, new_file(f, "file"));
    assert_int_equal(os_make_path(&os, a, path), -1);
    assert_int_equal(errno, ENOTDIR);
    const char *const made[] = {"link/four", "one/two/three", "one/two", "one"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, made[i]);
        assert_int_equal(rmdir(path), 0);
    }
}

static int count_names(void *arg, const char *name)
{
    int *count = arg;
    assert_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    return ++*count == 2; /* stops there */
}

static int count_all(void *arg, const char *name)
{
    (void)name;
    ++*(int *)arg;
    return 0;
}

static void a_folder_is_listed_again_and_again(void **state)
{
    folder *f = *state;
    int i, count = 0;
    for (i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), 0};
        os_posix.close(NULL, new_file(f, name));
    }
    assert_int_equal(os_posix.list(NULL, f->fd, count_names, &count), 0);
    assert_int_equal(count, 2);
    for (i = 0; i < 2; i++) {
        count = 0;
        assert_int_equal(os_posix.list(NULL, f->fd, count_all, &count), 0);
        assert_int_equal(count, 3);
    }
}

static void offsets_past_the_system_are_errors(void **state)
{
    folder *f = *state;
    int fd = new_file(f, "a");
    char c = 0;
    assert_true(os_posix.pread(NULL, fd, &c, 1, UINT64_MAX) == -1);
    assert_int_equal(errno, EOVERFLOW);
    assert_true(os_posix.pwrite(NULL, fd, &c, 1, UINT64_MAX) == -1);
    assert_int_equal(os_posix.truncate(NULL, fd, UINT64_MAX), -1);
    os_posix.close(NULL, fd);
}

/* A table that gives one byte a call, and EINTR before each. */
static int turn;
static int64_t slow_pread(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    if (++turn % 2) {
        errno = EINTR;
        return -1;
    }
    return os_posix.pread(ud, fd, out, size ? 1 : 0, offset);
}

static int64_t slow_pwrite(void *ud, int fd, const void *data, size_t size,
                           uint64_t offset)
{
    if (++turn % 2) {
        errno = EINTR;
        return -1;
    }
    if (offset == 5) {
        errno = ENOSPC;
        return -1;
    }
    return os_posix.pwrite(ud, fd, data, size ? 1 : 0, offset);
}

static int64_t stuck_pwrite(void *ud, int fd, const void *data, size_t size,
                            uint64_t offset)
{
    (void)ud, (void)fd, (void)data, (void)size, (void)offset;
    return 0;
}

static void whole_reads_and_writes_go_on_after_short_ones(void **state)
{
    folder *f = *state;
    int fd = new_file(f, "a");
    os_table slow = os_posix;
    char back[16];
    size_t written;
    slow.pread = slow_pread;
    slow.pwrite = slow_pwrite;
    assert_int_equal(os_write_full(&slow, fd, "hello", 5, 0, &written), 0);
    assert_int_equal(written, 5);
    assert_int_equal(os_read_full(&slow, fd, back, sizeof back, 0), 5);
    assert_memory_equal(back, "hello", 5);
    assert_int_equal(os_write_full(&slow, fd, "hello", 5, 2, &written), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(written, 3);
    slow.pwrite = stuck_pwrite;
    assert_int_equal(os_write_full(&slow, fd, "hello", 5, 0, NULL), -1);
    assert_int_equal(errno, EIO);
    os_posix.close(NULL, fd);
}

static void clocks_go_forward(void **state)
{
    uint64_t before = os_posix.clock_us(NULL);
    (void)state;
    os_posix.sleep_ms(NULL, 0);
    os_posix.sleep_ms(NULL, 2);
    assert_true(os_posix.clock_us(NULL) - before >= 2000);
    assert_true(os_posix.now_ms(NULL) > INT64_C(1600000000000));
    assert_true(os_posix.thread_cpu_us(NULL) < os_posix.clock_us(NULL));
    assert_null(os_posix.env(NULL, "SESSILE_NO_SUCH_VARIABLE"));
    assert_ptr_equal(os_current, &os_posix);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(files_are_private_and_made_once),
        in_folder(links_are_not_followed),
        in_folder(two_handles_of_one_process_exclude_each_other),
        in_folder(parts_of_a_file_are_locked_by_themselves),
        cmocka_unit_test(a_start_of_the_machine_has_one_number),
        in_folder(rename_new_never_replaces),
        in_folder(a_path_is_made_with_its_names_durable),
        in_folder(a_folder_is_listed_again_and_again),
        in_folder(offsets_past_the_system_are_errors),
        in_folder(whole_reads_and_writes_go_on_after_short_ones),
        cmocka_unit_test(network_file_systems_are_known_by_their_names),
        in_folder(local_folder_is_on_no_network),
        in_folder(holder_of_a_lock_is_found_through_its_descriptor),
        cmocka_unit_test(clocks_go_forward),
    };
    return cmocka_run_group_tests_name("os", tests, NULL, NULL);
}
