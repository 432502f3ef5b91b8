/*
 * test_state.c: a proposal in the making: what a hook sees, its edits, and what a later
 * hook makes of them. Lists built by hand are in test_state_lists.c.
 *
 * Lists are written as in support/lists.h; what a hook made of them as keys, inserted
 * messages with a plus.
 */
#include "support/lists.h"
#include "support/rations.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokens/tokens.h"
#include "support/hooks.h"

/* ------------------------------------------------------------------ what a hook sees */

static void a_hook_sees_columns(void **unused)
{
    sessile_column c;
    hook h;

    (void)unused;
    hook_begin_with(&h, "s u a:q a* u a:x r:x a:y", 2, 9000);
    assert_int_equal(sessile_state_count(h.s), 8);
    assert_int_equal(sessile_state_window(h.s), 9000);
    assert_int_equal(sessile_state_reserve(h.s), 0);
    assert_int_equal(sessile_state_keep_min(h.s), 2);
    assert_int_equal(sessile_state_keep_min(NULL), 0);
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(&h.l.c));
    assert_int_equal(sessile_state_previous(h.s), 8);
    OK(sessile_state_get(h.s, 0, &c, &hook_err));
    assert_int_equal(c.key.entry, 1);
    assert_int_equal(c.role, SESSILE_SYSTEM);
    assert_int_equal(c.turn, 0);
    assert_true(c.pinned && !c.starts_turn && !c.written && !c.edited);
    OK(sessile_state_get(h.s, 1, &c, &hook_err));
    assert_true(c.starts_turn && !c.pinned);
    assert_int_equal(c.turn, 1);
    assert_int_equal(c.tokens, h.l.c.items[1].tokens);
    OK(sessile_state_get(h.s, 2, &c, &hook_err));
    assert_true(c.dead && !c.open);
    OK(sessile_state_get(h.s, 3, &c, &hook_err));
    assert_true(c.pinned && !c.dead);
    OK(sessile_state_get(h.s, 5, &c, &hook_err));
    assert_true(!c.dead && !c.open);
    OK(sessile_state_get(h.s, 7, &c, &hook_err));
    assert_true(c.open && !c.dead);
    INVALID(sessile_state_get(h.s, 8, &c, &hook_err));
    hook_end(&h);
}

static void texts_are_read_once_and_on_demand(void **unused)
{
    sessile_slice text, again;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u");
    assert_int_equal(h.l.reads, 0);
    OK(sessile_state_json(h.s, 2, &text, &hook_err));
    assert_string_equal(text.data, h.l.texts[2]);
    assert_int_equal(text.size, strlen(h.l.texts[2]));
    OK(sessile_state_json(h.s, 2, &again, &hook_err));
    assert_ptr_equal(text.data, again.data);
    assert_int_equal(h.l.reads, 1);
    OK(hook_drop(&h, 1, 1));
    (void)hook_finish(&h);
    next_hook(&h);
    OK(sessile_state_json(h.s, 1, &again,
                          &hook_err)); /* the same message under another index */
    assert_ptr_equal(text.data, again.data);
    INVALID(sessile_state_json(h.s, 3, &again, &hook_err));
    assert_null(again.data);
    hook_end(&h);
}

static void a_text_that_cannot_be_read_is_an_error(void **unused)
{
    sessile_slice text;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u");
    h.l.fail_at = 2;
    assert_int_equal(sessile_state_json(h.s, 1, &text, &hook_err), SESSILE_IO);
    assert_int_equal(hook_replace(&h, 1, "{\"content\":\"\"}"), SESSILE_IO);
    expect_list(&h, "1 2 3 4");
    hook_end(&h);
}

