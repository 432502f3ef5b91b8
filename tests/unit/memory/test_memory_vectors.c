/*
 * test_memory_vectors.c: which entries have vectors, of which models, and what an index
 * outside of the store has found.
 */
#include "support/check.h"
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

/* The ids of the hits, as "2 4 3"; free(). */
static char *hits(sessile_memory *m, const char *question,
                  const sessile_memory_outside *outside, size_t count)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    char *out = calloc(1, 200);
    sessile_error err;
    size_t found;

    sessile_memory_search_init(&o);
    o.outside = outside;
    o.outside_count = count;
    must(sessile_memory_search(m, text(question), &o, &rows, &found, &err), &err);
    for (size_t i = 0; i < found; i++)
        sprintf(out + strlen(out), "%s%x", i ? " " : "", rows[i].id);
    sessile_free(rows);
    return out;
}

static void an_outside_index_takes_the_leg_of_the_vectors(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id cat = remember(m, NULL, "a cat sleeps", NULL);
    sessile_id dog = remember(m, NULL, "a dog barks", NULL);
    sessile_id kitten = remember(m, NULL, "a kitten naps", NULL);
    float vectors[] = {1, 0, 0, 1, -1, 0};
    sessile_id ids[] = {cat, dog, kitten};
    sessile_memory_outside list[] = {{kitten, 0, -3.5}, {dog, 0, -7}, {999, 0, 5}};
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;

    expect_text(hits(m, "cat", NULL, 0), "1");
    /* what is found: by words, and by scores of any scale; the least has its share */
    expect_text(hits(m, "cat", list, 3), "1 3 2");
    expect_text(hits(m, "nothing", list, 3), "3 2");
    expect_text(hits(m, "nothing", list + 1, 1), "2");
    expect_text(hits(m, "nothing", list, 0), "");
    /* what is not live is no hit, whatever the index says */
    judge(m, kitten, SESSILE_MEMORY_DELETE);
    expect_text(hits(m, "nothing", list, 3), "2");
    judge(m, kitten, SESSILE_MEMORY_RESTORE);
    /* of another memory of a recall */
    list[0].memory = 1;
    expect_text(hits(m, "nothing", list, 3), "2");
    list[0].memory = 0;
    /* the vectors that are here do not count beside it */
    must(sessile_memory_embed(m, text("tiny"), 2, ids, vectors, 3, &err), &err);
    sessile_memory_search_init(&o);
    o.vector = vectors;
    o.dims = 2;
    o.outside = list;
    o.outside_count = 2;
    o.explain = 1;
    must(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err), &err);
    assert_int_equal(count, 3);
    assert_true(rows[0].id == cat && fabs(rows[0].score - 0.7) < 1e-6);
    assert_true(rows[1].id == kitten && fabs(rows[1].score - 0.3) < 1e-6);
    assert_true(rows[2].id == dog && fabs(rows[2].score - 0.1) < 1e-6);
    assert_true(rows[0].cosine == 0 && rows[1].cosine == -3.5 && rows[2].cosine == -7);
    assert_non_null(strstr(rows[1].explain.data, "\"vectors\":0.3"));
    sessile_free(rows);
    list[1].score = NAN;
    assert_refused(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err),
                   SESSILE_INVALID, &err, "outside score 2 of 2");
    list[1].score = 1e300;
    assert_refused(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err),
                   SESSILE_INVALID, &err, "not finite");
    sessile_memory_close(m);
}

static void each_model_says_what_it_lacks(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id ids[] = {remember(m, NULL, "one", NULL), remember(m, NULL, "two", NULL),
                        remember(m, NULL, "three", NULL)};
    float vectors[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    sessile_memory_model *models;
    sessile_store *again;
    sessile_error err;
    size_t count;

    must(sessile_memory_models(m, &models, &count, &err), &err);
    assert_true(!count && !models);
    must(sessile_memory_embed(m, text("old"), 3, ids, vectors, 3, &err), &err);
    must(sessile_memory_embed(m, text("new"), 2, ids, vectors, 1, &err), &err);
    judge(m, ids[1], SESSILE_MEMORY_DELETE);
    sessile_memory_close(m);
    again = place_again(p);
    m = memory_of(again, NULL);
    must(sessile_memory_models(m, &models, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_string_equal(models[0].name.data, "old");
    assert_true(models[0].dims == 3 && models[0].vectors == 3 && models[0].live == 2);
    assert_true(models[0].missing == 0 && models[0].used);
    assert_string_equal(models[1].name.data, "new");
    assert_true(models[1].dims == 2 && models[1].vectors == 1 && models[1].live == 1);
    assert_true(models[1].missing == 1 && !models[1].used);
    sessile_free(models);
    sessile_memory_close(m);
    place_again_close(p, again);
}

/* A question of a model without vectors here is one by words; so it is with vectors of
 * that name and other dimensions. */
static void strangers_among_vectors_are_ignored(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id ids[] = {remember(m, NULL, "a cat", NULL), remember(m, NULL, "far", NULL)};
    float vectors[] = {0, 1, 1, 0};
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;

    must(sessile_memory_embed(m, text("old"), 2, ids, vectors, 2, &err), &err);
    sessile_memory_search_init(&o);
    o.vector = vectors + 2;
    for (int i = 0; i < 3; i++) {
        o.model = text(i == 1 ? "new" : "old");
        o.dims = i == 2 ? 1 : 2;
        must(sessile_memory_search(m, text("cat"), &o, &rows, &count, &err), &err);
        assert_int_equal(count, i == 0 ? 2 : 1);
        assert_true(rows[0].id == ids[0] && rows[0].cosine == 0);
        sessile_free(rows);
    }
    sessile_memory_close(m);
}

static void what_was_erased_gets_no_vector(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id ids[] = {remember(m, NULL, "secret", NULL),
                        remember(m, NULL, "two", NULL)};
    float vectors[] = {1, 0, 0, 1};
    sessile_memory_erase_options o = {.ids = ids, .id_count = 1};
    sessile_memory_stats before, after;
    sessile_memory_model *models;
    sessile_error err;
    size_t count;

    must(sessile_memory_erase(m, &o, NULL, &err), &err);
    must(sessile_memory_get_stats(m, &before, &err), &err);
    /* who embeds was asked before it was erased */
    must(sessile_memory_embed(m, text("tiny"), 2, ids, vectors, 1, &err), &err);
    must(sessile_memory_get_stats(m, &after, &err), &err);
    assert_int_equal(after.log_entries, before.log_entries);
    must(sessile_memory_embed(m, text("tiny"), 2, ids, vectors, 2, &err), &err);
    must(sessile_memory_models(m, &models, &count, &err), &err);
    assert_true(count == 1 && models[0].vectors == 1 && models[0].missing == 0);
    sessile_free(models);
    sessile_memory_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(an_outside_index_takes_the_leg_of_the_vectors),
        OVER(each_model_says_what_it_lacks),
        OVER(strangers_among_vectors_are_ignored),
    };
    const struct CMUnitTest erased[] = {OVER(what_was_erased_gets_no_vector)};
    return run_over_kinds("vectors", STORE_RAM, tests, sizeof tests / sizeof *tests) +
           run_over_kinds("erased", STORE_SEALED, erased, 1);
}
