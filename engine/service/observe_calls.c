/*
 * observe_calls.c: what is counted and traced of a call.
 *
 * A call is counted once, by whoever first knows what it came to: the worker that ends
 * it, or the loop that finds its client gone.
 */
#include "service/observe.h"

#include <string.h>

#include "base/os.h"

const char *const observe_rules[OBSERVE_RULES] = {
    "session_creation",  "checkpoint_writes", "memory_reads", "memory_writes",
    "branch_operations", "searches",          "exports",      "grants",
    "failures"};

static uint64_t now_us(void)
{
    return os_current->clock_us(os_current->ud);
}

metrics *observe_metrics(observe *o)
{
    return o ? o->metrics : NULL;
}

void observe_begun(call *c)
{
    observe *o = c->server->observe;
    const char *header = rpc_call_header(c->rpc, "traceparent");
    trace_context caller;
    atomic_init(&c->seen.counted, 0);
    if (!o)
        return;
    c->seen.begun_us = now_us();
    memset(&caller, 0, sizeof caller);
    if (header)
        (void)traceparent_parse(&caller, header, strlen(header));
    metrics_move(o->metrics, METRIC_CALLS_RUNNING, 1);
    span_begin(&c->seen.span, o->telemetry, rpc_call_path(c->rpc) + 1, SPAN_SERVER,
               &caller);
}

void observe_taken(call *c)
{
    observe *o = c->server->observe;
    if (o)
        metrics_observe(o->metrics, METRIC_QUEUE_SECONDS, 0,
                        (now_us() - c->seen.begun_us) * 1000);
}

void observe_ended(call *c, rpc_code code, const char *rule)
{
    observe *o = c->server->observe;
    size_t limit = 0;
    if (!o || atomic_exchange(&c->seen.counted, 1))
        return;
    const size_t number = method_number(c->method);
    metrics_move(o->metrics, METRIC_CALLS_RUNNING, -1);
    metrics_add(o->metrics, METRIC_CALLS, number, (size_t)code, 1);
    metrics_observe(o->metrics, METRIC_CALL_SECONDS, number,
                    (now_us() - c->seen.begun_us) * 1000);
    if (code == RPC_RESOURCE_EXHAUSTED && *rule) {
        while (limit < OBSERVE_RULES && strcmp(observe_rules[limit], rule) != 0)
            limit++;
        metrics_add(o->metrics, METRIC_LIMIT_REFUSALS, limit, 0, 1);
    }
    span_set(&c->seen.span, attribute_text("rpc.system", "grpc"));
    span_set(&c->seen.span, attribute_number("rpc.grpc.status_code", (int64_t)code));
    if (code != RPC_OK)
        span_fail(&c->seen.span, status_code_name(code));
    span_end(&c->seen.span);
}
