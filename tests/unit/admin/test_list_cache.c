/*
 * test_list_cache.c: a list that remembers says what a list that opens every log says,
 * whatever became of the logs.
 *
 * Files only: what it counts is which logs are opened.
 */
#include "guard/enter.h"
#include "support/listed.h"
#include "support/lists.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "admin/list.h"
#include "admin/list_cache.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------ what it is for */

static void a_list_opens_only_logs_that_changed(void **state)
{
    const place *p = *state;
    listed_make_three(p);
    assert_true(listed_opened(p->store) >= 3);
    assert_int_equal(listed_opened(p->store), 0);
    sessile_store *other = place_again(p);
    assert_int_equal(listed_opened(other), 0);
    listed_append(p, "two");
    assert_int_equal(listed_opened(p->store), 1);
    assert_int_equal(listed_opened(other), 0);
    place_again_close(p, other);
    assert_listed_right(p->store, "after one changed");
}

static void a_log_written_a_moment_ago_is_looked_at_again(void **state)
{
    const place *p = *state;
    listed_make_three(p);
    listed_ahead_ms = 0;
    assert_int_equal(listed_opened(p->store), 3);
    assert_int_equal(listed_opened(p->store), 3);
    listed_ahead_ms = -3600 * 1000; /* the clock was set back: they lie in the future */
    assert_int_equal(listed_opened(p->store), 3);
    listed_ahead_ms = LIST_CACHE_SETTLED_MS + 5000;
    assert_int_equal(listed_opened(p->store), 3);
    assert_int_equal(listed_opened(p->store), 0);
}

static void the_same_bytes_count_and_time_are_not_enough(void **state)
{
    const place *p = *state;
    char path[600];
    struct stat st;
    listed_make_three(p);
    free(listed_text(p->store, &listed_all));
    log_path(p, "two", path);
    assert_int_equal(stat(path, &st), 0);
    listed_spoil(path, st.st_size - 20);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_listed_right(p->store, "rewritten in place, its mtime set back");
    assert_int_equal(chmod(path, 0666), 0);
    assert_listed_right(p->store, "open to others");
}

static void a_log_that_does_not_open_is_not_remembered(void **state)
{
    const place *p = *state;
    char path[600];
    listed_make_three(p);
    log_path(p, "two", path);
    listed_spoil(path, 40);
    assert_true(listed_opened(p->store) >= 3);
    unsigned long again = listed_opened(p->store);
    assert_true(again >= 1); /* it alone: once to open, and to tell what can be told */
    assert_true(again <= 3);
    assert_listed_right(p->store, "a damaged log");
}

static void a_torn_end_is_reported_once(void **state)
{
    const place *p = *state;
    sessile_listed *rows;
    char path[600];
    size_t count;
    listed_make_three(p);
    free(listed_text(p->store, &listed_all));
    log_path(p, "two", path);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"id\":\"000", file);
    fclose(file);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t torn = 0;
        listed_in_a_list = 1;
        assert_int_equal(sessile_list(p->store, NULL, &rows, &count, NULL), 0);
        listed_in_a_list = 0;
        for (size_t i = 0; i < count; i++)
            torn += rows[i].torn;
        assert_int_equal(torn, round ? 0 : 10);
        sessile_free(rows);
    }
    assert_int_equal(listed_opened(p->store), 0);
    assert_listed_right(p->store, "healed");
}

/* ------------------------------------------------------------------ any history */

typedef struct history {
    const place *p;
    sessile_store *other;
    char names[64][32];
    size_t count;
    unsigned made;
} history;

static const char *any_name(const history *h)
{
    return h->names[random_below((uint32_t)h->count)];
}

static void do_create(history *h)
{
    sessile_session_options o;
    if (h->count == 64)
        return;
    char *name = h->names[h->count++];
    snprintf(name, 32, "s%u", h->made++);
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){name, strlen(name)};
    if (random_below(2))
        o.title = (sessile_slice){"a title", random_below(8)};
    assert_int_equal(session_create(random_below(2) ? h->other->core : h->p->store->core,
                                    &o, NULL, NULL),
                     SESSILE_OK);
}

