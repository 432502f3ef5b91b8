/*
 * writers.c: sixteen who write at once, beside one. Times are of one append: what all of
 * them took, divided by how many there were.
 */
#include "bench/measure.h"

#include <stdio.h>

enum { WRITERS = 16, EACH = 16 };

typedef struct writer {
    sessile_session *s;
    peer *p;
    int number, round;
} writer;

static void *write_some(void *arg)
{
    writer *w = arg;
    char text[2 * MESSAGE];
    sessile_error err;
    for (int i = 0; i < EACH; i++) {
        sessile_slice m = message_text(text, i);
        if (w->s)
            must(sessile_append(w->s, m, NULL, &err), &err);
        else
            peer_put(w->p, w->number, w->round * EACH + i, m);
    }
    return NULL;
}

static double together(writer *list)
{
    return timed_threads(write_some, list, sizeof *list, WRITERS) / (WRITERS * EACH);
}

static void bench_writers(const char *name, int handles, double wanted)
{
    static samples ours, one, theirs;
    writer list[WRITERS] = {{0}}, peers[WRITERS] = {{0}}, alone = {0};
    char label[64];
    sessile_store *store = open_store(name, SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    sessile_session *s = open_session(store, "shared");
    peer *p = peer_open(name);
    alone.s = open_session(store, "alone");
    for (int i = 0; i < WRITERS; i++) {
        list[i].s = handles ? open_session(store, "shared") : s;
        peers[i].number = i;
        peers[i].p = p ? peer_open(name) : NULL;
    }
    for (int i = -1; i < (int)rounds(40); i++) {
        double t = together(list), q = 0;
        double f = now_us();
        write_some(&alone);
        f = (now_us() - f) / EACH;
        int theirs_too = p && i % 8 == 0; /* who loses there sleeps: it takes seconds */
        if (theirs_too) {
            for (int k = 0; k < WRITERS; k++)
                peers[k].round = i + 1;
            q = together(peers);
        }
        if (i >= 0)
            sample_round(&ours, t, &one, f, theirs_too ? &theirs : NULL, q);
    }
    snprintf(label, sizeof label, "16 writers, %s", name);
    double speed = median(&one) / median(&ours);
    row_print(&(row){label, &ours, &one, p ? &theirs : NULL, "one writer", wanted, 5});
    note("  that is %.1f times one writer's rate (to reach: 5)", speed);
    for (int i = 0; i < WRITERS; i++) {
        if (handles)
            close_session(list[i].s);
        peer_close(peers[i].p);
    }
    peer_close(p);
    close_session(alone.s);
    close_session(s);
    sessile_store_close(store);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_writers("threads on one handle", 0, 0.2);
    bench_writers("a handle each", 1, 0.2);
    return bench_end();
}
