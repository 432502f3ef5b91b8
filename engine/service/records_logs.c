/*
 * records_logs.c: RecordService: logs: made, opened, looked at, read, appended to.
 *
 * A store with locks (files) has the lock taken here, for each change, so that to the
 * client an append is one fenced call as it is with a database. What locks leave to their
 * callers is done here too: comparing the last tag, as far as the server knows it, and
 * setting aside a line that a crash cut off.
 */
#include "service/records.h"

#include <string.h>

#include "base/os.h"

/* ---------------------------------------------------------------------- the store */

#define BIT(name) ((unsigned)SESSILE__V1__RECORD_FUNCTION__FUNCTION_##name)

static unsigned functions_of(const sessile_backend *t)
{
    return (t->remove ? BIT(REMOVE) : 0u) | (t->rename ? BIT(RENAME) : 0u) |
           (t->blob_replace ? BIT(BLOB_REPLACE) : 0u) |
           (t->blob_remove ? BIT(BLOB_REMOVE) : 0u) |
           (t->blob_list ? BIT(BLOB_LIST) : 0u) |
           (t->list_others ? BIT(LIST_OTHERS) : 0u) | (t->has_logs ? BIT(HAS_LOGS) : 0u) |
           (t->draft_publish ? BIT(DRAFT_PUBLISH) : 0u) | (t->fence ? BIT(FENCE) : 0u) |
           (t->blob_settle ? BIT(BLOB_SETTLE) : 0u) | (t->ends ? BIT(ENDS) : 0u);
}

static sessile_status describe(call *c, const void *request, sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    Sessile__V1__RecordStore reply = SESSILE__V1__RECORD_STORE__INIT;
    sessile_status status = records_enter(c, err);
    (void)request;
    if (status)
        return status;
    reply.version = 1;
    reply.capabilities =
        t->capabilities & ~(unsigned)(SESSILE_BACKEND_LOCKS | SESSILE_BACKEND_CUTS);
    reply.functions = functions_of(t);
    reply.now_ms = os_current->now_ms(os_current->ud);
    return call_reply(c, &reply.base, err);
}

static sessile_status create(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordCreateRequest *r = request;
    const store *st = &c->server->records->store;
    char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    sessile_slice data;
    sessile_status status = records_enter(c, err);
    if (!status && !r->log)
        status = fail(err, SESSILE_INVALID, "the request names no log");
    if (!status)
        status = records_name(r->log->folder, folder, err);
    if (!status)
        status = records_name(r->log->name, name, err);
    if (!status)
        status = records_data(c, r->data, &data, err);
    if (!status)
        status = st->table->create(st->self, folder, name, data.data, data.size, err);
    return status ? status : records_reply_none(c, err);
}

/* ---------------------------------------------------------------------- open */

static sessile_status read_piece(call *c, record_log *log, int cache, uint64_t index,
                                 uint64_t offset, size_t size, ProtobufCBinaryData *out,
                                 sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    out->len = 0;
    out->data = call_new(c, size ? size : 1);
    if (!out->data)
        return fail_nomem(err);
    return cache ? t->cache_read(log->log, offset, out->data, size, &out->len, err)
                 : t->read(log->log, index, offset, out->data, size, &out->len, err);
}

static sessile_status read_ahead(call *c, record_log *log,
                                 Sessile__V1__RecordOpened *reply, sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    uint64_t most = RECORD_AHEAD;
    sessile_status status =
        read_piece(c, log, 0, 0, 0, (size_t)(reply->bytes < most ? reply->bytes : most),
                   &reply->first, err);
    if (!status && (t->capabilities & SESSILE_BACKEND_CACHES))
        status = t->cache_size(log->log, &reply->cache_bytes, err);
    if (!status && reply->cache_bytes) {
        reply->cache_offset = reply->cache_bytes > most ? reply->cache_bytes - most : 0;
        status = read_piece(c, log, 1, 0, reply->cache_offset,
                            (size_t)(reply->cache_bytes - reply->cache_offset),
                            &reply->cache, err);
    }
    return status;
}

