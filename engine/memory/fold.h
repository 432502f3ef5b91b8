/*
 * fold.h: a memory as its log says it is: states, words, vectors, consent, how far
 * sessions were heard.
 *
 * memory_fold_visit() takes in entry after entry, as the visitor of a scan. Values stay
 * in the log. A record of `states` and an entry of `postings` have the same index.
 */
#ifndef MEMORY_FOLD_H
#define MEMORY_FOLD_H

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
    sessile_id count; /* entries taken in */
    int failed;       /* an allocation failed: it has to be rebuilt */
    term_list terms[FIELDS];
    buf scratch;
} memory_fold;

void memory_fold_init(memory_fold *f, const allocator *a);
void memory_fold_deinit(memory_fold *f);
/* A log_visit; arg is the fold. DAMAGED, NOMEM. After NOMEM nothing but deinit helps. */
sessile_status memory_fold_visit(void *arg, sessile_id id, const char *text, size_t size,
                                 sessile_error *err);

/* The vectors that a search without a choice uses: of the models that have a vector for
 * every live entry the newest, else the one that has most. NULL: there are none. */
const memory_model *memory_fold_model(const memory_fold *f);
/* By its name; NULL: there is none. */
const memory_model *memory_fold_model_of(const memory_fold *f, sessile_slice name);

/* How far a session was heard; 0: never. */
sessile_id memory_fold_heard(const memory_fold *f, uint64_t session_and_nonce);
/* Of the strings as they stand in JSON. */
uint64_t memory_heard_hash(const memory_fold *f, json session, json nonce);

#endif
