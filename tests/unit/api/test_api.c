/*
 * test_api.c: the edge of the library: what is missing or makes no sense is INVALID,
 * names itself and changes nothing; a handle is of no use in a child process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sessile.h"

#include <cmocka.h>

static const sessile_slice nowhere = {NULL, 5};

typedef struct world {
    sessile_store *store;
    sessile_session *s;
    sessile_error err;
} world;

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    sessile_store_options so;
    sessile_session_options o;
    assert_non_null(w);
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&w->store, "ram:", &so, &w->err), SESSILE_OK);
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    assert_int_equal(sessile_create(&w->s, w->store, &o, &w->err), SESSILE_OK);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    assert_int_equal(sessile_session_close(w->s, NULL), SESSILE_OK);
    sessile_store_close(w->store);
    free(w);
    return 0;
}

static uint64_t entries(world *w)
{
    sessile_listed *rows;
    size_t count;
    assert_int_equal(sessile_list(w->store, NULL, &rows, &count, NULL), SESSILE_OK);
    uint64_t n = rows[0].entries;
    sessile_free(rows);
    return n;
}

static void a_slice_with_a_size_and_no_data_is_invalid_everywhere(void **state)
{
    world *w = *state;
    sessile_session *made;
    sessile_run *run;
    sessile_key key;
    sessile_tokens tokens;
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"x\"}");
    sessile_session_options so;
    sessile_run_options ro;

    assert_int_equal(sessile_append(w->s, nowhere, NULL, &w->err), SESSILE_INVALID);
    assert_int_equal(sessile_append_custom(w->s, nowhere, NULL, NULL, &w->err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_set_title(w->s, nowhere, &w->err), SESSILE_INVALID);
    assert_int_equal(sessile_turn_begin(&run, w->s, &nowhere, 1, NULL, &w->err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_key_parse((sessile_slice){NULL, 8}, &key), SESSILE_INVALID);
    assert_int_equal(sessile_count_text(NULL, nowhere, &tokens, &w->err),
                     SESSILE_INVALID);
    for (int i = 0; i < 5; i++) {
        sessile_session_options_init(&so);
        sessile_slice *of[] = {&so.id, &so.agent, &so.user, &so.title, &so.metadata};
        so.id = sessile_text("other");
        *of[i] = nowhere;
        assert_int_equal(sessile_create(&made, w->store, &so, &w->err), SESSILE_INVALID);
        assert_null(made);
    }
    for (int i = 0; i < 4; i++) {
        sessile_run_options_init(&ro);
        sessile_slice *of[] = {&ro.usage, &ro.model, &ro.metadata, &ro.instructions};
        *of[i] = nowhere;
        assert_int_equal(sessile_turn_begin(&run, w->s, &m, 1, &ro, &w->err),
                         SESSILE_INVALID);
        assert_null(run);
    }
    assert_int_equal(entries(w), 1);
}

static void a_missing_argument_is_named_by_function(void **state)
{
    world *w = *state;
    sessile_message *list;
    size_t count;
    assert_int_equal(sessile_messages(NULL, NULL, &list, &count, &w->err),
                     SESSILE_INVALID);
    assert_string_equal(w->err.message, "sessile_messages: session is NULL");
    assert_int_equal(sessile_open(NULL, "ram:", NULL, &w->err), SESSILE_INVALID);
    assert_string_equal(w->err.message, "sessile_open: out is NULL");
    sessile_store *store = w->store;
    assert_int_equal(sessile_open(&store, NULL, NULL, NULL), SESSILE_INVALID);
    assert_null(store);
    assert_int_equal(sessile_run_step(NULL, NULL, &w->err), SESSILE_INVALID);
    assert_int_equal(sessile_run_reply(NULL, NULL, &w->err), SESSILE_INVALID);
    sessile_store_close(NULL);
    sessile_run_free(NULL);
    sessile_policy_free(NULL);
    sessile_entries_close(NULL);
    sessile_free(NULL);
    assert_int_equal(sessile_session_close(NULL, NULL), SESSILE_OK);
}

static void a_turn_of_no_messages_is_invalid(void **state)
{
    world *w = *state;
    sessile_run *run;
    assert_int_equal(sessile_turn_begin(&run, w->s, NULL, 0, NULL, &w->err),
                     SESSILE_INVALID);
    assert_int_equal(entries(w), 1);
}

static void limits_and_options_that_make_no_sense_are_refused_at_open(void **state)
{
    world *w = *state;
    sessile_store_options o;
    sessile_store *store;
    sessile_store_options_init(&o);
    o.limits.depth = UINT32_MAX;
    assert_int_equal(sessile_open(&store, "ram:", &o, &w->err), SESSILE_LIMIT);
    assert_non_null(strstr(w->err.message, "[depth]"));
    sessile_store_options_init(&o);
    o.config.window = -1;
    assert_int_equal(sessile_open(&store, "ram:", &o, &w->err), SESSILE_INVALID);
    sessile_store_options_init(&o);
    o.config.has_timeout = 1;
    o.config.timeout_ms = -2;
    assert_int_equal(sessile_open(&store, "ram:", &o, &w->err), SESSILE_INVALID);
    assert_null(store);
}

static void every_order_of_a_list_has_its_name(void **state)
{
    world *w = *state;
    sessile_list_options o;
    sessile_listed *rows;
    size_t count;
    int orders = 0;

    sessile_list_options_init(&o);
    for (; sessile_sort_name((sessile_sort)orders); orders++) {
        o.sort = (sessile_sort)orders;
        assert_int_equal(sessile_list_with(w->store, &o, &rows, &count, &w->err),
                         SESSILE_OK);
        sessile_free(rows);
    }
    assert_int_equal(orders, SESSILE_SORT_MESSAGES + 1);
    assert_string_equal(sessile_sort_name(SESSILE_SORT_BYTES), "size");
    o.sort = (sessile_sort)orders;
    assert_int_equal(sessile_list_with(w->store, &o, &rows, &count, &w->err),
                     SESSILE_INVALID);
    assert_null(sessile_sort_name((sessile_sort)-1));
}

/* What a child is told by each call; the number of the first that says otherwise. */
static int child_is_told(world *w)
{
    sessile_message *list;
    sessile_entries *e;
    sessile_usage usage;
    sessile_tokens tokens;
    sessile_run *run;
    sessile_id id;
    uint64_t n;
    size_t count;
    char *text;
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"x\"}");
    const sessile_status said[] = {
        sessile_append(w->s, m, NULL, NULL),
        sessile_turn_begin(&run, w->s, &m, 1, NULL, NULL),
        sessile_context(w->s, SESSILE_NO_ID, &list, &count, NULL, NULL),
        sessile_messages(w->s, NULL, &list, &count, NULL),
        sessile_entry(w->s, 0, &text, &count, NULL),
        sessile_entries_open(&e, w->s, NULL, NULL),
        sessile_head(w->s, &id, NULL),
        sessile_title(w->s, &text, &count, NULL),
        sessile_event_count(w->s, &n, NULL),
        sessile_total_usage(w->s, &usage, NULL),
        sessile_count_tokens(w->s, &tokens, NULL),
        sessile_clear(w->s, NULL),
        sessile_session_close(w->s, NULL),
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i] != SESSILE_FORKED)
            return (int)i + 1;
    return 0;
}

static void a_child_process_is_told_FORKED_by_every_call(void **state)
{
    world *w = *state;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(child_is_told(w));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(entries(w), 1);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_slice_with_a_size_and_no_data_is_invalid_everywhere),
        IN_WORLD(a_missing_argument_is_named_by_function),
        IN_WORLD(a_turn_of_no_messages_is_invalid),
        IN_WORLD(limits_and_options_that_make_no_sense_are_refused_at_open),
        IN_WORLD(every_order_of_a_list_has_its_name),
        IN_WORLD(a_child_process_is_told_FORKED_by_every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
