/*
 * remote.c: a store behind a server of records: opened, its table, closed.
 *
 * What the server's store can do is asked once, when it is opened, and the table has just
 * those functions. Locks stay at the server: to everybody here an append is the fence.
 */
#include "remote/remote.h"

#include <string.h>

static void remote_free(void *self)
{
    remote *r = self;
    if (!r)
        return;
    /* The connections of a parent are not a child's to end. */
    if (r->os->pid(r->os->ud) == r->pid)
        remote_conns_close(r);
    if (r->tls)
        rpc_tls_drop(r->tls);
    if (r->credential) {
        size_t size = strlen(r->credential);
        wipe(r->credential, size);
        mem_free(&r->alloc, r->credential, size + 1);
    }
    pthread_mutex_destroy(&r->mutex);
    allocator a = r->alloc;
    mem_free(&a, r, sizeof *r);
}

/* A server sweeps its own store: the table has no such function. */
#define remote_sweep NULL

/* Not 0: the server's store has that function. */
#define HAS(name) (r->functions & SESSILE__V1__RECORD_FUNCTION__FUNCTION_##name)

static void fill_table(remote *r, unsigned capabilities)
{
    sessile_backend *t = &r->table;
    *t = (sessile_backend){
        STORE_TABLE(remote),
        .capabilities =
            capabilities & (SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CACHES |
                            SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_LIST_CACHE),
        .name = "grpc",
        .free = remote_free,
        .watch = remote_watch,
        .set_timeout = remote_set_timeout,
        .fence = remote_fence,
        .blob_settle = remote_blob_settle,
        .clock = remote_clock,
    };
    t->remove = HAS(REMOVE) ? t->remove : NULL;
    t->rename = HAS(RENAME) ? t->rename : NULL;
    t->blob_replace = HAS(BLOB_REPLACE) ? t->blob_replace : NULL;
    t->blob_remove = HAS(BLOB_REMOVE) ? t->blob_remove : NULL;
    t->blob_list = HAS(BLOB_LIST) ? t->blob_list : NULL;
    t->list_others = HAS(LIST_OTHERS) ? t->list_others : NULL;
    t->has_logs = HAS(HAS_LOGS) ? t->has_logs : NULL;
    t->draft_publish = HAS(DRAFT_PUBLISH) ? t->draft_publish : NULL;
    t->fence = HAS(FENCE) ? t->fence : NULL;
    t->blob_settle = HAS(BLOB_SETTLE) ? t->blob_settle : NULL;
    t->ends = HAS(ENDS) ? t->ends : NULL;
}

/* ---------------------------------------------------------------------- the server */

static sessile_status describe(remote *r, int first, Sessile__V1__RecordStore **out,
                               sessile_error *err)
{
    Sessile__V1__RecordStoreRequest request = SESSILE__V1__RECORD_STORE_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    remote_call call = remote_call_of(r, r->timeout_ms);
    call.reads = 1;
    call.once = first;
    *out = NULL;
    sessile_status status = remote_do(&call, "Store", &request.base, err);
    if (!status)
        status = remote_only(&call, &sessile__v1__record_store__descriptor, &reply, err);
    remote_done(&call);
    if (status)
        return status;
    *out = (Sessile__V1__RecordStore *)(void *)reply;
    if ((*out)->version == 1)
        return SESSILE_OK;
    protobuf_c_message_free_unpacked(reply, NULL);
    return fail(err, SESSILE_UNSUPPORTED,
                "%s is newer than this program, and serves records in another way: "
                "install the same version",
                r->url.where);
}

sessile_status remote_clock(void *self, int64_t *now_ms, sessile_error *err)
{
    Sessile__V1__RecordStore *reply;
    *now_ms = 0;
    sessile_status status = describe(self, 0, &reply, err);
    if (status)
        return status;
    *now_ms = reply->now_ms;
    protobuf_c_message_free_unpacked(&reply->base, NULL);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- opening */

static sessile_status open_tls(remote *r, sessile_error *err)
{
    const remote_url *u = &r->url;
    rpc_tls_files files = {.cert = u->cert[0] ? u->cert : NULL,
                           .key = u->key[0] ? u->key : NULL,
                           .ca = u->ca[0] ? u->ca : NULL,
                           .name = u->host};
    return u->encrypted ? rpc_tls_open(&r->tls, 0, &files, &r->alloc, err) : SESSILE_OK;
}

static sessile_status connect_first(remote *r, sessile_error *err)
{
    Sessile__V1__RecordStore *reply;
    sessile_status status = describe(r, 1, &reply, err);
    if (status)
        return status;
    r->functions = reply->functions;
    fill_table(r, reply->capabilities);
    protobuf_c_message_free_unpacked(&reply->base, NULL);
    return SESSILE_OK;
}

/* The one function that the library exports: a store_remote_function. */
__attribute__((visibility("default"))) sessile_status
remote_store_open(int version, store *out, const char *url, const store_setup *setup,
                  sessile_error *err);

sessile_status remote_store_open(int version, store *out, const char *url,
                                 const store_setup *setup, sessile_error *err)
{
    *out = (store){NULL, NULL};
    if (version != STORE_REMOTE_VERSION)
        return fail(err, SESSILE_UNSUPPORTED,
                    "libsessile-remote.so is of another version than this program: "
                    "install the same version");
    if (base_init() != 0)
        return fail(err, SESSILE_UNSUPPORTED, "libsodium cannot be used on this machine");
    remote *r = mem_zalloc(setup->alloc, sizeof *r);
    if (!r)
        return fail_nomem(err);
    r->os = setup->os;
    r->alloc = *setup->alloc;
    r->pid = r->os->pid(r->os->ud);
    r->timeout_ms = setup->timeout_ms;
    r->unsynced = setup->unsynced;
    pthread_mutex_init(&r->mutex, NULL);
    sessile_status status = remote_url_parse(&r->url, url, err);
    if (!status && r->url.timeout_ms > 0)
        r->timeout_ms = r->url.timeout_ms;
    if (!status)
        status = remote_credential(&r->url, r->os, &r->alloc, &r->credential, err);
    if (!status)
        status = open_tls(r, err);
    if (!status)
        status = connect_first(r, err);
    if (status) {
        remote_free(r);
        return status;
    }
    out->table = &r->table;
    out->self = r;
    return SESSILE_OK;
}
