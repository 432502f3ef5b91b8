/*
 * control.h: the control log: what was decided about who may do what.
 *
 * It is one log of the store, CONTROL_FOLDER/000, sealed with the store's key. It has a
 * header of type control, and facts. A fact has a kind and data, a JSON object that the
 * engine builds:
 *
 *     {"kind":"lock","data":{"user":U,"by":U,"reason":"left"}}
 *
 * What is in force is a fold over all facts of a kind, which control_each() gives one
 * after the other. The log is made by the first fact. Other processes see a fact at most
 * a second later: control_look().
 *
 * Names of users stand in a fact as control_put_user() writes them: sealed with the
 * secret of that user (vault/pseudonym.c), {"id":"u_…","secret":"user-…","name":"…"}.
 * Once a user is forgotten nothing opens the name. In a plain store names stand in clear.
 * In the data that control_each() gives, such a member is the name itself, as
 * header_get_name() reads it, or {"lost":"user-…"}: the user was forgotten
 * (control_is_lost()).
 *
 * All functions may be called by several threads at the same time.
 */
#ifndef GUARD_CONTROL_H
#define GUARD_CONTROL_H

#include "base/error.h"
#include "codec/json.h"
#include "session/store_handle.h"

typedef enum control_kind {
    CONTROL_GUARD, /* the store is guarded, or not any more */
    CONTROL_GRANT,
    CONTROL_KEY,  /* an access key */
    CONTROL_LOCK, /* of a user or a key */
    CONTROL_HOLD,
    CONTROL_ERASURE, /* of a user: begun, done; also that one was forgotten */
    CONTROL_KINDS
} control_kind;
const char *control_kind_name(control_kind kind); /* "grant" */

/* How often the log is looked at, at most. */
enum { CONTROL_LOOK_US = 1000000 };

typedef struct control control;

/* Nothing is made or read yet. st must outlive it. NOMEM. */
sessile_status control_open(control **out, store_core *st, sessile_error *err);
void control_close(control *c); /* NULL is ignored */

/*
 * Appends a fact. data: an object that was built here, as `{"user":…}`. It is durable
 * when sync, and is in the fold at once. *id (may be NULL) names it: its entry, never 0.
 *
 * UNSUPPORTED: the host keeps the records of this store; INVALID: data is no object, or
 * its text is larger than 64 KiB; DAMAGED, BUSY, FULL, IO, NOMEM: nothing was written.
 */
sessile_status control_append(control *c, control_kind kind, const buf *data, int sync,
                              sessile_id *id, sessile_error *err);

/* Appends a user as a member's value. The user gets a secret when there is none. An empty
 * name is "". IO, NOMEM. */
sessile_status control_put_user(control *c, buf *out, sessile_slice user,
                                sessile_error *err);

/*
 * Reads what others appended, if the last look was a second ago or more (monotonic
 * clock). *version (may be NULL) changes when the fold does. DAMAGED, IO, NOMEM: the fold
 * is not to be trusted, and principals are DENIED.
 */
sessile_status control_look(control *c, uint64_t *version, sessile_error *err);
/* The same, without waiting for that second. */
sessile_status control_look_now(control *c, uint64_t *version, sessile_error *err);

/* A fact in the fold. data is borrowed for the call. */
typedef struct control_fact {
    sessile_id id;
    int64_t time_ms;
    control_kind kind;
    json data;
} control_fact;
/* A status other than OK ends the fold with that error. No function of this header may be
 * called inside. */
typedef sessile_status (*control_visit)(void *arg, const control_fact *fact,
                                        sessile_error *err);
/* Visits the facts of a kind in the order in which they were written, as of the last
 * look; it looks first if there was none. Errors as of control_look(), and of visit. */
sessile_status control_each(control *c, control_kind kind, control_visit visit, void *arg,
                            sessile_error *err);

/* 1: a member that is the name of a user who was forgotten. */
int control_is_lost(json member);
/* 1: a member that is the name of that user, or was before the user was forgotten. */
int control_is_user(const store_core *st, json member, sessile_slice user);

/* Seals the control log again under the newest keys, and with it the names in it, whose
 * older secrets are dropped next. Errors as of log_reseal(). */
sessile_status control_reseal(store_core *st, const char *folder, const char *name,
                              int *done, sessile_error *err);

#endif
