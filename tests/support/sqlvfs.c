/* sqlvfs.c: see the header. Must never read or close the files by other means than the
 * real VFS while they are open: locks of POSIX would go. */
#include "support/sqlvfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct range {
    size_t at, size;
    int cut; /* the file ends at `at` */
} range;

/* What is on the device of one file, and what is only in the kernel. */
typedef struct disk {
    char path[512];
    unsigned char *synced, *written;
    size_t synced_size, written_size, room;
    range *pending;
    size_t count, capacity;
} disk;

typedef struct file {
    sqlite3_file base;
    int flags;
    disk *disk;
    sqlite3_file *real;
} file;

static sqlvfs now;
static sqlite3_vfs ours, *real_vfs;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static disk disks[2]; /* database, WAL */

static file *of(sqlite3_file *f)
{
    return (file *)(void *)f;
}

/* 1 when this call fails. */
static int due(unsigned kind)
{
    int fails = 0;
    pthread_mutex_lock(&mutex);
    if (now.kinds & kind) {
        fails = now.calls++ == now.fail_at;
        now.hits += fails;
    }
    pthread_mutex_unlock(&mutex);
    return fails;
}

/* ------------------------------------------------------------------ the device */

static void room(disk *d, size_t size)
{
    if (size > d->room) {
        size_t more = size * 2;
        d->written = realloc(d->written, more);
        d->synced = realloc(d->synced, more);
        if (!d->written || !d->synced)
            abort();
        memset(d->written + d->room, 0, more - d->room);
        memset(d->synced + d->room, 0, more - d->room);
        d->room = more;
    }
}

static void later(disk *d, range r)
{
    if (d->count == d->capacity) {
        d->capacity = d->capacity * 2 + 64;
        d->pending = realloc(d->pending, d->capacity * sizeof *d->pending);
        if (!d->pending)
            abort();
    }
    d->pending[d->count++] = r;
}

static void wrote(disk *d, const void *data, size_t size, size_t at)
{
    pthread_mutex_lock(&mutex);
    room(d, at + size);
    memcpy(d->written + at, data, size);
    d->written_size = at + size > d->written_size ? at + size : d->written_size;
    later(d, (range){at, size, 0});
    pthread_mutex_unlock(&mutex);
}

static void cut(disk *d, size_t size)
{
    pthread_mutex_lock(&mutex);
    room(d, size);
    if (size < d->written_size)
        memset(d->written + size, 0, d->written_size - size);
    d->written_size = size;
    later(d, (range){size, 0, 1});
    pthread_mutex_unlock(&mutex);
}

static void settled(disk *d)
{
    pthread_mutex_lock(&mutex);
    if (d->count > 0) { /* whatever the order was: now the two are the same */
        for (size_t i = 0; i < d->count; i++)
            if (!d->pending[i].cut)
                memcpy(d->synced + d->pending[i].at, d->written + d->pending[i].at,
                       d->pending[i].size);
        if (d->written_size < d->synced_size)
            memset(d->synced + d->written_size, 0, d->synced_size - d->written_size);
        d->synced_size = d->written_size;
        d->count = 0;
    }
    pthread_mutex_unlock(&mutex);
}

/* ------------------------------------------------------------------ files */

static int x_close(sqlite3_file *f)
{
    return of(f)->real->pMethods->xClose(of(f)->real);
}

static int x_read(sqlite3_file *f, void *out, int size, sqlite3_int64 at)
{
    return of(f)->real->pMethods->xRead(of(f)->real, out, size, at);
}

static int x_write(sqlite3_file *f, const void *data, int size, sqlite3_int64 at)
{
    file *o = of(f);
    int fails = due(SQLVFS_WRITE);
    if (fails && now.torn)
        size /= 2;
    else if (fails)
        return now.code;
    int rc = o->real->pMethods->xWrite(o->real, data, size, at);
    if (rc == SQLITE_OK && o->disk)
        wrote(o->disk, data, (size_t)size, (size_t)at);
    if (o->flags & SQLITE_OPEN_WAL) {
        pthread_mutex_lock(&mutex);
        now.wal_writes++;
        pthread_mutex_unlock(&mutex);
    }
    return fails ? now.code : rc;
}

static int x_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    file *o = of(f);
    if (due(SQLVFS_OTHER))
        return SQLITE_IOERR_TRUNCATE;
    int rc = o->real->pMethods->xTruncate(o->real, size);
    if (rc == SQLITE_OK && o->disk)
        cut(o->disk, (size_t)size);
    return rc;
}

static int x_sync(sqlite3_file *f, int flags)
{
    file *o = of(f);
    pthread_mutex_lock(&mutex);
    now.syncs++;
    now.wal_syncs += (o->flags & SQLITE_OPEN_WAL) != 0;
    pthread_mutex_unlock(&mutex);
    if (due(SQLVFS_SYNC))
        return SQLITE_IOERR_FSYNC;
    if (o->disk)
        settled(o->disk); /* what is written meanwhile may be left out */
    if (now.sync_us)
        usleep((useconds_t)now.sync_us);
    return now.lazy ? SQLITE_OK : o->real->pMethods->xSync(o->real, flags);
}

