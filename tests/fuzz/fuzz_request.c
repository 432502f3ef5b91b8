/*
 * fuzz_request.c: requests of the service's methods, from any client.
 *
 * The first byte chooses the method, the rest is its request.
 *
 * Holds: what is refused is INVALID or LIMIT, and the sentence is text; what is accepted
 * packs to bytes that are accepted too and pack to themselves, has no string that ends
 * early, and names a session only if a worker finds it without unpacking; the memory for
 * a request is bounded by its size.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "service/memory.pb-c.h"
#include "service/records.pb-c.h"
#include "service/server.h"

static const char *const words[] = {"\x0a\x03\x1a\x01s",
                                    "\x1a\x01",
                                    "\x0a\x00",
                                    "\x12\x00",
                                    "\x22\x06\x0a\x01",
                                    "\x0d\x01\x02\x03\x04",
                                    "\x7a\x00",
                                    "\x10\x01",
                                    "\xff\xff\xff\xff",
                                    "\xed\xa0\x80",
                                    "\xc3\xa4",
                                    "{\"role\":\"user\"}",
                                    NULL};

const fuzz_about fuzz_this = {"request", 60000, 1 << 12, words};

static const ProtobufCServiceDescriptor *const services[] = {
    &sessile__v1__session_service__descriptor, &sessile__v1__record_service__descriptor,
    &sessile__v1__memory_service__descriptor};
enum { SERVICES = sizeof services / sizeof *services };

static unsigned method_count(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < SERVICES; i++)
        n += services[i]->n_methods;
    return n;
}

static const ProtobufCMessageDescriptor *input_of(unsigned i)
{
    size_t s = 0;
    for (i %= method_count(); i >= services[s]->n_methods; s++)
        i -= services[s]->n_methods;
    return services[s]->methods[i].input;
}

/* ---------------------------------------------------------------------- decoding */

static size_t taken; /* bytes that the arena has */

static void *count_bytes(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    taken = taken - (ptr ? osize : 0) + nsize;
    if (nsize)
        return realloc(ptr, nsize);
    free(ptr);
    return NULL;
}

typedef struct decoded {
    arena memory;
    ProtobufCMessage *message;
} decoded;

static sessile_status decode(const ProtobufCMessageDescriptor *type, const void *data,
                             size_t size, decoded *out)
{
    static const allocator counting = {count_bytes, NULL};
    sessile_error err = {0};
    arena_init(&out->memory, &counting);
    out->message = NULL;
    sessile_status status =
        decode_request(type, data, size, &out->memory, &out->message, &err);
    FUZZ_CHECK(status == err.code && !status == (out->message != NULL));
    FUZZ_CHECK(!status || status == SESSILE_INVALID || status == SESSILE_LIMIT);
    FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    FUZZ_CHECK(!status == !err.message[0]);
    return status;
}

static unsigned char *pack(const ProtobufCMessage *m, size_t *size)
{
    *size = protobuf_c_message_get_packed_size(m);
    unsigned char *out = malloc(*size + 1);
    FUZZ_CHECK(out != NULL && protobuf_c_message_pack(m, out) == *size);
    return out;
}

/* 1: what a field has names a session, or a memory. */
static int is_named(const ProtobufCFieldDescriptor *field)
{
    return field && (field->descriptor == &sessile__v1__session__descriptor ||
                     field->descriptor == &sessile__v1__memory__descriptor);
}

static int is(sessile_slice name, const void *data, size_t size)
{
    return name.size == size && (size == 0 || memcmp(name.data, data, size) == 0);
}

static void compare_memory(const Sessile__V1__Memory *memory, decoded_names named,
                           const sessile_slice names[3])
{
    FUZZ_CHECK(named == (!memory          ? NAMES_NONE
                         : memory->shared ? NAMES_SHARED
                                          : NAMES_OWN));
    FUZZ_CHECK(names[2].size == 0);
    if (memory && memory->raw)
        FUZZ_CHECK(is(names[0], memory->raw->agent.data, memory->raw->agent.len) &&
                   is(names[1], memory->raw->user.data, memory->raw->user.len));
    else if (memory)
        FUZZ_CHECK(is(names[0], memory->agent, strlen(memory->agent)) &&
                   is(names[1], memory->user, strlen(memory->user)));
}

