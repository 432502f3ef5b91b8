/*
 * test_between.c: logs that others remove, replace or reseal between a look at them and
 * the next time they are opened.
 *
 * Each operation of a whole store is run once for each time that it opens the log of one
 * session. Just before that, another handle changes the log. Nobody is told of damage,
 * nothing else fails, and what took the name is left as it is.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <string.h>
#include <unistd.h>

#include "guard/enter.h"
#include "log/log.h"
#include "session/store_handle.h"
#include "support/sessions.h"

#define BROKEN(...)                        \
    do {                                   \
        print_error(__VA_ARGS__);          \
        assert_string_equal("broken", ""); \
    } while (0)

typedef enum meanwhile { REMOVED, REPLACED, RESEALED, MEANWHILES } meanwhile;
static const char *const meanwhile_names[] = {"removed", "replaced", "resealed"};

/* ------------------------------------------------------------------ what others do */

static struct {
    const sessile_backend *under;
    sessile_backend table;
    sessile_store *other;
    meanwhile what;
    unsigned opens; /* of the log, before it happens */
    int happened;
} between;

static sessile_status reseal_all(sessile_store *st, uint64_t *failed)
{
    sessile_reseal *r;
    sessile_reseal_state state = {0};
    sessile_error err;
    sessile_status status = sessile_reseal_begin(&r, st, NULL, &err);

    while (!status && (status = sessile_reseal_step(r, &state, &err)) == SESSILE_NEEDS)
        status = SESSILE_OK;
    *failed = state.failed;
    sessile_reseal_free(r);
    return status;
}

static void happen(void)
{
    const sessile_session_options which = named("hurt");
    uint64_t failed;
    sessile_error err;

    if (between.what == RESEALED) {
        assert_int_equal(sessile_keys_rotate(between.other, NULL, NULL, &err),
                         SESSILE_OK);
        (void)reseal_all(between.other, &failed);
        return;
    }
    assert_int_equal(sessile_delete(between.other, &which, NULL, NULL, &err), SESSILE_OK);
    if (between.what == REPLACED) {
        sessile_session *s = session_made(between.other, "hurt");
        say(s, "user", "I am another one");
        session_closed(s);
    }
}

static sessile_status open_between(void *self, const char *folder, const char *name,
                                   sessile_backend_log **out, sessile_error *err)
{
    if (!strcmp(name, "hurt") && !between.happened && between.opens-- == 0) {
        between.happened = 1;
        happen();
    }
    return between.under->open(self, folder, name, out, err);
}

/* ------------------------------------------------------------------ operations */

typedef sessile_status (*operation)(sessile_store *st, sessile_error *err);

static sessile_status keys_status_(sessile_store *st, sessile_error *err)
{
    sessile_keys *k = NULL;
    sessile_status status = sessile_keys_status(st, &k, err);

    assert_true(status || k->odd_logs == 0);
    sessile_free(k);
    return status;
}

static sessile_status reseal(sessile_store *st, sessile_error *err)
{
    uint64_t failed;
    sessile_status status = sessile_keys_rotate(st, NULL, NULL, err);

    if (!status)
        status = reseal_all(st, &failed);
    assert_true(status || failed == 0);
    return status;
}

static sessile_status run_check(sessile_store *st, const char *id, int salvage,
                                sessile_error *err)
{
    sessile_session_options o;
    sessile_checked step = {0};
    sessile_check *c;
    sessile_session_options_init(&o);
    if (id)
        o.id = sessile_text(id);
    sessile_status status = sessile_check_open(&c, st, &o, salvage, err);

    while (!status && !(status = sessile_check_next(c, &step, err)) && step.file)
        for (size_t i = 0; i < step.count; i++)
            if (step.findings[i].severity == SESSILE_DAMAGE)
                BROKEN("damage: %s: %s", step.findings[i].file, step.findings[i].what);
    sessile_check_close(c);
    return status;
}

static sessile_status check_all(sessile_store *st, sessile_error *err)
{
    return run_check(st, NULL, 0, err);
}

static sessile_status check_one(sessile_store *st, sessile_error *err)
{
    return run_check(st, "hurt", 0, err);
}

static sessile_status salvage_one(sessile_store *st, sessile_error *err)
{
    return run_check(st, "hurt", 1, err);
}

static sessile_status list(sessile_store *st, sessile_error *err)
{
    sessile_listed *rows = NULL;
    size_t count = 0;
    sessile_status status = sessile_list(st, NULL, &rows, &count, err);

    for (size_t i = 0; i < count; i++)
        if (rows[i].status)
            BROKEN("a row: %s", rows[i].message);
    sessile_free(rows);
    return status;
}

