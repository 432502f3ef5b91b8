/*
 * test_methods_recall.c: what is recalled, remembered, tidied and admitted, and vectors,
 * over methods that answer once: nobody is there who could be asked.
 */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

/* Notes each message as it was said, or, with `ask`, as a model puts it. */
static const char noter[] =
    "return { name = 'noter', version = 1,\n"
    "  options = { ask = { type = 'boolean', default = false } },\n"
    "  remember = function(said, ctx)\n"
    "    for _, message in ipairs(said) do\n"
    "      local text = message.content\n"
    "      if ctx.options.ask then\n"
    "        local answer, why = ctx.model { messages = {{ role = 'user',\n"
    "          content = text }} }\n"
    "        text = answer or error(why, 0)\n"
    "      end\n"
    "      ctx.memory.write { value = text, from = { message.id } }\n"
    "    end\n"
    "  end,\n"
    "  admit = function(entry) return not entry.value:find 'secret', 'it is secret' "
    "end,\n"
    "  tidy = function(entry, near, ctx)\n"
    "    if #near > 0 then ctx.memory.delete(near[1].id) end\n"
    "  end }\n";

static int make_policies(void **state)
{
    char path[200];
    if (make_folder(state))
        return -1;
    snprintf(path, sizeof path, "%s/noter.lua", runs_folder);
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fputs(noter, f);
    return fclose(f);
}

/* ---------------------------------------------------------------------- helpers */

static Sessile__V1__MemoryRunConfig *with_noter(const char *options)
{
    static Sessile__V1__Policy policy, *policies[] = {&policy};
    static Sessile__V1__MemoryRunConfig config;
    sessile__v1__policy__init(&policy);
    sessile__v1__memory_run_config__init(&config);
    policy.name = "noter";
    policy.options = options ? json_of_text(options) : NULL;
    config.policies = policies;
    config.n_policies = 1;
    return &config;
}

static void consented(const char *user)
{
    Sessile__V1__OpenMemoryRequest r = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    r.memory = memory_named(user);
    r.consent = user ? "yes" : "";
    call_ok("OpenMemory", &r);
}

static sessile_id wrote(const char *user, const char *value)
{
    Sessile__V1__WriteMemoryRequest r = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    r.memory = memory_named(user);
    r.entries = entries;
    r.n_entries = 1;
    entry.value = (char *)value;
    const Sessile__V1__MemoryWritten *written = call_ok("WriteMemory", &r);
    return written->entries[0];
}

static Sessile__V1__Session *session_of(const char *user, const char *text)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__AppendRequest append = SESSILE__V1__APPEND_REQUEST__INIT;
    char message[200];
    r.session = append.session = asked("s");
    r.session->user = (char *)user;
    call_ok("CreateSession", &r);
    snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    append.message = json_of_text(message);
    call_ok("AppendMessage", &append);
    return r.session;
}

static const Sessile__V1__MemoryInfo *info_of(const char *user)
{
    Sessile__V1__MemoryRequest r = SESSILE__V1__MEMORY_REQUEST__INIT;
    r.memory = memory_named(user);
    return call_ok("GetMemory", &r);
}

/* ---------------------------------------------------------------------- recall */

