/*
 * test_run.c: turns, compactions and plans through the public interface, with policies
 * that are the host's own functions and with small Lua files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sessile.h"

static char folder[64];

/* What the host's hooks do, and what they were called with. */
typedef struct script {
    char calls[256];
    void (*on)(sessile_hook hook, sessile_state *state, sessile_answer *answer,
               void *arg);
    void *arg;
    const char *model_text; /* answer to NEED_MODEL; NULL: a failure */
    int models;
    char request[2048];
} script;

static sessile_store *store_open(const char *url)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "a passphrase of some length";
    o.policy_path = folder;
    if (strcmp(url, "ram:") == 0)
        o.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&store, url, &o, &err), SESSILE_OK);
    return store;
}

static sessile_session *session_open(sessile_store *store)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session *s;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    assert_int_equal(sessile_session_open(&s, store, &o, &err), SESSILE_OK);
    return s;
}

/* What most tests begin with: an empty session in a volatile store. */
typedef struct world {
    sessile_store *store;
    sessile_session *s;
} world;

static void session_close(sessile_session *s)
{
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
}

static sessile_policy *host_policy(sessile_store *store, unsigned hooks)
{
    sessile_policy_step step = {"host", NULL, hooks};
    sessile_policy *p;
    sessile_error err;
    assert_int_equal(sessile_policy_load(&p, store, &step, 1, &err), SESSILE_OK);
    return p;
}

/* A Lua policy written to a file of its own. */
static sessile_policy *lua_policy(sessile_store *store, const char *name,
                                  const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.lua", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    sessile_policy_step step = {path, NULL, 0};
    sessile_policy *p;
    sessile_error err;
    sessile_status status = sessile_policy_load(&p, store, &step, 1, &err);
    if (status)
        print_message("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    return p;
}

static void answer_need(sessile_run *run, const sessile_need *need, script *sc)
{
    sessile_answer a = {SESSILE_OK, {NULL, 0}, 0};
    if (need->kind == SESSILE_NEED_MODEL) {
        sc->models++;
        snprintf(sc->request, sizeof sc->request, "%.*s", (int)need->request.size,
                 need->request.data);
        a.text = sessile_text(sc->model_text ? sc->model_text : "no model today");
        a.status = sc->model_text ? SESSILE_OK : SESSILE_IO;
    } else {
        strncat(sc->calls, sessile_hook_name(need->hook), 64);
        strncat(sc->calls, " ", 2);
        if (need->hook == SESSILE_HOOK_SHOULD_COMPACT)
            a.verdict = 1;
        if (sc->on)
            sc->on(need->hook, need->state, &a, sc->arg);
    }
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
}

static void finish(sessile_run *run, script *sc, sessile_outcome *out)
{
    sessile_need need;
    sessile_error err;
    sessile_status status;
    while ((status = sessile_run_step(run, &need, &err)) == SESSILE_NEEDS)
        answer_need(run, &need, sc);
    if (status)
        print_message("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, out, &err), SESSILE_OK);
}

/* A turn of n messages, alternately user and assistant, driven to its end. */
static sessile_run *turn(sessile_session *s, sessile_policy *p, int n, script *sc,
                         sessile_outcome *out)
{
    static const char *const texts[] = {
        "{\"role\":\"user\",\"content\":\"a question\"}",
        "{\"role\":\"assistant\",\"content\":\"an answer\"}"};
    sessile_slice m[8];
    sessile_run_options o;
    sessile_error err;
    sessile_run *run;
    for (int i = 0; i < n; i++)
        m[i] = sessile_text(texts[i % 2]);
    sessile_run_options_init(&o);
    o.policy = p;
    assert_int_equal(sessile_turn_begin(&run, s, m, (size_t)n, &o, &err), SESSILE_OK);
    finish(run, sc, out);
    return run;
}

static size_t context_size(sessile_session *s)
{
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, NULL),
                     SESSILE_OK);
    sessile_free(list);
    return count;
}

static size_t message_count(sessile_session *s)
{
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_messages(s, NULL, &list, &count, NULL), SESSILE_OK);
    sessile_free(list);
    return count;
}

/* How many entries of the log hold a text. */
static int entries_with(sessile_session *s, const char *text)
{
    sessile_entries *e;
    const char *json;
    size_t size;
    int n = 0;
    assert_int_equal(sessile_entries_open(&e, s, NULL), SESSILE_OK);
    while (!sessile_entries_next(e, NULL, &json, &size, NULL) && size)
        n += strstr(json, text) != NULL;
    sessile_entries_close(e);
    return n;
}

