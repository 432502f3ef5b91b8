/*
 * draft.c: replaces or publishes a log; removes a log.
 *
 * A draft is a row of `sessions` without a name. It is written in transactions of about a
 * megabyte; one more names it, if the log that it replaces still ends where it was read.
 * A log that grew unseen is never removed or replaced. Each step is made once or not at
 * all (change.c).
 */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

#include "store/records.h"

#define PIECE ((size_t)1 << 20)

typedef struct pg_draft {
    pg_store *ps;
    char *folder, *name;
    uint64_t id;
    uint64_t count, bytes; /* in the table */
    buf pending;           /* not yet; it may end inside a record */
} pg_draft;

static pg_draft *draft_of(sessile_backend_draft *draft)
{
    return (pg_draft *)(void *)draft;
}

static void draft_free(pg_draft *d)
{
    pg_store *ps = d->ps;
    buf_deinit(&d->pending);
    if (d->folder)
        mem_free(&ps->alloc, d->folder, strlen(d->folder) + 1);
    if (d->name)
        mem_free(&ps->alloc, d->name, strlen(d->name) + 1);
    mem_free(&ps->alloc, d, sizeof *d);
}

sessile_status pg_draft_new(void *self, const char *folder, const char *name,
                            sessile_backend_draft **out, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_DRAFT_NEW);
    pg_results r;
    *out = NULL;
    sessile_status status = store_names_check(folder, name, err);
    if (status)
        return status;
    pg_draft *d = mem_zalloc(&ps->alloc, sizeof *d);
    if (!d)
        return fail_nomem(err);
    d->ps = ps;
    buf_init(&d->pending, &ps->alloc);
    d->folder = mem_dup(&ps->alloc, folder, strlen(folder));
    d->name = mem_dup(&ps->alloc, name, strlen(name));
    if (!d->folder || !d->name) {
        draft_free(d);
        return fail_nomem(err);
    }
    /* a second one, should the answer be lost, is no log and will be swept */
    pg_arg_text(&s, folder);
    pg_arg_text(&s, name);
    status = pg_ask(&call, &s, 1, name, &r, err);
    if (status && call.absent) {
        status = pg_schema_make(&call, err);
        if (!status)
            status = pg_ask(&call, &s, 1, name, &r, err);
    }
    if (status) {
        draft_free(d);
        return status;
    }
    d->id = pg_rows(ps, r.of[0]) == 1 ? (uint64_t)pg_int(ps, r.of[0], 0, 0) : 0;
    pg_results_free(ps, &r);
    *out = (sessile_backend_draft *)(void *)d;
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- what is known */

/* The draft's row: whether it has its name, and how many records. */
static sessile_status look_up_draft(pg_call *call, const pg_draft *d, int *named,
                                    uint64_t *count, sessile_error *err)
{
    pg_step s = pg_step_of(PG_DRAFT_LOOK);
    pg_results r;
    *named = 0;
    *count = UINT64_MAX;
    pg_arg_int(&s, d->id);
    sessile_status status = pg_ask(call, &s, 1, d->name, &r, err);
    if (!status) {
        if (pg_rows(call->ps, r.of[0]) == 1) {
            *named = !pg_null(call->ps, r.of[0], 0, 0);
            *count = (uint64_t)pg_int(call->ps, r.of[0], 0, 1);
        }
        pg_results_free(call->ps, &r);
    }
    return status;
}

static sessile_status has_its_name(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    uint64_t count;
    return look_up_draft(call, arg, yes, &count, err);
}

typedef struct writing {
    const pg_draft *draft;
    uint64_t count;
} writing;

static sessile_status is_written(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    writing *w = arg;
    uint64_t count;
    int named;
    sessile_status status = look_up_draft(call, w->draft, &named, &count, err);
    *yes = !status && count == w->count;
    return status;
}

/* ---------------------------------------------------------------------- write */

static sessile_status gone(const pg_draft *d, sessile_error *err)
{
    return fail(err, SESSILE_IO,
                "what was being written of %s was removed by somebody else: do it again",
                d->name);
}

