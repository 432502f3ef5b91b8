/*
 * test_run_stream.c: Run: a client answers what a policy asks for, goes at any moment,
 * and another one goes on at another server.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

/* Asks three times, each time with what was answered before, and covers all but the last
 * two messages. */
static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    if #state.messages < 4 then return end\n"
    "    local all = ''\n"
    "    for i = 1, 3 do\n"
    "      local content = i .. ':' .. all\n"
    "      local answer, why = ctx.model { messages = {{ role = 'user',\n"
    "        content = content }} }\n"
    "      all = all .. (answer or '-')\n"
    "    end\n"
    "    state:insert(1, { content = all }, { covers = { 1, #state.messages - 2 } })\n"
    "  end }\n";

enum { QUESTIONS = 3 };
static const char *const ANSWERS[QUESTIONS] = {"A", "B", "C"};

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

/* ---------------------------------------------------------------------- requests */

static Sessile__V1__RunConfig *with_asker(void)
{
    static Sessile__V1__Policy policy;
    static Sessile__V1__Policy *rows[1] = {&policy};
    static Sessile__V1__RunConfig config;
    sessile__v1__policy__init(&policy);
    sessile__v1__run_config__init(&config);
    policy.name = (char *)"asker";
    config.policies = rows;
    config.n_policies = 1;
    return &config;
}

static void run_compact(serving *s, stream *st, const char *id)
{
    Sessile__V1__CompactRequest compact = SESSILE__V1__COMPACT_REQUEST__INIT;
    Sessile__V1__RunRequest r = SESSILE__V1__RUN_REQUEST__INIT;
    compact.session = names_of(id);
    compact.config = with_asker();
    r.what_case = SESSILE__V1__RUN_REQUEST__WHAT_COMPACT;
    r.compact = &compact;
    stream_begin(s, st, "Run", &r);
}

static void reply(stream *st, const char *text)
{
    Sessile__V1__Answer a = SESSILE__V1__ANSWER__INIT;
    Sessile__V1__RunRequest r = SESSILE__V1__RUN_REQUEST__INIT;
    a.text = (char *)text;
    r.what_case = SESSILE__V1__RUN_REQUEST__WHAT_REPLY;
    r.reply = &a;
    stream_send(st, &r);
}

static const Sessile__V1__RunEvent *run_event(const stream *st, size_t i)
{
    assert_true(i < st->count);
    return st->replies[i];
}

/* Event i is the need of question i, which has the answers before it. */
static void is_question(const stream *st, size_t i)
{
    char expected[40];
    const Sessile__V1__RunEvent *e = run_event(st, i);
    assert_int_equal(e->what_case, SESSILE__V1__RUN_EVENT__WHAT_NEED);
    assert_string_equal(e->need->kind, "model");
    assert_string_equal(e->need->policy, "asker");
    snprintf(expected, sizeof expected, "\"%zu:%.*s\"", i + 1, (int)i, "ABC");
    assert_non_null(strstr(e->need->request->text, expected));
}

static const Sessile__V1__Outcome *outcome_at(const stream *st, size_t i)
{
    const Sessile__V1__RunEvent *e = run_event(st, i);
    assert_int_equal(e->what_case, SESSILE__V1__RUN_EVENT__WHAT_OUTCOME);
    return e->outcome;
}

static void fill(serving *s, const char *id)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of(id);
    serve_ok(s, "CreateSession", &r);
    for (int i = 0; i < 6; i++)
        append_by(s, id, "a message");
}

/* The first message of a context. */
static const char *first_message(serving *s, const char *id)
{
    Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
    r.session = names_of(id);
    const Sessile__V1__Messages *m = serve_ok(s, "GetContext", &r);
    assert_true(m->n_messages > 0);
    return m->messages[0]->json->text;
}

static size_t pending_runs(serving *s, const char *id)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    r.session = names_of(id);
    const Sessile__V1__PendingRuns *runs = serve_ok(s, "ListPendingRuns", &r);
    return runs->n_runs;
}

