/*
 * test_read.c: reading the audit: the order of lanes, filters, names, cursors, waiting,
 * damage; and what becomes of it when its first logs are removed.
 */
#include "support/audits.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/read.h"
#include "audit/retain.h"
#include "sessile_privacy.h"

typedef struct scene {
    char *folder, path[600];
    sessile_store *store;
    char root[SEAL_HEX];
} scene;

static int set_up(void **state)
{
    scene *s = calloc(1, sizeof *s);

    s->folder = folder_make();
    snprintf(s->path, sizeof s->path, "%s/store", s->folder);
    s->store = keyed_open(s->path, KEYED_OLD);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;

    sessile_store_close(s->store);
    folder_remove(s->folder);
    free(s);
    return 0;
}

static void write_one(audit_log *a, const char *operation, const char *user,
                      audit_outcome is)
{
    audit_event e = event_of(operation, user);
    sessile_error err;

    e.outcome.is = is;
    e.operation.session = sessile_text(user ? "s-of-user" : "s");
    e.who.agent = sessile_text("coder");
    must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
}

/* The operations of what a reader returns from now on, with a space after each. */
static void read_all(sessile_audit_reader *r, char *out, size_t room)
{
    sessile_audit_event e;
    sessile_error err;

    out[0] = 0;
    for (;;) {
        must(sessile_audit_next(r, &e, &err), &err);
        if (!e.id.size)
            return;
        assert_true(strlen(out) + e.operation.size + 2 < room);
        strncat(out, e.operation.data, e.operation.size);
        strcat(out, " ");
    }
}

static sessile_audit_reader *reader(scene *s, const sessile_audit_filter *o)
{
    sessile_audit_reader *r;
    sessile_error err;

    must(sessile_audit_open(&r, s->store, o, &err), &err);
    return r;
}

static void assert_read(scene *s, const sessile_audit_filter *o, const char *expected)
{
    sessile_audit_reader *r = reader(s, o);
    char got[4000];

    read_all(r, got, sizeof got);
    assert_string_equal(got, expected);
    sessile_audit_close(r);
}

static void *hold_for_a_while(void *held)
{
    os_posix.sleep_ms(NULL, 300);
    lane_end(held);
    return NULL;
}

/* Another process's audit, which has written one event to a lane of its own. */
static audit_log *in_another_lane(scene *s, uint64_t part_bytes, const char *operation)
{
    store_core *st = s->store->core;
    pthread_t thread;
    sessile_error err;
    audit_log *a;
    lane *held;

    must(lane_open(&held, st, 0, LANE_BYTES, &err), &err);
    must(lane_begin(held, 100, &err), &err);
    must(audit_open(&a, st, &(audit_options){.part_bytes = part_bytes}, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, hold_for_a_while, held), 0);
    write_one(a, operation, "bob", AUDIT_SUCCESS);
    pthread_join(thread, NULL);
    lane_close(held);
    return a;
}

/* ------------------------------------------------------------------ reading */

static void there_is_no_audit_before_the_first_event(void **state)
{
    scene *s = *state;
    sessile_audit_reader *r;
    sessile_error err;

    assert_refused(sessile_audit_open(&r, s->store, NULL, &err), SESSILE_NOTFOUND, &err,
                   "no audit");
    assert_null(r);
}

/* Two lanes, written in turn. */
static void lanes_are_merged_by_time(void **state)
{
    scene *s = *state;
    audit_log *a = audit_opened(s->store->core), *b;

    write_one(a, "a1", NULL, AUDIT_SUCCESS);
    b = in_another_lane(s, 0, "b1");
    for (int i = 0; i < 3; i++) {
        os_posix.sleep_ms(NULL, 3);
        write_one(a, "a", NULL, AUDIT_SUCCESS);
        os_posix.sleep_ms(NULL, 3);
        write_one(b, "b", NULL, AUDIT_SUCCESS);
    }
    assert_read(s, NULL, "a1 b1 a b a b a b ");
    audit_closed(a);
    audit_closed(b);
}

