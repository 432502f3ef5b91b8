/*
 * decode.c: requests, from bytes that anybody may have made.
 *
 * protobuf-c unpacks a message without a look at its strings, and turns a string with a
 * NUL in it into a shorter one; and a small request can ask for much memory, since each
 * empty part of it becomes a struct. So the bytes are walked first, along the
 * descriptors: strings are UTF-8 without a NUL, the depth and the number of parts are
 * bounded. What the walk does not understand is refused, so it and protobuf-c see the
 * same message.
 */
#include "service/memories.h"

#include <string.h>

#include "service/wire.h"

enum { DEPTH_MOST = 16, PARTS_MOST = 100000 };

typedef struct walk {
    size_t parts;
    sessile_error *err;
} walk;

static sessile_status walk_message(walk *w, const ProtobufCMessageDescriptor *type,
                                   reader bytes, int depth);

static sessile_status walk_field(walk *w, const ProtobufCMessageDescriptor *type,
                                 const field *f, int depth)
{
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(type, f->id);
    size_t size = (size_t)(f->bytes.end - f->bytes.at);
    if (!known)
        return SESSILE_OK;
    if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (f->type != WIRE_SIZED)
            return fail(w->err, SESSILE_INVALID, "%s.%s is no message", type->short_name,
                        known->name);
        return walk_message(w, known->descriptor, f->bytes, depth + 1);
    }
    if (known->type != PROTOBUF_C_TYPE_STRING)
        return SESSILE_OK;
    if (f->type != WIRE_SIZED || memchr(f->bytes.at, 0, size) ||
        !utf8_valid(f->bytes.at, size))
        return fail(w->err, SESSILE_INVALID,
                    "%s.%s is not text in UTF-8 without a NUL: names that are not "
                    "belong into Session.raw",
                    type->short_name, known->name);
    return SESSILE_OK;
}

static sessile_status walk_message(walk *w, const ProtobufCMessageDescriptor *type,
                                   reader bytes, int depth)
{
    if (depth > DEPTH_MOST)
        return fail(w->err, SESSILE_LIMIT, "the request is nested more than %d deep",
                    DEPTH_MOST);
    while (bytes.at < bytes.end) {
        field f;
        if (!read_field(&bytes, &f))
            return fail(w->err, SESSILE_INVALID, "the request is no %s of sessile.proto",
                        type->short_name);
        if (++w->parts > PARTS_MOST)
            return fail(w->err, SESSILE_LIMIT, "the request has more than %d parts",
                        PARTS_MOST);
        sessile_status status = walk_field(w, type, &f, depth);
        if (status)
            return status;
    }
    return SESSILE_OK;
}

static void *arena_alloc(void *memory, size_t size)
{
    return arena_new(memory, size);
}

static void arena_keep(void *memory, void *ptr)
{
    (void)memory;
    (void)ptr;
}

sessile_status decode_request(const ProtobufCMessageDescriptor *type, const void *data,
                              size_t size, arena *memory, ProtobufCMessage **out,
                              sessile_error *err)
{
    const reader bytes = reader_of(data, size);
    walk w = {0, err};
    ProtobufCAllocator from = {arena_alloc, arena_keep, memory};
    sessile_status status = walk_message(&w, type, bytes, 0);
    if (status)
        return status;
    *out = protobuf_c_message_unpack(type, &from, size, bytes.at);
    return *out ? SESSILE_OK
                : fail(err, SESSILE_INVALID, "the request is no %s of sessile.proto",
                       type->short_name);
}

/* 1: it is a session's name, or a memory's. */
static int is_named(const ProtobufCFieldDescriptor *first)
{
    return first && (first->descriptor == &sessile__v1__session__descriptor ||
                     first->descriptor == &sessile__v1__memory__descriptor);
}

/* The bytes of what a message is about: its field 1, or that of the one part it has. */
static reader find_named(const ProtobufCMessageDescriptor *type, reader bytes,
                         const ProtobufCMessageDescriptor **of)
{
    const ProtobufCFieldDescriptor *first =
        protobuf_c_message_descriptor_get_field(type, 1);
    field f;
    *of = is_named(first) ? first->descriptor : NULL;
    if (*of)
        return find_field(bytes, 1);
    while (bytes.at < bytes.end && read_field(&bytes, &f)) {
        const ProtobufCFieldDescriptor *part =
            protobuf_c_message_descriptor_get_field(type, f.id);
        if (!part || part->type != PROTOBUF_C_TYPE_MESSAGE || f.type != WIRE_SIZED)
            continue;
        first = protobuf_c_message_descriptor_get_field(part->descriptor, 1);
        *of = is_named(first) ? first->descriptor : NULL;
        if (*of && part->label != PROTOBUF_C_LABEL_REPEATED)
            return find_field(f.bytes, 1);
    }
    return (reader){NULL, NULL};
}

/* Memory.shared */
static int is_shared(reader r)
{
    int shared = 0;
    field f;
    while (r.at < r.end && read_field(&r, &f))
        if (f.id == 3 && f.type == WIRE_VARINT)
            shared = f.number != 0;
    return shared;
}

decoded_names decode_names(const ProtobufCMessageDescriptor *type, const void *data,
                           size_t size, sessile_slice out[3])
{
    const ProtobufCMessageDescriptor *of;
    const reader named = find_named(type, reader_of(data, size), &of);
    const reader raw = find_field(named, 4);
    const int is_memory = of == &sessile__v1__memory__descriptor;
    for (uint32_t i = 0; i < 3; i++) {
        reader name = find_field(raw.at ? raw : named, i + 1);
        out[i] = (sessile_slice){(const char *)name.at, (size_t)(name.end - name.at)};
    }
    if (!is_memory)
        return out[2].size ? NAMES_OWN : NAMES_NONE;
    out[2] = (sessile_slice){NULL, 0};
    if (!named.at)
        return NAMES_NONE;
    return is_shared(named) ? NAMES_SHARED : NAMES_OWN;
}

int decode_has_once(const ProtobufCMessageDescriptor *type, const void *data, size_t size)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].descriptor == &sessile__v1__base__descriptor) {
            reader base = find_field(reader_of(data, size), type->fields[i].id);
            reader once = find_field(base, 2);
            return once.at != once.end;
        }
    return 0;
}
