/*
 * test_sqlite_faults.c: writes and syncs of a SQLite store that fail, its disk full, its
 * power cut.
 *
 * Whatever fails: what was acknowledged is there, what was refused is not, what nobody
 * could tell is there at most once and at its place; and the store goes on, unless a sync
 * has failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/open.h"
#include "support/check.h"
#include "support/sessions.h"
#include "support/sqlite.h"
#include "support/sqlvfs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { RECORD = 1024 };

static int no_sync(void *ud, int fd)
{
    (void)ud;
    (void)fd;
    return 0;
}

static int set_up(void **state)
{
    if (sqlite_place_set_up(state))
        return -1;
    sqlite_place *g = *state;
    g->vfs = sqlvfs_install();
    g->os.sync_all = no_sync;
    g->vfs->lazy = 1; /* no power is cut but the one that is played */
    return 0;
}

static int tear_down(void **state)
{
    sqlite_place *g = *state;
    store_close(&g->st);
    sqlvfs_remove();
    return sqlite_place_tear_down(state);
}

static void record_of(int n, char out[RECORD + 1])
{
    memset(out, '.', RECORD);
    out[snprintf(out, RECORD, "%d", n)] = ' ';
    out[RECORD - 1] = '\n';
    out[RECORD] = '\0';
}

static sessile_status create(sqlite_place *g, const char *name)
{
    char record[RECORD + 1];
    record_of(0, record);
    return g->st.table->create(g->st.self, "main", name, record, RECORD, &g->err);
}

/* What was attempted on a log, and what came of it. */
enum { MOST = 4000 };
typedef struct account {
    int count;
    struct {
        int number;
        int sure; /* acknowledged; else it may be there */
    } tried[MOST];
} account;

static void expect(account *a, int number, int sure)
{
    a->tried[a->count].number = number;
    a->tried[a->count++].sure = sure;
}

/* The log in the database at path has what the account allows. */
static int agrees(const char *path, const char *name, const account *a, const char *when)
{
    store st = {NULL, NULL};
    sessile_error err = {0};
    sessile_backend_log *log = NULL;
    char record[RECORD + 1], read[RECORD];
    size_t got = RECORD;
    int at = 0, records = 0;

    if (store_sqlite_open(&st, path, 2000, &os_posix, &allocator_default, &err))
        fail_msg("%s: %s", when, err.message);
    if (!st.table->open(st.self, "main", name, &log, &err)) {
        while (got == RECORD) {
            if (st.table->read(log, (uint64_t)records, (uint64_t)records * RECORD, read,
                               RECORD, &got, &err))
                fail_msg("%s: %s", when, err.message);
            if (got == 0)
                break;
            for (;; at++) {
                if (at == a->count)
                    fail_msg("%s: %d was refused, and is there", when, atoi(read));
                record_of(a->tried[at].number, record);
                if (got == RECORD && memcmp(read, record, RECORD) == 0)
                    break;
                if (a->tried[at].sure)
                    fail_msg("%s: %d was acknowledged, and is not there", when,
                             a->tried[at].number);
            }
            at++;
            records++;
        }
        st.table->close(log);
    }
    for (; at < a->count; at++)
        if (a->tried[at].sure)
            fail_msg("%s: %d was acknowledged, and is not there", when,
                     a->tried[at].number);
    store_close(&st);
    return records;
}

static int whole(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    int good;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    good = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL) == SQLITE_OK &&
           sqlite3_step(st) == SQLITE_ROW &&
           strcmp((const char *)sqlite3_column_text(st, 0), "ok") == 0;
    sqlite3_finalize(st);
    sqlite3_close(db);
    return good;
}

/* ------------------------------------------------------------------ syncs */

static void an_append_costs_one_sync_and_without_one_none(void **state)
{
    enum { APPENDS = 20 };
    sqlite_place *g = *state;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1];
    sessile_backend_log *log;
    int poisoned;

    must(sqlite_place_open(g, g->path), &g->err);
    must(create(g, "a"), &g->err);
    must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
    unsigned long before = g->vfs->syncs, before_wal = g->vfs->wal_syncs;
    for (int i = 1; i <= APPENDS; i++) {
        record_of(i, record);
        must(g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err),
             &g->err);
    }
    assert_int_equal(g->vfs->syncs, before);
    for (int i = 1; i <= APPENDS; i++) {
        must(g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err),
             &g->err);
        must(g->st.table->sync(log, &g->err), &g->err);
    }
    assert_int_equal(g->vfs->syncs, before + APPENDS);
    assert_int_equal(g->vfs->wal_syncs, before_wal + APPENDS);
    g->st.table->close(log);
}

