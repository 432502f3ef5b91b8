/*
 * stores.c: every store that the suite runs over, a line each at the end.
 */
#include "store/suite.h"

#include "store/fenced.h"
#include "store/minimal.h"
#include "store/open.h"
#include "store/served.h"
#include "store/file/open.h"
#include "store/sqlite/open.h"
#include "store/postgres/open.h"
#include "store/ram.h"
#include "support/postgres.h"
#include "support/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void database_path(void *place, char out[512])
{
    snprintf(out, 512, "%s/sessions.db", (char *)place);
}

static sessile_status sqlite(void *place, const sessile_backend **table, void **self,
                             sessile_error *err)
{
    store st = {NULL, NULL};
    char path[512];

    database_path(place, path);
    return taken(store_sqlite_open(&st, path, 60000, os_current, &allocator_default, err),
                 &st, table, self);
}

static void sqlite_url(void *place, char out[512])
{
    char path[512];

    database_path(place, path);
    snprintf(out, 512, "sqlite:%.500s", path);
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

static void *served_files(void)
{
    return served_start(0);
}

static void *served_database(void)
{
    return served_start(1);
}

static void served_free(void *place)
{
    served_end(place);
}

static sessile_status remote(void *place, const sessile_backend **table, void **self,
                             sessile_error *err)
{
    store st = {NULL, NULL};
    sessile_store_options options;

    sessile_store_options_init(&options);
    options.remote = served_library();
    options.durability = SESSILE_NONE;
    return taken(store_backend_open(&st, served_url(place), &options, err), &st, table,
                 self);
}

static void remote_url(void *place, char out[512])
{
    snprintf(out, 512, "%s", served_url(place));
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
    {"sqlite, plain", 0, 0, folder, folder_free, sqlite, sqlite_url, 1, NULL},
    {"sqlite, sealed", 1, 0, folder, folder_free, sqlite, sqlite_url, 1, NULL},
    {"postgres, plain", 0, 0, schema, schema_free, postgres, postgres_url, 1, no_server},
    {"postgres, sealed", 1, 0, schema, schema_free, postgres, postgres_url, 1, no_server},
    {"served files, plain", 0, 0, served_files, served_free, remote, remote_url, 1, NULL},
    {"served files, sealed", 1, 0, served_files, served_free, remote, remote_url, 1,
     NULL},
    {"served sqlite, plain", 0, 0, served_database, served_free, remote, remote_url, 1,
     NULL},
    {"served sqlite, sealed", 1, 0, served_database, served_free, remote, remote_url, 1,
     NULL},
    {"a host's, plain", 0, 0, medium, medium_free, minimal, NULL, 0, NULL},
    {"a host's, sealed", 1, 0, medium, medium_free, minimal, NULL, 0, NULL},
    {"a host's that fences, plain", 0, 0, database, database_free, fenced, NULL, 0, NULL},
    {"a host's that fences, sealed", 1, 0, database, database_free, fenced, NULL, 0,
     NULL},
};
const size_t suite_store_count = sizeof suite_stores / sizeof *suite_stores;
