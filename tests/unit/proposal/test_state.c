/*
 * test_state.c: a proposal in the making: what a hook sees, its edits, and what comes of
 * them.
 *
 * Lists are written as in support/lists.h; what a hook made of them as keys, own puts
 * with a plus. One long file, since every edit is held against the same few lists.
 */
#include "support/lists.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokens/tokens.h"

static sessile_error err;

/* ------------------------------------------------------------------ one hook */

typedef struct hook {
    list l;
    sessile_state *s;
} hook;

static void begin_with(hook *h, const char *line, uint32_t floor, int64_t window)
{
    list_make(&h->l, line);
    h->s = list_state_with(&h->l, floor, window, 0);
}

static void begin(hook *h, const char *line)
{
    begin_with(h, line, 2, 0);
}

static void end(hook *h)
{
    state_free(h->s);
    list_free(&h->l);
}

static int finish(hook *h)
{
    int changed, vars_changed;
    assert_int_equal(state_hook_end(h->s, &changed, &vars_changed, &err), SESSILE_OK);
    assert_int_equal(state_after(h->s)->upto, h->l.c.upto);
    return changed;
}

static void next_hook(hook *h)
{
    assert_int_equal(state_hook_begin(h->s, NULL, 0, &err), SESSILE_OK);
}

/* Ends the hook: its list must be that, with tokens as they were foretold. */
static void expect_list(hook *h, const char *keys)
{
    int64_t foretold = sessile_state_tokens(h->s);
    (void)finish(h);
    assert_string_equal(list_keys(state_after(h->s)), keys);
    assert_int_equal(context_tokens(state_after(h->s)), foretold);
    assert_int_equal(sessile_state_tokens(h->s), foretold);
}

static void expect_put(const hook *h, uint32_t n, const char *text)
{
    laws_input in;
    assert_int_equal(state_laws(h->s, &in, &err), SESSILE_OK);
    assert_in_range(n, 1, in.inserted_count);
    assert_string_equal(in.inserted[n - 1].json, text);
    assert_int_equal(in.inserted[n - 1].size, strlen(text));
}

/* "1 2/3": keys covered, a slash, keys replaced. */
static void expect_stands(const hook *h, uint32_t n, const char *keys)
{
    char out[1024] = "";
    laws_input in;
    const inserted_message *w;
    size_t k;

    assert_int_equal(state_laws(h->s, &in, &err), SESSILE_OK);
    w = &in.inserted[n - 1];
    for (k = 0; k < w->cover_count; k++)
        sprintf(out + strlen(out), "%s%u", k ? " " : "", w->covers[k].entry);
    strcat(out, "/");
    for (k = 0; k < w->replace_count; k++)
        sprintf(out + strlen(out), "%s%u", k ? " " : "", w->replaces[k].entry);
    assert_string_equal(out, keys);
}

static law judge(const hook *h)
{
    judgement j;
    laws_input in;
    assert_int_equal(state_laws(h->s, &in, &err), SESSILE_OK);
    assert_int_equal(laws_check(&in, &j, &allocator_default, &err), SESSILE_OK);
    return j.broken;
}

#define OK(call)      assert_int_equal(call, SESSILE_OK)
#define INVALID(call) assert_int_equal(call, SESSILE_INVALID)

static sessile_status drop(hook *h, size_t first, size_t last)
{
    return sessile_state_drop(h->s, first, last, &err);
}

static sessile_status replace(hook *h, size_t i, const char *fields)
{
    return sessile_state_replace(h->s, i, sessile_text(fields), &err);
}

static sessile_status insert(hook *h, size_t i, const char *text)
{
    return sessile_state_insert(h->s, i, sessile_text(text), 0, 0, 0, &err);
}

static sessile_status cover(hook *h, size_t i, const char *text, size_t first,
                            size_t last)
{
    return sessile_state_insert(h->s, i, sessile_text(text), 1, first, last, &err);
}

#define SUMMARY "{\"content\":\"in short\"}"

/* ------------------------------------------------------------------ what a hook sees */

static void a_hook_sees_columns(void **unused)
{
    sessile_column c;
    hook h;

    (void)unused;
    begin_with(&h, "s u a:q a* u a:x r:x a:y", 2, 9000);
    assert_int_equal(sessile_state_count(h.s), 8);
    assert_int_equal(sessile_state_window(h.s), 9000);
    assert_int_equal(sessile_state_reserve(h.s), 0);
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(&h.l.c));
    assert_int_equal(sessile_state_previous(h.s), 8);
    OK(sessile_state_get(h.s, 0, &c, &err));
    assert_int_equal(c.key.entry, 1);
    assert_int_equal(c.role, SESSILE_SYSTEM);
    assert_int_equal(c.turn, 0);
    assert_true(c.pinned && !c.starts_turn && !c.written && !c.edited);
    OK(sessile_state_get(h.s, 1, &c, &err));
    assert_true(c.starts_turn && !c.pinned);
    assert_int_equal(c.turn, 1);
    assert_int_equal(c.tokens, h.l.c.items[1].tokens);
    OK(sessile_state_get(h.s, 2, &c, &err));
    assert_true(c.dead && !c.open);
    OK(sessile_state_get(h.s, 3, &c, &err));
    assert_true(c.pinned && !c.dead);
    OK(sessile_state_get(h.s, 5, &c, &err));
    assert_true(!c.dead && !c.open);
    OK(sessile_state_get(h.s, 7, &c, &err));
    assert_true(c.open && !c.dead);
    INVALID(sessile_state_get(h.s, 8, &c, &err));
    end(&h);
}

static void texts_are_read_once_and_on_demand(void **unused)
{
    sessile_slice text, again;
    hook h;

    (void)unused;
    begin(&h, "s u a u");
    assert_int_equal(h.l.reads, 0);
    OK(sessile_state_json(h.s, 2, &text, &err));
    assert_string_equal(text.data, h.l.texts[2]);
    assert_int_equal(text.size, strlen(h.l.texts[2]));
    OK(sessile_state_json(h.s, 2, &again, &err));
    assert_ptr_equal(text.data, again.data);
    assert_int_equal(h.l.reads, 1);
    OK(drop(&h, 1, 1));
    (void)finish(&h);
    next_hook(&h);
    OK(sessile_state_json(h.s, 1, &again,
                          &err)); /* the same message under another index */
    assert_ptr_equal(text.data, again.data);
    INVALID(sessile_state_json(h.s, 3, &again, &err));
    assert_null(again.data);
    end(&h);
}

