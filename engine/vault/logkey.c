/*
 * logkey.c: the data key of one log: drawn, wrapped into the header line, unwrapped.
 *
 * Owns these bytes of a sealed header, and no others:
 *
 *   {"id":"00000000","sessile":1,"suite":"S","epoch":N,"key":"B","commitment":"C"
 *   {"id":"00000000","sessile":1,"suite":"S","epoch":N,"user":"U","key":"B","commitment":"C"
 *
 * B = nonce ‖ seal(W; data key), additional data = the line before B; W is the master key
 * of epoch N, or the secret in the blob U, which is user-HASH-N. C = BLAKE2b-256(key:
 * data key; the line before `,"commitment"`). The line is read byte for byte as it is
 * written: no other spelling of the same JSON is a header. The commitment ties every line
 * to one key, which AEAD alone does not. The data key must never be anywhere but in
 * guarded memory, nor must W.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define PREFIX       "{\"id\":\"00000000\",\"sessile\":1"
#define EPOCH_DIGITS 10

#define USER_SIZE (sizeof USER_PREFIX - 1 + 52) /* base32 of 32 bytes */

/* The key that wraps the data key: the master key, or the user's secret in *own (guarded;
 * the caller frees it). *again: see user_secret_open(). */
static sessile_status wrapper(const keyring *k, const char *user, uint64_t epoch,
                              const unsigned char *master_key, int make,
                              const unsigned char **out, unsigned char **own, int *again,
                              sessile_error *err)
{
    *out = master_key;
    *own = NULL;
    *again = 0;
    if (user[0] == '\0')
        return SESSILE_OK;
    *own = sodium_malloc(VAULT_KEY);
    if (!*own)
        return fail_nomem(err);
    *out = *own;
    return make ? user_secret_make(k, user, epoch, master_key, *own, err)
                : user_secret_open(k, user, epoch, master_key, *own, again, err);
}

static void put_wrap(buf *line, suite s, uint64_t epoch, const char *user)
{
    buf_puts(line, ",\"suite\":\"");
    buf_puts(line, suite_name(s));
    buf_puts(line, "\",\"epoch\":");
    buf_put_u64(line, epoch);
    if (user[0] != '\0') {
        buf_puts(line, ",\"user\":\"");
        buf_puts(line, user);
        buf_puts(line, "-");
        buf_put_u64(line, epoch);
        buf_puts(line, "\"");
    }
    buf_puts(line, ",\"key\":\"");
}

sessile_status logkey_new(logkey *out, const keyring *k, const char *user, buf *line,
                          sessile_error *err)
{
    unsigned char wrapped[64 + VAULT_KEY + VAULT_TAG];
    unsigned char *key = NULL, *own = NULL;
    const unsigned char *master_key, *with;
    uint64_t epoch;
    suite s;
    int again;
    user = user ? user : "";
    memset(out, 0, sizeof *out);
    sessile_status status = keyring_current(k, &s, &epoch, &master_key, err);
    if (!status)
        status = wrapper(k, user, epoch, master_key, 1, &with, &own, &again, err);
    if (status)
        goto out;
    key = datakey_new(s);
    put_wrap(line, s, epoch, user);
    if (!key || line->failed) {
        status = fail_nomem(err);
        goto out;
    }
    random_bytes(key, VAULT_KEY);
    seal_bytes(s, with, line->data, line->size, key, VAULT_KEY, wrapped);
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
    out->epoch = epoch;
    memcpy(out->user, user, strlen(user) + 1);
    out->key = key;
    key = NULL;
out:
    sodium_free(key);
    sodium_free(own);
    return status;
}

/* Reading byte for byte: `at` moves on over what is expected. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static int expect(cursor *c, const char *text)
{
    size_t size = strlen(text);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, text, size) != 0)
        return -1;
    c->at += size;
    return 0;
}

/* The text up to the next quote, which is stepped over. */
static int quoted(cursor *c, const char **text, size_t *size)
{
    const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
    if (!quote)
        return -1;
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
           c->at - start < EPOCH_DIGITS)
        n = n * 10 + (uint64_t)(*c->at++ - '0');
    *out = n;
    return c->at == start || (*start == '0' && c->at - start > 1) ? -1 : 0;
}

/* `user-HASH-N"`: N must be the line's epoch. */
static int read_user(cursor *c, uint64_t epoch, char out[NAME_SIZE])
{
    const char *text;
    size_t size;
    uint64_t n;
    if (quoted(c, &text, &size) != 0 || size < USER_SIZE + 2 ||
        memcmp(text, USER_PREFIX, sizeof USER_PREFIX - 1) != 0 || text[USER_SIZE] != '-')
        return -1;
    for (size_t i = sizeof USER_PREFIX - 1; i < USER_SIZE; i++)
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '2' && text[i] <= '7')))
            return -1;
    cursor digits = {text + USER_SIZE + 1, text + size};
    if (number(&digits, &n) != 0 || digits.at != digits.end || n != epoch)
        return -1;
    memcpy(out, text, USER_SIZE);
    out[USER_SIZE] = '\0';
    return 0;
}

