/*
 * scenarios.c: what hosts do to a store, in small pieces.
 *
 * Each is short, since everything that can happen happens at every step of it; and goes
 * on only while calls succeed. Must never look at files: ground.h keeps the account.
 */
#include "support/ground.h"

#include <stdlib.h>
#include <string.h>

/* Runs the steps until one fails. */
#define DO(step)                         \
    do {                                 \
        sessile_status status_ = (step); \
        if (status_)                     \
            return status_;              \
    } while (0)

static sessile_status some_entries(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_create(g, 0, "s"));
    DO(ground_say(g, 0, 40));
    DO(ground_say(g, 0, 700));
    return ground_say(g, 0, 10);
}

static sessile_status open_old(ground *g)
{
    DO(ground_store(g, 0));
    return ground_resume(g, 0, "s");
}

static sessile_status create(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_create(g, 0, "s"));
    return ground_say(g, 0, 600);
}

static sessile_status two_sessions(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_create(g, 0, "s"));
    DO(ground_say(g, 0, 600));
    DO(ground_close_session(g, 0));
    DO(ground_create(g, 0, "t"));
    DO(ground_say(g, 0, 20));
    DO(ground_close_session(g, 0));
    DO(ground_resume(g, 0, "s"));
    return ground_say(g, 0, 30);
}

static sessile_status append(ground *g)
{
    static const size_t sizes[] = {30, 1300, 5, 500, 2600};
    DO(open_old(g));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        DO(ground_say(g, 0, sizes[i]));
    return SESSILE_OK;
}

static sessile_status turns(ground *g)
{
    DO(open_old(g));
    DO(ground_turn_begin(g, 0, 4, 300));
    DO(ground_turn_end(g, 0));
    DO(ground_turn_begin(g, 0, 1, 20));
    return ground_turn_end(g, 0);
}

static sessile_status compaction(ground *g)
{
    DO(open_old(g));
    for (int i = 0; i < 4 && !g->refused; i++) {
        DO(ground_turn_begin(g, 0, 2, 100));
        DO(ground_turn_end(g, 0));
    }
    return SESSILE_OK;
}

static sessile_status unsynced(ground *g)
{
    DO(open_old(g));
    for (int i = 0; i < 4; i++)
        DO(ground_say(g, 0, 200));
    DO(ground_close_session(g, 0));
    DO(ground_resume(g, 0, "s"));
    DO(ground_say(g, 0, 200));
    return ground_close_session(g, 0);
}

/* Two store handles as two processes have them. */
static sessile_status two_handles(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_store(g, 1));
    DO(ground_resume(g, 0, "s"));
    DO(ground_resume(g, 1, "s"));
    DO(ground_say(g, 0, 50));
    DO(ground_say(g, 1, 600));
    DO(ground_turn_begin(g, 0, 2, 300));
    DO(ground_say(g, 1, 10));
    DO(ground_turn_end(g, 0));
    return ground_say(g, 1, 20);
}

/* Two session handles of one store handle: they share what they know to be synced. */
static sessile_status shared(ground *g)
{
    DO(ground_store(g, 0));
    ground_share(g, 1, 0);
    DO(ground_resume(g, 0, "s"));
    DO(ground_resume(g, 1, "s"));
    DO(ground_turn_begin(g, 0, 2, 300));
    DO(ground_say(g, 1, 600));
    DO(ground_turn_end(g, 0));
    DO(ground_say(g, 0, 20));
    return ground_say(g, 1, 20);
}

static sessile_status listed(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_list(g, 0));
    DO(ground_resume(g, 0, "s"));
    DO(ground_say(g, 0, 200));
    DO(ground_list(g, 0));
    DO(ground_say(g, 0, 20));
    DO(ground_close_session(g, 0));
    DO(ground_create(g, 0, "t"));
    return ground_list(g, 0);
}

static sessile_status many_entries(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_create(g, 0, "s"));
    for (int i = 0; i < 14; i++) { /* 17 entries each */
        DO(ground_turn_begin(g, 0, 16, 4));
        DO(ground_turn_end(g, 0));
    }
    while (g->logs[0].acknowledged < 254)
        DO(ground_say(g, 0, 4));
    return SESSILE_OK;
}

