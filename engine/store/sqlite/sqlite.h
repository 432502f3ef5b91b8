/*
 * sqlite.h: what the files of this folder share. README.md lists them.
 *
 * While this process has the database open, its file must not be opened and closed by any
 * means but SQLite's: when a process closes any descriptor of a file, POSIX drops all
 * locks that the process holds on it.
 */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/os.h"
#include "store/operations.h"
#include "store/wait.h"

/* Statements that are prepared once a connection; their texts: schema.c. */
typedef enum sqlite_query {
    QUERY_BEGIN,
    QUERY_COMMIT,
    QUERY_ROLLBACK,
    QUERY_LOG_NEW,
    QUERY_LOG_FIND,
    QUERY_LOG_ROW,
    QUERY_LOG_GROW,
    QUERY_LOG_FENCE,
    QUERY_LOG_STAT,
    QUERY_LOG_STAT_ROW,
    QUERY_LOG_REINDEX,
    QUERY_LOG_RENAME,
    QUERY_LOG_REMOVE,
    QUERY_LOG_UNNAME,
    QUERY_ENTRY_PUT,
    QUERY_ENTRY_GROW,
    QUERY_ENTRY_AT,
    QUERY_ENTRY_NEXT,
    QUERY_ENTRY_FROM,
    QUERY_DRAFT_NEW,
    QUERY_DRAFT_GROW,
    QUERY_DRAFT_NAME,
    QUERY_DRAFT_DROP,
    QUERY_DRAFT_SWEEP,
    QUERY_KEPT_LAST,
    QUERY_KEPT_REMOVE,
    QUERY_LIST,
    QUERY_LIST_FOLDER,
    QUERY_LIST_OTHERS,
    QUERY_LIST_DRAFTS,
    QUERY_HAS_LOGS,
    QUERY_CACHE_END,
    QUERY_CACHE_FROM,
    QUERY_CACHE_SHORTEN,
    QUERY_CACHE_CUT,
    QUERY_CACHE_PUT,
    QUERY_LIST_CACHE_GET,
    QUERY_LIST_CACHE_PUT,
    QUERY_LIST_CACHE_DROP,
    QUERY_LIST_CACHE_DROP_ALL,
    QUERY_BLOB_GET,
    QUERY_BLOB_PUT,
    QUERY_BLOB_REPLACE,
    QUERY_BLOB_REMOVE,
    QUERY_BLOB_LIST,
    QUERY_COUNT
} sqlite_query;

typedef struct sqlite_store sqlite_store;

/* A connection: of one thread at a time. */
typedef struct sqlite_conn {
    struct sqlite_conn *next;
    sqlite_store *store;
    sqlite3 *db;
    sqlite3_stmt *statements[QUERY_COUNT];
} sqlite_conn;

struct sqlite_store {
    const os_table *os;
    allocator alloc;
    char *path;       /* as it was given, for sentences */
    char *folder;     /* that holds the database */
    const char *file; /* its name there, in path */
    int timeout_ms;
    uint32_t pid;          /* that opened it */
    int allow_network;     /* fixed before it is used */
    pthread_mutex_t mutex; /* all that follows */
    pthread_cond_t moved;  /* the turn to write was given back, or a sync has ended */
    int folder_fd;         /* -1: not looked at yet */
    char *real;            /* the path that SQLite is given, with the folder's links
                              followed once */
    int ours;              /* it is a database of ours, with the schema of this engine */
    int writing;           /* somebody has the turn */
    sqlite_conn *idle;
    unsigned idle_count;
    sqlite_conn *syncer; /* open since before the first write: sync.c */
    uint64_t wal_inode;  /* of the WAL that it has open */
    int syncing;
    uint64_t begun, done; /* syncs, counted */
    int poisoned;         /* a sync failed: nothing more is written */
};

/* How long a call waits for others, and what ends the wait. `what` names what is waited
 * for in sentences. */
typedef struct sqlite_patience {
    int timeout_ms;
    lock_stop stop;
    const char *what;
} sqlite_patience;
sqlite_patience sqlite_patience_of(const sqlite_store *ss);

/* ---- path.c */

/* Opens the folder and looks at the database's file. *there: 0 when there is none.
 * DENIED: a link, somebody else's, or open to others; UNSUPPORTED: on a network file
 * system. Under the store's mutex. */
sessile_status sqlite_path_look(sqlite_store *ss, int *there, sessile_error *err);
/* Makes an empty file, 0600, with all folders above it; the names are durable. Fine when
 * it is there. Under the store's mutex. */
