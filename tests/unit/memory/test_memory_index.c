/*
 * test_memory_index.c: the index of a memory's log changes nothing that is found.
 *
 * A memory of random entries, verdicts and vectors is asked random questions with random
 * filters. The answers are compared with a reference, which reads the entries themselves,
 * and between openings: with the index, without it, with every kind of wrong one.
 *
 * Files only: it looks at files, and changes bytes in them.
 * Own stores: sealed and plain folders.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/children.h"
#include "support/keyed.h"
#include "support/logs.h"
#include "support/memories.h"
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
#include <sys/stat.h>
#include <unistd.h>

#include "memory/memory.h"

static const char key_text[] = "a secret of this test";

typedef struct ground {
    char *root;
    int plain;
    sessile_store *store;
    uint64_t seed;
} ground;

static void open_ground(ground *g)
{
    sessile_store_options o;
    sessile_error err;

    if (!g->plain) {
        g->store = keyed_open(g->root, key_text);
        return;
    }
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&g->store, g->root, &o, &err), &err);
}

static int set_up(void **state)
{
    ground *g = calloc(1, sizeof *g);
    g->root = folder_make();
    g->seed = 1;
    open_ground(g);
    *state = g;
    return 0;
}

static int tear_down(void **state)
{
    ground *g = *state;
    sessile_store_close(g->store);
    folder_remove(g->root);
    free(g);
    return 0;
}

static uint32_t draw(ground *g, uint32_t below)
{
    g->seed = g->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(g->seed >> 33) % below;
}

/* ------------------------------------------------------------------ a random memory */

enum { DIMS = 8 };
static const char *const vocabulary[] = {
    "vim",  "emacs", "editor", "aisle", "seat", "train", "coffee", "tea", "Berlin",
    "Lodz", "piano", "guitar", "cat",   "dog",  "bread", "cheese", "run", "swim"};
#define WORDS (sizeof vocabulary / sizeof *vocabulary)

static void put_words(ground *g, char *out, int count)
{
    *out = 0;
    while (count-- > 0) {
        strcat(out, vocabulary[draw(g, WORDS)]);
        strcat(out, count ? " " : "");
    }
}

static void write_some(ground *g, sessile_memory *m, sessile_id last)
{
    enum { MOST = 8 };
    sessile_memory_write_entry e[MOST];
    char values[MOST][100], also[MOST][100], keys[MOST][20];
    sessile_id replaces[MOST];
    sessile_memory_from from[MOST];
    sessile_error err;
    size_t count = 1 + draw(g, MOST);

    for (size_t i = 0; i < count; i++) {
        sessile_memory_write_init(&e[i]);
        put_words(g, values[i], 1 + (int)draw(g, 6));
        put_words(g, also[i], draw(g, 3) ? 0 : 3);
        snprintf(keys[i], sizeof keys[i], "key %u", draw(g, 40));
        e[i].value = sessile_text(values[i]);
        e[i].also = sessile_text(also[i]);
        e[i].key = sessile_text(draw(g, 2) ? keys[i] : NULL);
        e[i].kind = (sessile_memory_kind)draw(g, 4);
        e[i].source = (sessile_memory_source)draw(g, 4);
        e[i].importance = draw(g, 5) / 4.0;
        e[i].pending = draw(g, 9) == 0;
        replaces[i] = 1 + draw(g, last + 1);
        e[i].replaces = &replaces[i];
        e[i].replace_count = last && draw(g, 6) == 0;
        memset(&from[i], 0, sizeof from[i]);
        from[i].session = sessile_text(draw(g, 2) ? "monday" : "tuesday");
        from[i].first = 1;
        from[i].last = 2;
        e[i].from = &from[i];
        e[i].from_count = draw(g, 2);
    }
    /* an id in replaces may be of no memory: then nothing is written */
    (void)sessile_memory_write(m, e, count, NULL, &err);
}

