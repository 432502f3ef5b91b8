/*
 * keyring.c: a store's keyring: opened, or made once.
 *
 * Owns the blob "keyring", one line of JSON:
 *
 *   {"sessile_keyring":1,"mode":"plain","name":"B"}
 *   {"sessile_keyring":1,"mode":"sealed","kdf":"none","s":"B"}
 *   {"sessile_keyring":1,"mode":"sealed","kdf":"argon2id","salt":"B","ops":N,"mem":N,"s":"B"}
 *
 * s = nonce ‖ XChaCha20-Poly1305(secret's key; inner), additional data = the line before
 * its base64; inner = {"suite":"S","name":"B","epochs":[{"epoch":1,"key":"B"},…]}.
 *
 * It must never open a plain keyring for someone who asked for a sealed store or the
 * other way round (so that swapping the blob switches nothing off), never make one beside
 * logs that have none, and never hold key material outside guarded memory.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "vault/guarded.h"

#define BLOB        "keyring"
#define DEPTH       8
#define EPOCHS_MOST 4096

/* What a keyring's passphrase is stretched with. The floor is what this file writes. The
 * ceiling keeps an edited keyring from taking the machine's memory and hours of time. */
#define OPS      crypto_pwhash_OPSLIMIT_INTERACTIVE
#define MEM      crypto_pwhash_MEMLIMIT_INTERACTIVE
#define OPS_MOST 32u
#define MEM_MOST (UINT64_C(1) << 30)

_Static_assert(SECRET_SALT == crypto_pwhash_argon2id_SALTBYTES, "salt");

typedef struct master {
    uint64_t epoch;
    unsigned char key[VAULT_KEY];
} master;

struct keyring {
    const allocator *alloc;
    int sealed;
    suite suite;
    unsigned char *name_key; /* guarded */
    master *masters;         /* guarded, ascending */
    size_t count;
};

void keyring_free(keyring *k)
{
    if (k != NULL) {
        sodium_free(k->name_key);
        sodium_free(k->masters);
        mem_free(k->alloc, k, sizeof(*k));
    }
}

int keyring_sealed(const keyring *k)
{
    return k->sealed;
}

suite keyring_suite(const keyring *k)
{
    return k->suite;
}

const unsigned char *keyring_name_key(const keyring *k)
{
    return k->name_key;
}

uint64_t keyring_epoch(const keyring *k)
{
    return k->count == 0 ? 0 : k->masters[k->count - 1].epoch;
}

const unsigned char *keyring_master(const keyring *k, uint64_t epoch)
{
    for (size_t i = k->count; i > 0; i--) {
        if (k->masters[i - 1].epoch == epoch) {
            return k->masters[i - 1].key;
        }
    }
    return NULL;
}

static keyring *keyring_new(size_t masters, const allocator *a)
{
    keyring *k = mem_zalloc(a, sizeof(*k));
    if (k == NULL) {
        return NULL;
    }
    k->alloc = a;
    k->name_key = sodium_malloc(VAULT_KEY);
    k->masters = masters > 0 ? sodium_allocarray(masters, sizeof(*k->masters)) : NULL;
    k->count = masters;
    if (k->name_key == NULL || (masters > 0 && k->masters == NULL)) {
        keyring_free(k);
        return NULL;
    }
    return k;
}

/* A string without escapes that is base64 of exactly size bytes. */
static int read_bytes(json value, unsigned char *out, size_t size)
{
    const char *text;
    size_t text_size;
    /* base64 comes in threes */
    if (!json_plain(value, &text, &text_size) || text_size != base64_size(size)) {
        return -1;
    }
    unsigned char *room = sodium_malloc(text_size / 4 * 3 + 1);
    int result = -1;
    if (room != NULL && base64_decode(room, text, text_size) == (int64_t)size) {
        memcpy(out, room, size);
        result = 0;
    }
    sodium_free(room);
    return result;
}

static sessile_status fail_damaged(sessile_error *err)
{
    return fail(
        err, SESSILE_DAMAGED,
        "the store's keyring is not one this version wrote: bring back a copy of it");
}

/* ---------------------------------------------------------------------- making */

static void put_bytes(buf *out, const char *name, const void *data, size_t size)
{
    buf_puts(out, name);
    buf_puts(out, "\"");
    base64_put(out, data, size);
    buf_puts(out, "\"");
}

