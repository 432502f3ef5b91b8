/*
 * test_sqlite_hostile.c: a database that somebody made to harm, or that bad luck did.
 *
 * Files are made by SQLite itself, then changed behind the engine's back. Whatever is in
 * them: an error that names the file, no other file touched, and an end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* A database with a log of three lines, and a blob. */
static void make(sqlite_place *g)
{
    unlink(g->path);
    must(sqlite_place_open(g, g->path), &g->err);
    sqlite_place_log(g, "a", "one\ntwo\nthree\n");
    must(g->st.table->blob_put_new(g->st.self, "keyring", "secret", 6, &g->err), &g->err);
    store_close(&g->st);
}

/* Another program, which may do all that SQLite lets it. */
static void sql(const sqlite_place *g, const char *text)
{
    sqlite3 *db;
    char *says = NULL;
    assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    if (sqlite3_exec(db, text, NULL, NULL, &says) != SQLITE_OK)
        fail_msg("%s", says);
    sqlite3_close(db);
    chmod(g->path, 0600);
}

static int count_log(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    ++*(int *)arg;
    return 0;
}

static int count_blob(void *arg, const char *name)
{
    return count_log(arg, "", name);
}

static sessile_status list(sqlite_place *g, int *count)
{
    *count = 0;
    return g->st.table->list(g->st.self, NULL, count_log, count, &g->err);
}

/* ------------------------------------------------------------------ the schema */

static void tables_that_were_changed_are_refused(void **state)
{
    static const char *const changes[] = {
        "ALTER TABLE entries ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(line))",
        "DROP TABLE entries; CREATE TABLE entries (session, id, at, line)",
        "DROP TABLE entries; CREATE VIEW entries AS SELECT 1 AS session, 0 AS id, 0 AS "
        "at,"
        " x'41' AS line",
        "DROP TABLE list_caches",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, "
        "'line BLOB NOT NULL', 'line BLOB NOT NULL CHECK (length(randomblob(1)) = 1)')"
        " WHERE name = 'entries'",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, "
        "'REFERENCES sessions ON DELETE CASCADE', '') WHERE name = 'caches'",
        "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = 99999"
        " WHERE name = 'blobs'",
        "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'sessions'",
    };
    sqlite_place *g = *state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        make(g);
        sql(g, changes[i]);
        sessile_status status = sqlite_place_open(g, g->path);
        if (status != SESSILE_DAMAGED)
            fail_msg("%s: %s: %s", changes[i], sessile_status_name(status),
                     g->err.message);
        assert_non_null(strstr(g->err.message, g->path));
        assert_non_null(strstr(g->err.message, "backup"));
    }
}

static void another_encoding_is_refused(void **state)
{
    sqlite_place *g = *state;
    sql(g, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE x (a); DROP TABLE x;");
    sessile_status status = sqlite_place_open(g, g->path);
    if (!status)
        status = g->st.table->create(g->st.self, "main", "a", "one\n", 4, &g->err);
    assert_int_equal(status, SESSILE_DAMAGED);
}

static void triggers_of_others_do_nothing(void **state)
{
    sqlite_place *g = *state;
    int count;
    make(g);
    sql(g, "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM entries; END;"
           "CREATE TRIGGER u BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END;"
           "CREATE TABLE own (a)");
    must(sqlite_place_open(g, g->path), &g->err);
    sqlite_place_log(g, "b", "one\n");
    char out[8];
    size_t got;
    sessile_backend_log *log;
    must(g->st.table->open(g->st.self, "main", "b", &log, &g->err), &g->err);
    must(g->st.table->read(log, 0, 0, out, 4, &got, &g->err), &g->err);
    assert_int_equal(got, 4);
    assert_memory_equal(out, "one\n", 4);
    g->st.table->close(log);
    must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
    must(g->st.table->read(log, 0, 0, out, 8, &got, &g->err), &g->err);
    assert_int_equal(got, 8);
    g->st.table->close(log);
    must(list(g, &count), &g->err);
    assert_int_equal(count, 2);
}

/* ------------------------------------------------------------------ rows */

/* A store with these rows in its table of blobs cannot list them. */
static void blobs_are_damage(sqlite_place *g, const char *rows)
{
    int count = 0;
    make(g);
    sql(g, rows);
    must(sqlite_place_open(g, g->path), &g->err);
    assert_int_equal(g->st.table->blob_list(g->st.self, "", count_blob, &count, &g->err),
                     SESSILE_DAMAGED);
}

/* Pages of names that are the same once they are cut at their NUL. */
static void names_that_repeat_end_the_list(void **state)
{
    sqlite_place *g = *state;
    int count;
    make(g);
    sql(g, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 600)"
           " INSERT INTO sessions (agent, name, count, bytes, created, updated)"
           " SELECT 'main', 'x' || char(0) || printf('%05d', i), 1, 4, 0, 0 FROM n");
    must(sqlite_place_open(g, g->path), &g->err);
    assert_int_equal(list(g, &count), SESSILE_DAMAGED);
    assert_int_equal(g->st.table->list(g->st.self, "main", count_log, &count, &g->err),
                     SESSILE_DAMAGED);
    store_close(&g->st);
    blobs_are_damage(
        g, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 600)"
           " INSERT INTO blobs SELECT 'x' || char(0) || printf('%05d', i), x'41', 0"
           " FROM n");
}

