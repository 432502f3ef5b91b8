/*
 * append.c: one message, a turn, many lines at once: what a write costs beside the bytes.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The bytes that ours has just written, to be written by the floor. */
static size_t read_tail(int fd, off_t *known, char *out, size_t room)
{
    off_t end = lseek(fd, 0, SEEK_END);
    size_t size = (size_t)(end - *known);
    if (size > room || pread(fd, out, size, *known) != (ssize_t)size)
        broken("the log's end");
    *known = end;
    return size;
}

static void bench_append(const char *name, sessile_key_source key,
                         sessile_durability durability, double wanted)
{
    static samples ours, bare, theirs;
    static char line[1 << 16];
    char text[2 * MESSAGE], path[4400], label[64];
    sessile_error err;
    sessile_store *store = open_store(name, key, durability, NULL, NULL);
    sessile_session *s = open_session(store, "append");
    int synced = durability == SESSILE_SYNC, n = (int)rounds(synced ? 1000 : 10000);
    peer *p = synced ? peer_open(name) : NULL;
    int fd = floor_open("floor"), log;
    off_t end = 0, known;
    size_t size = 1000;
    log_path(path, name, "append");
    log = open(path, O_RDONLY | O_CLOEXEC);
    known = bench_file_size(path);
    memset(line, 'x', size);
    for (int i = -20; i < n; i++) {
        sessile_slice m = message_text(text, i < 0 ? -i : i);
        double f = 0, q = 0;
        /* Who goes first changes, lest one always pays for the other's journal. */
        if (i & 1)
            f = floor_write(fd, &end, line, size, synced);
        double t = now_us();
        must(sessile_append(s, m, NULL, &err), &err);
        t = now_us() - t;
        size = read_tail(log, &known, line, sizeof line);
        if (!(i & 1))
            f = floor_write(fd, &end, line, size, synced);
        if (p) {
            q = now_us();
            peer_put(p, 1, i + 20, m);
            q = now_us() - q;
        }
        if (i >= 0)
            sample_round(&ours, t, &bare, f, p ? &theirs : NULL, q);
    }
    snprintf(label, sizeof label, "append 600 bytes, %s, %s",
             synced ? "durable" : "not synced",
             key == SESSILE_KEY_PLAIN ? "plain" : "sealed");
    row_print(&(row){label, &ours, &bare, p ? &theirs : NULL,
                     synced ? "pwrite + fdatasync of the line" : "pwrite of the line",
                     wanted, synced ? 5 : 0});
    close(fd);
    close(log);
    peer_close(p);
    close_session(s);
    sessile_store_close(store);
}

static sessile_run *turn(sessile_session *s, const sessile_slice *messages, size_t count)
{
    sessile_error err;
    sessile_need need;
    sessile_run *run;
    must(sessile_turn_begin(&run, s, messages, count, NULL, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    return run;
}

/* A hundred messages as one turn, beside one durable append. */
static void bench_many(void)
{
    static samples ours, one, theirs;
    static char texts[100][2 * MESSAGE];
    sessile_slice list[100];
    sessile_error err;
    sessile_store *store =
        open_store("many", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    sessile_session *s = open_session(store, "many"),
                    *other = open_session(store, "append");
    peer *p = peer_open("many");
    for (int i = 0; i < 100; i++)
        list[i] = message_text(texts[i], i);
    for (int i = -5; i < (int)rounds(300); i++) {
        double t = now_us();
        sessile_run_free(turn(s, list, 100));
        t = now_us() - t;
        double f = now_us();
        must(sessile_append(other, list[0], NULL, &err), &err);
        f = now_us() - f;
        double q = now_us();
        if (p) {
            peer_begin(p);
            for (int k = 0; k < 100; k++)
                peer_put(p, 1, 100 * (i + 5) + k, list[k]);
            peer_commit(p);
        }
        q = now_us() - q;
        if (i >= 0)
            sample_round(&ours, t, &one, f, p ? &theirs : NULL, q);
    }
    row_print(&(row){"100 messages, one sync", &ours, &one, p ? &theirs : NULL,
                     "one durable append", 1.8, 0});
    peer_close(p);
    close_session(s);
    close_session(other);
    sessile_store_close(store);
}

/* A turn of two messages with `size` in the context, beside one durable append. */
static void bench_turn(const char *policy, const char *options, size_t size,
                       double wanted, double target_ms)
{
    static samples ours, one, theirs, lua, none;
    char text[2][2 * MESSAGE], name[64], label[80];
    sessile_error err;
    snprintf(name, sizeof name, "turn-%s", policy ? policy : "none");
    sessile_store *fast = open_store(name, SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    make_filled_session(fast, "turn", size);
    sessile_store_close(fast);

    sessile_store *store = open_store(name, SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    sessile_session *s = open_session(store, "turn");
    sessile_session *other = open_session(store, "append");
    peer *p = peer_open(name);
    if (policy)
        use_policy(store, policy, options);
    int applied = 0;
    for (int i = -20; i < (int)rounds(600); i++) {
        sessile_slice m[2] = {message_text(text[0], 2000 + 2 * i),
                              message_text(text[1], 2001 + 2 * i)};
        sessile_outcome out;
        double t = now_us();
        sessile_run *run = turn(s, m, 2);
        t = now_us() - t;
        must(sessile_run_outcome(run, &out, &err), &err);
        applied += out.verdict == SESSILE_APPLIED;
        if (out.verdict == SESSILE_REFUSED) {
            fprintf(stderr, "bench: refused: %s\n", out.message);
            exit(1);
        }
        double f = now_us();
        must(sessile_append(other, m[0], NULL, &err), &err);
        f = now_us() - f;
        double q = now_us();
        if (p) {
            peer_begin(p);
            peer_put(p, 1, 2 * (i + 20), m[0]);
            peer_put(p, 1, 2 * (i + 20) + 1, m[1]);
            peer_commit(p);
        }
        q = now_us() - q;
        if (i >= 0) {
            sample_round(&ours, t, &one, f, p ? &theirs : NULL, q);
            sample(&lua, (double)out.policy_us);
        }
        sessile_run_free(run);
    }
    snprintf(label, sizeof label, "turn of 2, %s, %zu (%d cuts)",
             policy ? policy : "no policy", size, applied);
    row_print(&(row){label, &ours, &one, p ? &theirs : NULL, "one durable append", wanted,
                     target_ms});
    if (policy)
        row_print(
            &(row){"  of which in Lua (to reach: 50 us)", &lua, NULL, NULL, "", 0, 0});
    lua.count = none.count = 0;
    peer_close(p);
    close_session(s);
    close_session(other);
    sessile_store_close(store);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_append("sealed", SESSILE_KEY_SECRET, SESSILE_SYNC, 1.05);
    bench_append("plain", SESSILE_KEY_PLAIN, SESSILE_SYNC, 0);
    bench_append("sealed-async", SESSILE_KEY_SECRET, SESSILE_NONE, 2.5);
    bench_append("plain-async", SESSILE_KEY_PLAIN, SESSILE_NONE, 0);
    bench_many();
    bench_turn(NULL, NULL, 1000, 0, 5);
    bench_turn("sliding_window", "{\"messages\":1000,\"keep\":0.8}", 1000, 1.3, 100);
    return bench_end();
}
