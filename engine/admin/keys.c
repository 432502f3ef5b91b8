/*
 * keys.c: the keys of a store and its sessions: status, rotation, resealing, forgetting.
 *
 * Owns the order in which many logs and one keyring change. Must never drop an epoch
 * that a log may still need: without its epoch a log is lost for ever.
 *
 * A reseal visits all logs twice. The first pass does the work. The second pass looks at
 * every log that exists then, under a shared lock, so that it waits for a writer that is
 * just replacing one. A log that is still old is tried once more; if it stays old, its
 * epoch is kept. (A writer that meanwhile creates a log under an older epoch notices the
 * newer one afterwards, and reseals its log itself: see log/create.c.)
 */
#include "admin/keys.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "admin/list_cache.h"
#include "admin/places.h"
#include "audit/audit.h"
#include "guard/control.h"
#include "guard/erasure.h"
#include "operations/deletion.h"
#include "session/fold.h"

enum { EPOCHS_MOST = 4096 };

/* ------------------------------------------------------------------ the keyring */

sessile_status keys_init(const char *url, const sessile_store_options *options,
                         sessile_error *err)
{
    store_core *st;
    sessile_status status = store_handle_make(&st, url, options, err);

    store_handle_close(st);
    return status;
}

sessile_status keys_rotate(store_core *st, const sessile_rotate_options *options,
                           uint64_t *epoch, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (!keyring_sealed(st->keys))
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is plain: it has no keys to change");
    if (!options || !options->new_secret) {
        status = keyring_new_epoch(st->keys, err);
    } else {
        if (options->key_source == SESSILE_KEY_DEFAULT ||
            options->key_source == SESSILE_KEY_PLAIN)
            return fail(
                err, SESSILE_INVALID,
                "a new secret comes from an environment variable, a file or the host");
        if (options->make_file && options->key_source == SESSILE_KEY_FILE)
            status = secret_file_make(options->key, st->os, &st->alloc, err);
        if (!status)
            status = keyring_set_secret(st->keys, options->key_source, options->key,
                                        st->os, err);
    }
    if (epoch)
        *epoch = keyring_epoch(st->keys);
    return status;
}

/* ------------------------------------------------------------------ status */

static sessile_keys_epoch *epoch_row(sessile_keys_epoch *rows, size_t count,
                                     uint64_t epoch)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].epoch == epoch)
            return &rows[i];
    return NULL;
}

static void count_log(sessile_keys *k, sessile_keys_epoch *rows, const keyring *keys,
                      const keyring_about *about, const log_about *log)
{
    sessile_keys_epoch *row;
    sessile_error ignored;
    int old = log->key.epoch != about->epoch || log->key.suite != about->suite;

    if (!log->sealed) {
        k->odd_logs++;
        return;
    }
    row = epoch_row(rows, k->epoch_count, log->key.epoch);
    if (row)
        row->logs++;
    k->user_logs += log->key.user[0] != 0;
    /* reseal cannot change what nothing opens any more */
    k->old_logs += old && keyring_forgot(keys, &log->key, &ignored) != 1;
}

