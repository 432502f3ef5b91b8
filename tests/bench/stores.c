/*
 * stores.c: what a session costs in each store (files, SQLite, PostgreSQL) beside the
 * bare library doing the same work, and beside LangGraph's savers.
 *
 * Ours and the bare side alternate in one run, on one file system or server, and who goes
 * first changes. The bare side writes lines that were sealed beforehand; ours takes a
 * message, checks it, finds its place, seals it and learns what others wrote meanwhile.
 */
#include "bench/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 10000, WARM = 20, TURN_LINES = 3 /* two messages and the turn */ };

static char *lines; /* sealed ones, for every bare write */
static size_t line_size;

/* Two sides that take turns, and what they work on. */
typedef struct pair {
    const backend *of;
    sessile_store *here, *there; /* two nodes */
    sessile_session *s, *far;    /* a session on each; far is the same one */
    const char *id;
    bare *plain, *plain_far;
    int number;        /* of the bare session */
    size_t adds, from; /* what the bare side writes, and reads from */
    int opened;        /* and whether it opens the lines */
    samples ours, bare, peer;
} pair;

typedef double work(pair *p, int i);

static void alternate(pair *p, size_t n, int warm, work *ours, work *bare)
{
    for (int i = -warm; i < (int)n; i++) {
        double o, f = 0;
        if (i & 1)
            f = bare(p, i);
        o = ours(p, i);
        if (!(i & 1))
            f = bare(p, i);
        if (i >= 0) {
            sample(&p->ours, o);
            sample(&p->bare, f);
        }
    }
}

static void ask_peer(pair *p, peer *l, const char *verb, size_t n, size_t most)
{
    for (size_t i = 0; l && i < (bench_short() ? 2 : most); i++)
        sample(&p->peer, peer_do(l, verb, n));
}

static void print(pair *p, const char *operation, const char *bare_is, double target,
                  double asked_ms)
{
    result_print(&(result){operation, p->of, &p->ours, &p->bare, &p->peer, bare_is,
                           target, asked_ms});
}

static void free_samples(pair *p)
{
    free(p->ours.at);
    free(p->bare.at);
    free(p->peer.at);
}

/* ---------------------------------------------------------------------- writing */

static double our_append(pair *p, int i)
{
    char text[2 * MESSAGE];
    sessile_error err;
    sessile_slice m = message_text(text, i + WARM);
    double t = now_us();
    must(sessile_append(p->s, m, NULL, &err), &err);
    return now_us() - t;
}

static double our_turn(pair *p, int i)
{
    char text[2][2 * MESSAGE];
    sessile_slice m[2] = {message_text(text[0], 2 * (i + WARM)),
                          message_text(text[1], 2 * (i + WARM) + 1)};
    sessile_error err;
    sessile_need need;
    sessile_run *run;
    double t = now_us();
    must(sessile_turn_begin(&run, p->s, m, 2, NULL, &err), &err);
    must(sessile_run_step(run, &need, &err), &err);
    t = now_us() - t;
    sessile_run_free(run);
    return t;
}

static double bare_append(pair *p, int i)
{
    size_t first = (size_t)(i + WARM) % (LINES - p->adds);
    double t = now_us();
    p->of->bare->append(p->plain, p->number, lines + first * line_size, line_size,
                        p->adds);
    return now_us() - t;
}

static void bench_append(const backend *b, const char *label, sessile_key_source source,
                         sessile_durability durability, double target)
{
    int synced = durability == SESSILE_SYNC;
    char name[32];
    pair p = {.of = b, .number = 1, .adds = 1};
    snprintf(name, sizeof name, "append-%d-%d", (int)source, synced);
    p.here = backend_store(b, name, source, durability);
    p.s = open_session(p.here, "append");
    p.plain = backend_bare(b, name, 1, synced);
    b->bare->make(p.plain, 1, lines, line_size, 0);
    alternate(&p, rounds(synced ? 400 : 4000), WARM, our_append, bare_append);
    print(&p, label, b->bare->append_is, target, synced ? 5 : 0);
    b->bare->close(p.plain, 1);
    close_session(p.s);
    sessile_store_close(p.here);
    free_samples(&p);
}

