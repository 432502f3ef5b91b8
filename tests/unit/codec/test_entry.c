/*
 * test_entry.c: entries to text and back, ids, and the names of new sessions.
 *
 * Owns the promises of codec/entry.h.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/entry.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

static const entry_fields full = {
    0x2a,
    0x29,
    INT64_C(1795291923123),
    ENTRY_MESSAGE,
    SOURCE_USER,
    "\"coder\"",
    "\"ann\"",
    "{\"role\":\"user\"}",
    15,
    7,
    "estimate",
};
static const char full_text[] =
    "{\"id\":\"0000002a\",\"parent_id\":\"00000029\",\"timestamp\":\"2026-11-21T20:12:03."
    "123Z\","
    "\"type\":\"message\",\"source\":\"user\",\"author\":\"coder\",\"user\":\"ann\","
    "\"data\":{\"role\":\"user\"},\"tokens\":[7,\"estimate\"]}";

static void fields_are_written_in_their_order(void **state)
{
    buf out;
    (void)state;
    buf_init(&out, &allocator_default);
    entry_put(&out, &full);
    assert_string_equal(out.data, full_text);
    buf_deinit(&out);
}

static void absent_fields_are_left_out(void **state)
{
    entry_fields fields = {
        0, SESSILE_NO_ID, 0, ENTRY_SESSION, SOURCE_NONE, NULL, NULL, NULL, 0, -1, NULL};
    buf out;
    (void)state;
    buf_init(&out, &allocator_default);
    entry_put(&out, &fields);
    assert_string_equal(out.data, "{\"id\":\"00000000\",\"parent_id\":null,\"timestamp\":"
                                  "\"1970-01-01T00:00:00.000Z\",\"type\":\"session\","
                                  "\"data\":{}}");
    buf_deinit(&out);
}

static void what_is_written_is_read(void **state)
{
    sessile_error err;
    entry e;
    (void)state;
    assert_int_equal(entry_read(&e, full_text, strlen(full_text), &err), SESSILE_OK);
    assert_int_equal(e.id, 0x2a);
    assert_int_equal(e.parent, 0x29);
    assert_true(e.time_ms == INT64_C(1795291923123));
    assert_int_equal(e.type, ENTRY_MESSAGE);
    assert_int_equal(e.source, SOURCE_USER);
    assert_true(json_is(e.author, "coder"));
    assert_true(json_is(e.user, "ann"));
    assert_int_equal(e.data.size, 15);
    assert_true(e.tokens == 7);
    assert_true(json_is(e.token_source, "estimate"));
}

static void every_type_and_source_comes_back(void **state)
{
    sessile_error err;
    int type, source;
    (void)state;
    for (type = ENTRY_SESSION; type <= ENTRY_TOMBSTONE; type++) {
        for (source = SOURCE_NONE; source <= SOURCE_HOST; source++) {
            entry_fields fields = full;
            entry e;
            buf out;
            fields.type = (entry_type)type;
            fields.source = (entry_source)source;
            buf_init(&out, &allocator_default);
            entry_put(&out, &fields);
            assert_int_equal(entry_read(&e, out.data, out.size, &err), SESSILE_OK);
            assert_int_equal(e.type, type);
            assert_int_equal(e.source, source);
            buf_deinit(&out);
        }
    }
}

static void no_tokens_is_a_count_too(void **state)
{
    entry_fields fields = full;
    sessile_error err;
    entry e;
    buf out;
    (void)state;
    fields.tokens = 0;
    fields.token_source = NULL;
    buf_init(&out, &allocator_default);
    entry_put(&out, &fields);
    assert_non_null(strstr(out.data, "\"tokens\":[0]}"));
    assert_int_equal(entry_read(&e, out.data, out.size, &err), SESSILE_OK);
    assert_true(e.tokens == 0);
    assert_int_equal(e.token_source.type, JSON_NONE);
    buf_deinit(&out);
}

static void the_longest_entry_head_fits(void **state)
{
    entry_fields fields = full;
    sessile_error err;
    entry e;
    buf out;
    (void)state;
    fields.id = fields.parent = 0xfffffffe;
    fields.time_ms = INT64_MAX;
    fields.type = ENTRY_BRANCH_SUMMARY;
    fields.source = SOURCE_SYSTEM;
    buf_init(&out, &allocator_default);
    entry_put(&out, &fields);
    assert_int_equal(entry_read(&e, out.data, out.size, &err), SESSILE_OK);
    assert_int_equal(e.type, ENTRY_BRANCH_SUMMARY);
    buf_deinit(&out);
}

static void unknown_types_and_fields_are_carried_through(void **state)
{
    const char *text =
        "{\"new\":{\"id\":1},\"data\":{},\"type\":\"later\",\"parent_id\":null,"
        "\"source\":\"moon\",\"timestamp\":\"2026-11-21T20:12:03.123Z\","
        "\"id\":\"00000001\",\"tokens\":\"many\",\"author\":3}";
    sessile_error err;
    entry e;
    (void)state;
    assert_int_equal(entry_read(&e, text, strlen(text), &err), SESSILE_OK);
    assert_int_equal(e.type, ENTRY_UNKNOWN);
    assert_int_equal(entry_on_path(e.type), 0);
    assert_int_equal(e.source, SOURCE_NONE);
    assert_int_equal(e.id, 1);
    assert_int_equal(e.parent, SESSILE_NO_ID);
    assert_true(e.tokens == -1);
    assert_int_equal(e.author.type, JSON_NONE);
}

static void what_is_no_entry_is_damaged(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "1",
        "{\"id\":\"1\",\"parent_id\":null,\"timestamp\":\"2026-11-21T20:12:03.123Z\","
        "\"type\":\"x\",\"data\":{}}",
        "{\"id\":\"0000000A\",\"parent_id\":null,\"timestamp\":\"2026-11-21T20:12:03."
        "123Z\",\"type\":\"x\",\"data\":{}}",
        "{\"id\":\"ffffffff\",\"parent_id\":null,\"timestamp\":\"2026-11-21T20:12:03."
        "123Z\",\"type\":\"x\",\"data\":{}}",
        "{\"id\":\"00000001\",\"timestamp\":\"2026-11-21T20:12:03.123Z\",\"type\":\"x\","
        "\"data\":{}}",
        "{\"id\":\"00000001\",\"parent_id\":\"1\",\"timestamp\":\"2026-11-21T20:12:03."
        "123Z\",\"type\":\"x\",\"data\":{}}",
        "{\"id\":\"00000001\",\"parent_id\":null,\"timestamp\":\"yesterday\",\"type\":"
        "\"x\",\"data\":{}}",
        "{\"id\":\"00000001\",\"parent_id\":null,\"timestamp\":17,\"type\":\"x\","
        "\"data\":"
        "{}}",
        "{\"id\":\"00000001\",\"parent_id\":null,\"timestamp\":\"2026-11-21T20:12:03."
        "123Z\",\"data\":{}}",
        "{\"id\":\"00000001\",\"parent_id\":null,\"timestamp\":\"2026-11-21T20:12:03."
        "123Z\",\"type\":\"x\"}",
        "{\"id\":\"00000001\",\"parent_id\":null,\"timestamp\":\"2026-11-21T20:12:03."
        "123Z\",\"type\":\"x\",\"data\":[]}",
    };
    sessile_error err;
    entry e;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(entry_read(&e, bad[i], strlen(bad[i]), &err), SESSILE_DAMAGED);
        assert_int_equal(e.id, SESSILE_NO_ID);
        assert_int_equal(e.data.type, JSON_NONE);
    }
}

static void path_entries_are_four(void **state)
{
    int type, count = 0;
    (void)state;
    for (type = ENTRY_UNKNOWN; type <= ENTRY_TOMBSTONE; type++)
        count += entry_on_path((entry_type)type);
    assert_int_equal(count, 4);
    assert_true(entry_on_path(ENTRY_MESSAGE) && entry_on_path(ENTRY_TURN) &&
                entry_on_path(ENTRY_COMPACTION) && entry_on_path(ENTRY_BRANCH_SUMMARY));
}

static void sources_follow_roles(void **state)
{
    (void)state;
    assert_int_equal(source_of_role(SESSILE_USER), SOURCE_USER);
    assert_int_equal(source_of_role(SESSILE_ASSISTANT), SOURCE_AGENT);
    assert_int_equal(source_of_role(SESSILE_MODEL), SOURCE_AGENT);
    assert_int_equal(source_of_role(SESSILE_SYSTEM), SOURCE_SYSTEM);
    assert_int_equal(source_of_role(SESSILE_DEVELOPER), SOURCE_SYSTEM);
    assert_int_equal(source_of_role(SESSILE_TOOL), SOURCE_TOOL);
    assert_int_equal(source_of_role(SESSILE_FUNCTION), SOURCE_TOOL);
    assert_int_equal(entry_source_of("policy", 6), SOURCE_POLICY);
    assert_int_equal(entry_source_of("policy!", 6), SOURCE_POLICY);
    assert_int_equal(entry_source_of("none", 4), SOURCE_NONE);
    assert_int_equal(entry_source_of("use", 3), SOURCE_NONE);
}

static void ids_have_eight_lower_case_digits(void **state)
{
    sessile_id id;
    char text[9];
    (void)state;
    id_print(0xabcdef, text);
    assert_string_equal(text, "00abcdef");
    assert_int_equal(id_parse("00abcdef", 8, &id), 0);
    assert_int_equal(id, 0xabcdef);
    assert_int_equal(id_parse("00ABCDEF", 8, &id), -1);
    assert_int_equal(id_parse("00abcde", 7, &id), -1);
    assert_int_equal(id_parse("00abcdef.1", 10, &id), -1);
    assert_int_equal(id_parse("ffffffff", 8, &id), -1);
}

static void want_of_memory_sticks_to_the_buffer(void **state)
{
    entry_fields fields = full;
    buf out;
    (void)state;
    fields.data_size = SIZE_MAX; /* more than there is */
    buf_init(&out, &allocator_default);
    entry_put(&out, &fields);
    assert_int_equal(out.failed, 1);
    buf_deinit(&out);
}