/* Puts the first size bytes of what is pending into the table. */
static sessile_status put_records(pg_draft *d, size_t size, sessile_error *err)
{
    pg_store *ps = d->ps;
    pg_records records;
    int took, done;
    if (size == 0)
        return SESSILE_OK;
    writing w = {d, d->count + record_count(d->pending.data, size)};
    if (pg_records_fill(&records, d->pending.data, size, d->bytes, &ps->alloc) != 0)
        return fail_nomem(err);
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_DRAFT_LINES);
    pg_arg_int(&s, d->id);
    pg_arg_int(&s, d->count);
    pg_arg_int(&s, d->bytes + size);
    pg_arg_int(&s, w.count - d->count);
    pg_arg_bytes(&s, records.at.data, records.at.size);
    pg_arg_bytes(&s, records.lines.data, records.lines.size);
    sessile_status status =
        pg_change_row(&call, &s, 1, 0, d->name, is_written, &w, &took, &done, err);
    pg_records_free(&records);
    if (status || !done)
        return status ? status : gone(d, err);
    d->count = w.count;
    d->bytes += size;
    memmove(d->pending.data, d->pending.data + size, d->pending.size - size);
    d->pending.size -= size;
    return SESSILE_OK;
}

sessile_status pg_draft_write(sessile_backend_draft *draft, const void *data, size_t size,
                              sessile_error *err)
{
    pg_draft *d = draft_of(draft);
    buf_put(&d->pending, data, size);
    if (d->pending.failed)
        return fail_nomem(err);
    if (d->pending.size < PIECE)
        return SESSILE_OK;
    size_t whole = d->pending.size;
    while (whole > 0 && d->pending.data[whole - 1] != '\n')
        whole--;
    return put_records(d, whole, err);
}

/* ---------------------------------------------------------------------- the end of one
 */

void pg_draft_drop(sessile_backend_draft *draft)
{
    pg_draft *d = draft_of(draft);
    if (!d)
        return;
    pg_call call = pg_call_of(d->ps, d->ps->timeout_ms);
    pg_step s = pg_step_of(PG_DRAFT_DROP);
    pg_results r;
    pg_arg_int(&s, d->id);
    if (!pg_ask(&call, &s, 1, d->name, &r, NULL))
        pg_results_free(d->ps, &r); /* else it is swept some day */
    draft_free(d);
}

sessile_status pg_draft_publish(sessile_backend_draft *draft, sessile_error *err)
{
    pg_draft *d = draft_of(draft);
    int took = PG_AS_ANSWERED, done = 0;
    sessile_status status = put_records(d, d->pending.size, err);
    if (!status) {
        pg_call call = pg_call_of(d->ps, d->ps->timeout_ms);
        pg_step s = pg_step_of(PG_DRAFT_PUBLISH);
        pg_arg_int(&s, d->id);
        status =
            pg_change_row(&call, &s, 1, 0, d->name, has_its_name, d, &took, &done, err);
    }
    if (!status && done) {
        draft_free(d);
        return SESSILE_OK;
    }
    if (!status)
        status = gone(d, err);
    if (took == PG_UNKNOWN)
        draft_free(d); /* it may be a log by now */
    else
        pg_draft_drop(draft);
    return status;
}

