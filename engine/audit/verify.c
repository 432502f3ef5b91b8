/*
 * verify.c: which lanes are verified, and from where: the root lane, then those that it
 * names.
 *
 * A lane's first key is the root key, or one that a sealed entry of the root lane names.
 * Whether what is there ends with the last seal that was made, the seed tells, if it is
 * here: a seed cannot be set back.
 */
#include "audit/verify_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "session/handle.h"
#include "session/header.h"

/* ------------------------------------------------------------------ the store */

/* The root lane is the one that begins with the root key, or did. */
static sessile_status find_root(audit_verifier *v, sessile_error *err)
{
    const lane_parts *p = &v->parts;
    sessile_error why;
    lane_head h;

    v->root_lane = LANE_MOST;
    for (uint32_t i = 0; i < LANE_MOST && v->root_lane == LANE_MOST; i++) {
        if (!p->there[i])
            continue;
        sessile_status status = lane_part_peek(&h, v->store, i, p->first[i], &why);
        if (status == SESSILE_NOMEM || status == SESSILE_IO)
            return fail(err, status, "%s", why.message);
        if (!status && h.lane == i && h.root_lane == i &&
            !memcmp(p->first[i] ? h.root : h.key, v->root, SIGN_PUBLIC))
            v->root_lane = i;
    }
    return SESSILE_OK;
}

static sessile_status pass(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    (void)arg, (void)id, (void)text, (void)size, (void)err;
    return SESSILE_OK;
}

/* Lanes that nobody vouched for: another root's, or nobody's. */
static void judge_strangers(audit_verifier *v)
{
    store_core *st = v->store;
    sessile_error why;
    lane_head h;

    for (uint32_t i = 0; i < LANE_MOST; i++) {
        if (!v->parts.there[i] || i == v->root_lane || v->lanes[i].is)
            continue;
        uint32_t part = v->parts.first[i];
        if (!lane_part_peek(&h, st, i, part, &why) &&
            memcmp(h.root, v->root, SIGN_PUBLIC) != 0) {
            v->report.other_lanes++;
            continue;
        }
        /* its maker may have been killed before it was named; then nothing is in it */
        char name[LANE_NAME];
        log_tail tail;
        log_t *log = NULL;
        lane_part_name(i, part, name);
        if (!log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                         session_read_depth(st), st->config.timeout_ms, NULL, pass, NULL,
                         &tail, &st->alloc, &why) &&
            log_count(log) == 1 && !log_damage(log, NULL)) {
            log_close(log);
            continue;
        }
        log_close(log);
        v->now.head.lane = i;
        verify_wrong(v, SESSILE_NO_ID, "it has events, and the root never named it");
    }
}

/* An anchor of what the retention removed since it was taken says nothing. */
static int is_before_cut(const audit_verifier *v, const sessile_audit_anchor *a)
{
    const lane_cut *cut = a->lane < LANE_MOST && v->parts.there[a->lane]
                              ? vouched_cut(&v->lanes[a->lane], v->parts.first[a->lane])
                              : NULL;

    return cut && a->epoch + 1 < cut->epoch;
}

/* What the options ask for beside. */
static void judge_options(audit_verifier *v)
{
    const sessile_audit_verify_options *o = &v->options;
    sessile_audit_report *out = &v->report;
    int64_t now_ms = v->store->os->now_ms(v->store->os->ud);
    size_t missing = 0;

    for (size_t i = 0; i < o->anchor_count; i++)
        missing += !v->found[i] && !is_before_cut(v, &v->anchors[i]);
    if (out->holds && missing) {
        out->holds = 0;
        snprintf(out->why, sizeof out->why,
                 "%zu of %zu anchors are not there: seals that existed were cut off or "
                 "replaced",
                 missing, o->anchor_count);
    } else if (out->holds && o->max_age_ms && out->unsealed_ms &&
               now_ms - out->unsealed_ms > o->max_age_ms) {
        out->holds = 0;
        snprintf(out->why, sizeof out->why,
                 "events are not sealed that are older than %" PRIi64 " ms",
                 o->max_age_ms);
    }
}

/* How much there is to read. */
static void measure(audit_verifier *v)
{
    store_core *st = v->store;
    const sessile_backend *table = st->backend.table;
    sessile_error ignored;

    for (uint32_t i = 0; i < LANE_MOST; i++)
        for (uint32_t part = v->parts.first[i];
             v->parts.there[i] && part <= v->parts.last[i]; part++) {
            char name[LANE_NAME];
            sessile_backend_log *log;
            uint64_t bytes;
            int64_t mtime_ms;
            lane_part_name(i, part, name);
            if (table->open(st->backend.self, AUDIT_FOLDER, name, &log, &ignored))
                continue;
            if (!table->size(log, &bytes, &mtime_ms, &ignored))
                v->report.bytes_of += bytes;
            table->close(log);
        }
}