typedef struct writer {
    sqlite_place *g;
    int number;
    pthread_t thread;
    sessile_status status;
} writer;

enum { WRITERS = 8, EACH = 60 };

static void *write_and_sync(void *arg)
{
    writer *w = arg;
    const sessile_backend *t = w->g->st.table;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1], name[20];
    sessile_backend_log *log;
    sessile_error err;
    int poisoned;

    snprintf(name, sizeof name, "log%d", w->number);
    w->status = t->open(w->g->st.self, "main", name, &log, &err);
    if (w->status)
        return NULL;
    for (int i = 1; i <= EACH && !w->status; i++) {
        record_of(i, record);
        w->status = t->append(log, &end, record, RECORD, 1, tag, &poisoned, &err);
        if (!w->status)
            w->status = t->sync(log, &err);
    }
    t->close(log);
    return NULL;
}

static void writers_of_many_logs_share_syncs(void **state)
{
    sqlite_place *g = *state;
    writer writers[WRITERS];
    account a = {0};
    char name[20];

    must(sqlite_place_open(g, g->path), &g->err);
    for (int i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof name, "log%d", i);
        must(create(g, name), &g->err);
    }
    unsigned long before = g->vfs->syncs;
    g->vfs->sync_us = 2000;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.g = g, .number = i};
        assert_int_equal(
            pthread_create(&writers[i].thread, NULL, write_and_sync, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_int_equal(writers[i].status, SESSILE_OK);
    }
    unsigned long syncs = g->vfs->syncs - before;
    print_message("# figure: sqlite, appends per sync of %d writers, percent = %lu\n",
                  WRITERS, 100ul * WRITERS * EACH / syncs);
    g->vfs->sync_us = 0;
    assert_true(syncs < WRITERS * EACH / 2);
    for (int i = 0; i <= EACH; i++)
        expect(&a, i, 1);
    for (int i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof name, "log%d", i);
        assert_int_equal(agrees(g->path, name, &a, name), EACH + 1);
    }
}

/* ------------------------------------------------------------------ faults */

/* Makes a log, appends, writes a cache, replaces it, appends to the new one. Whoever is
 * told of a failure goes on with what is left. */
static void scenario(sqlite_place *g, account *a, int *poisoned)
{
    const sessile_backend *t = g->st.table;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1], kept[300], *blob;
    sessile_backend_log *log = NULL;
    sessile_backend_draft *draft;
    sessile_status status = create(g, "a");
    size_t size;
    int bad = 0;

    *poisoned = 0;
    if (status == SESSILE_EXISTS)
        fail_msg("made twice");
    expect(a, 0, status == SESSILE_OK);
    for (int i = 1; i <= 6; i++) {
        if (!log && t->open(g->st.self, "main", "a", &log, &g->err))
            continue;
        record_of(i, record);
        status = *poisoned ? SESSILE_IO
                           : t->append(log, &end, record, RECORD, 1, tag, &bad, &g->err);
        if (!status && i % 2 && t->sync(log, &g->err)) {
            status = SESSILE_IO;
            bad = 1;
        }
        if (!status || bad)
            expect(a, i, status == SESSILE_OK);
        *poisoned |= bad;
        assert_true(status == SESSILE_OK || g->err.message[0]);
        if (i == 3)
            (void)t->cache_write(log, 0, record, 100, &g->err);
        if (i == 4)
            (void)t->blob_put_new(g->st.self, "ring", "blob", 4, &g->err);
    }
    if (log && !t->draft_new(g->st.self, "main", "b", &draft, &g->err)) {
        if (t->draft_write(draft, record, RECORD, &g->err))
            t->draft_drop(draft);
        else
            (void)t->draft_publish(draft, &g->err);
    }
    if (!t->blob_get(g->st.self, "ring", &blob, &size, &g->err)) {
        assert_int_equal(size, 4);
        sessile_free(blob);
    }
    (void)kept;
    if (log && g->vfs->hits && !*poisoned) { /* it goes on */
        record_of(7, record);
        status = t->append(log, &end, record, RECORD, 1, tag, &bad, &g->err);
        expect(a, 7, status == SESSILE_OK);
        if (status && !strstr(g->err.message, "could not be made safe"))
            fail_msg("after a failure: %s", g->err.message);
    }
    t->close(log);
}