static void a_text_that_cannot_be_read_is_an_error(void **unused)
{
    sessile_slice text;
    hook h;

    (void)unused;
    begin(&h, "s u a u");
    h.l.fail_at = 2;
    assert_int_equal(sessile_state_json(h.s, 1, &text, &err), SESSILE_IO);
    assert_int_equal(replace(&h, 1, "{\"content\":\"\"}"), SESSILE_IO);
    expect_list(&h, "1 2 3 4");
    end(&h);
}

static void texts_are_found_by_key(void **unused)
{
    sessile_key key = {3, 0};
    sessile_slice text;
    hook h;

    (void)unused;
    begin(&h, "s u a u a");
    OK(insert(&h, 2, SUMMARY));
    (void)finish(&h);
    OK(state_text(h.s, key, &text, &err));
    assert_string_equal(text.data, h.l.texts[2]);
    key.entry = SESSILE_NO_ID;
    key.n = 1;
    OK(state_text(h.s, key, &text, &err));
    assert_non_null(strstr(text.data, "in short"));
    key.n = 2;
    assert_int_equal(state_text(h.s, key, &text, &err), SESSILE_NOTFOUND);
    end(&h);
}

/* ------------------------------------------------------------------ drop */

static void nothing_edited_changes_nothing(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    assert_int_equal(finish(&h), 0);
    assert_ptr_equal(state_after(h.s), state_before(h.s));
    end(&h);
}

static void drop_moves_no_index(void **unused)
{
    sessile_column c;
    hook h;

    (void)unused;
    begin(&h, "s u a u a");
    OK(drop(&h, 1, 1));
    OK(sessile_state_get(h.s, 2, &c, &err));
    assert_int_equal(c.key.entry, 3);
    assert_int_equal(sessile_state_count(h.s), 5);
    OK(sessile_state_get(h.s, 1, &c, &err));
    assert_true(c.edited);
    OK(drop(&h, 2, 2));
    expect_list(&h, "1 4 5");
    assert_string_equal(list_keys(state_before(h.s)), "1 2 3 4 5");
    end(&h);
}

static void tokens_follow_edits_at_once(void **unused)
{
    int64_t all;
    hook h;

    (void)unused;
    begin(&h, "s u a u a");
    all = sessile_state_tokens(h.s);
    OK(drop(&h, 1, 2));
    all -= h.l.c.items[1].tokens + h.l.c.items[2].tokens;
    assert_int_equal(sessile_state_tokens(h.s), all);
    OK(drop(&h, 1, 1)); /* again: nothing */
    assert_int_equal(sessile_state_tokens(h.s), all);
    expect_list(&h, "1 4 5");
    end(&h);
}

static void ranges_must_be_in_the_list(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    INVALID(drop(&h, 5, 5));
    INVALID(drop(&h, 1, 5));
    INVALID(drop(&h, 2, 1));
    assert_non_null(strstr(err.message, "backwards"));
    INVALID(replace(&h, 5, "{}"));
    INVALID(insert(&h, 6, SUMMARY));
    INVALID(cover(&h, 0, SUMMARY, 1, 5));
    assert_int_equal(finish(&h), 0);
    end(&h);
}

static void dropped_edits_leave_no_trace(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    OK(drop(&h, 1, 1));
    OK(insert(&h, 2, SUMMARY));
    OK(sessile_state_set_vars(h.s, sessile_text("{\"a\":1}"), &err));
    state_hook_drop(h.s);
    assert_string_equal(sessile_state_vars(h.s).data, "{}");
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(&h.l.c));
    assert_int_equal(finish(&h), 0);
    assert_string_equal(list_keys(state_after(h.s)), "1 2 3 4 5");
    end(&h);
}

/* ------------------------------------------------------------------ replace */

static void replace_changes_only_what_it_is_told(void **unused)
{
    sessile_slice text;
    hook h;

    (void)unused;
    begin(&h, "s u r:x u a");
    free(h.l.texts[2]);
    h.l.texts[2] = strdup("{\"extra\":1.50,\"role\":\"tool\",\"content\":\"\\u0041\","
                          "\"tool_call_id\":\"x\",\"z\":[1e2]}");
    OK(replace(&h, 2, "{ \"content\" : \"less\", \"note\": true }"));
    expect_list(&h, "1 2 +1 4 5");
    expect_put(&h, 1,
               "{\"extra\":1.50,\"role\":\"tool\",\"content\":\"less\","
               "\"tool_call_id\":\"x\",\"z\":[1e2],\"note\":true}");
    expect_stands(&h, 1, "/3");
    next_hook(&h);
    OK(sessile_state_json(h.s, 2, &text, &err));
    assert_non_null(strstr(text.data, "less"));
    end(&h);
}

static void a_replaced_message_shows_its_old_text_until_the_hook_ends(void **unused)
{
    sessile_slice text;
    sessile_column c;
    hook h;

    (void)unused;
    begin(&h, "s u a u a");
    OK(replace(&h, 2, "{\"content\":\"other\"}"));
    OK(sessile_state_json(h.s, 2, &text, &err));
    assert_string_equal(text.data, h.l.texts[2]);
    OK(sessile_state_get(h.s, 2, &c, &err));
    assert_true(c.edited && !c.written);
    (void)finish(&h);
    next_hook(&h);
    OK(sessile_state_get(h.s, 2, &c, &err));
    assert_true(!c.edited && c.written);
    assert_int_equal(c.turn, 1);
    assert_int_equal(c.role, SESSILE_ASSISTANT);
    end(&h);
}

static void replacing_again_goes_on_from_the_new_text(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    OK(replace(&h, 2, "{\"content\":\"one, which is rather long for what it says\"}"));
    OK(replace(&h, 2, "{\"content\":\"two\"}"));
    OK(replace(&h, 2, "{\"metadata\":{\"k\":1}}"));
    expect_list(&h, "1 2 +1 4 5");
    expect_put(&h, 1,
               "{\"role\":\"assistant\",\"content\":\"two\",\"metadata\":{\"k\":1}}");
    expect_stands(&h, 1, "/3");
    end(&h);
}

