/*
 * hosted.c: opens a backend that the host application supplies.
 *
 * Checks the host's table, keeps a copy of it, and puts a table of its own in front.
 */
#include "store/hosted/hosted.h"

#include <stdio.h>

static sessile_status check_table(const sessile_backend *t, sessile_error *err)
{
    const int locks = (t->capabilities & SESSILE_BACKEND_LOCKS) != 0;
    const struct {
        unsigned with; /* a capability, or 0: always */
        int there;
        const char *what;
    } wanted[] = {
        {0, t->create != NULL, "create"},
        {0, t->open != NULL, "open"},
        {0, t->close != NULL, "close"},
        {0, t->size != NULL, "size"},
        {0, t->read != NULL, "read"},
        {0, t->append != NULL, "append"},
        {0, t->sync != NULL, "sync"},
        {0, t->list != NULL, "list"},
        {SESSILE_BACKEND_SEALS, t->blob_get != NULL, "blob_get"},
        {SESSILE_BACKEND_SEALS, t->blob_put_new != NULL, "blob_put_new"},
        {SESSILE_BACKEND_SEALS, !t->blob_remove || t->blob_list,
         "blob_list, which goes with blob_remove"},
        {SESSILE_BACKEND_LOCKS, t->lock && t->unlock, "lock and unlock"},
        {SESSILE_BACKEND_CUTS, t->set_aside != NULL, "set_aside"},
        {SESSILE_BACKEND_CUTS, locks, "LOCKS, without which it may not cut"},
        {SESSILE_BACKEND_CACHES, t->cache_size && t->cache_read && t->cache_write,
         "cache_size, cache_read and cache_write"},
        {SESSILE_BACKEND_REPLACES,
         t->draft_new && t->draft_write && t->draft_replace && t->draft_drop,
         "draft_new, draft_write, draft_replace and draft_drop"},
        {SESSILE_BACKEND_REPLACES, locks || t->replaced,
         "replaced, by which handles learn of it where there are no LOCKS"},
        {SESSILE_BACKEND_LIST_CACHE,
         t->stat && t->list_stat && t->list_cache_get && t->list_cache_put &&
             t->list_cache_drop,
         "stat, list_stat, list_cache_get, list_cache_put and list_cache_drop"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!wanted[i].there &&
            (wanted[i].with == 0 || (t->capabilities & wanted[i].with) != 0)) {
            return fail(err, SESSILE_INVALID, "the store's table lacks %s",
                        wanted[i].what);
        }
    }
    return SESSILE_OK;
}

static sessile_status check_version(const sessile_backend *table, sessile_error *err)
{
    if (table->version == SESSILE_BACKEND_VERSION)
        return SESSILE_OK;
    return fail(err, SESSILE_UNSUPPORTED,
                "the store's table is of version %d, and this library knows version %d",
                table->version, SESSILE_BACKEND_VERSION);
}

static void hosted_free(void *self)
{
    hosted *h = self;
    if (h->host.free)
        h->host.free(h->self);
    allocator a = h->alloc;
    mem_free(&a, h, sizeof *h);
}

sessile_status store_hosted_open(store *out, const sessile_backend *table, void *self,
                                 const allocator *a, sessile_error *err)
{
    out->table = NULL;
    out->self = NULL;
    sessile_status status = check_version(table, err);
    if (!status)
        status = check_table(table, err);
    hosted *h = !status ? mem_zalloc(a, sizeof *h) : NULL;
    if (!h) {
        if (table->free)
            table->free(self);
        return !status ? fail_nomem(err) : status;
    }
    h->alloc = *a;
    h->host = *table;
    h->self = self;
    snprintf(h->name, sizeof h->name, "%s", table->name ? table->name : "");
    h->shown = (sessile_backend){
        .version = SESSILE_BACKEND_VERSION,
        .capabilities =
            table->capabilities & (SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CUTS |
                                   SESSILE_BACKEND_LOCKS | SESSILE_BACKEND_CACHES |
                                   SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_LIST_CACHE),
        .name = h->name,
        .free = hosted_free,
    };
    hosted_show_logs(&h->shown, &h->host);
    hosted_show_lists(&h->shown, &h->host);
    hosted_show_blobs(&h->shown, &h->host);
    out->table = &h->shown;
    out->self = h;
    return SESSILE_OK;
}
