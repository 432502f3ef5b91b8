/*
 * memory_parts.h: what memory.c consists of: made texts, its table, and the searches that
 * need no store.
 *
 * The texts have 8 to 30 words of a vocabulary of 30,000, of which the word number n is
 * as common as 1 / n. Questions have 3 to 8 words of the same kind, without the 100 most
 * common, which stand for stop words.
 */
#ifndef BENCH_MEMORY_PARTS_H
#define BENCH_MEMORY_PARTS_H

#include "bench/measure.h"

enum { MEMORY_TEXT = 600, MEMORY_QUESTIONS = 200 };

/* ---- memory_texts.c */
unsigned memory_random(void);
/* Processor time of this thread, which others on the machine change less than the clock.
 */
double memory_now_us(void);
/* NUL-terminated; out has room for MEMORY_TEXT bytes. The size. */
size_t memory_put_text(char *out);
size_t memory_put_question(char *out);

/* A row of the table. Its times are milliseconds. */
typedef struct memory_row {
    const char *name;
    int entries;
    samples *ours, *floor, *peer; /* floor and peer may be NULL */
    double wanted;  /* the ratio to the floor that is to be reached; 0: none */
    double seed_ms; /* p95 that was asked for at this size; 0: none */
    const char *floor_is, *peer_is;
} memory_row;
void memory_head_print(void);
/* Prints the row and empties its samples. */
void memory_row_print(const memory_row *r);

/* ---- memory_search.c */

/* Words, compared with walking the lists of their terms, and with FTS5; vectors of 384
 * and 768 dimensions, compared with reading their bytes once, and with float32; both
 * together, compared with the sum of both floors. */
void memory_bench_words(int count);
void memory_bench_vectors(int count, size_t dims);
void memory_bench_hybrid(int count);

#endif