static void what_was_dropped_cannot_be_replaced(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    OK(drop(&h, 2, 2));
    INVALID(replace(&h, 2, "{\"content\":\"\"}"));
    assert_non_null(strstr(err.message, "dropped"));
    OK(replace(&h, 1, "{\"content\":\"\"}"));
    OK(drop(&h, 1, 1)); /* the other way round it can */
    expect_list(&h, "1 4 5");
    end(&h);
}

static void replace_keeps_role_and_pairing(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a:x r:x u a");
    INVALID(replace(&h, 2, "{\"role\":\"user\"}"));
    INVALID(replace(&h, 2, "{\"tool_calls\":[]}"));
    INVALID(replace(&h, 3, "{\"tool_call_id\":\"y\"}"));
    assert_non_null(strstr(err.message, "tool_call_id"));
    INVALID(replace(&h, 1, "{\"tool_call_id\":\"y\"}"));
    OK(replace(&h, 3, "{\"tool_call_id\":\"x\",\"role\":\"tool\",\"content\":\"\"}"));
    expect_list(&h, "1 2 3 +1 5 6");
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void replace_refuses_what_is_no_field(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    INVALID(replace(&h, 2, "{\"id\":\"00000003\"}"));
    assert_string_equal(err.message,
                        "a message a policy writes has no id: leave \"id\" out");
    INVALID(replace(&h, 2, "{\"key\":\"00000003\"}"));
    INVALID(replace(&h, 2, "{\"content\":\"a\",\"\\u0063ontent\":\"b\"}"));
    assert_non_null(strstr(err.message, "twice"));
    INVALID(replace(&h, 2, "[]"));
    INVALID(replace(&h, 2, "{\"content\":3}"));
    INVALID(replace(&h, 2, "{"));
    assert_int_equal(finish(&h), 0);
    end(&h);
}

static void a_name_that_the_message_has_twice_is_replaced_once(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    free(h.l.texts[2]);
    h.l.texts[2] = strdup("{\"role\":\"assistant\",\"k\":1,\"content\":\"\",\"k\":2}");
    OK(replace(&h, 2, "{\"k\":3}"));
    (void)finish(&h);
    expect_put(&h, 1, "{\"role\":\"assistant\",\"k\":3,\"content\":\"\"}");
    end(&h);
}

static void replacing_again_and_again_takes_no_room(void **unused)
{
    char text[100000];
    hook h;
    int i;
    (void)unused;
    begin(&h, "s u a u a");
    memset(text, 'x', sizeof text);
    memcpy(text, "{\"content\":\"", 12);
    memcpy(text + sizeof text - 3, "\"}", 3);
    for (i = 0; i < 100; i++)
        OK(replace(&h, 2, text));
    (void)finish(&h);
    for (i = 0; i < 100; i++) {
        next_hook(&h);
        OK(insert(&h, 1, text));
        state_hook_drop(h.s);
    }
    (void)finish(&h);
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void escaped_names_are_the_same_names(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    OK(replace(&h, 2, "{\"\\u0063ontent\":\"less\"}"));
    expect_list(&h, "1 2 +1 4 5");
    expect_put(&h, 1, "{\"role\":\"assistant\",\"content\":\"less\"}");
    end(&h);
}

static void text_over_result_blocks_goes_into_each(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u b:x,y t:y,x u a");
    OK(replace(&h, 3, "{\"content\":\"gone\"}"));
    expect_list(&h, "1 2 3 +1 5 6");
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
               "\"tool_use_id\":\"y\",\"content\":\"gone\"},"
               "{\"type\":\"tool_result\",\"tool_use_id\":\"x\","
               "\"content\":\"gone\"}]}");
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void a_result_block_without_content_gets_some(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u b:x m:x u a");
    free(h.l.texts[3]);
    h.l.texts[3] = strdup("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                          "\"tool_use_id\":\"x\"}]}");
    OK(replace(&h, 3, "{\"content\":\"gone\"}"));
    (void)finish(&h);
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
               "\"tool_use_id\":\"x\",\"content\":\"gone\"}]}");
    end(&h);
}

static void text_over_call_blocks_stands_before_them(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u b:x m:x u a");
    OK(replace(&h, 2, "{\"content\":\"less\"}"));
    (void)finish(&h);
    expect_put(&h, 1,
               "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
               "\"less\"},{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"f\","
               "\"input\":{}}]}");
    next_hook(&h);
    OK(replace(&h, 2, "{\"content\":\"\"}"));
    (void)finish(&h);
    expect_put(&h, 2,
               "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\","
               "\"id\":\"x\",\"name\":\"f\",\"input\":{}}]}");
    expect_stands(&h, 2, "/3");
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void blocks_over_blocks_must_keep_the_pairs(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u b:x m:x u a");
    INVALID(replace(&h, 3, "{\"content\":[]}"));
    INVALID(replace(&h, 3,
                    "{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                    "\"y\",\"content\":\"\"}]}"));
    assert_non_null(strstr(err.message, "calls and results"));
    OK(replace(&h, 3,
               "{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"x\","
               "\"content\":\"\"}]}"));
    expect_list(&h, "1 2 3 +1 5 6");
    end(&h);
}

/* ------------------------------------------------------------------ insert */

static void an_insert_stands_where_it_is_told(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    OK(insert(&h, 5, SUMMARY));
    OK(insert(&h, 1, SUMMARY));
    OK(insert(&h, 1, SUMMARY));
    OK(insert(&h, 0, SUMMARY));
    OK(drop(&h, 1, 1));
    expect_list(&h, "+4 1 +2 +3 3 4 5 +1");
    end(&h);
}

static void a_note_is_completed(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    OK(insert(&h, 1, "{\"content\":\"x\"}"));
    OK(insert(&h, 1,
              "{\"role\":\"assistant\",\"metadata\":{\"b\":2},\"content\":\"x\"}"));
    OK(insert(&h, 1,
              "{\"content\":\"x\",\"metadata\":{\"kind\":\"k\"},\"role\":\"user\"}"));
    OK(insert(&h, 1, "{\"content\":\"x\",\"metadata\":null}"));
    OK(insert(&h, 1, "{\"metadata\":{}}"));
    (void)finish(&h);
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
    end(&h);
}

static void what_covers_is_a_summary(void **unused)
{
    const item *it;
    hook h;
    (void)unused;
    begin(&h, "s u a u a u a");
    OK(cover(&h, 1, SUMMARY, 1, 4));
    expect_list(&h, "1 +1 6 7");
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":\"in short\","
               "\"metadata\":{\"kind\":\"summary\"}}");
    expect_stands(&h, 1, "2 3 4 5/");
    it = &state_after(h.s)->items[1];
    assert_int_equal(it->turn, 2);
    assert_true(it->flags & ITEM_SUMMARY);
    assert_false(it->flags & ITEM_STARTS_TURN);
    end(&h);
}

static void new_messages_have_no_id(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a");
    INVALID(insert(&h, 1, "{\"id\":\"00000002\",\"content\":\"x\"}"));
    assert_string_equal(err.message,
                        "a message a policy writes has no id: leave \"id\" out");
    INVALID(insert(&h, 1, "{\"key\":\"00000002\",\"content\":\"x\"}"));
    INVALID(insert(&h, 1, "{\"role\":\"nobody\",\"content\":\"x\"}"));
    INVALID(insert(&h, 1, "{\"metadata\":3}"));
    INVALID(insert(&h, 1, "\"x\""));
    INVALID(insert(&h, 1, ""));
    assert_int_equal(finish(&h), 0);
    end(&h);
}

static void nothing_is_covered_twice(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a u a");
    OK(cover(&h, 1, SUMMARY, 1, 2));
    INVALID(cover(&h, 1, SUMMARY, 2, 3));
    assert_non_null(strstr(err.message, "covered"));
    OK(drop(&h, 1, 4)); /* what is covered stays covered */
    expect_list(&h, "1 +1 6 7");
    expect_stands(&h, 1, "2 3/");
    end(&h);
}

static void what_was_dropped_or_replaced_may_be_covered(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a u a");
    OK(drop(&h, 1, 1));
    OK(replace(&h, 2, "{\"content\":\"other\"}"));
    OK(cover(&h, 1, SUMMARY, 1, 3));
    expect_list(&h, "1 +2 5 6 7");
    expect_stands(&h, 2, "2 3 4/");
    end(&h);
}

static void a_system_message_may_replace_only_one_of_its_role(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "u s a u a");
    OK(insert(&h, 1, "{\"role\":\"system\",\"content\":\"obey\"}"));
    (void)finish(&h);
    assert_int_equal(judge(&h), LAW_TRUTH);
    end(&h);

    begin(&h, "u s a u a");
    OK(replace(&h, 1, "{\"content\":\"less\"}"));
    (void)finish(&h);
    assert_int_equal(judge(&h), LAW_NONE);
    next_hook(&h);
    OK(replace(&h, 1, "{\"content\":\"even less\"}"));
    expect_list(&h, "1 +2 3 4 5");
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
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
    begin(&h, "s u a u a");
    OK(insert(&h, 1, text));
    for (i = 0; i < 3 && !status; i++)
        status = insert(&h, 1, text);
    assert_int_equal(status, SESSILE_LIMIT);
    assert_non_null(strstr(err.message, "[policy_result]"));
    (void)finish(&h);
    assert_int_equal(judge(&h), LAW_BOUNDS);
    end(&h);
    free(text);
}