static void every_write_and_sync_fails_once(void **state)
{
    static const struct {
        unsigned kinds;
        int code, torn;
        const char *name;
    } ways[] = {{SQLVFS_WRITE, SQLITE_FULL, 1, "full"},
                {SQLVFS_WRITE, SQLITE_IOERR_WRITE, 0, "write"},
                {SQLVFS_WRITE, SQLITE_IOERR_WRITE, 1, "torn write"},
                {SQLVFS_SYNC, SQLITE_IOERR_FSYNC, 0, "sync"},
                {SQLVFS_OTHER, SQLITE_IOERR, 0, "open, cut or delete"}};
    sqlite_place *g = *state;
    unsigned long failures = 0;

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        for (long at = 0;; at++) {
            char path[400], when[100];
            account a = {0};
            int poisoned;

            snprintf(path, sizeof path, "%s/%zu-%ld.db", g->folder, w, at);
            snprintf(when, sizeof when, "%s %ld", ways[w].name, at);
            g->vfs->kinds = ways[w].kinds;
            g->vfs->code = ways[w].code;
            g->vfs->torn = ways[w].torn;
            g->vfs->calls = 0;
            g->vfs->hits = 0;
            g->vfs->fail_at = at;
            if (!sqlite_place_open(g, path)) {
                scenario(g, &a, &poisoned);
                store_close(&g->st);
            }
            int hit = g->vfs->hits;
            g->vfs->fail_at = -1;
            g->vfs->kinds = 0;
            agrees(path, "a", &a, when);
            if (access(path, F_OK) == 0 && !whole(path))
                fail_msg("%s: the database is damaged", when);
            failures += (unsigned long)hit;
            if (!hit)
                break;
        }
    }
    print_message("# figure: sqlite, writes and syncs that failed = %lu\n", failures);
    assert_true(failures > 100);
}

static void after_a_failed_sync_nothing_more_is_taken(void **state)
{
    sqlite_place *g = *state;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1];
    sessile_backend_log *log, *other;
    int poisoned;

    must(sqlite_place_open(g, g->path), &g->err);
    must(create(g, "a"), &g->err);
    must(create(g, "b"), &g->err);
    must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
    must(g->st.table->open(g->st.self, "main", "b", &other, &g->err), &g->err);
    record_of(1, record);
    must(g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err),
         &g->err);
    g->vfs->kinds = SQLVFS_SYNC;
    g->vfs->calls = 0;
    g->vfs->fail_at = 0;
    assert_int_equal(g->st.table->sync(log, &g->err), SESSILE_IO);
    unsigned long syncs = g->vfs->syncs;
    /* no second try, which would lie; of no log of this store */
    assert_int_equal(g->st.table->sync(log, &g->err), SESSILE_IO);
    assert_int_equal(g->st.table->sync(other, &g->err), SESSILE_IO);
    end = (sessile_log_end){1, RECORD, {0}};
    assert_int_equal(
        g->st.table->append(other, &end, record, RECORD, 1, tag, &poisoned, &g->err),
        SESSILE_IO);
    assert_true(poisoned);
    assert_int_equal(create(g, "c"), SESSILE_IO);
    assert_int_equal(g->vfs->syncs, syncs);
    g->st.table->close(log);
    g->st.table->close(other);
    store_close(&g->st);
    must(sqlite_place_open(g, g->path), &g->err);
    must(create(g, "c"), &g->err);
}

/* ------------------------------------------------------------------ power */

/* More than the WAL takes before it is moved into the database, several times: whatever
 * of the two files a power cut leaves, what was acknowledged is there. */
static void a_power_cut_takes_nothing_that_was_acknowledged(void **state)
{
    enum { APPENDS = 1600, LOOK = 23 };
    sqlite_place *g = *state;
    static account a;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1], cut[320], path[400], when[60];
    sessile_backend_log *log;
    unsigned long cuts = 0, moved = 0;
    int poisoned;

    memset(&a, 0, sizeof a);
    sqlvfs_remember(g->path);
    must(sqlite_place_open(g, g->path), &g->err);
    must(create(g, "a"), &g->err);
    expect(&a, 0, 1);
    must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
    snprintf(cut, sizeof cut, "%s/cut", g->folder);
    snprintf(path, sizeof path, "%s/s.db", cut);
    for (int i = 1; i <= APPENDS; i++) {
        unsigned long before = g->vfs->syncs;
        record_of(i, record);
        must(g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err),
             &g->err);
        int checkpoint = g->vfs->syncs > before;
        moved += (unsigned long)checkpoint;
        expect(&a, i, 0);
        if (i % 3 == 0) {
            must(g->st.table->sync(log, &g->err), &g->err);
            for (int j = a.count; j-- > 0 && !a.tried[j].sure;)
                a.tried[j].sure = 1;
        }
        if (!checkpoint && i % LOOK && i != APPENDS)
            continue;
        for (unsigned what = 0; what < 4; what++) {
            assert_int_equal(mkdir(cut, 0700), 0);
            sqlvfs_power_cut(cut, what);
            snprintf(when, sizeof when, "cut after %d, %u", i, what);
            agrees(path, "a", &a, when);
            if (i % (LOOK * 8) == 0)
                assert_true(whole(path));
            cuts++;
            folder_remove(strdup(cut));
        }
    }
    g->st.table->close(log);
    assert_true(moved >= 3); /* the WAL started again in between */
    print_message("# figure: sqlite, power cuts survived = %lu\n", cuts);
}

