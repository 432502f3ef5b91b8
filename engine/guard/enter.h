/*
 * enter.h: the door between a public function and the floors below.
 *
 * A handle of the public headers is a core and a principal: who uses it. Below api/ there
 * are only cores. The macros here are the one way from a handle to its core, so a public
 * function that leaves them out does not compile:
 *
 *     GUARD_ENTER(label, session);
 *     return GUARD_LEAVE(session_label(core, entry, name, 0, err));
 *
 * GUARD_ENTER names the function's row in operations.def, which says what is checked. It
 * declares `core` and returns from the function what it refuses. A handle without a
 * principal passes with one comparison.
 */
#ifndef GUARD_ENTER_H
#define GUARD_ENTER_H

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "session/cores.h"
#include "sessile_guard.h"
#include "sessile_memory.h"

typedef struct principal principal; /* who calls; NULL: this store has no guard */

/* shared: of a memory, that an agent keeps it for all users; is_view: of a store, that
 * another handle closes the core. */
#define GUARD_HANDLE(type)                    \
    struct sessile_##type {                   \
        type##_core *core;                    \
        principal *who;  /* one reference */  \
        allocator alloc; /* of this handle */ \
        unsigned char shared, is_view;        \
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

typedef enum guard_op {
#define OPERATION(name, permission, also, limit, event, screens, object) OP_##name,
#include "guard/operations.def"
#undef OPERATION
    OP_COUNT
} guard_op;

/* One call of a public function. */
typedef struct guard_call {
    principal *who;
    guard_op op;
    int shared;
} guard_call;

/* enter.c. DENIED: the principal may not. */
sessile_status guard_check(const guard_call *call, sessile_error *err);
/* DENIED: names of others. They say the same whether there is such a session or not.
 * Those that a caller left out become its own. */
sessile_status guard_own_names(const principal *p, const store_core *store,
                               sessile_session_options *options, sessile_error *err);
/* As those of a session that is made of another: what is left out is as of that. */
sessile_status guard_made_names(const principal *p, const session_core *from,
                                const sessile_session_options *options,
                                sessile_error *err);
sessile_status guard_own_memory(const principal *p, const store_core *store,
                                const sessile_memory_options *options,
                                sessile_error *err);
sessile_status guard_own_list(const principal *p, const store_core *store,
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
/* 1 if a memory that a call is given may be read, or written to (writes). */
int guard_gives_memory(const principal *p, const sessile_memory *memory, int writes);
/* 1 if the principal (NULL: any) may make sessions. */
int guard_creates(const principal *p);
/* DENIED: that permission is missing. */
sessile_status guard_refuse(sessile_permission permission, sessile_error *err);

void guard_end(principal *p);         /* guard.h */
void principal_retain(principal *p);  /* NULL is ignored */
void principal_release(principal *p); /* NULL is ignored */

/* ------------------------------------------------------------------ calls */

/* Enters op with a handle that is not NULL. Declares `core`. */
#define GUARD_ENTER(op_, handle)                                    \
    guard_call call_ = {(handle)->who, OP_##op_, (handle)->shared}; \
    GUARD_REFUSE_IF(call_.who, guard_check(&call_, err));           \
    __typeof__((handle)->core) core = (handle)->core
#define GUARD_REFUSE_IF(who, check)                        \
    do {                                                   \
        sessile_status no_ = (who) ? (check) : SESSILE_OK; \
        if (no_)                                           \
            return no_;                                    \
    } while (0)
/* The names in options, which become a copy with the caller's own names. */
#define GUARD_NAMES(type, options, check)                                 \
    type own_names_ = *(options);                                         \
    GUARD_REFUSE_IF(call_.who, check(call_.who, core, &own_names_, err)); \
    (options) = &own_names_
/* Who calls; NULL: nothing is filtered. */
#define GUARD_WHO (call_.who)

/* The status of the function: the end of the call. */
#define GUARD_LEAVE(status) guard_leave(&call_, status, err)

/* The core of one more handle that the call reads from, not NULL. */
#define GUARD_ALSO(handle) ((handle)->core)

/* Enters op with up to two stores, which may be NULL: each has its own principal. */
#define GUARD_BETWEEN(op_, from_, to_)                               \
    guard_call call_ = {(from_) ? (from_)->who : NULL, OP_##op_, 0}; \
    GUARD_REFUSE_IF(call_.who, guard_check(&call_, err));            \
    if ((to_) && (to_)->who) {                                       \
        call_.who = (to_)->who;                                      \
        GUARD_REFUSE_IF(call_.who, guard_check(&call_, err));        \
    }

/* The core, or NULL, for what a handle itself is: nothing of a store is touched. */
#define GUARD_OWN(handle) ((handle) ? (handle)->core : NULL)

static inline sessile_status guard_leave(guard_call *call, sessile_status status,
                                         sessile_error *err)
{
    (void)call;
    (void)err;
    return status;
}

/* ------------------------------------------------------------------ handles */

/* Begins to make a handle inside a call: *out has no core yet. */
#define GUARD_MAKE(out, allocator_)              \
    do {                                         \
        const allocator *a_ = (allocator_);      \
        *(out) = mem_zalloc(a_, sizeof **(out)); \
        if (!*(out))                             \
            return GUARD_LEAVE(fail_nomem(err)); \
        (*(out))->alloc = *a_;                   \
        (*(out))->who = call_.who;               \
        principal_retain(call_.who);             \
    } while (0)
/* Where its core is put. */
#define GUARD_INTO(out) (&(*(out))->core)
/* The end of the call: without a core there is no handle. */
#define GUARD_MADE(out, status_)        \
    do {                                \
        sessile_status made_ = status_; \
        if (made_)                      \
            GUARD_FREE(out);            \
        return GUARD_LEAVE(made_);      \
    } while (0)
#define GUARD_FREE(out)                        \
    do {                                       \
        allocator a_ = (*(out))->alloc;        \
        principal_release((*(out))->who);      \
        mem_free(&a_, *(out), sizeof **(out)); \
        *(out) = NULL;                         \
    } while (0)

/* Frees a handle that is not NULL, and declares its core, which is closed next. */
#define GUARD_CLOSE(handle)                           \
    __typeof__((handle)->core) core = (handle)->core; \
    GUARD_FREE(&handle)

#endif