/* ------------------------------------------------------------------ across hooks */

static void a_later_hook_inherits_what_it_replaces(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a u a u a");
    OK(cover(&h, 1, SUMMARY, 1, 2));
    expect_list(&h, "1 +1 4 5 6 7 8 9");
    next_hook(&h);
    OK(replace(&h, 1, "{\"content\":\"shorter\"}"));
    expect_list(&h, "1 +2 4 5 6 7 8 9");
    expect_stands(&h, 2, "2 3/");
    next_hook(&h);
    OK(cover(&h, 1, SUMMARY, 1, 3));
    expect_list(&h, "1 +3 6 7 8 9");
    expect_stands(&h, 3, "2 3 4 5/");
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void what_is_inherited_keeps_the_order_of_the_list(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a u a u a");
    OK(cover(&h, 3, SUMMARY, 1, 1)); /* the summary of 2 stands behind 3 */
    OK(replace(&h, 4, "{\"content\":\"x\"}"));
    expect_list(&h, "1 3 +1 4 +2 6 7 8 9");
    next_hook(&h);
    OK(cover(&h, 1, SUMMARY, 1, 4));
    expect_list(&h, "1 +3 6 7 8 9");
    expect_stands(&h, 3, "2 3 4 5/");
    end(&h);
}

static void what_a_later_hook_drops_is_lost(void **unused)
{
    sessile_removal *left = NULL;
    size_t count = 0, capacity = 0, i;
    laws_input in;
    hook h;

    (void)unused;
    begin(&h, "s u a u a u a");
    OK(cover(&h, 1, SUMMARY, 1, 2));
    (void)finish(&h);
    next_hook(&h);
    OK(drop(&h, 1, 1));
    expect_list(&h, "1 4 5 6 7");
    OK(state_laws(h.s, &in, &err));
    assert_int_equal(laws_account(&in, &left, &count, &capacity, &allocator_default), 0);
    assert_int_equal(count, 2);
    for (i = 0; i < count; i++)
        assert_int_equal(left[i].disposition, SESSILE_LOST);
    mem_free(&allocator_default, left, capacity * sizeof *left);
    end(&h);
}

static void a_mark_can_be_gone_back_to(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a u a u a");
    OK(drop(&h, 1, 1));
    OK(insert(&h, 1, SUMMARY));
    (void)finish(&h);
    OK(state_mark(h.s, &err));
    next_hook(&h);
    OK(drop(&h, 2, 2));
    (void)finish(&h);
    next_hook(&h);
    OK(insert(&h, 1, SUMMARY));
    (void)finish(&h);
    next_hook(&h);
    OK(drop(&h, 1, 1));
    (void)finish(&h);
    OK(state_rewind(h.s, &err));
    assert_string_equal(list_keys(state_after(h.s)), "1 +1 3 4 5 6 7");
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(state_after(h.s)));
    INVALID(state_rewind(h.s, &err));
    next_hook(&h);
    OK(drop(&h, 2, 2));
    OK(insert(&h, 7, SUMMARY));
    expect_list(&h, "1 +1 4 5 6 7 +2"); /* numbers go on from the mark, too */
    assert_string_equal(list_keys(state_before(h.s)), "1 2 3 4 5 6 7");
    end(&h);
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
    OK(state_new(&h.s, &setup, &err));
    next_hook(&h);
    assert_int_equal(sessile_state_previous(h.s), 5);
    OK(drop(&h, 1, 2));
    OK(insert(&h, 5, SUMMARY));
    expect_list(&h, "1 4 5 +1 6 7");
    assert_int_equal(sessile_state_previous(h.s), 3);
    end(&h);
}

