/*
 * test_trigger.c: when policies compact without being asked whether, and what runs
 * instead of one that was refused: through the public interface, with a clock of the
 * test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "sessile.h"

/* ------------------------------------------------------------------ a world */

static int64_t now_ms;

static int64_t tell_now(void *ud)
{
    (void)ud;
    return now_ms;
}

/* What the host's hooks do. Which: one for the policy, one for the fallback. */
typedef enum act {
    NOTHING,
    CUT,   /* drops all but the newest 2 messages */
    CROP,  /* drops the oldest message */
    BREAK, /* drops what law 5 keeps: the last user message */
    FAIL
} act;

typedef struct world {
    char folder[64];
    os_table os;
    sessile_store *store;
    sessile_session *s;
    sessile_policy *policy, *fallback; /* NULL: none is given to the turns */
    sessile_run_options options;       /* of every turn; policies aside */
    sessile_triggers t;                /* of every turn, when use() was called */
    act compact, truncate;             /* of the policy */
    act instead;                       /* every hook of the fallback */
    int should;                        /* what should_compact says */
    const char *note; /* vars that a hook leaves, a JSON object; or NULL */
    char calls[512];  /* "hook:reason " for each, "fallback/" before the fallback's */
    sessile_outcome out;
    sessile_run *run; /* the last, which out borrows from */
} world;

static void open_store(world *w, const sessile_triggers *triggers)
{
    const os_table *was = os_current;
    sessile_store_options o;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    o.triggers = triggers;
    os_current = &w->os;
    assert_int_equal(sessile_open(&w->store, w->folder, &o, &err), SESSILE_OK);
    os_current = was;
}

static void open_session(world *w, const sessile_triggers *triggers)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.triggers = triggers;
    assert_int_equal(sessile_session_open(&w->s, w->store, &o, &err), SESSILE_OK);
}

static sessile_policy *host(world *w, const char *name, unsigned hooks)
{
    sessile_policy_step step = {name, NULL, hooks};
    sessile_policy *p;
    assert_int_equal(sessile_policy_load(&p, w->store, &step, 1, NULL), SESSILE_OK);
    return p;
}

static void close_all(world *w)
{
    sessile_run_free(w->run);
    w->run = NULL;
    sessile_policy_free(w->policy);
    sessile_policy_free(w->fallback);
    w->policy = w->fallback = NULL;
    if (w->s)
        assert_int_equal(sessile_session_close(w->s, NULL), SESSILE_OK);
    sessile_store_close(w->store);
    w->s = NULL;
    w->store = NULL;
}

static void reopen(world *w)
{
    close_all(w);
    open_store(w, NULL);
    open_session(w, NULL);
    w->policy = host(w, "host", SESSILE_HOOK_COMPACT);
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    strcpy(w->folder, "/tmp/sessile-trigger.XXXXXX");
    if (!mkdtemp(w->folder))
        return -1;
    now_ms = INT64_C(1700000000000);
    w->os = *os_current;
    w->os.now_ms = tell_now;
    sessile_run_options_init(&w->options);
    open_store(w, NULL);
    open_session(w, NULL);
    w->policy = host(w, "host", SESSILE_HOOK_COMPACT);
    w->compact = CUT;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    char command[96];
    close_all(w);
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    int failed = system(command);
    free(w);
    return failed;
}

/* ------------------------------------------------------------------ what hooks do */

static void cut(sessile_state *state, size_t keep)
{
    size_t count = sessile_state_count(state);
    if (count > keep)
        assert_int_equal(sessile_state_drop(state, 0, count - keep - 1, NULL),
                         SESSILE_OK);
}

static void do_act(world *w, act what, const sessile_need *need, sessile_answer *a)
{
    size_t count = sessile_state_count(need->state);
    if (w->note)
        assert_int_equal(sessile_state_set_vars(need->state, sessile_text(w->note), NULL),
                         SESSILE_OK);
    switch (what) {
    case NOTHING:
        break;
    case CUT:
        cut(need->state, 2);
        break;
    case CROP:
        if (count > 2)
            assert_int_equal(sessile_state_drop(need->state, 0, 0, NULL), SESSILE_OK);
        break;
    case BREAK:
        assert_int_equal(sessile_state_drop(need->state, count - 2, count - 2, NULL),
                         SESSILE_OK);
        break;
    case FAIL:
        a->status = SESSILE_POLICY;
        a->text = sessile_text("out of ideas");
        break;
    }
}

