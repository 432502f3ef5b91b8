/*
 * handle.h: a session handle: what it is in memory, opening, locking, waiting.
 *
 * A handle owns the handle of its log and what is derived from it. It has one mutex:
 * functions whose names end in _locked expect it to be held.
 *
 *   tree.h        the entries as a tree, and questions about it
 *   read.h        texts, messages and contexts
 *   write.h       the one way in which entries get into the log
 *   compaction.h  the data of compactions
 *   count.h       tokens
 *   fold.h        what the files of this folder share
 */
#ifndef SESSION_HANDLE_H
#define SESSION_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc_count.h"
#include "codec/entry.h"
#include "context/context.h"
#include "log/log.h"
#include "session/facts.h"
#include "session/header.h"
#include "session/meter.h"
#include "session/store_handle.h"
#include "session/tree.h"
#include "tokens/counters.h"

/* What an agent says of itself: it goes into its checkpoints. */
typedef struct session_agent_info {
    buf version, config, tools; /* empty: unknown */
} session_agent_info;

/*
 * The last compaction of a path: the newest one that a `compact`, a person or the host
 * made. What merge, summarize and truncate write after a turn is none, or a window that
 * slides would put everything off for ever.
 */
typedef struct last_compaction {
    sessile_id id;     /* 0: there is none */
    int overflow;      /* its reason was that */
    int64_t room;      /* window - reserve it was made for; -1: not known */
    uint32_t messages; /* on the path up to it */
    int64_t time_ms;   /* its entry's, else when the session was made */
} last_compaction;

/* When a trigger last fired, whatever came of it. */
typedef struct trigger_attempt {
    sessile_id turn; /* 0: never through this handle */
    int64_t room;    /* window - reserve then */
} trigger_attempt;

typedef struct session_place {
    char folder[NAME_SIZE], name[NAME_SIZE];
} session_place;

/* The state of the fold after a block of the log, as the index keeps it. */
typedef struct session_snapshot {
    void *data;
    size_t size;
} session_snapshot;

/* Room for a model's name. A longer name is cut. */
enum { MODEL_SIZE = 64 };

/* Names. They may hold any byte: NUL-terminated, with sizes. Fixed after open. */
typedef struct session_identity {
    char *id, *agent, *user;
    size_t id_size, agent_size, user_size;
    names_kind kind; /* NAMES_SESSION, but in a check */
    session_agent_info info;
    uint32_t pid; /* of the process that opened the handle */
} session_identity;

/* What the header of the log says. Fixed after open. */
typedef struct session_header {
    int64_t created_ms;
    char nonce[HEADER_NONCE];
    int64_t ttl_ms; /* 0: none */
    char *metadata; /* a JSON object, or NULL */
    size_t metadata_size;
    header_link origin, parent;
} session_header;

/* How long a call may wait. Atomic members are safe to touch without the mutex. */
typedef struct session_waiting {
    atomic_int timeout_ms;
    atomic_int
        has_timeout; /* timeout_ms was set for this handle; else it is the store's */
    atomic_uint interrupts;          /* number of calls of sessile_interrupt() */
    const struct session_wait *call; /* under the mutex: of the call that has its turn */
    _Atomic uintptr_t thread; /* the thread of that call, which others may ask for */
} session_waiting;

/* Several reads of one thread that see the log as it was at one moment: the thread, or 0;
 * the thread that has read the log for its moment. Any thread. */
typedef struct session_moment {
    _Atomic uintptr_t of, read;
} session_moment;

/* An idle worker process, and how to stop it: this floor knows none. */
typedef struct session_worker {
    void *idle;
    void (*stop)(void *worker);
} session_worker;

/* The entries of the log as nodes. Under the mutex. */
typedef struct session_tree {
    node *nodes; /* see session_load_locked() */
    size_t node_count, node_capacity;
    child_link *children; /* see children.c; child_count 0: not made */
    size_t child_count, child_capacity;
    message_link *links;
    size_t link_count, link_capacity;
    sessile_id head; /* 0: the header: nothing on the path */
    sessile_id base; /* the head that this handle last showed or made */
} session_tree;

