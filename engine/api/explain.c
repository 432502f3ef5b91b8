/* explain.c: the public functions that explain a context and take compactions back. */
#include "api/api.h"

#include "history/history.h"

sessile_status sessile_compactions(sessile_session *session, sessile_compaction **out,
                                   size_t *count, sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!session)
        return api_missing(err, __func__, "session");
    return session_compactions(session, out, count, err);
}

sessile_status sessile_why(sessile_session *session, sessile_key key,
                           sessile_explanation **out, sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!session)
        return api_missing(err, __func__, "session");
    return session_why(session, key, out, err);
}

sessile_status sessile_uncompact(sessile_session *session, sessile_id which, int dry_run,
                                 sessile_uncompacted **out, sessile_error *err)
{
    sessile_uncompacted *unwanted = NULL;
    error_clear(err);
    if (out)
        *out = NULL;
    if (!session)
        return api_missing(err, __func__, "session");
    sessile_status status =
        session_uncompact(session, which, dry_run, out ? out : &unwanted, err);
    sessile_free(unwanted);
    return status;
}
