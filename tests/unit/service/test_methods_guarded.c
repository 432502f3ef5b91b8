/* test_methods_guarded.c: methods under a guard: each caller has their own sessions. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sessile_guard.h"

/* Callers are known by a certificate, and have this role. */
static char role[16];

static int guarded_open(void **state)
{
    sessile_guard_options options;
    int failed = direct_open(state);
    sessile_guard_options_init(&options);
    options.limits.on = 0;
    options.audit.on = 0;
    strcpy(role, "editor");
    direct.service.settings.guarded = 1;
    direct.service.settings.certificate_role = role;
    return failed || sessile_store_guard(direct.store, &options, NULL);
}
#define GUARDED(test) cmocka_unit_test_setup_teardown(test, guarded_open, direct_close)

static void call_as(const char *user)
{
    direct.rpc.asked.certificate = user;
}

static Sessile__V1__Session *made_by(const char *user, const char *id)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__AppendRequest append = SESSILE__V1__APPEND_REQUEST__INIT;
    r.session = append.session = asked(id);
    r.title = (char *)id;
    call_as(user);
    const Sessile__V1__SessionInfo *info = call_ok("CreateSession", &r);
    assert_string_equal(info->session->user, user);
    append.message = json_of_text("{\"role\":\"user\",\"content\":\"a word\"}");
    call_ok("AppendMessage", &append);
    return r.session;
}

static void test_a_list_has_ones_own_sessions(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    (void)state;
    made_by("ann", "a1");
    made_by("bob", "b1");
    made_by("ann", "a2");
    r.limit = 1;
    r.sort = (char *)"title";
    const Sessile__V1__ListResponse *page = call_ok("ListSessions", &r);
    assert_string_equal(page->sessions[0]->session->id, "a1");
    r.page_token = page->next_page_token;
    /* A token permits nothing: with it, another sees their own. */
    call_as("bob");
    r.limit = 10;
    page = call_ok("ListSessions", &r);
    for (size_t i = 0; i < page->n_sessions; i++)
        assert_string_equal(page->sessions[i]->session->user, "bob");
    call_as("ann");
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 1);
    assert_string_equal(page->sessions[0]->session->id, "a2");
    r.page_token = "";
    r.any_user = 1;
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 2);
    /* Who may see all sees their own, unless they ask for those of others. */
    strcpy(role, "admin");
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 3);
    r.any_user = 0;
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 2);
    r.session = asked("");
    r.session->user = "bob";
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 1);
    assert_string_equal(page->sessions[0]->session->id, "b1");
}

static void test_a_search_is_through_ones_own_sessions(void **state)
{
    Sessile__V1__SearchRequest r = SESSILE__V1__SEARCH_REQUEST__INIT;
    (void)state;
    made_by("ann", "a1");
    made_by("bob", "b1");
    r.text = "word";
    for (int any = 0; any < 2; any++) {
        r.any_user = any;
        const Sessile__V1__Found *found = call_ok("Search", &r);
        assert_string_equal(found->session->user, "bob");
        assert_int_equal(direct.rpc.got.count, 1);
    }
}

