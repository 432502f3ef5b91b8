/*
 * keyring.c: a store's keyring: opened, made once, read again when another process may
 * have changed it.
 *
 * Owns what is known of it in memory. It must never make a keyring beside logs that have
 * none, and never let a log be sealed under an epoch that the store may have dropped, or
 * that a power cut may take away: a log whose epoch is in no keyring is lost.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "base/alloc.h"
#include "vault/ring.h"

void keyring_free(keyring *k)
{
    if (!k)
        return;
    const allocator *a = k->alloc;
    if (k->ring) {
        masters_free(k->ring->masters);
        wrapping_deinit(&k->ring->wrap);
        mem_free(a, k->ring->blob, k->ring->blob_size + 1);
        pthread_mutex_destroy(&k->ring->mutex);
        mem_free(a, k->ring, sizeof *k->ring);
    }
    sodium_free(k->name_key);
    mem_free(a, k, sizeof *k);
}

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

/* ---------------------------------------------------------------------- what is in it */

int keyring_sealed(const keyring *k)
{
    return k->sealed;
}

const unsigned char *keyring_name_key(const keyring *k)
{
    return k->name_key;
}

int keyring_has_blobs(const keyring *k)
{
    return k->backend != NULL;
}

static master *find_master(const ring *r, uint64_t epoch)
{
    master *m = r->masters;
    while (m && m->epoch != epoch)
        m = m->older;
    return m;
}

static const master *newest(const ring *r)
{
    const master *m = r->masters;
    while (m && m->dropped)
        m = m->older;
    return m;
}

suite keyring_suite(const keyring *k)
{
    pthread_mutex_lock(&k->ring->mutex);
    suite s = k->ring->suite;
    pthread_mutex_unlock(&k->ring->mutex);
    return s;
}

uint64_t keyring_epoch(const keyring *k)
{
    pthread_mutex_lock(&k->ring->mutex);
    const master *m = newest(k->ring);
    uint64_t epoch = m ? m->epoch : 0;
    pthread_mutex_unlock(&k->ring->mutex);
    return epoch;
}

const unsigned char *keyring_master(const keyring *k, uint64_t epoch)
{
    pthread_mutex_lock(&k->ring->mutex);
    const master *m = find_master(k->ring, epoch);
    pthread_mutex_unlock(&k->ring->mutex);
    return m ? m->key : NULL;
}

const unsigned char *keyring_master_now(const keyring *k, uint64_t epoch,
                                        sessile_error *err)
{
    const unsigned char *key = keyring_master(k, epoch);
    if (!key && !keyring_refresh(k, err))
        key = keyring_master(k, epoch);
    return key;
}

int keyring_has(const keyring *k, uint64_t epoch)
{
    pthread_mutex_lock(&k->ring->mutex);
    const master *m = find_master(k->ring, epoch);
    int has = m && !m->dropped;
    pthread_mutex_unlock(&k->ring->mutex);
    return has;
}

int keyring_continues(const keyring *k, const char *blob, size_t size)
{
    ring_text text;
    ring_inner was = {0};
    int continues = 0;
    if (!k->sealed || !k->backend)
        return 0;
    if (!ring_text_read(&text, blob, size, 1, k->alloc, NULL)) {
        pthread_mutex_lock(&k->ring->mutex);
        continues = !ring_text_open(&text, k->ring->wrap.key, &was, NULL) &&
                    same_bytes(was.name_key, k->name_key, VAULT_KEY);
        for (const master *m = was.masters; continues && m; m = m->older) {
            const master *now = find_master(k->ring, m->epoch);
            continues = now && !now->dropped && same_bytes(now->key, m->key, VAULT_KEY);
        }
        pthread_mutex_unlock(&k->ring->mutex);
    }
    ring_inner_free(&was);
    ring_text_deinit(&text);
    return continues;
}

size_t keyring_epochs(const keyring *k, uint64_t *out, size_t room)
{
    size_t count = 0;
    pthread_mutex_lock(&k->ring->mutex);
    for (const master *m = k->ring->masters; m; m = m->older) {
        if (!m->dropped) {
            if (count < room)
                out[count] = m->epoch;
            count++;
        }
    }
    pthread_mutex_unlock(&k->ring->mutex);
    return count;
}

void keyring_facts(const keyring *k, keyring_about *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&k->ring->mutex);
    out->sealed = k->sealed;
    out->source = k->source;
    out->stretched = k->ring->wrap.stretched;
    out->ops = k->ring->wrap.ops;
    out->mem = k->ring->wrap.mem;
    out->suite = k->ring->suite;
    const master *m = newest(k->ring);
    out->epoch = m ? m->epoch : 0;
    pthread_mutex_unlock(&k->ring->mutex);
}

