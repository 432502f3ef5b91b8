/*
 * fuzz_json_message.c: messages of protobuf as JSON, and JSON as messages.
 *
 * The first byte of an input says whether the rest is a message in protobuf's bytes or
 * JSON. Holds: what is written is JSON, is taken again and gives an equal message, which
 * is written as the same text; what is taken can be written; what is refused leaves
 * nothing behind, and its error is UTF-8.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "service/json.h"
#include "service/kinds.pb-c.h"

#define LIMIT (1 << 24)

static const ProtobufCMessageDescriptor *const type = &sessile__test__kinds__descriptor;

static const char *const words[] = {
    "{\"",        "\":",         "\"}",        "\":{\"",     "null",     "\"NaN\"",
    "1e2",        "-0",          "1.0",        "2147483648", "\\u0000",  "\\ud800",
    "inner",      "inners",      "json",       "jsons",      "content",  "strings",
    "choiceText", "choice_json", "int64Field", "bytesField", "floats",   "doubleField",
    "colour",     "\"AA==\"",    "\"-_8\"",    "\x8a\x01",   "\x92\x01", "\xfa\x01",
    NULL};

/* Short, because protobuf_c_message_unpack() calls itself for a message in a message. */
const fuzz_about fuzz_this = {"json_message", 150000, 1 << 11, words};

/* White space around a Json is not part of it. */
static void trim(char *text)
{
    static const char space[] = " \t\n\r";
    size_t size = strlen(text), lead = strspn(text, space);
    if (size == 0)
        return; /* may be a constant */
    while (size > lead && strchr(space, text[size - 1]))
        text[--size] = 0;
    memmove(text, text + lead, size - lead + 1);
}

/* Removes what JSON does not have from a message, and from those that it holds. */
static void forget_unknown(ProtobufCMessage *message)
{
    if (message->descriptor == &sessile__v1__json__descriptor)
        trim(((Sessile__V1__Json *)message)->text);
    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        host_free(message->unknown_fields[i].data);
    host_free(message->unknown_fields);
    message->unknown_fields = NULL;
    message->n_unknown_fields = 0;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = message->descriptor->fields + i;
        char *member = (char *)message + field->offset;
        const void *quantifier = (char *)message + field->quantifier_offset;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t count = *(const size_t *)quantifier;
            for (size_t k = 0; k < count; k++)
                forget_unknown((*(ProtobufCMessage ***)(void *)member)[k]);
        } else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
                   *(const uint32_t *)quantifier == field->id) {
            ProtobufCMessage *inner = *(ProtobufCMessage **)(void *)member;
            if (inner)
                forget_unknown(inner);
        }
    }
}

static void put_packed(buf *out, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    buf_init(out, &allocator_default);
    FUZZ_CHECK(buf_reserve(out, size) == 0);
    FUZZ_CHECK(protobuf_c_message_pack(message, (uint8_t *)out->data) == size);
    out->size = size;
}

static int same(const buf *a, const buf *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* Takes what was written for a message, and compares the two. */
static void read_back(const ProtobufCMessage *message, const buf *text)
{
    ProtobufCMessage *again;
    buf out, bytes, bytes_again;
    FUZZ_CHECK(json_to_message(type, text->data, text->size, LIMIT, &allocator_default,
                               &again, NULL) == SESSILE_OK);
    buf_init(&out, &allocator_default);
    FUZZ_CHECK(message_to_json(again, LIMIT, &out, NULL) == SESSILE_OK);
    FUZZ_CHECK(same(&out, text));
    put_packed(&bytes, message);
    put_packed(&bytes_again, again);
    /* There are many NaN in bytes, and one in JSON. */
    FUZZ_CHECK(strstr(text->data, "\"NaN\"") || same(&bytes, &bytes_again));
    buf_deinit(&bytes);
    buf_deinit(&bytes_again);
    buf_deinit(&out);
    message_free(again);
}

/* Writes a message; 1 when it could be written. */
static int write_out(const ProtobufCMessage *message)
{
    sessile_error err;
    buf out, checked;
    sessile_status status;

    buf_init(&out, &allocator_default);
    buf_init(&checked, &allocator_default);
    status = message_to_json(message, LIMIT, &out, &err);
    if (status) {
        FUZZ_CHECK(status == SESSILE_INVALID || status == SESSILE_LIMIT);
        FUZZ_CHECK(out.size == 0 && utf8_valid(err.message, strlen(err.message)));
    } else {
        FUZZ_CHECK(json_check(&checked, out.data, out.size, JSON_TEXT_DEPTH, NULL) ==
                   SESSILE_OK);
        read_back(message, &out);
    }
    buf_deinit(&out);
    buf_deinit(&checked);
    return status == SESSILE_OK;
}

static void from_bytes(const uint8_t *data, size_t size)
{
    ProtobufCAllocator a = message_allocator(&allocator_default);
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &a, size, data);
    if (!message)
        return;
    forget_unknown(message);
    (void)write_out(message);
    message_free(message);
}

static void from_text(const char *text, size_t size)
{
    ProtobufCMessage *message;
    sessile_error err;
    sessile_status status =
        json_to_message(type, text, size, LIMIT, &allocator_default, &message, &err);
    FUZZ_CHECK((status == SESSILE_OK) == (message != NULL));
    if (status) {
        FUZZ_CHECK(status == SESSILE_INVALID || status == SESSILE_LIMIT);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
        return;
    }
    FUZZ_CHECK(write_out(message));
    message_free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *copy;
    if (size == 0)
        return 0;
    copy = fuzz_copy(data + 1, size - 1);
    if (data[0] & 1)
        from_text(copy, size - 1);
    else
        from_bytes(copy, size - 1);
    free(copy);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        "{\"int32Field\":-1,\"uint32_field\":4294967295,\"int64Field\":\"-"
        "9223372036854775808\","
        "\"uint64Field\":18446744073709551615,\"fixed64Field\":\"1\"}",
        "{\"floatField\":0.1,\"doubleField\":1e-7,\"floats\":[\"NaN\",-1.5],\"doubles\":["
        "\""
        "Infinity\",-0.0]}",
        "{\"boolField\":true,\"stringField\":\"h\\u00e9\\ud83d\\ude00\",\"bytesField\":"
        "\"-_8\","
        "\"colour\":\"DARK_BLUE\",\"colours\":[0,99]}",
        "{\"inner\":{\"name\":\"a\",\"inner\":[{},{\"content\":{\"b\":1.0,\"b\":[]}}]}}",
        "{\"json\":12345678901234567890,\"jsons\":[null,\"\\ud800\",{ \"a\" : 1 }],"
        "\"choiceJson\":[[]]}",
        "{\"int32s\":[1,2],\"bools\":[false],\"strings\":[\"\",\"a\"],\"blobs\":[\"\","
        "\"AA==\"],"
        "\"inners\":[{\"count\":1}],\"choiceText\":\"\"}",
        "{\"choiceNumber\":0}",
        "{\"choiceInner\":{},\"AField\":true,\"last_one_\":true}"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ProtobufCMessage *message;
        buf bytes;
        fuzz_give_text(take, arg, 1, texts[i]);
        FUZZ_CHECK(json_to_message(type, texts[i], strlen(texts[i]), LIMIT,
                                   &allocator_default, &message, NULL) == SESSILE_OK);
        put_packed(&bytes, message);
        fuzz_give(take, arg, 0, bytes.data, bytes.size);
        buf_deinit(&bytes);
        message_free(message);
    }
}
