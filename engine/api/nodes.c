/* nodes.c: the public functions of the servers that share a store, and of its standbys.
 */
#include "api/api.h"

#include "admin/nodes.h"

sessile_status sessile_nodes(sessile_store *store, sessile_store_node **out,
                             size_t *count, sessile_error *err)
{
    API_LIST(out, count, store);
    GUARD_ENTER(nodes, store);
    return GUARD_LEAVE(nodes_list(core, out, count, err));
}

sessile_status sessile_standbys(sessile_store *store, int *standbys, sessile_error *err)
{
    error_clear(err);
    API_OUT(standbys, -1);
    API_NEED(store);
    GUARD_ENTER(standbys, store);
    return GUARD_LEAVE(nodes_standbys(core, standbys, err));
}
