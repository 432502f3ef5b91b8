/*
 * test_store.c: what every backend promises, and what the file backend owes to the disk.
 *
 * The first part runs over each backend that is here; a new one is a line in `backends`.
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

#include "support/logs.h"
#include "store/file/open.h"
#include "store/ram.h"

/* ------------------------------------------------------------------ every backend */

typedef struct place {
    char folder[256], root[300];
    faults os;
    meter memory;
    allocator alloc;
    store st;
} place;

static sessile_status open_file(place *p, sessile_error *err)
{
    return store_file_open(&p->st, p->root, &p->os.table, &p->alloc, err);
}

static sessile_status open_ram(place *p, sessile_error *err)
{
    return store_ram_open(&p->st, &p->os.table, &p->alloc, err);
}

static const struct backend {
    const char *name;
    sessile_status (*open)(place *p, sessile_error *err);
} backends[] = {{"file", open_file}, {"ram", open_ram}};

static const struct backend *current;

static void place_init(place *p)
{
    memset(p, 0, sizeof *p);
    faults_init(&p->os);
    p->alloc = meter_allocator(&p->memory);
    scratch_make(p->folder);
    snprintf(p->root, sizeof p->root, "%s/a/store", p->folder);
}

static void place_open(place *p)
{
    sessile_error err = {0};
    place_init(p);
    assert_int_equal(current->open(p, &err), SESSILE_OK);
}

static void place_close(place *p)
{
    faults_none(&p->os);
    store_close(&p->st);
    assert_int_equal(p->memory.live, 0);
    scratch_remove(p->folder);
}

#define T p.st.table
#define S p.st.self

static int has_logs(place *p)
{
    sessile_error err = {0};
    int found;
    assert_int_equal(p->st.table->has_logs(p->st.self, &found, &err), SESSILE_OK);
    return found;
}

static sessile_backend_log *opened(place *p, const char *name)
{
    sessile_backend_log *log;
    sessile_error err = {0};
    assert_int_equal(p->st.table->open(p->st.self, "main", name, &log, &err), SESSILE_OK);
    return log;
}

/* The log's bytes are exactly these. */
static void holds(place *p, sessile_backend_log *log, const char *expected)
{
    char bytes[4096];
    size_t got;
    uint64_t size;
    int64_t mtime;
    sessile_error err = {0};
    assert_int_equal(p->st.table->read(log, 0, 0, bytes, sizeof bytes, &got, &err),
                     SESSILE_OK);
    assert_int_equal(got, strlen(expected));
    assert_memory_equal(bytes, expected, got);
    assert_int_equal(p->st.table->size(log, &size, &mtime, &err), SESSILE_OK);
    assert_int_equal(size, got);
}

static void what_is_appended_is_read_back(void **state)
{
    place p;
    sessile_error err = {0};
    char bytes[16];
    size_t got;
    int poisoned;
    (void)state;
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "one\n", 4, &err), SESSILE_OK);
    sessile_backend_log *log = opened(&p, "log");
    holds(&p, log, "one\n");
    sessile_log_end end = {1, 4, {1}};
    const unsigned char tag[16] = {2}, tag2[16] = {3};
    assert_int_equal(T->append(log, &end, "two\nthree\n", 10, 2, tag, &poisoned, &err),
                     SESSILE_OK);
    assert_int_equal(poisoned, 0);
    assert_int_equal(end.count, 3);
    assert_int_equal(end.bytes, 14);
    assert_memory_equal(end.tag, tag, 16);
    assert_int_equal(T->append(log, &end, "4\n", 2, 1, tag2, &poisoned, &err),
                     SESSILE_OK);
    assert_int_equal(T->sync(log, &err), SESSILE_OK);
    holds(&p, log, "one\ntwo\nthree\n4\n");
    assert_int_equal(T->read(log, 1, 4, bytes, 3, &got, &err), SESSILE_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(bytes, "two", 3);
    assert_int_equal(T->read(log, 3, 14, bytes, 10, &got, &err), SESSILE_OK);
    assert_int_equal(got, 2);
    assert_int_equal(T->read(log, 4, 16, bytes, 10, &got, &err), SESSILE_OK);
    assert_int_equal(got, 0);
    T->close(log);
    place_close(&p);
}

