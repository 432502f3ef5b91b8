/* entries.c: the public functions that write bare entries, read entries and messages, and
 * take messages off. */
#include "api/api.h"

#include "operations/append.h"
#include "operations/messages.h"
#include "operations/pop.h"
#include "operations/read.h"
#include "operations/write.h"
#include "session/write.h"
#include "tokens/tokens.h"

sessile_status sessile_append(sessile_session *session, sessile_slice message,
                              sessile_id *out, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, out, SESSILE_NO_ID);
    API_NEED(session);
    API_TEXT(message);
    GUARD_ENTER(append, session);
    GUARD_ENTRY(out);
    GUARD_NUMBER("bytes", message.size);
    return GUARD_LEAVE(session_append_message(core, message, out, err));
}

/* The source of a custom entry, by its name. */
static sessile_status read_source(const char *name, entry_source *out, sessile_error *err)
{
    *out = name ? entry_source_of(name, strlen(name)) : SOURCE_HOST;
    if (*out == SOURCE_NONE || *out == SOURCE_POLICY)
        return fail(err, SESSILE_INVALID,
                    "the source of a custom entry is user, agent, system, tool or host");
    return SESSILE_OK;
}

sessile_status sessile_append_custom(sessile_session *session, sessile_slice data,
                                     const char *source, sessile_id *out,
                                     sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, out, SESSILE_NO_ID);
    API_NEED(session);
    API_TEXT(data);
    entry_source from;
    sessile_status status = read_source(source, &from, err);
    if (status)
        return status;
    GUARD_ENTER(append_custom, session);
    GUARD_ENTRY(out);
    GUARD_NUMBER("bytes", data.size);
    return GUARD_LEAVE(session_append_custom(core, data, from, out, err));
}

sessile_status sessile_write(sessile_session *session, const sessile_write_entry *entries,
                             size_t count, sessile_id base, sessile_id *first,
                             sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, first, SESSILE_NO_ID);
    API_NEED(session);
    API_NEED_IF(count, entries);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        entry_source from = SOURCE_HOST;
        API_TEXT(entries[i].json);
        sessile_status status =
            entries[i].custom ? read_source(entries[i].source, &from, err) : SESSILE_OK;
        if (status)
            return status;
        bytes += entries[i].json.size;
    }
    if (!count)
        return fail(err, SESSILE_INVALID, "%s: at least 1 entry is written", __func__);
    GUARD_ENTER(write, session);
    GUARD_ENTRY(first);
    GUARD_NUMBER("bytes", bytes);
    return GUARD_LEAVE(session_write_entries(core, entries, count, base, first, err));
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
    API_LIST(out, count, session);
    API_OPTIONS(sessile_messages_options, options);
    GUARD_ENTER(messages, session);
    return GUARD_LEAVE(session_messages(core, options, out, count, err));
}

sessile_status sessile_pop(sessile_session *session, size_t n, sessile_id base,
                           sessile_message **out, size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    if (!n)
        return fail(err, SESSILE_INVALID, "%s: at least 1 message is taken off",
                    __func__);
    GUARD_ENTER(pop, session);
    GUARD_NUMBER("messages", n);
    return GUARD_LEAVE(session_pop(core, n, base, out, count, err));
}

sessile_status sessile_context(sessile_session *session, sessile_id at,
                               sessile_message **out, size_t *count,
                               sessile_context_info *info, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_context_info, info,
                 (sessile_context_info){.tokens.source = TOKEN_SOURCE_ESTIMATE});
    API_OUT(out, NULL);
    API_OUT(count, 0);
    API_NEED(session);
    GUARD_ENTER(context, session);
    return GUARD_LEAVE(session_read_context(core, at, out, count, info, err));
}

sessile_status sessile_entry(sessile_session *session, sessile_id id, char **out,
                             size_t *size, sessile_error *err)
{
    API_LIST(out, size, session);
    GUARD_ENTER(entry, session);
    return GUARD_LEAVE(session_entry(core, id, out, size, err));
}

void sessile_entries_options_init(sessile_entries_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->after = options->before = SESSILE_NO_ID;
}

sessile_status sessile_entries_open(sessile_entries **out, sessile_session *session,
                                    const sessile_entries_options *options,
                                    sessile_error *err)
{
    API_MAKE(out, session);
    API_OPTIONS(sessile_entries_options, options);
    API_NEED_IF(options->type_count, options->types);
    for (size_t i = 0; i < options->type_count; i++)
        API_REFUSE_IF(!options->types[i], "a type");
    GUARD_ENTER(entries_open, session);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, entries_open(GUARD_INTO(out), core, options, err));
}

sessile_status sessile_entries_next(sessile_entries *entries, sessile_id *id,
                                    const char **json, size_t *size, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, id, SESSILE_NO_ID);
    API_OUT(json, NULL);
    API_OUT(size, 0);
    API_NEED(entries);
    GUARD_ENTER(entries_next, entries);
    return GUARD_LEAVE(entries_next(core, id, json, size, err));
}

void sessile_entries_close(sessile_entries *entries)
{
    if (!entries)
        return;
    GUARD_CLOSE(entries);
    entries_close(core);
}