static sessile_status make_plain(keyring **out, buf *text, const allocator *a,
                                 sessile_error *err)
{
    keyring *k = keyring_new(0, a);
    if (k == NULL) {
        return fail_nomem(err);
    }
    random_bytes(k->name_key, VAULT_KEY);
    buf_puts(text, "{\"sessile_keyring\":1,\"mode\":\"plain\"");
    put_bytes(text, ",\"name\":", k->name_key, VAULT_KEY);
    buf_puts(text, "}\n");
    *out = k;
    return SESSILE_OK;
}

static sessile_status make_sealed(keyring **out, buf *text, const secret *s, suite wanted,
                                  const allocator *a, sessile_error *err)
{
    unsigned char salt[SECRET_SALT];
    sessile_status status = SESSILE_OK;
    buf inner, sealed;
    buf_init(&inner, &allocator_guarded);
    buf_init(&sealed, a);
    unsigned char *key = sodium_malloc(VAULT_KEY);
    keyring *k = keyring_new(1, a);
    if (k == NULL || key == NULL) {
        status = fail_nomem(err);
        goto out;
    }
    k->sealed = 1;
    k->suite = wanted;
    random_bytes(k->name_key, VAULT_KEY);
    k->masters[0].epoch = 1;
    random_bytes(k->masters[0].key, VAULT_KEY);
    random_bytes(salt, sizeof(salt));

    buf_puts(text, "{\"sessile_keyring\":1,\"mode\":\"sealed\"");
    if (secret_is_key(s)) {
        buf_puts(text, ",\"kdf\":\"none\"");
    } else {
        buf_puts(text, ",\"kdf\":\"argon2id\"");
        put_bytes(text, ",\"salt\":", salt, sizeof(salt));
        buf_puts(text, ",\"ops\":");
        buf_put_u64(text, OPS);
        buf_puts(text, ",\"mem\":");
        buf_put_u64(text, MEM);
    }
    buf_puts(text, ",\"s\":\"");
    buf_puts(&inner, "{\"suite\":\"");
    buf_puts(&inner, suite_name(wanted));
    buf_puts(&inner, "\"");
    put_bytes(&inner, ",\"name\":", k->name_key, VAULT_KEY);
    buf_puts(&inner, ",\"epochs\":[{\"epoch\":1");
    put_bytes(&inner, ",\"key\":", k->masters[0].key, VAULT_KEY);
    buf_puts(&inner, "}]}");
    const suite outer = SUITE_XCHACHA20_POLY1305;
    size_t size = suite_nonce_size(outer) + inner.size + VAULT_TAG;
    if (text->failed || inner.failed || buf_reserve(&sealed, size) != 0 ||
        secret_key(s, salt, OPS, MEM, key) != 0) {
        status = fail_nomem(err);
        goto out;
    }
    seal_bytes(outer, key, text->data, text->size, inner.data, inner.size,
               (unsigned char *)sealed.data);
    base64_put(text, sealed.data, size);
    buf_puts(text, "\"}\n");
    *out = k;
    k = NULL;
out:
    keyring_free(k);
    sodium_free(key);
    buf_deinit(&inner);
    buf_deinit(&sealed);
    return status;
}

/* ---------------------------------------------------------------------- opening */

/* The inner text: opened, so written by somebody with the secret, yet checked. */
static sessile_status read_inner(keyring **out, const char *text, size_t size,
                                 const allocator *a, sessile_error *err)
{
    buf checked;
    const char *name;
    size_t name_size, count = 0;
    suite s;
    keyring *k = NULL;
    buf_init(&checked, &allocator_guarded);
    sessile_status status = json_check(&checked, text, size, DEPTH, err);
    if (status != SESSILE_OK) {
        /* NOMEM stays; every other fault is the keyring's, and its text is not quoted */
        status = status == SESSILE_NOMEM ? status : fail_damaged(err);
        goto out;
    }
    json inner = json_of(checked.data, checked.size);
    json epochs = json_get(inner, "epochs");
    if (!json_plain(json_get(inner, "suite"), &name, &name_size) ||
        epochs.type != JSON_ARRAY) {
        status = fail_damaged(err);
        goto out;
    }
    status = suite_of(name, name_size, &s, err);
    if (status != SESSILE_OK) {
        goto out;
    }
    for (json_iter it = json_begin(epochs); json_next(&it);) {
        count++;
    }
    if (count < 1 || count > EPOCHS_MOST) {
        status = fail_damaged(err);
        goto out;
    }
    k = keyring_new(count, a);
    if (k == NULL) {
        status = fail_nomem(err);
        goto out;
    }
    k->sealed = 1;
    k->suite = s;
    int bad = read_bytes(json_get(inner, "name"), k->name_key, VAULT_KEY) != 0;
    json_iter it = json_begin(epochs);
    for (size_t i = 0; i < count && json_next(&it) && !bad; i++) {
        master *m = &k->masters[i];
        bad = json_uint(json_get(it.value, "epoch"), &m->epoch) != 0 || m->epoch == 0 ||
              m->epoch > UINT32_MAX || (i > 0 && m->epoch <= k->masters[i - 1].epoch) ||
              read_bytes(json_get(it.value, "key"), m->key, VAULT_KEY) != 0;
    }
    if (bad) {
        status = fail_damaged(err);
        goto out;
    }
    *out = k;
    k = NULL;
out:
    keyring_free(k);
    buf_deinit(&checked);
    return status;
}

