/*
 * postgres.h: what the files of this folder share. README.md lists them.
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include <libpq-fe.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/text.h"
#include "store/operations.h"
#include "store/postgres/keep.h"
#include "store/store.h"
#include "store/wait.h"

/* ---------------------------------------------------------------------- libpq */

#define PG_FUNCTIONS(X)          \
    X(PQconnectStartParams)      \
    X(PQconnectPoll)             \
    X(PQconninfoParse)           \
    X(PQconninfoFree)            \
    X(PQconndefaults)            \
    X(PQfreemem)                 \
    X(PQfinish)                  \
    X(PQstatus)                  \
    X(PQsocket)                  \
    X(PQhost)                    \
    X(PQport)                    \
    X(PQsslInUse)                \
    X(PQgssEncInUse)             \
    X(PQerrorMessage)            \
    X(PQconnectionNeedsPassword) \
    X(PQsetErrorVerbosity)       \
    X(PQsetNoticeReceiver)       \
    X(PQsetnonblocking)          \
    X(PQenterPipelineMode)       \
    X(PQpipelineSync)            \
    X(PQsendPrepare)             \
    X(PQsendQueryParams)         \
    X(PQsendQueryPrepared)       \
    X(PQflush)                   \
    X(PQconsumeInput)            \
    X(PQisBusy)                  \
    X(PQgetResult)               \
    X(PQnotifies)                \
    X(PQclear)                   \
    X(PQresultStatus)            \
    X(PQresultErrorField)        \
    X(PQntuples)                 \
    X(PQnfields)                 \
    X(PQgetvalue)                \
    X(PQgetlength)               \
    X(PQgetisnull)

typedef struct pg_lib {
    void *library;
#define PG_FIELD(name) __typeof__(&(name)) name;
    PG_FUNCTIONS(PG_FIELD)
#undef PG_FIELD
} pg_lib;

/* UNSUPPORTED: it is not there, or too old. */
sessile_status pg_lib_open(pg_lib *lib, sessile_error *err);
void pg_lib_close(pg_lib *lib);

/* ---------------------------------------------------------------------- the URL */

enum { PG_SCHEMA_MOST = 63, PG_SECRETS = 4 };

typedef struct pg_url {
    PQconninfoOption *options;   /* libpq's */
    const char **keys, **values; /* the same, and ours, for PQconnectStartParams; NULL */
    size_t room;                 /* of each of the two */
    char schema[PG_SCHEMA_MOST + 1];
    int pool;                     /* connections at most */
    size_t keep;                  /* bytes of records in memory; 0: as README.md says */
    int64_t statement_ms;         /* 0: for ever */
    int keep_commit;              /* synchronous_commit is what the URL says */
    int clear_password;           /* it may be sent in clear text over a network */
    int hosts;                    /* among which a server is looked for */
    int connect_ms;               /* 0: as long as the call may take */
    char where[160];              /* "user@host:port/database", for errors */
    char secret[PG_SECRETS][256]; /* what no error may hold */
} pg_url;

/* INVALID: names what is wrong, never a value that may be secret. */
sessile_status pg_url_parse(pg_url *out, const pg_lib *lib, const char *url,
                            const os_table *os, const allocator *a, sessile_error *err);
/* The values to connect with: of several hosts number `first` comes first, counted round
 * and round. Both for mem_free(), of url->room and *size bytes. 0, or -1:
 * no memory. */
int pg_url_values(const pg_url *url, unsigned first, const char ***values, char **text,
                  size_t *size, const allocator *a);
/* Which of several hosts that is; 0 when it is none of them. */
int pg_url_host(const pg_url *url, const char *host, const char *port);
void pg_url_free(pg_url *url, const pg_lib *lib, const allocator *a);
/* 1 when text holds none of the secrets. */
int pg_url_clean(const pg_url *url, const char *text);

/* ---------------------------------------------------------------------- statements */

