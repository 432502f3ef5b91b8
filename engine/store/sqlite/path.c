/*
 * path.c: the database's file and the folder that holds it.
 *
 * The database and SQLite's files beside it must belong to this user and must not be
 * links, and nobody else may create files there: SQLite would use a foreign -wal as its
 * own. The database itself is never opened here, since closing it would drop SQLite's
 * locks (sqlite.h).
 */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHERS_WRITE 022u
#define OTHERS       077u
#define NAME_ROOM    300
#define LEFTOVER     ".new-"
/* A file that is being made has its name within milliseconds. */
#define LEAST_AGE_MS 3600000

static sessile_status open_folder(sqlite_store *ss, sessile_error *err)
{
    const os_table *os = ss->os;
    char network[16] = "";
    os_stat_info st;
    int fd = os->open_at(os->ud, -1, ss->folder, OS_READ | OS_DIRECTORY);
    if (fd < 0) {
        return errno == ENOTDIR || errno == ELOOP
                   ? fail(err, SESSILE_DENIED,
                          "%s is a link or no folder: name the folder itself", ss->folder)
                   : fail_errno(err, errno, "cannot open the folder %s", ss->folder);
    }
    sessile_status status = SESSILE_OK;
    if (os->stat_fd(os->ud, fd, &st) != 0) {
        status = fail_errno(err, errno, "cannot look at the folder %s", ss->folder);
    } else if (!st.is_dir || st.uid != os->uid(os->ud)) {
        status = fail(err, SESSILE_DENIED,
                      "the folder %s belongs to another user: keep the database in a "
                      "folder of your own",
                      ss->folder);
    } else if ((st.mode & OTHERS_WRITE) != 0) {
        status = fail(err, SESSILE_DENIED,
                      "others may write in the folder %s: chmod go-w it, or keep the "
                      "database in a folder of its own",
                      ss->folder);
    } else if (!ss->allow_network && os->network &&
               os->network(os->ud, fd, network, sizeof network) == 1) {
        status = fail(
            err, SESSILE_UNSUPPORTED,
            "%s is on a network file system (%s), where SQLite's locks and shared memory "
            "cannot be relied on: keep the database on a local disk; or, when one "
            "machine alone uses it, open it with allow_network (Lua: network = true, "
            "command: --network)",
            ss->path, network);
    }
    if (!status) {
        char *real = os_proc_real_path(ss->folder);
        size_t size = real ? strlen(real) : 0, file = strlen(ss->file);
        ss->real = real ? mem_alloc(&ss->alloc, size + file + 2) : NULL;
        if (!real) {
            status = fail_errno(err, errno, "cannot follow the path %s", ss->folder);
        } else if (!ss->real) {
            status = fail_nomem(err);
        } else {
            memcpy(ss->real, real, size);
            size -= size == 1; /* the root folder */
            ss->real[size] = '/';
            memcpy(ss->real + size + 1, ss->file, file + 1);
        }
        free(real);
    }
    if (status) {
        os->close(os->ud, fd);
        return status;
    }
    ss->folder_fd = fd;
    return SESSILE_OK;
}

void sqlite_path_free(sqlite_store *ss)
{
    if (ss->folder_fd >= 0) {
        ss->os->close(ss->os->ud, ss->folder_fd);
        ss->folder_fd = -1;
    }
    if (ss->real) {
        mem_free(&ss->alloc, ss->real, strlen(ss->real) + 1);
        ss->real = NULL;
    }
}

/* A file that SQLite reads: ours alone. 0 in *there: it is not there. */
static sessile_status check_file(const sqlite_store *ss, const char *suffix, int *there,
                                 sessile_error *err)
{
    const os_table *os = ss->os;
    char name[NAME_ROOM];
    os_stat_info st;
    *there = 0;
    snprintf(name, sizeof name, "%s%s", ss->file, suffix);
    if (os->stat_at(os->ud, ss->folder_fd, name, &st) != 0) {
        return errno == ENOENT
                   ? SESSILE_OK
                   : fail_errno(err, errno, "cannot look at %s%s", ss->path, suffix);
    }
    if (st.is_symlink) {
        return fail(err, SESSILE_DENIED, "%s%s is a link: name the file itself", ss->path,
                    suffix);
    }
    if (!st.is_regular)
        return fail(err, SESSILE_DENIED, "%s%s is not a regular file", ss->path, suffix);
    if (st.uid != os->uid(os->ud)) {
        return fail(err, SESSILE_DENIED, "%s%s belongs to another user", ss->path,
                    suffix);
    }
    if ((st.mode & OTHERS) != 0) {
        return fail(err, SESSILE_DENIED, "%s%s is open to others: chmod 600 it", ss->path,
                    suffix);
    }
    *there = 1;
    return SESSILE_OK;
}

/* A rollback journal may end with the name of another file, and SQLite, when it has
 * rolled back, removes that: any file of whoever opens a stranger's database. Journals
 * end so when a transaction spans several databases, which none of ours does. */
