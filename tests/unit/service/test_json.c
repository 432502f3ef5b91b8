/*
 * test_json.c: messages of protobuf as JSON, and back.
 *
 * kinds.proto has every kind of field. What a field may look like is a table of texts,
 * each with the text that is written for it; judge.py asks Google's own reader and writer
 * about the same table.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "unit/service/kinds.h"

/* ------------------------------------------------------------------ the table */

typedef struct row {
    const char *text;    /* read */
    const char *written; /* what is written then; NULL: the same text; or one of these */
} row;
static const char refused[] = "refused";
static const char stricter[] = "refused, though Google's reader for Python takes it";

/* No field of type Json here: no other program knows that exception. */
static const row rows[] = {
    {"{}", NULL},
    {" { \"int32Field\" :\t1 ,\n\"boolField\": true } ",
     "{\"int32Field\":1,\"boolField\":true}"},
    /* 32 bits */
    {"{\"int32Field\":-2147483648,\"sint32Field\":2147483647,\"sfixed32Field\":-1}",
     NULL},
    {"{\"uint32Field\":4294967295,\"fixed32Field\":4294967295}", NULL},
    {"{\"int32Field\":\"-12\",\"uint32Field\":\"12\"}",
     "{\"int32Field\":-12,\"uint32Field\":12}"},
    {"{\"int32Field\":1.0,\"sint32Field\":1e2,\"sfixed32Field\":1200e-2}",
     "{\"int32Field\":1,\"sint32Field\":100,\"sfixed32Field\":12}"},
    {"{\"int32Field\":0,\"uint32Field\":-0,\"fixed32Field\":0.000}", "{}"},
    {"{\"int32Field\":2147483648}", refused},
    {"{\"int32Field\":-2147483649}", refused},
    {"{\"sfixed32Field\":\"2147483648\"}", refused},
    {"{\"uint32Field\":4294967296}", refused},
    {"{\"uint32Field\":-1}", refused},
    {"{\"fixed32Field\":1e10}", refused},
    {"{\"int32Field\":0.5}", refused},
    {"{\"int32Field\":\"1 \"}", refused},
    {"{\"int32Field\":\"\"}", refused},
    {"{\"int32Field\":\"one\"}", refused},
    {"{\"int32Field\":true}", refused},
    {"{\"int32Field\":[1]}", refused},
    {"{\"int32Field\":{}}", refused},
    /* 64 bits: no double in between */
    {"{\"int64Field\":\"-9223372036854775808\",\"sint64Field\":\"9223372036854775807\","
     "\"sfixed64Field\":\"9007199254740993\"}",
     NULL},
    {"{\"uint64Field\":\"18446744073709551615\",\"fixed64Field\":"
     "\"18446744073709551615\"}",
     NULL},
    {"{\"int64Field\":9007199254740993,\"uint64Field\":18446744073709551615}",
     "{\"int64Field\":\"9007199254740993\",\"uint64Field\":\"18446744073709551615\"}"},
    {"{\"int64Field\":-9223372036854775809}", refused},
    {"{\"int64Field\":\"9223372036854775808\"}", refused},
    {"{\"uint64Field\":18446744073709551616}", refused},
    {"{\"uint64Field\":\"-1\"}", refused},
    {"{\"fixed64Field\":1.5}", refused},
    /* floats and doubles */
    {"{\"doubleField\":0.1}", NULL},
    {"{\"doubleField\":1.7976931348623157e+308}", NULL},
    {"{\"doubleField\":5e-324}", "{\"doubleField\":4.94065645841247e-324}"},
    {"{\"doubleField\":9007199254740993}", "{\"doubleField\":9007199254740992}"},
    {"{\"doubleField\":-1.5,\"floatField\":0.1}",
     "{\"floatField\":0.1,\"doubleField\":-1.5}"},
    {"{\"floatField\":3.402823466e+38}", NULL},
    {"{\"floatField\":16777216}", "{\"floatField\":16777216}"},
    {"{\"doubleField\":\"1.25e3\"}", "{\"doubleField\":1250}"},
    {"{\"floatField\":\"NaN\",\"doubleField\":\"NaN\"}", NULL},
    {"{\"floatField\":\"Infinity\",\"doubleField\":\"-Infinity\"}", NULL},
    {"{\"doubleField\":0.0}", "{}"},
    {"{\"doubleField\":1e309}", refused},
    {"{\"floatField\":1e39}", refused},
    {"{\"doubleField\":\"x\"}", refused},
    {"{\"doubleField\":false}", stricter},
    /* booleans */
    {"{\"boolField\":true}", NULL},
    {"{\"boolField\":false}", "{}"},
    {"{\"boolField\":1}", refused},
    {"{\"boolField\":\"true\"}", refused},
    /* strings */
    {"{\"stringField\":\"h\xc3\xa9 \xf0\x9f\x98\x80\"}", NULL},
    {"{\"stringField\":\"h\\u00e9 \\uD83D\\uDE00 \\/ \\u0041\"}",
     "{\"stringField\":\"h\xc3\xa9 \xf0\x9f\x98\x80 / A\"}"},
    {"{\"stringField\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\"}", NULL},
    {"{\"stringField\":\"\\ufffd\"}", "{\"stringField\":\"\xef\xbf\xbd\"}"},
    {"{\"stringField\":\"\"}", "{}"},
    {"{\"stringField\":1}", refused},
    {"{\"stringField\":[]}", refused},
    /* bytes */
    {"{\"bytesField\":\"AAECAw==\"}", NULL},
    {"{\"bytesField\":\"AAECAw\"}", "{\"bytesField\":\"AAECAw==\"}"},
    {"{\"bytesField\":\"-_-_\"}", "{\"bytesField\":\"+/+/\"}"},
    {"{\"bytesField\":\"-_8\"}", "{\"bytesField\":\"+/8=\"}"},
    {"{\"bytesField\":\"\"}", "{}"},
    {"{\"bytesField\":\"A\"}", refused},
    {"{\"bytesField\":7}", refused},
    /* enums */
    {"{\"colour\":\"DARK_BLUE\"}", NULL},
    {"{\"colour\":7}", "{\"colour\":\"DARK_BLUE\"}"},
    {"{\"colour\":-3}", "{\"colour\":\"BELOW\"}"},
    {"{\"colour\":12}", "{\"colour\":12}"},
    {"{\"colour\":\"NONE\"}", "{}"},
    {"{\"colour\":\"dark_blue\"}", refused},
    {"{\"colour\":\"\"}", refused},
    {"{\"colour\":2147483648}", refused},
    {"{\"colour\":true}", stricter},
    /* messages: there, even when they are empty */
    {"{\"inner\":{}}", NULL},
    {"{\"inner\":{\"name\":\"a\",\"count\":1,\"inner\":[{},{\"inner\":[{\"count\":2}]}]}"
     "}",
     NULL},
    {"{\"inner\":[]}", stricter},
    {"{\"inner\":\"\"}", stricter},
    /* arrays */
    {"{\"int32s\":[1,0,-1],\"fixed32s\":[1],\"sint64s\":[\"-1\"],\"uint64s\":[\"1\","
     "\"0\"],"
     "\"floats\":[0.5,\"NaN\"],\"doubles\":[0,1.5],\"bools\":[true,false],\"strings\":["
     "\"\","
     "\"a\"],\"blobs\":[\"\",\"AA==\"],\"colours\":[\"NONE\",\"RED\",99],\"inners\":[{},{"
     "\"count\":1}]}",
     NULL},
    {"{\"int32s\":[],\"strings\":[],\"inners\":[]}", "{}"},
    {"{\"int32s\":1}", refused},
    {"{\"int32s\":{}}", refused},
    {"{\"int32s\":[1,null]}", refused},
    {"{\"strings\":[\"a\",1]}", refused},
    {"{\"inners\":[{},[]]}", stricter},
    /* oneof: there, even with its default */
    {"{\"choiceText\":\"a\"}", NULL},
    {"{\"choiceText\":\"\"}", NULL},
    {"{\"choiceNumber\":0}", NULL},
    {"{\"choiceBytes\":\"\"}", NULL},
    {"{\"choiceBytes\":\"AA==\"}", NULL},
    {"{\"choiceInner\":{\"name\":\"a\"}}", NULL},
    {"{\"choiceInner\":{}}", NULL},
    {"{\"choiceFlag\":false}", NULL},
    {"{\"choiceText\":null,\"choiceNumber\":2}", "{\"choiceNumber\":2}"},
    {"{\"choiceText\":\"\",\"choiceNumber\":0}", refused},
    {"{\"choiceInner\":{},\"choiceText\":\"a\"}", refused},
    /* names */
    {"{\"int32_field\":1,\"bool_field\":true,\"choice_text\":\"\"}",
     "{\"int32Field\":1,\"boolField\":true,\"choiceText\":\"\"}"},
    {"{\"AField\":true,\"a1b\":true,\"xYZ\":true,\"lastOne\":true,\"alreadyCamel\":true}",
     NULL},
    {"{\"A_field\":true,\"a_1b\":true,\"x_y_z\":true,\"last_one_\":true}",
     "{\"AField\":true,\"a1b\":true,\"xYZ\":true,\"lastOne\":true}"},
    {"{\"\\u0062oolField\":true}", "{\"boolField\":true}"},
    {"{\"BoolField\":true}", refused},
    {"{\"boolfield\":true}", refused},
    {"{\"bool__field\":true}", refused},
    {"{\"boolFiel\":true}", refused},
    {"{\"\":true}", refused},
    {"{\"inner\":{\"boolField\":true}}", refused},
    {"{\"boolField\":true,\"boolField\":true}", refused},
    {"{\"boolField\":true,\"bool_field\":true}", stricter},
    /* null is absent */
    {"{\"int32Field\":null,\"uint64Field\":null,\"doubleField\":null,\"boolField\":null,"
     "\"stringField\":null,\"bytesField\":null,\"colour\":null,\"inner\":null,"
     "\"strings\":null,"
     "\"inners\":null,\"choiceText\":null}",
     "{}"},
    /* no object */
    {"[]", stricter},
    {"1", refused},
    {"\"{}\"", refused},
    {"null", refused},
    {"{", refused},
    {"", refused},
    {"{} {}", refused},
};
#define ROWS (sizeof rows / sizeof *rows)

