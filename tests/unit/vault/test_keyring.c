/*
 * test_keyring.c: keyrings opened with the right secret and with wrong ones, and the
 * names of files.
 *
 * Owns promise 10 as far as the vault keeps it. Slow work (Argon2id) is done as seldom as
 * can be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "support/logs.h"
#include "vault/guarded.h"
#include "store/file/open.h"

static const allocator *const A = &allocator_default;

/* ------------------------------------------------------------------ keyrings */

static sessile_status ring(const kit *k, keyring **out, sessile_key_source source,
                           const char *key, const char *suite_wanted, sessile_error *err)
{
    return keyring_open(out, k->st.table, k->st.self, source, key, suite_wanted,
                        &os_posix, A, err);
}

static void keyring_opens_with_its_secret_only(void **state)
{
    static const char other[] =
        "hex:ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    (void)state;
    EACH_SEALED_MODE(mode)
    {
        kit k;
        keyring *again;
        sessile_error err = {0};
        kit_open(&k, mode);
        assert_true(keyring_sealed(k.keys));
        /* the suite is the keyring's, whatever is asked for later */
        assert_int_equal(ring(&k, &again, SESSILE_KEY_SECRET, KIT_SECRET, NULL, &err),
                         SESSILE_OK);
        assert_int_equal(keyring_suite(again),
                         mode == KIT_AES ? SUITE_AES_256_GCM : SUITE_XCHACHA20_POLY1305);
        assert_memory_equal(keyring_name_key(again), keyring_name_key(k.keys), VAULT_KEY);
        assert_memory_equal(keyring_master(again, 1), keyring_master(k.keys, 1),
                            VAULT_KEY);
        assert_null(keyring_master(again, 2));
        keyring_free(again);
        assert_int_equal(ring(&k, &again, SESSILE_KEY_SECRET, other, NULL, &err),
                         SESSILE_SEALED);
        assert_null(again);
        assert_int_equal(ring(&k, &again, SESSILE_KEY_SECRET, "a passphrase", NULL, &err),
                         SESSILE_SEALED);
        assert_int_equal(ring(&k, &again, SESSILE_KEY_PLAIN, NULL, NULL, &err),
                         SESSILE_SEALED);
        assert_null(again);
        kit_close(&k);
    }
}

static void keyring_file(const kit *k, char path[400])
{
    snprintf(path, 400, "%s/keyring", k->root);
}

static void keyring_swapped_for_a_plain_one_is_SEALED(void **state)
{
    kit plain, sealed;
    keyring *keys;
    char from[400], to[400];
    size_t size;
    sessile_error err = {0};
    (void)state;
    kit_open(&plain, KIT_PLAIN);
    kit_open(&sealed, KIT_XCHACHA);
    assert_false(keyring_sealed(plain.keys));
    assert_int_equal(keyring_suite(plain.keys), SUITE_NONE);
    keyring_file(&plain, from);
    keyring_file(&sealed, to);
    char *bytes = file_read_all(from, &size);
    file_write_all(to, bytes, size);
    assert_int_equal(ring(&sealed, &keys, SESSILE_KEY_SECRET, KIT_SECRET, NULL, &err),
                     SESSILE_SEALED);
    assert_null(keys);
    /* and a plain store is opened without a key only */
    assert_int_equal(ring(&plain, &keys, SESSILE_KEY_DEFAULT, NULL, NULL, &err),
                     SESSILE_SEALED);
    assert_int_equal(ring(&plain, &keys, SESSILE_KEY_PLAIN, NULL, NULL, &err),
                     SESSILE_OK);
    assert_memory_equal(keyring_name_key(keys), keyring_name_key(plain.keys), VAULT_KEY);
    keyring_free(keys);
    free(bytes);
    kit_close(&plain);
    kit_close(&sealed);
}

