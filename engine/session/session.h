/*
 * session.h: a session handle: the fold of a log into a tree, a head and a context.
 *
 * Owns the log handle and what is derived from it. One mutex; functions named _locked
 * want it held. Writing is one path for everyone: session_write() takes the log's lock,
 * reads what others wrote, lets the caller build entries for the head as it now is,
 * appends them as one commit and folds them in.
 *
 * Of old entries only the log's index knows, until somebody walks to them: what looks at
 * a node says so first (session_reach_locked).
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include "codec/entry.h"
#include "log/log.h"
#include "context/context.h"
#include "session/facts.h"
#include "session/header.h"
#include "session/meter.h"
#include "session/store_handle.h"
#include "tokens/counters.h"

enum {
    NODE_HAS_CONTEXT = 1,
    NODE_HAS_VARS = 2,
    NODE_HAS_USAGE = 4, /* of a turn, or of a message by a model */
    NODE_NO_POLICY = 8, /* of a turn: it was to run none, whatever is configured */
    NODE_UNIT = 16      /* from here on, of a message: a token_unit times this */
};

/* What is kept of each entry: at most 48 bytes (the log keeps 8 more for the offset). */
typedef struct node {
    sessile_id parent; /* SESSILE_NO_ID: the header */
    uint32_t tokens;   /* of messages */
    uint32_t turn;     /* number of turn-starting messages up to here on its path */
    uint32_t link, link_count;
    uint32_t events;       /* turns, bare appends and compactions on its path */
    uint32_t messages;     /* messages on its path */
    sessile_id context_at; /* nearest compaction with a context on its path, or 0 */
    sessile_id vars_at;    /* nearest compaction with vars on its path, or 0 */
    uint8_t type, role, flags /* MESSAGE_… */, marks /* NODE_… */;
    int64_t time_ms; /* the entry's time */
} node;

/* Of each entry, once somebody asked for children; 0: none. */
typedef struct child_link {
    sessile_id child; /* the newest */
    sessile_id next;  /* the sibling before it */
} child_link;

/* The state of the fold after a block of the log, as the index keeps it. */
typedef struct session_snapshot {
    void *data;
    size_t size;
} session_snapshot;

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

/* Room for a model's name; of a longer one the rest is not looked at. */
enum { MODEL_SIZE = 64 };

