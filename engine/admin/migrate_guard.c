/*
 * migrate_guard.c: what may be written into a store that stays guarded.
 *
 * A handle of such a store can do nothing before its guard is set, so neither may a copy
 * that opens it by its address.
 */
#include "admin/migrate.h"

#include "guard/access.h"
#include "session/header.h"

static int found_one(void *arg, const char *folder, const char *name)
{
    (void)folder, (void)name;
    *(int *)arg = 1;
    return 1;
}

/* Whether it has a control log: without a key no more can be told. */
static sessile_status has_control(const store *st, int *out, sessile_error *err)
{
    sessile_status status;

    *out = 0;
    status = st->table->list(st->self, CONTROL_FOLDER, found_one, out, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* keys: of another store with the same keyring, used if it has none open. */
static sessile_status stays_guarded(store_core *st, keyring *keys, int *out,
                                    sessile_error *err)
{
    keyring *own = st->keys;
    control *c;
    sessile_status status = has_control(&st->backend, out, err);

    if (status || !*out || !(own || keys))
        return status;
    st->keys = own ? own : keys;
    status = control_open(&c, st, err);
    if (!status)
        status = access_guarded(c, out, NULL, NULL, err);
    control_close(c);
    st->keys = own;
    return status;
}

sessile_status migrate_check_guarded(migration_core *m, int same_keyring,
                                     sessile_error *err)
{
    int to = 0, from = 0;
    sessile_status status;

    if (m->to_lent) /* the door has asked */
        return SESSILE_OK;
    if (same_keyring && !(m->parts & SESSILE_MIGRATE_LOGS)) /* secrets that it had */
        return SESSILE_OK;
    status = stays_guarded(m->to, same_keyring ? m->from->keys : NULL, &to, err);
    if (!status && to && (same_keyring || m->from_lent))
        status = has_control(&m->from->backend, &from, err); /* goes on with its copy */
    if (status || !to || from)
        return status;
    return fail(err, SESSILE_DENIED,
                "the target stays guarded: open it, set its guard, and give the open "
                "store");
}