static void texts_are_found_by_key(void **unused)
{
    sessile_key key = {3, 0};
    sessile_slice text;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_insert(&h, 2, SUMMARY));
    (void)hook_finish(&h);
    OK(state_text(h.s, key, &text, &hook_err));
    assert_string_equal(text.data, h.l.texts[2]);
    key.entry = SESSILE_NO_ID;
    key.n = 1;
    OK(state_text(h.s, key, &text, &hook_err));
    assert_non_null(strstr(text.data, "in short"));
    key.n = 2;
    assert_int_equal(state_text(h.s, key, &text, &hook_err), SESSILE_NOTFOUND);
    hook_end(&h);
}

/* ------------------------------------------------------------------ drop */

static void nothing_edited_changes_nothing(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    assert_int_equal(hook_finish(&h), 0);
    assert_ptr_equal(state_after(h.s), state_before(h.s));
    hook_end(&h);
}

static void drop_moves_no_index(void **unused)
{
    sessile_column c;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_drop(&h, 1, 1));
    OK(sessile_state_get(h.s, 2, &c, &hook_err));
    assert_int_equal(c.key.entry, 3);
    assert_int_equal(sessile_state_count(h.s), 5);
    OK(sessile_state_get(h.s, 1, &c, &hook_err));
    assert_true(c.edited);
    OK(hook_drop(&h, 2, 2));
    expect_list(&h, "1 4 5");
    assert_string_equal(list_keys(state_before(h.s)), "1 2 3 4 5");
    hook_end(&h);
}

static void tokens_follow_edits_at_once(void **unused)
{
    int64_t all;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u a");
    all = sessile_state_tokens(h.s);
    OK(hook_drop(&h, 1, 2));
    all -= h.l.c.items[1].tokens + h.l.c.items[2].tokens;
    assert_int_equal(sessile_state_tokens(h.s), all);
    OK(hook_drop(&h, 1, 1)); /* again: nothing */
    assert_int_equal(sessile_state_tokens(h.s), all);
    expect_list(&h, "1 4 5");
    hook_end(&h);
}

static void ranges_must_be_in_the_list(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    INVALID(hook_drop(&h, 5, 5));
    INVALID(hook_drop(&h, 1, 5));
    INVALID(hook_drop(&h, 2, 1));
    assert_non_null(strstr(hook_err.message, "backwards"));
    INVALID(hook_replace(&h, 5, "{}"));
    INVALID(hook_insert(&h, 6, SUMMARY));
    INVALID(hook_cover(&h, 0, SUMMARY, 1, 5));
    assert_int_equal(hook_finish(&h), 0);
    hook_end(&h);
}

static void dropped_edits_leave_no_trace(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_drop(&h, 1, 1));
    OK(hook_insert(&h, 2, SUMMARY));
    OK(sessile_state_set_vars(h.s, sessile_text("{\"a\":1}"), &hook_err));
    state_hook_drop(h.s);
    assert_string_equal(sessile_state_vars(h.s).data, "{}");
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(&h.l.c));
    assert_int_equal(hook_finish(&h), 0);
    assert_string_equal(list_keys(state_after(h.s)), "1 2 3 4 5");
    hook_end(&h);
}

/* ------------------------------------------------------------------ replace */

static void replace_changes_only_what_it_is_told(void **unused)
{
    sessile_slice text;
    hook h;

    (void)unused;
    hook_begin(&h, "s u r:x u a");
    free(h.l.texts[2]);
    h.l.texts[2] = strdup("{\"extra\":1.50,\"role\":\"tool\",\"content\":\"\\u0041\","
                          "\"tool_call_id\":\"x\",\"z\":[1e2]}");
    OK(hook_replace(&h, 2, "{ \"content\" : \"less\", \"note\": true }"));
    expect_list(&h, "1 2 +1 4 5");
    expect_put(&h, 1,
               "{\"extra\":1.50,\"role\":\"tool\",\"content\":\"less\","
               "\"tool_call_id\":\"x\",\"z\":[1e2],\"note\":true}");
    expect_stands(&h, 1, "/3");
    next_hook(&h);
    OK(sessile_state_json(h.s, 2, &text, &hook_err));
    assert_non_null(strstr(text.data, "less"));
    hook_end(&h);
}