static void embed_some(ground *g, sessile_memory *m, const char *model)
{
    enum { MOST = 40 };
    sessile_memory_list_options o = {.limit = MOST};
    sessile_memory_row *rows;
    sessile_id ids[MOST];
    float vectors[MOST * DIMS];
    sessile_error err;
    size_t count;

    must(sessile_memory_list(m, &o, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        ids[i] = rows[i].id;
        for (size_t k = 0; k < DIMS; k++)
            vectors[i * DIMS + k] = (float)draw(g, 2000) - 1000.5F;
    }
    must(sessile_memory_embed(m, sessile_text(model), DIMS, ids, vectors, count, &err),
         &err);
    sessile_free(rows);
}

/* Until the log has count entries or a few more. */
static void tell(ground *g, sessile_memory *m, size_t count)
{
    sessile_error err;

    while (log_count(m->core->log) < count) {
        sessile_id last = (sessile_id)log_count(m->core->log);
        uint32_t what = draw(g, 20);
        if (what == 0) {
            embed_some(g, m, draw(g, 3) ? "newer" : "older");
        } else if (what < 8 && last > 1) {
            sessile_id ids[3] = {1 + draw(g, last - 1), 1 + draw(g, last - 1),
                                 1 + draw(g, last - 1)};
            (void)sessile_memory_verdict(
                m, ids, 1 + draw(g, 3), (sessile_memory_verdict_kind)draw(g, 7),
                sessile_text(NULL), sessile_text("host"), NULL, &err);
        } else {
            write_some(g, m, last);
        }
    }
}

/* ------------------------------------------------------------------ what it shows */

static void put_row(buf *out, const sessile_memory_row *r)
{
    buf_printf(out, "%x %d %d %d %.9g %.9g %.9g %d %d|", r->id, (int)r->state,
               (int)r->kind, (int)r->source, r->score, r->cover, r->importance,
               (int)r->pinned, (int)r->confirmed);
    buf_put(out, r->value.data, r->value.size);
    buf_putc(out, '|');
    buf_put(out, r->key.data, r->key.size);
    buf_putc(out, '\n');
}

static void draw_filter(ground *g, sessile_memory_filter *f)
{
    if (draw(g, 3) == 0)
        f->kinds = 1 + draw(g, 15);
    if (draw(g, 3) == 0)
        f->sources = 1 + draw(g, 15);
    if (draw(g, 3) == 0)
        f->states = 1 + draw(g, 63);
    if (draw(g, 4) == 0)
        f->session = sessile_text(draw(g, 2) ? "monday" : "tuesday");
    if (draw(g, 4) == 0)
        f->key_prefix = sessile_text("key 1");
}

/* What was live at some earlier moments, and where entries came from. */
static void put_moments(buf *out, const states *s, ground *g)
{
    uint64_t *live = calloc(s->count / 64 + 1, sizeof *live);
    assert_non_null(live);
    for (int i = 0; i < 20; i++) {
        sessile_id before = draw(g, (uint32_t)s->count * 2 + 1);
        states_live_before(s, before, live);
        buf_printf(out, "before %x:", before);
        for (size_t k = 0; k < (s->count + 63) / 64; k++)
            buf_printf(out, " %llx", (unsigned long long)live[k]);
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < s->count; i++)
        buf_printf(out, "%x %x %x %x %d;", s->records[i].stamp, s->records[i].takers,
                   s->records[i].ended_by, s->records[i].below, s->records[i].flags);
    free(live);
}

/* The answers to the same questions for the same seed. */
static char *shown(sessile_memory *m, uint64_t seed)
{
    ground g = {.seed = seed};
    sessile_memory_stats stats;
    sessile_memory_row *rows;
    sessile_error err;
    char question[200], *text;
    size_t count;
    buf out;

    buf_init(&out, &allocator_default);
    for (int i = 0; i < 30; i++) {
        sessile_memory_search_options o;
        float vector[DIMS];
        sessile_memory_search_init(&o);
        put_words(&g, question, 1 + (int)draw(&g, 4));
        o.limit = 1 + draw(&g, 20);
        o.importance = draw(&g, 2) * 0.5;
        draw_filter(&g, &o.filter);
        for (size_t k = 0; k < DIMS; k++)
            vector[k] = (float)draw(&g, 2000) - 1000.5F;
        if (draw(&g, 2)) {
            o.vector = vector;
            o.dims = DIMS;
            o.model = sessile_text(draw(&g, 2) ? "newer" : NULL);
        }
        /* a vector of other dimensions than the model's is refused, however it is opened
         */
        if (sessile_memory_search(m, sessile_text(question), &o, &rows, &count, &err)) {
            buf_printf(&out, "? %s: %s\n", question, err.message);
            continue;
        }
        buf_printf(&out, "? %s: %zu\n", question, count);
        for (size_t k = 0; k < count; k++)
            put_row(&out, &rows[k]);
        sessile_free(rows);
    }
    for (int i = 0; i < 20; i++) {
        sessile_memory_list_options o = {.limit = 0};
        draw_filter(&g, &o.filter);
        must(sessile_memory_list(m, &o, &rows, &count, &err), &err);
        buf_printf(&out, "list: %zu\n", count);
        for (size_t k = 0; k < count; k++)
            put_row(&out, &rows[k]);
        sessile_free(rows);
    }
    put_moments(&out, &m->core->fold->states, &g);
    buf_printf(&out, "consent %x %d heard %x\n", m->core->fold->consent,
               m->core->fold->consented, (unsigned)m->core->fold->heard.count);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    buf_printf(&out, "%llu %llu %llu %llu %s\n", (unsigned long long)stats.entries,
               (unsigned long long)stats.keys, (unsigned long long)stats.verdicts,
               (unsigned long long)stats.vectors, stats.model);
    assert_false(out.failed);
    text = strdup(out.data);
    buf_deinit(&out);
    return text;
}

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

/* ------------------------------------------------------------------ the files */

static char *path_of(const ground *g, const char *suffix)
{
    char *path =
        keyed_file(g->root, "coder.memory/memory.jsonl", g->plain ? "nonce" : "\"s\":");
    char *end = path ? strstr(path, ".jsonl") : NULL, *out = calloc(1, 1000);
    assert_non_null(end);
    *end = 0;
    snprintf(out, 1000, "%s%s", path, suffix);
    free(path);
    return out;
}

/* How many blocks the handle got from the index. */
static uint64_t restored(const sessile_memory *m)
{
    return m->core->fold->restoring.blocks;
}

/* What a new process finds: another store, another handle. */
static char *shown_again(ground *g, uint64_t seed, uint64_t *blocks)
{
    sessile_memory *m;
    char *text;
    sessile_store_close(g->store);
    open_ground(g);
    m = memory_of(g->store, NULL);
    if (blocks)
        *blocks = restored(m);
    text = shown(m, seed);
    sessile_memory_close(m);
    return text;
}

static void expect_shown(ground *g, uint64_t seed, const char *truth, int used)
{
    uint64_t blocks;
    char *text = shown_again(g, seed, &blocks);
    if (used >= 0)
        assert_int_equal(blocks > 0, used);
    assert_string_equal(text, truth);
    free(text);
}

static void the_index_shows_what_the_lines_say(void **state)
{
    ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);

    for (int round = 0; round < 6; round++) {
        char *truth, *idx, question[200];
        uint64_t seed = 100 + (uint64_t)round;
        if (round)
            m = memory_of(g->store, NULL);
        tell(g, m, 150 + 260 * (size_t)round);
        truth = shown(m, seed);
        for (int i = 0; i < 4; i++) {
            put_words(g, question, 1 + (int)draw(g, 4));
            expect_reference(m, question, i & 1 ? 0 : 1 + draw(g, 15));
        }
        sessile_memory_close(m);
        idx = path_of(g, ".idx");
        if (round) /* written while it was told */
            expect_shown(g, seed, truth, 1);
        unlink(idx);
        expect_shown(g, seed, truth, 0);
        if (round) /* that opening wrote it again */
            expect_shown(g, seed, truth, 1);
        m = memory_of(g->store, NULL); /* and its hits are those of the reference */
        put_words(g, question, 3);
        expect_reference(m, question, 0);
        sessile_memory_close(m);
        free(idx);
        free(truth);
    }
}

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes read_bytes(const char *path)
{
    bytes b;
    b.data = file_read_all(path, &b.size);
    assert_non_null(b.data);
    return b;
}