/* ------------------------------------------------------------------ rebuild */

static sessile_state_item kept(size_t index)
{
    sessile_state_item out;
    memset(&out, 0, sizeof out);
    out.index = index;
    return out;
}

static sessile_state_item made(const char *text)
{
    sessile_state_item out = kept(SIZE_MAX);
    out.json = sessile_text(text);
    return out;
}

static void a_list_can_be_built_by_hand(void **unused)
{
    const sessile_key covers[] = {{2, 0}, {3, 0}}, replaces[] = {{5, 0}};
    sessile_state_item items[5] = {kept(0), made(SUMMARY), kept(3), made(SUMMARY),
                                   kept(5)};
    hook h;

    (void)unused;
    begin(&h, "s u a u a u");
    items[1].covers = covers;
    items[1].cover_count = 2;
    items[3].replaces = replaces;
    items[3].replace_count = 1;
    OK(sessile_state_rebuild(h.s, items, 5, &err));
    expect_list(&h, "1 +1 4 +2 6");
    expect_stands(&h, 1, "2 3/");
    expect_stands(&h, 2, "/5");
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":\"in short\","
               "\"metadata\":{\"kind\":\"summary\"}}");
    /* what replaces one is that one in other words */
    expect_put(&h, 2, "{\"role\":\"assistant\",\"content\":\"in short\"}");
    assert_int_equal(state_after(h.s)->items[1].turn, 1);
    assert_int_equal(state_after(h.s)->items[3].turn, 2);
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void a_hand_built_list_wins_over_edits(void **unused)
{
    sessile_state_item items[4] = {kept(0), kept(1), made(SUMMARY), kept(3)};
    sessile_column c;
    hook h;

    (void)unused;
    begin(&h, "s u a u");
    OK(drop(&h, 1, 1));
    OK(insert(&h, 1, SUMMARY));
    OK(insert(&h, 1, SUMMARY));
    OK(sessile_state_rebuild(h.s, items, 4, &err));
    OK(sessile_state_get(h.s, 1, &c, &err));
    assert_false(c.edited);
    OK(sessile_state_get(h.s, 2, &c, &err));
    assert_true(c.edited);
    OK(sessile_state_rebuild(h.s, items, 4, &err)); /* and the last one over others */
    INVALID(drop(&h, 0, 0));
    INVALID(insert(&h, 0, SUMMARY));
    INVALID(replace(&h, 0, "{}"));
    INVALID(sessile_state_keep_last(h.s, 1, SESSILE_MESSAGES, &err));
    expect_list(&h, "1 2 +1 4");
    end(&h);
}

static void the_same_list_built_by_hand_is_no_change(void **unused)
{
    sessile_state_item items[3] = {kept(0), kept(1), kept(2)};
    hook h;
    (void)unused;
    begin(&h, "s u a");
    OK(drop(&h, 1, 1));
    OK(sessile_state_rebuild(h.s, items, 3, &err));
    assert_int_equal(finish(&h), 0);
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(&h.l.c));
    assert_string_equal(list_keys(state_after(h.s)), "1 2 3");
    end(&h);
}

static void an_id_in_a_hand_built_message_is_left_to_law_3(void **unused)
{
    static const char *const texts[3] = {"{\"id\":\"00000002\",\"content\":\"x\"}",
                                         "{\"key\":3,\"content\":\"x\"}",
                                         "{\"content\":\"x\"}"};
    size_t i;
    (void)unused;
    for (i = 0; i < 3; i++) {
        sessile_state_item items[3] = {kept(0), made(texts[i]), kept(2)};
        laws_input in;
        hook h;
        begin(&h, "s u a");
        OK(sessile_state_rebuild(h.s, items, 3, &err));
        assert_int_equal(finish(&h), 1);
        OK(state_laws(h.s, &in, &err));
        assert_int_equal(in.inserted[0].has_name, i < 2);
        assert_int_equal(in.inserted[0].name.entry, i == 0 ? 2 : SESSILE_NO_ID);
        end(&h);
    }
}

static void a_hand_built_list_is_checked(void **unused)
{
    sessile_state_item twice[2] = {kept(1), kept(1)}, far[1] = {kept(3)};
    sessile_state_item edited[1] = {kept(1)};
    hook h;

    (void)unused;
    begin(&h, "s u a");
    INVALID(sessile_state_rebuild(h.s, twice, 2, &err));
    assert_string_equal(err.message,
                        "item 1 of the list: message 1 is in the list twice");
    INVALID(sessile_state_rebuild(h.s, far, 1, &err));
    edited[0].json = sessile_text("{}");
    INVALID(sessile_state_rebuild(h.s, edited, 1, &err));
    OK(drop(&h, 1, 1)); /* nothing was changed by all that */
    expect_list(&h, "1 3");
    end(&h);
}

static void order_is_judged_later(void **unused)
{
    sessile_state_item items[4] = {kept(1), kept(0), kept(2), kept(3)};
    hook h;
    (void)unused;
    begin(&h, "a u a u");
    OK(sessile_state_rebuild(h.s, items, 4, &err));
    expect_list(&h, "2 1 3 4");
    assert_int_equal(judge(&h), LAW_ORDER);
    end(&h);
}

static void strange_keys_are_judged_later(void **unused)
{
    const sessile_key covers[] = {{77, 0}};
    sessile_state_item items[4] = {kept(0), kept(1), kept(2), made(SUMMARY)};
    hook h;
    (void)unused;
    begin(&h, "u a u");
    items[3].covers = covers;
    items[3].cover_count = 1;
    OK(sessile_state_rebuild(h.s, items, 4, &err));
    (void)finish(&h);
    assert_int_equal(judge(&h), LAW_TRUTH);
    end(&h);
}

