/* search.c: the public functions that search a store. */
#include "api/api.h"

#include "admin/search.h"

void sessile_search_options_init(sessile_search_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_search_open(sessile_search **out, sessile_store *store,
                                   const sessile_search_options *options,
                                   sessile_error *err)
{
    API_MAKE(out, store);
    API_NEED(options);
    API_TEXT(options->text);
    if (options->sessions) {
        sessile_status status = api_check_list(options->sessions, err);
        if (status)
            return status;
    }
    sessile_list_options all;
    const sessile_list_options *sessions = options->sessions;
    sessile_list_options_init(&all);
    if (!sessions)
        sessions = &all;
    GUARD_ENTER(search_open, store);
    GUARD_NAMES(sessile_list_options, sessions, guard_own_list);
    GUARD_COUNT;
    GUARD_MAKE(out, &core->alloc);
    GUARD_MADE(out,
               search_open(GUARD_INTO(out), core, GUARD_WHO, options, sessions, err));
}

sessile_status sessile_search_next(sessile_search *search, sessile_found *out,
                                   sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(search);
    GUARD_ENTER(search_next, search);
    return GUARD_LEAVE(search_next(core, out, err));
}

void sessile_search_close(sessile_search *search)
{
    if (!search)
        return;
    GUARD_CLOSE(search);
    search_close(core);
}
