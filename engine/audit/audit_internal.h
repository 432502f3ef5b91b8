/* audit_internal.h: an open audit. audit.c writes, users.c knows the users. */
#ifndef AUDIT_AUDIT_INTERNAL_H
#define AUDIT_AUDIT_INTERNAL_H

#include <pthread.h>

#include "audit/audit.h"
#include "audit/lanes.h"

enum { COUNTED_MOST = 64 };

/* Events that are equal, and not all written. */
typedef struct counted {
    uint64_t hash, same; /* same: as of the event */
    buf data;            /* up to the count */
    uint64_t count;
    int64_t since_ms;
    int is_failure; /* the first EQUAL_MOST of a minute were written */
    char user[PSEUDONYM_SIZE];
} counted;

/* A user whose pseudonym is known. */
typedef struct known_user {
    uint64_t hash;    /* of the name */
    size_t forgotten; /* how many were forgotten when it was found out */
    char name[PSEUDONYM_SIZE];
    buf who; /* the data of its `who` entry; empty in a plain store */
} known_user;

struct audit_log {
    store_core *store;
    uint32_t pid;
    pthread_mutex_t mutex;
    audit_lanes lanes;
    counted counts[COUNTED_MOST];
    size_t count_count;
    struct {
        known_user *at;
        size_t count, capacity;
    } users;
};

/* ---- users.c; under the mutex */

/* The user of that name, who gets a secret if there is none. */
sessile_status audit_user_find(audit_log *a, sessile_slice user, known_user **out,
                               sessile_error *err);
/* The user of that pseudonym; NULL: none that is known. */
const known_user *audit_user_of(const audit_log *a, const char *pseudonym);

#endif
