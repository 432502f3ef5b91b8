/* test_screen.c: lists of screens below the Lua: their order, what functions may answer,
 * what is removed from a text, and a list without memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "screen/screen.h"
#include "support/rations.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

/* ------------------------------------------------------------------ removing */

/* The text after spans of its view were removed; "!" in front: something was outside. */
static const char *removed(const char *text, int is_json, const char *spans)
{
    static char out[512];
    sessile_error err;
    view_spans list;
    size_t from, to, count;
    int outside, n;
    view v;
    buf left;

    assert_int_equal(view_make(&v, slice_of(text), is_json, &allocator_default, &err),
                     SESSILE_OK);
    view_spans_init(&list, &allocator_default);
    buf_init(&left, &allocator_default);
    for (; sscanf(spans, "%zu-%zu%n", &from, &to, &n) == 2; spans += n)
        assert_int_equal(view_spans_add(&list, from, to, &err), SESSILE_OK);
    assert_int_equal(view_remove(&v, &list, "r", &left, &count, &outside, &err),
                     SESSILE_OK);
    snprintf(out, sizeof out, "%s%.*s", outside ? "!" : "", (int)left.size,
             left.data ? left.data : "");
    buf_deinit(&left);
    view_spans_deinit(&list);
    view_deinit(&v);
    return out;
}

static void places_are_replaced_and_the_rest_stays(void **state)
{
    (void)state;
    assert_string_equal(removed("abcdef", 0, "1-3"), "a[removed: r]def");
    assert_string_equal(removed("abcdef", 0, "4-6 0-1"), "[removed: r]bcd[removed: r]");
    assert_string_equal(removed("abcdef", 0, "1-3 2-4 4-5"), "a[removed: r]f");
    assert_string_equal(removed("abcdef", 0, "0-6"), "[removed: r]");
    assert_string_equal(removed("abc", 0, "1-99"), "a[removed: r]");
    assert_string_equal(removed("abc", 0, ""), "abc");
    assert_string_equal(removed("a\xc3\xa4z", 0, "2-3"), "a[removed: r]z");
}

static void escapes_are_decoded_and_removed_whole(void **state)
{
    (void)state;
    /* the view of "a\u0062c" is "abc", after the quote */
    assert_string_equal(removed("\"a\\u0062c\"", 1, "2-3"), "\"a[removed: r]c\"");
    assert_string_equal(removed("\"\\n\\\"x\"", 1, "1-3"), "\"[removed: r]x\"");
    assert_string_equal(removed("\"\\ud83d\\ude00x\"", 1, "2-3"), "\"[removed: r]x\"");
}

static void json_stays_json(void **state)
{
    (void)state;
    assert_string_equal(removed("[\"ab\",\"cd\"]", 1, "3-8"),
                        "[\"a[removed: r]\",\"[removed: r]d\"]");
    assert_string_equal(removed("{\"k\":\"v\"}", 1, "6-7"), "{\"k\":\"[removed: r]\"}");
    assert_int_equal(removed("{\"k\" :\"v\"}", 1, "2-3")[0], '!');
    assert_int_equal(removed("[12,true]", 1, "1-2")[0], '!');
    assert_int_equal(removed("[12,\"a\"]", 1, "2-6")[0], '!');
    assert_string_equal(removed("[ 1 , \"\" ]", 1, "5-7"), "[ 1 , \"\" ]");
}

/* ------------------------------------------------------------------ lists */

/* A function that answers what its `ref` says, and counts. */
typedef struct scripted {
    screen_answer answer;
    sessile_status status;
    int calls, released;
    size_t urls;
} scripted;

static sessile_status answer(void *ref, const screen_sight *sight, screen_answer *out,
                             sessile_error *err)
{
    scripted *s = ref;
    s->calls++;
    s->urls = sight->url_count;
    out->verdict = s->answer.verdict;
    memcpy(out->rule, s->answer.rule, sizeof out->rule);
    snprintf(err->message, sizeof err->message, "it failed");
    return s->status;
}

static void release(void *ref)
{
    ((scripted *)ref)->released++;
}

static void add(sessile_screens *list, const char *name, const char *expression,
                scripted *function)
{
    screen s = {.kinds = SESSILE_SCREEN_MEMORY,
                .action = SESSILE_SCREEN_REFUSE,
                .on_error = SESSILE_SCREEN_REFUSE,
                .always = !expression};
    sessile_error err;

    snprintf(s.name, sizeof s.name, "%s", name);
    if (expression) {
        assert_int_equal(pattern_set_new(&s.patterns, &allocator_default, &err), 0);
        assert_int_equal(pattern_set_add(s.patterns, "p", slice_of(expression), &err), 0);
        pattern_set_ready(s.patterns);
    }
    if (function)
        s.function = (screen_function){function, answer, release};
    assert_int_equal(screens_add(list, &s, &err), SESSILE_OK);
}

