/*
 * test_memory_answers.c: what runs of memories are answered, by hooks and models that are
 * hostile, and what they are given by a host: vectors, entries, names of any bytes.
 */
#include "support/check.h"
#include "support/memories.h"
#include "support/memory_scene.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin(memory_scene *sc, void **state, unsigned hooks)
{
    place *p = *state;
    memory_scene_open(sc, p->store, hooks);
}

/* ------------------------------------------------------------------ hostile answers */

static const char *const nonsense[] = {
    "",
    "[",
    "null",
    "17",
    "\"x\"",
    "[]",
    "{\"asks\":7}",
    "{\"asks\":[7,null,{}]}",
    "{\"asks\":[{\"memory\":\"erase\",\"arguments\":[]}]}",
    "{\"asks\":[{\"memory\":\"write\"}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":{}}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[[]]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":{}}]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"\"}]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"source\":"
    "\"user\"}]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"from\":{}}]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"from\":[[]]}]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"memory\":\"bob\"}"
    "]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"importance\":2}]}"
    "]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"ttl\":-1}]}]}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"metadata\":[]}]}]"
    "}",
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"x\",\"replaces\":["
    "{\"id\":\"00000001\",\"memory\":\"user\"},{\"id\":\"00000001\",\"memory\":\"agent\"}"
    "]}]}]}",
    "{\"asks\":[{\"memory\":\"delete\",\"arguments\":[[]]}]}",
    "{\"asks\":[{\"memory\":\"delete\",\"arguments\":[]}]}",
    "{\"asks\":[{\"memory\":\"confirm\",\"arguments\":[1e99]}]}",
    "{\"asks\":[{\"memory\":\"search\",\"arguments\":[]}]}",
    "{\"asks\":[{\"memory\":\"search\",\"arguments\":[\"x\",{\"limit\":-1}]}]}",
    "{\"asks\":[{\"memory\":\"search\",\"arguments\":[\"x\",{\"key_prefix\":[]}]}]}",
    "{\"asks\":[{\"memory\":\"list\",\"arguments\":[{\"\\ud800\":1}]}]}",
    "{\"asks\":[{\"memory\":\"read\",\"arguments\":[{}]}]}",
};

/* Nothing is written but refusals, and each can be read. */
static void nonsense_is_refused_or_nothing(void **state)
{
    memory_scene sc;
    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        memory_script script = {.remember = nonsense[i]};
        sessile_memory *again;
        memory_result r;

        memory_said(sc.session, "user", "I prefer tea", "");
        r = memory_heard(&sc, &script);
        must(r.status, &r.err);
        if (r.o.verdict != SESSILE_REFUSED && r.o.verdict != SESSILE_UNCHANGED)
            fail_msg("%s: verdict %d", nonsense[i], r.o.verdict);
        assert_int_equal(r.o.written + r.o.ended + r.o.confirmed, 0);
        if (r.o.verdict == SESSILE_REFUSED)
            assert_true(r.message[0]);
        again = memory_of(sc.store, "ann");
        expect_text(listed_values(again, NULL), "");
        sessile_memory_close(again);
    }
    memory_scene_close(&sc);
}

static void fail_badly(void *arg, const sessile_need *need, sessile_answer *answer)
{
    (void)need;
    answer->status = SESSILE_POLICY;
    answer->text = *(sessile_slice *)arg;
}

/* A reason that is not UTF-8, or long, is told and written as text that is. */
static void a_reason_of_any_bytes_is_kept_as_text(void **state)
{
    memory_scene sc;
    char bytes[3000];
    sessile_slice reason = {bytes, sizeof bytes};
    memory_script script = {.on = fail_badly, .arg = &reason};
    memory_result r;
    char *entry;
    size_t size;
    sessile_error err;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    memory_said(sc.session, "user", "I prefer tea", "");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37);
    for (int k = 0; k < 2; k++) {
        sessile_memory *again;
        r = memory_heard(&sc, &script);
        must(r.status, &r.err);
        assert_int_equal(r.o.verdict, SESSILE_REFUSED);
        again = memory_of(sc.store, "ann");
        must(sessile_memory_entry(again, r.o.refusal, &entry, &size, &err), &err);
        assert_non_null(strstr(entry, "\"hook\":\"remember\""));
        sessile_free(entry);
        sessile_memory_close(again);
        memset(bytes, 0xc3, sizeof bytes);
    }
    memory_scene_close(&sc);
}

