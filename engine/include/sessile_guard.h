/*
 * sessile_guard.h: who may do what in a store.
 *
 * A guard protects a store from those whom a host serves: users, agents, tools, scripts.
 * It does not protect a store from the host itself, which has the process and the key.
 * Without sessile_store_guard() a store has no guard, and nothing in this header costs
 * anything.
 *
 *     sessile_store_guard(store, NULL, &err);
 *
 *     sessile_credential c;
 *     sessile_credential_init(&c);
 *     c.user = sessile_text("ann");
 *     c.roles = (const char *const[]){"editor"};
 *     c.role_count = 1;
 *     sessile_store_as(&view, store, &c, &err);
 *
 * The view is a store handle as any other: sessions and memories that are opened through
 * it belong to its principal, and every call is checked against what the principal may.
 * The handle that the guard was set on stays the host's: it may do everything.
 */
#ifndef SESSILE_GUARD_H
#define SESSILE_GUARD_H

#include "sessile.h"
#include "sessile_screen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ permissions */

/* What can be allowed. */
typedef enum sessile_permission {
    SESSILE_MAY_VIEW_SESSION = 0, /* read, list and search sessions */
    SESSILE_MAY_MODIFY_SESSION,   /* write to sessions: turns, labels, compactions */
    SESSILE_MAY_CREATE_SESSION,
    SESSILE_MAY_DELETE_SESSION,
    SESSILE_MAY_CREATE_CHECKPOINT,
    SESSILE_MAY_READ_MEMORY,
    SESSILE_MAY_WRITE_MEMORY,
    SESSILE_MAY_READ_AUDIT,
    SESSILE_MAY_CHECK_STORE,
    SESSILE_MAY_MOVE_STORE,     /* migrate, back up */
    SESSILE_MAY_MANAGE_KEYS,    /* the store's keys: rotate, reseal */
    SESSILE_MAY_MANAGE_ACCESS,  /* grants, access keys, locks */
    SESSILE_MAY_MANAGE_PRIVACY, /* consents of others, holds, retention */
    SESSILE_MAY_ERASE_USER,
    SESSILE_MAY_IMPERSONATE, /* views of other users */
    SESSILE_PERMISSION_COUNT
} sessile_permission;

/* The name of a permission, as "view_session". NULL: there is none. Static. */
SESSILE_API const char *sessile_permission_name(sessile_permission permission);

/*
 * A role: a name for some permissions. Every store has four:
 *
 *   viewer   view_session, read_memory
 *   editor   viewer's, modify_session, create_session, create_checkpoint, write_memory
 *   admin    everything but impersonate
 *   auditor  read_audit, check_store
 *
 * viewer and editor hold for the sessions and memories of one's own user (scope own),
 * admin and auditor for those of all (scope all).
 */
typedef struct sessile_role_definition {
    const char *name;               /* 1 to 63 bytes */
    const char *const *permissions; /* names, as "view_session" */
    size_t permission_count;
    int all; /* 1: scope all; 0: scope own */
} sessile_role_definition;

/* ------------------------------------------------------------------ the guard of a store
 */

/* A rule and its rate: "10/minute", with second, minute, hour or day; or "off". */
typedef struct sessile_rate_limit {
    const char *rule, *rate;
} sessile_rate_limit;

/*
 * How often each user may do what. The rules and their default rates:
 *
 *   session_creation    10/minute a user
 *   checkpoint_writes  100/minute a session
 *   memory_reads      1000/minute a session, or a memory
 *   memory_writes      100/minute a user
 *   branch_operations   20/minute a session
 *   searches            60/minute a user
 *   exports             10/hour a user
 *   grants              60/minute a user: grants, their ends, access keys, unlocks
 *   failures            10/minute a source of refused credentials
 *
 * A call over its limit returns LIMIT, and the error has the rule and retry_ms. A view
 * without a user is counted by its actor. The host's own handle is not counted.
 */