static void logs_without_a_keyring_are_SEALED_and_nothing_is_made(void **state)
{
    kit k;
    keyring *keys;
    char path[400], home[300];
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "log");
    keyring_file(&k, path);
    assert_int_equal(unlink(path), 0);
    snprintf(home, sizeof home, "%s/home", k.folder);
    setenv("XDG_CONFIG_HOME", home, 1);
    const sessile_key_source sources[] = {SESSILE_KEY_SECRET, SESSILE_KEY_PLAIN,
                                          SESSILE_KEY_DEFAULT};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ring(&k, &keys, sources[i], KIT_SECRET, NULL, &err),
                         SESSILE_SEALED);
        assert_null(keys);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(home, F_OK), -1);
    }
    unsetenv("XDG_CONFIG_HOME");
    kit_close(&k);
}

static void keyring_with_any_changed_bit_is_refused(void **state)
{
    (void)state;
    const kit_mode modes[] = {KIT_XCHACHA, KIT_PLAIN};
    for (size_t m = 0; m < 2; m++) {
        kit k;
        keyring *keys;
        char path[400];
        size_t size;
        sessile_error err = {0};
        kit_open(&k, modes[m]);
        keyring_file(&k, path);
        char *bytes = file_read_all(path, &size);
        char *name = modes[m] == KIT_PLAIN ? strstr(bytes, "\"name\":\"") + 8 : NULL;
        for (size_t bit = 0; bit < 8 * (size - 1); bit++) {
            bytes[bit / 8] ^= (char)(1 << bit % 8);
            file_write_all(path, bytes, size);
            sessile_status status = ring(
                &k, &keys, modes[m] == KIT_PLAIN ? SESSILE_KEY_PLAIN : SESSILE_KEY_SECRET,
                KIT_SECRET, NULL, &err);
            /* the name key of a plain store stands in clear: another one is another one
             */
            int in_name = name && bytes + bit / 8 >= name && bytes + bit / 8 < name + 43;
            if (!in_name)
                assert_int_not_equal(status, SESSILE_OK);
            keyring_free(keys);
            bytes[bit / 8] ^= (char)(1 << bit % 8);
        }
        for (size_t cut = 0; cut + 1 < size; cut++) {
            file_write_all(path, bytes, cut);
            assert_int_not_equal(
                ring(&k, &keys,
                     modes[m] == KIT_PLAIN ? SESSILE_KEY_PLAIN : SESSILE_KEY_SECRET,
                     KIT_SECRET, NULL, &err),
                SESSILE_OK);
        }
        free(bytes);
        kit_close(&k);
    }
}

static void passphrase_is_stretched_within_bounds(void **state)
{
    static const struct {
        const char *from, *to;
    } edits[] = {
        {"\"ops\":2,", "\"ops\":1,"},
        {"\"ops\":2,", "\"ops\":99999999,"},
        {"\"ops\":2,", "\"ops\":0,"},
        {"\"ops\":2,", "\"ops\":-1,"},
        {"\"mem\":67108864,", "\"mem\":8192,"},
        {"\"mem\":67108864,", "\"mem\":99999999999,"},
        {"\"mem\":67108864,", "\"mem\":6.7e7,"},
        {"\"salt\":\"", "\"salt\":\"AAAA"},
        {"argon2id", "argon2i"},
    };
    char folder[256], root[300], path[400];
    sessile_error err = {0};
    keyring *keys, *again;
    store st;
    size_t size;
    (void)state;
    scratch_make(folder);
    snprintf(root, sizeof root, "%s/store", folder);
    snprintf(path, sizeof path, "%s/keyring", root);
    const sessile_key_source from = SESSILE_KEY_SECRET;
    assert_int_equal(store_file_open(&st, root, &os_posix, A, &err), SESSILE_OK);
    assert_int_equal(keyring_open(&keys, st.table, st.self, from, "correct horse battery",
                                  NULL, &os_posix, A, &err),
                     SESSILE_OK);
    assert_int_equal(keyring_open(&again, st.table, st.self, from,
                                  "correct horse battery", NULL, &os_posix, A, &err),
                     SESSILE_OK);
    assert_memory_equal(keyring_master(again, 1), keyring_master(keys, 1), VAULT_KEY);
    keyring_free(again);
    assert_int_equal(keyring_open(&again, st.table, st.self, from,
                                  "correct horse batteri", NULL, &os_posix, A, &err),
                     SESSILE_SEALED);
    assert_int_equal(keyring_open(&again, st.table, st.self, from, KIT_SECRET, NULL,
                                  &os_posix, A, &err),
                     SESSILE_SEALED);
    char *bytes = file_read_all(path, &size);
    assert_null(strstr(bytes, "correct"));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        char edited[2000], *at = strstr(bytes, edits[i].from);
        assert_non_null(at);
        snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - bytes), bytes, edits[i].to,
                 at + strlen(edits[i].from));
        file_write_all(path, edited, strlen(edited));
        assert_int_equal(keyring_open(&again, st.table, st.self, from,
                                      "correct horse battery", NULL, &os_posix, A, &err),
                         SESSILE_DAMAGED);
    }
    free(bytes);
    keyring_free(keys);
    store_close(&st);
    scratch_remove(folder);
}

