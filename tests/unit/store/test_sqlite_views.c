/*
 * test_sqlite_views.c: what a person sees of a SQLite store with SQL, and stores that
 * cannot be used as wanted: on a network, read only, without memory.
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

/* ------------------------------------------------------------------ with SQL */

static void plain_rows_can_be_asked(void **state)
{
    sqlite_place *g = *state;
    sessile_store_options options;
    sessile_store *st;
    sessile_session *s;
    sessile_checkpoint_options checkpoint = {0};
    sessile_id id;
    char url[320], answer[4096];

    snprintf(url, sizeof url, "sqlite:%s", g->path);
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&st, url, &options, &g->err), &g->err);
    s = session_made(st, "Café no. 5");
    say(s, "user", "hello");
    say_json(s,
             "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"one\"}"
             ",{\"type\":\"text\",\"text\":\"two\"}]}");
    put_entry(s, "metadata", SESSILE_NO_ID, "{\"title\":\"a \\\"metadata\\\" of it\"}");
    say(s, "user", "\\\"type\\\":\\\"metadata\\\" is what I say");
    assert_string_equal(
        sqlite_sql(g,
                   "SELECT session_id, session_agent, title, entries, head,"
                   " updated_at >= (SELECT max(time) FROM transcript) FROM overview",
                   answer),
        "Café no. 5|main|a \"metadata\" of it|5|00000004|1");
    move_head(s, 1);
    assert_string_equal(sqlite_sql(g, "SELECT head FROM overview", answer), "00000001");
    assert_string_equal(
        sqlite_sql(g, "SELECT entry, parent, type, role, content FROM transcript",
                   answer),
        "00000000|NULL|session|NULL|NULL\n00000001|00000000|message|user|hello\n"
        "00000002|00000001|message|assistant|one\ntwo\n"
        "00000003|00000002|metadata|NULL|NULL\n"
        "00000004|00000002|message|user|\"type\":\"metadata\" is what I say\n"
        "00000005|00000004|head|NULL|NULL");
    /* a checkpoint that was withdrawn is none */
    checkpoint.name = sessile_text("first");
    must(sessile_checkpoint(s, &checkpoint, &id, &g->err), &g->err);
    checkpoint.name = sessile_text("second");
    checkpoint.state = sessile_text("{\"step\":3}");
    must(sessile_checkpoint(s, &checkpoint, NULL, &g->err), &g->err);
    must(sessile_checkpoint_delete(s, id, &g->err), &g->err);
    assert_string_equal(
        sqlite_sql(g,
                   "SELECT name IS NOT NULL, entry, checkpoint, head, reason,"
                   " messages, tokens > 0, state FROM checkpoints",
                   answer),
        "1|00000007|second|00000001|manual|1|1|{\"step\":3}");
    /* with the index, which is all that one session needs */
    assert_non_null(strstr(sqlite_sql(g,
                                      "EXPLAIN QUERY PLAN SELECT role FROM transcript"
                                      " WHERE session = 1",
                                      answer),
                           "sqlite_autoindex_entries_1 (session=?)"));
    session_closed(s);
    sessile_store_close(st);
}

static void sealed_rows_say_nothing(void **state)
{
    sqlite_place *g = *state;
    sessile_store_options options;
    sessile_store *st;
    sessile_session *s;
    char url[320], answer[4096];

    snprintf(url, sizeof url, "sqlite:%s", g->path);
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = "a passphrase that is long enough";
    must(sessile_open(&st, url, &options, &g->err), &g->err);
    s = session_made(st, "Café no. 5");
    say(s, "user", "hello-in-the-clear");
    assert_string_equal(sqlite_sql(g,
                                   "SELECT entry, type, role, content, author, data"
                                   " FROM transcript",
                                   answer),
                        "00000000|NULL|NULL|NULL|NULL|NULL\n"
                        "00000001|NULL|NULL|NULL|NULL|NULL");
    assert_string_equal(sqlite_sql(g,
                                   "SELECT session_id, title, head, entries"
                                   " FROM overview",
                                   answer),
                        "NULL|NULL|NULL|2");
    session_closed(s);
    sessile_store_close(st);
    assert_false(is_in_file(g->path, "hello-in-the-clear"));
    assert_false(is_in_file(g->path, "Caf"));
}

