/*
 * service_told.c: what the operator is told of the server as a whole: it began, its
 * certificates were read again, it ends.
 *
 * A store is named by its kind: its URL may have a password.
 */
#include "service/nodes.h"
#include "service/observe.h"
#include "service/records.h"

#include <string.h>

#include "base/os.h"

enum { DAY_S = 86400, SOON_DAYS = 14 };

static void say(service *s, log_level level, const char *message, const attribute *fields,
                size_t count)
{
    observe_report(s->observe, REPORT_SERVER, level, message, fields, count);
}

/* ---------------------------------------------------------------------- certificates */

static int64_t days_left(const service *s)
{
    int64_t now = os_current->now_ms(os_current->ud) / 1000;
    return (rpc_tls_expires(s->tls) - now) / DAY_S;
}

static void tell_expiry(service *s)
{
    int64_t days = days_left(s);
    if (days < SOON_DAYS)
        say(s, LEVEL_WARN, "The certificate expires soon, or has expired.",
            (attribute[]){attribute_number("days", days)}, 1);
}

void service_tell_reload(service *s, sessile_status status, const sessile_error *err)
{
    if (status) {
        say(s, LEVEL_ERROR,
            "The certificates cannot be read again: those that were read before stay in "
            "use.",
            (attribute[]){attribute_text("why", err->message)}, 1);
        return;
    }
    say(s, LEVEL_INFO, "The certificates were read again.",
        (attribute[]){attribute_number("days", days_left(s))}, 1);
    tell_expiry(s);
}

/* ---------------------------------------------------------------------- life */

void service_tell_start(service *s)
{
    nodes *n = s->nodes;
    const char *metrics = service_metrics_address(s);
    attribute fields[12] = {
        attribute_text("address", service_address(s)),
        attribute_text("store", service_backend(s)->table->name),
        attribute_truth("tls", s->tls != NULL),
        attribute_truth("guard", s->settings.guarded),
        attribute_truth("records", s->records != NULL),
        attribute_text("node", n->own.name),
        attribute_text("version", n->own.version),
        attribute_number("workers", s->settings.workers),
    };
    size_t count = 8;
    if (n->link) {
        pthread_mutex_lock(&n->mutex);
        fields[count++] = attribute_number("others", (int64_t)n->living_count);
        pthread_mutex_unlock(&n->mutex);
        fields[count++] = attribute_text("advertise", n->own.address);
    }
    if (metrics)
        fields[count++] = attribute_text("metrics", metrics);
    say(s, LEVEL_INFO, "The server began to serve.", fields, count);
    if (!s->settings.guarded)
        say(s, LEVEL_WARN,
            "The store has no guard: whoever can connect may do everything.", NULL, 0);
    if (s->tls)
        tell_expiry(s);
}

void service_tell_drain(service *s, size_t connections, size_t calls)
{
    say(s, LEVEL_INFO, "The server was told to end: calls may finish.",
        (attribute[]){attribute_number("connections", (int64_t)connections),
                      attribute_number("calls", (int64_t)calls),
                      attribute_number("at_most_ms", s->settings.drain_ms)},
        3);
}

void service_tell_drained(service *s, size_t connections, size_t calls, uint64_t took_us)
{
    int all = connections == 0 && calls == 0;
    say(s, all ? LEVEL_INFO : LEVEL_WARN,
        all ? "The server ended: every call was finished."
            : "The server ended, and what was not finished was cut off.",
        (attribute[]){attribute_number("connections", (int64_t)connections),
                      attribute_number("calls", (int64_t)calls),
                      attribute_number("ms", (int64_t)(took_us / 1000))},
        3);
}
