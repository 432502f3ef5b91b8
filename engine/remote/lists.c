/*
 * lists.c: lists of logs, and list caches.
 *
 * A list is there as a whole before the first row is shown, so that a visitor may take
 * its time, and call the store.
 */
#include "remote/remote.h"

#include <string.h>

typedef int see_row(void *arg, const Sessile__V1__RecordRow *row, const char *folder,
                    const char *name);

/* A name of a row as a string. 0, or -1: it cannot be one. */
static int take_name(ProtobufCBinaryData from, char out[REMOTE_NAME_SIZE])
{
    if (from.len >= REMOTE_NAME_SIZE)
        return -1;
    if (from.len)
        memcpy(out, from.data, from.len);
    out[from.len] = '\0';
    return strlen(out) == from.len ? 0 : -1;
}

static int show_rows(const Sessile__V1__RecordRows *rows, see_row *see, void *arg)
{
    char folder[REMOTE_NAME_SIZE], name[REMOTE_NAME_SIZE];
    for (size_t i = 0; i < rows->n_rows; i++)
        if (take_name(rows->rows[i]->folder, folder) == 0 &&
            take_name(rows->rows[i]->name, name) == 0 &&
            see(arg, rows->rows[i], folder, name) != 0)
            return 1;
    return 0;
}

/* Asks for a list; folder NULL: of all folders. */
static sessile_status list_some(remote *r, Sessile__V1__RecordKind kind,
                                const char *folder, const char *name, see_row *see,
                                void *arg, sessile_error *err)
{
    Sessile__V1__RecordListRequest request = SESSILE__V1__RECORD_LIST_REQUEST__INIT;
    remote_call call = remote_call_of(r, r->timeout_ms);
    size_t at = 0;
    int over = 0;
    call.reads = 1;
    request.kind = kind;
    request.all = folder == NULL;
    if (folder)
        request.folder = remote_bytes(folder, strlen(folder));
    if (name)
        request.name = remote_bytes(name, strlen(name));
    sessile_status status = remote_do(&call, "List", &request.base, err);
    while (!status && !over && at < call.replies.size) {
        ProtobufCMessage *rows =
            remote_reply(&call, &sessile__v1__record_rows__descriptor, &at);
        if (!rows)
            status = fail(err, SESSILE_IO, "%s answered something that cannot be read",
                          r->url.where);
        else
            over = show_rows((const Sessile__V1__RecordRows *)(void *)rows, see, arg);
        if (rows)
            protobuf_c_message_free_unpacked(rows, NULL);
    }
    remote_done(&call);
    return status;
}

typedef struct visiting {
    int (*log)(void *arg, const char *folder, const char *name);
    int (*stat)(void *arg, const char *folder, const char *name,
                const sessile_backend_stat *stat);
    int (*other)(void *arg, const char *folder, const char *file, uint64_t bytes);
    void *arg;
} visiting;

static int see_log(void *arg, const Sessile__V1__RecordRow *row, const char *folder,
                   const char *name)
{
    const visiting *v = arg;
    (void)row;
    return v->log(v->arg, folder, name);
}

sessile_status remote_list(void *self, const char *folder,
                           int (*visit)(void *arg, const char *folder, const char *name),
                           void *arg, sessile_error *err)
{
    visiting v = {.log = visit, .arg = arg};
    return list_some(self, SESSILE__V1__RECORD_KIND__RECORD_LOGS, folder, NULL, see_log,
                     &v, err);
}

static sessile_backend_stat stat_of(const Sessile__V1__RecordRow *row)
{
    return (sessile_backend_stat){.bytes = row->bytes,
                                  .mtime_ns = row->mtime_ns,
                                  .inode = row->inode,
                                  .changed_ns = row->changed_ns};
}

static int see_stat(void *arg, const Sessile__V1__RecordRow *row, const char *folder,
                    const char *name)
{
    const visiting *v = arg;
    sessile_backend_stat stat = stat_of(row);
    return v->stat(v->arg, folder, name, row->has_stat ? &stat : NULL);
}

sessile_status remote_list_stat(void *self, const char *folder,
                                int (*visit)(void *arg, const char *folder,
                                             const char *name,
                                             const sessile_backend_stat *stat),
                                void *arg, sessile_error *err)
{
    visiting v = {.stat = visit, .arg = arg};
    return list_some(self, SESSILE__V1__RECORD_KIND__RECORD_STATS, folder, NULL, see_stat,
                     &v, err);
}

