/*
 * test_log.c: a log of entries: appended, read, shared, and the layout of its lines.
 *
 * Owns promises 1, 2 and 8 as far as one log keeps them. Never depends on how long
 * anything takes. What fails is in test_log_faults.c.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "support/logs.h"

/* ------------------------------------------------------------------ there and back */

static void what_was_appended_is_read_back(void **state)
{
    (void)state;
    EACH_MODE
    {
        kit k;
        seen found = {0};
        buf one;
        sessile_error err = {0};
        log_t *log = kit_begin(&k, mode, NULL);
        assert_int_equal(log_count(log), 1);
        do_write(log, 1, "first", 0);
        do_write(log, 5, "five at once", 100);
        do_write(log, 1, "large", 3 << 20);
        do_write(log, 64, "many", 9000);
        do_sync(log);
        assert_int_equal(log_count(log), 72);
        buf_init(&one, &k.alloc);
        for (int again = 0; again < 2; again++) {
            for (sessile_id id = 0; id < 72; id++) {
                const char *content = id == 0   ? "log"
                                      : id == 1 ? "first"
                                      : id < 7  ? "five at once"
                                      : id == 7 ? "large"
                                                : "many";
                size_t padding = id < 2 ? 0 : id < 7 ? 100 : id == 7 ? 3 << 20 : 9000;
                char *text = entry_text(id, content, padding);
                buf_clear(&one);
                assert_int_equal(log_read(log, id, &one, &err), SESSILE_OK);
                assert_string_equal(one.data, text);
                if (again)
                    assert_string_equal(found.texts[id], text);
                free(text);
            }
            if (!again) {
                log_close(log);
                log = kit_resume(&k, "log", &found);
                assert_int_equal(found.count, 72);
            }
        }
        seen range = {0};
        assert_int_equal(log_read_range(log, 0, 71, see, &range, &err), SESSILE_OK);
        assert_int_equal(range.count, 72);
        for (size_t i = 0; i < 72; i++)
            assert_string_equal(range.texts[i], found.texts[i]);
        seen_free(&range);
        assert_int_equal(log_read(log, 72, &one, &err), SESSILE_NOTFOUND);
        assert_int_equal(log_read_range(log, 3, 72, see, &range, &err), SESSILE_NOTFOUND);
        buf_deinit(&one);
        log_close(log);
        seen_free(&found);
        kit_close(&k);
    }
}

static void peek_shows_the_header_and_the_size(void **state)
{
    (void)state;
    EACH_MODE
    {
        kit k;
        buf out;
        sessile_error err = {0};
        log_t *log = kit_begin(&k, mode, NULL);
        do_write(log, 2, "more", 50);
        buf_init(&out, &k.alloc);
        assert_int_equal(
            log_peek(&k.st, k.keys, "main", "log", 128, 0, &out, &k.alloc, &err),
            SESSILE_OK);
        char *header = entry_text(0, "log", 0);
        assert_string_equal(out.data, header);
        assert_int_equal(
            log_peek(&k.st, k.keys, "main", "none", 128, 0, &out, &k.alloc, &err),
            SESSILE_NOTFOUND);
        free(header);
        buf_deinit(&out);
        log_close(log);
        kit_close(&k);
    }
}

static void name_that_is_taken_is_EXISTS(void **state)
{
    (void)state;
    EACH_MODE
    {
        kit k;
        sessile_error err = {0};
        log_t *log;
        kit_open(&k, mode);
        kit_create(&k, "log");
        assert_int_equal(log_create(&k.st, k.keys, "main", "log", "{\"id\":\"00000000\"}",
                                    17, -1, &k.alloc, &err),
                         SESSILE_EXISTS);
        assert_int_equal(kit_try(&k, "none", &log, NULL, NULL, &err), SESSILE_NOTFOUND);
        assert_null(log);
        kit_close(&k);
    }
}

static void entries_that_are_none_are_INVALID_and_leave_nothing(void **state)
{
    static const char *const bad[] = {
        "{\"id\":\"00000002\",\"x\":1}",      /* not the next id */
        "{\"id\":\"0000001\",\"x\":1}",       /* no id */
        "{\"x\":1,\"id\":\"00000001\"}",      /* not first */
        "{\"id\":\"00000001\",\"x\":\n1}",    /* a newline */
        "{\"id\":\"00000001\",\"x\":1",       /* no end */
        "{\"id\":\"00000001\",\"commit\":1}", /* reads as the end of a write */
    };
    (void)state;
    kit k;
    sessile_error err = {0};
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    uint64_t bytes = log_bytes(log);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sessile_slice text = {bad[i], strlen(bad[i])};
        assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
        assert_int_equal(log_append(log, &text, 1, 0, &err), SESSILE_INVALID);
        log_end(log);
    }
    assert_int_equal(log_bytes(log), bytes);
    do_write(log, 1, "fine", 0);
    log_close(log);
    kit_close(&k);
}

