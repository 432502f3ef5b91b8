/* count.c: tokens of a context and of messages, counted for the host. */
#include "operations/read.h"

#include "base/names.h"
#include "session/count.h"
#include "session/read.h"
#include "tokens/tokens.h"

sessile_status session_count_tokens(session_core *s, const sessile_count_options *options,
                                    sessile_tokens *out, sessile_error *err)
{
    sessile_status status = session_lock_fresh(s, err);
    if (status)
        return status;
    sessile_id at = options->at == SESSILE_NO_ID ? s->tree.head : options->at;
    status = session_check_at(s, at, err);
    if (!status)
        status = session_tokens_for_locked(s, at, options->model, options->tools,
                                           options->system, out, err);
    session_unlock(s);
    return status;
}

sessile_status store_count_messages(store_core *store,
                                    const sessile_count_options *options,
                                    const sessile_slice *messages, size_t count,
                                    sessile_tokens *each, sessile_tokens *out,
                                    sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_slice model = options->model;
    if (model.size == 0 && store->model)
        model = slice_of(store->model);
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
