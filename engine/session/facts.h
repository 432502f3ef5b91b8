/*
 * facts.h: the facts in force: labels, settings, checkpoints, and what a session waits
 * for.
 *
 * A fact is an entry about the session, or about one of its entries, that is not on the
 * path: the newest one of its kind, subject and name holds, whatever the branch, and one
 * that is `off` ends those before it. The fold adds one record for each; who asks looks
 * from the newest to the oldest. Texts stay in the log: a record says where.
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
    sessile_id entry; /* which says so */
    sessile_id about;
    uint32_t name_at, name_size; /* in facts.names */
    uint32_t before;             /* the one of its kind before it: its place + 1; or 0 */
    uint8_t kind, off;
} fact;

typedef struct facts {
    fact *at; /* oldest first */
    size_t count, capacity;
    uint32_t newest[FACT_KINDS]; /* of each kind: its place + 1; or 0 */
    buf names;
} facts;

void facts_init(facts *f, const allocator *a);
void facts_deinit(facts *f);
void facts_clear(facts *f);
/* Back to what it was when it had `count` records and `names` bytes of names. */
void facts_cut(facts *f, size_t count, size_t names);
/* 0 or -1: no memory; nothing was added. */
int facts_add(facts *f, fact_kind kind, sessile_id entry, sessile_id about,
              const char *name, size_t name_size, int off);

/* The facts that an entry states. -1: no memory; some may have been added. */
int facts_of_entry(facts *f, const entry *e);

/* 1 when the newest record is of that entry and puts a pin or takes it away. */
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
/* The same, and of metadata also what was taken back: it may stand against the header. */
int facts_newest(const facts *f, fact_kind kind, const allocator *a, fact **out,
                 size_t *count);

/* A picture of the labels in force, pins aside, in an empty list of its own, ordered by
 * entry, then as they were put. 0 or -1. */
int facts_labels(const facts *f, facts *into);
/* Of such a picture: how many labels an entry has, and the first of them. */
size_t facts_labels_of(const facts *picture, sessile_id about, const fact **out);

#endif
