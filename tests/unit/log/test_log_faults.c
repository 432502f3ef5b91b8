/*
 * test_log_faults.c: a log whose end is torn, that is cut or removed by others, whose
 * calls fail, and random histories.
 *
 * Owns promises 3 to 6 as far as one log keeps them. Never depends on how long anything
 * takes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "support/logs.h"

/* ------------------------------------------------------------------ torn ends */

static void hole_in_what_was_never_synced_is_a_torn_end(void **state)
{
    /* What a power cut may leave: the device kept a later write and lost an earlier one.
     * Nobody was told that either was safe. With a sync between them it is damage. */
    (void)state;
    EACH_FILE_MODE
    {
        for (int synced = 0; synced < 2; synced++) {
            kit k;
            char path[600];
            size_t size, after;
            uint64_t torn;
            sessile_error err = {0};
            log_t *log;
            kit_open(&k, mode);
            kit_create(&k, "log");
            kit_path(&k, "log", path);
            log = kit_resume(&k, "log", NULL);
            do_write(log, 1, "safe", 0);
            do_sync(log);
            uint64_t lost = log_bytes(log);
            do_write(log, 2, "lost", 50);
            if (synced)
                do_sync(log);
            do_write(log, 1, "kept", 0); /* through the handle that knows what is safe */
            log_close(log);
            char *bytes = file_read_all(path, &size);
            /* the rest of the sector that the log ended in was not written */
            memset(bytes + lost, 0, 512 - lost % 512);
            file_write_all(path, bytes, size);
            sessile_status status = kit_try(&k, "log", &log, NULL, &torn, &err);
            free(file_read_all(path, &after));
            assert_int_equal(status, SESSILE_OK);
            if (synced) {
                assert_int_equal(log_damage(log, &err), SESSILE_DAMAGED);
                assert_non_null(strstr(err.message, "00000002"));
                assert_int_equal(after, size);
                assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_DAMAGED);
                log_close(log);
            } else {
                assert_int_equal(log_count(log), 2);
                assert_int_equal(torn, size - lost);
                assert_int_equal(after, lost);
                log_close(log);
            }
            free(bytes);
            kit_close(&k);
        }
    }
}

static void first_append_settles_what_no_line_proves(void **state)
{
    /* Written and never synced, by a handle that is gone: the next writer makes it safe
     * before its own line says so. Once a handle, and once only. */
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size;
        sessile_error err = {0};
        log_t *log = kit_begin(&k, mode, path);
        do_write(log, 2, "never synced", 0);
        log_close(log);
        char *before = file_read_all(path, &size);
        log = kit_resume(&k, "log", NULL);
        faults_none(&k.os);
        do_write(log, 1, "next", 0);
        assert_int_equal(k.os.counts[CALL_WRITE], 2);
        assert_int_equal(k.os.counts[CALL_SYNC_DATA], 1);
        do_write(log, 1, "and next", 0);
        assert_int_equal(k.os.counts[CALL_WRITE], 3);
        assert_int_equal(k.os.counts[CALL_SYNC_DATA], 1);
        log_close(log);
        char *bytes = file_read_all(path, &size);
        assert_memory_equal(bytes, before, strlen(before));
        assert_non_null(strstr(bytes + strlen(before), ",\"durable\":\"00000002\""));
        free(before);
        free(bytes);
        /* and when it cannot, nothing is appended */
        log = kit_resume(&k, "log", NULL);
        faults_set(&k.os, CALL_SYNC_DATA, 0, EIO);
        assert_int_equal(try_write(log, 1, "not this", 0, &err), SESSILE_IO);
        faults_none(&k.os);
        assert_int_equal(try_write(log, 1, "nor this", 0, &err), SESSILE_IO);
        log_close(log);
        log = kit_resume(&k, "log", NULL);
        assert_int_equal(log_count(log), 5);
        log_close(log);
        kit_close(&k);
    }
}

static void write_during(void *log)
{
    do_write(log, 1, "while a sync was under way", 0);
}

