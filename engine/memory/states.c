/*
 * states.c: which entries of a memory are live.
 *
 * Owns the records. Must never read from a log, nor know how an entry is written there.
 *
 * The definition in states.h asks, for each entry, about all others. Kept up to date are
 * only the two answers that change: how many entries in force name it (takers), and, for
 * each key, the entries in force in the order of their stamps (a list through above and
 * below, whose top replaces all others). Each stamp is a later one than all before, so
 * that what comes into force always goes to the top, and is later than everything it
 * names.
 *
 * That an entry X counts among the takers of V follows from their stamps alone: it does
 * if X is in force and its stamp is later. So when V is restored, with a new stamp, its
 * takers are none, and an X that leaves force afterwards knows that it was not counted.
 */
#include "memory/states.h"

#include <stdlib.h>
#include <string.h>

void states_init(states *s, const allocator *a)
{
    memset(s, 0, sizeof *s);
    s->alloc = a;
    map_init(&s->slot_of, a);
    map_init(&s->session_of, a);
}

void states_deinit(states *s)
{
    const allocator *a = s->alloc;
    for (size_t i = 0; i < s->slot_count; i++) {
        wipe(s->slots[i].key, s->slots[i].size);
        mem_free(a, s->slots[i].key, s->slots[i].size + 1);
    }
    mem_free(a, s->records, s->capacity * sizeof *s->records);
    mem_free(a, s->live, s->live_capacity * sizeof *s->live);
    mem_free(a, s->edges, s->edge_capacity * sizeof *s->edges);
    mem_free(a, s->slots, s->slot_capacity * sizeof *s->slots);
    mem_free(a, s->sessions, s->session_capacity * sizeof *s->sessions);
    mem_free(a, s->flips, s->flip_capacity * sizeof *s->flips);
    map_deinit(&s->slot_of);
    map_deinit(&s->session_of);
    states_init(s, a);
}

int states_reserve(states *s, size_t count)
{
    return mem_grow(s->alloc, (void **)&s->records, &s->capacity, count,
                    sizeof *s->records);
}

size_t states_bytes(const states *s)
{
    size_t sum =
        s->capacity * sizeof *s->records + s->live_capacity * sizeof *s->live +
        s->edge_capacity * sizeof *s->edges + s->slot_capacity * sizeof *s->slots +
        s->session_capacity * sizeof *s->sessions + s->flip_capacity * sizeof *s->flips +
        map_bytes(&s->slot_of) + map_bytes(&s->session_of);
    for (size_t i = 0; i < s->slot_count; i++)
        sum += s->slots[i].size + 1;
    return sum;
}

/* ------------------------------------------------------------------ live or not */

static int should_live(const states *s, uint32_t record)
{
    const memory_record *r = &s->records[record];
    return !(r->flags &
             (RECORD_PENDING | RECORD_DELETED | RECORD_REJECTED | RECORD_ERASED)) &&
           !r->takers && (r->slot == STATE_NONE || s->slots[r->slot].top == record);
}

static void set_live(states *s, uint32_t record, int live)
{
    uint64_t bit = UINT64_C(1) << record % 64;
    s->live[record / 64] =
        live ? s->live[record / 64] | bit : s->live[record / 64] & ~bit;
    s->live_count += live ? 1 : (size_t)-1;
}

/* After something about a record changed. */
static void touch(states *s, uint32_t record)
{
    int live = should_live(s, record);
    if (live == states_is_live(s, record))
        return;
    if (s->records[record].id != s->now) { /* a birth is known from the id */
        if (mem_grow(s->alloc, (void **)&s->flips, &s->flip_capacity, s->flip_count + 1,
                     sizeof *s->flips)) {
            s->failed = 1;
            return;
        }
        s->flips[s->flip_count++] = (memory_flip){s->now, record};
    }
    set_live(s, record, live);
    if (s->changed && s->records[record].id != s->now)
        s->changed(s->arg, record, live);
}

/* ------------------------------------------------------------------ in force or not */

