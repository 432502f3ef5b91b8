/*
 * turn.c: the start of a run: writes the turn to the log, and takes the snapshot of the
 * context that policies start from.
 *
 * Messages are checked and counted before any lock is taken. They are written with their
 * turn entry as one commit. Nothing here knows what a policy does.
 */
#include "run/run.h"

#include <string.h>

#include "base/text.h"
#include "session/fold.h"
#include "session/life.h"
#include "tokens/tokens.h"
#include "session/count.h"
#include "session/read.h"

/* A checked message: the span of its text in turn_write.text, and its tokens. */
typedef struct turn_message {
    size_t at, size;
    token_count tokens;
    message columns; /* read when text no longer grows */
    sessile_id id;
} turn_message;

typedef struct turn_write {
    run_core *run;
    const sessile_run_options *options;
    buf text; /* of all messages, checked */
    turn_message *messages;
    size_t count;
    buf usage, metadata, data; /* checked */
    write_labels labels;       /* of each message, and, as that of text `count`, of the
                                  turn's metadata */
    int64_t time_ms;
    size_t previous; /* context messages before the turn */
} turn_write;

static sessile_status check_object(buf *out, sessile_slice text, const char *what,
                                   unsigned depth, sessile_error *err)
{
    if (text.size == 0)
        return SESSILE_OK;
    sessile_status status = json_check(out, text.data, text.size, depth, err);
    if (status) {
        fail_prefix(err, "%s", what);
        return status;
    }
    if (json_of(out->data, out->size).type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "%s: a JSON object is wanted", what);
    return SESSILE_OK;
}

static sessile_status check_messages(turn_write *w, const sessile_slice *messages,
                                     sessile_error *err)
{
    const sessile_limits *limits = &w->run->session->store->limits;
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; !status && i < w->count; i++) {
        turn_message *m = &w->messages[i];
        if (messages[i].size > limits->message)
            status = fail(
                err, SESSILE_LIMIT,
                "this message has %zu bytes and the limit [message] is %llu: shorten "
                "it, or raise the limit",
                messages[i].size, (unsigned long long)limits->message);
        else {
            m->at = w->text.size;
            status = json_check(&w->text, messages[i].data, messages[i].size,
                                limits->depth, err);
            if (!status)
                status = write_screen_message(w->run->session->store, &w->text, m->at,
                                              &w->labels, i, err);
            m->size = w->text.size - m->at;
        }
        if (status && w->count > 1)
            fail_prefix(err, "message %zu of the turn", i + 1);
    }
    for (size_t i = 0; !status && i < w->count; i++) {
        turn_message *m = &w->messages[i];
        status = message_read(&m->columns, w->text.data + m->at, m->size, NULL, NULL,
                              NULL, w->run->alloc, err);
        if (status && w->count > 1)
            fail_prefix(err, "message %zu of the turn", i + 1);
        else
            m->tokens = session_count(w->run->session, &m->columns);
    }
    return status;
}

/* The parent of the turn: the head; or the base, when others have moved the head and the
 * caller wants a branch then. */
static sessile_status find_parent(turn_write *w, session_core *s, sessile_id *parent,
                                  sessile_error *err)
{
    sessile_id base = w->options->has_base ? w->options->base : s->tree.base;
    sessile_status status = SESSILE_OK;

    *parent = s->tree.head;
    w->run->turn.beside = 0;
    if (w->options->on_conflict != SESSILE_ON_CONFLICT_APPEND)
        status = session_check_base_locked(s, base, 1, err);
    if (status != SESSILE_CONFLICT ||
        w->options->on_conflict != SESSILE_ON_CONFLICT_BRANCH)
        return status;
    error_clear(err);
    *parent = base;
    w->run->turn.beside = 1;
    return session_check_at(s, base, err);
}

/* The first message that was appended since the last turn, for a turn without messages.
 */
static sessile_status find_first(const turn_write *w, session_core *s, sessile_id at,
                                 sessile_error *err)
{
    sessile_id first = SESSILE_NO_ID;

    for (sessile_id id = at; id; id = s->tree.nodes[id].parent) {
        sessile_status status = session_load_locked(s, id, err);
        if (status)
            return status;
        if (s->tree.nodes[id].type == ENTRY_TURN)
            break;
        if (node_is_message(&s->tree.nodes[id]))
            first = id;
    }
    if (first == SESSILE_NO_ID)
        return fail(
            err, SESSILE_INVALID,
            "the turn has no messages, and no message was appended since the last "
            "turn: give it at least one");
    w->run->turn.first = first;
    return SESSILE_OK;
}

/* How many messages of the context were there before the turn. */
static size_t before_turn(const run_core *run, const context *c)
{
    size_t n = 0;
    if (run->kind != RUN_TURN)
        return c->count;
    while (n < c->count && (c->items[n].key.n || c->items[n].key.entry < run->turn.first))
        n++;
    return n;
}