static void sync_covers_only_what_was_written_before_it_began(void **state)
{
    kit k;
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    do_write(log, 1, "before", 0);
    faults_none(&k.os);
    k.os.during_sync = write_during;
    k.os.during_arg = log;
    do_sync(log);
    k.os.during_sync = NULL;
    assert_int_equal(log_count(log), 3);
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 1);
    do_sync(log); /* what came meanwhile needs one of its own */
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 2);
    do_sync(log);
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], 2);
    log_close(log);
    kit_close(&k);
}

static void first_line_under_a_lock_is_BUSY_when_the_time_is_up(void **state)
{
    /* Whoever removes a log overwrites its first line before the name goes. */
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size;
        uint64_t torn;
        sessile_error err = {0};
        log_t *late, *log = kit_begin(&k, mode, path);
        do_write(log, 1, "gone", 0);
        do_sync(log);
        assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
        char *bytes = file_read_all(path, &size);
        int fd = open(path, O_WRONLY);
        assert_true(fd >= 0);
        memset(bytes, 0, 100);
        assert_int_equal(pwrite(fd, bytes, 100, 0), 100);
        close(fd);
        assert_int_equal(log_open(&late, &k.st, k.keys, "main", "log", 128, 0, NULL, NULL,
                                  &torn, &k.alloc, &err),
                         SESSILE_BUSY);
        log_end(log);
        assert_int_equal(kit_try(&k, "log", &late, NULL, &torn, &err), SESSILE_DAMAGED);
        log_close(log);
        free(bytes);
        kit_close(&k);
    }
}

static void torn_end_under_a_writers_lock_is_left_alone(void **state)
{
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size, after;
        uint64_t torn;
        sessile_error err = {0};
        log_t *reader, *late;
        kit_open(&k, mode);
        kit_create(&k, "log");
        kit_path(&k, "log", path);
        log_t *writer = kit_resume(&k, "log", NULL);
        reader = kit_resume(&k, "log", NULL);
        do_write(writer, 1, "whole", 0);
        assert_int_equal(log_begin(writer, NULL, NULL, &err), SESSILE_OK);
        /* a write in progress: the first bytes of a line */
        char *bytes = file_read_all(path, &size);
        bytes = realloc(bytes, size + 30);
        assert_non_null(bytes);
        memcpy(bytes + size, "{\"id\":\"00000002\",\"commit\":1,\"d", 30);
        file_write_all(path, bytes, size + 30);
        assert_int_equal(log_refresh(reader, NULL, NULL, &err), SESSILE_OK);
        assert_int_equal(log_count(reader), 2);
        assert_int_equal(kit_try(&k, "log", &late, NULL, &torn, &err), SESSILE_OK);
        assert_int_equal(torn, 0);
        assert_int_equal(log_count(late), 2);
        free(file_read_all(path, &after));
        assert_int_equal(after, size + 30);
        log_end(writer);
        /* no writer any more: a reader still cuts nothing, a writer does */
        assert_int_equal(log_refresh(reader, NULL, NULL, &err), SESSILE_OK);
        free(file_read_all(path, &after));
        assert_int_equal(after, size + 30);
        do_write(late, 1, "next", 0);
        log_close(kit_resume(&k, "log", NULL));
        free(bytes);
        log_close(writer);
        log_close(reader);
        log_close(late);
        kit_close(&k);
    }
}