static sessile_screens *list_new(void)
{
    sessile_screens *list;
    assert_int_equal(screens_new(&list, os_current, &allocator_default, NULL), 0);
    return list;
}

static sessile_screen_item item_of(const char *text)
{
    return (sessile_screen_item){.kind = SESSILE_SCREEN_MEMORY, .text = slice_of(text)};
}

static void the_first_that_refuses_ends_it(void **state)
{
    scripted flags = {.answer = {.verdict = SESSILE_SCREEN_FLAG}},
             never = {.answer = {.verdict = SESSILE_SCREEN_FLAG}};
    sessile_screens *list = list_new();
    sessile_screen_item item = item_of("an order");
    screen_result result;
    sessile_error err;
    char label[SCREEN_RULE_MAX + 8];
    (void)state;

    add(list, "first", NULL, &flags);
    add(list, "second", "order", NULL);
    add(list, "third", NULL, &never);
    assert_int_equal(screens_run(list, &item, &result, &err), SESSILE_OK);
    assert_int_equal(result.verdict, SESSILE_SCREEN_REFUSE);
    assert_int_equal(result.count, 2);
    assert_int_equal(never.calls, 0);
    assert_int_equal(screen_label(&result.findings[0], label), 1);
    assert_string_equal(label, "screen:first");
    assert_int_equal(screen_label(&result.findings[1], label), 0);
    assert_int_equal(screen_refusal(&result, &err), SESSILE_DENIED);
    assert_string_equal(
        err.message, "the screen second refuses it by its rule p: nothing was written");
    screen_result_deinit(&result);
    screens_release(list);
    assert_int_equal(flags.released + never.released, 2);
}

static void a_function_runs_when_an_expression_matched(void **state)
{
    scripted passes = {.answer = {.verdict = SESSILE_SCREEN_PASS}};
    sessile_screens *list = list_new();
    sessile_screen_item item = item_of("nothing here"), other = item_of("an order");
    screen_result result;
    (void)state;

    add(list, "s", "order", &passes);
    assert_int_equal(screens_run(list, &item, &result, NULL), SESSILE_OK);
    assert_int_equal(passes.calls, 0);
    screen_result_deinit(&result);
    assert_int_equal(screens_run(list, &other, &result, NULL), SESSILE_OK);
    assert_int_equal(passes.calls, 1);
    assert_int_equal(result.verdict, SESSILE_SCREEN_PASS);
    assert_int_equal(screen_refusal(&result, NULL), SESSILE_OK);
    screen_result_deinit(&result);
    other.kind = SESSILE_SCREEN_TITLE;
    assert_int_equal(screens_run(list, &other, &result, NULL), SESSILE_OK);
    assert_int_equal(passes.calls, 1);
    screen_result_deinit(&result);
    screens_release(list);
}

static void what_fails_refuses_and_what_is_unknown_fails(void **state)
{
    scripted bad = {.status = SESSILE_POLICY},
             unknown = {.answer = {SESSILE_SCREEN_FLAG, "other", 0, {0}}};
    sessile_screen_item item = item_of("x");
    screen_result result;
    scripted *both[] = {&bad, &unknown};
    int i;
    (void)state;

    for (i = 0; i < 2; i++) {
        sessile_screens *list = list_new();
        add(list, "s", NULL, both[i]);
        assert_int_equal(screens_run(list, &item, &result, NULL), SESSILE_OK);
        assert_int_equal(result.verdict, SESSILE_SCREEN_REFUSE);
        assert_string_equal(result.findings[0].rule, "failed");
        screen_result_deinit(&result);
        screens_release(list);
    }
}

static sessile_status find_urls(void *arg, const sessile_screen_item *item,
                                sessile_slice text, screen_urls *out, sessile_error *err)
{
    const char *at = strstr(text.data, "http");
    (void)item, (void)err;
    if (at) {
        out->verdict = *(sessile_screen_verdict *)arg;
        snprintf(out->rule, sizeof out->rule, "loopback");
    }
    return SESSILE_OK;
}

