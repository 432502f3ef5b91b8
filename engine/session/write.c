/*
 * write.c: the small writes: a bare message, a custom entry, a title, a cleared context.
 *
 * Each is one commit through session_write(), synced before it returns. The entries of a
 * turn are built in run/.
 */
#include "session/count.h"
#include "session/write.h"

#include <string.h>

#include "base/text.h"
#include "session/life.h"
#include "tokens/tokens.h"

/* One entry on its way into the log: its checked text, and what is known of it. */
typedef struct one {
    buf text;
    message columns;
    token_count tokens;
    entry_type type;
    entry_source source;
    sessile_id id;
} one;

static sessile_status build_message(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    one *w = arg;
    sessile_status status = session_check_running_locked(s, err);

    if (!status)
        status = session_check_base_locked(s, s->tree.base, 0, err);
    if (status)
        return status;
    w->id = batch_message(b, s->tree.head, w->text.data, w->text.size, &w->columns,
                          w->tokens);
    return SESSILE_OK;
}

/* A fact about the head. */
static sessile_status build_fact(void *arg, session_core *s, batch *b, sessile_error *err)
{
    one *w = arg;

    (void)err;
    w->id = batch_put(b, s->tree.head, w->type, w->source, w->text.data, w->text.size);
    return SESSILE_OK;
}

/* The head is moved to the root. */
static sessile_status build_clear(void *arg, session_core *s, batch *b,
                                  sessile_error *err)
{
    sessile_status status = session_check_running_locked(s, err);

    (void)arg;
    if (!status)
        batch_move_head(b, 0, s->tree.head);
    return status;
}

static sessile_status check_text(buf *out, const session_core *s, sessile_slice text,
                                 const char *what, sessile_error *err)
{
    const sessile_limits *limits = &s->store->limits;

    if (text.size > limits->message)
        return fail(
            err, SESSILE_LIMIT,
            "this %s has %zu bytes and the limit [message] is %llu: shorten it, or "
            "raise the limit",
            what, text.size, (unsigned long long)limits->message);
    return json_check(out, text.data ? text.data : "", text.size, limits->depth, err);
}

sessile_status session_check_message(session_core *s, sessile_slice text, buf *out,
                                     message *columns, token_count *tokens,
                                     sessile_error *err)
{
    sessile_status status = check_text(out, s, text, "message", err);

    if (!status)
        status = message_read(columns, out->data, out->size, NULL, NULL, NULL,
                              &s->store->alloc, err);
    if (!status)
        *tokens = session_count(s, columns);
    return status;
}

sessile_status session_append_message(session_core *s, sessile_slice text,
                                      sessile_id *out, sessile_error *err)
{
    one w = {.id = SESSILE_NO_ID};
    sessile_status status;

    buf_init(&w.text, &s->store->alloc);
    status = session_check_message(s, text, &w.text, &w.columns, &w.tokens, err);
    if (!status)
        status = session_write(s, build_message, &w, &(session_writing){.known = 1}, err);
    if (!status)
        *out = w.id;
    buf_deinit(&w.text);
    return status;
}

sessile_status session_append_custom(session_core *s, sessile_slice data,
                                     entry_source source, sessile_id *out,
                                     sessile_error *err)
{
    one w = {.id = SESSILE_NO_ID, .type = ENTRY_CUSTOM, .source = source};
    sessile_status status;

    buf_init(&w.text, &s->store->alloc);
    status = check_text(&w.text, s, data, "custom entry", err);
    if (!status && json_of(w.text.data, w.text.size).type != JSON_OBJECT)
        status =
            fail(err, SESSILE_INVALID, "the data of a custom entry is a JSON object");
    if (!status)
        status = session_write(s, build_fact, &w, &(session_writing){.known = 1}, err);
    if (!status)
        *out = w.id;
    buf_deinit(&w.text);
    return status;
}

sessile_status session_set_title(session_core *s, sessile_slice title, sessile_error *err)
{
    one w = {.type = ENTRY_METADATA, .source = SOURCE_HOST};
    sessile_status status = session_check_title(s->store, title, err);

    if (status)
        return status;
    buf_init(&w.text, &s->store->alloc);
    buf_puts(&w.text, "{\"title\":");
    json_put_string(&w.text, title.data, title.size);
    buf_putc(&w.text, '}');
    status =
        w.text.failed ? fail_nomem(err) : session_write(s, build_fact, &w, NULL, err);
    buf_deinit(&w.text);
    return status;
}

sessile_status session_clear(session_core *s, sessile_error *err)
{
    return session_write(s, build_clear, NULL, NULL, err);
}
