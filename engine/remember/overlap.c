/* overlap.c: whether the words of a text stand in others. */
#include "remember/overlap.h"

#include "base/text.h"

void word_set_init(word_set *s, const allocator *a)
{
    map_init(&s->words, a);
    s->failed = 0;
}

void word_set_deinit(word_set *s)
{
    map_deinit(&s->words);
}

static int add_word(void *arg, const char *term, size_t size)
{
    word_set *s = arg;
    if (map_put(&s->words, hash64(term, size), 1))
        s->failed = 1;
    return s->failed;
}

void word_set_add(word_set *s, words *w, const char *text, size_t size)
{
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
