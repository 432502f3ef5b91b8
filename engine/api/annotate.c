/* annotate.c: the public functions for labels, settings, metadata and suspensions. */
#include "api/api.h"

#include "base/names.h"
#include "operations/annotate.h"
#include "screen/screen.h"

sessile_status sessile_label(sessile_session *session, sessile_id entry,
                             sessile_slice name, sessile_error *err)
{
    API_USE(session);
    API_TEXT(name);
    GUARD_ENTER(label, session);
    GUARD_TEXT("set", slice_of("label"));
    GUARD_ENTRY(&entry);
    return GUARD_LEAVE(session_label(core, entry, name, 0, err));
}

sessile_status sessile_unlabel(sessile_session *session, sessile_id entry,
                               sessile_slice name, sessile_error *err)
{
    API_USE(session);
    API_TEXT(name);
    GUARD_ENTER(unlabel, session);
    GUARD_TEXT("set", slice_of("label"));
    GUARD_ENTRY(&entry);
    if (screen_is_label(name)) {
        GUARD_REFUSE_IF(GUARD_WHO, guard_may_unflag(GUARD_WHO, err));
        if (name.size < SCREEN_LABEL) /* no rule is longer */
            GUARD_TEXT("flag", name);
    }
    return GUARD_LEAVE(session_label(core, entry, name, 1, err));
}

sessile_status sessile_labels(sessile_session *session, sessile_label_row **out,
                              size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(labels, session);
    return GUARD_LEAVE(session_labels(core, out, count, err));
}

sessile_status sessile_set_settings(sessile_session *session, sessile_slice object,
                                    sessile_error *err)
{
    API_USE(session);
    API_TEXT(object);
    GUARD_ENTER(set_settings, session);
    GUARD_TEXT("set", slice_of("settings"));
    GUARD_NUMBER("bytes", object.size);
    return GUARD_LEAVE(session_state_members(core, "settings", object, err));
}

sessile_status sessile_settings(sessile_session *session, char **out, size_t *size,
                                sessile_error *err)
{
    API_LIST(out, size, session);
    GUARD_ENTER(settings, session);
    return GUARD_LEAVE(session_members_text(core, "settings", out, size, err));
}

sessile_status sessile_set_metadata(sessile_session *session, sessile_slice object,
                                    sessile_error *err)
{
    API_USE(session);
    API_TEXT(object);
    GUARD_ENTER(set_metadata, session);
    GUARD_TEXT("set", slice_of("metadata"));
    GUARD_NUMBER("bytes", object.size);
    return GUARD_LEAVE(session_state_members(core, "metadata", object, err));
}

sessile_status sessile_metadata(sessile_session *session, char **out, size_t *size,
                                sessile_error *err)
{
    API_LIST(out, size, session);
    GUARD_ENTER(metadata, session);
    return GUARD_LEAVE(session_members_text(core, "metadata", out, size, err));
}

sessile_status sessile_suspend(sessile_session *session, sessile_slice reason,
                               sessile_slice state, sessile_id *out, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, out, SESSILE_NO_ID);
    API_NEED(session);
    API_TEXT(reason);
    API_TEXT(state);
    GUARD_ENTER(suspend, session);
    GUARD_ENTRY(out);
    GUARD_NUMBER("bytes", state.size);
    return GUARD_LEAVE(session_suspend(core, reason, state, out, err));
}

sessile_status sessile_suspended(sessile_session *session, sessile_suspension **out,
                                 sessile_error *err)
{
    API_MAKE(out, session);
    GUARD_ENTER(suspended, session);
    return GUARD_LEAVE(session_suspension(core, out, err));
}

sessile_status sessile_resume_with(sessile_session *session,
                                   const sessile_slice *messages, size_t count,
                                   sessile_id *first, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, first, SESSILE_NO_ID);
    API_NEED(session);
    API_TEXTS(messages, count);
    GUARD_ENTER(resume_with, session);
    GUARD_ENTRY(first);
    GUARD_NUMBER("messages", count);
    return GUARD_LEAVE(session_resume_with(core, messages, count, first, err));
}

sessile_status sessile_cancel(sessile_session *session, sessile_slice reason,
                              sessile_error *err)
{
    API_USE(session);
    API_TEXT(reason);
    GUARD_ENTER(cancel, session);
    return GUARD_LEAVE(session_cancel(core, reason, err));
}
