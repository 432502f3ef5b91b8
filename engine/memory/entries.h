/* entries.h: what the entries of a memory's log say. */
#ifndef MEMORY_ENTRIES_H
#define MEMORY_ENTRIES_H

#include "base/text.h"
#include "codec/entry.h"
#include "memory/kinds.h"

/* Data of type memory. Values are spans of the entry's text; JSON_NONE: not there. */
typedef struct memory_entry {
    sessile_memory_kind kind;
    sessile_memory_source source;
    double importance;      /* 0 to 1 */
    int64_t expires_ms;     /* 0: never */
    int64_t from_ms, to_ms; /* when it holds; INT64_MIN, INT64_MAX: not said */
    int pending;
    int erased;            /* it has no value any more */
    json key, value, also; /* strings */
    json from;             /* array of {session, agent, first, last} */
    json replaces;         /* array of ids */
    json metadata, policy; /* objects */
} memory_entry;
/* DAMAGED: e, of type memory, has no value, or a member of another type. */
sessile_status memory_entry_read(memory_entry *out, const entry *e, sessile_error *err);

/* An array of ids into ids (room for `most`); others are left out. Returns how many. */
size_t memory_ids(json array, sessile_id *ids, size_t most);
/* The hash of a session that an entry is from: its agent and its id. The key is that of
 * the memory (states.key). */
uint64_t memory_session_hash(const hash_key *key, sessile_slice agent,
                             sessile_slice session);
/* The hash of the n-th (from 0) of an entry's `from`: 1, or 0: there are fewer, or -1: no
 * memory. */
int memory_from_hash(const memory_entry *m, size_t n, const hash_key *key,
                     const allocator *a, uint64_t *hash);

#endif
