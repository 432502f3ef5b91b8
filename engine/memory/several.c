/*
 * several.c: a question to several memories at once, for recall.
 *
 * The scores of a search are relative to the best entry of its memory, and the weight of
 * a word depends on how many entries have it. Here both are taken over all memories, so
 * that an entry is not better for being in a small one. Memories whose languages cut the
 * question into different terms keep weights of their own.
 */
#include "memory/memory.h"

#include <math.h>
#include <string.h>

#include "memory/filter.h"

enum { SEVERAL = SESSILE_RECALL_MEMORIES_MAX };

/* A vector alone finds what is this many standard deviations above the mean. */
#define NEAR_DEVIATIONS 4

/* Scores that differ by this share are equal: by some seconds of recency. */
#define EQUAL 1e-6

int memory_trusts(sessile_memory_source source, sessile_memory_source least)
{
    static const int ranks[] = {2, 1, 0, 3}; /* user, agent, tool, system */
    return ranks[source] >= ranks[least];
}

int memory_may_recall(const memory_core *m, uint32_t record, int64_t now_ms,
                      sessile_memory_source least)
{
    const states *s = &m->fold->states;
    const memory_record *r = &s->records[record];
    return states_of(s, record, now_ms) == SESSILE_MEMORY_LIVE &&
           (memory_trusts((sessile_memory_source)r->source, least) ||
            (r->flags & RECORD_APPROVED));
}

/* One of the memories. */
typedef struct one {
    memory_core *m;
    const memory_several *of;
    size_t index;
    int64_t now_ms;
    term_list terms;
    asked_vector vector;
    rank_ratings ratings;
    rank_hit *hits;
    size_t count;
} one;

static int may_find(void *arg, uint32_t record)
{
    const one *o = arg;
    return memory_may_recall(o->m, record, o->now_ms, o->of->options->trust) &&
           !o->of->refuses(o->of->arg, o->index, o->m->fold->states.records[record].id);
}

static void about(void *arg, uint32_t record, int64_t *time_ms, double *importance)
{
    const one *o = arg;
    memory_about(o->m, record, time_ms, importance);
}

/* ------------------------------------------------------------------ at the start */

static int is_added(const row_list *l, size_t memory, sessile_id id)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->at[i].memory == memory && l->at[i].id == id)
            return 1;
    return 0;
}

static sessile_status add(row_list *l, const one *o, uint32_t record, sessile_error *err)
{
    sessile_status status = rows_add(l, o->m, record, o->now_ms, err);
    if (!status)
        l->at[l->count - 1].memory = o->index;
    return status;
}

/* What is pinned, then procedures; newest first. */
static sessile_status add_first(row_list *l, one *ones, size_t count, size_t limit,
                                sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (int pinned = 1; pinned >= 0; pinned--)
        for (size_t k = 0; k < count; k++) {
            const states *s = &ones[k].m->fold->states;
            for (size_t i = s->count; !status && i > 0 && l->count < limit; i--) {
                const memory_record *r = &s->records[i - 1];
                int is_pinned = (r->flags & RECORD_PINNED) != 0;
                if (pinned ? is_pinned
                           : !is_pinned && r->kind == SESSILE_MEMORY_PROCEDURE)
                    if (may_find(&ones[k], (uint32_t)(i - 1)))
                        status = add(l, &ones[k], (uint32_t)(i - 1), err);
            }
        }
    return status;
}

/* ------------------------------------------------------------------ the question */

static int same_terms(const one *ones, size_t count)
{
    for (size_t k = 1; k < count; k++)
        if (ones[k].terms.count != ones[0].terms.count ||
            (ones[0].terms.count &&
             memcmp(ones[k].terms.at, ones[0].terms.at,
                    ones[0].terms.count * sizeof *ones[0].terms.at) != 0))
            return 0;
    return 1;
}

static rank_question question_of(const one *o, size_t limit)
{
    const sessile_recall_options *options = o->of->options;
    rank_question q = {.terms = o->terms.at,
                       .term_count = o->terms.count,
                       .weight = options->weight,
                       .recency = options->recency,
                       .importance = options->importance,
                       .now_ms = o->now_ms,
                       .limit = limit,
                       .pass = may_find,
                       .about = about,
                       .arg = (void *)(uintptr_t)o};
    memory_ask_vector(&q, &o->vector);
    return q;
}

