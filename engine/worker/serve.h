/* serve.h: the worker's side of policy/worker.h. */
#ifndef WORKER_SERVE_H
#define WORKER_SERVE_H

/* Reads frames from fd and answers them until it ends. 0; 1: a frame was none. */
int serve(int fd);

#endif
