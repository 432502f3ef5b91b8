/*
 * test_generated_laws.c: generated sessions, memories and proposals, against a small
 * model of the laws of memory.
 *
 * Each round something is said, the policy reads the memory and asks for random changes,
 * right and wrong ones; while they wait for `admit`, another writer may change the
 * memory. The model says which law is broken, or what is written, from whom, what waits,
 * what ends and what is left out. Promise 6: trust never rises, along any chain of
 * merges, and no law can be broken.
 */
#include "support/check.h"
#include "support/memories.h"
#include "support/memory_scene.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum { VOCABULARY = 48, MESSAGES = 6, ENTRIES = 4000, ASKS = 6, NAMES = 4, KEYS = 3 };

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

/* ------------------------------------------------------------------ the clock */

static os_table clock_os;
static int64_t clock_ms;

static int64_t clock_now(void *ud)
{
    (void)ud;
    return clock_ms;
}

/* ------------------------------------------------------------------ words */

/* Words without meaning, no two of one stem, as bits. */
static void put_words(char *out, uint64_t words)
{
    static const char first[] = "bdfgklmp", second[] = "vztnrb";
    *out = 0;
    for (int i = 0; i < VOCABULARY; i++)
        if (words >> i & 1)
            sprintf(out + strlen(out), "%s%co%cu", *out ? " " : "", first[i % 8],
                    second[i / 8]);
}

static int bits(uint64_t words)
{
    return __builtin_popcountll(words);
}

static uint64_t some_words(int count)
{
    uint64_t words = 0;
    while (bits(words) < count)
        words |= UINT64_C(1) << draw(VOCABULARY);
    return words;
}

static int stands_in(uint64_t value, uint64_t in)
{
    return 2 * bits(value & in) >= bits(value);
}

/* ------------------------------------------------------------------ the model */

/* Which word follows which, in the order in which they are written. */
typedef struct follows {
    uint64_t after[VOCABULARY];
} follows;

static void follow(follows *f, uint64_t words)
{
    int last = -1;
    for (int i = 0; i < VOCABULARY; i++)
        if (words >> i & 1) {
            if (last >= 0)
                f->after[last] |= UINT64_C(1) << i;
            last = i;
        }
}

typedef struct model_entry {
    sessile_id id;
    uint64_t words;
    sessile_memory_source source;
    int least; /* the rank of the least that any of its words came from, ever */
    int key;   /* -1: none */
    int pinned, approved;
} model_entry;

typedef struct model_message {
    sessile_id id;
    uint64_t words;
    sessile_memory_source source;
} model_message;

typedef struct ask {
    int kind; /* 0 write, 1 delete, 2 confirm */
    uint64_t words;
    int key;
    sessile_id from[NAMES], of[NAMES], ids[NAMES];
    size_t from_count, of_count, id_count;
    /* what is expected */
    sessile_memory_source source;
    int least, waits, admitted, stale, contradicts;
    sessile_id ends[NAMES + 1];
    size_t end_count;
} ask;

typedef struct world {
    memory_scene sc;
    sessile_memory *m, *other; /* of another writer */
    model_entry entries[ENTRIES];
    size_t entry_count;
    model_message said[MESSAGES];
    size_t said_count;
    uint64_t tool_words, user_words;
    follows tool_follows, user_follows;
    int lists; /* the policy reads the memory first */
    sessile_id shown[ENTRIES];
    size_t shown_count;
    sessile_id seen; /* entries of the log when the run began */
    ask asks[ASKS];
    size_t ask_count, next_admit;
    int meddled;
    sessile_id judged[ENTRIES]; /* live entries, oldest first, when it is judged */
    size_t judged_count;
} world;

static int rank_of(sessile_memory_source s)
{
    return s == SESSILE_MEMORY_BY_SYSTEM ? 3
           : s == SESSILE_MEMORY_BY_USER ? 2
                                         : s == SESSILE_MEMORY_BY_AGENT;
}

static model_entry *entry_of(world *w, sessile_id id)
{
    for (size_t i = 0; i < w->entry_count; i++)
        if (w->entries[i].id == id)
            return &w->entries[i];
    return NULL;
}

static const model_message *message_of(const world *w, sessile_id id)
{
    for (size_t i = 0; i < w->said_count; i++)
        if (w->said[i].id == id)
            return &w->said[i];
    return NULL;
}