static int is_refused(const row *r)
{
    return r->written == refused || r->written == stricter;
}

static const char *written_for(const row *r)
{
    return r->written ? r->written : r->text;
}

static void each_row_is_read_and_written_as_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        if (is_refused(rows + i)) {
            assert_refused(rows[i].text, "");
            continue;
        }
        assert_rewritten(rows[i].text, written_for(rows + i));
        assert_rewritten(written_for(rows + i), written_for(rows + i));
    }
}

static void values_arrive_in_their_members(void **state)
{
    kinds *k = read_kinds(
        "{\"int32Field\":-5,\"int64Field\":\"-9223372036854775808\",\"uint64Field\":"
        "\"18446744073709551615\",\"floatField\":0.1,\"doubleField\":0.1,\"boolField\":"
        "true,"
        "\"stringField\":\"a\\nb\",\"bytesField\":\"AP8=\",\"colour\":\"BELOW\","
        "\"strings\":["
        "\"x\",\"y\"],\"bools\":[false,true],\"choiceBytes\":\"AQ\",\"inner\":{\"count\":"
        "3}}");
    (void)state;
    assert_int_equal(k->int32_field, -5);
    assert_true(k->int64_field == INT64_MIN);
    assert_true(k->uint64_field == UINT64_MAX);
    assert_true(k->float_field == 0.1f);
    assert_true(k->double_field == 0.1);
    assert_int_equal(k->bool_field, 1);
    assert_string_equal(k->string_field, "a\nb");
    assert_int_equal(k->bytes_field.len, 2);
    assert_memory_equal(k->bytes_field.data, "\x00\xff", 2);
    assert_int_equal(k->colour, SESSILE__TEST__COLOUR__BELOW);
    assert_int_equal(k->n_strings, 2);
    assert_string_equal(k->strings[1], "y");
    assert_int_equal(k->n_bools, 2);
    assert_int_equal(k->bools[0], 0);
    assert_int_equal(k->bools[1], 1);
    assert_int_equal(k->choice_case, SESSILE__TEST__KINDS__CHOICE_CHOICE_BYTES);
    assert_int_equal(k->choice_bytes.len, 1);
    assert_int_equal(k->inner->count, 3);
    assert_null(k->json);
    message_free(&k->base);
}