/* A memory with an index of some blocks; its path and bytes, and what it shows. */
typedef struct told {
    char *idx, *truth;
    bytes good;
} told;

static told make_told(ground *g, size_t count)
{
    sessile_memory *m = memory_of(g->store, NULL);
    told t;
    tell(g, m, count);
    t.truth = shown(m, 7);
    sessile_memory_close(m);
    t.idx = path_of(g, ".idx");
    t.good = read_bytes(t.idx);
    return t;
}

static void free_told(told *t)
{
    free(t->idx);
    free(t->truth);
    free(t->good.data);
}

static void a_spoiled_index_is_not_used(void **state)
{
    ground *g = *state;
    told t = make_told(g, 1100);
    char *bad = malloc(t.good.size);

    for (size_t i = 0; i < 60; i++) { /* a byte anywhere */
        size_t at =
            i < 40 ? (size_t)draw(g, (uint32_t)t.good.size) : t.good.size - 1 - (i - 40);
        memcpy(bad, t.good.data, t.good.size);
        bad[at] ^= (char)(1 << draw(g, 8));
        file_write_all(t.idx, bad, t.good.size);
        expect_shown(g, 7, t.truth, -1);
    }
    for (size_t i = 0; i < 12; i++) { /* cut anywhere */
        file_write_all(t.idx, t.good.data, draw(g, (uint32_t)t.good.size));
        expect_shown(g, 7, t.truth, -1);
    }
    file_write_all(t.idx, t.good.data, t.good.size);
    expect_shown(g, 7, t.truth, 1);
    free(bad);
    free_told(&t);
}

