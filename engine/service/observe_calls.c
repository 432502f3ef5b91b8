/*
 * observe_calls.c: what is counted, traced and said of a call.
 *
 * A call is counted once, by whoever first knows what it came to: the worker that ends
 * it, or the loop that finds its client gone.
 */
#include "service/observe.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

const char *const observe_rules[OBSERVE_RULES] = {
    "session_creation",  "checkpoint_writes", "memory_reads", "memory_writes",
    "branch_operations", "searches",          "exports",      "grants",
    "failures"};

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
    c->seen.begun_us = c->seen.waits_us = os_now_us();
    memset(&caller, 0, sizeof caller);
    if (header)
        (void)traceparent_parse(&caller, header, strlen(header));
    metrics_move(o->metrics, METRIC_CALLS_RUNNING, 1);
    /* who asks for health asks all the time */
    span_begin(&c->seen.span, c->method->flags & METHOD_LOOP ? NULL : o->telemetry,
               rpc_call_path(c->rpc) + 1, SPAN_SERVER, &caller);
    c->seen.context = c->seen.span.context;
    c->seen.to = c->seen.span.to;
}

void observe_opened(observe *o)
{
    metrics_add(observe_metrics(o), METRIC_SESSIONS_OPENED, 0, 0, 1);
}

/* ---------------------------------------------------------------------- parts */

void observe_part(call *c, span *out, const char *name, span_kind kind)
{
    span whole;
    memset(&whole, 0, sizeof whole);
    whole.context = c->seen.context;
    whole.to = c->seen.to;
    span_child(out, &whole, name, kind);
}

void observe_waits(call *c)
{
    c->seen.waits_us = os_now_us();
}

void observe_taken(call *c)
{
    observe *o = c->server->observe;
    span wait;
    if (!o)
        return;
    metrics_observe(o->metrics, METRIC_QUEUE_SECONDS, 0,
                    (os_now_us() - c->seen.waits_us) * 1000);
    observe_part(c, &wait, "queue", SPAN_INTERNAL);
    span_began(&wait, c->seen.waits_us);
    span_end(&wait);
}

/* ---------------------------------------------------------------------- ends */

/* The session of a request that is protobuf by now: 1: it names one. Under the call's
 * mutex. */
static int session_of(call *c, sessile_slice *id)
{
    sessile_slice names[3];
    if (c->method->flags & (METHOD_ALL | METHOD_LOOP | METHOD_RECORDS) ||
        (c->speech.as != CALL_GRPC && !atomic_load(&c->speech.translated)) ||
        !decode_names(c->method->input, c->request.data, c->request.size, names))
        return 0;
    *id = names[2];
    return 1;
}

static void end_span(call *c, rpc_code code)
{
    sessile_slice id;
    if (!c->seen.to)
        return;
    span_set(&c->seen.span, attribute_text("rpc.system", "grpc"));
    span_set(&c->seen.span, attribute_number("rpc.grpc.status_code", (int64_t)code));
    pthread_mutex_lock(&c->mutex);
    if (session_of(c, &id))
        span_set_session(&c->seen.span, id);
    pthread_mutex_unlock(&c->mutex);
    if (code != RPC_OK)
        span_fail(&c->seen.span, status_code_name(code));
    span_end(&c->seen.span);
}

static void count_end(call *c, rpc_code code, const char *rule)
{
    observe *o = c->server->observe;
    size_t limit = 0;
    if (!o || atomic_exchange(&c->seen.counted, 1))
        return;
    const size_t number = method_number(c->method);
    metrics_move(o->metrics, METRIC_CALLS_RUNNING, -1);
    metrics_add(o->metrics, METRIC_CALLS, number, (size_t)code, 1);
    metrics_observe(o->metrics, METRIC_CALL_SECONDS, number,
                    (os_now_us() - c->seen.begun_us) * 1000);
    if (code == RPC_RESOURCE_EXHAUSTED && *rule) {
        while (limit < OBSERVE_RULES && strcmp(observe_rules[limit], rule) != 0)
            limit++;
        metrics_add(o->metrics, METRIC_LIMIT_REFUSALS, limit, 0, 1);
    }
    end_span(c, code);
}

void observe_ended(call *c, rpc_code code)
{
    count_end(c, code, "");
}

/* ---------------------------------------------------------------------- failures */

/* What is said of a status; REPORT_KINDS: nothing, it is the client's. */
static report_kind kind_of(const sessile_error *err, const char **message)
{
    if (strcmp(err->rule, "audit") == 0) {
        *message = "A call failed: the audit cannot be written.";
        return REPORT_AUDIT;
    }
    switch (err->code) {
    case SESSILE_IO:
    case SESSILE_SEALED:
        *message = "A call failed: the store cannot be read or written.";
        return REPORT_STORE;
    case SESSILE_DAMAGED:
    case SESSILE_TRUNCATED:
        *message = "A call failed: what is stored is not what was written.";
        return REPORT_DAMAGE;
    case SESSILE_NOMEM:
    case SESSILE_FULL:
        *message = "A call failed: there is no memory, or no space on a device.";
        return REPORT_MEMORY;
    case SESSILE_BUSY:
        *message = "A call was refused, or waited in vain.";
        return REPORT_LOAD;
    default:
        *message = "A call failed for a reason of the server's.";
        return status_code(err->code, 0) == RPC_INTERNAL ? REPORT_INTERNAL : REPORT_KINDS;
    }
}

static void say_failed(call *c, const sessile_error *err)
{
    observe *o = c->server->observe;
    const char *message;
    report_kind kind = kind_of(err, &message);
    char status[32], hash[SESSION_HASH_SIZE];
    attribute fields[4];
    size_t count = 2;
    sessile_slice id;
    buf why;
    if (kind == REPORT_KINDS ||
        (kind == REPORT_LOAD && atomic_load(&c->server->stops) > 0))
        return;
    buf_init(&why, &c->server->alloc);
    snprintf(status, sizeof status, "E%s", sessile_status_name(err->code));
    fields[0] = attribute_text("method", c->method->name);
    fields[1] = attribute_text("status", status);
    /* Of a call that names no session the sentence may name any. */
    pthread_mutex_lock(&c->mutex);
    if (session_of(c, &id)) {
        session_hash(hash, id);
        fields[count++] = o->show_ids ? attribute_slice("session", id)
                                      : attribute_text("session", hash);
        if (o->show_ids)
            buf_puts(&why, err->message);
        else
            report_put_sentence(&why, err->message, c->request.data, c->request.size);
        if (!why.failed)
            fields[count++] = attribute_slice("why", (sessile_slice){why.data, why.size});
    }
    report(&o->reports, kind, kind == REPORT_LOAD ? LEVEL_WARN : LEVEL_ERROR,
           &c->seen.context, message, fields, count);
    pthread_mutex_unlock(&c->mutex);
    buf_deinit(&why);
}

void observe_failed(call *c, const sessile_error *err)
{
    if (c->server->observe)
        say_failed(c, err);
    count_end(c, status_code(err->code, c->flags), err->rule);
}

void observe_report(observe *o, report_kind kind, log_level level, const char *message,
                    const attribute *fields, size_t field_count)
{
    if (o)
        report(&o->reports, kind, level, NULL, message, fields, field_count);
}
