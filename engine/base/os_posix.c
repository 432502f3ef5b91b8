/*
 * os_posix.c: the system calls. Only this file and os_proc.c, which reads /proc, make
 * any.
 *
 * Owns the flags with which files are opened: never through a symbolic link, never
 * inherited by another program, never blocking. Must never decide anything: each
 * function is one call with the system's own contract, so that a table with failures
 * can replace it.
 */
#include "base/os.h"
#include "base/os_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int dir_of(int dir)
{
    return dir < 0 ? AT_FDCWD : dir;
}

static int posix_open_at(void *ud, int dir, const char *path, int flags)
{
    /* O_NONBLOCK: opening a FIFO in place of our file must not block. */
    int mode = O_CLOEXEC | O_NONBLOCK;
    (void)ud;
    if (!(flags & OS_FOLLOW))
        mode |= O_NOFOLLOW;
    if (flags & OS_DIRECTORY)
        mode |= O_RDONLY | O_DIRECTORY;
    else if ((flags & OS_READ) && (flags & OS_WRITE))
        mode |= O_RDWR;
    else
        mode |= (flags & OS_WRITE) ? O_WRONLY : O_RDONLY;
    if (flags & OS_CREATE_NEW)
        mode |= O_CREAT | O_EXCL;
    return openat(dir_of(dir), path, mode, 0600);
}

static int posix_close(void *ud, int fd)
{
    (void)ud;
    return close(fd);
}

/* The table's offsets are unsigned; the system's are not. */
static int bad_offset(uint64_t offset, size_t size)
{
    if (offset > INT64_MAX || size > INT64_MAX - offset) {
        errno = EOVERFLOW;
        return 1;
    }
    return 0;
}

static int64_t posix_pread(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    (void)ud;
    if (bad_offset(offset, size))
        return -1;
    return pread(fd, out, size, (off_t)offset);
}

static int64_t posix_pwrite(void *ud, int fd, const void *data, size_t size,
                            uint64_t offset)
{
    (void)ud;
    if (bad_offset(offset, size))
        return -1;
    return pwrite(fd, data, size, (off_t)offset);
}

static int posix_truncate(void *ud, int fd, uint64_t size)
{
    (void)ud;
    if (bad_offset(size, 0))
        return -1;
    return ftruncate(fd, (off_t)size);
}

static int posix_sync_data(void *ud, int fd)
{
    (void)ud;
    return fdatasync(fd);
}

static int posix_sync_all(void *ud, int fd)
{
    (void)ud;
    return fsync(fd);
}

static void fill_info(os_stat_info *out, const struct stat *st)
{
    out->device = (uint64_t)st->st_dev;
    out->inode = (uint64_t)st->st_ino;
    out->size = (uint64_t)st->st_size;
    out->mtime_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    out->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    out->ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
    out->uid = (uint32_t)st->st_uid;
    out->mode = (uint32_t)(st->st_mode & 07777);
    out->is_dir = S_ISDIR(st->st_mode);
    out->is_regular = S_ISREG(st->st_mode);
    out->is_symlink = S_ISLNK(st->st_mode);
}

static int posix_stat_fd(void *ud, int fd, os_stat_info *out)
{
    struct stat st;
    (void)ud;
    memset(out, 0, sizeof *out);
    if (fstat(fd, &st))
        return -1;
    fill_info(out, &st);
    return 0;
}

static int posix_stat_at(void *ud, int dir, const char *name, os_stat_info *out)
{
    struct stat st;
    (void)ud;
    memset(out, 0, sizeof *out);
    if (fstatat(dir_of(dir), name, &st, AT_SYMLINK_NOFOLLOW))
        return -1;
    fill_info(out, &st);
    return 0;
}

static int posix_lock_range(void *ud, int fd, int mode, uint64_t offset, uint64_t size)
{
    struct flock lock;
    (void)ud;
    if (bad_offset(offset, size))
        return -1;
    memset(&lock, 0, sizeof lock); /* l_pid must be 0 */
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t)offset;
    lock.l_len = (off_t)size;
    lock.l_type = mode == OS_LOCK_EXCLUSIVE ? F_WRLCK
                  : mode == OS_LOCK_SHARED  ? F_RDLCK
                                            : F_UNLCK;
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    if (errno == EACCES) /* the same error on some systems */
        errno = EAGAIN;
    return -1;
}

static int posix_lock(void *ud, int fd, int mode)
{
    return posix_lock_range(ud, fd, mode, 0, 0); /* a length of 0: the whole file */
}

