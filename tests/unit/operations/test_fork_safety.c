/*
 * test_fork_safety.c: forks that are refused, of damaged sessions, beside other writers,
 * into other stores; and forks that are ended anywhere.
 *
 * Every test runs over a volatile, a sealed and a plain store. The last one ends a fork
 * at every step that changes a file, and lets every system call fail once.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/forks.h"

/* ------------------------------------------------------------------ helpers */

static int is_listed(sessile_store *st, const char *id)
{
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    int found = 0;

    must(sessile_list(st, NULL, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        found += rows[i].id.size == strlen(id) &&
                 !memcmp(rows[i].id.data, id, rows[i].id.size);
    sessile_free(rows);
    return found;
}

/* ------------------------------------------------------------------ names */

static void a_fork_for_another_agent_and_user(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s, *f;
    sessile_link origin;
    sessile_error err;

    sessile_session_options_init(&o);
    o.id = sessile_text("a");
    o.user = sessile_text("ann");
    must(sessile_create(&s, p->store, &o, &err), &err);
    say(s, "user", "one");
    sessile_session_options_init(&o);
    o.id = sessile_text("b");
    o.agent = sessile_text("critic");
    o.user = sessile_text("bob");
    f = fork_with(s, SESSILE_NO_ID, &o);
    assert_memory_equal(sessile_session_agent(f).data, "critic", 7);
    assert_memory_equal(sessile_session_user(f).data, "bob", 4);
    assert_true(sessile_session_origin(f, &origin));
    assert_memory_equal(origin.user.data, "ann", 3);
    session_closed(f);
    /* by default, the session's own */
    sessile_session_options_init(&o);
    o.id = sessile_text("c");
    f = fork_with(s, SESSILE_NO_ID, &o);
    assert_memory_equal(sessile_session_user(f).data, "ann", 4);
    assert_memory_equal(sessile_session_agent(f).data, "main", 5);
    session_closed(f);
    /* a user of size 0: nobody's */
    o.id = sessile_text("d");
    o.user = sessile_text("");
    f = fork_with(s, SESSILE_NO_ID, &o);
    assert_int_equal(sessile_session_user(f).size, 0);
    session_closed(f);
    session_closed(s);
    if (p->kind != STORE_SEALED)
        return;
    /* a user's key seals a user's fork */
    must(sessile_forget(p->store, sessile_text("ann"), NULL, &err), &err);
    sessile_session_options_init(&o);
    o.id = sessile_text("c");
    o.user = sessile_text("ann");
    assert_refused(sessile_resume(&f, p->store, &o, &err), SESSILE_SEALED, &err, "");
    o.id = sessile_text("b");
    o.agent = sessile_text("critic");
    o.user = sessile_text("bob");
    must(sessile_resume(&f, p->store, &o, &err), &err);
    assert_contents(f, "one");
    session_closed(f);
}

static void names_that_are_no_text_are_kept(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s, *f, *g;
    sessile_link origin;
    sessile_error err;

    sessile_session_options_init(&o);
    o.id = (sessile_slice){"\xff\0\x01", 3};
    must(sessile_create(&s, p->store, &o, &err), &err);
    say(s, "user", "one");
    f = fork_at(s, SESSILE_NO_ID, "../../etc/passwd");
    assert_true(sessile_session_origin(f, &origin));
    assert_int_equal(origin.id.size, 3);
    assert_memory_equal(origin.id.data, "\xff\0\x01", 3);
    g = fork_at(f, SESSILE_NO_ID, "g");
    assert_true(sessile_session_origin(g, &origin));
    assert_memory_equal(origin.id.data, "../../etc/passwd", origin.id.size);
    assert_contents(g, "one");
    session_closed(g);
    session_closed(f);
    session_closed(s);
}

static void what_cannot_be_forked_is_refused(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s = session_made(p->store, "a"), *f;
    sessile_error err;

    say(s, "user", "one");
    put_label(s, 1, "x");
    sessile_session_options_init(&o);
    o.id = sessile_text("b");
    assert_refused(sessile_fork(&f, s, 99, &o, &err), SESSILE_NOTFOUND, &err, "00000063");
    assert_null(f);
    assert_refused(sessile_fork(&f, s, 2, &o, &err), SESSILE_NOTFOUND, &err, "00000002");
    assert_false(is_listed(p->store, "b"));
    o.id = sessile_text("a");
    assert_refused(sessile_fork(&f, s, 1, &o, &err), SESSILE_EXISTS, &err, "\"a\"");
    o.id = sessile_text("b");
    o.metadata = sessile_text("[]");
    assert_refused(sessile_fork(&f, s, 1, &o, &err), SESSILE_INVALID, &err, "metadata");
    o.metadata = sessile_text("");
    o.title = sessile_text("\xff");
    assert_refused(sessile_fork(&f, s, 1, &o, &err), SESSILE_INVALID, &err, "title");
    sessile_session_options_init(&o);
    assert_refused(sessile_fork(NULL, s, 1, &o, &err), SESSILE_INVALID, &err, "id");
    assert_refused(sessile_fork(&f, NULL, 1, &o, &err), SESSILE_INVALID, &err, "session");
    /* made and not opened */
    o.id = sessile_text("closed");
    must(sessile_fork(NULL, s, 1, &o, &err), &err);
    f = session_resumed(p->store, "closed");
    assert_contents(f, "one");
    session_closed(f);
    assert_contents(s, "one");
    session_closed(s);
}

/* Flips a byte in the line of an entry of agents/main/a.jsonl. */
static void damage_line(const char *folder, int line)
{
    char path[600];
    int c;

    snprintf(path, sizeof path, "%s/agents/main/a.jsonl", folder);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    for (int i = 0; i < line; i++)
        while ((c = fgetc(file)) != '\n')
            assert_int_not_equal(c, EOF);
    assert_int_equal(fseek(file, 60, SEEK_CUR), 0);
    c = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(c == 'A' ? 'B' : 'A', file);
    assert_int_equal(fclose(file), 0);
}

static void of_a_damaged_session_what_stands_before_the_damage(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session_options o;
    sessile_session *s, *f;
    sessile_error err;

    if (p->kind == STORE_RAM)
        return;
    s = session_made(p->store, "a");
    for (int i = 0; i < 8; i++) {
        say(s, "user", "m");
        must(log_sync(s->core->log, log_count(s->core->log), &err), &err);
    }
    session_closed(s);
    damage_line(p->folder, 4);
    s = session_resumed(p->store, "a");
    assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_DAMAGED);
    sessile_session_options_init(&o);
    o.id = sessile_text("b");
    assert_refused(sessile_fork(&f, s, SESSILE_NO_ID, &o, &err), SESSILE_DAMAGED, &err,
                   "fork it at 00000003");
    assert_refused(sessile_fork(&f, s, 4, &o, &err), SESSILE_DAMAGED, &err, "00000003");
    assert_false(is_listed(p->store, "b"));
    f = fork_at(s, 3, "b");
    assert_contents(f, "m m m");
    say(f, "user", "on");
    session_closed(f);
    /* a whole copy wants all of it */
    o.id = sessile_text("w");
    assert_refused(sessile_put(&f, p->store, s, &o, &err), SESSILE_DAMAGED, &err,
                   "salvage");
    session_closed(s);
}

/* Damage that the handle has not met, since its index spared it the line. */
static void damage_met_on_the_way_makes_no_fork(void **state)
{
    place_files_only();
    place *p = *state;
    if (p->kind == STORE_RAM)
        return;
    sessile_session *s = session_made(p->store, "a"), *f;
    sessile_session_options o = named("b");
    sessile_error err;

    for (int i = 0; i < LOG_BLOCK + 8; i++)
        say(s, "user", "m");
    session_closed(s);
    s = session_resumed(p->store, "a");
    damage_line(p->folder, 9);
    assert_refused(sessile_fork(&f, s, SESSILE_NO_ID, &o, &err), SESSILE_DAMAGED, &err,
                   "00000009");
    assert_null(f);
    assert_false(is_listed(p->store, "b"));
    f = fork_at(s, 8, "b");
    session_closed(f);
    session_closed(s);
}

static void either_may_go(void **state)
{
    place_files_only();
    place *p = *state;
    char path[600];

    if (p->kind == STORE_RAM)
        return;
    sessile_session *s = session_made(p->store, "a");
    say(s, "user", "one");
    sessile_session *f = fork_at(s, SESSILE_NO_ID, "b");
    session_closed(s);
    snprintf(path, sizeof path, "%s/agents/main/a.jsonl", p->folder);
    assert_int_equal(unlink(path), 0);
    say(f, "user", "two");
    session_closed(f);
    f = session_resumed(p->store, "b");
    assert_contents(f, "one two");
    sessile_session *g = fork_at(f, SESSILE_NO_ID, "c");
    session_closed(f);
    snprintf(path, sizeof path, "%s/agents/main/b.jsonl", p->folder);
    assert_int_equal(unlink(path), 0);
    assert_contents(g, "one two");
    session_closed(g);
    assert_clean(p->store);
}

/* What others write while a fork is made stands behind it, or not in it. */
static void others_may_write_meanwhile(void **state)
{
    place *p = *state;
    sessile_store *again = place_again(p);
    sessile_session *s = session_made(p->store, "a"), *t = session_resumed(again, "a");

    sessile_id one = say(s, "user", "one");
    say(t, "user", "two");
    sessile_session *f = fork_at(s, one, "b"); /* s has not looked since */
    assert_contents(f, "one");
    session_closed(f);
    f = fork_at(s, SESSILE_NO_ID, "c");
    assert_contents(f, "one two");
    say(t, "user", "three");
    assert_contents(f, "one two");
    session_closed(f);
    session_closed(t);
    session_closed(s);
    place_again_close(p, again);
}

/* ------------------------------------------------------------------ whole copies */

static void a_session_is_put_into_a_store_of_any_kind(void **state)
{
    sessile_session_options o;
    sessile_session *s = session_in(state, "a"), *t;
    sessile_suspension *suspension;
    sessile_error err;
    sessile_id id;

    say(s, "user", "one");
    say(s, "user", "aside");
    move_head(s, 1);
    sessile_id two = say(s, "user", "two");
    put_label(s, two, "here");
    give_title(s, "a title");
    sessile_session *fork = fork_at(s, two, "of it");
    must(sessile_suspend(s, sessile_text("x"), sessile_text(""), &id, &err), &err);
    for (int kind = 0; kind < STORE_KINDS; kind++) {
        place other;
        sessile_link origin;
        place_open(&other, kind);
        must(sessile_put(&t, other.store, s, NULL, &err), &err);
        assert_memory_equal(sessile_session_id(t).data, "a", 2);
        assert_contents(t, "one two");
        assert_head(t, two);
        assert_title(t, "a title");
        assert_labels(t, "00000004=here");
        assert_int_equal(log_count(t->core->log), log_count(s->core->log));
        assert_int_equal(sessile_session_created(t), sessile_session_created(s));
        char *x = entry_text_of(s, 0), *y = entry_text_of(t, 0);
        assert_string_equal(x, y);
        sessile_free(x);
        sessile_free(y);
        assert_same_entries(s, t, log_count(s->core->log) - 1);
        must(sessile_suspended(t, &suspension, &err), &err);
        assert_non_null(suspension); /* it is the same session, elsewhere */
        sessile_free(suspension);
        session_closed(t);
        assert_refused(sessile_put(&t, other.store, s, NULL, &err), SESSILE_EXISTS, &err,
                       "\"a\"");
        sessile_session_options_init(&o);
        o.id = sessile_text("b");
        o.agent = sessile_text("copies");
        must(sessile_put(&t, other.store, fork, &o, &err), &err);
        assert_memory_equal(sessile_session_agent(t).data, "copies", 7);
        assert_true(sessile_session_origin(t, &origin));
        assert_memory_equal(origin.id.data, "a", 1);
        session_closed(t);
        must(sessile_put(NULL, other.store, fork, NULL, &err), &err);
        assert_true(is_listed(other.store, "of it"));
        assert_clean(other.store);
        place_close(&other);
    }
    session_closed(fork);
    session_closed(s);
}

/* ------------------------------------------------------------------ swapped lines */

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    char *all = malloc(1 << 20);

    assert_non_null(file);
    assert_non_null(all);
    *size = fread(all, 1, 1 << 20, file);
    assert_int_equal(fclose(file), 0);
    return all;
}

