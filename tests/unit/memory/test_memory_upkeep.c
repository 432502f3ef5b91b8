/*
 * test_memory_upkeep.c: what is done to a whole store reaches its memories: checks, new
 * keys, forgetting a user, a move to another store; and what damage does to one.
 *
 * Files only: it looks at files, and flips bytes in them.
 * Own stores: a sealed folder.
 */
#include "support/check.h"
#include "support/children.h"
#include "support/keyed.h"
#include "support/memories.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char key_text[] = "a secret of this test";

typedef struct ground {
    char *root;
    sessile_store *store;
} ground;

static int set_up(void **state)
{
    ground *g = calloc(1, sizeof *g);
    g->root = folder_make();
    g->store = keyed_open(g->root, key_text);
    *state = g;
    return 0;
}

static int tear_down(void **state)
{
    ground *g = *state;
    sessile_store_close(g->store);
    folder_remove(g->root);
    free(g);
    return 0;
}

/* Two users' memories, and the agent's. */
static void fill(sessile_store *st)
{
    static const char *const users[] = {"annabel", "bernard", NULL};
    for (size_t i = 0; i < 3; i++) {
        sessile_memory *m = memory_of(st, users[i]);
        remember(m, "editor", "an old canary", NULL);
        remember(m, "editor", "canary prefers vim", "IDE");
        sessile_memory_close(m);
    }
}

static void expect_filled(sessile_store *st, const char *user)
{
    sessile_memory *m = memory_of(st, user);
    expect_key(m, "editor", "canary prefers vim");
    expect_text(found(m, "canary"), "canary prefers vim");
    sessile_memory_close(m);
}

/* How many findings a check of all logs has, notes aside. */
static size_t findings(sessile_store *st, int salvage, char *file, int *salvaged)
{
    sessile_check *c;
    sessile_checked one;
    sessile_error err;
    size_t count = 0;

    *salvaged = 0;
    must(sessile_check_open(&c, st, NULL, salvage, &err), &err);
    for (;;) {
        must(sessile_check_next(c, &one, &err), &err);
        if (!one.file)
            break;
        if (one.count && file)
            snprintf(file, 500, "%s", one.file);
        for (size_t i = 0; i < one.count; i++)
            count += one.findings[i].severity != SESSILE_NOTE;
        *salvaged += one.salvaged;
    }
    sessile_check_close(c);
    return count;
}

static void a_check_finds_nothing_wrong(void **state)
{
    ground *g = *state;
    int salvaged;
    fill(g->store);
    assert_int_equal(findings(g->store, 0, NULL, &salvaged), 0);
    assert_int_equal(findings(g->store, 1, NULL, &salvaged), 0);
    assert_int_equal(salvaged, 0);
    expect_filled(g->store, "annabel");
}

static void no_word_is_in_a_file(void **state)
{
    ground *g = *state;
    fill(g->store);
    assert_int_equal(keyed_files_with(g->root, "canary"), 0);
    assert_int_equal(keyed_files_with(g->root, "editor"), 0);
    assert_int_equal(keyed_files_with(g->root, "annabel"), 0);
    assert_int_equal(keyed_files_with(g->root, "\"s\":"),
                     6); /* logs, keyring, users: sealed */
}

static void a_memory_is_sealed_again_while_it_is_open(void **state)
{
    ground *g = *state;
    sessile_reseal_state last;
    sessile_memory *m;
    sessile_error err;
    uint64_t epoch;

    fill(g->store);
    m = memory_of(g->store, "annabel");
    for (int i = 0; i < 2; i++) {
        must(sessile_keys_rotate(g->store, NULL, &epoch, &err), &err);
        must(keyed_reseal(g->store, NULL, &last, &err), &err);
        if (i) /* a write meets it first, or a read */
            remember(m, "shell", "fish", NULL);
        expect_key(m, "editor", "canary prefers vim");
    }
    expect_key(m, "shell", "fish");
    sessile_memory_close(m);
    expect_filled(g->store, "bernard");
}

static void a_forgotten_user_is_gone(void **state)
{
    ground *g = *state;
    sessile_memory_options options;
    sessile_memory *m, *none;
    sessile_memory_row *rows;
    sessile_error err;
    uint64_t logs;
    size_t count;

    fill(g->store);
    m = memory_of(g->store, "annabel");
    must(sessile_forget(g->store, sessile_text("annabel"), &logs, &err), &err);
    assert_int_equal(logs, 1);
    assert_refused(
        sessile_memory_search(m, sessile_text("canary"), NULL, &rows, &count, &err),
        SESSILE_SEALED, &err, "forgotten");
    sessile_memory_close(m);
    sessile_memory_options_init(&options);
    options.agent = sessile_text("coder");
    options.user = sessile_text("annabel");
    assert_refused(sessile_memory_open(&none, g->store, &options, &err), SESSILE_SEALED,
                   &err, "coder");
    assert_null(none);
    expect_filled(g->store, "bernard");
    expect_filled(g->store, NULL);
}

