/*
 * count.c: tokens counted for the host.
 */
#include "api/api.h"

#include "operations/read.h"
#include "session/count.h"

#define NO_TOKENS ((sessile_tokens){0, 0, 0, TOKEN_SOURCE_ESTIMATE})

sessile_status sessile_count_tokens(sessile_session *session, sessile_tokens *out,
                                    sessile_error *err)
{
    sessile_count_options options;
    API_USE(session);
    API_OUT(out, NO_TOKENS);
    sessile_count_options_init(&options);
    GUARD_ENTER(count_tokens, session);
    return GUARD_LEAVE(session_count_tokens(core, &options, out, err));
}

void sessile_count_options_init(sessile_count_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->at = SESSILE_NO_ID;
}

/* What begins a count with options. */
#define COUNT_BEGIN(options, out)                \
    API_OPTIONS(sessile_count_options, options); \
    API_OUT(out, NO_TOKENS);                     \
    API_TEXT(options->model);                    \
    API_TEXT(options->tools);                    \
    API_TEXT(options->system)

sessile_status sessile_count_tokens_with(sessile_session *session,
                                         const sessile_count_options *options,
                                         sessile_tokens *out, sessile_error *err)
{
    error_clear(err);
    COUNT_BEGIN(options, out);
    API_NEED(session);
    GUARD_ENTER(count_tokens_with, session);
    return GUARD_LEAVE(session_count_tokens(core, options, out, err));
}

sessile_status sessile_count_messages(sessile_store *store,
                                      const sessile_count_options *options,
                                      const sessile_slice *messages, size_t count,
                                      sessile_tokens *each, sessile_tokens *out,
                                      sessile_error *err)
{
    error_clear(err);
    COUNT_BEGIN(options, out);
    API_NEED(store);
    API_TEXTS(messages, count);
    return store_count_messages(GUARD_OWN(store), options, messages, count, each, out,
                                err);
}

void sessile_encoding_error(sessile_store *store, char *out, size_t size)
{
    if (!out || !size)
        return;
    *out = 0;
    if (store)
        counters_why(GUARD_OWN(store)->counters, out, size);
}

sessile_status sessile_count_text(const sessile_store *store, sessile_slice text,
                                  sessile_tokens *out, sessile_error *err)
{
    error_clear(err);
    API_OUT(out, NO_TOKENS);
    API_TEXT(text);
    const store_core *core = GUARD_OWN(store);
    if (!core) {
        out->tokens = text.size ? tokens_of_text(text.data, text.size) : 0;
        tokens_margin(out->tokens, &out->low, &out->high);
        return SESSILE_OK;
    }
    session_count_text(core, text, out);
    return SESSILE_OK;
}
