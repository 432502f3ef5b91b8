/*
 * memory_search.c: searches of a long-term memory that need no store: by words, by
 * vectors, and both together.
 *
 * Ours is the whole search: the question is cut into terms, all entries are rated, the
 * best ten are taken. The floors are what nobody can leave out who compares every entry:
 * the question cut and each list of a term walked once; each vector's bytes read once.
 */
#include "bench/memory_parts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

#include "memory/rank.h"
#include "memory/terms.h"

enum { BEST = 10 };

/* The words of made entries. */
typedef struct texts {
    postings p;
    words *w;
    term_list terms;
    float *scores; /* of the floor */
    double build;  /* microseconds of all entries */
} texts;

static void texts_open(texts *t, int count)
{
    must(words_open(&t->w, WORDS_LANGUAGE, &allocator_default, NULL), NULL);
    terms_init(&t->terms, &allocator_default);
    postings_init(&t->p, &allocator_default);
    t->scores = malloc((size_t)count * sizeof *t->scores);
    t->build = 0;
    if (!t->scores)
        broken("memory");
}

static void texts_close(texts *t)
{
    postings_deinit(&t->p);
    terms_deinit(&t->terms);
    words_close(t->w);
    free(t->scores);
}

static void texts_add(texts *t, const char *text, size_t size)
{
    posting_terms fields[FIELDS] = {{NULL, 0}, {NULL, 0}};
    double start = memory_now_us();
    t->terms.count = 0;
    if (terms_add(&t->terms, t->w, text, size, 0))
        broken("memory");
    fields[FIELD_MAIN] = (posting_terms){t->terms.at, t->terms.count};
    if (postings_add(&t->p, fields, 1))
        broken("memory");
    t->build += memory_now_us() - start;
}

static void cut(texts *t, const char *question)
{
    t->terms.count = 0;
    if (terms_add(&t->terms, t->w, question, strlen(question), WORDS_QUESTION))
        broken("memory");
    terms_distinct(&t->terms);
}

/* The time of a search. vector NULL: by words alone. */
static double ask(texts *t, const vectors *v, const char *question, const int8_t *vector,
                  float scale)
{
    rank_question q = {
        .limit = BEST, .vector = vector, .scale = scale, .weight = RANK_WEIGHT};
    rank_hit hits[BEST];
    double start = memory_now_us();
    cut(t, question);
    q.terms = t->terms.at;
    q.term_count = t->terms.count;
    if (rank(&t->p, v, &q, hits) < 0)
        broken("memory");
    return memory_now_us() - start;
}

/* ------------------------------------------------------------------ the lists, walked */

static inline uint64_t next_number(const unsigned char **at)
{
    uint64_t n = **at & 0x7f;
    for (unsigned shift = 7; *(*at)++ & 0x80; shift += 7)
        n |= (uint64_t)(**at & 0x7f) << shift;
    return n;
}

/* One float for each entry, one pass over the list of each term: the time. */
static double walk_lists(texts *t, const char *question)
{
    const posting_field *field = &t->p.fields[FIELD_MAIN];
    double start = memory_now_us();

    cut(t, question);
    memset(t->scores, 0, t->p.count * sizeof *t->scores);
    for (size_t i = 0; i < t->terms.count; i++) {
        const posting_list *list;
        const unsigned char *at, *end;
        uint32_t index, entry = 0;
        if (!map_get(&field->terms, t->terms.at[i], &index))
            continue;
        list = &field->lists[index];
        at = list->capacity ? list->bytes.far : list->bytes.near;
        for (end = at + list->size; at < end; entry++) {
            uint64_t n = next_number(&at);
            entry += (uint32_t)(n >> 1);
            t->scores[entry] += n & 1 ? (float)next_number(&at) : 1.0f;
        }
    }
    return memory_now_us() - start;
}

/* ------------------------------------------------------------------ FTS5 */

typedef struct fts {
    sqlite3 *db;
    sqlite3_stmt *insert, *select;
    double build;
} fts;