static void drop_first(sessile_hook hook, sessile_state *state, sessile_answer *a,
                       void *arg)
{
    (void)a;
    if (hook == *(sessile_hook *)arg)
        assert_int_equal(sessile_state_drop(state, 0, 0, NULL), SESSILE_OK);
}

static void a_turn_without_a_policy_is_written_and_done(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run *run = turn(s, NULL, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_NO_POLICY);
    assert_int_equal(out.first, 1);
    assert_int_equal(out.last, 3);
    assert_int_equal(message_count(s), 2);
    sessile_run_free(run);
}

static void hooks_run_in_the_order_of_the_contract(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, 63);
    script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run_free(turn(s, p, 2, &sc, &out));
    assert_string_equal(sc.calls,
                        "merge summarize truncate should_compact flush compact ");
    assert_int_equal(out.verdict, SESSILE_UNCHANGED);
    sessile_policy_free(p);
}

static void what_a_hook_drops_leaves_the_context_and_stays_in_the_log(void **state)
{
    (void)state;
    char url[96];
    snprintf(url, sizeof url, "%s/kept", folder);
    sessile_store *store = store_open(url);
    sessile_session *s = session_open(store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_run_free(turn(s, NULL, 4, &quiet, &out));
    sessile_run *run = turn(s, p, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    assert_int_equal(out.removal_count, 1);
    assert_int_equal(out.removals[0].key.entry, 1);
    assert_int_equal(out.removals[0].disposition, SESSILE_LOST);
    assert_true(out.tokens_after < out.tokens_before);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 5);
    assert_int_equal(message_count(s), 6);
    sessile_policy_free(p);
    session_close(s);
    sessile_store_close(store);

    store = store_open(url);
    s = session_open(store);
    assert_int_equal(context_size(s), 5);
    assert_int_equal(message_count(s), 6);
    session_close(s);
    sessile_store_close(store);
}

static void drop_the_call(sessile_hook hook, sessile_state *state, sessile_answer *a,
                          void *arg)
{
    (void)hook, (void)a, (void)arg;
    assert_int_equal(sessile_state_drop(state, 1, 1, NULL), SESSILE_OK);
}

/* user, call, result, user, assistant: written bare. */
static void with_a_call(sessile_session *s)
{
    static const char *const m[] = {
        "{\"role\":\"user\",\"content\":\"read it\"}",
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\","
        "\"name\":"
        "\"read\",\"arguments\":\"{}\"}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"the file\"}",
        "{\"role\":\"user\",\"content\":\"and now?\"}",
        "{\"role\":\"assistant\",\"content\":\"done\"}"};
    for (int i = 0; i < 5; i++)
        assert_int_equal(sessile_append(s, sessile_text(m[i]), NULL, NULL), SESSILE_OK);
}

static void a_result_without_its_call_is_refused_by_law_1(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    script sc = {.on = drop_the_call};
    sessile_outcome out;
    with_a_call(s);
    sessile_run *run = turn(s, p, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_int_equal(out.law, 1);
    assert_string_equal(out.policy, "host");
    assert_string_equal(out.hook, "truncate");
    assert_int_equal(context_size(s), 7);
    assert_int_equal(entries_with(s, "\"type\":\"refusal\""), 1);
    sessile_run_free(run);

    /* The turn stands, and the log says who was refused. */
    assert_int_equal(message_count(s), 7);
    sessile_policy_free(p);
}

static void say_no(sessile_hook hook, sessile_state *state, sessile_answer *a, void *arg)
{
    (void)hook;
    (void)arg;
    assert_int_equal(sessile_state_drop(state, 0, 0, NULL), SESSILE_OK);
    a->status = SESSILE_POLICY;
    a->text = sessile_text("the disk of the policy is full");
}

static void a_failing_hook_refuses_all_and_the_same_refusal_is_written_once(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    script sc = {.on = say_no};
    sessile_outcome out;
    for (int i = 0; i < 3; i++) {
        sessile_run *run = turn(s, p, 2, &sc, &out);
        assert_int_equal(out.verdict, SESSILE_REFUSED);
        assert_int_equal(out.law, 0);
        assert_non_null(strstr(out.message, "the disk of the policy is full"));
        assert_int_equal(out.repeated, i);
        sessile_run_free(run);
    }
    assert_int_equal(context_size(s), 6);
    assert_int_equal(entries_with(s, "\"type\":\"refusal\""), 1);
    sessile_policy_free(p);
}

/* Begins a turn whose truncate is asked for and not yet answered. */
static sessile_run *turn_waiting(sessile_session *s, sessile_policy *p,
                                 sessile_need *need)
{
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"slow question\"}");
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.policy = p;
    assert_int_equal(sessile_turn_begin(&run, s, &m, 1, &o, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_step(run, need, NULL), SESSILE_NEEDS);
    return run;
}

static void what_is_said_meanwhile_follows_the_proposal(void **state)
{
    world *w = *state;
    sessile_session *s = w->s, *other = session_open(w->store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_need need;
    sessile_run_free(turn(s, NULL, 4, &quiet, &out));
    sessile_run *run = turn_waiting(s, p, &need);
    assert_int_equal(context_size(other), 5);
    assert_int_equal(
        sessile_append(other,
                       sessile_text("{\"role\":\"assistant\",\"content\":\"me "
                                    "first\"}"),
                       NULL, NULL),
        SESSILE_OK);
    answer_need(run, &need, &sc);
    finish(run, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 5);
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_context(other, SESSILE_NO_ID, &list, &count, NULL, NULL),
                     SESSILE_OK);
    assert_int_equal(count, 5);
    assert_non_null(strstr(list[4].json.data, "me first"));
    sessile_free(list);
    sessile_policy_free(p);
    session_close(other);
}

static void a_proposal_is_stale_once_the_head_has_moved_away(void **state)
{
    world *w = *state;
    sessile_session *s = w->s, *other = session_open(w->store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_need need;
    sessile_run_free(turn(s, NULL, 4, &quiet, &out));
    sessile_run *run = turn_waiting(s, p, &need);
    assert_int_equal(sessile_clear(other, NULL), SESSILE_OK);
    answer_need(run, &need, &sc);
    finish(run, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_STALE);
    assert_int_equal(out.compaction, SESSILE_NO_ID);
    sessile_run_free(run);
    assert_int_equal(entries_with(s, "\"type\":\"compaction\""), 0);
    sessile_policy_free(p);
    session_close(other);
}

static void of_two_compactions_the_second_is_stale(void **state)
{
    world *w = *state;
    sessile_session *s = w->s, *other = session_open(w->store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_need need;
    sessile_run_free(turn(s, NULL, 4, &quiet, &out));
    sessile_run *run = turn_waiting(s, p, &need);
    sessile_run *quick;
    sessile_run_options o;
    sessile_run_options_init(&o);
    o.policy = p;
    assert_int_equal(sessile_compact_begin(&quick, other, &o, NULL), SESSILE_OK);
    sessile_outcome first;
    finish(quick, &sc, &first);
    assert_int_equal(first.verdict, SESSILE_APPLIED);
    sessile_run_free(quick);
    answer_need(run, &need, &sc);
    finish(run, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_STALE);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 4);
    sessile_policy_free(p);
    session_close(other);
}

static void a_run_freed_early_leaves_the_turn(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_run_free(turn_waiting(s, p, &need));
    assert_int_equal(message_count(s), 1);
    sessile_policy_free(p);
}

static void a_plan_writes_nothing_and_shows_what_would_be(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_hook hook = SESSILE_HOOK_COMPACT;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_COMPACT);
    script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_run *run;
    sessile_run_options o;
    sessile_message *list;
    size_t count;
    sessile_id before, after;
    sessile_run_free(turn(s, NULL, 6, &quiet, &out));
    assert_int_equal(sessile_head(s, &before, NULL), SESSILE_OK);
    sessile_run_options_init(&o);
    o.policy = p;
    assert_int_equal(sessile_plan_begin(&run, s, &o, NULL), SESSILE_OK);
    finish(run, &sc, &out);
    assert_int_equal(out.removal_count, 1);
    assert_int_equal(sessile_run_context(run, &list, &count, NULL), SESSILE_OK);
    assert_int_equal(count, 5);
    sessile_free(list);
    sessile_run_free(run);
    assert_int_equal(sessile_head(s, &after, NULL), SESSILE_OK);
    assert_int_equal(before, after);
    assert_int_equal(context_size(s), 6);
    sessile_policy_free(p);
}

static void compacting_without_a_policy_is_invalid(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_run *run;
    sessile_error err;
    assert_int_equal(sessile_compact_begin(&run, s, NULL, &err), SESSILE_INVALID);
    assert_null(run);
    assert_non_null(strstr(err.message, "policy"));
}

static void a_turn_on_an_old_base_is_a_conflict_and_writes_nothing(void **state)
{
    world *w = *state;
    sessile_session *s = w->s, *other = session_open(w->store);
    script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run *run;
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"mine\"}");
    sessile_run_free(turn(s, NULL, 2, &sc, &out));
    assert_int_equal(sessile_turn_begin(&run, other, &m, 1, NULL, NULL),
                     SESSILE_CONFLICT);
    assert_null(run);
    assert_int_equal(message_count(s), 2);
    /* Having looked, the other goes on. */
    assert_int_equal(context_size(other), 2);
    sessile_run_free(turn(other, NULL, 1, &sc, &out));
    assert_int_equal(message_count(s), 3);
    session_close(other);
}

static const char counting[] = "return { name = 'counting', version = 3,\n"
                               "  truncate = function(state)\n"
                               "    state.vars.turns = (state.vars.turns or 0) + 1\n"
                               "    if state.vars.turns == 3 then state:drop(1) end\n"
                               "  end }\n";

static void vars_are_kept_across_turns_and_reopening(void **state)
{
    (void)state;
    char url[96];
    snprintf(url, sizeof url, "%s/vars", folder);
    script sc = {.calls = ""};
    sessile_outcome out;
    for (int i = 1; i <= 3; i++) {
        sessile_store *store = store_open(url);
        sessile_session *s = session_open(store);
        sessile_policy *p = lua_policy(store, "counting", counting);
        sessile_run *run = turn(s, p, 2, &sc, &out);
        assert_int_equal(out.verdict, i == 3 ? SESSILE_APPLIED : SESSILE_UNCHANGED);
        sessile_run_free(run);
        sessile_policy_free(p);
        session_close(s);
        sessile_store_close(store);
    }
}

static const char asking[] =
    "return { name = 'asking', version = 1,\n"
    "  should_compact = function(state) return #state.messages >= 4 end,\n"
    "  compact = function(state, ctx)\n"
    "    local text, why = ctx.model{ messages = { state.messages[1] }, max_tokens = 9,\n"
    "                                 purpose = 'summary' }\n"
    "    if not text then ctx.log('no summary: ' .. why) return end\n"
    "    state:insert(1, { role = 'user', content = text }, { covers = { 1, 2 } })\n"
    "  end }\n";

static void a_models_answer_becomes_the_summary_and_is_in_the_entry(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = lua_policy(w->store, "asking", asking);
    script sc = {.model_text = "ok"};
    sessile_outcome out;
    sessile_run_free(turn(s, p, 2, &sc, &out));
    assert_int_equal(sc.models, 0);
    sessile_run *run = turn(s, p, 2, &sc, &out);
    assert_int_equal(sc.models, 1);
    assert_non_null(strstr(sc.request, "\"purpose\":\"summary\""));
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    assert_string_equal(out.summary, "ok");
    assert_int_equal(out.removal_count, 2);
    assert_int_equal(out.removals[0].disposition, SESSILE_COVERED);
    assert_int_equal(out.removals[0].by.entry, out.compaction);
    assert_int_equal(out.removals[0].by.n, 1);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 3);
    assert_int_equal(entries_with(s, "\"summary\":\"ok\""), 1);
    sessile_policy_free(p);
}

