/*
 * telemetry_settings.c: the environment of OpenTelemetry as one struct.
 *
 * OpenTelemetry would have most mistakes ignored with a warning. Here they are an error
 * with one sentence, and telemetry stays off: what the program does with that is its
 * choice, but no one looks for spans that a typo sent elsewhere. Values are never quoted,
 * since headers and URLs carry keys.
 */
#include "service/telemetry_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "service/otlp.h"
#include "service/post.h"
#include "service/telemetry_list.h"

enum { DAY_MS = 86400000, QUEUE_LIMIT = 1 << 20, NAME_SIZE = 64 };

static const char *const signals[SIGNAL_COUNT] = {"TRACES", "METRICS", "LOGS"};
static const char *const paths[SIGNAL_COUNT] = {"/v1/traces", "/v1/metrics", "/v1/logs"};

/* A reading on its way. */
typedef struct reader {
    telemetry_settings *out;
    telemetry_env env;
    void *ud;
    char name[NAME_SIZE]; /* of the variable that was looked at last */
    int named;            /* the service has a name */
    sessile_error *err;
} reader;

/* The value of a variable; NULL: not set, or empty. */
static const char *look(reader *r, const char *name)
{
    snprintf(r->name, sizeof r->name, "%s", name);
    const char *value = r->env(r->ud, name);
    return value && *value ? value : NULL;
}

/* OTEL_EXPORTER_OTLP_<SIGNAL>_<what>, else OTEL_EXPORTER_OTLP_<what>. */
static const char *look_for(reader *r, int signal, const char *what)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s_%s", signals[signal], what);
    const char *value = look(r, name);
    if (value)
        return value;
    snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s", what);
    return look(r, name);
}

static sessile_status refuse(reader *r, const char *why)
{
    return fail(r->err, SESSILE_INVALID, "%s %s", r->name, why);
}

/* A list in a variable, where there is one. */
static sessile_status
take_list(reader *r, const char *text,
          int (*visit)(void *arg, const char *name, const char *value), void *arg)
{
    int result = text ? telemetry_list_read(text, r->out->resource.alloc, visit, arg) : 0;
    if (!result)
        return SESSILE_OK;
    return result == -2
               ? fail_nomem(r->err)
               : refuse(
                     r,
                     "is not a list name=value,name=value with percent-encoded values, "
                     "or names a header that is not to be set, as content-type");
}

/* A whole number from least to most, where there is a text. */
static sessile_status take_number(reader *r, const char *text, long least, long most,
                                  long *out)
{
    char *end;
    if (!text)
        return SESSILE_OK;
    long n = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (n < 0 || *end || n < least || n > most)
        return fail(r->err, SESSILE_INVALID, "%s is not a whole number from %ld to %ld",
                    r->name, least, most);
    *out = n;
    return SESSILE_OK;
}

/* ---- where to */

static sessile_status take_url(reader *r, int signal, destination *to, int *found)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s_ENDPOINT", signals[signal]);
    const char *url = look(r, name), *path = "";
    if (!url) {
        url = look(r, "OTEL_EXPORTER_OTLP_ENDPOINT");
        path = paths[signal];
    }
    *found = url != NULL;
    if (!url)
        return SESSILE_OK;
    if (post_url_check(url))
        return refuse(
            r, "is not an http:// or https:// URL with a host and without a user. Put "
               "credentials into OTEL_EXPORTER_OTLP_HEADERS");
    if (*path && strpbrk(url, "?#"))
        return refuse(r,
                      "is a base URL: it may have no '?' and no '#'. Set the URL of each "
                      "signal, as in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    size_t size = strlen(url);
    while (*path && url[size - 1] == '/')
        size--;
    buf_put(&to->url, url, size);
    buf_put(&to->url, path, strlen(path) + 1);
    return to->url.failed ? fail_nomem(r->err) : SESSILE_OK;
}