static void test_both_memories_are_recalled(void **state)
{
    Sessile__V1__RecallRequest r = SESSILE__V1__RECALL_REQUEST__INIT;
    Sessile__V1__ContextRequest get = SESSILE__V1__CONTEXT_REQUEST__INIT;
    char *user[] = {"user"}, *other[] = {"bob"};
    (void)state;
    r.session = get.session = session_of("ann", "tea or coffee?");
    const Sessile__V1__MemoryOutcome *none = call_ok("Recall", &r); /* no memory yet */
    assert_null(none->recall->entry);
    consented("ann");
    wrote("ann", "likes green tea");
    wrote(NULL, "coffee is served at four");
    const Sessile__V1__MemoryRows *rows = call_ok("FindRecall", &r);
    assert_int_equal(rows->n_rows, 2);
    assert_int_equal(rows->rows[0]->shared + rows->rows[1]->shared, 1);
    r.memories = user;
    r.n_memories = 1;
    rows = call_ok("FindRecall", &r);
    assert_int_equal(rows->n_rows, 1);
    assert_string_equal(rows->rows[0]->value, "likes green tea");
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Recall", &r);
    assert_int_equal(outcome->recall->recalled, 1);
    assert_non_null(outcome->recall->entry);
    const Sessile__V1__Messages *context = call_ok("GetContext", &get);
    assert_int_equal(context->n_messages, 2);
    assert_non_null(strstr(context->messages[1]->json->text, "likes green tea"));
    r.memories = other;
    call_fails("Recall", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.n_memories = 0;
    r.trust = "everybody";
    call_fails("FindRecall", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.trust = "";
    r.session = asked("nobody");
    call_fails("Recall", &r, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_chosen_entries_are_recalled(void **state)
{
    Sessile__V1__RecallRequest r = SESSILE__V1__RECALL_REQUEST__INIT;
    Sessile__V1__RecallItem item = SESSILE__V1__RECALL_ITEM__INIT, *list[] = {&item};
    Sessile__V1__RecallItems items = SESSILE__V1__RECALL_ITEMS__INIT;
    (void)state;
    r.session = session_of("", "hello");
    item.entry = wrote(NULL, "a rule of the house");
    item.shared = 1;
    items.items = list;
    items.n_items = 1;
    r.items = &items;
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Recall", &r);
    assert_int_equal(outcome->recall->recalled, 1);
    item.shared = 0; /* the session has no user, so no such memory */
    call_fails("Recall", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

/* Who would embed the question is not there: words find what they find. */
static void test_a_question_that_nobody_embeds_is_recalled_by_words(void **state)
{
    Sessile__V1__RecallRequest r = SESSILE__V1__RECALL_REQUEST__INIT;
    Sessile__V1__MemoryRunConfig config = SESSILE__V1__MEMORY_RUN_CONFIG__INIT;
    (void)state;
    r.session = session_of("", "which tea is there?");
    wrote(NULL, "tea is served at four");
    r.config = &config;
    config.embed_model = "minilm";
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Recall", &r);
    assert_int_equal(outcome->recall->recalled, 1);
    assert_false(outcome->has_vector);
}

/* ---------------------------------------------------------------------- runs */

static void test_a_policy_remembers(void **state)
{
    Sessile__V1__RememberRequest r = SESSILE__V1__REMEMBER_REQUEST__INIT;
    (void)state;
    r.session = session_of("ann", "tea please");
    r.config = with_noter(NULL);
    call_fails("Remember", &r, RPC_NOT_FOUND, "ENOTFOUND"); /* no memory */
    consented("ann");
    r.config->dry_run = 1;
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Remember", &r);
    assert_int_equal(info_of("ann")->live, 0);
    r.config->dry_run = 0;
    outcome = call_ok("Remember", &r);
    assert_string_equal(outcome->verdict, "applied");
    assert_int_equal(outcome->heard, 1);
    assert_int_equal(outcome->written, 1);
    assert_non_null(strstr(outcome->changes->text, "tea please"));
    assert_int_equal(info_of("ann")->live, 1);
    r.config->reason = "whim";
    call_fails("Remember", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.config->reason = "";
    r.config->policies[0]->name = "/etc/passwd";
    call_fails("Remember", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.config = NULL; /* nobody remembers */
    call_fails("Remember", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

/* What is not written is heard again by the next run. */
static void test_a_policy_that_asks_is_refused_and_nothing_is_lost(void **state)
{
    Sessile__V1__RememberRequest r = SESSILE__V1__REMEMBER_REQUEST__INIT;
    (void)state;
    r.session = session_of("ann", "tea please");
    consented("ann");
    r.config = with_noter("{\"ask\":true}");
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Remember", &r);
    assert_string_equal(outcome->verdict, "refused");
    assert_string_equal(outcome->policy, "noter");
    assert_string_equal(outcome->hook, "remember");
    assert_non_null(strstr(outcome->message, "nobody answers"));
    assert_int_equal(info_of("ann")->live, 0);
    r.config = with_noter(NULL);
    outcome = call_ok("Remember", &r);
    assert_int_equal(outcome->heard, 1);
    assert_int_equal(outcome->written, 1);
}

static void test_entries_are_admitted_and_tidied(void **state)
{
    Sessile__V1__AdmitRequest r = SESSILE__V1__ADMIT_REQUEST__INIT;
    Sessile__V1__TidyRequest tidy = SESSILE__V1__TIDY_REQUEST__INIT;
    Sessile__V1__MemoryEntry one = SESSILE__V1__MEMORY_ENTRY__INIT, two = one,
                             *entries[] = {&one, &two};
    (void)state;
    r.memory = tidy.memory = memory_named(NULL);
    r.config = tidy.config = with_noter(NULL);
    call_fails("Tidy", &tidy, RPC_NOT_FOUND, "ENOTFOUND");
    r.entries = entries;
    r.n_entries = 2;
    one.value = "the secret number";
    two.value = "likes green tea";
    one.source = two.source = "agent"; /* whose a policy may end */
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Admit", &r);
    assert_int_equal(outcome->written, 1);
    assert_int_equal(outcome->not_admitted, 1);
    assert_non_null(strstr(outcome->changes->text, "it is secret"));
    r.n_entries = 1;
    one.value = "likes green tea";
    call_ok("Admit", &r);
    assert_int_equal(info_of(NULL)->live, 2);
    outcome = call_ok("Tidy", &tidy);
    assert_true(outcome->ended > 0);
    assert_true(info_of(NULL)->live < 2);
    Sessile__V1__EntryIds none = SESSILE__V1__ENTRY_IDS__INIT;
    tidy.entries = &none;
    outcome = call_ok("Tidy", &tidy);
    assert_int_equal(outcome->ended, 0);
    one.kind = "opinion";
    call_fails("Admit", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_whose_words_an_agent_writes(void **state)
{
    Sessile__V1__AgentSourceRequest r = SESSILE__V1__AGENT_SOURCE_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT;
    (void)state;
    r.session = session_of("", "hello");
    r.shared = 1;
    call_fails("GetAgentSource", &r, RPC_INVALID_ARGUMENT, "EINVALID"); /* which entry? */
    r.entry = &entry;
    entry.value = "something of its own";
    call_fails("GetAgentSource", &r, RPC_INVALID_ARGUMENT, "EINVALID"); /* no memory */
    wrote(NULL, "x");
    const Sessile__V1__AgentSource *source = call_ok("GetAgentSource", &r);
    assert_string_equal(source->source, "agent");
}

/* ---------------------------------------------------------------------- vectors */

static Sessile__V1__Vector *vector_of(float *numbers, size_t n)
{
    static Sessile__V1__Vector all[4];
    static size_t next;
    Sessile__V1__Vector *out = &all[next++ % 4];
    sessile__v1__vector__init(out);
    out->v = numbers;
    out->n_v = n;
    return out;
}

static void test_entries_get_vectors_and_are_found_by_them(void **state)
{
    Sessile__V1__UnembeddedRequest ask = SESSILE__V1__UNEMBEDDED_REQUEST__INIT;
    Sessile__V1__VectorsRequest put = SESSILE__V1__VECTORS_REQUEST__INIT;
    Sessile__V1__MemoryRequest get = SESSILE__V1__MEMORY_REQUEST__INIT;
    Sessile__V1__SearchMemoryRequest search = SESSILE__V1__SEARCH_MEMORY_REQUEST__INIT;
    float east[] = {1, 0}, north[] = {0, 1}, bad[] = {1, 0, 0};
    sessile_id ids[2] = {wrote(NULL, "a \"quoted\" east"), wrote(NULL, "north")};
    (void)state;
    ask.memory = put.memory = get.memory = search.memory = memory_named(NULL);
    call_fails("ListUnembedded", &ask, RPC_INVALID_ARGUMENT, "EINVALID"); /* whose? */
    ask.model = put.model = "compass";
    const Sessile__V1__Unembedded *todo = call_ok("ListUnembedded", &ask);
    assert_int_equal(todo->n_texts, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(todo->texts[i]->text, todo->texts[i]->entry == ids[0]
                                                      ? "a \"quoted\" east"
                                                      : "north");
    Sessile__V1__Vector *vectors[] = {vector_of(east, 2), vector_of(bad, 3)};
    put.entries = ids;
    put.n_entries = 2;
    put.vectors = vectors;
    put.n_vectors = 1;
    call_fails("PutVectors", &put, RPC_INVALID_ARGUMENT, "EINVALID"); /* one is missing */
    put.n_vectors = 2;
    call_fails("PutVectors", &put, RPC_INVALID_ARGUMENT, "EINVALID"); /* of two sizes */
    vectors[1] = vector_of(north, 2);
    call_ok("PutVectors", &put);
    todo = call_ok("ListUnembedded", &ask);
    assert_int_equal(todo->n_texts, 0);
    const Sessile__V1__MemoryModels *models = call_ok("ListModels", &get);
    assert_int_equal(models->n_models, 1);
    assert_string_equal(models->models[0]->name, "compass");
    assert_int_equal(models->models[0]->dims, 2);
    assert_int_equal(models->models[0]->live, 2);
    assert_true(models->models[0]->used);
    search.vector = vector_of(north, 2);
    search.model = "compass";
    const Sessile__V1__MemoryRows *rows = call_ok("SearchMemory", &search);
    assert_string_equal(rows->rows[0]->value, "north");
    assert_true(rows->rows[0]->cosine > 0.9);
    search.vector = vector_of(bad, 3);
    search.model = "";
    call_fails("SearchMemory", &search, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_an_index_outside_takes_the_place_of_vectors(void **state)
{
    Sessile__V1__SearchMemoryRequest r = SESSILE__V1__SEARCH_MEMORY_REQUEST__INIT;
    Sessile__V1__OutsideHit hit = SESSILE__V1__OUTSIDE_HIT__INIT, *list[] = {&hit};
    Sessile__V1__OutsideHits hits = SESSILE__V1__OUTSIDE_HITS__INIT;
    (void)state;
    wrote(NULL, "another one");
    hit.entry = wrote(NULL, "what nobody's words find");
    hit.score = 12.5;
    hits.hits = list;
    hits.n_hits = 1;
    r.memory = memory_named(NULL);
    r.question = "zebra";
    r.outside = &hits;
    const Sessile__V1__MemoryRows *rows = call_ok("SearchMemory", &r);
    assert_int_equal(rows->n_rows, 1);
    assert_int_equal(rows->rows[0]->id, hit.entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(test_both_memories_are_recalled),
        DIRECT(test_chosen_entries_are_recalled),
        DIRECT(test_a_question_that_nobody_embeds_is_recalled_by_words),
        DIRECT(test_a_policy_remembers),
        DIRECT(test_a_policy_that_asks_is_refused_and_nothing_is_lost),
        DIRECT(test_entries_are_admitted_and_tidied),
        DIRECT(test_whose_words_an_agent_writes),
        DIRECT(test_entries_get_vectors_and_are_found_by_them),
        DIRECT(test_an_index_outside_takes_the_place_of_vectors),
    };
    return cmocka_run_group_tests(tests, make_policies, remove_folder);
}
