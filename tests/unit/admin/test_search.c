/*
 * test_search.c: what is said is found where it was said, and nothing else is; what
 * cannot be read ends no search.
 *
 * A search is compared as lines, "session entry field [before|found|after]".
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "sessile.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/find.h"

static sessile_slice slice(const char *text)
{
    return (sessile_slice){text, text ? strlen(text) : 0};
}

/* ------------------------------------------------------------------ a search as text */

typedef struct tally {
    size_t steps, nothings, unread, found;
    sessile_status why;
} tally;

/* free() */
static char *search_with(sessile_store *st, const sessile_search_options *o, tally *out)
{
    static const char *const kinds[] = {"end",   "nothing", "message",
                                        "title", "label",   "unread"};
    sessile_search *search;
    sessile_found f;
    sessile_error err;
    tally t;
    buf text;

    memset(&t, 0, sizeof t);
    buf_init(&text, &allocator_default);
    buf_puts(&text, "");
    if (sessile_search_open(&search, st, o, &err))
        fail_msg("%s", err.message);
    for (;;) {
        if (sessile_search_next(search, &f, &err))
            fail_msg("%s", err.message);
        if (f.kind == SESSILE_FOUND_END)
            break;
        t.steps++;
        assert_true(f.index < f.total);
        assert_true(f.done <= f.entries);
        if (f.kind == SESSILE_FOUND_NOTHING) {
            t.nothings++;
            continue;
        }
        buf_printf(&text, "%s %s", f.id.data ? f.id.data : "?", kinds[f.kind]);
        if (f.kind == SESSILE_FOUND_UNREAD) {
            t.unread++;
            t.why = f.status;
            assert_true(f.status != SESSILE_OK && f.message[0] != 0);
            buf_puts(&text, "\n");
            continue;
        }
        t.found++;
        assert_true(utf8_valid(f.text.data, f.text.size));
        assert_true(f.at + f.size <= f.text.size);
        assert_true(f.time_ms > 0);
        if (f.entry != SESSILE_NO_ID)
            buf_printf(&text, " %" PRIx32, f.entry);
        if (f.field[0])
            buf_printf(&text, " %s %s", sessile_role_name(f.role), f.field);
        buf_printf(&text, " %s[%.*s|%.*s|%.*s]%s\n", f.cut_before ? "<" : "", (int)f.at,
                   f.text.data, (int)f.size, f.text.data + f.at,
                   (int)(f.text.size - f.at - f.size), f.text.data + f.at + f.size,
                   f.cut_after ? ">" : "");
    }
    /* the end stays the end */
    assert_int_equal(sessile_search_next(search, &f, &err), SESSILE_OK);
    assert_int_equal(f.kind, SESSILE_FOUND_END);
    sessile_search_close(search);
    if (out)
        *out = t;
    return text.data;
}

static void assert_found(sessile_store *st, const char *query, const char *expected)
{
    sessile_search_options o;
    char *got;

    sessile_search_options_init(&o);
    o.text = slice(query);
    got = search_with(st, &o, NULL);
    assert_string_equal(got, expected);
    free(got);
}

static sessile_session *made_for(sessile_store *st, const char *id, const char *agent,
                                 const char *user, const char *title)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;

    sessile_session_options_init(&o);
    o.id = slice(id);
    o.agent = slice(agent);
    o.user = slice(user);
    o.title = slice(title);
    if (sessile_create(&s, st, &o, &err))
        fail_msg("%s", err.message);
    return s;
}

/* A moment later by the clock, so that the order of sessions is known. */
static void a_moment_passes(void)
{
    int64_t now = os_posix.now_ms(NULL);

    while (os_posix.now_ms(NULL) <= now)
        ;
}

/* ------------------------------------------------------------------ what is found */