/* line: the blob without its newline; outer: the same text, checked and unchanged by it.
 */
static sessile_status read_sealed(keyring **out, const buf *line, json outer,
                                  sessile_key_source source, const char *key_text,
                                  const os_table *os, const allocator *a,
                                  sessile_error *err)
{
    unsigned char salt[SECRET_SALT] = {0};
    uint64_t ops = 0, mem = 0;
    const char *text;
    size_t text_size;
    int64_t raw;
    secret *s = NULL;
    unsigned char *key = NULL, *inner = NULL;
    sessile_status status;
    buf sealed;
    const suite with = SUITE_XCHACHA20_POLY1305;
    size_t overhead = suite_nonce_size(with) + VAULT_TAG;
    buf_init(&sealed, a);

    json kdf = json_get(outer, "kdf");
    int stretched = json_is(kdf, "argon2id");
    if ((!stretched && !json_is(kdf, "none")) ||
        !json_plain(json_get(outer, "s"), &text, &text_size) ||
        (size_t)(text + text_size - line->data) + 2 != line->size) {
        status = fail_damaged(err);
        goto out;
    }
    if (stretched && (read_bytes(json_get(outer, "salt"), salt, sizeof(salt)) != 0 ||
                      json_uint(json_get(outer, "ops"), &ops) != 0 ||
                      json_uint(json_get(outer, "mem"), &mem) != 0 || ops < OPS ||
                      ops > OPS_MOST || mem < MEM || mem > MEM_MOST)) {
        status = fail_damaged(err);
        goto out;
    }
    if (buf_reserve(&sealed, text_size / 4 * 3) != 0) {
        status = fail_nomem(err);
        goto out;
    }
    raw = base64_decode(sealed.data, text, text_size);
    if (raw < (int64_t)overhead) {
        status = fail_damaged(err);
        goto out;
    }
    status = secret_get(&s, source, key_text, 0, os, a, err);
    if (status != SESSILE_OK) {
        goto out;
    }
    if (secret_is_key(s) == stretched) {
        status =
            fail(err, SESSILE_SEALED,
                 stretched ? "this store was sealed with a passphrase, not with a key"
                           : "this store was sealed with a key, not with a passphrase");
        goto out;
    }
    key = sodium_malloc(VAULT_KEY);
    inner = sodium_malloc((size_t)raw);
    if (key == NULL || inner == NULL || secret_key(s, salt, ops, mem, key) != 0) {
        status = fail_nomem(err);
        goto out;
    }
    if (open_bytes(with, key, line->data, (size_t)(text - line->data),
                   (unsigned char *)sealed.data, (size_t)raw, inner) != 0) {
        status =
            fail(err, SESSILE_SEALED,
                 "the secret does not open this store's keyring: give the one it was "
                 "made with");
        goto out;
    }
    status = read_inner(out, (char *)inner, (size_t)raw - overhead, a, err);
out:
    secret_free(s);
    sodium_free(key);
    sodium_free(inner);
    buf_deinit(&sealed);
    return status;
}

