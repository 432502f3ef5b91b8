/*
 * test_forgotten.c: users who are forgotten, and the markers that record it: what counts
 * as evidence, and what is left when others make a secret of the same user meanwhile.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <string.h>

#include "support/logs.h"
#include "vault/guarded.h"

#define USER "ann"

/* ------------------------------------------------------------------ helpers */

static void put(const kit *k, const char *name, const char *text)
{
    sessile_error err;
    assert_int_equal(
        k->st.table->blob_put_new(k->st.self, name, text, strlen(text), &err),
        SESSILE_OK);
}

static int has(const kit *k, const char *name)
{
    char *blob;
    size_t size;
    sessile_error err;
    sessile_status status = k->st.table->blob_get(k->st.self, name, &blob, &size, &err);
    assert_true(!status || status == SESSILE_NOTFOUND);
    if (!status)
        sessile_free(blob);
    return !status;
}

static void take_away(const kit *k, const char *name)
{
    sessile_error err;
    assert_int_equal(k->st.table->blob_remove(k->st.self, name, &err), SESSILE_OK);
}

/* The names of the user's blobs of epoch 1. */
typedef struct blobs {
    char user[NAME_SIZE], secret[NAME_SIZE + 8], marker[NAME_SIZE + 16];
} blobs;

static void blobs_of(const kit *k, blobs *b)
{
    keyring_user_name(k->keys, (sessile_slice){USER, strlen(USER)}, b->user);
    snprintf(b->secret, sizeof b->secret, "%s-1", b->user);
    snprintf(b->marker, sizeof b->marker, "forgotten-%s-1",
             b->user + sizeof USER_PREFIX - 1);
}

static sessile_status make(const keyring *k, const blobs *b, sessile_error *err)
{
    unsigned char out[VAULT_KEY];
    return user_secret_make(k, b->user, 1, keyring_master(k, 1), out, err);
}

static sessile_status open_secret(const keyring *k, const blobs *b, sessile_error *err)
{
    unsigned char out[VAULT_KEY];
    int again;
    return user_secret_open(k, b->user, 1, keyring_master(k, 1), out, &again, err);
}

static void forget(keyring *k, const blobs *b)
{
    uint64_t removed;
    sessile_error err = {0};
    assert_int_equal(keyring_forget(k, b->user, &removed, &err), SESSILE_OK);
}

/* ------------------------------------------------------------------ evidence */

static void marker_counts_only_if_it_opens(void **state)
{
    (void)state;
    EACH_SEALED_MODE(mode)
    {
        static const char *const planted[] = {
            "{\"sessile_forgotten\":1}\n", /* as an earlier version put it */
            "", "anything", "{\"sessile_forgotten\":2,\"epoch\":1,\"s\":\"\"}\n"};
        kit k;
        blobs b;
        sessile_error err = {0};
        kit_open(&k, mode);
        blobs_of(&k, &b);
        assert_int_equal(make(k.keys, &b, &err), SESSILE_OK);
        take_away(&k, b.secret); /* lost, not forgotten */
        for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
            put(&k, b.marker, planted[i]);
            assert_int_equal(open_secret(k.keys, &b, &err), SESSILE_DAMAGED);
            assert_non_null(strstr(err.message, "its marker does not open"));
            assert_non_null(strstr(err.message, "forget the user again"));
            assert_int_equal(keyring_forgot_secret(k.keys, b.secret, &err), 0);
            /* forgetting again mends it */
            forget(k.keys, &b);
            assert_int_equal(open_secret(k.keys, &b, &err), SESSILE_SEALED);
            assert_int_equal(keyring_forgot_secret(k.keys, b.secret, &err), 1);
            take_away(&k, b.marker);
        }
        assert_int_equal(open_secret(k.keys, &b, &err), SESSILE_DAMAGED);
        assert_non_null(strstr(err.message, "nothing records"));
        kit_close(&k);
    }
}

static void marker_of_another_user_or_store_proves_nothing(void **state)
{
    (void)state;
    kit k, other;
    blobs b, bob, there;
    char *text;
    size_t size;
    sessile_error err = {0};
    kit_open(&k, KIT_XCHACHA);
    kit_open(&other, KIT_XCHACHA);
    blobs_of(&k, &b);
    blobs_of(&other, &there);
    bob = b;
    const char letter = bob.user[sizeof USER_PREFIX] == 'a' ? 'b' : 'a';
    bob.user[sizeof USER_PREFIX] = bob.marker[sizeof FORGOTTEN_PREFIX] = letter;
    forget(k.keys, &bob);
    forget(other.keys, &there);
    const kit *from[] = {&k, &other};
    const char *names[] = {bob.marker, there.marker};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            from[i]->st.table->blob_get(from[i]->st.self, names[i], &text, &size, &err),
            SESSILE_OK);
        put(&k, b.marker, text);
        sessile_free(text);
        assert_int_equal(keyring_forgot_secret(k.keys, b.secret, &err), 0);
        take_away(&k, b.marker);
    }
    kit_close(&other);
    kit_close(&k);
}

