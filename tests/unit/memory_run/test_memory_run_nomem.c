/*
 * test_memory_run_nomem.c: memory runs out at every place where it can, in a run that
 * remembers (with admit and tidy, a policy in Lua) and one that recalls.
 *
 * The run is made again and again; the first time its first allocation fails and all that
 * follow, the next time its second, until it passes. Nothing may leak. What was written,
 * and how far the session was heard, are there together or not at all, so that the run
 * can be made again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "support/check.h"
#include "support/memories.h"
#include "support/memory_scene.h"
#include "support/rations.h"
#include "support/simfs.h"

#include <cmocka.h>

static const char source[] =
    "return { name = 'keeps', version = 1,\n"
    "  remember = function(said, ctx)\n"
    "    ctx.memory.search('tea')\n"
    "    for _, m in ipairs(said) do\n"
    "      ctx.memory.write{ key = 'k' .. m.id, value = m.content, from = { m },\n"
    "        also = 'drink', metadata = { a = 1 } }\n"
    "    end\n"
    "  end,\n"
    "  admit = function() return true end,\n"
    "  tidy = function(entry, near, ctx)\n"
    "    for _, n in ipairs(near) do\n"
    "      ctx.memory.write{ value = entry.value, replaces = { entry, n } }\n"
    "    end\n"
    "  end,\n"
    "  recall = function(question, found) return { found[1] } end }\n";

typedef struct life {
    sessile_store *store;
    sessile_session *session;
    sessile_memory *memory;
    sessile_policy *policy;
} life;

static void open_life(life *l, rations *r)
{
    sessile_policy_step step = {"/keeps.lua", NULL, 0};
    sessile_store_options o;
    sessile_error err;

    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.alloc = ration;
    o.alloc_ud = r;
    must(sessile_open(&l->store, "/store", &o, &err), &err);
    l->session = memory_session(l->store, "s", "ann");
    l->memory = memory_of(l->store, "ann");
    must(sessile_policy_load(&l->policy, l->store, &step, 1, &err), &err);
}

static void close_life(life *l)
{
    sessile_policy_free(l->policy);
    sessile_memory_close(l->memory);
    sessile_session_close(l->session, NULL);
    sessile_store_close(l->store);
}

/* A run to its end, or until there is no memory. */
static sessile_status drive(life *l, int recalls, sessile_memory_outcome *out)
{
    sessile_memory_run_options options;
    sessile_memory_run *run = NULL;
    sessile_need need;
    sessile_status status;

    sessile_memory_run_options_init(&options);
    options.policy = l->policy;
    status =
        recalls
            ? sessile_recall_begin(&run, l->session, &l->memory, 1, NULL, &options, NULL)
            : sessile_remember_begin(&run, l->session, &l->memory, 1, &options, NULL);
    if (!status)
        status = sessile_memory_run_step(run, &need, NULL);
    if (!status)
        status = sessile_memory_run_outcome(run, out, NULL);
    sessile_memory_run_free(run);
    return status;
}

static size_t count_live(sessile_memory *m)
{
    sessile_memory_stats stats;
    sessile_error err;
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    return (size_t)stats.states[SESSILE_MEMORY_LIVE];
}

static void check_end(simfs *fs, long n, const rations *r)
{
    if (r->live)
        print_error("allocation %ld: %ld blocks leaked\n", n, r->live);
    assert_int_equal(r->live, 0);
    assert_int_equal(simfs_descriptors(fs), 0);
    os_current = &os_posix;
    simfs_free(fs);
}

static void remembering_without_memory_is_whole_or_nothing(void **state)
{
    int done = 0;
    long n;
    (void)state;
    for (n = 0; !done; n++) {
        rations r = {-1, 0};
        simfs *fs = simfs_new();
        sessile_memory_outcome out;
        life l;
        os_current = simfs_table(fs);
        simfs_write(fs, "/keeps.lua", source, sizeof source - 1);
        assert_in_range(n, 0, 20000);
        open_life(&l, &r);
        memory_said(l.session, "user", "I prefer green tea", "");
        memory_said(l.session, "user", "green tea is what I prefer", "");
        r.left = n;
        done = !drive(&l, 0, &out);
        r.left = -1;
        /* tidy of what was written may be missing; what was said is not heard twice */
        if (!done) {
            size_t before = count_live(l.memory);
            assert_int_equal(drive(&l, 0, &out), SESSILE_OK);
            assert_int_equal(out.heard, before ? 0 : 2);
        }
        assert_in_range(count_live(l.memory), 1, 2);
        if (done) { /* two, and what tidy made of them */
            assert_int_equal(out.written, 3);
            assert_int_equal(count_live(l.memory), 1);
        }
        close_life(&l);
        check_end(fs, n, &r);
    }
    assert_true(n > 100);
}

static void recalling_without_memory_is_clean(void **state)
{
    int done = 0;
    long n;
    (void)state;
    for (n = 0; !done; n++) {
        rations r = {-1, 0};
        simfs *fs = simfs_new();
        sessile_memory_outcome out;
        life l;
        os_current = simfs_table(fs);
        simfs_write(fs, "/keeps.lua", source, sizeof source - 1);
        assert_in_range(n, 0, 20000);
        open_life(&l, &r);
        remember(l.memory, "tea", "prefers green tea", NULL);
        memory_said(l.session, "user", "which tea?", "");
        r.left = n;
        done = !drive(&l, 1, &out);
        r.left = -1;
        if (!done)
            assert_int_equal(drive(&l, 1, &out), SESSILE_OK);
        /* none: it was written before memory ran out */
        assert_in_range(out.recall.recalled, done ? 1 : 0, 1);
        close_life(&l);
        check_end(fs, n, &r);
    }
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembering_without_memory_is_whole_or_nothing),
        cmocka_unit_test(recalling_without_memory_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
