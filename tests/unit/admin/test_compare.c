/*
 * test_compare.c: a deep verification: changes of sessions that have no event, and events
 * whose changes are not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/compare.h"
#include "guard/guard.h"
#include "support/audits.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/runs.h"
#include "support/sessions.h"

#include <cmocka.h>

typedef struct world {
    char *folder, path[600];
    sessile_store *store, *view, *admin;
    sessile_audit_report report;
    sessile_error err;
} world;

static void guard_it(world *w)
{
    sessile_guard_options go;

    sessile_guard_options_init(&go);
    go.audit.on = 1;
    go.profile = "standard";
    must(sessile_store_guard(w->store, &go, &w->err), &w->err);
}

static sessile_store *view_of(world *w, const char *user, const char *role)
{
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.roles = &role;
    c.role_count = 1;
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    return view;
}

static void open_all(world *w)
{
    w->store = keyed_open(w->path, KEYED_OLD);
    guard_it(w);
    w->view = view_of(w, "ann", "editor");
    w->admin = view_of(w, "root", "admin");
}

static void close_all(world *w)
{
    sessile_store_close(w->view);
    sessile_store_close(w->admin);
    sessile_store_close(w->store);
}

static sessile_session *opened(world *w, sessile_store *store, const char *id)
{
    sessile_session_options o = named(id);
    sessile_session *s;

    must(sessile_session_open(&s, store, &o, &w->err), &w->err);
    return s;
}

static int world_begin(void **state)
{
    world *w = calloc(1, sizeof *w);

    w->folder = folder_make();
    snprintf(w->path, sizeof w->path, "%s/store", w->folder);
    open_all(w);
    /* the audit begins with the event of the first change */
    session_closed(opened(w, w->view, "first"));
    *state = w;
    return 0;
}

static int world_end(void **state)
{
    world *w = *state;

    close_all(w);
    folder_remove(w->folder);
    free(w);
    return 0;
}

/* The store as somebody opens it who goes around the guard. */
static store_core *bypass(const world *w)
{
    sessile_store_options o;
    sessile_error err;
    store_core *st;

    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = KEYED_OLD;
    must(store_handle_open(&st, w->path, &o, &err), &err);
    return st;
}

static void write_unseen(const world *w, const char *id, const char *user)
{
    sessile_store bare = {.core = bypass(w), .alloc = allocator_default};
    sessile_session_options o = named(id);
    sessile_session *s;
    sessile_error err;

    o.user = sessile_text(user);
    must(sessile_session_open(&s, &bare, &o, &err), &err);
    keyed_say(s, "nobody saw this");
    session_closed(s);
    store_handle_close(bare.core);
}

static const sessile_audit_report *verify(world *w)
{
    sessile_audit_verify_options o;
    sessile_audit_verification *v;
    char root[SESSILE_AUDIT_KEY];
    sessile_status status;

    sessile_audit_verify_options_init(&o);
    o.deep = 1;
    must(audit_flush(w->store->who->guard->audit, &w->err), &w->err);
    must(sessile_audit_root(w->store, root, &w->err), &w->err);
    must(sessile_audit_verify_begin(&v, w->store, root, &o, &w->err), &w->err);
    do
        status = sessile_audit_verify_step(v, &w->report, &w->err);
    while (status == SESSILE_NEEDS);
    must(status, &w->err);
    sessile_audit_verify_free(v);
    assert_true(w->report.holds);
    assert_int_equal(w->report.logs, w->report.logs_of);
    return &w->report;
}

static void assert_lost(world *w, uint64_t changes, uint64_t events)
{
    const sessile_audit_report *r = verify(w);

    if (r->without_event != changes || r->without_change != events)
        for (size_t i = 0; i < r->lost_count; i++)
            print_message("lost: %s %s/%s %08x %s\n",
                          r->lost[i].is_event ? "event" : "entry", r->lost[i].agent,
                          r->lost[i].session, (unsigned)r->lost[i].entry,
                          r->lost[i].event);
    assert_int_equal(r->without_event, changes);
    assert_int_equal(r->without_change, events);
}

