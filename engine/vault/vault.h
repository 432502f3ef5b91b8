/*
 * vault.h: keys, and the sealing of lines. The only floor that sees a key.
 *
 * Keys live in libsodium's guarded memory, are wiped when freed, and never leave the
 * floor but for a host's explicit export (there is none). Nonces are random.
 */
#ifndef VAULT_VAULT_H
#define VAULT_VAULT_H

#include "base/buf.h"
#include "base/error.h"
#include "base/os.h"
#include "sessile_store.h"

typedef enum suite {
    SUITE_NONE = 0, /* plain */
    SUITE_AES_256_GCM,
    SUITE_XCHACHA20_POLY1305
} suite;
#define VAULT_TAG        16
#define VAULT_KEY        32
#define VAULT_COMMITMENT 32
const char *suite_name(suite s); /* "aes-256-gcm", … */
sessile_status suite_of(const char *name, size_t size, suite *out, sessile_error *err);
/* UNSUPPORTED: unknown, or this CPU */
size_t suite_nonce_size(suite s);

/* ---- the secret */

typedef struct secret secret; /* guarded; a key, or a passphrase still to be stretched */
/*
 * From options (key_source, key). `hex:` or `base64:` and exactly 32 bytes is a key,
 * anything else a passphrase of at least 12 characters (INVALID under that). A key file
 * is opened without following links, must be ours and 0600 or stricter (DENIED); one
 * trailing newline is dropped. DEFAULT: $SESSILE_KEY, else $XDG_CONFIG_HOME/sessile/key
 * (HOME's .config), which is made (O_EXCL, random, "hex:…\n") only when `may_make` is 1;
 * SEALED when there is none. PLAIN: *out NULL.
 */
sessile_status secret_get(secret **out, sessile_key_source source, const char *key,
                          int may_make, const os_table *os, const allocator *a,
                          sessile_error *err);
void secret_free(secret *s);
/* Makes a key file with a random key, durably, if there is nothing at path. Its folder
 * must be there. */
sessile_status secret_file_make(const char *path, const os_table *os, const allocator *a,
                                sessile_error *err);

/* ---- the keyring */

typedef struct keyring keyring;
#define KEYRING_BLOB "keyring" /* its name among the blobs */
/*
 * Opens the store's keyring blob, or makes one: sealed when the source is not PLAIN, of
 * suite `suite_name` or the CPU's best. SEALED: the mode does not match the source, the
 * secret is wrong, or there are logs but no keyring. Nothing is made then. Two processes
 * that make one at once end with the same one. A keyring's JSON is checked strictly, and
 * Argon2id parameters have a floor and a ceiling (DAMAGED outside).
 */
sessile_status keyring_open(keyring **out, const sessile_backend *backend, void *self,
                            sessile_key_source source, const char *key,
                            const char *suite_name, const os_table *os,
                            const allocator *a, sessile_error *err);
/* The keyring of a volatile store: plain, a random name key. */
sessile_status keyring_volatile(keyring **out, const allocator *a, sessile_error *err);
/* Of a volatile store whose logs are kept by somebody else: plain for DEFAULT and PLAIN;
 * for SECRET sealed by that key alone, as epoch 0. INVALID: another source, or a
 * passphrase. */
sessile_status keyring_given(keyring **out, sessile_key_source source, const char *key,
                             const char *suite_name, const os_table *os,
                             const allocator *a, sessile_error *err);
/* As keyring_open(), but EXISTS when there is one. */
sessile_status keyring_make(keyring **out, const sessile_backend *backend, void *self,
                            sessile_key_source source, const char *key,
                            const char *suite_name, const os_table *os,
                            const allocator *a, sessile_error *err);
void keyring_free(keyring *k);
int keyring_sealed(const keyring *k);
suite keyring_suite(const keyring *k);
uint64_t keyring_epoch(const keyring *k); /* the newest; 0: plain */

/* What may be said of a keyring. */
typedef struct keyring_about {
    int sealed;
    sessile_key_source source;
    int stretched; /* the secret is a passphrase, by Argon2id of ops and mem bytes */
    uint64_t ops, mem;
    suite suite;
    uint64_t epoch;
} keyring_about;
void keyring_facts(const keyring *k, keyring_about *out);
/* How many epochs there are, newest first; the first `room` of them in out. */
size_t keyring_epochs(const keyring *k, uint64_t *out, size_t room);
int keyring_has(const keyring *k, uint64_t epoch);

/* 1 when the bytes of a keyring are an earlier state of this one: the same secret opens
 * them, and every key in them is in this one too. */
int keyring_continues(const keyring *k, const char *blob, size_t size);

/*
 * Reads the keyring again if another process changed it: epochs that are new are known
 * from then on, those dropped seal nothing more. SEALED: the secret was changed (what is
 * known stays), or it is another keyring.
 */