static void hand_built_messages_may_stand_for_new_ones(void **unused)
{
    const sessile_key own = {SESSILE_NO_ID, 1};
    sessile_state_item items[3] = {kept(0), made(SUMMARY), kept(2)};
    hook h;

    (void)unused;
    begin(&h, "s u a u");
    OK(cover(&h, 1, SUMMARY, 1, 2));
    expect_list(&h, "1 +1 4");
    next_hook(&h);
    items[1].covers = &own;
    items[1].cover_count = 1;
    OK(sessile_state_rebuild(h.s, items, 3, &err));
    expect_list(&h, "1 +2 4");
    expect_stands(&h, 2, "2 3/");
    end(&h);
}

/* ------------------------------------------------------------------ vars */

static void vars_are_kept_and_compared(void **unused)
{
    int changed, vars_changed;
    hook h;

    (void)unused;
    begin(&h, "s u a");
    assert_string_equal(sessile_state_vars(h.s).data, "{}");
    OK(sessile_state_set_vars(h.s, sessile_text("{ \"n\": 1 }"), &err));
    assert_string_equal(sessile_state_vars(h.s).data, "{\"n\":1}");
    OK(state_hook_end(h.s, &changed, &vars_changed, &err));
    assert_true(vars_changed && !changed);
    assert_string_equal(sessile_state_vars(h.s).data, "{\"n\":1}");
    OK(state_hook_begin(h.s, "{\"n\":1}", 7, &err));
    OK(sessile_state_set_vars(h.s, sessile_text("{\"n\":1}"), &err));
    OK(state_hook_end(h.s, &changed, &vars_changed, &err));
    assert_false(vars_changed);
    OK(state_hook_begin(h.s, "{\"other\":2}", 11, &err));
    assert_string_equal(sessile_state_vars(h.s).data, "{\"other\":2}");
    end(&h);
}

static void vars_are_bounded_objects(void **unused)
{
    char text[20000];
    hook h;

    (void)unused;
    begin(&h, "s u a");
    OK(sessile_state_set_vars(h.s, sessile_text("{\"n\":1}"), &err));
    INVALID(sessile_state_set_vars(h.s, sessile_text("[1]"), &err));
    INVALID(sessile_state_set_vars(h.s, sessile_text("{"), &err));
    memset(text, ' ', sizeof text);
    memcpy(text, "{\"a\":\"", 6);
    memset(text + 6, 'x', 16384 - 8);
    memcpy(text + 6 + 16384 - 8, "\"}", 3);
    OK(sessile_state_set_vars(h.s, sessile_text(text), &err));
    memcpy(text + 6 + 16384 - 8, "y\"}", 4);
    assert_int_equal(sessile_state_set_vars(h.s, sessile_text(text), &err),
                     SESSILE_LIMIT);
    assert_int_equal(sessile_state_vars(h.s).size, 16384);
    end(&h);
}

/* ------------------------------------------------------------------ keep_last */

static void keeps(const char *line, int64_t n, sessile_unit unit, const char *left)
{
    hook h;
    begin(&h, line);
    OK(sessile_state_keep_last(h.s, n, unit, &err));
    expect_list(&h, left);
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void keep_last_counts_messages(void **unused)
{
    (void)unused;
    keeps("u a u a u a", 4, SESSILE_MESSAGES, "3 4 5 6");
    keeps("u a u a u a", 9, SESSILE_MESSAGES, "1 2 3 4 5 6");
    keeps("s u a u a u a", 4, SESSILE_MESSAGES, "1 5 6 7");
}

static void keep_last_counts_turns(void **unused)
{
    (void)unused;
    keeps("u a u a a u a", 2, SESSILE_TURNS, "3 4 5 6 7");
    keeps("s a u a u a u a", 1, SESSILE_TURNS, "1 7 8");
    keeps("s a u a", 1, SESSILE_TURNS, "1 2 3 4");
}

static void keep_last_counts_tokens(void **unused)
{
    hook h;
    int64_t last_four;
    (void)unused;
    begin(&h, "u a u a u a");
    last_four = sessile_state_tokens(h.s) - h.l.c.items[0].tokens - h.l.c.items[1].tokens;
    OK(sessile_state_keep_last(h.s, last_four, SESSILE_TOKENS, &err));
    expect_list(&h, "3 4 5 6");
    next_hook(&h);
    OK(sessile_state_keep_last(h.s, last_four - 1, SESSILE_TOKENS, &err));
    expect_list(&h, "4 5 6");
    end(&h);
}

static void keep_last_never_splits_pairs(void **unused)
{
    (void)unused;
    keeps("u a:x,y r:x r:y u a", 4, SESSILE_MESSAGES, "5 6");
    keeps("u b:x m:x a u r:x u a", 5, SESSILE_MESSAGES, "4 5 6 7 8");
    keeps("u a:x a u r:x u a", 5, SESSILE_MESSAGES, "3 4 6 7");
}

static void keep_last_leaves_pinned_messages(void **unused)
{
    (void)unused;
    keeps("s u* a u a u a", 0, SESSILE_MESSAGES, "1 2 6 7");
    keeps("u a:x* r:x u a u a", 0, SESSILE_MESSAGES, "2 3 6 7");
}

static void pinned_messages_are_no_turns(void **unused)
{
    (void)unused;
    keeps("u* a u* a u a u a", 2, SESSILE_TURNS, "1 3 5 6 7 8");
}

static void keep_last_leaves_open_work(void **unused)
{
    (void)unused;
    keeps("u a u a:x,y r:x", 0, SESSILE_MESSAGES, "3 4 5");
}

static void keep_last_leaves_the_last_user_message(void **unused)
{
    (void)unused;
    keeps("u a u a a a a", 0, SESSILE_MESSAGES, "3 6 7");
}

static void keep_last_leaves_a_replaced_floor(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "u a u a a a a");
    OK(replace(&h, 5, "{\"content\":\"\"}"));
    (void)finish(&h);
    next_hook(&h);
    OK(sessile_state_keep_last(h.s, 0, SESSILE_MESSAGES, &err));
    expect_list(&h, "3 +1 7");
    assert_int_equal(judge(&h), LAW_NONE);
    end(&h);
}

static void keep_last_goes_on_from_edits(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "u a u a u a u a");
    OK(drop(&h, 0, 1));
    OK(insert(&h, 0, SUMMARY));
    OK(sessile_state_keep_last(h.s, 5, SESSILE_MESSAGES, &err));
    expect_list(&h, "+1 5 6 7 8");
    end(&h);
}

