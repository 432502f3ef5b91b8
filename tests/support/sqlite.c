/* sqlite.c: a SQLite store of a test's own. */
#include "support/sqlite.h"
#include "support/check.h"
#include "support/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t late_clock(void *ud)
{
    return os_posix.now_ms(os_posix.ud) + ((sqlite_place *)ud)->later_ms;
}

int sqlite_place_set_up(void **state)
{
    sqlite_place *g = calloc(1, sizeof *g);
    if (!g)
        return -1;
    g->folder = folder_make();
    g->os = os_posix;
    g->os.ud = g;
    g->os.now_ms = late_clock;
    snprintf(g->path, sizeof g->path, "%s/s.db", g->folder);
    *state = g;
    return 0;
}

int sqlite_place_tear_down(void **state)
{
    sqlite_place *g = *state;
    store_close(&g->st);
    folder_remove(g->folder);
    free(g);
    return 0;
}

sessile_status sqlite_place_open(sqlite_place *g, const char *path)
{
    return store_sqlite_open(&g->st, path, 2000, &g->os, &allocator_default, &g->err);
}

void sqlite_place_log(sqlite_place *g, const char *name, const char *text)
{
    must(g->st.table->create(g->st.self, "main", name, text, strlen(text), &g->err),
         &g->err);
}