static void a_spoiled_index_of_a_plain_log_is_not_used(void **state)
{
    ground *g = *state;
    sessile_store_close(g->store);
    folder_remove(g->root);
    g->root = folder_make();
    g->plain = 1;
    open_ground(g);
    a_spoiled_index_is_not_used(state);
}

static void an_index_of_an_earlier_copy_is_not_used(void **state)
{
    ground *g = *state;
    char *truth, *log;
    told t = make_told(g, 300);
    sessile_memory *m;
    bytes before, first, second;

    log = path_of(g, ".jsonl");
    before = read_bytes(log);
    /* the log goes on one way, then is brought back and goes on another way */
    m = memory_of(g->store, NULL);
    tell(g, m, 1000);
    sessile_memory_close(m);
    first = read_bytes(t.idx);
    sessile_store_close(g->store);
    file_write_all(log, before.data, before.size);
    file_write_all(t.idx, t.good.data, t.good.size);
    open_ground(g);
    g->seed = 99;
    m = memory_of(g->store, NULL);
    tell(g, m, 1000);
    truth = shown(m, 8);
    sessile_memory_close(m);
    second = read_bytes(t.idx);
    assert_true(second.size != first.size ||
                memcmp(second.data, first.data, first.size) != 0);
    expect_shown(g, 8, truth, 1);
    file_write_all(t.idx, first.data, first.size); /* of the first way */
    expect_shown(g, 8, truth, 0);
    file_write_all(t.idx, t.good.data,
                   t.good.size); /* of before: it is short, and true */
    expect_shown(g, 8, truth, 1);
    free(log);
    free(truth);
    free(before.data);
    free(first.data);
    free(second.data);
    free_told(&t);
}

/* Where the block that ends there begins. */
static size_t block_start(const bytes *b, size_t end)
{
    size_t start = 0;
    assert_memory_equal(b->data + end - 32, "sessidx1", 8);
    for (size_t i = 0; i < 8; i++)
        start |= (size_t)(unsigned char)b->data[end - 16 + i] << 8 * i;
    return start;
}

/* Blocks of two histories of one log in one file: each opens, and the last one agrees
 * with the log. */
static void blocks_of_two_histories_do_not_meet(void **state)
{
    ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);
    char *log, *idx, *truth;
    bytes before, first = {NULL, 0}, second;
    size_t start, end;
    sessile_id id;

    for (int i = 0; i < 250; i++) /* of one size each, so that blocks can change places */
        remember(m, NULL, "either", NULL);
    sessile_memory_close(m);
    log = path_of(g, ".jsonl");
    idx = path_of(g, ".idx");
    before = read_bytes(log);
    for (int way = 0; way < 2; way++) {
        if (way) {
            sessile_store_close(g->store);
            file_write_all(log, before.data, before.size);
            unlink(idx);
            open_ground(g);
        }
        m = memory_of(g->store, NULL);
        for (int i = 0; i < 600; i++) {
            id = remember(m, NULL, i >= 200 ? "both" : way ? "lamp" : "left", NULL);
            if (i == 100)
                judge(m, id, SESSILE_MEMORY_PIN);
        }
        truth = shown(m, 9);
        sessile_memory_close(m);
        if (!way) {
            free(truth);
            first = read_bytes(idx);
        }
    }
    second = read_bytes(idx);
    assert_int_equal(first.size, second.size);
    expect_shown(g, 9, truth, 1);
    /* the block in the middle of the other history */
    end = block_start(&second, second.size);
    start = block_start(&second, end);
    assert_int_equal(block_start(&first, first.size), end);
    assert_int_equal(block_start(&first, end), start);
    assert_true(start > 0);
    memcpy(second.data + start, first.data + start, end - start);
    file_write_all(idx, second.data, second.size);
    expect_shown(g, 9, truth, 0);
    free(log);
    free(idx);
    free(truth);
    free(before.data);
    free(first.data);
    free(second.data);
}