/* ------------------------------------------------------------------ UUIDs */

static void assert_uuid(const char *text, char version)
{
    int i;
    assert_int_equal(strlen(text), 36);
    for (i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            assert_int_equal(text[i], '-');
        else
            assert_true(isdigit((unsigned char)text[i]) ||
                        (text[i] >= 'a' && text[i] <= 'f'));
    }
    assert_int_equal(text[14], version);
    assert_non_null(strchr("89ab", text[19]));
}

static void version_7_ids_ascend_and_differ(void **state)
{
    unsigned char last[16] = {0};
    char before[UUID_SIZE] = "", id[UUID_SIZE];
    int64_t now = INT64_C(1795291923123);
    int i;
    (void)state;
    for (i = 0; i < 3000; i++) {
        /* The clock stands, goes on, and goes back. */
        uuid7_print(id, i < 1000 ? now : i < 2000 ? now + i : now - i, last);
        assert_uuid(id, '7');
        assert_true(strcmp(before, id) < 0);
        memcpy(before, id, sizeof before);
    }
}

static void version_7_ids_begin_with_the_time(void **state)
{
    unsigned char last[16] = {0};
    char id[UUID_SIZE];
    (void)state;
    uuid7_print(id, INT64_C(0x0123456789ab), last);
    assert_memory_equal(id, "01234567-89ab-7", 15);
}