static sessile_status resume(sessile_store *st, sessile_error *err)
{
    const sessile_session_options which = named("hurt");
    sessile_session *s;
    sessile_status status = sessile_resume(&s, st, &which, err);

    if (!status)
        session_closed(s);
    return status;
}

static sessile_status search(sessile_store *st, sessile_error *err)
{
    sessile_search_options o;
    sessile_search *search;
    sessile_found found;
    sessile_search_options_init(&o);
    o.text = sessile_text("one");
    sessile_status status = sessile_search_open(&search, st, &o, err);

    while (!status && !(status = sessile_search_next(search, &found, err)) &&
           found.kind != SESSILE_FOUND_END)
        ;
    sessile_search_close(search);
    return status;
}

static sessile_status purge(sessile_store *st, sessile_error *err)
{
    sessile_listed *rows = NULL;
    size_t count;
    sessile_status status = sessile_purge(st, NULL, &rows, &count, err);

    sessile_free(rows);
    return status;
}

static sessile_status purge_forgotten_(sessile_store *st, sessile_error *err)
{
    uint64_t count, bytes;
    sessile_status status =
        sessile_purge_forgotten(st, (sessile_slice){NULL, 0}, 0, &count, &bytes, err);

    assert_int_equal(count, 0);
    return status;
}

static sessile_status forget(sessile_store *st, sessile_error *err)
{
    return sessile_forget(st, sessile_text("nobody"), NULL, err);
}

static sessile_status delete_it(sessile_store *st, sessile_error *err)
{
    const sessile_session_options which = named("hurt");

    return sessile_delete(st, &which, NULL, NULL, err);
}

static sessile_status copy_all(sessile_store *st, sessile_error *err)
{
    sessile_place from = {.store = st}, to = {0};
    sessile_migrate_options o;
    sessile_migrate_state state = {0};
    sessile_migration *m;
    sessile_store_options target;
    char *folder = folder_make();
    memset(&o, 0, sizeof o);
    sessile_store_options_init(&target);
    target.key_source = SESSILE_KEY_SECRET;
    target.key = "hex:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    to.url = folder;
    to.options = &target;
    sessile_status status = sessile_migrate_begin(&m, &from, &to, &o, err);

    while (!status && (status = sessile_migrate_step(m, &state, err)) == SESSILE_NEEDS)
        status = SESSILE_OK;
    sessile_migrate_free(m);
    folder_remove(folder);
    assert_int_equal(state.damaged, 0);
    return status;
}

/* ------------------------------------------------------------------ each of them */

/* 1: it happened. */
static int run(operation what, meanwhile happens, unsigned opens, int removes)
{
    place p;
    sessile_error err;

    place_open(&p, STORE_SEALED);
    for (int i = 0; i < 2; i++) {
        sessile_session *s = session_made(p.store, i ? "hurt" : "other");
        say(s, "user", "one");
        say(s, "assistant", "two");
        session_closed(s);
    }
    between.other = place_again(&p);
    between.under = p.store->core->backend.table;
    between.table = *between.under;
    between.table.open = open_between;
    between.what = happens;
    between.opens = opens;
    between.happened = 0;
    p.store->core->backend.table = &between.table;
    sessile_status status = what(p.store, &err);
    p.store->core->backend.table = between.under;
    if (status && status != SESSILE_NOTFOUND && status != SESSILE_CONFLICT)
        BROKEN("%s before open %u: %s", meanwhile_names[happens], opens, err.message);
    assert_true(!status || happens != RESEALED || removes);
    assert_int_equal(check_all(between.other, &err), SESSILE_OK);
    session_closed(session_resumed(between.other, "other"));
    if (!removes && (happens != REMOVED || !between.happened))
        session_closed(session_resumed(between.other, "hurt"));
    place_again_close(&p, between.other);
    place_close(&p);
    return between.happened;
}

static void logs_change_before_they_are_opened_again(void **state)
{
    static const struct {
        const char *name;
        operation run;
        int removes;
    } operations[] = {
        {"keys status", keys_status_, 0},
        {"reseal", reseal, 0},
        {"check", check_all, 0},
        {"check of one", check_one, 0},
        {"salvage", salvage_one, 0},
        {"list", list, 0},
        {"resume", resume, 0},
        {"search", search, 0},
        {"purge", purge, 0},
        {"purge of forgotten", purge_forgotten_, 0},
        {"forget", forget, 0},
        {"delete", delete_it, 1},
        {"migrate", copy_all, 0},
    };
    unsigned long tried = 0;
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (meanwhile what = 0; what < MEANWHILES; what++)
            for (unsigned opens = 0;; opens++) {
                if (opens == 20)
                    BROKEN("%s opens the log for ever", operations[i].name);
                print_message("%s, %s before open %u\n", operations[i].name,
                              meanwhile_names[what], opens);
                if (!run(operations[i].run, what, opens, operations[i].removes))
                    break;
                tried++;
            }
    print_message("# figure: logs changed between a look and the next opening = %lu\n",
                  tried);
}

