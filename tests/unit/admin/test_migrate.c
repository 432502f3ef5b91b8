/*
 * test_migrate.c: a store copied into another one, from C: what a host's backend gets,
 * memory that runs out at every place, a copy that is given up and begun again, and
 * misuse. What a copy holds, and what is told of it, is in spec/api/migrate_spec.lua.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "sessile_store.h"
#include "store/ram.h"
#include "support/rations.h"

#include <cmocka.h> /* after the engine's: its fail() is a macro */

static const char key[] =
    "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static char folder[64], from_path[128], to_path[128];

static sessile_slice text(const char *s)
{
    return (sessile_slice){s, strlen(s)};
}

static void options_of(sessile_store_options *o)
{
    sessile_store_options_init(o);
    o->key_source = SESSILE_KEY_SECRET;
    o->key = key;
}

static void run(const char *command)
{
    char line[512];
    snprintf(line, sizeof line, command, folder);
    assert_int_equal(system(line), 0);
}

/* Three sessions of some messages. */
static int set_up(void **state)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;
    (void)state;

    strcpy(folder, "/tmp/test_migrate.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(from_path, sizeof from_path, "%s/from", folder);
    snprintf(to_path, sizeof to_path, "%s/to", folder);
    options_of(&o);
    assert_int_equal(sessile_open(&st, from_path, &o, &err), SESSILE_OK);
    for (int i = 0; i < 3; i++) {
        char id[8];
        sessile_session_options so;
        sessile_session *s;
        sessile_id at;
        snprintf(id, sizeof id, "s%d", i);
        sessile_session_options_init(&so);
        so.id = text(id);
        so.user = text(i == 2 ? "ann" : "");
        assert_int_equal(sessile_create(&s, st, &so, &err), SESSILE_OK);
        for (int n = 0; n < 5; n++)
            assert_int_equal(
                sessile_append(s, text("{\"role\":\"user\",\"content\":\"hello\"}"), &at,
                               &err),
                SESSILE_OK);
        assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
    }
    sessile_store_close(st);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    run("rm -rf %s");
    return 0;
}

/* Steps at most so often; -1: to the end. */
static sessile_status steps(sessile_migration *m, int most, sessile_migrate_state *state,
                            sessile_error *err)
{
    sessile_status status = SESSILE_NEEDS;
    while (status == SESSILE_NEEDS && most-- != 0)
        status = sessile_migrate_step(m, state, err);
    return status;
}

/* The table of a new store in memory that outlives the stores opened over it. */
static sessile_backend ram_table(store *ram)
{
    sessile_error err;
    assert_int_equal(store_ram_open(ram, os_current, &allocator_default, &err),
                     SESSILE_OK);
    sessile_backend table = *ram->table;
    table.free = NULL;
    return table;
}

static void test_host_backend(void **state)
{
    sessile_store_options o;
    sessile_migrate_options how = {.change = 1};
    sessile_migrate_state told;
    sessile_migration *m;
    sessile_listed *rows;
    sessile_store *st;
    sessile_error err;
    size_t count;
    store ram;
    (void)state;

    /* A backend that takes no drafts, seals nothing, and outlives the copy. */
    sessile_backend table = ram_table(&ram);
    options_of(&o);
    sessile_place from = {.url = from_path, .options = &o};
    sessile_place to = {.backend = &table, .self = ram.self};
    assert_int_equal(sessile_migrate_begin(&m, &from, &to, NULL, &err), SESSILE_INVALID);
    assert_int_equal(sessile_migrate_begin(&m, &from, &to, &how, &err), SESSILE_OK);
    assert_int_equal(steps(m, -1, &told, &err), SESSILE_OK);
    assert_int_equal(told.copied, 3);
    assert_int_equal(told.verified, 3);
    assert_false(told.as_it_stands);
    sessile_migrate_free(m);

    /* And back, into a folder that is sealed with a key of its own. */
    sessile_place back = {.url = to_path, .options = &o};
    assert_int_equal(sessile_migrate_begin(&m, &to, &back, &how, &err), SESSILE_OK);
    assert_int_equal(steps(m, -1, &told, &err), SESSILE_OK);
    assert_int_equal(told.copied, 3);
    sessile_migrate_free(m);
    assert_int_equal(sessile_open(&st, to_path, &o, &err), SESSILE_OK);
    assert_int_equal(sessile_list(st, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i].messages, 5);
    sessile_free(rows);
    sessile_store_close(st);
    store_close(&ram);
}

static void test_given_up(void **state)
{
    sessile_migrate_state told;
    sessile_store_options o;
    sessile_migration *m;
    sessile_error err;
    int done = 0;
    (void)state;

    options_of(&o);
    sessile_place from = {.url = from_path, .options = &o}, to = {.url = to_path};
    /* Freed after each number of steps: another run goes on, and ends. */
    for (int most = 0; !done; most++) {
        assert_true(most < 100);
        assert_int_equal(sessile_migrate_begin(&m, &from, &to, NULL, &err), SESSILE_OK);
        sessile_status status = steps(m, most, &told, &err);
        assert_true(status == SESSILE_OK || status == SESSILE_NEEDS);
        done = status == SESSILE_OK;
        sessile_migrate_free(m);
    }
    assert_int_equal(told.verified, 3);
    assert_int_equal(told.conflicts, 0);
    run("for f in $(cd %1$s/from && find . -name '*.jsonl' -o -name 'user-*' -o -name "
        "keyring); do cmp %1$s/from/$f %1$s/to/$f || exit 1; done");
}

