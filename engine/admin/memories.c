/* memories.c: the memories of a store, one after the other. */
#include "admin/memories.h"

#include <string.h>

#include "admin/places.h"
#include "base/error.h"

int folder_has_memories(const char *folder)
{
    size_t size = strlen(folder), end = sizeof MEMORY_FOLDER - 1;
    return size > end && strcmp(folder + size - end, MEMORY_FOLDER) == 0;
}

static sessile_status open_at(memory_core **out, store_core *st, const place *at,
                              sessile_error *err)
{
    sessile_memory_options o = {.must_exist = 1};
    sessile_status status;
    header h;

    header_init(&h, &st->alloc);
    status = header_peek(st, at->folder, at->name, &h, err);
    if (!status) {
        o.agent = (sessile_slice){h.agent.data, h.agent.size};
        o.user = (sessile_slice){h.user.data, h.user.size};
        status = memory_open(out, st, &o, err);
    }
    header_deinit(&h);
    return status;
}

sessile_status memories_each(store_core *st, sessile_slice user, memory_visit visit,
                             void *arg, uint64_t *closed, sessile_error *err)
{
    static const char id[] = MEMORY_ID;
    char name[NAME_SIZE];
    places logs;
    sessile_status status = places_find(&logs, st, NULL, err);

    keyring_log_name(st->keys, user, (sessile_slice){id, sizeof id - 1}, name);
    for (size_t i = 0; !status && i < logs.count; i++) {
        const place *at = &logs.list[i];
        memory_core *m = NULL;
        sessile_error why = {0};
        if (!folder_has_memories(at->folder) ||
            (user.data && strcmp(at->name, name) != 0))
            continue;
        switch (open_at(&m, st, at, &why)) {
        case SESSILE_OK:
            status = visit(arg, m, err);
            break;
        case SESSILE_NOTFOUND: /* it was just removed */
            break;
        case SESSILE_NOMEM:
            status = fail_nomem(err);
            break;
        default:
            *closed += 1;
        }
        if (m)
            memory_close(m);
    }
    places_deinit(&logs);
    return status;
}
