/*
 * observe.h: what is counted, traced and logged of calls, and where it is asked for.
 *
 * call.c tells of each call when it begins, when a worker takes it, and what it came to.
 * The rest of the service counts through observe_metrics(). A service without an observe,
 * as in tests, counts nothing.
 */
#ifndef SERVICE_OBSERVE_H
#define SERVICE_OBSERVE_H

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
    rpc_listener *listener; /* of /metrics */
    pthread_t thread;
    int running;
    const char *methods[OBSERVE_METHODS];
};

/* Makes the registry, the exporter that the environment asks for (telemetry_settings.h),
 * and the listener for /metrics, if there is an address for it. INVALID, UNSUPPORTED: a
 * variable of OpenTelemetry; EXISTS, INVALID: the address. */
sessile_status observe_open(observe **out, service *s, const char *address,
                            sessile_error *err);
/* Starts the exporter's thread. */
sessile_status observe_start(observe *o, sessile_error *err);
/* Sends what waits, for a few seconds at most, and closes the listener. The loops must
 * not be running. NULL is ignored. */
void observe_stop(observe *o);
/* After the loops were closed: calls end then at the latest. NULL is ignored. */
void observe_close(observe *o);
metrics *observe_metrics(observe *o);
/* Where /metrics is, or NULL. */
const char *observe_address(const observe *o);

void observe_begun(call *c);
/* A worker has it: what it waited for. */
void observe_taken(call *c);
/* What it came to, once: later ones are ignored. rule: of a limit, or "". */
void observe_ended(call *c, rpc_code code, const char *rule);

#endif