static void a_replaced_message_shows_its_old_text_until_the_hook_ends(void **unused)
{
    sessile_slice text;
    sessile_column c;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_replace(&h, 2, "{\"content\":\"other\"}"));
    OK(sessile_state_json(h.s, 2, &text, &hook_err));
    assert_string_equal(text.data, h.l.texts[2]);
    OK(sessile_state_get(h.s, 2, &c, &hook_err));
    assert_true(c.edited && !c.written);
    (void)hook_finish(&h);
    next_hook(&h);
    OK(sessile_state_get(h.s, 2, &c, &hook_err));
    assert_true(!c.edited && c.written);
    assert_int_equal(c.turn, 1);
    assert_int_equal(c.role, SESSILE_ASSISTANT);
    hook_end(&h);
}

static void replacing_again_goes_on_from_the_new_text(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_replace(&h, 2,
                    "{\"content\":\"one, which is rather long for what it says\"}"));
    OK(hook_replace(&h, 2, "{\"content\":\"two\"}"));
    OK(hook_replace(&h, 2, "{\"metadata\":{\"k\":1}}"));
    expect_list(&h, "1 2 +1 4 5");
    expect_put(&h, 1,
               "{\"role\":\"assistant\",\"content\":\"two\",\"metadata\":{\"k\":1}}");
    expect_stands(&h, 1, "/3");
    hook_end(&h);
}

static void what_was_dropped_cannot_be_replaced(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_drop(&h, 2, 2));
    INVALID(hook_replace(&h, 2, "{\"content\":\"\"}"));
    assert_non_null(strstr(hook_err.message, "dropped"));
    OK(hook_replace(&h, 1, "{\"content\":\"\"}"));
    OK(hook_drop(&h, 1, 1)); /* the other way round it can */
    expect_list(&h, "1 4 5");
    hook_end(&h);
}

