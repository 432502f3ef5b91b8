/*
 * test_list_cache_files.c: a list cache that was changed, moved or cannot be written
 * makes no other list, and shows no name of a sealed store.
 *
 * Files only: what it changes is the list cache's file.
 */
#include "guard/enter.h"
#include "support/listed.h"
#include "support/lists.h"
#include "support/logs.h"
#include "support/sessions.h"
#include "admin/list.h"
#include "admin/list_cache.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------ bad list caches */

static void a_list_cache_cut_or_flipped_anywhere_is_none(void **state)
{
    const place *p = *state;
    size_t size, tried = 0;
    listed_make_three(p);
    char *expected = listed_bare(p->store, &listed_all);
    free(listed_text(p->store, &listed_all));
    char *good = listed_cache_read(p, &size);
    for (size_t cut = 0; cut < size; cut++, tried++) {
        listed_cache_write(p, good, cut);
        listed_logs_opened = 0;
        char *text = listed_text(p->store, &listed_all);
        assert_string_equal(text, expected);
        assert_int_equal(listed_logs_opened, 3);
        free(text);
    }
    for (size_t bit = 0; bit < 8 * size; bit++, tried++) {
        good[bit / 8] ^= (char)(1 << bit % 8);
        listed_cache_write(p, good, size);
        good[bit / 8] ^= (char)(1 << bit % 8);
        listed_logs_opened = 0;
        char *text = listed_text(p->store, &listed_all);
        assert_string_equal(text, expected);
        assert_int_equal(listed_logs_opened, 3);
        free(text);
    }
    listed_cache_write(p, good, size);
    assert_int_equal(listed_opened(p->store), 0); /* so that the above can fail */
    printf("# figure: list caches cut or flipped (%s) = %zu\n", store_kind_names[p->kind],
           tried);
    free(expected);
    free(good);
}

static size_t rows_known(sessile_store *st, const char *folder)
{
    list_cache c;
    assert_int_equal(list_cache_load(&c, st->core, folder), SESSILE_OK);
    size_t count = c.count;
    list_cache_deinit(&c);
    return count;
}

static void a_list_cache_of_another_place_is_none(void **state)
{
    const place *p = *state;
    sessile_session_options o;
    place elsewhere;
    char path[600];
    size_t size;
    listed_make_three(p);
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){"one", 3};
    o.agent = (sessile_slice){"coder", 5};
    assert_int_equal(session_create(p->store->core, &o, NULL, NULL), SESSILE_OK);
    assert_listed_right(p->store, "two folders");
    char *data = listed_cache_read(p, &size);
    snprintf(path, sizeof path, "%s/agents/coder/.list_cache", p->folder);
    unlink(path);
    file_write_all(path, data, size);
    assert_int_equal(rows_known(p->store, "coder"), 0);
    assert_int_equal(rows_known(p->store, "main"), 3);
    assert_listed_right(p->store, "another folder's list_cache");
    place_open(&elsewhere, p->kind);
    listed_make_three(&elsewhere);
    free(listed_text(elsewhere.store, &listed_all));
    listed_cache_write(&elsewhere, data, size);
    /* a plain one opens, and fits no log */
    assert_int_equal(rows_known(elsewhere.store, "main"), p->kind == STORE_PLAIN ? 3 : 0);
    assert_int_equal(listed_opened(elsewhere.store), 3);
    assert_listed_right(elsewhere.store, "another store's list_cache");
    place_close(&elsewhere);
    free(data);
}

static void what_is_no_list_cache_of_ours_is_left_alone(void **state)
{
    const place *p = *state;
    char path[600], target[600], *text;
    struct stat st;
    size_t size;
    listed_make_three(p);
    listed_path(p, ".list_cache", path);
    listed_path(p, "target", target);
    file_write_all(target, "precious", 8);
    assert_int_equal(symlink("target", path), 0);
    assert_listed_right(p->store, "a link");
    text = file_read_all(target, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(text, "precious", 8);
    free(text);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_listed_right(p->store, "a folder");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_listed_right(p->store, "a FIFO");
    unlink(path);
    assert_listed_right(p->store, "gone");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(listed_opened(p->store), 3); /* anyone may have written it */
    assert_listed_right(p->store, "open to others");
}

static void a_folder_that_cannot_be_written_is_listed(void **state)
{
    const place *p = *state;
    listed_make_three(p);
    listed_readonly = 1;
    assert_int_equal(listed_opened(p->store), 3);
    assert_int_equal(listed_opened(p->store), 3);
    assert_listed_right(p->store, "nothing can be made");
    listed_readonly = 0;
    free(listed_text(p->store, &listed_all));
    listed_readonly = 1;
    assert_int_equal(listed_opened(p->store), 0);
    listed_append(p, "one");
    assert_int_equal(listed_opened(p->store), 1);
    assert_int_equal(listed_opened(p->store), 1);
    assert_listed_right(p->store, "an old list_cache that cannot be replaced");
}

static void what_was_deleted_leaves_the_list_cache_and_dropping_empties_it(void **state)
{
    const place *p = *state;
    char path[600];
    size_t before, after;
    listed_make_three(p);
    free(listed_text(p->store, &listed_all));
    free(listed_cache_read(p, &before));
    log_path(p, "two", path);
    unlink(path);
    free(listed_text(p->store, &listed_all));
    free(listed_cache_read(p, &after));
    assert_true(after < before);
    assert_int_equal(list_cache_drop(p->store->core, NULL), SESSILE_OK);
    listed_path(p, ".list_cache", path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(list_cache_drop(p->store->core, NULL), SESSILE_OK);
    assert_listed_right(p->store, "dropped");
}

/* ------------------------------------------------------------------ secrets */

static int holds(const char *data, size_t size, const char *word)
{
    return memmem(data, size, word, strlen(word)) != NULL;
}

static void a_sealed_list_cache_shows_no_name(void **state)
{
    const place *p = *state;
    sessile_session_options o;
    size_t size;
    memset(&o, 0, sizeof o);
    o.id = (sessile_slice){"CANARY/ID", 9};
    o.title = (sessile_slice){"CANARY-TITLE", 12};
    o.user = (sessile_slice){"CANARY-USER", 11};
    assert_int_equal(session_create(p->store->core, &o, NULL, NULL), SESSILE_OK);
    free(listed_text(p->store, &listed_all));
    assert_int_equal(listed_opened(p->store), 0); /* they are in it */
    char *data = listed_cache_read(p, &size);
    int plain = p->kind == STORE_PLAIN; /* where the scan must find them */
    assert_int_equal(holds(data, size, "CANARY/ID"), plain);
    assert_int_equal(holds(data, size, "CANARY-TITLE"), plain);
    assert_int_equal(holds(data, size, "CANARY-USER"), plain);
    assert_listed_right(p->store, "names of any bytes");
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_cache_cut_or_flipped_anywhere_is_none),
        cmocka_unit_test(a_list_cache_of_another_place_is_none),
        cmocka_unit_test(what_is_no_list_cache_of_ours_is_left_alone),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_listed),
        cmocka_unit_test(what_was_deleted_leaves_the_list_cache_and_dropping_empties_it),
        cmocka_unit_test(a_sealed_list_cache_shows_no_name),
    };
    return listed_run(tests, sizeof tests / sizeof *tests, "list caches");
}
