/*
 * session.c: how a session is written, and how a handle keeps up with others.
 *
 * Everything that is ever written goes through session_write(): under the mutex and the
 * log's lock, on the head as it is then. New entries are folded before they are
 * appended, and the fold is rewound when the log refuses them. So a write that fails
 * leaves no trace, neither in the log nor in memory. Must never hold the mutex across a
 * call of the host, nor across the sync of what it wrote: the wait for the sync comes
 * afterwards. (The log may sync what others left behind, with both locks held, before it
 * takes a write: log_begin().)
 */
#include "session/fold.h"
#include "session/writes.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ keeping up */

sessile_status session_lock_fresh(session_core *s, sessile_error *err)
{
    sessile_status status = session_lock(s, err);

    if (status)
        return status;
    status = session_refresh_locked(s, err);
    if (status)
        session_unlock(s);
    return status;
}

void session_moment_begin(session_core *s, int is_read)
{
    const uintptr_t self = (uintptr_t)pthread_self();

    if (atomic_load(&s->moment.of) == self)
        return;
    atomic_store(&s->moment.read, is_read ? self : 0);
    atomic_store(&s->moment.of, self);
}

void session_moment_end(session_core *s)
{
    uintptr_t self = (uintptr_t)pthread_self();

    atomic_compare_exchange_strong(&s->moment.of, &self, 0);
}

/* 1 if this thread has read the log in its moment. Of two threads that begin one at the
 * same time, `read` may be that of neither: then both ask. */
static int is_read_already(const session_core *s)
{
    const uintptr_t self = (uintptr_t)pthread_self();

    return atomic_load(&s->moment.of) == self && atomic_load(&s->moment.read) == self &&
           !s->index.failed && !log_replaced(s->log);
}

sessile_status session_refresh_locked(session_core *s, sessile_error *err)
{
    fold f = {.s = s};
    sessile_status status = session_check_process(s, err);

    if (!status)
        status = session_check_usable(s, err);
    if (status || is_read_already(s))
        return status;
    log_set_timeout(s->log, s->waiting.call ? session_wait_left(s, s->waiting.call)
                                            : atomic_load(&s->waiting.timeout_ms));
    status = session_name_error(s, log_refresh(s->log, fold_visit, &f, err), err);
    if (s->index.failed || log_replaced(s->log)) {
        status = session_reload_locked(s, err);
        if (!status)
            status = session_name_error(s, log_refresh(s->log, fold_visit, &f, err), err);
    }
    fold_forget_parts(s);
    if (!status && atomic_load(&s->moment.of) == (uintptr_t)pthread_self())
        atomic_store(&s->moment.read, (uintptr_t)pthread_self());
    return status;
}

/* ------------------------------------------------------------------ batches */

sessile_id batch_next(const batch *b)
{
    return b->first + (sessile_id)b->count;
}

void batch_init(batch *b, sessile_id first, int64_t now_ms, const allocator *a)
{
    memset(b, 0, sizeof *b);
    b->first = first;
    b->now_ms = now_ms;
    b->alloc = a;
    buf_init(&b->text, a);
    buf_init(&b->user, a);
}

/* Where the next entry begins. 0 or -1. */
static int batch_begin(batch *b)
{
    if (mem_grow(b->alloc, (void **)&b->starts, &b->capacity, b->count + 1,
                 sizeof *b->starts)) {
        b->text.failed = 1;
        return -1;
    }
    b->starts[b->count++] = b->text.size;
    return 0;
}

void batch_add(batch *b, entry_fields *fields)
{
    fields->id = batch_next(b);
    fields->time_ms = b->now_ms;
    if (b->user.size)
        fields->user_json = b->user.data;
    if (!batch_begin(b))
        entry_put(&b->text, fields);
}

void batch_copy(batch *b, const char *text, size_t size)
{
    size_t at = b->text.size;
    char id[9];

    id_print(batch_next(b), id);
    if (batch_begin(b))
        return;
    buf_put(&b->text, text, size);
    if (!b->text.failed) /* every text that came out of a log begins {"id":"00000000" */
        memcpy(b->text.data + at + 7, id, 8);
}

sessile_id batch_message_from(batch *b, sessile_id parent, entry_source source,
                              const char *text, size_t size, const message *m,
                              token_count tokens)
{
    sessile_id id = batch_next(b);
    entry_fields fields = {.parent = parent,
                           .type = ENTRY_MESSAGE,
                           .source = source,
                           .data = text,
                           .data_size = size,
                           .tokens = tokens.tokens,
                           .token_source = token_unit_name(tokens.unit)};
    buf author; /* a span of the message has no NUL */

    buf_init(&author, b->alloc);
    if (m->author.type == JSON_STRING) {
        buf_put(&author, m->author.at, m->author.size);
        fields.author_json = author.data;
    }
    if (author.failed)
        b->text.failed = 1;
    else
        batch_add(b, &fields);
    buf_deinit(&author);
    return id;
}

sessile_id batch_message(batch *b, sessile_id parent, const char *text, size_t size,
                         const message *m, token_count tokens)
{
    return batch_message_from(b, parent, source_of_role(m->role), text, size, m, tokens);
}

