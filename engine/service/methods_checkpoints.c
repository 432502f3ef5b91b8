/* methods_checkpoints.c: checkpoints: made, listed, restored, deleted. */
#include "service/server.h"

#include <string.h>

static sessile_status create_checkpoint(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__CheckpointRequest *r = request;
    sessile_checkpoint_options options = {.name = sessile_text(r->name),
                                          .state = json_slice(r->state),
                                          .metadata = json_slice(r->metadata),
                                          .reason = *r->event ? SESSILE_CHECKPOINT_EVENT
                                                              : SESSILE_CHECKPOINT_MANUAL,
                                          .event = sessile_text(r->event),
                                          .keep = r->keep};
    sessile_session *session;
    sessile_id entry = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_checkpoint(session, &options, &entry, err);
    return status ? status : reply_written(c, entry, err);
}

/* ---------------------------------------------------------------------- lists */

static sessile_status read_filter(const Sessile__V1__CheckpointsRequest *r,
                                  sessile_checkpoint_reason *reason,
                                  sessile_checkpoint_filter *out, sessile_error *err)
{
    int i = SESSILE_CHECKPOINT_MANUAL;
    *out = (sessile_checkpoint_filter){.name = sessile_text(r->name),
                                       .named = r->named,
                                       .since_ms = r->since_ms,
                                       .until_ms = r->until_ms};
    if (!*r->reason)
        return SESSILE_OK;
    while (i <= SESSILE_CHECKPOINT_THRESHOLD &&
           strcmp(r->reason,
                  sessile_checkpoint_reason_name((sessile_checkpoint_reason)i)) != 0)
        i++;
    if (i > SESSILE_CHECKPOINT_THRESHOLD)
        return fail(err, SESSILE_INVALID,
                    "CheckpointsRequest.reason is manual, periodic, event or threshold");
    *reason = (sessile_checkpoint_reason)i;
    out->reason = reason;
    return SESSILE_OK;
}

static void fill_checkpoint(call *c, Sessile__V1__Checkpoint *out,
                            const sessile_checkpoint_row *row)
{
    out->entry = row->entry;
    out->head = call_entry(c, row->head);
    out->time_ms = row->time_ms;
    out->reason = call_string(c, sessile_checkpoint_reason_name(row->reason));
    out->messages = row->messages;
    out->tokens = row->tokens;
    out->state_bytes = row->state_bytes;
    out->sound = row->sound;
    out->name = call_text(c, row->name);
    out->version = call_text(c, row->version);
    out->event = call_text(c, row->event);
    out->metadata = call_json(c, row->metadata);
}

static sessile_status list_checkpoints(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__CheckpointsRequest *r = request;
    Sessile__V1__Checkpoints *out = call_make(c, &sessile__v1__checkpoints__descriptor);
    sessile_checkpoint_filter filter;
    sessile_checkpoint_reason reason;
    sessile_session *session;
    sessile_checkpoint_row *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = read_filter(r, &reason, &filter, err);
    if (!status)
        status = sessile_checkpoints(session, &filter, &rows, &count, err);
    if (status)
        return status;
    if (out) {
        out->checkpoints = call_rows(c, count, &sessile__v1__checkpoint__descriptor);
        for (size_t i = 0; out->checkpoints && i < count; i++)
            fill_checkpoint(c, out->checkpoints[i], &rows[i]);
        out->n_checkpoints = out->checkpoints ? count : 0;
    }
    sessile_free(rows);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

/* ---------------------------------------------------------------------- one of them */

static sessile_status restore_checkpoint(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RestoreRequest *r = request;
    Sessile__V1__Restored out = SESSILE__V1__RESTORED__INIT;
    sessile_session *session;
    sessile_restored *restored;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_restore(session, r->checkpoint, r->force, &restored, err);
    if (status)
        return status;
    out.checkpoint = restored->checkpoint;
    out.head = restored->head;
    out.state = call_json(c, restored->state);
    out.warnings = call_text(c, restored->warnings);
    sessile_free(restored);
    return call_reply(c, &out.base, err);
}

static sessile_status delete_checkpoint(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__EntryRequest *r = request;
    sessile_session *session;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_checkpoint_delete(session, r->entry, err);
    return status ? status : reply_empty(c, err);
}

const method methods_checkpoints[] = {
    METHOD("CreateCheckpoint", create_checkpoint, checkpoint_request, 0),
    METHOD("ListCheckpoints", list_checkpoints, checkpoints_request, METHOD_READS),
    METHOD("RestoreCheckpoint", restore_checkpoint, restore_request, 0),
    METHOD("DeleteCheckpoint", delete_checkpoint, entry_request, 0),
    {NULL, NULL, 0, NULL},
};
