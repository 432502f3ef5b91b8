/*
 * read.h: reads the events of all lanes, in the order of their times.
 *
 * As sessile_audit.h says of sessile_audit_open() and what follows. Must never write
 * anything, nor make a secret for a user.
 */
#ifndef AUDIT_READ_H
#define AUDIT_READ_H

#include "audit/parts.h"
#include "sessile_audit.h"

sessile_status audit_read_open(audit_reader_core **out, store_core *st,
                               const sessile_audit_filter *options, sessile_error *err);
sessile_status audit_read_next(audit_reader_core *r, sessile_audit_event *out,
                               sessile_error *err);
sessile_status audit_read_wait(audit_reader_core *r, int timeout_ms, int *changed,
                               sessile_error *err);
/* Appends the cursor. */
sessile_status audit_read_cursor(const audit_reader_core *r, buf *out,
                                 sessile_error *err);
void audit_read_close(audit_reader_core *r);

/* ---- cursors (cursor.c) */

/* For each lane the entry that was returned last. */
typedef struct audit_cursor {
    unsigned char is[LANE_MOST];
    uint32_t part[LANE_MOST];
    sessile_id entry[LANE_MOST];
} audit_cursor;
/* "1 00-000/0000002a 01-003/00000001": a version, then the lanes in order. INVALID. */
sessile_status audit_cursor_parse(audit_cursor *out, sessile_slice text,
                                  sessile_error *err);
void audit_cursor_print(const audit_cursor *c, buf *out);

/* ---- names (who.c) */

/* The `who` entries that were read, and the names that they were opened to. */
typedef struct audit_names {
    const store_core *store;
    map at; /* of hashes of pseudonyms, to places in list */
    struct audit_name {
        char pseudonym[PSEUDONYM_SIZE], secret[NAME_SIZE];
        buf sealed, name;
        int looked; /* name is what was found; empty: nothing opens it */
    } * list;
    size_t count, capacity;
} audit_names;
void audit_names_init(audit_names *n, const store_core *st);
void audit_names_deinit(audit_names *n);
/* Remembers a `who` entry; one that makes no sense is left out. NOMEM. */
sessile_status audit_names_add(audit_names *n, const char *text, size_t size,
                               sessile_error *err);
/* The name of a pseudonym; empty: it is not known, or the user was forgotten. */
sessile_status audit_names_find(audit_names *n, sessile_slice pseudonym,
                                sessile_slice *out, sessile_error *err);
/* Names are opened again when they are next asked for: users may be forgotten. */
void audit_names_reset(audit_names *n);

#endif