static void views_stand_any_bytes(void **state)
{
    static const char deep[] = "{\"type\":\"message\",\"data\":[1,{\"role\":{}}]}\n\0 "
                               "{\"a\":[[[[[[[[[[[[[[[[[[[[[["
                               "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    sqlite_place *g = *state;
    sessile_log_end end = {1, 3, {0}};
    unsigned char tag[16] = {1};
    char answer[4096], garbage[512];
    int poisoned;

    sqlite_opened(g);
    sqlite_place_log(g, "a", "{}\n");
    sessile_backend_log *log = sqlite_place_resume(g, "a");
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)(i * 37);
    for (size_t i = 0; i < 30; i++)
        must(g->st.table->append(log, &end, i % 2 ? garbage : deep,
                                 i % 2 ? i * 17 + 1 : i * 17 % (sizeof deep - 1) + 1, 1,
                                 tag, &poisoned, &g->err),
             &g->err);
    assert_string_equal(sqlite_sql(g,
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
    sqlite_place *g = *state;
    int found;

    g->os.network = on_network;
    sqlite_opened(g);
    assert_int_equal(g->st.table->create(g->st.self, "main", "a", "one\n", 4, &g->err),
                     SESSILE_UNSUPPORTED);
    assert_non_null(strstr(g->err.message, "nfs"));
    assert_non_null(strstr(g->err.message, "--network"));
    assert_int_equal(sqlite_entries(g->folder), 0);
    store_sqlite_allow_network(&g->st);
    sqlite_place_log(g, "a", "one\n");
    store_close(&g->st);
    sqlite_opened(g); /* nor read: the memory that SQLite shares is not shared there */
    assert_int_equal(g->st.table->has_logs(g->st.self, &found, &g->err),
                     SESSILE_UNSUPPORTED);
}

/* As a user who is not root, in a process of its own. */
static int without_rights(sqlite_place *g)
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
    if (mkdir(folder, 0700) || sqlite_place_open(g, g->path) ||
        g->st.table->create(g->st.self, "main", "a", "one\n", 4, &g->err))
        return 1;
    store_close(&g->st);
    chmod(g->path, 0400);
    if (sqlite_place_open(g, g->path) ||
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
    sessile_status status = sqlite_place_open(g, g->path);
    if (!status) {
        status = g->st.table->create(g->st.self, "main", "b", "one\n", 4, &g->err);
        store_close(&g->st);
    }
    if (status != SESSILE_DENIED || !strstr(g->err.message, "folder"))
        return 4;
    snprintf(g->path, sizeof g->path, "%s/mine/t.db", g->folder);
    status = sqlite_place_open(g, g->path);
    if (!status) {
        status = g->st.table->create(g->st.self, "main", "b", "one\n", 4, &g->err);
        store_close(&g->st);
    }
    return status == SESSILE_DENIED ? 0 : 5;
}

static void what_may_only_be_read_is_read_and_says_so(void **state)
{
    enum { UNREACHED = 8 }; /* as in a root folder that is its owner's alone */
    sqlite_place *g = *state;
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
static sessile_status all_of_it(sqlite_place *g, const allocator *a)
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
    sqlite_place *g = *state;
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
            assert_string_equal(sqlite_sql(g, "PRAGMA integrity_check", answer), "ok");
    }
    assert_true(failures > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQLITE_TEST(plain_rows_can_be_asked),
        SQLITE_TEST(sealed_rows_say_nothing),
        SQLITE_TEST(views_stand_any_bytes),
        SQLITE_TEST(network_file_systems_are_refused_unless_allowed),
        SQLITE_TEST(what_may_only_be_read_is_read_and_says_so),
        SQLITE_TEST(memory_that_runs_out_is_told_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
