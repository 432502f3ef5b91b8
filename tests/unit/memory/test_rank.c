/*
 * test_rank.c: that the best entries are those which the formulas say.
 *
 * The reference keeps the terms of every entry as they were given and computes each
 * number again, in double, for each question.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/rank.h"
#include "support/logs.h"

#include <cmocka.h>

enum { ENTRIES = 300, TERMS = 40, LONGEST = 60, DIMS = 24, STRIDE = 32 };

typedef struct reference {
    uint64_t terms[ENTRIES][FIELDS][LONGEST];
    size_t sizes[ENTRIES][FIELDS];
    int live[ENTRIES];
    int8_t vectors[ENTRIES][STRIDE];
    float scales[ENTRIES];
    int has_vector[ENTRIES];
    int64_t time_ms[ENTRIES];
    double importance[ENTRIES];
    uint32_t count;
} reference;

static unsigned seed;

static unsigned below(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

/* Terms are not equally common. */
static uint64_t random_term(void)
{
    unsigned n = below(TERMS);
    return UINT64_C(0x9e3779b97f4a7c15) * (below(n + 1) + 1);
}

/* ------------------------------------------------------------------ the reference */

static unsigned times_in(const reference *r, uint32_t i, int f, uint64_t term)
{
    unsigned times = 0;
    for (size_t k = 0; k < r->sizes[i][f]; k++)
        times += r->terms[i][f][k] == term;
    return times;
}

/* known: of a word that no entry has, as if one had it. */
static double weigh_term(const reference *r, int f, uint64_t term, int known)
{
    double all = 0, with = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->live[i]) {
            all += r->sizes[i][f] > 0;
            with += times_in(r, i, f, term) > 0;
        }
    if (known && with == 0) {
        with = 1;
        all = fmax(all, 1);
    }
    return log(1 + (all - with + 0.5) / (with + 0.5));
}

static double term_weight(const reference *r, int f, uint64_t term)
{
    return weigh_term(r, f, term, 0);
}

static double mean_length(const reference *r, int f)
{
    double all = 0, sum = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (r->live[i]) {
            all += r->sizes[i][f] > 0;
            sum += (double)r->sizes[i][f];
        }
    return all > 0 ? sum / all : 1;
}

static double lex_of(const reference *r, uint32_t i, const uint64_t *terms, size_t count)
{
    double sum = 0;
    for (int f = 0; f < FIELDS; f++)
        for (size_t k = 0; k < count; k++) {
            double tf = times_in(r, i, f, terms[k]);
            double length = (double)r->sizes[i][f] / mean_length(r, f);
            if (tf > 0)
                sum += (f ? 0.5 : 1) * term_weight(r, f, terms[k]) * 1.9 * tf /
                       (tf + 0.9 * (0.6 + 0.4 * length));
        }
    return sum;
}

static double cosine_of(const reference *r, uint32_t i, const int8_t *q, float scale)
{
    double sum = 0;
    for (size_t k = 0; k < DIMS; k++)
        sum += r->vectors[i][k] * q[k];
    return sum * (double)r->scales[i] * (double)scale;
}

typedef struct expected {
    double score[ENTRIES], lex[ENTRIES], cover[ENTRIES];
} expected;

/* Whether a live entry has a word of the question, and whether one has a vector. */
static int any_live(const reference *r, const rank_question *q, int vectors)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->live[i] &&
            (vectors ? r->has_vector[i] : lex_of(r, i, q->terms, q->term_count) > 0))
            return 1;
    return 0;
}

