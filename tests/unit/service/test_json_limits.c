/*
 * test_json_limits.c: what JSON of messages keeps, refuses and bounds.
 *
 * A field of the type Json is kept byte for byte; errors name the path and repeat
 * nothing; depth, size, number of values and memory are limited.
 */
#include <stdio.h>

#include "base/buf.h"
#include "support/rations.h"
#include "unit/service/kinds.h"

/* ------------------------------------------------------------------ Json */

static const char *const values[] = {
    "1.0",
    "-0.0",
    "1E+2",
    "12345678901234567890",
    "123456789012345678901234567890.10",
    "1e400",
    "\"\\u0041\\/\\ud800\"",
    "\"\\u0000\"",
    "\"\xc3\xa9\"",
    "true",
    "false",
    "null",
    "{}",
    "[]",
    "{\"b\":1,\"a\":2,\"b\":1.50}",
    "{ \"b\" : [ 1 ,\n 2.0 ] ,\t\"a\" : { } }",
};

static void json_is_kept_byte_for_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[512];
        kinds *k;
        snprintf(text, sizeof text,
                 "{\"json\":%s,\"inners\":[{\"content\":%s}],\"jsons\":[%s,%s],"
                 "\"choiceJson\":%s}",
                 values[i], values[i], values[i], values[i], values[i]);
        k = read_kinds(text);
        assert_string_equal(k->json->text, values[i]);
        assert_string_equal(k->inners[0]->content->text, values[i]);
        assert_int_equal(k->n_jsons, 2);
        assert_string_equal(k->jsons[1]->text, values[i]);
        assert_int_equal(k->choice_case, SESSILE__TEST__KINDS__CHOICE_CHOICE_JSON);
        assert_string_equal(k->choice_json->text, values[i]);
        assert_written(k, text);
        message_free(&k->base);
    }
}

static void space_around_a_json_is_not_part_of_it(void **state)
{
    kinds *k = read_kinds("{\"json\": \t12 \n, \"jsons\":[ { } , 1 ] }");
    (void)state;
    assert_string_equal(k->json->text, "12");
    assert_string_equal(k->jsons[0]->text, "{ }");
    assert_string_equal(k->jsons[1]->text, "1");
    message_free(&k->base);
}

static void space_around_a_json_is_not_written(void **state)
{
    static char text[] = " { \"a\" : 1 }\n";
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    kinds k = SESSILE__TEST__KINDS__INIT;
    (void)state;
    json.text = text;
    k.json = &json;
    assert_written(&k, "{\"json\":{ \"a\" : 1 }}");
}

static void an_array_of_json_is_an_array_and_null_is_none(void **state)
{
    (void)state;
    assert_refused("{\"jsons\":{}}", "jsons: this has to be an array, and is an object");
    assert_rewritten("{\"jsons\":null}", "{}");
}

static void a_json_that_is_none_is_not_written(void **state)
{
    static const char *const wrong[] = {"",   " ",        "{",   "1 2", "a",
                                        "01", "\"\xff\"", "1,2", "}"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
        Sessile__Test__Inner inner = SESSILE__TEST__INNER__INIT;
        Sessile__Test__Inner *inners[] = {&inner, &inner};
        kinds k = SESSILE__TEST__KINDS__INIT;
        inner.content = &json;
        k.inners = inners;
        k.n_inners = 2;
        json.text = (char *)(uintptr_t)wrong[i];
        assert_unwritable(&k, SESSILE_INVALID, "inners[0].content: not JSON: ");
    }
}

/* ------------------------------------------------------------------ errors */