static void recovery_interrupted_anywhere_can_be_run_again(void **state)
{
    kit k;
    char path[600];
    size_t size;
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    kit_path(&k, "log", path);
    log_t *log = kit_resume(&k, "log", NULL);
    do_write(log, 1, "kept", 0);
    do_sync(log);
    do_write(log, 3, "torn", 0);
    log_close(log);
    char *bytes = file_read_all(path, &size);
    for (unsigned long at = 0;; at++) {
        sessile_error err = {0};
        uint64_t torn;
        seen found = {0};
        file_write_all(path, bytes, size - 5);
        kit once; /* a handle of its own: a failed sync poisons it */
        kit_again(&once, &k);
        faults_set(&once.os, CALL_KINDS, at, EIO);
        sessile_status status = kit_try(&once, "log", &log, NULL, &torn, &err);
        unsigned long hits = once.os.hits;
        faults_none(&once.os);
        if (!status)
            log_close(log);
        kit_again_close(&once);
        kit twice;
        kit_again(&twice, &k);
        assert_int_equal(kit_try(&twice, "log", &log, &found, &torn, &err), SESSILE_OK);
        assert_int_equal(found.count, 2);
        log_close(log);
        kit_again_close(&twice);
        seen_free(&found);
        if (hits == 0)
            break;
        assert_true(status == SESSILE_IO || status == SESSILE_OK);
    }
    free(bytes);
    kit_close(&k);
}

/* ------------------------------------------------------------ shorter than known */

static void log_cut_behind_our_back_is_TRUNCATED(void **state)
{
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size, after;
        sessile_error err = {0};
        buf out;
        log_t *log = kit_begin(&k, mode, path);
        do_write(log, 2, "gone", 100);
        do_sync(log);
        free(file_read_all(path, &size));
        assert_int_equal(truncate(path, (off_t)size - 50), 0);
        assert_int_equal(log_refresh(log, NULL, NULL, &err), SESSILE_TRUNCATED);
        assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_TRUNCATED);
        buf_init(&out, &k.alloc);
        assert_int_equal(log_read(log, 2, &out, &err), SESSILE_TRUNCATED);
        assert_int_equal(log_read(log, 0, &out, &err), SESSILE_OK);
        buf_deinit(&out);
        free(file_read_all(path, &after));
        assert_int_equal(after, size - 50);
        log_close(log);
        kit_close(&k);
    }
}

static void damage_met_by_a_read_is_named(void **state)
{
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size;
        sessile_error err = {0};
        buf out;
        log_t *log = kit_begin(&k, mode, path);
        uint64_t first = log_bytes(log);
        do_write(log, 1, "one", 100);
        do_write(log, 1, "two", 100);
        char *bytes = file_read_all(path, &size);
        bytes[first + 60] ^= 1;
        file_write_all(path, bytes, size);
        buf_init(&out, &k.alloc);
        assert_int_equal(log_read(log, 1, &out, &err), SESSILE_DAMAGED);
        assert_non_null(strstr(err.message, "00000001"));
        assert_int_equal(out.size, 0);
        assert_int_equal(log_read(log, 2, &out, &err), SESSILE_OK);
        seen found = {0};
        assert_int_equal(log_read_range(log, 0, 2, see, &found, &err), SESSILE_DAMAGED);
        assert_int_equal(found.count, 1);
        seen_free(&found);
        buf_deinit(&out);
        free(bytes);
        log_close(log);
        kit_close(&k);
    }
}

static void log_removed_behind_our_back_is_NOTFOUND_to_a_writer(void **state)
{
    kit k;
    char path[600];
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    kit_path(&k, "log", path);
    log_t *log = kit_resume(&k, "log", NULL);
    unlink(path);
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_NOTFOUND);
    kit_create(&k, "log");
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_NOTFOUND);
    log_close(log);
    kit_close(&k);
}

/* ------------------------------------------------------------------ failing calls */

static void write_that_fails_leaves_the_log_as_before(void **state)
{
    static const struct {
        int error, half;
        sessile_status status;
    } cases[] = {
        {ENOSPC, 0, SESSILE_FULL}, {EDQUOT, 0, SESSILE_FULL},
        {EIO, 0, SESSILE_IO},      {ENOSPC, 1, SESSILE_FULL}, /* half, then none */
        {EIO, 1, SESSILE_IO},
    };
    (void)state;
    EACH_FILE_MODE
    {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            kit k;
            char path[600];
            size_t size, after;
            sessile_error err = {0};
            log_t *log = kit_begin(&k, mode, path);
            do_write(log, 1, "before", 0);
            char *bytes = file_read_all(path, &size);
            faults_set(&k.os, CALL_WRITE, 0, cases[c].error);
            k.os.half = cases[c].half;
            k.os.more = 5;
            assert_int_equal(try_write(log, 3, "fails", 500, &err), cases[c].status);
            faults_none(&k.os);
            char *now = file_read_all(path, &after);
            assert_int_equal(after, size);
            assert_memory_equal(now, bytes, size);
            assert_int_equal(log_count(log), 2);
            do_write(log, 1, "after", 0);
            log_close(log);
            log = kit_resume(&k, "log", NULL);
            assert_int_equal(log_count(log), 3);
            log_close(log);
            free(bytes);
            free(now);
            kit_close(&k);
        }
    }
}