/* What comes from the index of the log, and goes into it. Under the mutex. */
typedef struct session_index {
    unsigned char *absent; /* of the first blocks: 1 when a block is not in nodes yet */
    size_t absent_blocks, absent_count;
    size_t blocks_taken; /* number of blocks that came, or of rebuilds */
    int restored;        /* the index was believed for entries in these blocks */
    int failed;          /* it could not be, inside a fold: see session_reload_locked() */
    session_snapshot *snapshots; /* of blocks that are not in the index */
    size_t snapshot_first, snapshot_count, snapshot_capacity;
    int takes_snapshots;
} session_index;

/* What the entries add up to. Under the mutex. */
typedef struct session_fold {
    facts facts; /* labels, settings, checkpoints, suspensions */
    sessile_usage usage;
    char *title;
    size_t title_size;
    int64_t written_ms; /* time of the newest entry */
    int64_t said_ms;    /* when the newest message was said; 0: there is none */
    int64_t begun_ms;   /* the same of the oldest one */
    struct usage_part { /* usage of messages that a turn entry may yet replace */
        sessile_id id;
        sessile_usage usage;
    } * parts;
    size_t part_count, part_capacity;
    buf scratch;
    int broken; /* the fold lost its place in the log: every call says so */
} session_fold;

/* The context at the head. Under the mutex. */
typedef struct session_context {
    context at_head;
    int stale; /* it has to be rebuilt before use */
} session_context;

/* The newest refusals: a repeated one is counted, not written. 0: none. */
typedef struct session_refusals {
    uint64_t last;     /* hash64_lasting of the newest refusal's data */
    uint64_t repeated; /* number of repetitions since it was written */
    uint64_t last_fallback, fallback_repeated; /* of refusals of fallbacks, since open */
} session_refusals;

/* What triggers look at. */
typedef struct session_compacting {
    trigger_attempt by_share, by_overflow;
    sessile_id last_at; /* the compaction that `last` was read from */
    last_compaction last;
} session_compacting;

/* Tokens. */
typedef struct session_counting {
    token_meter meter;
    char model[MODEL_SIZE];         /* the newest name in the log, or "" */
    atomic_int unit;                /* messages are counted in; -1: not known yet */
    const model_kind *_Atomic kind; /* of the model, or NULL; with unit */
} session_counting;

struct session_core {
    store_core *store;
    const allocator *alloc; /* of all that it holds, but not of what it gives away */
    alloc_count own;        /* which alloc is, but of a second fold (reload.c) */
    session_place *place; /* of a log that its names do not lead to and that is its own */
    log_t *log;           /* another one when the log was replaced */
    pthread_mutex_t mutex;
    session_identity identity;
    session_header header;
    session_waiting waiting;
    session_moment moment;
    sessile_config config; /* what it was given; see session_config() */
    session_worker worker; /* of isolated policies; under the mutex */
    session_tree tree;
    session_index index;
    session_fold fold;
    session_context context;
    session_refusals refusals;
    session_compacting compacting;
    session_counting counting;
    _Atomic uint64_t torn;   /* bytes set aside by this handle */
    int met_others;          /* when it last wrote: a write then reads first */
    size_t forgotten_before; /* store->forgotten_count when it was opened */
};

/* The depth that stored entries may have. A lower limit must not lock anybody out. */
unsigned session_read_depth(const store_core *st);

/* Bytes that it holds: the core, its fold and its log. Any thread. */
size_t session_memory(const session_core *s);

/* Its names, borrowed. */
session_names session_own_names(const session_core *s);

/* The configuration that a run inherits, borrowed: with the timeout as it is now, and
 * without the store's policies, which may change. session_own_config() is the part that
 * is not the store's. */
sessile_config session_config(const session_core *s);
sessile_config session_own_config(const session_core *s);
/* Of the calls of this handle from now on; any thread. */
void session_set_timeout(session_core *s, int timeout_ms);

