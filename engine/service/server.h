/*
 * server.h: what the files of this folder share: the service, its calls, and how a call
 * goes from its connection to a worker and back. README.md lists the files.
 *
 * A call is begun on the thread of its loop, which must not block. Once its request is
 * there it is given to a worker, which runs the method and replies. The loop and the
 * worker each hold a reference.
 */
#ifndef SERVICE_SERVER_H
#define SERVICE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "rpc/rpc.h"
#include "service/arena.h"
#include "service/service.h"
#include "service/sessile.pb-c.h"
#include "service/trace.h"
#include "sessile_memory.h"

typedef struct pool pool;
typedef struct keep keep;
typedef struct kept kept;
typedef struct call call;
typedef struct nodes nodes;
typedef struct relay relay;
typedef struct watcher watcher;
typedef struct records records;
typedef struct observe observe;
typedef struct watch watch;
typedef struct runs runs;
typedef struct pieces pieces;
typedef struct shares shares;
typedef struct known known;

struct service {
    allocator alloc;
    sessile_store *store; /* the host's handle */
    struct {
        int workers, loops, drain_ms, look_ms;
        int guarded, json, reflection;
        unsigned services; /* SERVICE_… */
        char *certificate_role;
        int (*reload)(void *arg);
        void *reload_arg;
        const service_defaults *defaults; /* default_count of them */
        size_t default_count;
        service_ask *ask; /* NULL: the server has no model */
        void *ask_arg;
    } settings;
    rpc_tls *tls;
    rpc_loop **loops;
    rpc_queued *queued; /* the replies of all loops */
    rpc_listener *listener;
    pool *pool;
    keep *keep, *memories; /* of sessions; of memories */
    nodes *nodes;
    records *records; /* NULL: it does not serve them */
    observe *observe;
    watch *watch;
    runs *runs;
    pieces *pieces;
    shares *shares;
    known *known;     /* NULL without a guard */
    atomic_int stops; /* how often it was told to end */
};

/* Lines for the operator (service_told.c). */
void service_tell_start(service *s);
void service_tell_reload(service *s, sessile_status status, const sessile_error *err);
void service_tell_drain(service *s, size_t connections, size_t calls);
void service_tell_drained(service *s, size_t connections, size_t calls, uint64_t took_us);

/* ---------------------------------------------------------------------- methods */

typedef sessile_status method_function(call *c, const void *request, sessile_error *err);

enum {
    METHOD_READS = 1,    /* it changes nothing: it may be called again */
    METHOD_STREAMS = 2,  /* its reply is a stream */
    METHOD_ALL = 4,      /* it is of no single session: its field 1 is a filter, or names
                            a session that its calls need not wait for */
    METHOD_DUPLEX = 8,   /* its requests are a stream: the first one begins it */
    METHOD_LOOP = 16,    /* it blocks nowhere, and needs no credential: it is run on the
                            loop */
    METHOD_APART = 32,   /* it does not wait for the session's other calls */
    METHOD_RECORDS = 64, /* it is of RecordService */
    METHOD_REFLECTS =
        128 /* it is of reflection: its requests need not wait for replies */
};

/* A method of one of the services. */
typedef struct method {
    const char *name; /* "Turn" */
    method_function *run;
    unsigned flags; /* METHOD_… */
    const ProtobufCMessageDescriptor *input;
} method;

/* The method of a path, "/sessile.v1.SessionService/Turn"; NULL: there is none. */
const method *method_find(const char *path);
/* The same, if this server serves it. */
const method *method_served(const service *s, const char *path);
/* The names of the services that this server serves, from 0; NULL behind the last. */
const char *method_service(const service *s, size_t i);
/* 1: it serves one of that name. */
int method_serves(const service *s, const char *name);
/* The methods of SessionService, by number from 0; NULL behind the last. */
const method *method_at(size_t i);
/* The same of all services. */
const method *method_any(size_t i);
/* Its number among all; for methods of one name the same, since metrics count them by
 * their names. */
size_t method_number(const method *m);

