/* method.c: finds the method of a path, among the tables of methods_*.c. */
#include "service/server.h"

#include <string.h>

static const method *const tables[] = {
    methods_sessions,     methods_messages,     methods_runs,
    methods_facts,        methods_checkpoints,  methods_tree,
    methods_history,      methods_watch,        NULL,
    methods_records_logs, methods_records_held, methods_records_lists};

enum { TABLES = sizeof tables / sizeof *tables, RECORD_TABLES = 9 };

/* The names of services, and their first tables. */
static const struct {
    const char *path;
    size_t first;
} services[] = {{"/sessile.v1.SessionService/", 0},
                {"/sessile.v1.RecordService/", RECORD_TABLES}};

const method *method_at(size_t i)
{
    for (size_t t = 0; tables[t]; t++) {
        const method *m = tables[t];
        for (; m->name; m++)
            if (i-- == 0)
                return m;
    }
    return NULL;
}

const method *method_any(size_t i)
{
    for (size_t t = 0; t < TABLES; t++)
        for (const method *m = tables[t]; m && m->name; m++)
            if (i-- == 0)
                return m;
    return NULL;
}

static const method *find_in(size_t first, const char *name)
{
    for (size_t t = first; t < TABLES && tables[t]; t++) {
        const method *m = tables[t];
        for (; m->name; m++)
            if (strcmp(m->name, name) == 0)
                return m;
    }
    return NULL;
}

const method *method_find(const char *path)
{
    for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
        size_t size = strlen(services[i].path);
        if (strncmp(path, services[i].path, size) == 0)
            return find_in(services[i].first, path + size);
    }
    return NULL;
}

size_t method_number(const method *m)
{
    size_t i = 0;
    while (method_any(i) && method_any(i) != m)
        i++;
    return i;
}