static void fts_open(fts *f)
{
    f->build = 0;
    if (sqlite3_open(":memory:", &f->db) ||
        sqlite3_exec(
            f->db, "create virtual table t using fts5(x, content='', tokenize='porter')",
            NULL, NULL, NULL) ||
        sqlite3_prepare_v2(f->db, "insert into t(rowid, x) values (?, ?)", -1, &f->insert,
                           NULL) ||
        sqlite3_prepare_v2(f->db,
                           "select rowid from t where t match ? order by rank limit 50",
                           -1, &f->select, NULL) ||
        sqlite3_exec(f->db, "begin", NULL, NULL, NULL))
        broken("FTS5");
}

static void fts_add(fts *f, int id, const char *text)
{
    double start = memory_now_us();
    sqlite3_bind_int(f->insert, 1, id);
    sqlite3_bind_text(f->insert, 2, text, -1, SQLITE_STATIC);
    if (sqlite3_step(f->insert) != SQLITE_DONE)
        broken("FTS5: insert");
    sqlite3_reset(f->insert);
    f->build += memory_now_us() - start;
}

/* The words with OR between them. */
static double fts_ask(fts *f, const char *question)
{
    char match[2 * MEMORY_TEXT] = "", *at = match;
    double start;
    for (const char *word = question; *word; word += strcspn(word, " ") + 1)
        at += sprintf(at, "%s%.*s", at == match ? "" : " OR ", (int)strcspn(word, " "),
                      word);
    start = memory_now_us();
    sqlite3_bind_text(f->select, 1, match, -1, SQLITE_STATIC);
    while (sqlite3_step(f->select) == SQLITE_ROW)
        ;
    sqlite3_reset(f->select);
    return memory_now_us() - start;
}

static void fts_close(fts *f)
{
    sqlite3_finalize(f->insert);
    sqlite3_finalize(f->select);
    sqlite3_close(f->db);
}

void memory_bench_words(int count)
{
    samples ours = {0}, floor = {0}, peer = {0};
    char text[MEMORY_TEXT];
    texts t;
    fts f;

    texts_open(&t, count);
    fts_open(&f);
    for (int i = 0; i < count; i++) {
        size_t size = memory_put_text(text);
        texts_add(&t, text, size);
        fts_add(&f, i + 1, text);
    }
    sqlite3_exec(f.db, "commit", NULL, NULL, NULL);
    for (size_t i = 0; i < rounds(MEMORY_QUESTIONS); i++) {
        memory_put_question(text);
        sample(&ours, ask(&t, NULL, text, NULL, 0));
        sample(&floor, walk_lists(&t, text));
        sample(&peer, fts_ask(&f, text));
    }
    memory_row_print(&(memory_row){"search by words", count, &ours, &floor, &peer, 1.5,
                                   count == 1000 ? 50 : 0, "question cut, lists walked",
                                   "FTS5"});
    note("    to add an entry: %.1f us, FTS5 %.1f us; bytes of memory an entry: %.0f",
         t.build / count, f.build / count, (double)postings_bytes(&t.p) / count);
    fts_close(&f);
    texts_close(&t);
    free(ours.at);
    free(floor.at);
    free(peer.at);
}

/* ------------------------------------------------------------------ vectors */

typedef struct embedded {
    vectors v;
    float *floats; /* the peer's; NULL: none */
    double build;
} embedded;

static void random_vector(int8_t *out, size_t dims, float *scale)
{
    for (size_t i = 0; i < dims; i++)
        out[i] = (int8_t)((int)(memory_random() % 255) - 127);
    *scale = vector_scale(out, dims);
}

static void embedded_open(embedded *e, int count, size_t dims, int peer)
{
    int8_t *values = malloc(dims);
    float scale;

    e->floats = peer ? malloc((size_t)count * dims * sizeof *e->floats) : NULL;
    e->build = 0;
    if (!values || (peer && !e->floats))
        broken("memory");
    vectors_init(&e->v, dims, &allocator_default);
    for (int i = 0; i < count; i++) {
        double start;
        random_vector(values, dims, &scale);
        for (size_t k = 0; peer && k < dims; k++)
            e->floats[(size_t)i * dims + k] = (float)values[k] * scale;
        start = memory_now_us();
        if (vectors_put(&e->v, (uint32_t)i, values, scale))
            broken("memory");
        e->build += memory_now_us() - start;
    }
    free(values);
}

static void embedded_close(embedded *e)
{
    vectors_deinit(&e->v);
    free(e->floats);
}

