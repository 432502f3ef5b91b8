/*
 * test_index.c: an index is a cache: whatever became of it, the log is what is shown.
 *
 * Owns what promises 4 and 12 ask of the index beside a log. It is changed in every byte,
 * cut anywhere, older than the log, of another log, and of another course of the same
 * log; a session must show exactly what its log holds. The one thing an index may add is
 * that the log once was longer: then nothing is written.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/logs.h"

enum { FIRST = 300, ALL = 600 }; /* entries: more than one block, more than two */

static faults lazy;
static uint64_t seed;

typedef struct view {
    buf text; /* all that can be seen of a session, one line a thing */
} view;

typedef struct indexed_store {
    int sealed;
    char folder[256], root[300];
    sessile_store *store;
} indexed_store;

static void indexed_begin(indexed_store *s)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = s->sealed ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    o.key = KIT_SECRET;
    must(sessile_open(&s->store, s->root, &o, &err), &err);
}

static void indexed_open(indexed_store *s, int sealed)
{
    memset(s, 0, sizeof *s);
    s->sealed = sealed;
    scratch_make(s->folder);
    snprintf(s->root, sizeof s->root, "%s/store", s->folder);
    indexed_begin(s);
}

/* Another handle: nothing that the first one knew is left. */
static void indexed_again(indexed_store *s)
{
    sessile_store_close(s->store);
    indexed_begin(s);
}

static void indexed_close(indexed_store *s)
{
    sessile_store_close(s->store);
    scratch_remove(s->folder);
}

static void path_of(const indexed_store *s, const char *id, const char *suffix,
                    char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s%s", s->root, id, suffix);
}

static sessile_status resume(const indexed_store *s, const char *id,
                             sessile_session **out, sessile_error *err)
{
    sessile_session_options o;
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    return sessile_resume(out, s->store, &o, err);
}

/* Entries up to `until`: turns of two messages, and now and then a title or a clear.
 * course: one letter, so that two courses have lines of the same sizes. */
static void go_on(const indexed_store *s, const char *id, size_t until, char course)
{
    sessile_session *session;
    sessile_error err;
    sessile_id at = 0;
    must(resume(s, id, &session, &err), &err);
    for (unsigned n = 0; at + 1 < until; n++) {
        char text[200], title[40];
        snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"%c %06u\"}", course,
                 n);
        snprintf(title, sizeof title, "title %c %06u", course, n);
        if (n % 50 == 20 &&
            n < 150) /* none behind the last block: it is from the index */
            must(sessile_set_title(session, sessile_text(title), &err), &err);
        if (n % 90 == 70)
            must(sessile_clear(session, &err), &err);
        must(sessile_append(session, sessile_text(text), &at, &err), &err);
    }
    must(sessile_session_close(session, &err), &err);
}

static void make(const indexed_store *s, const char *id)
{
    sessile_session_options o;
    sessile_session *session;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    must(sessile_create(&session, s->store, &o, &err), &err);
    must(sessile_session_close(session, &err), &err);
}

/* Everything a session shows; the status is that of the first call that is refused. */
static sessile_status show(const indexed_store *s, const char *id, buf *out)
{
    sessile_session *session;
    sessile_error err = {0};
    sessile_message *rows = NULL;
    sessile_context_info info;
    sessile_entries *all = NULL;
    char *title = NULL;
    const char *text;
    size_t count = 0, size;
    uint64_t events;
    sessile_id entry;
    buf_clear(out);
    sessile_status status = resume(s, id, &session, &err);
    if (status)
        return status;
    status = sessile_context(session, SESSILE_NO_ID, &rows, &count, &info, &err);
    if (!status) {
        buf_printf(out, "head %08x\n", info.head);
        for (size_t i = 0; i < count; i++) {
            buf_printf(out, "%08x ", rows[i].key.entry);
            buf_put(out, rows[i].json.data, rows[i].json.size);
            buf_puts(out, "\n");
        }
        status = sessile_title(session, &title, &size, &err);
    }
    if (!status) {
        buf_puts(out, title);
        status = sessile_event_count(session, &events, &err);
    }
    if (!status) {
        buf_printf(out, "\n%llu events\n", (unsigned long long)events);
        status = sessile_entries_open(&all, session, NULL, &err);
    }
    while (!status) {
        status = sessile_entries_next(all, &entry, &text, &size, &err);
        if (status || size == 0)
            break;
        buf_put(out, text, size);
        buf_puts(out, "\n");
    }
    assert_false(out->failed);
    sessile_entries_close(all);
    sessile_free(title);
    sessile_free(rows);
    must(sessile_session_close(session, NULL), &err);
    return status;
}

