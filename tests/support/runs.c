/* runs.c: runs with policies that are the host's own functions */
#include "support/runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sessile.h"

char runs_folder[64];

sessile_store *run_store(const char *url)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "a passphrase of some length";
    o.policy_path = runs_folder;
    if (strcmp(url, "ram:") == 0)
        o.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&store, url, &o, &err), SESSILE_OK);
    return store;
}

sessile_session *session_at(sessile_store *store)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session *s;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    assert_int_equal(sessile_session_open(&s, store, &o, &err), SESSILE_OK);
    return s;
}

void session_done(sessile_session *s)
{
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
}

sessile_policy *host_policy(sessile_store *store, unsigned hooks)
{
    sessile_policy_step step = {"host", NULL, hooks};
    sessile_policy *p;
    sessile_error err;
    assert_int_equal(sessile_policy_load(&p, store, &step, 1, &err), SESSILE_OK);
    return p;
}

void run_answer(sessile_run *run, const sessile_need *need, host_script *sc)
{
    sessile_answer a = {SESSILE_OK, {NULL, 0}, 0};
    if (need->kind == SESSILE_NEED_MODEL) {
        sc->models++;
        snprintf(sc->request, sizeof sc->request, "%.*s", (int)need->request.size,
                 need->request.data);
        a.text = sessile_text(sc->model_text ? sc->model_text : "no model today");
        a.status = sc->model_text ? SESSILE_OK : SESSILE_IO;
    } else {
        strncat(sc->calls, sessile_hook_name(need->hook), 64);
        strncat(sc->calls, " ", 2);
        if (need->hook == SESSILE_HOOK_SHOULD_COMPACT)
            a.verdict = 1;
        if (sc->on)
            sc->on(need->hook, need->state, &a, sc->arg);
    }
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
}

void run_finish(sessile_run *run, host_script *sc, sessile_outcome *out)
{
    sessile_need need;
    sessile_error err;
    sessile_status status;
    while ((status = sessile_run_step(run, &need, &err)) == SESSILE_NEEDS)
        run_answer(run, &need, sc);
    if (status)
        print_message("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, out, &err), SESSILE_OK);
}

sessile_run *take_turn(sessile_session *s, sessile_policy *p, int n, host_script *sc,
                       sessile_outcome *out)
{
    static const char *const texts[] = {
        "{\"role\":\"user\",\"content\":\"a question\"}",
        "{\"role\":\"assistant\",\"content\":\"an answer\"}"};
    sessile_slice m[8];
    sessile_run_options o;
    sessile_error err;
    sessile_run *run;
    for (int i = 0; i < n; i++)
        m[i] = sessile_text(texts[i % 2]);
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_turn_begin(&run, s, m, (size_t)n, &o, &err), SESSILE_OK);
    run_finish(run, sc, out);
    return run;
}

size_t context_size(sessile_session *s)
{
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, NULL),
                     SESSILE_OK);
    sessile_free(list);
    return count;
}

size_t message_count(sessile_session *s)
{
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_messages(s, NULL, &list, &count, NULL), SESSILE_OK);
    sessile_free(list);
    return count;
}

int entries_with(sessile_session *s, const char *text)
{
    sessile_entries *e;
    const char *json;
    size_t size;
    int n = 0;
    assert_int_equal(sessile_entries_open(&e, s, NULL, NULL), SESSILE_OK);
    while (!sessile_entries_next(e, NULL, &json, &size, NULL) && size)
        n += strstr(json, text) != NULL;
    sessile_entries_close(e);
    return n;
}

void drop_first(sessile_hook hook, sessile_state *state, sessile_answer *a, void *arg)
{
    (void)a;
    if (hook == *(sessile_hook *)arg)
        assert_int_equal(sessile_state_drop(state, 0, 0, NULL), SESSILE_OK);
}

void say_no(sessile_hook hook, sessile_state *state, sessile_answer *a, void *arg)
{
    (void)hook;
    (void)arg;
    assert_int_equal(sessile_state_drop(state, 0, 0, NULL), SESSILE_OK);
    a->status = SESSILE_POLICY;
    a->text = sessile_text("the disk of the policy is full");
}

sessile_run *turn_waiting(sessile_session *s, sessile_policy *p, sessile_need *need)
{
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"slow question\"}");
    sessile_run_options o;
    sessile_run *run;
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_turn_begin(&run, s, &m, 1, &o, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_step(run, need, NULL), SESSILE_NEEDS);
    return run;
}

int open_world(void **state)
{
    run_world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->store = run_store("ram:");
    w->s = session_at(w->store);
    *state = w;
    return 0;
}

int close_world(void **state)
{
    run_world *w = *state;
    session_done(w->s);
    sessile_store_close(w->store);
    free(w);
    return 0;
}

int make_folder(void **state)
{
    (void)state;
    strcpy(runs_folder, "/tmp/sessile-run.XXXXXX");
    return mkdtemp(runs_folder) ? 0 : -1;
}

int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", runs_folder);
    return system(command);
}
