/*
 * otlp_metrics.c: the registry of metrics in OTLP's JSON.
 *
 * Counters are sums since the start of the process (cumulative), gauges are what they
 * are, histograms have the bounds of metrics.h. Names are those of /metrics, so that
 * there is one name for one thing wherever it is looked at.
 */
#include "service/otlp.h"

#include <inttypes.h>

#include "codec/json.h"

enum { CUMULATIVE = 2 };

typedef struct writer {
    buf *out;
    uint64_t started, now;
    int last; /* the metric that is open; -1: none */
    metric_kind kind;
    size_t points;
} writer;

static void close_metric(writer *w)
{
    if (w->last < 0)
        return;
    buf_puts(w->out, "]");
    if (w->kind != METRIC_GAUGE)
        buf_printf(w->out, ",\"aggregationTemporality\":%d", CUMULATIVE);
    if (w->kind == METRIC_COUNTER)
        buf_puts(w->out, ",\"isMonotonic\":true");
    buf_puts(w->out, "}}");
}

static void open_metric(writer *w, const metric_series *s)
{
    static const char *const kinds[] = {"sum", "gauge", "histogram"};
    static const char *const units[] = {"1", "By", "s"};
    if (w->last >= 0)
        buf_putc(w->out, ',');
    buf_printf(w->out, "{\"name\":\"%s\",\"description\":", s->name);
    json_put_cstring(w->out, s->help);
    buf_printf(w->out, ",\"unit\":\"%s\",\"%s\":{\"dataPoints\":[", units[s->unit],
               kinds[s->kind]);
    w->last = (int)s->id;
    w->kind = s->kind;
}

static void put_number(buf *out, const metric_series *s)
{
    if (s->unit == METRIC_UNIT_SECONDS) {
        buf_puts(out, "\"asDouble\":");
        metrics_put_seconds(out, s->value);
    } else {
        buf_printf(out, "\"asInt\":\"%" PRId64 "\"", s->value);
    }
}

static void put_histogram(buf *out, const metric_series *s)
{
    buf_printf(out, "\"count\":\"%" PRIu64 "\",\"sum\":", s->count);
    metrics_put_seconds(out, (int64_t)s->sum);
    buf_puts(out, ",\"bucketCounts\":[");
    for (size_t i = 0; i <= METRIC_BOUNDS; i++)
        buf_printf(out, "%s\"%" PRIu64 "\"", i ? "," : "", s->buckets[i]);
    buf_puts(out, "],\"explicitBounds\":[");
    for (size_t i = 0; i < METRIC_BOUNDS; i++) {
        buf_puts(out, i ? "," : "");
        metrics_put_seconds(out, (int64_t)metric_bounds[i]);
    }
    buf_putc(out, ']');
}

static void put_series(void *arg, const metric_series *s)
{
    writer *w = arg;
    buf labels;

    if (w->last == (int)s->id) {
        buf_putc(w->out, ',');
    } else {
        close_metric(w);
        open_metric(w, s);
    }
    buf_init(&labels, w->out->alloc);
    for (int i = 0; i < 2 && s->labels[i]; i++) {
        attribute label = attribute_text(s->labels[i], s->values[i]);
        otlp_put_attribute(&labels, &label);
    }
    buf_puts(w->out, "{\"attributes\":[");
    buf_put(w->out, labels.data, labels.size);
    w->out->failed |= labels.failed;
    buf_deinit(&labels);
    buf_printf(w->out,
               "],\"startTimeUnixNano\":\"%" PRIu64 "\",\"timeUnixNano\":\"%" PRIu64
               "\",",
               w->started, w->now);
    if (s->kind == METRIC_HISTOGRAM)
        put_histogram(w->out, s);
    else
        put_number(w->out, s);
    buf_putc(w->out, '}');
    w->points++;
}

size_t otlp_put_metrics(buf *out, const metrics *m, uint64_t now_ns)
{
    writer w = {out, metrics_started(m), now_ns, -1, METRIC_GAUGE, 0};
    metrics_each(m, put_series, &w);
    close_metric(&w);
    return w.points;
}