static void replace_keeps_role_and_pairing(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a:x r:x u a");
    INVALID(hook_replace(&h, 2, "{\"role\":\"user\"}"));
    INVALID(hook_replace(&h, 2, "{\"tool_calls\":[]}"));
    INVALID(hook_replace(&h, 3, "{\"tool_call_id\":\"y\"}"));
    assert_non_null(strstr(hook_err.message, "tool_call_id"));
    INVALID(hook_replace(&h, 1, "{\"tool_call_id\":\"y\"}"));
    OK(hook_replace(&h, 3,
                    "{\"tool_call_id\":\"x\",\"role\":\"tool\",\"content\":\"\"}"));
    expect_list(&h, "1 2 3 +1 5 6");
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void replace_refuses_what_is_no_field(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    INVALID(hook_replace(&h, 2, "{\"id\":\"00000003\"}"));
    assert_string_equal(hook_err.message,
                        "a message a policy writes has no id: leave \"id\" out");
    INVALID(hook_replace(&h, 2, "{\"key\":\"00000003\"}"));
    INVALID(hook_replace(&h, 2, "{\"content\":\"a\",\"\\u0063ontent\":\"b\"}"));
    assert_non_null(strstr(hook_err.message, "twice"));
    INVALID(hook_replace(&h, 2, "[]"));
    INVALID(hook_replace(&h, 2, "{\"content\":3}"));
    INVALID(hook_replace(&h, 2, "{"));
    assert_int_equal(hook_finish(&h), 0);
    hook_end(&h);
}

static void a_name_that_the_message_has_twice_is_replaced_once(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    free(h.l.texts[2]);
    h.l.texts[2] = strdup("{\"role\":\"assistant\",\"k\":1,\"content\":\"\",\"k\":2}");
    OK(hook_replace(&h, 2, "{\"k\":3}"));
    (void)hook_finish(&h);
    expect_put(&h, 1, "{\"role\":\"assistant\",\"k\":3,\"content\":\"\"}");
    hook_end(&h);
}

static void replacing_again_and_again_takes_no_room(void **unused)
{
    char text[100000];
    hook h;
    int i;
    (void)unused;
    hook_begin(&h, "s u a u a");
    memset(text, 'x', sizeof text);
    memcpy(text, "{\"content\":\"", 12);
    memcpy(text + sizeof text - 3, "\"}", 3);
    for (i = 0; i < 100; i++)
        OK(hook_replace(&h, 2, text));
    (void)hook_finish(&h);
    for (i = 0; i < 100; i++) {
        next_hook(&h);
        OK(hook_insert(&h, 1, text));
        state_hook_drop(h.s);
    }
    (void)hook_finish(&h);
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void escaped_names_are_the_same_names(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_replace(&h, 2, "{\"\\u0063ontent\":\"less\"}"));
    expect_list(&h, "1 2 +1 4 5");
    expect_put(&h, 1, "{\"role\":\"assistant\",\"content\":\"less\"}");
    hook_end(&h);
}

static void text_over_result_blocks_goes_into_each(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u b:x,y t:y,x u a");
    OK(hook_replace(&h, 3, "{\"content\":\"gone\"}"));
    expect_list(&h, "1 2 3 +1 5 6");
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
               "\"tool_use_id\":\"y\",\"content\":\"gone\"},"
               "{\"type\":\"tool_result\",\"tool_use_id\":\"x\","
               "\"content\":\"gone\"}]}");
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void a_result_block_without_content_gets_some(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u b:x m:x u a");
    free(h.l.texts[3]);
    h.l.texts[3] = strdup("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                          "\"tool_use_id\":\"x\"}]}");
    OK(hook_replace(&h, 3, "{\"content\":\"gone\"}"));
    (void)hook_finish(&h);
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
               "\"tool_use_id\":\"x\",\"content\":\"gone\"}]}");
    hook_end(&h);
}

static void text_over_call_blocks_stands_before_them(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u b:x m:x u a");
    OK(hook_replace(&h, 2, "{\"content\":\"less\"}"));
    (void)hook_finish(&h);
    expect_put(&h, 1,
               "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
               "\"less\"},{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"f\","
               "\"input\":{}}]}");
    next_hook(&h);
    OK(hook_replace(&h, 2, "{\"content\":\"\"}"));
    (void)hook_finish(&h);
    expect_put(&h, 2,
               "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\","
               "\"id\":\"x\",\"name\":\"f\",\"input\":{}}]}");
    expect_stands(&h, 2, "/3");
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void blocks_over_blocks_must_keep_the_pairs(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u b:x m:x u a");
    INVALID(hook_replace(&h, 3, "{\"content\":[]}"));
    INVALID(hook_replace(&h, 3,
                         "{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                         "\"y\",\"content\":\"\"}]}"));
    assert_non_null(strstr(hook_err.message, "calls and results"));
    OK(hook_replace(&h, 3,
                    "{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"x\","
                    "\"content\":\"\"}]}"));
    expect_list(&h, "1 2 3 +1 5 6");
    hook_end(&h);
}

/* ------------------------------------------------------------------ insert */

static void an_insert_stands_where_it_is_told(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_insert(&h, 5, SUMMARY));
    OK(hook_insert(&h, 1, SUMMARY));
    OK(hook_insert(&h, 1, SUMMARY));
    OK(hook_insert(&h, 0, SUMMARY));
    OK(hook_drop(&h, 1, 1));
    expect_list(&h, "+4 1 +2 +3 3 4 5 +1");
    hook_end(&h);
}