static sessile_status count_previous(turn_write *w, session_core *s, sessile_id at,
                                     sessile_error *err)
{
    const context *c;
    context id;
    sessile_status status;

    if (!w->run->turn.beside) {
        status = session_context_locked(s, &c, err);
        w->previous = !status ? before_turn(w->run, c) : 0;
        return status;
    }
    context_init(&id, w->run->alloc);
    status = session_context_at_locked(s, at, &id, err);
    w->previous = !status ? before_turn(w->run, &id) : 0;
    context_deinit(&id);
    return status;
}

/* session_build: the messages and their turn entry, on the head as it is now. */
static sessile_status build_turn(void *arg, session_core *s, batch *b, sessile_error *err)
{
    turn_write *w = arg;
    sessile_id parent;
    sessile_status status = run_once_find_locked(w->run, s, w->options, err);
    if (status || w->run->turn.again)
        return status;
    status = session_check_running_locked(s, err);
    if (!status)
        status = find_parent(w, s, &parent, err);
    w->run->turn.first = batch_next(b);
    if (!status && w->count == 0)
        status = find_first(w, s, parent, err);
    if (!status)
        status = count_previous(w, s, parent, err);
    if (status)
        return status;
    w->time_ms = b->now_ms;

    for (size_t i = 0; i < w->count; i++) {
        turn_message *m = &w->messages[i];
        parent = m->id = batch_message(b, parent, w->text.data + m->at, m->size,
                                       &m->columns, m->tokens);
    }
    char first[9];
    id_print(w->run->turn.first, first);
    buf_clear(&w->data);
    buf_printf(&w->data, "{\"first\":\"%s\",\"count\":%zu", first, w->count);
    if (w->usage.size) {
        buf_puts(&w->data, ",\"usage\":");
        buf_put(&w->data, w->usage.data, w->usage.size);
    }
    if (w->options->model.size) {
        buf_puts(&w->data, ",\"model\":");
        json_put_string(&w->data, w->options->model.data, w->options->model.size);
    }
    if (w->options->once.size) {
        buf_puts(&w->data, ",\"once\":");
        json_put_string(&w->data, w->options->once.data, w->options->once.size);
    }
    if (w->metadata.size) {
        buf_puts(&w->data, ",\"metadata\":");
        buf_put(&w->data, w->metadata.data, w->metadata.size);
    }
    if (w->options->no_policy || triggers_off(w->run->config.triggers))
        buf_puts(&w->data, ",\"policy\":false");
    buf_putc(&w->data, '}');
    if (w->data.failed)
        return fail_nomem(err);
    w->run->turn.last =
        batch_put(b, parent, ENTRY_TURN, SOURCE_HOST, w->data.data, w->data.size);
    for (size_t i = 0; i <= w->count; i++)
        write_labels_put(&w->labels, b, i,
                         i < w->count ? w->messages[i].id : w->run->turn.last);
    if (w->run->turn.beside) {
        batch_move_head(b, s->tree.head, s->tree.head);
        b->base = w->run->turn.last;
    }
    return SESSILE_OK;
}

sessile_status run_turn(run_core *run, const sessile_slice *messages, size_t count,
                        const sessile_run_options *options, sessile_error *err)
{
    const sessile_limits *limits = &run->session->store->limits;
    turn_write w = {.run = run, .options = options, .count = count};
    buf_init(&w.text, run->alloc);
    buf_init(&w.usage, run->alloc);
    buf_init(&w.metadata, run->alloc);
    buf_init(&w.data, run->alloc);
    sessile_status status = run_once_check(options, err);

    if (status)
        goto out;
    if (count == 0 && options->usage.size) {
        status = fail(err, SESSILE_INVALID,
                      "usage: a turn without messages reports none: give it with the "
                      "message of the model");
        goto out;
    }
    if (count > SIZE_MAX / sizeof *w.messages) {
        status = fail_nomem(err);
        goto out;
    }
    w.messages = count ? mem_zalloc(run->alloc, count * sizeof *w.messages) : NULL;
    if (count && !w.messages) {
        status = fail_nomem(err);
        goto out;
    }
    status = check_messages(&w, messages, err);
    if (!status)
        status = check_object(&w.usage, options->usage, "usage", limits->depth, err);
    if (!status)
        status =
            check_object(&w.metadata, options->metadata, "metadata", limits->depth, err);
    if (!status)
        status = write_screen_json(run->session->store, SESSILE_SCREEN_METADATA,
                                   &w.metadata, 0, &w.labels, count, err);
    if (!status)
        status = write_screen_fixed(run->session->store, SESSILE_SCREEN_METADATA, "usage",
                                    (sessile_slice){w.usage.data, w.usage.size}, 1, err);
    if (!status)
        status =
            session_write(run->session, build_turn, &w,
                          &(session_writing){
                              .known = 1, .wait = &run->wait, .count = &run->log.written},
                          err);
    if (status)
        goto out;
    if (run->turn.again)
        run_written(run, run->turn.last + 1); /* it may not be durable yet */
    run->now_ms = w.time_ms;
    run->saw.entry = run->turn.last;
    run->result.outcome.again = run->turn.again;
    run->result.outcome.first =
        count || run->turn.again ? run->turn.first : run->turn.last;
    run->result.outcome.last = run->turn.last;
    if (!run->turn.again)
        run->result.outcome.head = run->turn.last;
    run->turn.previous = w.previous;

out:
    if (w.messages)
        mem_free(run->alloc, w.messages, count * sizeof *w.messages);
    write_labels_deinit(&w.labels, run->alloc);
    buf_deinit(&w.text);
    buf_deinit(&w.usage);
    buf_deinit(&w.metadata);
    buf_deinit(&w.data);
    return status;
}

