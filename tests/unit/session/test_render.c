/*
 * test_render.c: a context as a model is sent it.
 *
 * What is shown is written as keys; what the engine made as "=id" for a tool message and
 * "=[id]" for a block.
 */
#include "support/lists.h"
#include "support/rations.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/handle.h"
#include "session/read.h"
#include "session/tree.h"

static sessile_error err;

typedef struct shown {
    sessile_message *rows;
    size_t count;
    sessile_context_info info;
    char keys[65536];
} shown;

static void name_made(char *out, const sessile_message *m)
{
    json root = json_of(m->json.data, m->json.size), id = json_get(root, "tool_call_id");
    json_iter block = json_begin(json_get(root, "content"));

    assert_int_equal(strlen(m->json.data), m->json.size);
    if (id.type == JSON_STRING) {
        assert_int_equal(m->role, SESSILE_TOOL);
        sprintf(out, "=%.*s", (int)id.size - 2, id.at + 1);
        return;
    }
    assert_int_equal(m->role, SESSILE_USER);
    assert_true(json_next(&block));
    id = json_get(block.value, "tool_use_id");
    sprintf(out, "=[%.*s]", (int)id.size - 2, id.at + 1);
}

static void show(shown *out, list *l)
{
    size_t i;

    memset(out, 0, sizeof *out);
    assert_int_equal(render_context(&l->c, list_read, l, NULL, &out->rows, &out->count,
                                    &out->info, &allocator_default, &err),
                     SESSILE_OK);
    for (i = 0; i < out->count; i++) {
        const sessile_message *m = &out->rows[i];
        char *at = out->keys + strlen(out->keys);
        if (i)
            *at++ = ' ';
        if (m->key.entry == SESSILE_NO_ID)
            name_made(at, m);
        else
            sprintf(at, "%u", m->key.entry);
    }
}

static void check(const char *line, const char *keys, unsigned orphans,
                  unsigned unanswered)
{
    static shown s;
    list l;

    list_make(&l, line);
    show(&s, &l);
    assert_string_equal(s.keys, keys);
    assert_int_equal(s.info.orphans, orphans);
    assert_int_equal(s.info.unanswered, unanswered);
    sessile_free(s.rows);
    list_free(&l);
}

/* ------------------------------------------------------------------ order */

static void a_plain_list_is_shown_as_it_is(void **unused)
{
    (void)unused;
    check("", "", 0, 0);
    check("s u a:x,y r:y r:x a u", "1 2 3 4 5 6 7", 0, 0);
}

static void open_calls_are_left_open(void **unused)
{
    (void)unused;
    check("u a:x,y r:x", "1 2 3", 0, 0);
}

static void dead_calls_are_answered_behind_the_results(void **unused)
{
    (void)unused;
    check("u a:x,y,z r:y u", "1 2 3 =x =z 4", 0, 2);
    check("a:x a:y u", "1 =x 2 =y 3", 0, 2);
}

static void late_answers_move_to_their_calls(void **unused)
{
    (void)unused;
    check("u a:x,y r:y u a r:x u", "1 2 3 6 4 5 7", 0, 0);
    check("a:x a:y u r:y r:x", "1 5 2 4 3", 0, 0);
    check("a:x,y,z u r:z r:x", "1 3 4 =y 2", 0, 1);
}

static void orphans_are_left_out(void **unused)
{
    (void)unused;
    check("u r:q a", "1 3", 1, 0);
    check("a:x r:x r:x u", "1 2 4", 1, 0);
    check("u m:p,q a", "1 3", 2, 0);
}

static void an_orphan_beside_something_else_is_kept_and_counted(void **unused)
{
    (void)unused;
    check("u b:x m:x,q a", "1 2 3 4", 1, 0);
    check("u t:q a", "1 2 3", 1, 0);
    check("u x:p/q u", "1 2 =[p] 3", 1, 1);
}

static void text_of_a_kind_beside_an_orphan_is_kept(void **unused)
{
    list l;
    static shown s;

    (void)unused;
    list_make(&l, "u m:q a");
    free(l.texts[1]);
    l.texts[1] = strdup("{\"role\":\"user\",\"metadata\":{\"kind\":\"k\"},\"content\":["
                        "{\"type\":\"tool_result\",\"tool_use_id\":\"q\"},"
                        "{\"type\":\"text\",\"text\":\"hear\"}]}");
    show(&s, &l);
    assert_string_equal(s.keys, "1 2 3");
    assert_int_equal(s.info.orphans, 1);
    sessile_free(s.rows);
    list_free(&l);
}

static void text_beside_a_result_ends_the_answers(void **unused)
{
    (void)unused;
    check("b:x,y t:x a", "1 2 =[y] 3", 0, 1);
}