sessile_status sqlite_path_make(sqlite_store *ss, sessile_error *err);
/* Removes what crashes left of sqlite_path_make(): visits as sweep does. */
sessile_status sqlite_path_sweep(sqlite_store *ss,
                                 int (*visit)(void *arg, const char *folder,
                                              const char *file, uint64_t bytes),
                                 void *arg, sessile_error *err);
/* The inode of the write-ahead log by its name; 0: there is none. */
uint64_t sqlite_path_wal(const sqlite_store *ss);
void sqlite_path_free(sqlite_store *ss);

/* ---- schema.c */

#define SQLITE_APPLICATION    0x73657373 /* "sess": ours, in the header of the database */
#define SQLITE_SCHEMA_VERSION 1

/* Looks at the first page, changing nothing. *state 0: nothing was ever kept in it; 1: a
 * database of ours. INVALID: any other file. */
sessile_status sqlite_schema_probe(sqlite_store *ss, int *state, sessile_error *err);
/* On a connection that has not been used yet: the schema is made (make), brought up to
 * this engine's, or refused: UNSUPPORTED: it is newer; INVALID: not ours; NOTFOUND: there
 * is none. SQLITE_BUSY (returned in *rc) when others are at it: again. */
sessile_status sqlite_schema_ready(sqlite_conn *c, int make, int *rc, sessile_error *err);
/* Runs steps[version..count-1] and sets user_version, in the transaction that is open.
 * Returns a result code of SQLite. */
int sqlite_schema_migrate(sqlite3 *db, const char *const *steps, int version, int count);

/* ---- conn.c */

/* A connection for this call. make: the database is made where there is none, else
 * NOTFOUND. Given back by sqlite_conn_give(). BUSY, CANCELLED, and all errors of opening.
 */
sessile_status sqlite_conn_take(sqlite_store *ss, sqlite_patience wait, int make,
                                sqlite_conn **out, sessile_error *err);
/* broken: it is closed rather than kept. */
void sqlite_conn_give(sqlite_conn *c, int broken);
void sqlite_conn_close(sqlite_conn *c);
/* Steps a statement that gives no rows, and resets it. */
int sqlite_step(sqlite3_stmt *st);

/* ---- statement.c, queries.c */

extern const char *const sqlite_query_texts[QUERY_COUNT];

/* A statement, reset and with nothing bound; NULL: see sqlite3_errcode(c->db). */
sqlite3_stmt *sqlite_query_get(sqlite_conn *c, sqlite_query query);

/* A parameter of a statement. Its text or bytes must stay until the statement is reset.
 */
typedef struct sqlite_value {
    enum { SQLITE_END = 0, SQLITE_INT, SQLITE_STRING, SQLITE_BYTES } kind;
    int64_t number;
    const char *data; /* NULL: null */
    size_t size;
} sqlite_value;

static inline sqlite_value sql_int(int64_t number)
{
    return (sqlite_value){SQLITE_INT, number, NULL, 0};
}
static inline sqlite_value sql_text(const char *text)
{
    return (sqlite_value){SQLITE_STRING, 0, text, text ? strlen(text) : 0};
}
static inline sqlite_value sql_part(const char *text, size_t size)
{
    return (sqlite_value){SQLITE_STRING, 0, text, size};
}
static inline sqlite_value sql_bytes(const void *data, size_t size)
{
    return (sqlite_value){SQLITE_BYTES, 0, size ? data : "", size};
}

/* The parameters of a query, in order: SQL(sql_int(id), sql_text(name)). */
#define SQL(...) ((const sqlite_value[]){__VA_ARGS__, {SQLITE_END, 0, NULL, 0}})

/* Binds the parameters of a query (NULL: it has none), for sqlite3_step(). Each returns a
 * result code of SQLite. */
int sqlite_bind(sqlite_conn *c, sqlite_query query, const sqlite_value *values,
                sqlite3_stmt **out);
/* Runs a query that gives no rows. */
int sqlite_exec(sqlite_conn *c, sqlite_query query, const sqlite_value *values);
/* Runs a query up to its first row: SQLITE_ROW; SQLITE_DONE: there is none. Call
 * sqlite_end() afterwards, also when it failed. */
int sqlite_row(sqlite_conn *c, sqlite_query query, const sqlite_value *values,
               sqlite3_stmt **out);
/* Resets st, which may be NULL. Returns SQLITE_OK for SQLITE_ROW and SQLITE_DONE, else
 * rc.
 */
int sqlite_end(sqlite3_stmt *st, int rc);
/* The blob or list cache `name` that `query` gives, copied for host_free(); *out NULL:
 * none.
 */
