/*
 * test_events.c: what the audit says of calls, and what it never says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"
#include "sessile_memory.h"
#include "support/audits.h"
#include "support/check.h"
#include "support/events.h"
#include "support/faulty.h"
#include "support/keyed.h"
#include "support/sessions.h"

#include <cmocka.h>

#define CANARY "canary7391"

typedef struct world {
    char *folder, path[600];
    sessile_store *store, *view;
    sessile_session *s;
    faulty f;
    events e;
    sessile_error err;
} world;

static sessile_store *view_of(world *w, const char *user, const char *role)
{
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.actor = sessile_text("helper");
    c.roles = &role;
    c.role_count = 1;
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    return view;
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    sessile_session_options o = named("s");
    sessile_guard_options go;

    w->folder = folder_make();
    snprintf(w->path, sizeof w->path, "%s/store", w->folder);
    faulty_init(&w->f, &os_posix);
    os_current = &w->f.table;
    w->store = keyed_open(w->path, KEYED_OLD);
    sessile_guard_options_init(&go);
    go.audit.on = 1;
    must(sessile_store_guard(w->store, &go, &w->err), &w->err);
    w->view = view_of(w, "ann", "admin");
    must(sessile_create(&w->s, w->view, &o, &w->err), &w->err);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;

    events_free(&w->e);
    if (w->s)
        session_closed(w->s);
    sessile_store_close(w->view);
    sessile_store_close(w->store);
    os_current = &os_posix;
    faulty_deinit(&w->f);
    folder_remove(w->folder);
    free(w);
    return 0;
}

static events *look(world *w)
{
    events_free(&w->e);
    events_read(&w->e, w->store->who->guard, w->store->core);
    return &w->e;
}

static sessile_slice canary(const char *format)
{
    static char text[200];
    snprintf(text, sizeof text, format, CANARY);
    return sessile_text(text);
}

static void an_event_says_who_and_what(void **state)
{
    world *w = *state;
    sessile_id id;

    must(sessile_append(w->s, sessile_text("{\"role\":\"user\",\"content\":\"hello\"}"),
                        &id, &w->err),
         &w->err);
    events *e = look(w);
    const char *last = e->texts[e->count - 1];
    assert_non_null(strstr(last, "\"operation\":\"append\""));
    assert_non_null(strstr(last, "\"user\":\"u_"));
    assert_non_null(strstr(last, "\"actor\":\"helper\""));
    assert_non_null(strstr(last, "\"role\":\"admin\""));
    assert_non_null(strstr(last, "\"method\":\"host\""));
    assert_non_null(strstr(last, "\"permission\":\"modify_session\""));
    assert_non_null(strstr(last, "\"session\":\"s\""));
    assert_non_null(strstr(last, "\"entry\":\"00000001\""));
    assert_non_null(strstr(last, "\"outcome\":\"success\""));
    assert_null(strstr(last, "\"owner\""));
    assert_null(strstr(last, "ann"));
    assert_events(e, 0, 1, "\"operation\":\"view\"", "\"outcome\":\"success\"");
    assert_events(e, 0, 1, "\"operation\":\"open\"", "\"role\":\"host\"");
}

static void reads_are_counted(void **state)
{
    world *w = *state;
    char *title;
    size_t size;

    for (int i = 0; i < 5; i++) {
        must(sessile_title(w->s, &title, &size, &w->err), &w->err);
        sessile_free(title);
    }
    assert_events(look(w), 0, 1, "\"operation\":\"read\"", "\"count\":5");
}

/* Both are in it: who tried, and whose it is, as a hash. */
static void a_refusal_has_the_rule_and_the_owner(void **state)
{
    world *w = *state;
    sessile_store *bob = view_of(w, "bob", "editor");
    sessile_session_options o = named("s");
    sessile_session *s;

    o.user = sessile_text("ann");
    assert_int_equal(sessile_resume(&s, bob, &o, NULL), SESSILE_DENIED);
    o.user = sessile_text(NULL);
    assert_int_equal(sessile_resume(&s, bob, &o, NULL), SESSILE_NOTFOUND);
    events *e = look(w);
    assert_events(e, 0, 1, "\"code\":\"DENIED\"", "\"owner\":\"o_");
    assert_events(e, 0, 1, "\"code\":\"NOTFOUND\"", "\"operation\":\"resume\"");
    assert_events(e, 0, 1, "\"owner\"", NULL);
    sessile_store_close(bob);
}

