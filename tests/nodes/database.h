/*
 * database.h: what nodes share: a database of each kind, and how a node opens it.
 *
 * The file store is among them: it is shared by processes of one machine, and shows that
 * these tests ask nothing that only a database could do.
 */
#ifndef NODES_DATABASE_H
#define NODES_DATABASE_H

#include "sessile.h"
#include "support/postgres.h"

typedef struct database {
    const char *kind; /* "file", "sqlite", "postgres" */
    int sealed;
    char *folder;                  /* file, sqlite */
    postgres_server *own;          /* postgres: a server that may be killed, or NULL */
    const postgres_server *server; /* postgres: that, or the one all tests share */
    char *place;                   /* postgres: the schema's URL */
    char *url;                     /* for sessile_open() */
} database;

/* Kinds as they stand in a test's initial state, NULL at the end. */
extern const char *const database_kinds[];

/* An empty one. `own`: on a server that may be killed. NULL: this machine has none;
 * *why says why (static). */
database *database_new(const char *kind, int sealed, int own, const char **why);
void database_free(database *d);

/* The options that every node opens it with. */
void database_options(const database *d, sessile_store_options *out);
/* The same store at another URL (through a proxy), or at its own (NULL). Status and
 * sentence are the engine's. */
sessile_status database_open(const database *d, const char *url, sessile_store **out,
                             sessile_error *err);

/* Runs each test over each kind, or over argv[1] alone; set_up finds the kind in *state
 * and names are "KIND: TEST". Returns how many failed. */
struct CMUnitTest;
int database_run(const char *title, const struct CMUnitTest *tests, size_t count,
                 int (*set_up)(void **), int (*tear_down)(void **), int argc,
                 char **argv);

#endif
