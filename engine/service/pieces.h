/*
 * pieces.h: replies that are lists, sent in pieces and no faster than their client reads.
 *
 *   worker  the rows are read, and sent until 1 MiB is on its way
 *   loop    most of that was taken: the call is given to a worker again
 *   worker  sends the rows that follow
 *
 * No worker waits for a client. A call that waits keeps its rows as long as all that wait
 * keep less than 64 MiB; else its rows are dropped, and read again when they are needed.
 * So clients that read nothing cost the server a bounded amount, and cannot keep others
 * from reading.
 */
#ifndef SERVICE_PIECES_H
#define SERVICE_PIECES_H

#include "service/server.h"

/* A kind of list. `what` is the method's own: what the list was asked for with. It lives
 * as long as the call. */
typedef struct list_kind {
    size_t row; /* the size of a row, in bytes */
    /* Reads the rows as one block for sessile_free(), through the call's session; on
     * failure there is none. It may be called again by another worker, and must give the
     * same rows: CONFLICT if it cannot. */
    sessile_status (*read)(call *c, void *what, void **rows, size_t *count,
                           sessile_error *err);
    /* The most bytes that a row takes in a reply. */
    size_t (*bytes)(const void *row);
    /* A message of n rows, in the call's arena, which is freed once it was sent. last:
     * no more rows follow. NULL: no memory. */
    const ProtobufCMessage *(*piece)(call *c, void *what, const void *rows, size_t n,
                                     int last);
} list_kind;

/* For a method: replies a list, in at least one piece. It is the method's last step, as
 * the call may go on after it returned (call_stay()). BUSY: the server ends. CANCELLED:
 * nobody waits. CONFLICT: the rows were dropped, and are not the same any more. */
sessile_status reply_list(call *c, const list_kind *kind, void *what, sessile_error *err);

/* ---------------------------------------------------------------------- as a whole */

/* kept_most: bytes of rows that calls may keep while they wait. */
sessile_status pieces_open(pieces **out, service *s, size_t kept_most,
                           sessile_error *err);
/* Ends the calls that wait, before the workers end. NULL is ignored. */
void pieces_end(pieces *p);
/* The loops have ended before. NULL is ignored. */
void pieces_close(pieces *p);

#endif
