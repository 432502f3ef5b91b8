/* worker_process.h: a worker's process and the socket to it, for worker.c. */
#ifndef POLICY_WORKER_PROCESS_H
#define POLICY_WORKER_PROCESS_H

#include "policy/worker.h"

struct worker {
    allocator alloc;
    const os_table *os;
    int fd;                    /* -1: dead */
    uint32_t pid, owner;       /* its process, and the one that started it */
    sessile_policy *policy;    /* the chain it knows, a reference; or NULL */
    uint64_t cpu_limit_us;     /* of this pipeline */
    uint64_t cpu_us, cpu_from; /* spent before; where the child's clock stood */
    int overran;               /* it was killed because it took too long */
    uint64_t result;           /* largest frame from the worker */
    unsigned requests;         /* of this pipeline, to models and memories */
    buf out, in;
};

/* Sends the frame in w->out, begun with frame_begin(). POLICY: the worker was gone or
 * took too long, and its process has been ended. */
sessile_status worker_send(worker *w, sessile_error *err);
/* Receives the next frame: its kind in *kind, the rest in *body until the next frame. As
 * worker_send(). */
sessile_status worker_receive(worker *w, frame *kind, wire *body, sessile_error *err);
/* Ends the process and returns POLICY; why completes "the policy's process …". */
sessile_status worker_lost(worker *w, const char *why, sessile_error *err);

#endif
