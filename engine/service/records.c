/*
 * records.c: RecordService as a whole: its store, who may use it, and the logs that are
 * open.
 *
 * Owns the open logs, a cache of 256. A log is lent to one call at a time, so that what
 * the store keeps in a handle (what `size` last said, a lock) is of that call. Before a
 * log is used again it is asked whether the name still leads to it.
 */
#include "service/records.h"

#include <stdio.h>
#include <string.h>

#include "api/inside.h"
#include "base/os.h"

enum { IDLE_MOST = 256, FIRST = 512, UNSENT_MOST = 1 << 22, PACE_MS = 2, LOCK_MS = 500 };

/* ---------------------------------------------------------------------- the whole */

sessile_status records_open(records **out, const char *url,
                            const sessile_store_options *options, const allocator *a,
                            sessile_error *err)
{
    *out = NULL;
    records *r = mem_zalloc(a, sizeof *r);
    if (!r)
        return fail_nomem(err);
    r->alloc = *a;
    sessile_status status = store_backend_open(&r->store, url, options, err);
    if (status) {
        mem_free(a, r, sizeof *r);
        return status;
    }
    pthread_mutex_init(&r->mutex, NULL);
    os_cond_init(&r->changed);
    *out = r;
    return SESSILE_OK;
}

const store *service_backend(const service *s)
{
    const int alone = s->records && !(s->settings.services & SERVICE_SESSIONS);
    return alone ? &s->records->store : api_backend(s->store);
}

static void close_log(records *r, record_log *log)
{
    r->store.table->close(log->log);
    mem_free(&r->alloc, log, sizeof *log);
}

void records_close(records *r)
{
    if (!r)
        return;
    records_watch_close(r);
    records_held_close(r);
    while (r->idle) {
        record_log *log = r->idle;
        r->idle = log->next;
        close_log(r, log);
    }
    store_close(&r->store);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    mem_free(&r->alloc, r, sizeof *r);
}

/* ---------------------------------------------------------------------- calls */

sessile_status records_enter(call *c, sessile_error *err)
{
    const sessile_slice none = {NULL, 0};
    if (c->server->settings.guarded &&
        !sessile_can(c->view, SESSILE_MAY_MOVE_STORE, none, none, none))
        return fail_rule(err, SESSILE_DENIED, "move_store",
                         "the records of a store are for who may move it: the permission "
                         "move_store is needed");
    return SESSILE_OK;
}

sessile_status records_reply_none(call *c, sessile_error *err)
{
    Sessile__V1__RecordNone none = SESSILE__V1__RECORD_NONE__INIT;
    return call_reply(c, &none.base, err);
}

sessile_status records_pace(call *c, sessile_error *err)
{
    while (rpc_unsent(c->rpc) > UNSENT_MOST && !rpc_call_over(c->rpc))
        os_current->sleep_ms(os_current->ud, PACE_MS);
    return rpc_call_over(c->rpc)
               ? fail(err, SESSILE_CANCELLED, "nobody waits for the reply")
               : SESSILE_OK;
}

sessile_status records_name(ProtobufCBinaryData from, char out[RECORD_NAME_SIZE],
                            sessile_error *err)
{
    if (from.len >= RECORD_NAME_SIZE || (from.len && memchr(from.data, 0, from.len)))
        return fail(err, SESSILE_INVALID, "the store was given a name it cannot keep");
    if (from.len)
        memcpy(out, from.data, from.len);
    out[from.len] = '\0';
    return SESSILE_OK;
}

