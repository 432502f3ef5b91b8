/* overlap.c: whether the words of a text stand in others. */
#include "remember/overlap.h"

#include "base/text.h"
#include "sessile_memory.h"

void word_set_init(word_set *s, const allocator *a)
{
    map_init(&s->words, a);
    s->last = 0;
    s->failed = 0;
}

void word_set_deinit(word_set *s)
{
    map_deinit(&s->words);
}

static uint64_t pair_hash(uint64_t first, uint64_t second)
{
    const uint64_t both[] = {first, second};
    return hash64(both, sizeof both);
}

/* A single character of a script without spaces: its pairs stand for it. */
static int is_single(const char *term, size_t size)
{
    return size > 1 && utf8_length(term, size) == size;
}

static int add_word(void *arg, const char *term, size_t size)
{
    word_set *s = arg;
    uint64_t hash = hash64(term, size);
    if (map_put(&s->words, hash, 1))
        s->failed = 1;
    if (is_single(term, size))
        return s->failed;
    if (s->last && map_put(&s->words, pair_hash(s->last, hash), 1))
        s->failed = 1;
    s->last = hash;
    return s->failed;
}

void word_set_add(word_set *s, words *w, const char *text, size_t size)
{
    s->last = 0;
    if (size && words_each(w, text, size, 0, add_word, s))
        s->failed = 1;
}

static int is_number(const char *term, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (term[i] < '0' || term[i] > '9')
            return 0;
    return 1;
}

typedef struct overlap {
    const word_set *in;
    size_t words, words_met, numbers, numbers_met;
} overlap;

static int count_word(void *arg, const char *term, size_t size)
{
    overlap *o = arg;
    uint32_t value;
    size_t met = (size_t)map_get(&o->in->words, hash64(term, size), &value);
    int number = is_number(term, size);

    *(number ? &o->numbers : &o->words) += 1;
    *(number ? &o->numbers_met : &o->words_met) += met;
    return 0;
}

int word_set_has_half(const word_set *s, words *w, sessile_slice text)
{
    overlap o = {.in = s};
    if (text.size && words_each(w, text.data, text.size, 0, count_word, &o))
        return -1;
    if (o.words)
        return 2 * o.words_met >= o.words;
    return o.numbers && 2 * o.numbers_met >= o.numbers;
}

/* ------------------------------------------------------------------ additions */

/* Terms of a value of a policy, which has 2 KiB. */
enum { TERMS = SESSILE_MEMORY_RUN_VALUE };

typedef struct terms {
    uint64_t at[TERMS];
    size_t count;
} terms;

static int keep_term(void *arg, const char *term, size_t size)
{
    terms *t = arg;
    if (t->count < TERMS)
        t->at[t->count++] = hash64(term, size);
    return 0;
}

/* 1: in a text of the set a word stands next to another one of the terms. */
static int is_beside(const word_set *s, const terms *t, uint64_t word)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->at[i] != word && (map_get(&s->words, pair_hash(t->at[i], word), NULL) ||
                                 map_get(&s->words, pair_hash(word, t->at[i]), NULL)))
            return 1;
    return 0;
}

int word_set_adds_half(const word_set *named, const word_set *from, const word_set *other,
                       words *w, sessile_slice text)
{
    size_t added = 0, met = 0;
    terms t;

    t.count = 0;
    if (text.size && words_each(w, text.data, text.size, 0, keep_term, &t))
        return -1;
    for (size_t i = 0; i < t.count; i++) {
        if (map_get(&named->words, t.at[i], NULL))
            continue;
        added++;
        met += map_get(&from->words, t.at[i], NULL) &&
               !map_get(&other->words, t.at[i], NULL) && is_beside(from, &t, t.at[i]);
    }
    return added && 2 * met >= added;
}

/* ------------------------------------------------------------------ copies */

typedef struct copying {
    const word_set *from, *others[2];
    uint64_t last;
    size_t pairs, met, only, row, longest; /* only: that the others do not have */
} copying;

static int count_pair(void *arg, const char *term, size_t size)
{
    copying *c = arg;
    uint64_t hash = hash64(term, size), pair = pair_hash(c->last, hash);

    if (is_single(term, size))
        return 0;
    if (c->last) {
        int met = map_get(&c->from->words, pair, NULL);
        int only = met && !map_get(&c->others[0]->words, pair, NULL) &&
                   !map_get(&c->others[1]->words, pair, NULL);
        c->pairs++;
        c->met += (size_t)met;
        c->only += (size_t)only;
        c->row = only ? c->row + 1 : 0;
        c->longest = c->row > c->longest ? c->row : c->longest;
    }
    c->last = hash;
    return 0;
}

int word_set_is_copied(const word_set *from, const word_set *other,
                       const word_set *another, words *w, sessile_slice text, int is_name)
{
    copying c = {.from = from, .others = {other, another}};
    if (text.size && words_each(w, text.data, text.size, 0, count_pair, &c))
        return -1;
    if (is_name)
        return c.longest >= 2;
    return c.longest >= 3 || (c.only && (2 * c.only >= c.pairs || c.met == c.pairs));
}
