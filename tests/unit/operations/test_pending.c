/*
 * test_pending.c: a run that waits for a model is written down, and answered by somebody
 * else: another handle of the store, as another process would open it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/runs.h"
#include "support/sessions.h"

#include <cmocka.h>

static char *folder;

/* Asks twice, the second time with the first answer, and covers all but the last turn. */
static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    if #state.messages < 4 then return end\n"
    "    local function ask(text)\n"
    "      return ctx.model{ messages = {{ role = 'user', content = text }} }\n"
    "    end\n"
    "    local a, why = ask 'first'\n"
    "    local b = a and ask('second ' .. a)\n"
    "    state.vars = { a = a or why, b = b, n = ctx.random(1000000), now = ctx.now,\n"
    "      reason = ctx.reason, instructions = ctx.instructions }\n"
    "    state:insert(1, { content = (a or 'no') .. ' ' .. (b or 'no') },\n"
    "      { covers = { 1, #state.messages - 2 } })\n"
    "  end }\n";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static sessile_store *store_open(void)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    char url[256];
    snprintf(url, sizeof url, "%s/store", folder);
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "a passphrase of some length";
    o.policy_path = folder;
    assert_int_equal(sessile_open(&store, url, &o, &err), SESSILE_OK);
    return store;
}

static void append(sessile_session *s, const char *role, const char *text)
{
    char json[128];
    sessile_error err;
    snprintf(json, sizeof json, "{\"role\":\"%s\",\"content\":\"%s\"}", role, text);
    if (sessile_append(s, sessile_text(json), NULL, &err))
        fail_msg("%s", err.message);
}

/* One end of the world: a store and a session, as one process has them. */
typedef struct end {
    sessile_store *store;
    sessile_session *s;
} end;

static end end_open(void)
{
    end e;
    e.store = store_open();
    e.s = session_at(e.store);
    return e;
}

static void end_close(end *e)
{
    assert_int_equal(sessile_session_close(e->s, NULL), SESSILE_OK);
    sessile_store_close(e->store);
}

static sessile_policy *policy(sessile_store *store)
{
    sessile_policy_step step = {"asker", NULL, 0};
    sessile_policy *p;
    sessile_error err;
    if (sessile_policy_load(&p, store, &step, 1, &err))
        fail_msg("%s", err.message);
    return p;
}

/* A conversation of two turns, of which the second one's policy waits. */
static sessile_run *asking(end *e, sessile_need *need)
{
    sessile_slice m[2] = {
        sessile_text("{\"role\":\"user\",\"content\":\"a question\"}"),
        sessile_text("{\"role\":\"assistant\",\"content\":\"an answer\"}")};
    sessile_policy *p = policy(e->store);
    sessile_run_options o;
    sessile_error err;
    sessile_run *run;

    append(e->s, "user", "one thing that was said in many words, long before all this");
    append(e->s, "assistant", "and an answer in as many words, so that it may be saved");
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_turn_begin(&run, e->s, m, 2, &o, &err), SESSILE_OK);
    sessile_policy_free(p);
    assert_int_equal(sessile_run_step(run, need, &err), SESSILE_NEEDS);
    return run;
}

static sessile_id pending_run(sessile_run *run)
{
    sessile_outcome out;
    sessile_error err;
    sessile_id id;
    if (sessile_run_defer(run, &id, &err))
        fail_msg("%s", err.message);
    assert_int_equal(sessile_run_outcome(run, &out, &err), SESSILE_OK);
    assert_int_equal(out.verdict, SESSILE_PENDING);
    assert_int_equal(out.pending_run, id);
    sessile_run_free(run);
    return id;
}

static sessile_run *answer(end *e, sessile_id id, const char *text)
{
    sessile_answer a = {SESSILE_OK, sessile_text(text), 0};
    sessile_error err;
    sessile_run *run;
    if (sessile_answer_begin(&run, e->s, id, text ? &a : NULL, NULL, &err))
        fail_msg("%s", err.message);
    return run;
}

static size_t pending(sessile_session *s)
{
    sessile_pending_run *rows;
    sessile_error err;
    size_t count;
    if (sessile_pending_runs(s, &rows, &count, &err))
        fail_msg("%s", err.message);
    sessile_free(rows);
    return count;
}

static void reply(sessile_run *run, const char *text)
{
    sessile_answer a = {SESSILE_OK, sessile_text(text), 0};
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
}

