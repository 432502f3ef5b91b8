/*
 * test_write.c: the rules of a store are met by each of its writes.
 *
 * Each row of operations.def that names texts has a case here for each of them; a row
 * without one fails. Each case writes a canary that the rules refuse: the answer or the
 * outcome says so, and no byte of it is in the store. test_write_flags has what is
 * flagged and redacted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/enter.h"
#include "support/check.h"
#include "support/screened.h"

#include <cmocka.h>

#define ERR (&w->err)

/* ------------------------------------------------------------------ the writes */

static sessile_session_options described(const char *id)
{
    sessile_session_options o = screened_titled(id);
    o.title = sessile_text(NULL);
    o.metadata = sessile_text(OBJECT);
    return o;
}

/* A session that was made although its title is refused is closed. */
#define GIVES_SESSION(name, o_, call)         \
    static sessile_status name(screened *w)   \
    {                                         \
        sessile_session_options o = o_;       \
        sessile_session *out = NULL;          \
        sessile_status status = call;         \
        if (out)                              \
            sessile_session_close(out, NULL); \
        return status;                        \
    }
GIVES_SESSION(create_title, screened_titled("t"), sessile_create(&out, w->store, &o, ERR))
GIVES_SESSION(create_metadata, described("t"), sessile_create(&out, w->store, &o, ERR))
GIVES_SESSION(open_title, screened_titled("t"),
              sessile_session_open(&out, w->store, &o, ERR))
GIVES_SESSION(open_metadata, described("t"),
              sessile_session_open(&out, w->store, &o, ERR))
GIVES_SESSION(fork_title, screened_titled("t"), sessile_fork(&out, w->s, 1, &o, ERR))
GIVES_SESSION(fork_metadata, described("t"), sessile_fork(&out, w->s, 1, &o, ERR))
GIVES_SESSION(child_title, screened_titled("t"), sessile_child(&out, w->s, 0, &o, ERR))
GIVES_SESSION(child_metadata, described("t"), sessile_child(&out, w->s, 1, &o, ERR))

/* In a store of its own, with the same rules. */
static sessile_status records_open(screened *w, sessile_screen_kind kind,
                                   sessile_session_options o)
{
    sessile_guard_options rules;
    sessile_session *out = NULL;
    sessile_store *records;

    must(sessile_open_records(&records, NULL, ERR), ERR);
    sessile_guard_options_init(&rules);
    rules.screens = screened_list(kind, SESSILE_SCREEN_REFUSE);
    must(sessile_store_guard(records, &rules, ERR), ERR);
    sessile_screens_free(rules.screens);
    sessile_status status = sessile_records_open(&out, records, &o, NULL, 0, ERR);
    assert_null(out);
    sessile_store_close(records);
    return status;
}

static sessile_status records_title(screened *w)
{
    return records_open(w, SESSILE_SCREEN_TITLE, screened_titled("t"));
}

static sessile_status records_metadata(screened *w)
{
    return records_open(w, SESSILE_SCREEN_METADATA, described("t"));
}

static sessile_status child_merged(screened *w)
{
    sessile_session_options o = named("child");
    sessile_session *child;
    o.user = sessile_text("ann");
    must(sessile_child(&child, w->s, 0, &o, ERR), ERR);
    sessile_status status =
        sessile_child_merged(w->s, child, sessile_text(MESSAGE), NULL, ERR);
    sessile_session_close(child, NULL);
    return status;
}

#define WRITES(name, call)                  \
    static sessile_status name(screened *w) \
    {                                       \
        return call;                        \
    }
WRITES(set_title, sessile_set_title(w->s, sessile_text("a " CANARY), ERR))
WRITES(append, sessile_append(w->s, sessile_text(MESSAGE), NULL, ERR))
WRITES(append_custom,
       sessile_append_custom(w->s, sessile_text(OBJECT), "tool", NULL, ERR))
WRITES(write_message,
       sessile_write(w->s, &(sessile_write_entry){sessile_text(MESSAGE), 0, NULL}, 1,
                     SESSILE_NO_ID, NULL, ERR))
WRITES(write_custom,
       sessile_write(w->s, &(sessile_write_entry){sessile_text(OBJECT), 1, "tool"}, 1,
                     SESSILE_NO_ID, NULL, ERR))