static void append_where_the_log_does_not_end_is_CONFLICT(void **state)
{
    place p;
    sessile_error err = {0};
    int poisoned;
    (void)state;
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "one\n", 4, &err), SESSILE_OK);
    sessile_backend_log *a = opened(&p, "log"), *b = opened(&p, "log");
    sessile_log_end from_a = {1, 4, {0}}, from_b = from_a;
    const unsigned char tag[16] = {7};
    assert_int_equal(T->append(a, &from_a, "two\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_OK);
    assert_int_equal(T->append(b, &from_b, "2nd\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_CONFLICT);
    assert_int_equal(poisoned, 0);
    assert_int_equal(from_b.bytes, 4);
    holds(&p, b, "one\ntwo\n");
    sessile_log_end beyond = {9, 99, {0}};
    assert_int_equal(T->append(b, &beyond, "x\n", 2, 1, tag, &poisoned, &err),
                     SESSILE_TRUNCATED);
    holds(&p, a, "one\ntwo\n");
    T->close(a);
    T->close(b);
    place_close(&p);
}

static void names_taken_and_missing_are_told(void **state)
{
    place p;
    sessile_error err = {0};
    sessile_backend_log *log = (void *)1;
    (void)state;
    place_open(&p);
    assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_NOTFOUND);
    assert_null(log);
    assert_int_equal(T->create(S, "main", "log", "one\n", 4, &err), SESSILE_OK);
    assert_int_equal(T->create(S, "main", "log", "two\n", 4, &err), SESSILE_EXISTS);
    assert_int_equal(T->create(S, "else", "log", "two\n", 4, &err), SESSILE_OK);
    assert_int_equal(T->open(S, "main", "other", &log, &err), SESSILE_NOTFOUND);
    log = opened(&p, "log");
    holds(&p, log, "one\n");
    T->close(log);
    place_close(&p);
}

static void names_that_lead_elsewhere_are_INVALID(void **state)
{
    static const char *const bad[] = {"",     ".", "..",  "a/b", "/etc", ".hidden",
                                      "a\nb", "A", "a b", "~",   "a\\b", "\xc3\xa9"};
    place p;
    char longest[300];
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[201] = 0;
    place_open(&p);
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *name = i < sizeof bad / sizeof *bad ? bad[i] : longest;
        sessile_error err = {0};
        sessile_backend_log *log;
        char *blob;
        size_t size;
        assert_int_equal(T->create(S, name, "log", "x\n", 2, &err), SESSILE_INVALID);
        assert_int_equal(T->create(S, "main", name, "x\n", 2, &err), SESSILE_INVALID);
        assert_int_equal(T->open(S, name, "log", &log, &err), SESSILE_INVALID);
        assert_int_equal(T->open(S, "main", name, &log, &err), SESSILE_INVALID);
        assert_int_equal(T->blob_get(S, name, &blob, &size, &err), SESSILE_INVALID);
        assert_int_equal(T->blob_put_new(S, name, "x", 1, &err), SESSILE_INVALID);
    }
    assert_int_equal(has_logs(&p), 0);
    place_close(&p);
}

static void lock_excludes_other_handles(void **state)
{
    place p;
    sessile_error err = {0};
    int replaced = 7;
    (void)state;
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "one\n", 4, &err), SESSILE_OK);
    sessile_backend_log *a = opened(&p, "log"), *b = opened(&p, "log");
    const int sh = SESSILE_LOCK_SHARED, ex = SESSILE_LOCK_EXCLUSIVE;
    assert_int_equal(T->lock(a, ex, 0, &replaced, &err), SESSILE_OK);
    assert_int_equal(replaced, 0);
    assert_int_equal(T->lock(b, ex, 0, &replaced, &err), SESSILE_BUSY);
    assert_int_equal(T->lock(b, sh, 0, &replaced, &err), SESSILE_BUSY);
    assert_int_equal(T->lock(b, ex, 30, &replaced, &err), SESSILE_BUSY);
    T->unlock(a);
    assert_int_equal(T->lock(a, sh, 0, &replaced, &err), SESSILE_OK);
    assert_int_equal(T->lock(b, sh, 0, &replaced, &err), SESSILE_OK);
    T->unlock(a);
    assert_int_equal(T->lock(a, ex, 0, &replaced, &err), SESSILE_BUSY);
    T->unlock(b);
    assert_int_equal(T->lock(a, ex, 0, &replaced, &err), SESSILE_OK);
    /* a handle that closes gives it back */
    T->close(a);
    assert_int_equal(T->lock(b, ex, 0, &replaced, &err), SESSILE_OK);
    T->unlock(b);
    T->unlock(b);
    T->close(b);
    place_close(&p);
}