/* The bytes of a request that is read on the loop. */
enum { REQUEST_ON_LOOP = 4096 };

/* The methods, by what they are about: one table a file, which ends with a row without a
 * name. */
extern const method methods_sessions[], methods_messages[], methods_runs[],
    methods_facts[], methods_checkpoints[], methods_tree[], methods_history[],
    methods_watch[], methods_run_stream[], methods_memory[], methods_memory_read[],
    methods_memory_runs[];
extern const method methods_nodes[], methods_health[], methods_reflection[],
    methods_records_logs[], methods_records_held[], methods_records_lists[];
/* A row of them: `input` is the name of its request in the generated code. */
#define METHOD(name, run, input, flags)                       \
    {                                                         \
        name, run, flags, &sessile__v1__##input##__descriptor \
    }

/* ---------------------------------------------------------------------- workers */

/* The place that pool_submit() gave a job. */
typedef struct job_place {
    uint64_t share;
    unsigned taken : 1, unjudged : 1;
} job_place;

/* What a worker does. It stands first in what it is about. */
typedef struct job {
    struct job *next;
    uint64_t lane;     /* jobs of one lane run one after the other; 0: of none */
    uint64_t share;    /* whose it is: a user, or an address; 0: it counts for nobody */
    unsigned unjudged; /* 1: nobody knows yet whose: share is the address */
    job_place place;   /* the pool's */
    void (*run)(struct job *j);
} job;

/* Runs jobs on threads of its own. waiting: the most that pool_submit() lets wait.
 * NOMEM. */
sessile_status pool_open(pool **out, int workers, size_t waiting, const allocator *a,
                         sessile_error *err);
/* Starts its threads. IO, NOMEM: one cannot be started. */
sessile_status pool_start(pool *p, sessile_error *err);
/* Takes a job that begins something; one that runs may be given again, for another lane.
 * BUSY: too many wait, of all, of whose it is or for its lane: nothing was begun. NOMEM.
 */
sessile_status pool_submit(pool *p, job *j, sessile_error *err);
/* Takes a job that goes on with something: it is not refused. */
void pool_put(pool *p, job *j);
/* Jobs that wait or run. */
size_t pool_jobs(pool *p);
/* Jobs that wait. */
size_t pool_waiting(pool *p);
/* Waits until every job was run, and takes no more. NULL is ignored. */
void pool_end(pool *p);
/* The same, and frees it. NULL is ignored. */
void pool_close(pool *p);

/* ---------------------------------------------------------------------- calls */

/* How a call speaks. */
typedef enum call_speech {
    CALL_GRPC,
    CALL_JSON,  /* over HTTP: a request and a reply */
    CALL_EVENTS /* the reply is text/event-stream */
} call_speech;

/* The replies of a call of JSON that are sent together, once it ends. */
typedef struct http_joined {
    buf bytes; /* messages one behind the other, or rows of JSON */
    const ProtobufCMessageDescriptor *type; /* NULL: none came */
} http_joined;

/* What a call that goes on after its method returned is told, on the loop: it must not
 * block. NULL: it need not know. */
typedef struct call_stream {
    void (*message)(call *c, const void *data, size_t size); /* after the first one */
    void (*ended)(call *c); /* the client sends no more messages */
    void (*drained)(call *c);
    void (*gone)(call *c); /* nobody waits any more */
    void (*free)(call *c); /* of the call's `own`; the last, on any thread */
} call_stream;

