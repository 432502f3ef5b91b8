/*
 * test_message.c: roles, calls and results of every form, flags, usage.
 *
 * Owns the promises of codec/message.h. Links are compared by hash64_lasting of the ids'
 * bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/message.h"
#include "support/rations.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

static message_link *links;
static size_t link_count, link_capacity;
static message m;
static sessile_error err;

static sessile_status read_text(const char *text)
{
    link_count = 0;
    return message_read(&m, text, strlen(text), &links, &link_count, &link_capacity,
                        &allocator_default, &err);
}

static int free_links(void **state)
{
    (void)state;
    mem_free(&allocator_default, links, link_capacity * sizeof *links);
    links = NULL;
    link_count = link_capacity = 0;
    return 0;
}

static void assert_link(size_t i, const char *id, int is_result, int in_call)
{
    assert_true(i < link_count);
    assert_true(links[i].id == hash64_lasting(id, strlen(id)));
    assert_int_equal(links[i].is_result, is_result);
    assert_int_equal(links[i].in_call, in_call);
}

static void assert_invalid(const char *text, const char *says)
{
    assert_int_equal(read_text(text), SESSILE_INVALID);
    assert_non_null(strstr(err.message, says));
    assert_int_equal(link_count, 0);
    assert_int_equal(m.role, SESSILE_ROLE_NONE);
}

/* ------------------------------------------------------------------ roles */

static void every_role_has_its_name(void **state)
{
    static const char *const names[] = {"system", "developer", "user",    "assistant",
                                        "model",  "tool",      "function"};
    int i;
    (void)state;
    for (i = 0; i < 7; i++) {
        buf b;
        buf_init(&b, &allocator_default);
        buf_printf(&b, "{\"role\":\"%s\"}", names[i]);
        assert_int_equal(read_text(b.data), SESSILE_OK);
        assert_int_equal(m.role, SESSILE_SYSTEM + i);
        assert_string_equal(sessile_role_name(m.role), names[i]);
        buf_deinit(&b);
    }
    assert_string_equal(sessile_role_name(SESSILE_ROLE_NONE), "none");
    assert_string_equal(sessile_role_name((sessile_role)99), "none");
}

static void role_must_be_known(void **state)
{
    (void)state;
    assert_invalid("{}", "no \"role\"");
    assert_invalid("{\"content\":\"x\"}", "no \"role\"");
    assert_invalid("{\"role\":\"User\"}", "\"role\"");
    assert_invalid("{\"role\":\"users\"}", "\"role\"");
    assert_invalid("{\"role\":3}", "\"role\"");
    assert_invalid("{\"role\":null}", "\"role\"");
    assert_invalid("[\"role\",\"user\"]", "object");
    assert_invalid("\"user\"", "object");
    assert_invalid("", "object");
}

static void names_are_read_through_their_escapes(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"\\u0072ole\":\"us\\u0065r\",\"\\u0063ontent\":\"x\"}"),
                     SESSILE_OK);
    assert_int_equal(m.role, SESSILE_USER);
    assert_true(json_is(m.content, "x"));
}

static void a_field_of_its_own_is_given_once(void **state)
{
    (void)state;
    assert_invalid("{\"role\":\"user\",\"ro\\u006ce\":\"system\"}", "\"role\" twice");
    assert_invalid("{\"role\":\"user\",\"content\":\"a\",\"\\u0063ontent\":\"a\"}",
                   "\"content\" twice");
    assert_invalid("{\"role\":\"user\",\"content\":null,\"content\":\"a\"}",
                   "\"content\" twice");
    assert_invalid("{\"tool_calls\":[],\"role\":\"model\",\"tool_calls\":[]}",
                   "\"tool_calls\" twice");
    assert_invalid(
        "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"tool_call\\u005fid\":\"b\"}",
        "\"tool_call_id\" twice");
    /* Others are the caller's business: the first holds. */
    assert_int_equal(read_text("{\"role\":\"user\",\"x\":1,\"x\":2,\"author\":\"a\","
                               "\"author\":\"b\"}"),
                     SESSILE_OK);
    assert_true(json_is(m.author, "a"));
}