static void filters_select(void **state)
{
    scene *s = *state;
    audit_log *a = audit_opened(s->store->core);
    sessile_audit_filter o;
    sessile_audit_event e;
    sessile_audit_reader *r;
    sessile_error err;
    char pseudonym[PSEUDONYM_SIZE];
    int64_t middle;

    write_one(a, "one", NULL, AUDIT_SUCCESS);
    write_one(a, "two", "ann", AUDIT_SUCCESS);
    write_one(a, "three", "bob", AUDIT_FAILURE);
    s->store->core->os->sleep_ms(s->store->core->os->ud, 5);
    middle = s->store->core->os->now_ms(s->store->core->os->ud);
    s->store->core->os->sleep_ms(s->store->core->os->ud, 5);
    write_one(a, "four", "ann", AUDIT_FAILURE);
    audit_closed(a);
#define ASKED(...) (o = (sessile_audit_filter){__VA_ARGS__}, &o)
    assert_read(s, NULL, "one two three four ");
    assert_read(s, ASKED(.user = sessile_text("ann")), "two four ");
    assert_read(s, ASKED(.user = sessile_text("zoe")), "");
    assert_read(s, ASKED(.operation = sessile_text("three")), "three ");
    assert_read(s, ASKED(.operation = sessile_text("thre")), "");
    assert_read(s, ASKED(.outcome = sessile_text("failure")), "three four ");
    assert_read(s, ASKED(.session = sessile_text("s")), "one ");
    assert_read(s, ASKED(.agent = sessile_text("coder"), .limit = 2), "one two ");
    assert_read(s, ASKED(.since_ms = middle), "four ");
    assert_read(s, ASKED(.until_ms = middle), "one two three ");
    assert_read(s, ASKED(.user = sessile_text("ann"), .outcome = sessile_text("failure")),
                "four ");
    assert_refused(
        sessile_audit_open(&r, s->store, ASKED(.outcome = sessile_text("fine")), &err),
        SESSILE_INVALID, &err, "success, failure");
    /* by the pseudonym that an event has */
    r = reader(s, ASKED(.operation = sessile_text("two")));
    must(sessile_audit_next(r, &e, &err), &err);
    snprintf(pseudonym, sizeof pseudonym, "%.*s", (int)e.user.size, e.user.data);
    assert_memory_equal(pseudonym, "u_", 2);
    sessile_audit_close(r);
    assert_read(s, ASKED(.user = sessile_text(pseudonym)), "two four ");
}

/* A user whom nobody knows is looked for, and gets no secret by that. */
static void who_is_looked_for_gets_no_secret(void **state)
{
    scene *s = *state;
    audit_log *a = audit_opened(s->store->core);
    sessile_audit_filter o = {.user = sessile_text("stranger")};
    uint64_t before, after;
    sessile_error err;

    write_one(a, "one", "ann", AUDIT_SUCCESS);
    audit_closed(a);
    must(keyring_users(s->store->core->keys, &before, &err), &err);
    assert_read(s, &o, "");
    must(keyring_users(s->store->core->keys, &after, &err), &err);
    assert_int_equal(before, after);
}

static void names_are_opened_until_the_user_is_forgotten(void **state)
{
    scene *s = *state;
    audit_log *a = audit_opened(s->store->core);
    sessile_audit_filter o = {.names = 1};
    sessile_audit_event e;
    sessile_audit_reader *r;
    sessile_error err;
    uint64_t sessions;

    write_one(a, "one", "ann", AUDIT_SUCCESS);
    write_one(a, "two", "ann", AUDIT_SUCCESS);
    audit_closed(a);
    r = reader(s, &o);
    must(sessile_audit_next(r, &e, &err), &err);
    assert_int_equal(e.name.size, 3);
    assert_memory_equal(e.name.data, "ann", 3);
    assert_null(memmem(e.json.data, e.json.size, "ann", 3));
    sessile_audit_close(r);
    o.names = 0;
    r = reader(s, &o);
    must(sessile_audit_next(r, &e, &err), &err);
    assert_int_equal(e.name.size, 0);
    sessile_audit_close(r);
    must(sessile_forget(s->store, sessile_text("ann"), &sessions, &err), &err);
    o.names = 1;
    r = reader(s, &o);
    must(sessile_audit_next(r, &e, &err), &err);
    assert_int_equal(e.name.size, 0);
    assert_memory_equal(e.user.data, "u_", 2);
    sessile_audit_close(r);
}

