/*
 * logkey.c: the data key of one log: drawn, wrapped into the header line, unwrapped.
 *
 * Owns these bytes of a sealed header, and no others:
 *
 *   {"id":"00000000","sessile":1,"suite":"S","epoch":N,"key":"B","commitment":"C"
 *
 * B = nonce ‖ seal(master key of epoch N; data key), additional data = the line before B;
 * C = BLAKE2b-256(key: data key; the line before `,"commitment"`). The line is read byte
 * for byte as it is written: no other spelling of the same JSON is a header. The
 * commitment ties every line to one key, which AEAD alone does not. The data key must
 * never be anywhere but in guarded memory.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define PREFIX       "{\"id\":\"00000000\",\"sessile\":1"
#define EPOCH_DIGITS 10

sessile_status logkey_new(logkey *out, const keyring *k, const char *user, buf *line,
                          sessile_error *err)
{
    unsigned char wrapped[64 + VAULT_KEY + VAULT_TAG];
    sessile_status status = SESSILE_OK;
    memset(out, 0, sizeof(*out));
    if (user != NULL && user[0] != '\0') {
        return fail(err, SESSILE_UNSUPPORTED, "users have no secrets of their own yet");
    }
    suite s = keyring_suite(k);
    uint64_t epoch = keyring_epoch(k);
    unsigned char *key = datakey_new(s);
    if (key == NULL) {
        return fail_nomem(err);
    }
    random_bytes(key, VAULT_KEY);
    buf_puts(line, ",\"suite\":\"");
    buf_puts(line, suite_name(s));
    buf_puts(line, "\",\"epoch\":");
    buf_put_u64(line, epoch);
    buf_puts(line, ",\"key\":\"");
    if (line->failed) {
        status = fail_nomem(err);
        goto out;
    }
    seal_bytes(s, keyring_master(k, epoch), line->data, line->size, key, VAULT_KEY,
               wrapped);
    base64_put(line, wrapped, suite_nonce_size(s) + VAULT_KEY + VAULT_TAG);
    buf_puts(line, "\"");
    if (line->failed) {
        status = fail_nomem(err);
        goto out;
    }
    hash256(out->commitment, line->data, line->size, key, VAULT_KEY);
    buf_puts(line, ",\"commitment\":\"");
    base64_put(line, out->commitment, VAULT_COMMITMENT);
    buf_puts(line, "\"");
    if (line->failed) {
        status = fail_nomem(err);
        goto out;
    }
    datakey_prepare(s, key);
    out->suite = s;
    out->key = key;
    key = NULL;
out:
    sodium_free(key);
    return status;
}

/* Reading byte for byte: `at` moves on over what is expected. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static int expect(cursor *c, const char *text)
{
    size_t size = strlen(text);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, text, size) != 0) {
        return -1;
    }
    c->at += size;
    return 0;
}

/* The text up to the next quote, which is stepped over. */
static int quoted(cursor *c, const char **text, size_t *size)
{
    const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
    if (quote == NULL) {
        return -1;
    }
    *text = c->at;
    *size = (size_t)(quote - c->at);
    c->at = quote + 1;
    return 0;
}

/* A number as buf_put_u64 prints it. */
static int number(cursor *c, uint64_t *out)
{
    const char *start = c->at;
    uint64_t n = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9' &&
           c->at - start < EPOCH_DIGITS) {
        n = n * 10 + (uint64_t)(*c->at++ - '0');
    }
    *out = n;
    return c->at == start || (*start == '0' && c->at - start > 1) ? -1 : 0;
}

sessile_status logkey_open(logkey *out, const keyring *k, const char *line, size_t size,
                           sessile_error *err)
{
    unsigned char wrapped[64 + VAULT_KEY + VAULT_TAG];
    unsigned char stated[VAULT_COMMITMENT + 3];
    unsigned char *key = NULL;
    const char *text;
    size_t text_size, head, body;
    uint64_t epoch;
    suite s;
    cursor c = {line, line + size};
    memset(out, 0, sizeof(*out));
    if (expect(&c, PREFIX ",\"suite\":\"") != 0 || quoted(&c, &text, &text_size) != 0) {
        goto damaged;
    }
    sessile_status status = suite_of(text, text_size, &s, err);
    if (status != SESSILE_OK) {
        return status;
    }
    if (expect(&c, ",\"epoch\":") != 0 || number(&c, &epoch) != 0) {
        goto damaged;
    }
    if (expect(&c, ",\"user\":\"") == 0) {
        return fail(
            err, SESSILE_UNSUPPORTED,
            "this log is sealed with a user's own secret, which this version cannot "
            "read: use a newer one");
    }
    if (expect(&c, ",\"key\":\"") != 0) {
        goto damaged;
    }
    head = (size_t)(c.at - line);
    size_t raw = suite_nonce_size(s) + VAULT_KEY + VAULT_TAG;
    if (quoted(&c, &text, &text_size) != 0 || text_size != base64_size(raw) ||
        text_size / 4 * 3 > sizeof(wrapped) ||
        base64_decode(wrapped, text, text_size) != (int64_t)raw) {
        goto damaged;
    }
    body = (size_t)(c.at - line);
    if (expect(&c, ",\"commitment\":\"") != 0 || quoted(&c, &text, &text_size) != 0 ||
        text_size != base64_size(VAULT_COMMITMENT) ||
        base64_decode(stated, text, text_size) != VAULT_COMMITMENT || c.at != c.end) {
        goto damaged;
    }
    const unsigned char *master = keyring_master(k, epoch);
    key = datakey_new(s);
    if (key == NULL) {
        return fail_nomem(err);
    }
    if (master == NULL || open_bytes(s, master, line, head, wrapped, raw, key) != 0) {
        sodium_free(key);
        return fail(
            err, SESSILE_SEALED,
            "this log's key does not open with this store's: the log is of another "
            "store, or its first line was changed");
    }
    hash256(out->commitment, line, body, key, VAULT_KEY);
    if (!same_bytes(out->commitment, stated, VAULT_COMMITMENT)) {
        goto damaged;
    }
    datakey_prepare(s, key);
    out->suite = s;
    out->key = key;
    return SESSILE_OK;
damaged:
    sodium_free(key);
    memset(out, 0, sizeof(*out));
    return fail(err, SESSILE_DAMAGED, "the first line is not that of a sealed log");
}

void logkey_deinit(logkey *k)
{
    if (k != NULL) {
        sodium_free(k->key); /* wipes; NULL is ignored */
        memset(k, 0, sizeof(*k));
    }
}
