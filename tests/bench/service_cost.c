/*
 * service_cost.c: what TLS costs many streams of one client, and what a connection that
 * does nothing and a session that is kept hold in memory. See service_parts.h.
 */
#include "bench/service_parts.h"

#include <stdlib.h>

enum { STREAMS = 64 };

/* ---------------------------------------------------------------------- TLS */

typedef struct checks {
    const nodes *n;
    size_t left, flying;
    answer at[STREAMS];
} checks;

static void check_begin(answer *a)
{
    checks *c = a->arg;
    static const Sessile__V1__Empty none = SESSILE__V1__EMPTY__INIT;
    c->left--;
    c->flying++;
    client_begin(c->n, 0, "/grpc.health.v1.Health/Check", &none.base, a);
}

static void check_over(answer *a)
{
    checks *c = a->arg;
    c->flying--;
    if (c->left)
        check_begin(a);
}

static double check_many(const nodes *n, size_t count)
{
    static checks c;
    double t = now_us();
    c.n = n;
    c.left = count;
    for (size_t i = 0; i < STREAMS && c.left; i++) {
        c.at[i] = (answer){.over = check_over, .arg = &c};
        check_begin(&c.at[i]);
    }
    while (c.flying)
        rpc_loop_turn(n->loop, 1000);
    return (now_us() - t) / (double)count;
}

void bench_tls(const nodes *with, const nodes *without)
{
    samples ours = {0}, theirs = {0};
    for (size_t i = 0; i < rounds(60); i++) {
        double t = i & 1 ? check_many(without, 2000) : 0;
        sample(&ours, check_many(with, 2000));
        sample(&theirs, i & 1 ? t : check_many(without, 2000));
    }
    result_print(&(result){"health, 64 streams of one client", &over_tls, &ours, &theirs,
                           NULL, "plain text", 1.25, 0});
    free(ours.at);
    free(theirs.at);
}

/* ---------------------------------------------------------------------- memory */

void bench_idle(const nodes *n, const char *how)
{
    enum { MANY = 500 };
    static nodes more[MANY];
    static const Sessile__V1__Empty none = SESSILE__V1__EMPTY__INIT;
    size_t many = bench_short() ? 20 : MANY;
    double before = nodes_resident(n, 0);
    sessile_error err;
    for (size_t i = 0; i < many; i++) {
        answer a = {0};
        more[i] = *n;
        must(rpc_channel_open(&more[i].node[0].channel, n->loop, n->node[0].address,
                              n->tls, NULL, &err),
             &err);
        client_call(&more[i], 0, "/grpc.health.v1.Health/Check", &none.base, &a);
    }
    note("%s: an idle connection takes %.1f KiB of the server's memory (asked: 16)", how,
         (nodes_resident(n, 0) - before) / (double)many / 1024);
    for (size_t i = 0; i < many; i++)
        rpc_channel_close(more[i].node[0].channel);
}

void bench_kept(size_t entries)
{
    const backend *b = &backends[POSTGRES_BACKEND];
    sessile_store *store = backend_store(b, "kept", SESSILE_KEY_SECRET, SESSILE_NONE);
    sessile_session *s = open_session(store, "kept");
    sessile_message *list;
    sessile_error err;
    size_t count, grown, opened, read;
    fill_session(s, entries);
    grown = sessile_session_memory(s);
    close_session(s);
    s = open_session(store, "kept");
    opened = sessile_session_memory(s);
    must(sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, &err), &err);
    sessile_free(list);
    read = sessile_session_memory(s);
    note("a kept session of %zu entries: %.0f kB opened, %.0f once its context was read "
         "(asked: 160); %.0f when it was made here",
         entries, (double)opened / 1000, (double)read / 1000, (double)grown / 1000);
    close_session(s);
    sessile_store_close(store);
}