typedef enum pg_statement {
    PG_VERSION,
    PG_CREATE,
    PG_OPEN,
    PG_OPEN_LINES,
    PG_OPEN_TAIL,
    PG_OPEN_CACHE,
    PG_LOOK,
    PG_LINES,
    PG_FIND,
    PG_BEHIND,
    PG_APPEND,
    PG_UNSYNCED,
    PG_SYNC,
    PG_LIST,
    PG_LIST_FOLDER,
    PG_HAS_LOGS,
    PG_STAT,
    PG_NAMES,
    PG_RENAME,
    PG_OTHERS,
    PG_OTHERS_FOLDER,
    PG_LEFT_OVER,
    PG_SWEEP,
    PG_BLOB_GET,
    PG_BLOB_PUT,
    PG_BLOB_REPLACE,
    PG_BLOB_REMOVE,
    PG_BLOB_LIST,
    PG_LIST_CACHE_GET,
    PG_LIST_CACHE_PUT,
    PG_LIST_CACHE_DROP,
    PG_CACHE_SIZE,
    PG_CACHE_READ,
    PG_CACHE_LOCK,
    PG_CACHE_CUT,
    PG_CACHE_DROP,
    PG_CACHE_PUT,
    PG_DRAFT_NEW,
    PG_DRAFT_LINES,
    PG_DRAFT_UNNAME,
    PG_DRAFT_NAME,
    PG_DRAFT_FORGET,
    PG_DRAFT_PUBLISH,
    PG_DRAFT_DROP,
    PG_DRAFT_LOOK,
    PG_REMOVE,
    PG_WATCH,
    PG_BURY,
    PG_END,
    PG_SETTLE,
    PG_LIMIT,
    PG_ENDS,
    PG_CLOCK,
    PG_STATEMENTS,
    PG_ONCE = PG_STATEMENTS /* not prepared: its text comes with the step */
} pg_statement;

/* The text of each, with the schema's name filled in, and the name it is prepared under.
 * 0, or -1: no memory. */
typedef struct pg_texts {
    char *text[PG_STATEMENTS];
    char name[PG_STATEMENTS][40];
} pg_texts;
int pg_texts_fill(pg_texts *out, const char *schema, const allocator *a);
void pg_texts_free(pg_texts *t, const allocator *a);
/* Appends sql to out, with the schema put where a statement names it. */
void pg_sql_put(buf *out, const char *sql, const char *schema);

/* Arguments of a statement, in order; the bytes stay the caller's until it was sent. */
enum { PG_ARGS_MOST = 10 };
typedef struct pg_step {
    pg_statement statement;
    const char *once;
    int count;
    const char *value[PG_ARGS_MOST];
    int size[PG_ARGS_MOST];
    char room[PG_ARGS_MOST][8];
} pg_step;

pg_step pg_step_of(pg_statement statement);
pg_step pg_step_once(const char *sql);
void pg_arg_int(pg_step *s, uint64_t n);
void pg_arg_text(pg_step *s, const char *text); /* NULL: null */
void pg_arg_bytes(pg_step *s, const void *data, size_t size);

/* Records as the two arrays that a statement takes: where each begins, and its bytes. */
typedef struct pg_records {
    buf at, lines;
} pg_records;
/* data's records, the first of them at the log's offset `from`. 0, or -1: no memory. */
int pg_records_fill(pg_records *out, const void *data, size_t size, uint64_t from,
                    const allocator *a);
void pg_records_free(pg_records *r);
/* An array of int8, for buf_deinit(), also after a failure. 0, or -1: no memory. */
int pg_ints_fill(buf *out, const uint64_t *values, size_t count, const allocator *a);

/* ---------------------------------------------------------------------- the store */

