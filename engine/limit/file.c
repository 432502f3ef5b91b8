/*
 * limit_file.c: windows in a file that the processes of a machine share.
 *
 * The file is 8,192 buckets of 8 records of 128 bytes (limit_window.h), as the machine
 * has them in memory; it is sparse, and has no header. A key's bucket is locked (an
 * open-file-description lock of its bytes, which the system drops when the process dies),
 * read, and one record of it is written back. Nothing is synced.
 *
 * It is a cache. A record that its check does not fit is nobody's. A file that was
 * removed, replaced or cut is found within a second; windows begin afresh. A file that
 * cannot be used (a full disk, a folder that may not be written, a link, a file of
 * somebody else, a network file system) is away, and is tried again after a second.
 *
 * The mutex is held over all of it: locks of one open file do not exclude its threads.
 */
#include "base/text.h"
#include "limit/places.h"

#include <errno.h>
#include <string.h>

enum {
    BUCKETS = 8192,
    BUCKET_BYTES = LIMIT_BUCKET * (int)sizeof(limit_record),
    /* A bucket is locked for microseconds. Who holds it for so long was stopped. */
    YIELDS = 50,
    WAITS_MS = 1000,
    AGAIN_MS = 1000 /* until a file is looked at again */
};

typedef struct file_place {
    limit_place place;
    const os_table *os;
    allocator alloc;
    hash_key key;
    uint64_t boot;
    char *path;
    pthread_mutex_t mutex; /* all that follows */
    int fd;                /* -1: not open */
    uint32_t pid;          /* of the process that opened it */
    uint64_t device, inode;
    int64_t looked_ms; /* when the path was last seen to lead to it */
    int64_t failed_ms; /* when it could not be used; less than 0: it could */
    sessile_error why; /* what was wrong then */
} file_place;

static int64_t now_ms(const file_place *p)
{
    return limit_now(p->os, 0).ms;
}

static void close_file(file_place *p)
{
    if (p->fd >= 0)
        p->os->close(p->os->ud, p->fd);
    p->fd = -1;
}

/* It cannot be used for a second. */
static limit_answer away(file_place *p, sessile_error *why)
{
    close_file(p);
    p->failed_ms = now_ms(p);
    p->why = *why;
    return LIMIT_AWAY;
}

/* ------------------------------------------------------------------ opening */

static int make_folder(file_place *p)
{
    char *slash = strrchr(p->path, '/');
    if (!slash || slash == p->path)
        return -1;
    *slash = '\0';
    int made = os_make_path(p->os, &p->alloc, p->path);
    *slash = '/';
    return made;
}

/* Makes the file, and for a call that `makes` its folder. A descriptor; -1 and errno. */
static int make_file(file_place *p, int makes)
{
    const os_table *os = p->os;
    const int how = OS_READ | OS_WRITE;
    int fd = os->open_at(os->ud, -1, p->path, how | OS_CREATE_NEW);
    if (fd < 0 && errno == ENOENT && makes && make_folder(p) == 0)
        fd = os->open_at(os->ud, -1, p->path, how | OS_CREATE_NEW);
    if (fd < 0 && errno == EEXIST) /* somebody else was quicker */
        fd = os->open_at(os->ud, -1, p->path, how);
    return fd;
}

static limit_answer open_file(file_place *p, const limit_ask *ask, sessile_error *why)
{
    const os_table *os = p->os;
    char network[16];
    os_stat_info st;
    p->fd = os->open_at(os->ud, -1, p->path, OS_READ | OS_WRITE);
    if (p->fd < 0 && errno == ENOENT)
        p->fd = make_file(p, ask->makes);
    if (p->fd < 0 && errno == ENOENT)
        return LIMIT_NOT_YET; /* there is no store yet */
    if (p->fd < 0) {
        fail_errno(why, errno, "rate limits are not shared: cannot open %s", p->path);
        return away(p, why);
    }
    if (os->stat_fd(os->ud, p->fd, &st) != 0) {
        fail_errno(why, errno, "rate limits are not shared: cannot look at %s", p->path);
        return away(p, why);
    }
    if (!st.is_regular || st.uid != os->uid(os->ud) || (st.mode & 077u) != 0) {
        fail(why, SESSILE_DENIED,
             "rate limits are not shared: %s is no file of this user alone: remove it",
             p->path);
        return away(p, why);
    }
    if (os->network && os->network(os->ud, p->fd, network, sizeof network) == 1) {
        fail(why, SESSILE_UNSUPPORTED,
             "rate limits are not shared: %s is on a network file system (%s), whose "
             "locks cannot be relied on",
             p->path, network);
        return away(p, why);
    }
    p->device = st.device;
    p->inode = st.inode;
    p->pid = os->pid(os->ud);
    p->looked_ms = now_ms(p);
    p->failed_ms = -1;
    return LIMIT_COUNTED;
}

/* Opens the file, unless it is open and still has its name. COUNTED: it is open. */
static limit_answer ready(file_place *p, const limit_ask *ask, sessile_error *why)
{
    const os_table *os = p->os;
    int64_t now = now_ms(p);
    os_stat_info st;
    if (p->fd >= 0 && p->pid != os->pid(os->ud))
        close_file(p); /* after fork() the parent's locks would be ours as well */
    if (p->fd >= 0 && now - p->looked_ms >= AGAIN_MS) {
        p->looked_ms = now;
        if (os->stat_at(os->ud, -1, p->path, &st) != 0 || st.device != p->device ||
            st.inode != p->inode)
            close_file(p);
    }
    if (p->fd >= 0)
        return LIMIT_COUNTED;
    if (p->failed_ms >= 0 && now - p->failed_ms < AGAIN_MS) {
        *why = p->why;
        return LIMIT_AWAY;
    }
    return open_file(p, ask, why);
}

