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
#include "support/logs.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

typedef struct ground {
    char *folder, path[300];
    os_table os;
    int64_t later_ms; /* how far its clock is ahead */
    store st;
    sessile_error err;
} ground;

static int64_t late_clock(void *ud)
{
    return os_posix.now_ms(os_posix.ud) + ((ground *)ud)->later_ms;
}

static int set_up(void **state)
{
    ground *g = calloc(1, sizeof *g);
    if (!g)
        return -1;
    g->folder = folder_make();
    g->os = os_posix;
    snprintf(g->path, sizeof g->path, "%s/s.db", g->folder);
    *state = g;
    return 0;
}

static int tear_down(void **state)
{
    ground *g = *state;
    store_close(&g->st);
    folder_remove(g->folder);
    free(g);
    return 0;
}

static sessile_status open_at(ground *g, const char *path)
{
    g->os.ud = g;
    g->os.now_ms = late_clock;
    return store_sqlite_open(&g->st, path, 2000, &g->os, &allocator_default, &g->err);
}

static void opened(ground *g)
{
    if (open_at(g, g->path))
        fail_msg("%s", g->err.message);
}

static void ok(sessile_status status, const ground *g)
{
    if (status)
        fail_msg("%s: %s", sessile_status_name(status), g->err.message);
}

static void create(ground *g, const char *name, const char *text)
{
    ok(g->st.table->create(g->st.self, "main", name, text, strlen(text), &g->err), g);
}

static sessile_backend_log *log_of(ground *g, const char *name)
{
    sessile_backend_log *log;
    ok(g->st.table->open(g->st.self, "main", name, &log, &g->err), g);
    return log;
}