/* Everything up to the base64 of the key. suite_text: what it says of its suite. */
static int read_wrap(cursor *c, logkey_about *out, const char **suite_text,
                     size_t *suite_size)
{
    memset(out, 0, sizeof *out);
    if (expect(c, PREFIX ",\"suite\":\"") != 0 ||
        quoted(c, suite_text, suite_size) != 0 || expect(c, ",\"epoch\":") != 0 ||
        number(c, &out->epoch) != 0 ||
        (expect(c, ",\"user\":\"") == 0 && read_user(c, out->epoch, out->user) != 0))
        return -1;
    return expect(c, ",\"key\":\"");
}

int logkey_look(logkey_about *out, const char *line, size_t size)
{
    cursor c = {line, line + size};
    const char *text;
    size_t text_size;
    if (read_wrap(&c, out, &text, &text_size) != 0)
        return -1;
    (void)suite_of(text, text_size, &out->suite, NULL);
    return 0;
}

/* again: the user's secret was forgotten, and another one drawn. */
static sessile_status fail_closed(const char *user, int again, sessile_error *err)
{
    return user[0] == '\0'
               ? fail(err, SESSILE_SEALED,
                      "this log's key does not open with this store's: the log is of "
                      "another store, or its first line was changed. Nothing was "
                      "changed: bring back a backup")
           : again ? fail(err, SESSILE_SEALED,
                          "this log's key does not open with the secret of its user: "
                          "that secret was forgotten since, or the first line was "
                          "changed")
                   : fail(err, SESSILE_DAMAGED,
                          "this log's key does not open with the secret of its user, "
                          "and nothing records that an earlier one was forgotten: its "
                          "first line was changed, or that secret was lost. Nothing was "
                          "changed: bring back a backup");
}

sessile_status logkey_open(logkey *out, const keyring *k, const char *line, size_t size,
                           sessile_error *err)
{
    unsigned char wrapped[64 + VAULT_KEY + VAULT_TAG];
    unsigned char stated[VAULT_COMMITMENT + 3];
    unsigned char *key = NULL, *own = NULL;
    const unsigned char *master_key, *with;
    const char *text;
    size_t text_size, head, body;
    sessile_status status = SESSILE_OK;
    sessile_error why = {0};
    logkey_about about;
    suite s;
    int again;
    cursor c = {line, line + size};
    memset(out, 0, sizeof *out);
    if (read_wrap(&c, &about, &text, &text_size) != 0)
        goto damaged;
    status = suite_of(text, text_size, &s, err);
    if (status)
        return status;
    head = (size_t)(c.at - line);
    size_t raw = suite_nonce_size(s) + VAULT_KEY + VAULT_TAG;
    if (quoted(&c, &text, &text_size) != 0 || text_size != base64_size(raw) ||
        text_size / 4 * 3 > sizeof wrapped ||
        base64_decode(wrapped, text, text_size) != (int64_t)raw)
        goto damaged;
    body = (size_t)(c.at - line);
    if (expect(&c, ",\"commitment\":\"") != 0 || quoted(&c, &text, &text_size) != 0 ||
        text_size != base64_size(VAULT_COMMITMENT) ||
        base64_decode(stated, text, text_size) != VAULT_COMMITMENT || c.at != c.end)
        goto damaged;
    master_key = keyring_master_now(k, about.epoch, &why);
    if (!master_key) {
        /* whose secret is gone, its master key may be gone too (keys_reseal) */
        if (!why.code && keyring_forgot(k, &about, &why) > 0)
            return user_fail_forgotten(err);
        /* why the keyring could not be read again says more */
        return why.code ? fail(err, why.code, "%s", why.message)
                        : fail_closed("", 0, err);
    }
    status = wrapper(k, about.user, about.epoch, master_key, 0, &with, &own, &again, err);
    if (status)
        goto out;
    key = datakey_new(s);
    if (!key) {
        status = fail_nomem(err);
        goto out;
    }
    if (open_bytes(s, with, line, head, wrapped, raw, key) != 0) {
        status = fail_closed(about.user, again, err);
        goto out;
    }
    hash256(out->commitment, line, body, key, VAULT_KEY);
    if (!same_bytes(out->commitment, stated, VAULT_COMMITMENT))
        goto damaged;
    datakey_prepare(s, key);
    out->suite = s;
    out->epoch = about.epoch;
    memcpy(out->user, about.user, sizeof out->user);
    out->key = key;
    key = NULL;
    goto out;
damaged:
    status = fail(err, SESSILE_DAMAGED, "the first line is not that of a sealed log");
out:
    sodium_free(key);
    sodium_free(own);
    if (status)
        memset(out, 0, sizeof *out);
    return status;
}

void logkey_deinit(logkey *k)
{
    if (k) {
        sodium_free(k->key); /* wipes; NULL is ignored */
        memset(k, 0, sizeof *k);
    }
}