/* Past the size of a block of an index, 256 entries. */
static sessile_status boundary(ground *g)
{
    DO(open_old(g));
    DO(ground_turn_begin(g, 0, 3, 10));
    DO(ground_turn_end(g, 0));
    DO(ground_say(g, 0, 600));
    DO(ground_close_session(g, 0));
    DO(ground_resume(g, 0, "s"));
    return ground_say(g, 0, 10);
}

/* The file of "s" with its last bytes cut off, or wrong ones behind it. */
static void spoil(ground *g, size_t cut, const char *more)
{
    char path[128];
    size_t size;
    ground_path("s", path);
    char *text = simfs_read(g->fs, path, &size);
    size_t extra = strlen(more);
    text = realloc(text, size + extra + 1);
    if (!text)
        abort();
    memcpy(text + size - cut, more, extra);
    simfs_write(g->fs, path, text, size - cut + extra);
    free(text);
}

static sessile_status torn_line(ground *g)
{
    DO(some_entries(g));
    ground_drop_handles(g);
    g->logs[0].acknowledged--; /* its last bytes never reached the disk */
    spoil(g, 20, "");
    return SESSILE_OK;
}

static sessile_status torn_zeros(ground *g)
{
    char garbage[1500];
    DO(some_entries(g));
    ground_drop_handles(g);
    memset(garbage, '#', sizeof garbage - 1);
    garbage[sizeof garbage - 1] = 0;
    garbage[700] = '\n';
    spoil(g, 0, garbage);
    return SESSILE_OK;
}

static sessile_status recovery(ground *g)
{
    DO(open_old(g));
    DO(ground_say(g, 0, 300));
    return ground_say(g, 0, 10);
}

/* A sync fails; the host opens the store again and goes on. */
static sessile_status failed_sync(ground *g)
{
    DO(open_old(g));
    DO(ground_say(g, 0, 40));
    simfs_fail_sync(g->fs, 0);
    if (ground_say(g, 0, 900) != SESSILE_IO)
        return SESSILE_INVALID;
    (void)ground_say(g, 0, 10); /* whoever answers OK now will be held to it */
    ground_drop_handles(g);
    DO(open_old(g));
    DO(ground_say(g, 0, 30));
    return ground_say(g, 0, 600);
}

static sessile_status rotation(ground *g)
{
    DO(open_old(g));
    DO(ground_say(g, 0, 40));
    DO(ground_rotate(g, 0));
    DO(ground_say(g, 0, 40));
    DO(ground_close_session(g, 0));
    DO(ground_create(g, 0, "t"));
    return ground_say(g, 0, 40);
}

/* A handle that is open meanwhile writes to the file that took the place of its own. */
static sessile_status resealing(ground *g)
{
    DO(open_old(g));
    DO(ground_store(g, 1));
    DO(ground_rotate(g, 1));
    DO(ground_reseal(g, 1));
    DO(ground_say(g, 0, 40));
    DO(ground_close_session(g, 0));
    DO(ground_resume(g, 0, "s"));
    return ground_say(g, 0, 600);
}

static sessile_status two_users(ground *g)
{
    DO(some_entries(g));
    DO(ground_close_session(g, 0));
    DO(ground_create_for(g, 0, "u", "user"));
    return ground_say(g, 0, 40);
}

static sessile_status forgetting(ground *g)
{
    DO(open_old(g));
    DO(ground_forget(g, 0, "u"));
    return ground_say(g, 0, 40);
}

/* ---- memories: ids begin with 1, behind the header */

static sessile_status remembered(ground *g)
{
    DO(ground_store(g, 0));
    DO(ground_memory(g, 0, NULL));
    DO(ground_remember(g, 0, 3, 40, 0));
    return ground_remember(g, 0, 1, 300, 0);
}

static sessile_status open_memory(ground *g)
{
    DO(ground_store(g, 0));
    return ground_memory(g, 0, NULL);
}

static sessile_status memory_made(ground *g)
{
    DO(open_memory(g));
    DO(ground_remember(g, 0, 1, 600, 0));
    return ground_remember(g, 0, 2, 10, 1);
}

/* Entries and the end of others in one commit; verdicts; what undoes them. */
static sessile_status memory_goes_on(ground *g)
{
    DO(open_memory(g));
    DO(ground_remember(g, 0, 1, 1300, 0));
    DO(ground_remember(g, 0, 4, 300, 1));
    DO(ground_judge(g, 0, 3, SESSILE_MEMORY_DELETE));
    DO(ground_remember(g, 0, 2, 30, 5));
    return ground_judge(g, 0, 3, SESSILE_MEMORY_RESTORE);
}

