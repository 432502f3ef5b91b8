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
    return search_open(out, store, options, err);
}

sessile_status sessile_search_next(sessile_search *search, sessile_found *out,
                                   sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(search);
    return search_next(search, out, err);
}

void sessile_search_close(sessile_search *search)
{
    search_close(search);
}
