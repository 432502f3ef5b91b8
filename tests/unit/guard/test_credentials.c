/*
 * test_credentials.c: whatever is wrong with a key or a token, it is refused with the
 * same code and the same sentence, and the store is not asked more for one than for
 * another.
 */
#include "support/check.h"
#include "support/sessions.h"
#include "support/signer.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "guard/guard.h"
#include "sessile_access.h"

#define SENTENCE "the credential is not accepted"
#define ISSUER   "https://id.example"

typedef struct world {
    char *folder, keys[600];
    signer *signer;
    sessile_store *store;
    sessile_error err;
    char *key, *other, *expired, *on_device, *revoked; /* access keys */
    int64_t expires_ms;                                /* of one of them */
    size_t tried;
} world;

/* ------------------------------------------------------------------ a counting backend
 */

static uint64_t calls; /* of the store, by everybody */

static sessile_status (*real_open)(void *, const char *, const char *,
                                   sessile_backend_log **, sessile_error *);
static sessile_status (*real_size)(sessile_backend_log *, uint64_t *, int64_t *,
                                   sessile_error *);
static sessile_status (*real_read)(sessile_backend_log *, uint64_t, size_t, void *,
                                   size_t, size_t *, sessile_error *);
static sessile_status (*real_blob)(void *, const char *, char **, size_t *,
                                   sessile_error *);

static sessile_status count_open(void *self, const char *folder, const char *name,
                                 sessile_backend_log **out, sessile_error *err)
{
    calls++;
    return real_open(self, folder, name, out, err);
}

static sessile_status count_size(sessile_backend_log *log, uint64_t *bytes, int64_t *ms,
                                 sessile_error *err)
{
    calls++;
    return real_size(log, bytes, ms, err);
}

static sessile_status count_read(sessile_backend_log *log, uint64_t at, size_t atleast,
                                 void *out, size_t size, size_t *got, sessile_error *err)
{
    calls++;
    return real_read(log, at, atleast, out, size, got, err);
}

static sessile_status count_blob(void *self, const char *name, char **out, size_t *size,
                                 sessile_error *err)
{
    calls++;
    return real_blob(self, name, out, size, err);
}

/* The store's table of operations, with those that read counted. */
static void count_calls(sessile_store *store)
{
    static sessile_backend counted;

    counted = *store->core->backend.table;
    real_open = counted.open;
    real_size = counted.size;
    real_read = counted.read;
    real_blob = counted.blob_get;
    counted.open = count_open;
    counted.size = count_size;
    counted.read = count_read;
    counted.blob_get = count_blob;
    store->core->backend.table = &counted;
}

/* ------------------------------------------------------------------ the world */

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

static char *made_key(world *w, const char *user, int64_t expires_ms, const char *device)
{
    const char *editor = "editor";
    sessile_access_key_options o;
    char *key;

    sessile_access_key_options_init(&o);
    o.user = sessile_text(user);
    o.roles = &editor;
    o.role_count = 1;
    o.expires_ms = expires_ms;
    o.device = sessile_text(device);
    must(sessile_access_key(w->store, &o, &key, &w->err), &w->err);
    return key;
}

static int set_up(void **state)
{
    static const signer_key all[] = {SIGNER_ED25519, SIGNER_P256,   SIGNER_RSA,
                                     SIGNER_PSS,     SIGNER_SECRET, SIGNER_KEYS};
    world *w = calloc(1, sizeof *w);
    sessile_token_options token = {.issuer = ISSUER, .audience = "sessile"};
    sessile_guard_options o;
    sessile_store_options so;
    char *jwks;
    FILE *file;

    w->folder = folder_make();
    w->signer = signer_new();
    snprintf(w->keys, sizeof w->keys, "%s/jwks.json", w->folder);
    jwks = signer_jwks(w->signer, all);
    file = fopen(w->keys, "w");
    assert_non_null(file);
    assert_true(fputs(jwks, file) >= 0);
    fclose(file);
    free(jwks);
    assert_int_equal(chmod(w->keys, 0600), 0);
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_SECRET;
    so.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    must(sessile_open(&w->store, "ram:", &so, &w->err), &w->err);
    sessile_guard_options_init(&o);
    token.keys = w->keys;
    o.token = &token;
    o.limits.on = 1;
    must(sessile_store_guard(w->store, &o, &w->err), &w->err);
    w->key = made_key(w, "ann", 0, "");
    w->other = made_key(w, "bob", 0, "");
    w->expires_ms = now_s() * 1000 + 3000;
    w->expired = made_key(w, "ann", w->expires_ms, "");
    w->on_device = made_key(w, "ann", 0, "laptop");
    w->revoked = made_key(w, "ann", 0, "");
    sessile_slice id = {w->revoked + 5, ACCESS_KEY_ID};
    must(sessile_access_key_revoke(w->store, id, &w->err), &w->err);
    count_calls(w->store);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    sessile_free(w->key);
    sessile_free(w->other);
    sessile_free(w->expired);
    sessile_free(w->on_device);
    sessile_free(w->revoked);
    sessile_store_close(w->store);
    signer_free(w->signer);
    folder_remove(w->folder);
    free(w);
    return 0;
}

