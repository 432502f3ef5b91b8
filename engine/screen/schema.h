/*
 * schema.h: JSON Schema, by a library that is loaded when the first schema is opened.
 *
 * The library is schema.so, a shared object of this project around valijson, which is
 * C++. It is built where a C++ compiler and valijson are, and not needed otherwise. It
 * knows drafts 4 and 7, and no references to other documents.
 */
#ifndef SCREEN_SCHEMA_H
#define SCREEN_SCHEMA_H

#include "base/alloc.h"
#include "base/error.h"

#define SCHEMA_SIZE_MAX ((size_t)1 << 20)
#define SCHEMA_DEPTH    128 /* of schemas, and of what they are asked about */

typedef struct schema schema;

/* What a text breaks first. */
typedef struct schema_fault {
    int broken;
    char pointer[256]; /* JSON Pointer (RFC 6901), cut; "" is the whole text */
    char message[128]; /* what the schema wants there; has no words of the text */
} schema_fault;

/* library: the path of schema.so; NULL: where it was installed. UNSUPPORTED: it is not
 * there. INVALID: the text is no schema, or refers to another document. LIMIT: larger
 * than SCHEMA_SIZE_MAX. NOMEM. */
sessile_status schema_open(schema **out, sessile_slice text, const char *library,
                           const allocator *a, sessile_error *err);
void schema_free(schema *s); /* NULL is ignored */

/* Asks about a JSON text. Many threads may ask the same schema. INVALID: it is no JSON.
 * LIMIT: it is nested deeper than SCHEMA_DEPTH, or an expression of the schema tries too
 * much. NOMEM. */
sessile_status schema_check(const schema *s, sessile_slice text, schema_fault *fault,
                            sessile_error *err);

#endif