static void answer(world *w, const sessile_need *need)
{
    sessile_answer a = {SESSILE_OK, {NULL, 0}, 0};
    size_t used = strlen(w->calls);
    assert_int_equal(need->kind, SESSILE_NEED_HOOK);
    snprintf(w->calls + used, sizeof w->calls - used, "%s%s:%s ",
             need->fallback ? "fallback/" : "", sessile_hook_name(need->hook),
             sessile_reason_name(need->reason));
    if (need->hook == SESSILE_HOOK_SHOULD_COMPACT)
        a.verdict = w->should;
    else if (need->fallback)
        do_act(w, w->instead, need, &a);
    else if (need->hook == SESSILE_HOOK_TRUNCATE)
        do_act(w, w->truncate, need, &a);
    else if (need->hook == SESSILE_HOOK_COMPACT)
        do_act(w, w->compact, need, &a);
    assert_int_equal(sessile_run_reply(w->run, &a, NULL), SESSILE_OK);
}

static void drive(world *w)
{
    sessile_need need;
    sessile_error err;
    sessile_status status;
    while ((status = sessile_run_step(w->run, &need, &err)) == SESSILE_NEEDS)
        answer(w, &need);
    if (status)
        print_message("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_run_outcome(w->run, &w->out, NULL), SESSILE_OK);
}

static sessile_run_options options_of(world *w)
{
    sessile_run_options o = w->options;
    o.policy = w->policy;
    o.fallback = w->fallback;
    w->calls[0] = 0;
    sessile_run_free(w->run);
    w->run = NULL;
    return o;
}

/* A turn: a question and an answer. Returns what was called. */
static const char *turn(world *w)
{
    sessile_slice m[] = {sessile_text("{\"role\":\"user\",\"content\":\"a question\"}"),
                         sessile_text("{\"role\":\"assistant\",\"content\":\"so\"}")};
    sessile_run_options o = options_of(w);
    assert_int_equal(sessile_turn_begin(&w->run, w->s, m, 2, &o, NULL), SESSILE_OK);
    drive(w);
    return w->calls;
}

static const char *turn_with(world *w, const char *event)
{
    w->options.event = sessile_text(event);
    turn(w);
    w->options.event = sessile_text(NULL);
    return w->calls;
}

static const char *compact(world *w, int plan)
{
    sessile_run_options o = options_of(w);
    assert_int_equal(
        (plan ? sessile_plan_begin : sessile_compact_begin)(&w->run, w->s, &o, NULL),
        SESSILE_OK);
    drive(w);
    return w->calls;
}

/* How many entries of the log hold a text. */
static int entries_with(world *w, const char *text)
{
    sessile_entries *e;
    const char *json;
    size_t size;
    int n = 0;
    assert_int_equal(sessile_entries_open(&e, w->s, NULL), SESSILE_OK);
    while (!sessile_entries_next(e, NULL, &json, &size, NULL) && size)
        n += strstr(json, text) != NULL;
    sessile_entries_close(e);
    return n;
}

static size_t context_size(world *w)
{
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_context(w->s, SESSILE_NO_ID, &list, &count, NULL, NULL),
                     SESSILE_OK);
    sessile_free(list);
    return count;
}

static int64_t tokens(world *w)
{
    sessile_tokens t;
    assert_int_equal(sessile_count_tokens(w->s, &t, NULL), SESSILE_OK);
    return t.tokens;
}

static void use(world *w, sessile_triggers t)
{
    w->t = t;
    w->options.triggers = &w->t;
}

#define FIRES(w, reason) assert_string_equal(turn(w), "compact:" reason " ")
#define IS_QUIET(w)      assert_string_equal(turn(w), "")

/* ------------------------------------------------------------------ messages, seconds */

static void messages_are_counted_from_the_last_compaction(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 6});
    for (int round = 0; round < 2; round++) {
        IS_QUIET(w);
        IS_QUIET(w);
        FIRES(w, "threshold");
        assert_int_equal(w->out.verdict, SESSILE_APPLIED);
        assert_int_equal(w->out.reason, SESSILE_REASON_THRESHOLD);
        assert_int_equal(context_size(w), 2);
    }
    assert_int_equal(entries_with(w, "\"reason\":\"threshold\""), 2);
}

