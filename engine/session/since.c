/*
 * since.c: how far back the last compaction of a path lies.
 *
 * A compaction entry in which no `compact` hook had a part has the reason "turn" and
 * names the last one before it ("last_compact"). So one entry is read, whatever was
 * written since. What was read last is remembered, because entries never change.
 */
#include "session/triggers.h"

#include <string.h>

#include "session/fold.h"

/* What a compaction entry says of itself, or of the one before it. */
static sessile_status read_last(session_core *s, sessile_id id, last_compaction *out,
                                sessile_error *err)
{
    sessile_status status = session_load_locked(s, id, err);
    buf text;
    entry e;

    if (status)
        return status;
    buf_init(&text, &s->store->alloc);
    status = session_read_entry(s, id, &text, &e, err);
    if (!status) {
        json reason = json_get(e.data, "reason");
        uint64_t room;
        sessile_id before;
        const char *name;
        size_t size;

        out->id = id;
        out->room = -1;
        out->overflow = json_is(reason, "overflow");
        if (!json_uint(json_get(e.data, "room"), &room) && room <= INT64_MAX)
            out->room = (int64_t)room;
        if (json_is(reason, "turn")) {
            out->id = 0;
            if (json_plain(json_get(e.data, "last_compact"), &name, &size) &&
                !id_parse(name, size, &before) && before < id)
                out->id = before;
        }
    }
    buf_deinit(&text);
    return status;
}

sessile_status session_last_compaction_locked(session_core *s, sessile_id at,
                                              last_compaction *out, sessile_error *err)
{
    sessile_id id = at ? s->tree.nodes[at].context_at : 0;
    sessile_status status = SESSILE_OK;

    *out = (last_compaction){.room = -1, .time_ms = s->header.created_ms};
    if (!id)
        return SESSILE_OK;
    if (id != s->compacting.last_at) {
        status = read_last(s, id, out, err);
        if (!status && out->id && out->id != id)
            status = read_last(s, out->id, out, err);
        if (status)
            return status;
        if (out->id) {
            out->messages = s->tree.nodes[out->id].messages;
            out->time_ms = s->tree.nodes[out->id].time_ms;
        }
        s->compacting.last = *out;
        s->compacting.last_at = id;
    }
    *out = s->compacting.last;
    return SESSILE_OK;
}

sessile_status session_turn_before_locked(session_core *s, sessile_id turn,
                                          sessile_id last, sessile_id *out,
                                          sessile_error *err)
{
    sessile_id id = s->tree.nodes[turn].parent;

    *out = 0;
    for (; id && id != SESSILE_NO_ID; id = s->tree.nodes[id].parent) {
        sessile_status status = session_load_locked(s, id, err);
        if (status)
            return status;
        const node *n = &s->tree.nodes[id];
        if (id == last || (n->type == ENTRY_TURN && !(n->marks & NODE_NO_POLICY)))
            break;
    }
    *out = id == SESSILE_NO_ID ? 0 : id;
    return SESSILE_OK;
}
