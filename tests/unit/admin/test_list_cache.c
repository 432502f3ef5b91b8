/*
 * test_list_cache.c: a list that remembers says what a list that opens every log says,
 * whatever became of the logs and of what it remembered.
 *
 * The system's table counts the logs that are opened, hides the list cache when asked to,
 * and can move the clock: a log counts as settled some seconds after it was written.
 *
 * Files only: what it counts is which logs are opened.
 */
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

/* ------------------------------------------------------------------ the system */

static os_table table;
static unsigned long logs_opened; /* set to 0 before what is to be counted */
static int hidden;               /* the list cache cannot be opened, nor a file be made */
static int readonly;             /* no file can be made */
static int64_t ahead_ms = 10000; /* of lists: what was just written is settled */

static int open_at(void *ud, int dir, const char *path, int flags)
{
    size_t size = strlen(path);
    (void)ud;
    if (size > 6 && !strcmp(path + size - 6, ".jsonl"))
        __atomic_fetch_add(&logs_opened, 1, __ATOMIC_RELAXED);
    if (hidden && !strcmp(path, ".list_cache")) {
        errno = ENOENT;
        return -1;
    }
    if ((hidden || readonly) && (flags & OS_CREATE_NEW)) {
        errno = EROFS;
        return -1;
    }
    return os_posix.open_at(NULL, dir, path, flags);
}

static int in_a_list; /* entries keep the real time */

static int64_t shifted_now_ms(void *ud)
{
    (void)ud;
    return os_posix.now_ms(NULL) + (in_a_list ? ahead_ms : 0);
}

/* ------------------------------------------------------------------ lists as text */

static void put_row(buf *out, const sessile_listed *row, int with_torn)
{
    buf_put(out, row->id.data, row->id.size);
    buf_printf(out, "|%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64,
               row->agent.data, row->user.data, row->title.data, row->created_ms,
               row->modified_ms, row->entries, row->messages, row->bytes);
    if (with_torn)
        buf_printf(out, "|%" PRIu64, row->torn);
    buf_printf(out, "|%s|%s\n", sessile_status_name(row->status), row->message);
}

static char *rows_text(sessile_store *st, const sessile_list_options *o)
{
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    char *text;
    buf out;

    buf_init(&out, &allocator_default);
    in_a_list = 1;
    sessile_status status = list_sessions(st, o, &rows, &count, &err);
    in_a_list = 0;
    if (status)
        buf_printf(&out, "%s: %s", sessile_status_name(status), err.message);
    for (size_t i = 0; !status && i < count; i++)
        put_row(&out, &rows[i], 0);
    sessile_free(rows);
    buf_putc(&out, 0);
    text = strdup(out.data);
    assert_non_null(text);
    buf_deinit(&out);
    return text;
}

static const sessile_list_options all;

/* The list without a list cache: what every other one must be. */
static char *bare_text(sessile_store *st, const sessile_list_options *o)
{
    hidden = 1;
    char *text = rows_text(st, o);
    hidden = 0;
    return text;
}

static void assert_right(sessile_store *st, const char *where)
{
    char *got = rows_text(st, &all), *again = rows_text(st, &all),
         *expected = bare_text(st, &all);
    if (strcmp(got, expected) || strcmp(again, expected)) {
        print_error("%s (SEED=%" PRIu64 ")\n--- expected\n%s--- got\n%s--- again\n%s",
                    where, random_seed(), expected, got, again);
        fail_msg("a list with a list_cache differs");
    }
    free(got);
    free(again);
    free(expected);
}

static unsigned long opened_by_a_list(sessile_store *st)
{
    logs_opened = 0;
    free(rows_text(st, &all));
    return logs_opened;
}

/* ------------------------------------------------------------------ places */

static void path_of(const place *p, const char *name, char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s", p->folder, name);
}

static char *list_cache_bytes(const place *p, size_t *size)
{
    char path[600];
    path_of(p, ".list_cache", path);
    return file_read_all(path, size);
}

static void list_cache_set(const place *p, const void *data, size_t size)
{
    char path[600];
    path_of(p, ".list_cache", path);
    unlink(path);
    file_write_all(path, data, size);
}

static void make_three(const place *p)
{
    static const char *const ids[] = {"one", "two", "three"};
    for (size_t i = 0; i < 3; i++) {
        sessile_session *s = session_made(p->store, ids[i]);
        say(s, "user", "hello");
        session_closed(s);
    }
}

