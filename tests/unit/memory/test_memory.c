/*
 * test_memory.c: a memory over each kind of store: what is written is found, judged,
 * refused, and seen by other handles and processes.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/children.h"
#include "support/memories.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sessile_slice text(const char *t)
{
    return sessile_text(t);
}

/* ------------------------------------------------------------------ writing, reading */

static void what_is_written_is_read(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, "ann");
    sessile_memory_from from = {.session = text("bug-42"), .first = 2, .last = 3};
    sessile_memory_write_entry e;
    sessile_memory_row *row;
    sessile_error err;
    sessile_id id;

    sessile_memory_write_init(&e);
    e.key = text("editor");
    e.value = text("prefers \"vim\"\n\xc3\xa9");
    e.also = text("IDE");
    e.kind = SESSILE_MEMORY_PROCEDURE;
    e.source = SESSILE_MEMORY_BY_TOOL;
    e.author = text("grep");
    e.from = &from;
    e.from_count = 1;
    e.importance = 0.8;
    e.ttl_ms = 1000000;
    e.holds_from_ms = INT64_C(1683504000000); /* 8 May 2023 */
    e.metadata = text("{ \"n\" : 9007199254740993 }");
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    must(sessile_memory_get(m, id, &row, &err), &err);
    assert_string_equal(row->key.data, "editor");
    assert_string_equal(row->value.data, "prefers \"vim\"\n\xc3\xa9");
    assert_string_equal(row->also.data, "IDE");
    assert_string_equal(row->author.data, "grep");
    assert_string_equal(row->from.data, "[{\"session\":\"bug-42\",\"agent\":\"coder\","
                                        "\"first\":\"00000002\",\"last\":\"00000003\"}]");
    assert_string_equal(row->metadata.data, "{\"n\":9007199254740993}");
    assert_string_equal(row->replaces.data, "");
    assert_int_equal(row->kind, SESSILE_MEMORY_PROCEDURE);
    assert_int_equal(row->source, SESSILE_MEMORY_BY_TOOL);
    assert_int_equal(row->state, SESSILE_MEMORY_LIVE);
    assert_int_equal(row->expires_ms, row->time_ms + 1000000);
    assert_true(row->holds_from_ms == INT64_C(1683504000000) && !row->holds_until_ms);
    assert_true(row->importance == 0.8 && !row->pinned && row->ended_by == SESSILE_NO_ID);
    sessile_free(row);
    expect_text(found(m, "which editor?"), "prefers \"vim\"\n\xc3\xa9");
    expect_text(found(m, "his ide"), "prefers \"vim\"\n\xc3\xa9");
    expect_text(found(m, "in May 2023"), "prefers \"vim\"\n\xc3\xa9");
    expect_text(found(m, "grep"), "prefers \"vim\"\n\xc3\xa9");
    expect_text(found(m, "a stranger"), "");
    sessile_memory_close(m);
}

static void a_memory_is_there_after_it_was_closed(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, "ann");
    sessile_id id = remember(m, "editor", "vim", NULL);
    sessile_store *again;

    remember(m, NULL, "likes tea", NULL);
    remember(m, "editor", "emacs", NULL);
    judge(m, id, SESSILE_MEMORY_PIN);
    sessile_memory_close(m);
    again = place_again(p);
    m = memory_of(again, "ann");
    expect_key(m, "editor", "emacs");
    expect_text(listed_values(m, NULL), "emacs|likes tea");
    expect_text(found(m, "vim"), "");
    sessile_memory_close(m);
    place_again_close(p, again);
}

