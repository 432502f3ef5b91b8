/*
 * json_parts.c: where a field is and what it is called, for the reader and the writer.
 *
 * Owns the path in an error. Paths are printed from the end, because that is what tells
 * fields apart: where there is no room for all of it, the beginning is left out.
 */
#include "service/json_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATH_SIZE 160
#define NAME_SIZE 64

/* ------------------------------------------------------------------ places */

/* Text that is written from its end to its beginning. */
typedef struct tail {
    char text[PATH_SIZE];
    size_t at;
} tail;

static void put_before(tail *t, const char *text, size_t size)
{
    size_t fits = size < t->at ? size : t->at;
    t->at -= fits;
    memcpy(t->text + t->at, text + size - fits, fits);
}

static void put_name_before(tail *t, const char *name)
{
    char camel[NAME_SIZE];
    size_t size = 0;
    while (size < sizeof camel && (camel[size] = camel_next(&name)))
        size++;
    put_before(t, camel, size);
}

/* The path, which lies in t. */
static const char *path_of(tail *t, const place *at)
{
    t->at = sizeof t->text - 1;
    t->text[t->at] = 0;
    if (!at)
        return "the message";
    for (; at; at = at->up) {
        if (at->index != NO_INDEX) {
            char index[32];
            int size = snprintf(index, sizeof index, "[%zu]", at->index);
            put_before(t, index, (size_t)size);
        }
        put_name_before(t, at->field->name);
        if (at->up)
            put_before(t, ".", 1);
    }
    return t->text + t->at;
}

sessile_status fail_at(sessile_error *err, sessile_status status, const place *at,
                       const char *format, ...)
{
    char sentence[sizeof err->message];
    tail path;
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return fail(err, status, "%s: %s", path_of(&path, at), sentence);
}

void fail_within(sessile_error *err, const place *at)
{
    tail path;
    (void)fail_prefix(err, "%s", path_of(&path, at));
}

sessile_status fail_size(sessile_error *err, size_t limit)
{
    return fail(
        err, SESSILE_LIMIT,
        "the JSON of this message is longer than %zu bytes: split it, or raise the "
        "limit [size]",
        limit);
}

/* ------------------------------------------------------------------ descriptors */

char camel_next(const char **name)
{
    const char *at = *name;
    char c;

    while (*at == '_')
        at++;
    c = *at;
    if (at > *name && c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    *name = c ? at + 1 : at;
    return c;
}

int field_is(const ProtobufCFieldDescriptor *field, const char *name, size_t size)
{
    const char *camel = field->name;
    size_t i;

    if (strlen(camel) == size && memcmp(camel, name, size) == 0)
        return 1;
    for (i = 0; i < size; i++) {
        char c = camel_next(&camel);
        if (c == 0 || c != name[i])
            return 0;
    }
    return camel_next(&camel) == 0;
}

int is_json_field(const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessageDescriptor *type = field->descriptor;
    return field->type == PROTOBUF_C_TYPE_MESSAGE &&
           strcmp(type->name, "sessile.v1.Json") == 0 && type->n_fields == 1 &&
           type->fields[0].type == PROTOBUF_C_TYPE_STRING && !is_repeated(type->fields);
}

char **json_text(ProtobufCMessage *message)
{
    return member_of(message, message->descriptor->fields[0].offset);
}

size_t size_of_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return 4;
    }
}

/* ------------------------------------------------------------------ memory */

/* protobuf-c frees without a size, so that blocks have to know theirs. */
static void *take(void *a, size_t size)
{
    return host_alloc(a, size);
}

static void give_back(void *a, void *block)
{
    (void)a;
    host_free(block);
}

ProtobufCAllocator message_allocator(const allocator *a)
{
    ProtobufCAllocator made = {take, give_back, (void *)(uintptr_t)a};
    return made;
}

void message_free(ProtobufCMessage *message)
{
    ProtobufCAllocator a = message_allocator(NULL);
    protobuf_c_message_free_unpacked(message, &a);
}
