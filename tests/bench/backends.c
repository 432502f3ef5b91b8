/*
 * backends.c: which backends are there, their stores, and the table.
 */
#include "bench/backends.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

backend backends[BACKENDS] = {
    {.name = "file", .bare = &bare_file},
    {.name = "SQLite", .bare = &bare_sqlite},
    {.name = "PostgreSQL", .bare = &bare_postgres},
};

/* The server of tests/support/postgres, or another that may be written to. */
static const char *server_url(void)
{
    const char *url = getenv("SESSILE_TEST_POSTGRES");
    return url && *url ? url : NULL;
}

void url_add(char *out, size_t room, const char *url, const char *name, const char *value)
{
    int n =
        snprintf(out, room, "%s%c%s=%s", url, strchr(url, '?') ? '&' : '?', name, value);
    if (n < 0 || (size_t)n >= room)
        broken("a URL that long");
}

void backend_schema(char out[128], const char *name)
{
    snprintf(out, 128, "bench_%ld_%s", (long)getpid(), name);
    for (char *c = out; *c; c++)
        if (*c == '-')
            *c = '_';
}

static void store_url(char out[4200], const backend *b, const char *name)
{
    char schema[128];
    if (b == &backends[FILES_BACKEND]) {
        snprintf(out, 4200, "file:%s/%s", bench_folder, name);
    } else if (b == &backends[SQLITE_BACKEND]) {
        snprintf(out, 4200, "sqlite:%s/%s.sqlite", bench_folder, name);
    } else {
        backend_schema(schema, name);
        url_add(out, 4200, server_url(), "schema", schema);
    }
}

static sessile_status try_store(sessile_store **out, const backend *b, const char *name,
                                sessile_key_source source, sessile_durability durability,
                                sessile_error *err)
{
    sessile_store_options o;
    char url[4200];
    sessile_store_options_init(&o);
    o.key_source = source;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.durability = durability;
    o.policy_path = "policies";
    o.config.has_timeout = 1;
    o.config.timeout_ms = 60000;
    store_url(url, b, name);
    return sessile_open(out, url, &o, err);
}

sessile_store *backend_store(const backend *b, const char *name,
                             sessile_key_source source, sessile_durability durability)
{
    sessile_store *store;
    sessile_error err;
    must(try_store(&store, b, name, source, durability, &err), &err);
    return store;
}

bare *backend_bare(const backend *b, const char *name, int first, int synced)
{
    char where[4400];
    if (b == &backends[POSTGRES_BACKEND])
        snprintf(where, sizeof where, "%s", server_url());
    else
        snprintf(where, sizeof where, "%s/bare-%s-%s", bench_folder, b->name, name);
    return b->bare->open(where, first, synced);
}

/* Fills in `missing`: the library, the server, the store. */
static void look_for(backend *b)
{
    sessile_store *store;
    sessile_error err;
    if (b == &backends[SQLITE_BACKEND] && !bare_sqlite_built) {
        snprintf(b->missing, sizeof b->missing, "built without sqlite3.h");
    } else if (b == &backends[POSTGRES_BACKEND] && !bare_postgres_built) {
        snprintf(b->missing, sizeof b->missing, "built without libpq-fe.h");
    } else if (b == &backends[POSTGRES_BACKEND] && !server_url()) {
        const char *why = getenv("SESSILE_TEST_POSTGRES_ABSENT");
        snprintf(b->missing, sizeof b->missing, "no server: %s",
                 why ? why : "SESSILE_TEST_POSTGRES is not set (make bench starts one)");
    } else if (try_store(&store, b, "probe", SESSILE_KEY_SECRET, SESSILE_SYNC, &err)) {
        snprintf(b->missing, sizeof b->missing, "%s", err.message);
    } else {
        sessile_store_close(store);
    }
}

void backends_begin(int argc, char **argv)
{
    bench_make_folder(argc, argv);
    printf("%-32s %-10s %5s %10s %10s %10s %10s %7s %6s %-7s %9s %10s %7s  %s\n",
           "operation", "backend", "n", "ours us", "p95", "bare us", "p95", "ratio",
           "target", "", "asked ms", "LangGraph", "of ours", "bare is");
    for (int i = 0; i < BACKENDS; i++) {
        look_for(&backends[i]);
        if (backends[i].missing[0])
            note("%-32s %-10s no rows: %s", "", backends[i].name, backends[i].missing);
    }
}

int backends_end(void)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bench_%ld_", (long)getpid());
    if (!backends[POSTGRES_BACKEND].missing[0])
        bare_postgres_drop(server_url(), prefix);
    return bench_end();
}

/* ---------------------------------------------------------------------- the table */

void result_print(const result *r)
{
    double o50 = median(r->ours), o95 = p95(r->ours);
    double b50 = median(r->bare), b95 = p95(r->bare), l50 = median(r->peer);
    char asked[32] = "";
    printf("%-32s %-10s %5zu", r->operation, r->of->name, r->ours->count);
    cell_print(10, 1, o50, "");
    cell_print(10, 1, o95, "");
    cell_print(10, 1, b50, "");
    cell_print(10, 1, b95, "");
    cell_print(7, 2, o50 / b50, "x");
    cell_print(6, 2, r->target, "x");
    /* What is printed is what is judged. */
    printf(" %-7s", bench_short() || !(r->target > 0) || isnan(b50)   ? ""
                    : floor(100 * o50 / b50 + 0.5) / 100 <= r->target ? "reached"
                                                                      : "MISSED");
    if (r->asked_ms > 0)
        snprintf(asked, sizeof asked, "%g %s", r->asked_ms,
                 o95 / 1000 <= r->asked_ms ? "ok" : "NO");
    printf(" %9s", asked);
    cell_print(10, 0, l50, "");
    cell_print(7, 0, l50 / o50, "x");
    printf("  %s\n", isnan(b50) ? "" : r->bare_is);
    fflush(stdout);
    r->ours->count = 0;
    if (r->bare)
        r->bare->count = 0;
    if (r->peer)
        r->peer->count = 0;
}
