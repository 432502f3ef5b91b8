/*
 * test_memory_runs.c: runs of memories that are disturbed: by other writers, by a
 * user who takes consent back, by a crash. test_memory_answers.c: by what is answered.
 */
#include "guard/enter.h"
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
#include <sys/stat.h>

#include "memory/memory.h"

#define HOOKS \
    (SESSILE_HOOK_REMEMBER | SESSILE_HOOK_TIDY | SESSILE_HOOK_RECALL | SESSILE_HOOK_ADMIT)

static void begin(memory_scene *sc, void **state, unsigned hooks)
{
    place *p = *state;
    memory_scene_open(sc, p->store, hooks);
}

/* ------------------------------------------------------------------ what is heard */

static void what_somebody_said_is_heard_once(void **state)
{
    memory_scene sc;
    memory_script script = {.calls = 0};
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    memory_said(sc.session, "system", "be brief", "");
    memory_said(sc.session, "user", "I like tea", ",\"timestamp\":1700000000000");
    memory_said(sc.session, "user", "in short", ",\"metadata\":{\"kind\":\"summary\"}");
    memory_said(sc.session, "user", "notes", ",\"metadata\":{\"kind\":\"memory\"}");
    memory_said(sc.session, "assistant", "so do I", "");
    r = memory_heard(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.heard, 2);
    assert_non_null(strstr(script.seen, "\"role\":\"user\",\"source\":\"user\""));
    assert_non_null(strstr(script.seen, "\"day\":\"2023-11-14\""));
    assert_non_null(strstr(script.seen, "\"content\":\"I like tea\"},{"));
    assert_non_null(strstr(script.seen, "\"source\":\"agent\""));
    assert_null(strstr(script.seen, "brief"));
    assert_null(strstr(script.seen, "short"));
    assert_null(strstr(script.seen, "notes"));
    script.calls = 0;
    r = memory_heard(&sc, &script);
    assert_int_equal(r.o.heard, 0);
    assert_int_equal(script.calls, 0); /* nobody is asked about nothing */
    memory_scene_close(&sc);
}

static void a_long_session_is_heard_in_parts(void **state)
{
    memory_scene sc;
    memory_script script = {.calls = 0};
    size_t heard = 0, runs = 0;
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    for (int i = 0; i < 450; i++)
        memory_said(sc.session, "user", "a word", "");
    do {
        r = memory_heard(&sc, &script);
        must(r.status, &r.err);
        heard += r.o.heard;
        runs++;
    } while (r.o.left);
    assert_int_equal(heard, 450);
    assert_int_equal(runs, 3);
    memory_scene_close(&sc);
}

/* ------------------------------------------------------------------ other writers */

/* Hears the session through another handle while the hook is asked. */
static void hear_elsewhere(void *arg, const sessile_need *need, sessile_answer *answer)
{
    memory_scene *sc = arg, other = *sc;
    memory_script script = {.calls = 0};
    sessile_memory_run_options options = memory_options(sc);
    memory_result r;

    (void)answer;
    if (need->hook != SESSILE_HOOK_REMEMBER)
        return;
    other.memories[0] = memory_of(sc->store, "ann");
    r = memory_remembered(&other, &script, &options);
    must(r.status, &r.err);
    sessile_memory_close(other.memories[0]);
}

static void a_session_that_was_heard_meanwhile_is_stale(void **state)
{
    memory_scene sc;
    memory_script script = {.on = hear_elsewhere};
    sessile_id before;
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    script.arg = &sc;
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    before = memory_log_count(sc.memories[0]);
    r = memory_heard(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.verdict, SESSILE_STALE);
    assert_int_equal(r.o.written, 0);
    /* the other one's `heard` alone */
    assert_int_equal(memory_log_count(sc.memories[0]), before + 1);
    expect_text(listed_values(sc.memories[0], NULL), "");
    memory_scene_close(&sc);
}

/* ------------------------------------------------------------------ a crash */

/* The file of a memory, and its size. */
static size_t file_of(const place *p, const sessile_memory *m, char path[600])
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    struct stat st;

    memory_place(m->core, folder, name);
    snprintf(path, 600, "%s/agents/%s/%s.jsonl", p->folder, folder, name);
    assert_int_equal(stat(path, &st), 0);
    return (size_t)st.st_size;
}

static void put_file(const char *path, const char *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static char *get_file(const char *path, size_t size)
{
    char *data = malloc(size);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, size, f), size);
    fclose(f);
    return data;
}

