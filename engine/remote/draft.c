/*
 * draft.c: logs in the making.
 *
 * A draft lives at the server, for a minute after the last call, and all calls for it go
 * over one connection, so that they come to the same server. What became of it is kept
 * there as well. If the server was started again meanwhile, the name is looked at: a log
 * of that length which begins as the draft did is ours.
 */
#include "remote/remote.h"

#include <string.h>

enum { BEGIN = 4096, ID = 16 };

typedef struct remote_draft {
    remote *r;
    remote_conn *conn;
    char folder[REMOTE_NAME_SIZE], name[REMOTE_NAME_SIZE];
    unsigned char id[ID];
    uint64_t size;
    size_t begin_size;
    char begin[BEGIN]; /* its first bytes */
    char kept[REMOTE_NAME_SIZE];
} remote_draft;

static remote_draft *draft_of(sessile_backend_draft *draft)
{
    return (remote_draft *)(void *)draft;
}

static void draft_free(remote_draft *d)
{
    remote_conn_give(d->r, d->conn, 1);
    mem_free(&d->r->alloc, d, sizeof *d);
}

static sessile_status ask(remote_draft *d, remote_call *call,
                          Sessile__V1__RecordDraftRequest *request, sessile_error *err)
{
    ProtobufCMessage *reply = NULL;
    call->conn = d->conn;
    sessile_status status = remote_do(call, "Draft", &request->base, err);
    if (!status)
        status = remote_only(call, &sessile__v1__record_draft__descriptor, &reply, err);
    if (status)
        return status;
    const Sessile__V1__RecordDraft *got = (const Sessile__V1__RecordDraft *)(void *)reply;
    if (got->id.len == ID)
        memcpy(d->id, got->id.data, ID);
    if (got->kept.len && got->kept.len < sizeof d->kept)
        memcpy(d->kept, got->kept.data, got->kept.len);
    protobuf_c_message_free_unpacked(reply, NULL);
    return SESSILE_OK;
}

sessile_status remote_draft_new(void *self, const char *folder, const char *name,
                                sessile_backend_draft **out, sessile_error *err)
{
    remote *r = self;
    Sessile__V1__RecordDraftRequest request = SESSILE__V1__RECORD_DRAFT_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    *out = NULL;
    sessile_status status = remote_forked(r, err);
    if (!status)
        status = store_names_check(folder, name, err);
    if (status)
        return status;
    remote_draft *d = mem_zalloc(&r->alloc, sizeof *d);
    if (!d)
        return fail_nomem(err);
    d->r = r;
    memcpy(d->folder, folder, strlen(folder));
    memcpy(d->name, name, strlen(name));
    remote_call call = remote_call_of(r, r->timeout_ms);
    call.reads = 1; /* one that nobody uses goes by itself */
    remote_name(&named, folder, name);
    request.log = &named;
    status = remote_conn_take(r, &d->conn, err);
    if (!status)
        status = ask(d, &call, &request, err);
    remote_done(&call);
    if (status)
        draft_free(d);
    else
        *out = (sessile_backend_draft *)(void *)d;
    return status;
}

sessile_status remote_draft_write(sessile_backend_draft *draft, const void *data,
                                  size_t size, sessile_error *err)
{
    remote_draft *d = draft_of(draft);
    sessile_status status = SESSILE_OK;
    for (size_t at = 0; at < size && !status;) {
        Sessile__V1__RecordDraftRequest request = SESSILE__V1__RECORD_DRAFT_REQUEST__INIT;
        size_t n = size - at < REMOTE_PIECE ? size - at : REMOTE_PIECE;
        remote_call call = remote_call_of(d->r, d->r->timeout_ms);
        request.op = SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_WRITE;
        request.id = remote_bytes(d->id, ID);
        request.offset = d->size;
        request.data = remote_bytes((const char *)data + at, n);
        status = ask(d, &call, &request, err);
        remote_done(&call);
        if (status)
            break;
        if (d->begin_size < BEGIN) {
            size_t more = BEGIN - d->begin_size < n ? BEGIN - d->begin_size : n;
            memcpy(d->begin + d->begin_size, (const char *)data + at, more);
            d->begin_size += more;
        }
        d->size += n;
        at += n;
    }
    return status == SESSILE_CLOSED
               ? fail(err, SESSILE_IO,
                      "%s was started again and has forgotten what was sent: nothing was "
                      "changed, do it again",
                      d->r->url.where)
               : status;
}

