/*
 * test_store_file.c: what the file store owes to the disk, and what it refuses to open.
 *
 * Own stores: it names each that it is about.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/file/open.h"
#include "support/raw_store.h"

#define T p.st.table
#define S p.st.self

static void modes_are_private_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 077};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        raw_store p;
        sessile_error err = {0};
        char path[600];
        struct stat st;
        mode_t was = umask(masks[i]);
        raw_open(&p, RAW_FILE);
        assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
        assert_int_equal(T->blob_put_new(S, "keyring", "x", 1, &err), SESSILE_OK);
        umask(was);
        static const struct {
            const char *name;
            mode_t mode;
        } expect[] = {{"/..", 0700},
                      {"", 0700},
                      {"/agents", 0700},
                      {"/agents/main", 0700},
                      {"/agents/main/log.jsonl", 0600},
                      {"/keyring", 0600}};
        for (size_t e = 0; e < sizeof expect / sizeof *expect; e++) {
            snprintf(path, sizeof path, "%s%s", p.root, expect[e].name);
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(st.st_mode & 07777, expect[e].mode);
        }
        raw_close(&p);
    }
}

static void opening_makes_nothing(void **state)
{
    raw_store p;
    sessile_error err = {0};
    sessile_backend_log *log;
    char *blob;
    size_t size;
    (void)state;
    raw_open(&p, RAW_FILE);
    raw_names none = {"", 99};
    assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_NOTFOUND);
    assert_int_equal(T->blob_get(S, "keyring", &blob, &size, &err), SESSILE_NOTFOUND);
    assert_int_equal(T->list(S, NULL, raw_note, &none, &err), SESSILE_OK);
    assert_int_equal(raw_has_logs(&p), 0);
    assert_int_equal(access(p.root, F_OK), -1);
    raw_close(&p);
}

static void links_are_refused_wherever_they_stand(void **state)
{
    raw_store p, q;
    int logs = 0;
    sessile_error err = {0};
    sessile_backend_log *log;
    char *blob;
    size_t size;
    char from[700], to[700];
    raw_names found = {"", 99};
    (void)state;
    raw_open(&p, RAW_FILE);
    raw_init(&q);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->blob_put_new(S, "keyring", "x", 1, &err), SESSILE_OK);

    raw_path(&p, "/agents/main/log.jsonl", from);
    raw_path(&p, "/agents/main/link.jsonl", to);
    assert_int_equal(symlink(from, to), 0);
    assert_int_equal(T->open(S, "main", "link", &log, &err), SESSILE_DENIED);
    assert_int_equal(T->create(S, "main", "link", "y\n", 2, &err), SESSILE_EXISTS);

    snprintf(from, sizeof from, "%s/keyring", p.root);
    snprintf(to, sizeof to, "%s/blob", p.root);
    assert_int_equal(symlink(from, to), 0);
    assert_int_equal(T->blob_get(S, "blob", &blob, &size, &err), SESSILE_DENIED);

    snprintf(from, sizeof from, "%s/agents/main", p.root);
    snprintf(to, sizeof to, "%s/agents/link", p.root);
    assert_int_equal(symlink(from, to), 0);
    assert_int_equal(T->open(S, "link", "log", &log, &err), SESSILE_DENIED);
    assert_int_equal(T->create(S, "link", "new", "y\n", 2, &err), SESSILE_DENIED);
    assert_int_equal(T->list(S, NULL, raw_note, &found, &err), SESSILE_DENIED);
    /* whichever it comes upon first */
    assert_true(T->has_logs(S, &logs, &err) == SESSILE_DENIED || logs == 1);

    snprintf(q.root, sizeof q.root, "%s/link", q.folder);
    assert_int_equal(symlink(p.root, q.root), 0);
    assert_int_equal(store_file_open(&q.st, q.root, &q.os.table, &q.alloc, &err),
                     SESSILE_DENIED);
    snprintf(q.root, sizeof q.root, "%s/link/", q.folder);
    assert_int_equal(store_file_open(&q.st, q.root, &q.os.table, &q.alloc, &err),
                     SESSILE_DENIED);
    scratch_remove(q.folder);
    raw_close(&p);
}

static void what_is_no_file_of_ours_is_refused(void **state)
{
    raw_store p;
    sessile_error err = {0};
    sessile_backend_log *log;
    char *blob;
    size_t size;
    char path[700];
    (void)state;
    raw_open(&p, RAW_FILE);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->blob_put_new(S, "keyring", "x", 1, &err), SESSILE_OK);

    raw_path(&p, "/agents/main/fifo.jsonl", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(T->open(S, "main", "fifo", &log, &err), SESSILE_DENIED);
    raw_path(&p, "/agents/main/folder.jsonl", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_not_equal(T->open(S, "main", "folder", &log, &err), SESSILE_OK);

    snprintf(path, sizeof path, "%s/keyring", p.root);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(T->blob_get(S, "keyring", &blob, &size, &err), SESSILE_DENIED);
    raw_path(&p, "/agents/main/log.jsonl", path);
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_DENIED);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_DENIED);
    }
    raw_close(&p);
}