/* The data of the newest entry of a type; free(). */
static char *newest(sessile_session *s, const char *type)
{
    sessile_entries *e;
    const char *json;
    char wanted[64], *found = NULL;
    size_t size;
    snprintf(wanted, sizeof wanted, "\"type\":\"%s\"", type);
    assert_int_equal(sessile_entries_open(&e, s, NULL, NULL), SESSILE_OK);
    while (!sessile_entries_next(e, NULL, &json, &size, NULL) && size)
        if (strstr(json, wanted)) {
            free(found);
            found = strdup(strstr(json, "\"data\":"));
        }
    sessile_entries_close(e);
    return found;
}

/* Without what the clock says. */
static char *without_duration(char *text)
{
    char *at = strstr(text, "\"duration_ms\":"), *rest;
    if (at) {
        rest = at + strcspn(at, ",");
        memmove(at, rest, strlen(rest) + 1);
    }
    return text;
}

static sessile_verdict finish(sessile_run *run, const char *second)
{
    sessile_outcome out;
    sessile_need need;
    sessile_error err;
    sessile_status status;
    while ((status = sessile_run_step(run, &need, &err)) == SESSILE_NEEDS)
        reply(run, second);
    if (status)
        fail_msg("%s", err.message);
    assert_int_equal(sessile_run_outcome(run, &out, &err), SESSILE_OK);
    if (out.verdict == SESSILE_REFUSED)
        print_message("%s\n", out.message);
    sessile_verdict verdict = out.verdict;
    sessile_run_free(run);
    return verdict;
}

/* ------------------------------------------------------------------ tests */

/* Deferred at each of its two questions, and answered elsewhere each time, it writes what
 * it would have written at once. */
static void what_is_written_is_the_same(void **state)
{
    sessile_need need;
    (void)state;
    end at_once = end_open();
    sessile_run *run = asking(&at_once, &need);
    reply(run, "A");
    assert_int_equal(finish(run, "B"), SESSILE_APPLIED);
    char *wanted = without_duration(newest(at_once.s, "compaction"));
    char *keys = context_keys(at_once.s, SESSILE_NO_ID);
    end_close(&at_once);
    folder_remove(folder);
    folder = folder_make();
    write_file("asker.lua", asker);

    end first = end_open();
    run = asking(&first, &need);
    assert_string_equal(need.request.data,
                        "{\"messages\":[{\"content\":\"first\",\"role\":\"user\"}]}");
    sessile_id id = pending_run(run);
    char *first_park = newest(first.s, "pending_run");
    end_close(&first);

    end second = end_open();
    sessile_pending_run *rows;
    size_t count;
    assert_int_equal(sessile_pending_runs(second.s, &rows, &count, NULL), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].entry, id);
    assert_string_equal(rows[0].policy.data, "asker");
    assert_string_equal(rows[0].request.data,
                        "{\"messages\":[{\"content\":\"first\",\"role\":\"user\"}]}");
    sessile_free(rows);
    run = answer(&second, SESSILE_NO_ID, "A");
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_NEEDS);
    assert_string_equal(need.request.data,
                        "{\"messages\":[{\"content\":\"second A\",\"role\":\"user\"}]}");
    id = pending_run(run);
    end_close(&second);

    end third = end_open();
    assert_int_equal(pending(third.s), 1);
    assert_int_equal(finish(answer(&third, id, "B"), "never asked"), SESSILE_APPLIED);
    assert_int_equal(pending(third.s), 0);
    char *got = without_duration(newest(third.s, "compaction"));
    char *keys_now = context_keys(third.s, SESSILE_NO_ID);
    /* the names of its own messages differ by the two entries that pending it */
    assert_int_equal(strlen(got), strlen(wanted));
    assert_non_null(strstr(got, "\"content\":\"A B\""));
    /* what it drew is the same; its clock is the turn's, as the pending run has it */
    size_t same = strcspn(strstr(got, "\"vars\""), "w") + 1;
    assert_memory_equal(strstr(got, "\"vars\""), strstr(wanted, "\"vars\""), same);
    assert_non_null(strstr(got, "\"reason\":\"turn\"}}"));
    assert_memory_equal(strstr(got, "\"now\":"), strstr(first_park, "\"now\":"), 19);
    free(first_park);
    assert_int_equal(strlen(keys), strlen(keys_now));
    free(got);
    free(wanted);
    free(keys);
    free(keys_now);
    end_close(&third);
}

/* Others append and turn while it waits, and what they said follows its list. */
static void waiting_holds_nobody_up(void **state)
{
    sessile_need need;
    (void)state;
    end one = end_open();
    pending_run(asking(&one, &need));
    append(one.s, "user", "meanwhile");
    assert_int_equal(pending(one.s), 1);
    assert_int_equal(finish(answer(&one, SESSILE_NO_ID, "A"), "B"), SESSILE_APPLIED);
    char *keys = context_keys(one.s, SESSILE_NO_ID);
    assert_string_equal(keys, "00000008.1 00000003 00000004 00000007");
    free(keys);
    end_close(&one);
}

