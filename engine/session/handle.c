/*
 * handle.c: allocates, fills and frees a session handle.
 *
 * A handle is valid before it is filled, so one function frees it at any stage. Must
 * never load a node from the index (load.c): a reload fills a second handle with these
 * functions.
 */
#include "session/fold.h"

#include <assert.h>
#include <string.h>

#include "session/agent_info.h"
#include "store/ram.h"

enum { READ_DEPTH = 1000, ENTRY_DEPTH = 8 /* levels an entry has around a message */ };

unsigned session_read_depth(const store_core *st)
{
    return (st->limits.depth > READ_DEPTH ? st->limits.depth : READ_DEPTH) + ENTRY_DEPTH;
}

session_names session_own_names(const session_core *s)
{
    return (session_names){{s->identity.id, s->identity.id_size},
                           {s->identity.agent, s->identity.agent_size},
                           {s->identity.user, s->identity.user_size},
                           s->identity.kind};
}

session_core *session_blank(store_core *st, const session_core *beside)
{
    session_core *s = mem_zalloc(&st->alloc, sizeof *s);

    if (!s)
        return NULL;
    if (pthread_mutex_init(&s->mutex, NULL)) {
        mem_free(&st->alloc, s, sizeof *s);
        return NULL;
    }
    s->store = st;
    alloc_count_init(&s->own, &st->alloc);
    s->alloc = beside ? beside->alloc : &s->own.alloc;
    s->forgotten_before = atomic_load(&st->forgotten_count);
    atomic_init(&s->waiting.timeout_ms, st->config.timeout_ms);
    atomic_init(&s->moment.of, 0);
    atomic_init(&s->moment.read, 0);
    atomic_init(&s->counting.unit, -1);
    atomic_init(&s->waiting.interrupts, 0);
    atomic_init(&s->torn, 0);
    s->identity.pid = st->os->pid(st->os->ud);
    s->index.takes_snapshots =
        (st->backend.table->capabilities & SESSILE_BACKEND_CACHES) != 0;
    context_init(&s->context.at_head, s->alloc);
    header_link_init(&s->header.origin, s->alloc);
    header_link_init(&s->header.parent, s->alloc);
    facts_init(&s->fold.facts, s->alloc);
    buf_init(&s->identity.info.version, s->alloc);
    buf_init(&s->identity.info.config, s->alloc);
    buf_init(&s->identity.info.tools, s->alloc);
    buf_init(&s->fold.scratch, s->alloc);
    return s;
}

static void free_name(const allocator *a, char *name, size_t size)
{
    if (name)
        mem_free(a, name, size + 1);
}

void session_drop(session_core *s)
{
    const allocator *a;

    if (!s)
        return;
    a = s->alloc;
    if (s->log)
        log_close(s->log);
    if (s->place) {
        store_ram_unname(&s->store->backend, s->place->folder, s->place->name);
        mem_free(a, s->place, sizeof *s->place + 1);
    }
    fold_snapshots_free(s);
    mem_free(a, s->index.absent, s->index.absent_blocks);
    if (s->worker.idle)
        s->worker.stop(s->worker.idle);
    config_free(&s->config, a);
    free_name(a, s->identity.id, s->identity.id_size);
    free_name(a, s->identity.agent, s->identity.agent_size);
    free_name(a, s->identity.user, s->identity.user_size);
    free_name(a, s->fold.title, s->fold.title_size);
    free_name(a, s->header.metadata, s->header.metadata_size);
    if (s->tree.nodes)
        mem_free(a, s->tree.nodes, s->tree.node_capacity * sizeof *s->tree.nodes);
    child_links_forget(s);
    if (s->tree.links)
        mem_free(a, s->tree.links, s->tree.link_capacity * sizeof *s->tree.links);
    if (s->fold.parts)
        mem_free(a, s->fold.parts, s->fold.part_capacity * sizeof *s->fold.parts);
    context_deinit(&s->context.at_head);
    header_link_deinit(&s->header.origin);
    header_link_deinit(&s->header.parent);
    facts_deinit(&s->fold.facts);
    session_free_agent_info(s);
    buf_deinit(&s->fold.scratch);
    pthread_mutex_destroy(&s->mutex);
#ifdef __SANITIZE_ADDRESS__ /* as a leak is there: a test's affair, not a user's */
    assert(alloc_count_bytes(&s->own) == 0);
#endif
    mem_free(&s->store->alloc, s, sizeof *s);
}

size_t session_memory(const session_core *s)
{
    return sizeof *s + alloc_count_bytes(&s->own);
}

static sessile_status open_log(session_core *s, const char *folder, const char *name,
                               int fresh, uint64_t *torn, sessile_error *err)
{
    store_core *st = s->store;
    log_index_callbacks callbacks = session_index_callbacks(s, fresh);
    fold f = {.s = s};

    return log_open_indexed(&s->log, &st->backend, st->keys, folder, name,
                            session_read_depth(st), atomic_load(&s->waiting.timeout_ms),
                            &callbacks, fold_visit, &f, torn, s->alloc, err);
}

sessile_status session_scan(session_core *s, const char *folder, const char *name,
                            int fresh, sessile_error *err)
{
    uint64_t torn = 0;
    sessile_status status = open_log(s, folder, name, fresh, &torn, err);

    if (!status)
        status = session_read_damaged(s, err);
    /* What stands in the way may be the index alone: the lines decide. */
    if (status && s->index.restored && status != SESSILE_NOMEM) {
        log_close(s->log);
        s->log = NULL;
        fold_forget(s);
        status = open_log(s, folder, name, 1, &torn, err);
        if (!status)
            status = session_read_damaged(s, err);
    }
    if (!status) {
        atomic_store(&s->torn, torn);
        log_set_stop(s->log, session_interrupted_locked, s);
    }
    fold_forget_parts(s);
    s->tree.base = s->tree.head;
    return status;
}
