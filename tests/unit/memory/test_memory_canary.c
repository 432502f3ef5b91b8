/*
 * test_memory_canary.c: nothing that a memory knows is in any file.
 *
 * A memory is filled with canaries: in values, keys, texts to be found by, metadata,
 * sessions, authors, reasons, consents, vectors; and asked questions that have one. Every
 * byte that the process writes goes through a table of system calls that looks for them,
 * also what is renamed or removed at once, and all files are searched in the end. The
 * same in a plain store is the control: there all but the questions are found, until they
 * are erased.
 *
 * Own stores: sealed and plain folders, SQLite.
 */
#include "support/check.h"
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

#include "memory/vectors.h"

enum { DIMS = 12, ENTRIES = 300, CANARIES = 12 };

static const float vector[DIMS] = {9, -2, 3, -7, 5, 8, -1, 4, -6, 2, 7, -9};

/* What must not be written. */
enum { QUESTION = CANARIES - 1, VALUE = 0, CONSENT = 6, USER = 7 };
static struct {
    char bytes[32];
    size_t size;
    unsigned long writes; /* that had it */
} canaries[CANARIES] = {
    [VALUE] = {"albatross-value", 0, 0},
    {"bittern-key", 0, 0},
    {"cormorant-also", 0, 0},
    {"dunlin-metadata", 0, 0},
    {"egret-session", 0, 0},
    {"fulmar-author", 0, 0},
    [CONSENT] = {"goshawk-consent", 0, 0},
    [USER] = {"heron-user", 0, 0},
    {"ibis-reason", 0, 0},
    {"", 0, 0}, /* the vector's bytes */
    {"", 0, 0}, /* and in base64 */
    [QUESTION] = {"jackdaw-question", 0, 0},
};

static void put_base64(const unsigned char *bytes, size_t size, char *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (; size >= 3; size -= 3, bytes += 3) {
        unsigned group = (unsigned)bytes[0] << 16 | (unsigned)bytes[1] << 8 | bytes[2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = digits[group >> shift & 63];
    }
    *out = 0;
}

static void know_canaries(void)
{
    int8_t values[32] = {0};
    float scale;
    assert_int_equal(vector_quantise(vector, DIMS, values, &scale), 0);
    memcpy(canaries[9].bytes, values, DIMS);
    /* in an entry four bytes of a scale go before: from the sixth byte on a group begins
     */
    put_base64((const unsigned char *)values + 2, 9, canaries[10].bytes);
    for (int i = 0; i < CANARIES; i++) {
        canaries[i].size = i == 9 ? DIMS : strlen(canaries[i].bytes);
        canaries[i].writes = 0;
    }
}

/* ------------------------------------------------------------------ what is written */

static os_table watched;

static int64_t watch_pwrite(void *ud, int fd, const void *data, size_t size,
                            uint64_t offset)
{
    (void)ud;
    for (int i = 0; i < CANARIES; i++)
        canaries[i].writes +=
            memmem(data, size, canaries[i].bytes, canaries[i].size) != NULL;
    return os_posix.pwrite(NULL, fd, data, size, offset);
}

static void look_at_name(const char *name)
{
    for (int i = 0; i < CANARIES; i++)
        if (strstr(name, canaries[i].bytes) && canaries[i].size)
            fail_msg("a file is named %s", name);
}

static int watch_open(void *ud, int dir, const char *path, int flags)
{
    (void)ud;
    if (flags & OS_CREATE_NEW)
        look_at_name(path);
    return os_posix.open_at(NULL, dir, path, flags);
}

/* ------------------------------------------------------------------ a memory of them */

static const char key_text[] = "a secret of this test";

static sessile_store *store_at_url(const char *url, int plain)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;
    watched = os_posix;
    watched.pwrite = watch_pwrite;
    watched.open_at = watch_open;
    os_current = &watched;
    sessile_store_options_init(&o);
    o.key_source = plain ? SESSILE_KEY_PLAIN : SESSILE_KEY_SECRET;
    o.key = plain ? NULL : key_text;
    must(sessile_open(&st, url, &o, &err), &err);
    return st;
}

static sessile_memory *memory_here(sessile_store *st)
{
    sessile_memory_options o;
    sessile_memory *m;
    sessile_error err;
    sessile_memory_options_init(&o);
    o.agent = sessile_text("coder");
    o.user = sessile_text(canaries[USER].bytes);
    o.consent = sessile_text(canaries[CONSENT].bytes);
    must(sessile_memory_open(&m, st, &o, &err), &err);
    return m;
}

