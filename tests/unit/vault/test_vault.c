/*
 * test_vault.c: secrets, keyrings, names, the keys of logs, sealed lines.
 *
 * Owns promises 10 and 13 as far as the vault keeps them. Slow work (Argon2id) is done as
 * seldom as can be.
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

/* ------------------------------------------------------------------ lines */

static const suite suites[] = {SUITE_AES_256_GCM, SUITE_XCHACHA20_POLY1305};
#define EACH_SUITE                    \
    for (size_t s_ = 0; s_ < 2; s_++) \
        if (suite_here(suites[s_]))
#define SUITE suites[s_]

static logkey a_key(suite s)
{
    logkey k = {.suite = s, .key = datakey_new(s)};
    assert_non_null(k.key);
    random_bytes(k.key, VAULT_KEY);
    random_bytes(k.commitment, VAULT_COMMITMENT);
    datakey_prepare(s, k.key);
    return k;
}

#define HEAD "{\"id\":\"00000001\",\"s\":\""
static const unsigned char before[VAULT_TAG] = "the line before";

/* HEAD and the sealed entry behind it, in out. */
static void seal(const logkey *k, buf *out, const char *entry, size_t size,
                 unsigned char tag[VAULT_TAG])
{
    sessile_error err = {0};
    buf scratch;
    buf_init(&scratch, A);
    buf_clear(out);
    buf_puts(out, "an earlier line\n");
    size_t start = out->size;
    buf_puts(out, HEAD);
    assert_int_equal(seal_line(k, out, start, before, entry, size, tag, &scratch, &err),
                     SESSILE_OK);
    memmove(out->data, out->data + start, out->size - start);
    out->size -= start;
    buf_deinit(&scratch);
}

static int open_(const logkey *k, const buf *line, buf *out)
{
    unsigned char previous[VAULT_TAG], tag[VAULT_TAG];
    size_t head = strlen(HEAD);
    return open_line(k, line->data, head, line->data + head, line->size - head, out,
                     previous, tag);
}

static void sealed_line_opens_to_the_same_bytes(void **state)
{
    (void)state;
    EACH_SUITE
    {
        logkey k = a_key(SUITE);
        buf line, out;
        buf_init(&line, A);
        buf_init(&out, A);
        char *entry = malloc(1 << 20);
        assert_non_null(entry);
        random_bytes(entry, 1 << 20);
        for (size_t size = 0; size <= 1 << 20; size = size < 300 ? size + 1 : size * 7) {
            unsigned char tag[VAULT_TAG], tag2[VAULT_TAG], previous[VAULT_TAG];
            size_t head = strlen(HEAD);
            seal(&k, &line, entry, size, tag);
            buf_clear(&out);
            buf_puts(&out, "kept");
            assert_int_equal(open_line(&k, line.data, head, line.data + head,
                                       line.size - head, &out, previous, tag2),
                             0);
            assert_int_equal(out.size, size + 4);
            assert_memory_equal(out.data, "kept", 4);
            assert_memory_equal(out.data + 4, entry, size);
            assert_memory_equal(previous, before, VAULT_TAG);
            assert_memory_equal(tag, tag2, VAULT_TAG);
        }
        free(entry);
        buf_deinit(&line);
        buf_deinit(&out);
        logkey_deinit(&k);
        logkey_deinit(&k);
    }
}

static void line_with_any_changed_bit_does_not_open(void **state)
{
    (void)state;
    EACH_SUITE
    {
        logkey k = a_key(SUITE);
        unsigned char tag[VAULT_TAG];
        buf line, out;
        buf_init(&line, A);
        buf_init(&out, A);
        for (size_t size = 1; size <= 3; size++) { /* each way base64 can end */
            seal(&k, &line, "abc", size, tag);
            for (size_t bit = 0; bit < 8 * line.size; bit++) {
                line.data[bit / 8] ^= (char)(1 << bit % 8);
                assert_int_equal(open_(&k, &line, &out), -1);
                assert_int_equal(out.size, 0);
                assert_int_equal(out.failed, 0);
                line.data[bit / 8] ^= (char)(1 << bit % 8);
            }
            while (--line.size >= strlen(HEAD))
                assert_int_equal(open_(&k, &line, &out), -1);
        }
        buf_deinit(&line);
        buf_deinit(&out);
        logkey_deinit(&k);
    }
}

