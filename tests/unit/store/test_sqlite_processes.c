/*
 * test_sqlite_processes.c: many processes, and many threads, on one database.
 *
 * Real processes, some of them killed at any moment. What a process was told is safe it
 * notes in a pipe, which outlives it; afterwards all of it is there, once and in order.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/sqlite/open.h"
#include "support/sessions.h"
#include "support/sqlite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { RECORD = 64, PROCESSES = 4, EACH = 60 };

static sessile_status open_at(const sqlite_place *g, int timeout_ms, store *st,
                              sessile_error *err)
{
    return store_sqlite_open(st, g->path, timeout_ms, &os_posix, &allocator_default, err);
}

static void record_of(int who, int which, char out[RECORD + 1])
{
    memset(out, '.', RECORD);
    out[snprintf(out, RECORD, "%d %d", who, which)] = ' ';
    out[RECORD - 1] = '\n';
    out[RECORD] = '\0';
}

static void create(store *st, const char *name)
{
    char record[RECORD + 1];
    sessile_error err = {0};
    record_of(99, 0, record);
    sessile_status status =
        st->table->create(st->self, "main", name, record, RECORD, &err);
    if (status && status != SESSILE_EXISTS)
        fail_msg("%s", err.message);
}

/* One append at whatever end there is; the tag is the record's beginning. */
static sessile_status append_once(const sessile_backend *t, sessile_backend_log *log,
                                  int who, int which, sessile_error *err)
{
    char record[RECORD + 1];
    for (;;) {
        sessile_log_end end = {0, 0, {0}};
        unsigned char tag[16];
        int64_t mtime;
        size_t got;
        int poisoned;
        sessile_status status = t->size(log, &end.bytes, &mtime, err);
        end.count = end.bytes / RECORD;
        if (!status)
            status = t->read(log, end.count - 1, end.bytes - RECORD, end.tag,
                             sizeof end.tag, &got, err);
        if (status)
            return status;
        record_of(who, which, record);
        memcpy(tag, record, sizeof tag);
        status = t->append(log, &end, record, RECORD, 1, tag, &poisoned, err);
        if (status != SESSILE_CONFLICT)
            return status ? status : t->sync(log, err);
    }
}

/* In a process of its own: appends, and notes each that was acknowledged. */
static void work(const sqlite_place *g, const char *name, int who, int first, int count,
                 int notes)
{
    store st = {NULL, NULL};
    sessile_backend_log *log;
    sessile_error err = {0};
    if (!open_at(g, 60000, &st, &err)) {
        if (!st.table->open(st.self, "main", name, &log, &err)) {
            for (int i = first; i < first + count; i++) {
                int note[2] = {who, i};
                if (append_once(st.table, log, who, i, &err))
                    break;
                if (write(notes, note, sizeof note) != sizeof note)
                    break;
            }
            st.table->close(log);
        }
        store_close(&st);
    }
    if (err.code && err.code != SESSILE_CONFLICT)
        fprintf(stderr, "# writer %d: %s\n", who, err.message);
    _exit(!err.code || err.code == SESSILE_CONFLICT ? 0 : 1);
}

/* Which of each writer's records are in the log, in order; `counts` of each. */
static void tally(const sqlite_place *g, const char *name, int writers, int *last)
{
    store st = {NULL, NULL};
    sessile_backend_log *log;
    sessile_error err = {0};
    char record[RECORD];
    size_t got = RECORD;

    if (open_at(g, 5000, &st, &err) || st.table->open(st.self, "main", name, &log, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < writers; i++)
        last[i] = -1;
    for (uint64_t n = 0; got; n++) {
        int who, which;
        if (st.table->read(log, n, n * RECORD, record, RECORD, &got, &err))
            fail_msg("%s", err.message);
        if (!got || n == 0)
            continue;
        assert_int_equal(sscanf(record, "%d %d", &who, &which), 2);
        assert_in_range(who, 0, writers - 1);
        if (which <= last[who])
            fail_msg("%d of writer %d stands after %d", which, who, last[who]);
        last[who] = which;
    }
    st.table->close(log);
    store_close(&st);
}

static void processes(sqlite_place *g, int same)
{
    pid_t pids[PROCESSES];
    int pipes[2], last[PROCESSES], status;
    char name[20];
    store st = {NULL, NULL};
    sessile_error err = {0};

    assert_int_equal(pipe(pipes), 0);
    if (open_at(g, 5000, &st, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(name, sizeof name, "log%d", same ? 0 : i);
        create(&st, name);
    }
    store_close(&st);
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(name, sizeof name, "log%d", same ? 0 : i);
        pids[i] = fork();
        if (pids[i] == 0)
            work(g, name, i, 0, EACH, pipes[1]);
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(name, sizeof name, "log%d", same ? 0 : i);
        tally(g, name, PROCESSES, last);
        assert_int_equal(last[i], EACH - 1);
    }
    close(pipes[0]);
    close(pipes[1]);
}

static void processes_write_one_log(void **state)
{
    processes(*state, 1);
}

static void processes_write_logs_of_their_own(void **state)
{
    processes(*state, 0);
}

/* Nobody has made the database yet. */
static void processes_make_the_database_together(void **state)
{
    sqlite_place *g = *state;
    pid_t pids[PROCESSES];
    int status, last[PROCESSES];
    char name[20];

    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            store st = {NULL, NULL};
            sessile_error err = {0};
            char record[RECORD + 1];
            snprintf(name, sizeof name, "log%d", i);
            record_of(99, 0, record);
            status = open_at(g, 60000, &st, &err);
            if (!status)
                status = st.table->create(st.self, "main", name, record, RECORD, &err);
            if (status)
                fprintf(stderr, "# maker %d: %s\n", i, err.message);
            store_close(&st);
            _exit(status != SESSILE_OK);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        snprintf(name, sizeof name, "log%d", i);
        tally(g, name, PROCESSES, last);
    }
}

