/*
 * enter.h: the door between a public function and the floors below.
 *
 * A handle of the public headers is a core and a principal: who uses it. Below api/ there
 * are only cores. The macros here are the one way from a handle to its core, so a public
 * function that leaves them out does not compile:
 *
 *     GUARD_ENTER(label, session);
 *     GUARD_ENTRY(&entry);
 *     return GUARD_LEAVE(session_label(core, entry, name, 0, err));
 *
 * GUARD_ENTER names the function's row in operations.def, which says what is checked,
 * counted and recorded. It declares `core` and returns from the function what it refuses.
 * GUARD_LEAVE writes the event. A handle without a principal passes with one comparison.
 */
#ifndef GUARD_ENTER_H
#define GUARD_ENTER_H

#include <string.h>

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "session/cores.h"
#include "sessile_audit.h"
#include "sessile_guard.h"
#include "sessile_memory.h"

typedef struct principal principal; /* who calls; NULL: this store has no guard */

/* Names of a session, or of a memory (id empty). */
typedef struct guard_names {
    sessile_slice agent, user, id;
} guard_names;

/* What a call that was begun with a handle came to. */
enum { TOLD_NOTHING, TOLD_OPEN, TOLD_FAILURE, TOLD_END };

/* names: what it is of, borrowed from the core; number: of the handles of its guard;
 * counted: who is counted for its session (0: not worked out); op: the call that made it;
 * told: of what goes on, what the audit knows; shared: of a memory, that an agent keeps
 * it for all users; is_view: of a store or session, that another handle closes the core.
 */
#define GUARD_HANDLE(type)                    \
    struct sessile_##type {                   \
        type##_core *core;                    \
        principal *who;  /* one reference */  \
        allocator alloc; /* of this handle */ \
        guard_names names;                    \
        _Atomic uint64_t counted;             \
        uint32_t number;                      \
        unsigned short op;                    \
        unsigned char told, shared, is_view;  \
    }
GUARD_HANDLE(store);
GUARD_HANDLE(session);
GUARD_HANDLE(memory);
GUARD_HANDLE(run);
GUARD_HANDLE(memory_run);
GUARD_HANDLE(entries);
GUARD_HANDLE(search);
GUARD_HANDLE(check);
GUARD_HANDLE(reseal);
GUARD_HANDLE(migration);
GUARD_HANDLE(audit_reader);
GUARD_HANDLE(audit_verification);

typedef enum guard_op {
#define OPERATION(name, permission, also, limit, event, screens, object) OP_##name,
#include "guard/operations.def"
#undef OPERATION
    OP_COUNT
} guard_op;

/* One call of a public function. Without a principal nothing but `who` is set. */
typedef struct guard_call {
    principal *who;
    unsigned short op, event_of; /* event_of: the row whose event it is */
    unsigned short begun;        /* of a step: the call that it goes on with */
    unsigned char shared, left, goes_on, intended;
    uint32_t missing;       /* permissions that a grant on its names may give */
    principal *granted;     /* what grants on its names give: it takes the place of who */
    const guard_names *own; /* of the handle */
    guard_names names;      /* what it is about */
    _Atomic uint64_t *counted;
    uint32_t number;         /* of the handle */
    const sessile_id *entry; /* or NULL */
    buf details;             /* members of a JSON object, each after a comma */
    char event[32];          /* what names the event of its end; "": there is none */
    void **gives;            /* what is freed when the event cannot be written; or NULL */
    size_t *gives_count;
    sessile_error error; /* for a caller that passes none */
} guard_call;

/* enter.c. DENIED: the principal may not. */
sessile_status guard_check(guard_call *call, sessile_error *err);
/* DENIED: names of others. They say the same whether there is such a session or not.
 * Those that a caller left out become its own. */
sessile_status guard_own_names(guard_call *call, const store_core *store,
                               sessile_session_options *options, sessile_error *err);
/* As those of a session that is made of another: what is left out is as of that. */
sessile_status guard_made_names(guard_call *call, const session_core *from,
                                const sessile_session_options *options,
                                sessile_error *err);
/* DENIED: a session was shared, and the one that was opened is another of its name. */
sessile_status guard_check_made(guard_call *call, const session_core *s,
                                sessile_error *err);
