/*
 * fork.h: sessions made of other sessions: forks, and whole copies in other stores.
 */
#ifndef SESSION_FORK_H
#define SESSION_FORK_H

#include "session/session.h"

/*
 * Makes the fork, as sessile_fork() says, and does not open it. options is filled with
 * the names, window and reserve that it has, so that it can be opened with them: what
 * they point to is the session's, or new_id. parent (or NULL): the header names it.
 */
sessile_status session_fork(sessile_session *s, sessile_id entry,
                            sessile_session_options *options, const sessile_link *parent,
                            char new_id[UUID_SIZE], sessile_error *err);
/* The same of sessile_put(). */
sessile_status session_put(sessile_store *to, sessile_session *s,
                           sessile_session_options *options, sessile_error *err);

#endif