static void users_and_agents_do_not_meet(void **state)
{
    place *p = *state;
    sessile_memory *ann = memory_of(p->store, "ann"), *bob = memory_of(p->store, "bob");
    sessile_memory *all = memory_of(p->store, NULL);
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    remember(ann, "editor", "vim", NULL);
    remember(all, "house", "red", NULL);
    expect_key(bob, "editor", NULL);
    expect_text(found(bob, "vim red"), "");
    expect_text(found(all, "vim red"), "red");
    sessile_memory_close(ann);
    sessile_memory_close(bob);
    sessile_memory_close(all);
    /* nor do memories and sessions */
    session_closed(session_made(p->store, "memory"));
    must(sessile_list(p->store, NULL, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    sessile_free(rows);
}

static void a_key_is_replaced_and_its_history_kept(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_row *rows;
    sessile_error err;
    sessile_id first = remember(m, "editor", "vim", NULL), second;
    size_t count;

    second = remember(m, "editor", "emacs", NULL);
    must(sessile_memory_history(m, text("editor"), 0, &rows, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].id, second);
    assert_int_equal(rows[1].id, first);
    assert_int_equal(rows[1].state, SESSILE_MEMORY_REPLACED);
    assert_int_equal(rows[1].ended_by, second);
    sessile_free(rows);
    judge(m, second, SESSILE_MEMORY_REJECT);
    expect_key(m, "editor", "vim");
    expect_text(found(m, "emacs vim"), "vim");
    judge(m, second, SESSILE_MEMORY_RESTORE);
    expect_key(m, "editor", "emacs");
    expect_text(found(m, "emacs vim"), "emacs");
    judge(m, second, SESSILE_MEMORY_DELETE);
    expect_key(m, "editor", NULL);
    expect_text(found(m, "emacs vim"), "");
    must(sessile_memory_history(m, text(NULL), second, &rows, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].state, SESSILE_MEMORY_DELETED);
    sessile_free(rows);
    sessile_memory_close(m);
}

static void several_entries_are_one_commit(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_write_entry e[2];
    sessile_memory_stats stats;
    sessile_error err;
    sessile_id ids[2], unknown = 77;

    for (int i = 0; i < 2; i++) {
        sessile_memory_write_init(&e[i]);
        e[i].value = text(i ? "two" : "one");
    }
    must(sessile_memory_write(m, e, 2, ids, &err), &err);
    assert_int_equal(ids[1], ids[0] + 1);
    e[1].replaces = &unknown;
    e[1].replace_count = 1;
    assert_refused(sessile_memory_write(m, e, 2, ids, &err), SESSILE_NOTFOUND, &err,
                   "0000004d");
    assert_int_equal(ids[0], SESSILE_NO_ID);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.entries, 2);
    assert_int_equal(stats.log_entries, 3);
    sessile_memory_close(m);
}

static void a_writer_can_say_what_it_expects(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id id, shown;
    char expected[16];

    sessile_memory_write_init(&e);
    e.key = text("k");
    e.value = text("v");
    e.has_was = 1;
    e.was = SESSILE_NO_ID;
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    snprintf(expected, sizeof expected, "%08x", (unsigned)id);
    assert_refused(sessile_memory_write(m, &e, 1, &shown, &err), SESSILE_CONFLICT, &err,
                   expected);
    e.was = id;
    must(sessile_memory_write(m, &e, 1, &shown, &err), &err);
    judge(m, shown, SESSILE_MEMORY_DELETE);
    e.was = shown;
    assert_refused(sessile_memory_write(m, &e, 1, &id, &err), SESSILE_CONFLICT, &err,
                   "no live entry");
    sessile_memory_close(m);
}

/* ------------------------------------------------------------------ changes */

static void a_change_is_made_whole_or_not_at_all(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id ids[] = {remember(m, "editor", "vim", NULL),
                        remember(m, NULL, "tea", NULL),
                        remember(m, NULL, "coffee", NULL)};
    sessile_memory_write_entry entries[] = {
        {.value = text("emacs"), .replaces = &ids[0], .replace_count = 1},
        {.value = text("milk")}};
    sessile_memory_change change = {.entries = entries,
                                    .count = 2,
                                    .ends = &ids[1],
                                    .end_count = 1,
                                    .only_live = 1,
                                    .by = text("ann")};
    sessile_memory_stats before, after;
    sessile_memory_row *row;
    sessile_error err;
    sessile_id made[2];
    size_t size;
    char *json;

    must(sessile_memory_get_stats(m, &before, &err), &err);
    must(sessile_memory_apply(m, &change, made, &err), &err);
    expect_text(listed_values(m, NULL), "milk|emacs|coffee");
    must(sessile_memory_get_stats(m, &after, &err), &err);
    assert_int_equal(after.log_entries, before.log_entries + 3);
    must(sessile_memory_get(m, ids[1], &row, &err), &err);
    must(sessile_memory_entry(m, row->ended_by, &json, &size, &err), &err);
    assert_non_null(strstr(json, "\"to\":\"deleted\",\"by\":\"ann\""));
    assert_int_equal(strlen(json), size);
    sessile_free(json);
    sessile_free(row);

    /* what it is about changed meanwhile */
    assert_refused(sessile_memory_apply(m, &change, made, &err), SESSILE_CONFLICT, &err,
                   "is not live any more");
    change.ends = &ids[2];
    assert_refused(sessile_memory_apply(m, &change, made, &err), SESSILE_CONFLICT, &err,
                   "it was replaced");
    expect_text(listed_values(m, NULL), "milk|emacs|coffee");
    change.count = 0;
    must(sessile_memory_apply(m, &change, NULL, &err), &err);
    expect_text(listed_values(m, NULL), "milk|emacs");
    assert_int_equal(sessile_memory_entry(m, 99, &json, &size, &err), SESSILE_NOTFOUND);
    sessile_memory_close(m);
}

/* ------------------------------------------------------------------ watching */

static void a_memory_can_be_watched(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, "ann"), *other = memory_of(p->store, "ann");
    sessile_id seen = 0, beyond = 99;
    sessile_error err;
    int changed;

    must(sessile_memory_watch(m, &seen, 0, &changed, &err), &err);
    assert_true(!changed && seen == 2); /* the header and the consent */
    remember(other, "editor", "vim", NULL);
    must(sessile_memory_watch(m, &seen, 60000, &changed, &err), &err);
    assert_true(changed && seen == 3);
    must(sessile_memory_watch(m, &seen, 5, &changed, &err), &err);
    assert_true(!changed && seen == 3);
    remember(other, NULL, "behind", NULL);
    must(sessile_memory_watch(m, NULL, 60000, &changed, &err), &err);
    assert_true(changed);
    assert_refused(sessile_memory_watch(m, &beyond, 0, &changed, &err), SESSILE_INVALID,
                   &err, "4 entries");
    assert_int_equal(sessile_memory_watch(m, NULL, -2, &changed, &err), SESSILE_INVALID);
    sessile_memory_close(other);
    sessile_memory_close(m);
}