static void marker_beside_a_secret_means_nothing(void **state)
{
    (void)state;
    kit k;
    blobs b;
    sessile_error err = {0};
    kit_open(&k, KIT_XCHACHA);
    blobs_of(&k, &b);
    assert_int_equal(make(k.keys, &b, &err), SESSILE_OK);
    assert_int_equal(user_mark(k.keys, b.user, 1, &err), SESSILE_OK);
    assert_int_equal(keyring_forgot_secret(k.keys, b.secret, &err), 0);
    assert_int_equal(open_secret(k.keys, &b, &err), SESSILE_OK);
    /* and whoever uses the secret for something new takes it away */
    assert_int_equal(make(k.keys, &b, &err), SESSILE_OK);
    assert_false(has(&k, b.marker));
    kit_close(&k);
}

static int look(const kit *k, const blobs *b)
{
    char *text;
    size_t size;
    sessile_error err;
    assert_int_equal(k->st.table->blob_get(k->st.self, b->secret, &text, &size, &err),
                     SESSILE_OK);
    int said = keyring_secret_look(k->keys, b->secret, text, size);
    text[size / 2] ^= 1;
    assert_int_equal(keyring_secret_look(k->keys, b->secret, text, size), -1);
    sessile_free(text);
    return said;
}

static void secret_says_that_an_earlier_one_was_forgotten(void **state)
{
    (void)state;
    EACH_SEALED_MODE(mode)
    {
        kit k;
        blobs b;
        sessile_error err = {0};
        kit_open(&k, mode);
        blobs_of(&k, &b);
        assert_int_equal(make(k.keys, &b, &err), SESSILE_OK);
        assert_int_equal(look(&k, &b), 0);
        take_away(&k, b.secret); /* lost: the next one cannot say that */
        assert_int_equal(make(k.keys, &b, &err), SESSILE_OK);
        assert_int_equal(look(&k, &b), 0);
        forget(k.keys, &b);
        assert_int_equal(make(k.keys, &b, &err), SESSILE_OK);
        assert_int_equal(look(&k, &b), 1);
        assert_int_equal(open_secret(k.keys, &b, &err), SESSILE_OK);
        kit_close(&k);
    }
}

/* ------------------------------------------------------------------ at the same time */

static struct {
    const sessile_backend *under;
    keyring *other; /* forgets the user just before a marker is removed */
    const blobs *b;
    int times, puts_fail;
} race;

static sessile_status remove_late(void *self, const char *name, sessile_error *err)
{
    if (!strcmp(name, race.b->marker) && race.times) {
        race.times--;
        forget(race.other, race.b);
    }
    return race.under->blob_remove(self, name, err);
}

static sessile_status put_or_fail(void *self, const char *name, const void *data,
                                  size_t size, sessile_error *err)
{
    if (race.puts_fail && !race.times && !strncmp(name, USER_PREFIX, 5))
        return fail(err, SESSILE_IO, "the device is gone");
    return race.under->blob_put_new(self, name, data, size, err);
}

static void secret_made_while_its_user_is_forgotten(void **state)
{
    (void)state;
    /* times: how often; 100: for ever. The second time the new secret cannot be put. */
    static const struct {
        int times, puts_fail;
        sessile_status status;
    } cases[] = {{1, 0, SESSILE_OK},
                 {3, 0, SESSILE_OK},
                 {100, 0, SESSILE_BUSY},
                 {1, 1, SESSILE_IO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kit k;
        blobs b;
        keyring *mine;
        sessile_error err = {0};
        kit_open(&k, KIT_XCHACHA);
        blobs_of(&k, &b);
        forget(k.keys, &b); /* a marker is there */
        sessile_backend table = *k.st.table;
        race.under = k.st.table;
        race.other = k.keys;
        race.b = &b;
        race.times = cases[i].times;
        race.puts_fail = cases[i].puts_fail;
        table.blob_remove = remove_late;
        table.blob_put_new = put_or_fail;
        assert_int_equal(keyring_open(&mine, &table, k.st.self, SESSILE_KEY_SECRET,
                                      KIT_SECRET, NULL, &os_posix, &allocator_default,
                                      &err),
                         SESSILE_OK);
        assert_int_equal(make(mine, &b, &err), cases[i].status);
        race.times = 0;
        /* One of the two is there: the secret in use, or the record that it is gone. */
        assert_int_equal(has(&k, b.secret), cases[i].status == SESSILE_OK);
        assert_int_equal(has(&k, b.marker), cases[i].status != SESSILE_OK);
        keyring_free(mine);
        kit_close(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marker_counts_only_if_it_opens),
        cmocka_unit_test(marker_of_another_user_or_store_proves_nothing),
        cmocka_unit_test(marker_beside_a_secret_means_nothing),
        cmocka_unit_test(secret_says_that_an_earlier_one_was_forgotten),
        cmocka_unit_test(secret_made_while_its_user_is_forgotten),
    };
    return cmocka_run_group_tests(tests, base_set_up, NULL);
}
