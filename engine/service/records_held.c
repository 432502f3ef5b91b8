/*
 * records_held.c: RecordService: what is sent ahead: uploads, and drafts of the store;
 * and the cache beside a log.
 *
 * Owns the list of both. Each is kept for a minute after it was last used, 64 at most and
 * 256 MiB of uploads. A piece names the offset where it belongs, so that one that is sent
 * again is taken once. What became of a draft is kept as well: a client whose answer was
 * lost asks again and is told the same.
 */
#include "service/records.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

enum { HELD_MOST = 64, KEPT_US = 60000000 };
#define UPLOADS_MOST ((size_t)256 << 20)

/* ---------------------------------------------------------------------- the list */

static void free_held(records *r, record_held *h)
{
    if (h->draft)
        r->store.table->draft_drop(h->draft);
    buf_deinit(&h->bytes);
    mem_free(&r->alloc, h, sizeof *h);
}

/* Takes those out that nobody used for long. Under the mutex; the caller frees them. */
static record_held *expired(records *r, uint64_t now)
{
    record_held *old = NULL;
    for (record_held **at = &r->held; *at;) {
        record_held *h = *at;
        if (h->lent || now - h->used_us < KEPT_US) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        r->held_bytes -= h->bytes.size;
        h->next = old;
        old = h;
    }
    return old;
}

static sessile_status begin(records *r, record_held **out, sessile_error *err)
{
    uint64_t now = os_now_us();
    record_held *h = mem_zalloc(&r->alloc, sizeof *h), *old;
    size_t count = 0;
    *out = NULL;
    if (!h)
        return fail_nomem(err);
    buf_init(&h->bytes, &r->alloc);
    random_bytes(h->id, sizeof h->id);
    h->used_us = now;
    h->lent = 1;
    pthread_mutex_lock(&r->mutex);
    old = expired(r, now);
    for (const record_held *x = r->held; x; x = x->next)
        count += !x->ended;
    if (count < HELD_MOST) {
        h->next = r->held;
        r->held = h;
        *out = h;
    }
    pthread_mutex_unlock(&r->mutex);
    while (old) {
        record_held *next = old->next;
        free_held(r, old);
        old = next;
    }
    if (*out)
        return SESSILE_OK;
    free_held(r, h);
    return fail(err, SESSILE_BUSY, "too much is sent ahead to this server: try again");
}

/* Lends one to a call. CLOSED: there is none. BUSY: another call has it. */
static sessile_status borrow(records *r, ProtobufCBinaryData id, record_held **out,
                             sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    pthread_mutex_lock(&r->mutex);
    record_held *h = r->held;
    while (h && (id.len != RECORD_ID || memcmp(h->id, id.data, RECORD_ID) != 0))
        h = h->next;
    if (!h)
        status = fail(err, SESSILE_CLOSED,
                      "what was sent ahead is not there any more: send it again");
    else if (h->lent)
        status = fail(err, SESSILE_BUSY, "another call uses what was sent ahead");
    else
        h->lent = 1;
    *out = status ? NULL : h;
    pthread_mutex_unlock(&r->mutex);
    return status;
}

static void give_back(records *r, record_held *h)
{
    pthread_mutex_lock(&r->mutex);
    h->lent = 0;
    h->used_us = os_now_us();
    pthread_mutex_unlock(&r->mutex);
}

static void discard(records *r, record_held *h)
{
    pthread_mutex_lock(&r->mutex);
    record_held **at = &r->held;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    r->held_bytes -= h->bytes.size;
    pthread_mutex_unlock(&r->mutex);
    free_held(r, h);
}

void records_held_close(records *r)
{
    while (r->held) {
        record_held *h = r->held;
        r->held = h->next;
        free_held(r, h);
    }
}

/* Whether a piece is the next one, or (0 in *more) was taken already. */
static sessile_status place_piece(const record_held *h, uint64_t offset, size_t size,
                                  int *more, sessile_error *err)
{
    *more = offset == h->size;
    return *more || (offset < h->size && size == h->size - offset)
               ? SESSILE_OK
               : fail(err, SESSILE_INVALID,
                      "what is sent ahead has %llu bytes, and the next piece begins at "
                      "%llu",
                      (unsigned long long)h->size, (unsigned long long)offset);
}

/* ---------------------------------------------------------------------- uploads */

static sessile_status put_piece(records *r, record_held *h, ProtobufCBinaryData data,
                                sessile_error *err)
{
    pthread_mutex_lock(&r->mutex);
    int room = data.len <= UPLOADS_MOST - r->held_bytes;
    if (room)
        r->held_bytes += data.len;
    pthread_mutex_unlock(&r->mutex);
    if (!room)
        return fail(err, SESSILE_BUSY,
                    "too much is sent ahead to this server: try again");
    buf_put(&h->bytes, data.data, data.len);
    if (h->bytes.failed) {
        pthread_mutex_lock(&r->mutex);
        r->held_bytes -= data.len;
        pthread_mutex_unlock(&r->mutex);
        return fail_nomem(err);
    }
    h->size += data.len;
    return SESSILE_OK;
}