/* ------------------------------------------------------------------ refusals */

static void limits_of_the_store_hold(void **state)
{
    const float vector[3] = {1, 2, 3};
    sessile_store_options options;
    sessile_memory_stats stats;
    sessile_memory_write_entry e = {.value = text("12345")};
    sessile_memory *m;
    sessile_store *st;
    sessile_error err;
    sessile_id id;

    (void)state;
    sessile_store_options_init(&options);
    options.limits.memory_value = 5;
    options.limits.memory_key = 3;
    options.limits.memory_entries = 5;
    options.limits.memory_dims = 2;
    must(sessile_open(&st, "ram:", &options, &err), &err);
    m = memory_of(st, NULL);
    id = remember(m, "abc", "12345", NULL);
    e.key = text("abcd");
    assert_refused(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_LIMIT, &err,
                   "[memory_key] is 3");
    e.key = text("abc");
    e.also = text("123456");
    assert_refused(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_LIMIT, &err,
                   "[memory_value] is 5");
    assert_refused(sessile_memory_embed(m, text("model"), 3, &id, vector, 1, &err),
                   SESSILE_LIMIT, &err, "2 dimensions [memory_dims]");
    remember(m, NULL, "two", NULL);
    remember(m, NULL, "three", NULL);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_true(stats.entries_most == 5 && !stats.nearly_full);
    remember(m, NULL, "four", NULL);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_true(stats.nearly_full);
    remember(m, NULL, "five", NULL);
    e.also = text("");
    assert_refused(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_LIMIT, &err,
                   "[memory_entries] is 5");
    sessile_memory_close(m);
    sessile_store_close(st);
    options.limits.memory_dims = 4097;
    assert_refused(sessile_open(&st, "ram:", &options, &err), SESSILE_LIMIT, &err,
                   "[memory_dims] is at most 4096");
}

