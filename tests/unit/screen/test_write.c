/*
 * test_write.c: the rules of a store are met by each of its writes.
 *
 * Each row of operations.def that names texts has a case here for each of them; a row
 * without one fails. Each case writes a canary that the rules refuse: the answer or the
 * outcome says so, and no byte of it is in the store. Then what redact and flag write.
 */
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard/enter.h"
#include "screen/write.h"
#include "sessile_memory.h"
#include "support/check.h"
#include "support/sessions.h"

#include <cmocka.h>

#define CANARY  "xCANARYx"
#define MESSAGE "{\"role\":\"user\",\"content\":\"a " CANARY "\"}"
#define OBJECT  "{\"a\":[\"a " CANARY "\"]}"
#define HELLO   "{\"role\":\"user\",\"content\":\"hello\"}"

typedef struct world {
    place place;
    sessile_store *store;
    sessile_session *s;
    sessile_memory *m;
    sessile_error err;
    const char *text; /* what the outcome says, of a case whose call is OK */
    char said[1000];
} world;
#define ERR (&w->err)

/* ------------------------------------------------------------------ rules */

/* A screen of one expression for these kinds. */
static sessile_screens *canary_list(unsigned kinds, sessile_screen_verdict action)
{
    screen s = {.kinds = kinds, .action = action, .on_error = SESSILE_SCREEN_REFUSE};
    sessile_screens *list;
    sessile_error err;

    snprintf(s.name, sizeof s.name, "canary");
    must(screens_new(&list, os_current, &allocator_default, &err), &err);
    must(pattern_set_new(&s.patterns, &allocator_default, &err), &err);
    must(pattern_set_add(s.patterns, "word", sessile_text(CANARY), &err), &err);
    pattern_set_ready(s.patterns);
    must(screens_add(list, &s, &err), &err);
    return list;
}

static void open_world(world *w, unsigned kinds, sessile_screen_verdict action)
{
    sessile_guard_options o;
    sessile_session_options so;
    sessile_memory_options mo;

    memset(w, 0, sizeof *w);
    place_open(&w->place, STORE_PLAIN);
    w->store = w->place.store;
    sessile_guard_options_init(&o);
    o.screens = canary_list(kinds, action);
    must(sessile_store_guard(w->store, &o, ERR), ERR);
    sessile_screens_free(o.screens); /* the store has its own reference */
    so = named("s");
    so.user = sessile_text("ann");
    must(sessile_create(&w->s, w->store, &so, ERR), ERR);
    must(sessile_append(w->s, sessile_text(HELLO), NULL, ERR), ERR);
    sessile_memory_options_init(&mo);
    mo.user = sessile_text("ann");
    mo.consent = sessile_text("yes");
    must(sessile_memory_open(&w->m, w->store, &mo, ERR), ERR);
}

static void close_world(world *w)
{
    sessile_memory_close(w->m);
    sessile_session_close(w->s, NULL);
    place_close(&w->place);
}

static int canaries;

static int look_into(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    static char bytes[1 << 20];
    FILE *f = type == FTW_F ? fopen(path, "rb") : NULL;
    size_t size;

    (void)st, (void)ftw;
    if (!f)
        return 0;
    size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    canaries += memmem(bytes, size, CANARY, strlen(CANARY)) != NULL;
    return 0;
}

/* Files of the store that have the canary. */
static int files_with_canary(const world *w)
{
    canaries = 0;
    if (w->place.folder)
        nftw(w->place.folder, look_into, 8, FTW_PHYS);
    return canaries;
}

/* ------------------------------------------------------------------ the writes */

static sessile_session_options titled(const char *id)
{
    sessile_session_options o = named(id);
    o.user = sessile_text("ann");
    o.title = sessile_text("a " CANARY);
    return o;
}

static sessile_session_options described(const char *id)
{
    sessile_session_options o = titled(id);
    o.title = sessile_text(NULL);
    o.metadata = sessile_text(OBJECT);
    return o;
}

/* A session that was made although its title is refused is closed. */
#define GIVES_SESSION(name, o_, call)         \
    static sessile_status name(world *w)      \
    {                                         \
        sessile_session_options o = o_;       \
        sessile_session *out = NULL;          \
        sessile_status status = call;         \
        if (out)                              \
            sessile_session_close(out, NULL); \
        return status;                        \
    }