/* More than a block of the index, with all canaries in the first. */
static sessile_id fill(sessile_memory *m)
{
    sessile_memory_from from = {.session = sessile_text(canaries[4].bytes), .last = 2};
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id id;

    sessile_memory_write_init(&e);
    e.value = sessile_text("albatross-value and more");
    e.key = sessile_text(canaries[1].bytes);
    e.also = sessile_text(canaries[2].bytes);
    e.metadata = sessile_text("{\"place\":\"dunlin-metadata\"}");
    e.author = sessile_text(canaries[5].bytes);
    e.from = &from;
    e.from_count = 1;
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    must(sessile_memory_embed(m, sessile_text("model"), DIMS, &id, vector, 1, &err),
         &err);
    must(sessile_memory_verdict(m, &id, 1, SESSILE_MEMORY_PIN,
                                sessile_text("ibis-reason"), sessile_text(NULL), NULL,
                                &err),
         &err);
    for (int i = 0; i < ENTRIES; i++) {
        char text[40];
        snprintf(text, sizeof text, "sparrow %d", i);
        remember(m, NULL, text, NULL);
    }
    return id;
}

/* Answers are right, and nothing is kept of what was asked. */
static void ask(sessile_memory *m, int is_there)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;
    sessile_memory_search_init(&o);
    o.vector = is_there ? vector : NULL;
    o.dims = DIMS;
    must(sessile_memory_search(m, sessile_text("jackdaw-question albatross"), &o, &rows,
                               &count, &err),
         &err);
    assert_true(is_there ? count > 0 && rows[0].pinned : count == 0);
    sessile_free(rows);
    (void)sessile_memory_read(m, sessile_text("jackdaw-question"), &rows, &err);
}

/* The memory is recalled into a session of its user, which asks the same. */
static void recall(sessile_store *st, sessile_memory *m)
{
    sessile_session_options o;
    sessile_recall_options how;
    sessile_recall_outcome out;
    sessile_session *s;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text("talk");
    o.agent = sessile_text("coder");
    o.user = sessile_text(canaries[USER].bytes);
    must(sessile_create(&s, st, &o, &err), &err);
    must(sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"albatross?\"}"),
                        NULL, &err),
         &err);
    sessile_recall_options_init(&how);
    how.question = sessile_text("jackdaw-question albatross");
    must(sessile_recall(s, &m, 1, &how, &out, &err), &err);
    assert_true(out.recalled > 0);
    must(sessile_session_close(s, &err), &err);
}

static int files_with(const char *folder, int canary)
{
    return keyed_files_with(folder, canaries[canary].bytes);
}

/* The last line of the memory's log, half written: it is set aside. */
static void tear(const char *folder)
{
    char *path = keyed_file(folder, "coder.memory/", "\"s\":"), *line;
    char *end = path ? strstr(path, ".jsonl") : NULL;
    FILE *file;
    assert_non_null(end);
    file = fopen(path, "r+b");
    assert_non_null(file);
    line = calloc(1, 100);
    assert_int_equal(fseek(file, -100, SEEK_END), 0);
    assert_int_equal(fread(line, 1, 60, file), 60);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(fwrite(line, 1, 60, file), 60);
    fclose(file);
    free(line);
    free(path);
}

static void sealed(int in_sqlite)
{
    char *folder = folder_make(), url[600];
    sessile_reseal_state last;
    sessile_error err;
    sessile_store *st;
    sessile_memory *m;
    sessile_id id;

    know_canaries();
    snprintf(url, sizeof url, in_sqlite ? "sqlite:%s/s.db" : "%s", folder);
    st = store_at_url(url, 0);
    m = memory_here(st);
    id = fill(m);
    ask(m, 1);
    recall(st, m);
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    must(keyed_reseal(st, NULL, &last, &err), &err);
    ask(m, 1);
    sessile_memory_close(m);
    if (!in_sqlite)
        tear(folder);
    m = memory_here(st);
    remember(m, NULL, "albatross-value again", NULL);
    must(sessile_memory_delete_from(m, sessile_text(NULL), sessile_text("egret-session"),
                                    sessile_text("ibis-reason"), NULL, &err),
         &err);
    must(sessile_memory_erase(
             m, &(sessile_memory_erase_options){.ids = &id, .id_count = 1}, NULL, &err),
         &err);
    sessile_memory_close(m);
    for (int i = 0; i < CANARIES; i++) {
        if (canaries[i].writes)
            fail_msg("%s was written %lu times", canaries[i].bytes, canaries[i].writes);
        assert_int_equal(files_with(folder, i), 0);
    }
    sessile_store_close(st);
    for (int i = 0; i < CANARIES; i++)
        assert_int_equal(files_with(folder, i), 0);
    os_current = &os_posix;
    folder_remove(folder);
}

