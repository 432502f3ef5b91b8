/*
 * retain.c: removes what is old from the audit, whole logs from the front.
 *
 * Owns the order. The root lane names the seal that ended the log, and is sealed; then
 * the event is written; then the log is removed, one at a time. So after a kill or a
 * power cut either the log is still there or the root says why it is not. A lane whose
 * root's logs are removed loses the entry that named it: all lanes are named again
 * before.
 */
#include "audit/retain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/entry.h"
#include "audit/verify_internal.h"
#include "session/handle.h"
#include "session/header.h"

static const char event_name[] = "audit_retain";

typedef struct retention {
    audit_log *audit;
    store_core *store;
    audit_verifier *known; /* what the root lane says of each lane */
    lane *root;
    const audit_retention *options;
    audit_retained *out;
} retention;

/* ------------------------------------------------------------------ seals */

static sessile_status keep_last(void *arg, sessile_id id, const char *text, size_t size,
                                sessile_error *err)
{
    buf *last = arg;

    (void)id;
    buf_clear(last);
    buf_put(last, text, size);
    return last->failed ? fail_nomem(err) : SESSILE_OK;
}

/* The seal that ends a part. */
static sessile_status last_seal(store_core *st, uint32_t number, uint32_t part, buf *out,
                                seal *s, sessile_error *err)
{
    char name[LANE_NAME];
    log_tail tail;
    log_t *log = NULL;
    sessile_status status;

    lane_part_name(number, part, name);
    status = log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                         session_read_depth(st), st->config.timeout_ms, NULL, keep_last,
                         out, &tail, &st->alloc, err);
    log_close(log);
    return status ? status : seal_read(s, out->data, out->size, &st->alloc, err);
}

/* ------------------------------------------------------------------ what the root says
 */

/* Appends the data of a `lane` entry; from NULL: none of its logs was removed. */
static void put_lane(buf *out, uint32_t number, const unsigned char key[SIGN_PUBLIC],
                     uint32_t part, const buf *from)
{
    char hex[SEAL_HEX];

    hex_encode(hex, key, SIGN_PUBLIC);
    buf_printf(out, "{\"lane\":%" PRIu32 ",\"key\":\"%s\"", number, hex);
    if (from) {
        buf_printf(out, ",\"part\":%" PRIu32 ",\"from\":", part);
        json_put_string(out, from->data, from->size);
    }
    audit_event_end(out, 1);
}

static void add_text(const retention *r, buf *texts, size_t *ends, size_t *count,
                     const buf *data)
{
    store_core *st = r->store;
    entry_fields fields = {.id = log_count(r->root->log) + (sessile_id)*count,
                           .parent = 0,
                           .time_ms = st->os->now_ms(st->os->ud),
                           .type = ENTRY_LANE,
                           .source = SOURCE_SYSTEM,
                           .tokens = -1};

    entry_put_data(texts, &fields, data);
    ends[(*count)++] = texts->size;
}

/* Names in the root lane: every lane, where it begins by now, and that `number` is to
 * begin with the part after the one that `from` ends. Sealed on return. */
static sessile_status announce(retention *r, uint32_t number, uint32_t part,
                               const buf *from, sessile_error *err)
{
    sessile_slice slices[LANE_MOST + 1];
    size_t ends[LANE_MOST + 1], count = 0, at = 0;
    const audit_verifier *known = r->known;
    int timeout_ms = r->store->config.timeout_ms;
    sessile_status status = lane_begin(r->root, timeout_ms, err);
    buf texts, data;

    if (status)
        return status;
    buf_init(&texts, &r->store->alloc);
    buf_init(&data, &r->store->alloc);
    for (uint32_t i = 0; i < LANE_MOST; i++) {
        const vouched *l = &known->lanes[i];
        if (i == number || (!l->is && i != known->root_lane))
            continue;
        buf_clear(&data);
        put_lane(&data, i, i == known->root_lane ? known->root : l->key, l->cuts[0].part,
                 l->cuts[0].part ? &l->cuts[0].from : NULL);
        add_text(r, &texts, ends, &count, &data);
    }
    buf_clear(&data);
    put_lane(&data, number,
             number == known->root_lane ? known->root : known->lanes[number].key, part,
             from);
    add_text(r, &texts, ends, &count, &data);
    for (size_t i = 0; i < count; at = ends[i++])
        slices[i] = (sessile_slice){texts.data + at, ends[i] - at};
    status = texts.failed ? fail_nomem(err) : lane_append(r->root, slices, count, err);
    lane_end(r->root);
    buf_deinit(&texts);
    buf_deinit(&data);
    return status ? status : lane_seal(r->root, timeout_ms, err);
}

