/*
 * secret.c: what opens a store's keyring, and where it comes from.
 *
 * Owns the reading of secrets: a variable, a file, the host's own bytes, or the key file
 * of this user, made once. A secret lives in guarded memory from its first byte on and
 * never goes into an error's sentence. It must never make a key file but together with a
 * keyring: a key made for a store that has one could open nothing.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define SHORTEST_PASSPHRASE 12
#define LONGEST_SECRET      4096
#define KEY_FILE            "sessile/key"

struct secret {
    size_t size;
    int is_key;
    unsigned char
        bytes[LONGEST_SECRET + 1]; /* one more, to see that a file is too long */
};

static secret *secret_new(void)
{
    secret *s = sodium_malloc(sizeof *s);
    if (s) {
        s->size = 0;
        s->is_key = 0;
    }
    return s;
}

void secret_free(secret *s)
{
    sodium_free(s);
}

int secret_is_key(const secret *s)
{
    return s->is_key;
}

/* Characters, not bytes: what is not the rest of a sequence. */
static size_t characters(const unsigned char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += (text[i] & 0xc0) != 0x80;
    return n;
}

/* Tells a key from a passphrase. s->bytes hold the text as it came. */
static sessile_status understand(secret *s, sessile_error *err)
{
    const char *text = (const char *)s->bytes;
    unsigned char key[VAULT_KEY + 2];
    if (s->size > LONGEST_SECRET) {
        return fail(err, SESSILE_INVALID, "a secret has at most %d bytes",
                    LONGEST_SECRET);
    }
    if (s->size == 4 + 2 * VAULT_KEY && memcmp(text, "hex:", 4) == 0 &&
        hex_decode(key, text + 4, VAULT_KEY) == 0)
        s->is_key = 1;
    else if (s->size == 7 + base64_size(VAULT_KEY) && memcmp(text, "base64:", 7) == 0 &&
             base64_decode(key, text + 7, s->size - 7) == VAULT_KEY)
        s->is_key = 1;
    if (s->is_key) {
        sodium_memzero(s->bytes, sizeof s->bytes);
        memcpy(s->bytes, key, VAULT_KEY);
        s->size = VAULT_KEY;
        sodium_memzero(key, sizeof key);
        return SESSILE_OK;
    }
    sodium_memzero(key, sizeof key);
    if (characters(s->bytes, s->size) < SHORTEST_PASSPHRASE) {
        return fail(err, SESSILE_INVALID,
                    "the secret is neither \"hex:\" or \"base64:\" and 32 bytes nor a "
                    "passphrase of at least %d characters",
                    SHORTEST_PASSPHRASE);
    }
    return SESSILE_OK;
}

static sessile_status from_text(secret *s, const char *text, sessile_error *err)
{
    size_t size = strlen(text);
    if (size > LONGEST_SECRET) {
        return fail(err, SESSILE_INVALID, "a secret has at most %d bytes",
                    LONGEST_SECRET);
    }
    memcpy(s->bytes, text, size);
    s->size = size;
    return understand(s, err);
}

/* NOTFOUND when there is no such file: what that means is the caller's to say. durably:
 * its bytes are synced before they are believed. */
static sessile_status from_file(secret *s, const char *path, int durably,
                                const os_table *os, sessile_error *err)
{
    os_stat_info st;
    sessile_status status = SESSILE_OK;
    int fd = os->open_at(os->ud, -1, path, OS_READ);
    if (fd < 0) {
        if (errno == ELOOP) {
            return fail(err, SESSILE_DENIED,
                        "the key file %s is a link: name the file "
                        "itself",
                        path);
        }
        return fail_errno(err, errno, "cannot open the key file %s", path);
    }
    if (os->stat_fd(os->ud, fd, &st) != 0) {
        status = fail_errno(err, errno, "cannot look at the key file %s", path);
    } else if (!st.is_regular || st.uid != os->uid(os->ud)) {
        status =
            fail(err, SESSILE_DENIED, "the key file %s is not a file of yours", path);
    } else if ((st.mode & 077) != 0) {
        status = fail(err, SESSILE_DENIED,
                      "others may read the key file %s: chmod 600 it", path);
    } else {
        int64_t got = os_read_full(os, fd, s->bytes, sizeof s->bytes, 0);
        if (got < 0) {
            status = fail_errno(err, errno, "cannot read the key file %s", path);
        } else {
            s->size = (size_t)got;
            if (s->size > 0 && s->bytes[s->size - 1] == '\n')
                s->size--;
            status = understand(s, err);
        }
    }
    if (!status && durably && os->sync_all(os->ud, fd) != 0)
        status = fail_errno(err, errno, "cannot sync the key file %s", path);
    os->close(os->ud, fd);
    return status;
}

