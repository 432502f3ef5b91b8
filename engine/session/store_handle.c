/*
 * store_handle.c: opens and closes a store_core: its backend, its keyring, and the
 * defaults of its sessions.
 *
 * Must never open a log (list.c and open.c do).
 */
#include "session/store_handle.h"

#include <string.h>

#include "base/counted.h"
#include "base/text.h"
#include "codec/entry.h"
#include "session/limits.h"
#include "session/writes.h"
#include "store/hosted/open.h"
#include "store/open.h"
#include "store/ram.h"

#ifndef SESSILE_LIBEXEC
#define SESSILE_LIBEXEC "/usr/local/libexec/sessile"
#endif

static sessile_status options_check(const sessile_store_options *o, sessile_error *err)
{
    sessile_status status = config_check(&o->config, err);
    if (status)
        return status;
    if (o->ttl_ms < 0)
        return fail(err, SESSILE_INVALID, "a ttl may not be negative");
    status = limits_check(&o->limits, err);
    if (status)
        return status;
    if (o->durability != SESSILE_SYNC && o->durability != SESSILE_NONE)
        return fail(err, SESSILE_INVALID, "durability is neither SYNC nor NONE");
    return SESSILE_OK;
}

static char *dup_text(const allocator *a, const char *text)
{
    return mem_dup(a, text, strlen(text));
}

static void free_text(const allocator *a, char *text)
{
    if (text)
        mem_free(a, text, strlen(text) + 1);
}

static void free_secret(const allocator *a, char *text)
{
    if (text) {
        size_t size = strlen(text) + 1;
        wipe(text, size);
        mem_free(a, text, size);
    }
}

/* Where the backend comes from. */
typedef struct origin {
    const char *url;
    const sessile_backend *table; /* or the host's own, */
    void *self;                   /* which is taken over by whoever opens it */
    int records;                  /* or records that come later */
} origin;

static sessile_status open_origin(store_core *s, origin *from,
                                  const sessile_store_options *options,
                                  sessile_error *err)
{
    const sessile_backend *table = from->table;

    if (from->records) {
        s->over_records = 1;
        return store_ram_open(&s->backend, s->os, &s->alloc, err);
    }
    if (!table)
        return store_open(&s->backend, from->url,
                          &(store_setup){.os = s->os,
                                         .alloc = &s->alloc,
                                         .timeout_ms = s->config.timeout_ms,
                                         .allow_network = options->allow_network,
                                         .unsynced = s->durability == SESSILE_NONE,
                                         .remote = options->remote},
                          err);
    from->table = NULL;
    return store_hosted_open(&s->backend, table, from->self, &s->alloc, err);
}

/* Of the keyring: opened or made; made alone; left closed. */
typedef enum open_mode { OPEN, MAKE, BARE } open_mode;

static sessile_status open_store(store_core **out, origin *from,
                                 const sessile_store_options *options, open_mode mode,
                                 sessile_error *err)
{
    sessile_store_options defaults;
    allocator a = allocator_default;
    store_core *s = NULL;
    sessile_status status;

    *out = NULL;
    if (!options) {
        memset(&defaults, 0, sizeof defaults);
        options = &defaults;
    }
    status = options_check(options, err);
    if (status)
        return status;
    if (base_init())
        return fail(err, SESSILE_UNSUPPORTED, "libsodium cannot be used on this machine");
    if (options->alloc) {
        a.fn = options->alloc;
        a.ud = options->alloc_ud;
    }
    s = mem_zalloc(&a, sizeof *s);
    if (!s)
        return fail_nomem(err);
    s->alloc = a;
    s->os = os_current;
    s->limits = options->limits;
    limits_fill(&s->limits);
    s->durability = options->durability;
    s->ttl_ms = options->ttl_ms;
    if (pthread_mutex_init(&s->mutex, NULL)) {
        mem_free(&a, s, sizeof *s);
        return fail_nomem(err);
    }
    s->agent =
        dup_text(&s->alloc, options->agent && *options->agent ? options->agent : "main");
    if (from->url)
        s->url = dup_text(&s->alloc, from->url);
    if (options->policy_path)
        s->policy_path = dup_text(&s->alloc, options->policy_path);
    if (options->model && *options->model)
        s->model = dup_text(&s->alloc, options->model);
    s->counters = counters_new(&(counters_setup){.encoding = options->encoding,
                                                 .folders = options->encoding_path,
                                                 .count = options->count,
                                                 .ud = options->count_ud,
                                                 .alloc = &s->alloc});
    s->worker = dup_text(&s->alloc, options->worker && *options->worker ? options->worker
                                                                        : SESSILE_LIBEXEC
                                        "/sessile-worker");
    s->config = options->config;
    config_inherit(&s->config, &config_defaults);
    status = config_keep(&s->config, &s->alloc, err);
    if (status)
        goto out;
    s->policies =
        (sessile_config){.policy = s->config.policy, .fallback = s->config.fallback};
    s->config.policy = s->config.fallback = NULL;
    if (!s->agent || !s->worker || !s->counters || (from->url && !s->url) ||
        (options->policy_path && !s->policy_path) ||
        (options->model && *options->model && !s->model)) {
        status = fail_nomem(err);
        goto out;
    }
    if (strlen(s->agent) > s->limits.id) {
        status = fail(err, SESSILE_LIMIT,
                      "the default agent's name is longer than the limit [id]");
        goto out;
    }
    status = open_origin(s, from, options, err);
    if (!status && s->over_records && s->limits.sessions_per_agent)
        status = fail(err, SESSILE_UNSUPPORTED,
                      "the host keeps the sessions of this store: it has to count them "
                      "itself, without the limit [sessions_per_agent]");
    if (status)
        goto out;
    if (mode == BARE)
        status = SESSILE_OK;
    else if (s->over_records)
        status = keyring_given(&s->keys, options->key_source, options->key,
                               options->suite, s->os, &s->alloc, err);
    else if (s->backend.table->capabilities & SESSILE_BACKEND_SEALS)
        status = (mode == MAKE ? keyring_make : keyring_open)(
            &s->keys, s->backend.table, s->backend.self, options->key_source,
            options->key, options->suite, s->os, &s->alloc, err);
    else if (mode == MAKE)
        status = fail(err, SESSILE_UNSUPPORTED,
                      "a store of this kind is volatile: it has no keyring");
    else
        status = keyring_volatile(&s->keys, &s->alloc, err);
    if (status)
        goto out;
    *out = s;
    s = NULL;
out:
    store_handle_close(s);
    return status;
}

