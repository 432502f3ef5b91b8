/*
 * test_facts.c: labels, pins, settings, metadata and suspensions: what is in force, in
 * this handle, in another, and after the session was opened again by its index.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/sessions.h"
#include "session/read.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) ((sessile_slice){literal, sizeof literal - 1})

/* "entry=name …", by entry, then as they were put. */
static void expect_labels(sessile_session *s, const char *wanted)
{
    sessile_label_row *rows;
    sessile_error err;
    size_t count;
    char text[1024] = "";

    must(sessile_labels(s, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%x=%.*s",
                 i ? " " : "", rows[i].entry, (int)rows[i].name.size, rows[i].name.data);
    sessile_free(rows);
    assert_string_equal(text, wanted);
}

static void expect_settings(sessile_session *s, const char *wanted)
{
    sessile_error err;
    size_t size;
    char *text;

    must(sessile_settings(s, &text, &size, &err), &err);
    assert_string_equal(text, wanted);
    sessile_free(text);
}

static void expect_metadata(sessile_session *s, const char *wanted)
{
    sessile_error err;
    size_t size;
    char *text;

    must(sessile_metadata(s, &text, &size, &err), &err);
    assert_string_equal(text, wanted);
    sessile_free(text);
}

/* ------------------------------------------------------------------ labels */

static void labels_are_put_and_taken_away(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "labels");
    sessile_id one = say(s, "user", "one"), two = say(s, "assistant", "two");
    sessile_error err;
    sessile_id head;

    must(sessile_label(s, two, TEXT("before-deploy"), &err), &err);
    must(sessile_label(s, one, TEXT("b"), &err), &err);
    must(sessile_label(s, one, TEXT("a"), &err), &err);
    must(sessile_label(s, one, TEXT("a"), &err), &err); /* is there already */
    expect_labels(s, "1=b 1=a 2=before-deploy");
    must(sessile_unlabel(s, one, TEXT("b"), &err), &err);
    expect_labels(s, "1=a 2=before-deploy");
    must(sessile_head(s, &head, &err), &err);
    assert_int_equal(head, two);
    assert_int_equal(s->core->tree.node_count, 3 + 4);

    assert_int_equal(sessile_unlabel(s, one, TEXT("b"), &err), SESSILE_NOTFOUND);
    assert_int_equal(sessile_label(s, 99, TEXT("x"), &err), SESSILE_NOTFOUND);
    assert_int_equal(sessile_label(s, one, TEXT(""), &err), SESSILE_INVALID);
    assert_int_equal(sessile_label(s, one, TEXT("\xff"), &err), SESSILE_INVALID);
    char long_name[201];
    memset(long_name, 'x', sizeof long_name);
    assert_int_equal(sessile_label(s, one, (sessile_slice){long_name, 201}, &err),
                     SESSILE_LIMIT);
    assert_int_equal(s->core->tree.node_count, 3 + 4);
    session_closed(s);
}

/* A label of another handle is seen, and a fact that a branch away was stated holds. */
static void labels_are_of_the_whole_session(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "whole");
    sessile_session *other = session_resumed(p->store, "whole");
    sessile_id one = say(s, "user", "one");
    sessile_error err;

    say(s, "assistant", "two");
    must(sessile_label(s, one, TEXT("kept"), &err), &err);
    expect_labels(other, "1=kept");
    move_head(s, one);
    say(s, "assistant", "another two");
    expect_labels(other, "1=kept");
    must(sessile_unlabel(other, one, TEXT("kept"), &err), &err);
    expect_labels(s, "");
    session_closed(other);
    session_closed(s);
}

static int pinned(sessile_session *s, sessile_id id)
{
    const context *c;
    sessile_error err;
    int found = -1;

    pthread_mutex_lock(&s->core->mutex);
    must(session_refresh_locked(s->core, &err), &err);
    must(session_context_locked(s->core, &c, &err), &err);
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i].key.entry == id)
            found = (c->items[i].flags & ITEM_PINNED) != 0;
    pthread_mutex_unlock(&s->core->mutex);
    return found;
}

static void a_pin_marks_its_message_in_the_context(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "pins");
    sessile_id one = say(s, "user", "one"), two = say(s, "assistant", "two");
    sessile_error err;

    assert_int_equal(pinned(s, one), 0);
    must(sessile_label(s, one, TEXT("pinned"), &err), &err);
    assert_int_equal(pinned(s, one), 1);
    assert_int_equal(pinned(s, two), 0);
    sessile_id three = say(s, "user", "three");
    assert_int_equal(pinned(s, one), 1);
    assert_int_equal(pinned(s, three), 0);
    must(sessile_unlabel(s, one, TEXT("pinned"), &err), &err);
    assert_int_equal(pinned(s, one), 0);
    /* a fact is no message */
    assert_int_equal(sessile_label(s, three + 1, TEXT("pinned"), &err), SESSILE_INVALID);
    session_closed(s);
}