static void do_append(const history *h)
{
    sessile_session_options o;
    sessile_session *s;
    const char *name = any_name(h);
    sessile_id id;
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){name, strlen(name)};
    if (sessile_resume(&s, h->other, &o, NULL))
        return; /* it was spoilt before */
    (void)try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, NULL);
    session_closed(s);
}

static void do_copy(history *h)
{
    char from[600], to[600];
    size_t size;
    if (h->count == 64)
        return;
    log_path(h->p, any_name(h), from);
    char *data = access(from, F_OK) ? NULL : file_read_all(from, &size);
    if (!data)
        return;
    snprintf(h->names[h->count], 32, "copy%u", h->made++);
    log_path(h->p, h->names[h->count++], to);
    file_write_all(to, data, size);
    free(data);
}

/* One thing that may happen to a folder of logs. */
static void do_anything(history *h, char what[64])
{
    static const char *const names[] = {"create", "append", "delete", "rename", "tear",
                                        "spoil",  "copy",   "touch",  "rights", "clock"};
    uint32_t n = h->count ? random_below(12) : 0;
    struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}};
    char path[600], other[600];
    struct stat st;

    n = n > 9 ? n - 10 : n; /* the usual ones more often */
    snprintf(what, 64, "after %s", names[n]);
    if (n)
        log_path(h->p, any_name(h), path);
    if (n > 1 && n < 9 && stat(path, &st))
        return;
    switch (n) {
    case 0:
        do_create(h);
        break;
    case 1:
        do_append(h);
        break;
    case 2:
        unlink(path);
        break;
    case 3:
        log_path(h->p, any_name(h), other);
        rename(path, other);
        break;
    case 4:
        if (!truncate(path, st.st_size - 1 - random_below(20)))
            break;
        break;
    case 5:
        listed_spoil(path, (long)random_below((uint32_t)st.st_size));
        times[1] = st.st_mtim;
        utimensat(AT_FDCWD, path, times, 0);
        break;
    case 6:
        do_copy(h);
        break;
    case 7:
        times[1].tv_sec = st.st_mtim.tv_sec + (random_below(2) ? 100000 : -100000);
        utimensat(AT_FDCWD, path, times, 0);
        break;
    case 8:
        chmod(path, random_below(2) ? 0600 : 0666);
        break;
    default:
        listed_ahead_ms = (int64_t)random_below(3) * 10000 - 10000;
    }
}

static void assert_newest(sessile_store *st, uint64_t offset, uint64_t limit)
{
    sessile_list_options some = listed_all;
    char *whole = listed_bare(st, &listed_all), *from = whole, *to;
    some.offset = offset;
    some.limit = limit;
    for (; offset && *from; offset--)
        from = strchr(from, '\n') + 1;
    for (to = from; limit && *to; limit--)
        to = strchr(to, '\n') + 1;
    *to = 0;
    char *got = listed_text(st, &some), *bare = listed_bare(st, &some);
    if (strcmp(got, from) || strcmp(bare, from)) {
        print_error("SEED=%" PRIu64 "\n--- expected\n%s--- got\n%s--- bare\n%s",
                    random_seed(), from, got, bare);
        fail_msg("the newest differ");
    }
    free(got);
    free(bare);
    free(whole);
}

static void whatever_happens_a_list_is_right(void **state)
{
    unsigned steps = getenv("SESSILE_SOAK") ? 4000 : 250;
    history h = {.p = *state};
    char what[64];
    random_start();
    h.other = place_again(h.p);
    for (unsigned i = 0; i < steps; i++) {
        do_anything(&h, what);
        assert_listed_right(h.p->store, what);
        assert_newest(h.p->store, random_below(4), 1 + random_below(6));
        if (h.count == 64 && random_below(8) == 0)
            while (h.count) { /* begin again */
                char path[600];
                log_path(h.p, h.names[--h.count], path);
                unlink(path);
            }
    }
    place_again_close(h.p, h.other);
    printf("# figure: lists compared with and without a list_cache (%s) = %u\n",
           store_kind_names[h.p->kind], steps);
}

/* ------------------------------------------------------------------ the newest, filters
 */

