/*
 * keyring_change.c: a keyring changed in its place: a new epoch, another secret, another
 * suite, old epochs dropped.
 *
 * Owns the one way it is done: read again, build the whole text again, put it in the
 * place of exactly what was read. Who loses the race to another process reads and builds
 * once more. So a crash leaves the old keyring or the new one, and two changes at once
 * are both made. It must never touch a log: what a change means for them is for others to
 * do.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "base/alloc.h"
#include "vault/ring.h"

/* A race is lost only to somebody who changed something. */
#define TRIES 100

typedef struct change {
    suite suite;          /* SUITE_NONE: as it was */
    int new_epoch;        /* one more, the newest */
    const uint64_t *keep; /* with drop: epochs that stay beside the newest */
    size_t keep_count;
    int drop;
    const wrapping *wrap; /* NULL: as it was */
} change;

static int is_kept(const change *c, uint64_t epoch)
{
    for (size_t i = 0; i < c->keep_count; i++)
        if (c->keep[i] == epoch)
            return 1;
    return 0;
}

/* A copy of what the ring holds, changed. Under its mutex. */
static sessile_status changed(const keyring *k, const change *c, ring_inner *out,
                              sessile_error *err)
{
    master **end = &out->masters;
    uint64_t newest = 0;
    memset(out, 0, sizeof *out);
    out->suite = c->suite != SUITE_NONE ? c->suite : k->ring->suite;
    out->name_key = sodium_malloc(VAULT_KEY);
    if (!out->name_key)
        return fail_nomem(err);
    memcpy(out->name_key, k->name_key, VAULT_KEY);
    for (const master *m = k->ring->masters; m; m = m->older)
        newest = m->epoch > newest ? m->epoch : newest; /* of dropped ones as well */
    if (c->new_epoch) {
        if (newest >= UINT32_MAX)
            return fail(err, SESSILE_LIMIT, "the store has no epochs left");
        master *fresh = master_new(newest + 1);
        if (!fresh)
            return fail_nomem(err);
        random_bytes(fresh->key, VAULT_KEY);
        *end = fresh;
        end = &fresh->older;
    }
    for (const master *m = k->ring->masters; m; m = m->older) {
        if (m->dropped || (c->drop && out->masters && !is_kept(c, m->epoch)))
            continue;
        master *copy = master_new(m->epoch);
        if (!copy)
            return fail_nomem(err);
        memcpy(copy->key, m->key, VAULT_KEY);
        *end = copy;
        end = &copy->older;
    }
    return SESSILE_OK;
}

/* After a failure that leaves it open which keyring is in place: if it is the new one,
 * this handle continues with it. */
static void look_again(keyring *k, ring_inner *in, const buf *text)
{
    char *blob;
    size_t size;
    if (k->backend->blob_get(k->self, RING_BLOB, &blob, &size, NULL))
        return;
    if (size == text->size && memcmp(blob, text->data, size) == 0)
        (void)keyring_adopt(k, in, blob, size, 0, NULL);
    host_free(blob);
}

static sessile_status try_change(keyring *k, const change *c, sessile_error *err)
{
    ring_inner inner = {SUITE_NONE, NULL, NULL};
    char *was = NULL;
    size_t was_size = 0;
    buf text;
    buf_init(&text, k->alloc);
    sessile_status status = keyring_refresh(k, err);
    if (status)
        return status;
    pthread_mutex_lock(&k->ring->mutex);
    status = changed(k, c, &inner, err);
    if (!status)
        status = ring_text_put(&text, c->wrap ? c->wrap : &k->ring->wrap, &inner, err);
    if (!status) {
        was_size = k->ring->blob_size;
        was = mem_dup(k->alloc, k->ring->blob, was_size);
        if (!was)
            status = fail_nomem(err);
    }
    pthread_mutex_unlock(&k->ring->mutex);
    if (!status) {
        status = k->backend->blob_replace(k->self, RING_BLOB, was, was_size, text.data,
                                          text.size, err);
        if (!status)
            status = keyring_adopt(k, &inner, text.data, text.size, 1, err);
        else if (status != SESSILE_CONFLICT)
            look_again(k, &inner, &text);
    }
    mem_free(k->alloc, was, was_size + 1);
    ring_inner_free(&inner);
    buf_deinit(&text);
    return status;
}

static sessile_status make_change(keyring *k, const change *c, sessile_error *err)
{
    if (!k->sealed || !k->backend) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is plain: it has no keys that could be changed");
    }
    if (!k->backend->blob_replace)
        return fail(err, SESSILE_UNSUPPORTED, "this store cannot change its keyring");
    for (int tries = 1;; tries++) {
        sessile_status status = try_change(k, c, err);
        if (status != SESSILE_CONFLICT || tries == TRIES)
            return status;
        error_clear(err);
    }
}

sessile_status keyring_new_epoch(keyring *k, sessile_error *err)
{
    return make_change(k, &(change){.new_epoch = 1}, err);
}

sessile_status keyring_set_suite(keyring *k, const char *name, sessile_error *err)
{
    change c = {SUITE_NONE, 0, NULL, 0, 0, NULL};
    sessile_status status = suite_of(name, strlen(name), &c.suite, err);
    if (!status && keyring_sealed(k) && keyring_suite(k) == c.suite)
        return SESSILE_OK;
    return !status ? make_change(k, &c, err) : status;
}

sessile_status keyring_drop_epochs(keyring *k, const uint64_t *keep, size_t count,
                                   sessile_error *err)
{
    return make_change(k, &(change){.drop = 1, .keep = keep, .keep_count = count}, err);
}

sessile_status keyring_set_secret(keyring *k, sessile_key_source source, const char *key,
                                  const os_table *os, sessile_error *err)
{
    secret *s = NULL;
    wrapping made = {0, {0}, 0, 0, NULL};
    if (!k->sealed || !k->backend)
        return make_change(k, NULL, err);
    sessile_status status = secret_get(&s, source, key, 0, os, k->alloc, err);
    if (!status)
        status = wrapping_make(&made, s, err);
    if (!status)
        status = make_change(k, &(change){.wrap = &made}, err);
    if (!status) {
        wrapping was;
        pthread_mutex_lock(&k->ring->mutex);
        was = k->ring->wrap;
        k->ring->wrap = made;
        pthread_mutex_unlock(&k->ring->mutex);
        made = was;
        k->source = source;
    }
    wrapping_deinit(&made);
    secret_free(s);
    return status;
}
