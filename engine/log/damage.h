/*
 * damage.h: the record of a log's damage: damage.c keeps it, salvage.c fills it. Only
 * files of this folder include it.
 */
#ifndef LOG_DAMAGE_H
#define LOG_DAMAGE_H

#include "log/internal.h"

/* Where entry first + i was found. size 0: it was not found. */
typedef struct place {
    uint64_t at;
    uint32_t size; /* without its newline */
    unsigned char previous[VAULT_TAG], tag[VAULT_TAG];
} place;

typedef struct stand_in {
    sessile_id id;
    size_t at, size; /* of texts */
} stand_in;

typedef struct log_damage_record {
    sessile_error why;
    uint64_t first; /* the first id after the scanned entries */
    uint64_t count; /* entries past the damage, once all were visited */
    int was_read;   /* all were visited */
    place *places;
    size_t place_count, place_capacity;
    uint64_t ended;        /* ids below it are in a finished write, or named by one */
    uint64_t most;         /* higher ids are not believed, in lines that open */
    uint64_t most_claimed; /* the same, in lines that do not open */
    uint64_t size;         /* of the log in bytes, when it was read */
    uint64_t behind;       /* where the newest line that opened ends */
    uint64_t newest;       /* its id plus 1 */
    log_flaw bytes;        /* the bytes being read that are not a line */
    stand_in *covers;      /* by id */
    size_t cover_count, cover_capacity;
    buf texts;
    log_flaw *flaws;
    size_t flaw_count, flaw_capacity;
    uint64_t flaws_left, lost;
} log_damage_record;

/* Adds a flaw to the list; past the limit it is only counted. NOMEM. */
sessile_status damage_add_flaw(log_t *log, log_flaw flaw, sessile_error *err);
/* The first stand-in whose id is not below id. */
size_t damage_stand_in_at(const log_damage_record *d, uint64_t id);

#endif
