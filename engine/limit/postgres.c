/*
 * limit_postgres.c: windows in a table of a PostgreSQL store, by the server's clock.
 *
 * store/postgres/limits.c has the table and asks the server; here is only the place.
 */
#include "limit/places.h"
#include "store/postgres/limits.h"

typedef struct postgres_place {
    limit_place place;
    allocator alloc;
    store backend; /* borrowed */
} postgres_place;

static limit_answer postgres_take(limit_place *self, limit_ask *ask, sessile_error *why)
{
    postgres_place *p = (postgres_place *)self;
    if (store_postgres_limit(&p->backend, ask->key, ask->rate.count, ask->rate.period_ms,
                             ask->look, &ask->retry_ms, why))
        return LIMIT_AWAY;
    return ask->retry_ms ? LIMIT_FULL : LIMIT_COUNTED;
}

static void postgres_undo(limit_place *self, const limit_ask *ask)
{
    limit_ask back = *ask;
    sessile_error why;
    back.look = LIMIT_BACK;
    (void)postgres_take(self, &back, &why);
}

static void postgres_free(limit_place *self)
{
    postgres_place *p = (postgres_place *)self;
    allocator a = p->alloc;
    mem_free(&a, p, sizeof *p);
}

sessile_status limit_postgres_open(limit_place **out, const store *backend,
                                   const allocator *a, sessile_error *err)
{
    *out = NULL;
    postgres_place *p = mem_zalloc(a, sizeof *p);
    if (!p)
        return fail_nomem(err);
    p->place = (limit_place){postgres_take, postgres_undo, postgres_free};
    p->alloc = *a;
    p->backend = *backend;
    *out = &p->place;
    return SESSILE_OK;
}
