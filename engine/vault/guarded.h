/*
 * guarded.h: what the files of the vault share: guarded memory and sealing with raw keys.
 * Not for other floors.
 */
#ifndef VAULT_GUARDED_H
#define VAULT_GUARDED_H

#include "vault/vault.h"

/* An allocator over libsodium's guarded memory: what it frees or outgrows is wiped, so
 * that a buf over it may hold key material. */
extern const allocator allocator_guarded;

/*
 * out = nonce ‖ ciphertext ‖ tag of size bytes of plain, under a raw key; the nonce is
 * random. out has room for suite_nonce_size(s) + size + VAULT_TAG.
 */
void seal_bytes(suite s, const unsigned char key[VAULT_KEY], const void *ad,
                size_t ad_size, const void *plain, size_t size, unsigned char *out);
/* The reverse; plain has room for size - nonce - tag. 0, or -1 when it does not open. */
int open_bytes(suite s, const unsigned char key[VAULT_KEY], const void *ad,
               size_t ad_size, const unsigned char *sealed, size_t size, void *plain);

/* The same with the key of a log, which is prepared for many lines. */
void seal_with(const logkey *k, const void *ad, size_t ad_size, const void *plain,
               size_t size, unsigned char *out);
int open_with(const logkey *k, const void *ad, size_t ad_size,
              const unsigned char *sealed, size_t size, void *plain);

/* Room for a data key, wiped and guarded; then, once its VAULT_KEY bytes are there, what
 * the suite wants prepared. */
unsigned char *datakey_new(suite s);
void datakey_prepare(suite s, unsigned char *key);

/* 1 when this CPU can. */
int suite_here(suite s);

/* The secret stretched (or copied) to a key. salt: 16 bytes; NULL for a secret that is a
 * key. -1: no memory for Argon2id. */
#define SECRET_SALT 16
int secret_is_key(const secret *s);
int secret_key(const secret *s, const unsigned char *salt, uint64_t ops, uint64_t mem,
               unsigned char out[VAULT_KEY]);

/* The keyring's master key of an epoch, borrowed; NULL: no such epoch is known. */
const unsigned char *keyring_master(const keyring *k, uint64_t epoch);
/* The same, and the keyring is read again when it is not known. NULL: err is filled if
 * that failed. */
const unsigned char *keyring_master_now(const keyring *k, uint64_t epoch,
                                        sessile_error *err);
/* What seals a new log, by the keyring as it is in the store now, and durably so. */
sessile_status keyring_current(const keyring *k, suite *s, uint64_t *epoch,
                               const unsigned char **key, sessile_error *err);
const unsigned char *keyring_name_key(const keyring *k);
/* 0: nothing of it is kept anywhere. */
int keyring_has_blobs(const keyring *k);

/* ---- users (user.c, forgotten.c) */

/* Appends user-HASH-EPOCH; user: by keyring_user_name(). */
void user_blob_name(const char *user, uint64_t epoch, buf *out);
/* The epoch that the name of a blob ends with; 0: it has none. */
uint64_t user_blob_epoch(const char *name);
/*
 * A line {KIND,"epoch":N,"s":"B"}, the whole of the blob `name`. B has nonce, `size`
 * bytes (at most VAULT_KEY) and tag, sealed with the master key of epoch N. put appends
 * to out. open: DAMAGED, with a sentence about a user's secret: it is not such a line, or
 * does not open.
 */
#define USER_RAW (64 + VAULT_KEY + VAULT_TAG)
sessile_status user_line_put(buf *out, const char *kind, const char *name, uint64_t epoch,
                             const unsigned char *master_key, const void *data,
                             size_t size, sessile_error *err);
sessile_status user_line_open(const char *kind, const char *name, uint64_t epoch,
                              const unsigned char *master_key, const char *blob,
                              size_t blob_size, void *out, size_t size,
                              const allocator *a, sessile_error *err);

/* Puts the marker of a user's secret, durably. Nothing is put for an epoch that the
 * keyring does not have. */
sessile_status user_mark(const keyring *k, const char *user, uint64_t epoch,
                         sessile_error *err);
/* Removes it; *removed: it was there. */
sessile_status user_unmark(const keyring *k, const char *user, uint64_t epoch,
                           int *removed, sessile_error *err);
/* SEALED: the secret that a log needs was removed on purpose. */
sessile_status user_fail_forgotten(sessile_error *err);
/* The secret that a log needs is not there: SEALED if that was on purpose, else DAMAGED.
 */
sessile_status user_fail_gone(const keyring *k, const char *user, uint64_t epoch,
                              sessile_error *err);
/*
 * A user's secret of an epoch, into guarded memory. open: SEALED: forgotten; DAMAGED:
 * also if it is missing and there is no marker of a forgotten user that opens. *again: it
 * was drawn after an earlier one was forgotten. make: drawn and put when there is none;
 * durable on return, whoever put it, and without a marker. BUSY: the user is forgotten
 * again and again meanwhile.
 */
sessile_status user_secret_open(const keyring *k, const char *user, uint64_t epoch,
                                const unsigned char *master_key,
                                unsigned char out[VAULT_KEY], int *again,
                                sessile_error *err);
sessile_status user_secret_make(const keyring *k, const char *user, uint64_t epoch,
                                const unsigned char *master_key,
                                unsigned char out[VAULT_KEY], sessile_error *err);

#endif
