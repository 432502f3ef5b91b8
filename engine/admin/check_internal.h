/*
 * check_internal.h: shared by the files of a check.
 *
 *   check.c           one step for each log
 *   check_log.c       checks and salvages one log
 *   check_beside.c    checks the files beside the logs
 *   check_blobs.c     checks the blobs of the store, the users' secrets among them
 *   check_findings.c  keeps the findings of a step
 */
#ifndef ADMIN_CHECK_INTERNAL_H
#define ADMIN_CHECK_INTERNAL_H

#include "admin/check.h"
#include "memory/fold.h"
#include "session/fold.h"
#include "session/compaction.h"

#define WHAT_SIZE 640
#define FILE_SIZE (2 * NAME_SIZE + 64)

typedef struct check_row {
    sessile_finding f;
    char what[WHAT_SIZE], next[SALVAGE_SIZE], file[FILE_SIZE];
} check_row;

typedef struct check_place {
    char folder[NAME_SIZE], name[NAME_SIZE];
} check_place;

/* An entry that the fold refused, and what stands in for it. */
typedef struct check_refused {
    sessile_id id;
    size_t at, size; /* of texts */
} check_refused;

struct check_core {
    store_core *store;
    int salvage, all;
    check_place *places;
    size_t count, capacity, next;
    /* of the step */
    session_core *s;
    fold fold;
    memory_fold memory; /* of a memory's log: what its index should say */
    int memory_failed;  /* it refused an entry: there is nothing to compare with */
    check_refused *refused;
    size_t refused_count, refused_capacity;
    buf texts;
    sessile_error first; /* what was refused first */
    check_row *rows;
    size_t row_count, row_capacity;
    sessile_finding *findings;
    size_t finding_capacity;
    char file[FILE_SIZE];
    sessile_status failed; /* of a visit */
};

/* ---- check_findings.c */

/* Adds a finding about c->file, with a sentence as for printf(). NULL: no memory, and
 * c->failed is set. */
check_row *check_add(check_core *c, sessile_severity severity, sessile_status status,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* An error as a finding. */
void check_add_error(check_core *c, const sessile_error *err);
/* Puts the command that salvages the present session into r->next. */
void check_suggest_salvage(check_core *c, check_row *r);
/* 1: its logs are files, which can be torn; a database's are rows. */
int check_is_of_files(const check_core *c);
void check_file_name(const check_core *c, const char *folder, const char *name,
                     char out[FILE_SIZE]);
/* Makes room in c->findings for all rows and one more. 0, or -1 and c->failed is set. */
int check_reserve(check_core *c);

/* ---- check_log.c */

sessile_status check_one_log(check_core *c, const check_place *p, sessile_checked *out,
                             sessile_error *err);

/* ---- check_beside.c */

sessile_status check_beside(check_core *c, sessile_error *err);

/* ---- check_blobs.c */

sessile_status check_blobs(check_core *c, sessile_error *err);

#endif
