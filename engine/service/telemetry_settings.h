/*
 * telemetry_settings.h: where spans, metrics and log records go, from the environment.
 *
 * The variables are those of OpenTelemetry, and are read here only. An empty one is as
 * good as none.
 *
 *   OTEL_SDK_DISABLED=true                 nothing is exported
 *   OTEL_EXPORTER_OTLP_ENDPOINT            a base URL, to which /v1/traces and so on are
 *                                          added
 *   OTEL_EXPORTER_OTLP_<SIGNAL>_ENDPOINT   the whole URL, of TRACES, METRICS or LOGS; a
 *                                          signal without any endpoint is not exported
 *   ..._PROTOCOL                           http/json is all there is
 *   ..._HEADERS, ..._TIMEOUT (ms, 10000)   also for one signal, instead of those for all
 *   ..._CERTIFICATE                        a file of authorities for https
 *   OTEL_TRACES_EXPORTER, _METRICS_, _LOGS_   otlp (default), or none
 *   OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
 *   OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG   parentbased_always_on (default), ...
 *   OTEL_BSP_SCHEDULE_DELAY (ms, 5000), OTEL_BSP_MAX_QUEUE_SIZE (2048),
 *   OTEL_BSP_MAX_EXPORT_BATCH_SIZE (512)   of spans; log records use the same
 *   OTEL_METRIC_EXPORT_INTERVAL (ms, 60000)
 */
#ifndef SERVICE_TELEMETRY_SETTINGS_H
#define SERVICE_TELEMETRY_SETTINGS_H

#include "base/buf.h"
#include "service/metrics.h"

typedef enum sampler_kind { SAMPLE_ALL, SAMPLE_NONE, SAMPLE_RATIO } sampler_kind;

/* Which new traces are recorded. */
typedef struct sampler {
    sampler_kind kind;
    int parent_based; /* a caller's trace is recorded when the caller records it */
    uint64_t below;   /* of a ratio: the trace id's last 63 bits are less than this */
} sampler;

/* Where one signal goes. */
typedef struct destination {
    int on;
    buf url;     /* with a NUL */
    buf headers; /* "Name: value" and a NUL, each; secrets */
    int timeout_ms;
} destination;

typedef struct telemetry_settings {
    destination to[SIGNAL_COUNT]; /* by metric_signal */
    sampler sampler;
    buf resource;  /* attributes of the process, as JSON: objects with commas between */
    buf authority; /* with a NUL; empty: those of the system */
    int delay_ms, metric_interval_ms;
    size_t queue, batch; /* in records */
    int retry_ms;        /* before the second attempt; doubled for each later one */
    int plain_ids; /* 1: ids of sessions are not hashed. 0 here; the caller's choice */
} telemetry_settings;

/* What the program says of itself. instance: a name that no other node has; NULL: none.
 */
typedef struct telemetry_program {
    const char *version, *instance;
} telemetry_program;

/* Looks up a variable, as os_table.env does: NULL when it is not set. */
typedef const char *(*telemetry_env)(void *ud, const char *name);

/*
 * Fills *out, which telemetry_settings_deinit() frees, also after a failure.
 *
 * INVALID: a variable has no meaning; UNSUPPORTED: it asks for a protocol, an exporter or
 * a sampler that is not there; NOMEM. The sentence names the variable, not its value, and
 * nothing is exported: all signals are off. Variables of what is off anyway are not
 * judged.
 */
sessile_status telemetry_settings_read(telemetry_settings *out, const allocator *a,
                                       telemetry_env env, void *ud,
                                       const telemetry_program *program,
                                       sessile_error *err);
void telemetry_settings_deinit(telemetry_settings *s); /* wipes headers */

#endif
