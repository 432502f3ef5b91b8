/*
 * telemetry.h: the exporter: records wait in a ring, one thread sends them.
 *
 *     telemetry_new(&t, &options, err);
 *     thread A:      telemetry_run(t);
 *     any threads:   telemetry_put(), through trace.h; telemetry_log()
 *     telemetry_stop(t, 5000);
 *     join A;
 *     telemetry_free(t);
 *
 * Nobody who calls waits for the network. A ring that is full drops its oldest record.
 * What a receiver does not accept is dropped: at once when it says so (400), after five
 * attempts when it is away, busy or overloaded (no answer, 429, 502, 503, 504;
 * Retry-After counts). Everything that is dropped is counted in
 * sessile_telemetry_dropped_total.
 */
#ifndef SERVICE_TELEMETRY_H
#define SERVICE_TELEMETRY_H

#include "service/logline.h"
#include "service/telemetry_settings.h"

typedef struct telemetry telemetry;

typedef struct telemetry_options {
    const telemetry_settings *settings; /* outlives the exporter */
    metrics *metrics;                   /* exported, and counts; outlives the exporter */
    /* Called by the thread of telemetry_run() when a receiver stops accepting, and when
     * it accepts again, once each, with a sentence for the operator. It must not go to
     * telemetry_log(), or each failure would make a record. May be NULL. */
    void (*report)(void *ud, metric_signal signal, int works, const char *sentence);
    /* Called by the same thread before metrics are read, for gauges that somebody else
     * keeps. May be NULL. */
    void (*look)(void *ud);
    void *ud; /* of both */
} telemetry_options;

/* OK, with *out NULL when no signal is on: telemetry is off, and all functions take that
 * NULL. NOMEM. */
sessile_status telemetry_new(telemetry **out, const allocator *a,
                             const telemetry_options *options, sessile_error *err);
/* After telemetry_run() has returned, or was never called. What still waits is lost. */
void telemetry_free(telemetry *t);

/* Sends until telemetry_stop() is called and all is sent, or its time is up. For one
 * thread, which the caller starts. */
void telemetry_run(telemetry *t);
/* Ends telemetry_run(): what waits is tried once more, and metrics are sent a last time,
 * for at most wait_ms. Does not wait itself. Any thread, not a signal handler. */
void telemetry_stop(telemetry *t, int wait_ms);

/* 1: records of this signal are exported. */
int telemetry_wants(const telemetry *t, metric_signal signal);
const telemetry_settings *telemetry_settings_of(const telemetry *t);
const allocator *telemetry_allocator(const telemetry *t);

/* Hands over one record in OTLP's JSON. Takes json's memory and inits it again; a record
 * that failed is dropped and counted. */
void telemetry_put(telemetry *t, metric_signal signal, buf *json);
/* Exports a log line: to be logger.also, with the telemetry as its ud. */
void telemetry_log(void *t, const log_record *record);

#endif