static void fields_of_the_wrong_type_are_refused(void **state)
{
    (void)state;
    assert_invalid("{\"role\":\"user\",\"content\":{}}", "\"content\"");
    assert_invalid("{\"role\":\"user\",\"content\":1}", "\"content\"");
    assert_invalid("{\"role\":\"user\",\"content\":[1]}", "content[0]");
    assert_invalid("{\"role\":\"user\",\"content\":[{},[]]}", "content[1]");
    assert_invalid("{\"role\":\"model\",\"tool_calls\":{}}", "\"tool_calls\"");
    assert_invalid("{\"role\":\"model\",\"tool_calls\":\"x\"}", "\"tool_calls\"");
    assert_invalid("{\"role\":\"model\",\"tool_calls\":[\"x\"]}", "tool_calls[0]");
    assert_invalid("{\"role\":\"tool\",\"tool_call_id\":7}", "\"tool_call_id\"");
    assert_int_equal(read_text("{\"role\":\"model\",\"content\":null,\"tool_calls\":null,"
                               "\"tool_call_id\":null}"),
                     SESSILE_OK);
    assert_int_equal(read_text("{\"role\":\"user\",\"content\":[\"text\",{}]}"),
                     SESSILE_OK);
    assert_int_equal(link_count, 0);
}

static void all_fields_are_found_in_any_order(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"usage\":{\"input\":1},\"timestamp\":5,\"zzz\":[{}],"
                  "\"metadata\":{\"a\":1},\"author\":\"me\",\"tool_calls\":[],"
                  "\"content\":\"hi\",\"tool_call_id\":\"t\",\"role\":\"user\"}"),
        SESSILE_OK);
    assert_int_equal(m.usage.type, JSON_OBJECT);
    assert_int_equal(m.metadata.type, JSON_OBJECT);
    assert_true(json_is(m.author, "me"));
    assert_int_equal(m.tool_calls.type, JSON_ARRAY);
    assert_true(json_is(m.content, "hi"));
    assert_true(json_is(m.tool_call_id, "t"));
    assert_int_equal(m.root.type, JSON_OBJECT);
    assert_int_equal(link_count, 0); /* a user answers no call by tool_call_id */
}

/* ------------------------------------------------------------------ links */

static void calls_are_elements_of_tool_calls(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\","
                  "\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":\"function\","
                  "\"function\":{\"id\":\"no\"},\"id\":\"c2\"}]}"),
        SESSILE_OK);
    assert_int_equal(link_count, 2);
    assert_link(0, "c1", 0, 0);
    assert_link(1, "c2", 0, 0);
}

static void calls_are_blocks_of_type_tool_use(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
                  "\"text\":\"x\",\"id\":\"no\"},{\"id\":\"c1\",\"input\":{\"id\":"
                  "\"no\",\"type\":\"tool_result\"},\"type\":\"tool_\\u0075se\"}]}"),
        SESSILE_OK);
    assert_int_equal(link_count, 1);
    assert_link(0, "c1", 0, 0);
}

static void results_are_messages_of_role_tool_or_function(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"role\":\"tool\",\"tool_call_id\":\"c1\"}"),
                     SESSILE_OK);
    assert_int_equal(link_count, 1);
    assert_link(0, "c1", 1, 0);
    assert_int_equal(read_text("{\"tool_call_id\":\"c2\",\"role\":\"function\"}"),
                     SESSILE_OK);
    assert_link(0, "c2", 1, 0);
}

static void results_are_blocks_of_type_tool_result(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                  "\"tool_use_id\":\"c1\"},{\"type\":\"tool_result\","
                  "\"tool_call_id\":\"c2\"},{\"type\":\"tool_result\"}]}"),
        SESSILE_OK);
    assert_int_equal(link_count, 2);
    assert_link(0, "c1", 1, 0);
    assert_link(1, "c2", 1, 0);
}

static void output_in_a_call_answers_it(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"role\":\"assistant\",\"tool_calls\":[{\"output\":\"done\","
                  "\"id\":\"c1\"},{\"id\":\"c2\",\"output\":null},"
                  "{\"id\":\"c3\",\"output\":\"\"}]}"),
        SESSILE_OK);
    assert_int_equal(link_count, 5);
    assert_link(0, "c1", 0, 0);
    assert_link(1, "c1", 1, 1);
    assert_link(2, "c2", 0, 0);
    assert_link(3, "c3", 0, 0);
    assert_link(4, "c3", 1, 1);
}

