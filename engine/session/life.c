/*
 * life.c: reads whether a session is deleted, archived, suspended or expired, and whether
 * it may be written to.
 *
 * A soft deletion, an archived session and a time to live are metadata facts; a
 * suspension is a fact of its own. This file only reads them: operations/life.c and
 * operations/suspend.c write them.
 */
#include "session/life.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "session/fold.h"

#define FIND(s, name) \
    facts_find(&(s)->fold.facts, FACT_METADATA, 0, name, sizeof(name) - 1)

sessile_status session_life_facts_locked(session_core *s, life_facts *out,
                                         sessile_error *err)
{
    const fact *deleted = FIND(s, LIFE_DELETED), *ttl = NULL;
    sessile_status status = SESSILE_OK;

    memset(out, 0, sizeof *out);
    out->ttl_ms = s->header.ttl_ms;
    out->written_ms = s->fold.written_ms;
    out->archived = FIND(s, LIFE_ARCHIVED) != NULL;
    out->suspended = facts_find(&s->fold.facts, FACT_SUSPEND, 0, "", 0) != NULL;
    if (deleted) {
        status = session_load_locked(s, deleted->entry, err);
        if (!status)
            out->deleted_ms = s->tree.nodes[deleted->entry].time_ms;
    }
    for (size_t i = s->fold.facts.count; !status && !ttl && i-- > 0;) {
        const fact *one = &s->fold.facts.at[i];
        if (one->kind == FACT_METADATA &&
            fact_is_named(&s->fold.facts, one, LIFE_TTL, sizeof LIFE_TTL - 1))
            ttl = one;
    }
    if (!status && ttl) {
        uint64_t ms = 0;
        buf text;
        entry e;
        buf_init(&text, &s->store->alloc);
        if (!ttl->off) {
            status = session_read_entry(s, ttl->entry, &text, &e, err);
            if (!status && json_uint(json_get(e.data, LIFE_TTL), &ms))
                ms = 0;
        }
        out->ttl_ms = ms > LIFE_TTL_MOST ? LIFE_TTL_MOST : (int64_t)ms;
        buf_deinit(&text);
    }
    return status;
}

int64_t life_expires(const life_facts *f)
{
    return f->ttl_ms <= 0 || f->written_ms > INT64_MAX - LIFE_TTL_MOST
               ? 0
               : f->written_ms + f->ttl_ms;
}

sessile_life life_state(const life_facts *f, int64_t now_ms)
{
    int64_t expires = life_expires(f);

    return f->deleted_ms                  ? SESSILE_LIFE_DELETED
           : expires && expires <= now_ms ? SESSILE_LIFE_EXPIRED
           : f->archived                  ? SESSILE_LIFE_ARCHIVED
           : f->suspended                 ? SESSILE_LIFE_SUSPENDED
                                          : SESSILE_LIFE_ACTIVE;
}

sessile_status session_check_exists_locked(session_core *s, sessile_error *err)
{
    if (!FIND(s, LIFE_DELETED))
        return SESSILE_OK;
    return session_fail(s, err, SESSILE_NOTFOUND,
                        "it was deleted by entry %08" PRIx32
                        " and not purged yet: undelete it to have it back",
                        FIND(s, LIFE_DELETED)->entry);
}

/* Bytes of a reason that an error repeats. */
enum { REASON_SHOWN = 160 };

sessile_status session_check_running_locked(session_core *s, sessile_error *err)
{
    const fact *suspension = facts_find(&s->fold.facts, FACT_SUSPEND, 0, "", 0);
    buf text, reason;
    entry e;

    sessile_status there = session_check_exists_locked(s, err);
    if (there || !suspension)
        return there;
    sessile_id id = suspension->entry;
    buf_init(&text, &s->store->alloc);
    buf_init(&reason, &s->store->alloc);
    if (!session_read_entry(s, id, &text, &e, NULL))
        (void)json_string(&reason, json_get(e.data, "reason"));
    size_t shown = reason.size ? utf8_floor(reason.data, reason.size, REASON_SHOWN) : 0;
    sessile_status status =
        fail(err, SESSILE_SUSPENDED,
             "it was suspended by entry %08" PRIx32
             "%s%.*s: resume it with the answer, or cancel",
             id, shown ? " for " : "", (int)shown, shown ? reason.data : "");
    buf_deinit(&text);
    buf_deinit(&reason);
    return session_name_error(s, status, err);
}
