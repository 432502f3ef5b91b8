/* parts.h: which logs of the audit there are. */
#ifndef AUDIT_PARTS_H
#define AUDIT_PARTS_H

#include "audit/lane.h"

/* The parts of each lane. Those between the first and the last should all be there. */
typedef struct lane_parts {
    unsigned char there[LANE_MOST];
    uint32_t first[LANE_MOST], last[LANE_MOST];
    uint32_t lanes;                /* how many there are */
    unsigned char half[LANE_MOST]; /* the part before the first is still there, as
                                      somebody left it who was killed while removing it */
} lane_parts;

/* Lists them; lanes is 0 when there is no audit. */
sessile_status lane_parts_find(lane_parts *out, store_core *st, sessile_error *err);
/* A removal overwrites the header before the log goes. So first parts with a DAMAGED
 * header are skipped if other parts follow. The root lane says whether they may be
 * missing. */
sessile_status lane_parts_skip_half(lane_parts *p, store_core *st, sessile_error *err);
/* 1: that part is there; 0; -1: err. */
int lane_part_exists(store_core *st, uint32_t lane, uint32_t part, sessile_error *err);
/* Reads the header of a part, and nothing else of it. */
sessile_status lane_part_peek(lane_head *out, store_core *st, uint32_t lane,
                              uint32_t part, sessile_error *err);

#endif