static void append_to(const place *p, const char *id)
{
    sessile_store *other = place_again(p);
    sessile_session *s = session_resumed(other, id);
    say(s, "user", "more");
    session_closed(s);
    place_again_close(p, other);
}

static void spoil(const char *path, long offset)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    int c = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(c == '#' ? '!' : '#', file);
    fclose(file);
}

static int set_up(void **state, store_kind kind)
{
    place *p = malloc(sizeof *p);
    table = os_posix;
    table.open_at = open_at;
    table.now_ms = shifted_now_ms;
    os_current = &table;
    ahead_ms = 10000;
    hidden = readonly = 0;
    place_open(p, kind);
    *state = p;
    return 0;
}

static int set_up_sealed(void **state)
{
    return set_up(state, STORE_SEALED);
}

static int set_up_plain(void **state)
{
    return set_up(state, STORE_PLAIN);
}

static int tear_down(void **state)
{
    os_current = &os_posix;
    return place_tear_down(state);
}

/* ------------------------------------------------------------------ what it is for */

static void a_list_opens_only_logs_that_changed(void **state)
{
    const place *p = *state;
    make_three(p);
    assert_true(opened_by_a_list(p->store) >= 3);
    assert_int_equal(opened_by_a_list(p->store), 0);
    sessile_store *other = place_again(p);
    assert_int_equal(opened_by_a_list(other), 0);
    append_to(p, "two");
    assert_int_equal(opened_by_a_list(p->store), 1);
    assert_int_equal(opened_by_a_list(other), 0);
    place_again_close(p, other);
    assert_right(p->store, "after one changed");
}

static void a_log_written_a_moment_ago_is_looked_at_again(void **state)
{
    const place *p = *state;
    make_three(p);
    ahead_ms = 0;
    assert_int_equal(opened_by_a_list(p->store), 3);
    assert_int_equal(opened_by_a_list(p->store), 3);
    ahead_ms = -3600 * 1000; /* the clock was set back: they lie in the future */
    assert_int_equal(opened_by_a_list(p->store), 3);
    ahead_ms = LIST_CACHE_SETTLED_MS + 5000;
    assert_int_equal(opened_by_a_list(p->store), 3);
    assert_int_equal(opened_by_a_list(p->store), 0);
}

static void the_same_bytes_count_and_time_are_not_enough(void **state)
{
    const place *p = *state;
    char path[600];
    struct stat st;
    make_three(p);
    free(rows_text(p->store, &all));
    log_path(p, "two", path);
    assert_int_equal(stat(path, &st), 0);
    spoil(path, st.st_size - 20);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_right(p->store, "rewritten in place, its mtime set back");
    assert_int_equal(chmod(path, 0666), 0);
    assert_right(p->store, "open to others");
}

static void a_log_that_does_not_open_is_not_remembered(void **state)
{
    const place *p = *state;
    char path[600];
    make_three(p);
    log_path(p, "two", path);
    spoil(path, 40);
    assert_true(opened_by_a_list(p->store) >= 3);
    unsigned long again = opened_by_a_list(p->store);
    assert_true(again >= 1); /* it alone: once to open, and to tell what can be told */
    assert_true(again <= 3);
    assert_right(p->store, "a damaged log");
}

static void a_torn_end_is_reported_once(void **state)
{
    const place *p = *state;
    sessile_listed *rows;
    char path[600];
    size_t count;
    make_three(p);
    free(rows_text(p->store, &all));
    log_path(p, "two", path);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"id\":\"000", file);
    fclose(file);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t torn = 0;
        in_a_list = 1;
        assert_int_equal(list_of_agent(p->store, NULL, &rows, &count, NULL), 0);
        in_a_list = 0;
        for (size_t i = 0; i < count; i++)
            torn += rows[i].torn;
        assert_int_equal(torn, round ? 0 : 10);
        sessile_free(rows);
    }
    assert_int_equal(opened_by_a_list(p->store), 0);
    assert_right(p->store, "healed");
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
    assert_int_equal(
        session_create(random_below(2) ? h->other : h->p->store, &o, NULL, NULL),
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
    if (session_open(&s, h->other, &o, NULL))
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
        spoil(path, (long)random_below((uint32_t)st.st_size));
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
        ahead_ms = (int64_t)random_below(3) * 10000 - 10000;
    }
}

