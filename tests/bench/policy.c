/*
 * policy.c: what policies cost: a process of their own, a compaction, a look at the
 * newest.
 */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An unsynced store of ours whose policies run where isolation says. */
static sessile_store *open_isolated(const char *name, sessile_isolation isolation)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    const char *build = getenv("BUILD");
    char path[4200], program[4200];
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.durability = SESSILE_NONE;
    o.policy_path = "policies";
    o.config.isolation = isolation;
    snprintf(program, sizeof program, "%s/libexec/sessile-worker",
             build ? build : "build");
    o.worker = program;
    snprintf(path, sizeof path, "%s/%s", bench_folder, name);
    must(sessile_open(&store, path, &o, &err), &err);
    return store;
}

/* Runs to its end; the outcome is borrowed from the run. */
static void finish(sessile_run *run, sessile_outcome *out)
{
    sessile_need need;
    sessile_error err;
    must(sessile_run_step(run, &need, &err), &err);
    must(sessile_run_outcome(run, out, &err), &err);
    if (out->verdict == SESSILE_REFUSED) {
        fprintf(stderr, "bench: refused: %s\n", out->message);
        exit(1);
    }
}

/* A turn of `count` messages: its time, and in *lua that of the policy. */
static double turn(sessile_session *s, int i, size_t count, int no_policy, double *lua)
{
    static char texts[256][2 * MESSAGE];
    sessile_slice list[256];
    sessile_run_options options;
    sessile_outcome out;
    sessile_error err;
    sessile_run *run;
    for (size_t k = 0; k < count; k++)
        list[k] = message_text(texts[k], 2 * i + (int)k);
    sessile_run_options_init(&options);
    options.no_policy = no_policy;
    double t = now_us();
    must(sessile_turn_begin(&run, s, list, count, &options, &err), &err);
    finish(run, &out);
    t = now_us() - t;
    if (lua)
        *lua = (double)out.policy_us;
    sessile_run_free(run);
    return t;
}

/* The same turns, with the policy here and in a worker; nothing is synced, so that the
 * difference is the worker's. */
static void bench_worker(void)
{
    static samples here, there;
    sessile_store *in = open_isolated("in-process", SESSILE_IN_PROCESS),
                  *out = open_isolated("isolated", SESSILE_WORKER);
    sessile_session *a = open_session(in, "turn"), *b = open_session(out, "turn");
    double added;
    fill_session(a, 1000);
    fill_session(b, 1000);
    use_policy(in, "sliding_window", "{\"messages\":1000,\"keep\":0.8}");
    use_policy(out, "sliding_window", "{\"messages\":1000,\"keep\":0.8}");
    for (int i = -20; i < (int)rounds(2000); i++) {
        double one = turn(a, i + 2000, 2, 0, NULL), two = turn(b, i + 2000, 2, 0, NULL);
        if (i >= 0) {
            sample(&here, one);
            sample(&there, two);
        }
    }
    added = median(&there) - median(&here);
    row_print(&(row){"turn of 2, sliding_window in a worker, 1000", &there, &here, NULL,
                     "the same turn, in process", 0, 0});
    note("a worker adds %.0f us to a turn (to reach: 500)", added);
    close_session(a);
    close_session(b);
    sessile_store_close(in);
    sessile_store_close(out);
}

/* A person asks to compact 1,000 messages to 800, beside one durable append. */
static void bench_compact(void)
{
    static samples ours, one, lua;
    sessile_store *store =
        open_store("compact", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    sessile_session *s = open_session(store, "compact"),
                    *other = open_session(store, "append");
    sessile_error err;
    char text[2 * MESSAGE];
    use_policy(store, "sliding_window", "{\"messages\":1000,\"keep\":0.8}");
    for (int i = 0; i < 4; i++)
        turn(s, 200 * i, 200, 1, NULL);
    for (int i = 0; i < (int)rounds(300); i++) {
        sessile_slice m = message_text(text, i);
        sessile_outcome out;
        sessile_run *run;
        turn(s, 1000 + 200 * i, 200, 1, NULL);
        double t = now_us();
        must(sessile_compact_begin(&run, s, NULL, &err), &err);
        finish(run, &out);
        t = now_us() - t;
        if (out.verdict != SESSILE_APPLIED)
            broken("the compaction");
        double f = now_us();
        must(sessile_append(other, m, NULL, &err), &err);
        f = now_us() - f;
        sample(&ours, t);
        sample(&one, f);
        sample(&lua, (double)out.policy_us);
        sessile_run_free(run);
    }
    row_print(&(row){"compaction, sliding_window, 1000", &ours, &one, NULL,
                     "one durable append", 0, 100});
    row_print(&(row){"  of which in Lua (to reach: 50 us)", &lua, NULL, NULL, "", 0, 0});
    close_session(s);
    close_session(other);
    sessile_store_close(store);
}

static const char newest[] =
    "return { name = 'newest', truncate = function(state)\n"
    "  local messages, bytes = state.messages, 0\n"
    "  for i = #messages - 99, #messages do\n"
    "    local m = messages[i]\n"
    "    if m.role ~= 'tool' and m.tokens > 0 then bytes = bytes + #m.content end\n"
    "  end\n"
    "  state.vars = {}\n"
    "end }\n";

/* The time in Lua of a policy that reads the newest 100 of them. */
static sessile_session *newest_of(sessile_store **store, const char *name, size_t size)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/newest.lua", bench_folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs(newest, file) < 0 || fclose(file))
        broken("newest.lua");
    *store = open_isolated(name, SESSILE_IN_PROCESS);
    sessile_session *s = open_session(*store, "newest");
    fill_session(s, size);
    use_policy(*store, path, "{}");
    return s;
}

static void bench_newest(void)
{
    static samples few, many;
    sessile_store *small, *large;
    size_t most = bench_short() ? 1000 : 10000;
    char label[80];
    sessile_session *a = newest_of(&small, "newest-100", 100),
                    *b = newest_of(&large, "newest-many", most);
    for (int i = -20; i < (int)rounds(300); i++) {
        double one, two;
        turn(a, i + 20, 2, 0, &one);
        turn(b, i + 20, 2, 0, &two);
        if (i >= 0) {
            sample(&few, one);
            sample(&many, two);
        }
    }
    snprintf(label, sizeof label, "a policy that reads the newest 100 of %zu", most);
    row_print(&(row){label, &many, &few, NULL, "of 100 to 700", 1.5, 0});
    close_session(a);
    close_session(b);
    sessile_store_close(small);
    sessile_store_close(large);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_worker();
    bench_compact();
    bench_newest();
    return bench_end();
}
