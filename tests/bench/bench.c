/*
 * bench.c: what the engine costs beside the floor that no store can go under.
 *
 * Prints a table and judges nothing. Each row is one operation of ours and its floor,
 * done alternately in the same run on the same file system, since one fdatasync drifts by
 * a factor of two within minutes: only the ratio means something. Figures are
 * microseconds. Usage: bench [FOLDER] (default: a new folder below $TMPDIR or the current
 * one).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sessile.h"

enum { ROUNDS = 600, MESSAGE = 600 };

static char folder[4000];

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(sessile_status st, const sessile_error *err)
{
    if (st == SESSILE_OK)
        return;
    fprintf(stderr, "bench: %s: %s\n", sessile_status_name(st), err->message);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at(double *samples, int n, double share)
{
    qsort(samples, (size_t)n, sizeof *samples, by_value);
    return samples[(int)(share * (n - 1))];
}

static void row(const char *name, double *ours, double *floor_, int n,
                const char *floor_name, double wanted)
{
    double o50 = at(ours, n, 0.5), o95 = at(ours, n, 0.95);
    if (!floor_) {
        printf("%-44s %9.1f %9.1f %9s %9s %7s %7s  %s\n", name, o50, o95, "", "", "", "",
               floor_name);
        return;
    }
    double f50 = at(floor_, n, 0.5), f95 = at(floor_, n, 0.95);
    printf("%-44s %9.1f %9.1f %9.1f %9.1f %6.2fx %6.2fx  %s", name, o50, o95, f50, f95,
           o50 / f50, o95 / f95, floor_name);
    if (wanted > 0)
        printf(" (to reach: %.2fx)", wanted);
    printf("\n");
}

/* A message of about MESSAGE bytes. */
static sessile_slice message(char *out, size_t cap, int i)
{
    int n = snprintf(out, cap, "{\"role\":\"%s\",\"content\":\"%d ",
                     i % 2 ? "assistant" : "user", i);
    while (n < MESSAGE - 3)
        n += snprintf(out + n, cap - (size_t)n, "word%d ", (i * 31 + n) % 977);
    n += snprintf(out + n, cap - (size_t)n, "\"}");
    return (sessile_slice){out, (size_t)n};
}

static sessile_store *open_store(const char *name, sessile_key_source key,
                                 sessile_durability durability)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    char path[4200];
    sessile_store_options_init(&o);
    o.key_source = key;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.durability = durability;
    o.policy_path = "policies";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    must(sessile_open(&store, path, &o, &err), &err);
    return store;
}

static sessile_session *open_session(sessile_store *store, const char *id)
{
    sessile_session_options o;
    sessile_error err;
    sessile_session *s;
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    must(sessile_session_open(&s, store, &o, &err), &err);
    return s;
}