struct call {
    job job;
    atomic_uint references;
    service *server;
    rpc_call *rpc;
    const method *method;
    struct {
        call_speech as;
        atomic_int translated; /* the request is protobuf by now */
        int one_session;       /* events are of one session */
        atomic_int headed;     /* the reply has begun */
        http_joined joined;
    } speech;
    buf request;                       /* its bytes */
    buf early;                         /* requests of METHOD_REFLECTS that came before it
                                          stayed, each behind its size (a size_t) */
    size_t messages;                   /* that came */
    int refused;                       /* it is not begun any more */
    atomic_int half;                   /* of a stream: the client sends no more */
    const call_stream *_Atomic stream; /* it goes on; NULL: it ends with its method */
    void *own;                         /* of its stream */
    /* of the loop */
    int astray;       /* another node may own its session, and it is run here */
    relay *relay;     /* it was passed on; NULL: it is run here */
    watcher *watcher; /* health.c */
    struct {
        uint64_t begun_us, waits_us;
        atomic_int counted;
        span span;
        /* the same from the beginning to the end, for parts of it */
        trace_context context;
        telemetry *to;
    } seen; /* observe.h */
    /* of the worker that runs it */
    arena arena;         /* what the request was read into, and the reply is made in */
    int no_memory;       /* a part of the reply could not be made */
    sessile_store *view; /* of who calls; the store itself without a guard */
    size_t replies;
    int flags; /* STATUS_… */
    int warm;  /* the session, or a memory, was open before */
    kept *kept;
    pthread_mutex_t mutex;    /* of the session, which another thread may interrupt, and
                                 of the request once the method runs */
    sessile_session *session; /* the handle of who calls */
    struct {
        kept *kept;
        sessile_memory *memory; /* the handle of who calls */
    } memories[SESSILE_RECALL_MEMORIES_MAX];
    size_t memory_count;
};

/* What rpc tells of its calls. */
extern const rpc_service call_service;

/* Runs a call on the thread of a worker, and ends it. */
void call_run(call *c);
void call_release(call *c);
/* Gives it to a worker, once its request is there; on the loop. */
void call_submit(call *c);

/*
 * For a method: the call goes on after it returned OK, with its arena, its view and its
 * session, until call_leave() ends it. own is the stream's. The method must not touch the
 * call after it let others do so. It looks at rpc_call_over() afterwards: what happened
 * before is not told.
 */
void call_stay(call *c, const call_stream *stream, void *own);
/* Ends it, with a status: on a worker, and once. err: when status is not OK. */
void call_leave(call *c, sessile_status status, const sessile_error *err);
/* Sends a message, from any thread; it touches nothing of the call. CANCELLED: nobody
 * waits for it. NOMEM. */
sessile_status call_send(call *c, const ProtobufCMessage *message, sessile_error *err);
/* 1: too much is on its way to the client, more than 1 MiB. `drained` is called once most
 * of that was taken. */
int call_is_full(const call *c);
/* DENIED: who calls may not see a session, and is not told whether it is there. */
sessile_status call_may_see(call *c, const sessile_session_options *names,
                            sessile_error *err);
/* 0: what the call was about was removed, or its handle can no longer write. The next
 * call opens it again. */
int call_can_stay(sessile_status status);
/* Frees the bytes of its request, unless they are few: they are not unpacked again. */
void call_forget_request(call *c);
/* Tells the client that it failed; nothing else of it ends. */
void call_fail(call *c, const sessile_error *err);
/* Those who watch the call's session are sent what is new. */
void call_poke(call *c);
/* The lane of the calls of a session with these names. */
uint64_t call_lane(const call *c, const Sessile__V1__Session *names);
/* How long it may wait, in ms: until its deadline, 30 s at most. */
int call_time_left(const call *c);

/*
 * For methods. The session of the request, opened for who calls; the handle lives until
 * the call ends. What the method reads is of one moment (api/inside.h), until it writes
 * or stays. NOTFOUND, DENIED and so on, as sessile_resume() says.
 */
sessile_status call_session(call *c, const Sessile__V1__Session *names,
                            sessile_session **out, sessile_error *err);
/* The names that a request has; what is empty is left out, but the user is the caller's
 * own. names NULL: INVALID. */
sessile_status call_names(call *c, const Sessile__V1__Session *names,
                          sessile_session_options *out, sessile_error *err);
/* What names a session in a reply. NULL: no memory. */
Sessile__V1__Session *call_session_names(call *c, sessile_slice agent, sessile_slice user,
                                         sessile_slice id);
/* Sends a message of the reply: a copy. Without a stream: the reply. As call_send(). */
sessile_status call_reply(call *c, const ProtobufCMessage *message, sessile_error *err);