/* Where line n of a log begins; n past its end: the end. */
static size_t line_at(const char *text, size_t size, int n)
{
    size_t at = 0;

    while (n-- > 0 && at < size)
        at +=
            (size_t)((const char *)memchr(text + at, '\n', size - at) - (text + at)) + 1;
    return at;
}

/* The same entry under the same id, sealed under another key: refused in each place. */
static void a_line_of_the_source_is_no_line_of_the_fork(void **state)
{
    place_files_only();
    enum { LINES = 6 };
    place *p = *state;
    char from[600], to[600];
    size_t size, other;

    if (p->kind != STORE_SEALED)
        return;
    sessile_session *s = session_made(p->store, "a");
    for (int i = 1; i < LINES; i++)
        say(s, "user", "the same");
    session_closed(fork_at(s, SESSILE_NO_ID, "b"));
    session_closed(s);
    snprintf(from, sizeof from, "%s/agents/main/a.jsonl", p->folder);
    snprintf(to, sizeof to, "%s/agents/main/b.jsonl", p->folder);
    char *source = read_file(from, &other), *fork = read_file(to, &size);
    for (int i = 1; i < LINES; i++) {
        size_t a = line_at(source, other, i), a_end = line_at(source, other, i + 1);
        size_t b = line_at(fork, size, i), b_end = line_at(fork, size, i + 1);
        FILE *file = fopen(to, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(fork, 1, b, file), b);
        assert_int_equal(fwrite(source + a, 1, a_end - a, file), a_end - a);
        assert_int_equal(fwrite(fork + b_end, 1, size - b_end, file), size - b_end);
        assert_int_equal(fclose(file), 0);
        s = session_resumed(p->store, "b");
        assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_DAMAGED);
        session_closed(s);
    }
    free(source);
    free(fork);
}