sessile_status keys_status(store_core *st, sessile_keys **out, sessile_error *err)
{
    uint64_t epochs[EPOCHS_MOST];
    sessile_keys_epoch *rows;
    sessile_keys *k = NULL;
    keyring_about about;
    sessile_status status;
    places logs;
    size_t count;

    *out = NULL;
    status = keyring_refresh(st->keys, err);
    if (status)
        return status;
    keyring_facts(st->keys, &about);
    count = keyring_epochs(st->keys, epochs, EPOCHS_MOST);
    count = count < EPOCHS_MOST ? count : EPOCHS_MOST;
    status = places_find(&logs, st, NULL, err);
    if (status)
        goto out;
    k = host_alloc(&st->alloc, sizeof *k + (count + 1) * sizeof *rows);
    if (!k) {
        status = fail_nomem(err);
        goto out;
    }
    memset(k, 0, sizeof *k);
    rows = (sessile_keys_epoch *)(void *)(k + 1);
    k->sealed = about.sealed;
    k->logs = logs.count;
    k->key_source = about.source;
    if (!about.sealed)
        goto out;
    k->suite = suite_name(about.suite);
    k->kdf = about.stretched ? "argon2id" : "none";
    k->kdf_ops = about.ops;
    k->kdf_mem = about.mem;
    k->epochs = rows;
    k->epoch_count = count;
    for (size_t i = 0; i < count; i++)
        rows[i] = (sessile_keys_epoch){epochs[i], 0};
    status = keyring_users(st->keys, &k->users, err);
    for (size_t i = 0; !status && i < logs.count; i++) {
        log_about log;
        sessile_status looked = log_read_about(&st->backend, logs.list[i].folder,
                                               logs.list[i].name, 0, 0, &log, NULL);
        if (looked == SESSILE_NOTFOUND)
            k->logs--; /* deleted meanwhile */
        else if (looked)
            k->odd_logs++;
        else
            count_log(k, rows, st->keys, &about, &log);
    }
out:
    places_deinit(&logs);
    if (status) {
        host_free(k);
        return status;
    }
    *out = k;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ resealing */

struct reseal_core {
    store_core *store;
    places logs;
    size_t next;
    int proving;  /* the second pass */
    int keep_all; /* it is unknown which epoch some log needs */
    int done;
    uint64_t *keep; /* epochs that some log still needs */
    size_t keep_count, keep_capacity;
    sessile_reseal_state state;
    char failed[2 * NAME_SIZE]; /* "folder/name" */
};

void reseal_free(reseal_core *r)
{
    const allocator *a;

    if (!r)
        return;
    a = &r->store->alloc;
    places_deinit(&r->logs);
    mem_free(a, r->keep, r->keep_capacity * sizeof *r->keep);
    mem_free(a, r, sizeof *r);
}

sessile_status reseal_begin(reseal_core **out, store_core *st, const char *suite,
                            sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    reseal_core *r;

    *out = NULL;
    if (!keyring_sealed(st->keys) ||
        !(st->backend.table->capabilities & SESSILE_BACKEND_REPLACES))
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is plain: its logs cannot be sealed again");
    r = mem_zalloc(&st->alloc, sizeof *r);
    if (!r)
        return fail_nomem(err);
    r->store = st;
    if (suite)
        status = keyring_set_suite(st->keys, suite, err);
    if (!status)
        status = keyring_refresh(st->keys, err);
    if (!status)
        status = places_find(&r->logs, st, NULL, err);
    if (status) {
        reseal_free(r);
        return status;
    }
    r->state.logs = r->logs.count;
    *out = r;
    return SESSILE_OK;
}

static sessile_status keep_epoch(reseal_core *r, uint64_t epoch, sessile_error *err)
{
    for (size_t i = 0; i < r->keep_count; i++)
        if (r->keep[i] == epoch)
            return SESSILE_OK;
    if (mem_grow(&r->store->alloc, (void **)&r->keep, &r->keep_capacity,
                 r->keep_count + 1, sizeof *r->keep))
        return fail_nomem(err);
    r->keep[r->keep_count++] = epoch;
    return SESSILE_OK;
}

static void report(reseal_core *r, const place *at, const sessile_error *why)
{
    size_t n = strlen(at->folder);

    memcpy(r->failed, at->folder, n);
    r->failed[n++] = '/';
    memcpy(r->failed + n, at->name, strlen(at->name) + 1);
    r->state.failed++;
    r->state.log = r->failed;
    r->state.why = *why;
}

/* Reseals one log. A failure in the first pass is not reported: the second tries again.
 */
static sessile_status deal_with(reseal_core *r, const place *at, sessile_error *err)
{
    store_core *st = r->store;
    sessile_error why;
    sessile_status status;
    keyring_about now;
    log_about log;
    log_index_callbacks callbacks = session_index_callbacks(NULL, 1);
    int done = 0;

    error_clear(&why);
    keyring_facts(st->keys, &now);
    status = log_read_about(&st->backend, at->folder, at->name, r->proving,
                            st->config.timeout_ms, &log, &why);
    if (!status && !log.sealed)
        status = fail(&why, SESSILE_SEALED, "this log is plain and its store is sealed");
    if (status) {
        if (status == SESSILE_NOMEM)
            return fail_nomem(err);
        if (r->proving && status != SESSILE_NOTFOUND) {
            r->keep_all = 1;
            report(r, at, &why);
        }
        return SESSILE_OK;
    }
    if (log.key.epoch == now.epoch && log.key.suite == now.suite)
        return SESSILE_OK;
    status = !strcmp(at->folder, CONTROL_FOLDER)
                 ? control_reseal(st, at->folder, at->name, &done, &why)
                 : log_reseal(&st->backend, st->keys, at->folder, at->name,
                              st->config.timeout_ms, &callbacks, &done, &st->alloc, &why);
    r->state.resealed += done != 0;
    switch (status) {
    case SESSILE_OK:
    case SESSILE_NOTFOUND: /* deleted meanwhile */
        return SESSILE_OK;
    case SESSILE_NOMEM:
    case SESSILE_FULL: /* the next log would fail too */
        return fail(err, why.code, "%s", why.message);
    default:
        break;
    }
    if (!r->proving)
        return SESSILE_OK;
    if (status == SESSILE_SEALED && log.key.user[0]) {
        r->state.forgotten++;
        return SESSILE_OK;
    }
    report(r, at, &why);
    return keep_epoch(r, log.key.epoch, err);
}

static sessile_status finish(reseal_core *r, sessile_error *err)
{
    keyring *keys = r->store->keys;
    size_t before = keyring_epochs(keys, NULL, 0);
    sessile_status status = SESSILE_OK;

    if (before > 1)
        status = deletions_reseal(r->store, err);
    if (!status && before > 1)
        status = audit_reseal(r->store, err);
    if (!status && !r->keep_all && before > 1)
        status = keyring_drop_epochs(keys, r->keep, r->keep_count, err);
    if (!status)
        status = keyring_drop_users(keys, err);
    if (!status && before > 1)
        status = list_cache_drop(r->store, err); /* sealed with a master key as well */
    if (!status) {
        size_t after = keyring_epochs(keys, NULL, 0);
        r->state.dropped = before > after ? before - after : 0;
        r->done = 1;
    }
    return status;
}

sessile_status reseal_step(reseal_core *r, sessile_reseal_state *state,
                           sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    r->state.log = NULL;
    error_clear(&r->state.why);
    if (r->done)
        goto out;
    if (r->next == r->logs.count && !r->proving) {
        places now;
        status = places_find(&now, r->store, NULL, err);
        if (status) {
            places_deinit(&now);
            return status;
        }
        places_deinit(&r->logs);
        r->logs = now;
        r->next = 0;
        r->proving = 1;
    }
    if (r->next < r->logs.count) {
        status = deal_with(r, &r->logs.list[r->next], err);
        if (status)
            return status; /* the same log comes again */
        r->next++;
        r->state.seen += !r->proving;
    } else {
        status = finish(r, err);
    }
out:
    if (state)
        *state = r->state;
    return status ? status : r->done ? SESSILE_OK : SESSILE_NEEDS;
}

/* ------------------------------------------------------------------ forgetting */

/* Counts the logs of a user that can be opened. DENIED: one is under a hold. */
static sessile_status count_open(store_core *st, const char *user, uint64_t *out,
                                 sessile_error *err)
{
    sessile_status status;
    places logs;
    buf text;

    buf_init(&text, &st->alloc);
    status = places_find(&logs, st, NULL, err);
    for (size_t i = 0; !status && i < logs.count; i++) {
        const place *at = &logs.list[i];
        log_about log;
        const store_removal what = {at->folder, at->name, user, {NULL, 0}};
        if (log_read_about(&st->backend, at->folder, at->name, 0, 0, &log, NULL) ||
            strcmp(log.key.user, user))
            continue;
        status = store_check_removal(st, &what, err);
        if (status)
            break;
        buf_clear(&text);
        *out += !log_peek(&st->backend, st->keys, at->folder, at->name,
                          session_read_depth(st), st->config.timeout_ms, &text,
                          &st->alloc, NULL);
    }
    places_deinit(&logs);
    buf_deinit(&text);
    return status;
}

/* Makes open handles of the user refuse from now on. */
static sessile_status note_forgotten(store_core *st, sessile_slice user,
                                     sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t count;

    pthread_mutex_lock(&st->mutex);
    count = atomic_load(&st->forgotten_count);
    if (mem_grow(&st->alloc, (void **)&st->forgotten, &st->forgotten_capacity, count + 1,
                 sizeof *st->forgotten)) {
        status = fail_nomem(err);
    } else {
        st->forgotten[count] = hash64(user.data, user.size);
        atomic_store(&st->forgotten_count, count + 1);
    }
    pthread_mutex_unlock(&st->mutex);
    return status;
}

sessile_status forget_user(store_core *st, sessile_slice user, uint64_t *sessions,
                           sessile_error *err)
{
    char name[NAME_SIZE];
    const store_removal all = {"", "", name, user};
    uint64_t open = 0, removed;
    sessile_status status, noted;

    if (!user.size)
        return fail(err, SESSILE_INVALID, "the name of the user is empty");
    if (!keyring_sealed(st->keys))
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is plain: users have no secrets here. Delete their "
                    "sessions instead");
    keyring_user_name(st->keys, user, name);
    status = store_check_removal(st, &all, err);
    if (!status)
        status = count_open(st, name, &open, err);
    if (status)
        return status;
    status = keyring_forget(st->keys, name, &removed, err);
    noted = note_forgotten(st, user, status ? NULL : err);
    /* List caches may contain titles. They are dropped even if nothing was removed, since
     * an earlier call may have been interrupted before this. */
    if (!status)
        status = list_cache_drop(st, err);
    if (!status && removed)
        status = erasure_forgotten(st, user, err);
    if (sessions)
        *sessions = open;
    return status ? status : noted;
}