sessile_status keyring_refresh(const keyring *k, sessile_error *err);

/*
 * Changes of the keyring, each durable on return; a crash leaves it as it was or changed.
 * An IO error leaves open which. UNSUPPORTED: of a plain store. Two at once are both
 * made.
 */
/* One more epoch with a new master key, which seals what is made from then on. */
sessile_status keyring_new_epoch(keyring *k, sessile_error *err);
/* Wrapped by another secret from then on; as for secret_get(), and never made here. */
sessile_status keyring_set_secret(keyring *k, sessile_key_source source, const char *key,
                                  const os_table *os, sessile_error *err);
/* UNSUPPORTED: unknown, or this CPU. */
sessile_status keyring_set_suite(keyring *k, const char *suite_name, sessile_error *err);
/* All epochs but the newest and those given. */
sessile_status keyring_drop_epochs(keyring *k, const uint64_t *keep, size_t count,
                                   sessile_error *err);

/* Removes every secret of a user (by keyring_user_name()); *removed: how many. A marker
 * is put for each first, and for every epoch of the keyring, so that a missing secret is
 * known to be forgotten. Running it again after an interruption is harmless. UNSUPPORTED:
 * a plain store. */
sessile_status keyring_forget(keyring *k, const char *user, uint64_t *removed,
                              sessile_error *err);
/* Removes the secrets of users of epochs that are dropped: nothing opens them. */
sessile_status keyring_drop_users(keyring *k, sessile_error *err);
/* How many users have a secret. */
sessile_status keyring_users(const keyring *k, uint64_t *count, sessile_error *err);

/* File and folder names by format.md: as they stand, or "=" and base32 of the keyed hash.
 * out has room for NAME_SIZE. */
#define NAME_SIZE 112
void keyring_log_name(const keyring *k, sessile_slice user, sessile_slice id,
                      char out[NAME_SIZE]);
void keyring_folder_name(const keyring *k, sessile_slice agent, char out[NAME_SIZE]);
/* How blobs of a user's secrets begin: "user-" and the hash; "" for an empty user, and in
 * a store that is not sealed or has no blobs. */
#define USER_PREFIX "user-"
/* How the blobs begin that record which of them were removed by keyring_forget(). */
#define FORGOTTEN_PREFIX "forgotten-"
void keyring_user_name(const keyring *k, sessile_slice user, char out[NAME_SIZE]);
/* 64 bits of BLAKE2b of names under the store's name key: equal on this machine in every
 * process that has the store open, and nobody without the key finds a name's. */
uint64_t keyring_name_hash(const keyring *k, const sessile_slice *parts, size_t count);

/* ---- a log's key */

typedef struct logkey {
    suite suite;        /* SUITE_NONE: plain, nothing else is set */
    unsigned char *key; /* guarded memory, VAULT_KEY bytes */
    unsigned char commitment[VAULT_COMMITMENT];
    uint64_t epoch;
    char user[NAME_SIZE]; /* whose secret wraps it, by keyring_user_name(); "": none */
} logkey;
/*
 * New: draws a data key and appends to line, which holds `{"id":"00000000","sessile":1`,
 * the fields ,"suite":…,"epoch":…,"user":"…","key":"…","commitment":"…" of format.md;
 * user: whose secret wraps it, by keyring_user_name(), made when there is none; NULL or
 * "": the store's master key. Reads the keyring again first (see keyring_refresh()).
 */
sessile_status logkey_new(logkey *out, const keyring *k, const char *user, buf *line,
                          sessile_error *err);
/* Opens the data key of a sealed header line (its bytes up to and without `,"commit"`).
 * SEALED: wrapped by another key, or by the secret of a user that was forgotten;
 * UNSUPPORTED: suite; DAMAGED: not such a line, or the user's secret does not open it and
 * was never forgotten, or the blob of that secret is not what was written, or is missing
 * and the user was not forgotten. */
sessile_status logkey_open(logkey *out, const keyring *k, const char *line, size_t size,
                           sessile_error *err);
void logkey_deinit(logkey *k);

/* 1: a log did not open, with this error, because the blob of its user's secret is
 * missing, and nothing proves that the user was forgotten. Its first line is whole. */
int user_secret_is_missing(const sessile_error *err);

/* What a sealed header line says about its key in clear; nothing is opened. 0, or -1: not
 * such a line (more text may follow the part that is read). */
typedef struct logkey_about {
    suite suite; /* SUITE_NONE: one that is unknown here */
    uint64_t epoch;
    char user[NAME_SIZE]; /* as in logkey */
} logkey_about;
int logkey_look(logkey_about *out, const char *line, size_t size);
/* 1: the blob of a user's secret (`user-HASH-EPOCH`) is not there, and its marker is and
 * opens, or its epoch was dropped: the user was forgotten. 0: it is there, or nothing
 * proves that it was removed on purpose. -1: that is not known; err says why. */