/* 1: an entry is there and nothing is left to hear; 0: neither. */
static int is_written_and_heard(const place *p)
{
    sessile_store *st = place_again(p);
    memory_scene sc;
    memory_script script = {.calls = 0};
    memory_result r;
    char *values;
    int written;

    memory_scene_open(&sc, st, SESSILE_HOOK_REMEMBER);
    values = listed_values(sc.memories[0], NULL);
    written = *values != 0;
    free(values);
    r = memory_heard(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.heard, written ? 0 : 1);
    memory_scene_close(&sc);
    place_again_close(p, st);
    return written;
}

/* What was written and how far was heard are one commit: wherever its bytes end, both
 * are there or neither. */
static void an_entry_and_what_was_heard_are_one(void **state)
{
    place *p = *state;
    memory_scene sc;
    memory_script script = {.calls = 0};
    size_t before, after;
    char path[600], *whole;
    memory_result r;

    place_files_only();
    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    before = file_of(p, sc.memories[0], path);
    r = memory_heard(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.written, 1);
    after = file_of(p, sc.memories[0], path);
    memory_scene_close(&sc);
    whole = get_file(path, after);
    for (size_t cut = before; cut < after; cut += 7) {
        put_file(path, whole, cut);
        assert_int_equal(is_written_and_heard(p), 0);
    }
    put_file(path, whole, after);
    assert_int_equal(is_written_and_heard(p), 1);
    free(whole);
}

/* ------------------------------------------------------------------ consent, forgetting
 */

static void withdraw(void *arg, const sessile_need *need, sessile_answer *answer)
{
    memory_scene *sc = arg;
    sessile_error err;
    (void)need;
    (void)answer;
    must(sessile_memory_consent(sc->memories[0], 0, sessile_text(NULL),
                                sessile_text(NULL), sessile_text(NULL), &err),
         &err);
}

static void consent_may_end_in_the_middle(void **state)
{
    memory_scene sc;
    memory_script script = {.on = withdraw};
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    script.arg = &sc;
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    r = memory_heard(&sc, &script);
    assert_refused(r.status, SESSILE_DENIED, &r.err, "consent");
    expect_text(listed_values(sc.memories[0], NULL), "");
    memory_scene_close(&sc);
}

/* A hook of a recall asks a memory whose user does not consent any more: it gets what the
 * other one has. */
static void without_consent_a_hook_reads_nothing(void **state)
{
    memory_scene sc;
    memory_script script = {.on = withdraw};
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_RECALL);
    script.arg = &sc;
    remember(sc.memories[0], "tea", "ann likes tea", NULL);
    remember(sc.memories[1], "cups", "tea is served in cups", NULL);
    memory_said(sc.session, "user", "which tea?", "");
    /* it may choose only what it was shown: ann's entry is none of these */
    script.recall = "{\"asks\":[{\"memory\":\"list\",\"arguments\":[]}]}";
    r = memory_recalled(&sc, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.recall.recalled, 1);
    assert_int_equal(r.o.recall.denied, 1);
    memory_scene_close(&sc);
}

static void forget_user(void *arg, const sessile_need *need, sessile_answer *answer)
{
    memory_scene *sc = arg;
    sessile_error err;
    (void)need;
    (void)answer;
    must(sessile_forget(sc->store, sessile_text("ann"), NULL, &err), &err);
}

static void a_user_may_be_forgotten_in_the_middle(void **state)
{
    memory_scene sc;
    memory_script script = {.on = forget_user};
    memory_result r;

    if (((place *)*state)->kind != STORE_SEALED)
        skip();
    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    script.arg = &sc;
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    r = memory_heard(&sc, &script);
    assert_int_equal(r.status, SESSILE_SEALED);
    memory_scene_close(&sc);
}

static void a_run_keeps_its_memories(void **state)
{
    memory_scene sc;
    memory_script script = {.calls = 0};
    sessile_memory_run_options options;
    sessile_memory_run *run;
    sessile_error err;
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    options = memory_options(&sc);
    must(sessile_remember_begin(&run, sc.session, sc.memories, 2, &options, &err), &err);
    sessile_memory_close(sc.memories[0]);
    sessile_memory_close(sc.memories[1]);
    r = memory_driven(run, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.written, 1);
    sc.memories[0] = memory_of(sc.store, "ann");
    sc.memories[1] = memory_of(sc.store, NULL);
    expect_text(listed_values(sc.memories[0], NULL), "prefers tea");
    memory_scene_close(&sc);
}

/* ------------------------------------------------------------------ tidy, outcomes */

