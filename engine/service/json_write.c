/*
 * json_write.c: a message as JSON.
 *
 * Owns what is written and what is left out. Must never write what is not JSON: strings
 * are checked to be UTF-8, and a Json to be one value, since nobody has done so when a
 * message came over gRPC.
 */
#include "service/json_parts.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

typedef struct writer {
    buf *out;
    size_t start, limit;
    buf checked; /* where json_check() leaves its copy */
    sessile_error *err;
} writer;

/* depth: the objects and arrays around the value. */
static sessile_status write_message(writer *w, const place *at, unsigned depth,
                                    const ProtobufCMessage *message);

/* The value of a member or an element; of a pointer, whatever it points to, as protobuf-c
 * reads them itself. */
#define VALUE(type, at) (*(type const *)(at))

static int is_zero(const void *value, size_t size)
{
    static const char zeros[sizeof(uint64_t)];
    return memcmp(value, zeros, size) == 0;
}

/* Whether the field is written. Members of a oneof are there even with their default. */
static int is_present(const ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field)
{
    const void *value = member_of(message, field->offset);
    const void *quantifier = member_of(message, field->quantifier_offset);

    if (is_repeated(field))
        return VALUE(size_t, quantifier) > 0;
    if (in_oneof(field) && VALUE(uint32_t, quantifier) != field->id)
        return 0;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return VALUE(ProtobufCMessage *, value) != NULL;
    if (in_oneof(field))
        return 1;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return VALUE(char *, value) && *VALUE(char *, value);
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return VALUE(ProtobufCBinaryData, value).len > 0;
    return !is_zero(value, size_of_type(field->type));
}

static void write_name(writer *w, const char *name)
{
    char c;
    buf_putc(w->out, '"');
    while ((c = camel_next(&name)))
        buf_putc(w->out, c);
    buf_puts(w->out, "\":");
}

static sessile_status write_string(writer *w, const place *at, const char *text)
{
    size_t size = text ? strlen(text) : 0;
    if (!utf8_valid(text, size))
        return fail_at(w->err, SESSILE_INVALID, at, "this text is not UTF-8");
    json_put_string(w->out, text, size);
    return SESSILE_OK;
}

static void write_real(writer *w, double number, int is_float)
{
    if (isnan(number))
        buf_puts(w->out, "\"NaN\"");
    else if (isinf(number))
        buf_puts(w->out, number < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        number_put(w->out, number, is_float);
}

static void write_bytes(writer *w, const ProtobufCBinaryData *bytes)
{
    buf_putc(w->out, '"');
    if (bytes->len)
        base64_put(w->out, bytes->data, bytes->len);
    buf_putc(w->out, '"');
}

static void write_enum(writer *w, const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    if (value)
        json_put_cstring(w->out, value->name);
    else
        buf_put_i64(w->out, number);
}

static sessile_status write_json(writer *w, const place *at, unsigned depth,
                                 ProtobufCMessage *message)
{
    const char *text = *json_text(message);
    size_t size = text ? strlen(text) : 0;
    sessile_status status;
    json value;

    buf_clear(&w->checked);
    status = json_check(&w->checked, text, size, JSON_TEXT_DEPTH - depth, w->err);
    if (status) {
        fail_within(w->err, at);
        return status;
    }
    value = json_of(text, size); /* without the white space around it */
    buf_put(w->out, value.at, value.size);
    return SESSILE_OK;
}

static void write_quoted(writer *w, int is_signed, const void *value)
{
    buf_putc(w->out, '"');
    if (is_signed)
        buf_put_i64(w->out, VALUE(int64_t, value));
    else
        buf_put_u64(w->out, VALUE(uint64_t, value));
    buf_putc(w->out, '"');
}

/* One value: a member, or an element of an array. */
static sessile_status write_value(writer *w, const place *at, unsigned depth,
                                  const void *value)
{
    const ProtobufCFieldDescriptor *field = at->field;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        buf_put_i64(w->out, VALUE(int32_t, value));
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        buf_put_u64(w->out, VALUE(uint32_t, value));
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        write_quoted(w, 1, value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        write_quoted(w, 0, value);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        write_real(w, VALUE(float, value), 1);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_real(w, VALUE(double, value), 0);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        buf_puts(w->out, VALUE(protobuf_c_boolean, value) ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(w, field->descriptor, VALUE(int, value));
        break;
    case PROTOBUF_C_TYPE_STRING:
        return write_string(w, at, VALUE(char *, value));
    case PROTOBUF_C_TYPE_BYTES:
        write_bytes(w, value);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        if (is_json_field(field))
            return write_json(w, at, depth, VALUE(ProtobufCMessage *, value));
        return write_message(w, at, depth, VALUE(ProtobufCMessage *, value));
    }
    return SESSILE_OK;
}

static sessile_status check_room(writer *w)
{
    if (w->out->failed)
        return fail_nomem(w->err);
    return w->out->size - w->start > w->limit ? fail_size(w->err, w->limit) : SESSILE_OK;
}

static sessile_status write_array(writer *w, place *at, unsigned depth,
                                  const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = at->field;
    const char *element = VALUE(char *, member_of(message, field->offset));
    size_t count = VALUE(size_t, member_of(message, field->quantifier_offset));
    sessile_status status = SESSILE_OK;

    buf_putc(w->out, '[');
    for (at->index = 0; !status && at->index < count; at->index++) {
        if (at->index)
            buf_putc(w->out, ',');
        status = write_value(w, at, depth + 1, element);
        if (!status)
            status = check_room(w);
        element += size_of_type(field->type);
    }
    buf_putc(w->out, ']');
    return status;
}

static sessile_status write_message(writer *w, const place *at, unsigned depth,
                                    const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    sessile_status status = SESSILE_OK;
    int written = 0;

    if (depth >= JSON_MESSAGE_DEPTH)
        return fail_at(w->err, SESSILE_LIMIT, at,
                       "messages are nested deeper than %d levels [depth]",
                       JSON_MESSAGE_DEPTH);
    buf_putc(w->out, '{');
    for (unsigned i = 0; !status && i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = type->fields + i;
        place here = {at, field, NO_INDEX};
        if (!is_present(message, field))
            continue;
        if (written++)
            buf_putc(w->out, ',');
        write_name(w, field->name);
        if (is_repeated(field))
            status = write_array(w, &here, depth + 1, message);
        else
            status = write_value(w, &here, depth + 1, member_of(message, field->offset));
        if (!status)
            status = check_room(w);
    }
    buf_putc(w->out, '}');
    return status;
}

sessile_status message_to_json(const ProtobufCMessage *message, size_t limit, buf *out,
                               sessile_error *err)
{
    writer w = {out, out->size, limit, {0}, err};
    sessile_status status;

    buf_init(&w.checked, out->alloc);
    status = write_message(&w, NULL, 0, message);
    if (!status)
        status = check_room(&w);
    if (status) {
        out->size = w.start;
        if (out->data)
            out->data[out->size] = 0;
    }
    buf_deinit(&w.checked);
    return status;
}
