/* explain.c: the public functions that explain a context and take compactions back. */
#include "api/api.h"

#include "history/history.h"

sessile_status sessile_compactions(sessile_session *session, sessile_compaction **out,
                                   size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(compactions, session);
    return GUARD_LEAVE(session_compactions(core, out, count, err));
}

sessile_status sessile_why(sessile_session *session, sessile_key key,
                           sessile_explanation **out, sessile_error *err)
{
    API_MAKE(out, session);
    GUARD_ENTER(why, session);
    return GUARD_LEAVE(session_why(core, key, out, err));
}

sessile_status sessile_uncompact(sessile_session *session, sessile_id which, int dry_run,
                                 sessile_uncompacted **out, sessile_error *err)
{
    sessile_uncompacted *unwanted = NULL;
    error_clear(err);
    if (out)
        *out = NULL;
    API_NEED(session);
    GUARD_ENTER(uncompact, session);
    GUARD_ENTRY(&which);
    GUARD_NUMBER("dry_run", dry_run != 0);
    GUARD_GIVES(out ? out : &unwanted, NULL);
    sessile_status status =
        session_uncompact(core, which, dry_run, out ? out : &unwanted, err);
    sessile_free(unwanted);
    unwanted = NULL;
    return GUARD_LEAVE(status);
}