struct sessile_session {
    sessile_store *store;
    session_place *place; /* of a log that its names do not lead to and that is its own */
    log_t *log;           /* another one when the log was replaced */
    pthread_mutex_t mutex;
    /* fixed after open */
    char *id, *agent, *user; /* NUL-terminated, with sizes: they may hold any byte */
    size_t id_size, agent_size, user_size;
    int64_t created_ms;
    char nonce[HEADER_NONCE];
    /* safe to touch without the mutex */
    atomic_int timeout_ms;           /* how long a call may wait */
    atomic_uint interrupts;          /* how often sessile_interrupt() was called */
    _Atomic uint64_t torn;           /* bytes set aside by this handle */
    const struct session_wait *wait; /* under the mutex: of the call that has its turn */
    _Atomic uintptr_t waiter;        /* and its thread, which others may ask */
    int64_t window, reserve;
    session_agent_info agent_info; /* fixed after open */
    policy_ref policy, fallback;
    sessile_triggers *triggers;      /* in place of the store's; or NULL */
    sessile_triggers *checkpoint_on; /* likewise */
    uint32_t checkpoint_keep;
    policy_ref worker; /* idle, of isolated policies; under the mutex */
    /* the fold, under the mutex */
    node *nodes; /* see session_reach_locked() */
    size_t node_count, node_capacity;
    child_link *child_links; /* see children.c; child_link_count 0: not made */
    size_t child_link_count, child_link_capacity;
    unsigned char *absent; /* of the first blocks: 1 when a block is not in nodes yet */
    size_t absent_blocks, absent_count;
    size_t blocks_taken; /* how often a block came, or all of them anew */
    int met_others;      /* when it last wrote: who meets others looks first */
    int restored;        /* the index was believed for entries in these blocks */
    int index_failed;    /* it could not be, inside a fold: session_reload_locked() */
    session_snapshot *snapshots; /* of blocks that are not in the index */
    size_t snapshot_first, snapshot_count, snapshot_capacity;
    int takes_snapshots;
    message_link *links;
    size_t link_count, link_capacity;
    sessile_id head;   /* 0: the header: nothing on the path */
    sessile_id base;   /* the head this handle last showed or made */
    context current;   /* the context at the head */
    int current_stale; /* current is to be built anew before use */
    facts facts;       /* labels, settings, checkpoints, pauses */
    sessile_usage usage;
    char *title;
    size_t title_size;
    int64_t ttl_ms; /* of the header; 0: none */
    char *metadata; /* JSON object of the header, or NULL; fixed after open */
    size_t metadata_size;
    header_link origin, parent; /* of the header; fixed after open */
    int64_t modified_ms;
    struct usage_part { /* usage of messages that a turn entry may yet replace */
        sessile_id id;
        sessile_usage usage;
    } * parts;
    size_t part_count, part_capacity;
    buf scratch;
    uint64_t last_refusal;      /* hash64_lasting of the newest refusal's data; 0: none */
    uint64_t refusals_repeated; /* how often it came again since it was written */
    uint64_t
        last_fallback_refusal; /* the same two of refusals of fallbacks, since open */
    uint64_t fallback_refusals_repeated;
    trigger_attempt by_share, by_overflow;
    sessile_id last_compaction_at; /* the compaction that last_compaction was read from */
    last_compaction last_compaction;
    token_meter meter;
    char model[MODEL_SIZE];         /* named last in the log, or "" */
    atomic_int unit;                /* messages are counted in; -1: not known yet */
    const model_kind *_Atomic kind; /* of the model, or NULL; with unit */
    int broken;              /* the fold lost its place in the log: every call says so */
    uint32_t pid;            /* who opened it; fixed after open */
    size_t forgotten_before; /* store->forgotten_count when it was opened */
};

sessile_status session_create(sessile_store *st, const sessile_session_options *options,
                              sessile_error *err, char *new_id /* UUID_SIZE, or NULL */);
sessile_status session_open(sessile_session **out, sessile_store *st,
                            const sessile_session_options *options, sessile_error *err);
/* The same, also when it was deleted softly. */
sessile_status session_open_any(sessile_session **out, sessile_store *st,
                                const sessile_session_options *options,
                                sessile_error *err);
sessile_status session_close(sessile_session *s, sessile_error *err);
/* The same as a child of another session (parent NULL: of none), and in a place that the
 * names do not lead to (at NULL: the one they lead to). */
sessile_status session_create_at(sessile_store *st,
                                 const sessile_session_options *options,
                                 const sessile_link *parent, const session_place *at,
                                 sessile_error *err, char *new_id);
sessile_status session_open_at(sessile_session **out, sessile_store *st,
                               const sessile_session_options *options,
                               const session_place *at, sessile_error *err);

/* ---- records that somebody else keeps (operations/records.c) */

/* As sessile.h says of the functions of these names. */
sessile_status session_records_open(sessile_session **out, sessile_store *st,
                                    const sessile_session_options *options,
                                    const sessile_slice *records, size_t count,
                                    sessile_error *err);
/* In a store over records a session that was made by its names is s's own from now on
 * (NULL: it was not opened, and goes). Elsewhere nothing happens. */
void session_records_own(sessile_store *st, const sessile_session_options *named,
                         sessile_session *s);
sessile_status session_records_locked(sessile_session *s, uint64_t from,
                                      sessile_slice **out, size_t *count,
                                      sessile_error *err);

/*
 * How long one call may wait, for the log's lock and its turn in the handle together, and
 * which interruptions were there before it began. The clock starts at its first wait.
 */