static void line_opens_with_its_key_and_commitment_only(void **state)
{
    (void)state;
    EACH_SUITE
    {
        logkey k = a_key(SUITE), other = a_key(SUITE);
        unsigned char tag[VAULT_TAG];
        buf line, out;
        buf_init(&line, A);
        buf_init(&out, A);
        seal(&k, &line, "text", 4, tag);
        assert_int_equal(open_(&other, &line, &out), -1);
        memcpy(other.key, k.key, VAULT_KEY);
        datakey_prepare(SUITE, other.key);
        assert_int_equal(open_(&other, &line, &out), -1); /* commitment */
        memcpy(other.commitment, k.commitment, VAULT_COMMITMENT);
        assert_int_equal(open_(&other, &line, &out), 0);
        buf_deinit(&line);
        buf_deinit(&out);
        logkey_deinit(&k);
        logkey_deinit(&other);
    }
}

static void same_text_is_never_sealed_to_the_same_bytes(void **state)
{
    (void)state;
    EACH_SUITE
    {
        logkey k = a_key(SUITE);
        unsigned char tag[VAULT_TAG];
        buf one, two;
        buf_init(&one, A);
        buf_init(&two, A);
        seal(&k, &one, "text", 4, tag);
        seal(&k, &two, "text", 4, tag);
        assert_int_equal(one.size, two.size);
        assert_memory_not_equal(one.data, two.data, one.size);
        buf_deinit(&one);
        buf_deinit(&two);
        logkey_deinit(&k);
    }
}

static void suites_are_known_by_name(void **state)
{
    suite s;
    sessile_error err = {0};
    (void)state;
    EACH_SUITE
    {
        const char *name = suite_name(SUITE);
        assert_int_equal(suite_of(name, strlen(name), &s, &err), SESSILE_OK);
        assert_int_equal(s, SUITE);
    }
    assert_int_equal(suite_of("none", 4, &s, &err), SESSILE_UNSUPPORTED);
    assert_int_equal(suite_of("aes-256-gcm ", 12, &s, &err), SESSILE_UNSUPPORTED);
    assert_int_equal(suite_of("", 0, &s, &err), SESSILE_UNSUPPORTED);
}

/* ------------------------------------------------------------------ headers of logs */

static void key_of_a_log_is_read_back_from_its_header(void **state)
{
    (void)state;
    const kit_mode modes[] = {KIT_AES, KIT_XCHACHA};
    for (size_t m = 0; m < 2; m++) {
        if (!kit_possible(modes[m]))
            continue;
        kit k;
        logkey made, read;
        buf line;
        sessile_error err = {0};
        kit_open(&k, modes[m]);
        buf_init(&line, A);
        buf_puts(&line, "{\"id\":\"00000000\",\"sessile\":1");
        assert_int_equal(logkey_new(&made, k.keys, NULL, &line, &err), SESSILE_OK);
        assert_int_equal(logkey_open(&read, k.keys, line.data, line.size, &err),
                         SESSILE_OK);
        assert_int_equal(read.suite, made.suite);
        assert_memory_equal(read.key, made.key, VAULT_KEY);
        assert_memory_equal(read.commitment, made.commitment, VAULT_COMMITMENT);
        logkey_deinit(&read);
        /* any bit changed, any byte missing: not OK, and nothing set */
        for (size_t bit = 0; bit < 8 * line.size; bit++) {
            line.data[bit / 8] ^= (char)(1 << bit % 8);
            sessile_status status =
                logkey_open(&read, k.keys, line.data, line.size, &err);
            assert_true(status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
                        status == SESSILE_UNSUPPORTED);
            assert_null(read.key);
            line.data[bit / 8] ^= (char)(1 << bit % 8);
        }
        for (size_t size = 0; size < line.size; size++)
            assert_int_not_equal(logkey_open(&read, k.keys, line.data, size, &err),
                                 SESSILE_OK);
        buf_deinit(&line);
        logkey_deinit(&made);
        kit_close(&k);
    }
}

