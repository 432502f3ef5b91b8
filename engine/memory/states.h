/*
 * states.h: which entries of a memory are live, and what became of the others.
 *
 * An entry is written, and verdicts are given about it. Each of these has an id, its
 * place in the log, and they come in the order of ids. What follows is their meaning; how
 * it is kept up to date is the affair of states.c.
 *
 *   - An entry is *pending* if it was written so and not approved since, *deleted* or
 *     *rejected* if a verdict says so and none restored it since.
 *   - It is *in force* unless it is pending or rejected. A deleted entry stays in force:
 *     who deletes the newer editor does not want the older one back.
 *   - Its *stamp* says when it came into force: when it was written, or by the verdict
 *     that approved or restored it last. Of several that one verdict names, the one that
 *     it names later has the later stamp.
 *   - It is *replaced* by every entry in force with a later stamp that names it in
 *     `replaces`, or has the same key.
 *   - It is *erased* if its text says so. An erased entry is in force as any other: what
 *     it replaced stays replaced. No verdict brings it back.
 *   - What is neither pending, deleted, rejected, erased nor replaced is *live*. Whether
 *     a live entry has expired is judged when it is read.
 *
 * So a rejection undoes a replacement, and restoring an entry makes it the newest holder
 * of its key.
 */
#ifndef MEMORY_STATES_H
#define MEMORY_STATES_H

#include "base/map.h"
#include "base/text.h"
#include "sessile_memory.h"

#define STATE_NONE UINT32_MAX /* no entry, no slot */

enum { /* flags of a record */
       RECORD_PENDING = 1,
       RECORD_DELETED = 2,
       RECORD_REJECTED = 4,
       RECORD_APPROVED = 8,
       RECORD_PINNED = 16,
       RECORD_IN_FORCE = 32,
       RECORD_ERASED = 64
};

/* One entry. Indexes are of records, in the order of the log. */
typedef struct memory_record {
    int64_t time_ms, expires_ms; /* expires_ms 0: never */
    sessile_id id;
    uint32_t stamp;
    uint32_t above, below; /* neighbours among those in force with its key, by stamp */
    uint32_t same_key;     /* the one before it in the log with its key */
    uint32_t edges;        /* where its replaces begin */
    sessile_id ended_by;   /* the verdict that deleted or rejected it; 0: none */
    uint32_t takers;       /* how many in force replace it by name */
    uint32_t slot;         /* of its key, or STATE_NONE */
    uint32_t session;      /* which of the sessions it is from first, or STATE_NONE */
    uint16_t importance;   /* of 65,535 */
    uint16_t edge_count;
    uint8_t flags, kind, source;
    uint8_t confirmed; /* how often, at most 255 */
} memory_record;

/* A key. */
typedef struct memory_slot {
    char *key; /* NUL-terminated */
    size_t size;
    uint32_t top;    /* the entry in force with the latest stamp, or STATE_NONE */
    uint32_t newest; /* in the log */
} memory_slot;

/* An entry that began or ended to live, other than by being written. */
typedef struct memory_flip {
    sessile_id at; /* the entry of the log that did it */
    uint32_t record;
} memory_flip;

typedef struct states {
    const allocator *alloc;
    memory_record *records;
    size_t count, capacity;
    uint64_t *live; /* a bit for each */
    size_t live_capacity, live_count;
    uint32_t *edges; /* records that are named in replaces */
    size_t edge_count, edge_capacity;
    memory_slot *slots;
    size_t slot_count, slot_capacity;
    hash_key key; /* of the hashes of keys and sessions; set once, before the first */
    map slot_of;  /* hash of a key: slot */
    uint64_t *sessions;
    size_t session_count, session_capacity;
    map session_of; /* hash of a session: where it is in sessions */
    memory_flip *flips;
    size_t flip_count, flip_capacity;
    sessile_id now;   /* the entry of the log that is being taken in */
    uint32_t stamped; /* the newest stamp */
    int failed;       /* no memory on the way: only deinit helps */
    /* Told of each entry that began or ended to live, other than by being written. May be
     * NULL. */
    void (*changed)(void *arg, uint32_t record, int live);
    void *arg;
} states;

void states_init(states *s, const allocator *a);
void states_deinit(states *s);
/* Room for that many records: 0, or -1: no memory. */
int states_reserve(states *s, size_t count);
/* The bytes that it takes beside itself: records, keys, and what leads to them. */
size_t states_bytes(const states *s);

/* A written entry. */
typedef struct states_entry {
    sessile_id id;
    int64_t time_ms, expires_ms;
    sessile_slice key;
    uint64_t session; /* hash of the first session it is from; 0: none */
    const sessile_id *replaces;
    size_t replace_count; /* at most 65,535 */
    double importance;    /* 0 to 1 */
    int pending, erased;
    uint8_t kind, source;
} states_entry;

/* Takes in an entry, whose record is the last one then. Ids in replaces that are not of
 * earlier entries are ignored. 0, or -1: no memory. */
int states_write(states *s, const states_entry *entry);
/* Takes in a verdict of that id and time about a record. 0, or -1: no memory. */
int states_judge(states *s, sessile_id id, int64_t time_ms, uint32_t record,
                 sessile_memory_verdict_kind to);
/* Whether the verdict would change anything. */
int states_would_change(const states *s, int64_t time_ms, uint32_t record,
                        sessile_memory_verdict_kind to);

static inline int states_is_live(const states *s, uint32_t record)
{
    return (int)(s->live[record / 64] >> record % 64 & 1);
}
/* With expiry judged at that time. */
sessile_memory_state states_of(const states *s, uint32_t record, int64_t now_ms);

/* The record of an entry's id, or STATE_NONE. */
uint32_t states_find(const states *s, sessile_id id);
/* The slot of a key, or STATE_NONE: it was never written. */
uint32_t states_slot(const states *s, sessile_slice key);
/* The live record of a slot, or STATE_NONE: also when its time to live is over. */
uint32_t states_holder(const states *s, uint32_t slot, int64_t now_ms);
/* The records that an entry in force replaces by name. */
const uint32_t *states_edges(const states *s, uint32_t record, size_t *count);
/* The entry in force with the latest stamp that replaces a record, or STATE_NONE. Looks
 * at every record. */
uint32_t states_replaced_by(const states *s, uint32_t record);

/* A bit for each record, into live (room for (count + 63) / 64): live when the log had
 * `before` entries. */
void states_live_before(const states *s, sessile_id before, uint64_t *live);

/*
 * The records that led to one: it, what it replaced by name or by key, what these
 * replaced, and so on. Newest first, into *out (the caller's, of *count; freed with
 * mem_free of *count numbers). 0, or -1: no memory.
 */
int states_history(const states *s, uint32_t record, uint32_t **out, size_t *count);

#endif