typedef struct session_wait {
    int timeout_ms; /* -1: for ever */
    unsigned interrupts;
    uint64_t since_us; /* 0: it has not waited yet */
} session_wait;
/* Begins the patience of a call: the handle's, or timeout_ms when has_timeout. */
session_wait session_wait_begin(sessile_session *s, int has_timeout, int timeout_ms);
/* Waits for the mutex. BUSY, CANCELLED: it is not held. (session/wait.c) */
sessile_status session_take_turn(sessile_session *s, session_wait *w, sessile_error *err);
/* What is left for the next wait, ms. */
int session_wait_left(const sessile_session *s, const session_wait *w);
/* The call that has its turn now, on this thread; NULL: none any more. Under the mutex.
 */
void session_wait_set(sessile_session *s, const session_wait *w);
/* After another writer was faster, for the time number `tries` (from 0): a pause that
 * grows, and OK; CANCELLED, or BUSY when the call may wait no longer. */
sessile_status session_wait_again(sessile_session *s, session_wait *w, int tries,
                                  sessile_error *err);
/* A log_stop of a session with the mutex: its call was interrupted. */
int session_interrupted_locked(void *session);

/* sessile_session_watch(). (operations/watch.c) */
sessile_status session_watch(sessile_session *s, sessile_id *seen, int timeout_ms,
                             int *changed, sessile_error *err);

/* Takes the mutex (BUSY, CANCELLED), unless this is another process than the one that
 * opened the handle: then FORKED, and no lock is touched, since a fork may have copied it
 * while it was held. */
sessile_status session_lock(sessile_session *s, sessile_error *err);
sessile_status session_lock_within(sessile_session *s, session_wait *w,
                                   sessile_error *err);
void session_unlock(sessile_session *s);

/* 1 when its user was forgotten through this store handle since it was opened (keys.c).
 */
int session_was_forgotten(const sessile_session *s);
/* IO: this handle lost its place in the log; SEALED: its user was forgotten. Whoever
 * shows anything of a session asks first, also when it was found before. */
sessile_status session_in_place(const sessile_session *s, sessile_error *err);

/* OK, or why the session can only be read: DAMAGED or TRUNCATED. lost: NULL, or how many
 * entries are. */
sessile_status session_damage_locked(const sessile_session *s, uint64_t *lost,
                                     sessile_error *err);

/* Folds in what other handles have committed since. */
sessile_status session_refresh_locked(sessile_session *s, sessile_error *err);

/* Entries on their way into one commit. */
typedef struct batch {
    buf text;
    size_t *starts; /* offsets into text */
    size_t count, capacity;
    sessile_id first; /* the id of the first entry */
    sessile_id base;  /* the handle's base after it; SESSILE_NO_ID: the head */
    int64_t now_ms;
    const allocator *alloc;
} batch;
/* The id the next entry will have. */
sessile_id batch_next(const batch *b);
/* Adds an entry: id and time are set by the batch. NOMEM is found by session_write. */
void batch_add(batch *b, entry_fields *fields);

/* The text of the i-th entry; borrowed until the next is added. */
sessile_slice batch_entry(const batch *b, size_t i);
/* Adds an entry whose text is there already, its id put in its place. */
void batch_copy(batch *b, const char *text, size_t size);
void batch_init(batch *b, sessile_id first, int64_t now_ms, const allocator *a);
void batch_deinit(batch *b);

/* Builds the entries for the head as it is now (mutex and log lock held). Adding nothing
 * writes nothing. An error writes nothing. */
typedef sessile_status (*session_build)(void *arg, sessile_session *s, batch *b,
                                        sessile_error *err);
/* Writes what build builds, and waits until it is durable: a call of its own. */
sessile_status session_write(sessile_session *s, session_build build, void *arg,
                             sessile_error *err);
/* Its two halves, as parts of a longer call with one patience. The first takes the mutex.
 * *count_out (or NULL): log_count after it, for the second. When the log has grown all
 * the same between reading and appending, build is called again on what there is then. */