static void a_failed_answer_is_an_answer(void **state)
{
    sessile_answer a = {SESSILE_IO, sessile_text("quota"), 0};
    sessile_need need;
    sessile_error err;
    sessile_run *run;
    (void)state;
    end one = end_open();
    pending_run(asking(&one, &need));
    assert_int_equal(sessile_answer_begin(&run, one.s, SESSILE_NO_ID, &a, NULL, &err),
                     SESSILE_OK);
    assert_int_equal(finish(run, "not asked"), SESSILE_APPLIED);
    char *entry = newest(one.s, "compaction");
    assert_non_null(strstr(entry, "\"content\":\"no no\""));
    assert_non_null(strstr(entry, "\"a\":\"quota\""));
    free(entry);
    end_close(&one);
}

/* Without an answer its policy asks again; a policy that asks something else is asked. */
static void what_nobody_answered_is_asked(void **state)
{
    sessile_need need;
    (void)state;
    end one = end_open();
    pending_run(asking(&one, &need));
    sessile_run *run = answer(&one, SESSILE_NO_ID, NULL);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_NEEDS);
    assert_non_null(strstr(need.request.data, "first"));
    sessile_run_free(run);
    assert_int_equal(pending(one.s), 1);
    end_close(&one);

    char *changed = strdup(asker);
    memcpy(strstr(changed, "'first'"), "'other'", 7);
    write_file("asker.lua", changed);
    free(changed);
    end two = end_open();
    run = answer(&two, SESSILE_NO_ID, "A");
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_NEEDS);
    assert_non_null(strstr(need.request.data, "other"));
    reply(run, "C");
    assert_int_equal(finish(run, "D"), SESSILE_APPLIED);
    end_close(&two);
}

/* What can be applied no more can be answered no more. */
static void a_park_is_closed(void **state)
{
    sessile_need need;
    sessile_error err;
    sessile_run *run;
    (void)state;
    end one = end_open();
    sessile_id id = pending_run(asking(&one, &need));
    assert_int_equal(sessile_cancel(one.s, sessile_text("enough"), &err), SESSILE_OK);
    assert_int_equal(pending(one.s), 0);
    assert_int_equal(sessile_answer_begin(&run, one.s, id, NULL, NULL, &err),
                     SESSILE_NOTFOUND);
    assert_null(run);

    pending_run(asking(&one, &need)); /* another turn, that waits too */
    sessile_id second = pending_run(asking(&one, &need));
    assert_int_equal(pending(one.s), 2);
    assert_int_equal(finish(answer(&one, second, "A"), "B"), SESSILE_APPLIED);
    assert_int_equal(pending(one.s), 0); /* its compaction outran the first */

    pending_run(asking(&one, &need));
    assert_int_equal(pending(one.s), 1);
    assert_int_equal(sessile_clear(one.s, &err), SESSILE_OK);
    assert_int_equal(pending(one.s), 0);
    end_close(&one);
}

/* A policy that is refused costs no answer: it is there for one that was mended. */
static void a_refused_policy_keeps_its_answers(void **state)
{
    sessile_pending_run *rows;
    sessile_outcome out;
    sessile_need need;
    size_t count;
    (void)state;
    end one = end_open();
    pending_run(asking(&one, &need));
    end_close(&one);
    char *bad = strdup(asker);
    memcpy(strstr(bad, "a = a or why"), "a=error'no' ", 12);
    write_file("asker.lua", bad);
    free(bad);
    end two = end_open();
    sessile_run *run = answer(&two, SESSILE_NO_ID, "A");
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_NEEDS);
    reply(run, "B");
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_OK);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    sessile_run_free(run);
    assert_int_equal(sessile_pending_runs(two.s, &rows, &count, NULL), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].refused, 1);
    sessile_free(rows);
    end_close(&two);

    write_file("asker.lua", asker);
    end three = end_open();
    assert_int_equal(finish(answer(&three, SESSILE_NO_ID, NULL), "not asked"),
                     SESSILE_APPLIED);
    char *entry = newest(three.s, "compaction");
    assert_non_null(strstr(entry, "\"content\":\"A B\""));
    free(entry);
    assert_int_equal(pending(three.s), 0);
    end_close(&three);
}

