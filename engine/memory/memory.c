/*
 * memory.c: opens a memory, keeps up with other handles, and writes to its log.
 *
 * Everything is written by memory_commit(): under the mutex and the log's lock, for the
 * memory as it is then. What is appended is folded afterwards. If that fails for want of
 * memory, the fold is rebuilt from the log at the next call, so that a handle never
 * shows a half of what happened.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* ------------------------------------------------------------------ names and errors */

int64_t memory_now_ms(const memory_core *m)
{
    return m->store->os->now_ms(m->store->os->ud);
}

static session_names own_names(const memory_core *m)
{
    static const char id[] = MEMORY_ID;
    return (session_names){{id, sizeof id - 1},
                           {m->agent, m->agent_size},
                           {m->user, m->user_size},
                           NAMES_MEMORY};
}

void memory_place(const memory_core *m, char folder[NAME_SIZE], char name[NAME_SIZE])
{
    session_names names = own_names(m);
    names_place(m->store, &names, folder, name);
}

sessile_status memory_check_removal(const memory_core *m, sessile_error *err)
{
    session_names names = own_names(m);
    return memory_name_error(m, names_check_removal(m->store, &names, err), err);
}

sessile_status memory_name_error(const memory_core *m, sessile_status status,
                                 sessile_error *err)
{
    char agent[NAME_SHOWN];
    if (status && err) {
        name_show((sessile_slice){m->agent, m->agent_size}, agent);
        fail_prefix(err, "the memory of agent %s%s", agent,
                    m->user_size ? " for a user" : "");
    }
    return status;
}

/* ------------------------------------------------------------------ the log */