static void a_copy_of_the_store_has_them(void **state)
{
    ground *g = *state;
    char *other = folder_make(), path[600];
    sessile_store_options o;
    sessile_place from = {.store = g->store}, to = {.url = path, .options = &o};
    sessile_migrate_options how = {.change = 1};
    sessile_migrate_state told;
    sessile_migration *m;
    sessile_store *st;
    sessile_error err;
    sessile_status status;

    fill(g->store);
    snprintf(path, sizeof path, "sqlite:%s/other.db", other);
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    must(sessile_migrate_begin(&m, &from, &to, &how, &err), &err);
    do
        status = sessile_migrate_step(m, &told, &err);
    while (status == SESSILE_NEEDS);
    must(status, &err);
    assert_int_equal(told.copied, 3);
    assert_int_equal(told.failed, 0);
    sessile_migrate_free(m);
    must(sessile_open(&st, path, &o, &err), &err);
    expect_filled(st, "annabel");
    expect_filled(st, NULL);
    sessile_store_close(st);
    folder_remove(other);
}

/* Flips a byte in the middle of the only log with this in its path. */
static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    int byte;
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    fputc(byte == 'A' ? 'B' : 'A', file);
    fclose(file);
}

static void what_is_left_of_a_damaged_memory_is_read(void **state)
{
    ground *g = *state;
    char *path = NULL, file[500] = "";
    sessile_memory *m = memory_of(g->store, NULL);
    sessile_memory_write_entry e;
    sessile_error err;
    struct stat before;
    int salvaged;

    remember(m, "a", "first canary", NULL);
    sessile_memory_close(m);
    path = keyed_file(g->root, "coder.memory/memory.jsonl", "\"s\":");
    assert_non_null(path);
    assert_int_equal(stat(path, &before), 0);
    m = memory_of(g->store, NULL);
    remember(m, "b", "second canary", NULL);
    remember(m, "c", "third canary", NULL);
    sessile_memory_close(m);
    flip(path, (long)before.st_size + 60);
    m = memory_of(g->store, NULL);
    expect_text(found(m, "canary"), "third canary|first canary");
    expect_key(m, "b", NULL);
    sessile_memory_write_init(&e);
    e.value = sessile_text("fourth");
    assert_refused(sessile_memory_write(m, &e, 1, NULL, &err), SESSILE_DAMAGED, &err,
                   "coder");
    sessile_memory_close(m);
    assert_true(findings(g->store, 0, file, &salvaged) > 0);
    assert_non_null(strstr(file, "coder.memory"));
    findings(g->store, 1, NULL, &salvaged);
    assert_int_equal(salvaged, 1);
    assert_int_equal(findings(g->store, 0, NULL, &salvaged), 0);
    m = memory_of(g->store, NULL);
    remember(m, "b", "second again", NULL);
    expect_text(found(m, "canary"), "third canary|first canary");
    sessile_memory_close(m);
    free(path);
}

static void a_session_and_a_memory_are_not_taken_for_each_other(void **state)
{
    ground *g = *state;
    sessile_memory_options options;
    sessile_memory *m = memory_of(g->store, NULL);
    sessile_session_options named;
    sessile_session *s;
    sessile_error err;
    char *memory, session[700], *end;

    remember(m, "a", "v", NULL);
    sessile_memory_close(m);
    sessile_session_options_init(&named);
    named.id = sessile_text("memory");
    named.agent = sessile_text("coder");
    must(sessile_create(&s, g->store, &named, &err), &err);
    sessile_session_close(s, NULL);
    memory = keyed_file(g->root, "coder.memory/memory.jsonl", "\"s\":");
    snprintf(session, sizeof session, "%s", memory);
    end = strstr(session, "coder.memory");
    assert_non_null(end);
    strcpy(end, "coder/memory.jsonl");
    /* each in the place of the other */
    assert_int_equal(rename(session, "swapped"), 0);
    assert_int_equal(rename(memory, session), 0);
    assert_int_equal(rename("swapped", memory), 0);
    assert_int_equal(sessile_resume(&s, g->store, &named, &err), SESSILE_DAMAGED);
    sessile_memory_options_init(&options);
    options.agent = sessile_text("coder");
    assert_int_equal(sessile_memory_open(&m, g->store, &options, &err), SESSILE_DAMAGED);
    free(memory);
}

/* In another process than the one that opened it. */
static void use_it(void *arg, int in, int out)
{
    sessile_memory_row *row;
    sessile_status status = sessile_memory_read(arg, sessile_text("a"), &row, NULL);
    sessile_memory_close(arg);
    child_tell(out, status == SESSILE_FORKED ? 'y' : 'n');
    child_hear(in);
}

static void a_forked_process_is_told(void **state)
{
    ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);
    child c;
    remember(m, "a", "v", NULL);
    c = child_start(use_it, m);
    assert_int_equal(child_hear(c.from), 'y');
    child_end(&c);
    expect_key(m, "a", "v");
    sessile_memory_close(m);
}

#define ON_GROUND(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_GROUND(a_check_finds_nothing_wrong),
        ON_GROUND(no_word_is_in_a_file),
        ON_GROUND(a_memory_is_sealed_again_while_it_is_open),
        ON_GROUND(a_forgotten_user_is_gone),
        ON_GROUND(a_copy_of_the_store_has_them),
        ON_GROUND(what_is_left_of_a_damaged_memory_is_read),
        ON_GROUND(a_session_and_a_memory_are_not_taken_for_each_other),
        ON_GROUND(a_forked_process_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