GIVES_SESSION(create_title, titled("t"), sessile_create(&out, w->store, &o, ERR))
GIVES_SESSION(create_metadata, described("t"), sessile_create(&out, w->store, &o, ERR))
GIVES_SESSION(open_title, titled("t"), sessile_session_open(&out, w->store, &o, ERR))
GIVES_SESSION(open_metadata, described("t"),
              sessile_session_open(&out, w->store, &o, ERR))
GIVES_SESSION(fork_title, titled("t"), sessile_fork(&out, w->s, 1, &o, ERR))
GIVES_SESSION(fork_metadata, described("t"), sessile_fork(&out, w->s, 1, &o, ERR))
GIVES_SESSION(child_title, titled("t"), sessile_child(&out, w->s, 0, &o, ERR))
GIVES_SESSION(child_metadata, described("t"), sessile_child(&out, w->s, 1, &o, ERR))

/* In a store of its own, with the same rules. */
static sessile_status records_open(world *w, sessile_screen_kind kind,
                                   sessile_session_options o)
{
    sessile_guard_options rules;
    sessile_session *out = NULL;
    sessile_store *records;

    must(sessile_open_records(&records, NULL, ERR), ERR);
    sessile_guard_options_init(&rules);
    rules.screens = canary_list(kind, SESSILE_SCREEN_REFUSE);
    must(sessile_store_guard(records, &rules, ERR), ERR);
    sessile_screens_free(rules.screens);
    sessile_status status = sessile_records_open(&out, records, &o, NULL, 0, ERR);
    assert_null(out);
    sessile_store_close(records);
    return status;
}

static sessile_status records_title(world *w)
{
    return records_open(w, SESSILE_SCREEN_TITLE, titled("t"));
}

static sessile_status records_metadata(world *w)
{
    return records_open(w, SESSILE_SCREEN_METADATA, described("t"));
}

static sessile_status child_merged(world *w)
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

#define WRITES(name, call)               \
    static sessile_status name(world *w) \
    {                                    \
        return call;                     \
    }
WRITES(set_title, sessile_set_title(w->s, sessile_text("a " CANARY), ERR))
WRITES(append, sessile_append(w->s, sessile_text(MESSAGE), NULL, ERR))
WRITES(append_custom,
       sessile_append_custom(w->s, sessile_text(OBJECT), "tool", NULL, ERR))
WRITES(set_settings, sessile_set_settings(w->s, sessile_text(OBJECT), ERR))
WRITES(set_metadata, sessile_set_metadata(w->s, sessile_text(OBJECT), ERR))
WRITES(checkpoint_state,
       sessile_checkpoint(w->s,
                          &(sessile_checkpoint_options){.state = sessile_text(OBJECT)},
                          NULL, ERR))
WRITES(checkpoint_metadata,
       sessile_checkpoint(w->s,
                          &(sessile_checkpoint_options){.metadata = sessile_text(OBJECT)},
                          NULL, ERR))

static sessile_status suspend_with(world *w)
{
    sessile_status status =
        sessile_suspend(w->s, sessile_text("a " CANARY), sessile_text(NULL), NULL, ERR);
    assert_int_equal(status, SESSILE_DENIED);
    return sessile_suspend(w->s, sessile_text("x"), sessile_text(OBJECT), NULL, ERR);
}

static sessile_status resume_with(world *w)
{
    sessile_slice list[] = {sessile_text(HELLO), sessile_text(MESSAGE)};
    must(sessile_suspend(w->s, sessile_text("x"), sessile_text(NULL), NULL, ERR), ERR);
    return sessile_resume_with(w->s, list, 2, NULL, ERR);
}

static sessile_status turn_message(world *w)
{
    sessile_slice list[] = {sessile_text(HELLO), sessile_text(MESSAGE)};
    sessile_run *run;
    sessile_status status = sessile_turn_begin(&run, w->s, list, 2, NULL, ERR);
    sessile_run_free(run);
    return status;
}

/* What a step says, or the run's outcome. */
static sessile_status run_through(world *w, sessile_run *run, const char *answer)
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
static sessile_status turn_state(world *w)
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