static void a_model_that_fails_leaves_the_context_as_it_was(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = lua_policy(w->store, "asking", asking);
    script sc = {.model_text = NULL};
    sessile_outcome out;
    sessile_run *run = turn(s, p, 4, &sc, &out);
    assert_int_equal(sc.models, 1);
    assert_int_equal(out.verdict, SESSILE_UNCHANGED);
    assert_non_null(strstr(out.log, "no summary: no model today"));
    sessile_run_free(run);
    assert_int_equal(context_size(s), 4);
    sessile_policy_free(p);
}

static void a_turn_is_written_before_its_policy_is_waited_for(void **state)
{
    (void)state;
    char url[96];
    snprintf(url, sizeof url, "%s/before", folder);
    sessile_store *store = store_open(url);
    sessile_session *s = session_open(store);
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_run *run = turn_waiting(s, p, &need);
    sessile_store *elsewhere = store_open(url);
    sessile_session *reader = session_open(elsewhere);
    assert_int_equal(message_count(reader), 1);
    session_close(reader);
    sessile_store_close(elsewhere);
    sessile_run_free(run);
    sessile_policy_free(p);
    session_close(s);
    sessile_store_close(store);
}

static void drop_a_short_one_of_many(sessile_hook hook, sessile_state *state,
                                     sessile_answer *a, void *arg)
{
    (void)a, (void)arg;
    if (hook == SESSILE_HOOK_COMPACT)
        assert_int_equal(sessile_state_drop(state, 1, 1, NULL), SESSILE_OK);
}