static void doubles_and_floats_come_back_to_the_last_bit(void **state)
{
    uint64_t random = 88172645463325252u; /* xorshift, always the same */
    (void)state;
    for (int i = 0; i < 20000; i++) {
        kinds k = SESSILE__TEST__KINDS__INIT;
        kinds *back;
        uint32_t low;
        sessile_error err;
        buf out;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        low = (uint32_t)random;
        memcpy(&k.double_field, &random, sizeof random);
        memcpy(&k.float_field, &low, sizeof low);
        buf_init(&out, &allocator_default);
        assert_int_equal(message_to_json(&k.base, LIMIT, &out, &err), SESSILE_OK);
        back = read_kinds(out.data);
        if (!isnan(k.double_field))
            assert_memory_equal(&back->double_field, &k.double_field, 8);
        if (!isnan(k.float_field))
            assert_memory_equal(&back->float_field, &k.float_field, 4);
        message_free(&back->base);
        buf_deinit(&out);
    }
}

/* 3.4028235e+38 is how Google's writer rounds it, and its reader then refuses. */
static void all_readers_take_the_greatest_float(void **state)
{
    (void)state;
    assert_rewritten("{\"floatField\":3.4028235e+38}",
                     "{\"floatField\":3.402823466e+38}");
    assert_rewritten("{\"floats\":[-3.4028235e+38]}", "{\"floats\":[-3.402823466e+38]}");
}

