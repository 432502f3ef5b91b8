/* audit_lanes.h: the lanes that one audit_log has open. For audit.c alone. */
#ifndef AUDIT_LANES_H
#define AUDIT_LANES_H

#include "audit/lane.h"

enum { LANES_AT_ONCE = 16 };

typedef struct audit_lanes {
    store_core *store;
    uint64_t part_bytes;
    uint32_t numbers[LANES_AT_ONCE];
    lane *open[LANES_AT_ONCE];   /* NULL: not yet */
    int unsynced[LANES_AT_ONCE]; /* something was written that was not synced */
    int checked[LANES_AT_ONCE];  /* it is known that the root names it */
    size_t count, current;
    uint32_t next; /* the first number without a lane */
    int found;     /* those that are there were looked for */
} audit_lanes;

/* Takes a lane that is free, or makes one; *at: which. Its lock is held. BUSY: all are in
 * use. */
sessile_status audit_lanes_take(audit_lanes *a, size_t *at, sessile_error *err);
void audit_lanes_close(audit_lanes *a);

#endif
