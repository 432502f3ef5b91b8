/* database.c: see database.h. */
#include "nodes/database.h"

#include "support/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

const char *const database_kinds[] = {"file", "sqlite", "postgres", NULL};

/* 1: this build can open it. */
static int supported(const database *d, const char **why)
{
    static char sentence[600];
    sessile_store *store;
    sessile_error err = {0};
    sessile_status status = database_open(d, NULL, &store, &err);
    sessile_store_close(store);
    if (status == SESSILE_UNSUPPORTED) {
        snprintf(sentence, sizeof sentence, "%s", err.message);
        *why = sentence;
        return 0;
    }
    if (status)
        fail_msg("%s: %s", d->kind, err.message);
    return 1;
}

static database *made(const char *kind, int sealed, int own, const char **why)
{
    database *d = calloc(1, sizeof *d);
    char url[1200];
    d->kind = kind;
    d->sealed = sealed;
    if (strcmp(kind, "postgres") == 0) {
        if (own)
            d->server = d->own = postgres_own(why);
        else
            d->server = postgres_shared(why);
        if (!d->server) {
            free(d);
            return NULL;
        }
        d->place = postgres_place(d->server->url);
        d->url = strdup(d->place);
        return d;
    }
    d->folder = folder_make();
    snprintf(url, sizeof url, "%s:%s/store%s", kind, d->folder,
             strcmp(kind, "sqlite") == 0 ? ".db" : "");
    d->url = strdup(url);
    return d;
}

database *database_new(const char *kind, int sealed, int own, const char **why)
{
    database *d = made(kind, sealed, own, why);
    if (d && !supported(d, why)) {
        database_free(d);
        d = NULL;
    }
    return d;
}

void database_free(database *d)
{
    if (!d)
        return;
    if (d->folder)
        folder_remove(d->folder);
    if (d->own) {
        postgres_own_free(d->own);
        free(d->place);
    } else if (d->place) {
        postgres_drop(d->place);
    }
    free(d->url);
    free(d);
}

void database_options(const database *d, sessile_store_options *out)
{
    sessile_store_options_init(out);
    out->key_source = d->sealed ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    out->key = SECRET;
    out->config.has_timeout = 1;
    out->config.timeout_ms = 20000;
}

sessile_status database_open(const database *d, const char *url, sessile_store **out,
                             sessile_error *err)
{
    sessile_store_options options;
    database_options(d, &options);
    return sessile_open(out, url ? url : d->url, &options, err);
}

int database_run(const char *title, const struct CMUnitTest *tests, size_t count,
                 int (*set_up)(void **), int (*tear_down)(void **), int argc, char **argv)
{
    int failed = 0;
    for (size_t k = 0; database_kinds[k]; k++) {
        struct CMUnitTest each[32];
        char names[32][160];
        if ((argc > 1 && strcmp(argv[1], database_kinds[k]) != 0) || count > 32)
            continue;
        for (size_t i = 0; i < count; i++) {
            snprintf(names[i], sizeof names[i], "%s: %s", database_kinds[k],
                     tests[i].name);
            each[i] = tests[i];
            each[i].name = names[i];
            each[i].initial_state = (void *)database_kinds[k];
            each[i].setup_func = set_up;
            each[i].teardown_func = tear_down;
        }
        failed += _cmocka_run_group_tests(title, each, count, NULL, NULL);
    }
    return failed;
}
