/* compare_internal.h: what the files of compare.h share. */
#ifndef ADMIN_COMPARE_INTERNAL_H
#define ADMIN_COMPARE_INTERNAL_H

#include "admin/compare.h"
#include "admin/places.h"
#include "audit/audit.h"
#include "audit/read.h"
#include "base/map.h"
#include "log/log.h"
#include "session/header.h"

typedef struct compare_span {
    sessile_id first, last;
} compare_span;

/* What the events say of one session, under one of the names that it has in events. */
typedef struct compare_told {
    compare_span *list; /* entries that they name: in order, none next to another */
    size_t count, capacity;
    uint64_t names;  /* compare_names() */
    sessile_id most; /* the last entry that a success names */
    char event[AUDIT_ID];
    int64_t time_ms; /* of that event; of COMPARE_REMOVED: when it was */
    unsigned char has_most, is_there;
} compare_told;

/* What the events say of sessions whose names have this remainder: all of them, as long
 * as that fits into memory. */
typedef struct compare_part {
    uint64_t remainder, modulus;
} compare_part;

/* A time at which the guard was set or went off. */
typedef struct compare_turn {
    int64_t time_ms;
    int on;
} compare_turn;

struct compare {
    store_core *of, *audit;
    audit_reader_core *reader;
    compare_turn *turns;
    size_t turn_count, turn_capacity;
    int64_t since_ms;   /* what was done before is not in the audit */
    int64_t moved_ms;   /* when a migration last brought sessions; 0: never */
    int64_t removed_ms; /* when sessions were last removed that events do not name */
    places logs;
    size_t next;            /* of logs */
    uint64_t session_count; /* among them */

    /* ---- the part that is looked at */
    compare_part parts[64]; /* what is left; the last one is it */
    size_t part_count;
    enum { COMPARE_EVENTS, COMPARE_LOGS } stage;
    map known; /* of hashes of names, to told */
    compare_told *told;
    size_t told_count, told_capacity, span_count;
    size_t told_most, spans_most; /* that are in memory at a time */

    /* ---- the log that is read */
    log_t *log;
    header names;
    char owner[PSEUDONYM_SIZE];
    uint32_t is[66]; /* in told: its names in events */
    size_t is_count;
    int waited;     /* for calls that were going on */
    int is_brought; /* by a migration, maybe */
    sessile_audit_report *report;
};

/* 0: it is of another part, or from a time that is not compared. */
int compare_is_of_part(const compare *c, uint64_t hash);
int compare_is_guarded(const compare *c, int64_t time_ms);
void compare_lost(compare *c, const sessile_audit_lost *lost);

/* ---- compare_events.c */

/* The names as events have them, as one number. agent, session: JSON; who: "", or as
 * events name a user or an owner. */
uint64_t compare_names(json agent, json session);
uint64_t compare_key(uint64_t names, const char *who, size_t size);
/* Whose names stand for those of everybody: when a session of that agent and id was
 * removed, or was about to be. */
#define COMPARE_REMOVED "*"
/* 1: what an event said then may have been removed since. */
int compare_may_be_gone(const compare *c, const compare_told *t);
/* Reads events. *more 0: there are no more now. LIMIT: they do not fit into memory. */
sessile_status compare_read_events(compare *c, size_t most, int *more,
                                   sessile_error *err);
void compare_forget(compare *c);

/* ---- compare_logs.c */

/* Reads on in the present log, or in the next. *more 0: all were read. */
sessile_status compare_read_logs(compare *c, int *more, sessile_error *err);
void compare_leave_log(compare *c);

#endif