/* What is read out of the bytes of a message is what the message has. */
static void compare_names(const ProtobufCMessage *m, const void *packed, size_t size)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(m->descriptor, 1);
    const Sessile__V1__Session *session;
    sessile_slice names[3];
    decoded_names named = decode_names(m->descriptor, packed, size, names);
    if (!is_named(field))
        return;
    memcpy(&session, (const char *)m + field->offset, sizeof session);
    if (field->descriptor == &sessile__v1__memory__descriptor) {
        compare_memory((const void *)session, named, names);
        return;
    }
    FUZZ_CHECK(session || !named);
    if (session && session->raw)
        FUZZ_CHECK(is(names[0], session->raw->agent.data, session->raw->agent.len) &&
                   is(names[1], session->raw->user.data, session->raw->user.len) &&
                   is(names[2], session->raw->id.data, session->raw->id.len));
    else if (session)
        FUZZ_CHECK(is(names[0], session->agent, strlen(session->agent)) &&
                   is(names[1], session->user, strlen(session->user)) &&
                   is(names[2], session->id, strlen(session->id)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decoded first, again;
    size_t packed_size, again_size;
    if (size == 0)
        return 0;
    const ProtobufCMessageDescriptor *type = input_of(*data++);
    size--;
    void *bytes = fuzz_copy(data, size);
    sessile_slice names[3];
    (void)decode_names(type, bytes, size, names);
    (void)decode_has_once(type, bytes, size);
    sessile_status status = decode(type, bytes, size, &first);
    FUZZ_CHECK(taken <= (64 << 10) + 400 * size);
    if (!status) {
        unsigned char *packed = pack(first.message, &packed_size);
        compare_names(first.message, packed, packed_size);
        FUZZ_CHECK(decode(type, packed, packed_size, &again) == SESSILE_OK);
        unsigned char *packed_again = pack(again.message, &again_size);
        FUZZ_CHECK(again_size == packed_size &&
                   memcmp(packed, packed_again, packed_size) == 0);
        free(packed_again);
        free(packed);
        arena_free(&again.memory);
    }
    arena_free(&first.memory);
    FUZZ_CHECK(taken == 0);
    free(bytes);
    return 0;
}

/* ---------------------------------------------------------------------- seeds */

enum { SEED_DEPTH = 3 };

/* A message with each of its fields once, down to a depth. */
static void put_message(buf *out, const ProtobufCMessageDescriptor *type, int depth)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &type->fields[i];
        buf inner;
        unsigned wire =
            f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES ||
                    f->type == PROTOBUF_C_TYPE_MESSAGE
                ? 2
            : f->type == PROTOBUF_C_TYPE_FIXED32 || f->type == PROTOBUF_C_TYPE_FLOAT ? 5
            : f->type == PROTOBUF_C_TYPE_DOUBLE                                      ? 1
                                                                                     : 0;
        if (f->id > 15) /* a tag of one byte is enough */
            continue;
        buf_putc(out, (char)(f->id << 3 | wire));
        buf_init(&inner, &allocator_default);
        if (f->type == PROTOBUF_C_TYPE_MESSAGE && depth < SEED_DEPTH)
            put_message(&inner, f->descriptor, depth + 1);
        else if (wire == 2 && f->type != PROTOBUF_C_TYPE_MESSAGE)
            buf_puts(&inner, "s");
        if (wire == 2 && inner.size < 128) {
            buf_putc(out, (char)inner.size);
            buf_put(out, inner.data, inner.size);
        } else if (wire == 2) {
            buf_putc(out, 0);
        } else {
            buf_put(out, "\x01\0\0\0\0\0\0", wire == 5 ? 4 : wire == 1 ? 8 : 1);
        }
        buf_deinit(&inner);
    }
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    for (unsigned i = 0; i < method_count(); i++) {
        buf seed;
        buf_init(&seed, &allocator_default);
        put_message(&seed, input_of(i), 0);
        FUZZ_CHECK(!seed.failed && (seed.size > 0 || input_of(i)->n_fields == 0));
        fuzz_give(take, arg, (int)i, seed.data, seed.size);
        buf_deinit(&seed);
    }
}
