/* memories.h: the memories of a store, one after the other. */
#ifndef ADMIN_MEMORIES_H
#define ADMIN_MEMORIES_H

#include "memory/memory.h"
#include "session/header.h"

/* An error ends it. */
typedef sessile_status (*memory_visit)(void *arg, memory_core *m, sessile_error *err);
/*
 * Opens each memory and shows it to visit. user: data not NULL: only those of this user.
 * *closed is raised by those that do not open.
 */
sessile_status memories_each(store_core *st, sessile_slice user, memory_visit visit,
                             void *arg, uint64_t *closed, sessile_error *err);

int folder_has_memories(const char *folder);

#endif
