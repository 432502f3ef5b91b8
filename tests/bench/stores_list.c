/*
 * stores_list.c: lists of ten thousand sessions in each store, beside reading the names
 * of as many files, or the rows of as many sessions.
 */
#include "bench/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static size_t sessions;

static void make_sessions(const backend *b)
{
    sessile_store *store = backend_store(b, "list", SESSILE_KEY_SECRET, SESSILE_NONE);
    for (size_t i = 0; i < sessions; i++)
        make_short_session(store, 1);
    sessile_store_close(store);
}

static double bare_list(const backend *b, bare *plain, size_t limit)
{
    double t = now_us();
    if (b->bare->list(plain, limit) < (limit ? limit : sessions))
        broken("a bare list is not whole");
    return now_us() - t;
}

static void bench_list(const backend *b)
{
    static const double targets[BACKENDS] = {3.5, 0, 0};
    samples ours[3] = {{0}}, plain[3] = {{0}};
    char label[64];
    make_sessions(b);
    bare *rows = backend_bare(b, "list", 1, 1);
    b->bare->make_many(rows, sessions);
    sessile_store *store = backend_store(b, "list", SESSILE_KEY_SECRET, SESSILE_SYNC);
    /* The first list of a store that nobody has listed reads every session. */
    sample(&ours[2], timed_list(store, 0, sessions));
    sample(&plain[2], bare_list(b, rows, 0));
    if (b == &backends[FILES_BACKEND] && !bench_short())
        sleep(3); /* logs of the last two seconds are looked at each time */
    timed_list(store, 0, sessions);
    for (size_t i = 0; i < rounds(60); i++)
        for (int k = 0; k < 2; k++) {
            double f = 0;
            if (i & 1)
                f = bare_list(b, rows, k ? 50 : 0);
            sample(&ours[k], timed_list(store, k ? 50 : 0, sessions));
            if (!(i & 1))
                f = bare_list(b, rows, k ? 50 : 0);
            sample(&plain[k], f);
        }
    snprintf(label, sizeof label, "list of %zu", sessions);
    result_print(&(result){label, b, &ours[0], &plain[0], NULL, b->bare->list_is,
                           targets[b - backends], 100});
    result_print(&(result){"list, the newest 50", b, &ours[1], &plain[1], NULL,
                           b->bare->list_is, b == &backends[FILES_BACKEND], 100});
    result_print(&(result){"list, the first ever", b, &ours[2], &plain[2], NULL,
                           b->bare->list_is, 0, 0});
    sessile_store_close(store);
    b->bare->close(rows, 1);
    for (int k = 0; k < 3; k++) {
        free(ours[k].at);
        free(plain[k].at);
    }
}

int main(int argc, char **argv)
{
    backends_begin(argc, argv);
    sessions = bench_short() ? 50 : 10000;
    for (int i = 0; i < BACKENDS; i++)
        if (!backends[i].missing[0])
            bench_list(&backends[i]);
    return backends_end();
}
