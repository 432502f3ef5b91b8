/* migrate.c: the public functions of whole stores copied into others. */
#include "api/api.h"

#include "admin/migrate.h"

sessile_status sessile_migrate_begin(sessile_migration **out, const sessile_place *from,
                                     const sessile_place *to,
                                     const sessile_migrate_options *options,
                                     sessile_error *err)
{
    error_clear(err);
    if (out)
        *out = NULL;
    API_NEED(out);
    API_NEED(from);
    API_NEED(to);
    if ((!from->url && !from->store && !from->backend) ||
        (!to->url && !to->store && !to->backend))
        return api_missing(err, __func__, "url, store and backend of from or to");
    GUARD_BETWEEN(migrate_begin, from->store, to->store);
    GUARD_GOES_ON;
    GUARD_INTENT;
    GUARD_MAKE(out, &allocator_default);
    GUARD_MADE(out, migrate_begin(GUARD_INTO(out), from, GUARD_OWN(from->store), to,
                                  GUARD_OWN(to->store), options, err));
}

sessile_status sessile_migrate_step(sessile_migration *migration,
                                    sessile_migrate_state *state, sessile_error *err)
{
    sessile_migrate_state unused;
    error_clear(err);
    if (!state)
        state = &unused;
    memset(state, 0, sizeof *state);
    API_NEED(migration);
    GUARD_ENTER(migrate_step, migration);
    return GUARD_STEP(migration, migrate_step(core, state, err));
}

void sessile_migrate_free(sessile_migration *migration)
{
    if (!migration)
        return;
    GUARD_CLOSE(migration);
    migrate_free(core);
}