static void log_past_its_limit_is_LIMIT(void **state)
{
    kit k;
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    char *text = entry_text(1, "x", 1000);
    sessile_slice slice = {text, strlen(text)};
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(log_append(log, &slice, 1, 1000, &err), SESSILE_LIMIT);
    assert_non_null(strstr(err.message, "[session]"));
    assert_int_equal(log_count(log), 1);
    assert_int_equal(log_append(log, &slice, 1, 2000, &err), SESSILE_OK);
    log_end(log);
    free(text);
    log_close(log);
    kit_close(&k);
}

/* ------------------------------------------------------------------ the layout */

static void plain_lines_are_as_described(void **state)
{
    kit k;
    char path[600], expected[2000], line[800], hex[17];
    unsigned char hash[32];
    size_t size;
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    do_write(log, 2, "pair", 0);
    do_sync(log);
    do_write(log, 1, "next", 0);
    log_close(log);
    const char *const clear[] = {",\"sessile\":1,\"commit\":1", "",
                                 ",\"commit\":2,\"durable\":\"00000000\"",
                                 ",\"commit\":1,\"durable\":\"00000002\""};
    const char *const content[] = {"log", "pair", "pair", "next"};
    expected[0] = 0;
    for (sessile_id id = 0; id < 4; id++) {
        char *text = entry_text(id, content[id], 0);
        snprintf(line, sizeof line, "%.*s%s", (int)strlen(text) - 1, text, clear[id]);
        hash256(hash, line, strlen(line), NULL, 0);
        hex_encode(hex, hash, 8);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
                 "%s,\"_c\":\"%s\"}\n", line, hex);
        free(text);
    }
    kit_path(&k, "log", path);
    char *bytes = file_read_all(path, &size);
    assert_string_equal(bytes, expected);
    free(bytes);
    kit_close(&k);
}

static void sealed_lines_are_as_described(void **state)
{
    (void)state;
    const kit_mode modes[] = {KIT_AES, KIT_XCHACHA};
    for (size_t m = 0; m < 2; m++) {
        if (!kit_possible(modes[m]))
            continue;
        kit k;
        char path[600], start[200];
        size_t size;
        kit_open(&k, modes[m]);
        kit_create(&k, "log");
        log_t *log = kit_resume(&k, "log", NULL);
        do_write(log, 2, "pair", 0);
        do_sync(log);
        do_write(log, 1, "next", 0);
        log_close(log);
        kit_path(&k, "log", path);
        char *bytes = file_read_all(path, &size), *at = bytes;
        size_t overhead = (modes[m] == KIT_AES ? 12 : 24) + 16 + 16;
        snprintf(
            start, sizeof start,
            "{\"id\":\"00000000\",\"sessile\":1,\"suite\":\"%s\",\"epoch\":1,\"key\":\"",
            modes[m] == KIT_AES ? "aes-256-gcm" : "xchacha20-poly1305");
        assert_memory_equal(at, start, strlen(start));
        at = strstr(at, "\",\"commitment\":\"");
        assert_non_null(at);
        at += strlen("\",\"commitment\":\"") + base64_size(32);
        const char *const heads[] = {
            "\",\"commit\":1,\"s\":\"", "{\"id\":\"00000001\",\"s\":\"",
            "{\"id\":\"00000002\",\"commit\":2,\"durable\":\"00000000\",\"s\":\"",
            "{\"id\":\"00000003\",\"commit\":1,\"durable\":\"00000002\",\"s\":\""};
        const char *const content[] = {"log", "pair", "pair", "next"};
        for (sessile_id id = 0; id < 4; id++) {
            char *text = entry_text(id, content[id], 0);
            assert_memory_equal(at, heads[id], strlen(heads[id]));
            at += strlen(heads[id]);
            at += base64_size(overhead + strlen(text));
            assert_memory_equal(at, "\"}\n", 3);
            at += 3;
            free(text);
        }
        assert_ptr_equal(at, bytes + size);
        free(bytes);
        kit_close(&k);
    }
}

