/* events.h: what is in the audit of a store, for tests. */
#ifndef SUPPORT_EVENTS_H
#define SUPPORT_EVENTS_H

#include "audit/audit.h"

/* The texts of all entries of type `event`, of every lane's first log, oldest first. */
typedef struct events {
    char **texts;
    size_t count, capacity;
} events;
/* Writes what g's audit has counted, and reads. g may be NULL: st is read as it is. */
struct guard;
void events_read(events *out, struct guard *g, store_core *st);
void events_free(events *e);

/* How many of those from `from` on have each of the parts, up to two; NULL: none. */
size_t events_with(const events *e, size_t from, const char *part, const char *more);
/* Fails the test unless there are `count` events, and prints those that there are. */
void assert_events(const events *e, size_t from, size_t count, const char *part,
                   const char *more);
/* The member "operation" of the events of a row, as ["operation":"create"]; row: as
 * operations.def has it, "CREATE_W". */
void event_member(char out[64], const char *row);

#endif
