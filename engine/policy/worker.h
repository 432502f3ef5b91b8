/*
 * worker.h: a policy in a separate process.
 *
 * The engine starts `sessile-worker` and exchanges frames with it over one socket: a
 * size of 32 bits, a kind of 8, and the encoding of wire.h. The worker (its program is
 * in worker/) runs the same pipeline on a copy of the state and sends back a journal
 * of plain calls. The engine repeats these calls on its own state and trusts nothing
 * else that the worker sends. The engine kills a worker that exceeds its time, dies,
 * or sends an invalid answer. The run is then refused as if the script had failed; the
 * next run starts a new worker.
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
/* 1 when it has ended while nothing was asked of it. */
int worker_is_dead(worker *w);

/* Arguments of worker_describe(). */
typedef struct worker_question {
    const char *file;
    sessile_slice source;
    const sessile_policy *policy; /* has the limits, and what is loaded so far */
    unsigned node;
    char *wanted; /* CHAIN_NAME bytes, filled */
} worker_question;

/* Inspects a policy's file like describe_file(): appends JSON, checked, to facts, or
 * fills wanted. POLICY: it does not compile or load; NOMEM. */
sessile_status worker_describe(worker *w, const worker_question *q, buf *facts,
                               sessile_error *err);
/* Sends a chain and a pipeline over a state. */
sessile_status worker_open(worker *w, sessile_policy *p, const policy_setup *about,
                           const sessile_state *state, sessile_error *err);

/* Arguments of worker_call(). */
typedef struct worker_job {
    size_t step;
    sessile_hook hook;
    sessile_reason reason;
    sessile_state *state;    /* the hook has begun on it */
    sessile_slice arguments; /* of a hook of a memory */
    buf *journal;            /* its journal since the last job; emptied */
    buf *log;                /* the script's log lines are appended */
    uint64_t *us;            /* increased by the time spent in Lua */
    policy_result *out;      /* request borrowed until the answer */
} worker_job;

/* As policy_pipeline_call() and policy_pipeline_answer(). */
sessile_status worker_call(worker *w, const worker_job *job, sessile_error *err);
sessile_status worker_answer(worker *w, const worker_job *job,
                             const sessile_answer *answer, sessile_error *err);

/* ---- frames, for both sides */

typedef enum frame {
    FRAME_CHAIN = 1, /* engine: limits; steps */
    FRAME_OPEN,      /* engine: setup; image of the state */
    FRAME_CALL,      /* engine: journal; step, hook, reason, arguments */
    FRAME_TEXT,      /* engine: status, the requested text */
    FRAME_ANSWER,    /* engine: status, text */
    FRAME_READ,      /* worker: a key */
    FRAME_ASK,       /* worker: journal so far is kept; the request, whether it is one of
                        ctx.memory */
    FRAME_END,       /* worker: status, message, spent, verdict, us, text, log, journal */
    FRAME_DESCRIBE,  /* engine: limits; file, source; what is required, its node */
    FRAME_FACTS      /* worker: status, message, facts, wanted */
} frame;

/* No frame is larger. */
#define FRAME_MOST (UINT32_C(256) << 20)

/* Begins a frame in out (cleared); frame_end() sets its size. */
void frame_begin(buf *out, frame kind);
void frame_end(buf *out);

#endif