static void errors_name_the_path(void **state)
{
    (void)state;
    assert_refused_at("[]", "the message: this has to be an object, and is an array");
    assert_refused_at("{\"no_such\":1}", "the message: there is no field \"no_such\"");
    assert_refused_at(
        "{\"inners\":[{},{\"inner\":[{\"name\":1}]}]}",
        "inners[1].inner[0].name: this has to be a string, and is a number");
    assert_refused_at("{\"inner\":{\"contnet\":1}}",
                      "inner: there is no field \"contnet\"");
    assert_refused_at(
        "{\"int32_field\":2147483648}",
        "int32Field: this has to be a whole number from -2147483648 to 2147483647");
    assert_refused_at("{\"uint64s\":[1,\"x\"]}",
                      "uint64s[1]: this has to be a whole number from 0 "
                      "to 18446744073709551615");
    assert_refused_at("{\"int64Field\":1.5}",
                      "int64Field: this has to be a whole number from "
                      "-9223372036854775808 to 9223372036854775807");
    assert_refused_at("{\"colour\":\"PINK\"}",
                      "colour: this is no name of the enum Colour");
    assert_refused_at("{\"bytesField\":\"%\"}", "bytesField: this string is not base64");
    assert_refused_at("{\"doubleField\":1e309}", "doubleField: this number is too great");
    assert_refused_at("{\"boolField\":true,\"bool_field\":null}",
                      "boolField: this field is given twice");
    assert_refused_at("{\"choiceText\":\"\",\"choiceNumber\":0}",
                      "choiceNumber: this excludes the field \"choice_text\"");
    assert_refused_at("{\"int32s\":[1,2,null]}", "int32s[2]: ");
    assert_refused("{\"stringField\":\"\xff\"}", "not UTF-8");
}

static void errors_do_not_repeat_what_was_said(void **state)
{
    char text[1000], secret[600];
    sessile_error err;
    ProtobufCMessage *message;
    (void)state;
    memset(secret, 's', sizeof secret - 1);
    secret[sizeof secret - 1] = 0;
    snprintf(text, sizeof text, "{\"int32Field\":\"%s\"}", secret);
    assert_int_equal(read_exact(text, &message, &err), SESSILE_INVALID);
    assert_null(strstr(err.message, "ss"));
    snprintf(text, sizeof text, "{\"%s\":1}", secret);
    assert_int_equal(read_exact(text, &message, &err), SESSILE_INVALID);
    assert_true(strlen(err.message) < 100);
}

static void a_long_path_keeps_its_end(void **state)
{
    char text[2000] = "{\"inner\":{";
    sessile_error err;
    ProtobufCMessage *message;
    (void)state;
    for (int i = 0; i < 30; i++)
        strcat(text, "\"inner\":[{");
    strcat(text, "\"count\":true");
    for (int i = 0; i < 30; i++)
        strcat(text, "}]");
    strcat(text, "}}");
    assert_int_equal(read_exact(text, &message, &err), SESSILE_INVALID);
    assert_non_null(
        strstr(err.message, ".inner[0].inner[0].count: this has to be a whole"));
    assert_true(strlen(err.message) < sizeof err.message - 1);
}

static void strings_are_what_a_message_can_hold(void **state)
{
    (void)state;
    assert_refused("{\"stringField\":\"a\\u0000b\"}",
                   "stringField: this string has a NUL");
    assert_refused("{\"strings\":[\"\\ud800\"]}",
                   "strings[0]: this string has half of a");
    assert_refused("{\"stringField\":\"\\uDC00\\uD800\"}", "half of a surrogate pair");
    assert_refused("{\"stringField\":\"\\ud83d\\n\"}", "half of a surrogate pair");
    assert_refused("{\"colour\":\"RED\\u0000\"}", "colour: ");
    assert_rewritten("{\"stringField\":\"\\\\ud800\\\\u0000\"}",
                     "{\"stringField\":\"\\\\ud800\\\\u0000\"}");
}

static void base64_is_whole_or_refused(void **state)
{
    (void)state;
    assert_refused("{\"bytesField\":\"AA=\"}", "not base64");
    assert_refused("{\"bytesField\":\"AA==AA==\"}", "not base64");
    assert_refused("{\"bytesField\":\"=\"}", "not base64");
    assert_refused("{\"bytesField\":\"====\"}", "not base64");
    assert_refused("{\"bytesField\":\"AB==\"}",
                   "not base64"); /* spare bits that are set */
    assert_refused("{\"bytesField\":\"AA AA\"}", "not base64");
    assert_refused("{\"bytesField\":\"AA\\n==\"}", "not base64");
}