static void links_come_in_the_order_of_the_text(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\"}],"
                               "\"content\":[{\"type\":\"tool_use\",\"id\":\"b\"}]}"),
                     SESSILE_OK);
    assert_link(0, "a", 0, 0);
    assert_link(1, "b", 0, 0);
    assert_int_equal(
        read_text("{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\","
                  "\"id\":\"b\"}],\"tool_calls\":[{\"id\":\"a\"}]}"),
        SESSILE_OK);
    assert_link(0, "b", 0, 0);
    assert_link(1, "a", 0, 0);
}

static void ids_are_compared_by_decoded_bytes(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"role\":\"tool\",\"tool_call_id\":\"c\\u0061ll\\/1\"}"),
                     SESSILE_OK);
    assert_link(0, "call/1", 1, 0);
}

static void a_call_has_an_id_that_is_text(void **state)
{
    (void)state;
    assert_invalid("{\"role\":\"model\",\"tool_calls\":[{\"name\":\"f\"}]}",
                   "tool_calls[0]");
    assert_invalid("{\"role\":\"model\",\"tool_calls\":[{\"id\":\"a\"},{\"id\":1}]}",
                   "tool_calls[1]");
    assert_invalid("{\"role\":\"model\",\"content\":[{\"type\":\"tool_use\"}]}",
                   "content[0]");
    assert_invalid(
        "{\"role\":\"model\",\"content\":[{\"type\":\"tool_use\",\"id\":null}]}",
        "content[0]");
}

static void links_are_appended_to_what_is_there(void **state)
{
    const char *text = "{\"role\":\"tool\",\"tool_call_id\":\"b\"}";
    const char *bad = "{\"role\":\"model\",\"tool_calls\":[{\"id\":\"x\"},{}]}";
    (void)state;
    assert_int_equal(read_text("{\"role\":\"tool\",\"tool_call_id\":\"a\"}"), SESSILE_OK);
    assert_int_equal(message_read(&m, text, strlen(text), &links, &link_count,
                                  &link_capacity, &allocator_default, NULL),
                     SESSILE_OK);
    assert_int_equal(link_count, 2);
    assert_int_equal(message_read(&m, bad, strlen(bad), &links, &link_count,
                                  &link_capacity, &allocator_default, NULL),
                     SESSILE_INVALID);
    assert_int_equal(link_count, 2);
    assert_link(0, "a", 1, 0);
    assert_link(1, "b", 1, 0);
}

static void links_may_be_unwanted(void **state)
{
    const char *text = "{\"role\":\"tool\",\"tool_call_id\":\"b\"}";
    const char *bad = "{\"role\":\"model\",\"tool_calls\":[{}]}";
    (void)state;
    assert_int_equal(
        message_read(&m, text, strlen(text), NULL, NULL, NULL, &allocator_default, &err),
        SESSILE_OK);
    assert_int_equal(
        message_read(&m, bad, strlen(bad), NULL, NULL, NULL, &allocator_default, &err),
        SESSILE_INVALID);
}

static void want_of_memory_is_said(void **state)
{
    const char *text = "{\"role\":\"tool\",\"tool_call_id\":\"b\\n\"}";
    rations memory = {0, 0};
    allocator a = {ration, &memory};
    int tries;
    message_link *own = NULL;
    size_t count = 0, capacity = 0;
    (void)state;
    for (tries = 0; tries < 2; tries++) { /* the decoded id; then the array */
        memory.left = tries;
        assert_int_equal(
            message_read(&m, text, strlen(text), &own, &count, &capacity, &a, &err),
            SESSILE_NOMEM);
        assert_int_equal(count, 0);
    }
    memory.left = 2;
    assert_int_equal(
        message_read(&m, text, strlen(text), &own, &count, &capacity, &a, &err),
        SESSILE_OK);
    assert_int_equal(count, 1);
    mem_free(&a, own, capacity * sizeof *own);
}

