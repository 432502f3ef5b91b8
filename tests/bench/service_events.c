/*
 * service_events.c: how much later than the answer of an append its event is there, at a
 * stream of another node. See service_parts.h.
 */
#include "bench/service_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHED = 16 };

/* A session that is appended to at one node and watched at another. */
typedef struct watched {
    struct events *of;
    char id[32];
    int node; /* of the appends */
    answer stream, append;
    uint32_t seen, written; /* the newest entry of the stream; of the last append */
    double begun_us, seen_us;
    int busy;
} watched;

typedef struct events {
    pair *p;
    size_t left, flying, next;
    int paced; /* else the next append begins when the event of one is there */
    watched at[WATCHED];
} events;

/* One after the other, of those whose last event is there; NULL: none is. */
static watched *idle(events *all)
{
    for (size_t i = 0; i < WATCHED; i++) {
        watched *w = &all->at[(all->next + i) % WATCHED];
        if (!w->busy) {
            all->next = (size_t)(w - all->at) + 1;
            return w;
        }
    }
    return NULL;
}

static void append_begin(watched *w)
{
    w->of->left--;
    w->of->flying++;
    w->busy = 1;
    w->written = 0;
    w->begun_us = now_us();
    client_append_begin(w->of->p->n, w->node, w->id, (int)w->of->left, &w->append);
}

/* The answer, the event, or both are there. */
static void look(watched *w)
{
    events *all = w->of;
    if (!w->busy || !w->written || w->seen < w->written)
        return;
    double later = w->seen_us - w->append.at_us;
    sample(&all->p->ours, later > 0 ? later : 0);
    sample(&all->p->bare, w->append.at_us - w->begun_us);
    w->busy = 0;
    all->flying--;
    if (all->left && !all->paced)
        append_begin(idle(all));
}

static void append_over(answer *a)
{
    watched *w = a->arg;
    w->written = written_entry(a);
    look(w);
}

static void event_came(answer *a, const void *data, size_t size)
{
    watched *w = a->arg;
    Sessile__V1__SessionEvent *e = sessile__v1__session_event__unpack(NULL, size, data);
    if (!e)
        broken("an event");
    if (e->what_case == SESSILE__V1__SESSION_EVENT__WHAT_ENTRY) {
        w->seen = e->entry->entry;
        w->seen_us = now_us();
        look(w);
    }
    sessile__v1__session_event__free_unpacked(e, NULL);
}

static void watch(events *all, int i)
{
    watched *w = &all->at[i];
    const nodes *n = all->p->n;
    Sessile__V1__Entry from = SESSILE__V1__ENTRY__INIT;
    Sessile__V1__EventsRequest request = SESSILE__V1__EVENTS_REQUEST__INIT;
    w->of = all;
    w->node = i % n->count;
    w->append = (answer){.over = append_over, .arg = w};
    w->stream = (answer){.message = event_came, .arg = w};
    snprintf(w->id, sizeof w->id, "watched-%d", i);
    client_session(n, 0, w->id);
    SESSION_NAMES(names, w->id);
    request.session = &names;
    request.from = &from;
    client_begin(n, (i + 1) % n->count, "StreamSessionEvents", &request.base, &w->stream);
}

/* count appends, at_once of the watched sessions at the same time, or (0) one each
 * gap_us. Appends in a second. */
static double append_all(events *all, size_t count, size_t at_once, double gap_us)
{
    double t = now_us(), due = t;
    all->left = count;
    all->paced = !at_once;
    for (size_t i = 0; i < at_once && all->left; i++)
        append_begin(idle(all));
    while (all->left || all->flying) {
        watched *w;
        if (all->paced && all->left && now_us() >= due && (w = idle(all)) != NULL) {
            append_begin(w);
            due += gap_us;
        }
        rpc_loop_turn(all->p->n->loop, all->paced && all->left ? now_us() < due : 100);
    }
    return (double)count / (now_us() - t) * 1e6;
}

void bench_events(pair *p)
{
    static events all;
    char label[64];
    double rate;
    memset(&all, 0, sizeof all);
    all.p = p;
    for (int i = 0; i < WATCHED; i++)
        watch(&all, i);
    append_all(&all, WATCHED, WATCHED, 0); /* each stream has begun */
    p->ours.count = p->bare.count = 0;
    append_all(&all, rounds(300), 1, 0);
    print_pair(p, "event elsewhere, after its answer", "the append's answer", 0, 2);
    rate = append_all(&all, rounds(3000), WATCHED, 0);
    snprintf(label, sizeof label, "  all it can: %.0f a second", rate);
    print_pair(p, label, "the append's answer", 0, 0);
    rate = append_all(&all, rounds(3000), 0, 2e6 / rate);
    snprintf(label, sizeof label, "  half of that: %.0f a second", rate);
    print_pair(p, label, "the append's answer", 0, 2);
    for (int i = 0; i < WATCHED; i++)
        client_leave(&all.at[i].stream);
}