/* From each place a second reader returns the rest; nothing is lost. */
static void a_cursor_goes_on_where_it_was(void **state)
{
    scene *s = *state;
    audit_log *a = audit_opened(s->store->core);
    sessile_audit_reader *r;
    sessile_audit_event e;
    sessile_error err;
    char all[1000] = "", name[20];

    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "op%d", i);
        write_one(a, name, i % 3 ? "ann" : NULL, AUDIT_SUCCESS);
        strcat(strcat(all, name), " ");
    }
    r = reader(s, NULL);
    for (const char *rest = all; *rest; rest = strchr(rest, ' ') + 1) {
        sessile_audit_filter o = {.names = 1};
        char *cursor;
        must(sessile_audit_cursor(r, &cursor, &err), &err);
        o.cursor = sessile_text(cursor);
        assert_read(s, &o, rest);
        sessile_free(cursor);
        must(sessile_audit_next(r, &e, &err), &err);
    }
    sessile_audit_close(r);
    audit_closed(a);
}

static void cursors_that_cannot_be(void **state)
{
    static const char *const bad[] = {
        "2",
        "x",
        "1 ",
        "1 00-000",
        "1 00-000/",
        "1 00-000/0000000",
        "1 00-000/0000000G",
        "1 00-000/000000001",
        "1 00-000/00000001 ",
        "1 00-000/00000001 00-001/00000001",
        "1 01-000/00000001 00-000/00000001",
        "1  00-000/00000001",
        "1 0-000/00000001",
        "1 100-000/00000001",
        "100-000/00000001",
    };
    audit_cursor c;
    sessile_error err;
    buf again;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (audit_cursor_parse(&c, sessile_text(bad[i]), &err) != SESSILE_INVALID)
            fail_msg("%s", bad[i]);
    must(audit_cursor_parse(&c, sessile_text("1 00-000/0000002a 07-1234/00000001"), &err),
         &err);
    assert_true(c.is[0] && c.is[7] && c.part[7] == 1234 && c.entry[0] == 42);
    buf_init(&again, &allocator_default);
    audit_cursor_print(&c, &again);
    assert_string_equal(again.data, "1 00-000/0000002a 07-1234/00000001");
    buf_deinit(&again);
}

/* A reader that has seen all waits, and sees what comes: in its lane, in a new part, in a
 * new lane. */
static void a_reader_waits_for_more(void **state)
{
    scene *s = *state;
    audit_log *a, *b;
    sessile_audit_reader *r;
    sessile_error err;
    char got[100];
    int changed;

    must(audit_open(&a, s->store->core, &(audit_options){.part_bytes = 1}, &err), &err);
    write_one(a, "one", NULL, AUDIT_SUCCESS);
    r = reader(s, NULL);
    read_all(r, got, sizeof got);
    must(sessile_audit_wait(r, 0, &changed, &err), &err);
    assert_int_equal(changed, 0);
    write_one(a, "two", NULL, AUDIT_SUCCESS);
    must(sessile_audit_wait(r, 5000, &changed, &err), &err);
    assert_int_equal(changed, 1);
    read_all(r, got, sizeof got);
    assert_string_equal(got, "two ");
    must(audit_seal(a, &err), &err);
    write_one(a, "three", NULL, AUDIT_SUCCESS); /* in the next part */
    must(sessile_audit_wait(r, 5000, &changed, &err), &err);
    read_all(r, got, sizeof got);
    assert_string_equal(got, "three ");
    b = in_another_lane(s, 0, "four");
    must(sessile_audit_wait(r, 5000, &changed, &err), &err);
    assert_int_equal(changed, 1);
    read_all(r, got, sizeof got);
    assert_string_equal(got, "four ");
    sessile_audit_close(r);
    audit_closed(a);
    audit_closed(b);
}

/* More than a step reads at a time, over many parts. */
static void a_long_audit_is_read_in_steps(void **state)
{
    enum { COUNT = 3000 };
    scene *s = *state;
    sessile_audit_reader *r;
    sessile_audit_event e;
    sessile_error err;
    audit_log *a;
    int count = 0;

    must(audit_open(&a, s->store->core, &(audit_options){.part_bytes = 200000}, &err),
         &err);
    for (int i = 0; i < COUNT; i++) {
        write_one(a, "op", i % 2 ? "ann" : NULL, AUDIT_SUCCESS);
        if (i % 500 == 499)
            must(audit_seal(a, &err), &err);
    }
    r = reader(s, &(sessile_audit_filter){.names = 1});
    for (;; count++) {
        must(sessile_audit_next(r, &e, &err), &err);
        if (!e.id.size)
            break;
        assert_int_equal(e.name.size, count % 2 ? 3 : 0);
    }
    assert_int_equal(count, COUNT);
    sessile_audit_close(r);
    must(audit_root(a, s->root, &err), &err);
    audit_closed(a);
    assert_holds(s->store->core, s->root);
}