static int has_canary(const char *folder)
{
    char command[400];
    snprintf(command, sizeof command, "grep -rq 'unmistakable' '%s'", folder);
    return system(command) == 0;
}

static void sealed_store_keeps_no_plain_text(void **state)
{
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        char path[600];
        size_t size;
        uint64_t torn;
        log_t *log;
        sessile_error err = {0};
        kit_open(&k, mode);
        kit_create(&k, "log");
        log = kit_resume(&k, "log", NULL);
        do_write(log, 3, "unmistakable", 50);
        do_sync(log);
        log_close(log);
        kit_path(&k, "log", path);
        free(file_read_all(path, &size));
        assert_int_equal(truncate(path, (off_t)size - 10), 0);
        assert_int_equal(kit_try(&k, "log", &log, NULL, &torn, &err), SESSILE_OK);
        assert_true(torn > 0);
        log_close(log);
        assert_int_equal(has_canary(k.folder), mode == KIT_PLAIN);
        kit_close(&k);
    }
}

/* ------------------------------------------------------------------ sharing */

static void two_handles_see_each_others_commits(void **state)
{
    (void)state;
    EACH_MODE
    {
        kit k;
        seen a_sees = {0}, b_sees = {0};
        sessile_error err = {0};
        kit_open(&k, mode);
        kit_create(&k, "log");
        log_t *a = kit_resume(&k, "log", &a_sees), *b = kit_resume(&k, "log", &b_sees);
        do_write(a, 2, "from a", 0);
        assert_int_equal(log_count(b), 1);
        assert_int_equal(log_refresh(b, see, &b_sees, &err), SESSILE_OK);
        assert_int_equal(b_sees.count, 3);
        do_write(b, 1, "from b", 0);
        assert_int_equal(log_begin(a, NULL, NULL, &err), SESSILE_OK);
        assert_int_equal(log_count(a), 4);
        log_end(a);
        /* one's own are not shown */
        assert_int_equal(log_refresh(b, see, &b_sees, &err), SESSILE_OK);
        assert_int_equal(b_sees.count, 3);
        seen_free(&a_sees);
        seen_free(&b_sees);
        log_close(a);
        log_close(b);
        kit_close(&k);
    }
}

static void second_writer_is_BUSY_while_the_first_writes(void **state)
{
    (void)state;
    EACH_MODE
    {
        kit k;
        uint64_t torn;
        sessile_error err = {0};
        kit_open(&k, mode);
        kit_create(&k, "log");
        log_t *a = kit_resume(&k, "log", NULL), *b;
        assert_int_equal(log_open(&b, &k.st, k.keys, "main", "log", 128, 20, NULL, NULL,
                                  &torn, &k.alloc, &err),
                         SESSILE_OK);
        assert_int_equal(log_begin(a, NULL, NULL, &err), SESSILE_OK);
        assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_BUSY);
        log_end(a);
        assert_int_equal(log_begin(b, NULL, NULL, &err), SESSILE_OK);
        log_end(b);
        log_close(a);
        log_close(b);
        kit_close(&k);
    }
}

/* One of several processes: its own store handle, many small writes. */
static void write_many(const kit *k, int who, int count)
{
    kit mine;
    kit_again(&mine, k);
    log_t *log = kit_resume(&mine, "log", NULL);
    for (int i = 0; i < count; i++) {
        char content[40];
        snprintf(content, sizeof content, "p%d-%d;", who, i);
        do_write(log, 1 + (size_t)(i % 3), content, (size_t)(i % 50) * 10);
        if (i % 16 == 0)
            do_sync(log);
    }
    log_close(log);
    kit_again_close(&mine);
}

