/*
 * change.c: logs that change: appended to, synced, removed, renamed; watched for changes
 * of others, one at a time or many together.
 *
 * What became of a change whose answer was lost: it was sent again (call.c), and what the
 * second try found says it, once the log was read. An append that found the log longer
 * than its end compares the records there with its own. A log that is gone was removed,
 * by us or another. Where no try was answered nobody knows, and the handle appends no
 * more: opening the log again shows what it has.
 */
#include "remote/remote.h"

#include <string.h>

/* The log has grown past the end of an append whose answer was lost: by our records? OK:
 * yes. */
static sessile_status settle_append(remote_log *log, const sessile_log_end *end,
                                    const void *data, size_t size, int *poisoned,
                                    sessile_error *err)
{
    Sessile__V1__RecordLog named;
    remote_call call = remote_log_call(log);
    sessile_error why;
    int same = 0;
    remote_grace(&call);
    call.reads = 1;
    remote_log_name(&named, log);
    sessile_status status =
        remote_same_bytes(&call, &named, end->count, end->bytes, data, size, &same, &why);
    remote_done(&call);
    if (status) {
        *poisoned = 1;
        return store_undecided(log->name, err);
    }
    return same ? SESSILE_OK
                : fail(err, SESSILE_CONFLICT, "%s has grown: read on, then try again",
                       log->name);
}

static void appended(remote_log *log, sessile_log_end *end, size_t size, uint64_t count,
                     const unsigned char new_tag[16], int durable)
{
    end->count += count;
    end->bytes += size;
    memcpy(end->tag, new_tag, sizeof end->tag);
    pthread_mutex_lock(&log->mutex);
    if (log->seen < end->bytes)
        log->seen = end->bytes;
    if (durable && log->settled < end->bytes)
        log->settled = end->bytes;
    pthread_mutex_unlock(&log->mutex);
}

static sessile_status send_append(remote_log *log, remote_call *call,
                                  const sessile_log_end *end, const void *data,
                                  size_t size, uint64_t count,
                                  const unsigned char new_tag[16], sessile_error *err)
{
    Sessile__V1__RecordAppendRequest request = SESSILE__V1__RECORD_APPEND_REQUEST__INIT;
    Sessile__V1__RecordEnd from = SESSILE__V1__RECORD_END__INIT;
    Sessile__V1__RecordLog named;
    Sessile__V1__RecordData sent;
    sessile_status status = remote_send(call, data, size, &sent, err);
    if (status) {
        call->maybe = 0; /* of the append itself nothing was sent */
        return status;
    }
    remote_log_name(&named, log);
    from.count = end->count;
    from.bytes = end->bytes;
    from.tag = remote_bytes(end->tag, sizeof end->tag);
    request.log = &named;
    request.end = &from;
    request.data = &sent;
    request.count = count;
    request.new_tag = remote_bytes(new_tag, REMOTE_TAG);
    request.sync = !log->r->unsynced;
    status = remote_do(call, "Append", &request.base, err);
    remote_sent(call, &sent);
    return status;
}

sessile_status remote_append(sessile_backend_log *handle, sessile_log_end *end,
                             const void *data, size_t size, uint64_t count,
                             const unsigned char new_tag[16], int *poisoned,
                             sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    int bad = log->poisoned;
    pthread_mutex_unlock(&log->mutex);
    *poisoned = bad;
    if (bad)
        return store_undecided(log->name, err);
    remote_call call = remote_log_call(log);
    sessile_status status = send_append(log, &call, end, data, size, count, new_tag, err);
    int durable = !log->r->unsynced && !call.maybe;
    if (status && call.maybe) {
        int decided =
            call.known && (status == SESSILE_TRUNCATED || status == SESSILE_NOTFOUND);
        if (call.known && status == SESSILE_CONFLICT) {
            status = settle_append(log, end, data, size, poisoned, err);
        } else if (!decided) {
            *poisoned = 1;
            status = store_undecided(log->name, err);
        }
    }
    if (call.poisoned)
        *poisoned = 1;
    remote_done(&call);
    if (!status)
        appended(log, end, size, count, new_tag, durable);
    if (*poisoned) {
        pthread_mutex_lock(&log->mutex);
        log->poisoned = 1;
        pthread_mutex_unlock(&log->mutex);
    }
    return status;
}

/* An append is durable when it is answered, unless the store was opened otherwise. So
 * only what others appended, or a lost answer, needs a question. */
sessile_status remote_sync(sessile_backend_log *handle, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordLogRequest request = SESSILE__V1__RECORD_LOG_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    pthread_mutex_lock(&log->mutex);
    uint64_t seen = log->seen;
    int bad = log->poisoned, needed = log->settled < seen;
    pthread_mutex_unlock(&log->mutex);
    if (bad)
        return store_undecided(log->name, err);
    if (!needed)
        return SESSILE_OK;
    remote_call call = remote_log_call(log);
    call.reads = 1;
    remote_log_name(&named, log);
    request.log = &named;
    sessile_status status = remote_do(&call, "Sync", &request.base, err);
    if (status == SESSILE_NOTFOUND && call.known)
        status = SESSILE_OK; /* what is removed has nothing to lose */
    remote_done(&call);
    if (!status) {
        pthread_mutex_lock(&log->mutex);
        if (log->settled < seen)
            log->settled = seen;
        pthread_mutex_unlock(&log->mutex);
    }
    return status;
}