/* A system message after a pinned one in the middle does not open the context. */
static void a_pin_does_not_spread(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "spread");
    sessile_error err;

    say(s, "user", "one");
    sessile_id middle = say(s, "system", "middle");
    must(sessile_label(s, middle, TEXT("pinned"), &err), &err);
    assert_int_equal(pinned(s, middle), 1);
    sessile_id next = say(s, "system", "next");
    assert_int_equal(pinned(s, next), 0);
    session_closed(s);
}

/* ------------------------------------------------------------------ members */

static void members_are_kept_one_by_one(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "settings");
    sessile_session *other = session_resumed(p->store, "settings");
    sessile_error err;

    expect_settings(s, "{}");
    must(sessile_set_settings(s, TEXT("{\"model\":\"a\",\"n\":9007199254740993}"), &err),
         &err);
    must(sessile_set_settings(other, TEXT("{\"thinking\":{\"level\":[1,2]}}"), &err),
         &err);
    expect_settings(s, "{\"model\":\"a\",\"n\":9007199254740993,"
                       "\"thinking\":{\"level\":[1,2]}}");
    must(sessile_set_settings(s, TEXT("{\"model\":\"b\",\"n\":null}"), &err), &err);
    expect_settings(other, "{\"thinking\":{\"level\":[1,2]},\"model\":\"b\"}");
    assert_int_equal(sessile_set_settings(s, TEXT("{\"b\":1,\"\\u0062\":2}"), &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_set_settings(s, TEXT("[1]"), &err), SESSILE_INVALID);
    assert_int_equal(sessile_set_settings(s, TEXT("{\"a\":"), &err), SESSILE_INVALID);
    expect_metadata(s, "{}");
    session_closed(other);
    session_closed(s);
}

static void metadata_of_the_header_is_stated_first(void **state)
{
    place *p = *state;
    sessile_session_options options;
    sessile_session *s;
    sessile_error err;

    sessile_session_options_init(&options);
    options.id = sessile_text("meta");
    options.metadata = sessile_text("{\"project\":\"x\",\"team\":\"red\"}");
    must(sessile_create(&s, p->store, &options, &err), &err);
    expect_metadata(s, "{\"project\":\"x\",\"team\":\"red\"}");
    must(sessile_set_metadata(s, TEXT("{\"team\":\"blue\",\"project\":null}"), &err),
         &err);
    expect_metadata(s, "{\"team\":\"blue\"}");
    must(sessile_set_metadata(s, TEXT("{\"project\":\"y\"}"), &err), &err);
    expect_metadata(s, "{\"team\":\"blue\",\"project\":\"y\"}");
    session_closed(s);
}

/* ------------------------------------------------------------------ opened again */

static void facts_come_back_by_the_index(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "index");
    sessile_id one = say(s, "user", "one");
    sessile_error err;

    must(sessile_label(s, one, TEXT("first"), &err), &err);
    must(sessile_label(s, one, TEXT("gone"), &err), &err);
    must(sessile_label(s, one, TEXT("pinned"), &err), &err);
    must(sessile_unlabel(s, one, TEXT("gone"), &err), &err);
    must(sessile_set_settings(s, TEXT("{\"model\":\"a\",\"off\":1}"), &err), &err);
    must(sessile_set_settings(s, TEXT("{\"off\":null}"), &err), &err);
    must(sessile_suspend(s, TEXT("an approval"), TEXT("{\"step\":3}"), NULL, &err), &err);
    must(sessile_resume_with(s, NULL, 0, NULL, &err), &err);
    for (int i = 0; i < 600; i++)
        must(sessile_append_custom(s, TEXT("{}"), NULL, NULL, &err), &err);
    must(sessile_suspend(s, TEXT("a tool"), TEXT("[1]"), NULL, &err), &err);
    for (int i = 0; i < 600; i++)
        must(sessile_append_custom(s, TEXT("{}"), NULL, NULL, &err), &err);
    session_closed(s);

    s = session_resumed(p->store, "index");
    assert_int_equal(s->core->index.restored, 1);
    expect_labels(s, "1=first 1=pinned");
    expect_settings(s, "{\"model\":\"a\"}");
    assert_int_equal(pinned(s, one), 1);
    sessile_suspension *suspension;
    must(sessile_suspended(s, &suspension, &err), &err);
    assert_non_null(suspension);
    assert_string_equal(suspension->reason.data, "a tool");
    assert_string_equal(suspension->state.data, "[1]");
    sessile_free(suspension);
    must(sessile_cancel(s, TEXT(""), &err), &err);
    session_closed(s);
}

