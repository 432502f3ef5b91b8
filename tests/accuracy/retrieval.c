/*
 * retrieval.c: how often a memory finds what answers a question, in conversations that a
 * person brings: the file locomo10.json of LoCoMo, whose questions name the turns that
 * answer them.
 *
 * Each turn is an entry (what was said, the caption of a picture, who said it, the day).
 * With `also`, an entry is found by the turn before it, too. Printed is R@k: the share of
 * a question's turns among the best k, averaged over questions; and the share of turns
 * that fit into a number of tokens (four characters each) of the best entries.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "memory/rank.h"
#include "memory/terms.h"

enum { BEST = 200, TURNS = 2000, SESSIONS = 100 };

static const size_t at_k[] = {1, 5, 10, 20, 50};
static const size_t budgets[] = {250, 500, 1000, 2000, 4000};
enum { AT = sizeof at_k / sizeof *at_k, BUDGETS = sizeof budgets / sizeof *budgets };

typedef struct figures {
    double found[AT], within[BUDGETS];
    size_t questions;
} figures;

typedef struct conversation {
    char *ids[TURNS];
    size_t sizes[TURNS]; /* characters of a turn */
    size_t count;
    postings postings;
    words *words;
} conversation;

_Noreturn static void broken(const char *what)
{
    fprintf(stderr, "retrieval: %s\n", what);
    exit(1);
}

static char *text_of(json value)
{
    buf out;
    char *copy;
    buf_init(&out, &allocator_default);
    if (value.type == JSON_STRING && json_string(&out, value))
        broken("memory");
    copy = strdup(out.data ? out.data : "");
    buf_deinit(&out);
    return copy;
}

/* "1:56 pm on 8 May, 2023": the day. */
static const char *day_in(const char *date)
{
    const char *day = strstr(date, " on ");
    return day ? day + 4 : date;
}

static void add_turn(conversation *c, json turn, const char *day, char **before, int also)
{
    term_list terms[FIELDS];
    char *said = text_of(json_get(turn, "text"));
    char *caption = text_of(json_get(turn, "blip_caption"));
    char *speaker = text_of(json_get(turn, "speaker"));
    const char *parts[] = {said, caption, speaker, day};

    for (int f = 0; f < FIELDS; f++)
        terms_init(&terms[f], &allocator_default);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (terms_add(&terms[FIELD_MAIN], c->words, parts[i], strlen(parts[i]), 0))
            broken("memory");
    if (also && *before &&
        terms_add(&terms[FIELD_ALSO], c->words, *before, strlen(*before), 0))
        broken("memory");
    if (c->count == TURNS ||
        postings_add(&c->postings,
                     (posting_terms[]){{terms[0].at, terms[0].count},
                                       {terms[1].at, terms[1].count}},
                     1))
        broken("too many turns");
    c->sizes[c->count] = strlen(said) + strlen(caption) + strlen(speaker) + 20;
    c->ids[c->count++] = text_of(json_get(turn, "dia_id"));
    free(*before);
    *before = said;
    free(caption);
    free(speaker);
    for (int f = 0; f < FIELDS; f++)
        terms_deinit(&terms[f]);
}

static void read_conversation(conversation *c, json from, int also)
{
    c->count = 0;
    postings_init(&c->postings, &allocator_default);
    for (int n = 1; n <= SESSIONS; n++) {
        char name[40], date_name[60];
        char *before = NULL, *date;
        json session;
        snprintf(name, sizeof name, "session_%d", n);
        snprintf(date_name, sizeof date_name, "%s_date_time", name);
        session = json_get(from, name);
        date = text_of(json_get(from, date_name));
        for (json_iter it = json_begin(session); json_next(&it);)
            add_turn(c, it.value, day_in(date), &before, also);
        free(before);
        free(date);
    }
}

/* The turns that a label names: most name one, some "D8:6; D9:17". */
static size_t names_in(const char *label, const char *id, int *is_one)
{
    size_t count = 0, size = strlen(id);
    *is_one = 0;
    for (label += strspn(label, " ;,"); *label; label += strspn(label, " ;,")) {
        size_t part = strcspn(label, " ;,");
        *is_one |= part == size && !memcmp(label, id, size);
        count++;
        label += part;
    }
    return count;
}

/* How many turns a question's labels name, and whether `id` is one of them. */
static size_t labels_of(json evidence, const char *id, int *is_one)
{
    size_t count = 0;
    *is_one = 0;
    for (json_iter it = json_begin(evidence); json_next(&it);) {
        char *label = text_of(it.value);
        int here;
        count += names_in(label, id, &here);
        *is_one |= here;
        free(label);
    }
    return count;
}

static void ask(conversation *c, json question, figures *sum)
{
    json evidence = json_get(question, "evidence");
    char *text = text_of(json_get(question, "question"));
    rank_hit hits[BEST];
    rank_question q = {.limit = BEST};
    term_list terms;
    size_t wanted, tokens = 0;
    int64_t count;
    int good;

    wanted = labels_of(evidence, "", &good);
    terms_init(&terms, &allocator_default);
    if (terms_add(&terms, c->words, text, strlen(text), WORDS_QUESTION))
        broken("memory");
    terms_distinct(&terms);
    q.terms = terms.at;
    q.term_count = terms.count;
    count = rank(&c->postings, NULL, &q, hits);
    for (int64_t i = 0; i < count; i++) {
        labels_of(evidence, c->ids[hits[i].entry], &good);
        tokens += c->sizes[hits[i].entry] / 4;
        for (size_t k = 0; good && k < AT; k++)
            sum->found[k] += (size_t)i < at_k[k] ? 1.0 / (double)wanted : 0;
        for (size_t k = 0; good && k < BUDGETS; k++)
            sum->within[k] += tokens <= budgets[k] ? 1.0 / (double)wanted : 0;
    }
    sum->questions++;
    terms_deinit(&terms);
    free(text);
}