typedef struct names {
    char text[400];
    int left; /* visits until it stops */
} names;

static int note(void *arg, const char *folder, const char *name)
{
    names *n = arg;
    snprintf(n->text + strlen(n->text), sizeof n->text - strlen(n->text), "%s/%s ",
             folder, name);
    return --n->left == 0;
}

static void list_shows_every_log_once(void **state)
{
    place p;
    sessile_error err = {0};
    names all = {"", 99}, some = {"", 99}, one = {"", 1}, none = {"", 99};
    (void)state;
    place_open(&p);
    assert_int_equal(T->list(S, NULL, note, &none, &err), SESSILE_OK);
    assert_int_equal(has_logs(&p), 0);
    assert_int_equal(T->create(S, "main", "a", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->create(S, "main", "=b", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->create(S, "else", "a", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->list(S, NULL, note, &all, &err), SESSILE_OK);
    assert_int_equal(T->list(S, "else", note, &some, &err), SESSILE_OK);
    assert_int_equal(T->list(S, NULL, note, &one, &err), SESSILE_OK);
    assert_int_equal(T->list(S, "nobody", note, &none, &err), SESSILE_OK);
    assert_int_equal(strlen(all.text), strlen("main/a main/=b else/a "));
    assert_non_null(strstr(all.text, "main/a "));
    assert_non_null(strstr(all.text, "main/=b "));
    assert_string_equal(some.text, "else/a ");
    assert_int_equal(one.left, 0);
    assert_string_equal(none.text, "");
    assert_int_equal(has_logs(&p), 1);
    place_close(&p);
}

static void blob_is_put_once_and_whole(void **state)
{
    place p;
    sessile_error err = {0};
    char *data = (char *)1;
    size_t size = 9;
    (void)state;
    place_open(&p);
    assert_int_equal(T->blob_get(S, "keyring", &data, &size, &err), SESSILE_NOTFOUND);
    assert_null(data);
    assert_int_equal(size, 0);
    assert_int_equal(T->blob_put_new(S, "keyring", "a\0b", 3, &err), SESSILE_OK);
    assert_int_equal(T->blob_put_new(S, "keyring", "c", 1, &err), SESSILE_EXISTS);
    assert_int_equal(T->blob_get(S, "keyring", &data, &size, &err), SESSILE_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4);
    sessile_free(data);
    assert_int_equal(has_logs(&p), 0);
    place_close(&p);
}

static void out_of_memory_is_NOMEM_and_changes_nothing(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        place p;
        sessile_error err = {0};
        sessile_backend_log *log = NULL;
        char *blob = NULL;
        size_t size;
        int poisoned;
        sessile_log_end end = {1, 4, {0}};
        const unsigned char tag[16] = {0};
        place_init(&p);
        p.os.lazy = 1;
        p.memory.fail_at = at;
        sessile_status status = current->open(&p, &err);
        if (!status)
            status = T->create(S, "main", "log", "one\n", 4, &err);
        if (!status)
            status = T->open(S, "main", "log", &log, &err);
        if (!status)
            status = T->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err);
        if (!status)
            status = T->blob_put_new(S, "keyring", "k", 1, &err);
        if (!status)
            status = T->blob_get(S, "keyring", &blob, &size, &err);
        size_t calls = p.memory.calls;
        p.memory.fail_at = 0;
        assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
        sessile_free(blob);
        if (log) {
            if (end.bytes == 4)
                holds(&p, log, "one\n");
            T->close(log);
        }
        place_close(&p);
        if (calls < at)
            break;
    }
}

/* ------------------------------------------------------------------ files */

static void modes_are_private_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 077};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        place p;
        sessile_error err = {0};
        char path[600];
        struct stat st;
        mode_t was = umask(masks[i]);
        current = &backends[0];
        place_open(&p);
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
        place_close(&p);
    }
}

