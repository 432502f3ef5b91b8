/*
 * wrong.h: stores that break a promise, each one and in one way, so that it can be seen
 * that the suite sees them.
 *
 * Each is a table in front of the right one of fenced.c (locks: of the engine's ram
 * store), with one or two functions that do wrong.
 */
#ifndef STORE_WRONG_H
#define STORE_WRONG_H

#include "store/suite.h"

typedef struct wrong {
    const char *name;    /* what it does */
    const char *seen_by; /* the case that must fail */
    void (*break_it)(sessile_backend *table);
    int locks; /* over the store with locks */
} wrong;

/* A `break_it` that replaces one function of the right table; and one that replaces two.
 */
#define BREAK(function, member, bug)         \
    static void function(sessile_backend *t) \
    {                                        \
        t->member = bug;                     \
    }
#define BREAK_TWO(function, member, bug, other, bug2) \
    static void function(sessile_backend *t)          \
    {                                                 \
        t->member = bug;                              \
        t->other = bug2;                              \
    }

/* Each ends with a NULL name. */
extern const wrong wrong_logs[], wrong_beside[];

/* The wrong one of that name; "": a right one, in the same way. NULL: there is none. */
const suite_store *wrong_store(const char *name);

/* The right table under the wrong one. The functions of a log are not told which store it
 * is of, so there is one in a process. */
extern const sessile_backend *wrong_under;

/* What a wrong store remembers of a log that is open: its name, and more. */
typedef struct wrong_log {
    sessile_backend_log *log;
    char folder[256], name[256];
    void *self;
    uint64_t first;       /* its size when it was first asked for */
    sessile_log_end last; /* where it ends, of what was appended through the table */
} wrong_log;
wrong_log *wrong_of(sessile_backend_log *log);

#endif