static int floor_file(const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

static off_t size_of(const char *store, const char *id)
{
    struct stat st;
    char path[4400];
    snprintf(path, sizeof path, "%s/%s/agents/main/%s.jsonl", folder, store, id);
    return stat(path, &st) ? 0 : st.st_size;
}

/* One line of as many bytes as ours has, written and, if asked, synced. */
static double floor_write(int fd, off_t *end, size_t bytes, int synced)
{
    static char block[1 << 16];
    memset(block, 'x', bytes);
    double t = now_us();
    ssize_t n = pwrite(fd, block, bytes, *end);
    int bad = n != (ssize_t)bytes || (synced && fdatasync(fd));
    t = now_us() - t;
    if (bad) {
        perror("floor");
        exit(1);
    }
    *end += (off_t)bytes;
    return t;
}

static void bench_append(const char *name, sessile_key_source key,
                         sessile_durability durability, double wanted)
{
    static double ours[ROUNDS], floor_[ROUNDS];
    char text[2 * MESSAGE];
    sessile_error err;
    sessile_store *store = open_store(name, key, durability);
    sessile_session *s = open_session(store, "append");
    int fd = floor_file("floor");
    off_t end = 0, size = size_of(name, "append");
    size_t line = 1000;
    for (int i = -20; i < ROUNDS; i++) {
        sessile_slice m = message(text, sizeof text, i < 0 ? -i : i);
        int synced = durability == SESSILE_SYNC;
        double f = 0;
        /* Who goes first changes, lest one always pays for the other's journal. */
        if (i & 1)
            f = floor_write(fd, &end, line, synced);
        double t = now_us();
        must(sessile_append(s, m, NULL, &err), &err);
        t = now_us() - t;
        off_t grown = size_of(name, "append");
        line = (size_t)(grown - size);
        size = grown;
        if (!(i & 1))
            f = floor_write(fd, &end, line, synced);
        if (i >= 0)
            ours[i] = t, floor_[i] = f;
    }
    char label[64];
    snprintf(label, sizeof label, "append 600 bytes, %s, %s",
             durability == SESSILE_SYNC ? "durable" : "not synced",
             key == SESSILE_KEY_PLAIN ? "plain" : "sealed");
    row(label, ours, floor_, ROUNDS,
        durability == SESSILE_SYNC ? "write + fdatasync" : "write", wanted);
    close(fd);
    must(sessile_session_close(s, &err), &err);
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

/* A turn of two messages with `size` in the context, beside one durable append. */
static void bench_turn(const char *policy, const char *options, int size, double wanted)
{
    static double ours[ROUNDS], floor_[ROUNDS], lua[ROUNDS];
    char text[2][2 * MESSAGE], name[64], label[80];
    sessile_error err;
    snprintf(name, sizeof name, "turn-%s-%d", policy ? policy : "none", size);
    sessile_store *fast = open_store(name, SESSILE_KEY_SECRET, SESSILE_NONE);
    sessile_session *s = open_session(fast, "turn");
    for (int i = 0; i < size; i++)
        must(sessile_append(s, message(text[0], sizeof text[0], i), NULL, &err), &err);
    must(sessile_session_close(s, &err), &err);
    sessile_store_close(fast);

    sessile_store *store = open_store(name, SESSILE_KEY_SECRET, SESSILE_SYNC);
    s = open_session(store, "turn");
    sessile_session *other = open_session(store, "append");
    if (policy) {
        sessile_policy *p;
        sessile_policy_step step = {policy, options, 0};
        must(sessile_policy_load(&p, store, &step, 1, &err), &err);
        sessile_store_set_policy(store, p);
        sessile_policy_free(p);
    }
    int applied = 0;
    for (int i = -20; i < ROUNDS; i++) {
        sessile_slice m[2] = {message(text[0], sizeof text[0], 2000 + 2 * i),
                              message(text[1], sizeof text[1], 2001 + 2 * i)};
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
        if (i >= 0)
            ours[i] = t, floor_[i] = f, lua[i] = (double)out.policy_us;
        sessile_run_free(run);
    }
    snprintf(label, sizeof label, "turn of 2, %s, %d in context (%d cuts)",
             policy ? policy : "no policy", size, applied);
    row(label, ours, floor_, ROUNDS, "one durable append", wanted);
    if (policy)
        row("  of which in Lua", lua, NULL, ROUNDS, "", 0);
    must(sessile_session_close(s, &err), &err);
    must(sessile_session_close(other, &err), &err);
    sessile_store_close(store);
}

/* Opening a session of n messages and reading its context, beside reading its bytes. */
static void bench_open(int n)
{
    enum { TIMES = 30 };
    double ours[TIMES], floor_[TIMES];
    char text[2 * MESSAGE], id[32], label[64], path[4400];
    sessile_error err;
    sessile_store *store = open_store("open", SESSILE_KEY_SECRET, SESSILE_NONE);
    snprintf(id, sizeof id, "open-%d", n);
    sessile_session *s = open_session(store, id);
    for (int i = 0; i < n; i++)
        must(sessile_append(s, message(text, sizeof text, i), NULL, &err), &err);
    must(sessile_session_close(s, &err), &err);
    snprintf(path, sizeof path, "%s/open/agents/main/%s.jsonl", folder, id);
    for (int i = 0; i < TIMES; i++) {
        sessile_message *list;
        size_t count;
        double t = now_us();
        s = open_session(store, id);
        must(sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, &err), &err);
        ours[i] = now_us() - t;
        sessile_free(list);
        must(sessile_session_close(s, &err), &err);
        t = now_us();
        int fd = open(path, O_RDONLY);
        static char block[1 << 20];
        while (read(fd, block, sizeof block) > 0)
            ;
        close(fd);
        floor_[i] = now_us() - t;
    }
    snprintf(label, sizeof label, "open and context, %d messages, no index", n);
    row(label, ours, floor_, TIMES, "read(2) of the file", 0);
    sessile_store_close(store);
}

int main(int argc, char **argv)
{
    const char *base = argc > 1 ? argv[1] : getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/sessile-bench.XXXXXX", base ? base : ".");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    printf("%-44s %9s %9s %9s %9s %7s %7s  %s\n", "operation", "median", "p95", "floor",
           "p95", "ratio", "p95", "floor is");
    bench_append("sealed", SESSILE_KEY_SECRET, SESSILE_SYNC, 1.05);
    bench_append("plain", SESSILE_KEY_PLAIN, SESSILE_SYNC, 0);
    bench_append("sealed-async", SESSILE_KEY_SECRET, SESSILE_NONE, 2.5);
    bench_turn(NULL, NULL, 1000, 0);
    bench_turn("sliding_window", "{\"messages\":1000}", 1000, 1.3);
    bench_open(1000);
    bench_open(10000);
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) ? 1 : 0;
}