static sessile_status keyring_read(keyring **out, const char *blob, size_t size,
                                   sessile_key_source source, const char *key,
                                   const os_table *os, const allocator *a,
                                   sessile_error *err)
{
    buf line;
    uint64_t version;
    keyring *k = NULL;
    buf_init(&line, a);
    if (size > 0 && blob[size - 1] == '\n') {
        size--;
    }
    sessile_status status = json_check(&line, blob, size, DEPTH, err);
    if (status != SESSILE_OK) {
        status = status == SESSILE_NOMEM ? status : fail_damaged(err);
        goto out;
    }
    json outer = json_of(line.data, line.size);
    if (line.size != size || memcmp(line.data, blob, size) != 0 ||
        json_uint(json_get(outer, "sessile_keyring"), &version) != 0) {
        status =
            fail_damaged(err); /* the additional data is the text as it was written */
        goto out;
    }
    if (version != 1) {
        status =
            fail(err, SESSILE_UNSUPPORTED, "the store's keyring is of a newer version");
        goto out;
    }
    json mode = json_get(outer, "mode");
    if (json_is(mode, "sealed")) {
        status = source == SESSILE_KEY_PLAIN
                     ? fail(err, SESSILE_SEALED,
                            "this store is sealed and was opened without a key: give one")
                     : read_sealed(out, &line, outer, source, key, os, a, err);
    } else if (!json_is(mode, "plain")) {
        status = fail_damaged(err);
    } else if (source != SESSILE_KEY_PLAIN) {
        status =
            fail(err, SESSILE_SEALED,
                 "this store's keyring says that it is plain: open it with no key if "
                 "it was meant to be");
    } else if ((k = keyring_new(0, a)) == NULL) {
        status = fail_nomem(err);
    } else if (read_bytes(json_get(outer, "name"), k->name_key, VAULT_KEY) != 0) {
        status = fail_damaged(err);
    } else {
        *out = k;
        k = NULL;
    }
out:
    keyring_free(k);
    buf_deinit(&line);
    return status;
}

/* ---------------------------------------------------------------------- the door */

static sessile_status make(keyring **out, const sessile_backend *backend, void *self,
                           sessile_key_source source, const char *key, const char *wanted,
                           const os_table *os, const allocator *a, sessile_error *err)
{
    keyring *k = NULL;
    secret *s = NULL;
    suite chosen =
        suite_here(SUITE_AES_256_GCM) ? SUITE_AES_256_GCM : SUITE_XCHACHA20_POLY1305;
    sessile_status status = SESSILE_OK;
    buf text;
    buf_init(&text, a);
    if (source == SESSILE_KEY_PLAIN) {
        status = make_plain(&k, &text, a, err);
    } else {
        if (wanted != NULL) {
            status = suite_of(wanted, strlen(wanted), &chosen, err);
        }
        if (status == SESSILE_OK) {
            status = secret_get(&s, source, key, 1, os, a, err);
        }
        if (status == SESSILE_OK) {
            status = make_sealed(&k, &text, s, chosen, a, err);
        }
    }
    if (status == SESSILE_OK && text.failed) {
        status = fail_nomem(err);
    }
    if (status == SESSILE_OK) {
        status = backend->blob_put_new(self, BLOB, text.data, text.size, err);
    }
    if (status == SESSILE_OK) {
        *out = k;
        k = NULL;
    }
    keyring_free(k);
    secret_free(s);
    buf_wipe(&text); /* of a plain one, it holds the name key */
    return status;
}

sessile_status keyring_open(keyring **out, const sessile_backend *backend, void *self,
                            sessile_key_source source, const char *key,
                            const char *wanted, const os_table *os, const allocator *a,
                            sessile_error *err)
{
    *out = NULL;
    /* Twice: who loses the race to make one opens the winner's. */
    for (int tries = 0;; tries++) {
        char *blob = NULL;
        size_t size = 0;
        int logs = 0;
        sessile_status status = backend->blob_get(self, BLOB, &blob, &size, err);
        if (status == SESSILE_OK) {
            status = keyring_read(out, blob, size, source, key, os, a, err);
            sessile_free(blob);
            return status;
        }
        if (status != SESSILE_NOTFOUND) {
            return status;
        }
        /* what cannot be looked at is an error: no second keyring is made beside logs */
        status = backend->has_logs(self, &logs, err);
        if (status != SESSILE_OK) {
            return status;
        }
        if (logs && tries == 0) {
            continue; /* somebody may have made both a moment ago */
        }
        if (logs) {
            return fail(err, SESSILE_SEALED,
                        "the store has logs but no keyring: bring back its keyring");
        }
        error_clear(err);
        status = make(out, backend, self, source, key, wanted, os, a, err);
        if (status != SESSILE_EXISTS || tries > 0) {
            return status;
        }
        error_clear(err);
    }
}

sessile_status keyring_volatile(keyring **out, const allocator *a, sessile_error *err)
{
    buf text;
    buf_init(&text, a);
    *out = NULL;
    sessile_status status = make_plain(out, &text, a, err);
    buf_wipe(&text);
    return status;
}
