/* check.c: the public functions that look after a store. */
#include "api/api.h"

#include <string.h>

#include "admin/check.h"

sessile_status sessile_check_open(sessile_check **out, sessile_store *store,
                                  const sessile_session_options *which, int salvage,
                                  sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!store)
        return api_missing(err, __func__, "store");
    if (which && (api_bad(which->id) || api_bad(which->agent) || api_bad(which->user)))
        return api_missing(err, __func__, "the data of a slice in which");
    return check_open(out, store, which, salvage, err);
}

sessile_status sessile_check_next(sessile_check *check, sessile_checked *out,
                                  sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    memset(out, 0, sizeof *out);
    if (!check)
        return api_missing(err, __func__, "check");
    return check_next(check, out, err);
}

void sessile_check_close(sessile_check *check)
{
    check_close(check);
}
