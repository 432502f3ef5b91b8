/*
 * test_life.c: the end of a session: a hard deletion that is killed anywhere, and what a
 * purge must not take.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/lists.h"
#include "support/logs.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log/log.h"
#include "session/header.h"

/* Files whose name begins so. */
static size_t files_of(const place *p, const char *prefix)
{
    char path[600];
    struct dirent *one;
    size_t count = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/agents/main", p->folder);
    dir = opendir(path);
    while (dir && (one = readdir(dir)))
        count += !strncmp(one->d_name, prefix, strlen(prefix));
    if (dir)
        closedir(dir);
    return count;
}

enum { MESSAGES = 400 /* so that there is an index */ };

static void make_doomed(const place *p)
{
    sessile_session *s = session_made(p->store, "doomed");
    char path[600];

    for (int i = 0; i < MESSAGES; i++)
        say(s, "user", "hello");
    session_closed(s);
    snprintf(path, sizeof path, "%s/agents/main/doomed.torn-99", p->folder);
    file_write_all(path, "torn", 4);
    session_closed(session_made(p->store, "doomed-not"));
}

/* Whole, or not good: what the killed deletion left. 1: it is whole. */
static int look(const place *p)
{
    sessile_session_options which = named("doomed");
    sessile_store *st = place_again(p);
    sessile_session *s = NULL;
    sessile_message *list;
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    int good = 0, whole;
    sessile_status status = sessile_resume(&s, st, &which, &err);

    whole = !status && !sessile_session_damage(s, NULL, NULL);
    if (whole) {
        must(sessile_messages(s, NULL, &list, &count, &err), &err);
        assert_int_equal(count, MESSAGES);
        sessile_free(list);
    }
    if (s)
        session_closed(s);
    must(sessile_list(st, NULL, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (rows[i].id.size == 6 && !memcmp(rows[i].id.data, "doomed", 6))
            good = !rows[i].status;
    sessile_free(rows);
    assert_int_equal(good, whole);
    place_again_close(p, st);
    return whole;
}

static void a_deletion_killed_anywhere_is_finished_by_the_next(void **state)
{
    place_files_only();
    store_kind kind = ((place *)*state)->kind;
    sessile_session_options which = named("doomed");
    size_t whole = 0, hurt = 0;

    for (uint64_t n = 0;; n++) {
        sessile_error err;
        sessile_store *st;
        faulty f;
        place p;
        int done;

        place_open(&p, kind);
        make_doomed(&p);
        assert_true(files_of(&p, "doomed.") >= 2);
        faulty_init(&f, &os_posix);
        os_current = &f.table;
        st = place_again(&p);
        faulty_stop(&f, n, 1);
        done = !sessile_delete(st, &which, NULL, NULL, &err);
        faulty_none(&f);
        place_again_close(&p, st);
        faulty_deinit(&f);
        os_current = &os_posix;
        if (!done) {
            sessile_status status;
            int was = look(&p);
            whole += (size_t)was;
            hurt += (size_t)!was;
            status = sessile_delete(p.store, &which, NULL, NULL, &err);
            assert_true(status == SESSILE_OK || (status == SESSILE_NOTFOUND && !was));
        }
        assert_int_equal(files_of(&p, "doomed."), 0);
        assert_false(look(&p));
        session_closed(session_resumed(p.store, "doomed-not"));
        session_closed(session_made(p.store, "doomed"));
        place_close(&p);
        if (done) {
            assert_true(n > 4);
            break;
        }
    }
    assert_true(whole >= 2);
    assert_true(hurt >= 2);
    print_message("deletions killed, whole = %zu\ndeletions killed, hurt = %zu\n", whole,
                  hurt);
}

/* Somebody who writes whenever the other one is about to change anything. */
typedef struct intruder {
    sessile_store *store;
    sessile_session *old; /* opened before, or NULL */
    int locked;           /* the deletion holds the lock, or the log is gone */
    int makes;            /* makes the session when it is not there */
    unsigned tried, said;
    unsigned char there[200];
} intruder;

static int try_to_say(intruder *w, sessile_session *s)
{
    sessile_error err;
    sessile_id id;
    char text[80];

    assert_true(w->tried < sizeof w->there);
    snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"<%u>\"}", w->tried);
    int done = !sessile_append(s, sessile_text(text), &id, &err);
    w->there[w->tried++] = (unsigned char)done;
    w->said += (unsigned)done;
    return done;
}

static void intrude(void *arg, faulty_kind kind, uint64_t number)
{
    sessile_session_options which = named("doomed");
    intruder *w = arg;
    sessile_session *s = NULL;
    sessile_error err;

    (void)kind;
    (void)number;
    /* Until the log is locked, while the deletion is recorded, what is said goes with it.
     */
    if (w->old && try_to_say(w, w->old)) {
        assert_int_equal(w->locked, 0);
        w->said = w->tried = 0;
        return;
    }
    w->locked = w->old != NULL;
    if (!(w->makes ? sessile_session_open(&s, w->store, &which, &err)
                   : sessile_resume(&s, w->store, &which, &err))) {
        (void)try_to_say(w, s);
        session_closed(s);
    }
}

/* Every word that was acknowledged is there. */
static void all_is_there(const place *p, const intruder *w)
{
    sessile_session *s;
    sessile_message *list;
    sessile_error err;
    size_t count;

    if (!w->said)
        return;
    s = session_resumed(p->store, "doomed");
    must(sessile_messages(s, NULL, &list, &count, &err), &err);
    assert_int_equal(count, w->said);
    for (size_t i = 0, n = 0; i < count; i++, n++) {
        char text[20];
        while (!w->there[n])
            n++;
        snprintf(text, sizeof text, "<%zu>", n);
        assert_non_null(strstr(list[i].json.data, text));
    }
    sessile_free(list);
    session_closed(s);
}

static void what_is_acknowledged_at_any_step_of_a_deletion_stays(void **state)
{
    place_files_only();
    place_unguarded_only(); /* it would write in the middle of a write to the audit */
    place *p = *state;
    sessile_session_options which = named("doomed");
    intruder w = {.store = p->store, .makes = 1};
    sessile_store *st;
    sessile_error err;
    faulty f;

    session_closed(session_made(p->store, "doomed"));
    p->store->core->config.timeout_ms = 5;
    w.old = session_resumed(p->store, "doomed");
    faulty_init(&f, &os_posix);
    os_current = &f.table;
    st = place_again(p);
    os_current = &os_posix;
    faulty_none(&f);
    f.before = intrude;
    f.before_arg = &w;
    must(sessile_delete(st, &which, NULL, NULL, &err), &err);
    f.before = NULL;
    assert_true(w.tried >= 4);
    assert_true(w.said > 0); /* its name was free before the deletion was done */
    all_is_there(p, &w);
    assert_int_equal(sessile_append(w.old,
                                    sessile_text("{\"role\":\"user\",\"content\":\"\"}"),
                                    &(sessile_id){0}, &err),
                     SESSILE_NOTFOUND);
    session_closed(w.old);
    place_again_close(p, st);
    faulty_deinit(&f);
}

static void a_creation_that_fails_takes_no_word_of_others_with_it(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session_options which = named("doomed");
    sessile_store *st;
    int made = 0;
    faulty f;

    session_closed(session_made(p->store, "other")); /* there is a folder */
    p->store->core->config.timeout_ms = 5;
    faulty_init(&f, &os_posix);
    for (uint64_t n = 0; !made; n++) {
        intruder w = {.store = p->store};
        sessile_session *s = NULL;
        sessile_error err;

        os_current = &f.table;
        st = place_again(p);
        os_current = &os_posix;
        faulty_fail(&f, FAULTY_SYNCS, n, EIO);
        f.before = intrude;
        f.before_arg = &w;
        made = !sessile_create(&s, st, &which, &err);
        f.before = NULL;
        faulty_none(&f);
        session_closed(s);
        all_is_there(p, &w);
        if (!made)
            (void)sessile_delete(p->store, &which, NULL, NULL, &err);
        place_again_close(p, st);
        assert_true(n < 20);
    }
    faulty_deinit(&f);
}

static void a_log_that_was_written_to_meanwhile_stays(void **state)
{
    place *p = *state;
    sessile_store *st = p->store;
    session_names names = {{"kept", 4}, {"main", 4}, {NULL, 0}, 0};
    sessile_session_options which = named("kept");
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_session *s = session_made(st, "kept");
    sessile_error err;
    log_ending was, now;
    uint64_t bytes;

    say(s, "user", "one");
    must(log_get_ending(s->core->log, &was, &err), &err);
    say(s, "user", "two");
    must(log_get_ending(s->core->log, &now, &err), &err);
    names_place(st->core, &names, folder, name);
    assert_int_equal(log_remove(&st->core->backend, st->core->keys, folder, name, &was,
                                100, &bytes, &err),
                     SESSILE_CONFLICT);
    say(s, "user", "three");
    session_closed(s);
    /* another one of the same size, which ends otherwise */
    must(sessile_delete(st, &which, NULL, NULL, &err), &err);
    s = session_made(st, "kept");
    say(s, "user", "2nd");
    say(s, "user", "1st");
    must(log_get_ending(s->core->log, &was, &err), &err);
    assert_int_equal(was.bytes, now.bytes);
    assert_int_equal(log_remove(&st->core->backend, st->core->keys, folder, name, &now,
                                100, &bytes, &err),
                     SESSILE_CONFLICT);
    session_closed(s);
    session_closed(session_resumed(st, "kept"));
    must(log_remove(&st->core->backend, st->core->keys, folder, name, &was, 100, &bytes,
                    &err),
         &err);
    assert_int_equal(bytes, was.bytes);
}

static void one_that_is_held_by_a_writer_is_busy(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_store *st = p->store;
    sessile_session_options which = named("held");
    sessile_session *s = session_made(st, "held");
    sessile_backend_log *log;
    sessile_error err;
    int replaced;

    session_closed(s);
    must(
        st->core->backend.table->open(st->core->backend.self, "main", "held", &log, &err),
        &err);
    must(st->core->backend.table->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
         &err);
    st->core->config.timeout_ms = 20;
    assert_int_equal(sessile_delete(st, &which, NULL, NULL, &err), SESSILE_BUSY);
    st->core->backend.table->close(log);
    session_closed(session_resumed(st, "held"));
    must(sessile_delete(st, &which, NULL, NULL, &err), &err);
    assert_int_equal(sessile_delete(st, &which, NULL, NULL, &err), SESSILE_NOTFOUND);
}

static void reasons_are_texts_and_times_are_times(void **state)
{
    place *p = *state;
    sessile_session_options which = named("s");
    sessile_delete_options soft = {.soft = 1, .reason = {"\xff", 1}};
    sessile_session *s = session_made(p->store, "s");
    sessile_purge_options purge;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    assert_int_equal(sessile_delete(p->store, &which, &soft, NULL, &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_set_ttl(s, -1, &err), SESSILE_INVALID);
    assert_int_equal(sessile_set_ttl(s, INT64_MAX, &err), SESSILE_INVALID);
    sessile_purge_options_init(&purge);
    assert_int_equal(purge.retention_ms, SESSILE_RETENTION_MS);
    purge.retention_ms = -1;
    assert_int_equal(sessile_purge(p->store, &purge, &rows, &count, &err),
                     SESSILE_INVALID);
    /* What a log says of a ttl is not believed beyond reason. */
    put_entry(s, "metadata", SESSILE_NO_ID, "{\"ttl_ms\":18446744073709551615}");
    put_entry(s, "metadata", SESSILE_NO_ID, "{\"ttl_ms\":\"soon\",\"deleted\":null}");
    must(sessile_list(p->store, NULL, &rows, &count, &err), &err);
    assert_int_equal(rows[0].ttl_ms, 0);
    assert_int_equal(rows[0].life, SESSILE_LIFE_ACTIVE);
    sessile_free(rows);
    session_closed(s);
}

static void the_order_of_lives(void **state)
{
    sessile_session *s = session_in(state, "s");
    sessile_life_info life;
    sessile_error err;

    must(sessile_set_archived(s, 1, &err), &err);
    must(sessile_suspend(s, sessile_text("x"), sessile_text(NULL), NULL, &err), &err);
    must(sessile_session_life(s, &life, &err), &err);
    assert_int_equal(life.life, SESSILE_LIFE_ARCHIVED);
    must(sessile_set_archived(s, 0, &err), &err);
    must(sessile_session_life(s, &life, &err), &err);
    assert_int_equal(life.life, SESSILE_LIFE_SUSPENDED);
    assert_string_equal(sessile_life_name(life.life), "suspended");
    int64_t before = (int64_t)time(NULL) * 1000;
    must(sessile_set_ttl(s, 1000, &err), &err);
    must(sessile_session_life(s, &life, &err), &err);
    assert_int_equal(life.ttl_ms, 1000);
    assert_in_range(life.expires_ms, before + 1000, ((int64_t)time(NULL) + 2) * 1000);
    session_closed(s);
}

#define EVERYWHERE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, place_set_up_ram, place_tear_down),       \
        cmocka_unit_test_setup_teardown(test, place_set_up_plain, place_tear_down), \
        cmocka_unit_test_setup_teardown(test, place_set_up_sealed, place_tear_down)
#define ON_DISK(test)                                                           \
    cmocka_unit_test_setup_teardown(test, place_set_up_plain, place_tear_down), \
        cmocka_unit_test_setup_teardown(test, place_set_up_sealed, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_DISK(a_deletion_killed_anywhere_is_finished_by_the_next),
        ON_DISK(what_is_acknowledged_at_any_step_of_a_deletion_stays),
        ON_DISK(a_creation_that_fails_takes_no_word_of_others_with_it),
        EVERYWHERE(a_log_that_was_written_to_meanwhile_stays),
        EVERYWHERE(one_that_is_held_by_a_writer_is_busy),
        EVERYWHERE(reasons_are_texts_and_times_are_times),
        EVERYWHERE(the_order_of_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
