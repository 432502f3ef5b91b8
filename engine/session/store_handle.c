/*
 * store_handle.c: what sessile_store is: a backend, found by its URL or brought by the
 * host, its keyring, and the defaults of sessions.
 *
 * Must never open a log (admin/list.c and open.c do), nor repeat in an error what may
 * hold a password: of a URL with an unknown scheme only the scheme is named.
 */
#include "session/store_handle.h"

#include <string.h>

#include "base/text.h"
#include "codec/entry.h"
#include "session/triggers.h"

#ifndef SESSILE_LIBEXEC
#define SESSILE_LIBEXEC "/usr/local/libexec/sessile"
#endif

static void limits_fill(sessile_limits *l)
{
    if (!l->message)
        l->message = UINT64_C(8) << 20;
    if (!l->session)
        l->session = UINT64_C(4) << 30;
    if (!l->depth)
        l->depth = 128;
    if (!l->id)
        l->id = 4096;
    if (!l->title)
        l->title = 1024;
    if (!l->policy_gas)
        l->policy_gas = 50000000;
    if (!l->policy_ms)
        l->policy_ms = 500;
    if (!l->policy_memory)
        l->policy_memory = UINT64_C(64) << 20;
    if (!l->policy_result)
        l->policy_result = UINT64_C(1) << 20;
}

/* The length of url's scheme, or 0: it is a path. One letter is no scheme, and neither is
 * what comes after a slash. */
static size_t scheme_size(const char *url)
{
    size_t n =
        strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    int letter = (url[0] >= 'a' && url[0] <= 'z') || (url[0] >= 'A' && url[0] <= 'Z');

    return n >= 2 && letter && url[n] == ':' ? n : 0;
}

static sessile_status open_file(sessile_store *s, const char *path, int allow_network,
                                sessile_error *err)
{
    sessile_status status = store_file_open(&s->backend, path, s->os, &s->alloc, err);

    if (!status && allow_network)
        store_file_allow_network(&s->backend);
    return status;
}

static sessile_status open_sqlite(sessile_store *s, const char *path, int allow_network,
                                  sessile_error *err)
{
    sessile_status status =
        store_sqlite_open(&s->backend, path, s->timeout_ms, s->os, &s->alloc, err);

    if (!status && allow_network)
        store_sqlite_allow_network(&s->backend);
    return status;
}

static sessile_status open_postgres(sessile_store *s, const char *url, sessile_error *err)
{
    sessile_status status =
        store_postgres_open(&s->backend, url, s->timeout_ms, s->os, &s->alloc, err);

    if (!status && s->durability == SESSILE_NONE)
        store_postgres_unsynced(&s->backend);
    return status;
}

static sessile_status open_backend(sessile_store *s, const char *url, int allow_network,
                                   sessile_error *err)
{
    size_t scheme = scheme_size(url);

    if (scheme == 3 && !memcmp(url, "ram", 3)) {
        if (url[4])
            return fail(err, SESSILE_INVALID,
                        "\"ram:\" takes no path: every such store is its own");
        return store_ram_open(&s->backend, s->os, &s->alloc, err);
    }
    if (scheme == 4 && !memcmp(url, "file", 4)) {
        if (!url[5])
            return fail(err, SESSILE_INVALID, "\"file:\" wants a folder after it");
        return open_file(s, url + 5, allow_network, err);
    }
    if (scheme == 6 && !memcmp(url, "sqlite", 6)) {
        if (!url[7])
            return fail(err, SESSILE_INVALID, "\"sqlite:\" wants a file after it");
        return open_sqlite(s, url + 7, allow_network, err);
    }
    if ((scheme == 8 && !memcmp(url, "postgres", 8)) ||
        (scheme == 10 && !memcmp(url, "postgresql", 10)))
        return open_postgres(s, url, err);
    if (scheme)
        return fail(
            err, SESSILE_UNSUPPORTED,
            "this build has no store for \"%.*s:\": use \"file:PATH\", "
            "\"sqlite:PATH\", \"postgres://…\" or \"ram:\" (a folder of that name "
            "is written \"./%.*s:…\")",
            (int)(scheme > 40 ? 40 : scheme), url, (int)(scheme > 40 ? 40 : scheme), url);
    /* it is not repeated: a password stands in it */
    if (!strncmp(url, "postgres", 8) && strchr(url, '/') && strchr(url, '@'))
        return fail(err, SESSILE_INVALID,
                    "a store's URL begins with \"postgres://\": mend what stands before "
                    "its \"//\" (a folder of such a name is written \"./postgres…\")");
    return open_file(s, url, allow_network, err);
}

/* Nesting that no reader of ours, nor of others, has trouble with. */
#define DEPTH_MOST 1000

sessile_status store_handle_timeout(int timeout_ms, sessile_error *err)
{
    if (timeout_ms < -1)
        return fail(err, SESSILE_INVALID,
                    "timeout_ms is %d: give milliseconds, or -1 to wait for ever",
                    timeout_ms);
    return SESSILE_OK;
}

