/*
 * methods_tree.c: the tree of a session, and the sessions that come from it: forks and
 * children.
 */
#include "service/pieces.h"

/* The longest node in a reply has less. */
enum { NODE_BYTES = 100 };

/* ---------------------------------------------------------------------- the tree */

static void fill_node(call *c, Sessile__V1__Node *out, const sessile_node *from)
{
    out->id = from->id;
    out->parent = call_entry(c, from->parent);
    out->type = call_string(c, from->type);
    if (from->role != SESSILE_ROLE_NONE) {
        out->role = call_string(c, sessile_role_name((sessile_role)from->role));
        out->speaker = call_string(c, sessile_role_name((sessile_role)from->speaker));
    }
    out->tokens = from->tokens;
    out->total_tokens = from->total_tokens;
    out->time_ms = from->time_ms;
    out->starts_turn = from->starts_turn;
    out->is_path = from->is_path;
    out->on_path = from->on_path;
    out->is_head = from->is_head;
    out->labelled = from->labelled;
    out->in_context = from->in_context;
}

/* What a tree was asked for with. */
typedef struct reading {
    sessile_tree_options options;
    sessile_id length; /* of the log when it was read; 0: not yet */
} reading;

static size_t node_bytes(const void *row)
{
    (void)row;
    return NODE_BYTES;
}

static const ProtobufCMessage *node_piece(call *c, void *what, const void *rows, size_t n,
                                          int last)
{
    const sessile_node *from = rows;
    Sessile__V1__Nodes *out = call_make(c, &sessile__v1__nodes__descriptor);
    (void)what, (void)last;
    if (!out)
        return NULL;
    out->nodes = call_rows(c, n, &sessile__v1__node__descriptor);
    for (size_t i = 0; out->nodes && i < n; i++)
        fill_node(c, out->nodes[i], &from[i]);
    out->n_nodes = out->nodes ? n : 0;
    return &out->base;
}

/* Each entry that was added may have changed nodes that were there: the head, labels, the
 * context. */
static sessile_status read_tree(call *c, void *what, void **out, size_t *count,
                                sessile_error *err)
{
    reading *r = what;
    sessile_node *rows = NULL;
    sessile_status status = sessile_tree(c->session, &r->options, &rows, count, err);
    const sessile_id length = sessile_session_length(c->session);
    if (status)
        return status;
    if (r->length && r->length != length) {
        sessile_free(rows);
        return fail(err, SESSILE_CONFLICT,
                    "the session has changed while its tree was read: read it again");
    }
    r->length = length;
    *out = rows;
    return SESSILE_OK;
}

static sessile_status get_tree(call *c, const void *request, sessile_error *err)
{
    static const list_kind list = {sizeof(sessile_node), read_tree, node_bytes,
                                   node_piece};
    const Sessile__V1__TreeRequest *r = request;
    sessile_session *session;
    reading *all = call_new(c, sizeof *all);
    sessile_status status =
        all ? call_session(c, r->session, &session, err) : fail_nomem(err);
    if (status)
        return status;
    sessile_tree_options_init(&all->options);
    all->options.types = (const char *const *)r->types;
    all->options.type_count = r->n_types;
    all->options.labelled = r->labelled;
    return reply_list(c, &list, all, err);
}

/* ----------------------------------------------------------------- forks and children */

/* Names of which what is left out is as of a session: data NULL. */
static sessile_status read_names(call *c, const Sessile__V1__Session *names,
                                 sessile_session_options *out, sessile_error *err)
{
    Sessile__V1__Session none = SESSILE__V1__SESSION__INIT;
    sessile_status status = call_names(c, names ? names : &none, out, err);
    if (out->agent.size == 0)
        out->agent = (sessile_slice){NULL, 0};
    if (!names_user(names))
        out->user = (sessile_slice){NULL, 0};
    return status;
}

