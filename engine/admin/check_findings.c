/*
 * check_findings.c: the findings of one step of a check.
 *
 * Owns the rows and their text, which last until the next step.
 */
#include "admin/check_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vault/vault.h"

check_row *check_add(check_core *c, sessile_severity severity, sessile_status status,
                     const char *format, ...)
{
    va_list args;
    check_row *r;

    if (mem_grow(&c->store->alloc, (void **)&c->rows, &c->row_capacity, c->row_count + 1,
                 sizeof *c->rows)) {
        c->failed = SESSILE_NOMEM;
        return NULL;
    }
    r = &c->rows[c->row_count++];
    memset(r, 0, sizeof *r);
    r->f.severity = severity;
    r->f.code = status;
    r->f.entry = SESSILE_NO_ID;
    snprintf(r->file, sizeof r->file, "%s", c->file);
    va_start(args, format);
    vsnprintf(r->what, sizeof r->what, format, args);
    va_end(args);
    return r;
}

void check_add_error(check_core *c, const sessile_error *err)
{
    /* A session whose user was forgotten is what it was meant to be. */
    int forgotten = err->code == SESSILE_SEALED &&
                    strstr(err->message, "of this user was forgotten:");

    check_row *r = check_add(c,
                             forgotten                   ? SESSILE_NOTE
                             : err->code == SESSILE_BUSY ? SESSILE_WARNING
                                                         : SESSILE_DAMAGE,
                             err->code, "%s", err->message);

    if (forgotten && r)
        snprintf(r->next, sizeof r->next, "sessile purge --forgotten");
    else if (r && user_secret_is_missing(err))
        snprintf(r->next, sizeof r->next,
                 "bring back the secret, or: sessile forget USER");
}

void check_suggest_salvage(check_core *c, check_row *r)
{
    if (c->s && c->s->log)
        session_salvage_command(c->s, r->next);
}

int check_is_of_files(const check_core *c)
{
    return (c->store->backend.table->capabilities & SESSILE_BACKEND_CUTS) != 0;
}

void check_file_name(const check_core *c, const char *folder, const char *name,
                     char out[FILE_SIZE])
{
    int files = check_is_of_files(c);

    snprintf(out, FILE_SIZE, "%s%s/%s%s", files ? "agents/" : "", folder, name,
             files ? ".jsonl" : "");
}

int check_reserve(check_core *c)
{
    if (!mem_grow(&c->store->alloc, (void **)&c->findings, &c->finding_capacity,
                  c->row_count + 1, sizeof *c->findings))
        return 0;
    c->failed = SESSILE_NOMEM;
    return -1;
}
