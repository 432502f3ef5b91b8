/*
 * trace.h: spans: what took how long within a call, whoever else had a part in it.
 *
 * A span is a struct of the caller's, begun and ended, used by one thread at a time. A
 * span that is not recorded (telemetry is off, or the trace is not sampled) allocates
 * nothing and costs a few instructions; it still passes the trace on. What somebody said
 * in a session is never put into a span.
 *
 *     span call, wait;
 *     span_begin(&call, t, "sessile.v1.SessionService/Turn", SPAN_SERVER, &caller);
 *     span_child(&wait, &call, "queue", SPAN_INTERNAL);
 *     …
 *     span_end(&wait);
 *     span_set(&call, attribute_number("rpc.grpc.status_code", 10));
 *     span_fail(&call, "CONFLICT");
 *     span_end(&call);
 */
#ifndef SERVICE_TRACE_H
#define SERVICE_TRACE_H

#include "service/otlp.h"
#include "service/telemetry.h"

/* Zeroed: no span; every function does nothing with it. */
typedef struct span {
    trace_context context; /* what is passed on to others, by traceparent_print() */
    telemetry *to;         /* NULL: not recorded */
    const char *name;      /* borrowed until the end */
    span_kind kind;
    struct {
        unsigned char id[SPAN_ID_SIZE];
        int is_set, is_remote;
    } parent;
    uint64_t start_ns; /* since 1970 */
    uint64_t start_us; /* monotonic, so that a duration is right when the clock is set */
    const char *error; /* borrowed until the end */
    buf attributes;
    unsigned attribute_count, dropped;
} span;

/* The most attributes of one span; what is more is counted in it, and not kept. */
#define SPAN_ATTRIBUTES 32

/* Begins the first span here of a trace: that of from, which came from elsewhere, or a
 * new one where from is NULL or not set. t may be NULL. */
void span_begin(span *s, telemetry *t, const char *name, span_kind kind,
                const trace_context *from);
/* Begins a span within another one of this process, of which only context and to are
 * read. */
void span_child(span *s, const span *parent, const char *name, span_kind kind);
/* It began earlier: at start_us of the monotonic clock. */
void span_began(span *s, uint64_t start_us);
void span_set(span *s, attribute a);
/* What a session is called outside of the guard: the first 16 hex digits of the
 * BLAKE2b-256 hash of its id (`printf %s ID | b2sum -l 256` begins with them). */
#define SESSION_HASH_SIZE 17
void session_hash(char out[SESSION_HASH_SIZE], sessile_slice id);
/* Sets "session.id": that hash, or the id, as the settings say. */
void span_set_session(span *s, sessile_slice id);
/* It ended in an error: a word such as the name of a status, not a sentence with a name.
 */
void span_fail(span *s, const char *error);
/* Ends it, hands it to the exporter, and zeroes it. */
void span_end(span *s);

/* Whether a trace that begins here, or that came from elsewhere, is recorded. */
int sampler_takes(const sampler *s, const trace_context *from,
                  const unsigned char trace[TRACE_ID_SIZE]);

#endif