static sessile_status options_check(const sessile_store_options *o, sessile_error *err)
{
    sessile_status status = store_handle_timeout(o->timeout_ms, err);

    if (status)
        return status;
    if (o->window < 0 || o->reserve < 0)
        return fail(err, SESSILE_INVALID, "window and reserve may not be negative");
    if (o->ttl_ms < 0)
        return fail(err, SESSILE_INVALID, "a ttl may not be negative");
    if (o->limits.depth > DEPTH_MOST)
        return fail(err, SESSILE_LIMIT, "the limit [depth] is at most %d", DEPTH_MOST);
    if (o->durability != SESSILE_SYNC && o->durability != SESSILE_NONE)
        return fail(err, SESSILE_INVALID, "durability is neither SYNC nor NONE");
    if (o->isolation != SESSILE_IN_PROCESS && o->isolation != SESSILE_WORKER)
        return fail(err, SESSILE_INVALID, "isolation is neither IN_PROCESS nor WORKER");
    sessile_status first = triggers_check(o->triggers, err);
    return !first ? triggers_check(o->checkpoint_on, err) : first;
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

/* Where the backend comes from. */
typedef struct origin {
    const char *url;
    const sessile_backend *table; /* or the host's own, */
    void *self;                   /* which is taken over by whoever opens it */
    int records;                  /* or records that come later */
} origin;

static sessile_status open_origin(sessile_store *s, origin *from, int allow_network,
                                  sessile_error *err)
{
    const sessile_backend *table = from->table;

    if (from->records) {
        s->over_records = 1;
        return store_ram_open(&s->backend, s->os, &s->alloc, err);
    }
    if (!table)
        return open_backend(s, from->url, allow_network, err);
    from->table = NULL;
    return store_hosted_open(&s->backend, table, from->self, &s->alloc, err);
}

/* Of the keyring: opened or made; made alone; left closed. */
typedef enum open_mode { OPEN, MAKE, BARE } open_mode;

static sessile_status open_store(sessile_store **out, origin *from,
                                 const sessile_store_options *options, open_mode mode,
                                 sessile_error *err)
{
    sessile_store_options defaults;
    allocator a = allocator_default;
    sessile_store *s = NULL;
    sessile_status status;

    *out = NULL;
    if (!options) {
        memset(&defaults, 0, sizeof defaults);
        defaults.timeout_ms = 5000;
        options = &defaults;
    }
    if (!from->records && !from->table && (!from->url || !*from->url))
        return fail(err, SESSILE_INVALID,
                    "the store's url is empty: give a folder, \"file:PATH\", "
                    "\"sqlite:PATH\", \"postgres://…\" or \"ram:\"");
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
    s->timeout_ms = options->timeout_ms;
    s->window = options->window;
    s->reserve = options->reserve;
    s->ttl_ms = options->ttl_ms;
    if (pthread_mutex_init(&s->mutex, NULL)) {
        mem_free(&a, s, sizeof *s);
        return fail_nomem(err);
    }
    s->agent =
        dup_text(&s->alloc, options->agent && *options->agent ? options->agent : "main");
    if (options->policy_path)
        s->policy_path = dup_text(&s->alloc, options->policy_path);
    if (options->model && *options->model)
        s->model = dup_text(&s->alloc, options->model);
    s->counters = counters_new(&(counters_setup){.encoding = options->encoding,
                                                 .folders = options->encoding_path,
                                                 .count = options->count,
                                                 .ud = options->count_ud,
                                                 .alloc = &s->alloc});
    s->isolation = options->isolation;
    s->worker = dup_text(&s->alloc, options->worker && *options->worker ? options->worker
                                                                        : SESSILE_LIBEXEC
                                        "/sessile-worker");
    if (!s->agent || !s->worker || !s->counters ||
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
    status = triggers_copy(&s->triggers, options->triggers, &s->alloc, err);
    s->checkpoint_keep = options->checkpoint_keep;
    if (!status)
        status = triggers_copy(&s->checkpoint_on, options->checkpoint_on, &s->alloc, err);
    if (!status)
        status = open_origin(s, from, options->allow_network, err);
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

sessile_status store_handle_open(sessile_store **out, const char *url,
                                 const sessile_store_options *options, sessile_error *err)
{
    origin from = {.url = url};

    return open_store(out, &from, options, OPEN, err);
}

sessile_status store_handle_open_with(sessile_store **out, const sessile_backend *backend,
                                      void *self, const sessile_store_options *options,
                                      sessile_error *err)
{
    origin from = {.table = backend, .self = self};
    sessile_status status = open_store(out, &from, options, OPEN, err);

    if (from.table && backend->free) /* it did not come to that */
        backend->free(self);
    return status;
}

sessile_status store_handle_make(sessile_store **out, const char *url,
                                 const sessile_store_options *options, sessile_error *err)
{
    origin from = {.url = url};

    return open_store(out, &from, options, MAKE, err);
}

sessile_status store_handle_open_records(sessile_store **out,
                                         const sessile_store_options *options,
                                         sessile_error *err)
{
    origin from = {.records = 1};

    return open_store(out, &from, options, OPEN, err);
}

sessile_status store_handle_open_bare(sessile_store **out, const char *url,
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

void store_handle_close(sessile_store *s)
{
    allocator a;

    if (!s)
        return;
    a = s->alloc;
    if (s->policy.release && s->policy.policy)
        s->policy.release(s->policy.policy);
    if (s->fallback.release && s->fallback.policy)
        s->fallback.release(s->fallback.policy);
    triggers_free(s->triggers, &a);
    triggers_free(s->checkpoint_on, &a);
    keyring_free(s->keys);
    if (s->backend.table)
        store_close(&s->backend);
    free_text(&a, s->agent);
    free_text(&a, s->policy_path);
    free_text(&a, s->model);
    counters_free(s->counters);
    mem_free(&a, s->forgotten, s->forgotten_capacity * sizeof *s->forgotten);
    free_text(&a, s->worker);
    pthread_mutex_destroy(&s->mutex);
    mem_free(&a, s, sizeof *s);
}

void store_handle_uuid(sessile_store *s, int v4, char out[UUID_SIZE])
{
    if (v4) {
        uuid4_print(out);
        return;
    }
    pthread_mutex_lock(&s->mutex);
    uuid7_print(out, s->os->now_ms(s->os->ud), s->uuid_last);
    pthread_mutex_unlock(&s->mutex);
}
