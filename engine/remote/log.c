/*
 * log.c: logs: created, opened, measured, read.
 *
 * What comes with the opening of a log (its beginning, the end of its cache) is read from
 * memory for a moment: so a session is opened with a few round trips. Records never
 * change; who was removed is asked no more.
 */
#include "remote/remote.h"

#include <string.h>

enum { AHEAD_US = 2000000 };

remote_log *remote_log_of(sessile_backend_log *log)
{
    return (remote_log *)(void *)log;
}

static sessile_backend_log *shown(remote_log *log)
{
    return (sessile_backend_log *)(void *)log;
}

remote_call remote_log_call(remote_log *log)
{
    pthread_mutex_lock(&log->mutex);
    remote_call call = remote_call_of(log->r, log->timeout_ms);
    call.stop = log->stop;
    pthread_mutex_unlock(&log->mutex);
    return call;
}

ProtobufCBinaryData remote_bytes(const void *data, size_t size)
{
    return (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)data};
}

void remote_name(Sessile__V1__RecordLog *out, const char *folder, const char *name)
{
    sessile__v1__record_log__init(out);
    out->folder = remote_bytes(folder, strlen(folder));
    out->name = remote_bytes(name, strlen(name));
}

void remote_log_name(Sessile__V1__RecordLog *out, const remote_log *log)
{
    remote_name(out, log->folder, log->name);
    out->identity = remote_bytes(log->identity, sizeof log->identity);
}

/* ---------------------------------------------------------------------- pieces */

/* One piece of a log, at most REMOTE_PIECE. */
static sessile_status read_piece(remote_call *call, const Sessile__V1__RecordLog *log,
                                 uint64_t index, uint64_t offset, void *out, size_t size,
                                 size_t *got, sessile_error *err)
{
    Sessile__V1__RecordReadRequest request = SESSILE__V1__RECORD_READ_REQUEST__INIT;
    ProtobufCMessage *reply;
    *got = 0;
    request.log = (Sessile__V1__RecordLog *)(uintptr_t)log;
    request.index = index;
    request.offset = offset;
    request.size = (uint32_t)size;
    sessile_status status = remote_do(call, "Read", &request.base, err);
    if (!status)
        status = remote_only(call, &sessile__v1__record_piece__descriptor, &reply, err);
    if (status)
        return status;
    ProtobufCBinaryData data = ((Sessile__V1__RecordPiece *)(void *)reply)->data;
    if (data.len > size)
        status = fail(err, SESSILE_IO, "%s answered more bytes than it was asked for",
                      call->r->url.where);
    else if (data.len)
        memcpy(out, data.data, *got = data.len);
    protobuf_c_message_free_unpacked(reply, NULL);
    return status;
}

static sessile_status read_all(remote_call *call, const Sessile__V1__RecordLog *log,
                               uint64_t index, uint64_t offset, char *out, size_t size,
                               size_t *got, sessile_error *err)
{
    *got = 0;
    while (*got < size) {
        size_t piece = size - *got < REMOTE_PIECE ? size - *got : REMOTE_PIECE, n;
        sessile_status status =
            read_piece(call, log, index, offset + *got, out + *got, piece, &n, err);
        if (status)
            return status;
        for (const char *at = out + *got, *end = at + n;
             (at = memchr(at, '\n', (size_t)(end - at))); at++)
            index++;
        *got += n;
        if (n < piece)
            break;
    }
    return SESSILE_OK;
}

sessile_status remote_same_bytes(remote_call *call, const Sessile__V1__RecordLog *log,
                                 uint64_t index, uint64_t offset, const void *data,
                                 size_t size, int *same, sessile_error *err)
{
    char *found = mem_alloc(&call->r->alloc, size ? size : 1);
    size_t got = 0;
    *same = 0;
    if (!found)
        return fail_nomem(err);
    sessile_status status = read_all(call, log, index, offset, found, size, &got, err);
    *same = !status && got == size && (!size || memcmp(found, data, size) == 0);
    mem_free(&call->r->alloc, found, size ? size : 1);
    return status;
}

/* ---------------------------------------------------------------------- create */

sessile_status remote_look_up(remote_call *call, const char *folder, const char *name,
                              unsigned char identity[REMOTE_IDENTITY], uint64_t *bytes,
                              int *there, sessile_error *err)
{
    Sessile__V1__RecordOpenRequest request = SESSILE__V1__RECORD_OPEN_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    ProtobufCMessage *reply;
    remote_name(&named, folder, name);
    request.log = &named;
    *there = 0;
    sessile_status status = remote_do(call, "Open", &request.base, err);
    if (status)
        return status == SESSILE_NOTFOUND ? SESSILE_OK : status;
    status = remote_only(call, &sessile__v1__record_opened__descriptor, &reply, err);
    if (status)
        return status;
    const Sessile__V1__RecordOpened *o = (const Sessile__V1__RecordOpened *)(void *)reply;
    *there = o->identity.len == REMOTE_IDENTITY;
    if (*there)
        memcpy(identity, o->identity.data, REMOTE_IDENTITY);
    *bytes = o->bytes;
    protobuf_c_message_free_unpacked(reply, NULL);
    return SESSILE_OK;
}

