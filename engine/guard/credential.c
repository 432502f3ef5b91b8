/*
 * credential.c: who somebody is, by a credential.
 *
 * Owns the one sentence with which every credential is refused. A key that there is not
 * takes as long as one whose secret is wrong: both are hashed and compared. Must never
 * keep or show a credential.
 */
#include "guard/credential.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "session/store_handle.h"

static void end_fold(accepted *a)
{
    if (a->is_begun)
        access_end(a->guard->access);
    a->is_begun = 0;
}

/* What a source tries is counted before it is looked at, and taken back when it is right:
 * who tries a hundred at the same time gets no more answers than who tries one by one.
 * LIMIT: too many of that source were refused. */
static sessile_status count_attempt(accepted *a, const sessile_credential *c,
                                    sessile_error *err)
{
    limiter *l = a->guard->limiter;

    if (!l || !c->source.size || (!c->key.data && !c->token.data))
        return SESSILE_OK;
    return limit_take(l, LIMIT_FAILURES, limiter_who(l, &c->source, 1), &a->attempt, err);
}

/* Writes an event with the reason: a word of ours, never a part of the credential. The
 * fold is let go first, since a disk may take its time and each view wants the fold. */
static sessile_status refuse(accepted *a, const sessile_credential *c, const char *reason,
                             sessile_error *err)
{
    const guard *g = a->guard;
    audit_event e;
    buf user;

    buf_init(&user, &g->alloc); /* of a credential that is right, but for a lock */
    buf_put(&user, a->about.user.data, a->about.user.size);
    end_fold(a);
    a->attempt = (limit_taken){0}; /* it stays counted */
    audit_event_init(&e);
    e.operation.name = slice_of("authenticate");
    e.who.method = slice_of(a->about.method ? a->about.method : "host");
    e.who.key = a->about.key;
    e.who.user = (sessile_slice){user.data, user.failed ? 0 : user.size};
    e.outcome.is = AUDIT_FAILURE;
    e.outcome.status = SESSILE_DENIED;
    e.outcome.rule = slice_of(reason);
    e.from.source = c->source;
    if (g->audit)
        (void)audit_write(g->audit, AUDIT_WRITE, &e, NULL, NULL);
    buf_deinit(&user);
    return access_refuse(err);
}

/* ------------------------------------------------------------------ what is given */

static sessile_status check_form(const guard *g, const sessile_credential *c,
                                 sessile_error *err)
{
    /* an empty one is a wrong one: it is not the host's word */
    int by_key = c->key.data != NULL, by_token = c->token.data != NULL;
    int by_os = c->os != 0;
    int by_word = c->user.size || c->actor.size || c->role_count || c->agent_count;

    if (by_key + by_token + by_os > 1 || ((by_key || by_token || by_os) && by_word))
        return fail(err, SESSILE_INVALID,
                    "a credential is one thing: a key, or a token, or the system's "
                    "user, or a user with roles and agents");
    if (by_token && !g->verifier)
        return fail(err, SESSILE_INVALID,
                    "this guard accepts no tokens: give it an issuer, an audience and "
                    "keys");
    return SESSILE_OK;
}

static sessile_status take_word(accepted *a, const sessile_credential *c,
                                sessile_error *err)
{
    principal_about *about = &a->about;

    about->user = c->user;
    about->actor = c->actor;
    about->agents = c->agents;
    about->agent_count = c->agent_count;
    if (!c->role_count)
        return SESSILE_OK;
    a->roles = mem_zalloc(&a->guard->alloc, c->role_count * sizeof *a->roles);
    if (!a->roles)
        return fail_nomem(err);
    a->role_count = c->role_count;
    for (size_t i = 0; i < c->role_count; i++)
        a->roles[i] = slice_of(c->roles[i]);
    about->roles = a->roles;
    about->role_count = a->role_count;
    return SESSILE_OK;
}

static void take_os(accepted *a)
{
    static const sessile_slice admin = {"admin", 5};

    a->about.method = "os";
    a->about.roles = &admin;
    a->about.role_count = 1;
}

/* NULL: it is accepted; or why it is not. */
static const char *take_key(accepted *a, const store_core *st,
                            const sessile_credential *c, int64_t now_ms)
{
    static const unsigned char nothing[ACCESS_KEY_HASH];
    unsigned char hash[ACCESS_KEY_HASH];
    const access_key *k;
    sessile_slice id;
    int right;

    a->about.method = "key";
    if (access_key_read(c->key, &id))
        return "form";
    a->about.key = id;
    k = access_find_key(a->guard->access, id);
    access_key_hash(st->keys, c->key, hash);
    right = access_key_same(hash, k ? k->hash : nothing) && k;
    wipe(hash, sizeof hash);
    if (!k)
        return "unknown";
    if (!right)
        return "secret";
    if (k->is.expires_ms && now_ms >= k->is.expires_ms)
        return "expired";
    if (k->is_lost)
        return "forgotten";
    if (k->is.device.size && (k->is.device.size != c->device.size ||
                              memcmp(k->is.device.data, c->device.data, c->device.size)))
        return "device";
    a->about.user = k->is.user;
    a->about.roles = k->is.roles;
    a->about.role_count = k->is.role_count;
    a->about.agents = k->is.agents;
    a->about.agent_count = k->is.agent_count;
    a->about.expires_ms = k->is.expires_ms;
    a->about.is_by_key = 1;
    a->about.is_lenient = 1;
    return NULL;
}