static void the_count_goes_on_in_another_handle(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 6});
    for (int round = 0; round < 2; round++) {
        IS_QUIET(w);
        reopen(w);
        IS_QUIET(w);
        FIRES(w, "threshold");
    }
}

static void what_comes_to_nothing_is_tried_again_as_many_messages_later(void **state)
{
    static const act failures[] = {NOTHING, FAIL, BREAK};
    world *w = *state;
    use(w, (sessile_triggers){.messages = 4});
    for (int i = 0; i < 3; i++) {
        w->compact = failures[i];
        IS_QUIET(w);
        FIRES(w, "threshold");
        if (i == 1)
            reopen(w);
    }
    w->compact = CUT;
    IS_QUIET(w);
    FIRES(w, "threshold");
    assert_int_equal(context_size(w), 2);
}

static void a_truncate_that_cuts_each_turn_puts_nothing_off(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 8});
    sessile_policy_free(w->policy);
    w->policy = host(w, "host", SESSILE_HOOK_TRUNCATE | SESSILE_HOOK_COMPACT);
    w->truncate = CROP;
    for (int round = 0; round < 3; round++) {
        /* What is counted from lies at no multiple itself. */
        turn(w);
        turn(w);
        compact(w, 0);
        assert_int_equal(w->out.verdict, SESSILE_APPLIED);
        for (int i = 0; i < 3; i++)
            assert_string_equal(turn(w), "truncate:turn ");
        assert_string_equal(turn(w), "truncate:turn compact:threshold ");
        if (round == 1) {
            reopen(w);
            sessile_policy_free(w->policy);
            w->policy = host(w, "host", SESSILE_HOOK_TRUNCATE | SESSILE_HOOK_COMPACT);
        }
    }
    assert_true(entries_with(w, "\"reason\":\"turn\"") > 3);
}

static void appended_messages_count_and_run_nothing(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 5});
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"aside\"}");
    for (int i = 0; i < 7; i++)
        assert_int_equal(sessile_append(w->s, m, NULL, NULL), SESSILE_OK);
    assert_int_equal(entries_with(w, "\"type\":\"compaction\""), 0);
    FIRES(w, "threshold");
    assert_int_equal(sessile_append(w->s, m, NULL, NULL), SESSILE_OK);
    IS_QUIET(w);
    FIRES(w, "threshold");
}

static void a_turn_without_a_policy_leaves_it_to_the_next(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 4, .seconds = 60});
    IS_QUIET(w);
    w->options.no_policy = 1;
    now_ms += 61000;
    for (int i = 0; i < 2; i++)
        IS_QUIET(w);
    w->options.no_policy = 0;
    FIRES(w, "threshold");
    w->t.messages = 0;
    w->options.no_policy = 1;
    now_ms += 61000;
    IS_QUIET(w);
    reopen(w);
    w->options.no_policy = 0;
    FIRES(w, "timer");
}

static void seconds_are_judged_by_the_turns_time(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.seconds = 60});
    IS_QUIET(w);
    now_ms += 59999;
    IS_QUIET(w);
    now_ms += 1;
    FIRES(w, "timer");
    assert_int_equal(w->out.reason, SESSILE_REASON_TIMER);
    assert_int_equal(entries_with(w, "\"reason\":\"timer\""), 1);
    now_ms += 59000; /* from the compaction on */
    IS_QUIET(w);
    w->compact = NOTHING;
    now_ms += 1000;
    FIRES(w, "timer");
    IS_QUIET(w);
    now_ms += 59000;
    IS_QUIET(w);
    now_ms += 1000;
    FIRES(w, "timer");
    now_ms -= 1000000; /* a clock that was set back fires nothing */
    IS_QUIET(w);
}

/* ------------------------------------------------------------------ share, overflow */

/* Fills the context to just under a limit of tokens with turns that fire nothing. */
static void fill(world *w, int64_t most)
{
    int64_t before = 0, step = 0;
    while (tokens(w) + step < most) {
        before = tokens(w);
        IS_QUIET(w);
        step = tokens(w) - before;
    }
}

