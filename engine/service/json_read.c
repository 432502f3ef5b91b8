/*
 * json_read.c: JSON as a message.
 *
 * Owns what is taken and what is refused. The text is checked first, by json_check();
 * then it is walked where it lies, so that what stands in a Json can be kept byte for
 * byte. Must never leave half a value in a message: what a value needs is allocated and
 * filled before the member is set, so that message_free() is right at any moment.
 */
#include "service/json_reader.h"

#include <string.h>

#include "base/text.h"

#define ECHO_MAX 40 /* bytes of a name that is not known */

/* depth: the objects and arrays around the value. */
static sessile_status read_message(reader *r, const place *at, unsigned depth, json value,
                                   const ProtobufCMessageDescriptor *type,
                                   ProtobufCMessage **out);

/* ------------------------------------------------------------------ values */

static sessile_status read_json(reader *r, json value,
                                const ProtobufCMessageDescriptor *type,
                                ProtobufCMessage **out)
{
    ProtobufCMessage *message = host_alloc(r->alloc, type->sizeof_message);
    char *text = host_dup(r->alloc, value.at, value.size);
    if (!message || !text) {
        host_free(message);
        host_free(text);
        return fail_nomem(r->err);
    }
    protobuf_c_message_init(type, message);
    *json_text(message) = text;
    *out = message;
    return SESSILE_OK;
}

/* One value into `to`: a member, or an element of an array. On failure it is unchanged,
 * or has nothing to free. */
static sessile_status read_value(reader *r, const place *at, unsigned depth, json value,
                                 void *to)
{
    const ProtobufCFieldDescriptor *field = at->field;
    double real;
    sessile_status status;

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return scalar_32(r, at, value, 1, to);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return scalar_32(r, at, value, 0, to);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return scalar_64(r, at, value, 1, to);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return scalar_64(r, at, value, 0, to);
    case PROTOBUF_C_TYPE_FLOAT:
        status = scalar_real(r, at, value, 1, &real);
        *(float *)to = (float)real;
        return status;
    case PROTOBUF_C_TYPE_DOUBLE:
        return scalar_real(r, at, value, 0, to);
    case PROTOBUF_C_TYPE_BOOL:
        if (value.type != JSON_TRUE && value.type != JSON_FALSE)
            return fail_type(r, at, "true or false", value);
        *(protobuf_c_boolean *)to = value.type == JSON_TRUE;
        return SESSILE_OK;
    case PROTOBUF_C_TYPE_ENUM:
        return scalar_enum(r, at, value, to);
    case PROTOBUF_C_TYPE_STRING:
        return scalar_string(r, at, value, to);
    case PROTOBUF_C_TYPE_BYTES:
        return scalar_bytes(r, at, value, to);
    case PROTOBUF_C_TYPE_MESSAGE:
        if (is_json_field(field))
            return read_json(r, value, field->descriptor, to);
        return read_message(r, at, depth, value, field->descriptor, to);
    }
    return SESSILE_OK;
}

/* Counts values before memory is taken for them. */
static sessile_status count_values(reader *r, const place *at, size_t more)
{
    r->values += more;
    return r->values <= JSON_VALUES_MOST
               ? SESSILE_OK
               : fail_at(r->err, SESSILE_LIMIT, at,
                         "the message has more than %d values [values]: split it",
                         JSON_VALUES_MOST);
}