static void look_at_outcome(void *arg, const sessile_need *need, sessile_answer *answer)
{
    sessile_memory_outcome out;
    sessile_error err;
    (void)need;
    (void)answer;
    if (!*(sessile_memory_run **)arg)
        return;
    must(sessile_memory_run_outcome(*(sessile_memory_run **)arg, &out, &err), &err);
    assert_int_equal(out.changes.data[0], '[');
    assert_int_equal(out.changes.data[out.changes.size - 1], ']');
}

/* tidy gets what remember wrote; the outcome can be asked for at any time; the bounds are
 * those of the whole run. */
static void tidy_follows_remember(void **state)
{
    memory_scene sc;
    memory_script script = {.on = look_at_outcome};
    sessile_memory_run_options options;
    sessile_memory_run *run = NULL;
    sessile_error err;
    memory_result r;

    begin(&sc, state, SESSILE_HOOK_REMEMBER | SESSILE_HOOK_TIDY);
    remember(sc.memories[0], NULL, "prefers tea", NULL);
    script.arg = &run;
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    script.tidy =
        "{\"asks\":[" MEMORY_WRITE("\"value\":\"prefers tea\",\"replaces\":[\"00000002\","
                                   "\"00000003\"]") "]}";
    options = memory_options(&sc);
    must(sessile_remember_begin(&run, sc.session, sc.memories, 2, &options, &err), &err);
    r = memory_driven(run, &script);
    must(r.status, &r.err);
    assert_int_equal(r.o.verdict, SESSILE_APPLIED);
    assert_int_equal(r.o.written, 2);
    assert_int_equal(r.o.ended, 2);
    assert_non_null(strstr(r.changes, "},{"));
    assert_null(strstr(r.changes, "]{"));
    expect_text(listed_values(sc.memories[0], NULL), "prefers tea");
    memory_scene_close(&sc);
}

static void a_dry_run_writes_nothing(void **state)
{
    memory_scene sc;
    memory_script script = {.calls = 0};
    sessile_memory_run_options options;
    sessile_id before;
    memory_result r;

    begin(&sc, state, HOOKS & ~(unsigned)SESSILE_HOOK_ADMIT);
    script.remember = memory_writes(memory_said(sc.session, "user", "I prefer tea", ""));
    before = memory_log_count(sc.memories[0]);
    options = memory_options(&sc);
    options.dry_run = 1;
    r = memory_remembered(&sc, &script, &options);
    must(r.status, &r.err);
    assert_int_equal(r.o.verdict, SESSILE_APPLIED);
    assert_int_equal(r.o.written, 1);
    assert_null(strstr(r.changes, "\"id\""));
    script.remember = "{\"asks\":[" MEMORY_WRITE("\"value\":\"x\"") "]}";
    r = memory_remembered(&sc, &script, &options);
    assert_int_equal(r.o.verdict, SESSILE_REFUSED);
    assert_int_equal(r.o.law, 1);
    assert_int_equal(r.o.refusal, SESSILE_NO_ID);
    assert_int_equal(memory_log_count(sc.memories[0]), before);
    memory_scene_close(&sc);
}

/* Two entries for one key in one run: the first has it. */
static void a_key_is_written_once_in_a_run(void **state)
{
    memory_scene sc;
    memory_result r;
    sessile_id id;

    begin(&sc, state, SESSILE_HOOK_REMEMBER);
    id = memory_said(sc.session, "user", "I prefer tea", "");
    r = memory_asked(
        &sc,
        "[" MEMORY_WRITE(
            "\"key\":\"k\",\"value\":\"prefer tea\",\"from\":\"%08" PRIx32
            "\"") "," MEMORY_WRITE("\"key\":\"k\",\"value\":\"prefer coffee\","
                                   "\"from\":\"%08" PRIx32 "\"") "]",
        id, id);
    must(r.status, &r.err);
    assert_int_equal(r.o.written, 1);
    assert_int_equal(r.o.stale, 1);
    expect_key(sc.memories[0], "k", "prefer tea");
    memory_scene_close(&sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(what_somebody_said_is_heard_once),
        OVER(a_long_session_is_heard_in_parts),
        OVER(a_session_that_was_heard_meanwhile_is_stale),
        OVER(an_entry_and_what_was_heard_are_one),
        OVER(consent_may_end_in_the_middle),
        OVER(without_consent_a_hook_reads_nothing),
        OVER(a_user_may_be_forgotten_in_the_middle),
        OVER(a_run_keeps_its_memories),
        OVER(tidy_follows_remember),
        OVER(a_dry_run_writes_nothing),
        OVER(a_key_is_written_once_in_a_run),
    };
    return run_over_kinds("runs of memories", STORE_SEALED, tests,
                          sizeof tests / sizeof *tests);
}