typedef struct pg_conn {
    struct pg_conn *next;
    PGconn *pg;
    int32_t pid;       /* of the server's process; 0: unknown */
    int64_t since;     /* when that began, by the server */
    int standby;       /* it was one when the connection was made: it may lag */
    int replicated;    /* its commits wait for standbys */
    uint32_t timeline; /* 0: unknown */
    int64_t started;   /* when its server was; 0: unknown */
    int unwaited; /* a commit was made, and its wait for standbys was ended by others */
    uint64_t era; /* of keep.h */
    const pg_lib *lib;
    unsigned char prepared[PG_STATEMENTS];
} pg_conn;

/* One who waits for news of a log. */
typedef struct pg_waiting {
    struct pg_waiting *next;
    uint64_t id;
    int called; /* it was notified, or a notification may have been missed */
} pg_waiting;

typedef struct pg_store {
    const os_table *os;
    allocator alloc;
    pg_lib lib;
    pg_url url;
    pg_texts texts;
    keep keep;
    uint32_t pid; /* of the process that opened it */
    int timeout_ms;
    int unsynced;          /* appends are not waited for until they are on a disk */
    pthread_mutex_t mutex; /* all that follows */
    pthread_cond_t freed;
    pg_conn *idle;
    int connections;       /* made or being made */
    struct {               /* server.c */
        uint32_t timeline; /* the newest that was seen */
        int64_t started;   /* when the last primary that answered was */
        int64_t settled;   /* the same, of the one whose commits are known to be safe */
        int host;          /* of several in the URL: that one, or who is asked next */
    } server;
    uint64_t round_trips; /* statements sent and waited for, a pipeline as one */
    /* watch.c */
    pthread_mutex_t watch_mutex; /* all that follows */
    pthread_cond_t watched;
    pg_conn *listener; /* NULL: none, or it broke */
    int busy;          /* somebody makes or reads it, without the mutex */
    pg_waiting *waiting;
} pg_store;

/* One call of a function of the table: how long it may take. */
typedef struct pg_call {
    pg_store *ps;
    uint64_t until_us;  /* for other writers, for a connection; UINT64_MAX: for ever */
    uint64_t answer_us; /* for an answer: a server needs time even for one try */
    lock_stop stop;
    int first;   /* the store is being opened: what is not there is not waited for */
    int absent;  /* set: the tables are not there yet */
    int blind;   /* nothing of the data is shown: it need not be safe */
    int primary; /* a standby is not asked: what it has not got may be there all the same
                  */
} pg_call;

/* A call that may take timeout_ms (-1: for ever). */
pg_call pg_call_of(pg_store *ps, int timeout_ms);
/* Takes ms off its time, for what comes after it; a second is left, if it has that. */
void pg_keep_back(pg_call *call, int ms);
/* 1 when us, by the monotonic clock, is over. */
int pg_over(const pg_store *ps, uint64_t us);

/* FORKED, and 1, in a process that came by fork() after the store was opened. */
int pg_forked(const pg_store *ps, sessile_error *err);
/* Lends a connection. BUSY: all are in use; IO, DENIED, INVALID: none can be made;
 * FORKED; CANCELLED. */
sessile_status pg_take(pg_call *call, pg_conn **out, sessile_error *err);
/* Before something is tried for the (tries + 1)th time. */
void pg_pause(pg_call *call, int tries);
/* Gives it back; one that is broken is closed. */
void pg_give(pg_store *ps, pg_conn *c);
/* Closes it instead: what it was asked is not waited for. */
void pg_discard(pg_store *ps, pg_conn *c);
/* One outside the pool; ended by pg_finish. */
sessile_status pg_connect(pg_call *call, pg_conn **out, sessile_error *err);
void pg_finish(pg_store *ps, pg_conn *c);
void pg_pool_free(pg_store *ps);

/* How a statement ended. */
typedef enum pg_ended {
    PG_ANSWERED, /* the server said what it did */
    PG_LOST,     /* the connection broke */
    PG_LATE,     /* no answer in time */
    PG_STOPPED
} pg_ended;

/* 1: a newer timeline was seen than this connection's. */
int pg_is_old(pg_store *ps, const pg_conn *c);
/* Takes a new connection's server into account. IO: it was replaced. */
sessile_status pg_meet(pg_store *ps, pg_conn *c, sessile_error *err);
/* Waits until what the server shows is safe. Otherwise the connection is to be discarded,
 * and its process to be ended. */
