/*
 * test_lives.c: what becomes of sessions over every store in stores.c: branches,
 * checkpoints, suspensions, searches, lists; deletion, expiry, changed keys, damage.
 *
 * Through the public interface alone, but where bytes are damaged.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/host.h"

#include <stdlib.h>
#include <unistd.h>

/* What the store's table can do. */
static sessile_backend table_of(const site *g)
{
    const sessile_backend *table;
    sessile_backend copy;
    sessile_error err;
    void *self;

    must(g->kind->backend(g->place, &table, &self, &err), &err);
    copy = *table;
    if (table->free)
        table->free(self);
    return copy;
}

/* ------------------------------------------------------------------ the tree */

static void branches_checkpoints_and_labels_are_kept(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");
    sessile_checkpoint_options checkpoint = {.name = sessile_text("before"),
                                             .state = sessile_text("{\"step\":7}")};
    sessile_checkpoint_row *checkpoints;
    sessile_restored *restored;
    sessile_label_row *labels;
    sessile_id first, second, *ids, made, leaf;
    sessile_error err;
    size_t count;

    first = say(s, "first");
    must(sessile_checkpoint(s, &checkpoint, &made, &err), &err);
    second = say(s, "second");
    must(sessile_label(s, second, sessile_text("good"), &err), &err);
    must(sessile_branch(s, first, sessile_text("it was left"), &leaf, &err), &err);
    say(s, "third");
    for (int round = 0; round < 2; round++) {
        must(sessile_leaves(s, &ids, &count, &err), &err);
        assert_int_equal(count, 2);
        assert_int_equal(ids[0], second);
        sessile_free(ids);
        assert_int_equal(messages(s, "third"), 3); /* and what was left, in short */
        must(sessile_labels(s, &labels, &count, &err), &err);
        assert_int_equal(count, 1);
        assert_int_equal(labels[0].entry, second);
        sessile_free(labels);
        must(sessile_checkpoints(s, NULL, &checkpoints, &count, &err), &err);
        assert_int_equal(count, 1);
        assert_int_equal(checkpoints[0].entry, made);
        assert_int_equal(checkpoints[0].sound, 1);
        sessile_free(checkpoints);
        closed(s);
        st = reopened(st, g);
        s = session_of(st, "one");
    }
    must(sessile_restore(s, made, 0, &restored, &err), &err);
    assert_int_equal(restored->head, first);
    assert_non_null(strstr(restored->state.data, "7"));
    sessile_free(restored);
    assert_int_equal(messages(s, "first"), 1);
    closed(s);
    s = session_of(st, "one");
    assert_int_equal(messages(s, "first"), 1);
    closed_all(s, st);
}

static void a_fork_has_nothing_in_common(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one"), *fork;
    sessile_session_options o = named("two");
    sessile_error err;

    say(s, "both");
    must(sessile_fork(&fork, s, SESSILE_NO_ID, &o, &err), &err);
    say(s, "the first");
    say(fork, "the second");
    closed(s);
    closed(fork);
    st = reopened(st, g);
    s = session_of(st, "one");
    fork = session_of(st, "two");
    assert_int_equal(messages(s, "the first"), 2);
    assert_int_equal(messages(fork, "the second"), 2);
    closed(s);
    closed_all(fork, st);
}

/* ------------------------------------------------------------------ suspensions */

static void a_suspension_holds_for_every_handle(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session *s = session_of(st, "one");
    sessile_slice answer = sessile_text("{\"role\":\"user\",\"content\":\"yes\"}");
    sessile_suspension *suspension;
    sessile_error err;
    sessile_id id;

    say(s, "may I?");
    must(sessile_suspend(s, sessile_text("to be approved"), sessile_text("{\"n\":1}"),
                         &id, &err),
         &err);
    closed(s);
    st = reopened(st, g);
    s = session_of(st, "one");
    refused(try_say(s, "no", &id, &err), SESSILE_SUSPENDED, &err);
    must(sessile_suspended(s, &suspension, &err), &err);
    assert_non_null(suspension);
    assert_memory_equal(suspension->reason.data, "to be approved", 14);
    sessile_free(suspension);
    must(sessile_resume_with(s, &answer, 1, &id, &err), &err);
    closed(s);
    s = session_of(st, "one");
    assert_int_equal(messages(s, "yes"), 2);
    say(s, "thanks");
    closed_all(s, st);
}