static void a_compact_that_saves_under_5_percent_is_left_out(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p =
        host_policy(w->store, SESSILE_HOOK_SHOULD_COMPACT | SESSILE_HOOK_COMPACT);
    script sc = {.on = drop_a_short_one_of_many};
    sessile_outcome out;
    for (int i = 0; i < 40; i++)
        assert_int_equal(
            sessile_append(s,
                           sessile_text("{\"role\":\"user\",\"content\":\"one two three "
                                        "four five six\"}"),
                           NULL, NULL),
            SESSILE_OK);
    sessile_run *run = turn(s, p, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_TOO_LITTLE);
    assert_true(out.too_little);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 42);

    /* Asked for by a person, the same is done. */
    sessile_run_options o;
    sessile_run_options_init(&o);
    o.policy = p;
    assert_int_equal(sessile_compact_begin(&run, s, &o, NULL), SESSILE_OK);
    finish(run, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 41);
    sessile_policy_free(p);
}

static void what_cannot_fit_is_said_by_how_much(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run *run;
    sessile_run_options o;
    sessile_slice m[2] = {sessile_text("{\"role\":\"user\",\"content\":\"a b c d e f\"}"),
                          sessile_text("{\"role\":\"assistant\",\"content\":\"g h\"}")};
    sessile_run_options_init(&o);
    o.policy = p;
    o.window = 5;
    o.reserve = 2;
    assert_int_equal(sessile_turn_begin(&run, s, m, 2, &o, NULL), SESSILE_OK);
    finish(run, &sc, &out);
    assert_int_equal(out.cannot_fit, out.tokens_after - 3);
    sessile_run_free(run);
    sessile_policy_free(p);
}

