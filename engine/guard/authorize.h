/*
 * authorize.h: a rule of the host's own, which may take away what a view may do.
 *
 * This folder knows no Lua: the rule is handed down as a pointer and two functions
 * (policy/authorize.c). It is asked for each call of a view, after the permission and the
 * names are allowed and before the call is counted. It gives nothing.
 */
#ifndef GUARD_AUTHORIZE_H
#define GUARD_AUTHORIZE_H

#include "guard/principal.h"

#define AUTHORIZE_NAME 40 /* bytes of the name of a rule: letters, digits, _ and - */
#define AUTHORIZE_WHY  128

/* A call that is about to be done. Borrowed for the question. */
typedef struct authorize_question {
    const principal *who;
    sessile_slice operation; /* "append"; "host:NAME" for the host's own */
    permissions need;
    int changes;
    const guard_names *of;   /* what it is about; no agent: the whole store */
    const guard_names *made; /* the session that is made of it; NULL: none is */
} authorize_question;

typedef struct authorize_answer {
    int allows;
    char name[AUTHORIZE_NAME + 1]; /* of the rule that refuses, or "" */
    char why[AUTHORIZE_WHY]; /* the rule itself failed, which refuses; has no word of the
                                question */
} authorize_answer;

/* ask NULL: there is no rule. It may be asked by many threads. Its answer is zeroed
 * before, and it allows by setting `allows`. */
typedef struct authorize_rule {
    void *ref;
    void (*ask)(void *ref, const authorize_question *question, authorize_answer *answer);
    void (*release)(void *ref);
} authorize_rule;

/* Asks the rule of the guard about a call; made: see above. The host's own handle and
 * steps of what goes on are not asked about. DENIED: it refuses, or it failed; the call's
 * event says how it failed. */
sessile_status authorize_call(guard_call *call, const guard_names *made,
                              sessile_error *err);
/* The same, as if it were another call. */
sessile_status authorize_call_as(guard_call *call, guard_op op, const guard_names *made,
                                 sessile_error *err);
/* The same of what a call does with another handle, or of an operation of the host's.
 * why, AUTHORIZE_WHY bytes or NULL: how the rule failed. */
sessile_status authorize(const authorize_question *question, char *why,
                         sessile_error *err);

#endif
