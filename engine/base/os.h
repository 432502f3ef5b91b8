/*
 * os.h: every system call, behind a table that tests replace.
 *
 * The table has one function for each system call, with the system's own contract (-1 and
 * errno). A test can make the Nth call fail, or record what was not yet synced. Only
 * os_posix.c and os_proc.c call the system. Closing is not retried: close is called once.
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

/* An address of a name: 4 or 16 bytes in network order. */
typedef struct os_address {
    int family; /* 4 or 6 */
    unsigned char bytes[16];
} os_address;

/* Who holds a lock. */
typedef struct os_holder {
    uint32_t pid;
    char program[32]; /* its name, cut; "": unknown */
    int own;          /* this process, through another descriptor */
    int stopped; /* stopped (SIGSTOP, a debugger): it will not release the lock by itself
                  */
} os_holder;

enum { OS_LOCK_NONE = 0, OS_LOCK_SHARED = 1, OS_LOCK_EXCLUSIVE = 2 };
/* open flags of this table */
enum { OS_READ = 1, OS_WRITE = 2, OS_CREATE_NEW = 4, OS_DIRECTORY = 8, OS_FOLLOW = 16 };

typedef struct os_table {
    void *ud;
    /* openat with O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK; created 0600. OS_FOLLOW:
     * without O_NOFOLLOW, for files that a user named. dir -1: the current folder;
     * then path may have several parts, else one. Returns a descriptor. */
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
    /* Names in a folder, in any order, without "." and ".."; visit returns 0 to
     * continue. */
    int (*list)(void *ud, int dir, int (*visit)(void *arg, const char *name), void *arg);
    int64_t (*now_ms)(void *ud);         /* wall clock */
    uint64_t (*clock_us)(void *ud);      /* monotonic */
    uint64_t (*thread_cpu_us)(void *ud); /* CPU time of this thread */
    void (*sleep_ms)(void *ud, int ms);  /* 0: lets another thread run first */
    uint32_t (*uid)(void *ud);           /* effective */
    uint32_t (*pid)(void *ud);
    const char *(*env)(void *ud, const char *name); /* NULL when unset */
    /* The holder of a lock on the file open as fd, other than fd itself: 0. -1 and
     * ESRCH: no visible process; ENOSYS: the system does not tell (no /proc). May be
     * absent. */
    int (*lock_holder)(void *ud, int fd, os_holder *out);
    /* 1 when fd is on a file system that other machines can write too; name gets its
     * name, cut. 0 when not; -1 and errno. May be absent: 0. */
    int (*network)(void *ud, int fd, char *name, size_t size);

    /* Other processes. spawn runs the program at path with one end of a socket pair as
     * its standard input, and no other descriptor of ours. It returns the other end,
     * and *pid. */
    int (*spawn)(void *ud, const char *path, uint32_t *pid);
    /* Reads or writes what is possible, after waiting at most timeout_ms: 0 at the
     * end, -1 and EAGAIN after the time. */
    int64_t (*receive)(void *ud, int fd, void *out, size_t size, int timeout_ms);
    int64_t (*send)(void *ud, int fd, const void *data, size_t size, int timeout_ms);
    uint64_t (*process_cpu_us)(void *ud, uint32_t pid); /* 0: unknown */
    void (*kill)(void *ud, uint32_t pid);               /* SIGKILL; waits for its end */

    /* Maps a whole file for reading, shared with other processes: NULL and errno. Both
     * may be absent. */
    const void *(*map)(void *ud, int fd, size_t size);
    void (*unmap)(void *ud, const void *memory, size_t size);

    /* As lock, of size bytes of the file from offset on. May be absent. */
    int (*lock_range)(void *ud, int fd, int mode, uint64_t offset, uint64_t size);
    /* A number that no other start of this machine has: clock_us goes on only where it is
     * the same. 0: unknown. May be absent. */
    uint64_t (*boot)(void *ud);
    /* The addresses of a name, at most room, as the system's resolver has them: how many.
     * -1 and errno: ENOENT, there is none; ETIMEDOUT, not within timeout_ms; E2BIG, more
     * than room; EAGAIN, ENOMEM. It may ask a server of names. May be absent. */
    int (*resolve)(void *ud, const char *name, int timeout_ms, os_address *out, int room);
} os_table;

