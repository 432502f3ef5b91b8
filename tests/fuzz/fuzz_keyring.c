/*
 * fuzz_keyring.c: a store's keyring, from the outside and from behind its seal.
 *
 * The first byte chooses: 0 the rest is the blob of a store that is opened with a key; 1
 * of one opened without; 2 it is the text that the seal holds, sealed here with the right
 * secret first.
 *
 * Holds: only a keyring of the mode that was asked for opens; one that opens has a key
 * for its newest epoch; a refusal quotes nothing that is no text, and none of the secret.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define INNER                                                                    \
    "{\"suite\":\"xchacha20-poly1305\",\"name\":"                                \
    "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\",\"epochs\":[{\"epoch\":1," \
    "\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}"
#define OUTER "{\"sessile_keyring\":1,\"mode\":\"sealed\",\"kdf\":\"none\",\"s\":\""

static const char *const words[] = {
    "\"sessile_keyring\":1",
    "\"mode\":\"sealed\"",
    "\"mode\":\"plain\"",
    "\"kdf\":\"none\"",
    "\"kdf\":\"argon2id\"",
    "\"salt\":\"AAAAAAAAAAAAAAAAAAAAAA==\"",
    "\"ops\":2",
    "\"mem\":67108864",
    "\"s\":\"",
    "\"suite\":\"aes-256-gcm\"",
    "\"epochs\":[",
    "{\"epoch\":2,\"key\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}",
    "4294967296",
    NULL};

const fuzz_about fuzz_this = {"keyring", 20000, 1 << 12, words};

static void open_blob(const void *blob, size_t size, int sealed)
{
    sessile_error err = {0};
    keyring *k;
    sessile_status status = fixed_keyring_open(&k, blob, size, sealed, &err);
    FUZZ_CHECK(status == err.code);
    if (!status) {
        FUZZ_CHECK(keyring_sealed(k) == sealed);
        FUZZ_CHECK(!sealed || keyring_master(k, keyring_epoch(k)) != NULL);
        FUZZ_CHECK(keyring_master(k, UINT64_MAX) == NULL);
    } else {
        FUZZ_CHECK(k == NULL);
        FUZZ_CHECK(status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
                   status == SESSILE_UNSUPPORTED);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
        FUZZ_CHECK(strstr(err.message, &FIXED_SECRET[4]) == NULL);
    }
    keyring_free(k);
}

static void seal(buf *out, const void *inner, size_t size)
{
    unsigned char key[VAULT_KEY];
    size_t whole = suite_nonce_size(SUITE_XCHACHA20_POLY1305) + size + VAULT_TAG;
    unsigned char *sealed = malloc(whole);
    FUZZ_CHECK(sealed != NULL && base_init() == 0);
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    buf_puts(out, OUTER);
    seal_bytes(SUITE_XCHACHA20_POLY1305, key, out->data, out->size, inner, size, sealed);
    base64_put(out, sealed, whole);
    buf_puts(out, "\"}\n");
    free(sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 3 < 2) {
        open_blob(data + 1, size - 1, data[0] % 3 == 0);
    } else {
        buf blob;
        buf_init(&blob, &allocator_default);
        seal(&blob, data + 1, size - 1);
        open_blob(blob.data, blob.size, 1);
        buf_deinit(&blob);
    }
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    buf blob;
    buf_init(&blob, &allocator_default);
    seal(&blob, INNER "]}", strlen(INNER "]}"));
    fuzz_give_text(take, arg, 0, blob.data);
    fuzz_give_text(take, arg, 1,
                   "{\"sessile_keyring\":1,\"mode\":\"plain\",\"name\":"
                   "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}\n");
    fuzz_give_text(
        take, arg, 0,
        "{\"sessile_keyring\":1,\"mode\":\"sealed\",\"kdf\":\"argon2id\","
        "\"salt\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"ops\":2,\"mem\":67108864,"
        "\"s\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}\n");
    fuzz_give_text(take, arg, 2, INNER "]}");
    fuzz_give_text(take, arg, 2,
                   INNER ",{\"epoch\":7,\"key\":"
                         "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}]}");
    buf_deinit(&blob);
}