/* The log that has the name, locked to be read: one that lost it before it was locked may
 * be overwritten already. */
static sessile_status take_to_read(call *c, const Sessile__V1__RecordLog *names,
                                   record_log **log, int *locked, sessile_error *err)
{
    enum { TRIES = 20 };
    records *all = c->server->records;
    sessile_status status = SESSILE_NOTFOUND;
    int taken = 1;
    for (int i = 0; status == SESSILE_NOTFOUND && taken && i < TRIES; i++) {
        sessile_error ignored;
        error_clear(err);
        status = records_take(all, names, log, err);
        if (!status)
            status = records_lock_to_read(c, *log, locked, err);
        if (status != SESSILE_NOTFOUND)
            break;
        records_give(all, *log, 0);
        *log = NULL;
        if (names->identity.len || records_name_taken(all, names, &taken, &ignored))
            break;
    }
    return status;
}

static sessile_status open_one(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordOpenRequest *r = request;
    records *all = c->server->records;
    Sessile__V1__RecordOpened reply = SESSILE__V1__RECORD_OPENED__INIT;
    record_log *log = NULL;
    int locked = 0;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = take_to_read(c, r->log, &log, &locked, err);
    if (!status)
        status = all->store.table->size(log->log, &reply.bytes, &reply.mtime_ms, err);
    if (!status) {
        status = read_ahead(c, log, &reply, err);
        if (status && status != SESSILE_NOTFOUND) {
            reply.first.len = reply.cache.len = 0; /* who reads it is told why not */
            status = SESSILE_OK;
        }
    }
    if (locked)
        records_unlock(c, log);
    error_clear(status ? NULL : err);
    if (!status) {
        reply.identity.data = log->identity;
        reply.identity.len = sizeof log->identity;
        status = call_reply(c, &reply.base, err);
    }
    records_give(all, log, !status);
    return status;
}

/* ---------------------------------------------------------------------- look, read */

static sessile_status fill_fence(call *c, record_log *log, Sessile__V1__RecordLook *out,
                                 sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    sessile_log_end end;
    int has_tag = 0;
    if (!t->fence)
        return fail(err, SESSILE_UNSUPPORTED, "the store keeps no end of a log apart");
    sessile_status status = t->fence(log->log, &end, &has_tag, err);
    out->fence = call_make(c, &sessile__v1__record_end__descriptor);
    if (status || !out->fence)
        return status ? status : fail_nomem(err);
    out->fence->count = end.count;
    out->fence->bytes = end.bytes;
    out->fence->tag.data = call_new(c, sizeof end.tag);
    out->fence_tag = has_tag;
    if (!out->fence->tag.data)
        return fail_nomem(err);
    out->fence->tag.len = sizeof end.tag;
    memcpy(out->fence->tag.data, end.tag, sizeof end.tag);
    return SESSILE_OK;
}

/* `size` of a log that is gone says what its handle saw last, which is not what the
 * client saw. So it is asked whether it is there. */
static sessile_status look_at(call *c, record_log *log, Sessile__V1__RecordLook *out,
                              sessile_error *err)
{
    const store *st = &c->server->records->store;
    uint64_t now = 0;
    int locked = 0;
    sessile_status status = records_lock_to_read(c, log, &locked, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        return SESSILE_OK;
    }
    if (!status)
        status = st->table->size(log->log, &out->bytes, &out->mtime_ms, err);
    if (!status && st->table->ends && !locked) {
        status = st->table->ends(st->self, &log->log, 1, &now, err);
        out->there = now != SESSILE_LOG_GONE;
        if (out->there)
            out->bytes = now;
    } else {
        out->there = 1;
    }
    if (locked)
        records_unlock(c, log);
    return status;
}

