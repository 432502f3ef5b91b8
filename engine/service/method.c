/* method.c: finds the method of a path, among the tables of methods_*.c. */
#include "service/server.h"

#include <string.h>

#define SESSIONS "sessile.v1.SessionService"
#define RECORDS  "sessile.v1.RecordService"

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
    {"sessile.v1.NodeService", methods_nodes},
    {"grpc.health.v1.Health", methods_health},
    {RECORDS, methods_records_logs},
    {RECORDS, methods_records_held},
    {RECORDS, methods_records_lists},
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

int method_has_service(const char *name)
{
    for (size_t t = 0; t < TABLES; t++)
        if (strcmp(tables[t].service, name) == 0)
            return 1;
    return 0;
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

size_t method_number(const method *m)
{
    size_t i = 0;
    while (method_at(i) && method_at(i) != m)
        i++;
    return i;
}

int method_served(const method *m, unsigned services)
{
    if (m->flags & METHOD_RECORDS)
        return (services & SERVICE_RECORDS) != 0;
    return (services & SERVICE_SESSIONS) || !method_at(method_number(m));
}