static sessile_status memory_of_two(ground *g)
{
    DO(open_memory(g));
    DO(ground_store(g, 1));
    DO(ground_memory(g, 1, NULL));
    DO(ground_remember(g, 0, 2, 40, 0));
    DO(ground_remember(g, 1, 3, 300, 1));
    DO(ground_judge(g, 0, 3, SESSILE_MEMORY_DELETE));
    return ground_remember(g, 1, 1, 20, 0);
}

static sessile_status much_remembered(ground *g)
{
    DO(open_memory(g));
    while (g->logs[0].acknowledged < 248)
        DO(ground_remember(g, 0, 8, 4, 0));
    DO(ground_remember(g, 0, 4, 4, 0));
    return ground_judge(g, 0, 9, SESSILE_MEMORY_DELETE);
}

/* Past a block of the index, in which is what ended and what did not. */
static sessile_status memory_boundary(ground *g)
{
    DO(open_memory(g));
    DO(ground_remember(g, 0, 3, 10, 11));
    DO(ground_judge(g, 0, 13, SESSILE_MEMORY_DELETE));
    DO(ground_remember(g, 0, 1, 600, 0));
    DO(ground_close_memory(g, 0));
    DO(ground_memory(g, 0, NULL));
    return ground_remember(g, 0, 2, 10, 0);
}

static sessile_status memory_erased(ground *g)
{
    DO(open_memory(g));
    DO(ground_remember(g, 0, 2, 40, 0));
    DO(ground_erase(g, 0, 3));
    DO(ground_remember(g, 0, 2, 40, 1));
    DO(ground_close_memory(g, 0));
    DO(ground_memory(g, 0, NULL));
    return ground_remember(g, 0, 1, 300, 0);
}

static sessile_status remembered_of_a_user(ground *g)
{
    DO(some_entries(g));
    DO(ground_close_session(g, 0));
    DO(ground_memory(g, 0, "user"));
    return ground_remember(g, 0, 2, 40, 0);
}

static sessile_status memory_forgotten(ground *g)
{
    DO(open_old(g));
    DO(ground_forget(g, 0, GROUND_MEMORY));
    return ground_say(g, 0, 40);
}

const scenario scenarios[] = {
    {"create", NULL, create, 0, 0, 0, 0, 0, 0},
    {"two_sessions", NULL, two_sessions, 0, 0, 0, 0, 0, 0},
    {"append", some_entries, append, 0, 0, 0, 0, 0, 0},
    {"turns", some_entries, turns, 0, 0, 0, 0, 0, 0},
    {"compaction", some_entries, compaction, 0, 0, 0, 0, 0, 0},
    {"unsynced", some_entries, unsynced, 1, 0, 0, 0, 0, 0},
    {"two_handles", some_entries, two_handles, 0, 0, 0, 0, 0, 0},
    {"shared", some_entries, shared, 0, 0, 0, 0, 0, 0},
    {"listed", some_entries, listed, 0, 0, 0, 1, 0, 0},
    {"boundary", many_entries, boundary, 0, 0, 0, 0, 0, 0},
    {"rotation", some_entries, rotation, 0, 0, 1, 0, 0, 0},
    {"resealing", some_entries, resealing, 0, 0, 1, 0, 0, 0},
    {"forgetting", two_users, forgetting, 0, 0, 1, 0, 0, 0},
    {"torn_line", torn_line, recovery, 0, 0, 0, 0, 0, 0},
    {"torn_zeros", torn_zeros, recovery, 0, 0, 0, 0, 0, 0},
    {"failed_sync", some_entries, failed_sync, 0, 1, 0, 0, 0, 0},
    {"memory_made", NULL, memory_made, 0, 0, 0, 0, 1, 0},
    {"memory", remembered, memory_goes_on, 0, 0, 0, 0, 1, 0},
    {"memory_of_two", remembered, memory_of_two, 0, 0, 0, 0, 1, 0},
    {"memory_boundary", much_remembered, memory_boundary, 0, 0, 0, 0, 1, 1},
    {"memory_erased", remembered, memory_erased, 0, 0, 0, 0, 1, 0},
    {"memory_forgotten", remembered_of_a_user, memory_forgotten, 0, 0, 1, 0, 0, 0},
};
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;