/* The next lane; OK with stage DONE: there is none. */
static sessile_status next_lane(audit_verifier *v, sessile_error *err)
{
    if (v->stage == VERIFY_ROOT) {
        v->stage = VERIFY_LANES;
        return verify_lane_begin(v, v->root_lane, v->root, err);
    }
    for (; v->next_lane < LANE_MOST; v->next_lane++) {
        const vouched *l = &v->lanes[v->next_lane];
        if (v->next_lane != v->root_lane && l->is &&
            (l->is == 1 || v->parts.there[v->next_lane]))
            return verify_lane_begin(v, v->next_lane++, l->key, err);
    }
    judge_strangers(v);
    judge_options(v);
    v->stage = VERIFY_DONE;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ in steps */

static sessile_status
copy_options(audit_verifier *v, const sessile_audit_verify_options *o, sessile_error *err)
{
    size_t count = o ? o->anchor_count : 0;

    if (!o)
        return SESSILE_OK;
    v->options = *o;
    v->options.anchor_count = 0;
    if (!count)
        return SESSILE_OK;
    v->anchors = (sessile_audit_anchor *)(void *)mem_dup(&v->store->alloc, o->anchors,
                                                         count * sizeof *o->anchors);
    v->found = mem_zalloc(&v->store->alloc, count);
    if (!v->anchors || !v->found) {
        mem_free(&v->store->alloc, v->anchors, count * sizeof *v->anchors + 1);
        mem_free(&v->store->alloc, v->found, count);
        return fail_nomem(err);
    }
    v->options.anchor_count = count;
    for (size_t i = 0; i < count; i++) {
        unsigned char hash[MERKLE_HASH];
        if (memchr(v->anchors[i].hash, 0, SEAL_HEX) !=
                v->anchors[i].hash + SEAL_HEX - 1 ||
            hex_decode(hash, v->anchors[i].hash, sizeof hash))
            return fail(err, SESSILE_INVALID, "the hash of an anchor has 64 hex digits");
        hex_encode(v->anchors[i].hash, hash, sizeof hash);
    }
    return SESSILE_OK;
}

static sessile_status begin(audit_verifier *v, const char *root,
                            const sessile_audit_verify_options *options,
                            sessile_error *err)
{
    sessile_status status;

    v->report.holds = 1;
    v->root_lane = LANE_MOST;
    if (strlen(root) != 2 * SIGN_PUBLIC || hex_decode(v->root, root, SIGN_PUBLIC))
        return fail(err, SESSILE_INVALID, "the key of an audit has 64 hex digits");
    status = copy_options(v, options, err);
    if (!status)
        status = lane_parts_find(&v->parts, v->store, err);
    if (!status && !v->parts.lanes)
        status = fail(err, SESSILE_NOTFOUND, "there is no audit in this store");
    if (!status)
        status = lane_parts_skip_half(&v->parts, v->store, err);
    if (!status)
        status = find_root(v, err);
    if (status)
        return status;
    measure(v);
    if (v->root_lane == LANE_MOST) {
        verify_wrong(v, SESSILE_NO_ID,
                     "none begins with this key: the root lane was removed or "
                     "replaced, or it is the key of another audit");
        v->stage = VERIFY_DONE;
    }
    return SESSILE_OK;
}

sessile_status audit_verify_begin(audit_verifier **out, store_core *st, const char *root,
                                  const sessile_audit_verify_options *options,
                                  sessile_error *err)
{
    sessile_error local = {0};
    audit_verifier *v = mem_zalloc(&st->alloc, sizeof *v);
    sessile_status status;

    *out = NULL;
    err = err ? err : &local;
    if (!v)
        return fail_nomem(err);
    v->store = st;
    status = begin(v, root, options, err);
    if (status)
        audit_verify_free(v);
    else
        *out = v;
    return status;
}

sessile_status audit_verify_step(audit_verifier *v, sessile_audit_report *report,
                                 sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;

    err = err ? err : &local;
    if (v->stage != VERIFY_DONE)
        status = v->in_lane ? verify_lane_step(v, err) : next_lane(v, err);
    *report = v->report;
    return status || v->stage == VERIFY_DONE ? status : SESSILE_NEEDS;
}

void audit_verify_free(audit_verifier *v)
{
    const allocator *a;
    size_t count;

    if (!v)
        return;
    a = &v->store->alloc;
    count = v->options.anchor_count;
    verify_lane_leave(v);
    for (uint32_t i = 0; i < LANE_MOST; i++)
        for (size_t k = 0; k < 2; k++)
            if (v->lanes[i].cuts[k].from.alloc)
                buf_deinit(&v->lanes[i].cuts[k].from);
    if (count) {
        mem_free(a, v->anchors, count * sizeof *v->anchors + 1);
        mem_free(a, v->found, count);
    }
    mem_free(a, v, sizeof *v);
}

static sessile_status run(audit_verifier *v, sessile_audit_report *report,
                          sessile_error *err)
{
    sessile_status status;

    do
        status = audit_verify_step(v, report, err);
    while (status == SESSILE_NEEDS);
    return status;
}

sessile_status audit_verify(store_core *st, const char *root,
                            const sessile_audit_verify_options *options,
                            sessile_audit_report *report, sessile_error *err)
{
    audit_verifier *v;
    sessile_status status = audit_verify_begin(&v, st, root, options, err);

    memset(report, 0, sizeof *report);
    if (!status)
        status = run(v, report, err);
    audit_verify_free(v);
    return status;
}

sessile_status audit_heads(store_core *st, const char *root, int is_copy,
                           sessile_audit_anchor *out, size_t room, size_t *count,
                           sessile_error *err)
{
    sessile_audit_verify_options options = {.is_copy = is_copy};
    sessile_audit_report report;
    audit_verifier *v;
    sessile_status status = audit_verify_begin(&v, st, root, &options, err);

    *count = 0;
    if (status)
        return status;
    v->heads = out;
    v->head_room = room;
    status = run(v, &report, err);
    if (!status && !report.holds)
        status =
            fail(err, SESSILE_DAMAGED, "the audit does not verify: %.200s", report.why);
    if (!status)
        *count = v->head_count;
    audit_verify_free(v);
    return status;
}
