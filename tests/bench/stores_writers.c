/*
 * stores_writers.c: sixteen who write at once into each store, on one session and on
 * sixteen, beside sixteen bare connections that do the same. Times are of one append:
 * what all of them took, divided by how many there were.
 */
#include "bench/backends.h"

#include <stdio.h>
#include <stdlib.h>

enum { WRITERS = 16, EACH = 8 };

static char *lines;
static size_t line_size;

typedef struct writer {
    const backend *of;
    sessile_session *s; /* NULL: the bare side writes */
    bare *plain;
    int number;
} writer;

static void *write_some(void *arg)
{
    writer *w = arg;
    char text[2 * MESSAGE];
    sessile_error err;
    for (int i = 0; i < EACH; i++) {
        if (w->s)
            must(sessile_append(w->s, message_text(text, i), NULL, &err), &err);
        else
            w->of->bare->append(w->plain, w->number, lines + (size_t)i * line_size,
                                line_size, 1);
    }
    return NULL;
}

static double together(writer *list)
{
    return timed_threads(write_some, list, sizeof *list, WRITERS) / (WRITERS * EACH);
}

/* spread: each on a session of its own; else all on one, with a handle each. */
static void bench_writers(const backend *b, int spread)
{
    writer ours[WRITERS], plain[WRITERS], alone = {.of = b};
    samples together_us = {0}, bare_us = {0}, alone_us = {0};
    const char *name = spread ? "spread" : "shared";
    char id[32];
    sessile_store *store = backend_store(b, name, SESSILE_KEY_SECRET, SESSILE_SYNC);
    alone.s = open_session(store, "alone");
    for (int i = 0; i < WRITERS; i++) {
        snprintf(id, sizeof id, "s-%d", spread ? i : 0);
        ours[i] = (writer){b, open_session(store, id), NULL, 0};
        plain[i] = (writer){b, NULL, backend_bare(b, name, i == 0, 1), spread ? i : 0};
        if (spread || i == 0)
            b->bare->make(plain[i].plain, i, lines, line_size, 0);
    }
    /* Bare connections to SQLite that meet sleep for milliseconds: it takes a while. */
    for (int i = -1; i < (bench_short() ? 1 : 12); i++) {
        double f = i & 1 ? together(plain) : 0, t = together(ours);
        if (!(i & 1))
            f = together(plain);
        double one = now_us();
        write_some(&alone);
        one = (now_us() - one) / EACH;
        if (i >= 0) {
            sample(&together_us, t);
            sample(&bare_us, f);
            sample(&alone_us, one);
        }
    }
    double faster = median(&alone_us) / median(&together_us);
    result_print(
        &(result){spread ? "16 writers, a session each" : "16 writers on one session", b,
                  &together_us, &bare_us, NULL, b->bare->append_is, 0, 5});
    note("%-32s %-10s %.1f times the rate of one writer%s", "", b->name, faster,
         b == &backends[FILES_BACKEND] && !spread ? " (to reach: 5)" : "");
    for (int i = 0; i < WRITERS; i++) {
        close_session(ours[i].s);
        b->bare->close(plain[WRITERS - 1 - i].plain, i == WRITERS - 1);
    }
    close_session(alone.s);
    sessile_store_close(store);
    free(together_us.at);
    free(bare_us.at);
    free(alone_us.at);
}

int main(int argc, char **argv)
{
    backends_begin(argc, argv);
    lines = floor_lines(EACH, &line_size);
    for (int i = 0; i < BACKENDS; i++)
        for (int spread = 0; spread < 2 && !backends[i].missing[0]; spread++)
            bench_writers(&backends[i], spread);
    free(lines);
    return backends_end();
}
