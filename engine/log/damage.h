/*
 * damage.h: the record of a handle's damage, shared by damage.c, which keeps it, and
 * salvage.c, which fills it. Inside the log floor only.
 */
#ifndef LOG_DAMAGE_H
#define LOG_DAMAGE_H

#include "log/internal.h"

/* Where entry first + i was found. size 0: nowhere. */
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
    uint64_t first; /* the first id that the scan did not show */
    uint64_t count; /* places that hold, once all were shown */
    int was_read;   /* they were */
    place *places;
    size_t place_count, place_capacity;
    uint64_t ended;        /* ids below it are of a finished write, or named by one */
    uint64_t most;         /* ids from here on are not believed of lines that open */
    uint64_t most_claimed; /* nor from here on of lines that do not */
    uint64_t size;         /* of the log, in bytes, when it was read */
    uint64_t behind;       /* where the newest line that opened ends */
    uint64_t newest;       /* its id plus 1 */
    log_flaw bytes;        /* the stretch of no line that is just being passed */
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
size_t damage_cover_at(const log_damage_record *d, uint64_t id);

#endif
