/*
 * test_sessions.c: sessions over every store in stores.c: what a host would see.
 *
 * Through the public interface alone.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ kept */

static void what_is_written_is_there_for_the_next_handle(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");
    sessile_error err;
    char *title;
    size_t size;

    assert_int_equal(sessile_store_sealed(st), g->kind->sealed);
    must(try_say(s, "hello", NULL, &err), &err);
    must(sessile_set_title(s, sessile_text("A title"), &err), &err);
    must(try_say(s, "there", NULL, &err), &err);
    closed(s);
    if (!g->kind->vanishes) {
        sessile_store_close(st);
        st = site_store(g);
    }
    s = session_of(st, "one");
    assert_int_equal(messages(s, "there"), 2);
    must(sessile_title(s, &title, &size, &err), &err);
    assert_string_equal(title, "A title");
    sessile_free(title);
    closed(s);
    sessile_session_options o = named("one");
    assert_int_equal(sessile_create(&s, st, &o, &err), SESSILE_EXISTS);
    o = named("two");
    assert_int_equal(sessile_resume(&s, st, &o, &err), SESSILE_NOTFOUND);
    sessile_store_close(st);
}

static void ids_of_any_bytes_are_apart(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    static const struct {
        const char *agent, *user, *id;
    } names[] = {{"", "", "a"},      {"", "u", "a"},     {"b", "", "a"},
                 {"", "", "A/../b"}, {"", "", "\xff\n"}, {"../x", "", "a"}};
    sessile_error err;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            sessile_session_options o = named(names[i].id);
            sessile_session *s;
            char text[20];
            o.agent = sessile_text(names[i].agent);
            o.user = sessile_text(names[i].user);
            snprintf(text, sizeof text, "number %zu", i);
            must((round ? sessile_resume : sessile_create)(&s, st, &o, &err), &err);
            if (!round)
                must(try_say(s, text, NULL, &err), &err);
            assert_int_equal(messages(s, text), 1);
            closed(s);
        }
        if (!g->kind->vanishes) {
            sessile_store_close(st);
            st = site_store(g);
        }
    }
    sessile_store_close(st);
}

static int append_all(void *arg, const char *folder, const char *name)
{
    strcat(arg, folder);
    strcat(arg, "/");
    strcat(arg, name);
    return 0;
}

/* What a store holds of a sealed session says nothing of it. */
static void sealed_is_sealed(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "The Id");
    const sessile_backend *table;
    sessile_backend_log *log;
    static char bytes[100000], name[300];
    sessile_error err;
    void *self;
    size_t got;

    must(try_say(s, "squeamish ossifrage", NULL, &err), &err);
    closed(s);
    sessile_store_close(st);
    must(g->kind->backend(g->place, &table, &self, &err), &err);
    name[0] = 0;
    must(table->list(self, NULL, append_all, name, &err), &err);
    assert_non_null(strstr(name, "main/="));
    *strchr(name, '/') = 0;
    must(table->open(self, name, name + strlen(name) + 1, &log, &err), &err);
    must(table->read(log, 0, 0, bytes, sizeof bytes - 1, &got, &err), &err);
    table->close(log);
    if (table->free)
        table->free(self);
    assert_true(got > 100);
    bytes[got] = 0;
    if (g->kind->sealed) {
        assert_null(strstr(bytes, "ossifrage"));
        assert_null(strstr(bytes, "The Id"));
    } else {
        assert_non_null(strstr(bytes, "ossifrage"));
    }
}

/* Opens the store with other keys: the last argument of the table is what comes of it. */
static void the_wrong_key_opens_nothing(void **state)
{
    static const char other[] =
        "hex:ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";
    const site *g = *state;
    sessile_store_options options;
    const sessile_backend *table;
    sessile_store *st;
    sessile_error err;
    void *self;

    st = site_store(g);
    closed(session_of(st, "one"));
    sessile_store_close(st);
    for (int with_key = 0; with_key < 2; with_key++) {
        site_options(g, &options);
        options.key_source = with_key ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
        options.key = other;
        if (!g->kind->sealed && !with_key)
            continue;
        must(g->kind->backend(g->place, &table, &self, &err), &err);
        assert_int_equal(sessile_open_with(&st, table, self, &options, &err),
                         SESSILE_SEALED);
        assert_null(st);
    }
    st = site_store(g);
    closed(session_of(st, "one"));
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ together */

static void handles_see_each_others_commits(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g), *other = g->kind->vanishes ? st : site_store(g);
    sessile_session *a = session_of(st, "one"), *b = session_of(st, "one"),
                    *c = session_of(other, "one");
    sessile_error err;

    must(try_say(a, "by a", NULL, &err), &err);
    assert_int_equal(messages(b, "by a"), 1);
    assert_int_equal(messages(c, "by a"), 1);
    must(try_say(b, "by b", NULL, &err), &err);
    must(try_say(c, "by c", NULL, &err), &err);
    assert_int_equal(messages(a, "by c"), 3);
    assert_int_equal(messages(b, "by c"), 3);
    closed(a);
    closed(b);
    closed(c);
    if (other != st)
        sessile_store_close(other);
    sessile_store_close(st);
}

