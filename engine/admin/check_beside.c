/*
 * check_beside.c: checks the files of a store that are not logs.
 *
 * Reports what a crash left behind, torn ends that were set aside, old logs, and files
 * that do not belong to the store. Removes what a crash left, but only in a salvage.
 */
#include "admin/check_internal.h"

#include <stdio.h>
#include <string.h>

static int is_part(const char *file, const char *part)
{
    const char *at = strstr(file, part);

    return at && at > file;
}

static int has_log(const check_core *c, const char *folder, const char *file, size_t stem)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->places[i].folder, folder) && strlen(c->places[i].name) == stem &&
            !memcmp(c->places[i].name, file, stem))
            return 1;
    return 0;
}

/* What a crash left and nobody is writing; 1: it may go. */
static int visit_leftover(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    check_core *c = arg;
    check_row *r =
        c->salvage
            ? check_add(c, SESSILE_NOTE, SESSILE_OK,
                        "what a crash left behind, not yet a log: removed")
            : check_add(c, SESSILE_WARNING, SESSILE_OK,
                        "what a crash left behind, not yet a log; nobody writes to it");

    if (!r)
        return 0;
    if (folder)
        snprintf(r->file, sizeof r->file, "agents/%s/%.*s", folder, 128, file);
    else
        snprintf(r->file, sizeof r->file, "%.*s", 128, file);
    r->f.bytes = bytes;
    if (!c->salvage)
        snprintf(r->next, sizeof r->next, "sessile check --salvage");
    return c->salvage;
}

static int is_reported(const check_core *c, const char *file)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (!strcmp(c->rows[i].file, file))
            return 1;
    return 0;
}

static int visit_other(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    check_core *c = arg;
    size_t size = strlen(file);
    const char *what;
    char path[FILE_SIZE];
    sessile_severity severity = SESSILE_NOTE;
    check_row *r;

    if (is_part(file, ".torn-")) {
        what = "a torn end that was set aside: nothing proves that it was acknowledged";
    } else if (is_part(file, ".replaced-")) {
        what = "the old bytes of a log that was rewritten: they are kept until the "
               "session is "
               "deleted";
    } else if (!strncmp(file, ".new-", 5)) {
        what = "not yet a log: a write in progress, or one that was interrupted less "
               "than an "
               "hour ago";
    } else if (size > 4 && !strcmp(file + size - 4, ".idx")) {
        if (has_log(c, folder, file, size - 4))
            return 0;
        severity = SESSILE_WARNING;
        what = "an index without a log: remove it";
    } else if (file[0] == '.') {
        return 0; /* caches */
    } else {
        severity = SESSILE_WARNING;
        what = "not a file of the store: something else put it there";
    }
    snprintf(path, sizeof path, "agents/%s/%.*s", folder, 128, file);
    if (is_reported(c, path))
        return 0;
    r = check_add(c, severity, SESSILE_OK, "%s", what);
    if (!r)
        return 1;
    memcpy(r->file, path, sizeof path);
    r->f.bytes = bytes;
    return 0;
}

sessile_status check_beside(check_core *c, sessile_error *err)
{
    const sessile_backend *table = c->store->backend.table;
    sessile_status status = SESSILE_OK;
    sessile_error why;

    snprintf(c->file, sizeof c->file, "agents");
    error_clear(&why);
    if (table->sweep && table->sweep(c->store->backend.self, visit_leftover, c, &why))
        check_add_error(c, &why);
    if (table->list_others)
        status = table->list_others(c->store->backend.self, NULL, visit_other, c, err);
    if (!status)
        status = check_blobs(c, err);
    return c->failed ? fail_nomem(err) : status;
}
