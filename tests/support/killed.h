/*
 * killed.h: processes that are stopped and killed while they write, and what they said.
 *
 * A program forks PROCESSES of THREADS. The parent stops, continues and kills them at
 * random and starts the dead again; most also carry a fuse: after some number of system
 * calls they kill themselves, before a call, behind it, or in the middle of a write. Each
 * thread reports a call through a pipe after it returned, and only then: the parent keeps
 * what became of each.
 *
 * Decides nothing about what must be found in the end: that is the affair of a test.
 */
#ifndef SUPPORT_KILLED_H
#define SUPPORT_KILLED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sessile.h"

enum { PROCESSES = 8, THREADS = 4, KILLED_ORDERS = 3 };

typedef enum report_kind { ACKNOWLEDGED = 1, REFUSED, CREATED, BROKEN } report_kind;

/* ---- in a process */

/* One thread. */
typedef struct killed_thread {
    unsigned slot, thread; /* which process, and which of its threads */
    uint32_t life;         /* how often the process was started before */
    uint64_t seed;
} killed_thread;

/* Reports what became of call `seq` (0, 1, … of this thread). BROKEN, with a text, ends
 * the process, and fails the test. */
void killed_tell(const killed_thread *t, report_kind kind, uint32_t seq,
                 sessile_status status, const char *text);

/* ---- in the parent */

/* What became of one call. */
typedef struct killed_call {
    uint8_t outcome; /* report_kind; 0: not reported */
    uint8_t found;   /* how often, for the test */
} killed_call;

/* What one thread of one life said: the outcome of each of its calls, in order. */
typedef struct killed_history {
    killed_call *calls; /* one more than were reported: the call that was cut short */
    size_t count, capacity;
    int64_t last[KILLED_ORDERS]; /* for the test: to compare the order of calls */
} killed_history;

typedef struct killed_child {
    pid_t pid;
    int stopped;
    killed_history (*lives)[THREADS];
    uint32_t life_count;
} killed_child;

typedef struct killed_round {
    char folder[256], root[300]; /* a scratch folder, and a store's place in it */
    killed_child children[PROCESSES];
    int pipe[2];
    uint64_t seed;
    unsigned long kills, fuses, conflicts, busy, acknowledged, created;
    /* A process; does not return. */
    void (*process)(const char *root, unsigned slot, uint32_t life, uint64_t seed);
} killed_round;

/* An empty round with a folder of its own. */
void killed_begin(killed_round *r, uint64_t seed,
                  void (*process)(const char *root, unsigned slot, uint32_t life,
                                  uint64_t seed));
/* Starts the processes, and kills until so many have died. Nobody is left behind. */
void killed_run(killed_round *r, unsigned long kills);
/* Also after a failed check: ends who is left. */
void killed_stop(killed_round *r);
void killed_end(killed_round *r);
/* The call that an entry names: fails the test if nobody can have made it. */
killed_call *killed_made(killed_round *r, unsigned slot, uint32_t life, unsigned thread,
                         uint32_t seq, killed_history **history);
/* Acknowledged calls that were never found. */
unsigned long killed_lost(const killed_round *r);
void killed_broken(const killed_round *r, const char *why);
/* Pieces of torn ends that lie in a folder of the store. */
unsigned long killed_pieces(const killed_round *r, const char *folder);
/* Calls for each file of a folder, by its path; the sum of what was answered. */
unsigned long killed_files(const char *folder,
                           int (*each)(const char *folder, const char *name));

#endif