static void bad_entries_are_refused_and_nothing_is_written(void **state)
{
    static char big[SESSILE_MEMORY_VALUE_MAX + 1], key[SESSILE_MEMORY_KEY_MAX + 1];
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_from from = {.session = text("s"), .first = 3, .last = 2};
    sessile_memory_stats stats;
    sessile_error err;
    struct {
        sessile_memory_write_entry e;
        sessile_status status;
        const char *says;
    } bad[] = {
        {{.value = text("")}, SESSILE_INVALID, "value"},
        {{.value = {big, sizeof big}}, SESSILE_LIMIT, "[memory_value]"},
        {{.value = {"\xff", 1}}, SESSILE_INVALID, "UTF-8"},
        {{.value = text("v"), .key = {key, sizeof key}}, SESSILE_LIMIT, "[memory_key]"},
        {{.value = text("v"), .key = text("a\nb")}, SESSILE_INVALID, "control"},
        {{.value = text("v"), .also = {"\xc3", 1}}, SESSILE_INVALID, "also"},
        {{.value = text("v"), .importance = 1.5}, SESSILE_INVALID, "importance"},
        {{.value = text("v"), .importance = NAN}, SESSILE_INVALID, "importance"},
        {{.value = text("v"), .ttl_ms = -1}, SESSILE_INVALID, "live"},
        {{.value = text("v"), .kind = 9}, SESSILE_INVALID, "kind"},
        {{.value = text("v"), .source = 9}, SESSILE_INVALID, "source"},
        {{.value = text("v"), .metadata = text("[]")}, SESSILE_INVALID, "object"},
        {{.value = text("v"), .metadata = text("{")}, SESSILE_INVALID, "metadata"},
        {{.value = text("v"), .has_was = 1}, SESSILE_INVALID, "key"},
        {{.value = text("v"), .from = &from, .from_count = 1}, SESSILE_INVALID, "source"},
        {{.value = text("v"), .holds_from_ms = 2, .holds_until_ms = 1},
         SESSILE_INVALID,
         "holds"},
        {{.value = {NULL, 4}}, SESSILE_INVALID, "value.data"},
    };

    memset(big, 'x', sizeof big);
    memset(key, 'x', sizeof key);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(sessile_memory_write(m, &bad[i].e, 1, NULL, &err), bad[i].status,
                       &err, bad[i].says);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.log_entries, 1);
    sessile_memory_close(m);
}

static void what_is_not_there_is_named(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_options options;
    sessile_memory_row *row;
    sessile_memory *none;
    sessile_error err;
    sessile_id id = 9;
    size_t count;

    remember(m, "editor", "vim", NULL);
    assert_refused(sessile_memory_read(m, text("edtor"), &row, &err), SESSILE_NOTFOUND,
                   &err, "did you mean \"editor\"?");
    assert_null(row);
    assert_refused(sessile_memory_read(m, text("weather"), &row, &err), SESSILE_NOTFOUND,
                   &err, "\"weather\"");
    assert_null(strstr(err.message, "editor"));
    assert_refused(sessile_memory_get(m, 9, &row, &err), SESSILE_NOTFOUND, &err,
                   "00000009");
    assert_refused(sessile_memory_history(m, text("edit"), 0, &row, &count, &err),
                   SESSILE_NOTFOUND, &err, "edit");
    assert_refused(sessile_memory_verdict(m, &id, 1, SESSILE_MEMORY_PIN, text(NULL),
                                          text(NULL), NULL, &err),
                   SESSILE_NOTFOUND, &err, "00000009");
    const sessile_id twice[] = {1, 1};
    must(sessile_memory_verdict(m, twice, 2, SESSILE_MEMORY_DELETE, text(NULL),
                                text(NULL), &count, &err),
         &err);
    assert_int_equal(count, 1);
    sessile_memory_close(m);
    sessile_memory_options_init(&options);
    options.agent = text("nobody");
    options.must_exist = 1;
    assert_refused(sessile_memory_open(&none, p->store, &options, &err), SESSILE_NOTFOUND,
                   &err, "nobody");
    options.must_exist = 0;
    options.language = text("klingon");
    assert_refused(sessile_memory_open(&none, p->store, &options, &err), SESSILE_INVALID,
                   &err, "klingon");
}

