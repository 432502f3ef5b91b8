/*
 * keyring_open.c: a store's keyring: opened, or made once.
 *
 * It must never make a keyring beside logs that have none: they would be lost.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "base/alloc.h"
#include "vault/ring.h"

static keyring *keyring_new(const sessile_backend *backend, void *self,
                            sessile_key_source source, const allocator *a)
{
    keyring *k = mem_zalloc(a, sizeof *k);
    if (!k)
        return NULL;
    k->alloc = a;
    k->backend = backend;
    k->self = self;
    k->source = source;
    k->ring = mem_zalloc(a, sizeof *k->ring);
    if (!k->ring) {
        mem_free(a, k, sizeof *k);
        return NULL;
    }
    pthread_mutex_init(&k->ring->mutex, NULL);
    return k;
}

/* ---------------------------------------------------------------------- opening */

/* Fills k with what `in` holds. */
static sessile_status fill_keyring(keyring *k, ring_inner *in, const char *blob,
                                   size_t size, int settled, sessile_error *err)
{
    k->sealed = 1;
    k->name_key = sodium_malloc(VAULT_KEY);
    if (!k->name_key)
        return fail_nomem(err);
    memcpy(k->name_key, in->name_key, VAULT_KEY);
    return keyring_adopt(k, in, blob, size, settled, err);
}

static sessile_status read_sealed(keyring *k, const ring_text *text, const char *key_text,
                                  const char *blob, size_t size, const os_table *os,
                                  sessile_error *err)
{
    ring_inner inner = {SUITE_NONE, NULL, NULL};
    wrapping *w = &k->ring->wrap;
    secret *s = NULL;
    sessile_status status = secret_get(&s, k->source, key_text, 0, os, k->alloc, err);
    if (status)
        return status;
    if (secret_is_key(s) == text->stretched) {
        status = fail(err, SESSILE_SEALED,
                      text->stretched
                          ? "this store was sealed with a passphrase, not with a key"
                          : "this store was sealed with a key, not with a passphrase");
        goto out;
    }
    w->stretched = text->stretched;
    w->ops = text->ops;
    w->mem = text->mem;
    memcpy(w->salt, text->salt, sizeof w->salt);
    w->key = sodium_malloc(VAULT_KEY);
    if (!w->key || secret_key(s, w->salt, w->ops, w->mem, w->key) != 0) {
        status = fail_nomem(err);
        goto out;
    }
    status = ring_text_open(text, w->key, &inner, err);
    if (!status)
        status = fill_keyring(k, &inner, blob, size, 0, err);
out:
    ring_inner_free(&inner);
    secret_free(s);
    return status;
}

static sessile_status keyring_read(keyring *k, const char *blob, size_t size,
                                   const char *key, const os_table *os,
                                   sessile_error *err)
{
    ring_text text;
    sessile_status status =
        ring_text_read(&text, blob, size, k->source != SESSILE_KEY_PLAIN, k->alloc, err);
    if (!status && text.sealed) {
        status = read_sealed(k, &text, key, blob, size, os, err);
    } else if (!status) {
        k->name_key = text.name_key;
        text.name_key = NULL;
    }
    ring_text_deinit(&text);
    return status;
}

/* ---------------------------------------------------------------------- making */

static sessile_status make_plain(keyring *k, buf *text, sessile_error *err)
{
    k->name_key = sodium_malloc(VAULT_KEY);
    if (!k->name_key)
        return fail_nomem(err);
    random_bytes(k->name_key, VAULT_KEY);
    return ring_text_put_plain(text, k->name_key, err);
}

static sessile_status make_sealed(keyring *k, buf *text, ring_inner *in, const secret *s,
                                  sessile_error *err)
{
    in->name_key = sodium_malloc(VAULT_KEY);
    in->masters = master_new(1);
    if (!in->name_key || !in->masters)
        return fail_nomem(err);
    random_bytes(in->name_key, VAULT_KEY);
    random_bytes(in->masters->key, VAULT_KEY);
    sessile_status status = wrapping_make(&k->ring->wrap, s, err);
    return !status ? ring_text_put(text, &k->ring->wrap, in, err) : status;
}

static sessile_status make_keyring(keyring *k, const char *key, const char *wanted,
                                   const os_table *os, sessile_error *err)
{
    ring_inner inner = {SUITE_NONE, NULL, NULL};
    secret *s = NULL;
    sessile_status status = SESSILE_OK;
    buf text;
    buf_init(&text, k->alloc);
    if (k->source == SESSILE_KEY_PLAIN) {
        status = make_plain(k, &text, err);
    } else {
        inner.suite =
            suite_here(SUITE_AES_256_GCM) ? SUITE_AES_256_GCM : SUITE_XCHACHA20_POLY1305;
        if (wanted)
            status = suite_of(wanted, strlen(wanted), &inner.suite, err);
        if (!status)
            status = secret_get(&s, k->source, key, 1, os, k->alloc, err);
        if (!status)
            status = make_sealed(k, &text, &inner, s, err);
    }
    if (!status)
        status = k->backend->blob_put_new(k->self, RING_BLOB, text.data, text.size, err);
    if (!status && k->source != SESSILE_KEY_PLAIN)
        status = fill_keyring(k, &inner, text.data, text.size, 1, err);
    ring_inner_free(&inner);
    secret_free(s);
    buf_wipe(&text); /* of a plain one, it holds the name key */
    return status;
}