static void short_writes_and_EINTR_are_gone_on_with(void **state)
{
    static const int errors[] = {0, EINTR};
    (void)state;
    for (int i = 0; i < 2; i++) {
        kit k;
        seen found = {0};
        kit_open(&k, KIT_XCHACHA);
        kit_create(&k, "log");
        log_t *log = kit_resume(&k, "log", NULL);
        faults_set(&k.os, CALL_WRITE, 0, errors[i]);
        k.os.half = errors[i] == 0;
        do_write(log, 3, "in two parts", 100);
        assert_int_equal(k.os.hits, 1);
        faults_none(&k.os);
        log_close(log);
        log_close(kit_resume(&k, "log", &found));
        assert_int_equal(found.count, 4);
        seen_free(&found);
        kit_close(&k);
    }
}

static void write_that_cannot_be_cut_back_poisons(void **state)
{
    kit k;
    sessile_error err = {0};
    uint64_t torn;
    seen found = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    log_t *other = kit_resume(&k, "log", NULL);
    do_write(log, 1, "before", 0);
    faults_set(&k.os, CALL_KINDS, 2, ENOSPC); /* lock, stat, write, truncate */
    k.os.half = 1;
    k.os.more = 5;
    assert_int_equal(try_write(log, 3, "fails", 500, &err), SESSILE_FULL);
    faults_none(&k.os);
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_IO);
    assert_non_null(strstr(err.message, "main/log"));
    assert_int_not_equal(try_write(other, 1, "nor this", 0, &err), SESSILE_OK);
    log_close(log);
    log_close(other);
    kit again; /* another store handle knows nothing of it, and heals the log */
    kit_again(&again, &k);
    assert_int_equal(kit_try(&again, "log", &log, &found, &torn, &err), SESSILE_OK);
    assert_int_equal(found.count, 2);
    assert_true(torn > 0);
    do_write(log, 1, "after", 0);
    log_close(log);
    kit_again_close(&again);
    seen_free(&found);
    kit_close(&k);
}

static void failed_sync_poisons_every_handle_of_the_store(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EINTR};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        kit k;
        sessile_error err = {0};
        buf out;
        kit_open(&k, KIT_XCHACHA);
        kit_create(&k, "log");
        kit_create(&k, "other");
        log_t *log = kit_resume(&k, "log", NULL), *second = kit_resume(&k, "log", NULL);
        log_t *other = kit_resume(&k, "other", NULL);
        do_write(log, 1, "unsafe", 0);
        faults_set(&k.os, CALL_SYNC_DATA, 0, errors[i]);
        assert_int_equal(log_sync(log, log_count(log), &err), SESSILE_IO);
        faults_none(&k.os);
        /* for ever, and saying why; never a second sync that reports success */
        assert_int_equal(log_sync(log, log_count(log), &err), SESSILE_IO);
        assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_IO);
        assert_non_null(strstr(err.message, "could not be made safe"));
        assert_int_equal(try_write(second, 1, "nor here", 0, &err), SESSILE_IO);
        assert_int_equal(log_sync(second, log_count(second), &err), SESSILE_IO);
        assert_int_equal(k.os.counts[CALL_SYNC_DATA], 0);
        /* reading goes on, and so do other logs */
        buf_init(&out, &k.alloc);
        assert_int_equal(log_read(log, 1, &out, &err), SESSILE_OK);
        buf_deinit(&out);
        do_write(other, 1, "unharmed", 0);
        do_sync(other);
        log_close(log);
        log_close(second);
        log_close(other);
        kit_close(&k);
    }
}

