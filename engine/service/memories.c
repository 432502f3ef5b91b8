/*
 * memories.c: the memories of a call: found by their names, opened for who calls, given
 * back.
 */
#include "service/memories.h"

#include <string.h>

static sessile_slice empty_text(void)
{
    return sessile_text(""); /* not NULL: of a memory that means the one for all */
}

/* ---------------------------------------------------------------------- names */

sessile_status call_memory_names(call *c, const Sessile__V1__Memory *names,
                                 sessile_session_options *out, sessile_error *err)
{
    Sessile__V1__Session same = SESSILE__V1__SESSION__INIT;
    if (!names)
        return fail(err, SESSILE_INVALID, "the request names no memory");
    same.agent = names->agent;
    same.user = names->user;
    same.raw = names->raw;
    sessile_status status = call_names(c, &same, out, err);
    if (status)
        return status;
    if (out->id.size)
        return fail(err, SESSILE_INVALID, "Memory.raw.id: a memory has no id");
    if (names->shared && names_user(&same))
        return fail(err, SESSILE_INVALID,
                    "Memory.shared: the memory that the agent keeps for all has no user");
    if (names->shared || !out->user.size)
        out->user = empty_text();
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- opening */

static sessile_status make_memory(call *c, const sessile_session_options *names,
                                  sessile_error *err)
{
    sessile_memory_options options;
    sessile_memory *made;
    sessile_memory_options_init(&options);
    options.agent = names->agent;
    options.user = names->user;
    sessile_status status = sessile_memory_open(&made, c->view, &options, err);
    sessile_memory_close(made);
    return status;
}

static sessile_status take_memory(call *c, const sessile_session_options *names, int make,
                                  sessile_memory **out, sessile_error *err)
{
    keep *all = c->server->memories;
    const size_t i = c->memory_count;
    int fresh = 0;
    *out = NULL;
    if (i >= SESSILE_RECALL_MEMORIES_MAX)
        return fail(err, SESSILE_INVALID, "the call is about too many memories");
    if (c->server->settings.guarded && !sessile_can(c->view, SESSILE_MAY_READ_MEMORY,
                                                    names->agent, names->user, names->id))
        return fail(err, SESSILE_DENIED, "the memory is not yours to read");
    sessile_status status = keep_take(all, names, &c->memories[i].kept, &fresh, err);
    if (status == SESSILE_NOTFOUND && make) {
        error_clear(err);
        status = make_memory(c, names, err);
        if (!status)
            status = keep_take(all, names, &c->memories[i].kept, &fresh, err);
    }
    if (status)
        return status;
    c->memory_count++;
    c->warm |= !fresh;
    status = sessile_memory_as(&c->memories[i].memory, kept_memory(c->memories[i].kept),
                               c->view, err);
    *out = c->memories[i].memory;
    return status;
}

sessile_status call_memory(call *c, const Sessile__V1__Memory *names, int make,
                           sessile_memory **out, sessile_error *err)
{
    sessile_session_options options;
    sessile_status status = call_memory_names(c, names, &options, err);
    *out = NULL;
    return status ? status : take_memory(c, &options, make, out, err);
}

sessile_status call_memory_to_write(call *c, const Sessile__V1__Memory *names, int make,
                                    sessile_memory **out, sessile_error *err)
{
    sessile_session_options options;
    sessile_status status = call_memory_names(c, names, &options, err);
    *out = NULL;
    if (!status)
        status = call_may_remember(c, options.agent, err);
    return status ? status : take_memory(c, &options, make, out, err);
}

/* ---------------------------------------------------------------------- of a session */

/* Adds a memory if it is there. */
static sessile_status add_memory(call *c, sessile_session *session, int shared,
                                 memory_set *out, sessile_error *err)
{
    sessile_session_options names;
    sessile_session_options_init(&names);
    names.agent = sessile_session_agent(session);
    names.user = shared ? empty_text() : sessile_session_user(session);
    names.id = (sessile_slice){NULL, 0};
    if (!shared && !names.user.size)
        return SESSILE_OK;
    sessile_status status = take_memory(c, &names, 0, &out->at[out->count], err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        return SESSILE_OK;
    }
    if (!status)
        out->shared[out->count++] = shared;
    return status;
}

sessile_status call_memories(call *c, sessile_session *session, char *const *names,
                             size_t n, memory_set *out, sessile_error *err)
{
    int wanted[2] = {n == 0, n == 0}; /* the user's, the agent's */
    sessile_status status = SESSILE_OK;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], "user") != 0 && strcmp(names[i], "agent") != 0)
            return fail(err, SESSILE_INVALID,
                        "memories: a session has that of its \"user\" and that of its "
                        "\"agent\"");
        wanted[names[i][0] == 'a'] = 1;
    }
    for (int shared = 0; shared < 2 && !status; shared++)
        if (wanted[shared])
            status = add_memory(c, session, shared, out, err);
    return status;
}

/* ---------------------------------------------------------------------- giving back */

/* 1: its log is there. NOTFOUND may be about a key or an entry of it. */
static int is_there(const kept *one)
{
    sessile_id seen = 0;
    int changed;
    return sessile_memory_watch(kept_memory(one), &seen, 0, &changed, NULL) !=
           SESSILE_NOTFOUND;
}

int memories_give(call *c, sessile_status status)
{
    int removed = 0;
    for (size_t i = 0; i < c->memory_count; i++) {
        kept *one = c->memories[i].kept;
        int stays = status == SESSILE_NOTFOUND ? is_there(one) : call_can_stay(status);
        removed |= status == SESSILE_NOTFOUND && !stays;
        sessile_memory_close(c->memories[i].memory);
        keep_give(c->server->memories, one, stays);
        memset(&c->memories[i], 0, sizeof c->memories[i]);
    }
    c->memory_count = 0;
    return removed;
}
