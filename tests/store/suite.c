/*
 * suite.c: cases run over stores: which of them, in which places, and what a case is
 * handed.
 *
 * Owns the places of the cases: each case has one of its own, which is gone afterwards.
 */
#include "store/suite.h"
#include "store/served.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

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
    out->config.has_timeout = 1;
    out->config.timeout_ms = 60000;
    out->durability = SESSILE_NONE;
    out->remote = served_library();
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

/* ------------------------------------------------------------------ which, and over what
 */

/* What a store of that kind has, in bits that a case may need; -1: it cannot be opened.
 */
static long abilities(const suite_store *kind)
{
    const sessile_backend *t = NULL;
    void *place = kind->place(), *self = NULL;
    sessile_error err = {0};
    long has = -1;

    if (place && !kind->backend(place, &t, &self, &err)) {
        has = (long)t->capabilities & 255;
        has |= has & SESSILE_BACKEND_LOCKS ? 0 : NEEDS_NO_LOCKS;
        has |= has & SESSILE_BACKEND_CUTS ? 0 : NEEDS_NO_CUTS;
        has |= t->remove ? NEEDS_REMOVE : 0;
        has |= t->draft_publish ? NEEDS_PUBLISH : 0;
        has |= t->watch ? NEEDS_WATCH : 0;
        has |= t->ends ? NEEDS_ENDS : 0;
        has |= t->clock ? NEEDS_CLOCK : 0;
        has |= t->blob_replace ? NEEDS_BLOB_REPLACE : 0;
        has |= t->blob_remove ? NEEDS_BLOB_REMOVE : 0;
        has |= t->blob_settle ? NEEDS_BLOB_SETTLE : 0;
        has |= kind->processes ? NEEDS_PROCESSES : 0;
        has |= kind->vanishes ? 0 : NEEDS_RESTARTS;
        has |= kind->sealed ? NEEDS_SEALED : 0;
        has |= strstr(kind->name, "that fences") ? NEEDS_FENCED : 0;
        if (t->free)
            t->free(self);
    } else {
        printf("# %s: no store: %s\n", kind->name, err.message);
    }
    if (place)
        kind->place_free(place);
    return has;
}

/* All cases over one kind, or those whose name holds `part`. */
static int run_over(const suite_store *kind, const char *title,
                    const struct CMUnitTest *cases, size_t count, const char *part)
{
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    char(*names)[200] = calloc(count, sizeof *names);
    const char *why = kind->absent ? kind->absent() : NULL;
    const long has = why ? -1 : abilities(kind);
    size_t n = 0;
    int failed = 1;

    for (size_t i = 0; i < count && tests && names; i++) {
        const long needs = (long)(uintptr_t)cases[i].initial_state;
        if (part && !strstr(cases[i].name, part))
            continue;
        if (has >= 0 && (has & needs) != needs) {
            printf("# not for \"%s\": %s\n", kind->name, cases[i].name);
            continue;
        }
        snprintf(names[n], sizeof names[n], "%s: %s: %s", kind->name, title,
                 cases[i].name);
        tests[n] = cases[i];
        tests[n].name = names[n];
        tests[n].initial_state = (void *)kind;
        n++;
    }
    fflush(stdout);
    if (why && n)
        failed = printf("1..0 # SKIP %s: %s: %s\n", kind->name, title, why) < 0;
    else if (n)
        failed = _cmocka_run_group_tests(title, tests, n, NULL, NULL);
    else
        failed = !tests || !names;
    free(tests);
    free(names);
    return failed;
}

/* 1 when b is asked for as well, and has the same table. */
static int same_table(const suite_store *a, const suite_store *b, const char *store)
{
    return a->backend == b->backend && a->place == b->place &&
           (!store || strstr(b->name, store));
}

int suite_run_stores(const suite_store *kinds, size_t kind_count, const char *title,
                     const struct CMUnitTest *cases, size_t count, int tables,
                     const char *store, const char *part)
{
    int failed = 0;

    for (size_t k = 0; k < kind_count; k++) {
        const suite_store *kind = &kinds[k];
        if (store && !strstr(kind->name, store))
            continue;
        if (tables == 1 && k > 0 && same_table(kind, kind - 1, store))
            continue;
        if (tables == 2 && k + 1 < kind_count && same_table(kind, kind + 1, store))
            continue;
        failed += run_over(kind, title, cases, count, part);
    }
    return failed;
}

int suite_run(const char *title, const struct CMUnitTest *cases, size_t count, int tables,
              int argc, char **argv)
{
    const suite_store *kinds = suite_stores;
    size_t kind_count = suite_store_count;
    const char *object = NULL, *words[2] = {NULL, NULL};
    int vanishes = 0, processes = 0, n = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--store") == 0 && i + 1 < argc)
            object = argv[++i];
        else if (strcmp(argv[i], "--vanishes") == 0)
            vanishes = 1;
        else if (strcmp(argv[i], "--processes") == 0)
            processes = 1;
        else if (argv[i][0] != '-' && n < 2)
            words[n++] = argv[i];
        else {
            fprintf(stderr,
                    "usage: %s [STORE [CASE]]\n       %s --store OBJECT.so "
                    "[--processes] [--vanishes] [CASE]\n",
                    argv[0], argv[0]);
            return 2;
        }
    }
    if (object) {
        kinds = suite_shared(object, vanishes, processes, &kind_count);
        if (!kinds)
            return 2;
        words[1] = words[0];
        words[0] = NULL;
    }
    return suite_run_stores(kinds, kind_count, title, cases, count, tables, words[0],
                            words[1]);
}
