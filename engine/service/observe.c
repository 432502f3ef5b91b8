/*
 * observe.c: the numbers of the service, its spans, and the page for Prometheus.
 *
 * A call is counted once, by whoever first knows what it came to: the worker that ends
 * it, or the loop that finds its client gone. Gauges that somebody else keeps are read
 * when the page is asked for.
 */
#include "service/observe.h"

#include <string.h>

#include "base/os.h"
#include "service/telemetry.h"
#include "service/watch.h"

enum { STOP_MS = 3000 };

/* ---------------------------------------------------------------------- the page */

static void look_around(observe *o)
{
    service *s = o->server;
    rpc_loop_figures all = {0};
    for (int i = 0; i < s->settings.loops; i++) {
        rpc_loop_figures one = rpc_loop_look(s->loops[i]);
        all.accepted += one.accepted;
        all.refused += one.refused + one.hostile;
        all.connections += one.connections;
    }
    metrics_set(o->metrics, METRIC_CONNECTIONS, 0, all.connections);
    metrics_set(o->metrics, METRIC_CONNECTIONS_OPENED, 0, (int64_t)all.accepted);
    metrics_set(o->metrics, METRIC_CONNECTIONS_REFUSED, 0, (int64_t)all.refused);
    metrics_set(o->metrics, METRIC_SESSIONS_KEPT, 0, (int64_t)keep_count(s->keep));
    metrics_set(o->metrics, METRIC_WATCHED, 0, (int64_t)watch_count(s->watch));
    metrics_set(o->metrics, METRIC_READY, 0, atomic_load(&s->stops) == 0);
    metrics_take_process(o->metrics);
}

static void asked(void *ud, rpc_call *rpc)
{
    observe *o = ud;
    buf page;
    if (rpc_call_kind(rpc) == RPC_GRPC) {
        rpc_finish(rpc, RPC_UNIMPLEMENTED, "metrics are at GET /metrics", NULL, 0);
        return;
    }
    if (strcmp(rpc_call_method(rpc), "GET") != 0 ||
        strcmp(rpc_call_path(rpc), "/metrics") != 0) {
        rpc_http_reply(rpc, 404, "text/plain", "GET /metrics\n", 13);
        return;
    }
    look_around(o);
    buf_init(&page, &o->server->alloc);
    metrics_write(o->metrics, &page);
    if (page.failed)
        rpc_http_reply(rpc, 500, "text/plain", "out of memory\n", 14);
    else
        rpc_http_reply(rpc, 200, METRICS_CONTENT_TYPE, page.data, page.size);
    buf_deinit(&page);
}

static void body(void *ud, rpc_call *rpc, const void *data, size_t size)
{
    (void)ud;
    (void)rpc;
    (void)data;
    (void)size;
}

static void no_more(void *ud, rpc_call *rpc)
{
    (void)ud;
    (void)rpc;
}

static void left(void *ud, rpc_call *rpc, rpc_gone why)
{
    (void)ud;
    (void)rpc;
    (void)why;
}

static const rpc_service page_service = {asked, body, no_more, no_more, left};

/* ---------------------------------------------------------------------- life */

static sessile_status open_metrics(observe *o, sessile_error *err)
{
    metrics_names names = {o->methods, 0, observe_rules, OBSERVE_RULES};
    const method *m;
    for (size_t i = 0; i + 1 < OBSERVE_METHODS && (m = method_at(i)); i++)
        o->methods[names.method_count++] = m->name;
    /* health, and what else is no method of sessions: method_number() is behind the last
     */
    o->methods[names.method_count++] = "other";
    o->metrics = metrics_new(&o->server->alloc, &names);
    return o->metrics ? SESSILE_OK : fail_nomem(err);
}

sessile_status observe_open(observe **out, service *s, const char *address,
                            sessile_error *err)
{
    const telemetry_program program = {sessile_version(), NULL};
    telemetry_options options;
    observe *o = mem_zalloc(&s->alloc, sizeof *o);
    *out = o;
    if (!o)
        return fail_nomem(err);
    o->server = s;
    sessile_status status = open_metrics(o, err);
    if (!status)
        status = telemetry_settings_read(&o->settings, &s->alloc, os_current->env,
                                         os_current->ud, &program, err);
    options = (telemetry_options){.settings = &o->settings, .metrics = o->metrics};
    if (!status)
        status = telemetry_new(&o->telemetry, &s->alloc, &options, err);
    if (!status && address)
        status = rpc_listen(&o->listener, s->loops, (size_t)s->settings.loops, address,
                            NULL, &page_service, o, err);
    return status;
}

static void *export_all(void *telemetry)
{
    telemetry_run(telemetry);
    return NULL;
}

sessile_status observe_start(observe *o, sessile_error *err)
{
    if (!o->telemetry)
        return SESSILE_OK;
    int why = pthread_create(&o->thread, NULL, export_all, o->telemetry);
    if (why)
        return fail_errno(err, why, "a thread cannot be started");
    o->running = 1;
    return SESSILE_OK;
}

void observe_stop(observe *o)
{
    if (!o)
        return;
    if (o->running) {
        look_around(o);
        telemetry_stop(o->telemetry, STOP_MS);
        pthread_join(o->thread, NULL);
        o->running = 0;
    }
    if (o->listener)
        rpc_listener_close(o->listener);
    o->listener = NULL;
}

void observe_close(observe *o)
{
    if (!o)
        return;
    telemetry_free(o->telemetry);
    telemetry_settings_deinit(&o->settings);
    metrics_free(o->metrics);
    mem_free(&o->server->alloc, o, sizeof *o);
}

const char *observe_address(const observe *o)
{
    return o->listener ? rpc_listener_address(o->listener) : NULL;
}