/* Changes a byte in a line of a log. */
static void damage_line(const char *store, const char *log, int line)
{
    char *path = keyed_file(store, log, "");
    FILE *f = fopen(path, "r+b");
    int c;

    assert_non_null(f);
    while (line > 0)
        line -= fgetc(f) == '\n';
    assert_int_equal(fseek(f, 200, SEEK_CUR), 0);
    c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    fputc(c == 'A' ? 'B' : 'A', f);
    fclose(f);
    free(path);
}

/* What is damaged is told once, and what can be read is. */
static void damage_is_told_and_passed_over(void **state)
{
    scene *s = *state;
    sessile_audit_reader *r;
    sessile_audit_event e;
    sessile_error err;
    char got[200] = "";
    audit_log *a;
    int told = 0;

    must(audit_open(&a, s->store->core, &(audit_options){.part_bytes = 1}, &err), &err);
    for (int i = 0; i < 6; i++) {
        char name[] = {(char)('a' + i), 0};
        write_one(a, name, NULL, AUDIT_SUCCESS);
        if (i == 3)
            must(audit_seal(a, &err), &err);
    }
    audit_closed(a);
    damage_line(s->path, "00-000", 3); /* of entries 1 to 4: a to d */
    r = reader(s, NULL);
    for (;;) {
        sessile_status status = sessile_audit_next(r, &e, &err);
        if (status) {
            assert_int_equal(status, SESSILE_DAMAGED);
            told++;
            continue;
        }
        if (!e.id.size)
            break;
        strncat(got, e.operation.data, e.operation.size);
    }
    assert_int_equal(told, 1);
    assert_string_equal(got, "abef");
    sessile_audit_close(r);
}

/* ------------------------------------------------------------------ permissions */

static void only_who_may_read_it_does(void **state)
{
    static const char *const check[] = {"check_store"}, *const read[] = {"read_audit"};
    sessile_role_definition roles[] = {{"checker", check, 1, 1}, {"reader", read, 1, 1}};
    sessile_guard_options guard = {.roles = roles, .role_count = 2};
    scene *s = *state;
    audit_log *a = audit_opened(s->store->core);
    sessile_error err;

    write_one(a, "one", NULL, AUDIT_SUCCESS);
    must(audit_root(a, s->root, &err), &err);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    must(sessile_store_guard(s->store, &guard, &err), &err);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"editor", "checker", "reader", "auditor"};
        sessile_credential c;
        sessile_store *view;
        sessile_audit_reader *r = NULL;
        sessile_audit_verification *v = NULL;
        sessile_credential_init(&c);
        c.user = sessile_text("ann");
        c.roles = &names[i];
        c.role_count = 1;
        must(sessile_store_as(&view, s->store, &c, &err), &err);
        assert_int_equal(sessile_audit_open(&r, view, NULL, &err),
                         i >= 2 ? SESSILE_OK : SESSILE_DENIED);
        sessile_audit_close(r);
        assert_int_equal(sessile_audit_verify_begin(&v, view, s->root, NULL, &err),
                         i >= 1 ? SESSILE_OK : SESSILE_DENIED);
        if (!i)
            assert_non_null(strstr(err.message, "read_audit"));
        sessile_audit_verify_free(v);
        sessile_store_close(view);
    }
}

/* ------------------------------------------------------------------ retention */

/* Parts of one event each, sealed. */
static audit_log *write_parts(scene *s, int count)
{
    audit_log *a;
    sessile_error err;

    must(audit_open(&a, s->store->core, &(audit_options){.part_bytes = 1}, &err), &err);
    for (int i = 0; i < count; i++) {
        char name[20];
        snprintf(name, sizeof name, "op%d", i);
        write_one(a, name, "ann", AUDIT_SUCCESS);
        must(audit_seal(a, &err), &err);
    }
    must(audit_root(a, s->root, &err), &err);
    return a;
}