/* A header of HTTP; spaces at the ends of a value are trimmed already. */
static int take_header(void *arg, const char *name, const char *value)
{
    destination *to = arg;
    if (strcasecmp(name, "content-type") == 0 ||
        strcasecmp(name, "content-length") == 0 ||
        strcasecmp(name, "transfer-encoding") == 0 || strcasecmp(name, "host") == 0)
        return -1;
    buf_puts(&to->headers, name);
    /* for libcurl "Name:" would mean that the header is not sent */
    buf_puts(&to->headers, *value ? ": " : ";");
    buf_put(&to->headers, value, strlen(value) + 1);
    return 0;
}

static sessile_status take_rest(reader *r, int signal, destination *to)
{
    const char *text = look_for(r, signal, "PROTOCOL");
    if (text && strcmp(text, "http/json") != 0)
        return fail(
            r->err, SESSILE_UNSUPPORTED,
            "%s asks for a protocol that is not there: set it to http/json, and the "
            "endpoint to the receiver's port for HTTP (4318, where gRPC has 4317)",
            r->name);
    text = look_for(r, signal, "COMPRESSION");
    if (text && strcmp(text, "none") != 0)
        return fail(r->err, SESSILE_UNSUPPORTED,
                    "%s asks for a compression that is not there: set it to none",
                    r->name);
    text = look_for(r, signal, "HEADERS");
    sessile_status status = take_list(r, text, take_header, to);
    if (status)
        return status;
    long timeout = 10000;
    status = take_number(r, look_for(r, signal, "TIMEOUT"), 1, DAY_MS, &timeout);
    to->timeout_ms = (int)timeout;
    return status;
}

static sessile_status take_destination(reader *r, int signal)
{
    destination *to = &r->out->to[signal];
    char name[NAME_SIZE];
    int found = 0;
    snprintf(name, sizeof name, "OTEL_%s_EXPORTER", signals[signal]);
    const char *exporter = look(r, name);
    if (exporter && strcmp(exporter, "none") == 0)
        return SESSILE_OK;
    sessile_status status = take_url(r, signal, to, &found);
    if (status || !found)
        return status;
    look(r, name);
    if (exporter && strcmp(exporter, "otlp") != 0)
        return fail(r->err, SESSILE_UNSUPPORTED,
                    "%s asks for an exporter that is not there: set it to otlp or none",
                    name);
    status = take_rest(r, signal, to);
    if (!status)
        to->on = 1;
    return status;
}

/* ---- who we are */

static int take_attribute(void *arg, const char *name, const char *value)
{
    reader *r = arg;
    if (strcmp(name, "service.name") == 0) {
        if (r->named)
            return 0; /* OTEL_SERVICE_NAME comes first */
        r->named = 1;
    }
    otlp_put_attribute(&r->out->resource,
                       &(attribute){name, ATTRIBUTE_TEXT, {value, strlen(value)}, 0});
    return 0;
}

static sessile_status take_resource(reader *r, const telemetry_program *program)
{
    const char *name = look(r, "OTEL_SERVICE_NAME");
    if (name) {
        take_attribute(r, "service.name", name);
        r->named = 1;
    }
    sessile_status status =
        take_list(r, look(r, "OTEL_RESOURCE_ATTRIBUTES"), take_attribute, r);
    if (status)
        return status;
    if (!r->named)
        take_attribute(r, "service.name", "sessile-server");
    take_attribute(r, "service.version", program->version);
    if (program->instance)
        take_attribute(r, "service.instance.id", program->instance);
    return SESSILE_OK;
}

/* ---- what is recorded */

/* The part of all trace ids that a ratio is. */
static sessile_status take_ratio(reader *r, sampler *out)
{
    const char *text = look(r, "OTEL_TRACES_SAMPLER_ARG");
    char *end = NULL;
    double ratio = text ? strtod(text, &end) : 1;
    /* strtod() also reads spaces, hex, "inf" and "nan" */
    if (text && (*end || strspn(text, "0123456789.eE+-") != strlen(text) ||
                 !(ratio >= 0 && ratio <= 1)))
        return refuse(r, "is not a ratio from 0 to 1");
    out->below =
        ratio >= 1 ? UINT64_C(1) << 63 : (uint64_t)(ratio * 9223372036854775808.0);
    return SESSILE_OK;
}

