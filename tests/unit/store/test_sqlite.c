/*
 * test_sqlite.c: what is the SQLite store's own: whose file it is, its schema and
 * versions, what a person sees with SQL, what is left of what was removed.
 *
 * What every store promises is in tests/store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"
#include "store/sqlite/open.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "support/sqlite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */
#include "support/sqlite_rows.h"

static void refused(sqlite_place *g, const char *path, sessile_status expected,
                    const char *says)
{
    assert_int_equal(sqlite_place_open(g, path), expected);
    assert_null(g->st.table);
    if (!strstr(g->err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", g->err.message, says);
}

/* ------------------------------------------------------------------ whose file */

static void opening_makes_nothing(void **state)
{
    sqlite_place *g = *state;
    sessile_backend_log *log;
    char *blob;
    size_t size;
    int found = 1;

    sqlite_opened(g);
    assert_int_equal(g->st.table->blob_get(g->st.self, "keyring", &blob, &size, &g->err),
                     SESSILE_NOTFOUND);
    assert_int_equal(g->st.table->open(g->st.self, "main", "a", &log, &g->err),
                     SESSILE_NOTFOUND);
    must(g->st.table->has_logs(g->st.self, &found, &g->err), &g->err);
    assert_int_equal(found, 0);
    must(g->st.table->list_cache_drop(g->st.self, NULL, &g->err), &g->err);
    assert_int_equal(sqlite_entries(g->folder), 0);
    sqlite_place_log(g, "a", "one\n");
    struct stat st;
    assert_int_equal(stat(g->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    store_close(&g->st);
    assert_int_equal(sqlite_entries(g->folder), 1); /* the WAL is taken in at the end */
}

static void folders_above_it_are_made(void **state)
{
    sqlite_place *g = *state;
    char path[400];
    struct stat st;

    snprintf(path, sizeof path, "%s/a/b/s.db", g->folder);
    must(sqlite_place_open(g, path), &g->err);
    sqlite_place_log(g, "a", "one\n");
    snprintf(path, sizeof path, "%s/a/b", g->folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void files_of_others_are_refused_and_left_as_they_are(void **state)
{
    static const char *const foreign[] = {
        "CREATE TABLE t (a); INSERT INTO t VALUES (1)",
        "PRAGMA journal_mode = WAL; CREATE TABLE sessions (a)",
        "PRAGMA application_id = 42",
        NULL,
    };
    sqlite_place *g = *state;
    char answer[4096], *before, *after;
    size_t size, size_after;

    for (int i = 0; i < 4; i++) {
        if (foreign[i]) {
            sqlite_sql(g, foreign[i], answer);
        } else {
            FILE *f = fopen(g->path, "w");
            fputs("dear diary, today I have written more than a hundred bytes of text, "
                  "which is why this looks like a file that could be a database",
                  f);
            fclose(f);
        }
        chmod(g->path, 0600);
        before = sqlite_bytes(g->path, &size);
        refused(g, g->path, SESSILE_INVALID, "it was left as it is");
        after = sqlite_bytes(g->path, &size_after);
        assert_int_equal(size, size_after);
        assert_memory_equal(before, after, size);
        assert_int_equal(sqlite_entries(g->folder), 1);
        free(before);
        free(after);
        unlink(g->path);
    }
}

/* Made by sqlite3 with nothing in it, or by one of us who was killed at once. */
static void an_empty_database_is_taken(void **state)
{
    sqlite_place *g = *state;
    char answer[4096];

    for (int i = 0; i < 2; i++) {
        if (i)
            sqlite_sql(
                g, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); DROP TABLE t; VACUUM",
                answer);
        else
            fclose(fopen(g->path, "w"));
        chmod(g->path, 0600);
        sqlite_opened(g);
        sqlite_place_log(g, "a", "one\n");
        store_close(&g->st);
        assert_string_equal(sqlite_sql(g,
                                       "PRAGMA application_id; PRAGMA user_version;"
                                       "PRAGMA journal_mode; PRAGMA integrity_check",
                                       answer),
                            "1936028531\n1\nwal\nok");
        unlink(g->path);
    }
}

static void links_and_open_doors_are_denied(void **state)
{
    sqlite_place *g = *state;
    char other[320], path[400];

    sqlite_opened(g);
    sqlite_place_log(g, "a", "one\n");
    store_close(&g->st);
    snprintf(other, sizeof other, "%s/other.db", g->folder);
    assert_int_equal(symlink(g->path, other), 0);
    refused(g, other, SESSILE_DENIED, "is a link");
    snprintf(other, sizeof other, "%s/s.db-wal", g->folder);
    assert_int_equal(symlink("/tmp/planted", other), 0);
    refused(g, g->path, SESSILE_DENIED, "-wal is a link");
    unlink(other);
    chmod(g->path, 0640);
    refused(g, g->path, SESSILE_DENIED, "chmod 600");
    chmod(g->path, 0600);
    chmod(g->folder, 0777);
    refused(g, g->path, SESSILE_DENIED, "others may write in the folder");
    chmod(g->folder, 0700);
    snprintf(other, sizeof other, "%s/way", g->folder);
    assert_int_equal(symlink(g->folder, other), 0);
    snprintf(path, sizeof path, "%s/s.db", other);
    refused(g, path, SESSILE_DENIED, "is a link or no folder");
    snprintf(other, sizeof other, "%s/folder", g->folder);
    assert_int_equal(mkdir(other, 0700), 0);
    refused(g, other, SESSILE_DENIED, "not a regular file");
    sqlite_opened(g); /* none of it has changed anything */
}

static void a_store_is_found_below_a_folder_that_is_a_link(void **state)
{
    sqlite_place *g = *state;
    char other[320], path[400];

    snprintf(other, sizeof other, "%s/in", g->folder);
    assert_int_equal(mkdir(other, 0700), 0);
    snprintf(other, sizeof other, "%s/way", g->folder);
    assert_int_equal(symlink(g->folder, other), 0);
    snprintf(path, sizeof path, "%s/in/s.db", other);
    must(sqlite_place_open(g, path), &g->err);
    sqlite_place_log(g, "a", "one\n");
}

static void a_newer_schema_names_both_versions(void **state)
{
    sqlite_place *g = *state;
    char answer[4096];

    sqlite_opened(g);
    sqlite_place_log(g, "a", "one\n");
    store_close(&g->st);
    sqlite_sql(g, "PRAGMA user_version = 7", answer);
    refused(g, g->path, SESSILE_UNSUPPORTED, "version 7");
    assert_non_null(strstr(g->err.message, "version 1"));
}

static void a_schema_is_brought_up_in_one_step_or_not_at_all(void **state)
{
    static const char *const good[] = {"CREATE TABLE a (x)", "CREATE TABLE b (x)",
                                       "ALTER TABLE b ADD COLUMN y"};
    static const char *const bad[] = {"CREATE TABLE a (x)", "CREATE TABLE b (x)",
                                      "ALTER TABLE c ADD COLUMN y"};
    sqlite_place *g = *state;
    char answer[4096];
    sqlite3 *db;

    assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE a (x); PRAGMA user_version = 1; BEGIN", NULL, NULL,
                 NULL);
    assert_int_equal(sqlite_schema_migrate(db, bad, 1, 3), SQLITE_ERROR);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    assert_string_equal(
        sqlite_sql(g, "PRAGMA user_version; SELECT name FROM sqlite_schema", answer),
        "1\na");
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    assert_int_equal(sqlite_schema_migrate(db, good, 1, 3), SQLITE_OK);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_string_equal(
        sqlite_sql(g, "PRAGMA user_version; SELECT group_concat(name) FROM sqlite_schema",
                   answer),
        "3\na,b");
}

static void a_damaged_database_says_what_to_do(void **state)
{
    sqlite_place *g = *state;
    sessile_backend_log *log;
    char text[200], out[200];
    size_t got;

    sqlite_opened(g);
    sqlite_place_log(g, "a", "one\n");
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "log%03d", i);
        sqlite_place_log(g, text, "one\n");
    }
    store_close(&g->st);
    FILE *f = fopen(g->path, "r+b");
    memset(out, 0x5a, sizeof out);
    for (long at = 4096; at < 15 * 4096; at += 4096) { /* not the schema */
        fseek(f, at, SEEK_SET);
        fwrite(out, 1, sizeof out, f);
    }
    fclose(f);
    sessile_status status = sqlite_place_open(g, g->path);
    if (!status)
        status = g->st.table->open(g->st.self, "main", "a", &log, &g->err);
    if (!status)
        status = g->st.table->read(log, 0, 0, out, 4, &got, &g->err);
    assert_int_equal(status, SESSILE_DAMAGED);
    assert_non_null(strstr(g->err.message, "integrity_check"));
    assert_non_null(strstr(g->err.message, "backup"));
}

static void a_database_that_was_moved_away_takes_nothing(void **state)
{
    sqlite_place *g = *state;
    char other[320];
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    int poisoned;

    sqlite_opened(g);
    sqlite_place_log(g, "a", "one\n");
    sessile_backend_log *log = sqlite_place_resume(g, "a");
    snprintf(other, sizeof other, "%s/gone.db", g->folder);
    assert_int_equal(rename(g->path, other), 0);
    assert_int_equal(
        g->st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &g->err),
        SESSILE_IO);
    assert_non_null(strstr(g->err.message, "moved"));
    g->st.table->close(log);
}

/* ------------------------------------------------------------------ logs */

static void an_entry_of_megabytes_is_read_in_pieces(void **state)
{
    enum { LARGE = 3 << 20 };
    sqlite_place *g = *state;
    const sessile_backend *t;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    char *line = malloc(LARGE), *read = malloc(LARGE + 64);
    size_t got;
    int poisoned;

    sqlite_opened(g);
    t = g->st.table;
    sqlite_place_log(g, "a", "one\n");
    sessile_backend_log *log = sqlite_place_resume(g, "a");
    for (int i = 0; i < LARGE; i++)
        line[i] = (char)('a' + i * 7 % 23);
    line[LARGE - 1] = '\n';
    must(t->append(log, &end, line, LARGE, 1, tag, &poisoned, &g->err), &g->err);
    must(t->append(log, &end, "x\ny\n", 4, 2, tag, &poisoned, &g->err), &g->err);
    /* the hint stays at the entry that a read begins in, as a reader has it */
    for (size_t piece = 100000; piece < LARGE; piece += 700001) {
        size_t at = 0;
        for (got = 1; got; at += got)
            must(t->read(log,
                         at < 4           ? 0
                         : at < LARGE + 4 ? 1
                                          : 2,
                         at, read + at, piece, &got, &g->err),
                 &g->err);
        assert_int_equal(at, LARGE + 8);
        assert_memory_equal(read, "one\n", 4);
        assert_memory_equal(read + 4, line, LARGE);
        assert_memory_equal(read + 4 + LARGE, "x\ny\n", 4);
    }
    /* back and forth, with hints that are wrong */
    for (uint64_t at = LARGE + 7; at > 0; at = at > 40009 ? at - 40009 : 0) {
        must(t->read(log, at % 5, at, read, 3, &got, &g->err), &g->err);
        if (at >= 4 && at + 3 < LARGE + 4) {
            assert_int_equal(got, 3);
            assert_memory_equal(read, line + at - 4, 3);
        }
    }
    free(line);
    free(read);
    t->close(log);
}

static void drafts_that_nobody_writes_are_swept_after_an_hour(void **state)
{
    sqlite_place *g = *state;
    sessile_backend_draft *draft, *left;
    int yes = 1;

    sqlite_opened(g);
    must(g->st.table->draft_new(g->st.self, "main", "a", &left, &g->err), &g->err);
    must(g->st.table->draft_write(left, "abc\n", 4, &g->err), &g->err);
    must(g->st.table->sweep(g->st.self, count_other, &yes, &g->err), &g->err);
    assert_int_equal(others_seen, 0);
    g->later_ms = 3599000;
    must(g->st.table->draft_new(g->st.self, "main", "b", &draft, &g->err), &g->err);
    g->later_ms = 3601000;
    must(g->st.table->sweep(g->st.self, count_other, &yes, &g->err), &g->err);
    assert_int_equal(others_seen, 1);
    /* who was stopped that long is told, and nothing takes the log's name */
    assert_int_equal(g->st.table->draft_write(left, "d\n", 2, &g->err), SESSILE_CONFLICT);
    assert_int_equal(g->st.table->draft_publish(left, &g->err), SESSILE_CONFLICT);
    must(g->st.table->draft_write(draft, "one\n", 4, &g->err), &g->err);
    must(g->st.table->draft_publish(draft, &g->err), &g->err);
    g->st.table->close(sqlite_place_resume(g, "b"));
    others_seen = 0;
    must(g->st.table->list_others(g->st.self, NULL, count_other, &yes, &g->err), &g->err);
    assert_int_equal(others_seen, 0);
}

/* Lines that are handed over in pieces that end anywhere. */
static void a_draft_takes_lines_in_pieces(void **state)
{
    static const char text[] = "first\nsecond line\n\nfourth\n";
    sqlite_place *g = *state;
    sessile_backend_draft *draft;
    char out[100], answer[4096];
    size_t got;

    sqlite_opened(g);
    for (size_t piece = 1; piece < 9; piece++) {
        char name[20];
        snprintf(name, sizeof name, "log%zu", piece);
        must(g->st.table->draft_new(g->st.self, "main", name, &draft, &g->err), &g->err);
        for (size_t at = 0; at < sizeof text - 1; at += piece)
            must(g->st.table->draft_write(
                     draft, text + at,
                     sizeof text - 1 - at < piece ? sizeof text - 1 - at : piece,
                     &g->err),
                 &g->err);
        must(g->st.table->draft_publish(draft, &g->err), &g->err);
        sessile_backend_log *log = sqlite_place_resume(g, name);
        must(g->st.table->read(log, 0, 0, out, sizeof out, &got, &g->err), &g->err);
        assert_int_equal(got, sizeof text - 1);
        assert_memory_equal(out, text, got);
        g->st.table->close(log);
    }
    assert_string_equal(sqlite_sql(g,
                                   "SELECT DISTINCT count, bytes FROM sessions; SELECT"
                                   " DISTINCT id, at FROM entries ORDER BY id",
                                   answer),
                        "4|26\n0|0\n1|6\n2|18\n3|19");
}

static void nothing_is_left_of_what_was_removed(void **state)
{
    sqlite_place *g = *state;
    char wal[320], record[6000];
    sessile_log_end end = {1, 0, {0}};
    unsigned char tag[16] = {1};
    int poisoned;

    snprintf(wal, sizeof wal, "%s-wal", g->path);
    sqlite_opened(g);
    sqlite_place_log(g, "keep", "kept-bytes\n");
    sqlite_place_log(g, "a", "secret-of-the-log\n");
    end.bytes = 18;
    sessile_backend_log *log = sqlite_place_resume(g, "a");
    memset(record, 'x', sizeof record); /* pages of its own */
    memcpy(record + 5000, "secret-of-the-log", 17);
    record[sizeof record - 1] = '\n';
    must(
        g->st.table->append(log, &end, record, sizeof record, 1, tag, &poisoned, &g->err),
        &g->err);
    must(g->st.table->cache_write(log, 0, "secret-of-the-log", 17, &g->err), &g->err);
    must(g->st.table->blob_put_new(g->st.self, "ring", "secret-of-the-ring", 18, &g->err),
         &g->err);
    must(g->st.table->blob_put_new(g->st.self, "user", "secret-of-the-user", 18, &g->err),
         &g->err);
    assert_true(is_in_file(g->path, "secret-of-the-log") ||
                is_in_file(wal, "secret-of-the-log"));
    must(g->st.table->remove(log, 18, &g->err), &g->err);
    g->st.table->close(log);
    must(g->st.table->blob_replace(g->st.self, "ring", "secret-of-the-ring", 18, "new", 3,
                                   &g->err),
         &g->err);
    must(g->st.table->blob_remove(g->st.self, "user", &g->err), &g->err);
    /* while the store is open, and nothing was vacuumed */
    assert_false(is_in_file(g->path, "secret-of-the-"));
    assert_false(is_in_file(wal, "secret-of-the-"));
    assert_true(is_in_file(g->path, "kept-bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQLITE_TEST(opening_makes_nothing),
        SQLITE_TEST(folders_above_it_are_made),
        SQLITE_TEST(files_of_others_are_refused_and_left_as_they_are),
        SQLITE_TEST(an_empty_database_is_taken),
        SQLITE_TEST(links_and_open_doors_are_denied),
        SQLITE_TEST(a_store_is_found_below_a_folder_that_is_a_link),
        SQLITE_TEST(a_newer_schema_names_both_versions),
        SQLITE_TEST(a_schema_is_brought_up_in_one_step_or_not_at_all),
        SQLITE_TEST(a_damaged_database_says_what_to_do),
        SQLITE_TEST(a_database_that_was_moved_away_takes_nothing),
        SQLITE_TEST(an_entry_of_megabytes_is_read_in_pieces),
        SQLITE_TEST(drafts_that_nobody_writes_are_swept_after_an_hour),
        SQLITE_TEST(a_draft_takes_lines_in_pieces),
        SQLITE_TEST(nothing_is_left_of_what_was_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
