/*
 * memory.c: the search of a long-term memory: by words beside FTS5 over the same texts
 * (porter, in memory), by vectors beside reading their bytes once; what an entry takes.
 *
 * The texts are made: 8 to 30 words of a vocabulary of 30,000, of which the word number n
 * is as common as 1 / n. Questions are of 3 to 8 words of the same kind, without the 100
 * most common, which stand for stop words. Times are milliseconds.
 */
#include "measure.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sqlite3.h>

#include "memory/rank.h"
#include "memory/terms.h"
#include "sessile_memory.h"

enum { VOCABULARY = 30000, COMMON = 100, QUESTIONS = 200, BEST = 10, TEXT = 600 };

static double cumulative[VOCABULARY];
static unsigned seed = 1;

static void prepare(void)
{
    double sum = 0;
    for (int i = 0; i < VOCABULARY; i++)
        cumulative[i] = sum += 1.0 / (i + 1);
    for (int i = 0; i < VOCABULARY; i++)
        cumulative[i] /= sum;
}

static int random_word(int from)
{
    for (;;) {
        double x = (double)rand_r(&seed) / RAND_MAX;
        int low = 0, high = VOCABULARY - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (cumulative[middle] < x)
                low = middle + 1;
            else
                high = middle;
        }
        if (low >= from)
            return low;
    }
}

/* A word of syllables, one for each number. */
static size_t put_word(char *out, int number)
{
    static const char onsets[] = "bdfgklmnprstvz", vowels[] = "aeiou";
    size_t size = 0;
    for (number += 70; number > 0; number /= 70) {
        out[size++] = onsets[number % 14];
        out[size++] = vowels[number / 14 % 5];
    }
    return size;
}

static size_t put_text(char *out, int words, int from)
{
    size_t size = 0;
    while (words-- > 0) {
        size += put_word(out + size, random_word(from));
        out[size++] = ' ';
    }
    out[size] = '\0';
    return size;
}

/* ------------------------------------------------------------------ words */

typedef struct fts {
    sqlite3 *db;
    sqlite3_stmt *insert, *select;
} fts;

static void fts_open(fts *f)
{
    if (sqlite3_open(":memory:", &f->db) ||
        sqlite3_exec(
            f->db, "create virtual table t using fts5(x, content='', tokenize='porter')",
            NULL, NULL, NULL) ||
        sqlite3_prepare_v2(f->db, "insert into t(rowid, x) values (?, ?)", -1, &f->insert,
                           NULL) ||
        sqlite3_prepare_v2(f->db,
                           "select rowid from t where t match ? order by rank limit 10",
                           -1, &f->select, NULL) ||
        sqlite3_exec(f->db, "begin", NULL, NULL, NULL))
        broken("FTS5");
}

static void fts_add(fts *f, int id, const char *text)
{
    sqlite3_bind_int(f->insert, 1, id);
    sqlite3_bind_text(f->insert, 2, text, -1, SQLITE_STATIC);
    if (sqlite3_step(f->insert) != SQLITE_DONE)
        broken("FTS5: insert");
    sqlite3_reset(f->insert);
}

/* The words with OR between them. */
static double fts_ask(fts *f, const char *question)
{
    char match[2 * TEXT] = "", *at = match;
    double start;
    for (const char *word = question; *word; word += strcspn(word, " ") + 1)
        at += sprintf(at, "%s%.*s", at == match ? "" : " OR ", (int)strcspn(word, " "),
                      word);
    start = now_us();
    sqlite3_bind_text(f->select, 1, match, -1, SQLITE_STATIC);
    while (sqlite3_step(f->select) == SQLITE_ROW)
        ;
    sqlite3_reset(f->select);
    return now_us() - start;
}

static void fts_close(fts *f)
{
    sqlite3_finalize(f->insert);
    sqlite3_finalize(f->select);
    sqlite3_close(f->db);
}

static void add_entry(postings *p, words *w, term_list *terms, const char *text,
                      size_t size)
{
    posting_terms fields[FIELDS] = {{NULL, 0}, {NULL, 0}};
    terms->count = 0;
    if (terms_add(terms, w, text, size, 0))
        broken("memory");
    fields[FIELD_MAIN] = (posting_terms){terms->at, terms->count};
    if (postings_add(p, fields, 1))
        broken("memory");
}

static double ask_words(postings *p, words *w, term_list *terms, const char *question)
{
    rank_question q = {.limit = BEST};
    rank_hit hits[BEST];
    double start = now_us();
    terms->count = 0;
    if (terms_add(terms, w, question, strlen(question), WORDS_QUESTION))
        broken("memory");
    terms_distinct(terms);
    q.terms = terms->at;
    q.term_count = terms->count;
    if (rank(p, NULL, &q, hits) < 0)
        broken("memory");
    return now_us() - start;
}