static void whole_numbers_are_exact_however_they_are_spelled(void **state)
{
    (void)state;
    assert_rewritten("{\"uint64Field\":1844674407370955161.5e1}",
                     "{\"uint64Field\":\"18446744073709551615\"}");
    assert_rewritten("{\"uint64Field\":184467440737095516150.00e-1}",
                     "{\"uint64Field\":\"18446744073709551615\"}");
    assert_rewritten("{\"int64Field\":-9.223372036854775808E+18}",
                     "{\"int64Field\":\"-9223372036854775808\"}");
    assert_rewritten("{\"int64Field\":0.001e3}", "{\"int64Field\":\"1\"}");
    assert_rewritten("{\"int64Field\":0e999999999999999999999999}", "{}");
    assert_refused("{\"int64Field\":1e999999999999999999999999}", "whole number");
    assert_refused("{\"int64Field\":1e-999999999999999999999999}", "whole number");
    assert_refused("{\"int64Field\":0.1}", "whole number");
    assert_refused("{\"int64Field\":10e-2}", "whole number");
    assert_refused("{\"uint64Field\":1844674407370955161.6e1}", "whole number");
    assert_refused("{\"int32Field\":\"0x1\"}", "whole number");
    assert_refused("{\"doubleField\":\"0x1\"}", "has to be a number");
    assert_refused("{\"doubleField\":\"nan\"}", "has to be a number");
    assert_refused("{\"doubleField\":\"1 \"}", "has to be a number");
}

static void what_is_not_utf8_is_not_written(void **state)
{
    kinds k = SESSILE__TEST__KINDS__INIT;
    char *strings[] = {"a", "\xc3"};
    (void)state;
    k.strings = strings;
    k.n_strings = 2;
    assert_unwritable(&k, SESSILE_INVALID, "strings[1]: this text is not UTF-8");
}

/* ------------------------------------------------------------------ limits */

/* Objects and arrays of messages, count of each, the outermost two included. */
static void nested(char *text, int count)
{
    strcpy(text, "{\"inners\":[");
    for (int i = 1; i < count; i++)
        strcat(text, "{\"inner\":[");
    for (int i = 0; i < count; i++)
        strcat(text, "]}");
}

static void messages_nest_to_a_limit(void **state)
{
    char text[2000];
    kinds *k;
    sessile_error err;
    ProtobufCMessage *message;
    (void)state;
    nested(text, JSON_MESSAGE_DEPTH / 2);
    k = read_kinds(text);
    message_free(&k->base);
    nested(text, JSON_MESSAGE_DEPTH / 2 + 1);
    assert_int_equal(read_exact(text, &message, &err), SESSILE_LIMIT);
    assert_null(message);
    assert_non_null(strstr(err.message, "[depth]"));
}

static void messages_too_deep_are_not_written(void **state)
{
    Sessile__Test__Inner inner[JSON_MESSAGE_DEPTH];
    Sessile__Test__Inner *pointers[JSON_MESSAGE_DEPTH];
    kinds k = SESSILE__TEST__KINDS__INIT;
    (void)state;
    for (int i = 0; i < JSON_MESSAGE_DEPTH; i++) {
        sessile__test__inner__init(inner + i);
        pointers[i] = inner + i;
        if (i > 0) {
            inner[i - 1].inner = pointers + i;
            inner[i - 1].n_inner = 1;
        }
    }
    k.inners = pointers;
    k.n_inners = 1;
    assert_unwritable(&k, SESSILE_LIMIT, "[depth]");
}

