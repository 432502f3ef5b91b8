/* memory.h: a backend of one log in memory, whose bytes may be anything. */
#ifndef FUZZ_MEMORY_H
#define FUZZ_MEMORY_H

#include "store/store.h"

typedef struct memory {
    char *data; /* exactly size bytes, so that a sanitizer sees a read beyond */
    size_t size;
    char *aside; /* what was cut off, the newest piece */
    size_t aside_size;
} memory;

void memory_init(memory *m, const void *data, size_t size);
void memory_deinit(memory *m);
/* Locks are always free; set_aside and rewrite work, sync does nothing. */
store memory_store(memory *m);

#endif