/* ------------------------------------------------------------------ the foreign judge */

/* A line for the judge: what the message of a row is, and a text that is to be the same.
 */
static void put_line(FILE *to, const row *r, const char *text)
{
    kinds *k = read_kinds(r->text);
    size_t size = protobuf_c_message_get_packed_size(&k->base);
    uint8_t *bytes = malloc(size + 1);
    assert_non_null(bytes);
    protobuf_c_message_pack(&k->base, bytes);
    for (size_t i = 0; i < size; i++)
        fprintf(to, "%02x", bytes[i]);
    fprintf(to, "\t%s\n", text);
    free(bytes);
    message_free(&k->base);
}

/* Lines for the judge of a row: none when it knows better, or a line cannot hold it. */
static int lines_of(const row *r)
{
    if (r->written == stricter || strchr(r->text, '\n'))
        return 0;
    return is_refused(r) ? 1 : 2;
}

/* Google's reader makes of each text the message that ours makes, and of what we write;
 * it refuses what we refuse; and we read what its writer writes. */
static void google_agrees_on_each_row(void **state)
{
    char path[] = "/tmp/test_json_XXXXXX", command[200];
    FILE *file = fdopen(mkstemp(path), "w");
    char line[4096];
    FILE *said;
    size_t i;
    (void)state;
    assert_non_null(file);
    for (i = 0; i < ROWS; i++) {
        int lines = lines_of(rows + i);
        if (lines == 1)
            fprintf(file, "refused\t%s\n", rows[i].text);
        if (lines == 2) {
            put_line(file, rows + i, rows[i].text);
            put_line(file, rows + i, written_for(rows + i));
        }
    }
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command,
             "/usr/bin/python3 tests/unit/service/judge.py %s "
             "tests/unit/service/kinds.proto engine/service/sessile.proto",
             path);
    said = popen(command, "r");
    assert_non_null(said);
    for (i = 0; i < ROWS; i++) {
        for (int lines = lines_of(rows + i); lines > 0; lines--) {
            if (!fgets(line, sizeof line, said))
                fail_msg("the judge says nothing of %s", rows[i].text);
            line[strcspn(line, "\n")] = 0;
            if (strncmp(line, is_refused(rows + i) ? "refused" : "same\t", 5) != 0)
                fail_msg("%s: the judge says %s", rows[i].text, line);
            if (!is_refused(rows + i))
                assert_rewritten(line + 5, written_for(rows + i));
        }
    }
    assert_int_equal(pclose(said), 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_read_and_written_as_it_says),
        cmocka_unit_test(values_arrive_in_their_members),
        cmocka_unit_test(doubles_and_floats_come_back_to_the_last_bit),
        cmocka_unit_test(all_readers_take_the_greatest_float),
        cmocka_unit_test(google_agrees_on_each_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