static void leave_force(states *s, uint32_t record)
{
    memory_record *r = &s->records[record];
    if (!(r->flags & RECORD_IN_FORCE))
        return;
    r->flags &= (uint8_t)~RECORD_IN_FORCE;
    for (uint32_t i = r->edges; i < r->edges + r->edge_count; i++) {
        memory_record *old = &s->records[s->edges[i]];
        if (r->stamp > old->stamp) {
            old->takers--;
            touch(s, s->edges[i]);
        }
    }
    if (r->slot == STATE_NONE)
        return;
    if (r->below != STATE_NONE)
        s->records[r->below].above = r->above;
    if (r->above != STATE_NONE) {
        s->records[r->above].below = r->below;
    } else {
        s->slots[r->slot].top = r->below;
        if (r->below != STATE_NONE)
            touch(s, r->below);
    }
    r->above = r->below = STATE_NONE;
}

static void enter_force(states *s, uint32_t record)
{
    memory_record *r = &s->records[record];
    uint32_t top;

    leave_force(s, record);
    r->flags |= RECORD_IN_FORCE;
    r->stamp = ++s->stamped;
    r->takers = 0;
    for (uint32_t i = r->edges; i < r->edges + r->edge_count; i++) {
        s->records[s->edges[i]].takers++;
        touch(s, s->edges[i]);
    }
    if (r->slot == STATE_NONE)
        return;
    top = s->slots[r->slot].top;
    r->below = top;
    s->slots[r->slot].top = record;
    if (top != STATE_NONE) {
        s->records[top].above = record;
        touch(s, top);
    }
}

/* ------------------------------------------------------------------ writing */

/* The slot of a key, made if need be; STATE_NONE: no memory. */
static uint32_t make_slot(states *s, sessile_slice key)
{
    uint64_t hash = hash64_keyed(&s->key, key.data, key.size);
    memory_slot *slot;
    uint32_t index;

    if (map_get(&s->slot_of, hash, &index))
        return index;
    if (mem_grow(s->alloc, (void **)&s->slots, &s->slot_capacity, s->slot_count + 1,
                 sizeof *s->slots))
        return STATE_NONE;
    slot = &s->slots[s->slot_count];
    *slot = (memory_slot){mem_dup(s->alloc, key.data, key.size), key.size, STATE_NONE,
                          STATE_NONE};
    if (!slot->key)
        return STATE_NONE;
    if (map_put(&s->slot_of, hash, (uint32_t)s->slot_count)) {
        mem_free(s->alloc, slot->key, slot->size + 1);
        return STATE_NONE;
    }
    return (uint32_t)s->slot_count++;
}

static uint32_t make_session(states *s, uint64_t hash)
{
    uint32_t index;
    if (map_get(&s->session_of, hash, &index))
        return index;
    if (mem_grow(s->alloc, (void **)&s->sessions, &s->session_capacity,
                 s->session_count + 1, sizeof *s->sessions) ||
        map_put(&s->session_of, hash, (uint32_t)s->session_count))
        return STATE_NONE;
    s->sessions[s->session_count] = hash;
    return (uint32_t)s->session_count++;
}

/* The records that are named, each once. */
static int put_edges(states *s, memory_record *r, const states_entry *e)
{
    r->edges = (uint32_t)s->edge_count;
    if (mem_grow(s->alloc, (void **)&s->edges, &s->edge_capacity,
                 s->edge_count + e->replace_count, sizeof *s->edges))
        return -1;
    for (size_t i = 0; i < e->replace_count; i++) {
        uint32_t old = states_find(s, e->replaces[i]);
        size_t k = r->edges;
        while (k < s->edge_count && s->edges[k] != old)
            k++;
        if (old != STATE_NONE && k == s->edge_count)
            s->edges[s->edge_count++] = old;
    }
    r->edge_count = (uint16_t)(s->edge_count - r->edges);
    return 0;
}

