/* tree.c: the public functions that ask the tree of a session. */
#include "api/api.h"

#include "session/handle.h"

typedef sessile_status (*ids_of)(sessile_session *s, sessile_id id, sessile_id **out,
                                 size_t *count, sessile_error *err);

static sessile_status give_ids(sessile_session *session, sessile_id id, ids_of function,
                               sessile_id **out, size_t *count, const char *name,
                               sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, name, out ? "count" : "out");
    *out = NULL;
    *count = 0;
    sessile_status status = api_read_begin(session, out, name, err);
    if (status)
        return status;
    status = function(session, id, out, count, err);
    session_unlock(session);
    return status;
}

static sessile_status path_of(sessile_session *s, sessile_id id, sessile_id **out,
                              size_t *count, sessile_error *err)
{
    return session_ancestry_locked(s, id == SESSILE_NO_ID ? s->tree.head : id, out, count,
                                   err);
}

static sessile_status leaves_of(sessile_session *s, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    (void)id;
    return session_leaves_locked(s, out, count, err);
}

sessile_status sessile_path(sessile_session *session, sessile_id id, sessile_id **out,
                            size_t *count, sessile_error *err)
{
    return give_ids(session, id, path_of, out, count, __func__, err);
}

sessile_status sessile_children(sessile_session *session, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    return give_ids(session, id, session_children_locked, out, count, __func__, err);
}

sessile_status sessile_siblings(sessile_session *session, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    return give_ids(session, id, session_siblings_locked, out, count, __func__, err);
}

sessile_status sessile_leaves(sessile_session *session, sessile_id **out, size_t *count,
                              sessile_error *err)
{
    return give_ids(session, 0, leaves_of, out, count, __func__, err);
}

sessile_status sessile_common_ancestor(sessile_session *session, sessile_id a,
                                       sessile_id b, sessile_id *out, sessile_error *err)
{
    if (out)
        *out = SESSILE_NO_ID;
    sessile_status status = api_read_begin(session, out, __func__, err);
    if (status)
        return status;
    status = session_common_ancestor_locked(session, a, b, out, err);
    session_unlock(session);
    return status;
}

void sessile_tree_options_init(sessile_tree_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_tree(sessile_session *session, const sessile_tree_options *options,
                            sessile_node **out, size_t *count, sessile_error *err)
{
    error_clear(err);
    API_OUT(out, NULL);
    API_OUT(count, 0);
    API_OPTIONS(sessile_tree_options, options);
    API_NEED_IF(options->type_count, options->types);
    for (size_t i = 0; i < options->type_count; i++)
        API_REFUSE_IF(!options->types[i], "a type");
    sessile_status status = api_read_begin(session, out, __func__, err);
    if (status)
        return status;
    status = session_tree_locked(session, options, out, count, err);
    session_unlock(session);
    return status;
}