/* A write that is taken back takes its facts along, whatever lies between them. */
static void what_is_cut_off_is_not_found(void **state)
{
    facts f;
    (void)state;

    facts_init(&f, &allocator_default);
    assert_null(facts_find(&f, FACT_SUSPEND, 0, "", 0));
    assert_int_equal(facts_add(&f, FACT_SUSPEND, 1, 0, "", 0, 0), 0);
    assert_int_equal(facts_add(&f, FACT_LABEL, 2, 1, "a", 1, 0), 0);
    size_t count = f.count, names = f.names.size;
    assert_int_equal(facts_add(&f, FACT_LABEL, 3, 1, "a", 1, 1), 0);
    assert_int_equal(facts_add(&f, FACT_SUSPEND, 4, 0, "", 0, 1), 0);
    assert_int_equal(facts_add(&f, FACT_PENDING_RUN, 5, 5, "", 0, 0), 0);
    assert_null(facts_find(&f, FACT_SUSPEND, 0, "", 0));
    assert_null(facts_find(&f, FACT_LABEL, 1, "a", 1));
    assert_non_null(facts_find(&f, FACT_PENDING_RUN, 5, "", 0));
    facts_cut(&f, count, names);
    assert_int_equal(facts_find(&f, FACT_SUSPEND, 0, "", 0)->entry, 1);
    assert_int_equal(facts_find(&f, FACT_LABEL, 1, "a", 1)->entry, 2);
    assert_null(facts_find(&f, FACT_PENDING_RUN, 5, "", 0));
    facts_clear(&f);
    assert_null(facts_find(&f, FACT_SUSPEND, 0, "", 0));
    assert_null(facts_find(&f, FACT_LABEL, 1, "a", 1));
    facts_deinit(&f);
}

/* ------------------------------------------------------------------ suspensions */

static void a_suspension_stops_what_adds_to_the_conversation(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "suspended");
    sessile_session *other = session_resumed(p->store, "suspended");
    sessile_slice message = TEXT("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_suspension *suspension;
    sessile_error err;
    sessile_run *run;
    sessile_id id;

    sessile_id one = say(s, "user", "one");
    assert_int_equal(sessile_resume_with(s, &message, 1, &id, &err), SESSILE_NOTFOUND);
    assert_int_equal(sessile_cancel(s, TEXT("no"), &err), SESSILE_NOTFOUND);
    must(sessile_suspend(s, TEXT("an approval"), TEXT(" { \"n\" : 1.0 } "), &id, &err),
         &err);
    assert_int_equal(id, 2);
    uint64_t entries = s->core->tree.node_count;

    assert_int_equal(sessile_append(other, message, NULL, &err), SESSILE_SUSPENDED);
    assert_non_null(strstr(err.message, "an approval"));
    assert_int_equal(sessile_turn_begin(&run, other, &message, 1, NULL, &err),
                     SESSILE_SUSPENDED);
    assert_null(run);
    assert_int_equal(sessile_clear(s, &err), SESSILE_SUSPENDED);
    assert_int_equal(sessile_suspend(s, TEXT("again"), TEXT(""), NULL, &err),
                     SESSILE_SUSPENDED);
    assert_int_equal(s->core->tree.node_count, entries);
    must(sessile_label(s, one, TEXT("seen"), &err), &err);

    must(sessile_suspended(other, &suspension, &err), &err);
    assert_int_equal(suspension->entry, 2);
    assert_string_equal(suspension->state.data, "{\"n\":1.0}");
    sessile_free(suspension);

    must(sessile_resume_with(other, &message, 1, &id, &err), &err);
    must(sessile_suspended(s, &suspension, &err), &err);
    assert_null(suspension);
    char *keys = context_keys(s, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000005");
    assert_int_equal(id, 5);
    free(keys);
    session_closed(other);
    session_closed(s);
}

static void a_bad_answer_leaves_it_suspended(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "bad");
    sessile_slice messages[2] = {TEXT("{\"role\":\"user\",\"content\":\"fine\"}"),
                                 TEXT("{\"role\":\"nobody\"}")};
    sessile_suspension *suspension;
    sessile_error err;

    must(sessile_suspend(s, TEXT(""), TEXT(""), NULL, &err), &err);
    assert_int_equal(sessile_resume_with(s, messages, 2, NULL, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "message 2"));
    assert_int_equal(sessile_suspend(s, TEXT("\xff"), TEXT(""), NULL, &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_suspend(s, TEXT("x"), TEXT("{"), NULL, &err),
                     SESSILE_INVALID);
    must(sessile_suspended(s, &suspension, &err), &err);
    assert_non_null(suspension);
    sessile_free(suspension);
    must(sessile_cancel(s, TEXT("not needed"), &err), &err);
    say(s, "user", "on we go");
    session_closed(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(labels_are_put_and_taken_away, place_set_up_ram,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(labels_are_of_the_whole_session,
                                        place_set_up_sealed, place_tear_down),
        cmocka_unit_test_setup_teardown(a_pin_marks_its_message_in_the_context,
                                        place_set_up_ram, place_tear_down),
        cmocka_unit_test_setup_teardown(a_pin_does_not_spread, place_set_up_ram,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(members_are_kept_one_by_one, place_set_up_plain,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(metadata_of_the_header_is_stated_first,
                                        place_set_up_ram, place_tear_down),
        cmocka_unit_test_setup_teardown(facts_come_back_by_the_index, place_set_up_sealed,
                                        place_tear_down),
        cmocka_unit_test(what_is_cut_off_is_not_found),
        cmocka_unit_test_setup_teardown(a_suspension_stops_what_adds_to_the_conversation,
                                        place_set_up_sealed, place_tear_down),
        cmocka_unit_test_setup_teardown(a_bad_answer_leaves_it_suspended,
                                        place_set_up_ram, place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