static sessile_status branch(world *w)
{
    return sessile_branch(w->s, 0, sessile_text("a " CANARY), NULL, ERR);
}

static sessile_status branch_begin(world *w)
{
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.summary = sessile_text("a " CANARY);
    sessile_status status = sessile_branch_begin(&run, w->s, 0, &o, ERR);
    sessile_run_free(run);
    return status;
}

static sessile_policy *host_policy(world *w, unsigned hooks)
{
    sessile_policy_step step = {.name = "of the host", .hooks = hooks};
    sessile_policy *policy;
    must(sessile_policy_load(&policy, w->store, &step, 1, ERR), ERR);
    return policy;
}

/* The policy is told that its answer was refused, and so is the host. */
static sessile_status run_reply(world *w)
{
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.config.policy = host_policy(w, SESSILE_HOOK_COMPACT);
    sessile_status status = sessile_compact_begin(&run, w->s, &o, ERR);
    sessile_policy_free(o.config.policy);
    return status ? status : run_through(w, run, "a " CANARY);
}

static sessile_status answer_begin(world *w)
{
    sessile_answer answer = {.text = sessile_text("a " CANARY)};
    sessile_run *run;
    return sessile_answer_begin(&run, w->s, SESSILE_NO_ID, &answer, NULL, ERR);
}

/* ------------------------------------------------------------------ memories */

static sessile_memory_write_entry entry_of(const char *key, const char *value)
{
    sessile_memory_write_entry e;
    sessile_memory_write_init(&e);
    e.key = sessile_text(key);
    e.value = sessile_text(value);
    return e;
}

static sessile_status memory_open(world *w)
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

static sessile_status memory_write(world *w)
{
    sessile_memory_write_entry e[] = {entry_of("k", "a " CANARY),
                                      entry_of("a " CANARY, "v"), entry_of("k", "v"),
                                      entry_of("k", "v")};
    e[2].also = sessile_text("a " CANARY);
    e[3].metadata = sessile_text(OBJECT);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(sessile_memory_write(w->m, &e[i], 1, NULL, ERR), SESSILE_DENIED);
    return sessile_memory_write(w->m, (sessile_memory_write_entry[]){e[2], e[0]}, 2, NULL,
                                ERR);
}

static sessile_status memory_apply(world *w)
{
    sessile_memory_write_entry e = entry_of(NULL, "v");
    sessile_id id = 1;
    sessile_memory_change change = {.ends = &id, .end_count = 1};
    change.reason = sessile_text("a " CANARY);
    assert_int_equal(sessile_memory_apply(w->m, &change, NULL, ERR), SESSILE_DENIED);
    e.value = sessile_text("a " CANARY);
    return sessile_memory_apply(w->m, &(sessile_memory_change){.entries = &e, .count = 1},
                                NULL, ERR);
}