static void replying_to_nothing_and_stepping_past_a_question_are_invalid(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_answer a = {SESSILE_OK, {NULL, 0}, 0};
    sessile_outcome out;
    sessile_run *run = turn_waiting(s, p, &need);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_INVALID);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_INVALID);
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_INVALID);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_OK);
    sessile_run_free(run);
    sessile_policy_free(p);
}

static void a_bad_message_of_a_turn_is_named_and_nothing_is_written(void **state)
{
    world *w = *state;
    sessile_session *s = w->s;
    sessile_slice m[2] = {sessile_text("{\"role\":\"user\",\"content\":\"good\"}"),
                          sessile_text("{\"role\":\"wizard\",\"content\":\"bad\"}")};
    sessile_run *run;
    sessile_error err;
    assert_int_equal(sessile_turn_begin(&run, s, m, 2, NULL, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "message 2"));
    assert_int_equal(message_count(s), 0);
}

/* A log that may grow no further, and a policy that wants to write into it. */
static sessile_session *full_session(sessile_store **store)
{
    sessile_store_options o;
    sessile_session *s;
    sessile_outcome out;
    script quiet = {.calls = ""};
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    o.limits.session = 1900;
    assert_int_equal(sessile_open(store, "ram:", &o, NULL), SESSILE_OK);
    s = session_open(*store);
    sessile_run_free(turn(s, NULL, 4, &quiet, &out));
    return s;
}

