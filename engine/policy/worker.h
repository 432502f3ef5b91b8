/*
 * worker.h: a policy in a process of its own.
 *
 * The engine's side starts `sessile-worker` and speaks with it over one socket in frames:
 * a size of 32 bits, a kind of 8, and wire.h's bytes. The worker's side (worker/ has the
 * program) runs the same pipeline on an equal state and sends back what it did, a journal
 * of plain calls, which the engine makes once more on its own state: nothing that a
 * worker says is believed, and nothing but that reaches the engine. A worker that
 * overruns its time, dies, or sends what is no answer is killed; the run is refused as if
 * the script had failed, and the next run finds a new one.
 */
#ifndef POLICY_WORKER_H
#define POLICY_WORKER_H

#include "base/wire.h"
#include "policy/policy.h"

typedef struct worker worker;

/* Starts the program at path. NOTFOUND, DENIED, IO, NOMEM. */
sessile_status worker_start(worker **out, const char *path, const os_table *os,
                            const allocator *a, sessile_error *err);
/* Kills it. NULL is ignored. */
void worker_stop(worker *w);
/* 1 when it has ended, by itself or by us, while nothing was asked of it. */
int worker_is_dead(worker *w);

/* What worker_describe() wants beside the worker. */
typedef struct worker_question {
    const char *file;
    sessile_slice source;
    const sessile_policy *policy; /* has the limits, and what was required so far */
    unsigned node;
    char *wanted; /* CHAIN_NAME bytes, filled */
} worker_question;

/* What a policy's file is, as describe_file() has it: JSON, checked, appended to facts,
 * or a name that it requires. POLICY: it does not compile or load; NOMEM. */
sessile_status worker_describe(worker *w, const worker_question *q, buf *facts,
                               sessile_error *err);
/* Tells it of a chain and of one pipeline over a state. */
sessile_status worker_open(worker *w, sessile_policy *p, const policy_setup *about,
                           const sessile_state *state, sessile_error *err);

/* What worker_call() wants beside the worker. */
typedef struct worker_job {
    size_t step;
    sessile_hook hook;
    sessile_reason reason;
    sessile_state *state; /* the hook has begun on it */
    buf *journal;         /* its journal: what happened since the last job; emptied */
    buf *log;             /* what the script said is appended */
    uint64_t *us;         /* grows by the time spent in Lua */
    policy_result *out;   /* request borrowed until the answer */
} worker_job;

/* As policy_pipeline_call() and policy_pipeline_answer(). */
sessile_status worker_call(worker *w, const worker_job *job, sessile_error *err);
sessile_status worker_answer(worker *w, const worker_job *job,
                             const sessile_answer *answer, sessile_error *err);

/* ---- frames, for both sides */

typedef enum frame {
    FRAME_CHAIN = 1, /* engine: limits; steps */
    FRAME_OPEN,      /* engine: setup; image of the state */
    FRAME_CALL,      /* engine: journal; step, hook, reason */
    FRAME_TEXT,      /* engine: status, the text that was asked for */
    FRAME_ANSWER,    /* engine: status, text */
    FRAME_READ,      /* worker: a key */
    FRAME_ASK,       /* worker: journal so far is kept; the model request */
    FRAME_END,       /* worker: status, message, spent, verdict, us, text, log, journal */
    FRAME_DESCRIBE,  /* engine: limits; file, source; what is required, its node */
    FRAME_FACTS      /* worker: status, message, facts, wanted */
} frame;

/* No frame is larger. */
#define FRAME_MOST (UINT32_C(256) << 20)

/* Begins a frame in out (cleared), and sets its size when it is whole. */
void frame_begin(buf *out, frame kind);
void frame_end(buf *out);

#endif
