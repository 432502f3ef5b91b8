/*
 * rank.c: the best entries for a question.
 *
 * Every entry is rated, then the best are kept in a heap whose root is the worst of them.
 * What is not better than the root is not looked at any further, so that a filter is
 * asked about few entries, though it is judged before the best are taken.
 *
 * Scores of two rankers are added, not their ranks (RRF): ranks would give a weak
 * embedder as much to say as a good one.
 */
#include "memory/rank.h"

#include <math.h>
#include <string.h>

#define MONTH_MS 2592000000.0 /* 30 days */

/* 1 when a is better. */
static int better(const rank_hit *a, const rank_hit *b)
{
    return a->score > b->score || (a->score == b->score && a->entry > b->entry);
}

static void swap(rank_hit *a, rank_hit *b)
{
    rank_hit other = *a;
    *a = *b;
    *b = other;
}

/* The root is the worst; the hit at `at` may be better than those below it. */
static void sift_down(rank_hit *heap, size_t count, size_t at)
{
    for (;;) {
        size_t worst = at, left = 2 * at + 1;
        for (size_t child = left; child < left + 2 && child < count; child++)
            if (better(&heap[worst], &heap[child]))
                worst = child;
        if (worst == at)
            return;
        swap(&heap[at], &heap[worst]);
        at = worst;
    }
}

static void sift_up(rank_hit *heap, size_t at)
{
    while (at > 0 && better(&heap[(at - 1) / 2], &heap[at])) {
        swap(&heap[at], &heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

/* Best first. */
static void sort(rank_hit *heap, size_t count)
{
    while (count > 1) {
        swap(&heap[0], &heap[--count]);
        sift_down(heap, count, 0);
    }
}

static void count_cosine(rank_ratings *r, double cosine)
{
    r->sum += cosine;
    r->squares += cosine * cosine;
    r->max_cosine = r->with ? fmax(r->max_cosine, cosine) : cosine;
    r->min_cosine = r->with ? fmin(r->min_cosine, cosine) : cosine;
    r->with++;
}

/* What factors come from, of the live entries. v NULL: the cosines are not of vectors. */
static void sum_up(rank_ratings *r, const postings *p, const vectors *v)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (r->lex[i] > r->max_lex && postings_is_live(p, i))
            r->max_lex = r->lex[i];
        if (r->cosines && !v && r->cosines[i] > VECTOR_NONE && postings_is_live(p, i))
            count_cosine(r, (double)r->cosines[i]);
    }
    for (size_t row = 0; r->cosines && v && row < v->count; row++) {
        uint32_t i = v->entries[row];
        if (i < p->count && postings_is_live(p, i))
            count_cosine(r, (double)r->cosines[i]);
    }
}

void rank_join(rank_ratings *sum, const rank_ratings *r)
{
    if (r->with) {
        sum->max_cosine =
            sum->with ? fmax(sum->max_cosine, r->max_cosine) : r->max_cosine;
        sum->min_cosine =
            sum->with ? fmin(sum->min_cosine, r->min_cosine) : r->min_cosine;
    }
    sum->max_lex = fmax(sum->max_lex, r->max_lex);
    sum->sum += r->sum;
    sum->squares += r->squares;
    sum->with += r->with;
}

rank_factors rank_weigh(const rank_ratings *r, const rank_question *q)
{
    double with = (double)r->with, weight = !r->with ? 0 : !q->term_count ? 1 : q->weight;
    rank_factors f = {.mean = r->with ? r->sum / with : 0};

    f.deviation = r->with ? sqrt(fmax(0, r->squares / with - f.mean * f.mean)) : 0;
    if (q->outside && r->with) {
        double distance = r->max_cosine - r->min_cosine;
        f.mean = r->min_cosine - (distance > 0 ? distance / with : 1);
    }
    f.by_words = r->max_lex > 0 ? (1 - weight) / r->max_lex : 0;
    f.by_vector =
        r->with && r->max_cosine > f.mean ? weight / (r->max_cosine - f.mean) : 0;
    return f;
}

void rank_boosts(const rank_question *q, uint32_t entry, double *recency,
                 double *importance)
{
    int64_t time_ms = 0;
    double age;
    *importance = 0;
    q->about(q->arg, entry, &time_ms, importance);
    age = (double)(q->now_ms - time_ms) / MONTH_MS;
    *recency = q->recency * exp2(age > 0 ? -age : 0);
    *importance *= q->importance;
}

static double boost(const rank_question *q, uint32_t entry)
{
    double recency, importance;
    rank_boosts(q, entry, &recency, &importance);
    return 1 + recency + importance;
}

size_t rank_best(const postings *p, const rank_question *q, const rank_ratings *r,
                 const rank_factors *factors, rank_hit *hits)
{
    int boosted = q->recency != 0 || q->importance != 0;
    double most = 1 + q->recency + q->importance; /* the largest boost */
    double enough = 0;                            /* the worst of a full heap */
    size_t count = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        rank_hit hit = {.entry = i, .lex = r->lex[i], .cosine = VECTOR_NONE};
        hit.score = factors->by_words * (double)hit.lex;
        if (r->cosines && (hit.cosine = r->cosines[i]) > factors->mean)
            hit.score += factors->by_vector * ((double)hit.cosine - factors->mean);
        if (hit.score <= 0 || hit.score * most < enough)
            continue;
        if (boosted)
            hit.score *= boost(q, i);
        if (count == q->limit && !better(&hit, &hits[0]))
            continue;
        hit.cover = r->whole > 0 ? fmin(1, (double)hit.lex / r->whole) : 0;
        if (hit.cover < q->min_cover &&
            (hit.cosine <= VECTOR_NONE || (double)hit.cosine < q->min_cosine))
            continue;
        if (q->pass ? !q->pass(q->arg, i) : !postings_is_live(p, i))
            continue;
        if (count < q->limit) {
            hits[count] = hit;
            sift_up(hits, count++);
        } else {
            hits[0] = hit;
            sift_down(hits, count, 0);
        }
        enough = count == q->limit ? hits[0].score : 0;
    }
    sort(hits, count);
    return count;
}

