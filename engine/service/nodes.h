/*
 * nodes.h: the servers that share a store, and which of them serves a session.
 *
 * Each session has one owner, so that its calls find it open and do not meet as writers.
 * That is a hint: any node may serve any session, and the fence of the store settles what
 * two of them do at once. So nothing is locked and nothing is handed over.
 *
 * nodes.c writes the lease and knows who is alive. meet.c looks up where they are.
 * peers.c knows, for each loop, who of them can be heard, and chooses the owner. relay.c
 * passes calls on, poke.c tells the owner of what was written elsewhere, nodes_told.c
 * tells the operator.
 */
#ifndef SERVICE_NODES_H
#define SERVICE_NODES_H

#include "service/server.h"
#include "store/nodes.h"

enum {
    BEAT_MS = 500,     /* between two beats */
    LEASE_MS = 2000,   /* by the database's clock */
    TRUST_MS = 1800,   /* by this machine's, from before the beat was sent */
    PING_MS = 200,     /* between two PINGs to another node */
    SILENCE_MS = 400,  /* without a byte: a node is not heard any more */
    LOOPS_AT_MOST = 16 /* that a service has */
};

/* ---------------------------------------------------------------------- hashing */

/* What a session is known by: the same in every node, for the same names. user: its hash.
 */
uint64_t node_key(sessile_slice agent, uint64_t user, sessile_slice id);
uint64_t node_user(sessile_slice user);
uint64_t node_hash(const char *name);
/* The place of the owner among n nodes, by their hashes: the highest score of (node,
 * session). A node that goes moves only its own sessions. n > 0. */
size_t node_choose(uint64_t key, const uint64_t *hashes, size_t n);

/* ---------------------------------------------------------------------- this node */

typedef struct peers peers;
typedef struct peer peer;

/* How many calls, since the start. */
typedef struct nodes_figures {
    uint64_t here;      /* run here, in all */
    uint64_t forwarded; /* of these: that another node passed on */
    uint64_t relayed;   /* that another node answered */
    uint64_t fallback;  /* of here: that another node should have run */
    uint64_t refused;   /* because this node has lost the database */
    uint64_t missed;    /* beats that failed */
} nodes_figures;

struct nodes {
    allocator alloc;
    service *server;
    store backend;     /* of the host's handle */
    store_nodes *link; /* NULL: the store has no nodes */
    store_node own;    /* its name, address, … */
    uint64_t hash;
    struct {
        int affinity, replicas;
        char *agent;      /* the store's default agent */
        char *cert, *key; /* that it shows the others; NULL: no TLS */
        char *ca;         /* of the others' certificates */
    } settings;
    atomic_int leaving, ending;
    atomic_int reloads;          /* how often certificates were read again */
    _Atomic uint64_t trusted_us; /* its lease runs until then, by the monotonic clock */
    atomic_int standbys;         /* of the last beat; -1: unknown */
    atomic_int unanswered;       /* of a store without nodes: it did not answer */
    struct {
        _Atomic uint64_t here, forwarded, relayed, fallback, refused, missed;
    } count;
    /* of the thread of the beats: what was told last (nodes_told.c) */
    struct {
        int began, lost, few, apart;
        uint64_t lost_us;
        int64_t ahead_ms; /* this machine's clock, of that of the database */
    } told;
    pthread_mutex_t mutex; /* of what follows */
    store_node *living;    /* the others */
    size_t living_count, living_room;
    uint64_t version; /* it changes with them */
    peers *loops[LOOPS_AT_MOST];
    pthread_t thread;
    int started;
    struct {
        pthread_mutex_t mutex; /* all that follows; and peer.meeting */
        pthread_cond_t wake;
        peer *first, *last; /* to be looked up */
        int ending, started;
        pthread_t thread;
    } meet;
};

/* The name of the node: the one that is given, else its host and port. INVALID: it is no
 * name. */
sessile_status nodes_name(char out[NODE_NAME + 1], const service *s,
                          const service_settings *settings, sessile_error *err);
/* Joins: the first beat is made before it returns. EXISTS: a living node has the name.
 * INVALID: its name, or the address that it advertises. NOMEM. Other errors: as
 * store_nodes_beat(). */
sessile_status nodes_open(nodes **out, service *s, const service_settings *settings,
                          sessile_error *err);
/* Starts the thread of the beats, and each loop's look at the others. Before loops run.
 * IO, NOMEM. */
sessile_status nodes_start(nodes *n, sessile_error *err);
/* The certificates that it shows the others, and the authority of theirs, are read again.
 */
void nodes_reload(nodes *n);
/* Owns nothing any more, and is removed from the store's list. */
void nodes_leave(nodes *n);
/* Loops must not be running, and are closed after it: it ends the calls that it knows,
 * and knows no other node any more. Who has it may go on asking. NULL is ignored. */
void nodes_end(nodes *n);
/* The same, and frees it. NULL is ignored. */
void nodes_close(nodes *n);