static void keep_last_twice_is_keep_last_once(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "s u a:x r:x u a u a u a");
    OK(sessile_state_keep_last(h.s, 6, SESSILE_MESSAGES, &err));
    assert_int_equal(finish(&h), 1);
    next_hook(&h);
    OK(sessile_state_keep_last(h.s, 6, SESSILE_MESSAGES, &err));
    assert_int_equal(finish(&h), 0);
    INVALID(sessile_state_keep_last(h.s, -1, SESSILE_MESSAGES, &err));
    INVALID(sessile_state_keep_last(h.s, 1, (sessile_unit)3, &err));
    end(&h);
}

/* ------------------------------------------------------------------ cut and pairs */

static void find_cut_leaves_at_most_that_many_tokens(void **unused)
{
    int64_t t;
    hook h;
    (void)unused;
    begin(&h, "u a u a u a");
    t = h.l.c.items[4].tokens + h.l.c.items[5].tokens + h.l.c.items[3].tokens;
    assert_int_equal(sessile_state_find_cut(h.s, t), 3);
    assert_int_equal(sessile_state_find_cut(h.s, t - 1), 4);
    assert_int_equal(sessile_state_find_cut(h.s, 1 << 20), 0);
    assert_int_equal(sessile_state_find_cut(h.s, 0), 4); /* the floor */
    OK(drop(&h, 3, 3)); /* what was dropped holds nothing */
    assert_int_equal(sessile_state_find_cut(h.s, t - h.l.c.items[3].tokens), 3);
    end(&h);
}

static void find_cut_splits_no_call_from_its_results(void **unused)
{
    int64_t t;
    hook h;
    (void)unused;
    begin(&h, "u a:x,y r:x r:y u a");
    t = h.l.c.items[3].tokens + h.l.c.items[4].tokens + h.l.c.items[5].tokens;
    assert_int_equal(sessile_state_find_cut(h.s, t), 4);
    end(&h);
    begin(&h, "u a:x u r:x u a u a");
    assert_int_equal(sessile_state_find_cut(h.s, 0), 6);
    t = context_tokens(&h.l.c) - h.l.c.items[0].tokens;
    assert_int_equal(sessile_state_find_cut(h.s, t), 1);
    assert_int_equal(sessile_state_find_cut(h.s, t - 1), 4);
    end(&h);
}

static void find_cut_stops_before_open_work(void **unused)
{
    hook h;
    (void)unused;
    begin(&h, "u a a:x,y,z r:x r:y");
    assert_int_equal(sessile_state_find_cut(h.s, 0), 2);
    end(&h);
}

static void pairs_of_an_item_are_its_group(void **unused)
{
    size_t out[8] = {99, 99, 99, 99};
    hook h;
    (void)unused;
    begin(&h, "u a:x,y r:x u r:y");
    assert_int_equal(sessile_state_pairs(h.s, 4, out, 8), 3);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
    assert_int_equal(out[2], 4);
    out[1] = 99;
    assert_int_equal(sessile_state_pairs(h.s, 1, out, 1), 3);
    assert_int_equal(out[1], 99);
    assert_int_equal(sessile_state_pairs(h.s, 0, out, 8), 1);
    assert_int_equal(out[0], 0);
    assert_int_equal(sessile_state_pairs(h.s, 5, NULL, 0), 0);
    end(&h);
}

/* ------------------------------------------------------------------ any list */

/* Whatever was edited in earlier hooks of a pipeline that broke no law. */
static void random_lawful_hook(hook *h)
{
    size_t n = sessile_state_count(h->s), i = random_below((uint32_t)n), out[64], k,
           count;

    switch (random_below(3)) {
    case 0:
        (void)replace(h, i, "{\"content\":\"less\"}");
        break;
    case 1:
        count = sessile_state_pairs(h->s, i, out, 64);
        for (k = 0; k < count; k++)
            OK(drop(h, out[k], out[k]));
        break;
    default:
        (void)insert(h, random_below(2) ? 0 : i, SUMMARY);
        break;
    }
    (void)finish(h);
    next_hook(h);
}

static void say(const char *what, const hook *h, int round, const judgement *j)
{
    fail_msg("SEED=%llu, round %d: %s leaves \"%s\": %s",
             (unsigned long long)random_seed(), round, what, list_keys(state_after(h->s)),
             j->message);
}

static void keep_last_and_find_cut_break_no_law(void **unused)
{
    int round, cuts = 0, hooks = 0;

    (void)unused;
    random_start();
    for (round = 0; round < 10000; round++) {
        char line[2048];
        laws_input in;
        judgement j;
        hook h;
        int by_cut = random_below(2) != 0;
        size_t i, at;

        random_line(line, sizeof line, 1 + random_below(12));
        begin_with(&h, line, random_below(4),
                   random_below(3) ? 0 : random_below(200) + 1);
        if (random_below(2)) {
            random_lawful_hook(&h);
            if (judge(&h) != LAW_NONE) { /* not one to go on from */
                end(&h);
                continue;
            }
            hooks++;
        }
        if (by_cut) {
            at = sessile_state_find_cut(h.s, random_below(200));
            for (i = 0; i < at; i++) {
                size_t out[64], count = sessile_state_pairs(h.s, i, out, 64), k;
                int stays = 0;
                for (k = 0; k < count; k++) {
                    sessile_column c;
                    OK(sessile_state_get(h.s, out[k], &c, &err));
                    assert_true(out[k] < at); /* no pair spans the cut */
                    stays |= c.pinned;
                    stays |=
                        c.key.entry ==
                        h.l.c.items[context_last_user(&h.l.c) % h.l.c.count].key.entry;
                }
                if (!stays)
                    OK(drop(&h, i, i));
            }
        } else {
            OK(sessile_state_keep_last(h.s, random_below(14),
                                       (sessile_unit)random_below(3), &err));
        }
        cuts += finish(&h);
        OK(state_laws(h.s, &in, &err));
        OK(laws_check(&in, &j, &allocator_default, &err));
        if (j.broken)
            say(by_cut ? "find_cut" : "keep_last", &h, round, &j);
        end(&h);
    }
    assert_in_range(cuts, 2000, 10000);
    assert_in_range(hooks, 1000, 10000);
}

