/*
 * list.c: what a list of many sessions costs beside reading the names of their files.
 *
 * Prints a table and judges nothing. All rows are measured alternately in one run over
 * one folder, so that the ratio to readdir means something. Figures are milliseconds.
 * Usage: list [FOLDER] (default: a new folder below $TMPDIR or the current one);
 * SESSILE_BENCH_SESSIONS says how many (10,000).
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sessile.h"

enum { ROUNDS = 31, SLOW_ROUNDS = 3, COLUMNS = 7 };

static char folder[4000], logs[4100], catalog[4200];
static int sessions = 10000;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void must(sessile_status st, const sessile_error *err)
{
    if (st == SESSILE_OK)
        return;
    fprintf(stderr, "list: %s: %s\n", sessile_status_name(st), err->message);
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

static sessile_store *open_store(sessile_key_source source)
{
    sessile_store_options o;
    sessile_error err;
    sessile_store *store;
    sessile_store_options_init(&o);
    o.key_source = source;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.durability = SESSILE_NONE; /* of the making, which is not measured */
    must(sessile_open(&store, folder, &o, &err), &err);
    return store;
}

static void make_sessions(sessile_store *store)
{
    static const char question[] = "{\"role\":\"user\",\"content\":\"what is this?\"}";
    for (int i = 0; i < sessions; i++) {
        sessile_session_options o;
        sessile_session *s;
        sessile_error err;
        sessile_session_options_init(&o);
        o.title = sessile_text("A question of some length");
        must(sessile_create(&s, store, &o, &err), &err);
        for (int n = 0; n < 2; n++)
            must(sessile_append(s, sessile_text(question), NULL, &err), &err);
        must(sessile_session_close(s, &err), &err);
    }
}

/* ------------------------------------------------------------------ what is measured */

static double read_names(int with_stat)
{
    struct dirent *e;
    struct stat st;
    double t = now_ms();
    off_t bytes = 0;
    DIR *d = opendir(logs);
    if (!d)
        exit(1);
    while ((e = readdir(d)))
        if (with_stat && e->d_name[0] != '.' &&
            !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            bytes += st.st_size;
    closedir(d);
    t = now_ms() - t;
    if (with_stat && !bytes)
        exit(1);
    return t;
}

static double list(sessile_store *store, uint64_t limit, size_t expected)
{
    sessile_list_options o;
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    double t = now_ms();
    sessile_list_options_init(&o);
    o.limit = limit;
    must(sessile_list_with(store, &o, &rows, &count, &err), &err);
    t = now_ms() - t;
    sessile_free(rows);
    if (count != expected) {
        fprintf(stderr, "list: %zu rows, not %zu\n", count, expected);
        exit(1);
    }
    return t;
}

/* Times of every hundredth log moved, by one second of some minutes ago. */
static void touch_some(int round)
{
    struct timespec times[2];
    struct dirent *e;
    DIR *d = opendir(logs);
    int i = 0;
    if (!d)
        exit(1);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 600 - round;
    times[1] = times[0];
    while ((e = readdir(d)))
        if (e->d_name[0] != '.' && i++ % 100 == 0)
            utimensat(dirfd(d), e->d_name, times, 0);
    closedir(d);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static double figures[COLUMNS][ROUNDS];

static void row(int column, int n, const char *name, const char *wanted)
{
    double base50 = at(figures[0], ROUNDS, 0.5), base95 = at(figures[0], ROUNDS, 0.95);
    double f50 = at(figures[column], n, 0.5), f95 = at(figures[column], n, 0.95);
    printf("%-44s %9.2f %9.2f %7.2fx %7.2fx  %s\n", name, f50, f95, f50 / base50,
           f95 / base95, wanted);
}

static void measure(sessile_key_source source, const char *kind)
{
    sessile_store *store;
    size_t all = (size_t)sessions, newest = all < 50 ? all : 50;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    if (!mkdtemp(folder))
        exit(1);
    snprintf(logs, sizeof logs, "%s/agents/main", folder);
    snprintf(catalog, sizeof catalog, "%s/.catalog", logs);
    store = open_store(source);
    make_sessions(store);
    sleep(3); /* a log of the last two seconds is looked at each time */
    for (int r = 0; r < SLOW_ROUNDS; r++) {
        unlink(catalog);
        figures[5][r] = list(store, 50, newest);
        unlink(catalog);
        figures[6][r] = list(store, 0, all);
    }
    for (int r = 0; r < ROUNDS; r++) {
        figures[0][r] = read_names(0);
        figures[1][r] = read_names(1);
        figures[2][r] = list(store, 0, all);
        figures[3][r] = list(store, 50, newest);
    }
    for (int r = 0; r < SLOW_ROUNDS; r++) {
        touch_some(r);
        sleep(3);
        figures[4][r] = list(store, 0, all);
    }
    sessile_store_close(store);
    printf("\n%s, %d sessions%36s %9s %9s %8s %8s\n", kind, sessions, "", "p50 ms",
           "p95 ms", "p50", "p95");
    row(0, ROUNDS, "readdir", "");
    row(1, ROUNDS, "readdir and fstatat of each: the floor", "");
    row(2, ROUNDS, "list, nothing changed", "(to reach: 3.50x)");
    row(3, ROUNDS, "list, the newest 50", "(to reach: 1.00x)");
    row(4, SLOW_ROUNDS, "list, 1 in 100 changed", "");
    row(5, SLOW_ROUNDS, "the newest 50, no catalog", "");
    row(6, SLOW_ROUNDS, "list, no catalog: every log opened", "(pi: 1,700 ms)");
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
    const char *tmp = argc > 1 ? argv[1] : getenv("TMPDIR"), *many;
    many = getenv("SESSILE_BENCH_SESSIONS");
    sessions = many && atoi(many) > 0 ? atoi(many) : sessions;
    snprintf(folder, sizeof folder, "%s/list.XXXXXX", tmp && *tmp ? tmp : ".");
    measure(SESSILE_KEY_SECRET, "sealed");
    measure(SESSILE_KEY_PLAIN, "plain");
    printf("\nto reach by the specification: 10,000 sessions in 100 ms\n");
    return 0;
}