static void measure_words(int count)
{
    samples ours = {0}, theirs = {0};
    char text[TEXT];
    double build = 0, fts_build = 0, start;
    term_list terms;
    postings p;
    words *w;
    fts f;

    must(words_open(&w, WORDS_LANGUAGE, &allocator_default, NULL), NULL);
    terms_init(&terms, &allocator_default);
    postings_init(&p, &allocator_default);
    fts_open(&f);
    for (int i = 0; i < count; i++) {
        size_t size = put_text(text, 8 + (int)((unsigned)rand_r(&seed) % 23), 0);
        start = now_us();
        add_entry(&p, w, &terms, text, size);
        build += now_us() - start;
        start = now_us();
        fts_add(&f, i + 1, text);
        fts_build += now_us() - start;
    }
    sqlite3_exec(f.db, "commit", NULL, NULL, NULL);
    for (size_t i = 0; i < rounds(QUESTIONS); i++) {
        put_text(text, 3 + (int)((unsigned)rand_r(&seed) % 6), COMMON);
        sample(&ours, ask_words(&p, w, &terms, text));
        sample(&theirs, fts_ask(&f, text));
    }
    printf("%-22s %8d %9.3f %9.3f %10.3f %10.3f %8.1f %8.1f %8.0f\n", "words", count,
           median(&ours) / 1000, p95(&ours) / 1000, median(&theirs) / 1000,
           p95(&theirs) / 1000, build / count, fts_build / count,
           (double)postings_bytes(&p) / count);
    fts_close(&f);
    postings_deinit(&p);
    terms_deinit(&terms);
    words_close(w);
    free(ours.at);
    free(theirs.at);
}

/* ------------------------------------------------------------------ vectors */

static void random_vector(int8_t *out, size_t dims, float *scale)
{
    for (size_t i = 0; i < dims; i++)
        out[i] = (int8_t)((int)((unsigned)rand_r(&seed) % 255) - 127);
    *scale = vector_scale(out, dims);
}

static uint64_t read_once(const vectors *v)
{
    uint64_t sum = 0, word;
    for (size_t i = 0; i < v->count * v->stride; i += sizeof word) {
        memcpy(&word, v->rows + i, sizeof word);
        sum += word;
    }
    return sum;
}

static void measure_vectors(int count, size_t dims)
{
    samples ours = {0}, floor = {0};
    int8_t *vector = malloc(dims);
    float *cosines = malloc((size_t)count * sizeof *cosines), scale;
    volatile uint64_t sink;
    double build = 0, start;
    char name[40];
    vectors v;

    if (!vector || !cosines)
        broken("memory");
    vectors_init(&v, dims, &allocator_default);
    for (int i = 0; i < count; i++) {
        random_vector(vector, dims, &scale);
        start = now_us();
        if (vectors_put(&v, (uint32_t)i, vector, scale))
            broken("memory");
        build += now_us() - start;
    }
    for (size_t i = 0; i < rounds(QUESTIONS); i++) {
        random_vector(vector, dims, &scale);
        start = now_us();
        vectors_score(&v, vector, scale, cosines, (size_t)count);
        sample(&ours, now_us() - start);
        start = now_us();
        sink = read_once(&v);
        sample(&floor, now_us() - start);
    }
    (void)sink;
    snprintf(name, sizeof name, "vectors of %zu", dims);
    printf("%-22s %8d %9.3f %9.3f %10.3f %10.3f %8.1f %8s %8.0f\n", name, count,
           median(&ours) / 1000, p95(&ours) / 1000, median(&floor) / 1000,
           p95(&floor) / 1000, build / count, "", (double)vectors_bytes(&v) / count);
    vectors_deinit(&v);
    free(vector);
    free(cosines);
    free(ours.at);
    free(floor.at);
}

/* ------------------------------------------------------------------ a whole memory */

/* Entries in commits of a hundred. */
static void fill_memory(sessile_memory *m, int count)
{
    enum { TOGETHER = 100 };
    static char texts[TOGETHER][TEXT];
    sessile_memory_write_entry entries[TOGETHER];
    sessile_error err;

    for (int at = 0; at < count; at += TOGETHER) {
        for (int i = 0; i < TOGETHER; i++) {
            sessile_memory_write_init(&entries[i]);
            entries[i].value.data = texts[i];
            entries[i].value.size =
                put_text(texts[i], 8 + (int)((unsigned)rand_r(&seed) % 23), 0);
        }
        must(sessile_memory_write(m, entries, TOGETHER, NULL, &err), &err);
    }
}