static void the_text_of_a_calls_id_is_found_again(void **state)
{
    const char *text =
        "{\"role\":\"assistant\",\"content\":[\"x\",{\"type\":\"tool_use\","
        "\"id\":\"b\\u0062\"},{\"type\":\"tool_result\",\"id\":\"r\"}],"
        "\"tool_calls\":[{\"id\":\"a\"}]}";
    buf out;
    (void)state;
    buf_init(&out, &allocator_default);
    assert_int_equal(message_call_id(text, strlen(text), hash64_lasting("bb", 2), &out),
                     1);
    assert_string_equal(out.data, "\"b\\u0062\"");
    assert_int_equal(message_call_id(text, strlen(text), hash64_lasting("a", 1), &out),
                     1);
    assert_string_equal(out.data, "\"b\\u0062\"\"a\"");
    assert_int_equal(message_call_id(text, strlen(text), hash64_lasting("r", 1), &out),
                     0);
    assert_int_equal(message_call_id(text, strlen(text), hash64_lasting("x", 1), &out),
                     0);
    assert_int_equal(message_call_id("[]", 2, hash64_lasting("x", 1), &out), 0);
    assert_int_equal(message_call_id("", 0, hash64_lasting("x", 1), &out), 0);
    buf_deinit(&out);
}

/* ------------------------------------------------------------------ flags */

static unsigned flags_of(const char *text)
{
    assert_int_equal(read_text(text), SESSILE_OK);
    return m.flags;
}

static void user_messages_start_a_turn(void **state)
{
    (void)state;
    assert_int_equal(flags_of("{\"role\":\"user\",\"content\":\"x\"}"),
                     MESSAGE_STARTS_TURN);
    assert_int_equal(flags_of("{\"role\":\"user\"}"), MESSAGE_STARTS_TURN);
    assert_int_equal(flags_of("{\"role\":\"user\",\"content\":[]}"), MESSAGE_STARTS_TURN);
    assert_int_equal(flags_of("{\"role\":\"user\",\"metadata\":{\"x\":1}}"),
                     MESSAGE_STARTS_TURN);
    assert_int_equal(flags_of("{\"role\":\"user\",\"metadata\":{\"kind\":null}}"),
                     MESSAGE_STARTS_TURN);
    assert_int_equal(
        flags_of("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                 "\"tool_use_id\":\"a\"},{\"type\":\"text\",\"text\":\"x\"}]}"),
        MESSAGE_STARTS_TURN);
    assert_int_equal(flags_of("{\"role\":\"assistant\",\"content\":\"x\"}"), 0);
    assert_int_equal(flags_of("{\"role\":\"system\",\"content\":\"x\"}"), 0);
}

static void results_alone_start_no_turn(void **state)
{
    (void)state;
    assert_int_equal(flags_of("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                              "\"tool_use_id\":\"a\"},{\"type\":\"tool_result\"}]}"),
                     0);
}

static void kinds_start_no_turn(void **state)
{
    (void)state;
    assert_int_equal(flags_of("{\"role\":\"user\",\"metadata\":{\"kind\":\"note\"}}"),
                     MESSAGE_KIND);
    assert_int_equal(flags_of("{\"role\":\"user\",\"metadata\":{\"kind\":\"summary\"}}"),
                     MESSAGE_KIND | MESSAGE_SUMMARY);
    assert_int_equal(
        flags_of("{\"role\":\"user\",\"metadata\":{\"kind\":\"branch_summary\"}}"),
        MESSAGE_KIND | MESSAGE_SUMMARY);
}

static void errors_of_message_and_blocks_are_seen(void **state)
{
    (void)state;
    assert_int_equal(flags_of("{\"role\":\"tool\",\"is_error\":true}"), MESSAGE_ERROR);
    assert_int_equal(flags_of("{\"role\":\"tool\",\"isError\":true}"), MESSAGE_ERROR);
    assert_int_equal(
        flags_of("{\"role\":\"tool\",\"isError\":false,\"is_error\":\"true\"}"), 0);
    assert_int_equal(flags_of("{\"role\":\"tool\",\"content\":[{\"type\":\"tool_result\","
                              "\"is_error\":true}]}"),
                     MESSAGE_ERROR);
    assert_int_equal(flags_of("{\"role\":\"tool\",\"content\":[{\"type\":\"x\",\"y\":{"
                              "\"is_error\":true}}]}"),
                     0);
}

/* ------------------------------------------------------------------ usage */

