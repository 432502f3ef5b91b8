/* search.c: the public functions that search a store. */
#include "api/api.h"

#include <string.h>

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
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!store || !options)
        return api_missing(err, __func__, "store or options");
    if (api_bad(options->text))
        return api_missing(err, __func__, "the data of options.text");
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
    if (!out)
        return api_missing(err, __func__, "out");
    memset(out, 0, sizeof *out);
    if (!search)
        return api_missing(err, __func__, "search");
    return search_next(search, out, err);
}

void sessile_search_close(sessile_search *search)
{
    search_close(search);
}