/* ------------------------------------------------------------------ lists, searches */

static void lists_ask_for_what_is_wanted(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_list_options o;
    sessile_session *s;
    sessile_error err;
    sessile_id id;

    for (int i = 0; i < 12; i++) {
        char name[20], title[20];
        snprintf(name, sizeof name, "session %02d", i);
        snprintf(title, sizeof title, "Title %d", i % 4);
        sessile_session_options so = named(name);
        so.agent = sessile_text(i % 2 ? "a" : "b");
        so.user = sessile_text(i % 3 ? "" : "u");
        so.title = sessile_text(title);
        must(sessile_create(&s, st, &so, &err), &err);
        id = say(s, name);
        if (i == 5)
            must(sessile_label(s, id, sessile_text("good"), &err), &err);
        if (i == 7)
            must(sessile_set_archived(s, 1, &err), &err);
        closed(s);
    }
    for (int round = 0; round < 3;
         round++) { /* without a list cache, with it, reopened */
        assert_int_equal(listed(st, NULL), 12);
        sessile_list_options_init(&o);
        o.agent = sessile_text("a");
        assert_int_equal(listed(st, &o), 6);
        o.offset = 4;
        assert_int_equal(listed(st, &o), 2);
        o.limit = 1;
        assert_int_equal(listed(st, &o), 1);
        sessile_list_options_init(&o);
        o.user = sessile_text("u");
        assert_int_equal(listed(st, &o), 4);
        sessile_list_options_init(&o);
        o.title = sessile_text("Title 3");
        assert_int_equal(listed(st, &o), 3);
        sessile_list_options_init(&o);
        o.text = sessile_text("title");
        o.id_prefix = sessile_text("session 0");
        assert_int_equal(listed(st, &o), 10);
        sessile_list_options_init(&o);
        o.label = sessile_text("good");
        assert_int_equal(listed(st, &o), 1);
        sessile_list_options_init(&o);
        o.lives = 1u << SESSILE_LIFE_ARCHIVED;
        assert_int_equal(listed(st, &o), 1);
        if (round)
            st = reopened(st, g);
    }
    sessile_store_close(st);
}

/* Pages, one after the other, have each session once. SESSILE_SOAK=1: ten thousand. */
static void many_sessions_are_paged_through(void **state)
{
    enum { PAGE = 37 };
    const int sessions = getenv("SESSILE_SOAK") ? 10000 : 120;
    sessile_store *st = site_store(*state);
    unsigned char *seen = calloc((size_t)sessions, 1);
    sessile_list_options o;
    sessile_listed *rows;
    sessile_error err;
    size_t count = 1;
    int total = 0;

    assert_non_null(seen);
    for (int i = 0; i < sessions; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        closed(session_of(st, name));
    }
    sessile_list_options_init(&o);
    o.sort = SESSILE_SORT_CREATED;
    o.limit = PAGE;
    while (count > 0) {
        must(sessile_list_with(st, &o, &rows, &count, &err), &err);
        for (size_t i = 0; i < count; i++) {
            char name[20];
            assert_true(rows[i].id.size < sizeof name);
            snprintf(name, sizeof name, "%.*s", (int)rows[i].id.size, rows[i].id.data);
            assert_int_equal(seen[atoi(name + 1)], 0);
            seen[atoi(name + 1)] = 1;
            total++;
        }
        sessile_free(rows);
        o.offset += PAGE;
    }
    assert_int_equal(total, sessions);
    free(seen);
    sessile_store_close(st);
}