static void assert_newest(sessile_store *st, uint64_t offset, uint64_t limit)
{
    sessile_list_options some = all;
    char *whole = bare_text(st, &all), *from = whole, *to;
    some.offset = offset;
    some.limit = limit;
    for (; offset && *from; offset--)
        from = strchr(from, '\n') + 1;
    for (to = from; limit && *to; limit--)
        to = strchr(to, '\n') + 1;
    *to = 0;
    char *got = rows_text(st, &some), *bare = bare_text(st, &some);
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
        assert_right(h.p->store, what);
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
    sessile_list_options newest = all;
    char name[32], path[600];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "n%02d", i);
        session_closed(session_made(p->store, name));
        log_path(p, name, path);
    }
    p->store->os->sleep_ms(p->store->os->ud, LIST_CACHE_SETTLED_MS + 100);
    append_to(p, "n07");
    p->store->os->sleep_ms(p->store->os->ud, 5);
    append_to(p, "n31");
    newest.limit = 2;
    ahead_ms = 0;
    logs_opened = 0;
    char *text = rows_text(p->store, &newest);
    assert_int_equal(logs_opened, 2);
    assert_non_null(strstr(text, "n07"));
    assert_int_equal(strncmp(text, "n31", 3), 0);
    free(text);
    free(rows_text(p->store, &all));
    logs_opened = 0;
    free(rows_text(p->store, &newest));
    assert_int_equal(logs_opened, 2); /* written a moment ago; no other one */
    assert_newest(p->store, 0, 2);
    assert_newest(p->store, 1, UINT64_MAX);
    assert_newest(p->store, UINT64_MAX, 5);
    assert_newest(p->store, 39, 5);
}

static void a_list_by_beginning_of_the_id_and_by_title(void **state)
{
    const place *p = *state;
    sessile_list_options some = all;
    sessile_session_options o;
    char *text;
    make_three(p);
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){"T/hashed", 8};
    o.title = (sessile_slice){"same", 4};
    assert_int_equal(session_create(p->store, &o, NULL, NULL), SESSILE_OK);
    o.id = (sessile_slice){"ticket", 6};
    assert_int_equal(session_create(p->store, &o, NULL, NULL), SESSILE_OK);
    for (int round = 0; round < 2; round++) { /* without, then with a list cache */
        some = all;
        some.id_prefix = (sessile_slice){"t", 1};
        text = rows_text(p->store, &some);
        assert_non_null(strstr(text, "two|"));
        assert_non_null(strstr(text, "three|"));
        assert_non_null(strstr(text, "ticket|"));
        assert_null(strstr(text, "one|"));
        assert_null(strstr(text, "T/hashed"));
        free(text);
        some.title = (sessile_slice){"same", 4};
        text = rows_text(p->store, &some);
        assert_null(strstr(text, "two|"));
        assert_int_equal(strncmp(text, "ticket|", 7), 0);
        free(text);
        some.id_prefix = (sessile_slice){"T/", 2};
        text = rows_text(p->store, &some);
        assert_int_equal(strncmp(text, "T/hashed|", 9), 0);
        free(text);
        some.title = (sessile_slice){"sam", 3};
        text = rows_text(p->store, &some);
        assert_string_equal(text, "");
        free(text);
        free(rows_text(p->store, &all));
    }
}

/* ------------------------------------------------------------------ bad list caches */

static void a_list_cache_cut_or_flipped_anywhere_is_none(void **state)
{
    const place *p = *state;
    size_t size, tried = 0;
    make_three(p);
    char *expected = bare_text(p->store, &all);
    free(rows_text(p->store, &all));
    char *good = list_cache_bytes(p, &size);
    for (size_t cut = 0; cut < size; cut++, tried++) {
        list_cache_set(p, good, cut);
        logs_opened = 0;
        char *text = rows_text(p->store, &all);
        assert_string_equal(text, expected);
        assert_int_equal(logs_opened, 3);
        free(text);
    }
    for (size_t bit = 0; bit < 8 * size; bit++, tried++) {
        good[bit / 8] ^= (char)(1 << bit % 8);
        list_cache_set(p, good, size);
        good[bit / 8] ^= (char)(1 << bit % 8);
        logs_opened = 0;
        char *text = rows_text(p->store, &all);
        assert_string_equal(text, expected);
        assert_int_equal(logs_opened, 3);
        free(text);
    }
    list_cache_set(p, good, size);
    assert_int_equal(opened_by_a_list(p->store), 0); /* so that the above can fail */
    printf("# figure: list caches cut or flipped (%s) = %zu\n", store_kind_names[p->kind],
           tried);
    free(expected);
    free(good);
}

