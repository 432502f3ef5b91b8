/*
 * keyring_text.c: the bytes of a keyring.
 *
 * Owns the blob "keyring", one line of JSON:
 *
 *   {"sessile_keyring":1,"mode":"plain","name":"B"}
 *   {"sessile_keyring":1,"mode":"sealed","kdf":"none","s":"B"}
 *   {"sessile_keyring":1,"mode":"sealed","kdf":"argon2id","salt":"B","ops":N,"mem":N,"s":"B"}
 *
 * s = nonce ‖ XChaCha20-Poly1305(secret's key; inner), additional data = the line before
 * its base64; inner = {"suite":"S","name":"B","epochs":[{"epoch":1,"key":"B"},…]}.
 *
 * It must never open a plain keyring for someone who asked for a sealed store or the
 * other way round (so that swapping the blob switches nothing off), and never hold key
 * material outside guarded memory, but for the name key of a plain store, which is no
 * secret.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "vault/ring.h"

#define DEPTH       8
#define EPOCHS_MOST 4096

/* What a keyring's passphrase is stretched with. The floor is what this file writes. The
 * ceiling keeps an edited keyring from taking the machine's memory and hours of time. */
#define OPS      crypto_pwhash_OPSLIMIT_INTERACTIVE
#define MEM      crypto_pwhash_MEMLIMIT_INTERACTIVE
#define OPS_MOST 32u
#define MEM_MOST (UINT64_C(1) << 30)

_Static_assert(SECRET_SALT == crypto_pwhash_argon2id_SALTBYTES, "salt");

#define OUTER SUITE_XCHACHA20_POLY1305 /* the keyring's own seal, whatever the suite */

/* ---------------------------------------------------------------------- parts */

master *master_new(uint64_t epoch)
{
    master *m = sodium_malloc(sizeof *m);
    if (m) {
        m->older = NULL;
        m->epoch = epoch;
        m->dropped = 0;
    }
    return m;
}

void masters_free(master *m)
{
    while (m) {
        master *older = m->older;
        sodium_free(m);
        m = older;
    }
}

void ring_inner_free(ring_inner *in)
{
    sodium_free(in->name_key);
    masters_free(in->masters);
    memset(in, 0, sizeof *in);
}

void wrapping_deinit(wrapping *w)
{
    sodium_free(w->key);
    memset(w, 0, sizeof *w);
}

sessile_status wrapping_make(wrapping *w, const secret *s, sessile_error *err)
{
    memset(w, 0, sizeof *w);
    w->key = sodium_malloc(VAULT_KEY);
    w->stretched = !secret_is_key(s);
    if (w->stretched) {
        random_bytes(w->salt, sizeof w->salt);
        w->ops = OPS;
        w->mem = MEM;
    }
    if (!w->key || secret_key(s, w->salt, w->ops, w->mem, w->key) != 0) {
        wrapping_deinit(w);
        return fail_nomem(err);
    }
    return SESSILE_OK;
}

static sessile_status fail_damaged(sessile_error *err)
{
    return fail(
        err, SESSILE_DAMAGED,
        "the store's keyring is not one this version wrote: bring back a copy of it");
}

/* ---------------------------------------------------------------------- writing */

static void put_bytes(buf *out, const char *name, const void *data, size_t size)
{
    buf_puts(out, name);
    buf_puts(out, "\"");
    base64_put(out, data, size);
    buf_puts(out, "\"");
}

