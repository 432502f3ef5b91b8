/*
 * test_session_open.c: stores found by url; sessions made, opened and listed.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/sessions.h"
#include "admin/list.h"
#include "base/text.h"
#include "session/fold.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ made and opened */

static void a_new_session_is_empty(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "bug-42");

    assert_int_equal(s->core->context.at_head.count, 0);
    assert_int_equal(s->core->tree.head, 0);
    assert_int_equal(s->core->tree.node_count, 1);
    assert_memory_equal(s->core->identity.id, "bug-42", 7);
    assert_string_equal(s->core->identity.agent, "main");
    assert_string_equal(s->core->identity.user, "");
    assert_true(s->core->header.created_ms > 1600000000000);
    session_closed(s);
}

static void creating_a_name_twice_is_exists(void **state)
{
    place *p = *state;
    sessile_session_options options = named("twice");
    sessile_error err;

    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
    assert_refused(session_create(p->store->core, &options, &err, NULL), SESSILE_EXISTS,
                   &err, "\"twice\"");
    options.agent = sessile_text("other");
    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
    options.user = sessile_text("somebody");
    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
}

static void opening_what_is_not_there_creates_nothing(void **state)
{
    place *p = *state;
    sessile_session_options options = named("nowhere");
    sessile_session *s = (sessile_session *)p;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    assert_refused(sessile_resume(&s, p->store, &options, &err), SESSILE_NOTFOUND, &err,
                   "\"nowhere\"");
    assert_null(s);
    assert_int_equal(sessile_list(p->store, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 0);
    sessile_free(rows);
}

static void an_empty_id_makes_a_uuid_and_opens_nothing(void **state)
{
    place *p = *state;
    sessile_session_options options = named("");
    char first[UUID_SIZE], second[UUID_SIZE];
    sessile_session *s;
    sessile_error err;

    assert_int_equal(session_create(p->store->core, &options, &err, first), SESSILE_OK);
    assert_int_equal(session_create(p->store->core, &options, &err, second), SESSILE_OK);
    assert_int_equal(strlen(first), 36);
    assert_int_equal(first[14], '7');
    assert_true(strcmp(first, second) < 0);
    options.uuid_v4 = 1;
    assert_int_equal(session_create(p->store->core, &options, &err, second), SESSILE_OK);
    assert_int_equal(second[14], '4');
    session_closed(session_resumed(p->store, first));
    assert_refused(sessile_resume(&s, p->store, &options, &err), SESSILE_INVALID, &err,
                   "id");
}

static void names_past_the_limit_are_refused(void **state)
{
    place *p = *state;
    sessile_session_options options = named("x");
    char *big = malloc(4097);
    sessile_error err;

    assert_non_null(big);
    memset(big, 'a', 4097);
    options.id = (sessile_slice){big, 4097};
    assert_refused(session_create(p->store->core, &options, &err, NULL), SESSILE_LIMIT,
                   &err, "[id]");
    options.id.size = 4096;
    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
    options = named("x");
    options.user = (sessile_slice){big, 4097};
    assert_refused(session_create(p->store->core, &options, &err, NULL), SESSILE_LIMIT,
                   &err, "[id]");
    options = named("x");
    options.title = (sessile_slice){big, 1025};
    assert_refused(session_create(p->store->core, &options, &err, NULL), SESSILE_LIMIT,
                   &err, "[title]");
    free(big);
}

static void names_of_any_bytes_come_back(void **state)
{
    place *p = *state;
    static const char id[] = "\xff\x00/../\xc0\xaf\n", agent[] = "\x80 agent",
                      user[] = "\0";
    sessile_session_options options = named("");
    sessile_listed *rows;
    sessile_session *s;
    sessile_error err;
    size_t count;

    options.id = (sessile_slice){id, sizeof id - 1};
    options.agent = (sessile_slice){agent, sizeof agent - 1};
    options.user = (sessile_slice){user, 1};
    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
    if (sessile_resume(&s, p->store, &options, &err))
        fail_msg("%s", err.message);
    assert_int_equal(s->core->identity.id_size, sizeof id - 1);
    assert_memory_equal(s->core->identity.id, id, sizeof id - 1);
    session_closed(s);
    assert_int_equal(sessile_list(p->store, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].status, SESSILE_OK);
    assert_int_equal(rows[0].id.size, sizeof id - 1);
    assert_memory_equal(rows[0].id.data, id, sizeof id - 1);
    assert_int_equal(rows[0].agent.size, sizeof agent - 1);
    assert_memory_equal(rows[0].agent.data, agent, sizeof agent - 1);
    assert_int_equal(rows[0].user.size, 1);
    assert_memory_equal(rows[0].user.data, user, 1);
    sessile_free(rows);
}

static void title_and_metadata_of_a_new_session_are_checked_and_kept(void **state)
{
    place *p = *state;
    sessile_session_options options = named("titled");
    sessile_session *s;
    sessile_error err;
    buf text;

    options.title = sessile_text("\xff");
    assert_refused(session_create(p->store->core, &options, &err, NULL), SESSILE_INVALID,
                   &err, "title");
    options.title = sessile_text("Slow \"start\"");
    options.metadata = sessile_text("[1]");
    assert_refused(session_create(p->store->core, &options, &err, NULL), SESSILE_INVALID,
                   &err, "metadata");
    options.metadata = sessile_text("{\"n\": 9007199254740993}");
    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
    s = session_resumed(p->store, "titled");
    assert_string_equal(s->core->fold.title, "Slow \"start\"");
    buf_init(&text, &p->store->core->alloc);
    assert_int_equal(log_read(s->core->log, 0, &text, &err), SESSILE_OK);
    assert_non_null(strstr(text.data, "\"metadata\":{\"n\":9007199254740993}"));
    buf_deinit(&text);
    session_closed(s);
}

static void another_name_in_the_file_is_damaged(void **state)
{
    place_files_only();
    place *p = *state;
    char from[600], to[600], command[1300];
    sessile_session_options options = named("mine");
    sessile_listed *rows;
    sessile_session *s;
    sessile_error err;
    size_t count;

    if (p->kind == STORE_RAM)
        return; /* has no files to move */
    session_closed(session_made(p->store, "yours"));
    snprintf(from, sizeof from, "%s/agents/main/yours.jsonl", p->folder);
    snprintf(to, sizeof to, "%s/agents/main/mine.jsonl", p->folder);
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
    assert_refused(sessile_resume(&s, p->store, &options, &err), SESSILE_DAMAGED, &err,
                   "yours");
    assert_non_null(strstr(err.message, "agents/main/mine.jsonl"));
    assert_int_equal(sessile_list(p->store, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 2);
    assert_int_not_equal(rows[0].status == SESSILE_OK, rows[1].status == SESSILE_OK);
    sessile_free(rows);
}

/* ------------------------------------------------------------------ lists */

static void a_list_is_newest_first_and_by_agent(void **state)
{
    place *p = *state;
    sessile_session_options options = named("theirs");
    sessile_session *old = session_made(p->store, "old"), *young;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    options.agent = sessile_text("other");
    assert_int_equal(session_create(p->store->core, &options, &err, NULL), SESSILE_OK);
    young = session_made(p->store, "young");
    p->store->core->os->sleep_ms(p->store->core->os->ud, 3);
    say(old, "user", "now it is the newest");
    put_entry(old, "metadata", 0, "{\"title\":\"T\"}");
    assert_int_equal(sessile_list(p->store, "main", &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 2);
    assert_string_equal(rows[0].id.data, "old");
    assert_string_equal(rows[0].title.data, "T");
    assert_string_equal(rows[0].message, "");
    assert_int_equal(rows[0].entries, 3);
    assert_int_equal(rows[0].messages, 1);
    assert_int_equal(rows[0].bytes, log_bytes(old->core->log));
    assert_int_equal(rows[0].modified_ms, fold_modified(old->core));
    assert_string_equal(rows[1].id.data, "young");
    sessile_free(rows);
    assert_int_equal(sessile_list(p->store, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 3);
    sessile_free(rows);
    assert_int_equal(sessile_list(p->store, "nobody", &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 0);
    sessile_free(rows);
    session_closed(old);
    session_closed(young);
}

static void a_log_that_does_not_open_has_a_row(void **state)
{
    place_files_only();
    place *p = *state;
    sessile_listed *rows;
    sessile_error err;
    char path[600];
    size_t count;
    FILE *file;

    if (p->kind == STORE_RAM)
        return; /* has no bytes to spoil */
    session_closed(session_made(p->store, "good"));
    session_closed(session_made(p->store, "spoilt"));
    snprintf(path, sizeof path, "%s/agents/main/spoilt.jsonl", p->folder);
    file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, 40, SEEK_SET);
    fputc('#', file);
    fclose(file);
    assert_int_equal(sessile_list(p->store, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        int good = rows[i].id.size == 4 && !strcmp(rows[i].id.data, "good");
        assert_int_equal(rows[i].status == SESSILE_OK, good);
        assert_true(good || rows[i].message[0]);
        assert_true(rows[i].bytes > 0);
    }
    sessile_free(rows);
}

/* ------------------------------------------------------------------ stores */

static void urls_that_are_no_store_are_refused(void **state)
{
    sessile_store *st = (sessile_store *)state;
    sessile_store_options options;
    sessile_error err;

    memset(&options, 0, sizeof options);
    assert_refused(sessile_open(&st, "", &options, &err), SESSILE_INVALID, &err, "url");
    assert_null(st);
    assert_refused(sessile_open(&st, NULL, &options, &err), SESSILE_INVALID, &err, "url");
    assert_refused(sessile_open(&st, "file:", &options, &err), SESSILE_INVALID, &err,
                   "file:");
    assert_refused(sessile_open(&st, "ram:x", &options, &err), SESSILE_INVALID, &err,
                   "ram:");
    assert_refused(sessile_open(&st, "sqlite:", &options, &err), SESSILE_INVALID, &err,
                   "sqlite:");
    assert_refused(sessile_open(&st, "sqlite:x/", &options, &err), SESSILE_INVALID, &err,
                   "path of a file");
    assert_refused(sessile_open(&st, "postgres://u:secret@h/db?pol=3", &options, &err),
                   SESSILE_INVALID, &err, "\"pol\"");
    assert_null(strstr(err.message, "secret"));
    options.config.has_timeout = 1;
    options.config.timeout_ms = -2;
    assert_refused(sessile_open(&st, "ram:", &options, &err), SESSILE_INVALID, &err,
                   "timeout_ms");
}

static void a_path_and_its_file_url_are_one_store(void **state)
{
    sessile_store_options options;
    char *folder = folder_make(), url[600];
    sessile_store *st;
    sessile_error err;

    (void)state;
    memset(&options, 0, sizeof options);
    options.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&st, folder, &options, &err), SESSILE_OK);
    session_closed(session_made(st, "x"));
    sessile_store_close(st);
    snprintf(url, sizeof url, "file:%s", folder);
    assert_int_equal(sessile_open(&st, url, &options, &err), SESSILE_OK);
    session_closed(session_resumed(st, "x"));
    sessile_store_close(st);
    folder_remove(folder);
}

static void limits_that_are_not_given_have_their_default(void **state)
{
    sessile_store_options options;
    sessile_store *st;
    sessile_error err;

    (void)state;
    memset(&options, 0, sizeof options);
    options.limits.depth = 5;
    options.agent = "coder";
    assert_int_equal(sessile_open(&st, "ram:", &options, &err), SESSILE_OK);
    assert_int_equal(st->core->limits.depth, 5);
    assert_int_equal(st->core->limits.message, 8 * 1024 * 1024);
    assert_int_equal(st->core->limits.id, 4096);
    assert_string_equal(st->core->agent, "coder");
    sessile_store_close(st);
    assert_int_equal(sessile_open(&st, "ram:", NULL, &err), SESSILE_OK);
    assert_string_equal(st->core->agent, "main");
    assert_int_equal(st->core->config.timeout_ms, 5000);
    sessile_store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(a_new_session_is_empty),
        OVER(creating_a_name_twice_is_exists),
        OVER(opening_what_is_not_there_creates_nothing),
        OVER(an_empty_id_makes_a_uuid_and_opens_nothing),
        OVER(names_past_the_limit_are_refused),
        OVER(names_of_any_bytes_come_back),
        OVER(title_and_metadata_of_a_new_session_are_checked_and_kept),
        OVER(another_name_in_the_file_is_damaged),
        OVER(a_list_is_newest_first_and_by_agent),
        OVER(a_log_that_does_not_open_has_a_row),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test(urls_that_are_no_store_are_refused),
        cmocka_unit_test(a_path_and_its_file_url_are_one_store),
        cmocka_unit_test(limits_that_are_not_given_have_their_default),
    };
    int failed = cmocka_run_group_tests_name("stores", once, NULL, NULL);

    failed += run_over_kinds("opening", STORE_RAM, tests, sizeof tests / sizeof *tests);
    return failed != 0;
}