pg_ended pg_make_safe(pg_call *call, pg_conn *c);
/* BUSY, or CANCELLED: it did not become safe in time. */
sessile_status pg_say_unsafe(pg_call *call, pg_ended ended, sessile_error *err);
enum { PG_END_MS = 1000 }; /* that takes as long as the least that a call takes */
/* Ends a process whose answer nobody waits for any more. */
void pg_end_process(pg_store *ps, int32_t pid, int64_t since);

enum { PG_STEPS_MOST = 48 };
typedef struct pg_results {
    int count;
    uint64_t era;                /* of the server that answered: keep.h */
    PGresult *of[PG_STEPS_MOST]; /* one a step */
    PGresult *wrong; /* the first that failed, borrowed; NULL: all went well */
} pg_results;

/* Sends steps as one transaction and waits for all of their answers. Believed only once
 * the server has said that it is through: before that, what was answered can still be
 * rolled back. */
pg_ended pg_send(pg_call *call, pg_conn *c, const pg_step *steps, int count,
                 pg_results *out);
void pg_results_free(const pg_store *ps, pg_results *r);
/* The same, again when the server broke a race up, or forgot what was prepared. */
pg_ended pg_answer(pg_call *call, pg_conn *c, const pg_step *steps, int count,
                   pg_results *out);

/* Asks without changing anything, again when a connection broke. Results only with OK.
 * what: the thing, for the sentence. */
sessile_status pg_ask(pg_call *call, const pg_step *steps, int count, const char *what,
                      pg_results *out, sessile_error *err);

/* The same of a change that may be lost: its commit is not waited for. */
enum { PG_PUT_MOST = 4 };
sessile_status pg_put(pg_call *call, const pg_step *steps, int count, const char *what,
                      pg_results *out, sessile_error *err);
/* The same of a commit that changes nothing, on the primary: with its answer, all that
 * was committed there before is as safe as what is answered. Steps: SETTLE, or SYNC. */
sessile_status pg_settle(pg_call *call, const pg_step *steps, int count, const char *what,
                         pg_results *out, sessile_error *err);

/* Whether a change took place, as the data say: OK and *yes. */
typedef sessile_status (*pg_probe)(pg_call *call, void *arg, int *yes,
                                   sessile_error *err);
enum { PG_UNKNOWN = -1, PG_AS_ANSWERED = 0, PG_TOOK_PLACE = 1 };
/*
 * Makes a change once, or not at all. OK and *took PG_AS_ANSWERED: out has the answers;
 * PG_TOOK_PLACE: it did, and its answer was lost. An error: it did not and will not;
 * but with PG_UNKNOWN nobody can tell.
 */
sessile_status pg_change(pg_call *call, const pg_step *steps, int count, const char *what,
                         pg_probe probe, void *arg, pg_results *out, int *took,
                         sessile_error *err);
/* The same, and the tables are made first where they are not there. */
sessile_status pg_change_making(pg_call *call, const pg_step *steps, int count,
                                const char *what, pg_probe probe, void *arg,
                                pg_results *out, int *took, sessile_error *err);

/* The names of a log as its row has them. */
typedef struct pg_names {
    char folder[256], name[256];
} pg_names;
/* Checks names, and replaces those that stand for damaged ones (wait.h) by the row's own,
 * which are put into room. */
sessile_status pg_names_find(pg_store *ps, const char **folder, const char **name,
                             pg_names *room, sessile_error *err);

/* pg_change() whose step number `row` returns a row if the change took place. *done: it
 * did; with OK and 0 the step found another state. */
sessile_status pg_change_row(pg_call *call, const pg_step *steps, int count, int row,
                             const char *what, pg_probe probe, void *arg, int *took,
                             int *done, sessile_error *err);

