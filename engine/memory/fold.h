/*
 * fold.h: a memory as its log says it is: states, words, vectors, consent, how far
 * sessions were heard.
 *
 * memory_fold_visit() takes in entry after entry, as the visitor of a scan. Values stay
 * in the log. A record of `states` and an entry of `postings` have the same index.
 */
#ifndef MEMORY_FOLD_H
#define MEMORY_FOLD_H

#include "log/log.h"
#include "memory/blocks.h"
#include "memory/entries.h"
#include "memory/rank.h"
#include "memory/states.h"
#include "memory/terms.h"
#include "session/header.h"

/* The vectors of one model. */
typedef struct memory_model {
    char *name; /* NUL-terminated */
    size_t name_size;
    vectors vectors;
    sessile_id newest; /* its newest entry in the log */
} memory_model;

typedef struct memory_fold {
    const allocator *alloc;
    header header;
    int has_header;
    words *words;
    states states;
    postings postings;
    memory_model *models;
    size_t model_count, model_capacity;
    map heard; /* hash of a session and its nonce: the last entry that was read */
    sessile_id consent; /* the newest entry about it; 0: none */
    int consented;
    uint64_t verdicts, refusals;
    blocks blocks;       /* for the index */
    log_t **log;         /* whose index it is; NULL: none */
    struct {             /* while it is restored from the index */
        uint64_t blocks; /* taken so far */
        buf block;       /* one that cannot be taken before the log knows where it is */
    } restoring;
    sessile_id count; /* entries taken in */
    int failed;       /* an allocation failed: it has to be rebuilt */
    term_list terms[FIELDS];
    buf scratch, key;
} memory_fold;

void memory_fold_init(memory_fold *f, const allocator *a);
void memory_fold_deinit(memory_fold *f);
/* Builds blocks of an index from now on. Call it before the first entry. *log is the log
 * that the blocks are read from, and must be set by then. */
void memory_fold_index(memory_fold *f, log_t **log);
/* Forgets all entries. The fold keeps its index if it had one. */
void memory_fold_forget(memory_fold *f);
/* The callbacks that a log calls for its index (index.c). fresh: an index that exists is
 * not used. */
log_index_callbacks memory_index_callbacks(memory_fold *f, int fresh);
/* Takes in one entry that is in the index already; else as memory_fold_visit(). */
sessile_status memory_fold_take(memory_fold *f, sessile_id id, const char *text,
                                size_t size, sessile_error *err);
/* The vectors of a model, made if need be; NULL: no memory. */
memory_model *memory_fold_make_model(memory_fold *f, sessile_slice name, size_t dims);
/* A log_visit; arg is the fold. DAMAGED, NOMEM. After NOMEM nothing but deinit helps. */
sessile_status memory_fold_visit(void *arg, sessile_id id, const char *text, size_t size,
                                 sessile_error *err);

/* The vectors that a search without a choice uses: of the models that have a vector for
 * every live entry the newest, else the one that has most. NULL: there are none. */
const memory_model *memory_fold_model(const memory_fold *f);
/* By its name: the one of these dimensions, or with 0 the newest; NULL: there is none. */
const memory_model *memory_fold_model_of(const memory_fold *f, sessile_slice name,
                                         size_t dims);

/* The bytes that it takes. */
size_t memory_fold_bytes(const memory_fold *f);

/* How far a session was heard; 0: never. */
sessile_id memory_fold_heard(const memory_fold *f, uint64_t session_and_nonce);
/* Of the strings as they stand in JSON. */
uint64_t memory_heard_hash(const memory_fold *f, json session, json nonce);

#endif
