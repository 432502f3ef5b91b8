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

#include "sessile_memory.h"
#include "support/simfs.h"

#define GROUND_LOGS 3 /* sessions and memories of a scenario */
#define GROUND_HANDLES                                              \
    2 /* store handles, each with one session handle open at a time \
       */
#define GROUND_WHOLES 64
#define GROUND_ROOT   "/data/store"

#define GROUND_MEMORY "memory" /* the id of a memory's log */

/* One session or memory, as far as a host knows. */
typedef struct ground_log {
    const char *id;   /* NULL: none yet; GROUND_MEMORY: a memory */
    const char *user; /* whose it is, or NULL */
    int forgetting;   /* its user: 1 is being forgotten, 2 was */
    int erasing;      /* entry `erased` of a memory: 1 is being erased, 2 was */
    size_t erased;
    char *original;      /* the text of that entry; NULL: it is in texts */
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
    sessile_memory *memories[GROUND_HANDLES];
    ground_log *open[GROUND_HANDLES]; /* which of logs the session or the memory is */
    sessile_policy *policy;
    sessile_run *runs[GROUND_HANDLES];
    sessile_error err; /* of the call that failed last */
    int last;          /* which handle the last call was on */
    int writing;       /* it was one that writes to a log, and syncs it */
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
    int memory; /* it is about a memory */
    int large;  /* it has many entries: less of it is tried, but in a long form */
} scenario;
extern const scenario scenarios[];
extern const size_t scenario_count;

/* An empty disk, and what the scenario prepares, durable. Fails the test if it cannot. */
void ground_open(ground *g, const scenario *s, int sealed, const os_table *os, simfs *fs);
/* Frees handles (whatever state they are in) and the account; not fs. */
void ground_close(ground *g);
/* Handles only: runs, policy, sessions, memories, stores, in this order. */
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

/* Opens the memory of the agent, or of a user (who consents); makes it when it is not
 * there. */
sessile_status ground_memory(ground *g, int h, const char *user);
/* Writes count entries of about size bytes, and deletes entry `ends` (0: none): one
 * commit. Every second of them has a key, of which there are three. */
sessile_status ground_remember(ground *g, int h, size_t count, size_t size,
                               sessile_id ends);
/* A verdict about an entry. */
sessile_status ground_judge(ground *g, int h, sessile_id id,
                            sessile_memory_verdict_kind to);
sessile_status ground_erase(ground *g, int h, sessile_id id);
sessile_status ground_close_memory(ground *g, int h);

/* The path of the file of a session or of the agent's memory. */
void ground_path(const char *id, char out[128]);
/* Opens the store as scenarios do, on this table. */
sessile_status ground_store_on(sessile_store **out, const os_table *os, int sealed,
                               int mindless, sessile_error *err);
/* What is open of a log: a session or a memory. */
typedef struct ground_view {
    sessile_session *session;
    sessile_memory *memory;
} ground_view;
/* create: 1 makes it, 0 does not. */
sessile_status ground_view_open(ground_view *out, sessile_store *st, const ground_log *l,
                                int create, sessile_error *err);
/* What handle h has open; nothing: both NULL. */
ground_view ground_view_of(const ground *g, int h);
int ground_view_is_open(const ground_view *v);
/* Questions that a host asks: contexts and messages; or lists and searches, which must
 * agree with what the entries say: else INVALID. */
sessile_status ground_view_ask(const ground_view *v, sessile_error *err);
/* Adds a message or an entry of that text. */
sessile_status ground_view_add(const ground_view *v, const char *text, sessile_id *id,
                               sessile_error *err);
sessile_status ground_view_damage(const ground_view *v, sessile_error *err);
uint64_t ground_view_torn(const ground_view *v);
sessile_status ground_view_close(ground_view *v, sessile_error *err);
/* All entries as texts: free each, and the list. */
sessile_status ground_entries(const ground_view *v, char ***texts, size_t *count,
                              sessile_error *err);
void ground_texts_free(char **texts, size_t count);
/* The entries that were found against what may be there: 1 and a sentence when something
 * acknowledged is missing, something else is there, or part of a turn is. */
int ground_differs(const ground_log *want, char **texts, size_t count, char *why,
                   size_t size);

#endif