static void a_share_of_the_window_fires_once_it_is_used(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.share = 800});
    IS_QUIET(w); /* without a window there is no share of it */
    w->options.window = 500;
    w->options.reserve = 100;
    fill(w, 320);
    FIRES(w, "threshold");
    assert_true(w->out.tokens_before >= 320);
    assert_int_equal(context_size(w), 2);
    IS_QUIET(w);
}

static void a_share_that_stays_used_waits_for_more(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.share = 500});
    w->options.window = 4000;
    w->compact = NOTHING;
    fill(w, 2000);
    FIRES(w, "threshold");
    int64_t tried = tokens(w);
    int quiet = 0;
    while (strcmp(turn(w), "") == 0)
        quiet++;
    assert_true(quiet > 2);
    assert_true(tokens(w) - tried >= 200);

    /* A window that is another one is another question. */
    IS_QUIET(w);
    w->options.window = 3900;
    FIRES(w, "threshold");

    /* So is another branch. */
    IS_QUIET(w);
    assert_int_equal(sessile_clear(w->s, NULL), SESSILE_OK);
    w->options.window = 40;
    IS_QUIET(w);
    FIRES(w, "threshold");
}

static void what_does_not_fit_is_compacted_for_overflow(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.overflow = 1});
    w->options.window = 300;
    fill(w, 301);
    FIRES(w, "overflow");
    assert_int_equal(w->out.reason, SESSILE_REASON_OVERFLOW);
    assert_int_equal(w->out.cannot_fit, 0);
    assert_int_equal(entries_with(w, "\"reason\":\"overflow\""), 1);
    IS_QUIET(w);
}

static void an_overflow_that_lasts_asks_again_when_it_has_grown(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.overflow = 1});
    w->options.window = 2000;
    w->compact = CROP;
    fill(w, 2001);
    FIRES(w, "overflow");
    assert_int_equal(w->out.verdict, SESSILE_APPLIED); /* saved less than 5 % */
    assert_int_equal(w->out.too_little, 0);
    assert_true(w->out.cannot_fit >= 0);
    w->compact = NOTHING;
    int fired = 0;
    for (int i = 0; i < 20; i++)
        fired += strcmp(turn(w), "") != 0;
    assert_in_range(fired, 1, 7);
    reopen(w); /* the log does not say that it was in vain: it is tried once more */
    w->compact = CUT;
    FIRES(w, "overflow");
    assert_int_equal(w->out.cannot_fit, 0);
}

static void overflow_comes_after_a_compact_that_did_not_do(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){
               .overflow = 1, .events = (const char *const[]){"tidy"}, .event_count = 1});
    w->options.window = 2000;
    w->compact = CROP;
    fill(w, 2001);
    w->options.window = 1500;
    assert_string_equal(turn_with(w, "tidy"), "compact:event compact:overflow ");
    assert_int_equal(entries_with(w, "\"reason\":\"overflow\""), 1);
    assert_int_equal(entries_with(w, "\"type\":\"compaction\""), 1);
}

static void a_policy_that_says_when_is_asked_unless_a_trigger_fires(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 4});
    sessile_policy_free(w->policy);
    w->policy =
        host(w, "host",
             SESSILE_HOOK_SHOULD_COMPACT | SESSILE_HOOK_FLUSH | SESSILE_HOOK_COMPACT);
    assert_string_equal(turn(w), "should_compact:threshold ");
    assert_int_equal(w->out.reason, SESSILE_REASON_TURN);
    assert_string_equal(turn(w), "flush:threshold compact:threshold ");
    w->should = 1;
    assert_string_equal(turn(w),
                        "should_compact:threshold flush:threshold compact:threshold ");
    assert_int_equal(w->out.reason, SESSILE_REASON_THRESHOLD);
}

static void the_little_that_a_trigger_saves_is_left_out(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 60});
    w->compact = CROP;
    for (int i = 0; i < 29; i++)
        IS_QUIET(w);
    FIRES(w, "threshold");
    assert_int_equal(w->out.verdict, SESSILE_TOO_LITTLE);
    assert_int_equal(w->out.too_little, 1);
    w->options.reason = SESSILE_REASON_TIMER;
    compact(w, 0);
    assert_int_equal(w->out.verdict, SESSILE_TOO_LITTLE);
    w->options.reason = SESSILE_REASON_OVERFLOW;
    compact(w, 0);
    assert_int_equal(w->out.verdict, SESSILE_APPLIED);
    w->options.reason = SESSILE_REASON_MANUAL;
    compact(w, 0);
    assert_int_equal(w->out.verdict, SESSILE_APPLIED);
}