/* Edits of every kind, in any order, with the list and tokens kept beside them. */
static void any_edits_come_out_as_told(void **unused)
{
    int round;

    (void)unused;
    random_start();
    for (round = 0; round < 5000; round++) {
        char line[2048];
        int64_t foretold;
        size_t n, k;
        hook h;

        random_line(line, sizeof line, 1 + random_below(10));
        begin(&h, line);
        for (k = random_below(4); k > 0; k--) {
            unsigned edits = random_below(8);
            n = sessile_state_count(h.s);
            while (n && edits-- > 0) {
                size_t i = random_below((uint32_t)n),
                       j = i + random_below((uint32_t)(n - i));
                switch (random_below(4)) {
                case 0:
                    OK(drop(&h, i, j));
                    break;
                case 1:
                    (void)replace(&h, i, "{\"content\":\"other words\"}");
                    break;
                case 2:
                    (void)cover(&h, j, SUMMARY, i, j);
                    break;
                default:
                    OK(insert(&h, i, SUMMARY));
                    break;
                }
            }
            foretold = sessile_state_tokens(h.s);
            (void)finish(&h);
            if (context_tokens(state_after(h.s)) != foretold)
                fail_msg("SEED=%llu, round %d: %lld tokens, not %lld",
                         (unsigned long long)random_seed(), round,
                         (long long)context_tokens(state_after(h.s)),
                         (long long)foretold);
            next_hook(&h);
        }
        assert_true(judge(&h) != LAW_TRUTH || strchr(line, 's'));
        assert_true(judge(&h) != LAW_ORDER);
        end(&h);
    }
}

/* ------------------------------------------------------------------ no memory */

static size_t allocations_left;

static void *failing(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(ptr, nsize) : (allocations_left = 0, NULL);
}

static sessile_status whole_pipeline(list *l, const allocator *a)
{
    const sessile_key own = {SESSILE_NO_ID, 1};
    sessile_state_item items[3] = {kept(0), made(SUMMARY), kept(4)};
    state_setup setup;
    sessile_status status;
    sessile_slice text;
    sessile_state *s;
    int changed, vars_changed;

    memset(&setup, 0, sizeof setup);
    setup.context = &l->c;
    setup.floor = 1;
    setup.result_limit = setup.vars_limit = 10000;
    setup.depth = 10;
    setup.read = list_read;
    setup.read_arg = l;
    setup.alloc = a;
    items[1].covers = &own;
    items[1].cover_count = 1;
    status = state_new(&s, &setup, &err);
    if (!status)
        status = state_hook_begin(s, "{\"a\":1}", 7, &err);
    if (!status)
        status = sessile_state_set_vars(s, sessile_text("{\"a\":2}"), &err);
    if (!status)
        status = sessile_state_keep_last(s, 6, SESSILE_TURNS, &err);
    if (!status)
        status = sessile_state_insert(s, 3, sessile_text(SUMMARY), 1, 1, 1, &err);
    if (!status)
        status = sessile_state_insert(s, 1, sessile_text(SUMMARY), 0, 0, 0, &err);
    if (!status)
        status = sessile_state_replace(s, 3, sessile_text("{\"content\":\"x\"}"), &err);
    if (!status)
        status = sessile_state_replace(s, 3, sessile_text("{\"content\":\"y\"}"), &err);
    if (!status)
        status = state_hook_end(s, &changed, &vars_changed, &err);
    if (!status)
        status = state_hook_begin(s, NULL, 0, &err);
    if (!status)
        status = sessile_state_json(s, 2, &text, &err);
    if (!status)
        status = sessile_state_insert(s, 1, sessile_text(SUMMARY), 1, 1, 3, &err);
    if (!status)
        status = sessile_state_rebuild(s, items, 3, &err);
    if (!status)
        status = state_hook_end(s, &changed, &vars_changed, &err);
    if (!status)
        assert_string_equal(list_keys(state_after(s)), "1 +4 +3");
    state_free(s);
    return status;
}

static void no_memory_is_told_and_nothing_leaks(void **unused)
{
    const allocator a = {failing, NULL};
    sessile_status status = SESSILE_NOMEM;
    size_t n;
    list l;

    (void)unused;
    list_make(&l, "s u a b:x m:x u a");
    for (n = 0; status && n < 500; n++) {
        allocations_left = n;
        status = whole_pipeline(&l, &a);
        assert_true(status == SESSILE_OK || err.code == SESSILE_NOMEM);
    }
    assert_int_equal(status, SESSILE_OK);
    assert_in_range(n, 30, 400);
    list_free(&l);
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
        cmocka_unit_test(a_list_can_be_built_by_hand),
        cmocka_unit_test(a_hand_built_list_wins_over_edits),
        cmocka_unit_test(the_same_list_built_by_hand_is_no_change),
        cmocka_unit_test(an_id_in_a_hand_built_message_is_left_to_law_3),
        cmocka_unit_test(a_hand_built_list_is_checked),
        cmocka_unit_test(order_is_judged_later),
        cmocka_unit_test(strange_keys_are_judged_later),
        cmocka_unit_test(hand_built_messages_may_stand_for_new_ones),
        cmocka_unit_test(vars_are_kept_and_compared),
        cmocka_unit_test(vars_are_bounded_objects),
        cmocka_unit_test(keep_last_counts_messages),
        cmocka_unit_test(keep_last_counts_turns),
        cmocka_unit_test(keep_last_counts_tokens),
        cmocka_unit_test(keep_last_never_splits_pairs),
        cmocka_unit_test(keep_last_leaves_pinned_messages),
        cmocka_unit_test(pinned_messages_are_no_turns),
        cmocka_unit_test(keep_last_leaves_open_work),
        cmocka_unit_test(keep_last_leaves_the_last_user_message),
        cmocka_unit_test(keep_last_leaves_a_replaced_floor),
        cmocka_unit_test(keep_last_goes_on_from_edits),
        cmocka_unit_test(keep_last_twice_is_keep_last_once),
        cmocka_unit_test(find_cut_leaves_at_most_that_many_tokens),
        cmocka_unit_test(find_cut_splits_no_call_from_its_results),
        cmocka_unit_test(find_cut_stops_before_open_work),
        cmocka_unit_test(pairs_of_an_item_are_its_group),
        cmocka_unit_test(keep_last_and_find_cut_break_no_law),
        cmocka_unit_test(any_edits_come_out_as_told),
        cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