sessile_id batch_put(batch *b, sessile_id parent, entry_type type, entry_source source,
                     const char *data, size_t size)
{
    sessile_id id = batch_next(b);
    entry_fields fields = {.parent = parent,
                           .type = type,
                           .source = source,
                           .data = data,
                           .data_size = size,
                           .tokens = -1};

    batch_add(b, &fields);
    return id;
}

void batch_move_head(batch *b, sessile_id to, sessile_id was)
{
    char data[32], id[9];

    id_print(to, id);
    int size = snprintf(data, sizeof data, "{\"head\":\"%s\"}", id);
    batch_put(b, was, ENTRY_HEAD, SOURCE_HOST, data, (size_t)size);
}

sessile_slice batch_entry(const batch *b, size_t i)
{
    size_t end = i + 1 < b->count ? b->starts[i + 1] : b->text.size;

    return (sessile_slice){b->text.data + b->starts[i], end - b->starts[i]};
}

void batch_deinit(batch *b)
{
    if (b->starts)
        mem_free(b->alloc, b->starts, b->capacity * sizeof *b->starts);
    buf_deinit(&b->text);
    buf_deinit(&b->user);
}

/* ------------------------------------------------------------------ writing */

/* Folds the batch, then appends it; puts the fold back if that fails. */
static sessile_status write_batch(session_core *s, const batch *b, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    fold f = {.s = s, .own = 1};
    sessile_status status = SESSILE_OK;
    sessile_slice *texts;
    fold_savepoint before;

    if (b->count > SESSILE_NO_ID - b->first - (size_t)1)
        return fail(err, SESSILE_LIMIT,
                    "a session holds at most 2^32 - 1 entries: begin a new "
                    "session");
    texts = mem_alloc(a, b->count * sizeof *texts);
    if (!texts)
        return fail_nomem(err);
    fold_forget_parts(s);
    fold_savepoint_set(&f, &before);
    for (size_t i = 0; !status && i < b->count; i++) {
        texts[i] = batch_entry(b, i);
        status =
            fold_visit(&f, b->first + (sessile_id)i, texts[i].data, texts[i].size, err);
    }
    if (!status)
        status = session_name_error(
            s, log_append(s->log, texts, b->count, s->store->limits.session, err), err);
    if (status) {
        fold_savepoint_rewind(&f, &before);
    } else {
        fold_savepoint_release(&f, &before);
        if (b->base != SESSILE_NO_ID)
            s->tree.base = b->base;
        else if (f.moved)
            s->tree.base = s->tree.head;
    }
    fold_forget_parts(s);
    mem_free(a, texts, b->count * sizeof *texts);
    return status;
}

/* How often a write is built again because the log is said to have grown, when it has
 * not.
 */
#define REBUILDS 16

/* Takes the log's lock and reads on; on another log when this one was replaced. */
static sessile_status lock_log(session_core *s, sessile_error *err)
{
    enum { TRIES = 16 }; /* who replaces logs faster than that is at war with us */
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;

    err = err ? err : &local;
    for (int i = 0; i < TRIES; i++) {
        fold others = {.s = s};
        log_set_timeout(s->log, session_wait_left(s, s->waiting.call));
        sessile_id known = log_count(s->log);
        status = session_name_error(s, log_begin(s->log, fold_visit, &others, err), err);
        s->met_others = log_count(s->log) != known;
        atomic_store(&s->torn, log_torn(s->log));
        if (!status || !(s->index.failed || log_replaced(s->log)))
            break;
        error_clear(err);
        status = session_reload_locked(s, err);
        if (status)
            break;
        status = session_fail(s, err, SESSILE_CONFLICT,
                              "its log is replaced again and again: try later");
    }
    fold_forget_parts(s);
    return status;
}

/* What is built on the log as it is known, under its lock where it has one. *asked: the
 * store was asked to append it. *grown: its end was not where it was read. */
static sessile_status build_and_write(session_core *s, batch *b, session_build build,
                                      void *arg, int *asked, int *grown,
                                      sessile_error *err)
{
    const os_table *os = s->store->os;
    sessile_status status;

    *asked = *grown = 0;
    buf_clear(&b->text);
    b->count = 0;
    b->base = SESSILE_NO_ID;
    b->first = log_count(s->log);
    b->now_ms = os->now_ms(os->ud);
    status = build(arg, s, b, err);
    if (!status && b->text.failed)
        status = fail_nomem(err);
    if (!status && b->count) {
        *asked = 1;
        status = write_batch(s, b, err);
        /* without locks a log may be replaced between our look and our write, too */
        *grown = status == SESSILE_CONFLICT ||
                 (status == SESSILE_NOTFOUND && log_replaced(s->log));
    }
    return status;
}