static sessile_status look(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordLookRequest *r = request;
    records *all = c->server->records;
    const sessile_backend *t = all->store.table;
    Sessile__V1__RecordLook reply = SESSILE__V1__RECORD_LOOK__INIT;
    record_log *log = NULL;
    int replaced = 0;
    sessile_status status = records_enter(c, err);
    if (status)
        return status;
    status = records_take(all, r->log, &log, err);
    if (!status) {
        status = look_at(c, log, &reply, err);
        if (!status && !reply.there)
            status = records_name_taken(all, r->log, &replaced, err);
    } else if (status == SESSILE_NOTFOUND && r->log) {
        status = records_name_taken(all, r->log, &replaced, err);
    }
    if (!status && log && t->replaced && t->replaced(log->log)) {
        reply.there = 0;
        replaced = 1;
    }
    reply.replaced = replaced;
    if (!status && r->fence)
        status = log ? fill_fence(c, log, &reply, err)
                     : fail(err, SESSILE_NOTFOUND,
                            "the log was removed or replaced: open it again");
    if (!status)
        status = call_reply(c, &reply.base, err);
    records_give(all, log, !status && reply.there);
    return status;
}

static sessile_status read_some(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordReadRequest *r = request;
    records *all = c->server->records;
    Sessile__V1__RecordPiece reply = SESSILE__V1__RECORD_PIECE__INIT;
    record_log *log = NULL;
    size_t size = r->size < RECORD_PIECE ? r->size : RECORD_PIECE;
    int locked = 0;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = records_take(all, r->log, &log, err);
    if (!status)
        status = records_lock_to_read(c, log, &locked, err);
    if (!status)
        status = read_piece(c, log, 0, r->index, r->offset, size, &reply.data, err);
    if (locked)
        records_unlock(c, log);
    if (!status) {
        reply.end = reply.data.len < size;
        status = call_reply(c, &reply.base, err);
    }
    records_give(all, log, !status);
    return status;
}

/* ---------------------------------------------------------------------- append */

/* Sets aside what follows the last newline, under the lock: nobody is writing it. */
static sessile_status cut_torn_line(call *c, record_log *log, uint64_t from,
                                    uint64_t bytes, sessile_error *err)
{
    const sessile_backend *t = c->server->records->store.table;
    ProtobufCBinaryData piece;
    uint64_t at = bytes > from + RECORD_PIECE ? bytes - RECORD_PIECE : from;
    sessile_status status =
        read_piece(c, log, 0, 0, at, (size_t)(bytes - at), &piece, err);
    if (status || piece.len != bytes - at || piece.data[piece.len - 1] == '\n')
        return status;
    size_t keep = piece.len;
    while (keep > 0 && piece.data[keep - 1] != '\n')
        keep--;
    if (keep == 0 && at != from)
        return SESSILE_OK; /* longer than a piece: for who repairs logs */
    return t->set_aside(log->log, at + keep, err);
}

/* Under the lock. Without locks the store does all of it in append. */
static sessile_status ready_to_append(call *c, record_log *log,
                                      const sessile_log_end *end, sessile_error *err)
{
    records *all = c->server->records;
    uint64_t bytes;
    int64_t mtime_ms;
    if (!records_locks(all))
        return SESSILE_OK;
    sessile_status status = all->store.table->size(log->log, &bytes, &mtime_ms, err);
    if (!status && bytes > end->bytes &&
        (all->store.table->capabilities & SESSILE_BACKEND_CUTS))
        status = cut_torn_line(c, log, end->bytes, bytes, err);
    return status ? status : records_check_end(all, log, end, err);
}

static sessile_status read_end(const Sessile__V1__RecordAppendRequest *r,
                               sessile_log_end *out, sessile_error *err)
{
    if (!r->end || r->end->tag.len != RECORD_TAG || r->new_tag.len != RECORD_TAG ||
        r->count == 0)
        return fail(err, SESSILE_INVALID,
                    "an append has an end, records, and two tags of 16 bytes");
    *out = (sessile_log_end){.count = r->end->count, .bytes = r->end->bytes};
    memcpy(out->tag, r->end->tag.data, RECORD_TAG);
    return SESSILE_OK;
}

