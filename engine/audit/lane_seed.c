/*
 * lane_seed.c: the seeds of lanes, which are blobs of the store.
 *
 * Owns the rule that a seed only goes forward: what replaces it is of a later epoch, and
 * is compared with what was read. It may be behind the log, when a sealer was killed
 * between its seal and the seed: whoever comes next evolves it as often as the log says.
 * It must never be ahead: then the log was cut.
 */
#include "audit/lane.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define PREFIX "audit-"

/* So often is a seed evolved at most to reach its log. */
enum { BEHIND_MOST = 1 << 16, TRIES = 100 };

void lane_seed_name(uint32_t lane, char out[LANE_NAME])
{
    snprintf(out, LANE_NAME, PREFIX "%02" PRIu32, lane % LANE_MOST);
}

/* The blob and what is in it. */
static sessile_status get(store_core *st, const char *name, uint64_t *epoch,
                          unsigned char *seed, char **blob, size_t *size,
                          sessile_error *err)
{
    sessile_status status =
        st->backend.table->blob_get(st->backend.self, name, blob, size, err);

    if (status) {
        *blob = NULL;
        return status;
    }
    status = seed_open(st->keys, name, *blob, *size, epoch, seed, err);
    if (status) {
        host_free(*blob);
        *blob = NULL;
    }
    return status;
}

sessile_status lane_seed_read(store_core *st, uint32_t number, uint64_t *epoch,
                              unsigned char *seed, char **blob, size_t *size,
                              sessile_error *err)
{
    char name[LANE_NAME];

    lane_seed_name(number, name);
    return get(st, name, epoch, seed, blob, size, err);
}

sessile_status lane_seed_reach(const lane *l, uint64_t epoch, unsigned char *seed,
                               sessile_error *err)
{
    unsigned char key[SIGN_PUBLIC];

    if (epoch <= l->chain.epoch && l->chain.epoch - epoch <= BEHIND_MOST) {
        for (; epoch < l->chain.epoch; epoch++)
            sign_evolve(seed);
        sign_public(seed, key);
        if (!memcmp(key, l->chain.key, sizeof key))
            return SESSILE_OK;
    }
    return fail(err, SESSILE_DAMAGED,
                "lane %" PRIu32 " of the audit ends before its seed: seals were cut off, "
                "or it was replaced; verify the audit",
                l->head.lane);
}

sessile_status lane_seed_get(const lane *l, unsigned char *seed, char **blob,
                             size_t *size, sessile_error *err)
{
    uint64_t epoch;
    sessile_status status =
        lane_seed_read(l->store, l->head.lane, &epoch, seed, blob, size, err);

    if (status)
        return status;
    status = lane_seed_reach(l, epoch, seed, err);
    if (status) {
        host_free(*blob);
        *blob = NULL;
    }
    return status;
}

sessile_status lane_seed_advance(lane *l, uint64_t epoch, const unsigned char *seed,
                                 char *blob, size_t size, sessile_error *err)
{
    const sessile_backend *table = l->store->backend.table;
    unsigned char *theirs = seed_new();
    char name[LANE_NAME];
    sessile_status status = theirs ? SESSILE_CONFLICT : fail_nomem(err);
    uint64_t there = 0;
    buf next;

    buf_init(&next, &l->store->alloc);
    lane_seed_name(l->head.lane, name);
    for (int i = 0; status == SESSILE_CONFLICT && i < TRIES; i++) {
        error_clear(err);
        buf_clear(&next);
        status = seed_put(l->store->keys, name, epoch, seed, &next, err);
        if (!status)
            status = table->blob_replace(l->store->backend.self, name, blob, size,
                                         next.data, next.size, err);
        if (status != SESSILE_CONFLICT)
            break;
        /* Another sealer was here, or the keys were changed: if it is further, it is
         * as good. */
        host_free(blob);
        error_clear(err);
        status = get(l->store, name, &there, theirs, &blob, &size, err);
        if (status || there >= epoch)
            break;
        status = SESSILE_CONFLICT;
    }
    buf_deinit(&next);
    seed_free(theirs);
    host_free(blob);
    return status;
}

sessile_status lane_seed_make(store_core *st, uint32_t number,
                              unsigned char key[SIGN_PUBLIC], sessile_error *err)
{
    unsigned char *seed = seed_new();
    char name[LANE_NAME];
    sessile_status status;
    buf blob;

    if (!seed)
        return fail_nomem(err);
    buf_init(&blob, &st->alloc);
    lane_seed_name(number, name);
    sign_draw(seed);
    sign_public(seed, key);
    status = seed_put(st->keys, name, 0, seed, &blob, err);
    if (!status)
        status = st->backend.table->blob_put_new(st->backend.self, name, blob.data,
                                                 blob.size, err);
    if (status == SESSILE_EXISTS) { /* perhaps of one who was killed before the log */
        uint64_t epoch = 1;
        char *was;
        size_t size;
        error_clear(err);
        status = get(st, name, &epoch, seed, &was, &size, err);
        if (!status)
            host_free(was);
        sign_public(seed, key);
        if (!status && epoch != 0)
            status = fail(err, SESSILE_EXISTS, "the seed %s is of another lane", name);
    }
    seed_free(seed);
    buf_deinit(&blob);
    return status;
}

/* Seals a blob again under the newest key. */
static sessile_status reseal_one(store_core *st, const char *name, unsigned char *seed,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_CONFLICT;
    uint64_t epoch;
    size_t size;
    char *blob;
    buf next;

    buf_init(&next, &st->alloc);
    for (int i = 0; status == SESSILE_CONFLICT && i < TRIES; i++) {
        error_clear(err);
        buf_clear(&next);
        status = get(st, name, &epoch, seed, &blob, &size, err);
        if (status)
            break;
        if (keyring_blob_is_old(st->keys, blob, size)) {
            status = seed_put(st->keys, name, epoch, seed, &next, err);
            if (!status)
                status = st->backend.table->blob_replace(st->backend.self, name, blob,
                                                         size, next.data, next.size, err);
        }
        host_free(blob);
    }
    buf_deinit(&next);
    if (status == SESSILE_NOTFOUND || status == SESSILE_SEALED) {
        error_clear(err); /* there is nothing to seal again */
        status = SESSILE_OK;
    }
    return status;
}

sessile_status lane_seeds_reseal(store_core *st, sessile_error *err)
{
    unsigned char *seed;
    blob_names all;
    sessile_status status = blob_names_find(&all, st->backend.table, st->backend.self,
                                            PREFIX, &st->alloc, err);
    const char *name = all.text.data;

    seed = seed_new();
    if (!status && !seed)
        status = fail_nomem(err);
    for (size_t i = 0; !status && i < all.count; i++, name += strlen(name) + 1)
        status = reseal_one(st, name, seed, err);
    seed_free(seed);
    buf_deinit(&all.text);
    return status;
}