/* ------------------------------------------------------------------ children */

static void children_are_named_by_their_parent(void **state)
{
    enum { MANY = LOG_BLOCK + 9 };
    place *p = *state;
    sessile_session *s = session_made(p->store, "a"), *c, *d;
    sessile_session_options o;
    sessile_subsession *rows;
    sessile_link link;
    sessile_error err;
    sessile_id id, head;
    size_t count;

    sessile_id one = say(s, "user", "one");
    sessile_session_options_init(&o);
    o.id = (sessile_slice){"\xff\0", 2};
    o.user = sessile_text("ann");
    must(sessile_child(&c, s, 0, &o, &err), &err);
    sessile_session_options_init(&o);
    o.agent = sessile_text("other");
    must(sessile_child(&d, s, 1, &o, &err), &err);
    assert_head(s, one);
    assert_contents(c, "");
    assert_contents(d, "one");
    assert_true(sessile_session_parent(c, &link));
    assert_memory_equal(link.id.data, "a", 1);
    assert_int_equal(link.entry, one);
    assert_false(sessile_session_parent(s, &link));
    for (int i = 0; i < MANY; i++)
        say(s, "user", "m");
    must(sessile_child_merged(
             s, c, sessile_text("{\"role\":\"user\",\"content\":\"done\"}"), &id, &err),
         &err);
    must(sessile_head(s, &head, &err), &err);
    assert_int_equal(head, id);
    must(sessile_child_discarded(s, d, sessile_text("why"), &err), &err);
    assert_refused(sessile_child_discarded(c, d, sessile_text(""), &err), SESSILE_INVALID,
                   &err, "no child");
    assert_refused(sessile_child_merged(s, s, sessile_text("{}"), &id, &err),
                   SESSILE_INVALID, &err, "no child");
    session_closed(s);
    s = session_resumed(p->store, "a");
    must(sessile_subsessions(s, &rows, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].id.size, 2);
    assert_memory_equal(rows[0].id.data, "\xff\0", 2);
    assert_string_equal(rows[0].user.data, "ann");
    assert_string_equal(rows[0].agent.data, "main");
    assert_int_equal(rows[0].entry, one);
    assert_int_equal(rows[0].state, SESSILE_CHILD_MERGED);
    assert_int_equal(rows[0].merged, head);
    assert_int_equal(rows[1].id.size, 36);
    assert_string_equal(rows[1].agent.data, "other");
    assert_int_equal(rows[1].state, SESSILE_CHILD_DISCARDED);
    sessile_free(rows);
    /* a suspended parent takes no message, and says what became of a child */
    must(sessile_suspend(s, sessile_text("x"), sessile_text(""), &id, &err), &err);
    assert_refused(
        sessile_child_merged(s, c, sessile_text("{\"role\":\"user\",\"content\":\"\"}"),
                             &id, &err),
        SESSILE_SUSPENDED, &err, "suspended");
    must(sessile_child_discarded(s, c, sessile_text(""), &err), &err);
    session_closed(d);
    session_closed(c);
    session_closed(s);
    assert_clean(p->store);
}