sessile_status session_write_within(sessile_session *s, session_wait *w,
                                    session_build build, void *arg, sessile_id *count_out,
                                    sessile_error *err);
/* The same, of a build that may be called again whatever it returned: where a store has
 * no locks it is called first on what this handle has seen, without asking for what
 * others appended, since the store compares. Where nothing was written so, it is called
 * again on what is there. A question less to a database with each write. */
sessile_status session_write_known(sessile_session *s, session_build build, void *arg,
                                   sessile_error *err);
sessile_status session_write_known_within(sessile_session *s, session_wait *w,
                                          session_build build, void *arg,
                                          sessile_id *count_out, sessile_error *err);
/* Waits until that is durable, unless the store's durability is NONE. No mutex held. */
sessile_status session_sync_within(sessile_session *s, const session_wait *w,
                                   sessile_id count, sessile_error *err);

/* Makes all that this handle wrote durable, whatever the store's durability; the next
 * write says so. */
sessile_status session_sync(sessile_session *s, sessile_error *err);

/* Adds an entry for a message: checked text, read columns. Returns its id. */
sessile_id batch_message(batch *b, sessile_id parent, const char *text, size_t size,
                         const message *m, token_count tokens);

/* Adds an entry that is no message: checked text, no tokens. Returns its id. */
sessile_id batch_put(batch *b, sessile_id parent, entry_type type, entry_source source,
                     const char *data, size_t size);

/* Adds the fact that moves the head from `was` to `to`. */
void batch_move_head(batch *b, sessile_id to, sessile_id was);

/*
 * A node may be looked at when it is the header, the head, was folded by this handle, or
 * after this: what the log's index holds of old entries is taken out of it by blocks,
 * when they are wanted. Nodes may move meanwhile. NOMEM; what the log says when the index
 * is bad and it has to be folded anew.
 */
sessile_status session_reach_locked(sessile_session *s, sessile_id id,
                                    sessile_error *err);
/* All of the path from id on that is above low, which itself is left out. */
sessile_status session_reach_path_locked(sessile_session *s, sessile_id id,
                                         sessile_id low, sessile_error *err);
/* All of them. */
sessile_status session_reach_all_locked(sessile_session *s, sessile_error *err);
/* The fold made anew: from the lines of the log, or, when another log has its name, from
 * that one. NOTFOUND, CONFLICT: it is not what this handle has read. */
sessile_status session_reload_locked(sessile_session *s, sessile_error *err);
/* Appends the text of entry id. As log_read(). */
sessile_status session_text_locked(sessile_session *s, sessile_id id, buf *out,
                                   sessile_error *err);

/* 1 when ancestor is id or lies on the path from id to the root (which was reached). */
int session_descends_locked(const sessile_session *s, sessile_id id, sessile_id ancestor);
/* CONFLICT unless head, compactions after it aside, is base (strict) or descends from it.
 */
sessile_status session_check_base_locked(sessile_session *s, sessile_id base, int strict,
                                         sessile_error *err);

/* The context at the head (valid until the mutex is released), or at any leaf (built into
 * out). NOTFOUND: no such path entry. */
sessile_status session_context_locked(sessile_session *s, const context **out,
                                      sessile_error *err);
sessile_status session_context_at_locked(sessile_session *s, sessile_id at, context *out,
                                         sessile_error *err);
/* The messages of the path from after low, an ancestor of high, up to it, as a list into
 * out (init'ed). */
sessile_status session_between_locked(sessile_session *s, sessile_id low, sessile_id high,
                                      context *out, sessile_error *err);
/* Ids of the path's messages from root to leaf, oldest first, into an array of the
 * session's allocator (free with mem_free, *count * sizeof). */
sessile_status session_path_locked(sessile_session *s, sessile_id at, sessile_id **out,
                                   size_t *count, sessile_error *err);
