/*
 * test_memory_index.c: the index of a memory's log changes nothing that is found.
 *
 * A memory of random entries, verdicts and vectors is asked random questions with random
 * filters. The answers are compared with a reference, which reads the entries themselves,
 * and between openings with the index and without it.
 *
 * Files only: it looks at files, and changes bytes in them.
 * Own stores: sealed folders.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/children.h"
#include "support/keyed.h"
#include "support/logs.h"
#include "support/memories.h"
#include "support/memory_ground.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/memory.h"

/* ------------------------------------------------------------------ a reference */

typedef struct term_count {
    const char *terms[64];
    size_t count;
} term_count;

static int count_term(void *arg, const char *term, size_t size)
{
    term_count *c = arg;
    assert_true(c->count < 64);
    c->terms[c->count] = strndup(term, size);
    assert_non_null(c->terms[c->count++]);
    return 0;
}

static void forget_terms(term_count *c)
{
    for (size_t i = 0; i < c->count; i++)
        free((void *)(uintptr_t)c->terms[i]);
    c->count = 0;
}

static double times_in(const term_count *c, const char *term)
{
    double times = 0;
    for (size_t i = 0; i < c->count; i++)
        times += !strcmp(c->terms[i], term);
    return times;
}

/* The formula of postings.h, over the live rows, in one field. */
static void add_scores(const term_count *texts, size_t count, const term_count *q,
                       double weight, double *scores)
{
    double filled = 0, length = 0;
    for (size_t i = 0; i < count; i++) {
        filled += texts[i].count > 0;
        length += (double)texts[i].count;
    }
    for (size_t t = 0; t < q->count; t++) {
        double with = 0, w;
        int again = 0;
        for (size_t k = 0; k < t; k++)
            again |= !strcmp(q->terms[k], q->terms[t]);
        for (size_t i = 0; i < count; i++)
            with += times_in(&texts[i], q->terms[t]) > 0;
        w = weight * 1.9 * log1p((filled - with + 0.5) / (with + 0.5));
        for (size_t i = 0; i < count && !again; i++) {
            double tf = times_in(&texts[i], q->terms[t]);
            double norm = 0.6 + 0.4 * (double)texts[i].count / (length / filled);
            scores[i] += tf > 0 ? w * tf / (tf + 0.9 * norm) : 0;
        }
    }
}

/* What a search of words returns is what the formula says of the live entries. */
static void expect_reference(sessile_memory *m, const char *question, unsigned kinds)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows, *hits;
    sessile_error err;
    size_t count, found, matching = 0;
    term_count *main, *also, q = {.count = 0};
    double *scores, best = 0;
    words *w;

    must(words_open(&w, WORDS_LANGUAGE, &allocator_default, &err), &err);
    must(sessile_memory_list(m, NULL, &rows, &count, &err), &err);
    main = calloc(count + 1, sizeof *main);
    also = calloc(count + 1, sizeof *also);
    scores = calloc(count + 1, sizeof *scores);
    for (size_t i = 0; i < count; i++) {
        char day[WORDS_DAY_SIZE];
        words_day(w, rows[i].time_ms, day);
        words_each(w, rows[i].value.data, rows[i].value.size, 0, count_term, &main[i]);
        words_each(w, rows[i].key.data, rows[i].key.size, 0, count_term, &main[i]);
        words_each(w, day, strlen(day), 0, count_term, &main[i]);
        words_each(w, rows[i].also.data, rows[i].also.size, 0, count_term, &also[i]);
    }
    words_each(w, question, strlen(question), WORDS_QUESTION, count_term, &q);
    add_scores(main, count, &q, 1, scores);
    add_scores(also, count, &q, 0.5, scores);
    for (size_t i = 0; i < count; i++) {
        best = scores[i] > best ? scores[i] : best;
        matching += scores[i] > 0 && (!kinds || kinds >> rows[i].kind & 1);
    }
    sessile_memory_search_init(&o);
    o.limit = count + 1;
    o.weight = 0;
    o.filter.kinds = kinds;
    must(sessile_memory_search(m, sessile_text(question), &o, &hits, &found, &err), &err);
    assert_int_equal(found, matching);
    for (size_t h = 0; h < found; h++) {
        size_t i = 0;
        while (i < count && rows[i].id != hits[h].id)
            i++;
        assert_true(i < count);
        if (fabs(hits[h].score - scores[i] / best) > 1e-5)
            fail_msg("%s: entry %x has %f, not %f", question, hits[h].id, hits[h].score,
                     scores[i] / best);
        assert_true(h == 0 || hits[h - 1].score >= hits[h].score);
    }
    for (size_t i = 0; i < count; i++) {
        forget_terms(&main[i]);
        forget_terms(&also[i]);
    }
    forget_terms(&q);
    words_close(w);
    sessile_free(rows);
    sessile_free(hits);
    free(main);
    free(also);
    free(scores);
}

static void the_index_shows_what_the_lines_say(void **state)
{
    memory_ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);

    for (int round = 0; round < 6; round++) {
        char *truth, *idx, question[200];
        uint64_t seed = 100 + (uint64_t)round;
        if (round)
            m = memory_of(g->store, NULL);
        memory_tell(g, m, 150 + 260 * (size_t)round);
        truth = memory_shown(m, seed);
        for (int i = 0; i < 4; i++) {
            memory_put_words(g, question, 1 + (int)memory_draw(g, 4));
            expect_reference(m, question, i & 1 ? 0 : 1 + memory_draw(g, 15));
        }
        sessile_memory_close(m);
        idx = memory_file(g, ".idx");
        if (round) /* written while it was told */
            memory_expect_shown(g, seed, truth, 1);
        unlink(idx);
        memory_expect_shown(g, seed, truth, 0);
        if (round) /* that opening wrote it again */
            memory_expect_shown(g, seed, truth, 1);
        m = memory_of(g->store, NULL); /* and its hits are those of the reference */
        memory_put_words(g, question, 3);
        expect_reference(m, question, 0);
        sessile_memory_close(m);
        free(idx);
        free(truth);
    }
}

