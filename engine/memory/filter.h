/* filter.h: which entries a caller wants. */
#ifndef MEMORY_FILTER_H
#define MEMORY_FILTER_H

#include "memory/memory.h"

typedef struct memory_filter {
    memory_core *memory;
    const sessile_memory_filter *wanted;
    unsigned states;
    uint64_t session; /* hash; 0: any */
    int64_t now_ms;
    buf metadata;          /* the value that is looked for, checked */
    buf entry;             /* of an entry that was read */
    sessile_status status; /* of reading; not OK: everything is refused */
    sessile_error err;
} memory_filter;

/* INVALID: a member's value that is no JSON, or a value without a member. */
sessile_status memory_filter_init(memory_filter *f, memory_core *m,
                                  const sessile_memory_filter *wanted, int64_t now_ms,
                                  sessile_error *err);
void memory_filter_deinit(memory_filter *f);
/* 1 or 0; arg is the filter. What records do not tell is read from the log. */
int memory_filter_pass(void *arg, uint32_t record);

#endif