static void rate(const reference *r, const rank_question *q, int with_vectors,
                 expected *out)
{
    int live_words = any_live(r, q, 0), live_vectors = any_live(r, q, 1);
    double whole = 0, max_lex = 0, max_cosine = -9, sum = 0, with = 0, mean, w;

    for (size_t k = 0; k < q->term_count; k++)
        whole += 1.9 * weigh_term(r, FIELD_MAIN, q->terms[k], 1);
    for (uint32_t i = 0; i < r->count; i++) {
        out->lex[i] = lex_of(r, i, q->terms, q->term_count);
        if ((r->live[i] || !live_words) && out->lex[i] > max_lex)
            max_lex = out->lex[i];
        if (with_vectors && q->vector && (r->live[i] || !live_vectors) &&
            r->has_vector[i]) {
            double cosine = cosine_of(r, i, q->vector, q->scale);
            with++;
            sum += cosine;
            max_cosine = cosine > max_cosine ? cosine : max_cosine;
        }
    }
    mean = with > 0 ? sum / with : 0;
    w = with == 0 ? 0 : q->term_count ? q->weight : 1;
    for (uint32_t i = 0; i < r->count; i++) {
        double score = max_lex > 0 ? (1 - w) * out->lex[i] / max_lex : 0;
        double age = (double)(q->now_ms - r->time_ms[i]) / (30 * 86400000.0);
        if (with > 0 && r->has_vector[i] && max_cosine > mean)
            score += w * fmax(0, cosine_of(r, i, q->vector, q->scale) - mean) /
                     (max_cosine - mean);
        score *=
            1 + q->recency * pow(2, -fmax(0, age)) + q->importance * r->importance[i];
        out->score[i] = score;
        out->cover[i] = whole > 0 ? fmin(1, out->lex[i] / whole) : 0;
    }
}

/* ------------------------------------------------------------------ comparing */

static int every_third(void *arg, uint32_t entry)
{
    (void)arg;
    return entry % 3 == 0; /* whether it lives or not */
}

static void about(void *arg, uint32_t entry, int64_t *time_ms, double *importance)
{
    const reference *r = arg;
    *time_ms = r->time_ms[entry];
    *importance = r->importance[entry];
}

static int may_pass(const reference *r, const rank_question *q, uint32_t i)
{
    return q->pass ? q->pass(q->arg, i) : r->live[i];
}

#define NEAR 1e-4

static void compare(const reference *r, const rank_question *q, int with_vectors,
                    const rank_hit *hits, size_t count)
{
    static expected e;
    static int hit[ENTRIES];
    double worst = count ? 1e9 : 0;
    size_t wanted = 0;

    rate(r, q, with_vectors, &e);
    memset(hit, 0, sizeof hit);
    for (size_t k = 0; k < count; k++) {
        uint32_t i = hits[k].entry;
        assert_true(i < r->count && !hit[i] && may_pass(r, q, i));
        hit[i] = 1;
        assert_true(fabs(hits[k].score - e.score[i]) < NEAR);
        assert_true(fabs((double)hits[k].lex - e.lex[i]) < NEAR * 10);
        assert_true(fabs(hits[k].cover - e.cover[i]) < NEAR);
        assert_true(hits[k].score > 0);
        if (k > 0) /* best first, the newer of equal ones first */
            assert_true(hits[k - 1].score > hits[k].score ||
                        (hits[k - 1].score == hits[k].score &&
                         hits[k - 1].entry > hits[k].entry));
        worst = e.score[i] < worst ? e.score[i] : worst;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (!may_pass(r, q, i) || e.score[i] < NEAR)
            continue;
        wanted++;
        if (!hit[i] && count == q->limit) /* nothing better was left out */
            assert_true(e.score[i] < worst + NEAR);
        else if (!hit[i])
            fail_msg("entry %u is missing", i);
    }
    assert_true(count <= q->limit &&
                count + 1 >= (wanted < q->limit ? wanted : q->limit));
}

/* ------------------------------------------------------------------ random memories */

static void random_vector(float out[DIMS])
{
    for (size_t i = 0; i < DIMS; i++)
        out[i] = (float)below(2001) / 1000 - 1;
    out[0] += 0.01f; /* never zero */
}

