/*
 * faulty.c: a table of system calls over another one, that counts and that fails on
 * purpose.
 *
 * Owns the decision whether a call fails. Must never fail a close or an unlock: the
 * engine has no second try for them, and a test could not tell what became of them.
 */
#include "support/faulty.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const faulty_names[FAULTY_KINDS] = {
    "open",      "create",     "close",       "read",    "write",  "truncate",
    "sync_data", "sync_all",   "stat_fd",     "stat_at", "lock",   "unlock",
    "mkdir",     "rename_new", "rename_over", "link",    "unlink", "list",
};

#define SACRED (FAULTY_BIT(FAULTY_CLOSE) | FAULTY_BIT(FAULTY_UNLOCK))

typedef enum answer { MAKE, MAKE_HALF, MAKE_HALF_FAIL, MAKE_FAIL, FAIL } answer;

static int in_plan(faulty *f, faulty_kind kind)
{
    if ((f->kinds & FAULTY_BIT(kind)) == 0)
        return 0;
    uint64_t n = f->met++;
    return n >= f->at && n - f->at < f->times;
}

static answer decide(faulty *f, faulty_kind kind, int *error)
{
    int changing = (FAULTY_CHANGING & FAULTY_BIT(kind)) != 0;
    int sacred = (SACRED & FAULTY_BIT(kind)) != 0;
    uint64_t number = 0;
    answer result = MAKE;

    pthread_mutex_lock(&f->mutex);
    f->counts[kind]++;
    f->all++;
    if (changing)
        number = f->changing++;
    int hit = in_plan(f, kind);
    int stopped = f->stopping && !sacred &&
                  (changing ? number >= f->stop_at
                            : f->stopping_reads && f->changing >= f->stop_at);
    if (hit || stopped) {
        if (f->hits++ == 0)
            f->struck = kind;
        *error = stopped ? EIO : f->error;
        result = stopped || f->how == FAULTY_REFUSED ? FAIL
                 : f->how == FAULTY_SHORT            ? MAKE_HALF
                 : f->how == FAULTY_TORN             ? MAKE_HALF_FAIL
                                                     : MAKE_FAIL;
    }
    pthread_mutex_unlock(&f->mutex);
    if (changing && f->before)
        f->before(f->before_arg, kind, number);
    return result;
}

/* What a call without sizes answers: made unless refused, and its result or the error. */
#define CALL(f, kind, made)                                      \
    int error_ = 0;                                              \
    answer a_ = decide(f, kind, &error_);                        \
    int got_ = a_ == FAIL || a_ == MAKE_HALF_FAIL ? -1 : (made); \
    if (a_ != MAKE && a_ != MAKE_HALF) {                         \
        errno = error_;                                          \
        return -1;                                               \
    }                                                            \
    return got_

static void count_lock(faulty *f, int fd, int held)
{
    pthread_mutex_lock(&f->mutex);
    if (fd >= 0 && (size_t)fd >= f->held_size) {
        size_t size = (size_t)fd * 2 + 16;
        unsigned char *grown = realloc(f->held, size);
        if (!grown)
            abort();
        memset(grown + f->held_size, 0, size - f->held_size);
        f->held = grown;
        f->held_size = size;
    }
    if (fd >= 0) {
        f->locks += held - f->held[fd];
        f->held[fd] = (unsigned char)held;
    }
    pthread_mutex_unlock(&f->mutex);
}

static int open_at(void *ud, int dir, const char *path, int flags)
{
    faulty *f = ud;
    int error = 0;
    answer a = decide(f, flags & OS_CREATE_NEW ? FAULTY_CREATE : FAULTY_OPEN, &error);
    if (a == FAIL || a == MAKE_HALF_FAIL) {
        errno = error;
        return -1;
    }
    int fd = f->below->open_at(f->below->ud, dir, path, flags);
    if (fd >= 0 && a == MAKE_FAIL) {
        f->below->close(f->below->ud, fd);
        errno = error;
        return -1;
    }
    if (fd >= 0) {
        pthread_mutex_lock(&f->mutex);
        f->descriptors++;
        pthread_mutex_unlock(&f->mutex);
    }
    return fd;
}