/* Appends the message JSON named by key. */
sessile_status session_message_locked(sessile_session *s, sessile_key key, buf *out,
                                      sessile_error *err);
/* The messages of a list in its order, as session_message_locked() gives them: those that
 * stand close to each other in the log are read at once. prefetch_end() before the mutex
 * is released. */
typedef struct prefetch {
    sessile_session *s;
    const context *c;
    size_t next;            /* the item behind those */
    sessile_id first, last; /* entries read at once; first > last: none yet */
} prefetch;
void prefetch_begin(prefetch *a, sessile_session *s, const context *c);
sessile_status prefetch_message(prefetch *a, sessile_key key, buf *out,
                                sessile_error *err);
void prefetch_end(prefetch *a);
/* vars of all policies at a leaf, a JSON object {"name":{…}}, appended to out. */
sessile_status session_vars_locked(sessile_session *s, sessile_id at, buf *out,
                                   sessile_error *err);
/* NOTFOUND unless id can be a leaf; the message names the nearest that can. */
sessile_status session_check_at(sessile_session *s, sessile_id id, sessile_error *err);
/* In what a message was counted: a token_unit. */
unsigned node_unit(const node *n);
/* The unit that is the model's own, or -1. */
int session_exact_unit(const sessile_session *s);
/* The model that a session is for; empty: nobody says. (session/model.c) */
sessile_slice session_model(const sessile_session *s);
/* A message counted for it. With or without the mutex. */
token_count session_count(sessile_session *s, const message *m);
token_count session_count_locked(sessile_session *s, const message *m);
/* Messages and texts that are in no session. */
typedef struct counting {
    sessile_store *store;
    sessile_slice model;
    const model_kind *kind;
    token_unit unit;
    int exact;
    token_sums sums;
    buf text;
} counting;
/* store and model are set; text is freed by the caller */
void counting_begin(counting *c);
sessile_status counting_add(counting *c, sessile_slice text, sessile_tokens *one,
                            sessile_error *err);
void counting_end(const counting *c, sessile_tokens *out);
void session_count_text(const sessile_store *st, sessile_slice text, sessile_tokens *out);
/* As sessile_count_tokens_with() says. */
sessile_status session_tokens_for_locked(sessile_session *s, sessile_id at,
                                         sessile_slice model, sessile_slice tools,
                                         sessile_slice system, sessile_tokens *out,
                                         sessile_error *err);
/* Tokens of the context at the head: the newest report and what follows it, when no
 * compaction came after that, else what was counted. (session/meter.c) */
sessile_status session_tokens_locked(sessile_session *s, sessile_tokens *out,
                                     sessile_error *err);
/* The same at any leaf. *beside: 1 when system prompt and tools that are in no message
 * are not in it yet. */
sessile_status session_tokens_at_locked(sessile_session *s, sessile_id at,
                                        sessile_tokens *out, int *beside,
                                        sessile_error *err);

/* The same for another context in its place, as it will be counted when a compaction at
 * leaf has made it. */
sessile_status session_tokens_with_locked(sessile_session *s, sessile_id at,
                                          const struct context *c, sessile_tokens *out,
                                          sessile_error *err);

/* As sessile.h says of the function of this name. (session/usage.c) */
sessile_status session_usage_groups(sessile_session *s, sessile_usage_by by,
                                    sessile_usage_group **out, size_t *count,
                                    sessile_error *err);

/* ---- small writes, each synced (session/write.c) */

/* As sessile.h says of the functions of these names; arguments are not NULL. */
sessile_status session_append_message(sessile_session *s, sessile_slice text,
                                      sessile_id *out, sessile_error *err);
/* A message's text checked into out, with its columns (spans into out) and tokens. */
sessile_status session_check_message(sessile_session *s, sessile_slice text, buf *out,
                                     message *columns, token_count *tokens,
                                     sessile_error *err);
sessile_status session_append_custom(sessile_session *s, sessile_slice data,
                                     entry_source source, sessile_id *out,
                                     sessile_error *err);