/* Puts these bytes in the place of the index, and compares what a new handle shows. */
static void same_with(indexed_store *s, const char *bytes, size_t size,
                      const buf *expected)
{
    char path[600];
    buf now;
    buf_init(&now, &allocator_default);
    path_of(s, "log", ".idx", path);
    unlink(path);
    if (bytes)
        file_write_all(path, bytes, size);
    indexed_again(s);
    sessile_status status = show(s, "log", &now);
    if (status)
        print_error("%s\n", sessile_status_name(status));
    assert_int_equal(status, SESSILE_OK);
    if (now.size != expected->size || memcmp(now.data, expected->data, now.size))
        print_error("seed %llu: shown is\n%.300s\nand not\n%.300s\n",
                    (unsigned long long)seed, now.data, expected->data);
    assert_int_equal(now.size, expected->size);
    assert_memory_equal(now.data, expected->data, now.size);
    buf_deinit(&now);
}

static char *index_bytes(const indexed_store *s, const char *id, size_t *size)
{
    char path[600];
    struct stat st;
    path_of(s, id, ".idx", path);
    if (stat(path, &st) != 0)
        return NULL;
    return file_read_all(path, size);
}

/* A session of 600 entries that has an index. */
static char *begin(indexed_store *s, buf *expected, size_t *size)
{
    make(s, "log");
    go_on(s, "log", ALL, 'a');
    buf_init(expected, &allocator_default);
    must(show(s, "log", expected), NULL);
    char *bytes = index_bytes(s, "log", size);
    assert_non_null(bytes); /* there is one, or this tests nothing */
    same_with(s, bytes, *size, expected);
    same_with(s, NULL, 0, expected);
    return bytes;
}

static void end(char *bytes, buf *expected)
{
    free(bytes);
    buf_deinit(expected);
}

/* A test of a plain store and of a sealed one. */
typedef struct index_test {
    void (*run)(indexed_store *s);
} index_test;

static void plain_and_sealed(void **state)
{
    const index_test *t = *state;
    for (int sealed = 0; sealed < 2; sealed++) {
        indexed_store s;
        indexed_open(&s, sealed);
        t->run(&s);
        indexed_close(&s);
    }
}

/* The log holds exactly this. */
static void log_is_still(const char *path, const char *expected, size_t size)
{
    size_t now_size;
    char *now = file_read_all(path, &now_size);
    assert_int_equal(now_size, size);
    assert_memory_equal(now, expected, size);
    free(now);
}

/* ------------------------------------------------------------------ bytes */

static void changed_index_changes_nothing(indexed_store *s)
{
    static unsigned long tried;
    buf expected;
    size_t size, stride = getenv("SESSILE_SOAK") ? 1 : 199;
    char *bytes = begin(s, &expected, &size);
    for (size_t at = random_next(&seed) % stride; at < size; at += stride, tried++) {
        char was = bytes[at];
        bytes[at] = (char)(was ^ (1 << random_next(&seed) % 8));
        same_with(s, bytes, size, &expected);
        bytes[at] = was;
    }
    end(bytes, &expected);
    if (s->sealed)
        printf("# figure: flipped bits of an index that changed nothing shown = %lu\n",
               tried);
}

static void index_cut_anywhere_or_grown_changes_nothing(indexed_store *s)
{
    static unsigned long tried;
    buf expected;
    size_t size, stride = getenv("SESSILE_SOAK") ? 1 : 397;
    char *bytes = begin(s, &expected, &size);
    for (size_t cut = random_next(&seed) % stride; cut < size; cut += stride, tried++)
        same_with(s, bytes, cut, &expected);
    char *more = calloc(2, size);
    assert_non_null(more);
    memcpy(more, bytes, size);
    same_with(s, more, 2 * size, &expected);
    memcpy(more + size, bytes, size); /* all of its blocks once more */
    same_with(s, more, 2 * size, &expected);
    free(more);
    tried += 2;
    end(bytes, &expected);
    if (s->sealed)
        printf("# figure: cut or grown indexes that changed nothing shown = %lu\n",
               tried);
}

/* ------------------------------------------------------------------ other indexes */