void rank_ratings_deinit(rank_ratings *r)
{
    mem_free(r->alloc, r->lex, r->size);
    mem_free(r->alloc, r->cosines, r->size);
    r->lex = NULL;
    r->cosines = NULL;
}

int rank_rate(rank_ratings *r, postings *p, const vectors *v, const rank_question *q,
              const postings_counts *of)
{
    *r = (rank_ratings){.alloc = p->alloc, .size = p->count * sizeof(float)};
    if (!p->count)
        return 0;
    r->lex = mem_alloc(p->alloc, r->size);
    if (!r->lex)
        return -1;
    if (v && q->vector && v->count && !q->outside) {
        r->cosines = mem_alloc(p->alloc, r->size);
        if (!r->cosines)
            return -1;
        vectors_score(v, q->vector, q->scale, r->cosines, p->count);
    }
    if (q->outside) {
        v = NULL;
        r->cosines = mem_alloc(p->alloc, r->size);
        if (!r->cosines)
            return -1;
        for (uint32_t i = 0; i < p->count; i++)
            r->cosines[i] = VECTOR_NONE;
        for (size_t i = 0; i < q->outside_count; i++)
            if (q->outside[i].entry < p->count)
                r->cosines[q->outside[i].entry] =
                    fmaxf(r->cosines[q->outside[i].entry], q->outside[i].score);
    }
    r->whole = postings_score(p, q->terms, q->term_count, of, r->lex);
    sum_up(r, p, v);
    return 0;
}

int64_t rank(postings *p, const vectors *v, const rank_question *q, rank_hit *hits)
{
    rank_ratings r;
    rank_factors factors;
    int64_t count = -1;

    if (!p->count || !q->limit)
        return 0;
    if (!rank_rate(&r, p, v, q, NULL)) {
        factors = rank_weigh(&r, q);
        if (q->factors)
            *q->factors = factors;
        count = (int64_t)rank_best(p, q, &r, &factors, hits);
    }
    rank_ratings_deinit(&r);
    return count;
}
