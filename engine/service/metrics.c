/*
 * metrics.c: the registry of metrics: where each series is, counting, and reading all.
 *
 * The series of a metric are a block of an array of atomic numbers: one number for each
 * pair of label values, or for a histogram one for each bucket and one for the sum. The
 * number of values of each label is fixed when the registry is made, so the place of a
 * series is a multiplication. Counting is relaxed: no other memory depends on its order.
 *
 * Not chosen: numbers for each thread, added up when read. One addition to a line of
 * cache that others have takes less than 100 ns, and a call counts about ten times.
 */
#include "service/metrics.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/os.h"

#define MS 1000000ull

const uint64_t metric_bounds[METRIC_BOUNDS] = {
    MS / 10,   MS / 4,    MS / 2,    MS,         MS * 5 / 2, MS * 5,
    MS * 10,   MS * 25,   MS * 50,   MS * 100,   MS * 250,   MS * 500,
    MS * 1000, MS * 2500, MS * 5000, MS * 10000, MS * 30000};

/* The values of a label. One more place stands behind them: "other". */
typedef struct domain {
    const char *name;
    const char *const *values;
    size_t count;
} domain;

static const char *const statuses[] = {"OK",
                                       "CANCELLED",
                                       "UNKNOWN",
                                       "INVALID_ARGUMENT",
                                       "DEADLINE_EXCEEDED",
                                       "NOT_FOUND",
                                       "ALREADY_EXISTS",
                                       "PERMISSION_DENIED",
                                       "RESOURCE_EXHAUSTED",
                                       "FAILED_PRECONDITION",
                                       "ABORTED",
                                       "OUT_OF_RANGE",
                                       "UNIMPLEMENTED",
                                       "INTERNAL",
                                       "UNAVAILABLE",
                                       "DATA_LOSS",
                                       "UNAUTHENTICATED"};
static const char *const wheres[] = {"here", "relayed", "fallback"};
static const char *const states[] = {"busy", "idle"};
static const char *const signals[] = {"traces", "metrics", "logs"};
static const char *const versions[] = {SESSILE_VERSION};

typedef struct row {
    const char *name, *help;
    metric_kind kind;
    metric_unit unit;
    metric_label first, second;
} row;

static const row rows[METRIC_COUNT] = {
#define METRIC(id, kind, unit, name, help, first, second) \
    {name, help, METRIC_##kind, METRIC_UNIT_##unit, LABEL_##first, LABEL_##second},
#include "service/metrics.def"
#undef METRIC
};

struct metrics {
    const allocator *alloc;
    domain domains[LABEL_COUNT];
    size_t offset[METRIC_COUNT]; /* of a metric's first number */
    size_t count;                /* of all numbers */
    uint64_t started;
    _Atomic uint64_t *numbers;
};

/* How many values a label has, "other" included. */
static size_t places(const metrics *m, metric_label label)
{
    return label ? m->domains[label].count + 1 : 1;
}

/* How many numbers one series is. */
static size_t width(metric_kind kind)
{
    return kind == METRIC_HISTOGRAM ? METRIC_BOUNDS + 2 : 1;
}

static void name_domains(metrics *m, const metrics_names *names)
{
#define LIST(array) array, sizeof array / sizeof *array
    m->domains[LABEL_METHOD] = (domain){"method", names->methods, names->method_count};
    m->domains[LABEL_STATUS] = (domain){"status", LIST(statuses)};
    m->domains[LABEL_WHERE] = (domain){"where", LIST(wheres)};
    m->domains[LABEL_RULE] = (domain){"rule", names->rules, names->rule_count};
    m->domains[LABEL_STATE] = (domain){"state", LIST(states)};
    m->domains[LABEL_SIGNAL] = (domain){"signal", LIST(signals)};
    m->domains[LABEL_VERSION] = (domain){"version", LIST(versions)};
#undef LIST
}

metrics *metrics_new(const allocator *a, const metrics_names *names)
{
    metrics *m = mem_zalloc(a, sizeof *m);
    if (!m)
        return NULL;
    m->alloc = a;
    name_domains(m, names);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        m->offset[i] = m->count;
        m->count +=
            places(m, rows[i].first) * places(m, rows[i].second) * width(rows[i].kind);
    }
    m->numbers = mem_zalloc(a, m->count * sizeof *m->numbers);
    if (!m->numbers) {
        metrics_free(m);
        return NULL;
    }
    m->started = (uint64_t)os_current->now_ms(os_current->ud) * MS;
    metrics_set(m, METRIC_PROCESS_START, 0, (int64_t)m->started);
    metrics_set(m, METRIC_BUILD, 0, 1);
    return m;
}