static void bench_turn(pair *p, peer *l, size_t n)
{
    char options[64], label[64];
    snprintf(options, sizeof options, "{\"messages\":%zu,\"keep\":0.8}", n);
    use_policy(p->here, "sliding_window", options);
    p->s = open_session(p->here, p->id);
    p->adds = TURN_LINES;
    alternate(p, rounds(n > 5000 ? 100 : 400), WARM, our_turn, bare_append);
    ask_peer(p, l, "put", n, n > 5000 ? 10 : 40);
    snprintf(label, sizeof label, "turn of 2, sliding_window, %zu", n);
    print(p, label, p->of->bare->append_is, n > 5000 ? 0 : 1.3, 100);
    close_session(p->s);
}

/* ---------------------------------------------------------------------- reading */

static double our_open(pair *p, int i)
{
    sessile_message *list;
    sessile_error err;
    size_t count;
    (void)i;
    double t = now_us();
    sessile_session *s = open_session(p->there, p->id);
    must(sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, &err), &err);
    t = now_us() - t;
    sessile_free(list);
    close_session(s);
    return t;
}

static double bare_read(pair *p, int i)
{
    (void)i;
    double t = now_us();
    if (!p->of->bare->read(p->plain, p->number, p->from, p->opened))
        broken("nothing was read");
    return now_us() - t;
}

/* Another node than the one that wrote it opens the session and reads its context. */
static void bench_open(pair *p, peer *l, size_t n)
{
    static const double targets[BACKENDS] = {1.5, 0, 1.3};
    char label[64], bare_is[128];
    size_t times = rounds(n > 5000 ? 40 : 200);
    int file = p->of == &backends[FILES_BACKEND];
    ask_peer(p, l, "load", n, n > 5000 ? 5 : 30);
    for (p->opened = file; p->opened < 2; p->opened++) {
        alternate(p, times, 2, our_open, bare_read);
        snprintf(label, sizeof label,
                 p->opened && !file ? "  beside opened lines too"
                                    : "open + context of %zu",
                 n);
        snprintf(bare_is, sizeof bare_is, "%s%s", p->of->bare->read_is,
                 p->opened ? ", base64, AEAD" : "");
        print(p, label, bare_is, p->opened && !file ? 0 : targets[p->of - backends],
              n > 5000 ? 0 : 50);
    }
}

static double our_fetch(pair *p, int i)
{
    sessile_message *list;
    sessile_error err;
    size_t count;
    (void)i;
    double t = now_us();
    must(sessile_messages(p->far, NULL, &list, &count, &err), &err);
    t = now_us() - t;
    sessile_free(list);
    return t;
}

/* All messages of a session that this node has open. */
static void bench_fetch(pair *p, size_t n)
{
    static const double targets[BACKENDS] = {2.0, 0, 1.3};
    char label[64], bare_is[128];
    p->far = open_session(p->there, p->id);
    p->opened = p->of == &backends[FILES_BACKEND];
    alternate(p, rounds(200), 2, our_fetch, bare_read);
    snprintf(label, sizeof label, "fetch of %zu, open session", n);
    snprintf(bare_is, sizeof bare_is, "%s%s", p->of->bare->read_is,
             p->opened ? ", base64, AEAD" : "");
    print(p, label, bare_is, targets[p->of - backends], 100);
    close_session(p->far);
}

/* ---------------------------------------------------------------------- two nodes */

/* Node A keeps a checkpoint; node B, which has the session open, goes back to it. */
static double our_handover(pair *p, int i)
{
    sessile_checkpoint_options o;
    sessile_restored *r;
    sessile_error err;
    sessile_id id;
    (void)i;
    memset(&o, 0, sizeof o);
    o.state = sessile_text("{\"step\":17,\"plan\":[\"read\",\"write\",\"test\"]}");
    double t = now_us();
    must(sessile_checkpoint(p->s, &o, &id, &err), &err);
    must(sessile_restore(p->far, id, 0, &r, &err), &err);
    t = now_us() - t;
    sessile_free(r);
    return t;
}