/* … and a memory that the caller may not write to must be there. */
sessile_status guard_own_memory(guard_call *call, const store_core *store,
                                sessile_memory_options *options, sessile_error *err);
sessile_status guard_own_list(guard_call *call, const store_core *store,
                              sessile_list_options *options, sessile_error *err);
/* A call about all that there is of a user: an empty name becomes the caller's own. */
sessile_status guard_own_user(const principal *p, sessile_slice *user,
                              sessile_error *err);
/* A call that ends all that there is of a user. INVALID: the caller is that user, whom
 * the record of the call would name again. DENIED: the view is of some agents. */
sessile_status guard_ends_user(const principal *p, sessile_slice user,
                               sessile_error *err);
/* DENIED: it is neither that user nor may manage_privacy. */
sessile_status guard_may_consent(const principal *p, sessile_slice user,
                                 sessile_error *err);
/* The same, where the guard asks for consent (sessile_guard_options). */
sessile_status guard_check_consent(const principal *p, sessile_slice user,
                                   sessile_error *err);
/* DENIED: what a screen flagged is unflagged by the host, or who may manage_access. */
sessile_status guard_may_unflag(const principal *p, sessile_error *err);
/* 1 if a memory that a call is given may be read, or written to (writes). */
int guard_gives_memory(const principal *p, const sessile_memory *memory, int writes);
/* A call that opens what is there is about to make it: DENIED, as of sessile_create(). */
sessile_status guard_may_create(guard_call *call, sessile_error *err);
/* LIMIT: it was called too often. */
sessile_status guard_count(guard_call *call, sessile_error *err);
/* DENIED: a call that needs this permission would be refused to p. names: of a session;
 * without an id, of a memory, or of the session that the view is narrowed to; those that
 * are left out become p's own. A rule of the host's is about calls: it is not asked. */
sessile_status guard_allows(principal *p, const store_core *store,
                            sessile_permission permission, guard_names *names,
                            sessile_error *err);
/* DENIED: whoever has another handle, of these names, may not use it for op (any more).
 * NULL: its store has no guard. */
sessile_status guard_also(principal *who, const guard_names *names, guard_op op,
                          sessile_permission permission, sessile_error *err);
/* DENIED: that permission is missing. */
sessile_status guard_refuse(sessile_permission permission, sessile_error *err);

/* guard.h */
sessile_status guard_opened(sessile_store *store, sessile_error *err);
void guard_close(principal *p);

void principal_retain(principal *p);  /* NULL is ignored */
void principal_release(principal *p); /* NULL is ignored */
/* A reference for a handle, which gets a number of its own. */
uint32_t principal_hold(principal *p);

/* ---- call.c: what is recorded of a call */

void guard_begin(guard_call *call, guard_op op);
/* The end of a call: its event. IO, FULL, BUSY, FORKED: it was done, and is not in the
 * audit. */
sessile_status guard_end(guard_call *call, sessile_status status, sessile_error *err);
/* The event before what cannot be undone. */
sessile_status guard_intend(guard_call *call, sessile_error *err);
/* The end of a step of what goes on. */
sessile_status guard_step(guard_call *call, unsigned char *told, sessile_status status,
                          sessile_error *err);
/* What goes on is freed, and the audit does not know what it came to. */
void guard_abandon(principal *who, const guard_names *names, unsigned op);
/* A call was not left. */
void guard_forgotten(guard_call *call);
void guard_text(guard_call *call, const char *name, sessile_slice text);
/* A list of texts. */
void guard_texts(guard_call *call, const char *name, const sessile_slice *texts,
                 size_t count);
void guard_number(guard_call *call, const char *name, uint64_t value);
/* Appends the proof of the event of a call that was left; nothing where it has none.
 * SUSPENDED: it is not sealed yet; other errors of audit_prove(). */
sessile_status guard_prove(const guard_call *call, buf *out, sessile_error *err);
/* What was decided about access meanwhile, by other ways than this guard, is in force at
 * once. */
void guard_look_again(const guard_call *call);
guard_names guard_names_of(const session_core *s);

/* ------------------------------------------------------------------ calls */

