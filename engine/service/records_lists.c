/*
 * records_lists.c: RecordService: lists of logs, blobs and list caches.
 *
 * Replies are streams of messages of about 64 KiB (rows) and 1 MiB (bytes). While a
 * client reads slowly the worker waits, until the client's deadline.
 */
#include "service/records.h"

#include <string.h>

enum { ROWS = 256 };

/* ---------------------------------------------------------------------- logs */

typedef struct listing {
    call *c;
    sessile_error *err;
    sessile_status status;
    Sessile__V1__RecordRow rows[ROWS], *shown[ROWS];
    struct {
        char folder[RECORD_NAME_SIZE], name[RECORD_NAME_SIZE];
    } names[ROWS];
    size_t count;
} listing;

static sessile_status send_rows(listing *l)
{
    Sessile__V1__RecordRows reply = SESSILE__V1__RECORD_ROWS__INIT;
    if (l->count == 0 || l->status)
        return l->status;
    reply.n_rows = l->count;
    reply.rows = l->shown;
    l->status = call_reply(l->c, &reply.base, l->err);
    if (!l->status)
        l->status = records_pace(l->c, l->err);
    l->count = 0;
    return l->status;
}

static ProtobufCBinaryData keep_name(char room[RECORD_NAME_SIZE], const char *name)
{
    size_t size = strlen(name);
    if (size >= RECORD_NAME_SIZE)
        size = RECORD_NAME_SIZE - 1;
    memcpy(room, name, size);
    return (ProtobufCBinaryData){size, (uint8_t *)room};
}

static Sessile__V1__RecordRow *add_row(listing *l, const char *folder, const char *name)
{
    Sessile__V1__RecordRow *row = &l->rows[l->count];
    sessile__v1__record_row__init(row);
    row->folder = keep_name(l->names[l->count].folder, folder ? folder : "");
    row->name = keep_name(l->names[l->count].name, name);
    l->shown[l->count++] = row;
    return row;
}

static int see_log(void *arg, const char *folder, const char *name)
{
    listing *l = arg;
    (void)add_row(l, folder, name);
    return l->count == ROWS && send_rows(l);
}

static void fill_stat(Sessile__V1__RecordRow *row, const sessile_backend_stat *stat)
{
    row->has_stat = 1;
    row->bytes = stat->bytes;
    row->mtime_ns = stat->mtime_ns;
    row->inode = stat->inode;
    row->changed_ns = stat->changed_ns;
}

static int see_stat(void *arg, const char *folder, const char *name,
                    const sessile_backend_stat *stat)
{
    listing *l = arg;
    Sessile__V1__RecordRow *row = add_row(l, folder, name);
    if (stat)
        fill_stat(row, stat);
    return l->count == ROWS && send_rows(l);
}

static int see_other(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    listing *l = arg;
    add_row(l, folder, file)->bytes = bytes;
    return l->count == ROWS && send_rows(l);
}

static sessile_status list_one(listing *l, const char *folder, ProtobufCBinaryData from)
{
    const store *st = &l->c->server->records->store;
    char name[RECORD_NAME_SIZE];
    sessile_backend_stat stat;
    sessile_status status = records_name(from, name, l->err);
    if (!status)
        status = st->table->stat(st->self, folder, name, &stat, l->err);
    if (!status)
        fill_stat(add_row(l, folder, name), &stat);
    return status;
}

static sessile_status list_some(listing *l, const Sessile__V1__RecordListRequest *r,
                                const char *folder)
{
    const store *st = &l->c->server->records->store;
    const sessile_backend *t = st->table;
    const int stats = (t->capabilities & SESSILE_BACKEND_LIST_CACHE) != 0;
    const char *in = r->all ? NULL : folder;
    sessile_status status;
    int found = 0;
    switch (r->kind) {
    case SESSILE__V1__RECORD_KIND__RECORD_LOGS:
        return t->list(st->self, in, see_log, l, l->err);
    case SESSILE__V1__RECORD_KIND__RECORD_STATS:
        if (stats)
            return t->list_stat(st->self, in, see_stat, l, l->err);
        break;
    case SESSILE__V1__RECORD_KIND__RECORD_OTHERS:
        if (t->list_others)
            return t->list_others(st->self, in, see_other, l, l->err);
        break;
    case SESSILE__V1__RECORD_KIND__RECORD_ANY_LOG:
        if (!t->has_logs)
            break;
        status = t->has_logs(st->self, &found, l->err);
        if (!status && found)
            (void)add_row(l, "", "");
        return status;
    case SESSILE__V1__RECORD_KIND__RECORD_ONE:
        if (stats)
            return list_one(l, folder, r->name);
        break;
    default:
        break;
    }
    return fail(l->err, SESSILE_UNSUPPORTED, "the store has no such list");
}

static sessile_status list(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordListRequest *r = request;
    char folder[RECORD_NAME_SIZE];
    sessile_status status = records_enter(c, err);
    if (!status)
        status = records_name(r->folder, folder, err);
    if (status)
        return status;
    listing *l = mem_zalloc(&c->server->alloc, sizeof *l);
    if (!l)
        return fail_nomem(err);
    l->c = c;
    l->err = err;
    status = list_some(l, r, folder);
    if (!status)
        status = send_rows(l);
    if (!status)
        status = l->status;
    mem_free(&c->server->alloc, l, sizeof *l);
    return status;
}

/* ---------------------------------------------------------------------- bytes */

