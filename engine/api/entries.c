/* entries.c: the public functions that write bare entries and read entries and messages.
 */
#include "api/api.h"

#include <string.h>

#include "operations/messages.h"
#include "session/count.h"
#include "session/read.h"
#include "session/write.h"
#include "tokens/tokens.h"

sessile_status sessile_append(sessile_session *session, sessile_slice message,
                              sessile_id *out, sessile_error *err)
{
    sessile_id unwanted;
    error_clear(err);
    if (!out)
        out = &unwanted;
    *out = SESSILE_NO_ID;
    if (!session)
        return api_missing(err, __func__, "session");
    if (api_bad(message))
        return api_missing(err, __func__, "message.data");
    return session_append_message(session, message, out, err);
}

sessile_status sessile_append_custom(sessile_session *session, sessile_slice data,
                                     const char *source, sessile_id *out,
                                     sessile_error *err)
{
    sessile_id unwanted;
    error_clear(err);
    if (!out)
        out = &unwanted;
    *out = SESSILE_NO_ID;
    if (!session)
        return api_missing(err, __func__, "session");
    if (api_bad(data))
        return api_missing(err, __func__, "data.data");
    entry_source from = source ? entry_source_of(source, strlen(source)) : SOURCE_HOST;
    if (from == SOURCE_NONE || from == SOURCE_POLICY)
        return fail(err, SESSILE_INVALID,
                    "the source of a custom entry is user, agent, system, tool or host");
    return session_append_custom(session, data, from, out, err);
}

void sessile_messages_options_init(sessile_messages_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->from = options->at = SESSILE_NO_ID;
}

sessile_status sessile_messages(sessile_session *session,
                                const sessile_messages_options *options,
                                sessile_message **out, size_t *count, sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!session)
        return api_missing(err, __func__, "session");
    sessile_messages_options all;
    if (!options) {
        sessile_messages_options_init(&all);
        options = &all;
    }
    return session_messages(session, options, out, count, err);
}

static sessile_status text_locked(void *arg, sessile_key key, buf *out,
                                  sessile_error *err)
{
    return prefetch_message(arg, key, out, err);
}

sessile_status sessile_context(sessile_session *session, sessile_id at,
                               sessile_message **out, size_t *count,
                               sessile_context_info *info, sessile_error *err)
{
    sessile_context_info unwanted;
    error_clear(err);
    if (!info)
        info = &unwanted;
    memset(info, 0, sizeof *info);
    info->tokens.source = TOKEN_SOURCE_ESTIMATE;
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!session)
        return api_missing(err, __func__, "session");

    const allocator *a = &session->store->alloc;
    const context *c = NULL;
    context id;
    meter_ratio fit[TOKEN_UNITS];
    sessile_status status = session_lock(session, err);
    if (status)
        return status;
    context_init(&id, a);
    status = session_refresh_locked(session, err);
    int is_head = at == SESSILE_NO_ID || at == session->tree.head;
    if (!status && is_head) {
        at = session->tree.head;
        status = session_context_locked(session, &c, err);
    } else if (!status) {
        c = &id;
        status = session_context_at_locked(session, at, &id, err);
    }
    if (!status)
        status = session_fit_locked(session, at, fit, err);
    if (!status && c != &id && context_copy(&id, c))
        status = fail_nomem(err);
    if (!status) {
        c = &id;
        meter_scale_context(&id, fit);
    }
    if (!status) {
        prefetch reading;
        prefetch_begin(&reading, session, c);
        status =
            render_context(c, text_locked, &reading, session, out, count, info, a, err);
        prefetch_end(&reading);
    }
    if (!status) {
        int beside;
        status = session_tokens_at_locked(session, at, &info->tokens, &beside, err);
    }
    if (!status) {
        uint64_t shown = 0;
        for (size_t i = 0; i < c->count; i++)
            shown += c->items[i].key.n == 0;
        uint64_t said = at ? session->tree.nodes[at].messages : 0;
        info->head = session->tree.head;
        info->lost = c->lost;
        if (is_head)
            session->tree.base = session->tree.head;
        info->dropped = said > shown ? said - shown : 0;
    }
    session_unlock(session);
    if (status) {
        sessile_free(*out);
        *out = NULL;
        *count = 0;
    }
    context_deinit(&id);
    return status;
}

sessile_status sessile_entry(sessile_session *session, sessile_id id, char **out,
                             size_t *size, sessile_error *err)
{
    error_clear(err);
    if (!out || !size)
        return api_missing(err, __func__, "out or size");
    *out = NULL;
    *size = 0;
    if (!session)
        return api_missing(err, __func__, "session");
    const allocator *a = &session->store->alloc;
    buf text;
    sessile_status status = session_lock(session, err);
    if (status)
        return status;
    buf_init(&text, a);
    status = session_refresh_locked(session, err);
    if (!status)
        status = session_text_locked(session, id, &text, err);
    session_unlock(session);
    if (!status && (text.failed || !(*out = give_dup(a, text.data, text.size))))
        status = fail_nomem(err);
    if (!status)
        *size = text.size;
    buf_deinit(&text);
    return status;
}

struct sessile_entries {
    sessile_session *session;
    sessile_id next, end;
    buf text;
};

sessile_status sessile_entries_open(sessile_entries **out, sessile_session *session,
                                    sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!session)
        return api_missing(err, __func__, "session");
    const allocator *a = &session->store->alloc;
    sessile_status status = api_read_begin(session, out, __func__, err);
    if (status)
        return status;
    sessile_id end = log_count(session->log);
    session_unlock(session);
    sessile_entries *e = mem_zalloc(a, sizeof *e);
    if (!e)
        return fail_nomem(err);
    e->session = session;
    e->end = end;
    buf_init(&e->text, a);
    *out = e;
    return SESSILE_OK;
}

sessile_status sessile_entries_next(sessile_entries *entries, sessile_id *id,
                                    const char **json, size_t *size, sessile_error *err)
{
    error_clear(err);
    if (!json || !size)
        return api_missing(err, __func__, "json or size");
    *json = NULL;
    *size = 0;
    if (id)
        *id = SESSILE_NO_ID;
    if (!entries)
        return api_missing(err, __func__, "entries");
    if (entries->next >= entries->end)
        return SESSILE_OK;
    buf_clear(&entries->text);
    sessile_status status = session_lock(entries->session, err);
    if (status)
        return status;
    status = session_text_locked(entries->session, entries->next, &entries->text, err);
    session_unlock(entries->session);
    if (!status && entries->text.failed)
        status = fail_nomem(err);
    if (status)
        return status;
    if (id)
        *id = entries->next;
    entries->next++;
    *json = entries->text.data;
    *size = entries->text.size;
    return SESSILE_OK;
}

void sessile_entries_close(sessile_entries *entries)
{
    if (!entries)
        return;
    const allocator *a = &entries->session->store->alloc;
    buf_deinit(&entries->text);
    mem_free(a, entries, sizeof *entries);
}
