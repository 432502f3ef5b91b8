/*
 * otlp.c: spans, log records and requests in OTLP's JSON, and the answers to them.
 *
 * Written by hand, since Debian has no OpenTelemetry library for C: the messages that we
 * send have some thirty fields. Tests decode it by protobuf's own reader of JSON.
 */
#include "service/otlp.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "service/redact.h"

enum { ANSWER_DEPTH = 16 };
/* Bits of Span.flags beside those of the trace. */
enum { HAS_IS_REMOTE = 0x100, IS_REMOTE = 0x200 };

static void put_id(buf *out, const char *name, const unsigned char *id, size_t size)
{
    char hex[2 * TRACE_ID_SIZE + 1];
    hex_encode(hex, id, size);
    buf_printf(out, "\"%s\":\"%s\",", name, hex);
}

void otlp_put_attribute(buf *out, const attribute *a)
{
    if (out->size > 0 && out->data[out->size - 1] == '}')
        buf_putc(out, ',');
    buf_puts(out, "{\"key\":");
    json_put_cstring(out, a->name);
    switch (a->type) {
    case ATTRIBUTE_TEXT:
        buf_puts(out, ",\"value\":{\"stringValue\":");
        redact_put_json(out, a->text.data, a->text.size, OTLP_TEXT_LIMIT);
        buf_puts(out, "}}");
        break;
    case ATTRIBUTE_NUMBER:
        buf_printf(out, ",\"value\":{\"intValue\":\"%" PRId64 "\"}}", a->number);
        break;
    case ATTRIBUTE_TRUTH:
        buf_printf(out, ",\"value\":{\"boolValue\":%s}}", a->number ? "true" : "false");
        break;
    }
}

static void put_buf(buf *out, const buf *from)
{
    buf_put(out, from->data, from->size);
    out->failed |= from->failed;
}

void otlp_put_span(buf *out, const otlp_span *span)
{
    unsigned flags = span->context->flags;
    buf_putc(out, '{');
    put_id(out, "traceId", span->context->trace, TRACE_ID_SIZE);
    put_id(out, "spanId", span->context->span, SPAN_ID_SIZE);
    if (span->parent) {
        put_id(out, "parentSpanId", span->parent, SPAN_ID_SIZE);
        flags |= HAS_IS_REMOTE | (span->parent_is_remote ? IS_REMOTE : 0);
    }
    buf_printf(out, "\"flags\":%u,\"name\":", flags);
    json_put_cstring(out, span->name);
    buf_printf(out,
               ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64
               "\",\"endTimeUnixNano\":\"%" PRIu64 "\",\"attributes\":[",
               (int)span->kind, span->start_ns, span->end_ns);
    put_buf(out, span->attributes);
    buf_puts(out, "]");
    if (span->dropped)
        buf_printf(out, ",\"droppedAttributesCount\":%u", span->dropped);
    if (span->error) {
        buf_puts(out, ",\"status\":{\"code\":2,\"message\":");
        redact_put_json(out, span->error, strlen(span->error), OTLP_TEXT_LIMIT);
        buf_putc(out, '}');
    }
    buf_putc(out, '}');
}

void otlp_put_log(buf *out, const log_record *r)
{
    static const struct {
        int number;
        const char *text;
    } severities[] = {{5, "DEBUG"}, {9, "INFO"}, {13, "WARN"}, {17, "ERROR"}};
    uint64_t ns = (uint64_t)r->time_ms * 1000000;
    buf fields;

    buf_init(&fields, out->alloc);
    for (size_t i = 0; i < r->field_count; i++)
        otlp_put_attribute(&fields, &r->fields[i]);
    buf_putc(out, '{');
    if (trace_context_is_set(r->context)) {
        put_id(out, "traceId", r->context->trace, TRACE_ID_SIZE);
        put_id(out, "spanId", r->context->span, SPAN_ID_SIZE);
        buf_printf(out, "\"flags\":%u,", r->context->flags);
    }
    buf_printf(
        out,
        "\"timeUnixNano\":\"%" PRIu64 "\",\"observedTimeUnixNano\":\"%" PRIu64
        "\",\"severityNumber\":%d,\"severityText\":\"%s\",\"body\":{\"stringValue\":",
        ns, ns, severities[r->level].number, severities[r->level].text);
    redact_put_json(out, r->message, strlen(r->message), 2 * OTLP_TEXT_LIMIT);
    buf_puts(out, "},\"attributes\":[");
    put_buf(out, &fields);
    buf_puts(out, "]}");
    buf_deinit(&fields);
}

void otlp_put_head(buf *out, metric_signal signal, const buf *resource)
{
    static const char *const names[SIGNAL_COUNT][3] = {
        {"resourceSpans", "scopeSpans", "spans"},
        {"resourceMetrics", "scopeMetrics", "metrics"},
        {"resourceLogs", "scopeLogs", "logRecords"},
    };
    buf_printf(out, "{\"%s\":[{\"resource\":{\"attributes\":[", names[signal][0]);
    put_buf(out, resource);
    buf_printf(
        out,
        "]},\"%s\":[{\"scope\":{\"name\":\"sessile\",\"version\":\"" SESSILE_VERSION
        "\"},\"%s\":[",
        names[signal][1], names[signal][2]);
}

void otlp_put_tail(buf *out)
{
    buf_puts(out, "]}]}]}");
}

/* A whole number, or one in a string, as proto3 writes 64 bits. */
static uint64_t number_of(json value)
{
    const char *digits;
    uint64_t n = 0;
    size_t size;
    if (value.type == JSON_STRING && json_plain(value, &digits, &size) && size > 0)
        value = (json){digits, size, JSON_NUMBER};
    if (value.type == JSON_NUMBER && json_uint(value, &n))
        n = 0;
    return n;
}

uint64_t otlp_rejected(metric_signal signal, const char *answer, size_t size,
                       const allocator *a)
{
    static const char *const names[SIGNAL_COUNT] = {"rejectedSpans", "rejectedDataPoints",
                                                    "rejectedLogRecords"};
    uint64_t rejected = 0;
    buf checked;
    buf_init(&checked, a);
    if (!json_check(&checked, answer, size, ANSWER_DEPTH, NULL)) {
        json partial = json_get(json_of(checked.data, checked.size), "partialSuccess");
        rejected = number_of(json_get(partial, names[signal]));
    }
    buf_deinit(&checked);
    return rejected;
}
