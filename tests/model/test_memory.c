/*
 * test_memory.c: random operations on memories by two processes, against a model.
 *
 * Two processes have the same three memories of a store open: two users' and the agent's.
 * Both draw the same operations from one seed; one of them makes each, and tells the
 * other when it was acknowledged. Then both ask random questions with random filters, and
 * compare the answers with the model (support/state_rules.h): what is deleted, replaced,
 * expired, pending, rejected, erased or another user's is never a hit, and what is live
 * and matches always is. A conflict must be one exactly when the model says so.
 *
 * Own stores: sealed and plain folders, SQLite, PostgreSQL.
 *
 *   SEED=7 test_memory        other operations; SESSILE_SOAK=1: a hundred times as many
 */
#include "support/check.h"
#include "support/children.h"
#include "support/memories.h"
#include "support/postgres.h"
#include "support/sessions.h"
#include "support/state_rules.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMORIES = 3,
    KEYS = 4,
    BATCH = 3,
    OPERATIONS = 90,
    QUESTIONS = 4,
    NEVER_MS = 1 << 30
};

static const char *const users[MEMORIES] = {"ann", "bob", NULL};
static const char *const vocabulary[] = {"amber", "basil", "cedar", "delta",
                                         "ember", "flint", "grove", "heron"};
enum { WORDS = sizeof vocabulary / sizeof *vocabulary };

/* What an entry says, beside what the rules need. */
typedef struct told {
    unsigned words; /* a bit for each, main or also */
    char value[80], also[60];
    sessile_memory_kind kind;
    sessile_memory_source source;
    int session;  /* 0: none; 1, 2 */
    int metadata; /* 0: none; 1, 2 */
    int64_t from_ms, until_ms, time_ms;
    int erased;
} told;

typedef struct world {
    sessile_memory *memory;
    rule_memory rules;
    told about[RULE_ENTRIES];
    sessile_id next; /* entry of the log */
    const char *user;
} world;

static world worlds[MEMORIES];
static unsigned plan, asked; /* seeds: of both processes, and of this one */
static unsigned long searches;

static unsigned draw(unsigned *seed, unsigned n)
{
    return (unsigned)rand_r(seed) % n;
}

/* ------------------------------------------------------------------ the model */

/* Long after all that expires soon, long before what does not. */
static const int64_t LATER = NEVER_MS / 2;

static sessile_memory_state state_of(const world *w, size_t i)
{
    return w->about[i].erased ? SESSILE_MEMORY_ERASED
                              : rule_state(&w->rules, &w->rules.entries[i], LATER);
}

static const rule_entry *holder(const world *w, int key)
{
    for (size_t i = 0; i < w->rules.count; i++)
        if (w->rules.entries[i].key == key && state_of(w, i) == SESSILE_MEMORY_LIVE)
            return &w->rules.entries[i];
    return NULL;
}

static void draw_words(told *t, char *out, int count)
{
    *out = 0;
    while (count-- > 0) {
        unsigned word = draw(&plan, WORDS);
        t->words |= 1u << word;
        sprintf(out + strlen(out), "%s ", vocabulary[word]);
    }
}

/* Draws an entry behind the others, which is not counted yet. */
static void draw_entry(world *w, size_t at)
{
    rule_entry *e = &w->rules.entries[at];
    told *t = &w->about[at];

    memset(t, 0, sizeof *t);
    *e = (rule_entry){.key = (int)draw(&plan, 2 * KEYS) - KEYS};
    e->key = e->key < 0 ? -1 : e->key;
    draw_words(t, t->value, 1 + (int)draw(&plan, 3));
    sprintf(t->value + strlen(t->value), "of%s", w->user ? w->user : "all");
    draw_words(t, t->also, (int)draw(&plan, 3));
    e->pending = draw(&plan, 6) == 0;
    e->expires_ms = draw(&plan, 8) == 0 ? 1 : draw(&plan, 2) ? NEVER_MS : 0;
    t->kind = (sessile_memory_kind)draw(&plan, 4);
    t->source = (sessile_memory_source)draw(&plan, 4);
    t->session = (int)draw(&plan, 3);
    t->metadata = (int)draw(&plan, 3);
    t->from_ms = draw(&plan, 3) ? 0 : 1000 + draw(&plan, 1000);
    t->until_ms = draw(&plan, 3) ? 0 : 2000 + draw(&plan, 1000);
    if (w->rules.count && draw(&plan, 4) == 0)
        for (; e->replace_count < 1 + at % 2; e->replace_count++)
            e->replaces[e->replace_count] =
                w->rules.entries[draw(&plan, (unsigned)w->rules.count)].id;
}