WRITES(set_settings, sessile_set_settings(w->s, sessile_text(OBJECT), ERR))
WRITES(set_metadata, sessile_set_metadata(w->s, sessile_text(OBJECT), ERR))
WRITES(label, sessile_label(w->s, 1, sessile_text("a " CANARY), ERR))
WRITES(checkpoint_state,
       sessile_checkpoint(w->s,
                          &(sessile_checkpoint_options){.state = sessile_text(OBJECT)},
                          NULL, ERR))
WRITES(checkpoint_metadata,
       sessile_checkpoint(w->s,
                          &(sessile_checkpoint_options){.metadata = sessile_text(OBJECT)},
                          NULL, ERR))

WRITES(checkpoint_name, sessile_checkpoint(w->s,
                                           &(sessile_checkpoint_options){
                                               .name = sessile_text("a " CANARY)},
                                           NULL, ERR))
WRITES(checkpoint_event, sessile_checkpoint(w->s,
                                            &(sessile_checkpoint_options){
                                                .reason = SESSILE_CHECKPOINT_EVENT,
                                                .event = sessile_text("a " CANARY)},
                                            NULL, ERR))

/* What an agent says about itself is kept with its checkpoints. */
static sessile_status checkpoint_of(screened *w, sessile_agent_info info)
{
    sessile_session_options o = named("s");
    sessile_session *s;
    o.user = sessile_text("ann");
    o.agent_info = info;
    must(sessile_resume(&s, w->store, &o, ERR), ERR);
    sessile_status status = sessile_checkpoint(s, NULL, NULL, ERR);
    sessile_session_close(s, NULL);
    return status;
}
#define AGENT(name, member, text) \
    WRITES(name, checkpoint_of(w, (sessile_agent_info){.member = sessile_text(text)}))
AGENT(checkpoint_version, version, "a " CANARY)
AGENT(checkpoint_config, config, "a " CANARY)
AGENT(checkpoint_tools, tools, "[\"a \\u0078CANARYx\"]")

/* Soft, hard, and back. */
static sessile_status delete_with(screened *w, sessile_delete_options how)
{
    sessile_session_options o = named("s");
    o.user = sessile_text("ann");
    return sessile_delete(w->store, &o, &how, NULL, ERR);
}
WRITES(delete_reason,
       delete_with(w, (sessile_delete_options){1, sessile_text("a " CANARY),
                                               sessile_text(NULL)}))
WRITES(delete_actor, delete_with(w, (sessile_delete_options){1, sessile_text(NULL),
                                                             sessile_text("a " CANARY)}))
WRITES(delete_hard, delete_with(w, (sessile_delete_options){0, sessile_text("a " CANARY),
                                                            sessile_text(NULL)}))

static sessile_status undelete_actor(screened *w)
{
    sessile_session_options o = named("s");
    o.user = sessile_text("ann");
    must(delete_with(w, (sessile_delete_options){.soft = 1}), ERR);
    return sessile_undelete(w->store, &o, sessile_text("a " CANARY), ERR);
}

static sessile_status cancel_with(screened *w)
{
    must(sessile_suspend(w->s, sessile_text("x"), sessile_text(NULL), NULL, ERR), ERR);
    return sessile_cancel(w->s, sessile_text("a " CANARY), ERR);
}

static sessile_status child_discarded(screened *w)
{
    sessile_session_options o = named("child");
    sessile_session *child;
    o.user = sessile_text("ann");
    must(sessile_child(&child, w->s, 0, &o, ERR), ERR);
    sessile_status status =
        sessile_child_discarded(w->s, child, sessile_text("a " CANARY), ERR);
    sessile_session_close(child, NULL);
    return status;
}

static sessile_status suspend_with(screened *w)
{
    sessile_status status =
        sessile_suspend(w->s, sessile_text("a " CANARY), sessile_text(NULL), NULL, ERR);
    assert_int_equal(status, SESSILE_DENIED);
    return sessile_suspend(w->s, sessile_text("x"), sessile_text(OBJECT), NULL, ERR);
}

