/* test_memory_stream.c: RunMemory: a client answers what a run of a memory asks for. */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "service/memory.pb-c.h"
#include "support/runs.h"

/* Notes what a model says of each message. */
static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  remember = function(said, ctx)\n"
    "    for _, message in ipairs(said) do\n"
    "      local text, why = ctx.model { messages = {{ role = 'user',\n"
    "        content = message.content }} }\n"
    "      ctx.memory.write { value = text or error(why, 0), from = { message.id } }\n"
    "    end\n"
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

/* ---------------------------------------------------------------------- helpers */

/* The memory that the agent keeps for all. */
static Sessile__V1__Memory *memory(void)
{
    static Sessile__V1__Memory shared;
    sessile__v1__memory__init(&shared);
    shared.shared = 1;
    return &shared;
}

static void write_by(serving *s, const char *value)
{
    Sessile__V1__WriteMemoryRequest r = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    r.memory = memory();
    r.entries = entries;
    r.n_entries = 1;
    entry.value = (char *)value;
    serve_ok(s, "WriteMemory", &r);
}

static const Sessile__V1__MemoryInfo *info_by(serving *s)
{
    Sessile__V1__MemoryRequest r = SESSILE__V1__MEMORY_REQUEST__INIT;
    r.memory = memory();
    return serve_ok(s, "GetMemory", &r);
}

static void run_remember(serving *s, stream *st)
{
    static Sessile__V1__Policy policy = SESSILE__V1__POLICY__INIT,
                               *policies[] = {&policy};
    Sessile__V1__MemoryRunRequest r = SESSILE__V1__MEMORY_RUN_REQUEST__INIT;
    Sessile__V1__RememberRequest remember = SESSILE__V1__REMEMBER_REQUEST__INIT;
    Sessile__V1__MemoryRunConfig config = SESSILE__V1__MEMORY_RUN_CONFIG__INIT;
    Sessile__V1__CreateRequest create = SESSILE__V1__CREATE_REQUEST__INIT;
    policy.name = "asker";
    config.policies = policies;
    config.n_policies = 1;
    create.session = remember.session = names_of("s");
    create.open = 1;
    serve_ok(s, "CreateSession", &create);
    append_by(s, "s", "tea please");
    write_by(s, "x"); /* so that the memory is there */
    remember.config = &config;
    r.what_case = SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_REMEMBER;
    r.remember = &remember;
    stream_begin(s, st, "RunMemory", &r);
}

static void run_embed(serving *s, stream *st, unsigned batch)
{
    Sessile__V1__MemoryRunRequest r = SESSILE__V1__MEMORY_RUN_REQUEST__INIT;
    Sessile__V1__EmbedRequest embed = SESSILE__V1__EMBED_REQUEST__INIT;
    Sessile__V1__MemoryRunConfig config = SESSILE__V1__MEMORY_RUN_CONFIG__INIT;
    config.embed_model = "compass";
    config.embed_batch = batch;
    embed.memory = memory();
    embed.config = &config;
    r.what_case = SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_EMBED;
    r.embed = &embed;
    stream_begin(s, st, "RunMemory", &r);
}

static void reply(stream *st, const char *text)
{
    Sessile__V1__MemoryRunRequest r = SESSILE__V1__MEMORY_RUN_REQUEST__INIT;
    Sessile__V1__Answer answer = SESSILE__V1__ANSWER__INIT;
    answer.text = (char *)text;
    r.what_case = SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_REPLY;
    r.reply = &answer;
    stream_send(st, &r);
}

static void reply_vector(stream *st, size_t dims)
{
    float numbers[] = {1, 0.5f, 0.25f};
    Sessile__V1__Vector vector = SESSILE__V1__VECTOR__INIT, *vectors[] = {&vector};
    Sessile__V1__EmbedReply all = SESSILE__V1__EMBED_REPLY__INIT;
    Sessile__V1__MemoryRunRequest r = SESSILE__V1__MEMORY_RUN_REQUEST__INIT;
    vector.v = numbers;
    vector.n_v = dims;
    all.vectors = vectors;
    all.n_vectors = 1;
    r.what_case = SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_VECTORS;
    r.vectors = &all;
    stream_send(st, &r);
}

static void nobody(stream *st)
{
    Sessile__V1__MemoryRunRequest r = SESSILE__V1__MEMORY_RUN_REQUEST__INIT;
    Sessile__V1__Empty none = SESSILE__V1__EMPTY__INIT;
    r.what_case = SESSILE__V1__MEMORY_RUN_REQUEST__WHAT_NOBODY;
    r.nobody = &none;
    stream_send(st, &r);
}

static const Sessile__V1__Need *need_at(const stream *st, size_t i)
{
    assert_true(i < st->count);
    const Sessile__V1__MemoryRunEvent *e = st->replies[i];
    assert_int_equal(e->what_case, SESSILE__V1__MEMORY_RUN_EVENT__WHAT_NEED);
    return e->need;
}

