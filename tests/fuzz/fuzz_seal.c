/*
 * fuzz_seal.c: whatever the entries of a lane or a proof say, the verifier holds.
 *
 * An input is a byte, then a proof ('p'), or lines, each the text of an entry. Holds: no
 * seal that is not spelled as the engine spells it is read; a chain whose key nobody has
 * follows no seal; a proof of that key is none.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "audit/lane.h"
#include "audit/verify.h"

static const char *const pieces[] = {
    "\"type\":\"seal\",\"source\":\"system\",\"data\":{\"lane\":0",
    "\"epoch\":0",
    "\"first\":\"00000000\"",
    "\"count\":1",
    "\"root\":\"",
    "\"hashes\":[",
    "\"signature\":\"",
    "\"metadata\":{\"lane\":0,\"part\":0,\"epoch\":0,\"root_lane\":0",
    "18446744073709551615",
    "\n",
    NULL};

const fuzz_about fuzz_this = {"seal", 20000, 1 << 13, pieces};

static void fuzz_proof(const char *data, size_t size)
{
    char key[SEAL_HEX];
    buf event;

    buf_init(&event, &allocator_default);
    if (!audit_check_proof(data, size, key, &event, &allocator_default, NULL))
        FUZZ_CHECK(event.size > 0 && strlen(key) == SEAL_HEX - 1);
    buf_deinit(&event);
}

static void fuzz_entry(seal_chain *c, const char *line, size_t size)
{
    sessile_error err = {0};
    lane_head head;
    buf text;
    seal s;

    buf_init(&text, &allocator_default);
    if (!json_check(&text, line, size, 64, NULL)) {
        if (!seal_read(&s, text.data, text.size, &allocator_default, &err))
            FUZZ_CHECK(seal_is_type(text.data, text.size, "seal"));
        else
            FUZZ_CHECK(err.code == SESSILE_DAMAGED);
        (void)lane_head_read(&head, text.data, text.size, &allocator_default, &err);
        if (seal_is_type(text.data, text.size, "seal"))
            FUZZ_CHECK(seal_chain_follow(c, text.data, text.size, 1, &err) ==
                       SESSILE_DAMAGED);
        else
            FUZZ_CHECK(seal_chain_add(c, text.data, text.size, &err) == SESSILE_OK);
    }
    buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data, size);
    const char *at = copy + 1, *end = copy + size;
    seal_chain chain;

    if (size && copy[0] == 'p') {
        fuzz_proof(at, size - 1);
    } else if (size) {
        seal_chain_init(&chain, 0, &allocator_default);
        while (at < end) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            stop = stop ? stop : end;
            fuzz_entry(&chain, at, (size_t)(stop - at));
            at = stop < end ? stop + 1 : end;
        }
        seal_chain_deinit(&chain);
    }
    free(copy);
    return 0;
}

/* A proof of the second epoch: with a chain, and as a receipt and as that of a lane. */
static void give_chained(fuzz_take take, void *arg, const char *event, const buf *link)
{
    static const unsigned char seed[SIGN_SEED] = {1}, second[SIGN_SEED] = {2};
    unsigned char key[SIGN_PUBLIC];
    char hex[SEAL_HEX];
    seal_chain chain;
    buf text, proof, all;

    sign_public(second, key);
    seal_chain_init(&chain, 0, &allocator_default);
    buf_init(&text, &allocator_default);
    buf_init(&proof, &allocator_default);
    buf_init(&all, &allocator_default);
    chain.epoch = 1;
    hash256(chain.before, link->data, link->size, NULL, 0);
    FUZZ_CHECK(!seal_chain_add(&chain, event, strlen(event), NULL));
    seal_put(&text, &chain, 1, 1000, second, key);
    sign_public(seed, key);
    hex_encode(hex, key, sizeof key);
    buf_puts(&proof, "{\"event\":");
    json_put_cstring(&proof, event);
    buf_puts(&proof, ",\"seal\":");
    json_put_string(&proof, text.data, text.size);
    buf_printf(&proof, ",\"hashes\":[],\"key\":\"%s\",\"chain\":[", hex);
    json_put_string(&proof, link->data, link->size);
    buf_puts(&proof, "]");
    buf_printf(&all, "%.*s}", (int)proof.size, proof.data);
    FUZZ_CHECK(
        !audit_check_proof(all.data, all.size, hex, NULL, &allocator_default, NULL));
    fuzz_give(take, arg, 'p', all.data, all.size);
    buf_printf(&proof, ",\"lane\":%.*s}", (int)all.size, all.data);
    fuzz_give(take, arg, 'p', proof.data, proof.size);
    buf_clear(&proof);
    buf_printf(&proof, "{\"sessile_erasure\":1,\"sessions\":1,\"proof\":%.*s}",
               (int)all.size, all.data);
    fuzz_give(take, arg, 'p', proof.data, proof.size);
    buf_deinit(&text);
    buf_deinit(&proof);
    buf_deinit(&all);
    seal_chain_deinit(&chain);
}

/* A seal and a proof by a seed that is known. */
void fuzz_seeds(fuzz_take take, void *arg)
{
    static const unsigned char seed[SIGN_SEED] = {1}, second[SIGN_SEED] = {2};
    unsigned char next[SIGN_PUBLIC];
    static const char event[] =
        "{\"id\":\"00000000\",\"parent_id\":\"00000000\",\"timestamp\":"
        "\"2026-01-02T03:04:05.678Z\",\"type\":\"event\","
        "\"source\":\"host\",\"data\":{\"operation\":\"turn\"}}";
    unsigned char key[SIGN_PUBLIC];
    char hex[SEAL_HEX];
    seal_chain chain;
    buf text, all;

    seal_chain_init(&chain, 0, &allocator_default);
    buf_init(&text, &allocator_default);
    buf_init(&all, &allocator_default);
    FUZZ_CHECK(!seal_chain_add(&chain, event, sizeof event - 1, NULL));
    sign_public(second, next);
    seal_put(&text, &chain, 1, 1000, seed, next);
    give_chained(take, arg, event, &text);
    buf_printf(&all, "%s\n%s", event, text.data);
    fuzz_give(take, arg, 'l', all.data, all.size);
    sign_public(seed, key);
    hex_encode(hex, key, sizeof key);
    buf_clear(&all);
    buf_puts(&all, "{\"event\":");
    json_put_cstring(&all, event);
    buf_puts(&all, ",\"seal\":");
    json_put_string(&all, text.data, text.size);
    buf_printf(&all, ",\"hashes\":[],\"key\":\"%s\"}", hex);
    FUZZ_CHECK(
        !audit_check_proof(all.data, all.size, hex, NULL, &allocator_default, NULL));
    fuzz_give(take, arg, 'p', all.data, all.size);
    buf_deinit(&text);
    buf_deinit(&all);
    seal_chain_deinit(&chain);
}
