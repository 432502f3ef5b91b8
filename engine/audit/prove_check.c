/*
 * prove_check.c: checks a proof, or the receipt of an erasure, without any store.
 *
 * Whatever a proof says is unproven until a signature says so: the seal signs the event,
 * the seals of the chain lead from the key in the proof to that seal, and the proof of
 * the lane leads from the root key to that key. Which key it all rests on is what the
 * caller gets, and compares with the one that was kept.
 */
#include <string.h>

#include "base/text.h"
#include "codec/entry.h"
#include "audit/verify.h"

enum { PROOF_DEPTH = 8 };

/* A proof that is checked. */
typedef struct checked {
    const allocator *alloc;
    unsigned char key[SIGN_PUBLIC]; /* that vouches for it */
    seal seal;
    buf event, seal_text;
} checked;

static void checked_init(checked *c, const allocator *a)
{
    memset(c, 0, sizeof *c);
    c->alloc = a;
    buf_init(&c->event, a);
    buf_init(&c->seal_text, a);
}

static void checked_deinit(checked *c)
{
    buf_deinit(&c->event);
    buf_deinit(&c->seal_text);
}

static int get_hash(json value, unsigned char out[32])
{
    const char *text;
    size_t size;

    return json_plain(value, &text, &size) && size == 64 ? hex_decode(out, text, 32) : -1;
}

/* A string that holds JSON as the engine writes it. 0, -1. */
static int get_text(buf *out, json value, const allocator *a)
{
    buf again;
    int bad;

    buf_clear(out);
    buf_init(&again, a);
    bad = json_string(out, value) || !out->size ||
          json_check(&again, out->data, out->size, PROOF_DEPTH, NULL);
    buf_deinit(&again);
    return bad ? -1 : 0;
}

/* What is wrong with the seals before that of the event, or NULL. *key: the first key;
 * becomes the one that has to sign the last seal. */
static const char *follow_chain(json proof, const checked *c,
                                unsigned char key[SIGN_PUBLIC])
{
    json_iter it = json_begin(json_get(proof, "chain"));
    unsigned char before[MERKLE_HASH] = {0};
    const char *wrong = NULL;
    uint64_t epoch = 0;
    size_t links = 0;
    buf text;

    buf_init(&text, c->alloc);
    for (; !wrong && json_next(&it); links++) {
        seal s;
        if (get_text(&text, it.value, c->alloc) ||
            seal_read(&s, text.data, text.size, c->alloc, NULL))
            wrong = "a seal of its chain is none";
        else if (s.lane != c->seal.lane || (links && s.epoch != epoch) ||
                 (links && memcmp(s.before, before, sizeof before)) ||
                 !seal_is_signed(&s, key, c->alloc))
            wrong = "a seal of its chain does not follow the one before it";
        epoch = s.epoch + 1;
        memcpy(key, s.next, sizeof s.next);
        hash256(before, text.data, text.size, NULL, 0);
    }
    buf_deinit(&text);
    if (!wrong && links &&
        (c->seal.epoch != epoch || memcmp(c->seal.before, before, sizeof before) != 0))
        wrong = "its seal does not follow its chain";
    return wrong;
}

/* What is wrong with the event, or NULL. */
static const char *check_event(json proof, const checked *c)
{
    unsigned char hashes[MERKLE_MOST][MERKLE_HASH], leaf[MERKLE_HASH], root[MERKLE_HASH];
    json_iter it = json_begin(json_get(proof, "hashes"));
    size_t count = 0;
    buf scratch;
    int failed;
    entry e;

    while (json_next(&it))
        if (count == MERKLE_MOST || get_hash(it.value, hashes[count++]))
            return "its hashes are none";
    buf_init(&scratch, c->alloc);
    failed = entry_read(&e, c->event.data, c->event.size, NULL) ||
             merkle_leaf(leaf, c->event.data, c->event.size, &scratch);
    buf_deinit(&scratch);
    if (failed || e.id < c->seal.first)
        return "it has no event of that seal";
    return merkle_follow(leaf, e.id - c->seal.first, c->seal.count,
                         (const unsigned char(*)[MERKLE_HASH])hashes, count, root) ||
                   memcmp(root, c->seal.root, sizeof root) != 0
               ? "the event is not one that was sealed"
               : NULL;
}

