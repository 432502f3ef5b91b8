/* state.c: the public functions for what a hook reads and edits. */
#include "api/api.h"

#include "proposal/state.h"

size_t sessile_state_count(const sessile_state *state)
{
    return state ? state_count(state) : 0;
}

int64_t sessile_state_tokens(const sessile_state *state)
{
    return state ? state_tokens(state) : 0;
}

int64_t sessile_state_window(const sessile_state *state)
{
    return state ? state_window(state) : 0;
}

int64_t sessile_state_reserve(const sessile_state *state)
{
    return state ? state_reserve(state) : 0;
}

uint32_t sessile_state_keep_min(const sessile_state *state)
{
    return state ? state_keep_min(state) : 0;
}

size_t sessile_state_previous(const sessile_state *state)
{
    return state ? state_previous(state) : 0;
}

sessile_status sessile_state_get(const sessile_state *state, size_t i,
                                 sessile_column *out, sessile_error *err)
{
    API_ZERO(out);
    API_NEED(state);
    return state_get(state, i, out, err);
}

sessile_status sessile_state_json(sessile_state *state, size_t i, sessile_slice *out,
                                  sessile_error *err)
{
    API_ZERO(out);
    API_NEED(state);
    return state_json(state, i, out, err);
}

sessile_status sessile_state_label(const sessile_state *state, size_t i, size_t n,
                                   sessile_slice *out, sessile_error *err)
{
    API_ZERO(out);
    API_NEED(state);
    return state_label(state, i, n, out, err);
}

sessile_status sessile_state_drop(sessile_state *state, size_t first, size_t last,
                                  sessile_error *err)
{
    API_NEED(state);
    return state_drop(state, first, last, err);
}

sessile_status sessile_state_replace(sessile_state *state, size_t i, sessile_slice fields,
                                     sessile_error *err)
{
    API_NEED(state);
    API_TEXT(fields);
    return state_replace(state, i, fields, err);
}

sessile_status sessile_state_insert(sessile_state *state, size_t i, sessile_slice message,
                                    int covers, size_t cover_first, size_t cover_last,
                                    sessile_error *err)
{
    API_NEED(state);
    API_TEXT(message);
    return state_insert(state, i, message, covers, cover_first, cover_last, err);
}

sessile_status sessile_state_keep_last(sessile_state *state, int64_t n, sessile_unit unit,
                                       sessile_error *err)
{
    API_NEED(state);
    return state_keep_last(state, n, unit, err);
}

size_t sessile_state_find_cut(const sessile_state *state, int64_t tokens)
{
    return state ? state_find_cut(state, tokens) : 0;
}

size_t sessile_state_pairs(const sessile_state *state, size_t i, size_t *out, size_t cap)
{
    return state ? state_pairs(state, i, out, out ? cap : 0) : 0;
}

sessile_status sessile_state_rebuild(sessile_state *state,
                                     const sessile_state_item *items, size_t count,
                                     sessile_error *err)
{
    API_NEED(state);
    API_NEED_IF(count, items);
    return state_rebuild(state, items, count, err);
}

sessile_slice sessile_state_vars(const sessile_state *state)
{
    return state ? state_vars_text(state) : (sessile_slice){NULL, 0};
}

sessile_status sessile_state_set_vars(sessile_state *state, sessile_slice json,
                                      sessile_error *err)
{
    API_NEED(state);
    API_TEXT(json);
    return state_set_vars(state, json, err);
}
