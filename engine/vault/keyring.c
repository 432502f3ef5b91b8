/*
 * keyring.c: a store's keyring in memory: what is in it, and reading it again when
 * another process may have changed it.
 *
 * It must never let a log be sealed under an epoch that the store may have dropped, or
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