/* It was written as entry w->next of the log. */
static void take_entry(world *w)
{
    rule_entry *e = &w->rules.entries[w->rules.count++];
    e->id = w->next++;
    e->stamp = rule_stamp(&w->rules);
}

/* Of these entries, those about which the verdict says something new. */
static size_t worth_saying(const world *w, sessile_id *ids, size_t count,
                           sessile_memory_verdict_kind to)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < w->rules.count; k++)
            if (w->rules.entries[k].id == ids[i] &&
                rule_would_change(&w->rules, &w->rules.entries[k], LATER, to)) {
                ids[kept++] = ids[i];
                break;
            }
    return kept;
}

/* It was written as entry w->next of the log. */
static void take_verdict(world *w, const sessile_id *ids, size_t count,
                         sessile_memory_verdict_kind to)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < w->rules.count; k++) {
            rule_entry *e = &w->rules.entries[k];
            if (e->id == ids[i] && rule_would_change(&w->rules, e, LATER, to))
                rule_judge(&w->rules, e, LATER, to);
        }
    w->next++;
}

/* ------------------------------------------------------------------ operations */

/* What both processes do next. */
typedef struct operation {
    world *w;
    int actor; /* which process */
    size_t count, ends;
    sessile_id end_ids[BATCH], was[BATCH];
    int has_was[BATCH], only_live, conflicts;
    sessile_memory_verdict_kind to;
} operation;

static void draw_was(operation *o, size_t i)
{
    const rule_entry *e = &o->w->rules.entries[o->w->rules.count + i];
    const rule_entry *live = holder(o->w, e->key);
    sessile_id right = live ? live->id : SESSILE_NO_ID;

    if (e->key < 0 || draw(&plan, 3))
        return;
    o->has_was[i] = 1;
    o->was[i] = draw(&plan, 2) ? right : 1 + draw(&plan, 20);
    o->conflicts |= o->was[i] != right;
}

static void expect_live(operation *o, sessile_id id)
{
    for (size_t k = 0; k < o->w->rules.count; k++)
        if (o->w->rules.entries[k].id == id)
            o->conflicts |= state_of(o->w, k) != SESSILE_MEMORY_LIVE;
}

static void draw_operation(operation *o)
{
    memset(o, 0, sizeof *o);
    o->w = &worlds[draw(&plan, MEMORIES)];
    o->actor = (int)draw(&plan, 2);
    size_t known = o->w->rules.count;
    unsigned what = known ? draw(&plan, 5) : 0;
    if (what != 1 && known + BATCH <= RULE_ENTRIES)
        o->count = 1 + draw(&plan, BATCH);
    if (what == 1 || what == 2) { /* neighbours in some order: each once */
        size_t at = draw(&plan, (unsigned)known), step = 1 + draw(&plan, 2) * (known - 2);
        o->ends = known < BATCH ? 1 : 1 + draw(&plan, BATCH);
        for (size_t i = 0; i < o->ends; i++)
            o->end_ids[i] = o->w->rules.entries[(at + i * step) % known].id;
    }
    o->to = (sessile_memory_verdict_kind)draw(&plan, 7);
    o->only_live = what == 2 && draw(&plan, 2);
    for (size_t i = 0; i < o->count; i++) {
        draw_entry(o->w, known + i);
        draw_was(o, i);
    }
    for (size_t i = 0; o->only_live && i < o->ends; i++)
        expect_live(o, o->end_ids[i]);
    for (size_t i = 0; o->only_live && i < o->count; i++)
        for (size_t k = 0; k < o->w->rules.entries[known + i].replace_count; k++)
            expect_live(o, o->w->rules.entries[known + i].replaces[k]);
}

