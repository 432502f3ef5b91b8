/* places.c: the places of all logs of a store. */
#include "admin/places.h"

#include <string.h>

static int add_place(void *arg, const char *folder, const char *name)
{
    places *p = arg;

    if (strlen(folder) >= NAME_SIZE || strlen(name) >= NAME_SIZE)
        return 0; /* no name of ours */
    if (mem_grow(p->alloc, (void **)&p->list, &p->capacity, p->count + 1,
                 sizeof *p->list)) {
        p->failed = 1;
        return 1;
    }
    memcpy(p->list[p->count].folder, folder, strlen(folder) + 1);
    memcpy(p->list[p->count].name, name, strlen(name) + 1);
    p->count++;
    return 0;
}

void places_deinit(places *p)
{
    if (p->list)
        mem_free(p->alloc, p->list, p->capacity * sizeof *p->list);
    memset(p, 0, sizeof *p);
}

sessile_status places_find(places *out, store_core *st, const char *folder,
                           sessile_error *err)
{
    sessile_status status;

    memset(out, 0, sizeof *out);
    out->alloc = &st->alloc;
    status = st->backend.table->list(st->backend.self, folder, add_place, out, err);
    return !status && out->failed ? fail_nomem(err) : status;
}