static void opening_makes_nothing(void **state)
{
    place p;
    sessile_error err = {0};
    sessile_backend_log *log;
    char *blob;
    size_t size;
    (void)state;
    current = &backends[0];
    place_open(&p);
    names none = {"", 99};
    assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_NOTFOUND);
    assert_int_equal(T->blob_get(S, "keyring", &blob, &size, &err), SESSILE_NOTFOUND);
    assert_int_equal(T->list(S, NULL, note, &none, &err), SESSILE_OK);
    assert_int_equal(has_logs(&p), 0);
    assert_int_equal(access(p.root, F_OK), -1);
    place_close(&p);
}

static void links_are_refused_wherever_they_stand(void **state)
{
    place p, q;
    int logs = 0;
    sessile_error err = {0};
    sessile_backend_log *log;
    char *blob;
    size_t size;
    char from[700], to[700];
    names found = {"", 99};
    (void)state;
    current = &backends[0];
    place_open(&p);
    place_init(&q);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->blob_put_new(S, "keyring", "x", 1, &err), SESSILE_OK);

    snprintf(from, sizeof from, "%s/agents/main/log.jsonl", p.root);
    snprintf(to, sizeof to, "%s/agents/main/link.jsonl", p.root);
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
    assert_int_equal(T->list(S, NULL, note, &found, &err), SESSILE_DENIED);
    /* whichever it comes upon first */
    assert_true(T->has_logs(S, &logs, &err) == SESSILE_DENIED || logs == 1);

    snprintf(q.root, sizeof q.root, "%s/link", q.folder);
    assert_int_equal(symlink(p.root, q.root), 0);
    assert_int_equal(open_file(&q, &err), SESSILE_DENIED);
    snprintf(q.root, sizeof q.root, "%s/link/", q.folder);
    assert_int_equal(open_file(&q, &err), SESSILE_DENIED);
    scratch_remove(q.folder);
    place_close(&p);
}

static void what_is_no_file_of_ours_is_refused(void **state)
{
    place p;
    sessile_error err = {0};
    sessile_backend_log *log;
    char *blob;
    size_t size;
    char path[700];
    (void)state;
    current = &backends[0];
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->blob_put_new(S, "keyring", "x", 1, &err), SESSILE_OK);

    snprintf(path, sizeof path, "%s/agents/main/fifo.jsonl", p.root);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(T->open(S, "main", "fifo", &log, &err), SESSILE_DENIED);
    snprintf(path, sizeof path, "%s/agents/main/folder.jsonl", p.root);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_not_equal(T->open(S, "main", "folder", &log, &err), SESSILE_OK);

    snprintf(path, sizeof path, "%s/keyring", p.root);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(T->blob_get(S, "keyring", &blob, &size, &err), SESSILE_DENIED);
    snprintf(path, sizeof path, "%s/agents/main/log.jsonl", p.root);
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_DENIED);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_DENIED);
    }
    place_close(&p);
}

static void folder_that_others_may_write_is_refused(void **state)
{
    static const char *const folders[] = {"", "/agents", "/agents/main"};
    (void)state;
    current = &backends[0];
    for (size_t i = 0; i < 3; i++) {
        place p;
        store again;
        sessile_error err = {0};
        sessile_backend_log *log;
        char path[700];
        place_open(&p);
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
        place_close(&p);
    }
}

static void log_under_another_name_is_said_to_be_replaced(void **state)
{
    place p;
    sessile_error err = {0};
    char path[700], elsewhere[700];
    int replaced;
    (void)state;
    current = &backends[0];
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    sessile_backend_log *log = opened(&p, "log");
    snprintf(path, sizeof path, "%s/agents/main/log.jsonl", p.root);
    snprintf(elsewhere, sizeof elsewhere, "%s/agents/main/moved.jsonl", p.root);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_OK);
    assert_int_equal(replaced, 1);
    T->unlock(log);
    assert_int_equal(T->create(S, "main", "log", "new\n", 4, &err), SESSILE_OK);
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_OK);
    assert_int_equal(replaced, 1);
    T->close(log);
    place_close(&p);
}

