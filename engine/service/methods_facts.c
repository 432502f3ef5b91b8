/*
 * methods_facts.c: facts about a session: labels, settings, its title and life, and
 * whether it is suspended.
 *
 * A call that writes a fact answers with what is so now. It does not tell the id of the
 * fact, since a label that was there already is not written again.
 */
#include "service/server.h"

/* ---------------------------------------------------------------------- labels */

static sessile_status set_label(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__LabelRequest *r = request;
    sessile_session *session;
    sessile_slice name = sessile_text(r->name);
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = r->remove ? sessile_unlabel(session, r->entry, name, err)
                           : sessile_label(session, r->entry, name, err);
    return status ? status : reply_empty(c, err);
}

static sessile_status list_labels(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    Sessile__V1__Labels *out = call_make(c, &sessile__v1__labels__descriptor);
    sessile_session *session;
    sessile_label_row *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_labels(session, &rows, &count, err);
    if (status)
        return status;
    if (out)
        out->labels = call_rows(c, count, &sessile__v1__label__descriptor);
    for (size_t i = 0; out && out->labels && i < count; i++) {
        out->labels[i]->entry = rows[i].entry;
        out->labels[i]->name = call_text(c, rows[i].name);
        out->labels[i]->fact = rows[i].fact;
        out->labels[i]->time_ms = rows[i].time_ms;
        out->n_labels = i + 1;
    }
    sessile_free(rows);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

/* ---------------------------------------------------------------------- objects */

typedef sessile_status object_setter(sessile_session *session, sessile_slice object,
                                     sessile_error *err);
typedef sessile_status object_getter(sessile_session *session, char **out, size_t *size,
                                     sessile_error *err);

/* Changes an object if the request has one, and replies with the whole of it. */
static sessile_status change_object(call *c, const Sessile__V1__ObjectRequest *r,
                                    object_setter *set, object_getter *get,
                                    sessile_error *err)
{
    Sessile__V1__Object out = SESSILE__V1__OBJECT__INIT;
    sessile_session *session;
    char *text;
    size_t size;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status && r->object)
        status = set(session, json_slice(r->object), err);
    if (!status)
        status = get(session, &text, &size, err);
    if (status)
        return status;
    out.object = call_json(c, (sessile_slice){text, size});
    sessile_free(text);
    return call_reply(c, &out.base, err);
}

static sessile_status set_settings(call *c, const void *request, sessile_error *err)
{
    return change_object(c, request, sessile_set_settings, sessile_settings, err);
}

static sessile_status set_metadata(call *c, const void *request, sessile_error *err)
{
    return change_object(c, request, sessile_set_metadata, sessile_metadata, err);
}

/* --------------------------------------------------------------------- title and life */

static sessile_status set_title(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__TitleRequest *r = request;
    sessile_session *session;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_set_title(session, sessile_text(r->title), err);
    return status ? status : reply_empty(c, err);
}

static sessile_status set_life(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__LifeRequest *r = request;
    sessile_session *session;
    sessile_status status = call_session(c, r->session, &session, err);
    if (status)
        return status;
    switch (r->change_case) {
    case SESSILE__V1__LIFE_REQUEST__CHANGE_TTL_MS:
        status = sessile_set_ttl(session, r->ttl_ms, err);
        break;
    case SESSILE__V1__LIFE_REQUEST__CHANGE_ARCHIVED:
        status = sessile_set_archived(session, r->archived, err);
        break;
    default:
        status = fail(err, SESSILE_INVALID,
                      "LifeRequest changes nothing: give ttl_ms or archived");
    }
    return status ? status : reply_info(c, session, err);
}

/* ---------------------------------------------------------------------- suspensions */

static sessile_status suspend(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SuspendRequest *r = request;
    sessile_session *session;
    sessile_id entry = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_suspend(session, sessile_text(r->reason), json_slice(r->state),
                                 &entry, err);
    return status ? status : reply_written(c, entry, err);
}

static sessile_status get_suspension(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    Sessile__V1__Suspension out = SESSILE__V1__SUSPENSION__INIT;
    sessile_session *session;
    sessile_suspension *in_force;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_suspended(session, &in_force, err);
    if (status)
        return status;
    if (in_force) {
        out.entry = call_entry(c, in_force->entry);
        out.time_ms = in_force->time_ms;
        out.reason = call_text(c, in_force->reason);
        out.state = call_json(c, in_force->state);
    }
    sessile_free(in_force);
    return call_reply(c, &out.base, err);
}

static sessile_status resume_with(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ResumeWithRequest *r = request;
    Sessile__V1__Appended out = SESSILE__V1__APPENDED__INIT;
    sessile_slice *messages = call_slices(c, r->messages, r->n_messages);
    sessile_session *session;
    sessile_id first = SESSILE_NO_ID;
    sessile_status status =
        messages ? call_session(c, r->session, &session, err) : fail_nomem(err);
    if (!status)
        status = sessile_resume_with(session, messages, r->n_messages, &first, err);
    if (status)
        return status;
    if (r->n_messages > 0)
        out.first = call_entry(c, first);
    return call_reply(c, &out.base, err);
}

static sessile_status cancel(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__CancelRequest *r = request;
    sessile_session *session;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_cancel(session, sessile_text(r->reason), err);
    return status ? status : reply_empty(c, err);
}

const method methods_facts[] = {
    METHOD("SetLabel", set_label, label_request, 0),
    METHOD("ListLabels", list_labels, session_request, METHOD_READS),
    METHOD("SetSettings", set_settings, object_request, 0),
    METHOD("SetMetadata", set_metadata, object_request, 0),
    METHOD("SetTitle", set_title, title_request, 0),
    METHOD("SetLife", set_life, life_request, 0),
    METHOD("Suspend", suspend, suspend_request, 0),
    METHOD("GetSuspension", get_suspension, session_request, METHOD_READS),
    METHOD("ResumeWith", resume_with, resume_with_request, 0),
    METHOD("Cancel", cancel, cancel_request, 0),
    {NULL, NULL, 0, NULL},
};