static sessile_status take_token(accepted *a, const sessile_credential *c,
                                 const char **why, sessile_error *err)
{
    jws_refusal refusal = {.reason = JWS_ACCEPTED};
    sessile_status status =
        jws_verify(a->guard->verifier, c->token, &a->claims, &refusal, err);

    a->about.method = "token";
    *why = NULL;
    if (status == SESSILE_DENIED) {
        *why = jws_reason_name(refusal.reason);
        error_clear(err);
        return SESSILE_OK;
    }
    if (status)
        return status;
    a->about.user = a->claims->user;
    a->about.actor = a->claims->actor;
    a->about.key = a->claims->token_id;
    a->about.roles = a->claims->roles;
    a->about.role_count = a->claims->role_count;
    a->about.agents = a->claims->agents;
    a->about.agent_count = a->claims->agent_count;
    a->about.expires_ms = a->claims->expires_ms;
    a->about.is_lenient = 1;
    return SESSILE_OK;
}

static int is_pattern(sessile_slice agent)
{
    return agent.size && agent.data[agent.size - 1] == '*';
}

/* It is of one session, and so of one agent. */
static sessile_status take_session(accepted *a, const sessile_credential *c,
                                   sessile_error *err)
{
    principal_about *about = &a->about;

    if (!c->session.size)
        return c->agent.size || c->owner.data
                   ? fail(err, SESSILE_INVALID,
                          "an agent and an owner are those of one session: name it")
                   : SESSILE_OK;
    a->agent = c->agent.size ? c->agent : slice_of(a->guard->store->agent);
    if (!c->agent.size && about->agent_count == 1 && !is_pattern(about->agents[0]))
        a->agent = about->agents[0];
    if (is_pattern(c->agent))
        return fail(err, SESSILE_INVALID, "a session is of one agent: give its name");
    if (about->agent_count && !names_match(about->agents, about->agent_count, a->agent))
        return fail(err, SESSILE_INVALID,
                    "the agent of the session is not one that this credential is for: "
                    "name its agent");
    about->session = c->session;
    about->owner = c->owner.data ? c->owner : about->user;
    about->agents = &a->agent;
    about->agent_count = 1;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ life */

void credential_close(accepted *a)
{
    end_fold(a);
    if (a->guard->limiter)
        limit_return(a->guard->limiter, &a->attempt);
    if (a->claims)
        jws_release(a->guard->verifier, a->claims);
    mem_free(&a->guard->alloc, a->roles, a->role_count * sizeof *a->roles);
}

static sessile_status begin(accepted *a, sessile_error *err)
{
    sessile_error why = {0};
    sessile_status status = access_begin(a->guard->access, 0, &why);

    a->is_begun = !status;
    if (!status)
        return SESSILE_OK;
    return status == SESSILE_NOMEM
               ? fail_nomem(err)
               : fail_rule(err, SESSILE_DENIED, "control",
                           "the control log of this store cannot be trusted, so nobody "
                           "but the host may use it, who repairs it");
}

sessile_status credential_open(accepted *out, guard *g, const sessile_credential *c,
                               sessile_error *err)
{
    principal_about *about = &out->about;
    const char *why = NULL;
    sessile_status status = check_form(g, c, err);

    memset(out, 0, sizeof *out);
    out->guard = g;
    if (!status)
        status = count_attempt(out, c, err);
    if (status)
        return status;
    if (c->token.data)
        status = take_token(out, c, &why, err);
    else if (c->os)
        take_os(out);
    else if (!c->key.data)
        status = take_word(out, c, err);
    if (!status)
        status = begin(out, err);
    if (!status && c->key.data)
        why = take_key(out, g->store, c, guard_now_ms(g));
    if (!status && !why && access_is_locked(g->access, about->user, about->key))
        why = "locked";
    if (!status && why)
        status = refuse(out, c, why, err);
    if (!status)
        status = take_session(out, c, err);
    about->source = c->source;
    about->device = c->device;
    if (c->expires_ms && (!about->expires_ms || c->expires_ms < about->expires_ms))
        about->expires_ms = c->expires_ms;
    if (status)
        credential_close(out);
    return status;
}