static void text_is_found_in_every_part_of_a_message(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say(s, "user", "a plain needle");
    say_json(s, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"no\"},"
                "{\"type\":\"text\",\"text\":\"a block needle\"}]}");
    say_json(s, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
                "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
                "\"{\\\"path\\\":\\\"needle.c\\\"}\"}}]}");
    say_json(s,
             "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"result needle\"}");
    say_json(s,
             "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c2\","
             "\"name\":\"f\",\"input\":{\"deep\":[{\"x\":\"input needle\"},8080]}}]}");
    say_json(s,
             "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
             "\"c2\",\"content\":[{\"type\":\"text\",\"text\":\"nested needle\"}]}]}");
    say_json(s, "{\"role\":\"assistant\",\"reasoning_content\":\"thought needle\","
                "\"content\":\"x\"}");
    assert_found(p->store, "needle",
                 "a message 1 user content [a plain |needle|]\n"
                 "a message 2 user content [a block |needle|]\n"
                 "a message 3 assistant tool_calls [{\"path\":\"|needle|.c\"}]\n"
                 "a message 4 tool content [result |needle|]\n"
                 "a message 5 assistant content [input |needle|]\n"
                 "a message 6 tool content [nested |needle|]\n"
                 "a message 7 assistant reasoning_content [thought |needle|]\n");
    assert_found(p->store, "8080", "a message 5 assistant content [|8080|]\n");
    session_closed(s);
}

static void what_nobody_said_is_not_found(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say_json(s, "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":"
                "\"needle\",\"name\":\"f\",\"input\":{\"needle\":1}}],"
                "\"metadata\":{\"x\":\"needle\"},\"needle\":\"needle\"}");
    say_json(s,
             "{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
             "\"base64\",\"data\":\"needle\"}},{\"type\":\"image_url\",\"image_url\":{"
             "\"url\":\"data:image/png;base64,needle\"}}]}");
    say_json(s, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"nee\"},"
                "{\"type\":\"text\",\"text\":\"dle\"}]}");
    assert_found(p->store, "needle", "");
    session_closed(s);
}

static void escapes_are_read_before_they_are_compared(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say_json(s, "{\"role\":\"user\",\"content\":\"n\\u0065e\\u0064le\"}");
    say_json(s, "{\"\\u0072ole\":\"user\",\"content\":\"smile \\ud83d\\ude00!\"}");
    say_json(s, "{\"role\":\"user\",\"content\":\"one\\ntwo \\\"three\\\" \\\\ \\/\"}");
    say_json(s, "{\"role\":\"user\",\"content\":\"half \\ud83d alone\"}");
    assert_found(p->store, "needle", "a message 1 user content [|needle|]\n");
    assert_found(p->store, "\xf0\x9f\x98\x80", /* 😀 */
                 "a message 2 user content [smile |\xf0\x9f\x98\x80|!]\n");
    assert_found(p->store, "e\ntwo \"three\" \\ /",
                 "a message 3 user content [on|e\ntwo \"three\" \\ /|]\n");
    assert_found(p->store, "f \xef\xbf\xbd a",
                 "a message 4 user content [hal|f \xef\xbf\xbd a|lone]\n");
    assert_found(p->store, "u0065", "");
    assert_found(p->store, "\\n", "");
    session_closed(s);
}

static void signatures_and_encrypted_content_are_not_found(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say_json(
        s,
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\","
        "\"thinkingSignature\":\"needle\"},{\"type\":\"text\",\"text\":\"x\","
        "\"textSignature\":\"needle\"}]}");
    say_json(s,
             "{\"role\":\"assistant\",\"reasoning\":[{\"encrypted_content\":\"needle\"}],"
             "\"content\":[{\"type\":\"x\",\"y\":{\"thoughtSignature\":\"needle\","
             "\"signature\":\"needle\",\"encryptedContent\":\"needle\",\"z\":\"here: "
             "needle\"}}]}");
    assert_found(p->store, "needle", "a message 2 assistant content [here: |needle|]\n");
    session_closed(s);
}

static void control_sequences_are_not_found_and_part_no_word(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say_json(s, "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x "
                "\\u001b[1;31mnee\\u001b[0mdle\\u001b[0m y\"}");
    say_json(s, "{\"role\":\"user\",\"content\":\"\\u001b]0;a title\\u0007 "
                "\\u001b\\u001b[2Jz\"}");
    say_json(s, "{\"role\":\"user\",\"content\":\"an array[31m of them\"}");
    assert_found(p->store, "needle", "a message 1 tool content [x |needle| y]\n");
    assert_found(p->store, "31m", "a message 3 user content [an array[|31m| of them]\n");
    assert_found(p->store, "0;a", "a message 2 user content [|0;a| title\a z]\n");
    assert_found(p->store, "2J", "");
    assert_found(p->store, "\033", "");
    session_closed(s);
}