static int x_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return of(f)->real->pMethods->xFileSize(of(f)->real, size);
}

static int x_lock(sqlite3_file *f, int level)
{
    return of(f)->real->pMethods->xLock(of(f)->real, level);
}

static int x_unlock(sqlite3_file *f, int level)
{
    return of(f)->real->pMethods->xUnlock(of(f)->real, level);
}

static int x_reserved(sqlite3_file *f, int *out)
{
    return of(f)->real->pMethods->xCheckReservedLock(of(f)->real, out);
}

static int x_control(sqlite3_file *f, int op, void *arg)
{
    return of(f)->real->pMethods->xFileControl(of(f)->real, op, arg);
}

static int x_sector(sqlite3_file *f)
{
    return of(f)->real->pMethods->xSectorSize(of(f)->real);
}

static int x_device(sqlite3_file *f)
{
    return of(f)->real->pMethods->xDeviceCharacteristics(of(f)->real);
}

static int x_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return of(f)->real->pMethods->xShmMap(of(f)->real, page, size, extend, out);
}

static int x_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return of(f)->real->pMethods->xShmLock(of(f)->real, offset, n, flags);
}

static void x_shm_barrier(sqlite3_file *f)
{
    of(f)->real->pMethods->xShmBarrier(of(f)->real);
}

static int x_shm_unmap(sqlite3_file *f, int drop)
{
    return of(f)->real->pMethods->xShmUnmap(of(f)->real, drop);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = x_close,
    .xRead = x_read,
    .xWrite = x_write,
    .xTruncate = x_truncate,
    .xSync = x_sync,
    .xFileSize = x_size,
    .xLock = x_lock,
    .xUnlock = x_unlock,
    .xCheckReservedLock = x_reserved,
    .xFileControl = x_control,
    .xSectorSize = x_sector,
    .xDeviceCharacteristics = x_device,
    .xShmMap = x_shm_map,
    .xShmLock = x_shm_lock,
    .xShmBarrier = x_shm_barrier,
    .xShmUnmap = x_shm_unmap,
};

static int x_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *out, int flags,
                  int *out_flags)
{
    file *o = of(out);
    (void)vfs;
    memset(o, 0, sizeof *o);
    if (due(SQLVFS_OTHER))
        return SQLITE_IOERR_ACCESS;
    o->real = (sqlite3_file *)(void *)(o + 1);
    o->flags = flags;
    int rc = real_vfs->xOpen(real_vfs, name, o->real, flags, out_flags);
    for (size_t i = 0; i < 2 && name; i++)
        if (disks[i].path[0] && strcmp(disks[i].path, name) == 0)
            o->disk = &disks[i];
    if (o->real->pMethods)
        o->base.pMethods = &methods;
    return rc;
}

static int x_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    return due(SQLVFS_OTHER) ? SQLITE_IOERR_DELETE
                             : real_vfs->xDelete(real_vfs, name, sync);
}

sqlvfs *sqlvfs_install(void)
{
    memset(&now, 0, sizeof now);
    now.fail_at = -1;
    real_vfs = sqlite3_vfs_find(NULL);
    ours = *real_vfs;
    ours.zName = "sessile-test";
    ours.szOsFile = real_vfs->szOsFile + (int)sizeof(file);
    ours.pNext = NULL;
    ours.xOpen = x_open;
    ours.xDelete = x_delete;
    sqlite3_vfs_register(&ours, 1);
    return &now;
}

void sqlvfs_remove(void)
{
    sqlite3_vfs_unregister(&ours);
    sqlite3_vfs_register(real_vfs, 1);
    for (size_t i = 0; i < 2; i++) {
        free(disks[i].synced);
        free(disks[i].written);
        free(disks[i].pending);
    }
    memset(disks, 0, sizeof disks);
}

void sqlvfs_remember(const char *path)
{
    char *real = realpath(path, NULL);
    for (size_t i = 0; i < 2; i++)
        snprintf(disks[i].path, sizeof disks[i].path, "%s%s", real ? real : path,
                 i ? "-wal" : "");
    free(real);
}

void sqlvfs_power_cut(const char *folder, unsigned what)
{
    const char *slash = strrchr(disks[0].path, '/');
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < 2; i++) {
        const disk *d = &disks[i];
        char path[1100];
        int written = (what >> i) & 1;
        snprintf(path, sizeof path, "%s/%s%s", folder, slash + 1, i ? "-wal" : "");
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        size_t size = written ? d->written_size : d->synced_size;
        if (fd < 0 ||
            (size && write(fd, written ? d->written : d->synced, size) != (ssize_t)size))
            abort();
        close(fd);
    }
    pthread_mutex_unlock(&mutex);
}
