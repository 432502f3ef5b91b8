/*
 * test_methods_disabled.c: an agent that is disabled in the configuration, and one whose
 * memory is off: nothing is added to what they have, and all of it can be read.
 */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define WHY "agent 'coder' is disabled (agents.coder.enabled = false)"
#define OFF "long-term memory is off for agent 'quiet'"

static const service_defaults configured[] = {
    {.agent = "coder", .disabled = 1},
    {.agent = "quiet", .no_memory = 1},
    {.agent = NULL},
};

/* From now on the configuration holds; what was made before is there. */
static void configure(void)
{
    direct.service.settings.defaults = configured;
    direct.service.settings.default_count = sizeof configured / sizeof *configured;
}

static Sessile__V1__Session *of_agent(const char *agent, const char *id)
{
    Sessile__V1__Session *out = asked(id);
    out->agent = (char *)agent;
    return out;
}

static void refused(const char *name, const void *request, const char *why)
{
    call_fails(name, request, RPC_PERMISSION_DENIED, "EDENIED");
    if (!strstr(direct.rpc.got.message, why))
        fail_msg("%s: %s", name, direct.rpc.got.message);
}

static void create(const char *agent, const char *id)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = of_agent(agent, id);
    call_ok("CreateSession", &r);
}

static void append(const char *agent, const char *id)
{
    Sessile__V1__AppendRequest r = SESSILE__V1__APPEND_REQUEST__INIT;
    r.session = of_agent(agent, id);
    r.message = json_of_text("{\"role\":\"user\",\"content\":\"hello\"}");
    call_ok("AppendMessage", &r);
}

static size_t messages_of(const char *agent, const char *id)
{
    Sessile__V1__MessagesRequest r = SESSILE__V1__MESSAGES_REQUEST__INIT;
    r.session = of_agent(agent, id);
    const Sessile__V1__Messages *m = call_ok("GetMessages", &r);
    return m->n_messages;
}

/* ---------------------------------------------------------------------- sessions */

static void a_disabled_agent_gets_no_new_session(void **state)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__ForkRequest fork = SESSILE__V1__FORK_REQUEST__INIT;
    Sessile__V1__ChildRequest child = SESSILE__V1__CHILD_REQUEST__INIT;
    Sessile__V1__TurnRequest turn = SESSILE__V1__TURN_REQUEST__INIT;
    Sessile__V1__Json *said[] = {json_of_text("{\"role\":\"user\",\"content\":\"x\"}")};
    (void)state;
    create("coder", "old");
    append("coder", "old");
    create("main", "m");
    configure();
    r.session = of_agent("coder", "new");
    refused("CreateSession", &r, WHY);
    r.open = 1;
    refused("CreateSession", &r, WHY);
    fork.session = child.session = of_agent("main", "m");
    fork.to = child.to = of_agent("coder", "new");
    refused("Fork", &fork, WHY);
    refused("CreateChild", &child, WHY);
    fork.session = of_agent("coder", "old");
    fork.to = asked("new");
    refused("Fork", &fork, WHY);
    turn.session = of_agent("coder", "new");
    turn.messages = said;
    turn.n_messages = 1;
    turn.create = 1;
    refused("Turn", &turn, WHY);

    r.session = of_agent("coder", "old"); /* what is there is opened */
    call_ok("CreateSession", &r);
    create("main", "other");
    fork.to = of_agent("main", "copy");
    call_ok("Fork", &fork);
}

static void nothing_is_said_in_its_sessions(void **state)
{
    Sessile__V1__AppendRequest append_to = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__TurnRequest turn = SESSILE__V1__TURN_REQUEST__INIT;
    Sessile__V1__ChildResultRequest ends = SESSILE__V1__CHILD_RESULT_REQUEST__INIT;
    Sessile__V1__ChildRequest child = SESSILE__V1__CHILD_REQUEST__INIT;
    Sessile__V1__TitleRequest title = SESSILE__V1__TITLE_REQUEST__INIT;
    Sessile__V1__DeleteRequest gone = SESSILE__V1__DELETE_REQUEST__INIT;
    Sessile__V1__Json *said[] = {json_of_text("{\"role\":\"user\",\"content\":\"x\"}")};
    (void)state;
    create("coder", "old");
    append("coder", "old");
    child.session = of_agent("coder", "old");
    child.to = of_agent("critic", "child");
    call_ok("CreateChild", &child);
    const size_t before = messages_of("coder", "old");
    configure();
    append_to.session = turn.session = ends.session = of_agent("coder", "old");
    append_to.message = said[0];
    turn.messages = said;
    turn.n_messages = 1;
    refused("AppendMessage", &append_to, WHY);
    refused("Turn", &turn, WHY);
    ends.child = of_agent("critic", "child");
    ends.message = said[0];
    refused("EndChild", &ends, WHY);
    assert_int_equal(messages_of("coder", "old"), before);
    title.session = gone.session = of_agent("coder", "old");
    title.title = (char *)"done with";
    call_ok("SetTitle", &title);
    call_ok("DeleteSession", &gone);
}

