/*
 * suite.h: the stores that the suite runs over, and what a case needs of them.
 *
 * A store is one line in stores.c. Cases are in test_backend.c (the table itself),
 * test_sessions.c (sessions over it) and test_failures.c (what becomes of them when its
 * functions fail); each runs over every line.
 */
#ifndef STORE_SUITE_H
#define STORE_SUITE_H

#include "sessile_store.h"

typedef struct suite_store {
    const char *name;
    int sealed;   /* opened with a key */
    int vanishes; /* another handle finds nothing of what the first one kept */
    /* Where stores of this kind lie, empty; ended by place_free. */
    void *(*place)(void);
    void (*place_free)(void *place);
    /* One more handle of the store in that place: a backend, as sessile_open_with() takes
     * it. The suite calls table->free(self), where there is one. */
    sessile_status (*backend)(void *place, const sessile_backend **table, void **self,
                              sessile_error *err);
    /* A URL for sessile_open(), written into out; NULL: it is opened over `backend`. */
    void (*url)(void *place, char out[512]);
    int processes; /* another process may open a store in that place too */
    /* Why there is no such store on this machine, or NULL: its cases are then skipped.
     * May be absent. */
    const char *(*absent)(void);
} suite_store;

extern const suite_store suite_stores[];
extern const size_t suite_store_count;

/* A place of a kind, for one case. */
typedef struct site {
    const suite_store *kind;
    void *place;
} site;

/* cmocka fixtures of every case: *state is the kind on the way in, then a site. */
int site_set_up(void **state);
int site_tear_down(void **state);

/* What a case may need of a store beside a capability of its table (those are the lower
 * bits): the initial state of a case, a mask, as a pointer. */
enum {
    NEEDS_NO_LOCKS = 1 << 8,
    NEEDS_NO_CUTS = 1 << 9,
    NEEDS_REMOVE = 1 << 10,
    NEEDS_PUBLISH = 1 << 11,
    NEEDS_WATCH = 1 << 12,
    NEEDS_BLOB_REPLACE = 1 << 13,
    NEEDS_BLOB_REMOVE = 1 << 14,
    NEEDS_BLOB_SETTLE = 1 << 15,
    NEEDS_PROCESSES = 1 << 16,
    NEEDS_RESTARTS = 1 << 17, /* another handle finds what the first one kept */
    NEEDS_SEALED = 1 << 18,
    NEEDS_ENDS = 1 << 20,
    NEEDS_CLOCK = 1 << 21,
    NEEDS_FENCED = 1 << 19 /* the store of fenced.c, which can be looked into */
};

/* A row of a list of cases; and one for those stores only that have all that it needs. */
#define CASE(name) CASE_IF(name, 0)
#define CASE_IF(name, needs)                                                 \
    {                                                                        \
#name, name, site_set_up, site_tear_down, (void *)(uintptr_t)(needs) \
    }

/*
 * Runs the cases over the stores that the command line names, each in a place of its own:
 *
 *     [STORE [CASE]]                       those of stores.c whose name holds STORE
 *     --store OBJECT.so [--processes] [--vanishes] [CASE]    the one in a shared object
 *
 * and of the cases those whose name holds CASE, and whose needs a store meets: which
 * others there are is said in a line that begins with "# not for".
 * tables: of kinds with one table, 1: only the first is run, 2: the last (sealed); 0:
 * all. Returns how many cases failed.
 */
struct CMUnitTest;
int suite_run(const char *title, const struct CMUnitTest *cases, size_t count, int tables,
              int argc, char **argv);
/* The same over these. */
int suite_run_stores(const suite_store *kinds, size_t kind_count, const char *title,
                     const struct CMUnitTest *cases, size_t count, int tables,
                     const char *store, const char *part);

/* The store that a shared object exports as sessile_test_store() (README.md), as one kind
 * or two: plain, and sealed where it SEALS. NULL: there is none, and stderr says why. */
const suite_store *suite_shared(const char *object, int vanishes, int processes,
                                size_t *count);

/* Another handle of the store; fails the test when it cannot be opened. */
sessile_store *site_store(const site *g);
/* The options it is opened with. */
void site_options(const site *g, sessile_store_options *out);

#define FAILING_MOST 48

/*
 * A table in front of another one, in which a function can be made to fail. Functions are
 * named by their place in names[], ended by NULL.
 */
typedef struct failing {
    sessile_backend table; /* hand this one to sessile_open_with(), with self = failing */
    const sessile_backend *under;
    void *self;
    const char *function; /* which one fails, or NULL */
    int after;            /* that many calls of it go through first */
    sessile_status status;
    int lost; /* 1: append does what it should, and says IO and *poisoned */
    int hits; /* how often it did */
    int calls[FAILING_MOST]; /* how often each was called */
} failing;
extern const char *const failing_names[];
void failing_init(failing *f, const sessile_backend *under, void *self);
#define FAILING_SAYS "the failing store did what it was told to"

#endif
