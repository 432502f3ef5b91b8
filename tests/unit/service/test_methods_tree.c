/* test_methods_tree.c: trees in pieces, forks, children, over the methods. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sessions.h"

/* ---------------------------------------------------------------------- trees */

static void test_a_tree_is_a_stream_of_nodes(void **state)
{
    Sessile__V1__TreeRequest r = SESSILE__V1__TREE_REQUEST__INIT;
    char *types[] = {"message"}, *none[] = {"massage"};
    (void)state;
    r.session = session_with("s", 3);
    Sessile__V1__Nodes *nodes = call_ok("GetTree", &r);
    assert_int_equal(direct.rpc.got.count, 1);
    assert_int_equal(nodes->n_nodes, 4);
    assert_string_equal(nodes->nodes[0]->type, "session");
    assert_null(nodes->nodes[0]->parent);
    assert_string_equal(nodes->nodes[0]->role, "");
    const Sessile__V1__Node *last = nodes->nodes[3];
    assert_int_equal(last->id, 3);
    assert_int_equal(last->parent->id, 2);
    assert_string_equal(last->type, "message");
    assert_string_equal(last->role, "user");
    assert_string_equal(last->speaker, "user");
    assert_true(last->is_head && last->on_path && last->is_path && last->in_context);
    assert_true(last->starts_turn && !last->labelled);
    assert_true(last->tokens > 0 && last->total_tokens > last->tokens);
    assert_true(last->time_ms > 0);
    r.types = types;
    r.n_types = 1;
    nodes = call_ok("GetTree", &r);
    assert_int_equal(nodes->n_nodes, 3);
    r.labelled = 1;
    nodes = call_ok("GetTree", &r);
    assert_int_equal(nodes->n_nodes, 0);
    r.types = none;
    call_fails("GetTree", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.session = asked("nobody");
    call_fails("GetTree", &r, RPC_NOT_FOUND, "ENOTFOUND");
}

static void test_a_large_tree_comes_in_pieces(void **state)
{
    enum { MESSAGES = 25000 };
    Sessile__V1__TreeRequest r = SESSILE__V1__TREE_REQUEST__INIT;
    sessile_slice *messages = calloc(MESSAGES, sizeof *messages);
    sessile_session *s;
    size_t nodes = 0;
    (void)state;
    assert_non_null(messages);
    r.session = session_with("s", 1);
    s = session_resumed(direct.store, "s");
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] = sessile_text("{\"role\":\"user\",\"content\":\"x\"}");
    assert_int_equal(sessile_suspend(s, sessile_text(""), sessile_text(""), NULL, NULL),
                     0);
    assert_int_equal(sessile_resume_with(s, messages, MESSAGES, NULL, NULL), 0);
    session_closed(s);
    free(messages);
    call_ok("GetTree", &r);
    size_t pieces = direct.rpc.got.count;
    assert_int_equal(pieces, 10);
    for (size_t i = 0; i < pieces; i++) {
        Sessile__V1__Nodes *piece = call_got("GetTree", i);
        assert_true(direct.rpc.got.sent[i].size <= 1 << 20);
        assert_true(i == 0 || piece->nodes[0]->id == nodes);
        nodes += piece->n_nodes;
    }
    assert_int_equal(nodes,
                     1 + 1 + 2 + MESSAGES); /* header, message, suspension, its end */
}

static void test_a_tree_ends_when_nobody_waits(void **state)
{
    Sessile__V1__TreeRequest r = SESSILE__V1__TREE_REQUEST__INIT;
    unsigned char bytes[64];
    (void)state;
    r.session = session_with("s", 3);
    direct.rpc.over_after = 0;
    call_bytes("GetTree", bytes, sessile__v1__tree_request__pack(&r, bytes));
    assert_int_equal(direct.rpc.got.count, 0);
}

/* ---------------------------------------------------------------------- forks */