static void a_note_is_completed(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    OK(hook_insert(&h, 1, "{\"content\":\"x\"}"));
    OK(hook_insert(&h, 1,
                   "{\"role\":\"assistant\",\"metadata\":{\"b\":2},\"content\":\"x\"}"));
    OK(hook_insert(
        &h, 1, "{\"content\":\"x\",\"metadata\":{\"kind\":\"k\"},\"role\":\"user\"}"));
    OK(hook_insert(&h, 1, "{\"content\":\"x\",\"metadata\":null}"));
    OK(hook_insert(&h, 1, "{\"metadata\":{}}"));
    (void)hook_finish(&h);
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":\"x\","
               "\"metadata\":{\"kind\":\"note\"}}");
    expect_put(&h, 2,
               "{\"role\":\"assistant\",\"metadata\":{\"kind\":\"note\",\"b\":2},"
               "\"content\":\"x\"}");
    expect_put(&h, 3,
               "{\"content\":\"x\",\"metadata\":{\"kind\":\"k\"},\"role\":\"user\"}");
    expect_put(&h, 4,
               "{\"role\":\"user\",\"content\":\"x\","
               "\"metadata\":{\"kind\":\"note\"}}");
    expect_put(&h, 5, "{\"role\":\"user\",\"metadata\":{\"kind\":\"note\"}}");
    hook_end(&h);
}

static void what_covers_is_a_summary(void **unused)
{
    const item *it;
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a u a");
    OK(hook_cover(&h, 1, SUMMARY, 1, 4));
    expect_list(&h, "1 +1 6 7");
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":\"in short\","
               "\"metadata\":{\"kind\":\"summary\"}}");
    expect_stands(&h, 1, "2 3 4 5/");
    it = &state_after(h.s)->items[1];
    assert_int_equal(it->turn, 2);
    assert_true(it->flags & ITEM_SUMMARY);
    assert_false(it->flags & ITEM_STARTS_TURN);
    hook_end(&h);
}

static void new_messages_have_no_id(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a");
    INVALID(hook_insert(&h, 1, "{\"id\":\"00000002\",\"content\":\"x\"}"));
    assert_string_equal(hook_err.message,
                        "a message a policy writes has no id: leave \"id\" out");
    INVALID(hook_insert(&h, 1, "{\"key\":\"00000002\",\"content\":\"x\"}"));
    INVALID(hook_insert(&h, 1, "{\"role\":\"nobody\",\"content\":\"x\"}"));
    INVALID(hook_insert(&h, 1, "{\"metadata\":3}"));
    INVALID(hook_insert(&h, 1, "\"x\""));
    INVALID(hook_insert(&h, 1, ""));
    assert_int_equal(hook_finish(&h), 0);
    hook_end(&h);
}

static void nothing_is_covered_twice(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a u a");
    OK(hook_cover(&h, 1, SUMMARY, 1, 2));
    INVALID(hook_cover(&h, 1, SUMMARY, 2, 3));
    assert_non_null(strstr(hook_err.message, "covered"));
    OK(hook_drop(&h, 1, 4)); /* what is covered stays covered */
    expect_list(&h, "1 +1 6 7");
    expect_stands(&h, 1, "2 3/");
    hook_end(&h);
}

static void what_was_dropped_or_replaced_may_be_covered(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a u a");
    OK(hook_drop(&h, 1, 1));
    OK(hook_replace(&h, 2, "{\"content\":\"other\"}"));
    OK(hook_cover(&h, 1, SUMMARY, 1, 3));
    expect_list(&h, "1 +2 5 6 7");
    expect_stands(&h, 2, "2 3 4/");
    hook_end(&h);
}