/* What one end takes, the other end gives: a Json as deep as may be, where it may be. */
static void json_nests_as_deep_in_as_out(void **state)
{
    enum { DEEPEST = JSON_TEXT_DEPTH - 1 };
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    kinds outer = SESSILE__TEST__KINDS__INIT;
    char text[2 * JSON_TEXT_DEPTH + 64] = "{\"json\":";
    size_t at = strlen(text);
    kinds *k;
    sessile_error err;
    ProtobufCMessage *message;
    (void)state;
    memset(text + at, '[', DEEPEST);
    memset(text + at + DEEPEST, ']', DEEPEST);
    strcpy(text + at + 2 * DEEPEST, "}");
    k = read_kinds(text);
    assert_written(k, text);
    message_free(&k->base);
    memset(text + at, '[', DEEPEST + 1);
    memset(text + at + DEEPEST + 1, ']', DEEPEST + 1);
    strcpy(text + at + 2 * (DEEPEST + 1), "}");
    assert_int_equal(read_exact(text, &message, &err), SESSILE_LIMIT);
    text[at + 2 * (DEEPEST + 1)] = 0;
    json.text = text + at;
    outer.json = &json;
    assert_unwritable(&outer, SESSILE_LIMIT, "json: JSON is nested deeper");
}

static void size_is_limited_both_ways(void **state)
{
    static const char text[] = "{\"stringField\":\"abc\"}";
    const size_t size = sizeof text - 1;
    kinds *k = read_kinds(text);
    sessile_error err;
    ProtobufCMessage *message;
    buf out;
    (void)state;
    assert_int_equal(json_to_message(&sessile__test__kinds__descriptor, text, size,
                                     size - 1, &allocator_default, &message, &err),
                     SESSILE_LIMIT);
    assert_non_null(strstr(err.message, "[size]"));
    buf_init(&out, &allocator_default);
    buf_puts(&out, "before");
    assert_int_equal(message_to_json(&k->base, size - 1, &out, &err), SESSILE_LIMIT);
    assert_string_equal(out.data, "before");
    assert_int_equal(message_to_json(&k->base, size, &out, &err), SESSILE_OK);
    assert_string_equal(out.data + 6, text);
    buf_deinit(&out);
    message_free(&k->base);
}

/* Each "{}," of a text becomes a struct. */
static void values_are_counted_before_memory_is_taken(void **state)
{
    const size_t count = JSON_VALUES_MOST;
    buf text;
    kinds *k;
    sessile_error err;
    ProtobufCMessage *message;
    (void)state;
    buf_init(&text, &allocator_default);
    buf_puts(&text, "{\"inners\":[{}");
    for (size_t i = 1; i < count; i++)
        buf_puts(&text, ",{}");
    buf_puts(&text, "]}");
    k = read_kinds(text.data);
    assert_int_equal(k->n_inners, count);
    message_free(&k->base);
    text.size -= 1;
    buf_puts(&text, ",\"inner\":{}}");
    assert_int_equal(read_exact(text.data, &message, &err), SESSILE_LIMIT);
    assert_non_null(strstr(err.message, "[values]"));
    buf_deinit(&text);
}

/* ------------------------------------------------------------------ memory */

static const char whole[] = "{\"stringField\":\"a\",\"bytesField\":\"-_8\",\"colour\":"
                            "\"RED\",\"doubleField\":\"1.5\","
                            "\"inner\":{\"name\":\"b\",\"content\":[1]},\"strings\":["
                            "\"c\",\"d\"],\"blobs\":[\"AA\","
                            "\"AQ\"],\"inners\":[{\"name\":\"e\"},{\"inner\":[{}]}],"
                            "\"jsons\":[1,2],\"\\u006ason\":3,"
                            "\"choiceInner\":{\"content\":null}}";