typedef struct sessile_limit_options {
    int on;                          /* 1: calls are counted */
    const sessile_rate_limit *rates; /* in place of the default rates */
    size_t rate_count;
    const char *shared; /* Redis, which all nodes count in: "redis://HOST:PORT/DATABASE"
                           or "redis:///PATH"; NULL: none */
    int deny; /* 1: a call that cannot be counted in a shared place is refused */
} sessile_limit_options;

/*
 * The audit: an event for each call that changes something, for each refusal, and counts
 * of what was read. It holds no content and no credential. Its events survive a kill of
 * the process; those of what cannot be undone are synced before it is done. While no
 * event can be written (IO, FULL), nothing can be changed; checks still run.
 */
typedef struct sessile_audit_options {
    int on;               /* 1: calls leave events */
    sessile_store *store; /* whose audit is used, borrowed: it must outlive this one's
                             handles; NULL: the store's own. A store over records and a
                             ram: store have none of their own */
    int sync;             /* 1: every change's event is synced before its call returns */
    int no_reads;         /* 1: reads leave no event */
    int closed;           /* 1: nothing is read, either, while no event can be written */
} sessile_audit_options;

/* Which JWTs are accepted: see engine/vault/README.md, "Tokens". A claim is named by its
 * member, or by a JSON pointer such as "/realm_access/roles". */
typedef struct sessile_token_options {
    const char *issuer, *audience; /* what iss and aud must be; required */
    const char *keys;              /* a JWKS file; required */
    const char *user;              /* claim of the user; NULL: "sub" */
    const char *roles, *agents;    /* NULL: "roles", "agents" */
    const char *actor;             /* NULL: "/act/sub" */
} sessile_token_options;

typedef struct sessile_guard_options {
    const sessile_role_definition *roles; /* own roles; one of the name of a built-in role
                                             takes its place */
    size_t role_count;
    int require_principal; /* 1: the host's own handle may make views, and nothing else */
    /* 1: a search finds nothing in the memory of a user who does not consent, and only
     * the user consents, or who may manage_privacy (sessile_privacy.h). Nothing is
     * written or recalled without consent in any case. */
    int consent;
    sessile_limit_options limits;
    sessile_audit_options audit;

    /*
     * What may be written (sessile_screen.h). Every write of the store meets it, whoever
     * makes it: the host, a view, a policy. What is refused is DENIED with the rule in
     * sessile_error.rule, and nothing is kept of it. What is flagged gets the label
     * "screen:RULE" in the same commit; an entry of a memory has it in its metadata, as
     * "flagged": ["RULE"].
     */
    sessile_screens *screens; /* with their schemas; NULL: none. The store keeps a
                                 reference: free yours when you like */
    sessile_url_rules urls;   /* init(): URLs refuse memories and states; copied */
    const sessile_token_options *token; /* NULL: no tokens are accepted */
    /* A Lua file with a function that can refuse a call which the rest allows
     * (engine/guard/README.md, "A rule of your own"); NULL: none. It is read once. A call
     * that it refuses is DENIED, and so is one about which it fails: the error has the
     * rule "authorize" or "authorize:NAME", the call's event says how it failed. */
    const char *authorize;
    const char *profile; /* not NULL: a name, and the store stays guarded. Handles that
                            are opened later may do nothing before they set a guard */
    int off;             /* 1: no guard, also of a store that stayed guarded: it does not
                            any more */
} sessile_guard_options;
SESSILE_API void sessile_guard_options_init(sessile_guard_options *options);

/*
 * Sets a guard on an open store. options: copied; NULL for what init() makes. Handles
 * that were opened through `store` before are not guarded: call this right after the
 * store was opened.
 *
 * INVALID: the store has a guard already, or is a view; a role, a rule, a rate, a URL or
 * a host in urls.options.allow that cannot be: the message names it. UNSUPPORTED: the
 * store cannot keep an audit: give another one; the client library of Redis is not
 * installed. DENIED, INVALID: the file of the tokens' keys, or a token option that is
 * missing. NOTFOUND, DENIED, LIMIT, POLICY: the file of `authorize`: it is not there; it
 * is not yours or root's, or others can write it; it is too large; it is wrong. With a
 * profile or `off`: BUSY, FULL, IO, as of any write. NOMEM.
 */
