/* test_methods_core.c: sessions, messages and runs, over the methods. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_a_session_is_made_deleted_and_undeleted(void **state)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__DeleteRequest gone = SESSILE__V1__DELETE_REQUEST__INIT;
    Sessile__V1__UndeleteRequest back = SESSILE__V1__UNDELETE_REQUEST__INIT;
    Sessile__V1__SessionRequest get = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    r.session = gone.session = back.session = get.session = asked("s");
    call_fails("ResumeSession", &get, RPC_NOT_FOUND, "ENOTFOUND");
    r.title = "one";
    const Sessile__V1__SessionInfo *info = call_ok("CreateSession", &r);
    assert_string_equal(info->session->id, "s");
    assert_string_equal(info->title, "one");
    assert_string_equal(info->life, "active");
    call_fails("CreateSession", &r, RPC_ALREADY_EXISTS, "EEXISTS");
    r.open = 1;
    call_ok("CreateSession", &r);
    gone.soft = 1;
    const Sessile__V1__Deleted *deleted = call_ok("DeleteSession", &gone);
    assert_true(strlen(deleted->id_hash) > 0 && deleted->time_ms > 0);
    call_fails("ResumeSession", &get, RPC_NOT_FOUND, "ENOTFOUND");
    call_ok("UndeleteSession", &back);
    call_ok("ResumeSession", &get);
    gone.soft = 0;
    call_ok("DeleteSession", &gone);
    call_fails("UndeleteSession", &back, RPC_NOT_FOUND, "ENOTFOUND");
    call_fails("DeleteSession", &gone, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_messages_are_appended_and_read(void **state)
{
    Sessile__V1__AppendRequest r = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__AppendCustomRequest custom = SESSILE__V1__APPEND_CUSTOM_REQUEST__INIT;
    Sessile__V1__MessagesRequest read = SESSILE__V1__MESSAGES_REQUEST__INIT;
    Sessile__V1__ContextRequest context = SESSILE__V1__CONTEXT_REQUEST__INIT;
    Sessile__V1__EntryRequest get = SESSILE__V1__ENTRY_REQUEST__INIT;
    Sessile__V1__SessionRequest clear = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    r.session = custom.session = read.session = context.session = get.session =
        clear.session = session_with("s", 2);
    r.message = json_of_text("{\"role\":\"user\",\"content\":\"third\",\"n\":1.0}");
    const Sessile__V1__Written *written = call_ok("AppendMessage", &r);
    assert_int_equal(written->entry, 3);
    r.message = json_of_text("{\"content\":\"whose?\"}");
    call_fails("AppendMessage", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    custom.data = json_of_text("{\"x\":1}");
    written = call_ok("AppendCustom", &custom);
    get.entry = written->entry;
    const Sessile__V1__EntryText *entry = call_ok("GetEntry", &get);
    assert_non_null(strstr(entry->json->text, "\"x\":1"));
    get.entry = 99;
    call_fails("GetEntry", &get, RPC_NOT_FOUND, "ENOTFOUND");
    const Sessile__V1__Messages *messages = call_ok("GetMessages", &read);
    assert_int_equal(messages->n_messages, 3);
    assert_non_null(strstr(messages->messages[2]->json->text, "\"n\":1.0"));
    read.role = "assistant";
    messages = call_ok("GetMessages", &read);
    assert_int_equal(messages->n_messages, 1);
    assert_string_equal(messages->messages[0]->role, "assistant");
    read.role = "nobody";
    call_fails("GetMessages", &read, RPC_INVALID_ARGUMENT, "EINVALID");
    messages = call_ok("GetContext", &context);
    assert_int_equal(messages->n_messages, 3);
    assert_int_equal(messages->info->head, 3);
    assert_true(messages->info->tokens->tokens > 0);
    call_ok("Clear", &clear);
    messages = call_ok("GetContext", &context);
    assert_int_equal(messages->n_messages, 0);
}

static void test_runs_that_answer_once(void **state)
{
    Sessile__V1__TurnRequest turn = SESSILE__V1__TURN_REQUEST__INIT;
    Sessile__V1__CompactRequest compact = SESSILE__V1__COMPACT_REQUEST__INIT;
    Sessile__V1__BranchRequest branch = SESSILE__V1__BRANCH_REQUEST__INIT;
    Sessile__V1__AnswerRequest answer = SESSILE__V1__ANSWER_REQUEST__INIT;
    Sessile__V1__SessionRequest list = SESSILE__V1__SESSION_REQUEST__INIT;
    Sessile__V1__Base base = SESSILE__V1__BASE__INIT;
    Sessile__V1__Json *messages[] = {
        json_of_text("{\"role\":\"user\",\"content\":\"a\"}")};
    (void)state;
    turn.session = compact.session = branch.session = answer.session = list.session =
        asked("s");
    turn.messages = messages;
    turn.n_messages = 1;
    call_fails("Turn", &turn, RPC_NOT_FOUND, "ENOTFOUND");
    turn.create = 1;
    turn.follows = &base;
    const Sessile__V1__Outcome *outcome = call_ok("Turn", &turn);
    assert_int_equal(outcome->first->id, 1);
    assert_string_equal(outcome->verdict, "no_policy");
    call_fails("Turn", &turn, RPC_ABORTED, "ECONFLICT");
    base.once = "turn-2";
    base.entry = outcome->head;
    call_ok("Turn", &turn);
    outcome = call_ok("Turn", &turn);
    assert_true(outcome->again);
    /* There is no policy to compact with. */
    call_fails("Plan", &compact, RPC_INVALID_ARGUMENT, "EINVALID");
    call_fails("Compact", &compact, RPC_INVALID_ARGUMENT, "EINVALID");
    compact.reason = "whim";
    call_fails("Compact", &compact, RPC_INVALID_ARGUMENT, "EINVALID");
    branch.entry = 1;
    outcome = call_ok("Branch", &branch);
    assert_int_equal(outcome->head, 1);
    branch.entry = 99;
    call_fails("Branch", &branch, RPC_NOT_FOUND, "ENOTFOUND");
    const Sessile__V1__PendingRuns *runs = call_ok("ListPendingRuns", &list);
    assert_int_equal(runs->n_runs, 0);
    call_fails("Answer", &answer, RPC_NOT_FOUND, "ENOTFOUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(test_a_session_is_made_deleted_and_undeleted),
        DIRECT(test_messages_are_appended_and_read),
        DIRECT(test_runs_that_answer_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