static void log_that_may_only_be_read_is_read(void **state)
{
    place p;
    sessile_error err = {0};
    int replaced, poisoned;
    sessile_log_end end = {1, 2, {0}};
    const unsigned char tag[16] = {0};
    (void)state;
    current = &backends[0];
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    sessile_backend_log *log = opened(&p, "log"); /* the folder is open from here on */
    T->close(log);
    faults_set(&p.os, CALL_OPEN, 0, EROFS);
    log = opened(&p, "log");
    assert_int_equal(p.os.hits, 1);
    faults_none(&p.os);
    holds(&p, log, "x\n");
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_DENIED);
    assert_int_equal(T->lock(log, SESSILE_LOCK_SHARED, 0, &replaced, &err), SESSILE_OK);
    T->unlock(log);
    assert_int_equal(T->append(log, &end, "y\n", 2, 1, tag, &poisoned, &err),
                     SESSILE_DENIED);
    T->close(log);
    place_close(&p);
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
    current = &backends[0];
    for (unsigned long at = 0;; at++) {
        place p;
        sessile_error err = {0};
        sessile_backend_log *log;
        place_open(&p);
        p.os.lazy = 1;
        faults_set(&p.os, CALL_KINDS, at, at % 2 ? ENOSPC : EIO);
        sessile_status status = T->create(S, "main", "log", "x\n", 2, &err);
        unsigned long hits = p.os.hits;
        faults_none(&p.os);
        if (!status) {
            log = opened(&p, "log");
            holds(&p, log, "x\n");
            T->close(log);
        } else {
            assert_true(status == SESSILE_IO || status == SESSILE_FULL);
            assert_int_equal(count_names(p.folder), 0);
            assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
        }
        place_close(&p);
        if (hits == 0)
            break;
    }
}

static void create_syncs_the_file_and_every_folder_above_it(void **state)
{
    place p;
    sessile_error err = {0};
    (void)state;
    current = &backends[0];
    place_open(&p);
    faults_none(&p.os);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    /* above a/, above a/store/, a/store, agents, main, and the log itself */
    assert_int_equal(p.os.counts[CALL_SYNC_ALL], 6);
    faults_none(&p.os);
    assert_int_equal(T->create(S, "main", "log2", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(p.os.counts[CALL_SYNC_ALL], 2);
    /* a store that finds the folders there cannot know that their makers came to sync */
    store again;
    assert_int_equal(store_file_open(&again, p.root, &p.os.table, &p.alloc, &err),
                     SESSILE_OK);
    faults_none(&p.os);
    assert_int_equal(again.table->create(again.self, "main", "log3", "x\n", 2, &err),
                     SESSILE_OK);
    assert_int_equal(p.os.counts[CALL_SYNC_ALL], 5);
    store_close(&again);
    place_close(&p);
}

static void torn_end_is_copied_before_it_is_cut(void **state)
{
    place p;
    sessile_error err = {0};
    char path[700], piece[700];
    size_t size;
    int replaced;
    (void)state;
    current = &backends[0];
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "whole\ntorn", 10, &err), SESSILE_OK);
    sessile_backend_log *log = opened(&p, "log");
    assert_int_equal(T->set_aside(log, 6, &err),
                     SESSILE_INVALID); /* not under the lock */
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_OK);
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK);
    holds(&p, log, "whole\n");
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK); /* nothing left to do */
    snprintf(path, sizeof path, "%s/agents/main/log.jsonl", p.root);
    snprintf(piece, sizeof piece, "%s/agents/main/log.torn-6", p.root);
    char *bytes = file_read_all(piece, &size);
    assert_string_equal(bytes, "torn");
    free(bytes);
    /* interrupted between copy and cut: the same bytes again make no second piece */
    T->unlock(log);
    file_write_all(path, "whole\ntorn", 10);
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_OK);
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK);
    assert_int_equal(count_names(p.folder), 2);
    /* other bytes at the same place get a piece of their own */
    T->unlock(log);
    file_write_all(path, "whole\nelse", 10);
    assert_int_equal(T->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
                     SESSILE_OK);
    assert_int_equal(T->set_aside(log, 6, &err), SESSILE_OK);
    T->unlock(log);
    assert_int_equal(count_names(p.folder), 3);
    strcat(piece, "-2");
    bytes = file_read_all(piece, &size);
    assert_string_equal(bytes, "else");
    free(bytes);
    /* pieces are no logs, nor is what a crash left under a temporary name */
    names found = {"", 99};
    snprintf(path, sizeof path, "%s/agents/main/.new-00112233445566aa", p.root);
    file_write_all(path, "whole\n", 6);
    snprintf(path, sizeof path, "%s/agents/main/.new-00112233445566aa.jsonl", p.root);
    file_write_all(path, "whole\n", 6);
    assert_int_equal(T->list(S, NULL, note, &found, &err), SESSILE_OK);
    assert_string_equal(found.text, "main/log ");
    T->close(log);
    place_close(&p);
}

