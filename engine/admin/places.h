/* places.h: the places of all logs of a store. */
#ifndef ADMIN_PLACES_H
#define ADMIN_PLACES_H

#include "session/store_handle.h"
#include "vault/vault.h"

typedef struct place {
    char folder[NAME_SIZE], name[NAME_SIZE];
} place;

typedef struct places {
    const allocator *alloc;
    place *list;
    size_t count, capacity;
    int failed;
} places;

/* The logs of a folder; NULL: of all folders. *out is to be freed, also after an error.
 */
sessile_status places_find(places *out, store_core *st, const char *folder,
                           sessile_error *err);
void places_deinit(places *p);

#endif