/* And another answer takes the place of the one it was refused for. */
static void a_refused_policy_takes_another_answer(void **state)
{
    sessile_outcome out;
    sessile_need need;
    (void)state;
    write_file(
        "asker.lua",
        "return { name = 'asker', version = 1,\n"
        "  summarize = function(state, ctx)\n"
        "    if #state.messages < 4 then return end\n"
        "    local a = ctx.model{ messages = {{ role = 'user', content = 'x' }} }\n"
        "    if a ~= 'good' then error 'not good' end\n"
        "    state:insert(1, { content = a }, { covers = { 1, #state.messages - 2 } })\n"
        "  end }\n");
    end one = end_open();
    pending_run(asking(&one, &need));
    sessile_run *run = answer(&one, SESSILE_NO_ID, "bad");
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_OK);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    sessile_run_free(run);
    assert_int_equal(pending(one.s), 1);
    assert_int_equal(finish(answer(&one, SESSILE_NO_ID, "good"), "not asked"),
                     SESSILE_APPLIED);
    assert_int_equal(pending(one.s), 0);
    end_close(&one);
}

static void only_a_model_can_be_waited_for_elsewhere(void **state)
{
    sessile_policy_step step = {"host", NULL, SESSILE_HOOK_TRUNCATE};
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_run_options o;
    sessile_policy *p;
    sessile_need need;
    sessile_error err;
    sessile_run *run;
    sessile_id id;
    (void)state;
    end one = end_open();
    assert_int_equal(sessile_policy_load(&p, one.store, &step, 1, &err), SESSILE_OK);
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_turn_begin(&run, one.s, &m, 1, &o, &err), SESSILE_OK);
    assert_int_equal(sessile_run_defer(run, &id, &err), SESSILE_INVALID);
    assert_int_equal(sessile_run_step(run, &need, &err), SESSILE_NEEDS);
    assert_int_equal(sessile_run_defer(run, &id, &err), SESSILE_INVALID);
    assert_int_equal(id, SESSILE_NO_ID);
    sessile_run_free(run);
    sessile_policy_free(p);

    p = policy(one.store);
    o.config.policy = p;
    append(one.s, "user", "two");
    append(one.s, "user", "three");
    append(one.s, "user", "four");
    assert_int_equal(sessile_plan_begin(&run, one.s, &o, &err), SESSILE_OK);
    assert_int_equal(sessile_run_step(run, &need, &err), SESSILE_NEEDS);
    assert_int_equal(sessile_run_defer(run, &id, &err), SESSILE_INVALID);
    sessile_run_free(run);
    sessile_policy_free(p);
    end_close(&one);
}

/* A pending_run written by hand, or by another version, is refused in words. */
static void a_pending_run_that_makes_no_sense_is_named(void **state)
{
    static const char *const data[] = {
        "{\"saw\":\"00000001\"}",
        "{\"saw\":\"00000001\",\"kind\":\"compact\",\"now\":1,\"window\":0,\"reserve\":0,"
        "\"reason\":\"manual\",\"answers\":[{\"request\":\"zz\",\"text\":\"\"}],"
        "\"policy\":[{\"name\":\"asker\",\"hash\":\"\",\"options\":{}}]}",
        "{\"saw\":\"00000001\",\"kind\":\"compact\",\"now\":1,\"window\":0,\"reserve\":0,"
        "\"reason\":\"manual\",\"answers\":[],\"policy\":[]}",
        "{\"saw\":\"00000001\",\"kind\":\"turn\",\"now\":-1,\"window\":0,\"reserve\":0,"
        "\"reason\":\"manual\",\"answers\":[],\"policy\":[]}"};
    sessile_error err;
    sessile_run *run;
    (void)state;
    end one = end_open();
    append(one.s, "user", "one");
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        sessile_id id = put_entry(one.s, "pending_run", SESSILE_NO_ID, data[i]);
        assert_int_equal(pending(one.s), i + 1);
        assert_int_equal(sessile_answer_begin(&run, one.s, id, NULL, NULL, &err),
                         SESSILE_DAMAGED);
        assert_non_null(strstr(err.message, "cancel it"));
    }
    put_entry(one.s, "pending_run", SESSILE_NO_ID, "{\"saw\":\"ffffffff\"}");
    assert_int_equal(pending(one.s), 4);
    assert_int_equal(sessile_cancel(one.s, sessile_text(""), &err), SESSILE_OK);
    assert_int_equal(pending(one.s), 0);
    end_close(&one);
}

static int set_up(void **state)
{
    (void)state;
    folder = folder_make();
    write_file("asker.lua", asker);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    folder = NULL;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_the_same),
        TEST(waiting_holds_nobody_up),
        TEST(a_failed_answer_is_an_answer),
        TEST(what_nobody_answered_is_asked),
        TEST(a_park_is_closed),
        TEST(a_refused_policy_keeps_its_answers),
        TEST(a_refused_policy_takes_another_answer),
        TEST(only_a_model_can_be_waited_for_elsewhere),
        TEST(a_pending_run_that_makes_no_sense_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
