/*
 * service.c: three servers over one PostgreSQL database with a synchronous standby, asked
 * through any of them, beside the bare library doing the same work on that database; over
 * plain text and over TLS.
 *
 * Servers, database, standby and client share this machine and its loopback interface, so
 * a row says what the service adds, not what a network takes. The bare side is in this
 * process and has one connection.
 */
#include "bench/service_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 30, SESSIONS = 12, LINES = 1000 };

const backend over_plain = {.name = "plain"}, over_tls = {.name = "TLS"};

static char *lines; /* sealed ones, for every bare write */
static size_t line_size, context_size;

typedef double work(pair *p, int i);

static void alternate(pair *p, size_t n, int warm, work *ours, work *bare)
{
    for (int i = -warm; i < (int)n; i++) {
        double o, f = 0;
        if (i & 1)
            f = bare(p, i + warm);
        o = ours(p, i + warm);
        if (!(i & 1))
            f = bare(p, i + warm);
        if (i >= 0) {
            sample(&p->ours, o);
            sample(&p->bare, f);
        }
    }
}

void print_pair(pair *p, const char *operation, const char *bare_is, double target,
                double asked_ms)
{
    result_print(&(result){operation, p->over, &p->ours, &p->bare, &p->peer, bare_is,
                           target, asked_ms});
}

static void free_pair(pair *p)
{
    free(p->ours.at);
    free(p->bare.at);
    free(p->peer.at);
}

/* The node that is asked next. */
static int any(const nodes *n, int i)
{
    return i % n->count;
}

/* ---------------------------------------------------------------------- appends */

static double our_append(pair *p, int i)
{
    char id[32];
    answer a = {0};
    snprintf(id, sizeof id, "append-%d", i / NODES % SESSIONS);
    return client_append(p->n, any(p->n, i), id, i, &a);
}

static double bare_append(pair *p, int i)
{
    double t = now_us();
    bare_postgres.append(p->plain, 1, lines + line_size * (size_t)(i % LINES), line_size,
                         1);
    return now_us() - t;
}

static void bench_append(pair *p)
{
    char id[32];
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "append-%d", i);
        client_session(p->n, 0, id);
    }
    alternate(p, rounds(600), WARM, our_append, bare_append);
    print_pair(p, "append 600 bytes, any node", bare_postgres.append_is, 1.5, 0);
}

/* ---------------------------------------------------------------------- contexts */

/* Counts field 1 of a Messages: each is one message. */
static void count_messages(answer *a, const void *data, size_t size)
{
    const unsigned char *at = data, *end = at + size;
    size_t *count = a->arg;
    while (at < end) {
        size_t n = 0, shift = 0;
        unsigned char tag = *at++;
        do
            n |= (size_t)(*at & 0x7f) << shift;
        while (shift += 7, *at++ & 0x80);
        *count += tag == (1 << 3 | 2);
        at += n;
    }
}

static double our_context(pair *p, int i)
{
    SESSION_NAMES(names, "long");
    Sessile__V1__ContextRequest request = SESSILE__V1__CONTEXT_REQUEST__INIT;
    size_t count = 0;
    answer a = {.message = count_messages, .arg = &count};
    request.session = &names;
    double t = client_call(p->n, any(p->n, i), "GetContext", &request.base, &a);
    if (count != context_size)
        broken("a context is not whole");
    return t;
}

static double bare_select(pair *p, int i)
{
    (void)i;
    double t = now_us();
    if (!bare_postgres.read(p->plain, 2, 0, 0))
        broken("nothing was read");
    return now_us() - t;
}

static double bare_select_opened(pair *p, int i)
{
    (void)i;
    double t = now_us();
    if (!bare_postgres.read(p->plain, 2, 0, 1))
        broken("nothing was read");
    return now_us() - t;
}

static void ask_peer(pair *p, peer *other, const char *verb)
{
    for (int i = 0; other && i < (bench_short() ? 2 : 30); i++)
        sample(&p->peer, peer_do(other, verb, context_size));
}

/* ADK has no column: its service is measured as LangGraph's saver is, before the rows. */
static void bench_adk(void)
{
    static const char *const verbs[][2] = {{"put", "an event"}, {"load", "the session"}};
    peer *adk = peer_start(&backends[POSTGRES_BACKEND], "ADK", "tests/bench/adk.mjs");
    pair p = {0};
    if (!adk)
        return;
    peer_do(adk, "make", context_size);
    for (int i = 0; i < 2; i++) {
        ask_peer(&p, adk, verbs[i][0]);
        note("ADK, %zu events: %s takes %.1f ms, p95 %.1f", context_size, verbs[i][1],
             median(&p.peer) / 1000, p95(&p.peer) / 1000);
        p.peer.count = 0;
    }
    peer_stop(adk);
    free_pair(&p);
}