/* Every call of a session's life fails in turn: each outcome is an error with a sentence,
 * and what was acknowledged is there afterwards. */
static void any_failing_call_loses_nothing_acknowledged(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, EACCES, EMFILE};
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
            for (unsigned long at = 0;; at++) {
                kit k, life;
                sessile_error err = {0};
                seen found = {0};
                uint64_t torn;
                log_t *log = NULL;
                size_t acknowledged = 0, written = 0;
                unsigned long hits;
                kit_open(&k, sealed ? KIT_XCHACHA : KIT_PLAIN);
                k.os.lazy = 1;
                kit_again(&life, &k);
                life.os.lazy = 1;
                faults_set(&life.os, CALL_KINDS, at, errors[e]);
                char *header = entry_text(0, "log", 0);
                sessile_status status =
                    log_create(&life.st, life.keys, "main", "log", header, strlen(header),
                               -1, &life.alloc, &err);
                if (!status) {
                    acknowledged = written = 1;
                    status = kit_try(&life, "log", &log, NULL, &torn, &err);
                }
                for (int i = 0; i < 3 && !status; i++) {
                    status = try_write(log, 2, "said", 30, &err);
                    if (!status) {
                        written += 2;
                        status = log_sync(log, log_count(log), &err);
                    }
                    if (!status)
                        acknowledged += 2;
                }
                hits = life.os.hits;
                if (status) {
                    assert_true(hits > 0);
                    assert_true(err.message[0] != 0);
                    assert_int_equal(err.code, status);
                }
                log_close(log);
                kit_again_close(&life);
                status = kit_try(&k, "log", &log, &found, &torn, &err);
                if (acknowledged > 0 || !status) {
                    assert_int_equal(status, SESSILE_OK);
                    assert_true(found.count >= acknowledged);
                    assert_true(found.count <= (written > 0 ? written : 1));
                    assert_int_equal(torn, 0);
                    log_close(log);
                } else {
                    assert_int_equal(status, SESSILE_NOTFOUND);
                }
                seen_free(&found);
                free(header);
                kit_close(&k);
                if (hits == 0)
                    break;
            }
        }
    }
}

/* ------------------------------------------------------------------ out of memory */

static void out_of_memory_is_NOMEM_and_never_a_torn_end(void **state)
{
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size, after;
        kit_open(&k, mode);
        k.os.lazy = 1;
        kit_create(&k, "log");
        kit_path(&k, "log", path);
        log_t *log = kit_resume(&k, "log", NULL);
        for (int i = 0; i < 12; i++)
            do_write(log, 1 + (size_t)i % 3, "text", 300 * (size_t)i);
        log_close(log);
        for (size_t at = 1;; at++) {
            sessile_error err = {0};
            uint64_t torn;
            buf out;
            char *bytes = file_read_all(path, &size);
            buf_init(&out, &k.alloc);
            k.memory.calls = 0;
            k.memory.fail_at = at;
            sessile_status status = kit_try(&k, "log", &log, NULL, &torn, &err);
            int opened = status == SESSILE_OK;
            if (opened)
                status = log_read(log, 5, &out, &err);
            if (!status)
                status = log_read_range(log, 0, log_count(log) - 1, NULL, NULL, &err);
            size_t calls = k.memory.calls;
            k.memory.fail_at = 0;
            assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
            if (opened)
                log_close(log);
            buf_deinit(&out);
            char *now = file_read_all(path, &after);
            assert_int_equal(after, size);
            assert_memory_equal(now, bytes, size);
            free(now);
            free(bytes);
            if (calls < at)
                break;
            assert_int_equal(status, SESSILE_NOMEM);
        }
        for (size_t at = 1;; at++) {
            sessile_error err = {0};
            log = kit_resume(&k, "log", NULL);
            sessile_id count = log_count(log);
            free(file_read_all(path, &size));
            k.memory.calls = 0;
            k.memory.fail_at = at;
            sessile_status status = try_write(log, 2, "append", 400, &err);
            size_t calls = k.memory.calls;
            k.memory.fail_at = 0;
            assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
            if (status) {
                assert_int_equal(log_count(log), count);
                free(file_read_all(path, &after));
                assert_int_equal(after, size);
                do_write(log, 1, "after", 0);
            }
            log_close(log);
            if (calls < at)
                break;
        }
        kit_close(&k);
    }
}