/* EXISTS, after a try whose answer was lost: is it ours? */
static sessile_status settle_create(remote *r, const char *folder, const char *name,
                                    const void *data, size_t size, sessile_error *err)
{
    unsigned char identity[REMOTE_IDENTITY];
    Sessile__V1__RecordLog named;
    uint64_t bytes;
    int there, same = 0;
    remote_call call = remote_call_of(r, 0);
    remote_grace(&call);
    call.reads = 1;
    sessile_error why;
    sessile_status status =
        remote_look_up(&call, folder, name, identity, &bytes, &there, &why);
    if (!status && there && bytes >= size) {
        remote_name(&named, folder, name);
        status = remote_same_bytes(&call, &named, 0, 0, data, size, &same, &why);
    }
    if (status)
        status = remote_unknown(&call, name, err);
    else if (!same)
        status = fail(err, SESSILE_EXISTS, "%s is already there", name);
    remote_done(&call);
    return status;
}

sessile_status remote_create(void *self, const char *folder, const char *name,
                             const void *data, size_t size, sessile_error *err)
{
    remote *r = self;
    Sessile__V1__RecordCreateRequest request = SESSILE__V1__RECORD_CREATE_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    Sessile__V1__RecordData sent;
    remote_call call = remote_call_of(r, r->timeout_ms);
    sessile_status status = remote_send(&call, data, size, &sent, err);
    if (!status) {
        remote_name(&named, folder, name);
        request.log = &named;
        request.data = &sent;
        status = remote_do(&call, "Create", &request.base, err);
        remote_sent(&call, &sent);
    }
    if (status && call.maybe) {
        status = call.known && status == SESSILE_EXISTS
                     ? settle_create(r, folder, name, data, size, err)
                     : remote_unknown(&call, name, err);
    }
    remote_done(&call);
    return status;
}

/* ---------------------------------------------------------------------- open */

static void free_text(const remote *r, char *text)
{
    if (text)
        mem_free(&r->alloc, text, strlen(text) + 1);
}

void remote_close(sessile_backend_log *handle)
{
    remote_log *log = remote_log_of(handle);
    if (!log)
        return;
    free_text(log->r, log->folder);
    free_text(log->r, log->name);
    buf_deinit(&log->first);
    buf_deinit(&log->cache);
    pthread_mutex_destroy(&log->mutex);
    mem_free(&log->r->alloc, log, sizeof *log);
}

static sessile_status log_new(remote *r, const char *folder, const char *name,
                              remote_log **out, sessile_error *err)
{
    remote_log *log = mem_zalloc(&r->alloc, sizeof *log);
    *out = log;
    if (!log)
        return fail_nomem(err);
    log->r = r;
    log->timeout_ms = r->timeout_ms;
    pthread_mutex_init(&log->mutex, NULL);
    buf_init(&log->first, &r->alloc);
    buf_init(&log->cache, &r->alloc);
    log->folder = mem_dup(&r->alloc, folder, strlen(folder));
    log->name = mem_dup(&r->alloc, name, strlen(name));
    return log->folder && log->name ? SESSILE_OK : fail_nomem(err);
}

static sessile_status take_opened(remote_log *log, const Sessile__V1__RecordOpened *o,
                                  sessile_error *err)
{
    const remote *r = log->r;
    if (o->identity.len != REMOTE_IDENTITY)
        return fail(err, SESSILE_IO, "%s opened a log and gave none", r->url.where);
    memcpy(log->identity, o->identity.data, REMOTE_IDENTITY);
    log->size = log->seen = o->bytes;
    log->mtime_ms = o->mtime_ms;
    buf_put(&log->first, o->first.data, o->first.len);
    log->has_cache = o->cache.len && o->cache_offset + o->cache.len == o->cache_bytes;
    log->cache_offset = o->cache_offset;
    buf_put(&log->cache, o->cache.data, o->cache.len);
    log->ahead_us = r->os->clock_us(r->os->ud) + AHEAD_US;
    return log->first.failed || log->cache.failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status remote_open(void *self, const char *folder, const char *name,
                           sessile_backend_log **out, sessile_error *err)
{
    remote *r = self;
    Sessile__V1__RecordOpenRequest request = SESSILE__V1__RECORD_OPEN_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    ProtobufCMessage *reply = NULL;
    remote_log *log = NULL;
    remote_call call = remote_call_of(r, r->timeout_ms);
    call.reads = 1;
    *out = NULL;
    remote_name(&named, folder, name);
    request.log = &named;
    sessile_status status = remote_do(&call, "Open", &request.base, err);
    if (!status)
        status = remote_only(&call, &sessile__v1__record_opened__descriptor, &reply, err);
    if (!status)
        status = log_new(r, folder, name, &log, err);
    if (!status)
        status = take_opened(log, (const Sessile__V1__RecordOpened *)(void *)reply, err);
    if (reply)
        protobuf_c_message_free_unpacked(reply, NULL);
    remote_done(&call);
    if (status)
        remote_close(shown(log));
    else
        *out = shown(log);
    return status;
}

void remote_set_timeout(sessile_backend_log *handle, int timeout_ms)
{
    remote_log *log = remote_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    log->timeout_ms = timeout_ms;
    pthread_mutex_unlock(&log->mutex);
}

void remote_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    remote_log *log = remote_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    log->stop = (lock_stop){ask, arg};
    pthread_mutex_unlock(&log->mutex);
}