/* Writes with no allocation, one, two, until they suffice. */
static sessile_status write_with_little_memory(const ProtobufCMessage *message,
                                               rations *r)
{
    const allocator a = {ration, r};
    sessile_status status = SESSILE_NOMEM;
    sessile_error err;
    long given;
    for (given = 0; status == SESSILE_NOMEM && given < 1000; given++) {
        buf out;
        buf_init(&out, &a);
        r->left = given;
        status = message_to_json(message, LIMIT, &out, &err);
        if (status) {
            assert_int_equal(out.size, 0);
        } else {
            r->left = -1;
            assert_written((const kinds *)message, out.data);
        }
        buf_deinit(&out);
    }
    assert_true(given > 2);
    return status;
}

static void no_memory_is_told_and_nothing_leaks(void **state)
{
    sessile_status status = SESSILE_NOMEM;
    long given;
    (void)state;
    for (given = 0; status == SESSILE_NOMEM && given < 1000; given++) {
        rations r = {given, 0};
        const allocator a = {ration, &r};
        ProtobufCMessage *message;
        sessile_error err;
        status = json_to_message(&sessile__test__kinds__descriptor, whole,
                                 sizeof whole - 1, LIMIT, &a, &message, &err);
        assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
        assert_true((status == SESSILE_OK) == (message != NULL));
        if (message)
            status = write_with_little_memory(message, &r);
        message_free(message);
        assert_int_equal(r.live, 0);
    }
    assert_int_equal(status, SESSILE_OK);
    assert_true(given > 20);
}

static void without_an_error_to_fill_the_status_is_the_same(void **state)
{
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    kinds k = SESSILE__TEST__KINDS__INIT;
    ProtobufCMessage *message;
    buf out;
    (void)state;
    assert_int_equal(read_exact("{\"int32Field\":[]}", &message, NULL), SESSILE_INVALID);
    k.json = &json;
    buf_init(&out, &allocator_default);
    assert_int_equal(message_to_json(&k.base, LIMIT, &out, NULL), SESSILE_INVALID);
    buf_deinit(&out);
}

static void messages_from_bytes_are_freed_alike(void **state)
{
    rations r = {-1, 0};
    const allocator a = {ration, &r};
    ProtobufCAllocator made = message_allocator(&a);
    kinds *k = read_kinds(whole);
    size_t size = protobuf_c_message_get_packed_size(&k->base);
    uint8_t *bytes = malloc(size);
    ProtobufCMessage *message;
    (void)state;
    assert_non_null(bytes);
    protobuf_c_message_pack(&k->base, bytes);
    message =
        protobuf_c_message_unpack(&sessile__test__kinds__descriptor, &made, size, bytes);
    assert_non_null(message);
    assert_true(r.live > 0);
    message_free(message);
    assert_int_equal(r.live, 0);
    free(bytes);
    message_free(&k->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_kept_byte_for_byte),
        cmocka_unit_test(space_around_a_json_is_not_part_of_it),
        cmocka_unit_test(space_around_a_json_is_not_written),
        cmocka_unit_test(an_array_of_json_is_an_array_and_null_is_none),
        cmocka_unit_test(a_json_that_is_none_is_not_written),
        cmocka_unit_test(errors_name_the_path),
        cmocka_unit_test(errors_do_not_repeat_what_was_said),
        cmocka_unit_test(a_long_path_keeps_its_end),
        cmocka_unit_test(strings_are_what_a_message_can_hold),
        cmocka_unit_test(base64_is_whole_or_refused),
        cmocka_unit_test(whole_numbers_are_exact_however_they_are_spelled),
        cmocka_unit_test(what_is_not_utf8_is_not_written),
        cmocka_unit_test(messages_nest_to_a_limit),
        cmocka_unit_test(messages_too_deep_are_not_written),
        cmocka_unit_test(json_nests_as_deep_in_as_out),
        cmocka_unit_test(size_is_limited_both_ways),
        cmocka_unit_test(values_are_counted_before_memory_is_taken),
        cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
        cmocka_unit_test(without_an_error_to_fill_the_status_is_the_same),
        cmocka_unit_test(messages_from_bytes_are_freed_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
