/* store.h: an open store, whatever its backend. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/os.h"
#include "sessile_store.h"

/* An open backend: its table and its self. */
typedef struct store {
    const sessile_backend *table;
    void *self;
} store;

void store_close(store *s);

#endif