int states_write(states *s, const states_entry *e)
{
    size_t words = s->live_capacity, at = s->count;
    memory_record r = {.time_ms = e->time_ms,
                       .expires_ms = e->expires_ms,
                       .id = e->id,
                       .stamp = ++s->stamped,
                       .above = STATE_NONE,
                       .below = STATE_NONE,
                       .same_key = STATE_NONE,
                       .slot = STATE_NONE,
                       .session = STATE_NONE,
                       .importance = (uint16_t)(e->importance * UINT16_MAX + 0.5),
                       .flags = (uint8_t)((e->pending ? RECORD_PENDING : 0) |
                                          (e->erased ? RECORD_ERASED : 0)),
                       .kind = e->kind,
                       .source = e->source};

    if (s->failed || at >= STATE_NONE)
        return -1;
    s->failed = 1;
    s->now = e->id;
    if (mem_grow(s->alloc, (void **)&s->records, &s->capacity, at + 1,
                 sizeof *s->records) ||
        mem_grow(s->alloc, (void **)&s->live, &s->live_capacity, at / 64 + 1,
                 sizeof *s->live) ||
        put_edges(s, &r, e))
        return -1;
    memset(s->live + words, 0, (s->live_capacity - words) * sizeof *s->live);
    if (e->key.size && (r.slot = make_slot(s, e->key)) == STATE_NONE)
        return -1;
    if (e->session && (r.session = make_session(s, e->session)) == STATE_NONE)
        return -1;
    if (r.slot != STATE_NONE) {
        r.same_key = s->slots[r.slot].newest;
        s->slots[r.slot].newest = (uint32_t)at;
    }
    s->failed = 0;
    s->records[at] = r;
    s->count++;
    if (!e->pending)
        enter_force(s, (uint32_t)at);
    touch(s, (uint32_t)at);
    return s->failed ? -1 : 0;
}

/* ------------------------------------------------------------------ verdicts */

int states_would_change(const states *s, int64_t time_ms, uint32_t record,
                        sessile_memory_verdict_kind to)
{
    const memory_record *r = &s->records[record];
    int ended = r->flags & (RECORD_DELETED | RECORD_REJECTED);
    switch (to) {
    case SESSILE_MEMORY_DELETE:
    case SESSILE_MEMORY_REJECT:
        return !ended;
    case SESSILE_MEMORY_APPROVE:
        return !ended && !(r->flags & RECORD_APPROVED);
    case SESSILE_MEMORY_RESTORE:
        return ended || (!(r->flags & RECORD_PENDING) && !states_is_live(s, record)) ||
               (r->expires_ms && r->expires_ms <= time_ms);
    case SESSILE_MEMORY_PIN:
        return !(r->flags & RECORD_PINNED);
    case SESSILE_MEMORY_UNPIN:
        return (r->flags & RECORD_PINNED) != 0;
    case SESSILE_MEMORY_CONFIRM:
        return 1;
    }
    return 0;
}

static void end(states *s, sessile_id id, uint32_t record, uint8_t how)
{
    s->records[record].flags |= how;
    s->records[record].ended_by = id;
    if (how == RECORD_REJECTED)
        leave_force(s, record);
}

static void restore(states *s, int64_t time_ms, uint32_t record)
{
    memory_record *r = &s->records[record];
    int is_ended = r->flags & (RECORD_DELETED | RECORD_REJECTED);

    if (r->expires_ms && r->expires_ms <= time_ms)
        r->expires_ms = 0; /* it was wanted after that time */
    r->flags &= (uint8_t) ~(RECORD_DELETED | RECORD_REJECTED);
    r->ended_by = 0;
    if (!(r->flags & RECORD_PENDING) && (is_ended || !states_is_live(s, record)))
        enter_force(s, record);
}

int states_judge(states *s, sessile_id id, int64_t time_ms, uint32_t record,
                 sessile_memory_verdict_kind to)
{
    memory_record *r = &s->records[record];

    if (s->failed)
        return -1;
    s->now = id;
    if (!states_would_change(s, time_ms, record, to))
        return 0;
    switch (to) {
    case SESSILE_MEMORY_DELETE:
        end(s, id, record, RECORD_DELETED);
        break;
    case SESSILE_MEMORY_REJECT:
        end(s, id, record, RECORD_REJECTED);
        break;
    case SESSILE_MEMORY_APPROVE:
        r->flags |= RECORD_APPROVED;
        if (r->flags & RECORD_PENDING) {
            r->flags &= (uint8_t)~RECORD_PENDING;
            enter_force(s, record);
        }
        break;
    case SESSILE_MEMORY_RESTORE:
        restore(s, time_ms, record);
        break;
    case SESSILE_MEMORY_PIN:
        r->flags |= RECORD_PINNED;
        break;
    case SESSILE_MEMORY_UNPIN:
        r->flags &= (uint8_t)~RECORD_PINNED;
        break;
    case SESSILE_MEMORY_CONFIRM:
        r->confirmed += r->confirmed < UINT8_MAX;
        break;
    }
    touch(s, record);
    return s->failed ? -1 : 0;
}

/* ------------------------------------------------------------------ questions */