static sessile_usage usage_of(const char *text, int found)
{
    sessile_usage usage;
    assert_int_equal(usage_read(json_of(text, strlen(text)), &usage), found);
    return usage;
}

static void usage_is_read_by_every_name(void **state)
{
    static const char *const texts[] = {
        "{\"input\":1,\"output\":2,\"cache_read\":3,\"cache_write\":4}",
        "{\"cost\":{\"input\":9},\"cacheWrite\":4,\"cacheRead\":3,\"output\":2,\"input\":"
        "1}",
        "{\"input_tokens\":1,\"output_tokens\":2,\"cache_read_input_tokens\":3,"
        "\"cache_creation_input_tokens\":4}",
        "{\"prompt_tokens\":1,\"completion_tokens\":2,\"cache_read\":3,\"cache_write\":"
        "4}",
    };
    sessile_usage u;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        u = usage_of(texts[i], 1);
        assert_true(u.input == 1 && u.output == 2 && u.cache_read == 3 &&
                    u.cache_write == 4);
    }
    u = usage_of("{\"output\":7}", 1);
    assert_true(u.input == 0 && u.output == 7 && u.cache_read == 0 && u.cache_write == 0);
}

static void usage_without_counts_is_none(void **state)
{
    sessile_usage u;
    (void)state;
    u = usage_of("{\"input\":-1,\"output\":\"2\",\"cacheRead\":1.5}", 0);
    assert_true(u.input == 0 && u.output == 0 && u.cache_read == 0);
    usage_of("{}", 0);
    usage_of("[1]", 0);
    usage_of("null", 0);
    usage_of("", 0);
}

static sessile_role speaker_of(const char *text)
{
    json whole = {text, strlen(text), JSON_OBJECT};
    assert_int_equal(read_text(text), SESSILE_OK);
    assert_int_equal(message_speaker_in(whole), message_speaker(m.role, m.flags));
    return message_speaker_in(whole);
}

static void results_in_a_message_of_the_user_are_the_tools(void **state)
{
    (void)state;
    assert_int_equal(speaker_of("{\"role\":\"user\",\"content\":[{\"type\":"
                                "\"tool_result\",\"tool_use_id\":\"a\"}]}"),
                     SESSILE_TOOL);
    assert_int_equal(speaker_of("{\"role\":\"user\",\"content\":[{\"type\":"
                                "\"tool_result\",\"tool_use_id\":\"a\"},{\"type\":"
                                "\"text\",\"text\":\"go on\"}]}"),
                     SESSILE_USER);
    assert_int_equal(speaker_of("{\"role\":\"user\",\"content\":\"x\","
                                "\"metadata\":{\"kind\":\"summary\"}}"),
                     SESSILE_USER);
    assert_int_equal(speaker_of("{\"role\":\"model\",\"content\":\"x\"}"), SESSILE_MODEL);
}

#define reads(test) cmocka_unit_test_teardown(test, free_links)

int main(void)
{
    const struct CMUnitTest tests[] = {
        reads(results_in_a_message_of_the_user_are_the_tools),
        reads(every_role_has_its_name),
        reads(role_must_be_known),
        reads(names_are_read_through_their_escapes),
        reads(a_field_of_its_own_is_given_once),
        reads(fields_of_the_wrong_type_are_refused),
        reads(all_fields_are_found_in_any_order),
        reads(calls_are_elements_of_tool_calls),
        reads(calls_are_blocks_of_type_tool_use),
        reads(results_are_messages_of_role_tool_or_function),
        reads(results_are_blocks_of_type_tool_result),
        reads(output_in_a_call_answers_it),
        reads(links_come_in_the_order_of_the_text),
        reads(ids_are_compared_by_decoded_bytes),
        reads(a_call_has_an_id_that_is_text),
        reads(links_are_appended_to_what_is_there),
        reads(links_may_be_unwanted),
        reads(want_of_memory_is_said),
        reads(the_text_of_a_calls_id_is_found_again),
        reads(user_messages_start_a_turn),
        reads(results_alone_start_no_turn),
        reads(kinds_start_no_turn),
        reads(errors_of_message_and_blocks_are_seen),
        reads(usage_is_read_by_every_name),
        reads(usage_without_counts_is_none),
    };
    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
