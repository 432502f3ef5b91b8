/*
 * shared.c: a store in a shared object: what somebody else wrote and built on their own.
 *
 * Owns the object, which stays until the process ends, and a folder for each place. The
 * object sees the program's sessile_copy() and sessile_free(), and nothing else of it.
 */
#include "store/suite.h"

#include "support/sessions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sessile_status (*open_store)(const char *place, const sessile_backend **table,
                                    void **self, sessile_error *err);
static void (*end_place)(const char *place);

static void *place_make(void)
{
    return folder_make();
}

static void place_free(void *folder)
{
    if (end_place)
        end_place(folder);
    folder_remove(folder);
}

static sessile_status backend(void *folder, const sessile_backend **table, void **self,
                              sessile_error *err)
{
    return open_store(folder, table, self, err);
}

/* 1 when the store can be sealed; -1: it cannot be opened at all. */
static int can_seal(const char *object)
{
    const sessile_backend *table = NULL;
    sessile_error err = {0};
    char *folder = folder_make();
    void *self = NULL;
    int seals = -1;

    if (!folder)
        return -1;
    if (open_store(folder, &table, &self, &err) || !table) {
        fprintf(stderr, "%s: sessile_test_store: %s\n", object,
                err.message[0] ? err.message : "no store, and no sentence");
    } else {
        seals = (table->capabilities & SESSILE_BACKEND_SEALS) != 0;
        if (table->free)
            table->free(self);
    }
    place_free(folder);
    return seals;
}

const suite_store *suite_shared(const char *object, int vanishes, int processes,
                                size_t *count)
{
    static suite_store kinds[2];
    static char names[2][200];
    const char *name = strrchr(object, '/') ? strrchr(object, '/') + 1 : object;
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL), *symbol;
    int seals;

    if (!library) {
        fprintf(stderr, "%s%s\n", dlerror(),
                name == object ? ": write its path with a slash, as in ./store.so" : "");
        return NULL;
    }
    symbol = dlsym(library, "sessile_test_store");
    if (!symbol) {
        fprintf(stderr, "%s has no function sessile_test_store: see README.md\n", object);
        return NULL;
    }
    memcpy(&open_store, &symbol, sizeof symbol); /* a function, whatever ISO C says */
    symbol = dlsym(library, "sessile_test_store_end");
    memcpy(&end_place, &symbol, sizeof symbol);
    seals = can_seal(object);
    if (seals < 0)
        return NULL;
    for (int sealed = 0; sealed <= seals; sealed++) {
        snprintf(names[sealed], sizeof names[sealed], "%s, %s", name,
                 sealed ? "sealed" : "plain");
        kinds[sealed] =
            (suite_store){names[sealed], sealed, vanishes,  place_make, place_free,
                          backend,       NULL,   processes, NULL};
    }
    *count = 1 + (size_t)seals;
    return kinds;
}
