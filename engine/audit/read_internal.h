/* read_internal.h: what the two files of a reader share. read_lane.c reads one lane,
 * read.c all of them. */
#ifndef AUDIT_READ_INTERNAL_H
#define AUDIT_READ_INTERNAL_H

#include "audit/read.h"

enum { PSEUDONYMS = 64 }; /* of a user, at most */

/* An entry that was read and not returned yet. */
typedef struct waiting {
    sessile_id id;
    int64_t time_ms;
    size_t at, size; /* in texts */
} waiting;

typedef struct lane_reader {
    audit_reader_core *of;
    uint32_t lane, part, last; /* last: the newest part that is known */
    log_t *log;
    sessile_id pass; /* entries before this were returned, or shown in an earlier log */
    buf texts;
    waiting *list;
    size_t count, capacity, next;
    uint64_t seen_bytes; /* of the log, when its end was read */
    int at_end;          /* there was no more when it was last looked at */
    int broken;          /* the log cannot be read on: only a next one is looked at */
    sessile_error why;   /* to be told when what was read before it was returned */
} lane_reader;

struct audit_reader_core {
    store_core *store;
    sessile_audit_filter filter; /* its texts are in `kept` */
    buf kept;
    char pseudonyms[PSEUDONYMS][PSEUDONYM_SIZE];
    size_t pseudonym_count;
    char owner[PSEUDONYM_SIZE]; /* filter.about, as an owner, and as a user */
    char about[PSEUDONYMS][PSEUDONYM_SIZE];
    size_t about_count;
    lane_reader *lanes[LANE_MOST];
    audit_cursor cursor; /* of the entries that were taken; before: where it began */
    audit_names names;
    uint64_t returned;
    int ended;    /* the last call found nothing */
    buf text, id; /* of the event that was returned last; its texts, decoded */
};

/* ---- read_lane.c */

void lane_reader_free(lane_reader *l);
/* Goes on with the beginning of that part. */
void lane_reader_part(lane_reader *l, uint32_t part);
/* Reads on until an event waits, or this was the end for now. DAMAGED, TRUNCATED, SEALED:
 * a log cannot be read on; the next call passes it over. */
sessile_status lane_reader_fill(lane_reader *l, sessile_error *err);

#endif
