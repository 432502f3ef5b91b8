/*
 * test_served.c: a store behind a server whose answers are lost: nothing is lost and
 * nothing is there twice; and what the server has seen of a conversation.
 *
 * Own stores: each is behind a server that the test starts, cuts off and kills.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "store/open.h"
#include "store/served.h"
#include "support/check.h"
#include "support/proxy.h"
#include "support/sessions.h"

#include <cmocka.h>

enum { CUTS = 160 };

static store store_of(const char *url)
{
    sessile_store_options options;
    sessile_error err;
    store st;
    sessile_store_options_init(&options);
    options.remote = served_library();
    must(store_backend_open(&st, url, &options, &err), &err);
    return st;
}

static sessile_backend_log *log_at(const store *st, const char *name)
{
    sessile_backend_log *log = NULL;
    sessile_error err;
    must(st->table->open(st->self, "main", name, &log, &err), &err);
    return log;
}

static char *text_of(const store *st, const char *name)
{
    sessile_backend_log *log = log_at(st, name);
    sessile_error err;
    uint64_t bytes;
    int64_t mtime;
    size_t got;
    must(st->table->size(log, &bytes, &mtime, &err), &err);
    char *text = calloc(bytes + 1, 1);
    assert_non_null(text);
    must(st->table->read(log, 0, 0, text, bytes, &got, &err), &err);
    assert_int_equal(got, bytes);
    st->table->close(log);
    return text;
}

/* Each record is the number of its line. */
static void counts_to(const char *text, unsigned last)
{
    char *end;
    for (unsigned n = 1; n <= last; n++, text = end + 1) {
        assert_int_equal(strtoul(text, &end, 10), n);
        assert_int_equal(*end, '\n');
    }
    assert_string_equal(text, "");
}

static sessile_status append_number(const store *st, sessile_backend_log *log,
                                    sessile_log_end *end, unsigned n, int *poisoned,
                                    sessile_error *err)
{
    unsigned char tag[16];
    char line[20];
    int size = snprintf(line, sizeof line, "%u\n", n);
    memset(tag, (int)(n & 0xff), sizeof tag);
    return st->table->append(log, end, line, (size_t)size, 1, tag, poisoned, err);
}

/* ------------------------------------------------------------------ cut off */

/* The connection is cut at each place of a call and of its answer in turn. */
static void cut_everywhere(int sqlite, proxy_way way)
{
    served *s = served_start(sqlite);
    assert_non_null(s);
    proxy *p = proxy_open(proxy_port_of(served_url(s)));
    char *url = proxy_url(p, served_url(s));
    store st = store_of(url);
    sessile_log_end end = {1, 2, {0}};
    sessile_error err;
    int poisoned = 0;
    unsigned n = 1;

    must(st.table->create(st.self, "main", "log", "1\n", 2, &err), &err);
    sessile_backend_log *log = log_at(&st, "log");
    for (unsigned at = 0; at < CUTS; at++) {
        proxy_cut_after(p, way, at);
        must(append_number(&st, log, &end, ++n, &poisoned, &err), &err);
        assert_false(poisoned);
    }
    proxy_cut_after(p, way, UINT64_MAX);
    assert_true(proxy_cuts(p) > 20);
    char *text = text_of(&st, "log");
    counts_to(text, n);
    free(text);
    st.table->close(log);
    store_close(&st);
    free(url);
    proxy_close(p);
    served_end(s);
}

static void an_append_whose_answer_is_lost_takes_place_once(void **state)
{
    (void)state;
    cut_everywhere(1, PROXY_TO_CLIENT);
    cut_everywhere(0, PROXY_TO_CLIENT);
}

static void an_append_that_is_cut_off_takes_place_once(void **state)
{
    (void)state;
    cut_everywhere(1, PROXY_TO_SERVER);
}