/* Appends the folder that holds "sessile/key". 0, or -1: there is no home. */
static int config_home(buf *out, const os_table *os)
{
    const char *xdg = os->env(os->ud, "XDG_CONFIG_HOME");
    const char *home = os->env(os->ud, "HOME");
    if (xdg && xdg[0] == '/') {
        buf_puts(out, xdg);
    } else if (home && home[0] == '/') {
        buf_puts(out, home);
        buf_puts(out, "/.config");
    } else {
        return -1;
    }
    return 0;
}

/*
 * Writes a new random key under a temporary name and renames it: whoever finds the key
 * file finds all of it. Its name is not durable yet. EXISTS: somebody else was first,
 * which is as good.
 */
static sessile_status make_key_file(int dir, const char *name, const char *path,
                                    const os_table *os, sessile_error *err)
{
    enum { TEXT = 4 + 2 * VAULT_KEY + 1 };
    sessile_status status = SESSILE_OK;
    char temporary[32] = ".key-";
    unsigned char random[8];
    size_t written;
    int fd = -1;
    unsigned char *key = sodium_malloc(VAULT_KEY);
    char *text = sodium_malloc(TEXT + 1);
    if (!key || !text) {
        status = fail_nomem(err);
        goto out;
    }
    random_bytes(random, sizeof random);
    hex_encode(temporary + 5, random, sizeof random);
    random_bytes(key, VAULT_KEY);
    memcpy(text, "hex:", 4);
    hex_encode(text + 4, key, VAULT_KEY);
    text[TEXT - 1] = '\n';
    fd = os->open_at(os->ud, dir, temporary, OS_WRITE | OS_CREATE_NEW);
    if (fd < 0) {
        status = fail_errno(err, errno, "cannot make the key file %s", path);
        goto out;
    }
    if (os_write_full(os, fd, text, TEXT, 0, &written) != 0 ||
        os->sync_all(os->ud, fd) != 0 ||
        os->rename_new(os->ud, dir, temporary, name) != 0) {
        status = errno == EEXIST
                     ? SESSILE_EXISTS
                     : fail_errno(err, errno, "cannot make the key file %s", path);
        os->unlink_at(os->ud, dir, temporary);
    }
out:
    if (fd >= 0)
        os->close(os->ud, fd);
    sodium_free(key);
    sodium_free(text);
    return status;
}

/* Makes the key file at path, and the folders on the way. Changes path and puts it back.
 */
static sessile_status make_default(char *path, const os_table *os, const allocator *a,
                                   sessile_error *err)
{
    char *slash = strrchr(path, '/');
    sessile_status status;
    int dir;
    *slash = '\0';
    if (os_make_path(os, a, path) != 0) {
        status = fail_errno(err, errno, "cannot make the folder %s", path);
    } else if ((dir = os->open_at(os->ud, -1, path, OS_READ | OS_DIRECTORY)) < 0) {
        status = fail_errno(err, errno, "cannot open the folder %s", path);
    } else {
        status = make_key_file(dir, "key", path, os, err);
        os->close(os->ud, dir);
    }
    *slash = '/';
    return status;
}

