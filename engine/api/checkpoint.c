/* checkpoint.c: the public functions for checkpoints. */
#include "api/api.h"

#include <string.h>

#include "operations/checkpoint.h"

sessile_status sessile_checkpoint(sessile_session *session,
                                  const sessile_checkpoint_options *options,
                                  sessile_id *out, sessile_error *err)
{
    sessile_checkpoint_options none;
    sessile_id unwanted;

    error_clear(err);
    if (!out)
        out = &unwanted;
    *out = SESSILE_NO_ID;
    if (!session)
        return api_missing(err, __func__, "session");
    if (!options) {
        memset(&none, 0, sizeof none);
        options = &none;
    }
    if (api_bad(options->name) || api_bad(options->state) || api_bad(options->metadata) ||
        api_bad(options->event))
        return api_missing(err, __func__, "the data of a slice in options");
    if ((unsigned)options->reason > SESSILE_CHECKPOINT_THRESHOLD)
        return fail(err, SESSILE_INVALID, "no such reason of a checkpoint: %d",
                    (int)options->reason);
    return session_checkpoint(session, options, out, err);
}

sessile_status sessile_checkpoints(sessile_session *session,
                                   const sessile_checkpoint_filter *filter,
                                   sessile_checkpoint_row **out, size_t *count,
                                   sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!session)
        return api_missing(err, __func__, "session");
    if (filter && api_bad(filter->name))
        return api_missing(err, __func__, "filter->name.data");
    return session_checkpoints(session, filter, out, count, err);
}

sessile_status sessile_restore(sessile_session *session, sessile_id checkpoint, int force,
                               sessile_restored **out, sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!session)
        return api_missing(err, __func__, "session");
    return session_restore(session, checkpoint, force, out, err);
}

sessile_status sessile_checkpoint_delete(sessile_session *session, sessile_id checkpoint,
                                         sessile_error *err)
{
    error_clear(err);
    if (!session)
        return api_missing(err, __func__, "session");
    return session_withdraw_checkpoint(session, checkpoint, err);
}