static int close_fd(void *ud, int fd)
{
    faulty *f = ud;
    int error;
    (void)decide(f, FAULTY_CLOSE, &error);
    count_lock(f, fd, 0);
    pthread_mutex_lock(&f->mutex);
    f->descriptors--;
    pthread_mutex_unlock(&f->mutex);
    return f->below->close(f->below->ud, fd);
}

static int64_t pread_some(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    faulty *f = ud;
    int error = 0;
    answer a = decide(f, FAULTY_READ, &error);
    if (a == MAKE || a == MAKE_HALF)
        return f->below->pread(f->below->ud, fd, out,
                               a == MAKE_HALF ? (size + 1) / 2 : size, offset);
    errno = error;
    return -1;
}

static int64_t pwrite_some(void *ud, int fd, const void *data, size_t size,
                           uint64_t offset)
{
    faulty *f = ud;
    int error = 0;
    answer a = decide(f, FAULTY_WRITE, &error);
    size_t part = a == MAKE_HALF || a == MAKE_HALF_FAIL ? (size + 1) / 2 : size;
    int64_t n = a == FAIL ? -1 : f->below->pwrite(f->below->ud, fd, data, part, offset);
    if (a == MAKE || a == MAKE_HALF)
        return n;
    errno = error;
    return -1;
}

static int truncate_fd(void *ud, int fd, uint64_t size)
{
    faulty *f = ud;
    CALL(f, FAULTY_TRUNCATE, f->below->truncate(f->below->ud, fd, size));
}

static int sync_data(void *ud, int fd)
{
    faulty *f = ud;
    CALL(f, FAULTY_SYNC_DATA, f->below->sync_data(f->below->ud, fd));
}

static int sync_all(void *ud, int fd)
{
    faulty *f = ud;
    CALL(f, FAULTY_SYNC_ALL, f->below->sync_all(f->below->ud, fd));
}

static int stat_fd(void *ud, int fd, os_stat_info *out)
{
    faulty *f = ud;
    CALL(f, FAULTY_STAT_FD, f->below->stat_fd(f->below->ud, fd, out));
}

static int stat_at(void *ud, int dir, const char *name, os_stat_info *out)
{
    faulty *f = ud;
    CALL(f, FAULTY_STAT_AT, f->below->stat_at(f->below->ud, dir, name, out));
}

static int lock_made(faulty *f, int fd, int mode)
{
    int got = f->below->lock(f->below->ud, fd, mode);
    if (got == 0)
        count_lock(f, fd, mode != OS_LOCK_NONE);
    return got;
}

static int lock(void *ud, int fd, int mode)
{
    faulty *f = ud;
    CALL(f, mode == OS_LOCK_NONE ? FAULTY_UNLOCK : FAULTY_LOCK, lock_made(f, fd, mode));
}

static int mkdir_at(void *ud, int dir, const char *path)
{
    faulty *f = ud;
    CALL(f, FAULTY_MKDIR, f->below->mkdir_at(f->below->ud, dir, path));
}

static int rename_new(void *ud, int dir, const char *from, const char *to)
{
    faulty *f = ud;
    CALL(f, FAULTY_RENAME_NEW, f->below->rename_new(f->below->ud, dir, from, to));
}

static int rename_over(void *ud, int dir, const char *from, const char *to)
{
    faulty *f = ud;
    CALL(f, FAULTY_RENAME_OVER, f->below->rename_over(f->below->ud, dir, from, to));
}

static int link_at(void *ud, int dir, const char *from, const char *to)
{
    faulty *f = ud;
    CALL(f, FAULTY_LINK, f->below->link_at(f->below->ud, dir, from, to));
}

static int unlink_at(void *ud, int dir, const char *name)
{
    faulty *f = ud;
    CALL(f, FAULTY_UNLINK, f->below->unlink_at(f->below->ud, dir, name));
}

static int list(void *ud, int dir, int (*visit)(void *arg, const char *name), void *arg)
{
    faulty *f = ud;
    CALL(f, FAULTY_LIST, f->below->list(f->below->ud, dir, visit, arg));
}