static sessile_status take_sampler(reader *r)
{
    static const struct {
        const char *name;
        sampler_kind kind;
    } known[] = {{"always_on", SAMPLE_ALL},
                 {"always_off", SAMPLE_NONE},
                 {"traceidratio", SAMPLE_RATIO}};
    static const char based[] = "parentbased_";
    const char *text = look(r, "OTEL_TRACES_SAMPLER");
    sampler *out = &r->out->sampler;

    text = text ? text : "parentbased_always_on";
    out->parent_based = strncmp(text, based, sizeof based - 1) == 0;
    text += out->parent_based ? sizeof based - 1 : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].name) == 0) {
            out->kind = known[i].kind;
            return out->kind == SAMPLE_RATIO ? take_ratio(r, out) : SESSILE_OK;
        }
    return fail(
        r->err, SESSILE_UNSUPPORTED,
        "%s asks for a sampler that is not there: set it to always_on, always_off or "
        "traceidratio, each also with parentbased_ before it",
        r->name);
}

/* ---- how often */

static sessile_status take_amounts(reader *r)
{
    telemetry_settings *s = r->out;
    long delay = 5000, queue = 2048, batch = 512, interval = 60000;
    sessile_status status =
        take_number(r, look(r, "OTEL_BSP_SCHEDULE_DELAY"), 1, DAY_MS, &delay);
    if (!status)
        status =
            take_number(r, look(r, "OTEL_BSP_MAX_QUEUE_SIZE"), 1, QUEUE_LIMIT, &queue);
    if (!status)
        status = take_number(r, look(r, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), 1, QUEUE_LIMIT,
                             &batch);
    if (!status)
        status =
            take_number(r, look(r, "OTEL_METRIC_EXPORT_INTERVAL"), 1, DAY_MS, &interval);
    s->delay_ms = (int)delay;
    s->queue = (size_t)queue;
    s->batch = (size_t)(batch < queue ? batch : queue);
    s->metric_interval_ms = (int)interval;
    s->retry_ms = 1000;
    return status;
}

static sessile_status read_all(reader *r, const telemetry_program *program)
{
    telemetry_settings *s = r->out;
    sessile_status status = SESSILE_OK;
    int any = 0;
    for (int i = 0; i < SIGNAL_COUNT && !status; i++) {
        status = take_destination(r, i);
        any |= s->to[i].on;
    }
    if (status || !any)
        return status;
    const char *authority = look(r, "OTEL_EXPORTER_OTLP_CERTIFICATE");
    if (authority)
        buf_put(&s->authority, authority, strlen(authority) + 1);
    status = take_resource(r, program);
    if (!status && s->to[SIGNAL_TRACES].on)
        status = take_sampler(r);
    if (!status)
        status = take_amounts(r);
    for (int i = 0; i < SIGNAL_COUNT && !status; i++)
        if (s->to[i].headers.failed || s->resource.failed || s->authority.failed)
            status = fail_nomem(r->err);
    return status;
}

sessile_status telemetry_settings_read(telemetry_settings *out, const allocator *a,
                                       telemetry_env env, void *ud,
                                       const telemetry_program *program,
                                       sessile_error *err)
{
    reader r = {.out = out, .env = env, .ud = ud, .err = err};
    memset(out, 0, sizeof *out);
    buf_init(&out->resource, a);
    buf_init(&out->authority, a);
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        buf_init(&out->to[i].url, a);
        buf_init(&out->to[i].headers, a);
    }
    error_clear(err);
    const char *disabled = look(&r, "OTEL_SDK_DISABLED");
    if (disabled && strcasecmp(disabled, "true") == 0)
        return SESSILE_OK;
    sessile_status status = read_all(&r, program);
    for (int i = 0; i < SIGNAL_COUNT && status; i++)
        out->to[i].on = 0;
    return status;
}

void telemetry_settings_deinit(telemetry_settings *s)
{
    buf_deinit(&s->resource);
    buf_deinit(&s->authority);
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        buf_deinit(&s->to[i].url);
        buf_wipe(&s->to[i].headers);
    }
}
