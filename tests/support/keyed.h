/* keyed.h: sealed stores with sessions of users, for tests of keys. */
#ifndef SUPPORT_KEYED_H
#define SUPPORT_KEYED_H

#include "sessile.h"

#define KEYED_OLD "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEYED_NEW "hex:ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
/* In every title and message; never in a file of a sealed store. */
#define KEYED_CANARY "xyzzy-canary-91c4"
#define KEYED_USER   "ann.user-canary@example.org"

/* The sessions that keyed_fill() makes: of nobody, of KEYED_USER, of another user. */
typedef struct keyed_session {
    const char *id, *user;
} keyed_session;
extern const keyed_session keyed_sessions[];
extern const size_t keyed_count;

/* Opens the store in a folder; suite may be NULL. */
sessile_status keyed_try(sessile_store **out, const char *root, const char *secret,
                         const char *suite, sessile_error *err);
/* These fail the test when the engine refuses. */
sessile_store *keyed_open(const char *root, const char *secret);
void keyed_fill(sessile_store *store);
sessile_session *keyed_resume(sessile_store *store, const char *id, const char *user);
void keyed_say(sessile_session *s, const char *content);

/* All entries of a session, a line each, in *out: free(). */
sessile_status keyed_read(sessile_store *store, const char *id, const char *user,
                          char **out, sessile_error *err);
/* The same of every session that keyed_fill() makes, in one text: free(). skip: a user
 * whose sessions are left out, or NULL. */
char *keyed_read_all(sessile_store *store, const char *skip);

/* Runs a whole reseal. */
sessile_status keyed_reseal(sessile_store *store, const char *suite,
                            sessile_reseal_state *last, sessile_error *err);

/* A copy of a folder, with all that is in it, in the place of what is there. */
void keyed_copy(const char *from, const char *to);
/* How many files under a folder hold this text. */
int keyed_files_with(const char *folder, const char *text);
/* The path of the only file of a store whose path holds both texts: free(). */
char *keyed_file(const char *root, const char *in_path, const char *in_bytes);

#endif