static void processes_appending_lose_nothing(void **state)
{
    enum { WRITERS = 4, EACH = 150 };
    (void)state;
    EACH_FILE_MODE
    {
        kit k;
        pid_t pids[WRITERS];
        int next[WRITERS] = {0};
        seen found = {0};
        kit_open(&k, mode);
        kit_create(&k, "log");
        for (int w = 0; w < WRITERS; w++) {
            pids[w] = fork();
            if (pids[w] == 0) {
                write_many(&k, w, EACH);
                _exit(0);
            }
        }
        for (int w = 0; w < WRITERS; w++) {
            int status;
            assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
            assert_int_equal(status, 0);
        }
        log_close(kit_resume(&k, "log", &found));
        /* each writer's writes are all there, whole, in its order */
        for (size_t i = 1; i < found.count;) {
            int who, n;
            assert_int_equal(sscanf(strstr(found.texts[i], "\"content\":\"p") + 12,
                                    "%d-%d;", &who, &n),
                             2);
            assert_in_range(who, 0, WRITERS - 1);
            assert_int_equal(n, next[who]++);
            for (int j = 0; j < 1 + n % 3; j++, i++) {
                char content[40];
                snprintf(content, sizeof content, "\"p%d-%d;", who, n);
                assert_true(i < found.count);
                assert_non_null(strstr(found.texts[i], content));
            }
        }
        for (int w = 0; w < WRITERS; w++)
            assert_int_equal(next[w], EACH);
        seen_free(&found);
        kit_close(&k);
    }
}

/* Threads that share one log handle, as a session does: a mutex for the log, none for the
 * sync. */
typedef struct crew {
    log_t *log;
    pthread_mutex_t mutex;
} crew;

static void *crew_work(void *arg)
{
    crew *c = arg;
    for (int i = 0; i < 60; i++) {
        sessile_error err = {0};
        char *text;
        pthread_mutex_lock(&c->mutex);
        sessile_status status = log_begin(c->log, NULL, NULL, &err);
        if (!status) {
            text = entry_text(log_count(c->log), "thread", 20);
            sessile_slice slice = {text, strlen(text)};
            status = log_append(c->log, &slice, 1, 0, &err);
            free(text);
            log_end(c->log);
        }
        sessile_id target = log_count(c->log);
        pthread_mutex_unlock(&c->mutex);
        if (status || log_sync(c->log, target, &err))
            return arg;
    }
    return NULL;
}

static void threads_share_syncs(void **state)
{
    enum { CREW = 8 };
    kit k;
    crew c;
    pthread_t threads[CREW];
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    c.log = kit_resume(&k, "log", NULL);
    pthread_mutex_init(&c.mutex, NULL);
    faults_none(&k.os);
    for (int i = 0; i < CREW; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crew_work, &c), 0);
    for (int i = 0; i < CREW; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(log_count(c.log), 1 + CREW * 60);
    assert_true(k.os.counts[CALL_SYNC_DATA] < CREW * 60);
    /* and what was synced is not synced again */
    unsigned long before = k.os.counts[CALL_SYNC_DATA];
    do_sync(c.log);
    assert_int_equal(k.os.counts[CALL_SYNC_DATA], before);
    pthread_mutex_destroy(&c.mutex);
    log_close(c.log);
    kit_close(&k);
}

static void append_costs_four_calls_and_no_memory(void **state)
{
    kit k;
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    log_t *log = kit_resume(&k, "log", NULL);
    for (int i = 0; i < 40; i++)
        do_write(log, 1, "warm", 500);
    char *text = entry_text(log_count(log), "warm", 500);
    sessile_slice slice = {text, strlen(text)};
    faults_none(&k.os);
    size_t calls = k.memory.calls;
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(log_append(log, &slice, 1, 0, &err), SESSILE_OK);
    log_end(log);
    assert_int_equal(k.memory.calls, calls);
    assert_int_equal(k.os.counts[CALL_LOCK], 2);
    assert_int_equal(k.os.counts[CALL_STAT_AT], 1);
    assert_int_equal(k.os.counts[CALL_WRITE], 1);
    assert_int_equal(k.os.all, 4);
    free(text);
    log_close(log);
    kit_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_appended_is_read_back),
        cmocka_unit_test(peek_shows_the_header_and_the_size),
        cmocka_unit_test(name_that_is_taken_is_EXISTS),
        cmocka_unit_test(entries_that_are_none_are_INVALID_and_leave_nothing),
        cmocka_unit_test(log_past_its_limit_is_LIMIT),
        cmocka_unit_test(plain_lines_are_as_described),
        cmocka_unit_test(sealed_lines_are_as_described),
        cmocka_unit_test(sealed_store_keeps_no_plain_text),
        cmocka_unit_test(two_handles_see_each_others_commits),
        cmocka_unit_test(second_writer_is_BUSY_while_the_first_writes),
        cmocka_unit_test(processes_appending_lose_nothing),
        cmocka_unit_test(threads_share_syncs),
        cmocka_unit_test(append_costs_four_calls_and_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