static sessile_status check_journal(const sqlite_store *ss, sessile_error *err)
{
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9,
                                           0x20, 0xa1, 0x63, 0xd7};
    const os_table *os = ss->os;
    char name[NAME_ROOM];
    unsigned char end[sizeof magic];
    os_stat_info st;
    int64_t got = 0;
    snprintf(name, sizeof name, "%s-journal", ss->file);
    int fd = os->open_at(os->ud, ss->folder_fd, name, OS_READ);
    if (fd < 0 && errno == ENOENT)
        return SESSILE_OK;
    int failed = fd < 0 || os->stat_fd(os->ud, fd, &st) != 0;
    if (!failed && st.size >= sizeof end) {
        got = os_read_full(os, fd, end, sizeof end, st.size - sizeof end);
        failed = got < 0;
    }
    int error = errno;
    if (fd >= 0)
        os->close(os->ud, fd);
    if (failed)
        return fail_errno(err, error, "cannot read %s-journal", ss->path);
    return got == sizeof end && memcmp(end, magic, sizeof end) == 0
               ? fail(
                     err, SESSILE_DENIED,
                     "%s-journal names another file, which SQLite would remove: no store "
                     "makes such a journal; move it away if you do not know it",
                     ss->path)
               : SESSILE_OK;
}

sessile_status sqlite_path_look(sqlite_store *ss, int *there, sessile_error *err)
{
    static const char *const beside[] = {"-journal", "-wal", "-shm"};
    sessile_status status = SESSILE_OK;
    int other;
    *there = 0;
    if (ss->folder_fd < 0) {
        status = open_folder(ss, err);
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            return SESSILE_OK;
        }
    }
    if (!status)
        status = check_file(ss, "", there, err);
    for (size_t i = 0; i < sizeof beside / sizeof *beside && !status; i++) {
        status = check_file(ss, beside[i], &other, err);
        if (!status && other && i == 0)
            status = check_journal(ss, err);
    }
    return status;
}

uint64_t sqlite_path_wal(const sqlite_store *ss)
{
    const os_table *os = ss->os;
    char name[NAME_ROOM];
    os_stat_info st;
    snprintf(name, sizeof name, "%s-wal", ss->file);
    return os->stat_at(os->ud, ss->folder_fd, name, &st) == 0 ? st.inode : 0;
}

sessile_status sqlite_path_make(sqlite_store *ss, sessile_error *err)
{
    const os_table *os = ss->os;
    char name[NAME_ROOM];
    os_stat_info st;
    sessile_status status = SESSILE_OK;
    if (ss->folder_fd < 0) {
        if (os_make_path(os, &ss->alloc, ss->folder) != 0)
            return fail_errno(err, errno, "cannot make the folder %s", ss->folder);
        status = open_folder(ss, err);
    }
    if (status)
        return status;
    if (os->stat_at(os->ud, ss->folder_fd, ss->file, &st) != 0) {
        /* Not under its own name: somebody else may open it there before we close it. */
        snprintf(name, sizeof name, "%s%s%08x%08x", ss->file, LEFTOVER,
                 (unsigned)os->pid(os->ud), (unsigned)os->clock_us(os->ud));
        int fd = os->open_at(os->ud, ss->folder_fd, name, OS_WRITE | OS_CREATE_NEW);
        if (fd < 0)
            return fail_errno(err, errno, "cannot make %s", ss->path);
        int failed = os->sync_all(os->ud, fd);
        int error = errno;
        os->close(os->ud, fd);
        if (failed == 0 && os->rename_new(os->ud, ss->folder_fd, name, ss->file) != 0) {
            error = errno;
            failed = error != EEXIST;
            os->unlink_at(os->ud, ss->folder_fd, name);
        } else if (failed != 0) {
            os->unlink_at(os->ud, ss->folder_fd, name);
        }
        if (failed != 0)
            return fail_errno(err, error, "cannot make %s", ss->path);
    }
    /* Also when somebody else made it: they may not have come to their sync. */
    return os->sync_all(os->ud, ss->folder_fd) == 0
               ? SESSILE_OK
               : fail_errno(err, errno, "cannot sync the folder %s", ss->folder);
}

/* ------------------------------------------------------------------ leftovers */

typedef struct sweeping {
    sqlite_store *ss;
    int (*visit)(void *arg, const char *folder, const char *file, uint64_t bytes);
    void *arg;
} sweeping;

static int sweep_file(void *arg, const char *name)
{
    sweeping *s = arg;
    const os_table *os = s->ss->os;
    size_t file = strlen(s->ss->file), prefix = strlen(LEFTOVER);
    os_stat_info st;
    if (strncmp(name, s->ss->file, file) == 0 &&
        strncmp(name + file, LEFTOVER, prefix) == 0 &&
        strlen(name + file + prefix) == 16 &&
        strspn(name + file + prefix, "0123456789abcdef") == 16 &&
        os->stat_at(os->ud, s->ss->folder_fd, name, &st) == 0 && st.is_regular &&
        st.size == 0 && st.uid == os->uid(os->ud) &&
        os->now_ms(os->ud) - st.mtime_ms >= LEAST_AGE_MS &&
        s->visit(s->arg, NULL, name, 0))
        os->unlink_at(os->ud, s->ss->folder_fd, name);
    return 0;
}

sessile_status sqlite_path_sweep(sqlite_store *ss,
                                 int (*visit)(void *arg, const char *folder,
                                              const char *file, uint64_t bytes),
                                 void *arg, sessile_error *err)
{
    sweeping s = {ss, visit, arg};
    if (ss->folder_fd >= 0 &&
        ss->os->list(ss->os->ud, ss->folder_fd, sweep_file, &s) != 0)
        return fail_errno(err, errno, "cannot list the folder %s", ss->folder);
    return SESSILE_OK;
}