/* What made_between() needs: where the database is, and whether it was there already. */
static const sqlite_place *being_made;
static int made;

/* SQLite says which statement begins: before the tables are counted, another store makes
 * them, or finds that it has to wait. */
static int made_between(unsigned event, void *arg, void *statement, void *text)
{
    store st = {NULL, NULL};
    sessile_error err = {0};
    char record[RECORD + 1];
    (void)event;
    (void)arg;
    (void)statement;
    if (made || !strstr(text, "count(*) FROM sqlite_schema"))
        return 0;
    made = 1;
    record_of(99, 0, record);
    if (!open_at(being_made, 10, &st, &err))
        (void)st.table->create(st.self, "main", "other", record, RECORD, &err);
    store_close(&st);
    return 0;
}

static int listen_to(sqlite3 *db, char **message, const struct sqlite3_api_routines *api)
{
    (void)message;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, made_between, NULL);
}

static void the_database_is_made_while_it_is_opened(void **state)
{
    store st = {NULL, NULL};
    sessile_error err = {0};
    being_made = *state;
    made = 0;
    sqlite3_auto_extension((void (*)(void))listen_to);
    assert_int_equal(open_at(being_made, 60000, &st, &err), SESSILE_OK);
    create(&st, "one");
    sqlite3_cancel_auto_extension((void (*)(void))listen_to);
    store_close(&st);
    assert_true(made);
}

/* Three go on writing one log while one after the other is killed. */
static void killed_writers_lose_nothing_they_were_told(void **state)
{
    enum { KILLS = 36 };
    sqlite_place *g = *state;
    pid_t pids[3] = {0, 0, 0};
    int pipes[2], next[3] = {0, 0, 0}, told[3] = {-1, -1, -1}, last[3], status;
    store st = {NULL, NULL};
    sessile_error err = {0};
    unsigned long acknowledged = 0;

    assert_int_equal(pipe(pipes), 0);
    if (open_at(g, 5000, &st, &err))
        fail_msg("%s", err.message);
    create(&st, "log");
    store_close(&st);
    for (int kill_no = 0; kill_no <= KILLS; kill_no++) {
        for (int i = 0; i < 3; i++) {
            if (pids[i] == 0 && kill_no < KILLS) {
                next[i] = kill_no * 100000;
                pids[i] = fork();
                if (pids[i] == 0)
                    work(g, "log", i, next[i], 100000, pipes[1]);
            }
        }
        if (kill_no < KILLS)
            usleep((useconds_t)(2000 + kill_no * 7919 % 23000));
        for (int i = 0; i < 3; i++) {
            if (pids[i] && (kill_no == KILLS || i == kill_no % 3)) {
                kill(pids[i], SIGKILL);
                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                assert_true(WIFSIGNALED(status));
                pids[i] = 0;
            }
        }
        for (struct pollfd p = {pipes[0], POLLIN, 0}; poll(&p, 1, 0) == 1;) {
            int note[2];
            assert_int_equal(read(pipes[0], note, sizeof note), sizeof note);
            told[note[0]] = note[1];
            acknowledged++;
        }
    }
    /* the numbers of a writer only grow, so its last one stands for all before it */
    tally(g, "log", 3, last);
    for (int i = 0; i < 3; i++)
        if (last[i] < told[i])
            fail_msg("writer %d was told that %d is safe, and %d is its last", i, told[i],
                     last[i]);
    sqlite3 *db;
    sqlite3_stmt *st3;
    assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT (SELECT count(*) FROM entries) = count AND"
                           " (SELECT count(*) FROM entries) > ?1 FROM sessions",
                           -1, &st3, NULL),
        SQLITE_OK);
    sqlite3_bind_int64(st3, 1, (sqlite3_int64)acknowledged);
    assert_int_equal(sqlite3_step(st3), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(st3, 0), 1);
    sqlite3_finalize(st3);
    sqlite3_close(db);
    print_message("# figure: sqlite, writers killed = %d\n", KILLS + 2);
    print_message("# figure: sqlite, appends acknowledged while they were = %lu\n",
                  acknowledged);
    close(pipes[0]);
    close(pipes[1]);
}