static void add_random(reference *r, postings *p)
{
    uint32_t i = r->count++;
    uint64_t given[FIELDS][LONGEST];
    posting_terms terms[FIELDS];

    for (int f = 0; f < FIELDS; f++) {
        size_t size = f == FIELD_ALSO && below(2) ? 0 : below(below(LONGEST) + 1);
        for (size_t k = 0; k < size; k++)
            r->terms[i][f][k] = given[f][k] = random_term();
        r->sizes[i][f] = size;
        terms[f] = (posting_terms){given[f], size};
    }
    r->live[i] = below(4) != 0;
    r->time_ms[i] = (int64_t)below(100) * 86400000;
    r->importance[i] = (double)below(11) / 10;
    assert_int_equal(postings_add(p, terms, r->live[i]), 0);
}

static void put_random(reference *r, vectors *v, uint32_t i)
{
    float vector[DIMS];
    random_vector(vector);
    assert_int_equal(vector_quantise(vector, DIMS, r->vectors[i], &r->scales[i]), 0);
    assert_int_equal(vectors_put(v, i, r->vectors[i], r->scales[i]), 0);
    r->has_vector[i] = 1;
}

static void ask(reference *r, postings *p, vectors *v)
{
    uint64_t terms[8];
    rank_hit hits[ENTRIES];
    int8_t vector[STRIDE] = {0};
    float values[DIMS];
    rank_question q = {.terms = terms,
                       .weight = below(11) / 10.0,
                       .limit = 1 + below(below(2) ? 10 : ENTRIES),
                       .now_ms = INT64_C(60) * 86400000,
                       .arg = r};
    int with_vectors = below(3) != 0;

    for (size_t wanted = below(8); q.term_count < wanted;) {
        uint64_t term = random_term();
        size_t k = 0;
        while (k < q.term_count && terms[k] != term)
            k++;
        if (k == q.term_count)
            terms[q.term_count++] = term;
        else
            wanted--;
    }
    if (below(2)) {
        random_vector(values);
        assert_int_equal(vector_quantise(values, DIMS, vector, &q.scale), 0);
        q.vector = vector;
    }
    if (below(2))
        q.pass = every_third;
    if (below(2)) {
        q.recency = below(10) / 10.0;
        q.importance = below(10) / 10.0;
        q.about = about;
    }
    compare(r, &q, with_vectors, hits,
            (size_t)rank(p, with_vectors ? v : NULL, &q, hits));
}

static void hits_are_those_of_the_reference(void **state)
{
    static reference r;
    (void)state;
    for (unsigned run = 1; run <= 12; run++) {
        postings p;
        vectors v;
        seed = run;
        memset(&r, 0, sizeof r);
        postings_init(&p, &allocator_default);
        vectors_init(&v, DIMS, &allocator_default);
        ask(&r, &p, &v);
        while (r.count < ENTRIES) {
            add_random(&r, &p);
            if (below(3) == 0)
                put_random(&r, &v, below(r.count));
            for (unsigned k = below(4); k > 0; k--) {
                uint32_t i = below(r.count);
                r.live[i] = below(2) != 0;
                postings_set_live(&p, i, r.live[i]);
            }
            if (below(4) == 0)
                ask(&r, &p, &v);
        }
        postings_deinit(&p);
        vectors_deinit(&v);
    }
}

/* ------------------------------------------------------------------ by themselves */

static void an_explanation_adds_up(void **state)
{
    static reference r;
    float scores[ENTRIES];
    uint64_t terms[3];
    postings p;
    (void)state;
    seed = 99;
    memset(&r, 0, sizeof r);
    postings_init(&p, &allocator_default);
    while (r.count < 100)
        add_random(&r, &p);
    for (uint64_t k = 0; k < 3; k++)
        terms[k] = UINT64_C(0x9e3779b97f4a7c15) * (k + 2);
    postings_score(&p, terms, 3, NULL, scores);
    for (uint32_t i = 0; i < r.count; i++) {
        double sum = 0;
        for (size_t k = 0; k < 3; k++)
            for (int field = 0; field < FIELDS; field++)
                sum += postings_explain(&p, field, terms[k], i);
        assert_true(fabs(sum - (double)scores[i]) < NEAR);
    }
    postings_deinit(&p);
}