static sessile_status write_event(retention *r, uint32_t number, uint32_t part,
                                  const seal *s, const buf *from, sessile_error *err)
{
    unsigned char hash[MERKLE_HASH];
    char hex[SEAL_HEX], details[256], name[LANE_NAME];
    audit_event e;

    hash256(hash, from->data, from->size, NULL, 0);
    hex_encode(hex, hash, sizeof hash);
    lane_part_name(number, part - 1, name);
    snprintf(details, sizeof details,
             "{\"log\":\"%s\",\"lane\":%" PRIu32 ",\"epoch\":%" PRIu64
             ",\"anchor\":\"%s\"}",
             name, number, s->epoch, hex);
    audit_event_init(&e);
    e.operation.name = (sessile_slice){event_name, sizeof event_name - 1};
    e.details = (sessile_slice){details, strlen(details)};
    return audit_write(r->audit, AUDIT_SYNCED, &e, NULL, err);
}

/* ------------------------------------------------------------------ removing */

static sessile_status drop_part(const retention *r, uint32_t number, uint32_t part,
                                sessile_error *err)
{
    store_core *st = r->store;
    char name[LANE_NAME];
    uint64_t bytes;

    lane_part_name(number, part, name);
    return log_remove(&st->backend, st->keys, AUDIT_FOLDER, name, NULL,
                      st->config.timeout_ms, &bytes, err);
}

/* Removes the part before `part`, the first of its lane. */
static sessile_status remove_part(retention *r, uint32_t number, uint32_t part,
                                  sessile_error *err)
{
    store_core *st = r->store;
    sessile_status status;
    seal s;
    buf from;

    buf_init(&from, &st->alloc);
    status = last_seal(st, number, part - 1, &from, &s, err);
    if (!status && !vouched_cut(&r->known->lanes[number], part))
        status = announce(r, number, part, &from, err);
    if (!status)
        status = write_event(r, number, part, &s, &from, err);
    if (!status)
        status = drop_part(r, number, part - 1, err);
    if (!status) /* what comes next names this lane as it is now */
        verify_note_cut(r->known, number, part, &from);
    buf_deinit(&from);
    return status;
}

/* *held: a hold is in force. Asked for each log, since one may be put meanwhile. */
static sessile_status check_holds(const retention *r, uint32_t number, uint32_t part,
                                  int *held, sessile_error *err)
{
    store_core *stores[] = {r->store, r->options->guarded};
    char name[LANE_NAME];
    const store_removal what = {.folder = AUDIT_FOLDER, .name = name, .secret = ""};
    sessile_status status = SESSILE_OK;

    *held = 0;
    lane_part_name(number, part, name);
    for (size_t i = 0; !status && !*held && i < 2; i++) {
        sessile_error why = {0};
        if (!stores[i] || (i && stores[i] == r->store))
            continue;
        status = store_check_removal(stores[i], &what, &why);
        *held = status == SESSILE_DENIED && !strncmp(why.rule, "hold:", 5);
        if (*held)
            status = SESSILE_OK;
        else if (status && err)
            *err = why;
    }
    return status;
}

