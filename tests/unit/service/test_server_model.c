/*
 * test_server_model.c: a server that has a model: calls that answer once go on with its
 * answers, and the session's other calls do not wait for it.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/runs.h"

/* Asks twice, and covers all but the last two messages with what was answered. */
static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    if #state.messages < 4 then return end\n"
    "    local all = ''\n"
    "    for i = 1, 2 do\n"
    "      local answer, why = ctx.model { messages = {{ role = 'user',\n"
    "        content = 'question ' .. i }} }\n"
    "      all = all .. (answer or error(why, 0))\n"
    "    end\n"
    "    state:insert(1, { content = all }, { covers = { 1, #state.messages - 2 } })\n"
    "  end }\n";

static int make_policies(void **state)
{
    char path[200];
    if (make_folder(state))
        return -1;
    snprintf(path, sizeof path, "%s/asker.lua", runs_folder);
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fputs(asker, f);
    return fclose(f);
}

/* ---------------------------------------------------------------------- the model */

typedef struct fake_model {
    atomic_int asked;
    atomic_int held; /* 1: it does not answer until this is 0, or nobody waits */
    sessile_status status;
    const char *text; /* NULL: what it was asked, with what about */
} fake_model;

static sessile_status answer(void *arg, const service_question *q, buf *text)
{
    fake_model *m = arg;
    atomic_fetch_add(&m->asked, 1);
    while (atomic_load(&m->held)) {
        if (q->over(q->over_arg))
            return SESSILE_CANCELLED;
        usleep(1000);
    }
    if (m->text)
        buf_puts(text, m->text);
    else
        buf_printf(text, "[%.*s/%.*s %.*s]", (int)q->agent.size, q->agent.data,
                   (int)q->session.size, q->session.data, (int)q->settings.size,
                   q->settings.data ? q->settings.data : "");
    return m->status;
}

typedef struct world {
    serving s;
    sessile_store *store;
    fake_model model;
} world;

static int start(void **state)
{
    world *w = calloc(1, sizeof *w);
    service_settings settings = {.model = {answer, &w->model}};
    assert_non_null(w);
    w->store = run_store("ram:");
    serving_start(&w->s, w->store, &settings);
    *state = w;
    return 0;
}

static int stop(void **state)
{
    world *w = *state;
    serving_stop(&w->s);
    sessile_store_close(w->store);
    free(w);
    return 0;
}
#define SERVED(test) cmocka_unit_test_setup_teardown(test, start, stop)

/* ---------------------------------------------------------------------- requests */

static void fill(world *w)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of("s");
    serve_ok(&w->s, "CreateSession", &r);
    for (int i = 0; i < 6; i++)
        append_by(&w->s, "s",
                  "a message that has more words than what stands for it afterwards, or "
                  "else it would not be worth the change of a context that was cached");
}

static Sessile__V1__CompactRequest *compact(void)
{
    static Sessile__V1__Policy policy;
    static Sessile__V1__Policy *rows[1] = {&policy};
    static Sessile__V1__RunConfig config;
    static Sessile__V1__CompactRequest r;
    sessile__v1__policy__init(&policy);
    sessile__v1__run_config__init(&config);
    sessile__v1__compact_request__init(&r);
    policy.name = (char *)"asker";
    config.policies = rows;
    config.n_policies = 1;
    r.session = names_of("s");
    r.config = &config;
    return &r;
}

static const char *first_message(world *w)
{
    Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
    r.session = names_of("s");
    const Sessile__V1__Messages *m = serve_ok(&w->s, "GetContext", &r);
    assert_true(m->n_messages > 0);
    return m->messages[0]->json->text;
}

static void wait_until_asked(world *w, int times)
{
    for (int i = 0; atomic_load(&w->model.asked) < times; i++) {
        if (i > 30000)
            fail_msg("the model is not asked");
        rpc_loop_turn(w->s.loop, 1);
    }
}

/* ---------------------------------------------------------------------- tests */

static void its_answers_are_used(void **state)
{
    world *w = *state;
    fill(w);
    w->model.text = "AB";
    const Sessile__V1__Outcome *outcome = serve_ok(&w->s, "Compact", compact());
    assert_string_equal(outcome->verdict, "applied");
    assert_null(outcome->pending_run);
    assert_int_equal(w->model.asked, 2);
    assert_non_null(strstr(first_message(w), "ABAB"));
}

static void it_is_told_what_the_question_is_about(void **state)
{
    world *w = *state;
    Sessile__V1__ObjectRequest r = SESSILE__V1__OBJECT_REQUEST__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    fill(w);
    r.session = names_of("s");
    r.object = &json;
    json.text = "{\"model\":\"fast\"}";
    serve_ok(&w->s, "SetSettings", &r);
    serve_ok(&w->s, "Compact", compact());
    assert_non_null(strstr(first_message(w), "[main/s {\\\"model\\\":\\\"fast\\\"}]"));
}