sessile_status keyring_current(const keyring *k, suite *s, uint64_t *epoch,
                               const unsigned char **key, sessile_error *err)
{
    sessile_status status = keyring_refresh(k, err);
    if (status)
        return status;
    pthread_mutex_lock(&k->ring->mutex);
    const master *m = newest(k->ring);
    int settled = k->ring->settled;
    *s = k->ring->suite;
    *epoch = m->epoch;
    *key = m->key;
    pthread_mutex_unlock(&k->ring->mutex);
    if (!settled && k->backend && k->backend->blob_settle) {
        /* Whoever wrote it may not have come to the sync of its name: what hangs on this
         * epoch must not outlive it. */
        status = k->backend->blob_settle(k->self, RING_BLOB, err);
        if (status)
            return status;
        pthread_mutex_lock(&k->ring->mutex);
        k->ring->settled = newest(k->ring) == m;
        pthread_mutex_unlock(&k->ring->mutex);
    }
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- reading again */

/* The masters of `in` go over into the ring; those that it has not are dropped. -1: they
 * contradict each other. Under the mutex. */
static int merge(ring *r, ring_inner *in)
{
    for (const master *theirs = in->masters; theirs; theirs = theirs->older) {
        const master *ours = find_master(r, theirs->epoch);
        if (ours && !same_bytes(ours->key, theirs->key, VAULT_KEY))
            return -1;
    }
    for (master *ours = r->masters; ours; ours = ours->older)
        ours->dropped = 1;
    while (in->masters) {
        master *theirs = in->masters;
        in->masters = theirs->older;
        master *ours = find_master(r, theirs->epoch);
        if (ours) {
            ours->dropped = 0;
            theirs->older = NULL;
            masters_free(theirs);
            continue;
        }
        master **at = &r->masters;
        while (*at && (*at)->epoch > theirs->epoch)
            at = &(*at)->older;
        theirs->older = *at;
        *at = theirs;
    }
    return 0;
}

sessile_status keyring_adopt(const keyring *k, ring_inner *in, const char *blob,
                             size_t size, int settled, sessile_error *err)
{
    ring *r = k->ring;
    char *copy = mem_dup(k->alloc, blob, size);
    if (!copy)
        return fail_nomem(err);
    pthread_mutex_lock(&r->mutex);
    int other = !same_bytes(in->name_key, k->name_key, VAULT_KEY) || merge(r, in) != 0;
    if (!other) {
        char *was = r->blob;
        size_t was_size = r->blob_size;
        r->suite = in->suite;
        r->blob = copy;
        r->blob_size = size;
        r->settled = settled;
        copy = was;
        size = was_size;
    }
    pthread_mutex_unlock(&r->mutex);
    mem_free(k->alloc, copy, size + 1);
    return other ? fail(err, SESSILE_SEALED,
                        "the store's keyring was replaced by another one: close the "
                        "store and open it again")
                 : SESSILE_OK;
}

sessile_status keyring_refresh(const keyring *k, sessile_error *err)
{
    char *blob;
    size_t size;
    ring_text text;
    ring_inner inner = {SUITE_NONE, NULL, NULL};
    if (!k->sealed || !k->backend)
        return SESSILE_OK;
    sessile_status status = k->backend->blob_get(k->self, RING_BLOB, &blob, &size, err);
    if (status == SESSILE_NOTFOUND) {
        return fail(err, SESSILE_SEALED,
                    "the store's keyring is gone: bring back a copy of it");
    }
    if (status)
        return status;
    pthread_mutex_lock(&k->ring->mutex);
    int same = k->ring->blob_size == size && memcmp(k->ring->blob, blob, size) == 0;
    pthread_mutex_unlock(&k->ring->mutex);
    if (same) {
        host_free(blob);
        return SESSILE_OK;
    }
    status = ring_text_read(&text, blob, size, 1, k->alloc, err);
    if (!status) {
        pthread_mutex_lock(&k->ring->mutex);
        status = ring_text_open(&text, k->ring->wrap.key, &inner, err);
        pthread_mutex_unlock(&k->ring->mutex);
        if (status == SESSILE_SEALED) {
            fail(err, SESSILE_SEALED,
                 "the store's secret was changed since it was opened: close the store "
                 "and open it with the new one");
        }
    }
    if (!status)
        status = keyring_adopt(k, &inner, blob, size, 0, err);
    ring_inner_free(&inner);
    ring_text_deinit(&text);
    host_free(blob);
    return status;
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
