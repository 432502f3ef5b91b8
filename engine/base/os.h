/*
 * os.h: every system call, behind a table that tests replace.
 *
 * The table has one function for each system call, with the system's own contract (-1
 * and errno). A test can make the Nth call fail, or record what was not yet synced.
 * Only os_posix.c and os_proc.c call the system. Closing is not retried: close is
 * called once.
 */
#ifndef BASE_OS_H
#define BASE_OS_H

#include <stddef.h>
#include <stdint.h>
#include <pthread.h>

#include "base/alloc.h"

typedef struct os_stat_info {
    uint64_t device, inode, size;
    int64_t mtime_ms;
    int64_t mtime_ns, ctime_ns;
    uint32_t uid, mode; /* permission bits only */
    int is_dir, is_regular, is_symlink;
} os_stat_info;

/* Who holds a lock. */
typedef struct os_holder {
    uint32_t pid;
    char program[32]; /* its name, cut; "": unknown */
    int own;          /* this process, through another descriptor */
    int stopped; /* it was stopped (SIGSTOP, a debugger) and will not let go by itself */
} os_holder;

enum { OS_LOCK_NONE = 0, OS_LOCK_SHARED = 1, OS_LOCK_EXCLUSIVE = 2 };
/* open flags of this table */
enum { OS_READ = 1, OS_WRITE = 2, OS_CREATE_NEW = 4, OS_DIRECTORY = 8, OS_FOLLOW = 16 };

typedef struct os_table {
    void *ud;
    /* openat with O_CLOEXEC | O_NOFOLLOW (but for OS_FOLLOW: files to read that somebody
     * named) | O_NONBLOCK; created 0600. dir -1: current folder (then path may have many
     * parts, else one). Returns a descriptor. */
    int (*open_at)(void *ud, int dir, const char *path, int flags);
    int (*close)(void *ud, int fd);
    int64_t (*pread)(void *ud, int fd, void *out, size_t size, uint64_t offset);
    int64_t (*pwrite)(void *ud, int fd, const void *data, size_t size, uint64_t offset);
    int (*truncate)(void *ud, int fd, uint64_t size);
    int (*sync_data)(void *ud, int fd); /* fdatasync */
    int (*sync_all)(void *ud, int fd);  /* fsync: also for folders */
    int (*stat_fd)(void *ud, int fd, os_stat_info *out);
    int (*stat_at)(void *ud, int dir, const char *name,
                   os_stat_info *out);       /* no follow */
    int (*lock)(void *ud, int fd, int mode); /* OFD, whole file, does not wait: EAGAIN */
    int (*mkdir_at)(void *ud, int dir, const char *path);                   /* 0700 */
    int (*rename_new)(void *ud, int dir, const char *from, const char *to); /* EEXIST */
    int (*rename_over)(void *ud, int dir, const char *from, const char *to);
    int (*link_at)(void *ud, int dir, const char *from, const char *to); /* EEXIST */
    int (*unlink_at)(void *ud, int dir, const char *name);
    /* Names in a folder, in any order, "." and ".." left out; visit returns 0 to go on.
     */
    int (*list)(void *ud, int dir, int (*visit)(void *arg, const char *name), void *arg);
    int64_t (*now_ms)(void *ud);         /* wall clock */
    uint64_t (*clock_us)(void *ud);      /* monotonic */
    uint64_t (*thread_cpu_us)(void *ud); /* CPU time of this thread */
    void (*sleep_ms)(void *ud, int ms);  /* 0: lets another thread run first */
    uint32_t (*uid)(void *ud);           /* effective */
    uint32_t (*pid)(void *ud);
    const char *(*env)(void *ud, const char *name); /* NULL when unset */
    /* Who holds a lock on the file open as fd, other than through fd itself: 0. -1 and
     * ESRCH: nobody that can be seen; ENOSYS: this system does not tell (no /proc). May
     * be absent. */
    int (*lock_holder)(void *ud, int fd, os_holder *out);
    /* 1 when fd lies on a file system that other machines write as well, whose name, cut,
     * goes to name; 0 when not; -1 and errno. May be absent: 0. */
    int (*network)(void *ud, int fd, char *name, size_t size);

    /* Other processes. spawn: runs the program at path with one end of a pair of sockets
     * as its standard input and nothing else of ours; returns the other end, and *pid. */
    int (*spawn)(void *ud, const char *path, uint32_t *pid);
    /* Reads or writes what can be, waiting at most timeout_ms for any: 0 at the end,
     * -1 and EAGAIN after the time. */
    int64_t (*receive)(void *ud, int fd, void *out, size_t size, int timeout_ms);
    int64_t (*send)(void *ud, int fd, const void *data, size_t size, int timeout_ms);
    uint64_t (*process_cpu_us)(void *ud, uint32_t pid); /* 0: unknown */
    void (*kill)(void *ud, uint32_t pid);               /* at once; waits for its end */

    /* The whole of a file to read, as memory that other processes share: NULL and errno.
     * Both may be absent. */
    const void *(*map)(void *ud, int fd, size_t size);
    void (*unmap)(void *ud, const void *memory, size_t size);
} os_table;