static sessile_status resume_with(screened *w)
{
    sessile_slice list[] = {sessile_text(HELLO), sessile_text(MESSAGE)};
    must(sessile_suspend(w->s, sessile_text("x"), sessile_text(NULL), NULL, ERR), ERR);
    return sessile_resume_with(w->s, list, 2, NULL, ERR);
}

static sessile_status turn_message(screened *w)
{
    sessile_slice list[] = {sessile_text(HELLO), sessile_text(MESSAGE)};
    sessile_run *run;
    sessile_status status = sessile_turn_begin(&run, w->s, list, 2, NULL, ERR);
    sessile_run_free(run);
    return status;
}

/* What a step says, or the run's outcome. */
static sessile_status run_through(screened *w, sessile_run *run, const char *answer)
{
    sessile_outcome outcome = {0};
    sessile_need need;
    sessile_status status = sessile_run_step(run, &need, ERR);

    if (status == SESSILE_NEEDS) {
        sessile_answer a = {.text = sessile_text(answer)};
        must(sessile_run_reply(run, &a, ERR), ERR);
        status = sessile_run_step(run, &need, ERR);
    }
    if (!status)
        status = sessile_run_outcome(run, &outcome, ERR);
    snprintf(w->said, sizeof w->said, "%s|%s", outcome.message ? outcome.message : "",
             outcome.checkpoint_failed ? outcome.checkpoint_failed : "");
    w->text = w->said;
    sessile_run_free(run);
    return status;
}

/* A checkpoint is due at each turn; the turn stands. */
static sessile_status turn_state(screened *w)
{
    sessile_triggers every = {.messages = 1};
    sessile_run_options o;
    sessile_slice hello = sessile_text(HELLO);
    uint64_t before, after;
    sessile_run *run;

    sessile_run_options_init(&o);
    o.state = sessile_text(OBJECT);
    o.config.checkpoint.triggers = &every;
    must(sessile_event_count(w->s, &before, ERR), ERR);
    must(sessile_turn_begin(&run, w->s, &hello, 1, &o, ERR), ERR);
    sessile_status status = run_through(w, run, OBJECT);
    must(sessile_event_count(w->s, &after, ERR), ERR);
    assert_int_equal(after, before + 1);
    return status;
}

/* A turn with one of its texts, whose message is fine. */
static sessile_status turn_with(screened *w, const sessile_run_options *o)
{
    sessile_slice hello = sessile_text(HELLO);
    sessile_run *run;
    sessile_status status = sessile_turn_begin(&run, w->s, &hello, 1, o, ERR);
    sessile_run_free(run);
    return status;
}
#define TURN(name, member, text)                   \
    static sessile_status turn_##name(screened *w) \
    {                                              \
        sessile_run_options o;                     \
        sessile_run_options_init(&o);              \
        o.member = sessile_text(text);             \
        return turn_with(w, &o);                   \
    }
TURN(event, event, "a " CANARY)
TURN(model, model, "a " CANARY)
TURN(metadata, metadata, OBJECT)
TURN(usage, usage, "{\"input_tokens\":1,\"x\":\"a \\u0078CANARYx\"}")

/* What a person typed for it. begin: of a compaction, a plan, a branch. */
static sessile_status instructed(screened *w,
                                 sessile_status (*begin)(sessile_run **out, screened *w,
                                                         const sessile_run_options *o))
{
    sessile_policy_step step = {.name = "of the host", .hooks = SESSILE_HOOK_COMPACT};
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.instructions = sessile_text("a " CANARY);
    must(sessile_policy_load(&o.config.policy, w->store, &step, 1, ERR), ERR);
    sessile_status status = begin(&run, w, &o);
    sessile_run_free(run);
    sessile_policy_free(o.config.policy);
    return status;
}

static sessile_status compacts(sessile_run **out, screened *w,
                               const sessile_run_options *o)
{
    return sessile_compact_begin(out, w->s, o, ERR);
}

static sessile_status plans(sessile_run **out, screened *w, const sessile_run_options *o)
{
    return sessile_plan_begin(out, w->s, o, ERR);
}