/* ------------------------------------------------------------------ credentials */

static sessile_credential of_key(const char *text, size_t size)
{
    sessile_credential c;

    sessile_credential_init(&c);
    c.key = (sessile_slice){text, size};
    return c;
}

static sessile_credential of_token(const char *text)
{
    sessile_credential c;

    sessile_credential_init(&c);
    c.token = sessile_text(text);
    return c;
}

/* The calls are those of a credential, unless the second in which the control log is
 * looked at ended meanwhile: then it is tried again. */
static void refused(world *w, const sessile_credential *c, const char *what)
{
    uint64_t asked = 1;

    for (int i = 0; asked && i < 20; i++) {
        sessile_store *view = w->store;
        sessile_error err = {0};
        uint64_t before = calls;
        sessile_status status = sessile_store_as(&view, w->store, c, &err);
        asked = calls - before;
        if (status != SESSILE_DENIED || strcmp(err.message, SENTENCE) != 0 ||
            err.rule[0] || view)
            fail_msg("%s: %s %s [%s]", what, sessile_status_name(status), err.message,
                     err.rule);
    }
    assert_int_equal(asked, 0);
    w->tried++;
}

static sessile_store *accepted_view(world *w, const sessile_credential *c)
{
    sessile_store *view;

    must(sessile_store_as(&view, w->store, c, &w->err), &w->err);
    return view;
}

static char *signed_token(world *w, const char *payload)
{
    return signer_token(w->signer, SIGNER_ED25519, "{\"alg\":\"EdDSA\",\"kid\":\"ed\"}",
                        payload);
}

/* A payload that is accepted, but for what is in `more`. */
static char *payload_of(const char *user, const char *more)
{
    static char text[8][600];
    static int next;
    char *out = text[next++ % 8];

    snprintf(out, 600,
             "{\"iss\":\"" ISSUER "\",\"aud\":\"sessile\",\"sub\":\"%s\",\"exp\":%lld%s}",
             user, (long long)now_s() + 600, more);
    return out;
}

static void assert_user(sessile_store *view, const char *user, const char *method)
{
    sessile_principal who;
    sessile_error err;

    must(sessile_store_who(view, &who, &err), &err);
    assert_int_equal(who.user.size, strlen(user));
    assert_memory_equal(who.user.data, user, who.user.size);
    assert_string_equal(who.method, method);
}