static sessile_status put_tombstone(void *arg, const log_flaw *lost, sessile_id id,
                                    buf *out, sessile_error *err)
{
    entry_fields fields = {
        .id = id, .type = ENTRY_TOMBSTONE, .source = SOURCE_SYSTEM, .tokens = -1};
    buf data;

    (void)arg;
    buf_init(&data, out->alloc);
    buf_printf(&data,
               "{\"lost\":true,\"first\":\"%08" PRIx32 "\",\"last\":\"%08" PRIx32 "\"}",
               lost->first, lost->last);
    entry_put_data(out, &fields, &data);
    buf_deinit(&data);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

static void free_fold(memory_core *m, memory_fold *f)
{
    if (!f)
        return;
    memory_fold_deinit(f);
    mem_free(&m->store->alloc, f, sizeof *f);
}

/* log: where the log will be. */
static memory_fold *new_fold(memory_core *m, log_t **log)
{
    memory_fold *f = mem_alloc(&m->store->alloc, sizeof *f);
    if (!f)
        return NULL;
    memory_fold_init(f, &m->store->alloc);
    if (m->store->backend.table->capabilities & SESSILE_BACKEND_CACHES)
        memory_fold_index(f, log);
    return f;
}

static int same_name(const char *name, size_t size, const buf *other)
{
    return size == other->size && (!size || !memcmp(name, other->data, size));
}

/* The log under the memory's name, with a fold of it. */
static sessile_status open_log(memory_core *m, log_t **log, memory_fold **fold,
                               sessile_error *err)
{
    store_core *st = m->store;
    char folder[NAME_SIZE], name[NAME_SIZE];
    log_index_callbacks callbacks;
    sessile_status status;
    uint64_t torn;

    *log = NULL;
    *fold = new_fold(m, log);
    if (!*fold)
        return fail_nomem(err);
    memory_place(m, folder, name);
    callbacks = memory_index_callbacks(*fold, 0);
    status = log_open_indexed(log, &st->backend, st->keys, folder, name,
                              session_read_depth(st), m->timeout_ms, &callbacks,
                              memory_fold_visit, *fold, &torn, &st->alloc, err);
    (*fold)->log = NULL; /* what is restored, is */
    if (!status && log_damage(*log, NULL))
        status = log_read_damaged(*log, memory_fold_visit, put_tombstone, *fold, err);
    if (!status && (!same_name(m->agent, m->agent_size, &(*fold)->header.agent) ||
                    !same_name(m->user, m->user_size, &(*fold)->header.user)))
        status =
            fail(err, SESSILE_DAMAGED,
                 "its header says that it belongs to another agent or user: its file "
                 "was moved or replaced; put it back under its own name");
    if (status) {
        log_close(*log);
        free_fold(m, *fold);
        *log = NULL;
        *fold = NULL;
    }
    return status;
}

/* After another log took the name: it was sealed again, or salvaged. */
static sessile_status open_again(memory_core *m, sessile_error *err)
{
    memory_fold *fold;
    log_t *log, *old = m->log;
    sessile_status status = open_log(m, &log, &fold, err);

    if (!status && strcmp(fold->header.nonce, m->fold->header.nonce) != 0) {
        log_close(log);
        free_fold(m, fold);
        status = fail(err, SESSILE_NOTFOUND,
                      "it was removed, and another one was made: open that one");
    }
    if (status)
        return status;
    log_close_with(log, old); /* a thread may be inside a sync of the old one */
    __atomic_store_n(&m->log, log, __ATOMIC_RELEASE);
    free_fold(m, m->fold);
    m->fold = fold;
    return SESSILE_OK;
}

/* The same log, from its first entry. */
static sessile_status fold_again(memory_core *m, sessile_error *err)
{
    memory_fold *fold = new_fold(m, NULL);
    sessile_status status =
        fold ? log_rescan(m->log, memory_fold_visit, fold, err) : fail_nomem(err);

    if (status) {
        free_fold(m, fold);
        return status;
    }
    log_set_index_callbacks(m->log, memory_index_callbacks(fold, 0));
    free_fold(m, m->fold);
    m->fold = fold;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ opening */

static sessile_status create(memory_core *m, sessile_slice language, sessile_error *err)
{
    store_core *st = m->store;
    session_names names = own_names(m);
    char folder[NAME_SIZE], name[NAME_SIZE], user[NAME_SIZE];
    sessile_status status;
    words *known;
    char *language_name;
    buf text;

    if (!language.size)
        language = (sessile_slice){WORDS_LANGUAGE, sizeof WORDS_LANGUAGE - 1};
    language_name = mem_dup(&st->alloc, language.data, language.size);
    if (!language_name)
        return fail_nomem(err);
    status = words_open(&known, language_name, &st->alloc, err);
    words_close(known);
    mem_free(&st->alloc, language_name, language.size + 1);
    if (status)
        return status;
    buf_init(&text, &st->alloc);
    header_put(&text, &names,
               &(header_fields){.language = language, .now_ms = memory_now_ms(m)});
    names_place(st, &names, folder, name);
    keyring_user_name(st->keys, names.user, user);
    status = text.failed
                 ? fail_nomem(err)
                 : log_create_for(&st->backend, st->keys, folder, name, user, text.data,
                                  text.size, m->timeout_ms, NULL, &st->alloc, err);
    buf_deinit(&text);
    return status;
}

static sessile_status
open_or_create(memory_core *m, const sessile_memory_options *options, sessile_error *err)
{
    enum { TRIES = 4 };

    for (int i = 0;; i++) {
        sessile_status status = open_log(m, &m->log, &m->fold, err);
        if (status != SESSILE_NOTFOUND || i == TRIES)
            return status;
        if (options->must_exist)
            return fail(err, SESSILE_NOTFOUND, "nothing was ever kept there");
        error_clear(err);
        status = create(m, options->language, err);
        /* Somebody made it in between, or removed it: it is opened, or made again. */
        if (status && status != SESSILE_EXISTS && status != SESSILE_NOTFOUND)
            return status;
        error_clear(err);
    }
}

static sessile_status take_names(memory_core *m, const sessile_memory_options *options,
                                 sessile_error *err)
{
    const sessile_session_options named = {.agent = options->agent,
                                           .user = options->user};
    const allocator *a = &m->store->alloc;
    session_names names;
    sessile_status status = names_from_options(&names, m->store, &named, 1, err);

    if (status)
        return status;
    m->agent = mem_dup(a, names.agent.data, names.agent.size);
    m->user = mem_dup(a, names.user.size ? names.user.data : "", names.user.size);
    m->agent_size = names.agent.size;
    m->user_size = names.user.size;
    return m->agent && m->user ? SESSILE_OK : fail_nomem(err);
}

static void free_memory(void *memory)
{
    memory_core *m = memory;
    const allocator *a = &m->store->alloc;

    if (m->log && m->store->durability == SESSILE_NONE &&
        m->pid == m->store->os->pid(m->store->os->ud) && !log_damage(m->log, NULL))
        (void)log_sync(m->log, log_count(m->log), NULL);
    log_close(m->log);
    free_fold(m, m->fold);
    if (m->agent)
        mem_free(a, m->agent, m->agent_size + 1);
    if (m->user)
        mem_free(a, m->user, m->user_size + 1);
    pthread_mutex_destroy(&m->mutex);
    mem_free(a, m, sizeof *m);
}

sessile_status memory_open(memory_core **out, store_core *st,
                           const sessile_memory_options *options, sessile_error *err)
{
    memory_core *m;
    sessile_status status;

    *out = NULL;
    if (st->over_records)
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is opened over records, which the host keeps for each "
                    "session: it has no place for a memory");
    m = mem_zalloc(&st->alloc, sizeof *m);
    if (!m)
        return fail_nomem(err);
    counted_init(&m->references, free_memory);
    m->store = st;
    m->pid = st->os->pid(st->os->ud);
    m->timeout_ms = options->has_timeout ? options->timeout_ms : st->config.timeout_ms;
    m->forgotten_before = atomic_load(&st->forgotten_count);
    pthread_mutex_init(&m->mutex, NULL);
    status = take_names(m, options, err);
    if (!status)
        status = memory_name_error(m, open_or_create(m, options, err), err);
    if (!status && options->consent.size && m->user_size && !m->fold->consented)
        status = memory_consent_once(m, options->consent, err);
    if (status) {
        memory_close(m);
        return status;
    }
    *out = m;
    return SESSILE_OK;
}

void memory_retain(memory_core *m)
{
    counted_retain(m);
}

void memory_close(memory_core *m)
{
    counted_release(m);
}

sessile_status memory_check_process(const memory_core *m, sessile_error *err)
{
    if (m->store->os->pid(m->store->os->ud) == m->pid)
        return SESSILE_OK;
    return fail(err, SESSILE_FORKED,
                "this memory was opened by process %" PRIu32 ": open it again here",
                m->pid);
}

sessile_status memory_damage(memory_core *m, sessile_error *err)
{
    sessile_status status = memory_check_process(m, err);

    if (!status) {
        pthread_mutex_lock(&m->mutex);
        status = log_damage(m->log, err);
        pthread_mutex_unlock(&m->mutex);
    }
    return memory_name_error(m, status, err);
}

/* ------------------------------------------------------------------ keeping up */

static sessile_status lock(memory_core *m, sessile_error *err)
{
    sessile_status status = memory_check_process(m, err);
    if (status)
        return status;
    pthread_mutex_lock(&m->mutex);
    if (store_handle_forgot(m->store, (sessile_slice){m->user, m->user_size},
                            m->forgotten_before))
        status = fail(err, SESSILE_SEALED,
                      "the secret of this user was forgotten: nothing more is read or "
                      "written");
    if (!status && m->fold->failed)
        status = fold_again(m, err);
    if (status)
        pthread_mutex_unlock(&m->mutex);
    return status;
}

void memory_unlock(memory_core *m)
{
    pthread_mutex_unlock(&m->mutex);
}

sessile_status memory_lock_fresh(memory_core *m, sessile_error *err)
{
    sessile_status status = lock(m, err);

    if (status)
        return memory_name_error(m, status, err);
    log_set_timeout(m->log, m->timeout_ms);
    status = log_refresh(m->log, memory_fold_visit, m->fold, err);
    if (log_replaced(m->log)) {
        error_clear(err);
        status = open_again(m, err);
    }
    if (!status && m->fold->blocks.built_count)
        log_index_try(m->log); /* unless who wrote them does it */
    if (status)
        memory_unlock(m);
    return memory_name_error(m, status, err);
}

/* ------------------------------------------------------------------ writing */

static sessile_status append(memory_core *m, const batch *b, sessile_error *err)
{
    const allocator *a = &m->store->alloc;
    sessile_slice *texts;
    sessile_status status;

    if (b->count > SESSILE_NO_ID - b->first - (size_t)1)
        return fail(err, SESSILE_LIMIT, "a log holds at most 2^32 - 1 entries");
    texts = mem_alloc(a, b->count * sizeof *texts);
    if (!texts)
        return fail_nomem(err);
    for (size_t i = 0; i < b->count; i++)
        texts[i] = batch_entry(b, i);
    status = log_append(m->log, texts, b->count, m->store->limits.session, err);
    /* It is written: want of memory from here on is made up for at the next call. */
    for (size_t i = 0; !status && i < b->count && !m->fold->failed; i++)
        if (memory_fold_visit(m->fold, b->first + (sessile_id)i, texts[i].data,
                              texts[i].size, NULL))
            m->fold->failed = 1;
    mem_free(a, texts, b->count * sizeof *texts);
    if (status == SESSILE_LIMIT && err && strstr(err->message, "[session]"))
        status = fail(err, SESSILE_LIMIT,
                      "its log would grow past %" PRIu64
                      " bytes [session]: erase ended entries, or raise the limit",
                      m->store->limits.session);
    return status;
}

/* One attempt. *again: others were faster, or the log was replaced. */
static sessile_status try_commit(memory_core *m, batch *b, memory_build build, void *arg,
                                 int *again, sessile_error *err)
{
    sessile_status status;

    *again = 0;
    log_set_timeout(m->log, m->timeout_ms);
    status = log_begin(m->log, memory_fold_visit, m->fold, err);
    if (status) {
        if (!log_replaced(m->log))
            return status;
        error_clear(err);
        *again = 1;
        return open_again(m, err);
    }
    buf_clear(&b->text);
    b->count = 0;
    b->first = log_count(m->log);
    b->now_ms = memory_now_ms(m);
    status = build(arg, m, b, err);
    if (!status && b->text.failed)
        status = fail_nomem(err);
    if (!status && b->count) {
        status = append(m, b, err);
        *again = status == SESSILE_CONFLICT;
    }
    if (!status)
        log_index_write(m->log);
    log_end(m->log);
    return status;
}

/* Without the mutex: a reload may put another log there. */
static sessile_status sync_log(memory_core *m, sessile_id count, sessile_error *err)
{
    if (m->store->durability == SESSILE_NONE)
        return SESSILE_OK;
    return log_sync(__atomic_load_n(&m->log, __ATOMIC_ACQUIRE), count, err);
}

/* What was just synced goes into the index: the next commit may be far. */
static void index_synced(memory_core *m)
{
    pthread_mutex_lock(&m->mutex);
    log_index_try(m->log);
    pthread_mutex_unlock(&m->mutex);
}

sessile_status memory_commit(memory_core *m, memory_build build, void *arg,
                             sessile_error *err)
{
    enum { TRIES = 1000, EAGER = 8 };
    const os_table *os = m->store->os;
    sessile_status status = lock(m, err);
    sessile_id count = 0;
    int again = 1, waits = 0;
    batch b;

    if (status)
        return memory_name_error(m, status, err);
    batch_init(&b, 0, 0, &m->store->alloc);
    for (int i = 0; again && i < TRIES; i++) {
        if (i > EAGER) /* where a store has no locks, others may be faster for a while */
            os->sleep_ms(os->ud, i % 7);
        error_clear(err);
        status = try_commit(m, &b, build, arg, &again, err);
        again = again && (!status || status == SESSILE_CONFLICT);
    }
    if (!status && again)
        status =
            fail(err, SESSILE_BUSY,
                 "its log was replaced before each of %d attempts: try again", TRIES);
    if (!status)
        count = log_count(m->log);
    waits = m->fold->blocks.built_count > 0;
    memory_unlock(m);
    batch_deinit(&b);
    if (!status)
        status = sync_log(m, count, err);
    if (!status && waits)
        index_synced(m);
    return memory_name_error(m, status, err);
}