static void a_system_message_may_replace_only_one_of_its_role(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "u s a u a");
    OK(hook_insert(&h, 1, "{\"role\":\"system\",\"content\":\"obey\"}"));
    (void)hook_finish(&h);
    assert_int_equal(hook_judge(&h), LAW_TRUTH);
    hook_end(&h);

    hook_begin(&h, "u s a u a");
    OK(hook_replace(&h, 1, "{\"content\":\"less\"}"));
    (void)hook_finish(&h);
    assert_int_equal(hook_judge(&h), LAW_NONE);
    next_hook(&h);
    OK(hook_replace(&h, 1, "{\"content\":\"even less\"}"));
    expect_list(&h, "1 +2 3 4 5");
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void far_too_much_is_refused_at_once(void **unused)
{
    char *text = malloc(3 << 20);
    sessile_status status = SESSILE_OK;
    int i;
    hook h;

    (void)unused;
    assert_non_null(text);
    memset(text, 'x', 3 << 20);
    memcpy(text, "{\"content\":\"", 12);
    memcpy(text + (3 << 20) - 3, "\"}", 3);
    hook_begin(&h, "s u a u a");
    OK(hook_insert(&h, 1, text));
    for (i = 0; i < 3 && !status; i++)
        status = hook_insert(&h, 1, text);
    assert_int_equal(status, SESSILE_LIMIT);
    assert_non_null(strstr(hook_err.message, "[policy_result]"));
    (void)hook_finish(&h);
    assert_int_equal(hook_judge(&h), LAW_BOUNDS);
    hook_end(&h);
    free(text);
}

/* ------------------------------------------------------------------ across hooks */

static void a_later_hook_inherits_what_it_replaces(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a u a u a");
    OK(hook_cover(&h, 1, SUMMARY, 1, 2));
    expect_list(&h, "1 +1 4 5 6 7 8 9");
    next_hook(&h);
    OK(hook_replace(&h, 1, "{\"content\":\"shorter\"}"));
    expect_list(&h, "1 +2 4 5 6 7 8 9");
    expect_stands(&h, 2, "2 3/");
    next_hook(&h);
    OK(hook_cover(&h, 1, SUMMARY, 1, 3));
    expect_list(&h, "1 +3 6 7 8 9");
    expect_stands(&h, 3, "2 3 4 5/");
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void what_is_inherited_keeps_the_order_of_the_list(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a u a u a");
    OK(hook_cover(&h, 3, SUMMARY, 1, 1)); /* the summary of 2 stands behind 3 */
    OK(hook_replace(&h, 4, "{\"content\":\"x\"}"));
    expect_list(&h, "1 3 +1 4 +2 6 7 8 9");
    next_hook(&h);
    OK(hook_cover(&h, 1, SUMMARY, 1, 4));
    expect_list(&h, "1 +3 6 7 8 9");
    expect_stands(&h, 3, "2 3 4 5/");
    hook_end(&h);
}

static void what_a_later_hook_drops_is_lost(void **unused)
{
    sessile_removal *left = NULL;
    size_t count = 0, capacity = 0, i;
    laws_input in;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u a u a");
    OK(hook_cover(&h, 1, SUMMARY, 1, 2));
    (void)hook_finish(&h);
    next_hook(&h);
    OK(hook_drop(&h, 1, 1));
    expect_list(&h, "1 4 5 6 7");
    OK(state_laws(h.s, &in, &hook_err));
    assert_int_equal(laws_account(&in, &left, &count, &capacity, &allocator_default), 0);
    assert_int_equal(count, 2);
    for (i = 0; i < count; i++)
        assert_int_equal(left[i].disposition, SESSILE_LOST);
    mem_free(&allocator_default, left, capacity * sizeof *left);
    hook_end(&h);
}

static void a_mark_can_be_gone_back_to(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a u a u a");
    OK(hook_drop(&h, 1, 1));
    OK(hook_insert(&h, 1, SUMMARY));
    (void)hook_finish(&h);
    OK(state_mark(h.s, &hook_err));
    next_hook(&h);
    OK(hook_drop(&h, 2, 2));
    (void)hook_finish(&h);
    next_hook(&h);
    OK(hook_insert(&h, 1, SUMMARY));
    (void)hook_finish(&h);
    next_hook(&h);
    OK(hook_drop(&h, 1, 1));
    (void)hook_finish(&h);
    OK(state_rewind(h.s, &hook_err));
    assert_string_equal(list_keys(state_after(h.s)), "1 +1 3 4 5 6 7");
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(state_after(h.s)));
    INVALID(state_rewind(h.s, &hook_err));
    next_hook(&h);
    OK(hook_drop(&h, 2, 2));
    OK(hook_insert(&h, 7, SUMMARY));
    expect_list(&h, "1 +1 4 5 6 7 +2"); /* numbers go on from the mark, too */
    assert_string_equal(list_keys(state_before(h.s)), "1 2 3 4 5 6 7");
    hook_end(&h);
}

