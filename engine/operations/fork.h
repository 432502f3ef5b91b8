/*
 * fork.h: sessions made from other sessions: forks, whole copies in other stores, and
 * children.
 */
#ifndef OPERATIONS_FORK_H
#define OPERATIONS_FORK_H

#include "guard/principal.h"
#include "session/handle.h"

/*
 * sessile_fork() without opening the fork. Fills options with the fork's names and with
 * what it inherits from s, so that the fork can be opened with them. They point into s or
 * to new_id. parent (or NULL): the session that the header names as the parent.
 */
sessile_status session_fork(session_core *s, sessile_id entry,
                            sessile_session_options *options, const sessile_link *parent,
                            char new_id[UUID_SIZE], sessile_error *err);
/* sessile_put() without opening the copy. */
sessile_status session_put(store_core *to, session_core *s,
                           sessile_session_options *options, sessile_error *err);

/* Fills in what options leave out, from the session: agent, user and configuration. */
sessile_status session_choose_names(session_names *names, store_core *to, session_core *s,
                                    sessile_session_options *options, int id_may_be_empty,
                                    sessile_error *err);

/* ---- children (operations/child.c) */

/* As session_fork(), for sessile_child(). */
sessile_status session_child(session_core *parent, int with_context,
                             sessile_session_options *options, char new_id[UUID_SIZE],
                             sessile_error *err);
/* The public functions of these names. */
sessile_status session_child_merged(session_core *parent, const session_core *child,
                                    sessile_slice message, sessile_id *out,
                                    sessile_error *err);
sessile_status session_child_discarded(session_core *parent, const session_core *child,
                                       sessile_slice reason, sessile_error *err);
/* who: sees the rows; those of children beyond its scope have no names. NULL: all have.
 */
sessile_status session_subsessions(session_core *s, const principal *who,
                                   sessile_subsession **out, size_t *count,
                                   sessile_error *err);

#endif
