/*
 * ring.h: what a keyring is made of, for the files of the vault that read and change it.
 *
 *   keyring.c         what is in it; read again
 *   keyring_open.c    opened, or made
 *   keyring_text.c    its bytes
 *   keyring_change.c  a new epoch, another secret, another suite, epochs dropped
 *   user.c            secrets of users, which its master keys wrap
 *   forgotten.c       markers of forgotten users, which they seal
 *
 * A keyring changes while it is open: another process may rotate it. What may change is
 * in a ring, under its mutex. Master keys are never freed before the keyring is, so that
 * they can be borrowed without it.
 */
#ifndef VAULT_RING_H
#define VAULT_RING_H

#include <pthread.h>

#include "vault/guarded.h"

/* The names of blobs. */
#define RING_BLOB KEYRING_BLOB

/* A master key, in guarded memory of its own. */
typedef struct master {
    struct master *older;
    uint64_t epoch;
    int dropped; /* the store's keyring has it no more */
    unsigned char key[VAULT_KEY];
} master;
master *master_new(uint64_t epoch);
void masters_free(master *m);

/* How the secret becomes the key that wraps the keyring. */
typedef struct wrapping {
    int stretched;
    unsigned char salt[SECRET_SALT];
    uint64_t ops, mem;
    unsigned char *key; /* guarded */
} wrapping;

/* What a sealed keyring holds. */
typedef struct ring_inner {
    suite suite;
    unsigned char *name_key; /* guarded */
    master *masters;         /* newest first */
} ring_inner;
void ring_inner_free(ring_inner *in);

/* The text of a keyring, taken apart but not opened. */
typedef struct ring_text {
    buf line; /* without its newline */
    int sealed;
    int stretched;
    unsigned char salt[SECRET_SALT];
    uint64_t ops, mem;
    size_t head;             /* sealed: size of what is before the base64 */
    buf box;                 /* sealed: what the base64 decodes to */
    unsigned char *name_key; /* plain: guarded */
} ring_text;
/* DAMAGED, UNSUPPORTED (a newer version), NOMEM. want_sealed: the other mode is SEALED
 * before anything else of it is looked at. */
sessile_status ring_text_read(ring_text *t, const char *blob, size_t size,
                              int want_sealed, const allocator *a, sessile_error *err);
/* SEALED: the key does not open it. */
sessile_status ring_text_open(const ring_text *t, const unsigned char key[VAULT_KEY],
                              ring_inner *out, sessile_error *err);
void ring_text_deinit(ring_text *t);
/* Appends the whole blob. NOMEM. */
sessile_status ring_text_put(buf *out, const wrapping *w, const ring_inner *in,
                             sessile_error *err);
sessile_status ring_text_put_plain(buf *out, const unsigned char name_key[VAULT_KEY],
                                   sessile_error *err);

/* A new salt and the key that it makes of the secret. NOMEM. */
sessile_status wrapping_make(wrapping *w, const secret *s, sessile_error *err);
void wrapping_deinit(wrapping *w);

typedef struct ring {
    pthread_mutex_t mutex;
    suite suite;
    master *masters; /* newest first */
    wrapping wrap;
    char *blob; /* as it was read or written last */
    size_t blob_size;
    int settled; /* its name is known to be durable */
} ring;

struct keyring {
    const allocator *alloc;
    const sessile_backend *backend; /* NULL: of a volatile store */
    void *self;
    int sealed;
    sessile_key_source source;
    unsigned char *name_key; /* guarded; never changes */
    ring *ring;
};

/* Takes over a keyring's text that is in the store now. SEALED: it is another keyring. */
sessile_status keyring_adopt(const keyring *k, ring_inner *in, const char *blob,
                             size_t size, int settled, sessile_error *err);

#endif