static void urls_come_before_the_screens_which_see_them(void **state)
{
    sessile_screen_verdict verdict = SESSILE_SCREEN_FLAG;
    scripted passes = {.answer = {.verdict = SESSILE_SCREEN_PASS}};
    sessile_screens *list = list_new();
    sessile_screen_item item = item_of("\"see http\\u003a//localhost\"");
    screen_result result;
    (void)state;

    item.is_json = 1;
    add(list, "s", NULL, &passes);
    screens_set_urls(list, find_urls, &verdict);
    assert_int_equal(screens_run(list, &item, &result, NULL), SESSILE_OK);
    assert_int_equal(result.verdict, SESSILE_SCREEN_FLAG);
    assert_string_equal(result.findings[0].rule, "loopback");
    assert_int_equal(passes.urls, 1);
    screen_result_deinit(&result);
    verdict = SESSILE_SCREEN_REFUSE;
    assert_int_equal(screens_run(list, &item, &result, NULL), SESSILE_OK);
    assert_int_equal(result.verdict, SESSILE_SCREEN_REFUSE);
    assert_int_equal(passes.calls, 1);
    screen_result_deinit(&result);
    screens_release(list);
}

static void no_list_lets_all_pass(void **state)
{
    sessile_screen_item item = item_of("x");
    screen_result result;
    (void)state;
    assert_int_equal(screens_run(NULL, &item, &result, NULL), SESSILE_OK);
    assert_int_equal(result.verdict, SESSILE_SCREEN_PASS);
    screen_result_deinit(&result);
}

/* Runs an item with its own words again and again; the number of wrong answers. */
static void *run_often(void *arg)
{
    const sessile_screens *list = arg;
    intptr_t wrong = 0;
    int i;

    for (i = 0; i < 300; i++) {
        const char *text = i % 2 ? "password: hunter2Hunter, end" : "nothing to hide";
        sessile_screen_item item = item_of(text);
        sessile_screen_outcome *outcome = NULL;
        if (sessile_screen(&outcome, list, &item, NULL))
            wrong++;
        else if (i % 2)
            wrong += outcome->text.size != strlen("password: [removed: named], end");
        else
            wrong += outcome->verdict != SESSILE_SCREEN_PASS;
        sessile_free(outcome);
    }
    return (void *)wrong;
}

static void many_threads_run_one_list(void **state)
{
    sessile_screen_step step = {.name = "policies/screens/secrets.lua",
                                .options = "{\"action\":\"redact\"}"};
    sessile_screens *list;
    pthread_t threads[6];
    void *wrong;
    int i;
    (void)state;

    assert_int_equal(sessile_screens_load(&list, &step, 1, NULL, NULL), SESSILE_OK);
    for (i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, list), 0);
    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    sessile_screens_free(list);
}

/* The Nth allocation fails, for every N: NOMEM, and all is freed. */
static void without_memory_it_says_so(void **state)
{
    static const char file[] = "policies/screens/secrets.lua";
    sessile_screen_step step = {.name = file, .options = "{\"action\":\"redact\"}"};
    sessile_screen_item item = item_of("\"key \\u0041KIAABCDEFGHIJKLMNOP\"");
    long n;
    int done = 0;
    (void)state;

    item.is_json = 1;
    for (n = 0; !done; n++) {
        rations r = {n, 0};
        sessile_screens_options options;
        sessile_screens *list = NULL;
        sessile_screen_outcome *outcome = NULL;
        sessile_error err;
        sessile_status status;

        sessile_screens_options_init(&options);
        options.alloc = ration;
        options.alloc_ud = &r;
        status = sessile_screens_load(&list, &step, 1, &options, &err);
        if (!status)
            status = sessile_screen(&outcome, list, &item, &err);
        if (status) {
            assert_int_equal(status, SESSILE_NOMEM);
            assert_null(outcome);
        } else {
            assert_int_equal(outcome->verdict, SESSILE_SCREEN_REDACT);
            done = 1;
        }
        sessile_free(outcome);
        sessile_screens_free(list);
        assert_int_equal(r.live, 0);
    }
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_replaced_and_the_rest_stays),
        cmocka_unit_test(escapes_are_decoded_and_removed_whole),
        cmocka_unit_test(json_stays_json),
        cmocka_unit_test(the_first_that_refuses_ends_it),
        cmocka_unit_test(a_function_runs_when_an_expression_matched),
        cmocka_unit_test(what_fails_refuses_and_what_is_unknown_fails),
        cmocka_unit_test(urls_come_before_the_screens_which_see_them),
        cmocka_unit_test(no_list_lets_all_pass),
        cmocka_unit_test(many_threads_run_one_list),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