sessile_status pg_draft_replace(sessile_backend_draft *draft,
                                sessile_backend_log *old_handle, int keep, char *kept,
                                size_t kept_size, sessile_error *err)
{
    pg_draft *d = draft_of(draft);
    pg_log *old = pg_log_of(old_handle);
    char name[300];
    int took = PG_AS_ANSWERED, done = 0;
    int size = snprintf(name, sizeof name, "%s.replaced-%llu", old->name,
                        (unsigned long long)old->id);
    pthread_mutex_lock(&old->mutex);
    uint64_t count = old->count, bytes = old->bytes;
    pthread_mutex_unlock(&old->mutex);
    sessile_status status = put_records(d, d->pending.size, err);
    if (!status && keep && (size_t)size >= kept_size)
        status = fail(err, SESSILE_INVALID, "the name of what is kept does not fit");
    if (!status) {
        pg_call call = pg_log_call(old);
        pg_step s[] = {pg_step_of(PG_DRAFT_UNNAME), pg_step_of(PG_DRAFT_NAME),
                       pg_step_of(PG_DRAFT_FORGET)};
        pg_arg_int(&s[0], old->id);
        pg_arg_int(&s[0], count);
        pg_arg_int(&s[0], bytes);
        pg_arg_int(&s[0], d->id);
        pg_arg_int(&s[1], d->id);
        pg_arg_int(&s[1], old->id);
        pg_arg_int(&s[2], old->id);
        pg_arg_int(&s[2], d->id);
        pg_arg_int(&s[2], keep != 0);
        status =
            pg_change_row(&call, s, 3, 1, d->name, has_its_name, d, &took, &done, err);
    }
    if (!status && done) {
        if (keep)
            memcpy(kept, name, (size_t)size + 1);
        draft_free(d);
        return SESSILE_OK;
    }
    if (!status || status == SESSILE_EXISTS) {
        status = fail(err, SESSILE_CONFLICT,
                      "%s was written to, removed or replaced meanwhile: it was left as "
                      "it is",
                      d->name);
    }
    if (took == PG_UNKNOWN)
        draft_free(d);
    else
        pg_draft_drop(draft);
    return status;
}

/* ---------------------------------------------------------------------- remove */

static sessile_status is_gone(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    pg_seen seen;
    sessile_status status = pg_look(call, arg, &seen, err);
    *yes = !status && !seen.there;
    return status;
}

/* What is deleted is not overwritten: README.md says where its bytes may still be. */
typedef struct renaming {
    const pg_log *log;
    const char *folder, *name;
} renaming;

static sessile_status is_renamed(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    const renaming *n = arg;
    pg_step s = pg_step_of(PG_STAT);
    pg_results r;
    *yes = 0;
    pg_arg_text(&s, n->folder);
    pg_arg_text(&s, n->name);
    sessile_status status = pg_ask(call, &s, 1, n->name, &r, err);
    if (status)
        return status;
    *yes = pg_rows(call->ps, r.of[0]) == 1 &&
           (uint64_t)pg_int(call->ps, r.of[0], 0, 0) == n->log->id;
    pg_results_free(call->ps, &r);
    return SESSILE_OK;
}

sessile_status pg_rename(sessile_backend_log *handle, const char *folder,
                         const char *name, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    renaming n = {log, folder, name};
    pg_call call = pg_log_call(log);
    pg_step s = pg_step_of(PG_RENAME);
    int took, done = 0;
    sessile_status status = store_names_check(folder, name, err);
    if (status)
        return status;
    pg_arg_int(&s, log->id);
    pg_arg_text(&s, folder);
    pg_arg_text(&s, name);
    status = pg_change_row(&call, &s, 1, 0, name, is_renamed, &n, &took, &done, err);
    return status || done
               ? status
               : fail(err, SESSILE_EXISTS, "%s/%s is already there", folder, name);
}

sessile_status pg_remove(sessile_backend_log *handle, uint64_t head, sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_store *ps = log->ps;
    pg_call call = pg_log_call(log);
    pg_step s = pg_step_of(PG_REMOVE);
    pg_seen seen;
    int took, done;
    (void)head;
    pthread_mutex_lock(&log->mutex);
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, log->count);
    pg_arg_int(&s, log->bytes);
    pg_cache_forget(log);
    pthread_mutex_unlock(&log->mutex);
    keep_forget(&ps->keep, log->kept);
    sessile_status status =
        pg_change_row(&call, &s, 1, 0, log->name, is_gone, log, &took, &done, err);
    if (status || done)
        return status;
    status = pg_look(&call, log, &seen, err);
    if (status)
        return status;
    if (!seen.there && seen.leads_to == 0) { /* somebody else has removed it */
        pg_results r;
        pg_step settle = pg_step_of(PG_SETTLE);
        status = pg_settle(&call, &settle, 1, log->name, &r, err);
        if (!status)
            pg_results_free(ps, &r);
        return status;
    }
    return fail(err, SESSILE_CONFLICT,
                "%s was written to or replaced meanwhile: it was left alone", log->name);
}