static void what_goes_through_the_guard_has_its_events(void **state)
{
    world *w = *state;
    sessile_session *s = opened(w, w->view, "s"), *child, *other;
    sessile_session_options o = named("forked");
    sessile_checkpoint_options co = {.state = sessile_text("{\"step\":1}")};
    sessile_restored *restored;
    sessile_delete_options soft = {.soft = 1};
    sessile_id id, first;

    keyed_say(s, "one");
    must(sessile_head(s, &first, &w->err), &w->err);
    must(sessile_set_title(s, sessile_text("a title"), &w->err), &w->err);
    must(sessile_label(s, first, sessile_text("here"), &w->err), &w->err);
    must(sessile_set_metadata(s, sessile_text("{\"a\":1}"), &w->err), &w->err);
    must(sessile_checkpoint(s, &co, &id, &w->err), &w->err);
    must(sessile_restore(s, id, 1, &restored, &w->err), &w->err);
    sessile_free(restored);
    must(sessile_fork(&other, s, first, &o, &w->err), &w->err);
    keyed_say(other, "in the fork");
    session_closed(other);
    o = named("child");
    must(sessile_child(&child, s, 1, &o, &w->err), &w->err);
    keyed_say(child, "a task");
    must(sessile_child_merged(s, child,
                              sessile_text("{\"role\":\"user\",\"content\":\"done\"}"),
                              &id, &w->err),
         &w->err);
    session_closed(child);
    must(sessile_branch(s, first, (sessile_slice){NULL, 0}, &id, &w->err), &w->err);
    keyed_say(s, "elsewhere");
    session_closed(s);
    o = named("s");
    o.user = sessile_text("ann");
    must(sessile_delete(w->admin, &o, &soft, NULL, &w->err), &w->err);
    must(sessile_undelete(w->admin, &o, sessile_text("ann"), &w->err), &w->err);
    /* by another, of ann's; removed, and made again */
    o = named("forked");
    o.user = sessile_text("ann");
    must(sessile_delete(w->admin, &o, NULL, NULL, &w->err), &w->err);
    session_closed(opened(w, w->view, "forked"));
    s = opened(w, w->admin, "of-root");
    keyed_say(s, "root's");
    session_closed(s);
    s = opened(w, w->store, "of-nobody");
    keyed_say(s, "the host's");
    session_closed(s);
    assert_lost(w, 0, 0);
    assert_true(w->report.changes > 15);
    assert_int_equal(w->report.unread, 0);
}

static void a_turn_names_what_it_wrote(void **state)
{
    world *w = *state;
    sessile_session *s = opened(w, w->view, "s");
    const sessile_slice messages[] = {
        sessile_text("{\"role\":\"user\",\"content\":\"why?\"}"),
        sessile_text("{\"role\":\"assistant\",\"content\":\"so\"}")};
    sessile_run *run;
    sessile_need need;

    must(sessile_turn_begin(&run, s, messages, 2, NULL, &w->err), &w->err);
    must(sessile_run_step(run, &need, &w->err), &w->err);
    sessile_run_free(run);
    must(sessile_turn_begin(&run, s, messages, 2, NULL, &w->err), &w->err);
    sessile_run_free(run); /* nobody knows what it came to */
    session_closed(s);
    assert_lost(w, 0, 0);
    assert_true(w->report.changes >= 6);
}

static void a_change_around_the_guard_is_named(void **state)
{
    world *w = *state;
    sessile_session *s = opened(w, w->view, "s");
    const sessile_audit_lost *lost;

    keyed_say(s, "one");
    write_unseen(w, "s", "ann");
    keyed_say(s, "three");
    session_closed(s);
    assert_lost(w, 1, 0);
    lost = &w->report.lost[0];
    assert_false(lost->is_event);
    assert_string_equal(lost->session, "s");
    assert_int_equal(lost->entry, 2);
    assert_true(lost->time_ms > 0);
    assert_memory_equal(lost->owner, "o_", 2);
    write_unseen(w, "made", "bob"); /* and a session: its entry 0, and a message */
    assert_lost(w, 3, 0);
    assert_int_equal(w->report.lost_count, 3);
}

