/* caller.h: a client for tests: one request at a time, or several, on a loop that the
 * test turns. */
#ifndef UNIT_RPC_CALLER_H
#define UNIT_RPC_CALLER_H

#include "rpc/rpc.h"

typedef struct answer {
    rpc_request *request;
    size_t messages, bytes; /* that came */
    char *first;            /* message, with a NUL; NULL: none came */
    size_t first_size;
    int ended; /* how often */
    rpc_code code;
    char message[512];
    int unbegun, told;
    char trailer[256]; /* the value of the one that is asked for */
    const char *trailer_name;
    int drained;
    int cancel_at; /* after so many messages; 0: never */
    int pause_at;
} answer;

/* What came, for rpc_request_open(). */
extern const rpc_replies answer_replies;

/* Turns the loop until the request ended, or two minutes. Fails the test then. */
void answer_wait(rpc_loop *loop, answer *a);
/* Turns it for so many ms. */
void turn_for(rpc_loop *loop, int ms);
/* A whole unary call. timeout_ms 0: no deadline. */
void ask(rpc_loop *loop, rpc_channel *channel, answer *a, const char *method,
         const void *data, size_t size, int timeout_ms);
/* Begins one, and sends data if it is not NULL. */
void ask_begin(rpc_channel *channel, answer *a, const char *method,
               const rpc_header *headers, size_t n, const void *data, size_t size,
               int timeout_ms);
void answer_free(answer *a);
uint64_t clock_us(void);

#endif