static sessile_status upload(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordUploadRequest *r = request;
    records *all = c->server->records;
    Sessile__V1__RecordUpload reply = SESSILE__V1__RECORD_UPLOAD__INIT;
    record_held *h = NULL;
    int more = 0;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = r->id.len ? borrow(all, r->id, &h, err) : begin(all, &h, err);
    if (status)
        return status;
    if (h->draft || h->ended)
        status = fail(err, SESSILE_INVALID, "that is a draft, and no upload");
    if (!status)
        status = place_piece(h, r->offset, r->data.len, &more, err);
    if (!status && more)
        status = put_piece(all, h, r->data, err);
    if (!status) {
        reply.id.data = h->id;
        reply.id.len = sizeof h->id;
        status = call_reply(c, &reply.base, err);
    }
    if (status && !r->id.len)
        discard(all, h);
    else
        give_back(all, h);
    return status;
}

sessile_status records_data(call *c, const Sessile__V1__RecordData *from,
                            sessile_slice *out, sessile_error *err)
{
    record_held *h;
    *out = (sessile_slice){"", 0};
    if (!from)
        return SESSILE_OK;
    if (!from->upload.len) {
        if (from->data.len)
            *out = (sessile_slice){(const char *)from->data.data, from->data.len};
        return SESSILE_OK;
    }
    sessile_status status = borrow(c->server->records, from->upload, &h, err);
    if (status)
        return status;
    /* It stays until nobody has used it for a minute: the call may be sent again. */
    if (h->draft || h->ended) {
        give_back(c->server->records, h);
        return fail(err, SESSILE_INVALID, "that is a draft, and no upload");
    }
    char *copy = call_new(c, h->bytes.size + 1);
    if (copy && h->bytes.size)
        memcpy(copy, h->bytes.data, h->bytes.size);
    *out = (sessile_slice){copy, h->bytes.size};
    give_back(c->server->records, h);
    return copy ? SESSILE_OK : fail_nomem(err);
}

/* ---------------------------------------------------------------------- drafts */

static sessile_status begin_draft(call *c, const Sessile__V1__RecordDraftRequest *r,
                                  record_held **out, sessile_error *err)
{
    records *all = c->server->records;
    const sessile_backend *t = all->store.table;
    char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    *out = NULL;
    if (!(t->capabilities & SESSILE_BACKEND_REPLACES))
        return fail(err, SESSILE_UNSUPPORTED, "the store replaces no logs");
    if (!r->log)
        return fail(err, SESSILE_INVALID, "the request names no log");
    sessile_status status = records_name(r->log->folder, folder, err);
    if (!status)
        status = records_name(r->log->name, name, err);
    if (!status)
        status = begin(all, out, err);
    if (!status)
        status = t->draft_new(all->store.self, folder, name, &(*out)->draft, err);
    if (status && *out) {
        (*out)->draft = NULL;
        discard(all, *out);
        *out = NULL;
    }
    return status;
}

static sessile_status replace(call *c, const Sessile__V1__RecordDraftRequest *r,
                              record_held *h, sessile_error *err)
{
    records *all = c->server->records;
    record_log *log = NULL;
    uint64_t bytes = 0;
    int taken = 0;
    sessile_status status = records_take(all, r->log, &log, err);
    if (!status)
        status = records_lock(c, log, &bytes, err);
    if (status == SESSILE_NOTFOUND && r->log) {
        error_clear(err);
        status = records_name_taken(all, r->log, &taken, err);
        if (!status)
            status = fail(err, taken ? SESSILE_CONFLICT : SESSILE_NOTFOUND,
                          "the log was removed or replaced: open it again");
    }
    if (!status) {
        if (bytes != r->seen) {
            status = fail(err, SESSILE_CONFLICT, "%s has grown: read on, then try again",
                          log->name);
        } else {
            sessile_backend_draft *draft = h->draft;
            h->draft = NULL;
            status = all->store.table->draft_replace(draft, log->log, r->keep, h->kept,
                                                     sizeof h->kept, err);
        }
        records_unlock(c, log);
    }
    records_give(all, log, 0);
    return status;
}

/* The draft ends here, whatever comes of it. */
static sessile_status end_draft(call *c, const Sessile__V1__RecordDraftRequest *r,
                                record_held *h, sessile_error *err)
{
    records *all = c->server->records;
    const sessile_backend *t = all->store.table;
    sessile_status status;
    if (h->ended) {
        if (err && h->outcome.code)
            *err = h->outcome;
        return h->outcome.code;
    }
    if (r->op == SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_REPLACE) {
        status = replace(c, r, h, err);
    } else if (!t->draft_publish) {
        status = fail(err, SESSILE_UNSUPPORTED, "the store publishes no drafts");
    } else {
        sessile_backend_draft *draft = h->draft;
        h->draft = NULL;
        status = t->draft_publish(draft, err);
    }
    if (h->draft)
        t->draft_drop(h->draft);
    h->draft = NULL;
    h->ended = 1;
    error_clear(&h->outcome);
    if (status && err)
        h->outcome = *err;
    h->outcome.code = status;
    records_poke(all);
    return status;
}