static void header_of_a_later_version_is_UNSUPPORTED(void **state)
{
    static const char *const lines[] = {
        "{\"id\":\"00000000\",\"sessile\":1,\"suite\":\"rot13\",\"epoch\":1,\"key\":\"\"",
        "{\"id\":\"00000000\",\"sessile\":1,\"suite\":\"xchacha20-poly1305\",\"epoch\":1,"
        "\"user\":\"u\",\"key\":\"\"",
    };
    kit k;
    logkey read;
    sessile_error err = {0};
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    assert_int_equal(logkey_open(&read, k.keys, lines[0], strlen(lines[0]), &err),
                     SESSILE_UNSUPPORTED);
    assert_int_equal(logkey_open(&read, k.keys, lines[1], strlen(lines[1]), &err),
                     SESSILE_DAMAGED); /* no name of a user's blob */
    kit_close(&k);
}

/* ------------------------------------------------------------------ secrets */

static sessile_status text_secret(const char *text, secret **out)
{
    sessile_error err = {0};
    sessile_status status =
        secret_get(out, SESSILE_KEY_SECRET, text, 0, &os_posix, A, &err);
    if (status) {
        assert_null(*out);
        assert_null(strstr(err.message, text)); /* no secret in a sentence */
    }
    return status;
}

static void secret_is_a_key_or_a_long_enough_passphrase(void **state)
{
    unsigned char key[VAULT_KEY];
    secret *s;
    (void)state;
    assert_int_equal(text_secret(KIT_SECRET, &s), SESSILE_OK);
    assert_true(secret_is_key(s));
    assert_int_equal(secret_key(s, NULL, 0, 0, key), 0);
    for (int i = 0; i < VAULT_KEY; i++)
        assert_int_equal(key[i], i);
    secret_free(s);
    assert_int_equal(
        text_secret("base64:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", &s),
        SESSILE_OK);
    assert_true(secret_is_key(s));
    unsigned char key2[VAULT_KEY];
    secret_key(s, NULL, 0, 0, key2);
    assert_memory_equal(key, key2, VAULT_KEY);
    secret_free(s);
    assert_int_equal(text_secret("twelve chars", &s), SESSILE_OK);
    assert_false(secret_is_key(s));
    secret_free(s);
    assert_int_equal(text_secret("eleven char", &s), SESSILE_INVALID);
    /* eleven characters in more than twelve bytes */
    assert_int_equal(text_secret("\xc3\xa9l\xc3\xa9ven ch\xc3\xa2r", &s),
                     SESSILE_INVALID);
    assert_int_equal(text_secret("hex:00", &s), SESSILE_INVALID);
    secret_free(NULL);
}

static void key_file_must_be_private_and_ours(void **state)
{
    char folder[256], path[300], link[300];
    sessile_error err = {0};
    secret *s;
    unsigned char key[VAULT_KEY];
    (void)state;
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/key", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    const sessile_key_source file = SESSILE_KEY_FILE;
    assert_int_equal(secret_get(&s, file, path, 1, &os_posix, A, &err), SESSILE_SEALED);
    file_write_all(path, KIT_SECRET "\n", strlen(KIT_SECRET) + 1);
    assert_int_equal(secret_get(&s, file, path, 0, &os_posix, A, &err), SESSILE_OK);
    assert_true(secret_is_key(s)); /* its newline is not part of it */
    assert_int_equal(secret_key(s, NULL, 0, 0, key), 0);
    assert_int_equal(key[31], 31);
    secret_free(s);
    static const mode_t open_to_others[] = {0640, 0604, 0620, 0602, 0601, 0610};
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        assert_int_equal(chmod(path, open_to_others[i]), 0);
        assert_int_equal(secret_get(&s, file, path, 0, &os_posix, A, &err),
                         SESSILE_DENIED);
        assert_null(s);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(secret_get(&s, file, path, 0, &os_posix, A, &err), SESSILE_OK);
    secret_free(s);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(secret_get(&s, file, link, 0, &os_posix, A, &err), SESSILE_DENIED);
    assert_int_equal(secret_get(&s, file, folder, 0, &os_posix, A, &err), SESSILE_DENIED);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(secret_get(&s, file, path, 0, &os_posix, A, &err),
                         SESSILE_DENIED);
    }
    scratch_remove(folder);
}

