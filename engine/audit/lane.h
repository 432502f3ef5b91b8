/*
 * lane.h: one lane of the audit: its logs, the fold of them, its seals.
 *
 * A lane is a sequence of logs, its parts, in AUDIT_FOLDER: LL-NNN, lane and part in
 * decimal. A part that is larger than LANE_BYTES and ends with a seal is followed by the
 * next. The header of a part says where the chain of seals stands, so that only the last
 * part is read to write on.
 *
 * Each write takes the lock of the log for itself: a lane may be used by several
 * processes in turn. The caller holds a mutex: nothing here is thread-safe.
 */
#ifndef AUDIT_LANE_H
#define AUDIT_LANE_H

#include "base/map.h"
#include "audit/seal.h"
#include "log/log.h"
#include "session/store_handle.h"

#define LANE_MOST   100 /* lanes of a store, also those that are not written any more */
#define LANE_BYTES  (UINT64_C(64) << 20)
#define LANE_NAME   16    /* of a part, with its NUL */
#define LANE_SEALED 65536 /* an epoch is sealed when it has this many entries */

/* What the header of a part says. */
typedef struct lane_head {
    uint32_t lane, part;
    uint32_t root_lane;              /* whose seals vouch for this lane's first key */
    unsigned char root[SIGN_PUBLIC]; /* that lane's first key */
    uint64_t epoch;                  /* where the part begins */
    unsigned char key[SIGN_PUBLIC], before[MERKLE_HASH];
    int64_t created_ms;
} lane_head;
void lane_part_name(uint32_t lane, uint32_t part, char out[LANE_NAME]);
/* The reverse; 0, or -1: no name of a part. */
int lane_part_parse(const char *name, uint32_t *lane, uint32_t *part);
/* Reads the first entry of a part. DAMAGED. */
sessile_status lane_head_read(lane_head *out, const char *text, size_t size,
                              const allocator *a, sessile_error *err);

typedef struct lane {
    store_core *store;
    lane_head head; /* of the part that is open */
    log_t *log;
    seal_chain chain;
    unsigned char vouched[LANE_MOST]; /* of a root: which lanes this part names */
    map who;                          /* hashes of the users that this part names */
    uint64_t bytes_most;
    int stale; /* its fold is not that of the log: it is opened again */
} lane;

/* Opens the last part of a lane. NOTFOUND: there is none, or its seed is not here: it is
 * a copy, and cannot be written on. DAMAGED: the log was cut, or is not the seed's. */
sessile_status lane_open(lane **out, store_core *st, uint32_t number, uint64_t bytes_most,
                         sessile_error *err);
void lane_close(lane *l);
/* Makes a lane, durably: a seed, then the log. root NULL: it is a root. EXISTS: there is
 * a lane or a seed of that number. */
sessile_status lane_make(store_core *st, uint32_t number, const lane_head *root,
                         sessile_error *err);

/* Takes the lane's lock, in timeout_ms, and folds what others wrote; begins the next part
 * if this one is full. BUSY. After OK call lane_end(). */
sessile_status lane_begin(lane *l, int timeout_ms, sessile_error *err);
/* Appends entries with the ids log_count() + i as one write. CONFLICT: in a store without
 * locks somebody else was faster. */
sessile_status lane_append(lane *l, const sessile_slice *texts, size_t count,
                           sessile_error *err);
void lane_end(lane *l);
/* Makes durable what was written. */
sessile_status lane_sync(lane *l, sessile_error *err);

/* 1: there is something to seal. */
int lane_is_open(const lane *l);
/* 1: so much, or for so long, that it is due. */
int lane_is_due(const lane *l, int64_t now_ms);
/*
 * Seals what is there: the seal is written and synced, then the seed takes its next
 * value, durably, and the old one is wiped. It may be interrupted anywhere, and called
 * again. OK also when there is nothing to seal: what is there is durable then.
 */
sessile_status lane_seal(lane *l, int timeout_ms, sessile_error *err);

/* ---- seeds (lane_seed.c) */

/* The name of a lane's blob. */
void lane_seed_name(uint32_t lane, char out[LANE_NAME]);
/* A lane's seed and its epoch, into guarded memory; *blob: as it is kept (host_free()).
 * NOTFOUND: it is not here. SEALED: it does not open. */
sessile_status lane_seed_read(store_core *st, uint32_t number, uint64_t *epoch,
                              unsigned char *seed, char **blob, size_t *size,
                              sessile_error *err);
/* Evolves a seed to the epoch of the lane's chain. DAMAGED: it is of a later one, or of
 * another key: the log was cut. */
sessile_status lane_seed_reach(const lane *l, uint64_t epoch, unsigned char *seed,
                               sessile_error *err);
/* Both. */
sessile_status lane_seed_get(const lane *l, unsigned char *seed, char **blob,
                             size_t *size, sessile_error *err);
/* Puts the seed of that epoch in the place of an earlier one, durably. OK also if
 * somebody else was further. */
sessile_status lane_seed_advance(lane *l, uint64_t epoch, const unsigned char *seed,
                                 char *blob, size_t size, sessile_error *err);
/* Draws a seed and puts it; one that is there and has sealed nothing is as good. EXISTS:
 * there is one that has. */
sessile_status lane_seed_make(store_core *st, uint32_t number,
                              unsigned char key[SIGN_PUBLIC], sessile_error *err);
/* All seeds under the newest master key: before older ones are dropped. */
sessile_status lane_seeds_reseal(store_core *st, sessile_error *err);

#endif
