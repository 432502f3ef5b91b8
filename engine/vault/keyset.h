/*
 * keyset.h: the keys of one JWKS file (RFC 7517), as it was when it was read.
 */
#ifndef VAULT_KEYSET_H
#define VAULT_KEYSET_H

#include "base/os.h"
#include "codec/json.h"
#include "vault/signature.h"

/* A larger file, or one with more keys, is refused. */
enum { KEYSET_FILE_MOST = 1 << 20, KEYSET_KEYS_MOST = 256 };

typedef struct keyset keyset;

/*
 * Reads the file at path. It must be a regular file, no link, owned by this user or root,
 * that nobody else may write (DENIED); with a secret (kty "oct") in it, nobody else may
 * read it either. INVALID names the file, the key by its number from 1, and what is
 * wrong; LIMIT: the file is too large or has too many keys; BUSY: it changes all the
 * time.
 *
 * A key is used if its kind and its algorithm are known here. Other keys are skipped: of
 * another kty, crv or alg, with a use other than "sig", with key_ops without "verify".
 * The whole file is refused if a key of a known kind is invalid, or if no key is used.
 */
sessile_status keyset_read(keyset **out, const char *path, signature_library *library,
                           const os_table *os, const allocator *a, sessile_error *err);
void keyset_free(keyset *set);

/* 1 when the file at path is not the one that was read any more, or may not be. */
int keyset_stale(const keyset *set, const char *path, const os_table *os);

/* The key with this kid, a JSON string. With JSON_NONE: the only key of the set. NULL:
 * there is none. */
const signature_key *keyset_find(const keyset *set, json kid);

#endif
