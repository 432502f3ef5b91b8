/* method.c: finds the method of a path, among the tables of methods_*.c. */
#include "service/server.h"

#include <string.h>

#define SESSIONS "sessile.v1.SessionService"

static const struct {
    const char *service;
    const method *methods;
} tables[] = {
    {SESSIONS, methods_sessions},
    {SESSIONS, methods_messages},
    {SESSIONS, methods_runs},
    {SESSIONS, methods_facts},
    {SESSIONS, methods_checkpoints},
    {SESSIONS, methods_tree},
    {SESSIONS, methods_history},
    {SESSIONS, methods_watch},
    {SESSIONS, methods_run_stream},
    {"sessile.v1.MemoryService", methods_memory},
    {"sessile.v1.MemoryService", methods_memory_read},
    {"sessile.v1.MemoryService", methods_memory_runs},
    {"sessile.v1.RecordService", methods_records_logs},
    {"sessile.v1.RecordService", methods_records_held},
    {"sessile.v1.RecordService", methods_records_lists},
    {"sessile.v1.NodeService", methods_nodes},
    {"grpc.health.v1.Health", methods_health},
    {"grpc.reflection.v1.ServerReflection", methods_reflection},
    {"grpc.reflection.v1alpha.ServerReflection", methods_reflection},
};
enum { TABLES = sizeof tables / sizeof *tables };

const method *method_at(size_t i)
{
    for (size_t t = 0; t < TABLES && strcmp(tables[t].service, SESSIONS) == 0; t++) {
        const method *m = tables[t].methods;
        for (; m->name; m++)
            if (i-- == 0)
                return m;
    }
    return NULL;
}

const method *method_any(size_t i)
{
    for (size_t t = 0; t < TABLES; t++)
        for (const method *m = tables[t].methods; m->name; m++)
            if (i-- == 0)
                return m;
    return NULL;
}

const method *method_find(const char *path)
{
    const char *name = *path == '/' ? strchr(path + 1, '/') : NULL;
    if (!name)
        return NULL;
    size_t size = (size_t)(name - path - 1);
    for (size_t t = 0; t < TABLES; t++) {
        const method *m = tables[t].methods;
        if (strlen(tables[t].service) != size ||
            strncmp(tables[t].service, path + 1, size) != 0)
            continue;
        for (; m->name; m++)
            if (strcmp(m->name, name + 1) == 0)
                return m;
    }
    return NULL;
}

static int is_served(const service *s, const method *m)
{
    unsigned of = m->flags & METHOD_RECORDS ? SERVICE_RECORDS : SERVICE_SESSIONS;
    if (m->flags & METHOD_REFLECTS)
        return s->settings.reflection;
    return m->flags & METHOD_LOOP || s->settings.services & of;
}

const method *method_served(const service *s, const char *path)
{
    const method *m = method_find(path);
    return m && is_served(s, m) ? m : NULL;
}

/* Tables of one service stand together. */
const char *method_service(const service *s, size_t i)
{
    const char *last = "";
    for (size_t t = 0; t < TABLES; t++) {
        if (!is_served(s, tables[t].methods) || strcmp(tables[t].service, last) == 0)
            continue;
        last = tables[t].service;
        if (i-- == 0)
            return last;
    }
    return NULL;
}

int method_serves(const service *s, const char *name)
{
    const char *one;
    for (size_t i = 0; (one = method_service(s, i)); i++)
        if (strcmp(one, name) == 0)
            return 1;
    return 0;
}

size_t method_number(const method *m)
{
    size_t i = 0;
    for (size_t t = 0; t < TABLES; t++)
        for (const method *one = tables[t].methods; one->name; one++, i++)
            if (one == m || strcmp(one->name, m->name) == 0)
                return i;
    return i;
}