/* --------------------------------------------------------------------- remove, rename */

sessile_status remote_remove(sessile_backend_log *handle, uint64_t head,
                             sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordRemoveRequest request = SESSILE__V1__RECORD_REMOVE_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    remote_call call = remote_log_call(log);
    remote_log_name(&named, log);
    request.log = &named;
    request.head = head;
    pthread_mutex_lock(&log->mutex);
    request.seen = log->size;
    log->ahead_us = 0;
    pthread_mutex_unlock(&log->mutex);
    sessile_status status = remote_do(&call, "Remove", &request.base, err);
    if (status && call.maybe) {
        if (call.known && status == SESSILE_NOTFOUND)
            status = SESSILE_OK;
        else if (!call.known || status != SESSILE_CONFLICT)
            status = remote_unknown(&call, log->name, err);
    }
    remote_done(&call);
    return status;
}

sessile_status remote_rename(sessile_backend_log *handle, const char *folder,
                             const char *name, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordRenameRequest request = SESSILE__V1__RECORD_RENAME_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    unsigned char identity[REMOTE_IDENTITY];
    uint64_t bytes;
    int there = 0;
    remote_call call = remote_log_call(log);
    remote_log_name(&named, log);
    request.log = &named;
    request.folder = remote_bytes(folder, strlen(folder));
    request.name = remote_bytes(name, strlen(name));
    sessile_status status = remote_do(&call, "Rename", &request.base, err);
    if (status && call.maybe) {
        /* is it there, under its right name? */
        remote_call after = remote_call_of(log->r, 0);
        remote_grace(&after);
        after.reads = 1;
        int asked = !remote_look_up(&after, folder, name, identity, &bytes, &there, NULL);
        int ours = there && memcmp(identity, log->identity, sizeof identity) == 0;
        if (asked && call.known && ours)
            status = SESSILE_OK;
        else if (!asked || !call.known || status != SESSILE_EXISTS)
            status = remote_unknown(&call, log->name, err);
        remote_done(&after);
    }
    remote_done(&call);
    return status;
}

/* ---------------------------------------------------------------------- watch */

sessile_status remote_watch(sessile_backend_log *handle, uint64_t bytes, int timeout_ms,
                            int (*ask)(void *arg), void *arg, int *changed,
                            sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordWatchRequest request = SESSILE__V1__RECORD_WATCH_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    remote_call call = remote_call_of(log->r, timeout_ms);
    call.reads = 1;
    call.stop = (lock_stop){ask, arg};
    *changed = 0;
    remote_log_name(&named, log);
    request.log = &named;
    request.bytes = bytes;
    sessile_status status = remote_do(&call, "Watch", &request.base, err);
    if (!status || (call.known && status == SESSILE_NOTFOUND)) {
        *changed = 1;
        status = SESSILE_OK;
    } else if (call.known && status == SESSILE_CLOSED) {
        status = fail(err, SESSILE_IO, "%s is ending: watch again", log->r->url.where);
    } else if (!call.known && call.maybe && status == SESSILE_IO &&
               log->r->os->clock_us(log->r->os->ud) >= call.until_us) {
        status = SESSILE_OK; /* time is up, and nothing came */
    }
    remote_done(&call);
    return status;
}

/* ---------------------------------------------------------------------- many together */

/* The ends that were answered, one for each log. */
static sessile_status take_ends(remote_call *call, size_t n, uint64_t *bytes,
                                sessile_error *err)
{
    ProtobufCMessage *reply;
    sessile_status status =
        remote_only(call, &sessile__v1__record_ends__descriptor, &reply, err);
    if (status)
        return status;
    const Sessile__V1__RecordEnds *ends = (const Sessile__V1__RecordEnds *)(void *)reply;
    if (ends->n_bytes == n)
        memcpy(bytes, ends->bytes, n * sizeof *bytes);
    else
        status = fail(err, SESSILE_IO, "%s answered of other logs than it was asked for",
                      call->r->url.where);
    protobuf_c_message_free_unpacked(reply, NULL);
    return status;
}

sessile_status remote_ends(void *self, sessile_backend_log *const *logs, size_t n,
                           uint64_t *bytes, sessile_error *err)
{
    remote *r = self;
    Sessile__V1__RecordEndsRequest request = SESSILE__V1__RECORD_ENDS_REQUEST__INIT;
    Sessile__V1__RecordLog *names = mem_alloc(&r->alloc, n * sizeof *names);
    request.logs = mem_alloc(&r->alloc, n * sizeof *request.logs);
    sessile_status status = names && request.logs ? SESSILE_OK : fail_nomem(err);
    if (!status) {
        remote_call call = remote_call_of(r, r->timeout_ms);
        call.reads = 1;
        request.n_logs = n;
        for (size_t i = 0; i < n; i++) {
            remote_log_name(&names[i], remote_log_of(logs[i]));
            request.logs[i] = &names[i];
        }
        status = remote_do(&call, "Ends", &request.base, err);
        if (!status)
            status = take_ends(&call, n, bytes, err);
        remote_done(&call);
    }
    mem_free(&r->alloc, request.logs, n * sizeof *request.logs);
    mem_free(&r->alloc, names, n * sizeof *names);
    return status;
}
