/*
 * list.c: lists of a hosted backend: logs, and the files beside them.
 *
 * Names that the engine never makes are left out. After a visit has asked to stop,
 * further names are ignored.
 */
#include "store/hosted/hosted.h"

#include <string.h>

#include "store/wait.h"

/* A visit in progress. What the host reports after it was asked to stop is ignored. */
typedef struct visiting {
    int (*log)(void *arg, const char *folder, const char *name);
    int (*log_stat)(void *arg, const char *folder, const char *name,
                    const sessile_backend_stat *stat);
    int (*file)(void *arg, const char *folder, const char *file, uint64_t bytes);
    void *arg;
    int over;
} visiting;

static int show_log(void *arg, const char *folder, const char *name)
{
    visiting *v = arg;
    if (!v->over && store_name_ok(folder) && store_name_ok(name))
        v->over = v->log(v->arg, folder, name) != 0;
    return v->over;
}

static int show_stat(void *arg, const char *folder, const char *name,
                     const sessile_backend_stat *stat)
{
    visiting *v = arg;
    if (!v->over && store_name_ok(folder) && store_name_ok(name))
        v->over = v->log_stat(v->arg, folder, name, stat) != 0;
    return v->over;
}

static int show_file(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    visiting *v = arg;
    if (!v->over && file)
        v->over = v->file(v->arg, folder, file, bytes) != 0;
    return v->over;
}

static sessile_status hosted_list(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *name),
                                  void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.log = visit, .arg = arg};
    HOSTED_CALL(status, h, err, list, h->self, folder, show_log, &v);
    return status;
}

static sessile_status hosted_list_stat(void *self, const char *folder,
                                       int (*visit)(void *arg, const char *folder,
                                                    const char *name,
                                                    const sessile_backend_stat *stat),
                                       void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.log_stat = visit, .arg = arg};
    HOSTED_CALL(status, h, err, list_stat, h->self, folder, show_stat, &v);
    return status;
}

static sessile_status hosted_list_others(void *self, const char *folder,
                                         int (*visit)(void *arg, const char *folder,
                                                      const char *file, uint64_t bytes),
                                         void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.file = visit, .arg = arg};
    HOSTED_CALL(status, h, err, list_others, h->self, folder, show_file, &v);
    return status;
}

static sessile_status hosted_sweep(void *self,
                                   int (*visit)(void *arg, const char *folder,
                                                const char *file, uint64_t bytes),
                                   void *arg, sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, sweep, h->self, visit, arg);
    return status;
}

static sessile_status hosted_stat(void *self, const char *folder, const char *name,
                                  sessile_backend_stat *out, sessile_error *err)
{
    hosted *h = self;
    memset(out, 0, sizeof *out);
    HOSTED_CALL(status, h, err, stat, h->self, folder, name, out);
    return status;
}

static int found_one(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    *(int *)arg = 1;
    return 1;
}

static sessile_status hosted_has_logs(void *self, int *found, sessile_error *err)
{
    hosted *h = self;
    *found = 0;
    if (!h->host.has_logs)
        return hosted_list(self, NULL, found_one, found, err);
    HOSTED_CALL(status, h, err, has_logs, h->self, found);
    *found = *found != 0;
    return status;
}

void hosted_show_lists(sessile_backend *shown, const sessile_backend *host)
{
    shown->list = hosted_list;
    shown->has_logs = hosted_has_logs;
    if (host->capabilities & SESSILE_BACKEND_LIST_CACHE) {
        shown->stat = hosted_stat;
        shown->list_stat = hosted_list_stat;
    }
    shown->list_others = host->list_others ? hosted_list_others : NULL;
    shown->sweep = host->sweep ? hosted_sweep : NULL;
}
