/*
 * test_write_flags.c: what the rules of a store flag, redact and allow, as it is written;
 * and by several threads.
 *
 * Own guard: it sets guards with rules of its own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/screened.h"

#include <cmocka.h>

/* ------------------------------------------------------------------ flag and redact */

static void expect_entry(sessile_session *s, sessile_id id, const char *has)
{
    sessile_error err;
    char *text;
    size_t size;
    must(sessile_entry(s, id, &text, &size, &err), &err);
    if (!strstr(text, has))
        fail_msg("entry %u is %s, and has no %s", (unsigned)id, text, has);
    sessile_free(text);
}

static void a_flag_is_a_label_of_the_same_commit(void **state)
{
    sessile_label_row *labels;
    sessile_id id;
    size_t count;
    screened w;
    (void)state;

    screened_open(&w, K(MESSAGE) | K(TITLE), SESSILE_SCREEN_FLAG);
    must(sessile_append(w.s, sessile_text(MESSAGE), &id, &w.err), &w.err);
    expect_entry(w.s, id, CANARY);
    must(sessile_labels(w.s, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 1);
    assert_int_equal(labels[0].entry, id);
    assert_string_equal(labels[0].name.data, "screen:word");
    sessile_free(labels);
    sessile_slice list[] = {sessile_text(HELLO), sessile_text(MESSAGE)};
    sessile_run *run;
    must(sessile_turn_begin(&run, w.s, list, 2, NULL, &w.err), &w.err);
    sessile_run_free(run);
    must(sessile_labels(w.s, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 2);
    sessile_free(labels);
    must(sessile_set_title(w.s, sessile_text("a " CANARY), &w.err), &w.err);
    sessile_session_options o = screened_titled("t");
    sessile_session *made;
    must(sessile_create(&made, w.store, &o, &w.err), &w.err);
    must(sessile_labels(made, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 1);
    assert_int_equal(labels[0].entry, 0);
    sessile_free(labels);
    sessile_session_close(made, NULL);
    screened_close(&w);
}

static void each_entry_of_a_write_has_its_own_flag(void **state)
{
    const sessile_write_entry list[] = {{sessile_text(HELLO), 0, NULL},
                                        {sessile_text(OBJECT), 1, NULL},
                                        {sessile_text(MESSAGE), 0, NULL}};
    sessile_label_row *labels;
    sessile_id first;
    size_t count;
    screened w;
    (void)state;

    screened_open(&w, K(MESSAGE) | K(CUSTOM), SESSILE_SCREEN_FLAG);
    must(sessile_write(w.s, list, 3, SESSILE_NO_ID, &first, &w.err), &w.err);
    expect_entry(w.s, first, "hello");
    expect_entry(w.s, first + 2, CANARY);
    must(sessile_labels(w.s, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 2);
    assert_int_equal(labels[0].entry, first + 1);
    assert_int_equal(labels[1].entry, first + 2);
    sessile_free(labels);
    screened_close(&w);
}

static sessile_store *view_of(screened *w, const char *role)
{
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    c.roles = &role;
    c.role_count = 1;
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    return view;
}

/* Of ann's session of the ground, opened through a view. */
static sessile_status unlabel_as(screened *w, const char *role, sessile_id id)
{
    sessile_store *view = view_of(w, role);
    sessile_session_options o = named("s");
    sessile_session *s;
    sessile_status status;

    o.user = sessile_text("ann");
    must(sessile_resume(&s, view, &o, &w->err), &w->err);
    status = sessile_unlabel(s, id, sessile_text("screen:word"), &w->err);
    sessile_session_close(s, NULL);
    sessile_store_close(view);
    return status;
}

static size_t labels_of(screened *w)
{
    sessile_label_row *labels;
    size_t count;

    must(sessile_labels(w->s, &labels, &count, &w->err), &w->err);
    sessile_free(labels);
    return count;
}

/* Nobody forges what a screen says, and who writes does not take it back. */
static void the_label_of_a_screen_is_no_writers(void **state)
{
    static const char *const names[] = {"screen:", "screen:word", "screen:none",
                                        "screen:\n"};
    sessile_id id;
    screened w;
    (void)state;

    screened_open(&w, K(MESSAGE), SESSILE_SCREEN_FLAG);
    must(sessile_append(w.s, sessile_text(MESSAGE), &id, &w.err), &w.err);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_refused(sessile_label(w.s, 1, sessile_text(names[i]), &w.err),
                       SESSILE_INVALID, &w.err, "what a screen found");
    must(sessile_label(w.s, 1, sessile_text("screening"), &w.err), &w.err);
    assert_int_equal(labels_of(&w), 2);
    assert_refused(unlabel_as(&w, "editor", id), SESSILE_DENIED, &w.err, "manage_access");
    assert_int_equal(labels_of(&w), 2);
    must(unlabel_as(&w, "admin", id), &w.err);
    assert_int_equal(labels_of(&w), 1);
    must(sessile_append(w.s, sessile_text(MESSAGE), &id, &w.err), &w.err);
    must(sessile_unlabel(w.s, id, sessile_text("screen:word"), &w.err), &w.err);
    assert_int_equal(labels_of(&w), 1);
    screened_close(&w);
}

/* A cut in the newest write takes the message away with its label. */
static void message_and_label_are_one_write(void **state)
{
    sessile_session *s;
    sessile_message *messages;
    sessile_label_row *labels;
    size_t count;
    char path[600];
    struct stat st;
    screened w;
    (void)state;

    if (place_elsewhere())
        return;
    screened_open(&w, K(MESSAGE), SESSILE_SCREEN_FLAG);
    s = session_made(w.store, "cut");
    must(sessile_append(s, sessile_text(HELLO), NULL, &w.err), &w.err);
    must(sessile_append(s, sessile_text(MESSAGE), NULL, &w.err), &w.err);
    sessile_session_close(s, NULL);
    log_path(&w.place, "cut", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 2), 0);
    s = session_resumed(w.store, "cut");
    must(sessile_messages(s, NULL, &messages, &count, &w.err), &w.err);
    sessile_free(messages);
    assert_int_equal(count, 1);
    must(sessile_labels(s, &labels, &count, &w.err), &w.err);
    sessile_free(labels);
    assert_int_equal(count, 0);
    sessile_session_close(s, NULL);
    screened_close(&w);
}

static void what_is_redacted_is_removed_and_the_rest_is_as_it_was(void **state)
{
    static const char message[] =
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a "
        "\\u0078CANARYx \\u00e9\"}],\"n\":1.50e3,\"x\":[true,null]}";
    sessile_memory_write_entry e = screened_entry("k", "is " CANARY " here");
    sessile_memory_row *rows;
    sessile_id id;
    size_t count;
    screened w;
    (void)state;

    screened_open(&w, SESSILE_SCREEN_KINDS, SESSILE_SCREEN_REDACT);
    must(sessile_append(w.s, sessile_text(message), &id, &w.err), &w.err);
    expect_entry(w.s, id,
                 "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a "
                 "[removed: word] \\u00e9\"}],\"n\":1.50e3,\"x\":[true,null]}");
    must(sessile_set_title(w.s, sessile_text("a " CANARY), &w.err), &w.err);
    must(sessile_checkpoint(w.s,
                            &(sessile_checkpoint_options){.state = sessile_text(OBJECT)},
                            &id, &w.err),
         &w.err);
    expect_entry(w.s, id, "{\"a\":[\"a [removed: word]\"]}");
    must(sessile_memory_write(w.m, &e, 1, NULL, &w.err), &w.err);
    must(sessile_memory_list(w.m, NULL, &rows, &count, &w.err), &w.err);
    assert_string_equal(rows[0].value.data, "is [removed: word] here");
    sessile_free(rows);
    e = screened_entry("a " CANARY, "v");
    assert_int_equal(sessile_memory_write(w.m, &e, 1, NULL, &w.err), SESSILE_DENIED);
    assert_string_equal(w.err.rule, "word");
    assert_int_equal(screened_files(&w), 0);
    screened_close(&w);
}

static void a_flagged_entry_of_a_memory_says_so(void **state)
{
    sessile_memory_write_entry e = screened_entry("k", CANARY);
    sessile_memory_row *rows;
    size_t count;
    screened w;
    (void)state;

    screened_open(&w, K(MEMORY), SESSILE_SCREEN_FLAG);
    e.metadata = sessile_text("{\"a\":1,\"flagged\":[]}");
    must(sessile_memory_write(w.m, &e, 1, NULL, &w.err), &w.err);
    must(sessile_memory_list(w.m, NULL, &rows, &count, &w.err), &w.err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].state, SESSILE_MEMORY_LIVE);
    assert_string_equal(rows[0].metadata.data, "{\"flagged\":[\"word\"],\"a\":1}");
    sessile_free(rows);
    screened_close(&w);
}

/* ------------------------------------------------------------------ URLs */

static void urls_refuse_memories_and_states_unless_allowed(void **state)
{
    static const char *const inward[] = {
        "http://127.0.0.1/",  "http://169.254.169.254/latest", "http://10.0.0.1",
        "http://2130706433/", "http://[::ffff:10.0.0.1]/",     "http:\\/\\/localhost"};
    sessile_guard_options o;
    char json[200];
    screened w;
    (void)state;

    screened_open(&w, 0, SESSILE_SCREEN_REFUSE);
    for (size_t i = 0; i < sizeof inward / sizeof *inward; i++) {
        sessile_memory_write_entry e = screened_entry("k", inward[i]);
        snprintf(json, sizeof json, "{\"url\":\"%s\"}", inward[i]);
        if (i < 5)
            assert_int_equal(sessile_memory_write(w.m, &e, 1, NULL, &w.err),
                             SESSILE_DENIED);
        assert_int_equal(
            sessile_checkpoint(w.s,
                               &(sessile_checkpoint_options){.state = sessile_text(json)},
                               NULL, &w.err),
            SESSILE_DENIED);
        assert_true(w.err.rule[0]);
        snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%s\"}", inward[i]);
        must(sessile_append(w.s, sessile_text(json), NULL, &w.err), &w.err);
    }
    screened_close(&w);

    sessile_slice allow[] = {{NULL, 0}, {NULL, 0}};
    char host[] = "127.0.0.1";
    allow[0] = sessile_text(host);
    allow[1] = sessile_text(".example.org");
    memset(&w, 0, sizeof w);
    place_open(&w.place, STORE_RAM);
    sessile_guard_options_init(&o);
    o.urls.options = (sessile_url_options){.allow = allow, .allow_count = 1};
    o.urls.refuse = 1u << 20;
    assert_int_equal(sessile_store_guard(w.place.store, &o, &w.err), SESSILE_INVALID);
    o.urls.refuse = SESSILE_SCREEN_MEMORY;
    o.urls.options.only_allowed = 1;
    o.urls.options.allow_count = 2;
    must(sessile_store_guard(w.place.store, &o, &w.err), &w.err);
    memset(host, 'x', sizeof host - 1); /* the list was copied */
    sessile_screen_item item = {.kind = SESSILE_SCREEN_MEMORY,
                                .text = sessile_text("http://127.0.0.1:80/")};
    sessile_screen_outcome *outcome;
    must(sessile_store_screen(&outcome, w.place.store, &item, &w.err), &w.err);
    assert_int_equal(outcome->verdict, SESSILE_SCREEN_PASS);
    sessile_free(outcome);
    item.text = sessile_text("https://example.com/");
    must(sessile_store_screen(&outcome, w.place.store, &item, &w.err), &w.err);
    assert_int_equal(outcome->verdict, SESSILE_SCREEN_REFUSE);
    assert_string_equal(outcome->findings[0].rule, "not-allowed");
    sessile_free(outcome);
    item.kind = SESSILE_SCREEN_MESSAGE;
    must(sessile_store_screen(&outcome, w.place.store, &item, &w.err), &w.err);
    assert_int_equal(outcome->verdict, SESSILE_SCREEN_PASS);
    sessile_free(outcome);
    place_close(&w.place);
}

/* ------------------------------------------------------------------ threads */

static void *append_often(void *arg)
{
    screened *w = arg;
    size_t wrong = 0;
    for (int i = 0; i < 50; i++) {
        sessile_error err;
        wrong += sessile_append(w->s, sessile_text(i % 2 ? MESSAGE : HELLO), NULL,
                                &err) != (i % 2 ? SESSILE_DENIED : SESSILE_OK);
    }
    return (void *)(uintptr_t)wrong;
}

static void many_threads_use_the_same_rules(void **state)
{
    pthread_t threads[4];
    void *wrong;
    screened w;
    (void)state;

    screened_open(&w, K(MESSAGE), SESSILE_SCREEN_REFUSE);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append_often, &w), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    screened_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flag_is_a_label_of_the_same_commit),
        cmocka_unit_test(each_entry_of_a_write_has_its_own_flag),
        cmocka_unit_test(the_label_of_a_screen_is_no_writers),
        cmocka_unit_test(message_and_label_are_one_write),
        cmocka_unit_test(what_is_redacted_is_removed_and_the_rest_is_as_it_was),
        cmocka_unit_test(a_flagged_entry_of_a_memory_says_so),
        cmocka_unit_test(urls_refuse_memories_and_states_unless_allowed),
        cmocka_unit_test(many_threads_use_the_same_rules),
    };
    return cmocka_run_group_tests_name("what rules flag and redact", tests, NULL, NULL);
}
