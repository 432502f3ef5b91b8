/*
 * test_context_damaged.c: compaction entries that make no sense are damage; written
 * messages, tombstones and ranges are read as they should be.
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "base/text.h"
#include "session/fold.h"
#include "session/compaction.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 400, HANDLES = 3 };

/* ------------------------------------------------------------------ lists by hand */

/* What a list that cannot be right is called when its context is wanted. */
static void refused(const char *data, const char *names)
{
    sessile_session *s;
    sessile_error err;
    context c;
    place p;

    place_open(&p, STORE_RAM);
    s = session_made(p.store, "malformed");
    say(s, "user", "1");
    say(s, "user", "2");
    move_head(s, 1);                                 /* 3 */
    say(s, "user", "4");                             /* 2 and 4 are siblings */
    put_entry(s, "compaction", SESSILE_NO_ID, data); /* 5 */
    put_entry(s, "compaction", 4,
              "{\"context\":[],\"upto\":\"00000004\",\"inserted\":[{\"n\":1,"
              "\"message\":{\"role\":\"user\"}}]}"); /* 6, beside it */
    put_entry(s, "message", 4, "{\"role\":\"user\",\"content\":\"7\"}");
    context_init(&c, &allocator_default);
    assert_int_equal(session_context_at_locked(s->core, 5, &c, &err), SESSILE_DAMAGED);
    assert_int_equal(c.count, 0);
    if (!strstr(err.message, names) || !strstr(err.message, "malformed"))
        fail_msg("%s", err.message);
    /* the branches that have not heard of it are as they were */
    assert_int_equal(session_context_at_locked(s->core, 4, &c, &err), SESSILE_OK);
    assert_int_equal(c.count, 2);
    context_deinit(&c);
    session_closed(s);
    place_close(&p);
}

static void a_list_that_names_what_is_not_before_it_is_damaged(void **state)
{
    (void)state;
    refused("{\"context\":[\"00000006\"],\"upto\":\"00000004\"}", "00000005");
    refused("{\"context\":[\"00000007\"],\"upto\":\"00000004\"}", "00000007");
    refused("{\"context\":[\"00000001-00000007\"],\"upto\":\"00000004\"}", "00000007");
    refused("{\"context\":[\"00000099\"],\"upto\":\"00000004\"}", "00000099");
    refused("{\"context\":[\"00000003\"],\"upto\":\"00000004\"}", "00000003");
    refused("{\"context\":[\"00000000\"],\"upto\":\"00000004\"}", "00000000");
    refused("{\"context\":[\"00000005.1\"],\"upto\":\"00000004\"}", "00000005.1");
    refused("{\"context\":[\"00000006.1\"],\"upto\":\"00000004\"}", "00000006.1");
    refused("{\"context\":[\"00000001.1\"],\"upto\":\"00000004\"}", "00000001.1");
    refused("{\"context\":[7],\"upto\":\"00000004\"}", "name");
    refused("{\"context\":[\"0000001\"],\"upto\":\"00000004\"}", "name");
    refused("{\"context\":[\"00000001-0000000g\"],\"upto\":\"00000004\"}", "name");
}

static void a_range_whose_ends_are_on_two_branches_is_damaged(void **state)
{
    (void)state;
    refused("{\"context\":[\"00000002-00000004\"],\"upto\":\"00000004\"}", "branches");
    refused("{\"context\":[\"00000004-00000001\"],\"upto\":\"00000004\"}", "range");
    refused("{\"context\":[\"00000000-00000001\"],\"upto\":\"00000004\"}", "range");
}

static void an_upto_that_is_not_on_the_path_is_damaged(void **state)
{
    (void)state;
    refused("{\"context\":[],\"upto\":\"00000002\"}", "00000002");
    refused("{\"context\":[],\"upto\":\"00000005\"}", "up to");
    refused("{\"context\":[]}", "up to");
}

static void messages_written_are_numbered_or_damaged(void **state)
{
    (void)state;
    refused("{\"context\":[\"00000005.1\"],\"upto\":\"00000004\",\"inserted\":[{\"n\":2,"
            "\"message\":"
            "{\"role\":\"user\"}}]}",
            "numbered");
    refused("{\"context\":[\"00000005.1\"],\"upto\":\"00000004\",\"inserted\":[{\"n\":1,"
            "\"message\":"
            "{\"role\":\"nobody\"}}]}",
            "no message");
}

static void what_a_tombstone_stands_for_is_passed_over(void **state)
{
    sessile_session *s;
    char *keys;
    place p;

    (void)state;
    place_open(&p, STORE_RAM);
    s = session_made(p.store, "lost");
    say(s, "user", "1");
    put_entry(s, "tombstone", 1, "{}");                                  /* 2 */
    put_entry(s, "message", 2, "{\"role\":\"user\",\"content\":\"3\"}"); /* after it */
    put_entry(s, "compaction", 3,
              "{\"context\":[\"00000001-00000003\",\"00000002\","
              "\"00000002.1\"],\"upto\":\"00000003\"}"); /* 4 */
    keys = context_keys(s, 4);
    assert_string_equal(keys, "00000001 00000003");
    free(keys);
    session_closed(s);
    place_close(&p);
}

