/*
 * methods_nodes.c: the servers that share the store, as the store has them; and what they
 * tell each other.
 */
#include "service/nodes.h"
#include "service/watch.h"

#include "api/inside.h"

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

/* Nothing in it is believed: it makes the server look. */
static sessile_status be_poked(call *c, const void *request, sessile_error *err)
{
    sessile_session_options names;
    sessile_status status = call_names(c, request, &names, err);
    if (!status)
        status = call_may_see(c, &names, err);
    if (status)
        return status;
    if (!names.agent.size)
        names.agent = sessile_text(api_default_agent(c->server->store));
    watch_look(c->server->watch, &names);
    return reply_empty(c, err);
}

const method methods_nodes[] = {
    METHOD("Poke", be_poked, session, METHOD_READS | METHOD_ALL),
    METHOD("Nodes", list_nodes, empty, METHOD_READS | METHOD_ALL),
    {NULL, NULL, 0, NULL},
};