/* Until the run is there, which its server parks when it sees that the client has gone.
 */
static void wait_until_parked(serving *s, const char *id)
{
    for (int i = 0; pending_runs(s, id) == 0; i++) {
        if (i == 3000)
            fail_msg("the run of %s was not parked", id);
        rpc_loop_turn(s->loop, 10);
    }
}

static const Sessile__V1__Outcome *answer_parked(serving *s, const char *id,
                                                 const char *text)
{
    Sessile__V1__AnswerRequest r = SESSILE__V1__ANSWER_REQUEST__INIT;
    Sessile__V1__Answer a = SESSILE__V1__ANSWER__INIT;
    a.text = (char *)text;
    r.session = names_of(id);
    r.answer = &a;
    return serve_ok(s, "Answer", &r);
}

/* ---------------------------------------------------------------------- tests */

static void test_three_questions_in_one_compaction(void **state)
{
    sessile_store *store = run_store("ram:");
    serving s;
    stream st;
    (void)state;
    serving_start(&s, store, NULL);
    fill(&s, "r");
    run_compact(&s, &st, "r");
    for (size_t i = 0; i < QUESTIONS; i++) {
        assert_true(stream_wait(&st, i + 1));
        is_question(&st, i);
        reply(&st, ANSWERS[i]);
    }
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_OK);
    assert_int_equal(st.count, QUESTIONS + 1);
    assert_string_equal(outcome_at(&st, QUESTIONS)->verdict, "applied");
    assert_non_null(strstr(first_message(&s, "r"), "ABC"));
    stream_done(&st);
    serving_stop(&s);
    sessile_store_close(store);
}

/* After each event the client is cut off; the rest is answered at another server. */
static void test_cut_at_each_event_another_server_goes_on(void **state)
{
    char url[200];
    (void)state;
    snprintf(url, sizeof url, "sqlite:%s/cut.db", runs_folder);
    sessile_store *stores[2] = {run_store(url), run_store(url)};
    serving s[2];
    for (int i = 0; i < 2; i++)
        serving_start(&s[i], stores[i], NULL);
    for (size_t cut = 0; cut < QUESTIONS; cut++) {
        stream st;
        char id[20];
        snprintf(id, sizeof id, "cut-%zu", cut);
        fill(&s[0], id);
        run_compact(&s[0], &st, id);
        for (size_t i = 0; i <= cut; i++) {
            assert_true(stream_wait(&st, i + 1));
            is_question(&st, i);
            if (i < cut)
                reply(&st, ANSWERS[i]);
        }
        stream_done(&st); /* it is cancelled */
        wait_until_parked(&s[1], id);
        for (size_t i = cut; i < QUESTIONS; i++) {
            const Sessile__V1__Outcome *out = answer_parked(&s[1], id, ANSWERS[i]);
            int last = i + 1 == QUESTIONS;
            assert_string_equal(out->verdict, last ? "applied" : "pending");
            assert_true(last == !out->need);
        }
        assert_non_null(strstr(first_message(&s[0], id), "ABC"));
        assert_int_equal(pending_runs(&s[0], id), 0);
    }
    for (int i = 0; i < 2; i++) {
        serving_stop(&s[i]);
        sessile_store_close(stores[i]);
    }
}

