/*
 * migrate.h: copies a whole store into another one.
 *
 *   migrate.c        the order of the steps; copies one session after the other
 *   migrate_open.c   opens both stores; copy unchanged or seal again?
 *   migrate_guard.c  whether `to` stays guarded
 *   migrate_scan.c   which sessions are copied, and how much of each
 *   migrate_keys.c   copies keyring and users' secrets unchanged
 */
#ifndef ADMIN_MIGRATE_H
#define ADMIN_MIGRATE_H

#include "log/transfer.h"
#include "session/store_handle.h"

/* As sessile.h says of the functions of these names; arguments are not NULL. */
sessile_status migrate_begin(migration_core **out, const sessile_place *from,
                             store_core *from_open, const sessile_place *to,
                             store_core *to_open, const sessile_migrate_options *options,
                             sessile_error *err);
sessile_status migrate_step(migration_core *m, sessile_migrate_state *state,
                            sessile_error *err);
void migrate_free(migration_core *m);

/* ---- shared by these files */

/* A log of `from`. */
typedef struct migrate_log {
    size_t folder, name; /* in the look's names */
    uint64_t bytes;      /* that are copied and compared */
    uint64_t size;       /* the same, when this stage began */
    int put;             /* this run wrote some of it, and must read it back */
} migrate_log;

/* The logs of a store at some time, by folder and name. */
typedef struct migrate_look {
    const allocator *alloc;
    buf names;
    migrate_log *logs;
    size_t count, capacity;
    uint64_t bytes;
} migrate_look;

struct migration_core {
    store_core *from,
        *to; /* from->keys NULL: no key; to->keys NULL: bytes are copied unchanged */
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
    int without_key; /* the present log is copied without its key */
    int misnamed;    /* its name is damaged: it is copied under its right name */
    sessile_error
        closed; /* why from->keys is NULL, or the log was copied without its key */
    int tries;
    unsigned lost; /* successive failures of `from` */
    char to_folder[NAME_SIZE], to_name[NAME_SIZE], user[NAME_SIZE];
    char failed[2 * NAME_SIZE]; /* "folder/name" */
    buf kept;       /* names of the secrets that were kept in `to`, each with its NUL, and
                       why, with its NUL */
    size_t told;    /* bytes of it that were reported */
    int users_done; /* the secrets were copied */
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

/* Opens both stores and decides how to copy. Copies the keyring, if bytes are copied
 * unchanged. */
sessile_status migrate_open(migration_core *m, const sessile_place *from,
                            store_core *from_open, const sessile_place *to,
                            store_core *to_open, sessile_error *err);
/* migrate_guard.c. DENIED: `to` was opened by its address and stays guarded, and it is no
 * copy of `from` that this goes on with. */
sessile_status migrate_check_guarded(migration_core *m, int same_keyring,
                                     sessile_error *err);
/* Gives the file or folder its name; `to` is closed already. */
sessile_status migrate_publish(migration_core *m, sessile_error *err);

void migrate_look_deinit(migrate_look *l);
/* Makes another pass over the store. OK: it was the last; else NEEDS. */
sessile_status migrate_look_again(migration_core *m, sessile_error *err);

/* Gets a blob; free it with host_free(). *out NULL: there is none. */
sessile_status migrate_blob(const store *st, const char *name, char **out, size_t *size,
                            sessile_error *err);
/* Copies the users' secrets as they are in `from` now. Adds those to m->kept that `to`
 * has and `from` should have. */
sessile_status migrate_users(migration_core *m, sessile_error *err);
/* 1: the source has no secret of any user, as a backup whose secrets are kept apart. */
int migrate_has_no_users(const migration_core *m);
/* Adds keys that `from` got since the migration began to the copy. CONFLICT: `from` has
 * lost some. */
sessile_status migrate_keys_same(migration_core *m, sessile_error *err);

#endif