static void letters_large_and_small_are_one_unless_asked(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_search_options o;
    char *got;

    say(s, "user", "The NeEdLe \xc3\x84");
    assert_found(p->store, "nEEDlE \xc3\x84",
                 "a message 1 user content [The |NeEdLe \xc3\x84|]\n");
    assert_found(p->store, "\xc3\xa4", ""); /* ä: only ASCII letters are folded */
    sessile_search_options_init(&o);
    o.exact = 1;
    o.text = slice("needle");
    got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "");
    free(got);
    o.text = slice("NeEdLe");
    got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "a message 1 user content [The |NeEdLe| \xc3\x84]\n");
    free(got);
    session_closed(s);
}

/* Of texts over two letters everything is found that a plain loop finds. */
static void the_first_place_is_the_one_a_plain_loop_finds(void **state)
{
    char text[48], query[16];
    uint32_t seed = 12345;
    (void)state;

    for (int round = 0; round < 400000; round++) {
        size_t size = (seed >> 8) % 40 + 1, asked = (seed >> 16) % 10 + 1, at = 0,
               expected = 0;
        find_query q;
        int there = 0;
        for (size_t i = 0; i < size + asked; i++) {
            seed = seed * 1664525 + 1013904223;
            *(i < size ? &text[i] : &query[i - size]) = "ab"[seed >> 24 & 1];
        }
        query[asked] = 0;
        for (size_t i = 0; !there && i + asked <= size; i++)
            if (!memcmp(text + i, query, asked)) {
                there = 1;
                expected = i;
            }
        assert_int_equal(
            find_init(&q, (sessile_slice){query, asked}, 1, &allocator_default), 0);
        assert_int_equal(find_in_text(&q, text, size, &at), there);
        if (there)
            assert_int_equal(at, expected);
        find_deinit(&q);
        seed = seed * 1664525 + 1013904223;
    }
}

static void what_is_shown_around_it_has_whole_characters(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    char text[1200];
    sessile_search_options o;
    tally t;

    /* three bytes a character, none, one or two bytes between them and the needle: what
     * is shown would begin and end within one */
    for (int shift = 0; shift < 3; shift++) {
        size_t at = (size_t)sprintf(text, "%.*s", shift, "xxx");
        for (int i = 0; i < 100; i++)
            at += (size_t)sprintf(text + at, "\xe2\x82\xac");
        at += (size_t)sprintf(text + at, "%.*sneedle%.*s", shift, "xxx", shift, "yyy");
        for (int i = 0; i < 100; i++)
            at += (size_t)sprintf(text + at, "\xe2\x82\xac");
        say(s, "user", text);
    }
    sessile_search_options_init(&o);
    o.text = slice("needle");
    char *got = search_with(p->store, &o, &t); /* it looks whether each is UTF-8 */
    assert_int_equal(t.found, 3);
    assert_non_null(strstr(got, "<[\xe2\x82\xac"));
    assert_non_null(strstr(got, "\xe2\x82\xac|needle|\xe2\x82\xac"));
    assert_non_null(strstr(got, "\xe2\x82\xac]>"));
    assert_true(strlen(got) < 3 * 260);
    free(got);
    session_closed(s);
}

/* ------------------------------------------------------------------ which sessions */

static void the_newest_session_is_searched_first(void **state)
{
    const place *p = *state;
    const char *const ids[] = {"old", "middle", "new"};

    for (size_t i = 0; i < 3; i++) {
        sessile_session *s = session_made(p->store, ids[i]);
        say(s, "user", "needle");
        session_closed(s);
        a_moment_passes();
    }
    assert_found(p->store, "needle",
                 "new message 1 user content [|needle|]\n"
                 "middle message 1 user content [|needle|]\n"
                 "old message 1 user content [|needle|]\n");
}

static void titles_and_labels_are_searched_unless_roles_are_asked(void **state)
{
    const place *p = *state;
    sessile_session *s = made_for(p->store, "a", NULL, NULL, "My Needle");
    sessile_search_options o;
    sessile_id first = say(s, "user", "needle one");

    say(s, "assistant", "needle two");
    assert_int_equal(sessile_label(s, first, slice("needle-label"), NULL), SESSILE_OK);
    assert_int_equal(sessile_label(s, first, slice("gone needle"), NULL), SESSILE_OK);
    assert_int_equal(sessile_unlabel(s, first, slice("gone needle"), NULL), SESSILE_OK);
    assert_found(p->store, "needle",
                 "a title [My |Needle|]\n"
                 "a label 1 [|needle|-label]\n"
                 "a message 1 user content [|needle| one]\n"
                 "a message 2 assistant content [|needle| two]\n");
    sessile_search_options_init(&o);
    o.text = slice("needle");
    o.roles = 1u << SESSILE_ASSISTANT;
    char *got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "a message 2 assistant content [|needle| two]\n");
    free(got);
    session_closed(s);
}