static void without_consent_nothing_is_written(void **state)
{
    place *p = *state;
    sessile_memory_options options;
    sessile_memory_write_entry e;
    sessile_memory *m, *agents;
    sessile_error err;
    sessile_id id;

    sessile_memory_options_init(&options);
    options.agent = text("coder");
    options.user = text("ann");
    must(sessile_memory_open(&m, p->store, &options, &err), &err);
    sessile_memory_write_init(&e);
    e.value = text("v");
    assert_refused(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_DENIED, &err,
                   "consent");
    must(
        sessile_memory_consent(m, 1, text("ann"), text("yes, in chat"), text(NULL), &err),
        &err);
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    must(sessile_memory_consent(m, 0, text("ann"), text(NULL), text(NULL), &err), &err);
    assert_refused(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_DENIED, &err,
                   "no longer");
    judge(m, id, SESSILE_MEMORY_DELETE); /* to end something needs none */
    sessile_memory_close(m);
    agents = memory_of(p->store, NULL);
    assert_refused(
        sessile_memory_consent(agents, 1, text(NULL), text("yes"), text(NULL), &err),
        SESSILE_INVALID, &err, "no user");
    sessile_memory_close(agents);
}

/* ------------------------------------------------------------------ filters, vectors */

static void filters_are_judged_before_the_best_are_taken(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_from from[] = {{.session = text("other"), .first = 1, .last = 1},
                                  {.session = text("bug-42"), .first = 1, .last = 1}};
    sessile_memory_search_options o;
    sessile_memory_list_options all = {.limit = 2, .offset = 1};
    sessile_memory_row *rows;
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id pending;
    size_t count;

    for (int i = 0; i < 30; i++) /* better hits, of another kind */
        remember(m, NULL, "tea tea tea", NULL);
    sessile_memory_write_init(&e);
    e.key = text("drink/green");
    e.value = text("some long text about water, cups, leaves, and at last of tea");
    e.kind = SESSILE_MEMORY_EPISODE;
    e.source = SESSILE_MEMORY_BY_SYSTEM;
    e.from = from;
    e.from_count = 2;
    e.holds_from_ms = 1000;
    e.holds_until_ms = 2000;
    e.metadata = text("{\"place\":\"k\\u0069tchen\",\"n\":1,\"o\":{\"a\": [1, 2]}}");
    must(sessile_memory_write(m, &e, 1, NULL, &err), &err);
    e.pending = 1;
    e.key = text(NULL);
    must(sessile_memory_write(m, &e, 1, &pending, &err), &err);

    sessile_memory_filter filters[] = {
        {.kinds = 1u << SESSILE_MEMORY_EPISODE},
        {.sources = 1u << SESSILE_MEMORY_BY_SYSTEM},
        {.key_prefix = text("drink/")},
        {.session = text("bug-42")},
        {.holds_at_ms = 1500, .kinds = 1u << SESSILE_MEMORY_EPISODE},
        {.metadata_name = text("place")},
        {.metadata_name = text("place"), .metadata_json = text("\"kitchen\"")},
        {.metadata_name = text("n"), .metadata_json = text("1")},
        {.metadata_name = text("n"), .metadata_json = text(" 1\n")},
        {.metadata_name = text("o"), .metadata_json = text("{ \"a\":[ 1,2 ] }")},
    };
    sessile_memory_search_init(&o);
    o.limit = 1;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        o.filter = filters[i];
        must(sessile_memory_search(m, text("tea"), &o, &rows, &count, &err), &err);
        assert_int_equal(count, 1);
        assert_string_equal(rows->key.data, "drink/green");
        assert_true(rows->score > 0 && rows->cover > 0 && rows->cover <= 1);
        sessile_free(rows);
    }
    o.filter = (sessile_memory_filter){.states = 1u << SESSILE_MEMORY_PENDING};
    must(sessile_memory_search(m, text("tea"), &o, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_int_equal(rows->id, pending);
    sessile_free(rows);
    sessile_memory_filter nothing[] = {
        {.holds_at_ms = 2000, .key_prefix = text("d")},
        {.metadata_name = text("n"), .metadata_json = text("2")},
        {.session = text("bug-42"), .session_agent = text("else")},
        {.since_ms = INT64_MAX},
        {.until_ms = 1},
    };
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        o.filter = nothing[i];
        must(sessile_memory_search(m, text("tea"), &o, &rows, &count, &err), &err);
        assert_int_equal(count, 0);
        assert_null(rows);
    }
    o.filter = (sessile_memory_filter){.metadata_json = text("1")};
    assert_refused(sessile_memory_search(m, text("tea"), &o, &rows, &count, &err),
                   SESSILE_INVALID, &err, "member");
    expect_text(listed_values(m, &all), "tea tea tea|tea tea tea");
    sessile_memory_close(m);
}