/* What is made of a session. */
static sessile_status read_target(call *c, const Sessile__V1__Session *names,
                                  const sessile_session *from, const char *title,
                                  const Sessile__V1__Json *metadata,
                                  sessile_session_options *out, sessile_error *err)
{
    sessile_status status = read_names(c, names, out, err);
    if (*title)
        out->title = sessile_text(title);
    out->metadata = json_slice(metadata);
    if (!status)
        status = call_may_add(
            c, out->agent.data ? out->agent : sessile_session_agent(from), err);
    return status;
}

static sessile_status fork_session(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ForkRequest *r = request;
    sessile_session_options options;
    sessile_session *session, *made = NULL;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = read_target(c, r->to, session, r->title, r->metadata, &options, err);
    if (!status)
        status = sessile_fork(&made, session, entry_id(r->entry), &options, err);
    if (!status)
        status = reply_info(c, made, err);
    (void)sessile_session_close(made, NULL);
    return status;
}

static sessile_status create_child(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ChildRequest *r = request;
    sessile_session_options options;
    sessile_session *parent, *made = NULL;
    sessile_status status = call_session(c, r->session, &parent, err);
    if (!status)
        status = read_target(c, r->to, parent, r->title, r->metadata, &options, err);
    if (!status)
        status = sessile_child(&made, parent, r->with_context, &options, err);
    if (!status)
        status = reply_info(c, made, err);
    (void)sessile_session_close(made, NULL);
    return status;
}

/* The child of a request, through a handle of the caller's. */
static sessile_status open_child(call *c, const Sessile__V1__Session *names,
                                 const sessile_session *parent, sessile_session **out,
                                 sessile_error *err)
{
    sessile_session_options options;
    sessile_status status = read_names(c, names, &options, err);
    if (!status && options.id.size == 0)
        status = fail(err, SESSILE_INVALID, "which child? its id is empty");
    if (status)
        return status;
    if (!options.agent.data)
        options.agent = sessile_session_agent(parent);
    if (!options.user.data)
        options.user = sessile_session_user(parent);
    return sessile_resume(out, c->view, &options, err);
}

static sessile_status end_child(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ChildResultRequest *r = request;
    Sessile__V1__Appended out = SESSILE__V1__APPENDED__INIT;
    sessile_session *parent, *child = NULL;
    sessile_id merged = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &parent, err);
    if (!status && r->message)
        status = call_may_add(c, sessile_session_agent(parent), err);
    if (!status)
        status = open_child(c, r->child, parent, &child, err);
    if (!status && r->message)
        status =
            sessile_child_merged(parent, child, json_slice(r->message), &merged, err);
    else if (!status)
        status = sessile_child_discarded(parent, child, sessile_text(r->reason), err);
    (void)sessile_session_close(child, NULL);
    if (status)
        return status;
    out.first = call_entry(c, merged);
    return call_reply(c, &out.base, err);
}

static const char *const states[] = {"open", "merged", "discarded"};

static sessile_status list_children(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    Sessile__V1__Subsessions *out = call_make(c, &sessile__v1__subsessions__descriptor);
    sessile_session *session;
    sessile_subsession *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_subsessions(session, &rows, &count, err);
    if (status)
        return status;
    if (out)
        out->children = call_rows(c, count, &sessile__v1__subsession__descriptor);
    for (size_t i = 0; out && out->children && i < count; i++) {
        Sessile__V1__Subsession *row = out->children[i];
        row->session = call_session_names(c, rows[i].agent, rows[i].user, rows[i].id);
        row->entry = rows[i].entry;
        row->time_ms = rows[i].time_ms;
        row->state = call_string(c, states[rows[i].state]);
        row->merged = call_entry(c, rows[i].merged);
        out->n_children = i + 1;
    }
    sessile_free(rows);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

const method methods_tree[] = {
    METHOD("GetTree", get_tree, tree_request, METHOD_READS | METHOD_STREAMS),
    METHOD("Fork", fork_session, fork_request, 0),
    METHOD("CreateChild", create_child, child_request, 0),
    METHOD("EndChild", end_child, child_result_request, 0),
    METHOD("ListChildren", list_children, session_request, METHOD_READS),
    {NULL, NULL, 0, NULL},
};