static sessile_status memory_verdict(world *w)
{
    sessile_memory_write_entry e = entry_of(NULL, "v");
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
static sessile_status recall_both(world *w, int begin)
{
    sessile_memory_write_entry e[] = {entry_of(NULL, "good"),
                                      entry_of(NULL, "a " CANARY)};
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

static sessile_status recall(world *w)
{
    return recall_both(w, 0);
}

static sessile_status recall_begin(world *w)
{
    return recall_both(w, 1);
}

/* Steps a run whose hook answers that. */
static sessile_status memory_run_through(world *w, sessile_memory_run *run,
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

static sessile_status remember_with(world *w, const char *answer)
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
static sessile_status remember_begin(world *w)
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

static sessile_status tidy_begin(world *w)
{
    sessile_memory_write_entry e = entry_of("k", "v");
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

static sessile_status admit_begin(world *w)
{
    sessile_memory_write_entry e = entry_of("k", "a " CANARY);
    sessile_memory_run_options o;
    sessile_memory_run *run;
    sessile_memory_run_options_init(&o);
    must(sessile_admit_begin(&run, w->m, &e, 1, &o, ERR), ERR);
    return memory_run_through(w, run, "{}");
}

static sessile_status memory_run_reply(world *w)
{
    return remember_with(w, ASKS("a " CANARY));
}

/* ------------------------------------------------------------------ all of them */

/* text: what is written is refused while the call is OK, and the outcome says it.
 * stored: the canary was there before. */
typedef struct writes {
    const char *name;
    unsigned kind;
    sessile_status (*write)(world *w);
    int in_outcome, stored;
} writes;

#define K(kind) SESSILE_SCREEN_##kind
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
    {"set_settings", K(SETTINGS), set_settings, 0, 0},
    {"set_metadata", K(METADATA), set_metadata, 0, 0},
    {"checkpoint", K(STATE), checkpoint_state, 0, 0},
    {"checkpoint", K(METADATA), checkpoint_metadata, 0, 0},
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
        world w;
        open_world(&w, one->kind, SESSILE_SCREEN_REFUSE);
        sessile_status status = one->write(&w);
        if (status != (one->in_outcome ? SESSILE_OK : SESSILE_DENIED) ||
            (one->in_outcome && !strstr(w.text, "canary")))
            fail_msg("%s: %s %s, %s", one->name, sessile_status_name(status),
                     w.err.message, w.text ? w.text : "");
        if (!one->in_outcome && !one->stored && strcmp(w.err.rule, "word") != 0)
            fail_msg("%s: the rule is \"%s\"", one->name, w.err.rule);
        if (w.err.message[0] && strstr(w.err.message, CANARY))
            fail_msg("%s: the sentence quotes the text: %s", one->name, w.err.message);
        if (!one->stored && files_with_canary(&w))
            fail_msg("%s: what was refused is in the store", one->name);
        close_world(&w);
    }
}

/* The same cases without a rule for their kind: each of them writes, so that the test
 * above sees the screens and not something else. */
static void without_a_rule_each_of_them_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        world w;
        if (all[i].stored || !strcmp(all[i].name, "answer_begin") ||
            !strcmp(all[i].name, "suspend") || !strcmp(all[i].name, "memory_write") ||
            !strcmp(all[i].name, "memory_apply") ||
            !strcmp(all[i].name, "remember_begin") ||
            !strcmp(all[i].name, "records_open"))
            continue; /* these assert more than one refusal on their way */
        open_world(&w, 0, SESSILE_SCREEN_REFUSE);
        sessile_status status = all[i].write(&w);
        if (status)
            fail_msg("%s: %s %s", all[i].name, sessile_status_name(status),
                     w.err.message);
        close_world(&w);
    }
}

/* ------------------------------------------------------------------ flag and redact */

static void expect_entry(sessile_session *s, sessile_id id, const char *has)
{
    sessile_error err;
    char *text;
    size_t size;
    must(sessile_entry(s, id, &text, &size, &err), &err);
    if (!strstr(text, has))
        fail_msg("entry %u is %s, and has no %s", (unsigned)id, text, has);
    sessile_free(text);
}