static int is_in(const sessile_id *ids, size_t count, sessile_id id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return 1;
    return 0;
}

/* The live entries, oldest first, as the engine lists them: states are test_states'. */
static size_t live_of(world *w, sessile_id *ids)
{
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;
    must(sessile_memory_list(w->m, NULL, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        ids[count - 1 - i] = rows[i].id;
    sessile_free(rows);
    return count;
}

/* Whether words copy what tools said and nobody else. */
static int copies_tools(const world *w, const follows *known, uint64_t words)
{
    int last = -1, pairs = 0, met = 0, only = 0, row = 0, longest = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (!(words & bit))
            continue;
        if (last >= 0) {
            int is_met = (w->tool_follows.after[last] & bit) != 0;
            int is_only = is_met && !(w->user_follows.after[last] & bit) &&
                          !(known->after[last] & bit);
            pairs++;
            met += is_met;
            only += is_only;
            row = is_only ? row + 1 : 0;
            longest = row > longest ? row : longest;
        }
        last = i;
    }
    return longest >= 3 || (only && (2 * only >= pairs || met == pairs));
}

/* Whether half of the words that do not stand in `named` are of tools alone, and beside
 * others there. */
static int adds_of_tools(const world *w, uint64_t named, uint64_t words)
{
    uint64_t rest = words & ~named, theirs = rest & w->tool_words & ~w->user_words;
    int met = 0;
    for (int i = 0; i < VOCABULARY; i++)
        for (int k = 0; theirs >> i & 1 && k < VOCABULARY; k++)
            if (k != i && words >> k & 1 &&
                ((w->tool_follows.after[i] >> k & 1) ||
                 (w->tool_follows.after[k] >> i & 1))) {
                met++;
                break;
            }
    return rest && 2 * met >= bits(rest);
}

/* Law 1, 2 and 6 of one write: the law that is broken, or 0. */
static int model_attest(world *w, ask *a)
{
    uint64_t words = 0, entries = 0;
    follows known = {{0}};
    sessile_memory_source source = SESSILE_MEMORY_BY_SYSTEM;

    a->least = 3;
    if (!a->from_count && !a->of_count && !a->id_count)
        return 1;
    for (size_t i = 0; i < a->from_count; i++) {
        const model_message *m = message_of(w, a->from[i]);
        if (!m)
            return 1;
        words |= m->words;
        source = rank_of(m->source) < rank_of(source) ? m->source : source;
    }
    a->least = rank_of(source);
    for (int of = 1; of >= 0; of--)
        for (size_t i = 0; i < (of ? a->of_count : a->id_count); i++) {
            sessile_id id = of ? a->of[i] : a->ids[i];
            const model_entry *e = entry_of(w, id);
            if (!is_in(w->shown, w->shown_count, id))
                return of ? 1 : 3;
            words |= e->words;
            entries |= e->words;
            follow(&known, e->words);
            source = rank_of(e->source) < rank_of(source) ? e->source : source;
            a->least = e->least < a->least ? e->least : a->least;
        }
    if (rank_of(source) > 1 &&
        (!stands_in(a->words, words) || adds_of_tools(w, words, a->words)))
        source = SESSILE_MEMORY_BY_AGENT;
    if (source == SESSILE_MEMORY_BY_AGENT && stands_in(a->words, w->tool_words) &&
        !stands_in(a->words, w->user_words) && !stands_in(a->words, entries))
        source = SESSILE_MEMORY_BY_TOOL;
    if (copies_tools(w, &known, a->words))
        source = SESSILE_MEMORY_BY_TOOL;
    a->source = source;
    a->waits = source == SESSILE_MEMORY_BY_TOOL;
    return 0;
}

static int standing_of(const model_entry *e)
{
    return e->approved && rank_of(e->source) < 2 ? 2 : rank_of(e->source);
}

/* Law 3, on the memory as it is when it is written. */
static int model_judge(world *w, const sessile_id *live, size_t live_count)
{
    sessile_id ended[ASKS * (NAMES + 1)];
    size_t count = 0, most = live_count / 10 > 5 ? live_count / 10 : 5;
    sessile_id holder[KEYS];

    for (int k = 0; k < KEYS; k++)
        holder[k] = SESSILE_NO_ID;
    for (size_t i = 0; i < live_count; i++)
        if (entry_of(w, live[i])->key >= 0)
            holder[entry_of(w, live[i])->key] = live[i];
    for (size_t i = 0; i < w->ask_count; i++) {
        ask *a = &w->asks[i];
        sessile_id all[NAMES + 1];
        size_t all_count = a->id_count;
        if (!a->admitted)
            continue;
        memcpy(all, a->ids, sizeof a->ids);
        for (size_t k = 0; a->kind == 0 && k < a->of_count; k++)
            a->stale |= !is_in(live, live_count, a->of[k]);
        for (size_t k = 0; a->kind == 0 && a->key >= 0 && k < i; k++)
            a->stale |= w->asks[k].kind == 0 && w->asks[k].key == a->key &&
                        w->asks[k].admitted && !w->asks[k].stale && !w->asks[k].waits &&
                        !w->asks[k].contradicts;
        if (a->kind == 0 && a->key >= 0 && holder[a->key] != SESSILE_NO_ID &&
            !is_in(a->ids, a->id_count, holder[a->key]))
            all[all_count++] = holder[a->key];
        for (size_t k = 0; !a->stale && k < all_count; k++) {
            const model_entry *e = entry_of(w, all[k]);
            if (!is_in(live, live_count, all[k]) || is_in(ended, count, all[k]) ||
                is_in(a->ends, a->end_count, all[k])) {
                a->stale = 1;
            } else if (!is_in(w->shown, w->shown_count, all[k])) {
                if (all[k] < w->seen)
                    return 3;
                a->stale = 1;
            } else if (a->kind != 2) {
                if (e->pinned || (a->kind == 1 && standing_of(e) > 1))
                    return 3;
                if (a->kind == 0 && rank_of(a->source) < standing_of(e))
                    a->contradicts = 1;
                a->ends[a->end_count++] = all[k];
            }
        }
        if (a->stale || (a->kind == 0 && (a->waits || a->contradicts)))
            a->end_count = 0;
        for (size_t k = 0; k < a->end_count; k++)
            ended[count++] = a->ends[k];
    }
    return count > most ? 3 : 0;
}

/* ------------------------------------------------------------------ what happens */

static void add_entry(world *w, sessile_memory *by, sessile_memory_source source, int key,
                      int64_t ttl_ms, int pending)
{
    sessile_memory_write_entry e;
    sessile_error err;
    char value[400], name[8];
    model_entry *made = &w->entries[w->entry_count];

    assert_true(w->entry_count < ENTRIES);
    *made = (model_entry){.words = some_words(3 + (int)draw(4)),
                          .source = source,
                          .least = rank_of(source),
                          .key = key};
    put_words(value, made->words);
    snprintf(name, sizeof name, "key%d", key);
    sessile_memory_write_init(&e);
    e.value = sessile_text(value);
    e.key = sessile_text(key < 0 ? NULL : name);
    e.source = source;
    e.ttl_ms = ttl_ms;
    e.pending = pending;
    must(sessile_memory_write(by, &e, 1, &made->id, &err), &err);
    w->entry_count++;
}

static void decide(world *w, sessile_memory *by, sessile_id id,
                   sessile_memory_verdict_kind to)
{
    judge(by, id, to);
    if (to == SESSILE_MEMORY_PIN)
        entry_of(w, id)->pinned = 1;
    if (to == SESSILE_MEMORY_UNPIN)
        entry_of(w, id)->pinned = 0;
    if (to == SESSILE_MEMORY_APPROVE)
        entry_of(w, id)->approved = 1;
}

/* A person, or another process, does something. */
static void meddle(world *w, sessile_memory *by)
{
    static const sessile_memory_verdict_kind verdicts[] = {
        SESSILE_MEMORY_DELETE, SESSILE_MEMORY_REJECT, SESSILE_MEMORY_PIN,
        SESSILE_MEMORY_UNPIN, SESSILE_MEMORY_APPROVE};
    static sessile_id live[ENTRIES];
    size_t count = live_of(w, live);
    const model_entry *any = w->entry_count ? &w->entries[draw(w->entry_count)] : NULL;

    if (any && draw(3) == 0 && memory_state_of(w->m, any->id) == SESSILE_MEMORY_PENDING) {
        decide(w, by, any->id, SESSILE_MEMORY_APPROVE);
    } else if (!count || draw(3) == 0) {
        sessile_memory_source source = (sessile_memory_source)draw(4);
        add_entry(w, by, source, draw(3) ? -1 : (int)draw(KEYS), draw(8) ? 0 : 50,
                  draw(6) == 0);
    } else {
        decide(w, by, live[draw(count)], verdicts[draw(5)]);
    }
}

static void speak(world *w)
{
    static const char *const roles[] = {"user", "assistant", "user", "user"};
    static const sessile_memory_source sources[] = {
        SESSILE_MEMORY_BY_USER, SESSILE_MEMORY_BY_AGENT, SESSILE_MEMORY_BY_TOOL,
        SESSILE_MEMORY_BY_USER};
    size_t kind = draw(4);
    model_message *m = &w->said[w->said_count++];
    char text[400];

    m->words = some_words(4 + (int)draw(5));
    m->source = sources[kind];
    put_words(text, m->words);
    m->id = memory_said(w->sc.session, roles[kind], text,
                        kind == 2 ? ",\"metadata\":{\"untrusted\":true}" : "");
    if (kind == 2) {
        w->tool_words |= m->words;
        follow(&w->tool_follows, m->words);
    }
    if (m->source == SESSILE_MEMORY_BY_USER) {
        w->user_words |= m->words;
        follow(&w->user_follows, m->words);
    }
}

static sessile_id some_entry(world *w, const sessile_id *live, size_t count)
{
    if (count && draw(12))
        return live[draw(count)];
    return w->entry_count && draw(4) ? w->entries[draw(w->entry_count)].id : 99999;
}

static void add_id(sessile_id *ids, size_t *count, sessile_id id)
{
    if (!is_in(ids, *count, id))
        ids[(*count)++] = id;
}

static void propose(world *w, const sessile_id *live, size_t count)
{
    ask *a = &w->asks[w->ask_count++];
    uint64_t near = 0;

    *a = (ask){.kind = draw(3) ? 0 : 1 + (int)draw(2), .key = -1, .admitted = 1};
    for (size_t n = draw(3); a->kind == 0 && n > 0; n--)
        add_id(a->from, &a->from_count,
               w->said_count && draw(30) ? w->said[draw(w->said_count)].id : 88888);
    for (size_t n = draw(3); a->kind == 0 && n > 0 && draw(2); n--)
        add_id(a->of, &a->of_count, some_entry(w, live, count));
    for (size_t n = a->kind ? 1 + draw(2) : draw(3); n > 0; n--)
        if (a->kind || draw(2))
            add_id(a->ids, &a->id_count, some_entry(w, live, count));
    if (a->kind == 0 && draw(3) == 0)
        a->key = (int)draw(KEYS);
    for (size_t i = 0; i < a->from_count; i++)
        near |= message_of(w, a->from[i]) ? message_of(w, a->from[i])->words : 0;
    for (size_t i = 0; i < a->of_count; i++)
        near |= entry_of(w, a->of[i]) ? entry_of(w, a->of[i])->words : 0;
    a->words = some_words(2 + (int)draw(3));
    for (int i = 0; i < VOCABULARY; i++)
        if (draw(3) == 0)
            a->words |= near & UINT64_C(1) << i;
}

static void put_ids(char *out, const char *name, const sessile_id *ids, size_t count)
{
    if (!count)
        return;
    sprintf(out + strlen(out), ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        sprintf(out + strlen(out), "%s\"%08" PRIx32 "\"", i ? "," : "", ids[i]);
    strcat(out, "]");
}

static void put_asks(const world *w, char *out)
{
    strcpy(out, "{\"asks\":[");
    if (w->lists)
        strcat(out, "{\"memory\":\"list\",\"arguments\":[{\"limit\":100}]}");
    for (size_t i = 0; i < w->ask_count; i++) {
        const ask *a = &w->asks[i];
        char value[400];
        put_words(value, a->words);
        strcat(out, i || w->lists ? "," : "");
        if (a->kind == 0) {
            sprintf(out + strlen(out),
                    "{\"memory\":\"write\",\"arguments\":[{\"value\":\"%s\"", value);
            if (a->key >= 0)
                sprintf(out + strlen(out), ",\"key\":\"key%d\"", a->key);
            put_ids(out, "from", a->from, a->from_count);
            put_ids(out, "of", a->of, a->of_count);
            put_ids(out, "replaces", a->ids, a->id_count);
            strcat(out, "}]}");
        } else {
            sprintf(out + strlen(out), "{\"memory\":\"%s\",\"arguments\":[[",
                    a->kind == 1 ? "delete" : "confirm");
            for (size_t k = 0; k < a->id_count; k++)
                sprintf(out + strlen(out), "%s\"%08" PRIx32 "\"", k ? "," : "",
                        a->ids[k]);
            strcat(out, "]]}");
        }
    }
    strcat(out, "]}");
}

/* Answers `admit`, and meddles before the first one. */
static void on_hook(void *arg, const sessile_need *need, sessile_answer *answer)
{
    world *w = arg;
    uint64_t luck;

    if (need->hook != SESSILE_HOOK_ADMIT)
        return;
    while (w->asks[w->next_admit].kind)
        w->next_admit++;
    if (!w->meddled && draw(3) == 0)
        for (size_t n = 1 + draw(3); n > 0; n--)
            meddle(w, w->other);
    w->meddled = 1;
    w->judged_count = live_of(w, w->judged);
    luck = draw(10);
    answer->text = sessile_text(luck == 0   ? "{\"result\":false,\"why\":\"no\"}"
                                : luck == 1 ? "{\"result\":\"pending\"}"
                                            : "{\"result\":true}");
    w->asks[w->next_admit].admitted = luck != 0;
    w->asks[w->next_admit].waits |= luck == 1;
    w->next_admit++;
}

/* ------------------------------------------------------------------ a round */

/* The newest entries of any state, newest first: sessile_free(). */
static sessile_memory_row *newest(world *w, size_t count)
{
    sessile_memory_list_options options = {.limit = count};
    sessile_memory_row *rows;
    sessile_error err;
    size_t found;

    if (!count)
        return NULL;
    options.filter.states = (1u << (SESSILE_MEMORY_ERASED + 1)) - 1;
    must(sessile_memory_list(w->m, &options, &rows, &found, &err), &err);
    assert_int_equal(found, count);
    return rows;
}

/* An entry that was written is as the model says. */
static void take_written(world *w, const ask *a, const sessile_memory_row *row)
{
    int waits = a->waits || a->contradicts;
    char value[400];

    put_words(value, a->words);
    assert_string_equal(row->value.data, value);
    assert_int_equal(row->source, a->source);
    assert_int_equal(row->state, waits ? SESSILE_MEMORY_PENDING : SESSILE_MEMORY_LIVE);
    assert_true(rank_of(row->source) <= a->least); /* promise 6 */
    assert_true(w->entry_count < ENTRIES);
    w->entries[w->entry_count++] = (model_entry){
        .id = row->id,
        .words = a->words,
        .source = a->source,
        .least = rank_of(a->source) < a->least ? rank_of(a->source) : a->least,
        .key = a->key};
}

/* What was written and ended is what the model says, and no more. */
static void expect_written(world *w, const memory_result *r)
{
    static sessile_id live[ENTRIES], expected[ENTRIES];
    size_t count = 0, written = 0, pending = 0, ended = 0, stale = 0;
    sessile_memory_row *rows;

    for (size_t i = 0; i < w->judged_count; i++) {
        int ends = 0;
        for (size_t k = 0; k < w->ask_count; k++)
            ends |= is_in(w->asks[k].ends, w->asks[k].end_count, w->judged[i]);
        if (!ends)
            expected[count++] = w->judged[i];
    }
    for (size_t k = 0; k < w->ask_count; k++) {
        const ask *a = &w->asks[k];
        ended += a->end_count;
        stale += a->admitted && a->stale;
        written += a->admitted && !a->stale && a->kind == 0;
    }
    rows = newest(w, written);
    for (size_t k = 0, left = written; k < w->ask_count; k++) {
        const ask *a = &w->asks[k];
        if (!a->admitted || a->stale || a->kind)
            continue;
        take_written(w, a, &rows[--left]);
        pending += a->waits || a->contradicts;
        if (!a->waits && !a->contradicts)
            expected[count++] = rows[left].id;
    }
    sessile_free(rows);
    assert_int_equal(r->o.written, written);
    assert_int_equal(r->o.pending, pending);
    assert_int_equal(r->o.ended, ended);
    assert_int_equal(r->o.stale, stale);
    assert_int_equal(live_of(w, live), count);
    assert_memory_equal(live, expected, count * sizeof *live);
}

typedef struct totals {
    size_t written, pending, stale, ended, refused[7];
} totals;

/* Something is said and proposed: the law that the model says is broken, or 0. */
static int prepare(world *w, char *answer)
{
    int law = 0;

    w->said_count = w->ask_count = w->next_admit = w->shown_count = 0;
    w->user_words = 0;
    w->user_follows = (follows){{0}};
    w->meddled = 0;
    clock_ms += (int64_t)draw(40);
    for (size_t n = draw(4); n > 0; n--)
        meddle(w, w->m);
    for (size_t n = 1 + draw(MESSAGES - 1); n > 0; n--)
        speak(w);
    w->judged_count = live_of(w, w->judged);
    for (size_t n = draw(ASKS + 1); n > 0; n--)
        propose(w, w->judged, w->judged_count);
    w->lists = draw(8) != 0;
    if (w->lists) { /* the newest hundred */
        w->shown_count = w->judged_count < 100 ? w->judged_count : 100;
        memcpy(w->shown, w->judged + w->judged_count - w->shown_count,
               w->shown_count * sizeof *w->shown);
    }
    put_asks(w, answer);
    w->seen = memory_log_count(w->m);
    for (size_t i = 0; !law && i < w->ask_count; i++)
        if (w->asks[i].kind == 0)
            law = model_attest(w, &w->asks[i]);
    return law;
}

static void one_round(world *w, totals *sum)
{
    static char answer[32768];
    sessile_memory_run_options options = memory_options(&w->sc);
    memory_script script = {.remember = answer, .on = on_hook, .arg = w};
    int law = prepare(w, answer);
    memory_result r = memory_remembered(&w->sc, &script, &options);

    must(r.status, &r.err);
    assert_int_equal(r.o.heard, w->said_count);
    if (!law)
        law = model_judge(w, w->judged, w->judged_count);
    assert_int_equal(r.o.law, law);
    assert_int_equal(r.o.verdict == SESSILE_REFUSED, law != 0);
    if (!law) {
        expect_written(w, &r);
        sum->written += r.o.written;
        sum->pending += r.o.pending;
        sum->stale += r.o.stale;
        sum->ended += r.o.ended;
        return;
    }
    /* the refusal alone was written, and the same is heard again */
    sum->refused[law]++;
    assert_int_equal(r.o.refusal, memory_log_count(w->m) - 1);
    r = memory_asked(&w->sc, "[]");
    must(r.status, &r.err);
    assert_int_equal(r.o.heard, w->said_count);
}

static void one_world(uint64_t first, int rounds, totals *sum)
{
    world *w = calloc(1, sizeof *w);
    place p;

    assert_non_null(w);
    seed = first;
    place_open(&p, STORE_RAM);
    memory_scene_open(&w->sc, p.store, SESSILE_HOOK_REMEMBER | SESSILE_HOOK_ADMIT);
    w->m = w->sc.memories[0];
    w->other = memory_of(p.store, "ann");
    for (int i = 0; i < rounds; i++)
        one_round(w, sum);
    sessile_memory_close(w->other);
    memory_scene_close(&w->sc);
    place_close(&p);
    free(w);
}

static void no_generated_proposal_breaks_a_law(void **state)
{
    const char *given = getenv("SEED"), *soak = getenv("SESSILE_SOAK");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1;
    uint64_t worlds = given ? 1 : soak ? 2000 : 20;
    totals sum = {0};
    (void)state;

    clock_os = *os_current;
    clock_os.now_ms = clock_now;
    clock_ms = INT64_C(1700000000000);
    os_current = &clock_os;
    for (uint64_t i = 0; i < worlds; i++) {
        printf("# SEED=%" PRIu64 "\n", first + i);
        one_world((first + i) * UINT64_C(0x9e3779b97f4a7c15), 30, &sum);
    }
    os_current = &os_posix;
    printf("# %zu written, %zu pending, %zu stale, %zu ended, refused by law 1: %zu, 3: "
           "%zu\n",
           sum.written, sum.pending, sum.stale, sum.ended, sum.refused[1],
           sum.refused[3]);
    if (given)
        return;
    /* the generator is worth its name */
    assert_true(sum.written > 100 && sum.pending > 20 && sum.stale > 20);
    assert_true(sum.ended > 20 && sum.refused[1] > 20 && sum.refused[3] > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_generated_proposal_breaks_a_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