/* ------------------------------------------------------------------ for ever */

/* The name leads to another log whenever it is locked. */
static sessile_status lock_replaced(sessile_backend_log *log, int mode, int timeout_ms,
                                    int *replaced, sessile_error *err)
{
    sessile_status status = between.under->lock(log, mode, timeout_ms, replaced, err);

    *replaced = 1;
    return status;
}

static void logs_replaced_for_ever_are_BUSY(void **state)
{
    place p;
    log_about about;
    uint64_t bytes;
    int done;
    sessile_error err;
    (void)state;

    place_open(&p, STORE_SEALED);
    session_closed(session_made(p.store, "hurt"));
    store *st = &p.store->core->backend;
    between.under = st->table;
    between.table = *st->table;
    between.table.lock = lock_replaced;
    if (between.under->lock) {
        st->table = &between.table;
        assert_int_equal(log_reseal(st, p.store->core->keys, "main", "hurt", 0, NULL,
                                    &done, &p.store->alloc, &err),
                         SESSILE_BUSY);
        assert_non_null(strstr(err.message, "try again"));
        assert_int_equal(log_read_about(st, "main", "hurt", 1, 0, &about, &err),
                         SESSILE_BUSY);
        assert_int_equal(
            log_remove(st, p.store->core->keys, "main", "hurt", NULL, 0, &bytes, &err),
            SESSILE_BUSY);
        st->table = between.under;
    }
    place_close(&p);
}

/* ------------------------------------------------------------------ just made */

/* The keys are rotated, and another handle holds the log, as soon as it has its name. */
static struct {
    sessile_backend_log *held;
    const char *name;
} made;

static void hold_made(const char *name)
{
    store *other = &between.other->core->backend;
    int replaced = 0;
    sessile_error err;
    if (made.held || strcmp(name, made.name) != 0)
        return;
    assert_int_equal(sessile_keys_rotate(between.other, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(other->table->open(other->self, "main", name, &made.held, &err),
                     SESSILE_OK);
    assert_int_equal(
        other->table->lock(made.held, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err),
        SESSILE_OK);
}

static sessile_status create_and_hold(void *self, const char *folder, const char *name,
                                      const void *data, size_t size, sessile_error *err)
{
    sessile_status status = between.under->create(self, folder, name, data, size, err);
    if (!status)
        hold_made(name);
    return status;
}

static sessile_status publish_and_hold(sessile_backend_draft *draft, sessile_error *err)
{
    sessile_status status = between.under->draft_publish(draft, err);
    if (!status)
        hold_made(made.name);
    return status;
}

/* It waits as long as was asked, and what was made opens, is written to and resealed. */
static void a_log_that_others_hold_when_it_is_made_is_BUSY(void **state)
{
    static const char *const names[] = {"made", "forked"};
    (void)state;
    for (int forks = 0; forks < 2; forks++) {
        place p;
        sessile_session *s, *fork = NULL;
        sessile_session_options which = named(names[forks]);
        sessile_error err = {0};
        uint64_t failed;
        place_open(&p, STORE_SEALED);
        store *st = &p.store->core->backend;
        if (!st->table->lock) {
            place_close(&p);
            skip();
        }
        s = session_made(p.store, "source");
        say(s, "user", "hello");
        p.store->core->config.timeout_ms = 50;
        between.under = st->table;
        between.table = *st->table;
        between.table.create = create_and_hold;
        between.table.draft_publish = publish_and_hold;
        between.other = place_again(&p);
        made.held = NULL;
        made.name = names[forks];
        st->table = &between.table;
        alarm(60); /* for ever is a failure */
        sessile_status status = forks
                                    ? sessile_fork(&fork, s, SESSILE_NO_ID, &which, &err)
                                    : sessile_create(&fork, p.store, &which, &err);
        alarm(0);
        st->table = between.under;
        assert_non_null(made.held);
        assert_int_equal(status, SESSILE_BUSY);
        assert_non_null(strstr(err.message, "reseal"));
        between.other->core->backend.table->close(made.held);
        assert_int_equal(reseal_all(between.other, &failed), SESSILE_OK);
        assert_int_equal(failed, 0);
        session_closed(s);
        s = session_resumed(between.other, names[forks]);
        say(s, "user", "again");
        session_closed(s);
        place_again_close(&p, between.other);
        place_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_change_before_they_are_opened_again),
        cmocka_unit_test(logs_replaced_for_ever_are_BUSY),
        cmocka_unit_test(a_log_that_others_hold_when_it_is_made_is_BUSY),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
