/*
 * minimal.c: the least that is a store.
 *
 * Owns copies of what it is given, under one mutex. Each append is compared and done
 * under it, so it is whole or not there: no locks, no torn ends, nothing to cut.
 */
#include "store/minimal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct value {
    struct value *next;
    char *folder, *name; /* folder "": a blob */
    char *data;
    size_t size;
    sessile_log_end end;
} value;

struct minimal_medium {
    pthread_mutex_t mutex;
    value *values; /* never freed one by one: a handle may point at a log */
};

/* A handle of a log. */
typedef struct handle {
    minimal_medium *m;
    value *log;
} handle;

static sessile_status say(sessile_error *err, sessile_status status, const char *what,
                          const char *name)
{
    err->code = status;
    snprintf(err->message, sizeof err->message, "the minimal store: %s %s", name, what);
    return status;
}

static sessile_status no_memory(sessile_error *err)
{
    return say(err, SESSILE_NOMEM, "does not fit into memory", "this");
}

static value *find(minimal_medium *m, const char *folder, const char *name)
{
    value *v = m->values;
    while (v && (strcmp(v->folder, folder) || strcmp(v->name, name)))
        v = v->next;
    return v;
}

/* Puts a new value at the end. Under the mutex. */
static sessile_status put(minimal_medium *m, const char *folder, const char *name,
                          const void *data, size_t size, sessile_error *err)
{
    value **last = &m->values, *v;

    if (find(m, folder, name))
        return say(err, SESSILE_EXISTS, "is there already", name);
    v = calloc(1, sizeof *v);
    if (!v)
        return no_memory(err);
    v->folder = strdup(folder);
    v->name = strdup(name);
    v->data = malloc(size + 1);
    if (!v->folder || !v->name || !v->data) {
        free(v->folder);
        free(v->name);
        free(v->data);
        free(v);
        return no_memory(err);
    }
    memcpy(v->data, data, size);
    v->size = size;
    while (*last)
        last = &(*last)->next;
    *last = v;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ logs */

static sessile_status minimal_create(void *self, const char *folder, const char *name,
                                     const void *data, size_t size, sessile_error *err)
{
    minimal_medium *m = self;
    sessile_status status;

    if (!*folder || !*name)
        return say(err, SESSILE_INVALID, "has no name", "a log");
    pthread_mutex_lock(&m->mutex);
    status = put(m, folder, name, data, size, err);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static sessile_status minimal_open(void *self, const char *folder, const char *name,
                                   sessile_backend_log **out, sessile_error *err)
{
    minimal_medium *m = self;
    handle *h;
    value *log;

    pthread_mutex_lock(&m->mutex);
    log = find(m, folder, name);
    pthread_mutex_unlock(&m->mutex);
    if (!log)
        return say(err, SESSILE_NOTFOUND, "is not there", name);
    h = calloc(1, sizeof *h);
    if (!h)
        return no_memory(err);
    h->m = m;
    h->log = log;
    *out = (sessile_backend_log *)h;
    return SESSILE_OK;
}

static void minimal_close(sessile_backend_log *log)
{
    free(log);
}

static sessile_status minimal_size(sessile_backend_log *log, uint64_t *bytes,
                                   int64_t *mtime_ms, sessile_error *err)
{
    handle *h = (handle *)log;

    (void)err;
    pthread_mutex_lock(&h->m->mutex);
    *bytes = h->log->size;
    *mtime_ms = 0;
    pthread_mutex_unlock(&h->m->mutex);
    return SESSILE_OK;
}

static sessile_status minimal_read(sessile_backend_log *log, uint64_t index,
                                   uint64_t offset, void *out, size_t size, size_t *got,
                                   sessile_error *err)
{
    handle *h = (handle *)log;

    (void)index; /* a store that keeps a row for each record begins with this one */
    (void)err;
    *got = 0;
    pthread_mutex_lock(&h->m->mutex);
    if (offset < h->log->size) {
        *got = h->log->size - offset < size ? h->log->size - offset : size;
        memcpy(out, h->log->data + offset, *got);
    }
    pthread_mutex_unlock(&h->m->mutex);
    return SESSILE_OK;
}

static sessile_status minimal_append(sessile_backend_log *log, sessile_log_end *end,
                                     const void *data, size_t size, uint64_t count,
                                     const unsigned char new_tag[16], int *poisoned,
                                     sessile_error *err)
{
    handle *h = (handle *)log;
    value *v = h->log;
    sessile_status status = SESSILE_OK;
    char *grown = NULL;

    *poisoned = 0;
    pthread_mutex_lock(&h->m->mutex);
    if (v->size < end->bytes)
        status = say(err, SESSILE_TRUNCATED, "is shorter than it was", v->name);
    else if (v->size > end->bytes ||
             /* of the first record, which create made, the tag is not known */
             (v->end.count && (v->end.count != end->count ||
                               memcmp(v->end.tag, end->tag, sizeof end->tag) != 0)))
        status = say(err, SESSILE_CONFLICT, "has grown", v->name);
    else if (!(grown = realloc(v->data, v->size + size + 1)))
        status = no_memory(err);
    if (grown) {
        memcpy(grown + v->size, data, size);
        v->data = grown;
        v->size += size;
        v->end.count = end->count += count;
        v->end.bytes = end->bytes += size;
        memcpy(end->tag, new_tag, sizeof end->tag);
        memcpy(v->end.tag, new_tag, sizeof end->tag);
    }
    pthread_mutex_unlock(&h->m->mutex);
    return status;
}

static sessile_status minimal_sync(sessile_backend_log *log, sessile_error *err)
{
    (void)log;
    (void)err;
    return SESSILE_OK;
}

static sessile_status minimal_list(void *self, const char *folder,
                                   int (*visit)(void *arg, const char *folder,
                                                const char *name),
                                   void *arg, sessile_error *err)
{
    minimal_medium *m = self;
    value *v;

    (void)err;
    pthread_mutex_lock(&m->mutex);
    v = m->values;
    pthread_mutex_unlock(&m->mutex);
    while (v) { /* visit may open logs: it is called without the mutex */
        if (*v->folder && (!folder || !strcmp(folder, v->folder)) &&
            visit(arg, v->folder, v->name))
            break;
        pthread_mutex_lock(&m->mutex);
        v = v->next;
        pthread_mutex_unlock(&m->mutex);
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ blobs */

static sessile_status minimal_blob_get(void *self, const char *name, char **out,
                                       size_t *size, sessile_error *err)
{
    minimal_medium *m = self;
    sessile_status status = SESSILE_OK;
    value *v;

    pthread_mutex_lock(&m->mutex);
    v = find(m, "", name);
    if (!v) {
        status = say(err, SESSILE_NOTFOUND, "is not there", name);
    } else {
        *size = v->size;
        *out = sessile_copy(v->data, v->size);
        if (!*out)
            status = no_memory(err);
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static sessile_status minimal_blob_put_new(void *self, const char *name, const void *data,
                                           size_t size, sessile_error *err)
{
    minimal_medium *m = self;
    sessile_status status;

    pthread_mutex_lock(&m->mutex);
    status = put(m, "", name, data, size, err);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

/* ------------------------------------------------------------------ the store */

minimal_medium *minimal_medium_new(void)
{
    minimal_medium *m = calloc(1, sizeof *m);

    if (m)
        pthread_mutex_init(&m->mutex, NULL);
    return m;
}

void minimal_medium_free(minimal_medium *m)
{
    while (m->values) {
        value *v = m->values;
        m->values = v->next;
        free(v->folder);
        free(v->name);
        free(v->data);
        free(v);
    }
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

const sessile_backend *minimal_store(minimal_medium *m, void **self)
{
    static const sessile_backend table = {
        .version = SESSILE_BACKEND_VERSION,
        .capabilities = SESSILE_BACKEND_SEALS,
        .name = "minimal",
        .create = minimal_create,
        .open = minimal_open,
        .close = minimal_close,
        .size = minimal_size,
        .read = minimal_read,
        .append = minimal_append,
        .sync = minimal_sync,
        .list = minimal_list,
        .blob_get = minimal_blob_get,
        .blob_put_new = minimal_blob_put_new,
    };
    *self = m;
    return &table;
}
