/*
 * test_copy.c: a log rewritten in the place of another: the same entries, under a key
 * of its own, or the old log as it was.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/copy.h"
#include "log/internal.h"
#include "support/logs.h"

static kit k;

static int set_up(void **state)
{
    kit_mode mode = (kit_mode)(uintptr_t)*state;
    kit_open(&k, kit_possible(mode) ? mode : KIT_XCHACHA);
    kit_create(&k, "log");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_close(&k);
    return 0;
}

/* Three writes of 1, 3 and 2 entries, synced. */
static void write_some(void)
{
    log_t *log = kit_resume(&k, "log", NULL);
    do_write(log, 1, "one", 10);
    do_write(log, 3, "three", 2000);
    do_write(log, 2, "two", 0);
    do_sync(log);
    log_close(log);
}

/* Copies `log` entry by entry, with the writes write_some() made. */
static sessile_status copy_log(log_t *log, int keep, char *kept, size_t kept_size,
                               sessile_error *err)
{
    static const int ends[] = {1, 1, 0, 0, 1, 0, 1};
    log_copy copy;
    buf text;
    int replaced;
    buf_init(&text, &k.alloc);
    assert_int_equal(
        k.st.table->lock(log->handle, SESSILE_LOCK_EXCLUSIVE, 100, &replaced, err), 0);
    assert_int_equal(log_read(log, 0, &text, err), 0);
    sessile_status status =
        log_copy_begin(&copy, &k.st, k.keys, "main", "log", log_user(log), text.data,
                       text.size, &k.alloc, err);
    for (sessile_id id = 1; !status && id < log_count(log); id++) {
        buf_clear(&text);
        assert_int_equal(log_read(log, id, &text, err), 0);
        status = log_copy_entry(&copy, text.data, text.size, ends[id], err);
    }
    if (!status)
        status = log_copy_finish(&copy, log->handle, keep, kept, kept_size, err);
    log_copy_drop(&copy);
    log_copy_drop(&copy);
    k.st.table->unlock(log->handle);
    buf_deinit(&text);
    return status;
}

static char *bytes_of(size_t *size)
{
    char path[600];
    kit_path(&k, "log", path);
    return file_read_all(path, size);
}