int sqlite_get_bytes(sqlite_conn *c, sqlite_query query, const char *name, char **out,
                     size_t *size);
/* One integer that a statement of text gives; -1 on failure, and *rc says why. */
int64_t sqlite_ask(sqlite3 *db, const char *text, int *rc);

/* ---- run.c */

/* What a body returns when nothing is to be kept and nothing of SQLite failed: its
 * argument says what it found. */
#define SQLITE_UNDO (-1)
typedef int (*sqlite_body)(sqlite_conn *c, void *arg);

enum { SQLITE_MAKES = 1, SQLITE_DURABLE = 2 };

/* Runs body on a connection; again when SQLite says BUSY, so it may start again.
 * NOTFOUND: there is no database. */
sessile_status sqlite_run_read(sqlite_store *ss, sqlite_patience wait, sqlite_body body,
                               void *arg, sessile_error *err);
/* Runs body in a transaction that no other writer is in, and commits it. flags: MAKES the
 * database where there is none; DURABLE: synced on return. *unknown (may be NULL): 1 when
 * it failed and may have been committed all the same. */
sessile_status sqlite_run_write(sqlite_store *ss, sqlite_patience wait, int flags,
                                sqlite_body body, void *arg, int *unknown,
                                sessile_error *err);
/* The status of a result code, and a sentence: "doing PATH: …". */
sessile_status sqlite_fail(const sqlite_store *ss, sqlite3 *db, int rc, const char *doing,
                           sessile_error *err);
/* A sync failed: nothing more is written to the store. */
void sqlite_poison(sqlite_store *ss);
/* IO when a sync has failed before. */
sessile_status sqlite_poisoned(sqlite_store *ss, sessile_error *err);
/* Now, by the store's clock: milliseconds since 1970. */
int64_t sqlite_now(const sqlite_store *ss);

/* ---- sync.c */

/* Opens the connection that syncs, before anything is written. */
sessile_status sqlite_sync_ready(sqlite_store *ss, sqlite_patience wait,
                                 sessile_error *err);
/* Makes durable all that was committed before the call. IO: unknown, and poisoned. */
sessile_status sqlite_sync_store(sqlite_store *ss, sessile_error *err);
/* Called by SQLite after each commit of a connection. */
int sqlite_sync_committed(void *conn, sqlite3 *db, const char *name, int frames);
/* Takes what was overwritten or removed out of the WAL, if nobody is in the way. */
void sqlite_sync_scrub(sqlite_store *ss);

/* ---- logs */

typedef struct sqlite_log {
    sqlite_store *store;
    int64_t id;            /* of its row */
    char *name;            /* "folder/name" */
    pthread_mutex_t mutex; /* all that follows */
    int timeout_ms;
    lock_stop stop;
    uint64_t bytes; /* as size saw them last */
    int64_t updated;
    int replaced;
    int poisoned;
    /* Where the last read ended: an entry that begins at next_at is next_id. */
    int64_t next_id;
    uint64_t next_at;
    /* A large entry of which only a part was wanted. */
    char *large;
    size_t large_size;
    uint64_t large_at;
} sqlite_log;

static inline sqlite_log *sqlite_log_of(sessile_backend_log *log)
{
    return (sqlite_log *)(void *)log;
}

/* The folder and the name of a log as two parameters. */
#define SQL_NAME(log)                                     \
    SQL(sql_part((log)->name, strcspn((log)->name, "/")), \
        sql_text((log)->name + strcspn((log)->name, "/") + 1))

sqlite_patience sqlite_log_patience(sqlite_log *log);
/* What a row says of its log. */
sessile_backend_stat sqlite_stat_of(int64_t id, int64_t bytes, int64_t updated);
/* Puts the records of data as entries first… of a session, the first of them at `at`. One
 * record (count 1) is what data has, else a line each. */
int sqlite_put_records(sqlite_conn *c, int64_t session, int64_t first, uint64_t at,
                       const char *data, size_t size, uint64_t count);

/* How a draft is called in lists. */
void sqlite_draft_name(int64_t id, char out[32]);

/* ---- the functions of the table */

STORE_DECLARE(sqlite);
sessile_status sqlite_blob_settle(void *self, const char *name, sessile_error *err);
void sqlite_set_timeout(sessile_backend_log *log, int timeout_ms);
sessile_status sqlite_fence(sessile_backend_log *handle, sessile_log_end *out,
                            int *has_tag, sessile_error *err);
sessile_status sqlite_watch(sessile_backend_log *log, uint64_t bytes, int timeout_ms,
                            int (*ask)(void *arg), void *arg, int *changed,
                            sessile_error *err);

#endif