static void make_operation(const operation *o)
{
    static const char *const sessions[] = {"", "monday", "tuesday"};
    static const char *const metadata[] = {"", "{\"m\":1}", "{\"m\":\"two\"}"};
    sessile_memory_write_entry entries[BATCH];
    sessile_memory_from from[BATCH];
    char keys[BATCH][8];
    sessile_memory_change change = {.entries = entries,
                                    .count = o->count,
                                    .ends = o->end_ids,
                                    .end_count = o->ends,
                                    .to = o->to,
                                    .only_live = o->only_live};
    sessile_error err;

    for (size_t i = 0; i < o->count; i++) {
        const rule_entry *e = &o->w->rules.entries[o->w->rules.count + i];
        const told *t = &o->w->about[o->w->rules.count + i];
        sessile_memory_write_init(&entries[i]);
        snprintf(keys[i], sizeof keys[i], "k%d", e->key);
        entries[i].value = sessile_text(t->value);
        entries[i].also = sessile_text(t->also);
        entries[i].key = sessile_text(e->key < 0 ? NULL : keys[i]);
        entries[i].kind = t->kind;
        entries[i].source = t->source;
        entries[i].pending = e->pending;
        entries[i].ttl_ms = e->expires_ms;
        entries[i].replaces = e->replaces;
        entries[i].replace_count = e->replace_count;
        from[i] = (sessile_memory_from){
            .session = sessile_text(sessions[t->session]), .first = 1, .last = 2};
        entries[i].from = &from[i];
        entries[i].from_count = t->session > 0;
        entries[i].metadata = sessile_text(metadata[t->metadata]);
        entries[i].holds_from_ms = t->from_ms;
        entries[i].holds_until_ms = t->until_ms;
        entries[i].has_was = o->has_was[i];
        entries[i].was = o->was[i];
    }
    sessile_status status = sessile_memory_apply(o->w->memory, &change, NULL, &err);
    if (o->conflicts)
        assert_int_equal(status, SESSILE_CONFLICT);
    else
        must(status, &err);
    os_posix.sleep_ms(NULL, 3); /* what expires soon has */
}

static void take_operation(operation *o)
{
    if (o->conflicts)
        return;
    /* about entries as they were before those of the same commit */
    o->ends = worth_saying(o->w, o->end_ids, o->ends, o->to);
    for (size_t i = 0; i < o->count; i++)
        take_entry(o->w);
    if (o->ends)
        take_verdict(o->w, o->end_ids, o->ends, o->to);
}

/* ------------------------------------------------------------------ questions */

static int passes(const world *w, size_t i, const sessile_memory_filter *f)
{
    const rule_entry *e = &w->rules.entries[i];
    const told *t = &w->about[i];
    unsigned states = f->states ? f->states : 1u << SESSILE_MEMORY_LIVE;
    return (states >> state_of(w, i) & 1) && (!f->kinds || f->kinds >> t->kind & 1) &&
           (!f->sources || f->sources >> t->source & 1) && t->time_ms >= f->since_ms &&
           (!f->until_ms || t->time_ms < f->until_ms) &&
           (!f->holds_at_ms || (t->from_ms <= f->holds_at_ms &&
                                (!t->until_ms || f->holds_at_ms < t->until_ms))) &&
           (!f->key_prefix.size ||
            (e->key >= 0 &&
             (f->key_prefix.size == 1 || f->key_prefix.data[1] == '0' + e->key))) &&
           (!f->session.size || t->session == (f->session.data[0] == 'm' ? 1 : 2)) &&
           (!f->metadata_name.size || t->metadata) &&
           (!f->metadata_json.size ||
            t->metadata == (f->metadata_json.data[0] == '1' ? 1 : 2));
}