/* What is wrong with a proof, but for what vouches for its lane; or NULL. */
static const char *check_one(json proof, checked *c)
{
    unsigned char key[SIGN_PUBLIC];
    const char *wrong;

    if (get_text(&c->event, json_get(proof, "event"), c->alloc) ||
        get_text(&c->seal_text, json_get(proof, "seal"), c->alloc))
        return "it has no event or no seal";
    if (get_hash(json_get(proof, "key"), key) ||
        seal_read(&c->seal, c->seal_text.data, c->seal_text.size, c->alloc, NULL))
        return "it has no key or no seal";
    memcpy(c->key, key, sizeof key);
    wrong = follow_chain(proof, c, key);
    if (!wrong)
        wrong = check_event(proof, c);
    return wrong ? wrong
           : seal_is_signed(&c->seal, key, c->alloc)
               ? NULL
               : "the seal is not signed by that key";
}

/* The lane of the proof is named, with its first key, by an entry that is proven, too. */
static const char *check_lane(json proof, checked *c)
{
    json lane = json_get(proof, "lane");
    unsigned char key[SIGN_PUBLIC];
    const char *wrong;
    uint64_t number;
    checked by;
    entry e;

    if (lane.type == JSON_NONE)
        return NULL;
    checked_init(&by, c->alloc);
    wrong = check_one(lane, &by);
    if (!wrong &&
        (!seal_is_type(by.event.data, by.event.size, "lane") ||
         entry_read(&e, by.event.data, by.event.size, NULL) ||
         json_uint(json_get(e.data, "lane"), &number) || number != c->seal.lane ||
         get_hash(json_get(e.data, "key"), key) || memcmp(key, c->key, sizeof key) != 0))
        wrong = "nothing proves the first key of its lane";
    memcpy(c->key, by.key, sizeof by.key);
    checked_deinit(&by);
    return wrong;
}

/* A receipt of an erasure: what it says is what the event says, which has the hash of it.
 */
static const char *check_receipt(json receipt, const checked *c)
{
    char hex[AUDIT_RECEIPT_HASH];
    entry e;

    if (entry_read(&e, c->event.data, c->event.size, NULL) ||
        !seal_is_type(c->event.data, c->event.size, "event") ||
        !json_is(json_get(e.data, "operation"), "erase") ||
        !json_is(json_get(e.data, "outcome"), "success"))
        return "its event is not that of an erasure";
    return audit_receipt_hash(receipt, hex, c->alloc) ||
                   !json_is(json_get(json_get(e.data, "details"), "receipt"), hex)
               ? "the receipt says something else than its event"
               : NULL;
}

int audit_receipt_hash(json receipt, char out[AUDIT_RECEIPT_HASH], const allocator *a)
{
    unsigned char hash[32];
    json_iter it = json_begin(receipt);
    int failed;
    buf text;

    buf_init(&text, a);
    while (json_next(&it))
        if (!json_is(it.key, "event") && !json_is(it.key, "proof")) {
            buf_putc(&text, text.size ? ',' : '{');
            buf_put(&text, it.key.at, it.key.size);
            buf_putc(&text, ':');
            buf_put(&text, it.value.at, it.value.size);
        }
    buf_putc(&text, '}');
    failed = text.failed;
    if (!failed) {
        hash256(hash, text.data, text.size, NULL, 0);
        hex_encode(out, hash, sizeof hash);
    }
    buf_deinit(&text);
    return failed ? -1 : 0;
}

static const char *check_whole(json whole, checked *c)
{
    int is_receipt = json_get(whole, "sessile_erasure").type != JSON_NONE;
    json proof = is_receipt ? json_get(whole, "proof") : whole;
    const char *wrong;

    if (proof.type != JSON_OBJECT)
        return is_receipt ? "it is a receipt without a proof" : "it is no object";
    wrong = check_one(proof, c);
    if (!wrong)
        wrong = check_lane(proof, c);
    return !wrong && is_receipt ? check_receipt(whole, c) : wrong;
}

sessile_status audit_check_proof(const char *proof, size_t size, char key[SEAL_HEX],
                                 buf *event, const allocator *a, sessile_error *err)
{
    const char *wrong = "it is not JSON";
    checked c;
    buf text;

    buf_init(&text, a);
    checked_init(&c, a);
    if (!json_check(&text, proof, size, PROOF_DEPTH, NULL))
        wrong = check_whole(json_of(text.data, text.size), &c);
    if (!wrong)
        hex_encode(key, c.key, sizeof c.key);
    if (!wrong && event)
        buf_put(event, c.event.data, c.event.size);
    buf_deinit(&text);
    checked_deinit(&c);
    if (wrong)
        return fail(err, SESSILE_DAMAGED, "the proof does not hold: %s", wrong);
    return event && event->failed ? fail_nomem(err) : SESSILE_OK;
}