static sessile_status branches(sessile_run **out, screened *w,
                               const sessile_run_options *o)
{
    return sessile_branch_begin(out, w->s, 0, o, ERR);
}
WRITES(compact_instructions, instructed(w, compacts))
WRITES(plan_instructions, instructed(w, plans))
WRITES(branch_instructions, instructed(w, branches))

static sessile_status branch(screened *w)
{
    return sessile_branch(w->s, 0, sessile_text("a " CANARY), NULL, ERR);
}

static sessile_status branch_begin(screened *w)
{
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.summary = sessile_text("a " CANARY);
    sessile_status status = sessile_branch_begin(&run, w->s, 0, &o, ERR);
    sessile_run_free(run);
    return status;
}

static sessile_policy *host_policy(screened *w, unsigned hooks)
{
    sessile_policy_step step = {.name = "of the host", .hooks = hooks};
    sessile_policy *policy;
    must(sessile_policy_load(&policy, w->store, &step, 1, ERR), ERR);
    return policy;
}

/* The policy is told that its answer was refused, and so is the host. */
static sessile_status run_reply(screened *w)
{
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.config.policy = host_policy(w, SESSILE_HOOK_COMPACT);
    sessile_status status = sessile_compact_begin(&run, w->s, &o, ERR);
    sessile_policy_free(o.config.policy);
    return status ? status : run_through(w, run, "a " CANARY);
}

static sessile_status answer_begin(screened *w)
{
    sessile_answer answer = {.text = sessile_text("a " CANARY)};
    sessile_run *run;
    return sessile_answer_begin(&run, w->s, SESSILE_NO_ID, &answer, NULL, ERR);
}

/* ------------------------------------------------------------------ memories */

static sessile_status memory_open(screened *w)
{
    sessile_memory_options o;
    sessile_memory *out;
    sessile_memory_options_init(&o);
    o.user = sessile_text("bob");
    o.consent = sessile_text("a " CANARY);
    sessile_status status = sessile_memory_open(&out, w->store, &o, ERR);
    sessile_memory_close(out);
    return status;
}

static sessile_status memory_write(screened *w)
{
    sessile_memory_write_entry e[] = {
        screened_entry("k", "a " CANARY), screened_entry("a " CANARY, "v"),
        screened_entry("k", "v"), screened_entry("k", "v"), screened_entry("k", "v")};
    e[2].also = sessile_text("a " CANARY);
    e[3].metadata = sessile_text(OBJECT);
    e[4].author = sessile_text("a " CANARY);
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(sessile_memory_write(w->m, &e[i], 1, NULL, ERR), SESSILE_DENIED);
    return sessile_memory_write(w->m, (sessile_memory_write_entry[]){e[2], e[0]}, 2, NULL,
                                ERR);
}

static sessile_status memory_apply(screened *w)
{
    sessile_memory_write_entry e = screened_entry(NULL, "v");
    sessile_id id = 1;
    sessile_memory_change change = {.ends = &id, .end_count = 1};
    change.reason = sessile_text("a " CANARY);
    assert_int_equal(sessile_memory_apply(w->m, &change, NULL, ERR), SESSILE_DENIED);
    e.value = sessile_text("a " CANARY);
    return sessile_memory_apply(w->m, &(sessile_memory_change){.entries = &e, .count = 1},
                                NULL, ERR);
}

static sessile_status memory_verdict(screened *w)
{
    sessile_memory_write_entry e = screened_entry(NULL, "v");
    sessile_id id;
    must(sessile_memory_write(w->m, &e, 1, &id, ERR), ERR);
    return sessile_memory_verdict(w->m, &id, 1, SESSILE_MEMORY_PIN,
                                  sessile_text("a " CANARY), sessile_text(NULL), NULL,
                                  ERR);
}
WRITES(memory_consent,
       sessile_memory_consent(w->m, 1, sessile_text("ann"), sessile_text("a " CANARY),
                              sessile_text(NULL), ERR))