static sessile_status retain_lane(retention *r, uint32_t number, sessile_error *err)
{
    const lane_parts *p = &r->known->parts;
    sessile_status status = SESSILE_OK;

    if (p->half[number] && !r->options->dry_run)
        status = drop_part(r, number, p->first[number] - 1, err);

    for (uint32_t part = p->first[number] + 1; !status && part <= p->last[number];
         part++) {
        lane_head next;
        int held;
        status = lane_part_peek(&next, r->store, number, part, err);
        if (status || next.created_ms > r->options->before_ms)
            break;
        status = check_holds(r, number, part - 1, &held, err);
        if (!status && held) {
            r->out->held++;
            continue;
        }
        if (!status && r->out->held) /* what comes before it stays, and so must it */
            break;
        if (!status && !r->options->dry_run)
            status = remove_part(r, number, part, err);
        r->out->removed += !status;
    }
    return status;
}

static sessile_status verify_first(retention *r, const char *root, sessile_error *err)
{
    sessile_audit_report report;
    sessile_status status = audit_verify_begin(&r->known, r->store, root, NULL, err);

    while (!status) {
        status = audit_verify_step(r->known, &report, err);
        if (status != SESSILE_NEEDS)
            break;
        status = SESSILE_OK;
    }
    if (!status && !report.holds)
        status = fail(err, SESSILE_DAMAGED,
                      "the audit does not verify, so nothing of it is removed: %.200s",
                      report.why);
    return status;
}

sessile_status audit_retain(audit_log *a, store_core *st, const audit_retention *options,
                            audit_retained *out, sessile_error *err)
{
    retention r = {.audit = a, .store = st, .options = options, .out = out};
    sessile_error local = {0};
    char root[SEAL_HEX];
    sessile_status status;

    err = err ? err : &local;
    memset(out, 0, sizeof *out);
    status = audit_root_find(st, root, err);
    if (!status)
        status = verify_first(&r, root, err);
    if (!status && !options->dry_run)
        status = lane_open(&r.root, st, r.known->root_lane, audit_part_bytes(a), err);
    for (uint32_t i = 0; !status && i < LANE_MOST; i++)
        if (r.known->parts.there[i] && (i == r.known->root_lane || r.known->lanes[i].is))
            status = retain_lane(&r, i, err);
    lane_close(r.root);
    audit_verify_free(r.known);
    return status;
}

/* ------------------------------------------------------------------ all lanes */

sessile_status audit_seal_lanes(store_core *st, sessile_error *err)
{
    lane_parts parts;
    int sealed = 0;
    sessile_status status = lane_parts_find(&parts, st, err);

    for (uint32_t i = 0; !status && i < LANE_MOST; i++) {
        lane *l;
        if (!parts.there[i])
            continue;
        status = lane_open(&l, st, i, LANE_BYTES, err);
        if (!status)
            status = lane_seal(l, st->config.timeout_ms, err);
        lane_close(l);
        sealed += !status;
        if (status == SESSILE_NOTFOUND) { /* of a copy */
            error_clear(err);
            status = SESSILE_OK;
        }
    }
    if (status || sealed)
        return status;
    return fail(err, SESSILE_NOTFOUND,
                parts.lanes
                    ? "this audit is a copy, which has no seeds: seal it where it "
                      "is written"
                    : "there is no audit in this store");
}

sessile_status audit_root_find(store_core *st, char out[SEAL_HEX], sessile_error *err)
{
    lane_parts parts;
    sessile_status status = lane_parts_find(&parts, st, err);
    int found = 0, written = 0;

    if (!status)
        status = lane_parts_skip_half(&parts, st, err);
    for (uint32_t i = 0; !status && !written && i < LANE_MOST; i++) {
        char name[LANE_NAME], *blob = NULL;
        lane_head head;
        size_t size;
        if (!parts.there[i])
            continue;
        lane_seed_name(i, name);
        status = st->backend.table->blob_get(st->backend.self, name, &blob, &size, err);
        written = !status;
        host_free(blob);
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = SESSILE_OK;
        }
        if (!status && (written || !found))
            status = lane_part_peek(&head, st, i, parts.first[i], err);
        if (!status && (written || !found))
            hex_encode(out, head.root, SIGN_PUBLIC);
        found = 1;
    }
    if (!status && !found)
        status = fail(err, SESSILE_NOTFOUND, "there is no audit in this store");
    return status;
}