static void version_7_ids_survive_the_end_of_their_bits(void **state)
{
    unsigned char last[16];
    char id[UUID_SIZE];
    (void)state;
    memset(last, 0xff, sizeof last);
    memset(last, 0, 6);
    last[5] = 9; /* millisecond 9, all random bits set */
    last[6] = 0x7f;
    last[8] = 0xbf;
    uuid7_print(id, 9, last);
    assert_uuid(id, '7');
    assert_memory_equal(id, "00000000-000a-7000-8", 20);
}

static void version_7_ids_of_two_processes_differ(void **state)
{
    unsigned char one[16] = {0}, two[16] = {0};
    char a[UUID_SIZE], b[UUID_SIZE];
    (void)state;
    uuid7_print(a, 5, one);
    uuid7_print(b, 5, two);
    assert_string_not_equal(a, b);
}

static void version_4_ids_differ(void **state)
{
    static char ids[1000][UUID_SIZE];
    int i, j;
    (void)state;
    for (i = 0; i < 1000; i++) {
        uuid4_print(ids[i]);
        assert_uuid(ids[i], '4');
        for (j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_written_in_their_order),
        cmocka_unit_test(absent_fields_are_left_out),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(every_type_and_source_comes_back),
        cmocka_unit_test(no_tokens_is_a_count_too),
        cmocka_unit_test(the_longest_entry_head_fits),
        cmocka_unit_test(unknown_types_and_fields_are_carried_through),
        cmocka_unit_test(what_is_no_entry_is_damaged),
        cmocka_unit_test(path_entries_are_four),
        cmocka_unit_test(sources_follow_roles),
        cmocka_unit_test(ids_have_eight_lower_case_digits),
        cmocka_unit_test(want_of_memory_sticks_to_the_buffer),
        cmocka_unit_test(version_7_ids_ascend_and_differ),
        cmocka_unit_test(version_7_ids_begin_with_the_time),
        cmocka_unit_test(version_7_ids_survive_the_end_of_their_bits),
        cmocka_unit_test(version_7_ids_of_two_processes_differ),
        cmocka_unit_test(version_4_ids_differ),
    };
    return cmocka_run_group_tests_name("entry", tests, NULL, NULL);
}
