/*
 * append.c: the small writes: a bare message, a custom entry, a title, a cleared context.
 *
 * Each text is checked and screened before the log is locked. The entries of a turn are
 * built in run/.
 */
#include "operations/append.h"

#include <string.h>

#include "base/text.h"
#include "session/count.h"
#include "session/life.h"
#include "tokens/tokens.h"

/* One entry on its way into the log: its checked text, and what is known of it. */
typedef struct one {
    buf text;
    message columns;
    token_count tokens;
    entry_type type;
    entry_source source;
    write_labels labels;
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
    write_labels_put(&w->labels, b, 0, w->id);
    return SESSILE_OK;
}

/* A fact about the head. */
static sessile_status build_fact(void *arg, session_core *s, batch *b, sessile_error *err)
{
    one *w = arg;

    (void)err;
    w->id = batch_put(b, s->tree.head, w->type, w->source, w->text.data, w->text.size);
    write_labels_put(&w->labels, b, 0, w->id);
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
                                     write_labels *labels, size_t of, sessile_error *err)
{
    sessile_status status = check_text(out, s, text, "message", err);

    if (!status)
        status = write_screen_message(s->store, out, 0, labels, of, err);
    if (!status)
        status = message_read(columns, out->data, out->size, NULL, NULL, NULL,
                              &s->store->alloc, err);
    if (!status)
        *tokens = session_count(s, columns);
    return status;
}

static void begin(one *w, const session_core *s, entry_type type, entry_source source)
{
    *w = (one){.type = type, .source = source, .id = SESSILE_NO_ID};
    buf_init(&w->text, &s->store->alloc);
}

static void end(one *w, const session_core *s)
{
    write_labels_deinit(&w->labels, &s->store->alloc);
    buf_deinit(&w->text);
}

sessile_status session_append_message(session_core *s, sessile_slice text,
                                      sessile_id *out, sessile_error *err)
{
    sessile_status status;
    one w;

    begin(&w, s, ENTRY_MESSAGE, SOURCE_HOST);
    status =
        session_check_message(s, text, &w.text, &w.columns, &w.tokens, &w.labels, 0, err);
    if (!status)
        status = session_write(s, build_message, &w, &(session_writing){.known = 1}, err);
    if (!status)
        *out = w.id;
    end(&w, s);
    return status;
}

/* Its kind is its member "kind". */
static sessile_status screen_custom(const session_core *s, entry_source source, buf *text,
                                    write_labels *labels, size_t of, sessile_error *err)
{
    static const sessile_screen_source sources[] = {
        [SOURCE_USER] = SESSILE_SCREEN_BY_USER,
        [SOURCE_AGENT] = SESSILE_SCREEN_BY_AGENT,
        [SOURCE_SYSTEM] = SESSILE_SCREEN_BY_SYSTEM,
        [SOURCE_TOOL] = SESSILE_SCREEN_BY_TOOL,
        [SOURCE_HOST] = SESSILE_SCREEN_BY_HOST};
    sessile_screen_item item = {
        .kind = SESSILE_SCREEN_CUSTOM, .source = sources[source], .is_json = 1};
    json kind = json_get(json_of(text->data, text->size), "kind");
    sessile_status status;
    buf key;

    buf_init(&key, &s->store->alloc);
    if (kind.type == JSON_STRING)
        (void)json_string(&key, kind);
    item.key = (sessile_slice){key.data, key.size};
    status = key.failed ? fail_nomem(err)
                        : write_screen_in(s->store, &item, text, 0, labels, of, err);
    buf_deinit(&key);
    return status;
}

sessile_status session_check_custom(const session_core *s, sessile_slice data,
                                    entry_source source, buf *out, write_labels *labels,
                                    size_t of, sessile_error *err)
{
    sessile_status status = check_text(out, s, data, "custom entry", err);

    if (!status && json_of(out->data, out->size).type != JSON_OBJECT)
        status =
            fail(err, SESSILE_INVALID, "the data of a custom entry is a JSON object");
    return status ? status : screen_custom(s, source, out, labels, of, err);
}

sessile_status session_append_custom(session_core *s, sessile_slice data,
                                     entry_source source, sessile_id *out,
                                     sessile_error *err)
{
    sessile_status status;
    one w;

    begin(&w, s, ENTRY_CUSTOM, source);
    status = session_check_custom(s, data, source, &w.text, &w.labels, 0, err);
    if (!status)
        status = session_write(s, build_fact, &w, &(session_writing){.known = 1}, err);
    if (!status)
        *out = w.id;
    end(&w, s);
    return status;
}

sessile_status session_screen_title(const store_core *st, sessile_slice *title, buf *left,
                                    write_labels *labels, size_t of, sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_TITLE, .text = *title};
    sessile_status status = session_check_title(st, *title, err);

    if (!status && title->size)
        status = write_screen(st, &item, left, labels, of, err);
    if (status || !left->size)
        return status;
    *title = (sessile_slice){left->data, left->size};
    return session_check_title(st, *title, err);
}

sessile_status session_set_title(session_core *s, sessile_slice title, sessile_error *err)
{
    sessile_status status;
    buf left;
    one w;

    begin(&w, s, ENTRY_METADATA, SOURCE_HOST);
    buf_init(&left, &s->store->alloc);
    status = session_screen_title(s->store, &title, &left, &w.labels, 0, err);
    if (!status) {
        buf_puts(&w.text, "{\"title\":");
        json_put_string(&w.text, title.data, title.size);
        buf_putc(&w.text, '}');
        status =
            w.text.failed ? fail_nomem(err) : session_write(s, build_fact, &w, NULL, err);
    }
    buf_deinit(&left);
    end(&w, s);
    return status;
}

sessile_status session_clear(session_core *s, sessile_error *err)
{
    return session_write(s, build_clear, NULL, NULL, err);
}