static sessile_status use_draft(call *c, const Sessile__V1__RecordDraftRequest *r,
                                record_held *h, sessile_error *err)
{
    int more = 0;
    if (!h->draft && !h->ended)
        return fail(err, SESSILE_INVALID, "that is an upload, and no draft");
    switch (r->op) {
    case SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_WRITE: {
        sessile_status status =
            h->ended ? fail(err, SESSILE_INVALID, "that draft has come to its end")
                     : place_piece(h, r->offset, r->data.len, &more, err);
        if (status || !more)
            return status;
        status = c->server->records->store.table->draft_write(h->draft, r->data.data,
                                                              r->data.len, err);
        if (!status)
            h->size += r->data.len;
        return status;
    }
    case SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_REPLACE:
    case SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_PUBLISH:
        return end_draft(c, r, h, err);
    default:
        return fail(err, SESSILE_INVALID, "there is no such use of a draft");
    }
}

static sessile_status draft(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordDraftRequest *r = request;
    records *all = c->server->records;
    Sessile__V1__RecordDraft reply = SESSILE__V1__RECORD_DRAFT__INIT;
    record_held *h = NULL;
    int fresh = r->op == SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_BEGIN;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = fresh ? begin_draft(c, r, &h, err) : borrow(all, r->id, &h, err);
    if (!status && r->op == SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_DROP) {
        discard(all, h);
        return call_reply(c, &reply.base, err);
    }
    if (!status && !fresh)
        status = use_draft(c, r, h, err);
    if (!status) {
        reply.id.data = h->id;
        reply.id.len = sizeof h->id;
        reply.kept.data = (uint8_t *)h->kept;
        reply.kept.len = strlen(h->kept);
        status = call_reply(c, &reply.base, err);
    }
    if (h)
        give_back(all, h);
    return status;
}

/* ---------------------------------------------------------------------- caches */

/* Under the lock: without locks the store fences it. */
static sessile_status write_cache(call *c, record_log *log,
                                  const Sessile__V1__RecordCacheRequest *r,
                                  sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    sessile_slice data;
    uint64_t bytes = 0;
    sessile_status status = records_data(c, r->data, &data, err);
    if (!status)
        status = records_lock(c, log, NULL, err);
    if (status)
        return status;
    if (records_locks(c->server->records))
        status = t->cache_size(log->log, &bytes, err);
    if (!status && records_locks(c->server->records) && bytes < r->offset)
        status =
            fail(err, SESSILE_CONFLICT,
                 "the cache of %s ends before: read it again, then try again", log->name);
    if (!status)
        status = t->cache_write(log->log, r->offset, data.data, data.size, err);
    records_unlock(c, log);
    return status;
}

static sessile_status cache(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordCacheRequest *r = request;
    records *all = c->server->records;
    const sessile_backend *t = all->store.table;
    Sessile__V1__RecordCache reply = SESSILE__V1__RECORD_CACHE__INIT;
    record_log *log = NULL;
    int locked = 0;
    sessile_status status = records_enter(c, err);
    if (!status && !(t->capabilities & SESSILE_BACKEND_CACHES))
        status = fail(err, SESSILE_UNSUPPORTED, "the store keeps no caches");
    if (!status)
        status = records_take(all, r->log, &log, err);
    if (status)
        return status;
    if (r->op != SESSILE__V1__RECORD_DO__RECORD_PUT)
        status = records_lock_to_read(c, log, &locked, err);
    if (status) {
        /* busy */
    } else if (r->op == SESSILE__V1__RECORD_DO__RECORD_SIZE) {
        status = t->cache_size(log->log, &reply.bytes, err);
    } else if (r->op == SESSILE__V1__RECORD_DO__RECORD_PUT) {
        status = write_cache(c, log, r, err);
    } else {
        size_t size = r->size < RECORD_PIECE ? r->size : RECORD_PIECE;
        reply.data.data = call_new(c, size + 1);
        status = reply.data.data ? t->cache_read(log->log, r->offset, reply.data.data,
                                                 size, &reply.data.len, err)
                                 : fail_nomem(err);
    }
    if (locked)
        records_unlock(c, log);
    if (!status)
        status = call_reply(c, &reply.base, err);
    records_give(all, log, !status);
    return status;
}

const method methods_records_held[] = {
    RECORD_METHOD("Upload", upload, record_upload_request, METHOD_APART),
    RECORD_METHOD("Draft", draft, record_draft_request, METHOD_APART),
    RECORD_METHOD("Cache", cache, record_cache_request, METHOD_APART),
    {NULL, NULL, 0, NULL},
};