static sessile_status append(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordAppendRequest *r = request;
    records *all = c->server->records;
    const sessile_backend *t = all->store.table;
    sessile_log_end end;
    sessile_slice data;
    record_log *log = NULL;
    int poisoned = 0;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = read_end(r, &end, err);
    if (!status)
        status = records_data(c, r->data, &data, err);
    if (!status)
        status = records_take(all, r->log, &log, err);
    if (status)
        return status;
    status = records_lock(c, log, NULL, err);
    if (!status) {
        status = ready_to_append(c, log, &end, err);
        if (!status)
            status = t->append(log->log, &end, data.data, data.size, r->count,
                               r->new_tag.data, &poisoned, err);
        if (!status)
            records_note_end(all, log, &end);
        records_unlock(c, log);
    }
    if (!status && r->sync) {
        status = t->sync(log->log, err);
        poisoned = status != SESSILE_OK; /* it is there, and may not stay */
    }
    if (poisoned)
        c->flags |= STATUS_POISONED;
    records_give(all, log, !status || (status == SESSILE_CONFLICT && !poisoned));
    records_poke(all);
    return status ? status : records_reply_none(c, err);
}

static sessile_status sync_log(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordLogRequest *r = request;
    records *all = c->server->records;
    record_log *log = NULL;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = records_take(all, r->log, &log, err);
    if (!status)
        status = all->store.table->sync(log->log, err);
    records_give(all, log, !status);
    return status ? status : records_reply_none(c, err);
}

/* --------------------------------------------------------------------- remove, rename */

static sessile_status remove_log(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordRemoveRequest *r = request;
    records *all = c->server->records;
    record_log *log = NULL;
    uint64_t bytes = 0;
    sessile_status status = records_enter(c, err);
    if (!status && !all->store.table->remove)
        status = fail(err, SESSILE_UNSUPPORTED, "the store removes no logs");
    if (!status)
        status = records_take(all, r->log, &log, err);
    if (status)
        return status;
    status = records_lock(c, log, &bytes, err);
    if (!status) {
        status = bytes != r->seen
                     ? fail(err, SESSILE_CONFLICT,
                            "%s has grown: read on, then try again", log->name)
                     : all->store.table->remove(log->log, r->head, err);
        records_unlock(c, log);
    }
    records_give(all, log, 0);
    records_poke(all);
    return status ? status : records_reply_none(c, err);
}

static sessile_status rename_log(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordRenameRequest *r = request;
    records *all = c->server->records;
    char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    record_log *log = NULL;
    sessile_status status = records_enter(c, err);
    if (!status && !all->store.table->rename)
        status = fail(err, SESSILE_UNSUPPORTED, "the store renames no logs");
    if (!status)
        status = records_name(r->folder, folder, err);
    if (!status)
        status = records_name(r->name, name, err);
    if (!status)
        status = records_take(all, r->log, &log, err);
    if (status)
        return status;
    status = records_lock(c, log, NULL, err);
    if (!status) {
        status = all->store.table->rename(log->log, folder, name, err);
        records_unlock(c, log);
    }
    records_give(all, log, 0);
    return status ? status : records_reply_none(c, err);
}

const method methods_records_logs[] = {
    RECORD_METHOD("Store", describe, record_store_request, METHOD_READS | METHOD_APART),
    RECORD_METHOD("Create", create, record_create_request, 0),
    RECORD_METHOD("Open", open_one, record_open_request, METHOD_READS | METHOD_APART),
    RECORD_METHOD("Look", look, record_look_request, METHOD_READS | METHOD_APART),
    RECORD_METHOD("Read", read_some, record_read_request, METHOD_READS | METHOD_APART),
    RECORD_METHOD("Append", append, record_append_request, 0),
    RECORD_METHOD("Sync", sync_log, record_log_request, METHOD_READS | METHOD_APART),
    RECORD_METHOD("Remove", remove_log, record_remove_request, 0),
    RECORD_METHOD("Rename", rename_log, record_rename_request, 0),
    RECORD_METHOD("Watch", records_watch, record_watch_request,
                  METHOD_READS | METHOD_STREAMS | METHOD_APART),
    RECORD_METHOD("Ends", records_tell_ends, record_ends_request,
                  METHOD_READS | METHOD_APART),
    {NULL, NULL, 0, NULL},
};
