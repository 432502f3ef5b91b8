/*
 * verify_entry.c: compares the entries of a lane with its seals.
 *
 * Trusts nothing but the key that the lane begins with: from there each seal gives the
 * key of the next one, so what is proven ends with the last seal.
 */
#include "audit/verify_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "codec/entry.h"

void verify_wrong(audit_verifier *v, sessile_id at, const char *why)
{
    sessile_audit_report *out = &v->report;
    char part[LANE_NAME];

    if (!out->holds)
        return;
    out->holds = 0;
    lane_part_name(v->now.head.lane, v->now.head.part, part);
    if (at != SESSILE_NO_ID)
        snprintf(out->where, sizeof out->where, "%.12s/%08" PRIx32, part, at);
    snprintf(out->why, sizeof out->why, "lane %" PRIu32 ": %s", v->now.head.lane, why);
}

void verify_note_anchor(audit_verifier *v, uint32_t lane, uint64_t epoch,
                        const unsigned char hash[MERKLE_HASH])
{
    char hex[SEAL_HEX];

    hex_encode(hex, hash, MERKLE_HASH);
    for (size_t i = 0; i < v->options.anchor_count; i++)
        if (v->anchors[i].lane == lane && v->anchors[i].epoch == epoch &&
            !strcmp(v->anchors[i].hash, hex)) {
            v->found[i] = 1;
            v->is_anchored = 1;
        }
}

/* The root's own first logs were removed. Its chain is taken from where it begins now,
 * and an entry of it must say the same. */
static void begin_cut_root(audit_verifier *v, const lane_head *h)
{
    seal_chain *c = &v->now.chain;

    c->epoch = h->epoch;
    memcpy(c->key, h->key, sizeof c->key);
    memcpy(c->before, h->before, sizeof c->before);
}

/* The header of a part must stand where the part before it ended. */
static sessile_status begin_part(audit_verifier *v, const char *text, size_t size,
                                 sessile_error *err)
{
    seal_chain *c = &v->now.chain;
    uint32_t lane = v->now.head.lane, part = v->now.head.part;
    lane_head h;
    sessile_status status = lane_head_read(&h, text, size, &v->store->alloc, err);

    if (status)
        return status;
    if (h.lane != lane || h.part != part)
        return fail(err, SESSILE_DAMAGED, "it is another log of the audit");
    if (part == v->first && v->is_cut && v->is_root)
        begin_cut_root(v, &h);
    if (part != v->first && c->tree.count)
        return fail(err, SESSILE_DAMAGED,
                    "the log before this one does not end with a "
                    "seal");
    if (h.epoch != c->epoch || memcmp(h.key, c->key, sizeof h.key) != 0 ||
        memcmp(h.before, c->before, sizeof h.before) != 0 ||
        memcmp(h.root, v->root, sizeof h.root) != 0)
        return fail(err, SESSILE_DAMAGED,
                    part ? "it does not begin where the log before it ended"
                         : "its first key is not the one that was vouched for");
    if (part == v->first && v->is_cut)
        verify_note_anchor(v, lane, h.epoch - 1, h.before);
    c->first = 0;
    return SESSILE_OK;
}

const lane_cut *vouched_cut(const vouched *l, uint32_t part)
{
    for (size_t i = 0; part && i < 2; i++)
        if (l->cuts[i].part == part)
            return &l->cuts[i];
    return NULL;
}

void verify_note_cut(audit_verifier *v, uint32_t number, uint64_t part, const buf *from)
{
    vouched *l = &v->lanes[number];
    lane_cut older = l->cuts[1], *c = &l->cuts[0];
    seal s;

    if (!part || part > UINT32_MAX || vouched_cut(l, (uint32_t)part) ||
        seal_read(&s, from->data, from->size, &v->store->alloc, NULL) || s.lane != number)
        return;
    l->cuts[1] = *c;
    if (older.from.alloc)
        buf_deinit(&older.from);
    c->part = (uint32_t)part;
    c->epoch = s.epoch + 1;
    memcpy(c->key, s.next, sizeof c->key);
    hash256(c->before, from->data, from->size, NULL, 0);
    buf_init(&c->from, &v->store->alloc);
    buf_put(&c->from, from->data, from->size);
    if (c->from.failed) /* as if nothing had been said */
        c->part = 0;
}

static void note_lane(audit_verifier *v, const entry *e)
{
    const char *key;
    uint64_t number, part;
    size_t size;
    vouched *l;
    buf from;

    if (json_uint(json_get(e->data, "lane"), &number) || number >= LANE_MOST ||
        !json_plain(json_get(e->data, "key"), &key, &size) || size != 2 * SIGN_PUBLIC)
        return;
    l = &v->lanes[number];
    buf_init(&from, &v->store->alloc);
    if (!json_uint(json_get(e->data, "part"), &part) &&
        !json_string(&from, json_get(e->data, "from")) && !from.failed)
        verify_note_cut(v, (uint32_t)number, part, &from);
    buf_deinit(&from);
    if (l->is || v->named_count == LANE_MOST || hex_decode(l->key, key, SIGN_PUBLIC))
        return;
    l->is = 2;
    v->named[v->named_count++] = (uint32_t)number;
}

static void note_seal(audit_verifier *v)
{
    const seal_chain *c = &v->now.chain;

    v->report.seals++;
    v->report.events += v->events;
    v->events = 0;
    v->oldest_ms = 0;
    if (c->sealed_ms > v->report.sealed_ms)
        v->report.sealed_ms = c->sealed_ms;
    while (v->named_count)
        v->lanes[v->named[--v->named_count]].is = 1;
    if (v->options.anchor_count)
        verify_note_anchor(v, c->lane, c->epoch - 1, c->before);
}

/* After the first wrong entry of a lane nothing of it is worth a look. */
sessile_status verify_entry(void *verifier, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    audit_verifier *v = verifier;
    sessile_status status;
    entry e;

    v->at = id;
    if (id && seal_is_type(text, size, "seal")) {
        status = seal_chain_follow(&v->now.chain, text, size, 1, err);
        if (!status)
            note_seal(v);
        return status;
    }
    if (id == 0) {
        status = begin_part(v, text, size, err);
        if (status)
            return status;
    } else {
        v->events += seal_is_type(text, size, "event");
        if (!v->oldest_ms && v->events && !entry_read(&e, text, size, NULL))
            v->oldest_ms = e.time_ms;
        if (v->is_root && seal_is_type(text, size, "lane") &&
            !entry_read(&e, text, size, NULL))
            note_lane(v, &e);
    }
    return seal_chain_add(&v->now.chain, text, size, err);
}
