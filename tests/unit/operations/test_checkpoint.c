/*
 * test_checkpoint.c: checkpoints written, listed, thrown out, verified and restored.
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

static sessile_id checkpoint(sessile_session *s, const char *name, const char *state)
{
    sessile_checkpoint_options o;
    sessile_error err;
    sessile_id id;

    memset(&o, 0, sizeof o);
    o.name = sessile_text(name);
    o.state = sessile_text(state);
    must(sessile_checkpoint(s, &o, &id, &err), &err);
    return id;
}

static sessile_id head(sessile_session *s)
{
    sessile_error err;
    sessile_id id;

    must(sessile_head(s, &id, &err), &err);
    return id;
}

static sessile_restored *restored(sessile_session *s, sessile_id id, int force)
{
    sessile_restored *r;
    sessile_error err;

    must(sessile_restore(s, id, force, &r, &err), &err);
    return r;
}

/* As an agent of that version, with those tools. */
static sessile_session *as_agent(sessile_store *store, const char *id,
                                 const char *version, const char *config,
                                 const char *tools)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;

    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    o.agent_info.version = sessile_text(version);
    o.agent_info.config = sessile_text(config);
    o.agent_info.tools = sessile_text(tools);
    must(sessile_session_open(&s, store, &o, &err), &err);
    return s;
}

/* ------------------------------------------------------------------ tests */

static void restoring_moves_the_head_and_gives_the_state(void **state)
{
    sessile_session *s = session_in(state, "restore");
    sessile_id two, id;

    say(s, "user", "one");
    two = say(s, "assistant", "two");
    id = checkpoint(s, "after two", " { \"step\" : 3, \"n\": 9007199254740993 } ");
    assert_int_equal(head(s), two);
    say(s, "user", "three");
    sessile_restored *r = restored(s, id, 0);
    assert_string_equal(r->state.data, "{\"step\":3,\"n\":9007199254740993}");
    assert_int_equal(r->checkpoint, id);
    assert_int_equal(r->head, two);
    assert_int_equal(r->warnings.size, 0);
    sessile_free(r);
    assert_int_equal(head(s), two);
    char *keys = context_keys(s, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000002");
    free(keys);
    /* it is there already: nothing is written */
    size_t entries = s->core->tree.node_count;
    sessile_free(restored(s, id, 0));
    assert_int_equal(s->core->tree.node_count, entries);
    /* and the other branch is still there */
    say(s, "user", "another three");
    move_head(s, two + 2);
    keys = context_keys(s, SESSILE_NO_ID);
    assert_string_equal(keys, "00000001 00000002 00000004");
    free(keys);
    session_closed(s);
}

static void a_large_state_comes_back_whole(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "large");
    size_t size = 3 * 1000 * 1000;
    char *text = malloc(size + 1);
    sessile_checkpoint_row *rows;
    sessile_error err;
    size_t count;

    say(s, "user", "one");
    text[0] = '"';
    for (size_t i = 1; i < size - 1; i++)
        text[i] = "abcdefghij klmnop"[(i * i / 7) % 17];
    text[size - 1] = '"';
    text[size] = 0;
    sessile_id id = checkpoint(s, "", text);
    must(sessile_checkpoints(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].state_bytes, size);
    assert_int_equal(rows[0].sound, 1);
    sessile_free(rows);
    session_closed(s);
    s = session_resumed(p->store, "large");
    sessile_restored *r = restored(s, id, 0);
    assert_int_equal(r->state.size, size);
    assert_memory_equal(r->state.data, text, size);
    sessile_free(r);
    free(text);
    session_closed(s);
}

static char *names(sessile_session *s, const sessile_checkpoint_filter *filter)
{
    static char text[2048];
    sessile_checkpoint_row *rows;
    sessile_error err;
    size_t count;

    must(sessile_checkpoints(s, filter, &rows, &count, &err), &err);
    text[0] = 0;
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 rows[i].name.size ? rows[i].name.data : "-");
    sessile_free(rows);
    return text;
}

