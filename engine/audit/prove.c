/*
 * prove.c: proofs that an event is in the audit, which show nothing of other events.
 *
 * A proof is the event, the hashes beside its way to the Merkle root, and the seal that
 * signs the root. Whoever checks it needs no store and no key of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"
#include "audit/lane.h"
#include "audit/verify.h"
#include "session/handle.h"
#include "session/header.h"

/* ------------------------------------------------------------------ making */

typedef struct prover {
    const allocator *alloc;
    sessile_id wanted;
    buf event, seal, scratch;
    unsigned char (*leaves)[MERKLE_HASH]; /* of the epoch that is read */
    size_t count, capacity, at;
    unsigned char key[SIGN_PUBLIC]; /* of that epoch */
} prover;

static sessile_status take(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    prover *p = arg;
    sessile_status status = SESSILE_OK;
    lane_head head;
    seal s;

    if (p->seal.size)
        return SESSILE_OK; /* it is found */
    if (id == 0) {
        status = lane_head_read(&head, text, size, p->alloc, err);
        memcpy(p->key, head.key, sizeof p->key);
        p->count = 0;
        buf_clear(&p->event);
    } else if (seal_is_type(text, size, "seal")) {
        if (p->event.size) {
            buf_put(&p->seal, text, size);
            return p->seal.failed ? fail_nomem(err) : SESSILE_OK;
        }
        status = seal_read(&s, text, size, p->alloc, err);
        memcpy(p->key, s.next, sizeof p->key);
        p->count = 0;
        return status;
    }
    if (status)
        return status;
    if (mem_grow(p->alloc, (void **)&p->leaves, &p->capacity, p->count + 1,
                 sizeof *p->leaves) ||
        merkle_leaf(p->leaves[p->count], text, size, &p->scratch))
        return fail_nomem(err);
    if (id == p->wanted) {
        p->at = p->count;
        buf_put(&p->event, text, size);
    }
    p->count++;
    return p->event.failed ? fail_nomem(err) : SESSILE_OK;
}

static void put_proof(const prover *p, buf *out)
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
    hex_encode(hex, p->key, sizeof p->key);
    buf_printf(out, "],\"key\":\"%s\"}", hex);
}

sessile_status audit_prove(store_core *st, const char *id, buf *out, sessile_error *err)
{
    prover p = {.alloc = &st->alloc};
    const char *slash = strchr(id, '/');
    char name[LANE_NAME] = "";
    uint32_t lane, part;
    sessile_status status;
    log_tail tail;
    log_t *log = NULL;

    if (slash && (size_t)(slash - id) < sizeof name)
        memcpy(name, id, (size_t)(slash - id));
    if (!slash || id_parse(slash + 1, strlen(slash + 1), &p.wanted) ||
        lane_part_parse(name, &lane, &part))
        return fail(err, SESSILE_INVALID,
                    "an event is named by its log and its entry, as 00-000/0000002a");
    buf_init(&p.event, &st->alloc);
    buf_init(&p.seal, &st->alloc);
    buf_init(&p.scratch, &st->alloc);
    status = log_inspect(&log, &st->backend, st->keys, AUDIT_FOLDER, name,
                         session_read_depth(st), st->config.timeout_ms, NULL, take, &p,
                         &tail, &st->alloc, err);
    if (!status && !p.event.size)
        status = fail(err, SESSILE_NOTFOUND, "there is no event %.30s", id);
    else if (!status && !p.seal.size)
        status = fail(err, SESSILE_SUSPENDED,
                      "event %.30s is not sealed yet: seal the audit first", id);
    if (!status)
        put_proof(&p, out);
    if (!status && out->failed)
        status = fail_nomem(err);
    log_close(log);
    mem_free(&st->alloc, p.leaves, p.capacity * sizeof *p.leaves);
    buf_deinit(&p.event);
    buf_deinit(&p.seal);
    buf_deinit(&p.scratch);
    return status;
}

/* ------------------------------------------------------------------ checking */

static int get_hash(json value, unsigned char out[32])
{
    const char *text;
    size_t size;

    return json_plain(value, &text, &size) && size == 64 ? hex_decode(out, text, 32) : -1;
}

/* What is wrong with it, or NULL. */
static const char *wrong_with(json proof, const buf *event, const buf *seal_text,
                              unsigned char key[SIGN_PUBLIC], const allocator *a)
{
    unsigned char hashes[MERKLE_MOST][MERKLE_HASH], leaf[MERKLE_HASH], root[MERKLE_HASH];
    json_iter it = json_begin(json_get(proof, "hashes"));
    size_t count = 0;
    buf scratch;
    int failed;
    entry e;
    seal s;

    if (get_hash(json_get(proof, "key"), key) ||
        seal_read(&s, seal_text->data, seal_text->size, a, NULL))
        return "it has no key or no seal";
    while (json_next(&it))
        if (count == MERKLE_MOST || get_hash(it.value, hashes[count++]))
            return "its hashes are none";
    buf_init(&scratch, a);
    failed = json_check(&scratch, event->data, event->size, 64, NULL) ||
             entry_read(&e, event->data, event->size, NULL);
    if (!failed)
        failed = merkle_leaf(leaf, event->data, event->size, &scratch);
    buf_deinit(&scratch);
    if (failed || e.id < s.first)
        return "it has no event of that seal";
    if (merkle_follow(leaf, e.id - s.first, s.count,
                      (const unsigned char(*)[MERKLE_HASH])hashes, count, root) ||
        memcmp(root, s.root, sizeof root) != 0)
        return "the event is not one that was sealed";
    return seal_is_signed(&s, key, a) ? NULL : "the seal is not signed by that key";
}

sessile_status audit_check_proof(const char *proof, size_t size, char key[SEAL_HEX],
                                 buf *event, const allocator *a, sessile_error *err)
{
    unsigned char raw[SIGN_PUBLIC];
    buf text, said, seal_text, seal_checked;
    const char *wrong = "it is not JSON";
    json whole;

    buf_init(&text, a);
    buf_init(&said, a);
    buf_init(&seal_text, a);
    buf_init(&seal_checked, a);
    if (!json_check(&text, proof, size, 8, NULL)) {
        whole = json_of(text.data, text.size);
        wrong = "it has no event or no seal";
        if (!json_string(&said, json_get(whole, "event")) &&
            !json_string(&seal_text, json_get(whole, "seal")) && said.size &&
            !json_check(&seal_checked, seal_text.data, seal_text.size, 8, NULL))
            wrong = wrong_with(whole, &said, &seal_text, raw, a);
    }
    if (!wrong)
        hex_encode(key, raw, sizeof raw);
    if (!wrong && event)
        buf_put(event, said.data, said.size);
    buf_deinit(&text);
    buf_deinit(&said);
    buf_deinit(&seal_text);
    buf_deinit(&seal_checked);
    if (wrong)
        return fail(err, SESSILE_DAMAGED, "the proof does not hold: %s", wrong);
    return event && event->failed ? fail_nomem(err) : SESSILE_OK;
}
