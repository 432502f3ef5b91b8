/*
 * test_privacy.c: consents, holds, retention, and the erasure of a user.
 *
 * Owns the proof that what is erased is gone, also for who has a copy of the logs and the
 * key of the store, and that nothing goes that a hold keeps, whichever way it is tried.
 */
#include "sessile_guard.h"
#include "sessile_privacy.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/memories.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOBODY sessile_text(NULL)
#define CODER  sessile_text("coder")
#define USER   sessile_text(KEYED_USER)

static char *folder, root[600], copy[600];

static int set_up(void **state)
{
    (void)state;
    folder = folder_make();
    snprintf(root, sizeof root, "%s/store", folder);
    snprintf(copy, sizeof copy, "%s/copy", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static sessile_session_options whose(const char *id, const char *user)
{
    sessile_session_options o;
    sessile_session_options_init(&o);
    o.agent = CODER;
    o.id = sessile_text(id);
    o.user = sessile_text(user);
    return o;
}

static void make(sessile_store *st, const char *id, const char *user)
{
    sessile_session_options o = whose(id, user);
    sessile_session *s;
    sessile_error err;

    must(sessile_create(&s, st, &o, &err), &err);
    keyed_say(s, KEYED_CANARY);
    sessile_session_close(s, NULL);
}

/* What the agent keeps for all, from a session of the user. */
static void remember_for_all(sessile_store *st, const char *session)
{
    sessile_memory *m = memory_of(st, NULL);
    sessile_memory_from from = {.session = sessile_text(session), .first = 1, .last = 1};
    sessile_memory_write_entry e;
    sessile_error err;

    sessile_memory_write_init(&e);
    e.value = sessile_text("the team deploys on Fridays " KEYED_CANARY);
    e.from = &from;
    e.from_count = 1;
    must(sessile_memory_write(m, &e, 1, NULL, &err), &err);
    remember(m, NULL, "what nobody said", NULL);
    sessile_memory_close(m);
}

static void remember_of(sessile_store *st, const char *user)
{
    sessile_memory *m = memory_of(st, user);
    remember(m, "drink", "likes tea " KEYED_CANARY, NULL);
    sessile_memory_close(m);
}

/* Two sessions and a memory of the user; sessions and memories of others. */
static sessile_store *filled(void)
{
    sessile_store *st = keyed_open(root, KEYED_OLD);
    sessile_session_options o = whose("copied", "bob");
    sessile_session *s, *fork;
    sessile_error err;

    make(st, "one", KEYED_USER);
    make(st, "two", KEYED_USER);
    make(st, "one", "bob");
    make(st, "free", NULL);
    remember_of(st, KEYED_USER);
    remember_of(st, "bob");
    remember_for_all(st, "two");
    o.id = sessile_text("two");
    o.user = USER;
    must(sessile_resume(&s, st, &o, &err), &err);
    o = whose("copied", "bob");
    must(sessile_fork(&fork, s, 1, &o, &err), &err);
    sessile_session_close(fork, NULL);
    sessile_session_close(s, NULL);
    return st;
}

static size_t sessions_of(sessile_store *st, const char *user)
{
    sessile_list_options o;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    sessile_list_options_init(&o);
    o.user = sessile_text(user);
    o.lives = 0x1f;
    must(sessile_list_with(st, &o, &rows, &count, &err), &err);
    sessile_free(rows);
    return count;
}

static sessile_receipt *erased(sessile_store *st, int dry_run)
{
    sessile_erase_options o;
    sessile_receipt *r;
    sessile_error err;

    sessile_erase_options_init(&o);
    o.dry_run = dry_run;
    must(sessile_user_erase(st, USER, &o, &r, &err), &err);
    return r;
}

/* ------------------------------------------------------------------ erasure */

static void erased_user_is_gone_and_others_are_not(void **state)
{
    (void)state;
    sessile_store *st = filled();
    sessile_receipt *would = erased(st, 1), *r;
    sessile_memory *m;

    assert_int_equal(sessions_of(st, KEYED_USER), 2); /* a dry run changes nothing */
    r = erased(st, 0);
    assert_int_equal(r->sessions, 2);
    assert_int_equal(r->memories, 1);
    assert_int_equal(r->shared_entries, 1);
    assert_int_equal(r->forks, 1);
    assert_int_equal(r->without_user, 1);
    assert_int_equal(r->shredded, 1);
    assert_int_equal(r->bytes, would->bytes);
    assert_int_equal(would->sessions + would->memories + would->shared_entries, 4);
    assert_string_equal(r->subject, would->subject);
    assert_non_null(strstr(r->json.data, "\"not_reached\":{\"forks\":1"));
    assert_null(strstr(r->json.data, KEYED_USER));
    assert_int_equal(sessions_of(st, KEYED_USER), 0);
    assert_int_equal(sessions_of(st, "bob"), 2);
    m = memory_of(st, NULL);
    expect_text(found(m, "deploys Fridays"), "");
    expect_text(found(m, "nobody said"), "what nobody said");
    sessile_memory_close(m);
    m = memory_of(st, "bob");
    expect_key(m, "drink", "likes tea " KEYED_CANARY);
    sessile_memory_close(m);
    sessile_free(would);
    sessile_free(r);
    /* again: there is nothing more */
    r = erased(st, 0);
    assert_int_equal(r->sessions + r->memories + r->shared_entries, 0);
    sessile_free(r);
    sessile_store_close(st);
    assert_int_equal(keyed_files_with(root, KEYED_USER), 0);
    assert_int_equal(keyed_files_with(root, KEYED_CANARY), 0);
    assert_int_equal(keyed_files_with(root, "sessile_user"), 1); /* the other user's */
}

static void copy_of_the_logs_opens_nothing(void **state)
{
    (void)state;
    char from[700], to[700], *text;
    sessile_store *st = filled();
    sessile_session *s;
    sessile_session_options o = whose("one", KEYED_USER);
    sessile_memory_options mo;
    sessile_memory *m;
    sessile_error err;

    keyed_copy(root, copy);
    sessile_free(erased(st, 0));
    sessile_store_close(st);
    snprintf(from, sizeof from, "%s/agents", copy);
    snprintf(to, sizeof to, "%s/agents", root);
    keyed_copy(from, to);
    st = keyed_open(root, KEYED_OLD);
    assert_int_equal(sessile_resume(&s, st, &o, &err), SESSILE_SEALED);
    sessile_memory_options_init(&mo);
    mo.agent = CODER;
    mo.user = USER;
    assert_int_equal(sessile_memory_open(&m, st, &mo, &err), SESSILE_SEALED);
    assert_int_equal(keyed_read(st, "one", "bob", &text, &err), SESSILE_NOTFOUND);
    /* and erasing once more takes the copies away */
    sessile_receipt *r = erased(st, 0);
    assert_int_equal(r->sessions, 2);
    assert_int_equal(r->memories, 1);
    sessile_free(r);
    assert_int_equal(sessions_of(st, KEYED_USER), 0);
    sessile_store_close(st);
}

static void user_who_returned_is_erased_again(void **state)
{
    (void)state;
    sessile_store *st = filled();
    sessile_error err;
    sessile_receipt *r;

    /* forgotten, but not purged: the memory cannot be read, nor another one made */
    must(sessile_forget(st, USER, NULL, &err), &err);
    make(st, "three", KEYED_USER);
    r = erased(st, 0);
    assert_int_equal(r->sessions, 3);
    assert_int_equal(r->memories, 1);
    sessile_free(r);
    remember_of(st, KEYED_USER);
    sessile_store_close(st);
}

static void plain_store_removes_files_and_says_so(void **state)
{
    (void)state;
    sessile_store_options so;
    sessile_store *st;
    sessile_receipt *r;
    sessile_error err;

    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&st, root, &so, &err), &err);
    make(st, "one", KEYED_USER);
    make(st, "one", "bob");
    remember_of(st, KEYED_USER);
    r = erased(st, 0);
    assert_int_equal(r->shredded, 0);
    assert_int_equal(r->sessions, 1);
    assert_int_equal(r->memories, 1);
    assert_non_null(strstr(r->json.data, "nothing was shredded"));
    sessile_free(r);
    assert_int_equal(sessions_of(st, "bob"), 1);
    sessile_store_close(st);
    assert_int_equal(keyed_files_with(root, KEYED_USER), 0);
}