static void the_oldest_without_a_name_go_first(void **state)
{
    sessile_session *s = session_in(state, "keep");
    sessile_checkpoint_options o;
    sessile_error err;

    memset(&o, 0, sizeof o);
    o.keep = 3;
    for (int i = 0; i < 5; i++) {
        char name[8];
        say(s, "user", "more");
        snprintf(name, sizeof name, "%c", 'a' + i);
        o.name = i == 1 || i == 3 ? sessile_text(name) : sessile_text("");
        must(sessile_checkpoint(s, &o, NULL, &err), &err);
    }
    assert_string_equal(names(s, NULL), "- d b");
    o.keep = 2;
    o.name = TEXT("last");
    must(sessile_checkpoint(s, &o, NULL, &err), &err);
    assert_string_equal(names(s, NULL), "last d");
    session_closed(s);

    /* fifty when nobody says how many */
    s = session_in(state, "fifty");
    for (int i = 0; i < 60; i++)
        checkpoint(s, "", "{}");
    sessile_checkpoint_row *rows;
    size_t count;
    must(sessile_checkpoints(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 50);
    assert_int_equal(rows[0].entry, s->core->tree.node_count - 1);
    sessile_free(rows);
    session_closed(s);
}

static void a_list_is_filtered(void **state)
{
    static const sessile_checkpoint_reason event = SESSILE_CHECKPOINT_EVENT;
    sessile_session *s = session_in(state, "filter");
    sessile_checkpoint_filter f;
    sessile_checkpoint_options o;
    sessile_checkpoint_row *rows;
    sessile_error err;
    size_t count;

    say(s, "user", "one");
    checkpoint(s, "a", "1");
    checkpoint(s, "", "2");
    memset(&o, 0, sizeof o);
    o.reason = SESSILE_CHECKPOINT_EVENT;
    o.event = TEXT("deploy");
    o.name = TEXT("c");
    o.metadata = TEXT("{\"why\":\"because\"}");
    must(sessile_checkpoint(s, &o, NULL, &err), &err);

    memset(&f, 0, sizeof f);
    f.named = 1;
    assert_string_equal(names(s, &f), "c a");
    f.name = TEXT("a");
    assert_string_equal(names(s, &f), "a");
    memset(&f, 0, sizeof f);
    f.reason = &event;
    must(sessile_checkpoints(s, &f, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].event.data, "deploy");
    assert_string_equal(rows[0].metadata.data, "{\"why\":\"because\"}");
    assert_int_equal(rows[0].messages, 1);
    assert_true(rows[0].tokens > 0);
    assert_int_equal(rows[0].head, 1);
    int64_t time = rows[0].time_ms;
    sessile_free(rows);
    memset(&f, 0, sizeof f);
    f.since_ms = time + 1000;
    assert_string_equal(names(s, &f), "");
    session_closed(s);
}

static void one_is_withdrawn(void **state)
{
    sessile_session *s = session_in(state, "withdrawn");
    sessile_restored *r;
    sessile_error err;
    sessile_id id;

    say(s, "user", "one");
    id = checkpoint(s, "a", "1");
    checkpoint(s, "b", "2");
    must(sessile_checkpoint_delete(s, id, &err), &err);
    assert_string_equal(names(s, NULL), "b");
    assert_int_equal(sessile_checkpoint_delete(s, id, &err), SESSILE_NOTFOUND);
    assert_int_equal(sessile_restore(s, id, 0, &r, &err), SESSILE_NOTFOUND);
    assert_null(r);
    assert_int_equal(sessile_restore(s, 1, 0, &r, &err), SESSILE_NOTFOUND);
    assert_int_equal(sessile_restore(s, 4711, 0, &r, &err), SESSILE_NOTFOUND);
    session_closed(s);
}

/* Each byte of its data is vouched for. */
static void one_that_was_tampered_with_is_refused(void **state)
{
    sessile_session *s = session_in(state, "tampered");
    sessile_checkpoint_row *rows;
    sessile_restored *r;
    sessile_error err;
    size_t count, entries;
    buf text;
    entry e;

    say(s, "user", "one");
    say(s, "user", "two");
    sessile_id good = checkpoint(s, "a", "{\"step\":1}");
    buf_init(&text, &s->core->store->alloc);
    pthread_mutex_lock(&s->core->mutex);
    must(session_text_locked(s->core, good, &text, &err), &err);
    pthread_mutex_unlock(&s->core->mutex);
    must(entry_read(&e, text.data, text.size, &err), &err);
    char *data = strndup(e.data.at, e.data.size);
    /* the same data again is sound; with any character changed it is not */
    sessile_id same = put_entry(s, "checkpoint", SESSILE_NO_ID, data);
    sessile_free(restored(s, same, 0));
    *strstr(data, "\"step\":1") = '"';
    strstr(data, "\"step\":1")[7] = '2';
    sessile_id bad = put_entry(s, "checkpoint", SESSILE_NO_ID, data);
    say(s, "user", "three");
    entries = s->core->tree.node_count;
    assert_int_equal(sessile_restore(s, bad, 1, &r, &err), SESSILE_DAMAGED);
    assert_null(r);
    assert_int_equal(s->core->tree.node_count, entries);
    must(sessile_checkpoints(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].entry, bad);
    assert_int_equal(rows[0].sound, 0);
    assert_int_equal(rows[1].sound, 1);
    sessile_free(rows);
    free(data);
    buf_deinit(&text);
    session_closed(s);
}

static void another_version_of_the_agent_is_told(void **state)
{
    place *p = *state;
    sessile_session *s =
        as_agent(p->store, "versions", "1.0", "abc", "[\"read\",\"write\",\"run\"]");
    sessile_restored *r;
    sessile_error err;
    sessile_id id;

    say(s, "user", "one");
    id = checkpoint(s, "", "1");
    say(s, "user", "two");
    sessile_free(restored(s, id, 0));
    session_closed(s);

    s = as_agent(p->store, "versions", "2.0", "xyz", "[\"read\",\"run\"]");
    say(s, "user", "three");
    sessile_id before = head(s);
    assert_int_equal(sessile_restore(s, id, 0, &r, &err), SESSILE_CONFLICT);
    assert_non_null(strstr(err.message, "1.0"));
    assert_non_null(strstr(err.message, "2.0"));
    assert_int_equal(head(s), before);
    r = restored(s, id, 1);
    assert_non_null(strstr(r->warnings.data, "2.0"));
    assert_non_null(strstr(r->warnings.data, "configuration"));
    assert_non_null(strstr(r->warnings.data, "'write'"));
    assert_null(strstr(r->warnings.data, "'read'"));
    sessile_free(r);
    session_closed(s);

    /* who does not say what it is, is not compared */
    s = session_resumed(p->store, "versions");
    r = restored(s, id, 0);
    assert_int_equal(r->warnings.size, 0);
    sessile_free(r);
    session_closed(s);
}

static void what_is_no_state_is_refused(void **state)
{
    sessile_session *s = session_in(state, "refused");
    sessile_checkpoint_options o;
    sessile_error err;
    sessile_id id;
    char name[201];

    memset(&o, 0, sizeof o);
    o.state = TEXT("{");
    assert_int_equal(sessile_checkpoint(s, &o, &id, &err), SESSILE_INVALID);
    assert_int_equal(id, SESSILE_NO_ID);
    o.state = TEXT("1");
    o.metadata = TEXT("1");
    assert_int_equal(sessile_checkpoint(s, &o, &id, &err), SESSILE_INVALID);
    o.metadata = TEXT("");
    memset(name, 'x', sizeof name);
    o.name = (sessile_slice){name, sizeof name};
    assert_int_equal(sessile_checkpoint(s, &o, &id, &err), SESSILE_LIMIT);
    assert_int_equal(s->core->tree.node_count, 1);
    session_closed(s);
}

/* A pause refuses a restore, and takes a checkpoint. */
static void a_paused_session_stays_where_it_is(void **state)
{
    sessile_session *s = session_in(state, "paused");
    sessile_restored *r;
    sessile_error err;

    say(s, "user", "one");
    sessile_id id = checkpoint(s, "", "1");
    say(s, "user", "two");
    must(sessile_suspend(s, TEXT("an approval"), TEXT(""), NULL, &err), &err);
    checkpoint(s, "while paused", "2");
    assert_int_equal(sessile_restore(s, id, 0, &r, &err), SESSILE_SUSPENDED);
    must(sessile_cancel(s, TEXT(""), &err), &err);
    sessile_free(restored(s, id, 0));
    session_closed(s);
}

static void the_session_says_how_many_are_kept(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s;
    sessile_checkpoint_row *rows;
    sessile_error err;
    size_t count;

    sessile_session_options_init(&o);
    o.id = TEXT("own keep");
    o.config.checkpoint.keep = 52;
    must(sessile_create(&s, p->store, &o, &err), &err);
    say(s, "user", "one");
    for (int i = 0; i < 55; i++)
        checkpoint(s, "", "");
    must(sessile_checkpoints(s, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 52);
    sessile_free(rows);
    session_closed(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(restoring_moves_the_head_and_gives_the_state,
                                        place_set_up_sealed, place_tear_down),
        cmocka_unit_test_setup_teardown(a_large_state_comes_back_whole,
                                        place_set_up_sealed, place_tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_without_a_name_go_first,
                                        place_set_up_ram, place_tear_down),
        cmocka_unit_test_setup_teardown(the_session_says_how_many_are_kept,
                                        place_set_up_ram, place_tear_down),
        cmocka_unit_test_setup_teardown(a_list_is_filtered, place_set_up_ram,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(one_is_withdrawn, place_set_up_plain,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(one_that_was_tampered_with_is_refused,
                                        place_set_up_ram, place_tear_down),
        cmocka_unit_test_setup_teardown(another_version_of_the_agent_is_told,
                                        place_set_up_sealed, place_tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_state_is_refused, place_set_up_ram,
                                        place_tear_down),
        cmocka_unit_test_setup_teardown(a_paused_session_stays_where_it_is,
                                        place_set_up_ram, place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