static void bench_context(pair *p, peer *langgraph)
{
    char label[64];
    ask_peer(p, langgraph, "load");
    snprintf(label, sizeof label, "context of %zu, any node", context_size);
    alternate(p, rounds(200), WARM, our_context, bare_select);
    print_pair(p, label, bare_postgres.read_is, 1.3, 100);
    alternate(p, rounds(200), WARM, our_context, bare_select_opened);
    print_pair(p, "  beside opened lines too", "SELECT, base64, AEAD", 0, 100);
}

/* ---------------------------------------------------------------------- checkpoints */

/* A checkpoint at one node, and another one goes back to it. */
static double our_handover(pair *p, int i)
{
    SESSION_NAMES(names, "handover");
    Sessile__V1__Json state = SESSILE__V1__JSON__INIT;
    Sessile__V1__CheckpointRequest make = SESSILE__V1__CHECKPOINT_REQUEST__INIT;
    Sessile__V1__RestoreRequest restore = SESSILE__V1__RESTORE_REQUEST__INIT;
    answer a = {0};
    state.text = "{\"step\":17,\"plan\":[\"read\",\"write\",\"test\"]}";
    make.session = restore.session = &names;
    make.state = &state;
    double t = client_call(p->n, any(p->n, i), "CreateCheckpoint", &make.base, &a);
    restore.checkpoint = written_entry(&a);
    return t +
           client_call(p->n, any(p->n, i + 1), "RestoreCheckpoint", &restore.base, &a);
}

static double bare_appends(pair *p, int i)
{
    return bare_append(p, i) + bare_append(p, i + 1);
}

static void bench_handover(pair *p)
{
    answer a = {0};
    client_session(p->n, 0, "handover");
    for (int i = 0; i < 20; i++)
        client_append(p->n, 0, "handover", i, &a);
    alternate(p, rounds(300), WARM, our_handover, bare_appends);
    print_pair(p, "checkpoint here, restored there", "two appends", 0, 200);
}

/* ---------------------------------------------------------------------- affinity */

static void bench_affinity(const nodes *n, const char *how)
{
    enum { MANY = 30, EACH = 20 };
    size_t at_owner = 0, calls = 0, each = bench_short() ? 3 : EACH;
    char id[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "shared-%d", i);
        client_session(n, 0, id);
        int owner = client_owner(n, 0, id);
        for (size_t k = 0; k < each; k++, calls++) {
            answer a = {0};
            int asked = any(n, i + (int)k);
            client_append(n, asked, id, (int)k, &a);
            at_owner +=
                *a.owner ? !strcmp(a.owner, n->node[owner].address) : asked == owner;
        }
    }
    note("%s: of %zu calls at any node, %.1f %% were served by the owner (asked: 95)",
         how, calls, 100.0 * (double)at_owner / (double)calls);
}

/* ---------------------------------------------------------------------- cold opens */

enum { COLD = 1400, COLD_SESSIONS = 20 };

/* A call that reads something of session number i, which no server has opened. */
static double read_cold(pair *p, const char *method, int i)
{
    char id[32];
    SESSION_NAMES(names, id);
    Sessile__V1__SessionRequest request = SESSILE__V1__SESSION_REQUEST__INIT;
    answer a = {0};
    snprintf(id, sizeof id, "cold-%d", i);
    request.session = &names;
    return client_call(p->n, 0, method, &request.base, &a);
}

static double our_open(pair *p, int i)
{
    return read_cold(p, "GetSuspension", i);
}

/* Another half of the sessions. Its request has the session alone, too. */
static double our_open_all(pair *p, int i)
{
    return read_cold(p, "GetContext", i + COLD_SESSIONS);
}

/* Asks for lines that are not there. */
static double bare_round_trip(pair *p, int i)
{
    (void)i;
    double t = now_us();
    bare_postgres.read(p->plain, 2, 1u << 30, 0);
    return now_us() - t;
}

/* Sessions that no server has opened; of turns, since these are written sooner. */
static void make_cold(sessile_store *store)
{
    enum { TURN = 100 };
    static char texts[TURN][2 * MESSAGE];
    sessile_slice messages[TURN];
    for (int i = 0; i < TURN; i++)
        messages[i] = message_text(texts[i], i);
    for (size_t i = 0; i < 2 * COLD_SESSIONS; i++) {
        char id[32];
        sessile_error err;
        snprintf(id, sizeof id, "cold-%zu", i);
        sessile_session *s = open_session(store, id);
        for (int k = 0; k < (bench_short() ? 2 : COLD / TURN); k++) {
            sessile_run *run;
            sessile_need need;
            must(sessile_turn_begin(&run, s, messages, TURN, NULL, &err), &err);
            must(sessile_run_step(run, &need, &err), &err);
            sessile_run_free(run);
        }
        close_session(s);
    }
}