/* Zeroed memory that lives until the call ends; NULL: no memory. */
void *call_new(call *c, size_t size);
/* A message of a type, with its defaults: `T *m = call_make(c, &t__descriptor)`. NULL: no
 * memory. */
void *call_make(call *c, const ProtobufCMessageDescriptor *type);
/* An array of count pointers to such messages. NULL: no memory. */
void *call_rows(call *c, size_t count, const ProtobufCMessageDescriptor *type);
/* A copy as a string of protobuf-c, what is not UTF-8 as U+FFFD; "" without memory, and
 * the call fails with NOMEM. */
char *call_text(call *c, sessile_slice text);
char *call_string(call *c, const char *text);
/* The same as a Json; NULL for an empty slice. */
Sessile__V1__Json *call_json(call *c, sessile_slice text);
/* NULL for SESSILE_NO_ID. */
Sessile__V1__Entry *call_entry(call *c, sessile_id id);
/* NULL for a key whose entry is SESSILE_NO_ID. */
Sessile__V1__Key *call_key(call *c, sessile_key key);
/* What a request has: a slice of a Json that may be absent; an entry, or SESSILE_NO_ID.
 */
sessile_slice json_slice(const Sessile__V1__Json *json);
sessile_id entry_id(const Sessile__V1__Entry *entry);

/* 1: a request names a user; else call_names() takes the caller's own. names may be NULL.
 */
int names_user(const Sessile__V1__Session *names);
/* NULL: no memory. */
Sessile__V1__Tokens *call_tokens(call *c, const sessile_tokens *from);
/* What is wrong with a session that can be read in part or not at all. NULL: no memory.
 */
Sessile__V1__Damage *call_damage(call *c, sessile_status status, const char *message,
                                 uint64_t lost);
/* An array of keys as messages, for *count of them; NULL, and *out_count 0: no memory. */
Sessile__V1__Key **call_keys(call *c, const sessile_key *keys, size_t count,
                             size_t *out_count);
/* The reply of what wrote an entry, and of what has nothing to tell. As call_send(). */
sessile_status reply_written(call *c, sessile_id entry, sessile_error *err);
sessile_status reply_empty(call *c, sessile_error *err);

/* The texts of a request, in the arena. NULL: no memory. */
sessile_slice *call_slices(call *c, Sessile__V1__Json *const *from, size_t n);
const char *disposition_name(sessile_disposition disposition);
/* The role of a name; INVALID: there is none, with the name of the field. */
sessile_status read_role(const char *name, const char *field, sessile_role *out,
                         sessile_error *err);
/* Whose sessions a list or a search is about: the caller's own, unless a user is named or
 * any_user is 1. names may be NULL (methods_sessions.c). */
sessile_status read_scope(call *c, const Sessile__V1__Session *names, int any_user,
                          sessile_list_options *out, sessile_error *err);

/* The reply of what opens or makes a session (methods_sessions.c). Errors: those of
 * reading it, and as call_send(). */
sessile_status reply_info(call *c, sessile_session *session, sessile_error *err);
/* A message of a session in a reply (methods_messages.c). */
void fill_message(call *c, Sessile__V1__Message *out, const sessile_message *from);

/* ---------------------------------------------------------------------- pages */

/* A page of a list. */
typedef struct page {
    sessile_listed *all;         /* for sessile_free() */
    const sessile_listed *first; /* count rows */
    size_t count;
    char *next; /* what the next page is asked for with; "": there are no more */
} page;
/* Lists a page of options->limit rows (at least 1): the first, or the one that
 * r->page_token asks for. INVALID: the token is of another request. Other errors: as
 * sessile_list_with(). */
sessile_status page_list(call *c, const Sessile__V1__ListRequest *r,
                         sessile_list_options *options, page *out, sessile_error *err);

/* ---------------------------------------------------------------------- credentials */

/* The view of who makes a call, by its headers or its certificate, closed by
 * sessile_store_close() unless it is the store. DENIED: it has no credential, or one that
 * is not accepted. */
