/* memory_ground.c: memories of random entries, and what they show. */
#include "support/memory_ground.h"
#include "guard/enter.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/logs.h"
#include "support/memories.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"

static const char ground_key[] = "a secret of this test";

void memory_ground_open(memory_ground *g)
{
    sessile_store_options o;
    sessile_error err;

    if (!g->plain) {
        g->store = keyed_open(g->root, ground_key);
        return;
    }
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&g->store, g->root, &o, &err), &err);
}

int memory_ground_set_up(void **state)
{
    memory_ground *g = calloc(1, sizeof *g);
    g->root = folder_make();
    g->seed = 1;
    memory_ground_open(g);
    *state = g;
    return 0;
}

int memory_ground_tear_down(void **state)
{
    memory_ground *g = *state;
    sessile_store_close(g->store);
    folder_remove(g->root);
    free(g);
    return 0;
}

uint32_t memory_draw(memory_ground *g, uint32_t below)
{
    g->seed = g->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(g->seed >> 33) % below;
}

/* ------------------------------------------------------------------ a random memory */

const char *const memory_vocabulary[MEMORY_WORDS] = {
    "vim",  "emacs", "editor", "aisle", "seat", "train", "coffee", "tea", "Berlin",
    "Lodz", "piano", "guitar", "cat",   "dog",  "bread", "cheese", "run", "swim"};

void memory_put_words(memory_ground *g, char *out, int count)
{
    *out = 0;
    while (count-- > 0) {
        strcat(out, memory_vocabulary[memory_draw(g, MEMORY_WORDS)]);
        strcat(out, count ? " " : "");
    }
}

static void write_some(memory_ground *g, sessile_memory *m, sessile_id last)
{
    enum { MOST = 8 };
    sessile_memory_write_entry e[MOST];
    char values[MOST][100], also[MOST][100], keys[MOST][20];
    sessile_id replaces[MOST];
    sessile_memory_from from[MOST];
    sessile_error err;
    size_t count = 1 + memory_draw(g, MOST);

    for (size_t i = 0; i < count; i++) {
        sessile_memory_write_init(&e[i]);
        memory_put_words(g, values[i], 1 + (int)memory_draw(g, 6));
        memory_put_words(g, also[i], memory_draw(g, 3) ? 0 : 3);
        snprintf(keys[i], sizeof keys[i], "key %u", memory_draw(g, 40));
        e[i].value = sessile_text(values[i]);
        e[i].also = sessile_text(also[i]);
        e[i].key = sessile_text(memory_draw(g, 2) ? keys[i] : NULL);
        e[i].kind = (sessile_memory_kind)memory_draw(g, 4);
        e[i].source = (sessile_memory_source)memory_draw(g, 4);
        e[i].importance = memory_draw(g, 5) / 4.0;
        e[i].pending = memory_draw(g, 9) == 0;
        replaces[i] = 1 + memory_draw(g, last + 1);
        e[i].replaces = &replaces[i];
        e[i].replace_count = last && memory_draw(g, 6) == 0;
        memset(&from[i], 0, sizeof from[i]);
        from[i].session = sessile_text(memory_draw(g, 2) ? "monday" : "tuesday");
        from[i].first = 1;
        from[i].last = 2;
        e[i].from = &from[i];
        e[i].from_count = memory_draw(g, 2);
    }
    /* an id in replaces may be of no memory: then nothing is written */
    (void)sessile_memory_write(m, e, count, NULL, &err);
}

