/*
 * who.c: who makes a call.
 *
 * "authorization: Bearer X" is an access key or a token; "sessile-device" names the
 * device that a key may be bound to. A client that shows a certificate, and no such
 * header, is the user that the certificate names, with the role that the server gives to
 * all of them. What is believed of a key or a token is the guard's to say.
 */
#include "service/known.h"
#include "service/nodes.h"

#include <string.h>
#include <strings.h>

#define KEY_BEGINS "sesk_"

/* The address of a peer without its port. */
static sessile_slice source_of(const char *peer)
{
    const char *colon = strrchr(peer, ':');
    return (sessile_slice){peer, colon ? (size_t)(colon - peer) : strlen(peer)};
}

/* What follows "Bearer ": NULL: another scheme, or nothing. */
static const char *bearer(const char *header)
{
    static const char scheme[] = "bearer ";
    if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
        return NULL;
    header += sizeof scheme - 1;
    while (*header == ' ')
        header++;
    return *header ? header : NULL;
}

sessile_slice who_source(const call *c)
{
    return source_of(rpc_call_peer(c->rpc));
}

/* 1: three parts with a dot between them, as each token has. */
static int is_like_token(const char *given)
{
    const char *dot = strchr(given, '.');
    return dot && strchr(dot + 1, '.');
}

sessile_status who_shows(const call *c, sessile_error *err)
{
    const char *header = rpc_call_header(c->rpc, "authorization");
    const char *given = bearer(header);
    if (!c->server->settings.guarded || (!header && rpc_call_certificate(c->rpc)))
        return SESSILE_OK;
    if (!header)
        return fail(err, SESSILE_DENIED,
                    "who calls? send an access key or a token as the header "
                    "\"authorization: Bearer …\"");
    if (!given)
        return fail(err, SESSILE_DENIED,
                    "the header authorization does not begin with \"Bearer \": send "
                    "\"authorization: Bearer …\" with an access key or a token");
    if (strncmp(given, KEY_BEGINS, sizeof KEY_BEGINS - 1) != 0 && !is_like_token(given))
        return fail(err, SESSILE_DENIED,
                    "the credential is no access key and no token: a key begins with "
                    "\"" KEY_BEGINS "\": copy all of it");
    return SESSILE_OK;
}

void who_is(const call *c, known_caller *out)
{
    sessile_principal who;
    *out = (known_caller){0, 0};
    if (!c->server->settings.guarded || sessile_store_who(c->view, &who, NULL))
        return;
    out->user = node_user(who.user);
    if (!who.all && !who.host)
        out->share = hash64(who.user.size ? who.user.data : "", who.user.size) | 1;
}

sessile_status who_calls(call *c, sessile_store **out, sessile_error *err)
{
    service *s = c->server;
    sessile_credential who;
    const char *header = rpc_call_header(c->rpc, "authorization");
    const char *given = bearer(header);
    const char *certificate = rpc_call_certificate(c->rpc);
    const char *device = rpc_call_header(c->rpc, "sessile-device");
    sessile_status status = who_shows(c, err);
    if (status)
        return status;
    if (!s->settings.guarded) {
        *out = s->store;
        return SESSILE_OK;
    }
    sessile_credential_init(&who);
    who.source = source_of(rpc_call_peer(c->rpc));
    who.device = sessile_text(device);
    if (given && strncmp(given, KEY_BEGINS, sizeof KEY_BEGINS - 1) == 0) {
        who.key = sessile_text(given);
    } else if (given) {
        who.token = sessile_text(given);
    } else {
        who.user = sessile_text(certificate);
        who.roles = (const char *const *)&s->settings.certificate_role;
        who.role_count = 1;
    }
    return sessile_store_as(out, s->store, &who, err);
}
