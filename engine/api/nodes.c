/* nodes.c: the public function of the servers that share a store. */
#include "api/api.h"

#include "admin/nodes.h"

sessile_status sessile_nodes(sessile_store *store, sessile_store_node **out,
                             size_t *count, sessile_error *err)
{
    API_LIST(out, count, store);
    GUARD_ENTER(nodes, store);
    return GUARD_LEAVE(nodes_list(core, out, count, err));
}
