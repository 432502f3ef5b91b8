/*
 * ground.h: scenarios over a simulated file system that keep account of what has been
 * acknowledged, for the tests that take something away: the power, a process, a system
 * call.
 *
 * A scenario is a function that does things to a store as a host would and goes on while
 * they succeed. The ground below it notes for each session what a host was told is safe.
 * Run once without trouble it also tells the whole truth: each entry's bytes, since the
 * clocks of simfs make every run write the same.
 */
#ifndef SUPPORT_GROUND_H
#define SUPPORT_GROUND_H

#include "sessile.h"
#include "support/simfs.h"

#define GROUND_LOGS 3 /* sessions of a scenario */
#define GROUND_HANDLES                                              \
    2 /* store handles, each with one session handle open at a time \
       */
#define GROUND_WHOLES 64
#define GROUND_ROOT   "/data/store"

/* One session, as far as a host knows. */
typedef struct ground_log {
    const char *id;      /* NULL: none yet */
    const char *user;    /* whose it is, or NULL */
    int forgetting;      /* its user: 1 is being forgotten, 2 was */
    int created;         /* a host was told that it exists */
    size_t acknowledged; /* entries that a host was told are safe */
    /* entries first..last are there together or not at all */
    struct {
        size_t first, last;
    } wholes[GROUND_WHOLES];
    size_t whole_count;
    /* what a reader would find at the end; a NULL text: any entry */
    char **texts;
    size_t count;
} ground_log;

typedef struct ground {
    simfs *fs;
    const os_table *os;   /* what stores are opened on: fs, or a faulty table over it */
    int sealed, mindless; /* mindless: durability NONE */
    ground_log logs[GROUND_LOGS];
    sessile_store *stores[GROUND_HANDLES];
    int borrowed[GROUND_HANDLES]; /* the store is another handle's */
    sessile_session *sessions[GROUND_HANDLES];
    ground_log *open[GROUND_HANDLES]; /* which of logs the session is */
    sessile_policy *policy;
    sessile_run *runs[GROUND_HANDLES];
    sessile_error err; /* of the call that failed last */
    int last;          /* which handle the last call was on */
    int writing;       /* it was one that writes to a session, and syncs it */
    size_t refused;    /* a compaction could not be made behind this many entries */
    const char *doing; /* what a scenario was about, for messages */
    int turn_count;
} ground;

typedef struct scenario {
    const char *name;
    /* Before anything may be taken away. NULL: an empty disk. */
    sessile_status (*prepare)(ground *g);
    sessile_status (*play)(ground *g);
    int mindless;
    int fails;  /* it has a failure of its own: not for tests that make others */
    int sealed; /* it has to do with keys: sealed stores only */
    int lists;  /* lists are looked at at once, before anything is opened */
} scenario;
extern const scenario scenarios[];
extern const size_t scenario_count;

/* An empty disk, and what the scenario prepares, durable. Fails the test if it cannot. */
void ground_open(ground *g, const scenario *s, int sealed, const os_table *os, simfs *fs);
/* Frees handles (whatever state they are in) and the account; not fs. */
void ground_close(ground *g);
/* Handles only: runs, policy, sessions, stores, in this order. */
void ground_drop_handles(ground *g);
/* The options that lead to a log. */
void ground_session_options(sessile_session_options *o, const ground_log *l);
/* The truth of each log, read through a store handle of its own. */
void ground_learn(ground *g);

/* ---- what scenarios do. h: which handle. Each ends at the first failure. */

sessile_status ground_store(ground *g, int h);
/* Handle h opens its sessions in the store of handle `of`. */
void ground_share(ground *g, int h, int of);
sessile_status ground_create(ground *g, int h, const char *id);
sessile_status ground_resume(ground *g, int h, const char *id);
/* A user's message of about size bytes. */
sessile_status ground_say(ground *g, int h, size_t size);
/* Asks for a list of all sessions. */
sessile_status ground_list(ground *g, int h);
/* A new epoch; then all logs sealed by it. */
sessile_status ground_rotate(ground *g, int h);
sessile_status ground_reseal(ground *g, int h);
/* The user of log i (its session is not open) is forgotten. */
sessile_status ground_forget(ground *g, int h, const char *id);
/* As ground_create, for a user. */
sessile_status ground_create_for(ground *g, int h, const char *id, const char *user);
/* A turn of count messages, begun; and brought to its end. */
sessile_status ground_turn_begin(ground *g, int h, size_t count, size_t size);
sessile_status ground_turn_end(ground *g, int h);
sessile_status ground_close_session(ground *g, int h);
void ground_close_store(ground *g, int h);

/* The path of a session's file. */
void ground_path(const char *id, char out[128]);
/* Opens the store as scenarios do, on this table. */
sessile_status ground_store_on(sessile_store **out, const os_table *os, int sealed,
                               int mindless, sessile_error *err);
/* All entries of an open session as texts: free each, and the list. */
sessile_status ground_entries(sessile_session *s, char ***texts, size_t *count,
                              sessile_error *err);
void ground_texts_free(char **texts, size_t count);
/* The entries that were found against what may be there: 1 and a sentence when something
 * acknowledged is missing, something else is there, or part of a turn is. */
int ground_differs(const ground_log *want, char **texts, size_t count, char *why,
                   size_t size);

#endif