static void secret_comes_from_the_named_variable(void **state)
{
    sessile_error err = {0};
    secret *s;
    (void)state;
    unsetenv("TEST_SECRET");
    assert_int_equal(
        secret_get(&s, SESSILE_KEY_ENV, "TEST_SECRET", 1, &os_posix, A, &err),
        SESSILE_SEALED);
    setenv("TEST_SECRET", KIT_SECRET, 1);
    assert_int_equal(
        secret_get(&s, SESSILE_KEY_ENV, "TEST_SECRET", 0, &os_posix, A, &err),
        SESSILE_OK);
    assert_true(secret_is_key(s));
    secret_free(s);
    unsetenv("TEST_SECRET");
    assert_int_equal(secret_get(&s, SESSILE_KEY_ENV, NULL, 0, &os_posix, A, &err),
                     SESSILE_INVALID);
    assert_int_equal(secret_get(&s, SESSILE_KEY_PLAIN, NULL, 0, &os_posix, A, &err),
                     SESSILE_OK);
    assert_null(s);
}

static void default_key_is_made_once_private_and_only_when_asked(void **state)
{
    char folder[256], path[400], config[300];
    sessile_error err = {0};
    struct stat st;
    secret *s;
    unsigned char key[VAULT_KEY], again[VAULT_KEY];
    const sessile_key_source source = SESSILE_KEY_DEFAULT;
    (void)state;
    scratch_make(folder);
    snprintf(config, sizeof config, "%s/home/.config", folder);
    snprintf(path, sizeof path, "%s/sessile/key", config);
    unsetenv("SESSILE_KEY");
    setenv("XDG_CONFIG_HOME", config, 1);
    assert_int_equal(secret_get(&s, source, NULL, 0, &os_posix, A, &err), SESSILE_SEALED);
    assert_int_equal(access(config, F_OK), -1);
    mode_t was = umask(0);
    assert_int_equal(secret_get(&s, source, NULL, 1, &os_posix, A, &err), SESSILE_OK);
    umask(was);
    assert_true(secret_is_key(s));
    secret_key(s, NULL, 0, 0, key);
    secret_free(s);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 4 + 64 + 1);
    *strrchr(path, '/') = 0;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(secret_get(&s, source, NULL, 1, &os_posix, A, &err), SESSILE_OK);
    secret_key(s, NULL, 0, 0, again);
    assert_memory_equal(key, again, VAULT_KEY);
    secret_free(s);
    /* without XDG_CONFIG_HOME, in .config of the home */
    unsetenv("XDG_CONFIG_HOME");
    char home[300];
    snprintf(home, sizeof home, "%s/home", folder);
    char *home_was = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", home, 1);
    assert_int_equal(secret_get(&s, source, NULL, 0, &os_posix, A, &err), SESSILE_OK);
    secret_key(s, NULL, 0, 0, again);
    assert_memory_equal(key, again, VAULT_KEY);
    secret_free(s);
    /* the variable comes first */
    setenv("SESSILE_KEY", KIT_SECRET, 1);
    assert_int_equal(secret_get(&s, source, NULL, 0, &os_posix, A, &err), SESSILE_OK);
    secret_key(s, NULL, 0, 0, again);
    assert_int_equal(again[31], 31);
    secret_free(s);
    unsetenv("SESSILE_KEY");
    unsetenv("HOME");
    assert_int_equal(secret_get(&s, source, NULL, 1, &os_posix, A, &err), SESSILE_SEALED);
    if (home_was)
        setenv("HOME", home_was, 1);
    free(home_was);
    scratch_remove(folder);
}

/* What was synced, by inode, in order. */
typedef struct synced {
    faults os;
    int (*sync_all)(void *ud, int fd);
    uint64_t at[16];
    size_t count;
} synced;

static int sync_and_tell(void *ud, int fd)
{
    synced *s = ud; /* faults come first in it */
    os_stat_info info;
    assert_int_equal(os_posix.stat_fd(NULL, fd, &info), 0);
    assert_true(s->count < 16);
    if (s->sync_all(ud, fd) != 0)
        return -1;
    s->at[s->count++] = info.inode;
    return 0;
}

static int was_synced(const synced *s, const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i] == (uint64_t)st.st_ino)
            return 1;
    return 0;
}