static void a_handle_from_before_the_guard_is_around_it(void **state)
{
    world *w = *state;
    sessile_store *store;
    sessile_session *old, *s;
    sessile_guard_options go;
    char path[700];

    snprintf(path, sizeof path, "%s/other", w->folder);
    store = keyed_open(path, KEYED_OLD);
    old = opened(w, store, "old");
    sessile_guard_options_init(&go);
    go.audit.on = 1;
    must(sessile_store_guard(store, &go, &w->err), &w->err);
    s = opened(w, store, "s");
    keyed_say(old, "unseen");
    keyed_say(s, "seen");
    session_closed(s);
    session_closed(old);
    world other = {.store = store};
    assert_lost(&other, 1, 0);
    assert_string_equal(other.report.lost[0].session, "old");
    sessile_store_close(store);
}

static void what_events_name_and_is_not_there_is_found(void **state)
{
    world *w = *state;
    sessile_session *s = opened(w, w->view, "s");
    char folder[NAME_SIZE], name[NAME_SIZE];
    session_names names;
    uint64_t bytes;

    place_files_only();
    keyed_say(s, "one");
    session_closed(s);
    names = (session_names){sessile_text("s"), sessile_text("default"),
                            sessile_text("ann"), NAMES_SESSION};
    names.agent = sessile_text(w->store->core->agent);
    names_place(w->store->core, &names, folder, name);
    must(log_remove(&w->store->core->backend, w->store->core->keys, folder, name, NULL,
                    1000, &bytes, &w->err),
         &w->err);
    assert_lost(w, 0, 1);
    assert_true(w->report.lost[0].is_event);
    assert_memory_equal(w->report.lost[0].event, "00-000/", 7);
    assert_int_equal(w->report.lost[0].entry, 1);
    /* made again without the event: shorter than events say, and not known to be removed
     */
    write_unseen(w, "s", "ann");
    assert_true(verify(w)->without_event + w->report.without_change <= 2);
}

static void what_was_done_while_the_guard_was_off_is_counted_apart(void **state)
{
    world *w = *state;
    sessile_guard_options off;

    close_all(w);
    w->store = keyed_open(w->path, KEYED_OLD);
    sessile_guard_options_init(&off);
    off.off = 1;
    must(sessile_store_guard(w->store, &off, &w->err), &w->err);
    session_closed(opened(w, w->store, "off"));
    sessile_store_close(w->store);
    open_all(w);
    write_unseen(w, "on", "ann");
    assert_lost(w, 2, 0);
    assert_true(w->report.outside >= 1);
}

static void more_than_fits_is_compared_in_parts(void **state)
{
    world *w = *state;
    sessile_audit_report r = {.holds = 1};
    sessile_status status;
    compare *c;

    for (int i = 0; i < 20; i++) {
        char id[20];
        snprintf(id, sizeof id, "s%d", i);
        sessile_session *s = opened(w, w->view, id);
        keyed_say(s, "one");
        session_closed(s);
    }
    write_unseen(w, "s7", "ann");
    must(audit_flush(w->store->who->guard->audit, &w->err), &w->err);
    must(compare_begin(&c, w->store->core, w->store->core, &w->err), &w->err);
    compare_set_room(c, 4, 100);
    do
        status = compare_step(c, &r, &w->err);
    while (status == SESSILE_NEEDS);
    must(status, &w->err);
    compare_free(c);
    assert_int_equal(r.without_event, 1);
    assert_string_equal(r.lost[0].session, "s7");
    assert_int_equal(r.without_change, 0);
    assert_int_equal(r.logs, 21);
    assert_int_equal(r.changes + r.outside, 1 + 20 * 2 + 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    const struct CMUnitTest tests[] = {
        TEST(what_goes_through_the_guard_has_its_events),
        TEST(a_turn_names_what_it_wrote),
        TEST(a_change_around_the_guard_is_named),
        TEST(a_handle_from_before_the_guard_is_around_it),
        TEST(what_events_name_and_is_not_there_is_found),
        TEST(what_was_done_while_the_guard_was_off_is_counted_apart),
        TEST(more_than_fits_is_compared_in_parts),
    };
    return cmocka_run_group_tests_name("a deep verification", tests, NULL, NULL);
}
