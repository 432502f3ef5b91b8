/*
 * sessile_guard.h: who may do what in a store, and what may be written: screens.
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

typedef struct sessile_guard_options {
    const sessile_role_definition *roles; /* own roles; one of the name of a built-in role
                                             takes its place */
    size_t role_count;
    int require_principal; /* 1: the host's own handle may make views, and nothing else */
} sessile_guard_options;
SESSILE_API void sessile_guard_options_init(sessile_guard_options *options);

/*
 * Sets a guard on an open store. options: copied; NULL for what init() makes. Handles
 * that were opened through `store` before are not guarded: call this right after the
 * store was opened.
 *
 * INVALID: the store has a guard already, or is a view; a role that cannot be: the
 * message names it. NOMEM.
 */
SESSILE_API sessile_status sessile_store_guard(sessile_store *store,
                                               const sessile_guard_options *options,
                                               sessile_error *err);

/* ------------------------------------------------------------------ views */

/* Who uses a view, and what they are given. */
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
    sessile_slice session; /* the id of the one session that it may use; empty: any */
    int64_t expires_ms;    /* Unix time in milliseconds; 0: never */
} sessile_credential;
SESSILE_API void sessile_credential_init(sessile_credential *credential);

/*
 * Makes a view of a guarded store: a handle whose calls are checked against what the
 * credential gives. The host has authenticated whom it names. The view shares the store:
 * close it with sessile_store_close() before the store, and its sessions before it.
 *
 * A view of a view only narrows. It has the permissions that both give, the agents and
 * the session that both allow, and the earlier expiry. Its user is the same, unless the
 * other view may impersonate.
 *
 * DENIED: the credential is of another user than the view's. INVALID: the store has no
 * guard; a role that nobody defined (it is named); an expiry in the past. NOMEM.
 */
SESSILE_API sessile_status sessile_store_as(sessile_store **out, sessile_store *store,
                                            const sessile_credential *credential,
                                            sessile_error *err);

/* Sets another expiry on a view (0: never), as when a token was renewed: calls that are
 * DENIED because it expired pass again. A view of another view stays bound by that one's.
 * INVALID: not a view, or a time in the past. */
SESSILE_API sessile_status sessile_store_renew(sessile_store *view, int64_t expires_ms,
                                               sessile_error *err);

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
} sessile_principal;
/* INVALID: the store has no guard. */
SESSILE_API sessile_status sessile_store_who(const sessile_store *store,
                                             sessile_principal *out, sessile_error *err);

/* 1 if a view may use a permission on the session of these names now, 0 if not; agent
 * empty: the store's own; id empty: on the memory of agent and user. Nothing is counted
 * or looked up, so a session need not exist. A store without a guard: 1. */
SESSILE_API int sessile_can(const sessile_store *view, sessile_permission permission,
                            sessile_slice agent, sessile_slice user, sessile_slice id);

/* ------------------------------------------------------------------ screens */

/*
 * A screen looks at a text before it is written and says whether it may be. A list of
 * screens is loaded once and run over items: a message, a title, a value for a memory.
 *
 * A screen is a Lua file with regular expressions (of PCRE2) and, for what expressions
 * cannot decide, a function that runs in the sandbox of policies. It can let the text
 * pass, flag it, remove words from it, or refuse it. It can add none.
 *
 * Not promised: that a text which gives orders to a model is recognized. A screen finds
 * what its expressions say, and words can be chosen so that none matches.
 */

/* What a text is for. Each is a bit, so that they can be combined. */
typedef enum sessile_screen_kind {
    SESSILE_SCREEN_MESSAGE = 1,
    SESSILE_SCREEN_CUSTOM = 2, /* an entry of a kind of the host's own */
    SESSILE_SCREEN_TITLE = 4,
    SESSILE_SCREEN_METADATA = 8,
    SESSILE_SCREEN_SETTINGS = 16,
    SESSILE_SCREEN_STATE = 32, /* of a checkpoint or a suspension */
    SESSILE_SCREEN_MEMORY = 64,
    SESSILE_SCREEN_ANSWER = 128 /* of a model, to a policy */
} sessile_screen_kind;
#define SESSILE_SCREEN_KINDS 255

/* Whose words a text has. */
typedef enum sessile_screen_source {
    SESSILE_SCREEN_BY_HOST = 0,
    SESSILE_SCREEN_BY_USER,
    SESSILE_SCREEN_BY_AGENT,
    SESSILE_SCREEN_BY_TOOL,
    SESSILE_SCREEN_BY_SYSTEM
} sessile_screen_source;

/* What is to be done with a text, in ascending order. */
typedef enum sessile_screen_verdict {
    SESSILE_SCREEN_PASS = 0,
    SESSILE_SCREEN_FLAG,   /* write it, and mark it with the rule */
    SESSILE_SCREEN_REDACT, /* write the text of the outcome instead */
    SESSILE_SCREEN_REFUSE  /* do not write it */
} sessile_screen_verdict;

