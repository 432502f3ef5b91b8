/*
 * migrate_scan.c: decides which sessions are copied, and how much of each.
 *
 * The copy must be a state that the store had, or could have had, at some moment,
 * although others write meanwhile. Must never open or read a log.
 *
 * A session may name others: its children, its parent, the one it is a fork of. Those
 * existed before they were named. So one pass takes the sizes of all logs, and then the
 * store is listed again: this list has every session that the bytes up to these sizes
 * name. New logs in it get their size taken too and may name newer ones, so this is
 * repeated until a list has nothing new. If two passes in a row find the same logs with
 * the same sizes, that was the state of the store at one moment. A few attempts are made
 * to reach this.
 */
#include "admin/migrate.h"

#include <stdlib.h>
#include <string.h>

/* How often two looks alike are hoped for, and how often new sessions are looked for:
 * each round finds those that were made during the one before, which took as long as
 * there were new ones. */
enum { ROUNDS_ALIKE = 4, ROUNDS_MOST = 64 };

void migrate_look_deinit(migrate_look *l)
{
    if (!l->alloc)
        return;
    buf_deinit(&l->names);
    mem_free(l->alloc, l->logs, l->capacity * sizeof *l->logs);
    memset(l, 0, sizeof *l);
}

typedef struct gathering {
    migrate_look *look;
    const store *store;
    sessile_status status;
} gathering;

static int add_log(gathering *g, const char *folder, const char *name, uint64_t bytes)
{
    migrate_look *l = g->look;
    migrate_log *log;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0; /* no name of ours */
    if (mem_grow(l->alloc, (void **)&l->logs, &l->capacity, l->count + 1,
                 sizeof *l->logs)) {
        g->status = SESSILE_NOMEM;
        return 1;
    }
    log = &l->logs[l->count];
    memset(log, 0, sizeof *log);
    log->bytes = bytes;
    /* logs of one folder come one after the other */
    if (l->count && !strcmp(migrate_folder(l, l->count - 1), folder)) {
        log->folder = l->logs[l->count - 1].folder;
    } else {
        log->folder = l->names.size;
        buf_put(&l->names, folder, strlen(folder) + 1);
    }
    log->name = l->names.size;
    buf_put(&l->names, name, strlen(name) + 1);
    if (l->names.failed) {
        g->status = SESSILE_NOMEM;
        return 1;
    }
    l->count++;
    l->bytes += bytes;
    return 0;
}

/* Where a list does not tell sizes. A log that went away meanwhile is left out; one that
 * cannot be opened has a failure coming. */
static int add_by_size(void *arg, const char *folder, const char *name)
{
    gathering *g = arg;
    sessile_backend_log *log;
    uint64_t bytes = 0;
    int64_t mtime_ms;
    sessile_status status =
        g->store->table->open(g->store->self, folder, name, &log, NULL);

    if (status == SESSILE_NOTFOUND)
        return 0;
    if (!status) {
        g->store->table->size(log, &bytes, &mtime_ms, NULL);
        g->store->table->close(log);
    }
    return add_log(g, folder, name, bytes);
}

static int add_listed(void *arg, const char *folder, const char *name,
                      const sessile_backend_stat *stat)
{
    return stat ? add_log(arg, folder, name, stat->bytes)
                : add_by_size(arg, folder, name);
}

/* By folder and name; names, because qsort hands no more to its function. */
typedef struct named {
    const char *folder, *name;
    migrate_log log;
} named;

static int by_name(const void *left, const void *right)
{
    const named *a = left, *b = right;
    int by_folder = strcmp(a->folder, b->folder);

    return by_folder ? by_folder : strcmp(a->name, b->name);
}

static sessile_status sort(migrate_look *l, sessile_error *err)
{
    named *all;

    if (l->count < 2)
        return SESSILE_OK;
    all = mem_alloc(l->alloc, l->count * sizeof *all);
    if (!all)
        return fail_nomem(err);
    for (size_t i = 0; i < l->count; i++)
        all[i] = (named){migrate_folder(l, i), migrate_name(l, i), l->logs[i]};
    qsort(all, l->count, sizeof *all, by_name);
    for (size_t i = 0; i < l->count; i++)
        l->logs[i] = all[i].log;
    mem_free(l->alloc, all, l->count * sizeof *all);
    return SESSILE_OK;
}

static sessile_status scan_store(migrate_look *out, store_core *st, sessile_error *err)
{
    const store *b = &st->backend;
    gathering g = {out, b, SESSILE_OK};
    sessile_status status;

    memset(out, 0, sizeof *out);
    out->alloc = &st->alloc;
    buf_init(&out->names, out->alloc);
    if (b->table->capabilities & SESSILE_BACKEND_LIST_CACHE)
        status = b->table->list_stat(b->self, NULL, add_listed, &g, err);
    else
        status = b->table->list(b->self, NULL, add_by_size, &g, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* nothing was ever written there */
    }
    if (!status && g.status)
        status = fail_nomem(err);
    return status ? status : sort(out, err);
}

/* What is in `now` and not in `before`; *alike: they are the same, sizes too. */
static size_t count_new(const migrate_look *before, const migrate_look *now, int *alike)
{
    size_t fresh = 0, i = 0;

    *alike = before->count == now->count;
    for (size_t j = 0; j < now->count; j++) {
        int order = -1;
        while (i < before->count) {
            order = strcmp(migrate_folder(before, i), migrate_folder(now, j));
            if (!order)
                order = strcmp(migrate_name(before, i), migrate_name(now, j));
            if (order >= 0)
                break;
            i++;
        }
        if (i == before->count || order > 0) {
            fresh++;
            *alike = 0;
        } else {
            *alike &= before->logs[i].bytes == now->logs[j].bytes;
            i++;
        }
    }
    return fresh;
}

sessile_status migrate_look_again(migration_core *m, sessile_error *err)
{
    migrate_look now;
    sessile_status status = scan_store(&now, m->from, err);
    size_t fresh;
    int alike;

    if (status) {
        migrate_look_deinit(&now);
        return status;
    }
    if (!m->looks++) {
        m->look = now;
        return SESSILE_NEEDS;
    }
    fresh = count_new(&m->look, &now, &alike);
    m->state.moment = alike;
    if (alike || (!fresh && m->looks > ROUNDS_ALIKE)) {
        migrate_look_deinit(&now);
        return SESSILE_OK; /* the ends are those of the look before */
    }
    migrate_look_deinit(&m->look);
    m->look = now;
    return m->looks > ROUNDS_MOST ? SESSILE_OK : SESSILE_NEEDS;
}