static void index_of_another_log_changes_nothing(indexed_store *s)
{
    buf expected;
    size_t size, other_size;
    char *bytes = begin(s, &expected, &size);
    make(s, "twin");
    go_on(s, "twin", ALL, 'b');
    char *other = index_bytes(s, "twin", &other_size);
    assert_non_null(other);
    same_with(s, other, other_size, &expected);
    free(other);
    end(bytes, &expected);
}

static void index_of_another_course_changes_nothing(indexed_store *s)
{
    /* brought back from a backup, a log goes on in other words of the same sizes */
    char path[600];
    buf expected;
    size_t size, index_size;
    make(s, "log");
    go_on(s, "log", FIRST, 'a');
    path_of(s, "log", ".jsonl", path);
    char *backup = file_read_all(path, &size);
    go_on(s, "log", ALL, 'a');
    char *index = index_bytes(s, "log", &index_size);
    assert_non_null(index);
    char idx[600];
    path_of(s, "log", ".idx", idx);
    unlink(idx);
    file_write_all(path, backup, size);
    indexed_again(s);
    go_on(s, "log", ALL, 'b');
    unlink(idx);
    indexed_again(s);
    buf_init(&expected, &allocator_default);
    must(show(s, "log", &expected), NULL);
    assert_non_null(strstr(expected.data, "title b"));
    same_with(s, index, index_size, &expected);
    free(backup);
    end(index, &expected);
}

static void log_shorter_than_its_index_is_not_written(indexed_store *s)
{
    char path[600];
    size_t size, index_size;
    sessile_session *session = NULL;
    sessile_error err;
    sessile_id id;
    make(s, "log");
    go_on(s, "log", FIRST / 2, 'a');
    path_of(s, "log", ".jsonl", path);
    char *backup = file_read_all(path, &size);
    go_on(s, "log", ALL, 'a');
    char *index = index_bytes(s, "log", &index_size);
    assert_non_null(index);
    file_write_all(path, backup, size); /* whole lines: nothing is torn */
    indexed_again(s);
    sessile_status status = resume(s, "log", &session, &err);
    if (!status)
        status = sessile_append(
            session, sessile_text("{\"role\":\"user\",\"content\":\"x\"}"), &id, &err);
    assert_int_equal(status, SESSILE_TRUNCATED);
    if (session)
        must(sessile_session_close(session, NULL), &err);
    log_is_still(path, backup, size);
    free(backup);
    free(index);
}

static void damage_behind_an_index_is_named_when_it_is_read(indexed_store *s)
{
    unsigned long named = 0;
    buf expected, now;
    char path[600], idx[600];
    size_t size, log_size;
    char *bytes = begin(s, &expected, &size);
    buf_init(&now, &allocator_default);
    path_of(s, "log", ".jsonl", path);
    char *log = file_read_all(path, &log_size);
    path_of(s, "log", ".idx", idx);
    for (size_t at = 700 + random_next(&seed) % 99; at < log_size / 3; at += 4999) {
        char was = log[at];
        log[at] = (char)(was ^ (1 << random_next(&seed) % 8));
        file_write_all(path, log, log_size);
        file_write_all(idx, bytes, size);
        indexed_again(s);
        sessile_status status = show(s, "log", &now);
        if (!status) /* open to be read: what is lost says so */
            assert_non_null(strstr(now.data, "tombstone"));
        else
            assert_int_equal(status, SESSILE_DAMAGED);
        log[at] = was;
        named++;
    }
    free(log);
    buf_deinit(&now);
    end(bytes, &expected);
    assert_true(named > 0);
}

/* The bytes of line n, from the start of it. */
static char *line_at(char *bytes, size_t size, size_t n, size_t *length)
{
    char *at = bytes, *end;
    while (n-- > 0) {
        at = memchr(at, '\n', size - (size_t)(at - bytes));
        assert_non_null(at);
        at++;
    }
    end = memchr(at, '\n', size - (size_t)(at - bytes));
    assert_non_null(end);
    *length = (size_t)(end - at);
    return at;
}