/* ------------------------------------------------------------------ what others make */

static store under;
static sessile_session *parent; /* makes a child while the store is listed */

typedef struct listed {
    char folder[4][128], name[4][128];
    int count;
} listed;

static int note_one(void *arg, const char *in, const char *name)
{
    listed *l = arg;
    assert_true(l->count < 4);
    snprintf(l->folder[l->count], sizeof l->folder[0], "%s", in);
    snprintf(l->name[l->count++], sizeof l->name[0], "%s", name);
    return 0;
}

/* The list is taken; then a child is made, which its parent names; then it is told. */
static sessile_status late_list(void *self, const char *in,
                                int (*visit)(void *, const char *, const char *),
                                void *arg, sessile_error *err)
{
    listed l = {.count = 0};
    sessile_status status = under.table->list(self, in, note_one, &l, err);
    if (parent && !status) {
        sessile_session *child, *of = parent;
        sessile_session_options so;
        parent = NULL;
        sessile_session_options_init(&so);
        so.id = text("child");
        assert_int_equal(sessile_child(&child, of, 0, &so, err), SESSILE_OK);
        assert_int_equal(sessile_session_close(child, err), SESSILE_OK);
    }
    for (int i = 0; !status && i < l.count; i++)
        if (visit(arg, l.folder[i], l.name[i]))
            break;
    return status;
}

/* Whatever the bytes that are copied name is in the copy. */
static void test_named(void **state)
{
    sessile_session_options so;
    sessile_migrate_state told;
    sessile_session *s, *child;
    sessile_migration *m;
    sessile_store *st, *to;
    sessile_subsession *subs;
    sessile_error err;
    size_t count;
    (void)state;

    sessile_backend table = ram_table(&under);
    table.list = late_list;
    assert_int_equal(sessile_open_with(&st, &table, under.self, NULL, &err), SESSILE_OK);
    sessile_session_options_init(&so);
    so.id = text("parent");
    assert_int_equal(sessile_create(&s, st, &so, &err), SESSILE_OK);
    parent = s;
    assert_int_equal(sessile_open(&to, "ram:", NULL, &err), SESSILE_OK);
    sessile_place from = {.store = st}, there = {.store = to};
    assert_int_equal(sessile_migrate_begin(&m, &from, &there, NULL, &err), SESSILE_OK);
    assert_int_equal(steps(m, -1, &told, &err), SESSILE_OK);
    assert_null(parent);
    assert_int_equal(told.copied, 2);
    sessile_migrate_free(m);
    sessile_session_close(s, NULL);

    assert_int_equal(sessile_resume(&s, to, &so, &err), SESSILE_OK);
    assert_int_equal(sessile_subsessions(s, &subs, &count, &err), SESSILE_OK);
    assert_int_equal(count, 1); /* the parent names it, */
    sessile_free(subs);
    sessile_session_close(s, NULL);
    so.id = text("child");
    assert_int_equal(sessile_resume(&child, to, &so, &err),
                     SESSILE_OK); /* and it is there */
    sessile_session_close(child, NULL);
    sessile_store_close(to);
    sessile_store_close(st);
    store_close(&under);
}

/* ------------------------------------------------------------------ no memory */

static void test_no_memory(void **state)
{
    int reseals = *(int *)*state;
    sessile_store_options from_o, to_o;
    sessile_migrate_state told;
    sessile_migration *m;
    sessile_error err;
    rations r;
    int passed = 0;

    options_of(&from_o);
    from_o.alloc = ration;
    from_o.alloc_ud = &r;
    to_o = from_o;
    if (!reseals)
        to_o.key_source = SESSILE_KEY_DEFAULT, to_o.key = NULL;
    sessile_place from = {.url = from_path, .options = &from_o};
    sessile_place to = {.url = to_path, .options = &to_o};
    sessile_migrate_options how = {.into = 1};
    for (long n = 0; !passed; n++) {
        assert_true(n < 20000);
        r = (rations){n, 0};
        sessile_status status = sessile_migrate_begin(&m, &from, &to, &how, &err);
        if (!status) {
            status = steps(m, -1, &told, &err);
            sessile_migrate_free(m);
            passed = !status && told.verified == 3;
        }
        assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
        assert_int_equal(r.live, 0);
    }
    assert_int_equal(told.conflicts + told.failed + told.damaged, 0);
}

static void test_misuse(void **state)
{
    sessile_migration *m;
    sessile_error err;
    (void)state;

    sessile_place none = {.url = NULL}, there = {.url = from_path};
    assert_int_equal(sessile_migrate_begin(&m, &none, &there, NULL, &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_migrate_begin(&m, NULL, &there, NULL, &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_migrate_begin(&m, &there, &there, NULL, &err),
                     SESSILE_INVALID);
    assert_null(m);
    sessile_migrate_free(NULL);
    assert_int_equal(sessile_migrate_step(NULL, NULL, &err), SESSILE_INVALID);
}

int main(void)
{
    static int yes = 1, no = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host_backend, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_given_up, set_up, tear_down),
        cmocka_unit_test(test_named),
        {"test_no_memory, as it stands", test_no_memory, set_up, tear_down, &no},
        {"test_no_memory, resealed", test_no_memory, set_up, tear_down, &yes},
        cmocka_unit_test_setup_teardown(test_misuse, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
