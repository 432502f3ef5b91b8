/* verify_internal.h: what the files that verify share. verify_entry.c judges the entries
 * of a lane, verify_lane.c a lane, verify.c knows which lanes there are. */
#ifndef AUDIT_VERIFY_INTERNAL_H
#define AUDIT_VERIFY_INTERNAL_H

#include "audit/parts.h"
#include "audit/verify.h"

/* The first logs of a lane were removed (retain.c). `from` is the seal that ended them.
 */
typedef struct lane_cut {
    uint32_t part; /* the first that is left; 0: none was removed */
    uint64_t epoch;
    unsigned char key[SIGN_PUBLIC], before[MERKLE_HASH];
    buf from;
} lane_cut;

/* What the root says of a lane. */
typedef struct vouched {
    int is; /* 1: named by a sealed entry; 2: by one that is not sealed yet */
    unsigned char key[SIGN_PUBLIC];
    lane_cut cuts[2]; /* the newest, and the one before: a log is removed after it is said
                         that it will be */
} vouched;
/* The cut that a lane begins with; NULL: none is known. */
const lane_cut *vouched_cut(const vouched *l, uint32_t part);

/* The logs of a lane before `part` were removed, or will be, and ended with the seal
 * `from`. What makes no sense is left out. */
void verify_note_cut(audit_verifier *v, uint32_t number, uint64_t part, const buf *from);

/* A lane's seed as it was before the log was read: the log has all its seals by then. */
typedef struct seed_before {
    unsigned char *seed;
    uint64_t epoch;
    sessile_error why; /* it cannot be had */
} seed_before;

struct audit_verifier {
    store_core *store;
    sessile_audit_verify_options options;
    sessile_audit_anchor *anchors; /* a copy */
    unsigned char *found;          /* of each: 1 if it was */
    sessile_audit_report report;
    unsigned char root[SIGN_PUBLIC];
    lane_parts parts;
    vouched lanes[LANE_MOST];
    uint32_t root_lane, next_lane; /* that is verified; LANE_MOST: none */
    enum { VERIFY_ROOT, VERIFY_LANES, VERIFY_DONE } stage;

    /* ---- the lane that is read */
    int in_lane, is_root;
    lane now; /* its head and its chain */
    log_t *log;
    seed_before seed;
    unsigned char first_key[SIGN_PUBLIC]; /* as verify_lane_begin() was given it */
    sessile_audit_report before;          /* the lane */
    sessile_error first_wrong; /* of its first log, which may be half removed: it is read
                                  without; code OK: it is read with it */
    sessile_id first_wrong_at;
    int is_cut, is_anchored; /* its first logs are gone; an anchor is one of its seals */
    uint32_t first;          /* the part that it begins with */
    sessile_id at;           /* the entry that is looked at */
    uint64_t events;         /* since the last seal */
    int64_t oldest_ms;       /* of those */
    uint32_t named[LANE_MOST]; /* since the last seal */
    size_t named_count;
    sessile_audit_anchor *heads; /* where to put what was found last of each; or NULL */
    size_t head_room, head_count;
};

/* The first thing that is wrong, if it is the first. */
void verify_wrong(audit_verifier *v, sessile_id at, const char *why);
/* ---- one lane (verify_lane.c) */

/* key: its first. */
sessile_status verify_lane_begin(audit_verifier *v, uint32_t number,
                                 const unsigned char key[SIGN_PUBLIC],
                                 sessile_error *err);
/* Reads on; v->in_lane is 0 when it was read to its end. What is wrong is in the report.
 */
sessile_status verify_lane_step(audit_verifier *v, sessile_error *err);
void verify_lane_leave(audit_verifier *v);

/* A visitor of the log of v->now: judges each entry. DAMAGED: it is not what was sealed.
 */
sessile_status verify_entry(void *verifier, sessile_id id, const char *text, size_t size,
                            sessile_error *err);
/* The lane begins with a seal that was removed: an anchor may be that one. */
void verify_note_anchor(audit_verifier *v, uint32_t lane, uint64_t epoch,
                        const unsigned char hash[MERKLE_HASH]);

#endif
