/*
 * check_beside.c: the files of a store that are no logs.
 *
 * Owns what is said of leftovers of a crash, of pieces that were set aside, and of files
 * that do not belong there. Removes leftovers only when the check is to salvage.
 */
#include "admin/check_internal.h"

#include <stdio.h>
#include <string.h>

static int is_part(const char *file, const char *part)
{
    const char *at = strstr(file, part);

    return at && at > file;
}

static int has_log(const sessile_check *c, const char *folder, const char *file,
                   size_t stem)
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
    sessile_check *c = arg;
    check_row *r = check_add(c, c->salvage ? SESSILE_NOTE : SESSILE_WARNING, SESSILE_OK);

    if (!r)
        return 0;
    if (folder)
        snprintf(r->file, sizeof r->file, "agents/%s/%.*s", folder, 128, file);
    else
        snprintf(r->file, sizeof r->file, "%.*s", 128, file);
    r->f.bytes = bytes;
    snprintf(r->what, sizeof r->what,
             c->salvage ? "what a crash left behind, which was no log yet: removed"
                        : "what a crash left behind, which is no log yet; nobody is "
                          "writing it any more");
    if (!c->salvage)
        snprintf(r->next, sizeof r->next, "sessile check --salvage");
    return c->salvage;
}

static int is_told(const sessile_check *c, const char *file)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (!strcmp(c->rows[i].file, file))
            return 1;
    return 0;
}

static int visit_other(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    sessile_check *c = arg;
    size_t size = strlen(file);
    const char *what;
    char path[FILE_SIZE];
    sessile_severity severity = SESSILE_NOTE;
    check_row *r;

    if (is_part(file, ".torn-")) {
        what = "a torn end that was set aside: no line says that it was written safely";
    } else if (is_part(file, ".replaced-")) {
        what = "the old bytes of a log that was written anew: they are kept until the "
               "session "
               "is deleted";
    } else if (!strncmp(file, ".new-", 5)) {
        what = "a write in progress, or what one that was interrupted left behind less "
               "than an hour ago: it is no log yet";
    } else if (size > 4 && !strcmp(file + size - 4, ".idx")) {
        if (has_log(c, folder, file, size - 4))
            return 0;
        severity = SESSILE_WARNING;
        what = "an index without a log: remove it";
    } else if (file[0] == '.') {
        return 0; /* caches */
    } else {
        severity = SESSILE_WARNING;
        what = "no file of a store: a stranger put it there";
    }
    snprintf(path, sizeof path, "agents/%s/%.*s", folder, 128, file);
    if (is_told(c, path))
        return 0;
    r = check_add(c, severity, SESSILE_OK);
    if (!r)
        return 1;
    memcpy(r->file, path, sizeof path);
    r->f.bytes = bytes;
    snprintf(r->what, sizeof r->what, "%s", what);
    return 0;
}

sessile_status check_beside(sessile_check *c, sessile_error *err)
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
    return c->failed ? fail_nomem(err) : status;
}