sessile_status secret_file_make(const char *path, const os_table *os, const allocator *a,
                                sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf folder;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (name[0] == '\0') {
        return fail(err, SESSILE_INVALID, "the new key file %s is a folder: name a file",
                    path);
    }
    buf_init(&folder, a);
    buf_put(&folder, path, (size_t)(name - path));
    buf_puts(&folder, "."); /* "" is the current one */
    if (folder.failed) {
        status = fail_nomem(err);
        goto out;
    }
    int dir = os->open_at(os->ud, -1, folder.data, OS_READ | OS_DIRECTORY);
    if (dir < 0) {
        status = fail_errno(err, errno, "cannot open the folder of %s", path);
        goto out;
    }
    status = make_key_file(dir, name, path, os, err);
    if (status == SESSILE_EXISTS) {
        error_clear(err); /* by whomever: it is used as it is */
        status = SESSILE_OK;
    }
    if (!status && os->sync_all(os->ud, dir) != 0)
        status = fail_errno(err, errno, "cannot sync the folder of %s", path);
    os->close(os->ud, dir);
out:
    buf_deinit(&folder);
    return status;
}

/*
 * may_make: a keyring is about to be made that this key alone will open. So the key is
 * durable on return, whoever made it, and however short a while ago: a power cut that
 * took it and left the keyring would take the whole store.
 */
static sessile_status from_default(secret *s, int may_make, const os_table *os,
                                   const allocator *a, sessile_error *err)
{
    const char *env = os->env(os->ud, "SESSILE_KEY");
    sessile_status status = SESSILE_OK;
    buf path;
    if (env && env[0] != '\0')
        return from_text(s, env, err);
    buf_init(&path, a);
    if (config_home(&path, os) != 0) {
        status =
            fail(err, SESSILE_SEALED,
                 "there is no SESSILE_KEY and no home for a key file: set one of them");
        goto out;
    }
    buf_puts(&path, "/" KEY_FILE);
    if (path.failed) {
        status = fail_nomem(err);
        goto out;
    }
    status = from_file(s, path.data, may_make, os, err);
    if (status == SESSILE_NOTFOUND && !may_make) {
        status =
            fail(err, SESSILE_SEALED,
                 "the store is sealed and there is no key for it: set SESSILE_KEY or "
                 "put the key into %s",
                 path.data);
    }
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = make_default(path.data, os, a, err);
        if (!status || status == SESSILE_EXISTS) {
            error_clear(err);
            status = from_file(s, path.data, 1, os, err); /* whoever made it */
        }
    }
    if (!status && may_make && os_sync_parent(os, a, path.data) != 0)
        status = fail_errno(err, errno, "cannot sync the folder of %s", path.data);
out:
    buf_deinit(&path);
    return status;
}

sessile_status secret_get(secret **out, sessile_key_source source, const char *key,
                          int may_make, const os_table *os, const allocator *a,
                          sessile_error *err)
{
    sessile_status status;
    const char *env;
    *out = NULL;
    if (source == SESSILE_KEY_PLAIN)
        return SESSILE_OK;
    if (source != SESSILE_KEY_DEFAULT && (!key || key[0] == '\0'))
        return fail(err, SESSILE_INVALID, "this source of the key needs `key` to be set");
    secret *s = secret_new();
    if (!s)
        return fail_nomem(err);
    switch (source) {
    case SESSILE_KEY_DEFAULT:
        status = from_default(s, may_make, os, a, err);
        break;
    case SESSILE_KEY_ENV:
        env = os->env(os->ud, key);
        if (!env || env[0] == '\0') {
            status = fail(err, SESSILE_SEALED,
                          "the variable %s, which is to hold the "
                          "secret, is not set",
                          key);
        } else {
            status = from_text(s, env, err);
        }
        break;
    case SESSILE_KEY_FILE:
        status = from_file(s, key, 0, os, err);
        if (status == SESSILE_NOTFOUND)
            status = fail(err, SESSILE_SEALED, "there is no key file %s", key);
        break;
    case SESSILE_KEY_SECRET:
        status = from_text(s, key, err);
        break;
    default:
        status = fail(err, SESSILE_INVALID, "there is no such source of a key");
        break;
    }
    if (status) {
        secret_free(s);
        return status;
    }
    *out = s;
    return SESSILE_OK;
}

int secret_key(const secret *s, const unsigned char *salt, uint64_t ops, uint64_t mem,
               unsigned char out[VAULT_KEY])
{
    if (s->is_key) {
        memcpy(out, s->bytes, VAULT_KEY);
        return 0;
    }
    return crypto_pwhash(out, VAULT_KEY, (const char *)s->bytes, s->size, salt, ops,
                         (size_t)mem, crypto_pwhash_ALG_ARGON2ID13);
}
