/* serve.h: the worker's side of the protocol in policy/worker.h. */
#ifndef WORKER_SERVE_H
#define WORKER_SERVE_H

/* Reads frames from fd and answers them until fd is closed. 0; 1: a malformed frame. */
int serve(int fd);

#endif
