/*
 * trace_context.h: which trace and which span something belongs to, as the header
 * `traceparent` of W3C Trace Context passes it on.
 */
#ifndef SERVICE_TRACE_CONTEXT_H
#define SERVICE_TRACE_CONTEXT_H

#include <stddef.h>

#define TRACE_ID_SIZE 16
#define SPAN_ID_SIZE  8

enum { TRACE_SAMPLED = 1, TRACE_RANDOM = 2 }; /* flags that are passed on */

/* Zeroed: no trace. */
typedef struct trace_context {
    unsigned char trace[TRACE_ID_SIZE], span[SPAN_ID_SIZE];
    unsigned char flags;
} trace_context;

int trace_context_is_set(const trace_context *c); /* NULL: no */

/* "00-<32 hex>-<16 hex>-<2 hex>" and a NUL. */
#define TRACEPARENT_SIZE 56

/* Reads the value of one traceparent header: 0; -1: it is not one, *out is zeroed, and
 * the call begins a trace of its own. Versions after 00 are read as the specification
 * says: the same four fields, and whatever follows behind another '-'. */
int traceparent_parse(trace_context *out, const char *text, size_t size);
/* Writes version 00. "" when no trace is set: then no header is sent. */
void traceparent_print(const trace_context *c, char out[TRACEPARENT_SIZE]);

#endif