static void a_message_that_answers_two_is_shown_once(void **unused)
{
    (void)unused;
    check("b:x b:y m:y,x u", "1 2 3 4", 0, 0);     /* in time for the second */
    check("b:x b:y u m:y,x u", "1 4 2 3 5", 0, 0); /* at the first that it answers */
}

static void answers_written_as_calls_are_answers(void **unused)
{
    (void)unused;
    check("a:x,y p:x u p:y u", "1 2 4 3 5", 0, 0);
    check("o:x u", "1 2", 0, 0);
}

/* ------------------------------------------------------------------ texts */

static void texts_are_those_that_were_said(void **unused)
{
    static shown s;
    size_t i;
    list l;

    (void)unused;
    list_make(&l, "s u a:x r:x a");
    show(&s, &l);
    for (i = 0; i < s.count; i++) {
        assert_string_equal(s.rows[i].json.data, l.texts[i]);
        assert_int_equal(s.rows[i].json.size, strlen(l.texts[i]));
        assert_int_equal(s.rows[i].role, l.c.items[i].role);
        assert_int_equal(s.rows[i].tokens, l.c.items[i].tokens);
        assert_int_equal(s.rows[i].time_ms, 0);
    }
    sessile_free(s.rows);
    list_free(&l);
}

static void made_answers_have_the_form_of_the_call(void **unused)
{
    static shown s;
    list l;

    (void)unused;
    list_make(&l, "a:x b:y u");
    show(&s, &l);
    assert_int_equal(s.count, 5);
    assert_string_equal(s.rows[1].json.data, "{\"role\":\"tool\",\"tool_call_id\":\"x\","
                                             "\"content\":\"not answered\"}");
    assert_string_equal(s.rows[3].json.data,
                        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                        "\"tool_use_id\":\"y\",\"content\":\"not answered\","
                        "\"is_error\":true}]}");
    assert_int_equal(s.rows[1].key.n, 0);
    assert_true(s.rows[1].tokens > 0);
    sessile_free(s.rows);
    list_free(&l);
}

static void ids_are_written_as_they_were(void **unused)
{
    static shown s;
    list l;

    (void)unused;
    list_make(&l, "a:x u");
    free(l.texts[0]);
    l.texts[0] = strdup("{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"\\u0078\","
                        "\"name\":\"f\",\"arguments\":\"\"}]}");
    show(&s, &l);
    assert_string_equal(s.rows[1].json.data, "{\"role\":\"tool\",\"tool_call_id\":"
                                             "\"\\u0078\",\"content\":\"not answered\"}");
    sessile_free(s.rows);
    list_free(&l);
}

static void times_are_those_of_the_entries(void **unused)
{
    node nodes[4] = {{0}, {.time_ms = 11}, {.time_ms = 22}, {.time_ms = 33}};
    session_core times;
    sessile_message *rows;
    sessile_context_info info;
    size_t count;
    list l;

    (void)unused;
    memset(&times, 0, sizeof times);
    times.tree.nodes = nodes;
    times.tree.node_count = 3; /* the third message is not known there */
    list_make(&l, "u a:x u");
    assert_int_equal(render_context(&l.c, list_read, &l, &times, &rows, &count, &info,
                                    &allocator_default, &err),
                     SESSILE_OK);
    assert_int_equal(count, 4);
    assert_int_equal(rows[0].time_ms, 11);
    assert_int_equal(rows[1].time_ms, 22);
    assert_int_equal(rows[2].time_ms, 22); /* made for the call before it */
    assert_int_equal(rows[3].time_ms, 0);
    sessile_free(rows);
    list_free(&l);
}

/* ------------------------------------------------------------------ errors */

static void a_text_that_cannot_be_read_is_an_error(void **unused)
{
    sessile_message *rows = (sessile_message *)&err;
    sessile_context_info info;
    size_t count = 7;
    list l;

    (void)unused;
    list_make(&l, "u a:x u");
    l.fail_at = 3;
    assert_int_equal(render_context(&l.c, list_read, &l, NULL, &rows, &count, &info,
                                    &allocator_default, &err),
                     SESSILE_IO);
    assert_null(rows);
    assert_int_equal(count, 0);
    list_free(&l);
}

static rations memory;

