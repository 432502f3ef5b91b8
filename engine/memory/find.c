/*
 * find.c: reads a memory: by key, by id, as a list, its history, by a question.
 *
 * Nothing is written by reading. Each call sees what others had written before it began,
 * and one state of the memory from its beginning to its end.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "memory/filter.h"

enum { HITS = 10 };

/* ------------------------------------------------------------------ one entry */

/* Ends a call: the rows go to the caller unless it failed. The mutex is given back. */
static sessile_status finish(memory_core *m, row_list *l, sessile_status status,
                             sessile_memory_row **rows, size_t *count, sessile_error *err)
{
    if (!status)
        status = rows_finish(l, m, rows, count, err);
    memory_unlock(m);
    rows_deinit(l);
    return memory_name_error(m, status, err);
}

/* How many letters have to be changed, added or left out, at most `most` + 1. */
static unsigned distance(const char *a, size_t a_size, const char *b, size_t b_size,
                         unsigned most)
{
    unsigned row[SESSILE_MEMORY_KEY_MAX + 1];

    if (b_size > SESSILE_MEMORY_KEY_MAX || a_size > b_size + most ||
        b_size > a_size + most)
        return most + 1;
    for (size_t k = 0; k <= b_size; k++)
        row[k] = (unsigned)k;
    for (size_t i = 0; i < a_size; i++) {
        unsigned before = row[0]++, least = row[0];
        for (size_t k = 0; k < b_size; k++) {
            unsigned change = before + (a[i] != b[k]);
            before = row[k + 1];
            if (row[k] + 1 < change)
                change = row[k] + 1;
            row[k + 1] = before + 1 < change ? before + 1 : change;
            least = row[k + 1] < least ? row[k + 1] : least;
        }
        if (least > most)
            return most + 1;
    }
    return row[b_size];
}

static sessile_status no_such_key(memory_core *m, sessile_slice key, int64_t now_ms,
                                  sessile_error *err)
{
    /* Pairs of letters that are compared, newest keys first: less than a millisecond. */
    enum { WORK = 500000 };
    const states *s = &m->fold->states;
    unsigned best = (unsigned)(key.size / 3 + 1) + 1;
    const memory_slot *like = NULL;
    char shown[NAME_SHOWN], nearest[NAME_SHOWN];

    for (size_t i = s->slot_count, work = 0; i > 0 && work < WORK; i--) {
        const memory_slot *slot = &s->slots[i - 1];
        unsigned d = distance(key.data, key.size, slot->key, slot->size, best - 1);
        work += 1 + key.size * slot->size;
        if (d < best && states_holder(s, (uint32_t)(i - 1), now_ms) != STATE_NONE) {
            like = slot;
            best = d;
            if (!d || best == 1)
                break;
        }
    }
    name_show(key, shown);
    if (!like || key.size > SESSILE_MEMORY_KEY_MAX)
        return fail(err, SESSILE_NOTFOUND, "there is no live entry with the key %s",
                    shown);
    name_show((sessile_slice){like->key, like->size}, nearest);
    return fail(err, SESSILE_NOTFOUND,
                "there is no live entry with the key %s; did you mean %s?", shown,
                nearest);
}

sessile_status memory_read(memory_core *m, sessile_slice key, sessile_memory_row **out,
                           sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    int64_t now_ms = memory_now_ms(m);
    const states *s;
    size_t count;
    uint32_t record;
    row_list l;

    if (status)
        return status;
    rows_init(&l, &m->store->alloc);
    s = &m->fold->states;
    record = states_holder(s, states_slot(s, key), now_ms);
    if (record == STATE_NONE)
        status = no_such_key(m, key, now_ms, err);
    else
        status = rows_add(&l, m, record, now_ms, err);
    return finish(m, &l, status, out, &count, err);
}

static sessile_status no_such_id(sessile_id id, sessile_error *err)
{
    return fail(err, SESSILE_NOTFOUND, "%08" PRIx32 " is no entry here", id);
}