static void long_lists_and_large_counts_are_kept(void **state)
{
    enum { MANY = 70000 };
    static uint64_t many[MANY];
    static float scores[600];
    uint64_t term = 5;
    postings p;
    (void)state;
    postings_init(&p, &allocator_default);
    for (uint32_t i = 0; i < 600; i++) {
        size_t size = i == 300 ? MANY : 1;
        posting_terms terms[FIELDS] = {{many, size}, {NULL, 0}};
        for (size_t k = 0; k < size; k++)
            many[k] = i % 50 == 0 ? term : 6;
        assert_int_equal(postings_add(&p, terms, 1), 0);
    }
    postings_score(&p, &term, 1, NULL, scores);
    for (uint32_t i = 0; i < 600; i++)
        assert_int_equal(scores[i] > 0, i % 50 == 0);
    postings_deinit(&p);
}

static void no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    for (size_t fail = 1; fail < 200; fail++) {
        meter m = {.fail_at = fail};
        allocator a = meter_allocator(&m);
        uint64_t given[] = {3, 1, 3, 2};
        posting_terms terms[FIELDS] = {{given, 4}, {given, 2}};
        int8_t vector[STRIDE] = {1};
        rank_question q = {.terms = given, .term_count = 1, .limit = 2, .vector = vector};
        rank_hit hits[2];
        postings p;
        vectors v;
        int64_t count = -1;
        q.scale = 1;
        postings_init(&p, &a);
        vectors_init(&v, DIMS, &a);
        if (!postings_add(&p, terms, 1) && !postings_add(&p, terms, 1) &&
            !vectors_put(&v, 1, vector, 1))
            count = rank(&p, &v, &q, hits);
        else if (p.failed)
            assert_int_equal(postings_add(&p, terms, 1), -1);
        postings_deinit(&p);
        vectors_deinit(&v);
        assert_int_equal(m.live, 0);
        if (count >= 0) {
            assert_int_equal(count, 2);
            return;
        }
    }
    fail_msg("it never succeeded");
}

/* ------------------------------------------------------------------ vectors */

static void products_are_the_same_everywhere(void **state)
{
    static int8_t a[4096], b[4096];
    (void)state;
    seed = 4;
    for (size_t size = 32; size <= 4096; size += 32 * (1 + below(7))) {
        int extreme = below(2) != 0;
        for (size_t i = 0; i < size; i++) {
            a[i] = (int8_t)(extreme ? (below(2) ? 127 : -127) : (int)below(255) - 127);
            b[i] = (int8_t)(extreme ? a[i] : (int)below(255) - 127);
        }
        assert_int_equal(vector_dot(a, b, size), vector_dot_plain(a, b, size));
    }
}

static void a_vector_that_says_nothing_is_refused(void **state)
{
    float good[] = {3, -4, 0}, nan[] = {1, NAN, 0}, infinite[] = {INFINITY, 0, 0};
    float zero[] = {0, -0.0f, 0}, huge[] = {3e38f, -3e38f, 0}, tiny[] = {1e-44f, 0, 0};
    int8_t values[3];
    float scale;
    (void)state;
    assert_int_equal(vector_quantise(nan, 3, values, &scale), VECTOR_NOT_FINITE);
    assert_int_equal(vector_quantise(infinite, 3, values, &scale), VECTOR_NOT_FINITE);
    assert_int_equal(vector_quantise(zero, 3, values, &scale), VECTOR_ZERO);
    assert_int_equal(vector_quantise(huge, 3, values, &scale), VECTOR_GOOD);
    assert_int_equal(values[1], -127);
    assert_int_equal(vector_quantise(tiny, 3, values, &scale), VECTOR_GOOD);
    assert_int_equal(values[0], 127);
    assert_int_equal(vector_quantise(good, 3, values, &scale), VECTOR_GOOD);
    assert_int_equal(values[0], 95);
    assert_int_equal(values[1], -127);
    assert_true(fabs((double)scale * sqrt(95 * 95 + 127 * 127) - 1) < 1e-6);
}