static void a_compaction_that_cannot_be_written_leaves_the_turn_acknowledged(void **state)
{
    (void)state;
    sessile_store *store;
    sessile_session *s = full_session(&store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    script sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_run *run = turn(s, p, 1, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_non_null(strstr(out.message, "[session]"));
    assert_int_equal(out.removal_count, 0);
    assert_int_equal(out.compaction, SESSILE_NO_ID);
    assert_int_equal(out.tokens_after, out.tokens_before);
    sessile_run_free(run);
    assert_int_equal(message_count(s), 5);
    assert_int_equal(context_size(s), 5);
    sessile_policy_free(p);
    session_close(s);
    sessile_store_close(store);
}

static void a_refusal_that_cannot_be_recorded_still_names_its_culprit(void **state)
{
    (void)state;
    sessile_store *store;
    sessile_session *s = full_session(&store);
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    script sc = {.on = say_no};
    sessile_outcome out;
    sessile_run *run = turn(s, p, 1, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_int_equal(out.refusal, SESSILE_NO_ID);
    assert_string_equal(out.policy, "host");
    assert_non_null(strstr(out.message, "the disk of the policy is full"));
    sessile_run_free(run);
    assert_int_equal(message_count(s), 5);
    assert_int_equal(entries_with(s, "\"type\":\"refusal\""), 0);
    sessile_policy_free(p);
    session_close(s);
    sessile_store_close(store);
}

static void a_compact_that_cannot_be_written_fails_and_goes_on_failing(void **state)
{
    (void)state;
    sessile_store *store;
    sessile_session *s = full_session(&store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_need need;
    sessile_run *run;
    sessile_run_options o;
    sessile_run_free(turn(s, NULL, 1, &quiet, &out));
    sessile_run_options_init(&o);
    o.policy = p;
    assert_int_equal(sessile_compact_begin(&run, s, &o, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_NEEDS);
    answer_need(run, &need, &sc);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_LIMIT);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_LIMIT);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_LIMIT);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 5);
    sessile_policy_free(p);
    session_close(s);
    sessile_store_close(store);
}

static void a_long_reason_of_a_host_is_cut_not_lost(void **state)
{
    world *w = *state;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_outcome out;
    sessile_run *run = turn_waiting(w->s, p, &need);
    size_t size = 65536 + 5;
    char *reason = malloc(size);
    assert_non_null(reason);
    memset(reason, 'F', size);
    sessile_answer a = {SESSILE_POLICY, {reason, size}, 0};
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
    free(reason);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_OK);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_int_equal(strlen(out.message), 400);
    sessile_run_free(run);
    sessile_policy_free(p);
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->store = store_open("ram:");
    w->s = session_open(w->store);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    session_close(w->s);
    sessile_store_close(w->store);
    free(w);
    return 0;
}

/* A test in a world of its own. */
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/sessile-run.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_turn_without_a_policy_is_written_and_done),
        IN_WORLD(hooks_run_in_the_order_of_the_contract),
        cmocka_unit_test(what_a_hook_drops_leaves_the_context_and_stays_in_the_log),
        IN_WORLD(a_result_without_its_call_is_refused_by_law_1),
        IN_WORLD(a_failing_hook_refuses_all_and_the_same_refusal_is_written_once),
        IN_WORLD(what_is_said_meanwhile_follows_the_proposal),
        IN_WORLD(a_proposal_is_stale_once_the_head_has_moved_away),
        IN_WORLD(of_two_compactions_the_second_is_stale),
        IN_WORLD(a_run_freed_early_leaves_the_turn),
        IN_WORLD(a_plan_writes_nothing_and_shows_what_would_be),
        IN_WORLD(compacting_without_a_policy_is_invalid),
        IN_WORLD(a_turn_on_an_old_base_is_a_conflict_and_writes_nothing),
        cmocka_unit_test(vars_are_kept_across_turns_and_reopening),
        IN_WORLD(a_models_answer_becomes_the_summary_and_is_in_the_entry),
        IN_WORLD(a_model_that_fails_leaves_the_context_as_it_was),
        cmocka_unit_test(a_turn_is_written_before_its_policy_is_waited_for),
        IN_WORLD(a_compact_that_saves_under_5_percent_is_left_out),
        IN_WORLD(what_cannot_fit_is_said_by_how_much),
        IN_WORLD(replying_to_nothing_and_stepping_past_a_question_are_invalid),
        cmocka_unit_test(
            a_compaction_that_cannot_be_written_leaves_the_turn_acknowledged),
        cmocka_unit_test(a_refusal_that_cannot_be_recorded_still_names_its_culprit),
        cmocka_unit_test(a_compact_that_cannot_be_written_fails_and_goes_on_failing),
        IN_WORLD(a_long_reason_of_a_host_is_cut_not_lost),
        IN_WORLD(a_bad_message_of_a_turn_is_named_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