SESSILE_API sessile_status sessile_store_guard(sessile_store *store,
                                               const sessile_guard_options *options,
                                               sessile_error *err);

/*
 * Runs the store's rules over an item, as a write of it would, and writes nothing. *out
 * and errors: as sessile_screen(), which says how; PASS if the store has no rules.
 */
SESSILE_API sessile_status sessile_store_screen(sessile_screen_outcome **out,
                                                const sessile_store *store,
                                                const sessile_screen_item *item,
                                                sessile_error *err);

/* ------------------------------------------------------------------ views */

/*
 * Who uses a view, and what they are given: one of
 *
 *   user, actor, roles, agents   the host has authenticated whom it names
 *   key                          an access key: sessile_access.h
 *   token                        a JWT, if the guard has token options. Roles that nobody
 *                                defined give nothing
 *   os                           whom the system lets open the store: no user, role admin
 *
 * session and expires_ms narrow it: to one session, and the memory of its agent and user.
 */
typedef struct sessile_credential {
    sessile_slice user;  /* whose sessions are its own; empty: nobody's, so that scope
                             own is of no use */
    sessile_slice actor; /* the agent or service that acts for the user, or empty */
    const char *const *roles; /* names; a view of a view without roles keeps what the
                                 other may */
    size_t role_count;
    const sessile_slice *agents; /* names, or beginnings of names that end with `*`;
                                    none: every agent */
    size_t agent_count;
    sessile_slice session;    /* the id of the one session that it may use; empty: any */
    sessile_slice agent;      /* its agent; empty: the one in agents, or the store's */
    sessile_slice owner;      /* its user; NULL: the view's */
    int64_t expires_ms;       /* Unix time in milliseconds; 0: never */
    sessile_slice key, token; /* borrowed for the call */
    int os;
    sessile_slice source; /* where it comes from, such as an address: for the audit; and
                             refused keys and tokens of a source are counted (rule
                             failures, LIMIT). Empty: they are not */
    sessile_slice device; /* compared if the key names one */
} sessile_credential;
SESSILE_API void sessile_credential_init(sessile_credential *credential);

/*
 * Makes a view of a guarded store: a handle whose calls are checked against what the
 * credential gives, and what was granted to its user (sessile_access.h). The view shares
 * the store: close it with sessile_store_close() before the store, and its sessions
 * before it.
 *
 * A view of a view only narrows. It has the permissions that both give, the agents and
 * the session that both allow, and the earlier expiry. Its user is the same, unless the
 * other view may impersonate.
 *
 * DENIED: the credential is not accepted, whatever is wrong with it; of a host's word:
 * the user is locked, or another one than the view's; or the store stays guarded, and its
 * guard was not set. INVALID: the store has no guard; more than one kind of credential; a
 * role that nobody defined (it is named); an expiry in the past. IO, NOMEM.
 */
SESSILE_API sessile_status sessile_store_as(sessile_store **out, sessile_store *store,
                                            const sessile_credential *credential,
                                            sessile_error *err);

/*
 * Gives a view a newer credential of the same user and kind: calls that are DENIED
 * because it expired pass again, until the new one expires. The view goes on with the
 * permissions that both give, with the same agents and session.
 *
 * A view does not renew itself: who has it needs a newer key or token (by NULL). The
 * host's word, and that of the system's user, is good with the handle that the view was
 * made through (by); what it leaves out stays. A view of a view stays bound by that one's
 * expiry in any case.
 *
 * DENIED: the credential is not accepted; the view was revoked; a word without `by`, or
 * with another handle. INVALID: not a view, another kind of credential or another access
 * key, other agents or another session, or a time in the past.
 */