/* Rates all memories, and finds the best of each by the same measure. */
static int rate(one *ones, size_t count, size_t limit)
{
    const sessile_recall_options *options = ones[0].of->options;
    const allocator *a = &ones[0].m->store->alloc;
    size_t terms = ones[0].terms.count, size = (terms + 1) * sizeof(double);
    postings_counts sum = {{0}, {0}, {NULL}};
    rank_ratings all = {0};
    rank_factors factors;
    rank_question q = question_of(&ones[0], limit);
    int same = same_terms(ones, count), failed = 0;

    for (int f = 0; f < FIELDS; f++)
        failed |= !(sum.with[f] = mem_zalloc(a, size));
    for (size_t k = 0; same && !failed && k < count; k++)
        postings_count(&ones[k].m->fold->postings, ones[k].terms.at, terms, &sum);
    for (size_t k = 0; !failed && k < count; k++) {
        one *o = &ones[k];
        q = question_of(o, limit);
        failed = rank_rate(&o->ratings, &o->m->fold->postings,
                           o->vector.model ? &o->vector.model->vectors : NULL, &q,
                           same ? &sum : NULL);
        if (!failed)
            rank_join(&all, &o->ratings);
    }
    factors = rank_weigh(&all, &q);
    for (size_t k = 0; !failed && k < count; k++) {
        one *o = &ones[k];
        if (!o->m->fold->postings.count)
            continue;
        q = question_of(o, limit);
        q.min_cover = options->min_cover;
        q.min_cosine = options->min_cosine > 0 ? options->min_cosine
                       : q.outside             ? INFINITY
                                   : factors.mean + NEAR_DEVIATIONS * factors.deviation;
        o->hits = mem_alloc(a, limit * sizeof *o->hits);
        failed = !o->hits;
        if (!failed)
            o->count =
                rank_best(&o->m->fold->postings, &q, &o->ratings, &factors, o->hits);
    }
    for (int f = 0; f < FIELDS; f++)
        mem_free(a, sum.with[f], size);
    return failed ? -1 : 0;
}

/* Merges the hits of all, best first; of equal ones those of the first memory. */
static sessile_status add_hits(row_list *l, one *ones, size_t count, size_t limit,
                               sessile_error *err)
{
    size_t next[SEVERAL] = {0};
    sessile_status status = SESSILE_OK;

    while (!status && l->count < limit) {
        const rank_hit *best = NULL;
        size_t from = 0;
        for (size_t k = 0; k < count; k++)
            if (next[k] < ones[k].count &&
                (!best || ones[k].hits[next[k]].score > best->score * (1 + EQUAL))) {
                best = &ones[k].hits[next[k]];
                from = k;
            }
        if (!best)
            break;
        next[from]++;
        if (is_added(l, ones[from].index,
                     ones[from].m->fold->states.records[best->entry].id))
            continue;
        status = add(l, &ones[from], best->entry, err);
        if (status)
            break;
        l->at[l->count - 1].score = best->score;
        l->at[l->count - 1].cover = best->cover;
        l->at[l->count - 1].cosine =
            best->cosine > VECTOR_NONE ? (double)best->cosine : 0;
    }
    return status;
}

static sessile_status begin_one(one *o, const memory_several *of,
                                const sessile_memory_search_options *search,
                                sessile_error *err)
{
    o->of = of;
    o->now_ms = memory_now_ms(o->m);
    terms_init(&o->terms, &o->m->store->alloc);
    if (terms_add(&o->terms, o->m->fold->words,
                  of->question.data ? of->question.data : "", of->question.size,
                  WORDS_QUESTION))
        return fail_nomem(err);
    terms_distinct(&o->terms);
    return memory_take_vector(&o->vector, o->m->fold, search, o->index, err);
}

sessile_status memory_find_several(const memory_several *of, size_t limit, row_list *l,
                                   sessile_error *err)
{
    const sessile_recall_options *given = of->options;
    const sessile_memory_search_options search = {.vector = given->vector,
                                                  .dims = given->dims,
                                                  .model = given->model,
                                                  .outside = given->outside,
                                                  .outside_count = given->outside_count,
                                                  .weight = given->weight,
                                                  .recency = given->recency,
                                                  .importance = given->importance,
                                                  .min_cover = given->min_cover,
                                                  .limit = limit};
    const allocator *a = l->text.alloc;
    one *ones = mem_zalloc(a, SEVERAL * sizeof *ones);
    sessile_status status = memory_check_search(&search, err);
    size_t count = 0;

    if (!ones)
        return fail_nomem(err);
    for (size_t i = 0; !status && i < of->count; i++)
        if (of->at[i]) {
            ones[count].m = of->at[i];
            ones[count].index = i;
            status = begin_one(&ones[count++], of, &search, err);
        }
    if (!status && count && of->start)
        status = add_first(l, ones, count, limit, err);
    /* Hits that were added already must not take a place. */
    if (!status && count && rate(ones, count, 2 * limit))
        status = fail_nomem(err);
    if (!status && count)
        status = add_hits(l, ones, count, limit, err);
    for (size_t k = 0; k < count; k++) {
        terms_deinit(&ones[k].terms);
        memory_drop_vector(&ones[k].vector, ones[k].m->fold);
        mem_free(a, ones[k].hits, 2 * limit * sizeof *ones[k].hits);
    }
    mem_free(a, ones, SEVERAL * sizeof *ones);
    return status;
}