sessile_memory_state states_of(const states *s, uint32_t record, int64_t now_ms)
{
    const memory_record *r = &s->records[record];
    if (r->flags & RECORD_ERASED)
        return SESSILE_MEMORY_ERASED;
    if (r->flags & RECORD_REJECTED)
        return SESSILE_MEMORY_REJECTED;
    if (r->flags & RECORD_DELETED)
        return SESSILE_MEMORY_DELETED;
    if (r->flags & RECORD_PENDING)
        return SESSILE_MEMORY_PENDING;
    if (!states_is_live(s, record))
        return SESSILE_MEMORY_REPLACED;
    return r->expires_ms && r->expires_ms <= now_ms ? SESSILE_MEMORY_EXPIRED
                                                    : SESSILE_MEMORY_LIVE;
}

uint32_t states_find(const states *s, sessile_id id)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->records[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->records[low].id == id ? (uint32_t)low : STATE_NONE;
}

uint32_t states_slot(const states *s, sessile_slice key)
{
    uint32_t slot;
    return key.size &&
                   map_get(&s->slot_of, hash64_keyed(&s->key, key.data, key.size), &slot)
               ? slot
               : STATE_NONE;
}

uint32_t states_holder(const states *s, uint32_t slot, int64_t now_ms)
{
    uint32_t top = slot == STATE_NONE ? STATE_NONE : s->slots[slot].top;
    return top != STATE_NONE && states_of(s, top, now_ms) == SESSILE_MEMORY_LIVE
               ? top
               : STATE_NONE;
}

const uint32_t *states_edges(const states *s, uint32_t record, size_t *count)
{
    *count = s->records[record].edge_count;
    return s->edges + s->records[record].edges;
}

uint32_t states_replaced_by(const states *s, uint32_t record)
{
    const memory_record *old = &s->records[record];
    uint32_t by = STATE_NONE;
    uint32_t latest = old->stamp;

    if (old->slot != STATE_NONE && s->slots[old->slot].top != STATE_NONE &&
        s->records[s->slots[old->slot].top].stamp > latest) {
        by = s->slots[old->slot].top;
        latest = s->records[by].stamp;
    }
    for (uint32_t i = record + 1; old->takers && i < s->count; i++) {
        const memory_record *r = &s->records[i];
        if (!(r->flags & RECORD_IN_FORCE) || r->stamp <= latest)
            continue;
        for (uint32_t k = r->edges; k < r->edges + r->edge_count; k++)
            if (s->edges[k] == record) {
                by = i;
                latest = r->stamp;
            }
    }
    return by;
}

void states_live_before(const states *s, sessile_id before, uint64_t *live)
{
    if (!s->count)
        return;
    memcpy(live, s->live, (s->count + 63) / 64 * sizeof *live);
    for (size_t i = s->flip_count; i > 0 && s->flips[i - 1].at >= before; i--)
        live[s->flips[i - 1].record / 64] ^= UINT64_C(1) << s->flips[i - 1].record % 64;
    for (size_t i = s->count; i > 0 && s->records[i - 1].id >= before; i--)
        live[(i - 1) / 64] &= ~(UINT64_C(1) << (i - 1) % 64);
}

int states_history(const states *s, uint32_t record, uint32_t **out, size_t *count)
{
    size_t words = (size_t)record / 64 + 1, found = 0;
    uint64_t *seen = mem_zalloc(s->alloc, words * sizeof *seen);
    uint32_t *list = NULL;

    *out = NULL;
    *count = 0;
    if (!seen)
        return -1;
    /* What led to an entry is before it, so that one pass down sees all. */
    seen[record / 64] |= UINT64_C(1) << record % 64;
    for (size_t i = (size_t)record + 1; i-- > 0;) {
        const memory_record *r = &s->records[i];
        if (!(seen[i / 64] >> i % 64 & 1))
            continue;
        found++;
        if (r->same_key != STATE_NONE)
            seen[r->same_key / 64] |= UINT64_C(1) << r->same_key % 64;
        for (uint32_t k = r->edges; k < r->edges + r->edge_count; k++)
            seen[s->edges[k] / 64] |= UINT64_C(1) << s->edges[k] % 64;
    }
    list = mem_alloc(s->alloc, found * sizeof *list);
    if (list)
        for (size_t i = (size_t)record + 1; i-- > 0;)
            if (seen[i / 64] >> i % 64 & 1)
                list[(*count)++] = (uint32_t)i;
    mem_free(s->alloc, seen, words * sizeof *seen);
    *out = list;
    return list ? 0 : -1;
}
