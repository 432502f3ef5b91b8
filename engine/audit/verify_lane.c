/*
 * verify_lane.c: verifies one lane: its logs in order, then what is true of it as a
 * whole.
 */
#include "audit/verify_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "session/handle.h"
#include "session/header.h"

enum { STEP = 1 << 20 };

/* ------------------------------------------------------------------ seeds */

static sessile_status read_seed(audit_verifier *v, sessile_error *err)
{
    seed_before *s = &v->seed;
    char *blob = NULL;
    size_t size;

    error_clear(&s->why);
    s->seed = seed_new();
    if (!s->seed)
        return fail_nomem(err);
    if (!lane_seed_read(v->store, v->now.head.lane, &s->epoch, s->seed, &blob, &size,
                        &s->why))
        host_free(blob);
    return s->why.code == SESSILE_NOMEM || s->why.code == SESSILE_IO
               ? fail(err, s->why.code, "%s", s->why.message)
               : SESSILE_OK;
}

/* It is of the epoch that comes next, or was so when a sealer was killed. */
static sessile_status check_seed(const audit_verifier *v, sessile_error *err)
{
    const seed_before *s = &v->seed;

    if (s->why.code == SESSILE_NOTFOUND)
        return fail(err, SESSILE_DAMAGED,
                    "its seed is gone, so seals may have been cut off its end (say so if "
                    "this is a copy)");
    if (s->why.code)
        return fail(err, SESSILE_DAMAGED,
                    "its seed does not open, so seals may have been cut off its end");
    if (lane_seed_reach(&v->now, s->epoch, s->seed, NULL))
        return fail(err, SESSILE_DAMAGED,
                    "it ends before its seed does: seals were cut off, or a log");
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ one lane */

sessile_status verify_lane_begin(audit_verifier *v, uint32_t number,
                                 const unsigned char key[SIGN_PUBLIC], sessile_error *err)
{
    const lane_cut *cut;
    seal_chain *c = &v->now.chain;

    memset(&v->now.head, 0, sizeof v->now.head);
    v->now.head.lane = number;
    seal_chain_init(c, number, &v->store->alloc);
    memcpy(c->key, key, SIGN_PUBLIC);
    v->in_lane = 1;
    v->is_root = number == v->root_lane;
    v->first = v->parts.there[number] ? v->parts.first[number] : 0;
    v->now.head.part = v->first;
    v->is_cut = v->first > 0;
    v->is_anchored = 0;
    cut = vouched_cut(&v->lanes[number], v->first);
    if (cut && !v->is_root) {
        c->epoch = cut->epoch;
        memcpy(c->key, cut->key, sizeof c->key);
        memcpy(c->before, cut->before, sizeof c->before);
    }
    v->events = 0;
    v->oldest_ms = 0;
    v->named_count = 0;
    v->at = SESSILE_NO_ID;
    v->before = v->report;
    memcpy(v->first_key, key, sizeof v->first_key);
    return v->options.is_copy ? SESSILE_OK : read_seed(v, err);
}

static void end_lane(audit_verifier *v)
{
    sessile_audit_report *out = &v->report;
    const seal_chain *c = &v->now.chain;

    out->lanes++;
    out->unsealed += v->events;
    if (v->oldest_ms && (!out->unsealed_ms || v->oldest_ms < out->unsealed_ms))
        out->unsealed_ms = v->oldest_ms;
    out->cut_lanes += v->is_cut && !v->is_anchored;
    if (v->heads && c->epoch && v->head_count < v->head_room) {
        sessile_audit_anchor *h = &v->heads[v->head_count++];
        h->lane = c->lane;
        h->epoch = c->epoch - 1;
        hex_encode(h->hash, c->before, MERKLE_HASH);
    }
}

void verify_lane_leave(audit_verifier *v)
{
    log_close(v->log);
    v->log = NULL;
    seed_free(v->seed.seed);
    v->seed.seed = NULL;
    if (v->in_lane)
        seal_chain_deinit(&v->now.chain);
    v->in_lane = 0;
}

/* What is to be true of a lane as a whole. */
static sessile_status check_lane(const audit_verifier *v, sessile_error *err)
{
    if (v->is_cut && !vouched_cut(&v->lanes[v->now.head.lane], v->first))
        return fail(err, SESSILE_DAMAGED,
                    "its first logs are gone, and nothing says that they were removed "
                    "for their age");
    return v->options.is_copy ? SESSILE_OK : check_seed(v, err);
}

static int is_verdict(sessile_status status)
{
    return status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED ||
           status == SESSILE_SEALED || status == SESSILE_NOTFOUND ||
           status == SESSILE_INVALID || status == SESSILE_LIMIT;
}

/* The root lane was cut where one of its entries says, by the seal before it. */
static sessile_status check_cut_root(const audit_verifier *v, const lane_head *begin,
                                     sessile_error *err)
{
    const lane_cut *cut = vouched_cut(&v->lanes[v->root_lane], v->first);

    if (cut && (cut->epoch != begin->epoch ||
                memcmp(cut->key, begin->key, sizeof begin->key) != 0 ||
                memcmp(cut->before, begin->before, sizeof begin->before) != 0))
        return fail(err, SESSILE_DAMAGED,
                    "it does not begin where the logs that were removed ended");
    return SESSILE_OK;
}

/* *more 0: the lane was read to its end. */
static sessile_status read_lane(audit_verifier *v, int *more, sessile_error *err)
{
    store_core *st = v->store;
    uint64_t before = v->log ? log_bytes(v->log) : 0;
    char name[LANE_NAME];
    sessile_status status = SESSILE_OK;
    log_tail tail;

    *more = 1;
    if (!v->log) {
        lane_part_name(v->now.head.lane, v->now.head.part, name);
        status = log_open_unread(&v->log, &st->backend, st->keys, AUDIT_FOLDER, name,
                                 session_read_depth(st), st->config.timeout_ms,
                                 &st->alloc, err);
        if (status == SESSILE_NOTFOUND && v->now.head.part != v->first) {
            error_clear(err);
            *more = 0; /* the part before was the last one */
            return SESSILE_OK;
        }
        v->at = SESSILE_NO_ID;
        if (status)
            return status;
    }
    status = log_inspect_step(v->log, STEP, verify_entry, v, more, &tail, err);
    v->report.bytes += log_bytes(v->log) - before;
    if (!status && log_damage(v->log, err)) {
        const log_flaw *flaws;
        uint64_t left;
        size_t count = log_flaws(v->log, &flaws, &left);
        v->at = count ? flaws[0].first : log_count(v->log);
        status = err->code;
    }
    if (!status && !*more) {
        log_close(v->log);
        v->log = NULL;
        v->now.head.part++;
        *more = 1;
    }
    return status;
}

/* Where a removal of the first log was interrupted, what is left of that log is of no
 * worth: the lane is read again without it. It holds if the root says that the log may be
 * gone, and else what was wrong first is told. */
static sessile_status try_without_first(audit_verifier *v, sessile_error *err)
{
    unsigned char key[SIGN_PUBLIC];
    uint32_t number = v->now.head.lane;

    v->first_wrong = *err;
    v->first_wrong_at = v->at;
    error_clear(err);
    memcpy(key, v->first_key, sizeof key);
    v->report = v->before;
    v->parts.first[number]++;
    v->parts.half[number] = 1;
    verify_lane_leave(v);
    return verify_lane_begin(v, number, key, err);
}

static int may_be_half(const audit_verifier *v)
{
    uint32_t number = v->now.head.lane, part = v->now.head.part;

    return !v->first_wrong.code && v->parts.there[number] &&
           v->first < v->parts.last[number] &&
           (part == v->first || (part == v->first + 1 && !v->at));
}

sessile_status verify_lane_step(audit_verifier *v, sessile_error *err)
{
    int more;
    sessile_status status = read_lane(v, &more, err);

    if (!status && more)
        return SESSILE_OK;
    if (!status) {
        lane_head begin = {0};
        v->at = SESSILE_NO_ID;
        if (v->is_cut && v->is_root)
            status = lane_part_peek(&begin, v->store, v->now.head.lane, v->first, err);
        if (!status && v->is_cut && v->is_root)
            status = check_cut_root(v, &begin, err);
        if (!status)
            status = check_lane(v, err);
    }
    if (is_verdict(status) && may_be_half(v))
        return try_without_first(v, err);
    if (is_verdict(status)) {
        if (v->first_wrong.code) {
            *err = v->first_wrong;
            status = err->code;
            v->at = v->first_wrong_at;
            v->now.head.part = v->first - 1;
        }
        verify_wrong(v, v->at,
                     status == SESSILE_NOTFOUND ? "it is gone: its log was removed"
                                                : err->message);
        error_clear(err);
        status = SESSILE_OK;
    }
    if (!status)
        end_lane(v);
    error_clear(&v->first_wrong);
    verify_lane_leave(v);
    return status;
}