static void draw_filter(const world *w, sessile_memory_filter *f)
{
    size_t count = w->rules.count;
    int timed = count && w->about[count - 1].time_ms; /* all times are known */

    memset(f, 0, sizeof *f);
    if (draw(&asked, 3) == 0)
        f->states = 1 + draw(&asked, 127);
    if (draw(&asked, 5) == 0)
        f->kinds = 1 + draw(&asked, 15);
    if (draw(&asked, 5) == 0)
        f->sources = 1 + draw(&asked, 15);
    if (timed && draw(&asked, 6) == 0)
        f->since_ms = w->about[draw(&asked, (unsigned)count)].time_ms;
    if (timed && draw(&asked, 6) == 0)
        f->until_ms = w->about[draw(&asked, (unsigned)count)].time_ms;
    if (draw(&asked, 6) == 0)
        f->holds_at_ms = 1000 + draw(&asked, 2000);
    if (draw(&asked, 6) == 0)
        f->key_prefix = sessile_text(draw(&asked, 2) ? "k" : "k1");
    if (draw(&asked, 6) == 0)
        f->session = sessile_text(draw(&asked, 2) ? "monday" : "tuesday");
    if (draw(&asked, 6) == 0)
        f->metadata_name = sessile_text("m");
    if (f->metadata_name.size && draw(&asked, 2))
        f->metadata_json = sessile_text(draw(&asked, 2) ? "1" : "\"two\"");
}

/* The record of a row; it is the one that was written. */
static size_t record_of(const world *w, const sessile_memory_row *row)
{
    for (size_t i = 0; i < w->rules.count; i++)
        if (w->rules.entries[i].id == row->id) {
            if (!w->about[i].erased)
                assert_string_equal(row->value.data, w->about[i].value);
            assert_int_equal(row->state, state_of(w, i));
            return i;
        }
    fail_msg("%08x of \"%s\" is no entry here", row->id, w->user ? w->user : "all");
    return 0;
}

static void ask_list(const world *w)
{
    sessile_memory_list_options o = {.limit = 0};
    sessile_memory_row *rows;
    sessile_error err;
    size_t count, at = 0;

    draw_filter(w, &o.filter);
    must(sessile_memory_list(w->memory, &o, &rows, &count, &err), &err);
    for (size_t i = w->rules.count; i-- > 0;)
        if (passes(w, i, &o.filter)) {
            assert_true(at < count);
            assert_int_equal(record_of(w, &rows[at++]), i);
        }
    assert_int_equal(at, count);
    sessile_free(rows);
}

/* The hits of `some` are those of `all` that pass, in the same order, with the same
 * scores. */
static void compare_hits(const world *w, const sessile_memory_filter *f,
                         const sessile_memory_row *some, size_t count,
                         const sessile_memory_row *all, size_t all_count)
{
    size_t at = 0;
    for (size_t i = 0; i < all_count && at < count; i++)
        if (passes(w, record_of(w, &all[i]), f)) {
            assert_int_equal(some[at].id, all[i].id);
            assert_true(some[at++].score == all[i].score);
        }
    assert_int_equal(at, count);
}

static sessile_memory_row *hits_of(const world *w, const char *question,
                                   const sessile_memory_filter *f, size_t limit,
                                   size_t *count)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    sessile_memory_search_init(&o);
    o.filter = *f;
    o.limit = limit;
    must(sessile_memory_search(w->memory, sessile_text(question), &o, &rows, count, &err),
         &err);
    searches++;
    return rows;
}

