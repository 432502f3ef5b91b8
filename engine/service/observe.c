/*
 * observe.c: the numbers of the service, the page for Prometheus, and lines about the
 * numbers.
 *
 * Gauges that somebody else keeps are read when the page is asked for. Counters of
 * others, such as the loops' count of floods, are read about once a second, and a line
 * says by how much each grew.
 */
#include "service/observe.h"

#include <string.h>

#include "base/os.h"
#include "service/nodes.h"
#include "service/records.h"
#include "service/telemetry.h"
#include "service/watch.h"
#include "store/nodes.h"

enum { STOP_MS = 3000, TICK_MS = 1000 };

static rpc_loop_figures look_at_loops(const service *s)
{
    rpc_loop_figures all = {0};
    for (int i = 0; i < s->settings.loops; i++) {
        rpc_loop_figures one = rpc_loop_look(s->loops[i]);
        all.accepted += one.accepted;
        all.refused += one.refused;
        all.hostile += one.hostile;
        all.clear += one.clear;
        all.connections += one.connections;
    }
    return all;
}

/* ---------------------------------------------------------------------- the page */

static void look_around(void *ud)
{
    observe *o = ud;
    service *s = o->server;
    rpc_loop_figures all = look_at_loops(s);
    store_database db = store_database_look(service_backend(s));
    metrics_set(o->metrics, METRIC_CONNECTIONS, 0, all.connections);
    metrics_set(o->metrics, METRIC_CONNECTIONS_OPENED, 0, (int64_t)all.accepted);
    metrics_set(o->metrics, METRIC_CONNECTIONS_REFUSED, 0,
                (int64_t)(all.refused + all.hostile));
    metrics_set(o->metrics, METRIC_SESSIONS_KEPT, 0, (int64_t)keep_count(s->keep));
    metrics_set(o->metrics, METRIC_SESSIONS_KEPT_BYTES, 0, (int64_t)keep_bytes(s->keep));
    metrics_set(o->metrics, METRIC_QUEUE_LENGTH, 0, (int64_t)pool_waiting(s->pool));
    metrics_set(o->metrics, METRIC_POOL, STATE_BUSY, db.busy);
    metrics_set(o->metrics, METRIC_POOL, STATE_IDLE, db.idle);
    metrics_set(o->metrics, METRIC_TIMELINE, 0, db.timeline);
    metrics_set(o->metrics, METRIC_WATCHED, 0, (int64_t)watch_count(s->watch));
    metrics_set(o->metrics, METRIC_READY, 0, service_serves(s));
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

/* ---------------------------------------------------------------------- lines */

/* Says by how much a count grew since it was said last. */
static void say_grown(observe *o, report_kind kind, uint64_t *seen, uint64_t now,
                      const char *message)
{
    if (now > *seen)
        observe_report(o, kind, LEVEL_WARN, message,
                       (attribute[]){attribute_number("count", (int64_t)(now - *seen))},
                       1);
    *seen = now;
}

static void say_all(observe *o, int all)
{
    rpc_loop_figures now = look_at_loops(o->server);
    say_grown(o, REPORT_LOAD, &o->seen.refused, now.refused,
              "Connections were refused: as many as may be are open.");
    say_grown(o, REPORT_FLOOD, &o->seen.hostile, now.hostile,
              "Connections were ended: their peers flooded the server.");
    say_grown(o, REPORT_SERVER, &o->seen.clear, now.clear,
              "Clients spoke clear text at a port of TLS: their addresses need https:// "
              "or grpcs://.");
    say_grown(o, REPORT_TELEMETRY, &o->seen.dropped,
              metrics_sum(o->metrics, METRIC_TELEMETRY_DROPPED),
              "Telemetry was dropped: there was too much, or no receiver took it.");
    reports_tick(&o->reports, all);
}

void observe_tick(observe *o)
{
    uint64_t now = os_now_us();
    if (!o || now - o->seen.us < (uint64_t)TICK_MS * 1000)
        return;
    o->seen.us = now;
    say_all(o, 0);
}

static void hear_of_receiver(void *ud, metric_signal signal, int works,
                             const char *sentence)
{
    (void)signal;
    observe_report(ud, REPORT_TELEMETRY, works ? LEVEL_INFO : LEVEL_WARN, sentence, NULL,
                   0);
}

/* ---------------------------------------------------------------------- life */

static sessile_status open_metrics(observe *o, sessile_error *err)
{
    metrics_names names = {o->methods, 0, observe_rules, OBSERVE_RULES};
    const method *m;
    for (size_t i = 0; i + 1 < OBSERVE_METHODS && (m = method_any(i)); i++)
        o->methods[names.method_count++] = m->name;
    o->metrics = metrics_new(&o->server->alloc, &names);
    return o->metrics ? SESSILE_OK : fail_nomem(err);
}

static sessile_status open_telemetry(observe *o, const char *node, sessile_error *err)
{
    const telemetry_program program = {sessile_version(), node};
    const telemetry_options options = {.settings = &o->settings,
                                       .metrics = o->metrics,
                                       .report = hear_of_receiver,
                                       .look = look_around,
                                       .ud = o};
    sessile_status status = telemetry_settings_read(
        &o->settings, &o->server->alloc, os_current->env, os_current->ud, &program, err);
    o->settings.plain_ids = o->show_ids;
    return status ? status
                  : telemetry_new(&o->telemetry, &o->server->alloc, &options, err);
}

sessile_status observe_open(observe **out, service *s, const service_settings *settings,
                            const char *node, sessile_error *err)
{
    observe *o = mem_zalloc(&s->alloc, sizeof *o);
    *out = o;
    if (!o)
        return fail_nomem(err);
    o->server = s;
    o->show_ids = settings->log.show_ids;
    sessile_status status = open_metrics(o, err);
    if (!status)
        status = open_telemetry(o, node, err);
    reports_init(&o->reports, &(logger){.fd = settings->log.fd,
                                        .is_text = settings->log.is_text,
                                        .least = (log_level)settings->log.least,
                                        .metrics = o->metrics,
                                        .also = telemetry_log,
                                        .also_ud = o->telemetry});
    if (!status && settings->listen.metrics)
        status = rpc_listen(&o->listener, s->loops, (size_t)s->settings.loops,
                            settings->listen.metrics, NULL, &page_service, o, err);
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
    say_all(o, 1);
    if (o->running) {
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
    reports_deinit(&o->reports);
    mem_free(&o->server->alloc, o, sizeof *o);
}

const char *observe_address(const observe *o)
{
    return o->listener ? rpc_listener_address(o->listener) : NULL;
}
