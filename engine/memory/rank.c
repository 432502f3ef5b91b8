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

/* Numbers that are looked at together. */
enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t lane_mask __attribute__((vector_size(LANES * sizeof(int32_t))));

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

static int any(lane_mask mask)
{
    uint64_t parts[LANES / 2];
    memcpy(parts, &mask, sizeof parts);
    return (parts[0] | parts[1]) != 0;
}

/* The first entry from i on that is above `least`. Most are not, and several are looked
 * at together. */
static uint32_t next_above(const float *lex, uint32_t i, uint32_t count, float least)
{
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        lanes first, second;
        memcpy(&first, lex + i, sizeof first);
        memcpy(&second, lex + i + LANES, sizeof second);
        if (any((first > least) | (second > least)))
            break;
    }
    while (i < count && !(lex[i] > least))
        i++;
    return i;
}

/* As many entries as can be left out of a search by words and vector, from i on, because
 * their scores are not above `least`, which is above 0. */
static uint32_t next_by_both(const rank_ratings *r, const rank_factors *factors,
                             uint32_t i, uint32_t count, float least)
{
    const float words = (float)factors->by_words, vector = (float)factors->by_vector,
                mean = (float)factors->mean;

    for (; i + LANES <= count; i += LANES) {
        lanes lex, cosine, sum;
        memcpy(&lex, r->lex + i, sizeof lex);
        memcpy(&cosine, r->cosines + i, sizeof cosine);
        lex *= words;
        sum = lex + (cosine - mean) * vector;
        if (any((lex > least) | (sum > least)))
            break;
    }
    return i;
}

/* The next entry from i on that may have a score of `enough` or more, and above 0. */
static uint32_t next_worthy(const rank_ratings *r, const rank_factors *factors,
                            uint32_t i, uint32_t count, double enough)
{
    enough *= 1 - 1e-5; /* floats are not as exact */
    if (!r->cosines)
        return factors->by_words > 0
                   ? next_above(r->lex, i, count, (float)(enough / factors->by_words))
                   : count;
    return enough > 0 ? next_by_both(r, factors, i, count, (float)enough) : i;
}

/* What factors come from: of the live entries, or of all. */
static void sum_up_words(rank_ratings *r, const postings *p, int all)
{
    for (uint32_t i = 0;
         (i = next_above(r->lex, i, p->count, (float)r->max_lex)) < p->count; i++)
        if (all || postings_is_live(p, i))
            r->max_lex = r->lex[i];
}

static void count_cosine(rank_ratings *r, double cosine)
{
    r->sum += cosine;
    r->squares += cosine * cosine;
    r->max_cosine = r->with ? fmax(r->max_cosine, cosine) : cosine;
    r->min_cosine = r->with ? fmin(r->min_cosine, cosine) : cosine;
    r->with++;
}

/* v NULL: the cosines are not of vectors. */
static void sum_up_vectors(rank_ratings *r, const postings *p, const vectors *v, int all)
{
    for (uint32_t i = 0; r->cosines && !v && i < p->count; i++)
        if (r->cosines[i] > VECTOR_NONE && (all || postings_is_live(p, i)))
            count_cosine(r, (double)r->cosines[i]);
    for (size_t row = 0; r->cosines && v && row < v->count; row++) {
        uint32_t i = v->entries[row];
        if (i < p->count && (all || postings_is_live(p, i)))
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

    for (uint32_t i = 0;
         (i = next_worthy(r, factors, i, p->count, enough / most)) < p->count; i++) {
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

int rank_rate(rank_ratings *r, postings *p, const vectors *v, const rank_question *q,
              const postings_counts *of)
{
    int by_vector = v && q->vector && v->count && !q->outside;

    *r = (rank_ratings){0};
    if (!p->count)
        return 0;
    r->lex = postings_ratings(p, by_vector || q->outside ? 2 : 1);
    if (!r->lex)
        return -1;
    if (by_vector) {
        r->cosines = r->lex + p->count;
        vectors_score(v, q->vector, q->scale, r->cosines, p->count);
    }
    if (q->outside) {
        v = NULL;
        r->cosines = r->lex + p->count;
        for (uint32_t i = 0; i < p->count; i++)
            r->cosines[i] = VECTOR_NONE;
        for (size_t i = 0; i < q->outside_count; i++)
            if (q->outside[i].entry < p->count)
                r->cosines[q->outside[i].entry] =
                    fmaxf(r->cosines[q->outside[i].entry], q->outside[i].score);
    }
    r->whole = postings_score(p, q->terms, q->term_count, of, r->lex);
    r->max_cosine = VECTOR_NONE;
    sum_up_words(r, p, 0);
    sum_up_vectors(r, p, v, 0);
    return 0;
}

int64_t rank(postings *p, const vectors *v, const rank_question *q, rank_hit *hits)
{
    rank_ratings r;
    rank_factors factors;

    if (!p->count || !q->limit)
        return 0;
    if (rank_rate(&r, p, v, q, NULL))
        return -1;
    /* What ended is found, if it is asked for, when nothing that lives is alike. */
    if (r.max_lex <= 0)
        sum_up_words(&r, p, 1);
    if (!r.with)
        sum_up_vectors(&r, p, v, 1);
    factors = rank_weigh(&r, q);
    if (q->factors)
        *q->factors = factors;
    return (int64_t)rank_best(p, q, &r, &factors, hits);
}