/* Enters op with a handle that is not NULL. Declares `core`. */
#define GUARD_ENTER(op_, handle)                      \
    GUARD_CALL((handle)->who);                        \
    if (call_.who) {                                  \
        guard_begin(&call_, OP_##op_);                \
        call_.shared = (handle)->shared;              \
        call_.begun = (handle)->op;                   \
        call_.names = (handle)->names;                \
        call_.own = &(handle)->names;                 \
        call_.counted = &(handle)->counted;           \
        call_.number = (handle)->number;              \
        err = err ? err : &call_.error;               \
        GUARD_REFUSE_IF(1, guard_check(&call_, err)); \
    }                                                 \
    __typeof__((handle)->core) core = (handle)->core
#define GUARD_CALL(who_)                                        \
    guard_call call_ __attribute__((cleanup(guard_leave_all))); \
    call_.who = (who_)
#define GUARD_REFUSE_IF(who, check)                        \
    do {                                                   \
        sessile_status no_ = (who) ? (check) : SESSILE_OK; \
        if (no_)                                           \
            return GUARD_LEAVE(no_);                       \
    } while (0)
/* The names in options, which become a copy with the caller's own names. */
#define GUARD_NAMES(type, options, check)                              \
    type own_names_ = *(options);                                      \
    GUARD_REFUSE_IF(call_.who, check(&call_, core, &own_names_, err)); \
    (options) = &own_names_
/* Counts the call, once it is allowed. */
#define GUARD_COUNT GUARD_REFUSE_IF(call_.who, guard_count(&call_, err))
/* Records that it is about to be done, or does not do it. */
#define GUARD_INTENT GUARD_REFUSE_IF(call_.who, guard_intend(&call_, err))
/* Who calls; NULL: nothing is filtered. */
#define GUARD_WHO (call_.who)

/* What the event says: the entry that id points to when the call ends; other details. */
#define GUARD_SAY(what) \
    do {                \
        if (call_.who)  \
            what;       \
    } while (0)
#define GUARD_ENTRY(id)           GUARD_SAY(call_.entry = (id))
#define GUARD_TEXT(name, text)    GUARD_SAY(guard_text(&call_, name, text))
#define GUARD_NUMBER(name, value) GUARD_SAY(guard_number(&call_, name, value))
/* The event is that of another row. */
#define GUARD_AS(op_) GUARD_SAY(call_.event_of = OP_##op_)
/* An output that is freed when a call that was done cannot be recorded. */
#define GUARD_GIVES(out, count) \
    GUARD_SAY((call_.gives = (void **)(out), call_.gives_count = (count)))
/* The handle that is made goes on with the call: its end has an event of its own. */
#define GUARD_GOES_ON GUARD_SAY(call_.goes_on = 1)

/* The status of the function: the end of the call. */
#define GUARD_LEAVE(status) guard_leave(&call_, status, err)
/* The same of a step of what goes on. */
#define GUARD_STEP(handle, status) guard_leave_step(&call_, &(handle)->told, status, err)

/* The principal of a handle, for functions that ask more than its permission. */
#define GUARD_PRINCIPAL(handle) ((handle)->who)

/* One more handle that the call uses, not NULL: its own principal is asked, too. */
#define GUARD_MAY(op_, handle, permission, err) \
    guard_also((handle)->who, &(handle)->names, op_, SESSILE_MAY_##permission, err)
#define GUARD_ALSO_MAY(op_, handle, permission) \
    GUARD_REFUSE_IF((handle)->who, GUARD_MAY(OP_##op_, handle, permission, err))
/* Its core. */
#define GUARD_ALSO(handle) ((handle)->core)

/* Enters op with up to two stores, which may be NULL: each has its own principal. The
 * event is in the audit of the first that has one. */
#define GUARD_BETWEEN(op_, from_, to_)                                   \
    GUARD_CALL((from_) ? (from_)->who : NULL);                           \
    static const guard_names none_;                                      \
    principal *first_ = call_.who, *second_ = (to_) ? (to_)->who : NULL; \
    if (first_ || second_) {                                             \
        call_.who = first_ ? first_ : second_;                           \
        guard_begin(&call_, OP_##op_);                                   \
        call_.own = &none_;                                              \
        err = err ? err : &call_.error;                                  \
        GUARD_REFUSE_IF(1, guard_check(&call_, err));                    \
        if (first_ && second_) {                                         \
            call_.who = second_;                                         \
            GUARD_REFUSE_IF(1, guard_check(&call_, err));                \
            call_.who = first_;                                          \
        }                                                                \
    }

/* The core, or NULL, for what a handle itself is: nothing of a store is touched. */
#define GUARD_OWN(handle) ((handle) ? (handle)->core : NULL)

static inline sessile_status guard_leave(guard_call *call, sessile_status status,
                                         sessile_error *err)
{
    return call->who ? guard_end(call, status, err) : status;
}

static inline sessile_status guard_leave_step(guard_call *call, unsigned char *told,
                                              sessile_status status, sessile_error *err)
{
    return call->who ? guard_step(call, told, status, err) : status;
}

static inline void guard_leave_all(guard_call *call)
{
    if (call->who)
        guard_forgotten(call);
}

/* ------------------------------------------------------------------ handles */

/* Begins to make a handle inside a call: *out has no core yet. */
#define GUARD_MAKE(out, allocator_)                       \
    do {                                                  \
        const allocator *a_ = (allocator_);               \
        *(out) = mem_zalloc(a_, sizeof **(out));          \
        if (!*(out))                                      \
            return GUARD_LEAVE(fail_nomem(err));          \
        (*(out))->alloc = *a_;                            \
        if (call_.who) {                                  \
            (*(out))->who = call_.who;                    \
            (*(out))->op = call_.op;                      \
            (*(out))->names = *call_.own;                 \
            (*(out))->number = principal_hold(call_.who); \
        }                                                 \
    } while (0)
/* Where its core is put. */
#define GUARD_INTO(out) (&(*(out))->core)
/* The end of the call: without a core there is no handle. What was made and cannot be
 * recorded is closed again. */
#define GUARD_MADE(out, status_)                  \
    do {                                          \
        sessile_status made_ = status_;           \
        if (made_)                                \
            GUARD_FREE(out);                      \
        if (!call_.who)                           \
            return made_;                         \
        sessile_status end_ = GUARD_LEAVE(made_); \
        if (end_ && !made_) {                     \
            GUARD_DROP(out);                      \
            *(out) = NULL;                        \
        } else if (!end_ && call_.goes_on) {      \
            (*(out))->told = TOLD_OPEN;           \
        }                                         \
        return end_;                              \
    } while (0)
static inline void guard_drop_session(sessile_session *session)
{
    (void)sessile_session_close(session, NULL);
}
/* The same, and the handle is named after its session. */
#define GUARD_MADE_SESSION(out, status_)                        \
    do {                                                        \
        if (call_.who && !(status_))                            \
            (*(out))->names = guard_names_of(*GUARD_INTO(out)); \
        GUARD_MADE(out, status_);                               \
    } while (0)
#define GUARD_DROP(out)                                          \
    _Generic(*(out), sessile_session *                           \
             : guard_drop_session, sessile_memory *              \
             : sessile_memory_close, sessile_run *               \
             : sessile_run_free, sessile_memory_run *            \
             : sessile_memory_run_free, sessile_entries *        \
             : sessile_entries_close, sessile_search *           \
             : sessile_search_close, sessile_check *             \
             : sessile_check_close, sessile_audit_reader *       \
             : sessile_audit_close, sessile_audit_verification * \
             : sessile_audit_verify_free, sessile_reseal *       \
             : sessile_reseal_free, sessile_migration *          \
             : sessile_migrate_free)(*(out))
#define GUARD_FREE(out)                        \
    do {                                       \
        allocator a_ = (*(out))->alloc;        \
        principal_release((*(out))->who);      \
        mem_free(&a_, *(out), sizeof **(out)); \
        *(out) = NULL;                         \
    } while (0)

/* Frees a handle that is not NULL, and declares its core, which is closed next. */
#define GUARD_CLOSE(handle)                                           \
    if ((handle)->told == TOLD_OPEN)                                  \
        guard_abandon((handle)->who, &(handle)->names, (handle)->op); \
    __typeof__((handle)->core) core = (handle)->core;                 \
    GUARD_FREE(&handle)

#endif