static void cosines_are_close_and_newer_vectors_count(void **state)
{
    float first[DIMS], second[DIMS], question[DIMS], cosines[4], scale;
    double dot = 0, a = 0, b = 0;
    int8_t values[STRIDE] = {0};
    vectors v;
    (void)state;
    seed = 8;
    vectors_init(&v, DIMS, &allocator_default);
    random_vector(first);
    random_vector(second);
    random_vector(question);
    assert_int_equal(vector_quantise(first, DIMS, values, &scale), 0);
    assert_int_equal(vectors_put(&v, 2, values, scale), 0);
    assert_int_equal(vector_quantise(second, DIMS, values, &scale), 0);
    assert_int_equal(vectors_put(&v, 2, values, scale), 0);
    assert_int_equal(vectors_put(&v, 9, values, scale), 0); /* past the end */
    assert_int_equal(v.count, 2);
    assert_int_equal(vector_quantise(question, DIMS, values, &scale), 0);
    vectors_score(&v, values, scale, cosines, 4);
    for (size_t i = 0; i < DIMS; i++) {
        dot += (double)second[i] * (double)question[i];
        a += (double)second[i] * (double)second[i];
        b += (double)question[i] * (double)question[i];
    }
    assert_true(fabs((double)cosines[2] - dot / sqrt(a * b)) < 0.01);
    assert_true(cosines[0] == VECTOR_NONE && cosines[3] == VECTOR_NONE);
    assert_null(vectors_get(&v, 0, &scale));
    assert_non_null(vectors_get(&v, 2, &scale));
    vectors_deinit(&v);
}

/* More than are allocated together, every other entry, and one of them again. */
static void many_vectors_are_compared_and_stay_where_they_are(void **state)
{
    enum { MANY = 5000 };
    int8_t(*all)[STRIDE] = calloc(MANY, sizeof *all);
    float *scales = calloc(MANY, sizeof *scales),
          *cosines = calloc(2 * MANY, sizeof *cosines);
    float numbers[DIMS], scale;
    int8_t question[STRIDE] = {0};
    const int8_t *third = NULL;
    vectors v;
    (void)state;
    assert_true(all && scales && cosines);
    seed = 9;
    vectors_init(&v, DIMS, &allocator_default);
    for (uint32_t i = 0; i < MANY; i++) {
        random_vector(numbers);
        assert_int_equal(vector_quantise(numbers, DIMS, all[i], &scales[i]), 0);
        assert_int_equal(vectors_put(&v, 2 * i, all[i], scales[i]), 0);
        if (i == 3)
            third = vectors_get(&v, 2 * i, &scale);
    }
    assert_true(v.piece_count > 2);
    assert_ptr_equal(vectors_get(&v, 6, &scale), third);
    memcpy(all[MANY / 2], all[0], STRIDE);
    scales[MANY / 2] = scales[0];
    assert_int_equal(vectors_put(&v, MANY, all[0], scales[0]), 0);
    assert_int_equal(v.count, MANY);
    random_vector(numbers);
    assert_int_equal(vector_quantise(numbers, DIMS, question, &scale), 0);
    vectors_score(&v, question, scale, cosines, (size_t)2 * MANY);
    for (size_t i = 0; i < MANY; i++) {
        float dot = (float)vector_dot_plain(all[i], question, STRIDE);
        assert_true(cosines[2 * i] == dot * (scale * scales[i]));
        assert_true(cosines[2 * i + 1] == VECTOR_NONE);
    }
    vectors_deinit(&v);
    free(all);
    free(scales);
    free(cosines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_are_those_of_the_reference),
        cmocka_unit_test(an_explanation_adds_up),
        cmocka_unit_test(long_lists_and_large_counts_are_kept),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
        cmocka_unit_test(products_are_the_same_everywhere),
        cmocka_unit_test(a_vector_that_says_nothing_is_refused),
        cmocka_unit_test(cosines_are_close_and_newer_vectors_count),
        cmocka_unit_test(many_vectors_are_compared_and_stay_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
