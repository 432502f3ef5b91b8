/* sessions.h: stores and sessions for tests, and entries written by hand. */
#ifndef SUPPORT_SESSIONS_H
#define SUPPORT_SESSIONS_H

#include "session/handle.h"

typedef enum store_kind { STORE_RAM, STORE_SEALED, STORE_PLAIN, STORE_KINDS } store_kind;
extern const char *const store_kind_names[STORE_KINDS];

/* A folder under TMPDIR; removed with all that is in it. */
char *folder_make(void);
void folder_remove(char *folder);

/* A store and where it lies. Reopening a ram store is not possible. With TEST_STORE
 * (tests/run --store) all three kinds are in that backend, each in a place of its own.
 * With TEST_GUARD (tests/run --guard) each has a guard, and `store` is the view of
 * whoever has the store. */
typedef struct place {
    store_kind kind;
    char *folder; /* a file store's; the database is in it, or there is nothing */
    char *url;
    sessile_store *store;
} place;
void place_open(place *p, store_kind kind);
void place_close(place *p);
/* Which backend TEST_STORE names; NULL: none, a folder is one. */
const char *place_elsewhere(void);
/* Where a store is that would be in this folder; the second frees the text, and ends a
 * database. */
char *place_url(const char *folder);
void place_url_free(char *url);
/* Ends the test, skipped, where stores are no folders: it is about their files or locks.
 */
void place_files_only(void);
/* Which profile TEST_GUARD names; NULL: stores have no guard. */
const char *place_guard(void);
/* Ends the test, skipped, where stores have a guard: what holds without one alone. */
void place_unguarded_only(void);
/* The host's own handle, which may load policies, of a store's; without a guard, itself.
 */
sessile_store *place_host(sessile_store *st);
/* Another handle of the same store: of ram, the same handle. */
sessile_store *place_again(const place *p);
void place_again_close(const place *p, sessile_store *again);

/* These fail the test when the engine refuses. */
sessile_session *session_made(sessile_store *st, const char *id);
sessile_session *session_resumed(sessile_store *st, const char *id);
void session_closed(sessile_session *s);
/* session_made() in the place of a test. */
sessile_session *session_in(void **state, const char *id);

/* Writing by hand. Each writes one commit and syncs it. */
sessile_status try_say(sessile_session *s, const char *message, sessile_id *out,
                       sessile_error *err);
sessile_id say(sessile_session *s, const char *role, const char *content);
sessile_id say_json(sessile_session *s, const char *message);
/* Messages and their turn entry; rest: further fields of the turn, as ",\"usage\":{}".
 * The turn entry's id; its messages are the count ids before it. */
sessile_id say_turn(sessile_session *s, const char *const *messages, size_t count,
                    const char *rest);
/* One entry; type by name, so that unknown ones can be written. parent SESSILE_NO_ID: the
 * head. */
sessile_status try_entry(sessile_session *s, const char *type, sessile_id parent,
                         const char *data, sessile_id *out, sessile_error *err);
sessile_id put_entry(sessile_session *s, const char *type, sessile_id parent,
                     const char *data);
/* A head fact. */
void move_head(sessile_session *s, sessile_id to);

/* The context at a leaf, or at the head (SESSILE_NO_ID), as "00000001 00000016.1 …":
 * free(). */
char *context_keys(sessile_session *s, sessile_id leaf);

/* Fixtures of cmocka: *state is a place of its own for each test. */
int place_set_up_ram(void **state);
int place_set_up_sealed(void **state);
int place_set_up_plain(void **state);
int place_tear_down(void **state);
/* Runs tests made by OVER() in a place of each kind from `first` on, each kind as a group
 * named "WHAT over KIND"; how many groups failed. */
struct CMUnitTest;
int run_over_kinds(const char *what, store_kind first, const struct CMUnitTest *tests,
                   size_t count);
#define OVER(test) cmocka_unit_test_setup_teardown(test, NULL, place_tear_down)
/* Another handle's commits become visible in this one. */
void refresh(sessile_session *s);
/* The options of a session with this id. */
sessile_session_options named(const char *id);
/* The path of a session's log in a file store. */
void log_path(const place *p, const char *id, char out[600]);

#endif