static double bare_handover(pair *p, int i)
{
    double t = now_us();
    p->of->bare->append(p->plain, p->number,
                        lines + line_size * (size_t)((i + WARM) % LINES), line_size, 1);
    p->of->bare->read(p->plain_far, p->number, p->from++, 0);
    return now_us() - t;
}

static void bench_handover(const backend *b)
{
    pair p = {.of = b, .number = 1, .adds = 1, .id = "handover"};
    char bare_is[128];
    p.here = backend_store(b, "handover", SESSILE_KEY_SECRET, SESSILE_SYNC);
    p.s = open_session(p.here, p.id);
    fill_session(p.s, 20);
    p.there = backend_store(b, "handover", SESSILE_KEY_SECRET, SESSILE_SYNC);
    p.far = open_session(p.there, p.id);
    p.plain = backend_bare(b, "handover", 1, 1);
    b->bare->make(p.plain, 1, lines, line_size, 0);
    p.plain_far = backend_bare(b, "handover", 0, 1);
    alternate(&p, rounds(300), WARM, our_handover, bare_handover);
    snprintf(bare_is, sizeof bare_is, "%s; %s of it", b->bare->append_is,
             b->bare->read_is);
    print(&p, "checkpoint on A, restored on B", bare_is, 0, 200);
    b->bare->close(p.plain_far, 0);
    b->bare->close(p.plain, 1);
    close_session(p.far);
    close_session(p.s);
    sessile_store_close(p.there);
    sessile_store_close(p.here);
    free_samples(&p);
}

/* ---------------------------------------------------------------------- all */

static void bench_sizes(const backend *b)
{
    static const size_t sizes[] = {1000, LINES};
    static const size_t few[] = {200};
    peer *l = b == &backends[FILES_BACKEND]
                  ? NULL
                  : peer_start(b, "LangGraph", "tests/bench/langgraph.mjs");
    for (size_t i = 0; i < (bench_short() ? 1 : 2); i++) {
        char name[32];
        size_t n = bench_short() ? few[i] : sizes[i];
        pair p = {.of = b, .number = (int)i + 1, .id = "long"};
        snprintf(name, sizeof name, "of-%zu", n);
        p.here = backend_store(b, name, SESSILE_KEY_SECRET, SESSILE_NONE);
        p.s = open_session(p.here, p.id);
        fill_session(p.s, n);
        close_session(p.s);
        sessile_store_close(p.here);
        p.plain = backend_bare(b, name, 1, 1);
        b->bare->make(p.plain, p.number, lines, line_size, n);
        if (l)
            peer_do(l, "make", n);
        p.here = backend_store(b, name, SESSILE_KEY_SECRET, SESSILE_SYNC);
        p.there = backend_store(b, name, SESSILE_KEY_SECRET, SESSILE_SYNC);
        bench_open(&p, l, n);
        if (n <= 1000)
            bench_fetch(&p, n);
        bench_turn(&p, l, n);
        b->bare->close(p.plain, 1);
        sessile_store_close(p.there);
        sessile_store_close(p.here);
        free_samples(&p);
    }
    peer_stop(l);
}

int main(int argc, char **argv)
{
    backends_begin(argc, argv);
    lines = floor_lines(LINES, &line_size);
    for (int i = 0; i < BACKENDS; i++) {
        const backend *b = &backends[i];
        if (b->missing[0])
            continue;
        bench_append(b, "append 600 bytes, durable", SESSILE_KEY_SECRET, SESSILE_SYNC,
                     i == FILES_BACKEND ? 1.05 : 1.1);
        bench_append(b, "append, durable, plain", SESSILE_KEY_PLAIN, SESSILE_SYNC, 0);
        bench_append(b, "append, not waited for", SESSILE_KEY_SECRET, SESSILE_NONE,
                     i == FILES_BACKEND ? 2.5 : 0);
        bench_sizes(b);
        bench_handover(b);
    }
    free(lines);
    return backends_end();
}
