/* runs.h: runs with policies that are the host's own functions */
#ifndef SUPPORT_RUNS_H
#define SUPPORT_RUNS_H

#include "sessile.h"

extern char runs_folder[64];
/* What the host's hooks do, and what they were called with. */
typedef struct host_script {
    char calls[256];
    void (*on)(sessile_hook hook, sessile_state *state, sessile_answer *answer,
               void *arg);
    void *arg;
    const char *model_text; /* answer to NEED_MODEL; NULL: a failure */
    int models;
    char request[2048];
} host_script;

sessile_store *run_store(const char *url);
sessile_session *session_at(sessile_store *store);
/* What most tests begin with: an empty session in a volatile store. */
typedef struct run_world {
    sessile_store *store;
    sessile_session *s;
} run_world;

void session_done(sessile_session *s);
sessile_policy *host_policy(sessile_store *store, unsigned hooks);
void run_answer(sessile_run *run, const sessile_need *need, host_script *sc);
void run_finish(sessile_run *run, host_script *sc, sessile_outcome *out);
/* A turn of n messages, alternately user and assistant, driven to its end. */
sessile_run *take_turn(sessile_session *s, sessile_policy *p, int n, host_script *sc,
                       sessile_outcome *out);
size_t context_size(sessile_session *s);
size_t message_count(sessile_session *s);
/* How many entries of the log hold a text. */
int entries_with(sessile_session *s, const char *text);
void drop_first(sessile_hook hook, sessile_state *state, sessile_answer *a, void *arg);
void say_no(sessile_hook hook, sessile_state *state, sessile_answer *a, void *arg);
/* Begins a turn whose truncate is asked for and not yet answered. */
sessile_run *turn_waiting(sessile_session *s, sessile_policy *p, sessile_need *need);
int open_world(void **state);
int close_world(void **state);
/* A test in a world of its own. */
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int make_folder(void **state);
int remove_folder(void **state);

#endif