sessile_status memory_get(memory_core *m, sessile_id id, sessile_memory_row **out,
                          sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    uint32_t record;
    size_t count;
    row_list l;

    if (status)
        return status;
    rows_init(&l, &m->store->alloc);
    record = states_find(&m->fold->states, id);
    status = record == STATE_NONE ? no_such_id(id, err)
                                  : rows_add(&l, m, record, memory_now_ms(m), err);
    return finish(m, &l, status, out, &count, err);
}

/* ------------------------------------------------------------------ several */

sessile_status memory_list(memory_core *m, const sessile_memory_list_options *options,
                           sessile_memory_row **rows, size_t *count, sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    int64_t now_ms = memory_now_ms(m);
    uint64_t passed = 0;
    memory_filter f;
    row_list l;

    if (status)
        return status;
    rows_init(&l, &m->store->alloc);
    status = memory_filter_init(&f, m, &options->filter, now_ms, err);
    for (size_t i = m->fold->states.count; !status && i > 0; i--) {
        if (options->limit && l.count == options->limit)
            break;
        if (!memory_filter_pass(&f, (uint32_t)(i - 1)) || passed++ < options->offset)
            continue;
        status = rows_add(&l, m, (uint32_t)(i - 1), now_ms, err);
    }
    if (!status && f.status) {
        status = f.status;
        if (err)
            *err = f.err;
    }
    memory_filter_deinit(&f);
    return finish(m, &l, status, rows, count, err);
}

sessile_status memory_history(memory_core *m, sessile_slice key, sessile_id id,
                              sessile_memory_row **rows, size_t *count,
                              sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    const states *s;
    uint32_t record, *list = NULL;
    size_t found = 0;
    row_list l;

    if (status)
        return status;
    rows_init(&l, &m->store->alloc);
    s = &m->fold->states;
    if (key.size) {
        uint32_t slot = states_slot(s, key);
        record = slot == STATE_NONE ? STATE_NONE : s->slots[slot].newest;
        if (record == STATE_NONE)
            status = no_such_key(m, key, memory_now_ms(m), err);
    } else {
        record = states_find(s, id);
        if (record == STATE_NONE)
            status = no_such_id(id, err);
    }
    if (!status && states_history(s, record, &list, &found))
        status = fail_nomem(err);
    for (size_t i = 0; !status && i < found; i++)
        status = rows_add(&l, m, list[i], memory_now_ms(m), err);
    mem_free(&m->store->alloc, list, found * sizeof *list);
    return finish(m, &l, status, rows, count, err);
}

/* ------------------------------------------------------------------ questions */

static sessile_status take_outside(asked_vector *v, const memory_fold *f,
                                   const sessile_memory_search_options *o, size_t memory,
                                   sessile_error *err)
{
    if (o->outside_count > SESSILE_MEMORY_ENTRIES_MAX)
        return fail(err, SESSILE_LIMIT, "at most %d outside scores [memory_entries]",
                    SESSILE_MEMORY_ENTRIES_MAX);
    for (size_t i = 0; i < o->outside_count; i++)
        if (!isfinite((float)o->outside[i].score))
            return fail(err, SESSILE_INVALID, "outside score %zu of %zu is not finite",
                        i + 1, o->outside_count);
    v->outside_size = (o->outside_count + 1) * sizeof *v->outside;
    v->outside = mem_alloc(f->alloc, v->outside_size);
    if (!v->outside)
        return fail_nomem(err);
    for (size_t i = 0; i < o->outside_count; i++) {
        const sessile_memory_outside *one = &o->outside[i];
        uint32_t record =
            one->memory == memory ? states_find(&f->states, one->id) : STATE_NONE;
        if (record != STATE_NONE && states_is_live(&f->states, record))
            v->outside[v->outside_count++] = (rank_outside){record, (float)one->score};
    }
    return SESSILE_OK;
}