/* One letter in SQL, thousands of bytes. */
static void names_that_are_no_text_fit_or_are_refused(void **state)
{
    blobs_are_damage(
        *state,
        "INSERT INTO blobs SELECT CAST(x'c0' || CAST(replace(hex(zeroblob(4000)), '00', "
        "CAST(x'80' AS TEXT)) AS BLOB) AS TEXT), x'41', 0");
}

/* A row that is lost, or lies, costs what it held. Where a log's row and its entries do
 * not agree the log has one byte too many, which shows that it is damaged. */
static void rows_that_lie_cost_what_they_held(void **state)
{
    static const struct {
        const char *lie, *reads; /* NULL: two rows hold the same bytes, either will do */
    } lies[] = {
        {"UPDATE sessions SET bytes = 9223372036854775807", "one\ntwo\nthree\n\n"},
        {"UPDATE sessions SET bytes = -1", "one\ntwo\nthree\n\n"},
        {"UPDATE sessions SET bytes = 3", "one\ntwo\nthree\n\n"},
        {"UPDATE sessions SET count = 9223372036854775807", "one\ntwo\nthree\n\n"},
        {"UPDATE sessions SET count = 1, bytes = 15", "one\ntwo\nthree\n\n"},
        {"UPDATE entries SET at = 3 WHERE id = 1", NULL},
        {"UPDATE entries SET at = 5 WHERE id = 1", NULL},
        {"UPDATE entries SET at = at + (1 << 40) WHERE id = 1", "one\n   \nthree\n"},
        {"UPDATE entries SET at = at + (1 << 40) WHERE id = 2", "one\ntwo\n      \n"},
        {"UPDATE entries SET at = -9223372036854775808", "              \n"},
        {"UPDATE entries SET id = -id - 1", "    \n"},
        {"UPDATE entries SET line = x'' WHERE id = 1", "one\n   \nthree\n"},
        {"UPDATE entries SET line = x'7477' WHERE id = 1", "one\ntw \nthree\n"},
        {"DELETE FROM entries WHERE id = 0", "   \ntwo\nthree\n"},
        {"DELETE FROM entries WHERE id = 1", "one\n   \nthree\n"},
        {"DELETE FROM entries WHERE id = 2", "one\ntwo\n\n"},
        {"DELETE FROM entries", "              \n"},
    };
    sqlite_place *g = *state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char out[64] = "";
        size_t got = 1, at = 0;
        uint64_t bytes = 0;
        int64_t mtime;
        sessile_backend_log *log = NULL;
        make(g);
        sql(g, lies[i].lie);
        must(sqlite_place_open(g, g->path), &g->err);
        must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
        must(g->st.table->size(log, &bytes, &mtime, &g->err), &g->err);
        for (; got > 0 && at < sizeof out; at += got)
            must(g->st.table->read(log, 0, at, out + at, 3, &got, &g->err), &g->err);
        if ((lies[i].reads && strcmp(out, lies[i].reads) != 0) || bytes != strlen(out))
            fail_msg("%s: %zu \"%s\"", lies[i].lie, (size_t)bytes, out);
        for (at = 0; lies[i].reads && at < bytes;
             at++) { /* also byte by byte, from anywhere */
            char one;
            must(g->st.table->read(log, 0, bytes - 1 - at, &one, 1, &got, &g->err),
                 &g->err);
            if (got != 1 || one != out[bytes - 1 - at])
                fail_msg("%s: byte %zu", lies[i].lie, (size_t)bytes - 1 - at);
        }
        g->st.table->close(log);
        store_close(&g->st);
    }
}