/* ---------------------------------------------------------------------- size */

/* Under the mutex. */
static void forget_ahead(remote_log *log)
{
    log->ahead_us = 0;
    buf_deinit(&log->first);
    buf_deinit(&log->cache);
    log->has_cache = 0;
}

static sessile_status look(remote_log *log, int fence, ProtobufCMessage **out,
                           sessile_error *err)
{
    Sessile__V1__RecordLookRequest request = SESSILE__V1__RECORD_LOOK_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    remote_call call = remote_log_call(log);
    call.reads = 1;
    remote_log_name(&named, log);
    request.log = &named;
    request.fence = fence;
    sessile_status status = remote_do(&call, "Look", &request.base, err);
    if (!status)
        status = remote_only(&call, &sessile__v1__record_look__descriptor, out, err);
    remote_done(&call);
    return status;
}

sessile_status remote_size(sessile_backend_log *handle, uint64_t *bytes,
                           int64_t *mtime_ms, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    ProtobufCMessage *reply;
    *bytes = 0;
    *mtime_ms = 0;
    sessile_status status = look(log, 0, &reply, err);
    if (status)
        return status;
    const Sessile__V1__RecordLook *l = (const Sessile__V1__RecordLook *)(void *)reply;
    pthread_mutex_lock(&log->mutex);
    if (l->there) {
        log->size = l->bytes;
        log->mtime_ms = l->mtime_ms;
        if (log->seen < l->bytes)
            log->seen = l->bytes;
    } else {
        forget_ahead(log);
    }
    log->replaced = l->replaced;
    *bytes = log->size;
    *mtime_ms = log->mtime_ms;
    pthread_mutex_unlock(&log->mutex);
    protobuf_c_message_free_unpacked(reply, NULL);
    return SESSILE_OK;
}

int remote_replaced(sessile_backend_log *handle)
{
    remote_log *log = remote_log_of(handle);
    pthread_mutex_lock(&log->mutex);
    int replaced = log->replaced;
    pthread_mutex_unlock(&log->mutex);
    return replaced;
}

sessile_status remote_fence(sessile_backend_log *handle, sessile_log_end *out,
                            int *has_tag, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    ProtobufCMessage *reply;
    memset(out, 0, sizeof *out);
    *has_tag = 0;
    sessile_status status = look(log, 1, &reply, err);
    if (status)
        return status;
    const Sessile__V1__RecordLook *l = (const Sessile__V1__RecordLook *)(void *)reply;
    if (!l->there)
        status = fail(err, SESSILE_NOTFOUND, "%s was removed or replaced: open it again",
                      log->name);
    else if (!l->fence || l->fence->tag.len != REMOTE_TAG)
        status = fail(err, SESSILE_IO, "%s answered something that cannot be read",
                      log->r->url.where);
    if (!status) {
        out->count = l->fence->count;
        out->bytes = l->fence->bytes;
        memcpy(out->tag, l->fence->tag.data, REMOTE_TAG);
        *has_tag = l->fence_tag;
    }
    protobuf_c_message_free_unpacked(reply, NULL);
    return status;
}

/* ---------------------------------------------------------------------- read */

/* What is in memory for a moment. 1: it is all there. Under the mutex. */
static int read_ahead(remote_log *log, const buf *from, uint64_t begin, uint64_t offset,
                      void *out, size_t size)
{
    const remote *r = log->r;
    if (log->ahead_us == 0)
        return 0;
    if (r->os->clock_us(r->os->ud) > log->ahead_us) {
        forget_ahead(log);
        return 0;
    }
    if (offset < begin || offset - begin > from->size ||
        from->size - (offset - begin) < size)
        return 0;
    if (size)
        memcpy(out, from->data + (offset - begin), size);
    return 1;
}