/* A vector of DIMS for each entry, in calls of TOGETHER. */
static void embed_memory(sessile_memory *m, int count)
{
    enum { TOGETHER = 64, DIMS = 384 };
    static float vectors[TOGETHER * DIMS];
    sessile_id ids[TOGETHER];
    sessile_error err;

    for (int at = 0; at < count; at += TOGETHER) {
        int some = count - at < TOGETHER ? count - at : TOGETHER;
        for (int i = 0; i < some; i++)
            ids[i] = (sessile_id)(1 + at + i);
        for (int i = 0; i < some * DIMS; i++)
            vectors[i] = (float)rand_r(&seed) / (float)RAND_MAX - 0.5F;
        must(sessile_memory_embed(m, sessile_text("bench"), DIMS, ids, vectors,
                                  (size_t)some, &err),
             &err);
    }
}

/* With the index, and without: then the index is emptied before each. */
static void measure_open(sessile_store *st, const char *store, const char *what,
                         int count)
{
    samples indexed = {0}, lines = {0};
    sessile_memory_options options;
    sessile_memory *m;
    sessile_error err;
    char path[4400];
    off_t bytes;
    double start;

    sessile_memory_options_init(&options);
    snprintf(path, sizeof path, "%s/%s/agents/main.memory/memory.idx", bench_folder,
             store);
    must(sessile_memory_open(&m, st, &options, &err), &err);
    sessile_memory_close(m);
    bytes = bench_file_size(path);
    for (size_t i = 0; i < rounds(7); i++) {
        start = now_us();
        must(sessile_memory_open(&m, st, &options, &err), &err);
        sample(&indexed, now_us() - start);
        sessile_memory_close(m);
    }
    for (size_t i = 0; i < rounds(3); i++) {
        if (truncate(path, 0))
            broken(path);
        start = now_us();
        must(sessile_memory_open(&m, st, &options, &err), &err);
        sample(&lines, now_us() - start);
        sessile_memory_close(m);
    }
    printf("%-22s %8d %9.3f %9.3f %10.3f %10.3f %8s %8s %8.0f\n", what, count,
           median(&indexed) / 1000, p95(&indexed) / 1000, median(&lines) / 1000,
           p95(&lines) / 1000, "", "", (double)bytes / count);
    free(indexed.at);
    free(lines.at);
}

/* Sealed, in a folder. */
static void measure_whole(int count)
{
    samples searched = {0}, got = {0};
    sessile_memory_search_options o;
    sessile_memory_options options;
    sessile_memory_row *rows;
    sessile_memory *m;
    sessile_store *st;
    sessile_error err;
    char text[TEXT], name[40];
    size_t found;
    double start;

    snprintf(name, sizeof name, "memory-%d", count);
    st = open_store(name, SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    sessile_memory_options_init(&options);
    must(sessile_memory_open(&m, st, &options, &err), &err);
    fill_memory(m, count);
    sessile_memory_search_init(&o);
    for (size_t i = 0; i < rounds(QUESTIONS); i++) {
        put_text(text, 3 + (int)((unsigned)rand_r(&seed) % 6), COMMON);
        start = now_us();
        must(sessile_memory_search(m, sessile_text(text), &o, &rows, &found, &err), &err);
        sample(&searched, now_us() - start);
        sessile_free(rows);
        start = now_us();
        must(sessile_memory_get(m, 1 + (unsigned)rand_r(&seed) % (unsigned)count, &rows,
                                &err),
             &err);
        sample(&got, now_us() - start);
        sessile_free(rows);
    }
    sessile_memory_close(m);
    printf("%-22s %8d %9.3f %9.3f\n", "ten hits, with rows", count,
           median(&searched) / 1000, p95(&searched) / 1000);
    printf("%-22s %8d %9.3f %9.3f\n", "an entry by its id", count, median(&got) / 1000,
           p95(&got) / 1000);
    measure_open(st, name, "opened, words", count);
    must(sessile_memory_open(&m, st, &options, &err), &err);
    embed_memory(m, count);
    sessile_memory_close(m);
    measure_open(st, name, "opened, vectors of 384", count);
    sessile_store_close(st);
    free(searched.at);
    free(got.at);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1000, 10000, 100000};
    int count = bench_short() ? 1 : 3;
    bench_make_folder(argc, argv);
    prepare();
    printf("%-22s %8s %9s %9s %10s %10s %8s %8s %8s\n", "search", "entries", "p50 ms",
           "p95 ms", "beside p50", "beside p95", "add us", "beside", "bytes");
    for (int i = 0; i < count; i++)
        measure_words(sizes[i]);
    for (int i = 0; i < count; i++)
        measure_vectors(sizes[i], 384);
    for (int i = 0; i < count; i++)
        measure_vectors(sizes[i], 768);
    for (int i = 0; i < count; i++)
        measure_whole(sizes[i]);
    note("beside: FTS5 for words, reading all bytes once for vectors, the lines instead "
         "of the index for opening (bytes: of the index); add: microseconds "
         "for "
         "an entry; bytes: of memory for an entry");
    return bench_end();
}