static void refused(ground *g, const char *path, sessile_status expected,
                    const char *says)
{
    assert_int_equal(open_at(g, path), expected);
    assert_null(g->st.table);
    if (!strstr(g->err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", g->err.message, says);
}

/* Another program with the file open. */
static char *sql(const ground *g, const char *text, char out[4096])
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

static char *bytes_of(const char *path, size_t *size)
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

static int entries_in(const char *folder)
{
    char command[400];
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *f = popen(command, "r");
    int n = -1;
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

/* ------------------------------------------------------------------ whose file */

static void opening_makes_nothing(void **state)
{
    ground *g = *state;
    sessile_backend_log *log;
    char *blob;
    size_t size;
    int found = 1;

    opened(g);
    assert_int_equal(g->st.table->blob_get(g->st.self, "keyring", &blob, &size, &g->err),
                     SESSILE_NOTFOUND);
    assert_int_equal(g->st.table->open(g->st.self, "main", "a", &log, &g->err),
                     SESSILE_NOTFOUND);
    ok(g->st.table->has_logs(g->st.self, &found, &g->err), g);
    assert_int_equal(found, 0);
    ok(g->st.table->list_cache_drop(g->st.self, NULL, &g->err), g);
    assert_int_equal(entries_in(g->folder), 0);
    create(g, "a", "one\n");
    struct stat st;
    assert_int_equal(stat(g->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    store_close(&g->st);
    assert_int_equal(entries_in(g->folder), 1); /* the WAL is taken in at the end */
}

static void folders_above_it_are_made(void **state)
{
    ground *g = *state;
    char path[400];
    struct stat st;

    snprintf(path, sizeof path, "%s/a/b/s.db", g->folder);
    ok(open_at(g, path), g);
    create(g, "a", "one\n");
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
    ground *g = *state;
    char answer[4096], *before, *after;
    size_t size, size_after;

    for (int i = 0; i < 4; i++) {
        if (foreign[i]) {
            sql(g, foreign[i], answer);
        } else {
            FILE *f = fopen(g->path, "w");
            fputs("dear diary, today I have written more than a hundred bytes of text, "
                  "which is why this looks like a file that could be a database",
                  f);
            fclose(f);
        }
        chmod(g->path, 0600);
        before = bytes_of(g->path, &size);
        refused(g, g->path, SESSILE_INVALID, "it was left as it is");
        after = bytes_of(g->path, &size_after);
        assert_int_equal(size, size_after);
        assert_memory_equal(before, after, size);
        assert_int_equal(entries_in(g->folder), 1);
        free(before);
        free(after);
        unlink(g->path);
    }
}

/* Made by sqlite3 with nothing in it, or by one of us who was killed at once. */
static void an_empty_database_is_taken(void **state)
{
    ground *g = *state;
    char answer[4096];

    for (int i = 0; i < 2; i++) {
        if (i)
            sql(g, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); DROP TABLE t; VACUUM",
                answer);
        else
            fclose(fopen(g->path, "w"));
        chmod(g->path, 0600);
        opened(g);
        create(g, "a", "one\n");
        store_close(&g->st);
        assert_string_equal(sql(g,
                                "PRAGMA application_id; PRAGMA user_version;"
                                "PRAGMA journal_mode; PRAGMA integrity_check",
                                answer),
                            "1936028531\n1\nwal\nok");
        unlink(g->path);
    }
}

static void links_and_open_doors_are_denied(void **state)
{
    ground *g = *state;
    char other[320], path[400];

    opened(g);
    create(g, "a", "one\n");
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
    opened(g); /* none of it has changed anything */
}

static void a_store_is_found_below_a_folder_that_is_a_link(void **state)
{
    ground *g = *state;
    char other[320], path[400];

    snprintf(other, sizeof other, "%s/in", g->folder);
    assert_int_equal(mkdir(other, 0700), 0);
    snprintf(other, sizeof other, "%s/way", g->folder);
    assert_int_equal(symlink(g->folder, other), 0);
    snprintf(path, sizeof path, "%s/in/s.db", other);
    ok(open_at(g, path), g);
    create(g, "a", "one\n");
}

static void a_newer_schema_names_both_versions(void **state)
{
    ground *g = *state;
    char answer[4096];

    opened(g);
    create(g, "a", "one\n");
    store_close(&g->st);
    sql(g, "PRAGMA user_version = 7", answer);
    refused(g, g->path, SESSILE_UNSUPPORTED, "version 7");
    assert_non_null(strstr(g->err.message, "version 1"));
}

static void a_schema_is_brought_up_in_one_step_or_not_at_all(void **state)
{
    static const char *const good[] = {"CREATE TABLE a (x)", "CREATE TABLE b (x)",
                                       "ALTER TABLE b ADD COLUMN y"};
    static const char *const bad[] = {"CREATE TABLE a (x)", "CREATE TABLE b (x)",
                                      "ALTER TABLE c ADD COLUMN y"};
    ground *g = *state;
    char answer[4096];
    sqlite3 *db;

    assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE a (x); PRAGMA user_version = 1; BEGIN", NULL, NULL,
                 NULL);
    assert_int_equal(sqlite_schema_migrate(db, bad, 1, 3), SQLITE_ERROR);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    assert_string_equal(
        sql(g, "PRAGMA user_version; SELECT name FROM sqlite_schema", answer), "1\na");
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    assert_int_equal(sqlite_schema_migrate(db, good, 1, 3), SQLITE_OK);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_string_equal(
        sql(g, "PRAGMA user_version; SELECT group_concat(name) FROM sqlite_schema",
            answer),
        "3\na,b");
}

static void a_damaged_database_says_what_to_do(void **state)
{
    ground *g = *state;
    sessile_backend_log *log;
    char text[200], out[200];
    size_t got;

    opened(g);
    create(g, "a", "one\n");
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "log%03d", i);
        create(g, text, "one\n");
    }
    store_close(&g->st);
    FILE *f = fopen(g->path, "r+b");
    memset(out, 0x5a, sizeof out);
    for (long at = 4096; at < 15 * 4096; at += 4096) { /* not the schema */
        fseek(f, at, SEEK_SET);
        fwrite(out, 1, sizeof out, f);
    }
    fclose(f);
    sessile_status status = open_at(g, g->path);
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
    ground *g = *state;
    char other[320];
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    int poisoned;

    opened(g);
    create(g, "a", "one\n");
    sessile_backend_log *log = log_of(g, "a");
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
    ground *g = *state;
    const sessile_backend *t;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    char *line = malloc(LARGE), *read = malloc(LARGE + 64);
    size_t got;
    int poisoned;

    opened(g);
    t = g->st.table;
    create(g, "a", "one\n");
    sessile_backend_log *log = log_of(g, "a");
    for (int i = 0; i < LARGE; i++)
        line[i] = (char)('a' + i * 7 % 23);
    line[LARGE - 1] = '\n';
    ok(t->append(log, &end, line, LARGE, 1, tag, &poisoned, &g->err), g);
    ok(t->append(log, &end, "x\ny\n", 4, 2, tag, &poisoned, &g->err), g);
    /* the hint stays at the entry that a read begins in, as a reader has it */
    for (size_t piece = 100000; piece < LARGE; piece += 700001) {
        size_t at = 0;
        for (got = 1; got; at += got)
            ok(t->read(log,
                       at < 4           ? 0
                       : at < LARGE + 4 ? 1
                                        : 2,
                       at, read + at, piece, &got, &g->err),
               g);
        assert_int_equal(at, LARGE + 8);
        assert_memory_equal(read, "one\n", 4);
        assert_memory_equal(read + 4, line, LARGE);
        assert_memory_equal(read + 4 + LARGE, "x\ny\n", 4);
    }
    /* back and forth, with hints that are wrong */
    for (uint64_t at = LARGE + 7; at > 0; at = at > 40009 ? at - 40009 : 0) {
        ok(t->read(log, at % 5, at, read, 3, &got, &g->err), g);
        if (at >= 4 && at + 3 < LARGE + 4) {
            assert_int_equal(got, 3);
            assert_memory_equal(read, line + at - 4, 3);
        }
    }
    free(line);
    free(read);
    t->close(log);
}

static int others_seen;
static int count_other(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    (void)folder;
    (void)bytes;
    others_seen++;
    return strncmp(file, ".new-", 5) == 0 && *(int *)arg;
}

static void drafts_that_nobody_writes_are_swept_after_an_hour(void **state)
{
    ground *g = *state;
    sessile_backend_draft *draft, *left;
    int yes = 1;

    opened(g);
    ok(g->st.table->draft_new(g->st.self, "main", "a", &left, &g->err), g);
    ok(g->st.table->draft_write(left, "abc\n", 4, &g->err), g);
    ok(g->st.table->sweep(g->st.self, count_other, &yes, &g->err), g);
    assert_int_equal(others_seen, 0);
    g->later_ms = 3599000;
    ok(g->st.table->draft_new(g->st.self, "main", "b", &draft, &g->err), g);
    g->later_ms = 3601000;
    ok(g->st.table->sweep(g->st.self, count_other, &yes, &g->err), g);
    assert_int_equal(others_seen, 1);
    /* who was stopped that long is told, and nothing takes the log's name */
    assert_int_equal(g->st.table->draft_write(left, "d\n", 2, &g->err), SESSILE_CONFLICT);
    assert_int_equal(g->st.table->draft_publish(left, &g->err), SESSILE_CONFLICT);
    ok(g->st.table->draft_write(draft, "one\n", 4, &g->err), g);
    ok(g->st.table->draft_publish(draft, &g->err), g);
    g->st.table->close(log_of(g, "b"));
    others_seen = 0;
    ok(g->st.table->list_others(g->st.self, NULL, count_other, &yes, &g->err), g);
    assert_int_equal(others_seen, 0);
}

/* Lines that are handed over in pieces that end anywhere. */
static void a_draft_takes_lines_in_pieces(void **state)
{
    static const char text[] = "first\nsecond line\n\nfourth\n";
    ground *g = *state;
    sessile_backend_draft *draft;
    char out[100], answer[4096];
    size_t got;

    opened(g);
    for (size_t piece = 1; piece < 9; piece++) {
        char name[20];
        snprintf(name, sizeof name, "log%zu", piece);
        ok(g->st.table->draft_new(g->st.self, "main", name, &draft, &g->err), g);
        for (size_t at = 0; at < sizeof text - 1; at += piece)
            ok(g->st.table->draft_write(
                   draft, text + at,
                   sizeof text - 1 - at < piece ? sizeof text - 1 - at : piece, &g->err),
               g);
        ok(g->st.table->draft_publish(draft, &g->err), g);
        sessile_backend_log *log = log_of(g, name);
        ok(g->st.table->read(log, 0, 0, out, sizeof out, &got, &g->err), g);
        assert_int_equal(got, sizeof text - 1);
        assert_memory_equal(out, text, got);
        g->st.table->close(log);
    }
    assert_string_equal(sql(g,
                            "SELECT DISTINCT count, bytes FROM sessions; SELECT"
                            " DISTINCT id, at FROM entries ORDER BY id",
                            answer),
                        "4|26\n0|0\n1|6\n2|18\n3|19");
}

static int is_in(const char *path, const char *text)
{
    size_t size;
    char *bytes = bytes_of(path, &size);
    int found = bytes && memmem(bytes, size, text, strlen(text));
    free(bytes);
    return found;
}

static void nothing_is_left_of_what_was_removed(void **state)
{
    ground *g = *state;
    char wal[320], record[6000];
    sessile_log_end end = {1, 0, {0}};
    unsigned char tag[16] = {1};
    int poisoned;

    snprintf(wal, sizeof wal, "%s-wal", g->path);
    opened(g);
    create(g, "keep", "kept-bytes\n");
    create(g, "a", "secret-of-the-log\n");
    end.bytes = 18;
    sessile_backend_log *log = log_of(g, "a");
    memset(record, 'x', sizeof record); /* pages of its own */
    memcpy(record + 5000, "secret-of-the-log", 17);
    record[sizeof record - 1] = '\n';
    ok(g->st.table->append(log, &end, record, sizeof record, 1, tag, &poisoned, &g->err),
       g);
    ok(g->st.table->cache_write(log, 0, "secret-of-the-log", 17, &g->err), g);
    ok(g->st.table->blob_put_new(g->st.self, "ring", "secret-of-the-ring", 18, &g->err),
       g);
    ok(g->st.table->blob_put_new(g->st.self, "user", "secret-of-the-user", 18, &g->err),
       g);
    assert_true(is_in(g->path, "secret-of-the-log") || is_in(wal, "secret-of-the-log"));
    ok(g->st.table->remove(log, 18, &g->err), g);
    g->st.table->close(log);
    ok(g->st.table->blob_replace(g->st.self, "ring", "secret-of-the-ring", 18, "new", 3,
                                 &g->err),
       g);
    ok(g->st.table->blob_remove(g->st.self, "user", &g->err), g);
    /* while the store is open, and nothing was vacuumed */
    assert_false(is_in(g->path, "secret-of-the-"));
    assert_false(is_in(wal, "secret-of-the-"));
    assert_true(is_in(g->path, "kept-bytes"));
}

/* ------------------------------------------------------------------ with SQL */

static void plain_rows_can_be_asked(void **state)
{
    ground *g = *state;
    sessile_store_options options;
    sessile_store *st;
    sessile_session *s;
    sessile_checkpoint_options checkpoint = {0};
    sessile_id id;
    char url[320], answer[4096];

    snprintf(url, sizeof url, "sqlite:%s", g->path);
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    ok(sessile_open(&st, url, &options, &g->err), g);
    s = session_made(st, "Café no. 5");
    say(s, "user", "hello");
    say_json(s,
             "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"one\"}"
             ",{\"type\":\"text\",\"text\":\"two\"}]}");
    put_entry(s, "metadata", SESSILE_NO_ID, "{\"title\":\"a \\\"metadata\\\" of it\"}");
    say(s, "user", "\\\"type\\\":\\\"metadata\\\" is what I say");
    assert_string_equal(
        sql(g,
            "SELECT session_id, session_agent, title, entries, head,"
            " updated_at >= (SELECT max(time) FROM transcript) FROM overview",
            answer),
        "Café no. 5|main|a \"metadata\" of it|5|00000004|1");
    move_head(s, 1);
    assert_string_equal(sql(g, "SELECT head FROM overview", answer), "00000001");
    assert_string_equal(
        sql(g, "SELECT entry, parent, type, role, content FROM transcript", answer),
        "00000000|NULL|session|NULL|NULL\n00000001|00000000|message|user|hello\n"
        "00000002|00000001|message|assistant|one\ntwo\n"
        "00000003|00000002|metadata|NULL|NULL\n"
        "00000004|00000002|message|user|\"type\":\"metadata\" is what I say\n"
        "00000005|00000004|head|NULL|NULL");
    /* a checkpoint that was withdrawn is none */
    checkpoint.name = sessile_text("first");
    ok(sessile_checkpoint(s, &checkpoint, &id, &g->err), g);
    checkpoint.name = sessile_text("second");
    checkpoint.state = sessile_text("{\"step\":3}");
    ok(sessile_checkpoint(s, &checkpoint, NULL, &g->err), g);
    ok(sessile_checkpoint_delete(s, id, &g->err), g);
    assert_string_equal(sql(g,
                            "SELECT name IS NOT NULL, entry, checkpoint, head, reason,"
                            " messages, tokens > 0, state FROM checkpoints",
                            answer),
                        "1|00000007|second|00000001|manual|1|1|{\"step\":3}");
    /* with the index, which is all that one session needs */
    assert_non_null(strstr(sql(g,
                               "EXPLAIN QUERY PLAN SELECT role FROM transcript"
                               " WHERE session = 1",
                               answer),
                           "sqlite_autoindex_entries_1 (session=?)"));
    session_closed(s);
    sessile_store_close(st);
}

static void sealed_rows_say_nothing(void **state)
{
    ground *g = *state;
    sessile_store_options options;
    sessile_store *st;
    sessile_session *s;
    char url[320], answer[4096];

    snprintf(url, sizeof url, "sqlite:%s", g->path);
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = "a passphrase that is long enough";
    ok(sessile_open(&st, url, &options, &g->err), g);
    s = session_made(st, "Café no. 5");
    say(s, "user", "hello-in-the-clear");
    assert_string_equal(sql(g,
                            "SELECT entry, type, role, content, author, data"
                            " FROM transcript",
                            answer),
                        "00000000|NULL|NULL|NULL|NULL|NULL\n"
                        "00000001|NULL|NULL|NULL|NULL|NULL");
    assert_string_equal(sql(g,
                            "SELECT session_id, title, head, entries"
                            " FROM overview",
                            answer),
                        "NULL|NULL|NULL|2");
    session_closed(s);
    sessile_store_close(st);
    assert_false(is_in(g->path, "hello-in-the-clear"));
    assert_false(is_in(g->path, "Caf"));
}

static void views_stand_any_bytes(void **state)
{
    static const char deep[] = "{\"type\":\"message\",\"data\":[1,{\"role\":{}}]}\n\0 "
                               "{\"a\":[[[[[[[[[[[[[[[[[[[[[["
                               "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    ground *g = *state;
    sessile_log_end end = {1, 3, {0}};
    unsigned char tag[16] = {1};
    char answer[4096], garbage[512];
    int poisoned;

    opened(g);
    create(g, "a", "{}\n");
    sessile_backend_log *log = log_of(g, "a");
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)(i * 37);
    for (size_t i = 0; i < 30; i++)
        ok(g->st.table->append(log, &end, i % 2 ? garbage : deep,
                               i % 2 ? i * 17 + 1 : i * 17 % (sizeof deep - 1) + 1, 1,
                               tag, &poisoned, &g->err),
           g);
    assert_string_equal(sql(g,
                            "SELECT count(*) FROM (SELECT * FROM transcript);"
                            "SELECT count(*) FROM (SELECT * FROM checkpoints);"
                            "SELECT count(*) FROM (SELECT * FROM overview)",
                            answer),
                        "31\n0\n1");
    g->st.table->close(log);
}

