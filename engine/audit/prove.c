/*
 * prove.c: proofs that an event is in the audit, which show nothing of other events.
 *
 * A proof is the event, the hashes beside its way to the Merkle root, the seal that signs
 * the root, and the seals before that one: each is signed by the key that the one before
 * it names, and the first by the first key of the lane. Of a lane other than the root,
 * a proof of the entry in which the root lane names that key is part of it. So whoever
 * has the root key checks all of it, without the store.
 *
 * The chain is left out when it is longer than CHAIN_MOST, or when the retention has
 * removed its beginning; such a proof rests on the key of its own seal.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"
#include "audit/lane.h"
#include "audit/parts.h"
#include "audit/verify.h"
#include "session/handle.h"
#include "session/header.h"

/* Seals before that of the event: about 600 bytes each. */
enum { CHAIN_MOST = 10000 };

/* ------------------------------------------------------------------ making */

typedef struct prover {
    store_core *store;
    uint32_t lane;
    int is_wanted_part;                   /* the one that is read has the event */
    sessile_id wanted;                    /* SESSILE_NO_ID: the entry that names a lane */
    uint32_t named;                       /* that lane, */
    unsigned char named_key[SIGN_PUBLIC]; /* and its first key */
    buf event, seal, chain, scratch;
    unsigned char (*leaves)[MERKLE_HASH]; /* of the epoch that is read */
    size_t count, capacity, at;
    unsigned char key[SIGN_PUBLIC];   /* of the epoch that is read */
    unsigned char first[SIGN_PUBLIC]; /* that the chain begins with */
    size_t links;                     /* of the chain */
    int is_whole;                     /* the chain begins where the lane does */
    uint32_t root_lane;
} prover;

static void prover_init(prover *p, store_core *st, uint32_t lane)
{
    memset(p, 0, sizeof *p);
    p->store = st;
    p->lane = lane;
    buf_init(&p->event, &st->alloc);
    buf_init(&p->seal, &st->alloc);
    buf_init(&p->chain, &st->alloc);
    buf_init(&p->scratch, &st->alloc);
}

static void prover_deinit(prover *p)
{
    mem_free(&p->store->alloc, p->leaves, p->capacity * sizeof *p->leaves);
    buf_deinit(&p->event);
    buf_deinit(&p->seal);
    buf_deinit(&p->chain);
    buf_deinit(&p->scratch);
}

/* 1: it names the lane that is looked for, with that key. */
static int names_lane(const prover *p, const char *text, size_t size)
{
    unsigned char key[SIGN_PUBLIC];
    const char *hex;
    uint64_t number;
    size_t n;
    entry e;

    return seal_is_type(text, size, "lane") && !entry_read(&e, text, size, NULL) &&
           !json_uint(json_get(e.data, "lane"), &number) && number == p->named &&
           json_plain(json_get(e.data, "key"), &hex, &n) && n == 2 * sizeof key &&
           !hex_decode(key, hex, sizeof key) && !memcmp(key, p->named_key, sizeof key);
}

static sessile_status begin_part(prover *p, const char *text, size_t size,
                                 sessile_error *err)
{
    lane_head head;
    sessile_status status = lane_head_read(&head, text, size, &p->store->alloc, err);

    if (status)
        return status;
    memcpy(p->key, head.key, sizeof p->key);
    p->root_lane = head.root_lane;
    p->count = 0;
    buf_clear(&p->event);
    if (!p->links)
        memcpy(p->first, head.key, sizeof p->first);
    return SESSILE_OK;
}

/* The seal of the event ends the search; one before it is a link of the chain. */
static sessile_status take_seal(prover *p, const char *text, size_t size,
                                sessile_error *err)
{
    sessile_status status;
    seal s;

    if (p->event.size) {
        buf_put(&p->seal, text, size);
        return p->seal.failed ? fail_nomem(err) : SESSILE_OK;
    }
    status = seal_read(&s, text, size, &p->store->alloc, err);
    memcpy(p->key, s.next, sizeof p->key);
    p->count = 0;
    if (p->links == CHAIN_MOST) {
        buf_clear(&p->chain);
        memcpy(p->first, s.next, sizeof p->first);
        p->links = 0;
        p->is_whole = 0;
        return status;
    }
    if (p->links++)
        buf_putc(&p->chain, ',');
    json_put_string(&p->chain, text, size);
    return !status && p->chain.failed ? fail_nomem(err) : status;
}

static sessile_status take(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    prover *p = arg;
    sessile_status status;

    if (p->seal.size)
        return SESSILE_OK; /* it is found */
    if (id == 0) {
        status = begin_part(p, text, size, err);
        if (status)
            return status;
    } else if (seal_is_type(text, size, "seal")) {
        return take_seal(p, text, size, err);
    }
    if (!p->is_wanted_part)
        return SESSILE_OK;
    if (mem_grow(&p->store->alloc, (void **)&p->leaves, &p->capacity, p->count + 1,
                 sizeof *p->leaves) ||
        merkle_leaf(p->leaves[p->count], text, size, &p->scratch))
        return fail_nomem(err);
    if (p->wanted == SESSILE_NO_ID ? !p->event.size && names_lane(p, text, size)
                                   : id == p->wanted) {
        p->at = p->count;
        buf_put(&p->event, text, size);
    }
    p->count++;
    return p->event.failed ? fail_nomem(err) : SESSILE_OK;
}

