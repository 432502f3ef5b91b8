/* ram_internal.h: what ram.c (logs) and ram_blob.c (blobs) share. */
#ifndef STORE_RAM_INTERNAL_H
#define STORE_RAM_INTERNAL_H

#include <pthread.h>

#include "store/store.h"

typedef struct ram_store {
    const os_table *os;
    allocator alloc;
    pthread_mutex_t mutex;
    struct ram_log *logs; /* in the order they were made */
    struct ram_blob *blobs;
} ram_store;

/* Frees a text of mem_dup(). NULL is ignored. */
void ram_free_text(ram_store *rs, char *text);

/* The backend's functions of these names; self is a ram_store. */
sessile_status ram_blob_get(void *self, const char *name, char **out, size_t *size,
                            sessile_error *err);
sessile_status ram_blob_put_new(void *self, const char *name, const void *data,
                                size_t size, sessile_error *err);
sessile_status ram_blob_remove(void *self, const char *name, sessile_error *err);
sessile_status ram_blob_list(void *self, const char *prefix,
                             int (*visit)(void *arg, const char *name), void *arg,
                             sessile_error *err);
/* Frees all blobs; nobody uses the store any more. */
void ram_blobs_free(ram_store *rs);

#endif