/* An entry that may not become a message is not recalled, and the others are. */
static sessile_status recall_both(screened *w, int begin)
{
    sessile_memory_write_entry e[] = {screened_entry(NULL, "good"),
                                      screened_entry(NULL, "a " CANARY)};
    sessile_recall_item items[2] = {{0, 0}, {0, 0}};
    sessile_recall_options o;
    sessile_memory_outcome outcome;
    sessile_memory_run *run;
    sessile_need need;
    sessile_id ids[2];

    must(sessile_memory_write(w->m, e, 2, ids, ERR), ERR);
    sessile_recall_options_init(&o);
    for (size_t i = 0; i < 2; i++)
        items[i].id = ids[i];
    o.has_items = 1;
    o.items = items;
    o.item_count = 2;
    if (!begin) {
        must(sessile_recall(w->s, &w->m, 1, &o, &outcome.recall, ERR), ERR);
    } else {
        sessile_memory_run_options ro;
        sessile_memory_run_options_init(&ro);
        must(sessile_recall_begin(&run, w->s, &w->m, 1, &o, &ro, ERR), ERR);
        must(sessile_memory_run_step(run, &need, ERR), ERR);
        must(sessile_memory_run_outcome(run, &outcome, ERR), ERR);
        sessile_memory_run_free(run);
    }
    assert_int_equal(outcome.recall.recalled, 1);
    return outcome.recall.not_allowed == 1 ? SESSILE_DENIED : SESSILE_OK;
}

static sessile_status recall(screened *w)
{
    return recall_both(w, 0);
}

static sessile_status recall_begin(screened *w)
{
    return recall_both(w, 1);
}

/* Steps a run whose hook answers that. */
static sessile_status memory_run_through(screened *w, sessile_memory_run *run,
                                         const char *answer)
{
    sessile_memory_outcome outcome = {0};
    sessile_need need;
    sessile_status status = sessile_memory_run_step(run, &need, ERR);

    while (status == SESSILE_NEEDS) {
        sessile_answer a = {.text = sessile_text(answer)};
        must(sessile_memory_run_reply(run, &a, ERR), ERR);
        status = sessile_memory_run_step(run, &need, ERR);
    }
    if (!status)
        status = sessile_memory_run_outcome(run, &outcome, ERR);
    snprintf(w->said, sizeof w->said, "%s|%.*s", outcome.message ? outcome.message : "",
             (int)outcome.changes.size, outcome.changes.size ? outcome.changes.data : "");
    w->text = w->said;
    sessile_memory_run_free(run);
    return status;
}

#define ASKS(value)                                                                  \
    "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":\"" value            \
    "\",\"from\":[\"00000001\"]}]},{\"memory\":\"write\",\"arguments\":[{\"value\":" \
    "\"fine\""                                                                       \
    ",\"from\":[\"00000001\"]}]}]}"

static sessile_status remember_with(screened *w, const char *answer)
{
    sessile_memory_run_options o;
    sessile_memory_run *run;
    sessile_memory_run_options_init(&o);
    o.policy = host_policy(w, SESSILE_HOOK_REMEMBER);
    sessile_status status = sessile_remember_begin(&run, w->s, &w->m, 1, &o, ERR);
    sessile_policy_free(o.policy);
    return status ? status : memory_run_through(w, run, answer);
}

/* What is refused is left out and recorded, the rest is written, and the session was
 * heard: else the same words would be refused each time. */
static sessile_status remember_begin(screened *w)
{
    sessile_memory_row *rows;
    char *text;
    size_t count, size, refusals = 0;
    sessile_status status = remember_with(w, ASKS("a " CANARY));

    must(sessile_memory_list(w->m, NULL, &rows, &count, ERR), ERR);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].value.data, "fine");
    sessile_free(rows);
    for (sessile_id id = 1; !sessile_memory_entry(w->m, id, &text, &size, ERR); id++) {
        refusals += strstr(text, "\"rule\":\"word\"") && strstr(text, "\"refusal\"");
        sessile_free(text);
    }
    assert_int_equal(refusals, 1);
    return status;
}

static sessile_status tidy_begin(screened *w)
{
    sessile_memory_write_entry e = screened_entry("k", "v");
    sessile_memory_run_options o;
    sessile_memory_run *run;
    must(sessile_memory_write(w->m, &e, 1, NULL, ERR), ERR);
    sessile_memory_run_options_init(&o);
    o.policy = host_policy(w, SESSILE_HOOK_TIDY);
    sessile_status status = sessile_tidy_begin(&run, w->m, &o, ERR);
    sessile_policy_free(o.policy);
    return status ? status
                  : memory_run_through(
                        w, run,
                        "{\"asks\":[{\"memory\":\"write\",\"arguments\":[{\"value\":"
                        "\"a " CANARY "\",\"of\":[\"00000002\"]}]}]}");
}

