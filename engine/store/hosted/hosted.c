/*
 * hosted.c: a backend that the host brought, looked after.
 *
 * Owns a copy of the host's table and a table of its own in front of it. What the host's
 * functions answer is believed only as far as it makes sense: a status that there is none
 * of, a size beyond all bounds, more bytes than were asked for, a name that the engine
 * never made. Everything else passes, with the host's own sentence. It must never change
 * what a call means, nor call the host's functions of itself: no retry, no cache.
 */
#include "store/hosted/hosted.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------- answers */

sessile_error *hosted_hear(hosted_answer *a, sessile_error *err)
{
    memset(a, 0, sizeof *a);
    a->err = err;
    return &a->heard;
}

sessile_status hosted_told(const hosted *h, hosted_answer *a, sessile_status status,
                           const char *what)
{
    a->heard.message[sizeof a->heard.message - 1] = '\0';
    if (!status) {
        error_clear(a->err);
        return SESSILE_OK;
    }
    if ((int)status < 0 || status > SESSILE_CLOSED || status == SESSILE_NEEDS) {
        return fail(a->err, SESSILE_IO,
                    "the store \"%s\" answered %s with %d, which is no status of a store",
                    h->name, what, (int)status);
    }
    if (a->heard.message[0] == '\0') {
        return fail(a->err, status,
                    "the store \"%s\" answered %s with %s and said no more", h->name,
                    what, sessile_status_name(status));
    }
    return fail(a->err, status, "%s", a->heard.message);
}

sessile_status hosted_absurd(const hosted *h, sessile_error *err, const char *what)
{
    return fail(err, SESSILE_IO,
                "the store \"%s\" cannot be right: %s. Nothing it said was believed",
                h->name, what);
}

/* ---------------------------------------------------------------------- the table */

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
        {SESSILE_BACKEND_CACHES, locks || t->version > 1,
         "LOCKS, without which a table of version 1 may keep no caches"},
        {SESSILE_BACKEND_REPLACES,
         t->draft_new && t->draft_write && t->draft_replace && t->draft_drop,
         "draft_new, draft_write, draft_replace and draft_drop"},
        {SESSILE_BACKEND_REPLACES, locks || t->version > 1,
         "LOCKS, without which a table of version 1 may replace nothing"},
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

/* A copy of the host's table: of an older one, which is shorter, what it has. */
static sessile_status take_table(sessile_backend *out, const sessile_backend *table,
                                 sessile_error *err)
{
    memset(out, 0, sizeof *out);
    if (table->version == 1) {
        memcpy(out, table, offsetof(sessile_backend, set_timeout));
    } else if (table->version == SESSILE_BACKEND_VERSION) {
        *out = *table;
    } else {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the store's table is of version %d, and this library knows 1 to %d",
                    table->version, SESSILE_BACKEND_VERSION);
    }
    return check_table(out, err);
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
    sessile_backend host;
    sessile_status status = take_table(&host, table, err);
    hosted *h = !status ? mem_zalloc(a, sizeof *h) : NULL;
    if (!h) {
        if (table->free)
            table->free(self);
        return !status ? fail_nomem(err) : status;
    }
    h->alloc = *a;
    h->host = host;
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