static int posix_mkdir_at(void *ud, int dir, const char *path)
{
    (void)ud;
    return mkdirat(dir_of(dir), path, 0700);
}

static int posix_rename_new(void *ud, int dir, const char *from, const char *to)
{
    int at = dir_of(dir);
    (void)ud;
    if (renameat2(at, from, at, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* A file system without RENAME_NOREPLACE has link(), which does not replace. In
     * between the file has two names. After a crash there the temporary name remains,
     * and nothing reads it. */
    if (linkat(at, from, at, to, 0))
        return -1;
    return unlinkat(at, from, 0);
}

static int posix_rename_over(void *ud, int dir, const char *from, const char *to)
{
    (void)ud;
    return renameat(dir_of(dir), from, dir_of(dir), to);
}

static int posix_link_at(void *ud, int dir, const char *from, const char *to)
{
    (void)ud;
    return linkat(dir_of(dir), from, dir_of(dir), to, 0);
}

static int posix_unlink_at(void *ud, int dir, const char *name)
{
    (void)ud;
    return unlinkat(dir_of(dir), name, 0);
}

static int posix_list(void *ud, int dir, int (*visit)(void *arg, const char *name),
                      void *arg)
{
    struct dirent *found;
    DIR *stream;
    int fd, error;

    (void)ud;
    /* Not dup(): it would share the position with other listings of this folder. */
    fd = openat(dir_of(dir), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    stream = fdopendir(fd);
    if (!stream) {
        error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    for (;;) {
        errno = 0;
        found = readdir(stream);
        error = errno;
        if (!found)
            break;
        error = 0;
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        if (visit(arg, found->d_name))
            break;
    }
    closedir(stream);
    errno = error;
    return error ? -1 : 0;
}

static int64_t posix_now_ms(void *ud)
{
    struct timespec t;
    (void)ud;
    if (clock_gettime(CLOCK_REALTIME, &t))
        return 0;
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t microseconds(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t posix_clock_us(void *ud)
{
    (void)ud;
    return microseconds(CLOCK_MONOTONIC);
}

static uint64_t posix_thread_cpu_us(void *ud)
{
    (void)ud;
    return microseconds(CLOCK_THREAD_CPUTIME_ID);
}

static void posix_sleep_ms(void *ud, int ms)
{
    struct timespec left;
    (void)ud;
    if (ms <= 0) {
        sched_yield();
        return;
    }
    left.tv_sec = ms / 1000;
    left.tv_nsec = (long)(ms % 1000) * 1000000;
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static uint32_t posix_uid(void *ud)
{
    (void)ud;
    return (uint32_t)geteuid();
}

static uint32_t posix_pid(void *ud)
{
    (void)ud;
    return (uint32_t)getpid();
}

static const char *posix_env(void *ud, const char *name)
{
    (void)ud;
    return getenv(name);
}

static const void *posix_map(void *ud, int fd, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)ud;
    /* cppcheck-suppress memleak ; it is unmapped by posix_unmap */
    return memory == MAP_FAILED ? NULL : memory;
}

static void posix_unmap(void *ud, const void *memory, size_t size)
{
    (void)ud;
    munmap((void *)memory, size);
}

const os_table os_posix = {
    .open_at = posix_open_at,
    .close = posix_close,
    .pread = posix_pread,
    .pwrite = posix_pwrite,
    .truncate = posix_truncate,
    .sync_data = posix_sync_data,
    .sync_all = posix_sync_all,
    .stat_fd = posix_stat_fd,
    .stat_at = posix_stat_at,
    .lock = posix_lock,
    .mkdir_at = posix_mkdir_at,
    .rename_new = posix_rename_new,
    .rename_over = posix_rename_over,
    .link_at = posix_link_at,
    .unlink_at = posix_unlink_at,
    .list = posix_list,
    .now_ms = posix_now_ms,
    .clock_us = posix_clock_us,
    .thread_cpu_us = posix_thread_cpu_us,
    .sleep_ms = posix_sleep_ms,
    .uid = posix_uid,
    .pid = posix_pid,
    .env = posix_env,
    .lock_holder = os_proc_lock_holder,
    .network = os_proc_network,
    .spawn = os_posix_spawn,
    .receive = os_posix_receive,
    .send = os_posix_send,
    .process_cpu_us = os_posix_process_cpu_us,
    .kill = os_posix_kill,
    .map = posix_map,
    .unmap = posix_unmap,
    .lock_range = posix_lock_range,
    .boot = os_proc_boot,
    .resolve = os_resolve,
};