/* "message", "host", "pass": as in a screen's file. Static; NULL for a value that is
 * none. */
SESSILE_API const char *sessile_screen_kind_name(sessile_screen_kind kind);
SESSILE_API const char *sessile_screen_source_name(sessile_screen_source source);
SESSILE_API const char *sessile_screen_verdict_name(sessile_screen_verdict verdict);

/* A text before it is written. Zero it, then fill in. Borrowed for the call. */
typedef struct sessile_screen_item {
    sessile_screen_kind kind;
    sessile_screen_source source;
    sessile_role role;    /* of a message; else SESSILE_ROLE_NONE */
    sessile_slice author; /* a name; may be empty */
    sessile_slice key;    /* of an entry of a memory; the kind of a custom entry */
    sessile_slice text;   /* UTF-8 */
    /* 1: the text is JSON. Screens see its strings without their escapes, and words are
     * removed from strings only, so that it stays JSON. */
    int is_json;
} sessile_screen_item;

/* A screen of a list. */
typedef struct sessile_screen_step {
    const char *name;    /* no_orders, or a path (with a '/' or ending in ".lua") */
    const char *options; /* JSON object, or NULL */
    unsigned on;         /* SESSILE_SCREEN_… bits; 0: what its file says */
} sessile_screen_step;

/* JSON texts of a kind must be valid under a JSON Schema (draft 4 or 7, without
 * references to other documents). */
typedef struct sessile_screen_schema {
    sessile_screen_kind kind; /* one bit */
    const char *key;          /* of custom entries: their kind; else NULL */
    sessile_slice schema;     /* JSON */
} sessile_screen_schema;

/* Call sessile_screens_options_init(), then fill in. Borrowed for the call. */
typedef struct sessile_screens_options {
    const char
        *folders; /* where screens are searched by name, separated by ':'; or NULL */
    const sessile_screen_schema *schemas;
    size_t schema_count;
    const char *schema_library; /* NULL: schema.so, where it was installed */
    /* 1: the message of a screen that fails has what it raised, which may be words of the
     * text: for those who write screens. */
    int verbose;
    sessile_alloc alloc; /* NULL: realloc and free */
    void *alloc_ud;
} sessile_screens_options;
SESSILE_API void sessile_screens_options_init(sessile_screens_options *options);

typedef struct sessile_screens sessile_screens;

/*
 * Loads a list of screens, in the order in which they are run. *out: free it with
 * sessile_screens_free(); NULL on failure. A list never changes: many threads may use it.
 * options may be NULL. It needs at least one screen or one schema.
 *
 * NOTFOUND: no such screen; the message names those that exist. DENIED: the file is not
 * regular, or another user than root and this one can write it. POLICY: the file is
 * wrong; the message has the line. INVALID: an option, a pattern or a schema is wrong.
 * UNSUPPORTED: there is a schema, and schema.so was not built. LIMIT: more than 16
 * screens, 64 patterns of one, or 16 schemas. IO, NOMEM.
 */
SESSILE_API sessile_status sessile_screens_load(sessile_screens **out,
                                                const sessile_screen_step *steps,
                                                size_t count,
                                                const sessile_screens_options *options,
                                                sessile_error *err);
SESSILE_API void sessile_screens_free(sessile_screens *screens); /* NULL is ignored */

/* What one screen said, other than PASS. */
typedef struct sessile_screen_finding {
    sessile_screen_verdict verdict;
    const char *screen; /* its name; "schema" */
    const char *rule;   /* a pattern of it, a rule that its file declares, or its name */
    size_t removed;     /* REDACT: places in the text */
    /* Why, if the rule does not say it: a screen that failed; what a schema wants, and
     * where (a JSON pointer). Never has words of the text. May be "". */
    const char *message, *pointer;
} sessile_screen_finding;

/* One block: free it with sessile_free(). */
typedef struct sessile_screen_outcome {
    sessile_screen_verdict verdict; /* the highest of the findings */
    const sessile_screen_finding *findings;
    size_t count;
    sessile_slice text; /* REDACT: the text with "[removed: RULE]" for what was removed;
                           else empty */
} sessile_screen_outcome;

/*
 * Runs a list of screens over an item: schema, then the screens in their order. A screen
 * that is not for the item's kind is left out. The first that refuses ends it. A screen
 * sees what the screens before it left of the text.
 *
 * A screen that fails (an error, 5 million instructions, 50 ms, an expression that tries
 * too much) refuses, or flags if its file says so: what a text can crash is no screen.
 *
 * Returns OK whatever the verdict is; *out is NULL on failure. INVALID: the text is not
 * UTF-8, or not JSON when it should be. NOMEM.
 */
SESSILE_API sessile_status sessile_screen(sessile_screen_outcome **out,
                                          const sessile_screens *screens,
                                          const sessile_screen_item *item,
                                          sessile_error *err);

#ifdef __cplusplus
}
#endif

#endif
