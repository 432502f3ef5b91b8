/*
 * rank.h: the best entries for a question, by words, by vectors, or both.
 *
 *     score = (1 - w) * lex / max lex + w * max(0, cos - mean) / (max cos - mean)
 *             times (1 + recency * 2^(-age / 30 days) + importance * i)
 *
 * Mean and maxima are of live entries, or of all where no live one has any. w is
 * `weight`, or 0 without vectors, or 1 without words. Words do not gate vectors, nor
 * vectors words.
 *
 * The scores of an outside index stand in the place of cosines. It names only the n best,
 * so that the mean of all is not known: what is subtracted is lower than the least score
 * by an n-th of the distance between least and best. So the best gets all of w, and the
 * least 1 / (n + 1) of it, whatever scale the index has.
 */
#ifndef MEMORY_RANK_H
#define MEMORY_RANK_H

#include "memory/postings.h"
#include "memory/vectors.h"

#define RANK_WEIGHT 0.3

/* Distinct terms of a question: at most this many count. */
enum { RANK_TERMS_MAX = 1024 };

/* What a search multiplied with, for those who ask why. */
typedef struct rank_factors {
    double by_words, by_vector, mean; /* factors of lex and of cosine - mean */
    double deviation;                 /* of the cosines */
} rank_factors;

/* What an outside index says of an entry: the nearer, the larger; finite. */
typedef struct rank_outside {
    uint32_t entry;
    float score;
} rank_outside;

typedef struct rank_question {
    const uint64_t *terms; /* distinct */
    size_t term_count;
    const int8_t *vector; /* vectors.stride values, or NULL */
    float scale;
    /* What an outside index found, instead of a vector; NULL: there is none. */
    const rank_outside *outside;
    size_t outside_count;
    double weight; /* 0 to 1 */
    double recency, importance;
    int64_t now_ms;
    size_t limit;
    /* A hit meets this share of the words, or has this cosine. */
    double min_cover, min_cosine;
    /* Of an entry: may it be a hit. Called only for those that are good enough. NULL: the
     * live ones. */
    int (*pass)(void *arg, uint32_t entry);
    /* Its time and its importance from 0 to 1; needed when recency or importance is not
     * 0. */
    void (*about)(void *arg, uint32_t entry, int64_t *time_ms, double *importance);
    void *arg;
    rank_factors *factors; /* set, unless NULL */
} rank_question;

typedef struct rank_hit {
    uint32_t entry;
    float lex, cosine; /* cosine VECTOR_NONE: it has no vector, or none was asked for */
    double score, cover;
} rank_hit;

/* The numbers of one search in one memory, for all its entries, until the next search
 * there. */
typedef struct rank_ratings {
    float *lex, *cosines; /* cosines NULL: none asked for */
    double whole;         /* what an answer to all words would get */
    double max_lex, max_cosine, min_cosine, sum, squares; /* as above */
    size_t with;                                          /* entries with a vector */
} rank_ratings;
/* Rates all entries: 0, or -1: no memory. v NULL: no vectors. of: see postings_score().
 */
int rank_rate(rank_ratings *r, postings *p, const vectors *v, const rank_question *q,
              const postings_counts *of);
/* Adds to `sum`, zeros at first, what factors come from. */
void rank_join(rank_ratings *sum, const rank_ratings *r);
/* The factors for ratings, or for several that were joined. */
rank_factors rank_weigh(const rank_ratings *r, const rank_question *q);

/*
 * The best `limit` entries with a score above 0, best first; of equal ones the newer is
 * first. hits has room for limit. cover is the share of the question's words that the
 * entry met, from 0 to 1. Returns the number of hits.
 */
size_t rank_best(const postings *p, const rank_question *q, const rank_ratings *r,
                 const rank_factors *factors, rank_hit *hits);
/* All of this for one memory: the number of hits, or -1: no memory. */
int64_t rank(postings *p, const vectors *v, const rank_question *q, rank_hit *hits);

/* What recency and importance add to the factor 1 of an entry's score. */
void rank_boosts(const rank_question *q, uint32_t entry, double *recency,
                 double *importance);

#endif
