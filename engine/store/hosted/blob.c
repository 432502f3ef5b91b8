/*
 * blob.c: blobs and list caches of a hosted backend.
 *
 * What the host returns is copied into a block of the engine's own. A size is believed
 * only if the host's block has that many bytes.
 */
#include "store/hosted/hosted.h"

#include "base/alloc.h"
#include "store/wait.h"

/* No blob of ours comes near it: a keyring with all its epochs has less. */
#define BLOB_MOST ((size_t)16 << 20)

/* What was handed out becomes a block of the engine's own, of a size that is true. */
static sessile_status take_blob(const hosted *h, sessile_status status, char *given,
                                char **out, size_t *size, sessile_error *err)
{
    *out = NULL;
    if (!status && (!given || *size > BLOB_MOST)) {
        status =
            hosted_absurd(h, err, "a blob has no bytes, or more than a blob can have");
    } else if (!status && host_size(given) < *size) {
        status = hosted_absurd(h, err, "a blob is shorter than it was said to be");
    } else if (!status) {
        *out = host_dup(&h->alloc, given, *size);
        status = *out ? SESSILE_OK : fail_nomem(err);
    }
    if (status)
        *size = 0;
    host_free(given);
    return status;
}

static sessile_status hosted_blob_get(void *self, const char *name, char **out,
                                      size_t *size, sessile_error *err)
{
    hosted *h = self;
    char *given = NULL;
    *size = 0;
    HOSTED_CALL(status, h, err, blob_get, h->self, name, &given, size);
    return take_blob(h, status, given, out, size, err);
}

static sessile_status hosted_blob_put_new(void *self, const char *name, const void *data,
                                          size_t size, sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, blob_put_new, h->self, name, data, size);
    return status;
}

static sessile_status hosted_blob_replace(void *self, const char *name, const void *was,
                                          size_t was_size, const void *data, size_t size,
                                          sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, blob_replace, h->self, name, was, was_size, data, size);
    return status;
}

static sessile_status hosted_blob_remove(void *self, const char *name, sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, blob_remove, h->self, name);
    return status;
}

/* A visit in progress. */
typedef struct visiting {
    int (*blob)(void *arg, const char *name);
    void *arg;
    int over;
} visiting;

static int show_blob(void *arg, const char *name)
{
    visiting *v = arg;
    if (!v->over && store_name_ok(name))
        v->over = v->blob(v->arg, name) != 0;
    return v->over;
}

static sessile_status hosted_blob_list(void *self, const char *prefix,
                                       int (*visit)(void *arg, const char *name),
                                       void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.blob = visit, .arg = arg};
    HOSTED_CALL(status, h, err, blob_list, h->self, prefix, show_blob, &v);
    return status;
}

static sessile_status hosted_blob_settle(void *self, const char *name, sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, blob_settle, h->self, name);
    return status;
}

static sessile_status hosted_list_cache_get(void *self, const char *folder, char **out,
                                            size_t *size, sessile_error *err)
{
    hosted *h = self;
    char *given = NULL;
    *size = 0;
    HOSTED_CALL(status, h, err, list_cache_get, h->self, folder, &given, size);
    return take_blob(h, status, given, out, size, err);
}

static sessile_status hosted_list_cache_put(void *self, const char *folder,
                                            const void *data, size_t size,
                                            sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, list_cache_put, h->self, folder, data, size);
    return status;
}

static sessile_status hosted_list_cache_drop(void *self, const char *folder,
                                             sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, list_cache_drop, h->self, folder);
    return status;
}

void hosted_show_blobs(sessile_backend *shown, const sessile_backend *host)
{
    if (host->capabilities & SESSILE_BACKEND_SEALS) {
        shown->blob_get = hosted_blob_get;
        shown->blob_put_new = hosted_blob_put_new;
        shown->blob_replace = host->blob_replace ? hosted_blob_replace : NULL;
        shown->blob_remove = host->blob_remove ? hosted_blob_remove : NULL;
        shown->blob_list = host->blob_list ? hosted_blob_list : NULL;
        shown->blob_settle = host->blob_settle ? hosted_blob_settle : NULL;
    }
    if (host->capabilities & SESSILE_BACKEND_LIST_CACHE) {
        shown->list_cache_get = hosted_list_cache_get;
        shown->list_cache_put = hosted_list_cache_put;
        shown->list_cache_drop = hosted_list_cache_drop;
    }
}