static void test_a_client_parks_or_sends_no_more(void **state)
{
    sessile_store *store = run_store("ram:");
    serving s;
    (void)state;
    serving_start(&s, store, NULL);
    for (int way = 0; way < 2; way++) {
        stream st;
        const char *id = way ? "half" : "parks";
        fill(&s, id);
        run_compact(&s, &st, id);
        assert_true(stream_wait(&st, 1));
        if (way) {
            rpc_request_end(st.request);
        } else {
            Sessile__V1__RunRequest r = SESSILE__V1__RUN_REQUEST__INIT;
            Sessile__V1__Empty empty = SESSILE__V1__EMPTY__INIT;
            r.what_case = SESSILE__V1__RUN_REQUEST__WHAT_PARK;
            r.park = &empty;
            stream_send(&st, &r);
        }
        stream_wait_end(&st);
        assert_int_equal(st.code, RPC_OK);
        assert_int_equal(st.count, 2);
        const Sessile__V1__Outcome *out = outcome_at(&st, 1);
        assert_string_equal(out->verdict, "pending");
        assert_non_null(out->pending_run);
        assert_non_null(strstr(out->need->request->text, "\"1:\""));
        assert_int_equal(pending_runs(&s, id), 1);
        stream_done(&st);
    }
    serving_stop(&s);
    sessile_store_close(store);
}

static void test_a_server_that_ends_parks_what_waits(void **state)
{
    char url[200];
    serving s;
    stream st;
    (void)state;
    snprintf(url, sizeof url, "file:%s/drain", runs_folder);
    sessile_store *store = run_store(url);
    serving_start(&s, store, NULL);
    fill(&s, "r");
    run_compact(&s, &st, "r");
    assert_true(stream_wait(&st, 1));
    serving_drain(&s);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_OK);
    assert_string_equal(outcome_at(&st, 1)->verdict, "pending");
    stream_done(&st);
    serving_stop(&s);

    serving_start(&s, store, NULL);
    assert_int_equal(pending_runs(&s, "r"), 1);
    serving_stop(&s);
    sessile_store_close(store);
}

/* With one worker: runs that wait hold neither it nor their session. */
static void test_runs_that_wait_hold_nothing(void **state)
{
    enum { RUNS = 20 };
    static stream all[RUNS];
    service_settings settings;
    sessile_store *store = run_store("ram:");
    serving s;
    char id[20];
    (void)state;
    memset(&settings, 0, sizeof settings);
    settings.size.workers = 1;
    serving_start(&s, store, &settings);
    for (int i = 0; i < RUNS; i++) {
        snprintf(id, sizeof id, "wait-%d", i);
        fill(&s, id);
        run_compact(&s, &all[i], id);
        assert_true(stream_wait(&all[i], 1));
    }
    append_by(&s, "wait-0", "meanwhile");
    for (int i = RUNS; i-- > 0;)
        for (size_t k = 0; k < QUESTIONS; k++) {
            assert_true(stream_wait(&all[i], k + 1));
            is_question(&all[i], k);
            reply(&all[i], ANSWERS[k]);
        }
    for (int i = 0; i < RUNS; i++) {
        stream_wait_end(&all[i]);
        assert_int_equal(all[i].code, RPC_OK);
        assert_string_equal(outcome_at(&all[i], QUESTIONS)->verdict, "applied");
        stream_done(&all[i]);
    }
    serving_stop(&s);
    sessile_store_close(store);
}

static void test_what_is_no_answer_is_refused_and_parks(void **state)
{
    sessile_store *store = run_store("ram:");
    serving s;
    stream st;
    Sessile__V1__RunRequest empty = SESSILE__V1__RUN_REQUEST__INIT;
    (void)state;
    serving_start(&s, store, NULL);
    fill(&s, "r");
    stream_begin(&s, &st, "Run", &empty);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    stream_done(&st);

    run_compact(&s, &st, "r");
    assert_true(stream_wait(&st, 1));
    stream_send(&st, &empty);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    stream_done(&st);
    assert_int_equal(pending_runs(&s, "r"), 1);
    serving_stop(&s);
    sessile_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_questions_in_one_compaction),
        cmocka_unit_test(test_cut_at_each_event_another_server_goes_on),
        cmocka_unit_test(test_a_client_parks_or_sends_no_more),
        cmocka_unit_test(test_a_server_that_ends_parks_what_waits),
        cmocka_unit_test(test_runs_that_wait_hold_nothing),
        cmocka_unit_test(test_what_is_no_answer_is_refused_and_parks),
    };
    return cmocka_run_group_tests(tests, make_policies, remove_folder);
}