/* ------------------------------------------------------------------ at random */

/* Two handles write, sync, refresh and reopen at random; a list of texts is the model. */
static void random_histories_match_a_list(void **state)
{
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    EACH_MODE
    {
        kit k;
        log_t *logs[2];
        char *model[2000];
        size_t count = 1;
        kit_open(&k, mode);
        k.os.lazy = 1;
        kit_create(&k, "log");
        model[0] = entry_text(0, "log", 0);
        for (int i = 0; i < 2; i++)
            logs[i] = kit_resume(&k, "log", NULL);
        for (int step = 0; step < 600; step++) {
            sessile_error err = {0};
            log_t **log = &logs[random_next(&seed) % 2];
            switch (random_next(&seed) % 6) {
            case 0:
            case 1: {
                size_t n = 1 + random_next(&seed) % 4, padding = random_next(&seed) % 900;
                if (random_next(&seed) % 20 == 0)
                    padding *= 500;
                do_write(*log, n, "random", padding);
                for (size_t i = 0; i < n; i++, count++)
                    model[count] = entry_text((sessile_id)count, "random", padding);
                break;
            }
            case 2:
                do_sync(*log);
                break;
            case 3:
                assert_int_equal(log_refresh(*log, NULL, NULL, &err), SESSILE_OK);
                assert_int_equal(log_count(*log), count);
                break;
            case 4:
                log_close(*log);
                *log = kit_resume(&k, "log", NULL);
                assert_int_equal(log_count(*log), count);
                break;
            default: {
                buf out;
                sessile_id id = (sessile_id)(random_next(&seed) % log_count(*log));
                buf_init(&out, &k.alloc);
                assert_int_equal(log_read(*log, id, &out, &err), SESSILE_OK);
                assert_string_equal(out.data, model[id]);
                buf_deinit(&out);
            }
            }
            if (count > 1900)
                break;
        }
        for (int i = 0; i < 2; i++)
            log_close(logs[i]);
        seen found = {0};
        log_close(kit_resume(&k, "log", &found));
        assert_int_equal(found.count, count);
        for (size_t i = 0; i < count; i++) {
            assert_string_equal(found.texts[i], model[i]);
            free(model[i]);
        }
        seen_free(&found);
        kit_close(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_end_under_a_writers_lock_is_left_alone),
        cmocka_unit_test(first_line_under_a_lock_is_BUSY_when_the_time_is_up),
        cmocka_unit_test(recovery_interrupted_anywhere_can_be_run_again),
        cmocka_unit_test(hole_in_what_was_never_synced_is_a_torn_end),
        cmocka_unit_test(first_append_settles_what_no_line_proves),
        cmocka_unit_test(sync_covers_only_what_was_written_before_it_began),
        cmocka_unit_test(log_cut_behind_our_back_is_TRUNCATED),
        cmocka_unit_test(damage_met_by_a_read_is_named),
        cmocka_unit_test(log_removed_behind_our_back_is_NOTFOUND_to_a_writer),
        cmocka_unit_test(write_that_fails_leaves_the_log_as_before),
        cmocka_unit_test(short_writes_and_EINTR_are_gone_on_with),
        cmocka_unit_test(write_that_cannot_be_cut_back_poisons),
        cmocka_unit_test(failed_sync_poisons_every_handle_of_the_store),
        cmocka_unit_test(any_failing_call_loses_nothing_acknowledged),
        cmocka_unit_test(out_of_memory_is_NOMEM_and_never_a_torn_end),
        cmocka_unit_test(random_histories_match_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