/* ------------------------------------------------------------------ ended on the way */

static char *whole_text(sessile_store *st, const char *id)
{
    sessile_session *s = session_resumed(st, id);
    size_t size = 0;
    char *all = calloc(1, 1);

    for (sessile_id i = 0; i < log_count(s->core->log); i++) {
        char *text = entry_text_of(s, i);
        all = realloc(all, size + strlen(text) + 2);
        assert_non_null(all);
        size += (size_t)sprintf(all + size, "%s\n", text);
        sessile_free(text);
    }
    session_closed(s);
    return all;
}

static int no_sync(void *ud, int fd)
{
    (void)ud;
    (void)fd;
    return 0;
}

/* The first n changing calls of a fork are made, then none; or call n fails, and the
 * rest is made. Afterwards the source is what it was, and the fork is there whole or not
 * at all. Returns 0 when that was past the last call. */
static int one_ending(place *p, faulty *f, uint64_t n, int stop, const char *was)
{
    sessile_session_options o;
    sessile_session *fork = NULL, *s;
    sessile_error err;
    sessile_status status;
    char id[32];
    uint64_t hits;

    os_current = &f->table;
    sessile_store *st = place_again(p);
    s = session_resumed(st, "a");
    snprintf(id, sizeof id, "%s-%" PRIu64, stop ? "killed" : "failed", n);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    o.agent = sessile_text(id); /* its folder is made as well */
    if (stop)
        faulty_stop(f, n, 0);
    else
        faulty_fail(f, FAULTY_ALL, n, EIO);
    status = sessile_fork(&fork, s, SESSILE_NO_ID, &o, &err);
    hits = f->hits;
    faulty_none(f);
    if (fork)
        session_closed(fork);
    session_closed(s);
    place_again_close(p, st);
    assert_int_equal(f->locks, 0);
    assert_int_equal(f->descriptors, 0);
    os_current = &os_posix;
    st = place_again(p);
    char *now = whole_text(st, "a");
    assert_string_equal(now, was);
    free(now);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    o.agent = sessile_text(id);
    sessile_status there = sessile_resume(&s, st, &o, &err);
    if (there) {
        assert_int_equal(there, SESSILE_NOTFOUND);
        assert_int_not_equal(status, SESSILE_OK);
        s = session_resumed(st, "a");
        must(sessile_fork(&fork, s, SESSILE_NO_ID, &o, &err), &err); /* run again */
        session_closed(s);
        s = fork;
    }
    assert_contents(s, "one two three");
    assert_labels(s, "00000001=x");
    session_closed(s);
    assert_clean(st);
    place_again_close(p, st);
    return hits > 0;
}