/* No value is INT8_MIN, so that memchr() reads them all, as fast as this processor can.
 */
static double read_once(const vectors *v)
{
    double start = memory_now_us();
    size_t found = 0;
    for (size_t row = 0; row < v->count; row += v->per_piece) {
        size_t rows = v->count - row < v->per_piece ? v->count - row : v->per_piece;
        found += memchr(v->pieces[row / v->per_piece], 0x80, rows * v->stride) != NULL;
    }
    if (found)
        broken("vectors");
    return memory_now_us() - start;
}

typedef float lanes __attribute__((vector_size(16)));

/* dims: a multiple of 16. */
static double scan_floats(const float *row, size_t count, size_t dims,
                          const float *question, float *cosines)
{
    double start = memory_now_us();
    for (size_t i = 0; i < count; i++, row += dims) {
        lanes sum[4] = {{0}}, a, b;
        for (size_t k = 0; k < dims; k += 16)
            for (size_t j = 0; j < 4; j++) {
                memcpy(&a, row + k + 4 * j, sizeof a);
                memcpy(&b, question + k + 4 * j, sizeof b);
                sum[j] += a * b;
            }
        sum[0] += sum[1] + sum[2] + sum[3];
        cosines[i] = sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
    }
    return memory_now_us() - start;
}

void memory_bench_vectors(int count, size_t dims)
{
    samples ours = {0}, floor = {0}, peer = {0};
    int8_t *vector = malloc(dims);
    float *cosines = malloc((size_t)count * sizeof *cosines), scale;
    float *question = malloc(dims * sizeof *question);
    char name[40];
    embedded e;

    if (!vector || !cosines || !question)
        broken("memory");
    embedded_open(&e, count, dims, 1);
    /* Ours and the floor each come after the peer, which leaves nothing of them in a
     * cache. */
    for (size_t i = 0; i < rounds(MEMORY_QUESTIONS); i++) {
        double start;
        random_vector(vector, dims, &scale);
        for (size_t k = 0; k < dims; k++)
            question[k] = (float)vector[k] * scale;
        sample(&peer, scan_floats(e.floats, (size_t)count, dims, question, cosines));
        start = memory_now_us();
        vectors_score(&e.v, vector, scale, cosines, (size_t)count);
        sample(&ours, memory_now_us() - start);
        sample(&peer, scan_floats(e.floats, (size_t)count, dims, question, cosines));
        sample(&floor, read_once(&e.v));
    }
    snprintf(name, sizeof name, "vectors of %zu", dims);
    memory_row_print(&(memory_row){name, count, &ours, &floor, &peer, 1.2, 0,
                                   "their bytes read once", "float32"});
    note("    to add a vector: %.1f us; bytes of memory an entry: %.0f", e.build / count,
         (double)vectors_bytes(&e.v) / count);
    embedded_close(&e);
    free(vector);
    free(cosines);
    free(question);
    free(ours.at);
    free(floor.at);
    free(peer.at);
}

void memory_bench_hybrid(int count)
{
    enum { DIMS = 384 };
    samples ours = {0}, floor = {0};
    char text[MEMORY_TEXT];
    int8_t vector[DIMS];
    float scale;
    embedded e;
    texts t;

    texts_open(&t, count);
    for (int i = 0; i < count; i++) {
        size_t size = memory_put_text(text);
        texts_add(&t, text, size);
    }
    embedded_open(&e, count, DIMS, 0);
    for (size_t i = 0; i < rounds(MEMORY_QUESTIONS); i++) {
        memory_put_question(text);
        random_vector(vector, DIMS, &scale);
        if (i % 2)
            sample(&floor, walk_lists(&t, text) + read_once(&e.v));
        sample(&ours, ask(&t, &e.v, text, vector, scale));
        if (i % 2 == 0)
            sample(&floor, walk_lists(&t, text) + read_once(&e.v));
    }
    memory_row_print(
        &(memory_row){"hybrid, vectors of 384", count, &ours, &floor, NULL, 0, 0,
                      "the sum of both floors; p95 wanted: 5 ms at 100,000", ""});
    embedded_close(&e);
    texts_close(&t);
    free(ours.at);
    free(floor.at);
}
