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

/* Counts a failure of that source, and writes an event with the reason: a word of ours,
 * never a part of the credential. */
static sessile_status refuse(const accepted *a, const sessile_credential *c,
                             const char *reason, sessile_error *err)
{
    const guard *g = a->guard;
    audit_event e;

    if (g->limiter && c->source.size)
        (void)limit_take(g->limiter, LIMIT_FAILURES,
                         limiter_who(g->limiter, &c->source, 1), NULL);
    audit_event_init(&e);
    e.operation.name = slice_of("authenticate");
    e.who.method = slice_of(a->about.method ? a->about.method : "host");
    e.who.key = a->about.key;
    e.who.user = a->about.user; /* of a credential that is right, but for a lock */
    e.outcome.is = AUDIT_FAILURE;
    e.outcome.status = SESSILE_DENIED;
    e.outcome.rule = slice_of(reason);
    e.from.source = c->source;
    if (g->audit)
        (void)audit_write(g->audit, AUDIT_WRITE, &e, NULL, NULL);
    return access_refuse(err);
}

/* LIMIT: too many credentials of that source were refused. */
static sessile_status look_at_failures(const guard *g, const sessile_credential *c,
                                       sessile_error *err)
{
    if (!g->limiter || !c->source.size || (!c->key.data && !c->token.data))
        return SESSILE_OK;
    return limit_look(g->limiter, LIMIT_FAILURES, limiter_who(g->limiter, &c->source, 1),
                      err);
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
    a->about.key = k->is.id;
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

/* ------------------------------------------------------------------ life */

void credential_close(accepted *a)
{
    if (a->is_begun)
        access_end(a->guard->access);
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
        status = look_at_failures(g, c, err);
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
    about->source = c->source;
    about->device = c->device;
    about->session = c->session;
    if (c->expires_ms && (!about->expires_ms || c->expires_ms < about->expires_ms))
        about->expires_ms = c->expires_ms;
    if (status)
        credential_close(out);
    return status;
}
