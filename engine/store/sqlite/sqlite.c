/*
 * sqlite.c: a store in a SQLite database: its table of functions; opened and freed.
 *
 * Opening creates nothing: the first create, blob_put_new or draft_new creates the
 * database. A database that is not ours is never touched (schema.c). Nothing that another
 * process may change is kept in memory, except as read.c says.
 */
#include "store/sqlite/sqlite.h"

#include <string.h>

#include "store/sqlite/open.h"

static void sqlite_free(void *self)
{
    sqlite_store *ss = self;
    if (!ss)
        return;
    allocator a = ss->alloc;
    /* In a child that was forked the connections are the parent's: SQLite must not touch
     * them there, not even to close them. */
    if (ss->os->pid(ss->os->ud) == ss->pid) {
        while (ss->idle) {
            sqlite_conn *next = ss->idle->next;
            sqlite_conn_close(ss->idle);
            ss->idle = next;
        }
        sqlite_conn_close(ss->syncer); /* last: it may be the one that empties the WAL */
    }
    sqlite_path_free(ss);
    if (ss->folder)
        mem_free(&a, ss->folder, strlen(ss->folder) + 1);
    if (ss->path)
        mem_free(&a, ss->path, strlen(ss->path) + 1);
    pthread_cond_destroy(&ss->moved);
    pthread_mutex_destroy(&ss->mutex);
    mem_free(&a, ss, sizeof *ss);
}

static const sessile_backend sqlite_backend = {
    STORE_TABLE(sqlite),
    .capabilities = SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CACHES |
                    SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_LIST_CACHE,
    .name = "sqlite",
    .free = sqlite_free,
    .blob_settle = sqlite_blob_settle,
    .set_timeout = sqlite_set_timeout,
    .fence = sqlite_fence,
    .watch = sqlite_watch,
};

/* The folder of path, and its last part. "x.db" lies in ".". */
static sessile_status split_path(sqlite_store *ss, const char *path, sessile_error *err)
{
    enum { NAME_LONGEST = 200 }; /* room for what SQLite puts behind it */
    const allocator *a = &ss->alloc;
    ss->path = mem_dup(a, path, strlen(path));
    if (!ss->path)
        return fail_nomem(err);
    char *slash = strrchr(ss->path, '/');
    ss->file = slash ? slash + 1 : ss->path;
    ss->folder = !slash              ? mem_dup(a, ".", 1)
                 : slash == ss->path ? mem_dup(a, "/", 1)
                                     : mem_dup(a, ss->path, (size_t)(slash - ss->path));
    if (!ss->folder)
        return fail_nomem(err);
    /* a trailing slash would follow a link; cut without changing the block's size */
    for (size_t n = strlen(ss->folder); n > 1 && ss->folder[n - 1] == '/'; n--) {
        mem_free(a, ss->folder, n + 1);
        ss->folder = mem_dup(a, ss->path, n - 1);
        if (!ss->folder)
            return fail_nomem(err);
    }
    if (path[0] == '/' &&
        path[1] == '/') { /* elsewhere they begin a server's name, or nothing */
        return fail(
            err, SESSILE_INVALID,
            "sqlite:%s: what follows \"sqlite:\" is a path, and this begins with two "
            "slashes: write \"sqlite:%s\" in the folder you are in, or "
            "\"sqlite:/%s\" from the root",
            path, path + strspn(path, "/"), path + strspn(path, "/"));
    }
    if (strcmp(path, ":memory:") == 0 || strncmp(path, "file:", 5) == 0) {
        return fail(
            err, SESSILE_INVALID,
            "%s is no path: name a file, as \"sqlite:sessions.db\"; what is to be "
            "kept in memory alone is \"ram:\"",
            path);
    }
    if (ss->file[0] == '\0' || strcmp(ss->file, ".") == 0 ||
        strcmp(ss->file, "..") == 0) {
        return fail(err, SESSILE_INVALID,
                    "%s is a folder: a SQLite store wants the path of a file, as "
                    "\"sqlite:%s%ssessions.db\"",
                    path, path, ss->file[0] == '\0' ? "" : "/");
    }
    return strlen(ss->file) > NAME_LONGEST
               ? fail(err, SESSILE_INVALID, "the name of the database is too long: %s",
                      path)
               : SESSILE_OK;
}

/* What is there is looked at now, so that a path that is no store is told at once. On a
 * network file system that waits for the first use: it may be allowed until then. */
static sessile_status probe_database(sqlite_store *ss, sessile_error *err)
{
    sqlite_conn *c;
    sessile_status status = sqlite_conn_take(ss, sqlite_patience_of(ss), 0, &c, err);
    if (!status)
        sqlite_conn_give(c, 0);
    if (status == SESSILE_NOTFOUND ||
        (status == SESSILE_UNSUPPORTED && ss->folder_fd < 0)) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

void store_sqlite_allow_network(store *st)
{
    ((sqlite_store *)st->self)->allow_network = 1;
}

const char *store_sqlite_path(const store *st)
{
    return st->table == &sqlite_backend ? ((const sqlite_store *)st->self)->path : NULL;
}

sessile_status store_sqlite_open(store *out, const char *path, int timeout_ms,
                                 const os_table *os, const allocator *a,
                                 sessile_error *err)
{
    out->table = NULL;
    out->self = NULL;
    if (!path || path[0] == '\0')
        return fail(err, SESSILE_INVALID, "a SQLite store needs the path of its file");
    if (!sqlite3_threadsafe() || sqlite3_libversion_number() < 3037000) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the SQLite of this machine (%s) is too old, or built without "
                    "threads: 3.37 is needed",
                    sqlite3_libversion());
    }
    sqlite_store *ss = mem_zalloc(a, sizeof *ss);
    if (!ss)
        return fail_nomem(err);
    ss->os = os;
    ss->alloc = *a;
    ss->pid = os->pid(os->ud);
    ss->timeout_ms = timeout_ms;
    ss->folder_fd = -1;
    pthread_mutex_init(&ss->mutex, NULL);
    os_cond_init(&ss->moved);
    sessile_status status = split_path(ss, path, err);
    if (!status)
        status = probe_database(ss, err);
    if (status) {
        sqlite_free(ss);
        return status;
    }
    out->table = &sqlite_backend;
    out->self = ss;
    return SESSILE_OK;
}