sessile_status memory_take_vector(asked_vector *v, const memory_fold *f,
                                  const sessile_memory_search_options *o, size_t memory,
                                  sessile_error *err)
{
    vector_fault fault;

    v->model = NULL;
    v->scale = 0;
    v->outside = NULL;
    v->outside_count = v->outside_size = 0;
    if (o->outside)
        return take_outside(v, f, o, memory, err);
    if (!o->vector)
        return SESSILE_OK;
    if (o->dims < 1 || o->dims > SESSILE_MEMORY_DIMS_MAX)
        return fail(err, SESSILE_LIMIT, "a vector has 1 to %d dimensions [memory_dims]",
                    SESSILE_MEMORY_DIMS_MAX);
    memset(v->values, 0, sizeof v->values);
    fault = vector_quantise(o->vector, o->dims, v->values, &v->scale);
    if (fault)
        return fail(err, SESSILE_INVALID, "the question's vector %s",
                    fault == VECTOR_ZERO ? "has zeros only"
                                         : "has a number that is not finite");
    v->model =
        o->model.size ? memory_fold_model_of(f, o->model, o->dims) : memory_fold_model(f);
    if (v->model && v->model->vectors.dims != o->dims)
        return fail(err, SESSILE_INVALID,
                    "the question's vector has %zu dimensions, those of its model here "
                    "have %zu",
                    o->dims, v->model->vectors.dims);
    return SESSILE_OK;
}

void memory_drop_vector(asked_vector *v, const memory_fold *f)
{
    mem_free(f->alloc, v->outside, v->outside_size);
    v->outside = NULL;
}

void memory_ask_vector(rank_question *q, const asked_vector *v)
{
    q->vector = v->model ? v->values : NULL;
    q->scale = v->scale;
    q->outside = v->outside;
    q->outside_count = v->outside_count;
}

void memory_about(const memory_core *m, uint32_t record, int64_t *time_ms,
                  double *importance)
{
    const memory_record *r = &m->fold->states.records[record];
    *time_ms = r->time_ms;
    *importance = (double)r->importance / UINT16_MAX;
}

static void about(void *arg, uint32_t record, int64_t *time_ms, double *importance)
{
    const memory_filter *f = arg;
    memory_about(f->memory, record, time_ms, importance);
}

static sessile_status add_hits(row_list *l, memory_core *m, sessile_slice question,
                               const sessile_memory_search_options *o,
                               const rank_question *q, const rank_hit *hits, size_t count,
                               sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; !status && i < count; i++) {
        int by_vector = hits[i].cosine > VECTOR_NONE;
        if (hits[i].cover < o->min_cover && !(by_vector && o->weight > 0))
            continue;
        status = rows_add(l, m, hits[i].entry, q->now_ms, err);
        if (!status && o->explain)
            status = memory_explain(l, m->fold, question, q, &hits[i], err);
        if (status)
            break;
        l->at[l->count - 1].score = hits[i].score;
        l->at[l->count - 1].cover = hits[i].cover;
        l->at[l->count - 1].cosine = by_vector ? (double)hits[i].cosine : 0;
    }
    return status;
}

sessile_status memory_check_search(const sessile_memory_search_options *o,
                                   sessile_error *err)
{
    if (!(o->weight >= 0 && o->weight <= 1) || !(o->min_cover >= 0 && o->min_cover <= 1))
        return fail(err, SESSILE_INVALID,
                    "the weight of vectors, and the least cover, are from 0 to 1");
    if (!(o->recency >= 0 && o->recency <= 1000) ||
        !(o->importance >= 0 && o->importance <= 1000))
        return fail(err, SESSILE_INVALID, "recency and importance are from 0 to 1000");
    if (o->limit > SESSILE_MEMORY_ENTRIES_MAX)
        return fail(err, SESSILE_LIMIT, "at most %d hits [memory_entries]",
                    SESSILE_MEMORY_ENTRIES_MAX);
    return SESSILE_OK;
}