/* What is made is made by us, although the second try finds it there. */
static void what_is_made_and_removed_behind_a_cut_is_ours(void **state)
{
    served *s = served_start(1);
    sessile_error err;
    (void)state;
    assert_non_null(s);
    proxy *p = proxy_open(proxy_port_of(served_url(s)));
    char *url = proxy_url(p, served_url(s));
    store st = store_of(url);
    for (unsigned at = 0; at < 60; at += 2) {
        char name[20];
        uint64_t bytes;
        int64_t mtime;
        snprintf(name, sizeof name, "log%u", at);
        proxy_cut_after(p, PROXY_TO_CLIENT, at);
        must(st.table->create(st.self, "main", name, "1\n", 2, &err), &err);
        proxy_cut_after(p, PROXY_TO_CLIENT, at);
        must(st.table->blob_put_new(st.self, name, "blob", 4, &err), &err);
        proxy_cut_after(p, PROXY_TO_CLIENT, at);
        must(st.table->blob_replace(st.self, name, "blob", 4, "bulb", 4, &err), &err);
        proxy_cut_after(p, PROXY_TO_CLIENT, UINT64_MAX);
        sessile_backend_log *log = log_at(&st, name);
        must(st.table->size(log, &bytes, &mtime, &err), &err);
        proxy_cut_after(p, PROXY_TO_CLIENT, at);
        must(st.table->remove(log, 1, &err), &err);
        st.table->close(log);
        proxy_cut_after(p, PROXY_TO_CLIENT, at);
        must(st.table->blob_remove(st.self, name, &err), &err);
    }
    assert_true(proxy_cuts(p) > 10);
    proxy_cut_after(p, PROXY_TO_CLIENT, UINT64_MAX);
    must(st.table->create(st.self, "main", "log", "1\n", 2, &err), &err);
    sessile_status status = st.table->create(st.self, "main", "log", "2\n", 2, &err);
    assert_int_equal(status, SESSILE_EXISTS);
    store_close(&st);
    free(url);
    proxy_close(p);
    served_end(s);
}

/* Somebody else's append is not taken for ours. */
static void an_append_that_came_second_is_a_conflict(void **state)
{
    served *s = served_start(1);
    sessile_error err;
    int poisoned = 0;
    (void)state;
    assert_non_null(s);
    store st = store_of(served_url(s));
    sessile_log_end mine = {1, 2, {0}}, theirs = mine;
    must(st.table->create(st.self, "main", "log", "1\n", 2, &err), &err);
    sessile_backend_log *a = log_at(&st, "log"), *b = log_at(&st, "log");
    must(append_number(&st, a, &mine, 2, &poisoned, &err), &err);
    assert_int_equal(append_number(&st, b, &theirs, 3, &poisoned, &err),
                     SESSILE_CONFLICT);
    assert_false(poisoned);
    assert_int_equal(theirs.bytes, 2);
    st.table->close(a);
    st.table->close(b);
    store_close(&st);
    served_end(s);
}

/* ------------------------------------------------------------------ killed */

typedef struct writer {
    const char *url;
    atomic_int stop;
    atomic_uint last, unknown;
} writer;

/* Appends one number after the other; opens the log anew where nobody knows. */
static void *write_on(void *arg)
{
    writer *w = arg;
    store st = store_of(w->url);
    sessile_log_end end = {1, 2, {0}};
    sessile_backend_log *log = log_at(&st, "log");
    sessile_error err;
    int poisoned = 0;
    while (!w->stop) {
        sessile_status status =
            append_number(&st, log, &end, w->last + 1, &poisoned, &err);
        if (!status)
            w->last++;
        else if (poisoned || status != SESSILE_BUSY)
            w->unknown++;
        if (poisoned)
            break;
    }
    st.table->close(log);
    store_close(&st);
    return NULL;
}

/* However fast this machine is, something is written between two kills. */
static void let_write(const writer *w)
{
    const unsigned seen = w->last;
    while (w->last < seen + 2 && !w->unknown)
        usleep(1000);
}

