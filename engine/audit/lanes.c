/*
 * audit_lanes.c: which lane a process writes to; new lanes, and who vouches for them.
 *
 * One log for all processes would make every call wait for one lock. So a lane is tried
 * and never waited for: the next one is taken, up to LANES_AT_ONCE of them. Only when all
 * of those are in use does a call wait. A lane that is made is named in the root lane,
 * which is sealed at once, before anything is written to the new one: so the root's first
 * key vouches for it, and a lane that is taken away is missed.
 */
#include "audit/lanes.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"
#include "audit/audit.h"
#include "audit/parts.h"

/* Adds the lanes that are there, and have a seed here. */
static sessile_status find_lanes(audit_lanes *a, sessile_error *err)
{
    store_core *st = a->store;
    lane_parts parts;
    sessile_status status = lane_parts_find(&parts, st, err);

    if (status)
        return status;
    while (parts.there[a->next]) {
        char name[LANE_NAME], *blob;
        size_t size;
        lane_seed_name(a->next, name);
        status = st->backend.table->blob_get(st->backend.self, name, &blob, &size, err);
        if (!status)
            host_free(blob);
        else if (status != SESSILE_NOTFOUND)
            return status;
        error_clear(err);
        if (!status && a->count < LANES_AT_ONCE)
            a->numbers[a->count++] = a->next;
        if (++a->next == LANE_MOST)
            return fail(err, SESSILE_LIMIT, "the audit has %d lanes: no more can be made",
                        LANE_MOST);
    }
    a->found = 1;
    return SESSILE_OK;
}

static void drop_lane(audit_lanes *a, size_t i)
{
    size_t last = --a->count;

    lane_close(a->open[i]);
    for (; i < last; i++) {
        a->numbers[i] = a->numbers[i + 1];
        a->open[i] = a->open[i + 1];
        a->unsynced[i] = a->unsynced[i + 1];
        a->checked[i] = a->checked[i + 1];
    }
    a->open[last] = NULL;
    a->unsynced[last] = a->checked[last] = 0;
}

/* NOTFOUND: it cannot be written on, and is none of ours any more. */
static sessile_status use_lane(audit_lanes *a, size_t i, sessile_error *err)
{
    sessile_status status;

    if (a->open[i])
        return SESSILE_OK;
    status = lane_open(&a->open[i], a->store, a->numbers[i], a->part_bytes, err);
    /* What was cut or damaged is left as it is, for who verifies. */
    if (status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED ||
        status == SESSILE_SEALED || status == SESSILE_NOTFOUND) {
        error_clear(err);
        drop_lane(a, i);
        return SESSILE_NOTFOUND;
    }
    return status;
}

static sessile_status name_lane(audit_lanes *a, lane *root, const lane *l,
                                sessile_error *err)
{
    store_core *st = a->store;
    sessile_status status;
    char key[SEAL_HEX];
    buf data, text;

    buf_init(&data, &st->alloc);
    buf_init(&text, &st->alloc);
    hex_encode(key, l->head.key, sizeof l->head.key);
    buf_printf(&data, "{\"lane\":%" PRIu32 ",\"key\":\"%s\"", l->head.lane, key);
    audit_event_end(&data, 1);
    status = lane_begin(root, st->config.timeout_ms, err);
    if (!status && root->vouched[l->head.lane]) {
        lane_end(root);
    } else if (!status) {
        entry_fields fields = {.id = log_count(root->log),
                               .parent = 0,
                               .time_ms = st->os->now_ms(st->os->ud),
                               .type = ENTRY_LANE,
                               .source = SOURCE_SYSTEM,
                               .tokens = -1};
        entry_put_data(&text, &fields, &data);
        status = text.failed
                     ? fail_nomem(err)
                     : lane_append(root, &(sessile_slice){text.data, text.size}, 1, err);
        lane_end(root);
    }
    buf_deinit(&data);
    buf_deinit(&text);
    return status ? status : lane_seal(root, st->config.timeout_ms, err);
}

/* The root of a lane, opened. NOTFOUND: it cannot be written on, or is none of ours. */
static sessile_status find_root(lane **out, audit_lanes *a, const lane *l,
                                sessile_error *err)
{
    size_t i = 0;

    while (i < a->count && a->numbers[i] != l->head.root_lane)
        i++;
    if (i < a->count) {
        sessile_status status = use_lane(a, i, err);
        if (!status)
            *out = a->open[i];
        if (status != SESSILE_NOTFOUND)
            return status;
    }
    return fail(err, SESSILE_NOTFOUND, "lane %" PRIu32 " of the audit has lost its root",
                l->head.lane);
}

/* A lane with nothing but its header may not be named yet: its maker was killed. */
static sessile_status check_lane(audit_lanes *a, size_t i, sessile_error *err)
{
    lane *l = a->open[i], *root = NULL;
    sessile_status status = SESSILE_OK;

    if (a->checked[i] || l->head.root_lane == l->head.lane || l->head.part ||
        log_count(l->log) > 1) {
        a->checked[i] = 1;
        return SESSILE_OK;
    }
    status = find_root(&root, a, l, err);
    if (!status)
        status = name_lane(a, root, l, err);
    a->checked[i] = !status;
    return status;
}

/* A lane more; with it, the first one. */
static sessile_status make_lane(audit_lanes *a, sessile_error *err)
{
    lane_head root, *of = NULL;
    uint32_t number = a->next;
    sessile_status status;

    for (size_t i = 0; i < a->count && !of; i++) {
        const lane *l = a->open[i];
        lane *found;
        if (l && !find_root(&found, a, l, err)) {
            root = l->head;
            of = &root;
        }
    }
    error_clear(err);
    status = lane_make(a->store, number, of, err);
    if (status == SESSILE_EXISTS) { /* somebody else made it, or a seed without a log */
        error_clear(err);
        status = find_lanes(a, err);
        if (!status && a->next == number)
            status = fail(err, SESSILE_EXISTS,
                          "lane %" PRIu32 " of the audit is gone and its seed is not: "
                          "verify the audit",
                          number);
        return status;
    }
    if (!status) {
        a->numbers[a->count++] = number;
        a->next++;
    }
    return status;
}

sessile_status audit_lanes_take(audit_lanes *a, size_t *at, sessile_error *err)
{
    sessile_status status = a->found ? SESSILE_OK : find_lanes(a, err);
    size_t tried = 0;

    while (!status) {
        size_t i;
        int wait = 0;
        if (tried == a->count && a->count < LANES_AT_ONCE) {
            size_t before = a->count;
            status = make_lane(a, err);
            if (status)
                break;
            if (a->count > before)
                a->current = before;
            tried = a->count > before ? before : 0;
            continue;
        }
        wait = tried >= a->count;
        i = (a->current + tried) % a->count;
        status = use_lane(a, i, err);
        if (status == SESSILE_NOTFOUND) {
            status = SESSILE_OK;
            a->current = 0;
            tried = 0;
            continue;
        }
        if (!status)
            status = check_lane(a, i, err);
        if (!status)
            status = lane_begin(a->open[i], wait ? a->store->config.timeout_ms : 0, err);
        if (!status) {
            *at = a->current = i;
            return SESSILE_OK;
        }
        if (wait || (status != SESSILE_BUSY && status != SESSILE_CONFLICT))
            break;
        error_clear(err);
        status = SESSILE_OK;
        tried++;
    }
    return status;
}

void audit_lanes_close(audit_lanes *a)
{
    for (size_t i = 0; i < a->count; i++)
        lane_close(a->open[i]);
    a->count = 0;
}