static void a_search_finds_what_was_said(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_search_options o;
    sessile_search *search;
    sessile_found found;
    sessile_error err;
    sessile_id wanted = SESSILE_NO_ID;
    int times = 0;

    for (int i = 0; i < 5; i++) {
        char name[20];
        snprintf(name, sizeof name, "s%d", i);
        sessile_session *s = session_of(st, name);
        say(s, "nothing of it");
        if (i == 3)
            wanted = say(s, "a squeamish ossifrage");
        closed(s);
    }
    st = reopened(st, g);
    sessile_search_options_init(&o);
    o.text = sessile_text("OSSIFRAGE");
    must(sessile_search_open(&search, st, &o, &err), &err);
    do {
        must(sessile_search_next(search, &found, &err), &err);
        assert_int_not_equal(found.kind, SESSILE_FOUND_UNREAD);
        if (found.kind == SESSILE_FOUND_MESSAGE) {
            times++;
            assert_int_equal(found.entry, wanted);
            assert_memory_equal(found.id.data, "s3", 2);
        }
    } while (found.kind != SESSILE_FOUND_END);
    assert_int_equal(times, 1);
    sessile_search_close(search);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ ends */

static void softly_deleted_is_brought_back(void **state)
{
    const site *g = *state;
    sessile_store *st = site_store(g);
    sessile_session_options o = named("one");
    sessile_delete_options soft = {.soft = 1, .reason = sessile_text("old")};
    sessile_session *s = session_of(st, "one");
    sessile_list_options gone;
    sessile_error err;

    say(s, "hello");
    closed(s);
    closed(session_of(st, "two"));
    must(sessile_delete(st, &o, &soft, NULL, &err), &err);
    for (int round = 0; round < 2; round++) {
        refused(sessile_resume(&s, st, &o, &err), SESSILE_NOTFOUND, &err);
        assert_int_equal(listed(st, NULL), 1);
        sessile_list_options_init(&gone);
        gone.lives = 1u << SESSILE_LIFE_DELETED;
        assert_int_equal(listed(st, &gone), 1);
        st = reopened(st, g);
    }
    must(sessile_undelete(st, &o, sessile_text("me"), &err), &err);
    s = session_of(st, "one");
    assert_int_equal(messages(s, "hello"), 1);
    closed(s);
    assert_int_equal(listed(st, NULL), 2);
    sessile_store_close(st);
}

static void what_is_deleted_is_gone_for_everyone(void **state)
{
    const site *g = *state;
    const sessile_backend can = table_of(g);
    sessile_store *st = site_store(g), *other = g->kind->vanishes ? st : site_store(g);
    sessile_session_options o = named("one");
    sessile_session *s = session_of(st, "one"), *open = session_of(other, "one");
    sessile_deleted deleted;
    sessile_error err;
    sessile_id id;

    say(s, "hello");
    assert_int_equal(messages(open, "hello"), 1);
    for (int i = 0; i < 300; i++) /* past a block of an index */
        say(s, "more");
    closed(s);
    if (!can.remove) {
        refused(sessile_delete(st, &o, NULL, NULL, &err), SESSILE_UNSUPPORTED, &err);
        assert_int_equal(messages(open, "more"), 301);
    } else {
        must(sessile_delete(st, &o, NULL, &deleted, &err), &err);
        assert_true(deleted.bytes > 300);
        refused(sessile_resume(&s, st, &o, &err), SESSILE_NOTFOUND, &err);
        refused(sessile_resume(&s, other, &o, &err), SESSILE_NOTFOUND, &err);
        refused(sessile_delete(st, &o, NULL, NULL, &err), SESSILE_NOTFOUND, &err);
        assert_int_equal(listed(other, NULL), 0);
        refused(try_say(open, "late", &id, &err), SESSILE_NOTFOUND, &err);
        /* another session may have the name; who had the old one open is not in it. (They
         * are told apart by the millisecond they were made in.) */
        usleep(5000);
        s = session_of(st, "one");
        say(s, "new");
        assert_int_not_equal(try_say(open, "late", &id, &err), SESSILE_OK);
        assert_int_equal(messages(s, "new"), 1);
        closed(s);
    }
    sessile_session_close(open, NULL);
    if (other != st)
        sessile_store_close(other);
    st = reopened(st, g);
    s = session_of(st, "one");
    assert_int_equal(messages(s, NULL), can.remove ? 1 : 301);
    closed_all(s, st);
}

static void what_expired_is_purged(void **state)
{
    const site *g = *state;
    const sessile_backend can = table_of(g);
    sessile_store *st = site_store(g);
    sessile_session_options o = named("short");
    sessile_purge_options purge;
    sessile_listed *rows;
    sessile_life_info life;
    sessile_session *s;
    sessile_error err;
    size_t count;

    o.ttl_ms = 1;
    must(sessile_create(&s, st, &o, &err), &err);
    say(s, "soon over");
    usleep(20000);
    must(sessile_session_life(s, &life, &err), &err);
    assert_int_equal(life.life, SESSILE_LIFE_EXPIRED);
    closed(s);
    closed(session_of(st, "long"));
    sessile_purge_options_init(&purge);
    purge.dry_run = 1;
    must(sessile_purge(st, &purge, &rows, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_memory_equal(rows[0].id.data, "short", 5);
    sessile_free(rows);
    if (can.remove) {
        purge.dry_run = 0;
        must(sessile_purge(st, &purge, &rows, &count, &err), &err);
        assert_int_equal(count, 1);
        sessile_free(rows);
        st = reopened(st, g);
        refused(sessile_resume(&s, st, &o, &err), SESSILE_NOTFOUND, &err);
        closed(session_of(st, "long"));
    }
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ keys */

static void reseal_all(sessile_store *st, uint64_t resealed)
{
    sessile_reseal_state state;
    sessile_reseal *reseal;
    sessile_error err;
    sessile_status status;

    must(sessile_reseal_begin(&reseal, st, NULL, &err), &err);
    while ((status = sessile_reseal_step(reseal, &state, &err)) == SESSILE_NEEDS)
        continue;
    must(status, &err);
    if (state.failed)
        fail_msg("%s: %s", state.log ? state.log : "a log", state.why.message);
    assert_int_equal(state.resealed, resealed);
    sessile_reseal_free(reseal);
}

static void keys_are_changed_and_users_forgotten(void **state)
{
    const site *g = *state;
    const sessile_backend can = table_of(g);
    sessile_store *st;
    sessile_session_options mine = named("mine");
    sessile_session *s, *open;
    sessile_error err;
    uint64_t epoch = 0, sessions = 0;

    st = site_store(g);
    s = session_of(st, "one");
    for (int i = 0; i < 300; i++)
        say(s, "sealed with the first");
    mine.user = sessile_text("u");
    must(sessile_create(&open, st, &mine, &err), &err);
    say(open, "of a user");
    must(sessile_keys_rotate(st, NULL, &epoch, &err), &err);
    assert_true(epoch > 1);
    say(s, "goes on");
    closed(s);
    closed(open);
    if (can.capabilities & SESSILE_BACKEND_REPLACES) {
        open = session_of(st, "one");
        reseal_all(st, 2);
        assert_int_equal(messages(open, "goes on"), 301); /* who had it open goes on */
        say(open, "and on");
        closed(open);
        reseal_all(st, 0);
        st = reopened(st, g);
        s = session_of(st, "one");
        assert_int_equal(messages(s, "and on"), 302);
        closed(s);
    }
    must(sessile_resume(&s, st, &mine, &err), &err);
    assert_int_equal(messages(s, "of a user"), 1);
    closed(s);
    must(sessile_forget(st, mine.user, &sessions, &err), &err);
    assert_int_equal(sessions, 1);
    st = reopened(st, g);
    refused(sessile_resume(&s, st, &mine, &err), SESSILE_SEALED, &err);
    s = session_of(st, "one");
    assert_true(messages(s, NULL) >= 301);
    closed_all(s, st);
}

/* ------------------------------------------------------------------ damage */

/* The table, and the only log of it. */
typedef struct raw {
    const sessile_backend *table;
    void *self;
    char folder[256], name[256];
} raw;

static int note(void *arg, const char *folder, const char *name)
{
    raw *r = arg;

    snprintf(r->folder, sizeof r->folder, "%s", folder);
    snprintf(r->name, sizeof r->name, "%s", name);
    return 1;
}

/* Another letter in the middle of the log's fourth record, as a disk that rots would. */
static void damage(const site *g)
{
    static char bytes[100000];
    raw r = {NULL, NULL, "", ""};
    sessile_backend_draft *draft;
    sessile_backend_log *log;
    sessile_error err;
    size_t size = 0, at = 0;
    int replaced, lines = 0;
    uint64_t there;
    int64_t mtime;

    must(g->kind->backend(g->place, &r.table, &r.self, &err), &err);
    must(r.table->list(r.self, NULL, note, &r, &err), &err);
    must(r.table->open(r.self, r.folder, r.name, &log, &err), &err);
    if (r.table->lock)
        must(r.table->lock(log, SESSILE_LOCK_EXCLUSIVE, -1, &replaced, &err), &err);
    must(r.table->size(log, &there, &mtime, &err), &err);
    must(r.table->read(log, 0, 0, bytes, sizeof bytes, &size, &err), &err);
    assert_int_equal(size, there);
    while (at < size && lines < 4)
        lines += bytes[at++] == '\n';
    at -= 60;
    bytes[at] = bytes[at] == 'x' ? 'y' : 'x';
    must(r.table->draft_new(r.self, r.folder, r.name, &draft, &err), &err);
    must(r.table->draft_write(draft, bytes, size, &err), &err);
    must(r.table->draft_replace(draft, log, 0, NULL, 0, &err), &err);
    if (r.table->lock)
        r.table->unlock(log);
    r.table->close(log);
    if (r.table->free)
        r.table->free(r.self);
}

/* What can be read of a damaged session is read, and kept when it is salvaged. */
static void a_damaged_session_is_salvaged(void **state)
{
    const site *g = *state;
    sessile_store *st;
    sessile_session *s;
    sessile_checked step;
    sessile_check *check;
    sessile_error err;
    sessile_id id;
    int salvaged = 0;

    st = site_store(g);
    s = session_of(st, "one");
    for (int i = 0; i < 10; i++)
        say(s, "hello");
    /* what was not durable might have been torn by a power cut: no damage */
    must(sessile_session_sync(s, &err), &err);
    say(s, "the last one");
    closed(s);
    sessile_store_close(st);
    damage(g);
    st = site_store(g);
    s = session_of(st, "one");
    refused(sessile_session_damage(s, NULL, &err), SESSILE_DAMAGED, &err);
    refused(try_say(s, "no", &id, &err), SESSILE_DAMAGED, &err);
    closed(s);
    must(sessile_check_open(&check, st, NULL, 1, &err), &err);
    do {
        must(sessile_check_next(check, &step, &err), &err);
        salvaged += step.file && step.salvaged;
    } while (step.file);
    sessile_check_close(check);
    assert_int_equal(salvaged, 1);
    st = reopened(st, g);
    s = session_of(st, "one");
    assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_OK);
    assert_true(messages(s, "the last one") >= 10);
    say(s, "it goes on");
    closed_all(s, st);
}

/* ------------------------------------------------------------------ all of it */

static const struct CMUnitTest cases[] = {
    CASE(branches_checkpoints_and_labels_are_kept),
    CASE(a_fork_has_nothing_in_common),
    CASE(a_suspension_holds_for_every_handle),
    CASE(lists_ask_for_what_is_wanted),
    CASE(many_sessions_are_paged_through),
    CASE(a_search_finds_what_was_said),
    CASE(softly_deleted_is_brought_back),
    CASE(what_is_deleted_is_gone_for_everyone),
    CASE(what_expired_is_purged),
    CASE_IF(keys_are_changed_and_users_forgotten,
            NEEDS_SEALED | NEEDS_BLOB_REPLACE | NEEDS_BLOB_REMOVE),
    CASE_IF(a_damaged_session_is_salvaged, NEEDS_RESTARTS | SESSILE_BACKEND_REPLACES),
};

int main(int argc, char **argv)
{
    return suite_run("lives", cases, sizeof cases / sizeof *cases, 0, argc, argv);
}