sessile_status ring_text_put_plain(buf *out, const unsigned char name_key[VAULT_KEY],
                                   sessile_error *err)
{
    buf_puts(out, "{\"sessile_keyring\":1,\"mode\":\"plain\"");
    put_bytes(out, ",\"name\":", name_key, VAULT_KEY);
    buf_puts(out, "}\n");
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

/* Oldest first. */
static void put_epochs(buf *out, const master *m, int *any)
{
    if (!m)
        return;
    put_epochs(out, m->older, any);
    if (!m->dropped) {
        buf_puts(out, *any ? ",{\"epoch\":" : "{\"epoch\":");
        buf_put_u64(out, m->epoch);
        put_bytes(out, ",\"key\":", m->key, VAULT_KEY);
        buf_puts(out, "}");
        *any = 1;
    }
}

sessile_status ring_text_put(buf *out, const wrapping *w, const ring_inner *in,
                             sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int any = 0;
    buf inner, sealed;
    buf_init(&inner, &allocator_guarded);
    buf_init(&sealed, out->alloc);
    buf_puts(out, "{\"sessile_keyring\":1,\"mode\":\"sealed\"");
    if (w->stretched) {
        buf_puts(out, ",\"kdf\":\"argon2id\"");
        put_bytes(out, ",\"salt\":", w->salt, sizeof w->salt);
        buf_puts(out, ",\"ops\":");
        buf_put_u64(out, w->ops);
        buf_puts(out, ",\"mem\":");
        buf_put_u64(out, w->mem);
    } else {
        buf_puts(out, ",\"kdf\":\"none\"");
    }
    buf_puts(out, ",\"s\":\"");
    buf_puts(&inner, "{\"suite\":\"");
    buf_puts(&inner, suite_name(in->suite));
    buf_puts(&inner, "\"");
    put_bytes(&inner, ",\"name\":", in->name_key, VAULT_KEY);
    buf_puts(&inner, ",\"epochs\":[");
    put_epochs(&inner, in->masters, &any);
    buf_puts(&inner, "]}");
    size_t size = suite_nonce_size(OUTER) + inner.size + VAULT_TAG;
    if (out->failed || inner.failed || buf_reserve(&sealed, size) != 0) {
        status = fail_nomem(err);
        goto out;
    }
    seal_bytes(OUTER, w->key, out->data, out->size, inner.data, inner.size,
               (unsigned char *)sealed.data);
    base64_put(out, sealed.data, size);
    buf_puts(out, "\"}\n");
    status = out->failed ? fail_nomem(err) : SESSILE_OK;
out:
    buf_deinit(&inner);
    buf_deinit(&sealed);
    return status;
}

/* ---------------------------------------------------------------------- reading */

/* A string without escapes that is base64 of exactly size bytes. */
static int read_bytes(json value, unsigned char *out, size_t size)
{
    const char *text;
    size_t text_size;
    /* base64 comes in threes */
    if (!json_plain(value, &text, &text_size) || text_size != base64_size(size))
        return -1;
    unsigned char *room = sodium_malloc(text_size / 4 * 3 + 1);
    int result = -1;
    if (room && base64_decode(room, text, text_size) == (int64_t)size) {
        memcpy(out, room, size);
        result = 0;
    }
    sodium_free(room);
    return result;
}

static sessile_status read_sealed(ring_text *t, json outer, sessile_error *err)
{
    const char *text;
    size_t size;
    json kdf = json_get(outer, "kdf");
    t->stretched = json_is(kdf, "argon2id");
    if ((!t->stretched && !json_is(kdf, "none")) ||
        !json_plain(json_get(outer, "s"), &text, &size) ||
        (size_t)(text + size - t->line.data) + 2 != t->line.size)
        return fail_damaged(err);
    if (t->stretched &&
        (read_bytes(json_get(outer, "salt"), t->salt, sizeof t->salt) != 0 ||
         json_uint(json_get(outer, "ops"), &t->ops) != 0 ||
         json_uint(json_get(outer, "mem"), &t->mem) != 0 || t->ops < OPS ||
         t->ops > OPS_MOST || t->mem < MEM || t->mem > MEM_MOST))
        return fail_damaged(err);
    if (buf_reserve(&t->box, size / 4 * 3) != 0)
        return fail_nomem(err);
    int64_t raw = base64_decode(t->box.data, text, size);
    if (raw < (int64_t)(suite_nonce_size(OUTER) + VAULT_TAG))
        return fail_damaged(err);
    t->box.size = (size_t)raw;
    t->head = (size_t)(text - t->line.data);
    return SESSILE_OK;
}

sessile_status ring_text_read(ring_text *t, const char *blob, size_t size,
                              int want_sealed, const allocator *a, sessile_error *err)
{
    uint64_t version;
    memset(t, 0, sizeof *t);
    buf_init(&t->line, a);
    buf_init(&t->box, a);
    if (size > 0 && blob[size - 1] == '\n')
        size--;
    sessile_status status = json_check(&t->line, blob, size, DEPTH, err);
    if (status)
        return status == SESSILE_NOMEM ? status : fail_damaged(err);
    json outer = json_of(t->line.data, t->line.size);
    if (t->line.size != size || memcmp(t->line.data, blob, size) != 0 ||
        json_uint(json_get(outer, "sessile_keyring"), &version) != 0) {
        /* the additional data is the text as it was written */
        return fail_damaged(err);
    }
    if (version != 1) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the store's keyring is of a newer version");
    }
    json mode = json_get(outer, "mode");
    t->sealed = json_is(mode, "sealed");
    if (!t->sealed && !json_is(mode, "plain"))
        return fail_damaged(err);
    if (t->sealed && !want_sealed) {
        return fail(err, SESSILE_SEALED,
                    "this store is sealed and was opened without a key: give one");
    }
    if (!t->sealed && want_sealed) {
        return fail(err, SESSILE_SEALED,
                    "this store's keyring says that it is plain: open it with no key if "
                    "it was meant to be");
    }
    if (t->sealed)
        return read_sealed(t, outer, err);
    t->name_key = sodium_malloc(VAULT_KEY);
    if (!t->name_key)
        return fail_nomem(err);
    return read_bytes(json_get(outer, "name"), t->name_key, VAULT_KEY) == 0
               ? SESSILE_OK
               : fail_damaged(err);
}

