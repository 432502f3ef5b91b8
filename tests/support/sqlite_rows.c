/* sqlite_rows.c: what is in a SQLite store: its rows, its bytes, its logs */
#include "support/sqlite_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"
#include "store/store.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "support/sqlite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

void sqlite_opened(sqlite_place *g)
{
    if (sqlite_place_open(g, g->path))
        fail_msg("%s", g->err.message);
}

sessile_backend_log *sqlite_place_resume(sqlite_place *g, const char *name)
{
    sessile_backend_log *log;
    must(g->st.table->open(g->st.self, "main", name, &log, &g->err), &g->err);
    return log;
}

char *sqlite_sql(const sqlite_place *g, const char *text, char out[4096])
{
    sqlite3 *db;
    sqlite3_stmt *st;
    out[0] = '\0';
    assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
    while (*text) {
        int rc = sqlite3_prepare_v2(db, text, -1, &st, &text);
        if (rc != SQLITE_OK)
            fail_msg("%s", sqlite3_errmsg(db));
        while (st && (rc = sqlite3_step(st)) == SQLITE_ROW)
            for (int i = 0; i < sqlite3_column_count(st); i++) {
                const char *value = (const char *)sqlite3_column_text(st, i);
                size_t at = strlen(out);
                snprintf(out + at, 4096 - at, "%s%s",
                         i    ? "|"
                         : at ? "\n"
                              : "",
                         value ? value : "NULL");
            }
        if (st && rc != SQLITE_DONE)
            fail_msg("%s", sqlite3_errmsg(db));
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
    return out;
}

char *sqlite_bytes(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    *size = 0;
    if (f) {
        fseek(f, 0, SEEK_END);
        *size = (size_t)ftell(f);
        rewind(f);
        bytes = malloc(*size + 1);
        assert_non_null(bytes);
        assert_int_equal(fread(bytes, 1, *size, f), *size);
        bytes[*size] = '\0';
        fclose(f);
    }
    return bytes;
}

int sqlite_entries(const char *folder)
{
    char command[400];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *f = popen(command, "r");
    int n = -1;
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

int others_seen;

int count_other(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    (void)folder;
    (void)bytes;
    others_seen++;
    return strncmp(file, ".new-", 5) == 0 && *(int *)arg;
}

int is_in_file(const char *path, const char *text)
{
    size_t size;
    char *bytes = sqlite_bytes(path, &size);
    int found = bytes && memmem(bytes, size, text, strlen(text));
    free(bytes);
    return found;
}