/* ------------------------------------------------------------------ limits and rights */

static int is_network = 1;
static int on_network(void *ud, int fd, char *name, size_t size)
{
    (void)ud;
    (void)fd;
    snprintf(name, size, "nfs");
    return is_network;
}

static void network_file_systems_are_refused_unless_allowed(void **state)
{
    ground *g = *state;
    int found;

    g->os.network = on_network;
    opened(g);
    assert_int_equal(g->st.table->create(g->st.self, "main", "a", "one\n", 4, &g->err),
                     SESSILE_UNSUPPORTED);
    assert_non_null(strstr(g->err.message, "nfs"));
    assert_non_null(strstr(g->err.message, "--network"));
    assert_int_equal(entries_in(g->folder), 0);
    store_sqlite_allow_network(&g->st);
    create(g, "a", "one\n");
    store_close(&g->st);
    opened(g); /* nor read: the memory that SQLite shares is not shared there */
    assert_int_equal(g->st.table->has_logs(g->st.self, &found, &g->err),
                     SESSILE_UNSUPPORTED);
}

/* As a user who is not root, in a process of its own. */
static int without_rights(ground *g)
{
    char folder[320];
    sessile_backend_log *log;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    char out[8];
    size_t got = 0;
    int poisoned;

    snprintf(folder, sizeof folder, "%s/mine", g->folder);
    snprintf(g->path, sizeof g->path, "%s/mine/s.db", g->folder);
    if (mkdir(folder, 0700) || open_at(g, g->path) ||
        g->st.table->create(g->st.self, "main", "a", "one\n", 4, &g->err))
        return 1;
    store_close(&g->st);
    chmod(g->path, 0400);
    if (open_at(g, g->path) ||
        g->st.table->open(g->st.self, "main", "a", &log, &g->err) ||
        g->st.table->read(log, 0, 0, out, sizeof out, &got, &g->err) || got != 4)
        return 2;
    if (g->st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &g->err) !=
            SESSILE_DENIED ||
        poisoned || !strstr(g->err.message, "may only be read"))
        return 3;
    g->st.table->close(log);
    store_close(&g->st);
    chmod(g->path, 0600);
    chmod(folder, 0500);
    sessile_status status = open_at(g, g->path);
    if (!status) {
        status = g->st.table->create(g->st.self, "main", "b", "one\n", 4, &g->err);
        store_close(&g->st);
    }
    if (status != SESSILE_DENIED || !strstr(g->err.message, "folder"))
        return 4;
    snprintf(g->path, sizeof g->path, "%s/mine/t.db", g->folder);
    status = open_at(g, g->path);
    if (!status) {
        status = g->st.table->create(g->st.self, "main", "b", "one\n", 4, &g->err);
        store_close(&g->st);
    }
    return status == SESSILE_DENIED ? 0 : 5;
}

