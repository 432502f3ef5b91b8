/*
 * checkpoint.c: writes, prunes and withdraws checkpoints.
 *
 * A checkpoint is one fact, so one append: a reference into the log and the host's state,
 * compressed when it is large. The number of checkpoints is limited. The commit that
 * exceeds the limit also withdraws the oldest one; checkpoints with a name are withdrawn
 * last.
 */
#include "operations/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/compress.h"
#include "screen/write.h"
#include "session/agent_info.h"
#include "session/fold.h"

enum {
    KEPT = 50,             /* the default number */
    COMPRESSED_FROM = 4096 /* bytes of a state */
};

typedef struct checkpoint_write {
    const sessile_checkpoint_options *options;
    buf state, metadata, zstd; /* checked */
    buf data;
    write_labels labels;
    sessile_id at; /* its subject; SESSILE_NO_ID: the head */
    sessile_id id;
} checkpoint_write;

/* ------------------------------------------------------------------ its data */

static void put_state(const checkpoint_write *w, buf *out)
{
    if (w->zstd.size) {
        buf_puts(out, ",\"zstd\":\"");
        base64_put(out, w->zstd.data, w->zstd.size);
        buf_printf(out, "\",\"bytes\":%zu", w->state.size);
    } else if (w->state.size) {
        buf_puts(out, ",\"state\":");
        buf_put(out, w->state.data, w->state.size);
    }
}

static void put_agent(const session_core *s, buf *out)
{
    const session_agent_info *info = &s->identity.info;

    buf_puts(out, ",\"agent\":{\"name\":");
    json_put_string(out, s->identity.agent,
                    utf8_valid(s->identity.agent, s->identity.agent_size)
                        ? s->identity.agent_size
                        : 0);
    if (info->version.size) {
        buf_puts(out, ",\"version\":");
        json_put_string(out, info->version.data, info->version.size);
    }
    if (info->config.size) {
        buf_puts(out, ",\"config\":");
        json_put_string(out, info->config.data, info->config.size);
    }
    if (info->tools.size) {
        buf_puts(out, ",\"tools\":");
        buf_put(out, info->tools.data, info->tools.size);
    }
    buf_putc(out, '}');
}

void checkpoint_checksum(const char *data, size_t size, char out[65])
{
    unsigned char sum[32];

    sha256(sum, data, size);
    hex_encode(out, sum, sizeof sum);
}

/* Messages and tokens of the context at an entry. */
static sessile_status measure(session_core *s, sessile_id at, size_t *messages,
                              sessile_tokens *tokens, sessile_error *err)
{
    sessile_status status;
    const context *c;
    context there;

    if (at == s->tree.head) {
        status = session_context_locked(s, &c, err);
        if (!status)
            *messages = c->count;
        return status ? status : session_tokens_locked(s, tokens, err);
    }
    context_init(&there, &s->store->alloc);
    status = session_context_at_locked(s, at, &there, err);
    *messages = there.count;
    *tokens = (sessile_tokens){.tokens = context_tokens(&there), .source = "estimate"};
    context_deinit(&there);
    return status;
}