/* 1: this node may own sessions: its lease runs, and it is not leaving. */
int nodes_owning(const nodes *n);
/* 1: it has lost the database: its lease ran out. */
int nodes_lost(const nodes *n);
nodes_figures nodes_look(const nodes *n);
/* What health says: 1: it serves. */
int nodes_serving(const nodes *n);
/* 1: the server takes calls: it serves, and was not told to end. Any thread. */
int service_serves(const service *s);
/* 1: as many standbys as are wanted wait for commits, or nobody asked for any. */
int nodes_replicated(const nodes *n);

/* Lines for the operator (nodes_told.c), by the thread of the beats: of a beat, before
 * its nodes are taken; after each beat; of the answer of a store without nodes. */
void nodes_tell_living(nodes *n, const store_beat *beat);
void nodes_tell_beat(nodes *n, sessile_status status, const sessile_error *err);
void nodes_tell_answer(nodes *n, sessile_status status, const sessile_error *err);
/* By a loop: a node is not heard, or is again. */
void nodes_tell_heard(const struct peer *one);

/* ---------------------------------------------------------------------- the others */

typedef struct relay relay;
typedef struct watcher watcher;
typedef struct poke poke;

typedef enum meeting {
    MEET_IDLE,
    MEET_WAITS, /* in the queue of meet.c */
    MEET_BUSY   /* its thread looks up where it is, and reads files */
} meeting;

/* Another node, as one loop sees it. */
struct peer {
    char name[NODE_NAME + 1], address[NODE_ADDRESS + 1];
    uint64_t hash;
    rpc_channel *channel; /* NULL: not yet */
    peers *peers;
    meeting meeting;
    peer *next_met; /* in that queue */
    /* of meet.c while it is not idle, else of the loop */
    struct {
        rpc_target *target; /* until there is a channel */
        rpc_tls *tls;
        sessile_status status; /* why there is no target, or no TLS */
        int wants_target;
        int reloads;       /* of the certificates in use */
        uint64_t again_us; /* not to be looked up again before */
    } way;
    rpc_request *probe; /* a call that makes the connection; NULL: none is on its way */
    int heard;
    int told;      /* the `heard` that the operator was told last */
    int was_heard; /* at least once */
    int gone;      /* not among the living any more; freed with its last relay */
    peer *next_gone;
    relay *relays;
};

/* Of one loop; all functions are for its thread. */
struct peers {
    nodes *nodes;
    rpc_loop *loop;
    uint64_t version;
    store_node *rows; /* the living of that version */
    size_t row_count, row_room;
    peer **list;
    size_t count, capacity;
    peer *gone;
    watcher *watchers; /* calls that health.c looks after */
    poke *pokes;       /* on their way */
    size_t poke_count;
    int last_serving, last_replicated;
};

/* NOMEM. */
sessile_status peers_open(peers **out, nodes *n, rpc_loop *loop, sessile_error *err);
void peers_close(peers *p);
/* Of a loop; NULL: the service has no nodes, or they have ended. */
peers *peers_of(const service *s, const rpc_loop *loop);
/* The node that owns a session, NULL: this one. *alone: this node has lost the database,
 * and hears none of the others. */
peer *peers_owner(peers *p, uint64_t key, int *alone);
/* A relay of a peer ended: frees it if it was gone and this was its last. */
void peer_done(peer *one);

/* ---- meet.c */

/* Starts the thread that looks up the others. IO, NOMEM. */
sessile_status meet_start(nodes *n, sessile_error *err);
/* Ends it: each peer is idle then. It may take as long as a server of names. */
void meet_end(nodes *n);
/* By the loop of a peer that is idle: it is looked up if it has no channel, and its
 * certificates are read. */
void meet_ask(peer *one);
/* 1: `way` is the loop's. */
int meet_is_idle(peer *one);

/* ---------------------------------------------------------------------- relays */

/* On the thread of the loop, once the request is there. 1: the call was passed on, or
 * ended; 0: it is to be run here. */
int relay_begin(call *c);
/* A later message of a call whose requests are a stream; the client sends no more. */
void relay_message(relay *r, const void *data, size_t size);
void relay_half(relay *r);
/* Nobody waits any more for the call; its connection takes more. */
void relay_gone(relay *r);
void relay_drained(relay *r);
/* The node is not heard any more: each of its relays ends. */
void relay_lose(peer *one);

/* ---------------------------------------------------------------------- pokes */

/* A call may have written to its session: if another node owns it, that one is told, so
 * that its event streams wake at once. Any thread. */
void poke_owner(call *c);
/* Ends those that are on their way to a node that goes; on the loop. */
void poke_lose(peer *one);

/* ---------------------------------------------------------------------- health */

/* A call is ended as UNAVAILABLE once the service ends. On the call's loop. 0; -1: no
 * memory. */
int health_end_with(call *c);
/* A call that watches is gone. */
void health_gone(watcher *w);
/* Tells those who watch what changed. */
void health_tell(peers *p);
/* Ends those who watch: the service ends. */
void health_end(peers *p);

#endif