static void folder_that_others_may_write_is_refused(void **state)
{
    static const char *const folders[] = {"", "/agents", "/agents/main"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        raw_store p;
        store again;
        sessile_error err = {0};
        sessile_backend_log *log;
        char path[700];
        raw_open(&p, RAW_FILE);
        assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
        snprintf(path, sizeof path, "%s%s", p.root, folders[i]);
        assert_int_equal(chmod(path, 0770), 0);
        sessile_status status =
            store_file_open(&again, p.root, &p.os.table, &p.alloc, &err);
        if (!status) {
            status = again.table->open(again.self, "main", "log", &log, &err);
            store_close(&again);
        }
        assert_int_equal(status, SESSILE_DENIED);
        raw_close(&p);
    }
}

static void log_under_another_name_is_said_to_be_replaced(void **state)
{
    raw_store p;
    sessile_error err = {0};
    char path[700], elsewhere[700];
    (void)state;
    sessile_backend_log *log = raw_open_log(&p, RAW_FILE, "x\n");
    raw_path(&p, "/agents/main/log.jsonl", path);
    raw_path(&p, "/agents/main/moved.jsonl", elsewhere);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(raw_locked(&p, log), 1);
    T->unlock(log);
    assert_int_equal(T->create(S, "main", "log", "new\n", 4, &err), SESSILE_OK);
    assert_int_equal(raw_locked(&p, log), 1);
    raw_close_log(&p, log);
}

static void log_that_may_only_be_read_is_read(void **state)
{
    raw_store p;
    sessile_error err = {0};
    int replaced, poisoned;
    sessile_log_end end = {1, 2, {0}};
    const unsigned char tag[16] = {0};
    (void)state;
    sessile_backend_log *log =
        raw_open_log(&p, RAW_FILE, "x\n"); /* the folder is open from here on */
    T->close(log);
    faults_set(&p.os, CALL_OPEN, 0, EROFS);
    log = raw_log(&p, "log");
    assert_int_equal(p.os.hits, 1);
    faults_none(&p.os);
    raw_holds(&p, log, "x\n");
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_DENIED);
    assert_int_equal(T->lock(log, SESSILE_LOCK_SHARED, 0, &replaced, &err), SESSILE_OK);
    T->unlock(log);
    assert_int_equal(T->append(log, &end, "y\n", 2, 1, tag, &poisoned, &err),
                     SESSILE_DENIED);
    raw_close_log(&p, log);
}

static int count_names(const char *folder)
{
    char command[500];
    FILE *out;
    int n = 0;
    snprintf(command, sizeof command, "find '%s' -type f | wc -l", folder);
    out = popen(command, "r");
    assert_non_null(out);
    assert_int_equal(fscanf(out, "%d", &n), 1);
    pclose(out);
    return n;
}

static void create_that_fails_leaves_no_file(void **state)
{
    (void)state;
    for (unsigned long at = 0;; at++) {
        raw_store p;
        sessile_error err = {0};
        sessile_backend_log *log;
        raw_open(&p, RAW_FILE);
        p.os.lazy = 1;
        faults_set(&p.os, CALL_KINDS, at, at % 2 ? ENOSPC : EIO);
        sessile_status status = T->create(S, "main", "log", "x\n", 2, &err);
        unsigned long hits = p.os.hits;
        faults_none(&p.os);
        if (!status) {
            log = raw_log(&p, "log");
            raw_holds(&p, log, "x\n");
            T->close(log);
        } else {
            assert_true(status == SESSILE_IO || status == SESSILE_FULL);
            assert_int_equal(count_names(p.folder), 0);
            assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
        }
        raw_close(&p);
        if (hits == 0)
            break;
    }
}