/* Times that no clock has, as they are listed. */
static int take_stat(void *arg, const char *folder, const char *name,
                     const sessile_backend_stat *stat)
{
    (void)folder;
    (void)name;
    *(uint64_t *)arg = stat->bytes;
    return 0;
}

static void times_that_no_clock_has_are_listed(void **state)
{
    sqlite_place *g = *state;
    uint64_t bytes = 0;
    make(g);
    sql(g, "UPDATE sessions SET updated = 9223372036854775807");
    must(sqlite_place_open(g, g->path), &g->err);
    must(g->st.table->list_stat(g->st.self, NULL, take_stat, &bytes, &g->err), &g->err);
    assert_int_equal(bytes, 14);
}

/* ------------------------------------------------------------------ pages */

static char *bytes_of(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

/* All that can be asked of it, and a write. An end is what is wanted, and no crash; what
 * is read is what was written, or differs in the byte that was changed. */
static void use(sqlite_place *g, size_t at)
{
    char out[64], line[] = "four\n";
    size_t got = 0;
    int count, poisoned, found;
    char *blob = NULL;
    sessile_backend_log *log = NULL;
    sessile_log_end end = {3, 14, {0}};
    const unsigned char tag[16] = {1};
    if (sqlite_place_open(g, g->path))
        return;
    if (!list(g, &count) && count > 1)
        fail_msg("byte %zu: %d logs of one", at, count);
    g->st.table->blob_list(g->st.self, "", count_blob, &count, &g->err);
    g->st.table->has_logs(g->st.self, &found, &g->err);
    if (!g->st.table->blob_get(g->st.self, "keyring", &blob, &got, &g->err))
        sessile_free(blob);
    if (!g->st.table->open(g->st.self, "main", "a", &log, &g->err)) {
        if (!g->st.table->read(log, 0, 0, out, sizeof out, &got, &g->err) && got == 14) {
            int differ = 0;
            for (size_t i = 0; i < 14; i++)
                differ += out[i] != "one\ntwo\nthree\n"[i];
            if (differ > 1)
                fail_msg("byte %zu: %d bytes differ", at, differ);
        }
        g->st.table->append(log, &end, line, 5, 1, tag, &poisoned, &g->err);
        g->st.table->close(log);
    }
    store_close(&g->st);
}

static void a_byte_that_flipped_harms_nothing_else(void **state)
{
    sqlite_place *g = *state;
    size_t size;
    make(g);
    char *good = bytes_of(g->path, &size);
    const char *step_text = getenv("SESSILE_TEST_FLIP_STEP");
    size_t step = step_text ? strtoul(step_text, NULL, 10) : 1009;
    for (size_t at = 0; at < size; at += at < 108 ? 1 : step ? step : 1) {
        int fd = open(g->path, O_WRONLY | O_TRUNC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, good, size), size);
        char bad = (char)(good[at] ^ (at % 2 ? 0xff : 0x01));
        assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
        close(fd);
        use(g, at);
        char beside[320];
        snprintf(beside, sizeof beside, "%s-wal", g->path);
        unlink(beside);
        snprintf(beside, sizeof beside, "%s-shm", g->path);
        unlink(beside);
        snprintf(beside, sizeof beside, "%s-journal", g->path);
        unlink(beside);
    }
    free(good);
}

/* ------------------------------------------------------------------ files beside it */

static void put32(unsigned char *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(n >> (24 - 8 * i));
}

