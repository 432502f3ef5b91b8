/*
 * test_erasure.c: what an erasure ends beside logs, what its receipt proves, who was
 * never there, and who comes back.
 */
#include "sessile_access.h"
#include "sessile_audit.h"
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

static char *folder, root[600], key_text[200];
static int is_plain;

static int set_up(void **state)
{
    (void)state;
    folder = folder_make();
    snprintf(root, sizeof root, "%s/store", folder);
    is_plain = 0;
    return 0;
}

static int set_up_plain(void **state)
{
    (void)set_up(state);
    is_plain = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static sessile_store *opened(void)
{
    sessile_store_options so;
    sessile_store *st;
    sessile_error err;

    if (!is_plain)
        return keyed_open(root, KEYED_OLD);
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&st, root, &so, &err), &err);
    return st;
}

/* With a guard that keeps an audit. */
static sessile_store *guarded(void)
{
    sessile_store *st = opened();
    sessile_guard_options o;
    sessile_error err;

    sessile_guard_options_init(&o);
    o.audit.on = 1;
    must(sessile_store_guard(st, &o, &err), &err);
    return st;
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

static sessile_status resume(sessile_store *st, const char *id)
{
    sessile_session_options o = whose(id, KEYED_USER);
    sessile_session *s;
    sessile_error err;
    sessile_status status = sessile_resume(&s, st, &o, &err);

    if (!status)
        sessile_session_close(s, NULL);
    return status;
}

static void grant(sessile_store *st, const char *user, const char *session,
                  const char *owner)
{
    sessile_grant_options o;
    sessile_error err;

    sessile_grant_options_init(&o);
    o.user = sessile_text(user);
    o.role = "viewer";
    o.session = sessile_text(session);
    if (session) {
        o.agent = CODER;
        o.owner = sessile_text(owner);
    }
    must(sessile_grant(st, &o, NULL, &err), &err);
}

static void make_key(sessile_store *st, const char *user)
{
    const char *role = "editor";
    sessile_access_key_options o;
    sessile_error err;
    char *key;

    sessile_access_key_options_init(&o);
    o.user = sessile_text(user);
    o.roles = &role;
    o.role_count = 1;
    must(sessile_access_key(st, &o, &key, &err), &err);
    snprintf(key_text, sizeof key_text, "%s", key);
    sessile_free(key);
}

static sessile_status use_key(sessile_store *st)
{
    sessile_credential c;
    sessile_store *view = NULL;
    sessile_error err;
    sessile_status status;

    sessile_credential_init(&c);
    c.key = sessile_text(key_text);
    status = sessile_store_as(&view, st, &c, &err);
    sessile_store_close(view);
    return status;
}

/* A session, a memory, two grants, a key and a lock of the user; one grant of bob's. */
static sessile_store *filled(void)
{
    sessile_store *st = guarded();
    sessile_memory *m;
    sessile_error err;

    make(st, "one", KEYED_USER);
    make(st, "one", "bob");
    m = memory_of(st, KEYED_USER);
    remember(m, "drink", "likes tea " KEYED_CANARY, NULL);
    sessile_memory_close(m);
    grant(st, KEYED_USER, NULL, NULL);
    grant(st, "bob", "one", KEYED_USER);
    grant(st, "bob", NULL, NULL);
    make_key(st, KEYED_USER);
    must(use_key(st), NULL);
    must(sessile_access_lock(st, USER, NOBODY, sessile_text("left"), &err), &err);
    return st;
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

static void assert_in_force(sessile_store *st, size_t grants, size_t keys, size_t locks)
{
    sessile_grant_row *g;
    sessile_access_key_row *k;
    sessile_access_lock_row *l;
    sessile_error err;
    size_t count;

    must(sessile_grants(st, &g, &count, &err), &err);
    assert_int_equal(count, grants);
    sessile_free(g);
    must(sessile_access_keys(st, &k, &count, &err), &err);
    assert_int_equal(count, keys);
    sessile_free(k);
    must(sessile_access_locks(st, &l, &count, &err), &err);
    assert_int_equal(count, locks);
    sessile_free(l);
}

/* ------------------------------------------------------------------ what ends */

static void assert_counts(const sessile_receipt *r)
{
    assert_int_equal(r->sessions, 1);
    assert_int_equal(r->memories, 1);
    assert_int_equal(r->consents, 1);
    assert_int_equal(r->grants, 2);
    assert_int_equal(r->access_keys, 1);
    assert_int_equal(r->locks, 1);
    assert_int_equal(r->before_ms, 0);
}

static void what_the_user_was_given_ends(void **state)
{
    (void)state;
    sessile_store *st = filled(), *again;
    sessile_receipt *r = erased(st, 1);

    assert_counts(r);
    assert_string_equal(r->event, "");
    sessile_free(r);
    assert_in_force(st, 3, 1, 1); /* a dry run ends nothing */
    r = erased(st, 0);
    assert_counts(r);
    sessile_free(r);
    assert_in_force(st, 1, 0, 0); /* bob's */
    assert_int_equal(use_key(st), SESSILE_DENIED);
    again = guarded();
    assert_in_force(again, 1, 0, 0);
    assert_int_equal(use_key(again), SESSILE_DENIED);
    sessile_store_close(again);
    /* once more: it is done, and the receipt says since when */
    r = erased(st, 0);
    assert_int_equal(r->sessions + r->memories + r->bytes + r->grants + r->access_keys +
                         r->locks + r->consents,
                     0);
    assert_true(r->before_ms > 0);
    sessile_free(r);
    sessile_store_close(st);
}

/* Grants of a user whose secret is gone already are found as well. */
static void what_a_forgotten_user_was_given_ends(void **state)
{
    (void)state;
    sessile_store *st = filled();
    sessile_receipt *r;
    sessile_error err;

    must(sessile_forget(st, USER, NULL, &err), &err);
    sessile_store_close(st);
    st = guarded();
    r = erased(st, 0);
    assert_int_equal(r->sessions + r->memories, 2);
    assert_int_equal(r->grants, 2);
    assert_int_equal(r->access_keys, 1);
    assert_int_equal(r->locks, 1);
    sessile_free(r);
    assert_in_force(st, 1, 0, 0);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ the receipt */

static sessile_status check(const char *text, char key[SESSILE_AUDIT_KEY],
                            sessile_error *err)
{
    return sessile_audit_check_proof(sessile_text(text), key, NULL, NULL, err);
}

/* A copy of a text with one part of it replaced. */
static char *with(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *out;

    assert_non_null(at);
    out = calloc(1, strlen(text) + strlen(to) + 1);
    memcpy(out, text, (size_t)(at - text));
    strcat(out, to);
    strcat(out, at + strlen(from));
    return out;
}

static void a_receipt_is_proven_by_the_root_key(void **state)
{
    (void)state;
    sessile_store *st = filled();
    char root_key[SESSILE_AUDIT_KEY], key[SESSILE_AUDIT_KEY], *other;
    sessile_receipt *r;
    sessile_error err;
    static const struct {
        const char *from, *to, *why;
    } lies[] = {
        {"\"sessions\":1", "\"sessions\":2", "something else"},
        {"\"shredded\":true", "\"shredded\":false", "something else"},
        {"\"dry_run\":false", "\"dry_run\":false,\"note\":1", "something else"},
        {"\"proof\":", "\"proofs\":", "without a proof"},
        {"\\\"outcome\\\":\\\"success", "\\\"outcome\\\":\\\"failure", "sealed"},
    };

    must(sessile_audit_root(st, root_key, &err), &err);
    r = erased(st, 0);
    assert_string_not_equal(r->event, "");
    must(check(r->json.data, key, &err), &err);
    assert_string_equal(key, root_key);
    assert_null(strstr(r->json.data, KEYED_USER));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char *lie = with(r->json.data, lies[i].from, lies[i].to);
        assert_refused(check(lie, key, &err), SESSILE_DAMAGED, &err, lies[i].why);
        free(lie);
    }
    /* the proof of something else than an erasure */
    must(sessile_audit_prove(st, "00-000/00000001", &other, NULL, &err), &err);
    {
        const char *at = strstr(r->json.data, ",\"proof\":");
        char *lie = calloc(1, r->json.size + strlen(other) + 20);
        memcpy(lie, r->json.data, (size_t)(at - r->json.data));
        strcat(lie, ",\"proof\":");
        strcat(lie, other);
        strcat(lie, "}");
        assert_refused(check(lie, key, &err), SESSILE_DAMAGED, &err,
                       "not that of an erasure");
        free(lie);
    }
    sessile_free(other);
    sessile_free(r);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ who is nobody */

static void nobody_is_not_erased(void **state)
{
    (void)state;
    sessile_store *st = filled();
    sessile_erase_options dry = {.dry_run = 1};
    sessile_receipt *r;
    sessile_error err;
    int before = keyed_files_with(root, "sessile_forgotten");

    for (int i = 0; i < 2; i++)
        assert_refused(sessile_user_erase(st, sessile_text("ann.typo@example.org"),
                                          i ? NULL : &dry, &r, &err),
                       SESSILE_NOTFOUND, &err, "nobody was erased");
    assert_null(r);
    assert_int_equal(keyed_files_with(root, "sessile_forgotten"), before);
    /* who has nothing but a grant is somebody */
    grant(st, "carl", NULL, NULL);
    must(sessile_user_erase(st, sessile_text("carl"), NULL, &r, &err), &err);
    assert_int_equal(r->grants, 1);
    sessile_free(r);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ who comes back */

static uint64_t purged(sessile_store *st, int dry_run)
{
    uint64_t count, bytes;
    sessile_error err;

    must(sessile_purge_forgotten(st, NOBODY, dry_run, &count, &bytes, &err), &err);
    return count;
}

static void what_was_forgotten_goes_when_the_user_is_back(void **state)
{
    (void)state;
    sessile_store *st = opened();
    sessile_error err;

    make(st, "old", KEYED_USER);
    make(st, "older", KEYED_USER);
    make(st, "old", "bob");
    usleep(20000);
    must(sessile_forget(st, USER, NULL, &err), &err);
    usleep(20000);
    make(st, "new", KEYED_USER);
    assert_int_equal(resume(st, "old"), SESSILE_SEALED);
    assert_int_equal(purged(st, 1), 2);
    assert_int_equal(purged(st, 0), 2);
    assert_int_equal(purged(st, 0), 0);
    assert_int_equal(resume(st, "old"), SESSILE_NOTFOUND);
    must(resume(st, "new"), NULL);
    /* and in another process's handle */
    sessile_store_close(st);
    st = opened();
    must(resume(st, "new"), NULL);
    sessile_store_close(st);
}

/* A new log that is damaged does not open either, and is not taken for an old one. */
static void what_is_damaged_stays_when_the_user_is_back(void **state)
{
    (void)state;
    sessile_store *st = opened();
    char *path, text[4096];
    sessile_error err;
    FILE *file;
    size_t size;

    make(st, "old", KEYED_USER);
    usleep(20000);
    must(sessile_forget(st, USER, NULL, &err), &err);
    usleep(20000);
    assert_int_equal(purged(st, 0), 1);
    make(st, "new", KEYED_USER);
    sessile_store_close(st);
    path = keyed_file(root, "agents/", "\"user\":\"user-");
    file = fopen(path, "r+");
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = 0;
    char *at = strstr(text, "\"key\":\"");
    assert_non_null(at);
    at[20] = at[20] == 'A' ? 'B' : 'A';
    rewind(file);
    fwrite(text, 1, size, file);
    fclose(file);
    free(path);
    st = opened();
    assert_int_equal(resume(st, "new"), SESSILE_SEALED);
    assert_int_equal(purged(st, 0), 0);
    assert_int_equal(resume(st, "new"), SESSILE_SEALED);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ consent */

static void a_consent_has_words_and_a_withdrawal_needs_none(void **state)
{
    (void)state;
    sessile_store *st = opened();
    sessile_consent_options o;
    sessile_consent_row *rows;
    sessile_error err;
    size_t count;

    sessile_consent_options_init(&o);
    o.agent = CODER;
    o.user = USER;
    o.given = 1;
    o.scope = sessile_text("travel");
    assert_refused(sessile_consent(st, &o, NULL, &err), SESSILE_INVALID, &err,
                   "needs the words");
    o.text = sessile_text("I agree to be remembered");
    must(sessile_consent(st, &o, NULL, &err), &err);
    must(sessile_consents(st, USER, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].given, 1);
    assert_int_equal(strlen(rows[0].text_hash), 64);
    sessile_free(rows);
    o.given = 0;
    o.text = NOBODY;
    must(sessile_consent(st, &o, NULL, &err), &err);
    sessile_store_close(st);
}

#define TEST(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define PLAIN(name) cmocka_unit_test_setup_teardown(name, set_up_plain, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_user_was_given_ends),
        PLAIN(what_the_user_was_given_ends),
        TEST(what_a_forgotten_user_was_given_ends),
        TEST(a_receipt_is_proven_by_the_root_key),
        TEST(nobody_is_not_erased),
        PLAIN(nobody_is_not_erased),
        TEST(what_was_forgotten_goes_when_the_user_is_back),
        TEST(what_is_damaged_stays_when_the_user_is_back),
        TEST(a_consent_has_words_and_a_withdrawal_needs_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