sessile_status session_create(store_core *st, const sessile_session_options *options,
                              sessile_error *err, char *new_id /* UUID_SIZE, or NULL */);
sessile_status session_open(session_core **out, store_core *st,
                            const sessile_session_options *options, sessile_error *err);
/* As session_open(), also when it was deleted softly. */
sessile_status session_open_any(session_core **out, store_core *st,
                                const sessile_session_options *options,
                                sessile_error *err);
sessile_status session_close(session_core *s, sessile_error *err);
/* As session_create(), as a child of `parent` (NULL: of none), in the place `at` (NULL:
 * where its names lead). As session_open(), in that place. */
sessile_status session_create_at(store_core *st, const sessile_session_options *options,
                                 const sessile_link *parent, const session_place *at,
                                 sessile_error *err, char *new_id);
sessile_status session_open_at(session_core **out, store_core *st,
                               const sessile_session_options *options,
                               const session_place *at, sessile_error *err);

/*
 * How long one call may wait, for the log's lock and its turn in the handle together, and
 * which interruptions were there before it began. The clock starts at its first wait.
 */
typedef struct session_wait {
    int timeout_ms; /* -1: for ever */
    unsigned interrupts;
    uint64_t since_us; /* 0: it has not waited yet */
} session_wait;
/* Starts the wait of a call. It lasts at most timeout_ms if has_timeout, else the
 * handle's timeout. */
session_wait session_wait_begin(session_core *s, int has_timeout, int timeout_ms);
/* Waits for the mutex. BUSY, CANCELLED: it is not held. (wait.c) */
sessile_status session_wait_turn(session_core *s, session_wait *w, sessile_error *err);
/* What is left for the next wait, ms. */
int session_wait_left(const session_core *s, const session_wait *w);
/* The call that has its turn now, on this thread; NULL: none any more. Under the mutex.
 */
void session_wait_set(session_core *s, const session_wait *w);
/* After another writer was faster, for the time number `tries` (from 0): a pause that
 * grows, and OK; CANCELLED, or BUSY when the call may wait no longer. */
sessile_status session_wait_retry(session_core *s, session_wait *w, int tries,
                                  sessile_error *err);
/* A log_stop of a session with the mutex: its call was interrupted. */
int session_interrupted_locked(void *session);

/* Takes the mutex (BUSY, CANCELLED), unless this is another process than the one that
 * opened the handle: then FORKED, and no lock is touched, since a fork may have copied it
 * while it was held. */
sessile_status session_lock(session_core *s, sessile_error *err);
sessile_status session_lock_within(session_core *s, session_wait *w, sessile_error *err);
void session_unlock(session_core *s);

/* 1 when its user was forgotten through this store handle since it was opened (lock.c).
 */
int session_was_forgotten(const session_core *s);
/* IO: this handle lost its place in the log; SEALED: its user was forgotten. Whoever
 * shows anything of a session asks first, also when it was found before. */
sessile_status session_check_usable(const session_core *s, sessile_error *err);

/* OK, or why the session can only be read: DAMAGED or TRUNCATED. lost: NULL, or how many
 * entries are. */
sessile_status session_damage_locked(const session_core *s, uint64_t *lost,
                                     sessile_error *err);

/* Folds in what other handles have committed since: asks the store where the log ends,
 * unless that was asked in the moment of this thread. */
sessile_status session_refresh_locked(session_core *s, sessile_error *err);
/*
 * Reads of this thread are of one moment from now on: the first one asks where the log
 * ends; none does with is_read 1, which says that the log was read a moment ago. Inside
 * such a moment it does nothing. A write of this thread ends it, and so does the moment
 * of another thread. Whoever begins one ends it, on the same thread.
 */
void session_moment_begin(session_core *s, int is_read);
void session_moment_end(session_core *s);
/* session_lock() and session_refresh_locked(). On an error the mutex is not held. */
sessile_status session_lock_fresh(session_core *s, sessile_error *err);

#endif