static void test_a_fork_is_a_session_of_its_own(void **state)
{
    Sessile__V1__ForkRequest r = SESSILE__V1__FORK_REQUEST__INIT;
    Sessile__V1__ContextRequest read = SESSILE__V1__CONTEXT_REQUEST__INIT;
    Sessile__V1__TitleRequest title = SESSILE__V1__TITLE_REQUEST__INIT;
    (void)state;
    r.session = title.session = session_with("s", 3);
    title.title = "first";
    call_ok("SetTitle", &title);
    Sessile__V1__SessionInfo *info = call_ok("Fork", &r);
    assert_string_not_equal(info->session->id, "s");
    assert_string_equal(info->title, "first");
    assert_int_equal(info->head, 3);
    assert_string_equal(info->origin->session->id, "s");
    assert_int_equal(info->origin->entry->id, 3);
    assert_null(info->parent);
    r.to = asked("two");
    r.to->user = "bob";
    r.entry = entry_of(2);
    r.title = "second";
    r.metadata = json_of_text("{\"a\":1}");
    info = call_ok("Fork", &r);
    assert_string_equal(info->session->id, "two");
    assert_string_equal(info->session->user, "bob");
    assert_string_equal(info->title, "second");
    assert_int_equal(info->head, 2);
    read.session = r.to;
    Sessile__V1__Messages *messages = call_ok("GetContext", &read);
    assert_int_equal(messages->n_messages, 2);
    call_fails("Fork", &r, RPC_ALREADY_EXISTS, "EEXISTS");
    r.to = asked("three");
    r.entry = entry_of(99);
    call_fails("Fork", &r, RPC_NOT_FOUND, "ENOTFOUND");
    r.entry = NULL;
    r.metadata = json_of_text("7");
    call_fails("Fork", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_fork_of_a_user_is_that_users(void **state)
{
    Sessile__V1__CreateRequest make = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__ForkRequest r = SESSILE__V1__FORK_REQUEST__INIT;
    (void)state;
    r.session = make.session = asked("s");
    make.session->user = "ann";
    make.session->agent = "helper";
    call_ok("CreateSession", &make);
    r.to = asked("copy");
    Sessile__V1__SessionInfo *info = call_ok("Fork", &r);
    assert_string_equal(info->session->user, "ann");
    assert_string_equal(info->session->agent, "helper");
}

/* ---------------------------------------------------------------------- children */

static Sessile__V1__Subsessions *children_of(Sessile__V1__Session *session)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    r.session = session;
    return call_ok("ListChildren", &r);
}

static void test_a_child_is_made_and_merged(void **state)
{
    Sessile__V1__ChildRequest r = SESSILE__V1__CHILD_REQUEST__INIT;
    Sessile__V1__ChildResultRequest end = SESSILE__V1__CHILD_RESULT_REQUEST__INIT;
    Sessile__V1__EntryRequest get = SESSILE__V1__ENTRY_REQUEST__INIT;
    (void)state;
    r.session = end.session = get.session = session_with("s", 2);
    r.to = end.child = asked("child");
    r.title = "search";
    Sessile__V1__SessionInfo *info = call_ok("CreateChild", &r);
    assert_string_equal(info->session->id, "child");
    assert_string_equal(info->title, "search");
    assert_string_equal(info->parent->session->id, "s");
    assert_int_equal(info->parent->entry->id, 2);
    assert_int_equal(info->head, 0);
    Sessile__V1__Subsessions *children = children_of(r.session);
    assert_int_equal(children->n_children, 1);
    assert_string_equal(children->children[0]->session->id, "child");
    assert_string_equal(children->children[0]->state, "open");
    assert_int_equal(children->children[0]->entry, 2);
    assert_true(children->children[0]->time_ms > 0);
    assert_null(children->children[0]->merged);
    end.message = json_of_text("{\"role\":\"user\",\"content\":\"found it\"}");
    Sessile__V1__Appended *merged = call_ok("EndChild", &end);
    get.entry = merged->first->id;
    Sessile__V1__EntryText *entry = call_ok("GetEntry", &get);
    assert_non_null(strstr(entry->json->text, "found it"));
    children = children_of(r.session);
    assert_string_equal(children->children[0]->state, "merged");
    assert_int_equal(children->children[0]->merged->id, merged->first->id);
    call_fails("CreateChild", &r, RPC_ALREADY_EXISTS, "EEXISTS");
}

static void test_a_child_with_the_context_is_discarded(void **state)
{
    Sessile__V1__ChildRequest r = SESSILE__V1__CHILD_REQUEST__INIT;
    Sessile__V1__ChildResultRequest end = SESSILE__V1__CHILD_RESULT_REQUEST__INIT;
    (void)state;
    r.session = end.session = session_with("s", 2);
    r.with_context = 1;
    Sessile__V1__SessionInfo *info = call_ok("CreateChild", &r);
    assert_int_equal(info->head, 2);
    end.child = info->session;
    end.reason = "too slow";
    Sessile__V1__Appended *merged = call_ok("EndChild", &end);
    assert_null(merged->first);
    assert_string_equal(children_of(r.session)->children[0]->state, "discarded");
}

static void test_a_child_has_to_be_one_of_the_parent(void **state)
{
    Sessile__V1__ChildResultRequest end = SESSILE__V1__CHILD_RESULT_REQUEST__INIT;
    (void)state;
    end.session = session_with("s", 1);
    call_fails("EndChild", &end, RPC_INVALID_ARGUMENT, "EINVALID");
    end.child = asked("");
    call_fails("EndChild", &end, RPC_INVALID_ARGUMENT, "EINVALID");
    end.child = asked("nobody");
    call_fails("EndChild", &end, RPC_NOT_FOUND, "ENOTFOUND");
    end.child = session_with("other", 1);
    call_fails("EndChild", &end, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_child_is_of_its_parents_user(void **state)
{
    Sessile__V1__CreateRequest make = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__ChildRequest r = SESSILE__V1__CHILD_REQUEST__INIT;
    Sessile__V1__ChildResultRequest end = SESSILE__V1__CHILD_RESULT_REQUEST__INIT;
    (void)state;
    r.session = end.session = make.session = asked("s");
    make.session->user = "ann";
    call_ok("CreateSession", &make);
    r.to = end.child = asked("child");
    Sessile__V1__SessionInfo *info = call_ok("CreateChild", &r);
    assert_string_equal(info->session->user, "ann");
    call_ok("EndChild", &end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(test_a_tree_is_a_stream_of_nodes),
        DIRECT(test_a_large_tree_comes_in_pieces),
        DIRECT(test_a_tree_ends_when_nobody_waits),
        DIRECT(test_a_fork_is_a_session_of_its_own),
        DIRECT(test_a_fork_of_a_user_is_that_users),
        DIRECT(test_a_child_is_made_and_merged),
        DIRECT(test_a_child_with_the_context_is_discarded),
        DIRECT(test_a_child_has_to_be_one_of_the_parent),
        DIRECT(test_a_child_is_of_its_parents_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
