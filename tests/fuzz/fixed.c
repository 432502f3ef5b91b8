/*
 * fixed.c: a keyring and a log's key that are the same in every run.
 *
 * A seed that was sealed yesterday must open today, or libFuzzer would begin each day in
 * front of a closed door. XChaCha20-Poly1305, which every machine has. Nothing was ever
 * sealed with these keys but tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz/fuzz.h"

static const char sealed_blob[] =
    "{\"sessile_keyring\":1,\"mode\":\"sealed\",\"kdf\":\"none\",\"s\":\"jSOK"
    "vGYv3k46JmuqVCVlpPWMoWJE8otlKen2zR6ebyt3M3/3TAxj8OR5H9g7dHgsvVtSXbBrygn4"
    "UsZQxh8bVDVtRevtztiduxqR2Ta/YKjwCO6e3g94JbbP5xSrgJtXFp432wOUpJHCV/SJ51LZ"
    "jwakZd2CzsY3rbflNmn/gcthDiDflsJbIoXHUolmi2gAe1SM4n12akFRjOYUcZuqQvkwmxwy"
    "NmH0xXNn067RrubnzBNbcU4dVHxroN5O6M/lVfp5E4+3hTI=\"}";
static const char plain_blob[] = "{\"sessile_keyring\":1,\"mode\":\"plain\",\"name\":"
                                 "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}";

const char fixed_header_entry[] =
    "{\"id\":\"00000000\",\"parent_id\":null,\"timestamp\":\"2026-01-02T03:04:"
    "05.678Z\",\"type\":\"session\",\"source\":\"host\",\"data\":{\"session\""
    ":\"fixed\",\"agent\":\"main\",\"user\":\"\",\"title\":\"Fixed\",\"create"
    "d\":\"2026-01-02T03:04:05.678Z\"}}";
const char fixed_header[] =
    "{\"id\":\"00000000\",\"sessile\":1,\"suite\":\"xchacha20-poly1305\",\"e"
    "poch\":1,\"key\":\"NDOkLFFTXr8RclTzkY8b/6xOo6DxuHt8JN8XGz58sBbR/"
    "yvbHTEifIs290+WzmlCRDQaZeJY4q65rPLRmTkkCuC39HKBqzUP\",\"commit"
    "ment\":\"Fw2vK3P876TXMxpupJTOya2fOuVG0Co6d9DtDiuBO4s=\",\"commit"
    "\":1,\"s\":\"q1BZpinSlGDomKTEyU13767gKSN+BqCgzs3ON542Q9mh8/tHPoT"
    "z8/rK0kJX48mHUpUnScGQSnY78KSdi10sf4MKGxZ66gIbuMKPeSo2DY6J1GR"
    "Y3HBqln7Mz90mJiUMLKQjilgK+l1WhX6+++xsAxm3kakakNlJDNwjsNf/ATj"
    "zuD6N7PENmLkyd+NdYjZ6FaMiYq8X7APZGgopjfK3ZPywMuIJuWqxr+hzTyc"
    "1Uhacsx8prQgI4vGkSl11ECIFT4cXh5E6hdzSt9/vo/Srsxwaz2nsGhNVbhU"
    "E28EP3FvHL/s9B6TtTjkbJl6pGt2v2lk9y3RSeWGwQdS3IJR6/57BWbEr3Sv"
    "YhL1Q\"}";

_Noreturn void fuzz_broken(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

void *fuzz_copy(const void *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* A backend that has one blob and nothing else. */
typedef struct one_blob {
    const void *data;
    size_t size;
} one_blob;

static sessile_status blob_get(void *self, const char *name, char **out, size_t *size,
                               sessile_error *err)
{
    const one_blob *blob = self;
    (void)name;
    *out = host_dup(&allocator_default, blob->data, blob->size);
    *size = blob->size;
    return *out ? SESSILE_OK : fail_nomem(err);
}

static const sessile_backend one_blob_backend = {
    .version = SESSILE_BACKEND_VERSION, .name = "blob", .blob_get = blob_get};

sessile_status fixed_keyring_open(keyring **out, const void *blob, size_t size,
                                  int sealed, sessile_error *err)
{
    static one_blob one; /* read again when a log names an epoch that is not known */
    one = (one_blob){blob, size};
    FUZZ_CHECK(base_init() == 0);
    return keyring_open(
        out, &one_blob_backend, &one, sealed ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN,
        sealed ? FIXED_SECRET : NULL, NULL, &os_posix, &allocator_default, err);
}

const keyring *fixed_keyring(int sealed)
{
    static keyring *rings[2];
    const char *blob = sealed ? sealed_blob : plain_blob;
    sessile_error err;
    if (!rings[sealed]) {
        FUZZ_CHECK(fixed_keyring_open(&rings[sealed], blob, strlen(blob), sealed, &err) ==
                   SESSILE_OK);
    }
    return rings[sealed];
}

const logkey *fixed_logkey(int sealed)
{
    static logkey keys[2];
    const char *end = strstr(fixed_header, ",\"commit\"");
    if (sealed && keys[1].suite == SUITE_NONE) {
        FUZZ_CHECK(logkey_open(&keys[1], fixed_keyring(1), fixed_header,
                               (size_t)(end - fixed_header), NULL) == SESSILE_OK);
    }
    return &keys[sealed];
}

sessile_store *fixed_ram_store(void)
{
    sessile_store_options o;
    sessile_store *store;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    FUZZ_CHECK(sessile_open(&store, "ram:", &o, NULL) == SESSILE_OK);
    return store;
}