static void vectors_find_what_words_do_not(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id ids[3] = {remember(m, NULL, "a cat sleeps", NULL),
                         remember(m, NULL, "an engine starts", NULL),
                         remember(m, NULL, "a kitten naps", NULL)};
    float vectors[] = {1, 0.1f, 0, 0, 0, 1, 0.9f, 0.3f, 0}, question[] = {1, 0.2f, 0};
    float bad[] = {0, 0, 0, NAN, 1, 1};
    sessile_memory_search_options o;
    sessile_memory_stats stats;
    sessile_memory_row *rows;
    sessile_store *again;
    sessile_error err;
    size_t count;

    must(sessile_memory_embed(m, text("tiny"), 3, ids, vectors, 3, &err), &err);
    assert_refused(sessile_memory_embed(m, text("tiny"), 3, ids, bad, 1, &err),
                   SESSILE_INVALID, &err, "zeros");
    assert_refused(sessile_memory_embed(m, text("tiny"), 3, ids, bad + 3, 1, &err),
                   SESSILE_INVALID, &err, "finite");
    assert_refused(sessile_memory_embed(m, text("tiny"), 5000, ids, vectors, 1, &err),
                   SESSILE_LIMIT, &err, "[memory_dims]");
    sessile_memory_close(m);
    again = place_again(p);
    m = memory_of(again, NULL);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.vectors, 3);
    assert_int_equal(stats.dims, 3);
    assert_string_equal(stats.model, "tiny");
    sessile_memory_search_init(&o);
    o.vector = question;
    o.dims = 3;
    must(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].id, ids[0]);
    assert_int_equal(rows[1].id, ids[2]); /* by its vector alone */
    assert_true(rows[1].cover == 0 && rows[1].cosine > 0.98 && rows[1].cosine <= 1);
    sessile_free(rows);
    judge(m, ids[2], SESSILE_MEMORY_DELETE);
    must(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    sessile_free(rows);
    o.dims = 2;
    assert_refused(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err),
                   SESSILE_INVALID, &err, "3");
    o.vector = bad;
    o.dims = 3;
    assert_refused(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err),
                   SESSILE_INVALID, &err, "zeros");
    sessile_memory_close(m);
    place_again_close(p, again);
}

