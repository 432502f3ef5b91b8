/*
 * embed.c: writes the vectors of entries.
 *
 * Vectors are the host's: nobody is asked for one here. They are normalised and made
 * bytes before a lock is taken.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* Vectors that one entry of the log has. */
enum { BATCH = 256 };

typedef struct embedding {
    sessile_slice model;
    size_t dims, count;
    const sessile_id *ids;
    const unsigned char *bytes; /* for each: a float32, little-endian, and its values */
} embedding;

static void put_scale(unsigned char *out, float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(bits >> 8 * i);
}

static sessile_status build_vectors(void *arg, sessile_memory *m, batch *b,
                                    sessile_error *err)
{
    const embedding *w = arg;
    size_t one = sizeof(float) + w->dims;
    sessile_status status = memory_check_consent(m, err);

    for (size_t i = 0; !status && i < w->count; i++)
        if (states_find(&m->fold->states, w->ids[i]) == STATE_NONE)
            status =
                fail(err, SESSILE_NOTFOUND, "%08" PRIx32 " is no entry here", w->ids[i]);
    for (size_t at = 0; !status && at < w->count; at += BATCH) {
        size_t count = w->count - at < BATCH ? w->count - at : BATCH;
        buf data;
        buf_init(&data, b->alloc);
        buf_puts(&data, "{\"model\":");
        json_put_string(&data, w->model.data, w->model.size);
        buf_printf(&data, ",\"dims\":%zu,\"of\":[", w->dims);
        for (size_t i = 0; i < count; i++) {
            buf_puts(&data, i ? "," : "");
            memory_put_id(&data, w->ids[at + i]);
        }
        buf_puts(&data, "],\"v\":\"");
        base64_put(&data, w->bytes + at * one, count * one);
        buf_puts(&data, "\"}");
        memory_add(m, b, ENTRY_VECTOR, SOURCE_HOST, (sessile_slice){NULL, 0}, &data);
        buf_wipe(&data);
    }
    return status;
}

sessile_status memory_embed(sessile_memory *m, sessile_slice model, size_t dims,
                            const sessile_id *ids, const float *vectors, size_t count,
                            sessile_error *err)
{
    const allocator *a = &m->store->alloc;
    size_t one = sizeof(float) + dims;
    sessile_status status =
        memory_check_text(model, "name of the model", 200, "memory_key", err);
    embedding w = {model, dims, count, ids, NULL};
    unsigned char *bytes;

    if (!status && !model.size)
        status = fail(err, SESSILE_INVALID, "vectors need the name of their model");
    if (!status && (dims < 1 || dims > m->store->limits.memory_dims))
        status = fail(err, SESSILE_LIMIT,
                      "a vector has 1 to %" PRIu32 " dimensions [memory_dims], not %zu",
                      m->store->limits.memory_dims, dims);
    if (!status && count > SESSILE_MEMORY_ENTRIES_MAX)
        status = fail(err, SESSILE_LIMIT, "at most %d vectors [memory_entries] at once",
                      SESSILE_MEMORY_ENTRIES_MAX);
    if (status || !count)
        return status;
    bytes = mem_alloc(a, count * one);
    if (!bytes)
        return fail_nomem(err);
    for (size_t i = 0; !status && i < count; i++) {
        float scale;
        vector_fault fault = vector_quantise(
            vectors + i * dims, dims, (int8_t *)bytes + i * one + sizeof scale, &scale);
        put_scale(bytes + i * one, scale);
        if (fault)
            status = fail(err, SESSILE_INVALID,
                          "vector %zu of %zu %s: nothing was written", i + 1, count,
                          fault == VECTOR_ZERO ? "has zeros only"
                                               : "has a number that is not finite");
    }
    w.bytes = bytes;
    if (!status)
        status = memory_commit(m, build_vectors, &w, err);
    wipe(bytes, count * one);
    mem_free(a, bytes, count * one);
    return status;
}