/* ------------------------------------------------------------------ events, order */

static void an_event_fires_when_the_trigger_lists_it(void **state)
{
    world *w = *state;
    const char *const names[] = {"deploy", "done"};
    use(w, (sessile_triggers){.events = names, .event_count = 2});
    assert_string_equal(turn_with(w, "deploy"), "compact:event ");
    assert_string_equal(turn_with(w, "deplo"), "");
    assert_string_equal(turn_with(w, "lunch"), "");
    assert_string_equal(turn_with(w, "done"), "compact:event ");
    assert_int_equal(entries_with(w, "\"reason\":\"event\",\"event\":\"done\""), 1);
    w->options.triggers = NULL;
    assert_string_equal(turn_with(w, "done"), "");
}

static void of_several_reasons_the_first_in_order_is_told(void **state)
{
    world *w = *state;
    const char *const names[] = {"deploy"};
    use(w, (sessile_triggers){.messages = 2,
                              .seconds = 1,
                              .overflow = 1,
                              .share = 1,
                              .events = names,
                              .event_count = 1});
    now_ms += 5000;
    FIRES(w, "threshold");
    w->t.messages = 0;
    now_ms += 5000;
    FIRES(w, "timer");
    w->options.window = 5;
    now_ms += 5000;
    FIRES(w, "overflow");
    assert_string_equal(turn_with(w, "deploy"), "compact:event compact:overflow ");
}

static void a_trigger_takes_the_place_of_the_one_further_out(void **state)
{
    world *w = *state;
    const char *const names[] = {"deploy"};
    sessile_triggers every_turn = {.messages = 2};
    sessile_triggers event = {.events = names, .event_count = 1}, none = {.messages = 0};
    close_all(w);
    open_store(w, &every_turn);
    open_session(w, NULL);
    w->policy = host(w, "host", SESSILE_HOOK_COMPACT);
    FIRES(w, "threshold");
    w->options.triggers = &none;
    IS_QUIET(w);
    w->options.triggers = NULL;
    assert_int_equal(sessile_session_close(w->s, NULL), SESSILE_OK);
    sessile_run_free(w->run);
    w->run = NULL;
    open_session(w, &event);
    IS_QUIET(w);
    assert_string_equal(turn_with(w, "deploy"), "compact:event ");
    w->options.triggers = &every_turn;
    FIRES(w, "threshold");
}

static void a_trigger_that_makes_no_sense_is_invalid(void **state)
{
    world *w = *state;
    const char *const names[] = {"fine", ""};
    sessile_triggers wrong[] = {
        {.share = 1001}, {.events = names, .event_count = 2}, {.event_count = 1}};
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"x\"}");
    for (int i = 0; i < 3; i++) {
        sessile_run_options o = w->options;
        sessile_session_options so;
        sessile_store_options sto;
        sessile_session *s;
        sessile_store *store;
        sessile_error err;
        o.triggers = &wrong[i];
        assert_int_equal(sessile_turn_begin(&w->run, w->s, &m, 1, &o, &err),
                         SESSILE_INVALID);
        assert_non_null(strstr(err.message, "trigger"));
        sessile_session_options_init(&so);
        so.id = sessile_text("other");
        so.triggers = &wrong[i];
        assert_int_equal(sessile_create(&s, w->store, &so, &err), SESSILE_INVALID);
        assert_int_equal(sessile_resume(&s, w->store, &so, &err), SESSILE_INVALID);
        sessile_store_options_init(&sto);
        sto.triggers = &wrong[i];
        assert_int_equal(sessile_open(&store, "ram:", &sto, &err), SESSILE_INVALID);
    }
    assert_int_equal(context_size(w), 0);
}

/* ------------------------------------------------------------------ the fallback */

static void use_fallback(world *w)
{
    sessile_policy_free(w->policy);
    w->policy = host(w, "host", SESSILE_HOOK_TRUNCATE);
    w->fallback = host(w, "spare", SESSILE_HOOK_TRUNCATE);
    w->truncate = BREAK;
    w->instead = CUT;
}

