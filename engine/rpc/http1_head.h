/* http1_head.h: the head of an HTTP/1.1 request, read strictly. It knows no connection.
 */
#ifndef RPC_HTTP1_HEAD_H
#define RPC_HTTP1_HEAD_H

#include <stddef.h>
#include <stdint.h>

typedef struct http1_head {
    size_t body; /* bytes that follow the head */
    int close;   /* the client wants no other request on this connection */
    int expects; /* it waits for 100 Continue before it sends the body */
} http1_head;

/* Bytes of the head that begins data, with its empty line; 0: it is not whole yet. */
size_t http1_head_size(const char *data, size_t size);

/* Reads a head of that size. Calls visit for ":method", ":path" and each header, with a
 * name that it wrote in lower case into data; visit returns 0. Returns 0; else the status
 * to refuse the request with, and *why, a sentence. After a refusal nothing that follows
 * on the connection may be read as a request. */
int http1_head_read(http1_head *head, char *data, size_t size, size_t body_limit,
                    int (*visit)(void *arg, const char *name, size_t name_size,
                                 const char *value, size_t value_size),
                    void *arg, const char **why);

/* "Not Found" for 404. */
const char *http1_reason(int status);

#endif
