/*
 * stores.c: every store that the suite runs over, a line each at the end; and how a case
 * gets one.
 */
#include "store/suite.h"

#include "store/fenced.h"
#include "store/minimal.h"
#include "store/store.h"
#include "support/postgres.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* ------------------------------------------------------------------ places */

static void *nowhere(void)
{
    return calloc(1, 1);
}

static void *folder(void)
{
    return folder_make();
}

static void folder_free(void *place)
{
    folder_remove(place);
}

static void *medium(void)
{
    return minimal_medium_new();
}

static void medium_free(void *place)
{
    minimal_medium_free(place);
}

static void *database(void)
{
    return fenced_medium_new();
}

static void database_free(void *place)
{
    fenced_medium_free(place);
}

static const char *no_server(void)
{
    const char *why = NULL;

    (void)postgres_shared(&why);
    return why;
}

static void *schema(void)
{
    const char *why;
    const postgres_server *server = postgres_shared(&why);

    return server ? postgres_place(server->url) : NULL;
}

static void schema_free(void *place)
{
    postgres_drop(place);
}

/* ------------------------------------------------------------------ stores */

static sessile_status taken(sessile_status status, const store *st,
                            const sessile_backend **table, void **self)
{
    *table = st->table;
    *self = st->self;
    return status;
}

static sessile_status ram(void *place, const sessile_backend **table, void **self,
                          sessile_error *err)
{
    store st = {NULL, NULL};
    sessile_status status = store_ram_open(&st, os_current, &allocator_default, err);

    (void)place;
    return taken(status, &st, table, self);
}

static void ram_url(void *place, char out[512])
{
    (void)place;
    strcpy(out, "ram:");
}

static sessile_status file(void *place, const sessile_backend **table, void **self,
                           sessile_error *err)
{
    store st = {NULL, NULL};
    sessile_status status =
        store_file_open(&st, place, os_current, &allocator_default, err);

    return taken(status, &st, table, self);
}

static void file_url(void *place, char out[512])
{
    snprintf(out, 512, "file:%s", (char *)place);
}

static sessile_status postgres(void *place, const sessile_backend **table, void **self,
                               sessile_error *err)
{
    store st = {NULL, NULL};
    sessile_status status =
        store_postgres_open(&st, place, 60000, os_current, &allocator_default, err);

    return taken(status, &st, table, self);
}

static void postgres_url(void *place, char out[512])
{
    snprintf(out, 512, "%s", (char *)place);
}

static sessile_status minimal(void *place, const sessile_backend **table, void **self,
                              sessile_error *err)
{
    (void)err;
    *table = minimal_store(place, self);
    return SESSILE_OK;
}

static sessile_status fenced(void *place, const sessile_backend **table, void **self,
                             sessile_error *err)
{
    (void)err;
    *table = fenced_store(place, self);
    return SESSILE_OK;
}

/* A new store is one line here, or two: plain and sealed. */
const suite_store suite_stores[] = {
    {"ram", 0, 1, nowhere, free, ram, ram_url, 0, NULL},
    {"file, plain", 0, 0, folder, folder_free, file, file_url, 1, NULL},
    {"file, sealed", 1, 0, folder, folder_free, file, file_url, 1, NULL},
    {"file, brought by a host", 1, 0, folder, folder_free, file, NULL, 1, NULL},
    {"postgres, plain", 0, 0, schema, schema_free, postgres, postgres_url, 1, no_server},
    {"postgres, sealed", 1, 0, schema, schema_free, postgres, postgres_url, 1, no_server},
    {"a host's, plain", 0, 0, medium, medium_free, minimal, NULL, 0, NULL},
    {"a host's, sealed", 1, 0, medium, medium_free, minimal, NULL, 0, NULL},
    {"a host's that fences, plain", 0, 0, database, database_free, fenced, NULL, 0, NULL},
    {"a host's that fences, sealed", 1, 0, database, database_free, fenced, NULL, 0,
     NULL},
};
const size_t suite_store_count = sizeof suite_stores / sizeof *suite_stores;

/* ------------------------------------------------------------------ for cases */

int site_set_up(void **state)
{
    site *g = malloc(sizeof *g);

    if (!g)
        return -1;
    g->kind = *state;
    g->place = g->kind->place();
    *state = g;
    return g->place ? 0 : -1;
}

int site_tear_down(void **state)
{
    site *g = *state;

    g->kind->place_free(g->place);
    free(g);
    return 0;
}

void site_options(const site *g, sessile_store_options *out)
{
    sessile_store_options_init(out);
    out->key_source = g->kind->sealed ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    out->key = SECRET;
    out->timeout_ms = 60000;
    out->durability = SESSILE_NONE;
}

sessile_store *site_store(const site *g)
{
    sessile_store_options options;
    const sessile_backend *table;
    sessile_status status;
    sessile_store *st = NULL;
    sessile_error err = {0};
    char url[512];
    void *self;

    site_options(g, &options);
    if (g->kind->url) {
        g->kind->url(g->place, url);
        status = sessile_open(&st, url, &options, &err);
    } else {
        status = g->kind->backend(g->place, &table, &self, &err);
        if (!status)
            status = sessile_open_with(&st, table, self, &options, &err);
    }
    if (status)
        fail_msg("%s: %s", g->kind->name, err.message);
    return st;
}

/* All cases over one kind, or those whose name holds `part`. */
static int run_over(const suite_store *kind, const char *title,
                    const struct CMUnitTest *cases, size_t count, const char *part)
{
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    char(*names)[200] = calloc(count, sizeof *names);
    const char *why = kind->absent ? kind->absent() : NULL;
    size_t n = 0;
    int failed = 1;

    if (tests && names) {
        for (size_t i = 0; i < count; i++) {
            if (part && !strstr(cases[i].name, part))
                continue;
            snprintf(names[n], sizeof names[n], "%s: %s: %s", kind->name, title,
                     cases[i].name);
            tests[n] = cases[i];
            tests[n].name = names[n];
            tests[n].initial_state = (void *)kind;
            n++;
        }
        failed = 0;
        if (why)
            printf("1..0 # SKIP %s: %s: %s\n", kind->name, title, why);
        else if (n)
            failed = _cmocka_run_group_tests(title, tests, n, NULL, NULL);
    }
    free(tests);
    free(names);
    return failed;
}

static int same_table(const suite_store *a, const suite_store *b)
{
    return a->backend == b->backend && a->place == b->place;
}

int suite_run(const char *title, const struct CMUnitTest *cases, size_t count, int tables,
              int argc, char **argv)
{
    const suite_store *had = NULL;
    int failed = 0;

    for (size_t k = 0; k < suite_store_count; k++) {
        const suite_store *kind = &suite_stores[k];
        if ((argc > 1 && !strstr(kind->name, argv[1])) ||
            (tables && had && same_table(kind, had)))
            continue;
        had = kind;
        failed += run_over(kind, title, cases, count, argc > 2 ? argv[2] : NULL);
    }
    return failed;
}