void metrics_free(metrics *m)
{
    if (!m)
        return;
    mem_free(m->alloc, (void *)m->numbers, m->count * sizeof *m->numbers);
    mem_free(m->alloc, m, sizeof *m);
}

uint64_t metrics_started(const metrics *m)
{
    return m->started;
}

/* ---- counting */

/* The first number of a series. */
static _Atomic uint64_t *series_at(const metrics *m, metric_id id, size_t first,
                                   size_t second)
{
    const row *r = &rows[id];
    size_t firsts = places(m, r->first), seconds = places(m, r->second);
    first = first < firsts ? first : firsts - 1;
    second = second < seconds ? second : seconds - 1;
    return m->numbers + m->offset[id] + (first * seconds + second) * width(r->kind);
}

static void add(_Atomic uint64_t *number, uint64_t n)
{
    atomic_fetch_add_explicit(number, n, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

void metrics_add(metrics *m, metric_id id, size_t first, size_t second, uint64_t n)
{
    assert(rows[id].kind == METRIC_COUNTER);
    if (m)
        add(series_at(m, id, first, second), n);
}

void metrics_move(metrics *m, metric_id id, int64_t by)
{
    assert(rows[id].kind == METRIC_GAUGE && !rows[id].first);
    if (m)
        add(series_at(m, id, 0, 0), (uint64_t)by);
}

void metrics_set(metrics *m, metric_id id, size_t first, int64_t value)
{
    assert(rows[id].kind != METRIC_HISTOGRAM && !rows[id].second);
    if (m)
        atomic_store_explicit(series_at(m, id, first, 0), (uint64_t)value,
                              memory_order_relaxed);
}

void metrics_observe(metrics *m, metric_id id, size_t first, uint64_t nanoseconds)
{
    size_t bucket = 0;
    assert(rows[id].kind == METRIC_HISTOGRAM);
    if (!m)
        return;
    while (bucket < METRIC_BOUNDS && nanoseconds > metric_bounds[bucket])
        bucket++;
    _Atomic uint64_t *series = series_at(m, id, first, 0);
    add(series + bucket, 1);
    add(series + METRIC_BOUNDS + 1, nanoseconds);
}

/* ---- reading */

uint64_t metrics_sum(const metrics *m, metric_id id)
{
    const row *r = &rows[id];
    size_t count = m ? places(m, r->first) * places(m, r->second) : 0;
    uint64_t sum = 0;
    assert(r->kind != METRIC_HISTOGRAM);
    for (size_t i = 0; i < count; i++)
        sum += get(m->numbers + m->offset[id] + i);
    return sum;
}

/* The name of a value of a label. */
static const char *value_of(const metrics *m, metric_label label, size_t i)
{
    const domain *d = &m->domains[label];
    return i < d->count ? d->values[i] : "other";
}

static void read_series(const metrics *m, metric_series *out, size_t first, size_t second)
{
    const row *r = &rows[out->id];
    const _Atomic uint64_t *from = series_at(m, out->id, first, second);
    out->labels[0] = m->domains[r->first].name;
    out->labels[1] = m->domains[r->second].name;
    out->values[0] = r->first ? value_of(m, r->first, first) : NULL;
    out->values[1] = r->second ? value_of(m, r->second, second) : NULL;
    out->count = 0;
    if (r->kind != METRIC_HISTOGRAM) {
        out->value = (int64_t)get(from);
        return;
    }
    for (size_t i = 0; i <= METRIC_BOUNDS; i++)
        out->count += out->buckets[i] = get(from + i);
    out->sum = get(from + METRIC_BOUNDS + 1);
}

/* Whether a series is written while nothing was counted in it. */
static int written_empty(const metrics *m, const row *r, size_t first)
{
    return !r->first || (!r->second && r->kind != METRIC_HISTOGRAM &&
                         first < m->domains[r->first].count);
}

void metrics_each(const metrics *m, void (*visit)(void *arg, const metric_series *series),
                  void *arg)
{
    for (size_t id = 0; id < METRIC_COUNT; id++) {
        const row *r = &rows[id];
        metric_series one = {(metric_id)id, r->kind, r->unit, r->name, r->help, {0},
                             {0},           0,       {0},     0,       0};
        size_t firsts = places(m, r->first), seconds = places(m, r->second);
        for (size_t i = 0; i < firsts * seconds; i++) {
            read_series(m, &one, i / seconds, i % seconds);
            if (one.value || one.count || written_empty(m, r, i / seconds))
                visit(arg, &one);
        }
    }
}
