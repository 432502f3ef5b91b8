/* sqlite.h: a SQLite store of a test's own, opened as the engine opens it. */
#ifndef SUPPORT_SQLITE_H
#define SUPPORT_SQLITE_H

#include "store/sqlite/sqlite.h"
#include "store/sqlite/open.h"
#include "support/sqlvfs.h"

typedef struct sqlite_place {
    char *folder, path[300]; /* the database is folder/s.db; it does not exist yet */
    os_table os;             /* what the store is opened on */
    int64_t later_ms;        /* how far its clock is ahead */
    sqlvfs *vfs;             /* for tests that install one */
    store st;
    sessile_error err; /* of the call that failed last */
} sqlite_place;

/* Fixtures of cmocka: *state is a place of its own. Tearing down closes its store. */
int sqlite_place_set_up(void **state);
int sqlite_place_tear_down(void **state);
#define SQLITE_TEST(name) \
    cmocka_unit_test_setup_teardown(name, sqlite_place_set_up, sqlite_place_tear_down)

sessile_status sqlite_place_open(sqlite_place *g, const char *path);
/* These fail the test when the store refuses. */
void sqlite_place_log(sqlite_place *g, const char *name, const char *text);

#endif
