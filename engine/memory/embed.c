/*
 * embed.c: the vectors of entries: written, missing, counted.
 *
 * Vectors are the host's: nobody is asked for one here. They are normalised and made
 * bytes before a lock is taken. What was erased meanwhile gets none.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* How many vectors one entry of the log has at most; bytes of the name of a model. */
enum { BATCH = 256, MODEL_NAME_MAX = 200 };

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

/* Adds the vectors from number *at on, up to BATCH of them, as one entry. */
static void add_vectors(memory_core *m, batch *b, const embedding *w, size_t *at)
{
    const states *s = &m->fold->states;
    size_t one = sizeof(float) + w->dims, first = *at, end, written = 0;
    buf data, bytes;

    end = w->count - first < BATCH ? w->count : first + BATCH;
    *at = end;
    buf_init(&data, b->alloc);
    buf_init(&bytes, b->alloc);
    buf_puts(&data, "{\"model\":");
    json_put_string(&data, w->model.data, w->model.size);
    buf_printf(&data, ",\"dims\":%zu,\"of\":[", w->dims);
    for (size_t i = first; i < end; i++) {
        if (s->records[states_find(s, w->ids[i])].flags & RECORD_ERASED)
            continue;
        buf_puts(&data, written++ ? "," : "");
        memory_put_id(&data, w->ids[i]);
        buf_put(&bytes, w->bytes + i * one, one);
    }
    buf_puts(&data, "],\"v\":\"");
    base64_put(&data, bytes.data, bytes.size);
    buf_puts(&data, "\"}");
    data.failed |= bytes.failed;
    if (written || data.failed)
        memory_add(m, b, ENTRY_VECTOR, SOURCE_HOST, (sessile_slice){NULL, 0}, &data);
    buf_wipe(&data);
    buf_wipe(&bytes);
}

static sessile_status build_vectors(void *arg, memory_core *m, batch *b,
                                    sessile_error *err)
{
    const embedding *w = arg;
    sessile_status status = memory_check_consent(m, err);

    for (size_t i = 0; !status && i < w->count; i++)
        if (states_find(&m->fold->states, w->ids[i]) == STATE_NONE)
            status =
                fail(err, SESSILE_NOTFOUND, "%08" PRIx32 " is no entry here", w->ids[i]);
    for (size_t at = 0; !status && at < w->count;)
        add_vectors(m, b, w, &at);
    return status;
}

sessile_status memory_embed(memory_core *m, sessile_slice model, size_t dims,
                            const sessile_id *ids, const float *vectors, size_t count,
                            sessile_error *err)
{
    const allocator *a = &m->store->alloc;
    size_t one = sizeof(float) + dims;
    sessile_status status =
        memory_check_text(model, "name of the model", MODEL_NAME_MAX, NULL, err);
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

/* ------------------------------------------------------------------ missing */

sessile_status memory_unembedded(memory_core *m, sessile_slice model, size_t dims,
                                 size_t *from, size_t most, sessile_memory_row **rows,
                                 size_t *count, size_t *left, sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    int64_t now_ms = memory_now_ms(m);
    const memory_model *has;
    const states *s;
    row_list l;

    *left = 0;
    if (status)
        return status;
    rows_init(&l, &m->store->alloc);
    s = &m->fold->states;
    has = memory_fold_model_of(m->fold, model, dims);
    status = memory_check_consent(m, err);
    for (size_t i = *from; !status && i < s->count; i++) {
        float scale;
        if (states_of(s, (uint32_t)i, now_ms) != SESSILE_MEMORY_LIVE ||
            (has && vectors_get(&has->vectors, (uint32_t)i, &scale)))
            continue;
        if (l.count == most) {
            ++*left;
            continue;
        }
        status = rows_add(&l, m, (uint32_t)i, now_ms, err);
        *from = i + 1;
    }
    if (!status)
        status = rows_finish(&l, m, rows, count, err);
    memory_unlock(m);
    rows_deinit(&l);
    return memory_name_error(m, status, err);
}

/* ------------------------------------------------------------------ models */

/* Counts the live entries with a vector of a model, and those without. */
static void count_live(const memory_core *m, const memory_model *of,
                       sessile_memory_model *out)
{
    const states *s = &m->fold->states;
    int64_t now_ms = memory_now_ms(m);
    float scale;

    for (uint32_t i = 0; i < s->count; i++)
        if (states_of(s, i, now_ms) == SESSILE_MEMORY_LIVE) {
            if (vectors_get(&of->vectors, i, &scale))
                out->live++;
            else
                out->missing++;
        }
}

sessile_status memory_models(memory_core *m, sessile_memory_model **out, size_t *count,
                             sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    const memory_model *used;
    const memory_fold *f;
    size_t size = 0;
    char *text;

    if (status)
        return status;
    f = m->fold;
    used = memory_fold_model(f);
    for (size_t i = 0; i < f->model_count; i++)
        size += sizeof **out + f->models[i].name_size + 1;
    if (f->model_count && !(*out = host_alloc(&m->store->alloc, size)))
        status = fail_nomem(err);
    text = status ? NULL : (char *)(*out + f->model_count);
    for (size_t i = 0; !status && i < f->model_count; i++) {
        const memory_model *one = &f->models[i];
        (*out)[i] = (sessile_memory_model){.name = {text, one->name_size},
                                           .dims = one->vectors.dims,
                                           .vectors = one->vectors.count,
                                           .used = one == used};
        count_live(m, one, &(*out)[i]);
        memcpy(text, one->name, one->name_size + 1);
        text += one->name_size + 1;
        *count = i + 1;
    }
    memory_unlock(m);
    return memory_name_error(m, status, err);
}
