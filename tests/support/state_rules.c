/* state_rules.c: the definition of a memory's states, slow and simple. */
#include "support/state_rules.h"

#include <stddef.h>

static int in_force(const rule_entry *e)
{
    return !e->pending && !e->rejected;
}

static int names(const rule_entry *e, sessile_id id)
{
    for (size_t i = 0; i < e->replace_count; i++)
        if (e->replaces[i] == id)
            return 1;
    return 0;
}

const rule_entry *rule_replacer(const rule_memory *m, const rule_entry *old)
{
    const rule_entry *latest = NULL;
    for (size_t i = 0; i < m->count; i++) {
        const rule_entry *e = &m->entries[i];
        if (e == old || !in_force(e) || e->stamp <= old->stamp)
            continue;
        if (!names(e, old->id) && (e->key < 0 || e->key != old->key))
            continue;
        /* an id can be named only by what was written later */
        if (names(e, old->id) && e->id < old->id && e->key != old->key)
            continue;
        if (!latest || e->stamp > latest->stamp)
            latest = e;
    }
    return latest;
}

sessile_memory_state rule_state(const rule_memory *m, const rule_entry *e, int64_t now)
{
    if (e->rejected)
        return SESSILE_MEMORY_REJECTED;
    if (e->deleted)
        return SESSILE_MEMORY_DELETED;
    if (e->pending)
        return SESSILE_MEMORY_PENDING;
    if (rule_replacer(m, e))
        return SESSILE_MEMORY_REPLACED;
    return e->expires_ms && e->expires_ms <= now ? SESSILE_MEMORY_EXPIRED
                                                 : SESSILE_MEMORY_LIVE;
}

size_t rule_stamp(rule_memory *m)
{
    return ++m->stamped;
}

void rule_judge(rule_memory *m, rule_entry *e, int64_t now,
                sessile_memory_verdict_kind to)
{
    int ended = e->deleted || e->rejected;
    sessile_memory_state was = rule_state(m, e, 0);
    switch (to) {
    case SESSILE_MEMORY_DELETE:
        e->deleted |= !ended;
        break;
    case SESSILE_MEMORY_REJECT:
        e->rejected |= !ended;
        break;
    case SESSILE_MEMORY_APPROVE:
        if (ended)
            break;
        e->approved = 1;
        if (e->pending)
            e->stamp = rule_stamp(m);
        e->pending = 0;
        break;
    case SESSILE_MEMORY_RESTORE:
        if (e->expires_ms <= now)
            e->expires_ms = 0;
        e->deleted = e->rejected = 0;
        if (!e->pending && was != SESSILE_MEMORY_LIVE)
            e->stamp = rule_stamp(m);
        break;
    case SESSILE_MEMORY_PIN:
    case SESSILE_MEMORY_UNPIN:
        e->pinned = to == SESSILE_MEMORY_PIN;
        break;
    case SESSILE_MEMORY_CONFIRM:
        break;
    }
}

int rule_would_change(const rule_memory *m, const rule_entry *e, int64_t now,
                      sessile_memory_verdict_kind to)
{
    int ended = e->deleted || e->rejected;
    switch (to) {
    case SESSILE_MEMORY_DELETE:
    case SESSILE_MEMORY_REJECT:
        return !ended;
    case SESSILE_MEMORY_APPROVE:
        return !ended && !e->approved;
    case SESSILE_MEMORY_RESTORE:
        return ended || (!e->pending && rule_state(m, e, 0) != SESSILE_MEMORY_LIVE) ||
               (e->expires_ms && e->expires_ms <= now);
    case SESSILE_MEMORY_PIN:
    case SESSILE_MEMORY_UNPIN:
        return e->pinned != (to == SESSILE_MEMORY_PIN);
    case SESSILE_MEMORY_CONFIRM:
        return 1;
    }
    return 0;
}
