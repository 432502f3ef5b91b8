/* method.c: finds the method of a path, among the tables of methods_*.c. */
#include "service/server.h"

#include <string.h>

static const method *const tables[] = {
    methods_sessions, methods_messages,    methods_runs,
    methods_facts,    methods_checkpoints, methods_tree,
    methods_history,  methods_watch,       methods_run_stream};

const method *method_at(size_t i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        const method *m = tables[t];
        for (; m->name; m++)
            if (i-- == 0)
                return m;
    }
    return NULL;
}

const method *method_find(const char *path)
{
    static const char service_name[] = "/sessile.v1.SessionService/";
    const method *m;
    if (strncmp(path, service_name, sizeof service_name - 1) != 0)
        return NULL;
    path += sizeof service_name - 1;
    for (size_t i = 0; (m = method_at(i)); i++)
        if (strcmp(m->name, path) == 0)
            return m;
    return NULL;
}

size_t method_number(const method *m)
{
    size_t i = 0;
    while (method_at(i) && method_at(i) != m)
        i++;
    return i;
}
