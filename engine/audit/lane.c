/*
 * lane.c: a lane's logs: opened, folded, written to, sealed.
 *
 * Owns the order of a seal: the seal is appended and synced, then the seed takes its next
 * value. So the seed is never ahead of the log: after a kill or a power cut the next
 * sealer evolves it to where the log is. Must never give a lane's lock a place in another
 * lane's: of two locks, none is waited for while the other is held.
 */
#include "audit/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "session/handle.h"
#include "session/header.h"

enum { TRIES = 8, SEAL_AFTER_MS = 60000 };

static const char audit_agent[] = "audit";

/* ------------------------------------------------------------------ names, headers */

void lane_part_name(uint32_t lane, uint32_t part, char out[LANE_NAME])
{
    snprintf(out, LANE_NAME, "%02" PRIu32 "-%03" PRIu32, lane % LANE_MOST,
             part % 1000000);
}

int lane_part_parse(const char *name, uint32_t *lane, uint32_t *part)
{
    char again[LANE_NAME];

    if (sscanf(name, "%2" SCNu32 "-%6" SCNu32, lane, part) != 2)
        return -1;
    lane_part_name(*lane, *part, again);
    return strcmp(again, name) ? -1 : 0;
}

static void put_hex(buf *out, const char *name, const unsigned char bytes[32])
{
    char hex[SEAL_HEX];

    hex_encode(hex, bytes, 32);
    buf_printf(out, ",\"%s\":\"%s\"", name, hex);
}

static sessile_status make_part(store_core *st, const lane_head *h, sessile_error *err)
{
    char name[LANE_NAME];
    buf about, text;
    sessile_status status;

    lane_part_name(h->lane, h->part, name);
    buf_init(&about, &st->alloc);
    buf_init(&text, &st->alloc);
    buf_printf(&about,
               "{\"lane\":%" PRIu32 ",\"part\":%" PRIu32 ",\"epoch\":%" PRIu64
               ",\"root_lane\":%" PRIu32,
               h->lane, h->part, h->epoch, h->root_lane);
    put_hex(&about, "root", h->root);
    put_hex(&about, "key", h->key);
    put_hex(&about, "before", h->before);
    buf_putc(&about, '}');
    header_put(&text,
               &(session_names){{name, strlen(name)},
                                {audit_agent, sizeof audit_agent - 1},
                                {"", 0},
                                NAMES_AUDIT},
               &(header_fields){.metadata = {about.data, about.size},
                                .now_ms = st->os->now_ms(st->os->ud)});
    status = about.failed || text.failed
                 ? fail_nomem(err)
                 : log_create(&st->backend, st->keys, AUDIT_FOLDER, name, text.data,
                              text.size, st->config.timeout_ms, &st->alloc, err);
    buf_deinit(&about);
    buf_deinit(&text);
    return status;
}

static int get_number(json from, const char *name, uint64_t most, uint64_t *out)
{
    return json_uint(json_get(from, name), out) || *out > most ? -1 : 0;
}

static int get_hex(json from, const char *name, unsigned char out[32])
{
    const char *text;
    size_t size;

    return json_plain(json_get(from, name), &text, &size) && size == 64
               ? hex_decode(out, text, 32)
               : -1;
}

