/*
 * fuzz.h: what a fuzzer is, and what the fuzzers share.
 *
 * A fuzzer is one file fuzz_NAME.c with the three definitions below. Under clang
 * libFuzzer calls it (`make fuzz`), under gcc driver.c does (`tests/run fuzz/`). Inputs
 * are any bytes; what a fuzzer does with them must depend on nothing else, but for the
 * nonces that a seal draws.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "vault/vault.h"

/* One execution. Returns 0. A broken invariant ends in fuzz_broken(). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Seeds that are made and not kept: each is handed to take. */
typedef void (*fuzz_take)(void *arg, const void *data, size_t size);
void fuzz_seeds(fuzz_take take, void *arg);
/* Hands over one byte, `how`, with the data or the text behind it. */
void fuzz_give(fuzz_take take, void *arg, int how, const void *data, size_t size);
void fuzz_give_text(fuzz_take take, void *arg, int how, const char *text);
/* Hands over each of these texts as it is. */
void fuzz_give_all(fuzz_take take, void *arg, const char *const *texts, size_t count);

typedef struct fuzz_about {
    const char *name;
    unsigned runs;            /* mutations in a short run: about half a second */
    size_t longest;           /* of an input */
    const char *const *words; /* put into inputs by mutations; ends with NULL */
} fuzz_about;
extern const fuzz_about fuzz_this;

/* Prints what does not hold, and aborts: the driver keeps the input. */
_Noreturn void fuzz_broken(const char *file, int line, const char *what);
#define FUZZ_CHECK(holds)                            \
    do {                                             \
        if (!(holds))                                \
            fuzz_broken(__FILE__, __LINE__, #holds); \
    } while (0)

/* ---- keys that are the same in every run (fixed.c) */

#define FIXED_SECRET \
    "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
/* Of a sealed store and of a plain one; opened once, never freed. */
const keyring *fixed_keyring(int sealed);
/* The first line of a sealed log of that store, without its newline; its key. */
extern const char fixed_header[];
extern const char fixed_header_entry[];
const logkey *fixed_logkey(int sealed);
/* A plain store in memory. */
sessile_store *fixed_ram_store(void);
/* A blob on its way to keyring_open(), which is given a backend that has only this. */
sessile_status fixed_keyring_open(keyring **out, const void *blob, size_t size,
                                  int sealed, sessile_error *err);

/* A copy of exactly size bytes (at least one), so that a sanitizer sees a read beyond. */
void *fuzz_copy(const void *data, size_t size);

#endif
