/* retain.h: removes what is old from the audit, whole logs from the front. */
#ifndef AUDIT_RETAIN_H
#define AUDIT_RETAIN_H

#include "audit/audit.h"

typedef struct audit_retention {
    int64_t before_ms;
    int dry_run;         /* 1: removes nothing, and counts */
    store_core *guarded; /* whose holds are asked, beside those of the store that keeps
                            the audit; or NULL */
} audit_retention;
typedef struct audit_retained {
    uint64_t removed; /* logs, or that would be */
    uint64_t held;    /* logs that are old, and that a hold keeps */
} audit_retained;

/*
 * Removes the first logs of each lane that hold only events from before before_ms; the
 * last log of a lane stays, and so does every log while any hold is in force: there may
 * be events in it about what is held. The audit is verified first, and nothing is removed
 * when it does not hold. Before a log goes, an event `audit_retain` is written and
 * sealed. It names the log and the seal that ended it: the anchor with which verifying
 * begins from then on. It may be interrupted anywhere, and called again.
 *
 * DAMAGED: the audit does not hold; NOTFOUND: there is none, or it is a copy, whose lanes
 * cannot be written on; UNSUPPORTED: the store cannot remove logs; BUSY, IO.
 */
sessile_status audit_retain(audit_log *a, store_core *st, const audit_retention *options,
                            audit_retained *out, sessile_error *err);
/* Seals every lane of the store that has a seed here. NOTFOUND: there is none. */
sessile_status audit_seal_lanes(store_core *st, sessile_error *err);
/* The key that vouches for the lanes that are written here, or else for the first lane.
 * NOTFOUND: there is no audit. Changes nothing. */
sessile_status audit_root_find(store_core *st, char out[SEAL_HEX], sessile_error *err);

#endif