static void one_user_or_agent_is_searched_alone(void **state)
{
    const place *p = *state;
    sessile_search_options o;
    sessile_list_options which;
    static const char *const names[][3] = {
        {"a", "main", "ann"}, {"b", "main", "ben"}, {"c", "other", "ann"}};

    for (size_t i = 0; i < 3; i++) {
        sessile_session *s =
            made_for(p->store, names[i][0], names[i][1], names[i][2], NULL);
        say(s, "user", "needle");
        session_closed(s);
        a_moment_passes();
    }
    sessile_search_options_init(&o);
    sessile_list_options_init(&which);
    o.text = slice("needle");
    o.sessions = &which;
    which.user = slice("ann");
    char *got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "c message 1 user content [|needle|]\n"
                             "a message 1 user content [|needle|]\n");
    free(got);
    which.agent = slice("main");
    got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "a message 1 user content [|needle|]\n");
    free(got);
}

static void a_deleted_session_is_found_when_asked_for(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_delete_options how = {.soft = 1};
    sessile_session_options which;
    sessile_search_options o;
    sessile_list_options lives;

    say(s, "user", "needle");
    session_closed(s);
    sessile_session_options_init(&which);
    which.id = slice("a");
    assert_int_equal(sessile_delete(p->store, &which, &how, NULL, NULL), SESSILE_OK);
    assert_found(p->store, "needle", "");
    sessile_search_options_init(&o);
    sessile_list_options_init(&lives);
    o.text = slice("needle");
    o.sessions = &lives;
    lives.lives = 1u << SESSILE_LIFE_DELETED;
    char *got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "a message 1 user content [|needle|]\n");
    free(got);
}

static void all_branches_or_the_path_to_the_head(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_search_options o;
    sessile_id first = say(s, "user", "needle 1");

    say(s, "user", "needle 2");
    for (int i = 0; i < 40; i++) /* a gap that is not read through */
        say(s, "user", "hay");
    move_head(s, first);
    say(s, "user", "needle 3");
    sessile_search_options_init(&o);
    o.text = slice("needle");
    char *got = search_with(p->store, &o, NULL);
    assert_non_null(strstr(got, "needle| 2"));
    free(got);
    o.head_only = 1;
    got = search_with(p->store, &o, NULL);
    assert_string_equal(got, "a message 1 user content [|needle| 1]\n"
                             "a message 2c user content [|needle| 3]\n");
    free(got);
    session_closed(s);
}

static void a_limit_ends_it(void **state)
{
    const place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_search_options o;
    tally t;

    for (int i = 0; i < 200; i++)
        say(s, "user", "needle");
    sessile_search_options_init(&o);
    o.text = slice("needle");
    free(search_with(p->store, &o, &t));
    assert_int_equal(t.found, 200); /* more than one step has room for */
    o.limit = 70;
    free(search_with(p->store, &o, &t));
    assert_int_equal(t.found, 70);
    session_closed(s);
}

/* ------------------------------------------------------------------ damage */

static void spoil(const char *path, long at)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_true(fputc('#', file) == '#');
    assert_int_equal(fclose(file), 0);
}