static sessile_status search_locked(memory_core *m, sessile_slice question,
                                    const sessile_memory_search_options *o, row_list *l,
                                    asked_vector *v, sessile_error *err)
{
    const allocator *a = &m->store->alloc;
    memory_fold *f = m->fold;
    size_t limit = o->limit ? o->limit : HITS;
    int64_t now_ms = memory_now_ms(m), found = 0;
    memory_filter filter;
    sessile_status status = memory_filter_init(&filter, m, &o->filter, now_ms, err);
    rank_factors factors = {0};
    rank_question q = {0};
    rank_hit *hits = NULL;
    term_list terms;

    limit = limit < f->states.count ? limit : f->states.count;
    v->outside = NULL;
    terms_init(&terms, a);
    if (!status)
        status = memory_take_vector(v, f, o, 0, err);
    if (!status && limit) {
        hits = mem_alloc(a, limit * sizeof *hits);
        if (!hits || terms_add(&terms, f->words, question.data ? question.data : "",
                               question.size, WORDS_QUESTION))
            status = fail_nomem(err);
    }
    if (!status && limit) {
        terms_distinct(&terms);
        q = (rank_question){.terms = terms.at,
                            .term_count = terms.count,
                            .weight = o->weight,
                            .recency = o->recency,
                            .importance = o->importance,
                            .now_ms = now_ms,
                            .limit = limit,
                            .pass = memory_filter_pass,
                            .about = about,
                            .arg = &filter,
                            .factors = &factors};
        memory_ask_vector(&q, v);
        found = rank(&f->postings, v->model ? &v->model->vectors : NULL, &q, hits);
        if (found < 0)
            status = fail_nomem(err);
    }
    if (!status && filter.status) {
        status = filter.status;
        if (err)
            *err = filter.err;
    }
    if (!status)
        status = add_hits(l, m, question, o, &q, hits, (size_t)found, err);
    mem_free(a, hits, limit * sizeof *hits);
    memory_drop_vector(v, f);
    terms_deinit(&terms);
    memory_filter_deinit(&filter);
    return status;
}

sessile_status memory_search(memory_core *m, sessile_slice question,
                             const sessile_memory_search_options *options,
                             sessile_memory_row **rows, size_t *count, sessile_error *err)
{
    sessile_status status = memory_check_search(options, err);
    asked_vector v;
    row_list l;

    if (!status)
        status = memory_lock_fresh(m, err);
    if (status)
        return status;
    rows_init(&l, &m->store->alloc);
    if (!memory_is_hidden(m))
        status = search_locked(m, question, options, &l, &v, err);
    return finish(m, &l, status, rows, count, err);
}

/* ------------------------------------------------------------------ stats */

sessile_status memory_stats(memory_core *m, sessile_memory_stats *out, sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    int64_t now_ms = memory_now_ms(m);
    const memory_model *model;
    const memory_fold *f;
    size_t size;

    if (status)
        return status;
    f = m->fold;
    out->entries = f->states.count;
    out->entries_most = m->store->limits.memory_entries;
    out->nearly_full = out->entries >= out->entries_most - out->entries_most / 5;
    for (uint32_t i = 0; i < f->states.count; i++)
        out->states[states_of(&f->states, i, now_ms)]++;
    for (uint32_t i = 0; i < f->states.slot_count; i++)
        out->keys += states_holder(&f->states, i, now_ms) != STATE_NONE;
    out->verdicts = f->verdicts;
    out->log_entries = log_count(m->log);
    out->log_bytes = log_bytes(m->log);
    out->memory_bytes = memory_fold_bytes(f);
    model = memory_fold_model(f);
    if (model) {
        out->vectors = model->vectors.count;
        out->dims = model->vectors.dims;
        size = utf8_floor(model->name, model->name_size, sizeof out->model - 1);
        memcpy(out->model, model->name, size);
    }
    out->consented = !m->user_size || f->consented;
    out->consent = f->consent ? f->consent : SESSILE_NO_ID;
    out->created_ms = f->header.created_ms;
    strncpy(out->language,
            f->header.language.size ? f->header.language.data : WORDS_LANGUAGE,
            sizeof out->language - 1);
    memory_unlock(m);
    return SESSILE_OK;
}
