/* annotate.c: the public functions for labels, settings, metadata and pauses. */
#include "api/api.h"

#include <string.h>

#include "operations/annotate.h"

static sessile_status label(sessile_session *session, sessile_id entry,
                            sessile_slice name, int off, const char *function,
                            sessile_error *err)
{
    error_clear(err);
    if (!session)
        return api_missing(err, function, "session");
    if (api_bad(name))
        return api_missing(err, function, "name.data");
    return session_label(session, entry, name, off, err);
}

sessile_status sessile_label(sessile_session *session, sessile_id entry,
                             sessile_slice name, sessile_error *err)
{
    return label(session, entry, name, 0, __func__, err);
}

sessile_status sessile_unlabel(sessile_session *session, sessile_id entry,
                               sessile_slice name, sessile_error *err)
{
    return label(session, entry, name, 1, __func__, err);
}

sessile_status sessile_labels(sessile_session *session, sessile_label_row **out,
                              size_t *count, sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!session)
        return api_missing(err, __func__, "session");
    return session_labels(session, out, count, err);
}

static sessile_status set_members(sessile_session *session, const char *kind,
                                  sessile_slice object, const char *function,
                                  sessile_error *err)
{
    error_clear(err);
    if (!session)
        return api_missing(err, function, "session");
    if (api_bad(object))
        return api_missing(err, function, "object.data");
    return session_state_members(session, kind, object, err);
}

static sessile_status get_members(sessile_session *session, const char *kind, char **out,
                                  size_t *size, const char *function, sessile_error *err)
{
    sessile_status status;
    buf text;

    error_clear(err);
    if (!out || !size)
        return api_missing(err, function, "out or size");
    *out = NULL;
    *size = 0;
    if (!session)
        return api_missing(err, function, "session");
    buf_init(&text, &session->store->alloc);
    status = session_members(session, kind, &text, err);
    if (!status) {
        *out = give_dup(&session->store->alloc, text.data, text.size);
        if (*out)
            *size = text.size;
        else
            status = fail_nomem(err);
    }
    buf_deinit(&text);
    return status;
}

sessile_status sessile_set_settings(sessile_session *session, sessile_slice object,
                                    sessile_error *err)
{
    return set_members(session, "settings", object, __func__, err);
}

sessile_status sessile_settings(sessile_session *session, char **out, size_t *size,
                                sessile_error *err)
{
    return get_members(session, "settings", out, size, __func__, err);
}

sessile_status sessile_set_metadata(sessile_session *session, sessile_slice object,
                                    sessile_error *err)
{
    return set_members(session, "metadata", object, __func__, err);
}

sessile_status sessile_metadata(sessile_session *session, char **out, size_t *size,
                                sessile_error *err)
{
    return get_members(session, "metadata", out, size, __func__, err);
}

sessile_status sessile_suspend(sessile_session *session, sessile_slice reason,
                               sessile_slice state, sessile_id *out, sessile_error *err)
{
    sessile_id unwanted;

    error_clear(err);
    if (!out)
        out = &unwanted;
    *out = SESSILE_NO_ID;
    if (!session)
        return api_missing(err, __func__, "session");
    if (api_bad(reason) || api_bad(state))
        return api_missing(err, __func__, "reason.data or state.data");
    return session_suspend(session, reason, state, out, err);
}

sessile_status sessile_suspended(sessile_session *session, sessile_suspension **out,
                                 sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!session)
        return api_missing(err, __func__, "session");
    return session_suspension(session, out, err);
}

sessile_status sessile_resume_with(sessile_session *session,
                                   const sessile_slice *messages, size_t count,
                                   sessile_id *first, sessile_error *err)
{
    sessile_id unwanted;

    error_clear(err);
    if (!first)
        first = &unwanted;
    *first = SESSILE_NO_ID;
    if (!session)
        return api_missing(err, __func__, "session");
    if (count && !messages)
        return api_missing(err, __func__, "messages");
    for (size_t i = 0; i < count; i++)
        if (api_bad(messages[i]))
            return api_missing(err, __func__, "a message's data");
    return session_resume_with(session, messages, count, first, err);
}

sessile_status sessile_cancel(sessile_session *session, sessile_slice reason,
                              sessile_error *err)
{
    error_clear(err);
    if (!session)
        return api_missing(err, __func__, "session");
    if (api_bad(reason))
        return api_missing(err, __func__, "reason.data");
    return session_cancel(session, reason, err);
}