static size_t rows_known(sessile_store *st, const char *folder)
{
    list_cache c;
    assert_int_equal(list_cache_load(&c, st, folder), SESSILE_OK);
    size_t count = c.count;
    list_cache_deinit(&c);
    return count;
}

static void a_list_cache_of_another_place_is_none(void **state)
{
    const place *p = *state;
    sessile_session_options o;
    place elsewhere;
    char path[600];
    size_t size;
    make_three(p);
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){"one", 3};
    o.agent = (sessile_slice){"coder", 5};
    assert_int_equal(session_create(p->store, &o, NULL, NULL), SESSILE_OK);
    assert_right(p->store, "two folders");
    char *data = list_cache_bytes(p, &size);
    snprintf(path, sizeof path, "%s/agents/coder/.list_cache", p->folder);
    unlink(path);
    file_write_all(path, data, size);
    assert_int_equal(rows_known(p->store, "coder"), 0);
    assert_int_equal(rows_known(p->store, "main"), 3);
    assert_right(p->store, "another folder's list_cache");
    place_open(&elsewhere, p->kind);
    make_three(&elsewhere);
    free(rows_text(elsewhere.store, &all));
    list_cache_set(&elsewhere, data, size);
    /* a plain one opens, and fits no log */
    assert_int_equal(rows_known(elsewhere.store, "main"), p->kind == STORE_PLAIN ? 3 : 0);
    assert_int_equal(opened_by_a_list(elsewhere.store), 3);
    assert_right(elsewhere.store, "another store's list_cache");
    place_close(&elsewhere);
    free(data);
}

static void what_is_no_catalog_of_ours_is_left_alone(void **state)
{
    const place *p = *state;
    char path[600], target[600], *text;
    struct stat st;
    size_t size;
    make_three(p);
    path_of(p, ".list_cache", path);
    path_of(p, "target", target);
    file_write_all(target, "precious", 8);
    assert_int_equal(symlink("target", path), 0);
    assert_right(p->store, "a link");
    text = file_read_all(target, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(text, "precious", 8);
    free(text);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_right(p->store, "a folder");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_right(p->store, "a FIFO");
    unlink(path);
    assert_right(p->store, "gone");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(opened_by_a_list(p->store), 3); /* anyone may have written it */
    assert_right(p->store, "open to others");
}

static void a_folder_that_cannot_be_written_is_listed(void **state)
{
    const place *p = *state;
    make_three(p);
    readonly = 1;
    assert_int_equal(opened_by_a_list(p->store), 3);
    assert_int_equal(opened_by_a_list(p->store), 3);
    assert_right(p->store, "nothing can be made");
    readonly = 0;
    free(rows_text(p->store, &all));
    readonly = 1;
    assert_int_equal(opened_by_a_list(p->store), 0);
    append_to(p, "one");
    assert_int_equal(opened_by_a_list(p->store), 1);
    assert_int_equal(opened_by_a_list(p->store), 1);
    assert_right(p->store, "an old list_cache that cannot be replaced");
}

static void what_was_deleted_leaves_the_list_cache_and_dropping_empties_it(void **state)
{
    const place *p = *state;
    char path[600];
    size_t before, after;
    make_three(p);
    free(rows_text(p->store, &all));
    free(list_cache_bytes(p, &before));
    log_path(p, "two", path);
    unlink(path);
    free(rows_text(p->store, &all));
    free(list_cache_bytes(p, &after));
    assert_true(after < before);
    assert_int_equal(list_cache_drop(p->store, NULL), SESSILE_OK);
    path_of(p, ".list_cache", path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(list_cache_drop(p->store, NULL), SESSILE_OK);
    assert_right(p->store, "dropped");
}

/* ------------------------------------------------------------------ secrets */

static int holds(const char *data, size_t size, const char *word)
{
    return memmem(data, size, word, strlen(word)) != NULL;
}

static void a_sealed_list_cache_shows_no_name(void **state)
{
    const place *p = *state;
    sessile_session_options o;
    size_t size;
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){"CANARY/ID", 9};
    o.title = (sessile_slice){"CANARY-TITLE", 12};
    o.user = (sessile_slice){"CANARY-USER", 11};
    assert_int_equal(session_create(p->store, &o, NULL, NULL), SESSILE_OK);
    free(rows_text(p->store, &all));
    assert_int_equal(opened_by_a_list(p->store), 0); /* they are in it */
    char *data = list_cache_bytes(p, &size);
    int plain = p->kind == STORE_PLAIN; /* where the scan must find them */
    assert_int_equal(holds(data, size, "CANARY/ID"), plain);
    assert_int_equal(holds(data, size, "CANARY-TITLE"), plain);
    assert_int_equal(holds(data, size, "CANARY-USER"), plain);
    assert_right(p->store, "names of any bytes");
    free(data);
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
    make_three(p);
    char *expected = bare_text(p->store, &all);
    memset(&o, 0, sizeof o);
    o.alloc = a.fn;
    o.alloc_ud = a.ud;
    o.durability = SESSILE_NONE;
    o.key_source = p->kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    assert_int_equal(store_handle_open(&st, p->folder, &o, NULL), SESSILE_OK);
    for (int with = 0; with < 2; with++) {
        char path[600];
        path_of(p, ".list_cache", path);
        for (size_t n = 1;; n++, tried++) {
            if (!with)
                unlink(path);
            memory.calls = 0;
            memory.fail_at = n;
            char *text = rows_text(st, &all);
            int reached = memory.calls >= n;
            memory.fail_at = 0;
            if (strncmp(text, "NOMEM", 5) != 0)
                assert_string_equal(text, expected);
            free(text);
            if (!reached)
                break;
        }
        free(rows_text(st, &all));
    }
    store_handle_close(st);
    assert_int_equal(memory.live, 0);
    assert_right(p->store, "after all that");
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
    in_a_list = 1;
    for (unsigned tries = 0; count < 100 && tries < 100000 && !bad; tries++) {
        bad = list_of_agent(st, NULL, &rows, &count, NULL) != SESSILE_OK;
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
            append_to(p, "s00");
    }
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_right(p->store, "after all of them");
}

static void *list_often(void *arg)
{
    size_t bad = 0;
    for (int i = 0; i < 30; i++) {
        sessile_listed *rows;
        size_t count;
        bad += list_of_agent(arg, NULL, &rows, &count, NULL) || count != 3;
        sessile_free(rows);
    }
    return (void *)bad;
}

static void two_threads_list_one_store(void **state)
{
    const place *p = *state;
    pthread_t threads[2];
    make_three(p);
    in_a_list = 1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, list_often, p->store), 0);
    for (int i = 0; i < 2; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    in_a_list = 0;
    assert_right(p->store, "after two threads");
}

