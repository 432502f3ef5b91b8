/*
 * suspend.c: suspensions: the host waits for an approval, or for a tool that takes days.
 *
 * A `suspend` fact {"reason":…,"state":…} refuses everything that would add to the
 * conversation or move its head, in any process, until a fact {"off":true} ends it.
 * resume_with appends the messages that were waited for in the same commit; cancel
 * appends none. Reading, labels and settings are not affected. A policy that waits for
 * its model is a pending run instead, which blocks nobody.
 */
#include "operations/annotate.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "operations/append.h"
#include "session/fold.h"
#include "session/life.h"

typedef struct suspension_write {
    buf text;                      /* of the suspend entry */
    const sessile_slice *messages; /* checked */
    const message *columns;
    const token_count *tokens;
    size_t count;
    write_labels labels; /* of each message; 0, when there are none, of the entry */
    sessile_id id;       /* out: of the suspend entry, or of the first message */
    int pending_runs;    /* 1: close pending runs as well */
} suspension_write;

static const fact *find_suspension(const session_core *s)
{
    return facts_find(&s->fold.facts, FACT_SUSPEND, 0, "", 0);
}

/* ------------------------------------------------------------------ writing */

static sessile_id put_host_fact(const session_core *s, batch *b, entry_type type,
                                const buf *text)
{
    return batch_put(b, s->tree.head, type, SOURCE_HOST, text->data, text->size);
}

static sessile_status build_suspend(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    suspension_write *w = arg;
    sessile_status status = session_check_running_locked(s, err);

    if (status)
        return status;
    w->id = put_host_fact(s, b, ENTRY_SUSPEND, &w->text);
    write_labels_put(&w->labels, b, 0, w->id);
    return SESSILE_OK;
}

static sessile_status close_pending_runs(session_core *s, batch *b, size_t *closed,
                                         sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    sessile_status status = SESSILE_OK;
    size_t count;
    fact *pending_runs;
    buf text;

    if (facts_in_force(&s->fold.facts, FACT_PENDING_RUN, a, &pending_runs, &count))
        return fail_nomem(err);
    buf_init(&text, a);
    for (size_t i = 0; !status && i < count; i++) {
        buf_clear(&text);
        buf_printf(&text,
                   "{\"off\":true,\"pending_run\":\"%08" PRIx32 "\",\"cancelled\":true}",
                   pending_runs[i].about);
        if (text.failed)
            status = fail_nomem(err);
        else
            put_host_fact(s, b, ENTRY_PENDING_RUN, &text);
    }
    *closed = count;
    buf_deinit(&text);
    mem_free(a, pending_runs, count * sizeof *pending_runs);
    return status;
}

static sessile_status build_end(void *arg, session_core *s, batch *b, sessile_error *err)
{
    suspension_write *w = arg;
    const fact *suspension = find_suspension(s);
    sessile_status status = SESSILE_OK;
    size_t closed = 0;

    if (suspension)
        put_host_fact(s, b, ENTRY_SUSPEND, &w->text);
    if (w->pending_runs)
        status = close_pending_runs(s, b, &closed, err);
    if (!status && !suspension && !closed)
        return session_name_error(
            s,
            fail(err, SESSILE_NOTFOUND,
                 w->pending_runs ? "it is not suspended and has no pending run: there is "
                                   "nothing to cancel"
                                 : "it is not suspended: there is nothing to resume"),
            err);
    sessile_id parent = s->tree.head;
    w->id = w->count ? batch_next(b) : SESSILE_NO_ID;
    for (size_t i = 0; !status && i < w->count; i++) {
        parent = batch_message(b, parent, w->messages[i].data, w->messages[i].size,
                               &w->columns[i], w->tokens[i]);
        write_labels_put(&w->labels, b, i, parent);
    }
    return status;
}

static sessile_status write_suspension(session_core *s, session_build build,
                                       suspension_write *w, sessile_error *err)
{
    return w->text.failed ? fail_nomem(err) : session_write(s, build, w, NULL, err);
}

static sessile_status put_reason(buf *out, sessile_slice reason, const session_core *s,
                                 sessile_error *err)
{
    if (reason.size > s->store->limits.message)
        return fail(err, SESSILE_LIMIT,
                    "the reason has more bytes than the limit [message], %" PRIu64,
                    s->store->limits.message);
    if (!utf8_valid(reason.data, reason.size))
        return fail(err, SESSILE_INVALID, "the reason is not UTF-8");
    buf_puts(out, "\"reason\":");
    json_put_string(out, reason.data ? reason.data : "", reason.size);
    return SESSILE_OK;
}

static sessile_status put_suspended_state(suspension_write *w, const session_core *s,
                                          sessile_slice state, sessile_error *err)
{
    sessile_status status;
    buf checked;

    buf_init(&checked, &s->store->alloc);
    status = json_check(&checked, state.data, state.size, s->store->limits.depth, err);
    if (status)
        fail_prefix(err, "state");
    else
        status = write_screen_json(s->store, SESSILE_SCREEN_STATE, &checked, 0,
                                   &w->labels, 0, err);
    buf_puts(&w->text, ",\"state\":");
    buf_put(&w->text, checked.data, checked.size);
    buf_deinit(&checked);
    return status;
}

/* A reason is kept with the state, and is looked at as one. */
static sessile_status put_screened_reason(suspension_write *w, const session_core *s,
                                          sessile_slice reason, sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_STATE, .text = reason};
    sessile_status status = SESSILE_OK;
    buf left;

    buf_init(&left, &s->store->alloc);
    if (reason.size && utf8_valid(reason.data, reason.size))
        status = write_screen(s->store, &item, &left, &w->labels, 0, err);
    if (left.size)
        reason = (sessile_slice){left.data, left.size};
    if (!status)
        status = put_reason(&w->text, reason, s, err);
    buf_deinit(&left);
    return status;
}

