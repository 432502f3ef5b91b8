/*
 * fork.h: sessions made of other sessions: forks, whole copies in other stores, and
 * children.
 */
#ifndef OPERATIONS_FORK_H
#define OPERATIONS_FORK_H

#include "session/handle.h"

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

/* Names, window, reserve and timeout that are not given are the session's own. */
sessile_status session_choose_names(session_names *names, sessile_store *to,
                                    sessile_session *s, sessile_session_options *options,
                                    int id_may_be_empty, sessile_error *err);

/* ---- children (operations/child.c) */

/* As session_fork(), for sessile_child(). */
sessile_status session_child(sessile_session *parent, int with_context,
                             sessile_session_options *options, char new_id[UUID_SIZE],
                             sessile_error *err);
/* As sessile.h says of the functions of these names. */
sessile_status session_child_merged(sessile_session *parent, const sessile_session *child,
                                    sessile_slice message, sessile_id *out,
                                    sessile_error *err);
sessile_status session_child_discarded(sessile_session *parent,
                                       const sessile_session *child, sessile_slice reason,
                                       sessile_error *err);
sessile_status session_subsessions(sessile_session *s, sessile_subsession **out,
                                   size_t *count, sessile_error *err);

#endif