/* One attempt, under the log's lock. */
static sessile_status try_write(session_core *s, batch *b, session_build build, void *arg,
                                int *grown, sessile_error *err)
{
    sessile_status status = lock_log(s, err);
    int asked;

    *grown = 0;
    if (status)
        return status;
    status = build_and_write(s, b, build, arg, &asked, grown, err);
    if (status && s->index.failed) { /* nothing was written: once more, from the lines */
        status = session_reload_locked(s, err);
        if (!status)
            status = build_and_write(s, b, build, arg, &asked, grown, err);
    }
    if (!status)
        log_index_write(s->log);
    log_end(s->log);
    return status;
}

/* On what this handle knows, where that may do. *done: it was written, or failed for a
 * reason that looking first would not change. */
static sessile_status try_known(session_core *s, batch *b, session_build build, void *arg,
                                int *done, sessile_error *err)
{
    sessile_status status;
    int asked, grown;

    *done = 0;
    if (s->met_others || !log_begin_known(s->log))
        return SESSILE_OK;
    log_set_timeout(s->log, session_wait_left(s, s->waiting.call));
    status = build_and_write(s, b, build, arg, &asked, &grown, err);
    s->met_others = grown;
    *done = asked && !s->index.failed && status != SESSILE_CONFLICT &&
            status != SESSILE_NOTFOUND && status != SESSILE_TRUNCATED;
    if (!status && asked)
        log_index_write(s->log);
    log_end(s->log);
    return *done ? status : SESSILE_OK;
}

/* Leaves at *count_out what there is to sync. */
static sessile_status append_built(session_core *s, session_wait *w, session_build build,
                                   void *arg, int known, sessile_id *count_out,
                                   sessile_error *err)
{
    sessile_status status = session_check_process(s, err);
    int grown = 1, done = 0;
    batch b;

    *count_out = 0;
    if (!status)
        status = session_wait_turn(s, w, err);
    if (status)
        return status;
    session_moment_end(s);
    batch_init(&b, 0, 0, &s->store->alloc);
    session_wait_set(s, w);
    status = session_check_usable(s, err);
    if (!status && s->identity.user_size)
        header_put_name(&b.user,
                        (sessile_slice){s->identity.user, s->identity.user_size});
    if (b.user.failed)
        status = fail_nomem(err);
    int noted = 0;
    if (!status && s->store->notes) {
        const session_names names = session_own_names(s);
        status = write_note(s->store->notes, &names, err);
        noted = !status;
    }
    if (!status && known)
        status = try_known(s, &b, build, arg, &done, err);
    /* Where a store has no locks others append between our look and our write: that is
     * nobody's business but ours. The caller hears CONFLICT from build alone, or from a
     * store that says so although nobody writes. */
    int idle = 0;
    for (int tries = 0; !status && !done && grown; tries++) {
        sessile_id was = log_count(s->log);
        error_clear(err);
        status = try_write(s, &b, build, arg, &grown, err);
        idle = log_count(s->log) > was ? 0 : idle + 1;
        if (grown && idle <= REBUILDS)
            status = session_wait_retry(s, w, tries, err);
    }
    /* as after a failover to a server that lacks what was written last */
    if (status == SESSILE_CONFLICT && grown && idle > REBUILDS)
        status = session_fail(s, err, SESSILE_CONFLICT,
                              "its log does not end as this handle has read it, "
                              "and has not grown: open the session again");
    if (!status)
        *count_out = log_count(s->log);
    if (noted)
        write_noted(s->store->notes, b.first, status ? 0 : (sessile_id)b.count);
    session_wait_set(s, NULL);
    pthread_mutex_unlock(&s->mutex);
    batch_deinit(&b);
    return status;
}

sessile_status session_sync_within(session_core *s, const session_wait *w,
                                   sessile_id count, sessile_error *err)
{
    session_syncing syncing = {s, w};
    sessile_status status;

    if (s->store->durability == SESSILE_NONE)
        return SESSILE_OK;
    status = session_check_process(s, err);
    if (status)
        return status;
    /* without the mutex: a reload may put another log there */
    log_t *log = __atomic_load_n(&s->log, __ATOMIC_ACQUIRE);
    return session_name_error(
        s, log_sync_stoppable(log, count, session_sync_stopped, &syncing, err), err);
}

sessile_status session_sync(session_core *s, sessile_error *err)
{
    session_wait w = session_wait_begin(s, 0, 0);
    session_syncing syncing = {s, &w};
    sessile_status status = session_lock_within(s, &w, err);

    if (status)
        return status;
    log_t *log = s->log;
    sessile_id count = log_count(log);
    status = log_damage(log, err);
    session_unlock(s);
    if (!status)
        status = log_sync_stoppable(log, count, session_sync_stopped, &syncing, err);
    return session_name_error(s, status, err);
}

sessile_status session_write(session_core *s, session_build build, void *arg,
                             const session_writing *how, sessile_error *err)
{
    int known = how && how->known;
    sessile_id count;

    if (how && how->wait)
        return append_built(s, how->wait, build, arg, known,
                            how->count ? how->count : &count, err);
    session_wait w = session_wait_begin(s, 0, 0);
    sessile_status status = append_built(s, &w, build, arg, known, &count, err);
    return status ? status : session_sync_within(s, &w, count, err);
}