sessile_status lane_head_read(lane_head *out, const char *text, size_t size,
                              const allocator *a, sessile_error *err)
{
    uint64_t number, part, root = 0;
    json about;
    entry e;

    (void)a;
    memset(out, 0, sizeof *out);
    if (entry_read(&e, text, size, NULL) || e.type != ENTRY_AUDIT)
        return fail(err, SESSILE_DAMAGED, "it does not begin as a log of the audit does");
    about = json_get(e.data, "metadata");
    if (get_number(about, "lane", LANE_MOST - 1, &number) ||
        get_number(about, "part", 999999, &part) ||
        get_number(about, "root_lane", LANE_MOST - 1, &root) ||
        get_number(about, "epoch", UINT64_MAX, &out->epoch) ||
        get_hex(about, "root", out->root) || get_hex(about, "key", out->key) ||
        get_hex(about, "before", out->before))
        return fail(err, SESSILE_DAMAGED, "it does not begin as a log of the audit does");
    out->lane = (uint32_t)number;
    out->part = (uint32_t)part;
    out->root_lane = (uint32_t)root;
    out->created_ms = e.time_ms;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the fold */

static sessile_status begin_fold(lane *l, const char *text, size_t size,
                                 sessile_error *err)
{
    uint32_t number = l->head.lane, part = l->head.part;
    sessile_status status = lane_head_read(&l->head, text, size, &l->store->alloc, err);

    if (!status && (l->head.lane != number || l->head.part != part))
        status = fail(err, SESSILE_DAMAGED,
                      "its header is of another log of the audit: its file was moved or "
                      "replaced");
    l->head.lane = number;
    l->head.part = part;
    if (status)
        return status;
    l->chain.epoch = l->head.epoch;
    l->chain.first = 0;
    l->chain.sealed_ms = l->head.created_ms;
    memcpy(l->chain.key, l->head.key, sizeof l->chain.key);
    memcpy(l->chain.before, l->head.before, sizeof l->chain.before);
    merkle_init(&l->chain.tree);
    memset(l->vouched, 0, sizeof l->vouched);
    map_clear(&l->who);
    return SESSILE_OK;
}

/* What an entry says beside being one: which lane, which user. */
static sessile_status note(lane *l, const char *text, size_t size, sessile_error *err)
{
    const char *user;
    size_t user_size;
    uint64_t number;
    entry e;

    if (!seal_is_type(text, size, "lane") && !seal_is_type(text, size, "who"))
        return SESSILE_OK;
    if (entry_read(&e, text, size, err))
        return SESSILE_DAMAGED;
    if (e.type == ENTRY_LANE && !get_number(e.data, "lane", LANE_MOST - 1, &number))
        l->vouched[number] = 1;
    if (e.type == ENTRY_WHO && json_plain(json_get(e.data, "user"), &user, &user_size) &&
        map_put(&l->who, hash64(user, user_size), 1))
        return fail_nomem(err);
    return SESSILE_OK;
}

static sessile_status visit(void *arg, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    lane *l = arg;
    sessile_status status = SESSILE_OK;

    if (id == 0)
        status = begin_fold(l, text, size, err);
    if (!status && id && seal_is_type(text, size, "seal"))
        return seal_chain_follow(&l->chain, text, size, 0, err);
    if (!status && id)
        status = note(l, text, size, err);
    return status ? status : seal_chain_add(&l->chain, text, size, err);
}

/* ------------------------------------------------------------------ opening */

/* Opens a part in the place of what is open. */
static sessile_status open_part(lane *l, uint32_t part, sessile_error *err)
{
    store_core *st = l->store;
    char name[LANE_NAME];
    uint64_t torn;
    sessile_status status;

    lane_part_name(l->head.lane, part, name);
    log_close(l->log);
    l->log = NULL;
    l->head.part = part;
    l->stale = 1;
    status = log_open(&l->log, &st->backend, st->keys, AUDIT_FOLDER, name,
                      session_read_depth(st), st->config.timeout_ms, visit, l, &torn,
                      &st->alloc, err);
    if (!status)
        status = log_damage(l->log, err);
    l->stale = status != SESSILE_OK;
    return status;
}

static sessile_status open_last(lane *l, sessile_error *err)
{
    uint32_t part = l->head.part;
    int there;

    while ((there = lane_part_exists(l->store, l->head.lane, part + 1, err)) == 1)
        part++;
    return there < 0 ? err->code : open_part(l, part, err);
}

sessile_status lane_open(lane **out, store_core *st, uint32_t number, uint64_t bytes_most,
                         sessile_error *err)
{
    sessile_error local = {0};
    lane *l = mem_zalloc(&st->alloc, sizeof *l);
    unsigned char *seed = seed_new();
    lane_parts parts;
    sessile_status status;
    uint64_t epoch = 0;
    char *blob = NULL;
    size_t size;

    err = err ? err : &local;
    *out = NULL;
    if (!l || !seed) {
        seed_free(seed);
        mem_free(&st->alloc, l, sizeof *l);
        return fail_nomem(err);
    }
    l->store = st;
    l->head.lane = number;
    l->bytes_most = bytes_most;
    seal_chain_init(&l->chain, number, &st->alloc);
    map_init(&l->who, &st->alloc);
    /* The seed first: it is never ahead of the log, which others go on sealing. */
    status = lane_seed_read(st, number, &epoch, seed, &blob, &size, err);
    if (!status)
        status = lane_parts_find(&parts, st, err);
    l->head.part = !status && parts.there[number] ? parts.last[number] : 0;
    if (!status)
        status = open_last(l, err);
    if (!status)
        status = lane_seed_reach(l, epoch, seed, err);
    host_free(blob);
    seed_free(seed);
    if (status) {
        lane_close(l);
        return status;
    }
    *out = l;
    return SESSILE_OK;
}

void lane_close(lane *l)
{
    if (!l)
        return;
    log_close(l->log);
    seal_chain_deinit(&l->chain);
    map_deinit(&l->who);
    mem_free(&l->store->alloc, l, sizeof *l);
}

sessile_status lane_make(store_core *st, uint32_t number, const lane_head *root,
                         sessile_error *err)
{
    lane_head h = {.lane = number, .root_lane = root ? root->root_lane : number};
    sessile_status status = lane_seed_make(st, number, h.key, err);

    if (status)
        return status;
    memcpy(h.root, root ? root->root : h.key, sizeof h.root);
    return make_part(st, &h, err);
}

/* ------------------------------------------------------------------ writing */

/* The next part, which begins where the chain stands. Others may have made it. */
static sessile_status next_part(lane *l, sessile_error *err)
{
    lane_head h = l->head;
    sessile_status status;

    h.part++;
    h.epoch = l->chain.epoch;
    memcpy(h.key, l->chain.key, sizeof h.key);
    memcpy(h.before, l->chain.before, sizeof h.before);
    status = make_part(l->store, &h, err);
    if (status == SESSILE_EXISTS) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status ? status : open_last(l, err);
}

sessile_status lane_begin(lane *l, int timeout_ms, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    for (int i = 0; i < TRIES; i++) {
        if (l->stale)
            status = open_last(l, err);
        if (status)
            return status;
        log_set_timeout(l->log, timeout_ms);
        status = log_begin(l->log, visit, l, err);
        if (status && log_replaced(l->log)) {
            error_clear(err);
            status = SESSILE_OK;
            l->stale = 1; /* it was sealed again, with a new key */
            continue;
        }
        if (status) {
            l->stale = status == SESSILE_NOMEM;
            return status;
        }
        if (l->chain.tree.count || log_bytes(l->log) < l->bytes_most)
            return SESSILE_OK;
        log_end(l->log);
        status = next_part(l, err);
    }
    return status ? status
                  : fail(err, SESSILE_BUSY, "lane %" PRIu32 " of the audit is in use",
                         l->head.lane);
}

sessile_status lane_append(lane *l, const sessile_slice *texts, size_t count,
                           sessile_error *err)
{
    sessile_id first = log_count(l->log);
    sessile_status status = log_append(l->log, texts, count, 0, err);

    /* It is written: want of memory from here on is made up for at the next call. */
    for (size_t i = 0; !status && !l->stale && i < count; i++)
        l->stale = visit(l, first + (sessile_id)i, texts[i].data, texts[i].size, NULL) !=
                   SESSILE_OK;
    return status;
}

void lane_end(lane *l)
{
    log_end(l->log);
}

sessile_status lane_sync(lane *l, sessile_error *err)
{
    return log_sync(l->log, log_count(l->log), err);
}

/* ------------------------------------------------------------------ sealing */

int lane_is_open(const lane *l)
{
    /* the header of a part alone is nothing to seal */
    return l->chain.tree.count > (l->chain.first == 0);
}

int lane_is_due(const lane *l, int64_t now_ms)
{
    int64_t age = now_ms - l->chain.sealed_ms;

    return lane_is_open(l) && (l->chain.tree.count >= LANE_SEALED ||
                               age >= SEAL_AFTER_MS || age < -SEAL_AFTER_MS);
}

/* Under the lane's lock. *seed: of the next epoch. */
static sessile_status put_seal(lane *l, unsigned char *seed, sessile_error *err)
{
    store_core *st = l->store;
    unsigned char *next = seed_new(), key[SIGN_PUBLIC];
    sessile_status status;
    sessile_slice line;
    buf text;

    if (!next)
        return fail_nomem(err);
    memcpy(next, seed, SIGN_SEED);
    sign_evolve(next);
    sign_public(next, key);
    buf_init(&text, &st->alloc);
    seal_put(&text, &l->chain, log_count(l->log), st->os->now_ms(st->os->ud), seed, key);
    memcpy(seed, next, SIGN_SEED);
    seed_free(next);
    line = (sessile_slice){text.data, text.size};
    status = text.failed ? fail_nomem(err) : lane_append(l, &line, 1, err);
    buf_deinit(&text);
    return status;
}

sessile_status lane_seal(lane *l, int timeout_ms, sessile_error *err)
{
    unsigned char *seed = seed_new();
    char *blob = NULL;
    size_t size;
    uint64_t epoch = 0;
    int sealed = 0;
    sessile_status status = seed ? lane_begin(l, timeout_ms, err) : fail_nomem(err);

    if (!status && lane_is_open(l)) {
        status = lane_seed_get(l, seed, &blob, &size, err);
        epoch = l->chain.epoch + 1;
        if (!status)
            status = put_seal(l, seed, err);
        sealed = !status;
        lane_end(l);
    } else if (!status) {
        lane_end(l);
    }
    if (!status)
        status = lane_sync(l, err); /* also of what another has sealed */
    if (sealed && !status) {
        status = lane_seed_advance(l, epoch, seed, blob, size, err);
        blob = NULL;
    }
    host_free(blob);
    seed_free(seed);
    return status;
}