static void schema_url(char out[4200], const char *server, const char *name)
{
    char schema[128], with[4200];
    backend_schema(schema, name);
    url_add(with, sizeof with, server, "schema", schema);
    url_add(out, 4200, with, "keep", "256MiB");
}

/* One server whose database is 20 ms away, and a bare connection over the same wire. */
static void bench_cold(void)
{
    enum { DELAY_US = 20000 }; /* so that the rest matters little */
    const char *server = getenv("SESSILE_TEST_POSTGRES_TCP");
    char url[4200], there[4200], far[4200];
    nodes n;
    pair p = {.n = &n, .over = &over_plain};
    if (!server || !strstr(server, "127.0.0.1:")) {
        note("no row for a cold open: SESSILE_TEST_POSTGRES_TCP is not set");
        return;
    }
    sessile_store *store = backend_store(&backends[POSTGRES_BACKEND], "cold",
                                         SESSILE_KEY_SECRET, SESSILE_NONE);
    make_cold(store);
    sessile_store_close(store);
    wire *w = wire_open(server, DELAY_US);
    wire_url(w, there);
    url_add(far, sizeof far, there, "sslmode", "disable");
    schema_url(url, far, "cold");
    nodes_start(&n, 1, url, NULL, NULL);
    p.plain = bare_postgres.open(far, 0, 1);
    alternate(&p, rounds(COLD_SESSIONS), 0, our_open, bare_round_trip);
    print_pair(&p, "cold open of 1,400, far database", "one round trip", 3, 0);
    alternate(&p, rounds(COLD_SESSIONS), 0, our_open_all, bare_round_trip);
    print_pair(&p, "  and its context", "one round trip", 0, 0);
    bare_postgres.close(p.plain, 0);
    nodes_stop(&n);
    wire_close(w);
    free_pair(&p);
}

/* ---------------------------------------------------------------------- all */

static void make_long(const char *name)
{
    sessile_store *store = backend_store(&backends[POSTGRES_BACKEND], name,
                                         SESSILE_KEY_SECRET, SESSILE_NONE);
    sessile_session *s = open_session(store, "long");
    fill_session(s, context_size);
    close_session(s);
    sessile_store_close(store);
}

/* Three servers over a store of that name, and all rows of them. */
static void bench_nodes(nodes *n, const backend *how, const char *name, const char *cert,
                        const char *key, peer *langgraph)
{
    char url[4200];
    pair p = {.n = n, .over = how};
    schema_url(url, getenv("SESSILE_TEST_POSTGRES"), name);
    make_long(name);
    nodes_start(n, NODES, url, cert, key);
    p.plain = backend_bare(&backends[POSTGRES_BACKEND], name, 0, 1);
    bench_append(&p);
    bench_context(&p, langgraph);
    bench_handover(&p);
    bench_affinity(n, how->name);
    bench_events(&p);
    bare_postgres.close(p.plain, 0);
    free_pair(&p);
}

int main(int argc, char **argv)
{
    const backend *b = &backends[POSTGRES_BACKEND];
    char cert[4400], key[4400];
    const char *missing = nodes_missing();
    nodes plain, tls;
    bare *first;

    backends_begin(argc, argv);
    if (b->missing[0] || missing) {
        if (missing)
            note("no rows: %s", missing);
        return backends_end();
    }
    note("commits %s", bare_postgres_waits(getenv("SESSILE_TEST_POSTGRES"))
                           ? "wait for a standby"
                           : "wait for no standby: synchronous_standby_names is empty");
    context_size = bench_short() ? 200 : LINES;
    lines = floor_lines(LINES, &line_size);
    first = backend_bare(b, "service", 1, 1);
    bare_postgres.make(first, 1, lines, line_size, 0);
    bare_postgres.make(first, 2, lines, line_size, context_size);
    bench_adk();
    peer *langgraph = peer_start(b, "LangGraph", "tests/bench/langgraph.mjs");
    if (langgraph)
        peer_do(langgraph, "make", context_size);
    bench_nodes(&plain, &over_plain, "plain", NULL, NULL, langgraph);
    peer_stop(langgraph);
    bench_idle(&plain, "plain");
    if (bench_certificate(cert, key, sizeof cert)) {
        bench_nodes(&tls, &over_tls, "tls", cert, key, NULL);
        bench_idle(&tls, "TLS");
        bench_tls(&tls, &plain);
        nodes_stop(&tls);
    } else
        note("no rows for TLS: there is no openssl command");
    nodes_stop(&plain);
    bench_cold();
    bench_kept(COLD);
    bare_postgres.close(first, 1);
    free(lines);
    return backends_end();
}