/* The version of the tables; 0: there are none. */
sessile_status pg_schema_version(pg_call *call, int *version, sessile_error *err);
sessile_status pg_schema_make(pg_call *call, sessile_error *err);
/* Runs statements that add to the schema what is not there, as one transaction that
 * others who do so wait for; the schema is made first where there is none. */
sessile_status pg_schema_add(pg_call *call, const char *const *sql, int count,
                             const char *what, sessile_error *err);

/* ---------------------------------------------------------------------- passwords */

/* Between libpq and a server of another machine while a connection is made; zeroed, it
 * is not there yet. */
typedef struct pg_guard {
    os_detour detour;
    unsigned char head[9]; /* the beginning of a message, before it is passed on */
    int head_size;
    uint32_t left; /* bytes of the message that are still to be passed on */
    char out[1024];
    int out_at, out_size; /* of what libpq says */
} pg_guard;

typedef enum pg_looked {
    PG_LEFT_ALONE,    /* libpq has its own socket, and may continue */
    PG_PASSED_ON,     /* libpq may continue with what it was given */
    PG_HEARD_NOTHING, /* wait again before libpq continues */
    PG_ASKED_FOR_CLEAR_TEXT,
    PG_CANNOT_LOOK /* no descriptors are left */
} pg_looked;

/* The socket to wait for in place of libpq's, and for what: *flags is what libpq wants.
 */
int pg_guard_socket(pg_guard *g, const pg_store *ps, PGconn *pg, int *flags);
/* Before each PQconnectPoll(). */
pg_looked pg_guard_look(pg_guard *g, const pg_store *ps, PGconn *pg);
/* libpq has its own socket. pg: NULL when it closed it, or will not be used. */
void pg_guard_end(pg_guard *g, const pg_store *ps, PGconn *pg);

/* ---------------------------------------------------------------------- answers */

/* An error by what the server said of a statement. what: the thing it was about. */
sessile_status pg_say(pg_call *call, const PGresult *wrong, const char *what,
                      sessile_error *err);
/* By what libpq said of a connection that was not made; *passing: it may be made soon. */
sessile_status pg_say_connect(const pg_store *ps, PGconn *pg, int *passing,
                              sessile_error *err);
/* 1 when the server's answer has this SQLSTATE, or class of them (2 letters). */
int pg_state_is(const pg_store *ps, const PGresult *r, const char *state);
/* No answer in time, or it was asked to stop: what is known not to have happened. */
sessile_status pg_say_late(const pg_call *call, pg_ended ended, const char *what,
                           sessile_error *err);

int pg_rows(const pg_store *ps, const PGresult *r);
int pg_null(const pg_store *ps, const PGresult *r, int row, int column);
/* An int8; 0 when it is none. */
int64_t pg_int(const pg_store *ps, const PGresult *r, int row, int column);
/* A timestamptz, as nanoseconds since 1970. */
int64_t pg_time_ns(const pg_store *ps, const PGresult *r, int row, int column);
const char *pg_bytes(const pg_store *ps, const PGresult *r, int row, int column,
                     size_t *size);
/* 16 bytes; NULL: there are none. */
const unsigned char *pg_tag(const pg_store *ps, const PGresult *r, int row, int column);
/* A text, without what is in it behind a NUL. */
const char *pg_text(const pg_store *ps, const PGresult *r, int row, int column);

/* ---------------------------------------------------------------------- logs */

/* Bytes that were fetched: consecutive records, or the last piece of a cache. */
typedef struct pg_fetched {
    char *data;
    size_t size, capacity;
    uint64_t from;        /* the offset of data */
    uint64_t first, next; /* the records that begin there, and behind */
    uint64_t read_us;     /* of a cache: when it was read */
} pg_fetched;