sessile_status session_suspend(session_core *s, sessile_slice reason, sessile_slice state,
                               sessile_id *out, sessile_error *err)
{
    const sessile_limits *limits = &s->store->limits;
    suspension_write w = {.id = SESSILE_NO_ID};
    sessile_status status;

    if (reason.size > limits->message || state.size > limits->message - reason.size)
        return fail(err, SESSILE_LIMIT,
                    "reason and state have more bytes than the limit [message], %" PRIu64,
                    limits->message);
    buf_init(&w.text, &s->store->alloc);
    buf_putc(&w.text, '{');
    status = put_screened_reason(&w, s, reason, err);
    if (!status && state.size)
        status = put_suspended_state(&w, s, state, err);
    buf_putc(&w.text, '}');
    if (!status)
        status = write_suspension(s, build_suspend, &w, err);
    if (!status)
        *out = w.id;
    write_labels_deinit(&w.labels, &s->store->alloc);
    buf_deinit(&w.text);
    return status;
}

sessile_status session_resume_with(session_core *s, const sessile_slice *messages,
                                   size_t count, sessile_id *first, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    suspension_write w = {.count = count, .id = SESSILE_NO_ID};
    sessile_status status = SESSILE_OK;
    sessile_slice *checked = NULL;
    message *columns = NULL;
    token_count *tokens = NULL;
    buf *texts = NULL;

    if (count > SIZE_MAX / sizeof *columns)
        return fail_nomem(err);
    buf_init(&w.text, a);
    buf_puts(&w.text, "{\"off\":true}");
    if (count) {
        checked = mem_zalloc(a, count * sizeof *checked);
        columns = mem_zalloc(a, count * sizeof *columns);
        tokens = mem_zalloc(a, count * sizeof *tokens);
        texts = mem_zalloc(a, count * sizeof *texts);
        if (!checked || !columns || !tokens || !texts)
            status = fail_nomem(err);
    }
    for (size_t i = 0; texts && i < count; i++)
        buf_init(&texts[i], a);
    for (size_t i = 0; !status && i < count; i++) {
        status = session_check_message(s, messages[i], &texts[i], &columns[i], &tokens[i],
                                       &w.labels, i, err);
        if (status && count > 1)
            fail_prefix(err, "message %zu", i + 1);
        checked[i] = (sessile_slice){texts[i].data, texts[i].size};
    }
    w.messages = checked;
    w.columns = columns;
    w.tokens = tokens;
    if (!status)
        status = write_suspension(s, build_end, &w, err);
    if (!status)
        *first = w.id;
    for (size_t i = 0; texts && i < count; i++)
        buf_deinit(&texts[i]);
    write_labels_deinit(&w.labels, a);
    mem_free(a, checked, count * sizeof *checked);
    mem_free(a, columns, count * sizeof *columns);
    mem_free(a, tokens, count * sizeof *tokens);
    mem_free(a, texts, count * sizeof *texts);
    buf_deinit(&w.text);
    return status;
}

sessile_status session_cancel(session_core *s, sessile_slice reason, sessile_error *err)
{
    suspension_write w = {.pending_runs = 1};
    sessile_status status;

    buf_init(&w.text, &s->store->alloc);
    buf_puts(&w.text, "{\"off\":true,\"cancelled\":true,");
    status = put_reason(&w.text, reason, s, err);
    buf_putc(&w.text, '}');
    if (!status)
        status =
            write_screen_fixed(s->store, SESSILE_SCREEN_STATE, "reason", reason, 0, err);
    if (!status)
        status = write_suspension(s, build_end, &w, err);
    buf_deinit(&w.text);
    return status;
}

/* ------------------------------------------------------------------ reading */

static sessile_status pack_suspension(session_core *s, sessile_id id,
                                      sessile_suspension **out, sessile_error *err)
{
    buf text, reason;
    sessile_status status;
    entry e;

    buf_init(&text, &s->store->alloc);
    buf_init(&reason, &s->store->alloc);
    status = session_read_entry(s, id, &text, &e, err);
    if (!status) {
        json state = json_get(e.data, "state");
        size_t size = state.type == JSON_NONE ? 0 : state.size;
        (void)json_string(&reason, json_get(e.data, "reason"));
        sessile_suspension *p =
            host_alloc(&s->store->alloc, sizeof *p + reason.size + size + 2);
        if (!p || reason.failed) {
            host_free(p);
            status = fail_nomem(err);
        } else {
            char *to = (char *)(p + 1);
            *p = (sessile_suspension){id, e.time_ms, {to, reason.size}, {NULL, size}};
            if (reason.size)
                memcpy(to, reason.data, reason.size);
            to[reason.size] = 0;
            to += reason.size + 1;
            p->state.data = to;
            if (size)
                memcpy(to, state.at, size);
            to[size] = 0;
            *out = p;
        }
    }
    buf_deinit(&text);
    buf_deinit(&reason);
    return status;
}

sessile_status session_suspension(session_core *s, sessile_suspension **out,
                                  sessile_error *err)
{
    sessile_status status = session_lock_fresh(s, err);

    if (status)
        return status;
    const fact *suspension = find_suspension(s);
    if (suspension)
        status = pack_suspension(s, suspension->entry, out, err);
    session_unlock(s);
    return status;
}