int records_locks(const records *r)
{
    return (r->store.table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
}

/* ---------------------------------------------------------------------- open logs */

static sessile_status gone(const char *name, sessile_error *err)
{
    return fail(err, SESSILE_NOTFOUND, "%s was removed or replaced: open it again", name);
}

/* The store's number of the log that has the name; 0: it has no numbers. */
static sessile_status number_of(records *r, const char *folder, const char *name,
                                uint64_t *out, sessile_error *err)
{
    const sessile_backend *t = r->store.table;
    sessile_backend_stat stat;
    *out = 0;
    if (!(t->capabilities & SESSILE_BACKEND_LIST_CACHE) || !t->stat)
        return SESSILE_OK;
    sessile_status status = t->stat(r->store.self, folder, name, &stat, err);
    if (!status)
        *out = stat.inode;
    return status;
}

/* A number of the store can be given again, so how the log begins belongs to its
 * identity. The second half is zero of a log that is empty. */
static sessile_status identify(records *r, record_log *log, uint64_t number,
                               sessile_error *err)
{
    char first[FIRST];
    unsigned char hash[32];
    size_t got = 0;
    sessile_status status =
        r->store.table->read(log->log, 0, 0, first, sizeof first, &got, err);
    if (status)
        return status;
    const char *newline = got ? memchr(first, '\n', got) : NULL;
    for (int i = 0; i < 8; i++)
        log->identity[i] = (unsigned char)(number >> (8 * i));
    memset(log->identity + 8, 0, 8);
    if (newline || got == sizeof first) {
        hash256(hash, first, newline ? (size_t)(newline - first) + 1 : got, NULL, 0);
        memcpy(log->identity + 8, hash, 8);
    }
    return SESSILE_OK;
}

static int same_identity(const unsigned char *mine, ProtobufCBinaryData theirs)
{
    static const unsigned char unknown[8];
    return theirs.len == RECORD_IDENTITY && memcmp(mine, theirs.data, 8) == 0 &&
           (memcmp(theirs.data + 8, unknown, 8) == 0 ||
            memcmp(mine + 8, theirs.data + 8, 8) == 0);
}

static sessile_status open_log(records *r, const char *folder, const char *name,
                               record_log **out, sessile_error *err)
{
    const sessile_backend *t = r->store.table;
    uint64_t before = 0, number = 0;
    record_log *log = mem_zalloc(&r->alloc, sizeof *log);
    *out = NULL;
    if (!log)
        return fail_nomem(err);
    snprintf(log->folder, sizeof log->folder, "%s", folder);
    snprintf(log->name, sizeof log->name, "%s", name);
    sessile_status status = number_of(r, folder, name, &before, err);
    if (!status)
        status = t->open(r->store.self, folder, name, &log->log, err);
    /* the number is that of the open log if it was so before and after */
    if (!status)
        status = number_of(r, folder, name, &number, err);
    if (!status && number != before)
        status = gone(name, err);
    if (!status)
        status = identify(r, log, number, err);
    if (!status) {
        *out = log;
        return SESSILE_OK;
    }
    if (log->log)
        t->close(log->log);
    mem_free(&r->alloc, log, sizeof *log);
    return status;
}

static record_log *take_idle(records *r, const char *folder, const char *name,
                             ProtobufCBinaryData identity)
{
    pthread_mutex_lock(&r->mutex);
    record_log **at = &r->idle, *log;
    while ((log = *at) &&
           (strcmp(log->name, name) != 0 || strcmp(log->folder, folder) != 0 ||
            !same_identity(log->identity, identity)))
        at = &log->next;
    if (log) {
        *at = log->next;
        r->idle_count--;
    }
    pthread_mutex_unlock(&r->mutex);
    return log;
}

/* Whether the name still leads to a log that was open. Without locks the store asks that
 * in each of its functions. */
static sessile_status still_named(records *r, const record_log *log, sessile_error *err)
{
    uint64_t number = 0, was = 0;
    if (!records_locks(r))
        return SESSILE_OK;
    for (int i = 0; i < 8; i++)
        was |= (uint64_t)log->identity[i] << (8 * i);
    sessile_status status = number_of(r, log->folder, log->name, &number, err);
    return status ? status : number == was ? SESSILE_OK : gone(log->name, err);
}

sessile_status records_take(records *r, const Sessile__V1__RecordLog *names,
                            record_log **out, sessile_error *err)
{
    char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    record_log *log;
    *out = NULL;
    if (!names)
        return fail(err, SESSILE_INVALID, "the request names no log");
    sessile_status status = records_name(names->folder, folder, err);
    if (!status)
        status = records_name(names->name, name, err);
    if (status)
        return status;
    int any = names->identity.len == 0;
    log = any ? NULL : take_idle(r, folder, name, names->identity);
    if (log) {
        status = still_named(r, log, err);
    } else {
        status = open_log(r, folder, name, &log, err);
        if (!status && !any && !same_identity(log->identity, names->identity))
            status = gone(name, err);
    }
    if (status && log)
        close_log(r, log);
    else
        *out = log;
    return status;
}

sessile_status records_name_taken(records *r, const Sessile__V1__RecordLog *names,
                                  int *out, sessile_error *err)
{
    const store *st = &r->store;
    char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    sessile_backend_log *other = NULL;
    sessile_status status = records_name(names->folder, folder, err);
    if (!status)
        status = records_name(names->name, name, err);
    if (!status)
        status = st->table->open(st->self, folder, name, &other, err);
    *out = !status;
    if (other)
        st->table->close(other);
    return status == SESSILE_NOTFOUND ? SESSILE_OK : status;
}

void records_give(records *r, record_log *log, int again)
{
    record_log *old = NULL;
    if (!log)
        return;
    if (!again) {
        close_log(r, log);
        return;
    }
    pthread_mutex_lock(&r->mutex);
    log->next = r->idle;
    r->idle = log;
    if (++r->idle_count > IDLE_MOST) {
        record_log **at = &r->idle;
        while ((*at)->next)
            at = &(*at)->next;
        old = *at;
        *at = NULL;
        r->idle_count--;
    }
    pthread_mutex_unlock(&r->mutex);
    if (old)
        close_log(r, old);
}

/* A client that finds the log locked asks again, and may stop between. */
static int lock_ms(const call *c)
{
    int ms = call_time_left(c);
    return ms < LOCK_MS ? ms : LOCK_MS;
}

sessile_status records_lock(call *c, record_log *log, uint64_t *bytes, sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    int replaced = 0;
    int64_t mtime_ms;
    sessile_status status = SESSILE_OK;
    if (records_locks(c->server->records)) {
        status =
            t->lock(log->log, SESSILE_LOCK_EXCLUSIVE, call_time_left(c), &replaced, err);
        if (status == SESSILE_BUSY && t->busy)
            status = t->busy(log->log, err);
        if (!status && replaced) {
            t->unlock(log->log);
            status = gone(log->name, err);
        }
    } else if (t->set_timeout) {
        t->set_timeout(log->log, call_time_left(c));
    }
    if (status || !bytes)
        return status;
    status = t->size(log->log, bytes, &mtime_ms, err);
    if (status)
        records_unlock(c, log);
    return status;
}

sessile_status records_lock_to_read(call *c, record_log *log, int *locked,
                                    sessile_error *err)
{
    int replaced = 0;
    *locked = 0;
    if (!records_locks(c->server->records))
        return SESSILE_OK;
    sessile_status status = c->server->records->store.table->lock(
        log->log, SESSILE_LOCK_SHARED, lock_ms(c), &replaced, err);
    if (!status && replaced) {
        records_unlock(c, log);
        return gone(log->name, err);
    }
    *locked = !status;
    if (status == SESSILE_BUSY)
        return status;
    error_clear(err); /* where nothing can be locked, nothing is written either */
    return SESSILE_OK;
}

void records_unlock(call *c, record_log *log)
{
    if (records_locks(c->server->records))
        c->server->records->store.table->unlock(log->log);
}

/* ---------------------------------------------------------------------- ends */

static record_end *end_of(records *r, const record_log *log, unsigned char key[32])
{
    char text[2 * RECORD_NAME_SIZE + 2];
    uint64_t at;
    int n = snprintf(text, sizeof text, "%s/%s", log->folder, log->name);
    hash256(key, text, (size_t)n, log->identity, sizeof log->identity);
    memcpy(&at, key, sizeof at);
    return &r->ends[at % RECORD_ENDS];
}

sessile_status records_check_end(records *r, const record_log *log,
                                 const sessile_log_end *end, sessile_error *err)
{
    unsigned char key[32];
    pthread_mutex_lock(&r->mutex);
    const record_end *known = end_of(r, log, key);
    int other = memcmp(known->key, key, sizeof key) == 0 &&
                known->end.bytes == end->bytes &&
                (known->end.count != end->count ||
                 memcmp(known->end.tag, end->tag, sizeof end->tag) != 0);
    pthread_mutex_unlock(&r->mutex);
    return other ? fail(err, SESSILE_CONFLICT,
                        "%s ends with another record: read it again, then try again",
                        log->name)
                 : SESSILE_OK;
}

void records_note_end(records *r, const record_log *log, const sessile_log_end *end)
{
    unsigned char key[32];
    pthread_mutex_lock(&r->mutex);
    record_end *known = end_of(r, log, key);
    memcpy(known->key, key, sizeof key);
    known->end = *end;
    pthread_mutex_unlock(&r->mutex);
}
