/*
 * erase.h: an erasure on its way, shared by erase.c and erase_text.c.
 */
#ifndef MEMORY_ERASE_H
#define MEMORY_ERASE_H

#include "memory/memory.h"

typedef struct id_list {
    sessile_id *at;
    size_t count, capacity;
} id_list;

typedef struct erasing {
    memory_core *m;
    const sessile_memory_erase_options *wanted;
    uint64_t *targets; /* a bit for each of the first `count` records */
    size_t count, target_count;
    id_list rejected,
        deleted; /* entries that get a verdict before the log is rewritten */
    buf entry, data, user;
} erasing;

static inline int erasing_has(const erasing *e, uint32_t record)
{
    return record < e->count && (e->targets[record / 64] >> record % 64 & 1);
}

/* A log_change; arg is the erasing. Writes into out what an entry of the log becomes, or
 * nothing if it stays as it is. DAMAGED; NOTFOUND: the log is of another memory. */
sessile_status erase_change(void *arg, sessile_id id, const char *text, size_t size,
                            buf *out, sessile_error *err);

#endif
