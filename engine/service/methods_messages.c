/* methods_messages.c: messages: appended, and read as a list or as a context. */
#include "service/pieces.h"

#include <string.h>

/* ---------------------------------------------------------------------- writing */

static sessile_status append_message(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__AppendRequest *r = request;
    sessile_session *session;
    sessile_id entry = SESSILE_NO_ID;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = call_may_add(c, sessile_session_agent(session), err);
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

/* What a list of messages was asked for with. */
typedef struct reading {
    sessile_messages_options options;
    Sessile__V1__ContextInfo *info; /* of a context */
} reading;

/* The parts of a message besides its text have less than 80 bytes. */
static size_t message_bytes(const void *row)
{
    return ((const sessile_message *)row)->json.size + 80;
}

static const ProtobufCMessage *message_piece(call *c, void *what, const void *rows,
                                             size_t n, int last)
{
    const reading *r = what;
    const sessile_message *from = rows;
    Sessile__V1__Messages *out = call_make(c, &sessile__v1__messages__descriptor);
    if (!out)
        return NULL;
    out->messages = call_rows(c, n, &sessile__v1__message__descriptor);
    for (size_t i = 0; out->messages && i < n; i++)
        fill_message(c, out->messages[i], &from[i]);
    out->n_messages = out->messages ? n : 0;
    out->info = last ? r->info : NULL;
    return &out->base;
}

/* What was read is asked for by its first and its last entry from now on: the path
 * between the two stays as it is. */
static sessile_status read_messages(call *c, void *what, void **out, size_t *count,
                                    sessile_error *err)
{
    reading *r = what;
    sessile_message *rows = NULL;
    sessile_status status = sessile_messages(c->session, &r->options, &rows, count, err);
    *out = rows;
    if (status || *count == 0)
        return status;
    r->options.from = rows[0].key.entry;
    r->options.at = rows[*count - 1].key.entry;
    r->options.last = r->options.limit = 0;
    return SESSILE_OK;
}

static sessile_status get_messages(call *c, const void *request, sessile_error *err)
{
    static const list_kind list = {sizeof(sessile_message), read_messages, message_bytes,
                                   message_piece};
    const Sessile__V1__MessagesRequest *r = request;
    sessile_session *session;
    reading *all = call_new(c, sizeof *all);
    sessile_status status =
        all ? call_session(c, r->session, &session, err) : fail_nomem(err);
    if (status)
        return status;
    sessile_messages_options_init(&all->options);
    all->options.from = entry_id(r->from);
    all->options.at = entry_id(r->at);
    all->options.limit = (size_t)r->limit;
    all->options.last = (size_t)r->last;
    if (*r->role)
        status = read_role(r->role, "MessagesRequest.role", &all->options.role, err);
    return status ? status : reply_list(c, &list, all, err);
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

/* The context at an entry stays as it is; the head may move. */
static sessile_status read_context(call *c, void *what, void **out, size_t *count,
                                   sessile_error *err)
{
    reading *r = what;
    sessile_context_info info;
    sessile_message *rows = NULL;
    sessile_status status =
        sessile_context(c->session, r->options.at, &rows, count, &info, err);
    *out = rows;
    if (status || r->info)
        return status;
    r->info = info_of(c, &info);
    if (r->options.at == SESSILE_NO_ID)
        r->options.at = info.head;
    return SESSILE_OK;
}

static sessile_status get_context(call *c, const void *request, sessile_error *err)
{
    static const list_kind list = {sizeof(sessile_message), read_context, message_bytes,
                                   message_piece};
    const Sessile__V1__ContextRequest *r = request;
    sessile_session *session;
    reading *all = call_new(c, sizeof *all);
    sessile_status status =
        all ? call_session(c, r->session, &session, err) : fail_nomem(err);
    if (status)
        return status;
    all->options.at = entry_id(r->at);
    return reply_list(c, &list, all, err);
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