static void a_list_is_written_in_ranges(void **state)
{
    static const sessile_key keys[] = {{1, 0}, {2, 0}, {4, 0}, {SESSILE_NO_ID, 1},
                                       {5, 0}, {8, 0}, {7, 3}};
    static const sessile_key bad[] = {{3, 0}};
    sessile_session *s;
    sessile_error err;
    place p;
    buf out;

    (void)state;
    place_open(&p, STORE_RAM);
    s = session_made(p.store, "ranges");
    say(s, "user", "1");
    say(s, "user", "2");
    put_entry(s, "turn", 2, "{\"first\":\"00000001\",\"count\":2}"); /* 3 */
    say(s, "user", "4");
    say(s, "user", "5");
    say(s, "user", "6");
    put_entry(s, "compaction", SESSILE_NO_ID, "{\"vars\":{}}"); /* 7 */
    say(s, "user", "8");
    buf_init(&out, &allocator_default);
    assert_int_equal(compaction_put_keys(s->core, keys, 7, 9, &out, &err), SESSILE_OK);
    assert_string_equal(out.data, "[\"00000001-00000004\",\"00000009.1\",\"00000005\","
                                  "\"00000008\",\"00000007.3\"]");
    buf_clear(&out);
    assert_int_equal(compaction_put_keys(s->core, NULL, 0, 9, &out, &err), SESSILE_OK);
    assert_string_equal(out.data, "[]");
    assert_int_equal(compaction_put_keys(s->core, bad, 1, 9, &out, &err),
                     SESSILE_INVALID);
    buf_deinit(&out);
    session_closed(s);
    place_close(&p);
}

static void a_written_message_is_read_by_its_name(void **state)
{
    sessile_session *s;
    sessile_error err;
    place p;
    buf out;

    (void)state;
    place_open(&p, STORE_RAM);
    s = session_made(p.store, "text");
    say(s, "user", "1");
    put_entry(
        s, "compaction", SESSILE_NO_ID,
        "{\"context\":[\"00000002.2\"],\"upto\":\"00000001\",\"inserted\":[{\"n\":1,"
        "\"message\":"
        "{\"role\":\"user\",\"content\":\"a\"}},{\"n\":2,\"message\":{\"role\":\"user\","
        "\"content\":\"b\"}}]}");
    buf_init(&out, &allocator_default);
    assert_int_equal(session_message_locked(s->core, (sessile_key){2, 2}, &out, &err), 0);
    assert_string_equal(out.data, "{\"role\":\"user\",\"content\":\"b\"}");
    buf_clear(&out);
    assert_int_equal(session_message_locked(s->core, (sessile_key){1, 0}, &out, &err), 0);
    assert_string_equal(out.data, "{\"role\":\"user\",\"content\":\"1\"}");
    buf_clear(&out);
    assert_int_equal(session_message_locked(s->core, (sessile_key){2, 3}, &out, &err),
                     SESSILE_NOTFOUND);
    assert_int_equal(session_message_locked(s->core, (sessile_key){2, 0}, &out, &err),
                     SESSILE_NOTFOUND);
    assert_int_equal(session_message_locked(s->core, (sessile_key){9, 0}, &out, &err),
                     SESSILE_NOTFOUND);
    assert_int_equal(out.size, 0);
    buf_deinit(&out);
    session_closed(s);
    place_close(&p);
}

/* Messages, compactions and a context in their thousands: what is read from the log to
 * find a context must not grow with what lies before its compaction. */
static void the_cost_of_a_context_is_that_of_the_context(void **state)
{
    const context *c;
    sessile_session *s;
    sessile_error err;
    place p;
    char data[128];
    sessile_id id;

    (void)state;
    place_open(&p, STORE_RAM);
    s = session_made(p.store, "long");
    for (int i = 0; i < 3000; i++)
        say(s, "user", "old");
    snprintf(data, sizeof data,
             "{\"context\":[\"%08" PRIx32 "\"],\"upto\":\"%08" PRIx32 "\"}",
             s->core->tree.head - 1, s->core->tree.head);
    id = put_entry(s, "compaction", SESSILE_NO_ID, data);
    say(s, "user", "new");
    /* parents before the context are never asked for: a walk that went on would fall out
     */
    for (sessile_id i = 1; i + 1 < s->core->tree.head - 3; i++)
        s->core->tree.nodes[i].parent = SESSILE_NO_ID - 1;
    assert_int_equal(session_context_locked(s->core, &c, &err), SESSILE_OK);
    assert_int_equal(c->count, 2);
    assert_int_equal(c->items[0].key.entry, id - 2);
    assert_int_equal(c->items[1].key.entry, id + 1);
    session_closed(s);
    place_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_that_names_what_is_not_before_it_is_damaged),
        cmocka_unit_test(a_range_whose_ends_are_on_two_branches_is_damaged),
        cmocka_unit_test(an_upto_that_is_not_on_the_path_is_damaged),
        cmocka_unit_test(messages_written_are_numbered_or_damaged),
        cmocka_unit_test(what_a_tombstone_stands_for_is_passed_over),
        cmocka_unit_test(a_list_is_written_in_ranges),
        cmocka_unit_test(a_written_message_is_read_by_its_name),
        cmocka_unit_test(the_cost_of_a_context_is_that_of_the_context),
    };

    return cmocka_run_group_tests_name("context model", tests, NULL, NULL);
}