static void no_canary_is_in_a_folder(void **state)
{
    (void)state;
    sealed(0);
}

static void no_canary_is_in_sqlite(void **state)
{
    (void)state;
    sealed(1);
}

/* The control; and what is erased is gone from log and index. */
static void a_plain_store_has_them_until_they_are_erased(void **state)
{
    char *folder = folder_make();
    sessile_error err;
    sessile_store *st;
    sessile_memory *m;
    sessile_id id;

    (void)state;
    know_canaries();
    st = store_at_url(folder, 1);
    m = memory_here(st);
    id = fill(m);
    ask(m, 1);
    assert_int_equal(keyed_files_with(folder, canaries[9].bytes), 1); /* the index */
    for (int i = 0; i < CANARIES; i++) {
        assert_int_equal(canaries[i].writes > 0, i != QUESTION);
        assert_int_equal(files_with(folder, i) > 0, i != QUESTION);
    }
    must(sessile_memory_erase(
             m, &(sessile_memory_erase_options){.ids = &id, .id_count = 1}, NULL, &err),
         &err);
    ask(m, 0);
    remember(m, NULL, "sparrow", NULL); /* the index is written */
    sessile_memory_close(m);
    m = memory_here(st);
    ask(m, 0);
    for (int i = 0; i < CANARIES; i++)
        assert_int_equal(files_with(folder, i) > 0, i == CONSENT || i == USER);
    sessile_memory_close(m);
    sessile_store_close(st);
    os_current = &os_posix;
    folder_remove(folder);
}

/* ------------------------------------------------------------------ a forgotten user */

static void expect_forgotten(sessile_store *st)
{
    sessile_memory_options o;
    sessile_memory *m;
    sessile_error err;
    sessile_memory_options_init(&o);
    o.agent = sessile_text("coder");
    o.user = sessile_text(canaries[USER].bytes);
    assert_int_equal(sessile_memory_open(&m, st, &o, &err), SESSILE_SEALED);
    assert_null(m);
}

/* Also not from a copy of its log, index and pieces, put where they were. */
static void a_forgotten_user_comes_back_from_no_copy(void **state)
{
    char *folder = folder_make(), *copies = folder_make(), here[600], copy[600];
    sessile_store *st, *other;
    sessile_memory *m, *bob;
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;

    (void)state;
    know_canaries();
    st = store_at_url(folder, 0);
    other = store_at_url(folder, 0); /* as another process has it */
    bob = memory_of(st, "bob");
    remember(bob, NULL, "likes tea", NULL);
    m = memory_here(st);
    fill(m);
    snprintf(here, sizeof here, "%s/agents", folder);
    snprintf(copy, sizeof copy, "%s/agents", copies);
    keyed_copy(here, copy);
    must(sessile_forget(st, sessile_text(canaries[USER].bytes), NULL, &err), &err);
    expect_forgotten(st);
    expect_forgotten(other);
    assert_int_equal(
        sessile_memory_search(m, sessile_text("albatross"), NULL, &rows, &count, &err),
        SESSILE_SEALED);
    sessile_memory_close(m);
    sessile_memory_close(bob);
    sessile_store_close(other);
    sessile_store_close(st);
    keyed_copy(copy, here);
    st = store_at_url(folder, 0);
    expect_forgotten(st);
    bob = memory_of(st, "bob");
    expect_text(found(bob, "tea"), "likes tea");
    sessile_memory_close(bob);
    sessile_store_close(st);
    for (int i = 0; i < CANARIES; i++)
        assert_int_equal(canaries[i].writes, 0);
    os_current = &os_posix;
    folder_remove(folder);
    folder_remove(copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_canary_is_in_a_folder),
        cmocka_unit_test(no_canary_is_in_sqlite),
        cmocka_unit_test(a_plain_store_has_them_until_they_are_erased),
        cmocka_unit_test(a_forgotten_user_comes_back_from_no_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