static void a_refused_policy_has_its_fallback_on_the_same_context(void **state)
{
    world *w = *state;
    turn(w);
    use_fallback(w);
    assert_string_equal(turn(w), "truncate:turn fallback/truncate:turn ");
    assert_int_equal(w->out.verdict, SESSILE_REFUSED);
    assert_int_equal(w->out.law, 5);
    assert_string_equal(w->out.policy, "host");
    assert_string_equal(w->out.hook, "truncate");
    assert_int_not_equal(w->out.refusal, SESSILE_NO_ID);
    assert_int_equal(w->out.fallback.verdict, SESSILE_APPLIED);
    assert_string_equal(w->out.fallback.policy, "spare");
    assert_int_equal(w->out.fallback.law, 0);
    assert_int_equal(w->out.fallback.refusal, SESSILE_NO_ID);
    assert_int_not_equal(w->out.compaction, SESSILE_NO_ID);
    assert_int_equal(w->out.head, w->out.compaction);
    assert_int_equal(w->out.removal_count, 2);
    assert_true(w->out.tokens_after < w->out.tokens_before);
    assert_int_equal(context_size(w), 2);
    assert_int_equal(entries_with(w, "\"type\":\"refusal\""), 1);
    assert_int_equal(entries_with(w, "\"policy\":[{\"name\":\"spare\""), 1);
    assert_int_equal(entries_with(w, "\"fallback_of\":\"host\""), 1);

    w->truncate = CUT; /* nothing is refused: it does not run */
    assert_string_equal(turn(w), "truncate:turn ");
    assert_int_equal(w->out.fallback.verdict, SESSILE_NO_POLICY);
}

static void a_fallback_that_fails_too_is_told_and_written_once(void **state)
{
    world *w = *state;
    use_fallback(w);
    w->truncate = FAIL;
    w->instead = BREAK;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(turn(w), "truncate:turn fallback/truncate:turn ");
        assert_int_equal(w->out.verdict, SESSILE_REFUSED);
        assert_int_equal(w->out.law, 0);
        assert_non_null(strstr(w->out.message, "out of ideas"));
        assert_int_equal(w->out.repeated, i);
        assert_int_equal(w->out.fallback.verdict, SESSILE_REFUSED);
        assert_int_equal(w->out.fallback.law, 5);
        assert_string_equal(w->out.fallback.policy, "spare");
        assert_string_equal(w->out.compaction == SESSILE_NO_ID ? "none" : "one", "none");
    }
    /* The message of law 5 names the entry, which is another each time. */
    assert_int_equal(entries_with(w, "\"policy\":\"host\""), 1);
    assert_int_equal(context_size(w), 6);
    w->instead = FAIL;
    turn(w);
    turn(w);
    assert_int_equal(w->out.fallback.repeated, 1);
    assert_int_equal(w->out.fallback.refusal, SESSILE_NO_ID);
    assert_int_equal(entries_with(w, "\"policy\":\"spare\""), 4);
}

static void a_trigger_that_fired_fires_for_the_fallback(void **state)
{
    world *w = *state;
    use(w, (sessile_triggers){.messages = 4, .share = 1});
    w->options.window = 100000;
    w->fallback = host(w, "spare", SESSILE_HOOK_FLUSH | SESSILE_HOOK_COMPACT);
    w->compact = FAIL;
    IS_QUIET(w);
    assert_string_equal(
        turn(w),
        "compact:threshold fallback/flush:threshold fallback/compact:threshold ");
    assert_int_equal(w->out.fallback.verdict, SESSILE_UNCHANGED);
    w->t.messages = 2;
    w->instead = CUT;
    assert_string_equal(
        turn(w),
        "compact:threshold fallback/flush:threshold fallback/compact:threshold ");
    assert_int_equal(w->out.fallback.verdict, SESSILE_APPLIED);
    assert_int_equal(entries_with(w, "\"fallback_of\":\"host\",\"reason\":\"threshold\""),
                     1);
}

static void notes_of_what_was_refused_are_not_kept(void **state)
{
    world *w = *state;
    use_fallback(w);
    w->note = "{\"n\":1}";
    turn(w);
    assert_int_equal(entries_with(w, "\"vars\":{\"spare\":{\"n\":1}}"), 1);
    assert_int_equal(entries_with(w, "\"host\":{\"n\":1}"), 0);
}