static sessile_status retain(audit_log *a, store_core *st, int64_t before_ms,
                             uint64_t *removed, sessile_error *err)
{
    audit_retention o = {.before_ms = before_ms};
    audit_retained out = {0};
    sessile_status status = audit_retain(a, st, &o, &out, err);

    assert_int_equal(out.held, 0);
    *removed = out.removed;
    return status;
}

static void a_hold_keeps_every_log(void **state)
{
    scene *s = *state;
    audit_log *a = write_parts(s, 4);
    store_core *st = s->store->core;
    audit_retention o = {.before_ms = INT64_MAX};
    audit_retained held, out;
    sessile_hold_options hold;
    sessile_error err;
    sessile_id id;

    sessile_hold_options_init(&hold);
    hold.user = sessile_text("somebody else");
    hold.reason = sessile_text("a case");
    must(sessile_hold(s->store, &hold, &id, &err), &err);
    must(audit_retain(a, st, &o, &held, &err), &err);
    assert_int_equal(held.removed, 0);
    assert_true(held.held >= 2);
    must(sessile_hold_release(s->store, id, sessile_text("me"), &err), &err);
    o.dry_run = 1;
    must(audit_retain(a, st, &o, &out, &err), &err);
    assert_int_equal(out.removed, held.held);
    assert_int_equal(out.held, 0);
    o.dry_run = 0;
    must(audit_retain(a, st, &o, &out, &err), &err);
    assert_int_equal(out.removed, held.held); /* the dry run has removed nothing */
    audit_closed(a);
    assert_holds(st, s->root);
}

static void old_logs_go_and_the_rest_verifies(void **state)
{
    scene *s = *state;
    audit_log *a = write_parts(s, 4);
    sessile_store *st = s->store;
    sessile_audit_anchor heads[4];
    sessile_audit_verify_options o = {.anchors = heads};
    sessile_audit_report report;
    sessile_audit_filter asked = {.operation = sessile_text("op3")};
    sessile_error err;
    uint64_t removed;
    size_t count;
    int64_t now;

    must(retain(a, st->core, 1, &removed, &err), &err);
    assert_int_equal(removed, 0);
    must(audit_heads(st->core, s->root, 0, heads, 4, &count, &err), &err);
    assert_int_equal(count, 1);
    o.anchor_count = 1;
    write_one(a, "op4", NULL, AUDIT_SUCCESS); /* begins a part: all before it are older */
    now = st->core->os->now_ms(st->core->os->ud);
    must(retain(a, st->core, now, &removed, &err), &err);
    assert_int_equal(removed, 4);
    must(audit_verify(st->core, s->root, NULL, &report, &err), &err);
    assert_true(report.holds);
    assert_int_equal(report.cut_lanes, 1); /* an anchor proves more than the key */
    must(audit_verify(st->core, s->root, &o, &report, &err), &err);
    if (!report.holds)
        fail_msg("%s %s", report.where, report.why);
    assert_int_equal(report.cut_lanes, 0);
    assert_read(s, &asked, "");
    asked.operation = sessile_text("audit_retain");
    assert_read(s, &asked, "audit_retain audit_retain audit_retain audit_retain ");
    /* events can still be written, also after the audit is opened again */
    write_one(a, "op5", "ann", AUDIT_SUCCESS);
    must(audit_seal(a, &err), &err);
    audit_closed(a);
    a = audit_opened(st->core);
    write_one(a, "op6", "ann", AUDIT_SUCCESS);
    must(audit_seal(a, &err), &err);
    must(retain(a, st->core, INT64_MAX, &removed, &err), &err);
    assert_true(removed > 0);
    audit_closed(a);
    assert_holds(st->core, s->root);
    asked.operation = sessile_text("op6");
    assert_read(s, &asked, "op6 ");
    /* an anchor of what was removed since is not missed, and proves nothing */
    must(audit_verify(st->core, s->root, &o, &report, &err), &err);
    assert_true(report.holds);
    assert_int_equal(report.cut_lanes, 1);
}

/* Somebody with every key removes the first logs without a word. */
static void a_cut_that_nobody_announced_is_found_out(void **state)
{
    scene *s = *state;
    audit_log *a = write_parts(s, 4);

    audit_closed(a);
    log_gone(s->store->core, "00-000");
    log_gone(s->store->core, "00-001");
    assert_found_out(s->store->core, s->root, "first logs are gone");
}