/* Calls that never fail: the table below answers. */
#define ASKED_BELOW(type, name)                     \
    static type name(void *ud)                      \
    {                                               \
        const os_table *os = ((faulty *)ud)->below; \
        return os->name(os->ud);                    \
    }

ASKED_BELOW(int64_t, now_ms)
ASKED_BELOW(uint64_t, clock_us)
ASKED_BELOW(uint64_t, thread_cpu_us)

static void sleep_ms(void *ud, int ms)
{
    const os_table *os = ((faulty *)ud)->below;
    os->sleep_ms(os->ud, ms);
}

ASKED_BELOW(uint32_t, uid)
ASKED_BELOW(uint32_t, pid)

static const char *env(void *ud, const char *name)
{
    const os_table *os = ((faulty *)ud)->below;
    return os->env(os->ud, name);
}

static int lock_range(void *ud, int fd, int mode, uint64_t offset, uint64_t size)
{
    faulty *f = ud;
    CALL(f, mode == OS_LOCK_NONE ? FAULTY_UNLOCK : FAULTY_LOCK,
         f->below->lock_range(f->below->ud, fd, mode, offset, size));
}

static uint64_t boot(void *ud)
{
    const os_table *os = ((faulty *)ud)->below;
    return os->boot(os->ud);
}

static int lock_holder(void *ud, int fd, os_holder *out)
{
    const os_table *os = ((faulty *)ud)->below;
    return os->lock_holder(os->ud, fd, out);
}

static int network(void *ud, int fd, char *name, size_t size)
{
    const os_table *os = ((faulty *)ud)->below;
    return os->network(os->ud, fd, name, size);
}

void faulty_init(faulty *f, const os_table *below)
{
    memset(f, 0, sizeof *f);
    f->below = below;
    pthread_mutex_init(&f->mutex, NULL);
    /* what the table has and this file does not know goes to nobody: it is NULL */
    f->table = (os_table){
        .ud = f,
        .open_at = open_at,
        .close = close_fd,
        .pread = pread_some,
        .pwrite = pwrite_some,
        .truncate = truncate_fd,
        .sync_data = sync_data,
        .sync_all = sync_all,
        .stat_fd = stat_fd,
        .stat_at = stat_at,
        .lock = lock,
        .mkdir_at = mkdir_at,
        .rename_new = rename_new,
        .rename_over = rename_over,
        .link_at = link_at,
        .unlink_at = unlink_at,
        .list = list,
        .now_ms = now_ms,
        .clock_us = clock_us,
        .thread_cpu_us = thread_cpu_us,
        .sleep_ms = sleep_ms,
        .uid = uid,
        .pid = pid,
        .env = env,
        .lock_holder = below->lock_holder ? lock_holder : NULL,
        .network = below->network ? network : NULL,
        .lock_range = below->lock_range ? lock_range : NULL,
        .boot = below->boot ? boot : NULL,
    };
    faulty_none(f);
}

void faulty_deinit(faulty *f)
{
    pthread_mutex_destroy(&f->mutex);
    free(f->held);
    memset(f, 0, sizeof *f);
}

void faulty_plan(faulty *f, unsigned kinds, uint64_t at, uint64_t times, faulty_how how,
                 int error)
{
    pthread_mutex_lock(&f->mutex);
    memset(f->counts, 0, sizeof f->counts);
    f->all = f->changing = f->met = f->hits = 0;
    f->struck = FAULTY_KINDS;
    f->stopping = f->stopping_reads = 0;
    f->kinds = kinds & ~SACRED;
    f->at = at;
    f->times = times;
    f->how = how;
    f->error = error;
    pthread_mutex_unlock(&f->mutex);
}

void faulty_none(faulty *f)
{
    faulty_plan(f, 0, 0, 0, FAULTY_REFUSED, 0);
}

void faulty_fail(faulty *f, unsigned kinds, uint64_t at, int error)
{
    faulty_plan(f, kinds, at, 1, FAULTY_REFUSED, error);
}

void faulty_stop(faulty *f, uint64_t n, int reads_too)
{
    faulty_none(f);
    pthread_mutex_lock(&f->mutex);
    f->stopping = 1;
    f->stopping_reads = reads_too;
    f->stop_at = n;
    pthread_mutex_unlock(&f->mutex);
}