static void a_persons_compaction_has_its_fallback_too(void **state)
{
    world *w = *state;
    sessile_message *list;
    size_t count;
    turn(w);
    turn(w);
    w->fallback = host(w, "spare", SESSILE_HOOK_COMPACT);
    w->compact = FAIL;
    w->instead = CUT;
    assert_string_equal(compact(w, 1), "compact:manual fallback/compact:manual ");
    assert_int_equal(w->out.verdict, SESSILE_REFUSED);
    assert_int_equal(w->out.fallback.verdict, SESSILE_APPLIED);
    assert_int_equal(sessile_run_context(w->run, &list, &count, NULL), SESSILE_OK);
    sessile_free(list);
    assert_int_equal(count, 2);
    assert_int_equal(context_size(w), 4);
    assert_int_equal(entries_with(w, "refusal"), 0);

    assert_string_equal(compact(w, 0), "compact:manual fallback/compact:manual ");
    assert_int_equal(context_size(w), 2);
    assert_int_equal(entries_with(w, "\"type\":\"refusal\""), 1);
}

static void a_fallback_is_the_calls_the_sessions_or_the_stores(void **state)
{
    world *w = *state;
    use_fallback(w);
    turn(w);
    sessile_policy *stores = w->fallback;
    w->fallback = NULL;
    assert_string_equal(turn(w), "truncate:turn ");
    sessile_store_set_fallback(w->store, stores);
    sessile_policy_free(stores);
    assert_string_equal(turn(w), "truncate:turn fallback/truncate:turn ");
    assert_string_equal(w->out.fallback.policy, "spare");
    w->options.no_fallback = 1;
    assert_string_equal(turn(w), "truncate:turn ");
    w->options.no_fallback = 0;

    sessile_session_options o;
    assert_int_equal(sessile_session_close(w->s, NULL), SESSILE_OK);
    sessile_run_free(w->run);
    w->run = NULL;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.fallback = host(w, "closer", SESSILE_HOOK_TRUNCATE);
    assert_int_equal(sessile_resume(&w->s, w->store, &o, NULL), SESSILE_OK);
    sessile_policy_free(o.fallback);
    turn(w);
    assert_string_equal(w->out.fallback.policy, "closer");
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(messages_are_counted_from_the_last_compaction),
        IN_WORLD(the_count_goes_on_in_another_handle),
        IN_WORLD(what_comes_to_nothing_is_tried_again_as_many_messages_later),
        IN_WORLD(a_truncate_that_cuts_each_turn_puts_nothing_off),
        IN_WORLD(appended_messages_count_and_run_nothing),
        IN_WORLD(a_turn_without_a_policy_leaves_it_to_the_next),
        IN_WORLD(seconds_are_judged_by_the_turns_time),
        IN_WORLD(a_share_of_the_window_fires_once_it_is_used),
        IN_WORLD(a_share_that_stays_used_waits_for_more),
        IN_WORLD(what_does_not_fit_is_compacted_for_overflow),
        IN_WORLD(an_overflow_that_lasts_asks_again_when_it_has_grown),
        IN_WORLD(overflow_comes_after_a_compact_that_did_not_do),
        IN_WORLD(a_policy_that_says_when_is_asked_unless_a_trigger_fires),
        IN_WORLD(the_little_that_a_trigger_saves_is_left_out),
        IN_WORLD(an_event_fires_when_the_trigger_lists_it),
        IN_WORLD(of_several_reasons_the_first_in_order_is_told),
        IN_WORLD(a_trigger_takes_the_place_of_the_one_further_out),
        IN_WORLD(a_trigger_that_makes_no_sense_is_invalid),
        IN_WORLD(a_refused_policy_has_its_fallback_on_the_same_context),
        IN_WORLD(a_fallback_that_fails_too_is_told_and_written_once),
        IN_WORLD(a_trigger_that_fired_fires_for_the_fallback),
        IN_WORLD(notes_of_what_was_refused_are_not_kept),
        IN_WORLD(a_persons_compaction_has_its_fallback_too),
        IN_WORLD(a_fallback_is_the_calls_the_sessions_or_the_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