static void admit_says_true_false_or_pending(void **state)
{
    static const struct {
        const char *answer;
        size_t written, pending;
        int refused;
    } cases[] = {
        {"{\"result\":true}", 1, 0, 0},
        {"{\"result\":\"pending\",\"why\":\"odd\"}", 1, 1, 0},
        {"{\"result\":false}", 0, 0, 0},
        {"{}", 0, 0, 0},
        {"{\"result\":\"yes\"}", 0, 0, 1},
        {"{\"result\":1}", 0, 0, 1},
        {"{\"result\":{}}", 0, 0, 1},
        /* who admits does not write */
        {"{\"result\":true,\"asks\":[" MEMORY_WRITE("\"value\":\"x\"") "]}", 0, 0, 1},
    };
    memory_scene sc;

    begin(&sc, state, SESSILE_HOOK_REMEMBER | SESSILE_HOOK_ADMIT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory_script script = {.admit = cases[i].answer};
        memory_result r;
        script.remember =
            memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
        r = memory_heard(&sc, &script);
        must(r.status, &r.err);
        assert_int_equal(r.o.written, cases[i].written);
        assert_int_equal(r.o.pending, cases[i].pending);
        assert_int_equal(r.o.verdict == SESSILE_REFUSED, cases[i].refused);
        if (cases[i].refused)
            assert_string_equal(r.hook, "admit");
        assert_int_equal(memory_asked(&sc, "[]").o.heard, cases[i].refused);
    }
    memory_scene_close(&sc);
}

static void recall_returns_what_it_was_given(void **state)
{
    static const char *const wrong[] = {
        "{\"result\":[[]]}",
        "{\"result\":[[[]]]}",
        "{\"result\":[{}]}",
        "{\"result\":7}",
        "{\"result\":[null]}",
        "{\"result\":[\"00000063\"]}",
        "{\"result\":[{\"id\":\"00000001\",\"memory\":\"agent\"}]}",
        "{\"asks\":[" MEMORY_WRITE("\"value\":\"x\"") "]}",
    };
    memory_scene sc;
    char right[100];
    memory_script script = {.recall = "{\"result\":[]}"};
    memory_result r;
    sessile_id id;

    begin(&sc, state, SESSILE_HOOK_RECALL);
    id = remember(sc.memories[0], NULL, "ann likes tea", NULL);
    remember(sc.memories[0], NULL, "tea is green", NULL);
    memory_said(sc.session, "user", "which tea?", "");
    r = memory_recalled(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.recall.recalled, 0);
    snprintf(right, sizeof right, "{\"result\":[\"%08" PRIx32 "\"]}", id);
    script.recall = right;
    r = memory_recalled(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.recall.recalled, 1);
    /* what a hook did wrong costs its choice, and not the call */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sessile_session *own = sc.session;
        char name[8];
        snprintf(name, sizeof name, "r%zu", i);
        sc.session = memory_session(sc.store, name, "ann");
        memory_said(sc.session, "user", "which tea?", "");
        script.recall = wrong[i];
        r = memory_recalled(&sc, &script);
        must(r.status, &r.err);
        assert_int_equal(r.o.verdict, SESSILE_REFUSED);
        assert_true(r.message[0]);
        assert_int_equal(r.o.recall.recalled, 2);
        sessile_session_close(sc.session, NULL);
        sc.session = own;
    }
    expect_text(listed_values(sc.memories[0], NULL), "tea is green|ann likes tea");
    memory_scene_close(&sc);
}

/* ------------------------------------------------------------------ vectors */

