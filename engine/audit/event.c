/*
 * audit_event.c: the JSON of an event.
 *
 * Every text is written as a JSON string by the engine, so that no name, id or word of a
 * host begins another member or another line. `n` is random: the hash of an event, which
 * a proof shows, tells nothing of what is in it.
 */
#include "audit/audit.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/json.h"

enum { TEXT_MOST = 256, NONCE = 12 };

static const char *const outcome_names[] = {[AUDIT_SUCCESS] = "success",
                                            [AUDIT_FAILURE] = "failure",
                                            [AUDIT_INTENT] = "intent",
                                            [AUDIT_UNKNOWN] = "unknown"};

void audit_event_init(audit_event *e)
{
    memset(e, 0, sizeof *e);
    e->operation.entry = SESSILE_NO_ID;
}

int audit_outcome_of(sessile_slice name)
{
    for (int i = 0; i <= AUDIT_UNKNOWN; i++)
        if (strlen(outcome_names[i]) == name.size &&
            !memcmp(outcome_names[i], name.data, name.size))
            return i;
    return -1;
}

void audit_put_text(buf *out, sessile_slice text)
{
    buf clean;

    buf_init(&clean, out->alloc);
    utf8_put_lossy(&clean, text.data, text.size < TEXT_MOST ? text.size : TEXT_MOST);
    json_put_string(out, clean.data, clean.size);
    out->failed |= clean.failed;
    buf_deinit(&clean);
}

static void put(buf *out, const char *name, sessile_slice text)
{
    if (!text.size)
        return;
    buf_printf(out, ",\"%s\":", name);
    audit_put_text(out, text);
}

void audit_event_begin(buf *out, const audit_event *e, const char *user,
                       const char *owner)
{
    buf_puts(out, "{\"operation\":");
    audit_put_text(out, e->operation.name);
    if (user[0])
        buf_printf(out, ",\"user\":\"%s\"", user);
    put(out, "actor", e->who.actor);
    put(out, "agent", e->who.agent);
    put(out, "role", e->who.role);
    put(out, "method", e->who.method);
    put(out, "key", e->who.key);
    put(out, "permission", e->operation.permission);
    put(out, "session", e->operation.session);
    if (owner[0])
        buf_printf(out, ",\"owner\":\"%s\"", owner);
    if (e->operation.entry != SESSILE_NO_ID)
        buf_printf(out, ",\"entry\":\"%08" PRIx32 "\"", e->operation.entry);
    buf_printf(out, ",\"outcome\":\"%s\"", outcome_names[e->outcome.is]);
    if (e->outcome.status)
        buf_printf(out, ",\"code\":\"%s\"", status_name(e->outcome.status));
    put(out, "rule", e->outcome.rule);
    put(out, "request", e->from.request);
    put(out, "source", e->from.source);
    if (e->details.size) {
        buf_puts(out, ",\"details\":");
        buf_put(out, e->details.data, e->details.size);
    }
}

void audit_event_end(buf *out, uint64_t count)
{
    unsigned char n[NONCE];
    char hex[2 * NONCE + 1];

    random_bytes(n, sizeof n);
    hex_encode(hex, n, sizeof n);
    if (count > 1)
        buf_printf(out, ",\"count\":%" PRIu64, count);
    buf_printf(out, ",\"n\":\"%s\"}", hex);
}