static void create_syncs_the_file_and_every_folder_above_it(void **state)
{
    raw_store p;
    sessile_error err = {0};
    (void)state;
    raw_open(&p, RAW_FILE);
    faults_none(&p.os);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    /* above a/, above a/store/, a/store, agents, main, and the log itself */
    assert_int_equal(p.os.counts[CALL_SYNC_ALL], 6);
    faults_none(&p.os);
    assert_int_equal(T->create(S, "main", "log2", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(p.os.counts[CALL_SYNC_ALL], 2);
    /* a store that finds the folders there cannot know that their makers came to sync */
    store again;
    raw_again(&p, &again);
    faults_none(&p.os);
    assert_int_equal(again.table->create(again.self, "main", "log3", "x\n", 2, &err),
                     SESSILE_OK);
    assert_int_equal(p.os.counts[CALL_SYNC_ALL], 5);
    store_close(&again);
    raw_close(&p);
}

static void torn_end_is_copied_before_it_is_cut(void **state)
{
    raw_store p;
    sessile_error err = {0};
    char path[700], piece[700];
    size_t size;
    (void)state;
    sessile_backend_log *log = raw_open_log(&p, RAW_FILE, "whole\ntorn");
    assert_int_equal(T->set_aside(log, 6, &err),
                     SESSILE_INVALID); /* not under the lock */
    raw_locked(&p, log);
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK);
    raw_holds(&p, log, "whole\n");
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK); /* nothing left to do */
    raw_path(&p, "/agents/main/log.jsonl", path);
    raw_path(&p, "/agents/main/log.torn-6", piece);
    char *bytes = file_read_all(piece, &size);
    assert_string_equal(bytes, "torn");
    free(bytes);
    /* interrupted between copy and cut: the same bytes again make no second piece */
    T->unlock(log);
    file_write_all(path, "whole\ntorn", 10);
    raw_locked(&p, log);
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK);
    assert_int_equal(count_names(p.folder), 2);
    /* other bytes at the same place get a piece of their own */
    T->unlock(log);
    file_write_all(path, "whole\nelse", 10);
    raw_locked(&p, log);
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK);
    T->unlock(log);
    assert_int_equal(count_names(p.folder), 3);
    strcat(piece, "-2");
    bytes = file_read_all(piece, &size);
    assert_string_equal(bytes, "else");
    free(bytes);
    /* pieces are no logs, nor is what a crash left under a temporary name */
    raw_names found = {"", 99};
    raw_path(&p, "/agents/main/.new-00112233445566aa", path);
    file_write_all(path, "whole\n", 6);
    raw_path(&p, "/agents/main/.new-00112233445566aa.jsonl", path);
    file_write_all(path, "whole\n", 6);
    assert_int_equal(T->list(S, NULL, raw_note, &found, &err), SESSILE_OK);
    assert_string_equal(found.text, "main/log ");
    raw_close_log(&p, log);
}

static void failed_sync_poisons_the_log_in_this_store_only(void **state)
{
    raw_store p;
    store again;
    sessile_error err = {0};
    int poisoned;
    sessile_backend_log *third;
    sessile_log_end end = {1, 2, {0}};
    const unsigned char tag[16] = {0};
    (void)state;
    sessile_backend_log *a = raw_open_log(&p, RAW_FILE, "x\n"), *b = raw_log(&p, "log");
    faults_set(&p.os, CALL_SYNC_DATA, 0, EIO);
    assert_int_equal(T->sync(a, &err), SESSILE_IO);
    faults_none(&p.os);
    assert_int_equal(T->sync(a, &err), SESSILE_IO);
    assert_int_equal(T->sync(b, &err), SESSILE_IO);
    assert_int_equal(T->append(b, &end, "y\n", 2, 1, tag, &poisoned, &err), SESSILE_IO);
    assert_int_equal(poisoned, 1);
    raw_holds(&p, a, "x\n");
    raw_again(&p, &again);
    assert_int_equal(again.table->open(again.self, "main", "log", &third, &err),
                     SESSILE_OK);
    assert_int_equal(again.table->append(third, &end, "y\n", 2, 1, tag, &poisoned, &err),
                     SESSILE_OK);
    again.table->close(third);
    store_close(&again);
    T->close(a);
    raw_close_log(&p, b);
}

static void failed_append_is_cut_back_or_poisons(void **state)
{
    raw_store p;
    sessile_error err = {0};
    int poisoned;
    sessile_log_end end = {1, 2, {0}};
    const unsigned char tag[16] = {9};
    (void)state;
    sessile_backend_log *log = raw_open_log(&p, RAW_FILE, "x\n");
    faults_set(&p.os, CALL_WRITE, 0, ENOSPC);
    p.os.half = 1;
    p.os.more = 1;
    assert_int_equal(T->append(log, &end, "long line\n", 10, 1, tag, &poisoned, &err),
                     SESSILE_FULL);
    assert_int_equal(poisoned, 0);
    assert_int_equal(end.bytes, 2);
    raw_holds(&p, log, "x\n");
    faults_set(&p.os, CALL_KINDS, 1, EIO); /* stat, write, write, truncate */
    p.os.half = 1;
    p.os.more = 3;
    assert_int_equal(T->append(log, &end, "long line\n", 10, 1, tag, &poisoned, &err),
                     SESSILE_IO);
    assert_int_equal(poisoned, 1);
    faults_none(&p.os);
    assert_int_equal(T->append(log, &end, "y\n", 2, 1, tag, &poisoned, &err), SESSILE_IO);
    raw_close_log(&p, log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_are_private_whatever_the_umask),
        cmocka_unit_test(opening_makes_nothing),
        cmocka_unit_test(links_are_refused_wherever_they_stand),
        cmocka_unit_test(what_is_no_file_of_ours_is_refused),
        cmocka_unit_test(folder_that_others_may_write_is_refused),
        cmocka_unit_test(log_under_another_name_is_said_to_be_replaced),
        cmocka_unit_test(log_that_may_only_be_read_is_read),
        cmocka_unit_test(create_that_fails_leaves_no_file),
        cmocka_unit_test(create_syncs_the_file_and_every_folder_above_it),
        cmocka_unit_test(torn_end_is_copied_before_it_is_cut),
        cmocka_unit_test(failed_sync_poisons_the_log_in_this_store_only),
        cmocka_unit_test(failed_append_is_cut_back_or_poisons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
