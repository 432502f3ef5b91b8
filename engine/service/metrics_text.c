/*
 * metrics_text.c: all metrics as text, in the exposition format of Prometheus 0.0.4.
 *
 *     # HELP name help          once for each metric, then its series
 *     # TYPE name counter
 *     name{label="value",…} number
 *
 * A histogram is name_bucket for each bound, each with all that is not above it, then
 * name_sum and name_count. Label values come from a configuration too: backslash, quote
 * and the end of a line are escaped in them.
 */
#include "service/metrics.h"

#include <inttypes.h>

typedef struct writer {
    buf *out;
    int last; /* the metric whose head was written */
} writer;

void metrics_put_seconds(buf *out, int64_t nanoseconds)
{
    uint64_t n = nanoseconds < 0 ? 0 - (uint64_t)nanoseconds : (uint64_t)nanoseconds;
    uint64_t rest = n % 1000000000u;
    int digits = 9;

    buf_printf(out, "%s%" PRIu64, nanoseconds < 0 ? "-" : "", n / 1000000000u);
    if (rest == 0)
        return;
    for (; rest % 10 == 0; digits--)
        rest /= 10;
    buf_printf(out, ".%0*" PRIu64, digits, rest);
}

static void put_value(buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            buf_putc(out, '\\');
        if (*text == '\n')
            buf_puts(out, "\\n");
        else
            buf_putc(out, *text);
    }
}

/* name, a suffix, and the labels with `le` behind them where it is given. */
static void put_name(buf *out, const metric_series *s, const char *suffix, int bounded,
                     int64_t le)
{
    char between = '{';
    buf_puts(out, s->name);
    buf_puts(out, suffix);
    for (int i = 0; i < 2 && s->labels[i]; i++, between = ',') {
        buf_printf(out, "%c%s=\"", between, s->labels[i]);
        put_value(out, s->values[i]);
        buf_putc(out, '"');
    }
    if (bounded) {
        buf_printf(out, "%cle=\"", between);
        if (le < 0)
            buf_puts(out, "+Inf");
        else
            metrics_put_seconds(out, le);
        buf_puts(out, "\"");
        between = ',';
    }
    buf_puts(out, between == '{' ? " " : "} ");
}

static void put_histogram(buf *out, const metric_series *s)
{
    uint64_t so_far = 0;
    for (size_t i = 0; i <= METRIC_BOUNDS; i++) {
        so_far += s->buckets[i];
        put_name(out, s, "_bucket", 1,
                 i < METRIC_BOUNDS ? (int64_t)metric_bounds[i] : -1);
        buf_put_u64(out, so_far);
        buf_putc(out, '\n');
    }
    put_name(out, s, "_sum", 0, 0);
    metrics_put_seconds(out, (int64_t)s->sum);
    buf_putc(out, '\n');
    put_name(out, s, "_count", 0, 0);
    buf_put_u64(out, s->count);
    buf_putc(out, '\n');
}

static void put_series(void *arg, const metric_series *s)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    writer *w = arg;
    if (w->last != (int)s->id)
        buf_printf(w->out, "# HELP %s %s\n# TYPE %s %s\n", s->name, s->help, s->name,
                   kinds[s->kind]);
    w->last = (int)s->id;
    if (s->kind == METRIC_HISTOGRAM) {
        put_histogram(w->out, s);
        return;
    }
    put_name(w->out, s, "", 0, 0);
    if (s->unit == METRIC_UNIT_SECONDS)
        metrics_put_seconds(w->out, s->value);
    else
        buf_put_i64(w->out, s->value);
    buf_putc(w->out, '\n');
}

void metrics_write(const metrics *m, buf *out)
{
    writer w = {out, -1};
    if (m)
        metrics_each(m, put_series, &w);
}