static void a_memory_that_is_null_is_refused_by_the_function_that_got_it(void **state)
{
    sessile_memory_run_options options;
    sessile_recall_outcome recalled;
    sessile_memory_run *run;
    sessile_memory *none[2];
    memory_scene sc;
    sessile_error err;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    options = memory_options(&sc);
    none[0] = sc.memories[0];
    none[1] = NULL;
    assert_refused(sessile_remember_begin(&run, sc.session, none, 2, &options, &err),
                   SESSILE_INVALID, &err, "sessile_remember_begin: one of the memories");
    assert_refused(sessile_remember_begin(&run, sc.session, NULL, 1, &options, &err),
                   SESSILE_INVALID, &err, "sessile_remember_begin: memories is NULL");
    assert_refused(sessile_recall(sc.session, none, 2, NULL, &recalled, &err),
                   SESSILE_INVALID, &err, "sessile_recall: one of the memories");
    memory_scene_close(&sc);
}

static void a_recall_of_too_much_is_refused_when_it_begins(void **state)
{
    const sessile_recall_item item = {0, 1};
    const sessile_memory_outside outside = {0};
    sessile_memory_run_options options;
    sessile_recall_options recall;
    sessile_memory_run *run;
    memory_scene sc;
    sessile_error err;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    options = memory_options(&sc);
    sessile_recall_options_init(&recall);
    recall.outside = &outside; /* nothing behind the first one is read */
    recall.outside_count = SESSILE_MEMORY_ENTRIES_MAX + 1;
    assert_refused(
        sessile_recall_begin(&run, sc.session, sc.memories, 2, &recall, &options, &err),
        SESSILE_LIMIT, &err, "[memory_entries]");
    assert_null(run);
    sessile_recall_options_init(&recall);
    recall.has_items = 1;
    recall.items = &item;
    recall.item_count = SESSILE_RECALL_ITEMS_MAX + 1;
    assert_refused(
        sessile_recall_begin(&run, sc.session, sc.memories, 2, &recall, &options, &err),
        SESSILE_LIMIT, &err, "64");
    assert_null(run);
    memory_scene_close(&sc);
}

static void an_embedder_costs_the_vector_alone(void **state)
{
    static const struct {
        float v[4];
        size_t count, dims;
        int good;
    } cases[] = {
        {{1, 2, 2}, 1, 3, 1}, {{1, 2, 2, 3}, 1, 4, 0}, /* the model's have three */
        {{0, 0, 0}, 1, 3, 0}, {{1, 2, 2, 3}, 2, 2, 0}, {{1}, 0, 0, 0},
    };
    const float of_entry[] = {1, 2, 3};
    memory_scene sc;
    sessile_error err;
    sessile_id id;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    id = remember(sc.memories[0], NULL, "ann likes tea", NULL);
    must(sessile_memory_embed(sc.memories[0], sessile_text("tiny"), 3, &id, of_entry, 1,
                              &err),
         &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sessile_memory_run_options options = memory_options(&sc);
        sessile_session *s;
        sessile_memory_run *run;
        sessile_memory_outcome out;
        sessile_need need;
        char name[8];
        snprintf(name, sizeof name, "v%zu", i);
        s = memory_session(sc.store, name, "ann");
        memory_said(s, "user", "which tea?", "");
        options.embed_model = sessile_text("tiny");
        must(sessile_recall_begin(&run, s, sc.memories, 2, NULL, &options, &err), &err);
        assert_int_equal(sessile_memory_run_step(run, &need, &err), SESSILE_NEEDS);
        assert_int_equal(need.kind, SESSILE_NEED_EMBED);
        must(sessile_memory_run_reply_vectors(run, cases[i].v, cases[i].count,
                                              cases[i].dims, &err),
             &err);
        must(sessile_memory_run_step(run, &need, &err), &err);
        must(sessile_memory_run_outcome(run, &out, &err), &err);
        assert_int_equal(out.has_vector, cases[i].good);
        assert_int_equal(out.message[0] == 0, cases[i].good);
        assert_int_equal(out.recall.recalled, 1);
        sessile_memory_run_free(run);
        sessile_session_close(s, NULL);
    }
    memory_scene_close(&sc);
}

/* ------------------------------------------------------------------ hosts, names */