static void previous_follows_the_edits(void **unused)
{
    state_setup setup;
    hook h;

    (void)unused;
    memset(&setup, 0, sizeof setup);
    list_make(&h.l, "s u a u a u a");
    setup.context = &h.l.c;
    setup.previous = 5;
    setup.result_limit = setup.vars_limit = 10000;
    setup.depth = 10;
    setup.alloc = &allocator_default;
    OK(state_new(&h.s, &setup, &hook_err));
    next_hook(&h);
    assert_int_equal(sessile_state_previous(h.s), 5);
    OK(hook_drop(&h, 1, 2));
    OK(hook_insert(&h, 5, SUMMARY));
    expect_list(&h, "1 4 5 +1 6 7");
    assert_int_equal(sessile_state_previous(h.s), 3);
    hook_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_sees_columns),
        cmocka_unit_test(texts_are_read_once_and_on_demand),
        cmocka_unit_test(a_text_that_cannot_be_read_is_an_error),
        cmocka_unit_test(texts_are_found_by_key),
        cmocka_unit_test(nothing_edited_changes_nothing),
        cmocka_unit_test(drop_moves_no_index),
        cmocka_unit_test(tokens_follow_edits_at_once),
        cmocka_unit_test(ranges_must_be_in_the_list),
        cmocka_unit_test(dropped_edits_leave_no_trace),
        cmocka_unit_test(replace_changes_only_what_it_is_told),
        cmocka_unit_test(a_replaced_message_shows_its_old_text_until_the_hook_ends),
        cmocka_unit_test(replacing_again_goes_on_from_the_new_text),
        cmocka_unit_test(what_was_dropped_cannot_be_replaced),
        cmocka_unit_test(replace_keeps_role_and_pairing),
        cmocka_unit_test(replace_refuses_what_is_no_field),
        cmocka_unit_test(a_name_that_the_message_has_twice_is_replaced_once),
        cmocka_unit_test(replacing_again_and_again_takes_no_room),
        cmocka_unit_test(escaped_names_are_the_same_names),
        cmocka_unit_test(text_over_result_blocks_goes_into_each),
        cmocka_unit_test(a_result_block_without_content_gets_some),
        cmocka_unit_test(text_over_call_blocks_stands_before_them),
        cmocka_unit_test(blocks_over_blocks_must_keep_the_pairs),
        cmocka_unit_test(an_insert_stands_where_it_is_told),
        cmocka_unit_test(a_note_is_completed),
        cmocka_unit_test(what_covers_is_a_summary),
        cmocka_unit_test(new_messages_have_no_id),
        cmocka_unit_test(nothing_is_covered_twice),
        cmocka_unit_test(what_was_dropped_or_replaced_may_be_covered),
        cmocka_unit_test(a_system_message_may_replace_only_one_of_its_role),
        cmocka_unit_test(far_too_much_is_refused_at_once),
        cmocka_unit_test(a_later_hook_inherits_what_it_replaces),
        cmocka_unit_test(what_is_inherited_keeps_the_order_of_the_list),
        cmocka_unit_test(what_a_later_hook_drops_is_lost),
        cmocka_unit_test(a_mark_can_be_gone_back_to),
        cmocka_unit_test(previous_follows_the_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