static void a_model_that_fails_is_a_failure_of_the_run(void **state)
{
    world *w = *state;
    fill(w);
    w->model.status = SESSILE_IO;
    w->model.text = "the endpoint answered 503";
    const Sessile__V1__Outcome *outcome = serve_ok(&w->s, "Compact", compact());
    assert_string_equal(outcome->verdict, "refused");
    assert_non_null(strstr(outcome->message, "answered 503"));
    assert_null(outcome->pending_run);
}

static void what_it_cannot_be_asked_now_is_parked(void **state)
{
    world *w = *state;
    Sessile__V1__AnswerRequest r = SESSILE__V1__ANSWER_REQUEST__INIT;
    Sessile__V1__Answer given = SESSILE__V1__ANSWER__INIT;
    fill(w);
    w->model.status = SESSILE_BUSY;
    const Sessile__V1__Outcome *outcome = serve_ok(&w->s, "Compact", compact());
    assert_string_equal(outcome->verdict, "pending");
    assert_non_null(outcome->pending_run);
    assert_string_equal(outcome->need->kind, "model");
    /* the answer of a client begins a run, whose next question the model has */
    w->model.status = SESSILE_OK;
    w->model.text = "B";
    r.session = names_of("s");
    r.answer = &given;
    r.config = compact()->config;
    given.text = "A";
    outcome = serve_ok(&w->s, "Answer", &r);
    assert_string_equal(outcome->verdict, "applied");
    assert_non_null(strstr(first_message(w), "AB"));
}

static void other_calls_of_the_session_go_on_meanwhile(void **state)
{
    world *w = *state;
    stream asking;
    fill(w);
    w->model.held = 1;
    w->model.text = "AB";
    stream_begin(&w->s, &asking, "Compact", compact());
    wait_until_asked(w, 1);
    append_by(&w->s, "s", "said meanwhile");
    assert_non_null(strstr(first_message(w), "a message"));
    atomic_store(&w->model.held, 0);
    stream_wait_end(&asking);
    assert_int_equal(asking.code, RPC_OK);
    stream_done(&asking);
}

static size_t pending_runs(world *w)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    r.session = names_of("s");
    const Sessile__V1__PendingRuns *runs = serve_ok(&w->s, "ListPendingRuns", &r);
    return runs->n_runs;
}

static void a_client_that_goes_leaves_a_pending_run(void **state)
{
    world *w = *state;
    stream asking;
    fill(w);
    w->model.held = 1;
    stream_begin(&w->s, &asking, "Compact", compact());
    wait_until_asked(w, 1);
    stream_done(&asking);
    for (int i = 0; pending_runs(w) == 0; i++)
        if (i > 10000)
            fail_msg("the run is not parked");
    atomic_store(&w->model.held, 0);
}

static void a_server_that_ends_parks_what_it_asks(void **state)
{
    world *w = *state;
    stream asking;
    fill(w);
    w->model.held = 1;
    stream_begin(&w->s, &asking, "Compact", compact());
    wait_until_asked(w, 1);
    serving_drain(&w->s);
    stream_wait_end(&asking);
    assert_int_equal(asking.code, RPC_OK);
    const Sessile__V1__Outcome *outcome = asking.replies[0];
    assert_non_null(outcome->pending_run);
    stream_done(&asking);
}

/* In a stream the client answers, whatever the server has. */
static void a_stream_is_its_clients_to_answer(void **state)
{
    world *w = *state;
    stream st;
    Sessile__V1__RunRequest r = SESSILE__V1__RUN_REQUEST__INIT;
    fill(w);
    r.what_case = SESSILE__V1__RUN_REQUEST__WHAT_COMPACT;
    r.compact = compact();
    stream_begin(&w->s, &st, "Run", &r);
    assert_true(stream_wait(&st, 1));
    const Sessile__V1__RunEvent *event = st.replies[0];
    assert_int_equal(event->what_case, SESSILE__V1__RUN_EVENT__WHAT_NEED);
    assert_int_equal(w->model.asked, 0);
    stream_done(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(its_answers_are_used),
        SERVED(it_is_told_what_the_question_is_about),
        SERVED(a_model_that_fails_is_a_failure_of_the_run),
        SERVED(what_it_cannot_be_asked_now_is_parked),
        SERVED(other_calls_of_the_session_go_on_meanwhile),
        SERVED(a_client_that_goes_leaves_a_pending_run),
        SERVED(a_server_that_ends_parks_what_it_asks),
        SERVED(a_stream_is_its_clients_to_answer),
    };
    return cmocka_run_group_tests_name("server model", tests, make_policies,
                                       remove_folder);
}
