/*
 * test_nomem.c: memory runs out at every place where it can.
 *
 * One scenario (open, append, a turn under a policy that asks a model, its compaction
 * explained and taken back, reading, listing, searching) is played again and again; the
 * first time its first allocation fails and all that follow, the next time its second,
 * until it passes. Nothing may leak, and what was acknowledged before the memory ran out
 * must be there afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "sessile.h"
#include "support/rations.h"
#include "support/simfs.h"

#include <cmocka.h>

static const char key[] =
    "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static const char asking[] =
    "return { name = 'asking', version = 1, truncate = function(state, ctx)\n"
    "  state.vars.n = (state.vars.n or 0) + 1\n"
    "  local text = ctx.model{ messages = { state.messages[1] } }\n"
    "  state:insert(1, { role = 'user', content = text }, { covers = { 1, 2 } })\n"
    "end }\n";

/* One life of a session; each field as far as it came. */
typedef struct life {
    sessile_store *store;
    sessile_session *session;
    sessile_policy *policy;
    sessile_run *run;
    int acknowledged; /* messages */
} life;

static sessile_status open_store(life *l, const char *folder, rations *r)
{
    sessile_store_options o;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = key;
    o.alloc = ration;
    o.alloc_ud = r;
    return sessile_open(&l->store, folder, &o, NULL);
}

static sessile_status open_session(life *l)
{
    sessile_session_options o;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.title = sessile_text("a title");
    o.metadata = sessile_text("{\"a\":1}");
    return sessile_session_open(&l->session, l->store, &o, NULL);
}

static sessile_status say(life *l)
{
    sessile_status status = SESSILE_OK;
    for (int i = 0; !status && i < 3; i++) {
        status = sessile_append(l->session,
                                sessile_text("{\"role\":\"user\",\"content\":\"hello\"}"),
                                NULL, NULL);
        l->acknowledged += status == SESSILE_OK;
    }
    return status;
}

static sessile_status turn(life *l, const char *policy)
{
    sessile_slice m[2] = {sessile_text("{\"role\":\"user\",\"content\":\"read it\"}"),
                          sessile_text("{\"role\":\"assistant\",\"content\":\"\",\"tool_"
                                       "calls\":[{\"id\":\"c\",\"name\":\"read\","
                                       "\"arguments\":\"{}\"}]}")};
    sessile_policy_step step = {policy, NULL, 0};
    sessile_answer answer = {SESSILE_OK, {"in short", 8}, 0};
    sessile_run_options o;
    sessile_need need;
    sessile_status status = sessile_policy_load(&l->policy, l->store, &step, 1, NULL);
    if (status)
        return status;
    sessile_run_options_init(&o);
    o.config.policy = l->policy;
    status = sessile_turn_begin(&l->run, l->session, m, 2, &o, NULL);
    while (!status) {
        status = sessile_run_step(l->run, &need, NULL);
        if (status != SESSILE_NEEDS)
            break;
        status = sessile_run_reply(l->run, &answer, NULL);
    }
    if (!status)
        l->acknowledged += 2;
    return status;
}

/* The title, and the messages. */
static sessile_status search(const life *l)
{
    sessile_search_options o;
    sessile_search *search;
    sessile_found f;
    int found = 0;
    sessile_search_options_init(&o);
    o.text = sessile_text("e");
    sessile_status status = sessile_search_open(&search, l->store, &o, NULL);
    if (status)
        return status;
    do {
        status = sessile_search_next(search, &f, NULL);
        found += f.kind == SESSILE_FOUND_MESSAGE || f.kind == SESSILE_FOUND_TITLE;
        /* a session that there is no memory for is no session that cannot be read */
        assert_int_not_equal(f.kind, SESSILE_FOUND_UNREAD);
    } while (!status && f.kind != SESSILE_FOUND_END);
    sessile_search_close(search);
    if (!status)
        assert_int_equal(found, 6);
    return status;
}

static sessile_status read_all(life *l)
{
    sessile_message *list;
    sessile_listed *rows;
    size_t count;
    sessile_status status = sessile_run_context(l->run, &list, &count, NULL);
    sessile_free(list);
    if (!status) {
        status = sessile_context(l->session, SESSILE_NO_ID, &list, &count, NULL, NULL);
        sessile_free(list);
    }
    if (!status) {
        status = sessile_messages(l->session, NULL, &list, &count, NULL);
        sessile_free(list);
    }
    if (!status) {
        status = sessile_list(l->store, NULL, &rows, &count, NULL);
        sessile_free(rows);
    }
    if (!status)
        status = search(l);
    if (!status)
        status = sessile_set_title(l->session, sessile_text("another title"), NULL);
    return !status ? sessile_clear(l->session, NULL) : status;
}

/* What the policy did is explained, counted, taken back, and done again. */
static sessile_status explain(life *l)
{
    sessile_compaction *log = NULL;
    sessile_uncompacted *back = NULL, *again = NULL;
    sessile_explanation *why = NULL;
    size_t count;
    sessile_status status = sessile_compactions(l->session, &log, &count, NULL);
    if (!status)
        status = sessile_why(l->session, (sessile_key){1, 0}, &why, NULL);
    if (!status) {
        assert_int_equal(count, 1);
        assert_int_equal(why->step_count, 2);
        status = sessile_uncompact(l->session, SESSILE_NO_ID, 0, &back, NULL);
    }
    if (!status) {
        assert_int_equal(back->restored_count, 2);
        status = sessile_uncompact(l->session, back->compaction, 0, &again, NULL);
    }
    sessile_free(log);
    sessile_free(why);
    sessile_free(back);
    sessile_free(again);
    return status;
}