static sessile_status admit_begin(screened *w)
{
    sessile_memory_write_entry e = screened_entry("k", "a " CANARY);
    sessile_memory_run_options o;
    sessile_memory_run *run;
    sessile_memory_run_options_init(&o);
    must(sessile_admit_begin(&run, w->m, &e, 1, &o, ERR), ERR);
    return memory_run_through(w, run, "{}");
}

static sessile_status memory_run_reply(screened *w)
{
    return remember_with(w, ASKS("a " CANARY));
}

/* ------------------------------------------------------------------ all of them */

/* text: what is written is refused while the call is OK, and the outcome says it.
 * stored: the canary was there before. */
typedef struct writes {
    const char *name;
    unsigned kind;
    sessile_status (*write)(screened *w);
    int in_outcome, stored;
} writes;

static const writes all[] = {
    {"create", K(TITLE), create_title, 0, 0},
    {"create", K(METADATA), create_metadata, 0, 0},
    {"session_open", K(TITLE), open_title, 0, 0},
    {"session_open", K(METADATA), open_metadata, 0, 0},
    {"records_open", K(TITLE), records_title, 0, 0},
    {"records_open", K(METADATA), records_metadata, 0, 0},
    {"fork", K(TITLE), fork_title, 0, 0},
    {"fork", K(METADATA), fork_metadata, 0, 0},
    {"child", K(TITLE), child_title, 0, 0},
    {"child", K(METADATA), child_metadata, 0, 0},
    {"child_merged", K(MESSAGE), child_merged, 0, 0},
    {"set_title", K(TITLE), set_title, 0, 0},
    {"append", K(MESSAGE), append, 0, 0},
    {"append_custom", K(CUSTOM), append_custom, 0, 0},
    {"write", K(MESSAGE), write_message, 0, 0},
    {"write", K(CUSTOM), write_custom, 0, 0},
    {"set_settings", K(SETTINGS), set_settings, 0, 0},
    {"set_metadata", K(METADATA), set_metadata, 0, 0},
    {"checkpoint", K(STATE), checkpoint_state, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_metadata, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_name, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_event, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_version, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_config, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_tools, 0, 0},
    {"label", K(METADATA), label, 0, 0},
    {"delete", K(METADATA), delete_reason, 0, 0},
    {"delete", K(METADATA), delete_actor, 0, 0},
    {"delete", K(METADATA), delete_hard, 0, 0},
    {"undelete", K(METADATA), undelete_actor, 0, 0},
    {"cancel", K(STATE), cancel_with, 0, 0},
    {"child_discarded", K(STATE), child_discarded, 0, 0},
    {"turn_begin", K(METADATA), turn_event, 0, 0},
    {"turn_begin", K(METADATA), turn_model, 0, 0},
    {"turn_begin", K(METADATA), turn_metadata, 0, 0},
    {"turn_begin", K(METADATA), turn_usage, 0, 0},
    {"compact_begin", K(MESSAGE), compact_instructions, 0, 0},
    {"plan_begin", K(MESSAGE), plan_instructions, 0, 0},
    {"branch_begin", K(MESSAGE), branch_instructions, 0, 0},
    {"suspend", K(STATE), suspend_with, 0, 0},
    {"resume_with", K(MESSAGE), resume_with, 0, 0},
    {"turn_begin", K(MESSAGE), turn_message, 0, 0},
    {"turn_begin", K(STATE), turn_state, 1, 0},
    {"branch_begin", K(MESSAGE), branch_begin, 0, 0},
    {"branch", K(MESSAGE), branch, 0, 0},
    {"run_reply", K(ANSWER), run_reply, 1, 0},
    {"answer_begin", K(ANSWER), answer_begin, 0, 0},
    {"memory_open", K(MEMORY), memory_open, 0, 0},
    {"memory_write", K(MEMORY), memory_write, 0, 0},
    {"memory_apply", K(MEMORY), memory_apply, 0, 0},
    {"memory_verdict", K(MEMORY), memory_verdict, 0, 0},
    {"memory_consent", K(MEMORY), memory_consent, 0, 0},
    {"recall", K(MESSAGE), recall, 0, 1},
    {"recall_begin", K(MESSAGE), recall_begin, 0, 1},
    {"remember_begin", K(MEMORY), remember_begin, 1, 0},
    {"tidy_begin", K(MEMORY), tidy_begin, 1, 0},
    {"admit_begin", K(MEMORY), admit_begin, 0, 0},
    {"memory_run_reply", K(ANSWER), memory_run_reply, 1, 0},
};
#define ALL (sizeof all / sizeof *all)