static void no_memory_is_told_and_nothing_leaks(void **unused)
{
    const allocator a = {ration, &memory};
    sessile_status status = SESSILE_NOMEM;
    sessile_message *rows;
    size_t n, count;
    list l;

    (void)unused;
    list_make(&l, "s u a:x,y,z u r:y b:q u a");
    for (n = 0; status && n < 200; n++) {
        memory.left = (long)n;
        status = render_context(&l.c, list_read, &l, NULL, &rows, &count, NULL, &a, &err);
        assert_true(status == SESSILE_OK ? rows != NULL
                                         : err.code == SESSILE_NOMEM && !rows);
    }
    assert_int_equal(status, SESSILE_OK);
    assert_in_range(n, 8, 100);
    assert_int_equal(count, 11);
    sessile_free(rows);
    list_free(&l);
}

/* ------------------------------------------------------------------ any list */

/*
 * What a provider asks of a list, for lists without messages that answer two, or that mix
 * results with something else: behind a message with calls come results of its calls,
 * each once, for all of them (but for the last such message), and none comes anywhere
 * else.
 */
static void providers_accept(const shown *s, const char *line)
{
    const allocator *a = &allocator_default;
    message_link *links = NULL;
    size_t link_count = 0, capacity = 0, i, k, waiting = 0;
    uint64_t asked[16];
    message m;

    for (i = 0; i < s->count; i++) {
        sessile_slice text = s->rows[i].json;
        int results;
        link_count = 0;
        assert_int_equal(message_read(&m, text.data, text.size, &links, &link_count,
                                      &capacity, a, &err),
                         SESSILE_OK);
        results = link_count && links[0].is_result;
        if (!results && waiting)
            fail_msg("SEED=%llu: \"%s\" is shown as \"%s\": message %zu comes before %zu "
                     "results",
                     (unsigned long long)random_seed(), line, s->keys, i, waiting);
        for (k = 0; k < link_count; k++) {
            size_t j;
            if (!links[k].is_result) {
                asked[waiting++] = links[k].id;
                continue;
            }
            for (j = 0; j < waiting && asked[j] != links[k].id;)
                j++;
            if (j == waiting)
                fail_msg(
                    "SEED=%llu: \"%s\" is shown as \"%s\": message %zu answers nothing",
                    (unsigned long long)random_seed(), line, s->keys, i);
            asked[j] = asked[--waiting];
        }
    }
    mem_free(a, links, capacity * sizeof *links);
}

/* Calls and results of single messages, in any order and number. */
static void random_simple_line(char *out)
{
    unsigned n = random_below(20);
    size_t at = 0;

    out[0] = 0;
    while (n-- > 0) {
        char a = (char)('p' + random_below(4)), b = (char)('t' + random_below(2));
        switch (random_below(7)) {
        case 0:
            at += (size_t)sprintf(out + at, "u ");
            break;
        case 1:
            at += (size_t)sprintf(out + at, "a ");
            break;
        case 2:
            at += (size_t)sprintf(out + at, "a:%c,%c ", a, b);
            break;
        case 3:
            at += (size_t)sprintf(out + at, "b:%c,%c ", a, b);
            break;
        case 4:
            at += (size_t)sprintf(out + at, "m:%c ", random_below(2) ? a : b);
            break;
        default:
            at += (size_t)sprintf(out + at, "r:%c ", random_below(2) ? a : b);
            break;
        }
    }
}

static void what_is_shown_is_what_providers_accept(void **unused)
{
    static shown s;
    int round;

    (void)unused;
    random_start();
    for (round = 0; round < 20000; round++) {
        char line[1024];
        list l;

        random_simple_line(line);
        list_make(&l, line);
        show(&s, &l);
        /* what is not an orphan is shown, once */
        assert_int_equal(s.count, l.c.count - s.info.orphans + s.info.unanswered);
        providers_accept(&s, line);
        sessile_free(s.rows);
        list_free(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_list_is_shown_as_it_is),
        cmocka_unit_test(open_calls_are_left_open),
        cmocka_unit_test(dead_calls_are_answered_behind_the_results),
        cmocka_unit_test(late_answers_move_to_their_calls),
        cmocka_unit_test(orphans_are_left_out),
        cmocka_unit_test(an_orphan_beside_something_else_is_kept_and_counted),
        cmocka_unit_test(text_of_a_kind_beside_an_orphan_is_kept),
        cmocka_unit_test(text_beside_a_result_ends_the_answers),
        cmocka_unit_test(a_message_that_answers_two_is_shown_once),
        cmocka_unit_test(answers_written_as_calls_are_answers),
        cmocka_unit_test(texts_are_those_that_were_said),
        cmocka_unit_test(made_answers_have_the_form_of_the_call),
        cmocka_unit_test(ids_are_written_as_they_were),
        cmocka_unit_test(times_are_those_of_the_entries),
        cmocka_unit_test(a_text_that_cannot_be_read_is_an_error),
        cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
        cmocka_unit_test(what_is_shown_is_what_providers_accept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
