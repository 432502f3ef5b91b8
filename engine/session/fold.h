/*
 * fold.h: functions that the files of session/ share. The folders that write entries and
 * the tests include it too.
 */
#ifndef SESSION_FOLD_H
#define SESSION_FOLD_H

#include "session/header.h"
#include "session/count.h"
#include "session/handle.h"
#include "session/read.h"
#include "session/write.h"

/* ---- the fold (fold.c) */

typedef struct fold {
    session_core *s;
    int own;                /* entries of this handle, not yet in the log: limits apply */
    int moved;              /* out: a path entry or a head fact was among them */
    const char *keep_title; /* a savepoint may restore it: do not free it */
} fold;

/* A log_visit: folds one entry, or changes nothing. An entry that is already folded is
 * ignored. DAMAGED, NOMEM; LIMIT [message] if `own` is set. */
sessile_status fold_visit(void *arg, sessile_id id, const char *text, size_t size,
                          sessile_error *err);

/* When the session was modified, as people see it: when its newest message was said; when
 * it was made, if it has none, or if it is a fork made later. */
int64_t fold_modified(const session_core *s);
/* When it was created, as people see it: when its oldest message was said, if that is
 * before the log was made (an import), and it is no fork. */
int64_t fold_created(const session_core *s);

/* ---- savepoints (savepoint.c) */

/* The state of the fold before entries are folded and written. If the log refuses them,
 * the fold is rewound to it. */
typedef struct fold_savepoint {
    size_t node_count, link_count, item_count, item_link_count, title_size;
    size_t blocks_taken;
    size_t fact_count, fact_names;
    sessile_id head, upto;
    sessile_usage usage;
    char *title;
    int64_t written_ms, said_ms, begun_ms;
    char model[MODEL_SIZE];
    uint64_t last_refusal, last_fallback_refusal;
} fold_savepoint;
void fold_savepoint_set(fold *f, fold_savepoint *m);
void fold_savepoint_release(fold *f,
                            const fold_savepoint *m); /* keeps what was folded since */
void fold_savepoint_rewind(fold *f,
                           const fold_savepoint *m); /* drops what was folded since */

/* The log names another model, in MODEL_SIZE bytes. (model.c) */
void fold_model(session_core *s, const char *name);

/* ---- the index of the log (snapshot.c) */

/* Forgets everything that was folded, except names. */
void fold_forget(session_core *s);
/* Loads node id from the index, as session_load_locked(). A fold cannot start again from
 * the log's lines: when the index is bad, index.failed is set and the caller reloads. */
sessile_status fold_load(session_core *s, sessile_id id, sessile_error *err);
/* The bytes that the index keeps of an entry. Of a memory it keeps as many, so that who
 * asks only what the index proves need not know which log it is. */
#define SESSION_RECORD 44
/* The functions that the log calls for its index. */
log_index_callbacks session_index_callbacks(session_core *s, int fresh);
/* Takes a snapshot, after the last entry of a block. */
void fold_snapshot(session_core *s);
/* Drops the snapshots from block number `blocks` on. */
void fold_snapshots_cut(session_core *s, size_t blocks);
void fold_snapshots_free(session_core *s);

/* ---- usage (usage_sum.c) */

void usage_add(sessile_usage *a, const sessile_usage *b);      /* adds b to a */
void usage_subtract(sessile_usage *a, const sessile_usage *b); /* takes b off a */
/* The sum of its tokens. */
int64_t usage_total(const sessile_usage *u);
/* 1 if there is usage. Absurd numbers are limited, so that no sum overflows. */
int usage_get(json value, sessile_usage *out);
/* The same for a turn's data. *last: of its last request, whose input is the size of the
 * context; *all: of all its requests. */
int usage_of_turn(json data, sessile_usage *last, sessile_usage *all);

/* Forgets the usage of messages that a turn entry could still replace: after a commit
 * none can. */
void fold_forget_parts(session_core *s);

/* ---- waiting (wait.c) */

/* A call that waits for a sync; the argument of the log_stop below. */
typedef struct session_syncing {
    const session_core *s;
    const session_wait *wait;
} session_syncing;
int session_sync_stopped(void *syncing);

/* ---- errors (errors.c) */