/* A hot journal that ends with the name of a file of the user's: SQLite removes it. */
static void a_journal_that_names_another_file_removes_nothing(void **state)
{
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9,
                                           0x20, 0xa1, 0x63, 0xd7};
    sqlite_place *g = *state;
    char victim[320], journal[320];
    unsigned char bytes[512 + 4 + 320 + 16] = {0};
    struct stat st;
    make(g);
    snprintf(victim, sizeof victim, "%s/diary", g->folder);
    FILE *f = fopen(victim, "w");
    assert_non_null(f);
    fputs("precious", f);
    fclose(f);
    assert_int_equal(stat(g->path, &st), 0);
    memcpy(bytes, magic, 8);
    put32(bytes + 16, (uint32_t)(st.st_size / 4096));
    put32(bytes + 20, 512);
    put32(bytes + 24, 4096);
    size_t at = 512, length = strlen(victim);
    uint32_t sum = 0;
    put32(bytes + at, 0x40000000 / 4096 + 1);
    memcpy(bytes + at + 4, victim, length);
    for (size_t i = 0; i < length; i++)
        sum += (uint32_t)victim[i];
    at += 4 + length;
    put32(bytes + at, (uint32_t)length);
    put32(bytes + at + 4, sum);
    memcpy(bytes + at + 8, magic, 8);
    snprintf(journal, sizeof journal, "%s-journal", g->path);
    int fd = open(journal, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, at + 16), at + 16);
    close(fd);
    assert_int_equal(sqlite_place_open(g, g->path), SESSILE_DENIED);
    assert_non_null(strstr(g->err.message, "-journal names another file"));
    assert_int_equal(stat(victim, &st), 0);
    unlink(journal);
    must(sqlite_place_open(g, g->path), &g->err);
}

static void a_log_that_was_unlinked_is_not_acknowledged(void **state)
{
    static const char *const lost[] = {"-wal", ""};
    sqlite_place *g = *state;
    for (int i = 0; i < 2; i++) {
        char path[320];
        make(g);
        must(sqlite_place_open(g, g->path), &g->err);
        sqlite_place_log(g, "b", "one\n");
        snprintf(path, sizeof path, "%s%s", g->path, lost[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(
            g->st.table->create(g->st.self, "main", "c", "one\n", 4, &g->err),
            SESSILE_IO);
        assert_non_null(strstr(g->err.message, "open it again"));
        assert_int_equal(
            g->st.table->create(g->st.self, "main", "d", "one\n", 4, &g->err),
            SESSILE_IO);
        store_close(&g->st);
        snprintf(path, sizeof path, "%s-wal", g->path);
        unlink(path);
        snprintf(path, sizeof path, "%s-shm", g->path);
        unlink(path);
    }
}

static void what_lies_beside_it_is_private_whatever_the_umask(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    sqlite_place *g = *state;
    char path[320];
    struct stat st;
    mode_t before = umask(0);
    must(sqlite_place_open(g, g->path), &g->err);
    sqlite_place_log(g, "a", "one\n");
    umask(before);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", g->path, suffixes[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

static void names_that_are_no_path_are_told(void **state)
{
    static const char *const odd[] = {"a?mode=memory", "%2e%2e", "x#y", "-", "a b\n"};
    sqlite_place *g = *state;
    char path[400];
    struct stat st;
    assert_int_equal(sqlite_place_open(g, ":memory:"), SESSILE_INVALID);
    assert_non_null(strstr(g->err.message, "ram:"));
    assert_int_equal(sqlite_place_open(g, "file:x.db?mode=memory"), SESSILE_INVALID);
    assert_int_equal(sqlite_place_open(g, ""), SESSILE_INVALID);
    snprintf(path, sizeof path, "%s/fifo", g->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sqlite_place_open(g, path), SESSILE_DENIED);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        snprintf(path, sizeof path, "%s/%s", g->folder, odd[i]);
        must(sqlite_place_open(g, path), &g->err);
        sqlite_place_log(g, "a", "one\n");
        assert_int_equal(stat(path, &st), 0);
        store_close(&g->st);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQLITE_TEST(tables_that_were_changed_are_refused),
        SQLITE_TEST(another_encoding_is_refused),
        SQLITE_TEST(triggers_of_others_do_nothing),
        SQLITE_TEST(names_that_repeat_end_the_list),
        SQLITE_TEST(names_that_are_no_text_fit_or_are_refused),
        SQLITE_TEST(rows_that_lie_cost_what_they_held),
        SQLITE_TEST(times_that_no_clock_has_are_listed),
        SQLITE_TEST(a_byte_that_flipped_harms_nothing_else),
        SQLITE_TEST(a_journal_that_names_another_file_removes_nothing),
        SQLITE_TEST(a_log_that_was_unlinked_is_not_acknowledged),
        SQLITE_TEST(what_lies_beside_it_is_private_whatever_the_umask),
        SQLITE_TEST(names_that_are_no_path_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
