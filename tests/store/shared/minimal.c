/*
 * shared/minimal.c: the minimal store as a shared object that the suite can be run over,
 * as a store would be:
 *
 *     build/tests/store/test_backend --store build/tests/store/minimal.so
 *
 * A place is a folder's path. This store keeps nothing in files, so it keeps a medium for
 * each path.
 */
#include "store/minimal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
    struct named *next;
    char *place;
    minimal_medium *medium;
} named;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static named *all;

/* What the suite looks for; they are in no header. */
sessile_status sessile_test_store(const char *place, const sessile_backend **table,
                                  void **self, sessile_error *err);
void sessile_test_store_end(const char *place);

sessile_status sessile_test_store(const char *place, const sessile_backend **table,
                                  void **self, sessile_error *err)
{
    named *n;

    (void)err;
    pthread_mutex_lock(&mutex);
    for (n = all; n && strcmp(n->place, place) != 0; n = n->next)
        continue;
    if (!n && (n = calloc(1, sizeof *n))) {
        n->place = strdup(place);
        n->medium = minimal_medium_new();
        n->next = all;
        all = n;
    }
    pthread_mutex_unlock(&mutex);
    if (!n || !n->place || !n->medium)
        return SESSILE_NOMEM;
    *table = minimal_store(n->medium, self);
    return SESSILE_OK;
}

void sessile_test_store_end(const char *place)
{
    pthread_mutex_lock(&mutex);
    for (named **at = &all; *at; at = &(*at)->next) {
        named *n = *at;
        if (strcmp(n->place, place) == 0) {
            *at = n->next;
            minimal_medium_free(n->medium);
            free(n->place);
            free(n);
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
}