static void what_cannot_be_read_is_told_and_the_rest_is_found(void **state)
{
    place_files_only();
    const place *p = *state;
    const char *const ids[] = {"first", "second", "third"};
    char path[600];
    long half = 0;

    p->store->core->durability = SESSILE_SYNC; /* or what follows was never promised */
    for (size_t i = 0; i < 3; i++) {
        sessile_session *s = session_made(p->store, ids[i]);
        for (int n = 0; n < 40; n++) {
            say(s, "user", n == 0 || n == 39 ? "needle" : "hay");
            if (i == 1 && n == 20)
                half = (long)log_bytes(s->core->log) - 60;
        }
        session_closed(s);
        a_moment_passes();
    }
    log_path(p, "second", path);
    spoil(path, half);
    assert_found(p->store, "needle",
                 "third message 1 user content [|needle|]\n"
                 "third message 28 user content [|needle|]\n"
                 "second unread\n"
                 "second message 1 user content [|needle|]\n"
                 "second message 28 user content [|needle|]\n"
                 "first message 1 user content [|needle|]\n"
                 "first message 28 user content [|needle|]\n");
    spoil(path, 30); /* its header too: it does not open at all */
    sessile_search_options o;
    tally t;
    sessile_search_options_init(&o);
    o.text = slice("needle");
    free(search_with(p->store, &o, &t));
    assert_int_equal(t.unread, 1);
    assert_int_equal(t.found, 4);
}

/* A line that rotted where opening does not look: the index is believed. */
static void a_line_that_rotted_later_is_told_where_it_stands(void **state)
{
    place_files_only();
    const place *p = *state;
    sessile_session *s = session_made(p->store, "long");
    sessile_search_options o;
    char path[600];
    long bad = 0;
    tally t;

    for (int n = 1; n <= 700; n++) {
        say(s, "user", n == 10 || n == 300 || n == 690 ? "needle" : "hay");
        if (n == 100)
            bad = (long)log_bytes(s->core->log) - 60;
    }
    session_closed(s);
    s = session_resumed(p->store, "long"); /* writes the index */
    session_closed(s);
    log_path(p, "long", path);
    spoil(path, bad);
    sessile_search_options_init(&o);
    o.text = slice("needle");
    char *got = search_with(p->store, &o, &t);
    assert_int_equal(t.found, 3);
    assert_int_equal(t.unread, 1);
    assert_int_equal(t.why, SESSILE_DAMAGED);
    free(got);
}

/* ------------------------------------------------------------------ refusals */

static void what_is_no_text_is_refused(void **state)
{
    const place *p = *state;
    sessile_search_options o;
    sessile_search *search = (sessile_search *)&o;
    sessile_error err;
    char large[1002];

    sessile_search_options_init(&o);
    assert_int_equal(sessile_search_open(&search, p->store, &o, &err), SESSILE_INVALID);
    assert_null(search);
    o.text = slice("\xff");
    assert_int_equal(sessile_search_open(&search, p->store, &o, &err), SESSILE_INVALID);
    memset(large, 'x', 1001);
    o.text = (sessile_slice){large, 1001};
    assert_int_equal(sessile_search_open(&search, p->store, &o, &err), SESSILE_INVALID);
    o.text = (sessile_slice){NULL, 3};
    assert_int_equal(sessile_search_open(&search, p->store, &o, &err), SESSILE_INVALID);
    assert_int_equal(sessile_search_open(&search, p->store, NULL, &err), SESSILE_INVALID);
    assert_int_equal(sessile_search_open(NULL, p->store, &o, &err), SESSILE_INVALID);
    sessile_search_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(text_is_found_in_every_part_of_a_message),
        OVER(what_nobody_said_is_not_found),
        OVER(escapes_are_read_before_they_are_compared),
        OVER(signatures_and_encrypted_content_are_not_found),
        OVER(control_sequences_are_not_found_and_part_no_word),
        OVER(letters_large_and_small_are_one_unless_asked),
        OVER(what_is_shown_around_it_has_whole_characters),
        OVER(the_newest_session_is_searched_first),
        OVER(titles_and_labels_are_searched_unless_roles_are_asked),
        OVER(one_user_or_agent_is_searched_alone),
        OVER(a_deleted_session_is_found_when_asked_for),
        OVER(all_branches_or_the_path_to_the_head),
        OVER(a_limit_ends_it),
        OVER(what_is_no_text_is_refused),
    };
    const struct CMUnitTest files[] = {
        OVER(what_cannot_be_read_is_told_and_the_rest_is_found),
        OVER(a_line_that_rotted_later_is_told_where_it_stands),
    };
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(the_first_place_is_the_one_a_plain_loop_finds),
    };
    int failed = cmocka_run_group_tests_name("finding", alone, NULL, NULL);

    failed += run_over_kinds("search", STORE_RAM, tests, sizeof tests / sizeof *tests);
    failed += run_over_kinds("search", STORE_SEALED, files, sizeof files / sizeof *files);
    return failed != 0;
}
