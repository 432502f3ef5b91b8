/*
 * remote.h: what the files of this folder share: the store, its connections, a call, and
 * an open log. README.md lists the files.
 *
 * A call is blocking: the thread that makes it takes a connection, which has a loop of
 * its own, and turns that loop until the answer is there. So there are no threads here.
 */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/os.h"
#include "base/text.h"
#include "rpc/rpc.h"
#include "service/records.pb-c.h"
#include "store/operations.h"
#include "store/remote.h"
#include "store/wait.h"

enum {
    REMOTE_NAME_SIZE = 256, /* with the NUL */
    REMOTE_IDENTITY = 16,
    REMOTE_TAG = 16,
    REMOTE_PIECE = 1 << 20, /* of one message */
    REMOTE_WHOLE = 4 << 20  /* written in one message; more goes ahead in pieces */
};

/* What a URL says. */
typedef struct remote_url {
    char address[300]; /* "host:port", "unix:/path" */
    char where[320];   /* in errors: "the server at host:port" */
    char host[256];
    int encrypted, plain, timeout_ms;
    char ca[512], cert[512], key[512], token_file[512];
} remote_url;

typedef struct remote_conn {
    struct remote_conn *next; /* among those that nobody uses, the last used first */
    rpc_loop *loop;
    rpc_channel *channel;
} remote_conn;

typedef struct remote {
    const os_table *os;
    allocator alloc;
    uint32_t pid;
    remote_url url;
    int timeout_ms, unsynced;
    char *credential; /* the header's value; NULL: none. Wiped */
    rpc_tls *tls;
    unsigned functions; /* of the server's store, as in records.proto */
    sessile_backend table;
    pthread_mutex_t mutex; /* what follows */
    remote_conn *idle;
    size_t idle_count;
} remote;

/* ---------------------------------------------------------------------- a call */

/* How long a call may take, what ends it, and what came of it. */
typedef struct remote_call {
    remote *r;
    uint64_t until_us; /* UINT64_MAX: for ever */
    int once;          /* one try, as far as nobody answers */
    int reads;         /* it changes nothing: what became of it need not be known */
    lock_stop stop;
    remote_conn *conn; /* that it must use; NULL: any */
    /* what came of it */
    buf replies;  /* messages, each behind its size */
    int known;    /* 1: the server said so: what is returned is its answer */
    int maybe;    /* 1: an earlier try of the same call may have taken place */
    int poisoned; /* the server said that */
} remote_call;

/* Freed by remote_done(). timeout_ms: -1 for ever, 0 one try. */
remote_call remote_call_of(remote *r, int timeout_ms);
void remote_done(remote_call *call);

/*
 * Makes a call until the server has answered, or time is up. A call whose answer was lost
 * is made again: each of them can be, because a change names what it starts from. One
 * that found the server busy is as well. Returns the server's status and sentence
 * (call->known); FORKED; IO, BUSY or CANCELLED if there was no answer. If call->maybe is
 * set, an earlier try may have taken place, and the caller finds out.
 */
sessile_status remote_do(remote_call *call, const char *method,
                         const ProtobufCMessage *request, sessile_error *err);
/* The next message of the reply (*at is 0 at first), for
 * protobuf_c_message_free_unpacked(); NULL: there are no more. */
ProtobufCMessage *remote_reply(remote_call *call, const ProtobufCMessageDescriptor *type,
                               size_t *at);
/* The only message of a reply. IO: it is not there. */
sessile_status remote_only(remote_call *call, const ProtobufCMessageDescriptor *type,
                           ProtobufCMessage **out, sessile_error *err);
/* A change whose outcome nobody could tell in time: IO. */
sessile_status remote_unknown(const remote_call *call, const char *what,
                              sessile_error *err);
/* The time that is left to learn what became of a change. */
void remote_grace(remote_call *call);
sessile_status remote_forked(const remote *r, sessile_error *err);

/* A connection, kept for the calls of one thing in the making. */
sessile_status remote_conn_take(remote *r, remote_conn **out, sessile_error *err);
void remote_conn_give(remote *r, remote_conn *c, int again);
void remote_conns_close(remote *r);

/* What is written: in the call itself, or sent ahead by it. remote_sent() afterwards. */
sessile_status remote_send(remote_call *call, const void *data, size_t size,
                           Sessile__V1__RecordData *out, sessile_error *err);
void remote_sent(remote_call *call, Sessile__V1__RecordData *data);

/* ---------------------------------------------------------------------- logs */

typedef struct remote_log {
    remote *r;
    char *folder, *name;
    unsigned char identity[REMOTE_IDENTITY];
    pthread_mutex_t mutex; /* what follows */
    int timeout_ms;
    lock_stop stop;
    uint64_t size;    /* as `size` said last */
    uint64_t seen;    /* the furthest that is known of the log */
    uint64_t settled; /* what is durable */
    int64_t mtime_ms;
    int replaced, poisoned;
    /* what came with its opening, for REMOTE_AHEAD_US: it is read first */
    uint64_t ahead_us;
    buf first, cache;
    uint64_t cache_offset;
    int has_cache; /* cache_offset + cache.size is its size */
} remote_log;

remote_log *remote_log_of(sessile_backend_log *log);
remote_call remote_log_call(remote_log *log);
/* The name of a log in a request: `out` points into the others. */
void remote_log_name(Sessile__V1__RecordLog *out, const remote_log *log);
void remote_name(Sessile__V1__RecordLog *out, const char *folder, const char *name);
ProtobufCBinaryData remote_bytes(const void *data, size_t size);

/* Whether the bytes at offset are these, all of them. */
sessile_status remote_same_bytes(remote_call *call, const Sessile__V1__RecordLog *log,
                                 uint64_t index, uint64_t offset, const void *data,
                                 size_t size, int *same, sessile_error *err);
/* Looks whether a name leads to a log. *there 0: it does not. */
sessile_status remote_look_up(remote_call *call, const char *folder, const char *name,
                              unsigned char identity[REMOTE_IDENTITY], uint64_t *bytes,
                              int *there, sessile_error *err);

STORE_DECLARE(remote);
sessile_status remote_blob_settle(void *self, const char *name, sessile_error *err);
void remote_set_timeout(sessile_backend_log *log, int timeout_ms);
sessile_status remote_watch(sessile_backend_log *log, uint64_t bytes, int timeout_ms,
                            int (*ask)(void *arg), void *arg, int *changed,
                            sessile_error *err);
sessile_status remote_fence(sessile_backend_log *log, sessile_log_end *out, int *has_tag,
                            sessile_error *err);
sessile_status remote_clock(void *self, int64_t *now_ms, sessile_error *err);

/* ---------------------------------------------------------------------- opening */

/* INVALID; DENIED: plain text to another machine. No error has a value of the URL but its
 * host. */
sessile_status remote_url_parse(remote_url *out, const char *url, sessile_error *err);
/* The credential: $SESSILE_TOKEN, or the file that the URL names. NULL: there is none. */
sessile_status remote_credential(const remote_url *url, const os_table *os,
                                 const allocator *a, char **out, sessile_error *err);

#endif