static void the_newest_of_many_need_few_logs(void **state)
{
    const place *p = *state;
    sessile_list_options newest = listed_all;
    char name[32], path[600];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        session_closed(session_made(p->store, name));
        log_path(p, name, path);
    }
    p->store->core->os->sleep_ms(p->store->core->os->ud, LIST_CACHE_SETTLED_MS + 100);
    listed_append(p, "n07");
    p->store->core->os->sleep_ms(p->store->core->os->ud, 5);
    listed_append(p, "n31");
    newest.limit = 2;
    listed_ahead_ms = 0;
    listed_logs_opened = 0;
    char *text = listed_text(p->store, &newest);
    assert_int_equal(listed_logs_opened, 2);
    assert_non_null(strstr(text, "n07"));
    assert_int_equal(strncmp(text, "n31", 3), 0);
    free(text);
    free(listed_text(p->store, &listed_all));
    listed_logs_opened = 0;
    free(listed_text(p->store, &newest));
    assert_int_equal(listed_logs_opened, 2); /* written a moment ago; no other one */
    assert_newest(p->store, 0, 2);
    assert_newest(p->store, 1, UINT64_MAX);
    assert_newest(p->store, UINT64_MAX, 5);
    assert_newest(p->store, 39, 5);
}

static void a_list_by_beginning_of_the_id_and_by_title(void **state)
{
    const place *p = *state;
    sessile_list_options some = listed_all;
    sessile_session_options o;
    char *text;
    listed_make_three(p);
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){"T/hashed", 8};
    o.title = (sessile_slice){"same", 4};
    assert_int_equal(session_create(p->store->core, &o, NULL, NULL), SESSILE_OK);
    o.id = (sessile_slice){"ticket", 6};
    assert_int_equal(session_create(p->store->core, &o, NULL, NULL), SESSILE_OK);
    for (int round = 0; round < 2; round++) { /* without, then with a list cache */
        some = listed_all;
        some.id_prefix = (sessile_slice){"t", 1};
        text = listed_text(p->store, &some);
        assert_non_null(strstr(text, "two|"));
        assert_non_null(strstr(text, "three|"));
        assert_non_null(strstr(text, "ticket|"));
        assert_null(strstr(text, "one|"));
        assert_null(strstr(text, "T/hashed"));
        free(text);
        some.title = (sessile_slice){"same", 4};
        text = listed_text(p->store, &some);
        assert_null(strstr(text, "two|"));
        assert_int_equal(strncmp(text, "ticket|", 7), 0);
        free(text);
        some.id_prefix = (sessile_slice){"T/", 2};
        text = listed_text(p->store, &some);
        assert_int_equal(strncmp(text, "T/hashed|", 9), 0);
        free(text);
        some.title = (sessile_slice){"sam", 3};
        text = listed_text(p->store, &some);
        assert_string_equal(text, "");
        free(text);
        free(listed_text(p->store, &listed_all));
    }
}

/* ------------------------------------------------------------------ memory, company */

static void memory_that_runs_out_makes_no_other_list(void **state)
{
    const place *p = *state;
    sessile_store_options o;
    sessile_store *st;
    meter memory = {0};
    allocator a = meter_allocator(&memory);
    size_t tried = 0;
    listed_make_three(p);
    char *expected = listed_bare(p->store, &listed_all);
    memset(&o, 0, sizeof o);
    o.alloc = a.fn;
    o.alloc_ud = a.ud;
    o.durability = SESSILE_NONE;
    o.key_source = p->kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    assert_int_equal(sessile_open(&st, p->folder, &o, NULL), SESSILE_OK);
    for (int with = 0; with < 2; with++) {
        char path[600];
        listed_path(p, ".list_cache", path);
        for (size_t n = 1;; n++, tried++) {
            if (!with)
                unlink(path);
            memory.calls = 0;
            memory.fail_at = n;
            char *text = listed_text(st, &listed_all);
            int reached = memory.calls >= n;
            memory.fail_at = 0;
            if (strncmp(text, "NOMEM", 5) != 0)
                assert_string_equal(text, expected);
            free(text);
            if (!reached)
                break;
        }
        free(listed_text(st, &listed_all));
    }
    sessile_store_close(st);
    assert_int_equal(memory.live, 0);
    assert_listed_right(p->store, "after all that");
    free(expected);
    printf("# figure: allocations of a list that failed (%s) = %zu\n",
           store_kind_names[p->kind], tried);
}