sessile_status who_calls(call *c, sessile_store **out, sessile_error *err);
/* DENIED: with a guard, a call that shows nothing at all. It is asked on the loop. */
sessile_status who_shows(const call *c, sessile_error *err);
/* The address that it comes from, without a port. */
sessile_slice who_source(const call *c);

/* ---------------------------------------------------------------------- statuses */

enum {
    STATUS_AGAIN = 1,   /* the call may be made again, even if it was done */
    STATUS_NOBODY = 2,  /* DENIED is about who calls, not about what they may */
    STATUS_POISONED = 4 /* nothing may be appended through the client's handle any more */
};
/* The status of gRPC for one of the engine's. flags: STATUS_… */
rpc_code status_code(sessile_status status, int flags);
/* "not_found": as Connect's protocol names it. Static. */
const char *status_code_name(rpc_code code);
/* Ends a call with an error, its sentence and its trailers. */
void status_finish(rpc_call *rpc, const sessile_error *err, int flags);

/* ---------------------------------------------------------------------- requests */

/* Unpacks a request into the arena. INVALID: it is not such a message; a string that is
 * not UTF-8 or has a NUL in it. LIMIT: it is nested too deeply, or has too many parts. */
sessile_status decode_request(const ProtobufCMessageDescriptor *type, const void *data,
                              size_t size, arena *memory, ProtobufCMessage **out,
                              sessile_error *err);
typedef enum decoded_names {
    NAMES_NONE,
    NAMES_OWN,   /* a user that is left out is the caller's own */
    NAMES_SHARED /* of a memory that is nobody's own */
} decoded_names;
/* The names in it, agent, user and id, as slices of its bytes: of a session, or of a
 * memory, which has no id. NONE: it names neither. */
decoded_names decode_names(const ProtobufCMessageDescriptor *type, const void *data,
                           size_t size, sessile_slice out[3]);
/* 1: a request of that type has `once`: it may be made again. */
int decode_has_once(const ProtobufCMessageDescriptor *type, const void *data,
                    size_t size);

/* ---------------------------------------------------------------------- records */

/* The records of the store at url, for clients that have its key. Errors: as
 * store_backend_open(). */
sessile_status records_open(records **out, const char *url,
                            const sessile_store_options *options, const allocator *a,
                            sessile_error *err);
/* NULL is ignored. */
void records_close(records *r);

/* ---------------------------------------------------------------------- configured */

/* What is configured for the sessions of an agent; NULL: nothing. */
const service_defaults *service_defaults_of(const service *s, sessile_slice agent);
/* DENIED: the agent (empty: the store's own) is disabled: it gets no new session, and no
 * message in one that it has. */
sessile_status call_may_add(const call *c, sessile_slice agent, sessile_error *err);
/* DENIED: it is disabled, or its memory is off: nothing is written to its memories. */
sessile_status call_may_remember(const call *c, sessile_slice agent, sessile_error *err);

/* ---------------------------------------------------------------------- open sessions */

/*
 * Sessions and memories that are open, each once, through the host's handle; the least
 * recently used are closed. Nothing in them is believed: each call asks the store how far
 * the log goes. most: the number that is kept. NOMEM.
 */
sessile_status keep_open(keep **out, const service *server, size_t most,
                         const allocator *a, sessile_error *err);
/* Nothing is lent any more. NULL is ignored. */
void keep_close(keep *k);
/* Lends a session that is there, or, by names without an id, a memory; keep_give() gives
 * it back. *fresh: 1: it was opened by this call. Errors: as sessile_resume(),
 * sessile_memory_open(). */
sessile_status keep_take(keep *k, const sessile_session_options *names, kept **out,
                         int *fresh, sessile_error *err);
/* NULL: it is a memory. */
sessile_session *kept_session(const kept *k);
/* NULL: it is a session. */
sessile_memory *kept_memory(const kept *k);
/* again 0: it is closed, because it was removed or cannot be used any more. */
void keep_give(keep *k, kept *one, int again);
size_t keep_count(keep *k);
/* The bytes of memory that they hold. */
size_t keep_bytes(keep *k);

#endif
