/*
 * ram_blob.c: blobs in memory, a list under the mutex of their store.
 *
 * A visitor of a list may use the store: it runs without the mutex, over copied names.
 */
#include "store/ram_internal.h"

#include <string.h>

#include "base/buf.h"
#include "store/wait.h"

typedef struct ram_blob {
    struct ram_blob *next;
    char *name, *data;
    size_t size;
} ram_blob;

static void free_blob(ram_store *rs, ram_blob *blob)
{
    if (blob) {
        ram_free_text(rs, blob->name);
        if (blob->data)
            mem_free(&rs->alloc, blob->data, blob->size + 1);
        mem_free(&rs->alloc, blob, sizeof *blob);
    }
}

sessile_status ram_blob_get(void *self, const char *name, char **out, size_t *size,
                            sessile_error *err)
{
    ram_store *rs = self;
    *out = NULL;
    *size = 0;
    sessile_status status = store_name_check(name, err);
    if (status)
        return status;
    pthread_mutex_lock(&rs->mutex);
    ram_blob *blob = rs->blobs;
    while (blob && strcmp(blob->name, name) != 0)
        blob = blob->next;
    if (!blob)
        status = fail(err, SESSILE_NOTFOUND, "there is no %s", name);
    else if (!(*out = host_dup(&rs->alloc, blob->data, blob->size)))
        status = fail_nomem(err);
    else
        *size = blob->size;
    pthread_mutex_unlock(&rs->mutex);
    return status;
}

sessile_status ram_blob_put_new(void *self, const char *name, const void *data,
                                size_t size, sessile_error *err)
{
    ram_store *rs = self;
    sessile_status status = store_name_check(name, err);
    if (status)
        return status;
    ram_blob *blob = mem_zalloc(&rs->alloc, sizeof *blob);
    if (!blob)
        return fail_nomem(err);
    blob->size = size;
    blob->name = mem_dup(&rs->alloc, name, strlen(name));
    blob->data = mem_dup(&rs->alloc, data, size);
    if (!blob->name || !blob->data) {
        free_blob(rs, blob);
        return fail_nomem(err);
    }
    pthread_mutex_lock(&rs->mutex);
    ram_blob **at = &rs->blobs;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    if (*at) {
        status = fail(err, SESSILE_EXISTS, "%s is already there", name);
    } else {
        *at = blob;
        blob = NULL;
    }
    pthread_mutex_unlock(&rs->mutex);
    free_blob(rs, blob);
    return status;
}

sessile_status ram_blob_remove(void *self, const char *name, sessile_error *err)
{
    ram_store *rs = self;
    sessile_status status = store_name_check(name, err);
    if (status)
        return status;
    pthread_mutex_lock(&rs->mutex);
    ram_blob **at = &rs->blobs, *blob;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    blob = *at;
    if (blob)
        *at = blob->next;
    pthread_mutex_unlock(&rs->mutex);
    if (!blob)
        return fail(err, SESSILE_NOTFOUND, "there is no %s", name);
    free_blob(rs, blob);
    return SESSILE_OK;
}

sessile_status ram_blob_list(void *self, const char *prefix,
                             int (*visit)(void *arg, const char *name), void *arg,
                             sessile_error *err)
{
    ram_store *rs = self;
    buf names;
    int stopped = 0;
    buf_init(&names, &rs->alloc);
    pthread_mutex_lock(&rs->mutex);
    for (const ram_blob *blob = rs->blobs; blob; blob = blob->next)
        if (strncmp(blob->name, prefix, strlen(prefix)) == 0)
            buf_put(&names, blob->name, strlen(blob->name) + 1);
    pthread_mutex_unlock(&rs->mutex);
    sessile_status status = names.failed ? fail_nomem(err) : SESSILE_OK;
    for (size_t at = 0; !status && !stopped && at < names.size;) {
        const char *name = names.data + at;
        at += strlen(name) + 1;
        stopped = visit(arg, name) != 0;
    }
    buf_deinit(&names);
    return status;
}

void ram_blobs_free(ram_store *rs)
{
    while (rs->blobs) {
        ram_blob *blob = rs->blobs;
        rs->blobs = blob->next;
        free_blob(rs, blob);
    }
}