/* The score of the one hit of a question. */
static double score_of(sessile_memory *m, const char *question, double *cover)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;
    double score;

    sessile_memory_search_init(&o);
    o.importance = 1;
    must(sessile_memory_search(m, text(question), &o, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    score = rows->score;
    *cover = rows->cover;
    sessile_free(rows);
    return score;
}

static void what_is_not_live_weighs_nothing(void **state)
{
    place *p = *state;
    sessile_memory *ann = memory_of(p->store, "ann"), *bob = memory_of(p->store, "bob");
    double cover, other;
    sessile_id gone;

    remember(ann, NULL, "tea in the morning", NULL);
    remember(bob, NULL, "tea in the morning", NULL);
    gone = remember(bob, NULL, "coffee in the morning, coffee at noon", "tea");
    remember(bob, "k", "coffee", NULL);
    remember(ann, "k", "water", NULL);
    remember(bob, "k", "water", NULL);
    judge(bob, gone, SESSILE_MEMORY_DELETE);
    assert_true(score_of(ann, "tea coffee", &cover) ==
                score_of(bob, "tea coffee", &other));
    assert_true(cover == other && cover < 0.5 && cover > 0.1);
    sessile_memory_close(ann);
    sessile_memory_close(bob);
}

static void an_entry_expires(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_list_options expired = {.filter.states = 1u << SESSILE_MEMORY_EXPIRED};
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id id;

    sessile_memory_write_init(&e);
    e.key = text("code");
    e.value = text("one time");
    e.ttl_ms = 1;
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    p->store->core->os->sleep_ms(p->store->core->os->ud, 3);
    expect_key(m, "code", NULL);
    expect_text(found(m, "time"), "");
    expect_text(listed_values(m, NULL), "");
    expect_text(listed_values(m, &expired), "one time");
    judge(m, id, SESSILE_MEMORY_RESTORE);
    expect_key(m, "code", "one time");
    expect_text(found(m, "time"), "one time");
    sessile_memory_close(m);
}

static void a_key_whose_entry_expired_is_free(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_write_entry e;
    sessile_memory_stats stats;
    sessile_memory_row *row;
    sessile_error err;
    sessile_id id;

    sessile_memory_write_init(&e);
    e.key = text("code");
    e.value = text("one time");
    e.ttl_ms = 1;
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    p->store->core->os->sleep_ms(p->store->core->os->ud, 3);
    assert_int_equal(sessile_memory_read(m, text("code"), &row, &err), SESSILE_NOTFOUND);
    assert_null(strstr(err.message, "did you mean")); /* itself */
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.keys, 0);
    e.ttl_ms = 0;
    e.value = text("another");
    e.has_was = 1;
    e.was = id;
    assert_int_equal(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_CONFLICT);
    e.was = SESSILE_NO_ID;
    must(sessile_memory_write(m, &e, 1, NULL, &err), &err);
    expect_key(m, "code", "another");
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.keys, 1);
    sessile_memory_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(what_is_written_is_read),
        OVER(a_memory_is_there_after_it_was_closed),
        OVER(users_and_agents_do_not_meet),
        OVER(a_key_is_replaced_and_its_history_kept),
        OVER(several_entries_are_one_commit),
        OVER(a_writer_can_say_what_it_expects),
        OVER(limits_of_the_store_hold),
        OVER(a_change_is_made_whole_or_not_at_all),
        OVER(a_memory_can_be_watched),
        OVER(bad_entries_are_refused_and_nothing_is_written),
        OVER(what_is_not_there_is_named),
        OVER(without_consent_nothing_is_written),
        OVER(filters_are_judged_before_the_best_are_taken),
        OVER(vectors_find_what_words_do_not),
        OVER(what_is_not_live_weighs_nothing),
        OVER(an_entry_expires),
        OVER(a_key_whose_entry_expired_is_free),
    };
    return run_over_kinds("memories", STORE_RAM, tests, sizeof tests / sizeof *tests);
}