static void failed_sync_poisons_the_log_in_this_store_only(void **state)
{
    place p;
    store again;
    sessile_error err = {0};
    int poisoned;
    sessile_backend_log *third;
    sessile_log_end end = {1, 2, {0}};
    const unsigned char tag[16] = {0};
    (void)state;
    current = &backends[0];
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    sessile_backend_log *a = opened(&p, "log"), *b = opened(&p, "log");
    faults_set(&p.os, CALL_SYNC_DATA, 0, EIO);
    assert_int_equal(T->sync(a, &err), SESSILE_IO);
    faults_none(&p.os);
    assert_int_equal(T->sync(a, &err), SESSILE_IO);
    assert_int_equal(T->sync(b, &err), SESSILE_IO);
    assert_int_equal(T->append(b, &end, "y\n", 2, 1, tag, &poisoned, &err), SESSILE_IO);
    assert_int_equal(poisoned, 1);
    holds(&p, a, "x\n");
    assert_int_equal(store_file_open(&again, p.root, &p.os.table, &p.alloc, &err),
                     SESSILE_OK);
    assert_int_equal(again.table->open(again.self, "main", "log", &third, &err),
                     SESSILE_OK);
    assert_int_equal(again.table->append(third, &end, "y\n", 2, 1, tag, &poisoned, &err),
                     SESSILE_OK);
    again.table->close(third);
    store_close(&again);
    T->close(a);
    T->close(b);
    place_close(&p);
}

static void failed_append_is_cut_back_or_poisons(void **state)
{
    place p;
    sessile_error err = {0};
    int poisoned;
    sessile_log_end end = {1, 2, {0}};
    const unsigned char tag[16] = {9};
    (void)state;
    current = &backends[0];
    place_open(&p);
    assert_int_equal(T->create(S, "main", "log", "x\n", 2, &err), SESSILE_OK);
    sessile_backend_log *log = opened(&p, "log");
    faults_set(&p.os, CALL_WRITE, 0, ENOSPC);
    p.os.half = 1;
    p.os.more = 1;
    assert_int_equal(T->append(log, &end, "long line\n", 10, 1, tag, &poisoned, &err),
                     SESSILE_FULL);
    assert_int_equal(poisoned, 0);
    assert_int_equal(end.bytes, 2);
    holds(&p, log, "x\n");
    faults_set(&p.os, CALL_KINDS, 1, EIO); /* stat, write, write, truncate */
    p.os.half = 1;
    p.os.more = 3;
    assert_int_equal(T->append(log, &end, "long line\n", 10, 1, tag, &poisoned, &err),
                     SESSILE_IO);
    assert_int_equal(poisoned, 1);
    faults_none(&p.os);
    assert_int_equal(T->append(log, &end, "y\n", 2, 1, tag, &poisoned, &err), SESSILE_IO);
    T->close(log);
    place_close(&p);
}

/* ------------------------------------------------------------------ main */

static int use_file(void **state)
{
    (void)state;
    current = &backends[0];
    return 0;
}

static int use_ram(void **state)
{
    (void)state;
    current = &backends[1];
    return 0;
}

int main(void)
{
#define CONFORMANCE                                                      \
    cmocka_unit_test(what_is_appended_is_read_back),                     \
        cmocka_unit_test(append_where_the_log_does_not_end_is_CONFLICT), \
        cmocka_unit_test(names_taken_and_missing_are_told),              \
        cmocka_unit_test(names_that_lead_elsewhere_are_INVALID),         \
        cmocka_unit_test(lock_excludes_other_handles),                   \
        cmocka_unit_test(list_shows_every_log_once),                     \
        cmocka_unit_test(blob_is_put_once_and_whole),                    \
        cmocka_unit_test(out_of_memory_is_NOMEM_and_changes_nothing)
    const struct CMUnitTest conformance[] = {CONFORMANCE};
    const struct CMUnitTest files[] = {
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
    int failed = cmocka_run_group_tests_name("file", conformance, use_file, NULL);
    failed += cmocka_run_group_tests_name("ram", conformance, use_ram, NULL);
    failed += cmocka_run_group_tests_name("files on disk", files, NULL, NULL);
    return failed;
}