static void of_two_turns_on_one_base_one_is_a_CONFLICT(void **state)
{
    sessile_store *st = site_store(*state);
    sessile_session *a = session_of(st, "one"), *b = session_of(st, "one");
    sessile_slice message = sessile_text("{\"role\":\"user\",\"content\":\"turn\"}");
    sessile_error err;
    sessile_need need;
    sessile_run *run;
    sessile_id head;

    must(sessile_head(a, &head, &err), &err);
    must(sessile_head(b, &head, &err), &err);
    must(sessile_turn_begin(&run, a, &message, 1, NULL, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    sessile_run_free(run);
    assert_int_equal(sessile_turn_begin(&run, b, &message, 1, NULL, &err),
                     SESSILE_CONFLICT);
    assert_null(run);
    assert_int_equal(messages(b, NULL), 1);
    must(sessile_turn_begin(&run, b, &message, 1, NULL, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    sessile_run_free(run);
    assert_int_equal(messages(a, NULL), 2);
    closed(a);
    closed_all(b, st);
}

enum { THREADS = 6, EACH = 40 };

typedef struct speaker {
    sessile_store *st;
    int number;
    pthread_t thread;
    sessile_error err;
} speaker;

static void *speak(void *arg)
{
    speaker *p = arg;
    sessile_session_options o = named("one");
    sessile_session *s;
    char text[40];

    if (sessile_session_open(&s, p->st, &o, &p->err))
        return NULL;
    for (int i = 0; i < EACH; i++) {
        snprintf(text, sizeof text, "%d-%d.", p->number, i);
        if (try_say(s, text, NULL, &p->err))
            break;
    }
    sessile_session_close(s, p->err.code ? NULL : &p->err);
    return NULL;
}

static void of_many_threads_no_message_is_lost_or_doubled(void **state)
{
    sessile_store *st = site_store(*state);
    speaker speakers[THREADS];
    int next[THREADS] = {0};
    sessile_message *rows;
    sessile_error err;
    size_t count;

    closed(session_of(st, "one"));
    memset(speakers, 0, sizeof speakers);
    for (int i = 0; i < THREADS; i++) {
        speakers[i].st = st;
        speakers[i].number = i;
        assert_int_equal(pthread_create(&speakers[i].thread, NULL, speak, &speakers[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(speakers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        must(speakers[i].err.code, &speakers[i].err);
    sessile_session *s = session_of(st, "one");
    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, THREADS * EACH);
    for (size_t i = 0; i < count; i++) {
        int who, which;
        const char *text = strstr(rows[i].json.data, "content\":\"");
        assert_non_null(text);
        assert_int_equal(sscanf(text + 10, "%d-%d.", &who, &which), 2);
        assert_in_range(who, 0, THREADS - 1);
        assert_int_equal(which, next[who]);
        next[who]++;
    }
    sessile_free(rows);
    closed_all(s, st);
}

/* ------------------------------------------------------------------ large */

static void a_large_message_is_kept(void **state)
{
    enum { LARGE = 5 << 20 };
    sessile_store *st = site_store(*state);
    sessile_session *s = session_of(st, "one");
    char *json = malloc(LARGE + 100);
    sessile_message *rows;
    sessile_error err;
    sessile_id id;
    size_t count;

    assert_non_null(json);
    strcpy(json, "{\"role\":\"user\",\"content\":\"");
    size_t at = strlen(json);
    for (size_t i = 0; i < LARGE; i++)
        json[at + i] = (char)('a' + i * i % 26);
    strcpy(json + at + LARGE, "\"}");
    must(sessile_append(s, sessile_text(json), &id, &err), &err);
    closed(s);
    s = session_of(st, "one");
    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].json.size, strlen(json));
    assert_memory_equal(rows[0].json.data, json, strlen(json));
    sessile_free(rows);
    free(json);
    closed_all(s, st);
}

static void a_hundred_thousand_entries(void **state)
{
    enum { TURNS = 100, MESSAGES = 999 };
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");
    static char texts[MESSAGES][60];
    sessile_slice messages_[MESSAGES];
    sessile_messages_options last;
    sessile_message *rows;
    sessile_error err;
    sessile_need need;
    sessile_run *run;
    size_t count, n = 0;

    for (int i = 0; i < TURNS; i++) {
        for (int j = 0; j < MESSAGES; j++) {
            snprintf(texts[j], sizeof texts[j],
                     "{\"role\":\"user\",\"content\":\"number %zu\"}", n++);
            messages_[j] = sessile_text(texts[j]);
        }
        must(sessile_turn_begin(&run, s, messages_, MESSAGES, NULL, &err), &err);
        must(sessile_run_step(run, &need, &err), &err);
        sessile_run_free(run);
    }
    closed(s);
    if (!g->kind->vanishes) {
        sessile_store_close(st);
        st = site_store(g);
    }
    s = session_of(st, "one");
    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, n);
    for (size_t i = 0; i < count; i += 997) {
        char expected[30];
        snprintf(expected, sizeof expected, "\"number %zu\"", i);
        assert_non_null(strstr(rows[i].json.data, expected));
    }
    sessile_free(rows);
    sessile_messages_options_init(&last);
    last.last = 1;
    must(sessile_messages(s, &last, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_non_null(strstr(rows[0].json.data, "\"number 99899\""));
    sessile_free(rows);
    closed_all(s, st);
}

/* ------------------------------------------------------------------ the store as a whole
 */

static void lists_and_pages(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_list_options options;
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    char id[20];

    for (int i = 0; i < 30; i++) {
        snprintf(id, sizeof id, "Session %02d", i);
        sessile_session_options o = named(id);
        sessile_session *s;
        o.agent = sessile_text(i % 3 ? "" : "Other");
        must(sessile_create(&s, st, &o, &err), &err);
        must(try_say(s, id, NULL, &err), &err);
        closed(s);
    }
    must(sessile_list(st, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 30);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].status, SESSILE_OK);
        assert_int_equal(rows[i].entries, 2);
    }
    sessile_free(rows);
    must(sessile_list(st, "Other", &rows, &count, &err), &err);
    assert_int_equal(count, 10);
    sessile_free(rows);
    sessile_list_options_init(&options);
    options.offset = 25;
    options.limit = 10;
    must(sessile_list_with(st, &options, &rows, &count, &err), &err);
    assert_int_equal(count, 5);
    sessile_free(rows);
    sessile_list_options_init(&options);
    options.id_prefix = sessile_text("Session 2");
    must(sessile_list_with(st, &options, &rows, &count, &err), &err);
    assert_int_equal(count, 10);
    sessile_free(rows);
    sessile_store_close(st);
}

static void a_check_finds_nothing_wrong(void **state)
{
    sessile_store *st = site_store(*state);
    sessile_session *s = session_of(st, "one");
    sessile_checked step;
    sessile_check *check;
    sessile_error err;
    size_t logs = 0;

    for (int i = 0; i < 300; i++) /* past a block of an index, where there is one */
        must(try_say(s, "hello", NULL, &err), &err);
    closed(s);
    closed(session_of(st, "two"));
    must(sessile_check_open(&check, st, NULL, 1, &err), &err);
    for (;;) {
        must(sessile_check_next(check, &step, &err), &err);
        if (!step.file)
            break;
        logs += step.id.size > 0;
        assert_false(step.salvaged);
        for (size_t i = 0; i < step.count; i++)
            if (step.findings[i].severity != SESSILE_NOTE)
                fail_msg("%s", step.findings[i].what);
    }
    assert_int_equal(logs, 2);
    sessile_check_close(check);
    sessile_store_close(st);
}

/* What a store cannot do it says, and does nothing. */
static void keys_are_changed_or_UNSUPPORTED(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    const sessile_backend *table;
    sessile_session_options o = named("one");
    sessile_session *s;
    sessile_error err;
    uint64_t epoch = 0, removed = 0;
    int can;
    void *self;

    must(g->kind->backend(g->place, &table, &self, &err), &err);
    can = g->kind->sealed && table->blob_replace;
    if (table->free)
        table->free(self);
    o.user = sessile_text("u");
    must(sessile_create(&s, st, &o, &err), &err);
    must(try_say(s, "mine", NULL, &err), &err);
    closed(s);
    assert_int_equal(sessile_keys_rotate(st, NULL, &epoch, &err),
                     can ? SESSILE_OK : SESSILE_UNSUPPORTED);
    must(sessile_resume(&s, st, &o, &err), &err);
    assert_int_equal(messages(s, "mine"), 1);
    closed(s);
    assert_int_equal(sessile_forget(st, o.user, &removed, &err),
                     can ? SESSILE_OK : SESSILE_UNSUPPORTED);
    assert_int_equal(sessile_resume(&s, st, &o, &err), can ? SESSILE_SEALED : SESSILE_OK);
    closed_all(s, st);
}

/* ------------------------------------------------------------------ all of it */

static const struct CMUnitTest cases[] = {
    CASE(what_is_written_is_there_for_the_next_handle),
    CASE(ids_of_any_bytes_are_apart),
    CASE_IF(sealed_is_sealed, NEEDS_RESTARTS),
    CASE_IF(the_wrong_key_opens_nothing, NEEDS_RESTARTS),
    CASE(handles_see_each_others_commits),
    CASE(of_two_turns_on_one_base_one_is_a_CONFLICT),
    CASE(of_many_threads_no_message_is_lost_or_doubled),
    CASE(a_large_message_is_kept),
    CASE(a_hundred_thousand_entries),
    CASE(lists_and_pages),
    CASE(a_check_finds_nothing_wrong),
    CASE(keys_are_changed_or_UNSUPPORTED),
};

int main(int argc, char **argv)
{
    return suite_run("sessions", cases, sizeof cases / sizeof *cases, 0, argc, argv);
}