static void keyring_of_a_later_version_is_UNSUPPORTED(void **state)
{
    kit k;
    keyring *keys;
    char path[400];
    sessile_error err = {0};
    static const char later[] =
        "{\"sessile_keyring\":2,\"mode\":\"plain\",\"name\":\"\"}\n";
    (void)state;
    kit_open(&k, KIT_PLAIN);
    keyring_file(&k, path);
    file_write_all(path, later, strlen(later));
    assert_int_equal(ring(&k, &keys, SESSILE_KEY_PLAIN, NULL, NULL, &err),
                     SESSILE_UNSUPPORTED);
    kit_close(&k);
}

static void unknown_suite_makes_no_keyring(void **state)
{
    char folder[256], root[300];
    sessile_error err = {0};
    keyring *keys;
    store st;
    (void)state;
    scratch_make(folder);
    snprintf(root, sizeof root, "%s/store", folder);
    assert_int_equal(store_file_open(&st, root, &os_posix, A, &err), SESSILE_OK);
    assert_int_equal(keyring_open(&keys, st.table, st.self, SESSILE_KEY_SECRET,
                                  KIT_SECRET, "rot13", &os_posix, A, &err),
                     SESSILE_UNSUPPORTED);
    assert_int_equal(access(root, F_OK), -1);
    store_close(&st);
    scratch_remove(folder);
}

static void many_who_make_a_keyring_at_once_end_with_one(void **state)
{
    enum { MAKERS = 8, ROUNDS = 10 };
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char folder[256], root[300], home[300];
        int pipes[2];
        pid_t pids[MAKERS];
        unsigned char first[VAULT_KEY], other[VAULT_KEY];
        scratch_make(folder);
        snprintf(root, sizeof root, "%s/store", folder);
        snprintf(home, sizeof home, "%s/home", folder);
        assert_int_equal(pipe(pipes), 0);
        for (int i = 0; i < MAKERS; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                sessile_error err = {0};
                store st;
                keyring *keys;
                unsetenv("SESSILE_KEY");
                setenv("XDG_CONFIG_HOME", home, 1);
                if (store_file_open(&st, root, &os_posix, A, &err) ||
                    keyring_open(&keys, st.table, st.self, SESSILE_KEY_DEFAULT, NULL,
                                 NULL, &os_posix, A, &err))
                    _exit(1);
                if (write(pipes[1], keyring_master(keys, 1), VAULT_KEY) != VAULT_KEY)
                    _exit(2);
                keyring_free(keys);
                store_close(&st);
                _exit(0);
            }
        }
        for (int i = 0; i < MAKERS; i++) {
            int status;
            waitpid(pids[i], &status, 0);
            assert_int_equal(status, 0);
            assert_int_equal(read(pipes[0], i == 0 ? first : other, VAULT_KEY),
                             VAULT_KEY);
            if (i > 0)
                assert_memory_equal(first, other, VAULT_KEY);
        }
        close(pipes[0]);
        close(pipes[1]);
        scratch_remove(folder);
    }
}

/* ------------------------------------------------------------------ names */

static sessile_slice text(const char *t)
{
    return (sessile_slice){t, strlen(t)};
}

