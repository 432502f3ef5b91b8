/*
 * seal.c: what a seal says, and whether it is the next one.
 *
 * The text of a seal is an entry:
 *
 *   {"id":"0000000a","parent_id":"00000000","timestamp":"…","type":"seal",
 *    "source":"system","data":{"lane":0,"epoch":3,"first":"00000004","count":6,"root":"…",
 *    "before":"…","next":"…","signature":"…"}}
 *
 * on one line. root, before, next are 64 hex digits, signature 128: Ed25519 over every
 * byte of the text before `,"signature"`. before is BLAKE2b-256 of the text of the seal
 * before it, or zeros. What is read is written again and compared, so that a seal has one
 * spelling: no bit of it can change unseen.
 */
#include "audit/seal.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "codec/entry.h"

void seal_chain_init(seal_chain *c, uint32_t lane, const allocator *a)
{
    memset(c, 0, sizeof *c);
    c->lane = lane;
    buf_init(&c->scratch, a);
}

void seal_chain_deinit(seal_chain *c)
{
    buf_deinit(&c->scratch);
}

sessile_status seal_chain_add(seal_chain *c, const char *text, size_t size,
                              sessile_error *err)
{
    unsigned char leaf[MERKLE_HASH];

    if (merkle_leaf(leaf, text, size, &c->scratch))
        return fail_nomem(err);
    merkle_add(&c->tree, leaf);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ text */

static void put_hex(buf *out, const char *name, const unsigned char *bytes, size_t size)
{
    char hex[2 * SIGN_BYTES + 1];

    hex_encode(hex, bytes, size);
    buf_printf(out, ",\"%s\":\"%s\"", name, hex);
}

/* The text without its signature: up to `,"signature"`. */
static void put_signed(buf *out, const seal *s)
{
    char time[TIME_SIZE];

    time_print(s->time_ms, time);
    buf_printf(out,
               "{\"id\":\"%08" PRIx32
               "\",\"parent_id\":\"00000000\",\"timestamp\":\"%s\",\"type\":\"seal\","
               "\"source\":\"system\",\"data\":{\"lane\":%" PRIu32 ",\"epoch\":%" PRIu64
               ",\"first\":\"%08" PRIx32 "\",\"count\":%" PRIu64,
               s->id, time, s->lane, s->epoch, s->first, s->count);
    put_hex(out, "root", s->root, sizeof s->root);
    put_hex(out, "before", s->before, sizeof s->before);
    put_hex(out, "next", s->next, sizeof s->next);
}

static void put_rest(buf *out, const seal *s)
{
    put_hex(out, "signature", s->signature, sizeof s->signature);
    buf_puts(out, "}}");
}

void seal_put(buf *out, const seal_chain *c, sessile_id id, int64_t now_ms,
              const unsigned char seed[SIGN_SEED], const unsigned char next[SIGN_PUBLIC])
{
    seal s = {.id = id,
              .time_ms = now_ms,
              .lane = c->lane,
              .epoch = c->epoch,
              .first = c->first,
              .count = c->tree.count};
    size_t from = out->size;

    merkle_root(&c->tree, s.root);
    memcpy(s.before, c->before, sizeof s.before);
    memcpy(s.next, next, sizeof s.next);
    put_signed(out, &s);
    if (out->failed)
        return;
    sign_make(seed, out->data + from, out->size - from, s.signature);
    put_rest(out, &s);
}

static int get_hex(json data, const char *name, unsigned char *out, size_t size)
{
    const char *text;
    size_t n;

    return json_plain(json_get(data, name), &text, &n) && n == 2 * size
               ? hex_decode(out, text, size)
               : -1;
}

/* 0; -1: some member is missing, or not of its type. */
static int get_members(seal *s, const entry *e)
{
    const char *first;
    size_t size;
    uint64_t lane;

    s->id = e->id;
    s->time_ms = e->time_ms;
    if (json_uint(json_get(e->data, "lane"), &lane) || lane > UINT32_MAX ||
        json_uint(json_get(e->data, "epoch"), &s->epoch) ||
        json_uint(json_get(e->data, "count"), &s->count) ||
        !json_plain(json_get(e->data, "first"), &first, &size) ||
        id_parse(first, size, &s->first))
        return -1;
    s->lane = (uint32_t)lane;
    return get_hex(e->data, "root", s->root, sizeof s->root) ||
                   get_hex(e->data, "before", s->before, sizeof s->before) ||
                   get_hex(e->data, "next", s->next, sizeof s->next) ||
                   get_hex(e->data, "signature", s->signature, sizeof s->signature)
               ? -1
               : 0;
}

sessile_status seal_read(seal *out, const char *text, size_t size, const allocator *a,
                         sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    entry e;
    buf again;

    memset(out, 0, sizeof *out);
    if (entry_read(&e, text, size, NULL) || e.type != ENTRY_SEAL || get_members(out, &e))
        return fail(err, SESSILE_DAMAGED, "it is not written as seals are");
    buf_init(&again, a);
    put_signed(&again, out);
    put_rest(&again, out);
    if (again.failed)
        status = fail_nomem(err);
    else if (again.size != size || memcmp(again.data, text, size) != 0)
        status = fail(err, SESSILE_DAMAGED, "it is not written as seals are");
    buf_deinit(&again);
    return status;
}

int seal_is_signed(const seal *s, const unsigned char key[SIGN_PUBLIC],
                   const allocator *a)
{
    int holds;
    buf text;

    buf_init(&text, a);
    put_signed(&text, s);
    holds = !text.failed && sign_holds(key, text.data, text.size, s->signature);
    buf_deinit(&text);
    return holds;
}

/* ------------------------------------------------------------------ the chain */

/* What is wrong with a seal; NULL: it is the next one. */
static const char *wrong_with(const seal_chain *c, const seal *s)
{
    unsigned char root[MERKLE_HASH];

    if (s->lane != c->lane)
        return "it is a seal of another lane";
    if (s->epoch < c->epoch)
        return "its epoch was sealed before";
    if (s->epoch > c->epoch)
        return "a seal before it is missing";
    if (!c->tree.count)
        return "it seals nothing";
    if (s->first != c->first || s->count != c->tree.count)
        return "it does not seal the entries that stand before it: some are missing, or "
               "are not the ones that were sealed";
    if (memcmp(s->before, c->before, sizeof s->before) != 0)
        return "the seal before it is another one than it says";
    merkle_root(&c->tree, root);
    if (memcmp(s->root, root, sizeof root) != 0)
        return "an entry that it seals was changed, added, removed or moved";
    if (!seal_is_signed(s, c->key, c->scratch.alloc))
        return "its signature is not by the key of its epoch";
    return NULL;
}

sessile_status seal_chain_follow(seal_chain *c, const char *text, size_t size, int verify,
                                 sessile_error *err)
{
    seal s;
    sessile_status status = seal_read(&s, text, size, c->scratch.alloc, err);
    const char *wrong = status || !verify ? NULL : wrong_with(c, &s);

    if (wrong)
        status = fail(err, SESSILE_DAMAGED, "%s", wrong);
    if (status)
        return status;
    hash256(c->before, text, size, NULL, 0);
    memcpy(c->key, s.next, sizeof c->key);
    c->epoch = s.epoch + 1;
    c->first = s.id + 1;
    c->sealed_ms = s.time_ms;
    merkle_init(&c->tree);
    return SESSILE_OK;
}

int seal_is_type(const char *text, size_t size, const char *type)
{
    static const char before[] =
        "{\"id\":\"00000000\",\"parent_id\":\"00000000\",\"timestamp\":"
        "\"2026-01-02T03:04:05.678Z\",\"type\":\"";
    size_t at = sizeof before - 1, n = strlen(type);

    return size > at + n && !memcmp(text + at, type, n) && text[at + n] == '"';
}
