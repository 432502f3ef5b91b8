/*
 * observe.h: what is counted, traced and logged of calls, and the page /metrics.
 *
 * call.c tells of each call when it begins, when a worker takes it, and what it came to.
 * The rest of the service counts through observe_metrics(). A service without an observe,
 * as in tests, counts nothing.
 */
#ifndef SERVICE_OBSERVE_H
#define SERVICE_OBSERVE_H

#include "service/report.h"
#include "service/server.h"
#include "service/telemetry.h"

enum { OBSERVE_METHODS = 128, OBSERVE_RULES = 9 };
/* The rules that limit calls, as sessile_guard.h lists them. */
extern const char *const observe_rules[OBSERVE_RULES];

struct observe {
    service *server;
    metrics *metrics;
    telemetry *telemetry; /* NULL: off */
    telemetry_settings settings;
    reports reports;
    int show_ids;
    /* of the thread that calls observe_tick(): the counts when lines were last written */
    struct {
        uint64_t us, refused, hostile, clear, dropped;
    } seen;
    rpc_listener *listener; /* of /metrics */
    pthread_t thread;
    int running;
    const char *methods[OBSERVE_METHODS];
};

/* Makes the registry, the exporter that the environment asks for (telemetry_settings.h),
 * and the listener for /metrics, if there is an address for it. node: a name that no
 * other server has. On failure *out is still to be closed, or NULL. INVALID, UNSUPPORTED:
 * a variable of OpenTelemetry; EXISTS, INVALID: the address. NOMEM. */
sessile_status observe_open(observe **out, service *s, const service_settings *settings,
                            const char *node, sessile_error *err);
/* Starts the exporter's thread, if there is one. IO, NOMEM: it cannot be started. */
sessile_status observe_start(observe *o, sessile_error *err);
/* Sends what waits, for a few seconds at most, and closes the listener. The loops must
 * not be running. NULL is ignored. */
void observe_stop(observe *o);
/* After the loops were closed: calls end then at the latest. NULL is ignored. */
void observe_close(observe *o);
/* NULL for NULL. */
metrics *observe_metrics(observe *o);
/* Where /metrics is, or NULL. */
const char *observe_address(const observe *o);

/* A line of the log, as report() says. o may be NULL. */
void observe_report(observe *o, report_kind kind, log_level level, const char *message,
                    const attribute *fields, size_t field_count);
/* To be called now and then by the thread of service_run(): about once a second it writes
 * lines about what others have only counted. */
void observe_tick(observe *o);

void observe_begun(call *c);
/* It waits for a worker from now on. */
void observe_waits(call *c);
/* A worker has it: what it waited for. */
void observe_taken(call *c);
/* The status that it ended with, once: later ones are ignored. */
void observe_ended(call *c, rpc_code code);
/* The same of one that failed; a line says so if it is the server's fault. */
void observe_failed(call *c, const sessile_error *err);
/* A session was read from the store, because it was not kept. */
void observe_opened(observe *o);
/* A part of a call, by the thread that has it: span_end() ends it. */
void observe_part(call *c, span *out, const char *name, span_kind kind);

#endif
