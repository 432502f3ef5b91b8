/*
 * test_vault.c: sealed lines, the keys of logs, and where secrets come from.
 *
 * Owns promise 13 as far as the vault keeps it.
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

static void bufs_begin(buf *a, buf *b)
{
    buf_init(a, A);
    buf_init(b, A);
}

static void bufs_end(buf *a, buf *b)
{
    buf_deinit(a);
    buf_deinit(b);
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
        bufs_begin(&line, &out);
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
        bufs_end(&line, &out);
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
        bufs_begin(&line, &out);
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
        bufs_end(&line, &out);
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
        bufs_begin(&line, &out);
        seal(&k, &line, "text", 4, tag);
        assert_int_equal(open_(&other, &line, &out), -1);
        memcpy(other.key, k.key, VAULT_KEY);
        datakey_prepare(SUITE, other.key);
        assert_int_equal(open_(&other, &line, &out), -1); /* commitment */
        memcpy(other.commitment, k.commitment, VAULT_COMMITMENT);
        assert_int_equal(open_(&other, &line, &out), 0);
        bufs_end(&line, &out);
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
        bufs_begin(&one, &two);
        seal(&k, &one, "text", 4, tag);
        seal(&k, &two, "text", 4, tag);
        assert_int_equal(one.size, two.size);
        assert_memory_not_equal(one.data, two.data, one.size);
        bufs_end(&one, &two);
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
    EACH_SEALED_MODE(mode)
    {
        kit k;
        logkey made, read;
        buf line;
        sessile_error err = {0};
        kit_open(&k, mode);
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
    };
    return cmocka_run_group_tests(tests, base_set_up, NULL);
}
