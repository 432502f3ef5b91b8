/* triggers.h: turns and compactions under triggers, with a clock of the test's own */
#ifndef SUPPORT_TRIGGERS_H
#define SUPPORT_TRIGGERS_H

#include "base/os.h"
#include "sessile.h"

extern int64_t world_now_ms;
int64_t world_tell_now(void *ud);
/* What the host's hooks do. Which: one for the policy, one for the fallback. */
typedef enum act {
    NOTHING,
    CUT,   /* drops all but the newest 2 messages */
    CROP,  /* drops the oldest message */
    BREAK, /* drops what law 5 keeps: the last user message */
    FAIL
} act;

typedef struct world {
    char folder[64];
    os_table os;
    sessile_store *store;
    sessile_session *s;
    sessile_policy *policy, *fallback; /* NULL: none is given to the turns */
    sessile_run_options options;       /* of every turn; policies aside */
    sessile_triggers t;                /* of every turn, when world_use() was called */
    act compact, truncate;             /* of the policy */
    act instead;                       /* every hook of the fallback */
    int should;                        /* what should_compact says */
    const char *note; /* vars that a hook leaves, a JSON object; or NULL */
    char calls[512];  /* "hook:reason " for each, "fallback/" before the fallback's */
    sessile_outcome out;
    sessile_run *run; /* the last, which out borrows from */
} world;

void world_open_store(world *w, const sessile_triggers *triggers);
void world_open_session(world *w, const sessile_triggers *triggers);
sessile_policy *world_host(world *w, const char *name, unsigned hooks);
void world_close(world *w);
void world_reopen(world *w);
int world_set_up(void **state);
int world_tear_down(void **state);
void world_cut(sessile_state *state, size_t keep);
void world_do(world *w, act what, const sessile_need *need, sessile_answer *a);
void world_answer(world *w, const sessile_need *need);
void world_drive(world *w);
sessile_run_options world_options(world *w);
/* A turn: a question and an answer. Returns what was called. */
const char *world_turn(world *w);
const char *world_compact(world *w, int plan);
/* How many entries of the log hold a text. */
int world_entries_with(world *w, const char *text);
size_t world_context_size(world *w);
void world_use(world *w, sessile_triggers t);
#define FIRES(w, reason) assert_string_equal(world_turn(w), "compact:" reason " ")

#define IS_QUIET(w) assert_string_equal(world_turn(w), "")

#define IN_WORLD(test) \
    cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

#endif
