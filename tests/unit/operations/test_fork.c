/*
 * test_fork.c: a session made of another one: what comes along, what does not, and that
 * the two have nothing in common.
 *
 * Every test runs over a volatile, a sealed and a plain store. The last ones end a fork
 * at every step that changes a file, and let every system call fail once. It is long
 * because what comes along is asked of every kind of fact, in every kind of store.
 */
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

static void must(sessile_status status, const sessile_error *err)
{
    if (status)
        fail_msg("%s: %s", sessile_status_name(status), err->message);
}

static void refused(sessile_status got, sessile_status expected, const sessile_error *err,
                    const char *names)
{
    assert_string_equal(sessile_status_name(got), sessile_status_name(expected));
    if (!strstr(err->message, names))
        fail_msg("\"%s\" does not name \"%s\"", err->message, names);
}

/* ------------------------------------------------------------------ helpers */

static sessile_session *fork_with(sessile_session *s, sessile_id entry,
                                  const sessile_session_options *o)
{
    sessile_session *f = NULL;
    sessile_error err;

    must(sessile_fork(&f, s, entry, o, &err), &err);
    return f;
}

static sessile_session *fork_at(sessile_session *s, sessile_id entry, const char *id)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    return fork_with(s, entry, &o);
}

static char *text_of(sessile_session *s, sessile_id id)
{
    char *text;
    size_t size;
    sessile_error err;

    must(sessile_entry(s, id, &text, &size, &err), &err);
    return text;
}

/* Entries 1 to last are the same, byte for byte. */
static void assert_same_entries(sessile_session *a, sessile_session *b, sessile_id last)
{
    for (sessile_id id = 1; id <= last; id++) {
        char *x = text_of(a, id), *y = text_of(b, id);
        assert_string_equal(x, y);
        sessile_free(x);
        sessile_free(y);
    }
}

static void assert_head(sessile_session *s, sessile_id expected)
{
    sessile_id head;
    sessile_error err;

    must(sessile_head(s, &head, &err), &err);
    assert_int_equal(head, expected);
}

/* Contents of the messages, as "a b c". */
static void assert_says(sessile_session *s, const char *expected)
{
    sessile_message *rows;
    sessile_error err;
    size_t count;
    char got[4096] = "";

    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(rows[i].json.data, "\"content\":\"");
        assert_non_null(at);
        at += strlen("\"content\":\"");
        size_t n = strcspn(at, "\"");
        assert_true(strlen(got) + n + 2 < sizeof got);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", i ? " " : "",
                 (int)n, at);
    }
    sessile_free(rows);
    assert_string_equal(got, expected);
}

static void assert_title(sessile_session *s, const char *expected)
{
    char *title;
    size_t size;
    sessile_error err;

    must(sessile_title(s, &title, &size, &err), &err);
    assert_string_equal(title, expected);
    sessile_free(title);
}

typedef sessile_status (*members_fn)(sessile_session *, char **, size_t *,
                                     sessile_error *);

static void assert_members(sessile_session *s, members_fn read, const char *expected)
{
    char *text;
    size_t size;
    sessile_error err;

    must(read(s, &text, &size, &err), &err);
    assert_string_equal(text, expected);
    sessile_free(text);
}

