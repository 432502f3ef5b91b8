/*
 * wrong.c: how a store that breaks a promise is put together, and what it remembers.
 */
#include "store/wrong.h"

#include "store/fenced.h"
#include "store/ram.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const sessile_backend *wrong_under;

static const wrong *chosen;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static wrong_log *logs[4096];

wrong_log *wrong_of(sessile_backend_log *log)
{
    wrong_log *found = NULL;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < sizeof logs / sizeof *logs && !found; i++)
        if (logs[i] && logs[i]->log == log)
            found = logs[i];
    pthread_mutex_unlock(&mutex);
    return found;
}

static sessile_status open_log(void *self, const char *folder, const char *name,
                               sessile_backend_log **out, sessile_error *err)
{
    sessile_status status = wrong_under->open(self, folder, name, out, err);
    wrong_log *w = status ? NULL : calloc(1, sizeof *w);

    if (!w)
        return status;
    w->log = *out;
    w->self = self;
    w->first = UINT64_MAX;
    strncpy(w->folder, folder, sizeof w->folder - 1);
    strncpy(w->name, name, sizeof w->name - 1);
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        if (!logs[i]) {
            logs[i] = w;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

static void close_log(sessile_backend_log *log)
{
    wrong_log *w = NULL;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        if (logs[i] && logs[i]->log == log) {
            w = logs[i];
            logs[i] = NULL;
        }
    }
    pthread_mutex_unlock(&mutex);
    free(w);
    wrong_under->close(log);
}

/* ------------------------------------------------------------------ places */

static sessile_status take(const sessile_backend *right, const sessile_backend **table)
{
    static sessile_backend shown;

    if (!wrong_under) {
        wrong_under = right;
        shown = *right;
        shown.open = open_log;
        shown.close = close_log;
        if (chosen)
            chosen->break_it(&shown);
    }
    *table = &shown;
    return SESSILE_OK;
}

static void *medium(void)
{
    return fenced_medium_new();
}

static void medium_free(void *place)
{
    fenced_medium_free(place);
}

static sessile_status fenced(void *place, const sessile_backend **table, void **self,
                             sessile_error *err)
{
    (void)err;
    return take(fenced_store(place, self), table);
}

static void *nowhere(void)
{
    return calloc(1, 1);
}

static sessile_status ram(void *place, const sessile_backend **table, void **self,
                          sessile_error *err)
{
    store st = {NULL, NULL};
    sessile_status status = store_ram_open(&st, os_current, &allocator_default, err);

    (void)place;
    *self = st.self;
    return status ? status : take(st.table, table);
}

static const wrong *find(const wrong *list, const char *name)
{
    while (list->name && strcmp(list->name, name) != 0)
        list++;
    return list->name ? list : NULL;
}

const suite_store *wrong_store(const char *name)
{
    static suite_store kind = {"wrong", 0, 0, medium, medium_free, fenced, NULL, 0, NULL};

    if (!*name)
        return &kind;
    chosen = find(wrong_logs, name);
    if (!chosen)
        chosen = find(wrong_beside, name);
    if (chosen && chosen->locks) {
        kind.vanishes = 1;
        kind.place = nowhere;
        kind.place_free = free;
        kind.backend = ram;
    }
    return chosen ? &kind : NULL;
}