/* The text of an item, for a state; arg: the session. */
static sessile_status read_text(void *arg, sessile_key key, buf *out, sessile_error *err)
{
    session_core *s = arg;
    sessile_status status = session_lock(s, err);
    if (status)
        return status;
    status = session_message_locked(s, key, out, err);
    session_unlock(s);
    return status;
}

sessile_status run_new_state(run_core *run, const context *c, const facts *labels,
                             const meter_ratio *fit, sessile_error *err)
{
    const sessile_limits *limits = &run->session->store->limits;
    state_setup setup = {.context = c,
                         .labels = labels,
                         .previous = run->turn.previous,
                         .window = run->config.window,
                         .reserve = run_reserve(run),
                         .fit = fit,
                         .made_ratio = fit[TOKENS_ESTIMATE].ratio,
                         .floor = run->config.keep_min,
                         .result_limit = limits->policy_result,
                         .vars_limit = 16 * 1024,
                         .depth = limits->depth,
                         .read = read_text,
                         .read_arg = run->session,
                         .alloc = run->alloc};
    return state_new(&run->state, &setup, err);
}

/* System prompt and tools that are not entries reduce the room like the reserve, for
 * policies and for triggers. At most by half: a wrong report must not leave a policy
 * without room. */
static sessile_status find_held(run_core *run, sessile_error *err)
{
    int64_t room = laws_room(run->config.window, run->config.reserve);
    sessile_status status =
        session_outside_locked(run->session, run->saw.entry, &run->saw.held, err);
    if (!status && run->config.window > 0 && run->saw.held > room / 2)
        run->saw.held = room / 2;
    return status;
}

sessile_status run_snapshot(run_core *run, sessile_error *err)
{
    session_core *s = run->session;
    buf vars;
    context at;
    facts labels;
    const context *c = NULL;
    meter_ratio fit[TOKEN_UNITS];
    sessile_tokens whole;
    int messages_only;
    sessile_status status = session_lock_within(s, &run->wait, err);
    if (status)
        return status;
    buf_init(&vars, run->alloc);
    context_init(&at, run->alloc);
    facts_init(&labels, run->alloc);
    if (run->kind == RUN_TURN || run->replay.runs || run->fallback.runs) {
        /* Others may have written since: the policy sees the context at the turn's end.
         */
        if (s->tree.head == run->saw.entry) {
            status = session_context_locked(s, &c, err);
        } else {
            status = session_context_at_locked(s, run->saw.entry, &at, err);
            c = &at;
        }
        if (!status && run->replay.runs) {
            run->turn.previous = before_turn(run, c);
            run->result.outcome.head = s->tree.head;
        }
    } else {
        status = session_refresh_locked(s, err);
        if (!status && run->kind == RUN_COMPACT)
            status = session_check_running_locked(s, err);
        if (!status)
            status = session_context_locked(s, &c, err);
        run->saw.entry = s->tree.head;
        s->tree.base = s->tree.head;
        run->turn.previous = c ? c->count : 0;
        run->result.outcome.head = s->tree.head;
    }
    if (!status) {
        run->saw.context_at =
            run->saw.entry ? s->tree.nodes[run->saw.entry].context_at : 0;
        run->saw.vars_at = run->saw.entry ? s->tree.nodes[run->saw.entry].vars_at : 0;
        run->saw.count = s->tree.node_count;
        status = session_vars_locked(s, run->saw.entry, &vars, err);
    }
    if (!status)
        status = run_count_locked(run, err);
    if (!status)
        status = session_fit_locked(s, run->saw.entry, fit, err);
    if (!status)
        status = find_held(run, err);
    if (!status)
        status = session_tokens_at_locked(s, run->saw.entry, &whole, &messages_only, err);
    /* A copy, so that all hooks see the same labels. */
    if (!status && facts_labels(&s->fold.facts, &labels))
        status = fail_nomem(err);
    if (!status)
        status = run_new_state(run, c, &labels, fit, err);
    session_unlock(s);
    if (!status)
        status = run_acquire_worker(run, err);

    if (!status && vars.size > 2)
        status = run_vars_load(run, vars.data, vars.size, err);
    if (!status) {
        run->result.outcome.tokens_before = whole.tokens;
        run->result.outcome.tokens_after = run->result.outcome.tokens_before;
    }
    context_deinit(&at);
    facts_deinit(&labels);
    buf_deinit(&vars);
    return status;
}