/* In a process of its own: lists until 100 sessions are there. 0: all were right. */
static int watch(const place *p)
{
    sessile_store *st = place_again(p);
    size_t before = 0, count = 0;
    sessile_listed *rows;
    int bad = 0;
    listed_in_a_list = 1;
    for (unsigned tries = 0; count < 100 && tries < 100000 && !bad; tries++) {
        bad = sessile_list(st, NULL, &rows, &count, NULL) != SESSILE_OK;
        for (size_t i = 0; i < count; i++)
            bad |= rows[i].status || !rows[i].id.size;
        bad |= count < before;
        before = count;
        sessile_free(rows);
    }
    return bad || count != 100;
}

static void two_list_while_one_creates(void **state)
{
    const place *p = *state;
    pid_t children[2];
    char name[32];
    session_closed(session_made(p->store, "s00"));
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (!children[i])
            _exit(watch(p));
    }
    for (int i = 1; i < 100; i++) {
        snprintf(name, sizeof name, "s%02d", i);
        session_closed(session_made(p->store, name));
        if (i % 10 == 0)
            listed_append(p, "s00");
    }
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_listed_right(p->store, "after all of them");
}

static void *list_often(void *arg)
{
    size_t bad = 0;
    for (int i = 0; i < 30; i++) {
        sessile_listed *rows;
        size_t count;
        bad +=
            sessile_list(((sessile_store *)arg), NULL, &rows, &count, NULL) || count != 3;
        sessile_free(rows);
    }
    return (void *)bad;
}

static void two_threads_list_one_store(void **state)
{
    const place *p = *state;
    pthread_t threads[2];
    listed_make_three(p);
    listed_in_a_list = 1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, list_often, p->store), 0);
    for (int i = 0; i < 2; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    listed_in_a_list = 0;
    assert_listed_right(p->store, "after two threads");
}

/* ------------------------------------------------------------------ the backend */

static void a_backend_tells_of_a_log_without_opening_it(void **state)
{
    const place *p = *state;
    const store *b = &p->store->core->backend;
    sessile_backend_stat st;
    struct stat real;
    char path[600];
    listed_make_three(p);
    log_path(p, "two", path);
    assert_int_equal(stat(path, &real), 0);
    assert_int_equal(b->table->stat(b->self, "main", "two", &st, NULL), SESSILE_OK);
    assert_int_equal(st.bytes, real.st_size);
    assert_int_equal(st.inode, real.st_ino);
    assert_int_equal(st.mtime_ns,
                     (int64_t)real.st_mtim.tv_sec * 1000000000 + real.st_mtim.tv_nsec);
    assert_int_equal(st.changed_ns,
                     (int64_t)real.st_ctim.tv_sec * 1000000000 + real.st_ctim.tv_nsec);
    assert_int_equal(b->table->stat(b->self, "main", "none", &st, NULL),
                     SESSILE_NOTFOUND);
    assert_int_equal(b->table->stat(b->self, "none", "two", &st, NULL), SESSILE_NOTFOUND);
    assert_int_equal(b->table->stat(b->self, "main", "../x", &st, NULL), SESSILE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_opens_only_logs_that_changed),
        cmocka_unit_test(a_log_written_a_moment_ago_is_looked_at_again),
        cmocka_unit_test(the_same_bytes_count_and_time_are_not_enough),
        cmocka_unit_test(a_log_that_does_not_open_is_not_remembered),
        cmocka_unit_test(a_torn_end_is_reported_once),
        cmocka_unit_test(whatever_happens_a_list_is_right),
        cmocka_unit_test(the_newest_of_many_need_few_logs),
        cmocka_unit_test(a_list_by_beginning_of_the_id_and_by_title),
        cmocka_unit_test(memory_that_runs_out_makes_no_other_list),
        cmocka_unit_test(two_list_while_one_creates),
        cmocka_unit_test(two_threads_list_one_store),
        cmocka_unit_test(a_backend_tells_of_a_log_without_opening_it),
    };
    return listed_run(tests, sizeof tests / sizeof *tests, "lists");
}