static void a_flag_is_a_label_of_the_same_commit(void **state)
{
    sessile_label_row *labels;
    sessile_id id;
    size_t count;
    world w;
    (void)state;

    open_world(&w, K(MESSAGE) | K(TITLE), SESSILE_SCREEN_FLAG);
    must(sessile_append(w.s, sessile_text(MESSAGE), &id, &w.err), &w.err);
    expect_entry(w.s, id, CANARY);
    must(sessile_labels(w.s, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 1);
    assert_int_equal(labels[0].entry, id);
    assert_string_equal(labels[0].name.data, "screen:word");
    sessile_free(labels);
    sessile_slice list[] = {sessile_text(HELLO), sessile_text(MESSAGE)};
    sessile_run *run;
    must(sessile_turn_begin(&run, w.s, list, 2, NULL, &w.err), &w.err);
    sessile_run_free(run);
    must(sessile_labels(w.s, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 2);
    sessile_free(labels);
    must(sessile_set_title(w.s, sessile_text("a " CANARY), &w.err), &w.err);
    sessile_session_options o = titled("t");
    sessile_session *made;
    must(sessile_create(&made, w.store, &o, &w.err), &w.err);
    must(sessile_labels(made, &labels, &count, &w.err), &w.err);
    assert_int_equal(count, 1);
    assert_int_equal(labels[0].entry, 0);
    sessile_free(labels);
    sessile_session_close(made, NULL);
    close_world(&w);
}

/* A cut in the newest write takes the message away with its label. */
static void message_and_label_are_one_write(void **state)
{
    sessile_session *s;
    sessile_message *messages;
    sessile_label_row *labels;
    size_t count;
    char path[600];
    struct stat st;
    world w;
    (void)state;

    if (place_elsewhere())
        return;
    open_world(&w, K(MESSAGE), SESSILE_SCREEN_FLAG);
    s = session_made(w.store, "cut");
    must(sessile_append(s, sessile_text(HELLO), NULL, &w.err), &w.err);
    must(sessile_append(s, sessile_text(MESSAGE), NULL, &w.err), &w.err);
    sessile_session_close(s, NULL);
    log_path(&w.place, "cut", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 2), 0);
    s = session_resumed(w.store, "cut");
    must(sessile_messages(s, NULL, &messages, &count, &w.err), &w.err);
    sessile_free(messages);
    assert_int_equal(count, 1);
    must(sessile_labels(s, &labels, &count, &w.err), &w.err);
    sessile_free(labels);
    assert_int_equal(count, 0);
    sessile_session_close(s, NULL);
    close_world(&w);
}

static void what_is_redacted_is_removed_and_the_rest_is_as_it_was(void **state)
{
    static const char message[] =
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a "
        "\\u0078CANARYx \\u00e9\"}],\"n\":1.50e3,\"x\":[true,null]}";
    sessile_memory_write_entry e = entry_of("k", "is " CANARY " here");
    sessile_memory_row *rows;
    sessile_id id;
    size_t count;
    world w;
    (void)state;

    open_world(&w, SESSILE_SCREEN_KINDS, SESSILE_SCREEN_REDACT);
    must(sessile_append(w.s, sessile_text(message), &id, &w.err), &w.err);
    expect_entry(w.s, id,
                 "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a "
                 "[removed: word] \\u00e9\"}],\"n\":1.50e3,\"x\":[true,null]}");
    must(sessile_set_title(w.s, sessile_text("a " CANARY), &w.err), &w.err);
    must(sessile_checkpoint(w.s,
                            &(sessile_checkpoint_options){.state = sessile_text(OBJECT)},
                            &id, &w.err),
         &w.err);
    expect_entry(w.s, id, "{\"a\":[\"a [removed: word]\"]}");
    must(sessile_memory_write(w.m, &e, 1, NULL, &w.err), &w.err);
    must(sessile_memory_list(w.m, NULL, &rows, &count, &w.err), &w.err);
    assert_string_equal(rows[0].value.data, "is [removed: word] here");
    sessile_free(rows);
    e = entry_of("a " CANARY, "v");
    assert_int_equal(sessile_memory_write(w.m, &e, 1, NULL, &w.err), SESSILE_DENIED);
    assert_string_equal(w.err.rule, "word");
    assert_int_equal(files_with_canary(&w), 0);
    close_world(&w);
}

static void a_flagged_entry_of_a_memory_says_so(void **state)
{
    sessile_memory_write_entry e = entry_of("k", CANARY);
    sessile_memory_row *rows;
    size_t count;
    world w;
    (void)state;

    open_world(&w, K(MEMORY), SESSILE_SCREEN_FLAG);
    e.metadata = sessile_text("{\"a\":1,\"flagged\":[]}");
    must(sessile_memory_write(w.m, &e, 1, NULL, &w.err), &w.err);
    must(sessile_memory_list(w.m, NULL, &rows, &count, &w.err), &w.err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].state, SESSILE_MEMORY_LIVE);
    assert_string_equal(rows[0].metadata.data, "{\"flagged\":[\"word\"],\"a\":1}");
    sessile_free(rows);
    close_world(&w);
}

/* ------------------------------------------------------------------ URLs */