/* A power cut may take the key no more once a keyring can come to depend on it. */
static void default_key_is_durable_before_it_is_depended_on(void **state)
{
    char folder[256], config[300], path[400];
    const sessile_key_source source = SESSILE_KEY_DEFAULT;
    static const char *const kept[] = {"", "/home", "/home/.config",
                                       "/home/.config/sessile",
                                       "/home/.config/sessile/key"};
    sessile_error err = {0};
    synced s;
    secret *got;
    (void)state;
    unsetenv("SESSILE_KEY");
    for (unsigned long at = 0;; at++) {
        scratch_make(folder);
        snprintf(config, sizeof config, "%s/home/.config", folder);
        setenv("XDG_CONFIG_HOME", config, 1);
        faults_init(&s.os);
        s.count = 0;
        s.sync_all = s.os.table.sync_all;
        s.os.table.sync_all = sync_and_tell;
        faults_set(&s.os, CALL_SYNC_ALL, at, EIO);
        sessile_status status = secret_get(&got, source, NULL, 1, &s.os.table, A, &err);
        unsigned long hits = s.os.hits;
        if (hits > 0) {
            assert_int_equal(status, SESSILE_IO);
            assert_null(got);
            /* the next one neither trusts what is there nor is it kept from going on */
            faults_none(&s.os);
            status = secret_get(&got, source, NULL, 1, &s.os.table, A, &err);
        }
        faults_none(&s.os);
        assert_int_equal(status, SESSILE_OK);
        for (size_t i = 0; hits == 0 && i < 5; i++) {
            snprintf(path, sizeof path, "%s%s", folder, kept[i]);
            assert_true(was_synced(&s, path));
        }
        secret_free(got);
        /* a key that is found may be somebody's who has not come to the sync of it */
        s.count = 0;
        assert_int_equal(secret_get(&got, source, NULL, 1, &s.os.table, A, &err),
                         SESSILE_OK);
        for (size_t i = 3; i < 5; i++) {
            snprintf(path, sizeof path, "%s%s", folder, kept[i]);
            assert_true(was_synced(&s, path));
        }
        secret_free(got);
        /* who only reads syncs nothing */
        s.count = 0;
        assert_int_equal(secret_get(&got, source, NULL, 0, &s.os.table, A, &err),
                         SESSILE_OK);
        assert_int_equal(s.count, 0);
        secret_free(got);
        scratch_remove(folder);
        if (hits == 0) {
            assert_true(at >= 6);
            break;
        }
    }
    unsetenv("XDG_CONFIG_HOME");
}

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
    const kit_mode modes[] = {KIT_AES, KIT_XCHACHA};
    for (size_t m = 0; m < 2; m++) {
        if (!kit_possible(modes[m]))
            continue;
        kit k;
        keyring *again;
        sessile_error err = {0};
        kit_open(&k, modes[m]);
        assert_true(keyring_sealed(k.keys));
        /* the suite is the keyring's, whatever is asked for later */
        assert_int_equal(ring(&k, &again, SESSILE_KEY_SECRET, KIT_SECRET, NULL, &err),
                         SESSILE_OK);
        assert_int_equal(keyring_suite(again), modes[m] == KIT_AES
                                                   ? SUITE_AES_256_GCM
                                                   : SUITE_XCHACHA20_POLY1305);
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

static int setup(void **state)
{
    (void)state;
    return base_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_line_opens_to_the_same_bytes),
        cmocka_unit_test(line_with_any_changed_bit_does_not_open),
        cmocka_unit_test(line_opens_with_its_key_and_commitment_only),
        cmocka_unit_test(same_text_is_never_sealed_to_the_same_bytes),
        cmocka_unit_test(suites_are_known_by_name),
        cmocka_unit_test(key_of_a_log_is_read_back_from_its_header),
        cmocka_unit_test(header_of_a_later_version_is_UNSUPPORTED),
        cmocka_unit_test(secret_is_a_key_or_a_long_enough_passphrase),
        cmocka_unit_test(key_file_must_be_private_and_ours),
        cmocka_unit_test(secret_comes_from_the_named_variable),
        cmocka_unit_test(default_key_is_made_once_private_and_only_when_asked),
        cmocka_unit_test(default_key_is_durable_before_it_is_depended_on),
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
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
