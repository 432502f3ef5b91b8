/* call.h: what the files of a call share: call.c, call_queue.c and call_session.c. */
#ifndef SERVICE_CALL_H
#define SERVICE_CALL_H

#include "service/server.h"

/* ---------------------------------------------------------------------- call.c */

/* On a worker: makes the view of who calls. DENIED: as who_calls(). */
sessile_status call_find_caller(call *c, sessile_error *err);
/* Closes it. */
void call_drop_view(call *c);

/* ---------------------------------------------------------------------- call_session.c
 */

/* What a request names: the agent, the user and the id; what is left out is empty. */
void call_parts(const Sessile__V1__Session *names, sessile_slice out[3]);
/* Gives back its session and its memories. 1: what the call is about was removed. */
int call_give_back(call *c, sessile_status status);

#endif
