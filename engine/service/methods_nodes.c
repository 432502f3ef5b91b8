/* methods_nodes.c: the servers that share the store, as the store has them. */
#include "service/nodes.h"

static void fill(call *c, Sessile__V1__NodeInfo *out, const sessile_store_node *from)
{
    out->name = call_string(c, from->name);
    out->address = call_string(c, from->address);
    out->version = call_string(c, from->version);
    out->started_ms = from->started_ms;
    out->left_ms = from->left_ms;
    out->living = from->left_ms > 0;
    out->sessions = from->sessions;
    out->calls = from->calls;
}

static sessile_status list_nodes(call *c, const void *request, sessile_error *err)
{
    Sessile__V1__NodeList *out = call_make(c, &sessile__v1__node_list__descriptor);
    sessile_store_node *rows;
    size_t count;
    (void)request;
    sessile_status status = sessile_nodes(c->view, &rows, &count, err);
    if (status)
        return status;
    if (out) {
        out->nodes = call_rows(c, count, &sessile__v1__node_info__descriptor);
        for (size_t i = 0; out->nodes && i < count; i++)
            fill(c, out->nodes[i], &rows[i]);
        out->n_nodes = out->nodes ? count : 0;
        out->here = call_string(c, c->server->nodes->own.name);
    }
    sessile_free(rows);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

const method methods_nodes[] = {
    METHOD("Nodes", list_nodes, empty, METHOD_READS | METHOD_ALL),
    {NULL, NULL, 0, NULL},
};
