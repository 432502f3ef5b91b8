/* nodes.h: the servers that share a store. */
#ifndef ADMIN_NODES_H
#define ADMIN_NODES_H

#include "session/store_handle.h"

/* See sessile_nodes(). */
sessile_status nodes_list(store_core *st, sessile_store_node **out, size_t *count,
                          sessile_error *err);

#endif