/* ------------------------------------------------------------------ a full disk */

static void a_full_disk_loses_nothing_and_is_left_again(void **state)
{
    sqlite_place *g = *state;
    static account a;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1], disk[320], path[400], ballast[400];
    sessile_backend_log *log;
    sessile_status status = SESSILE_OK;
    int poisoned = 0, i, full = 0;

    memset(&a, 0, sizeof a);
    snprintf(disk, sizeof disk, "%s/disk", g->folder);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (geteuid() != 0 || mount("none", disk, "tmpfs", 0, "size=1m,mode=0700") != 0) {
        print_message("# skipped: a small file system can be mounted by root alone\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/s.db", disk);
    snprintf(ballast, sizeof ballast, "%s/ballast", disk);
    int fd = open(ballast, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 0) == 0);
    for (int k = 0; k < 300; k++)
        assert_int_equal(write(fd, record, RECORD), RECORD);
    close(fd);
    must(sqlite_place_open(g, path), &g->err);
    must(create(g, "a"), &g->err);
    expect(&a, 0, 1);
    must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
    for (i = 1; i < 1500 && full < 3; i++) {
        record_of(i, record);
        status =
            g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err);
        if (!status) {
            must(g->st.table->sync(log, &g->err), &g->err);
            expect(&a, i, 1);
            continue;
        }
        assert_int_equal(status, SESSILE_FULL);
        assert_non_null(strstr(g->err.message, "make room"));
        assert_false(poisoned);
        full++;
    }
    assert_int_equal(full, 3);
    unlink(ballast);
    for (int k = 0; k < 20; k++, i++) { /* the same handle goes on */
        record_of(i, record);
        must(g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err),
             &g->err);
        expect(&a, i, 1);
    }
    g->st.table->close(log);
    store_close(&g->st);
    agrees(path, "a", &a, "after a full disk");
    assert_true(whole(path));
    umount2(disk, MNT_DETACH);
}

/* A limit on the size of a file, as a quota, is no full disk to SQLite: it says nothing
 * of the cause, so the write counts as unknown. */
static void a_file_that_may_not_grow_is_told(void **state)
{
    sqlite_place *g = *state;
    static account a;
    struct rlimit was, small;
    sessile_log_end end = {1, RECORD, {0}};
    unsigned char tag[16] = {1};
    char record[RECORD + 1];
    sessile_backend_log *log;
    sessile_status status = SESSILE_OK;
    int poisoned = 0, i;

    memset(&a, 0, sizeof a);
    must(sqlite_place_open(g, g->path), &g->err);
    must(create(g, "a"), &g->err);
    expect(&a, 0, 1);
    must(g->st.table->open(g->st.self, "main", "a", &log, &g->err), &g->err);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = was;
    small.rlim_cur = 700000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (i = 1; i < 1000 && !status; i++) {
        record_of(i, record);
        status =
            g->st.table->append(log, &end, record, RECORD, 1, tag, &poisoned, &g->err);
        if (!status || poisoned)
            expect(&a, i, status == SESSILE_OK);
    }
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, handler);
    assert_in_range(status, SESSILE_IO, SESSILE_FULL);
    if (status == SESSILE_IO) {
        assert_true(poisoned);
        assert_non_null(strstr(g->err.message, "quota"));
    }
    g->st.table->close(log);
    must(create(g, "b"), &g->err); /* the store goes on; of that log one looks first */
    store_close(&g->st);
    agrees(g->path, "a", &a, "after a limit");
    assert_true(whole(g->path));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_append_costs_one_sync_and_without_one_none),
        CASE(writers_of_many_logs_share_syncs),
        CASE(every_write_and_sync_fails_once),
        CASE(after_a_failed_sync_nothing_more_is_taken),
        CASE(a_power_cut_takes_nothing_that_was_acknowledged),
        CASE(a_full_disk_loses_nothing_and_is_left_again),
        CASE(a_file_that_may_not_grow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
