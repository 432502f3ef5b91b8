/*
 * tree.c: the tree of a session: paths, children, leaves, and the whole of it as tables.
 *
 * A text that is not an id gives the same error as an unknown id, with the nearest ids
 * that exist: callers pass what people typed.
 */
#include <stdint.h>
#include "binding.h"

/* ------------------------------------------------------------------ ids */

/* The id at index. Returns 0 if it is not one, and sets *failed to the results to return.
 */
static int read_id(lua_State *L, struct binding_session *session, int index,
                   sessile_id *out, int *failed)
{
    sessile_key key;
    if (!sessile_key_parse(binding_check_bytes(L, index), &key) && key.n == 0) {
        *out = key.entry;
        return 1;
    }
    *failed = binding_no_entry(L, session);
    return 0;
}

int binding_no_entry(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    sessile_id *ids;
    size_t count;
    /* The engine's own sentence for an entry that cannot be. */
    sessile_status status =
        sessile_children(session->handle, SESSILE_NO_ID, &ids, &count, &err);
    return !status ? 0 : binding_fail(L, &err);
}

typedef sessile_status (*ids_of)(sessile_session *, sessile_id, sessile_id **, size_t *,
                                 sessile_error *);

static int push_ids(lua_State *L, struct binding_session *session, sessile_id id,
                    ids_of function)
{
    struct binding_result got = binding_result(L);
    sessile_id *ids = NULL;
    got.status = function(session->handle, id, &ids, &got.count, &got.err);
    return binding_result_ids(L, &got, ids);
}

static int ids_at(lua_State *L, struct binding_session *session, ids_of function)
{
    sessile_id id;
    int failed;
    return read_id(L, session, 2, &id, &failed) ? push_ids(L, session, id, function)
                                                : failed;
}

/* session:path([id]) -> ids from the header to it, or to the head; nil, message, code */
int binding_session_path(lua_State *L, struct binding_session *session)
{
    return lua_isnoneornil(L, 2) ? push_ids(L, session, SESSILE_NO_ID, sessile_path)
                                 : ids_at(L, session, sessile_path);
}

/* session:children(id), siblings(id) -> ids; nil, message, code */
int binding_session_children(lua_State *L, struct binding_session *session)
{
    return ids_at(L, session, sessile_children);
}

int binding_session_siblings(lua_State *L, struct binding_session *session)
{
    return ids_at(L, session, sessile_siblings);
}

static sessile_status leaves_of(sessile_session *session, sessile_id id, sessile_id **out,
                                size_t *count, sessile_error *err)
{
    (void)id;
    return sessile_leaves(session, out, count, err);
}

/* session:leaves() -> ids; nil, message, code */
int binding_session_leaves(lua_State *L, struct binding_session *session)
{
    return push_ids(L, session, 0, leaves_of);
}

/* session:common_ancestor(a, b) -> id; nil, message, code */
int binding_session_common_ancestor(lua_State *L, struct binding_session *session)
{
    sessile_id a, b, found;
    sessile_error err;
    int failed;
    if (!read_id(L, session, 2, &a, &failed) || !read_id(L, session, 3, &b, &failed))
        return failed;
    return binding_done_id(
        L, sessile_common_ancestor(session->handle, a, b, &found, &err), &found, &err);
}

/* ------------------------------------------------------------------ the whole */

static void more_of_node(lua_State *L, const void *row)
{
    const sessile_node *node = row;
    binding_set_boolean(L, "starts_turn", node->starts_turn);
    binding_set_boolean(L, "is_path", node->is_path);
    binding_set_boolean(L, "on_path", node->on_path);
    binding_set_boolean(L, "is_head", node->is_head);
    binding_set_boolean(L, "in_context", node->in_context);
    lua_newtable(L);
    lua_setfield(L, -2, "children");
}

#define NODE(...) BINDING_FIELD(sessile_node, __VA_ARGS__)
static const struct binding_row node_row = BINDING_ROW(
    sessile_node, more_of_node, NODE("id", ID, id), NODE("parent", ID, parent),
    NODE("type", TEXT, type), NODE("role", ROLE, role), NODE("speaker", ROLE, speaker),
    NODE("tokens", COUNT, tokens), NODE("total_tokens", INTEGER, total_tokens),
    NODE("time", INTEGER, time_ms));

/* The list of nodes on top gets its lists of children. */
static void link_nodes(lua_State *L, const sessile_node *rows, size_t count)
{
    int list = lua_gettop(L);
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t child;
        lua_Integer n = 0;
        if (rows[i].first_child == SESSILE_NO_ID)
            continue;
        lua_rawgeti(L, list, (lua_Integer)(i + 1));
        lua_getfield(L, -1, "children");
        for (child = rows[i].first_child; child != SESSILE_NO_ID;
             child = rows[child].next_sibling) {
            lua_rawgeti(L, list, (lua_Integer)child + 1);
            lua_rawseti(L, -2, ++n);
        }
        lua_pop(L, 2);
    }
}

/* Pushes an array of the strings in the table at index, which anchors them. */
static const char **read_types(lua_State *L, int index, size_t *count)
{
    size_t n = lua_istable(L, index) ? (size_t)lua_rawlen(L, index) : 0, i;
    const char **types = lua_newuserdatauv(L, (n + 1) * sizeof *types, 0);
    for (i = 0; i < n; i++) {
        if (lua_rawgeti(L, index, (lua_Integer)(i + 1)) != LUA_TSTRING) {
            binding_misuse(L, "types: a list of strings expected, got a %s in it",
                           luaL_typename(L, -1));
        }
        types[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    *count = n;
    return types;
}

/* session:tree([types], [labelled]) -> the list of nodes, in the order of the log; nil,
 * message, code
 */
int binding_session_tree(lua_State *L, struct binding_session *session)
{
    sessile_tree_options options;
    sessile_node *rows = NULL;
    lua_settop(L, 3);
    sessile_tree_options_init(&options);
    options.labelled = lua_toboolean(L, 3);
    options.types = read_types(L, 2, &options.type_count);
    struct binding_result got = binding_result(L);
    got.status = sessile_tree(session->handle, &options, &rows, &got.count, &got.err);
    int failed = binding_result_failed(L, &got, rows);
    if (failed)
        return failed;
    binding_push_rows(L, &node_row, rows, got.count);
    link_nodes(L, rows, got.count);
    return binding_result_done(&got);
}