static void what_cannot_be_undone_is_said_before_and_after(void **state)
{
    world *w = *state;
    sessile_session_options o = named("s");
    sessile_delete_options d = {.reason = sessile_text("asked for")};

    session_closed(w->s);
    w->s = NULL;
    must(sessile_delete(w->view, &o, &d, NULL, &w->err), &w->err);
    stolen log; /* which ends with a seal */
    steal(w->store->core, "00-000", &log);
    assert_non_null(strstr(log.texts[log.count - 1], "\"type\":\"seal\""));
    stolen_free(&log);
    events *e = look(w);
    assert_events(e, 0, 1, "\"operation\":\"delete\"", "\"outcome\":\"intent\"");
    assert_events(e, 0, 1, "\"operation\":\"delete\"", "\"outcome\":\"success\"");
    assert_events(e, 0, 2, "\"reason\":\"asked for\"", "\"session\":\"s\"");
}

static void a_run_has_a_beginning_and_an_end(void **state)
{
    world *w = *state;
    sessile_slice hello = sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_need need;
    sessile_run *run;

    for (int freed = 0; freed < 2; freed++) {
        must(sessile_turn_begin(&run, w->s, &hello, 1, NULL, &w->err), &w->err);
        if (!freed)
            must(sessile_run_step(run, &need, &w->err), &w->err);
        sessile_run_free(run);
    }
    events *e = look(w);
    assert_events(e, 0, 2, "\"operation\":\"turn\"", "\"outcome\":\"intent\"");
    assert_events(e, 0, 1, "\"operation\":\"turn\"", "\"outcome\":\"success\"");
    assert_events(e, 0, 1, "\"operation\":\"turn\"", "\"outcome\":\"unknown\"");
}

/* Not one for each log that is checked, nor for each hit. */
static void steps_add_no_events(void **state)
{
    world *w = *state;
    sessile_slice hello = sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_search_options so;
    sessile_search *search;
    sessile_found found;
    sessile_check *check;
    sessile_checked step;
    size_t hits = 0, logs = 0;

    for (int i = 0; i < 3; i++)
        must(sessile_append(w->s, hello, NULL, &w->err), &w->err);
    sessile_search_options_init(&so);
    so.text = sessile_text("hello");
    must(sessile_search_open(&search, w->view, &so, &w->err), &w->err);
    do {
        must(sessile_search_next(search, &found, &w->err), &w->err);
        hits += found.id.size != 0;
    } while (found.id.size);
    sessile_search_close(search);
    for (int salvage = 0; salvage < 2; salvage++) {
        must(sessile_check_open(&check, w->view, NULL, salvage, &w->err), &w->err);
        do {
            must(sessile_check_next(check, &step, &w->err), &w->err);
            logs += step.file != NULL;
        } while (step.file);
        sessile_check_close(check);
    }
    assert_true(hits >= 3 && logs >= 4);
    events *e = look(w);
    assert_events(e, 0, 1, "\"operation\":\"search\"", NULL);
    assert_events(e, 0, 2, "\"operation\":\"check\"", NULL);
    assert_events(e, 0, 1, "\"operation\":\"check\"", "\"salvage\":1");
}

/* The store was opened, which is an event: the view of who opened it is none. */
static void who_opened_the_store_is_no_second_event(void **state)
{
    world *w = *state;
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.os = 1;
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    sessile_store_close(view);
    events *e = look(w);
    assert_events(e, 0, 1, "\"operation\":\"open\"", "\"role\":\"host\"");
    assert_events(e, 0, 1, "\"operation\":\"view\"", NULL); /* ann's */
}

