/*
 * test_embed_run.c: entries get vectors, whatever who embeds answers, and whenever the
 * process ends.
 *
 * The embedder here is a table of synonyms: a text is a count of its topics.
 */
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/json.h"

enum { DIMS = 4, ENTRIES = 10, BATCH = 4 };

static sessile_slice text(const char *t)
{
    return sessile_text(t);
}

/* ------------------------------------------------------------------ who embeds */

static const char *const topics[DIMS - 1][3] = {
    {"cat", "kitten", "feline"}, {"car", "engine", "automobile"}, {"tea", "cup", "brew"}};

static void embed(const char *of, size_t size, float *out)
{
    char *copy = calloc(1, size + 1);
    memcpy(copy, of, size);
    out[DIMS - 1] = 0.1f;
    for (int t = 0; t < DIMS - 1; t++) {
        out[t] = 0;
        for (int w = 0; w < 3; w++)
            out[t] += strstr(copy, topics[t][w]) ? 1 : 0;
    }
    free(copy);
}

/* What an answer is. */
typedef enum answer_kind {
    GOOD,
    FAILED,  /* a status that is not OK */
    NOTHING, /* no vectors */
    TOO_FEW,
    TOO_MANY,
    SHORTER, /* vectors of other dimensions than the model's */
    HAS_NAN,
    HAS_INFINITY,
    HAS_ZEROS,
    ANSWERS
} answer_kind;

static const char *const said[ANSWERS] = {
    [FAILED] = "no money",          [NOTHING] = "0 vectors",
    [TOO_FEW] = "vectors came for", [TOO_MANY] = "vectors came for",
    [SHORTER] = "3 dimensions",     [HAS_NAN] = "not finite",
    [HAS_INFINITY] = "not finite",  [HAS_ZEROS] = "zeros"};

/* Answers as the kind says, and returns how many texts there were. */
static size_t answer(sessile_memory_run *run, const sessile_need *need, answer_kind kind)
{
    float vectors[(ENTRIES + 2) * DIMS] = {0};
    sessile_answer failed = {.status = SESSILE_IO, .text = text("no money")};
    json request = json_of(need->request.data, need->request.size);
    size_t count = 0, dims = DIMS, given;
    sessile_error err;

    assert_int_equal(need->kind, SESSILE_NEED_EMBED);
    for (json_iter it = json_begin(json_get(request, "texts")); json_next(&it); count++) {
        const char *of;
        size_t size;
        assert_true(json_plain(it.value, &of, &size));
        embed(of, size, vectors + count * DIMS);
    }
    given = kind == NOTHING   ? 0
            : kind == TOO_FEW ? count - 1
                              : count + (kind == TOO_MANY);
    dims = kind == SHORTER ? DIMS - 1 : DIMS;
    if (kind == TOO_MANY)
        embed("cat", 3, vectors + count * DIMS);
    if (kind == HAS_NAN)
        vectors[(count - 1) * DIMS + 1] = NAN;
    if (kind == HAS_INFINITY)
        vectors[0] = -INFINITY;
    if (kind == HAS_ZEROS)
        memset(vectors, 0, DIMS * sizeof *vectors);
    if (kind == FAILED)
        must(sessile_memory_run_reply(run, &failed, &err), &err);
    else
        must(sessile_memory_run_reply_vectors(run, vectors, given, dims, &err), &err);
    return count;
}

static sessile_memory_run *begin(sessile_memory *m, const char *model, int dry)
{
    sessile_memory_run_options o;
    sessile_memory_run *run;
    sessile_error err;

    sessile_memory_run_options_init(&o);
    o.embed_model = text(model);
    o.embed_dims = DIMS;
    o.embed_batch = BATCH;
    o.dry_run = dry;
    must(sessile_embed_begin(&run, m, &o, &err), &err);
    return run;
}