SESSILE_API sessile_status sessile_store_renew(sessile_store *view, sessile_store *by,
                                               const sessile_credential *credential,
                                               sessile_error *err);

/*
 * Makes another handle of an open session, whose calls are checked against what the view
 * may. For a host that serves one session to several: it is opened once, through the
 * host's own handle, and read into memory once. The new handle shares the session; close
 * it before that one.
 *
 * INVALID: the session is of another store. DENIED, IO, FULL, NOMEM: as for
 * sessile_resume().
 */
SESSILE_API sessile_status sessile_session_as(sessile_session **out,
                                              sessile_session *session,
                                              sessile_store *view, sessile_error *err);

/* Ends what a view and its views may, in all threads: the next call through each of their
 * handles is DENIED, and so is the next step of what goes on. INVALID: not a view. */
SESSILE_API sessile_status sessile_store_revoke(sessile_store *view, sessile_error *err);

/* Who a view is of. Slices are borrowed from the view. */
typedef struct sessile_principal {
    sessile_slice user, actor, session;
    const sessile_slice *agents;
    size_t agent_count;
    uint32_t permissions; /* bits 1u << SESSILE_MAY_… */
    int all;              /* 1: scope all */
    int host;             /* 1: the host's own handle: everything is allowed */
    int64_t expires_ms;   /* 0: never */
    const char *method;   /* "host", "os", "key", "token". Static */
    sessile_slice key;    /* the id of its access key, or the token's, or empty */
} sessile_principal;
/* INVALID: the store has no guard. DENIED: it stays guarded, and this handle has not set
 * its guard; the message has the profile. */
SESSILE_API sessile_status sessile_store_who(const sessile_store *store,
                                             sessile_principal *out, sessile_error *err);

/*
 * 1 if a view may use a permission on the session of these names now, 0 if not: whether a
 * call that needs it would be DENIED. agent empty: the store's own; user NULL: one's own;
 * id empty: the memory of agent and user (user "": the one that the agent keeps for all),
 * or the session that the view is narrowed to. A permission for the whole store, such as
 * manage_access, is asked whatever the names are. Nothing is counted, and nothing is
 * looked up but a session that was shared. A store without a guard: 1.
 */
SESSILE_API int sessile_can(const sessile_store *view, sessile_permission permission,
                            sessile_slice agent, sessile_slice user, sessile_slice id);

/* ------------------------------------------------------------------ the host's own
 * operations
 */

/* An operation of the host's own, such as a tool that an agent calls. */
typedef struct sessile_operation {
    sessile_slice name; /* 1 to 63 bytes; events call it "host:NAME" */
    sessile_permission permission;
    const char *limit;             /* the rule that counts it, or NULL */
    sessile_slice agent, user, id; /* of the session that it concerns: sessile_can() */
    int reads;                     /* 1: it changes nothing, and is only counted */
} sessile_operation;

/*
 * Whether a view may do an operation now. It is checked, counted and recorded as a call
 * of the engine's is: ask right before it is done, once. OK: it may. A store without a
 * guard: OK.
 *
 * DENIED: the permission is missing, or the names are not the view's. LIMIT: too often;
 * see err->rule and retry_ms. INVALID: a name or a rule that cannot be. IO, FULL, BUSY:
 * it changes something and cannot be recorded, so it may not be done.
 */
SESSILE_API sessile_status sessile_may(sessile_store *view,
                                       const sessile_operation *operation,
                                       sessile_error *err);

/*
 * Writes an event of the host's own into the audit, by the name "host:NAME". details: a
 * JSON object of at most 4,096 bytes, or empty; never content or a credential. Whoever
 * reads the audit sees it.
 *
 * INVALID: the store has no audit; a name or details that cannot be. DENIED: the view was
 * revoked or has expired. LIMIT: the details are too long. IO, FULL, BUSY: it is not
 * written.
 */
SESSILE_API sessile_status sessile_audit_note(sessile_store *view, sessile_slice name,
                                              sessile_slice details, sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif
