/*
 * list_cache.h: what lists remember of the logs of one folder, so that they need not
 * open them again. README.md describes the bytes.
 *
 * It is a cache of a list, never of a session: opening a session does not read it. A row
 * is valid for a log whose file has exactly the properties in the row. Whoever may write
 * in the folder can at most make a list open logs again.
 */
#ifndef ADMIN_LIST_CACHE_H
#define ADMIN_LIST_CACHE_H

#include "base/map.h"
#include "session/life.h"

/* A log that opened. Text is borrowed. */
typedef struct list_cache_row {
    sessile_slice name; /* of the log */
    sessile_slice id, user, title;
    sessile_backend_stat stat; /* taken before the log was looked at */
    int64_t created_ms, modified_ms;
    uint32_t entries, messages;
    sessile_slice labels; /* as a list has them */
    life_facts life;
} list_cache_row;

/* A folder's list cache as it was found. */
typedef struct list_cache {
    buf data; /* opened */
    sessile_slice agent;
    size_t count;
    size_t *texts; /* of each row, where its text is in data */
    size_t next;   /* the row that is expected to be asked for */
    map names;     /* made when rows are not asked for in their order */
    int mapped;
    const allocator *alloc;
} list_cache;

/* Loads it; missing, bad or foreign: count is 0. Valid and to be deinit'ed also when it
 * failed. NOMEM is the only error. */
sessile_status list_cache_load(list_cache *c, store_core *st, const char *folder);
void list_cache_deinit(list_cache *c);
/* The number of the row of that name; c->count: none. -1: no memory. Quick when asked in
 * the order in which the rows were put. */
int list_cache_find(list_cache *c, const char *name, size_t *row);
/* The row that is number `rank` (below count) from the newest on, by its modified_ms,
 * then by its name. */
size_t list_cache_newest(const list_cache *c, size_t rank);
int64_t list_cache_modified(const list_cache *c, size_t row);
void list_cache_get(const list_cache *c, size_t row, list_cache_row *out);
/* Whether row is what a log of that stat would give. */
int list_cache_fits(const list_cache *c, size_t row, const sessile_backend_stat *stat);

/* A list cache in the making, in the order in which the store lists. */
typedef struct list_cache_draft {
    buf rows, text;
    uint64_t count;
} list_cache_draft;

void list_cache_draft_init(list_cache_draft *d, const allocator *a);
void list_cache_draft_deinit(list_cache_draft *d);
void list_cache_draft_add(list_cache_draft *d, const list_cache_row *row);
/* Puts it in the folder's list cache's place. That it cannot be put is nobody's error:
 * the next list looks at the logs again. */
void list_cache_draft_put(list_cache_draft *d, store_core *st, const char *folder,
                          sessile_slice agent);

/*
 * How long a log must have been left alone for a row of it to be kept: a file that
 * changes twice within a tick of the store's clock looks unchanged, and some clocks tick
 * only every two seconds. now_ms: before its stat was taken.
 */
#define LIST_CACHE_SETTLED_MS 2000
int list_cache_settled(const sessile_backend_stat *stat, int64_t now_ms);

/* Removes the list caches of all folders: what is in them (names, titles) is to go. */
sessile_status list_cache_drop(store_core *st, sessile_error *err);

#endif
