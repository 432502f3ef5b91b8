/*
 * blob_names.c: the names of the blobs of a store.
 *
 * They are collected before any of them is read, because a backend's list may hold what
 * its other functions wait for.
 */
#include <string.h>

#include "vault/vault.h"

static int add_name(void *arg, const char *name)
{
    blob_names *n = arg;
    buf_put(&n->text, name, strlen(name) + 1);
    n->count++;
    return n->text.failed;
}

sessile_status blob_names_find(blob_names *out, const sessile_backend *table, void *self,
                               const char *prefix, const allocator *a, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    out->count = 0;
    buf_init(&out->text, a);
    if (table->blob_list)
        status = table->blob_list(self, prefix, add_name, out, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err); /* nothing was ever written there */
        status = SESSILE_OK;
    }
    return !status && out->text.failed ? fail_nomem(err) : status;
}