/* A message and a fact in one commit; the fact is found, the message taken off. */
static sessile_status write_and_pop(life *l)
{
    static const char *const types[] = {"custom"};
    const sessile_write_entry both[] = {
        {sessile_text("{\"role\":\"user\",\"content\":\"last\"}"), 0, NULL},
        {sessile_text("{\"n\":1}"), 1, NULL}};
    sessile_entries_options o;
    sessile_entries *entries;
    sessile_message *popped;
    const char *json;
    size_t size, count;
    sessile_status status = sessile_write(l->session, both, 2, SESSILE_NO_ID, NULL, NULL);
    if (status)
        return status;
    l->acknowledged++;
    sessile_entries_options_init(&o);
    o.types = types;
    o.type_count = 1;
    o.reverse = 1;
    status = sessile_entries_open(&entries, l->session, &o, NULL);
    if (status)
        return status;
    status = sessile_entries_next(entries, NULL, &json, &size, NULL);
    if (!status)
        assert_non_null(strstr(json, "\"n\":1"));
    sessile_entries_close(entries);
    if (!status)
        status = sessile_pop(l->session, 1, SESSILE_NO_ID, &popped, &count, NULL);
    if (!status) {
        assert_int_equal(count, 1);
        sessile_free(popped);
    }
    return status;
}

/* 1 when it came to its end. */
static int live(life *l, const char *folder, const char *policy, rations *r)
{
    return !open_store(l, folder, r) && !open_session(l) && !say(l) && !turn(l, policy) &&
           !explain(l) && !read_all(l) && !write_and_pop(l);
}

static void end(life *l)
{
    sessile_run_free(l->run);
    sessile_policy_free(l->policy);
    if (l->session)
        sessile_session_close(l->session, NULL);
    sessile_store_close(l->store);
}

/* Messages in the log, compacted or not, with memory for everything. */
static int messages_kept(const char *folder)
{
    rations plenty = {-1, 0};
    life l = {NULL, NULL, NULL, NULL, 0};
    sessile_entries *entries;
    const char *json;
    size_t size;
    int count = 0;
    assert_int_equal(open_store(&l, folder, &plenty), SESSILE_OK);
    assert_int_equal(open_session(&l), SESSILE_OK);
    assert_int_equal(sessile_entries_open(&entries, l.session, NULL, NULL), SESSILE_OK);
    while (!sessile_entries_next(entries, NULL, &json, &size, NULL) && size)
        count += strstr(json, "\"type\":\"message\"") != NULL;
    sessile_entries_close(entries);
    end(&l);
    assert_int_equal(plenty.live, 0);
    return count;
}

/* Life n left no block, no descriptor, and all that was acknowledged. Ends the disk. */
static void life_was_clean(simfs *fs, long n, long live_blocks, int acknowledged)
{
    if (live_blocks)
        print_error("allocation %ld: %ld blocks leaked\n", n, live_blocks);
    assert_int_equal(live_blocks, 0);
    assert_int_equal(simfs_descriptors(fs), 0);
    int kept = messages_kept("/store");
    if (kept < acknowledged)
        print_error("allocation %ld: %d of %d kept\n", n, kept, acknowledged);
    assert_true(kept >= acknowledged);
    os_current = &os_posix;
    simfs_free(fs);
}

/* On simulated disks: each of these lives would sync a real one a dozen times. */
static void memory_that_runs_out_anywhere_leaks_and_loses_nothing(void **state)
{
    int done = 0;
    long n;
    (void)state;
    for (n = 0; !done; n++) {
        rations r = {n, 0};
        life l = {NULL, NULL, NULL, NULL, 0};
        simfs *fs = simfs_new();
        os_current = simfs_table(fs);
        simfs_write(fs, "/asking.lua", asking, sizeof asking - 1);
        assert_in_range(n, 0, 20000);
        done = live(&l, "/store", "/asking.lua", &r);
        end(&l);
        life_was_clean(fs, n, r.live, l.acknowledged);
    }
    /* The scenario is worth its name. */
    assert_true(n > 300);
}

/* A log with a torn end: opening it copies the end, cuts it, writes on. */
static void memory_that_runs_out_in_recovery_loses_nothing(void **state)
{
    static const char tail[] = "{\"id\":\"00000004\",\"s\":\"torn";
    static const char path[] = "/store/agents/main/s.jsonl";
    int done = 0;
    long n;
    (void)state;
    for (n = 0; !done; n++) {
        rations plenty = {-1, 0}, r = {n, 0};
        life l = {NULL, NULL, NULL, NULL, 0};
        simfs *fs = simfs_new();
        size_t size;
        os_current = simfs_table(fs);
        assert_in_range(n, 0, 20000);
        assert_int_equal(open_store(&l, "/store", &plenty), SESSILE_OK);
        assert_int_equal(open_session(&l), SESSILE_OK);
        assert_int_equal(say(&l), SESSILE_OK);
        int acknowledged = l.acknowledged;
        end(&l);
        char *text = simfs_read(fs, path, &size);
        text = realloc(text, size + sizeof tail);
        assert_non_null(text);
        memcpy(text + size, tail, sizeof tail);
        simfs_write(fs, path, text, size + sizeof tail - 1);
        free(text);

        l = (life){NULL, NULL, NULL, NULL, 0};
        done = !open_store(&l, "/store", &r) && !open_session(&l) && !say(&l);
        acknowledged += l.acknowledged;
        end(&l);
        life_was_clean(fs, n, r.live, acknowledged);
    }
    assert_true(n > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_runs_out_anywhere_leaks_and_loses_nothing),
        cmocka_unit_test(memory_that_runs_out_in_recovery_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