/* ------------------------------------------------------------------ holds */

static sessile_id held(sessile_store *st, const char *agent, const char *user,
                       const char *session)
{
    sessile_hold_options o;
    sessile_error err;
    sessile_id id;

    sessile_hold_options_init(&o);
    o.agent = sessile_text(agent);
    o.user = sessile_text(user);
    o.session = sessile_text(session);
    o.reason = sessile_text("case 7");
    must(sessile_hold(st, &o, &id, &err), &err);
    return id;
}

static sessile_status delete_one(sessile_store *st, sessile_error *err)
{
    sessile_session_options o = whose("one", KEYED_USER);
    return sessile_delete(st, &o, NULL, NULL, err);
}

static sessile_status forget(sessile_store *st, sessile_error *err)
{
    return sessile_forget(st, USER, NULL, err);
}

static sessile_status erase(sessile_store *st, sessile_error *err)
{
    return sessile_user_erase(st, USER, NULL, NULL, err);
}

static sessile_status erase_memory(sessile_store *st, sessile_error *err)
{
    sessile_memory *m = memory_of(st, KEYED_USER);
    const sessile_memory_erase_options all = {.written_before_ms = INT64_MAX};
    sessile_status status = sessile_memory_erase(m, &all, NULL, err);
    sessile_memory_close(m);
    return status;
}