static void the_index_has_no_word(void **state)
{
    memory_ground *g = *state;
    memory_told t = memory_told_make(g, 600);
    for (size_t i = 0; i < MEMORY_WORDS; i++)
        if (strlen(memory_vocabulary[i]) > 4) /* a short one may be in any bytes */
            assert_int_equal(keyed_files_with(g->root, memory_vocabulary[i]), 0);
    assert_int_equal(keyed_files_with(g->root, "key 1"), 0);
    memory_told_free(&t);
}

static void a_check_compares_the_index(void **state)
{
    memory_ground *g = *state;
    memory_told t = memory_told_make(g, 1000);
    char *other = malloc(t.good.size);

    assert_int_equal(memory_findings(g->store),
                     0); /* written piece by piece, as it grew */
    unlink(t.idx);
    memory_expect_shown(g, 7, t.truth, 0);
    assert_int_equal(memory_findings(g->store), 0); /* written at once */
    memcpy(other, t.good.data, t.good.size);
    other[t.good.size / 2] ^= 1;
    file_write_all(t.idx, other, t.good.size);
    assert_int_equal(memory_findings(g->store), 1);
    memory_expect_shown(g, 7, t.truth, -1);
    assert_int_equal(memory_findings(g->store), 0);
    free(other);
    memory_told_free(&t);
}

/* Another process writes, from when it is told to until it is told to stop. */
static void keep_writing(void *arg, int in, int out)
{
    memory_ground g = {.root = arg, .seed = 5};
    sessile_memory *m;
    memory_ground_open(&g);
    m = memory_of(g.store, NULL);
    child_tell(out, 'y');
    child_hear(in);
    memory_tell(&g, m, 1500);
    sessile_memory_close(m);
    sessile_store_close(g.store);
    child_tell(out, 'y');
    child_hear(in);
}

static void it_can_be_opened_while_another_process_writes(void **state)
{
    memory_ground *g = *state;
    sessile_memory *held, *m;
    char *truth, *text;
    child c;

    sessile_memory_close(memory_of(g->store, NULL));
    c = child_start(keep_writing, g->root);
    assert_int_equal(child_hear(c.from), 'y');
    held = memory_of(g->store, NULL);
    child_tell(c.to, 'g');
    for (int i = 0; log_count(held->core->log) < 1500; i++) {
        m = memory_of(g->store, NULL);
        free(memory_shown(m, (uint64_t)i)); /* nothing fails on the way */
        free(memory_shown(held, (uint64_t)i));
        sessile_memory_close(m);
    }
    assert_int_equal(child_hear(c.from), 'y');
    child_end(&c);
    truth = memory_shown(held, 3); /* which read every line itself */
    sessile_memory_close(held);
    memory_expect_shown(g, 3, truth, 1);
    m = memory_of(g->store, NULL);
    memory_tell(g, m, 1800); /* this one goes on with the index of the other */
    text = memory_shown(m, 4);
    sessile_memory_close(m);
    memory_expect_shown(g, 4, text, 1);
    assert_int_equal(memory_findings(g->store), 0);
    free(truth);
    free(text);
}

/* Vectors and texts that do not fit into a block are left to the log. */
static void what_is_too_large_for_a_block_is_read_from_the_log(void **state)
{
    enum { BIG = 4096, COUNT = 256, TEXT = 60000 };
    memory_ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);
    float *vectors = malloc((size_t)BIG * COUNT * sizeof *vectors);
    sessile_id ids[COUNT];
    char *truth, *text = malloc(TEXT + 1);
    sessile_error err;

    for (int i = 0; i < COUNT; i++)
        ids[i] = remember(m, NULL, memory_vocabulary[memory_draw(g, MEMORY_WORDS)], NULL);
    for (int round = 0; round < 12; round++) { /* a megabyte each */
        for (size_t i = 0; i < (size_t)BIG * COUNT; i++)
            vectors[i] = (float)memory_draw(g, 2000) - 1000.5F;
        must(sessile_memory_embed(m, sessile_text("newer"), BIG, ids, vectors, COUNT,
                                  &err),
             &err);
    }
    memory_tell(g, m, 600);
    for (int i = 0; i < 250; i++) { /* a term of three letters in four bytes */
        for (int k = 0; k < TEXT; k++)
            text[k] =
                (char)(k % 4 == 3 ? ' '
                                  : "bdfgklmnprstvwxz0123456789"[memory_draw(g, 26)]);
        text[TEXT] = 0;
        remember(m, NULL, text, text);
    }
    memory_tell(g, m, 1100);
    truth = memory_shown(m, 6);
    sessile_memory_close(m);
    memory_expect_shown(g, 6, truth, 1);
    assert_int_equal(memory_findings(g->store), 0);
    free(vectors);
    free(truth);
    free(text);
}

#define ON_GROUND(test) \
    cmocka_unit_test_setup_teardown(test, memory_ground_set_up, memory_ground_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_GROUND(the_index_shows_what_the_lines_say),
        ON_GROUND(the_index_has_no_word),
        ON_GROUND(a_check_compares_the_index),
        ON_GROUND(it_can_be_opened_while_another_process_writes),
        ON_GROUND(what_is_too_large_for_a_block_is_read_from_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