static void no_content_is_in_any_event(void **state)
{
    world *w = *state;
    sessile_memory_options mo;
    sessile_memory_write_entry me;
    sessile_memory *m;
    sessile_memory_row *rows;
    size_t count;

    (void)sessile_append(w->s, canary("{\"role\":\"user\",\"content\":\"%s\"}"), NULL,
                         NULL);
    (void)sessile_append(w->s, canary("{\"role\":\"%s\"}"), NULL, NULL);
    (void)sessile_set_title(w->s, canary("%s"), NULL);
    (void)sessile_set_metadata(w->s, canary("{\"a\":\"%s\"}"), NULL);
    (void)sessile_label(w->s, 1, canary("%s"), NULL);
    (void)sessile_checkpoint(
        w->s, &(sessile_checkpoint_options){.state = canary("{\"a\":\"%s\"}")}, NULL,
        NULL);
    (void)sessile_suspend(w->s, canary("%s"), sessile_text(NULL), NULL, NULL);
    sessile_memory_options_init(&mo);
    must(sessile_memory_open(&m, w->view, &mo, &w->err), &w->err);
    sessile_memory_write_init(&me);
    me.key = sessile_text("city");
    me.value = canary("%s");
    must(sessile_memory_write(m, &me, 1, NULL, &w->err), &w->err);
    must(sessile_memory_search(m, canary("%s"), NULL, &rows, &count, &w->err), &w->err);
    sessile_free(rows);
    sessile_memory_close(m);
    events *e = look(w);
    assert_events(e, 0, 0, CANARY, NULL);
    assert_events(e, 0, 1, "\"keys\":[\"city\"]", "\"outcome\":\"success\"");
}

/* The call that met it is done, and says so; after it nothing is changed, and reading and
 * checking go on. */
static void a_full_disk_stops_changes(void **state)
{
    world *w = *state;
    sessile_slice hello = sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_check *check;
    uint64_t before, now;
    char *title;
    size_t size;

    must(sessile_append(w->s, hello, NULL, &w->err), &w->err);
    must(sessile_event_count(w->s, &before, &w->err), &w->err);
    /* the append is written, its event is not */
    faulty_plan(&w->f, FAULTY_BIT(FAULTY_WRITE), 1, UINT64_MAX, FAULTY_REFUSED, ENOSPC);
    assert_int_equal(sessile_append(w->s, hello, NULL, &w->err), SESSILE_FULL);
    assert_non_null(strstr(w->err.message, "this was done, and is not in the audit"));
    assert_string_equal(w->err.rule, "audit");
    assert_int_equal(sessile_append(w->s, hello, NULL, &w->err), SESSILE_FULL);
    assert_non_null(strstr(w->err.message, "nothing was done"));
    must(sessile_title(w->s, &title, &size, &w->err), &w->err);
    sessile_free(title);
    must(sessile_check_open(&check, w->view, NULL, 0, &w->err), &w->err);
    sessile_check_close(check);
    must(sessile_event_count(w->s, &now, &w->err), &w->err);
    assert_int_equal(now, before + 1);
    faulty_none(&w->f);
    must(sessile_append(w->s, hello, NULL, &w->err), &w->err);
    assert_events(look(w), 0, 1, "\"operation\":\"audit_resumed\"", "\"role\":\"host\"");
}

/* A function that enters and does not leave. */
static sessile_status forgets(sessile_session *session, sessile_error *err)
{
    GUARD_ENTER(clear, session);
    (void)core;
    return SESSILE_OK;
}

static void a_call_that_does_not_leave_is_seen(void **state)
{
    world *w = *state;

    must(forgets(w->s, &w->err), &w->err);
    assert_events(look(w), 0, 1, "\"operation\":\"branch\"", "\"outcome\":\"unknown\"");
}

static void a_ram_store_has_no_audit_of_its_own(void **state)
{
    world *w = *state;
    sessile_guard_options go;
    sessile_session_options o = named("r");
    sessile_session *s;
    sessile_store *ram;

    must(sessile_open(&ram, "ram:", NULL, &w->err), &w->err);
    sessile_guard_options_init(&go);
    go.audit.on = 1;
    assert_int_equal(sessile_store_guard(ram, &go, &w->err), SESSILE_UNSUPPORTED);
    assert_non_null(strstr(w->err.message, "another store"));
    go.audit.store = w->store;
    must(sessile_store_guard(ram, &go, &w->err), &w->err);
    must(sessile_create(&s, ram, &o, &w->err), &w->err);
    session_closed(s);
    sessile_store_close(ram);
    assert_events(look(w), 0, 1, "\"operation\":\"create\"", "\"session\":\"r\"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(an_event_says_who_and_what),
        TEST(reads_are_counted),
        TEST(steps_add_no_events),
        TEST(who_opened_the_store_is_no_second_event),
        TEST(a_refusal_has_the_rule_and_the_owner),
        TEST(what_cannot_be_undone_is_said_before_and_after),
        TEST(a_run_has_a_beginning_and_an_end),
        TEST(no_content_is_in_any_event),
        TEST(a_full_disk_stops_changes),
        TEST(a_call_that_does_not_leave_is_seen),
        TEST(a_ram_store_has_no_audit_of_its_own),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