typedef struct pg_log {
    pg_store *ps;
    char *folder, *name;
    uint64_t id;
    pthread_mutex_t mutex; /* all that follows */
    uint64_t count, bytes; /* as its row was last seen */
    uint64_t size;         /* the same, but for a row that lies (sql.c) */
    int has_tag;
    unsigned char tag[16];
    uint64_t settled; /* bytes of it that are known to be as safe as what is answered */
    int64_t updated_ns;
    int replaced; /* the name led to another log */
    int poisoned;
    int timeout_ms;
    lock_stop stop;
    keep_log *kept; /* its records in memory; NULL: there was none for them */
    struct {
        uint64_t at, index; /* where the last fetch ended */
    } read;
    uint64_t cache_bytes; /* as the opening saw it; UINT64_MAX: it did not */
    pg_fetched cached;    /* the last piece of its cache, until it is no longer fresh */
    uint64_t leased_us;   /* until then, appends call us */
    /* where appends are not waited for, the last record of ours: the record behind it, 0:
     * there is none; its hash */
    uint64_t put_end;
    unsigned char put_hash[32];
} pg_log;

pg_log *pg_log_of(sessile_backend_log *log);
/* A call through this handle. */
pg_call pg_log_call(pg_log *log);

/* The tag that its row had when it was last seen; NULL: none. Under the mutex. */
void pg_log_tag(pg_log *log, const unsigned char *tag);

/* The rows of a result as one stretch, up to the first that does not follow the one
 * before it. The first row is record `first`; a row's offset is in the column at_column,
 * its bytes in the next. Freed by pg_fetched_free(), also on failure. */
sessile_status pg_fetched_take(pg_store *ps, const PGresult *r, int at_column,
                               uint64_t first, pg_fetched *out, sessile_error *err);
void pg_fetched_free(pg_store *ps, pg_fetched *f);
/* Puts such a stretch of a log into memory. era: of the results. */
void pg_fetched_keep(pg_log *log, const pg_fetched *f, uint64_t era);
/* With the size of a cache comes its last piece, when it is no longer than LAST, and what
 * begins at most BEFORE it. */
#define PG_CACHE_LAST   UINT64_C(262144)
#define PG_CACHE_BEFORE UINT64_C(32768)
/* Takes the size of a log's cache, and its last piece, out of the rows of a statement. */
void pg_cache_take(pg_log *log, const PGresult *r, uint64_t *bytes);
/* Forgets that piece, or does when it is no longer fresh. Both under the mutex. */
void pg_cache_forget(pg_log *log);
void pg_cache_age(pg_log *log);

/* What LOOK says of a log. */
typedef struct pg_seen {
    int there; /* its row */
    int named; /* and it still has its name */
    uint64_t count, bytes, size;
    int keeps_tag, has_tag; /* it has any; it has one that can be */
    unsigned char tag[16];
    int64_t updated_ns;
    uint64_t leads_to; /* what the name leads to; 0: nothing */
    int replicated;    /* commits wait for standbys: what is seen may be on one machine */
} pg_seen;
sessile_status pg_look(pg_call *call, const pg_log *log, pg_seen *out,
                       sessile_error *err);
/* 1 when the log has these bytes at offset, the start of record `index`. */
sessile_status pg_same_bytes(pg_call *call, const pg_log *log, uint64_t index,
                             uint64_t offset, const void *data, size_t size, int *same,
                             sessile_error *err);

/* ---------------------------------------------------------------------- the table */

STORE_DECLARE(pg);

void pg_set_timeout(sessile_backend_log *log, int timeout_ms);

sessile_status pg_watch(sessile_backend_log *log, uint64_t bytes, int timeout_ms,
                        int (*ask)(void *arg), void *arg, int *changed,
                        sessile_error *err);
void pg_watch_free(pg_store *ps);

sessile_status pg_fence(sessile_backend_log *log, sessile_log_end *out, int *has_tag,
                        sessile_error *err);
void pg_opened(sessile_backend_log *log, uint64_t *bytes, uint64_t *cache_bytes);
void pg_reread(sessile_backend_log *log);

sessile_status pg_clock(void *self, int64_t *now_ms, sessile_error *err);

#endif