/* ------------------------------------------------------------------ the backend */

static void a_backend_tells_of_a_log_without_opening_it(void **state)
{
    const place *p = *state;
    const store *b = &p->store->backend;
    sessile_backend_stat st;
    struct stat real;
    char path[600];
    make_three(p);
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

#undef OVER
#define OVER(test) cmocka_unit_test_setup_teardown(test, over, tear_down)

static int run_over(store_kind kind, CMFixtureFunction over)
{
    char name[64];
    const struct CMUnitTest tests[] = {
        OVER(a_list_opens_only_logs_that_changed),
        OVER(a_log_written_a_moment_ago_is_looked_at_again),
        OVER(the_same_bytes_count_and_time_are_not_enough),
        OVER(a_log_that_does_not_open_is_not_remembered),
        OVER(a_torn_end_is_reported_once),
        OVER(whatever_happens_a_list_is_right),
        OVER(the_newest_of_many_need_few_logs),
        OVER(a_list_by_beginning_of_the_id_and_by_title),
        OVER(a_list_cache_cut_or_flipped_anywhere_is_none),
        OVER(a_list_cache_of_another_place_is_none),
        OVER(what_is_no_catalog_of_ours_is_left_alone),
        OVER(a_folder_that_cannot_be_written_is_listed),
        OVER(what_was_deleted_leaves_the_list_cache_and_dropping_empties_it),
        OVER(a_sealed_list_cache_shows_no_name),
        OVER(memory_that_runs_out_makes_no_other_list),
        OVER(two_list_while_one_creates),
        OVER(two_threads_list_one_store),
        OVER(a_backend_tells_of_a_log_without_opening_it),
    };

    snprintf(name, sizeof name, "lists over %s", store_kind_names[kind]);
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    int failed = run_over(STORE_SEALED, set_up_sealed);

    failed += run_over(STORE_PLAIN, set_up_plain);
    return failed != 0;
}