sessile_status remote_read(sessile_backend_log *handle, uint64_t index, uint64_t offset,
                           void *out, size_t size, size_t *got, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordLog named;
    *got = 0;
    pthread_mutex_lock(&log->mutex);
    int here = read_ahead(log, &log->first, 0, offset, out, size);
    pthread_mutex_unlock(&log->mutex);
    if (here) {
        *got = size;
        return SESSILE_OK;
    }
    remote_call call = remote_log_call(log);
    call.reads = 1;
    remote_log_name(&named, log);
    sessile_status status = read_all(&call, &named, index, offset, out, size, got, err);
    remote_done(&call);
    if (status) {
        *got = 0;
        return status;
    }
    pthread_mutex_lock(&log->mutex);
    if (log->seen < offset + *got)
        log->seen = offset + *got;
    pthread_mutex_unlock(&log->mutex);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- caches */

sessile_status remote_cache_size(sessile_backend_log *handle, uint64_t *bytes,
                                 sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordCacheRequest request = SESSILE__V1__RECORD_CACHE_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    ProtobufCMessage *reply;
    *bytes = 0;
    pthread_mutex_lock(&log->mutex);
    int here = log->has_cache && read_ahead(log, &log->cache, 0, 0, NULL, 0);
    if (here)
        *bytes = log->cache_offset + log->cache.size;
    pthread_mutex_unlock(&log->mutex);
    if (here)
        return SESSILE_OK;
    remote_call call = remote_log_call(log);
    call.reads = 1;
    remote_log_name(&named, log);
    request.log = &named;
    request.op = SESSILE__V1__RECORD_DO__RECORD_SIZE;
    sessile_status status = remote_do(&call, "Cache", &request.base, err);
    if (!status)
        status = remote_only(&call, &sessile__v1__record_cache__descriptor, &reply, err);
    if (!status) {
        *bytes = ((const Sessile__V1__RecordCache *)(void *)reply)->bytes;
        protobuf_c_message_free_unpacked(reply, NULL);
    }
    remote_done(&call);
    return status;
}

static sessile_status cache_piece(remote_call *call, Sessile__V1__RecordCacheRequest *q,
                                  char *out, size_t size, size_t *got, sessile_error *err)
{
    ProtobufCMessage *reply;
    *got = 0;
    q->size = (uint32_t)size;
    sessile_status status = remote_do(call, "Cache", &q->base, err);
    if (!status)
        status = remote_only(call, &sessile__v1__record_cache__descriptor, &reply, err);
    if (status)
        return status;
    ProtobufCBinaryData data = ((Sessile__V1__RecordCache *)(void *)reply)->data;
    if (data.len && data.len <= size)
        memcpy(out, data.data, *got = data.len);
    protobuf_c_message_free_unpacked(reply, NULL);
    return SESSILE_OK;
}

sessile_status remote_cache_read(sessile_backend_log *handle, uint64_t offset, void *out,
                                 size_t size, size_t *got, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordCacheRequest request = SESSILE__V1__RECORD_CACHE_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    sessile_status status = SESSILE_OK;
    *got = 0;
    pthread_mutex_lock(&log->mutex);
    int here = log->has_cache &&
               read_ahead(log, &log->cache, log->cache_offset, offset, out, size);
    pthread_mutex_unlock(&log->mutex);
    if (here) {
        *got = size;
        return SESSILE_OK;
    }
    remote_call call = remote_log_call(log);
    call.reads = 1;
    remote_log_name(&named, log);
    request.log = &named;
    request.op = SESSILE__V1__RECORD_DO__RECORD_GET;
    while (*got < size && !status) {
        size_t piece = size - *got < REMOTE_PIECE ? size - *got : REMOTE_PIECE, n;
        request.offset = offset + *got;
        status = cache_piece(&call, &request, (char *)out + *got, piece, &n, err);
        *got += n;
        if (n < piece)
            break;
    }
    remote_done(&call);
    if (status)
        *got = 0;
    return status;
}

sessile_status remote_cache_write(sessile_backend_log *handle, uint64_t offset,
                                  const void *data, size_t size, sessile_error *err)
{
    remote_log *log = remote_log_of(handle);
    Sessile__V1__RecordCacheRequest request = SESSILE__V1__RECORD_CACHE_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    Sessile__V1__RecordData sent;
    remote_call call = remote_log_call(log);
    call.reads = 1; /* a cache may be either */
    pthread_mutex_lock(&log->mutex);
    forget_ahead(log);
    pthread_mutex_unlock(&log->mutex);
    sessile_status status = remote_send(&call, data, size, &sent, err);
    if (!status) {
        remote_log_name(&named, log);
        request.log = &named;
        request.op = SESSILE__V1__RECORD_DO__RECORD_PUT;
        request.offset = offset;
        request.data = &sent;
        status = remote_do(&call, "Cache", &request.base, err);
        remote_sent(&call, &sent);
    }
    remote_done(&call);
    return status;
}