static void an_index_of_another_log_is_not_used(void **state)
{
    ground *g = *state;
    sessile_memory *m = memory_of(g->store, "bob");
    sessile_session_options named;
    sessile_session *s;
    bytes foreign[3];
    sessile_error err;
    char *path;
    told t;

    tell(g, m, 900); /* of a user */
    sessile_memory_close(m);
    path = keyed_file(g->root, "coder.memory/", "sessidx1");
    assert_non_null(path);
    foreign[0] = read_bytes(path);
    free(path);
    t = make_told(g, 900);
    foreign[1] = read_bytes(t.idx); /* of a memory that was removed */
    foreign[1].data = realloc(foreign[1].data, foreign[1].size * 2);
    memcpy(foreign[1].data + foreign[1].size, foreign[1].data, foreign[1].size);
    foreign[1].size *= 2;
    sessile_session_options_init(&named);
    named.id = sessile_text("s");
    named.agent = sessile_text("other");
    must(sessile_create(&s, g->store, &named, &err), &err);
    for (int i = 0; i < 600; i++)
        keyed_say(s, "something");
    sessile_session_close(s, NULL);
    path = keyed_file(g->root, "other/", "sessidx1");
    assert_non_null(path);
    foreign[2] = read_bytes(path);
    free(path);
    for (size_t i = 0; i < 3; i++) {
        file_write_all(t.idx, foreign[i].data, foreign[i].size);
        expect_shown(g, 7, t.truth, 0);
        expect_shown(g, 7, t.truth, 1); /* it was made again */
        free(foreign[i].data);
    }
    free_told(&t);
}

/* ------------------------------------------------------------------ upkeep */

static void the_index_has_no_word(void **state)
{
    ground *g = *state;
    told t = make_told(g, 600);
    for (size_t i = 0; i < WORDS; i++)
        if (strlen(vocabulary[i]) > 4) /* a short one may be in any bytes */
            assert_int_equal(keyed_files_with(g->root, vocabulary[i]), 0);
    assert_int_equal(keyed_files_with(g->root, "key 1"), 0);
    free_told(&t);
}

/* What a check finds, notes aside. */
static size_t findings(sessile_store *st)
{
    sessile_check *c;
    sessile_checked one;
    sessile_error err;
    size_t count = 0;
    must(sessile_check_open(&c, st, NULL, 0, &err), &err);
    for (must(sessile_check_next(c, &one, &err), &err); one.file;
         must(sessile_check_next(c, &one, &err), &err))
        for (size_t i = 0; i < one.count; i++)
            count += one.findings[i].severity != SESSILE_NOTE;
    sessile_check_close(c);
    return count;
}

static void a_check_compares_the_index(void **state)
{
    ground *g = *state;
    told t = make_told(g, 1000);
    char *other = malloc(t.good.size);

    assert_int_equal(findings(g->store), 0); /* written piece by piece, as it grew */
    unlink(t.idx);
    expect_shown(g, 7, t.truth, 0);
    assert_int_equal(findings(g->store), 0); /* written at once */
    memcpy(other, t.good.data, t.good.size);
    other[t.good.size / 2] ^= 1;
    file_write_all(t.idx, other, t.good.size);
    assert_int_equal(findings(g->store), 1);
    expect_shown(g, 7, t.truth, -1);
    assert_int_equal(findings(g->store), 0);
    free(other);
    free_told(&t);
}