static sessile_status read_array(reader *r, place *at, unsigned depth, json value,
                                 ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = at->field;
    size_t *filled = member_of(message, field->quantifier_offset);
    size_t size = size_of_type(field->type);
    size_t count = 0;
    sessile_status status;
    json_iter it;
    char *array;

    if (value.type != JSON_ARRAY)
        return fail_type(r, at, "an array", value);
    for (it = json_begin(value); json_next(&it);)
        count++;
    if (count == 0)
        return SESSILE_OK;
    status = count_values(r, at, count);
    if (status)
        return status;
    array = host_alloc(r->alloc, count * size);
    if (!array)
        return fail_nomem(r->err);
    memset(array, 0, count * size);
    memcpy(member_of(message, field->offset), &array, sizeof array);
    /* Each element is counted once it is there. */
    for (it = json_begin(value), at->index = 0; json_next(&it); at->index = ++*filled) {
        status = read_value(r, at, depth + 1, it.value, array + *filled * size);
        if (status)
            return status;
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ messages */

/* The field of this name; NULL: there is none, or no memory (r->text.failed). */
static const ProtobufCFieldDescriptor *
find_field(reader *r, const ProtobufCMessageDescriptor *type, json key)
{
    const char *name;
    size_t size;

    r->text.failed = 0;
    if (!json_plain(key, &name, &size)) {
        buf_clear(&r->text);
        if (json_string(&r->text, key))
            return NULL;
        name = r->text.data;
        size = r->text.size;
    }
    for (unsigned i = 0; i < type->n_fields; i++)
        if (field_is(type->fields + i, name, size))
            return type->fields + i;
    return NULL;
}

/* The name is shown as it stands in the text, escapes and all. */
static sessile_status fail_unknown(reader *r, const place *at, json key)
{
    size_t size = key.size - 2;
    size_t shown = utf8_floor(key.at + 1, size, size < ECHO_MAX ? size : ECHO_MAX);
    return fail_at(r->err, SESSILE_INVALID, at, "there is no field \"%.*s%s\"",
                   (int)shown, key.at + 1, shown < size ? "..." : "");
}

/* A field that is there: its value into the message. */
static sessile_status read_field(reader *r, place *at, unsigned depth, json value,
                                 ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = at->field;
    uint32_t *chosen = member_of(message, field->quantifier_offset);
    sessile_status status;

    if (is_repeated(field))
        return read_array(r, at, depth, value, message);
    if (in_oneof(field) && *chosen)
        return fail_at(
            r->err, SESSILE_INVALID, at,
            "this excludes the field \"%s\", which is there, too: leave one out",
            protobuf_c_message_descriptor_get_field(message->descriptor, *chosen)->name);
    status = count_values(r, at, 1);
    if (!status)
        status = read_value(r, at, depth, value, member_of(message, field->offset));
    if (!status && in_oneof(field))
        *chosen = field->id;
    return status;
}

/* One member of an object; first is where the fields of this message are in r->seen. */
static sessile_status read_member(reader *r, const place *at, unsigned depth,
                                  const json_iter *it, size_t first,
                                  ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    place here = {at, find_field(r, type, it->key), NO_INDEX};
    char *seen;

    if (!here.field)
        return r->text.failed ? fail_nomem(r->err) : fail_unknown(r, at, it->key);
    seen = r->seen.data + first + (here.field - type->fields);
    if (*seen)
        return fail_at(r->err, SESSILE_INVALID, &here, "this field is given twice");
    *seen = 1;
    if (it->value.type == JSON_NULL &&
        (is_repeated(here.field) || !is_json_field(here.field)))
        return SESSILE_OK;
    return read_field(r, &here, depth, it->value, message);
}

static sessile_status read_message(reader *r, const place *at, unsigned depth, json value,
                                   const ProtobufCMessageDescriptor *type,
                                   ProtobufCMessage **out)
{
    size_t first = r->seen.size;
    sessile_status status = SESSILE_OK;
    ProtobufCMessage *message;
    json_iter it;

    if (value.type != JSON_OBJECT)
        return fail_type(r, at, "an object", value);
    if (depth >= JSON_MESSAGE_DEPTH)
        return fail_at(r->err, SESSILE_LIMIT, at,
                       "messages are nested deeper than %d levels [depth]",
                       JSON_MESSAGE_DEPTH);
    if (buf_reserve(&r->seen, type->n_fields))
        return fail_nomem(r->err);
    message = host_alloc(r->alloc, type->sizeof_message);
    if (!message)
        return fail_nomem(r->err);
    protobuf_c_message_init(type, message);
    memset(r->seen.data + first, 0, type->n_fields);
    r->seen.size += type->n_fields;
    for (it = json_begin(value); !status && json_next(&it);)
        status = read_member(r, at, depth + 1, &it, first, message);
    r->seen.size = first;
    if (status)
        message_free(message);
    else
        *out = message;
    return status;
}

sessile_status json_to_message(const ProtobufCMessageDescriptor *type, const char *text,
                               size_t size, size_t limit, const allocator *a,
                               ProtobufCMessage **out, sessile_error *err)
{
    reader r = {a, {0}, {0}, {0}, 0, err};
    sessile_status status;

    *out = NULL;
    if (size > limit)
        return fail_size(err, limit);
    buf_init(&r.text, a);
    buf_init(&r.number, a);
    buf_init(&r.seen, a);
    /* The copy without white space is not needed: a Json keeps what it has. */
    status = json_check(&r.text, text, size, JSON_TEXT_DEPTH, err);
    if (!status)
        status = read_message(&r, NULL, 0, json_of(text, size), type, out);
    buf_deinit(&r.text);
    buf_deinit(&r.number);
    buf_deinit(&r.seen);
    return status;
}
