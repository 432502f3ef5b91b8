/*
 * json_parts.h: what the reader and the writer of json.h share: where a field is, for
 * errors, what a descriptor says of it, and numbers. For the files json_*.c of this
 * folder.
 */
#ifndef SERVICE_JSON_PARTS_H
#define SERVICE_JSON_PARTS_H

#include "codec/json.h"
#include "service/json.h"

/* ---- places (json_parts.c) */

#define NO_INDEX SIZE_MAX

/* A field on the way from the outermost message, which has no place: NULL. */
typedef struct place {
    const struct place *up;
    const ProtobufCFieldDescriptor *field;
    size_t index; /* of an element; NO_INDEX: the field itself */
} place;

/* fail() with "path: " before the sentence; "the message: " for NULL. */
sessile_status fail_at(sessile_error *err, sessile_status status, const place *at,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds the path to the front of the error in err. */
void fail_within(sessile_error *err, const place *at);
sessile_status fail_size(sessile_error *err, size_t limit);

/* ---- descriptors (json_parts.c) */

/* The next letter of a field's lowerCamelCase name; 0 at its end. */
char camel_next(const char **name);
/* 1 when size bytes are the field's name, in either spelling. */
int field_is(const ProtobufCFieldDescriptor *field, const char *name, size_t size);
/* 1 for fields that are JSON themselves; json_text() is the text in such a message. */
int is_json_field(const ProtobufCFieldDescriptor *field);
char **json_text(ProtobufCMessage *message);
/* The size of a value: a member, or an element of an array. */
size_t size_of_type(ProtobufCType type);

static inline void *member_of(const void *message, size_t offset)
{
    return (char *)(uintptr_t)message + offset;
}

static inline int is_repeated(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

static inline int in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/* ---- numbers (json_number.c) */

/* The number as a two's complement integer of this many bits. 0; -1: it is not whole, or
 * not in range. */
int number_whole(json number, unsigned bits, int is_signed, uint64_t *out);
/* The nearest double, or float, whatever the locale; copy is used for the text. 0; -1:
 * beyond its range, or no memory (copy->failed). */
int number_real(json number, int is_float, buf *copy, double *out);
/* Appends a double, or what was a float. */
void number_put(buf *out, double number, int is_float);

#endif