static void ask_search(const world *w)
{
    const sessile_memory_filter any = {.states = 127};
    sessile_memory_row *all, *some, *few;
    sessile_memory_filter f;
    char question[60] = "";
    unsigned words = 0;
    size_t expected = 0, every = 0, limit = 1 + draw(&asked, 6), all_count, count,
           some_count;

    for (unsigned n = 1 + draw(&asked, 3); n > 0; n--) {
        unsigned word = draw(&asked, WORDS);
        words |= 1u << word;
        sprintf(question + strlen(question), "%s ", vocabulary[word]);
    }
    draw_filter(w, &f);
    all = hits_of(w, question, &any, RULE_ENTRIES, &all_count);
    some = hits_of(w, question, &f, RULE_ENTRIES, &some_count);
    few = hits_of(w, question, &f, limit, &count);
    for (size_t i = 0; i < w->rules.count; i++) {
        int has = !w->about[i].erased && (w->about[i].words & words) != 0;
        every += (size_t)has;
        expected += (size_t)(has && passes(w, i, &f));
    }
    for (size_t i = 0; i < some_count; i++) {
        size_t record = record_of(w, &some[i]);
        assert_true(w->about[record].words & words);
        assert_true(passes(w, record, &f));
    }
    assert_int_equal(all_count, every);
    assert_int_equal(some_count, expected);
    assert_int_equal(count, expected < limit ? expected : limit);
    compare_hits(w, &f, some, some_count, all, all_count);
    compare_hits(w, &f, few, count, some, some_count);
    sessile_free(all);
    sessile_free(some);
    sessile_free(few);
}

static void ask_by_name(const world *w)
{
    int key = (int)draw(&asked, KEYS);
    const rule_entry *live = holder(w, key);
    sessile_memory_row *row;
    sessile_error err;
    char text[8];

    snprintf(text, sizeof text, "k%d", key);
    sessile_status status =
        sessile_memory_read(w->memory, sessile_text(text), &row, &err);
    if (live) {
        must(status, &err);
        assert_int_equal(row->id, live->id);
        sessile_free(row);
    } else {
        assert_int_equal(status, SESSILE_NOTFOUND);
    }
    if (!w->rules.count)
        return;
    sessile_id id = w->rules.entries[draw(&asked, (unsigned)w->rules.count)].id;
    must(sessile_memory_get(w->memory, id, &row, &err), &err);
    record_of(w, row);
    sessile_free(row);
}

/* The times of entries are those of the store. */
static void learn_times(world *w)
{
    sessile_memory_row *row;
    sessile_error err;
    for (size_t i = 0; i < w->rules.count; i++) {
        if (w->about[i].time_ms)
            continue;
        must(sessile_memory_get(w->memory, w->rules.entries[i].id, &row, &err), &err);
        w->about[i].time_ms = row->time_ms;
        sessile_free(row);
    }
}

static void ask(world *w, int times)
{
    sessile_memory_stats stats;
    sessile_error err;
    ask_search(w); /* first: nothing else has looked for what is new */
    learn_times(w);
    must(sessile_memory_get_stats(w->memory, &stats, &err), &err);
    assert_int_equal(stats.log_entries, w->next);
    for (int i = 0; i < times; i++) {
        ask_search(w);
        ask_list(w);
        ask_by_name(w);
    }
}

/* ------------------------------------------------------------------ two processes */

/* Process `me` goes through all operations; the other one does the same. */
static void go_through(int me, int in, int out)
{
    operation o;
    for (int n = 0; n < OPERATIONS; n++) {
        draw_operation(&o);
        if (o.actor == me) {
            make_operation(&o);
            child_tell(out, 'm');
        } else {
            assert_int_equal(child_hear(in), 'm');
        }
        take_operation(&o);
        ask(o.w, QUESTIONS);
        ask(&worlds[draw(&asked, MEMORIES)], 1);
        child_tell(out, 'd');
        assert_int_equal(child_hear(in), 'd');
    }
}

/* Each word finds the live entries that have it, no more. */
static void ask_live(const world *w)
{
    const sessile_memory_filter live = {.states = 0};
    for (unsigned word = 0; word < WORDS; word++) {
        size_t count, expected = 0;
        sessile_memory_row *rows =
            hits_of(w, vocabulary[word], &live, RULE_ENTRIES, &count);
        for (size_t i = 0; i < count; i++)
            assert_true(w->about[record_of(w, &rows[i])].words >> word & 1);
        for (size_t i = 0; i < w->rules.count; i++)
            expected += (w->about[i].words >> word & 1) && passes(w, i, &live);
        assert_int_equal(count, expected);
        sessile_free(rows);
    }
}

