/*
 * verify.c: reads every entry of the audit and compares it with the seals.
 *
 * Trusts nothing but the root key: a lane's first key is that key, or one that a sealed
 * entry of the root lane names. From there each seal gives the key of the next one, so
 * what is proven ends with the last seal. Whether that is really the last one, the seed
 * tells, if it is here: a seed cannot be set back.
 */
#include "audit/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"
#include "audit/lane.h"
#include "session/handle.h"
#include "session/header.h"

/* What the root says of a lane. */
typedef struct vouched {
    int is; /* 1: named by a sealed entry; 2: by one that is not sealed yet */
    unsigned char key[SIGN_PUBLIC];
} vouched;

typedef struct verifier {
    store_core *store;
    const audit_verify_options *options;
    audit_verdict *out;
    unsigned char root[SIGN_PUBLIC];
    vouched lanes[LANE_MOST];
    uint64_t anchors_found;
    lane now; /* the lane that is read: its head and its chain */
    int is_root;
    sessile_id at;             /* the entry that is looked at */
    uint64_t events;           /* since the last seal, headers left out */
    int64_t oldest_ms;         /* of those */
    uint32_t named[LANE_MOST]; /* since the last seal */
    size_t named_count;
    audit_head *heads; /* where to put what was found last of each lane; or NULL */
    size_t head_room, head_count;
} verifier;

/* The first thing that is wrong, if it is the first. */
static void wrong(verifier *v, sessile_id at, const char *why)
{
    char part[LANE_NAME];

    if (!v->out->holds)
        return;
    v->out->holds = 0;
    lane_part_name(v->now.head.lane, v->now.head.part, part);
    if (at != SESSILE_NO_ID)
        snprintf(v->out->where, sizeof v->out->where, "%.12s/%08" PRIx32, part, at);
    snprintf(v->out->why, sizeof v->out->why, "lane %" PRIu32 ": %s", v->now.head.lane,
             why);
}

/* ------------------------------------------------------------------ entries */

/* The header of a part must stand where the part before it ended. */
static sessile_status begin_part(verifier *v, const char *text, size_t size,
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
    if (part && c->tree.count)
        return fail(err, SESSILE_DAMAGED,
                    "the log before this one does not end with a "
                    "seal");
    if (h.epoch != c->epoch || memcmp(h.key, c->key, sizeof h.key) != 0 ||
        memcmp(h.before, c->before, sizeof h.before) != 0 ||
        memcmp(h.root, v->root, sizeof h.root) != 0)
        return fail(err, SESSILE_DAMAGED,
                    part ? "it does not begin where the log before it ended"
                         : "its first key is not the one that was vouched for");
    c->first = 0;
    return SESSILE_OK;
}

static void note_lane(verifier *v, const entry *e)
{
    const char *key;
    uint64_t number;
    size_t size;

    if (json_uint(json_get(e->data, "lane"), &number) || number >= LANE_MOST ||
        !json_plain(json_get(e->data, "key"), &key, &size) || size != 2 * SIGN_PUBLIC ||
        v->lanes[number].is || hex_decode(v->lanes[number].key, key, SIGN_PUBLIC))
        return;
    v->lanes[number].is = 2;
    v->named[v->named_count++] = (uint32_t)number;
}

static void note_seal(verifier *v)
{
    const seal_chain *c = &v->now.chain;
    const audit_verify_options *o = v->options;

    v->out->counts.seals++;
    v->out->counts.events += v->events;
    v->events = 0;
    v->oldest_ms = 0;
    if (c->sealed_ms > v->out->sealed_ms)
        v->out->sealed_ms = c->sealed_ms;
    while (v->named_count)
        v->lanes[v->named[--v->named_count]].is = 1;
    for (size_t i = 0; o && i < o->anchor_count; i++)
        v->anchors_found += o->anchors[i].lane == c->lane &&
                            o->anchors[i].epoch == c->epoch - 1 &&
                            !memcmp(o->anchors[i].hash, c->before, MERKLE_HASH);
}

static sessile_status look(verifier *v, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    sessile_status status;
    entry e;

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
        if (!v->events++ && !entry_read(&e, text, size, NULL))
            v->oldest_ms = e.time_ms;
        if (v->is_root && seal_is_type(text, size, "lane") &&
            !entry_read(&e, text, size, NULL))
            note_lane(v, &e);
    }
    return seal_chain_add(&v->now.chain, text, size, err);
}

/* After the first wrong entry of a lane nothing of it is worth a look. */
static sessile_status visit(void *arg, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    verifier *v = arg;

    v->at = id;
    return look(v, id, text, size, err);
}

/* ------------------------------------------------------------------ lanes */

