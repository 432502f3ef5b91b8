/*
 * verify.h: whether the audit is what was sealed; proofs of single events.
 *
 * Needs the store's key, to read the records, and of the audit itself only the public key
 * that audit_root() once told. Changes nothing.
 */
#ifndef AUDIT_VERIFY_H
#define AUDIT_VERIFY_H

#include "audit/audit.h"

/* A place that was seen before: what audit_heads() told then. */
typedef struct audit_head {
    uint32_t lane;
    uint64_t epoch;                  /* of the last seal */
    unsigned char hash[MERKLE_HASH]; /* of its text */
} audit_head;

typedef struct audit_verify_options {
    int64_t max_age_ms;        /* of what is not sealed; 0: any */
    int is_copy;               /* 1: the seeds are not here, as in a backup */
    const audit_head *anchors; /* each must be one of the seals */
    size_t anchor_count;
} audit_verify_options;

/* What was found. */
typedef struct audit_verdict {
    int holds; /* 1: everything that was sealed is as it was */
    struct {
        uint64_t lanes, seals, events; /* sealed by this key */
        uint64_t unsealed;             /* events since the last seals: anything may have
                                          been done to them */
        uint64_t other_lanes;          /* that another key vouches for: begun in a copy */
    } counts;
    int64_t unsealed_ms;  /* when the oldest of the unsealed was written; 0: none */
    int64_t sealed_ms;    /* when the newest seal was made; 0: none */
    char where[AUDIT_ID]; /* the first that is wrong; "": a lane as a whole, or nothing */
    char why[300];
} audit_verdict;

/*
 * Verifies all lanes that `root` (64 hex digits) vouches for. What is wrong is in *out,
 * with OK. INVALID: root is no key; NOTFOUND: there is no audit; IO, NOMEM.
 */
sessile_status audit_verify(store_core *st, const char *root,
                            const audit_verify_options *options, audit_verdict *out,
                            sessile_error *err);
/* The last seal of each lane of that root, verified: anchors to keep elsewhere. *count:
 * at most room. DAMAGED: the audit does not verify. */
sessile_status audit_heads(store_core *st, const char *root, audit_head *out, size_t room,
                           size_t *count, sessile_error *err);

/*
 * Appends a proof, JSON on one line: {"event":TEXT,"seal":TEXT,"hashes":[…],"key":HEX}.
 * event and seal are the texts as JSON strings, key is the public key of the seal's
 * epoch. id: of the event. NOTFOUND: there is no such event; SUSPENDED: it is not sealed
 * yet.
 */
sessile_status audit_prove(store_core *st, const char *id, buf *out, sessile_error *err);
/*
 * Checks a proof alone: the event is one that the seal closes, and the seal is signed by
 * the key in the proof. key: set to that key, which is known from the seal before
 * it, or, of the first epoch, is the root. event: appended (may be NULL). DAMAGED.
 */
sessile_status audit_check_proof(const char *proof, size_t size, char key[SEAL_HEX],
                                 buf *event, const allocator *a, sessile_error *err);

#endif