/* ---------------------------------------------------------------------- memories */

static Sessile__V1__Memory *memory_of(const char *agent, const char *user)
{
    Sessile__V1__Memory *out = memory_named(user);
    out->agent = (char *)agent;
    return out;
}

static void remember(const char *agent)
{
    Sessile__V1__OpenMemoryRequest r = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    Sessile__V1__WriteMemoryRequest write = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT;
    Sessile__V1__MemoryEntry *entries[] = {&entry};
    r.memory = write.memory = memory_of(agent, "ann");
    r.consent = (char *)"she said yes";
    call_ok("OpenMemory", &r);
    entry.value = (char *)"she likes tea";
    write.entries = entries;
    write.n_entries = 1;
    call_ok("WriteMemory", &write);
}

static void nothing_is_remembered(const char *agent, const char *why)
{
    Sessile__V1__OpenMemoryRequest open = SESSILE__V1__OPEN_MEMORY_REQUEST__INIT;
    Sessile__V1__ConsentRequest consent = SESSILE__V1__CONSENT_REQUEST__INIT;
    Sessile__V1__WriteMemoryRequest write = SESSILE__V1__WRITE_MEMORY_REQUEST__INIT;
    Sessile__V1__ChangeMemoryRequest change = SESSILE__V1__CHANGE_MEMORY_REQUEST__INIT;
    Sessile__V1__TidyRequest tidy = SESSILE__V1__TIDY_REQUEST__INIT;
    Sessile__V1__AdmitRequest admit = SESSILE__V1__ADMIT_REQUEST__INIT;
    Sessile__V1__RememberRequest hear = SESSILE__V1__REMEMBER_REQUEST__INIT;
    Sessile__V1__MemoryRequest get = SESSILE__V1__MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryEntry entry = SESSILE__V1__MEMORY_ENTRY__INIT;
    Sessile__V1__MemoryEntry *entries[] = {&entry};
    entry.value = (char *)"and coffee";
    write.entries = change.entries = admit.entries = entries;
    write.n_entries = change.n_entries = admit.n_entries = 1;
    open.memory = consent.memory = memory_of(agent, "bob");
    refused("OpenMemory", &open, why); /* it would be made */
    open.consent = (char *)"yes";
    consent.given = 1;
    refused("OpenMemory", &open, why);
    refused("SetConsent", &consent, why);
    write.memory = change.memory = tidy.memory = admit.memory = get.memory = open.memory =
        memory_of(agent, "ann");
    refused("WriteMemory", &write, why);
    refused("ChangeMemory", &change, why);
    refused("Tidy", &tidy, why);
    refused("Admit", &admit, why);
    hear.session = of_agent(agent, "s");
    refused("Remember", &hear, why);
    open.consent = (char *)"";
    call_ok("OpenMemory", &open);
    const Sessile__V1__MemoryInfo *info = call_ok("GetMemory", &get);
    assert_int_equal(info->live, 1);
}

static void nothing_is_written_to_its_memories(void **state)
{
    Sessile__V1__AppendRequest r = SESSILE__V1__APPEND_REQUEST__INIT;
    (void)state;
    remember("coder");
    remember("quiet");
    create("coder", "s");
    create("quiet", "s");
    configure();
    nothing_is_remembered("coder", WHY);
    nothing_is_remembered("quiet", OFF);
    r.session = of_agent("quiet", "s");
    r.message = json_of_text("{\"role\":\"user\",\"content\":\"hello\"}");
    call_ok("AppendMessage", &r); /* it is not disabled */
    remember("main");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(a_disabled_agent_gets_no_new_session),
        DIRECT(nothing_is_said_in_its_sessions),
        DIRECT(nothing_is_written_to_its_memories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
