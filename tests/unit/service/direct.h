/*
 * direct.h: methods called directly, over a store in memory and without a connection.
 *
 *   Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
 *   r.session = asked("s");
 *   Sessile__V1__Labels *labels = call_ok("ListLabels", &r);
 *   call_fails("ListLabels", &r, RPC_NOT_FOUND, "ENOTFOUND");
 *
 * A reply lives until the test ends, and so does what asked() and its like return.
 */
#ifndef UNIT_SERVICE_DIRECT_H
#define UNIT_SERVICE_DIRECT_H

#include "fake_rpc.h"
#include "service/memory.pb-c.h"
#include "service/server.h"

/* What the calls of a test use; made anew for each test. */
extern struct direct {
    sessile_store *store;
    service service;
    rpc_call rpc; /* of the last call; what it asks may be set before */
    void *replies;
} direct;

/* Fixtures of cmocka. */
int direct_open(void **state);
int direct_close(void **state);
#define DIRECT(test) cmocka_unit_test_setup_teardown(test, direct_open, direct_close)
/* The same over files: what is in memory cannot be erased. */
int direct_open_files(void **state);
int direct_close_files(void **state);
#define DIRECT_FILES(test) \
    cmocka_unit_test_setup_teardown(test, direct_open_files, direct_close_files)

/* Over a store, which direct_close() closes. */
int direct_open_over(sessile_store *store);

/* Calls a method with the bytes of a request. */
void call_bytes(const char *name, const void *bytes, size_t size);
/* Calls a method, which has to succeed: its reply, or the first one of a stream. */
void *call_ok(const char *name, const void *request);
/* Message i of the last call's reply. */
void *call_got(const char *name, size_t i);
/* Calls a method, which has to end with that code and that sessile-status, a sentence,
 * and no reply. */
void call_fails(const char *name, const void *request, rpc_code code, const char *status);

Sessile__V1__Session *asked(const char *id);
/* The memory of a user; NULL: the one that the agent keeps for all. */
Sessile__V1__Memory *memory_named(const char *user);
Sessile__V1__Json *json_of_text(const char *text);
Sessile__V1__Entry *entry_of(sessile_id id);
/* Makes a session with that many messages, "message 0" of the user, "message 1", … Its
 * name for requests. */
Sessile__V1__Session *session_with(const char *id, int messages);

#endif
