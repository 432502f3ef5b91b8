/* triggers.c: turns and compactions under triggers, with a clock of the test's own */
#include "support/triggers.h"

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

int64_t world_now_ms;

int64_t world_tell_now(void *ud)
{
    (void)ud;
    return world_now_ms;
}

void world_open_store(world *w, const sessile_triggers *triggers)
{
    const os_table *was = os_current;
    sessile_store_options o;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    o.config.triggers = triggers;
    os_current = &w->os;
    assert_int_equal(sessile_open(&w->store, w->folder, &o, &err), SESSILE_OK);
    os_current = was;
}

void world_open_session(world *w, const sessile_triggers *triggers)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.config.triggers = triggers;
    assert_int_equal(sessile_session_open(&w->s, w->store, &o, &err), SESSILE_OK);
}

sessile_policy *world_host(world *w, const char *name, unsigned hooks)
{
    sessile_policy_step step = {name, NULL, hooks};
    sessile_policy *p;
    assert_int_equal(sessile_policy_load(&p, w->store, &step, 1, NULL), SESSILE_OK);
    return p;
}

void world_close(world *w)
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

void world_reopen(world *w)
{
    world_close(w);
    world_open_store(w, NULL);
    world_open_session(w, NULL);
    w->policy = world_host(w, "host", SESSILE_HOOK_COMPACT);
}

int world_set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    strcpy(w->folder, "/tmp/sessile-trigger.XXXXXX");
    if (!mkdtemp(w->folder))
        return -1;
    world_now_ms = INT64_C(1700000000000);
    w->os = *os_current;
    w->os.now_ms = world_tell_now;
    sessile_run_options_init(&w->options);
    world_open_store(w, NULL);
    world_open_session(w, NULL);
    w->policy = world_host(w, "host", SESSILE_HOOK_COMPACT);
    w->compact = CUT;
    *state = w;
    return 0;
}

int world_tear_down(void **state)
{
    world *w = *state;
    char command[96];
    world_close(w);
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    int failed = system(command);
    free(w);
    return failed;
}

void world_cut(sessile_state *state, size_t keep)
{
    size_t count = sessile_state_count(state);
    if (count > keep)
        assert_int_equal(sessile_state_drop(state, 0, count - keep - 1, NULL),
                         SESSILE_OK);
}

void world_do(world *w, act what, const sessile_need *need, sessile_answer *a)
{
    size_t count = sessile_state_count(need->state);
    if (w->note)
        assert_int_equal(sessile_state_set_vars(need->state, sessile_text(w->note), NULL),
                         SESSILE_OK);
    switch (what) {
    case NOTHING:
        break;
    case CUT:
        world_cut(need->state, 2);
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

void world_answer(world *w, const sessile_need *need)
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
        world_do(w, w->instead, need, &a);
    else if (need->hook == SESSILE_HOOK_TRUNCATE)
        world_do(w, w->truncate, need, &a);
    else if (need->hook == SESSILE_HOOK_COMPACT)
        world_do(w, w->compact, need, &a);
    assert_int_equal(sessile_run_reply(w->run, &a, NULL), SESSILE_OK);
}

void world_drive(world *w)
{
    sessile_need need;
    sessile_error err;
    sessile_status status;
    while ((status = sessile_run_step(w->run, &need, &err)) == SESSILE_NEEDS)
        world_answer(w, &need);
    if (status)
        print_message("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_run_outcome(w->run, &w->out, NULL), SESSILE_OK);
}

sessile_run_options world_options(world *w)
{
    sessile_run_options o = w->options;
    o.config.policy = w->policy;
    o.config.fallback = w->fallback;
    w->calls[0] = 0;
    sessile_run_free(w->run);
    w->run = NULL;
    return o;
}

const char *world_turn(world *w)
{
    sessile_slice m[] = {sessile_text("{\"role\":\"user\",\"content\":\"a question\"}"),
                         sessile_text("{\"role\":\"assistant\",\"content\":\"so\"}")};
    sessile_run_options o = world_options(w);
    assert_int_equal(sessile_turn_begin(&w->run, w->s, m, 2, &o, NULL), SESSILE_OK);
    world_drive(w);
    return w->calls;
}

const char *world_compact(world *w, int plan)
{
    sessile_run_options o = world_options(w);
    assert_int_equal(
        (plan ? sessile_plan_begin : sessile_compact_begin)(&w->run, w->s, &o, NULL),
        SESSILE_OK);
    world_drive(w);
    return w->calls;
}

int world_entries_with(world *w, const char *text)
{
    sessile_entries *e;
    const char *json;
    size_t size;
    int n = 0;
    assert_int_equal(sessile_entries_open(&e, w->s, NULL, NULL), SESSILE_OK);
    while (!sessile_entries_next(e, NULL, &json, &size, NULL) && size)
        n += strstr(json, text) != NULL;
    sessile_entries_close(e);
    return n;
}

size_t world_context_size(world *w)
{
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_context(w->s, SESSILE_NO_ID, &list, &count, NULL, NULL),
                     SESSILE_OK);
    sessile_free(list);
    return count;
}

void world_use(world *w, sessile_triggers t)
{
    w->t = t;
    w->options.config.triggers = &w->t;
}
