/*
 * facts.h: the facts in force: labels, settings, checkpoints, suspensions and pending
 * runs.
 *
 * A fact is an entry about the session, or about one of its entries, that is not on the
 * path. On every branch the newest fact of a kind, subject and name is in force; a fact
 * that is `off` cancels the older ones. The fold adds one record for each fact, and a
 * look-up goes from the newest to the oldest. Texts stay in the log: a record has their
 * place.
 *
 *   FACT_LABEL       about: the entry; name: the label ("pinned" is the pin)
 *   FACT_METADATA    about: 0; name: a key of the entry's data, or, of "settings" and
 *                    "metadata", which are objects, "settings.<key>"
 *   FACT_CHECKPOINT  about: the checkpoint's own entry; name: its name, or ""
 *   FACT_SUSPEND     about: 0; a suspension
 *   FACT_PENDING_RUN        about: the pending run's own entry
 */
#ifndef SESSION_FACTS_H
#define SESSION_FACTS_H

#include "base/alloc.h"
#include "base/buf.h"
#include "codec/entry.h"

typedef enum fact_kind {
    FACT_LABEL = 1,
    FACT_METADATA,
    FACT_CHECKPOINT,
    FACT_SUSPEND,
    FACT_PENDING_RUN,
    FACT_KINDS
} fact_kind;

#define FACT_PINNED "pinned"

/* One record: at most 24 bytes. */
typedef struct fact {
    sessile_id entry; /* the fact itself */
    sessile_id about;
    uint32_t name_at, name_size; /* in facts.names */
    uint32_t before;             /* the previous one of its kind: its index + 1; or 0 */
    uint8_t kind, off;
} fact;

typedef struct facts {
    fact *at; /* oldest first */
    size_t count, capacity;
    uint32_t newest[FACT_KINDS]; /* of each kind: its index + 1; or 0 */
    buf names;
} facts;

void facts_init(facts *f, const allocator *a);
void facts_deinit(facts *f);
void facts_clear(facts *f);
/* Removes the newest records: `count` records and `names` bytes of names are left. */
void facts_cut(facts *f, size_t count, size_t names);
/* 0 or -1: no memory; nothing was added. */
int facts_add(facts *f, fact_kind kind, sessile_id entry, sessile_id about,
              const char *name, size_t name_size, int off);

/* The facts that an entry states. -1: no memory; some may have been added. */
int facts_of_entry(facts *f, const entry *e);

/* 1 if the newest record is of that entry and adds or removes a pin. */
int facts_changed_pin(const facts *f, sessile_id entry);

/* The fact in force, or NULL. Borrowed until the next change. */
const fact *facts_find(const facts *f, fact_kind kind, sessile_id about, const char *name,
                       size_t name_size);
const char *fact_name(const facts *f, const fact *one);
int fact_is_named(const facts *f, const fact *one, const char *name, size_t size);
/* Facts of a kind (0: of any) that are in force, ordered by about, then by entry, in a
 * new array of *count (free with mem_free, *count * sizeof; NULL when there are none).
 * 0 or -1. */
int facts_in_force(const facts *f, fact_kind kind, const allocator *a, fact **out,
                   size_t *count);
/* The same, and also metadata that was removed, because it may override the header. */
int facts_newest(const facts *f, fact_kind kind, const allocator *a, fact **out,
                 size_t *count);

/* Copies the labels in force, without pins, into an empty list, ordered by entry, then by
 * time. 0 or -1. */
int facts_labels(const facts *f, facts *into);
/* The number of labels of an entry in such a copy, and the first of them. */
size_t facts_labels_of(const facts *labels, sessile_id about, const fact **out);

#endif
