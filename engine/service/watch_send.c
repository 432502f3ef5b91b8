/*
 * watch_send.c: StreamSessionEvents: what is asked for, and entries on their way.
 *
 * Entries are read through a handle of who calls, and the guard is asked for each piece:
 * what was granted when the stream began may be revoked. A piece is bounded, so that a
 * long log does not hold a worker.
 */
#include "service/observe.h"
#include "service/shares.h"
#include "service/watch.h"

#include <string.h>

enum { PIECE = 256 * 1024 };

/* ---------------------------------------------------------------------- sending */

static void count_event(const call *c)
{
    if (c->server->observe)
        metrics_add(observe_metrics(c->server->observe), METRIC_EVENTS, 0, 0, 1);
}

static sessile_status send_entry(track *t, sessile_id id, buf *text, sessile_error *err)
{
    Sessile__V1__SessionEvent event = SESSILE__V1__SESSION_EVENT__INIT;
    Sessile__V1__EntryText entry = SESSILE__V1__ENTRY_TEXT__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    event.session = (Sessile__V1__Session *)t->said;
    event.what_case = SESSILE__V1__SESSION_EVENT__WHAT_ENTRY;
    event.entry = &entry;
    entry.entry = id;
    entry.json = &json;
    json.text = text->data;
    count_event(t->by->call);
    return call_send(t->by->call, &event.base, err);
}

static sessile_status send_up_to(track *t, sessile_error *err)
{
    Sessile__V1__SessionEvent event = SESSILE__V1__SESSION_EVENT__INIT;
    event.session = (Sessile__V1__Session *)t->said;
    event.what_case = SESSILE__V1__SESSION_EVENT__WHAT_UP_TO;
    event.up_to = t->next;
    t->told = 1;
    return call_send(t->by->call, &event.base, err);
}

static sessile_status send_gone(track *t, sessile_error *err)
{
    Sessile__V1__SessionEvent event = SESSILE__V1__SESSION_EVENT__INIT;
    Sessile__V1__Empty empty = SESSILE__V1__EMPTY__INIT;
    event.session = (Sessile__V1__Session *)t->said;
    event.what_case = SESSILE__V1__SESSION_EVENT__WHAT_GONE;
    event.gone = &empty;
    return call_send(t->by->call, &event.base, err);
}

/* ---------------------------------------------------------------------- reading */

/* Opens the iterator where the track stands. */
static sessile_status open_entries(track *t, sessile_entries **out, sessile_error *err)
{
    sessile_entries_options options;
    if (t->next == SESSILE_NO_ID) {
        sessile_id head;
        sessile_status status = sessile_head(t->session, &head, err);
        if (status)
            return status; /* it has read what others wrote */
        t->next = sessile_session_length(t->session);
    }
    sessile_entries_options_init(&options);
    if (t->next > 0)
        options.after = t->next - 1;
    return sessile_entries_open(out, t->session, &options, err);
}

/* Opens the session for the track. A session that was kept open may have been removed
 * and made again meanwhile: then it is opened anew, once. */
static sessile_status open_session(watch *w, track *t, sessile_entries **out,
                                   sessile_error *err)
{
    watched *one = t->of;
    keep *k = t->by->call->server->keep;
    sessile_status status = SESSILE_OK;
    for (int fresh = 0; !status && !t->session;) {
        kept *had = one->kept, *taken = had;
        if (!had)
            status = keep_take(k, &one->names, &taken, &fresh, err);
        if (!had && !status && fresh)
            observe_opened(t->by->call->server->observe);
        if (!status)
            status = sessile_session_as(&t->session, kept_session(taken),
                                        t->by->call->view, err);
        if (!status)
            status = open_entries(t, out, err);
        if (!status && !had)
            watch_opened(w, one, taken);
        if (!status || had)
            break;
        (void)sessile_session_close(t->session, NULL);
        t->session = NULL;
        if (taken)
            keep_give(k, taken, status != SESSILE_NOTFOUND);
        if (status != SESSILE_NOTFOUND || fresh || !taken)
            break;
        status = SESSILE_OK;
        error_clear(err);
    }
    return status;
}

/* Sends entries from the iterator on. */
static sessile_status send_piece(track *t, sessile_entries *entries, track_result *result,
                                 sessile_error *err)
{
    const call *c = t->by->call;
    sessile_status status = SESSILE_OK;
    size_t bytes = 0;
    buf text;
    buf_init(&text, &c->server->alloc);
    for (*result = TRACK_MORE; !status && bytes < PIECE;) {
        sessile_id id;
        const char *json;
        size_t size;
        if (call_is_full(c)) {
            *result = TRACK_FULL;
            break;
        }
        status = sessile_entries_next(entries, &id, &json, &size, err);
        if (status || size == 0) {
            *result = TRACK_CAUGHT_UP;
            break;
        }
        buf_clear(&text);
        buf_put(&text, json, size);
        buf_put(&text, "", 1);
        status = text.failed ? fail_nomem(err) : send_entry(t, id, &text, err);
        if (status)
            break;
        t->next = id + 1;
        t->told = 0;
        bytes += size;
    }
    if (!status && *result == TRACK_CAUGHT_UP && !t->told)
        status = send_up_to(t, err);
    buf_deinit(&text);
    return status;
}

/* Reads go on through a handle whose session was removed. NOTFOUND: it was. */
static sessile_status look_whether_it_is_there(track *t, sessile_error *err)
{
    sessile_id seen = t->next;
    int changed;
    return sessile_session_watch(t->session, &seen, 1, &changed, err);
}