static void what_may_only_be_read_is_read_and_says_so(void **state)
{
    enum { UNREACHED = 8 }; /* as in a root folder that is its owner's alone */
    ground *g = *state;
    int status;

    if (geteuid() == 0) { /* folders above TMPDIR may be root's alone */
        char *place = strdup("/tmp/session.XXXXXX");
        assert_non_null(mkdtemp(place));
        assert_int_equal(chown(place, 65534, 65534), 0);
        folder_remove(g->folder);
        g->folder = place;
    }
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(9);
        if (access(g->folder, W_OK))
            _exit(UNREACHED);
        int wrong = without_rights(g);
        if (wrong)
            fprintf(stderr, "# %s\n", g->err.message);
        _exit(wrong);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == UNREACHED) {
        print_message("# no user without rights can come to %s here\n", g->folder);
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Everything once; the first thing that fails. */
static sessile_status all_of_it(ground *g, const allocator *a)
{
    const sessile_backend *t;
    sessile_backend_log *log = NULL;
    sessile_backend_draft *draft;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    char out[64], *blob, kept[300];
    size_t got;
    int poisoned, none = 0;
    sessile_status s = store_sqlite_open(&g->st, g->path, 2000, &os_posix, a, &g->err);

    if (s)
        return s;
    t = g->st.table;
    s = t->create(g->st.self, "main", "a", "one\n", 4, &g->err);
    s = s && s != SESSILE_EXISTS ? s : t->open(g->st.self, "main", "a", &log, &g->err);
    s = s ? s : t->append(log, &end, "two\n", 4, 1, tag, &poisoned, &g->err);
    s = s ? s : t->read(log, 0, 0, out, sizeof out, &got, &g->err);
    s = s ? s : t->cache_write(log, 0, "cached", 6, &g->err);
    s = s ? s : t->cache_read(log, 0, out, sizeof out, &got, &g->err);
    s = s ? s : t->list_cache_put(g->st.self, "main", "list_cache", 5, &g->err);
    s = s ? s : t->list_cache_get(g->st.self, "main", &blob, &got, &g->err);
    if (!s)
        sessile_free(blob);
    s = s ? s : t->list_others(g->st.self, NULL, count_other, &none, &g->err);
    s = s ? s : t->blob_list(g->st.self, "k", NULL, NULL, &g->err);
    s = s ? s : t->draft_new(g->st.self, "main", "a", &draft, &g->err);
    if (!s) {
        s = t->draft_write(draft, "three\n", 6, &g->err);
        if (s)
            t->draft_drop(draft);
        else
            s = t->draft_replace(draft, log, 1, kept, sizeof kept, &g->err);
    }
    t->close(log);
    return s;
}

static void memory_that_runs_out_is_told_and_changes_nothing(void **state)
{
    ground *g = *state;
    unsigned long failures = 0;
    meter memory;
    char answer[4096];

    for (size_t at = 1;; at++) { /* the engine's */
        memset(&memory, 0, sizeof memory);
        memory.fail_at = at;
        allocator a = meter_allocator(&memory);
        unlink(g->path);
        sessile_status status = all_of_it(g, &a);
        store_close(&g->st);
        assert_int_equal(memory.live, 0);
        if (!status)
            break;
        assert_int_equal(status, SESSILE_NOMEM);
        failures++;
    }
    for (int most = 20; most < 400; most += 5) { /* SQLite's */
        unlink(g->path);
        sqlite3_hard_heap_limit64(most * 1024);
        sessile_status status = all_of_it(g, &allocator_default);
        sqlite3_hard_heap_limit64(0);
        store_close(&g->st);
        if (!status && failures > 30)
            break;
        if (status && status != SESSILE_NOMEM)
            fail_msg("with %d KiB: %s: %s", most, sessile_status_name(status),
                     g->err.message);
        failures += status != SESSILE_OK;
        if (access(g->path, F_OK) == 0)
            assert_string_equal(sql(g, "PRAGMA integrity_check", answer), "ok");
    }
    assert_true(failures > 30);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(opening_makes_nothing),
        CASE(folders_above_it_are_made),
        CASE(files_of_others_are_refused_and_left_as_they_are),
        CASE(an_empty_database_is_taken),
        CASE(links_and_open_doors_are_denied),
        CASE(a_store_is_found_below_a_folder_that_is_a_link),
        CASE(a_newer_schema_names_both_versions),
        CASE(a_schema_is_brought_up_in_one_step_or_not_at_all),
        CASE(a_damaged_database_says_what_to_do),
        CASE(a_database_that_was_moved_away_takes_nothing),
        CASE(an_entry_of_megabytes_is_read_in_pieces),
        CASE(drafts_that_nobody_writes_are_swept_after_an_hour),
        CASE(a_draft_takes_lines_in_pieces),
        CASE(nothing_is_left_of_what_was_removed),
        CASE(plain_rows_can_be_asked),
        CASE(sealed_rows_say_nothing),
        CASE(views_stand_any_bytes),
        CASE(network_file_systems_are_refused_unless_allowed),
        CASE(what_may_only_be_read_is_read_and_says_so),
        CASE(memory_that_runs_out_is_told_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
