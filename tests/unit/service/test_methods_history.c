/* test_methods_history.c: compactions, why, usage, counting and search, over the methods.
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

/* ---------------------------------------------------------------------- compactions */

/* Two turns, of 4 and 2 messages, after which a policy does `on`. */
static Sessile__V1__Session *session_after(void (*on)(sessile_hook hook,
                                                      sessile_state *state,
                                                      sessile_answer *answer, void *arg))
{
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    host_script script = {.on = on, .arg = &hook}, quiet = {.calls = ""};
    sessile_outcome outcome;
    sessile_session *s = session_at(direct.store);
    sessile_policy *p = host_policy(direct.store, SESSILE_HOOK_TRUNCATE);
    sessile_run_free(take_turn(s, NULL, 4, &quiet, &outcome));
    sessile_run_free(take_turn(s, p, 2, &script, &outcome));
    sessile_policy_free(p);
    session_done(s);
    return asked("s");
}

static Sessile__V1__CompactionList *compactions_of(Sessile__V1__Session *session)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    r.session = session;
    return call_ok("ListCompactions", &r);
}

static void test_a_compaction_is_listed_explained_and_undone(void **state)
{
    Sessile__V1__UncompactRequest undo = SESSILE__V1__UNCOMPACT_REQUEST__INIT;
    Sessile__V1__WhyRequest why = SESSILE__V1__WHY_REQUEST__INIT;
    Sessile__V1__Key first = SESSILE__V1__KEY__INIT;
    (void)state;
    undo.session = why.session = session_after(drop_first);
    why.key = &first;
    first.entry = 1;
    Sessile__V1__CompactionList *list = compactions_of(why.session);
    assert_int_equal(list->n_compactions, 1);
    const Sessile__V1__Compaction *one = list->compactions[0];
    assert_false(one->refused);
    assert_non_null(strstr(one->policy, "host"));
    assert_int_equal(one->lost, 1);
    assert_int_equal(one->kept, 5);
    assert_int_equal(one->in_force, 1);
    assert_null(one->uncompacts);
    assert_true(one->tokens_before > one->tokens_after && one->time_ms > 0);

    Sessile__V1__Explanation *told = call_ok("Explain", &why);
    assert_false(told->in_context);
    assert_null(told->shown);
    assert_int_equal(told->n_steps, 2);
    assert_string_equal(told->steps[0]->kind, "said");
    assert_string_equal(told->steps[0]->role, "user");
    assert_string_equal(told->steps[0]->disposition, "");
    assert_string_equal(told->steps[1]->kind, "left");
    assert_string_equal(told->steps[1]->disposition, "lost");
    assert_int_equal(told->steps[1]->compaction->id, one->id);

    undo.dry_run = 1;
    Sessile__V1__Uncompacted *done = call_ok("Uncompact", &undo);
    assert_null(done->compaction);
    assert_int_equal(compactions_of(why.session)->n_compactions, 1);
    undo.dry_run = 0;
    undo.which = entry_of(one->id);
    done = call_ok("Uncompact", &undo);
    assert_int_equal(done->undone, one->id);
    assert_int_equal(done->n_restored, 1);
    assert_int_equal(done->restored[0]->entry, 1);
    assert_int_equal(done->n_removed, 0);
    assert_true(done->tokens_after > done->tokens_before);
    list = compactions_of(why.session);
    assert_int_equal(list->compactions[1]->id, done->compaction->id);
    assert_int_equal(list->compactions[1]->uncompacts->id, one->id);
    told = call_ok("Explain", &why);
    assert_true(told->in_context);
    assert_int_equal(told->shown->entry, 1);

    call_fails("Uncompact", &undo, RPC_INVALID_ARGUMENT, "EINVALID");
    undo.which = entry_of(1);
    call_fails("Uncompact", &undo, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_a_refusal_is_listed(void **state)
{
    (void)state;
    Sessile__V1__CompactionList *list = compactions_of(session_after(say_no));
    assert_int_equal(list->n_compactions, 1);
    assert_true(list->compactions[0]->refused);
    assert_string_equal(list->compactions[0]->hook, "truncate");
    assert_true(strlen(list->compactions[0]->message) > 0);
}

static void test_what_cannot_be_explained(void **state)
{
    Sessile__V1__WhyRequest r = SESSILE__V1__WHY_REQUEST__INIT;
    Sessile__V1__Key key = SESSILE__V1__KEY__INIT;
    (void)state;
    r.session = session_with("s", 1);
    call_fails("Explain", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.key = &key;
    key.entry = 50;
    call_fails("Explain", &r, RPC_NOT_FOUND, "ENOTFOUND");
    key.entry = 0;
    Sessile__V1__Explanation *told = call_ok("Explain", &r);
    assert_string_equal(told->steps[0]->kind, "no_message");
    assert_string_equal(told->steps[0]->type, "session");
}

/* ---------------------------------------------------------------------- counting */

static void test_usage_is_summed_and_grouped(void **state)
{
    Sessile__V1__TurnRequest turn = SESSILE__V1__TURN_REQUEST__INIT;
    Sessile__V1__UsageRequest r = SESSILE__V1__USAGE_REQUEST__INIT;
    Sessile__V1__Json *messages[] = {
        json_of_text("{\"role\":\"user\",\"content\":\"a\"}"),
        json_of_text("{\"role\":\"assistant\",\"content\":\"b\"}")};
    (void)state;
    r.session = turn.session = session_with("s", 0);
    turn.messages = messages;
    turn.n_messages = 2;
    turn.model = "small-1";
    turn.usage = json_of_text("{\"input\":10,\"output\":5,\"cost\":0.25}");
    call_ok("Turn", &turn);
    turn.model = "large-1";
    turn.usage = json_of_text("{\"input\":100,\"output\":50}");
    call_ok("Turn", &turn);
    Sessile__V1__UsageResponse *usage = call_ok("GetUsage", &r);
    assert_int_equal(usage->total->input, 110);
    assert_int_equal(usage->total->output, 55);
    assert_int_equal(usage->n_groups, 0);
    r.by = "model";
    usage = call_ok("GetUsage", &r);
    assert_int_equal(usage->n_groups, 2);
    assert_string_equal(usage->groups[0]->model, "large-1");
    assert_int_equal(usage->groups[0]->uncosted->input, 100);
    assert_string_equal(usage->groups[1]->model, "small-1");
    assert_int_equal(usage->groups[1]->usage->input, 10);
    assert_true(usage->groups[1]->cost == 0.25);
    assert_int_equal(usage->groups[1]->reports, 1);
    assert_true(usage->groups[1]->first_ms > 0);
    r.by = "day_and_model";
    usage = call_ok("GetUsage", &r);
    assert_int_equal(usage->n_groups, 2);
    r.by = "week";
    call_fails("GetUsage", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_tokens_are_counted(void **state)
{
    Sessile__V1__CountRequest r = SESSILE__V1__COUNT_REQUEST__INIT;
    (void)state;
    r.session = session_with("s", 4);
    Sessile__V1__Tokens *all = call_ok("CountTokens", &r);
    assert_true(all->tokens > 0 && all->low <= all->tokens && all->tokens <= all->high);
    assert_true(strlen(all->source) > 0);
    r.at = entry_of(1);
    Sessile__V1__Tokens *first = call_ok("CountTokens", &r);
    assert_true(first->tokens < all->tokens);
    r.system = "a system prompt of some words";
    Sessile__V1__Tokens *more = call_ok("CountTokens", &r);
    assert_true(more->tokens > first->tokens);
    r.at = entry_of(80);
    call_fails("CountTokens", &r, RPC_NOT_FOUND, "ENOTFOUND");
    r.at = NULL;
    r.tools = json_of_text("{");
    call_fails("CountTokens", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

/* ---------------------------------------------------------------------- searching */

static void test_a_search_streams_what_it_finds(void **state)
{
    Sessile__V1__SearchRequest r = SESSILE__V1__SEARCH_REQUEST__INIT;
    char *roles[] = {"assistant"}, *wrong[] = {"nobody"}, *empty[] = {""};
    (void)state;
    session_with("s", 4);
    session_with("s2", 4);
    session_with("other", 1);
    r.text = "MESSAGE";
    Sessile__V1__Found *found = call_ok("Search", &r);
    assert_int_equal(direct.rpc.got.count, 9);
    assert_string_equal(found->kind, "message");
    assert_string_equal(found->field, "content");
    assert_int_equal(found->size, 7);
    assert_memory_equal(found->text + found->at, "message", 7);
    assert_null(found->unread);
    r.session = asked("s");
    found = call_ok("Search", &r);
    assert_int_equal(direct.rpc.got.count, 4);
    assert_string_equal(found->session->id, "s");
    assert_int_equal(found->entry->id, 1);
    assert_string_equal(found->role, "user");
    r.roles = roles;
    r.n_roles = 1;
    call_ok("Search", &r);
    assert_int_equal(direct.rpc.got.count, 2);
    r.limit = 1001;
    call_fails("Search", &r, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
    r.limit = 1;
    call_ok("Search", &r);
    assert_int_equal(direct.rpc.got.count, 1);
    r.exact = 1;
    size_t size = sessile__v1__search_request__get_packed_size(&r);
    unsigned char bytes[200];
    assert_true(size <= sizeof bytes);
    sessile__v1__search_request__pack(&r, bytes);
    call_bytes("Search", bytes, size);
    assert_int_equal(direct.rpc.got.code, RPC_OK);
    assert_int_equal(direct.rpc.got.count, 0);
    r.roles = wrong;
    call_fails("Search", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.roles = empty;
    call_fails("Search", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.n_roles = 0;
    r.text = "";
    call_fails("Search", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_search_finds_titles_and_labels(void **state)
{
    Sessile__V1__SearchRequest r = SESSILE__V1__SEARCH_REQUEST__INIT;
    Sessile__V1__TitleRequest title = SESSILE__V1__TITLE_REQUEST__INIT;
    Sessile__V1__LabelRequest label = SESSILE__V1__LABEL_REQUEST__INIT;
    (void)state;
    title.session = label.session = session_with("s", 1);
    title.title = "about zebras";
    label.name = "zebra";
    label.entry = 1;
    call_ok("SetTitle", &title);
    call_ok("SetLabel", &label);
    r.text = "zebra";
    Sessile__V1__Found *found = call_ok("Search", &r);
    assert_string_equal(found->kind, "title");
    assert_null(found->entry);
    assert_string_equal(found->title, "about zebras");
    found = call_got("Search", 1);
    assert_string_equal(found->kind, "label");
    assert_int_equal(found->entry->id, 1);
}

static void test_a_search_ends_when_nobody_waits(void **state)
{
    Sessile__V1__SearchRequest r = SESSILE__V1__SEARCH_REQUEST__INIT;
    unsigned char bytes[64];
    (void)state;
    session_with("s", 20);
    r.text = "message";
    direct.rpc.over_after = 3;
    call_bytes("Search", bytes, sessile__v1__search_request__pack(&r, bytes));
    assert_int_equal(direct.rpc.got.count, 3);
    assert_int_equal(direct.rpc.got.code, RPC_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(test_a_compaction_is_listed_explained_and_undone),
        DIRECT(test_a_refusal_is_listed),
        DIRECT(test_what_cannot_be_explained),
        DIRECT(test_usage_is_summed_and_grouped),
        DIRECT(test_tokens_are_counted),
        DIRECT(test_a_search_streams_what_it_finds),
        DIRECT(test_a_search_finds_titles_and_labels),
        DIRECT(test_a_search_ends_when_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