/* What a recall leaves out because it meets too little of the question: of the questions
 * whose evidence is among FOUND hits, those that keep some; of questions about other
 * people's lives, those that find anything. */
enum { FOUND = 24, LEASTS = 4 };
static const double leasts[LEASTS] = {0.15, 0.2, 0.25, 0.3};
typedef struct passing {
    size_t own, kept[LEASTS], strangers, passed[LEASTS];
} passing;

static void ask_with_least(conversation *c, json question, int is_own, passing *sum)
{
    json evidence = json_get(question, "evidence");
    char *text = text_of(json_get(question, "question"));
    rank_hit hits[FOUND];
    rank_question q = {.limit = FOUND};
    double best = -1; /* cover of evidence, or of anything */
    term_list terms;
    int64_t count;

    terms_init(&terms, &allocator_default);
    if (terms_add(&terms, c->words, text, strlen(text), WORDS_QUESTION))
        broken("memory");
    terms_distinct(&terms);
    q.terms = terms.at;
    q.term_count = terms.count;
    count = rank(&c->postings, NULL, &q, hits);
    for (int64_t i = 0; i < count; i++) {
        int good = 1;
        if (is_own)
            labels_of(evidence, c->ids[hits[i].entry], &good);
        if (good && hits[i].cover > best)
            best = hits[i].cover;
    }
    if (is_own)
        sum->own += best >= 0;
    else
        sum->strangers++;
    for (int k = 0; k < LEASTS; k++)
        *(is_own ? &sum->kept[k] : &sum->passed[k]) += best >= leasts[k];
    terms_deinit(&terms);
    free(text);
}

/* The questions of one conversation that have evidence, asked about another, or itself.
 */
static void ask_all(conversation *c, json questions, int is_own, passing *sum)
{
    for (json_iter q = json_begin(questions); json_next(&q);) {
        json_iter evidence = json_begin(json_get(q.value, "evidence"));
        int64_t category = 0;
        (void)json_int(json_get(q.value, "category"), &category);
        if (category >= 1 && category <= 4 && json_next(&evidence))
            ask_with_least(c, q.value, is_own, sum);
    }
}

static void print_passing(const passing *p)
{
    for (int k = 0; k < LEASTS; k++)
        printf(
            "cover of %.2f or more: keeps %.3f of %zu questions whose evidence is found, "
            "lets %.3f of %zu about strangers pass\n",
            leasts[k], (double)p->kept[k] / (double)p->own, p->own,
            (double)p->passed[k] / (double)p->strangers, p->strangers);
}

static void print(const char *name, const figures *f)
{
    printf("%-22s %5zu", name, f->questions);
    for (size_t k = 0; k < AT; k++)
        printf("  %.3f", f->found[k] / (double)f->questions);
    printf("  |");
    for (size_t k = 0; k < BUDGETS; k++)
        printf("  %.3f", f->within[k] / (double)f->questions);
    putchar('\n');
}

static void measure(json all, int also)
{
    static conversation c;
    figures by[5], sum = {.questions = 0};
    passing passes = {.own = 0};
    json before = {0};
    char name[40];

    memset(by, 0, sizeof by);
    if (words_open(&c.words, WORDS_LANGUAGE, &allocator_default, NULL))
        broken("no English");
    for (json_iter it = json_begin(all); json_next(&it);) {
        json questions = json_get(it.value, "qa");
        read_conversation(&c, json_get(it.value, "conversation"), also);
        for (json_iter q = json_begin(questions); json_next(&q);) {
            json first = json_get(q.value, "evidence");
            int64_t category = 0;
            json_iter evidence = json_begin(first);
            (void)json_int(json_get(q.value, "category"), &category);
            if (category < 1 || category > 4 || !json_next(&evidence))
                continue; /* 5: about what was never said */
            ask(&c, q.value, &by[category]);
            ask(&c, q.value, &sum);
        }
        ask_all(&c, questions, 1, &passes);
        if (before.size)
            ask_all(&c, before, 0, &passes);
        before = questions;
        for (size_t i = 0; i < c.count; i++)
            free(c.ids[i]);
        postings_deinit(&c.postings);
    }
    for (int i = 1; i < 5; i++) {
        snprintf(name, sizeof name, "%s, category %d", also ? "also" : "words", i);
        print(name, &by[i]);
    }
    print(also ? "also, all" : "words, all", &sum);
    print_passing(&passes);
    words_close(c.words);
}

int main(int argc, char **argv)
{
    buf raw, checked;
    sessile_error err;
    FILE *file;
    size_t got;

    if (argc != 2)
        broken("usage: retrieval FILE (locomo10.json)");
    buf_init(&raw, &allocator_default);
    buf_init(&checked, &allocator_default);
    file = fopen(argv[1], "rb");
    if (!file)
        broken("cannot open the file");
    do {
        if (buf_reserve(&raw, 65536))
            broken("memory");
        got = fread(raw.data + raw.size, 1, 65536, file);
        raw.size += got;
    } while (got > 0);
    fclose(file);
    if (json_check(&checked, raw.data, raw.size, 64, &err))
        broken(err.message);
    printf("%-22s %5s", "entries have", "asked");
    for (size_t k = 0; k < AT; k++)
        printf("  R@%-3zu", at_k[k]);
    printf("  |");
    for (size_t k = 0; k < BUDGETS; k++)
        printf("  %4zut", budgets[k]);
    putchar('\n');
    measure(json_of(checked.data, checked.size), 0);
    measure(json_of(checked.data, checked.size), 1);
    buf_deinit(&raw);
    buf_deinit(&checked);
    return 0;
}