static void urls_refuse_memories_and_states_unless_allowed(void **state)
{
    static const char *const inward[] = {
        "http://127.0.0.1/",  "http://169.254.169.254/latest", "http://10.0.0.1",
        "http://2130706433/", "http://[::ffff:10.0.0.1]/",     "http:\\/\\/localhost"};
    sessile_guard_options o;
    char json[200];
    world w;
    (void)state;

    open_world(&w, 0, SESSILE_SCREEN_REFUSE);
    for (size_t i = 0; i < sizeof inward / sizeof *inward; i++) {
        sessile_memory_write_entry e = entry_of("k", inward[i]);
        snprintf(json, sizeof json, "{\"url\":\"%s\"}", inward[i]);
        if (i < 5)
            assert_int_equal(sessile_memory_write(w.m, &e, 1, NULL, &w.err),
                             SESSILE_DENIED);
        assert_int_equal(
            sessile_checkpoint(w.s,
                               &(sessile_checkpoint_options){.state = sessile_text(json)},
                               NULL, &w.err),
            SESSILE_DENIED);
        assert_true(w.err.rule[0]);
        snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%s\"}", inward[i]);
        must(sessile_append(w.s, sessile_text(json), NULL, &w.err), &w.err);
    }
    close_world(&w);

    sessile_slice allow[] = {{NULL, 0}, {NULL, 0}};
    char host[] = "127.0.0.1";
    allow[0] = sessile_text(host);
    allow[1] = sessile_text(".example.org");
    memset(&w, 0, sizeof w);
    place_open(&w.place, STORE_RAM);
    sessile_guard_options_init(&o);
    o.urls.options = (sessile_url_options){.allow = allow, .allow_count = 1};
    o.urls.refuse = 1u << 20;
    assert_int_equal(sessile_store_guard(w.place.store, &o, &w.err), SESSILE_INVALID);
    o.urls.refuse = SESSILE_SCREEN_MEMORY;
    o.urls.options.only_allowed = 1;
    o.urls.options.allow_count = 2;
    must(sessile_store_guard(w.place.store, &o, &w.err), &w.err);
    memset(host, 'x', sizeof host - 1); /* the list was copied */
    sessile_screen_item item = {.kind = SESSILE_SCREEN_MEMORY,
                                .text = sessile_text("http://127.0.0.1:80/")};
    sessile_screen_outcome *outcome;
    must(sessile_store_screen(&outcome, w.place.store, &item, &w.err), &w.err);
    assert_int_equal(outcome->verdict, SESSILE_SCREEN_PASS);
    sessile_free(outcome);
    item.text = sessile_text("https://example.com/");
    must(sessile_store_screen(&outcome, w.place.store, &item, &w.err), &w.err);
    assert_int_equal(outcome->verdict, SESSILE_SCREEN_REFUSE);
    assert_string_equal(outcome->findings[0].rule, "not-allowed");
    sessile_free(outcome);
    item.kind = SESSILE_SCREEN_MESSAGE;
    must(sessile_store_screen(&outcome, w.place.store, &item, &w.err), &w.err);
    assert_int_equal(outcome->verdict, SESSILE_SCREEN_PASS);
    sessile_free(outcome);
    place_close(&w.place);
}

/* ------------------------------------------------------------------ threads */

static void *append_often(void *arg)
{
    world *w = arg;
    size_t wrong = 0;
    for (int i = 0; i < 50; i++) {
        sessile_error err;
        wrong += sessile_append(w->s, sessile_text(i % 2 ? MESSAGE : HELLO), NULL,
                                &err) != (i % 2 ? SESSILE_DENIED : SESSILE_OK);
    }
    return (void *)(uintptr_t)wrong;
}

static void many_threads_use_the_same_rules(void **state)
{
    pthread_t threads[4];
    void *wrong;
    world w;
    (void)state;

    open_world(&w, K(MESSAGE), SESSILE_SCREEN_REFUSE);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append_often, &w), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_that_names_texts_has_a_case),
        cmocka_unit_test(each_write_is_refused_and_nothing_of_it_is_kept),
        cmocka_unit_test(without_a_rule_each_of_them_writes),
        cmocka_unit_test(a_flag_is_a_label_of_the_same_commit),
        cmocka_unit_test(message_and_label_are_one_write),
        cmocka_unit_test(what_is_redacted_is_removed_and_the_rest_is_as_it_was),
        cmocka_unit_test(a_flagged_entry_of_a_memory_says_so),
        cmocka_unit_test(urls_refuse_memories_and_states_unless_allowed),
        cmocka_unit_test(many_threads_use_the_same_rules),
    };
    return cmocka_run_group_tests_name("the rules of a store", tests, NULL, NULL);
}
