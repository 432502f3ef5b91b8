/*
 * nodes_told.c: what the operator is told of the database and of the other nodes.
 *
 * Only changes are told: the lease was lost and is back, a node is there or gone, fewer
 * standbys than are wanted wait for commits. The thread of the beats calls all of it,
 * except nodes_tell_heard(), which one loop calls.
 */
#include "service/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "service/observe.h"

enum { APART_MS = 60000 };

static void say(nodes *n, log_level level, const char *message, const attribute *fields,
                size_t count)
{
    observe_report(n->server->observe, REPORT_NODES, level, message, fields, count);
}

/* ---------------------------------------------------------------------- the others */

static int is_among(const store_node *one, const store_node *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].incarnation == one->incarnation && !strcmp(rows[i].name, one->name))
            return 1;
    return 0;
}

static void say_node(nodes *n, const store_node *one, log_level level,
                     const char *message)
{
    say(n, level, message,
        (attribute[]){attribute_text("node", one->name),
                      attribute_text("address", one->address),
                      attribute_text("version", one->version)},
        3);
}

void nodes_tell_living(nodes *n, const store_beat *beat)
{
    if (!n->told.began) /* the first line says how many are there already */
        return;
    for (size_t i = 0; i < beat->count; i++)
        if (!is_among(&beat->others[i], n->living, n->living_count))
            say_node(n, &beat->others[i], LEVEL_INFO, "A node joined.");
    for (size_t i = 0; i < n->living_count; i++)
        if (!is_among(&n->living[i], beat->others, beat->count))
            say_node(n, &n->living[i], LEVEL_WARN, "A node left, or its lease ran out.");
}

void nodes_tell_heard(const peer *one)
{
    if (atomic_load(&one->peers->nodes->leaving))
        return;
    say(one->peers->nodes, one->heard ? LEVEL_INFO : LEVEL_WARN,
        one->heard ? "A node is heard again."
                   : "A node is not heard: it owns nothing for this one.",
        (attribute[]){attribute_text("node", one->name),
                      attribute_text("address", one->address)},
        2);
}

/* ---------------------------------------------------------------------- the lease */

static void tell_lease(nodes *n, const sessile_error *err)
{
    int lost = nodes_lost(n);
    uint64_t now = os_now_us();
    if (lost == n->told.lost)
        return;
    n->told.lost = lost;
    if (lost) {
        n->told.lost_us = now;
        say(n, LEVEL_ERROR, "The lease of this node was lost: it owns no sessions now.",
            (attribute[]){attribute_text("why", err->message)}, 1);
    } else {
        say(n, LEVEL_INFO, "This node has its lease again.",
            (attribute[]){attribute_number("seconds",
                                           (int64_t)((now - n->told.lost_us) / 1000000))},
            1);
    }
}

static void tell_standbys(nodes *n)
{
    int few = !nodes_replicated(n);
    if (few == n->told.few)
        return;
    n->told.few = few;
    say(n, few ? LEVEL_WARN : LEVEL_INFO,
        few ? "Fewer standbys than serve.replicas wait for commits."
            : "As many standbys as serve.replicas wait for commits again.",
        (attribute[]){attribute_number("standbys", atomic_load(&n->standbys)),
                      attribute_number("wanted", n->settings.replicas)},
        2);
}

static void tell_clock(nodes *n)
{
    int apart = llabs((long long)n->told.ahead_ms) > APART_MS;
    if (apart == n->told.apart)
        return;
    n->told.apart = apart;
    say(n, apart ? LEVEL_WARN : LEVEL_INFO,
        apart ? "The clocks of this machine and of the database are more than a minute "
                "apart: sessions expire too late or too early."
              : "The clocks of this machine and of the database agree again.",
        (attribute[]){attribute_number("ahead_ms", n->told.ahead_ms)}, 1);
}

void nodes_tell_beat(nodes *n, sessile_status status, const sessile_error *err)
{
    if (atomic_load(&n->leaving))
        return;
    tell_lease(n, err);
    if (!status) {
        tell_standbys(n);
        tell_clock(n);
    }
}

/* ---------------------------------------------------------------------- other stores */

void nodes_tell_answer(nodes *n, sessile_status status, const sessile_error *err)
{
    int silent = status != SESSILE_OK;
    if (silent == n->told.lost)
        return;
    n->told.lost = silent;
    if (silent)
        say(n, LEVEL_ERROR, "The store does not answer.",
            (attribute[]){attribute_text("why", err->message)}, 1);
    else
        say(n, LEVEL_INFO, "The store answers again.", NULL, 0);
}