/* The server knows nothing of the draft any more: does the name lead to it? */
static sessile_status settle(remote_draft *d, const remote_call *call,
                             const unsigned char *old, sessile_error *err)
{
    unsigned char identity[REMOTE_IDENTITY];
    Sessile__V1__RecordLog named;
    uint64_t bytes = 0;
    int there = 0, same = 0;
    remote_call after = remote_call_of(d->r, 0);
    remote_grace(&after);
    after.reads = 1;
    sessile_status status =
        remote_look_up(&after, d->folder, d->name, identity, &bytes, &there, NULL);
    int other = there && (!old || memcmp(old, identity, sizeof identity) != 0);
    if (!status && other && bytes >= d->size) {
        remote_name(&named, d->folder, d->name);
        status =
            remote_same_bytes(&after, &named, 0, 0, d->begin, d->begin_size, &same, NULL);
    }
    remote_done(&after);
    if (!status && same)
        return SESSILE_OK;
    if (!status && call->known && !other)
        return fail(err, SESSILE_IO,
                    "%s was started again and has forgotten what was sent: %s was not "
                    "changed, do it again",
                    d->r->url.where, d->name);
    return remote_unknown(call, d->name, err);
}

static sessile_status end_draft(remote_draft *d, Sessile__V1__RecordDraftRequest *request,
                                const unsigned char *old, sessile_error *err)
{
    remote_call call = remote_call_of(d->r, d->r->timeout_ms);
    request->id = remote_bytes(d->id, ID);
    sessile_status status = ask(d, &call, request, err);
    if (status && (status == SESSILE_CLOSED || (call.maybe && !call.known)))
        status = settle(d, &call, old, err);
    remote_done(&call);
    return status;
}

sessile_status remote_draft_replace(sessile_backend_draft *draft,
                                    sessile_backend_log *old, int keep, char *kept,
                                    size_t kept_size, sessile_error *err)
{
    remote_draft *d = draft_of(draft);
    remote_log *log = remote_log_of(old);
    Sessile__V1__RecordDraftRequest request = SESSILE__V1__RECORD_DRAFT_REQUEST__INIT;
    Sessile__V1__RecordLog named;
    remote_log_name(&named, log);
    request.log = &named;
    request.op = SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_REPLACE;
    request.keep = keep;
    pthread_mutex_lock(&log->mutex);
    request.seen = log->size;
    log->ahead_us = 0;
    pthread_mutex_unlock(&log->mutex);
    sessile_status status = end_draft(d, &request, log->identity, err);
    if (!status && keep && kept && kept_size > 0) {
        size_t n = strlen(d->kept) < kept_size ? strlen(d->kept) : kept_size - 1;
        memcpy(kept, d->kept, n);
        kept[n] = '\0';
    }
    draft_free(d);
    return status;
}

sessile_status remote_draft_publish(sessile_backend_draft *draft, sessile_error *err)
{
    remote_draft *d = draft_of(draft);
    Sessile__V1__RecordDraftRequest request = SESSILE__V1__RECORD_DRAFT_REQUEST__INIT;
    request.op = SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_PUBLISH;
    sessile_status status = end_draft(d, &request, NULL, err);
    draft_free(d);
    return status;
}

void remote_draft_drop(sessile_backend_draft *draft)
{
    remote_draft *d = draft_of(draft);
    Sessile__V1__RecordDraftRequest request = SESSILE__V1__RECORD_DRAFT_REQUEST__INIT;
    if (!d)
        return;
    remote_call call = remote_call_of(d->r, 0);
    call.once = call.reads = 1;
    request.op = SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_DROP;
    request.id = remote_bytes(d->id, ID);
    (void)ask(d, &call, &request, NULL);
    remote_done(&call);
    draft_free(d);
}