/* Each returns the status. The first makes an error about this session. The second adds
 * the session's name to an error that err already holds, and for a damaged log what to do
 * about it. The third says what is wrong with an entry, where, and what to do. */
sessile_status session_fail(const session_core *s, sessile_error *err,
                            sessile_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
sessile_status session_name_error(const session_core *s, sessile_status status,
                                  sessile_error *err);
sessile_status session_fail_damaged(const session_core *s, sessile_id id,
                                    sessile_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The command that salvages a damaged session. */
#define SALVAGE_SIZE 192
void session_salvage_command(const session_core *s, char out[SALVAGE_SIZE]);

/* ---- damage (damage.c) */

/* If the log is damaged: folds the entries past the damage, and a tombstone for each lost
 * entry. From then on the session can only be read. */
sessile_status session_read_damaged(session_core *s, sessile_error *err);
/* A log_stand_in and a log_visit; arg: a fold. */
sessile_status fold_put_tombstone(void *arg, const log_flaw *lost, sessile_id id,
                                  buf *out, sessile_error *err);

/* ---- nodes (node.c) */

/* 1: a message or a branch summary. */
int node_is_message(const node *n);
/* 1: the header or a path entry; a context can be asked for there. */
int session_is_path_entry(const session_core *s, sessile_id id);

/* Ids gathered from an entry towards the root. */
typedef struct id_list {
    sessile_id *at;
    size_t count, capacity;
    uint64_t lost; /* tombstones on the way */
    const allocator *alloc;
} id_list;
void id_list_deinit(id_list *l);
/* Appends the messages of the path from `high` down to `low`, without low (0: down to the
 * root). The path has been loaded. Returns 0; 1: low is not on the path; -1: no memory.
 * If the path has lost entries it is not certain, and 0 is returned instead of 1. */
int path_gather(const session_core *s, sessile_id high, sessile_id low, id_list *out);
/* Pushes message `id` of the path on out. 0 or -1. */
int context_push_node(const session_core *s, sessile_id id, context *out);

/* ---- links to children (child_links.c) */

/* Makes the links; all nodes have been reached. 0 or -1: no memory. */
int child_links_make(session_core *s);
/* If they were made: adds nodes that are new; removes nodes that are gone. */
void child_links_follow(session_core *s);
void child_links_cut(session_core *s);
void child_links_forget(session_core *s);

/* ---- reading (load.c) */

/* Visits entries first to last. As log_read_range(). */
sessile_status session_texts_locked(session_core *s, sessile_id first, sessile_id last,
                                    log_visit visit, void *arg, sessile_error *err);

/* The tag of entry id's line. As log_tag(). */
sessile_status session_tag_locked(session_core *s, sessile_id id,
                                  unsigned char tag[VAULT_TAG], sessile_error *err);
/* Reads entry id into text, which is cleared first. */
sessile_status session_read_entry(session_core *s, sessile_id id, buf *text, entry *out,
                                  sessile_error *err);

/* ---- handles (handle.c, open.c, lock.c) */

/* A new handle with nothing in it. beside: NULL, or the handle that will take over what
 * this one holds: it counts as that one's. NULL: no memory. */
session_core *session_blank(store_core *st, const session_core *beside);
/* Opens its log and folds it. The head may not be in memory: load it. */
sessile_status session_scan(session_core *s, const char *folder, const char *name,
                            int fresh /* the index is not believed */,
                            sessile_error *err);

/* As session_open(), but by the name of the file: for lists. */
sessile_status session_open_place(session_core **out, store_core *st, const char *folder,
                                  const char *name, sessile_error *err);
/* Opens to check (log_inspect()), with the caller's visitor, and changes nothing. *seen
 * is set to the handle before the first visit. Drop *out after an error too; its log is
 * NULL then. */
sessile_status session_inspect(session_core **out, store_core *st, const char *folder,
                               const char *name, log_visit visit, void *arg,
                               session_core **seen, log_tail *tail, sessile_error *err);
/* Closes without syncing. NULL is ignored. */
void session_drop(session_core *s);
/* FORKED in another process than the one that opened the handle. No mutex needed. */
sessile_status session_check_process(const session_core *s, sessile_error *err);

#endif
