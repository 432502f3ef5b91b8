/*
 * schema_library.h: what schema.c and schema.so say to each other: four functions in C.
 *
 * The other side is valijson/schema.cpp. No exception leaves it, and it keeps nothing of
 * what it is given.
 */
#ifndef SCREEN_SCHEMA_LIBRARY_H
#define SCREEN_SCHEMA_LIBRARY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCHEMA_LIBRARY_VERSION 1

enum { SCHEMA_OK = 0, SCHEMA_BROKEN, SCHEMA_NOMEM, SCHEMA_FAILED };

/* Expressions of a schema (ECMA 262, matched anywhere in a text). new: NULL when it is
 * wrong. search: 1, 0, or -1 when it tried too
 * much or the text is too long. Many threads may search. */
typedef struct schema_expressions {
    void *(*new_)(const char *text, size_t size);
    int (*search)(const void *expression, const char *text, size_t size);
    void (*free_)(void *expression);
} schema_expressions;

/* Where the reasons go, NUL-terminated and cut. */
typedef struct schema_report {
    char *pointer;
    size_t pointer_size;
    char *message;
    size_t message_size;
} schema_report;

/* sessile_schema_version, _open, _check, _close. Texts are valid JSON. */
typedef int schema_library_version(void);
typedef int schema_library_open(void **out, const char *text, size_t size,
                                const schema_expressions *expressions, char *why,
                                size_t why_size);
typedef int schema_library_check(const void *schema, const char *text, size_t size,
                                 const schema_report *report);
typedef void schema_library_close(void *schema);

#ifdef __cplusplus
}
#endif

#endif