/* A value as messages, at least one; frees it. */
static sessile_status send_bytes(call *c, int blob, char *data, size_t size,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t at = 0;
    do {
        size_t n = size - at < RECORD_PIECE ? size - at : RECORD_PIECE;
        ProtobufCBinaryData piece = {n, (uint8_t *)data + at};
        Sessile__V1__RecordBlob as_blob = SESSILE__V1__RECORD_BLOB__INIT;
        Sessile__V1__RecordPiece as_piece = SESSILE__V1__RECORD_PIECE__INIT;
        as_blob.data = as_piece.data = piece;
        at += n;
        as_piece.end = at == size;
        status = call_reply(c, blob ? &as_blob.base : &as_piece.base, err);
        if (!status)
            status = records_pace(c, err);
    } while (!status && at < size);
    sessile_free(data);
    return status;
}

typedef struct naming {
    call *c;
    sessile_error *err;
    sessile_status status;
    ProtobufCBinaryData names[ROWS];
    char room[ROWS][RECORD_NAME_SIZE];
    size_t count;
} naming;

static sessile_status send_names(naming *n)
{
    Sessile__V1__RecordBlob reply = SESSILE__V1__RECORD_BLOB__INIT;
    if (n->count == 0 || n->status)
        return n->status;
    reply.n_names = n->count;
    reply.names = n->names;
    n->status = call_reply(n->c, &reply.base, n->err);
    n->count = 0;
    return n->status;
}

static int see_blob(void *arg, const char *name)
{
    naming *n = arg;
    n->names[n->count] = keep_name(n->room[n->count], name);
    n->count++;
    return n->count == ROWS && send_names(n);
}

static sessile_status list_blobs(call *c, const char *prefix, sessile_error *err)
{
    const store *st = &c->server->records->store;
    naming *n = mem_zalloc(&c->server->alloc, sizeof *n);
    if (!n)
        return fail_nomem(err);
    n->c = c;
    n->err = err;
    sessile_status status = st->table->blob_list(st->self, prefix, see_blob, n, err);
    if (!status)
        status = send_names(n);
    mem_free(&c->server->alloc, n, sizeof *n);
    return status;
}

static sessile_status unsupported(sessile_error *err)
{
    return fail(err, SESSILE_UNSUPPORTED, "the store does not do that with blobs");
}

static sessile_status change_blob(call *c, const Sessile__V1__RecordBlobRequest *r,
                                  const char *name, sessile_error *err)
{
    const store *st = &c->server->records->store;
    const sessile_backend *t = st->table;
    sessile_slice data, was;
    sessile_status status = records_data(c, r->data, &data, err);
    if (!status)
        status = records_data(c, r->was, &was, err);
    if (status)
        return status;
    switch (r->op) {
    case SESSILE__V1__RECORD_DO__RECORD_PUT:
        return t->blob_put_new(st->self, name, data.data, data.size, err);
    case SESSILE__V1__RECORD_DO__RECORD_REPLACE:
        return t->blob_replace ? t->blob_replace(st->self, name, was.data, was.size,
                                                 data.data, data.size, err)
                               : unsupported(err);
    case SESSILE__V1__RECORD_DO__RECORD_REMOVE:
        return t->blob_remove ? t->blob_remove(st->self, name, err) : unsupported(err);
    case SESSILE__V1__RECORD_DO__RECORD_SETTLE:
        return t->blob_settle ? t->blob_settle(st->self, name, err) : unsupported(err);
    default:
        return unsupported(err);
    }
}

static sessile_status blob(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordBlobRequest *r = request;
    const store *st = &c->server->records->store;
    char name[RECORD_NAME_SIZE], *data = NULL;
    size_t size = 0;
    sessile_status status = records_enter(c, err);
    if (!status && !(st->table->capabilities & SESSILE_BACKEND_SEALS))
        status = unsupported(err);
    if (!status)
        status = records_name(r->name, name, err);
    if (status)
        return status;
    if (r->op == SESSILE__V1__RECORD_DO__RECORD_LIST)
        return st->table->blob_list ? list_blobs(c, name, err) : unsupported(err);
    if (r->op != SESSILE__V1__RECORD_DO__RECORD_GET)
        return change_blob(c, r, name, err);
    status = st->table->blob_get(st->self, name, &data, &size, err);
    return status ? status : send_bytes(c, 1, data, size, err);
}

static sessile_status list_cache(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordListCacheRequest *r = request;
    const store *st = &c->server->records->store;
    const sessile_backend *t = st->table;
    char folder[RECORD_NAME_SIZE], *data = NULL;
    sessile_slice put;
    size_t size = 0;
    sessile_status status = records_enter(c, err);
    if (!status && !(t->capabilities & SESSILE_BACKEND_LIST_CACHE))
        status = fail(err, SESSILE_UNSUPPORTED, "the store keeps no list caches");
    if (!status)
        status = records_name(r->folder, folder, err);
    if (status)
        return status;
    switch (r->op) {
    case SESSILE__V1__RECORD_DO__RECORD_GET:
        status = t->list_cache_get(st->self, folder, &data, &size, err);
        return status ? status : send_bytes(c, 0, data, size, err);
    case SESSILE__V1__RECORD_DO__RECORD_PUT:
        status = records_data(c, r->data, &put, err);
        return status ? status
                      : t->list_cache_put(st->self, folder, put.data, put.size, err);
    case SESSILE__V1__RECORD_DO__RECORD_REMOVE:
        return t->list_cache_drop(st->self, r->all ? NULL : folder, err);
    default:
        return fail(err, SESSILE_INVALID, "there is no such use of a list cache");
    }
}

const method methods_records_lists[] = {
    RECORD_METHOD("Blob", blob, record_blob_request, METHOD_STREAMS | METHOD_APART),
    RECORD_METHOD("ListCache", list_cache, record_list_cache_request,
                  METHOD_STREAMS | METHOD_APART),
    RECORD_METHOD("List", list, record_list_request,
                  METHOD_READS | METHOD_STREAMS | METHOD_APART),
    {NULL, NULL, 0, NULL},
};