static void a_key_says_who_one_is(void **state)
{
    world *w = *state;
    sessile_credential c = of_key(w->key, strlen(w->key));
    sessile_store *view = accepted_view(w, &c);
    sessile_principal who;

    assert_int_equal(strlen(w->key), ACCESS_KEY_TEXT);
    assert_user(view, "ann", "key");
    must(sessile_store_who(view, &who, &w->err), &w->err);
    assert_memory_equal(who.key.data, w->key + 5, ACCESS_KEY_ID);
    assert_true(who.permissions & (1u << SESSILE_MAY_MODIFY_SESSION));
    assert_int_equal(who.all, 0);
    must(sessile_access_key_revoke(w->store, who.key, &w->err), &w->err);
    sessile_listed *rows;
    size_t count;
    assert_int_equal(sessile_list(view, NULL, &rows, &count, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.message, SENTENCE);
    sessile_store_close(view);
    refused(w, &c, "a key that was revoked");
}

static void a_locked_key_is_refused(void **state)
{
    world *w = *state;
    sessile_credential c = of_key(w->key, strlen(w->key));
    sessile_slice id = {w->key + 5, ACCESS_KEY_ID}, none = {NULL, 0};

    must(sessile_access_lock(w->store, none, id, none, &w->err), &w->err);
    refused(w, &c, "a locked key");
    must(sessile_access_unlock(w->store, none, id, &w->err), &w->err);
    sessile_store_close(accepted_view(w, &c));
    must(sessile_access_lock(w->store, sessile_text("ann"), none, none, &w->err),
         &w->err);
    refused(w, &c, "the key of a locked user");
    char *token = signed_token(w, payload_of("ann", ""));
    c = of_token(token);
    refused(w, &c, "the token of a locked user");
    free(token);
}

static void keys_that_are_none_are_refused(void **state)
{
    world *w = *state;
    char text[400], what[80];
    sessile_credential c;

    for (size_t size = 1; size < sizeof text; size++) { /* of every length */
        memset(text, 'a', sizeof text);
        memcpy(text, w->key, size < ACCESS_KEY_TEXT ? size : ACCESS_KEY_TEXT);
        if (size == ACCESS_KEY_TEXT)
            continue;
        c = of_key(text, size);
        snprintf(what, sizeof what, "a key of %zu bytes", size);
        refused(w, &c, what);
    }
    for (size_t i = 0; i < ACCESS_KEY_TEXT; i++) { /* each letter */
        memcpy(text, w->key, ACCESS_KEY_TEXT);
        text[i] = text[i] == 'a' ? 'b' : 'a';
        c = of_key(text, ACCESS_KEY_TEXT);
        snprintf(what, sizeof what, "a key with another letter at %zu", i);
        refused(w, &c, what);
        text[i] = (char)toupper(w->key[i]);
        if (text[i] == w->key[i])
            text[i] = 0;
        refused(w, &c, what);
    }
    assert_true(w->tried >= 300);
}

/* The check letters of a key, as they should be. */
static void put_check(char text[ACCESS_KEY_TEXT])
{
    unsigned char hash[32];
    char letters[9];

    hash256(hash, text, ACCESS_KEY_TEXT - 7, NULL, 0);
    base32_encode(letters, hash, 5);
    memcpy(text + ACCESS_KEY_TEXT - 6, letters, 6);
}

/* Right check letters, so that it is looked up: another secret, another id, two halves.
 */
static void keys_of_others_are_refused(void **state)
{
    world *w = *state;
    char text[ACCESS_KEY_TEXT + 1];
    sessile_credential c;

    access_key_draw(text); /* nobody made it here */
    c = of_key(text, ACCESS_KEY_TEXT);
    refused(w, &c, "an unknown key");
    memcpy(text, w->key, 5 + ACCESS_KEY_ID); /* the id of another one */
    put_check(text);
    sessile_slice id;
    assert_int_equal(access_key_read(c.key, &id), 0);
    refused(w, &c, "a key with another secret");
    memcpy(text, w->key, ACCESS_KEY_TEXT);
    text[ACCESS_KEY_TEXT - 8] ^= 1; /* the last letter of the secret, if it stays one */
    put_check(text);
    refused(w, &c, "a key whose secret ends otherwise");
    c = of_key(w->revoked, ACCESS_KEY_TEXT);
    refused(w, &c, "a revoked key");
    c = of_key(w->on_device, ACCESS_KEY_TEXT);
    refused(w, &c, "a key without its device");
    c.device = sessile_text("phone");
    refused(w, &c, "a key with another device");
    c.device = sessile_text("laptop");
    sessile_store_close(accepted_view(w, &c));
    while (now_s() * 1000 <= w->expires_ms)
        usleep(50000);
    c = of_key(w->expired, ACCESS_KEY_TEXT);
    refused(w, &c, "an expired key");
    c = of_key(w->other, ACCESS_KEY_TEXT); /* through the view of another user */
    sessile_credential own = of_key(w->key, ACCESS_KEY_TEXT);
    sessile_store *ann = accepted_view(w, &own), *view;
    assert_int_equal(sessile_store_as(&view, ann, &c, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.message, SENTENCE);
    sessile_store_close(ann);
}

static void a_token_says_who_one_is(void **state)
{
    world *w = *state;
    char *token = signed_token(
        w, payload_of("ann", ",\"roles\":[\"editor\",\"of-nobody\"],\"agents\":[\"co*\"],"
                             "\"act\":{\"sub\":\"bot\"},\"jti\":\"t1\""));
    sessile_credential c = of_token(token);
    sessile_store *view = accepted_view(w, &c);
    sessile_principal who;

    assert_user(view, "ann", "token");
    must(sessile_store_who(view, &who, &w->err), &w->err);
    assert_memory_equal(who.actor.data, "bot", who.actor.size);
    assert_memory_equal(who.key.data, "t1", who.key.size);
    assert_int_equal(who.agent_count, 1);
    assert_true(who.permissions & (1u << SESSILE_MAY_MODIFY_SESSION));
    assert_int_equal(who.permissions & (1u << SESSILE_MAY_DELETE_SESSION), 0);
    assert_true(who.expires_ms > now_s() * 1000);
    sessile_store_close(view);
    free(token);
    token = signed_token(w, payload_of("eve", ",\"roles\":[\"of-nobody\"]"));
    c = of_token(token);
    view = accepted_view(w, &c); /* a role that nobody defined gives nothing */
    must(sessile_store_who(view, &who, &w->err), &w->err);
    assert_int_equal(who.permissions, 0);
    sessile_store_close(view);
    free(token);
}

static void a_view_is_renewed_by_a_token_of_its_user(void **state)
{
    world *w = *state;
    char *first = signed_token(w, payload_of("ann", ",\"roles\":\"editor\"")),
         *next =
             signed_token(w, payload_of("ann", ",\"roles\":\"viewer\",\"jti\":\"2\"")),
         *bobs = signed_token(w, payload_of("bob", ",\"roles\":\"editor\""));
    sessile_credential c = of_token(first);
    sessile_store *view = accepted_view(w, &c);
    sessile_principal who;

    c = of_token(bobs);
    assert_int_equal(sessile_store_renew(view, NULL, &c, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.message, SENTENCE);
    c = of_key(w->key, ACCESS_KEY_TEXT); /* ann's too, but revoked by itself */
    assert_int_equal(sessile_store_renew(view, NULL, &c, &w->err), SESSILE_INVALID);
    c = of_token("e30.e30.e30");
    assert_int_equal(sessile_store_renew(view, NULL, &c, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.message, SENTENCE);
    atomic_store(&view->who->expires_ms, 1); /* it has expired */
    sessile_listed *rows;
    size_t count;
    assert_int_equal(sessile_list(view, NULL, &rows, &count, &w->err), SESSILE_DENIED);
    c = of_token(next);
    must(sessile_store_renew(view, NULL, &c, &w->err), &w->err);
    must(sessile_list(view, NULL, &rows, &count, &w->err), &w->err);
    sessile_free(rows);
    must(sessile_store_who(view, &who, &w->err), &w->err); /* what both give */
    assert_int_equal(who.permissions & (1u << SESSILE_MAY_MODIFY_SESSION), 0);
    assert_true(who.permissions & (1u << SESSILE_MAY_VIEW_SESSION));
    sessile_store_close(view);
    free(first);
    free(next);
    free(bobs);
}

static void tokens_that_are_wrong_are_refused(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\",\"kid\":\"ed\"}",
        "{\"alg\":\"none\"}",
        "{\"alg\":\"HS256\",\"kid\":\"ed\"}",
        "{\"alg\":\"ES256\",\"kid\":\"ed\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed2\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"../../dev/null\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"jwk\":{}}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"crit\":[\"x\"]}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"kid\":\"ed\"}",
    };
    static const char *const payloads[] = {
        "{}",
        "[]",
        "{\"iss\":\"" ISSUER "\",\"aud\":\"sessile\",\"sub\":\"ann\",\"exp\":1}",
        "{\"iss\":\"" ISSUER "\",\"aud\":\"sessile\",\"sub\":\"ann\",\"exp\":1e400}",
        "{\"iss\":\"" ISSUER "\",\"aud\":\"sessile\",\"sub\":\"ann\"}",
    };
    world *w = *state;
    char *good = payload_of("ann", ""), *token, what[80];
    size_t size;

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        token = signer_token(w->signer, SIGNER_ED25519, headers[i], good);
        sessile_credential c = of_token(token);
        refused(w, &c, headers[i]);
        free(token);
    }
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        token = signed_token(w, payloads[i]);
        sessile_credential c = of_token(token);
        refused(w, &c, payloads[i]);
        free(token);
    }
    token = signed_token(w, good);
    size = strlen(token);
    for (size_t i = 0; i < size; i++) { /* altered in each place, and cut there */
        char was = token[i];
        sessile_credential c = of_token(token);
        token[i] = was == 'A' ? 'B' : 'A';
        snprintf(what, sizeof what, "a token altered at %zu", i);
        refused(w, &c, what);
        token[i] = was;
        if (!i)
            continue;
        c.token.size = i;
        snprintf(what, sizeof what, "a token of %zu bytes", i);
        refused(w, &c, what);
    }
    free(token);
    assert_true(w->tried >= 300);
}

static void a_source_that_fails_too_often_waits(void **state)
{
    world *w = *state;
    sessile_credential bad = of_token("e30.e30.e30"),
                       good = of_key(w->key, ACCESS_KEY_TEXT);
    sessile_store *view;

    bad.source = good.source = sessile_text("10.0.0.1");
    for (int i = 0; i < 10; i++)
        assert_int_equal(sessile_store_as(&view, w->store, &bad, &w->err),
                         SESSILE_DENIED);
    assert_int_equal(sessile_store_as(&view, w->store, &bad, &w->err), SESSILE_LIMIT);
    assert_string_equal(w->err.rule, "failures");
    assert_true(w->err.retry_ms > 0);
    assert_int_equal(sessile_store_as(&view, w->store, &good, &w->err), SESSILE_LIMIT);
    good.source = sessile_text("10.0.0.2");
    sessile_store_close(accepted_view(w, &good));
}

static void one_credential_at_a_time(void **state)
{
    world *w = *state;
    sessile_credential c = of_key(w->key, ACCESS_KEY_TEXT);
    const char *admin = "admin";
    sessile_store *view;

    c.user = sessile_text("ann");
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_INVALID);
    c = of_key(w->key, ACCESS_KEY_TEXT);
    c.roles = &admin;
    c.role_count = 1;
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_INVALID);
    c = of_key(w->key, ACCESS_KEY_TEXT);
    c.token = sessile_text("e30.e30.e30");
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_INVALID);
    sessile_credential_init(&c);
    c.os = 1;
    view = accepted_view(w, &c);
    assert_user(view, "", "os");
    sessile_store_close(view);
    c.user = sessile_text("ann");
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_INVALID);
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    view = accepted_view(w, &c);
    assert_user(view, "ann", "host");
    sessile_store_close(view);
}

