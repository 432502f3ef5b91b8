/*
 * metrics.h: the counters, gauges and histograms of the service.
 *
 * The table is metrics.def; nothing is registered anywhere else. Each series is a 64-bit
 * number at a place that is worked out once, so that counting is one atomic addition: no
 * lock, no look-up of a name, no allocation. Everything is a whole number (seconds are
 * nanoseconds), so sums are exact.
 *
 * A registry is made before the threads that count. After that every function but
 * metrics_free() may be called from any thread at any time. A registry that is NULL
 * counts nothing, so that a part of the service can be tested without one.
 */
#ifndef SERVICE_METRICS_H
#define SERVICE_METRICS_H

#include "base/buf.h"

typedef enum metric_id {
#define METRIC(id, kind, unit, name, help, first, second) METRIC_##id,
#include "service/metrics.def"
#undef METRIC
    METRIC_COUNT
} metric_id;

typedef enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM } metric_kind;
typedef enum metric_unit {
    METRIC_UNIT_COUNT,
    METRIC_UNIT_BYTES,
    METRIC_UNIT_SECONDS /* the number is nanoseconds */
} metric_unit;

/* The values of a label are numbered from 0. A number past the last one counts as the
 * value "other", so that no mistake makes a series more. */
typedef enum metric_label {
    LABEL_NONE,
    LABEL_METHOD, /* metrics_names.methods */
    LABEL_STATUS, /* a gRPC status code, 0 to 16 */
    LABEL_WHERE,  /* metric_where */
    LABEL_RULE,   /* metrics_names.rules */
    LABEL_STATE,  /* metric_state */
    LABEL_SIGNAL, /* metric_signal */
    LABEL_VERSION,
    LABEL_COUNT
} metric_label;

typedef enum metric_where { WHERE_HERE, WHERE_RELAYED, WHERE_FALLBACK } metric_where;
typedef enum metric_state { STATE_BUSY, STATE_IDLE } metric_state;
typedef enum metric_signal { SIGNAL_TRACES, SIGNAL_METRICS, SIGNAL_LOGS } metric_signal;
#define SIGNAL_COUNT 3

/* What a program names itself. Borrowed: the arrays and texts outlive the registry. Rules
 * are names that a configuration gives to limits. */
typedef struct metrics_names {
    const char *const *methods;
    size_t method_count;
    const char *const *rules;
    size_t rule_count;
} metrics_names;

typedef struct metrics metrics;

/* Makes a registry in which all is 0, but for the time of the start and the version.
 * NULL: no memory. */
metrics *metrics_new(const allocator *a, const metrics_names *names);
void metrics_free(metrics *m); /* NULL is ignored */

/* Adds to a counter. first and second number the values of its labels; 0 where it has
 * none. */
void metrics_add(metrics *m, metric_id id, size_t first, size_t second, uint64_t n);
/* Adds to a gauge without labels: what came counts 1, what went -1. */
void metrics_move(metrics *m, metric_id id, int64_t by);
/* Sets a gauge, or a counter that somebody else counts. */
void metrics_set(metrics *m, metric_id id, size_t first, int64_t value);
/* Adds one duration to a histogram. */
void metrics_observe(metrics *m, metric_id id, size_t first, uint64_t nanoseconds);
/* The sum of a counter's or gauge's series. */
uint64_t metrics_sum(const metrics *m, metric_id id);
/* Sets the metrics of the process from what the system says. Called before writing. */
void metrics_take_process(metrics *m);

/* Appends all series in the text format of Prometheus, version 0.0.4, whose content type
 * is METRICS_CONTENT_TYPE. Look at out->failed. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void metrics_write(const metrics *m, buf *out);

/* ---- for those who write another format */

/* Upper bounds of the buckets of all histograms, in nanoseconds; one more bucket has what
 * is longer than the last. */
#define METRIC_BOUNDS 17
extern const uint64_t metric_bounds[METRIC_BOUNDS];

/* One series as it was when it was read. Numbers that are read while others count may be
 * from moments a little apart; a histogram's count is always the sum of its buckets. */
typedef struct metric_series {
    metric_id id;
    metric_kind kind;
    metric_unit unit;
    const char *name, *help;
    const char *labels[2], *values[2]; /* labels[i] is NULL from the first that is not */
    int64_t value;                     /* of counters and gauges */
    uint64_t buckets[METRIC_BOUNDS + 1], count, sum; /* of histograms */
} metric_series;

/* Visits every series that is written: those of one metric follow each other. Left out
 * are series of two labels, of a labelled histogram, and of "other", in which nothing was
 * counted yet. */
void metrics_each(const metrics *m, void (*visit)(void *arg, const metric_series *series),
                  void *arg);
/* The time of the start, in nanoseconds since 1970. */
uint64_t metrics_started(const metrics *m);
/* Appends nanoseconds as seconds, exactly, without zeros at the end: "0.25", "-3". */
void metrics_put_seconds(buf *out, int64_t nanoseconds);

#endif