/* Goes on to the end; all answers are good but number `at` (from 0), which is `kind`. */
static sessile_memory_outcome finish(sessile_memory_run *run, size_t at, answer_kind kind)
{
    sessile_memory_outcome out;
    sessile_status status;
    sessile_need need;
    sessile_error err;

    for (size_t i = 0;
         (status = sessile_memory_run_step(run, &need, &err)) == SESSILE_NEEDS; i++)
        (void)answer(run, &need, i == at ? kind : GOOD);
    must(status, &err);
    must(sessile_memory_run_step(run, &need, &err), &err); /* done stays done */
    must(sessile_memory_run_outcome(run, &out, &err), &err);
    return out;
}

static sessile_memory *filled(sessile_store *st, const char *user)
{
    sessile_memory *m = memory_of(st, user);
    char value[40];
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(value, sizeof value, "%s number %d", topics[i % 3][0], i);
        remember(m, i == 1 ? "vehicle" : NULL, value, NULL);
    }
    return m;
}

static uint64_t missing_of(sessile_memory *m, const char *model)
{
    sessile_memory_model *models;
    uint64_t missing = ENTRIES;
    sessile_error err;
    size_t count;

    must(sessile_memory_models(m, &models, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(models[i].name.data, model) && models[i].dims == DIMS)
            missing = models[i].missing;
    sessile_free(models);
    return missing;
}

/* The best hit of a question that is embedded; free(). */
static char *nearest(sessile_memory *m, const char *question, const char *model)
{
    float vector[DIMS];
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    char *out;
    size_t count;

    embed(question, strlen(question), vector);
    sessile_memory_search_init(&o);
    o.vector = vector;
    o.dims = DIMS;
    o.model = text(model);
    must(sessile_memory_search(m, text(question), &o, &rows, &count, &err), &err);
    out = strdup(count ? rows[0].value.data : "");
    sessile_free(rows);
    return out;
}

/* ------------------------------------------------------------------ tests */

static void every_answer_at_every_place(void **state)
{
    place *p = *state;
    for (answer_kind kind = FAILED; kind < ANSWERS; kind++)
        for (size_t at = 0; at < 3; at++) {
            char model[40];
            sessile_memory *m = at || kind > FAILED ? memory_of(p->store, "ann")
                                                    : filled(p->store, "ann");
            sessile_memory_run *run;
            sessile_memory_outcome out;

            snprintf(model, sizeof model, "m%d.%zu", (int)kind, at);
            run = begin(m, model, 0);
            out = finish(run, at, kind);
            assert_int_equal(out.verdict, SESSILE_REFUSED);
            assert_non_null(strstr(out.message, said[kind]));
            assert_int_equal(out.law, 0);
            assert_int_equal(out.embedded, at * BATCH);
            assert_int_equal(out.to_embed, ENTRIES - at * BATCH);
            sessile_memory_run_free(run);
            /* what came is kept; words go on working */
            assert_int_equal(missing_of(m, model), ENTRIES - at * BATCH);
            expect_text(nearest(m, "the seventh is number 7", "none"), "car number 7");
            /* the next run goes on there */
            run = begin(m, model, 0);
            out = finish(run, 0, GOOD);
            assert_int_equal(out.verdict, SESSILE_APPLIED);
            assert_int_equal(out.embedded, ENTRIES - at * BATCH);
            assert_int_equal(out.to_embed, 0);
            assert_string_equal(out.message, "");
            sessile_memory_run_free(run);
            assert_int_equal(missing_of(m, model), 0);
            /* no word of the question is in any entry */
            expect_text(nearest(m, "automobile", model), "car number 7");
            sessile_memory_close(m);
        }
}

static void a_run_says_what_it_would_do(void **state)
{
    place *p = *state;
    sessile_memory *m = filled(p->store, "ann");
    sessile_memory_run *run = begin(m, "tiny", 1);
    sessile_memory_outcome out = finish(run, 0, GOOD);

    assert_true(out.verdict == SESSILE_UNCHANGED && !out.embedded);
    assert_int_equal(out.to_embed, ENTRIES);
    sessile_memory_run_free(run);
    run = begin(m, "tiny", 0);
    out = finish(run, 0, GOOD);
    assert_true(out.verdict == SESSILE_APPLIED && out.embedded == ENTRIES);
    sessile_memory_run_free(run);
    run = begin(m, "tiny", 0);
    out = finish(run, 0, FAILED); /* nobody is asked */
    assert_true(out.verdict == SESSILE_UNCHANGED && !out.embedded && !out.to_embed);
    sessile_memory_run_free(run);
    sessile_memory_close(m);
}

/* What a model is given: the key, the value, what it should be found by; not too much. */
static void texts_are_what_an_entry_says(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    char *large = malloc(60001);
    sessile_need need;
    sessile_memory_run *run;
    sessile_error err;
    json request;
    size_t size, count = 0;
    const char *of;

    for (int i = 0; i < 60000; i += 2)
        memcpy(large + i, "\xc3\xa9", 2);
    large[60000] = 0;
    remember(m, "editor", "prefers vim", "IDE");
    remember(m, NULL, large + 0, NULL);
    judge(m, remember(m, NULL, "gone", NULL), SESSILE_MEMORY_DELETE);
    free(large);
    run = begin(m, "tiny", 0);
    assert_int_equal(sessile_memory_run_step(run, &need, &err), SESSILE_NEEDS);
    request = json_of(need.request.data, need.request.size);
    assert_true(json_plain(json_get(request, "purpose"), &of, &size));
    assert_memory_equal(of, "entry", 5);
    for (json_iter it = json_begin(json_get(request, "texts")); json_next(&it); count++) {
        if (count == 0) {
            assert_non_null(strstr(need.request.data, "editor: prefers vim\\nIDE"));
        } else {
            assert_true(json_plain(it.value, &of, &size));
            assert_int_equal(size, 8000);
        }
    }
    assert_int_equal(count, 2);
    assert_non_null(strstr(need.request.data, "\"ids\":[\"00000001\",\"00000002\"]"));
    assert_refused(sessile_memory_run_step(run, &need, &err), SESSILE_INVALID, &err,
                   "reply");
    sessile_memory_run_free(run);
    sessile_memory_close(m);
}

static void without_consent_no_text_is_shown(void **state)
{
    place *p = *state;
    sessile_memory *m = filled(p->store, "ann");
    sessile_memory_run *run = begin(m, "tiny", 0);
    sessile_need need;
    sessile_error err;

    assert_int_equal(sessile_memory_run_step(run, &need, &err), SESSILE_NEEDS);
    (void)answer(run, &need, GOOD);
    must(sessile_memory_consent(m, 0, text(""), text(""), text(""), &err), &err);
    assert_refused(sessile_memory_run_step(run, &need, &err), SESSILE_DENIED, &err,
                   "consent");
    sessile_memory_run_free(run);
    run = begin(m, "tiny", 0);
    assert_refused(sessile_memory_run_step(run, &need, &err), SESSILE_DENIED, &err,
                   "consent");
    sessile_memory_run_free(run);
    assert_int_equal(missing_of(m, "tiny"), ENTRIES);
    sessile_memory_close(m);
}

/* What others wrote, deleted, erased and embedded meanwhile. */
static void a_run_goes_on_with_what_is_there(void **state)
{
    place *p = *state;
    sessile_memory *m = filled(p->store, "ann");
    sessile_id ids[] = {2, 9, 10}; /* 1 is the consent */
    sessile_memory_erase_options erase = {.ids = ids, .id_count = 1};
    sessile_memory_run *run = begin(m, "tiny", 0);
    float vector[DIMS] = {1, 1, 1, 1};
    sessile_memory_outcome out;
    sessile_need need;
    sessile_error err;

    assert_int_equal(sessile_memory_run_step(run, &need, &err), SESSILE_NEEDS);
    if (p->kind != STORE_RAM) /* which cannot change a log */
        must(sessile_memory_erase(m, &erase, NULL, &err), &err);
    assert_int_equal(answer(run, &need, GOOD), BATCH);
    judge(m, ids[1], SESSILE_MEMORY_DELETE);
    must(sessile_memory_embed(m, text("tiny"), DIMS, ids + 2, vector, 1, &err), &err);
    remember(m, NULL, "one more", NULL);
    out = finish(run, ENTRIES, GOOD);
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    assert_int_equal(out.to_embed, 0);
    assert_int_equal(missing_of(m, "tiny"), 0);
    sessile_memory_run_free(run);
    sessile_memory_close(m);
}

static void another_model_is_embedded_beside_the_old_one(void **state)
{
    place *p = *state;
    sessile_memory *m = filled(p->store, "ann");
    sessile_memory_run *run = begin(m, "old", 0);
    sessile_memory_outcome out = finish(run, 0, GOOD);

    sessile_memory_run_free(run);
    assert_int_equal(missing_of(m, "new"), ENTRIES);
    expect_text(nearest(m, "automobile", "new"), ""); /* strangers are ignored */
    expect_text(nearest(m, "number 7", "new"), "car number 7");
    run = begin(m, "new", 0);
    out = finish(run, 1, FAILED);
    assert_int_equal(out.embedded, BATCH);
    sessile_memory_run_free(run);
    expect_text(nearest(m, "automobile", "old"), "car number 7");
    run = begin(m, "new", 0);
    out = finish(run, 1, GOOD);
    assert_int_equal(out.embedded, ENTRIES - BATCH);
    sessile_memory_run_free(run);
    expect_text(nearest(m, "automobile", "new"), "car number 7");
    assert_int_equal(missing_of(m, "old"), 0);
    sessile_memory_close(m);
}

/* ------------------------------------------------------------------ kill -9 */

/* In a child: embeds, and is killed at this answer, before it is given or after. */
static void embed_until_killed(const place *p, const char *user, size_t at, int replied)
{
    sessile_memory_run *run = begin(memory_of(place_again(p), user), "tiny", 0);
    sessile_need need;

    for (size_t i = 0; sessile_memory_run_step(run, &need, NULL) == SESSILE_NEEDS; i++) {
        if (i == at && !replied)
            raise(SIGKILL);
        (void)answer(run, &need, GOOD);
        if (i == at)
            raise(SIGKILL);
    }
    _exit(2);
}

static void a_killed_run_is_gone_on_with(void **state)
{
    place *p = *state;
    for (size_t at = 0; at < 3; at++)
        for (int replied = 0; replied < 2; replied++) {
            sessile_memory_outcome out;
            sessile_memory_run *run;
            sessile_memory *m;
            char user[20];
            int status;
            pid_t pid;

            snprintf(user, sizeof user, "%zu.%d", at, replied);
            sessile_memory_close(filled(p->store, user));
            pid = fork();
            if (!pid)
                embed_until_killed(p, user, at, replied);
            assert_true(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), SIGKILL);
            m = memory_of(p->store, user);
            assert_int_equal(missing_of(m, "tiny"), ENTRIES - at * BATCH);
            run = begin(m, "tiny", 0);
            out = finish(run, 0, GOOD);
            assert_int_equal(out.embedded, ENTRIES - at * BATCH);
            assert_int_equal(missing_of(m, "tiny"), 0);
            sessile_memory_run_free(run);
            sessile_memory_close(m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(every_answer_at_every_place),
        OVER(a_run_says_what_it_would_do),
        OVER(texts_are_what_an_entry_says),
        OVER(without_consent_no_text_is_shown),
        OVER(a_run_goes_on_with_what_is_there),
        OVER(another_model_is_embedded_beside_the_old_one),
    };
    const struct CMUnitTest killed[] = {OVER(a_killed_run_is_gone_on_with)};
    return run_over_kinds("embedding", STORE_RAM, tests, sizeof tests / sizeof *tests) +
           run_over_kinds("killed", STORE_SEALED, killed, 1);
}