static const Sessile__V1__MemoryOutcome *outcome_at(const stream *st, size_t i)
{
    assert_true(i < st->count);
    const Sessile__V1__MemoryRunEvent *e = st->replies[i];
    assert_int_equal(e->what_case, SESSILE__V1__MEMORY_RUN_EVENT__WHAT_OUTCOME);
    return e->outcome;
}

/* ---------------------------------------------------------------------- tests */

static void a_client_is_the_model_of_a_policy(void **state)
{
    serving s;
    stream st;
    sessile_store *store = run_store("ram:");
    (void)state;
    serving_start(&s, store, NULL);
    run_remember(&s, &st);
    assert_true(stream_wait(&st, 1));
    assert_string_equal(need_at(&st, 0)->kind, "model");
    assert_string_equal(need_at(&st, 0)->policy, "asker");
    assert_non_null(strstr(need_at(&st, 0)->request->text, "tea please"));
    /* while it waits, others use the memory */
    assert_int_equal(info_by(&s)->live, 1);
    reply(&st, "wants tea");
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_OK);
    assert_string_equal(outcome_at(&st, 1)->verdict, "applied");
    assert_int_equal(outcome_at(&st, 1)->written, 1);
    assert_non_null(strstr(outcome_at(&st, 1)->changes->text, "wants tea"));
    stream_done(&st);
    serving_stop(&s);
    sessile_store_close(store);
}

static void nobody_answers_and_nothing_is_written(void **state)
{
    serving s;
    stream st;
    sessile_store *store = run_store("ram:");
    (void)state;
    serving_start(&s, store, NULL);
    run_remember(&s, &st);
    assert_true(stream_wait(&st, 1));
    nobody(&st);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_OK);
    assert_string_equal(outcome_at(&st, 1)->verdict, "refused");
    stream_done(&st);
    /* a client that goes is nobody, too */
    run_remember(&s, &st);
    assert_true(stream_wait(&st, 1));
    stream_done(&st);
    assert_int_equal(info_by(&s)->live, 2); /* what the two runs began with */
    serving_stop(&s);
    sessile_store_close(store);
}

static void vectors_are_written_as_they_come(void **state)
{
    serving s;
    stream st;
    sessile_store *store = run_store("ram:");
    (void)state;
    serving_start(&s, store, NULL);
    write_by(&s, "one");
    write_by(&s, "two");
    run_embed(&s, &st, 1);
    assert_true(stream_wait(&st, 1));
    assert_string_equal(need_at(&st, 0)->kind, "embed");
    assert_non_null(strstr(need_at(&st, 0)->request->text, "compass"));
    reply_vector(&st, 3);
    assert_true(stream_wait(&st, 2));
    assert_string_equal(need_at(&st, 1)->kind, "embed");
    nobody(&st);
    stream_wait_end(&st);
    assert_int_equal(outcome_at(&st, 2)->embedded, 1);
    assert_int_equal(outcome_at(&st, 2)->to_embed, 1);
    assert_int_equal(info_by(&s)->vectors, 1);
    assert_int_equal(info_by(&s)->dims, 3);
    stream_done(&st);
    serving_stop(&s);
    sessile_store_close(store);
}

static void an_answer_of_another_kind_ends_the_call(void **state)
{
    serving s;
    stream st;
    sessile_store *store = run_store("ram:");
    Sessile__V1__MemoryRunRequest none = SESSILE__V1__MEMORY_RUN_REQUEST__INIT;
    (void)state;
    serving_start(&s, store, NULL);
    write_by(&s, "one");
    run_embed(&s, &st, 1);
    assert_true(stream_wait(&st, 1));
    reply(&st, "no vector");
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    stream_done(&st);
    run_embed(&s, &st, 1);
    assert_true(stream_wait(&st, 1));
    stream_send(&st, &none);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    stream_done(&st);
    stream_begin(&s, &st, "RunMemory", &none); /* it begins nothing */
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    stream_done(&st);
    assert_int_equal(info_by(&s)->vectors, 0);
    serving_stop(&s);
    sessile_store_close(store);
}

static void a_server_that_ends_lets_no_run_wait(void **state)
{
    serving s;
    stream st;
    sessile_store *store = run_store("ram:");
    (void)state;
    serving_start(&s, store, NULL);
    write_by(&s, "one");
    run_embed(&s, &st, 1);
    assert_true(stream_wait(&st, 1));
    serving_drain(&s);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_OK);
    assert_int_equal(outcome_at(&st, 1)->embedded, 0);
    stream_done(&st);
    serving_stop(&s);
    sessile_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_the_model_of_a_policy),
        cmocka_unit_test(nobody_answers_and_nothing_is_written),
        cmocka_unit_test(vectors_are_written_as_they_come),
        cmocka_unit_test(an_answer_of_another_kind_ends_the_call),
        cmocka_unit_test(a_server_that_ends_lets_no_run_wait),
    };
    return cmocka_run_group_tests_name("memory stream", tests, make_policies,
                                       remove_folder);
}
