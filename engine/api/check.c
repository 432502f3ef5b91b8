/* check.c: the public functions that look after a store. */
#include "api/api.h"

#include "admin/check.h"

sessile_status sessile_check_open(sessile_check **out, sessile_store *store,
                                  const sessile_session_options *which, int salvage,
                                  sessile_error *err)
{
    API_MAKE(out, store);
    sessile_status status = which ? api_check_session(which, __func__, err) : SESSILE_OK;
    if (status)
        return status;
    GUARD_ENTER(check_open, store);
    if (salvage)
        GUARD_NUMBER("salvage", 1);
    GUARD_MAKE(out, &core->alloc);
    GUARD_MADE(out, check_open(GUARD_INTO(out), core, which, salvage, err));
}

sessile_status sessile_check_next(sessile_check *check, sessile_checked *out,
                                  sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(check);
    GUARD_ENTER(check_next, check);
    return GUARD_LEAVE(check_next(core, out, err));
}

void sessile_check_close(sessile_check *check)
{
    if (!check)
        return;
    GUARD_CLOSE(check);
    check_close(core);
}
