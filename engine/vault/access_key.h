/*
 * access_key.h: access keys: what a program shows to say who it is.
 *
 *     sesk_ID_SECRET_CHECK
 *
 * ID: 16 letters, which name the key in the control log. SECRET: 32 random bytes, 52
 * letters. CHECK: 6 letters of a hash of what is before them, so that a key that was
 * mistyped or cut is told without a look-up. All of it is lower-case base32. A store
 * keeps a hash of the key under its name key, never the key.
 */
#ifndef VAULT_ACCESS_KEY_H
#define VAULT_ACCESS_KEY_H

#include "vault/vault.h"

enum {
    ACCESS_KEY_ID = 16,                                   /* letters */
    ACCESS_KEY_TEXT = 5 + ACCESS_KEY_ID + 1 + 52 + 1 + 6, /* all of them */
    ACCESS_KEY_HASH = 32
};

/* Draws a key: its text, with a NUL. The caller wipes it. */
void access_key_draw(char out[ACCESS_KEY_TEXT + 1]);
/* 0, and *id borrows from text; or -1: it is no key, whatever a store has. */
int access_key_read(sessile_slice text, sessile_slice *id);
/* What a store keeps of a key. */
void access_key_hash(const keyring *k, sessile_slice text,
                     unsigned char out[ACCESS_KEY_HASH]);
/* Constant time. */
int access_key_same(const unsigned char a[ACCESS_KEY_HASH],
                    const unsigned char b[ACCESS_KEY_HASH]);

#endif
