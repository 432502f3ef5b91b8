/* methods_messages.c: messages: appended, and read as a list or as a context. */
#include "service/server.h"

#include <string.h>

enum { PIECE = 1 << 20 };

/* ---------------------------------------------------------------------- writing */

static sessile_status append_message(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__AppendRequest *r = request;
    sessile_session *session;
    sessile_id entry = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_append(session, json_slice(r->message), &entry, err);
    return status ? status : reply_written(c, entry, err);
}

static sessile_status append_custom(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__AppendCustomRequest *r = request;
    sessile_session *session;
    sessile_id entry = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_append_custom(session, json_slice(r->data),
                                       *r->source ? r->source : NULL, &entry, err);
    return status ? status : reply_written(c, entry, err);
}

static sessile_status clear(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    sessile_session *session;
    sessile_id head = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_clear(session, err);
    if (!status)
        status = sessile_head(session, &head, err);
    return status ? status : reply_written(c, head, err);
}

/* ---------------------------------------------------------------------- reading */

void fill_message(call *c, Sessile__V1__Message *out, const sessile_message *from)
{
    out->key = call_key(c, from->key);
    out->role = call_string(c, sessile_role_name(from->role));
    out->tokens = from->tokens;
    out->time_ms = from->time_ms;
    out->json = call_json(c, from->json);
}

/* Sends messages in pieces of about PIECE bytes, info with the last. The memory of one
 * piece is used again for the next. */
static sessile_status send_messages(call *c, const sessile_message *rows, size_t count,
                                    Sessile__V1__ContextInfo *info, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t i = 0;
    do {
        Sessile__V1__Messages piece = SESSILE__V1__MESSAGES__INIT;
        size_t bytes = 0, n = 0;
        arena all = c->arena;
        arena_init(&c->arena, all.alloc);
        while (i + n < count && (n == 0 || bytes + rows[i + n].json.size <= PIECE))
            bytes += rows[i + n++].json.size;
        piece.messages = call_rows(c, n, &sessile__v1__message__descriptor);
        for (size_t k = 0; piece.messages && k < n; k++)
            fill_message(c, piece.messages[k], &rows[i + k]);
        piece.n_messages = piece.messages ? n : 0;
        i += n;
        piece.info = i == count ? info : NULL;
        status = call_reply(c, &piece.base, err);
        arena_free(&c->arena);
        c->arena = all;
    } while (!status && i < count);
    return status;
}

static sessile_status get_messages(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__MessagesRequest *r = request;
    sessile_messages_options options;
    sessile_session *session;
    sessile_message *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (status)
        return status;
    sessile_messages_options_init(&options);
    options.from = entry_id(r->from);
    options.at = entry_id(r->at);
    options.limit = (size_t)r->limit;
    options.last = (size_t)r->last;
    if (*r->role)
        status = read_role(r->role, "MessagesRequest.role", &options.role, err);
    if (!status)
        status = sessile_messages(session, &options, &rows, &count, err);
    if (status)
        return status;
    status = send_messages(c, rows, count, NULL, err);
    sessile_free(rows);
    return status;
}

static Sessile__V1__ContextInfo *info_of(call *c, const sessile_context_info *from)
{
    Sessile__V1__ContextInfo *out = call_make(c, &sessile__v1__context_info__descriptor);
    if (!out)
        return NULL;
    out->tokens = call_tokens(c, &from->tokens);
    out->head = from->head;
    out->dropped = from->dropped;
    out->orphans = from->orphans;
    out->unanswered = from->unanswered;
    out->lost = from->lost;
    return out;
}

static sessile_status get_context(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ContextRequest *r = request;
    sessile_context_info info;
    sessile_session *session;
    sessile_message *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (status)
        return status;
    status = sessile_context(session, entry_id(r->at), &rows, &count, &info, err);
    if (status)
        return status;
    status = send_messages(c, rows, count, info_of(c, &info), err);
    sessile_free(rows);
    return status;
}

static sessile_status get_entry(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__EntryRequest *r = request;
    Sessile__V1__EntryText out = SESSILE__V1__ENTRY_TEXT__INIT;
    sessile_session *session;
    char *text;
    size_t size;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_entry(session, r->entry, &text, &size, err);
    if (status)
        return status;
    out.entry = r->entry;
    out.json = call_json(c, (sessile_slice){text, size});
    status = call_reply(c, &out.base, err);
    sessile_free(text);
    return status;
}

const method methods_messages[] = {
    METHOD("AppendMessage", append_message, append_request, 0),
    METHOD("AppendCustom", append_custom, append_custom_request, 0),
    METHOD("Clear", clear, session_request, 0),
    METHOD("GetContext", get_context, context_request, METHOD_READS | METHOD_STREAMS),
    METHOD("GetMessages", get_messages, messages_request, METHOD_READS | METHOD_STREAMS),
    METHOD("GetEntry", get_entry, entry_request, METHOD_READS),
    {NULL, NULL, 0, NULL},
};
