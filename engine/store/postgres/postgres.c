/*
 * postgres.c: a store in a PostgreSQL database.
 *
 * Owns the store itself and its table of functions; postgres.h says which file does what,
 * README.md the tables and the parameters of the URL. A log is a row of `sessions`, a
 * record is a row of `entries`; everything that changes them is one transaction that
 * names the state it starts from. So there are no locks here that could be left behind.
 */
#include "store/postgres/postgres.h"
#include "store/postgres/open.h"

#include <string.h>

static void pg_free(void *self)
{
    pg_store *ps = self;
    if (!ps)
        return;
    pg_watch_free(ps);
    pg_pool_free(ps);
    keep_deinit(&ps->keep);
    pg_texts_free(&ps->texts, &ps->alloc);
    pg_url_free(&ps->url, &ps->lib, &ps->alloc);
    pg_lib_close(&ps->lib);
    pthread_cond_destroy(&ps->freed);
    pthread_cond_destroy(&ps->watched);
    pthread_mutex_destroy(&ps->mutex);
    pthread_mutex_destroy(&ps->watch_mutex);
    allocator a = ps->alloc;
    mem_free(&a, ps, sizeof *ps);
}

/* What handles keep that do not share it. */
#define KEEP_UNSHARED ((size_t)32 << 20)

sessile_status pg_clock(void *self, int64_t *now_ms, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_CLOCK);
    pg_results r;
    *now_ms = 0;
    sessile_status status = pg_ask(&call, &s, 1, "the time", &r, err);
    if (!status) {
        *now_ms = pg_time_ns(ps, r.of[0], 0, 0) / 1000000;
        pg_results_free(ps, &r);
    }
    return status;
}

static const sessile_backend table = {
    STORE_TABLE(pg),
    .capabilities = SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CACHES |
                    SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_LIST_CACHE,
    .name = "postgres",
    .free = pg_free,
    .watch = pg_watch,
    .set_timeout = pg_set_timeout,
    .fence = pg_fence,
    .opened = pg_opened,
    .reread = pg_reread,
    .clock = pg_clock,
};

/* Sees whether the server is there, lets us in, and has tables that we know. */
static sessile_status probe_server(pg_store *ps, sessile_error *err)
{
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    int version;
    call.first = 1;
    return pg_schema_version(&call, &version, err);
}

sessile_status store_postgres_open(store *out, const char *url, int timeout_ms,
                                   const os_table *os, const allocator *a,
                                   sessile_error *err)
{
    out->table = NULL;
    out->self = NULL;
    pg_store *ps = mem_zalloc(a, sizeof *ps);
    if (!ps)
        return fail_nomem(err);
    ps->os = os;
    ps->alloc = *a;
    ps->pid = os->pid(os->ud);
    ps->timeout_ms = timeout_ms;
    sessile_status status = pg_lib_open(&ps->lib, err);
    if (!status)
        status = pg_url_parse(&ps->url, &ps->lib, url, os, a, err);
    if (!status && pg_texts_fill(&ps->texts, ps->url.schema, a) != 0) {
        pg_url_free(&ps->url, &ps->lib, a);
        status = fail_nomem(err);
    }
    if (status) {
        pg_lib_close(&ps->lib);
        mem_free(a, ps, sizeof *ps);
        return status;
    }
    pthread_mutex_init(&ps->mutex, NULL);
    pthread_mutex_init(&ps->watch_mutex, NULL);
    keep_init(&ps->keep, os, a, ps->url.keep > 0 ? ps->url.keep : KEEP_UNSHARED,
              ps->url.keep > 0);
    os_cond_init(&ps->freed);
    os_cond_init(&ps->watched);
    status = probe_server(ps, err);
    if (status) {
        pg_free(ps);
        return status;
    }
    out->table = &table;
    out->self = ps;
    return SESSILE_OK;
}

void store_postgres_unsynced(store *st)
{
    pg_store *ps = st->self;
    ps->unsynced = !ps->url.keep_commit;
}
