/*
 * kinds.h: reads and writes messages with every kind of field (kinds.proto), for the
 * tests of JSON. Include it after the headers of the engine: it brings cmocka.
 */
#ifndef SERVICE_KINDS_H
#define SERVICE_KINDS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/json.h"
#include "service/kinds.pb-c.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

#define LIMIT (8 << 20)

typedef Sessile__Test__Kinds kinds;

/* Text in a block of exactly its size, so that a sanitizer sees a read past the end. */
static inline sessile_status read_exact(const char *text, ProtobufCMessage **out,
                                        sessile_error *err)
{
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1);
    sessile_status status;
    assert_non_null(copy);
    memcpy(copy, text, size);
    status = json_to_message(&sessile__test__kinds__descriptor, copy, size, LIMIT,
                             &allocator_default, out, err);
    free(copy);
    return status;
}

static inline kinds *read_kinds(const char *text)
{
    sessile_error err;
    ProtobufCMessage *message;
    if (read_exact(text, &message, &err))
        fail_msg("%s: %s", text, err.message);
    return (kinds *)message;
}

static inline void assert_written(const kinds *message, const char *text)
{
    sessile_error err;
    buf out;
    buf_init(&out, &allocator_default);
    if (message_to_json(&message->base, LIMIT, &out, &err))
        fail_msg("%s: %s", text, err.message);
    assert_string_equal(out.data, text);
    buf_deinit(&out);
}

static inline void assert_rewritten(const char *text, const char *expected)
{
    kinds *message = read_kinds(text);
    assert_written(message, expected);
    message_free(&message->base);
}

/* Refused as INVALID, and the error has this in it. */
static inline void assert_refused(const char *text, const char *sentence)
{
    sessile_error err;
    ProtobufCMessage *message;
    if (read_exact(text, &message, &err) != SESSILE_INVALID)
        fail_msg("not refused: %s", text);
    assert_null(message);
    if (!strstr(err.message, sentence))
        fail_msg("%s: \"%s\" does not say: %s", text, err.message, sentence);
}

static inline void assert_refused_at(const char *text, const char *beginning)
{
    sessile_error err;
    ProtobufCMessage *message;
    assert_refused(text, beginning);
    (void)read_exact(text, &message, &err);
    if (strstr(err.message, beginning) != err.message)
        fail_msg("%s: \"%s\" does not begin with: %s", text, err.message, beginning);
}

static inline void assert_unwritable(const kinds *message, sessile_status expected,
                                     const char *sentence)
{
    sessile_error err;
    buf out;
    buf_init(&out, &allocator_default);
    buf_puts(&out, "before");
    assert_int_equal(message_to_json(&message->base, LIMIT, &out, &err), expected);
    assert_string_equal(out.data, "before");
    if (!strstr(err.message, sentence))
        fail_msg("\"%s\" does not say: %s", err.message, sentence);
    buf_deinit(&out);
}

#endif
