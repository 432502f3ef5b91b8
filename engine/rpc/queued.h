/*
 * queued.h: what waits in memory for clients that read slowly, over all loops of a
 * server.
 *
 * Each call has a limit at which its service stops (bytes.unsent), but a reply in one
 * piece is as large as it is, and there are many calls. So the bytes of all replies that
 * are queued are counted. From three quarters of the limit on, the loop that holds most
 * drops replies of the connection that holds most. At the limit a large reply is refused.
 */
#ifndef RPC_QUEUED_H
#define RPC_QUEUED_H

#include "rpc/loop.h"

enum { QUEUED_SMALL = 16 * 1024 };  /* a reply up to this size is never refused */
extern const char queued_refusal[]; /* the sentence */

/* Any thread. box: of the call's loop, which may count nothing. 1: so much more is
 * counted; 0: it may not wait. */
int queued_take(mailbox *box, size_t size);
void queued_remove(mailbox *box, size_t size);
/* 1: so much more may wait, as it is now. */
int queued_has_room(const mailbox *box, size_t size);
/* Has replies dropped, if too many wait. No lock of a mailbox is held. */
void queued_press(const mailbox *box);
/* The loop is being closed. */
void queued_leave(rpc_loop *loop);
/* One fewer refers to it. NULL is ignored. */
void queued_release(rpc_queued *q);

#endif