/* The real system. */
extern const os_table os_posix;

/* The table for stores opened from now on. Tests set it before any thread starts: it
 * is a constant of the process, not state of the engine. */
extern const os_table *os_current;

/* Its monotonic clock, µs. */
static inline uint64_t os_now_us(void)
{
    return os_current->clock_us(os_current->ud);
}

/* lock_holder, network and boot of the real table (os_proc.c). */
int os_proc_lock_holder(void *ud, int fd, os_holder *out);
uint64_t os_proc_boot(void *ud);
/* resolve of the real table (os_resolve.c). */
int os_resolve(void *ud, const char *name, int timeout_ms, os_address *out, int room);
int os_proc_network(void *ud, int fd, char *name, size_t size);
/* The absolute path with links resolved, a string for free(); NULL and errno. */
char *os_proc_real_path(const char *path);
/* The name of a network file system, from the magic number of statfs and the type and
 * source in /proc/self/mountinfo ("" when unknown); NULL: a local one. */
const char *os_network_name(uint64_t magic, const char *type, const char *source);

/* Complete reads and writes: EINTR and short counts are continued. os_read_full: bytes
 * read (less than size only at the end of the file), or -1 and errno. os_write_full:
 * 0, or -1 and errno; *written is the number of bytes written. */
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
 * (OS_WRITE), or either; errors count as both. 1: it can; 0: not yet, or a signal
 * arrived. */
int os_fd_wait(int fd, int flags, int timeout_ms);

/* 1: the other end of a socket is on this machine: a Unix socket, 127.0.0.0/8 or ::1.
 * 0: it is not, or that is unknown (os_socket.c). */
int os_socket_local(int fd);
/* What a socket has for us, at most size bytes; OS_PEEK leaves them there. Does not wait.
 * The number of bytes; 0: none yet; -1: it ended or broke. */
enum { OS_TAKE, OS_PEEK };
int os_socket_receive(int fd, void *out, int size, int peek);
/* The number of bytes that the socket took, which may be fewer; -1: it broke. */
int os_socket_send(int fd, const void *data, int size);
/* Keeps the socket from programs that this process starts. */
void os_socket_private(int fd);

/* A socket whose place was taken: its owner, which knows it by its number, talks to
 * `near` instead, and the socket itself is `far`. Close it; zeroed, it is closed. */
typedef struct os_detour {
    int open, near, far;
    uint64_t device, inode; /* of what the owner has */
} os_detour;
/* 0, or -1 and errno: fd is as it was. */
int os_detour_open(os_detour *d, int fd);
/* 1: fd is what took its socket's place; 0: the owner closed that, and fd is another. */
int os_detour_holds(const os_detour *d, int fd);
/* Puts the socket back, where the owner still has what took its place. */
void os_detour_close(os_detour *d, int fd);

/* Loads a library by its file name, with symbols separate from those of the process;
 * NULL: not found. The caller closes it (os_library.c). */
void *os_library_open(const char *name);
/* Writes the address of a function to the pointer at out, of that size. 0, or -1: the
 * library has no such symbol. */
int os_library_find(void *library, const char *symbol, void *out, size_t size);
void os_library_close(void *library);
/* The address of a symbol that the whole process sees; NULL: there is none. */
const void *os_symbol(const char *symbol);
/* 1 when both addresses belong to the same program or library. */
int os_same_object(const void *one, const void *other);

/* Syncs the folder that holds path (the current one, when path is one name). 0, or -1 and
 * errno. */
int os_sync_parent(const os_table *os, const allocator *a, const char *path);
/* Creates the folder at path and missing ones above it. On return the names of all of
 * them, and of path itself, are durable. Changes path temporarily. 0, or -1 and errno. */
int os_make_path(const os_table *os, const allocator *a, char *path);
/* Whether a path below a folder stays inside it: every part that exists is a folder,
 * not a link. Changes path temporarily. 0; -1 and errno. */
int os_stays_below(const os_table *os, const char *folder, char *path);

#endif
