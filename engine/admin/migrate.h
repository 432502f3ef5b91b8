/*
 * migrate.h: a whole store copied into another one.
 *
 *   migrate.c        the order of things; one session after the other
 *   migrate_open.c   both stores, their keys, and how they go together
 *   migrate_scan.c   which sessions there are, and up to where each is taken
 *   migrate_keys.c   keyring and users' secrets, as they stand
 */
#ifndef ADMIN_MIGRATE_H
#define ADMIN_MIGRATE_H

#include "log/transfer.h"
#include "session/store_handle.h"

/* As sessile.h says of the functions of these names; arguments are not NULL. */
sessile_status migrate_begin(sessile_migration **out, const sessile_place *from,
                             const sessile_place *to,
                             const sessile_migrate_options *options, sessile_error *err);
sessile_status migrate_step(sessile_migration *m, sessile_migrate_state *state,
                            sessile_error *err);
void migrate_free(sessile_migration *m);

/* ---- shared by these files */

/* A log of `from`, and what became of it. */
typedef struct migrate_log {
    size_t folder, name; /* in the look's names */
    uint64_t bytes;      /* that are looked at */
    uint64_t size;       /* the same, as this stage began */
    int put;             /* something of it was written by this run: to be read back */
} migrate_log;

/* The logs of a store at some time, by folder and name. */
typedef struct migrate_look {
    const allocator *alloc;
    buf names;
    migrate_log *logs;
    size_t count, capacity;
    uint64_t bytes;
} migrate_look;

struct sessile_migration {
    sessile_store *from,
        *to; /* from->keys NULL: not opened; to->keys NULL: as it stands */
    sessile_migrate_options options;
    int from_lent, to_lent; /* the caller's, who closes them */
    unsigned parts;
    char *part, *final; /* whole: paths, or NULL */
    char *keyring;      /* of `from`, as it was when this began; NULL: it has none */
    size_t keyring_size;
    migrate_look look;
    int looks;
    size_t next;     /* of look.logs */
    uint64_t passed; /* bytes of those before it */
    transfer *at;
    int without_key;      /* the log at hand is carried unopened */
    sessile_error closed; /* why */
    int tries;
    unsigned lost; /* failures of `from`'s in a row */
    char to_folder[NAME_SIZE], to_name[NAME_SIZE], user[NAME_SIZE];
    char failed[2 * NAME_SIZE]; /* "folder/name" */
    int ended;
    sessile_migrate_state state;
};

static inline const char *migrate_folder(const migrate_look *l, size_t i)
{
    return l->names.data + l->logs[i].folder;
}
static inline const char *migrate_name(const migrate_look *l, size_t i)
{
    return l->names.data + l->logs[i].name;
}

/* Opens both, and decides how it is done; puts the keyring, where that is copied. */
sessile_status migrate_open(sessile_migration *m, const sessile_place *from,
                            const sessile_place *to, sessile_error *err);
/* Gives the file or folder its name, `to` being closed. */
sessile_status migrate_publish(sessile_migration *m, sessile_error *err);

void migrate_look_deinit(migrate_look *l);
/* Looks once more; OK when that was enough, else NEEDS. */
sessile_status migrate_look_again(sessile_migration *m, sessile_error *err);

/* The blob `name`, to be freed with give_free(); *out NULL: there is none. */
sessile_status migrate_blob(const store *st, const char *name, char **out, size_t *size,
                            sessile_error *err);
/* The users' secrets, as they are in `from` now. */
sessile_status migrate_users(sessile_migration *m, sessile_error *err);
/* The keyring of `from` may have got new keys since this began: then the copy's gets them
 * too. CONFLICT: it lost some. */
sessile_status migrate_keys_same(sessile_migration *m, sessile_error *err);

#endif
