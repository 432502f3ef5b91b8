/* text.h: small functions over bytes: UTF-8 (utf8.c), hex, base32, base64 (text.c), times
 * (time.c), hashes and random bytes (hash.c). */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

/* Bytes of the UTF-8 sequence that data begins with, 1 to 4; 0: none, or cut short. */
size_t utf8_length(const void *data, size_t size);
/* 1 when all of data is UTF-8 by RFC 3629 (no surrogates, no overlong forms). */
int utf8_valid(const void *data, size_t size);
/* Appends data, with U+FFFD for invalid UTF-8: one for each longest prefix of a
 * sequence (WHATWG, Unicode 3.9). */
void utf8_put_lossy(buf *out, const void *data, size_t size);
/* The largest n <= limit such that data[0..n) splits no sequence of valid UTF-8. */
size_t utf8_floor(const char *data, size_t size, size_t limit);

void hex_encode(char *out, const void *data, size_t size); /* 2*size + NUL, lower case */
int hex_decode(void *out, const char *hex, size_t out_size); /* 0, or -1: not hex */

/* RFC 4648, lower case, unpadded; out has room for (size*8+4)/5 + 1. */
void base32_encode(char *out, const void *data, size_t size);

/* Padded standard base64, canonical: decode encodes the last quad again and refuses a
 * difference (modp_b64 ignores spare bits). */
size_t base64_size(size_t raw_size);                          /* encoded, no NUL */
void base64_encode(char *out, const void *data, size_t size); /* and a NUL */
void base64_put(buf *out, const void *data, size_t size);
/* Decodes into out (room for size/4*3). Returns the raw size, or -1: not canonical. */
int64_t base64_decode(void *out, const char *text, size_t size);

/* "2026-11-21T20:12:03.123Z": 24 bytes and a NUL. Years 1970 to 9999. */
#define TIME_SIZE 25
void time_print(int64_t ms, char out[TIME_SIZE]);
int time_parse(const char *text, size_t size, int64_t *ms); /* 0, or -1; offsets +hh:mm
                                      and Z, any number of fraction digits accepted */

/* Decodes the percent-encoding of size bytes into out, with a NUL. 0; -1: it is not
 * encoded rightly, has a NUL in it, or needs more than room bytes. out may be text. */
int url_decode(char *out, size_t room, const char *text, size_t size);

/* ---- hash.c */

/* Random bytes from the system, by libsodium. */
void random_bytes(void *out, size_t size);
/* BLAKE2b-256 of size bytes; key may be NULL. */
void hash256(unsigned char out[32], const void *data, size_t size, const void *key,
             size_t key_size);
/* SHA-256, for hashes that others check. hash256 is faster. */
void sha256(unsigned char out[32], const void *data, size_t size);
/* Keyed 64-bit hash for tables (SipHash-2-4), with a key drawn once a process. */
uint64_t hash64(const void *data, size_t size);
/* The same for hashes that are stored: equal data has the same bare hash in every
 * process. In memory it is veiled with a secret of the process, so that chosen data
 * cannot collide in tables. 2^32 tries find two data with one hash, so use it only for
 * names whose author could as well use one name twice. */
uint64_t hash64_lasting(const void *data, size_t size);
uint64_t hash64_bare(uint64_t lasting);
uint64_t hash64_veil(uint64_t bare);
/* The same with a secret of the caller instead of the process: equal data has the same
 * hash wherever the secret is the same, and nobody without it finds two data with one
 * hash. */
typedef struct hash_key {
    unsigned char bytes[16];
} hash_key;
/* name: what the key is for, 16 to 64 bytes. */
hash_key hash_key_of(const char *name, const void *secret, size_t size);
uint64_t hash64_keyed(const hash_key *key, const void *data, size_t size);
/* Zeroes memory; the compiler cannot remove it. */
void wipe(void *data, size_t size);
/* Constant-time equality. */
int same_bytes(const void *a, const void *b, size_t size);
/* Initializes libsodium; 0, or -1. Called once at open. */
int base_init(void);

#endif