static sessile_status read_part(prover *p, uint32_t part, sessile_error *err)
{
    store_core *st = p->store;
    char name[LANE_NAME];
    log_tail tail;
    log_t *log = NULL;
    sessile_status status;

    lane_part_name(p->lane, part, name);
    status = log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                         session_read_depth(st), st->config.timeout_ms, NULL, take, p,
                         &tail, &st->alloc, err);
    log_close(log);
    return status;
}

/* 1: the chain that leads to this part is all there, and not too long. */
static int has_chain(store_core *st, uint32_t lane, uint32_t part)
{
    sessile_error why;
    lane_parts parts;
    lane_head head;

    return !lane_parts_find(&parts, st, &why) && parts.there[lane] &&
           parts.first[lane] == 0 && !lane_part_peek(&head, st, lane, part, &why) &&
           head.epoch <= CHAIN_MOST;
}

static void put_proof(const prover *p, const buf *lane, buf *out)
{
    unsigned char proof[MERKLE_MOST][MERKLE_HASH];
    size_t size = merkle_prove((const unsigned char(*)[MERKLE_HASH])p->leaves, p->count,
                               p->at, proof);
    char hex[SEAL_HEX];

    buf_puts(out, "{\"event\":");
    json_put_string(out, p->event.data, p->event.size);
    buf_puts(out, ",\"seal\":");
    json_put_string(out, p->seal.data, p->seal.size);
    buf_puts(out, ",\"hashes\":[");
    for (size_t i = 0; i < size; i++) {
        hex_encode(hex, proof[i], MERKLE_HASH);
        buf_printf(out, "%s\"%s\"", i ? "," : "", hex);
    }
    hex_encode(hex, p->first, sizeof p->first);
    buf_printf(out, "],\"key\":\"%s\",\"chain\":[", hex);
    buf_put(out, p->chain.data, p->chain.size);
    buf_putc(out, ']');
    if (lane->size) {
        buf_puts(out, ",\"lane\":");
        buf_put(out, lane->data, lane->size);
    }
    buf_putc(out, '}');
}

/* A proof of the entry in which the root lane names the lane of p. Nothing is appended
 * when the root key does not prove it. */
static sessile_status prove_lane(const prover *p, buf *out, sessile_error *err)
{
    store_core *st = p->store;
    lane_parts parts;
    const buf none = {0};
    prover root;
    sessile_status status = lane_parts_find(&parts, st, err);

    if (status || p->root_lane >= LANE_MOST || !parts.there[p->root_lane] ||
        parts.first[p->root_lane])
        return status;
    prover_init(&root, st, p->root_lane);
    root.wanted = SESSILE_NO_ID;
    root.named = p->lane;
    root.is_wanted_part = root.is_whole = 1;
    memcpy(root.named_key, p->first, sizeof root.named_key);
    for (uint32_t part = 0;
         !status && !root.seal.size && part <= parts.last[p->root_lane]; part++)
        status = read_part(&root, part, err);
    if (!status && root.seal.size && root.is_whole)
        put_proof(&root, &none, out);
    prover_deinit(&root);
    return status;
}

/* Appends the proof of an entry of a part. */
static sessile_status prove(prover *p, uint32_t part, buf *out, sessile_error *err)
{
    uint32_t first = has_chain(p->store, p->lane, part) ? 0 : part;
    sessile_status status = SESSILE_OK;
    buf lane;

    p->is_whole = first == 0;
    for (uint32_t i = first; !status && i <= part; i++) {
        p->is_wanted_part = i == part;
        status = read_part(p, i, err);
    }
    if (status || !p->event.size || !p->seal.size)
        return status;
    buf_init(&lane, &p->store->alloc);
    if (p->is_whole && p->root_lane != p->lane)
        status = prove_lane(p, &lane, err);
    if (!status)
        put_proof(p, &lane, out);
    buf_deinit(&lane);
    return status;
}

sessile_status audit_prove(store_core *st, const char *id, buf *out, sessile_error *err)
{
    const char *slash = strchr(id, '/');
    char name[LANE_NAME] = "";
    uint32_t lane, part;
    sessile_status status;
    sessile_id wanted;
    prover p;

    if (slash && (size_t)(slash - id) < sizeof name)
        memcpy(name, id, (size_t)(slash - id));
    if (!slash || id_parse(slash + 1, strlen(slash + 1), &wanted) ||
        lane_part_parse(name, &lane, &part))
        return fail(err, SESSILE_INVALID,
                    "an event is named by its log and its entry, as 00-000/0000002a");
    prover_init(&p, st, lane);
    p.wanted = wanted;
    status = prove(&p, part, out, err);
    if (!status && !p.event.size)
        status = fail(err, SESSILE_NOTFOUND, "there is no event %.30s", id);
    else if (!status && !p.seal.size)
        status = fail(err, SESSILE_SUSPENDED,
                      "event %.30s is not sealed yet: seal the audit first", id);
    if (!status && out->failed)
        status = fail_nomem(err);
    prover_deinit(&p);
    return status;
}