static void keys_are_listed_without_their_secrets(void **state)
{
    world *w = *state;
    sessile_access_key_row *rows;
    size_t count;

    must(sessile_access_keys(w->store, &rows, &count, &w->err), &w->err);
    assert_int_equal(count, 4); /* one was revoked */
    assert_memory_equal(rows[0].id.data, w->key + 5, ACCESS_KEY_ID);
    assert_memory_equal(rows[0].user.data, "ann", 4);
    assert_int_equal(rows[0].role_count, 1);
    assert_memory_equal(rows[0].roles[0].data, "editor", 7);
    assert_memory_equal(rows[3].device.data, "laptop", 7);
    sessile_free(rows);
    sessile_slice id = {w->revoked + 5, ACCESS_KEY_ID};
    assert_int_equal(sessile_access_key_revoke(w->store, id, &w->err), SESSILE_NOTFOUND);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_key_says_who_one_is),
        CASE(a_locked_key_is_refused),
        CASE(keys_that_are_none_are_refused),
        CASE(keys_of_others_are_refused),
        CASE(a_token_says_who_one_is),
        CASE(a_view_is_renewed_by_a_token_of_its_user),
        CASE(tokens_that_are_wrong_are_refused),
        CASE(a_source_that_fails_too_often_waits),
        CASE(one_credential_at_a_time),
        CASE(keys_are_listed_without_their_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