track_result track_serve(watch *w, track *t, sessile_id *end, sessile_error *err)
{
    sessile_entries *entries = NULL;
    track_result result = TRACK_FAILED;
    const int doubt = t->doubt;
    const sessile_id from = t->next;
    t->doubt = 0;
    sessile_status status =
        t->session ? open_entries(t, &entries, err) : open_session(w, t, &entries, err);
    if (!status)
        status = send_piece(t, entries, &result, err);
    sessile_entries_close(entries);
    if (!status && doubt && t->next == from)
        status = look_whether_it_is_there(t, err);
    if (status == SESSILE_NOTFOUND) {
        sessile_error ignored;
        if (!t->by->single)
            (void)send_gone(t, &ignored);
        return TRACK_GONE;
    }
    *end = status ? 0 : t->next;
    return status ? TRACK_FAILED : result;
}

/* ---------------------------------------------------------------------- the method */

static follower *follower_new(call *c, size_t count)
{
    size_t size = sizeof(follower) + count * sizeof(track);
    follower *f = mem_zalloc(&c->server->alloc, size);
    if (!f)
        return NULL;
    f->call = c;
    f->size = size;
    f->count = count;
    for (size_t i = 0; i < count; i++)
        f->tracks[i].by = f;
    return f;
}

/* What a request names of one session. */
static sessile_status read_cursor(call *c, track *t, Sessile__V1__Session *names,
                                  const Sessile__V1__Entry *from,
                                  sessile_session_options *out, sessile_error *err)
{
    sessile_status status = call_names(c, names, out, err);
    if (!status)
        status = call_may_see(c, out, err);
    if (status)
        return status;
    t->lane = call_lane(c, names);
    t->said = names;
    t->next = entry_id(from);
    return SESSILE_OK;
}

static void copy_bytes(call *c, ProtobufCBinaryData *out, const ProtobufCBinaryData *from)
{
    out->data = call_new(c, from->len + 1);
    if (out->data && from->len)
        memcpy(out->data, from->data, from->len);
    out->len = out->data ? from->len : 0;
    c->no_memory |= !out->data;
}

/* A copy of names, without what else their message has. NULL: no memory. */
static const Sessile__V1__Session *keep_names(call *c, const Sessile__V1__Session *from)
{
    Sessile__V1__Session *out = call_make(c, &sessile__v1__session__descriptor);
    if (!out)
        return NULL;
    if (!from->raw) {
        out->agent = call_string(c, from->agent);
        out->user = call_string(c, from->user);
        out->id = call_string(c, from->id);
        return out;
    }
    out->raw = call_make(c, &sessile__v1__raw__descriptor);
    if (out->raw) {
        copy_bytes(c, &out->raw->agent, &from->raw->agent);
        copy_bytes(c, &out->raw->user, &from->raw->user);
        copy_bytes(c, &out->raw->id, &from->raw->id);
    }
    return out->raw ? out : NULL;
}

/* What the stream needs of its request for as long as it lives goes into an arena of its
 * own: the rest may be eight megabytes of what nobody knows. asked: the request's arena,
 * for arena_free(). */
static sessile_status keep_little(call *c, follower *f, arena *asked, sessile_error *err)
{
    *asked = c->arena;
    arena_init(&c->arena, asked->alloc);
    for (size_t i = 0; i < f->count; i++)
        if (!(f->tracks[i].said = keep_names(c, f->tracks[i].said)))
            return fail_nomem(err);
    call_forget_request(c);
    return c->no_memory ? fail_nomem(err) : SESSILE_OK;
}

static sessile_status stream_events(call *c, const void *request, sessile_error *err)
{
    arena asked;
    const Sessile__V1__EventsRequest *r = request;
    const size_t count = r->session ? 1 : r->n_cursors;
    sessile_status status = SESSILE_OK;
    arena_init(&asked, &c->server->alloc);
    if (r->session && r->n_cursors)
        return fail(err, SESSILE_INVALID,
                    "EventsRequest has a session or cursors, not both");
    if (count == 0)
        return fail(err, SESSILE_INVALID, "EventsRequest names no session");
    follower *f = follower_new(c, count);
    sessile_session_options *names = call_new(c, count * sizeof *names);
    if (!f || !names)
        status = fail_nomem(err);
    if (!status)
        status = shares_take(c, SHARE_WATCHES, count, WATCHED_MOST, &f->share, err);
    if (!status && r->session)
        status = read_cursor(c, &f->tracks[0], r->session, r->from, &names[0], err);
    for (size_t i = 0; i < r->n_cursors && !status; i++)
        status = read_cursor(c, &f->tracks[i], r->cursors[i]->session,
                             r->cursors[i]->from, &names[i], err);
    if (!status) {
        f->single = r->session != NULL;
        status = keep_little(c, f, &asked, err);
    }
    if (!status) {
        status = watch_begin(c->server->watch, f, names, err);
        if (!status) { /* the call and the follower are others' now */
            arena_free(&asked);
            return SESSILE_OK;
        }
    }
    arena_free(&asked);
    if (f) {
        shares_give(c->server->shares, SHARE_WATCHES, count, f->share);
        mem_free(&c->server->alloc, f, f->size);
    }
    return status;
}

const method methods_watch[] = {
    METHOD("StreamSessionEvents", stream_events, events_request,
           METHOD_READS | METHOD_STREAMS | METHOD_APART),
    {NULL, NULL, 0, NULL},
};