void ring_text_deinit(ring_text *t)
{
    sodium_free(t->name_key);
    buf_deinit(&t->line);
    buf_deinit(&t->box);
    memset(t, 0, sizeof *t);
}

/* ---------------------------------------------------------------------- opening */

static int read_epochs(ring_inner *out, json epochs)
{
    size_t count = 0;
    if (epochs.type != JSON_ARRAY)
        return -1;
    for (json_iter it = json_begin(epochs); json_next(&it);) {
        uint64_t epoch;
        if (++count > EPOCHS_MOST ||
            json_uint(json_get(it.value, "epoch"), &epoch) != 0 || epoch == 0 ||
            epoch > UINT32_MAX || (out->masters && epoch <= out->masters->epoch))
            return -1;
        master *m = master_new(epoch);
        if (!m)
            return -1;
        m->older = out->masters;
        out->masters = m;
        if (read_bytes(json_get(it.value, "key"), m->key, VAULT_KEY) != 0)
            return -1;
    }
    return count > 0 ? 0 : -1;
}

/* The inner text: opened, so written by somebody with the secret, yet checked. */
static sessile_status read_inner(ring_inner *out, const char *text, size_t size,
                                 sessile_error *err)
{
    const char *name;
    size_t name_size;
    buf checked;
    buf_init(&checked, &allocator_guarded);
    sessile_status status = json_check(&checked, text, size, DEPTH, err);
    if (status) {
        /* NOMEM stays; every other fault is the keyring's, and its text is not quoted */
        status = status == SESSILE_NOMEM ? status : fail_damaged(err);
        goto out;
    }
    json inner = json_of(checked.data, checked.size);
    if (!json_plain(json_get(inner, "suite"), &name, &name_size)) {
        status = fail_damaged(err);
        goto out;
    }
    status = suite_of(name, name_size, &out->suite, err);
    if (status)
        goto out;
    out->name_key = sodium_malloc(VAULT_KEY);
    if (!out->name_key)
        status = fail_nomem(err);
    else if (read_bytes(json_get(inner, "name"), out->name_key, VAULT_KEY) != 0 ||
             read_epochs(out, json_get(inner, "epochs")) != 0)
        status = fail_damaged(err);
out:
    buf_deinit(&checked);
    if (status)
        ring_inner_free(out);
    return status;
}

sessile_status ring_text_open(const ring_text *t, const unsigned char key[VAULT_KEY],
                              ring_inner *out, sessile_error *err)
{
    sessile_status status;
    size_t overhead = suite_nonce_size(OUTER) + VAULT_TAG;
    memset(out, 0, sizeof *out);
    unsigned char *inner = sodium_malloc(t->box.size);
    if (!inner)
        return fail_nomem(err);
    if (open_bytes(OUTER, key, t->line.data, t->head, (unsigned char *)t->box.data,
                   t->box.size, inner) != 0) {
        status =
            fail(err, SESSILE_SEALED,
                 "the secret does not open this store's keyring: give the one it was "
                 "made with");
    } else {
        status = read_inner(out, (char *)inner, t->box.size - overhead, err);
    }
    sodium_free(inner);
    return status;
}