sessile_status store_handle_open(store_core **out, const char *url,
                                 const sessile_store_options *options, sessile_error *err)
{
    origin from = {.url = url};

    return open_store(out, &from, options, OPEN, err);
}

sessile_status store_handle_open_with(store_core **out, const sessile_backend *backend,
                                      void *self, const sessile_store_options *options,
                                      sessile_error *err)
{
    origin from = {.table = backend, .self = self};
    sessile_status status = open_store(out, &from, options, OPEN, err);

    if (from.table && backend->free) /* it did not come to that */
        backend->free(self);
    return status;
}

sessile_status store_handle_make(store_core **out, const char *url,
                                 const sessile_store_options *options, sessile_error *err)
{
    origin from = {.url = url};

    return open_store(out, &from, options, MAKE, err);
}

sessile_status store_handle_open_records(store_core **out,
                                         const sessile_store_options *options,
                                         sessile_error *err)
{
    origin from = {.records = 1};

    return open_store(out, &from, options, OPEN, err);
}

sessile_status store_handle_open_bare(store_core **out, const char *url,
                                      const sessile_backend *backend, void *self,
                                      const sessile_store_options *options,
                                      sessile_error *err)
{
    origin from = {.url = url, .table = url ? NULL : backend, .self = self};
    sessile_status status = open_store(out, &from, options, BARE, err);

    if (from.table && backend->free) /* it did not come to that */
        backend->free(self);
    return status;
}

/* A connection that has to be made first counts into the time of the question: so it is
 * asked again, when there is one. */
sessile_status store_handle_clock(store_core *s, int64_t *ahead_ms, int64_t *within_ms,
                                  sessile_error *err)
{
    const os_table *os = s->os;
    const sessile_backend *table = s->backend.table;
    sessile_status status = SESSILE_OK;

    for (int i = 0; i < 2 && !status && table->clock; i++) {
        int64_t there, here = os->now_ms(os->ud);
        uint64_t begin = os->clock_us(os->ud);
        status = table->clock(s->backend.self, &there, err);
        int64_t took = (int64_t)((os->clock_us(os->ud) - begin) / 1000);
        *within_ms = took / 2 + 1;
        *ahead_ms = here + took / 2 - there;
    }
    if (status)
        *ahead_ms = *within_ms = 0;
    return status;
}

void store_handle_close(store_core *s)
{
    allocator a;

    if (!s)
        return;
    a = s->alloc;
    if (s->holds)
        s->holds->free(s->holds);
    write_notes_free(s->notes);
    config_free(&s->config, &a);
    config_free(&s->policies, &a);
    keyring_free(s->keys);
    if (s->backend.table)
        store_close(&s->backend);
    free_secret(&a, s->url);
    free_text(&a, s->agent);
    free_text(&a, s->policy_path);
    free_text(&a, s->model);
    counters_free(s->counters);
    counted_release(s->rules);
    mem_free(&a, s->forgotten, s->forgotten_capacity * sizeof *s->forgotten);
    free_text(&a, s->worker);
    pthread_mutex_destroy(&s->mutex);
    mem_free(&a, s, sizeof *s);
}

void store_handle_uuid(store_core *s, int v4, char out[UUID_SIZE])
{
    if (v4) {
        uuid4_print(out);
        return;
    }
    pthread_mutex_lock(&s->mutex);
    uuid7_print(out, s->os->now_ms(s->os->ud), s->uuid_last);
    pthread_mutex_unlock(&s->mutex);
}

int store_handle_forgot(store_core *s, sessile_slice user, size_t since)
{
    size_t count = atomic_load(&s->forgotten_count);
    int found = 0;

    if (!user.size || count == since)
        return 0;
    pthread_mutex_lock(&s->mutex);
    for (size_t i = since; i < count && !found; i++)
        found = s->forgotten[i] == hash64(user.data, user.size);
    pthread_mutex_unlock(&s->mutex);
    return found;
}

sessile_status store_check_removal(store_core *s, const store_removal *what,
                                   sessile_error *err)
{
    return s->holds ? s->holds->check(s->holds, what, err) : SESSILE_OK;
}