static sessile_status read_part(verifier *v, sessile_error *err)
{
    store_core *st = v->store;
    char name[LANE_NAME];
    log_tail tail;
    log_t *log = NULL;
    sessile_status status;

    lane_part_name(v->now.head.lane, v->now.head.part, name);
    v->at = SESSILE_NO_ID;
    status = log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                         session_read_depth(st), st->config.timeout_ms, NULL, visit, v,
                         &tail, &st->alloc, err);
    if (!status && log_damage(log, err)) {
        const log_flaw *flaws;
        uint64_t left;
        size_t count = log_flaws(log, &flaws, &left);
        v->at = count ? flaws[0].first : log_count(log);
        status = err->code;
    }
    log_close(log);
    return status;
}

/* A lane's seed as it was before the log was read: the log has all its seals by then. */
typedef struct seed_before {
    unsigned char *seed;
    uint64_t epoch;
    sessile_error why; /* it cannot be had */
} seed_before;

static sessile_status read_seed(verifier *v, seed_before *s, sessile_error *err)
{
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
static sessile_status check_seed(const verifier *v, const seed_before *s,
                                 sessile_error *err)
{
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

static int is_verdict(sessile_status status)
{
    return status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED ||
           status == SESSILE_SEALED || status == SESSILE_NOTFOUND ||
           status == SESSILE_INVALID || status == SESSILE_LIMIT;
}

static void end_lane(verifier *v)
{
    audit_verdict *out = v->out;
    const seal_chain *c = &v->now.chain;

    out->counts.lanes++;
    out->counts.unsealed += v->events;
    if (v->oldest_ms && (!out->unsealed_ms || v->oldest_ms < out->unsealed_ms))
        out->unsealed_ms = v->oldest_ms;
    if (v->heads && c->epoch && v->head_count < v->head_room) {
        audit_head *h = &v->heads[v->head_count++];
        h->lane = c->lane;
        h->epoch = c->epoch - 1;
        memcpy(h->hash, c->before, sizeof h->hash);
    }
}

/* key: its first. */
static sessile_status verify_lane(verifier *v, uint32_t number,
                                  const unsigned char key[SIGN_PUBLIC],
                                  sessile_error *err)
{
    int there = 1, has_seed = !v->options || !v->options->is_copy;
    seed_before seed = {NULL, 0, {0}};
    sessile_status status;

    memset(&v->now.head, 0, sizeof v->now.head);
    v->now.head.lane = number;
    seal_chain_init(&v->now.chain, number, &v->store->alloc);
    memcpy(v->now.chain.key, key, SIGN_PUBLIC);
    v->events = 0;
    v->oldest_ms = 0;
    status = has_seed ? read_seed(v, &seed, err) : SESSILE_OK;
    for (uint32_t part = 0; !status && there == 1; part++) {
        v->now.head.part = part;
        status = read_part(v, err);
        if (part && status == SESSILE_NOTFOUND && v->at == SESSILE_NO_ID) {
            status = SESSILE_OK;
            there = 0;
        }
    }
    if (!there)
        error_clear(err);
    if (!status && has_seed) {
        v->at = SESSILE_NO_ID;
        status = check_seed(v, &seed, err);
    }
    seed_free(seed.seed);
    if (is_verdict(status)) {
        wrong(v, v->at,
              status == SESSILE_NOTFOUND ? "it is gone: its log was removed"
                                         : err->message);
        error_clear(err);
        status = SESSILE_OK;
    }
    if (!status)
        end_lane(v);
    seal_chain_deinit(&v->now.chain);
    return status;
}

/* ------------------------------------------------------------------ the store */

typedef struct numbers {
    unsigned char there[LANE_MOST];
    int any;
} numbers;

static int add_number(void *arg, const char *folder, const char *name)
{
    numbers *n = arg;
    uint32_t lane, part;

    (void)folder;
    if (!lane_part_parse(name, &lane, &part)) {
        n->there[lane] = 1;
        n->any = 1;
    }
    return 0;
}

static sessile_status take_head(void *arg, sessile_id id, const char *text, size_t size,
                                sessile_error *err)
{
    return id == 0 ? lane_head_read(arg, text, size, &allocator_default, err)
                   : SESSILE_OK;
}

/* The header of a lane's first part. What cannot be read is left to verify_lane(). */
static sessile_status peek(store_core *st, uint32_t number, lane_head *out,
                           sessile_error *err)
{
    char name[LANE_NAME];
    sessile_status status;
    buf text;

    lane_part_name(number, 0, name);
    buf_init(&text, &st->alloc);
    status = log_peek(&st->backend, st->keys, AUDIT_FOLDER, name, session_read_depth(st),
                      st->config.timeout_ms, &text, &st->alloc, err);
    if (!status)
        status = take_head(out, 0, text.data, text.size, err);
    buf_deinit(&text);
    return status;
}

/* The root lane is the one whose own first key is the root. */
static sessile_status find_root(verifier *v, const numbers *n, uint32_t *out,
                                sessile_error *err)
{
    sessile_error why;
    lane_head h;

    *out = LANE_MOST;
    for (uint32_t i = 0; i < LANE_MOST && *out == LANE_MOST; i++) {
        if (!n->there[i])
            continue;
        sessile_status status = peek(v->store, i, &h, &why);
        if (status == SESSILE_NOMEM || status == SESSILE_IO)
            return fail(err, status, "%s", why.message);
        if (!status && h.lane == i && !memcmp(h.key, v->root, SIGN_PUBLIC))
            *out = i;
    }
    return SESSILE_OK;
}

/* Lanes that nobody vouched for: another root's, or nobody's. */
static void judge_strangers(verifier *v, const numbers *n, uint32_t root)
{
    sessile_error why;
    lane_head h;

    for (uint32_t i = 0; i < LANE_MOST; i++) {
        if (!n->there[i] || i == root || v->lanes[i].is)
            continue;
        if (!peek(v->store, i, &h, &why) && memcmp(h.root, v->root, SIGN_PUBLIC) != 0) {
            v->out->counts.other_lanes++;
            continue;
        }
        /* its maker may have been killed before it was named; then nothing is in it */
        char name[LANE_NAME];
        log_tail tail;
        log_t *log = NULL;
        lane_part_name(i, 0, name);
        if (!log_inspect(&log, &v->store->backend, v->store->keys, AUDIT_FOLDER, name,
                         session_read_depth(v->store), v->store->config.timeout_ms, NULL,
                         take_head, &h, &tail, &v->store->alloc, &why) &&
            log_count(log) == 1 && !log_damage(log, NULL)) {
            log_close(log);
            continue;
        }
        log_close(log);
        v->now.head.lane = i;
        wrong(v, SESSILE_NO_ID, "it has events, and the root never named it");
    }
}

static sessile_status verify_all(verifier *v, sessile_error *err)
{
    store_core *st = v->store;
    numbers n = {{0}, 0};
    uint32_t root = LANE_MOST;
    sessile_status status =
        st->backend.table->list(st->backend.self, AUDIT_FOLDER, add_number, &n, err);

    if (status == SESSILE_NOTFOUND || (!status && !n.any))
        return fail(err, SESSILE_NOTFOUND, "there is no audit in this store");
    if (!status)
        status = find_root(v, &n, &root, err);
    if (status)
        return status;
    if (root == LANE_MOST) {
        wrong(v, SESSILE_NO_ID,
              "none begins with this key: the root lane was removed or "
              "replaced, or it is the key of another audit");
        return SESSILE_OK;
    }
    v->is_root = 1;
    status = verify_lane(v, root, v->root, err);
    v->is_root = 0;
    for (uint32_t i = 0; !status && i < LANE_MOST; i++)
        if (i != root && v->lanes[i].is && (v->lanes[i].is == 1 || n.there[i]))
            status = verify_lane(v, i, v->lanes[i].key, err);
    if (!status)
        judge_strangers(v, &n, root);
    return status;
}

/* What the options ask for beside. */
static void judge_options(verifier *v)
{
    const audit_verify_options *o = v->options;
    audit_verdict *out = v->out;
    int64_t now_ms = v->store->os->now_ms(v->store->os->ud);

    if (!o || !out->holds)
        return;
    if (v->anchors_found < o->anchor_count) {
        out->holds = 0;
        snprintf(out->why, sizeof out->why,
                 "%" PRIu64 " of %zu anchors are not there: seals that existed were cut "
                 "off or replaced",
                 o->anchor_count - v->anchors_found, o->anchor_count);
    } else if (o->max_age_ms && out->unsealed_ms &&
               now_ms - out->unsealed_ms > o->max_age_ms) {
        out->holds = 0;
        snprintf(out->why, sizeof out->why,
                 "events are not sealed that are older than %" PRIi64 " ms",
                 o->max_age_ms);
    }
}

static sessile_status run(verifier *v, const char *root, sessile_error *err)
{
    sessile_status status;

    memset(v->out, 0, sizeof *v->out);
    v->out->holds = 1;
    if (strlen(root) != 2 * SIGN_PUBLIC || hex_decode(v->root, root, SIGN_PUBLIC))
        return fail(err, SESSILE_INVALID, "the key of an audit has 64 hex digits");
    status = verify_all(v, err);
    if (!status)
        judge_options(v);
    return status;
}

sessile_status audit_verify(store_core *st, const char *root,
                            const audit_verify_options *options, audit_verdict *out,
                            sessile_error *err)
{
    sessile_error local = {0};
    verifier v = {.store = st, .options = options, .out = out};

    return run(&v, root, err ? err : &local);
}

sessile_status audit_heads(store_core *st, const char *root, audit_head *out, size_t room,
                           size_t *count, sessile_error *err)
{
    sessile_error local = {0};
    audit_verdict verdict = {0};
    verifier v = {.store = st, .out = &verdict, .heads = out, .head_room = room};
    sessile_status status = run(&v, root, err ? err : &local);

    *count = 0;
    if (!status && !verdict.holds)
        status =
            fail(err, SESSILE_DAMAGED, "the audit does not verify: %.200s", verdict.why);
    if (!status)
        *count = v.head_count;
    return status;
}
