/*
 * postings_rate.c: what entries score for the words of a question: BM25.
 *
 * The number of live entries that have a term is counted along its list when somebody
 * asks for the term and an entry has begun or ended to live since the last count.
 */
#include <math.h>
#include <string.h>

#include "memory/posting_lists.h"

#define K    0.9
#define B    0.4
#define HALF 0.5 /* the weight of FIELD_ALSO */

/* Live entries that have the term. */
static uint32_t count_with(postings *p, posting_list *list)
{
    if (list && list->counted != p->changes) {
        posting_walk k = posting_list_begin(list);
        list->live = 0;
        while (posting_list_next(&k))
            list->live += (uint32_t)postings_is_live(p, k.entry);
        list->counted = p->changes;
    }
    return list ? list->live : 0;
}

static double weight_of(double all, double with)
{
    return log1p((all - with + 0.5) / (with + 0.5));
}

/* 0.9 (0.6 + 0.4 len / avg) as base + slope * len. */
static void length_norm(double length, double filled, float *base, float *slope)
{
    double mean = filled > 0 ? length / filled : 1;
    *base = (float)(K * (1 - B));
    *slope = (float)(K * B / mean);
}

void postings_count(postings *p, const uint64_t *terms, size_t count,
                    postings_counts *sum)
{
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        sum->filled[f] += field->live_filled;
        sum->length[f] += (double)field->live_length;
        for (size_t i = 0; i < count; i++)
            sum->with[f][i] += count_with(p, posting_list_find(field, terms[i]));
    }
}

double postings_score(postings *p, const uint64_t *terms, size_t count,
                      const postings_counts *of, float *scores)
{
    double whole = 0;

    memset(scores, 0, p->count * sizeof *scores);
    for (int f = 0; f < FIELDS; f++) {
        posting_field *field = &p->fields[f];
        const uint16_t *lengths = field->lengths;
        double filled = of ? of->filled[f] : field->live_filled;
        float base, slope;
        length_norm(of ? of->length[f] : (double)field->live_length, filled, &base,
                    &slope);
        for (size_t i = 0; i < count; i++) {
            posting_list *list = posting_list_find(field, terms[i]);
            double with = of ? of->with[f][i] : count_with(p, list);
            double w = (K + 1) * weight_of(filled, with);
            float weight = (float)(f == FIELD_MAIN ? w : w * HALF);
            /* A word that no entry has counts as one that a single entry has: in a small
             * memory it would otherwise outweigh all others of the question. */
            if (f == FIELD_MAIN)
                whole += with > 0 ? w : (K + 1) * weight_of(fmax(filled, 1), 1);
            if (!list)
                continue;
            for (posting_walk k = posting_list_begin(list); posting_list_next(&k);) {
                float times = (float)k.times;
                scores[k.entry] +=
                    weight * times / (times + base + slope * (float)lengths[k.entry]);
            }
        }
    }
    return whole;
}

float *postings_ratings(postings *p, size_t each)
{
    size_t need = p->count * each, room = need + need / 8;
    if (need <= p->rating_capacity)
        return p->ratings;
    mem_free(p->alloc, p->ratings, p->rating_capacity * sizeof *p->ratings);
    p->ratings = mem_alloc(p->alloc, room * sizeof *p->ratings);
    p->rating_capacity = p->ratings ? room : 0;
    return p->ratings;
}

double postings_explain(postings *p, int field, uint64_t term, uint32_t entry)
{
    posting_field *in = &p->fields[field];
    posting_list *list = posting_list_find(in, term);
    double weight = (field == FIELD_MAIN ? 1 : HALF) * (K + 1);
    float base, slope;

    if (!list)
        return 0;
    length_norm((double)in->live_length, in->live_filled, &base, &slope);
    for (posting_walk k = posting_list_begin(list);
         posting_list_next(&k) && k.entry <= entry;)
        if (k.entry == entry)
            return weight * weight_of(in->live_filled, count_with(p, list)) * k.times /
                   (k.times + base + slope * (float)in->lengths[entry]);
    return 0;
}