static void a_memory_sealed_again_gets_another_index(void **state)
{
    ground *g = *state;
    told t = make_told(g, 900);
    sessile_reseal_state last;
    sessile_error err;
    uint64_t epoch;
    bytes now;

    must(sessile_keys_rotate(g->store, NULL, &epoch, &err), &err);
    must(keyed_reseal(g->store, NULL, &last, &err), &err);
    expect_shown(g, 7, t.truth, -1);
    expect_shown(g, 7, t.truth, 1);
    now = read_bytes(t.idx);
    assert_true(now.size != t.good.size || memcmp(now.data, t.good.data, now.size) != 0);
    file_write_all(t.idx, t.good.data, t.good.size); /* the one under the old key */
    expect_shown(g, 7, t.truth, 0);
    assert_int_equal(findings(g->store), 0);
    free(now.data);
    free_told(&t);
}

/* Another process writes, from when it is told to until it is told to stop. */
static void keep_writing(void *arg, int in, int out)
{
    ground g = {.root = arg, .seed = 5};
    sessile_memory *m;
    open_ground(&g);
    m = memory_of(g.store, NULL);
    child_tell(out, 'y');
    child_hear(in);
    tell(&g, m, 1500);
    sessile_memory_close(m);
    sessile_store_close(g.store);
    child_tell(out, 'y');
    child_hear(in);
}

static void it_can_be_opened_while_another_process_writes(void **state)
{
    ground *g = *state;
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
        free(shown(m, (uint64_t)i)); /* nothing fails on the way */
        free(shown(held, (uint64_t)i));
        sessile_memory_close(m);
    }
    assert_int_equal(child_hear(c.from), 'y');
    child_end(&c);
    truth = shown(held, 3); /* which read every line itself */
    sessile_memory_close(held);
    expect_shown(g, 3, truth, 1);
    m = memory_of(g->store, NULL);
    tell(g, m, 1800); /* this one goes on with the index of the other */
    text = shown(m, 4);
    sessile_memory_close(m);
    expect_shown(g, 4, text, 1);
    assert_int_equal(findings(g->store), 0);
    free(truth);
    free(text);
}

/* Vectors and texts that do not fit into a block are left to the log. */
static void what_is_too_large_for_a_block_is_read_from_the_log(void **state)
{
    enum { BIG = 4096, COUNT = 256, TEXT = 60000 };
    ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);
    float *vectors = malloc((size_t)BIG * COUNT * sizeof *vectors);
    sessile_id ids[COUNT];
    char *truth, *text = malloc(TEXT + 1);
    sessile_error err;

    for (int i = 0; i < COUNT; i++)
        ids[i] = remember(m, NULL, vocabulary[draw(g, WORDS)], NULL);
    for (int round = 0; round < 12; round++) { /* a megabyte each */
        for (size_t i = 0; i < (size_t)BIG * COUNT; i++)
            vectors[i] = (float)draw(g, 2000) - 1000.5F;
        must(sessile_memory_embed(m, sessile_text("newer"), BIG, ids, vectors, COUNT,
                                  &err),
             &err);
    }
    tell(g, m, 600);
    for (int i = 0; i < 250; i++) { /* a term of three letters in four bytes */
        for (int k = 0; k < TEXT; k++)
            text[k] =
                (char)(k % 4 == 3 ? ' ' : "bdfgklmnprstvwxz0123456789"[draw(g, 26)]);
        text[TEXT] = 0;
        remember(m, NULL, text, text);
    }
    tell(g, m, 1100);
    truth = shown(m, 6);
    sessile_memory_close(m);
    expect_shown(g, 6, truth, 1);
    assert_int_equal(findings(g->store), 0);
    free(vectors);
    free(truth);
    free(text);
}

#define ON_GROUND(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_GROUND(the_index_shows_what_the_lines_say),
        ON_GROUND(a_spoiled_index_is_not_used),
        ON_GROUND(a_spoiled_index_of_a_plain_log_is_not_used),
        ON_GROUND(an_index_of_an_earlier_copy_is_not_used),
        ON_GROUND(blocks_of_two_histories_do_not_meet),
        ON_GROUND(an_index_of_another_log_is_not_used),
        ON_GROUND(the_index_has_no_word),
        ON_GROUND(a_check_compares_the_index),
        ON_GROUND(a_memory_sealed_again_gets_another_index),
        ON_GROUND(it_can_be_opened_while_another_process_writes),
        ON_GROUND(what_is_too_large_for_a_block_is_read_from_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