/* Labels as "00000001=a 00000002=b". */
static void assert_labels(sessile_session *s, const char *expected)
{
    sessile_label_row *rows;
    sessile_error err;
    size_t count;
    char got[1024] = "";

    must(sessile_labels(s, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%08" PRIx32 "=%s",
                 i ? " " : "", rows[i].entry, rows[i].name.data);
    sessile_free(rows);
    assert_string_equal(got, expected);
}

static void label(sessile_session *s, sessile_id id, const char *name)
{
    sessile_error err;

    must(sessile_label(s, id, sessile_text(name), &err), &err);
}

static void set_title(sessile_session *s, const char *title)
{
    sessile_error err;

    must(sessile_set_title(s, sessile_text(title), &err), &err);
}

/* A whole check of the store finds nothing but notes. */
static void assert_clean(sessile_store *st)
{
    sessile_check *check;
    sessile_checked step;
    sessile_error err;

    must(sessile_check_open(&check, st, NULL, 0, &err), &err);
    do {
        must(sessile_check_next(check, &step, &err), &err);
        for (size_t i = 0; step.file && i < step.count; i++)
            if (step.findings[i].severity != SESSILE_NOTE)
                fail_msg("%s: %s", step.findings[i].file, step.findings[i].what);
    } while (step.file);
    sessile_check_close(check);
}

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

/* ------------------------------------------------------------------ what comes along */

static void a_fork_holds_everything_up_to_the_entry(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_link origin;

    say(s, "user", "one");
    sessile_id at = say(s, "assistant", "two");
    say(s, "user", "three");
    sessile_session *f = fork_at(s, at, "b");
    assert_says(f, "one two");
    assert_head(f, at);
    assert_same_entries(s, f, at);
    assert_int_equal(log_count(f->log), at + 1);
    assert_true(sessile_session_origin(f, &origin));
    assert_int_equal(origin.id.size, 1);
    assert_memory_equal(origin.id.data, "a", 1);
    assert_memory_equal(origin.agent.data, "main", 4);
    assert_int_equal(origin.entry, at);
    assert_int_equal(strlen(origin.tag), p->kind == STORE_SEALED ? 32 : 16);
    assert_false(sessile_session_origin(s, &origin));
    /* each goes its own way */
    say(f, "user", "other");
    say(s, "assistant", "four");
    assert_says(f, "one two other");
    assert_says(s, "one two three four");
    session_closed(f);
    f = session_resumed(p->store, "b");
    assert_says(f, "one two other");
    assert_true(sessile_session_origin(f, &origin));
    assert_int_equal(origin.entry, at);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

static void without_an_entry_it_forks_at_the_head(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s = session_made(p->store, "a");

    say(s, "user", "one");
    sessile_id leaf = say(s, "user", "two");
    sessile_session *f = fork_at(s, SESSILE_NO_ID, "whole");
    assert_says(f, "one two");
    session_closed(f);
    /* a head that was moved back, with an abandoned branch behind it */
    move_head(s, 1);
    say(s, "user", "three");
    move_head(s, leaf);
    f = fork_at(s, SESSILE_NO_ID, "back");
    assert_says(f, "one two");
    assert_int_equal(log_count(f->log), leaf + 1);
    session_closed(f);
    /* nothing on the path: an empty fork */
    move_head(s, 0);
    sessile_session_options_init(&o);
    f = fork_with(s, SESSILE_NO_ID, &o);
    assert_says(f, "");
    assert_head(f, 0);
    assert_int_equal(f->identity.id_size, 36);
    session_closed(f);
    session_closed(s);
}

static void branches_and_compactions_below_come_along(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say(s, "user", "one");
    sessile_id two = say(s, "user", "two");
    put_entry(
        s, "compaction", SESSILE_NO_ID,
        "{\"context\":[\"00000003.1\"],\"upto\":\"00000002\",\"inserted\":[{\"n\":1,"
        "\"turn\":1,\"tokens\":[3,\"estimate\"],\"covers\":[\"00000001-00000002\"],"
        "\"message\":{\"role\":\"user\",\"content\":\"in short\"}}]}");
    sessile_id four = say(s, "user", "four");
    move_head(s, two);
    sessile_id branch = say(s, "user", "aside");
    move_head(s, four);
    sessile_id last = say(s, "user", "last");
    sessile_session *f = fork_at(s, last, "b");
    char *here = context_keys(s, last), *there = context_keys(f, last);
    assert_string_equal(here, there);
    assert_non_null(strstr(there, "00000003.1"));
    free(here);
    free(there);
    here = context_keys(s, branch);
    there = context_keys(f, branch);
    assert_string_equal(here, there);
    free(here);
    free(there);
    assert_same_entries(s, f, last);
    session_closed(f);
    /* from the branch that was left: the same ids */
    f = fork_at(s, branch, "c");
    assert_says(f, "one two aside");
    assert_head(f, branch);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

static void a_fork_may_end_in_the_middle_of_a_turn(void **state)
{
    static const char *const messages[] = {
        "{\"role\":\"user\",\"content\":\"ask\",\"usage\":{\"input\":3}}",
        "{\"role\":\"assistant\",\"content\":\"answer\",\"usage\":{\"input\":4}}"};
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_usage usage;
    sessile_error err;

    sessile_id turn = say_turn(s, messages, 2, ",\"usage\":{\"input\":10}");
    sessile_session *whole = fork_at(s, turn, "whole"), *half = fork_at(s, 1, "half");
    must(sessile_total_usage(whole, &usage, &err), &err);
    assert_int_equal(usage.input, 10);
    assert_says(half, "ask");
    must(sessile_total_usage(half, &usage, &err), &err);
    assert_int_equal(usage.input, 3);
    say(half, "assistant", "another");
    session_closed(half);
    half = session_resumed(p->store, "half");
    assert_says(half, "ask another");
    session_closed(half);
    session_closed(whole);
    session_closed(s);
    assert_clean(p->store);
}

static void labels_put_later_come_along_as_they_are_now(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_error err;

    sessile_id one = say(s, "user", "one");
    label(s, one, "early");
    label(s, one, "gone");
    sessile_id two = say(s, "user", "two");
    sessile_id three = say(s, "user", "three");
    label(s, one, "late");
    label(s, two, "pinned");
    label(s, three, "not in the fork");
    must(sessile_unlabel(s, one, sessile_text("gone"), &err), &err);
    label(s, two, "on and off");
    must(sessile_unlabel(s, two, sessile_text("on and off"), &err), &err);
    label(s, one, "again");
    must(sessile_unlabel(s, one, sessile_text("again"), &err), &err);
    label(s, one, "again");
    sessile_session *f = fork_at(s, two, "b");
    assert_labels(f, "00000001=early 00000001=late 00000001=again 00000004=pinned");
    assert_head(f, two);
    session_closed(f);
    f = session_resumed(p->store, "b");
    assert_labels(f, "00000001=early 00000001=late 00000001=again 00000004=pinned");
    /* and the fork of the fork */
    sessile_session *g = fork_at(f, one, "c");
    assert_labels(g, "00000001=early 00000001=late 00000001=again");
    assert_says(g, "one");
    session_closed(g);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

static void title_settings_and_metadata_come_along_as_they_are_now(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;

    sessile_session_options_init(&o);
    o.id = sessile_text("a");
    o.title = sessile_text("first");
    o.metadata = sessile_text("{\"team\":\"x\",\"n\":1}");
    must(sessile_create(&s, p->store, &o, &err), &err);
    must(sessile_set_settings(s, sessile_text("{\"model\":\"m1\",\"old\":true}"), &err),
         &err);
    set_title(s, "second");
    put_entry(s, "metadata", SESSILE_NO_ID, "{\"status\":\"archived\",\"ttl\":5}");
    sessile_id one = say(s, "user", "one");
    say(s, "user", "two");
    must(sessile_set_settings(s,
                              sessile_text("{\"model\":\"m2\",\"old\":null,"
                                           "\"deep\":{\"a\":[1,9007199254740993]}}"),
                              &err),
         &err);
    must(sessile_set_metadata(s, sessile_text("{\"n\":2,\"team\":null,\"k\":3}"), &err),
         &err);
    set_title(s, "third");
    sessile_session *f = fork_at(s, one, "b");
    assert_title(f, "third");
    assert_members(f, sessile_settings,
                   "{\"model\":\"m2\",\"deep\":{\"a\":[1,9007199254740993]}}");
    assert_members(f, sessile_metadata, "{\"n\":2,\"k\":3}");
    assert_null(facts_find(&f->fold.facts, FACT_METADATA, 0, "status", 6));
    assert_null(facts_find(&f->fold.facts, FACT_METADATA, 0, "ttl", 3));
    session_closed(f);
    /* what is given goes before what is there */
    sessile_session_options_init(&o);
    o.id = sessile_text("c");
    o.title = sessile_text("mine");
    o.metadata = sessile_text("{\"k\":4,\"new\":null}");
    f = fork_with(s, one, &o);
    assert_title(f, "mine");
    assert_members(f, sessile_metadata, "{\"n\":2,\"k\":4}");
    session_closed(f);
    o.id = sessile_text("d");
    o.title = sessile_text("");
    f = fork_with(s, 0, &o);
    assert_title(f, "");
    session_closed(f);
    assert_title(s, "third");
    session_closed(s);
    assert_clean(p->store);
}

static void a_pause_is_not_inherited(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_suspension *pause;
    sessile_error err;
    sessile_id id;

    sessile_id one = say(s, "user", "one");
    must(sessile_suspend(s, sessile_text("approval"), sessile_text(""), &id, &err), &err);
    /* stated behind the entry: it is not copied at all */
    sessile_session *f = fork_at(s, one, "b");
    must(sessile_suspended(f, &pause, &err), &err);
    assert_null(pause);
    say(f, "user", "goes on");
    session_closed(f);
    /* among the lines: it is ended */
    put_entry(s, "pending_run", one, "{\"policy\":\"summarize\"}");
    sessile_id later =
        put_entry(s, "message", one, "{\"role\":\"user\",\"content\":\"x\"}");
    must(sessile_suspended(s, &pause, &err), &err);
    assert_non_null(pause);
    sessile_free(pause);
    f = fork_at(s, later, "c");
    must(sessile_suspended(f, &pause, &err), &err);
    assert_null(pause);
    say(f, "user", "goes on");
    assert_says(f, "one x goes on");
    size_t pending;
    fact *pending_runs;
    assert_int_equal(facts_in_force(&f->fold.facts, FACT_PENDING_RUN, &p->store->alloc,
                                    &pending_runs, &pending),
                     0);
    assert_int_equal(pending, 0);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

/* Above a block of the index, whose nodes a handle brings when they are wanted. */
static void a_long_session_forks_from_its_index(void **state)
{
    enum { MANY = 3 * LOG_BLOCK + 17 };
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    char content[32];

    for (int i = 1; i <= MANY; i++) {
        snprintf(content, sizeof content, "m%d", i);
        say(s, "user", content);
    }
    label(s, 5, "far back");
    session_closed(s);
    s = session_resumed(p->store, "a");
    sessile_session *f = fork_at(s, 300, "b");
    assert_head(f, 300);
    assert_labels(f, "00000005=far back");
    assert_same_entries(s, f, 300);
    session_closed(f);
    f = fork_at(s, SESSILE_NO_ID, "c");
    assert_head(f, MANY);
    session_closed(f);
    session_closed(s);
    /* the fork has an index of its own */
    f = session_resumed(p->store, "c");
    assert_int_equal(f->index.restored, p->kind != STORE_RAM || place_elsewhere());
    assert_labels(f, "00000005=far back");
    session_closed(f);
    assert_clean(p->store);
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
    refused(sessile_resume(&f, p->store, &o, &err), SESSILE_SEALED, &err, "");
    o.id = sessile_text("b");
    o.agent = sessile_text("critic");
    o.user = sessile_text("bob");
    must(sessile_resume(&f, p->store, &o, &err), &err);
    assert_says(f, "one");
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
    assert_says(g, "one");
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
    label(s, 1, "x");
    sessile_session_options_init(&o);
    o.id = sessile_text("b");
    refused(sessile_fork(&f, s, 99, &o, &err), SESSILE_NOTFOUND, &err, "00000063");
    assert_null(f);
    refused(sessile_fork(&f, s, 2, &o, &err), SESSILE_NOTFOUND, &err, "00000002");
    assert_false(is_listed(p->store, "b"));
    o.id = sessile_text("a");
    refused(sessile_fork(&f, s, 1, &o, &err), SESSILE_EXISTS, &err, "\"a\"");
    o.id = sessile_text("b");
    o.metadata = sessile_text("[]");
    refused(sessile_fork(&f, s, 1, &o, &err), SESSILE_INVALID, &err, "metadata");
    o.metadata = sessile_text("");
    o.title = sessile_text("\xff");
    refused(sessile_fork(&f, s, 1, &o, &err), SESSILE_INVALID, &err, "title");
    sessile_session_options_init(&o);
    refused(sessile_fork(NULL, s, 1, &o, &err), SESSILE_INVALID, &err, "id");
    refused(sessile_fork(&f, NULL, 1, &o, &err), SESSILE_INVALID, &err, "session");
    /* made and not opened */
    o.id = sessile_text("closed");
    must(sessile_fork(NULL, s, 1, &o, &err), &err);
    f = session_resumed(p->store, "closed");
    assert_says(f, "one");
    session_closed(f);
    assert_says(s, "one");
    session_closed(s);
}

/* Flips a byte in the line of an entry of agents/main/a.jsonl. */
static void hurt_line(const char *folder, int line)
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
        must(log_sync(s->log, log_count(s->log), &err), &err);
    }
    session_closed(s);
    hurt_line(p->folder, 4);
    s = session_resumed(p->store, "a");
    assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_DAMAGED);
    sessile_session_options_init(&o);
    o.id = sessile_text("b");
    refused(sessile_fork(&f, s, SESSILE_NO_ID, &o, &err), SESSILE_DAMAGED, &err,
            "fork it at 00000003");
    refused(sessile_fork(&f, s, 4, &o, &err), SESSILE_DAMAGED, &err, "00000003");
    assert_false(is_listed(p->store, "b"));
    f = fork_at(s, 3, "b");
    assert_says(f, "m m m");
    say(f, "user", "on");
    session_closed(f);
    /* a whole copy wants all of it */
    o.id = sessile_text("w");
    refused(sessile_put(&f, p->store, s, &o, &err), SESSILE_DAMAGED, &err, "salvage");
    session_closed(s);
}

/* Damage that the handle has not met, since its index spared it the line. */
static void damage_met_on_the_way_makes_no_fork(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_session_options o;
    sessile_session *s, *f;
    sessile_error err;

    if (p->kind == STORE_RAM)
        return;
    s = session_made(p->store, "a");
    for (int i = 0; i < LOG_BLOCK + 8; i++)
        say(s, "user", "m");
    session_closed(s);
    s = session_resumed(p->store, "a");
    hurt_line(p->folder, 9);
    sessile_session_options_init(&o);
    o.id = sessile_text("b");
    refused(sessile_fork(&f, s, SESSILE_NO_ID, &o, &err), SESSILE_DAMAGED, &err,
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
    assert_says(f, "one two");
    sessile_session *g = fork_at(f, SESSILE_NO_ID, "c");
    session_closed(f);
    snprintf(path, sizeof path, "%s/agents/main/b.jsonl", p->folder);
    assert_int_equal(unlink(path), 0);
    assert_says(g, "one two");
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
    assert_says(f, "one");
    session_closed(f);
    f = fork_at(s, SESSILE_NO_ID, "c");
    assert_says(f, "one two");
    say(t, "user", "three");
    assert_says(f, "one two");
    session_closed(f);
    session_closed(t);
    session_closed(s);
    place_again_close(p, again);
}

/* ------------------------------------------------------------------ whole copies */

static void a_session_is_put_into_a_store_of_any_kind(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s = session_made(p->store, "a"), *t;
    sessile_suspension *pause;
    sessile_error err;
    sessile_id id;

    say(s, "user", "one");
    say(s, "user", "aside");
    move_head(s, 1);
    sessile_id two = say(s, "user", "two");
    label(s, two, "here");
    set_title(s, "a title");
    sessile_session *fork = fork_at(s, two, "of it");
    must(sessile_suspend(s, sessile_text("x"), sessile_text(""), &id, &err), &err);
    for (int kind = 0; kind < STORE_KINDS; kind++) {
        place other;
        sessile_link origin;
        place_open(&other, kind);
        must(sessile_put(&t, other.store, s, NULL, &err), &err);
        assert_memory_equal(sessile_session_id(t).data, "a", 2);
        assert_says(t, "one two");
        assert_head(t, two);
        assert_title(t, "a title");
        assert_labels(t, "00000004=here");
        assert_int_equal(log_count(t->log), log_count(s->log));
        assert_int_equal(sessile_session_created(t), sessile_session_created(s));
        char *x = text_of(s, 0), *y = text_of(t, 0);
        assert_string_equal(x, y);
        sessile_free(x);
        sessile_free(y);
        assert_same_entries(s, t, log_count(s->log) - 1);
        must(sessile_suspended(t, &pause, &err), &err);
        assert_non_null(pause); /* it is the same session, elsewhere */
        sessile_free(pause);
        session_closed(t);
        refused(sessile_put(&t, other.store, s, NULL, &err), SESSILE_EXISTS, &err,
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
        if (i + 1 < LINES)
            assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_DAMAGED);
        else /* the end of a log that is no line of it: set aside, and reported */
            assert_int_equal(sessile_session_torn(s), a_end - a);
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
    assert_says(c, "");
    assert_says(d, "one");
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
    refused(sessile_child_discarded(c, d, sessile_text(""), &err), SESSILE_INVALID, &err,
            "no child");
    refused(sessile_child_merged(s, s, sessile_text("{}"), &id, &err), SESSILE_INVALID,
            &err, "no child");
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
    /* a paused parent takes no message, and says what became of a child */
    must(sessile_suspend(s, sessile_text("x"), sessile_text(""), &id, &err), &err);
    refused(sessile_child_merged(
                s, c, sessile_text("{\"role\":\"user\",\"content\":\"\"}"), &id, &err),
            SESSILE_SUSPENDED, &err, "paused");
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

    for (sessile_id i = 0; i < log_count(s->log); i++) {
        char *text = text_of(s, i);
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
    assert_says(s, "one two three");
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
    label(s, 1, "x");
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

#define OVER(kind)                                                                       \
    cmocka_unit_test_setup_teardown(a_fork_holds_everything_up_to_the_entry,             \
                                    place_set_up_##kind, place_tear_down),               \
        cmocka_unit_test_setup_teardown(without_an_entry_it_forks_at_the_head,           \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(branches_and_compactions_below_come_along,       \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(a_fork_may_end_in_the_middle_of_a_turn,          \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(labels_put_later_come_along_as_they_are_now,     \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(                                                 \
            title_settings_and_metadata_come_along_as_they_are_now, place_set_up_##kind, \
            place_tear_down),                                                            \
        cmocka_unit_test_setup_teardown(a_pause_is_not_inherited, place_set_up_##kind,   \
                                        place_tear_down),                                \
        cmocka_unit_test_setup_teardown(a_long_session_forks_from_its_index,             \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(a_fork_for_another_agent_and_user,               \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(names_that_are_no_text_are_kept,                 \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(what_cannot_be_forked_is_refused,                \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(                                                 \
            of_a_damaged_session_what_stands_before_the_damage, place_set_up_##kind,     \
            place_tear_down),                                                            \
        cmocka_unit_test_setup_teardown(damage_met_on_the_way_makes_no_fork,             \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(either_may_go, place_set_up_##kind,              \
                                        place_tear_down),                                \
        cmocka_unit_test_setup_teardown(others_may_write_meanwhile, place_set_up_##kind, \
                                        place_tear_down),                                \
        cmocka_unit_test_setup_teardown(a_line_of_the_source_is_no_line_of_the_fork,     \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(children_are_named_by_their_parent,              \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(a_session_is_put_into_a_store_of_any_kind,       \
                                        place_set_up_##kind, place_tear_down),           \
        cmocka_unit_test_setup_teardown(ended_anywhere_it_is_there_whole_or_not_at_all,  \
                                        place_set_up_##kind, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {OVER(ram), OVER(sealed), OVER(plain)};

    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