static sessile_status put_data(checkpoint_write *w, session_core *s, sessile_error *err)
{
    const sessile_checkpoint_options *o = w->options;
    sessile_id at = w->at == SESSILE_NO_ID ? s->tree.head : w->at;
    sessile_tokens tokens;
    size_t messages = 0;
    char head[9], sum[65];
    sessile_status status = measure(s, at, &messages, &tokens, err);

    if (status)
        return status;
    buf_clear(&w->data);
    id_print(at, head);
    buf_putc(&w->data, '{');
    if (o->name.size) {
        buf_puts(&w->data, "\"name\":");
        json_put_string(&w->data, o->name.data, o->name.size);
        buf_putc(&w->data, ',');
    }
    buf_printf(&w->data, "\"head\":\"%s\",\"reason\":\"%s\"", head,
               checkpoint_reason_name(o->reason));
    if (o->event.size) {
        buf_puts(&w->data, ",\"event\":");
        json_put_string(&w->data, o->event.data, o->event.size);
    }
    put_agent(s, &w->data);
    buf_printf(&w->data, ",\"messages\":%zu,\"tokens\":[%" PRId64 ",\"%s\"]", messages,
               tokens.tokens, tokens.source);
    if (w->metadata.size) {
        buf_puts(&w->data, ",\"metadata\":");
        buf_put(&w->data, w->metadata.data, w->metadata.size);
    }
    put_state(w, &w->data);
    if (w->data.failed)
        return fail_nomem(err);
    checkpoint_checksum(w->data.data, w->data.size, sum);
    buf_printf(&w->data, ",\"checksum\":\"%s\"}", sum);
    return w->data.failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ how many */

static void withdraw(const session_core *s, batch *b, sessile_id id)
{
    char data[64];
    int size = snprintf(data, sizeof data, "{\"withdraws\":\"%08" PRIx32 "\"}", id);

    batch_put(b, s->tree.head, ENTRY_TOMBSTONE, SOURCE_HOST, data, (size_t)size);
}

static uint32_t keep_of(const session_core *s, const sessile_checkpoint_options *o)
{
    return o->keep ? o->keep : session_config(s).checkpoint.keep;
}

/* Withdraws one when the limit is reached: the oldest without a name, else the oldest. */
static sessile_status evict(session_core *s, batch *b, uint32_t most, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    size_t count, over;
    fact *list;

    if (facts_in_force(&s->fold.facts, FACT_CHECKPOINT, a, &list, &count))
        return fail_nomem(err);
    over = count >= most ? count - most + 1 : 0;
    for (int named = 0; named < 2; named++)
        for (size_t i = 0; over && i < count; i++)
            if (!list[i].name_size == !named) {
                withdraw(s, b, list[i].about);
                over--;
            }
    mem_free(a, list, count * sizeof *list);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ writing */

static sessile_status build_checkpoint(void *arg, session_core *s, batch *b,
                                       sessile_error *err)
{
    checkpoint_write *w = arg;
    sessile_status status = put_data(w, s, err);

    if (!status)
        status = evict(s, b, keep_of(s, w->options), err);
    if (status)
        return status;
    w->id = batch_put(b, w->at == SESSILE_NO_ID ? s->tree.head : w->at, ENTRY_CHECKPOINT,
                      SOURCE_HOST, w->data.data, w->data.size);
    write_labels_put(&w->labels, b, 0, w->id);
    return SESSILE_OK;
}

static sessile_slice text_of(const buf *b)
{
    return (sessile_slice){b->data, b->size};
}

/* The names in it, and what the agent says about itself. */
static sessile_status screen_names(const session_core *s,
                                   const sessile_checkpoint_options *o,
                                   sessile_error *err)
{
    const session_agent_info *info = &s->identity.info;
    const struct name {
        const char *what;
        sessile_slice text;
        int is_json;
    } names[] = {{"name", o->name, 0},
                 {"event", o->event, 0},
                 {"agent's version", text_of(&info->version), 0},
                 {"agent's configuration", text_of(&info->config), 0},
                 {"agent's tools", text_of(&info->tools), 1}};
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++)
        status = write_screen_fixed(s->store, SESSILE_SCREEN_METADATA, names[i].what,
                                    names[i].text, names[i].is_json, err);
    return status;
}

/* Checks and screens the texts of its options. */
static sessile_status check_texts(checkpoint_write *w, const session_core *s,
                                  sessile_error *err)
{
    const sessile_checkpoint_options *o = w->options;
    sessile_status status = session_check_json(&w->state, s, o->state, "state", 0, err);

    if (!status)
        status = session_check_json(&w->metadata, s, o->metadata, "metadata", 1, err);
    if (!status)
        status = write_screen_json(s->store, SESSILE_SCREEN_STATE, &w->state, 0,
                                   &w->labels, 0, err);
    if (!status)
        status = write_screen_json(s->store, SESSILE_SCREEN_METADATA, &w->metadata, 0,
                                   &w->labels, 0, err);
    if (!status)
        status = screen_names(s, o, err);
    if (!status && w->state.size >= COMPRESSED_FROM)
        status = compress_put(&w->zstd, w->state.data, w->state.size, err);
    return status;
}

sessile_status session_checkpoint(session_core *s,
                                  const sessile_checkpoint_options *options,
                                  sessile_id *out, sessile_error *err)
{
    return session_checkpoint_at(s, SESSILE_NO_ID, options, out, err);
}

sessile_status session_checkpoint_at(session_core *s, sessile_id at,
                                     const sessile_checkpoint_options *options,
                                     sessile_id *out, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    checkpoint_write w = {.options = options, .at = at, .id = SESSILE_NO_ID};
    sessile_status status =
        session_check_text(options->name, CHECKPOINT_NAME_MOST, "name", err);

    if (!status)
        status = session_check_text(options->event, CHECKPOINT_NAME_MOST, "event", err);
    if (status)
        return status;
    buf_init(&w.state, a);
    buf_init(&w.metadata, a);
    buf_init(&w.zstd, a);
    buf_init(&w.data, a);
    status = check_texts(&w, s, err);
    if (!status)
        status =
            session_write(s, build_checkpoint, &w, &(session_writing){.known = 1}, err);
    if (!status)
        *out = w.id;
    write_labels_deinit(&w.labels, a);
    buf_deinit(&w.state);
    buf_deinit(&w.metadata);
    buf_deinit(&w.zstd);
    buf_deinit(&w.data);
    return status;
}

/* ------------------------------------------------------------------ withdrawing */

sessile_status checkpoint_find_locked(session_core *s, sessile_id id, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    size_t count, i = 0;
    fact *list;

    if (facts_in_force(&s->fold.facts, FACT_CHECKPOINT, a, &list, &count))
        return fail_nomem(err);
    while (i < count && list[i].about != id)
        i++;
    mem_free(a, list, count * sizeof *list);
    if (i < count)
        return SESSILE_OK;
    return session_name_error(
        s,
        fail(err, SESSILE_NOTFOUND,
             "there is no checkpoint %08" PRIx32 ": it has %zu, list them", id, count),
        err);
}

static sessile_status build_withdrawal(void *arg, session_core *s, batch *b,
                                       sessile_error *err)
{
    const sessile_id *id = arg;
    sessile_status status = checkpoint_find_locked(s, *id, err);

    if (!status)
        withdraw(s, b, *id);
    return status;
}

sessile_status session_withdraw_checkpoint(session_core *s, sessile_id id,
                                           sessile_error *err)
{
    return session_write(s, build_withdrawal, &id, NULL, err);
}

/* ------------------------------------------------------------------ who asks */