/* ------------------------------------------------------------------ waiting */

static int stop_soon(void *arg)
{
    return ++*(int *)arg > 3;
}

static void a_wait_for_another_process_is_bounded_and_can_be_ended(void **state)
{
    sqlite_place *g = *state;
    store st = {NULL, NULL};
    sessile_backend_log *log;
    sessile_error err = {0};
    sessile_log_end end = {1, RECORD, {0}}, was = end;
    unsigned char tag[16] = {1};
    char record[RECORD + 1];
    int poisoned, asked = 0;
    sqlite3 *db;

    if (open_at(g, 50, &st, &err))
        fail_msg("%s", err.message);
    create(&st, "log");
    assert_int_equal(st.table->open(st.self, "main", "log", &log, &err), SESSILE_OK);
    record_of(0, 0, record);
    assert_int_equal(sqlite3_open(g->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    for (int timeout = 0; timeout < 80; timeout += 40) {
        st.table->set_timeout(log, timeout);
        assert_int_equal(
            st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &err),
            SESSILE_BUSY);
        assert_non_null(strstr(err.message, "another process"));
        assert_false(poisoned);
    }
    st.table->set_timeout(log, -1);
    st.table->set_stop(log, stop_soon, &asked);
    assert_int_equal(st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &err),
                     SESSILE_CANCELLED);
    assert_true(asked > 3);
    st.table->set_stop(log, NULL, NULL);
    /* whoever reads is in nobody's way */
    uint64_t bytes;
    int64_t mtime;
    assert_int_equal(st.table->size(log, &bytes, &mtime, &err), SESSILE_OK);
    assert_memory_equal(&end, &was, sizeof end);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    assert_int_equal(st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &err),
                     SESSILE_OK);
    sqlite3_close(db);
    st.table->close(log);
    store_close(&st);
}

/* Another store of this process comes and goes: the locks of the first must stay. */
static void a_second_handle_that_is_closed_leaves_the_first_its_locks(void **state)
{
    sqlite_place *g = *state;
    store first = {NULL, NULL}, second = {NULL, NULL};
    sessile_backend_log *log;
    sessile_error err = {0};
    int status, last[PROCESSES];

    if (open_at(g, 5000, &first, &err))
        fail_msg("%s", err.message);
    create(&first, "log");
    assert_int_equal(first.table->open(first.self, "main", "log", &log, &err),
                     SESSILE_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(open_at(g, 5000, &second, &err), SESSILE_OK);
        store_close(&second);
        pid_t pid = fork();
        if (pid == 0) { /* if it were the last to close it would remove the WAL */
            execl("/proc/self/exe", "test", "come-and-go", g->path, (char *)NULL);
            _exit(1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_int_equal(append_once(first.table, log, 0, i, &err), SESSILE_OK);
        char wal[320];
        snprintf(wal, sizeof wal, "%s-wal", g->path);
        assert_int_equal(access(wal, F_OK), 0);
    }
    first.table->close(log);
    store_close(&first);
    tally(g, "log", PROCESSES, last);
    assert_int_equal(last[0], 4);
}

static int come_and_go(const char *path)
{
    sqlite3 *db;
    int rc = sqlite3_open(path, &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "SELECT * FROM sessions", NULL, NULL, NULL);
    sqlite3_close(db);
    return rc != SQLITE_OK;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "come-and-go") == 0)
        return come_and_go(argv[2]);
    const struct CMUnitTest tests[] = {
        SQLITE_TEST(processes_write_one_log),
        SQLITE_TEST(processes_write_logs_of_their_own),
        SQLITE_TEST(processes_make_the_database_together),
        SQLITE_TEST(the_database_is_made_while_it_is_opened),
        SQLITE_TEST(killed_writers_lose_nothing_they_were_told),
        SQLITE_TEST(a_wait_for_another_process_is_bounded_and_can_be_ended),
        SQLITE_TEST(a_second_handle_that_is_closed_leaves_the_first_its_locks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