static void line_of_another_course_is_named(indexed_store *s)
{
    /* it opens under the log's own key, has the right id, and was never said here */
    static unsigned long named;
    char path[600], idx[600];
    buf now;
    size_t size, a_size, b_size, idx_size, a_length, b_length;
    make(s, "log");
    go_on(s, "log", FIRST, 'a');
    path_of(s, "log", ".jsonl", path);
    path_of(s, "log", ".idx", idx);
    char *backup = file_read_all(path, &size);
    go_on(s, "log", 900, 'a');
    char *a = file_read_all(path, &a_size);
    unlink(idx);
    file_write_all(path, backup, size);
    indexed_again(s);
    go_on(s, "log", 900, 'b');
    char *b = file_read_all(path, &b_size);
    char *index = file_read_all(idx, &idx_size);
    buf_init(&now, &allocator_default);
    for (size_t n = FIRST + 20; n + 1 < 750; n += 61, named++) {
        char *from = line_at(a, a_size, n, &a_length);
        char *to = line_at(b, b_size, n, &b_length), keep[4096];
        assert_int_equal(a_length, b_length);
        assert_true(a_length < sizeof keep);
        memcpy(keep, to, b_length);
        memcpy(to, from, a_length);
        file_write_all(path, b, b_size);
        file_write_all(idx, index, idx_size);
        indexed_again(s);
        assert_int_equal(show(s, "log", &now), SESSILE_DAMAGED);
        memcpy(to, keep, b_length);
    }
    file_write_all(path, b, b_size);
    file_write_all(idx, index, idx_size);
    indexed_again(s);
    assert_int_equal(show(s, "log", &now), SESSILE_OK);
    buf_deinit(&now);
    free(index);
    free(a);
    free(b);
    free(backup);
    if (s->sealed)
        printf("# figure: lines of another course of a log that were named = %lu\n",
               named);
}

static void reseal_refuses_what_its_index_does_not_confirm(void **state)
{
    /* a copy under another key would end what the index knows: a cut log would pass for a
     * whole one, and what is damaged for a torn end under a key that is dropped */
    (void)state;
    for (int damaged = 0; damaged < 2; damaged++) {
        indexed_store s;
        char path[600];
        size_t size, index_size;
        sessile_session *session = NULL;
        sessile_reseal_state done;
        sessile_error err;
        sessile_store_options o;
        indexed_open(&s, 1);
        /* without syncs no line says what was safe */
        sessile_store_close(s.store);
        sessile_store_options_init(&o);
        o.key_source = SESSILE_KEY_SECRET;
        o.key = KIT_SECRET;
        o.durability = SESSILE_NONE;
        must(sessile_open(&s.store, s.root, &o, &err), &err);
        make(&s, "log");
        go_on(&s, "log", ALL, 'a');
        char *index = index_bytes(&s, "log", &index_size);
        assert_non_null(index);
        path_of(&s, "log", ".jsonl", path);
        char *log = file_read_all(path, &size);
        size_t length;
        char *last = line_at(log, size, 511, &length);
        if (damaged) {
            size = (size_t)(last + length + 1 - log);
            last[length / 2] = '!';
        } else {
            size = (size_t)(last - log);
        }
        file_write_all(path, log, size);
        indexed_again(&s);
        must(sessile_keys_rotate(s.store, NULL, NULL, &err), &err);
        sessile_status status = keyed_reseal(s.store, NULL, &done, &err);
        assert_int_equal(status, SESSILE_OK);
        assert_int_equal(done.resealed, 0);
        assert_int_equal(done.failed, 1);
        assert_int_equal(done.dropped, 0);
        log_is_still(path, log, size);
        must(resume(&s, "log", &session, &err), &err);
        assert_int_equal(sessile_session_damage(session, NULL, &err),
                         damaged ? SESSILE_DAMAGED : SESSILE_TRUNCATED);
        must(sessile_session_close(session, NULL), &err);
        free(log);
        free(index);
        indexed_close(&s);
    }
}

static int set_up(void **state)
{
    (void)state;
    seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    print_message("seed %llu\n", (unsigned long long)seed);
    faults_init(&lazy);
    lazy.lazy = 1;
    os_current = &lazy.table;
    return base_init();
}

#define INDEX_TEST(run)                                   \
    {                                                     \
#run, plain_and_sealed, NULL, NULL, &(index_test) \
        {                                                 \
            run                                           \
        }                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        INDEX_TEST(changed_index_changes_nothing),
        INDEX_TEST(index_cut_anywhere_or_grown_changes_nothing),
        INDEX_TEST(index_of_another_log_changes_nothing),
        INDEX_TEST(index_of_another_course_changes_nothing),
        INDEX_TEST(log_shorter_than_its_index_is_not_written),
        INDEX_TEST(damage_behind_an_index_is_named_when_it_is_read),
        INDEX_TEST(line_of_another_course_is_named),
        cmocka_unit_test(reseal_refuses_what_its_index_does_not_confirm),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
