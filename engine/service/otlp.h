/*
 * otlp.h: spans, log records and metrics in the JSON of OTLP 1.x.
 *
 * A request is a head, records with commas between, and a tail:
 *
 *     {"resourceSpans":[{"resource":{…},"scopeSpans":[{"scope":{…},"spans":[ … ]}]}]}
 *
 * The mapping is that of proto3 with OTLP's exceptions: names in lowerCamelCase, ids as
 * hex, enums as numbers, 64-bit integers as strings.
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
#ifndef SERVICE_OTLP_H
#define SERVICE_OTLP_H

#include "service/attribute.h"
#include "service/logline.h"
#include "service/metrics.h"
#include "service/trace_context.h"

/* A text longer than this is cut. */
#define OTLP_TEXT_LIMIT 500

typedef enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER, SPAN_CLIENT } span_kind;

/* A span that ended; all borrowed. */
typedef struct otlp_span {
    const trace_context *context;
    const unsigned char *parent; /* NULL: a root */
    int parent_is_remote;
    const char *name;
    span_kind kind;
    uint64_t start_ns, end_ns; /* since 1970 */
    const char *error;         /* NULL: none */
    const buf *attributes;     /* by otlp_put_attribute() */
    unsigned dropped;          /* attributes that are not there */
} otlp_span;

/* Appends one attribute, after a comma where out has something. Secrets are hidden. */
void otlp_put_attribute(buf *out, const attribute *a);

/* Each appends one record. */
void otlp_put_span(buf *out, const otlp_span *span);
void otlp_put_log(buf *out, const log_record *record);
/* Appends all metrics as they are now, commas between; returns the number of points. */
size_t otlp_put_metrics(buf *out, const metrics *m, uint64_t now_ns);

/* What is before and behind the records of a request. resource: attributes. */
void otlp_put_head(buf *out, metric_signal signal, const buf *resource);
void otlp_put_tail(buf *out);

/* How many records a receiver says it did not take, in its answer to a request that it
 * otherwise accepted. 0: all were taken, or the answer does not say. */
uint64_t otlp_rejected(metric_signal signal, const char *answer, size_t size,
                       const allocator *a);

#endif