static void kills(int sqlite)
{
    served *s = served_start(sqlite);
    sessile_error err;
    pthread_t thread;
    assert_non_null(s);
    store st = store_of(served_url(s));
    must(st.table->create(st.self, "main", "log", "1\n", 2, &err), &err);
    store_close(&st);
    writer w = {.url = served_url(s), .last = 1};
    assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
    for (int i = 0; i < 8; i++) {
        let_write(&w);
        usleep((useconds_t)i * 3000);
        served_kill(s);
        served_restart(s);
    }
    let_write(&w);
    w.stop = 1;
    pthread_join(thread, NULL);
    assert_int_equal(w.unknown, 0);
    assert_true(w.last > 8);
    st = store_of(served_url(s));
    char *text = text_of(&st, "log");
    counts_to(text, w.last);
    printf("# figure: appends across 8 kills = %u\n", (unsigned)w.last);
    free(text);
    store_close(&st);
    served_end(s);
}

static void a_server_that_is_killed_loses_nothing_and_doubles_nothing(void **state)
{
    (void)state;
    kills(1);
    kills(0);
}

/* ------------------------------------------------------------------ what it saw */

enum { SECRET = 32 };

static int has_text(const char *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* Whether the memory of a process has a text. */
static int memory_has(int pid, const char *text)
{
    char path[64], line[400];
    uint64_t read_bytes = 0;
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY);
    assert_non_null(maps);
    assert_true(mem >= 0);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[0] != 'r')
            continue;
        char *bytes = malloc(to - from);
        ssize_t n = bytes ? pread(mem, bytes, to - from, (off_t)from) : -1;
        if (n > 0) {
            read_bytes += (uint64_t)n;
            found |= has_text(bytes, (size_t)n, text);
        }
        free(bytes);
    }
    fclose(maps);
    close(mem);
    assert_true(read_bytes > 1 << 20);
    return found;
}

/* Whether a file below a folder has a text. */
static int disk_has(const char *folder, const char *text)
{
    char command[900];
    snprintf(command, sizeof command, "grep -rqaF -e '%s' '%s'", text, folder);
    return system(command) == 0;
}

/* The words are made up after the server began, so it has them from nowhere else. */
static void the_server_sees_nothing_of_what_is_said(void **state)
{
    static const char key[] =
        "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    unsigned char raw[SECRET / 2];
    char secret[SECRET + 1], message[200], folder[20];
    sessile_store_options options;
    sessile_store *st;
    sessile_error err;
    (void)state;
    served *s = served_start(1);
    assert_non_null(s);
    random_bytes(raw, sizeof raw);
    hex_encode(secret, raw, sizeof raw);
    snprintf(folder, sizeof folder, "f%.8s", secret);

    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = key;
    options.remote = served_library();
    must(sessile_open(&st, served_url(s), &options, &err), &err);
    assert_true(sessile_store_sealed(st));
    sessile_session *session = session_made(st, "talk");
    for (int i = 0; i < 20; i++) {
        snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"%s %d\"}",
                 secret, i);
        say_json(session, message);
    }
    char *keys = context_keys(session, SESSILE_NO_ID);
    assert_non_null(keys);
    free(keys);
    session_closed(session);

    assert_true(memory_has(getpid(), secret)); /* the search finds what is there */
    assert_false(memory_has(served_pid(s), secret));
    assert_false(disk_has(served_folder(s), secret));
    /* what is written as it is, is found: a plain blob */
    store plain = store_of(served_url(s));
    must(plain.table->blob_put_new(plain.self, folder, secret, SECRET, &err), &err);
    assert_true(disk_has(served_folder(s), secret));
    store_close(&plain);
    sessile_store_close(st);
    served_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_whose_answer_is_lost_takes_place_once),
        cmocka_unit_test(an_append_that_is_cut_off_takes_place_once),
        cmocka_unit_test(what_is_made_and_removed_behind_a_cut_is_ours),
        cmocka_unit_test(an_append_that_came_second_is_a_conflict),
        cmocka_unit_test(a_server_that_is_killed_loses_nothing_and_doubles_nothing),
        cmocka_unit_test(the_server_sees_nothing_of_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