int keyring_forgot_secret(const keyring *k, const char *secret, sessile_error *err);
/* The bytes of a user's secret. 0: they open; 1: they open, and it was drawn after an
 * earlier one of its name was forgotten; -1: they do not open. */
int keyring_secret_look(const keyring *k, const char *name, const char *blob,
                        size_t size);
/* Appends the name of the marker of the secret in the blob `secret`. */
void forgotten_name(const char *secret, buf *out);
/* 1: the log is sealed with the secret of a user, which is not there any more, and
 * its marker is and opens, or its epoch was dropped: the user was forgotten, and nothing
 * opens the log. 0: no (a secret may be missing by damage), or it is of a newer epoch
 * than this keyring. -1: that is not known; err says why. */
int keyring_forgot(const keyring *k, const logkey_about *log, sessile_error *err);

/* Appends to line (which holds everything before the base64, from the line's first byte
 * at line_start) the base64 of nonce ‖ seal(key; previous tag ‖ entry); AAD = commitment
 * ‖ the line so far. tag_out: the AEAD tag. */
sessile_status seal_line(const logkey *k, buf *line, size_t line_start,
                         const unsigned char previous[VAULT_TAG], const void *entry,
                         size_t size, unsigned char tag_out[VAULT_TAG], buf *scratch,
                         sessile_error *err);
/* Opens what seal_line wrote: head = the bytes before the base64. Appends the entry to
 * out; previous_out: the tag of the line before it, as sealed; tag_out: its own. Returns
 * 0, or -1 when it does not open (nothing appended). */
int open_line(const logkey *k, const char *head, size_t head_size, const char *base64,
              size_t base64_size, buf *out, unsigned char previous_out[VAULT_TAG],
              unsigned char tag_out[VAULT_TAG]);

/* ---- sealed blobs: bytes that are not lines, for caches (sealed_blob.c) */

/*
 * Appends the bytes sealed under a log's key or the store's. ad (at least a byte) says
 * what the blob is for, and must be the same to open it. NOMEM.
 */
sessile_status logkey_seal_blob(const logkey *k, const void *ad, size_t ad_size,
                                const void *data, size_t size, buf *out,
                                sessile_error *err);
sessile_status keyring_seal_blob(const keyring *k, const void *ad, size_t ad_size,
                                 const void *data, size_t size, buf *out,
                                 sessile_error *err);
/* Appends the bytes of a blob. 0; -1: it does not open (or out->failed: NOMEM), nothing
 * is appended. */
int logkey_open_blob(const logkey *k, const void *ad, size_t ad_size, const void *blob,
                     size_t size, buf *out);
int keyring_open_blob(const keyring *k, const void *ad, size_t ad_size, const void *blob,
                      size_t size, buf *out);
/* 1: a blob of keyring_seal_blob() is sealed with another master key than the newest. */
int keyring_blob_is_old(const keyring *k, const void *blob, size_t size);

/* ---- pseudonyms of users (pseudonym.c) */

#define PSEUDONYM_SIZE 40
/*
 * "u_" and a hash of a user's name under the user's secret, which is made when there is
 * none. secret_name: the blob of that secret; sealed: the name, sealed with it, in
 * base64. In a plain store the hash is under the name key, secret_name is "" and nothing
 * is sealed.
 */
sessile_status pseudonym_make(const keyring *k, sessile_slice user,
                              char out[PSEUDONYM_SIZE], char secret_name[NAME_SIZE],
                              buf *sealed, sessile_error *err);
/* The pseudonyms that a user has had, one for each epoch of the keyring that has a secret
 * of theirs, newest first; *count of them, at most room. Nothing is made. */
sessile_status pseudonym_find(const keyring *k, sessile_slice user,
                              char (*out)[PSEUDONYM_SIZE], size_t room, size_t *count,
                              sessile_error *err);
/* "o_" and a hash under the name key: of somebody whose secret is not asked for. */
void pseudonym_under_name_key(const keyring *k, sessile_slice user,
                              char out[PSEUDONYM_SIZE]);
/* Appends the name. SEALED: the user was forgotten, or the keys that sealed it were
 * dropped. */
sessile_status pseudonym_open(const keyring *k, const char *pseudonym,
                              const char *secret_name, sessile_slice sealed, buf *out,
                              sessile_error *err);

/* ---- names of blobs (blob_names.c) */

typedef struct blob_names {
    buf text; /* each with its NUL */
    size_t count;
} blob_names;
/* Those that begin with prefix; none where the backend cannot list them. out->text is to
 * be freed, also after an error. */
sessile_status blob_names_find(blob_names *out, const sessile_backend *table, void *self,
                               const char *prefix, const allocator *a,
                               sessile_error *err);

#endif