static sessile_status withdraw(sessile_store *st, sessile_error *err)
{
    sessile_consent_options o;
    sessile_consent_options_init(&o);
    o.agent = CODER;
    o.user = USER;
    return sessile_consent(st, &o, NULL, err);
}

/* These two skip what is held, which is no error: DENIED here, when nothing was removed.
 */
static sessile_status purge(sessile_store *st, sessile_error *err)
{
    sessile_session_options o = whose("one", KEYED_USER);
    sessile_delete_options softly = {.soft = 1};
    sessile_purge_options po;
    sessile_listed *rows;
    size_t count;

    must(sessile_delete(st, &o, &softly, NULL, err), err); /* that is let */
    sessile_purge_options_init(&po);
    po.retention_ms = 0;
    must(sessile_purge(st, &po, &rows, &count, err), err);
    sessile_free(rows);
    if (!count)
        must(sessile_undelete(st, &o, NOBODY, err), err);
    return count ? SESSILE_OK : SESSILE_DENIED;
}

static sessile_status retain(sessile_store *st, sessile_error *err)
{
    sessile_retention_rule rules[] = {
        {.user = USER, .sessions_ms = 1, .deleted_ms = -1, .memory_ms = 1}};
    sessile_retention_options o = {.rules = rules, .count = 1};
    sessile_retained out;

    usleep(5000);
    must(sessile_purge_retention(st, &o, &out, err), err);
    return out.held ? SESSILE_DENIED : SESSILE_OK;
}

static void every_way_meets_a_hold(void **state)
{
    (void)state;
    static const struct way {
        const char *name;
        sessile_status (*run)(sessile_store *st, sessile_error *err);
        int refuses, of_session; /* it says so; a session's hold keeps it too */
    } ways[] = {{"delete", delete_one, 1, 1},
                {"purge", purge, 0, 1},
                {"retention", retain, 0, 1},
                {"forget", forget, 1, 1},
                {"erase", erase, 1, 1},
                {"memory erase", erase_memory, 1, 0},
                {"consent withdrawn", withdraw, 1, 0}};
    static const struct {
        const char *agent, *user, *session;
    } scopes[] = {{NULL, KEYED_USER, NULL},
                  {"coder", NULL, NULL},
                  {"coder", KEYED_USER, NULL},
                  {"coder", KEYED_USER, "one"}};
    sessile_error err;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++) {
            char rule[64];
            sessile_store *st = filled();
            sessile_id id = held(st, scopes[k].agent, scopes[k].user, scopes[k].session);
            int keeps = !scopes[k].session || ways[i].of_session;
            sessile_status status = ways[i].run(st, &err);
            if (status != (keeps ? SESSILE_DENIED : SESSILE_OK))
                fail_msg("%s, scope %zu: %s %s", ways[i].name, k,
                         sessile_status_name(status), err.message);
            snprintf(rule, sizeof rule, "hold:%08x", (unsigned)id);
            if (keeps && ways[i].refuses)
                assert_string_equal(err.rule, rule);
            if (keeps) {
                sessile_session_options one = whose("one", KEYED_USER);
                sessile_session *s;
                must(sessile_resume(&s, st, &one, &err), &err);
                sessile_session_close(s, NULL);
                must(sessile_hold_release(st, id, NOBODY, &err), &err);
                must(ways[i].run(st, &err), &err);
            }
            sessile_store_close(st);
            folder_remove(folder);
            set_up(NULL);
        }
}

static void hold_binds_others_until_its_end(void **state)
{
    (void)state;
    sessile_store *st = filled(), *other = keyed_open(root, KEYED_OLD);
    sessile_hold_options o;
    sessile_hold_row *rows;
    sessile_error err;
    sessile_id id;
    size_t count;

    sessile_hold_options_init(&o);
    o.user = sessile_text("bob");
    assert_int_equal(sessile_hold(st, &o, &id, &err), SESSILE_INVALID); /* no reason */
    id = held(st, NULL, "bob", NULL);
    must(erase(other, &err), &err); /* of somebody else */
    assert_int_equal(sessile_forget(other, sessile_text("bob"), NULL, &err),
                     SESSILE_DENIED);
    must(sessile_holds(other, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].id, id);
    assert_memory_equal(rows[0].user.data, "bob", 3);
    assert_memory_equal(rows[0].reason.data, "case 7", 6);
    sessile_free(rows);
    assert_int_equal(sessile_hold_release(other, id + 1, NOBODY, &err), SESSILE_NOTFOUND);
    must(sessile_hold_release(other, id, NOBODY, &err), &err);
    must(sessile_forget(st, sessile_text("bob"), NULL, &err), &err);
    sessile_store_close(other);
    sessile_store_close(st);
    assert_int_equal(keyed_files_with(root, "case 7"), 0); /* sealed */
}