static void copy_holds_the_same_entries_under_another_key(void **state)
{
    (void)state;
    sessile_error err = {0};
    size_t before_size, after_size;
    char kept[256];
    seen before = {0}, after = {0};
    write_some();
    char *old = bytes_of(&before_size);
    log_t *log = kit_resume(&k, "log", &before);
    assert_int_equal(copy_log(log, 0, kept, sizeof kept, &err), SESSILE_OK);
    log_close(log);
    char *new = bytes_of(&after_size);
    log = kit_resume(&k, "log", &after);
    assert_int_equal(after.count, 7);
    assert_int_equal(before.count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(before.texts[i], after.texts[i]);
    if (keyring_sealed(k.keys)) {
        char *a = strstr(old, "\"key\":\""), *b = strstr(new, "\"key\":\"");
        assert_memory_not_equal(a, b, 40);
    }
    do_write(log, 1, "goes on", 0);
    do_sync(log);
    log_close(log);
    seen_free(&before);
    seen_free(&after);
    free(old);
    free(new);
}

/* The numbers behind "commit" of all lines, as text. */
static void commits_of(char out[200])
{
    size_t size, at = 0;
    char *bytes = bytes_of(&size);
    out[0] = 0;
    for (char *line = bytes; line < bytes + size; line = strchr(line, '\n') + 1) {
        char *end = strchr(line, '\n'), *commit;
        *end = 0;
        commit = strstr(line, ",\"commit\":");
        at += (size_t)snprintf(out + at, 200 - at, "%d ", commit ? atoi(commit + 10) : 0);
        *end = '\n';
    }
    free(bytes);
}

static void log_sealed_anew_has_the_same_writes(void **state)
{
    (void)state;
    sessile_error err = {0};
    char before[200], after[200];
    seen entries = {0};
    int done;
    write_some();
    commits_of(before);
    assert_string_equal(before, "1 1 0 0 3 0 2 ");
    if (!keyring_sealed(k.keys)) {
        assert_int_equal(
            log_reseal(&k.st, k.keys, "main", "log", 100, NULL, &done, &k.alloc, &err),
            SESSILE_UNSUPPORTED);
        return;
    }
    assert_int_equal(keyring_new_epoch(k.keys, &err), SESSILE_OK);
    assert_int_equal(
        log_reseal(&k.st, k.keys, "main", "log", 100, NULL, &done, &k.alloc, &err),
        SESSILE_OK);
    assert_int_equal(done, 1);
    commits_of(after);
    assert_string_equal(before, after);
    log_t *log = kit_resume(&k, "log", &entries);
    assert_int_equal(entries.count, 7);
    log_close(log);
    seen_free(&entries);
    /* once is enough */
    assert_int_equal(
        log_reseal(&k.st, k.keys, "main", "log", 100, NULL, &done, &k.alloc, &err),
        SESSILE_OK);
    assert_int_equal(done, 0);
}

/* Every write of a copy names what was before it: so damage in it is never cut. */
static void damage_in_a_copy_is_no_torn_end(void **state)
{
    (void)state;
    sessile_error err = {0};
    size_t size;
    uint64_t torn;
    char path[600];
    log_t *log;
    write_some();
    log = kit_resume(&k, "log", NULL);
    assert_int_equal(copy_log(log, 0, NULL, 0, &err), SESSILE_OK);
    log_close(log);
    char *bytes = bytes_of(&size);
    char *second = strchr(bytes, '\n') + 1;
    second[60] ^= 1;
    kit_path(&k, "log", path);
    file_write_all(path, bytes, size);
    assert_int_equal(kit_try(&k, "log", &log, NULL, &torn, &err), SESSILE_OK);
    assert_int_equal(log_damage(log, &err), SESSILE_DAMAGED);
    log_close(log);
    free(bytes);
}

static void old_log_is_kept_when_asked(void **state)
{
    (void)state;
    sessile_error err = {0};
    size_t before_size, kept_size;
    char kept[256], path[600];
    write_some();
    char *before = bytes_of(&before_size);
    log_t *log = kit_resume(&k, "log", NULL);
    assert_int_equal(copy_log(log, 1, kept, sizeof kept, &err), SESSILE_OK);
    log_close(log);
    snprintf(path, sizeof path, "%s/agents/main/%s", k.root, kept);
    char *copy = file_read_all(path, &kept_size);
    assert_int_equal(kept_size, before_size);
    assert_memory_equal(copy, before, before_size);
    free(before);
    free(copy);
}

static void failing_copy_leaves_the_old_log(void **state)
{
    (void)state;
    size_t before_size, after_size;
    write_some();
    char *before = bytes_of(&before_size);
    log_t *log = kit_resume(&k, "log", NULL);
    static const fault_call kinds[] = {CALL_WRITE, CALL_SYNC_ALL};
    for (size_t i = 0; i < 2; i++) {
        sessile_error err = {0};
        faults_set(&k.os, kinds[i], 0, ENOSPC);
        assert_int_equal(copy_log(log, 0, NULL, 0, &err), SESSILE_FULL);
        faults_none(&k.os);
        char *after = bytes_of(&after_size);
        assert_int_equal(before_size, after_size);
        assert_memory_equal(before, after, before_size);
        free(after);
    }
    log_close(log);
    free(before);
}

static void entries_that_do_not_follow_are_refused(void **state)
{
    (void)state;
    sessile_error err = {0};
    log_copy copy;
    char *header = entry_text(0, "log", 0), *second = entry_text(2, "x", 0),
         *first = entry_text(1, "x", 0);
    assert_int_equal(log_copy_begin(&copy, &k.st, k.keys, "main", "log", NULL, second,
                                    strlen(second), &k.alloc, &err),
                     SESSILE_INVALID);
    log_copy_drop(&copy);
    assert_int_equal(log_copy_begin(&copy, &k.st, k.keys, "main", "log", NULL, header,
                                    strlen(header), &k.alloc, &err),
                     SESSILE_OK);
    assert_int_equal(log_copy_entry(&copy, second, strlen(second), 1, &err),
                     SESSILE_INVALID);
    assert_int_equal(log_copy_entry(&copy, first, strlen(first), 0, &err), SESSILE_OK);
    assert_int_equal(log_copy_finish(&copy, NULL, 0, NULL, 0, &err), SESSILE_INVALID);
    log_copy_drop(&copy);
    free(header);
    free(first);
    free(second);
}

#define MODES_OF(test)                                                                \
    {#test " (plain)", test, set_up, tear_down, (void *)(uintptr_t)KIT_PLAIN},        \
        {#test " (AES)", test, set_up, tear_down, (void *)(uintptr_t)KIT_AES},        \
    {                                                                                 \
#test " (XChaCha20)", test, set_up, tear_down, (void *)(uintptr_t)KIT_XCHACHA \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODES_OF(copy_holds_the_same_entries_under_another_key),
        MODES_OF(log_sealed_anew_has_the_same_writes),
        MODES_OF(damage_in_a_copy_is_no_torn_end),
        MODES_OF(old_log_is_kept_when_asked),
        MODES_OF(failing_copy_leaves_the_old_log),
        MODES_OF(entries_that_do_not_follow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
