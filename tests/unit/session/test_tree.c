/*
 * test_tree.c: children as the fold keeps them: through writes that fail, handles that
 * know old entries from the index alone, and what others write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdio.h>
#include <string.h>

#include "guard/enter.h"
#include "session/fold.h"
#include "support/sessions.h"

typedef sessile_status (*ids_of)(sessile_session *, sessile_id, sessile_id **, size_t *,
                                 sessile_error *);

static void assert_ids(sessile_session *s, ids_of function, sessile_id id,
                       const char *expected)
{
    char text[400] = "";
    sessile_error err;
    sessile_id *ids;
    size_t count, at = 0;
    assert_int_equal(function(s, id, &ids, &count, &err), SESSILE_OK);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, i ? " %u" : "%u", ids[i]);
    sessile_free(ids);
    assert_string_equal(text, expected);
}

static sessile_status leaves(sessile_session *s, sessile_id id, sessile_id **out,
                             size_t *count, sessile_error *err)
{
    (void)id;
    return sessile_leaves(s, out, count, err);
}

static void branch(sessile_session *s, sessile_id to)
{
    sessile_error err;
    assert_int_equal(sessile_branch(s, to, sessile_text(NULL), NULL, &err), SESSILE_OK);
}

static void a_write_that_fails_leaves_children_as_they_were(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "s");
    sessile_error err;
    sessile_id id;
    say(s, "user", "one");
    say(s, "assistant", "two");
    branch(s, 1);
    say(s, "assistant", "another two");
    assert_ids(s, sessile_children, 1, "2 4");
    p->store->core->limits.session = log_bytes(s->core->log);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(try_say(s, "{\"role\":\"user\",\"content\":\"x\"}", &id, &err),
                         SESSILE_LIMIT);
        assert_int_equal(sessile_branch(s, 1, sessile_text("why"), NULL, &err),
                         SESSILE_LIMIT);
    }
    assert_int_equal(s->core->tree.head, 4);
    assert_ids(s, sessile_children, 1, "2 4");
    assert_ids(s, sessile_children, 4, "");
    assert_ids(s, leaves, 0, "2 4");
    p->store->core->limits.session = UINT64_C(1) << 30;
    say(s, "user", "three");
    assert_ids(s, sessile_children, 4, "5");
    assert_ids(s, leaves, 0, "2 5");
    session_closed(s);
}

/* Four blocks of the index: a handle that opens knows those that it walked into. */
static void children_are_found_behind_an_index(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "s"), *t, *other;
    sessile_node *rows;
    sessile_error err;
    sessile_id got;
    size_t count;
    for (int i = 1; i <= 1200; i++)
        say(s, i % 2 ? "user" : "assistant", "text");
    branch(s, 100);
    say(s, "assistant", "at 1202");
    branch(s, 100);
    say(s, "assistant", "at 1204");
    session_closed(s);

    t = session_resumed(p->store, "s");
    if (p->kind != STORE_RAM)
        assert_true(t->core->index.absent_count > 0);
    assert_ids(t, sessile_children, 100, "101 1202 1204");
    assert_int_equal(t->core->index.absent_count, 0);
    assert_ids(t, sessile_siblings, 1202, "101 1204");
    assert_ids(t, leaves, 0, "1200 1202 1204");
    session_closed(t);

    t = session_resumed(p->store, "s");
    assert_int_equal(sessile_common_ancestor(t, 1200, 1204, &got, &err), SESSILE_OK);
    assert_int_equal(got, 100);
    assert_int_equal(sessile_tree(t, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 1205);
    assert_int_equal(rows[1200].total_tokens,
                     rows[1199].total_tokens + (int64_t)rows[1200].tokens);
    assert_true(rows[100].in_context && rows[1204].is_head && !rows[101].on_path);
    sessile_free(rows);
    /* what others write is there too */
    assert_ids(t, sessile_children, 1204, "");
    other = session_resumed(p->store, "s");
    branch(other, 1200);
    say(other, "user", "at 1206");
    assert_ids(t, sessile_children, 1200, "1206");
    session_closed(other);
    session_closed(t);
}

static void misuse_is_told(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "s");
    static const char *const wrong[] = {"messages"}, *const null[] = {NULL};
    sessile_tree_options o;
    sessile_node *rows;
    sessile_error err;
    sessile_id *ids, id;
    size_t count;
    assert_int_equal(sessile_children(s, 7, &ids, &count, &err), SESSILE_NOTFOUND);
    assert_null(ids);
    assert_int_equal(sessile_children(s, 0, NULL, &count, &err), SESSILE_INVALID);
    assert_int_equal(sessile_path(s, 0, &ids, NULL, &err), SESSILE_INVALID);
    assert_int_equal(sessile_leaves(NULL, &ids, &count, &err), SESSILE_INVALID);
    assert_int_equal(sessile_common_ancestor(s, 0, 9, &id, &err), SESSILE_NOTFOUND);
    sessile_tree_options_init(&o);
    o.types = wrong;
    o.type_count = 1;
    assert_int_equal(sessile_tree(s, &o, &rows, &count, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "branch_summary"));
    o.types = null;
    assert_int_equal(sessile_tree(s, &o, &rows, &count, &err), SESSILE_INVALID);
    assert_int_equal(sessile_branch(s, 0, (sessile_slice){NULL, 3}, NULL, &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_branch(s, 0, sessile_text("\xff"), NULL, &err),
                     SESSILE_INVALID);
    p->store->core->limits.message = 10;
    assert_int_equal(sessile_branch(s, 0, sessile_text("more than ten"), NULL, &err),
                     SESSILE_LIMIT);
    assert_int_equal(log_count(s->core->log), 1);
    session_closed(s);
}

#define WITH(kind, test) \
    cmocka_unit_test_setup_teardown(test, place_set_up_##kind, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(ram, a_write_that_fails_leaves_children_as_they_were),
        WITH(sealed, a_write_that_fails_leaves_children_as_they_were),
        WITH(ram, children_are_found_behind_an_index),
        WITH(sealed, children_are_found_behind_an_index),
        WITH(plain, children_are_found_behind_an_index),
        WITH(ram, misuse_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