static void embed_some(memory_ground *g, sessile_memory *m, const char *model)
{
    enum { MOST = 40 };
    sessile_memory_list_options o = {.limit = MOST};
    sessile_memory_row *rows;
    sessile_id ids[MOST];
    float vectors[MOST * MEMORY_GROUND_DIMS];
    sessile_error err;
    size_t count;

    must(sessile_memory_list(m, &o, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        ids[i] = rows[i].id;
        for (size_t k = 0; k < MEMORY_GROUND_DIMS; k++)
            vectors[i * MEMORY_GROUND_DIMS + k] = (float)memory_draw(g, 2000) - 1000.5F;
    }
    must(sessile_memory_embed(m, sessile_text(model), MEMORY_GROUND_DIMS, ids, vectors,
                              count, &err),
         &err);
    sessile_free(rows);
}

/* Until the log has count entries or a few more. */
void memory_tell(memory_ground *g, sessile_memory *m, size_t count)
{
    sessile_error err;

    while (log_count(m->core->log) < count) {
        sessile_id last = (sessile_id)log_count(m->core->log);
        uint32_t what = memory_draw(g, 20);
        if (what == 0) {
            embed_some(g, m, memory_draw(g, 3) ? "newer" : "older");
        } else if (what < 8 && last > 1) {
            sessile_id ids[3] = {1 + memory_draw(g, last - 1),
                                 1 + memory_draw(g, last - 1),
                                 1 + memory_draw(g, last - 1)};
            (void)sessile_memory_verdict(m, ids, 1 + memory_draw(g, 3),
                                         (sessile_memory_verdict_kind)memory_draw(g, 7),
                                         sessile_text(NULL), sessile_text("host"), NULL,
                                         &err);
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

static void draw_filter(memory_ground *g, sessile_memory_filter *f)
{
    if (memory_draw(g, 3) == 0)
        f->kinds = 1 + memory_draw(g, 15);
    if (memory_draw(g, 3) == 0)
        f->sources = 1 + memory_draw(g, 15);
    if (memory_draw(g, 3) == 0)
        f->states = 1 + memory_draw(g, 63);
    if (memory_draw(g, 4) == 0)
        f->session = sessile_text(memory_draw(g, 2) ? "monday" : "tuesday");
    if (memory_draw(g, 4) == 0)
        f->key_prefix = sessile_text("key 1");
}

/* What was live at some earlier moments, and where entries came from. */
static void put_moments(buf *out, const states *s, memory_ground *g)
{
    uint64_t *live = calloc(s->count / 64 + 1, sizeof *live);
    assert_non_null(live);
    for (int i = 0; i < 20; i++) {
        sessile_id before = memory_draw(g, (uint32_t)s->count * 2 + 1);
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
char *memory_shown(sessile_memory *m, uint64_t seed)
{
    memory_ground g = {.seed = seed};
    sessile_memory_stats stats;
    sessile_memory_row *rows;
    sessile_error err;
    char question[200], *text;
    size_t count;
    buf out;

    buf_init(&out, &allocator_default);
    for (int i = 0; i < 30; i++) {
        sessile_memory_search_options o;
        float vector[MEMORY_GROUND_DIMS];
        sessile_memory_search_init(&o);
        memory_put_words(&g, question, 1 + (int)memory_draw(&g, 4));
        o.limit = 1 + memory_draw(&g, 20);
        o.importance = memory_draw(&g, 2) * 0.5;
        draw_filter(&g, &o.filter);
        for (size_t k = 0; k < MEMORY_GROUND_DIMS; k++)
            vector[k] = (float)memory_draw(&g, 2000) - 1000.5F;
        if (memory_draw(&g, 2)) {
            o.vector = vector;
            o.dims = MEMORY_GROUND_DIMS;
            o.model = sessile_text(memory_draw(&g, 2) ? "newer" : NULL);
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

/* ------------------------------------------------------------------ the files */

char *memory_file(const memory_ground *g, const char *suffix)
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
uint64_t memory_blocks_restored(const sessile_memory *m)
{
    return m->core->fold->restoring.blocks;
}

/* What a new process finds: another store, another handle. */
char *memory_shown_again(memory_ground *g, uint64_t seed, uint64_t *blocks)
{
    sessile_memory *m;
    char *text;
    sessile_store_close(g->store);
    memory_ground_open(g);
    m = memory_of(g->store, NULL);
    if (blocks)
        *blocks = memory_blocks_restored(m);
    text = memory_shown(m, seed);
    sessile_memory_close(m);
    return text;
}

void memory_expect_shown(memory_ground *g, uint64_t seed, const char *truth, int used)
{
    uint64_t blocks;
    char *text = memory_shown_again(g, seed, &blocks);
    if (used >= 0)
        assert_int_equal(blocks > 0, used);
    assert_string_equal(text, truth);
    free(text);
}

file_bytes bytes_read(const char *path)
{
    file_bytes b;
    b.data = file_read_all(path, &b.size);
    assert_non_null(b.data);
    return b;
}

memory_told memory_told_make(memory_ground *g, size_t count)
{
    sessile_memory *m = memory_of(g->store, NULL);
    memory_told t;
    memory_tell(g, m, count);
    t.truth = memory_shown(m, 7);
    sessile_memory_close(m);
    t.idx = memory_file(g, ".idx");
    t.good = bytes_read(t.idx);
    return t;
}

void memory_told_free(memory_told *t)
{
    free(t->idx);
    free(t->truth);
    free(t->good.data);
}

/* What a check finds, notes aside. */
size_t memory_findings(sessile_store *st)
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
