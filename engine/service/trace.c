/*
 * trace.c: spans from their beginning to their record.
 *
 * Attributes are written as JSON when they are set, and a span that ends becomes one
 * piece of JSON that the exporter's thread only has to send. So the caller's thread pays
 * for what it says (some microseconds), nothing borrowed outlives the call, and the
 * ring holds blocks of one kind.
 *
 * Sampling by a ratio compares the last 63 bits of the trace id, as the SDKs of other
 * languages do: all that take part in a trace decide alike.
 */
#include "service/trace.h"

#include <string.h>
#include <time.h>

#include "base/os.h"
#include "base/text.h"

static uint64_t wall_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int sampler_takes(const sampler *s, const trace_context *from,
                  const unsigned char trace[TRACE_ID_SIZE])
{
    uint64_t last = 0;
    if (s->parent_based && trace_context_is_set(from))
        return from->flags & TRACE_SAMPLED;
    if (s->kind != SAMPLE_RATIO)
        return s->kind == SAMPLE_ALL;
    for (size_t i = TRACE_ID_SIZE - 8; i < TRACE_ID_SIZE; i++)
        last = last << 8 | trace[i];
    return last >> 1 < s->below;
}

/* Starts the clock of a span that is recorded. */
static void record(span *s, telemetry *t)
{
    s->to = t;
    s->start_ns = wall_ns();
    s->start_us = os_now_us();
    buf_init(&s->attributes, telemetry_allocator(t));
}

/* Draws an id: not all zeros. */
static void draw(unsigned char *id, size_t size)
{
    do
        random_bytes(id, size);
    while (!memcmp(id, (const unsigned char[TRACE_ID_SIZE]){0}, size));
}

/* Both ids of a root in one call, since each call asks the system. */
static void draw_root(trace_context *c)
{
    unsigned char ids[TRACE_ID_SIZE + SPAN_ID_SIZE];
    do {
        random_bytes(ids, sizeof ids);
        memcpy(c->trace, ids, TRACE_ID_SIZE);
        memcpy(c->span, ids + TRACE_ID_SIZE, SPAN_ID_SIZE);
    } while (!trace_context_is_set(c));
    c->flags = TRACE_RANDOM;
}

void span_begin(span *s, telemetry *t, const char *name, span_kind kind,
                const trace_context *from)
{
    memset(s, 0, sizeof *s);
    s->name = name;
    s->kind = kind;
    int is_set = trace_context_is_set(from);
    if (is_set)
        s->context = *from;
    if (!telemetry_wants(t, SIGNAL_TRACES))
        return;
    if (!is_set)
        draw_root(&s->context);
    if (!sampler_takes(&telemetry_settings_of(t)->sampler, from, s->context.trace)) {
        s->context.flags &= (unsigned char)~TRACE_SAMPLED;
        return;
    }
    s->context.flags |= TRACE_SAMPLED;
    if (is_set) {
        memcpy(s->parent.id, from->span, SPAN_ID_SIZE);
        s->parent.is_set = s->parent.is_remote = 1;
        draw(s->context.span, SPAN_ID_SIZE);
    }
    record(s, t);
}

void span_child(span *s, const span *parent, const char *name, span_kind kind)
{
    memset(s, 0, sizeof *s);
    s->name = name;
    s->kind = kind;
    s->context = parent->context;
    if (!parent->to)
        return;
    memcpy(s->parent.id, parent->context.span, SPAN_ID_SIZE);
    s->parent.is_set = 1;
    draw(s->context.span, SPAN_ID_SIZE);
    record(s, parent->to);
}

void span_began(span *s, uint64_t start_us)
{
    if (!s->to || start_us >= s->start_us)
        return;
    s->start_ns -= (s->start_us - start_us) * 1000;
    s->start_us = start_us;
}

void span_set(span *s, attribute a)
{
    if (!s->to)
        return;
    if (s->attribute_count == SPAN_ATTRIBUTES) {
        s->dropped++;
        return;
    }
    s->attribute_count++;
    otlp_put_attribute(&s->attributes, &a);
}

void session_hash(char out[SESSION_HASH_SIZE], sessile_slice id)
{
    unsigned char hash[32];
    hash256(hash, id.data, id.size, NULL, 0);
    hex_encode(out, hash, (SESSION_HASH_SIZE - 1) / 2);
}

void span_set_session(span *s, sessile_slice id)
{
    char hash[SESSION_HASH_SIZE];
    if (!s->to)
        return;
    if (!telemetry_settings_of(s->to)->plain_ids) {
        session_hash(hash, id);
        id = (sessile_slice){hash, SESSION_HASH_SIZE - 1};
    }
    span_set(s, attribute_slice("session.id", id));
}

void span_fail(span *s, const char *error)
{
    s->error = error;
}

void span_end(span *s)
{
    if (s->to) {
        uint64_t us = os_now_us() - s->start_us;
        otlp_span done = {&s->context,
                          s->parent.is_set ? s->parent.id : NULL,
                          s->parent.is_remote,
                          s->name,
                          s->kind,
                          s->start_ns,
                          s->start_ns + us * 1000,
                          s->error,
                          &s->attributes,
                          s->dropped};
        buf json;
        buf_init(&json, s->attributes.alloc);
        otlp_put_span(&json, &done);
        telemetry_put(s->to, SIGNAL_TRACES, &json);
        buf_deinit(&s->attributes);
    }
    memset(s, 0, sizeof *s);
}