/* Somebody changes what is left, and an anchor is another seal. */
static void what_is_left_is_verified(void **state)
{
    scene *s = *state;
    audit_log *a = write_parts(s, 3);
    sessile_audit_anchor other = {0, 1, ""};
    sessile_audit_verify_options o = {.anchors = &other, .anchor_count = 1};
    sessile_audit_report report;
    sessile_error err;
    uint64_t removed;
    char part[LANE_NAME];
    stolen logs;

    must(retain(a, s->store->core, INT64_MAX, &removed, &err), &err);
    audit_closed(a);
    memset(other.hash, 'a', SEAL_HEX - 1);
    other.epoch = 4;
    must(audit_verify(s->store->core, s->root, &o, &report, &err), &err);
    assert_int_equal(report.holds, 0);
    lane_part_name(0, (uint32_t)removed, part);
    steal(s->store->core, part, &logs);
    assert_true(logs.count > 2);
    logs.texts[1][strlen(logs.texts[1]) - 4] ^= 1;
    forge(s->store->core, &logs, 0);
    stolen_free(&logs);
    assert_false(verdict_of(s->store->core, s->root).holds);
}

/* Two lanes: the root's logs go, and the other is still vouched for. */
static void with_another_lane(scene *s, int parts)
{
    audit_log *a = write_parts(s, 2), *b = in_another_lane(s, 1, "other");
    sessile_audit_report report;
    sessile_error err;
    uint64_t removed;

    for (int i = 0; i < parts; i++) {
        must(audit_seal(b, &err), &err);
        write_one(b, "other", "bob", AUDIT_SUCCESS);
    }
    must(audit_seal(b, &err), &err);
    write_one(a, "more", NULL, AUDIT_SUCCESS);
    must(audit_seal(a, &err), &err);
    must(retain(a, s->store->core, INT64_MAX, &removed, &err), &err);
    assert_true(removed >= 2 + (uint64_t)parts);
    must(audit_verify(s->store->core, s->root, NULL, &report, &err), &err);
    if (!report.holds)
        fail_msg("%s %s", report.where, report.why);
    assert_int_equal(report.lanes, 2);
    assert_int_equal(report.cut_lanes, 1 + (parts > 0));
    audit_closed(a);
    audit_closed(b);
}

static void other_lanes_stay_vouched_for(void **state)
{
    with_another_lane(*state, 0);
}

static void other_lanes_are_cut_too(void **state)
{
    with_another_lane(*state, 3);
}

/* Tampered audits are evidence: nothing of them is removed. */
static void what_does_not_verify_is_kept(void **state)
{
    scene *s = *state;
    audit_log *a = write_parts(s, 3);
    sessile_error err;
    uint64_t removed;
    stolen logs;

    steal(s->store->core, "00-000", &logs);
    logs.texts[1][strlen(logs.texts[1]) - 4] ^= 1;
    forge(s->store->core, &logs, 0);
    stolen_free(&logs);
    assert_refused(retain(a, s->store->core, INT64_MAX, &removed, &err), SESSILE_DAMAGED,
                   &err, "nothing of it is removed");
    assert_int_equal(removed, 0);
    audit_closed(a);
}

int main(void)
{
#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_SCENE(there_is_no_audit_before_the_first_event),
        IN_SCENE(lanes_are_merged_by_time),
        IN_SCENE(filters_select),
        IN_SCENE(who_is_looked_for_gets_no_secret),
        IN_SCENE(names_are_opened_until_the_user_is_forgotten),
        IN_SCENE(a_cursor_goes_on_where_it_was),
        cmocka_unit_test(cursors_that_cannot_be),
        IN_SCENE(a_reader_waits_for_more),
        IN_SCENE(a_long_audit_is_read_in_steps),
        IN_SCENE(damage_is_told_and_passed_over),
        IN_SCENE(only_who_may_read_it_does),
        IN_SCENE(old_logs_go_and_the_rest_verifies),
        IN_SCENE(a_hold_keeps_every_log),
        IN_SCENE(a_cut_that_nobody_announced_is_found_out),
        IN_SCENE(what_is_left_is_verified),
        IN_SCENE(other_lanes_stay_vouched_for),
        IN_SCENE(other_lanes_are_cut_too),
        IN_SCENE(what_does_not_verify_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
