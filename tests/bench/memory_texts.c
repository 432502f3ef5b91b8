/*
 * memory_texts.c: the made texts and the table of the benches of a long-term memory.
 */
#include "bench/memory_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VOCABULARY = 30000, COMMON = 100 };

static double cumulative[VOCABULARY];
static unsigned seed = 1;

unsigned memory_random(void)
{
    return (unsigned)rand_r(&seed);
}

double memory_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

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
    if (cumulative[0] == 0)
        prepare();
    for (;;) {
        double x = (double)memory_random() / RAND_MAX;
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

static size_t put_words(char *out, unsigned words, int from)
{
    size_t size = 0;
    while (words-- > 0) {
        size += put_word(out + size, random_word(from));
        out[size++] = ' ';
    }
    out[size] = '\0';
    return size;
}

size_t memory_put_text(char *out)
{
    return put_words(out, 8 + memory_random() % 23, 0);
}

size_t memory_put_question(char *out)
{
    return put_words(out, 3 + memory_random() % 6, COMMON);
}

/* ------------------------------------------------------------------ the table */

void memory_head_print(void)
{
    printf("%-24s %8s %8s %8s %8s %8s %6s %6s %6s %8s %8s %7s %6s\n", "milliseconds",
           "entries", "p50", "p95", "floor", "p95", "ratio", "p95", "wanted", "peer",
           "p95", "ratio", "seed");
}

static double ms(double us)
{
    return us / 1000;
}

void memory_row_print(const memory_row *r)
{
    double o50 = ms(median(r->ours)), o95 = ms(p95(r->ours));
    double f50 = ms(median(r->floor)), f95 = ms(p95(r->floor));
    double p50 = ms(median(r->peer)), peer95 = ms(p95(r->peer));
    samples *all[] = {r->ours, r->floor, r->peer};

    printf("%-24s %8d", r->name, r->entries);
    cell_print(8, 3, o50, "");
    cell_print(8, 3, o95, "");
    cell_print(8, 3, f50, "");
    cell_print(8, 3, f95, "");
    cell_print(6, 2, o50 / f50, "x");
    cell_print(6, 2, o95 / f95, "x");
    cell_print(6, 1, r->wanted, "x");
    cell_print(8, 3, p50, "");
    cell_print(8, 3, peer95, "");
    cell_print(7, 1, peer95 / o95, "x");
    cell_print(6, 0, r->seed_ms, "");
    printf("  %s%s%s\n", r->floor ? r->floor_is : "", r->peer ? "; peer: " : "",
           r->peer ? r->peer_is : "");
    fflush(stdout);
    for (size_t i = 0; i < 3; i++)
        if (all[i])
            all[i]->count = 0;
}