static int see_other(void *arg, const Sessile__V1__RecordRow *row, const char *folder,
                     const char *name)
{
    const visiting *v = arg;
    return v->other(v->arg, *folder ? folder : NULL, name, row->bytes);
}

sessile_status remote_list_others(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *file, uint64_t bytes),
                                  void *arg, sessile_error *err)
{
    visiting v = {.other = visit, .arg = arg};
    return list_some(self, SESSILE__V1__RECORD_KIND__RECORD_OTHERS, folder, NULL,
                     see_other, &v, err);
}

static int see_any(void *arg, const Sessile__V1__RecordRow *row, const char *folder,
                   const char *name)
{
    (void)row;
    (void)folder;
    (void)name;
    return *(int *)arg = 1;
}

sessile_status remote_has_logs(void *self, int *found, sessile_error *err)
{
    *found = 0;
    return list_some(self, SESSILE__V1__RECORD_KIND__RECORD_ANY_LOG, NULL, NULL, see_any,
                     found, err);
}

typedef struct one_stat {
    sessile_backend_stat stat;
    int there;
} one_stat;

static int see_one(void *arg, const Sessile__V1__RecordRow *row, const char *folder,
                   const char *name)
{
    one_stat *one = arg;
    (void)folder;
    (void)name;
    one->stat = stat_of(row);
    one->there = row->has_stat;
    return 1;
}

sessile_status remote_stat(void *self, const char *folder, const char *name,
                           sessile_backend_stat *out, sessile_error *err)
{
    one_stat one = {.there = 0};
    sessile_status status = list_some(self, SESSILE__V1__RECORD_KIND__RECORD_ONE, folder,
                                      name, see_one, &one, err);
    *out = one.stat;
    return !status && !one.there ? fail(err, SESSILE_NOTFOUND, "there is no log %s", name)
                                 : status;
}

/* ---------------------------------------------------------------------- list caches */

sessile_status remote_list_cache_get(void *self, const char *folder, char **out,
                                     size_t *size, sessile_error *err)
{
    remote *r = self;
    Sessile__V1__RecordListCacheRequest request =
        SESSILE__V1__RECORD_LIST_CACHE_REQUEST__INIT;
    remote_call call = remote_call_of(r, r->timeout_ms);
    ProtobufCMessage *m;
    size_t at = 0;
    buf all;
    buf_init(&all, &r->alloc);
    call.reads = 1;
    *out = NULL;
    *size = 0;
    request.folder = remote_bytes(folder, strlen(folder));
    request.op = SESSILE__V1__RECORD_DO__RECORD_GET;
    sessile_status status = remote_do(&call, "ListCache", &request.base, err);
    while (!status &&
           (m = remote_reply(&call, &sessile__v1__record_piece__descriptor, &at))) {
        ProtobufCBinaryData data = ((Sessile__V1__RecordPiece *)(void *)m)->data;
        buf_put(&all, data.data, data.len);
        protobuf_c_message_free_unpacked(m, NULL);
    }
    if (!status) {
        *out = host_dup(&allocator_default, all.data ? all.data : "", all.size);
        *size = all.size;
        if (all.failed || !*out)
            status = fail_nomem(err);
    }
    buf_deinit(&all);
    remote_done(&call);
    return status;
}

static sessile_status change_list_cache(remote *r, const char *folder, int drop,
                                        const void *data, size_t size, sessile_error *err)
{
    Sessile__V1__RecordListCacheRequest request =
        SESSILE__V1__RECORD_LIST_CACHE_REQUEST__INIT;
    Sessile__V1__RecordData sent;
    remote_call call = remote_call_of(r, r->timeout_ms);
    call.reads = 1; /* a cache may be either */
    sessile_status status = remote_send(&call, data, size, &sent, err);
    if (!status) {
        request.all = folder == NULL;
        request.folder = remote_bytes(folder ? folder : "", folder ? strlen(folder) : 0);
        request.op = drop ? SESSILE__V1__RECORD_DO__RECORD_REMOVE
                          : SESSILE__V1__RECORD_DO__RECORD_PUT;
        request.data = &sent;
        status = remote_do(&call, "ListCache", &request.base, err);
        remote_sent(&call, &sent);
    }
    remote_done(&call);
    return status;
}

sessile_status remote_list_cache_put(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err)
{
    return change_list_cache(self, folder, 0, data, size, err);
}

sessile_status remote_list_cache_drop(void *self, const char *folder, sessile_error *err)
{
    return change_list_cache(self, folder, 1, "", 0, err);
}