/* ------------------------------------------------------------------ consent */

static void consent_withdrawn_erases(void **state)
{
    (void)state;
    sessile_store *st = filled();
    sessile_consent_options o;
    sessile_consent_row *rows;
    sessile_memory *m;
    sessile_error err;
    size_t count;

    sessile_consent_options_init(&o);
    o.agent = CODER;
    o.user = USER;
    o.keep = 1;
    must(sessile_consent(st, &o, &count, &err), &err);
    assert_int_equal(count, 0);
    must(sessile_consents(st, USER, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].given, 0);
    assert_int_equal(rows[0].entries, 1);
    sessile_free(rows);
    o.given = 1;
    o.text = sessile_text("remember me");
    o.by = sessile_text("ann");
    must(sessile_consent(st, &o, NULL, &err), &err);
    must(sessile_consents(st, USER, &rows, &count, &err), &err);
    assert_int_equal(rows[0].given, 1);
    assert_memory_equal(rows[0].text.data, "remember me", 11);
    assert_int_equal(strlen(rows[0].text_hash), 64);
    assert_true(rows[0].time_ms > 0);
    sessile_free(rows);
    o.given = o.keep = 0;
    o.text = NOBODY;
    must(sessile_consent(st, &o, &count, &err), &err);
    assert_int_equal(count, 1);
    must(sessile_consents(st, NOBODY, &rows, &count, &err), &err);
    assert_int_equal(count, 2); /* bob's too */
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].entries, rows[i].user.size == 3 ? 1 : 0);
    sessile_free(rows);
    sessile_memory_options mo = {.agent = CODER, .user = USER};
    must(sessile_memory_open(&m, st, &mo, &err), &err);
    expect_key(m, "drink", NULL);
    sessile_memory_write_entry e;
    sessile_memory_write_init(&e);
    e.value = sessile_text("x");
    assert_int_equal(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_DENIED);
    assert_string_equal(err.rule, "consent");
    sessile_memory_close(m);
    o.user = sessile_text("nobody we know");
    assert_int_equal(sessile_consent(st, &o, NULL, &err), SESSILE_NOTFOUND);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ retention */

static void retention_removes_what_its_rules_say(void **state)
{
    (void)state;
    sessile_store *st = filled();
    sessile_retention_rule rules[] = {
        {.agent = CODER, .sessions_ms = 1, .deleted_ms = -1, .memory_ms = 1},
        {.user = sessile_text("bob"), .sessions_ms = 0, .deleted_ms = 0, .memory_ms = 0},
    };
    sessile_retention_options o = {.rules = rules, .count = 2, .dry_run = 1};
    sessile_retained out;
    sessile_error err;

    usleep(5000);
    must(sessile_purge_retention(st, &o, &out, &err), &err);
    assert_int_equal(out.sessions, 3); /* the user's, and that of nobody */
    assert_int_equal(out.entries, 3);  /* the user's, and two that are kept for all */
    assert_int_equal(sessions_of(st, KEYED_USER), 2);
    o.dry_run = 0;
    must(sessile_purge_retention(st, &o, &out, &err), &err);
    assert_int_equal(out.sessions, 3);
    assert_int_equal(out.entries, 3);
    assert_int_equal(sessions_of(st, KEYED_USER), 0);
    assert_int_equal(sessions_of(st, "bob"), 2);
    must(sessile_purge_retention(st, &o, &out, &err), &err);
    assert_int_equal(out.sessions + out.entries + out.held, 0);
    rules[0].user = sessile_text("ann");
    assert_int_equal(sessile_purge_retention(st, &o, &out, &err), SESSILE_INVALID);
    sessile_store_close(st);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(erased_user_is_gone_and_others_are_not),
        TEST(copy_of_the_logs_opens_nothing),
        TEST(user_who_returned_is_erased_again),
        TEST(plain_store_removes_files_and_says_so),
        TEST(every_way_meets_a_hold),
        TEST(hold_binds_others_until_its_end),
        TEST(consent_withdrawn_erases),
        TEST(retention_removes_what_its_rules_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
