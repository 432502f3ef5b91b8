/*
 * count.c: tokens counted for the host.
 */
#include "api/api.h"

#include <string.h>

#include "base/error.h"
#include "session/count.h"

sessile_status sessile_count_tokens(sessile_session *session, sessile_tokens *out,
                                    sessile_error *err)
{
    return sessile_count_tokens_with(session, NULL, out, err);
}

void sessile_count_options_init(sessile_count_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->at = SESSILE_NO_ID;
}

static sessile_status check(const sessile_count_options *o, sessile_error *err)
{
    if (api_bad(o->model) || api_bad(o->tools) || api_bad(o->system))
        return fail(err, SESSILE_INVALID,
                    "a text of the options of a count has a size and no data");
    return SESSILE_OK;
}

sessile_status sessile_count_tokens_with(sessile_session *session,
                                         const sessile_count_options *options,
                                         sessile_tokens *out, sessile_error *err)
{
    sessile_count_options defaults;
    sessile_status status;

    sessile_count_options_init(&defaults);
    if (!options)
        options = &defaults;
    if (out)
        *out = (sessile_tokens){0, 0, 0, TOKEN_SOURCE_ESTIMATE};
    status = check(options, err);
    if (!status)
        status = api_read_begin(session, out, __func__, err);
    if (status)
        return status;
    sessile_id at = options->at == SESSILE_NO_ID ? session->tree.head : options->at;
    status = session_check_at(session, at, err);
    if (!status)
        status = session_tokens_for_locked(session, at, options->model, options->tools,
                                           options->system, out, err);
    session_unlock(session);
    return status;
}

sessile_status sessile_count_messages(sessile_store *store,
                                      const sessile_count_options *options,
                                      const sessile_slice *messages, size_t count,
                                      sessile_tokens *each, sessile_tokens *out,
                                      sessile_error *err)
{
    sessile_count_options defaults;
    sessile_status status = SESSILE_OK;

    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = (sessile_tokens){0, 0, 0, TOKEN_SOURCE_ESTIMATE};
    if (!store)
        return api_missing(err, __func__, "store");
    if (count && !messages)
        return api_missing(err, __func__, "messages");
    sessile_count_options_init(&defaults);
    if (!options)
        options = &defaults;
    status = check(options, err);
    if (status)
        return status;
    sessile_slice model = options->model;
    if (model.size == 0 && store->model)
        model = sessile_text(store->model);
    counting c = {.store = store, .model = model};
    counting_begin(&c);
    for (size_t i = 0; !status && i < count; i++) {
        sessile_tokens one;
        status = counting_add(&c, messages[i], &one, err);
        if (status && count > 1)
            fail_prefix(err, "message %zu", i + 1);
        else if (each)
            each[i] = one;
    }
    if (!status)
        counting_end(&c, out);
    if (!status)
        status = counters_beside(store->counters, model, options->tools, options->system,
                                 out, err);
    buf_deinit(&c.text);
    return status;
}

void sessile_encoding_error(sessile_store *store, char *out, size_t size)
{
    if (!out || !size)
        return;
    *out = 0;
    if (store)
        counters_why(store->counters, out, size);
}

sessile_status sessile_count_text(const sessile_store *store, sessile_slice text,
                                  sessile_tokens *out, sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = (sessile_tokens){0, 0, 0, TOKEN_SOURCE_ESTIMATE};
    if (api_bad(text))
        return api_missing(err, __func__, "text.data");
    if (!store) {
        out->tokens = text.size ? tokens_of_text(text.data, text.size) : 0;
        tokens_margin(out->tokens, &out->low, &out->high);
        return SESSILE_OK;
    }
    session_count_text(store, text, out);
    return SESSILE_OK;
}
