/*
 * blob.c: blobs, one row each.
 *
 * Each change is one statement that names the state it starts from, and is made once
 * (change.c).
 */
#include "store/postgres/postgres.h"

#include <string.h>

/* Fetches it: *r holds it when *there. */
static sessile_status fetch(pg_call *call, const char *name, pg_results *r, int *there,
                            sessile_error *err)
{
    pg_step s = pg_step_of(PG_BLOB_GET);
    pg_arg_text(&s, name);
    *there = 0;
    call->absent = 0;
    sessile_status status = pg_ask(call, &s, 1, name, r, err);
    if (!status) {
        *there = pg_rows(call->ps, r->of[0]) == 1;
        if (!*there)
            pg_results_free(call->ps, r);
        return status;
    }
    return call->absent ? SESSILE_OK : status;
}

sessile_status pg_blob_get(void *self, const char *name, char **out, size_t *size,
                           sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_results r;
    int there = 0;
    *out = NULL;
    *size = 0;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = fetch(&call, name, &r, &there, err);
    if (status)
        return status;
    if (!there)
        return fail(err, SESSILE_NOTFOUND, "there is no %s", name);
    const char *data = pg_bytes(ps, r.of[0], 0, 0, size);
    *out = host_dup(&ps->alloc, data, *size);
    pg_results_free(ps, &r);
    if (!*out) {
        *size = 0;
        return fail_nomem(err);
    }
    return SESSILE_OK;
}

/* A change of a blob, for the probe: it holds data; or (NULL) there is none. */
typedef struct changing {
    const char *name;
    const void *data;
    size_t size;
} changing;

static sessile_status changed(pg_call *call, void *arg, int *yes, sessile_error *err)
{
    changing *c = arg;
    pg_results r;
    int there;
    *yes = 0;
    sessile_status status = fetch(call, c->name, &r, &there, err);
    if (!status && there) {
        size_t size;
        const char *data = pg_bytes(call->ps, r.of[0], 0, 0, &size);
        *yes = c->data && size == c->size && memcmp(data, c->data, size) == 0;
        pg_results_free(call->ps, &r);
    } else if (!status) {
        *yes = c->data == NULL;
    }
    return status;
}

/* 1 row: done. *done 0: the statement found another state. */
static sessile_status change(pg_call *call, const pg_step *s, changing *c, int making,
                             int *done, sessile_error *err)
{
    pg_results r = {0};
    int took = PG_AS_ANSWERED;
    sessile_status status = (making ? pg_change_making : pg_change)(
        call, s, 1, c->name, changed, c, &r, &took, err);
    *done = status == SESSILE_OK;
    if (*done && took == PG_AS_ANSWERED) {
        *done = pg_rows(call->ps, r.of[0]) > 0;
        pg_results_free(call->ps, &r);
    }
    return status;
}

sessile_status pg_blob_put_new(void *self, const char *name, const void *data,
                               size_t size, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    changing c = {name, size > 0 ? data : "", size};
    int done;
    sessile_status status = store_name_check(name, err);
    if (status)
        return status;
    pg_step s = pg_step_of(PG_BLOB_PUT);
    pg_arg_text(&s, name);
    pg_arg_bytes(&s, data, size);
    status = change(&call, &s, &c, 1, &done, err);
    return !status && !done ? fail(err, SESSILE_EXISTS, "%s is already there", name)
                            : status;
}

sessile_status pg_blob_replace(void *self, const char *name, const void *was,
                               size_t was_size, const void *data, size_t size,
                               sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    changing c = {name, size > 0 ? data : "", size};
    pg_results r;
    int done = 0, there;
    sessile_status status = store_name_check(name, err);
    if (status)
        return status;
    pg_step s = pg_step_of(PG_BLOB_REPLACE);
    pg_arg_text(&s, name);
    pg_arg_bytes(&s, was, was_size);
    pg_arg_bytes(&s, data, size);
    status = change(&call, &s, &c, 0, &done, err);
    if (done || (status && !call.absent))
        return status;
    status = fetch(&call, name, &r, &there, err);
    if (!status && !there)
        return fail(err, SESSILE_NOTFOUND, "there is no %s", name);
    if (!status) {
        pg_results_free(ps, &r);
        status = fail(err, SESSILE_CONFLICT, "%s was changed by somebody else", name);
    }
    return status;
}

sessile_status pg_blob_remove(void *self, const char *name, sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    changing c = {name, NULL, 0};
    int done;
    sessile_status status = store_name_check(name, err);
    if (status)
        return status;
    pg_step s = pg_step_of(PG_BLOB_REMOVE);
    pg_arg_text(&s, name);
    status = change(&call, &s, &c, 0, &done, err);
    return (!status && !done) || call.absent
               ? fail(err, SESSILE_NOTFOUND, "there is no %s", name)
               : status;
}

sessile_status pg_blob_list(void *self, const char *prefix,
                            int (*visit)(void *arg, const char *name), void *arg,
                            sessile_error *err)
{
    pg_store *ps = self;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    pg_step s = pg_step_of(PG_BLOB_LIST);
    pg_results r;
    /* what a damaged name begins with is known only when it is shown */
    pg_arg_text(&s, strcmp(prefix, STORE_MISNAMED) ? prefix : "");
    sessile_status status = pg_ask(&call, &s, 1, "blob", &r, err);
    if (status)
        return call.absent ? SESSILE_OK : status;
    for (int i = 0, n = pg_rows(ps, r.of[0]); i < n; i++) {
        const char *name = pg_text(ps, r.of[0], i, 0);
        char shown[STORE_MISNAMED_SIZE];
        name = store_blob_shown(0, name, shown);
        if (strncmp(name, prefix, strlen(prefix)) == 0 && visit(arg, name) != 0)
            break;
    }
    pg_results_free(ps, &r);
    return SESSILE_OK;
}