/* The real system. */
extern const os_table os_posix;

/* The table in use for stores opened from now on; tests set it, before any thread starts.
 * It is a constant of the process, not state of the engine. */
extern const os_table *os_current;

/* What the real table has as lock_holder and network (os_proc.c). */
int os_proc_lock_holder(void *ud, int fd, os_holder *out);
int os_proc_network(void *ud, int fd, char *name, size_t size);
/* The absolute path of what is at path, links followed, as a string that free() takes;
 * NULL and errno. */
char *os_proc_real_path(const char *path);
/* The name of a file system by the magic number of statfs and by the type and source that
 * /proc/self/mountinfo has for it ("" when not known); NULL: a local one. */
const char *os_network_name(uint64_t magic, const char *type, const char *source);

/* Whole reads and writes over the table: EINTR and short counts are continued.
 * os_read_full: bytes read (less than size only at the end of the file), or -1 and errno.
 * os_write_full: 0, or -1 and errno, *written says how many bytes went. */
int64_t os_read_full(const os_table *os, int fd, void *out, size_t size, uint64_t offset);
int os_write_full(const os_table *os, int fd, const void *data, size_t size,
                  uint64_t offset, size_t *written);

/* Waits for other threads, at most OS_SLICE_MS (os_wait.c). The condition is one that
 * os_cond_init() made. os_mutex_slice: 1 when the mutex is held now. */
#define OS_SLICE_MS 10
int os_cond_init(pthread_cond_t *cond);
void os_cond_slice(pthread_cond_t *cond, pthread_mutex_t *mutex);
int os_mutex_slice(pthread_mutex_t *mutex);
/* Waits at most timeout_ms (0: not at all) until fd can be read (OS_READ), written
 * (OS_WRITE), or either; errors count as both. 1: it can be; 0: not yet, or a signal
 * came. */
int os_fd_wait(int fd, int flags, int timeout_ms);

/* A library by its file name, kept apart from what the process is linked with; NULL: it
 * is not there. Closed by whoever opened it (os_library.c). */
void *os_library_open(const char *name);
/* Writes a function's address into the pointer at out, of that size. 0, or -1: it has
 * none of that name. */
int os_library_find(void *library, const char *symbol, void *out, size_t size);
void os_library_close(void *library);

/* Syncs the folder that holds path (the current one, when path is one name). 0, or -1 and
 * errno. */
int os_sync_parent(const os_table *os, const allocator *a, const char *path);
/* Makes the folder at path and what is missing above it; the names of all that was made,
 * and of path itself, are durable on return. Changes path and puts it back. 0, or -1 and
 * errno. */
int os_make_path(const os_table *os, const allocator *a, char *path);
/* Whether a path below a folder leads nowhere else: what there is of its parts are
 * folders, and none is a link. Changes path and puts it back. 0; -1 and errno. */
int os_stays_below(const os_table *os, const char *folder, char *path);

#endif
