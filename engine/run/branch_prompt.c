/*
 * branch_prompt.c: the request for a branch summary that goes to the host's model when no
 * policy has a branch_summary hook.
 *
 * Owns the prompt, and the transcript: the newest messages of the branch as plain text,
 * each cut to a size, as many as fit the window. It is text because providers refuse a
 * list of messages that ends between a call and its result. It never fails because of
 * what a message holds: content of an unknown type is shown as the name of the type.
 */
#include "run/run.h"

#include "base/text.h"
#include "codec/message.h"

enum {
    MESSAGE_MOST = 4000,         /* bytes of one message */
    CALL_MOST = 400,             /* bytes of a call's arguments */
    TRANSCRIPT_MOST = 256 * 1024 /* bytes of all; less in a small window */
};

static const char system_prompt[] =
    "You are given the part of a conversation that is about to be left: the work goes on "
    "from an earlier point, and whoever goes on will not see it. Write down for them, "
    "briefly: what was tried and how it ended; what was decided, and why; which files "
    "were read or changed; what is still open. Keep names, paths, commands, numbers and "
    "identifiers as they stand. Invent nothing, and address nobody.";

/* The text of a JSON string, cut to `most` bytes. */
static void put_cut(buf *out, json value, size_t most)
{
    size_t at = out->size, cut;

    if (json_string(out, value) || out->failed || out->size - at <= most)
        return;
    cut = utf8_floor(out->data + at, out->size - at, most);
    out->size = at + cut;
    buf_puts(out, " …");
}

/* arguments: JSON in a string, or an object. */
static void put_call(buf *out, json name, json arguments)
{
    buf_puts(out, "-> ");
    if (name.type == JSON_STRING)
        put_cut(out, name, CALL_MOST);
    if (arguments.type == JSON_STRING) {
        buf_putc(out, ' ');
        put_cut(out, arguments, CALL_MOST);
    } else if (arguments.type != JSON_NONE) {
        size_t size = utf8_floor(arguments.at, arguments.size, CALL_MOST);
        buf_putc(out, ' ');
        buf_put(out, arguments.at, size);
        if (size < arguments.size)
            buf_puts(out, " …");
    }
    buf_putc(out, '\n');
}

static void put_content(buf *out, json content, int nested)
{
    json_iter it;

    if (content.type == JSON_STRING) {
        put_cut(out, content, MESSAGE_MOST);
        buf_putc(out, '\n');
        return;
    }
    if (content.type != JSON_ARRAY)
        return;
    for (it = json_begin(content); json_next(&it);) {
        json type = json_get(it.value, "type");
        if (json_is(type, "text")) {
            put_content(out, json_get(it.value, "text"), 1);
        } else if (json_is(type, "tool_use")) {
            put_call(out, json_get(it.value, "name"), json_get(it.value, "input"));
        } else if (json_is(type, "tool_result") && !nested) {
            put_content(out, json_get(it.value, "content"), 1);
        } else if (type.type == JSON_STRING) {
            buf_putc(out, '[');
            put_cut(out, type, CALL_MOST);
            buf_puts(out, "]\n");
        }
    }
}

static void put_calls(buf *out, json calls)
{
    json_iter it;

    if (calls.type != JSON_ARRAY)
        return;
    for (it = json_begin(calls); json_next(&it);) {
        json named = json_get(it.value, "function");
        if (named.type != JSON_OBJECT)
            named = it.value;
        put_call(out, json_get(named, "name"), json_get(named, "arguments"));
    }
}

static sessile_status put_message(run_core *run, size_t i, buf *out, sessile_error *err)
{
    const item *it = &state_before(run->state)->items[i];
    size_t at = out->size;
    sessile_slice text;
    sessile_status status = state_text(run->state, it->key, &text, err);

    if (status)
        return status;
    json root = json_of(text.data, text.size);
    buf_printf(out, "## %s\n", role_name((sessile_role)it->role));
    put_content(out, json_get(root, "content"), 0);
    put_calls(out, json_get(root, "tool_calls"));
    /* A message can have many blocks, so the whole is cut as well. */
    if (out->size - at > 2 * MESSAGE_MOST) {
        out->size = at + utf8_floor(out->data + at, out->size - at, 2 * MESSAGE_MOST);
        buf_puts(out, " …\n");
    }
    buf_putc(out, '\n');
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

/* The newest messages that fit, oldest first. */
static sessile_status put_transcript(run_core *run, buf *out, sessile_error *err)
{
    size_t count = state_before(run->state)->count, first = count, most = TRANSCRIPT_MOST;
    int64_t room = laws_room(run->config.window, run->config.reserve);
    sessile_status status = SESSILE_OK;
    buf one;
    size_t size = 0;

    if (run->config.window &&
        (uint64_t)room * 2 < most) /* two bytes a token is a safe estimate */
        most = (size_t)room * 2;
    buf_init(&one, run->alloc);
    while (!status && first > 0) {
        buf_clear(&one);
        status = put_message(run, first - 1, &one, err);
        if (status || (size + one.size > most && first < count))
            break;
        size += one.size;
        first--;
    }
    buf_deinit(&one);
    if (first > 0)
        buf_printf(out, "(%zu earlier messages are left out.)\n\n", first);
    for (size_t i = first; !status && i < count; i++)
        status = put_message(run, i, out, err);
    return status;
}

sessile_status branch_prompt(run_core *run, buf *out, sessile_error *err)
{
    sessile_status status;
    buf text;

    buf_init(&text, run->alloc);
    status = put_transcript(run, &text, err);
    if (!status && run->options.instructions_size) {
        buf_puts(&text, "What to look at: ");
        buf_put(&text, run->options.instructions, run->options.instructions_size);
        buf_putc(&text, '\n');
    }
    buf_clear(out);
    buf_puts(out, "{\"messages\":[{\"role\":\"system\",\"content\":");
    json_put_cstring(out, system_prompt);
    buf_puts(out, "},{\"role\":\"user\",\"content\":");
    json_put_string(out, text.data ? text.data : "", text.size);
    buf_puts(out, "}]");
    if (run->options.model_size) {
        buf_puts(out, ",\"model\":");
        json_put_string(out, run->options.model, run->options.model_size);
    }
    buf_puts(out, ",\"purpose\":\"branch_summary\"}");
    if (!status && (text.failed || out->failed))
        status = fail_nomem(err);
    buf_deinit(&text);
    return status;
}
