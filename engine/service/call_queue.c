/*
 * call_queue.c: the way of a call to its worker: who calls, and what the call waits for.
 *
 * With a guard a call waits for its session only once it is known who calls, and the
 * session is the one that the caller means. So nobody is kept out of a session by those
 * who may not use it, whatever names they send.
 *
 *   no credential                      refused on the loop
 *   a known one, a session of one's    waits for the session at once, whose worker judges
 *   own, gRPC                          the credential again
 *   a known one, and other names, or   a worker finds out what the caller may see, or
 *   JSON                               reads the JSON; then it waits for the session
 *   a new one                          the same, behind the new ones of its address
 *
 * Who names what he may not see waits behind his own calls alone.
 */
#include "service/call.h"
#include "service/http.h"
#include "service/known.h"
#include "service/nodes.h"
#include "service/observe.h"

#include "api/inside.h"

/* ---------------------------------------------------------------------- lanes */

static uint64_t slice_hash(sessile_slice text)
{
    return hash64(text.size ? text.data : "", text.size);
}

/* By what it is known by, so that whatever else is in the bytes makes no other lane. */
static uint64_t lane_of(const call *c, const sessile_slice names[3], uint64_t user)
{
    const sessile_slice agent =
        names[0].size ? names[0] : sessile_text(api_default_agent(c->server->store));
    const uint64_t parts[3] = {slice_hash(agent), user, slice_hash(names[2])};
    return hash64(parts, sizeof parts) | 1;
}

static uint64_t owner_of(const call *c, sessile_slice user, const known_caller *who)
{
    return user.size || !c->server->settings.guarded ? node_user(user) : who->user;
}

uint64_t call_lane(const call *c, const Sessile__V1__Session *names)
{
    known_caller who;
    sessile_slice parts[3];
    who_is(c, &who);
    call_parts(names, parts);
    return lane_of(c, parts, owner_of(c, parts[1], &who));
}

/* 1: who calls may see what is named: a session, or a memory. */
static int may_see(const call *c, const sessile_slice names[3], decoded_names named)
{
    static const sessile_slice own = {NULL, 0}, nobodys = {"", 0};
    const sessile_permission permission =
        names[2].size ? SESSILE_MAY_VIEW_SESSION : SESSILE_MAY_READ_MEMORY;
    const sessile_slice user = named == NAMES_SHARED ? nobodys
                               : names[1].size       ? names[1]
                                                     : own;
    return sessile_can(c->view, permission, names[0], user, names[2]);
}

/* Finds the lane of a call. The jobs of a call that goes on run one after the other, so
 * it has a lane in any case: if it names nothing, one of its own. 0: its view has to say
 * first what the caller may see. */
static int set_lane(call *c, const known_caller *who)
{
    sessile_slice names[3];
    c->job.lane = 0;
    if (c->method->flags & (METHOD_ALL | METHOD_APART))
        return 1;
    const decoded_names named =
        decode_names(c->method->input, c->request.data, c->request.size, names);
    if (named == NAMES_NONE) {
        if (c->method->flags & METHOD_DUPLEX)
            c->job.lane = hash64(&c, sizeof c) | 1;
        return 1;
    }
    const uint64_t user = named == NAMES_SHARED ? 0 : owner_of(c, names[1], who);
    c->job.lane = lane_of(c, names, user);
    if (!c->server->settings.guarded || user == who->user)
        return 1;
    if (!c->view)
        return 0;
    if (!may_see(c, names, named)) {
        const uint64_t parts[2] = {c->job.lane, who->user};
        c->job.lane = hash64(parts, sizeof parts) | 1;
    }
    return 1;
}

/* ---------------------------------------------------------------------- jobs */

static void run_job(job *j)
{
    call *c = (call *)j;
    call_run(c);
    call_release(c);
}

static int is_translated(const call *c)
{
    return c->speech.as == CALL_GRPC || atomic_load(&c->speech.translated);
}

/* Who calls is found out; then, if it is JSON, what the request is. JSON of a caller who
 * was new does not hold up the others who are, so it is read by another job. */
static void prepare_job(job *j)
{
    call *c = (call *)j;
    known_caller who;
    sessile_error err;
    sessile_status status = SESSILE_OK;
    error_clear(&err);
    if (rpc_call_over(c->rpc)) {
        call_drop_view(c);
        call_release(c);
        return;
    }
    if (!c->view)
        status = call_find_caller(c, &err);
    const int later = j->unjudged && !is_translated(c);
    if (!status && !later && !is_translated(c))
        status = http_translate(c, &err);
    if (!status) {
        who_is(c, &who);
        j->share = who.share;
        j->unjudged = 0;
        j->lane = 0;
        if (!later) {
            (void)set_lane(c, &who);
            j->run = run_job;
        }
        status = pool_submit(c->server->pool, j, &err);
    }
    if (status) {
        call_fail(c, &err);
        call_drop_view(c);
        call_release(c);
    }
}

/* Chooses its first job. */
static void plan(call *c)
{
    known_caller who = {0, 0};
    job *j = &c->job;
    j->run = prepare_job;
    j->lane = 0;
    j->unjudged = 0;
    if (c->server->settings.guarded && !known_find(c->server->known, c->rpc, &who)) {
        j->unjudged = 1;
        j->share = slice_hash(who_source(c)) | 1;
        j->lane = j->share;
        return;
    }
    j->share = who.share;
    if (!is_translated(c))
        return;
    if (set_lane(c, &who))
        j->run = run_job;
    else
        j->lane = 0;
}

void call_submit(call *c)
{
    nodes *n = c->server->nodes;
    sessile_error err;
    sessile_status status = who_shows(c, &err);
    observe_waits(c);
    if (status)
        c->flags |= STATUS_NOBODY;
    else if (c->speech.as != CALL_GRPC)
        status = http_started(c, &err);
    if (!status) {
        if (n)
            atomic_fetch_add(&n->count.here, 1);
        plan(c);
        atomic_fetch_add(&c->references, 1);
        status = pool_submit(c->server->pool, &c->job, &err);
        if (status)
            call_release(c);
    }
    if (status)
        call_fail(c, &err);
}