static void simple_names_stand_as_they_are(void **state)
{
    keyring *k;
    sessile_error err = {0};
    char out[NAME_SIZE], longest[102];
    static const char *const simple[] = {"a", "bug-42", "0", "_x", "x-", "a_b-c9"};
    static const char *const others[] = {"",         "-a",  "A",   "a.b", ".",
                                         "..",       "a/b", "a b", "\n",  "=a",
                                         "\xc3\xa9", "a\\", "~"};
    (void)state;
    assert_int_equal(keyring_volatile(&k, A, &err), SESSILE_OK);
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) {
        keyring_log_name(k, text(""), text(simple[i]), out);
        assert_string_equal(out, simple[i]);
        keyring_folder_name(k, text(simple[i]), out);
        assert_string_equal(out, simple[i]);
        keyring_log_name(k, text("user"), text(simple[i]), out);
        assert_int_equal(out[0], '=');
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        keyring_log_name(k, text(""), text(others[i]), out);
        assert_int_equal(out[0], '=');
        assert_int_equal(strlen(out), 53);
        assert_int_equal(strspn(out, "=abcdefghijklmnopqrstuvwxyz234567"), 53);
        keyring_folder_name(k, text(others[i]), out);
        assert_int_equal(out[0], '=');
    }
    memset(longest, 'x', 101);
    keyring_log_name(k, text(""), (sessile_slice){longest, 100}, out);
    assert_int_equal(strlen(out), 100);
    keyring_log_name(k, text(""), (sessile_slice){longest, 101}, out);
    assert_int_equal(out[0], '=');
    keyring_free(k);
}

static void hash_of_a_name_is_as_described(void **state)
{
    keyring *k;
    sessile_error err = {0};
    char out[NAME_SIZE], expected[NAME_SIZE];
    unsigned char hash[32];
    (void)state;
    assert_int_equal(keyring_volatile(&k, A, &err), SESSILE_OK);
    hash256(hash, "\2\0\0\0\0\0\0\0u1\3\0\0\0\0\0\0\0A B", 21, keyring_name_key(k),
            VAULT_KEY);
    expected[0] = '=';
    base32_encode(expected + 1, hash, 32);
    keyring_log_name(k, text("u1"), text("A B"), out);
    assert_string_equal(out, expected);
    hash256(hash, "\3\0\0\0\0\0\0\0A B", 11, keyring_name_key(k), VAULT_KEY);
    base32_encode(expected + 1, hash, 32);
    keyring_folder_name(k, text("A B"), out);
    assert_string_equal(out, expected);
    keyring_free(k);
}

static void hash_of_names_is_the_store_s_own(void **state)
{
    keyring *k, *other;
    sessile_error err = {0};
    sessile_slice one[] = {text("ab"), text("c")}, two[] = {text("a"), text("bc")};
    (void)state;
    assert_int_equal(keyring_volatile(&k, A, &err), SESSILE_OK);
    assert_int_equal(keyring_volatile(&other, A, &err), SESSILE_OK);
    assert_true(keyring_name_hash(k, one, 2) == keyring_name_hash(k, one, 2));
    assert_true(keyring_name_hash(k, one, 2) != keyring_name_hash(k, two, 2));
    assert_true(keyring_name_hash(k, one, 1) != keyring_name_hash(k, one, 2));
    assert_true(keyring_name_hash(k, one, 2) != keyring_name_hash(other, one, 2));
    keyring_free(other);
    keyring_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyring_opens_with_its_secret_only),
        cmocka_unit_test(keyring_swapped_for_a_plain_one_is_SEALED),
        cmocka_unit_test(logs_without_a_keyring_are_SEALED_and_nothing_is_made),
        cmocka_unit_test(keyring_with_any_changed_bit_is_refused),
        cmocka_unit_test(passphrase_is_stretched_within_bounds),
        cmocka_unit_test(keyring_of_a_later_version_is_UNSUPPORTED),
        cmocka_unit_test(unknown_suite_makes_no_keyring),
        cmocka_unit_test(many_who_make_a_keyring_at_once_end_with_one),
        cmocka_unit_test(simple_names_stand_as_they_are),
        cmocka_unit_test(hash_of_a_name_is_as_described),
        cmocka_unit_test(hash_of_names_is_the_store_s_own),
    };
    return cmocka_run_group_tests(tests, base_set_up, NULL);
}