sessile_status session_set_title(sessile_session *s, sessile_slice title,
                                 sessile_error *err);
sessile_status session_clear(sessile_session *s, sessile_error *err);
/* LIMIT [title]; INVALID: not UTF-8. */
sessile_status session_check_title(const sessile_store *st, sessile_slice title,
                                   sessile_error *err);

/* Checks a JSON object for a header into out; empty stays empty. */
sessile_status session_check_metadata(buf *out, const sessile_store *st,
                                      sessile_slice text, sessile_error *err);

/* ---- lists for the host (session/render.c) */

/* Rows of the path's messages. */
sessile_status session_messages(sessile_session *s,
                                const sessile_messages_options *options,
                                sessile_message **out, size_t *count, sessile_error *err);
/* Rows of a context as a model is sent it: late answers moved to their calls, dead calls
 * answered by an engine-made result, orphans left out. text reads an item's message. Of
 * info only orphans and unanswered are set. With `times` its mutex is held. */
typedef sessile_status (*render_text)(void *arg, sessile_key key, buf *out,
                                      sessile_error *err);
sessile_status render_context(const context *c, render_text text, void *arg,
                              const sessile_session *times /* for time_ms; or NULL */,
                              sessile_message **out, size_t *count,
                              sessile_context_info *info, const allocator *a,
                              sessile_error *err);

/* ---- the tree, asked (session/children.c); lists are handed out */

/* As sessile.h says of the functions of these names. */
sessile_status session_ancestry_locked(sessile_session *s, sessile_id id,
                                       sessile_id **out, size_t *count,
                                       sessile_error *err);
sessile_status session_children_locked(sessile_session *s, sessile_id id,
                                       sessile_id **out, size_t *count,
                                       sessile_error *err);
sessile_status session_siblings_locked(sessile_session *s, sessile_id id,
                                       sessile_id **out, size_t *count,
                                       sessile_error *err);
sessile_status session_leaves_locked(sessile_session *s, sessile_id **out, size_t *count,
                                     sessile_error *err);
sessile_status session_common_ancestor_locked(sessile_session *s, sessile_id a,
                                              sessile_id b, sessile_id *out,
                                              sessile_error *err);
sessile_status session_tree_locked(sessile_session *s, const sessile_tree_options *o,
                                   sessile_node **out, size_t *count, sessile_error *err);

/* ---- compactions (session/compaction.c) */

/*
 * The data of a compaction entry, in this order; what does not apply is left out:
 *   "context": the list up to upto: "00000003", "00000003-00000384" (the path's messages
 *       from one to the other), "00000016.1" (a message written by a compaction)
 *   "upto": the newest path entry that the policy saw
 *   "put": [{"n":1,"turn":3,"tokens":[12,"estimate"],"replaces":[…],"covers":[…],
 *       "message":{…}}], n from 1 in the order of the list; keys listed as in context
 *   "policy", "fallback_of": the policies that edited it, and whom they stood in for
 *   "reason", "event" (its name), "room" (window less reserve, when there is a window),
 *       "last_compact" (after a turn: the last compaction before it, see last_compaction)
 *   "instructions", "summary", "first_kept_entry_id", "tokens_before", "tokens_after",
 *       "token_source", "duration_ms", "account": written by the run, for people
 *   "uncompacts": the compaction that this one takes back (its account then says what was
 *       "restored" and "removed")
 *   "vars": {"<policy>":{…}}, of all policies, whole; there only when they changed
 * A compaction without "context" leaves the context as it was.
 */

/* Appends the JSON array of keys, ascending neighbours on a path joined to ranges; keys
 * of own puts (entry SESSILE_NO_ID) are named "<self>.<n>". */
sessile_status compaction_put_keys(sessile_session *s, const sessile_key *keys,
                                   size_t count, sessile_id self, buf *out,
                                   sessile_error *err);

#endif