static sessile_status open_or_make(keyring **out, const sessile_backend *backend,
                                   void *self, sessile_key_source source, const char *key,
                                   const char *wanted, int may_open, const os_table *os,
                                   const allocator *a, sessile_error *err)
{
    *out = NULL;
    /* Twice: who loses the race to make one opens the winner's. */
    for (int tries = 0;; tries++) {
        char *blob = NULL;
        size_t size = 0;
        int logs = 0;
        keyring *k;
        sessile_status status = backend->blob_get(self, RING_BLOB, &blob, &size, err);
        if (!status && !may_open) {
            host_free(blob);
            return fail(err, SESSILE_EXISTS,
                        "the store has its keyring already: see `sessile keys status`");
        }
        if (status && status != SESSILE_NOTFOUND)
            return status;
        if (status == SESSILE_NOTFOUND) {
            /* what cannot be looked at is an error: no second keyring is made beside logs
             */
            sessile_status looked = backend->has_logs(self, &logs, err);
            if (looked)
                return looked;
            if (logs && tries == 0)
                continue; /* somebody may have made both a moment ago */
            if (logs) {
                return fail(err, SESSILE_SEALED,
                            "the store has logs but no keyring: bring back its keyring");
            }
        }
        k = keyring_new(backend, self, source, a);
        if (!k) {
            host_free(blob);
            return fail_nomem(err);
        }
        if (!status) {
            status = keyring_read(k, blob, size, key, os, err);
            host_free(blob);
        } else {
            error_clear(err);
            status = make_keyring(k, key, wanted, os, err);
        }
        if (!status) {
            *out = k;
            return SESSILE_OK;
        }
        keyring_free(k);
        if (status != SESSILE_EXISTS || tries > 1)
            return status;
        error_clear(err);
    }
}

sessile_status keyring_open(keyring **out, const sessile_backend *backend, void *self,
                            sessile_key_source source, const char *key,
                            const char *wanted, const os_table *os, const allocator *a,
                            sessile_error *err)
{
    return open_or_make(out, backend, self, source, key, wanted, 1, os, a, err);
}

sessile_status keyring_make(keyring **out, const sessile_backend *backend, void *self,
                            sessile_key_source source, const char *key,
                            const char *wanted, const os_table *os, const allocator *a,
                            sessile_error *err)
{
    return open_or_make(out, backend, self, source, key, wanted, 0, os, a, err);
}

sessile_status keyring_volatile(keyring **out, const allocator *a, sessile_error *err)
{
    buf text;
    *out = NULL;
    keyring *k = keyring_new(NULL, NULL, SESSILE_KEY_PLAIN, a);
    if (!k)
        return fail_nomem(err);
    buf_init(&text, a);
    sessile_status status = make_plain(k, &text, err);
    buf_wipe(&text);
    if (status) {
        keyring_free(k);
        return status;
    }
    *out = k;
    return SESSILE_OK;
}

/* The secret, which must be a key, is the one master key there is. */
static sessile_status seal_with_secret(keyring *k, const char *key,
                                       const char *suite_wanted, const os_table *os,
                                       sessile_error *err)
{
    secret *s = NULL;
    sessile_status status = SESSILE_OK;
    k->ring->suite =
        suite_here(SUITE_AES_256_GCM) ? SUITE_AES_256_GCM : SUITE_XCHACHA20_POLY1305;
    if (suite_wanted)
        status = suite_of(suite_wanted, strlen(suite_wanted), &k->ring->suite, err);
    if (!status)
        status = secret_get(&s, SESSILE_KEY_SECRET, key, 0, os, k->alloc, err);
    if (!status && !secret_is_key(s)) {
        status = fail(err, SESSILE_INVALID,
                      "records are sealed with a key, not with a passphrase: give "
                      "\"hex:\" or \"base64:\" and 32 bytes");
    }
    if (!status) {
        k->ring->masters = master_new(0);
        if (!k->ring->masters || secret_key(s, NULL, 0, 0, k->ring->masters->key) != 0)
            status = fail_nomem(err);
    }
    k->sealed = status == SESSILE_OK;
    k->ring->settled = 1;
    secret_free(s);
    return status;
}

sessile_status keyring_given(keyring **out, sessile_key_source source, const char *key,
                             const char *suite_wanted, const os_table *os,
                             const allocator *a, sessile_error *err)
{
    *out = NULL;
    if (source != SESSILE_KEY_SECRET && source != SESSILE_KEY_DEFAULT &&
        source != SESSILE_KEY_PLAIN) {
        return fail(err, SESSILE_INVALID,
                    "records are sealed with a key that the host gives, or are plain: "
                    "variables and key files are not used");
    }
    sessile_status status = keyring_volatile(out, a, err);
    if (!status && source == SESSILE_KEY_SECRET) {
        (*out)->source = source;
        status = seal_with_secret(*out, key, suite_wanted, os, err);
    }
    if (status) {
        keyring_free(*out);
        *out = NULL;
    }
    return status;
}
