/*
 * blob.c: blobs.
 *
 * A change whose answer was lost is judged by what the second try found: a blob that is
 * there already and has our bytes was put by us, or by somebody who wanted the same.
 */
#include "remote/remote.h"

#include <string.h>

static sessile_status get(remote_call *call, const char *name, buf *out,
                          sessile_error *err)
{
    Sessile__V1__RecordBlobRequest request = SESSILE__V1__RECORD_BLOB_REQUEST__INIT;
    ProtobufCMessage *m;
    size_t at = 0;
    request.name = remote_bytes(name, strlen(name));
    request.op = SESSILE__V1__RECORD_DO__RECORD_GET;
    sessile_status status = remote_do(call, "Blob", &request.base, err);
    while (!status &&
           (m = remote_reply(call, &sessile__v1__record_blob__descriptor, &at))) {
        ProtobufCBinaryData data = ((Sessile__V1__RecordBlob *)(void *)m)->data;
        buf_put(out, data.data, data.len);
        protobuf_c_message_free_unpacked(m, NULL);
    }
    return !status && out->failed ? fail_nomem(err) : status;
}

sessile_status remote_blob_get(void *self, const char *name, char **out, size_t *size,
                               sessile_error *err)
{
    remote *r = self;
    remote_call call = remote_call_of(r, r->timeout_ms);
    buf all;
    buf_init(&all, &r->alloc);
    call.reads = 1;
    *out = NULL;
    *size = 0;
    sessile_status status = get(&call, name, &all, err);
    if (!status) {
        *out = host_dup(&allocator_default, all.data ? all.data : "", all.size);
        *size = all.size;
        if (!*out)
            status = fail_nomem(err);
    }
    buf_wipe(&all);
    remote_done(&call);
    return status;
}

/* Whether the blob has these bytes now. 0 also if nobody says. */
static int holds(remote *r, const char *name, const void *data, size_t size)
{
    remote_call call = remote_call_of(r, 0);
    buf all;
    buf_init(&all, &r->alloc);
    remote_grace(&call);
    call.reads = 1;
    int same = !get(&call, name, &all, NULL) && all.size == size &&
               (size == 0 || memcmp(all.data, data, size) == 0);
    buf_wipe(&all);
    remote_done(&call);
    return same;
}

typedef struct blob_change {
    Sessile__V1__RecordDo op;
    const void *was, *data;
    size_t was_size, size;
    sessile_status ours; /* what a second try finds after the first took place */
} blob_change;

static sessile_status change(remote *r, const char *name, const blob_change *b,
                             sessile_error *err)
{
    Sessile__V1__RecordBlobRequest request = SESSILE__V1__RECORD_BLOB_REQUEST__INIT;
    Sessile__V1__RecordData was = SESSILE__V1__RECORD_DATA__INIT,
                            data = SESSILE__V1__RECORD_DATA__INIT;
    remote_call call = remote_call_of(r, r->timeout_ms);
    sessile_status status = remote_send(&call, b->was, b->was_size, &was, err);
    if (!status)
        status = remote_send(&call, b->data, b->size, &data, err);
    if (!status) {
        request.name = remote_bytes(name, strlen(name));
        request.op = b->op;
        request.was = &was;
        request.data = &data;
        status = remote_do(&call, "Blob", &request.base, err);
        if (status && call.maybe && call.known && status == b->ours &&
            (b->op == SESSILE__V1__RECORD_DO__RECORD_REMOVE ||
             holds(r, name, b->data, b->size)))
            status = SESSILE_OK;
        else if (status && call.maybe && (!call.known || status == SESSILE_IO))
            status = remote_unknown(&call, name, err);
    }
    remote_sent(&call, &was);
    remote_sent(&call, &data);
    remote_done(&call);
    return status;
}

sessile_status remote_blob_put_new(void *self, const char *name, const void *data,
                                   size_t size, sessile_error *err)
{
    return change(self, name,
                  &(blob_change){.op = SESSILE__V1__RECORD_DO__RECORD_PUT,
                                 .data = data,
                                 .size = size,
                                 .ours = SESSILE_EXISTS},
                  err);
}

sessile_status remote_blob_replace(void *self, const char *name, const void *was,
                                   size_t was_size, const void *data, size_t size,
                                   sessile_error *err)
{
    return change(self, name,
                  &(blob_change){.op = SESSILE__V1__RECORD_DO__RECORD_REPLACE,
                                 .was = was,
                                 .was_size = was_size,
                                 .data = data,
                                 .size = size,
                                 .ours = SESSILE_CONFLICT},
                  err);
}

sessile_status remote_blob_remove(void *self, const char *name, sessile_error *err)
{
    return change(self, name,
                  &(blob_change){.op = SESSILE__V1__RECORD_DO__RECORD_REMOVE,
                                 .ours = SESSILE_NOTFOUND},
                  err);
}

sessile_status remote_blob_settle(void *self, const char *name, sessile_error *err)
{
    return change(
        self, name,
        &(blob_change){.op = SESSILE__V1__RECORD_DO__RECORD_SETTLE, .ours = SESSILE_OK},
        err);
}

static int show_names(const Sessile__V1__RecordBlob *b,
                      int (*visit)(void *arg, const char *name), void *arg)
{
    char name[REMOTE_NAME_SIZE];
    for (size_t i = 0; i < b->n_names; i++) {
        ProtobufCBinaryData from = b->names[i];
        if (from.len >= sizeof name)
            continue;
        memcpy(name, from.data, from.len);
        name[from.len] = '\0';
        if (visit(arg, name) != 0)
            return 1;
    }
    return 0;
}

sessile_status remote_blob_list(void *self, const char *prefix,
                                int (*visit)(void *arg, const char *name), void *arg,
                                sessile_error *err)
{
    remote *r = self;
    Sessile__V1__RecordBlobRequest request = SESSILE__V1__RECORD_BLOB_REQUEST__INIT;
    remote_call call = remote_call_of(r, r->timeout_ms);
    ProtobufCMessage *m;
    size_t at = 0;
    int over = 0;
    call.reads = 1;
    request.name = remote_bytes(prefix, strlen(prefix));
    request.op = SESSILE__V1__RECORD_DO__RECORD_LIST;
    sessile_status status = remote_do(&call, "Blob", &request.base, err);
    while (!status && !over &&
           (m = remote_reply(&call, &sessile__v1__record_blob__descriptor, &at))) {
        over = show_names((const Sessile__V1__RecordBlob *)(void *)m, visit, arg);
        protobuf_c_message_free_unpacked(m, NULL);
    }
    remote_done(&call);
    return status;
}
