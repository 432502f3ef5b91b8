/*
 * memory.c: a log in memory that can be torn and damaged.
 *
 * The engine's ram: keeps records; this keeps bytes, as a file does, so that scanning,
 * judging and recovering run as they would over one.
 */
#include "fuzz/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fuzz/fuzz.h"

void memory_init(memory *m, const void *data, size_t size)
{
    *m = (memory){.data = fuzz_copy(data, size), .size = size};
}

void memory_deinit(memory *m)
{
    free(m->data);
    free(m->aside);
    free(m->cache);
    memset(m, 0, sizeof *m);
}

static memory *of(sessile_backend_log *log)
{
    return (memory *)(void *)log;
}

static void resize(memory *m, size_t size)
{
    char *data = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(data != NULL);
    memcpy(data, m->data, size < m->size ? size : m->size);
    free(m->data);
    m->data = data;
    m->size = size;
}

static sessile_status memory_open(void *self, const char *folder, const char *name,
                                  sessile_backend_log **out, sessile_error *err)
{
    (void)folder, (void)name, (void)err;
    *out = (sessile_backend_log *)self;
    return SESSILE_OK;
}

static void memory_close(sessile_backend_log *log)
{
    (void)log;
}

static sessile_status memory_size(sessile_backend_log *log, uint64_t *bytes,
                                  int64_t *mtime_ms, sessile_error *err)
{
    (void)err;
    *bytes = of(log)->size;
    *mtime_ms = 0;
    return SESSILE_OK;
}

static sessile_status memory_read(sessile_backend_log *log, uint64_t index,
                                  uint64_t offset, void *out, size_t size, size_t *got,
                                  sessile_error *err)
{
    memory *m = of(log);
    (void)index, (void)err;
    size_t left = offset < m->size ? m->size - (size_t)offset : 0;
    *got = size < left ? size : left;
    if (*got > 0)
        memcpy(out, m->data + offset, *got);
    return SESSILE_OK;
}

static sessile_status memory_lock(sessile_backend_log *log, int mode, int timeout_ms,
                                  int *replaced, sessile_error *err)
{
    (void)log, (void)mode, (void)timeout_ms, (void)err;
    *replaced = 0;
    return SESSILE_OK;
}

static void memory_unlock(sessile_backend_log *log)
{
    (void)log;
}

static sessile_status memory_append(sessile_backend_log *log, sessile_log_end *end,
                                    const void *data, size_t size, uint64_t count,
                                    const unsigned char new_tag[16], int *poisoned,
                                    sessile_error *err)
{
    memory *m = of(log);
    *poisoned = 0;
    if (m->size != end->bytes)
        return fail(err, SESSILE_CONFLICT, "the log ends elsewhere");
    resize(m, m->size + size);
    memcpy(m->data + end->bytes, data, size);
    end->bytes += size;
    end->count += count;
    memcpy(end->tag, new_tag, sizeof end->tag);
    return SESSILE_OK;
}

static sessile_status memory_sync(sessile_backend_log *log, sessile_error *err)
{
    (void)log, (void)err;
    return SESSILE_OK;
}

static sessile_status memory_set_aside(sessile_backend_log *log, uint64_t offset,
                                       sessile_error *err)
{
    memory *m = of(log);
    (void)err;
    FUZZ_CHECK(offset > 0 && offset < m->size);
    free(m->aside);
    m->aside_size = m->size - (size_t)offset;
    m->aside = fuzz_copy(m->data + offset, m->aside_size);
    resize(m, (size_t)offset);
    return SESSILE_OK;
}

static sessile_status memory_rewrite(sessile_backend_log *log, uint64_t offset,
                                     const void *data, size_t size, sessile_error *err)
{
    memory *m = of(log);
    (void)err;
    FUZZ_CHECK(offset <= m->size && size <= m->size - offset);
    FUZZ_CHECK(memcmp(m->data + offset, data, size) == 0);
    return SESSILE_OK;
}

static sessile_status memory_cache_size(sessile_backend_log *log, uint64_t *bytes,
                                        sessile_error *err)
{
    (void)err;
    *bytes = of(log)->cache_size;
    return SESSILE_OK;
}

static sessile_status memory_cache_read(sessile_backend_log *log, uint64_t offset,
                                        void *out, size_t size, size_t *got,
                                        sessile_error *err)
{
    const memory *m = of(log);
    (void)err;
    size_t left = offset < m->cache_size ? m->cache_size - (size_t)offset : 0;
    *got = size < left ? size : left;
    if (*got > 0)
        memcpy(out, m->cache + offset, *got);
    return SESSILE_OK;
}

static sessile_status memory_cache_write(sessile_backend_log *log, uint64_t offset,
                                         const void *data, size_t size,
                                         sessile_error *err)
{
    memory *m = of(log);
    (void)err;
    FUZZ_CHECK(offset <= m->cache_size);
    char *cache = malloc((size_t)offset + size + 1);
    FUZZ_CHECK(cache != NULL);
    if (offset > 0)
        memcpy(cache, m->cache, (size_t)offset);
    memcpy(cache + offset, data, size);
    free(m->cache);
    m->cache = cache;
    m->cache_size = (size_t)offset + size;
    return SESSILE_OK;
}

#define CAPABILITIES \
    (SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CUTS | SESSILE_BACKEND_LOCKS)
#define CALLS                                                                  \
    .version = SESSILE_BACKEND_VERSION, .name = "memory", .open = memory_open, \
    .close = memory_close, .size = memory_size, .read = memory_read,           \
    .lock = memory_lock, .unlock = memory_unlock, .append = memory_append,     \
    .sync = memory_sync, .set_aside = memory_set_aside, .rewrite = memory_rewrite

static const sessile_backend table = {CALLS, .capabilities = CAPABILITIES};

static const sessile_backend cached = {
    CALLS,
    .capabilities = CAPABILITIES | SESSILE_BACKEND_CACHES,
    .cache_size = memory_cache_size,
    .cache_read = memory_cache_read,
    .cache_write = memory_cache_write,
};

store memory_store(memory *m)
{
    return (store){&table, m};
}

store memory_store_cached(memory *m)
{
    return (store){&cached, m};
}
