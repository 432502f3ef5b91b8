/*
 * explain.c: how the score of a hit came about.
 *
 * Postings know terms as hashes alone, so the question is cut into words once more.
 */
#include <stddef.h>

#include "base/text.h"
#include "codec/json.h"
#include "memory/memory.h"

typedef struct explaining {
    memory_fold *fold;
    uint32_t entry;
    buf *out;
    const rank_question *question;
    char *said; /* of each of its terms: 1 when it was written */
    const char *separator;
} explaining;

static void put_number(buf *out, const char *name, double number)
{
    buf_printf(out, ",\"%s\":", name);
    json_put_millionths(out, number);
}

/* The place of a term among those of the question; they are sorted. */
static size_t place_of(const rank_question *q, uint64_t term)
{
    size_t low = 0, high = q->term_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (q->terms[middle] < term)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int put_term(void *arg, const char *text, size_t size)
{
    explaining *e = arg;
    uint64_t term = hash64_lasting(text, size);
    size_t at = place_of(e->question, term);

    if (at == e->question->term_count || e->question->terms[at] != term || e->said[at])
        return 0;
    e->said[at] = 1;
    for (int field = 0; field < FIELDS; field++) {
        double gave = postings_explain(&e->fold->postings, field, term, e->entry);
        if (gave <= 0)
            continue;
        buf_printf(e->out, "%s{\"term\":", e->separator);
        json_put_string(e->out, text, size);
        buf_puts(e->out,
                 field == FIELD_MAIN ? ",\"field\":\"main\"" : ",\"field\":\"also\"");
        put_number(e->out, "gave", gave);
        buf_putc(e->out, '}');
        e->separator = ",";
    }
    return 0;
}

sessile_status memory_explain(row_list *l, memory_fold *f, sessile_slice question,
                              const rank_question *q, const rank_hit *hit,
                              sessile_error *err)
{
    const allocator *a = l->text.alloc;
    double recency, importance, vectors = 0;
    explaining e = {f, hit->entry, &l->scratch, q, NULL, ""};
    int failed;

    buf_clear(e.out);
    buf_puts(e.out, "{\"terms\":[");
    e.said = mem_zalloc(a, q->term_count + 1);
    failed = !e.said || words_each(f->words, question.data ? question.data : "",
                                   question.size, WORDS_QUESTION, put_term, &e);
    mem_free(a, e.said, q->term_count + 1);
    if ((double)hit->cosine > q->factors->mean)
        vectors = q->factors->by_vector * ((double)hit->cosine - q->factors->mean);
    rank_boosts(q, hit->entry, &recency, &importance);
    buf_putc(e.out, ']');
    put_number(e.out, "lex", (double)hit->lex);
    put_number(e.out, "words", q->factors->by_words * (double)hit->lex);
    put_number(e.out, "vectors", vectors);
    put_number(e.out, "recency", recency);
    put_number(e.out, "importance", importance);
    buf_putc(e.out, '}');
    if (failed || e.out->failed ||
        rows_put(l, offsetof(sessile_memory_row, explain), e.out->data, e.out->size))
        return fail_nomem(err);
    return SESSILE_OK;
}
