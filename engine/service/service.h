/*
 * service.h: a server of sessions over gRPC, for the program that runs it and for tests.
 *
 * The program opens a store, sets its guard and its policies, and gives the store to a
 * service. The service listens, and starts the threads that serve; it ends when it is
 * told to and every call was finished. All that it knows about sessions is in the store:
 * a service that is killed loses nothing.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "base/buf.h"
#include "sessile_guard.h"

typedef struct service service;

enum { SERVICE_SESSIONS = 1, SERVICE_RECORDS = 2 };

/* What a policy asks of a model. Borrowed. */
typedef struct service_question {
    sessile_slice request;              /* JSON, as of SESSILE_NEED_MODEL */
    sessile_slice agent, user, session; /* of a run of a memory: no session */
    sessile_slice settings;             /* of the session: a JSON object, or empty */
    int (*over)(void *arg);             /* 1: nobody waits for the answer any more */
    void *over_arg;
} service_question;
/*
 * Answers a question, on the thread of a worker, which waits; several at one time. OK:
 * text has the answer. BUSY: not now; CANCELLED: nobody waits; anything else: the model
 * failed, and text has the reason.
 */
typedef sessile_status service_ask(void *arg, const service_question *question,
                                   buf *text);

/* What is configured for the sessions of an agent. */
typedef struct service_defaults {
    const char *agent; /* NULL: of each that has no row */
    sessile_config config;
    int64_t ttl_ms; /* of those that are made; 0: the engine's */
    int disabled;   /* 1: nothing is added to them, and none is made */
    int no_memory;  /* 1: nothing is written to the agent's memories */
} service_defaults;

/* Text is copied, but for what is said to be borrowed. 0 and NULL: the default. */
typedef struct service_settings {
    struct {
        const char *address;    /* "127.0.0.1:7071"; see rpc_listen() */
        const char *cert, *key; /* PEM files: TLS. Without: only where nobody else can
                                   connect, on this machine */
        const char *ca;         /* clients show a certificate of this authority, and
                                   its name is the user */
        const char *metrics;    /* where GET /metrics is answered, in clear text;
                                   NULL: nowhere */
        const char *certificate_role; /* the role that such a client has; "editor" */
        int plain; /* 1: also without TLS, for a network that is trusted */
    } listen;
    struct {
        int workers;    /* calls that run at one time; 8 */
        int sessions;   /* sessions that are kept open; 10,000 */
        size_t replies; /* bytes of replies that wait for clients, in all; 256 MiB */
        int waiting;    /* calls that wait, in all; 4,096. README.md says how many
                           of one user */
    } size;
    struct {
        int drain; /* ms that calls may take once the service is told to end; 30,000 */
        int age;   /* ms after which a connection is asked to end; 1,800,000 */
        int look;  /* ms between two looks at what is watched; 1,000 */
    } ms;
    /* The servers that share a store in a PostgreSQL database. */
    struct {
        const char *name;      /* of this one, the same after a restart; host and port */
        const char *advertise; /* where the others connect to it; the address */
        const char *ca;  /* PEM file: the authority of the others' certificates, which
                            are for the hosts of their addresses; listen.ca */
        int no_affinity; /* 1: each call is served where it arrives */
        int replicas;    /* standbys that commits wait for; with fewer, the health of
                            "replicas" is NOT_SERVING. 0: nobody asks */
    } nodes;
    /* What the operator is told: logline.h. The lines are also exported where the
     * environment names a receiver of OpenTelemetry's. */
    struct {
        int fd;       /* where lines go; 0: nowhere, and none are exported */
        int least;    /* a log_level: lines below are not written */
        int is_text;  /* 1: for people at a terminal, instead of JSON */
        int show_ids; /* 1: lines and spans name sessions by their ids, not by hashes */
    } log;
    unsigned services; /* SERVICE_…; sessions */
    /* With SERVICE_RECORDS: the store that has them, which is opened without a key, and
     * with what of the options store_backend_open() uses. Without a guard they are served
     * to this machine alone. */
    struct {
        const char *url;
        const sessile_store_options *options;
    } records;
    /* What sessions have where a call has no other; borrowed until the service is closed.
     * The last row is of all agents that have none. 0, and no rows: what the
     * store has. */
    const service_defaults *defaults;
    size_t default_count;
    /* The server's own model. NULL: what a policy asks is left to clients. */
    struct {
        service_ask *ask;
        void *arg;
    } model;
    int guarded;       /* 1: the store has a guard, and each call needs a credential */
    int no_json;       /* 1: gRPC alone */
    int no_reflection; /* 1: nobody can ask which methods there are */
    /* Asked now and then by service_run(): 1: the certificates are read again. They are
     * each hour in any case. NULL: nobody asks. */
    int (*reload)(void *arg);
    void *reload_arg;
} service_settings;

/*
 * Opens a service over a store, which stays the caller's and must be open until the
 * service is closed. A server of records alone is given one in memory, which has its
 * guard. It listens on return; calls are served while service_run() runs.
 *
 * INVALID: an address or a setting that cannot be; a certificate that has expired.
 * EXISTS: the address is in use, or the name of the node, by a living one. DENIED: an
 * address that others reach without TLS; a key that others may read. NOTFOUND: a file.
 * UNSUPPORTED: what a variable of OpenTelemetry asks for. IO: the store does not answer.
 * NOMEM.
 */
sessile_status service_open(service **out, sessile_store *store,
                            const service_settings *settings, sessile_error *err);
/* Where it listens, with the port that was taken for port 0. Borrowed. */
const char *service_address(const service *s);
/* Where /metrics is; NULL: nowhere. Borrowed. */
const char *service_metrics_address(const service *s);
/* Starts the threads, and returns once service_stop() was called and the last call was
 * finished, or its time was over. IO, NOMEM: a thread could not be started. */
sessile_status service_run(service *s, sessile_error *err);
/* Ends service_run(): no new calls are taken, those that there are may finish. Any
 * thread. The second call ends it at once. */
void service_stop(service *s);
void service_close(service *s);

#endif