static void test_what_is_anothers_is_denied(void **state)
{
    Sessile__V1__ForkRequest fork = SESSILE__V1__FORK_REQUEST__INIT;
    Sessile__V1__TreeRequest tree = SESSILE__V1__TREE_REQUEST__INIT;
    Sessile__V1__TitleRequest title = SESSILE__V1__TITLE_REQUEST__INIT;
    (void)state;
    fork.session = tree.session = title.session = made_by("ann", "a1");
    fork.session->user = "ann";
    call_as("bob");
    call_fails("Fork", &fork, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("GetTree", &tree, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("SetTitle", &title, RPC_PERMISSION_DENIED, "EDENIED");
    call_as(NULL);
    call_fails("GetTree", &tree, RPC_UNAUTHENTICATED, "EDENIED");
}

static void test_forks_and_children_are_the_callers_to_make(void **state)
{
    Sessile__V1__ForkRequest fork = SESSILE__V1__FORK_REQUEST__INIT;
    Sessile__V1__ChildRequest child = SESSILE__V1__CHILD_REQUEST__INIT;
    Sessile__V1__ChildResultRequest end = SESSILE__V1__CHILD_RESULT_REQUEST__INIT;
    (void)state;
    fork.session = child.session = end.session = made_by("ann", "a1");
    const Sessile__V1__SessionInfo *info = call_ok("Fork", &fork);
    assert_string_equal(info->session->user, "ann");
    info = call_ok("CreateChild", &child);
    assert_string_equal(info->session->user, "ann");
    end.child = info->session;
    call_ok("EndChild", &end);
    /* For another user: not theirs to make. */
    fork.to = child.to = asked("x");
    fork.to->user = "bob";
    call_fails("Fork", &fork, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("CreateChild", &child, RPC_PERMISSION_DENIED, "EDENIED");
    /* Who may only read makes nothing. */
    strcpy(role, "viewer");
    fork.to = child.to = NULL;
    call_fails("Fork", &fork, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("CreateChild", &child, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("EndChild", &end, RPC_PERMISSION_DENIED, "EDENIED");
}

static void test_who_may_only_read_writes_no_fact(void **state)
{
    Sessile__V1__LabelRequest label = SESSILE__V1__LABEL_REQUEST__INIT;
    Sessile__V1__CheckpointRequest checkpoint = SESSILE__V1__CHECKPOINT_REQUEST__INIT;
    Sessile__V1__LifeRequest life = SESSILE__V1__LIFE_REQUEST__INIT;
    Sessile__V1__ObjectRequest object = SESSILE__V1__OBJECT_REQUEST__INIT;
    (void)state;
    label.session = checkpoint.session = life.session = object.session =
        made_by("ann", "a1");
    strcpy(role, "viewer");
    label.entry = 1;
    label.name = "x";
    life.change_case = SESSILE__V1__LIFE_REQUEST__CHANGE_ARCHIVED;
    call_ok("SetSettings", &object); /* without an object it is a read */
    object.object = json_of_text("{\"a\":1}");
    call_fails("SetLabel", &label, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("CreateCheckpoint", &checkpoint, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("SetLife", &life, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("SetSettings", &object, RPC_PERMISSION_DENIED, "EDENIED");
}

/* ---------------------------------------------------------------------- memories */

static sessile_status wrote(Sessile__V1__Memory *memory)
{
    Sessile__V1__WriteMemoryRequest r = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT,
                             *entries[] = {&entry};
    unsigned char bytes[100];
    r.memory = memory;
    r.entries = entries;
    r.n_entries = 1;
    entry.value = "tea";
    call_bytes("WriteMemory", bytes, sessile__v1__write_memory_request__pack(&r, bytes));
    return direct.rpc.got.code == RPC_OK ? SESSILE_OK : SESSILE_DENIED;
}

static void test_a_memory_is_its_users(void **state)
{
    Sessile__V1__OpenMemoryRequest open = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryRequest get = SESSILE__V1__MEMORY_REQUEST__INIT;
    Sessile__V1__Memory own = SESSILE__V1__MEMORY__INIT, all = own;
    (void)state;
    all.shared = 1;
    open.memory = &own; /* the caller's */
    open.consent = "I agree";
    call_as("ann");
    const Sessile__V1__MemoryInfo *info = call_ok("OpenMemory", &open);
    assert_string_equal(info->memory->user, "ann");
    assert_int_equal(wrote(&own), SESSILE_OK);
    get.memory = memory_named("ann");
    call_as("bob");
    call_fails("GetMemory", &get, RPC_PERMISSION_DENIED, "EDENIED");
    assert_int_equal(wrote(get.memory), SESSILE_DENIED);
    get.memory = &own; /* bob's: it is not there */
    call_fails("GetMemory", &get, RPC_NOT_FOUND, "ENOTFOUND");
    call_as(NULL);
    call_fails("GetMemory", &get, RPC_UNAUTHENTICATED, "EDENIED");
    /* what the agent keeps for all: everybody reads it, who has all users writes it */
    call_as("bob");
    assert_int_equal(wrote(&all), SESSILE_DENIED);
    strcpy(role, "admin");
    assert_int_equal(wrote(&all), SESSILE_OK);
    strcpy(role, "viewer");
    get.memory = &all;
    info = call_ok("GetMemory", &get);
    assert_true(info->memory->shared);
    assert_int_equal(info->live, 1);
    assert_int_equal(wrote(&all), SESSILE_DENIED);
}

static void test_a_recall_has_the_memory_of_the_sessions_user(void **state)
{
    Sessile__V1__OpenMemoryRequest open = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    Sessile__V1__RecallRequest r = SESSILE__V1__RECALL_REQUEST__INIT;
    Sessile__V1__Memory own = SESSILE__V1__MEMORY__INIT;
    (void)state;
    r.session = made_by("ann", "a1");
    r.question = "tea";
    open.memory = &own;
    open.consent = "I agree";
    call_ok("OpenMemory", &open);
    wrote(&own);
    const Sessile__V1__MemoryOutcome *outcome = call_ok("Recall", &r);
    assert_int_equal(outcome->recall->recalled, 1);
    r.session->user = "ann";
    call_as("bob");
    call_fails("Recall", &r, RPC_PERMISSION_DENIED, "EDENIED");
    call_fails("FindRecall", &r, RPC_PERMISSION_DENIED, "EDENIED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GUARDED(test_a_list_has_ones_own_sessions),
        GUARDED(test_a_search_is_through_ones_own_sessions),
        GUARDED(test_what_is_anothers_is_denied),
        GUARDED(test_forks_and_children_are_the_callers_to_make),
        GUARDED(test_who_may_only_read_writes_no_fact),
        GUARDED(test_a_memory_is_its_users),
        GUARDED(test_a_recall_has_the_memory_of_the_sessions_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