/* Some entries are erased. Nothing else begins or ends to live; what one of them replaced
 * may be deleted instead. */
static void erase_some(int me, int in, int out)
{
    sessile_id ids[RULE_ENTRIES];
    sessile_error err;
    size_t count = 0, erased;
    world *w = &worlds[draw(&plan, MEMORIES)];

    for (size_t i = 0; i < w->rules.count; i++)
        if (draw(&plan, 4) == 0)
            ids[count++] = w->rules.entries[i].id;
    if (me == 0) {
        sessile_memory_erase_options o = {.ids = ids, .id_count = count};
        must(sessile_memory_erase(w->memory, &o, &erased, &err), &err);
        assert_int_equal(erased, count);
        child_tell(out, 'e');
    } else {
        assert_int_equal(child_hear(in), 'e');
    }
    for (size_t i = 0, at = 0; at < count; i++)
        if (w->rules.entries[i].id == ids[at]) {
            w->about[i].erased = 1;
            at++;
        }
    ask_live(w);
}

static void open_worlds(sessile_store *st)
{
    sessile_error err;
    for (size_t i = 0; i < MEMORIES; i++) {
        sessile_memory_stats stats;
        memset(&worlds[i], 0, sizeof worlds[i]);
        worlds[i].user = users[i];
        worlds[i].memory = memory_of(st, users[i]);
        must(sessile_memory_get_stats(worlds[i].memory, &stats, &err), &err);
        worlds[i].next = (sessile_id)stats.log_entries;
    }
}

static void close_worlds(void)
{
    for (size_t i = 0; i < MEMORIES; i++)
        sessile_memory_close(worlds[i].memory);
}

static void one_process(const place *p, int me, int in, int out)
{
    sessile_store *st = place_again(p);
    open_worlds(st);
    asked = plan * 2 + (unsigned)me;
    child_tell(out, 'r');
    assert_int_equal(child_hear(in), 'r');
    go_through(me, in, out);
    erase_some(me, in, out);
    close_worlds();
    place_again_close(p, st);
}

static void other_process(void *arg, int in, int out)
{
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failure does not go on with other tests */
    one_process(arg, 1, in, out);
    child_tell(out, 'q');
    child_hear(in);
}

static void nothing_else_is_ever_a_hit(void **state)
{
    int rounds = getenv("SESSILE_SOAK") ? 100 : 1;
    const char *given = getenv("SEED");
    place *p = *state;

    for (int n = 0; n < rounds; n++) {
        plan = (given ? (unsigned)atoi(given) : 1) + (unsigned)n;
        open_worlds(p->store); /* makes them */
        close_worlds();
        print_message("seed %u\n", plan);
        child other = child_start(other_process, p);
        one_process(p, 0, other.from, other.to);
        assert_int_equal(child_hear(other.from), 'q');
        child_end(&other);
        if (n + 1 < rounds) { /* each in a place of its own */
            store_kind kind = p->kind;
            place_close(p);
            place_open(p, kind);
        }
    }
}

int main(void)
{
    static const char *const backends[] = {"file", "sqlite", "postgres"};
    const struct CMUnitTest tests[] = {OVER(nothing_else_is_ever_a_hit)};
    const char *only = getenv("TEST_STORE"), *why;
    int failed = 0;

    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        char what[60];
        if (only && *only && strcmp(only, backends[i]) != 0)
            continue;
        if (i == 2 && !postgres_shared(&why)) {
            print_message("# without PostgreSQL: %s\n", why);
            continue;
        }
        setenv("TEST_STORE", backends[i], 1);
        snprintf(what, sizeof what, "two processes and their memories, %s", backends[i]);
        failed += run_over_kinds(what, STORE_SEALED, tests, 1);
    }
    printf("# figure: searches of memories compared with a model = %lu\n", searches);
    return failed;
}
