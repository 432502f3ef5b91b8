/* checkpoint.c: the public functions for checkpoints. */
#include "api/api.h"

#include "operations/checkpoint.h"

sessile_status sessile_checkpoint(sessile_session *session,
                                  const sessile_checkpoint_options *options,
                                  sessile_id *out, sessile_error *err)
{
    static const sessile_checkpoint_options none;
    error_clear(err);
    API_OPTIONAL(sessile_id, out, SESSILE_NO_ID);
    API_NEED(session);
    if (!options)
        options = &none;
    API_TEXT(options->name);
    API_TEXT(options->state);
    API_TEXT(options->metadata);
    API_TEXT(options->event);
    if ((unsigned)options->reason > SESSILE_CHECKPOINT_THRESHOLD)
        return fail(err, SESSILE_INVALID, "no such reason of a checkpoint: %d",
                    (int)options->reason);
    GUARD_ENTER(checkpoint, session);
    GUARD_ENTRY(out);
    GUARD_NUMBER("bytes", options->state.size);
    GUARD_COUNT;
    return GUARD_LEAVE(session_checkpoint(core, options, out, err));
}

sessile_status sessile_checkpoints(sessile_session *session,
                                   const sessile_checkpoint_filter *filter,
                                   sessile_checkpoint_row **out, size_t *count,
                                   sessile_error *err)
{
    API_LIST(out, count, session);
    if (filter)
        API_TEXT(filter->name);
    GUARD_ENTER(checkpoints, session);
    return GUARD_LEAVE(session_checkpoints(core, filter, out, count, err));
}

sessile_status sessile_restore(sessile_session *session, sessile_id checkpoint, int force,
                               sessile_restored **out, sessile_error *err)
{
    API_MAKE(out, session);
    GUARD_ENTER(restore, session);
    GUARD_ENTRY(&checkpoint);
    GUARD_GIVES(out, NULL);
    return GUARD_LEAVE(session_restore(core, checkpoint, force, out, err));
}

sessile_status sessile_checkpoint_delete(sessile_session *session, sessile_id checkpoint,
                                         sessile_error *err)
{
    API_USE(session);
    GUARD_ENTER(checkpoint_delete, session);
    GUARD_ENTRY(&checkpoint);
    return GUARD_LEAVE(session_withdraw_checkpoint(core, checkpoint, err));
}