#define SCREEN_MESSAGE                                                   SESSILE_SCREEN_MESSAGE
#define SCREEN_CUSTOM                                                    SESSILE_SCREEN_CUSTOM
#define SCREEN_TITLE                                                     SESSILE_SCREEN_TITLE
#define SCREEN_METADATA                                                  SESSILE_SCREEN_METADATA
#define SCREEN_SETTINGS                                                  SESSILE_SCREEN_SETTINGS
#define SCREEN_STATE                                                     SESSILE_SCREEN_STATE
#define SCREEN_MEMORY                                                    SESSILE_SCREEN_MEMORY
#define SCREEN_ANSWER                                                    SESSILE_SCREEN_ANSWER
#define NONE                                                             0
#define OPERATION(name, permission, also, limit, event, screens, object) {#name, screens},
static const struct {
    const char *name;
    unsigned kinds;
} rows[] = {
#include "guard/operations.def"
};
#undef OPERATION
#undef NONE

static void each_row_that_names_texts_has_a_case(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        unsigned left = rows[r].kinds;
        for (size_t i = 0; i < ALL; i++)
            if (strcmp(all[i].name, rows[r].name) == 0)
                left &= ~all[i].kind;
        if (left)
            fail_msg("sessile_%s() writes texts of the kinds %u, and no case does",
                     rows[r].name, left);
    }
}

static void each_write_is_refused_and_nothing_of_it_is_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        const writes *one = &all[i];
        screened w;
        screened_open(&w, one->kind, SESSILE_SCREEN_REFUSE);
        sessile_status status = one->write(&w);
        if (status != (one->in_outcome ? SESSILE_OK : SESSILE_DENIED) ||
            (one->in_outcome && !strstr(w.text, "canary")))
            fail_msg("%s: %s %s, %s", one->name, sessile_status_name(status),
                     w.err.message, w.text ? w.text : "");
        if (!one->in_outcome && !one->stored && strcmp(w.err.rule, "word") != 0)
            fail_msg("%s: the rule is \"%s\"", one->name, w.err.rule);
        if (w.err.message[0] && strstr(w.err.message, CANARY))
            fail_msg("%s: the sentence quotes the text: %s", one->name, w.err.message);
        if (!one->stored && screened_files(&w))
            fail_msg("%s: what was refused is in the store", one->name);
        screened_close(&w);
    }
}

/* The same cases without a rule for their kind: each of them writes, so that the test
 * above sees the screens and not something else. */
static void without_a_rule_each_of_them_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        screened w;
        if (all[i].stored || !strcmp(all[i].name, "answer_begin") ||
            !strcmp(all[i].name, "suspend") || !strcmp(all[i].name, "memory_write") ||
            !strcmp(all[i].name, "memory_apply") ||
            !strcmp(all[i].name, "remember_begin") ||
            !strcmp(all[i].name, "records_open"))
            continue; /* these assert more than one refusal on their way */
        screened_open(&w, 0, SESSILE_SCREEN_REFUSE);
        sessile_status status = all[i].write(&w);
        if (status)
            fail_msg("%s: %s %s", all[i].name, sessile_status_name(status),
                     w.err.message);
        screened_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_that_names_texts_has_a_case),
        cmocka_unit_test(each_write_is_refused_and_nothing_of_it_is_kept),
        cmocka_unit_test(without_a_rule_each_of_them_writes),
    };
    return cmocka_run_group_tests_name("the rules of a store", tests, NULL, NULL);
}