/* ------------------------------------------------------------------ buckets */

static int lock_bucket(file_place *p, uint64_t at)
{
    const os_table *os = p->os;
    uint64_t until = 0;
    for (int tries = 0;; tries++) {
        if (os->lock_range(os->ud, p->fd, OS_LOCK_EXCLUSIVE, at, BUCKET_BYTES) == 0)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            return -1;
        uint64_t now = os->clock_us(os->ud);
        until = until ? until : now + WAITS_MS * UINT64_C(1000);
        if (now >= until) {
            errno = EAGAIN;
            return -1;
        }
        os->sleep_ms(os->ud, tries < YIELDS ? 0 : 1);
    }
}

static uint64_t check_of(const file_place *p, const limit_record *r)
{
    limit_record copy = *r;
    copy.check = 0;
    return hash64_keyed(&p->key, &copy, sizeof copy);
}

/* Reads a bucket; what is beyond the end of the file is empty. */
static int read_bucket(file_place *p, uint64_t at, limit_record bucket[LIMIT_BUCKET])
{
    int64_t got = os_read_full(p->os, p->fd, bucket, BUCKET_BYTES, at);
    if (got < 0)
        return -1;
    memset((char *)bucket + got, 0, (size_t)(BUCKET_BYTES - got));
    return 0;
}

/* The record of the key; damaged ones are emptied first. A key that is found needs one
 * check, a new one those of the whole bucket. */
static limit_record *find(const file_place *p, limit_record bucket[LIMIT_BUCKET],
                          const limit_ask *ask, limit_time now)
{
    for (int i = 0; i < LIMIT_BUCKET; i++)
        if (bucket[i].key == ask->key && bucket[i].check == check_of(p, &bucket[i]))
            return limit_bucket_find(bucket, ask, now, 1);
    for (int i = 0; i < LIMIT_BUCKET; i++)
        if (bucket[i].key && bucket[i].check != check_of(p, &bucket[i]))
            memset(&bucket[i], 0, sizeof bucket[i]);
    return limit_bucket_find(bucket, ask, now, 1);
}

typedef void change(limit_record *r, limit_ask *ask, limit_time now);

static void undo_record(limit_record *r, limit_ask *ask, limit_time now)
{
    limit_window_undo(r, ask, now);
}

/* Changes the record of the key under the lock of its bucket. 0; -1 and errno. */
static int change_record(file_place *p, limit_ask *ask, change *how)
{
    const os_table *os = p->os;
    limit_record bucket[LIMIT_BUCKET];
    uint64_t at = (ask->key & (BUCKETS - 1)) * BUCKET_BYTES;
    if (lock_bucket(p, at) != 0)
        return -1;
    int result = read_bucket(p, at, bucket), error;
    if (result == 0) {
        limit_time now =
            limit_now(os, p->boot); /* never before that of the last holder */
        limit_record *r = find(p, bucket, ask, now);
        how(r, ask, now);
        r->check = check_of(p, r);
        size_t written;
        result = os_write_full(os, p->fd, r, sizeof *r,
                               at + (uint64_t)((char *)r - (char *)bucket), &written);
    }
    error = errno;
    os->lock_range(os->ud, p->fd, OS_LOCK_NONE, at, BUCKET_BYTES);
    errno = error;
    return result;
}

/* ------------------------------------------------------------------ the place */

static limit_answer file_take(limit_place *self, limit_ask *ask, sessile_error *why)
{
    file_place *p = (file_place *)self;
    pthread_mutex_lock(&p->mutex);
    limit_answer answer = ready(p, ask, why);
    if (answer == LIMIT_COUNTED) {
        if (change_record(p, ask, limit_window_take) == 0) {
            answer = ask->retry_ms ? LIMIT_FULL : LIMIT_COUNTED;
        } else {
            if (errno == EAGAIN)
                fail(why, SESSILE_BUSY,
                     "rate limits are not shared: another process has kept %s locked for "
                     "a second: end or continue it",
                     p->path);
            else
                fail_errno(why, errno, "rate limits are not shared: cannot use %s",
                           p->path);
            answer = away(p, why);
        }
    }
    pthread_mutex_unlock(&p->mutex);
    return answer;
}

static void file_undo(limit_place *self, const limit_ask *ask)
{
    file_place *p = (file_place *)self;
    limit_ask copy = *ask;
    pthread_mutex_lock(&p->mutex);
    if (p->fd >= 0 && p->pid == p->os->pid(p->os->ud))
        (void)change_record(p, &copy, undo_record); /* failed, one more is counted */
    pthread_mutex_unlock(&p->mutex);
}

static void file_free(limit_place *self)
{
    file_place *p = (file_place *)self;
    allocator a = p->alloc;
    close_file(p);
    mem_free(&a, p->path, strlen(p->path) + 1);
    pthread_mutex_destroy(&p->mutex);
    mem_free(&a, p, sizeof *p);
}

sessile_status limit_file_open(limit_place **out, const char *path, const hash_key *key,
                               const os_table *os, const allocator *a, sessile_error *err)
{
    *out = NULL;
    file_place *p = mem_zalloc(a, sizeof *p);
    char *copy = p ? mem_dup(a, path, strlen(path)) : NULL;
    if (!copy) {
        mem_free(a, p, sizeof *p);
        return fail_nomem(err);
    }
    p->place = (limit_place){file_take, file_undo, file_free};
    p->os = os;
    p->alloc = *a;
    p->key = *key;
    p->path = copy;
    p->boot = os->boot ? os->boot(os->ud) : 0;
    p->fd = -1;
    p->failed_ms = -1;
    pthread_mutex_init(&p->mutex, NULL);
    *out = &p->place;
    return SESSILE_OK;
}