static void ended_anywhere_it_is_there_whole_or_not_at_all(void **state)
{
    place_files_only();
    place *p = *state;
    os_table lazy = os_posix;
    faulty f;

    if (p->kind == STORE_RAM)
        return;
    sessile_session *s = session_made(p->store, "a");
    say(s, "user", "one");
    say(s, "user", "two");
    say(s, "user", "three");
    put_label(s, 1, "x");
    session_closed(s);
    char *was = whole_text(p->store, "a");
    lazy.sync_all = lazy.sync_data = no_sync;
    faulty_init(&f, &lazy);
    uint64_t endings = 0;
    for (int stop = 0; stop <= 1; stop++)
        for (uint64_t n = 0; one_ending(p, &f, n, stop, was); n++)
            endings++;
    assert_in_range(endings, 20, 500);
    os_current = &os_posix;
    faulty_deinit(&f);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(a_fork_for_another_agent_and_user),
        OVER(names_that_are_no_text_are_kept),
        OVER(what_cannot_be_forked_is_refused),
        OVER(of_a_damaged_session_what_stands_before_the_damage),
        OVER(damage_met_on_the_way_makes_no_fork),
        OVER(either_may_go),
        OVER(others_may_write_meanwhile),
        OVER(a_line_of_the_source_is_no_line_of_the_fork),
        OVER(children_are_named_by_their_parent),
        OVER(a_session_is_put_into_a_store_of_any_kind),
        OVER(ended_anywhere_it_is_there_whole_or_not_at_all),
    };

    return run_over_kinds("fork", STORE_RAM, tests, sizeof tests / sizeof *tests) != 0;
}