/* The entries of a host are copied: what they point to may go when the run has begun. */
static void a_hosts_entries_are_copied(void **state)
{
    memory_scene sc;
    memory_script script = {.admit = "{\"result\":true}"};
    sessile_memory_run_options options;
    sessile_memory_write_entry e;
    sessile_memory_from *from = calloc(2, sizeof *from);
    sessile_id *replaces = calloc(1, sizeof *replaces);
    char *session = strdup("bug-42"), *value = strdup("the bug is fixed");
    sessile_memory_run *run;
    sessile_memory_row *row;
    sessile_error err;
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_ADMIT);
    replaces[0] = remember(sc.memories[0], NULL, "a bug", NULL);
    from[0] =
        (sessile_memory_from){.session = sessile_text(session), .first = 1, .last = 2};
    from[1] =
        (sessile_memory_from){.session = sessile_text(session), .first = 4, .last = 4};
    sessile_memory_write_init(&e);
    e.key = sessile_text("bug");
    e.value = sessile_text(value);
    e.from = from;
    e.from_count = 2;
    e.replaces = replaces;
    e.replace_count = 1;
    options = memory_options(&sc);
    must(sessile_admit_begin(&run, sc.memories[0], &e, 1, &options, &err), &err);
    free(from);
    free(replaces);
    free(session);
    free(value);
    r = memory_driven(run, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.written, 1);
    must(sessile_memory_read(sc.memories[0], sessile_text("bug"), &row, &err), &err);
    assert_string_equal(row->value.data, "the bug is fixed");
    assert_non_null(strstr(row->from.data, "bug-42"));
    sessile_free(row);
    expect_text(found(sc.memories[0], "bug"), "the bug is fixed");
    memory_scene_close(&sc);
}

/* Names of sessions, agents and users may be any bytes. */
static void names_may_be_any_bytes(void **state)
{
    place *p = *state;
    sessile_session_options session;
    sessile_memory_options memory;
    sessile_policy_step step = {"host", NULL, SESSILE_HOOK_REMEMBER};
    memory_scene sc = {.store = p->store};
    memory_script script = {.calls = 0};
    sessile_error err;
    memory_result r;
    size_t changed;

    sessile_session_options_init(&session);
    session.id = (sessile_slice){"i\xff\0", 3};
    session.agent = (sessile_slice){"a\xfe", 2};
    session.user = (sessile_slice){"u\xfd", 2};
    must(sessile_session_open(&sc.session, p->store, &session, &err), &err);
    sessile_memory_options_init(&memory);
    memory.agent = session.agent;
    memory.user = session.user;
    memory.consent = sessile_text("yes");
    must(sessile_memory_open(&sc.memories[0], p->store, &memory, &err), &err);
    memory.user = memory.consent = sessile_text(NULL);
    must(sessile_memory_open(&sc.memories[1], p->store, &memory, &err), &err);
    must(sessile_policy_load(&sc.policy, place_host(p->store), &step, 1, &err), &err);
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    r = memory_heard(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.written, 1);
    script.remember = NULL;
    assert_int_equal(memory_heard(&sc, &script).o.heard, 0);
    sessile_memory_close(sc.memories[0]);
    memory.user = session.user;
    must(sessile_memory_open(&sc.memories[0], p->store, &memory, &err), &err);
    must(sessile_memory_delete_from(sc.memories[0], sessile_text(NULL), session.id,
                                    sessile_text(NULL), &changed, &err),
         &err);
    assert_int_equal(changed, 1);
    memory_scene_close(&sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(nonsense_is_refused_or_nothing),
        OVER(a_reason_of_any_bytes_is_kept_as_text),
        OVER(admit_says_true_false_or_pending),
        OVER(recall_returns_what_it_was_given),
        OVER(a_memory_that_is_null_is_refused_by_the_function_that_got_it),
        OVER(a_recall_of_too_much_is_refused_when_it_begins),
        OVER(an_embedder_costs_the_vector_alone),
        OVER(a_hosts_entries_are_copied),
        OVER(names_may_be_any_bytes),
    };
    return run_over_kinds("answers to runs of memories", STORE_SEALED, tests,
                          sizeof tests / sizeof *tests);
}
