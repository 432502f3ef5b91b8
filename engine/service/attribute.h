/*
 * attribute.h: a name and a value that is a text, a whole number or a truth: a field of a
 * log line, an attribute of a span.
 *
 * Names are written in the source, as lower-case words with dots and underscores. Values
 * are never what somebody said in a session.
 */
#ifndef SERVICE_ATTRIBUTE_H
#define SERVICE_ATTRIBUTE_H

#include <string.h>

#include "base/buf.h"

typedef enum attribute_type {
    ATTRIBUTE_TEXT,
    ATTRIBUTE_NUMBER,
    ATTRIBUTE_TRUTH
} attribute_type;

typedef struct attribute {
    const char *name;
    attribute_type type;
    sessile_slice text; /* borrowed */
    int64_t number;     /* a truth: 0 or 1 */
} attribute;

static inline attribute attribute_slice(const char *name, sessile_slice text)
{
    return (attribute){name, ATTRIBUTE_TEXT, text, 0};
}

static inline attribute attribute_text(const char *name, const char *text)
{
    return attribute_slice(name, (sessile_slice){text, strlen(text)});
}

static inline attribute attribute_number(const char *name, int64_t number)
{
    return (attribute){name, ATTRIBUTE_NUMBER, {NULL, 0}, number};
}

static inline attribute attribute_truth(const char *name, int truth)
{
    return (attribute){name, ATTRIBUTE_TRUTH, {NULL, 0}, truth != 0};
}

#endif
