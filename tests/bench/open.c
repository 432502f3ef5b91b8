/*
 * open.c: opening a session and reading what the model sees, reading all of it, and what
 * an open session holds in memory.
 */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------- memory */

static size_t live;

static void *counting(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    if (nsize == 0) {
        live -= ptr ? osize : 0;
        free(ptr);
        return NULL;
    }
    void *grown = realloc(ptr, nsize);
    if (grown)
        live += nsize - (ptr ? osize : 0);
    return grown;
}

static void bench_memory(const char *id, size_t n)
{
    sessile_error err;
    sessile_message *list;
    size_t count;
    sessile_store *store =
        open_store("open", SESSILE_KEY_SECRET, SESSILE_SYNC, counting, NULL);
    size_t before = live;
    sessile_session *s = open_session(store, id);
    size_t opened = live - before;
    must(sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, &err), &err);
    sessile_free(list);
    size_t read = live - before;
    note("memory of an open session of %zu, bytes an entry: %.1f opened, %.1f after its "
         "context was read (to reach: 96)",
         n, (double)opened / (double)n, (double)read / (double)n);
    close_session(s);
    sessile_store_close(store);
}

/* ---------------------------------------------------------------------- opening */

/* Leaves about a hundred messages in the context, by a compaction. */
static void compact(sessile_session *s, sessile_store *store)
{
    sessile_policy_step step = {"sliding_window", "{\"messages\":100}", 0};
    sessile_run_options o;
    sessile_policy *policy;
    sessile_error err;
    sessile_need need;
    sessile_run *run;
    must(sessile_policy_load(&policy, store, &step, 1, &err), &err);
    sessile_run_options_init(&o);
    o.config.policy = policy;
    must(sessile_compact_begin(&run, s, &o, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    sessile_run_free(run);
    sessile_policy_free(policy);
}

static double cost[2][3]; /* medians: by compacted, by size */

static void bench_open(const char *id, size_t n, int compacted, int which)
{
    static samples ours, bare, theirs;
    char label[64], floor_name[64];
    sessile_error err;
    sessile_store *store =
        open_store("open", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    size_t context = compacted ? 100 : n, seen = 0;
    snprintf(floor_name, sizeof floor_name, "floor-%zu", n);
    for (int i = -2; i < (int)rounds(n > 50000 ? 10 : n > 5000 ? 40 : 200); i++) {
        sessile_message *list;
        double q = 0;
        double t = now_us();
        sessile_session *s = open_session(store, id);
        must(sessile_context(s, SESSILE_NO_ID, &list, &seen, NULL, &err), &err);
        t = now_us() - t;
        sessile_free(list);
        close_session(s);
        double f = floor_log_read(floor_name, context);
        q = now_us();
        peer *p = peer_open("open");
        if (p)
            peer_read(p, (int)n, context);
        q = now_us() - q;
        peer_close(p);
        if (i >= 0)
            sample_round(&ours, t, &bare, f, p ? &theirs : NULL, q);
    }
    cost[compacted][which] = median(&ours);
    snprintf(label, sizeof label, "open %zu, context of %zu", n, seen);
    row_print(&(row){label, &ours, &bare, theirs.count ? &theirs : NULL,
                     compacted ? "pread + base64 + AEAD of the last 100"
                               : "pread + base64 + AEAD of all",
                     1.5, n == 1000 ? 50 : 0});
    if (which == 1)
        note("  that is %.1f times the cost of 1,000 (to reach: 3.5)",
             cost[compacted][1] / cost[compacted][0]);
    sessile_store_close(store);
}

/* One entry by its id, from anywhere in the log, each twice. The first read in a block of
 * the index (256 entries) opens the block; the second pass shows the read alone. */
static void bench_entry(const char *id, size_t n, int which)
{
    static samples ours[2];
    static double cost[2][3];
    char label[64];
    sessile_error err;
    sessile_store *store =
        open_store("open", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    sessile_session *s = open_session(store, id);
    for (int pass = 0; pass < 2; pass++) {
        uint32_t at = 1;
        for (int i = -20; i < (int)rounds(1000); i++) {
            char *json;
            size_t size;
            at = (uint32_t)(((uint64_t)at * 7919 + 17) % n) + 1;
            double t = now_us();
            must(sessile_entry(s, at, &json, &size, &err), &err);
            t = now_us() - t;
            sessile_free(json);
            if (i >= 0)
                sample(&ours[pass], t);
        }
        cost[pass][which] = median(&ours[pass]);
        snprintf(label, sizeof label, "an entry by its id, of %zu, %s time", n,
                 pass ? "second" : "first");
        row_print(&(row){label, &ours[pass], NULL, NULL, "", 0, 0});
        if (which && pass)
            note("  that is %.1f times the cost of 1,000 (to reach: 2)",
                 cost[pass][which] / cost[pass][0]);
        else if (which)
            note("  that is %.1f times the cost of 1,000: most reads open a block of the "
                 "index",
                 cost[pass][which] / cost[pass][0]);
    }
    close_session(s);
    sessile_store_close(store);
}

static void bench_read(const char *id, size_t n)
{
    static samples ours, bare, theirs;
    char label[64], floor_name[64];
    sessile_error err;
    sessile_store *store =
        open_store("open", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    sessile_session *s = open_session(store, id);
    peer *p = peer_open("open");
    snprintf(floor_name, sizeof floor_name, "floor-%zu", n);
    for (int i = -2; i < (int)rounds(40); i++) {
        sessile_message *list;
        size_t count;
        double t = now_us();
        must(sessile_messages(s, NULL, &list, &count, &err), &err);
        t = now_us() - t;
        if (count != n || list[n - 1].json.size != MESSAGE)
            broken("messages");
        sessile_free(list);
        double f = floor_log_read(floor_name, n);
        double q = now_us();
        if (p)
            peer_read(p, (int)n, n);
        q = now_us() - q;
        if (i >= 0)
            sample_round(&ours, t, &bare, f, p ? &theirs : NULL, q);
    }
    snprintf(label, sizeof label, "read all of %zu, open session", n);
    row_print(&(row){label, &ours, &bare, p ? &theirs : NULL,
                     "pread + base64 + AEAD of all", 2.0, 0});
    peer_close(p);
    close_session(s);
    sessile_store_close(store);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1000, 10000, 100000};
    char whole[32], cut[32], name[64], text[2 * MESSAGE];
    bench_begin(argc, argv);
    size_t count = bench_short() ? 2 : 3;
    sessile_store *store =
        open_store("open", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    peer *p = peer_open("open");
    for (size_t i = 0; i < count; i++) {
        size_t n = sizes[i];
        snprintf(whole, sizeof whole, "whole-%zu", n);
        snprintf(cut, sizeof cut, "cut-%zu", n);
        snprintf(name, sizeof name, "floor-%zu", n);
        sessile_session *a = open_session(store, whole), *b = open_session(store, cut);
        fill_session(a, n);
        fill_session(b, n);
        compact(b, store);
        close_session(a);
        close_session(b);
        floor_log_make(name, n);
        if (p) {
            peer_begin(p);
            for (size_t k = 0; k < n; k++)
                peer_put(p, (int)n, (int)k, message_text(text, (int)k));
            peer_commit(p);
        }
    }
    sessile_store_close(store);
    for (int compacted = 1; compacted >= 0; compacted--)
        for (size_t i = 0; i < count; i++) {
            snprintf(name, sizeof name, "%s-%zu", compacted ? "cut" : "whole", sizes[i]);
            bench_open(name, sizes[i], compacted, (int)i);
        }
    for (size_t i = 0; i < count; i++) {
        snprintf(whole, sizeof whole, "whole-%zu", sizes[i]);
        bench_entry(whole, sizes[i], (int)i);
    }
    bench_read("whole-10000", 10000);
    bench_memory("whole-10000", 10000);
    bench_memory("cut-10000", 10000);
    peer_close(p);
    return bench_end();
}
