/*
 * test_nodes_traced.c: a call that is passed on is one trace: the client's span, the
 * first node's, the passing on, the owner's and its parts.
 *
 * A receiver that decodes by protobuf gets the spans of all three nodes. Own stores: each
 * is a schema of a PostgreSQL server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/otlp.h"
#include "unit/service/trio.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#define TRACE   "0af7651916cd43dd8448eb211c80319c"
#define CALLER  "b7ad6b7169203331"
#define SESSION "canary-of-a-name-"
#define SAID    "canary of a text"

enum { SPANS = 400 };

typedef struct scene {
    trio t;
    otlp_receiver *receiver;
    cJSON *spans[SPANS]; /* with "node", of the trace */
    size_t count;
} scene;

static void scene_open(scene *s, int guarded)
{
    memset(s, 0, sizeof *s);
    s->receiver = otlp_receiver_needed(0, "200");
    char url[100];
    snprintf(url, sizeof url, "%s/v1/traces", s->receiver->url);
    setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url, 1);
    setenv("OTEL_BSP_SCHEDULE_DELAY", "20", 1);
    trio_open(&s->t, NULL, NULL, guarded);
}

static void scene_close(scene *s)
{
    trio_close(&s->t);
    for (size_t i = 0; i < s->count; i++)
        cJSON_Delete(s->spans[i]);
    otlp_receiver_free(s->receiver);
    unsetenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    unsetenv("OTEL_BSP_SCHEDULE_DELAY");
}

static const char *field(cJSON *span, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(span, name));
    return text ? text : "";
}

/* Takes the spans of TRACE out of the next request. */
static void take(scene *s)
{
    cJSON *said = otlp_receiver_next(s->receiver), *one, *next;
    char *raw = cJSON_PrintUnformatted(said);
    assert_null(strstr(raw, SESSION));
    assert_null(strstr(raw, SAID));
    if (s->t.key)
        assert_null(strstr(raw, strrchr(s->t.key, '_')));
    free(raw);
    cJSON *resource = otlp_at(said, "decoded.resourceSpans.0.resource.attributes");
    const char *node = otlp_attribute(resource, "service.instance.id");
    cJSON *spans = otlp_at(said, "decoded.resourceSpans.0.scopeSpans.0.spans");
    for (one = spans->child; one; one = next) {
        next = one->next;
        if (strcmp(field(one, "traceId"), TRACE) != 0)
            continue;
        assert_true(s->count < SPANS);
        cJSON_AddStringToObject(one, "node", node);
        s->spans[s->count++] = cJSON_DetachItemViaPointer(spans, one);
    }
    cJSON_Delete(said);
}

/* The span of a name below another one; waits for it. */
static cJSON *below(scene *s, const char *parent, const char *name)
{
    for (size_t i = 0;; i++) {
        while (i >= s->count)
            take(s);
        if (strcmp(field(s->spans[i], "parentSpanId"), parent) == 0 &&
            strcmp(field(s->spans[i], "name"), name) == 0)
            return s->spans[i];
    }
}

/* It began and ended within the other, if both are of one machine's clock. */
static void assert_within(cJSON *inner, cJSON *outer)
{
    uint64_t began[2], ended[2];
    cJSON *both[2] = {inner, outer};
    for (int i = 0; i < 2; i++) {
        began[i] = strtoull(field(both[i], "startTimeUnixNano"), NULL, 10);
        ended[i] = strtoull(field(both[i], "endTimeUnixNano"), NULL, 10);
        assert_true(began[i] <= ended[i]);
    }
    assert_true(began[0] + 1000000 >= began[1]); /* two clocks are read */
    assert_true(ended[0] <= ended[1] + 1000000);
}

static void append(scene *s, int node, const char *id)
{
    reply r = {0};
    assert_int_equal(trio_append(&s->t, node, id, SAID, &r), RPC_OK);
}

static void a_call_that_is_passed_on_is_one_trace(void **state)
{
    static const char method[] = "sessile.v1.SessionService/AppendMessage";
    scene s;
    char id[32], name[8];
    (void)state;
    scene_open(&s, 0);
    snprintf(id, sizeof id, SESSION "%d", 1);
    int owner = trio_settled(&s.t, id, -1), first = (owner + 1) % TRIO;
    s.t.traceparent = "00-" TRACE "-" CALLER "-01";
    append(&s, first, id);

    cJSON *call = below(&s, CALLER, method);
    snprintf(name, sizeof name, "node%d", first);
    assert_string_equal(field(call, "node"), name);
    cJSON *relay = below(&s, field(call, "spanId"), "relay");
    assert_string_equal(field(relay, "node"), name);
    snprintf(name, sizeof name, "node%d", owner);
    assert_string_equal(otlp_attribute(otlp_at(relay, "attributes"), "sessile.node"),
                        name);
    cJSON *there = below(&s, field(relay, "spanId"), method);
    assert_string_equal(field(there, "node"), name);
    cJSON *queue = below(&s, field(there, "spanId"), "queue");
    cJSON *engine = below(&s, field(there, "spanId"), "engine");
    assert_within(relay, call);
    assert_within(there, relay);
    assert_within(queue, there);
    assert_within(engine, there);
    /* both ends name the session alike, by its hash */
    const char *hash = otlp_attribute(otlp_at(there, "attributes"), "session.id");
    assert_int_equal(strlen(hash), 16);
    assert_string_equal(otlp_attribute(otlp_at(call, "attributes"), "session.id"), hash);
    scene_close(&s);
}

static void a_call_at_its_owner_has_no_relay(void **state)
{
    scene s;
    char id[32];
    (void)state;
    scene_open(&s, 1);
    trio_session_of(&s.t, 1, id);
    s.t.traceparent = "00-" TRACE "-" CALLER "-01";
    append(&s, 1, id);
    cJSON *call = below(&s, CALLER, "sessile.v1.SessionService/AppendMessage");
    (void)below(&s, field(call, "spanId"), "credential");
    (void)below(&s, field(call, "spanId"), "engine");
    for (size_t i = 0; i < s.count; i++)
        assert_string_not_equal(field(s.spans[i], "name"), "relay");
    scene_close(&s);
}

static void a_trace_that_is_not_sampled_stays_so_at_the_owner(void **state)
{
    scene s;
    char id[32];
    (void)state;
    scene_open(&s, 0);
    snprintf(id, sizeof id, SESSION "%d", 3);
    int owner = trio_settled(&s.t, id, -1), first = (owner + 1) % TRIO;
    s.t.traceparent = "00-" TRACE "-" CALLER "-00";
    append(&s, first, id);
    s.t.traceparent = "00-" TRACE "-" CALLER "-01";
    append(&s, first, id); /* behind it, so that there is something to wait for */
    cJSON *call = below(&s, CALLER, "sessile.v1.SessionService/AppendMessage");
    cJSON *relay = below(&s, field(call, "spanId"), "relay");
    (void)below(&s, field(relay, "spanId"), "sessile.v1.SessionService/AppendMessage");
    size_t calls = 0;
    for (size_t i = 0; i < s.count; i++)
        calls += strcmp(field(s.spans[i], "parentSpanId"), CALLER) == 0;
    assert_int_equal(calls, 1);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_passed_on_is_one_trace),
        cmocka_unit_test(a_call_at_its_owner_has_no_relay),
        cmocka_unit_test(a_trace_that_is_not_sampled_stays_so_at_the_owner),
    };
    return cmocka_run_group_tests_name("traces of several nodes", tests, NULL, NULL);
}
