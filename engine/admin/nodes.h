/* nodes.h: the servers that share a store, and the standbys of its database. */
#ifndef ADMIN_NODES_H
#define ADMIN_NODES_H

#include "session/store_handle.h"

/* See sessile_nodes(). */
sessile_status nodes_list(store_core *st, sessile_store_node **out, size_t *count,
                          sessile_error *err);
/* See sessile_standbys(). */
sessile_status nodes_standbys(store_core *st, int *standbys, sessile_error *err);

#endif
