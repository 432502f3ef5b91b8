/* tree.c: the public functions that ask the tree of a session. */
#include "api/api.h"

#include "session/handle.h"

typedef sessile_status (*ids_of)(session_core *s, sessile_id id, sessile_id **out,
                                 size_t *count, sessile_error *err);

static sessile_status give_ids(session_core *s, sessile_id id, ids_of function,
                               sessile_id **out, size_t *count, sessile_error *err)
{
    sessile_status status = api_read_begin(s, err);
    if (status)
        return status;
    status = function(s, id, out, count, err);
    session_unlock(s);
    return status;
}

static sessile_status path_of(session_core *s, sessile_id id, sessile_id **out,
                              size_t *count, sessile_error *err)
{
    return session_ancestry_locked(s, id == SESSILE_NO_ID ? s->tree.head : id, out, count,
                                   err);
}

static sessile_status leaves_of(session_core *s, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    (void)id;
    return session_leaves_locked(s, out, count, err);
}

sessile_status sessile_path(sessile_session *session, sessile_id id, sessile_id **out,
                            size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(path, session);
    return GUARD_LEAVE(give_ids(core, id, path_of, out, count, err));
}

sessile_status sessile_children(sessile_session *session, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(children, session);
    return GUARD_LEAVE(give_ids(core, id, session_children_locked, out, count, err));
}

sessile_status sessile_siblings(sessile_session *session, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(siblings, session);
    return GUARD_LEAVE(give_ids(core, id, session_siblings_locked, out, count, err));
}

sessile_status sessile_leaves(sessile_session *session, sessile_id **out, size_t *count,
                              sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(leaves, session);
    return GUARD_LEAVE(give_ids(core, 0, leaves_of, out, count, err));
}

sessile_status sessile_common_ancestor(sessile_session *session, sessile_id a,
                                       sessile_id b, sessile_id *out, sessile_error *err)
{
    error_clear(err);
    API_OUT(out, SESSILE_NO_ID);
    API_NEED(session);
    GUARD_ENTER(common_ancestor, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    status = session_common_ancestor_locked(core, a, b, out, err);
    session_unlock(core);
    return GUARD_LEAVE(status);
}

void sessile_tree_options_init(sessile_tree_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_tree(sessile_session *session, const sessile_tree_options *options,
                            sessile_node **out, size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    API_OPTIONS(sessile_tree_options, options);
    API_NEED_IF(options->type_count, options->types);
    for (size_t i = 0; i < options->type_count; i++)
        API_REFUSE_IF(!options->types[i], "a type");
    GUARD_ENTER(tree, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    status = session_tree_locked(core, options, out, count, err);
    session_unlock(core);
    return GUARD_LEAVE(status);
}
